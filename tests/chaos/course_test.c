/* The checker: the course of a run as a whole: recovery, leaks, and when nothing can be said. */
#include "chaos/check/power.h"
#include "cmocka_all.h"
#include "judge.h"

#include <string.h>

/* -- recovery -----------------------------------------------------------------------------------
 */

static void late_recovery(void **state) {
    (void)state;
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
static void hit_again(void **state) {
    (void)state;
    struct scene s;
    killed_by_signal(&s);
    for (int i = 0; i < 3; i++) {
        s.tale.now_ms += 4000;
        tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1010 + i);
    }
    s.tale.now_ms += 4000;
    valid(&s.tale);
    assert_int_equal(result.recovery_count, 4);
    assert_int_equal(result.recovery_max_ns, 16104 * TALE_MS);
    /* A bound beyond the end of time. */
    killed_by_signal(&s);
    s.tale.history.header.recovery_ns = UINT64_MAX;
    s.tale.now_ms += 4000;
    tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1010);
    tale_sample(&s.tale, 20, 50);
    assert_true(bhi_chaos_check(&s.tale.history, &result));
    assert_int_equal(result.by_anomaly[BHI_ANOMALY_UNKNOWN], 1);
    assert_non_null(strstr(all_findings(), "fault 2"));
    tale_end(&s.tale);
}

static void no_recovery(void **state) {
    (void)state;
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
    assert_true(bhi_chaos_check(&t.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_INVALID);
    assert_int_equal(result.by_anomaly[BHI_ANOMALY_RECOVERY], 1);
    assert_non_null(strstr(all_findings(), "none at all"));
    tale_end(&t);
    /* It was not given the time. */
    killed_by_signal(&s);
    tale_sample(&s.tale, 20, 50);
    assert_true(bhi_chaos_check(&s.tale.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    assert_non_null(strstr(all_findings(), "was not given the time"));
    s.tale.now_ms += 1000;
    uint64_t op = tale_op(&s.tale, 0, 0, 0);
    tale_last(&s.tale)->submit.wait = s.killed;
    tale_inherits(&s.tale, op, s.killed);
    assert_true(bhi_chaos_check(&s.tale.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    assert_non_null(strstr(all_findings(), "was not given the time"));
    tale_end(&s.tale);
}

/* From outside nobody knows whose worker it is: the pid tells. */
static void hit_from_outside(void **state) {
    (void)state;
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
        if (other)
            found(&s.tale, BHI_ANOMALY_RECOVERY, 0, "stream 1 had no READY result");
        else
            valid(&s.tale);
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
    assert_true(bhi_chaos_check(&t->history, &result));
}

static void leaks(void **state) {
    (void)state;
    struct tale t;
    samples(&t, 0, 0);
    assert_int_equal(result.verdict, BHI_CHAOS_VALID);
    tale_end(&t);
    samples(&t, 1.5, 0);
    assert_int_equal(result.verdict, BHI_CHAOS_INVALID);
    assert_non_null(strstr(all_findings(), "descriptors at first"));
    tale_end(&t);
    samples(&t, 0, 100);
    assert_int_equal(result.verdict, BHI_CHAOS_INVALID);
    assert_int_equal(result.by_anomaly[BHI_ANOMALY_LEAK], 1);
    assert_non_null(strstr(all_findings(), "memory grew"));
    /* One odd sample, and what is taken while something runs, say nothing. */
    for (size_t i = 0, n = 0; i < t.history.count; i++) {
        struct bhi_record *r = &t.history.records[i];
        if (r->kind != BHI_RECORD_SAMPLE)
            continue;
        r->sample.rss_bytes = (n % 5 ? 50ull : 5000ull) << 20;
        r->sample.idle = n++ % 5 || n % 2;
        r->sample.descriptors = r->sample.idle ? 20 : 500;
    }
    assert_true(bhi_chaos_check(&t.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_VALID);
    /* Processes and files. */
    for (int what = 0; what < 2; what++) {
        uint32_t n = 0;
        for (size_t i = 0; i < t.history.count; i++) {
            struct bhi_record *r = &t.history.records[i];
            if (r->kind != BHI_RECORD_SAMPLE)
                continue;
            r->sample.processes = what ? 4 : 4 + n;
            r->sample.files = what ? 3 + n : 3;
            n++;
        }
        assert_true(bhi_chaos_check(&t.history, &result));
        assert_int_equal(result.verdict, BHI_CHAOS_INVALID);
        assert_int_equal(result.by_anomaly[BHI_ANOMALY_LEAK], 1);
        assert_non_null(strstr(all_findings(), what ? "files at first" : "processes at first"));
    }
    tale_end(&t);
}

/* Samples of a run without a leak, which |change| makes others of: |i| of 40. */
static void sampled(void (*change)(struct bhi_record *record, int i), bool valid_still) {
    struct tale t;
    samples(&t, 0, 0);
    for (size_t i = 0, n = 0; i < t.history.count; i++)
        if (t.history.records[i].kind == BHI_RECORD_SAMPLE && n++)
            change(&t.history.records[i], (int)n - 2);
    assert_true(bhi_chaos_check(&t.history, &result));
    assert_int_equal(result.verdict, valid_still ? BHI_CHAOS_VALID : BHI_CHAOS_INVALID);
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

static void no_leaks(void **state) {
    (void)state;
    sampled(a_little_at_once, true);
    sampled(a_cache_that_fills, true);
    sampled(a_step, true);
    sampled(busy_at_last, true);
    sampled(a_leak_and_an_odd_one, false);
    sampled(a_leak_of_descriptors_and_an_odd_one, false);
}

/* -- unknown ------------------------------------------------------------------------------------
 */

static void nothing_can_be_said(void **state) {
    (void)state;
    struct scene s;
    killed_by_signal(&s);
    s.tale.history.complete = false;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "did not come to its end");
    assert_true(result.cut_short);
    killed_by_signal(&s);
    s.tale.history.overflow = true;
    assert_true(bhi_chaos_check(&s.tale.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    tale_last(&s.tale)->result.digest[0] ^= 1; /* not even then: what was noted is no run */
    assert_true(bhi_chaos_check(&s.tale.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    tale_end(&s.tale);
    /* What explains it may not have been noted. */
    killed_by_signal(&s);
    s.tale.history.complete = false;
    for (size_t i = 0; i < s.tale.history.count; i++)
        if (s.tale.history.records[i].kind == BHI_RECORD_FAULT)
            s.tale.history.records[i].fault.pids[0] = 7;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "did not come to its end");
    /* With what is wrong whatever is missing. */
    killed_by_signal(&s);
    s.tale.history.complete = false;
    tale_last(&s.tale)->result.digest[0] ^= 1;
    judge(&s.tale);
    assert_int_equal(result.verdict, BHI_CHAOS_INVALID);
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
    assert_false(result.cut_short);
    assert_true(result.findings[0].record == BHI_FINDING_NO_RECORD);
    tale_begin(&t);
    tale_fault(&t, BHI_FAULT_KILL, 0, 0);
    tale_last(&t)->fault.missed = true;
    found(&t, BHI_ANOMALY_UNKNOWN, 0, "no fault was injected");
    assert_int_equal(result.missed, 1);
    bhi_history_init(&t.history);
    t.history.complete = true;
    assert_true(bhi_chaos_check(&t.history, &result));
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    assert_non_null(strstr(all_findings(), "no operation was READY"));
    assert_non_null(strstr(all_findings(), "was not looked at twice"));
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
    assert_true(bhi_chaos_check(&t.history, &result));
    assert_int_equal(result.recovery_count, count);
    assert_int_equal(result.recovery_p50_ns / TALE_MS, half);
    assert_int_equal(result.recovery_p99_ns / TALE_MS, most_of_them);
    assert_int_equal(result.recovery_max_ns / TALE_MS, count);
    tale_end(&t);
}

static void percentiles(void **state) {
    (void)state;
    recovered(1, 1, 1);
    recovered(2, 1, 2);
    recovered(3, 2, 3);
    recovered(99, 50, 99);
    recovered(100, 50, 99);
    recovered(101, 51, 100);
}

/* A missed fault explains nothing. */
static void a_missed_fault(void **state) {
    (void)state;
    struct scene s;
    killed_by_signal(&s);
    for (size_t i = 0; i < s.tale.history.count; i++)
        if (s.tale.history.records[i].kind == BHI_RECORD_FAULT)
            s.tale.history.records[i].fault.missed = true;
    tale_fault(&s.tale, BHI_FAULT_KILL, 1, 1001);
    found(&s.tale, BHI_ANOMALY_COLLATERAL, s.killed, "no fault explains it");
}

static void a_history_that_contradicts_itself(void **state) {
    (void)state;
    struct scene s;
    killed_by_signal(&s); /* READY, and not read back */
    tale_last(&s.tale)->kind = BHI_RECORD_STALL;
    tale_last(&s.tale)->stall.lasted_ns = 0;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, s.innocent, "not read back");
    killed_by_signal(&s);
    tale_submit(&s.tale, s.innocent)->op = s.killed;
    judge(&s.tale);
    assert_int_equal(result.verdict, BHI_CHAOS_UNKNOWN);
    assert_non_null(strstr(all_findings(), "was submitted twice"));
    assert_non_null(strstr(all_findings(), "was never submitted"));
    killed_by_signal(&s);
    tale_submit(&s.tale, s.innocent)->submit.event = tale_event(1);
    judge(&s.tale);
    assert_non_null(strstr(all_findings(), "have one event"));
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
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "a fault that was not noted");
    killed_by_signal(&s);
    tale_healed(&s.tale, 7);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "healed, and never injected");
    killed_by_signal(&s);
    tale_fault(&s.tale, BHI_FAULT_KILL, 0, 1000);
    tale_last(&s.tale)->fault.number = 1;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "injected twice");
    killed_by_signal(&s);
    tale_fault(&s.tale, BHI_FAULT_HANG, 0, 0);
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "is no operation that was submitted as one");
    killed_by_signal(&s); /* one bait, two faults */
    op = tale_bait(&s.tale, BHI_FAULT_HANG, 1);
    s.tale.now_ms = 117;
    tale_poisoned(&s.tale, op, BH_DEADLINE, 0, 1001, 17);
    tale_fault(&s.tale, BHI_FAULT_OOM, 1, 0);
    tale_last(&s.tale)->op = op;
    found(&s.tale, BHI_ANOMALY_UNKNOWN, op, "is two faults");
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

static void a_fault_that_cannot_be(void **state) {
    (void)state;
    static const enum bhi_fault_kind aimed[] = {BHI_FAULT_KILL,    BHI_FAULT_SEGV,  BHI_FAULT_STOP,
                                                BHI_FAULT_GARBAGE, BHI_FAULT_CLOSE, BHI_FAULT_SLOW};
    struct scene s;
    for (size_t i = 0; i < sizeof aimed / sizeof aimed[0]; i++) {
        killed_by_signal(&s);
        tale_fault(&s.tale, aimed[i], 1, 0);
        tale_works(&s.tale, 1010);
        found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "did not miss, and hit nobody");
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
    found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "is kill, which is none of the run's");
    for (uint64_t beyond = 0; beyond < 2; beyond++) { /* the last, or one that there is not */
        killed_by_signal(&s);
        tale_fault(&s.tale, BHI_FAULT_KILL, 1, 0);
        tale_last(&s.tale)->fault.missed = true;
        struct bhi_record *fault = tale_last(&s.tale);
        fault->fault.after_op = beyond ? 1000 : s.tale.ops;
        if (beyond)
            found(&s.tale, BHI_ANOMALY_UNKNOWN, 0, "was after operation 1000, and the last is");
        else
            valid(&s.tale);
    }
}

/* One kind of finding does not hide the others. */
static void many_findings(void **state) {
    (void)state;
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
    assert_int_equal(result.by_anomaly[BHI_ANOMALY_COLLATERAL], 100);
    assert_int_equal(result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS], 100);
    assert_true(result.finding_count <= BHI_FINDINGS);
    assert_non_null(strstr(all_findings(), "false success"));
    assert_non_null(strstr(all_findings(), "collateral"));
}

/* 299 good ones of 100 are seen with 95 %: 0.99^299 is 0.0495. */
static void too_few(void **state) {
    (void)state;
    struct scene s;
    assert_int_equal(bhi_power_needed(0.01), 299);
    assert_int_equal(bhi_power_needed(0.001), 2995);
    assert_int_equal(bhi_power_needed(1), 1);
    assert_int_equal(bhi_power_needed(0), 0);
    assert_true(bhi_power_rate(0) == 1);
    for (uint64_t count = 1; count < 5000; count += 7) {
        /* The smallest that so many find is found by so many, and not by one less. */
        assert_in_range(bhi_power_needed(bhi_power_rate(count)), count, count + 1);
        assert_in_range(bhi_power_needed(bhi_power_rate(count) * 0.999), count, 2 * count + 1);
    }
    killed_by_signal(&s);
    judge(&s.tale);
    const uint64_t compared = result.compared;
    assert_int_equal(compared, result.ready);
    for (int enough = 0; enough < 2; enough++) {
        killed_by_signal(&s);
        s.tale.history.header.find_rate = bhi_power_rate(compared) * (enough ? 1.001 : 0.999);
        judge(&s.tale);
        assert_int_equal(result.verdict, enough ? BHI_CHAOS_VALID : BHI_CHAOS_UNKNOWN);
        assert_int_equal(result.by_anomaly[BHI_ANOMALY_UNKNOWN], !enough);
        assert_int_equal(strstr(all_findings(), "too few operations") != NULL, !enough);
    }
}

static void names(void **state) {
    (void)state;
    assert_string_equal(bhi_anomaly_name(BHI_ANOMALY_FALSE_SUCCESS), "false success");
    assert_string_equal(bhi_anomaly_name(BHI_ANOMALIES), "unknown");
    assert_string_equal(bhi_chaos_verdict_name(BHI_CHAOS_VALID), "valid");
    assert_string_equal(bhi_chaos_verdict_name(BHI_CHAOS_INVALID), "invalid");
    assert_string_equal(bhi_chaos_verdict_name(BHI_CHAOS_UNKNOWN), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_recovery),
        cmocka_unit_test(hit_again),
        cmocka_unit_test(no_recovery),
        cmocka_unit_test(hit_from_outside),
        cmocka_unit_test(leaks),
        cmocka_unit_test(no_leaks),
        cmocka_unit_test(nothing_can_be_said),
        cmocka_unit_test(percentiles),
        cmocka_unit_test(a_missed_fault),
        cmocka_unit_test(a_history_that_contradicts_itself),
        cmocka_unit_test(a_fault_that_cannot_be),
        cmocka_unit_test(many_findings),
        cmocka_unit_test(too_few),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
