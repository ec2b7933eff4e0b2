#include "chaos/history/device_memory.h"

/* By how much more is in use of which |first| and |last| bytes were in use, without what is of
 * others. */
static uint64_t grown_from(const struct bhi_record *first, uint64_t used_first,
                           const struct bhi_record *last, uint64_t used_last) {
    const bool listed = first->memory.listed && last->memory.listed;
    /* Numbers of a file may be anything: they are compared, and not added up. */
    const double before = (double)used_first - (listed ? (double)first->memory.others : 0);
    const double after = (double)used_last - (listed ? (double)last->memory.others : 0);
    const double grown = after - before;
    return grown <= 0 ? 0 : grown >= (double)INT64_MAX ? INT64_MAX : (uint64_t)grown;
}

static uint64_t in_use(const struct bhi_record *look) {
    const uint64_t total = look->memory.total, unused = look->memory.unused;
    return total > unused ? total - unused : 0;
}

uint64_t bhi_device_grown(const struct bhi_record *first, const struct bhi_record *last,
                          const char **out_by) {
    const bool budget = first->memory.budget && last->memory.budget;
    const bool nvml = first->memory.nvml && last->memory.nvml;
    const uint64_t by_budget = budget ? grown_from(first, in_use(first), last, in_use(last)) : 0;
    const uint64_t by_nvml =
        nvml ? grown_from(first, first->memory.used, last, last->memory.used) : 0;
    if (out_by) {
        *out_by = by_nvml > by_budget ? "NVML" : "its driver";
    }
    return by_nvml > by_budget ? by_nvml : by_budget;
}

bool bhi_device_busier(const struct bhi_record *first, const struct bhi_record *last) {
    const bool known = first->memory.utilised && last->memory.utilised;
    const bool alone = !last->memory.listed || !last->memory.other_processes;
    return known && alone &&
           last->memory.utilisation > first->memory.utilisation + BHI_CHAOS_DEVICE_BUSIER;
}

bool bhi_device_told(const struct bhi_record *first, const struct bhi_record *last) {
    return (!first->memory.budget || last->memory.budget) &&
           (!first->memory.nvml || last->memory.nvml) &&
           (!first->memory.utilised || last->memory.utilised);
}

bool bhi_device_clean(const struct bhi_record *first, const struct bhi_record *last) {
    return bhi_device_told(first, last) &&
           bhi_device_grown(first, last, NULL) <= BHI_CHAOS_DEVICE_BYTES &&
           !bhi_device_busier(first, last);
}
