#include "judge/check/trial.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/sort.h"
#include "formats/dtype.h"
#include "tool/npy_file.h"

/* Of small floats a file has the bits. */
static bool is_same_form(const struct bhi_array *a, const struct bhi_array *b) {
    return !strcmp(bhi_dtype_npy_code(a->dtype), bhi_dtype_npy_code(b->dtype)) &&
           a->dimensions == b->dimensions &&
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

void bhi_trial_write(const struct bhi_trial_array *array, uint64_t count, void *out) {
    if (array->before) {
        memcpy(out, array->before, count * bhi_dtype_size(array->form.dtype));
    } else {
        bhi_arrange(array->fill.arrangement, &array->fill.filler, array->place, array->form.dtype,
                    count, out);
    }
}

/* All sizes have the same content: |form| is that of the file, or it is refused. */
static bool take_file(const struct bhi_task_array *array, void **file, struct bhi_trial_array *out,
                      struct bhi_complaint *complaint) {
    if (!*file && !(*file = malloc(out->form.bytes))) {
        return bhi_refuse_memory(complaint);
    }
    out->before = *file;
    out->lent = true;
    return read_file(&array->file, &out->form, *file, complaint);
}

static bool make_array(const struct bhi_task *task, struct bhi_trials *trials,
                       struct bhi_trial *trial, uint32_t index, struct bhi_complaint *complaint) {
    const struct bhi_task_array *array = &task->arrays[index];
    struct bhi_trial_array *out = &trial->arrays[index];
    if (!bhi_task_shape(task, trial->size, array, &out->form, complaint)) {
        return false;
    }
    out->count = out->form.bytes / bhi_dtype_size(array->dtype);
    trial->bytes += out->form.bytes;
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
        return take_file(array, &trials->files[index], out, complaint);
    }
    /* By size: arrays of one seed are the same, however many seeds there are. */
    out->place = (struct bhi_filler_place){
        .seed = trial->seed, .trial = (uint32_t)trial->size, .array = index};
    out->fill = (struct bhi_task_fill){.filler = array->filler, .ends = array->ends};
    if (trial->fill && trial->fill <= array->fill_count) {
        out->fill = array->fills[trial->fill - 1];
    }
    if (out->count &&
        !bhi_task_end_filler(task, trial->size, &out->fill.ends, &out->fill.filler, complaint)) {
        return false;
    }
    if (trials->kept + out->form.bytes <= BHI_TRIALS_LEAST) {
        void *content = malloc(out->form.bytes);
        if (!content) {
            return bhi_refuse_memory(complaint);
        }
        bhi_trial_write(out, out->count, content);
        out->before = content;
        trials->kept += out->form.bytes;
    }
    return true;
}

static int compare_trials(const void *a, const void *b) {
    const struct bhi_trial *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? -1 : 1;
    }
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return x->fill != y->fill ? BHI_COMPARE(x->fill, y->fill) : (int)x->hidden - (int)y->hidden;
}

/* -- fills ----------------------------------------------------------------------------------- */

static size_t count_fills(const struct bhi_task *task) {
    size_t count = 0;
    for (size_t i = 0; i < task->array_count; i++) {
        count = task->arrays[i].fill_count > count ? task->arrays[i].fill_count : count;
    }
    return count;
}

/* The largest of those that are quick, or the smallest. */
static size_t find_quick_size(const struct bhi_trials *trials) {
    static const uint64_t quick_bytes = 1 << 20;
    const struct bhi_trial *found = &trials->list[0];
    for (size_t i = 0; i < trials->count; i++) {
        const struct bhi_trial *trial = &trials->list[i];
        if (trial->bytes <= quick_bytes ? trial->bytes > found->bytes || found->bytes > quick_bytes
                                        : trial->bytes < found->bytes) {
            found = trial;
        }
    }
    return found->size;
}

const char *bhi_trial_fill_text(const struct bhi_task *task, const struct bhi_trial *trial,
                                char out[BHI_FILL_TEXT]) {
    out[0] = '\0';
    return trial->fill ? bhi_task_fill_text(task, trial->fill - 1, out) : out;
}

const char *bhi_trial_text(const struct bhi_task *task, const struct bhi_trial *trial,
                           char out[BHI_TRIAL_TEXT]) {
    char size[BHI_SIZE_TEXT], fill[BHI_FILL_TEXT];
    (void)bhi_task_size_text(task, trial->size, size);
    if (trial->timed) {
        bhi_format(out, BHI_TRIAL_TEXT, "%s, a timed run", size);
        return out;
    }
    (void)bhi_trial_fill_text(task, trial, fill);
    bhi_format(out, BHI_TRIAL_TEXT, "%s%s, %sseed %" PRIu64 "%s%s",
               task->sizes[trial->size].hidden ? "hidden size " : "", size,
               trial->hidden ? "hidden " : "", trial->seed, *fill ? ", inputs: " : "", fill);
    return out;
}

unsigned bhi_trial_runs(const struct bhi_task *task, const struct bhi_trial *trial) {
    return trial->repeats ? 1 + task->repeats : 1;
}

bool bhi_trial_is_lenient(const struct bhi_task *task, const struct bhi_trial *trial) {
    return trial->fill && task->default_fills;
}

void bhi_trials_drop(const struct bhi_task *task, struct bhi_trials *trials, size_t index) {
    bhi_trial_free(task, &trials->list[index]);
    trials->count--;
    memmove(&trials->list[index], &trials->list[index + 1],
            (trials->count - index) * sizeof *trials->list);
}

/* -- the list -------------------------------------------------------------------------------- */

/* Appends a trial, of the |seed|th of the task's seeds and the hidden ones. */
static bool append(const struct bhi_task *task, const uint64_t *hidden_seeds,
                   struct bhi_trial trial, size_t seed, struct bhi_trials *out,
                   struct bhi_complaint *complaint) {
    trial.hidden = seed >= task->seed_count;
    trial.seed = !trial.hidden  ? task->seeds[seed]
                 : hidden_seeds ? hidden_seeds[seed - task->seed_count]
                                : 0;
    trial.arrays = calloc(task->array_count, sizeof *trial.arrays);
    bool good = trial.arrays || bhi_refuse_memory(complaint);
    out->list[out->count] = trial;
    for (uint32_t k = 0; k < task->array_count && good; k++) {
        good = make_array(task, out, &out->list[out->count], k, complaint);
    }
    out->count++;
    return good;
}

/* With the last seed, which is a hidden one. */
static bool append_fills(const struct bhi_task *task, const uint64_t *hidden_seeds, size_t seeds,
                         struct bhi_trials *out, struct bhi_complaint *complaint) {
    const size_t quick = find_quick_size(out), fills = count_fills(task);
    bool good = true;
    for (size_t size = 0; size < task->size_count; size++) {
        for (uint32_t fill = 1; fill <= fills && good && (!task->default_fills || size == quick);
             fill++) {
            good = append(task, hidden_seeds, (struct bhi_trial){.size = size, .fill = fill},
                          seeds - 1, out, complaint);
        }
    }
    return good;
}

bool bhi_trials_make(const struct bhi_task *task, const uint64_t *hidden_seeds, size_t hidden_count,
                     struct bhi_trials *out, struct bhi_complaint *complaint) {
    /* Where all inputs are files, a seed changes nothing. */
    const size_t seeds = bhi_task_is_fixed(task) ? 1 : task->seed_count + hidden_count;
    bool good = true;
    *out = (struct bhi_trials){
        .list = calloc(task->size_count * (seeds + count_fills(task)) + 1, sizeof *out->list)};
    if (!out->list) {
        return bhi_refuse_memory(complaint);
    }
    for (size_t i = 0; i < task->size_count * seeds && good; i++) {
        const size_t seed = i % seeds, size = i / seeds;
        /* Everybody knows what is to come out for the task's own seeds. */
        const size_t first =
            task->sizes[size].hidden && seeds > task->seed_count ? task->seed_count : 0;
        if (seed >= first) {
            const struct bhi_trial trial = {.size = size, .repeats = seed == first};
            good = append(task, hidden_count ? hidden_seeds : NULL, trial, seed, out, complaint);
        }
    }
    if (!good || !append_fills(task, hidden_count ? hidden_seeds : NULL, seeds, out, complaint)) {
        bhi_trials_free(task, out);
        return false;
    }
    qsort(out->list, out->count, sizeof *out->list, compare_trials);
    return true;
}

static void make_anew(const struct bhi_task *task, size_t size, struct bhi_filler_place place,
                      const struct bhi_trial_array *of, void *room, struct bhi_trial_array *out) {
    const struct bhi_task_array *array = &task->arrays[place.array];
    *out = (struct bhi_trial_array){.form = of->form,
                                    .count = of->count,
                                    .fill = {.filler = array->filler},
                                    .place = place,
                                    .lent = true};
    if (array->filler.kind == BHI_FILLER_FILE) {
        out->before = of->before;
    } else {
        struct bhi_complaint unused; /* |of| was made with the same ends */
        (void)bhi_task_end_filler(task, size, &array->ends, &out->fill.filler, &unused);
    }
    if (room) {
        bhi_trial_write(out, out->count, room);
        out->before = room;
    }
}

bool bhi_trial_anew(const struct bhi_task *task, const struct bhi_trial *of, uint64_t seed,
                    void *const rooms[], struct bhi_trial *out) {
    *out = *of;
    out->timed = true;
    out->forgotten = false;
    out->arrays = calloc(task->array_count, sizeof *out->arrays);
    for (uint32_t i = 0; out->arrays && i < task->array_count; i++) {
        const struct bhi_filler_place place = {.seed = seed, .array = i};
        make_anew(task, of->size, place, &of->arrays[i], rooms ? rooms[i] : NULL, &out->arrays[i]);
    }
    return out->arrays;
}

void bhi_trial_free(const struct bhi_task *task, struct bhi_trial *trial) {
    for (size_t k = 0; k < task->array_count && trial->arrays; k++) {
        free(trial->arrays[k].lent ? NULL : trial->arrays[k].before);
        free(trial->arrays[k].expected);
    }
    free(trial->arrays);
    trial->arrays = NULL;
}

void bhi_trials_free(const struct bhi_task *task, struct bhi_trials *trials) {
    for (size_t i = 0; i < trials->count; i++) {
        bhi_trial_free(task, &trials->list[i]);
    }
    for (size_t k = 0; k < BHI_TASK_ARRAYS; k++) {
        free(trials->files[k]);
    }
    free(trials->list);
    *trials = (struct bhi_trials){0};
}

/* -- forgetting ------------------------------------------------------------------------------ */

static uint64_t known_bytes(const struct bhi_task *task, const struct bhi_trial *trial) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < task->array_count; i++) {
        bytes += trial->arrays[i].expected ? trial->arrays[i].form.bytes : 0;
    }
    return bytes;
}

bool bhi_trial_hash(const struct bhi_task *task, const struct bhi_trial *trial,
                    uint8_t out[BHI_CONTENT_HASH]) {
    struct bhi_content_hash *all = bhi_content_hash_begin();
    for (size_t i = 0; i < task->array_count && all; i++) {
        const struct bhi_trial_array *array = &trial->arrays[i];
        if (array->expected) {
            bhi_content_hash_add(all, array->expected, array->form.bytes);
        }
    }
    bhi_content_hash_end(all, out);
    return all;
}

bool bhi_trials_forget(const struct bhi_task *task, struct bhi_trials *trials, uint32_t times) {
    uint64_t most = BHI_TRIALS_LEAST, known = 0;
    for (size_t i = 0; i < trials->count; i++) {
        const struct bhi_trial *trial = &trials->list[i];
        most = times * trial->bytes > most ? times * trial->bytes : most;
        known += known_bytes(task, trial);
    }
    if (task->reference != BHI_REFERENCE_KERNEL && task->reference != BHI_REFERENCE_EVAL) {
        return true;
    }
    for (size_t i = trials->count; i-- > 0 && known > most;) {
        struct bhi_trial *trial = &trials->list[i];
        const uint64_t bytes = known_bytes(task, trial);
        if (bytes && !trial->forgotten && !bhi_trial_hash(task, trial, trial->hash)) {
            return false;
        }
        for (size_t k = 0; k < task->array_count && bytes; k++) {
            free(trial->arrays[k].expected);
            trial->arrays[k].expected = NULL;
            trial->forgotten = true;
        }
        known -= bytes;
        (void)malloc_trim(0); /* or it stays between what is still known */
    }
    return true;
}

/* -- positions ------------------------------------------------------------------------------- */

void bhi_position_of(const struct bhi_array *form, uint64_t index, uint64_t out_along[]) {
    for (uint32_t i = form->dimensions; i-- > 0;) {
        out_along[i] = index % form->shape[i];
        index /= form->shape[i];
    }
}

uint64_t bhi_position_index(const struct bhi_array *form, const uint64_t along[]) {
    uint64_t index = 0;
    for (uint32_t i = 0; i < form->dimensions; i++) {
        index = index * form->shape[i] + along[i];
    }
    return index;
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
