#include "judge/check/content.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */

bool bhi_content_make(bh_context *context, bh_stream *near, uint64_t size, bh_buffer **out_buffer,
                      struct bhi_judge_outcome *outcome) {
    bh_buffer_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.stream = near;
    options.memory = near ? BH_MEMORY_AUTO : BH_MEMORY_HOST;
    const bh_status status = bh_buffer_create(context, size, &options, out_buffer, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

static bool is_mapped(const bh_buffer *buffer) {
    return bh_buffer_memory(buffer) == BH_MEMORY_HOST;
}

static bool map(bh_buffer *buffer, bh_map_intent intent, void **out_room,
                struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    const bh_status status = bh_buffer_map(buffer, intent, limit_ns, out_room, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

static bool allocate(uint64_t size, void **out_room, struct bhi_judge_outcome *outcome) {
    *out_room = malloc(size);
    return *out_room || bhi_judge_outcome_memory(outcome);
}

bool bhi_content_begin(bh_buffer *buffer, uint64_t size, void **out_room,
                       struct bhi_judge_outcome *outcome) {
    return is_mapped(buffer) ? map(buffer, BH_MAP_DISCARD, out_room, outcome)
                             : allocate(size, out_room, outcome);
}

bool bhi_content_commit(bh_buffer *buffer, uint64_t size, void *room,
                        struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    if (is_mapped(buffer)) {
        return true;
    }
    const bh_status status = bh_buffer_write(buffer, 0, room, size, limit_ns, &detail);
    free(room);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_content_read(bh_buffer *buffer, uint64_t size, void **out_room,
                      struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    if (is_mapped(buffer)) {
        return map(buffer, BH_MAP_READ, out_room, outcome);
    }
    if (!allocate(size, out_room, outcome)) {
        return false;
    }
    const bh_status status = bh_buffer_read(buffer, 0, *out_room, size, limit_ns, &detail);
    if (status != BH_OK) {
        free(*out_room);
    }
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

void bhi_content_leave(bh_buffer *buffer, void *room) {
    if (!is_mapped(buffer)) {
        free(room);
    }
}

/* -- inputs of timed runs -------------------------------------------------------------------- */

enum { ALIGNMENT = 4096 }; /* no device asks for more */

static uint64_t end_of(const struct bhi_task *task, const struct bhi_trial *trial, uint32_t count) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (task->arrays[i].role == BHI_TASK_IN) {
            end += (trial->arrays[i].form.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    }
    return end;
}

uint64_t bhi_inputs_offset(const struct bhi_inputs *inputs, const struct bhi_task *task,
                           const struct bhi_trial *trial, uint32_t index) {
    return inputs->begin + end_of(task, trial, index);
}

static void fill(const struct bhi_task *task, const struct bhi_trial *trial,
                 const struct bhi_inputs *inputs, uint8_t *content) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        if (task->arrays[i].role == BHI_TASK_IN) {
            memcpy(content + bhi_inputs_offset(inputs, task, trial, i), trial->arrays[i].before,
                   trial->arrays[i].form.bytes);
        }
    }
}

bool bhi_inputs_make(const struct bhi_court *court, const struct bhi_trial *trials, size_t count,
                     bh_buffer **out_buffer, uint64_t *out_stride,
                     struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    const uint64_t stride = end_of(task, trials, (uint32_t)task->array_count);
    void *content;
    *out_buffer = NULL;
    *out_stride = stride;
    if (!stride) {
        return true;
    }
    if (!bhi_content_make(court->context, court->source, stride * count, out_buffer, outcome) ||
        !bhi_content_begin(*out_buffer, stride * count, &content, outcome)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct bhi_inputs inputs = {.begin = i * stride};
        fill(task, &trials[i], &inputs, content);
    }
    return bhi_content_commit(*out_buffer, stride * count, content, outcome);
}
