#include "world.h"
#include "trust.h"

#include "core/core.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 1000
#define START_NS 1000000000000ull /* later than any window is long */

void world_fail(struct world *world, const char *rule, const char *format, ...) {
    if (world->failed) {
        return;
    }
    world->failed = true;
    int length = snprintf(world->failure, sizeof world->failure, "%s: ", rule);
    va_list args;
    va_start(args, format);
    vsnprintf(world->failure + length, sizeof world->failure - (size_t)length, format, args);
    va_end(args);
    world_trace(world, "FAILED %s", world->failure);
}

void world_trace(struct world *world, const char *format, ...) {
    if (!world->trace) {
        return;
    }
    va_list args;
    va_start(args, format);
    vfprintf(world->trace, format, args);
    va_end(args);
    fputc('\n', world->trace);
}

void world_init(struct world *world, const struct program *program, FILE *trace) {
    memset(world, 0, offsetof(struct world, lives));
    memset(world->lives, 0, program->work_count * sizeof world->lives[0]);
    world->program = program;
    world->trace = trace;
    world->now_ns = START_NS;
    world->armed_ns = BH_FOREVER;
    bhi_core_init(&world->core, &world_core_ops);
    oracle_init(world);
    for (int b = 0; b < BUFFERS; b++) {
        world->buffers[b].value = (uint64_t)b;
    }
    for (int s = 0; s < STREAMS; s++) {
        world->last_begun[s] = NOBODY;
    }
    for (int s = 0; s < program->stream_count; s++) {
        struct world_stream *stream = calloc(1, sizeof *stream);
        if (!stream) {
            abort();
        }
        stream->index = (uint8_t)s;
        stream->refs = 1;
        stream->held = true;
        bhi_stream_init(&stream->core, &world->core, program->streams[s].budget,
                        program->streams[s].window_ms * MS);
        snprintf(stream->core.name, sizeof stream->core.name, "s%d", s);
        stream->core.strict = program->streams[s].strict;
        stream->core.apart = trust_stream(program, s);
        uint32_t compile_ms = program->streams[s].compile_ms;
        stream->core.compile_deadline_ns = compile_ms == NO_DEADLINE ? BH_FOREVER : compile_ms * MS;
        stream->core.grace_ns = program->streams[s].grace_ms * MS;
        world->streams[s] = stream;
    }
}

/* -- what must hold between any two steps --------------------------------------------------------
 */

static void check_changes(struct world *world) {
    for (int s = 0; s < STREAMS; s++) {
        struct world_stream *stream = world->streams[s];
        if (!stream) {
            continue;
        }
        FAIL_IF(world, stream->core.state != stream->seen && !stream->change_reported, "E9",
                "nobody is told that stream %d has changed", s);
        stream->seen = stream->core.state;
        stream->change_reported = false;
    }
}

/* What a stream counts is what there is: its queue, its lane, and once each what has ended. */
static void check_counts(struct world *world, int s) {
    const struct bhi_core_stream *stream = &world->streams[s]->core;
    uint64_t there[3] = {0}, ended = stream->stats.dependents;
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        if (life->submitted && world->program->works[work].stream == s) {
            there[life->ended ? 2 : life->worker ? 1 : 0]++;
        }
    }
    for (size_t i = 0; i < BH_STATUSES; i++) {
        ended += stream->stats.ended[i];
    }
    FAIL_IF(world, stream->queued != there[0] || stream->in_flight != there[1] || ended != there[2],
            "E9", "stream %d counts %d queued, %d in flight, %d ended: not %d, %d, %d", s,
            (int)stream->queued, (int)stream->in_flight, (int)ended, (int)there[0], (int)there[1],
            (int)there[2]);
}

static void check_streams(struct world *world) {
    for (int s = 0; s < STREAMS; s++) {
        const struct world_stream *stream = world->streams[s];
        if (!stream) {
            continue;
        }
        check_counts(world, s);
        int failure = stream->core.failure ? work_of_event(stream->core.failure) : NOBODY;
        FAIL_IF(world, failure != world->oracle.failure[s], "E4",
                "the earliest failure of stream %d is #%d, not #%d", s, failure,
                world->oracle.failure[s]);
        int oldest = NOBODY;
        for (int work = world->submitted - 1; work >= 0; work--) {
            if (world_is_pending(world, work) && world->program->works[work].stream == s) {
                oldest = work;
            }
        }
        const struct bhi_submission *found = bhi_stream_oldest(&stream->core);
        FAIL_IF(world, (found ? work_of_submission(found) : NOBODY) != oldest, "order",
                "the oldest of stream %d is #%d, not #%d", s,
                found ? work_of_submission(found) : NOBODY, oldest);
        const struct worker *worker = world->serving[s];
        if (!worker || !worker->ready || worker->core.life.kill != BHI_KILL_NONE ||
            worker->published - worker->core.harvested >= world->program->lane) {
            continue;
        }
        for (int work = 0; work < world->submitted; work++) {
            const struct life *life = &world->lives[work];
            int obstacle;
            if (!life->submitted || life->ended || life->worker ||
                world->program->works[work].stream != s) {
                continue;
            }
            tally(TALLY_HELD_BACK);
            FAIL_IF(world,
                    oracle_may_release(world, work, &obstacle) && trust_suits(world, worker, work),
                    "E16", "#%d is held back, although nothing stands in its way", work);
            break;
        }
    }
}

static void check_buffers(struct world *world) {
    uint32_t refs[BUFFERS] = {0};
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        for (int b = 0; life->buffers && b < BUFFERS; b++) {
            refs[b] += life->buffers >> b & 1;
        }
        FAIL_IF(world, life->ended && life->core, "B2", "#%d has ended and holds its buffers",
                work);
    }
    for (int b = 0; b < BUFFERS; b++) {
        FAIL_IF(world, refs[b] != world->buffers[b].refs, "B2",
                "buffer %d has %u references of submissions, not %u", b, world->buffers[b].refs,
                refs[b]);
    }
}

static void check_verdict(struct world *world, int work) {
    const struct life *life = &world->lives[work];
    if (work >= world->submitted || !life->event) {
        return;
    }
    bh_event_state state = bhi_event_state(life->event);
    FAIL_IF(world, (state == BH_EVENT_PENDING) == life->ended, "E2", "#%d: state %d", work, state);
    FAIL_IF(world,
            life->ended &&
                (memcmp(&life->verdict, &life->event->verdict, sizeof life->verdict) != 0 ||
                 (state == BH_EVENT_READY) != (life->verdict.status == BH_OK)),
            "E1", "the verdict of #%d has changed", work);
}

void world_settle(struct world *world) {
    if (world->failed) {
        return;
    }
    bhi_core_pump(&world->core);
    oracle_settled(world);
    check_changes(world);
    if (world->played_before) {
        return;
    }
    check_streams(world);
    check_buffers(world);
    waiters_check(world);
    /* One at a time: all of them at the end. */
    check_verdict(world, (int)(world->checked++ % WORKS));
}

static bool lose_zygote(struct world *world) {
    bool any = false;
    for (struct worker *worker = world->workers; worker; worker = worker->next) {
        if (worker->dead) {
            continue;
        }
        worker_die(world, worker, 4);
        worker->zygote_lost = any = true;
        worker->death = (struct bhi_outcome)BHI_OUTCOME_INIT;
    }
    return any;
}

/* The oldest, or the newest. */
static int find_pending(const struct world *world, bool newest) {
    int found = NOBODY;
    for (int work = 0; work < world->submitted && (newest || found == NOBODY); work++) {
        found = world_is_pending(world, work) ? work : found;
    }
    return found;
}

/* -- one step ------------------------------------------------------------------------------------
 */

static bool play(struct world *world, const struct step *step) {
    int target = step->target;
    struct worker *worker = target < STREAMS ? world->serving[target] : NULL;
    switch ((enum op)step->op) {
    case OP_SUBMIT:
        return host_submit(world, target);
    case OP_CANCEL:
        return host_cancel(world, target);
    case OP_CANCEL_ALL:
        return host_cancel_all(world, target);
    case OP_WAIT:
        return waiters_join(world, target);
    case OP_LEAVE:
        return waiters_leave(world, target, step->arg);
    case OP_HOLD:
        return trust_hold(world, target, step->arg);
    case OP_MAP:
        return host_map(world, target);
    case OP_DISCARD:
        return host_write(world, target, true);
    case OP_PATCH:
        return host_write(world, target, false);
    case OP_RESET:
        return host_reset(world, target);
    case OP_RELEASE:
        return host_release(world, target);
    case OP_CLOSE:
        tally_if(find_pending(world, false) != NOBODY, TALLY_CLOSED);
        return supervise_close(world);
    case OP_WORK:
        return worker_work(world, worker, step->arg);
    case OP_FAIL:
        return worker_fail(world, worker, step->arg);
    case OP_HANG:
        return worker_hang(world, worker);
    case OP_LIE:
        return worker_lie(world, worker, step->arg);
    case OP_DIE:
        return worker_die(world, worker, step->arg);
    case OP_ZYGOTE:
        return lose_zygote(world);
    case OP_HARVEST:
        return worker && supervise_harvest(world, worker);
    case OP_BURY:
        return (step->arg % 2 && burial_leave(world, worker)) || burial_bury(world, worker) ||
               burial_bury(world, burial_left(world, target));
    case OP_STAFF:
        return supervise_assign(world, (uint32_t)target, step->arg);
    case OP_READY:
        return supervise_ready(world, (uint32_t)target);
    case OP_LOOK:
        return supervise_look(world);
    case OP_TIME:
        world->now_ns += (1 + step->arg % 12) * MS;
        return true;
    case OP_NO_MEMORY:
        return world->no_memory[target] ? false : (world->no_memory[target] = true);
    case OP_COUNT:
        break;
    }
    return false;
}

bool world_step(struct world *world, const struct step *step) {
    if (world->failed) {
        return false;
    }
    world->now_ns += 1000;
    if (world->trace) {
        fprintf(world->trace, "%s %u %u\n", program_op_name(step->op), step->target, step->arg);
    }
    bool done = play(world, step);
    if (done) {
        world_settle(world);
    } else {
        world_trace(world, "  (passed over)");
    }
    return done;
}

/* -- the end -------------------------------------------------------------------------------------
 */

/* Everybody who can do something without waiting for the clock does it. The host waits for one
 * event, and follows the worker that it was told of, nobody else. */
static bool turn(struct world *world) {
    bool any = false;
    int awaited = find_pending(world, world->program->seed % 2 == 0);
    for (int s = 0; s < STREAMS && !world->failed; s++) {
        any |= world->streams[s] && supervise_assign(world, (uint32_t)s, 3);
    }
    for (struct worker *worker = world->workers, *next; worker && !world->failed; worker = next) {
        next = worker->next;
        uint32_t s = (uint32_t)worker->stream;
        if (worker->kill_requested) {
            any |= worker_die(world, worker, 1);
        }
        if (worker->dead) {
            if (world->program->seed % 3 || !burial_leave(world, worker)) {
                burial_bury(world, worker);
            }
            return true; /* the list has changed */
        }
        if (worker->stream != NOBODY) {
            any |= supervise_ready(world, s);
        }
        while (worker_busy(worker)) {
            worker_work(world, worker, 5);
            any = true;
        }
        bool waited_for = awaited != NOBODY && world->lives[awaited].watched == worker;
        if (worker->end_watched || waited_for) {
            any |= supervise_harvest(world, worker);
        }
        world_settle(world);
    }
    return any;
}

/* The clock goes on to the next moment at which somebody wants to do something. */
static bool wait_for_the_clock(struct world *world) {
    uint64_t when = world->armed_ns;
    for (int s = 0; s < STREAMS; s++) {
        const struct world_stream *stream = world->streams[s];
        if (stream && !world->closed && stream->core.state == BHI_STREAM_WANTING &&
            !stream->core.worker && stream->core.restart.not_before_ns < when) {
            when = stream->core.restart.not_before_ns;
        }
    }
    if (when == BH_FOREVER) {
        return false;
    }
    if (when > world->now_ns) {
        world->now_ns = when;
    }
    if (world->armed_ns <= world->now_ns) {
        supervise_look(world);
    }
    return true;
}

/* What hangs and has no deadline goes on one day. */
static bool wake_one(struct world *world) {
    for (struct worker *worker = world->workers; worker; worker = worker->next) {
        if (!worker->hung && !worker->stopped) {
            continue;
        }
        uint64_t seq = worker_turn(worker);
        int work = worker->records[seq].work;
        if (!seq && worker->core.queue_waits) {
            return false; /* what it does not skip stands in the way of others */
        }
        bool compiling = seq && worker_compiles(worker, seq);
        uint32_t limit_ms = compiling ? world->program->streams[worker->stream].compile_ms
                            : seq     ? world->program->works[work].deadline_ms
                                      : NO_DEADLINE;
        if (seq && (limit_ms != NO_DEADLINE || world->oracle.works[work].end_requested)) {
            return false;
        }
        world_trace(world, "  worker %d goes on", worker->core.pid);
        worker->hung = worker->stopped = false;
        return true;
    }
    return false;
}

void world_finish(struct world *world) {
    world_trace(world, "(and so on, until nothing is left to be done)");
    int idle = 0;
    for (int i = 0; i < 10000 && !world->failed && find_pending(world, false) != NOBODY; i++) {
        world->now_ns += 1000;
        if (turn(world)) {
            idle = 0;
            continue;
        }
        /* It may look at what hangs for ever, if that has no deadline. */
        if (world->failed ||
            ((idle++ > PATIENCE || !wait_for_the_clock(world)) && !wake_one(world))) {
            break;
        }
    }
    if (world->failed) {
        return;
    }
    oracle_final(world);
    world->finished = true;
    for (int s = 0; s < STREAMS; s++) {
        host_release(world, s);
    }
    world_settle(world);
    for (int i = 0; i < 100 && world->workers && !world->failed; i++) {
        FAIL_IF(world, world->workers->stream != NOBODY, "E9", "worker %d outlives its stream",
                world->workers->core.pid);
        worker_die(world, world->workers, 1);
        burial_bury(world, world->workers);
    }
    for (int work = 0; work < world->submitted && !world->failed; work++) {
        check_verdict(world, work);
        bhi_event_unref(world->lives[work].event);
    }
    for (int b = 0; b < BUFFERS; b++) {
        bhi_content_fini(&world->buffers[b].content);
    }
    for (int s = 0; s < STREAMS; s++) {
        FAIL_IF(world, world->streams[s], "E9", "stream %d is never let go", s);
    }
    FAIL_IF(world, world->live_events || world->live_submissions, "B2",
            "%u events and %u submissions are left", world->live_events, world->live_submissions);
}
