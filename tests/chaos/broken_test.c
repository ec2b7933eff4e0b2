/* The checker: what must not happen to an operation, at least two histories for each anomaly. */
#include "harness.h"
#include "judge.h"

#include <signal.h>
#include <string.h>

/* -- lost ---------------------------------------------------------------------------------------
 */

static void lost(void) {
    struct scene s;
    killed_by_signal(&s); /* given up on */
    tale_ended(&s.tale, s.innocent)->end.lost = true;
    tale_last(&s.tale)->kind = BHI_RECORD_STALL; /* nothing was read back */
    tale_last(&s.tale)->stall.lasted_ns = 0;
    found(&s.tale, BHI_ANOMALY_LOST, s.innocent, "did not end within");
    BHT_EQ(result.lost, 1);

    killed_by_signal(&s); /* no end at all */
    uint64_t op = tale_op(&s.tale, 1, 0, 0);
    found(&s.tale, BHI_ANOMALY_LOST, op, "has no end");
    BHT_EQ(result.lost, 1);

    killed_by_signal(&s);
    op = tale_op(&s.tale, 1, 0, 0);
    s.tale.now_ms = 40000;
    tale_ready(&s.tale, op, 1001, 39999);
    s.tale.now_ms = 20;
    found(&s.tale, BHI_ANOMALY_LOST, op, "ended later");

    killed_by_signal(&s); /* the machine stood still for most of it */
    op = tale_op(&s.tale, 1, 0, 0);
    s.tale.now_ms = 40000;
    tale_stall(&s.tale, 20000);
    tale_ready(&s.tale, op, 1001, 39999);
    s.tale.now_ms = 20;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "stood still for 20000 ms");

    killed_by_signal(&s); /* a patience so short that a quarter of it is nothing */
    s.tale.history.header.patience_ns = 3;
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(strstr(all_findings(), "stood still"), NULL);
    tale_end(&s.tale);

    for (int stalled = 0; stalled < 2; stalled++) { /* it had ended, and its waiter slept on */
        killed_by_signal(&s);
        op = tale_op(&s.tale, 1, 0, 0);
        s.tale.now_ms = 60020;
        if (stalled) {
            tale_stall(&s.tale, 20000);
        }
        tale_ready(&s.tale, op, 1001, 18);
        tale_ended(&s.tale, op)->end.ended_ns = 20 * TALE_MS - 1;
        s.tale.now_ms = 20;
        found(&s.tale, stalled ? BHI_ANOMALY_UNKNOWN : BHI_ANOMALY_LOST, op, "no wait returned");
    }
    killed_by_signal(&s); /* or it was not its turn to be looked at */
    op = tale_op(&s.tale, 1, 0, 0);
    s.tale.now_ms = 60020;
    tale_ready(&s.tale, op, 1001, 18);
    tale_ended(&s.tale, op)->end.ended_ns = 20 * TALE_MS;
    s.tale.now_ms = 20;
    valid(&s.tale);

    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.state = BH_EVENT_PENDING;
    found(&s.tale, BHI_ANOMALY_LOST, s.dependent, "still pending");
}

/* -- false success ------------------------------------------------------------------------------
 */

static void false_success(void) {
    struct scene s;
    killed_by_signal(&s); /* a wrong word */
    tale_last(&s.tale)->result.digest[7] ^= 1;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "output is wrong");

    killed_by_signal(&s); /* it did not read what it was to read */
    uint64_t op = tale_op(&s.tale, 0, 0, 0), wrong = tale_op(&s.tale, 0, s.innocent, 0);
    tale_submit(&s.tale, wrong)->submit.inputs[0] = op;
    tale_ready(&s.tale, op, 1010, 17);
    tale_ready(&s.tale, wrong, 1010, 17);
    tale_submit(&s.tale, wrong)->submit.inputs[0] = s.innocent;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, wrong, "output is wrong");

    killed_by_signal(&s); /* a dead worker's event as READY, never run */
    tale_ended(&s.tale, s.killed)->end.state = BH_EVENT_READY;
    judge(&s.tale);
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS], 1);
    BHT_STR_HAS(all_findings(), "its status is not success");

    killed_by_signal(&s);
    tale_ended(&s.tale, s.innocent)->end.executed = BH_EXECUTED_UNKNOWN;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "it never ran");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.innocent)->end.started_ns = 1;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "out of order");

    killed_by_signal(&s); /* read what was poisoned */
    op = tale_op(&s.tale, 1, s.innocent, s.killed);
    tale_ready(&s.tale, op, 1001, 17);
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, op, "which it needs, is not");
    killed_by_signal(&s); /* waited for it */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_last(&s.tale)->submit.wait = s.dependent;
    tale_ready(&s.tale, op, 1001, 17);
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, op, "which it needs, is not");

    killed_by_signal(&s); /* the right words, from something that had not ended */
    op = tale_op(&s.tale, 0, s.innocent, 0);
    s.tale.now_ms = 30;
    tale_ready(&s.tale, op, 1010, 17);
    tale_ended(&s.tale, op)->end.started_ns = 17 * TALE_MS - 1;
    tale_submit(&s.tale, op)->at_ns = tale_ended(&s.tale, op)->end.submitted_ns = 16 * TALE_MS;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, op, "had ended");

    killed_by_signal(&s); /* the right words, and another's verdict */
    tale_ended(&s.tale, s.innocent)->end.signal = SIGKILL;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "a signal killed its worker");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.innocent)->end.hops = 1;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "inherited");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.innocent)->end.origin = tale_event(s.killed);
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "inherited");

    killed_by_signal(&s); /* the content of a poisoned one */
    tale_result(&s.tale, s.killed);
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.killed, "output can be read");

    struct tale t;
    tale_begin(&t);
    uint64_t bait = tale_bait(&t, BHI_FAULT_HANG, 0);
    tale_ready(&t, bait, 1000, t.now_ms);
    found(&t, BHI_ANOMALY_FALSE_SUCCESS, bait, "endless kernel");
}

/* What a verdict says of its times is the library's word, and the run was there. */
static void impossible_times(void) {
    static const struct {
        uint64_t submitted_ms, started_ms, ended_ms;
        const char *words;
    } times[] = {{0, 0, 0, "dates the submission before the call"},
                 {499, 506, 507, "dates the submission before the call"},
                 {510, 515, 25510, "dates the end after the wait returned"},
                 {510, 515, 531, "dates the end after the wait returned"},
                 {516, 515, 517, "out of order"},
                 {515, 0, 514, "out of order"},
                 {510, 519, 518, "out of order"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        for (int poisoned = 0; poisoned < 3; poisoned++) {
            struct scene s;
            if (!times[i].started_ms && times[i].ended_ms && !poisoned) {
                continue; /* that has another name */
            }
            killed_by_signal(&s);
            s.tale.now_ms = 510;
            tale_works(&s.tale, 1010);
            s.tale.now_ms = 510;
            tale_fault(&s.tale, BHI_FAULT_KILL, 1, 1011);
            uint64_t op = tale_op(&s.tale, 1, 0, 0);
            s.tale.now_ms = 520;
            if (poisoned) {
                tale_poisoned(&s.tale, op, BH_WORKER_SIGNAL, SIGKILL, 1011, 515);
            } else {
                tale_ready(&s.tale, op, 1011, 515);
            }
            if (poisoned > 1) { /* not only where poison begins */
                const uint64_t cause = op;
                op = tale_op(&s.tale, 1, cause, 0);
                tale_last(&s.tale)->at_ns = 510 * TALE_MS;
                tale_inherits(&s.tale, op, cause);
            }
            struct bhi_record *end = tale_ended(&s.tale, op);
            end->end.submitted_ns = times[i].submitted_ms * TALE_MS + 1;
            end->end.started_ns =
                times[i].started_ms || !times[i].ended_ms ? times[i].started_ms * TALE_MS + 2 : 0;
            end->end.ended_ns = times[i].ended_ms * TALE_MS + 3;
            found(&s.tale, poisoned ? BHI_ANOMALY_COLLATERAL : BHI_ANOMALY_FALSE_SUCCESS, op,
                  times[i].words);
        }
    }
    struct scene s;
    killed_by_signal(&s); /* the clocks of two threads */
    const uint64_t op = tale_op(&s.tale, 1, 0, 0);
    s.tale.now_ms = 30;
    tale_ready(&s.tale, op, 1001, 17);
    tale_ended(&s.tale, op)->end.submitted_ns -= 10 * TALE_MS;
    tale_ended(&s.tale, op)->end.ended_ns += 10 * TALE_MS;
    valid(&s.tale);

    killed_by_signal(&s);
    tale_ended(&s.tale, s.innocent)->end.worker_pid = 0;
    found(&s.tale, BHI_ANOMALY_FALSE_SUCCESS, s.innocent, "on no worker");
}

/* -- collateral ---------------------------------------------------------------------------------
 */

static void poisoned_without_a_cause(void) {
    struct scene s;
    killed_by_signal(&s); /* the other stream's worker */
    uint64_t op = tale_op(&s.tale, 1, 0, 0);
    tale_poisoned(&s.tale, op, BH_WORKER_SIGNAL, SIGKILL, 1001, 17);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");

    killed_by_signal(&s); /* it is blamed for what it cannot do (T2) */
    tale_ended(&s.tale, s.killed)->end.blame = BH_BLAME_CERTAIN;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "no fault explains it");

    killed_by_signal(&s); /* another signal than the one that was sent */
    tale_ended(&s.tale, s.killed)->end.signal = SIGSEGV;
    tale_ended(&s.tale, s.dependent)->end.signal = SIGSEGV;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "no fault explains it");

    killed_by_signal(&s); /* the same pid, long after: that is another worker */
    s.tale.now_ms = 20000;
    op = tale_op(&s.tale, 0, 0, 0);
    tale_poisoned(&s.tale, op, BH_WORKER_SIGNAL, SIGKILL, 1000, 20000);
    s.tale.now_ms = 20;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");

    killed_by_signal(&s); /* and long before */
    for (size_t i = 0; i < s.tale.history.count; i++) {
        if (s.tale.history.records[i].kind == BHI_RECORD_FAULT) {
            s.tale.history.records[i].at_ns += 1000 * TALE_MS;
        }
    }
    s.tale.now_ms = 1100;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "no fault explains it");

    killed_by_signal(&s); /* its own stream's: a restart budget is never spent */
    op = tale_op(&s.tale, 0, 0, 0);
    tale_poisoned(&s.tale, op, BH_UNAVAILABLE, 0, 0, 0);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
    killed(&s, BHI_FAULT_ZYGOTE, BH_ZYGOTE_LOST, 0);
    s.tale.now_ms = 100; /* not for ever */
    tale_works(&s.tale, 1010);
    s.tale.now_ms = 5100;
    op = tale_op(&s.tale, 1, 0, 0);
    tale_poisoned(&s.tale, op, BH_UNAVAILABLE, 0, 0, 0);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");

    static const bh_status odd[] = {BH_UNAVAILABLE, BH_NO_MEMORY,  BH_SYSTEM,
                                    BH_ZYGOTE_LOST, BH_CANCELLED,  BH_CONTEXT_CLOSED,
                                    BH_QUARANTINED, BH_LOOP_LIMIT, BH_WORKER_LOST};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        killed_by_signal(&s);
        op = tale_op(&s.tale, 1, 0, 0);
        tale_poisoned(&s.tale, op, odd[i], 0, odd[i] >= 32 ? 1001 : 0, 17);
        found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
    }
    killed_by_signal(&s);
    tale_ended(&s.tale, s.killed)->end.status = BH_OK;
    tale_ended(&s.tale, s.dependent)->end.status = BH_OK;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "says that nothing is wrong");
}

static void poisoned_by_what_did_not_reach_it(void) {
    struct scene s;
    killed_by_signal(&s); /* it needs nothing of the kind */
    uint64_t op = tale_op(&s.tale, 1, s.innocent, 0);
    tale_inherits(&s.tale, op, s.killed);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no dependency of it");

    killed_by_signal(&s); /* one that only overwrites its memory (E5: never sideways) */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_last(&s.tale)->submit.reuses = s.killed;
    tale_inherits(&s.tale, op, s.killed);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "no dependency of it");

    killed_by_signal(&s); /* steps */
    tale_ended(&s.tale, s.dependent)->end.hops = 2;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "no dependency of it");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.hops = 0;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent,
          "its status is not WORKER_LOST, and its origin is another");

    killed_by_signal(&s); /* origins */
    tale_ended(&s.tale, s.dependent)->end.origin = tale_event(s.innocent);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "no dependency of it");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.origin = 99999;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "not an operation of the run");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.origin = tale_event(s.dependent);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "names itself as the origin");

    killed_by_signal(&s); /* another story than the origin's */
    tale_ended(&s.tale, s.dependent)->end.status = BH_DEADLINE;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "no dependency of it");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.worker_pid = 1001;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "no dependency of it");
    killed_by_signal(&s);
    tale_ended(&s.tale, s.dependent)->end.signal = SIGSEGV;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.dependent, "no dependency of it");
}

static void lost_with_what_is_no_neighbour(void) {
    struct scene s;
    killed_by_signal(&s); /* on another stream's worker */
    uint64_t op = tale_op(&s.tale, 1, 0, 0);
    tale_lost_with(&s.tale, op, s.killed, 17);
    tale_last(&s.tale)->end.worker_pid = 1001;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "another worker");
    killed_by_signal(&s); /* with the pid of the other's */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_lost_with(&s.tale, op, s.killed, 17);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "another worker");
    killed_by_signal(&s); /* on the next worker of the stream */
    op = tale_op(&s.tale, 0, 0, 0);
    tale_lost_with(&s.tale, op, s.killed, 17);
    tale_last(&s.tale)->end.worker_pid = 1010;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "another worker");
    killed_by_signal(&s); /* with what is READY */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_lost_with(&s.tale, op, s.innocent, 17);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "did not end its worker");
    killed_by_signal(&s); /* with what was only reached */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_lost_with(&s.tale, op, s.dependent, 17);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "did not end its worker");
    struct tale t; /* with what had ended well before its poison was known */
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t hang = tale_bait(&t, BHI_FAULT_HANG, 0), ran = tale_op(&t, 0, 0, 0);
    tale_last(&t)->submit.wait = hang;
    op = tale_op(&t, 0, 0, 0);
    t.now_ms = 120;
    tale_poisoned(&t, hang, BH_DEADLINE, 0, 1000, 15);
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    tale_inherits(&t, ran, hang);
    tale_last(&t)->end.started_ns = 119 * TALE_MS;
    tale_last(&t)->end.executed = BH_EXECUTED_YES;
    tale_lost_with(&t, op, ran, 119);
    found(&t, BHI_ANOMALY_COLLATERAL, op, "did not end its worker");
    killed_by_signal(&s); /* with itself, as something else */
    op = tale_op(&s.tale, 0, 0, 0);
    tale_lost_with(&s.tale, op, s.killed, 17);
    tale_last(&s.tale)->end.origin = 99999;
    found(&s.tale, BHI_ANOMALY_COLLATERAL, op, "not an operation of the run");
}

/* What it needs from the other stream had not ended: it cannot have been on a worker (E15). */
static void lost_before_its_turn(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t first = tale_op(&t, 0, 0, 0), slow = tale_op(&t, 1, 0, 0);
    uint64_t waits = tale_op(&t, 0, slow, 0);
    t.now_ms = 15;
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    tale_poisoned(&t, first, BH_WORKER_SIGNAL, SIGKILL, 1000, 12);
    tale_lost_with(&t, waits, first, 12);
    t.now_ms = 1000;
    tale_ready(&t, slow, 1001, 12);
    found(&t, BHI_ANOMALY_COLLATERAL, waits, "before its dependencies had ended");
}

static void a_deadline_without_a_cause(void) {
    struct tale t;
    for (int stalled = 0; stalled < 2; stalled++) {
        struct scene s;
        killed_by_signal(&s);
        uint64_t op = tale_op(&s.tale, 1, 0, 0);
        s.tale.now_ms = 2100;
        if (stalled) {
            tale_stall(&s.tale, 600);
        }
        tale_poisoned(&s.tale, op, BH_DEADLINE, SIGKILL, 1001, 18);
        found(&s.tale, stalled ? BHI_ANOMALY_UNKNOWN : BHI_ANOMALY_COLLATERAL, op,
              stalled ? "except that the machine stood still" : "no fault explains it");
    }
    /* It says not when it began: that is no reason to go back to the beginning of time. */
    struct scene s;
    killed_by_signal(&s);
    uint64_t never = tale_op(&s.tale, 1, 0, 0);
    s.tale.now_ms = 2100;
    tale_stall(&s.tale, 600);
    tale_poisoned(&s.tale, never, BH_DEADLINE, SIGKILL, 1001, 0);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, never, "no fault explains it");
    stopped(&t, BHI_FAULT_SLOW, 1900, 2003);
    t.now_ms = 2100;
    never = tale_op(&t, 0, 0, 0);
    t.now_ms = 4200;
    tale_poisoned(&t, never, BH_DEADLINE, SIGKILL, 1000, 0);
    found(&t, BHI_ANOMALY_COLLATERAL, never, "no fault explains it");
    /* Stopped, but not when it ran. */
    stopped(&t, BHI_FAULT_SLOW, 1900, 2003);
    t.now_ms = 2100;
    uint64_t op = tale_op(&t, 0, 0, 0);
    t.now_ms = 4200;
    tale_poisoned(&t, op, BH_DEADLINE, SIGKILL, 1000, 2101);
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
}

/* Memory is a worker's own: a bait on the one is no excuse on the other. */
static void out_of_memory_elsewhere(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t bait = tale_bait(&t, BHI_FAULT_OOM, 0), other = tale_op(&t, 1, 0, 0);
    t.now_ms = 30;
    tale_poisoned(&t, bait, BH_OUT_OF_HOST_MEMORY, 0, 1000, 15);
    tale_poisoned(&t, other, BH_OUT_OF_HOST_MEMORY, 0, 1001, 15);
    found(&t, BHI_ANOMALY_COLLATERAL, other, "no fault explains it");
    static const bh_status no_shortage[] = {BH_WORKER_SIGNAL, BH_PROTOCOL}; /* SIGKILL is none */
    for (int i = 0; i < 2; i++) {
        tale_begin(&t);
        t.now_ms = 10;
        bait = tale_bait(&t, BHI_FAULT_OOM, 0);
        other = tale_op(&t, 0, 0, 0);
        t.now_ms = 30;
        tale_poisoned(&t, bait, BH_OUT_OF_HOST_MEMORY, 0, 1000, 15);
        tale_poisoned(&t, other, no_shortage[i], SIGKILL, 1000, 15);
        found(&t, BHI_ANOMALY_COLLATERAL, other, "no fault explains it");
    }
    tale_begin(&t); /* nor is one that had ended before it was submitted */
    t.now_ms = 10;
    bait = tale_bait(&t, BHI_FAULT_OOM, 0);
    t.now_ms = 30;
    tale_poisoned(&t, bait, BH_OUT_OF_HOST_MEMORY, 0, 1000, 15);
    t.now_ms = 40;
    other = tale_op(&t, 0, 0, 0);
    tale_poisoned(&t, other, BH_COMPILE_FAILED, 0, 1010, 0);
    found(&t, BHI_ANOMALY_COLLATERAL, other, "no fault explains it");
    tale_begin(&t); /* nor is a hang one for memory */
    t.now_ms = 10;
    bait = tale_bait(&t, BHI_FAULT_HANG, 0);
    other = tale_op(&t, 0, 0, 0);
    t.now_ms = 130;
    tale_poisoned(&t, bait, BH_DEADLINE, 0, 1000, 15);
    tale_poisoned(&t, other, BH_OUT_OF_HOST_MEMORY, 0, 1000, 15);
    found(&t, BHI_ANOMALY_COLLATERAL, other, "no fault explains it");
}

/* A bait is a fault, and no excuse for whatever becomes of it. */
static void a_bait_that_ends_otherwise(void) {
    static const struct {
        enum bhi_fault_kind kind;
        bh_status status;
        int signal;
        int32_t pid;
        uint64_t from_ms, took_ms; /* since it was submitted, and of that from its start on */
    } ends[] = {
        {BHI_FAULT_HANG, BH_INVALID_ARGUMENT, 0, 0, 0, 0},
        {BHI_FAULT_HANG, BH_CANCELLED, 0, 1000, 200, 150},
        {BHI_FAULT_HANG, BH_WORKER_SIGNAL, SIGSEGV, 1000, 200, 150},
        {BHI_FAULT_HANG, BH_WORKER_LOST, SIGKILL, 1000, 200, 150},
        {BHI_FAULT_HANG, BH_OUT_OF_HOST_MEMORY, SIGKILL, 1000, 200, 150},
        {BHI_FAULT_HANG, BH_COMPILE_FAILED, SIGSEGV, 1000, 200, 0},
        {BHI_FAULT_HANG, BH_DEADLINE, 0, 1000, 200, 0},        /* no time on a worker */
        {BHI_FAULT_HANG, BH_DEADLINE, 0, 1000, 200, 89},       /* its worker was late to begin */
        {BHI_FAULT_HANG, BH_DEADLINE, 0, 1000, 89, 89},        /* there was time left */
        {BHI_FAULT_HANG, BH_DEADLINE, SIGKILL, 1000, 200, 89}, /* it was killed for it */
        {BHI_FAULT_HANG, BH_DEADLINE, 0, 0, 200, 150},         /* on nobody's */
        {BHI_FAULT_OOM, BH_INVALID_ARGUMENT, 0, 0, 0, 0},
        {BHI_FAULT_OOM, BH_OUT_OF_HOST_MEMORY, 0, 0, 0, 0},
        {BHI_FAULT_OOM, BH_PROTOCOL, SIGKILL, 1000, 200, 150},
        {BHI_FAULT_OOM, BH_DEADLINE, SIGKILL, 1000, 89, 89},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t bait = tale_bait(&t, ends[i].kind, 0);
        t.now_ms += ends[i].from_ms;
        tale_poisoned(&t, bait, ends[i].status, ends[i].signal, ends[i].pid,
                      ends[i].took_ms ? t.now_ms - ends[i].took_ms : 0);
        found(&t, BHI_ANOMALY_COLLATERAL, bait, "no fault explains it");
    }
    struct tale t; /* 1 ns after its start */
    tale_begin(&t);
    t.now_ms = 10;
    const uint64_t bait = tale_bait(&t, BHI_FAULT_HANG, 0);
    t.now_ms = 200;
    tale_poisoned(&t, bait, BH_DEADLINE, 0, 1000, 200);
    tale_last(&t)->end.started_ns--;
    found(&t, BHI_ANOMALY_COLLATERAL, bait, "no fault explains it");
}

static void refused_without_a_cause(void) {
    struct scene s;
    killed_by_signal(&s);
    tale_refused(&s.tale, BH_NO_MEMORY);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.tale.ops, "was refused");
    struct tale t;
    full(&t, 200);
    tale_refused(&t, BH_INVALID_ARGUMENT); /* no answer to a full table */
    found(&t, BHI_ANOMALY_COLLATERAL, 0, "was refused (INVALID_ARGUMENT)");
    full(&t, 200);
    t.now_ms = 2300; /* it has room again */
    tale_refused(&t, BH_NO_MEMORY);
    found(&t, BHI_ANOMALY_COLLATERAL, 0, "was refused");
    full(&t, 200);
    t.now_ms = 2300;
    uint64_t op = tale_op(&t, 0, 0, 0);
    tale_poisoned(&t, op, BH_NO_MEMORY, 0, 0, 0);
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
}

/* -- changed ------------------------------------------------------------------------------------
 */

static void changed(void) {
    struct scene s;
    killed_by_signal(&s);
    tale_ended(&s.tale, s.killed)->end.changed = true;
    found(&s.tale, BHI_ANOMALY_CHANGED, s.killed, "another answer");
    killed_by_signal(&s); /* two ends */
    tale_poisoned(&s.tale, s.killed, BH_WORKER_SIGNAL, SIGKILL, 1000, 12);
    found(&s.tale, BHI_ANOMALY_CHANGED, s.killed, "ended twice");
    killed_by_signal(&s); /* the event is READY, the content is not */
    tale_last(&s.tale)->result.status = BH_WORKER_SIGNAL;
    found(&s.tale, BHI_ANOMALY_CHANGED, s.innocent, "cannot be read");
    killed_by_signal(&s); /* two stories */
    tale_result(&s.tale, s.killed);
    tale_last(&s.tale)->result.status = BH_DEADLINE;
    found(&s.tale, BHI_ANOMALY_CHANGED, s.killed, "different verdicts");
    struct tale t;
    full(&t, 200); /* no shortage, with a full table */
    uint64_t op = tale_op(&t, 1, 0, 0);
    t.now_ms = 210;
    tale_ready(&t, op, 1001, 205);
    tale_last(&t)->result.status = BH_DEADLINE;
    found(&t, BHI_ANOMALY_CHANGED, op, "cannot be read");
    killed_by_signal(&s); /* a shortage, with no full table */
    tale_last(&s.tale)->result.status = BH_NO_MEMORY;
    found(&s.tale, BHI_ANOMALY_CHANGED, s.innocent, "cannot be read");
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(lost),
        BHT_TEST(false_success),
        BHT_TEST(impossible_times),
        BHT_TEST(poisoned_without_a_cause),
        BHT_TEST(poisoned_by_what_did_not_reach_it),
        BHT_TEST(lost_with_what_is_no_neighbour),
        BHT_TEST(lost_before_its_turn),
        BHT_TEST(a_deadline_without_a_cause),
        BHT_TEST(out_of_memory_elsewhere),
        BHT_TEST(a_bait_that_ends_otherwise),
        BHT_TEST(refused_without_a_cause),
        BHT_TEST(changed),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
