/* bh_judge_arrays: copies of what a run read and wrote. */
#include <bulkhead/judge_arrays.h>
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "judge/api/judge.h"
#include "supervisor/context/layout.h"

enum { PARTS = BH_JUDGE_ACTUAL + 1 };

/* Its memory is owned: |name| and |data| are not const here. */
struct bh_judge_arrays {
    size_t counts[PARTS];
    bh_judge_view lists[PARTS][BHI_TASK_ARRAYS];
};

/* Adds an array, with |data|, which it takes over. Returns false if there is none, or no memory. */
static bool add(bh_judge_arrays *arrays, bh_judge_part part, const struct bhi_task_array *array,
                const struct bhi_array *form, void *data) {
    bh_judge_view *out = &arrays->lists[part][arrays->counts[part]++];
    *out = (bh_judge_view){.struct_size = sizeof *out,
                           .name = strdup(array->place),
                           .dtype = array->dtype,
                           .rank = form->dimensions,
                           .data = data,
                           .size = form->bytes};
    memcpy(out->shape, form->shape, form->dimensions * sizeof form->shape[0]);
    return out->name && out->data;
}

static void *copy(const void *content, uint64_t size) {
    void *data = malloc(size);
    return data ? memcpy(data, content, size) : NULL;
}

static void *copy_input(const struct bhi_trial_array *in) {
    void *data = malloc(in->form.bytes);
    if (data) {
        bhi_trial_write(in, in->count, data);
    }
    return data;
}

/* Takes the outputs over. */
static bool fill(bh_judge_arrays *arrays, const struct bhi_task *task,
                 struct bhi_repeated *repeated) {
    bool good = true;
    for (size_t i = 0; i < task->array_count && good; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        const struct bhi_trial_array *in = &repeated->known.trial.arrays[i];
        void *output = repeated->launched.outputs[i];
        if (array->role != BHI_TASK_OUT) {
            good = add(arrays, BH_JUDGE_INPUTS, array, &in->form, copy_input(in));
        }
        if (array->role != BHI_TASK_IN && good) {
            good = add(arrays, BH_JUDGE_EXPECTED, array, &in->form,
                       copy(in->expected, in->form.bytes));
        }
        if (output && good) {
            repeated->launched.outputs[i] = NULL;
            good = add(arrays, BH_JUDGE_ACTUAL, array, &in->form, output);
        }
    }
    return good;
}

static bh_status refuse(bh_detail *detail, const char *why) {
    return BHI_FAIL(detail, "bh_judge_repeat", BH_REASON_ARGUMENT, "judgement", .text = why);
}

static bh_status repeat(bh_judge *judge, const bh_judge_candidate *given,
                        const bh_judgement *judgement, bh_judge_arrays **out, bh_detail *detail) {
    struct bhi_candidate candidate = {.judged = true, .judgement = *judgement};
    struct bhi_repeated repeated = {.known = {.made = false}};
    if (!judgement->located || judgement->timed) {
        return refuse(detail, judgement->timed ? "was ended by a timed run, whose inputs nobody has"
                                               : "was ended by no run");
    }
    bh_judge_arrays *arrays = calloc(1, sizeof *arrays);
    if (!arrays) {
        return BHI_FAIL(detail, "bh_judge_repeat", BH_REASON_MEMORY);
    }
    bh_status status = bhi_judge_serve(judge, "bh_judge_repeat", BHI_STEP_REPEAT, given, &candidate,
                                       &repeated, detail);
    if (status == BH_OK && !fill(arrays, &judge->task, &repeated)) {
        status = BHI_FAIL(detail, "bh_judge_repeat", BH_REASON_MEMORY);
    }
    bhi_repeated_free(&judge->task, &repeated);
    if (status == BH_OK) {
        *out = arrays;
    } else {
        bh_judge_arrays_destroy(arrays);
    }
    return status;
}

BH_API bh_status bh_judge_repeat(bh_judge *judge, const bh_judge_candidate *candidate,
                                 const bh_judgement *judgement, bh_judge_arrays **out_arrays,
                                 bh_detail *detail) {
    bh_judgement ours;
    if (!candidate || !judgement || !out_arrays) {
        return BHI_FAIL(detail, "bh_judge_repeat", BH_REASON_NULL,
                        !candidate   ? "candidate"
                        : !judgement ? "judgement"
                                     : "out_arrays");
    }
    *out_arrays = NULL;
    const bh_status status = bhi_layout_take(BHI_OURS(bh_judgement), &ours, judgement,
                                             "bh_judge_repeat", "judgement", detail);
    return status == BH_OK ? repeat(judge, candidate, &ours, out_arrays, detail) : status;
}

BH_API size_t bh_judge_arrays_count(const bh_judge_arrays *arrays, bh_judge_part part) {
    return arrays && (unsigned)part < PARTS ? arrays->counts[part] : 0;
}

BH_API bh_status bh_judge_arrays_get(const bh_judge_arrays *arrays, bh_judge_part part,
                                     size_t index, bh_judge_view *out_view, bh_detail *detail) {
    const char *call = "bh_judge_arrays_get";
    if (!arrays || !out_view) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, arrays ? "out_view" : "arrays");
    }
    const bh_status status =
        bhi_layout_check(BHI_OURS(bh_judge_view), out_view, call, "out_view", detail);
    if (status != BH_OK) {
        return status;
    }
    if ((unsigned)part >= PARTS) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "part", .value = part,
                        .text = "part");
    }
    if (index >= arrays->counts[part]) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "index",
                        .text = "is that of no array of the part");
    }
    bhi_layout_give(out_view, &arrays->lists[part][index], sizeof *out_view);
    return BH_OK;
}

BH_API void bh_judge_arrays_destroy(bh_judge_arrays *arrays) {
    for (int part = 0; part < PARTS && arrays; part++) {
        for (size_t i = 0; i < arrays->counts[part]; i++) {
            free((void *)arrays->lists[part][i].name);
            free((void *)arrays->lists[part][i].data);
        }
    }
    free(arrays);
}
