/* The checker: the course of a run as a whole: recovery, leaks, and when nothing can be said. */
#include "chaos/check/power.h"
#include "tale.h"

static void expect(enum bhi_chaos_verdict verdict) {
    check();
    BHT_EQ(result.verdict, verdict);
}

/* -- recovery -----------------------------------------------------------------------------------
 */

TEST(late_recovery) {
    /* What judge() adds comes 100 ms later. */
    found(BHI_ANOMALY_RECOVERY, 0, "stream 0 had no READY result within 5000 ms of fault 1",
          KILLED "at 5100");
    valid(KILLED "at 4800");
    found(BHI_ANOMALY_UNKNOWN, 0, "the machine stood still", KILLED "at 5100; stall 1000");
    /* What had begun before the fault is no recovery. */
    tell(KILLED "x on 0; x ready 1000 14");
    ended('x')->end.submitted_ns = 14 * TALE_MS;
    found(BHI_ANOMALY_RECOVERY, 0, "stream 0", "at 5100");
    /* Nor what the worker still finished. */
    static const char *const deaths[][3] = {
        {"kill", "WORKER_SIGNAL", "KILL"}, {"segv", "WORKER_SIGNAL", "SEGV"},
        {"garbage", "PROTOCOL", "KILL"},   {"close", "PROTOCOL", "KILL"},
        {"zygote", "ZYGOTE_LOST", "0"},    {"device", "WORKER_SIGNAL", "KILL"}};
    for (size_t i = 0; i < BHT_COUNT(deaths); i++) {
        found(BHI_ANOMALY_RECOVERY, 0, "stream 0",
              HIT("%s", "%s", "%s") "x on 0; x ready 1000 17; at 5100", deaths[i][0], deaths[i][1],
              deaths[i][2]);
    }
}

/* Hit again before it was up: the bound runs from the last blow. */
TEST(hit_again) {
    valid(KILLED "after 4000; fault kill 0 1010; after 4000; fault kill 0 1011;"
                 "after 4000; fault kill 0 1012; after 4000");
    BHT_EQ(result.recovery_count, 4);
    BHT_EQ(result.recovery_max_ns, 16104 * TALE_MS);
    /* A bound beyond the end of time. */
    tell(KILLED "after 4000; fault kill 0 1010; sample 20 50");
    tale.history.header.recovery_ns = UINT64_MAX;
    check();
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_UNKNOWN], 1);
    BHT_STR_HAS(all_findings(), "fault 2");
    end_tale();
}

TEST(no_recovery) {
    tell(KILLED);
    for (int i = 0; i < 10; i++) { /* until the end nothing is READY there */
        tell("after 1000; x on 0 waits k; x inherits k");
    }
    tell("sample 20 50");
    expect(BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_RECOVERY], 1);
    BHT_STR_HAS(all_findings(), "none at all");
    end_tale();
    tell(KILLED "sample 20 50"); /* it was not given the time */
    expect(BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "the run ended before it was due");
    tell("after 1000; x on 0 waits k; x inherits k");
    expect(BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "the run ended before it was due");
    end_tale();
}

/* From outside nobody knows whose worker it is: the pid tells. */
TEST(hit_from_outside) {
    for (int other = 0; other < 2; other++) { /* a spare, the other stream's */
        tell(KILLED "at 20; fault kill 0 %d outside", other ? 1001 : 1099);
        for (int i = 1; i <= 12; i++) { /* stream 0 goes on */
            tell("after 500; x on 0; x ready 1100 %d", 20 + 500 * i);
        }
        if (other) {
            found(BHI_ANOMALY_RECOVERY, 0, "stream 1 had no READY result", NULL);
        } else {
            valid(NULL);
        }
    }
}

/* -- leaks --------------------------------------------------------------------------------------
 */

static void samples(double descriptors, double mib) {
    tell(KILLED);
    for (int i = 0; i < 40; i++) {
        tell("after 50; sample %d %d", (int)(20 + (i % 3) + descriptors * i),
             (int)(50 + (i % 4) + mib * i));
    }
    tell("works 1100");
}

TEST(leaks) {
    samples(0, 0);
    expect(BHI_CHAOS_VALID);
    end_tale();
    samples(1.5, 0);
    expect(BHI_CHAOS_INVALID);
    BHT_STR_HAS(all_findings(), "descriptors at first");
    end_tale();
    samples(0, 100);
    expect(BHI_CHAOS_INVALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_LEAK], 1);
    BHT_STR_HAS(all_findings(), "memory grew");
    end_tale();
}

/* Samples of a run without a leak, which |change| makes others of: |i| of 40. Then |words| are said of
 * a leak; NULL: there is none. */
static void sampled(void (*change)(struct bhi_record *record, int i), const char *words) {
    int n = -1; /* there is one before them */
    samples(0, 0);
    for (size_t i = 0; i < tale.history.count; i++) {
        struct bhi_record *record = &tale.history.records[i];
        if (record->kind == BHI_RECORD_SAMPLE && n++ >= 0) {
            change(record, n - 1);
        }
    }
    expect(words ? BHI_CHAOS_INVALID : BHI_CHAOS_VALID);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_LEAK], !!words);
    BHT_STR_HAS(all_findings(), words ? words : "");
    end_tale();
}

/* One odd sample, and what is taken while something runs, say nothing. */
static void odd_ones(struct bhi_record *record, int i) {
    record->sample.rss_bytes = (i % 5 ? 50ull : 5000ull) << 20;
    record->sample.idle = i % 5 || i % 2;
    record->sample.descriptors = record->sample.idle ? 20 : 500;
}

static void more_processes(struct bhi_record *record, int i) {
    record->sample.processes = 4 + (uint32_t)i;
}

static void more_files(struct bhi_record *record, int i) {
    record->sample.files = 3 + (uint32_t)i;
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

TEST(no_leaks) {
    sampled(odd_ones, NULL);
    sampled(more_processes, "processes at first");
    sampled(more_files, "files at first");
    sampled(a_little_at_once, NULL);
    sampled(a_cache_that_fills, NULL);
    sampled(a_step, NULL);
    sampled(busy_at_last, NULL);
    sampled(a_leak_and_an_odd_one, "memory grew");
    sampled(a_leak_of_descriptors_and_an_odd_one, "descriptors at first");
}

/* -- unknown ------------------------------------------------------------------------------------
 */

/* |story| after a worker was killed, of which nothing can be said: |words|. */
static void unknown(char name, const char *words, const char *story) {
    found(BHI_ANOMALY_UNKNOWN, name, words, KILLED "%s", story);
}

TEST(nothing_can_be_said) {
    unknown(0, "the run was cut short", "incomplete");
    BHT_TRUE(result.cut_short);
    tell(KILLED);
    tale.history.overflow = true;
    expect(BHI_CHAOS_UNKNOWN);
    tell("i wrong"); /* not even then: what was noted is no run */
    expect(BHI_CHAOS_UNKNOWN);
    end_tale();
    tell(KILLED "incomplete"); /* what explains it may not have been noted */
    first_fault()->fault.pids[0] = 7;
    found(BHI_ANOMALY_UNKNOWN, 0, "the run was cut short", NULL);
    tell(KILLED "incomplete; i wrong"); /* with what is wrong whatever is missing */
    judge();
    BHT_EQ(result.verdict, BHI_CHAOS_INVALID);
    /* Nor was it held against anything where it could not be read. */
    found(BHI_ANOMALY_UNKNOWN, 'x', "was not read back",
          FULL "x on 1; at 210; x ready 1001 205; x read NO_MEMORY");
    found(BHI_ANOMALY_UNKNOWN, 0, "no fault was injected", NULL);
    BHT_TRUE(!result.cut_short);
    BHT_EQ(result.findings[0].record, BHI_FINDING_NO_RECORD);
    found(BHI_ANOMALY_UNKNOWN, 0, "no fault was injected", "fault kill 0 0 missed");
    BHT_EQ(result.missed, 1);
    tale.begun = true; /* with nothing in it */
    bhi_history_init(&tale.history);
    tale.history.complete = true;
    expect(BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "no operation was READY");
    BHT_STR_HAS(all_findings(), "was sampled at rest less than twice");
}

/* -- how long recovery takes --------------------------------------------------------------------
 */

/* |count| faults, the n-th recovered from in n ms or so: p50 and p99 by nearest rank. */
static void recovered(int count, int half, int most_of_them) {
    for (int i = 1; i <= count; i++) {
        tell("fault kill 0 %d; after %d; x on 0", 1000 + i - 1, i);
        tell("x ready %d %d; after 10", 1000 + i, (int)tale.now_ms);
    }
    check();
    BHT_EQ(result.recovery_count, count);
    BHT_EQ(result.recovery_p50_ns / TALE_MS, half);
    BHT_EQ(result.recovery_p99_ns / TALE_MS, most_of_them);
    BHT_EQ(result.recovery_max_ns / TALE_MS, count);
    end_tale();
}

TEST(percentiles) {
    recovered(1, 1, 1);
    recovered(2, 1, 2);
    recovered(3, 2, 3);
    recovered(99, 50, 99);
    recovered(100, 50, 99);
    recovered(101, 51, 100);
}

/* A missed fault explains nothing. */
TEST(a_missed_fault) {
    tell(KILLED "fault kill 1 1001");
    first_fault()->fault.missed = true;
    found(BHI_ANOMALY_COLLATERAL, 'k', "no fault explains it", NULL);
}

TEST(a_history_that_contradicts_itself) {
    unknown('i', "not read back", "i unread"); /* READY, and not read back */
    tell(KILLED);
    submitted('i')->op = tale.named['k'];
    judge();
    BHT_EQ(result.verdict, BHI_CHAOS_UNKNOWN);
    BHT_STR_HAS(all_findings(), "was submitted twice");
    BHT_STR_HAS(all_findings(), "was never submitted");
    tell(KILLED);
    submitted('i')->submit.event = event_of(1);
    judge();
    BHT_STR_HAS(all_findings(), "have one event");
    tell(KILLED "x on 1");
    submitted('x')->submit.wait = tale.named['x'];
    found(BHI_ANOMALY_UNKNOWN, 'x', "was not submitted before it", "x ready 1001 17");
    unknown('x', "was to overwrite", /* its memory is another's by then */
            "a on 1 reuses 1; a ready 1001 17; x on 1 needs 1; x ready 1001 17");
    unknown('x', "the history has no such fault", "x on 1 bait; x ready 1001 17");
    unknown(0, "healed, and never injected", "healed 7");
    unknown(0, "injected twice", "fault kill 0 1000 number 1");
    unknown(0, "names an operation that was not submitted as a fault", "fault hang 0 0");
    tell(KILLED "x baits hang 1; at 117; x poisoned DEADLINE 0 1001 17; fault oom 1 0");
    last()->op = tale.named['x']; /* one bait, two faults */
    found(BHI_ANOMALY_UNKNOWN, 'x', "two faults name operation", NULL);
    tell(KILLED "x on 1; x ready 1001 17"); /* the END before the OP */
    const struct bhi_record submit = *submitted('x');
    *submitted('x') = *ended('x');
    last()[-1] = submit;
    found(BHI_ANOMALY_UNKNOWN, 'x', "ended before it was submitted", NULL);
    tell(KILLED "x on 1; x ready 1001 17"); /* the times alone */
    submitted('x')->at_ns = ended('x')->at_ns + 1;
    found(BHI_ANOMALY_UNKNOWN, 'x', "ended before it was submitted", NULL);
    unknown('i', "was read back twice", "i result");
    tell(KILLED "x on 1 needs i; x ready 1001 17"); /* more than there is to read */
    submitted('x')->submit.work.words++;
    found(BHI_ANOMALY_UNKNOWN, 'x', "reads more of", NULL);
}

TEST(a_fault_that_cannot_be) {
    static const char *const aimed[] = {"kill", "segv", "stop", "garbage", "close", "slow"};
    for (size_t i = 0; i < BHT_COUNT(aimed); i++) {
        found(BHI_ANOMALY_UNKNOWN, 0, "counts as a hit, but names no worker",
              KILLED "fault %s 1 0; works 1010", aimed[i]);
        valid(KILLED "fault %s 1 0 missed", aimed[i]);
    }
    valid(KILLED "fault zygote 1 0; works 1010"); /* a zygote without workers */
    tell(KILLED);
    tale.history.header.fault_set = 1u << BHI_FAULT_STOP;
    found(BHI_ANOMALY_UNKNOWN, 0, "is of kind kill, which line 1 does not list", NULL);
    valid(KILLED "fault kill 1 0 missed"); /* after the last; after one that there is not */
    unknown(0, "came after operation 1000, but the last operation is",
            "fault kill 1 0 missed after 1000");
}

/* One kind of finding does not hide the others. */
TEST(many_findings) {
    tell(KILLED);
    for (int i = 0; i < 100; i++) {
        tell("x on 1; x poisoned CANCELLED; x on 1; x ready 1001 17; x wrong");
    }
    judge();
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_COLLATERAL], 100);
    BHT_EQ(result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS], 100);
    BHT_LE(result.finding_count, BHI_FINDINGS);
    BHT_STR_HAS(all_findings(), "false success");
    BHT_STR_HAS(all_findings(), "collateral");
}

static uint64_t judge_for(double find_rate, uint64_t more) {
    tell(KILLED);
    tale.history.header.find_rate = find_rate;
    for (uint64_t i = 0; i < more; i++) {
        tell("x on 1; x ready 1001 17");
    }
    judge();
    return result.compared;
}

/* 299 good ones of 100 are seen with 95 %: 0.99^299 is 0.0495. */
TEST(too_few) {
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
    const uint64_t has = judge_for(0, 0); /* what the scene has, and what judge() adds */
    /* One in 100 was asked for: one result too few, exactly enough, one more. */
    for (uint64_t count = 298; count <= 300; count++) {
        const bool enough = count >= 299;
        BHT_EQ(judge_for(0.01, count - has), count);
        BHT_EQ(result.compared, result.ready);
        BHT_EQ(result.verdict, enough ? BHI_CHAOS_VALID : BHI_CHAOS_UNKNOWN);
        BHT_EQ(result.by_anomaly[BHI_ANOMALY_UNKNOWN], !enough);
        BHT_EQ(!!strstr(all_findings(), "too few operations"), !enough);
    }
    /* As many results as a rate needs are enough for it, and one less are too few, whichever it is.
     */
    for (int enough = 0; enough < 2; enough++) {
        const uint64_t needed = has + !enough;
        const double rate = (bhi_power_rate(needed) + bhi_power_rate(needed - 1)) / 2;
        BHT_EQ(bhi_power_needed(rate), needed);
        BHT_EQ(judge_for(rate, 0), has);
        BHT_EQ(result.verdict, enough ? BHI_CHAOS_VALID : BHI_CHAOS_UNKNOWN);
    }
}

TEST(names) {
    BHT_STR_EQ(bhi_anomaly_name(BHI_ANOMALY_FALSE_SUCCESS), "false success");
    BHT_STR_EQ(bhi_anomaly_name(BHI_ANOMALIES), "unknown");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_VALID), "valid");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_INVALID), "invalid");
    BHT_STR_EQ(bhi_chaos_verdict_name(BHI_CHAOS_UNKNOWN), "unknown");
}
