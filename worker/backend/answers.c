#include "worker/backend/answers.h"

#include "worker/backend/ops.h"

#include <bulkhead/bulkhead.h>

void bhi_answer_good(const struct bhi_answers *a, size_t place, uint64_t now_ns) {
    a->results[place] = (struct bhi_result){
        .seq = a->records[place]->seq,
        .started_ns = now_ns,
        .ended_ns = now_ns,
        .status = BH_OK,
        .command_index = BHI_NO_COMMAND,
        .executed = BH_EXECUTED_YES,
    };
    a->errors[place].status = BH_OK;
    a->errors[place].told.text[0] = '\0';
}

void bhi_answer_bad(const struct bhi_answers *a, size_t place) {
    bhi_error_result(&a->errors[place], &a->results[place]);
}

void bhi_answer_lost(const struct bhi_answers *a, const struct bhi_batch *batch,
                     const struct bhi_markers *markers, const struct bhi_error *loss) {
    const uint32_t started = atomic_load_explicit(&markers->started, memory_order_acquire);
    const uint32_t completed = atomic_load_explicit(&markers->completed, memory_order_acquire);
    for (uint32_t i = 0; i < batch->count; i++) {
        const size_t place = batch->places[i];
        const uint32_t seq = (uint32_t)a->records[place]->seq;
        if (batch->count > 1 && (int32_t)(completed - seq) >= 0) {
            continue;
        }
        a->errors[place] = *loss;
        a->errors[place].executed =
            (int32_t)(started - seq) >= 0 ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
        bhi_answer_bad(a, place);
    }
}

bool bhi_record_has_work(const struct bhi_lane_record *record) {
    const struct bhi_cmd_header *command = bhi_record_first(record);
    while (command && command->type == BHI_CMD_PREPARE) {
        command = bhi_record_next(record, command);
    }
    return command;
}

bool bhi_buffer_check(const struct bhi_backend *backend, uint64_t id, const struct bhi_error *of_it,
                      bool writes, bool writable, struct bhi_error *error) {
    if (!of_it && backend->starved) { /* it was given, and there was no memory for its entry: the
                                       * submission is not to blame */
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a buffer");
    } else if (!of_it) {
        BHI_ERROR(error, BH_REASON_BUFFER_ACCESS, NULL, .value = id, .text = "not attached");
    } else if (of_it->status != BH_OK) {
        *error = *of_it;
    } else if (writes && !writable) { /* a write would go to a copy and be lost */
        BHI_ERROR(error, BH_REASON_BUFFER_ACCESS, NULL, .value = id,
                  .text = "attached for reading only");
    } else {
        return true;
    }
    return false;
}

bool bhi_range_check(uint64_t size, const char *what, uint64_t offset, uint64_t bytes,
                     struct bhi_error *error) {
    if (offset > size || bytes > size - offset) {
        BHI_ERROR(error, BH_REASON_BINDING_RANGE, what, .value = offset + bytes, .limit = size,
                  .subject = BH_SUBJECT_BUFFER);
        return false;
    }
    return true;
}
