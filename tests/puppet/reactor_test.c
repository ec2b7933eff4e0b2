/* What the reactor does turn by turn: which processes it has started, and when; what it tells
 * sentinels. The processes are structs, and the clock is the test's. */
#include "../hostile/wrap.h"
#include "base/detail.h"
#include "base/exiting.h"
#include "base/memfd.h"
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/spawn.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/reactor/zygote_messages.h"
#include "supervisor/worker/outbox.h"

#include <bulkhead/stats.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct {
    uint64_t now_ns;                    /* 0: the time is the machine's */
    bool woken;                         /* the reactor, since the last turn */
    int refused;                        /* no process can be started: an errno */
    bool exiting;                       /* what has hung up */
    bool full;                          /* no descriptor can be received */
    const struct bhi_worker *sentenced; /* no signal has been sent to it */
    int busy;                           /* how often a cgroup cannot be removed */
    bool orderly;                       /* the end of the last one that was buried */
    int heard_out;                      /* workers that were buried */
    int warnings;
    enum {
        ZYGOTES_ARE_REAL,
        ZYGOTES_ARE_STARTING,
        ZYGOTES_ARE_LOST,
        ZYGOTES_ARE_SHORT
    } zygotes_are;
    int zygotes; /* that were asked for, as well as: */
    int starts;
    struct bhi_worker *started; /* the last one */
    struct bhi_worker *taken;   /* the stream gets this one while another starts */
    uint64_t named[4];          /* workers with words: "a", "b", … */
    int named_count;
} scene;

WRAP(uint64_t, bhi_now_ns, void) {
    return scene.now_ns ? scene.now_ns : __real_bhi_now_ns();
}

WRAP(void, bhi_poller_wake, struct bhi_poller *poller) {
    if (poller->wake >= 0) { /* its thread still runs */
        __real_bhi_poller_wake(poller);
    }
    scene.woken = true;
}

WRAP(bool, bhi_is_exiting, const struct bhi_proc_place *place) {
    (void)place;
    return scene.exiting;
}

WRAP(int, bhi_fdpass_recv, int socket, void *data, size_t size, int *fds, size_t *count,
     int flags) {
    return scene.full ? -EMFILE : __real_bhi_fdpass_recv(socket, data, size, fds, count, flags);
}

/* SIGKILL comes before its words are set, or it could report what they stop. */
WRAP(int, pidfd_send_signal, int pidfd, int signal, siginfo_t *info, unsigned flags) {
    BHT_TRUE(!scene.sentenced || !scene.sentenced->words.set_requested);
    scene.sentenced = NULL;
    return __real_pidfd_send_signal(pidfd, signal, info, flags);
}

WRAP(void, bhi_pipeline_cache_buried, struct bhi_worker *worker, bool orderly) {
    scene.orderly = orderly;
    __real_bhi_pipeline_cache_buried(worker, orderly);
}

WRAP(int, bhi_cgroup_remove, const struct bhi_cgroup *cgroup, uint64_t id) {
    if (scene.busy > 0) {
        scene.busy--;
        return -EBUSY;
    }
    return __real_bhi_cgroup_remove(cgroup, id);
}

static void hear(bh_log_level level, const char *line, void *user) {
    (void)line, (void)user;
    scene.warnings += level == BH_LOG_WARNING;
}

/* Most puppets have no channel. */
WRAP(void, bhi_control_receive, struct bhi_worker *worker) {
    scene.heard_out++;
    if (worker->channel.socket) {
        __real_bhi_control_receive(worker);
    }
}

WRAP(struct bhi_worker *, bhi_worker_spawn, bh_context *context, struct bhi_zygote *zygote,
     const char *device, uint32_t device_index, uint64_t memory_limit, uint32_t processor,
     uint32_t nice, enum bhi_worker_kind kind, bh_detail *detail) {
    if (++scene.starts > 1000) {
        BHT_FAIL("a storm");
    }
    scene.started = NULL;
    if (scene.taken) {
        puppet_bind(scene.taken, puppet.stream);
    }
    if (scene.refused) {
        BHI_FAIL(detail, "", BH_REASON_SYSTEM_CALL, "a worker", .sys_errno = scene.refused);
        return NULL;
    }
    struct bhi_worker *worker = scene.started = puppet_worker(BHI_SPAWNING);
    BHT_TRUE(context == puppet.context && worker->zygote == puppet.zygote);
    bhi_zygote_retain(zygote);
    bhi_zygote_release(worker->zygote);
    worker->zygote = zygote;
    snprintf(worker->device, sizeof worker->device, "%s", device);
    worker->device_index = device_index;
    worker->memory_limit = memory_limit;
    worker->processor = processor;
    worker->nice = nice;
    worker->kind = kind;
    return worker;
}

WRAP(struct bhi_zygote *, bhi_zygote_start, bh_context *context, const char *driver) {
    if (++scene.zygotes > 1000) {
        BHT_FAIL("a storm");
    }
    if (scene.zygotes_are == ZYGOTES_ARE_REAL) {
        return __real_bhi_zygote_start(context, driver);
    }
    struct bhi_zygote *zygote = calloc(1, sizeof *zygote);
    BHT_TRUE(zygote);
    atomic_init(&zygote->refs, 1);
    zygote->context = context;
    bhi_context_retain(context);
    bhi_list_init(&zygote->sentinels);
    zygote->runtime_lock = zygote->cgroup.lock_fd = zygote->proc = -1;
    zygote->socket = zygote->pidfd = zygote->warden_pidfd = -1;
    snprintf(zygote->requested, sizeof zygote->requested, "%s", driver);
    zygote->state = BHI_ZYGOTE_STARTING;
    if (scene.zygotes_are != ZYGOTES_ARE_STARTING) {
        zygote->state = BHI_ZYGOTE_LOST;
        BHI_FAIL(&zygote->failure, "", BH_REASON_START, "zygote",
                 .sys_errno = scene.zygotes_are == ZYGOTES_ARE_SHORT ? EMFILE : EIO);
    }
    bhi_list_append(&context->zygotes, &zygote->link);
    return zygote;
}

static void set_up(void) {
    memset(&scene, 0, sizeof scene);
    scene.now_ns = __real_bhi_now_ns();
    puppet.context->settings.log = hear;
    puppet.context->poller.stopped = false;
    puppet.context->poller.epoll = epoll_create1(EPOLL_CLOEXEC);
    BHT_GE(puppet.context->poller.epoll, 0);
    bhi_zygote_retain(puppet.zygote); /* it may be buried */
}

static void tear_down(void) {
    bhi_zygote_release(puppet.zygote);
}

BHT_AT_START(puppet_around(set_up, tear_down))

/* As the reactor's thread does it. Returns when to take the next one. */
static uint64_t turn(void) {
    scene.woken = false;
    const uint64_t sentinels_ns = bhi_sentinel_turn(puppet.context);
    const uint64_t starts_ns = bhi_assignment_turn(puppet.context);
    const uint64_t burials_ns = bhi_burial_turn(puppet.context);
    bhi_burial_zygotes(puppet.context);
    bhi_context_log_said(puppet.context);
    return bhi_earlier_ns(sentinels_ns, bhi_earlier_ns(starts_ns, burials_ns));
}

/* -- how a start fails ------------------------------------------------------------------------- */

enum failure {
    EXITS,
    CRASHES,
    SEEN_FIRST, /* its pidfd says so before its zygote does */
    NO_FORK,
    LATE,
    LIES,
    REFUSED, /* it is not even asked for */
    SHORT,   /* nor could it be: there is no descriptor */
    UNHEARD, /* its zygote takes no message now */
    FAILURES
};

/* What is started now ends so, before it is ready. Returns false if there is more to come. */
static bool fail(struct bhi_worker *worker, enum failure failure) {
    struct bhi_life *life = &worker->core.life;
    bhi_context_lock(puppet.context);
    if (failure == NO_FORK) {
        bhi_life_unborn(life, scene.now_ns);
    } else if (failure == LATE) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "it was not ready in time");
    } else if (failure == LIES) {
        bhi_core_worker_violation(&worker->core, "it lied");
    }
    bhi_context_pump_unlock(puppet.context);
    if (failure == SEEN_FIRST && !life->exited_ns) {
        bhi_life_exit(life, 0, scene.now_ns);
        return false;
    }
    if (failure != NO_FORK) {
        const bool exits = failure == EXITS || failure == SEEN_FIRST;
        puppet_end_process(worker, exits ? CLD_EXITED : CLD_KILLED,
                           exits                ? 3
                           : failure == CRASHES ? SIGSEGV
                                                : SIGKILL);
    }
    return true;
}

/* Lets |ns| pass, in which each start fails. Returns how many there were. */
static int starts_in(uint64_t ns, enum failure failure) {
    const uint64_t end_ns = scene.now_ns + ns;
    const int before = scene.starts;
    static const int errors[FAILURES] = {[REFUSED] = EPERM, [SHORT] = EMFILE, [UNHEARD] = EAGAIN};
    scene.refused = errors[failure];
    for (scene.started = NULL; scene.now_ns < end_ns;) {
        const uint64_t due_ns = turn();
        if (scene.started) { /* an event, after which there is a turn */
            scene.started = fail(scene.started, failure) ? NULL : scene.started;
        } else if (!scene.woken) {
            BHT_TRUE(due_ns > scene.now_ns);
            scene.now_ns = bhi_earlier_ns(due_ns, end_ns);
        }
    }
    scene.refused = 0;
    return scene.starts - before;
}

static const char *const names[] = {[EXITS] = "it exits",
                                    [CRASHES] = "it crashes",
                                    [SEEN_FIRST] = "its end is seen first",
                                    [NO_FORK] = "it cannot be forked",
                                    [LATE] = "it takes too long",
                                    [LIES] = "it breaks the protocol",
                                    [REFUSED] = "it is refused",
                                    [SHORT] = "there is no room",
                                    [UNHEARD] = "it is not heard"};

/* Spares that do not start are tried once a second, and not given up; the pool fills when they do.
 * It is the same with the successor of a worker that runs one submission. */
TEST(spares_that_fail_are_tried_once_a_second) {
    for (int i = 0; i < 2 * FAILURES; i++) {
        const bool succeeds = i % 2;
        const enum failure failure = (enum failure)(i / 2);
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        puppet.context->settings.spares = !succeeds;
        worker->core.past.used = succeeds;
        puppet.stream->core.apart = succeeds ? BHI_APART_ALL : BHI_APART_NOT;
        const int starts = starts_in(10 * SECOND, failure);
        if (starts != 10) {
            BHT_FAIL("%s: %d starts in ten seconds", names[failure], starts);
        }
        puppet.context->settings.spares = succeeds ? 0 : 3;
        BHT_LE(turn(), scene.now_ns + SECOND);
        scene.now_ns += SECOND;
        for (int again = 0; again < 2; again++) {
            BHT_EQ(turn(), BH_FOREVER);
            BHT_EQ(scene.starts, starts + (succeeds ? 1 : 3));
        }
    }
}

/* Nobody is asked for a spare, or a successor, before its zygote is ready, or after it is lost. */
TEST(spares_wait_for_their_zygote) {
    struct bhi_worker *worker = puppet_serving();
    for (int i = 0; i < 4; i++) {
        puppet.zygote->state = i / 2 ? BHI_ZYGOTE_STARTING : BHI_ZYGOTE_LOST;
        puppet.context->settings.spares = i % 2;
        worker->core.past.used = i % 2 == 0;
        puppet.stream->core.apart = i % 2 ? BHI_APART_NOT : BHI_APART_ALL;
        BHT_EQ(bhi_assignment_turn(puppet.context), BH_FOREVER);
        BHT_EQ(scene.starts + scene.zygotes, 0);
    }
}

/* E9. A stream whose workers do not start gets so many, and then what waits ends. Later it heals: soon
 * where the host has lacked descriptors. */
static void expect_given_up(bh_event *event, bh_status status, bool is_short) {
    const struct bhi_core_stream *stream = &puppet.stream->core;
    BHT_EQ(stream->state, BHI_STREAM_UNAVAILABLE);
    fx_expect(event, status);
    BHT_EQ(stream->heals_at_ns <= scene.now_ns, is_short);
    scene.now_ns = stream->heals_at_ns;
    event = puppet_submit();
    BHT_EQ(stream->state, BHI_STREAM_WANTING);
    BHT_EQ(bh_event_cancel(event), BH_OK);
}

TEST(a_stream_gets_so_many_workers) {
    for (enum failure failure = EXITS; failure < FAILURES; failure++) {
        puppet_again();
        bh_event *event = puppet_submit();
        const bool later = failure == SHORT || failure == UNHEARD;
        const int starts = starts_in(20 * SECOND, failure);
        if (starts != (later ? 21 : 17)) {
            BHT_FAIL("%s: %d starts", names[failure], starts);
        }
        BHT_EQ(puppet.context->spare_at_ns, 0); /* spares have a pause of their own */
        expect_given_up(event, later ? BH_SYSTEM : BH_UNAVAILABLE, later);
    }
}

/* What a worker that fails has told of the devices is its stream's; a spare has none. */
TEST(devices_that_were_told_before_a_failed_start) {
    for (int bound = 0; bound < 2; bound++) {
        puppet_again();
        struct bhi_worker *worker = puppet_worker(BHI_HELD);
        worker->devices = calloc(1, sizeof *worker->devices);
        worker->device_count = !!worker->devices;
        if (bound) {
            puppet_bind(worker, puppet.stream);
        }
        puppet_end_process(worker, CLD_EXITED, 3);
        (void)turn();
        BHT_EQ(puppet.context->counts.deaths[BH_UNAVAILABLE], 1);
        BHT_EQ(puppet.stream->seen_device_count, bound);
        BHT_EQ(!puppet.stream->seen_devices, !bound);
    }
}

static struct bhi_zygote *newest_zygote(void) {
    return BHI_CONTAINER(puppet.context->zygotes.prev, struct bhi_zygote, link);
}

/* The same with zygotes. It costs nothing whoever has a worker, or waits for another driver. */
TEST(a_stream_gets_so_many_zygotes) {
    for (int is_short = 0; is_short < 2; is_short++) {
        puppet_again();
        scene.zygotes_are = ZYGOTES_ARE_STARTING;
        bh_stream *others[] = {fx_stream_on(puppet.context, "other"), puppet_stream("has", NULL)};
        (void)bhi_zygote_start(puppet.context, "other");
        scene.zygotes = 0;
        struct bhi_worker *has = puppet_worker(BHI_RUNNING);
        bhi_zygote_release(has->zygote);
        bhi_zygote_retain(has->zygote = newest_zygote());
        puppet_bind(has, others[1]);
        puppet.zygote->state = BHI_ZYGOTE_LOST;
        scene.zygotes_are = is_short ? ZYGOTES_ARE_SHORT : ZYGOTES_ARE_LOST;
        bh_event *event = puppet_submit();
        BHT_EQ(starts_in(20 * SECOND, EXITS), 0);
        BHT_EQ(scene.zygotes, is_short ? 21 : 17);
        expect_given_up(event, BH_UNAVAILABLE, is_short);
        for (int i = 0; i < 2; i++) {
            BHT_EQ(others[i]->core.state, i ? BHI_STREAM_SERVED : BHI_STREAM_WANTING);
            BHT_EQ(others[i]->core.restart.losses + others[i]->core.starved_since_ns, 0);
        }
    }
}

/* Whoever has got a worker while another was started for it: that one is a spare. */
TEST(a_stream_has_one_worker) {
    scene.taken = puppet_worker(BHI_HELD);
    scene.taken->device[0] = 'x'; /* not before */
    (void)bhi_assignment_turn(puppet.context);
    BHT_TRUE(puppet.stream->core.worker == &scene.taken->core);
    BHT_TRUE(scene.starts == 1 && !scene.started->core.stream);
    scene.taken = NULL;
}

/* Nothing starts in a context that closes. */
TEST(no_start_where_all_ends) {
    puppet_bind(puppet_worker(BHI_RUNNING), puppet_stream("has", NULL));
    puppet.context->settings.spares = 1;
    puppet.context->closed = true;
    BHT_EQ(bhi_assignment_turn(puppet.context), BH_FOREVER);
    puppet.context->closed = false;
    BHT_EQ(scene.starts + scene.zygotes, 0);
}

/* The next worker of a stream that runs one submission on each is started when the present one is used,
 * unless a spare that has no past will do. */
TEST(a_successor_is_started_in_time) {
    enum { UNUSED, USED, HAS_SPARE, TOLD, ELSEWHERE, WAYS };
    for (int way = UNUSED; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        worker->core.past.used = way != UNUSED;
        puppet.stream->core.apart = BHI_APART_ALL;
        bh_stream *other = puppet_stream("other", NULL); /* wants one of another kind */
        other->device[0] = 'x';
        other->core.apart = BHI_APART_ALL;
        struct bhi_worker *others = puppet_worker(BHI_RUNNING);
        others->core.past.used = true;
        puppet_bind(others, other);
        struct bhi_worker *spare = way >= HAS_SPARE ? puppet_worker(BHI_RUNNING) : NULL;
        if (spare) {
            spare->lessons.adopted = way == TOLD;
            spare->device[0] = way == ELSEWHERE ? 'x' : 0;
        }
        (void)bhi_assignment_turn(puppet.context);
        BHT_EQ(scene.starts, way == USED || way >= TOLD);
    }
}

/* One for each driver that is asked for, however many streams wait and whatever else is there. */
TEST(each_driver_has_one_zygote) {
    static const char *const devices[] = {NULL, "1", "fake", "fake:1", "other:0"};
    static const int zygotes[] = {1, 1, 2, 2, 3}; /* when a stream on that device has come, too */
    scene.zygotes_are = ZYGOTES_ARE_STARTING;
    puppet.zygote->state = BHI_ZYGOTE_LOST;
    for (size_t i = 0; i < BHT_COUNT(devices); i++) {
        bh_stream_options options = fx_stream_options();
        options.device = devices[i];
        (void)fx_stream_with(puppet.context, options);
        for (int again = 0; again < 2; again++) {
            BHT_EQ(turn(), BH_FOREVER);
            BHT_EQ(scene.zygotes, zygotes[i]);
        }
    }
    BHT_EQ(scene.starts, 0);
    struct bhi_zygote *other = newest_zygote();
    other->state = BHI_ZYGOTE_READY;
    (void)turn();
    BHT_EQ(scene.starts, 1);
    BHT_TRUE(scene.started->zygote == other);
    BHT_STR_EQ(scene.started->device, "other:0");
    /* One that serves a driver by another name will do, once that is known. */
    snprintf(other->driver, sizeof other->driver, "third");
    (void)fx_stream_on(puppet.context, "third");
    (void)turn();
    BHT_EQ(scene.starts, 2);
    BHT_EQ(scene.zygotes, 3);
}

/* What needs no device takes any zygote: a ready one, or waits for one that starts. */
TEST(any_zygote_will_do) {
    scene.zygotes_are = ZYGOTES_ARE_STARTING;
    puppet.zygote->state = BHI_ZYGOTE_LOST;
    puppet.stream->kind = BHI_WORKER_LOADER;
    puppet.stream->processor = 3;
    puppet.stream->nice = 5;
    for (int again = 0; again < 2; again++) {
        BHT_EQ(turn(), BH_FOREVER);
        BHT_EQ(scene.zygotes, 1);
    }
    struct bhi_zygote *first = newest_zygote(), *second = bhi_zygote_start(puppet.context, "fake");
    second->state = BHI_ZYGOTE_READY;
    (void)turn();
    BHT_EQ(scene.starts, 1);
    BHT_TRUE(scene.started->zygote == second && first->state == BHI_ZYGOTE_STARTING);
    BHT_EQ(scene.started->processor, 3);
    BHT_EQ(scene.started->nice, 5);
    puppet.stream->kind = BHI_WORKER_DEVICE;
}

/* -- zygotes that do not start ----------------------------------------------------------------- */

enum end {
    NO_FILE,       /* the program is not there */
    NOT_A_PROGRAM, /* its warden says so */
    MUTE,          /* it ends without a word */
    DEAF,          /* it is gone before it is told to start */
    NO_DEVICE,
    STUMBLES, /* over something that may pass */
    MUTE_AT_TIMES,
};

/* The puppet's zygote is the one that starts. |socket|: its end. */
static void end_zygote(enum end end, int socket) {
    char *const program = puppet.context->settings.worker_path;
    struct bhi_zygote *zygote = puppet.zygote;
    if (end == NO_FILE) {
        char missing[] = "/proc/self/no/such/program";
        zygote->state = BHI_ZYGOTE_LOST;
        puppet.context->settings.worker_path = missing;
        (void)turn();
        puppet.context->settings.worker_path = program;
        return;
    }
    zygote->state = BHI_ZYGOTE_STARTING;
    zygote->failure = (bh_detail){0};
    zygote->no_program = false;
    struct bhi_message message = {.type = BHI_MSG_ZYGOTE_FAILED};
    message.zygote_failed.status = end == NO_DEVICE ? BH_NO_DEVICE : BH_UNAVAILABLE;
    message.zygote_failed.error = end == NOT_A_PROGRAM ? ENOEXEC : end == STUMBLES ? EIO : 0;
    zygote->mute = end == DEAF;
    if (end == DEAF) {
        BHI_FAIL(&zygote->failure, "", BH_REASON_START, "zygote", .sys_errno = EPIPE);
    } else if (end != MUTE) {
        BHT_EQ(bhi_fdpass_send_message(socket, &message, NULL, 0), 0);
        BHT_TRUE(!bhi_zygote_receive(zygote));
    }
    zygote->state = BHI_ZYGOTE_LOST;
    bhi_assignment_zygote_failed(zygote);
}

/* Where no zygote was ever READY, the stream is UNAVAILABLE after so many; 0: its budget counts them.
 * Where one was, its program may be in the middle of an upgrade. Without a device all is in vain. */
static const int hopeless_after[] = {
    [NO_FILE] = 1,   [NOT_A_PROGRAM] = 1, [MUTE] = 3,         [DEAF] = 3,
    [NO_DEVICE] = 1, [STUMBLES] = 0,      [MUTE_AT_TIMES] = 0};

static void try_zygotes(enum end end, bool upgrade) {
    const struct bhi_core_stream *stream = &puppet.stream->core;
    const int hopeless = upgrade && end != NO_DEVICE ? 0 : hopeless_after[end];
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    if (upgrade) {
        const struct bhi_message message = {.type = BHI_MSG_ZYGOTE_READY};
        const int fds[] = {eventfd(0, EFD_CLOEXEC), open("/", O_PATH | O_CLOEXEC)};
        puppet.zygote->state = BHI_ZYGOTE_STARTING;
        BHT_EQ(bhi_fdpass_send_message(pair[1], &message, fds, 2), 0);
        BHT_EQ(close(fds[0]) + close(fds[1]), 0);
        BHT_TRUE(bhi_zygote_receive(puppet.zygote));
        BHT_EQ(puppet.zygote->state, BHI_ZYGOTE_READY);
    }
    for (int times = 1; times <= 6; times++) {
        const enum end other = times % 2 ? MUTE : STUMBLES;
        end_zygote(end == MUTE_AT_TIMES ? other : end, pair[1]);
        if ((stream->state == BHI_STREAM_UNAVAILABLE) != (hopeless && times >= hopeless)) {
            BHT_FAIL("end %d, upgrade %d: after %d times it is %s: %s", end, upgrade, times,
                     hopeless && times >= hopeless ? "tried again" : "given up",
                     stream->trouble.message);
        }
        scene.now_ns += SECOND;
    }
    puppet.zygote->state = BHI_ZYGOTE_READY;
    (void)puppet_worker(BHI_RUNNING);
    (void)turn();
    BHT_EQ(stream->state == BHI_STREAM_SERVED, !hopeless);
    close(pair[1]);
}

TEST(a_program_that_is_missing_for_a_moment) {
    for (enum end end = NO_FILE; end <= MUTE_AT_TIMES; end++) {
        for (int upgrade = 0; upgrade < 2; upgrade++) {
            puppet_again();
            try_zygotes(end, upgrade);
        }
    }
}

/* -- what a worker is started with --------------------------------------------------------------- */

/* How many descriptors the reactor listens to. */
static int watched(void) {
    char path[64], line[256];
    int count = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", puppet.context->poller.epoll);
    FILE *file = fopen(path, "re");
    BHT_TRUE(file);
    while (fgets(line, sizeof line, file)) {
        count += strncmp(line, "tfd:", 4) == 0;
    }
    fclose(file);
    return count;
}

/* Its zygote is told all that it needs, and |listens|, or is gone. The reactor listens to it until it is
 * buried. */
static void ask_for_one(enum bhi_worker_kind kind, bool listens) {
    int pair[2], fds[BHI_FDPASS_MAX];
    struct bhi_message message;
    bh_detail why = {0};
    puppet_again();
    bh_context *context = puppet.context;
    void *const zmq = context->poller.messaging.zmq = zmq_ctx_new();
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    snprintf(puppet.zygote->runtime_dir, sizeof puppet.zygote->runtime_dir, "%s", bht_folder());
    if (!listens) {
        close(pair[1]);
    }
    struct bhi_worker *worker =
        __real_bhi_worker_spawn(context, puppet.zygote, "fake:1", 1, 64 << 20, 3, 5, kind, &why);
    BHT_EQ(!!worker, listens);
    BHT_EQ(context->counts.workers, listens);
    BHT_EQ(watched(), listens ? 2 : 0);
    BHT_EQ(why.sys_errno, listens ? 0 : EPIPE);
    if (worker) {
        const struct bhi_msg_spawn *spawn = &message.spawn;
        BHT_EQ(bhi_fdpass_recv_message(pair[1], BHI_S2Z, &message, fds, 0, NULL, 0), 1);
        BHT_EQ(message.type, BHI_MSG_SPAWN);
        BHT_TRUE(spawn->worker == worker->id && spawn->kind == (uint32_t)kind);
        BHT_TRUE(spawn->memory_limit == 64 << 20 && spawn->device_index == 1);
        BHT_TRUE(spawn->processor == 3 && spawn->nice == 5);
        BHT_MEM_EQ(spawn->token, worker->token, sizeof worker->token);
        BHT_EQ(worker->core.life.is_loader, kind == BHI_WORKER_LOADER);
        BHT_EQ(worker->oom_kills, bhi_oom_kills());
        BHT_EQ(worker->room.count, BHI_ROOM_HELD);
        for (int i = 0; i < 5; i++) {
            close(fds[i]);
        }
        close(pair[1]);
        bhi_worker_retain(worker); /* what it has open stays */
        bhi_watch_side_channel(worker);
        worker->pidfd = pidfd_open(getpid(), 0);
        BHT_EQ(bhi_poller_watch(&context->poller, worker->pidfd, &worker->pidfd_source), 0);
        BHT_EQ(watched(), 4);
        puppet_end_process(worker, CLD_KILLED, SIGKILL);
        BHT_EQ(bhi_burial_turn(context), BH_FOREVER);
        BHT_EQ(watched(), 0);
        BHT_EQ(scene.heard_out, 1);
        BHT_EQ(scene.warnings, 1); /* of its death */
        bhi_worker_release(worker);
    }
    BHT_TRUE(bhi_list_empty(&context->workers));
    zmq_ctx_term(zmq);
    context->poller.messaging.zmq = NULL;
}

TEST(what_a_worker_is_started_with) {
    ask_for_one(BHI_WORKER_DEVICE, true);
    ask_for_one(BHI_WORKER_LOADER, true);
    ask_for_one(BHI_WORKER_DEVICE, false);
}

/* -- sentinels (decision 15) ------------------------------------------------------------------- */

/* One that serves a stream, has sent its abort words, and |works|. */
static struct bhi_worker *with_words(bool works) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    bh_stream *stream = scene.named_count ? puppet_stream(NULL, NULL) : puppet.stream;
    puppet_bind(worker, stream);
    worker->words = (struct bhi_words){
        .state = BHI_WORDS_KEPT, .fd = bhi_memfd_create("words", 4096, 0), .bytes = 64};
    BHT_GE(worker->words.fd, 0);
    scene.named[scene.named_count++] = worker->id;
    if (works) {
        (void)fx_fill(stream, fx_buffer(puppet.context, 4096), 7);
        BHT_EQ(worker->core.published, 1);
        puppet_begins(worker, 1);
    }
    return worker;
}

/* The sentinel that was started last, or starts now; it is ready. */
static struct bhi_worker *sentinel(void) {
    scene.started = NULL;
    (void)turn();
    struct bhi_worker *process = scene.started;
    BHT_TRUE(process && process->kind == BHI_WORKER_SENTINEL);
    puppet_has_come_to(process, BHI_RUNNING);
    (void)turn();
    return process;
}

/* What it was told since the last look: "import a, set a, forget a". */
static const char *told(struct bhi_worker *process) {
    static char text[256];
    size_t used = 0;
    text[0] = 0;
    BHI_LIST_FOR_SAFE(struct bhi_outgoing, outgoing, &process->outbox, link) {
        const struct bhi_message *message = &outgoing->message;
        const bool import = message->type == BHI_MSG_IMPORT, set = message->type == BHI_MSG_SET;
        BHT_TRUE(import || set || message->type == BHI_MSG_FORGET);
        BHT_EQ(outgoing->fd >= 0, import);
        BHT_EQ(import ? message->import.bytes : 64, 64);
        const uint64_t id = import ? message->import.worker
                            : set  ? message->set.worker
                                   : message->forget.worker;
        int name = 0;
        while (name < scene.named_count && scene.named[name] != id) {
            name++;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %c", used ? ", " : "",
                                 import ? "import"
                                 : set  ? "set"
                                        : "forget",
                                 'a' + name);
        bhi_list_remove(&outgoing->link);
        (void)bhi_outgoing_drop(outgoing);
    }
    return text;
}

static const char *imports(struct bhi_worker *process, const struct bhi_worker *worker,
                           int result) {
    const struct bhi_msg_imported answer = {.worker = worker->id, .vk_result = result};
    return bhi_sentinel_imported(process, &answer);
}

static const char *sets(struct bhi_worker *process, const struct bhi_worker *worker, int result) {
    const struct bhi_msg_words_set answer = {.worker = worker->id, .vk_result = result};
    return bhi_sentinel_words_set(process, &answer);
}

/* The supervisor kills it. */
static void sentence(struct bhi_worker *worker) {
    worker->core.life.born = true; /* its pidfd is -1 */
    scene.sentenced = worker;
    bhi_context_lock(puppet.context);
    bhi_core_worker_kill(&worker->core, BHI_KILL_DEADLINE, 0, "it took too long");
    bhi_context_pump_unlock(puppet.context);
    BHT_TRUE(!scene.sentenced);
}

static void end(struct bhi_worker *worker, int signal) {
    puppet_end_process(worker, CLD_KILLED, signal);
    (void)turn();
}

/* How a worker's end is noticed. */
enum notice {
    KILLED,
    DYING,   /* its side channel has hung up */
    HUNG_UP, /* the same, but it lives on: it could report what its words stop */
    BURIED,  /* not before */
    NOTICES
};

static void notice(struct bhi_worker *worker, enum notice notice) {
    scene.exiting = notice == DYING;
    if (notice == KILLED) {
        sentence(worker);
    } else if (notice != BURIED) {
        bhi_sentinel_hung_up(worker);
    }
    (void)turn();
}

/* A worker's words are imported ahead of its death, and set once when it dies at work; when it is
 * buried, they are forgotten. |held|: the sentinel has answered the import. */
static void die(bool works, bool held, enum notice how) {
    struct bhi_worker *worker = with_words(works);
    struct bhi_worker *process = sentinel();
    BHT_EQ(scene.starts, 1);
    BHT_STR_EQ(told(process), "import a");
    BHT_TRUE(!held || !imports(process, worker, 0));
    BHT_EQ(turn(), BH_FOREVER);
    BHT_STR_EQ(told(process), "");
    notice(worker, how);
    const bool sets_it = works && (how == KILLED || how == DYING);
    BHT_STR_EQ(told(process), sets_it ? "set a" : "");
    BHT_EQ(bhi_sentinel_is_busy(puppet.context), sets_it);
    (void)turn();
    BHT_STR_EQ(told(process), "");
    BHT_EQ(!sets(process, worker, -4), sets_it); /* it could not */
    BHT_EQ(worker->words.set_ns, 0);
    BHT_EQ(!sets(process, worker, 0), sets_it);
    BHT_TRUE(sets(process, worker, 0)); /* once */
    BHT_EQ(worker->words.set_ns, sets_it ? scene.now_ns : 0);
    BHT_TRUE(!bhi_sentinel_is_busy(puppet.context));
    end(worker, SIGKILL);
    BHT_STR_EQ(told(process), works && !sets_it ? "set a, forget a" : "forget a");
    BHT_TRUE(!bhi_sentinel_is_busy(puppet.context));
    BHT_EQ(process->core.life.kill, BHI_KILL_NONE);
}

TEST(the_words_of_the_dying_are_set) {
    for (int i = 0; i < 4 * NOTICES; i++) {
        puppet_again();
        die(i & 1, i & 2, (enum notice)(i / 4));
    }
}

/* A request for which there is no memory or descriptor is made later. */
TEST(words_wait_for_a_descriptor) {
    struct bhi_worker *worker = with_words(true);
    const int fd = worker->words.fd;
    worker->words.fd = -1; /* which cannot be duplicated */
    struct bhi_worker *process = sentinel();
    BHT_EQ(turn(), scene.now_ns + 100 * MS);
    BHT_STR_EQ(told(process), "");
    worker->words.fd = fd;
    (void)turn();
    BHT_STR_EQ(told(process), "import a");
}

/* A driver that does not take them: nobody can set them, which the log says. */
TEST(words_that_are_refused) {
    struct bhi_worker *worker = with_words(true), *process = sentinel();
    BHT_STR_EQ(told(process), "import a");
    const int warnings = scene.warnings;
    BHT_TRUE(!imports(process, worker, -3));
    (void)turn();
    BHT_EQ(scene.warnings, warnings + 1);
    sentence(worker);
    (void)turn();
    BHT_STR_EQ(told(process), "");
    BHT_TRUE(!bhi_sentinel_is_busy(puppet.context));
    end(worker, SIGKILL);
    BHT_STR_EQ(told(process), "");
}

/* What only a sentinel may say, and only when it was asked. It may be late: the worker is dead. */
TEST(a_sentinel_answers_what_it_was_asked) {
    struct bhi_worker *worker = with_words(true), *process = sentinel(), dead = {.id = 1u << 30};
    BHT_TRUE(sets(process, worker, 0));
    BHT_EQ(worker->words.set_ns, 0);
    BHT_TRUE(!imports(process, worker, 0));
    BHT_TRUE(imports(process, worker, 0));
    BHT_EQ(worker->words.state, BHI_WORDS_HELD);
    BHT_TRUE(!imports(process, &dead, 0));
    BHT_TRUE(!sets(process, &dead, 0));
    BHT_TRUE(imports(worker, &dead, 0));
    BHT_TRUE(sets(worker, &dead, 0));
    worker->device_index = 1; /* of another one's it knows nothing */
    sentence(worker);
    BHT_TRUE(!sets(process, worker, 0));
    BHT_EQ(worker->words.set_ns, 0);
}

/* What comes with an announcement of 64 bytes of words. */
static const struct announcement {
    const char *what;
    size_t tag_bytes;
    uint32_t magic, type;
    int fds;
    uint64_t fd_bytes; /* 0: no memory */
    bool good;
} announcements[] = {
    {"words", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_WORDS, 1, 64, true},
    {"two of them", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_WORDS, 2, 64, false},
    {"nothing", 0, 0, 0, 0, 0, false},
    {"no descriptor", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_WORDS, 0, 64, false},
    {"a short one", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_WORDS, 1, 63, false},
    {"no memory", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_WORDS, 1, 0, false},
    {"another one", sizeof(struct bhi_fd_tag), BHI_WIRE_MAGIC, BHI_MSG_IMPORT, 1, 64, false},
    {"no tag of ours", sizeof(struct bhi_fd_tag), 7, BHI_MSG_WORDS, 1, 64, false},
    {"half a tag", sizeof(struct bhi_fd_tag) / 2, BHI_WIRE_MAGIC, BHI_MSG_WORDS, 1, 64, false},
};

TEST(what_comes_as_words) {
    const struct bhi_msg_words words = {.bytes = 64};
    for (size_t i = 0; i < BHT_COUNT(announcements); i++) {
        const struct announcement *row = &announcements[i];
        int pair[2], fds[2];
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        BHT_EQ(bhi_fdpass_pair(pair), 0);
        worker->fdpass = pair[0];
        for (int k = 0; k < 2; k++) {
            fds[k] = row->fd_bytes ? memfd_create("words", MFD_CLOEXEC) : eventfd(0, EFD_CLOEXEC);
            BHT_TRUE(!row->fd_bytes || ftruncate(fds[k], (off_t)row->fd_bytes) == 0);
        }
        const struct bhi_fd_tag tag = {.magic = row->magic, .type = row->type};
        for (int again = 0; row->tag_bytes && again < 2; again++) {
            BHT_EQ(bhi_fdpass_send(pair[1], &tag, row->tag_bytes, fds, (size_t)row->fds), 0);
        }
        scene.full = true; /* the host is: that is not its fault */
        BHT_TRUE(!bhi_sentinel_take_words(worker, &words));
        BHT_EQ(worker->words.state, BHI_WORDS_NONE);
        scene.full = false;
        scene.woken = false;
        if (!bhi_sentinel_take_words(worker, &words) != row->good) {
            BHT_FAIL("%s: %s", row->what, row->good ? "refused" : "taken");
        }
        BHT_EQ(worker->words.state, row->good ? BHI_WORDS_KEPT : BHI_WORDS_NONE);
        BHT_EQ(worker->words.fd >= 0, row->good);
        BHT_EQ(scene.woken, row->good);                    /* a sentinel is to be started */
        BHT_EQ(watched(), row->good);                      /* its end is seen there first */
        BHT_TRUE(bhi_sentinel_take_words(worker, &words)); /* they come once */
        close(pair[1]);
        close(fds[0]);
        close(fds[1]);
    }
}

/* What happens to two workers, |a| and |b|, that both work: i, its import is answered; d, it dies; s, its
 * setting is answered; w, its words come only now; capitals: |b|'s. Then the sentinel ends. It answers in order, so of its own it
 * has died of the oldest request that it owes. */
enum of_sentinel { CRASHED, LIED, RETIRED };
static const struct succession {
    const char *before;
    enum of_sentinel how;
    const char *next; /* is told that */
} successions[] = {
    {"", CRASHED, "import b"},
    {"i", CRASHED, "import a"},
    {"iI", CRASHED, "import a, import b"},
    {"dID", CRASHED, "import b, set b"},
    {"dID", LIED, "import b, set b"},
    {"dID", RETIRED, "import a, set a, import b, set b"},
    {"diID", CRASHED, "import b, set b"},
    {"idsID", CRASHED, "import a"},
    {"idsIDS", CRASHED, "import a, import b"},
    {"idsIDS", RETIRED, "import a, import b"},
    {"iDId", CRASHED, "import a, set a"},
    {"idW", CRASHED, "import b"},
};

static void happen(char what, struct bhi_worker *process, struct bhi_worker *workers[2]) {
    struct bhi_worker *worker = workers[what < 'a'];
    switch (what | 32) {
    case 'i':
        BHT_TRUE(!imports(process, worker, 0));
        break;
    case 'd':
        sentence(worker);
        break;
    case 'w':
        worker->words.state = BHI_WORDS_KEPT;
        break;
    default:
        BHT_TRUE(!sets(process, worker, 0));
    }
    (void)turn();
}

static void end_sentinel(struct bhi_worker *process, enum of_sentinel how) {
    bhi_context_lock(puppet.context);
    if (how == LIED) {
        bhi_core_worker_violation(&process->core, "it lied");
    } else if (how == RETIRED) {
        bhi_core_worker_kill(&process->core, BHI_KILL_RETIRED, 0, "it is to go");
    }
    bhi_context_pump_unlock(puppet.context);
    end(process, how == CRASHED ? SIGSEGV : SIGKILL);
    BHT_TRUE(!bhi_sentinel_is_busy(puppet.context)); /* nobody sets them */
}

TEST(the_next_sentinel_is_told_what_is_left) {
    for (size_t i = 0; i < BHT_COUNT(successions); i++) {
        const struct succession *row = &successions[i];
        puppet_again();
        struct bhi_worker *workers[] = {with_words(true), with_words(true)};
        const bool comes = strchr(row->before, 'W');
        workers[1]->words.state = comes ? BHI_WORDS_NONE : BHI_WORDS_KEPT;
        struct bhi_worker *process = sentinel();
        for (const char *what = row->before; *what; what++) {
            happen(*what, process, workers);
        }
        end_sentinel(process, row->how);
        const char *next = told(sentinel());
        if (strcmp(next, row->next) != 0) {
            BHT_FAIL("row %zu: the next one is told %s", i, next);
        }
    }
}

/* From the second on, a sentinel that does not start makes a pause. */
TEST(the_sentinels_pause_is_kept) {
    (void)with_words(false);
    BHT_EQ(starts_in(10 * MS, EXITS), 2);
    BHT_EQ(starts_in(9 * MS, EXITS), 1);
}

/* Five are lost within a minute: the device has none any more, and each other device has its own. One
 * that lives for a while first is replaced for ever. */
TEST(sentinels_have_a_budget) {
    for (enum failure failure = EXITS; failure < FAILURES; failure++) {
        puppet_again();
        (void)with_words(false);
        BHT_EQ(starts_in(60 * SECOND, failure), 6);
        scene.now_ns += 3600 * SECOND;
        BHT_EQ(turn(), BH_FOREVER);
        BHT_EQ(scene.starts, 6);
    }
    struct bhi_worker *elsewhere = with_words(false);
    elsewhere->device_index = 1;
    for (int i = 0; i < 20; i++) {
        struct bhi_worker *process = sentinel();
        BHT_EQ(process->device_index, 1);
        BHT_TRUE(!imports(process, elsewhere, 0));
        scene.now_ns += 60 * SECOND;
        end(process, SIGKILL);
    }
}

/* None starts for a zygote that is lost, or in a context that closes. */
TEST(no_sentinel_where_all_ends) {
    for (int closed = 0; closed < 2; closed++) {
        puppet_again();
        (void)with_words(true);
        puppet.context->closed = closed;
        puppet.zygote->state = closed ? BHI_ZYGOTE_READY : BHI_ZYGOTE_LOST;
        BHT_EQ(bhi_sentinel_turn(puppet.context), BH_FOREVER);
        BHT_EQ(scene.starts, 0);
        puppet.context->closed = false;
        puppet.zygote->state = BHI_ZYGOTE_READY;
    }
}

static int lines;

static void count_line(bh_log_level level, const char *message, void *user) {
    (void)level, (void)user;
    BHT_STR_HAS(message, "line ");
    lines++;
}

/* As many lines wait to be written as there is room for, each time. */
TEST(a_log_is_not_silent_for_ever) {
    const struct bhi_context_settings settings = puppet.context->settings;
    puppet.context->settings.log = count_line;
    for (int round = 1; round <= 3; round++) {
        bhi_context_lock(puppet.context);
        for (int i = 0; i < 100; i++) {
            bhi_context_say(puppet.context, BH_LOG_INFO, "line %d", i);
        }
        bhi_context_settle_unlock(puppet.context);
        bhi_context_log_said(puppet.context);
        BHT_EQ(lines, 64 * round);
    }
    puppet.context->settings = settings;
}

/* -- burials ----------------------------------------------------------------------------------- */

/* A worker that serves the stream; the test lets go of it, too. |held|: its zygote holds its device. */
static struct bhi_worker *serving(bool held) {
    struct bhi_worker *worker = puppet_serving();
    worker->core.life.born = true;
    worker->core.life.holds = held;
    bhi_worker_retain(worker);
    puppet.zygote->state = BHI_ZYGOTE_READY;
    return worker;
}

/* Nothing becomes of it for |ns|, and then what is due. */
static void pass(uint64_t ns) {
    const uint64_t due_ns = turn();
    BHT_EQ(due_ns - scene.now_ns, ns);
    scene.now_ns = due_ns - 1;
    BHT_EQ(turn(), due_ns);
    scene.now_ns = due_ns;
    (void)turn();
}

static bool is_buried(const struct bhi_worker *worker) {
    return worker->core.life.state == BHI_BURIED;
}

/* Its zygote owes how it ended: for two seconds, or until that is lost. */
TEST(an_exit_status_is_awaited) {
    for (int lost = 0; lost < 2; lost++) {
        puppet_again();
        struct bhi_worker *worker = serving(false);
        bhi_life_exit(&worker->core.life, 0, scene.now_ns);
        puppet.zygote->state = lost ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
        if (lost) {
            (void)turn();
        } else {
            pass(2 * SECOND);
        }
        BHT_TRUE(is_buried(worker));
        BHT_EQ(worker->core.life.exit_kind, 0);
        bhi_worker_release(worker);
    }
}

/* How many workers the zygote was told to let go of. */
static int releases(int socket) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX], count = 0;
    while (bhi_fdpass_recv_message(socket, BHI_S2Z, &message, fds, MSG_DONTWAIT, NULL, 0) == 1) {
        count += message.type == BHI_MSG_RELEASE;
    }
    return count;
}

/* Decision 4. The device of a dead worker is released once: at once, or after 20 ms if its stream has
 * gone on, whose next worker would wait for the release. A zygote that takes no messages is told again.
 * Only the end of the zygote replaces its report: the device may go on writing. */
TEST(a_device_is_released_once) {
    enum { BUSY, LEFT, FULL, WAYS };
    for (int way = BUSY; way < WAYS; way++) {
        int pair[2];
        puppet_again();
        BHT_EQ(bhi_fdpass_pair(pair), 0);
        BHT_EQ(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
        puppet.zygote->socket = pair[0];
        struct bhi_worker *worker = serving(true);
        if (way == LEFT) {
            bh_event *event = puppet_submit();
            puppet_complete(worker, 1);
            fx_expect(event, BH_OK);
            puppet_dies(worker);
            BHT_TRUE(bhi_leave_turn(puppet.context));
        }
        const struct bhi_message other = {.type = BHI_MSG_RELEASE, .release.worker = 1u << 30};
        int filled = 0;
        while (way == FULL && bhi_fdpass_send_message(pair[0], &other, NULL, 0) == 0) {
            filled++;
        }
        bhi_life_exit(&worker->core.life, 0, scene.now_ns);
        if (way == LEFT) {
            (void)turn();
            BHT_EQ(releases(pair[1]), 0);
            pass(20 * MS);
        } else {
            BHT_EQ(turn(), way == FULL ? scene.now_ns + 2 * MS : BH_FOREVER);
        }
        if (way == FULL) {
            BHT_EQ(worker->core.life.state, BHI_HOLDING);
            BHT_EQ(releases(pair[1]), filled);
            (void)turn();
        }
        BHT_EQ(releases(pair[1]), 1);
        puppet.zygote->state = way == LEFT ? BHI_ZYGOTE_READY : BHI_ZYGOTE_LOST;
        scene.now_ns += 3600 * SECOND;
        (void)turn();
        BHT_EQ(releases(pair[1]), 0);
        BHT_EQ(worker->core.life.state, BHI_TOLD);
        BHT_TRUE(!bhi_list_empty(&puppet.zygote->link)); /* it outlives its workers */
        puppet.zygote->state = BHI_ZYGOTE_LOST;
        puppet.zygote->gone = true;
        puppet.zygote->warden_pidfd = pidfd_open(getpid(), 0);
        BHT_EQ(bhi_poller_watch(&puppet.context->poller, puppet.zygote->warden_pidfd,
                                &puppet.zygote->warden_source),
               0);
        (void)turn();
        BHT_TRUE(is_buried(worker));
        for (int both = 0; both < 2; both++) { /* it waits for its warden, and that for it */
            BHT_TRUE(!bhi_list_empty(&puppet.zygote->link));
            BHT_EQ(watched(), 1);
            puppet.zygote->gone = both;
            puppet.zygote->warden_gone = true;
            bhi_burial_zygotes(puppet.context);
        }
        BHT_TRUE(bhi_list_empty(&puppet.zygote->link));
        BHT_EQ(watched(), 0);
        BHT_EQ(puppet.context->counts.zygotes_lost, 1);
        bhi_worker_release(worker);
        close(pair[1]);
    }
}

/* A loader can hang where not even SIGKILL ends it. Neither does its zygote end, then. */
TEST(a_loader_that_hangs_is_given_up) {
    for (int loader = 0; loader < 2; loader++) {
        puppet_again();
        struct bhi_worker *worker = serving(false);
        worker->core.life.is_loader = loader;
        worker->kind = loader ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
        scene.woken = false;
        sentence(worker);
        BHT_EQ(scene.woken, loader); /* its time begins */
        worker->kind = BHI_WORKER_DEVICE;
        if (loader) {
            pass(3 * SECOND);
            BHT_TRUE(is_buried(worker) && worker->core.life.given_up);
            struct bhi_worker *next = puppet_worker(BHI_SPAWNING); /* its zygote goes on */
            next->core.life.start_by_ns = BH_FOREVER;
            bhi_worker_retain(next);
            (void)turn();
            BHT_TRUE(!is_buried(next));
            bhi_worker_release(next);
        } else {
            BHT_EQ(turn(), BH_FOREVER);
        }
        BHT_EQ(puppet.zygote->held_by_loader, loader);
        if (!loader) {
            end(worker, SIGKILL);
        }
        bhi_worker_release(worker);
    }
}

TEST(a_start_is_not_awaited_for_ever) {
    struct bhi_worker *worker = puppet_worker(BHI_HELD);
    puppet_bind(worker, puppet.stream);
    worker->core.life.born = true;
    worker->core.life.start_by_ns = scene.now_ns + 5 * SECOND;
    pass(5 * SECOND);
    BHT_EQ(worker->core.life.kill, BHI_KILL_START);
    BHT_STR_HAS(worker->core.life.kill_text, "was not ready in time");
    end(worker, SIGKILL);
    BHT_STR_HAS(puppet.stream->core.trouble.message, "was not ready in time");
}

/* A closed socket is no death. One that lives on gets no messages any more: it is killed. */
TEST(one_that_hangs_up_must_end) {
    for (int exiting = 0; exiting < 2; exiting++) {
        puppet_again();
        struct bhi_worker *worker = serving(false);
        scene.exiting = exiting;
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_HANG_UP, scene.now_ns);
        pass(200 * MS);
        BHT_EQ(worker->core.life.kill, exiting ? BHI_KILL_NONE : BHI_KILL_PROTOCOL);
        BHT_EQ(worker->core.life.state, exiting ? BHI_EXITING : BHI_KILLED);
        if (exiting) { /* its device takes its time, and nobody gives it up */
            for (int i = 0; i < 20; i++) {
                pass(200 * MS);
            }
            BHT_EQ(worker->core.life.state, BHI_EXITING);
        }
        end(worker, SIGKILL);
        BHT_TRUE(is_buried(worker));
        bhi_worker_release(worker);
    }
}

/* The zygote looks which system call has killed a start. The stream waits for that, but not for ever,
 * and not where nobody needs it or can tell. */
TEST(a_trace_is_awaited) {
    enum { NEVER, TRACED, CLOSED, GONE, SERVED, COMPILER, OTHER_SIGNAL, WAYS };
    for (int way = NEVER; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = puppet_worker(way == SERVED ? BHI_RUNNING : BHI_HELD);
        puppet_bind(worker, puppet.stream);
        bhi_worker_retain(worker);
        struct bhi_zygote_trace *trace = &puppet.zygote->trace;
        trace->state = BHI_TRACE_PENDING;
        trace->deadline_ns = scene.now_ns + BHI_TRACE_NS;
        puppet_end_process(worker, CLD_KILLED, way == OTHER_SIGNAL ? SIGSEGV : SIGSYS);
        worker->kind = way == COMPILER ? BHI_WORKER_COMPILER : BHI_WORKER_DEVICE;
        if (way == OTHER_SIGNAL) { /* the line is of another one */
            snprintf(trace->line, sizeof trace->line, "it called frobnicate");
        }
        puppet.context->closed = way == CLOSED;
        puppet.zygote->state = way == GONE ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
        if (way == NEVER) {
            pass(30 * SECOND);
        } else if (way == TRACED) {
            BHT_EQ(turn(), scene.now_ns + 30 * SECOND);
            BHT_TRUE(!is_buried(worker));
            snprintf(trace->line, sizeof trace->line, "it called frobnicate");
            trace->state = BHI_TRACE_DONE;
        }
        (void)turn();
        BHT_TRUE(is_buried(worker));
        BHT_EQ(!!strstr(puppet.stream->core.trouble.message, "frobnicate"), way == TRACED);
        puppet.context->closed = false;
        puppet.zygote->state = BHI_ZYGOTE_READY;
        bhi_worker_release(worker);
    }
}

/* What a worker has said of the devices is kept for its stream if it did not start. */
TEST(a_start_that_fails_leaves_its_devices) {
    for (int told = 0; told < 4; told++) { /* it never told; it did; and it served */
        puppet_again();
        struct bhi_worker *worker = puppet_worker(told & 2 ? BHI_RUNNING : BHI_HELD);
        puppet_bind(worker, puppet.stream);
        worker->devices = calloc(1, sizeof *worker->devices);
        worker->device_count = worker->device_capacity = told & 1;
        puppet.stream->seen_device_count = 1; /* by the one before */
        puppet.stream->seen_devices = calloc(1, sizeof *puppet.stream->seen_devices);
        const struct bhi_msg_device *expected =
            told == 1 ? worker->devices : puppet.stream->seen_devices;
        puppet_end_process(worker, CLD_EXITED, 3);
        BHT_EQ(bhi_burial_turn(puppet.context), BH_FOREVER);
        BHT_TRUE(puppet.stream->seen_devices == expected);
        BHT_EQ(puppet.stream->seen_device_count, 1);
    }
}

/* A memory cgroup goes with its worker. */
TEST(its_cgroup_goes) {
    const char *folder = bht_folder();
    char path[512];
    struct bhi_worker *worker = serving(false);
    snprintf(path, sizeof path, "%s/w%llu", folder, (unsigned long long)worker->id);
    BHT_EQ(mkdir(path, 0700), 0);
    puppet.zygote->cgroup.version = 2;
    snprintf(puppet.zygote->cgroup.dir, sizeof puppet.zygote->cgroup.dir, "%s", folder);
    worker->memory_limit = 64 << 20;
    end(worker, SIGKILL);
    BHT_TRUE(is_buried(worker));
    BHT_TRUE(access(path, F_OK) != 0 && errno == ENOENT);
    puppet.zygote->cgroup.version = 0;
    bhi_worker_release(worker);
}

/* T8: what one has compiled is kept if it was told to end, has ended so, and has not lied. */
TEST(whose_pipeline_cache_is_kept) {
    static const struct {
        enum bhi_kill kill;
        bool lies;
        int signal; /* negative: it exits with that code; 0: it goes with its zygote */
        bool kept;
    } rows[] = {
        {BHI_KILL_RETIRED, false, SIGKILL, true},  {BHI_KILL_DEADLINE, false, SIGKILL, true},
        {BHI_KILL_CANCEL, false, SIGKILL, true},   {BHI_KILL_RETIRED, true, SIGKILL, false},
        {BHI_KILL_RETIRED, false, SIGSEGV, false}, {BHI_KILL_NONE, true, SIGKILL, false},
        {BHI_KILL_NONE, false, SIGKILL, false},    {BHI_KILL_RETIRED, false, -SIGKILL, false},
        {BHI_KILL_RETIRED, false, 0, true}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = serving(false);
        bhi_context_lock(puppet.context);
        if (rows[i].kill != BHI_KILL_NONE) {
            bhi_core_worker_kill(&worker->core, rows[i].kill, 0, "it is to end");
        }
        if (rows[i].lies) {
            bhi_core_worker_violation(&worker->core, "it lied");
        }
        bhi_context_pump_unlock(puppet.context);
        if (rows[i].signal) {
            puppet_end_process(worker, rows[i].signal < 0 ? CLD_EXITED : CLD_KILLED,
                               abs(rows[i].signal));
        } else {
            bhi_life_exit(&worker->core.life, 0, scene.now_ns);
            puppet.zygote->state = BHI_ZYGOTE_LOST;
        }
        (void)turn();
        if (!is_buried(worker) || scene.orderly != rows[i].kept) {
            BHT_FAIL("row %zu", i);
        }
        bhi_worker_release(worker);
    }
}

/* Or later, if a process in it has not gone. */
TEST(its_cgroup_goes_in_the_end) {
    struct bhi_worker *worker = serving(false);
    puppet.zygote->cgroup.version = 2;
    worker->memory_limit = 64 << 20;
    scene.busy = 2;
    end(worker, SIGKILL);
    BHT_TRUE(bhi_zygote_sweep(puppet.zygote));
    BHT_TRUE(!bhi_zygote_sweep(puppet.zygote));
    BHT_EQ(scene.busy, 0);
    BHT_EQ(puppet.zygote->leftover_count, 0);
    puppet.zygote->cgroup.version = 0;
    bhi_worker_release(worker);
}
