#include "judge/check/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/check/margin.h"
#include "request/fill.h"
#include "request/launch.h"
#include "request/missing.h"
#include "request/names.h"
#include "tool/clock.h"
#include "tool/interrupt.h"

static const uint64_t slice_ns = 50000000;             /* how often signals are checked */
static const uint64_t cancel_limit_ns = 10000000000u;  /* for a cancelled submission to end */
static const uint64_t content_limit_ns = 10000000000u; /* for a buffer that nobody uses */

static const char *const role_names[] = {"in", "inout", "out"};

bool bhi_court_stream(const struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    bh_stream_options options;
    bh_detail detail = {0};
    bh_stream_options_init(&options);
    options.name = "judge";
    options.device = court->selector;
    options.isolation = BH_ISOLATION_KERNEL;
    if (task->deadline_ns) {
        options.deadline_ns = task->deadline_ns;
    }
    if (task->compile_deadline_ns) {
        options.compile_deadline_ns = task->compile_deadline_ns;
    }
    if (task->memory_limit) {
        options.memory_limit = task->memory_limit;
    }
    const bh_status status = bh_stream_create(court->context, &options, out_stream, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_court_await(bh_event *event, struct bhi_judge_outcome *outcome) {
    bh_verdict verdict;
    uint64_t give_up = UINT64_MAX;
    bh_status status;
    while ((status = bh_event_wait(event, slice_ns)) == BH_TIMEOUT && bhi_clock_ns() < give_up) {
        if (give_up == UINT64_MAX && bhi_interrupt_signal()) {
            (void)!bh_event_cancel(event);
            give_up = bhi_clock_ns() + cancel_limit_ns;
        }
    }
    if (status == BH_TIMEOUT || bhi_interrupt_signal()) {
        return bhi_judge_outcome_fail(outcome, BH_CANCELLED, "cancelled");
    }
    if (status == BH_OK) {
        return true;
    }
    status = bh_event_verdict(event, &verdict);
    if (status != BH_OK) {
        return bhi_judge_outcome_fail(outcome, status, "%s", bh_status_text(status));
    }
    bhi_judge_outcome_fail(outcome, verdict.status, "%s", verdict.message);
    outcome->blame = verdict.blame;
    return false;
}

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

/* The request, and what it borrows. */
struct prepared {
    struct bhi_run_request request;
    char *push; /* owned */
};

static struct prepared *prepare(const struct bhi_court *court,
                                const struct bhi_judged_kernel *kernel,
                                const struct bhi_trial *trial, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    struct prepared *prepared = calloc(1, sizeof *prepared);
    if (!prepared || !bhi_run_request_init(&prepared->request, kernel->name,
                                           court->task->array_count, &complaint)) {
        free(prepared);
        bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
        return NULL;
    }
    if (fill_request(court, kernel, trial, &prepared->request, &prepared->push, &complaint)) {
        return prepared;
    }
    bhi_judge_outcome_fail(outcome, BH_BINDING_MISMATCH, "%.590s", complaint.text);
    bhi_run_request_free(&prepared->request);
    free(prepared->push);
    free(prepared);
    return NULL;
}

/* Releases the buffers, too. */
static void end(struct prepared *prepared) {
    bhi_run_request_free(&prepared->request);
    free(prepared->push);
    free(prepared);
}

bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            struct bhi_judge_outcome *outcome) {
    struct prepared *prepared = prepare(court, kernel, &court->trials.list[0], outcome);
    if (!prepared) {
        return false;
    }
    end(prepared);
    return true;
}

/* -- one run ------------------------------------------------------------------------------------
 */

/* Makes the buffer of array |index| and fills it. */
static bool make_buffer(const struct bhi_court *court, const struct bhi_trial *trial,
                        uint32_t index, struct bhi_margins *margins, bh_buffer **out_buffer,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &trial->arrays[index];
    const bool is_input = court->task->arrays[index].role == BHI_TASK_IN;
    const uint64_t bytes = array->form.bytes + (is_input ? 0 : 2 * BHI_MARGIN);
    /* The number of the run is the counter's place: no two runs have the same noise. */
    const struct bhi_filler_place place = {
        .seed = court->noise_seed + court->runs, .trial = 0, .array = index};
    bh_detail detail = {0};
    void *content;
    bh_status status = bh_buffer_create(court->context, bytes, out_buffer, &detail);
    if (status == BH_OK) {
        status = bh_buffer_map(*out_buffer, BH_MAP_DISCARD, content_limit_ns, &content, &detail);
    }
    if (status != BH_OK) {
        return bhi_judge_outcome_take(outcome, status, &detail);
    }
    if (is_input) {
        memcpy(content, array->before, array->form.bytes);
        return true;
    }
    bhi_margins_fill(margins, place, content, array->form.bytes);
    if (array->before) {
        memcpy((uint8_t *)content + BHI_MARGIN, array->before, array->form.bytes);
    }
    return true;
}

static bool submit(bh_stream *stream, const struct bhi_judged_kernel *kernel,
                   const uint32_t groups[3], const struct bhi_task *task,
                   const struct bhi_trial *trial, const struct bhi_run_request *request,
                   struct bhi_judge_outcome *outcome) {
    bh_binding bindings[BHI_TASK_ARRAYS];
    bh_event *event = NULL;
    bh_detail detail = {0};
    bhi_run_request_bindings(request, bindings);
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (task->arrays[i].role != BHI_TASK_IN) {
            bindings[i].offset = BHI_MARGIN;
            bindings[i].size = trial->arrays[i].form.bytes;
        }
    }
    const bh_status status =
        bh_launch(stream, kernel->kernel, groups, bindings, request->binding_count,
                  request->push.bytes, request->push.size, &event, &detail);
    if (status != BH_OK) {
        return bhi_judge_outcome_take(outcome, status, &detail);
    }
    const bool good = bhi_court_await(event, outcome);
    (void)bh_event_release(event);
    return good;
}

/* Copies the output of array |index|. The worker still lives, and may be the kernel's by now: what
 * is compared must not change meanwhile. */
static bool take_output(const struct bhi_trial *trial, uint32_t index, bh_buffer *buffer,
                        const struct bhi_margins *margins, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    const uint64_t size = trial->arrays[index].form.bytes;
    bh_detail detail = {0};
    void *content;
    const bh_status status =
        bh_buffer_map(buffer, BH_MAP_READ, content_limit_ns, &content, &detail);
    if (status != BH_OK) {
        return bhi_judge_outcome_take(outcome, status, &detail);
    }
    if (!(out->outputs[index] = malloc(size))) {
        return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
    }
    memcpy(out->outputs[index], (const uint8_t *)content + BHI_MARGIN, size);
    if (!out->strayed && bhi_margins_find(margins, content, size, &out->stray_offset)) {
        out->strayed = true;
        out->stray_array = index;
    }
    return true;
}

static bool run(struct bhi_court *court, bh_stream *stream, const struct bhi_judged_kernel *kernel,
                const uint32_t groups[3], const struct bhi_trial *trial,
                struct bhi_run_request *request, struct bhi_margins *margins,
                struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    bool good = true;
    court->runs++;
    for (uint32_t i = 0; i < task->array_count && good; i++) {
        good = make_buffer(court, trial, i, &margins[i], &request->bindings[i].buffer, outcome);
    }
    good = good && submit(stream, kernel, groups, task, trial, request, outcome);
    for (uint32_t i = 0; i < task->array_count && good; i++) {
        good = task->arrays[i].role == BHI_TASK_IN ||
               take_output(trial, i, request->bindings[i].buffer, &margins[i], out, outcome);
    }
    return good;
}

bool bhi_court_launch(struct bhi_court *court, bh_stream *stream,
                      const struct bhi_judged_kernel *kernel, const struct bhi_task_groups *groups,
                      const struct bhi_trial *trial, struct bhi_launched *out,
                      struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    uint32_t counts[3];
    *out = (struct bhi_launched){.strayed = false};
    if (!bhi_task_groups_for(court->task, trial->size, groups, kernel->local_size, counts,
                             &complaint)) {
        return bhi_judge_outcome_fail(
            outcome, BH_BINDING_MISMATCH, "groups: %.500s, and a workgroup of %ux%ux%u",
            complaint.text, kernel->local_size[0], kernel->local_size[1], kernel->local_size[2]);
    }
    struct prepared *prepared = prepare(court, kernel, trial, outcome);
    if (!prepared) {
        return false;
    }
    struct bhi_margins *margins = calloc(court->task->array_count, sizeof *margins);
    const bool good = margins ? run(court, stream, kernel, counts, trial, &prepared->request,
                                    margins, out, outcome)
                              : bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
    free(margins);
    end(prepared);
    if (!good) {
        bhi_launched_free(out);
    }
    return good;
}

void bhi_launched_free(struct bhi_launched *launched) {
    for (size_t i = 0; i < BHI_TASK_ARRAYS; i++) {
        free(launched->outputs[i]);
        launched->outputs[i] = NULL;
    }
}
