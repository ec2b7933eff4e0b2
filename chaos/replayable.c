/* Which histories can be replayed. */
#include "engine.h"

static bool can_inject(const struct bhi_history *history, struct bhi_complaint *complaint) {
    const uint64_t last = bhi_history_last_op(history);
    for (size_t i = 0; i < history->count; i++) {
        const struct bhi_record *record = &history->records[i];
        const size_t line = i + 2; /* in a file, where the header is line 1 */
        if (record->kind != BHI_RECORD_FAULT)
            continue;
        if (!(history->header.fault_set & 1u << record->fault.kind))
            return bhi_refuse(complaint, "line %zu: 'fault' is %s, which line 1 does not have",
                              line, bhi_fault_name(record->fault.kind));
        if (record->fault.after_op > last)
            return bhi_refuse(complaint,
                              "line %zu: 'after_op' is %llu, and the last operation is %llu", line,
                              (unsigned long long)record->fault.after_op, (unsigned long long)last);
    }
    return true;
}

bool bhi_engine_can_replay(const struct bhi_history *history, struct bhi_complaint *complaint) {
    const struct bhi_history_header *header = &history->header;
    if (header->streams < 1 || header->streams > BHI_ENGINE_STREAMS)
        return bhi_refuse(complaint, "it has %u streams, and a replay can have 1 to %d",
                          header->streams, BHI_ENGINE_STREAMS);
    if (!header->fault_set || !(header->rate > 0))
        return bhi_refuse(complaint, "it is of a run without faults");
    size_t operations = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct bhi_record *record = &history->records[i];
        if (record->kind != BHI_RECORD_OP || record->submit.bait)
            continue;
        if (!record->submit.work.words)
            return bhi_refuse(complaint, "operation %llu has no words, and none can be submitted",
                              (unsigned long long)record->op);
        operations++;
    }
    if (!operations)
        return bhi_refuse(complaint, "there is no operation in it to be submitted again");
    return can_inject(history, complaint);
}
