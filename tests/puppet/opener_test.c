/* Who opens a file for which thread: an opener has the rights of the thread that asks, or another one is
 * started. The openers are forks of this process, which say for whom they were asked. */
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/file/opener.h"
#include "supervisor/worker/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum conduct { ANSWERS, DIES, TAKES_TWICE, SAYS_NOTHING_KNOWN };

static struct {
    enum conduct conduct; /* of the next one that is started */
    unsigned started;
    int no_tree; /* the errno with which open_tree fails; 0: it does not */
} fake;

/* The answer to |what|, at |socket|: that there is no such file, and who wanted it. */
static void answer(enum conduct conduct, const struct bhi_msg_open *what, int socket) {
    const struct bhi_message taken = {.type = BHI_MSG_TAKEN};
    struct bhi_message failed = {.type = BHI_MSG_OPEN_FAILED};
    failed.open_failed.error = ENOENT;
    snprintf(failed.open_failed.what, sizeof failed.open_failed.what, "%u:%u", what->user,
             what->group);
    (void)bhi_fdpass_send_message(socket, &taken, NULL, 0);
    if (conduct == TAKES_TWICE) {
        (void)bhi_fdpass_send_message(socket, &taken, NULL, 0);
    }
    if (conduct == SAYS_NOTHING_KNOWN) {
        (void)bhi_fdpass_send(socket, "garbage", 7, NULL, 0);
    }
    (void)bhi_fdpass_send_message(socket, &failed, NULL, 0);
}

static _Noreturn void be_opener(enum conduct conduct, int socket) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    for (;;) {
        struct pollfd ready = {.fd = socket, .events = POLLIN};
        (void)poll(&ready, 1, -1);
        if (bhi_fdpass_recv_message(socket, BHI_S2O, &message, fds, MSG_DONTWAIT, NULL, 0) != 1 ||
            (message.type == BHI_MSG_OPEN && conduct == DIES)) {
            _exit(0);
        }
        if (message.type == BHI_MSG_OPEN) {
            answer(conduct, &message.open, fds[0]);
            close(fds[1]);
        }
        close(fds[0]);
    }
}

BHT_WRAP(int, bhi_spawn, const char *path, const char *mode, int socket, pid_t *out_pid) {
    BHT_STR_EQ(path, puppet.context->settings.warden_path);
    BHT_STR_EQ(mode, "opener");
    fake.started++;
    const pid_t pid = fork();
    if (pid == 0) { /* it has its end alone, as an executed one would */
        const int own = fcntl(socket, F_DUPFD, 3);
        (void)dup2(own, 3);
        (void)close_range(4, ~0u, 0);
        be_opener(fake.conduct, 3);
    }
    *out_pid = pid;
    return pidfd_open(pid, 0);
}

BHT_WRAP(int, open_tree, int folder, const char *path, unsigned flags) {
    errno = fake.no_tree;
    return fake.no_tree ? -1 : __real_open_tree(folder, path, flags);
}

static void begin(void) {
    fake.started = 0;
    fake.no_tree = 0;
    fake.conduct = ANSWERS;
}

static void end(void) {
    bhi_opener_stop(puppet.context);
    BHT_EQ(bht_count_children(getpid()), 0); /* they were reaped */
}

BHT_AT_START(puppet_around(begin, end))

static bh_status ask(struct bhi_opening *out, bh_detail *detail) {
    bh_file_source source = {.struct_size = sizeof source, .fd = -1, .path = "file"};
    return bhi_opener_open(puppet.context, &source, bhi_deadline_ns(FX_SECONDS), "call", "file",
                           out, detail);
}

/* It is asked for a file, for these ids; and is the |started|th opener. */
static void expect(unsigned started, unsigned user, unsigned group) {
    struct bhi_opening out;
    bh_detail detail;
    char who[64];
    BHT_EQ(ask(&out, &detail), BH_OK);
    BHT_EQ(out.error, ENOENT);
    snprintf(who, sizeof who, "%u:%u", user, group);
    BHT_STR_EQ(out.what, who);
    BHT_EQ(fake.started, started);
}

#define NOBODY 65534

static void be_user(bool back) {
    BHT_EQ(seteuid(back ? 0 : NOBODY), 0);
}

static void be_group(bool back) {
    BHT_EQ(setegid(back ? 0 : NOBODY), 0);
}

static void lose_groups(bool back) {
    static const gid_t groups[] = {6, 1};
    BHT_EQ(setgroups(1, &groups[back]), 0);
}

static void lose_capability(bool back) {
    static const cap_value_t capability[] = {CAP_DAC_READ_SEARCH};
    cap_t now = cap_get_proc();
    BHT_TRUE(now &&
             cap_set_flag(now, CAP_EFFECTIVE, 1, capability, back ? CAP_SET : CAP_CLEAR) == 0 &&
             cap_set_proc(now) == 0);
    cap_free(now);
}

static int root = -1;

static void leave_root(bool back) {
    if (back) {
        BHT_TRUE(fchdir(root) == 0 && chroot(".") == 0);
        close(root);
    } else {
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        BHT_TRUE(root >= 0 && chroot("/tmp") == 0);
    }
}

/* Each alone: it could open what the thread may not, or lack what it may. */
TEST(who_has_other_rights_has_another_opener) {
    static const struct {
        void (*change)(bool back);
        unsigned user, group;
    } cases[] = {{be_user, NOBODY, 0},
                 {be_group, 0, NOBODY},
                 {lose_groups, 0, 0},
                 {lose_capability, 0, 0},
                 {leave_root, 0, 0}};
    expect(1, geteuid(), getegid());
    expect(1, geteuid(), getegid());
    if (geteuid() != 0) {
        return; /* it may change none of them */
    }
    lose_groups(true);
    unsigned started = 2;
    expect(started, 0, 0);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        cases[i].change(false);
        expect(++started, cases[i].user, cases[i].group);
        expect(started, cases[i].user, cases[i].group);
        cases[i].change(true);
        expect(++started, 0, 0);
    }
}

/* A thread that has these alone from somebody says so in each request. */
TEST(ids_of_files_are_the_threads) {
    expect(1, geteuid(), getegid());
    if (geteuid() == 0) {
        (void)setfsgid(1002);
        expect(1, 0, 1002);
        (void)setfsuid(1001);
        expect(1 + 1, 1001, 1002); /* and has no capabilities over files */
        (void)setfsuid(0);
        (void)setfsgid(0);
        expect(3, 0, 0);
    }
}

/* Some filters answer that they forbid open_tree, others that there is none: the current folder is opened
 * in another way. Without a descriptor there is none. */
TEST(a_filter_may_forbid_open_tree) {
    static const int errors[] = {EPERM, ENOSYS, EMFILE};
    for (size_t i = 0; i < BHT_COUNT(errors); i++) {
        struct bhi_opening out;
        bh_detail detail;
        fake.no_tree = errors[i];
        BHT_EQ(ask(&out, &detail), BH_OK);
        BHT_EQ(out.error, errors[i] == EMFILE ? EMFILE : ENOENT);
        BHT_EQ(fake.started, 1);
    }
}

static void expect_unavailable(unsigned started, bh_reason reason) {
    struct bhi_opening out;
    bh_detail detail;
    BHT_EQ(ask(&out, &detail), BH_UNAVAILABLE);
    BHT_EQ(detail.reason, reason);
    BHT_EQ(out.socket, -1);
    BHT_EQ(fake.started, started);
    BHT_EQ(bht_count_children(getpid()), 0);
}

/* Another one is tried, once. The next call has one that does better. */
TEST(an_opener_that_fails_is_replaced) {
    static const enum conduct conducts[] = {DIES, TAKES_TWICE, SAYS_NOTHING_KNOWN};
    unsigned started = 0;
    for (size_t i = 0; i < BHT_COUNT(conducts); i++) {
        fake.conduct = conducts[i];
        expect_unavailable(started += 2, BH_REASON_OPENER);
        fake.conduct = ANSWERS;
        expect(++started, geteuid(), getegid());
        bhi_opener_stop(puppet.context);
        puppet.context->opener_given_up = false;
    }
}

/* A context that ends starts no other. */
TEST(none_is_started_after_the_end) {
    struct bhi_opening out;
    bh_detail detail;
    expect(1, geteuid(), getegid());
    bhi_opener_stop(puppet.context);
    BHT_EQ(bht_count_children(getpid()), 0);
    BHT_EQ(ask(&out, &detail), BH_CLOSED);
    BHT_EQ(fake.started, 1);
    bhi_opener_let_go(puppet.context, open("/dev/null", O_RDONLY | O_CLOEXEC)); /* is closed */
}
