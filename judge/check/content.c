#include "judge/check/content.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */

bool bhi_content_make(bh_context *context, bh_stream *near, uint64_t size, bh_buffer **out_buffer,
                      struct bhi_judge_outcome *outcome) {
    bh_buffer_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.stream = near;
    options.flags = BH_BUFFER_UNINITIALIZED; /* all of it is written, here or by a trusted kernel */
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

/* Generates all inputs where they will be read, if |content| has room for them. */
static bool generate(const struct bhi_trial *of, const uint64_t *seeds, uint8_t *content,
                     struct bhi_material *out) {
    const struct bhi_task *task = out->court->task;
    bool good = true;
    for (size_t i = 0; i < out->count && good; i++) {
        const struct bhi_inputs inputs = {.begin = i * out->stride};
        void *rooms[BHI_TASK_ARRAYS] = {NULL};
        for (uint32_t k = 0; k < task->array_count; k++) {
            if (task->arrays[k].role == BHI_TASK_IN) {
                rooms[k] = content + bhi_inputs_offset(&inputs, task, of, k);
            }
        }
        good = bhi_trial_anew(task, of, seeds[i], rooms, &out->trials[i]);
    }
    return good;
}

static bool make_buffer(const struct bhi_material *material, bh_buffer **out_buffer,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_court *court = material->court;
    return bhi_content_make(court->context, court->source, material->stride * material->count,
                            out_buffer, outcome);
}

bool bhi_material_make(const struct bhi_court *court, const struct bhi_trial *of,
                       const uint64_t *seeds, size_t count, struct bhi_material *out,
                       struct bhi_judge_outcome *outcome) {
    const uint64_t stride = end_of(court->task, of, (uint32_t)court->task->array_count);
    void *content = NULL;
    *out = (struct bhi_material){.court = court, .count = count, .stride = stride};
    out->trials = calloc(count, sizeof *out->trials);
    bool good = out->trials || bhi_judge_outcome_memory(outcome);
    if (good && stride) {
        good = make_buffer(out, &out->buffers[0], outcome) &&
               bhi_content_begin(out->buffers[0], stride * count, &content, outcome);
    }
    if (good && stride && !is_mapped(out->buffers[0])) {
        out->content = content;
    }
    if (!good || !(good = generate(of, seeds, content, out) || bhi_judge_outcome_memory(outcome))) {
        bhi_material_free(out);
    }
    return good;
}

bool bhi_material_give(struct bhi_material *material, uint32_t reader, struct bhi_inputs *out,
                       struct bhi_judge_outcome *outcome) {
    /* No worker can write host memory that it only reads. It could write a device's. */
    bh_buffer **const buffer = &material->buffers[material->content ? reader : 0];
    const uint64_t size = material->stride * material->count;
    if (material->content && !material->written[reader]) {
        bh_detail detail = {0};
        if (!*buffer && !make_buffer(material, buffer, outcome)) {
            return false;
        }
        const bh_status status =
            bh_buffer_write(*buffer, 0, material->content, size, limit_ns, &detail);
        if (status != BH_OK) {
            return bhi_judge_outcome_take(outcome, status, &detail);
        }
        material->written[reader] = true;
    }
    *out = (struct bhi_inputs){.buffer = *buffer};
    return true;
}

void bhi_material_free(struct bhi_material *material) {
    for (size_t i = 0; i < material->count && material->trials; i++) {
        bhi_trial_free(material->court->task, &material->trials[i]);
    }
    for (size_t i = 0; i < BHI_MATERIAL_READERS; i++) {
        bh_buffer_release(material->buffers[i]);
    }
    free(material->trials);
    free(material->content);
    *material = (struct bhi_material){0};
}
