/* The compile deadline: of the worker's processor time, and at most four times as long by the
 * clock. */
#include "stage.h"

#define MS    UINT64_C(1000000)
#define LIMIT (100 * MS)

struct compile {
    struct stage s;
    struct bh_event *event;
    uint64_t since_ns; /* its turn came */
    uint64_t cpu_ns;   /* at the look that first saw it compiling, right after */
    struct bhi_progress_snapshot snapshot;
};

static uint64_t look_at(struct compile *c, uint64_t after_ns) {
    return bhi_core_worker_deadline(&c->s.a.worker, c->since_ns + after_ns, &c->snapshot);
}

/* A look after so much time, in all of which the compile has used |used_ns|. */
static uint64_t look(struct compile *c, uint64_t after_ns, uint64_t used_ns) {
    fake.cpu_ns = c->cpu_ns ? c->cpu_ns + used_ns : 0;
    return look_at(c, after_ns);
}

/* Its worker has used |cpu_ns| before; 0: unknown. |deadline_ns|: of the run. */
static void begin(struct compile *c, uint64_t cpu_ns, uint64_t deadline_ns) {
    *c = (struct compile){.cpu_ns = cpu_ns, .snapshot = {.started = 1, .compiles = 1}};
    set_up(&c->s);
    c->s.a.stream.compile_deadline_ns = LIMIT;
    fake.cpu_ns = cpu_ns;
    next_deadline_ns = deadline_ns;
    c->event = submit(&c->s, &c->s.a, NULL, NULL);
    next_deadline_ns = BH_FOREVER;
    c->since_ns = c->s.a.worker.running_since_ns;
    BHT_EQ(look_at(c, 0), c->since_ns + LIMIT);
}

static void end(struct compile *c) {
    bhi_event_unref(c->event);
    tear_down(&c->s);
}

static void end_ready(struct compile *c) {
    BHT_EQ(fake.kills, 0);
    result(&c->s, &c->s.a, BH_OK);
    BHT_EQ(bhi_event_state(c->event), BH_EVENT_READY);
    end(c);
}

/* Its worker was killed for it, which is only suspected (T2). |words|: what the verdict says. */
static void end_killed(struct compile *c, const char *words) {
    BHT_EQ(fake.kills, 1);
    BHT_EQ(c->s.a.worker.life.kill, BHI_KILL_COMPILE);
    BHT_EQ(c->s.a.worker.life.kill_event, c->event->id);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = c->snapshot};
    death.outcome.status = BH_COMPILE_FAILED;
    death.outcome.message = c->s.a.worker.life.kill_text;
    BHT_TRUE(bhi_core_worker_died(&c->s.a.worker, &death));
    BHT_EQ(c->event->verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(c->event->verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(c->event->verdict.blame, fake.stopped ? BH_BLAME_NONE : BH_BLAME_SUSPECTED);
    BHT_EQ(c->event->verdict.limit, LIMIT);
    BHT_STR_EQ(c->event->verdict.message, words);
    end(c);
}

#define PASSED "the compile deadline of 100 ms passed"

TEST(a_busy_compile_is_killed_at_its_deadline) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    BHT_EQ(look(&c, LIMIT, LIMIT), BH_FOREVER);
    end_killed(&c, PASSED);
}

/* What several threads have used together counts, but not before the deadline by the clock. */
TEST(a_compile_has_its_deadline_by_the_clock) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    BHT_EQ(look(&c, LIMIT - 1, 8 * LIMIT), c.since_ns + LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(&c, LIMIT, 8 * LIMIT), BH_FOREVER);
    end_killed(&c, PASSED);
}

/* It is looked at again when it can have used the rest, and not without a pause. */
TEST(a_compile_on_a_busy_machine_has_more_time) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    BHT_EQ(look(&c, LIMIT, 30 * MS), c.since_ns + LIMIT + 70 * MS);
    BHT_EQ(look(&c, 170 * MS, 60 * MS), c.since_ns + 210 * MS);
    BHT_EQ(look(&c, 210 * MS, LIMIT - 1), c.since_ns + 215 * MS);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(&c, 215 * MS, LIMIT), BH_FOREVER);
    end_killed(&c, PASSED);
}

TEST(a_late_compile_on_a_busy_machine_is_ready) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    (void)look(&c, 3 * LIMIT, LIMIT / 2);
    end_ready(&c);
}

TEST(a_compile_that_sleeps_is_killed_at_four_deadlines) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    BHT_EQ(look(&c, LIMIT, 0), c.since_ns + 2 * LIMIT);
    BHT_EQ(look(&c, 4 * LIMIT - 6 * MS, 12 * MS + 1), c.since_ns + 4 * LIMIT);
    BHT_EQ(look(&c, 4 * LIMIT - 1, 12 * MS + 1), c.since_ns + 4 * LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(&c, 4 * LIMIT, 12 * MS + 1), BH_FOREVER);
    end_killed(&c, PASSED "; in 400 ms it used 12 ms of processor time");
}

/* Its processor time cannot be read: then the clock ends it. */
TEST(a_compile_whose_processor_time_is_unknown) {
    struct compile c;
    begin(&c, 0, BH_FOREVER);
    BHT_EQ(look(&c, LIMIT, 0), c.since_ns + 2 * LIMIT);
    fake.cpu_ns = 3600 * 1000 * MS; /* of its whole life, which says nothing of this compile */
    BHT_EQ(look_at(&c, 2 * LIMIT), c.since_ns + 3 * LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look_at(&c, 4 * LIMIT), BH_FOREVER);
    end_killed(&c, PASSED);
}

/* Somebody has stopped its worker (SIGSTOP): nobody is blamed. */
TEST(a_compile_in_a_stopped_worker_blames_nobody) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    fake.stopped = true;
    BHT_EQ(look(&c, 4 * LIMIT, 0), BH_FOREVER);
    end_killed(&c, PASSED "; in 400 ms it used 0 ms of processor time; somebody had stopped the "
                          "worker (SIGSTOP)");
}

/* What is lost with it has another status, and so not its reason: there is nothing to raise. */
TEST(a_reason_is_the_culprits_alone) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    struct bh_event *lost = submit(&c.s, &c.s.a, NULL, NULL);
    BHT_EQ(look(&c, LIMIT, LIMIT), BH_FOREVER);
    c.snapshot.started = 2;
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = c.snapshot};
    death.outcome.status = BH_COMPILE_FAILED;
    death.outcome.reason = BH_REASON_COMPILE_DEADLINE;
    death.outcome.message = c.s.a.worker.life.kill_text;
    BHT_TRUE(bhi_core_worker_died(&c.s.a.worker, &death));
    BHT_EQ(c.event->verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(c.event->verdict.reason, BH_REASON_COMPILE_DEADLINE);
    BHT_EQ(lost->verdict.status, BH_WORKER_LOST);
    BHT_EQ(lost->verdict.reason, BH_REASON_NONE);
    bhi_event_unref(lost);
    end(&c);
}

/* Processor time that the worker used before this compile is not the compile's. */
TEST(a_second_compile_counts_from_its_own_beginning) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    (void)look(&c, LIMIT - 1, 50 * LIMIT);
    c.snapshot.compile_ended = true;
    (void)look(&c, LIMIT - 1, 50 * LIMIT);
    result(&c.s, &c.s.a, BH_OK);
    bhi_event_unref(c.event);
    c.event = submit(&c.s, &c.s.a, NULL, NULL);
    c.snapshot = (struct bhi_progress_snapshot){.started = 2, .compiles = 2};
    c.since_ns = c.s.a.worker.running_since_ns;
    (void)look(&c, 0, 50 * LIMIT);
    (void)look(&c, LIMIT, 50 * LIMIT + LIMIT - 1);
    BHT_EQ(fake.kills, 0);
    (void)look(&c, 2 * LIMIT, 51 * LIMIT);
    end_killed(&c, PASSED);
}

/* A cancel does not wait for the processor time. */
TEST(a_cancelled_compile_is_killed_at_once) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    (void)look(&c, 2 * LIMIT, 0);
    fake.late = true; /* the worker has begun it */
    bhi_submission_cancel(c.event->submission);
    BHT_EQ(look(&c, 2 * LIMIT + 1, 0), BH_FOREVER);
    BHT_EQ(c.s.a.worker.life.kill, BHI_KILL_CANCEL);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = c.snapshot};
    death.outcome.status = BH_CANCELLED;
    death.outcome.message = c.s.a.worker.life.kill_text;
    BHT_TRUE(bhi_core_worker_died(&c.s.a.worker, &death));
    BHT_STR_EQ(c.event->verdict.message, "cancelled while it was compiled");
    end(&c);
}

/* What it uses before a look sees it counts for nothing, so the looks begin early, whatever the
 * deadline of the run. */
TEST(a_compile_is_looked_for_early) {
    struct compile c;
    begin(&c, 7 * MS, 3 * LIMIT);
    c.snapshot = (struct bhi_progress_snapshot){0};
    result(&c.s, &c.s.a, BH_OK);
    fake.armed_ns = BH_FOREVER;
    bhi_event_unref(c.event);
    c.event = submit(&c.s, &c.s.a, NULL, NULL);
    c.since_ns = c.s.a.worker.running_since_ns;
    BHT_EQ(fake.armed_ns, c.since_ns + LIMIT / 8);
    BHT_EQ(look_at(&c, LIMIT / 8), c.since_ns + 2 * (LIMIT / 8));
    BHT_EQ(look_at(&c, 2 * LIMIT), c.since_ns + 2 * LIMIT + LIMIT / 8);
    end_ready(&c);
}

TEST(a_compile_without_a_deadline_is_not_looked_for) {
    struct compile c;
    begin(&c, 7 * MS, BH_FOREVER);
    c.s.a.stream.compile_deadline_ns = BH_FOREVER;
    BHT_EQ(look(&c, 1000 * LIMIT, 1000 * LIMIT), BH_FOREVER);
    c.snapshot = (struct bhi_progress_snapshot){.started = 1};
    BHT_EQ(look(&c, 1000 * LIMIT, 1000 * LIMIT), BH_FOREVER);
    end_ready(&c);
}

/* A worker that keeps a little of its time is not looked at again and again: 64 times a deadline. */
TEST(a_compile_that_saves_its_last_time) {
    const uint64_t limit_ns = 64 * 1000 * MS;
    struct bhi_compile compile;
    bhi_compile_begin(&compile, 1);
    uint64_t now_ns = 5 + limit_ns, looks = 0;
    for (uint64_t due_ns;
         (due_ns = bhi_compile_due(&compile, 5, limit_ns, limit_ns, now_ns)) > now_ns;
         now_ns = due_ns) {
        looks++;
    }
    BHT_EQ(now_ns, 5 + 4 * limit_ns);
    BHT_EQ(looks, 3 * 64);
}

/* Limits whose multiples do not fit 64 bits. */
TEST(a_compile_deadline_of_centuries) {
    const uint64_t limit_ns = BH_FOREVER / 2;
    struct bhi_compile compile;
    bhi_compile_begin(&compile, 1);
    BHT_TRUE(bhi_compile_due(&compile, 5, limit_ns, 1, 10) == limit_ns + 5);
    BHT_TRUE(bhi_compile_due(&compile, 5, limit_ns, 1, limit_ns + 5) == BH_FOREVER);
}
