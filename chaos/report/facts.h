/* Phrases and numbers that are the same in all reports of a chaos run. */
#ifndef BHI_CHAOS_REPORT_FACTS_H
#define BHI_CHAOS_REPORT_FACTS_H

#include "chaos/check/check.h"

/* Returns when the last record was noted. */
uint64_t bhi_facts_elapsed_ns(const struct bhi_history *history);
uint64_t bhi_facts_injected(const struct bhi_chaos_result *result);
uint64_t bhi_facts_anomalies(const struct bhi_chaos_result *result);
/* "every promise was kept", "2 promises were broken", "nothing can be said of this run: it was cut
 * short" */
const char *bhi_facts_sentence(const struct bhi_chaos_result *result, char *out, size_t capacity);

/* The rate that was asked for, and the one that was reached. */
struct bhi_facts_pace {
    uint64_t asked;    /* number of faults: --count, or the rate times --duration */
    uint64_t begin_ns; /* time before the first fault: workers, the first kernel, samples at rest */
    uint64_t faults_ns;
    uint64_t settle_ns; /* time after them: streams recover, samples at rest */
    double rate;        /* faults per second of |faults_ns|; 0: that is 0 */
};
struct bhi_facts_pace bhi_facts_pace(const struct bhi_history *history,
                                     const struct bhi_chaos_result *result);

/* Finds the looks at the memory of the |index|th device: before the run, and after it (NULL: there
 * was none). Returns false if there were not so many devices. */
bool bhi_facts_memory(const struct bhi_history *history, size_t index,
                      const struct bhi_record **out_first, const struct bhi_record **out_last);

/* Finds the first and the last bucket of the recovery histogram that count anything; *out_end is
 * after the last. Returns false if none does. */
bool bhi_facts_buckets(const struct bhi_chaos_result *result, unsigned *out_first,
                       unsigned *out_end);
/* Return where a bucket begins and ends; UINT64_MAX: it has no end. */
uint64_t bhi_facts_bucket_from(unsigned bucket);
uint64_t bhi_facts_bucket_to(unsigned bucket);
uint64_t bhi_facts_bucket_most(const struct bhi_chaos_result *result);

/* Returns the line in a saved history of record |index|; the first line is the header. */
static inline uint64_t bhi_facts_line(size_t index) {
    return (uint64_t)index + 2;
}

#endif
