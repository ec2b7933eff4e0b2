/* Which histories can be replayed. */
#include "chaos/check/ledger.h"
#include "chaos/engine/engine.h"

#include <stdio.h>

typedef unsigned long long ull;

/* Returns the line in a file, where the header is line 1. */
static size_t line_of(const struct bhi_history *history, const struct bhi_record *record) {
    return (size_t)(record - history->records) + 2;
}

static bool can_inject(const struct bhi_history *history, struct bhi_complaint *complaint) {
    const uint64_t last = bhi_history_last_op(history);
    BHI_RECORDS(record, history) {
        const size_t line = line_of(history, record);
        if (record->kind != BHI_RECORD_FAULT) {
            continue;
        }
        if (!(history->header.fault_set & 1u << record->fault.kind)) {
            return bhi_refuse(complaint, "line %zu: 'fault' is %s, which line 1 does not have",
                              line, bhi_fault_name(record->fault.kind));
        }
        if (record->fault.after_op > last) {
            return bhi_refuse(complaint,
                              "line %zu: 'after_op' is %llu, and the last operation is %llu", line,
                              (ull)record->fault.after_op, (ull)last);
        }
    }
    return true;
}

/* A replay uses the numbers in the order of the records. */
static bool follow(const struct bhi_history *history, struct bhi_complaint *complaint) {
    uint64_t op = 0, fault = 0;
    BHI_RECORDS(record, history) {
        const bool is_op = record->kind == BHI_RECORD_OP;
        if (!is_op && record->kind != BHI_RECORD_FAULT) {
            continue;
        }
        uint64_t *last = is_op ? &op : &fault;
        const uint64_t number = is_op ? record->op : record->fault.number;
        if (number <= *last) {
            return bhi_refuse(
                complaint, "line %zu: the history contradicts itself: %s %llu comes after %llu",
                line_of(history, record), is_op ? "operation" : "fault", (ull)number, (ull)*last);
        }
        *last = number;
    }
    return true;
}

struct doubt {
    const struct bhi_record *record; /* the first; NULL: none */
    char text[256];
};

/* Doubts about how an operation ended do not count, because a replay runs it again. */
static void take_doubt(void *user, const struct bhi_record *record, const char *text) {
    struct doubt *doubt = user;
    if (doubt->record || record->kind == BHI_RECORD_END || record->kind == BHI_RECORD_RESULT) {
        return;
    }
    doubt->record = record;
    snprintf(doubt->text, sizeof doubt->text, "%s", text);
}

/* A replay leaves out what is impossible; what is left would be another run. */
static bool is_consistent(const struct bhi_history *history, struct bhi_complaint *complaint) {
    struct bhi_ledger ledger;
    struct doubt doubt = {.record = NULL};
    if (!bhi_ledger_init(&ledger, history, take_doubt, &doubt)) {
        return bhi_refuse(complaint, "out of memory");
    }
    bhi_ledger_fini(&ledger);
    return !doubt.record || bhi_refuse(complaint, "line %zu: the history contradicts itself: %s",
                                       line_of(history, doubt.record), doubt.text);
}

bool bhi_engine_can_replay(const struct bhi_history *history, struct bhi_complaint *complaint) {
    const struct bhi_history_header *header = &history->header;
    if (header->streams < 1 || header->streams > BHI_ENGINE_STREAMS) {
        return bhi_refuse(complaint, "it has %u streams; a replay takes 1 to %d", header->streams,
                          BHI_ENGINE_STREAMS);
    }
    if (!header->fault_set || !(header->rate > 0)) {
        return bhi_refuse(complaint, "the run had no faults");
    }
    size_t operations = 0;
    BHI_RECORDS(record, history) {
        if (record->kind != BHI_RECORD_OP || record->submit.bait) {
            continue;
        }
        if (!record->submit.work.words) {
            return bhi_refuse(complaint,
                              "operation %llu has 0 words: an empty operation cannot be submitted",
                              (ull)record->op);
        }
        operations++;
    }
    if (!operations) {
        return bhi_refuse(complaint, "it has no operation to submit again");
    }
    return can_inject(history, complaint) && follow(history, complaint) &&
           is_consistent(history, complaint);
}
