/* Whose zygote and workers are outside: the user's own, or an id that owns nothing where the host
 * is root. What only root can show is shown where root runs the tests, as CI does. */
#include "client.h"
#include "harness.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_ID 1900000000u
#define SOMEBODY 12345

static void read_status(pid_t pid, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    BHT_GT(n, 0);
    out[n] = '\0';
}

static void expect_ids(pid_t pid, unsigned user, unsigned group) {
    char status[8192];
    char line[64];
    read_status(pid, status, sizeof status);
    snprintf(line, sizeof line, "\nUid:\t%u\t%u\t%u\t%u\n", user, user, user, user);
    BHT_STR_HAS(status, line);
    snprintf(line, sizeof line, "\nGid:\t%u\t%u\t%u\t%u\n", group, group, group, group);
    BHT_STR_HAS(status, line);
    if (geteuid() == 0) {
        BHT_STR_HAS(status, "\nGroups:\t \n");
    }
}

/* Its files in /proc belong to root, and not to its user. */
static void expect_untraceable(pid_t pid) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    BHT_EQ(stat(path, &st), 0);
    BHT_EQ(st.st_uid, 0);
}

static void expect_serves(unsigned user, unsigned group) {
    client_open();
    expect_ids(client.zygote_pid, user, group);
    expect_untraceable(client.zygote_pid);
    guest_open(&guest, 1);
    expect_ids(pid_of_pidfd(guest.pidfd), user, group);
    expect_untraceable(pid_of_pidfd(guest.pidfd));
    client_close();
}

/* Root's supplementary groups do not go in either. */
TEST(roots_worker_owns_nothing) {
    if (geteuid() != 0) {
        expect_serves(geteuid(), getegid());
        return;
    }
    const gid_t groups[] = {6, 1}; /* disk, daemon */
    BHT_EQ(setgroups(2, groups), 0);
    client_open();
    const unsigned id = FIRST_ID + (unsigned)client.warden;
    expect_ids(client.zygote_pid, id, id);
    guest_open(&guest, 1);
    expect_ids(pid_of_pidfd(guest.pidfd), id, id);
}

TEST(root_may_choose) {
    client.worker_id = "54321";
    const bool root = geteuid() == 0;
    expect_serves(root ? 54321 : geteuid(), root ? 54321 : getegid());
}

TEST(a_bad_choice_is_named) {
    static const char *const bad[] = {"0", "-1", "x", "12x", "4294967295", "99999999999999999999"};
    struct bhi_sandbox_ids ids;
    struct bhi_error failure;
    if (geteuid() != 0) {
        return; /* nothing is chosen */
    }
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        BHT_EQ(setenv("BULKHEAD_WORKER_ID", bad[i], 1), 0);
        BHT_EQ(bhi_sandbox_ids_choose(&ids, &failure), -EINVAL);
        BHT_STR_HAS(bhi_error_line(&failure), "BULKHEAD_WORKER_ID");
    }
    unsetenv("BULKHEAD_WORKER_ID");
}

/* -- an ordinary user ----------------------------------------------------------------------- */

/* The build may lie where only root can look. */
static void copy(const char *from, const char *to) {
    unlink(to);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    struct stat st;
    BHT_TRUE(in >= 0 && out >= 0 && fstat(in, &st) == 0 && fchmod(out, 0755) == 0);
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        BHT_GT(n, 0);
        left -= n;
    }
    close(in);
    close(out);
}

static void be_ordinary(const char *warden, const char *program) {
    BHT_EQ(setgroups(0, NULL), 0);
    BHT_EQ(setresgid(SOMEBODY, SOMEBODY, SOMEBODY), 0);
    BHT_EQ(setresuid(SOMEBODY, SOMEBODY, SOMEBODY), 0);
    client.starter = warden;
    client.program = program;
    client.worker_id = "54321";
    expect_serves(SOMEBODY, SOMEBODY);
}

/* As before: their own id is all that they may map, and no wish changes that. */
TEST(users_workers_are_their_own) {
    if (geteuid() != 0) {
        client.worker_id = "54321";
        expect_serves(geteuid(), getegid());
        return;
    }
    char warden[64], program[64];
    snprintf(warden, sizeof warden, "/tmp/bulkhead-test-warden-%d", (int)getpid());
    snprintf(program, sizeof program, "/tmp/bulkhead-test-worker-%d", (int)getpid());
    copy(bht_program(BHT_WARDEN), warden);
    copy(bht_program(BHT_WORKER), program);
    pid_t pid = fork();
    if (pid == 0) {
        be_ordinary(warden, program);
        _exit(0);
    }
    int status = 0;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_EQ(status, 0);
    BHT_EQ(unlink(warden), 0);
    BHT_EQ(unlink(program), 0);
}

/* A set-uid program of root's. Before Linux 6.16, an exec takes the zygote's capabilities if its real id
 * is another one than its effective one. */
TEST(a_set_uid_hosts_workers_are_as_roots) {
    if (geteuid() == 0) {
        client.worker_id = "54321";
        BHT_EQ(setresgid(SOMEBODY, 0, 0), 0);
        BHT_EQ(setgroups(0, NULL), 0);
        BHT_EQ(setresuid(SOMEBODY, 0, 0), 0);
        expect_serves(54321, 54321);
    }
}

/* -- root of a container -------------------------------------------------------------------- */

static void write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* What root of a user namespace chooses that has |map|. */
static struct bhi_sandbox_ids choice_in(const char *map, const char *wish) {
    struct answer {
        struct bhi_sandbox_ids ids;
        int result;
    } answer = {0};
    int go[2];
    int back[2];
    char path[64];
    char byte = 0;
    BHT_TRUE(pipe2(go, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct bhi_error failure;
        (void)(unshare(CLONE_NEWUSER) == 0 && write(back[1], "u", 1) == 1 &&
               read(go[0], &byte, 1) == 1 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
        if (wish) {
            setenv("BULKHEAD_WORKER_ID", wish, 1);
        }
        answer.result = bhi_sandbox_ids_choose(&answer.ids, &failure);
        (void)!write(back[1], &answer, sizeof answer);
        _exit(0);
    }
    BHT_EQ(read(back[0], &byte, 1), 1);
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    write_text(path, map);
    snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
    write_text(path, map);
    BHT_EQ(write(go[1], "g", 1), 1);
    BHT_EQ(read(back[0], &answer, sizeof answer), (ssize_t)sizeof answer);
    BHT_EQ(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(back[i]);
    }
    BHT_EQ(answer.result, wish && atoi(wish) > 65535 ? -EINVAL : 0);
    return answer.ids;
}

TEST(few_ids_are_mapped) {
    if (geteuid() != 0) {
        return; /* only root can make such a namespace without help */
    }
    /* rootless containers: 0 is the user, the rest a range of theirs */
    struct bhi_sandbox_ids ids = choice_in("0 1000 1\n1 100000 65535\n", NULL);
    BHT_TRUE(!ids.own);
    BHT_EQ(ids.user, 65535);
    BHT_EQ(ids.group, 65535);
    ids = choice_in("0 1000 1\n1 100000 65534\n", NULL);
    BHT_EQ(ids.user, 65533); /* not nobody */
    ids = choice_in("0 1000 1\n1 100000 65535\n", "777");
    BHT_EQ(ids.user, 777);
    (void)choice_in("0 1000 1\n1 100000 65535\n", "70000");
    ids = choice_in("0 1000 1\n", NULL);
    BHT_TRUE(ids.own);
    BHT_EQ(ids.user, 0); /* which is 1000 outside, and no root */
}
