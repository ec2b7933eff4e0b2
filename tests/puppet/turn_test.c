/* The reactor's thread, as a function that the test calls: what it does in one turn and in which order,
 * until when it sleeps, what it makes of an event, and how it ends all when the context closes. */
#include "../hostile/wrap.h"
#include "base/detail.h"
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/reactor.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/reactor/zygote_messages.h"
#include "supervisor/worker/conduct.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* When a part of the reactor wants another turn. */
enum due { LEAVES, SENTINELS, STARTS, CHANNELS, BURIALS, WORKERS, DUES };

static struct {
    void *(*thread)(void *);
    bool captures, closes;
    int no_poller, no_thread; /* -errno; errno */
    jmp_buf asleep;
    struct epoll_event event; /* that comes in this turn, if |has_event| */
    bool has_event;
    uint64_t now_ns, wakes_ns;
    char did[64]; /* a letter for each call */
    uint64_t due_ns[DUES];
    bool looks, hung_up, runnable, listens, left_over;
    uint64_t takes_ns; /* a turn, before it sleeps */
    int probers_woken, starts_failed, given_up, signals, warnings;
    int signalled;               /* the last one: a pidfd */
    struct bhi_worker *sentinel; /* that is about to set words */
    uint64_t sentinel_until_ns;
} scene;

static void did(char what) {
    const size_t used = strlen(scene.did);
    BHT_LT(used + 1, sizeof scene.did);
    scene.did[used] = what;
    scene.did[used + 1] = 0;
}

static uint64_t due(enum due part, char what, uint64_t real_ns) {
    did(what);
    return scene.due_ns[part] && scene.due_ns[part] < real_ns ? scene.due_ns[part] : real_ns;
}

WRAP(uint64_t, bhi_now_ns, void) {
    return scene.now_ns ? scene.now_ns : __real_bhi_now_ns();
}

WRAP(int, bhi_poller_open, struct bhi_poller *poller) {
    if (!scene.captures) {
        return __real_bhi_poller_open(poller);
    }
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return scene.no_poller;
}

/* The host's signals are not for the thread, which has its mask from here. */
WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
     void *(*function)(void *), void *argument) {
    sigset_t mask;
    if (!scene.captures) {
        return __real_pthread_create(thread, attributes, function, argument);
    }
    BHT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    BHT_TRUE(sigismember(&mask, SIGTERM) && argument == puppet.context);
    scene.thread = function;
    *thread = pthread_self();
    return scene.no_thread;
}

WRAP(int, pthread_join, pthread_t thread, void **result) {
    if (!scene.closes) {
        return __real_pthread_join(thread, result);
    }
    BHT_TRUE(!scene.thread(puppet.context));
    return 0;
}

/* The first time in a turn it reports the event. Then the turn is over; or time passes, when the context
 * closes: a sleep without an end would be one for ever. */
WRAP(int, epoll_pwait2, int epoll, struct epoll_event *events, int most,
     const struct timespec *timeout, const sigset_t *mask) {
    if (!scene.thread) {
        return __real_epoll_pwait2(epoll, events, most, timeout, mask);
    }
    if (scene.has_event) {
        scene.has_event = false;
        scene.did[0] = 0;
        events[0] = scene.event;
        return 1;
    }
    scene.wakes_ns = BH_FOREVER;
    if (timeout) {
        scene.wakes_ns =
            scene.now_ns + (uint64_t)timeout->tv_sec * SECOND + (uint64_t)timeout->tv_nsec;
    }
    if (!scene.closes) {
        longjmp(scene.asleep, 1);
    }
    BHT_TRUE(scene.wakes_ns > scene.now_ns && scene.wakes_ns != BH_FOREVER);
    BHT_EQ(scene.sentinel && scene.sentinel->core.life.kill != BHI_KILL_NONE,
           scene.sentinel && scene.now_ns >= scene.sentinel_until_ns);
    scene.now_ns = scene.wakes_ns;
    return 0;
}

WRAP(bool, bhi_leave_turn, bh_context *context) {
    did('l');
    return __real_bhi_leave_turn(context) || scene.due_ns[LEAVES];
}

WRAP(void, bhi_assignment_serve, bh_context *context) {
    did('v');
    __real_bhi_assignment_serve(context);
}

WRAP(uint64_t, bhi_sentinel_turn, bh_context *context) {
    return due(SENTINELS, 's', __real_bhi_sentinel_turn(context));
}

WRAP(uint64_t, bhi_assignment_turn, bh_context *context) {
    (void)context; /* nobody can be started here */
    return due(STARTS, 'a', BH_FOREVER);
}

WRAP(bool, bhi_control_send, struct bhi_worker *worker) {
    (void)worker;
    did('c');
    return scene.due_ns[CHANNELS];
}

WRAP(void, bhi_control_receive, struct bhi_worker *worker) {
    worker->messages_left = false;
    did('r');
}

WRAP(uint64_t, bhi_burial_turn, bh_context *context) {
    return due(BURIALS, 'b', __real_bhi_burial_turn(context));
}

WRAP(void, bhi_burial_zygotes, bh_context *context) {
    did('z');
    __real_bhi_burial_zygotes(context);
}

WRAP(void, bhi_context_log_said, bh_context *context) {
    did('g');
    __real_bhi_context_log_said(context);
}

WRAP(uint64_t, bhi_watch_look, struct bhi_worker *worker, bool at_conduct, uint64_t now_ns) {
    BHT_TRUE(worker && now_ns == scene.now_ns);
    scene.looks = at_conduct;
    scene.now_ns += scene.takes_ns;
    return due(WORKERS, 'w', BH_FOREVER);
}

WRAP(bool, bhi_zygote_sweep, struct bhi_zygote *zygote) {
    (void)zygote;
    did('p');
    return scene.left_over;
}

WRAP(bool, bhi_zygote_listen, struct bhi_zygote *zygote) {
    (void)zygote;
    did('i');
    return scene.listens;
}

WRAP(void, bhi_zygote_give_up, struct bhi_worker *worker) {
    scene.given_up++;
    __real_bhi_zygote_give_up(worker);
}

WRAP(void, bhi_assignment_zygote_failed, struct bhi_zygote *zygote) {
    BHT_EQ(zygote->state, BHI_ZYGOTE_LOST);
    scene.starts_failed++;
}

WRAP(int, bhi_futex_wake, const _Atomic uint32_t *word, bool shared, int count) {
    scene.probers_woken += word == &puppet.zygote->probe_word && count > 1000;
    return __real_bhi_futex_wake(word, shared, count);
}

WRAP(bool, bhi_proc_is_runnable, pid_t pid) {
    BHT_EQ(pid, getpid());
    return scene.runnable;
}

WRAP(int, pidfd_send_signal, int pidfd, int signal, siginfo_t *info, unsigned flags) {
    (void)info, (void)flags;
    BHT_EQ(signal, SIGKILL);
    scene.signalled = pidfd;
    scene.signals++;
    return 0;
}

WRAP(void, bhi_watch_rung, struct bhi_worker *worker) {
    (void)worker;
    did('R');
}

WRAP(void, bhi_control_woken, struct bhi_worker *worker) {
    (void)worker;
    did('C');
}

WRAP(bool, bhi_sentinel_is_busy, bh_context *context) {
    BHT_TRUE(context->closed);
    return scene.sentinel;
}

WRAP(void, bhi_burial_exit, struct bhi_worker *worker) {
    (void)worker;
    did('E');
}

WRAP(bool, bhi_watch_side_channel_event, struct bhi_worker *worker) {
    (void)worker;
    did('F');
    return scene.hung_up;
}

WRAP(void, bhi_sentinel_hung_up, struct bhi_worker *worker) {
    (void)worker;
    did('H');
}

static void hear(bh_log_level level, const char *line, void *user) {
    (void)user;
    scene.warnings += level == BH_LOG_WARNING && strcmp(line, "zygote z is lost") == 0;
}

/* A reactor whose thread is only noted, for the puppet whose own has been stopped. */
static int start_reactor(void) {
    sigset_t mask;
    scene.captures = true;
    const int error = bhi_reactor_start(puppet.context);
    scene.captures = false;
    BHT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    BHT_TRUE(!sigismember(&mask, SIGTERM));
    return error;
}

static void set_up(void) {
    memset(&scene, 0, sizeof scene);
    bhi_reactor_free(puppet.context);
    BHT_EQ(start_reactor(), 0);
    scene.now_ns = __real_bhi_now_ns();
    puppet.context->poller.stopped = false;
    puppet.context->settings.log = hear;
    snprintf(puppet.zygote->driver, sizeof puppet.zygote->driver, "z");
    bhi_zygote_retain(puppet.zygote); /* it may be buried */
}

static void tear_down(void) {
    scene.thread = NULL;
    bhi_zygote_release(puppet.zygote);
}

BHT_AT_START(puppet_around(set_up, tear_down))

/* One turn. Returns when the next one is. */
static uint64_t turn(void) {
    scene.did[0] = 0;
    if (setjmp(scene.asleep) == 0) {
        (void)scene.thread(puppet.context);
        BHT_FAIL("the thread has ended");
    }
    return scene.wakes_ns;
}

/* Is another turn to be taken at once? */
static bool is_woken(void) {
    uint64_t count;
    return read(puppet.context->poller.wake, &count, sizeof count) > 0;
}

/* The event comes, and then there is a turn. */
static uint64_t turn_after(enum bhi_source_kind kind, void *object) {
    static struct bhi_control_source source;
    source = (struct bhi_control_source){kind, object};
    scene.event.data.ptr = &source;
    scene.has_event = true;
    return turn();
}

/* -- its start --------------------------------------------------------------------------------- */

TEST(a_start_that_fails_leaves_nothing) {
    scene.no_thread = EAGAIN;
    for (int i = 0; i < 2; i++) {
        bhi_reactor_free(puppet.context);
        BHT_EQ(start_reactor(), i ? -EMFILE : -EAGAIN);
        BHT_TRUE(!puppet.context->reactor);
        BHT_EQ(puppet.context->poller.epoll & puppet.context->poller.wake, -1);
        scene.no_poller = -EMFILE;
    }
    scene.no_thread = scene.no_poller = 0;
    BHT_EQ(start_reactor(), 0);
    char name[16];
    BHT_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    BHT_STR_EQ(name, "bulkhead");
}

/* -- a turn ------------------------------------------------------------------------------------ */

/* Whoever wants the next turn first has it; and nobody is passed over. */
TEST(it_sleeps_until_something_is_due) {
    struct bhi_worker *worker = puppet_serving();
    const uint64_t look_ns = bhi_conduct_limits.look_ns;
    BHT_EQ(turn(), scene.now_ns + look_ns);
    BHT_STR_EQ(scene.did, "lsacbzgpw");
    BHT_EQ(puppet.context->poller.armed_ns, scene.now_ns + look_ns);
    for (enum due part = LEAVES; part < DUES; part++) {
        const bool soon = part == LEAVES || part == CHANNELS;
        memset(scene.due_ns, 0, sizeof scene.due_ns);
        scene.due_ns[part] = scene.now_ns + 7;
        scene.due_ns[CHANNELS] = soon;
        BHT_EQ(turn(), scene.now_ns + (soon ? 2 * MS : 7));
        /* A stream that goes on is served, and told, before anything is started. */
        BHT_STR_EQ(scene.did, part == LEAVES ? "lvcsacbzgpw" : "lsacbzgpw");
    }
    memset(scene.due_ns, 0, sizeof scene.due_ns);
    worker->messages_left = true;
    (void)turn();
    BHT_STR_EQ(scene.did, "lsarcbzgpw");
    scene.due_ns[STARTS] = scene.now_ns - 1; /* overdue */
    BHT_EQ(turn(), scene.now_ns);
    scene.takes_ns = 3;
    scene.due_ns[STARTS] = scene.now_ns + 7;
    BHT_EQ(turn(), scene.due_ns[STARTS]);
}

/* Conduct is looked at in each period, of all workers at once; without one there is no timer. */
TEST(conduct_is_looked_at_in_each_period) {
    const uint64_t look_ns = bhi_conduct_limits.look_ns;
    BHT_EQ(turn(), BH_FOREVER);
    BHT_EQ(puppet.context->poller.armed_ns, BH_FOREVER);
    struct bhi_worker *worker = puppet_serving();
    puppet.context->spares_due = false;
    BHT_EQ(turn(), scene.now_ns + look_ns);
    BHT_TRUE(!scene.looks && puppet.context->spares_due);
    puppet.context->spares_due = false;
    scene.now_ns += look_ns - 1;
    BHT_EQ(turn(), scene.now_ns + 1);
    BHT_TRUE(!scene.looks && !puppet.context->spares_due);
    scene.now_ns++;
    BHT_EQ(turn(), scene.now_ns + look_ns);
    BHT_TRUE(scene.looks && puppet.context->spares_due);
    puppet_killed(worker, SIGKILL);
    BHT_EQ(turn(), BH_FOREVER);
    scene.now_ns += 7;
    (void)puppet_serving();
    BHT_EQ(turn(), scene.now_ns + look_ns); /* of its own */
    BHT_TRUE(!scene.looks);
}

/* What is left over of cgroups is tried again after 20 ms, and then less and less often. */
TEST(what_is_left_over_is_tried_again) {
    for (int again = 0; again < 2; again++) {
        scene.left_over = true;
        for (int i = 0; i < 10; i++) {
            const uint64_t pause_ns = i < 7 ? (20 * MS) << i : 2 * SECOND;
            BHT_EQ(turn(), scene.now_ns + pause_ns);
            BHT_STR_EQ(scene.did, "lsabzgp");
            scene.now_ns += pause_ns - 1;
            BHT_EQ(turn(), scene.now_ns + 1);
            BHT_STR_EQ(scene.did, "lsabzg");
            scene.now_ns++;
        }
        scene.left_over = false;
        BHT_EQ(turn(), BH_FOREVER);
    }
}

/* -- events ------------------------------------------------------------------------------------ */

static bool watches(int fd) {
    struct epoll_event event = {0};
    return epoll_ctl(puppet.context->poller.epoll, EPOLL_CTL_MOD, fd, &event) == 0;
}

TEST(events_of_a_worker) {
    static const struct {
        enum bhi_source_kind kind;
        bool hung_up, has_words;
        const char *did;
    } rows[] = {{BHI_SOURCE_WORKER_PIDFD, false, true, "E"},
                {BHI_SOURCE_WORKER_DOORBELL, false, true, "R"},
                {BHI_SOURCE_WORKER_CHANNEL, false, true, "C"},
                {BHI_SOURCE_WORKER_FDPASS, false, true, "F"},
                {BHI_SOURCE_WORKER_FDPASS, true, false, "F"},
                {BHI_SOURCE_WORKER_FDPASS, true, true, "FH"}};
    struct bhi_worker *worker = puppet_serving();
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char must[32];
        scene.hung_up = rows[i].hung_up;
        worker->words.state = rows[i].has_words ? BHI_WORDS_REFUSED : BHI_WORDS_NONE;
        (void)turn_after(rows[i].kind, worker);
        snprintf(must, sizeof must, "%slsacbzgpw", rows[i].did);
        BHT_STR_EQ(scene.did, must);
    }
    worker->words.state = BHI_WORDS_NONE;
    bhi_poller_wake(&puppet.context->poller);
    (void)turn_after(BHI_SOURCE_WAKE, NULL);
    BHT_STR_EQ(scene.did, "lsacbzgpw");
    BHT_TRUE(!is_woken()); /* it was read */
}

/* How a zygote is lost, and what is known of it then. */
enum {
    KNOWN = 1 << 0,     /* its pidfd has come */
    UNWATCHED = 1 << 1, /* which could not be watched */
    STARTING = 1 << 2,  /* it has not been READY */
    LOST = 1 << 3,      /* it was lost before */
    CLOSING = 1 << 4,   /* the context closes */
};

static const struct loss {
    enum bhi_source_kind kind;
    unsigned flags;
    bool gone, warden_gone;
} losses[] = {
    {BHI_SOURCE_ZYGOTE_SOCKET, KNOWN, false, false},
    {BHI_SOURCE_ZYGOTE_SOCKET, KNOWN | CLOSING, false, false},
    {BHI_SOURCE_ZYGOTE_SOCKET, STARTING, false, false},
    {BHI_SOURCE_ZYGOTE_SOCKET, LOST | KNOWN, false, false},
    {BHI_SOURCE_ZYGOTE_PIDFD, KNOWN, true, false},
    {BHI_SOURCE_ZYGOTE_PIDFD, LOST | KNOWN, true, false},
    {BHI_SOURCE_WARDEN_PIDFD, KNOWN, false, true},
    {BHI_SOURCE_WARDEN_PIDFD, KNOWN | UNWATCHED, true, true},
    {BHI_SOURCE_WARDEN_PIDFD, STARTING, true, true},
    {BHI_SOURCE_WARDEN_PIDFD, LOST | KNOWN, false, true},
};

/* The puppet's zygote with a socket, a pidfd and its warden's. Returns the other end of the socket. */
static int give_descriptors(unsigned flags) {
    struct bhi_poller *poller = &puppet.context->poller;
    struct bhi_zygote *zygote = puppet.zygote;
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    zygote->socket = pair[0];
    zygote->warden_pidfd = pidfd_open(getpid(), 0);
    BHT_EQ(bhi_poller_watch(poller, zygote->socket, &zygote->socket_source), 0);
    BHT_EQ(bhi_poller_watch(poller, zygote->warden_pidfd, &zygote->warden_source), 0);
    if (flags & KNOWN) {
        zygote->pidfd = pidfd_open(getpid(), 0);
        BHT_EQ(bhi_poller_watch(poller, zygote->pidfd, &zygote->pidfd_source), 0);
    }
    zygote->pidfd_unwatched = flags & UNWATCHED;
    zygote->state = flags & STARTING ? BHI_ZYGOTE_STARTING
                    : flags & LOST   ? BHI_ZYGOTE_LOST
                                     : BHI_ZYGOTE_READY;
    zygote->start_deadline_ns = scene.now_ns + SECOND;
    zygote->bury_by_ns = flags & LOST ? scene.now_ns + SECOND : 0;
    return pair[1];
}

TEST(how_a_zygote_is_lost) {
    for (size_t i = 0; i < BHT_COUNT(losses); i++) {
        const unsigned flags = losses[i].flags;
        const bool lost = flags & LOST;
        puppet_again();
        struct bhi_zygote *zygote = puppet.zygote;
        const int end = give_descriptors(flags);
        if (losses[i].kind == BHI_SOURCE_ZYGOTE_SOCKET) {
            BHT_EQ(bhi_fdpass_send(end, "garbage", 7, NULL, 0), 0);
        }
        puppet.context->closed = flags & CLOSING;
        const uint64_t bury_by_ns = scene.now_ns + (lost ? SECOND : 5 * SECOND);
        const uint64_t wakes_ns = turn_after(losses[i].kind, zygote);
        puppet.context->closed = false;
        if (zygote->gone != losses[i].gone || zygote->warden_gone != losses[i].warden_gone ||
            zygote->state != BHI_ZYGOTE_LOST || zygote->bury_by_ns != bury_by_ns) {
            BHT_FAIL("row %zu: gone %d, its warden %d, state %d, due in %lld ns", i, zygote->gone,
                     zygote->warden_gone, (int)zygote->state,
                     (long long)(zygote->bury_by_ns - scene.now_ns));
        }
        BHT_EQ(scene.signals, !lost && flags & KNOWN);
        BHT_TRUE(!scene.signals || scene.signalled == zygote->pidfd);
        BHT_EQ(is_woken(), !lost);
        BHT_EQ(zygote->probe_word, !lost);
        BHT_EQ(scene.probers_woken, !lost);
        BHT_EQ(scene.starts_failed, !!(flags & STARTING));
        BHT_EQ(scene.warnings, !lost && !(flags & CLOSING));
        BHT_EQ(watches(zygote->socket), lost);
        BHT_EQ(watches(zygote->pidfd), flags & KNOWN && !losses[i].gone);
        BHT_EQ(watches(zygote->warden_pidfd), !losses[i].warden_gone);
        BHT_EQ(wakes_ns, losses[i].warden_gone ? BH_FOREVER : bury_by_ns);
        BHT_EQ(bhi_list_empty(&zygote->link), losses[i].gone && losses[i].warden_gone);
        close(end);
    }
}

/* -- what a zygote owes ------------------------------------------------------------------------ */

/* By its pidfd, which is 0 in a host without standard input; without one it is told by its socket. */
TEST(a_zygote_is_killed_by_its_descriptor) {
    struct bhi_zygote *zygote = puppet.zygote;
    int pair[2];
    char byte;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    zygote->socket = pair[0];
    for (int pidfd = 1; pidfd >= -1; pidfd--) {
        scene.signals = 0;
        zygote->pidfd = pidfd;
        bhi_zygote_kill(zygote);
        BHT_EQ(scene.signals, pidfd >= 0);
        BHT_TRUE(pidfd < 0 || scene.signalled == pidfd);
        BHT_EQ(recv(pair[1], &byte, 1, MSG_DONTWAIT) == 0, pidfd < 0);
    }
    zygote->socket = -1;
    close(pair[0]);
    close(pair[1]);
}

/* Its warden reaps it, and ends. A warden that waits for a processor gets the time again, six times. One
 * whose zygote was never born has nothing to reap. */
TEST(a_warden_gets_its_time) {
    for (int turns = 0; turns < 3; turns++) {
        puppet_again();
        struct bhi_zygote *zygote = puppet.zygote;
        const int end = give_descriptors(KNOWN);
        scene.runnable = turns > 0;
        uint64_t wakes_ns = turn_after(BHI_SOURCE_ZYGOTE_PIDFD, zygote);
        scene.signals = 0;
        if (turns == 2) { /* the start has failed */
            zygote->bury_by_ns = 0;
            wakes_ns = turn();
            BHT_EQ(wakes_ns, BH_FOREVER);
        }
        for (int i = turns == 1 ? 6 : 0; i >= 0 && turns < 2; i--) {
            BHT_EQ(wakes_ns, scene.now_ns + 5 * SECOND);
            scene.now_ns = wakes_ns - 1;
            BHT_EQ(turn(), wakes_ns);
            BHT_EQ(scene.signals, 0);
            scene.now_ns = wakes_ns;
            wakes_ns = turn();
        }
        BHT_EQ(scene.signals, 1);
        BHT_EQ(scene.signalled, zygote->warden_pidfd);
        BHT_EQ(wakes_ns, BH_FOREVER);
        BHT_TRUE(!bhi_list_empty(&zygote->link));
        scene.signals = 0;
        BHT_EQ(turn_after(BHI_SOURCE_WARDEN_PIDFD, zygote), BH_FOREVER);
        BHT_EQ(scene.signals, 1); /* in the turn before the event: never after it */
        BHT_TRUE(bhi_list_empty(&zygote->link));
        close(end);
    }
}

/* A zygote that starts has until its deadline; then the reason is told, and it is lost. */
TEST(a_zygote_that_does_not_start) {
    const int end = give_descriptors(STARTING);
    const uint64_t deadline_ns = puppet.zygote->start_deadline_ns;
    BHT_EQ(turn(), deadline_ns);
    scene.now_ns = deadline_ns - 1;
    BHT_EQ(turn(), deadline_ns);
    BHT_EQ(puppet.zygote->state, BHI_ZYGOTE_STARTING);
    scene.now_ns = deadline_ns;
    (void)turn();
    BHT_EQ(puppet.zygote->state, BHI_ZYGOTE_LOST);
    BHT_EQ(puppet.zygote->failure.reason, BH_REASON_LATE);
    BHT_EQ(puppet.zygote->failure.status, BH_UNAVAILABLE);
    BHT_EQ(scene.starts_failed, 1);
    close(end);
}

/* E9. One that does not answer a request for a worker is lost. If the host had no descriptor for the
 * answer, that worker is given up. Other zygotes are not asked. */
TEST(a_zygote_that_does_not_answer) {
    enum { MUTE, DEAF, OTHERS, BORN, WAYS };
    for (int way = MUTE; way < WAYS; way++) {
        puppet_again();
        struct bhi_zygote *zygote = puppet.zygote, other = {.context = puppet.context};
        struct bhi_worker *worker = puppet_worker(BHI_SPAWNING), *second = NULL;
        worker->core.life.start_by_ns = scene.now_ns + 7;
        worker->core.life.born = way == BORN;
        zygote->deaf_since_ns = way == DEAF ? scene.now_ns : 0;
        if (way == DEAF) {
            second = puppet_worker(BHI_SPAWNING);
            second->core.life.start_by_ns = scene.now_ns + 8;
        }
        worker->zygote = way == OTHERS ? &other : zygote;
        scene.now_ns += 6;
        (void)turn();
        BHT_EQ(zygote->state, BHI_ZYGOTE_READY);
        scene.now_ns++;
        (void)turn();
        worker->zygote = zygote;
        BHT_EQ(zygote->state, way == MUTE ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY);
        BHT_EQ(scene.given_up, way == DEAF);
        BHT_EQ(is_woken(), way == MUTE || way == DEAF);
        if (way == DEAF) {
            BHT_EQ(second->core.life.state, BHI_SPAWNING);
        }
    }
}

/* The host has no descriptor for what it sends: it is listened to again every 5 ms, unless it is lost. */
TEST(a_zygote_that_is_not_heard) {
    struct bhi_zygote *zygote = puppet.zygote;
    zygote->socket_ignored = scene.listens = true;
    for (int i = 0; i < 3; i++) {
        BHT_EQ(turn(), scene.now_ns + 5 * MS);
        BHT_STR_EQ(scene.did, "lsabzgpi");
        scene.now_ns += 5 * MS - 1;
        BHT_EQ(turn(), scene.now_ns + 1);
        BHT_STR_EQ(scene.did, "lsabzgp");
        scene.now_ns++;
    }
    scene.listens = false;
    (void)turn();
    BHT_EQ(zygote->state, BHI_ZYGOTE_LOST);
    scene.now_ns += SECOND;
    BHT_EQ(turn(), BH_FOREVER);
    BHT_STR_EQ(scene.did, "lsabz"
                          "g");
}

/* -- the end ----------------------------------------------------------------------------------- */

/* A context that closes: workers are killed and what waits ends; sentinels get half a second for abort
 * words; then they and the zygote are killed; what is left after ten seconds is given up. */
TEST(what_closing_waits_for) {
    enum { NOTHING, A_WORKER, WORDS, WAYS };
    for (int way = NOTHING; way < WAYS; way++) {
        puppet_again();
        const uint64_t since_ns = scene.now_ns;
        struct bhi_worker *worker = NULL;
        struct bhi_zygote *zygote = puppet.zygote;
        const int end = give_descriptors(KNOWN);
        if (way != NOTHING) {
            worker = puppet_serving();
            worker->core.life.born = true;
            bhi_worker_retain(worker);
        }
        if (way == WORDS) {
            scene.sentinel = puppet_worker(BHI_RUNNING);
            scene.sentinel->kind = BHI_WORKER_SENTINEL;
            scene.sentinel->core.life.born = true;
            scene.sentinel_until_ns = since_ns + SECOND / 2;
            bhi_worker_retain(scene.sentinel);
        }
        bh_event *event = puppet_submit();
        const uint32_t ready_word = puppet.stream->ready_word;
        puppet.context->closed = scene.closes = true;
        bhi_reactor_stop(puppet.context);
        scene.closes = false;
        fx_expect(event, BH_CONTEXT_CLOSED);
        BHT_EQ(scene.now_ns - since_ns, 10 * SECOND);
        BHT_NE(puppet.stream->ready_word, ready_word); /* who waits for a worker wakes */
        BHT_TRUE(bhi_list_empty(&puppet.context->workers));
        BHT_TRUE(bhi_list_empty(&puppet.context->zygotes));
        BHT_TRUE(puppet.context->poller.stopped);
        BHT_EQ(puppet.context->poller.epoll & puppet.context->poller.wake, -1);
        BHT_EQ(zygote->bury_by_ns - since_ns, (way == WORDS ? SECOND / 2 : 0) + 5 * SECOND);
        if (worker) {
            BHT_EQ(worker->core.life.kill, BHI_KILL_RETIRED);
            BHT_STR_EQ(worker->core.life.kill_text, "the context was destroyed");
            bhi_worker_release(worker);
        }
        bhi_worker_release(scene.sentinel);
        scene.sentinel = NULL;
        close(end);
    }
}
