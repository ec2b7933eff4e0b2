/* A stream goes on without its dying worker where nothing is lost by that, and waits for the burial
 * where something is (decision 59). The worker here is a struct: it is dying for as long as the
 * test wants, as on a GPU whose driver does not let go of it. */
#include "base/memfd.h"
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/burial.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/spares.h"

#include <bulkhead/stats.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The worker of |p->stream| has completed a submission, and has nothing to do. */
static struct bhi_worker *idle_worker(struct puppet *p) {
    struct bhi_worker *worker = puppet_serving(p);
    bh_event *event = puppet_submit(p);
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_wait(event, PUPPET_SECONDS), BH_OK);
    bh_event_release(event);
    return worker;
}

static void turn(struct puppet *p) {
    (void)bhi_leave_turn(p->context);
    (void)bhi_assignment_turn(p->context);
}

/* It dies, which has not been confirmed, and leaves. */
static void let_leave(struct puppet *p, struct bhi_worker *worker) {
    puppet_dies(worker);
    (void)bhi_leave_turn(p->context);
    BHT_TRUE(p->stream->core.dying == &worker->core);
}

static void bury(struct bhi_worker *worker, struct bhi_obituary *obituary) {
    puppet_end_process(worker, CLD_KILLED, SIGKILL);
    puppet_bury(worker, obituary);
}

TEST(a_spare_takes_over_before_the_burial) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p), *spare = puppet_worker(&p, BHI_RUNNING);
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &worker->core); /* it is well */
    puppet_dies(worker);
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    BHT_EQ(worker->core.life.kill, BHI_KILL_LEFT);
    BHT_EQ(p.stream->core.stats.deaths, 1);
    BHT_EQ(p.stream->core.stats.restarts, 1);
    bh_event *event = puppet_submit(&p);
    puppet_complete(spare, 1);
    BHT_EQ(bh_event_wait(event, PUPPET_SECONDS), BH_OK);
    bh_event_release(event);
    char text[4096];
    bh_context_describe(p.context, text, sizeof text);
    BHT_STR_HAS(text, "dying; stream \"one\" has gone on without it");
    struct bhi_obituary obituary;
    bury(worker, &obituary);
    BHT_STR_HAS(obituary.line, "stream one: worker 4242 died while it was idle: worker 4242 was "
                               "killed by SIGKILL");
    BHT_TRUE(!p.stream->core.dying);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    BHT_EQ(p.stream->core.stats.deaths, 1); /* E9: not twice */
    puppet_close(&p);
}

TEST(a_process_is_counted_by_how_far_it_has_come) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_worker(&p, BHI_RUNNING);
    for (uint32_t state = BHI_SPAWNING; state <= BHI_CONFIRMED; state++) {
        bh_stats stats = {.struct_size = sizeof stats};
        bh_stats expected = {.processes = {{0}}};
        expected.processes[BH_PROCESS_SPARE][state < BHI_RUNNING    ? BH_PROCESS_STARTING
                                             : state == BHI_RUNNING ? BH_PROCESS_READY
                                             : state <= BHI_KILLED  ? BH_PROCESS_ENDING
                                                                    : BH_PROCESS_ENDED] = 1;
        expected.processes[BH_PROCESS_ZYGOTE][BH_PROCESS_READY] = 1;
        worker->core.life.state = (enum bhi_life_state)state;
        BHT_EQ(bh_context_stats(p.context, &stats, NULL, 0, NULL, NULL), BH_OK);
        BHT_MEM_EQ(stats.processes, expected.processes, sizeof stats.processes);
    }
    worker->core.life.state = BHI_RUNNING;
    puppet_close(&p);
}

/* Its side channel has hung up: that alone is no death, for it may only have closed it. */
TEST(a_hung_up_one_must_be_seen_to_end) {
    for (int ends = 0; ends < 2; ends++) {
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = idle_worker(&p);
        const pid_t pid = fork();
        if (pid == 0 && !ends) {
            pause();
        }
        if (pid == 0) {
            _exit(0);
        }
        siginfo_t info;
        if (ends) {
            BHT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        }
        worker->core.pid = pid;
        p.zygote->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        worker->place = (struct bhi_proc_place){p.zygote->proc, false, pid};
        bhi_sentinel_hung_up(worker);
        (void)bhi_leave_turn(p.context);
        BHT_EQ(p.stream->core.dying == &worker->core, ends);
        BHT_EQ(kill(pid, SIGKILL), 0);
        BHT_EQ(waitpid(pid, NULL, 0), pid);
        puppet_close(&p);
    }
}

/* It has ended, and its zygote has not said how. */
TEST(its_exit_status_is_not_awaited) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p), *spare = puppet_worker(&p, BHI_RUNNING);
    bhi_life_exit(&worker->core.life, 0, bhi_now_ns());
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    bury(worker, NULL);
    puppet_close(&p);
}

/* What it recorded counts, and so nothing is under way: the event is READY before anybody has
 * looked at it (E11). */
TEST(what_it_recorded_counts) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p), *spare = puppet_worker(&p, BHI_RUNNING);
    bh_event *event = puppet_submit(&p);
    puppet_complete(worker, 1);
    BHT_LT(worker->core.harvested, worker->core.published);
    puppet_dies(worker);
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    BHT_EQ(puppet_verdict(event).status, BH_OK);
    bh_event_release(event);
    bury(worker, NULL);
    puppet_close(&p);
}

/* -- where the stream waits -------------------------------------------------------------------- */

enum reason {
    NONE,
    HEALTHY,   /* it does not die */
    BUSY,      /* it has a submission */
    UNPROVEN,  /* it has completed nothing: its death costs the stream something */
    SENTENCED, /* the supervisor has killed it, for a reason that its burial is to judge */
    LYING,
    APART,    /* the stream keeps what it runs apart */
    MAKES,    /* it was asked for device memory */
    LOST,     /* its device */
    ORPHANED, /* its zygote is gone */
    LOADING,  /* it is no device's */
    REASONS,
};

/* |far|: the far end of its side channel, through which no answer comes. */
static void begin(struct puppet *p, struct bhi_worker *worker, enum reason reason, int *far) {
    int ends[2];
    BHT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    worker->fdpass = ends[0];
    *far = ends[1];
    bhi_context_lock(p->context);
    if (reason != HEALTHY) {
        puppet_dies(worker);
    }
    p->stream->core.restart.productive = reason != UNPROVEN;
    if (reason == SENTENCED) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "it is to go");
    } else if (reason == LYING) {
        bhi_core_worker_violation(&worker->core, "it lied");
    } else if (reason == MAKES) {
        struct bhi_make *make = calloc(1, sizeof *make);
        BHT_TRUE(make);
        make->worker = worker;
        bhi_list_init(&make->link);
        bhi_list_append(&worker->makes, &make->link);
    }
    p->stream->core.apart = reason == APART ? BHI_APART_CODE : BHI_APART_NOT;
    worker->core.life.loss = reason == LOST ? BHI_LOSS_REPORTED : BHI_LOSS_NONE;
    p->zygote->state = reason == ORPHANED ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
    worker->kind = reason == LOADING ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
    bhi_context_pump_unlock(p->context);
}

TEST(it_waits_where_it_must) {
    for (enum reason reason = NONE; reason < REASONS; reason++) {
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = idle_worker(&p);
        bh_event *event = reason == BUSY ? puppet_submit(&p) : NULL;
        int far;
        begin(&p, worker, reason, &far);
        (void)bhi_leave_turn(p.context);
        if ((p.stream->core.worker != &worker->core) != (reason == NONE)) {
            BHT_FAIL("reason %d: the stream %s", (int)reason,
                     reason == NONE ? "waits" : "does not wait");
        }
        if (event) {
            BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
            bh_event_release(event);
        }
        worker->kind = BHI_WORKER_DEVICE;
        puppet_close(&p);
        close(far);
    }
}

/* Its next worker dies as well, before the first one is gone: so many that the device holds on to
 * would add up. */
TEST(it_leaves_one_behind_at_a_time) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *first = idle_worker(&p);
    let_leave(&p, first);
    struct bhi_worker *second = idle_worker(&p);
    puppet_dies(second);
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &second->core);
    bury(first, NULL);
    (void)bhi_leave_turn(p.context);
    BHT_TRUE(p.stream->core.dying == &second->core);
    puppet_close(&p);
}

/* -- what the dying one may still touch -------------------------------------------------------- */

static bh_event *submit_alone(struct puppet *p) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = p->buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = BH_FOREVER,
                                 .alone = true};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(p->stream, &info, &event, NULL), BH_OK);
    return event;
}

/* The next worker is there, and a submission that is to be alone waits until it is (T3). */
TEST(what_is_to_be_alone_waits_for_the_burial) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p), *spare = puppet_worker(&p, BHI_RUNNING);
    puppet_dies(worker);
    turn(&p);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    bh_event *event = submit_alone(&p);
    BHT_EQ(spare->core.published, 0);
    bury(worker, NULL);
    BHT_EQ(spare->core.published, 1);
    puppet_complete(spare, 1);
    BHT_EQ(bh_event_wait(event, PUPPET_SECONDS), BH_OK);
    bh_event_release(event);
    puppet_close(&p);
}

/* Nobody gets memory that it has had, not even its own stream (B3). */
TEST(its_memory_waits_for_the_burial) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p);
    uint32_t size_class;
    const uint64_t bytes = bhi_pool_round(p.context->pool, 1, &size_class);
    const int fd = bhi_memfd_create("puppet", bytes, 0);
    void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(fd >= 0 && pointer != MAP_FAILED);
    bhi_context_lock(p.context);
    struct bhi_block *block = bhi_pool_adopt(p.context, size_class, fd, pointer, bytes);
    BHT_TRUE(block && bhi_pool_expose(block, worker, true));
    p.stream->runs_on.known = true;
    struct bhi_block *device = bhi_pool_order(p.stream, 64);
    BHT_TRUE(device && bhi_pool_expose(device, worker, true));
    device->fd = bhi_memfd_create("puppet", 4096, 0);
    bhi_pool_give(block);
    bhi_pool_give(device);
    bhi_context_pump_unlock(p.context);
    let_leave(&p, worker);
    struct bhi_worker *next = puppet_serving(&p);
    bool own;
    const struct bhi_pool_need of_next = {.worker = next, .size_class = size_class},
                               of_worker = {.worker = worker, .size_class = size_class},
                               on_device = {.worker = next, .device_of = p.stream, .size = 64};
    bhi_context_lock(p.context);
    BHT_TRUE(!bhi_pool_take(p.context->pool, &of_next, &own));
    BHT_TRUE(!bhi_pool_take(p.context->pool, &of_worker, &own));
    BHT_TRUE(!bhi_pool_take(p.context->device_pool, &on_device, &own));
    BHT_TRUE(!bhi_pool_is_safe(device, next));
    bhi_context_pump_unlock(p.context);
    bury(worker, NULL);
    bhi_context_lock(p.context);
    BHT_TRUE(bhi_pool_take(p.context->pool, &of_next, &own) == block);
    BHT_TRUE(bhi_pool_take(p.context->device_pool, &on_device, &own) == device);
    bhi_pool_give(block);
    bhi_pool_give(device);
    bhi_context_pump_unlock(p.context);
    puppet_close(&p);
}

/* It has no stream, and is no spare. */
TEST(it_is_nobodys_spare) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = idle_worker(&p);
    let_leave(&p, worker);
    BHT_TRUE(!bhi_spare_is_free(worker));
    p.zygote->state = BHI_ZYGOTE_STARTING; /* nobody else can be had */
    (void)bhi_assignment_turn(p.context);
    BHT_TRUE(!p.stream->core.worker);
    puppet_close(&p);
}

/* The stream goes before its burial, or the context closes: there is no line for the log. */
TEST(its_stream_goes_first) {
    for (int closes = 0; closes < 2; closes++) {
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = idle_worker(&p);
        let_leave(&p, worker);
        p.context->closed = closes;
        if (!closes) {
            bh_stream_release(p.stream);
            BHT_TRUE(!worker->core.left_by);
            p.stream = NULL;
        }
        struct bhi_obituary obituary;
        bury(worker, &obituary);
        BHT_STR_EQ(obituary.line, "");
        puppet_close(&p);
    }
}

/* -- the next spare ---------------------------------------------------------------------------- */

#define MS UINT64_C(1000000)

/* It tries to start a spare or a successor, which fails: there is no process to ask. */
static bool starts_one(struct puppet *p) {
    p->context->spare_at_ns = 0;
    (void)bhi_assignment_turn(p->context);
    return p->context->spare_at_ns != 0;
}

/* The stream goes on with a spare. While its first job runs, no other spare is started. */
TEST(no_spare_starts_beside_the_first_job) {
    struct puppet p;
    puppet_open(&p);
    p.context->settings.spares = 1;
    struct bhi_worker *worker = idle_worker(&p), *spare = puppet_worker(&p, BHI_RUNNING);
    const uint64_t before_ns = bhi_now_ns();
    let_leave(&p, worker);
    BHT_GE(p.context->way_until_ns, before_ns + 20 * MS);
    const uint64_t until_ns = p.context->way_until_ns = bhi_now_ns() + PUPPET_SECONDS;
    BHT_TRUE(bhi_assignment_turn(p.context) == until_ns);
    BHT_TRUE(p.stream->core.worker == &spare->core);
    BHT_TRUE(!starts_one(&p));
    p.context->way_until_ns = before_ns;
    BHT_TRUE(starts_one(&p));
    bury(worker, NULL);
    puppet_close(&p);
}

/* A stream whose worker runs one submission gets the next worker all the same (E16). */
TEST(a_successor_does_not_wait_for_it) {
    struct puppet p;
    puppet_open(&p);
    p.context->settings.spares = 0;
    struct bhi_worker *worker = puppet_serving(&p);
    p.context->way_until_ns = bhi_now_ns() + PUPPET_SECONDS;
    BHT_TRUE(!starts_one(&p));
    p.stream->core.apart = BHI_APART_ALL;
    worker->core.past.used = true;
    BHT_TRUE(starts_one(&p));
    puppet_close(&p);
}

/* Streams that lose workers all the time do not keep others from having spares. */
TEST(pauses_are_a_fifth_of_the_time) {
    struct puppet p;
    puppet_open(&p);
    const uint64_t from_ns = 7 * MS;
    bhi_spares_make_way(p.context, from_ns);
    BHT_EQ(p.context->way_until_ns, from_ns + 20 * MS);
    bhi_spares_make_way(p.context, from_ns + 10 * MS);
    bhi_spares_make_way(p.context, from_ns + 100 * MS - 1);
    BHT_EQ(p.context->way_until_ns, from_ns + 20 * MS);
    bhi_spares_make_way(p.context, from_ns + 100 * MS);
    BHT_EQ(p.context->way_until_ns, from_ns + 120 * MS);
    puppet_close(&p);
}

/* A death in mid-job makes way, too; that of a worker that was meant for one job does not. A spare
 * that dies while it starts is not started again at once. */
TEST(what_a_burial_puts_off) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p), *spare = puppet_worker(&p, BHI_HELD);
    p.stream->core.apart = BHI_APART_ALL;
    bhi_spares_worker_gone(worker, MS);
    BHT_EQ(p.context->way_until_ns, 0);
    p.stream->core.apart = BHI_APART_NOT;
    bhi_spares_worker_gone(worker, MS);
    BHT_EQ(p.context->way_until_ns, 21 * MS);
    BHT_EQ(p.context->spare_at_ns, 0);
    bhi_spares_worker_gone(spare, MS);
    BHT_EQ(p.context->spare_at_ns, 1001 * MS);
    puppet_close(&p);
}
