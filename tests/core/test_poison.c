/* Poison in the core, by hand. */
#include "stage.h"

#include <signal.h>
#include <stdio.h>

/* E7: |middle| runs already when its producer is refused. Whoever waits for it and for something
 * that fails later still learns of the older origin. */
TEST(test_the_earliest_origin_through_a_running_one) {
    fake.late = true;
    struct bh_event *first = submit(&a, NULL, NULL);
    struct bh_event *middle = submit(&a, first, NULL);
    struct bh_event *second = submit(&b, NULL, NULL);
    struct bh_event *last = submit(&c, second, middle);
    result(&a, BH_VULKAN);
    /* |middle| is with the worker still; |last| need not wait for that. */
    BHT_EQ(bhi_event_state(middle), BH_EVENT_PENDING);
    BHT_EQ(bhi_event_state(last), BH_EVENT_POISONED);
    BHT_EQ(last->verdict.origin, first->id);
    BHT_EQ(last->verdict.hops, 2);
    BHT_EQ(last->verdict.executed, BH_EXECUTED_NO);
    result(&b, BH_DEVICE_LOST);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(middle), BH_EVENT_POISONED);
    BHT_EQ(middle->verdict.status, BH_VULKAN);
    BHT_EQ(middle->verdict.executed, BH_EXECUTED_YES);
    BHT_EQ(last->verdict.origin, first->id);
    BHT_EQ(fake.ended, 4);
}

/* A doomed one that fails by itself keeps its verdict, and counts its own failure. */
TEST(test_a_doomed_one_fails) {
    fake.late = true;
    struct bh_event *first = submit(&a, NULL, NULL);
    struct bh_event *second = submit(&a, first, NULL);
    struct bh_event *third = submit(&a, second, NULL);
    result(&a, BH_VULKAN);
    result(&a, BH_DEVICE_LOST);
    result(&a, BH_OK);
    BHT_EQ(second->verdict.status, BH_VULKAN);
    BHT_EQ(second->verdict.other_causes, 1);
    BHT_EQ(third->verdict.origin, first->id);
    BHT_EQ(third->verdict.hops, 2);
}

/* What waits in a lane behind its refused producer is taken out of it. */
TEST(test_a_doomed_one_is_withdrawn) {
    struct bh_event *first = submit(&a, NULL, NULL);
    struct bh_event *second = submit(&a, first, NULL);
    struct bh_event *third = submit(&a, NULL, NULL);
    result(&a, BH_VULKAN);
    BHT_EQ(bhi_event_state(second), BH_EVENT_POISONED);
    BHT_EQ(second->verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(bhi_event_state(third), BH_EVENT_PENDING);
    result(&a, BH_OK);
    BHT_EQ(fake.withdrawn, 1);
    BHT_EQ(bhi_event_state(third), BH_EVENT_READY);
}

/* The same cause by two ways is one cause; two origins are two. */
TEST(test_causes_are_origins) {
    struct bh_event *first = submit(&a, NULL, NULL);
    struct bh_event *left = submit(&b, first, NULL);
    struct bh_event *right = submit(&c, first, NULL);
    result(&a, BH_VULKAN);
    struct bh_event *both = submit(&a, right, left);
    BHT_EQ(both->verdict.origin, first->id);
    BHT_EQ(both->verdict.hops, 2);
    BHT_EQ(both->verdict.other_causes, 0);
    struct bh_event *later = submit(&b, NULL, NULL);
    result(&b, BH_DEVICE_LOST);
    struct bh_event *two = submit(&a, later, left);
    BHT_EQ(two->verdict.origin, first->id);
    BHT_EQ(two->verdict.other_causes, 1);
}

/* However it was reached: what the origin says comes behind one prefix, whatever colons are in it and
 * in the names of streams. */
TEST(test_the_words_of_the_origin_are_passed_on_whole) {
    b.stream.strict = true;
    snprintf(b.stream.name, sizeof b.stream.name, "s: t");
    struct bh_event *origin = submit(&a, NULL, NULL);
    struct bh_event *waits = submit(&b, origin, NULL);
    BHT_TRUE(ends(&a, (struct bhi_outcome){.status = BH_VULKAN, .message = "vkCall: it broke"}));
    struct bh_event *behind = submit(&b, NULL, NULL);
    struct bh_event *last = submit(&c, behind, NULL);
    BHT_STR_EQ(waits->verdict.message, "depends on event 1 (1 hop away): vkCall: it broke");
    BHT_STR_EQ(behind->verdict.message,
               "the strict stream s: t failed with event 2: vkCall: it broke");
    BHT_EQ(behind->verdict.status, BH_STREAM_FAILED);
    char expected[128];
    snprintf(expected, sizeof expected, "depends on event 1 (%u hops away): vkCall: it broke",
             last->verdict.hops);
    BHT_STR_EQ(last->verdict.message, expected);
}

/* A reset forgets a failure that is certain, though the failing one has still to end. */
TEST(test_reset_before_the_end) {
    b.stream.strict = true;
    submit(&a, NULL, NULL);
    submit(&b, NULL, NULL);
    /* Both in one lane, so that the second runs when the first is refused. */
    fake.late = true;
    struct bh_event *first = submit(&b, NULL, NULL);
    struct bh_event *doomed = submit(&b, first, NULL);
    result(&b, BH_OK);
    result(&b, BH_VULKAN);
    BHT_EQ(bhi_event_state(doomed), BH_EVENT_PENDING);
    BHT_TRUE(!bhi_stream_reset(&b.stream));
    submit(&b, NULL, NULL);
    BHT_TRUE(!bhi_stream_reset(&b.stream));
    struct bh_event *fresh = submit(&b, NULL, NULL);
    result(&b, BH_OK);
    BHT_EQ(doomed->verdict.status, BH_VULKAN);
    /* Neither does one that was running, and fails only now. */
    result(&b, BH_DEVICE_LOST);
    BHT_EQ(b.stream.failure, NULL);
    result(&b, BH_OK);
    BHT_EQ(bhi_event_state(fresh), BH_EVENT_READY);
    result(&a, BH_OK);
}

/* The worker says how its next one ended, and that it ran for so long until now. */
static void lose_after(struct line *line, uint64_t ran_ns) {
    fake.now_ns += ran_ns;
    BHT_TRUE(ends(line, (struct bhi_outcome){.status = BH_DEVICE_LOST,
                                             .started_ns = fake.now_ns - ran_ns,
                                             .ended_ns = fake.now_ns,
                                             .message = "lost"}));
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
        again();
        a.worker.on_gpu = losses[i].gpu;
        struct bh_event *first = submit(&a, NULL, NULL);
        struct bh_event *second = submit(&a, NULL, NULL);
        lose_after(&a, losses[i].ran_ms * 1000000);
        lose_after(&a, 0); /* the device had it as well */
        BHT_EQ(first->verdict.blame, losses[i].blame);
        BHT_EQ(second->verdict.blame, losses[i].blame);
        BHT_TRUE(!strstr(first->verdict.message, "waiting for about 4 s") ==
                 (losses[i].blame == BH_BLAME_CERTAIN));
    }
}

/* It cannot have begun before it was given the submission, nor end later than now. */
TEST(test_a_late_loss_cannot_be_claimed) {
    static const uint64_t claims[][2] = {
        {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX - 1, 0}, {1, 2}};
    for (size_t i = 0; i < BHT_COUNT(claims); i++) {
        again();
        a.worker.on_gpu = true;
        fake.now_ns = 10000000000;
        struct bh_event *event = submit(&a, NULL, NULL);
        BHT_TRUE(ends(&a, (struct bhi_outcome){.status = BH_DEVICE_LOST,
                                               .started_ns = claims[i][0],
                                               .ended_ns = claims[i][1]}));
        BHT_EQ(event->verdict.blame, BH_BLAME_CERTAIN);
    }
}

/* A worker that skips what nobody has withdrawn lies; one that skips what it came to too late to be
 * promised does not. */
TEST(test_skipping) {
    fake.late = true;
    struct bh_event *first = submit(&a, NULL, NULL);
    bhi_submission_cancel(first->submission);
    result(&a, BH_CANCELLED);
    BHT_EQ(first->verdict.status, BH_CANCELLED);
    BHT_EQ(first->verdict.executed, BH_EXECUTED_NO);
    struct bh_event *second = submit(&a, NULL, NULL);
    BHT_EQ(fake.kills, 0);
    BHT_TRUE(!ends(&a, (struct bhi_outcome){.status = BH_CANCELLED}));
    BHT_EQ(fake.kills, 1);
    BHT_EQ(a.worker.life.kill, BHI_KILL_PROTOCOL);
    BHT_TRUE(dead(&a, BH_PROTOCOL, "it lied", (struct bhi_progress_snapshot){.started = 2}));
    BHT_EQ(second->verdict.status, BH_PROTOCOL);
}

static uint64_t look(uint64_t now_ns, uint64_t started, uint32_t marker) {
    const struct bhi_progress_snapshot snapshot = {.started = started, .marker = marker};
    return bhi_core_worker_deadline(&a.worker, now_ns, &snapshot);
}

/* |deadline_ns| is the next one's; NULL waits for nothing. */
static struct bh_event *submit_for(struct line *line, uint64_t deadline_ns) {
    next_deadline_ns = deadline_ns;
    struct bh_event *event = submit(line, NULL, NULL);
    next_deadline_ns = BH_FOREVER;
    return event;
}

/* E9: one without a deadline is alone in a lane that had deadlines, so nobody looks. What comes
 * behind it has to be looked for: it may begin unnoticed, merged with the other; and when the other
 * is withdrawn its time begins. */
TEST(test_looked_for_behind_one_without_a_deadline) {
    submit_for(&a, 10000000);
    struct bh_event *endless = submit_for(&a, BH_FOREVER);
    fake.armed_ns = BH_FOREVER;
    result(&a, BH_OK);
    BHT_EQ(fake.armed_ns, BH_FOREVER);
    struct bh_event *behind = submit_for(&a, 21000000);
    BHT_NE(fake.armed_ns, BH_FOREVER);
    fake.armed_ns = BH_FOREVER;
    bhi_submission_cancel(endless->submission);
    BHT_NE(fake.armed_ns, BH_FOREVER);
    BHT_EQ(endless->verdict.status, BH_CANCELLED);
    uint64_t due_ns = look(++fake.now_ns, 1, 1);
    BHT_LE(due_ns, fake.now_ns + 21000000);
    BHT_EQ(fake.kills, 0);
    BHT_EQ(look(due_ns, 1, 1), BH_FOREVER);
    BHT_EQ(fake.kills, 1);
    BHT_EQ(a.worker.life.kill_event, behind->id);
    dead(&a, BH_DEADLINE, "its deadline passed",
         (struct bhi_progress_snapshot){.started = 1, .marker = 1});
    BHT_EQ(behind->verdict.status, BH_DEADLINE);
}

/* The second has come to its deadline; its worker can stop it, or not. */
static struct bh_event *at_its_deadline(bool can_abort) {
    again();
    a.stream.grace_ns = 1000000;
    a.worker.can_abort = can_abort;
    fake.now_ns = 5000;
    submit_for(&a, BH_FOREVER);
    struct bh_event *second = submit_for(&a, 10000);
    second->submission->abortable = true;
    fake.now_ns = 20000;
    /* It ended when the turn of the second comes. */
    BHT_TRUE(ends(&a, (struct bhi_outcome){
                          .executed = BH_EXECUTED_YES, .started_ns = 6000, .ended_ns = 15000}));
    BHT_EQ(look(24999, 2, 0), 25000);
    BHT_EQ(fake.aborts, 0);
    look(25000, 2, 0);
    BHT_EQ(fake.aborts, can_abort);
    BHT_EQ(fake.kills, !can_abort);
    return second;
}

/* E9, E14: the worker was late to begin, or lies about when it did. Its verdict counts from where
 * the deadline does, its turn: who is told that it was too long can see that it was. */
static void ended_at_its_deadline(uint64_t begun_ns, uint64_t ended_ns) {
    const struct bh_event *second = at_its_deadline(true);
    fake.now_ns = 26000;
    BHT_TRUE(ends(&a, (struct bhi_outcome){
                          .status = BH_DEADLINE, .started_ns = begun_ns, .ended_ns = ended_ns}));
    BHT_EQ(second->verdict.status, BH_DEADLINE);
    BHT_EQ(second->verdict.limit, 10000);
    BHT_EQ(second->verdict.started_ns, begun_ns < 15000 ? begun_ns : 15000);
    BHT_EQ(second->verdict.ended_ns, ended_ns < 25000 ? 25000 : ended_ns);
}

TEST(test_ended_at_its_deadline_from_its_turn_on) {
    ended_at_its_deadline(15000, 25500);
    ended_at_its_deadline(24000, 25500); /* late */
    ended_at_its_deadline(12000, 25500); /* it checked it first */
    ended_at_its_deadline(24000, 24001); /* its clock is slow */
}

/* A worker that cannot stop a kernel, as on a CUDA device, gets no grace. */
TEST(test_killed_at_the_deadline_without_grace) {
    const struct bh_event *second = at_its_deadline(false);
    BHT_STR_HAS(a.worker.life.kill_text, "; this worker cannot stop a kernel");
    dead(&a, BH_DEADLINE, "its deadline passed", (struct bhi_progress_snapshot){.started = 2});
    BHT_EQ(second->verdict.status, BH_DEADLINE);
    BHT_EQ(second->verdict.executed, BH_EXECUTED_UNKNOWN);
}

/* Both are merged, the second begins one nanosecond after the |late|th look, and nobody is told:
 * its time runs from the look that sees it, and that look comes soon. The clock only ever moves to
 * the time that was asked for. Returns when it was killed, from its beginning on. */
static uint64_t killed_after(uint64_t deadline_ns, int late) {
    again();
    fake.armed_ns = BH_FOREVER;
    submit_for(&a, BH_FOREVER);
    struct bh_event *second = submit_for(&a, deadline_ns);
    uint64_t due_ns = fake.armed_ns, begun_ns = late ? 0 : fake.now_ns + 1;
    for (int looks = 1; !fake.kills; looks++) {
        BHT_TRUE(due_ns < BH_FOREVER && looks < 1000);
        fake.now_ns = due_ns > fake.now_ns ? due_ns : fake.now_ns;
        const uint64_t now_ns = fake.now_ns;
        due_ns = look(now_ns, 2, begun_ns && begun_ns <= now_ns);
        if (looks == late) {
            begun_ns = now_ns + 1;
        }
    }
    const uint64_t took_ns = fake.now_ns - begun_ns;
    BHT_EQ(a.worker.life.kill_event, second->id);
    dead(&a, BH_DEADLINE, "its deadline passed",
         (struct bhi_progress_snapshot){.started = 2, .marker = 1});
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
    again();
    fake.late = true;
    struct bh_event *first = submit(&a, NULL, NULL);
    struct bh_event *second = submit(&a, NULL, NULL);
    struct bh_event *third = submit(&a, NULL, NULL);
    bhi_submission_cancel(first->submission);
    bhi_submission_cancel(second->submission);
    look(++fake.now_ns, 3, 0);
    BHT_EQ(fake.kills, 1);
    BHT_EQ(a.worker.life.kill_event, first->id);
    if (first_ends) {
        result(&a, BH_OK);
    }
    dead(&a, BH_CANCELLED, "cancelled while it ran", (struct bhi_progress_snapshot){.started = 3});
    BHT_EQ(first->verdict.status, first_ends ? BH_OK : BH_CANCELLED);
    BHT_EQ(second->verdict.status, BH_CANCELLED);
    BHT_EQ(second->verdict.origin, second->id);
    BHT_EQ(second->verdict.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(third->verdict.status, BH_WORKER_LOST);
    BHT_EQ(third->verdict.origin, first_ends ? third->id : first->id);
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
        {ENFILE, BH_SYSTEM, ENFILE, "no free file descriptor"},
        {EACCES, BH_SYSTEM, EACCES, "Permission denied"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        again();
        fake.publish = -cases[i].error;
        struct bh_event *event = submit(&a, NULL, NULL);
        BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        BHT_EQ(event->verdict.status, cases[i].status);
        BHT_EQ(event->verdict.sys_errno, cases[i].sys_errno);
        BHT_EQ(event->verdict.executed, BH_EXECUTED_NO);
        BHT_STR_HAS(event->verdict.message, cases[i].message);
    }
}

/* Its deadline passes before it begins, or while it is compiled, and its worker is killed. |begins|:
 * it begins before the signal comes. The text and |executed| agree (E13, E14). If the worker had been
 * stopped, nobody is blamed (T2), and what had not begun goes back. */
static void killed_early(bool compiles, bool begins, bool stopped) {
    again();
    fake.stopped = stopped;
    a.stream.compile_deadline_ns = 10000000;
    struct bh_event *event = submit_for(&a, 10000000);
    struct bhi_progress_snapshot snapshot = {.started = compiles, .compiles = compiles};
    fake.cpu_ns = 1;
    (void)bhi_core_worker_deadline(&a.worker, fake.now_ns, &snapshot);
    fake.cpu_ns += 10000000;
    (void)bhi_core_worker_deadline(&a.worker, fake.now_ns + 20000000, &snapshot);
    BHT_EQ(fake.kills, 1);
    if (begins) {
        snapshot.started = 1;
        snapshot.compile_ended = true;
    }
    bhi_core_worker_mend_text(&a.worker, &snapshot);
    dead(&a, compiles ? BH_COMPILE_FAILED : BH_DEADLINE, a.worker.life.kill_text, snapshot);
    if (stopped && !begins) {
        BHT_EQ(bhi_event_state(event), BH_EVENT_PENDING);
        next_worker(&a);
        result(&a, BH_OK);
        return;
    }
    const char *unbegun = strstr(event->verdict.message, "; the submission had not begun");
    const char *began = strstr(event->verdict.message, "; the submission began as its worker was");
    BHT_EQ(event->verdict.executed, begins ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO);
    BHT_EQ(!!unbegun, !compiles && !begins);
    BHT_EQ(!!began, begins);
    BHT_EQ(!!strstr(event->verdict.message, "somebody had stopped the worker"), stopped);
    BHT_EQ(event->verdict.blame, stopped ? BH_BLAME_NONE : BH_BLAME_SUSPECTED);
}

TEST(test_what_began_while_its_worker_was_killed) {
    for (int i = 0; i < 8; i++) {
        killed_early(i & 1, i & 2, i & 4);
    }
}

/* B5: who finds the content lost poisons it, unless what was queued behind overwrites all of it. */
TEST(test_lost_content_is_overwritten) {
    for (int whole = 0; whole < 2; whole++) {
        struct bhi_content content = {0};
        again();
        struct bh_event *read = submit(&a, NULL, NULL), *write = submit(&b, NULL, NULL);
        BHT_TRUE(bhi_content_reserve(&content, &a.stream));
        bhi_content_used(&content, &a.stream, read, true, false, false);
        BHT_TRUE(bhi_content_reserve(&content, &b.stream));
        bhi_content_used(&content, &b.stream, write, false, true, whole);
        BHT_TRUE(bhi_content_lost(&content, &a.stream, read));
        result(&a, BH_VULKAN);
        result(&b, BH_OK);
        BHT_TRUE(bhi_content_poison(&content) == (whole ? NULL : read));
        bhi_content_fini(&content);
    }
}

/* E11: what is lost with a culprit names it, and is poisoned of the same moment. One that had ended
 * before its worker was killed for it is named, too, though it is the origin of nothing. */
TEST(what_is_lost_names_what_its_worker_died_of) {
    for (int ended = 0; ended < 2; ended++) {
        again();
        struct bh_event *first = submit(&a, NULL, NULL), *second = submit(&a, NULL, NULL);
        if (ended) {
            bhi_core_worker_kill(&a.worker, BHI_KILL_DEADLINE, first->id, "late");
            result(&a, BH_OK);
        }
        dead(&a, ended ? BH_DEADLINE : BH_WORKER_SIGNAL, "worker 7 was killed",
             (struct bhi_progress_snapshot){.started = 2, .marker = (uint32_t)ended});
        BHT_EQ(second->verdict.status, BH_WORKER_LOST);
        BHT_EQ(second->verdict.origin, ended ? second->id : first->id);
        BHT_EQ(ended || second->origin_tick == first->origin_tick, true);
        BHT_STR_EQ(second->verdict.message, "its worker died while running event 1; this result "
                                            "was lost: worker 7 was killed");
    }
}

/* Its worker was killed for what it was asked to run, or had lost its device: the first one is to blame,
 * although the worker never said that it had begun it. What came behind runs again (E13). */
TEST(the_one_that_a_worker_is_killed_for_does_not_run_again) {
    static const struct {
        enum bhi_kill kill;
        bool names_it; /* the kill; without that, the first in the lane is meant */
        bool lost;
        uint32_t marker; /* the device claims to be further */
        bh_status status;
    } rows[] = {
        {.kill = BHI_KILL_DEADLINE, .names_it = true, .status = BH_DEADLINE},
        {.kill = BHI_KILL_COMPILE, .names_it = true, .status = BH_COMPILE_FAILED},
        {.kill = BHI_KILL_CANCEL, .names_it = true, .status = BH_CANCELLED},
        {.kill = BHI_KILL_PROTOCOL, .status = BH_WORKER_LOST},
        {.lost = true, .status = BH_DEVICE_LOST},
        {.lost = true, .marker = 1, .status = BH_DEVICE_LOST},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        again();
        struct bh_event *first = submit(&a, NULL, NULL), *second = submit(&a, NULL, NULL);
        if (rows[i].kill != BHI_KILL_NONE) {
            bhi_core_worker_kill(&a.worker, rows[i].kill, rows[i].names_it ? first->id : 0, "late");
        }
        a.worker.life.loss = rows[i].lost ? BHI_LOSS_FINAL : BHI_LOSS_NONE;
        BHT_TRUE(dead(&a, rows[i].status, "worker 7 was killed",
                      (struct bhi_progress_snapshot){.started = rows[i].marker ? 2 : 0,
                                                     .marker = rows[i].marker}));
        BHT_EQ(first->verdict.status, rows[i].status);
        BHT_EQ(first->verdict.origin, first->id);
        BHT_STR_EQ(first->verdict.message, "worker 7 was killed");
        if (rows[i].marker) {
            BHT_EQ(second->verdict.origin, first->id);
            continue;
        }
        BHT_EQ(bhi_event_state(second), BH_EVENT_PENDING);
        next_worker(&a);
        result(&a, BH_OK);
        BHT_EQ(bhi_event_state(second), BH_EVENT_READY);
    }
}

/* A failure that the host has asked for is no proof against a kernel (T2). */
TEST(an_injected_failure_is_suspected) {
    for (int injected = 0; injected < 4; injected++) {
        again();
        struct bhi_submission *submission = make(&a);
        submission->runs_kernel = true;
        submission->injected = injected & 1 ? BH_WORKER_SIGNAL : BH_OK;
        struct bh_event *event = enqueue(submission, NULL, NULL);
        if (injected & 2) { /* the worker reports it */
            submission->injected = injected & 1 ? BH_VULKAN : BH_OK;
            result(&a, BH_VULKAN);
        } else {
            dead(&a, BH_WORKER_SIGNAL, "killed", (struct bhi_progress_snapshot){.started = 1});
        }
        BHT_EQ(event->verdict.blame, injected & 1 ? BH_BLAME_SUSPECTED : BH_BLAME_CERTAIN);
    }
}

/* D3: until its device is released, memory that it has begun to write is written. What it reads, and
 * what has not begun, is not. */
TEST(what_a_departed_worker_may_still_write) {
    for (uint64_t started = 1; started <= 2; started++) {
        again();
        struct bhi_content contents[2];
        memset(contents, 0, sizeof contents);
        for (int i = 0; i < 2; i++) { /* each reads the first, and writes the second */
            struct bhi_submission *submission = make(&a);
            bool first;
            BHT_TRUE(bhi_submission_use(submission, &contents[0], true, false, false, &first));
            BHT_TRUE(bhi_submission_use(submission, &contents[1], false, true, false, &first));
            enqueue(submission, NULL, NULL);
        }
        a.worker.confined = true;
        (void)bhi_life_born(&a.worker.life, true, 1);
        bhi_life_exit(&a.worker.life, 0, 2);
        bhi_life_ended(&a.worker.life, CLD_KILLED, SIGKILL);
        struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = {.started = started}};
        death.outcome.status = BH_WORKER_SIGNAL;
        death.outcome.message = "killed";
        BHT_TRUE(bhi_core_worker_depart(&a.worker, &death));
        BHT_EQ(fake.written, started);
        bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
        (void)bhi_core_worker_died(&a.worker, &death);
        BHT_EQ(fake.written, started); /* its burial changes nothing */
        bhi_content_fini(&contents[0]);
        bhi_content_fini(&contents[1]);
    }
}

/* T3: what a worker has run, and what it may run then. */
TEST(what_a_past_permits) {
    enum { NOT = BHI_APART_NOT, CODE = BHI_APART_CODE, ALL = BHI_APART_ALL };
    static const struct {
        uint64_t code; /* that it has; 0: none */
        bool mixed, used;
        uint64_t next; /* code of what comes */
        int kept, apart;
        bool idle, suits;
    } rows[] = {
        {.next = 7, .suits = true},
        {.code = 7, .next = 8, .suits = true},
        {.code = 7, .next = 8, .kept = CODE},
        {.code = 7, .next = 8, .kept = CODE, .idle = true, .suits = true},
        {.code = 7, .next = 7, .kept = CODE, .suits = true},
        {.code = 7, .mixed = true, .next = 7, .kept = CODE},
        {.code = 7, .next = 0, .kept = CODE, .suits = true}, /* a copy */
        {.code = 7, .next = 7, .kept = ALL},
        {.code = 7, .next = 7, .kept = ALL, .idle = true, .suits = true},
        {.next = 7, .apart = CODE, .suits = true},
        {.code = 7, .next = 7, .apart = CODE, .suits = true},
        {.code = 7, .next = 8, .apart = CODE, .idle = true},
        {.code = 7, .next = 0, .apart = CODE, .suits = true},
        {.code = 7, .mixed = true, .next = 7, .apart = CODE, .idle = true},
        {.next = 7, .apart = ALL}, /* not beside others */
        {.next = 7, .apart = ALL, .idle = true, .suits = true},
        {.code = 7, .next = 7, .apart = ALL, .idle = true, .suits = true}, /* compiled ahead */
        {.code = 7, .used = true, .next = 7, .apart = ALL, .idle = true},
        {.code = 7, .next = 8, .apart = ALL, .idle = true},
        {.next = 0, .used = true, .apart = ALL, .idle = true, .suits = true},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const struct bhi_past past = {.code = rows[i].code,
                                      .mixed = rows[i].mixed,
                                      .used = rows[i].used,
                                      .kept = (enum bhi_apart)rows[i].kept};
        const struct bhi_submission next = {.code = rows[i].next};
        if (bhi_past_suits(&past, &next, (enum bhi_apart)rows[i].apart, rows[i].idle) !=
            rows[i].suits) {
            BHT_FAIL("row %zu", i);
        }
    }
}

/* The strictest of those that are in the worker together counts, and not of those before. */
TEST(a_past_keeps_what_is_together_apart) {
    const struct bhi_submission kernel = {.code = 7, .runs_kernel = true}, copy = {0},
                                compiled = {.code = 8};
    struct bhi_past past = {0};
    bhi_past_add(&past, &copy, BHI_APART_CODE, true);
    BHT_EQ(past.kept, BHI_APART_CODE);
    BHT_TRUE(!past.code && !past.used);
    bhi_past_add(&past, &kernel, BHI_APART_NOT, false);
    BHT_EQ(past.kept, BHI_APART_CODE);
    BHT_TRUE(past.code == 7 && past.used && !past.mixed);
    BHT_EQ(bhi_past_blame(&past, &kernel, BH_WORKER_SIGNAL), BH_BLAME_CERTAIN);
    BHT_EQ(bhi_past_blame(&past, &compiled, BH_WORKER_SIGNAL), BH_BLAME_SUSPECTED);
    BHT_EQ(bhi_past_blame(&past, &kernel, BH_WORKER_LOST), BH_BLAME_NONE);
    BHT_EQ(bhi_past_blame(&past, &kernel, BH_OK), BH_BLAME_NONE);
    bhi_past_add(&past, &copy, BHI_APART_ALL, false);
    BHT_EQ(past.kept, BHI_APART_ALL);
    bhi_past_add(&past, &compiled, BHI_APART_NOT, true);
    BHT_EQ(past.kept, BHI_APART_NOT);
    BHT_TRUE(past.code == 7 && past.mixed);
    struct bhi_past heir = {0};
    bhi_past_add(&heir, &compiled, BHI_APART_NOT, true);
    BHT_TRUE(heir.code == 8 && !heir.used);
    bhi_past_inherit(&heir, 9);
    BHT_TRUE(heir.code == 9 && heir.mixed);
}

/* E14: all that is known of an end is in its verdict. */
TEST(a_verdict_says_all_that_is_known) {
    const struct bhi_outcome known = {.status = BH_VULKAN,
                                      .reason = BH_REASON_DEVICE_TIME,
                                      .subject = BH_SUBJECT_BUFFER,
                                      .subject_name = "x",
                                      .value = 2,
                                      .executed = BH_EXECUTED_UNKNOWN,
                                      .blame = BH_BLAME_SUSPECTED,
                                      .signal = 3,
                                      .exit_code = 4,
                                      .vk_result = 5,
                                      .sys_errno = 6,
                                      .command_index = 7,
                                      .worker_pid = 8,
                                      .device = "cpu:0",
                                      .limit = 9,
                                      .started_ns = 10,
                                      .ended_ns = 11,
                                      .device_ns = 12,
                                      .message = "words"};
    struct bh_event *event = submit(&a, NULL, NULL);
    snprintf(a.stream.name, sizeof a.stream.name, "one");
    bhi_submission_end(event->submission, &known);
    const bh_verdict *verdict = &event->verdict;
    BHT_EQ(verdict->status, BH_VULKAN);
    BHT_EQ(verdict->reason, BH_REASON_DEVICE_TIME);
    BHT_EQ(verdict->subject, BH_SUBJECT_BUFFER);
    BHT_STR_EQ(verdict->subject_name, "x");
    BHT_EQ(verdict->value, 2);
    BHT_EQ(verdict->executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict->blame, BH_BLAME_SUSPECTED);
    BHT_EQ(verdict->signal, 3);
    BHT_EQ(verdict->exit_code, 4);
    BHT_EQ(verdict->vk_result, 5);
    BHT_EQ(verdict->sys_errno, 6);
    BHT_EQ(verdict->command_index, 7);
    BHT_EQ(verdict->worker_pid, 8);
    BHT_STR_EQ(verdict->device, "cpu:0");
    BHT_EQ(verdict->limit, 9);
    BHT_TRUE(verdict->started_ns == 10 && verdict->ended_ns == 11 && verdict->device_ns == 12);
    BHT_STR_EQ(verdict->message, "words");
    BHT_STR_EQ(verdict->stream_name, "one");
    BHT_TRUE(verdict->event == event->id && verdict->origin == event->id);
    BHT_TRUE(!verdict->hops && !verdict->other_causes);
    const bh_detail why = {.status = BH_SYSTEM,
                           .reason = BH_REASON_DEVICE_TIME,
                           .subject = BH_SUBJECT_BUFFER,
                           .subject_name = "y",
                           .value = 13,
                           .limit = 14,
                           .sys_errno = 15,
                           .message = "more words"};
    event = submit(&a, NULL, NULL);
    bhi_submission_end_unavailable(event->submission, &why);
    verdict = &event->verdict;
    BHT_EQ(verdict->status, BH_SYSTEM);
    BHT_EQ(verdict->reason, BH_REASON_DEVICE_TIME);
    BHT_EQ(verdict->subject, BH_SUBJECT_BUFFER);
    BHT_STR_EQ(verdict->subject_name, "y");
    BHT_TRUE(verdict->value == 13 && verdict->limit == 14 && verdict->sys_errno == 15);
    BHT_EQ(verdict->executed, BH_EXECUTED_NO);
    BHT_EQ(verdict->exit_code, -1);
    BHT_EQ(verdict->command_index, BH_NO_COMMAND);
    BHT_STR_EQ(verdict->message, "more words");
}

/* E7: an origin that comes along two ways is one cause. */
TEST(an_origin_along_two_ways_is_counted_once) {
    fake.late = true;
    struct bh_event *first = submit(&a, NULL, NULL), *origin = submit(&a, NULL, NULL);
    struct bh_event *ways[] = {first, submit(&a, origin, NULL), submit(&a, origin, NULL)};
    struct bhi_submission *last = make(&a);
    struct bh_event *event = last->event;
    BHT_TRUE(bhi_submission_depend(last, ways, 3));
    bhi_submission_enqueue(last);
    bhi_core_pump(&core);
    result(&a, BH_VULKAN);
    BHT_EQ(event->verdict.origin, first->id);
    BHT_EQ(event->verdict.other_causes, 0);
    result(&a, BH_VULKAN);
    BHT_EQ(event->verdict.other_causes, 1);
    for (int i = 0; i < 3; i++) {
        result(&a, BH_OK);
    }
    BHT_EQ(event->verdict.origin, first->id);
    BHT_EQ(event->verdict.other_causes, 1);
}

/* K5: these ends are a kernel's own. SIGKILL comes from others. */
TEST(which_ends_are_crashes) {
    static const struct {
        bh_status status;
        int signal;
        bool crash;
    } rows[] = {
        {BH_WORKER_EXIT, 0, true},          {BH_OUT_OF_HOST_MEMORY, 9, true},
        {BH_WORKER_SIGNAL, SIGSEGV, true},  {BH_WORKER_SIGNAL, SIGBUS, true},
        {BH_WORKER_SIGNAL, SIGABRT, true},  {BH_WORKER_SIGNAL, SIGILL, true},
        {BH_WORKER_SIGNAL, SIGFPE, true},   {BH_WORKER_SIGNAL, SIGTRAP, true},
        {BH_WORKER_SIGNAL, SIGKILL, false}, {BH_WORKER_SIGNAL, SIGTERM, false},
        {BH_ZYGOTE_LOST, SIGSEGV, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const struct bhi_outcome outcome = {.status = rows[i].status, .signal = rows[i].signal};
        BHT_EQ(bhi_outcome_is_crash(&outcome), rows[i].crash);
    }
}

/* E7: of many poisoned writers a buffer remembers few, those with the earliest origins, beside all
 * that are pending. It has room for these alone, however many there were. */
TEST(the_earliest_poison_of_many_writers_is_kept) {
    static struct bh_event events[64];
    struct bhi_content content = {0};
    for (uint32_t i = 0; i < BHT_COUNT(events); i++) {
        bhi_event_init(&events[i], &core);
        BHT_TRUE(bhi_content_reserve(&content, &a.stream));
        bhi_content_used(&content, &a.stream, &events[i], false, true, false);
        if (i % 8) {
            events[i].origin_tick = 1 + (i * 37 + 20) % 64; /* each once */
            events[i].word = BH_EVENT_POISONED;
        }
    }
    const struct bhi_content_group *group = &content.writers.groups[0];
    BHT_TRUE(group->capacity < BHT_COUNT(events));
    for (uint32_t i = 0; i < BHT_COUNT(events); i++) {
        bool kept = false;
        for (uint32_t k = group->first; k < group->end; k++) {
            kept |= group->users[k] == &events[i];
        }
        BHT_TRUE(kept || (i % 8 && events[i].origin_tick > 8));
        events[i].word = BH_EVENT_POISONED;
    }
    bhi_content_fini(&content);
}

/* Streams that come and go leave no room behind in a buffer that outlives them. */
TEST(a_streams_place_in_a_buffer_is_used_again) {
    static struct bh_event events[8];
    struct bhi_core_stream streams[8];
    struct bhi_content content = {0};
    for (uint32_t i = 0; i < BHT_COUNT(events); i++) {
        bhi_event_init(&events[i], &core);
        BHT_TRUE(bhi_content_reserve(&content, &streams[i]));
        bhi_content_used(&content, &streams[i], &events[i], true, false, false);
        events[i].word = BH_EVENT_READY;
    }
    BHT_EQ(content.readers.count, 1);
    BHT_EQ(content.writers.count, 1);
    bhi_content_fini(&content);
}

/* Both the submissions that an UNAVAILABLE stream has and those that it gets say why it is that. */
TEST(an_unavailable_stream_gives_its_reason) {
    static const bh_detail why = {.reason = BH_REASON_MEMORY_LIMIT, .message = "too much"};
    struct line lost;
    bhi_stream_init(&lost.stream, &core, 1, 1000000);
    struct bh_event *before = submit(&lost, NULL, NULL);
    while (lost.stream.state != BHI_STREAM_UNAVAILABLE) {
        BHT_EQ(bhi_event_state(before), BH_EVENT_PENDING);
        bhi_stream_lost_worker(&lost.stream, false, &why);
    }
    struct bh_event *after = submit(&lost, NULL, NULL);
    struct bh_event *events[] = {before, after};
    for (int i = 0; i < 2; i++) {
        BHT_EQ(events[i]->verdict.status, BH_UNAVAILABLE);
        BHT_EQ(events[i]->verdict.reason, BH_REASON_MEMORY_LIMIT);
        BHT_EQ(events[i]->verdict.executed, BH_EXECUTED_NO);
    }
    bhi_stream_fini(&lost.stream);
}
