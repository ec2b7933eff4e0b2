/* Poison in the core, by hand. */
#include "stage.h"

#include <stdio.h>

/* E7: |middle| runs already when its producer is refused. Whoever waits for it and for something
 * that fails later still learns of the older origin. */
TEST(test_the_earliest_origin_through_a_running_one) {
    struct stage s;
    set_up(&s);
    fake.late = true;
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    struct bh_event *middle = submit(&s, &s.a, first, NULL);
    struct bh_event *second = submit(&s, &s.b, NULL, NULL);
    struct bh_event *last = submit(&s, &s.c, second, middle);
    result(&s, &s.a, BH_VULKAN);
    /* |middle| is with the worker still; |last| need not wait for that. */
    BHT_EQ(bhi_event_state(middle), BH_EVENT_PENDING);
    BHT_EQ(bhi_event_state(last), BH_EVENT_POISONED);
    BHT_EQ(last->verdict.origin, first->id);
    BHT_EQ(last->verdict.hops, 2);
    BHT_EQ(last->verdict.executed, BH_EXECUTED_NO);
    result(&s, &s.b, BH_DEVICE_LOST);
    result(&s, &s.a, BH_OK);
    BHT_EQ(bhi_event_state(middle), BH_EVENT_POISONED);
    BHT_EQ(middle->verdict.status, BH_VULKAN);
    BHT_EQ(middle->verdict.executed, BH_EXECUTED_YES);
    BHT_EQ(last->verdict.origin, first->id);
    struct bh_event *events[] = {first, middle, second, last};
    for (int i = 0; i < 4; i++) {
        bhi_event_unref(events[i]);
    }
    BHT_EQ(fake.ended, 4);
    tear_down(&s);
}

/* A doomed one that fails by itself keeps its verdict, and counts its own failure. */
TEST(test_a_doomed_one_fails) {
    struct stage s;
    set_up(&s);
    fake.late = true;
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    struct bh_event *second = submit(&s, &s.a, first, NULL);
    struct bh_event *third = submit(&s, &s.a, second, NULL);
    result(&s, &s.a, BH_VULKAN);
    result(&s, &s.a, BH_DEVICE_LOST);
    result(&s, &s.a, BH_OK);
    BHT_EQ(second->verdict.status, BH_VULKAN);
    BHT_EQ(second->verdict.other_causes, 1);
    BHT_EQ(third->verdict.origin, first->id);
    BHT_EQ(third->verdict.hops, 2);
    bhi_event_unref(first);
    bhi_event_unref(second);
    bhi_event_unref(third);
    tear_down(&s);
}

/* What waits in a lane behind its refused producer is taken out of it. */
TEST(test_a_doomed_one_is_withdrawn) {
    struct stage s;
    set_up(&s);
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    struct bh_event *second = submit(&s, &s.a, first, NULL);
    struct bh_event *third = submit(&s, &s.a, NULL, NULL);
    result(&s, &s.a, BH_VULKAN);
    BHT_EQ(bhi_event_state(second), BH_EVENT_POISONED);
    BHT_EQ(second->verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(bhi_event_state(third), BH_EVENT_PENDING);
    result(&s, &s.a, BH_OK);
    BHT_EQ(fake.withdrawn, 1);
    BHT_EQ(bhi_event_state(third), BH_EVENT_READY);
    bhi_event_unref(first);
    bhi_event_unref(second);
    bhi_event_unref(third);
    tear_down(&s);
}

/* The same cause by two ways is one cause; two origins are two. */
TEST(test_causes_are_origins) {
    struct stage s;
    set_up(&s);
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    struct bh_event *left = submit(&s, &s.b, first, NULL);
    struct bh_event *right = submit(&s, &s.c, first, NULL);
    result(&s, &s.a, BH_VULKAN);
    struct bh_event *both = submit(&s, &s.a, right, left);
    BHT_EQ(both->verdict.origin, first->id);
    BHT_EQ(both->verdict.hops, 2);
    BHT_EQ(both->verdict.other_causes, 0);
    struct bh_event *later = submit(&s, &s.b, NULL, NULL);
    result(&s, &s.b, BH_DEVICE_LOST);
    struct bh_event *two = submit(&s, &s.a, later, left);
    BHT_EQ(two->verdict.origin, first->id);
    BHT_EQ(two->verdict.other_causes, 1);
    struct bh_event *events[] = {first, left, right, both, later, two};
    for (int i = 0; i < 6; i++) {
        bhi_event_unref(events[i]);
    }
    tear_down(&s);
}

/* However it was reached: what the origin says comes behind one prefix, whatever colons are in it and
 * in the names of streams. */
TEST(test_the_words_of_the_origin_are_passed_on_whole) {
    struct stage s;
    set_up(&s);
    s.b.stream.strict = true;
    snprintf(s.b.stream.name, sizeof s.b.stream.name, "s: t");
    struct bh_event *origin = submit(&s, &s.a, NULL, NULL);
    struct bh_event *waits = submit(&s, &s.b, origin, NULL);
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = BH_VULKAN;
    outcome.message = "vkCall: it broke";
    BHT_TRUE(bhi_core_worker_result(&s.a.worker, &outcome));
    bhi_core_pump(&s.core);
    struct bh_event *behind = submit(&s, &s.b, NULL, NULL);
    struct bh_event *last = submit(&s, &s.c, behind, NULL);
    BHT_STR_EQ(waits->verdict.message, "depends on event 1 (1 hop away): vkCall: it broke");
    BHT_STR_EQ(behind->verdict.message,
               "the strict stream s: t failed with event 2: vkCall: it broke");
    BHT_EQ(behind->verdict.status, BH_STREAM_FAILED);
    char expected[128];
    snprintf(expected, sizeof expected, "depends on event 1 (%u hops away): vkCall: it broke",
             last->verdict.hops);
    BHT_STR_EQ(last->verdict.message, expected);
    struct bh_event *events[] = {origin, waits, behind, last};
    for (int i = 0; i < 4; i++) {
        bhi_event_unref(events[i]);
    }
    tear_down(&s);
}

/* A reset forgets a failure that is certain, though the failing one has still to end. */
TEST(test_reset_before_the_end) {
    struct stage s;
    set_up(&s);
    s.b.stream.strict = true;
    struct bh_event *bad = submit(&s, &s.a, NULL, NULL);
    struct bh_event *good = submit(&s, &s.b, NULL, NULL);
    /* Both in one lane, so that the second runs when the first is refused. */
    fake.late = true;
    struct bh_event *first = submit(&s, &s.b, NULL, NULL);
    struct bh_event *doomed = submit(&s, &s.b, first, NULL);
    result(&s, &s.b, BH_OK);
    result(&s, &s.b, BH_VULKAN);
    BHT_EQ(bhi_event_state(doomed), BH_EVENT_PENDING);
    BHT_TRUE(!bhi_stream_reset(&s.b.stream));
    struct bh_event *old = submit(&s, &s.b, NULL, NULL);
    BHT_TRUE(!bhi_stream_reset(&s.b.stream));
    struct bh_event *fresh = submit(&s, &s.b, NULL, NULL);
    result(&s, &s.b, BH_OK);
    BHT_EQ(doomed->verdict.status, BH_VULKAN);
    /* Neither does one that was running, and fails only now. */
    result(&s, &s.b, BH_DEVICE_LOST);
    BHT_EQ(s.b.stream.failure, NULL);
    result(&s, &s.b, BH_OK);
    BHT_EQ(bhi_event_state(fresh), BH_EVENT_READY);
    result(&s, &s.a, BH_OK);
    struct bh_event *events[] = {bad, good, first, doomed, old, fresh};
    for (int i = 0; i < 6; i++) {
        bhi_event_unref(events[i]);
    }
    tear_down(&s);
}

/* The worker says how its next one ended, and that it ran for so long until now. */
static void lose_after(struct stage *s, struct line *line, uint64_t ran_ns) {
    fake.now_ns += ran_ns;
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = BH_DEVICE_LOST;
    outcome.started_ns = fake.now_ns - ran_ns;
    outcome.ended_ns = fake.now_ns;
    outcome.message = "lost";
    BHT_TRUE(bhi_core_worker_result(&line->worker, &outcome));
    bhi_core_worker_settle(&line->worker);
    bhi_core_pump(&s->core);
}

/* T2: a GPU's driver ends a kernel that keeps another process waiting for seconds. So only one that
 * lost the device sooner certainly did that itself. */
TEST(test_a_device_lost_late) {
    static const struct {
        uint64_t ran_ms;
        bool gpu;
        bh_blame blame;
    } losses[] = {
        {3499, true, BH_BLAME_CERTAIN},
        {3500, true, BH_BLAME_SUSPECTED},
        {3500, false, BH_BLAME_CERTAIN}, /* nobody ends that */
    };
    for (size_t i = 0; i < BHT_COUNT(losses); i++) {
        struct stage s;
        set_up(&s);
        s.a.worker.on_gpu = losses[i].gpu;
        struct bh_event *first = submit(&s, &s.a, NULL, NULL);
        struct bh_event *second = submit(&s, &s.a, NULL, NULL);
        lose_after(&s, &s.a, losses[i].ran_ms * 1000000);
        lose_after(&s, &s.a, 0); /* the device had it as well */
        BHT_EQ(first->verdict.blame, losses[i].blame);
        BHT_EQ(second->verdict.blame, losses[i].blame);
        BHT_TRUE(!strstr(first->verdict.message, "waiting for about 4 s") ==
                 (losses[i].blame == BH_BLAME_CERTAIN));
        bhi_event_unref(first);
        bhi_event_unref(second);
        tear_down(&s);
    }
}

/* It cannot have begun before it was given the submission, nor end later than now. */
TEST(test_a_late_loss_cannot_be_claimed) {
    static const uint64_t claims[][2] = {
        {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX - 1, 0}, {1, 2}};
    for (size_t i = 0; i < BHT_COUNT(claims); i++) {
        struct stage s;
        set_up(&s);
        s.a.worker.on_gpu = true;
        fake.now_ns = 10000000000;
        struct bh_event *event = submit(&s, &s.a, NULL, NULL);
        struct bhi_outcome outcome = BHI_OUTCOME_INIT;
        outcome.status = BH_DEVICE_LOST;
        outcome.started_ns = claims[i][0];
        outcome.ended_ns = claims[i][1];
        BHT_TRUE(bhi_core_worker_result(&s.a.worker, &outcome));
        BHT_EQ(event->verdict.blame, BH_BLAME_CERTAIN);
        bhi_event_unref(event);
        tear_down(&s);
    }
}

/* A worker that skips what nobody has withdrawn lies; one that skips what it came to too late to be
 * promised does not. */
TEST(test_skipping) {
    struct stage s;
    set_up(&s);
    fake.late = true;
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    bhi_submission_cancel(first->submission);
    result(&s, &s.a, BH_CANCELLED);
    BHT_EQ(first->verdict.status, BH_CANCELLED);
    BHT_EQ(first->verdict.executed, BH_EXECUTED_NO);
    struct bh_event *second = submit(&s, &s.a, NULL, NULL);
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = BH_CANCELLED;
    BHT_EQ(fake.kills, 0);
    BHT_TRUE(!bhi_core_worker_result(&s.a.worker, &outcome));
    BHT_EQ(fake.kills, 1);
    BHT_EQ(s.a.worker.life.kill, BHI_KILL_PROTOCOL);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot.started = 2};
    death.outcome.status = BH_PROTOCOL;
    death.outcome.message = "it lied";
    BHT_TRUE(bhi_core_worker_died(&s.a.worker, &death));
    BHT_EQ(second->verdict.status, BH_PROTOCOL);
    bhi_event_unref(first);
    bhi_event_unref(second);
    tear_down(&s);
}

static uint64_t look(struct stage *s, uint64_t now_ns, uint64_t started, uint32_t marker) {
    const struct bhi_progress_snapshot snapshot = {.started = started, .marker = marker};
    return bhi_core_worker_deadline(&s->a.worker, now_ns, &snapshot);
}

/* |deadline_ns| is the next one's; NULL waits for nothing. */
static struct bh_event *submit_for(struct stage *s, struct line *line, uint64_t deadline_ns) {
    next_deadline_ns = deadline_ns;
    struct bh_event *event = submit(s, line, NULL, NULL);
    next_deadline_ns = BH_FOREVER;
    return event;
}

/* E9: one without a deadline is alone in a lane that had deadlines, so nobody looks. What comes
 * behind it has to be looked for: it may begin unnoticed, merged with the other; and when the other
 * is withdrawn its time begins. */
TEST(test_looked_for_behind_one_without_a_deadline) {
    struct stage s;
    set_up(&s);
    struct bh_event *short_one = submit_for(&s, &s.a, 10000000);
    struct bh_event *endless = submit_for(&s, &s.a, BH_FOREVER);
    fake.armed_ns = BH_FOREVER;
    result(&s, &s.a, BH_OK);
    BHT_EQ(fake.armed_ns, BH_FOREVER);
    struct bh_event *behind = submit_for(&s, &s.a, 21000000);
    BHT_NE(fake.armed_ns, BH_FOREVER);
    fake.armed_ns = BH_FOREVER;
    bhi_submission_cancel(endless->submission);
    BHT_NE(fake.armed_ns, BH_FOREVER);
    BHT_EQ(endless->verdict.status, BH_CANCELLED);
    uint64_t due_ns = look(&s, ++fake.now_ns, 1, 1);
    BHT_LE(due_ns, fake.now_ns + 21000000);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(&s, due_ns, 1, 1), BH_FOREVER);
    BHT_EQ(fake.kills, 1);
    BHT_EQ(s.a.worker.life.kill_event, behind->id);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = {.started = 1, .marker = 1}};
    death.outcome.status = BH_DEADLINE;
    death.outcome.message = "its deadline passed";
    bhi_core_worker_died(&s.a.worker, &death);
    BHT_EQ(behind->verdict.status, BH_DEADLINE);
    bhi_event_unref(short_one);
    bhi_event_unref(endless);
    bhi_event_unref(behind);
    tear_down(&s);
}

/* E9, E14: the worker was late to begin, or lies about when it did. Its verdict counts from where
 * the deadline does, its turn: who is told that it was too long can see that it was. */
static void ended_at_its_deadline(uint64_t begun_ns, uint64_t ended_ns) {
    struct stage s;
    set_up(&s);
    s.a.stream.grace_ns = 1000000;
    s.a.worker.can_abort = true;
    fake.now_ns = 5000;
    struct bh_event *first = submit_for(&s, &s.a, BH_FOREVER);
    struct bh_event *second = submit_for(&s, &s.a, 10000);
    second->submission->abortable = true;
    fake.now_ns = 20000;
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.executed = BH_EXECUTED_YES;
    outcome.started_ns = 6000;
    outcome.ended_ns = 15000; /* that is when the turn of the second comes */
    BHT_TRUE(bhi_core_worker_result(&s.a.worker, &outcome));
    bhi_core_worker_settle(&s.a.worker);
    BHT_EQ(look(&s, 24999, 2, 0), 25000);
    BHT_EQ(fake.aborts, 0);
    look(&s, 25000, 2, 0);
    BHT_EQ(fake.aborts, 1);
    BHT_EQ(fake.kills, 0);
    fake.now_ns = 26000;
    outcome = (struct bhi_outcome)BHI_OUTCOME_INIT;
    outcome.status = BH_DEADLINE;
    outcome.started_ns = begun_ns;
    outcome.ended_ns = ended_ns;
    BHT_TRUE(bhi_core_worker_result(&s.a.worker, &outcome));
    bhi_core_worker_settle(&s.a.worker);
    BHT_EQ(second->verdict.status, BH_DEADLINE);
    BHT_EQ(second->verdict.limit, 10000);
    BHT_EQ(second->verdict.started_ns, begun_ns < 15000 ? begun_ns : 15000);
    BHT_EQ(second->verdict.ended_ns, ended_ns < 25000 ? 25000 : ended_ns);
    bhi_event_unref(first);
    bhi_event_unref(second);
    tear_down(&s);
}

TEST(test_ended_at_its_deadline_from_its_turn_on) {
    ended_at_its_deadline(15000, 25500);
    ended_at_its_deadline(24000, 25500); /* late */
    ended_at_its_deadline(12000, 25500); /* it checked it first */
    ended_at_its_deadline(24000, 24001); /* its clock is slow */
}

/* Both are merged, the second begins one nanosecond after the |late|th look, and nobody is told:
 * its time runs from the look that sees it, and that look comes soon. The clock only ever moves to
 * the time that was asked for. Returns when it was killed, from its beginning on. */
static uint64_t killed_after(uint64_t deadline_ns, int late) {
    struct stage s;
    set_up(&s);
    fake.armed_ns = BH_FOREVER;
    struct bh_event *first = submit_for(&s, &s.a, BH_FOREVER);
    struct bh_event *second = submit_for(&s, &s.a, deadline_ns);
    uint64_t due_ns = fake.armed_ns, begun_ns = late ? 0 : fake.now_ns + 1;
    for (int looks = 1; !fake.kills; looks++) {
        BHT_TRUE(due_ns < BH_FOREVER && looks < 1000);
        fake.now_ns = due_ns > fake.now_ns ? due_ns : fake.now_ns;
        const uint64_t now_ns = fake.now_ns;
        due_ns = look(&s, now_ns, 2, begun_ns && begun_ns <= now_ns);
        if (looks == late) {
            begun_ns = now_ns + 1;
        }
    }
    const uint64_t took_ns = fake.now_ns - begun_ns;
    BHT_EQ(s.a.worker.life.kill_event, second->id);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = {.started = 2, .marker = 1}};
    death.outcome.status = BH_DEADLINE;
    death.outcome.message = "its deadline passed";
    bhi_core_worker_died(&s.a.worker, &death);
    bhi_event_unref(first);
    bhi_event_unref(second);
    tear_down(&s);
    return took_ns;
}

/* E9: what is merged behind another has its whole deadline, and an eighth more at most (5 ms, where
 * that is more). */
TEST(test_a_merged_deadline_is_not_late) {
    static const uint64_t deadlines_ms[] = {1, 20, 100, 3000, 60000};
    for (size_t i = 0; i < sizeof deadlines_ms / sizeof deadlines_ms[0]; i++) {
        const uint64_t deadline_ns = deadlines_ms[i] * 1000000;
        const uint64_t late_ns = deadline_ns / 8 > 5000000 ? deadline_ns / 8 : 5000000;
        for (int late = 0; late < 20; late++) {
            const uint64_t took_ns = killed_after(deadline_ns, late);
            BHT_WITHIN(took_ns, deadline_ns - 1, deadline_ns + late_ns + 100);
        }
    }
}

/* Two are cancelled that can no longer be withdrawn, and the worker is killed for the first of
 * them: whether that one's record comes in before the death or not, the other is CANCELLED too, for
 * its caller asked for that, and what nobody cancelled is a victim (E14). */
static void cancelled_together(bool first_ends) {
    struct stage s;
    set_up(&s);
    fake.late = true;
    struct bh_event *first = submit(&s, &s.a, NULL, NULL);
    struct bh_event *second = submit(&s, &s.a, NULL, NULL);
    struct bh_event *third = submit(&s, &s.a, NULL, NULL);
    bhi_submission_cancel(first->submission);
    bhi_submission_cancel(second->submission);
    look(&s, ++fake.now_ns, 3, 0);
    BHT_EQ(fake.kills, 1);
    BHT_EQ(s.a.worker.life.kill_event, first->id);
    if (first_ends) {
        result(&s, &s.a, BH_OK);
    }
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot.started = 3};
    death.outcome.status = BH_CANCELLED;
    death.outcome.message = "cancelled while it ran";
    bhi_core_worker_died(&s.a.worker, &death);
    BHT_EQ(first->verdict.status, first_ends ? BH_OK : BH_CANCELLED);
    BHT_EQ(second->verdict.status, BH_CANCELLED);
    BHT_EQ(second->verdict.origin, second->id);
    BHT_EQ(second->verdict.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(third->verdict.status, BH_WORKER_LOST);
    BHT_EQ(third->verdict.origin, first_ends ? third->id : first->id);
    bhi_event_unref(first);
    bhi_event_unref(second);
    bhi_event_unref(third);
    tear_down(&s);
}

TEST(test_cancelled_together) {
    cancelled_together(false);
    cancelled_together(true);
}

/* What the worker needs cannot be passed to it: the verdict has the errno as it is. */
TEST(test_the_errno_of_what_cannot_be_published) {
    static const struct {
        int error;
        bh_status status;
        int32_t sys_errno;
        const char *message;
    } cases[] = {
        {ENOMEM, BH_NO_MEMORY, 0, "out of memory"},
        {EMFILE, BH_SYSTEM, EMFILE, "no free file descriptor"},
        {EACCES, BH_SYSTEM, EACCES, "Permission denied"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct stage s;
        set_up(&s);
        fake.publish = -cases[i].error;
        struct bh_event *event = submit(&s, &s.a, NULL, NULL);
        BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        BHT_EQ(event->verdict.status, cases[i].status);
        BHT_EQ(event->verdict.sys_errno, cases[i].sys_errno);
        BHT_STR_HAS(event->verdict.message, cases[i].message);
        bhi_event_unref(event);
        tear_down(&s);
    }
}

/* Its deadline passes before it begins, or while it is compiled, and its worker is killed. |begins|:
 * it begins before the signal comes. The text and |executed| agree (E13, E14), and nobody is blamed
 * if the worker had been stopped (T2). */
static void killed_early(bool compiles, bool begins, bool stopped) {
    struct stage s;
    set_up(&s);
    fake.stopped = stopped;
    s.a.stream.compile_deadline_ns = 10000000;
    struct bh_event *event = submit_for(&s, &s.a, 10000000);
    struct bhi_progress_snapshot snapshot = {.started = compiles, .compiles = compiles};
    fake.cpu_ns = 1;
    (void)bhi_core_worker_deadline(&s.a.worker, fake.now_ns, &snapshot);
    fake.cpu_ns += 10000000;
    (void)bhi_core_worker_deadline(&s.a.worker, fake.now_ns + 20000000, &snapshot);
    BHT_EQ(fake.kills, 1);
    if (begins) {
        snapshot.started = 1;
        snapshot.compile_ended = true;
    }
    bhi_core_worker_mend_text(&s.a.worker, &snapshot);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = snapshot};
    death.outcome.status = compiles ? BH_COMPILE_FAILED : BH_DEADLINE;
    death.outcome.message = s.a.worker.life.kill_text;
    bhi_core_worker_died(&s.a.worker, &death);
    const char *unbegun = strstr(event->verdict.message, "; the submission had not begun");
    const char *began = strstr(event->verdict.message, "; the submission began as its worker was");
    BHT_EQ(event->verdict.executed, begins ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO);
    BHT_EQ(!!unbegun, !compiles && !begins);
    BHT_EQ(!!began, begins);
    BHT_EQ(!!strstr(event->verdict.message, "somebody had stopped the worker"), stopped);
    BHT_EQ(event->verdict.blame, stopped ? BH_BLAME_NONE : BH_BLAME_SUSPECTED);
    bhi_event_unref(event);
    tear_down(&s);
}

TEST(test_what_began_while_its_worker_was_killed) {
    for (int i = 0; i < 8; i++) {
        killed_early(i & 1, i & 2, i & 4);
    }
}

/* B5: who finds the content lost poisons it, unless what was queued behind overwrites all of it. */
TEST(test_lost_content_is_overwritten) {
    for (int whole = 0; whole < 2; whole++) {
        struct stage s;
        struct bhi_content content = {0};
        set_up(&s);
        struct bh_event *read = submit(&s, &s.a, NULL, NULL), *write = submit(&s, &s.b, NULL, NULL);
        BHT_TRUE(bhi_content_reserve(&content, &s.a.stream));
        bhi_content_used(&content, &s.a.stream, read, true, false, false);
        BHT_TRUE(bhi_content_reserve(&content, &s.b.stream));
        bhi_content_used(&content, &s.b.stream, write, false, true, whole);
        BHT_TRUE(bhi_content_lost(&content, &s.a.stream, read));
        result(&s, &s.a, BH_VULKAN);
        result(&s, &s.b, BH_OK);
        BHT_TRUE(bhi_content_poison(&content) == (whole ? NULL : read));
        bhi_content_fini(&content);
        bhi_event_unref(read);
        bhi_event_unref(write);
        tear_down(&s);
    }
}

/* Both the submissions that an UNAVAILABLE stream has and those that it gets say why it is that. */
TEST(an_unavailable_stream_gives_its_reason) {
    static const bh_detail why = {.reason = BH_REASON_MEMORY_LIMIT, .message = "too much"};
    struct stage s;
    struct line lost;
    set_up(&s);
    bhi_stream_init(&lost.stream, &s.core, 1, 1000000);
    struct bh_event *before = submit(&s, &lost, NULL, NULL);
    while (lost.stream.state != BHI_STREAM_UNAVAILABLE) {
        BHT_EQ(bhi_event_state(before), BH_EVENT_PENDING);
        bhi_stream_lost_worker(&lost.stream, false, &why);
    }
    struct bh_event *after = submit(&s, &lost, NULL, NULL);
    struct bh_event *events[] = {before, after};
    for (int i = 0; i < 2; i++) {
        BHT_EQ(events[i]->verdict.status, BH_UNAVAILABLE);
        BHT_EQ(events[i]->verdict.reason, BH_REASON_MEMORY_LIMIT);
        BHT_EQ(events[i]->verdict.executed, BH_EXECUTED_NO);
        bhi_event_unref(events[i]);
    }
    bhi_stream_fini(&lost.stream);
    tear_down(&s);
}
