/* The compile deadline: of the worker's processor time, and at most four times as long by the
 * clock. */
#include "stage.h"

#define MS    UINT64_C(1000000)
#define LIMIT (100 * MS)

static struct bh_event *event;
static uint64_t since_ns; /* its turn came */
static uint64_t began_ns; /* of processor time, at the look that first saw it compiling */
static struct bhi_progress_snapshot snapshot;

static uint64_t look_at(uint64_t after_ns) {
    return bhi_core_worker_deadline(&a.worker, since_ns + after_ns, &snapshot);
}

/* A look after so much time, in all of which the compile has used |used_ns|. */
static uint64_t look(uint64_t after_ns, uint64_t used_ns) {
    fake.cpu_ns = began_ns ? began_ns + used_ns : 0;
    return look_at(after_ns);
}

/* Its worker has used |cpu_before_ns|; 0: unknown. |deadline_ns|: of the run. */
static void begin(uint64_t cpu_before_ns, uint64_t deadline_ns) {
    began_ns = cpu_before_ns;
    snapshot = (struct bhi_progress_snapshot){.started = 1, .compiles = 1};
    a.stream.compile_deadline_ns = LIMIT;
    fake.cpu_ns = cpu_before_ns;
    next_deadline_ns = deadline_ns;
    event = submit(&a, NULL, NULL);
    next_deadline_ns = BH_FOREVER;
    since_ns = a.worker.running_since_ns;
    BHT_EQ(look_at(0), since_ns + LIMIT);
}

static void end_ready(void) {
    BHT_EQ(fake.kills, 0);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
}

/* Its worker was killed for it, which is only suspected (T2). |words|: what the verdict says. */
static void end_killed(const char *words) {
    BHT_EQ(fake.kills, 1);
    BHT_EQ(a.worker.life.kill, BHI_KILL_COMPILE);
    BHT_EQ(a.worker.life.kill_event, event->id);
    BHT_TRUE(dead(&a, BH_COMPILE_FAILED, a.worker.life.kill_text, snapshot));
    BHT_EQ(event->verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(event->verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(event->verdict.blame, fake.stopped ? BH_BLAME_NONE : BH_BLAME_SUSPECTED);
    BHT_EQ(event->verdict.limit, LIMIT);
    BHT_STR_EQ(event->verdict.message, words);
}

#define PASSED "the compile deadline of 100 ms passed"

TEST(a_busy_compile_is_killed_at_its_deadline) {
    begin(7 * MS, BH_FOREVER);
    BHT_EQ(look(LIMIT, LIMIT), BH_FOREVER);
    end_killed(PASSED);
}

/* What several threads have used together counts, but not before the deadline by the clock. */
TEST(a_compile_has_its_deadline_by_the_clock) {
    begin(7 * MS, BH_FOREVER);
    BHT_EQ(look(LIMIT - 1, 8 * LIMIT), since_ns + LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(LIMIT, 8 * LIMIT), BH_FOREVER);
    end_killed(PASSED);
}

/* It is looked at again when it can have used the rest, and not without a pause. */
TEST(a_compile_on_a_busy_machine_has_more_time) {
    begin(7 * MS, BH_FOREVER);
    BHT_EQ(look(LIMIT, 30 * MS), since_ns + LIMIT + 70 * MS);
    BHT_EQ(look(170 * MS, 60 * MS), since_ns + 210 * MS);
    BHT_EQ(look(210 * MS, LIMIT - 1), since_ns + 215 * MS);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(215 * MS, LIMIT), BH_FOREVER);
    end_killed(PASSED);
}

TEST(a_late_compile_on_a_busy_machine_is_ready) {
    begin(7 * MS, BH_FOREVER);
    (void)look(3 * LIMIT, LIMIT / 2);
    end_ready();
}

TEST(a_compile_that_sleeps_is_killed_at_four_deadlines) {
    begin(7 * MS, BH_FOREVER);
    BHT_EQ(look(LIMIT, 0), since_ns + 2 * LIMIT);
    BHT_EQ(look(4 * LIMIT - 6 * MS, 12 * MS + 1), since_ns + 4 * LIMIT);
    BHT_EQ(look(4 * LIMIT - 1, 12 * MS + 1), since_ns + 4 * LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(4 * LIMIT, 12 * MS + 1), BH_FOREVER);
    end_killed(PASSED "; in 400 ms it used 12 ms of processor time");
}

/* Its processor time cannot be read: then the clock ends it. */
TEST(a_compile_whose_processor_time_is_unknown) {
    begin(0, BH_FOREVER);
    BHT_EQ(look(LIMIT, 0), since_ns + 2 * LIMIT);
    fake.cpu_ns = 3600 * 1000 * MS; /* of its whole life, which says nothing of this compile */
    BHT_EQ(look_at(2 * LIMIT), since_ns + 3 * LIMIT);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look_at(4 * LIMIT), BH_FOREVER);
    end_killed(PASSED);
}

/* Its worker has died while it compiled, and that costs the stream nothing: the next one compiles it. */
static void goes_on(bh_status status) {
    BHT_TRUE(dead(&a, status, "worker 7 died", snapshot));
    BHT_EQ(bhi_event_state(event), BH_EVENT_PENDING);
    BHT_EQ(a.stream.restart.losses, 0);
    next_worker(&a);
    since_ns = a.worker.running_since_ns;
}

/* Somebody has stopped its worker (SIGSTOP): nobody is blamed, and the next worker compiles it. Each time
 * takes a deadline, so twice is enough (E9). */
TEST(a_compile_in_a_stopped_worker_is_tried_once_more) {
    begin(7 * MS, BH_FOREVER);
    fake.stopped = true;
    BHT_EQ(look(4 * LIMIT, 0), BH_FOREVER);
    goes_on(BH_COMPILE_FAILED);
    fake.kills = 0;
    (void)look(0, 0);
    BHT_EQ(look(4 * LIMIT, 0), BH_FOREVER);
    end_killed(PASSED "; in 400 ms it used 0 ms of processor time; somebody had stopped the "
                      "worker (SIGSTOP)");
}

/* A zygote that dies takes its workers with it, whatever they compile. Each death counts (E9). */
TEST(a_compile_survives_seven_zygotes) {
    begin(7 * MS, BH_FOREVER);
    for (int deaths = 0; deaths < 7; deaths++) {
        goes_on(BH_ZYGOTE_LOST);
    }
    BHT_TRUE(dead(&a, BH_ZYGOTE_LOST, "worker 7 died", snapshot));
    BHT_EQ(event->verdict.status, BH_ZYGOTE_LOST);
    BHT_EQ(event->verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(event->verdict.blame, BH_BLAME_NONE);
}

/* One that has ended its compile may have written anything. */
TEST(a_kernel_that_runs_dies_with_its_zygote) {
    begin(7 * MS, BH_FOREVER);
    snapshot.compile_ended = true;
    BHT_TRUE(dead(&a, BH_ZYGOTE_LOST, "worker 7 died", snapshot));
    BHT_EQ(event->verdict.status, BH_ZYGOTE_LOST);
    BHT_EQ(event->verdict.executed, BH_EXECUTED_UNKNOWN);
}

/* SIGKILL has not ended its process, which may go on: nobody else may do the same. */
TEST(a_compile_is_not_repeated_beside_its_worker) {
    begin(7 * MS, BH_FOREVER);
    a.worker.life.given_up = true;
    BHT_TRUE(dead(&a, BH_ZYGOTE_LOST, "worker 7 died", snapshot));
    BHT_EQ(event->verdict.status, BH_ZYGOTE_LOST);
}

/* What is lost with it has another status, and so not its reason: there is nothing to raise. */
TEST(a_reason_is_the_culprits_alone) {
    begin(7 * MS, BH_FOREVER);
    struct bh_event *lost = submit(&a, NULL, NULL);
    BHT_EQ(look(LIMIT, LIMIT), BH_FOREVER);
    snapshot.started = 2;
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = snapshot};
    death.outcome.status = BH_COMPILE_FAILED;
    death.outcome.reason = BH_REASON_COMPILE_DEADLINE;
    death.outcome.message = a.worker.life.kill_text;
    BHT_TRUE(bhi_core_worker_died(&a.worker, &death));
    BHT_EQ(event->verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(event->verdict.reason, BH_REASON_COMPILE_DEADLINE);
    BHT_EQ(lost->verdict.status, BH_WORKER_LOST);
    BHT_EQ(lost->verdict.reason, BH_REASON_NONE);
}

/* Processor time that the worker used before this compile is not the compile's. */
TEST(a_second_compile_counts_from_its_own_beginning) {
    begin(7 * MS, BH_FOREVER);
    (void)look(LIMIT - 1, 50 * LIMIT);
    snapshot.compile_ended = true;
    (void)look(LIMIT - 1, 50 * LIMIT);
    result(&a, BH_OK);
    event = submit(&a, NULL, NULL);
    snapshot = (struct bhi_progress_snapshot){.started = 2, .compiles = 2};
    since_ns = a.worker.running_since_ns;
    (void)look(0, 50 * LIMIT);
    (void)look(LIMIT, 50 * LIMIT + LIMIT - 1);
    BHT_EQ(fake.kills, 0);
    (void)look(2 * LIMIT, 51 * LIMIT);
    end_killed(PASSED);
}

/* A cancel does not wait for the processor time. */
TEST(a_cancelled_compile_is_killed_at_once) {
    begin(7 * MS, BH_FOREVER);
    (void)look(2 * LIMIT, 0);
    fake.late = true; /* the worker has begun it */
    bhi_submission_cancel(event->submission);
    BHT_EQ(look(2 * LIMIT + 1, 0), BH_FOREVER);
    BHT_EQ(a.worker.life.kill, BHI_KILL_CANCEL);
    BHT_TRUE(dead(&a, BH_CANCELLED, a.worker.life.kill_text, snapshot));
    BHT_STR_EQ(event->verdict.message, "cancelled while it was compiled");
}

/* What it uses before a look sees it counts for nothing, so the looks begin early, whatever the
 * deadline of the run. */
TEST(a_compile_is_looked_for_early) {
    begin(7 * MS, 3 * LIMIT);
    snapshot = (struct bhi_progress_snapshot){0};
    result(&a, BH_OK);
    fake.armed_ns = BH_FOREVER;
    event = submit(&a, NULL, NULL);
    since_ns = a.worker.running_since_ns;
    BHT_EQ(fake.armed_ns, since_ns + LIMIT / 8);
    BHT_EQ(look_at(LIMIT / 8), since_ns + 2 * (LIMIT / 8));
    BHT_EQ(look_at(2 * LIMIT), since_ns + 2 * LIMIT + LIMIT / 8);
    end_ready();
}

TEST(a_compile_without_a_deadline_is_not_looked_for) {
    begin(7 * MS, BH_FOREVER);
    a.stream.compile_deadline_ns = BH_FOREVER;
    BHT_EQ(look(1000 * LIMIT, 1000 * LIMIT), BH_FOREVER);
    snapshot = (struct bhi_progress_snapshot){.started = 1};
    BHT_EQ(look(1000 * LIMIT, 1000 * LIMIT), BH_FOREVER);
    end_ready();
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
