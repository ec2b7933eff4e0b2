#include "judge/check/setup.h"

#include <stdlib.h>
#include <string.h>

#include "judge/check/content.h"
#include "judge/check/margin.h"
#include "request/fill.h"
#include "request/launch.h"
#include "request/missing.h"
#include "request/names.h"

struct bhi_setup {
    const struct bhi_task *task;
    const struct bhi_trial *trial;
    const struct bhi_inputs *inputs; /* of a timed run; or NULL; while buffers are made */
    struct bhi_run_request request;
    char *push;                  /* what the request borrows; owned */
    struct bhi_margins *margins; /* by array; owned */
    bh_binding bindings[BHI_TASK_ARRAYS];
    bh_command command; /* borrows from the above */
};

static const char *const role_names[] = {"in", "inout", "out"};

/* -- the request --------------------------------------------------------------------------------
 */

static bool add_bindings(const struct bhi_court *court, const struct bhi_trial *trial,
                         struct bhi_run_request *request, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < court->task->array_count; i++) {
        const struct bhi_task_array *array = &court->task->arrays[i];
        const size_t length = strlen(array->place);
        struct bhi_run_binding *binding =
            bhi_run_add_binding(request, role_names[array->role], array->place, length,
                                bhi_dtype_name(array->dtype), complaint);
        if (!binding || !bhi_binding_parse_place(binding, array->place, length, complaint)) {
            return false;
        }
        binding->text[length] = '\0'; /* complaints name the place alone */
        binding->access = array->role == BHI_TASK_IN ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
        binding->array = trial->arrays[i].form;
    }
    return true;
}

/* Compares what is given with what the kernel declares, binding by binding. */
static bool check_bindings(const struct bhi_run_request *request,
                           const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const struct bhi_kernel_type *type = bhi_kernel_types_find(types, given->slot);
        if (!type) {
            return bhi_refuse(complaint, "%s %s: the kernel has no such binding", given->option,
                              given->text);
        }
        if (given->access != BH_ACCESS_READ && type->access == BH_ACCESS_READ) {
            return bhi_refuse(complaint, "%s %s: the kernel does not write it", given->option,
                              given->text);
        }
        if (given->access == BH_ACCESS_READ && (type->access & BH_ACCESS_WRITE)) {
            return bhi_refuse(complaint, "%s %s: the kernel may write it; declare it readonly",
                              given->option, given->text);
        }
        if (!bhi_type_takes(type->type, given->array.dtype)) {
            return bhi_refuse(complaint, "%s %s: the kernel declares %s", given->option,
                              given->text, type->type);
        }
    }
    return true;
}

/* Fills in a request for the kernel and the trial, except for buffers. *out_push is what the
 * request borrows. */
static bool fill_request(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                         const struct bhi_trial *trial, struct bhi_run_request *request,
                         char **out_push, struct bhi_complaint *complaint) {
    if (!add_bindings(court, trial, request, complaint) ||
        !bhi_task_push_text(court->task, trial->size, out_push, complaint) ||
        (**out_push && !bhi_run_parse_push_names(request, *out_push, complaint)) ||
        !bhi_run_resolve_names(request, kernel->types, "", complaint)) {
        return false;
    }
    if (kernel->types->push_size && !**out_push) {
        return bhi_refuse(complaint, "push: the kernel has push constants, and the task has none");
    }
    return check_bindings(request, kernel->types, complaint);
}

/* -- making it ----------------------------------------------------------------------------------
 */

/* A setup without buffers. NULL: see |outcome|. */
static struct bhi_setup *prepare(const struct bhi_court *court,
                                 const struct bhi_judged_kernel *kernel,
                                 const struct bhi_trial *trial, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    struct bhi_setup *setup = calloc(1, sizeof *setup);
    if (!setup || !bhi_run_request_init(&setup->request, kernel->name, court->task->array_count,
                                        &complaint)) {
        free(setup);
        bhi_judge_outcome_memory(outcome);
        return NULL;
    }
    setup->task = court->task;
    setup->trial = trial;
    if (fill_request(court, kernel, trial, &setup->request, &setup->push, &complaint)) {
        return setup;
    }
    bhi_judge_outcome_fail(outcome, BH_BINDING_MISMATCH, "%.590s", complaint.text);
    bhi_setup_free(setup);
    return NULL;
}

bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup = prepare(court, kernel, &court->trials.list[0], outcome);
    if (!setup) {
        return false;
    }
    bhi_setup_free(setup);
    return true;
}

static bool is_input(const struct bhi_task *task, uint32_t index) {
    return task->arrays[index].role == BHI_TASK_IN;
}

/* The size of the buffer of array |index|. */
static uint64_t buffer_size(const struct bhi_setup *setup, uint32_t index) {
    return setup->trial->arrays[index].form.bytes +
           (is_input(setup->task, index) ? 0 : 2 * BHI_MARGIN);
}

/* Makes the buffer of array |index| and fills it. |number| is the run's: no two have the same
 * noise. */
static bool make_buffer(const struct bhi_court *court, bh_stream *near, struct bhi_setup *setup,
                        uint64_t number, uint32_t index, struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &setup->trial->arrays[index];
    const uint64_t size = buffer_size(setup, index);
    bh_buffer **buffer = &setup->request.bindings[index].buffer;
    const struct bhi_filler_place place = {
        .seed = court->noise_seed + number, .trial = 0, .array = index};
    void *content;
    bh_stream *maker = setup->inputs && array->before ? court->source : near;
    if (setup->inputs && is_input(setup->task, index)) {
        *buffer = setup->inputs->buffer;
        bh_buffer_retain(*buffer);
        return true;
    }
    if (!bhi_content_make(court->context, maker, size, buffer, outcome) ||
        !bhi_content_begin(*buffer, size, &content, outcome)) {
        return false;
    }
    if (is_input(setup->task, index)) {
        memcpy(content, array->before, array->form.bytes);
    } else {
        bhi_margins_fill(&setup->margins[index], place, content, array->form.bytes);
    }
    if (!is_input(setup->task, index) && array->before) {
        memcpy((uint8_t *)content + BHI_MARGIN, array->before, array->form.bytes);
    }
    return bhi_content_commit(*buffer, size, content, outcome);
}

static void make_command(struct bhi_setup *setup, const struct bhi_judged_kernel *kernel,
                         const uint32_t groups[3]) {
    const struct bhi_run_request *request = &setup->request;
    bhi_run_request_bindings(request, setup->bindings);
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (!is_input(setup->task, i)) {
            setup->bindings[i].offset = BHI_MARGIN;
        } else if (setup->inputs) {
            setup->bindings[i].offset =
                bhi_inputs_offset(setup->inputs, setup->task, setup->trial, i);
        }
        setup->bindings[i].size = setup->trial->arrays[i].form.bytes;
    }
    setup->command = (bh_command){.type = BH_COMMAND_DISPATCH,
                                  .dispatch = {.kernel = kernel->kernel,
                                               .groups = {groups[0], groups[1], groups[2]},
                                               .bindings = setup->bindings,
                                               .binding_count = request->binding_count,
                                               .push = request->push.bytes,
                                               .push_size = request->push.size}};
}

static bool make_buffers(struct bhi_court *court, bh_stream *near, struct bhi_setup *setup,
                         struct bhi_judge_outcome *outcome) {
    const uint64_t number = atomic_fetch_add(&court->runs, 1);
    setup->margins = calloc(court->task->array_count, sizeof *setup->margins);
    if (!setup->margins) {
        return bhi_judge_outcome_memory(outcome);
    }
    for (uint32_t i = 0; i < court->task->array_count; i++) {
        if (!make_buffer(court, near, setup, number, i, outcome)) {
            return false;
        }
    }
    return true;
}

bool bhi_setup_make(struct bhi_court *court, bh_stream *near,
                    const struct bhi_judged_kernel *kernel, const struct bhi_task_groups *groups,
                    const struct bhi_trial *trial, const struct bhi_inputs *inputs,
                    struct bhi_setup **out_setup, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    uint32_t counts[3];
    *out_setup = NULL;
    if (!bhi_task_groups_for(court->task, trial->size, groups, kernel->types->local_size, counts,
                             &complaint)) {
        return bhi_judge_outcome_fail(outcome, BH_BINDING_MISMATCH,
                                      "groups: %.500s, and a workgroup of %ux%ux%u", complaint.text,
                                      kernel->types->local_size[0], kernel->types->local_size[1],
                                      kernel->types->local_size[2]);
    }
    struct bhi_setup *setup = prepare(court, kernel, trial, outcome);
    if (!setup) {
        return false;
    }
    setup->inputs = inputs;
    if (!make_buffers(court, near, setup, outcome)) {
        bhi_setup_free(setup);
        return false;
    }
    make_command(setup, kernel, counts);
    setup->inputs = NULL;
    *out_setup = setup;
    return true;
}

const bh_command *bhi_setup_command(const struct bhi_setup *setup) {
    return &setup->command;
}

bh_buffer *bhi_setup_buffer(const struct bhi_setup *setup, uint32_t index, uint64_t *out_offset) {
    *out_offset = setup->bindings[index].offset;
    return setup->request.bindings[index].buffer;
}

/* -- what the run left --------------------------------------------------------------------------
 */

/* Copies the output of array |index|. The worker still lives, and may be the kernel's by now: what
 * is compared must not change meanwhile. */
static bool take_output(const struct bhi_setup *setup, uint32_t index, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    const uint64_t size = setup->trial->arrays[index].form.bytes;
    bh_buffer *buffer = setup->request.bindings[index].buffer;
    void *content;
    if (!(out->outputs[index] = malloc(size))) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (!bhi_content_read(buffer, buffer_size(setup, index), &content, outcome)) {
        return false;
    }
    memcpy(out->outputs[index], (const uint8_t *)content + BHI_MARGIN, size);
    if (!out->strayed &&
        bhi_margins_find(&setup->margins[index], content, size, &out->stray_offset)) {
        out->strayed = true;
        out->stray_array = index;
    }
    bhi_content_leave(buffer, content);
    return true;
}

bool bhi_setup_take(struct bhi_setup *setup, struct bhi_launched *out,
                    struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_launched){.strayed = false};
    for (uint32_t i = 0; i < setup->task->array_count; i++) {
        if (!is_input(setup->task, i) && !take_output(setup, i, out, outcome)) {
            bhi_launched_free(out);
            return false;
        }
    }
    return true;
}

void bhi_setup_free(struct bhi_setup *setup) {
    if (setup) {
        bhi_run_request_free(&setup->request);
        free(setup->push);
        free(setup->margins);
        free(setup);
    }
}

void bhi_launched_free(struct bhi_launched *launched) {
    for (size_t i = 0; i < BHI_TASK_ARRAYS; i++) {
        free(launched->outputs[i]);
        launched->outputs[i] = NULL;
    }
}
