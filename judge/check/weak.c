#include "judge/check/weak.h"
#include "judge/check/content.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "formats/dtype.h"
#include "judge/check/expected.h"
#include "judge/data/whole.h"

enum { SAMPLE = 4096 }; /* elements that are compared first: most tricks end there */

/* A trick with one output. */
struct attempt {
    struct bhi_court *court;
    const struct bhi_task *task;
    const struct bhi_trials *trials;
    enum bhi_trick trick;
    uint32_t output, input;
    double constant; /* of BHI_TRICK_CONSTANT, at a size */
    void *room;      /* for the largest output; owned */
    void *sorted;    /* likewise */
    struct bhi_judge_outcome *outcome;
    bool failed; /* the machine has: |outcome| says why */
};

/* How it ends at one size. */
enum result { FAILS, SAYS_NOTHING, PASSES, IS_EXACT /* it stores the very bytes */ };

/* |room|: for a copy that is sorted. */
static bool is_right(const struct bhi_task_array *array, uint64_t count, const void *expected,
                     const void *got, void *room) {
    struct bhi_difference difference;
    if (array->tolerance.by == BHI_BY_MULTISET) {
        memcpy(room, got, count * bhi_dtype_size(array->dtype));
        bhi_sort_multiset(array->dtype, count, room);
        got = room;
    }
    bhi_compare_whole(array->dtype, count, expected, got, &array->tolerance, &difference);
    return !difference.wrong;
}

/* -- what is stored -------------------------------------------------------------------------- */

static bool recall(struct attempt *attempt, const struct bhi_trial *trial,
                   struct bhi_recalled *out) {
    attempt->failed = !bhi_expected_recall(attempt->court, trial, out, attempt->outcome);
    return !attempt->failed;
}

/* Halfway from the least to the greatest of what is expected at a size. Returns false if there are not two
 * numbers. */
static bool find_constant(struct attempt *attempt, size_t size, double *out) {
    const bh_dtype dtype = attempt->task->arrays[attempt->output].dtype;
    const uint32_t width = bhi_dtype_size(dtype);
    double least = INFINITY, greatest = -INFINITY;
    uint64_t count = 0;
    for (size_t i = 0; i < attempt->trials->count && !attempt->failed; i++) {
        const struct bhi_trial *trial = &attempt->trials->list[i];
        struct bhi_recalled known;
        if (trial->size != size || trial->fill || !recall(attempt, trial, &known)) {
            continue;
        }
        const struct bhi_trial_array *array = &known.trial.arrays[attempt->output];
        for (uint64_t k = 0; k < array->count; k++) {
            uint64_t bits = 0;
            memcpy(&bits, (const uint8_t *)array->expected + k * width, width);
            const double value = bhi_element_value(dtype, bits);
            if (isfinite(value)) {
                least = fmin(least, value);
                greatest = fmax(greatest, value);
                count++;
            }
        }
        bhi_recalled_free(attempt->task, &known);
    }
    *out = least + (greatest - least) / 2;
    return count > 1 && isfinite(*out);
}

/* Gives the first |count| elements of what the trick stores in the trial; |first| is the size's first.
 * NULL: there is nothing. */
static const void *stored(const struct attempt *attempt, const struct bhi_trial *trial,
                          const struct bhi_trial *first, uint64_t count) {
    const struct bhi_trial_array *in = &trial->arrays[attempt->input],
                                 *out = &trial->arrays[attempt->output];
    const struct bhi_filler filler = {
        .kind = BHI_FILLER_UNIFORM, .low = attempt->constant, .high = attempt->constant};
    switch (attempt->trick) {
    case BHI_TRICK_ZEROS:
        return memset(attempt->room, 0, count * bhi_dtype_size(out->form.dtype));
    case BHI_TRICK_CONSTANT:
        bhi_filler_fill(&filler, (struct bhi_filler_place){.seed = 0}, out->form.dtype, count,
                        attempt->room);
        return attempt->room;
    case BHI_TRICK_INPUT:
        if (in->count != out->count) {
            return NULL;
        }
        bhi_trial_write(in, count, attempt->room);
        return attempt->room;
    case BHI_TRICK_SEED:
        break;
    }
    return first->arrays[attempt->output].expected;
}

/* -- whether it passes ----------------------------------------------------------------------- */

/* Most tricks end with the sample. */
static enum result try_trial(const struct attempt *attempt, const struct bhi_trial *trial,
                             const struct bhi_trial *first) {
    const struct bhi_task_array *array = &attempt->task->arrays[attempt->output];
    const struct bhi_trial_array *in = &trial->arrays[attempt->output];
    const bool samples = array->tolerance.by == BHI_BY_ELEMENTS && in->count > SAMPLE;
    const void *got = NULL;
    for (int i = samples ? 0 : 1; i < 2; i++) {
        const uint64_t count = i ? in->count : SAMPLE;
        got = stored(attempt, trial, first, count);
        if (!got || !is_right(array, count, in->expected, got, attempt->sorted)) {
            return FAILS;
        }
    }
    return memcmp(in->expected, got, in->form.bytes) != 0 ? PASSES : IS_EXACT;
}

static enum result try_size(struct attempt *attempt, size_t size) {
    struct bhi_recalled first = {.made = false}, known;
    enum result result = IS_EXACT;
    size_t tried = 0;
    if (attempt->trick == BHI_TRICK_CONSTANT && !find_constant(attempt, size, &attempt->constant)) {
        return SAYS_NOTHING;
    }
    for (size_t i = 0; i < attempt->trials->count && result != FAILS; i++) {
        const struct bhi_trial *trial = &attempt->trials->list[i];
        if (trial->size != size || trial->fill) {
            continue;
        }
        if (!recall(attempt, trial, tried ? &known : &first)) {
            result = FAILS;
            break;
        }
        const enum result one =
            try_trial(attempt, tried ? &known.trial : &first.trial, &first.trial);
        result = one < result ? one : result;
        if (tried++) {
            bhi_recalled_free(attempt->task, &known);
        }
    }
    bhi_recalled_free(attempt->task, &first);
    return attempt->trick == BHI_TRICK_SEED && tried < 2 && result != FAILS ? SAYS_NOTHING : result;
}

/* Returns whether the trick passes at some size although it stores something else than the reference does,
 * or at all sizes. But a kernel that copies an input has computed what a copy is to be. */
static bool try_sizes(struct attempt *attempt, struct bhi_weakness *out) {
    size_t failed = 0, passed = 0, exact = 0;
    *out = (struct bhi_weakness){
        .trick = attempt->trick, .output = attempt->output, .input = attempt->input};
    for (size_t size = attempt->task->size_count; size-- > 0 && !attempt->failed;) {
        const enum result result = try_size(attempt, size);
        failed += result == FAILS;
        passed += result >= PASSES;
        exact += result == IS_EXACT;
        if (result == PASSES) {
            out->size = size;
        }
    }
    out->everywhere = passed && !failed;
    const bool copies = attempt->trick == BHI_TRICK_INPUT &&
                        attempt->task->arrays[attempt->input].role == BHI_TASK_IN;
    return passed > exact || (out->everywhere && !copies);
}

/* Is it a trick with that input? Those without one are tried once. */
static bool applies(const struct attempt *attempt) {
    const struct bhi_task_array *in = &attempt->task->arrays[attempt->input];
    switch (attempt->trick) {
    case BHI_TRICK_ZEROS:
    case BHI_TRICK_CONSTANT:
        return attempt->input == 0;
    case BHI_TRICK_INPUT:
        return in->role != BHI_TASK_OUT &&
               in->dtype == attempt->task->arrays[attempt->output].dtype;
    case BHI_TRICK_SEED:
        break;
    }
    return attempt->input == 0;
}

static bool try_output(struct attempt *attempt, struct bhi_weakness *out) {
    for (int trick = BHI_TRICK_ZEROS; trick <= BHI_TRICK_SEED; trick++) {
        for (uint32_t input = 0; input < attempt->task->array_count; input++) {
            attempt->trick = (enum bhi_trick)trick;
            attempt->input = input;
            if (!attempt->failed && applies(attempt) && try_sizes(attempt, out)) {
                return true;
            }
        }
    }
    return false;
}

bool bhi_weaknesses_find(struct bhi_court *court, struct bhi_weakness out[BHI_TASK_ARRAYS],
                         size_t *out_count, struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    const struct bhi_trials *trials = &court->trials;
    struct attempt attempt = {.court = court, .task = task, .trials = trials, .outcome = outcome};
    uint64_t capacity = 0;
    *out_count = 0;
    if (bhi_task_is_storable(task)) {
        return true;
    }
    for (size_t i = 0; i < trials->count; i++) {
        for (size_t k = 0; k < task->array_count; k++) {
            const uint64_t bytes = trials->list[i].arrays[k].form.bytes;
            capacity = bytes > capacity ? bytes : capacity;
        }
    }
    attempt.room = bhi_content_room(capacity);
    attempt.sorted = bhi_content_room(capacity);
    attempt.failed =
        !(attempt.room && attempt.sorted) && !bhi_judge_outcome_memory(attempt.outcome);
    for (uint32_t i = 0; i < task->array_count && !attempt.failed; i++) {
        attempt.output = i;
        /* What the program's check would say of a trick nobody asks. */
        if (task->arrays[i].role != BHI_TASK_IN && task->arrays[i].tolerance.by != BHI_BY_CHECK &&
            try_output(&attempt, &out[*out_count])) {
            ++*out_count;
        }
    }
    free(attempt.room);
    free(attempt.sorted);
    return !attempt.failed;
}

const char *bhi_weakness_text(const struct bhi_task *task, const struct bhi_weakness *weakness,
                              char out[BHI_WEAKNESS_TEXT]) {
    char size[BHI_SIZE_TEXT], what[160];
    switch (weakness->trick) {
    case BHI_TRICK_ZEROS:
        bhi_format(what, sizeof what, "zeros pass");
        break;
    case BHI_TRICK_CONSTANT:
        bhi_format(what, sizeof what, "one constant passes");
        break;
    case BHI_TRICK_INPUT:
        bhi_format(what, sizeof what, "a copy of %.60s passes",
                   task->arrays[weakness->input].place);
        break;
    case BHI_TRICK_SEED:
        bhi_format(what, sizeof what, "the result of another seed passes");
        break;
    }
    bhi_format(out, BHI_WEAKNESS_TEXT, "%.60s: %s (%s)", task->arrays[weakness->output].place, what,
               weakness->everywhere && task->size_count > 1
                   ? "at each size"
                   : bhi_task_size_text(task, weakness->size, size));
    return out;
}
