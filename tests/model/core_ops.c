/* What the core asks for, and whether it may. */
#include "trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct model_event {
    struct bh_event core;
    int work;
};

struct model_submission {
    struct bhi_submission core;
    int work;
};

int work_of_event(const struct bh_event *event) {
    return BHI_CONTAINER(event, struct model_event, core)->work;
}

int work_of_submission(const struct bhi_submission *submission) {
    return BHI_CONTAINER(submission, struct model_submission, core)->work;
}

struct bh_event *core_ops_new_event(struct world *world, int work) {
    struct model_event *event = malloc(sizeof *event);
    if (!event) {
        abort();
    }
    memset(event, 0xa5, sizeof *event); /* whatever was there before */
    event->work = work;
    bhi_event_init(&event->core, &world->core);
    world->live_events++;
    return &event->core;
}

struct bhi_submission *core_ops_new_submission(struct world *world, int work) {
    struct model_submission *submission = calloc(1, sizeof *submission);
    if (!submission) {
        abort();
    }
    submission->work = work;
    world->live_submissions++;
    return &submission->core;
}

static uint64_t now_ns(struct bhi_core *core) {
    return world_of(core)->now_ns;
}

static int publish(struct bhi_core_worker *core_worker, struct bhi_submission *submission,
                   enum bhi_apart apart, uint64_t seq) {
    (void)apart;
    struct world *world = world_of(core_worker->core);
    struct worker *worker = worker_of(core_worker);
    int work = work_of_submission(submission), obstacle;
    struct life *life = &world->lives[work];
    int stream = worker->stream;
    if (stream == NOBODY || !worker->ready || worker->core.life.kill != BHI_KILL_NONE) {
        world_fail(world, "E16", "#%d is given to a worker that takes nothing", work);
        return BHI_LANE_FULL;
    }
    if (world->no_memory[stream]) {
        world->no_memory[stream] = false;
        tally(TALLY_NO_MEMORY);
        const bool memory = work % 2 == 0;
        world_trace(world, "  no %s to publish #%d", memory ? "memory" : "descriptor", work);
        struct due due = {.status = memory ? BH_NO_MEMORY : BH_SYSTEM,
                          .origin = NOBODY,
                          .anyhow = true,
                          .cause = NO_CAUSE};
        due.cause.sys_errno = memory ? 0 : EMFILE;
        oracle_expect(world, work, &due);
        return memory ? -ENOMEM : -EMFILE;
    }
    if (worker->published - worker->core.harvested >= world->program->lane) {
        tally(TALLY_LANE_FULL);
        return BHI_LANE_FULL;
    }
    FAIL_IF(world, seq != worker->published + 1 || seq > world->program->work_count, "order",
            "#%d is published as number %llu after %llu", work, (unsigned long long)seq,
            (unsigned long long)worker->published);
    FAIL_IF(world, life->ended || world->oracle.works[work].doomed, "E9",
            "#%d goes into a lane although it %s", work, life->ended ? "has ended" : "is doomed");
    FAIL_IF(world, !oracle_may_release(world, work, &obstacle), "E15",
            "#%d goes into a lane although #%d on another stream is not READY", work, obstacle);
    for (int other = 0; other < work; other++) {
        FAIL_IF(world,
                world->program->works[other].stream == stream && world->lives[other].submitted &&
                    !world->lives[other].ended && world->lives[other].worker != worker,
                "order", "#%d goes into the lane before #%d", work, other);
    }
    struct due refusal;
    FAIL_IF(world, trust_refuses(world, work, &refusal), "K5",
            "#%d goes into a lane although its kernel is refused", work);
    FAIL_IF(world, !trust_suits(world, worker, work), "T3",
            "#%d goes to worker %d, which has been given others", work, core_worker->pid);
    if (world->failed) {
        return BHI_LANE_FULL;
    }
    trust_given(world, worker, work);
    worker->published = seq;
    worker->records[seq] = (struct record){.work = (int8_t)work, .published_ns = world->now_ns};
    worker->end_watched |= submission->end_watched;
    life->worker = worker;
    life->seq = seq;
    life->published_ns = world->now_ns;
    world_trace(world, "  #%d is number %llu in the lane of worker %d", work,
                (unsigned long long)seq, core_worker->pid);
    return BHI_PUBLISHED;
}

static bool withdraw(struct bhi_core_worker *core_worker, uint64_t seq) {
    struct world *world = world_of(core_worker->core);
    struct worker *worker = worker_of(core_worker);
    struct record *record = &worker->records[seq];
    const struct opinion *opinion = &world->oracle.works[record->work];
    FAIL_IF(world, !opinion->doomed && !opinion->end_requested, "E5",
            "#%d is withdrawn for no reason", record->work);
    record->withdrawn = true;
    record->certain = seq > worker->started;
    /* If it was its turn, as far as the supervisor can see, it is the next one's turn now. */
    uint64_t before = core_worker->harvested + 1;
    while (before < seq && worker->records[before].certain) {
        before++;
    }
    if (record->certain && before == seq) {
        record->computed_ns = world->now_ns;
    }
    tally(record->certain ? TALLY_WITHDRAWN : TALLY_WITHDRAWN_LATE);
    world_trace(world, "  #%d is withdrawn%s", record->work, record->certain ? "" : ", too late");
    return record->certain;
}

static void withdrawn(struct bhi_core_worker *core_worker, uint64_t seq) {
    struct record *record = &worker_of(core_worker)->records[seq];
    FAIL_IF(world_of(core_worker->core), !record->withdrawn || record->cleared, "E12",
            "#%d is no longer withdrawn, and was not", record->work);
    record->cleared = true;
}

/* Nothing before it is left that will run. */
static bool its_turn(const struct worker *worker, uint64_t seq) {
    for (uint64_t before = worker->computed + 1; before < seq; before++) {
        if (!worker->records[before].certain) {
            return false;
        }
    }
    return true;
}

/* All that is in the lane is withdrawn, and it does not take it. */
static void check_idle(struct world *world, const struct worker *worker) {
    const struct record *next = &worker->records[worker->completed + 1];
    FAIL_IF(world,
            worker->completed == worker->published || !next->certain ||
                world->now_ns - next->published_ns < SKIP_MS * MS,
            "E16", "worker %d is killed, but does take what was withdrawn", worker->core.pid);
}

/* Number |seq| is to be ended: is it its turn, and is |limit_ms| over? */
static void check_late(struct world *world, const struct worker *worker, int work,
                       uint32_t limit_ms) {
    const struct life *life = &world->lives[work];
    uint64_t turn = life->published_ns;
    if (life->worker != worker || !its_turn(worker, life->seq)) {
        world_fail(world, "E16", "worker %d is to end #%d, which %s", worker->core.pid, work,
                   life->worker != worker ? "it does not have" : "has not had its turn");
        return;
    }
    for (uint64_t before = 1; before < life->seq; before++) {
        if (worker->records[before].computed_ns > turn) {
            turn = worker->records[before].computed_ns;
        }
    }
    if (worker->records[life->seq].compiled_ns > turn) {
        turn = worker->records[life->seq].compiled_ns;
    }
    FAIL_IF(world, limit_ms == NO_DEADLINE || world->now_ns - turn < limit_ms * MS, "E16",
            "worker %d is to end #%d, whose deadline is not over", worker->core.pid, work);
}

static void check_cancelled(struct world *world, const struct worker *worker, int work) {
    FAIL_IF(world,
            !world->oracle.works[work].end_requested || world->lives[work].worker != worker ||
                !its_turn(worker, world->lives[work].seq),
            "E16", "worker %d is to cancel #%d", worker->core.pid, work);
}

static void abort_running(struct bhi_core_worker *core_worker, uint64_t seq) {
    struct world *world = world_of(core_worker->core);
    struct worker *worker = worker_of(core_worker);
    int work = worker->records[seq].work;
    const struct work *of = &world->program->works[work];
    if (!of->guarded || !core_worker->can_abort || worker_compiles(worker, seq) ||
        worker->records[seq].stop_requested || seq > worker->started ||
        seq <= core_worker->harvested) {
        world_fail(world, "E16", "worker %d is told to end #%d, and cannot", core_worker->pid,
                   work);
    } else if (world->oracle.works[work].end_requested) {
        check_cancelled(world, worker, work);
    } else {
        check_late(world, worker, work, of->deadline_ms);
    }
    tally(TALLY_TOLD);
    worker_told(world, worker, seq);
}

/* Where it can be told it is told first, and has its time to answer. */
static void check_told(struct world *world, const struct worker *worker, int work) {
    uint64_t seq = world->lives[work].seq;
    const struct record *record = &worker->records[seq];
    uint64_t grace_ns = world->program->streams[worker->stream].grace_ms * MS;
    bool tellable = world->program->works[work].guarded && worker->core.can_abort && grace_ns &&
                    !worker_compiles(worker, seq) && seq <= worker_started(worker);
    FAIL_IF(world, record->stop_requested && world->now_ns - record->told_ns < grace_ns, "E16",
            "worker %d is killed, and has time to end #%d", worker->core.pid, work);
    FAIL_IF(world, !record->stop_requested && tellable, "E16",
            "worker %d is killed, and could have ended #%d", worker->core.pid, work);
    tally_if(record->stop_requested, TALLY_KILLED_DEAF);
}

/* Processes of the model do not answer, but nobody stops them. */
static bool stopped(const struct bhi_core_worker *core_worker) {
    (void)core_worker;
    return false;
}

static uint64_t cpu_ns(const struct bhi_core_worker *core_worker) {
    const struct worker *worker = BHI_CONTAINER(core_worker, const struct worker, core);
    return 1 + (worker_is_starved(worker) ? 0 : world_of(core_worker->core)->now_ns);
}

/* A compile is over its deadline: it has had that much processor time since a look saw it, or four
 * times as long by the clock. */
static void check_compiled_long(struct world *world, const struct worker *worker, int work) {
    const uint32_t compile_ms = world->program->streams[worker->stream].compile_ms;
    const bool used = !worker_is_starved(worker) && worker->saw_of == world->lives[work].seq &&
                      world->now_ns - worker->saw_ns >= compile_ms * MS;
    check_late(world, worker, work, used ? compile_ms : 4 * compile_ms);
    FAIL_IF(world, !worker_compiles(worker, world->lives[work].seq), "E16",
            "worker %d is killed, and does not compile", worker->core.pid);
    tally(used ? TALLY_KILLED_COMPILE : TALLY_KILLED_STARVED);
}

static void kill_worker(struct bhi_core_worker *core_worker) {
    struct world *world = world_of(core_worker->core);
    struct worker *worker = worker_of(core_worker);
    if (worker->kill_requested) {
        return;
    }
    worker->kill_requested = true;
    worker->kill_ns = world->now_ns;
    worker->kill_started = worker_started(worker);
    world_trace(world, "  worker %d is killed: %s", core_worker->pid, core_worker->life.kill_text);
    const int work =
        core_worker->life.kill_event ? world->work_of_id[core_worker->life.kill_event] : NOBODY;
    switch (core_worker->life.kill) {
    case BHI_KILL_DEADLINE:
        tally(TALLY_KILLED_DEADLINE);
        if (!core_worker->life.kill_event) {
            check_idle(world, worker);
            break;
        }
        /* What it was told for was over then; it may have come to compile since. */
        if (!worker->records[world->lives[work].seq].stop_requested) {
            check_late(world, worker, work, world->program->works[work].deadline_ms);
        }
        check_told(world, worker, work);
        break;
    case BHI_KILL_COMPILE:
        check_compiled_long(world, worker, work);
        break;
    case BHI_KILL_CANCEL:
        tally(TALLY_KILLED_CANCEL);
        check_cancelled(world, worker, work);
        check_told(world, worker, work);
        break;
    case BHI_KILL_PROTOCOL:
        tally(TALLY_KILLED_LIE);
        FAIL_IF(world, !worker->violated, "E16",
                "worker %d is killed for a protocol violation that it did not commit",
                core_worker->pid);
        break;
    case BHI_KILL_RETIRED:
        FAIL_IF(world, worker->stream != NOBODY && !trust_replaceable(world, worker), "E16",
                "worker %d is retired while its stream lives", core_worker->pid);
        break;
    case BHI_KILL_LEFT:
        FAIL_IF(world, !worker->dead, "E16", "worker %d is left, and lives", core_worker->pid);
        break;
    default:
        world_fail(world, "E16", "worker %d is killed for no reason", core_worker->pid);
    }
}

static void notify(struct bhi_core_worker *core_worker) {
    worker_of(core_worker)->end_watched = true;
}

static void arm(struct bhi_core *core, uint64_t when_ns) {
    struct world *world = world_of(core);
    if (when_ns < world->armed_ns) {
        world->armed_ns = when_ns;
    }
}

/* Who waits for it learns where it is now. */
static void turned(struct bh_event *event) {
    struct world *world = world_of(event->core);
    struct life *life = &world->lives[work_of_event(event)];
    const struct bhi_submission *submission = event->submission;
    if (submission->state == BHI_RELEASED) {
        life->watched = worker_of(submission->worker);
        return;
    }
    tally(TALLY_PUT_BACK);
    world_trace(world, "  #%d is back in its queue", work_of_event(event));
    life->watched = life->worker = NULL;
}

static void ended(struct bh_event *event) {
    struct world *world = world_of(event->core);
    int work = work_of_event(event);
    struct life *life = &world->lives[work];
    if (life->ended) {
        world_fail(world, "E1", "#%d ends twice", work);
        return;
    }
    const struct worker *worker = life->worker;
    world_trace(world, "  #%d ends: %s (status %d, executed %d, origin #%d, %u hops)", work,
                event->verdict.status ? "POISONED" : "READY", event->verdict.status,
                event->verdict.executed,
                event->verdict.origin && event->verdict.origin <= world->ids
                    ? world->work_of_id[event->verdict.origin]
                    : NOBODY,
                event->verdict.hops);
    FAIL_IF(world,
            worker && !worker->dead && life->seq > worker->completed &&
                !worker->records[life->seq].certain,
            "B2", "#%d ends while its worker may still touch its buffers", work);
    bh_event_state state = bhi_event_state(event);
    FAIL_IF(world,
            state == BH_EVENT_PENDING ||
                (state == BH_EVENT_READY) != (event->verdict.status == BH_OK),
            "E3", "#%d: state %d with status %d", work, state, event->verdict.status);
    life->ended = true;
    life->verdict = event->verdict;
    oracle_ended(world, work, &event->verdict);
    life->worker = life->watched = NULL;
    waiters_tell(world, work);
}

static void free_event(struct bh_event *event) {
    struct world *world = world_of(event->core);
    int work = work_of_event(event);
    FAIL_IF(world, !world->lives[work].ended && world->lives[work].submitted, "E1",
            "the event of #%d is freed before it has ended", work);
    world->live_events--;
    free(BHI_CONTAINER(event, struct model_event, core));
}

static void name_kernel(const struct bhi_submission *submission, uint32_t command_index,
                        bh_verdict *verdict) {
    (void)command_index;
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "k%d",
             work_of_submission(submission));
}

static void free_submission(struct bhi_submission *submission) {
    struct world *world = world_of(submission->stream->core);
    int work = work_of_submission(submission);
    struct life *life = &world->lives[work];
    FAIL_IF(world, life->core != submission, "B2", "#%d is freed twice", work);
    FAIL_IF(world, life->submitted && !life->ended, "B2", "#%d is freed before it has ended", work);
    life->core = NULL;
    life->buffers = 0;
    world->live_submissions--;
    free(BHI_CONTAINER(submission, struct model_submission, core));
}

static void unref_buffer(struct bhi_content *content) {
    struct world_buffer *buffer = BHI_CONTAINER(content, struct world_buffer, content);
    if (!buffer->refs--) {
        abort();
    }
}

void world_unref_stream(struct bhi_core_stream *core) {
    struct world_stream *stream = BHI_CONTAINER(core, struct world_stream, core);
    struct world *world = world_of(core->core);
    if (--stream->refs) {
        return;
    }
    int index = stream->index;
    struct worker *worker = world->serving[index];
    world_trace(world, "  stream %d is gone", index);
    tally_if(!world->finished, TALLY_STREAM_GONE);
    bhi_stream_fini(core);
    world->streams[index] = NULL;
    free(stream);
    if (worker) {
        world->serving[index] = NULL;
        worker->stream = NOBODY;
        bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "its stream was released");
    }
}

static void ref_stream(struct bhi_core_stream *core) {
    BHI_CONTAINER(core, struct world_stream, core)->refs++;
}

static void stream_changed(struct bhi_core_stream *stream) {
    BHI_CONTAINER(stream, struct world_stream, core)->change_reported = true;
}

/* Asked when it is queued, and when its turn comes: what is refused earlier may be let go until
 * then. */
static bool refuse(const struct bhi_submission *submission, struct bhi_outcome *out) {
    struct world *world = world_of(submission->stream->core);
    const int work = work_of_submission(submission);
    const struct life *life = &world->lives[work];
    const int stream = world->program->works[work].stream;
    int obstacle;
    bool early = !oracle_may_release(world, work, &obstacle);
    for (int other = 0; other < work; other++) {
        early |= world->program->works[other].stream == stream && world->lives[other].submitted &&
                 !world->lives[other].ended && !world->lives[other].worker;
    }
    struct due due;
    if (!trust_refuses(world, work, &due)) {
        return false;
    }
    FAIL_IF(world, life->worker || world->oracle.works[work].doomed || (life->queued && early),
            "K5", "#%d is refused when it is not its turn", work);
    tally_if(life->queued, TALLY_REFUSED_LATE);
    oracle_expect(world, work, &due);
    *out = (struct bhi_outcome)BHI_OUTCOME_INIT;
    out->status = due.status;
    out->executed = BH_EXECUTED_NO;
    out->blame = due.cause.blame;
    out->command_index = due.cause.command_index;
    out->origin = due.origin == NOBODY ? 0 : world->lives[due.origin].id;
    out->ended_ns = world->now_ns;
    out->message = "its kernel is refused";
    return true;
}

static bool on_trial(const struct bhi_submission *submission) {
    const struct world *world = world_of(submission->stream->core);
    return trust_tried(world->program, work_of_submission(submission));
}

const struct bhi_core_ops world_core_ops = {
    .now_ns = now_ns,
    .publish = publish,
    .withdraw = withdraw,
    .withdrawn = withdrawn,
    .abort = abort_running,
    .stopped = stopped,
    .cpu_ns = cpu_ns,
    .kill = kill_worker,
    .notify = notify,
    .arm = arm,
    .turned = turned,
    .ended = ended,
    .free_event = free_event,
    .name_kernel = name_kernel,
    .free_submission = free_submission,
    .unref_buffer = unref_buffer,
    .unref_stream = world_unref_stream,
    .ref_stream = ref_stream,
    .stream_changed = stream_changed,
    .refuse = refuse,
    .on_trial = on_trial,
};
