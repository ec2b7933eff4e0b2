/* The supervisor's duties, as the reactor and the threads that wait have them. */
#include "trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (skipped && !lie && !opinion->end_requested && !opinion->doomed) {
        world_fail(world, "E5", "#%d was withdrawn for no reason", record->work);
    }
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
    if (taken == lie) {
        world_fail(world, "E12", "the result of #%d is %s", record->work,
                   lie ? "a lie, and taken" : "not taken");
    }
    return taken;
}

bool supervise_harvest(struct world *world, struct worker *worker) {
    struct bhi_core_worker *core_worker = &worker->core;
    if (core_worker->violated != worker->caught) {
        world_fail(world, "E12", "the protocol violation of worker %d is %s", core_worker->pid,
                   worker->caught ? "forgotten" : "made up");
    }
    if (core_worker->violated || core_worker->harvested == core_worker->published) {
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
            if (!record->certain) {
                world_fail(world, "E12", "the result of #%d is passed over", record->work);
            }
        } else if (record->certain) {
            world_fail(world, "E1", "#%d has ended and its result is asked for", record->work);
        } else if (!take_result(world, worker)) {
            break;
        }
        if (record->withdrawn != record->cleared) {
            world_fail(world, "E12", "number %llu of worker %d stays withdrawn",
                       (unsigned long long)before + 1, core_worker->pid);
        }
        if (core_worker->harvested != before + 1) {
            world_fail(world, "order", "after number %llu comes %llu", (unsigned long long)before,
                       (unsigned long long)core_worker->harvested);
        }
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
        if (record->stop_requested && runs && world->now_ns - record->told_ns >= grace_ns &&
            !world->lives[record->work].ended) {
            world_fail(world, "E9", "#%d was told to end, and nothing comes of it", record->work);
        }
    }
}

/* What runs has been over its deadline at this look, and was at an earlier one seen to run. */
static void check_overdue(struct world *world, const struct worker *worker) {
    if (worker->core.kill != BHI_KILL_NONE || !worker->current || worker->phase == PHASE_BEFORE ||
        worker->current <= worker->core.harvested) {
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
        limit_ms = world->program->streams[worker->stream].compile_ms;
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

/* -- deaths --------------------------------------------------------------------------------------
 */

/* Did somebody else kill it? In the model, SIGKILL comes from outside if nobody here has sent it. */
static bool was_killed_by_others(const struct worker *worker) {
    return worker->death.signal == 9 && worker->core.kill == BHI_KILL_NONE && !worker->zygote_lost;
}

/* Compiling runs no part of a kernel. */
static bool is_compiling(const struct worker *worker, uint64_t seq) {
    return !worker->caught && worker->compiles == seq && worker->runs < seq;
}

/* What a death comes to for each that was in the lane, from what physically happened. */
static bool judge(struct world *world, const struct worker *worker, bool closing) {
    const struct bhi_core_worker *core_worker = &worker->core;
    uint64_t started = worker_started(worker), culprit = 0, first = 0, target = 0;
    /* The device says that it has done one when it begins the next. */
    uint64_t running = worker->merged ? worker->current : 0;
    if (running && worker->phase == PHASE_BEFORE) {
        running = worker->marked >= worker->batch_first ? worker->marked : 0;
    }
    bool lost = false;
    for (uint64_t seq = core_worker->harvested + 1; seq <= worker->published; seq++) {
        int work = worker->records[seq].work;
        if (world->lives[work].ended) {
            continue;
        }
        first = first ? first : seq;
        if (core_worker->kill_event && world->lives[work].id == core_worker->kill_event) {
            target = seq;
        }
        if (seq == running && seq <= started) {
            culprit = seq;
        }
    }
    if (!first) {
        return false;
    }
    /* Who it was killed for is to blame, unless that has ended before the signal came. */
    if (core_worker->kill_event) {
        culprit = target;
    } else if (!culprit || worker->caught) {
        culprit = first;
    }
    /* After a protocol violation it may have run anything in its lane. */
    if (worker->caught) {
        started = worker->published;
    } else if (core_worker->kill == BHI_KILL_DEADLINE || core_worker->kill == BHI_KILL_CANCEL ||
               core_worker->kill == BHI_KILL_COMPILE) {
        started = started < culprit ? culprit : started;
    } else if (was_killed_by_others(worker) && started == culprit &&
               (is_compiling(worker, culprit) ||
                world->program->works[worker->records[culprit].work].compiles)) {
        started--; /* the next worker compiles it, and nobody is to blame for what is lost */
        culprit = 0;
    }
    bh_status status = worker->death.status;
    for (uint64_t seq = core_worker->harvested + 1; seq <= worker->published; seq++) {
        int work = worker->records[seq].work;
        if (world->lives[work].ended) {
            continue;
        }
        struct due due = {.status = status, .origin = NOBODY, .anyhow = true, .cause = NO_CAUSE};
        const struct opinion *opinion = &world->oracle.works[work];
        if (seq <= started) {
            lost = true;
            due.cause.signal = worker->death.signal;
            due.cause.exit_code = worker->death.exit_code;
            due.cause.worker_pid = core_worker->pid;
            if (seq == culprit && status == BH_DEADLINE) {
                due.cause.limit = world->program->works[work].deadline_ms * MS;
            }
            const bool compiling = is_compiling(worker, seq);
            const bool begun = worker->caught || seq <= worker_started(worker);
            due.executed = world->program->works[work].compiles || compiling || !begun
                               ? BH_EXECUTED_NO
                               : BH_EXECUTED_UNKNOWN;
            if (seq == culprit && status == BH_COMPILE_FAILED) {
                due.cause.limit = world->program->streams[worker->stream].compile_ms * MS;
            }
            if (seq == culprit && compiling &&
                (status == BH_WORKER_EXIT ||
                 (status == BH_WORKER_SIGNAL && worker->death.signal != 9))) {
                due.status = BH_COMPILE_FAILED;
                tally(TALLY_DIED_COMPILING);
            }
            bool wanted = status == BH_CANCELLED && opinion->end_requested;
            if (seq == culprit) {
                due.cause.blame = trust_blame(worker, work, due.status);
                /* Its time passed before any of it ran. */
                if (due.cause.blame == BH_BLAME_CERTAIN && due.status == BH_DEADLINE &&
                    seq > worker->kill_started) {
                    due.cause.blame = BH_BLAME_SUSPECTED;
                }
                if (was_killed_by_others(worker)) {
                    due.cause.blame = BH_BLAME_NONE;
                }
            }
            if (seq != culprit && !wanted && status != BH_CONTEXT_CLOSED &&
                status != BH_ZYGOTE_LOST) {
                due.status = BH_WORKER_LOST;
                due.origin = culprit ? worker->records[culprit].work : NOBODY;
            }
        } else if (closing) {
            due.status = BH_CONTEXT_CLOSED;
            due.cause.worker_pid = core_worker->pid;
        } else if (opinion->doomed || opinion->end_requested) {
            due.status = BH_CANCELLED;
        } else {
            continue; /* it never started: it runs elsewhere (E13) */
        }
        oracle_expect(world, work, &due);
    }
    return lost;
}

static void cause_of_death(struct world *world, struct worker *worker, char text[64]) {
    struct bhi_outcome *death = &worker->death;
    bool killed = death->signal == 9 || worker->zygote_lost;
    death->status = worker->caught                                     ? BH_PROTOCOL
                    : worker->core.kill == BHI_KILL_DEADLINE && killed ? BH_DEADLINE
                    : worker->core.kill == BHI_KILL_COMPILE && killed  ? BH_COMPILE_FAILED
                    : worker->core.kill == BHI_KILL_CANCEL && killed   ? BH_CANCELLED
                    : world->closed                                    ? BH_CONTEXT_CLOSED
                    : worker->zygote_lost                              ? BH_ZYGOTE_LOST
                    : death->signal == 31                              ? BH_SECCOMP
                    : death->signal                                    ? BH_WORKER_SIGNAL
                                                                       : BH_WORKER_EXIT;
    snprintf(text, 64, "worker %d died", worker->core.pid);
    death->message = text;
    death->worker_pid = worker->core.pid;
}

/* The first worker that is lost for nothing is replaced at once, the next ones with a pause that
 * doubles, from 10 ms to 1 s; a good one in between ends that. */
static void check_backoff(struct world *world, int index, bool good, bool productive) {
    struct world_stream *stream = world->streams[index];
    uint64_t pause_ns = 0;
    if (good) {
        stream->losses = 0;
    }
    if (stream->core.state == BHI_STREAM_UNAVAILABLE) {
        return; /* until it is as new */
    }
    if (!productive) {
        if (stream->losses) {
            pause_ns = stream->losses > 7 ? 1000 * MS : (10 * MS) << (stream->losses - 1);
        }
        pause_ns = pause_ns > 1000 * MS ? 1000 * MS : pause_ns;
        stream->losses++;
    }
    uint64_t until_ns = stream->core.restart.not_before_ns;
    if (until_ns != (pause_ns ? world->now_ns + pause_ns : 0)) {
        world_fail(world, "budget", "stream %d pauses for %llu ns, not %llu", index,
                   (unsigned long long)(until_ns ? until_ns - world->now_ns : 0),
                   (unsigned long long)pause_ns);
    }
}

/* Another start has failed, and no worker was ready since the last: nothing comes back meanwhile, and
 * it costs as long as it took, between a death's share and a quarter of the window. */
static void add_to_row(struct world *world, struct world_stream *stream, uint64_t window_ns,
                       uint64_t cost_ns) {
    uint64_t took_ns = world->now_ns - stream->row_until_ns;
    took_ns = took_ns < window_ns / 4 ? took_ns : window_ns / 4;
    if (!stream->row++) {
        stream->row_since_ns = world->now_ns;
        stream->row_cost_ns = took_ns = 0;
    }
    stream->row_cost_ns += took_ns > cost_ns ? took_ns : cost_ns;
    stream->row_until_ns = world->now_ns;
}

/* What the row has cost, and the deaths in a window before it. */
static uint64_t most_cost(struct world *world, int index, uint64_t window_ns, uint64_t cost_ns) {
    const struct world_stream *stream = world->streams[index];
    const uint64_t since_ns = stream->row_since_ns - window_ns;
    return stream->row_cost_ns +
           cost_ns * (oracle_deaths_since(world, index, since_ns) - (stream->row - 1));
}

/* A stream has lost a worker for nothing, or could not get one: may it give up? Must it (case 50)?
 * |starting|: the worker had not been ready. */
static void check_budget(struct world *world, int index, bool productive, bool starting) {
    struct world_stream *stream = world->streams[index];
    uint64_t window_ns = world->program->streams[index].window_ms * MS;
    uint32_t budget = world->program->streams[index].budget;
    uint64_t now_ns = world->now_ns, cost_ns = window_ns / budget;
    bool gave_up = stream->core.state == BHI_STREAM_UNAVAILABLE;
    if (productive) {
        if (gave_up) {
            world_fail(world, "budget", "stream %d gives up after a death that is free", index);
        }
        return;
    }
    if (starting) {
        add_to_row(world, stream, window_ns, cost_ns);
    }
    const bool in_row = starting && stream->row > 1;
    uint32_t recent = oracle_deaths_since(world, index, now_ns - window_ns);
    uint32_t at_once = oracle_deaths_since(world, index, now_ns - cost_ns);
    if (gave_up && recent < budget &&
        (!in_row || most_cost(world, index, window_ns, cost_ns) <= window_ns)) {
        world_fail(world, "budget", "stream %d gives up after %u deaths of %u", index, recent,
                   budget);
    }
    if (!gave_up && (at_once >= budget || (in_row && stream->row_cost_ns > window_ns))) {
        world_fail(world, "budget", "stream %d goes on after %u deaths of %u", index, at_once,
                   budget);
    }
    oracle_lost_worker(world, index, now_ns);
}

#define UNAVAILABLE oracle_status_bit(BH_UNAVAILABLE)
#define NO_DEVICE   oracle_status_bit(BH_NO_DEVICE)

/* Around a call that may make a stream UNAVAILABLE. */
static void before_loss(struct world *world, int index, uint64_t statuses) {
    world->oracle.gives_up[index] = statuses;
    world_core_ops.ref_stream(&world->streams[index]->core);
}

static void after_loss(struct world *world, int index) {
    struct world_stream *stream = world->streams[index];
    if (stream->core.state != BHI_STREAM_UNAVAILABLE) {
        world->oracle.gives_up[index] = 0;
    } else {
        world_trace(world, "  stream %d is UNAVAILABLE", index);
        tally(TALLY_UNAVAILABLE);
        stream->heals = stream->core.trouble.status == BH_UNAVAILABLE;
        stream->gave_up_ns = world->now_ns;
        for (int work = 0; work < world->submitted; work++) {
            if (world->lives[work].submitted && !world->lives[work].ended &&
                world->program->works[work].stream == index) {
                world_fail(world, "E9", "#%d waits for a stream that is UNAVAILABLE", work);
            }
        }
    }
    world_unref_stream(&stream->core);
}

static void count_death(const struct world *world, const struct worker *worker, bool lost) {
    if (worker->zygote_lost) {
        tally(TALLY_ZYGOTE_LOST);
    }
    if (!worker->ready) {
        tally(TALLY_DIED_STARTING);
    } else if (!lost && worker->stream != NOBODY) {
        tally(TALLY_DIED_IDLE);
    }
    if (worker->completed < worker->computed) {
        tally(TALLY_DONE_UNRECORDED);
    }
    if (worker->current && worker->phase == PHASE_HALF) {
        tally(TALLY_HALF_WRITTEN);
    }
    if (worker->core.kill_event && world->lives[world->work_of_id[worker->core.kill_event]].ended) {
        tally(TALLY_OUTLIVED_KILL);
    }
}

bool supervise_bury(struct world *world, struct worker *worker) {
    if (!worker || !worker->dead) {
        return false;
    }
    if (supervise_harvest(world, worker)) {
        tally(TALLY_RECORDED_BEFORE_DEATH);
    }
    world_settle(world);
    if (world->failed) {
        return true;
    }
    int index = worker->stream;
    struct bhi_core_worker *core_worker = &worker->core;
    char text[64];
    cause_of_death(world, worker, text);
    struct bhi_death death = {
        .outcome = worker->death,
        .snapshot = worker_snapshot(worker),
        .closing = world->closed,
        .excused = worker->ready && worker->zygote_lost,
        .cause = was_killed_by_others(worker) ? BHI_CAUSE_OUTSIDE : BHI_CAUSE_OWN,
        .others_would_fail = !worker->ready && worker->death.exit_code == 1,
        .why = {.status = BH_UNAVAILABLE, .message = "it died"},
    };
    if (worker->caught) { /* it may have written anything there */
        death.snapshot.marker = (uint32_t)(core_worker->harvested + model_mix(world->now_ns) % 4);
    }
    if (death.others_would_fail) {
        death.why.status = BH_NO_DEVICE;
    }
    world_trace(world, "  worker %d is dead: status %d, started %llu, marker %u", core_worker->pid,
                death.outcome.status, (unsigned long long)death.snapshot.started,
                death.snapshot.marker);
    bool lost = judge(world, worker, world->closed);
    const bool planned = core_worker->kill == BHI_KILL_RETIRED && index != NOBODY;
    bool productive = lost || death.excused || planned || worker->productive;
    if (planned) {
        tally(TALLY_REPLACED);
    }
    count_death(world, worker, lost);
    for (struct worker **at = &world->workers; *at; at = &(*at)->next) {
        if (*at == worker) {
            *at = worker->next;
            break;
        }
    }
    if (index != NOBODY) {
        world->serving[index] = NULL;
        before_loss(world, index,
                    (death.others_would_fail ? NO_DEVICE : 0) | (productive ? 0 : UNAVAILABLE));
    }
    if (bhi_core_worker_died(core_worker, &death) != lost) {
        world_fail(world, "E13", "worker %d: blame is %sput on one of its submissions",
                   core_worker->pid, lost ? "not " : "");
    }
    if (index != NOBODY && !world->failed) {
        uint64_t cost_ns =
            world->program->streams[index].window_ms * MS / world->program->streams[index].budget;
        bool lived = worker->ready && world->now_ns - worker->ready_ns >= cost_ns;
        if (!lost && !death.excused && !planned &&
            world->streams[index]->core.trouble.status == BH_OK) {
            world_fail(world, "budget", "stream %d does not say why it has no worker", index);
        }
        check_backoff(world, index, lived || worker->productive, productive);
        if (!death.others_would_fail) {
            check_budget(world, index, productive, !worker->ready);
        }
        after_loss(world, index);
    }
    for (int work = 0; work < world->submitted; work++) {
        struct life *life = &world->lives[work];
        if (life->worker == worker) {
            world_fail(world, "E9", "#%d stays with a dead worker", work);
        }
        if (life->watched == worker) {
            life->watched = NULL;
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        if (world->streams[i] && world->streams[i]->core.dying == core_worker) {
            world_fail(world, "E16", "stream %d waits for a worker that is buried", i);
        }
    }
    if (world->failed) {
        return true;
    }
    bhi_core_worker_fini(core_worker);
    free(worker);
    world_settle(world);
    return true;
}

struct worker *supervise_left(const struct world *world, int index) {
    struct worker *worker = world->workers;
    while (worker && worker->left != index) {
        worker = worker->next;
    }
    return worker;
}

/* Nothing that it was given is under way, its death is free, and nobody else has to judge it. */
static bool may_leave(const struct world *world, const struct worker *worker) {
    bool idle = worker->published == worker->core.harvested;
    for (uint64_t seq = 1; seq <= worker->published; seq++) {
        idle &= world->lives[worker->records[seq].work].ended;
    }
    return idle && worker->ready && worker->productive && !worker->caught &&
           !worker->kill_requested && !supervise_left(world, worker->stream) &&
           trust_stream(world->program, worker->stream) == BHI_APART_NOT;
}

bool supervise_leave(struct world *world, struct worker *worker) {
    if (!worker || !worker->dead || worker->zygote_lost || worker->stream == NOBODY) {
        return false;
    }
    (void)supervise_harvest(world, worker);
    world_settle(world);
    if (world->failed || worker->stream == NOBODY) {
        return true;
    }
    const int index = worker->stream;
    const bool may = bhi_core_worker_may_leave(&worker->core);
    if (may != may_leave(world, worker)) {
        world_fail(world, "E13", "worker %d may %sleave its stream", worker->core.pid,
                   may ? "" : "not ");
    }
    if (!may || world->failed) {
        return world->failed;
    }
    world_trace(world, "  stream %d goes on without worker %d", index, worker->core.pid);
    tally(TALLY_LEFT);
    world->serving[index] = NULL;
    before_loss(world, index, 0);
    const bh_detail why = {.status = BH_UNAVAILABLE, .message = "it died"};
    bhi_core_worker_leave(&worker->core, &why);
    worker->stream = NOBODY;
    worker->left = index;
    check_backoff(world, index, true, true);
    check_budget(world, index, true, false);
    after_loss(world, index);
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
    if (arg % 64 == 1) {
        why.status = BH_NO_DEVICE;
        world_trace(world, "  stream %u: no device", index);
        before_loss(world, (int)index, NO_DEVICE);
        bhi_stream_unavailable(&stream->core, &why, false);
        after_loss(world, (int)index);
        return true;
    }
    if (arg % 8 == 2) {
        world_trace(world, "  stream %u: no worker to be had", index);
        before_loss(world, (int)index, UNAVAILABLE);
        bhi_stream_lost_worker(&stream->core, false, &why);
        check_backoff(world, (int)index, false, false);
        check_budget(world, (int)index, false, true);
        after_loss(world, (int)index);
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
        worker->core.kill != BHI_KILL_NONE) {
        return false;
    }
    worker->ready = true;
    worker->ready_ns = world->now_ns;
    world_trace(world, "  worker %d is ready", worker->core.pid);
    world->streams[index]->row = 0;
    bhi_stream_served(&world->streams[index]->core);
    if (world->streams[index]->core.trouble.status != BH_OK) {
        world_fail(world, "budget", "stream %u is served and still in trouble", index);
    }
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
        supervise_bury(world, world->workers);
    }
    for (int index = 0; index < STREAMS && !world->failed; index++) {
        struct world_stream *stream = world->streams[index];
        if (!stream) {
            continue;
        }
        before_loss(world, index, oracle_status_bit(BH_CONTEXT_CLOSED));
        bhi_stream_end_queued(&stream->core, BH_CONTEXT_CLOSED, "the context was destroyed");
        world_unref_stream(&stream->core);
    }
    return true;
}
