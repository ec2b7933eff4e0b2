/* Claimed folders: what the dead left is removed, and nothing else is. */
#include "harness.h"
#include "supervisor/worker/cgroup.h"
#include "supervisor/worker/directory_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "bulkhead-4711-0123abcd"
#define AGE_S  60

/* -- the moment before a lock is locked: linked with --wrap=flock -------------------------- */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
static int (*before_shared)(void); /* returns the error of the call, 0: none */

int __wrap_flock(int fd, int operation) {
    if ((operation & LOCK_SH) != 0 && before_shared) {
        int error = before_shared();
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
    return __real_flock(fd, operation);
}

/* -- a parent of our own -------------------------------------------------------------------- */

static char parent[64];

static void open_parent(void) {
    snprintf(parent, sizeof parent, "/tmp/bulkhead-test-XXXXXX");
    BHT_TRUE(mkdtemp(parent));
}

static void close_parent(void) {
    const char *argv[] = {"rm", "-rf", parent, NULL};
    BHT_EQ(bht_run(argv, NULL, 0), 0);
}

/* Kept until the test's process ends. */
static const char *in(const char *folder, const char *name) {
    static char *paths[256];
    static size_t count;
    BHT_LT(count, BHT_COUNT(paths));
    BHT_GT(asprintf(&paths[count], "%s/%s", folder, name), 0);
    return paths[count++];
}

static bool is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

/* bhi_directory_lock_make by path. */
static int lock_make(const char *path, mode_t mode) {
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = fd < 0 ? -errno : bhi_directory_lock_make(fd, slash + 1, mode);
    close(fd);
    return made;
}

static void age_by(const char *path, time_t seconds) {
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    const struct timespec times[2] = {then, then};
    BHT_EQ(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void age(const char *path) {
    age_by(path, AGE_S + 2);
}

static void put_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    close(fd);
}

static void put_socket(const char *folder, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.64s/%.32s", folder, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BHT_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* What a process leaves that dies with its lock: descriptors go, the folder stays. */
static void leave(const char *path) {
    int lock_fd = lock_make(path, 0700);
    BHT_GE(lock_fd, 0);
    close(lock_fd);
}

static pid_t dead_pid(void) {
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    BHT_EQ(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* -- what goes ------------------------------------------------------------------------------ */

TEST(what_a_killed_process_left_goes) {
    open_parent();
    const char *path = in(parent, FOLDER);
    int say[2];
    char byte;
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    pid_t owner = fork();
    if (owner == 0) {
        bool made = lock_make(path, 0700) >= 0;
        (void)!write(say[1], made ? "y" : "n", 1);
        for (;;) {
            pause();
        }
    }
    BHT_EQ(read(say[0], &byte, 1), 1);
    BHT_EQ(byte, 'y');
    put_socket(path, "w1");
    put_file(in(path, "file"));
    age(path);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(path, "w1"))); /* it lives */
    BHT_EQ(kill(owner, SIGKILL), 0);
    BHT_EQ(waitpid(owner, NULL, 0), owner);
    age(path);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(!is_there(path));
    close(say[0]);
    close(say[1]);
    close_parent();
}

TEST(a_sweep_does_so_much_and_the_next_one_goes_on) {
    enum { LEFT = 20, MOST = 16 };
    open_parent();
    char name[64];
    for (int i = 0; i < LEFT; i++) {
        snprintf(name, sizeof name, "bulkhead-%d-%08x", 1 + i, 0xabcdef00u + (unsigned)i);
        leave(in(parent, name));
        age(in(parent, name));
    }
    for (int round = 0; round < 3; round++) {
        int left = 0;
        for (int i = 0; i < LEFT; i++) {
            snprintf(name, sizeof name, "bulkhead-%d-%08x", 1 + i, 0xabcdef00u + (unsigned)i);
            left += is_there(in(parent, name));
        }
        BHT_EQ(left, round == 0 ? LEFT : round == 1 ? LEFT - MOST : 0);
        bhi_directory_lock_sweep_folders(parent);
    }
    close_parent();
}

TEST(links_inside_go_and_not_what_they_point_to) {
    open_parent();
    const char *path = in(parent, FOLDER), *outside = in(parent, "outside");
    leave(path);
    BHT_EQ(mkdir(outside, 0700), 0);
    put_file(in(outside, "precious"));
    BHT_EQ(symlink(outside, in(path, "link")), 0);
    age(path);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(!is_there(path));
    BHT_TRUE(is_there(in(outside, "precious")));
    close_parent();
}

/* -- what stays ----------------------------------------------------------------------------- */

TEST(young_ones_stay) {
    open_parent();
    leave(in(parent, FOLDER));
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(parent, FOLDER)));
    age_by(in(parent, FOLDER), AGE_S - 10);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(parent, FOLDER)));
    age_by(in(parent, FOLDER), -1000); /* a clock that was set back */
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(parent, FOLDER)));
    close_parent();
}

TEST(other_names_stay) {
    static const char *const names[] = {
        "bulkhead-4711-0123abcde",       "bulkhead-4711-0123abc", "bulkhead-4711-0123ABCD",
        "bulkhead-4711_0123abcd",        "bulkhead--0123abcd",    "bulkhead-x-0123abcd",
        "bulkhead-4711-0123abcg",        "xbulkhead-1-0123abcd",  "bulkhead-4711-0123abcd.old",
        "bulkhead-12345678901-0123abcd", "bulkhead.4711.1",       "bulkhead-session-abcdef",
    };
    open_parent();
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        leave(in(parent, names[i]));
        age(in(parent, names[i]));
    }
    bhi_directory_lock_sweep_folders(parent);
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        if (!is_there(in(parent, names[i]))) {
            BHT_FAIL("%s is gone", names[i]);
        }
    }
    close_parent();
}

/* Files, links, folders without the mark (of a version that does not lock), folders that hold what
 * is not ours. */
TEST(other_things_stay) {
    open_parent();
    const char *target = in(parent, "target");
    BHT_EQ(mkdir(target, 01700), 0);
    put_file(in(target, "precious"));
    BHT_EQ(symlink("target", in(parent, "bulkhead-1-00000001")), 0);
    put_file(in(parent, "bulkhead-1-00000002"));
    BHT_EQ(chmod(in(parent, "bulkhead-1-00000002"), 01700), 0);
    BHT_EQ(mkdir(in(parent, "bulkhead-1-00000003"), 0700), 0);
    leave(in(parent, "bulkhead-1-00000004"));
    BHT_EQ(mkdir(in(parent, "bulkhead-1-00000004/folder"), 0700), 0);
    put_file(in(parent, "bulkhead-1-00000004/folder/precious"));
    age(target);
    char name[64];
    for (int i = 1; i <= 4; i++) {
        snprintf(name, sizeof name, "bulkhead-1-%08x", (unsigned)i);
        age(in(parent, name));
    }
    bhi_directory_lock_sweep_folders(parent);
    for (int i = 1; i <= 4; i++) {
        snprintf(name, sizeof name, "bulkhead-1-%08x", (unsigned)i);
        if (!is_there(in(parent, name))) {
            BHT_FAIL("%s is gone", name);
        }
    }
    BHT_TRUE(is_there(in(parent, "target/precious")));
    BHT_TRUE(is_there(in(parent, "bulkhead-1-00000004/folder/precious")));
    close_parent();
}

TEST(another_users_stay) {
    if (geteuid() != 0) {
        printf("     needs root\n");
        return;
    }
    open_parent();
    leave(in(parent, FOLDER));
    BHT_EQ(chown(in(parent, FOLDER), 65534, 65534), 0);
    age(in(parent, FOLDER));
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(parent, FOLDER)));
    close_parent();
}

/* Its pid means nothing here: the lock tells. */
TEST(one_of_another_pid_namespace_stays) {
    open_parent();
    const char *path = in(parent, FOLDER);
    int say[2], held[2];
    char byte;
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    BHT_EQ(pipe2(held, O_CLOEXEC), 0);
    pid_t outer = fork();
    if (outer == 0) {
        close(held[1]);
        if (unshare(CLONE_NEWPID) != 0) {
            (void)!write(say[1], "-", 1);
            _exit(0);
        }
        pid_t inner = fork();
        if (inner == 0) {
            bool made = getpid() == 1 && lock_make(path, 0700) >= 0;
            (void)!write(say[1], made ? "y" : "n", 1);
            (void)!read(held[0], &byte, 1); /* until the test lets go */
            _exit(0);
        }
        _exit(waitpid(inner, NULL, 0) == inner ? 0 : 1);
    }
    close(held[0]);
    BHT_EQ(read(say[0], &byte, 1), 1);
    if (byte == '-') {
        printf("     no pid namespaces here\n");
    } else {
        BHT_EQ(byte, 'y');
        put_socket(path, "w1");
        age(path);
        bhi_directory_lock_sweep_folders(parent);
        BHT_TRUE(is_there(in(path, "w1")));
    }
    close(held[1]);
    int status = -1;
    BHT_EQ(waitpid(outer, &status, 0), outer);
    BHT_EQ(status, 0);
    if (byte == 'y') {
        bhi_directory_lock_sweep_folders(parent);
        BHT_TRUE(!is_there(path));
    }
    close(say[0]);
    close(say[1]);
    close_parent();
}

/* Whoever has a copy of the descriptor may still use the folder. */
TEST(one_that_a_forked_child_holds_stays) {
    open_parent();
    const char *path = in(parent, FOLDER);
    int lock_fd = lock_make(path, 0700);
    BHT_GE(lock_fd, 0);
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    close(lock_fd);
    age(path);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(path));
    kill(child, SIGKILL);
    BHT_EQ(waitpid(child, NULL, 0), child);
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(!is_there(path));
    close_parent();
}

TEST(no_parent_is_no_harm) {
    bhi_directory_lock_sweep_folders("/nonexistent");
    bhi_directory_lock_sweep_cgroups("/nonexistent");
    bhi_directory_lock_sweep_folders("/proc/self/status");
}

/* -- making a lock ------------------------------------------------------------------------- */

TEST(a_name_is_taken_once) {
    open_parent();
    int lock_fd = lock_make(in(parent, FOLDER), 0700);
    BHT_GE(lock_fd, 0);
    BHT_EQ(fcntl(lock_fd, F_GETFD), FD_CLOEXEC);
    BHT_EQ(lock_make(in(parent, FOLDER), 0700), -EEXIST);
    BHT_EQ(lock_make(in(parent, "none/" FOLDER), 0700), -ENOENT);
    close(lock_fd);
    close_parent();
}

/* A clock that jumps makes an unlocked one look old: then another sweeps it. */
static int swept_meanwhile(void) {
    before_shared = NULL;
    age(in(parent, FOLDER));
    bhi_directory_lock_sweep_folders(parent);
    return 0;
}

TEST(one_that_was_swept_before_it_was_locked_is_no_claim) {
    open_parent();
    before_shared = swept_meanwhile;
    BHT_EQ(lock_make(in(parent, FOLDER), 0700), -EEXIST);
    BHT_TRUE(!is_there(in(parent, FOLDER)));
    close_parent();
}

static int replaced_meanwhile(void) {
    swept_meanwhile();
    leave(in(parent, FOLDER));
    return 0;
}

TEST(one_that_is_another_by_now_is_no_claim) {
    open_parent();
    before_shared = replaced_meanwhile;
    BHT_EQ(lock_make(in(parent, FOLDER), 0700), -EEXIST);
    BHT_TRUE(is_there(in(parent, FOLDER))); /* the other's */
    close_parent();
}

static int sweeper = -1;

static int being_swept(void) {
    before_shared = NULL;
    sweeper = open(in(parent, FOLDER), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BHT_EQ(__real_flock(sweeper, LOCK_EX | LOCK_NB), 0);
    return 0;
}

TEST(one_that_is_being_swept_is_no_claim) {
    open_parent();
    before_shared = being_swept;
    BHT_EQ(lock_make(in(parent, FOLDER), 0700), -EEXIST);
    close(sweeper);
    close_parent();
}

static int no_locks(void) {
    before_shared = NULL;
    return ENOLCK;
}

TEST(where_there_are_no_locks_nothing_is_swept) {
    open_parent();
    before_shared = no_locks;
    int lock_fd = lock_make(in(parent, FOLDER), 0700);
    BHT_GE(lock_fd, 0);
    age(in(parent, FOLDER));
    bhi_directory_lock_sweep_folders(parent);
    BHT_TRUE(is_there(in(parent, FOLDER)));
    close(lock_fd);
    close_parent();
}

/* -- cgroups -------------------------------------------------------------------------------- */

static const char *group_of(pid_t pid, const char *rest) {
    static char *names[16];
    static size_t count;
    BHT_LT(count, BHT_COUNT(names));
    BHT_GT(asprintf(&names[count], "bulkhead.%d.%s", (int)pid, rest), 0);
    return names[count++];
}

/* Names and rules, on plain folders. */
TEST(groups_of_live_pids_and_others_stay) {
    open_parent();
    const pid_t dead = dead_pid();
    const char *goes[] = {group_of(dead, "123"), group_of(dead, "18446744073709551615.2")};
    for (size_t i = 0; i < BHT_COUNT(goes); i++) {
        leave(in(parent, goes[i]));
    }
    BHT_EQ(mkdir(in(in(parent, goes[0]), "w17"), 0755), 0);
    const char *const stays[] = {group_of(getpid(), "1"),  group_of(dead, "x"),
                                 "bulkhead.test.1",        "bulkhead.0.1",
                                 "bulkhead.99999999999.1", FOLDER};
    for (size_t i = 0; i < BHT_COUNT(stays); i++) {
        leave(in(parent, stays[i]));
    }
    const char *odd = group_of(dead, "5"), *young = group_of(dead, "6");
    leave(in(parent, odd));
    leave(in(parent, young));
    BHT_EQ(mkdir(in(in(parent, odd), "other"), 0755), 0);
    for (size_t i = 0; i < BHT_COUNT(goes); i++) {
        age(in(parent, goes[i]));
    }
    for (size_t i = 0; i < BHT_COUNT(stays); i++) {
        age(in(parent, stays[i]));
    }
    age(in(parent, odd));
    bhi_directory_lock_sweep_cgroups(parent);
    for (size_t i = 0; i < BHT_COUNT(goes); i++) {
        BHT_TRUE(!is_there(in(parent, goes[i])));
    }
    for (size_t i = 0; i < BHT_COUNT(stays); i++) {
        if (!is_there(in(parent, stays[i]))) {
            BHT_FAIL("%s is gone", stays[i]);
        }
    }
    BHT_TRUE(is_there(in(in(parent, odd), "other")));
    BHT_TRUE(is_there(in(parent, young)));
    close_parent();
}

/* The machine's own, where it lets us: one that is claimed, one with a process in it, one that is
 * left. */
TEST(real_groups) {
    struct bhi_cgroup here;
    char why[512], above[sizeof here.dir], path[sizeof here.dir + 64], child[sizeof path + 8];
    if (bhi_cgroup_open(&here, 1, why, sizeof why) != 0) {
        printf("     no memory cgroup here: %s\n", why);
        return;
    }
    snprintf(above, sizeof above, "%s", here.dir);
    *strrchr(above, '/') = 0;
    snprintf(path, sizeof path, "%s/%s", above, group_of(dead_pid(), "77"));
    snprintf(child, sizeof child, "%s/w1", path);
    int lock_fd = lock_make(path, 0755);
    BHT_GE(lock_fd, 0);
    BHT_EQ(mkdir(child, 0755), 0);
    age(path);
    bhi_directory_lock_sweep_cgroups(above);
    BHT_TRUE(is_there(child)); /* of another pid namespace, say */
    close(lock_fd);

    struct bhi_cgroup left = {.version = here.version, .lock_fd = -1};
    snprintf(left.dir, sizeof left.dir, "%.*s", (int)sizeof left.dir - 1, path);
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    BHT_EQ(bhi_cgroup_enter(&left, 1, pid), 0);
    age(path);
    bhi_directory_lock_sweep_cgroups(above);
    BHT_TRUE(is_there(child));
    kill(pid, SIGKILL);
    BHT_EQ(waitpid(pid, NULL, 0), pid);
    /* The kernel says EBUSY for a moment after. */
    WAIT_UNTIL((bhi_directory_lock_sweep_cgroups(above), !is_there(path)), 2000);
    BHT_TRUE(is_there(here.dir));
    bhi_cgroup_close(&here);
}

/* A host's umask may mask its own rights. Root has them anyway, so the mode is what counts. */
TEST(a_umask_that_masks_the_owner) {
    struct stat made;
    open_parent();
    const char *path = in(parent, FOLDER);
    umask(0777);
    const int lock_fd = lock_make(path, 0700);
    umask(022);
    BHT_GE(lock_fd, 0);
    BHT_EQ(stat(path, &made), 0);
    BHT_EQ(made.st_mode & 0777, 0700);
    close(lock_fd);
    close_parent();
}
