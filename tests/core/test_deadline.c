/* What a worker says of its progress, which may be a lie, ends no deadline. */
#include "stage.h"

#define MS    UINT64_C(1000000)
#define LIMIT (100 * MS)

struct lane {
    struct stage s;
    struct bh_event *events[2];
    uint32_t count;
    uint64_t since_ns; /* the turn of the first came */
    struct bhi_progress_snapshot snapshot;
};

static void begin(struct lane *lane, uint32_t count) {
    *lane = (struct lane){.count = count, .snapshot = {.started = count}};
    set_up(&lane->s);
    lane->s.a.stream.compile_deadline_ns = LIMIT;
    next_deadline_ns = LIMIT;
    for (uint32_t i = 0; i < count; i++) {
        lane->events[i] = submit(&lane->s, &lane->s.a, NULL, NULL);
    }
    next_deadline_ns = BH_FOREVER;
    lane->since_ns = lane->s.a.worker.running_since_ns;
}

/* A look after so much time, at which the worker says that |marker| submissions are done. */
static void look(struct lane *lane, uint64_t after_ns, uint32_t marker) {
    lane->snapshot.marker = marker;
    (void)bhi_core_worker_deadline(&lane->s.a.worker, lane->since_ns + after_ns, &lane->snapshot);
}

static void end_killed(struct lane *lane, enum bhi_kill why) {
    BHT_EQ(fake.kills, 1);
    BHT_EQ(lane->s.a.worker.life.kill, why);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = lane->snapshot};
    death.outcome.status = why == BHI_KILL_COMPILE ? BH_COMPILE_FAILED : BH_DEADLINE;
    (void)bhi_core_worker_died(&lane->s.a.worker, &death);
    bhi_stream_end_queued(&lane->s.a.stream, BH_CANCELLED, "");
    for (uint32_t i = 0; i < lane->count; i++) {
        BHT_EQ(bhi_event_state(lane->events[i]), BH_EVENT_POISONED);
        bhi_event_unref(lane->events[i]);
    }
    tear_down(&lane->s);
}

/* Of two that share a queue submission the second has its deadline from the marker on. */
TEST(a_marker_in_the_lane_gives_the_next_its_time) {
    struct lane lane;
    begin(&lane, 2);
    look(&lane, LIMIT - 1, 1);
    look(&lane, 2 * LIMIT - 2, 1);
    BHT_EQ(fake.kills, 0);
    for (uint32_t i = 0; i < lane.count; i++) {
        result(&lane.s, &lane.s.a, BH_OK);
        BHT_EQ(bhi_event_state(lane.events[i]), BH_EVENT_READY);
        bhi_event_unref(lane.events[i]);
    }
    tear_down(&lane.s);
}

/* The device has done all that was ever given to it: one more deadline, for the record of that. */
TEST(a_marker_beyond_the_lane_gives_no_time) {
    struct lane lane;
    begin(&lane, 1);
    look(&lane, LIMIT - 1, 1);
    look(&lane, 2 * LIMIT - 2, 2);
    BHT_EQ(fake.kills, 0);
    look(&lane, 2 * LIMIT - 1, 3);
    end_killed(&lane, BHI_KILL_DEADLINE);
}

/* The same if the marker goes back in between. */
TEST(a_marker_that_goes_back_gives_no_time) {
    struct lane lane;
    begin(&lane, 2);
    look(&lane, LIMIT - 1, 1);
    look(&lane, 2 * LIMIT - 3, 0);
    look(&lane, 2 * LIMIT - 2, 1);
    BHT_EQ(fake.kills, 0);
    look(&lane, 2 * LIMIT - 1, 1);
    end_killed(&lane, BHI_KILL_DEADLINE);
}

/* Now the one compiles, now the other, as the marker goes to and fro. */
TEST(compiles_that_alternate_end) {
    struct lane lane;
    begin(&lane, 2);
    uint64_t after_ns = 0;
    for (uint32_t i = 0; i < 100 && !fake.kills; i++) {
        after_ns += LIMIT - 1;
        lane.snapshot.compiles = 1 + i % 2;
        lane.snapshot.compile_ended = true;
        look(&lane, after_ns, i % 2);
    }
    BHT_LE(after_ns, 5 * LIMIT); /* of two runs, two compiles and the look that finds it late */
    end_killed(&lane, BHI_KILL_DEADLINE);
}
