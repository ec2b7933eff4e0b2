/* The supervisor's duties, as the reactor and the threads that wait have them. */
#include "trust.h"

#include <stdlib.h>

/* -- results -------------------------------------------------------------------------------------
 */

/* How long |outcome| says that the device was busy: all of the time that there was, or a bit more.
 * Returns what there was. */
static uint64_t device_time(const struct world *world, const struct record *record,
                            struct bhi_outcome *outcome) {
    const uint64_t begin =
        outcome->started_ns > record->published_ns ? outcome->started_ns : record->published_ns;
    const bool timed = world->lives[record->work].core->reports_device_time;
    const uint64_t most_ns = timed && outcome->ended_ns > begin ? outcome->ended_ns - begin : 0;
    outcome->device_ns = outcome->status == BH_CANCELLED ? 0 : most_ns + record->claims;
    return most_ns;
}

/* Tells the oracle, then the core. False: it violated. */
static bool take_result(struct world *world, struct worker *worker) {
    struct record *record = &worker->records[worker->core.harvested + 1];
    struct opinion *opinion = &world->oracle.works[record->work];
    struct bhi_outcome outcome = record->result;
    outcome.worker_pid = worker->core.pid;
    /* Its own clock is not to be trusted. */
    if (record->work % 5 == 0) {
        outcome.started_ns = 0;
    }
    if (record->work % 3 == 0 && worker->published == worker->core.harvested + 1) {
        outcome.ended_ns = 0;
    }
    const uint64_t most_ns = device_time(world, record, &outcome);
    bool skipped = outcome.status == BH_CANCELLED, aborted = outcome.status == BH_DEADLINE;
    bool lie = (skipped && !record->withdrawn) || (aborted && !record->stop_requested) ||
               outcome.device_ns > most_ns;
    FAIL_IF(world, skipped && !lie && !opinion->end_requested && !opinion->doomed, "E5",
            "#%d was withdrawn for no reason", record->work);
    if (aborted && !lie) {
        struct due due = {.status = record->stopped_for_deadline ? BH_DEADLINE : BH_CANCELLED,
                          .executed = BH_EXECUTED_UNKNOWN,
                          .origin = NOBODY,
                          .anyhow = true,
                          .cause = NO_CAUSE};
        due.cause.worker_pid = worker->core.pid;
        due.cause.blame = trust_blame(worker, record->work, due.status);
        if (record->stopped_for_deadline) {
            due.cause.limit = world->program->works[record->work].deadline_ms * MS;
        }
        oracle_expect(world, record->work, &due);
        world->lives[record->work].recorded_ok = false;
        worker->productive = true;
        tally(TALLY_ABORTED);
    } else if (!lie) {
        oracle_expect(
            world, record->work,
            &(struct due){.status = outcome.status,
                          .executed = outcome.executed,
                          .origin = NOBODY,
                          .anyhow = true,
                          .cause = {.exit_code = -1,
                                    .vk_result = outcome.vk_result,
                                    .sys_errno = outcome.sys_errno,
                                    .blame = trust_blame(worker, record->work, outcome.status),
                                    .worker_pid = worker->core.pid,
                                    .command_index = outcome.command_index}});
        world->lives[record->work].recorded_ok = outcome.status == BH_OK;
        worker->productive |= !skipped;
    }
    bool taken = bhi_core_worker_result(&worker->core, &outcome);
    worker->caught |= lie;
    FAIL_IF(world, taken == lie, "E12", "the result of #%d is %s", record->work,
            lie ? "a lie, and taken" : "not taken");
    return taken;
}

bool supervise_harvest(struct world *world, struct worker *worker) {
    struct bhi_core_worker *core_worker = &worker->core;
    FAIL_IF(world, core_worker->life.violated != worker->caught, "E12",
            "the protocol violation of worker %d is %s", core_worker->pid,
            worker->caught ? "forgotten" : "made up");
    if (core_worker->life.violated || core_worker->harvested == core_worker->published) {
        return false;
    }
    if (worker->lie_pending) {
        worker->caught = true;
        bhi_core_worker_violation(core_worker, "its progress is impossible");
        return true;
    }
    if (worker->completed == core_worker->harvested) {
        return false;
    }
    world_trace(world, "  harvest of worker %d", core_worker->pid);
    struct bhi_core_stream *stream = core_worker->stream;
    if (stream) {
        world_core_ops.ref_stream(stream);
    }
    while (!world->failed && core_worker->harvested < worker->completed) {
        struct record *record = &worker->records[core_worker->harvested + 1];
        uint64_t before = core_worker->harvested;
        if (bhi_core_worker_skip(core_worker)) {
            worker->skipped_ns = world->now_ns;
            FAIL_IF(world, !record->certain, "E12", "the result of #%d is passed over",
                    record->work);
        } else if (record->certain) {
            world_fail(world, "E1", "#%d has ended and its result is asked for", record->work);
        } else if (!take_result(world, worker)) {
            break;
        }
        FAIL_IF(world, record->withdrawn != record->cleared, "E12",
                "number %llu of worker %d stays withdrawn", (unsigned long long)before + 1,
                core_worker->pid);
        FAIL_IF(world, core_worker->harvested != before + 1, "order",
                "after number %llu comes %llu", (unsigned long long)before,
                (unsigned long long)core_worker->harvested);
    }
    bhi_core_worker_settle(core_worker);
    worker->end_watched = core_worker->queue_waits;
    BHI_LIST_EACH(node, &core_worker->inflight)
    worker->end_watched |= BHI_CONTAINER(node, struct bhi_submission, link)->end_watched;
    if (stream) {
        world_unref_stream(stream);
    }
    return true;
}

/* -- deadlines -----------------------------------------------------------------------------------
 */

/* It was told to end it, and has had its time. */
static void check_unheard(struct world *world, const struct worker *worker) {
    for (uint64_t seq = worker->core.harvested + 1; seq <= worker->published; seq++) {
        const struct record *record = &worker->records[seq];
        uint64_t grace_ns = world->program->streams[worker->stream].grace_ms * MS;
        bool runs = worker->current == seq || worker_turn(worker) == seq;
        FAIL_IF(world,
                record->stop_requested && runs && world->now_ns - record->told_ns >= grace_ns &&
                    !world->lives[record->work].ended,
                "E9", "#%d was told to end, and nothing comes of it", record->work);
    }
}

/* What runs has been over its deadline at this look, and was at an earlier one seen to run. */
static void check_overdue(struct world *world, const struct worker *worker) {
    if (worker->core.life.kill != BHI_KILL_NONE || !worker->current ||
        worker->phase == PHASE_BEFORE || worker->current <= worker->core.harvested) {
        return;
    }
    const struct record *record = &worker->records[worker->current];
    const struct work *work = &world->program->works[record->work];
    if (record->stop_requested) {
        check_unheard(world, worker);
        return;
    }
    uint32_t limit_ms = work->deadline_ms;
    bool first = worker->current == worker->core.harvested + 1;
    uint64_t since_ns = first ? worker->begun_ns : worker->seen_ns;
    /* Without markers nobody can know which of those that it has taken runs. */
    if (!first && (!worker->merged || worker->seen_of != worker->current)) {
        return;
    }
    if (worker->phase == PHASE_COMPILING || (work->cold && work->compiles)) {
        const uint64_t ns = world->program->streams[worker->stream].compile_ms * MS;
        const bool used = !worker_is_starved(worker) && world->now_ns - worker->saw_ns >= ns;
        limit_ms = world->program->streams[worker->stream].compile_ms;
        limit_ms *= used || limit_ms == NO_DEADLINE ? 1 : 4;
        since_ns = worker->compiling_ns;
    } else if (work->cold) {
        if (worker->ran_of != worker->current) {
            return;
        }
        since_ns = worker->ran_ns;
    }
    if (worker->skipped_ns > since_ns) {
        since_ns = worker->skipped_ns;
    }
    if (limit_ms != NO_DEADLINE && world->now_ns - since_ns >= limit_ms * MS) {
        world_fail(world, "E9", "#%d is over its deadline, and is not ended", record->work);
    } else if (world->oracle.works[record->work].end_requested &&
               !world->lives[record->work].ended) {
        world_fail(world, "E9", "#%d was cancelled and runs on", record->work);
    }
}

bool supervise_look(struct world *world) {
    world->armed_ns = BH_FOREVER;
    world_trace(world, "  look at %llu us", (unsigned long long)(world->now_ns / 1000));
    for (struct worker *worker = world->workers; worker && !world->failed; worker = worker->next) {
        supervise_harvest(world, worker);
        world_settle(world);
        const struct bhi_progress_snapshot snapshot = worker_snapshot(worker);
        if (snapshot.compiles && !snapshot.compile_ended && worker->saw_of != snapshot.compiles) {
            worker->saw_of = snapshot.compiles;
            worker->saw_ns = world->now_ns;
        }
        uint64_t when = bhi_core_worker_deadline(&worker->core, world->now_ns, &snapshot);
        world_core_ops.arm(&world->core, when);
        check_overdue(world, worker);
        if (worker->current && worker->phase > PHASE_COMPILING &&
            worker->compiles == worker->current && worker->ran_of != worker->current) {
            worker->ran_of = worker->current;
            worker->ran_ns = world->now_ns;
        }
        if (worker->merged && worker->current && worker->seen_of != worker->current &&
            worker->phase != PHASE_BEFORE) {
            worker->seen_of = worker->current;
            worker->seen_ns = world->now_ns;
        }
        world_settle(world);
    }
    return true;
}

/* -- assignment ----------------------------------------------------------------------------------
 */

bool supervise_assign(struct world *world, uint32_t index, uint32_t arg) {
    struct world_stream *stream = world->streams[index];
    if (!stream || world->closed || stream->core.state != BHI_STREAM_WANTING ||
        stream->core.worker || stream->core.restart.not_before_ns > world->now_ns) {
        return false;
    }
    bh_detail why = {.status = BH_UNAVAILABLE, .message = "no worker to be had"};
    const bool no_device = arg % 64 == 1;
    if (no_device || arg % 8 == 2) {
        world_trace(world, "  stream %u: no %s", index, no_device ? "device" : "worker to be had");
        losses_begin(world, (int)index, no_device ? NO_DEVICE : UNAVAILABLE);
        if (no_device) {
            why.status = BH_NO_DEVICE;
            bhi_stream_unavailable(&stream->core, &why, false);
        } else {
            bhi_stream_lost_worker(&stream->core, false, &why);
            losses_check_backoff(world, (int)index, false, false);
            losses_check_budget(world, (int)index, false, true);
        }
        losses_end(world, (int)index);
        return true;
    }
    struct worker *worker =
        calloc(1, sizeof *worker + (world->program->work_count + 2) * sizeof worker->records[0]);
    if (!worker) {
        abort();
    }
    bhi_core_worker_init(&worker->core, &world->core);
    worker->core.pid = (int32_t)(100 + ++world->pids);
    const uint64_t kind = model_mix(world->program->seed ^ (uint64_t)worker->core.pid);
    worker->core.can_abort = kind % 4 != 0;
    worker->ignores_stop = kind / 4 % 4 == 0;
    worker->stream = (int)index;
    worker->left = NOBODY;
    worker->next = world->workers;
    world->workers = world->serving[index] = worker;
    world_trace(world, "  stream %u gets worker %d", index, worker->core.pid);
    bhi_stream_bind(&stream->core, &worker->core);
    return arg % 2 || supervise_ready(world, index);
}

bool supervise_ready(struct world *world, uint32_t index) {
    struct worker *worker = world->serving[index];
    if (!worker || worker->ready || worker->dead || worker->stopped ||
        worker->core.life.kill != BHI_KILL_NONE) {
        return false;
    }
    worker->ready = true;
    worker->ready_ns = world->now_ns;
    (void)bhi_life_born(&worker->core.life, false, world->now_ns);
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_HELLO, world->now_ns);
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_READY, world->now_ns);
    world_trace(world, "  worker %d is ready", worker->core.pid);
    world->streams[index]->row = 0;
    bhi_stream_served(&world->streams[index]->core);
    FAIL_IF(world, world->streams[index]->core.trouble.status != BH_OK, "budget",
            "stream %u is served and still in trouble", index);
    return true;
}

/* -- the end -------------------------------------------------------------------------------------
 */

bool supervise_close(struct world *world) {
    if (world->closed) {
        return false;
    }
    world->closed = true;
    while (world->workers && !world->failed) {
        worker_die(world, world->workers, 1);
        burial_bury(world, world->workers);
    }
    for (int index = 0; index < STREAMS && !world->failed; index++) {
        struct world_stream *stream = world->streams[index];
        if (!stream) {
            continue;
        }
        losses_begin(world, index, oracle_status_bit(BH_CONTEXT_CLOSED));
        bhi_stream_end_queued(&stream->core, BH_CONTEXT_CLOSED, "the context was destroyed");
        world_unref_stream(&stream->core);
    }
    return true;
}
