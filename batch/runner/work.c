/* An attempt at a job, and the lists that attempts stand in. */
#include <stdarg.h>
#include <stdio.h>

#include "batch/runner/internal.h"
#include "tool/clock.h"

void bhi_work_list_init(struct bhi_work_list *list) {
    list->first = NULL;
    list->last = &list->first;
    list->count = 0;
}

void bhi_work_push(struct bhi_work_list *list, struct bhi_work *work) {
    work->next = NULL;
    *list->last = work;
    list->last = &work->next;
    list->count++;
}

struct bhi_work *bhi_work_pop(struct bhi_work_list *list) {
    struct bhi_work *work = list->first;
    if (!work) {
        return NULL;
    }
    list->first = work->next;
    if (!list->first) {
        list->last = &list->first;
    }
    list->count--;
    work->next = NULL;
    return work;
}

void bhi_runner_wake(struct bhi_runner *runner) {
    runner->news = true;
    pthread_cond_signal(&runner->main_wake);
}

void bhi_work_enter(struct bhi_work *work, enum bhi_work_stage stage) {
    struct bhi_runner *runner = work->runner;
    runner->at[work->stage]--;
    runner->at[stage]++;
    work->stage = stage;
}

void bhi_work_temporary(const struct bhi_work *work, uint32_t index, char *out, size_t capacity) {
    const struct bhi_run_binding *binding = &work->request->run.bindings[index];
    char named[16]; /* its slot is not known to who only places what is complete */
    snprintf(named, sizeof named, "n%u", index);
    snprintf(out, capacity, ".bulkhead-%s-%llu-%s.tmp", bhi_queue_batch_id(work->runner->queue),
             (unsigned long long)work->job->number,
             binding->name[0] ? named : bhi_slot_describe(binding->slot, false).text);
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

void bhi_work_end(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    bhi_work_set_times(&work->attempt);
    bhi_stage_release(work);
    pthread_mutex_lock(&runner->lock);
    bhi_work_enter(work, BHI_WORK_OVER);
    bhi_work_push(&runner->over, work);
    bhi_runner_wake(runner);
    pthread_mutex_unlock(&runner->lock);
}

void bhi_work_refuse(struct bhi_work *work, bh_status status, int sys_errno, const char *format,
                     ...) {
    bh_verdict *verdict = &work->attempt.verdict;
    va_list arguments;
    verdict->status = status;
    verdict->sys_errno = sys_errno;
    if (!work->attempt.started) {
        verdict->exit_code = -1;
    }
    va_start(arguments, format);
    vsnprintf(verdict->message, sizeof verdict->message, format, arguments);
    va_end(arguments);
    if (work->request && !verdict->kernel_name[0]) {
        snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s",
                 work->request->run.kernel_name);
    }
    bhi_work_end(work);
}
