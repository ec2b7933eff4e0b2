/* Memory cgroups: the real ones of this machine where there are any, and made-up folders for the
 * layouts that this machine does not have. */
#include "harness.h"
#include "supervisor/worker/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024u * 1024u)

/* -- made-up layouts ------------------------------------------------------------------------ */

struct layout {
    char root[64];
    char proc_cgroup[128], mountinfo[128];
};

static void put(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            BHT_FAIL("mkdir %s: %s", path, strerror(errno));
        }
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        BHT_FAIL("cannot write %s", path);
    }
}

/* |mount| is what stands before " - " from the root field on, with %s for the layout's folder. */
static struct layout make_layout(const char *proc_cgroup, const char *root, const char *type,
                                 const char *super) {
    struct layout layout;
    char line[512];
    snprintf(layout.root, sizeof layout.root, "/tmp/cgroup test.XXXXXX");
    if (!mkdtemp(layout.root)) {
        BHT_FAIL("mkdtemp: %s", strerror(errno));
    }
    snprintf(layout.proc_cgroup, sizeof layout.proc_cgroup, "%s/proc_cgroup", layout.root);
    snprintf(layout.mountinfo, sizeof layout.mountinfo, "%s/mountinfo", layout.root);
    put(proc_cgroup, "%s", layout.proc_cgroup);
    /* The space in the folder's name stands there as \040. */
    snprintf(line, sizeof line,
             "20 1 0:19 / / rw - ext4 /dev/root rw\n"
             "31 20 0:27 %s /tmp/cgroup\\040%s/fs rw,nosuid shared:9 - %s cgroup %s\n",
             root, layout.root + strlen("/tmp/cgroup "), type, super);
    put(line, "%s", layout.mountinfo);
    return layout;
}

static void remove_layout(const struct layout *layout) {
    const char *argv[] = {"rm", "-rf", layout->root, NULL};
    BHT_EQ(bht_run(argv, NULL, 0), 0);
}

static int open_layout(const struct layout *layout, struct bhi_cgroup *cgroup, char *why,
                       size_t why_size) {
    int result =
        bhi_cgroup_open_from(cgroup, 7, layout->proc_cgroup, layout->mountinfo, why, why_size);
    if (result != 0) {
        BHT_EQ(cgroup->version, 0);
        BHT_STR_EQ(cgroup->dir, "");
        BHT_GT(strlen(why), 20);
        BHT_TRUE(!strchr(why, '\n'));
    }
    return result;
}

static void check_dir(const struct bhi_cgroup *cgroup, const struct layout *layout,
                      const char *below, const char *suffix) {
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s/fs%s/bulkhead.%d.7%s", layout->root, below, (int)getpid(),
             suffix);
    BHT_STR_EQ(cgroup->dir, wanted);
}

TEST(finds_v1_below_its_own_group) {
    struct bhi_cgroup cgroup, second;
    char why[256];
    struct layout layout = make_layout("9:name=systemd:/x\n4:cpu,memory:/pod/job\n0::/\n", "/pod",
                                       "cgroup", "rw,cpu,memory");
    put("", "%s/fs/job/cgroup.procs", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), 0);
    BHT_EQ(cgroup.version, 1);
    check_dir(&cgroup, &layout, "/job", "");
    /* The name is taken: never share. */
    BHT_EQ(open_layout(&layout, &second, why, sizeof why), 0);
    check_dir(&second, &layout, "/job", ".1");
    bhi_cgroup_close(&second);
    bhi_cgroup_close(&cgroup);
    BHT_EQ(cgroup.version, 0);
    remove_layout(&layout);
}

TEST(finds_v2_where_children_are_allowed) {
    struct bhi_cgroup cgroup;
    char why[256];
    struct layout layout = make_layout("0::/\n", "/", "cgroup2", "rw");
    put("cpu memory pids\n", "%s/fs/cgroup.controllers", layout.root);
    put("memory\n", "%s/fs/cgroup.subtree_control", layout.root);
    put("", "%s/fs/cgroup.procs", layout.root);
    /* A folder that is no cgroup has no subtree_control: the open must undo what it did. */
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    char left[256];
    snprintf(left, sizeof left, "%s/fs/bulkhead.%d.7", layout.root, (int)getpid());
    BHT_EQ(access(left, F_OK), -1);
    remove_layout(&layout);
}

static uint64_t headroom(const struct layout *layout) {
    return bhi_cgroup_headroom_from(layout->proc_cgroup, layout->mountinfo);
}

/* The least that any of the groups leaves, with what the kernel can take back from files. */
TEST(headroom_v2) {
    struct layout layout = make_layout("0::/pod/job\n", "/", "cgroup2", "rw");
    put("max\n", "%s/fs/pod/job/memory.max", layout.root);
    BHT_TRUE(headroom(&layout) == UINT64_MAX);
    put("1000000\n", "%s/fs/pod/memory.max", layout.root);
    put("600000\n", "%s/fs/pod/memory.current", layout.root);
    BHT_EQ(headroom(&layout), 400000);
    put("anon 1\ninactive_file 100000\nactive_file 20000\n", "%s/fs/pod/memory.stat", layout.root);
    BHT_EQ(headroom(&layout), 520000);
    put("300000\n", "%s/fs/pod/job/memory.max", layout.root);
    put("0\n", "%s/fs/pod/job/memory.current", layout.root);
    BHT_EQ(headroom(&layout), 300000);
    put("300001\n", "%s/fs/pod/job/memory.current", layout.root);
    BHT_EQ(headroom(&layout), 0);
    remove_layout(&layout);
}

TEST(headroom_v1) {
    struct layout layout =
        make_layout("4:cpu,memory:/pod/job\n", "/pod", "cgroup", "rw,cpu,memory");
    put("9223372036854771712\n", "%s/fs/memory.limit_in_bytes", layout.root);
    put("9223372036854771712\n", "%s/fs/job/memory.limit_in_bytes", layout.root);
    BHT_TRUE(headroom(&layout) == UINT64_MAX);
    put("5000\n", "%s/fs/job/memory.limit_in_bytes", layout.root);
    put("4000\n", "%s/fs/job/memory.usage_in_bytes", layout.root);
    put("cache 9\ninactive_file 900\ntotal_inactive_file 300\ntotal_active_file 20\n",
        "%s/fs/job/memory.stat", layout.root);
    BHT_EQ(headroom(&layout), 1320);
    remove_layout(&layout);
}

TEST(headroom_without_groups) {
    BHT_TRUE(bhi_cgroup_headroom_from("/nonexistent", "/nonexistent") == UINT64_MAX);
}

TEST(says_what_v2_lacks) {
    struct bhi_cgroup cgroup;
    char why[512];
    struct layout layout = make_layout("0::/app/leaf\n", "/", "cgroup2", "rw");
    put("cpu\n", "%s/fs/app/leaf/cgroup.controllers", layout.root);
    put("cpu\n", "%s/fs/app/leaf/cgroup.subtree_control", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -EOPNOTSUPP);
    BHT_STR_HAS(why, "+memory");

    /* The group has the controller, but holds processes, and so has the one above no say. */
    put("cpu memory\n", "%s/fs/app/leaf/cgroup.controllers", layout.root);
    char control[256];
    snprintf(control, sizeof control, "%s/fs/app/leaf/cgroup.subtree_control", layout.root);
    unlink(control); /* the write of +memory fails */
    put("cpu\n", "%s/fs/app/cgroup.subtree_control", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -EOPNOTSUPP);
    BHT_STR_HAS(why, "/fs/app does not give");

    /* The one above hands it out, but our own group has a limit that workers would escape. */
    put("cpu memory\n", "%s/fs/app/cgroup.subtree_control", layout.root);
    put("1073741824\n", "%s/fs/app/leaf/memory.max", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -EBUSY);
    BHT_STR_HAS(why, "limit");
    remove_layout(&layout);

    /* The top of what can be seen. */
    layout = make_layout("0::/\n", "/", "cgroup2", "rw");
    put("memory\n", "%s/fs/cgroup.controllers", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    BHT_STR_HAS(why, "holds processes");
    remove_layout(&layout);
}

TEST(says_when_there_is_none) {
    struct bhi_cgroup cgroup;
    char why[256];
    struct layout layout = make_layout("3:cpu:/\n", "/", "cgroup", "rw,cpu");
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -EOPNOTSUPP);
    BHT_STR_HAS(why, "CONFIG_MEMCG");
    put("3:memory:/a/b\n", "%s", layout.proc_cgroup);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    BHT_STR_HAS(why, "not mounted");
    /* Another part of the tree is mounted: /a is not above /ab. */
    remove_layout(&layout);
    layout = make_layout("3:memory:/ab\n", "/a", "cgroup", "rw,memory");
    put("", "%s/fs/b/cgroup.procs", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    /* A name that no message to the warden can carry. */
    put("3:memory:/a/\xff\n", "%s", layout.proc_cgroup);
    put("", "%s/fs/\xff/cgroup.procs", layout.root);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -EILSEQ);
    BHT_STR_HAS(why, "is not UTF-8");
    unlink(layout.mountinfo);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    unlink(layout.proc_cgroup);
    BHT_EQ(open_layout(&layout, &cgroup, why, sizeof why), -ENOENT);
    remove_layout(&layout);
}

TEST(does_nothing_without_one) {
    struct bhi_cgroup none;
    memset(&none, 0, sizeof none);
    BHT_EQ(bhi_cgroup_add(&none, 1, MIB), -EOPNOTSUPP);
    BHT_EQ(bhi_cgroup_enter(&none, 1, getpid()), -EOPNOTSUPP);
    BHT_EQ(bhi_cgroup_remove(&none, 1), -EOPNOTSUPP);
    BHT_EQ(bhi_cgroup_oom(&none, 1), BHI_OOM_NONE);
    bhi_cgroup_close(&none);
}

/* -- why a process was killed ----------------------------------------------------------------- */

struct numbers {
    const char *name, *value;
};

static enum bhi_oom oom_by(int version, const char *kills, const struct numbers *numbers) {
    struct layout layout = make_layout("", "/", "cgroup2", "rw");
    struct bhi_cgroup cgroup = {.version = version, .lock_fd = -1};
    snprintf(cgroup.dir, sizeof cgroup.dir, "%s/fs", layout.root);
    put(kills, "%s/w5/%s", cgroup.dir, version == 1 ? "memory.oom_control" : "memory.events");
    for (; numbers && numbers->name; numbers++) {
        put(numbers->value, "%s/w5/%s", cgroup.dir, numbers->name);
    }
    const enum bhi_oom oom = bhi_cgroup_oom(&cgroup, 5);
    remove_layout(&layout);
    return oom;
}

/* The kernel counts a kill in the victim's group, whoever's limit it was. */
TEST(tells_whose_limit_it_was) {
    static const char killed[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
    static const struct numbers reached[] = {{"memory.limit_in_bytes", "67108864\n"},
                                             {"memory.max_usage_in_bytes", "67104768\n"},
                                             {NULL, NULL}};
    static const struct numbers swapped[] = {{"memory.limit_in_bytes", "67108864\n"},
                                             {"memory.max_usage_in_bytes", "4194304\n"},
                                             {"memory.memsw.max_usage_in_bytes", "67108864\n"},
                                             {NULL, NULL}};
    static const struct numbers below[] = {{"memory.limit_in_bytes", "67108864\n"},
                                           {"memory.max_usage_in_bytes", "33554432\n"},
                                           {"memory.memsw.max_usage_in_bytes", "33554432\n"},
                                           {NULL, NULL}};
    BHT_EQ(oom_by(2, "low 0\nmax 9\noom 0\noom_kill 0\n", NULL), BHI_OOM_NONE);
    BHT_EQ(oom_by(2, "low 0\nmax 9\noom 2\noom_kill 1\n", NULL), BHI_OOM_LIMIT);
    BHT_EQ(oom_by(2, "low 0\nmax 0\noom 0\noom_kill 1\n", NULL), BHI_OOM_OTHERS);
    BHT_EQ(oom_by(1, "oom_kill 0\n", reached), BHI_OOM_NONE);
    BHT_EQ(oom_by(1, killed, reached), BHI_OOM_LIMIT);
    BHT_EQ(oom_by(1, killed, swapped), BHI_OOM_LIMIT);
    BHT_EQ(oom_by(1, killed, below), BHI_OOM_OTHERS);
    BHT_EQ(oom_by(1, killed, NULL), BHI_OOM_LIMIT); /* not told */
}

/* -- this machine --------------------------------------------------------------------------- */

/* Others must not take it for one that a dead process left. */
static bool is_locked(const char *dir) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BHT_GE(fd, 0);
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* True where this machine lets us; where it does not, that is only right without privileges. */
static bool open_here(struct bhi_cgroup *cgroup) {
    char why[512] = "";
    int result = bhi_cgroup_open(cgroup, 1, why, sizeof why);
    if (result == 0) {
        BHT_STR_EQ(why, "");
        BHT_TRUE(cgroup->version == 1 || cgroup->version == 2);
        BHT_EQ(access(cgroup->dir, F_OK), 0);
        BHT_TRUE(is_locked(cgroup->dir));
        return true;
    }
    BHT_EQ(cgroup->version, 0);
    BHT_GT(strlen(why), 20);
    printf("     no memory cgroup here: %s\n", why);
    return false;
}

/* Touches |bytes| once |go| can be read; exits 0 where it survived. */
__attribute__((noreturn)) static void touch_memory(int go, size_t bytes) {
    char byte;
    if (read(go, &byte, 1) != 1) {
        _exit(2);
    }
    volatile char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        _exit(3);
    }
    for (size_t i = 0; i < bytes; i += 4096) {
        memory[i] = 1;
    }
    _exit(0);
}

static int run_limited(const struct bhi_cgroup *cgroup, uint64_t id, size_t bytes) {
    int go[2], status;
    BHT_EQ(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        touch_memory(go[0], bytes);
    }
    BHT_EQ(bhi_cgroup_enter(cgroup, id, pid), 0);
    BHT_EQ(bhi_cgroup_remove(cgroup, id), -EBUSY);
    BHT_EQ(write(go[1], "g", 1), 1);
    BHT_EQ(waitpid(pid, &status, 0), pid);
    close(go[0]);
    close(go[1]);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(kills_at_the_limit_and_says_so) {
    struct bhi_cgroup cgroup;
    if (!open_here(&cgroup)) {
        return;
    }
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 48u * MIB), 0);
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 48u * MIB), -EEXIST);
    BHT_EQ(bhi_cgroup_add(&cgroup, 2, 0), 0);
    BHT_EQ(run_limited(&cgroup, 1, 8u * MIB), 0);
    BHT_EQ(bhi_cgroup_oom(&cgroup, 1), BHI_OOM_NONE);
    BHT_EQ(run_limited(&cgroup, 1, 128u * MIB), -SIGKILL);
    BHT_EQ(bhi_cgroup_oom(&cgroup, 1), BHI_OOM_LIMIT);
    /* No limit, and a neighbour's limit is not ours. */
    BHT_EQ(run_limited(&cgroup, 2, 128u * MIB), 0);
    BHT_EQ(bhi_cgroup_oom(&cgroup, 2), BHI_OOM_NONE);
    BHT_EQ(bhi_cgroup_enter(&cgroup, 1, 0), -EINVAL);
    BHT_EQ(bhi_cgroup_enter(&cgroup, 3, getpid()), -ENOENT);
    WAIT_UNTIL(bhi_cgroup_remove(&cgroup, 1) == 0, 2000);
    BHT_EQ(bhi_cgroup_remove(&cgroup, 1), 0);
    char dir[sizeof cgroup.dir];
    memcpy(dir, cgroup.dir, sizeof dir);
    bhi_cgroup_close(&cgroup); /* with child 2 still there */
    BHT_EQ(access(dir, F_OK), -1);
}

/* The group above has less than its two children may have, as a container's may. */
TEST(a_group_above_is_no_limit_of_the_child) {
    struct bhi_cgroup cgroup;
    char path[sizeof cgroup.dir + 32];
    if (!open_here(&cgroup)) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", cgroup.dir,
             cgroup.version == 1 ? "memory.limit_in_bytes" : "memory.max");
    put("50331648", "%s", path);
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 256u * MIB), 0);
    BHT_EQ(run_limited(&cgroup, 1, 128u * MIB), -SIGKILL);
    BHT_EQ(bhi_cgroup_oom(&cgroup, 1), BHI_OOM_OTHERS);
    WAIT_UNTIL(bhi_cgroup_remove(&cgroup, 1) == 0, 2000);
    bhi_cgroup_close(&cgroup);
}

TEST(close_is_bounded) {
    struct bhi_cgroup cgroup;
    if (!open_here(&cgroup)) {
        return;
    }
    int go[2];
    BHT_EQ(pipe2(go, O_CLOEXEC), 0);
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 0), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        touch_memory(go[0], MIB);
    }
    BHT_EQ(bhi_cgroup_enter(&cgroup, 1, pid), 0);
    struct bhi_cgroup copy = cgroup;
    uint64_t start = bht_now_ns();
    bhi_cgroup_close(&copy);
    BHT_LT(bht_now_ns() - start, 3000000000ull * bht_slowness());
    kill(pid, SIGKILL);
    BHT_EQ(waitpid(pid, NULL, 0), pid);
    cgroup.lock_fd = -1; /* the copy's close has closed it */
    bhi_cgroup_close(&cgroup);
    close(go[0]);
    close(go[1]);
}

TEST(an_unprivileged_user_is_told_what_to_enable) {
    struct bhi_cgroup cgroup;
    char why[512] = "";
    if (geteuid() == 0) {
        BHT_EQ(setgroups(0, NULL), 0);
        BHT_EQ(setresgid(65534, 65534, 65534), 0);
        BHT_EQ(setresuid(65534, 65534, 65534), 0);
    }
    int result = bhi_cgroup_open(&cgroup, 1, why, sizeof why);
    if (result == 0) { /* a delegated group: also right */
        bhi_cgroup_close(&cgroup);
        return;
    }
    BHT_EQ(cgroup.version, 0);
    BHT_GT(strlen(why), 20);
    BHT_TRUE(!strchr(why, '\n'));
    if (result == -EACCES) {
        BHT_STR_HAS(why, "run as root");
    }
}
