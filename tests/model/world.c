#include "world.h"
#include "trust.h"

#include "core/pump.h"

#include <stdarg.h>
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
    memset(world, 0, sizeof *world);
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

static bool is_pending(const struct world *world, int work) {
    return world->lives[work].submitted && !world->lives[work].ended;
}

/* -- what must hold between any two steps --------------------------------------------------------
 */

static void check_streams(struct world *world) {
    for (int s = 0; s < STREAMS; s++) {
        const struct world_stream *stream = world->streams[s];
        if (!stream) {
            continue;
        }
        if (stream->core.state != stream->seen && !stream->change_reported) {
            world_fail(world, "E9", "nobody is told that stream %d has changed", s);
        }
        world->streams[s]->seen = stream->core.state;
        world->streams[s]->change_reported = false;
        int failure = stream->core.failure ? work_of_event(stream->core.failure) : NOBODY;
        if (failure != world->oracle.failure[s]) {
            world_fail(world, "E4", "the earliest failure of stream %d is #%d, not #%d", s, failure,
                       world->oracle.failure[s]);
        }
        int oldest = NOBODY;
        for (int work = WORKS - 1; work >= 0; work--) {
            if (is_pending(world, work) && world->program->works[work].stream == s) {
                oldest = work;
            }
        }
        const struct bhi_submission *found = bhi_stream_oldest(&stream->core);
        if ((found ? work_of_submission(found) : NOBODY) != oldest) {
            world_fail(world, "order", "the oldest of stream %d is #%d, not #%d", s,
                       found ? work_of_submission(found) : NOBODY, oldest);
        }
        const struct worker *worker = world->serving[s];
        if (!worker || !worker->ready || worker->core.kill != BHI_KILL_NONE ||
            worker->published - worker->core.harvested >= world->program->lane) {
            continue;
        }
        for (int work = 0; work < WORKS; work++) {
            const struct life *life = &world->lives[work];
            int obstacle;
            if (!life->submitted || life->ended || life->worker ||
                world->program->works[work].stream != s) {
                continue;
            }
            tally(TALLY_HELD_BACK);
            if (oracle_may_release(world, work, &obstacle) && trust_suits(world, worker, work)) {
                world_fail(world, "E16", "#%d is held back, although nothing stands in its way",
                           work);
            }
            break;
        }
    }
}

static void check_buffers(struct world *world) {
    uint32_t refs[BUFFERS] = {0};
    for (int work = 0; work < WORKS; work++) {
        const struct life *life = &world->lives[work];
        for (int b = 0; life->buffers && b < BUFFERS; b++) {
            refs[b] += life->buffers >> b & 1;
        }
        if (life->ended && life->core) {
            world_fail(world, "B2", "#%d has ended and holds its buffers", work);
        }
    }
    for (int b = 0; b < BUFFERS; b++) {
        if (refs[b] != world->buffers[b].refs) {
            world_fail(world, "B2", "buffer %d has %u references of submissions, not %u", b,
                       world->buffers[b].refs, refs[b]);
        }
    }
}

static void check_verdict(struct world *world, uint32_t work) {
    const struct life *life = &world->lives[work];
    if (!life->event) {
        return;
    }
    bh_event_state state = bhi_event_state(life->event);
    if ((state == BH_EVENT_PENDING) == life->ended) {
        world_fail(world, "E2", "#%u: state %d", work, state);
    }
    if (life->ended && (memcmp(&life->verdict, &life->event->verdict, sizeof life->verdict) != 0 ||
                        (state == BH_EVENT_READY) != (life->verdict.status == BH_OK))) {
        world_fail(world, "E1", "the verdict of #%u has changed", work);
    }
}

void world_settle(struct world *world) {
    if (world->failed) {
        return;
    }
    bhi_core_pump(&world->core);
    oracle_settled(world);
    check_streams(world);
    check_buffers(world);
    waiters_check(world);
    /* One at a time: all of them at the end. */
    check_verdict(world, world->checked++ % WORKS);
}

/* -- the host's steps ----------------------------------------------------------------------------
 */

static bool use_buffers(struct world *world, struct bhi_submission *submission, int number) {
    const struct work *work = &world->program->works[number];
    struct life *life = &world->lives[number];
    for (int i = 0; i < work->use_count; i++) {
        uint32_t b = work->uses[i].buffer;
        enum access access = work->uses[i].access;
        bool first;
        if (!bhi_submission_use(submission, &world->buffers[b].content,
                                access == READ || access == INOUT, access != READ,
                                access == OVERWRITE, &first)) {
            return false;
        }
        if (first != !(life->buffers >> b & 1)) {
            world_fail(world, "B2", "#%d: buffer %u is %sused for the first time", number, b,
                       first ? "not " : "");
        }
        if (first) {
            world->buffers[b].refs++;
        }
        life->buffers |= 1u << b;
    }
    return true;
}

static bool submit(struct world *world, int number) {
    const struct work *work = &world->program->works[number];
    struct life *life = &world->lives[number];
    struct world_stream *stream = world->streams[work->stream];
    if (number >= (int)world->program->work_count || number < world->submitted || !stream ||
        !stream->held || world->closed) {
        return false;
    }
    world->submitted = number + 1;
    life->event = core_ops_new_event(world, number);
    life->id = life->event->id = ++world->ids;
    world->work_of_id[life->id] = (int8_t)number;
    life->event->verdict.submitted_ns = life->submitted_ns = world->now_ns;
    life->core = core_ops_new_submission(world, number);
    bhi_submission_init(life->core, &stream->core, life->event);
    life->core->deadline_ns =
        work->deadline_ms == NO_DEADLINE ? BH_FOREVER : work->deadline_ms * MS;
    life->core->runs_kernel = !work->compiles;
    life->core->abortable = work->guarded;
    life->core->reports_device_time = number % 2;
    life->core->code = trust_code(number);
    life->core->apart = trust_alone(world->program, number);
    bh_event *waits[WAITS];
    uint32_t count = 0;
    for (int i = 0; i < work->wait_count; i++) {
        if (world->lives[work->waits[i]].event) {
            waits[count++] = world->lives[work->waits[i]].event;
        }
    }
    if (!use_buffers(world, life->core, number) ||
        !bhi_submission_depend(life->core, waits, count)) {
        abort(); /* out of memory */
    }
    if (work->abandoned) {
        struct bh_event *event = life->event;
        life->event = NULL;
        (void)event;
        bhi_submission_abandon(life->core);
        if (life->core) {
            world_fail(world, "B2", "#%d is abandoned and not freed", number);
        }
        return true;
    }
    bhi_event_ref(life->event);
    life->submitted = true;
    if (world->oracle.gives_up[work->stream] != 0 && stream->heals &&
        world->now_ns - stream->gave_up_ns >=
            world->program->streams[work->stream].window_ms * MS) {
        stream->losses = 0, oracle_healed(world, work->stream), tally(TALLY_HEALED);
    }
    oracle_submit(world, number);
    struct due refusal;
    if (!world->oracle.works[number].doomed && trust_refuses(world, number, &refusal)) {
        oracle_expect(world, number, &refusal); /* asked or not: it is to end at once */
    }
    bhi_submission_enqueue(life->core);
    life->queued = true;
    stream = world->streams[work->stream];
    bool unavailable = stream->core.state == BHI_STREAM_UNAVAILABLE;
    if (unavailable != (world->oracle.gives_up[work->stream] != 0)) {
        world_fail(world, "budget", "stream %d %s", work->stream,
                   unavailable ? "does not heal" : "heals too early");
    }
    return true;
}

static void before_cancel(struct world *world, int work) {
    const struct life *life = &world->lives[work];
    world->oracle.works[work].end_requested = true;
    struct due due = {.status = BH_CANCELLED, .origin = NOBODY, .cause = NO_CAUSE};
    due.cause.worker_pid = life->worker ? life->worker->core.pid : 0;
    oracle_expect(world, work, &due);
}

static void after_cancel(struct world *world, int work) {
    const struct life *life = &world->lives[work];
    if (life->worker && !life->ended && !life->worker->end_watched) {
        world_fail(world, "E9", "nobody is to notice the end of #%d, which is cancelled", work);
    }
}

static bool cancel(struct world *world, int work) {
    struct life *life = &world->lives[work];
    if (!life->submitted || life->ended) {
        return false;
    }
    before_cancel(world, work);
    bhi_submission_cancel(life->core);
    after_cancel(world, work);
    return true;
}

/* All that the stream has on its way. What no worker has come to ends at once, each by itself: none
 * is the victim of another that is cancelled with it. */
static bool cancel_all(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    uint64_t all = 0, unstarted = 0;
    for (int work = 0; work < WORKS; work++) {
        const struct life *life = &world->lives[work];
        const struct worker *worker = life->worker;
        if (!is_pending(world, work) || world->program->works[work].stream != s) {
            continue;
        }
        all |= 1ull << work;
        if (world->oracle.works[work].doomed) {
            continue;
        }
        if (!worker || (!worker->kill_requested && life->seq > worker->started &&
                        !worker->records[life->seq].withdrawn)) {
            unstarted |= 1ull << work;
        } else {
            tally(TALLY_CANCELLED_ALL_LATE);
        }
    }
    if (!stream || !stream->held || !all) {
        return false;
    }
    for (int work = 0; work < WORKS; work++) {
        if (all >> work & 1) {
            before_cancel(world, work);
        }
    }
    bhi_stream_cancel(&stream->core);
    for (int work = 0; work < WORKS; work++) {
        const struct life *life = &world->lives[work];
        if (all >> work & 1) {
            after_cancel(world, work);
        }
        if (!(unstarted >> work & 1)) {
            continue;
        }
        tally(TALLY_CANCELLED_ALL);
        if (!life->ended || life->verdict.status != BH_CANCELLED ||
            life->verdict.origin != life->id || life->verdict.executed != BH_EXECUTED_NO) {
            world_fail(world, "E5", "#%d is cancelled with its stream, and %s", work,
                       life->ended ? "ends of something else" : "has not ended");
        }
    }
    return true;
}

/* What stands in the way of the host, and who poisoned what it is about to see. */
static bool access_buffer(struct world *world, int b, bool writes, struct bh_event **out_poison) {
    struct bhi_content *content = &world->buffers[b].content;
    uint64_t users, deciding = oracle_writers(world, b, &users);
    uint64_t relevant = writes ? users : deciding;
    int obstacle = NOBODY, bad = NOBODY, poisoned = 0;
    for (int work = WORKS - 1; work >= 0; work--) {
        const struct opinion *opinion = &world->oracle.works[work];
        if (relevant >> work & 1 && !world->lives[work].ended) {
            obstacle = work;
        }
        if (deciding >> work & 1 && world->lives[work].ended && !opinion->ready) {
            poisoned++;
            if (bad == NOBODY || opinion->tick <= world->oracle.works[bad].tick) {
                bad = work;
            }
        }
    }
    struct bh_event *found = bhi_content_obstacle(content, writes);
    int pending = found ? work_of_event(found) : NOBODY;
    if ((pending == NOBODY) != (obstacle == NOBODY) ||
        (pending != NOBODY && !(relevant >> pending & 1 && !world->lives[pending].ended))) {
        world_fail(world, "B5", "the host has to wait for #%d, not #%d", pending, obstacle);
    }
    if (found) {
        tally(TALLY_MAP_PENDING);
    }
    if (found || world->failed) {
        return false;
    }
    *out_poison = bhi_content_poison(content);
    int origin = *out_poison ? work_of_event(*out_poison) : NOBODY;
    if ((origin == NOBODY) != (bad == NOBODY)) {
        world_fail(world, "B5", "buffer %d carries the poison of #%d, not of #%d", b, origin, bad);
    } else if (origin != NOBODY && poisoned < 8 &&
               world->oracle.works[origin].tick != world->oracle.works[bad].tick) {
        world_fail(world, "E7", "buffer %d carries the poison of #%d, not of #%d", b, origin, bad);
    }
    return !world->failed;
}

static bool map(struct world *world, int b) {
    struct bh_event *poison;
    if (!access_buffer(world, b, false, &poison)) {
        return false;
    }
    tally(poison ? TALLY_MAP_POISONED : TALLY_MAP_CLEAN);
    if (poison) {
        return true;
    }
    bool known;
    uint64_t expected = oracle_value(world, b, &known);
    if (!known || expected != world->buffers[b].value) {
        world_fail(world, "B5", "the host reads buffer %d, which is CLEAN, and finds %s", b,
                   known ? "something else" : "what nobody can know");
    }
    return true;
}

static bool host_write(struct world *world, int b, bool whole) {
    struct bh_event *poison;
    if (!access_buffer(world, b, true, &poison) || (poison && !whole)) {
        return false;
    }
    uint64_t value = model_mix(0x40057 + ++world->host_writes);
    if (poison) {
        tally(TALLY_CLEANED);
    }
    if (whole) {
        bhi_content_clean(&world->buffers[b].content);
    }
    world->buffers[b].value = whole ? value : model_mix(world->buffers[b].value ^ value);
    oracle_host_wrote(world, b, value, whole);
    if (whole && bhi_content_poison(&world->buffers[b].content)) {
        world_fail(world, "B5", "buffer %d is overwritten and still poisoned", b);
    }
    return true;
}

static bool reset(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    if (!stream || world->closed) {
        return false;
    }
    bool was = stream->core.state == BHI_STREAM_UNAVAILABLE;
    if (world->oracle.failure[s] != NOBODY) {
        tally(TALLY_RESET);
    }
    oracle_reset(world, s);
    oracle_healed(world, s);
    stream->losses = 0;
    if (bhi_stream_reset(&stream->core) != was || stream->core.state == BHI_STREAM_UNAVAILABLE) {
        world_fail(world, "budget", "stream %d is reset and still UNAVAILABLE", s);
    }
    if (stream->core.restart.not_before_ns) {
        world_fail(world, "budget", "stream %d is reset and still pauses", s);
    }
    return true;
}

static bool release(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    if (!stream || !stream->held) {
        return false;
    }
    stream->held = false;
    world_unref_stream(&stream->core);
    return true;
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

static int oldest_pending(const struct world *world) {
    for (int work = 0; work < WORKS; work++) {
        if (is_pending(world, work)) {
            return work;
        }
    }
    return NOBODY;
}

static int newest_pending(const struct world *world) {
    for (int work = WORKS - 1; work >= 0; work--) {
        if (is_pending(world, work)) {
            return work;
        }
    }
    return NOBODY;
}

/* -- one step ------------------------------------------------------------------------------------
 */

static bool play(struct world *world, const struct step *step) {
    int target = step->target;
    struct worker *worker = target < STREAMS ? world->serving[target] : NULL;
    switch ((enum op)step->op) {
    case OP_SUBMIT:
        return submit(world, target);
    case OP_CANCEL:
        return cancel(world, target);
    case OP_CANCEL_ALL:
        return cancel_all(world, target);
    case OP_WAIT:
        return waiters_join(world, target);
    case OP_LEAVE:
        return waiters_leave(world, target, step->arg);
    case OP_HOLD:
        return trust_hold(world, target, step->arg);
    case OP_MAP:
        return map(world, target);
    case OP_DISCARD:
        return host_write(world, target, true);
    case OP_PATCH:
        return host_write(world, target, false);
    case OP_RESET:
        return reset(world, target);
    case OP_RELEASE:
        return release(world, target);
    case OP_CLOSE:
        if (oldest_pending(world) != NOBODY) {
            tally(TALLY_CLOSED);
        }
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
        return supervise_bury(world, worker);
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
    int awaited = world->program->seed % 2 ? oldest_pending(world) : newest_pending(world);
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
            supervise_bury(world, worker);
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
        bool compiling = seq && worker->compiles == seq && worker->runs < seq;
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
    for (int i = 0; i < 10000 && !world->failed && oldest_pending(world) != NOBODY; i++) {
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
        release(world, s);
    }
    world_settle(world);
    for (int i = 0; i < 100 && world->workers && !world->failed; i++) {
        if (world->workers->stream != NOBODY) {
            world_fail(world, "E9", "worker %d outlives its stream", world->workers->core.pid);
        }
        worker_die(world, world->workers, 1);
        supervise_bury(world, world->workers);
    }
    for (uint32_t work = 0; work < WORKS && !world->failed; work++) {
        check_verdict(world, work);
        bhi_event_unref(world->lives[work].event);
    }
    for (int b = 0; b < BUFFERS; b++) {
        bhi_content_fini(&world->buffers[b].content);
    }
    for (int s = 0; s < STREAMS; s++) {
        if (world->streams[s]) {
            world_fail(world, "E9", "stream %d is never let go", s);
        }
    }
    if (world->live_events || world->live_submissions) {
        world_fail(world, "B2", "%u events and %u submissions are left", world->live_events,
                   world->live_submissions);
    }
}
