#include "chaos/report/facts.h"

#include <stdio.h>
#include <string.h>

uint64_t bhi_facts_elapsed_ns(const struct bhi_history *history) {
    uint64_t last = 0;
    BHI_RECORDS(record, history) {
        if (record->at_ns > last) {
            last = record->at_ns;
        }
    }
    return last;
}

/* Finds the time in which faults could come. It begins after the second sample, because each run
 * begins with two. It ends after the duration; if a rest or a fault took longer, at the last
 * fault. */
static void find_faults(const struct bhi_history *history, struct bhi_facts_pace *pace,
                        uint64_t elapsed_ns) {
    uint64_t begin_ns = 0, end_ns = 0;
    unsigned samples = 0;
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_SAMPLE && ++samples == 2) {
            begin_ns = record->at_ns;
        }
        if (record->kind == BHI_RECORD_FAULT && record->at_ns > end_ns) {
            end_ns = record->at_ns;
        }
    }
    const uint64_t duration_ns = history->header.duration_ns;
    const uint64_t due_ns =
        duration_ns < UINT64_MAX - begin_ns ? begin_ns + duration_ns : UINT64_MAX;
    if (!history->header.faults_asked && due_ns > end_ns) {
        end_ns = due_ns;
    }
    if (end_ns > elapsed_ns) {
        end_ns = elapsed_ns;
    }
    pace->begin_ns = begin_ns;
    pace->faults_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    pace->settle_ns = elapsed_ns - begin_ns - pace->faults_ns;
}

struct bhi_facts_pace bhi_facts_pace(const struct bhi_history *history,
                                     const struct bhi_chaos_result *result) {
    const struct bhi_history_header *header = &history->header;
    struct bhi_facts_pace pace = {.asked = header->faults_asked};
    const double due = header->rate * ((double)header->duration_ns / 1e9) + 0.5;
    if (!pace.asked) {
        pace.asked = due < (double)INT64_MAX ? (uint64_t)due : INT64_MAX;
    }
    find_faults(history, &pace, bhi_facts_elapsed_ns(history));
    if (pace.faults_ns) {
        pace.rate = (double)bhi_facts_injected(result) / ((double)pace.faults_ns / 1e9);
    }
    return pace;
}

uint64_t bhi_facts_injected(const struct bhi_chaos_result *result) {
    uint64_t count = 0;
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        count += result->faults[kind];
    }
    return count;
}

uint64_t bhi_facts_anomalies(const struct bhi_chaos_result *result) {
    uint64_t count = 0;
    for (int anomaly = 0; anomaly < BHI_ANOMALIES; anomaly++) {
        if (anomaly != BHI_ANOMALY_UNKNOWN) {
            count += result->by_anomaly[anomaly];
        }
    }
    return count;
}

const char *bhi_facts_sentence(const struct bhi_chaos_result *result, char *out, size_t capacity) {
    uint64_t anomalies = bhi_facts_anomalies(result);
    if (result->verdict == BHI_CHAOS_VALID) {
        snprintf(out, capacity, "every promise was kept");
    } else if (result->verdict == BHI_CHAOS_UNKNOWN) {
        snprintf(out, capacity, "this run proves nothing%s",
                 result->cut_short ? ": it was cut short" : "");
    } else {
        snprintf(out, capacity, "a promise was broken %llu time%s", (unsigned long long)anomalies,
                 anomalies == 1 ? "" : "s");
    }
    return out;
}

bool bhi_facts_buckets(const struct bhi_chaos_result *result, unsigned *out_first,
                       unsigned *out_end) {
    *out_first = *out_end = 0;
    for (unsigned i = 0; i < BHI_RECOVERY_BUCKETS; i++) {
        if (!result->recovery[i]) {
            continue;
        }
        if (!*out_end) {
            *out_first = i;
        }
        *out_end = i + 1;
    }
    return *out_end > 0;
}

uint64_t bhi_facts_bucket_from(unsigned bucket) {
    return bucket ? (UINT64_C(100000) << bucket) : 0;
}

uint64_t bhi_facts_bucket_to(unsigned bucket) {
    return bucket + 1 < BHI_RECOVERY_BUCKETS ? UINT64_C(100000) << (bucket + 1) : UINT64_MAX;
}

uint64_t bhi_facts_bucket_most(const struct bhi_chaos_result *result) {
    uint64_t most = 0;
    for (unsigned i = 0; i < BHI_RECOVERY_BUCKETS; i++) {
        if (result->recovery[i] > most) {
            most = result->recovery[i];
        }
    }
    return most;
}

bool bhi_facts_memory(const struct bhi_history *history, size_t index,
                      const struct bhi_record **out_first, const struct bhi_record **out_last) {
    *out_first = *out_last = NULL;
    BHI_RECORDS_OF(record, history, BHI_RECORD_MEMORY) {
        if (!record->memory.last && !*out_first && index-- == 0) {
            *out_first = record;
        } else if (record->memory.last && *out_first &&
                   strcmp(record->memory.device, (*out_first)->memory.device) == 0) {
            *out_last = record;
        }
    }
    return *out_first;
}
