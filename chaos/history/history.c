#include "chaos/history/history.h"

#include "base/array.h"

#include <stdlib.h>

void bhi_history_init(struct bhi_history *history) {
    *history = (struct bhi_history){.header.schema = 1};
}

void bhi_history_note(struct bhi_history *history, const struct bhi_record *record) {
    if (history->overflow) {
        return; /* records after a gap prove nothing */
    }
    if (!BHI_ARRAY_RESERVE(history->records, history->capacity, history->count + 1)) {
        history->overflow = true;
        return;
    }
    history->records[history->count++] = *record;
}

uint64_t bhi_history_last_op(const struct bhi_history *history) {
    uint64_t last = 0;
    BHI_RECORDS(record, history) {
        if ((record->kind == BHI_RECORD_OP || record->kind == BHI_RECORD_REFUSED) &&
            record->op > last) {
            last = record->op;
        }
    }
    return last;
}

void bhi_history_free(struct bhi_history *history) {
    free(history->records);
    bhi_history_init(history);
}
