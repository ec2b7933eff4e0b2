#include "world.h"

void losses_check_backoff(struct world *world, int index, bool good, bool productive) {
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
    FAIL_IF(world, until_ns != (pause_ns ? world->now_ns + pause_ns : 0), "budget",
            "stream %d pauses for %llu ns, not %llu", index,
            (unsigned long long)(until_ns ? until_ns - world->now_ns : 0),
            (unsigned long long)pause_ns);
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

void losses_check_budget(struct world *world, int index, bool productive, bool starting) {
    struct world_stream *stream = world->streams[index];
    uint64_t window_ns = world->program->streams[index].window_ms * MS;
    uint32_t budget = world->program->streams[index].budget;
    uint64_t now_ns = world->now_ns, cost_ns = window_ns / budget;
    bool gave_up = stream->core.state == BHI_STREAM_UNAVAILABLE;
    if (productive) {
        FAIL_IF(world, gave_up, "budget", "stream %d gives up after a death that is free", index);
        return;
    }
    if (starting) {
        add_to_row(world, stream, window_ns, cost_ns);
    }
    const bool in_row = starting && stream->row > 1;
    uint32_t recent = oracle_deaths_since(world, index, now_ns - window_ns);
    uint32_t at_once = oracle_deaths_since(world, index, now_ns - cost_ns);
    FAIL_IF(world,
            gave_up && recent < budget &&
                (!in_row || most_cost(world, index, window_ns, cost_ns) <= window_ns),
            "budget", "stream %d gives up after %u deaths of %u", index, recent, budget);
    FAIL_IF(world, !gave_up && (at_once >= budget || (in_row && stream->row_cost_ns > window_ns)),
            "budget", "stream %d goes on after %u deaths of %u", index, at_once, budget);
    oracle_lost_worker(world, index, now_ns);
}

static bool something_waits(const struct world *world, int index) {
    for (int work = 0; work < world->submitted; work++) {
        const struct life *life = &world->lives[work];
        if (world->program->works[work].stream == index && life->queued && !life->ended) {
            return true;
        }
    }
    return false;
}

void losses_check_taken(struct world *world, int index, bool productive, bool starting) {
    struct world_stream *stream = world->streams[index];
    const bool gave_up = stream->core.state == BHI_STREAM_UNAVAILABLE;
    const uint32_t most = 8 * world->program->streams[index].budget;
    const bool counts = !productive && (starting || gave_up || something_waits(world, index));
    stream->taken = counts ? stream->taken + 1 : 0;
    FAIL_IF(world, gave_up != (stream->taken > most), "E9",
            "stream %d %s after others have ended %u of its workers in a row; budget %u", index,
            gave_up ? "gives up" : "goes on", stream->taken, most / 8);
}

void losses_begin(struct world *world, int index, uint64_t statuses) {
    world->oracle.gives_up[index] = statuses;
    world_core_ops.ref_stream(&world->streams[index]->core);
}

void losses_end(struct world *world, int index) {
    struct world_stream *stream = world->streams[index];
    if (stream->core.state != BHI_STREAM_UNAVAILABLE) {
        world->oracle.gives_up[index] = 0;
    } else {
        world_trace(world, "  stream %d is UNAVAILABLE", index);
        tally(TALLY_UNAVAILABLE);
        stream->heals = stream->core.trouble.status == BH_UNAVAILABLE;
        stream->gave_up_ns = world->now_ns;
        for (int work = 0; work < world->submitted; work++) {
            FAIL_IF(world,
                    world->lives[work].submitted && !world->lives[work].ended &&
                        world->program->works[work].stream == index,
                    "E9", "#%d waits for a stream that is UNAVAILABLE", work);
        }
    }
    world_unref_stream(&stream->core);
}
