#include "judge/check/inputs.h"

#include <string.h>

#include "judge/check/content.h"

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
