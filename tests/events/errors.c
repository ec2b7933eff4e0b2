/* Cases 1 to 10 of docs/semantics.md: errors reach the event they belong to, and no other. */
#include "stage.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- 1: the failure comes first --------------------------------------------------------------- */

TEST(case_01_read_that_fails_before_its_event_is_waited_for) {
    struct stage s = stage_open();
    stage_fail_unseen(&s);
    bh_verdict verdict = ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.worker_pid, s.pid);
    ev_content_poisoned(s.gate, BH_WORKER_SIGNAL);
    ev_well(&s);
}

TEST(case_01_event_made_after_the_failure) {
    struct stage s = stage_open();
    stage_fail_unseen(&s);
    bh_event *by_data = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
    BHT_EQ(bh_event_query(by_data), BH_EVENT_POISONED); /* at once: nothing is left to wait for */
    bh_event *by_wait = ev_square(&s, s.a, s.x, s.z, &s.bad, 1);
    BHT_EQ(bh_event_query(by_wait), BH_EVENT_POISONED);
    ev_poisoned(by_data, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(by_wait, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_squares(s.x, 0); /* what was only read is as it was */
    ev_well(&s);
}

/* -- 2: failed and signalled ------------------------------------------------------------------ */

/* Looks with query alone, from before the end to well after it. */
static void *only_query(void *event) {
    bh_event_state state;
    WAIT_UNTIL((state = bh_event_query(event)) != BH_EVENT_PENDING, 20000);
    BHT_EQ(state, BH_EVENT_POISONED);
    for (int i = 0; i < 1000; i++) {
        BHT_EQ(bh_event_query(event), BH_EVENT_POISONED);
    }
    return NULL;
}

static void query_shows_the_failure(bh_event *event) {
    bht_start(only_query, event);
    only_query(event);
    bht_join();
}

/* Its worker writes a completion record, and in it that it failed. */
TEST(case_02_recorded_as_failed) {
    struct stage s = stage_open();
    bh_event *refused = ev_refused(&s, s.a, s.y);
    fx_open(s.word);
    query_shows_the_failure(refused);
    ev_poisoned(refused, BH_BINDING_MISMATCH, refused, 0, BH_EXECUTED_NO);
    ev_ready(s.bad);
    ev_well(&s);
}

/* On one stream the dependent is in the lane already when its producer is refused: it may run, and
 * be recorded as done, but it does not count. */
TEST(case_02_ran_although_its_producer_was_refused) {
    struct stage s = stage_open();
    bh_event *refused = ev_refused(&s, s.a, s.y);
    bh_event *dependent = ev_square(&s, s.a, s.y, s.z, NULL, 0);
    fx_open(s.word);
    query_shows_the_failure(dependent);
    bh_verdict verdict = ev_agree(dependent, BH_BINDING_MISMATCH);
    BHT_EQ(verdict.origin, bh_event_id(refused));
    BHT_EQ(verdict.hops, 1);
    ev_content_poisoned(s.z, BH_BINDING_MISMATCH);
    ev_poisoned(refused, BH_BINDING_MISMATCH, refused, 0, BH_EXECUTED_NO);
    ev_ready(s.bad);
    ev_well(&s);
}

/* -- 3: bad and good -------------------------------------------------------------------------- */

TEST(case_03_the_good_one_stays_clean) {
    struct stage s = stage_open();
    bh_stream *c = fx_stream(s.context, "c", FX_SECONDS);
    bh_event *good = ev_square(&s, s.b, s.x, s.y, NULL, 0);
    bh_event *waits[] = {s.bad, good};
    bh_event *both = ev_square(&s, s.b, s.y, s.z, waits, 2);
    bh_buffer *v = fx_words(s.context, STAGE_FLOATS, 0);
    bh_event *early = ev_square(&s, c, s.y, s.w, &good, 1); /* a consumer from before, */
    ev_ready(good);
    BHT_EQ(bh_event_query(both), BH_EVENT_PENDING); /* E15: held, not started */
    fx_kill(s.pid, SIGKILL);
    bh_verdict verdict = ev_poisoned(both, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    BHT_EQ(verdict.other_causes, 0);
    BHT_STR_EQ(verdict.kernel_name, "gate"); /* the origin's: that is whom to mend */
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    bh_event *late = ev_square(&s, s.a, s.y, v, &good, 1); /* and one from after */
    ev_ready(good);
    ev_ready(early);
    ev_ready(late);
    ev_squares(s.y, 1);
    ev_squares(s.w, 2);
    ev_squares(v, 2);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_well(&s);
}

/* -- 4, 5: dependents that were queued before ------------------------------------------------- */

static void dependents_of_a_blocked_one(bool dependent_first) {
    struct stage s = stage_open();
    bh_event *by_wait = ev_square(&s, s.a, s.x, s.y, &s.bad, 1);
    bh_event *by_data = ev_square(&s, s.a, s.gate, s.z, NULL, 0);
    BHT_EQ(bh_event_query(by_wait), BH_EVENT_PENDING);
    BHT_EQ(bh_event_query(by_data), BH_EVENT_PENDING);
    fx_kill(s.pid, SIGKILL);
    if (!dependent_first) {
        ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    }
    ev_poisoned(by_wait, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(by_data, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_well(&s);
}

TEST(case_04_the_dependent_is_waited_first) {
    dependents_of_a_blocked_one(true);
}

TEST(case_04_the_bad_one_is_waited_first) {
    dependents_of_a_blocked_one(false);
}

/* a, b, a: through an event and through what they read; and the one after those. */
TEST(case_05_producer_and_consumer_on_different_streams) {
    struct stage s = stage_open();
    bh_event *by_wait = ev_square(&s, s.b, s.x, s.y, &s.bad, 1);
    bh_event *by_data = ev_square(&s, s.b, s.gate, s.z, NULL, 0);
    bh_event *next = ev_square(&s, s.a, s.z, s.w, NULL, 0);
    fx_kill(s.pid, SIGKILL);
    bh_verdict verdict = ev_poisoned(by_wait, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    BHT_STR_EQ(verdict.stream_name, "b");
    BHT_EQ(verdict.worker_pid, s.pid);
    ev_poisoned(by_data, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(next, BH_WORKER_SIGNAL, s.bad, 2, BH_EXECUTED_NO);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.w, BH_WORKER_SIGNAL);
    ev_well(&s);
}

/* -- 6: several errors ------------------------------------------------------------------------ */

/* b fails first, then a twice: what depends on all three names b's, in whatever order it waits. */
TEST(case_06_the_earliest_is_reported) {
    struct stage s = stage_open();
    bh_event *first = fx_hold(s.context, s.b).event;
    fx_kill(fx_ready(s.b), SIGABRT);
    ev_poisoned(first, BH_WORKER_SIGNAL, first, 0, BH_EXECUTED_UNKNOWN);
    stage_fail_unseen(&s);
    bh_event *third = ev_refused(&s, s.a, s.y);
    ev_poisoned(third, BH_BINDING_MISMATCH, third, 0, BH_EXECUTED_NO);
    bh_event *const orders[][3] = {
        {first, s.bad, third}, {third, s.bad, first}, {s.bad, first, third}};
    for (size_t i = 0; i < BHT_COUNT(orders); i++) {
        bh_event *all = ev_square(&s, i % 2 ? s.a : s.b, s.x, s.z, orders[i], 3);
        bh_verdict verdict = ev_poisoned(all, BH_WORKER_SIGNAL, first, 1, BH_EXECUTED_NO);
        BHT_EQ(verdict.other_causes, 2);
        BHT_EQ(verdict.signal, SIGABRT);
    }
    /* The same through what is read: one that is early by itself, and carries a late poison. */
    bh_event *later = ev_square(&s, s.b, s.y, s.w, NULL, 0);
    ev_poisoned(later, BH_BINDING_MISMATCH, third, 1, BH_EXECUTED_NO);
    bh_event *waits[] = {later, s.bad};
    bh_event *both = ev_square(&s, s.b, s.x, s.z, waits, 2);
    bh_verdict verdict = ev_poisoned(both, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    BHT_EQ(verdict.other_causes, 1);
    BHT_EQ(verdict.signal, SIGKILL);
    ev_well(&s);
}

/* It waits for two, one of them fails: that is its end. The other's failure, later, is nothing to
 * it (E1). */
TEST(case_06_a_later_error_changes_nothing) {
    struct stage s = stage_open();
    bh_event *other = fx_hold(s.context, s.b).event;
    bh_event *waits[] = {other, s.bad};
    bh_event *both = ev_square(&s, s.a, s.x, s.y, waits, 2);
    fx_kill(s.pid, SIGKILL);
    bh_verdict before = ev_poisoned(both, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    BHT_EQ(before.other_causes, 0);
    BHT_EQ(bh_event_query(other), BH_EVENT_PENDING);
    fx_kill(fx_ready(s.b), SIGABRT);
    ev_poisoned(other, BH_WORKER_SIGNAL, other, 0, BH_EXECUTED_UNKNOWN);
    bh_verdict after = ev_poisoned(both, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_same_verdict(&before, &after);
    ev_well(&s);
}

/* -- 7: synchronize --------------------------------------------------------------------------- */

struct synchronizer {
    bh_stream *stream;
    _Atomic int began;
    bh_status status;
    bh_detail detail;
};

static void *synchronize(void *argument) {
    struct synchronizer *one = argument;
    atomic_store(&one->began, 1);
    one->status = bh_stream_synchronize(one->stream, FX_SECONDS, &one->detail);
    return NULL;
}

TEST(case_07_synchronize_reports_it) {
    struct stage s = stage_open();
    struct synchronizer one = {.stream = s.a};
    bht_start(synchronize, &one);
    WAIT_UNTIL(atomic_load(&one.began), 20000);
    fx_kill(s.pid, SIGKILL);
    bht_join();
    BHT_EQ(one.status, BH_WORKER_SIGNAL);
    BHT_STR_HAS(one.detail.message, "SIGKILL");
    bh_detail detail;
    for (int i = 0; i < 3; i++) { /* not cleared by telling it, nor by new work that is good */
        BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, &detail), BH_WORKER_SIGNAL);
        BHT_STR_HAS(detail.message, "SIGKILL");
        BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, &detail), BH_OK);
        ev_well(&s);
    }
    BHT_EQ(bh_stream_reset(s.a, NULL), BH_OK);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, &detail), BH_OK);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
}

/* -- 8: teardown ------------------------------------------------------------------------------ */

/* Runs |body| in a process of its own, which must write nothing and leave nothing behind. */
static void in_silence(void (*body)(void)) {
    /* A sanitizer has things to say of a process that was forked from one with threads. The
     * harness counts what is left, and looks for leaks. */
    if (BHT_ASAN || BHT_TSAN) {
        body();
        return;
    }
    int output = memfd_create("output", MFD_CLOEXEC);
    BHT_GE(output, 0);
    pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        dup2(output, 1);
        dup2(output, 2);
        struct bht_counts before = bht_count_self();
        body();
        struct bht_counts after = bht_count_self();
        BHT_EQ(before.descriptors, after.descriptors);
        BHT_EQ(before.children, after.children);
        BHT_EQ(before.mappings, after.mappings);
        BHT_EQ(before.threads, after.threads);
        exit(0); /* with the leak checker's look, where there is one */
    }
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    char text[2048];
    ssize_t length = pread(output, text, sizeof text - 1, 0);
    close(output);
    if (length != 0 || status != 0) {
        BHT_FAIL("status 0x%x, and it wrote: %.*s", status, (int)length, text);
    }
}

static struct stage unread_errors(void) {
    struct stage s = stage_open();
    bh_event_release(ev_square(&s, s.b, s.gate, s.y, NULL, 0));
    bh_event_release(ev_refused(&s, s.a, s.z));
    stage_fail_unseen(&s);
    return s;
}

static void closed_with_everything_unread(void) {
    struct stage s = unread_errors();
    stage_close(&s);
}

static void closed_before_the_event(void) {
    struct stage s = unread_errors();
    bh_event *bad = s.bad;
    s.bad = NULL;
    stage_close(&s);
    bh_event_release(bad);
}

static void a_stream_goes_first(void) {
    struct stage s = unread_errors();
    bh_stream_release(s.a);
    fx_expect_healthy(s.context, s.b);
    s.a = NULL;
    stage_close(&s);
}

static void closed_while_it_runs(void) {
    struct stage s = stage_open();
    bh_event_release(ev_square(&s, s.b, s.gate, s.y, NULL, 0));
    bh_event_release(ev_square(&s, s.a, s.gate, s.z, NULL, 0));
    stage_close(&s);
}

TEST(case_08_teardown_with_unread_errors_is_silent) {
    in_silence(closed_with_everything_unread);
    in_silence(closed_before_the_event);
    in_silence(a_stream_goes_first);
    in_silence(closed_while_it_runs);
}

/* -- 9: many eyes ----------------------------------------------------------------------------- */

struct eye {
    bh_event *event;
    _Atomic int looks;
    bh_verdict verdict;
};

/* Looks in every way while it ends, and long after. What has been seen once must never be unseen.
 */
static void *stare(void *argument) {
    struct eye *eye = argument;
    bool ended = false;
    int after = 0;
    for (uint64_t end = bht_now_ns() + FX_SECONDS; after < 2000;) {
        BHT_LT(bht_now_ns(), end);
        bh_event_state state = bh_event_query(eye->event);
        BHT_TRUE(state == BH_EVENT_POISONED || (state == BH_EVENT_PENDING && !ended));
        ended |= state == BH_EVENT_POISONED;
        bh_verdict copy = {.struct_size = sizeof copy};
        bh_status status = bh_event_verdict(eye->event, &copy);
        BHT_TRUE(status == BH_OK || (status == BH_PENDING && !ended));
        if (status == BH_OK) {
            ended = true;
            if (!after++) {
                eye->verdict = copy;
            }
            ev_same_verdict(&eye->verdict, &copy);
            memset(&copy, 0xA5, sizeof copy); /* ours: it shows nowhere */
        }
        status = bh_event_wait(eye->event, 0);
        BHT_TRUE(status == BH_WORKER_SIGNAL || (status == BH_TIMEOUT && !ended));
        ended |= status == BH_WORKER_SIGNAL;
        atomic_fetch_add(&eye->looks, 1);
    }
    return NULL;
}

TEST(case_09_many_threads_see_the_same_verdict) {
    struct stage s = stage_open();
    bh_event *dependent = ev_square(&s, s.b, s.gate, s.y, NULL, 0);
    struct eye eyes[4] = {0};
    for (size_t i = 0; i < BHT_COUNT(eyes); i++) {
        eyes[i].event = i % 2 ? dependent : s.bad;
        bht_start(stare, &eyes[i]);
    }
    for (size_t i = 0; i < BHT_COUNT(eyes); i++) {
        WAIT_UNTIL(atomic_load(&eyes[i].looks) > 10, 20000);
    }
    fx_kill(s.pid, SIGKILL);
    bht_join();
    ev_same_verdict(&eyes[0].verdict, &eyes[2].verdict);
    ev_same_verdict(&eyes[1].verdict, &eyes[3].verdict);
    ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    ev_poisoned(dependent, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
}

/* -- 10: no event is left pending ------------------------------------------------------------- */

enum way { KILLED, REFUSED, CANCELLED, PAST_ITS_DEADLINE };

static void no_event_is_left_pending(enum way way, bh_status status) {
    struct stage s =
        stage_open_with(NULL, way == PAST_ITS_DEADLINE ? STAGE_DEADLINE_NS : BH_FOREVER);
    stage_gate(&s);
    bh_buffer *v = fx_words(s.context, STAGE_FLOATS, 0);
    bh_event *root = s.bad;
    bh_buffer *written = s.gate;
    if (way == REFUSED) {
        root = ev_refused(&s, s.a, v);
        written = v;
    }
    /* A chain that crosses the streams; one link of it has no event. */
    enum { LINKS = 6, SILENT = 3 };
    bh_event *chain[LINKS];
    bh_buffer *in = written, *outs[] = {s.y, s.z};
    for (int i = 0; i < LINKS; i++) {
        chain[i] = ev_square(&s, i % 2 ? s.a : s.b, in, outs[i % 2], NULL, 0);
        in = outs[i % 2];
        if (i == SILENT) {
            bh_event_release(chain[i]);
            chain[i] = NULL;
        }
    }
    bh_event *fan[8];
    for (size_t i = 0; i < BHT_COUNT(fan); i++) {
        fan[i] = ev_square(&s, i % 2 ? s.a : s.b, s.x, s.w, &root, 1);
    }
    if (way == KILLED) {
        fx_kill(s.pid, SIGKILL);
    } else if (way == CANCELLED) {
        BHT_EQ(bh_event_cancel(root), BH_OK);
    } else if (way == REFUSED) {
        fx_open(s.word);
    }
    BHT_EQ(ev_agree(root, status).origin, bh_event_id(root));
    for (uint32_t i = 0; i < LINKS; i++) {
        if (!chain[i]) {
            continue;
        }
        bh_verdict verdict = ev_agree(chain[i], status);
        BHT_EQ(verdict.origin, bh_event_id(root));
        BHT_EQ(verdict.hops, i + 1);
    }
    for (size_t i = 0; i < BHT_COUNT(fan); i++) {
        bh_verdict verdict = ev_agree(fan[i], status);
        BHT_EQ(verdict.origin, bh_event_id(root));
        BHT_EQ(verdict.hops, 1);
    }
    /* Neither is one that nobody holds: both streams have come to their ends. */
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), status);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), status);
    ev_content_poisoned(s.y, status);
    ev_well(&s);
}

TEST(case_10_no_event_is_left_pending_by_a_death) {
    no_event_is_left_pending(KILLED, BH_WORKER_SIGNAL);
}
TEST(case_10_no_event_is_left_pending_by_a_refusal) {
    no_event_is_left_pending(REFUSED, BH_BINDING_MISMATCH);
}
TEST(case_10_no_event_is_left_pending_by_a_cancel) {
    no_event_is_left_pending(CANCELLED, BH_CANCELLED);
}
TEST(case_10_no_event_is_left_pending_by_a_deadline) {
    no_event_is_left_pending(PAST_ITS_DEADLINE, BH_DEADLINE);
}
