#include "chaos/history/history.h"
#include "chaos/history/fields.h"

#include <stdlib.h>
#include <string.h>

const char *bhi_fault_name(enum bhi_fault_kind kind) {
    return kind < BHI_FAULT_KINDS ? bhi_fault_names[kind] : "unknown";
}

static bool parse_one(const char *name, size_t length, uint32_t *set) {
    for (uint32_t kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (strlen(bhi_fault_names[kind]) == length &&
            !memcmp(bhi_fault_names[kind], name, length)) {
            *set |= 1u << kind;
            return true;
        }
    }
    return false;
}

bool bhi_fault_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint) {
    uint32_t set = 0;
    for (const char *name = list;;) {
        size_t length = strcspn(name, ",");
        if (!parse_one(name, length, &set))
            return bhi_refuse(complaint,
                              "'%.*s' is no fault: kill, segv, stop, hang, oom, garbage, close, "
                              "zygote, slow, full (a list with commas)",
                              (int)(length < 64 ? length : 64), name);
        if (!name[length])
            break;
        name += length + 1;
    }
    *out_set = set;
    return true;
}

void bhi_history_init(struct bhi_history *history) {
    *history = (struct bhi_history){.header.schema = 1};
}

void bhi_history_note(struct bhi_history *history, const struct bhi_record *record) {
    if (history->overflow)
        return; /* what comes behind a gap proves nothing */
    if (history->count == history->capacity) {
        size_t capacity = history->capacity ? history->capacity + history->capacity / 2 : 1024;
        struct bhi_record *records =
            reallocarray(history->records, capacity, sizeof *history->records);
        if (!records) {
            history->overflow = true;
            return;
        }
        history->records = records;
        history->capacity = capacity;
    }
    history->records[history->count++] = *record;
}

uint64_t bhi_history_last_op(const struct bhi_history *history) {
    uint64_t last = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct bhi_record *record = &history->records[i];
        if ((record->kind == BHI_RECORD_OP || record->kind == BHI_RECORD_REFUSED) &&
            record->op > last)
            last = record->op;
    }
    return last;
}

void bhi_history_free(struct bhi_history *history) {
    free(history->records);
    bhi_history_init(history);
}
