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

static const char *parent;
static const char *folder; /* FOLDER in it */

static const char *in(const char *above, const char *name) {
    char *path;
    BHT_GT(asprintf(&path, "%s/%s", above, name), 0);
    return bht_own(path);
}

static void open_parent(void) {
    parent = bht_folder();
    folder = in(parent, FOLDER);
}

BHT_AT_START(bht_around(open_parent, NULL))

static bool is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

/* bhi_directory_lock_make by path. */
static int lock_make(const char *path, mode_t mode) {
    const char *slash = strrchr(path, '/');
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
    int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int made = fd < 0 ? -errno : bhi_directory_lock_make(fd, slash + 1, mode);
    close(fd);
    return made;
}

static void age_by(const char *path, time_t seconds) {
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    const struct timespec times[2] = {then, then};
    BHT_EQ(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void sweep(void) {
    bhi_directory_lock_sweep_folders(parent);
}

static void age(const char *path) {
    age_by(path, AGE_S + 2);
}

static void put_socket(const char *above, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.64s/%.32s", above, name);
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

static void leave_old(const char *name) {
    leave(in(parent, name));
    age(in(parent, name));
}

static void expect_stays(const char *name) {
    if (!is_there(in(parent, name))) {
        BHT_FAIL("%s is gone", name);
    }
}

/* One that sleeps. */
static pid_t start_child(void) {
    pid_t pid = fork();
    while (pid == 0) {
        pause();
    }
    return pid;
}

static void end_child(pid_t pid) {
    BHT_EQ(kill(pid, SIGKILL), 0);
    BHT_EQ(waitpid(pid, NULL, 0), pid);
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
    int say[2];
    char byte;
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    pid_t owner = fork();
    if (owner == 0) {
        bool made = lock_make(folder, 0700) >= 0;
        (void)!write(say[1], made ? "y" : "n", 1);
        for (;;) {
            pause();
        }
    }
    BHT_EQ(read(say[0], &byte, 1), 1);
    BHT_EQ(byte, 'y');
    put_socket(folder, "w1");
    bht_put("", "%s", in(folder, "file"));
    age(folder);
    sweep();
    BHT_TRUE(is_there(in(folder, "w1"))); /* it lives */
    end_child(owner);
    age(folder);
    sweep();
    BHT_TRUE(!is_there(folder));
    close(say[0]);
    close(say[1]);
}

TEST(a_sweep_does_so_much_and_the_next_one_goes_on) {
    enum { LEFT = 20, MOST = 16 };
    char name[64];
    for (int i = 0; i < LEFT; i++) {
        snprintf(name, sizeof name, "bulkhead-%d-%08x", 1 + i, 0xabcdef00u + (unsigned)i);
        leave_old(name);
    }
    for (int round = 0; round < 3; round++) {
        int left = 0;
        for (int i = 0; i < LEFT; i++) {
            snprintf(name, sizeof name, "bulkhead-%d-%08x", 1 + i, 0xabcdef00u + (unsigned)i);
            left += is_there(in(parent, name));
        }
        BHT_EQ(left, round == 0 ? LEFT : round == 1 ? LEFT - MOST : 0);
        sweep();
    }
}

TEST(links_inside_go_and_not_what_they_point_to) {
    const char *outside = in(parent, "outside");
    leave(folder);
    BHT_EQ(mkdir(outside, 0700), 0);
    bht_put("", "%s", in(outside, "precious"));
    BHT_EQ(symlink(outside, in(folder, "link")), 0);
    age(folder);
    sweep();
    BHT_TRUE(!is_there(folder));
    BHT_TRUE(is_there(in(outside, "precious")));
}

/* -- what stays ----------------------------------------------------------------------------- */

TEST(young_ones_stay) {
    leave(folder);
    sweep();
    BHT_TRUE(is_there(folder));
    age_by(folder, AGE_S - 10);
    sweep();
    BHT_TRUE(is_there(folder));
    age_by(folder, -1000); /* a clock that was set back */
    sweep();
    BHT_TRUE(is_there(folder));
}

TEST(other_names_stay) {
    static const char *const names[] = {
        "bulkhead-4711-0123abcde",       "bulkhead-4711-0123abc", "bulkhead-4711-0123ABCD",
        "bulkhead-4711_0123abcd",        "bulkhead--0123abcd",    "bulkhead-x-0123abcd",
        "bulkhead-4711-0123abcg",        "xbulkhead-1-0123abcd",  "bulkhead-4711-0123abcd.old",
        "bulkhead-12345678901-0123abcd", "bulkhead.4711.1",       "bulkhead-session-abcdef",
    };
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        leave_old(names[i]);
    }
    sweep();
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        expect_stays(names[i]);
    }
}

/* Files, links, folders without the mark (of a version that does not lock), folders that hold what
 * is not ours. */
TEST(other_things_stay) {
    const char *target = in(parent, "target");
    BHT_EQ(mkdir(target, 01700), 0);
    bht_put("", "%s", in(target, "precious"));
    BHT_EQ(symlink("target", in(parent, "bulkhead-1-00000001")), 0);
    bht_put("", "%s", in(parent, "bulkhead-1-00000002"));
    BHT_EQ(chmod(in(parent, "bulkhead-1-00000002"), 01700), 0);
    BHT_EQ(mkdir(in(parent, "bulkhead-1-00000003"), 0700), 0);
    leave(in(parent, "bulkhead-1-00000004"));
    BHT_EQ(mkdir(in(parent, "bulkhead-1-00000004/folder"), 0700), 0);
    bht_put("", "%s", in(parent, "bulkhead-1-00000004/folder/precious"));
    age(target);
    char name[64];
    for (int i = 1; i <= 4; i++) {
        snprintf(name, sizeof name, "bulkhead-1-%08x", (unsigned)i);
        age(in(parent, name));
    }
    sweep();
    for (int i = 1; i <= 4; i++) {
        snprintf(name, sizeof name, "bulkhead-1-%08x", (unsigned)i);
        expect_stays(name);
    }
    BHT_TRUE(is_there(in(parent, "target/precious")));
    BHT_TRUE(is_there(in(parent, "bulkhead-1-00000004/folder/precious")));
}

TEST(another_users_stay) {
    if (geteuid() != 0) {
        printf("     needs root\n");
        return;
    }
    leave(folder);
    BHT_EQ(chown(folder, 65534, 65534), 0);
    age(folder);
    sweep();
    BHT_TRUE(is_there(folder));
}

/* Its pid means nothing here: the lock tells. */
TEST(one_of_another_pid_namespace_stays) {
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
            bool made = getpid() == 1 && lock_make(folder, 0700) >= 0;
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
        put_socket(folder, "w1");
        age(folder);
        sweep();
        BHT_TRUE(is_there(in(folder, "w1")));
    }
    close(held[1]);
    int status = -1;
    BHT_EQ(waitpid(outer, &status, 0), outer);
    BHT_EQ(status, 0);
    if (byte == 'y') {
        sweep();
        BHT_TRUE(!is_there(folder));
    }
    close(say[0]);
    close(say[1]);
}

/* Whoever has a copy of the descriptor may still use the folder. */
TEST(one_that_a_forked_child_holds_stays) {
    int lock_fd = lock_make(folder, 0700);
    BHT_GE(lock_fd, 0);
    const pid_t child = start_child();
    close(lock_fd);
    age(folder);
    sweep();
    BHT_TRUE(is_there(folder));
    end_child(child);
    sweep();
    BHT_TRUE(!is_there(folder));
}

TEST(no_parent_is_no_harm) {
    bhi_directory_lock_sweep_folders("/nonexistent");
    bhi_directory_lock_sweep_cgroups("/nonexistent");
    bhi_directory_lock_sweep_folders("/proc/self/status");
}

/* -- making a lock ------------------------------------------------------------------------- */

TEST(a_name_is_taken_once) {
    int lock_fd = lock_make(folder, 0700);
    BHT_GE(lock_fd, 0);
    BHT_EQ(fcntl(lock_fd, F_GETFD), FD_CLOEXEC);
    BHT_EQ(lock_make(folder, 0700), -EEXIST);
    BHT_EQ(lock_make(in(parent, "none/" FOLDER), 0700), -ENOENT);
    close(lock_fd);
}

/* A clock that jumps makes an unlocked one look old: then another sweeps it. */
static int swept_meanwhile(void) {
    before_shared = NULL;
    age(folder);
    sweep();
    return 0;
}

TEST(one_that_was_swept_before_it_was_locked_is_no_claim) {
    before_shared = swept_meanwhile;
    BHT_EQ(lock_make(folder, 0700), -EEXIST);
    BHT_TRUE(!is_there(folder));
}

static int replaced_meanwhile(void) {
    swept_meanwhile();
    leave(folder);
    return 0;
}

TEST(one_that_is_another_by_now_is_no_claim) {
    before_shared = replaced_meanwhile;
    BHT_EQ(lock_make(folder, 0700), -EEXIST);
    BHT_TRUE(is_there(folder)); /* the other's */
}

static int sweeper = -1;

static int being_swept(void) {
    before_shared = NULL;
    sweeper = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BHT_EQ(__real_flock(sweeper, LOCK_EX | LOCK_NB), 0);
    return 0;
}

TEST(one_that_is_being_swept_is_no_claim) {
    before_shared = being_swept;
    BHT_EQ(lock_make(folder, 0700), -EEXIST);
    close(sweeper);
}

static int no_locks(void) {
    before_shared = NULL;
    return ENOLCK;
}

TEST(where_there_are_no_locks_nothing_is_swept) {
    before_shared = no_locks;
    int lock_fd = lock_make(folder, 0700);
    BHT_GE(lock_fd, 0);
    age(folder);
    sweep();
    BHT_TRUE(is_there(folder));
    close(lock_fd);
}

/* -- cgroups -------------------------------------------------------------------------------- */

static const char *group_of(pid_t pid, const char *rest) {
    char *name;
    BHT_GT(asprintf(&name, "bulkhead.%d.%s", (int)pid, rest), 0);
    return bht_own(name);
}

/* Names and rules, on plain folders. */
TEST(groups_of_live_pids_and_others_stay) {
    const pid_t dead = dead_pid();
    const char *goes[] = {group_of(dead, "123"), group_of(dead, "18446744073709551615.2")};
    const char *const stays[] = {group_of(getpid(), "1"),  group_of(dead, "x"),
                                 "bulkhead.test.1",        "bulkhead.0.1",
                                 "bulkhead.99999999999.1", FOLDER};
    const char *odd = group_of(dead, "5"), *young = group_of(dead, "6");
    for (size_t i = 0; i < BHT_COUNT(goes); i++) {
        leave_old(goes[i]);
    }
    BHT_EQ(mkdir(in(in(parent, goes[0]), "w17"), 0755), 0);
    age(in(parent, goes[0]));
    for (size_t i = 0; i < BHT_COUNT(stays); i++) {
        leave_old(stays[i]);
    }
    leave(in(parent, odd));
    leave(in(parent, young));
    BHT_EQ(mkdir(in(in(parent, odd), "other"), 0755), 0);
    age(in(parent, odd));
    bhi_directory_lock_sweep_cgroups(parent);
    for (size_t i = 0; i < BHT_COUNT(goes); i++) {
        BHT_TRUE(!is_there(in(parent, goes[i])));
    }
    for (size_t i = 0; i < BHT_COUNT(stays); i++) {
        expect_stays(stays[i]);
    }
    BHT_TRUE(is_there(in(in(parent, odd), "other")));
    BHT_TRUE(is_there(in(parent, young)));
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
    const pid_t pid = start_child();
    BHT_EQ(bhi_cgroup_enter(&left, 1, pid), 0);
    age(path);
    bhi_directory_lock_sweep_cgroups(above);
    BHT_TRUE(is_there(child));
    end_child(pid);
    /* The kernel says EBUSY for a moment after. */
    WAIT_UNTIL((bhi_directory_lock_sweep_cgroups(above), !is_there(path)), 30000);
    BHT_TRUE(is_there(here.dir));
    bhi_cgroup_close(&here);
}

/* A host's umask may mask its own rights. Root has them anyway, so the mode is what counts. */
TEST(a_umask_that_masks_the_owner) {
    struct stat made;
    umask(0777);
    const int lock_fd = lock_make(folder, 0700);
    umask(022);
    BHT_GE(lock_fd, 0);
    BHT_EQ(stat(folder, &made), 0);
    BHT_EQ(made.st_mode & 0777, 0700);
    close(lock_fd);
}
