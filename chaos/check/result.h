/* The result of a check: the findings, and the numbers for the reports. */
#ifndef BHI_CHAOS_CHECK_RESULT_H
#define BHI_CHAOS_CHECK_RESULT_H

#include "chaos/history/history.h"

enum bhi_chaos_verdict { BHI_CHAOS_VALID, BHI_CHAOS_INVALID, BHI_CHAOS_UNKNOWN };
const char *bhi_chaos_verdict_name(enum bhi_chaos_verdict verdict); /* "valid" */

enum bhi_anomaly {
    BHI_ANOMALY_LOST,
    BHI_ANOMALY_FALSE_SUCCESS,
    BHI_ANOMALY_COLLATERAL,
    BHI_ANOMALY_CHANGED,
    BHI_ANOMALY_RECOVERY,
    BHI_ANOMALY_LEAK,
    BHI_ANOMALY_UNKNOWN, /* a reason why nothing can be said */
    BHI_ANOMALIES
};
const char *bhi_anomaly_name(enum bhi_anomaly anomaly); /* "false success" */

enum { BHI_FINDINGS = 64, BHI_RECOVERY_BUCKETS = 24 };

#define BHI_FINDING_NO_RECORD SIZE_MAX

struct bhi_finding {
    enum bhi_anomaly anomaly;
    uint64_t op;    /* 0: about no operation */
    size_t record;  /* index in the history of the record that shows it, or BHI_FINDING_NO_RECORD */
    char text[256]; /* a sentence */
};

struct bhi_chaos_result {
    enum bhi_chaos_verdict verdict;
    bool cut_short; /* the history has no record that says that the run came to its end */
    uint64_t operations, ready, poisoned, lost, refused, results;
    uint64_t compared; /* results that were compared with the expected ones */
    uint64_t faults[BHI_FAULT_KINDS], missed;
    uint64_t by_anomaly[BHI_ANOMALIES];        /* the number of findings of each kind */
    struct bhi_finding findings[BHI_FINDINGS]; /* the first ones of each kind */
    size_t finding_count;
    /* Times from a fault to the next READY result on a stream that it hit. Bucket k counts [2^k,
     * 2^(k+1)) * 100 us; the first also counts all shorter ones, the last all longer ones. */
    uint64_t recovery[BHI_RECOVERY_BUCKETS];
    uint64_t recovery_count, recovery_p50_ns, recovery_p99_ns, recovery_max_ns;
    uint64_t rss_first, rss_last;
    uint32_t descriptors_first, descriptors_last;
};

#endif
