/* What a worker says of its progress, which may be a lie, ends no deadline. */
#include "stage.h"

#define MS    UINT64_C(1000000)
#define LIMIT (100 * MS)

static struct bh_event *events[2];
static uint32_t count;
static uint64_t since_ns; /* the turn of the first came */
static struct bhi_progress_snapshot snapshot;

static void begin(uint32_t submissions) {
    count = submissions;
    snapshot = (struct bhi_progress_snapshot){.started = count};
    a.stream.compile_deadline_ns = LIMIT;
    next_deadline_ns = LIMIT;
    for (uint32_t i = 0; i < count; i++) {
        events[i] = submit(&a, NULL, NULL);
    }
    next_deadline_ns = BH_FOREVER;
    since_ns = a.worker.running_since_ns;
}

/* A look after so much time, at which the worker says that |marker| submissions are done. */
static void look(uint64_t after_ns, uint32_t marker) {
    snapshot.marker = marker;
    (void)bhi_core_worker_deadline(&a.worker, since_ns + after_ns, &snapshot);
}

static void end_killed(enum bhi_kill why) {
    BHT_EQ(fake.kills, 1);
    BHT_EQ(a.worker.life.kill, why);
    dead(&a, why == BHI_KILL_COMPILE ? BH_COMPILE_FAILED : BH_DEADLINE, NULL, snapshot);
    bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
    for (uint32_t i = 0; i < count; i++) {
        BHT_EQ(bhi_event_state(events[i]), BH_EVENT_POISONED);
    }
}

/* Of two that share a queue submission the second has its deadline from the marker on, also when the
 * record of the first comes late and says that it ended earlier. */
TEST(a_marker_in_the_lane_gives_the_next_its_time) {
    for (uint32_t recorded = 0; recorded < 2; recorded++) {
        again();
        begin(2);
        look(LIMIT - 1, 1);
        if (recorded) {
            result(&a, BH_OK);
        }
        look(2 * LIMIT - 2, 1);
        BHT_EQ(fake.kills, 0);
        for (uint32_t i = recorded; i < count; i++) {
            result(&a, BH_OK);
            BHT_EQ(bhi_event_state(events[i]), BH_EVENT_READY);
        }
    }
}

/* The device has done all that was ever given to it: one more deadline, for the record of that. */
TEST(a_marker_beyond_the_lane_gives_no_time) {
    begin(1);
    look(LIMIT - 1, 1);
    look(2 * LIMIT - 2, 2);
    BHT_EQ(fake.kills, 0);
    look(2 * LIMIT - 1, 3);
    end_killed(BHI_KILL_DEADLINE);
}

/* The same if the marker goes back in between. */
TEST(a_marker_that_goes_back_gives_no_time) {
    begin(2);
    look(LIMIT - 1, 1);
    look(2 * LIMIT - 3, 0);
    look(2 * LIMIT - 2, 1);
    BHT_EQ(fake.kills, 0);
    look(2 * LIMIT - 1, 1);
    end_killed(BHI_KILL_DEADLINE);
}

/* Now the one compiles, now the other, as the marker goes to and fro. */
TEST(compiles_that_alternate_end) {
    begin(2);
    uint64_t after_ns = 0;
    for (uint32_t i = 0; i < 100 && !fake.kills; i++) {
        after_ns += LIMIT - 1;
        snapshot.compiles = 1 + i % 2;
        snapshot.compile_ended = true;
        look(after_ns, i % 2);
    }
    BHT_LE(after_ns, 5 * LIMIT); /* of two runs, two compiles and the look that finds it late */
    end_killed(BHI_KILL_DEADLINE);
}

/* The turn of one that is cancelled behind others comes without a notice. So it is looked for in short
 * steps, however much time the others have. */
TEST(a_cancelled_one_is_looked_for) {
    static const uint64_t deadlines_ns[] = {1000 * LIMIT, BH_FOREVER};
    for (size_t i = 0; i < BHT_COUNT(deadlines_ns); i++) {
        again();
        fake.late = true;
        next_deadline_ns = deadlines_ns[i];
        (void)submit(&a, NULL, NULL);
        struct bh_event *cancelled = submit(&a, NULL, NULL);
        snapshot = (struct bhi_progress_snapshot){.started = 2};
        bhi_submission_cancel(cancelled->submission);
        const uint64_t now_ns = fake.now_ns;
        BHT_WITHIN(bhi_core_worker_deadline(&a.worker, now_ns, &snapshot), now_ns + 1,
                   now_ns + 5 * MS);
        result(&a, BH_OK);
        result(&a, BH_OK);
    }
}

/* What waits for a worker until shortly before it is due has the rest of the time to run. Its
 * verdict names the deadline that was asked for, not that rest. */
TEST(a_deadline_that_counts_the_wait_leaves_the_rest) {
    const uint64_t rests_ns[] = {LIMIT, 60 * MS, 1};
    for (size_t i = 0; i < BHT_COUNT(rests_ns); i++) {
        again();
        const uint64_t due_ns = 1000 * MS + rests_ns[i];
        fake.now_ns = 1000 * MS;
        snapshot = (struct bhi_progress_snapshot){.started = 1};
        struct bhi_submission *submission = make(&a);
        struct bh_event *event = submission->event;
        submission->deadline_ns = LIMIT;
        submission->due_ns = due_ns;
        fake.armed_ns = BH_FOREVER;
        enqueue(submission, NULL, NULL);
        BHT_EQ(submission->state, BHI_RELEASED);
        BHT_EQ(fake.armed_ns, due_ns);
        BHT_EQ(bhi_core_worker_deadline(&a.worker, due_ns - 1, &snapshot), due_ns);
        BHT_EQ(fake.kills, 0);
        (void)bhi_core_worker_deadline(&a.worker, due_ns, &snapshot);
        BHT_EQ(fake.kills, 1);
        dead(&a, BH_DEADLINE, NULL, snapshot);
        BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        BHT_EQ(event->verdict.limit, LIMIT);
        BHT_TRUE(strstr(a.worker.life.kill_text, "the deadline of 100 ms passed"));
    }
}

/* A worker begins as soon as it sees a submission, which may be before the thread that gave it that
 * goes on: then its times are no lies. */
TEST(a_worker_may_begin_before_its_host_goes_on) {
    fake.lags_ns = 50 * MS;
    struct bhi_submission *submission = make(&a);
    struct bh_event *event = submission->event;
    submission->reports_device_time = true;
    const uint64_t began_ns = fake.now_ns + MS;
    enqueue(submission, NULL, NULL);
    BHT_TRUE(ends(&a, (struct bhi_outcome){.status = BH_OK,
                                           .executed = BH_EXECUTED_YES,
                                           .started_ns = began_ns,
                                           .ended_ns = began_ns + 10 * MS,
                                           .device_ns = 9 * MS}));
    BHT_EQ(fake.kills, 0);
    BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
    BHT_EQ(event->verdict.started_ns, began_ns);
    BHT_EQ(event->verdict.device_ns, 9 * MS);
}

/* What was to stop had begun: a worker that says at its death that it had not gets it no second run. */
TEST(what_was_asked_to_stop_had_begun) {
    a.worker.can_abort = true;
    a.stream.grace_ns = LIMIT;
    struct bhi_submission *submission = make(&a);
    struct bh_event *event = submission->event;
    submission->abortable = true;
    submission->deadline_ns = LIMIT;
    enqueue(submission, NULL, NULL);
    snapshot = (struct bhi_progress_snapshot){.started = 1};
    (void)bhi_core_worker_deadline(&a.worker, a.worker.running_since_ns + LIMIT, &snapshot);
    BHT_EQ(fake.aborts, 1);
    dead(&a, BH_WORKER_EXIT, "exit", (struct bhi_progress_snapshot){0});
    BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
    BHT_EQ(event->verdict.status, BH_WORKER_EXIT);
    BHT_EQ(event->verdict.executed, BH_EXECUTED_UNKNOWN);
}

/* However often a cancel is asked for, it is one, and is over when what was cancelled has ended. */
TEST(a_cancelled_one_is_counted_once) {
    fake.late = true;
    (void)submit(&a, NULL, NULL);
    struct bh_event *cancelled = submit(&a, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        fake.armed_ns = BH_FOREVER;
        bhi_submission_cancel(cancelled->submission);
        BHT_EQ(a.worker.cancels, 1);
        BHT_EQ(fake.asked, 1);
    }
    fake.armed_ns = BH_FOREVER;
    bhi_core_worker_hasten(&a.worker, cancelled->submission);
    BHT_EQ(fake.armed_ns, 0); /* it is looked for at once */
    BHT_EQ(a.worker.cancels, 1);
    result(&a, BH_OK);
    result(&a, BH_OK);
    BHT_EQ(a.worker.cancels, 0);
}

/* A record starts the time of the next one. It is looked for if it has a deadline, or is cancelled. */
TEST(a_record_arms_the_look_for_the_next) {
    enum { NEITHER, DEADLINE, CANCELLED, LATER_DEADLINE, LATER_CANCELLED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        again();
        fake.late = true;
        (void)submit(&a, NULL, NULL);
        next_deadline_ns = way == DEADLINE ? LIMIT : BH_FOREVER;
        struct bh_event *next = submit(&a, NULL, NULL);
        next_deadline_ns = way == LATER_DEADLINE ? LIMIT : BH_FOREVER;
        struct bh_event *later = submit(&a, NULL, NULL);
        next_deadline_ns = BH_FOREVER;
        if (way == CANCELLED || way == LATER_CANCELLED) {
            bhi_submission_cancel((way == CANCELLED ? next : later)->submission);
        }
        fake.armed_ns = BH_FOREVER;
        result(&a, BH_OK);
        BHT_EQ(fake.armed_ns < BH_FOREVER, way != NEITHER);
        result(&a, BH_OK);
        result(&a, BH_OK);
    }
}

/* All in the lane are withdrawn, and it is full of them: no deadline runs, so the worker has a time to
 * skip them. Where nothing waits for that, it may take longer. */
TEST(a_lane_of_withdrawn_ones_is_looked_at) {
    for (int waits = 0; waits < 2; waits++) {
        again();
        struct bh_event *event = submit(&a, NULL, NULL);
        bhi_submission_cancel(event->submission);
        BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        const uint64_t due_ns = a.worker.running_since_ns + 5000 * MS;
        fake.publish = BHI_LANE_FULL;
        fake.armed_ns = BH_FOREVER;
        if (waits) {
            (void)submit(&a, NULL, NULL);
        }
        BHT_EQ(fake.armed_ns, waits ? due_ns : BH_FOREVER);
        BHT_EQ(bhi_core_worker_deadline(&a.worker, due_ns - 1, &snapshot),
               waits ? due_ns : BH_FOREVER);
        BHT_EQ(fake.kills, 0);
        BHT_EQ(bhi_core_worker_deadline(&a.worker, due_ns, &snapshot), BH_FOREVER);
        BHT_EQ(fake.kills, waits);
        bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
    }
}

TEST(a_killed_worker_gets_nothing) {
    bhi_core_worker_kill(&a.worker, BHI_KILL_RETIRED, 0, "it is to go");
    BHT_EQ(submit(&a, NULL, NULL)->submission->state, BHI_QUEUED);
    bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
}

/* What a worker was killed for began as it was killed: the text says so of no other, and not where the
 * worker has lied or had been asked to stop it. */
TEST(the_text_of_a_kill_is_mended_for_one) {
    static const struct {
        enum bhi_phase phase;
        struct bhi_progress_snapshot last;
        bool violated, end_requested, mended;
    } rows[] = {
        {BHI_PHASE_UNBEGUN, {.started = 1}, false, false, false}, /* the one before */
        {BHI_PHASE_UNBEGUN, {.started = 2}, false, false, true},
        {BHI_PHASE_UNBEGUN, {.started = 2}, true, false, false},
        {BHI_PHASE_UNBEGUN, {.started = 2}, false, true, false},
        {BHI_PHASE_COMPILES, {.started = 2, .compiles = 2}, false, false, false},
        {BHI_PHASE_COMPILES, {.started = 2, .compiles = 1}, false, false, true},
        {BHI_PHASE_COMPILES,
         {.started = 2, .compiles = 2, .compile_ended = true},
         false,
         false,
         true},
        {BHI_PHASE_RUNS, {.started = 2}, false, false, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        again();
        begin(2);
        bhi_core_worker_kill(&a.worker, BHI_KILL_DEADLINE, events[1]->id, "late");
        a.worker.life.kill_phase = rows[i].phase;
        a.worker.life.violated = rows[i].violated;
        events[1]->submission->end_requested =
            rows[i].end_requested ? BHI_KILL_DEADLINE : BHI_KILL_NONE;
        bhi_core_worker_mend_text(&a.worker, &rows[i].last);
        if ((strcmp(a.worker.life.kill_text, "late") != 0) != rows[i].mended) {
            BHT_FAIL("row %zu: %s", i, a.worker.life.kill_text);
        }
        dead(&a, BH_DEADLINE, NULL, rows[i].last);
        bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
    }
}

/* What a start needs is used up by others: it is tried again soon, for a while, and then the stream says
 * what it lacks, and heals by itself. A worker ends all that. */
TEST(a_stream_that_starves) {
    const bh_detail why = {.status = BH_NO_MEMORY, .message = "no room"};
    for (int served = 0; served < 2; served++) {
        again();
        bhi_stream_lost_worker(&a.stream, true, &why);
        struct bh_event *event = submit(&a, NULL, NULL);
        uint64_t first_ns = 0;
        for (int try = 0; try < 2; try++) {
            fake.changed = 0;
            bhi_stream_starved(&a.stream, &why);
            first_ns = first_ns ? first_ns : fake.now_ns;
            BHT_EQ(a.stream.state, BHI_STREAM_WANTING);
            BHT_EQ(a.stream.restart.not_before_ns, fake.now_ns + 20 * MS);
            BHT_STR_EQ(a.stream.trouble.message, "no room");
            BHT_EQ(fake.changed, 1);
            fake.now_ns = first_ns + 400 * MS - 2;
        }
        if (served) {
            next_worker(&a);
            BHT_EQ(a.stream.starved_since_ns, 0);
            BHT_EQ(a.stream.trouble.status, BH_OK);
            result(&a, BH_OK);
            continue;
        }
        fake.now_ns = first_ns + 400 * MS - 1;
        bhi_stream_starved(&a.stream, &why);
        BHT_EQ(a.stream.state, BHI_STREAM_UNAVAILABLE);
        BHT_EQ(a.stream.starved_since_ns, 0);
        BHT_EQ(a.stream.heals_at_ns, first_ns + 1400 * MS);
        BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        BHT_EQ(event->verdict.status, BH_NO_MEMORY);
    }
}
