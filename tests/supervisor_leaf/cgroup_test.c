/* Memory cgroups: the real ones of this machine where there are any, and made-up folders for the
 * layouts that this machine does not have. */
#include "harness.h"
#include "supervisor/worker/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024u * 1024u)

/* -- made-up layouts ------------------------------------------------------------------------ */

/* Made by make_layout. */
static char root[64], proc_cgroup[128], mountinfo[128];

/* A group's file system is mounted at fs, from the group |mounted| on; ahead of it one of version 1 for
 * processors at cpu. */
static void make_layout(const char *proc, const char *mounted, const char *type,
                        const char *super) {
    char line[512];
    const char *folder = bht_folder();
    snprintf(root, sizeof root, "%s/a test100", folder);
    snprintf(proc_cgroup, sizeof proc_cgroup, "%s/proc_cgroup", root);
    snprintf(mountinfo, sizeof mountinfo, "%s/mountinfo", root);
    bht_put(proc, "%s", proc_cgroup);
    /* The space in the folder's name stands there as \040. */
    snprintf(line, sizeof line,
             "20 1 0:19 / / rw - ext4 /dev/root rw\n"
             "30 20 0:26 %s %s/a\\040test100/cpu rw,nosuid shared:8 - cgroup cgroup rw,cpu\n"
             "31 20 0:27 %s %s/a\\040test100/fs rw,nosuid shared:9 - %s cgroup %s\n",
             mounted, folder, mounted, folder, type, super);
    bht_put(line, "%s", mountinfo);
}

static char why[512]; /* what open_layout says */

static int open_layout(struct bhi_cgroup *cgroup) {
    int result = bhi_cgroup_open_from(cgroup, 7, proc_cgroup, mountinfo, why, sizeof why);
    if (result != 0) {
        BHT_EQ(cgroup->version, 0);
        BHT_STR_EQ(cgroup->dir, "");
        BHT_GT(strlen(why), 20);
        BHT_TRUE(!strchr(why, '\n'));
    }
    return result;
}

static void check_dir(const struct bhi_cgroup *cgroup, const char *below, const char *suffix) {
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s/fs%s/bulkhead.%d.7%s", root, below, (int)getpid(), suffix);
    BHT_STR_EQ(cgroup->dir, wanted);
}

TEST(finds_v1_below_its_own_group) {
    struct bhi_cgroup cgroup, second;
    make_layout("9:name=systemd:/x\n4:cpu,memory:/pod/job\n0::/\n", "/pod", "cgroup",
                "rw,cpu,memory");
    bht_put("", "%s/fs/job/cgroup.procs", root);
    bht_put("", "%s/cpu/job/cgroup.procs", root);
    BHT_EQ(open_layout(&cgroup), 0);
    BHT_EQ(cgroup.version, 1);
    check_dir(&cgroup, "/job", "");
    /* The name is taken: never share. */
    BHT_EQ(open_layout(&second), 0);
    check_dir(&second, "/job", ".1");
    bhi_cgroup_close(&second);
    bhi_cgroup_close(&cgroup);
    BHT_EQ(cgroup.version, 0);
    /* Its own is all that is mounted, as in a container. */
    make_layout("4:memory:/a pod\n", "/a\\040pod", "cgroup", "rw,memory");
    bht_put("", "%s/fs/cgroup.procs", root);
    BHT_EQ(open_layout(&cgroup), 0);
    check_dir(&cgroup, "", "");
    bhi_cgroup_close(&cgroup);
}

TEST(finds_v2_where_children_are_allowed) {
    struct bhi_cgroup cgroup;
    make_layout("0::/\n", "/", "cgroup2", "rw");
    bht_put("cpu memory pids\n", "%s/fs/cgroup.controllers", root);
    bht_put("memory\n", "%s/fs/cgroup.subtree_control", root);
    bht_put("", "%s/fs/cgroup.procs", root);
    /* A folder that is no cgroup has no subtree_control: the open must undo what it did. */
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    char left[256];
    snprintf(left, sizeof left, "%s/fs/bulkhead.%d.7", root, (int)getpid());
    BHT_EQ(access(left, F_OK), -1);
}

static uint64_t headroom(void) {
    return bhi_cgroup_headroom_from(proc_cgroup, mountinfo);
}

/* The least that any of the groups leaves, with what the kernel can take back from files. */
TEST(headroom_v2) {
    make_layout("0::/pod/job\n", "/", "cgroup2", "rw");
    bht_put("max\n", "%s/fs/pod/job/memory.max", root);
    BHT_TRUE(headroom() == UINT64_MAX);
    bht_put("1000000\n", "%s/fs/pod/memory.max", root);
    bht_put("600000\n", "%s/fs/pod/memory.current", root);
    BHT_EQ(headroom(), 400000);
    bht_put("anon 1\ninactive_file 100000\nactive_file 20000\n", "%s/fs/pod/memory.stat", root);
    BHT_EQ(headroom(), 520000);
    bht_put("300000\n", "%s/fs/pod/job/memory.max", root);
    bht_put("0\n", "%s/fs/pod/job/memory.current", root);
    BHT_EQ(headroom(), 300000);
    bht_put("300001\n", "%s/fs/pod/job/memory.current", root);
    BHT_EQ(headroom(), 0);
}

TEST(headroom_v1) {
    make_layout("4:cpu,memory:/pod/job\n", "/pod", "cgroup", "rw,cpu,memory");
    bht_put("9223372036854771712\n", "%s/fs/memory.limit_in_bytes", root);
    bht_put("9223372036854771712\n", "%s/fs/job/memory.limit_in_bytes", root);
    BHT_TRUE(headroom() == UINT64_MAX);
    bht_put("5000\n", "%s/fs/job/memory.limit_in_bytes", root);
    bht_put("4000\n", "%s/fs/job/memory.usage_in_bytes", root);
    bht_put("cache 9\ninactive_file 900\ntotal_inactive_file 300\ntotal_active_file 20\n",
            "%s/fs/job/memory.stat", root);
    BHT_EQ(headroom(), 1320);
    bht_put("319\n", "%s/fs/job/memory.usage_in_bytes", root); /* the counts are of two moments */
    BHT_EQ(headroom(), 5000);
}

TEST(headroom_without_groups) {
    BHT_TRUE(bhi_cgroup_headroom_from("/nonexistent", "/nonexistent") == UINT64_MAX);
}

TEST(says_what_v2_lacks) {
    struct bhi_cgroup cgroup;
    make_layout("0::/app/leaf\n", "/", "cgroup2", "rw");
    bht_put("cpu\n", "%s/fs/app/leaf/cgroup.controllers", root);
    bht_put("cpu\n", "%s/fs/app/leaf/cgroup.subtree_control", root);
    BHT_EQ(open_layout(&cgroup), -EOPNOTSUPP);
    BHT_STR_HAS(why, "+memory");

    /* The group has the controller, but holds processes, and so has the one above no say. */
    bht_put("cpu memory\n", "%s/fs/app/leaf/cgroup.controllers", root);
    char control[256];
    snprintf(control, sizeof control, "%s/fs/app/leaf/cgroup.subtree_control", root);
    unlink(control); /* the write of +memory fails */
    bht_put("cpu\n", "%s/fs/app/cgroup.subtree_control", root);
    BHT_EQ(open_layout(&cgroup), -EOPNOTSUPP);
    BHT_STR_HAS(why, "/fs/app does not give");

    /* The one above hands it out, but our own group has a limit that workers would escape. */
    bht_put("cpu memory\n", "%s/fs/app/cgroup.subtree_control", root);
    bht_put("1073741824\n", "%s/fs/app/leaf/memory.max", root);
    BHT_EQ(open_layout(&cgroup), -EBUSY);
    BHT_STR_HAS(why, "limit");

    /* The top of what can be seen. */
    make_layout("0::/\n", "/", "cgroup2", "rw");
    bht_put("memory\n", "%s/fs/cgroup.controllers", root);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    BHT_STR_HAS(why, "holds processes");
}

TEST(says_when_there_is_none) {
    struct bhi_cgroup cgroup;
    make_layout("3:cpu:/\n", "/", "cgroup", "rw,cpu");
    BHT_EQ(open_layout(&cgroup), -EOPNOTSUPP);
    BHT_STR_HAS(why, "CONFIG_MEMCG");
    bht_put("3:memory:/a/b\n", "%s", proc_cgroup);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    BHT_STR_HAS(why, "not mounted");
    /* Another part of the tree is mounted: /a is above neither /ab nor /c/b. */
    make_layout("3:memory:/ab\n", "/a", "cgroup", "rw,memory");
    bht_put("", "%s/fs/b/cgroup.procs", root);
    bht_put("", "%s/fsb/cgroup.procs", root);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    bht_put("3:memory:/c/b\n", "%s", proc_cgroup);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    /* A name that no message to the warden can carry. */
    bht_put("3:memory:/a/\xff\n", "%s", proc_cgroup);
    bht_put("", "%s/fs/\xff/cgroup.procs", root);
    BHT_EQ(open_layout(&cgroup), -EILSEQ);
    BHT_STR_HAS(why, "is not UTF-8");
    unlink(mountinfo);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
    unlink(proc_cgroup);
    BHT_EQ(open_layout(&cgroup), -ENOENT);
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
    make_layout("", "/", "cgroup2", "rw");
    struct bhi_cgroup cgroup = {.version = version, .lock_fd = -1};
    snprintf(cgroup.dir, sizeof cgroup.dir, "%s/fs", root);
    bht_put(kills, "%s/w5/%s", cgroup.dir, version == 1 ? "memory.oom_control" : "memory.events");
    for (; numbers && numbers->name; numbers++) {
        bht_put(numbers->value, "%s/w5/%s", cgroup.dir, numbers->name);
    }
    const enum bhi_oom oom = bhi_cgroup_oom(&cgroup, 5);
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
    static const struct numbers without_swap[] = {{"memory.limit_in_bytes", "67108864\n"},
                                                  {"memory.max_usage_in_bytes", "33554432\n"},
                                                  {NULL, NULL}};
    static const struct numbers over[] = {{"memory.limit_in_bytes", "33554432\n"},
                                          {"memory.max_usage_in_bytes", "67108864\n"},
                                          {NULL, NULL}};
    static const struct numbers unlimited[] = {{"memory.max_usage_in_bytes", "33554432\n"},
                                               {NULL, NULL}};
    BHT_EQ(oom_by(1, killed, below), BHI_OOM_OTHERS);
    BHT_EQ(oom_by(1, killed, without_swap), BHI_OOM_OTHERS);
    BHT_EQ(oom_by(1, killed, over), BHI_OOM_LIMIT); /* it was lowered */
    BHT_EQ(oom_by(1, killed, unlimited), BHI_OOM_LIMIT);
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

/* The limit holds for memory and swap together, where the kernel counts swap. */
static void expect_no_swap(const struct bhi_cgroup *cgroup, uint64_t id, unsigned long long limit) {
    char path[sizeof cgroup->dir + 64], text[32];
    unsigned long long bytes = 0;
    snprintf(path, sizeof path, "%s/w%llu/%s", cgroup->dir, (unsigned long long)id,
             cgroup->version == 1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max");
    FILE *file = fopen(path, "re");
    if (file) {
        BHT_TRUE(fgets(text, sizeof text, file) && sscanf(text, "%llu", &bytes) == 1);
        BHT_EQ(bytes, cgroup->version == 1 ? limit : 0);
        fclose(file);
    }
}

TEST(kills_at_the_limit_and_says_so) {
    struct bhi_cgroup cgroup;
    if (!open_here(&cgroup)) {
        return;
    }
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 48u * MIB), 0);
    BHT_EQ(bhi_cgroup_add(&cgroup, 1, 48u * MIB), -EEXIST);
    BHT_EQ(bhi_cgroup_add(&cgroup, 2, 0), 0);
    expect_no_swap(&cgroup, 1, 48u * MIB);
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
    bht_put("50331648", "%s", path);
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
