/* The checker: the course of a run as a whole: recovery, leaks, and when nothing can be said. */
#include "chaos/check/power.h"
#include "harness.h"
#include "judge.h"

#include <string.h>

/* -- recovery -----------------------------------------------------------------------------------
 */

static void late_recovery(void) {
    struct scene s;
    killed_by_signal(&s);
    s.tale.now_ms = 5100; /* what judge() adds comes 100 ms later */
    found(&s.tale, BHI_ANOMALY_RECOVERY, 0,
          "stream 0 had no READY result within 5000 ms of fault 1");
    killed_by_signal(&s);
    s.tale.now_ms = 4800;
    valid(&s.tale);
    killed_by_signal(&s);
    s.tale.now_ms = 5100;
    tale_stall(&s.tale, 1000);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "the machine stood still");

    /* What had begun before the fault is no recovery. */
    killed_by_signal(&s);
    uint64_t op = tale_op(&s.tale, 0, 0, 0);
    tale_ready(&s.tale, op, 1000, 14);
    tale_ended(&s.tale, op)->end.submitted_ns = 14 * TALE_MS;
    s.tale.now_ms = 5100;
    found(&s.tale, BHI_ANOMALY_RECOVERY, 0, "stream 0");

    /* Nor what the worker still finished. */
    killed_by_signal(&s);
    op = tale_op(&s.tale, 0, 0, 0);
    tale_ready(&s.tale, op, 1000, 17);
    s.tale.now_ms = 5100;
    found(&s.tale, BHI_ANOMALY_RECOVERY, 0, "stream 0");
}

/* Hit again before it was up: the bound runs from the last blow. */
static void hit_again(void) {
    struct scene s;
    killed_by_signal(&s);
    for (int i = 0; i < 3; i++) {
        s.tale.now_ms += 4000;
        tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1010 + i);
    }
    s.tale.now_ms += 4000;
    valid(&s.tale);
    BHT_EQ(result.recovery_count, 4);
    BHT_EQ(result.recovery_max_ns, 16104 * TALE_MS);
    /* A bound beyond the end of time. */
    killed_by_signal(&s);
    s.tale.history.header.recovery_ns = UINT64_MAX;
    s.tale.now_ms += 4000;
    tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1010);
    tale_sample(&s.tale, 20, 50);
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_UNKNOWN], 1);
    BHT_STR_HAS(all_findings(), "fault 2");
    tale_end(&s.tale);
}

static void no_recovery(void) {
    struct tale t;
    struct scene s;
    killed_by_signal(&s);
    /* Until the end nothing is READY there. */
    t = s.tale;
    for (int i = 0; i < 10; i++) {
        t.now_ms += 1000;
        (void)tale_op(&t, 0, 0, 0);
        tale_inherits(&t, t.ops, s.killed);
        tale_submit(&t, t.ops)->submit.wait = s.killed;
    }
    tale_sample(&t, 20, 50);
    BHT_TRUE(bhi_chaos_check(&t.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_RECOVERY], 1);
    BHT_STR_HAS(all_findings(), "none at all");
    tale_end(&t);
    /* It was not given the time. */
    killed_by_signal(&s);
    tale_sample(&s.tale, 20, 50);
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "the run ended before it was due");
    s.tale.now_ms += 1000;
    uint64_t op = tale_op(&s.tale, 0, 0, 0);
    tale_last(&s.tale)->submit.wait = s.killed;
    tale_inherits(&s.tale, op, s.killed);
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "the run ended before it was due");
    tale_end(&s.tale);
}

/* From outside nobody knows whose worker it is: the pid tells. */
static void hit_from_outside(void) {
    for (int other = 0; other < 2; other++) {
        struct scene s;
        killed_by_signal(&s);
        s.tale.now_ms = 20;
        tale_fault(&s.tale, BHI_FAULT_KILL, 0,
                   other ? 1001 : 1099); /* the other stream's, a spare */
        tale_last(&s.tale)->fault.outside = true;
        for (int i = 0; i < 12; i++) { /* stream 0 goes on */
            s.tale.now_ms += 500;
            uint64_t op = tale_op(&s.tale, 0, 0, 0);
            tale_ready(&s.tale, op, 1100, s.tale.now_ms);
        }
        if (other) {
            found(&s.tale, BHI_ANOMALY_RECOVERY, 0, "stream 1 had no READY result");
        } else {
            valid(&s.tale);
        }
    }
}

/* -- leaks --------------------------------------------------------------------------------------
 */

static void samples(struct tale *t, double descriptors, double mib) {
    struct scene s;
    killed_by_signal(&s);
    *t = s.tale;
    for (int i = 0; i < 40; i++) {
        t->now_ms += 50;
        tale_sample(t, (uint32_t)(20 + (i % 3) + descriptors * i),
                    (uint64_t)(50 + (i % 4) + mib * i));
    }
    tale_works(t, 1100);
    BHT_TRUE(bhi_chaos_check(&t->history, &result));
}

static void leaks(void) {
    struct tale t;
    samples(&t, 0, 0);
    BHT_EQ(result.verdict, BHI_CHAOS_VALID);
    tale_end(&t);
    samples(&t, 1.5, 0);
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_STR_HAS(all_findings(), "descriptors at first");
    tale_end(&t);
    samples(&t, 0, 100);
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_LEAK], 1);
    BHT_STR_HAS(all_findings(), "memory grew");
    /* One odd sample, and what is taken while something runs, say nothing. */
    for (size_t i = 0, n = 0; i < t.history.count; i++) {
        struct bhi_record *r = &t.history.records[i];
        if (r->kind != BHI_RECORD_SAMPLE) {
            continue;
        }
        r->sample.rss_bytes = (n % 5 ? 50ull : 5000ull) << 20;
        r->sample.idle = n++ % 5 || n % 2;
        r->sample.descriptors = r->sample.idle ? 20 : 500;
    }
    BHT_TRUE(bhi_chaos_check(&t.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_VALID);
    /* Processes and files. */
    for (int what = 0; what < 2; what++) {
        uint32_t n = 0;
        for (size_t i = 0; i < t.history.count; i++) {
            struct bhi_record *r = &t.history.records[i];
            if (r->kind != BHI_RECORD_SAMPLE) {
                continue;
            }
            r->sample.processes = what ? 4 : 4 + n;
            r->sample.files = what ? 3 + n : 3;
            n++;
        }
        BHT_TRUE(bhi_chaos_check(&t.history, &result));
        BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_LEAK], 1);
        BHT_STR_HAS(all_findings(), what ? "files at first" : "processes at first");
    }
    tale_end(&t);
}

/* Samples of a run without a leak, which |change| makes others of: |i| of 40. */
static void sampled(void (*change)(struct bhi_record *record, int i), bool valid_still) {
    struct tale t;
    samples(&t, 0, 0);
    for (size_t i = 0, n = 0; i < t.history.count; i++) {
        if (t.history.records[i].kind == BHI_RECORD_SAMPLE && n++) {
            change(&t.history.records[i], (int)n - 2);
        }
    }
    BHT_TRUE(bhi_chaos_check(&t.history, &result));
    BHT_EQ(result.verdict, valid_still ? BHI_CHAOS_VALID : BHI_CHAOS_INVALID);
    tale_end(&t);
}

static void a_cache_that_fills(struct bhi_record *record, int i) {
    record->sample.descriptors = i < 9 ? 20 : 60;
}

static void a_step(struct bhi_record *record, int i) {
    record->sample.rss_bytes = (i < 20 ? 50ull : 100ull) << 20;
}

static void busy_at_last(struct bhi_record *record, int i) {
    record->sample.idle = i < 20;
    record->sample.descriptors = i < 20 ? 20 : 500;
}

/* A leak is not hidden by one that had more. */
static void a_leak_and_an_odd_one(struct bhi_record *record, int i) {
    record->sample.rss_bytes = (i == 12 ? 90000ull : 50ull + 100 * (uint64_t)i) << 20;
}

static void a_leak_of_descriptors_and_an_odd_one(struct bhi_record *record, int i) {
    record->sample.descriptors = i == 12 ? 900 : 20 + 2 * (uint32_t)i;
}

/* Looks in quick succession, at what comes and goes. */
static void a_little_at_once(struct bhi_record *record, int i) {
    record->at_ns = (i < 16 ? 100ull : i < 39 ? 101ull + (uint64_t)i : 2000ull) * TALE_MS;
    record->sample.rss_bytes = (i < 16 ? 50ull : i < 39 ? 38ull + (uint64_t)i / 2 : 50ull) << 20;
}

static void no_leaks(void) {
    sampled(a_little_at_once, true);
    sampled(a_cache_that_fills, true);
    sampled(a_step, true);
    sampled(busy_at_last, true);
    sampled(a_leak_and_an_odd_one, false);
    sampled(a_leak_of_descriptors_and_an_odd_one, false);
}

/* -- unknown ------------------------------------------------------------------------------------
 */

static void nothing_can_be_said(void) {
    struct scene s;
    killed_by_signal(&s);
    s.tale.history.complete = false;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "the run was cut short");
    BHT_TRUE(result.cut_short);
    killed_by_signal(&s);
    s.tale.history.overflow = true;
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    tale_last(&s.tale)->result.digest[0] ^= 1; /* not even then: what was noted is no run */
    BHT_TRUE(bhi_chaos_check(&s.tale.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    tale_end(&s.tale);
    /* What explains it may not have been noted. */
    killed_by_signal(&s);
    s.tale.history.complete = false;
    for (size_t i = 0; i < s.tale.history.count; i++) {
        if (s.tale.history.records[i].kind == BHI_RECORD_FAULT) {
            s.tale.history.records[i].fault.pids[0] = 7;
        }
    }
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "the run was cut short");
    /* With what is wrong whatever is missing. */
    killed_by_signal(&s);
    s.tale.history.complete = false;
    tale_last(&s.tale)->result.digest[0] ^= 1;
    judge(&s.tale);
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    /* Nor was it held against anything where it could not be read. */
    struct tale t;
    full(&t, 200);
    uint64_t unread = tale_op(&t, 1, 0, 0);
    t.now_ms = 210;
    tale_ready(&t, unread, 1001, 205);
    tale_last(&t)->result.status = BH_NO_MEMORY;
    found(&t, BHI_ANOMALY_UNKNOWN, unread, "was not read back");
    tale_begin(&t);
    found(&t, BHI_ANOMALY_UNKNOWN, 0, "no fault was injected");
    BHT_TRUE(!result.cut_short);
    BHT_EQ(result.findings[0].record, BHI_FINDING_NO_RECORD);
    tale_begin(&t);
    tale_fault(&t, BHI_FAULT_KILL, 0, 0);
    tale_last(&t)->fault.missed = true;
    found(&t, BHI_ANOMALY_UNKNOWN, 0, "no fault was injected");
    BHT_EQ(result.missed, 1);
    bhi_history_init(&t.history);
    t.history.complete = true;
    BHT_TRUE(bhi_chaos_check(&t.history, &result));
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "no operation was READY");
    BHT_STR_HAS(all_findings(), "was sampled at rest less than twice");
}

/* -- how long recovery takes --------------------------------------------------------------------
 */

/* |count| faults, the n-th recovered from in n seconds or so: p50 and p99 by nearest rank. */
static void recovered(unsigned count, unsigned half, unsigned most_of_them) {
    struct tale t;
    tale_begin(&t);
    for (unsigned i = 1; i <= count; i++) {
        tale_fault(&t, BHI_FAULT_KILL, 0, (int32_t)(1000 + i - 1));
        t.now_ms += i;
        const uint64_t op = tale_op(&t, 0, 0, 0);
        tale_ready(&t, op, (int32_t)(1000 + i), t.now_ms);
        t.now_ms += 10;
    }
    BHT_TRUE(bhi_chaos_check(&t.history, &result));
    BHT_EQ(result.recovery_count, count);
    BHT_EQ(result.recovery_p50_ns / TALE_MS, half);
    BHT_EQ(result.recovery_p99_ns / TALE_MS, most_of_them);
    BHT_EQ(result.recovery_max_ns / TALE_MS, count);
    tale_end(&t);
}

static void percentiles(void) {
    recovered(1, 1, 1);
    recovered(2, 1, 2);
    recovered(3, 2, 3);
    recovered(99, 50, 99);
    recovered(100, 50, 99);
    recovered(101, 51, 100);
}

/* A missed fault explains nothing. */
static void a_missed_fault(void) {
    struct scene s;
    killed_by_signal(&s);
    for (size_t i = 0; i < s.tale.history.count; i++) {
        if (s.tale.history.records[i].kind == BHI_RECORD_FAULT) {
            s.tale.history.records[i].fault.missed = true;
        }
    }
    tale_fault(&s.tale, BHI_FAULT_KILL, 1, 1001);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "no fault explains it");
}

static void a_history_that_contradicts_itself(void) {
    struct scene s;
    killed_by_signal(&s); /* READY, and not read back */
    tale_last(&s.tale)->kind = BHI_RECORD_STALL;
    tale_last(&s.tale)->stall.lasted_ns = 0;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, s.innocent, "not read back");
    killed_by_signal(&s);
    tale_submit(&s.tale, s.innocent)->op = s.killed;
    judge(&s.tale);
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "was submitted twice");
    BHT_STR_HAS(all_findings(), "was never submitted");
    killed_by_signal(&s);
    tale_submit(&s.tale, s.innocent)->submit.event = tale_event(1);
    judge(&s.tale);
    BHT_STR_HAS(all_findings(), "have one event");
    killed_by_signal(&s);
    uint64_t op = tale_op(&s.tale, 1, 0, 0);
    tale_last(&s.tale)->submit.wait = op;
    tale_ready(&s.tale, op, 1001, 17);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "was not submitted before it");
    killed_by_signal(&s); /* its memory is another's by then */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_last(&s.tale)->submit.reuses = 1;
    tale_ready(&s.tale, op, 1001, 17);
    op = tale_op(&s.tale, 1, 1, 0);
    tale_ready(&s.tale, op, 1001, 17);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "was to overwrite");
    killed_by_signal(&s);
    op = tale_op(&s.tale, 1, 0, 0);
    tale_last(&s.tale)->submit.bait = true;
    tale_ready(&s.tale, op, 1001, 17);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "the history has no such fault");
    killed_by_signal(&s);
    tale_healed(&s.tale, 7);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "healed, and never injected");
    killed_by_signal(&s);
    tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1000);
    tale_last(&s.tale)->fault.number = 1;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "injected twice");
    killed_by_signal(&s);
    tale_fault(&s.tale, BHI_FAULT_HANG, 0, 0);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "names an operation that was not submitted as a fault");
    killed_by_signal(&s); /* one bait, two faults */
    op = tale_bait(&s.tale, BHI_FAULT_HANG, 1);
    s.tale.now_ms = 117;
    tale_poisoned(&s.tale, op, BH_DEADLINE, 0, 1001, 17);
    tale_fault(&s.tale, BHI_FAULT_OOM, 1, 0);
    tale_last(&s.tale)->op = op;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "two faults name operation");
    killed_by_signal(&s); /* the END before the OP */
    op = tale_op(&s.tale, 1, 0, 0);
    size_t at = s.tale.history.count - 1;
    tale_ready(&s.tale, op, 1001, 17);
    const struct bhi_record submit = s.tale.history.records[at];
    s.tale.history.records[at] = s.tale.history.records[at + 1];
    s.tale.history.records[at + 1] = submit;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "ended before it was submitted");
    killed_by_signal(&s); /* the times alone */
    op = tale_op(&s.tale, 1, 0, 0);
    tale_ready(&s.tale, op, 1001, 17);
    tale_submit(&s.tale, op)->at_ns = tale_ended(&s.tale, op)->at_ns + 1;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "ended before it was submitted");
    killed_by_signal(&s);
    tale_result(&s.tale, s.innocent);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, s.innocent, "was read back twice");
    killed_by_signal(&s); /* more than there is to read */
    op = tale_op(&s.tale, 1, s.innocent, 0);
    tale_ready(&s.tale, op, 1001, 17);
    tale_submit(&s.tale, op)->submit.work.words++;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "reads more of");
}

static void a_fault_that_cannot_be(void) {
    static const enum bhi_fault_kind aimed[] = {BHI_FAULT_KILL,    BHI_FAULT_SEGV,  BHI_FAULT_STOP,
                                                BHI_FAULT_GARBAGE, BHI_FAULT_CLOSE, BHI_FAULT_SLOW};
    struct scene s;
    for (size_t i = 0; i < sizeof aimed / sizeof aimed[0]; i++) {
        killed_by_signal(&s);
        tale_fault(&s.tale, aimed[i], 1, 0);
        tale_works(&s.tale, 1010);
        found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "counts as a hit, but names no worker");
        killed_by_signal(&s);
        tale_fault(&s.tale, aimed[i], 1, 0);
        tale_last(&s.tale)->fault.missed = true;
        valid(&s.tale);
    }
    killed_by_signal(&s); /* a zygote without workers */
    tale_fault(&s.tale, BHI_FAULT_ZYGOTE, 1, 0);
    tale_works(&s.tale, 1010);
    valid(&s.tale);
    killed_by_signal(&s);
    s.tale.history.header.fault_set = 1u << BHI_FAULT_STOP;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "is of kind kill, which line 1 does not list");
    for (uint64_t beyond = 0; beyond < 2; beyond++) { /* the last, or one that there is not */
        killed_by_signal(&s);
        tale_fault(&s.tale, BHI_FAULT_KILL, 1, 0);
        tale_last(&s.tale)->fault.missed = true;
        struct bhi_record *fault = tale_last(&s.tale);
        fault->fault.after_op = beyond ? 1000 : s.tale.ops;
        if (beyond) {
            found(&s.tale, BHI_ANOMALY_UNKNOWN, 0,
                  "came after operation 1000, but the last operation is");
        } else {
            valid(&s.tale);
        }
    }
}

/* One kind of finding does not hide the others. */
static void many_findings(void) {
    struct scene s;
    killed_by_signal(&s);
    for (int i = 0; i < 100; i++) {
        uint64_t op = tale_op(&s.tale, 1, 0, 0);
        tale_poisoned(&s.tale, op, BH_CANCELLED, 0, 0, 0);
        op = tale_op(&s.tale, 1, 0, 0);
        tale_ready(&s.tale, op, 1001, 17);
        tale_last(&s.tale)->result.digest[3] ^= 1;
    }
    judge(&s.tale);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_COLLATERAL], 100);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS], 100);
    BHT_LE(result.finding_count, BHI_FINDINGS);
    BHT_STR_HAS(all_findings(), "false success");
    BHT_STR_HAS(all_findings(), "collateral");
}

/* 299 good ones of 100 are seen with 95 %: 0.99^299 is 0.0495. */
static void too_few(void) {
    struct scene s;
    BHT_EQ(bhi_power_needed(0.01), 299);
    BHT_EQ(bhi_power_needed(0.001), 2995);
    BHT_EQ(bhi_power_needed(1), 1);
    BHT_EQ(bhi_power_needed(0), 0);
    BHT_EQ(bhi_power_rate(0), 1);
    for (uint64_t count = 1; count < 5000; count += 7) {
        /* The smallest that so many find is found by so many, and not by one less. */
        BHT_WITHIN(bhi_power_needed(bhi_power_rate(count)), count, count + 1);
        BHT_WITHIN(bhi_power_needed(bhi_power_rate(count) * 0.999), count, 2 * count + 1);
    }
    /* One in 100 was asked for: one result too few, exactly enough, one more. */
    for (uint64_t count = 298; count <= 300; count++) {
        killed_by_signal(&s);
        s.tale.history.header.find_rate = 0.01;
        judge(&s.tale); /* what the scene has, and what judge() adds */
        const uint64_t has = result.compared;
        killed_by_signal(&s);
        s.tale.history.header.find_rate = 0.01;
        for (uint64_t i = has; i < count; i++) {
            tale_ready(&s.tale, tale_op(&s.tale, 1, 0, 0), 1001, 17);
        }
        judge(&s.tale);
        BHT_EQ(result.compared, count);
        BHT_EQ(result.compared, result.ready);
        const bool enough = count >= 299;
        BHT_EQ(result.verdict, enough ? BHI_CHAOS_VALID : BHI_CHAOS_UNKNOWN);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_UNKNOWN], !enough);
        BHT_EQ(!!strstr(all_findings(), "too few operations"), !enough);
    }
    /* As many results as a rate needs are enough for it, and one less are too few, whichever it is.
     */
    for (int enough = 0; enough < 2; enough++) {
        killed_by_signal(&s);
        judge(&s.tale);
        const uint64_t compared = result.compared, needed = compared + !enough;
        killed_by_signal(&s);
        s.tale.history.header.find_rate = (bhi_power_rate(needed) + bhi_power_rate(needed - 1)) / 2;
        BHT_EQ(bhi_power_needed(s.tale.history.header.find_rate), needed);
        judge(&s.tale);
        BHT_EQ(result.compared, compared);
        BHT_EQ(result.verdict, enough ? BHI_CHAOS_VALID : BHI_CHAOS_UNKNOWN);
    }
}

static void names(void) {
    BHT_STR_EQ(bhi_anomaly_name(BHI_ANOMALY_FALSE_SUCCESS), "false success");
    BHT_STR_EQ(bhi_anomaly_name(BHI_ANOMALIES), "unknown");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_VALID), "valid");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_INVALID), "invalid");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_UNKNOWN), "unknown");
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(late_recovery),
        BHT_TEST(hit_again),
        BHT_TEST(no_recovery),
        BHT_TEST(hit_from_outside),
        BHT_TEST(leaks),
        BHT_TEST(no_leaks),
        BHT_TEST(nothing_can_be_said),
        BHT_TEST(percentiles),
        BHT_TEST(a_missed_fault),
        BHT_TEST(a_history_that_contradicts_itself),
        BHT_TEST(a_fault_that_cannot_be),
        BHT_TEST(many_findings),
        BHT_TEST(too_few),
        BHT_TEST(names),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
