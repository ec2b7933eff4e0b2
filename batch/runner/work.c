#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "batch/runner/work.h"

#include "base/format.h"
#include "batch/runner/input_cache.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/state.h"
#include "tool/clock.h"
#include "tool/text.h"

void bhi_runner_wake(struct bhi_runner *runner) {
    (void)!eventfd_write(runner->news, 1);
}

void bhi_work_enter(struct bhi_work *work, enum bhi_work_stage stage) {
    struct bhi_runner *runner = work->runner;
    runner->at[work->stage]--;
    runner->at[stage]++;
    work->stage = stage;
}

void bhi_work_temporary(const struct bhi_work *work, uint32_t index, char *out, size_t capacity) {
    const struct bhi_run_binding *binding = &work->request->run.bindings[index];
    char named[16]; /* the slot is unknown if a complete job is only placed */
    snprintf(named, sizeof named, "n%u", index);
    bhi_format(out, capacity, ".bulkhead-%s-%llu-%s.tmp", bhi_queue_batch_id(work->runner->queue),
               (unsigned long long)work->job->number,
               binding->name[0] ? named : bhi_slot_describe(binding->slot, false).text);
}

uint64_t bhi_work_deadline(const struct bhi_work *work) {
    const uint64_t given = work->request->run.deadline_ns;
    const uint64_t each = given ? given : work->runner->options->deadline_ns;
    uint64_t all;
    if (each == BH_FOREVER || work->pieces.count < 2) {
        return each;
    }
    return __builtin_mul_overflow(each, work->pieces.count, &all) ? BH_FOREVER : all;
}

/* The times in the verdict count from the start of the machine. */
void bhi_work_set_times(struct bhi_attempt *attempt) {
    const bh_verdict *verdict = &attempt->verdict;
    const uint64_t offset = bhi_clock_calendar_ns() - bhi_clock_ns();
    const uint64_t now = bhi_clock_calendar_ns();
    const uint64_t began = verdict->started_ns ? verdict->started_ns : verdict->submitted_ns;
    attempt->ended_ns = verdict->ended_ns ? verdict->ended_ns + offset : now;
    attempt->started_ns = began ? began + offset : attempt->ended_ns;
}

/* Adds the work to a list of the finishers. Wakes one if that changes which list is ripe, or
 * when. */
void bhi_runner_finish(struct bhi_runner *runner, struct bhi_work_list *list,
                       struct bhi_work *work) {
    bhi_work_push(list, work);
    if (list->count == 1) {
        list->since_ns = bhi_clock_ns();
    }
    if (list->count == 1 || list->count % BHI_RUNNER_BATCH == 0 ||
        runner->at[BHI_WORK_IN_FLIGHT] == 0) {
        pthread_cond_signal(&runner->finish_wake);
    }
}

bh_status bhi_work_blame(int sys_errno, bh_status otherwise) {
    switch (sys_errno) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
    case ESTALE:
    case EHOSTDOWN:
        return BH_SYSTEM; /* due to the machine: it may pass */
    default:
        return otherwise; /* due to the path */
    }
}

/* If a job with an input failed, the input may be the cause: the next job loads it again. */
static bool is_spoilt(const struct bhi_work *work) {
    const bh_verdict *verdict = &work->attempt.verdict;
    return verdict->status != BH_OK && verdict->hops > 0;
}

void bhi_work_release(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    struct bhi_work *thirsty;
    bhi_pieces_free(&work->pieces);
    bhi_eval_plan_release(work->plan);
    work->plan = NULL;
    if (work->inputs) {
        for (uint32_t i = 0; i < work->request->run.binding_count; i++) {
            if (work->inputs[i]) {
                bhi_input_entry_drop(runner, work->inputs[i], is_spoilt(work));
            }
        }
        free(work->inputs);
        work->inputs = NULL;
    }
    free(work->reads);
    work->reads = NULL;
    for (uint32_t i = 0; work->request && i < work->request->run.binding_count; i++) {
        bh_buffer_release(work->request->run.bindings[i].buffer);
        work->request->run.bindings[i].buffer = NULL;
    }
    if (work->kernel) {
        bhi_kernel_entry_drop(runner, work->kernel);
    }
    work->kernel = NULL;
    pthread_mutex_lock(&runner->lock);
    if (work->assigned) {
        runner->streams[work->stream].assigned--;
    }
    work->assigned = false;
    if (work->holds_counted) {
        runner->holders--;
        runner->bytes -= work->bytes;
        while ((thirsty = bhi_work_pop(&runner->thirsty))) {
            bhi_work_push(&runner->to_stage, thirsty);
            pthread_cond_signal(&runner->stage_wake);
        }
    }
    work->holds_counted = false;
    work->bytes = 0;
    pthread_mutex_unlock(&runner->lock);
}

/* The library knows neither the kernel's file nor the options of a batch. */
static void explain(const struct bhi_work *work, bh_verdict *verdict) {
    if (verdict->reason == BH_REASON_COMPILE_DEADLINE) {
        bhi_text_append(verdict->message, sizeof verdict->message,
                        work->attempt.started
                            ? "; --compile-deadline raises it"
                            : "; \"compile_deadline\" or --compile-deadline raises it");
    }
    if (verdict->status == BH_INVALID_KERNEL && work->attempt.started && work->request) {
        char why[sizeof verdict->message];
        memcpy(why, verdict->message, sizeof why);
        bhi_format(verdict->message, sizeof verdict->message, "kernel %.200s: %.300s",
                   work->request->run.kernel_path, why);
    }
}

void bhi_work_end(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    explain(work, &work->attempt.verdict);
    bhi_work_set_times(&work->attempt);
    bhi_work_release(work);
    pthread_mutex_lock(&runner->lock);
    bhi_work_enter(work, BHI_WORK_OVER);
    bhi_work_push(&runner->over, work);
    bhi_runner_wake(runner);
    pthread_mutex_unlock(&runner->lock);
}

bool bhi_work_refuse(struct bhi_work *work, bh_status status, int sys_errno, const char *format,
                     ...) {
    bh_verdict *verdict = &work->attempt.verdict;
    va_list arguments;
    verdict->status = status;
    verdict->sys_errno = sys_errno;
    if (!work->attempt.started) {
        verdict->exit_code = -1;
    }
    va_start(arguments, format);
    bhi_vformat(verdict->message, sizeof verdict->message, format, arguments);
    va_end(arguments);
    if (work->request && !verdict->kernel_name[0]) {
        bhi_format(verdict->kernel_name, sizeof verdict->kernel_name, "%s",
                   work->request->run.kernel_name);
    }
    bhi_work_end(work);
    return false;
}
