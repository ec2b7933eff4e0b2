/* The checker: from a history alone, says whether the promises were kept. It calls nothing of the
 * library, and computes what each operation should have given by itself.
 *
 *   lost            each operation has exactly one end, in time; nothing was given up on (E9)
 *   false success   READY means: everything it needed was READY, its output was read back, and is
 *                   bit for bit what it should be (E3, E11)
 *   collateral      POISONED means: it was the fault, its worker was hit by one, or something that
 *                   it needed was poisoned, and the verdict's origin and hops lead there (E5, E7)
 *   changed         a second look gave another answer (E2)
 *   recovery        after each fault each stream that it hit has a READY result within the bound
 *   leak            descriptors, processes, files and memory at the end are what they were
 *
 * VALID: none was broken. INVALID: one was. UNKNOWN: nothing can be said: the history is not
 * complete or contradicts itself, no fault was injected or nothing was READY, or the machine stood
 * still for so long that a deadline without a cause, or a late end, may be its fault.
 *
 * What it takes for granted of a complete history: a fault's time is from just before it was
 * injected; every READY output was read back; after its last fault each stream was given work for
 * the bound of recovery, or until something was READY; there are idle samples from the beginning
 * and the end. docs/chaos.md has the rules in full.
 */
#ifndef BHI_CHAOS_CHECK_CHECK_H
#define BHI_CHAOS_CHECK_CHECK_H

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
    uint64_t op;    /* 0: about none */
    size_t record;  /* index in the history of what shows it, or BHI_FINDING_NO_RECORD */
    char text[256]; /* a sentence */
};

struct bhi_chaos_result {
    enum bhi_chaos_verdict verdict;
    bool cut_short; /* the history does not say that the run came to its end */
    uint64_t operations, ready, poisoned, lost, refused, results;
    uint64_t compared; /* results that were held against what they should be */
    uint64_t faults[BHI_FAULT_KINDS], missed;
    uint64_t by_anomaly[BHI_ANOMALIES];        /* all of them */
    struct bhi_finding findings[BHI_FINDINGS]; /* the first ones of each kind */
    size_t finding_count;
    /* Fault to next READY result on a stream it hit: bucket k counts [2^k, 2^(k+1)) * 100 us, the
     * first all below, the last all above. */
    uint64_t recovery[BHI_RECOVERY_BUCKETS];
    uint64_t recovery_count, recovery_p50_ns, recovery_p99_ns, recovery_max_ns;
    uint64_t rss_first, rss_last;
    uint32_t descriptors_first, descriptors_last;
};

/* False: out of memory. */
bool bhi_chaos_check(const struct bhi_history *history, struct bhi_chaos_result *out_result);

#endif
