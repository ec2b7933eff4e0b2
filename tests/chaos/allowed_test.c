/* The checker: what may happen, a history for each kind of fault. */
#include "chaos/check/oracle.h"
#include "harness.h"
#include "judge.h"

#include <signal.h>

/* -- the oracle ---------------------------------------------------------------------------------
 */

/* By hand: (5 * 3 + 1) ^ 0 = 16, (6 * 3 + 1) ^ rotl(0x9e3779b9, 4) = 19 ^ 0xe3779b99. */
static void the_oracle_by_hand(void) {
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

static void a_killed_worker(void) {
    struct scene s;
    killed_by_signal(&s);
    valid(&s.tale);
    BHT_EQ(result.operations, 7);
    BHT_EQ(result.ready, 5);
    BHT_EQ(result.poisoned, 2);
    BHT_EQ(result.results, 5);
    BHT_EQ(result.faults[BHI_FAULT_KILL], 1);
    BHT_EQ(result.recovery_count, 1);
    BHT_EQ(result.recovery_max_ns, (119 - 15) * TALE_MS);
    BHT_EQ(result.recovery_p50_ns, result.recovery_max_ns);
    BHT_EQ(result.recovery[10], 1); /* 102.4 ms and up */
    BHT_EQ(result.descriptors_last, 20);
    BHT_EQ(result.rss_last, 50 << 20);
}

static void however_a_worker_dies(void) {
    static const struct {
        enum bhi_fault_kind kind;
        bh_status status;
        int signal;
    } deaths[] = {
        {BHI_FAULT_KILL, BH_OUT_OF_HOST_MEMORY, SIGKILL},
        {BHI_FAULT_SEGV, BH_WORKER_SIGNAL, SIGSEGV},
        {BHI_FAULT_SEGV, BH_COMPILE_FAILED, SIGSEGV},
        {BHI_FAULT_GARBAGE, BH_PROTOCOL, SIGKILL},
        {BHI_FAULT_CLOSE, BH_PROTOCOL, SIGKILL},
        {BHI_FAULT_CLOSE, BH_WORKER_EXIT, 0},
        {BHI_FAULT_ZYGOTE, BH_ZYGOTE_LOST, 0},
        {BHI_FAULT_DEVICE, BH_WORKER_SIGNAL, SIGKILL},
    };
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        struct scene s;
        killed(&s, deaths[i].kind, deaths[i].status, deaths[i].signal);
        valid(&s.tale);
        BHT_EQ(result.faults[deaths[i].kind], 1);
    }
}

/* It could not see them all: one was just starting. */
static void a_zygotes_other_worker(void) {
    struct tale t;
    tale_begin(&t);
    uint64_t op = tale_op(&t, 1, 0, 0);
    t.now_ms = 15;
    tale_fault(&t, BHI_FAULT_ZYGOTE, 0, 1000);
    t.now_ms = 18;
    tale_poisoned(&t, op, BH_ZYGOTE_LOST, 0, 1012, 16);
    valid(&t);
    BHT_EQ(result.recovery_count, 2); /* of both streams */
}

static void neighbours_of_a_killed_worker(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t first = tale_op(&t, 0, 0, 0), second = tale_op(&t, 0, first, 0);
    uint64_t third = tale_op(&t, 0, 0, 0), after = tale_op(&t, 1, third, 0);
    uint64_t later = tale_op(&t, 1, after, 0), again = tale_op(&t, 0, 0, 0);
    t.now_ms = 15;
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    tale_poisoned(&t, first, BH_WORKER_SIGNAL, SIGKILL, 1000, 12);
    tale_inherits(&t, second, first);
    tale_lost_with(&t, third, first, 12);
    /* The origin is the culprit, and what was lost with it is no step. */
    tale_inherits(&t, after, third);
    BHT_EQ(tale_last(&t)->end.hops, 1);
    BHT_EQ(tale_last(&t)->end.origin, tale_event(first));
    tale_inherits(&t, later, after);
    /* It had not begun: the next worker ran it. */
    t.now_ms = 20;
    tale_ready(&t, again, 1010, 16);
    valid(&t);
}

/* Recorded before the death, read after it (E11). */
static void ready_after_its_workers_death(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t op = tale_op(&t, 0, 0, 0);
    t.now_ms = 14;
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    t.now_ms = 16;
    tale_ready(&t, op, 1000, 12);
    valid(&t);
}

/* The END may be noted before the FAULT that explains it. */
static void a_fault_noted_late(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t op = tale_op(&t, 0, 0, 0);
    t.now_ms = 15;
    tale_poisoned(&t, op, BH_WORKER_SIGNAL, SIGKILL, 1000, 12);
    t.now_ms = 14;
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    t.now_ms = 15;
    valid(&t);
}

static void a_stopped_worker(void) {
    struct tale t;
    stopped(&t, BHI_FAULT_STOP, 0, 2003);
    valid(&t);
    stopped(&t, BHI_FAULT_SLOW, 1900, 2003); /* for nearly all of its time */
    valid(&t);
    stopped(&t, BHI_FAULT_SLOW, 100, 2003); /* for a little of it: what else was it? */
    found(&t, BHI_ANOMALY_UNKNOWN, 3, "except that the machine stood still");
    stopped(&t, BHI_FAULT_STOP, 0, 1991); /* clocks that differ */
    valid(&t);
    stopped(&t, BHI_FAULT_STOP, 0, 1989); /* there was time left */
    found(&t, BHI_ANOMALY_COLLATERAL, 3, "no fault explains it");
}

/* One has ended when its worker is killed for it all the same, and the one behind goes with it. */
static void lost_with_a_stopped_worker(uint64_t stopped_ms, struct tale *t, uint64_t *out_behind) {
    tale_begin(t);
    t->now_ms = 10;
    const uint64_t first = tale_op(t, 0, 0, 0);
    *out_behind = tale_op(t, 0, 0, 0);
    t->now_ms = 15;
    const uint64_t fault = tale_fault(t, BHI_FAULT_SLOW, 0, 1000);
    tale_last(t)->fault.lasts_ns = stopped_ms * TALE_MS;
    t->now_ms = 15 + stopped_ms;
    tale_healed(t, fault);
    t->now_ms = 2012;
    tale_ready(t, first, 1000, 12);
    tale_poisoned(t, *out_behind, BH_WORKER_LOST, SIGKILL, 1000, 13);
}

static void lost_behind_a_stop(void) {
    struct tale t;
    uint64_t behind;
    lost_with_a_stopped_worker(500, &t, &behind);
    valid(&t);
    lost_with_a_stopped_worker(499, &t, &behind);
    found(&t, BHI_ANOMALY_UNKNOWN, behind, "except that the machine stood still");
}

static void compiled_on_a_slow_machine(void) {
    static const struct {
        uint64_t stalled_ms;
        int signal;
        enum bhi_anomaly anomaly;
        const char *words;
    } cases[] = {{1250, SIGKILL, BHI_ANOMALY_UNKNOWN, "except that the machine stood still"},
                 {1249, SIGKILL, BHI_ANOMALY_COLLATERAL, "no fault explains it"},
                 {1250, SIGSEGV, BHI_ANOMALY_COLLATERAL, "no fault explains it"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene s;
        const uint64_t op = compiled_for_5_s(&s);
        tale_stall(&s.tale, cases[i].stalled_ms);
        tale_poisoned(&s.tale, op, BH_COMPILE_FAILED, cases[i].signal, 1011, 0);
        found(&s.tale, cases[i].anomaly, op, cases[i].words);
    }
}

/* Stopped while it had nothing to do; the next one finds out. */
static void stopped_while_idle(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    tale_fault(&t, BHI_FAULT_STOP, 0, 1000);
    t.now_ms = 1000;
    uint64_t op = tale_op(&t, 0, 0, 0);
    t.now_ms = 3002;
    tale_poisoned(&t, op, BH_DEADLINE, SIGKILL, 1000, 1001);
    valid(&t);
    /* A spare one: it comes to a stream when it is needed, and that may take longer than any
     * patience. */
    static const bh_status ways[] = {BH_DEADLINE, BH_COMPILE_FAILED};
    for (int i = 0; i < 2; i++) {
        tale_begin(&t);
        t.now_ms = 10;
        tale_fault(&t, BHI_FAULT_STOP, 0, 1050);
        tale_last(&t)->fault.outside = true;
        tale_works(&t, 1000);
        t.now_ms = 100000;
        op = tale_op(&t, 0, 0, 0);
        t.now_ms = 102002;
        tale_poisoned(&t, op, ways[i], SIGKILL, 1050, 100001);
        valid(&t);
    }
}

static void a_hang(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t before = tale_op(&t, 0, 0, 0);
    uint64_t bait = tale_bait(&t, BHI_FAULT_HANG, 0);
    uint64_t behind = tale_op(&t, 0, 0, 0), needs = tale_op(&t, 1, 0, 0);
    tale_last(&t)->submit.wait = bait;
    t.now_ms = 15;
    tale_ready(&t, before, 1000, 12);
    t.now_ms = 120;
    tale_poisoned(&t, bait, BH_DEADLINE, SIGKILL, 1000, 15);
    tale_lost_with(&t, behind, bait, 15);
    tale_inherits(&t, needs, bait);
    valid(&t);
}

/* The worker of a hang is killed before its deadline: nobody can tell the kernel to end, and on an
 * accelerator the other stream stands still with it. */
static uint64_t orphan(struct tale *t, bool accelerator, bool hit) {
    tale_begin(t);
    t->history.header.accelerator = accelerator;
    t->now_ms = 10;
    uint64_t bait = tale_bait(t, BHI_FAULT_HANG, 0), neighbour = tale_op(t, 1, 0, 0);
    t->now_ms = 50;
    if (hit) {
        tale_fault(t, BHI_FAULT_KILL, 0, 1000);
    }
    t->now_ms = 51;
    tale_poisoned(t, bait, BH_WORKER_SIGNAL, SIGKILL, 1000, 15);
    t->now_ms = 2050;
    tale_poisoned(t, neighbour, BH_DEADLINE, 0, 1001, 20);
    return neighbour;
}

static void a_hang_that_holds_the_device(void) {
    struct tale t;
    (void)orphan(&t, true, true);
    valid(&t);
    uint64_t neighbour = orphan(&t, false, true);
    found(&t, BHI_ANOMALY_COLLATERAL, neighbour, "and no fault explains it");
    neighbour = orphan(&t, true, false);
    found(&t, BHI_ANOMALY_COLLATERAL, neighbour, "and no fault explains it");
}

/* One without the guard cannot be stopped: it holds the device although nothing else hit its
 * worker. */
static void a_kernel_without_the_guard(void) {
    for (int accelerator = 0; accelerator < 2; accelerator++) {
        struct tale t;
        tale_begin(&t);
        t.history.header.accelerator = accelerator;
        t.now_ms = 10;
        const uint64_t bait = tale_bait(&t, BHI_FAULT_UNGUARDED, 0);
        const uint64_t behind = tale_op(&t, 0, 0, 0), neighbour = tale_op(&t, 1, 0, 0);
        t.now_ms = 120;
        tale_poisoned(&t, bait, BH_DEADLINE, SIGKILL, 1000, 15);
        tale_lost_with(&t, behind, bait, 15);
        t.now_ms = 2050;
        tale_poisoned(&t, neighbour, BH_DEADLINE, 0, 1001, 20);
        if (accelerator) {
            valid(&t);
        } else {
            found(&t, BHI_ANOMALY_COLLATERAL, neighbour, "and no fault explains it");
        }
    }
}

/* |baits| kernels without the guard, 5 s apart; then a stream of theirs has no worker, |late_ms|
 * after the last one. */
static uint64_t charged(struct tale *t, bool accelerator, int baits, uint64_t late_ms) {
    tale_begin(t);
    t->history.header.accelerator = accelerator;
    for (int i = 0; i < baits; i++) {
        const uint64_t bait = tale_bait(t, BHI_FAULT_UNGUARDED, 0);
        t->now_ms += 4000;
        tale_poisoned(t, bait, BH_DEADLINE, SIGKILL, 1010 + 10 * i, t->now_ms - 3900);
        t->now_ms += 1000;
        tale_works(t, 1020 + 10 * i);
    }
    t->now_ms += late_ms;
    const uint64_t op = tale_op(t, 1, 0, 0);
    tale_poisoned(t, op, BH_UNAVAILABLE, 0, 0, 0);
    return op;
}

static void a_charged_tenant(void) {
    struct tale t;
    (void)charged(&t, true, 5, 0);
    valid(&t);
    (void)charged(&t, true, 8, 68000);
    valid(&t);
    uint64_t op = charged(&t, true, 4, 0); /* its budget is not spent */
    found(&t, BHI_ANOMALY_COLLATERAL, op, "and no fault explains it");
    op = charged(&t, true, 8, 70000); /* its time is over */
    found(&t, BHI_ANOMALY_COLLATERAL, op, "and no fault explains it");
    op = charged(&t, false, 8, 0); /* nobody had to wait for these */
    found(&t, BHI_ANOMALY_COLLATERAL, op, "and no fault explains it");
}

/* An output in device memory is being copied when the worker that does it dies. What ran beside the
 * copy is lost, and its own origin; what it copied is not. */
static void lost_with_a_copy(void) {
    for (int hit = 0; hit < 2; hit++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t before = tale_op(&t, 0, 0, 0);
        tale_last(&t)->submit.device = true;
        const uint64_t beside = tale_op(&t, 0, 0, 0), needs = tale_op(&t, 1, beside, 0);
        t.now_ms = 15;
        tale_ready(&t, before, 1000, 12);
        tale_fault(&t, BHI_FAULT_DEVICE, !hit, hit ? 1000 : 1001);
        t.now_ms = 17;
        tale_poisoned(&t, beside, BH_WORKER_LOST, SIGKILL, 1000, 13);
        tale_inherits(&t, needs, beside);
        if (hit) {
            valid(&t);
        } else {
            found(&t, BHI_ANOMALY_COLLATERAL, beside, "and no fault explains it");
        }
        /* On a stream that has no such memory nothing copies. */
        tale_begin(&t);
        t.now_ms = 15;
        const uint64_t alone = tale_op(&t, 0, 0, 0);
        tale_fault(&t, BHI_FAULT_DEVICE, 0, 1000);
        t.now_ms = 17;
        tale_poisoned(&t, alone, BH_WORKER_LOST, SIGKILL, 1000, 16);
        found(&t, BHI_ANOMALY_COLLATERAL, alone, "and no fault explains it");
        /* Nobody can look up the copy itself. */
        tale_begin(&t);
        t.now_ms = 15;
        const uint64_t hidden = tale_op(&t, 0, 0, 0);
        tale_last(&t)->submit.device = true;
        tale_fault(&t, BHI_FAULT_DEVICE, 0, 1000);
        t.now_ms = 17;
        tale_poisoned(&t, hidden, BH_WORKER_LOST, SIGKILL, 1000, 16);
        tale_last(&t)->end.origin = 9999;
        found(&t, BHI_ANOMALY_COLLATERAL, hidden, "its origin is not an operation of the run");
    }
}

/* What is in device memory is copied to another device, and no worker comes to an end with that in
 * time: the content is lost, and the origin is who wrote it. A death is no such reason: the copy is
 * made again. */
static void lost_on_the_way(void) {
    for (int how = 0; how < 3; how++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t before = tale_op(&t, 0, 0, 0);
        tale_last(&t)->submit.device = true;
        t.now_ms = 15;
        tale_ready(&t, before, 1000, 12);
        const uint64_t needs = tale_op(&t, 1, before, 0);
        tale_fault(&t, how == 0 ? BHI_FAULT_STOP : BHI_FAULT_KILL, 0, how == 2 ? 1001 : 1000);
        t.now_ms = 4100;
        tale_poisoned(&t, needs, how == 1 ? BH_WORKER_SIGNAL : BH_DEADLINE, SIGKILL, 1000, 0);
        tale_last(&t)->end.origin = tale_event(before);
        tale_last(&t)->end.hops = 1;
        if (how == 0) {
            valid(&t);
        } else {
            found(&t, BHI_ANOMALY_COLLATERAL, needs,
                  how == 1 ? "no dependency of it has the same verdict with one hop less"
                           : "and no fault explains it");
        }
    }
}

/* The bait has ended as it was told to, and its worker is killed for it all the same. */
static void lost_without_a_culprit(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t bait = tale_bait(&t, BHI_FAULT_HANG, 0), behind = tale_op(&t, 0, 0, 0);
    t.now_ms = 120;
    tale_poisoned(&t, bait, BH_DEADLINE, 0, 1000, 12);
    t.now_ms = 121;
    tale_poisoned(&t, behind, BH_WORKER_LOST, SIGKILL, 1000, 120);
    valid(&t);
}

static void out_of_memory(void) {
    static const bh_status ways[] = {BH_OUT_OF_HOST_MEMORY, BH_OUT_OF_DEVICE_MEMORY,
                                     BH_WORKER_SIGNAL, BH_COMPILE_FAILED};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tale t;
        tale_begin(&t);
        t.now_ms = 10;
        uint64_t bait = tale_bait(&t, BHI_FAULT_OOM, 0), beside = tale_op(&t, 0, 0, 0);
        t.now_ms = 30;
        tale_poisoned(&t, bait, ways[i], 0, 1000, 15);
        /* Which allocation is refused is chance. */
        tale_poisoned(&t, beside, BH_OUT_OF_HOST_MEMORY, SIGABRT, 1000, 15);
        valid(&t);
    }
    struct tale t;
    tale_begin(&t); /* or it gets by: there was enough */
    uint64_t bait = tale_bait(&t, BHI_FAULT_OOM, 0);
    t.now_ms = 20;
    tale_ready(&t, bait, 1000, 15);
    valid(&t);
}

/* By its deadline, by its worker's, by its driver's; a bait that it shares a worker with counts as
 * it does for others. */
static void however_a_bait_ends(void) {
    static const struct {
        enum bhi_fault_kind kind;
        bool accelerator;
        bh_status status;
        int signal;
        uint64_t took_ms; /* of 200 ms since it was submitted */
    } ends[] = {
        {BHI_FAULT_HANG, false, BH_DEADLINE, 0, 100},
        {BHI_FAULT_HANG, false, BH_DEADLINE, 0, 91},       /* clocks that differ */
        {BHI_FAULT_HANG, false, BH_DEADLINE, SIGKILL, 91}, /* it would not end */
        {BHI_FAULT_HANG, true, BH_DEVICE_LOST, 0, 200},
        {BHI_FAULT_HANG, true, BH_WORKER_EXIT, 0, 200},
        {BHI_FAULT_HANG, true, BH_WORKER_SIGNAL, SIGABRT, 200},
        {BHI_FAULT_HANG, true, BH_WORKER_LOST, SIGKILL, 200},
        {BHI_FAULT_OOM, false, BH_OUT_OF_HOST_MEMORY, SIGKILL, 0},
        {BHI_FAULT_OOM, false, BH_NO_MEMORY, 0, 100},
        {BHI_FAULT_OOM, false, BH_WORKER_SIGNAL, SIGKILL, 100},
        {BHI_FAULT_OOM, false, BH_WORKER_LOST, SIGKILL, 100},
        {BHI_FAULT_OOM, false, BH_DEADLINE, SIGKILL, 100},
    };
    struct tale t;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        tale_begin(&t);
        t.history.header.accelerator = ends[i].accelerator;
        t.now_ms = 10;
        const uint64_t bait = tale_bait(&t, ends[i].kind, 0);
        t.now_ms = 210;
        tale_poisoned(&t, bait, ends[i].status, ends[i].signal, 1000,
                      ends[i].took_ms ? t.now_ms - ends[i].took_ms : 0);
        valid(&t);
    }
    for (int i = 0; i < 2; i++) { /* behind one that was stopped */
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t bait = tale_bait(&t, i < 1 ? BHI_FAULT_HANG : BHI_FAULT_OOM, 0);
        const uint64_t fault = tale_fault(&t, BHI_FAULT_SLOW, 0, 1000);
        t.now_ms = 108;
        tale_healed(&t, fault);
        t.now_ms = 120;
        tale_poisoned(&t, bait, BH_WORKER_LOST, SIGKILL, 1000, 110);
        valid(&t);
    }
    for (int i = 0; i < 2; i++) { /* hit as any other; with another bait on its worker */
        tale_begin(&t);
        t.now_ms = 10;
        const uint64_t other = i ? tale_bait(&t, BHI_FAULT_HANG, 0) : 0;
        const uint64_t bait = tale_bait(&t, BHI_FAULT_HANG, 0);
        t.now_ms = 120;
        if (other) {
            tale_poisoned(&t, other, BH_DEADLINE, 0, 1000, 12);
        } else {
            tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
        }
        tale_poisoned(&t, bait, other ? BH_WORKER_LOST : BH_WORKER_SIGNAL, SIGKILL, 1000, 119);
        valid(&t);
    }
}

static void a_bait_may_be_poisoned_too(void) {
    struct scene s;
    killed_by_signal(&s);
    uint64_t bait = tale_bait(&s.tale, BHI_FAULT_HANG, 1);
    tale_submit(&s.tale, bait)->submit.wait = s.killed;
    tale_inherits(&s.tale, bait, s.killed);
    valid(&s.tale);
    BHT_EQ(result.recovery_count, 1); /* it never came to a worker */
}

static void a_full_table(void) {
    static const bh_status shortages[] = {BH_NO_MEMORY, BH_SYSTEM, BH_UNAVAILABLE};
    for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++) {
        struct tale t;
        full(&t, 200);
        uint64_t op = tale_op(&t, 1, 0, 0);
        tale_refused(&t, shortages[i]);
        t.now_ms = 210;
        tale_poisoned(&t, op, shortages[i], 0, 0, 0);
        tale_refused(&t, shortages[i]);
        valid(&t);
        BHT_EQ(result.refused, 2);
    }
}

static void no_worker_to_be_had(void) {
    struct scene s;
    killed(&s, BHI_FAULT_ZYGOTE, BH_ZYGOTE_LOST, 0);
    uint64_t op = tale_op(&s.tale, 0, 0, 0);
    tale_poisoned(&s.tale, op, BH_UNAVAILABLE, 0, 0, 0);
    valid(&s.tale);
    struct tale t;
    full(&t, 200);
    tale_works(&t, 1000);
    t.now_ms = 5100; /* it could not start one then, and somebody waited for it until now */
    op = tale_op(&t, 0, 0, 0);
    tale_poisoned(&t, op, BH_UNAVAILABLE, 0, 0, 0);
    valid(&t);
}

/* The hang's worker has begun what needs it and what comes behind; it ends the hang, runs what is
 * poisoned by then, and is killed. What was behind is lost with what ran. */
static void lost_with_what_was_poisoned_as_it_ran(void) {
    struct tale t;
    tale_begin(&t);
    t.now_ms = 10;
    uint64_t hang = tale_bait(&t, BHI_FAULT_HANG, 0), ran = tale_op(&t, 0, 0, 0);
    tale_last(&t)->submit.wait = hang;
    uint64_t behind = tale_op(&t, 0, 0, 0), needs = tale_op(&t, 1, behind, 0);
    t.now_ms = 120;
    tale_poisoned(&t, hang, BH_DEADLINE, 0, 1000, 15);
    tale_fault(&t, BHI_FAULT_KILL, 0, 1000);
    tale_inherits(&t, ran, hang);
    tale_last(&t)->end.started_ns = 119 * TALE_MS;
    tale_last(&t)->end.executed = BH_EXECUTED_UNKNOWN;
    tale_lost_with(&t, behind, ran, 119);
    tale_inherits(&t, needs, behind);
    valid(&t);
}

static void memory_is_used_again(void) {
    struct scene s;
    killed_by_signal(&s);
    uint64_t op = tale_op(&s.tale, 1, 0, 0); /* over what was poisoned: that does not pass on */
    tale_last(&s.tale)->submit.reuses = s.killed;
    s.tale.now_ms = 20;
    tale_ready(&s.tale, op, 1001, 18);
    valid(&s.tale);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(the_oracle_by_hand),
        BHT_TEST(a_killed_worker),
        BHT_TEST(however_a_worker_dies),
        BHT_TEST(a_zygotes_other_worker),
        BHT_TEST(neighbours_of_a_killed_worker),
        BHT_TEST(ready_after_its_workers_death),
        BHT_TEST(a_fault_noted_late),
        BHT_TEST(a_stopped_worker),
        BHT_TEST(lost_behind_a_stop),
        BHT_TEST(compiled_on_a_slow_machine),
        BHT_TEST(stopped_while_idle),
        BHT_TEST(a_hang),
        BHT_TEST(a_hang_that_holds_the_device),
        BHT_TEST(a_kernel_without_the_guard),
        BHT_TEST(a_charged_tenant),
        BHT_TEST(lost_with_a_copy),
        BHT_TEST(lost_on_the_way),
        BHT_TEST(lost_without_a_culprit),
        BHT_TEST(out_of_memory),
        BHT_TEST(however_a_bait_ends),
        BHT_TEST(a_bait_may_be_poisoned_too),
        BHT_TEST(a_full_table),
        BHT_TEST(no_worker_to_be_had),
        BHT_TEST(lost_with_what_was_poisoned_as_it_ran),
        BHT_TEST(memory_is_used_again),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
