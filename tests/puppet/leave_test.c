/* A stream goes on without its dying worker where nothing is lost by that, and waits for the burial
 * where something is (decision 4). The worker here is a struct: it is dying for as long as the
 * test wants, as on a GPU whose driver does not let go of it. */
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
#include <sys/socket.h>
#include <unistd.h>

/* The worker of |puppet.stream| has completed a submission, and has nothing to do. */
static struct bhi_worker *idle_worker(void) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    puppet_complete(worker, 1);
    fx_expect(event, BH_OK);
    return worker;
}

static void turn(void) {
    (void)bhi_leave_turn(puppet.context);
    (void)bhi_assignment_turn(puppet.context);
}

/* It dies, which has not been confirmed, and leaves. */
static void let_leave(struct bhi_worker *worker) {
    puppet.stream->anywhere = true;
    puppet_dies(worker);
    (void)bhi_leave_turn(puppet.context);
    BHT_TRUE(puppet.stream->core.dying == &worker->core);
    BHT_TRUE(!puppet.stream->placed);
    puppet.stream->anywhere = false;
    puppet.stream->placed = true;
}

TEST(a_spare_takes_over_before_the_burial) {
    struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
    turn();
    BHT_TRUE(puppet.stream->core.worker == &worker->core); /* it is well */
    puppet_dies(worker);
    turn();
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    BHT_EQ(worker->core.life.kill, BHI_KILL_LEFT);
    BHT_EQ(puppet.stream->core.stats.deaths, 1);
    BHT_EQ(puppet.stream->core.stats.restarts, 1);
    bh_event *event = puppet_submit();
    puppet_complete(spare, 1);
    fx_expect(event, BH_OK);
    char text[4096];
    bh_context_describe(puppet.context, text, sizeof text);
    BHT_STR_HAS(text, "dying; stream \"one\" has gone on without it");
    puppet_killed(worker, SIGKILL);
    BHT_STR_HAS(puppet.obituary.line,
                "stream one: worker 4242 died while it was idle: worker 4242 was "
                "killed by SIGKILL");
    BHT_TRUE(!puppet.stream->core.dying);
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    BHT_EQ(puppet.stream->core.stats.deaths, 1); /* E9: not twice */
}

TEST(a_process_is_counted_by_how_far_it_has_come) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    for (uint32_t state = BHI_SPAWNING; state <= BHI_CONFIRMED; state++) {
        bh_stats expected = {.processes = {{0}}};
        expected.processes[BH_PROCESS_SPARE][state < BHI_RUNNING    ? BH_PROCESS_STARTING
                                             : state == BHI_RUNNING ? BH_PROCESS_READY
                                             : state <= BHI_KILLED  ? BH_PROCESS_ENDING
                                                                    : BH_PROCESS_ENDED] = 1;
        expected.processes[BH_PROCESS_ZYGOTE][BH_PROCESS_READY] = 1;
        worker->core.life.state = (enum bhi_life_state)state;
        const bh_stats stats = fx_stats(puppet.context);
        BHT_MEM_EQ(stats.processes, expected.processes, sizeof stats.processes);
    }
    worker->core.life.state = BHI_RUNNING;
}

/* Its side channel has hung up: that alone is no death, for it may only have closed it. */
TEST(a_hung_up_one_must_be_seen_to_end) {
    for (int ends = 0; ends < 2; ends++) {
        puppet_again();
        struct bhi_worker *worker = idle_worker();
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
        puppet.zygote->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        worker->place = (struct bhi_proc_place){puppet.zygote->proc, false, pid};
        bhi_sentinel_hung_up(worker);
        (void)bhi_leave_turn(puppet.context);
        BHT_EQ(puppet.stream->core.dying == &worker->core, ends);
        BHT_EQ(kill(pid, SIGKILL), 0);
        BHT_EQ(waitpid(pid, NULL, 0), pid);
    }
}

/* It has ended, and its zygote has not said how. */
TEST(its_exit_status_is_not_awaited) {
    struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
    bhi_life_exit(&worker->core.life, 0, bhi_now_ns());
    turn();
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    puppet_killed(worker, SIGKILL);
}

/* What it recorded counts, and so nothing is under way: the event is READY before anybody has
 * looked at it (E11). */
TEST(what_it_recorded_counts) {
    struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
    bh_event *event = puppet_submit();
    puppet_complete(worker, 1);
    BHT_LT(worker->core.harvested, worker->core.published);
    puppet_dies(worker);
    turn();
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    fx_expect(event, BH_OK);
    puppet_killed(worker, SIGKILL);
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
    STARTING, /* it never served: its start has failed */
    REASONS,
};

/* |far|: the far end of its side channel, through which no answer comes. */
static void begin(struct bhi_worker *worker, enum reason reason, int *far) {
    int ends[2];
    BHT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    worker->fdpass = ends[0];
    *far = ends[1];
    bhi_context_lock(puppet.context);
    if (reason != HEALTHY) {
        puppet_dies(worker);
    }
    worker->core.life.came_to = reason == STARTING ? BHI_HELD : BHI_RUNNING;
    puppet.stream->core.restart.productive = reason != UNPROVEN;
    if (reason == SENTENCED) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "it is to go");
    } else if (reason == LYING) {
        bhi_core_worker_violation(&worker->core, "it lied");
    } else if (reason == MAKES) {
        struct bhi_make *make = calloc(1, sizeof *make);
        BHT_TRUE(make);
        make->worker = worker;
        worker->owes_since_ns = bhi_now_ns();
        bhi_list_init(&make->link);
        bhi_list_append(&worker->makes, &make->link);
    }
    puppet.stream->core.apart = reason == APART ? BHI_APART_CODE : BHI_APART_NOT;
    worker->core.life.loss = reason == LOST ? BHI_LOSS_REPORTED : BHI_LOSS_NONE;
    puppet.zygote->state = reason == ORPHANED ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
    worker->kind = reason == LOADING ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
    bhi_context_pump_unlock(puppet.context);
}

TEST(it_waits_where_it_must) {
    for (enum reason reason = NONE; reason < REASONS; reason++) {
        puppet_again();
        struct bhi_worker *worker = idle_worker();
        bh_event *event = reason == BUSY ? puppet_submit() : NULL;
        int far;
        begin(worker, reason, &far);
        (void)bhi_leave_turn(puppet.context);
        if ((puppet.stream->core.worker != &worker->core) != (reason == NONE)) {
            BHT_FAIL("reason %d: the stream %s", (int)reason,
                     reason == NONE ? "waits" : "does not wait");
        }
        if (event) {
            BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
        }
        worker->kind = BHI_WORKER_DEVICE;
        close(far);
    }
}

/* Its next worker dies as well, before the first one is gone: so many that the device holds on to
 * would add up. */
TEST(it_leaves_one_behind_at_a_time) {
    struct bhi_worker *first = idle_worker();
    let_leave(first);
    struct bhi_worker *second = idle_worker();
    puppet_dies(second);
    turn();
    BHT_TRUE(puppet.stream->core.worker == &second->core);
    puppet_killed(first, SIGKILL);
    (void)bhi_leave_turn(puppet.context);
    BHT_TRUE(puppet.stream->core.dying == &second->core);
}

/* -- what the dying one may still touch -------------------------------------------------------- */

static bh_event *submit_alone(void) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = puppet.buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = BH_FOREVER,
                                 .alone = true};
    return fx_submit(puppet.stream, &info);
}

/* The next worker is there, and a submission that is to be alone waits until it is (T3). */
TEST(what_is_to_be_alone_waits_for_the_burial) {
    for (int by_code = 0; by_code < 2; by_code++) { /* or apart from other code alone */
        puppet_again();
        struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
        puppet_dies(worker);
        turn();
        BHT_TRUE(puppet.stream->core.worker == &spare->core);
        puppet.stream->core.apart = by_code ? BHI_APART_CODE : BHI_APART_NOT;
        bh_event *event = by_code ? puppet_submit() : submit_alone();
        BHT_EQ(spare->core.published, 0);
        puppet_killed(worker, SIGKILL);
        BHT_EQ(spare->core.published, 1);
        puppet_complete(spare, 1);
        fx_expect(event, BH_OK);
    }
}

/* Nobody gets memory that it has had, not even its own stream (B3). */
TEST(its_memory_waits_for_the_burial) {
    struct bhi_worker *worker = idle_worker();
    struct bhi_pool_need of_next, on_device;
    bhi_context_lock(puppet.context);
    struct bhi_block *block = puppet_block(false, &of_next);
    BHT_TRUE(bhi_pool_expose(block, worker, true));
    puppet.stream->runs_on.known = true;
    struct bhi_block *device = puppet_block(true, &on_device);
    BHT_TRUE(bhi_pool_expose(device, worker, true));
    bhi_pool_give(block);
    bhi_pool_give(device);
    bhi_context_pump_unlock(puppet.context);
    let_leave(worker);
    struct bhi_worker *next = puppet_serving();
    bool own;
    struct bhi_pool_need of_worker = of_next;
    of_worker.worker = worker;
    of_next.worker = on_device.worker = next;
    bhi_context_lock(puppet.context);
    BHT_TRUE(!bhi_pool_take(puppet.context->pool, &of_next, &own));
    BHT_TRUE(!bhi_pool_take(puppet.context->pool, &of_worker, &own));
    BHT_TRUE(!bhi_pool_take(puppet.context->device_pool, &on_device, &own));
    BHT_TRUE(!bhi_pool_is_safe(device, next));
    bhi_context_pump_unlock(puppet.context);
    puppet_killed(worker, SIGKILL);
    bhi_context_lock(puppet.context);
    BHT_TRUE(bhi_pool_take(puppet.context->pool, &of_next, &own) == block);
    BHT_TRUE(bhi_pool_take(puppet.context->device_pool, &on_device, &own) == device);
    bhi_pool_give(block);
    bhi_pool_give(device);
    bhi_context_pump_unlock(puppet.context);
}

/* It has no stream, and is no spare. */
TEST(it_is_nobodys_spare) {
    struct bhi_worker *worker = idle_worker();
    let_leave(worker);
    BHT_TRUE(!bhi_spare_is_free(worker));
    puppet.zygote->state = BHI_ZYGOTE_STARTING; /* nobody else can be had */
    (void)bhi_assignment_turn(puppet.context);
    BHT_TRUE(!puppet.stream->core.worker);
}

/* The stream goes before its burial, or the context closes: there is no line for the log. */
TEST(its_stream_goes_first) {
    for (int closes = 0; closes < 2; closes++) {
        puppet_again();
        struct bhi_worker *worker = idle_worker();
        let_leave(worker);
        puppet.context->closed = closes;
        if (!closes) {
            bh_stream_release(puppet.stream);
            BHT_TRUE(!worker->core.left_by);
        }
        puppet_killed(worker, SIGKILL);
        BHT_STR_EQ(puppet.obituary.line, "");
    }
}

#define MS UINT64_C(1000000)

/* -- with work: what its device still does is bounded (C3) ----------------------------------------- */

/* Its process has ended, as |signal| does; its device is held. */
static void ends_held(struct bhi_worker *worker, int signal) {
    worker->core.confined = worker->core.life.holds = true;
    bhi_life_exit(&worker->core.life, 0, bhi_now_ns());
    if (signal) {
        bhi_life_ended(&worker->core.life, CLD_KILLED, signal);
    }
}

static void hear(bh_log_level level, const char *line, void *user) {
    BHT_EQ(level, BH_LOG_WARNING);
    BHT_STR_HAS(line, "stream one: ");
    (void)user;
}

/* The second submission has not begun, so the spare runs it (E13). The verdict is that of a burial. */
TEST(what_a_confined_worker_had_is_judged_before_its_burial) {
    static const struct {
        enum bhi_kill kill;
        int signal;
        bh_status status;
    } rows[] = {
        {BHI_KILL_NONE, SIGKILL, BH_WORKER_SIGNAL},
        {BHI_KILL_NONE, SIGSEGV, BH_WORKER_SIGNAL},
        {BHI_KILL_DEADLINE, SIGKILL, BH_DEADLINE},
        {BHI_KILL_CANCEL, SIGKILL, BH_CANCELLED},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_verdict verdicts[2];
        for (int departs = 0; departs < 2; departs++) {
            puppet_again();
            struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
            bh_event *lost = puppet_submit(), *next = puppet_submit();
            puppet_begins(worker, 2);
            if (rows[i].kill != BHI_KILL_NONE) {
                bhi_context_lock(puppet.context);
                bhi_core_worker_kill(&worker->core, rows[i].kill, bh_event_id(lost), "late");
                bhi_context_pump_unlock(puppet.context);
                worker->core.life.state = BHI_KILLED; /* it was born */
            }
            ends_held(worker, rows[i].signal);
            worker->core.confined = departs;
            puppet.context->settings.log = hear;
            turn();
            BHT_EQ(puppet.context->line_count, departs);
            BHT_EQ(puppet.context->way_until_ns > 0, departs); /* no spare is started meanwhile */
            bhi_context_log_said(puppet.context);
            BHT_EQ(bh_event_query(lost), departs ? BH_EVENT_POISONED : BH_EVENT_PENDING);
            BHT_EQ(puppet.stream->core.worker == &spare->core, departs);
            BHT_EQ(puppet.stream->core.dying == &worker->core, departs);
            if (departs) {
                puppet_complete(spare, 1);
                fx_expect(next, BH_OK);
            }
            const uint64_t deaths = fx_stats(puppet.context).deaths[rows[i].status];
            BHT_EQ(deaths, departs);
            puppet_killed(worker, rows[i].signal);
            BHT_EQ(fx_stats(puppet.context).deaths[rows[i].status], 1);
            BHT_EQ(puppet.stream->core.stats.deaths, 1);
            BHT_EQ(puppet.obituary.line[0] == 0, departs); /* it has been said */
            BHT_TRUE(!puppet.stream->core.dying);
            verdicts[departs] = fx_verdict(lost);
            BHT_EQ(verdicts[departs].status, rows[i].status);
            BHT_EQ(verdicts[departs].executed, BH_EXECUTED_UNKNOWN);
        }
        BHT_STR_EQ(verdicts[0].message, verdicts[1].message);
        BHT_EQ(verdicts[0].blame, verdicts[1].blame);
        BHT_EQ(verdicts[0].signal, verdicts[1].signal);
    }
}

/* It has to be known how it ended, and that it kept to its rules; it is one at a time. */
TEST(a_confined_worker_waits_for_its_burial_where_more_is_open) {
    enum { STATUS_UNKNOWN, NOT_HELD, LIED, OWES, PINNED, ZYGOTE_LOST, SECOND, CLOSED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = idle_worker();
        bh_event *event = puppet_submit();
        struct bhi_make make = {.worker = worker};
        int far;
        bhi_list_init(&make.link);
        begin(worker, HEALTHY, &far);
        puppet_begins(worker, 2);
        ends_held(worker, way == STATUS_UNKNOWN ? 0 : SIGKILL);
        worker->core.life.state = way == NOT_HELD ? BHI_EXITED : BHI_HOLDING;
        worker->core.life.violated = way == LIED;
        atomic_store(&puppet_side(worker)->markers->pinned, way == PINNED);
        if (way == OWES) {
            bhi_list_append(&worker->makes, &make.link);
        }
        puppet.zygote->state = way == ZYGOTE_LOST ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
        puppet.context->closed = way == CLOSED;
        struct bhi_worker *before = puppet_worker(BHI_RUNNING);
        if (way == SECOND) {
            puppet.stream->core.dying = &before->core;
        }
        (void)bhi_leave_turn(puppet.context);
        BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
        puppet.stream->core.dying = NULL;
        bhi_list_remove(&make.link);
        close(far);
        puppet.zygote->state = BHI_ZYGOTE_READY;
        puppet.context->closed = false;
        puppet_killed(worker, SIGKILL);
        BHT_EQ(bh_event_query(event), BH_EVENT_POISONED);
    }
}

/* Like the stream of an idle worker, it may go on with another device. */
TEST(a_departed_workers_stream_is_placed_anew) {
    struct bhi_worker *worker = idle_worker();
    (void)puppet_submit();
    puppet_begins(worker, 2);
    ends_held(worker, SIGKILL);
    puppet.stream->anywhere = true;
    BHT_TRUE(bhi_leave_turn(puppet.context)); /* there is something to assign */
    BHT_TRUE(worker->core.departed);
    BHT_TRUE(!puppet.stream->placed);
    puppet.stream->anywhere = false;
    puppet.stream->placed = true;
    puppet_killed(worker, SIGKILL);
}

/* E9: its zygote does not say how it ended. The process has ended, all the same. */
TEST(a_confined_worker_is_judged_although_its_zygote_is_silent) {
    struct bhi_worker *worker = idle_worker();
    bh_event *event = puppet_submit();
    puppet_begins(worker, 2);
    ends_held(worker, 0);
    (void)bhi_leave_turn(puppet.context);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    worker->core.life.due_ns = BH_FOREVER;
    BHT_EQ(bhi_burial_turn(puppet.context), worker->core.life.exited_ns + 2000 * MS);
    worker->core.life.exited_ns -= 2000 * MS;
    (void)bhi_leave_turn(puppet.context);
    BHT_EQ(fx_verdict(event).status, BH_ZYGOTE_LOST);
    worker->core.life.exit_kind = 0;
    puppet_killed(worker, SIGKILL);
}

/* The zygote is told to release a dead worker's device as soon as nobody gains by its being held. */
TEST(a_device_is_held_while_its_stream_goes_on) {
    static const struct {
        bool confined, known, violated, pinned, closed;
        bool awaited; /* a block, by another stream */
        enum bhi_life_state becomes;
    } rows[] = {
        {.becomes = BHI_TOLD},
        {.known = true, .becomes = BHI_TOLD},
        {.confined = true, .becomes = BHI_HOLDING}, /* until its status comes */
        {.confined = true, .violated = true, .becomes = BHI_TOLD},
        {.confined = true, .closed = true, .becomes = BHI_TOLD},
        {.confined = true, .known = true, .becomes = BHI_HOLDING}, /* it has departed */
        {.confined = true, .known = true, .closed = true, .becomes = BHI_TOLD},
        {.confined = true, .known = true, .violated = true, .becomes = BHI_TOLD},
        {.confined = true, .known = true, .pinned = true, .becomes = BHI_TOLD},
        {.confined = true, .known = true, .awaited = true, .becomes = BHI_TOLD},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = idle_worker();
        struct bhi_pool_need need;
        (void)puppet_submit();
        puppet_begins(worker, 2);
        ends_held(worker, rows[i].known ? SIGKILL : 0);
        worker->core.confined = rows[i].confined;
        worker->core.life.violated = rows[i].violated;
        atomic_store(&puppet_side(worker)->markers->pinned, rows[i].pinned);
        worker->core.life.due_ns = BH_FOREVER; /* not by its time */
        puppet.context->closed = rows[i].closed;
        (void)bhi_leave_turn(puppet.context);
        bhi_context_lock(puppet.context);
        puppet.stream->runs_on.known = true;
        struct bhi_block *block = puppet_block(true, &need), *other = puppet_block(true, &need);
        BHT_TRUE(bhi_pool_expose(block, worker, true) && bhi_pool_expose(other, worker, true));
        bhi_pool_writes_on(block, worker);
        BHT_TRUE(!bhi_pool_await_writes(other));
        if (rows[i].awaited) {
            BHT_TRUE(bhi_pool_await_writes(block) && puppet.context->wake_reactor);
        }
        bhi_context_pump_unlock(puppet.context);
        (void)bhi_burial_turn(puppet.context);
        if (worker->core.life.state != rows[i].becomes) {
            BHT_FAIL("row %zu: its state is %d", i, (int)worker->core.life.state);
        }
        puppet.context->closed = false;
        puppet_killed(worker, SIGKILL);
        bhi_context_lock(puppet.context);
        bhi_pool_give(block);
        bhi_pool_give(other);
        bhi_context_pump_unlock(puppet.context);
    }
}

/* Of several departed workers that may still write it, all are waited for (C3). */
TEST(memory_waits_for_each_departed_worker) {
    struct bhi_worker *workers[] = {idle_worker(), puppet_worker(BHI_RUNNING)};
    struct bhi_pool_need need;
    bhi_context_lock(puppet.context);
    struct bhi_block *block = puppet_block(true, &need);
    for (size_t i = 0; i < BHT_COUNT(workers); i++) {
        BHT_TRUE(bhi_pool_expose(block, workers[i], true));
    }
    for (size_t i = 0; i < BHT_COUNT(workers); i++) {
        bhi_pool_writes_on(block, workers[i]);
    }
    BHT_TRUE(bhi_pool_await_writes(block));
    for (size_t i = 0; i < BHT_COUNT(workers); i++) {
        BHT_TRUE(workers[i]->awaited);
        workers[i]->awaited = false;
    }
    bhi_context_pump_unlock(puppet.context);
    for (size_t i = 0; i < BHT_COUNT(workers); i++) {
        puppet_killed(workers[i], SIGKILL);
    }
    bhi_context_lock(puppet.context);
    bhi_pool_give(block);
    bhi_context_pump_unlock(puppet.context);
}

/* Nothing goes on where it served no stream. */
TEST(a_device_of_no_stream_is_not_held) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    ends_held(spare, 0);
    spare->core.life.due_ns = BH_FOREVER;
    (void)bhi_burial_turn(puppet.context);
    BHT_EQ(spare->core.life.state, BHI_TOLD);
    puppet_killed(spare, SIGKILL);
}

/* Its next worker is there; what is to be alone waits until its own last one is dead (T3). */
TEST(what_is_to_be_alone_waits_for_a_departed_worker) {
    struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
    (void)puppet_submit();
    puppet_begins(worker, 2);
    bh_event *event = submit_alone();
    ends_held(worker, SIGKILL);
    turn();
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    BHT_EQ(spare->core.published, 0);
    puppet_killed(worker, SIGKILL);
    BHT_EQ(spare->core.published, 1);
    puppet_complete(spare, 1);
    fx_expect(event, BH_OK);
}

/* -- the next spare ---------------------------------------------------------------------------- */

/* It tries to start a spare or a successor, which fails: there is no process to ask. */
static bool starts_one(void) {
    puppet.context->spare_at_ns = 0;
    (void)bhi_assignment_turn(puppet.context);
    return puppet.context->spare_at_ns != 0;
}

/* The stream goes on with a spare. While its first job runs, no other spare is started. */
TEST(no_spare_starts_beside_the_first_job) {
    puppet.context->settings.spares = 1;
    struct bhi_worker *worker = idle_worker(), *spare = puppet_worker(BHI_RUNNING);
    const uint64_t before_ns = bhi_now_ns();
    let_leave(worker);
    BHT_GE(puppet.context->way_until_ns, before_ns + 20 * MS);
    const uint64_t until_ns = puppet.context->way_until_ns = bhi_now_ns() + FX_SECONDS;
    BHT_TRUE(bhi_assignment_turn(puppet.context) == until_ns);
    BHT_TRUE(puppet.stream->core.worker == &spare->core);
    BHT_TRUE(!starts_one());
    puppet.context->way_until_ns = before_ns;
    BHT_TRUE(starts_one());
    puppet_killed(worker, SIGKILL);
}

/* A stream whose worker runs one submission gets the next worker all the same (E16). */
TEST(a_successor_does_not_wait_for_it) {
    puppet.context->settings.spares = 0;
    struct bhi_worker *worker = puppet_serving();
    puppet.context->way_until_ns = bhi_now_ns() + FX_SECONDS;
    BHT_TRUE(!starts_one());
    puppet.stream->core.apart = BHI_APART_ALL;
    worker->core.past.used = true;
    BHT_TRUE(starts_one());
}

/* Streams that lose workers all the time do not keep others from having spares. */
TEST(pauses_are_a_fifth_of_the_time) {
    const uint64_t from_ns = 7 * MS;
    bhi_spares_make_way(puppet.context, from_ns);
    BHT_EQ(puppet.context->way_until_ns, from_ns + 20 * MS);
    bhi_spares_make_way(puppet.context, from_ns + 10 * MS);
    bhi_spares_make_way(puppet.context, from_ns + 100 * MS - 1);
    BHT_EQ(puppet.context->way_until_ns, from_ns + 20 * MS);
    bhi_spares_make_way(puppet.context, from_ns + 100 * MS);
    BHT_EQ(puppet.context->way_until_ns, from_ns + 120 * MS);
}

/* A death in mid-job makes way, too; that of a worker that was meant for one job, is a loader, or was
 * still starting does not. A spare that dies while it starts is not started again at once. */
TEST(what_a_burial_puts_off) {
    struct bhi_worker *worker = puppet_serving(), *spare = puppet_worker(BHI_HELD);
    puppet.stream->core.apart = BHI_APART_ALL;
    bhi_spares_worker_gone(worker, MS);
    BHT_EQ(puppet.context->way_until_ns, 0);
    puppet.stream->core.apart = BHI_APART_NOT;
    worker->kind = BHI_WORKER_LOADER;
    bhi_spares_worker_gone(worker, MS);
    worker->kind = BHI_WORKER_DEVICE;
    puppet_has_come_to(worker, BHI_HELD);
    bhi_spares_worker_gone(worker, MS);
    BHT_EQ(puppet.context->way_until_ns, 0);
    puppet_has_come_to(worker, BHI_RUNNING);
    bhi_spares_worker_gone(worker, MS);
    BHT_EQ(puppet.context->way_until_ns, 21 * MS);
    puppet_end_process(spare, CLD_EXITED, 3);
    spare->kind = BHI_WORKER_SENTINEL;
    bhi_spares_worker_gone(spare, MS);
    spare->kind = BHI_WORKER_DEVICE;
    spare->core.life.kill = BHI_KILL_RETIRED;
    bhi_spares_worker_gone(spare, MS);
    spare->core.life.kill = BHI_KILL_NONE;
    BHT_EQ(puppet.context->spare_at_ns, 0);
    bhi_spares_worker_gone(spare, MS);
    BHT_EQ(puppet.context->spare_at_ns, 1001 * MS);
}
