#include "judge/check/cuda.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "formats/dtype.h"
#include "judge/check/launch.h"

enum { POINTER = 8, MOST_ALIGNED = 16 };

bool bhi_cuda_check_device(const struct bhi_court *court, const struct bhi_judge_plan_kernel *plan,
                           const struct bhi_kernel_file *file, struct bhi_judge_outcome *outcome) {
    const bool is_cuda = bhi_kernel_file_is_cuda(file);
    if (plan && plan->cuda.field && !is_cuda) {
        return bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                                      "%.400s: it is for CUDA kernels; this one has its own",
                                      plan->cuda.field);
    }
    if (is_cuda == court->cuda) {
        return true;
    }
    bhi_judge_outcome_fail(outcome, BH_INVALID_KERNEL, "%s",
                           is_cuda ? "it is for CUDA, and the device is not: judge it on a CUDA "
                                     "device, as with --device cuda"
                                   : "a CUDA device runs CUDA C++ (.cu), PTX, a cubin or a fatbin, "
                                     "and this is none: judge it on a Vulkan device");
    bhi_judge_outcome_why(outcome, is_cuda ? BH_REASON_NEEDS_CUDA : BH_REASON_NEEDS_VULKAN,
                          BH_SUBJECT_KERNEL, "");
    return false;
}

bool bhi_cuda_entry(const struct bhi_kernel_file *file, char room[BHI_PTX_NAME], const char **out,
                    struct bhi_judge_outcome *outcome) {
    struct bhi_ptx_entry *entry;
    *out = file->entry;
    if (file->entry || bhi_kernel_file_is_source(file)) {
        return true; /* the compiler finds the only one */
    }
    if (!(entry = calloc(1, sizeof *entry))) {
        return bhi_judge_outcome_memory(outcome);
    }
    const bool found = bhi_ptx_find(file->code, file->size, NULL, entry);
    memcpy(room, entry->name, BHI_PTX_NAME);
    *out = room;
    free(entry);
    return found || bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                                           "an image can have several kernels: say which it is, "
                                           "with \"entry\" in a plan, or --entry");
}

/* -- what the module says -------------------------------------------------------------------- */

/* Asks a worker of its own, which loads the module and runs nothing. If it lies, the launch fails. */
static bool reflect(const struct bhi_court *court, bh_kernel *kernel, struct bhi_ptx_entry *out,
                    struct bhi_judge_outcome *outcome) {
    bh_stream *stream = NULL;
    bh_detail detail = {0};
    bh_kernel_info *info = calloc(1, sizeof *info);
    bool good =
        info ? bhi_court_stream(court, &stream, outcome) : bhi_judge_outcome_memory(outcome);
    if (good) {
        info->struct_size = sizeof *info;
        const bh_status status = bh_kernel_reflect(kernel, stream, BH_FOREVER, info, &detail);
        good = status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
    }
    memset(out, 0, sizeof *out);
    for (; good && out->count < info->binding_count; out->count++) {
        out->parameters[out->count] =
            (struct bhi_ptx_parameter){'b', info->bindings[out->count].count};
    }
    bh_stream_release(stream);
    free(info);
    return good;
}

static bool learn(const struct bhi_court *court, bh_kernel *kernel, const char *name,
                  struct bhi_ptx_entry *out, struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    size_t size = 0;
    char *code = NULL;
    bh_status status = bh_kernel_code(kernel, NULL, 0, &size, &detail);
    if (status == BH_OK && (code = calloc(1, size + 1))) {
        status = bh_kernel_code(kernel, code, size, &size, &detail);
    } else if (status == BH_OK) {
        status = BH_NO_MEMORY;
    }
    const bool is_text = status == BH_OK && !bhi_language_is_binary_image(code, size);
    const bool found = is_text && bhi_ptx_find(code, size, name, out);
    free(code);
    return status != BH_OK ? bhi_judge_outcome_take(outcome, status, &detail)
                           : found || reflect(court, kernel, out, outcome);
}

/* -- what the task says ---------------------------------------------------------------------- */

static const struct bhi_task_cuda *plan_of(const struct bhi_judged_kernel *kernel, size_t number) {
    static const struct bhi_task_cuda none;
    return kernel->plan ? &kernel->plan->kernels[number].cuda : &none;
}

static bool is_given(const uint32_t block[3]) {
    return block[0] > 0;
}

/* The plan's, the kernel's own, or the task's. */
static bool choose_block(const struct bhi_task *task, const struct bhi_task_cuda *plan,
                         const struct bhi_ptx_entry *entry, uint32_t out[3],
                         struct bhi_complaint *complaint) {
    const uint32_t *const block = is_given(plan->block)       ? plan->block
                                  : is_given(entry->required) ? entry->required
                                  : is_given(entry->most)     ? entry->most
                                                              : task->cuda.block;
    memcpy(out, block, 3 * sizeof *out);
    if (!is_given(block)) {
        return bhi_refuse(complaint, "nothing says how many threads a block has: write the line "
                                     "\"// bulkhead: block=256\", or __launch_bounds__(256)");
    }
    return !is_given(entry->required) || !memcmp(block, entry->required, 3 * sizeof *out) ||
           bhi_refuse(complaint, "%.400s: its blocks have %ux%ux%u threads (.reqntid)", plan->field,
                      entry->required[0], entry->required[1], entry->required[2]);
}

/* The names of all parameters, in order. Returns how many there are. */
static size_t list_names(const struct bhi_task *task, const struct bhi_task_cuda *plan,
                         const char *out[BHI_CUDA_LIST]) {
    const struct bhi_task_cuda *const given = plan->parameter_count ? plan : &task->cuda;
    size_t count = given->parameter_count;
    memcpy(out, given->parameters, count * sizeof *out);
    if (count) {
        return count;
    }
    for (size_t i = 0; i < task->array_count; i++) {
        out[count++] = task->arrays[i].place;
    }
    for (size_t i = 0; i < task->push_count; i++) {
        out[count++] = task->pushes[i].name;
    }
    return count;
}

/* A number of the task is of the parameter's width, and, unless PTX says that it is a float, of the kind that it has
 * in the task. */
static bool name_type(const struct bhi_task_push *push, const struct bhi_ptx_parameter *of,
                      char out[64]) {
    const bool drawn = !push->expression && !push->text[0];
    const bool is_bool = push->text[0] == 't' || push->text[0] == 'f';
    const bool whole =
        push->expression || is_bool ||
        (drawn ? push->filler.kind == BHI_FILLER_INTEGERS : !strpbrk(push->text, ".e"));
    const bool negative =
        push->text[0] == '-' || (drawn && !push->ends.first && push->filler.first < 0);
    const bool real = of->kind == 'f' || (of->kind == 'b' && !whole);
    bh_dtype dtype;
    if (is_bool && of->bytes == 1) {
        strcpy(out, "bool");
        return true;
    }
    const int length = snprintf(out, 64, "%c%" PRIu64,
                                real       ? 'f'
                                : negative ? 'i'
                                           : 'u',
                                UINT64_C(8) * of->bytes);
    return bhi_dtype_find(out, (size_t)length, &dtype);
}

/* Appends what parameter |position| is. */
static bool add(const struct bhi_task *task, const struct bhi_judged_kernel *kernel,
                uint32_t position, const char *name, const struct bhi_ptx_parameter *of,
                struct bhi_kernel_types *out, struct bhi_complaint *complaint) {
    const uint32_t lowest = of->bytes & -of->bytes;
    const uint32_t aligned = lowest < MOST_ALIGNED ? lowest : MOST_ALIGNED;
    for (uint32_t i = 0; i < bhi_judged_arrays(task, kernel); i++) {
        const struct bhi_task_array *array = bhi_judged_array(task, kernel, i);
        if (!strcmp(array->place, name)) {
            struct bhi_kernel_type *type = &out->types[out->count++];
            type->slot = (struct bhi_slot){0, position, 0};
            type->count = 1;
            type->kind = BH_BINDING_STORAGE_BUFFER;
            type->access = array->role == BHI_TASK_IN ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
            bhi_format(type->name, sizeof type->name, "%s", name);
            return of->bytes == POINTER ||
                   bhi_refuse(complaint, "parameter %u, %.60s, has %u bytes and is no pointer",
                              position, name, of->bytes);
        }
    }
    for (size_t i = 0; i < task->push_count; i++) {
        struct bhi_kernel_member *member = &out->members[out->member_count];
        if (strcmp(task->pushes[i].name, name) != 0) {
            continue;
        }
        if (!name_type(&task->pushes[i], of, member->type)) {
            return bhi_refuse(complaint, "parameter %u, %.60s, has %u bytes and is no number",
                              position, name, of->bytes);
        }
        bhi_format(member->name, sizeof member->name, "%s", name);
        member->offset = (out->push_size + aligned - 1) / aligned * aligned;
        out->push_size = member->offset + of->bytes;
        out->member_count++;
        return true;
    }
    return bhi_refuse(complaint, "parameter %u: there is no array and no push constant \"%.60s\"",
                      position, name);
}

static bool fill(const struct bhi_task *task, const struct bhi_judged_kernel *kernel, size_t number,
                 const struct bhi_ptx_entry *entry, struct bhi_kernel_types *out,
                 struct bhi_complaint *complaint) {
    const struct bhi_task_cuda *plan = plan_of(kernel, number);
    const char *names[BHI_CUDA_LIST];
    const size_t count = list_names(task, plan, names);
    if (count != entry->count) {
        char list[300] = "";
        for (size_t i = 0; i < count; i++) {
            const size_t used = strlen(list);
            bhi_format(list + used, sizeof list - used, "%s%.60s", i ? ", " : "", names[i]);
        }
        return bhi_refuse(complaint, "it takes %u parameters, and there are %zu: %s", entry->count,
                          count, list);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!add(task, kernel, i, names[i], &entry->parameters[i], out, complaint)) {
            return false;
        }
    }
    return choose_block(task, plan, entry, out->local_size, complaint);
}

bool bhi_cuda_types(const struct bhi_court *court, struct bhi_judged_kernel *kernel, size_t number,
                    const struct bhi_kernel_file *file, struct bhi_judge_outcome *outcome) {
    struct bhi_judged_step *step = &kernel->steps[number];
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_ptx_entry *entry = malloc(sizeof *entry);
    step->types = calloc(1, sizeof *step->types + BHI_CUDA_LIST * sizeof step->types->types[0]);
    const bool good = entry && step->types ? learn(court, step->kernel, file->entry, entry, outcome)
                                           : bhi_judge_outcome_memory(outcome);
    const bool fits = good && fill(court->task, kernel, number, entry, step->types, &complaint);
    free(entry);
    return !good || fits ? good
                         : bhi_judge_outcome_refuse(outcome, BH_BINDING_MISMATCH, &complaint);
}
