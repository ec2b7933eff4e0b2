/* The checker: what may happen, a history for each kind of fault. */
#include "chaos/check/oracle.h"
#include "tale.h"

/* -- the oracle ---------------------------------------------------------------------------------
 */

/* By hand: (5 * 3 + 1) ^ 0 = 16, (6 * 3 + 1) ^ rotl(0x9e3779b9, 4) = 19 ^ 0xe3779b99. */
TEST(the_oracle_by_hand) {
    const uint32_t a[] = {2, 2}, b[] = {3, 4}, *inputs[] = {a, b};
    uint32_t out[2];
    struct bhi_chaos_work work = {2, 3, 1, 4, 1};
    bhi_oracle_compute(&work, inputs, 2, out);
    BHT_EQ(out[0], 16);
    BHT_EQ(out[1], 19 ^ 0xe3779b99u);
    work.rounds = 2;
    bhi_oracle_compute(&work, inputs, 2, out);
    BHT_EQ(out[0], 49);
    work.rounds = 0;
    work.shift = 32;
    bhi_oracle_compute(&work, inputs, 2, out);
    BHT_EQ(out[1], 6);
    work = (struct bhi_chaos_work){2, 1, 0, 32, 1};
    bhi_oracle_compute(&work, inputs, 0, out);
    BHT_EQ(out[0], 0);
    BHT_EQ(out[1], 0x9e3779b9u);
    /* b2sum -l 128 of these bytes: */
    static const uint8_t expected[BHI_CHAOS_DIGEST] = {0x03, 0x1b, 0x8a, 0x03, 0xf6, 0xe7,
                                                       0xaf, 0x40, 0x9b, 0x14, 0x82, 0x41,
                                                       0x0b, 0x39, 0xa3, 0x6d};
    uint8_t digest[BHI_CHAOS_DIGEST];
    bhi_oracle_digest(out, 2, digest);
    BHT_MEM_EQ(digest, expected, sizeof expected);
}

/* -- what may happen ----------------------------------------------------------------------------
 */

TEST(a_killed_worker) {
    valid(KILLED);
    BHT_EQ(result.operations, 7);
    BHT_EQ(result.ready, 5);
    BHT_EQ(result.poisoned, 2);
    BHT_EQ(result.results, 5);
    BHT_EQ(result.faults[BHI_FAULT_KILL], 1);
    BHT_EQ(result.recovery_count, 1);
    BHT_EQ(result.recovery_max_ns, (119 - 15) * TALE_MS);
    BHT_EQ(result.recovery_p50_ns, result.recovery_max_ns);
    BHT_EQ(result.recovery[10], 1); /* 102.4 ms and up */
    BHT_EQ(result.descriptors_first, 20);
    BHT_EQ(result.descriptors_last, 20);
    BHT_EQ(result.rss_first, 50 << 20);
    BHT_EQ(result.rss_last, 50 << 20);
}

/* And in no other way: that would be another's doing. */
TEST(however_a_worker_dies) {
    static const char *const statuses[] = {"WORKER_SIGNAL", "OUT_OF_HOST_MEMORY", "COMPILE_FAILED",
                                           "PROTOCOL",      "WORKER_EXIT",        "ZYGOTE_LOST",
                                           "DEVICE_LOST"};
    static const char *const signals[] = {"0", "KILL", "SEGV", "PIPE"};
    static const struct {
        enum bhi_fault_kind kind;
        const char *deaths; /* "STATUS SIGNAL", or "STATUS *" */
    } rows[] = {
        {BHI_FAULT_KILL, "WORKER_SIGNAL KILL, OUT_OF_HOST_MEMORY KILL"},
        {BHI_FAULT_DEVICE, "WORKER_SIGNAL KILL, OUT_OF_HOST_MEMORY KILL"},
        {BHI_FAULT_SEGV, "WORKER_SIGNAL SEGV, OUT_OF_HOST_MEMORY SEGV, COMPILE_FAILED SEGV"},
        {BHI_FAULT_GARBAGE,
         "PROTOCOL *, WORKER_EXIT *, COMPILE_FAILED *, WORKER_SIGNAL KILL, WORKER_SIGNAL PIPE"},
        {BHI_FAULT_CLOSE,
         "PROTOCOL *, WORKER_EXIT *, COMPILE_FAILED *, WORKER_SIGNAL KILL, WORKER_SIGNAL PIPE"},
        {BHI_FAULT_ZYGOTE, "ZYGOTE_LOST *, WORKER_SIGNAL KILL"},
        {BHI_FAULT_STOP, "COMPILE_FAILED KILL"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows) * BHT_COUNT(statuses) * BHT_COUNT(signals); i++) {
        const char *status = statuses[i % BHT_COUNT(statuses)];
        const char *signal = signals[i / BHT_COUNT(statuses) % BHT_COUNT(signals)];
        const size_t row = i / BHT_COUNT(statuses) / BHT_COUNT(signals);
        const char *kind = bhi_fault_name(rows[row].kind);
        char death[64], any[64];
        snprintf(death, sizeof death, "%s %s", status, signal);
        snprintf(any, sizeof any, "%s *", status);
        if (strstr(rows[row].deaths, death) || strstr(rows[row].deaths, any)) {
            valid(HIT("%s", "%s", "%s"), kind, status, signal);
            BHT_EQ(result.faults[rows[row].kind], 1);
        } else {
            found(BHI_ANOMALY_COLLATERAL, 'k', "no fault explains it", HIT("%s", "%s", "%s"), kind,
                  status, signal);
        }
    }
}

/* It could not see them all: one was just starting. */
TEST(a_zygotes_other_worker) {
    valid("x on 1; at 15; fault zygote 0 1000; at 18; x poisoned ZYGOTE_LOST 0 1012 16");
    BHT_EQ(result.recovery_count, 2); /* of both streams */
}

TEST(neighbours_of_a_killed_worker) {
    tell("at 10; a on 0; b on 0 needs a; c on 0; d on 1 needs c; e on 1 needs d; f on 0; at 15;"
         "fault kill 0 1000; a poisoned WORKER_SIGNAL KILL 1000 12; b inherits a;"
         "c lost with a 12; d inherits c");
    /* The origin is the culprit, and what was lost with it is no step. */
    BHT_EQ(ended('d')->end.hops, 1);
    BHT_EQ(ended('d')->end.origin, event_of(tale.named['a']));
    /* f had not begun: the next worker ran it. */
    valid("e inherits d; at 20; f ready 1010 16");
}

/* Recorded before the death, read after it (E11). */
TEST(ready_after_its_workers_death) {
    valid("at 10; x on 0; at 14; fault kill 0 1000; at 16; x ready 1000 12");
}

/* The END may be noted before the FAULT that explains it. */
TEST(a_fault_noted_late) {
    valid("at 10; x on 0; at 15; x poisoned WORKER_SIGNAL KILL 1000 12; at 14; fault kill 0 1000;"
          "at 15");
}

TEST(a_stopped_worker) {
    valid(STOPPED, 2015);
    valid(SLOW, 1900, 1915); /* for nearly all of its time */
    /* For a little of it: what else was it? */
    found(BHI_ANOMALY_UNKNOWN, 'x', "except that the machine stood still", SLOW, 100, 115);
    valid(STOPPED, 2003); /* clocks that differ */
    /* There was time left. */
    found(BHI_ANOMALY_COLLATERAL, 'x', "no fault explains it", STOPPED, 2001);
}

/* One has ended when its worker is killed for it all the same, and the one behind goes with it. */
#define LOST_BEHIND                                                                                \
    "at 10; a on 0; x on 0; at 15; fault slow 0 1000 lasts %d; at %d; healed 1; at 2012;"          \
    "a ready 1000 12; x poisoned WORKER_LOST KILL 1000 13"
TEST(lost_behind_a_stop) {
    valid(LOST_BEHIND, 500, 515);
    found(BHI_ANOMALY_UNKNOWN, 'x', "except that the machine stood still", LOST_BEHIND, 499, 514);
}

TEST(compiled_on_a_slow_machine) {
    found(BHI_ANOMALY_UNKNOWN, 'x', "except that the machine stood still",
          COMPILED_FOR_5_S "stall 1250; x poisoned COMPILE_FAILED KILL 1011");
    found(BHI_ANOMALY_COLLATERAL, 'x', "no fault explains it",
          COMPILED_FOR_5_S "stall 1249; x poisoned COMPILE_FAILED KILL 1011");
    found(BHI_ANOMALY_COLLATERAL, 'x', "no fault explains it",
          COMPILED_FOR_5_S "stall 1250; x poisoned COMPILE_FAILED SEGV 1011");
}

/* Stopped while it had nothing to do; the next one finds out. */
TEST(stopped_while_idle) {
    static const char *const ways[] = {"DEADLINE", "COMPILE_FAILED"};
    valid("at 10; fault stop 0 1000; at 1000; x on 0; at 3002;"
          "x poisoned DEADLINE KILL 1000 1001");
    /* A spare one: it comes to a stream when it is needed, and that may take longer than any
     * patience. */
    for (int i = 0; i < 2; i++) {
        valid("at 10; fault stop 0 1050 outside; works 1000; at 100000; x on 0; at 102002;"
              "x poisoned %s KILL 1050 100001",
              ways[i]);
    }
}

TEST(a_hang) {
    valid("at 10; a on 0; h baits hang 0; b on 0; c on 1 waits h; at 15; a ready 1000 12; at 120;"
          "h poisoned DEADLINE KILL 1000 15; b lost with h 15; c inherits h");
}

/* The worker of a hang is killed before its deadline: nobody can tell the kernel to end, and on an
 * accelerator the other stream stands still with it. */
#define HANG         "at 10; h baits hang 0; x on 1; at 50;"
#define ORPHAN       "at 51; h poisoned WORKER_SIGNAL KILL 1000 15; " STANDS_STILL
#define STANDS_STILL "at 2050; x poisoned DEADLINE 0 1001 20"
TEST(a_hang_that_holds_the_device) {
    valid("accelerator;" HANG "fault kill 0 1000;" ORPHAN);
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it",
          HANG "fault kill 0 1000;" ORPHAN);
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it", "accelerator;" HANG ORPHAN);
}

/* One without the guard cannot be stopped: it holds the device although nothing else hit its
 * worker. */
TEST(a_kernel_without_the_guard) {
#define UNGUARDED                                                                                  \
    "at 10; h baits unguarded 0; b on 0; x on 1; at 120; h poisoned DEADLINE KILL 1000 15;"        \
    "b lost with h 15;" STANDS_STILL
    valid("accelerator;" UNGUARDED);
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it", UNGUARDED);
}

/* |baits| kernels without the guard, 5 s apart; then a stream of theirs has no worker, |late_ms|
 * after the last one. */
static void charge(bool accelerator, int baits, int late_ms) {
    tell(accelerator ? "accelerator" : "after 0");
    for (int i = 0; i < baits; i++) {
        tell(
            "h baits unguarded 0; after 4000; h poisoned DEADLINE KILL %d %d; after 1000; works %d",
            1010 + 10 * i, (int)tale.now_ms + 100, 1020 + 10 * i);
    }
    tell("after %d; x on 1; x poisoned UNAVAILABLE", late_ms);
}

TEST(a_charged_tenant) {
    static const struct {
        int accelerator, baits, late_ms;
    } not_charged[] = {{true, 4, 0},     /* its budget is not spent */
                       {true, 8, 70000}, /* its time is over */
                       {false, 8, 0}};   /* nobody had to wait for these */
    charge(true, 5, 0);
    valid(NULL);
    charge(true, 8, 68000);
    valid(NULL);
    for (size_t i = 0; i < BHT_COUNT(not_charged); i++) {
        charge(not_charged[i].accelerator, not_charged[i].baits, not_charged[i].late_ms);
        found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it", NULL);
    }
}

/* An output in device memory is being copied when the worker that does it dies. What ran beside the
 * copy is lost, and its own origin; what it copied is not. */
TEST(lost_with_a_copy) {
#define COPIED "at 10; a on 0 device; x on 0; b on 1 needs x; at 15; a ready 1000 12;"
#define LOST   "at 17; x poisoned WORKER_LOST KILL 1000 "
    valid(COPIED "fault device 0 1000;" LOST "13; b inherits x");
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it",
          COPIED "fault device 1 1001;" LOST "13; b inherits x");
    /* On a stream that has no such memory nothing copies. */
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it",
          "at 15; x on 0; fault device 0 1000;" LOST "16");
    /* Nobody can look up the copy itself. */
    found(BHI_ANOMALY_COLLATERAL, 'x', "its origin is not an operation of the run",
          "at 15; x on 0 device; fault device 0 1000;" LOST "16; x has origin 9999");
}

/* What is in device memory is copied to another device, and no worker comes to an end with that in
 * time: the content is lost, and the origin is who wrote it. A death is no such reason: the copy is
 * made again. */
TEST(lost_on_the_way) {
#define MOVED "at 10; a on 0 device; at 15; a ready 1000 12; x on 1 needs a;"
#define NEVER "KILL 1000; x has origin a; x has hops 1"
    valid(MOVED "fault stop 0 1000; at 4100; x poisoned DEADLINE " NEVER);
    found(BHI_ANOMALY_COLLATERAL, 'x', "no dependency of it has the same verdict with one hop less",
          MOVED "fault kill 0 1000; at 4100; x poisoned WORKER_SIGNAL " NEVER);
    found(BHI_ANOMALY_COLLATERAL, 'x', "and no fault explains it",
          MOVED "fault kill 0 1001; at 4100; x poisoned DEADLINE " NEVER);
}

/* The bait has ended as it was told to, and its worker is killed for it all the same. */
TEST(lost_without_a_culprit) {
    valid("at 10; h baits hang 0; b on 0; at 120; h poisoned DEADLINE 0 1000 12; at 121;"
          "b poisoned WORKER_LOST KILL 1000 120");
}

TEST(out_of_memory) {
    static const char *const ways[] = {"OUT_OF_HOST_MEMORY", "OUT_OF_DEVICE_MEMORY",
                                       "WORKER_SIGNAL", "COMPILE_FAILED"};
    for (size_t i = 0; i < BHT_COUNT(ways); i++) { /* which allocation is refused is chance */
        valid("at 10; h baits oom 0; b on 0; at 30; h poisoned %s 0 1000 15;"
              "b poisoned OUT_OF_HOST_MEMORY ABRT 1000 15",
              ways[i]);
    }
    valid("h baits oom 0; at 20; h ready 1000 15"); /* or it gets by: there was enough */
}

/* By its deadline, by its worker's, by its driver's; a bait that it shares a worker with counts as
 * it does for others. */
TEST(however_a_bait_ends) {
    static const struct {
        bool accelerator;
        const char *kind, *status, *signal;
        int from_ms; /* of 210 ms; it was submitted at 10 ms */
    } ends[] = {
        {false, "hang", "DEADLINE", "0", 110},
        {false, "hang", "DEADLINE", "0", 119},    /* clocks that differ */
        {false, "hang", "DEADLINE", "KILL", 119}, /* it would not end */
        {true, "hang", "DEVICE_LOST", "0", 10},
        {true, "hang", "WORKER_EXIT", "0", 10},
        {true, "hang", "WORKER_SIGNAL", "ABRT", 10},
        {true, "hang", "WORKER_LOST", "KILL", 10},
        {false, "oom", "OUT_OF_HOST_MEMORY", "KILL", 0},
        {false, "oom", "NO_MEMORY", "0", 110},
        {false, "oom", "WORKER_SIGNAL", "KILL", 110},
        {false, "oom", "WORKER_LOST", "KILL", 110},
        {false, "oom", "DEADLINE", "KILL", 110},
        {true, "illegal", "DEVICE_FAULT", "0", 10},
        {true, "illegal", "DEADLINE", "KILL", 110},
    };
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        valid("%s; at 10; h baits %s 0; at 210; h poisoned %s %s 1000 %d",
              ends[i].accelerator ? "accelerator" : "", ends[i].kind, ends[i].status,
              ends[i].signal, ends[i].from_ms);
    }
    for (int oom = 0; oom < 2; oom++) { /* behind one that was stopped */
        valid("at 10; h baits %s 0; fault slow 0 1000; at 108; healed 2; at 120;"
              "h poisoned WORKER_LOST KILL 1000 110",
              oom ? "oom" : "hang");
    }
    /* Hit as any other; with another bait on its worker. */
    valid("at 10; h baits hang 0; at 120; fault kill 0 1000;"
          "h poisoned WORKER_SIGNAL KILL 1000 119");
    valid("at 10; a baits hang 0; h baits hang 0; at 120; a poisoned DEADLINE 0 1000 12;"
          "h poisoned WORKER_LOST KILL 1000 119");
}

TEST(a_bait_may_be_poisoned_too) {
    tell(KILLED "h baits hang 1");
    submitted('h')->submit.wait = tale.named['k'];
    valid("h inherits k");
    BHT_EQ(result.recovery_count, 1); /* it never came to a worker */
}

TEST(a_full_table) {
    static const char *const shortages[] = {"NO_MEMORY", "SYSTEM", "UNAVAILABLE"};
    for (size_t i = 0; i < BHT_COUNT(shortages); i++) {
        valid(FULL "x on 1; refused %1$s; at 210; x poisoned %1$s; refused %1$s", shortages[i]);
        BHT_EQ(result.refused, 2);
    }
}

TEST(no_worker_to_be_had) {
    valid(HIT("zygote", "ZYGOTE_LOST", "0") "x on 0; x poisoned UNAVAILABLE");
    /* It could not start one then, and somebody waited for it until now. */
    valid(FULL "works 1000; at 5100; x on 0; x poisoned UNAVAILABLE");
}

/* The hang's worker has begun what needs it and what comes behind; it ends the hang, runs what is
 * poisoned by then, and is killed. What was behind is lost with what ran. */
TEST(lost_with_what_was_poisoned_as_it_ran) {
    valid(RAN_POISONED "a has executed UNKNOWN; b lost with a 119; c inherits b");
}

TEST(memory_is_used_again) {
    /* Over what was poisoned: that does not pass on. */
    valid(KILLED "x on 1 reuses k; at 20; x ready 1001 18");
}
