/* The checker: a machine on which workers want a processor and have none. What is late for that is
 * nobody's fault, and what is wrong is as wrong as ever. */
#include "tale.h"

static const char stood_still[] = "except that the machine stood still",
                  none[] = "no fault explains it";

/* Worker 1011 compiles, and is killed for it after 5 s, of which it was starved for so long. */
TEST(a_compile) {
#define COMPILED COMPILED_FOR_5_S "starved %d %d; x poisoned COMPILE_FAILED %s 1011"
    found(BHI_ANOMALY_UNKNOWN, 'x', stood_still, COMPILED, 1011, 1250, "KILL");
    found(BHI_ANOMALY_COLLATERAL, 'x', none, COMPILED, 1011, 1249, "KILL");
    /* Another was starved; it was no deadline. */
    found(BHI_ANOMALY_COLLATERAL, 'x', none, COMPILED, 1010, 5000, "KILL");
    found(BHI_ANOMALY_COLLATERAL, 'x', none, COMPILED, 1011, 5000, "SEGV");
    tell(COMPILED, 1011, 1250, "KILL"); /* it had four times as long */
    tale.history.header.compile_ns = 20000 * TALE_MS;
    found(BHI_ANOMALY_COLLATERAL, 'x', none, NULL);
}

/* Its worker says when it began, or never came to that. */
TEST(a_deadline) {
    static const char *const ways[] = {"DEADLINE KILL 1001 18", "DEADLINE KILL 1001",
                                       "WORKER_LOST KILL 1001 2095"};
    for (size_t i = 0; i < BHT_COUNT(ways); i++) {
        found(BHI_ANOMALY_UNKNOWN, 'x', stood_still,
              KILLED "x on 1; at 2100; starved 1001 500; x poisoned %s", ways[i]);
        found(BHI_ANOMALY_COLLATERAL, 'x', none,
              KILLED "x on 1; at 2100; starved 1001 499; x poisoned %s", ways[i]);
    }
}

/* Of 700 ms without a processor 300 were before the end. */
TEST(what_comes_after_the_end_excuses_nothing) {
    found(BHI_ANOMALY_COLLATERAL, 'x', none,
          KILLED "x on 1; at 2100; x poisoned DEADLINE KILL 1001 18; at 2500; starved 1001 700");
    found(BHI_ANOMALY_UNKNOWN, 'x', stood_still,
          KILLED "x on 1; at 2100; x poisoned DEADLINE KILL 1001 18; at 2500; starved 1001 900");
}

/* Seen in two looks of 300 ms, in each of which several had to wait. */
TEST(looks_add_up_and_processes_do_not) {
    for (int others = 0; others < 2; others++) { /* 1101: nothing to do with this stream */
        tell("at 10; fault kill 0 1000");
        for (int look = 0; look < 2; look++) {
            tell("at %d; starved 900 %d; starved %d 300; starved 902 200", 4000 + 500 * look,
                 others ? 100 : 300, others ? 1101 : 901);
        }
        /* judge() adds 100 ms, and work that takes 2. */
        tell("at %d", 5010 + 600 - 102);
        judge();
        BHT_EQ(result.verdict, others ? BHI_CHAOS_INVALID : BHI_CHAOS_UNKNOWN);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_RECOVERY], others);
    }
}

TEST(patience) {
    found(BHI_ANOMALY_UNKNOWN, 'x', "stood still for 8000 ms",
          KILLED "x on 1; at 40000; starved 1001 8000; x ready 1001 39999; at 20");
    /* 1010 serves the other stream: its work, at the end, says so. */
    found(BHI_ANOMALY_LOST, 'x', "ended later",
          KILLED "x on 1; at 40000; starved 1010 8000; x ready 1001 39999; at 20; works 1010");
    found(BHI_ANOMALY_LOST, 'x', "ended later",
          KILLED "x on 1; at 40000; starved 1001 7400; x ready 1001 39999; at 20");
    /* Given up on long before: that is no machine's doing. */
    found(BHI_ANOMALY_LOST, 'x', "did not end within",
          KILLED "x on 1; at 20000; starved 1001 8000; x ready 1001 19999; x has lost 1; x unread;"
                 "at 20");
}

/* What comes of a fault comes later: of a kill more than the 5 s of a recovery, of a full table
 * more than 2 s. */
TEST(a_fault_that_is_felt_late) {
#define KILLED_LATE                                                                                \
    "at 10; x on 0; fault kill 0 1000; at 6000; %s; x poisoned WORKER_SIGNAL KILL 1000 11"
#define FULL_LATE FULL "x on 1; at 3000; %s; refused NO_MEMORY; x poisoned SYSTEM"
    tell(KILLED_LATE, "");
    judge();
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_COLLATERAL], 1);
    tell(KILLED_LATE, "starved 900 2000");
    judge();
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_COLLATERAL], 0);
    found(BHI_ANOMALY_COLLATERAL, 0, "no injected shortage explains it", FULL_LATE, "");
    valid(FULL_LATE, "starved 900 1000");
}
