#include "judge/check/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "formats/dtype.h"
#include "tool/npy_file.h"

static bool is_same_form(const struct bhi_array *a, const struct bhi_array *b) {
    return a->dtype == b->dtype && a->dimensions == b->dimensions &&
           !memcmp(a->shape, b->shape, a->dimensions * sizeof a->shape[0]);
}

/* Reads a .npy of the type and shape |form|. */
static bool read_file(const struct bhi_task_file *named, const struct bhi_array *form, void *out,
                      struct bhi_complaint *complaint) {
    struct bhi_npy_file file;
    struct bhi_complaint inner;
    if (!bhi_npy_file_open(named->path, &file, &inner)) {
        return bhi_refuse(complaint, "%.400s: %.200s: %.500s", named->field, named->path,
                          inner.text);
    }
    bool good = is_same_form(&file.array, form)
                    ? bhi_npy_file_read(&file, out, &inner)
                    : bhi_refuse(&inner, "its type or shape is not the one in the task");
    bhi_npy_file_close(&file);
    return good ||
           bhi_refuse(complaint, "%.400s: %.200s: %.500s", named->field, named->path, inner.text);
}

static bool make_array(const struct bhi_task *task, struct bhi_trial *trial, uint32_t number,
                       uint32_t index, struct bhi_complaint *complaint) {
    const struct bhi_task_array *array = &task->arrays[index];
    struct bhi_trial_array *out = &trial->arrays[index];
    if (!bhi_task_shape(task, trial->size, array, &out->form, complaint)) {
        return false;
    }
    out->count = out->form.bytes / bhi_dtype_size(array->dtype);
    trial->bytes += out->form.bytes;
    if (array->role != BHI_TASK_OUT && !(out->before = malloc(out->form.bytes))) {
        return bhi_refuse_memory(complaint);
    }
    if (array->expected.path) {
        out->expected = malloc(out->form.bytes);
        if (!out->expected) {
            return bhi_refuse_memory(complaint);
        }
        if (!read_file(&array->expected, &out->form, out->expected, complaint)) {
            return false;
        }
    }
    if (array->role == BHI_TASK_OUT) {
        return true;
    }
    if (array->filler.kind == BHI_FILLER_FILE) {
        return read_file(&array->file, &out->form, out->before, complaint);
    }
    const struct bhi_filler_place place = {.seed = trial->seed, .trial = number, .array = index};
    bhi_filler_fill(&array->filler, place, array->dtype, out->count, out->before);
    return true;
}

static int compare_trials(const void *a, const void *b) {
    const struct bhi_trial *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? -1 : 1;
    }
    return x->size != y->size ? (x->size < y->size ? -1 : 1) : (int)x->hidden - (int)y->hidden;
}

bool bhi_trials_make(const struct bhi_task *task, const uint64_t *hidden_seeds, size_t hidden_count,
                     struct bhi_trials *out, struct bhi_complaint *complaint) {
    /* Where all inputs are files, a seed changes nothing. */
    const size_t seeds = bhi_task_is_fixed(task) ? 1 : task->seed_count + hidden_count;
    *out = (struct bhi_trials){.list = calloc(task->size_count * seeds, sizeof *out->list)};
    if (!out->list) {
        return bhi_refuse_memory(complaint);
    }
    for (size_t i = 0; i < task->size_count * seeds; i++) {
        const size_t seed = i % seeds;
        /* Everybody knows what is to come out for the task's own seeds. */
        const size_t first =
            task->sizes[i / seeds].hidden && seeds > task->seed_count ? task->seed_count : 0;
        if (seed < first) {
            continue;
        }
        struct bhi_trial *trial = &out->list[out->count++];
        trial->size = i / seeds;
        trial->hidden = seed >= task->seed_count;
        trial->repeats = seed == first;
        if (!trial->hidden) {
            trial->seed = task->seeds[seed];
        } else if (seed - task->seed_count < hidden_count) {
            trial->seed = hidden_seeds[seed - task->seed_count];
        }
        trial->arrays = calloc(task->array_count, sizeof *trial->arrays);
        bool good = trial->arrays || bhi_refuse_memory(complaint);
        for (uint32_t k = 0; k < task->array_count && good; k++) {
            /* By size: arrays of one seed are the same, however many seeds there are. */
            good = make_array(task, trial, (uint32_t)trial->size, k, complaint);
        }
        if (!good) {
            bhi_trials_free(task, out);
            return false;
        }
    }
    qsort(out->list, out->count, sizeof *out->list, compare_trials);
    return true;
}

static bool make_anew(const struct bhi_task_array *array, const struct bhi_trial_array *of,
                      struct bhi_filler_place place, struct bhi_trial_array *out) {
    *out = (struct bhi_trial_array){.form = of->form, .count = of->count};
    if (array->role == BHI_TASK_OUT) {
        return true;
    }
    if (!(out->before = malloc(of->form.bytes))) {
        return false;
    }
    if (array->filler.kind == BHI_FILLER_FILE) {
        memcpy(out->before, of->before, of->form.bytes);
    } else {
        bhi_filler_fill(&array->filler, place, array->dtype, of->count, out->before);
    }
    return true;
}

bool bhi_trial_anew(const struct bhi_task *task, const struct bhi_trial *of, uint64_t seed,
                    struct bhi_trial *out) {
    *out = *of;
    out->timed = true;
    out->arrays = calloc(task->array_count, sizeof *out->arrays);
    for (uint32_t i = 0; out->arrays && i < task->array_count; i++) {
        const struct bhi_filler_place place = {.seed = seed, .array = i};
        if (!make_anew(&task->arrays[i], &of->arrays[i], place, &out->arrays[i])) {
            bhi_trial_free(task, out);
        }
    }
    return out->arrays;
}

void bhi_trial_free(const struct bhi_task *task, struct bhi_trial *trial) {
    for (size_t k = 0; k < task->array_count && trial->arrays; k++) {
        free(trial->arrays[k].before);
        free(trial->arrays[k].expected);
    }
    free(trial->arrays);
    trial->arrays = NULL;
}

void bhi_trials_free(const struct bhi_task *task, struct bhi_trials *trials) {
    for (size_t i = 0; i < trials->count; i++) {
        bhi_trial_free(task, &trials->list[i]);
    }
    free(trials->list);
    *trials = (struct bhi_trials){0};
}

/* -- positions ------------------------------------------------------------------------------- */

void bhi_position_of(const struct bhi_array *form, uint64_t index, uint64_t out_along[]) {
    for (uint32_t i = form->dimensions; i-- > 0;) {
        out_along[i] = index % form->shape[i];
        index /= form->shape[i];
    }
}

const char *bhi_position_text(const char *place, const struct bhi_array *form, uint64_t index,
                              char out[BHI_POSITION_TEXT]) {
    uint64_t along[BHI_MAX_DIMENSIONS];
    bhi_position_of(form, index, along);
    size_t used = (size_t)bhi_format(out, BHI_POSITION_TEXT, "%.60s[", place);
    for (uint32_t i = 0; i < form->dimensions && used < BHI_POSITION_TEXT; i++) {
        used += (size_t)bhi_format(out + used, BHI_POSITION_TEXT - used, "%s%" PRIu64, i ? "," : "",
                                   along[i]);
    }
    if (used < BHI_POSITION_TEXT) {
        snprintf(out + used, BHI_POSITION_TEXT - used, "]");
    }
    return out;
}
