/* A chaos run of a few records, and what the checker might say of one. */
#ifndef TEST_CHAOS_SAMPLE_H
#define TEST_CHAOS_SAMPLE_H

#include "chaos/report/report.h"

#define MS UINT64_C(1000000)

static struct bhi_record records[] = {
    {.kind = BHI_RECORD_OP, .at_ns = 1 * MS, .op = 1, .submit = {.event = 7}},
    {.kind = BHI_RECORD_END,
     .at_ns = 3 * MS,
     .op = 1,
     .end = {.state = BH_EVENT_READY,
             .submitted_ns = 1 * MS,
             .started_ns = 1 * MS + 500000,
             .ended_ns = 2 * MS}},
    {.kind = BHI_RECORD_OP, .at_ns = 4 * MS, .op = 2, .stream = 1, .submit = {.event = 8}},
    {.kind = BHI_RECORD_FAULT,
     .at_ns = 5 * MS,
     .stream = 1,
     .fault = {.number = 1, .kind = BHI_FAULT_KILL, .pid_count = 1, .pids = {4711}, .after_op = 2}},
    {.kind = BHI_RECORD_END,
     .at_ns = 6 * MS,
     .op = 2,
     .end = {.state = BH_EVENT_POISONED,
             .status = BH_WORKER_SIGNAL,
             .signal = 9,
             .worker_pid = 4711,
             .origin = 8,
             .submitted_ns = 4 * MS,
             .started_ns = 4 * MS + 500000,
             .ended_ns = 5 * MS + 500000}},
    {.kind = BHI_RECORD_SAMPLE, .at_ns = 2500 * MS, .sample = {.descriptors = 40}}};

static inline struct bhi_history sample(void) {
    return (struct bhi_history){.header = {.schema = 1,
                                           .version = "0.1.0",
                                           .seed = UINT64_MAX,
                                           .faults_asked = 320,
                                           .rate = 20,
                                           .find_rate = 0.01,
                                           .streams = 2,
                                           .fault_set = 1u << BHI_FAULT_KILL,
                                           .device = "llvmpipe\x1b[31m",
                                           .driver = "Mesa"},
                                .records = records,
                                .count = sizeof records / sizeof records[0],
                                .complete = true};
}

static inline struct bhi_chaos_result good(void) {
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_VALID,
                                      .operations = 12345,
                                      .ready = 12000,
                                      .compared = 12000,
                                      .poisoned = 345,
                                      .results = 11999,
                                      .missed = 3,
                                      .recovery_count = 300,
                                      .recovery_p50_ns = 900000,
                                      .recovery_p99_ns = 2 * MS,
                                      .recovery_max_ns = 2500000000u,
                                      .rss_first = 10 << 20,
                                      .rss_last = 11 << 20,
                                      .descriptors_first = 40,
                                      .descriptors_last = 41};
    result.faults[BHI_FAULT_KILL] = 298;
    result.faults[BHI_FAULT_SLOW] = 2;
    result.recovery[3] = 296;
    result.recovery[5] = 3;
    result.recovery[BHI_RECOVERY_BUCKETS - 1] = 1;
    return result;
}

static inline struct bhi_chaos_result bad(void) {
    struct bhi_chaos_result result = good();
    result.verdict = BHI_CHAOS_INVALID;
    result.lost = 1;
    result.by_anomaly[BHI_ANOMALY_LOST] = 1;
    result.by_anomaly[BHI_ANOMALY_FALSE_SUCCESS] = 99;
    result.findings[0] = (struct bhi_finding){
        .anomaly = BHI_ANOMALY_LOST, .op = 2, .record = 2, .text = "operation 2 has no end"};
    result.findings[1] =
        (struct bhi_finding){.anomaly = BHI_ANOMALY_FALSE_SUCCESS,
                             .op = 1,
                             .record = 1,
                             .text = "operation 1 is READY, but <b>its</b> output \xFF is wrong"};
    result.finding_count = 2;
    return result;
}

#endif
