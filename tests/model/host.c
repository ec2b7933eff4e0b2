/* The steps of the host: it submits, cancels, maps and writes buffers, resets and releases streams.
 */
#include "trust.h"
#include "world.h"

#include <stdlib.h>

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
        FAIL_IF(world, first != !(life->buffers >> b & 1), "B2",
                "#%d: buffer %u is %sused for the first time", number, b, first ? "not " : "");
        if (first) {
            world->buffers[b].refs++;
        }
        life->buffers |= 1u << b;
    }
    return true;
}

bool host_submit(struct world *world, int number) {
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
        life->event = NULL;
        bhi_submission_abandon(life->core);
        FAIL_IF(world, life->core, "B2", "#%d is abandoned and not freed", number);
        return true;
    }
    bhi_event_ref(life->event);
    life->submitted = true;
    if (world->oracle.gives_up[work->stream] != 0 && stream->heals &&
        world->now_ns - stream->gave_up_ns >=
            world->program->streams[work->stream].window_ms * MS) {
        stream->losses = stream->row = stream->taken = 0, oracle_healed(world, work->stream),
        tally(TALLY_HEALED);
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
    FAIL_IF(world, unavailable != (world->oracle.gives_up[work->stream] != 0), "budget",
            "stream %d %s", work->stream, unavailable ? "does not heal" : "heals too early");
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
    FAIL_IF(world, life->worker && !life->ended && !life->worker->end_watched, "E9",
            "nobody is to notice the end of #%d, which is cancelled", work);
}

bool host_cancel(struct world *world, int work) {
    struct life *life = &world->lives[work];
    if (!life->submitted || life->ended) {
        return false;
    }
    before_cancel(world, work);
    bhi_submission_cancel(life->core);
    after_cancel(world, work);
    return true;
}

bool host_cancel_all(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    uint64_t all = 0, unstarted = 0;
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        const struct worker *worker = life->worker;
        if (!world_is_pending(world, work) || world->program->works[work].stream != s) {
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
    for (int work = 0; work < world->submitted; work++) {
        if (all >> work & 1) {
            before_cancel(world, work);
        }
    }
    bhi_stream_cancel(&stream->core);
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        if (all >> work & 1) {
            after_cancel(world, work);
        }
        if (!(unstarted >> work & 1)) {
            continue;
        }
        tally(TALLY_CANCELLED_ALL);
        FAIL_IF(world,
                !life->ended || life->verdict.status != BH_CANCELLED ||
                    life->verdict.origin != life->id || life->verdict.executed != BH_EXECUTED_NO,
                "E5", "#%d is cancelled with its stream, and %s", work,
                life->ended ? "ends of something else" : "has not ended");
    }
    return true;
}

/* What stands in the way of the host, and who poisoned what it is about to see. */
static bool access_buffer(struct world *world, int b, bool writes, struct bh_event **out_poison) {
    struct bhi_content *content = &world->buffers[b].content;
    uint64_t users, deciding = oracle_writers(world, b, &users);
    uint64_t relevant = writes ? users : deciding;
    int obstacle = NOBODY, bad = NOBODY, poisoned = 0;
    for (int work = world->submitted - 1; work >= 0; work--) {
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
    FAIL_IF(world,
            (pending == NOBODY) != (obstacle == NOBODY) ||
                (pending != NOBODY && !(relevant >> pending & 1 && !world->lives[pending].ended)),
            "B5", "the host has to wait for #%d, not #%d", pending, obstacle);
    tally_if(found, TALLY_MAP_PENDING);
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

bool host_map(struct world *world, int b) {
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
    FAIL_IF(world, !known || expected != world->buffers[b].value, "B5",
            "the host reads buffer %d, which is CLEAN, and finds %s", b,
            known ? "something else" : "what nobody can know");
    return true;
}

bool host_write(struct world *world, int b, bool whole) {
    struct bh_event *poison;
    if (!access_buffer(world, b, true, &poison) || (poison && !whole)) {
        return false;
    }
    uint64_t value = model_mix(0x40057 + ++world->host_writes);
    tally_if(poison, TALLY_CLEANED);
    if (whole) {
        bhi_content_clean(&world->buffers[b].content);
    }
    world->buffers[b].value = whole ? value : model_mix(world->buffers[b].value ^ value);
    oracle_host_wrote(world, b, value, whole);
    FAIL_IF(world, whole && bhi_content_poison(&world->buffers[b].content), "B5",
            "buffer %d is overwritten and still poisoned", b);
    return true;
}

bool host_reset(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    if (!stream || world->closed) {
        return false;
    }
    bool was = stream->core.state == BHI_STREAM_UNAVAILABLE;
    tally_if(world->oracle.failure[s] != NOBODY, TALLY_RESET);
    oracle_reset(world, s);
    oracle_healed(world, s);
    stream->losses = stream->row = stream->taken = 0;
    FAIL_IF(world,
            bhi_stream_reset(&stream->core) != was || stream->core.state == BHI_STREAM_UNAVAILABLE,
            "budget", "stream %d is reset and still UNAVAILABLE", s);
    FAIL_IF(world, stream->core.restart.not_before_ns, "budget",
            "stream %d is reset and still pauses", s);
    return true;
}

bool host_release(struct world *world, int s) {
    struct world_stream *stream = world->streams[s];
    if (!stream || !stream->held) {
        return false;
    }
    stream->held = false;
    world_unref_stream(&stream->core);
    return true;
}
