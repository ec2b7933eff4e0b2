/* The checker: what must not happen to an operation, at least two histories for each anomaly. */
#include "tale.h"

/* Of one kind, and what is said. */
static void lose(char name, const char *words, const char *story) {
    found(BHI_ANOMALY_LOST, name, words, "%s", story);
}

static void succeed_falsely(char name, const char *words, const char *story) {
    found(BHI_ANOMALY_FALSE_SUCCESS, name, words, "%s", story);
}

static void blame(char name, const char *words, const char *story) {
    found(BHI_ANOMALY_COLLATERAL, name, words, "%s", story);
}

static void change(char name, const char *words, const char *story) {
    found(BHI_ANOMALY_CHANGED, name, words, "%s", story);
}

/* -- lost ---------------------------------------------------------------------------------------
 */

TEST(lost) {
    lose('i', "did not end within", KILLED "i has lost 1; i unread"); /* given up on */
    BHT_EQ(result.lost, 1);
    lose('x', "has no end", KILLED "x on 1");
    BHT_EQ(result.lost, 1);
    lose('x', "ended later", KILLED "x on 1; at 40000; x ready 1001 39999; at 20");
    /* The machine stood still for most of it. */
    found(BHI_ANOMALY_UNKNOWN, 'x', "stood still for 20000 ms",
          KILLED "x on 1; at 40000; stall 20000; x ready 1001 39999; at 20");

    tell(KILLED); /* a patience so short that a quarter of it is nothing */
    tale.history.header.patience_ns = 3;
    check();
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(strstr(all_findings(), "stood still"), NULL);
    end_tale();

    for (int stalled = 0; stalled < 2; stalled++) { /* it had ended, and its waiter slept on */
        tell(KILLED "x on 1; at 60020; %s; x ready 1001 18; at 20", stalled ? "stall 20000" : "");
        ended('x')->end.ended_ns = 20 * TALE_MS - 1;
        found(stalled ? BHI_ANOMALY_UNKNOWN : BHI_ANOMALY_LOST, 'x', "no wait returned", NULL);
    }
    tell(KILLED "x on 1; at 60020; x ready 1001 18; at 20"); /* or was not looked at yet */
    ended('x')->end.ended_ns = 20 * TALE_MS;
    valid(NULL);

    lose('d', "still pending", KILLED "d has state PENDING");
}

/* -- false success ------------------------------------------------------------------------------
 */

TEST(false_success) {
    succeed_falsely('i', "output is wrong", KILLED "i wrong");
    /* It did not read what it was to read. */
    tell(KILLED "a on 0; x on 0 needs a; a ready 1010 17; x ready 1010 17");
    submitted('x')->submit.inputs[0] = tale.named['i'];
    found(BHI_ANOMALY_FALSE_SUCCESS, 'x', "output is wrong", NULL);

    tell(KILLED "x on 0 needs i; x ready 1010 17"); /* nor what is known */
    submitted('x')->submit.inputs[0] = 99999;
    found(BHI_ANOMALY_UNKNOWN, 'x', "cannot be recomputed", NULL);

    tell(KILLED "k has state READY"); /* a dead worker's event as READY, never run */
    judge();
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS], 1);
    BHT_STR_HAS(all_findings(), "its status is not success");

    succeed_falsely('i', "it never ran", KILLED "i has executed UNKNOWN");
    succeed_falsely('i', "out of order", KILLED "i has started_ns 1");
    /* Read what was poisoned; waited for it. */
    succeed_falsely('x', "which it needs, is not", KILLED "x on 1 needs i k; x ready 1001 17");
    succeed_falsely('x', "which it needs, is not", KILLED "x on 1 waits d; x ready 1001 17");

    /* The right words, from something that had not ended. */
    tell(KILLED "x on 0 needs i; at 30; x ready 1010 17; x has started_ns 16999999");
    submitted('x')->at_ns = ended('x')->end.submitted_ns = 16 * TALE_MS;
    found(BHI_ANOMALY_FALSE_SUCCESS, 'x', "had ended", NULL);

    /* The right words, and another's verdict. */
    succeed_falsely('i', "a signal killed its worker", KILLED "i has signal KILL");
    succeed_falsely('i', "inherited", KILLED "i has hops 1");
    succeed_falsely('i', "inherited", KILLED "i has origin k");
    /* The content of a poisoned one. */
    succeed_falsely('k', "output can be read", KILLED "k result");
    succeed_falsely('h', "endless kernel", "h baits hang 0; h ready 1000 3");
    succeed_falsely('h', "writes where no memory is", "h baits illegal 0; h ready 1000 3");
}

/* What a verdict says of its times is the library's word, and the run was there. */
TEST(impossible_times) {
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
    static const char *const ways[] = {
        "x ready 1011 515", "x poisoned WORKER_SIGNAL KILL 1011 515",
        /* not only where poison begins */
        "a poisoned WORKER_SIGNAL KILL 1011 515; at 510; x on 1 needs a; at 520; x inherits a"};
    for (size_t i = 0; i < BHT_COUNT(times); i++) {
        for (int way = 0; way < 3; way++) {
            if (!times[i].started_ms && times[i].ended_ms && way == 0) {
                continue; /* that has another name */
            }
            tell(KILLED "at 510; works 1010; at 510; fault kill 1 1011; %c on 1; at 520; %s",
                 way == 2 ? 'a' : 'x', ways[way]);
            struct bhi_record *end = ended('x');
            end->end.submitted_ns = times[i].submitted_ms * TALE_MS + 1;
            end->end.started_ns =
                times[i].started_ms || !times[i].ended_ms ? times[i].started_ms * TALE_MS + 2 : 0;
            end->end.ended_ns = times[i].ended_ms * TALE_MS + 3;
            found(way ? BHI_ANOMALY_COLLATERAL : BHI_ANOMALY_FALSE_SUCCESS, 'x', times[i].words,
                  NULL);
        }
    }
    tell(KILLED "x on 1; at 30; x ready 1001 17"); /* the clocks of two threads */
    ended('x')->end.submitted_ns -= 10 * TALE_MS;
    ended('x')->end.ended_ns += 10 * TALE_MS;
    valid(NULL);
    succeed_falsely('i', "on no worker", KILLED "i has worker_pid 0");
}

/* -- collateral ---------------------------------------------------------------------------------
 */

TEST(poisoned_without_a_cause) {
    static const char *const odd[] = {
        "UNAVAILABLE 0 0",    "NO_MEMORY 0 0",         "SYSTEM 0 0",         "ZYGOTE_LOST 0 1001",
        "CANCELLED 0 1001",   "CONTEXT_CLOSED 0 1001", "QUARANTINED 0 1001", "LOOP_LIMIT 0 1001",
        "WORKER_LOST 0 1001", "DEVICE_FAULT 0 1001"};
    static const char none[] = "no fault explains it";
    /* The other stream's worker. */
    blame('x', none, KILLED "x on 1; x poisoned WORKER_SIGNAL KILL 1001 17");
    /* It is blamed for what it cannot do (T2). */
    blame('k', none, KILLED "k has blame CERTAIN");
    /* Another signal than the one that was sent. */
    blame('k', none, KILLED "k has signal SEGV; d has signal SEGV");
    /* The same pid, long after: that is another worker; and long before. */
    blame('x', none, KILLED "at 20000; x on 0; x poisoned WORKER_SIGNAL KILL 1000 20000; at 20");
    tell(KILLED "at 1100");
    first_fault()->at_ns += 1000 * TALE_MS;
    found(BHI_ANOMALY_COLLATERAL, 'k', none, NULL);
    /* Its own stream's: a restart budget is never spent; not for ever. */
    blame('x', none, KILLED "x on 0; x poisoned UNAVAILABLE");
    blame('x', none,
          HIT("zygote", "ZYGOTE_LOST", "0") "at 100; works 1010; at 5100; x on 1; "
                                            "x poisoned UNAVAILABLE");
    for (size_t i = 0; i < BHT_COUNT(odd); i++) {
        found(BHI_ANOMALY_COLLATERAL, 'x', none, KILLED "x on 1; x poisoned %s 17", odd[i]);
    }
    blame('k', "says that nothing is wrong", KILLED "k has status OK; d has status OK");
}

TEST(poisoned_by_what_did_not_reach_it) {
    static const char none[] = "no dependency of it";
    blame('x', none, KILLED "x on 1 needs i; x inherits k"); /* it needs nothing of the kind */
    /* One that only overwrites its memory (E5: never sideways). */
    blame('x', none, KILLED "x on 1 reuses k; x inherits k");
    blame('d', none, KILLED "d has hops 2"); /* steps */
    blame('d', "its status is not WORKER_LOST, and its origin is another", KILLED "d has hops 0");
    blame('d', none, KILLED "d has origin i"); /* origins */
    blame('d', "not an operation of the run", KILLED "d has origin 99999");
    blame('d', "names itself as the origin", KILLED "d has origin d");
    blame('d', none, KILLED "d has status DEADLINE"); /* another story than the origin's */
    blame('d', none, KILLED "d has worker_pid 1001");
    blame('d', none, KILLED "d has signal SEGV");
}

TEST(lost_with_what_is_no_neighbour) {
    static const char another[] = "another worker", none[] = "did not end its worker";
    /* On another stream's worker; with the pid of the other's; on the next worker of the stream. */
    blame('x', another, KILLED "x on 1; x lost with k 17; x has worker_pid 1001");
    blame('x', another, KILLED "x on 1; x lost with k 17");
    blame('x', another, KILLED "x on 0; x lost with k 17; x has worker_pid 1010");
    /* With what is READY; with what was only reached. */
    blame('x', none, KILLED "x on 1; x lost with i 17");
    blame('x', none, KILLED "x on 1; x lost with d 17");
    /* With what had ended well before its poison was known. */
    blame('b', none,
          "at 10; h baits hang 0; a on 0 waits h; b on 0; at 120; h poisoned DEADLINE 0 1000 15;"
          "fault kill 0 1000; a inherits h; a has started_ns 119000000; a has executed YES;"
          "b lost with a 119");
    /* With itself, as something else. */
    blame('x', "not an operation of the run",
          KILLED "x on 0; x lost with k 17; x has origin 99999");
}

/* What it needs from the other stream had not ended: it cannot have been on a worker (E15). */
TEST(lost_before_its_turn) {
    blame('x', "before its dependencies had ended",
          "at 10; a on 0; b on 1; x on 0 needs b; at 15; fault kill 0 1000;"
          "a poisoned WORKER_SIGNAL KILL 1000 12; x lost with a 12; at 1000; b ready 1001 12");
}

TEST(a_deadline_without_a_cause) {
    static const char none[] = "no fault explains it";
    blame('x', none, KILLED "x on 1; at 2100; x poisoned DEADLINE KILL 1001 18");
    found(BHI_ANOMALY_UNKNOWN, 'x', "except that the machine stood still",
          KILLED "x on 1; at 2100; stall 600; x poisoned DEADLINE KILL 1001 18");
    /* It says not when it began: that is no reason to go back to the beginning of time. */
    blame('x', none, KILLED "x on 1; at 2100; stall 600; x poisoned DEADLINE KILL 1001");
    found(BHI_ANOMALY_COLLATERAL, 'y', none,
          SLOW "at 2100; y on 0; at 4200; y poisoned DEADLINE KILL 1000", 1900, 1915);
    /* Stopped, but not when it ran. */
    found(BHI_ANOMALY_COLLATERAL, 'y', none,
          SLOW "at 2100; y on 0; at 4200; y poisoned DEADLINE KILL 1000 2101", 1900, 1915);
}

/* Memory is a worker's own: a bait on the one is no excuse on the other. */
TEST(out_of_memory_elsewhere) {
    static const char none[] = "no fault explains it";
#define OOM "at 30; h poisoned OUT_OF_HOST_MEMORY 0 1000 15;"
    blame('x', none, "at 10; h baits oom 0; x on 1;" OOM "x poisoned OUT_OF_HOST_MEMORY 0 1001 15");
    /* SIGKILL is no shortage. */
    blame('x', none, "at 10; h baits oom 0; x on 0;" OOM "x poisoned WORKER_SIGNAL KILL 1000 15");
    blame('x', none, "at 10; h baits oom 0; x on 0;" OOM "x poisoned PROTOCOL KILL 1000 15");
    /* Nor is one that had ended before it was submitted; nor is a hang one for memory. */
    blame('x', none, "at 10; h baits oom 0;" OOM "at 40; x on 0; x poisoned COMPILE_FAILED 0 1010");
    blame('x', none,
          "at 10; h baits hang 0; x on 0; at 130; h poisoned DEADLINE 0 1000 15;"
          "x poisoned OUT_OF_HOST_MEMORY 0 1000 15");
}

/* A bait is a fault, and no excuse for whatever becomes of it. */
TEST(a_bait_that_ends_otherwise) {
    static const struct {
        const char *kind, *story; /* it was submitted at 10 ms */
    } ends[] = {
        {"hang", "h poisoned INVALID_ARGUMENT"},
        {"hang", "at 210; h poisoned CANCELLED 0 1000 60"},
        {"hang", "at 210; h poisoned WORKER_SIGNAL SEGV 1000 60"},
        {"hang", "at 210; h poisoned WORKER_LOST KILL 1000 60"},
        {"hang", "at 210; h poisoned OUT_OF_HOST_MEMORY KILL 1000 60"},
        {"hang", "at 210; h poisoned COMPILE_FAILED SEGV 1000"},
        {"hang", "at 210; h poisoned DEADLINE 0 1000"},        /* no time on a worker */
        {"hang", "at 210; h poisoned DEADLINE 0 1000 121"},    /* its worker was late to begin */
        {"hang", "at 99; h poisoned DEADLINE 0 1000 10"},      /* there was time left */
        {"hang", "at 210; h poisoned DEADLINE KILL 1000 121"}, /* it was killed for it */
        {"hang", "at 210; h poisoned DEADLINE 0 0 60"},        /* on nobody's */
        {"hang", "at 200; h poisoned DEADLINE 0 1000 200; h has started_ns 199999999"},
        {"illegal", "at 210; h poisoned DEVICE_FAULT 0 1000"},   /* it had not begun */
        {"illegal", "at 210; h poisoned DEVICE_LOST 0 1000 60"}, /* lost is not faulted */
        {"illegal", "at 210; h poisoned WORKER_EXIT 0 1000 60"},
        {"illegal", "at 99; h poisoned DEADLINE KILL 1000 10"},
        {"hang", "at 210; h poisoned DEVICE_FAULT 0 1000 60"}, /* it touches nothing */
        {"oom", "h poisoned INVALID_ARGUMENT"},
        {"oom", "h poisoned OUT_OF_HOST_MEMORY"},
        {"oom", "at 210; h poisoned PROTOCOL KILL 1000 60"},
        {"oom", "at 99; h poisoned DEADLINE KILL 1000 10"},
    };
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        found(BHI_ANOMALY_COLLATERAL, 'h', "no fault explains it", "at 10; h baits %s 0; %s",
              ends[i].kind, ends[i].story);
    }
}

TEST(refused_without_a_cause) {
    blame(0, "was refused", KILLED "refused NO_MEMORY");
    /* No answer to a full table; it has room again. */
    blame(0, "was refused (INVALID_ARGUMENT)", FULL "refused INVALID_ARGUMENT");
    blame(0, "was refused", FULL "at 2300; refused NO_MEMORY");
    blame('x', "no fault explains it", FULL "at 2300; x on 0; x poisoned NO_MEMORY");
}

/* -- changed ------------------------------------------------------------------------------------
 */

TEST(changed) {
    change('k', "another answer", KILLED "k has changed 1");
    change('k', "ended twice", KILLED "k poisoned WORKER_SIGNAL KILL 1000 12");
    /* The event is READY, the content is not; two stories. */
    change('i', "cannot be read", KILLED "i read WORKER_SIGNAL");
    change('k', "different verdicts", KILLED "k result; k read DEADLINE");
    /* No shortage, with a full table; a shortage, with no full table. */
    change('x', "cannot be read", FULL "x on 1; at 210; x ready 1001 205; x read DEADLINE");
    change('i', "cannot be read", KILLED "i read NO_MEMORY");
}
