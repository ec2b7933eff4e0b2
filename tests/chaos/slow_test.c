/* The checker: a machine on which workers want a processor and have none. What is late for that is
 * nobody's fault, and what is wrong is as wrong as ever. */
#include "harness.h"
#include "judge.h"

#include <signal.h>

/* Worker 1011 compiles, and is killed for it after 5 s, of which it was starved for so long. */
static uint64_t compiled_for_long(struct tale *t, int32_t pid, uint64_t starved_ms, int signal) {
    struct scene s;
    const uint64_t op = compiled_for_5_s(&s);
    tale_starved(&s.tale, pid, starved_ms);
    tale_poisoned(&s.tale, op, BH_COMPILE_FAILED, signal, 1011, 0);
    *t = s.tale;
    return op;
}

static void a_compile(void) {
    struct tale t;
    uint64_t op = compiled_for_long(&t, 1011, 1250, SIGKILL);
    found(&t, BHI_ANOMALY_UNKNOWN, op, "except that the machine stood still");
    op = compiled_for_long(&t, 1011, 1249, SIGKILL);
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
    op = compiled_for_long(&t, 1010, 5000, SIGKILL); /* another was starved */
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
    op = compiled_for_long(&t, 1011, 5000, SIGSEGV); /* it was no deadline */
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
    op = compiled_for_long(&t, 1011, 1250, SIGKILL); /* it had four times as long */
    t.history.header.compile_ns = 20000 * TALE_MS;
    found(&t, BHI_ANOMALY_COLLATERAL, op, "no fault explains it");
}

/* Its worker says when it began, or never came to that. */
static void a_deadline(void) {
    for (int i = 0; i < 6; i++) {
        const bool enough = i % 2 == 0, loss = i >= 4;
        struct scene s;
        killed_by_signal(&s);
        const uint64_t op = tale_op(&s.tale, 1, 0, 0);
        s.tale.now_ms = 2100;
        tale_starved(&s.tale, 1001, enough ? 500 : 499);
        tale_poisoned(&s.tale, op, loss ? BH_WORKER_LOST : BH_DEADLINE, SIGKILL, 1001,
                      i < 2   ? 18
                      : i < 4 ? 0
                              : 2095);
        found(&s.tale, enough ? BHI_ANOMALY_UNKNOWN : BHI_ANOMALY_COLLATERAL, op,
              enough ? "except that the machine stood still" : "no fault explains it");
    }
}

/* Seen in two looks of 300 ms, in each of which several had to wait. */
static void looks_add_up_and_processes_do_not(void) {
    for (int32_t others = 0; others < 2; others++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
        for (uint64_t look = 0; look < 2; look++) {
            t.now_ms = 4000 + 500 * look;
            tale_starved(&t, 900, others ? 100 : 300);
            tale_starved(&t, 901, 300);
            tale_starved(&t, 902, 200);
            if (others) { /* nothing to do with this stream */
                tale_last(&t)[-1].stall.pid = 1101;
            }
        }
        /* judge() adds 100 ms, and work that takes 2. */
        t.now_ms = 5010 + 600 - 102;
        judge(&t);
        BHT_EQ(result.verdict, others ? BHI_CHAOS_INVALID : BHI_CHAOS_UNKNOWN);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_RECOVERY], others);
    }
}

static void patience(void) {
    for (int i = 0; i < 4; i++) {
        struct scene s;
        killed_by_signal(&s);
        const uint64_t op = tale_op(&s.tale, 1, 0, 0);
        const bool premature = i == 3;
        s.tale.now_ms = premature ? 20000 : 40000;
        tale_starved(&s.tale, i == 1 ? 1010 : 1001, i == 2 ? 7400 : 8000);
        tale_ready(&s.tale, op, 1001, s.tale.now_ms - 1);
        if (premature) { /* given up on long before: that is no machine's doing */
            tale_ended(&s.tale, op)->end.lost = true;
            tale_last(&s.tale)->kind = BHI_RECORD_STALL; /* nothing was read back */
            tale_last(&s.tale)->stall.lasted_ns = 0;
        }
        s.tale.now_ms = 20;
        /* 1010 serves the other stream: its work, at the end, says so. */
        if (i == 1) {
            tale_works(&s.tale, 1010);
        }
        found(&s.tale, i == 0 ? BHI_ANOMALY_UNKNOWN : BHI_ANOMALY_LOST, op,
              i == 0      ? "stood still for 8000 ms"
              : premature ? "did not end within"
                          : "ended later");
    }
}

/* What comes of a fault comes later: of a kill more than the 5 s of a recovery, of a full table
 * more than 2 s. */
static void a_fault_that_is_felt_late(void) {
    for (int starved = 0; starved < 2; starved++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t op = tale_op(&t, 0, 0, 0);
        tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
        t.now_ms = 6000;
        if (starved) {
            tale_starved(&t, 900, 2000);
        }
        tale_poisoned(&t, op, BH_WORKER_SIGNAL, SIGKILL, 1000, 11);
        judge(&t);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_COLLATERAL], !starved);

        full(&t, 200);
        const uint64_t queued = tale_op(&t, 1, 0, 0);
        t.now_ms = 3000;
        if (starved) {
            tale_starved(&t, 900, 1000);
        }
        tale_refused(&t, BH_NO_MEMORY);
        tale_poisoned(&t, queued, BH_SYSTEM, 0, 0, 0);
        if (starved) {
            valid(&t);
        } else {
            found(&t, BHI_ANOMALY_COLLATERAL, 0, "no injected shortage explains it");
        }
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(a_compile),
        BHT_TEST(a_deadline),
        BHT_TEST(looks_add_up_and_processes_do_not),
        BHT_TEST(patience),
        BHT_TEST(a_fault_that_is_felt_late),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
