#include "judge/check/material.h"

#include <stdlib.h>
#include <string.h>

#include "judge/check/content.h"
#include "judge/check/maker.h"
#include "judge/check/submit.h"

/* -- outputs of timed runs ------------------------------------------------------------------- */

uint64_t bhi_lap_bytes(uint64_t bytes) {
    return (bytes + BHI_LAP_ALIGNMENT - 1) / BHI_LAP_ALIGNMENT * BHI_LAP_ALIGNMENT;
}

bool bhi_tray_fit(struct bhi_tray *tray, const struct bhi_court *court, size_t slots,
                  uint64_t stride, struct bhi_judge_outcome *outcome) {
    if (tray->buffer && tray->stride == stride && bh_buffer_size(tray->buffer) == slots * stride) {
        return true;
    }
    bhi_tray_close(tray);
    tray->stride = stride;
    return bhi_content_make(court->context, court->source, slots * stride, &tray->buffer, outcome);
}

bool bhi_tray_fill(struct bhi_tray *tray, const struct bhi_court *court, size_t first, size_t count,
                   uint32_t word, struct bhi_judge_outcome *outcome) {
    const uint64_t begin = first * tray->stride, size = count * tray->stride;
    const bh_command command = {
        .type = BH_COMMAND_FILL,
        .fill = {.dst = tray->buffer, .offset = begin, .size = size, .value = word}};
    void *content;
    if (!bhi_content_is_mapped(tray->buffer)) {
        return bhi_court_submit(court->source, &command, 1, NULL, outcome);
    }
    if (!bhi_content_begin(tray->buffer, size, &content, outcome)) {
        return false;
    }
    uint32_t *const words = (void *)((uint8_t *)content + begin);
    for (uint64_t i = 0; i < size / sizeof word; i++) {
        words[i] = word;
    }
    return true;
}

void bhi_tray_close(struct bhi_tray *tray) {
    bh_buffer_release(tray->buffer);
    *tray = (struct bhi_tray){.buffer = NULL};
}

/* -- inputs of timed runs -------------------------------------------------------------------- */

static uint64_t end_of(const struct bhi_task *task, const struct bhi_trial *trial, uint32_t count) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (task->arrays[i].role == BHI_TASK_IN) {
            end += bhi_lap_bytes(trial->arrays[i].form.bytes);
        }
    }
    return end;
}

uint64_t bhi_lap_input(const struct bhi_lap_place *place, const struct bhi_task *task,
                       const struct bhi_trial *trial, uint32_t index) {
    return place->inputs_begin + end_of(task, trial, index);
}

void bhi_material_open(const struct bhi_court *court, const struct bhi_trial *of,
                       struct bhi_material *out) {
    *out = (struct bhi_material){.court = court, .of = of};
}

static void drop_trials(struct bhi_material *material) {
    for (size_t i = 0; i < material->count && material->trials; i++) {
        bhi_trial_free(material->court->task, &material->trials[i]);
    }
}

void bhi_material_drop(struct bhi_material *material) {
    drop_trials(material);
    for (size_t i = 0; i < BHI_MATERIAL_READERS; i++) {
        bh_buffer_release(material->buffers[i]);
        material->buffers[i] = NULL;
    }
    free(material->trials);
    material->trials = NULL;
    material->count = 0;
    material->is_made = false;
    memset(material->written, 0, sizeof material->written);
}

static bool make_buffer(struct bhi_material *material, uint32_t reader,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_court *court = material->court;
    return material->buffers[reader] ||
           bhi_content_make(court->context, court->source, material->stride * material->count,
                            &material->buffers[reader], outcome);
}

/* Where they are made. */
static bool find_room(struct bhi_material *material, void **out,
                      struct bhi_judge_outcome *outcome) {
    const uint64_t size = material->stride * material->count;
    if (bhi_content_is_mapped(material->buffers[0])) {
        return bhi_content_begin(material->buffers[0], size, out, outcome);
    }
    if (material->size != size) {
        free(material->content);
        material->size = 0;
        if (!(material->content = bhi_content_room(size))) {
            return bhi_judge_outcome_memory(outcome);
        }
        material->size = size;
    }
    *out = material->content;
    return true;
}

/* |content|: where they are made; NULL: nowhere yet. */
static bool generate(struct bhi_material *material, const uint64_t *seeds, uint8_t *content,
                     struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = material->court->task;
    bool good = true;
    for (size_t i = 0; i < material->count && good; i++) {
        const struct bhi_lap_place place = {.inputs_begin = i * material->stride};
        void *rooms[BHI_TASK_ARRAYS] = {NULL};
        for (uint32_t k = 0; k < task->array_count && content; k++) {
            if (task->arrays[k].role == BHI_TASK_IN) {
                rooms[k] = content + bhi_lap_input(&place, task, material->of, k);
            }
        }
        good = bhi_trial_anew(task, material->of, seeds[i], rooms, &material->trials[i]);
    }
    return good || bhi_judge_outcome_memory(outcome);
}

/* Lists the arrays of all runs. */
static struct bhi_maker_array *list_made(const struct bhi_material *material, size_t *out_count) {
    const struct bhi_task *task = material->court->task;
    struct bhi_maker_array *const list =
        calloc(material->count * task->array_count + 1, sizeof *list);
    *out_count = 0;
    for (size_t i = 0; i < material->count && list; i++) {
        const struct bhi_lap_place place = {.inputs_begin = i * material->stride};
        for (uint32_t k = 0; k < task->array_count; k++) {
            if (task->arrays[k].role == BHI_TASK_IN) {
                list[(*out_count)++] = bhi_maker_array_of(
                    &material->trials[i].arrays[k], bhi_lap_input(&place, task, material->of, k));
            }
        }
    }
    return list;
}

/* Can the maker make all inputs of a run? */
static bool is_made(const struct bhi_material *material) {
    const struct bhi_task *task = material->court->task;
    bool can = material->court->maker;
    for (uint32_t k = 0; k < task->array_count && can; k++) {
        const struct bhi_trial_array *array = &material->trials[0].arrays[k];
        can = task->arrays[k].role != BHI_TASK_IN ||
              bhi_maker_can(material->court->maker, &array->fill.filler, array->form.dtype);
    }
    return can;
}

bool bhi_maker_open_for(const struct bhi_court *court, const struct bhi_trial *of,
                        struct bhi_maker *out, struct bhi_judge_outcome *outcome) {
    static const uint64_t seeds[1] = {0};
    struct bhi_maker_array list[BHI_TASK_ARRAYS];
    struct bhi_material material;
    size_t count = 0;
    bhi_material_open(court, of, &material);
    material.count = 1;
    material.trials = calloc(1, sizeof *material.trials);
    bool good = material.trials ? generate(&material, seeds, NULL, outcome)
                                : bhi_judge_outcome_memory(outcome);
    for (uint32_t k = 0; k < court->task->array_count && good; k++) {
        if (court->task->arrays[k].role < BHI_TASK_OUT) {
            list[count++] = bhi_maker_array_of(&material.trials[0].arrays[k], 0);
        }
    }
    good = good && bhi_maker_open(court, court->source, list, count, out, outcome);
    bhi_material_drop(&material);
    return good;
}

bool bhi_material_make(struct bhi_material *material, const uint64_t *seeds, size_t count,
                       struct bhi_judge_outcome *outcome) {
    const struct bhi_court *court = material->court;
    void *content = NULL;
    bhi_material_drop(material);
    material->stride = end_of(court->task, material->of, (uint32_t)court->task->array_count);
    material->count = count;
    material->trials = calloc(count, sizeof *material->trials);
    bool good = (material->trials || bhi_judge_outcome_memory(outcome)) &&
                generate(material, seeds, NULL, outcome);
    if (good && material->stride && !(material->is_made = is_made(material))) {
        drop_trials(material);
        good = make_buffer(material, 0, outcome) && find_room(material, &content, outcome) &&
               generate(material, seeds, content, outcome);
    }
    if (!good) {
        bhi_material_drop(material);
    }
    return good;
}

/* Of a device: the reader's own. */
static bool write_own(struct bhi_material *material, uint32_t reader,
                      struct bhi_judge_outcome *outcome) {
    bh_buffer *const buffer = material->buffers[reader];
    if (!material->is_made) {
        return bhi_content_write(buffer, 0, material->content, material->size, outcome);
    }
    size_t count;
    struct bhi_maker_array *const list = list_made(material, &count);
    const bool good = list ? bhi_maker_make(material->court->maker, list, count, buffer, outcome)
                           : bhi_judge_outcome_memory(outcome);
    free(list);
    return good;
}

bool bhi_material_give(struct bhi_material *material, uint32_t reader, size_t index,
                       struct bhi_lap_place *out, struct bhi_judge_outcome *outcome) {
    /* No worker can write host memory that it only reads. It could write a device's. */
    const bool alone = material->content || material->is_made;
    const uint32_t own = alone ? reader : 0;
    if (alone && !material->written[reader]) {
        if (!make_buffer(material, own, outcome) || !write_own(material, own, outcome)) {
            return false;
        }
        material->written[reader] = true;
    }
    out->inputs = material->buffers[own];
    out->inputs_begin = index * material->stride;
    return true;
}

void bhi_material_close(struct bhi_material *material) {
    bhi_material_drop(material);
    free(material->content);
    *material = (struct bhi_material){0};
}
