/* Staging: makes all that an attempt needs before it goes to a worker. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/runner/stage.h"

#include "batch/runner/finish.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/state.h"
#include "batch/runner/step.h"
#include "batch/runner/streams.h"
#include "batch/runner/work.h"
#include "request/image.h"
#include "request/kernel_file.h"
#include "request/like.h"
#include "request/names.h"
#include "request/overlap.h"
#include "request/push.h"
#include "request/types.h"
#include "tool/device_list.h"
#include "tool/gpu_nodes.h"
#include "tool/place.h"

/* -- outputs --------------------------------------------------------------------------------- */

static bool refuse_same(struct bhi_run_request *request, uint32_t index,
                        struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < index; i++) {
        if (request->bindings[i].out_path &&
            bhi_outfile_same(&request->bindings[i].out, &request->bindings[index].out)) {
            return bhi_refuse(complaint, "writes the same file as %s %.200s",
                              request->bindings[i].option, request->bindings[i].text);
        }
    }
    return true;
}

/* Checks that output |index| can be written, and opens it. Returns false if the work is over. */
static bool open_output(struct bhi_work *work, uint32_t index) {
    struct bhi_run_request *request = &work->request->run;
    struct bhi_run_binding *binding = &request->bindings[index];
    struct bhi_complaint complaint;
    char temporary[BHI_OUTFILE_TEMPORARY];
    uint64_t size;

    if (!bhi_binding_make_header(binding, &complaint)) {
        return bhi_work_refuse(work, BH_INVALID_ARGUMENT, 0, "%s %.100s: %.390s", binding->option,
                               binding->text, complaint.text);
    }
    if (__builtin_add_overflow(binding->array.bytes, binding->header_size, &size)) {
        size = UINT64_MAX;
    }
    bhi_work_temporary(work, index, temporary, sizeof temporary);
    bool open =
        bhi_outfile_open_named(binding->out_path, temporary, size, &binding->out, &complaint);
    int error = open ? 0 : binding->out.error;
    if (error == ENOENT && work->runner->options->makes) {
        error = bhi_place_make_folders(binding->out_path);
        bhi_refuse(&complaint, "its folder cannot be made: %s", strerror(error));
        open = !error && bhi_outfile_open_named(binding->out_path, temporary, size, &binding->out,
                                                &complaint);
        error = error ? error : binding->out.error;
    }
    if (open && refuse_same(request, index, &complaint)) {
        return true;
    }
    return bhi_work_refuse(work, bhi_work_blame(error, BH_INVALID_ARGUMENT), error,
                           "%s %.100s: %.390s", binding->option, binding->text, complaint.text);
}

/* -- buffers --------------------------------------------------------------------------------- */

/* Prefers memory that a worker of the stream has used before. */
static bool make_output_buffer(struct bhi_work *work, uint32_t index) {
    struct bhi_runner *runner = work->runner;
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    bh_buffer_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.stream = runner->streams[work->stream].stream;
    options.memory = bhi_memory_for(runner->options->memory, binding->array.bytes);
    bh_status status = bh_buffer_create(runner->options->context, binding->array.bytes, &options,
                                        &binding->buffer, &detail);
    if (status == BH_OK) {
        return true;
    }
    return bhi_work_refuse(work, status, detail.sys_errno, "%s %.100s: %.390s", binding->option,
                           binding->text,
                           detail.message[0] ? detail.message : bh_status_text(status));
}

/* Resolves names, and compares the push constants with the kernel's. Returns false if the work is
 * over. */
static bool resolve_names(struct bhi_work *work) {
    struct bhi_complaint complaint;
    const struct bhi_kernel_types *types = work->kernel->types;
    struct bhi_run_request *request = &work->request->run;
    if (!types ||
        (bhi_run_resolve_names(request, types, "", &complaint) &&
         (request->reinterpret ||
          bhi_run_match_order(request, types, "", "\"reinterpret\": true", &complaint)))) {
        return true;
    }
    return bhi_work_refuse(work, BH_BINDING_MISMATCH, 0, "%.500s", complaint.text);
}

/* Refuses a kernel that the stream's device cannot run. Returns true if the work is over. */
static bool refuse_driver(struct bhi_work *work) {
    const struct bhi_runner *runner = work->runner;
    const struct bhi_run_request *request = &work->request->run;
    const char *selector = runner->kinds[work->stream / runner->options->streams].selector;
    struct bhi_complaint complaint;
    if (request->eval || !selector[0] || bhi_run_check_driver(request, selector, "", &complaint)) {
        return false;
    }
    bhi_work_refuse(work, BH_INVALID_ARGUMENT, 0, "kernel %.200s: %.300s", request->kernel_path,
                    complaint.text);
    return true;
}

/* Compares the arrays with the types in the kernel. Returns true if the work is refused. */
static bool refuse_types(struct bhi_work *work) {
    struct bhi_complaint complaint;
    const struct bhi_kernel_types *types = work->kernel->types;
    const struct bhi_run_binding *given =
        types && !work->request->run.reinterpret
            ? bhi_run_find_mismatch(&work->request->run, types, "\"reinterpret\": true", &complaint)
            : NULL;
    if (given) {
        bhi_work_refuse(work, BH_BINDING_MISMATCH, 0, "%s %.100s: %.390s", given->option,
                        given->text, complaint.text);
    }
    return given;
}

/* Refuses an array that the device cannot bind at once, before any of it is loaded. Returns true if
 * the work is over. */
static bool refuse_size(struct bhi_work *work, uint32_t index) {
    const struct bhi_runner *runner = work->runner;
    const struct bhi_run_binding *binding = &work->request->run.bindings[index];
    const char *device = runner->kinds[work->stream / runner->options->streams].selector;
    uint64_t range;
    uint32_t alignment;
    bh_detail detail = {0};
    if (work->request->run.eval || binding->array.bytes <= BHI_RANGE_OF_ALL) {
        return false; /* an expression is computed in pieces */
    }
    bh_status status = bhi_runner_limits(work, &range, &alignment, &detail);
    if (status == BH_OK && (!range || binding->array.bytes <= range)) {
        return false;
    }
    if (status == BH_OK) {
        status = BH_LIMIT_EXCEEDED;
        snprintf(detail.message, sizeof detail.message,
                 "%llu bytes, %s binds %llu at most (max_storage_range); an eval job computes in "
                 "pieces",
                 (unsigned long long)binding->array.bytes, device[0] ? device : "the device",
                 (unsigned long long)range);
    }
    bhi_work_refuse(work, status, detail.sys_errno, "%s %.100s: %.390s", binding->option,
                    binding->text, detail.message[0] ? detail.message : bh_status_text(status));
    return true;
}

/* Compares the files as they are now: earlier jobs have written theirs. */
static bool refuse_overlap(struct bhi_work *work) {
    struct bhi_complaint complaint;
    const struct bhi_run_binding *output =
        bhi_run_find_overlap(&work->request->run, "", &complaint);
    if (output) {
        bhi_work_refuse(work, BH_INVALID_ARGUMENT, 0, "%s %.100s: %.390s", output->option,
                        output->text, complaint.text);
    }
    return output;
}

static bool make_buffers(struct bhi_work *work) {
    struct bhi_run_request *request = &work->request->run;
    if (refuse_overlap(work)) {
        return false;
    }
    work->inputs = calloc(request->binding_count + 1, sizeof *work->inputs);
    work->reads = calloc(request->binding_count + 1, sizeof *work->reads);
    if (!work->inputs || !work->reads) {
        return bhi_work_refuse(work, BH_NO_MEMORY, 0, "out of memory");
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (work->request->run.eval && i == work->request->run.eval->inputs &&
            !bhi_stage_infer(work)) {
            return false;
        }
        if (binding->in_path && !bhi_stage_input(work, i)) {
            return false;
        }
    }
    struct bhi_complaint complaint;
    if (!bhi_run_take_likes(request, "", &complaint)) {
        return bhi_work_refuse(work, BH_INVALID_ARGUMENT, 0, "%.500s", complaint.text);
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (refuse_size(work, i)) {
            return false;
        }
        if (binding->out_path && !open_output(work, i)) {
            return false;
        }
        if (!binding->in_path && !make_output_buffer(work, i)) {
            return false;
        }
    }
    return work->request->run.eval ? bhi_stage_cut(work) : !refuse_types(work);
}

/* -- the whole ------------------------------------------------------------------------------- */

static bool parse(struct bhi_work *work) {
    struct bhi_complaint complaint;
    const bool sealed = work->job->sealed; /* no kernel will be made */
    int error = ENOMEM;
    if (work->request) {
        return true;
    }
    bhi_refuse(&complaint, "out of memory");
    work->request = calloc(1, sizeof *work->request);
    if (work->request && bhi_job_request_parse(work->job->text, bhi_queue_cwd(work->runner->queue),
                                               !sealed, work->request, &complaint)) {
        return true;
    }
    if (work->request) {
        error = work->request->error;
    }
    free(work->request);
    work->request = NULL;
    /* A complete job must not fail for lack of memory, even if it is alone. */
    if (sealed && error == ENOMEM) {
        error = EAGAIN;
    }
    return bhi_work_refuse(work, bhi_work_blame(error, BH_INVALID_ARGUMENT), error, "%.500s",
                           complaint.text);
}

static bool is_stopping(struct bhi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    const bool stopping = runner->stopping;
    pthread_mutex_unlock(&runner->lock);
    return stopping;
}

void bhi_stage(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    BHI_BATCH_STEP("stage_begun");
    /* A sealed job needs no worker; its outputs only have to be placed. */
    if (!work->job->sealed && is_stopping(runner)) {
        bhi_work_refuse(work, BH_CANCELLED, 0, "cancelled before it was given to a worker");
        return;
    }
    if (!parse(work)) {
        return;
    }
    if (work->job->sealed) { /* its outputs exist: there is nothing to make */
        bh_verdict *verdict = &work->attempt.verdict;
        verdict->executed = BH_EXECUTED_YES;
        verdict->exit_code = -1;
        bhi_run_note_language(&work->request->run,
                              bhi_language_of_name(work->request->run.kernel_path));
        memcpy(verdict->kernel_name, work->request->run.kernel_name, sizeof verdict->kernel_name);
        pthread_mutex_lock(&runner->lock);
        bhi_work_enter(work, BHI_WORK_FINISHING);
        bhi_runner_finish(runner, &runner->to_place, work);
        pthread_mutex_unlock(&runner->lock);
        return;
    }
    if (work->job->interrupted) {
        bhi_finish_sweep(work);
    }
    const bool is_eval = work->request->run.eval;
    if (!(is_eval ? bhi_stage_template(work) : bhi_stage_kernel(work) && resolve_names(work)) ||
        !bhi_stage_reserve(work) || !bhi_runner_choose_stream(work) || refuse_driver(work) ||
        !make_buffers(work)) {
        return;
    }
    BHI_BATCH_STEP("stage_ready");
    pthread_mutex_lock(&runner->lock);
    const bool stopping = runner->stopping; /* nobody takes what is staged then */
    if (!stopping) {
        bhi_work_push(&runner->streams[work->stream].staged, work);
        bhi_runner_wake(runner);
    }
    pthread_mutex_unlock(&runner->lock);
    if (stopping) {
        bhi_work_refuse(work, BH_CANCELLED, 0, "cancelled before it was given to a worker");
    }
}
