/* Leaks on the device: after the run it must have as much memory as before, and do nothing. The
 * engine has waited for that. */
#include "chaos/check/rules.h"

#include <string.h>

#include "chaos/history/device_memory.h"

typedef unsigned long long ull;

/* Returns the last look at the device of |first|, or NULL. */
static const struct bhi_record *last_look(const struct bhi_history *history,
                                          const struct bhi_record *first) {
    const struct bhi_record *found = NULL;
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_MEMORY && record->memory.last &&
            strcmp(record->memory.device, first->memory.device) == 0) {
            found = record;
        }
    }
    return found;
}

static void check_one(struct bhi_check *check, const struct bhi_record *first) {
    const char *by;
    const struct bhi_record *last = last_look(check->history, first);
    if (!last || !bhi_device_told(first, last)) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, last ? last : first,
                 "leaks on %.47s cannot be judged: %s", first->memory.device,
                 last ? "it reported fewer numbers of its memory after the run than before"
                      : "its memory was not read after the run");
        return;
    }
    const uint64_t grown = bhi_device_grown(first, last, &by);
    if (grown > BHI_CHAOS_DEVICE_BYTES) {
        bhi_find(check, BHI_ANOMALY_LEAK, 0, last,
                 "device memory leaked: %.47s has %llu MiB more in use than before the run, says "
                 "%s, still after %.1f s",
                 first->memory.device, (ull)(grown >> 20), by,
                 (double)last->memory.waited_ns / 1e9);
    }
    if (bhi_device_busier(first, last)) {
        bhi_find(check, BHI_ANOMALY_LEAK, 0, last,
                 "%.47s is still busy %.1f s after the run: %u %% of the time, before it %u %%",
                 first->memory.device, (double)last->memory.waited_ns / 1e9,
                 last->memory.utilisation, first->memory.utilisation);
    }
}

void bhi_check_device(struct bhi_check *check) {
    BHI_RECORDS(record, check->history) {
        if (record->kind == BHI_RECORD_MEMORY && !record->memory.last) {
            check_one(check, record);
        }
    }
}
