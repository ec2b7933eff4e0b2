/* Phrases and numbers that all reports of a chaos run share. */
#ifndef BHI_CHAOS_REPORT_FACTS_H
#define BHI_CHAOS_REPORT_FACTS_H

#include "chaos/check/check.h"

/* When the last record was noted. */
uint64_t bhi_facts_elapsed_ns(const struct bhi_history *history);
uint64_t bhi_facts_injected(const struct bhi_chaos_result *result);
uint64_t bhi_facts_anomalies(const struct bhi_chaos_result *result);
/* "every promise was kept", "2 promises were broken", "nothing can be said of this run: it was cut
 * short" */
const char *bhi_facts_sentence(const struct bhi_chaos_result *result, char *out, size_t capacity);

/* What became of the rate that was asked for. */
struct bhi_facts_pace {
    uint64_t asked;    /* faults: --count, or the rate times --duration */
    uint64_t begin_ns; /* until the first could come: workers, the first kernel, samples at rest */
    uint64_t faults_ns;
    uint64_t settle_ns; /* then: streams come back, samples at rest */
    double rate;        /* a second of |faults_ns|; 0: there was no such time */
};
struct bhi_facts_pace bhi_facts_pace(const struct bhi_history *history,
                                     const struct bhi_chaos_result *result);

/* The buckets of the recovery histogram from the first that counts any to the last; *out_end is
 * behind it. False: none does. */
bool bhi_facts_buckets(const struct bhi_chaos_result *result, unsigned *out_first,
                       unsigned *out_end);
/* Where a bucket begins and ends; UINT64_MAX: it has no end. */
uint64_t bhi_facts_bucket_from(unsigned bucket);
uint64_t bhi_facts_bucket_to(unsigned bucket);
uint64_t bhi_facts_bucket_most(const struct bhi_chaos_result *result);

/* The line of a saved history that record |index| is on: the first is the header. */
static inline uint64_t bhi_facts_line(size_t index) {
    return (uint64_t)index + 2;
}

#endif
