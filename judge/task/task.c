#include "judge/task/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "judge/data/draw.h"

const char *const bhi_task_role_names[4] = {"in", "inout", "out", "scratch"};

static void free_file(struct bhi_task_file *file) {
    free(file->path);
    free(file->field);
}

void bhi_task_free(struct bhi_task *task) {
    for (size_t i = 0; i < task->array_count; i++) {
        free_file(&task->arrays[i].file);
        free_file(&task->arrays[i].expected);
    }
    free_file(&task->reference_kernel);
    free(task->reference_eval_field);
    free(task->cuda.field);
    json_decref(task->json);
    *task = (struct bhi_task){0};
}

const char *bhi_task_size_text(const struct bhi_task *task, size_t size, char out[BHI_SIZE_TEXT]) {
    size_t used = 0;
    strcpy(out, task->parameter_count ? "" : "the only size");
    for (size_t i = 0; i < task->parameter_count && used < BHI_SIZE_TEXT; i++) {
        used += (size_t)snprintf(out + used, BHI_SIZE_TEXT - used, "%s%s=%" PRIu64, i ? ", " : "",
                                 task->parameters[i], task->sizes[size].values[i]);
    }
    return out;
}

/* -- hidden sizes ---------------------------------------------------------------------------- */

/* Counters of the generator that no array's content has (bhi_filler_fill). */
static const uint32_t sizes_counter = UINT32_MAX;

static bool is_prime(uint64_t number) {
    for (uint64_t i = 2; i * i <= number; i++) {
        if (number % i == 0) {
            return false;
        }
    }
    return number > 1;
}

/* Which of three kinds of sizes one is. */
enum { PRIME, ODD, LARGE, KINDS };

static bool suits(uint64_t number, unsigned kind) {
    static const uint64_t feasible = UINT64_C(1) << 32; /* to try all divisors */
    return kind == PRIME ? number < feasible && is_prime(number) : kind == ODD ? number % 2 : true;
}

/* The first number that suits, from a random one on, around the range's end; that one if none does. */
static uint64_t draw(const struct bhi_task_range *range, uint64_t random, unsigned kind) {
    enum { TRIES = 2000 }; /* more than there are from one prime below 2^32 to the next */
    const uint64_t count = (range->high - range->low) / range->step + 1;
    const uint64_t tenth = count < 10 ? 1 : count / 10;
    if (kind == LARGE) {
        return range->low + (count - 1 - random % tenth) * range->step;
    }
    for (uint64_t i = 0; i < TRIES && i < count; i++) {
        const uint64_t number = range->low + (random % count + i) % count * range->step;
        if (suits(number, kind)) {
            return number;
        }
    }
    return range->low + random % count * range->step;
}

bool bhi_task_draw_sizes(struct bhi_task *task, uint64_t seed, struct bhi_complaint *complaint) {
    task->size_count = task->written_count;
    for (uint32_t i = 0; i < task->hidden_count; i++) {
        struct bhi_task_size *size = &task->sizes[task->size_count++];
        *size = (struct bhi_task_size){.check_only = true, .hidden = true};
        for (uint32_t k = 0; k < task->parameter_count; k++) {
            const struct bhi_philox bits =
                bhi_philox(seed, (struct bhi_philox){{i, k, sizes_counter, sizes_counter}});
            size->values[k] =
                draw(&task->ranges[k], (uint64_t)bits.words[1] << 32 | bits.words[0], i % KINDS);
        }
        const char *field[BHI_TASK_FIELD];
        if (!bhi_task_check_size(task, task->size_count - 1, field, complaint)) {
            const struct bhi_complaint inner = *complaint;
            return bhi_refuse(complaint, "\"hidden_sizes\": %.900s", inner.text);
        }
    }
    return true;
}

enum { LOCALS = 3 };

/* The values that expressions know: those of the size, and of |local_size|, unless that is NULL. */
static size_t list_values(const struct bhi_task *task, size_t size, const uint32_t *local_size,
                          struct bhi_size_value out[BHI_TASK_PARAMETERS + LOCALS]) {
    static const char *const locals[LOCALS] = {"local_x", "local_y", "local_z"};
    size_t count = 0;
    for (size_t i = 0; i < task->parameter_count; i++) {
        out[count++] = (struct bhi_size_value){task->parameters[i], task->sizes[size].values[i]};
    }
    for (size_t i = 0; i < LOCALS && local_size; i++) {
        out[count++] = (struct bhi_size_value){locals[i], local_size[i]};
    }
    return count;
}

static bool compute(const struct bhi_task *task, size_t size, const uint32_t *local_size,
                    const struct bhi_task_number *number, uint64_t *out,
                    struct bhi_complaint *complaint) {
    struct bhi_size_value values[BHI_TASK_PARAMETERS + LOCALS];
    if (!number->expression) {
        *out = number->value;
        return true;
    }
    const size_t count = list_values(task, size, local_size, values);
    return bhi_size_compute(number->expression, values, count, out, complaint);
}

/* Says for which size the complaint is. Returns false. */
static bool blame_size(const struct bhi_task *task, size_t size, struct bhi_complaint *complaint) {
    const struct bhi_complaint inner = *complaint;
    char text[BHI_SIZE_TEXT];
    return bhi_refuse(complaint, "%.600s (with %s)", inner.text,
                      bhi_task_size_text(task, size, text));
}

bool bhi_task_has_zero(const struct bhi_task *task, size_t size) {
    bool found = false;
    for (size_t i = 0; i < task->parameter_count; i++) {
        found |= !task->sizes[size].values[i];
    }
    return found;
}

bool bhi_task_shape(const struct bhi_task *task, size_t size, const struct bhi_task_array *array,
                    struct bhi_array *out_array, struct bhi_complaint *complaint) {
    *out_array = (struct bhi_array){.dtype = array->dtype, .dimensions = array->rank};
    for (uint32_t i = 0; i < array->rank; i++) {
        if (!compute(task, size, NULL, &array->shape[i], &out_array->shape[i], complaint)) {
            return blame_size(task, size, complaint);
        }
        if (!out_array->shape[i] && !bhi_task_has_zero(task, size)) {
            bhi_refuse(complaint, "dimension %u is 0", i);
            return blame_size(task, size, complaint);
        }
    }
    return bhi_array_measure(out_array, complaint) || blame_size(task, size, complaint);
}

/* Computes an end, if it is an expression. */
static bool compute_end(const struct bhi_task *task, size_t size, const char *expression,
                        int64_t *out, struct bhi_complaint *complaint) {
    const struct bhi_task_number number = {.expression = expression};
    uint64_t value;
    if (!expression) {
        return true;
    }
    if (!compute(task, size, NULL, &number, &value, complaint)) {
        return blame_size(task, size, complaint);
    }
    if (value > INT64_MAX) {
        bhi_refuse(complaint, "'%.200s' is more than 63 bits", expression);
        return blame_size(task, size, complaint);
    }
    *out = (int64_t)value;
    return true;
}

bool bhi_task_end_filler(const struct bhi_task *task, size_t size, const struct bhi_task_ends *ends,
                         struct bhi_filler *filler, struct bhi_complaint *complaint) {
    if (!compute_end(task, size, ends->first, &filler->first, complaint) ||
        !compute_end(task, size, ends->last, &filler->last, complaint)) {
        return false;
    }
    if (filler->kind == BHI_FILLER_INTEGERS && filler->first > filler->last) {
        bhi_refuse(complaint, "the first number, %" PRId64 ", is greater than the last, %" PRId64,
                   filler->first, filler->last);
        return blame_size(task, size, complaint);
    }
    return true;
}

bool bhi_task_groups_for(const struct bhi_task *task, size_t size,
                         const struct bhi_task_groups *groups, const uint32_t local_size[3],
                         uint32_t out_groups[3], struct bhi_complaint *complaint) {
    for (int i = 0; i < 3; i++) {
        uint64_t count;
        if (!compute(task, size, local_size, &groups->along[i], &count, complaint)) {
            return blame_size(task, size, complaint);
        }
        count = !count && bhi_task_has_zero(task, size) ? 1 : count;
        if (count < 1 || count > UINT32_MAX) {
            bhi_refuse(complaint, "%" PRIu64 " groups along %c: from 1 to 4294967295 are possible",
                       count, "xyz"[i]);
            return blame_size(task, size, complaint);
        }
        out_groups[i] = (uint32_t)count;
    }
    return true;
}

/* A number of f32, which f64 has, too, or a whole number. */
static bool write_drawn(const struct bhi_task *task, size_t size, size_t index, uint64_t seed,
                        char out[BHI_PUSH_TEXT], struct bhi_complaint *complaint) {
    enum { PUSHES = 0x8000 }; /* an array's number is less */
    struct bhi_filler filler = task->pushes[index].filler;
    const struct bhi_filler_place place = {
        .seed = seed, .trial = (uint32_t)size, .array = PUSHES + (uint32_t)index};
    float real;
    int64_t whole;
    if (!bhi_task_end_filler(task, size, &task->pushes[index].ends, &filler, complaint)) {
        return false;
    }
    if (filler.kind == BHI_FILLER_INTEGERS) {
        bhi_filler_fill(&filler, place, BH_DTYPE_I64, 1, &whole);
        snprintf(out, BHI_PUSH_TEXT, "%" PRId64, whole);
    } else {
        bhi_filler_fill(&filler, place, BH_DTYPE_F32, 1, &real);
        snprintf(out, BHI_PUSH_TEXT, "%#.9g", (double)real);
    }
    return true;
}

bool bhi_task_push_value(const struct bhi_task *task, size_t size, size_t index, uint64_t seed,
                         char out[BHI_PUSH_TEXT], struct bhi_complaint *complaint) {
    const struct bhi_task_push *push = &task->pushes[index];
    const struct bhi_task_number number = {.expression = push->expression};
    uint64_t value = 0;
    if (push->expression) {
        const bool good = compute(task, size, NULL, &number, &value, complaint) ||
                          blame_size(task, size, complaint);
        snprintf(out, BHI_PUSH_TEXT, "%" PRIu64, value);
        return good;
    }
    if (push->text[0]) {
        snprintf(out, BHI_PUSH_TEXT, "%s", push->text);
        return true;
    }
    return write_drawn(task, size, index, seed, out, complaint);
}

bool bhi_task_push_text(const struct bhi_task *task, size_t size, uint64_t seed, char **out_text,
                        struct bhi_complaint *complaint) {
    size_t length;
    bool good = true;
    FILE *out = open_memstream(out_text, &length);
    for (size_t i = 0; i < task->push_count && out && good; i++) {
        char value[BHI_PUSH_TEXT];
        good = bhi_task_push_value(task, size, i, seed, value, complaint);
        fprintf(out, "%s%s=%s", i ? "," : "", task->pushes[i].name, good ? value : "");
    }
    if (!out || fclose(out) != 0) {
        good = bhi_refuse_memory(complaint);
        if (!out) {
            *out_text = NULL;
        }
    }
    if (!good) {
        free(*out_text);
        *out_text = NULL;
    }
    return good;
}

bool bhi_task_amount(const struct bhi_task *task, size_t size, const struct bhi_task_number *number,
                     uint64_t *out, struct bhi_complaint *complaint) {
    if (!compute(task, size, NULL, number, out, complaint)) {
        return blame_size(task, size, complaint);
    }
    if (number->expression && !*out && !bhi_task_has_zero(task, size)) {
        bhi_refuse(complaint, "it is 0");
        return blame_size(task, size, complaint);
    }
    return true;
}

static bool check_fills(const struct bhi_task *task, size_t size,
                        const struct bhi_task_array *array, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < array->fill_count; i++) {
        struct bhi_filler filler = array->fills[i].filler;
        if (!bhi_task_end_filler(task, size, &array->fills[i].ends, &filler, complaint)) {
            return false;
        }
    }
    return true;
}

/* Returns the key of what is impossible; NULL: nothing. */
static const char *check_array(const struct bhi_task *task, size_t size,
                               const struct bhi_task_array *array,
                               struct bhi_complaint *complaint) {
    struct bhi_array form;
    struct bhi_filler filler = array->filler;
    return !bhi_task_shape(task, size, array, &form, complaint)                 ? "shape"
           : !form.bytes                                                        ? NULL
           : !bhi_task_end_filler(task, size, &array->ends, &filler, complaint) ? "fill"
           : !check_fills(task, size, array, complaint)                         ? "fills"
                                                                                : NULL;
}

static bool check_arrays(const struct bhi_task *task, size_t size,
                         const char *out_field[BHI_TASK_FIELD], struct bhi_complaint *complaint) {
    for (size_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        out_field[2] = check_array(task, size, array, complaint);
        if (out_field[2]) {
            out_field[0] = bhi_task_role_names[array->role];
            out_field[1] = array->place;
            return false;
        }
    }
    return true;
}

bool bhi_task_check_size(const struct bhi_task *task, size_t size,
                         const char *out_field[BHI_TASK_FIELD], struct bhi_complaint *complaint) {
    static const uint32_t one[3] = {1, 1, 1};
    uint32_t groups[3];
    uint64_t amount;
    char *push = NULL;
    memset(out_field, 0, BHI_TASK_FIELD * sizeof *out_field);
    if (!check_arrays(task, size, out_field, complaint)) {
        return false;
    }
    if (!bhi_task_groups_for(task, size, &task->groups, one, groups, complaint)) {
        out_field[0] = "groups";
    } else if (task->reference == BHI_REFERENCE_KERNEL &&
               !bhi_task_groups_for(task, size, &task->reference_groups, one, groups, complaint)) {
        out_field[0] = "reference";
        out_field[1] = "groups";
    } else if (!bhi_task_push_text(task, size, 0, &push, complaint)) {
        out_field[0] = "push";
    } else if (!bhi_task_amount(task, size, &task->bytes, &amount, complaint)) {
        out_field[0] = "bytes";
    } else if (!bhi_task_amount(task, size, &task->operations, &amount, complaint)) {
        out_field[0] = "operations";
    }
    free(push);
    return !out_field[0];
}

const char *bhi_task_fill_text(const struct bhi_task *task, size_t index, char out[BHI_FILL_TEXT]) {
    const char *first = NULL;
    bool alike = true;
    size_t used = 0;
    for (int pass = 0; pass < 2 && (!pass || !alike); pass++) {
        for (size_t i = 0; i < task->array_count; i++) {
            const struct bhi_task_array *array = &task->arrays[i];
            if (index >= array->fill_count) {
                continue;
            }
            const char *name = array->fills[index].name;
            alike = alike && (!first || !strcmp(first, name));
            first = first ? first : name;
            if (pass && used < BHI_FILL_TEXT) {
                used += (size_t)bhi_format(out + used, BHI_FILL_TEXT - used, "%s%.24s %.16s",
                                           used ? ", " : "", array->place, name);
            }
        }
    }
    if (alike) {
        bhi_format(out, BHI_FILL_TEXT, "%.40s", first ? first : "");
    }
    return out;
}

static bool is_file(const struct bhi_filler *filler) {
    return filler->kind == BHI_FILLER_FILE;
}

bool bhi_filler_knows_one_value(const struct bhi_filler *filler) {
    switch (filler->kind) {
    case BHI_FILLER_FILE:
        return true;
    case BHI_FILLER_UNIFORM:
        return filler->low == filler->high && filler->special <= 0;
    case BHI_FILLER_NORMAL:
        return filler->high <= 0 && filler->special <= 0; /* the deviation */
    case BHI_FILLER_INTEGERS:
        return filler->first == filler->last && filler->special <= 0;
    case BHI_FILLER_BITS:
        break;
    }
    return false;
}

static bool all_inputs_are(const struct bhi_task *task, bool (*such)(const struct bhi_filler *)) {
    for (size_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        if (array->role != BHI_TASK_OUT && !such(&array->filler)) {
            return false;
        }
    }
    for (size_t i = 0; i < task->push_count; i++) {
        const struct bhi_task_push *push = &task->pushes[i];
        if (!push->expression && !push->text[0] && !such(&push->filler)) {
            return false;
        }
    }
    return true;
}

bool bhi_task_is_fixed(const struct bhi_task *task) {
    return all_inputs_are(task, is_file);
}

bool bhi_task_is_storable(const struct bhi_task *task) {
    return all_inputs_are(task, bhi_filler_knows_one_value);
}
