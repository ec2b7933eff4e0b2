#include "batch/runner/runner.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "batch/runner/input_cache.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/policy.h"
#include "batch/runner/reads.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/step.h"
#include "batch/runner/streams.h"
#include "batch/runner/work.h"
#include "request/run.h"
#include "tool/clock.h"
#include "tool/interrupt.h"

static const uint64_t tick_ns = 100000000u;         /* between checks of signals and progress */
static const uint64_t patience_ns = 60000000000u;   /* while the environment refuses everything */
static const uint64_t start_ns = 10000000000u;      /* then workers are ready or have failed */
static const uint64_t last_hold_ns = 30000000000u;  /* longer than a start takes to fail */
static const uint64_t compile_ns = 60000000000u;    /* the limit of a compile */
static const uint64_t tell_again_ns = 10000000000u; /* before the same reason is reported again */
static const uint64_t stuck_limit_ns = 1000000000u; /* of a compile after the batch is to end */

/* -- submitting ------------------------------------------------------------------------------ */

/* The work's event has ended. */
static void land(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    const bool is_ready = bh_event_query(work->event) == BH_EVENT_READY;
    work->attempt.verdict.struct_size = sizeof work->attempt.verdict;
    if (bh_event_verdict(work->event, &work->attempt.verdict) != BH_OK) {
        abort(); /* impossible: the event has ended */
    }
    pthread_mutex_lock(&runner->lock);
    runner->streams[work->stream].in_flight--;
    if (is_ready) {
        bhi_work_enter(work, BHI_WORK_FINISHING);
        bhi_runner_finish(runner, &runner->to_write, work);
    }
    pthread_mutex_unlock(&runner->lock);
    if (!is_ready) {
        bhi_work_end(work);
    }
}

static bh_status submit(struct bhi_work *work, bh_detail *detail) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_run_request *request = &work->request->run;
    bh_binding bindings[BHI_MAX_BINDINGS];
    const bh_command dispatch =
        bhi_run_request_command(request, work->kernel ? work->kernel->kernel : NULL, bindings);
    const bh_submit_info info = {
        .struct_size = sizeof info,
        .commands = work->pieces.count ? work->pieces.commands : &dispatch,
        .command_count = work->pieces.count ? work->pieces.count : 1,
        .deadline_ns = bhi_work_deadline(work),
        .alone = work->job->unproven,
    };
    return bh_submit(runner->streams[work->stream].stream, &info, &work->event, detail);
}

static void launch(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    bh_detail detail = {0};
    struct bhi_runner_stream *stream = &runner->streams[work->stream];
    if (stream->reset_needed) {
        stream->reset_needed = false;
        (void)!bh_stream_reset(stream->stream, NULL);
    }
    const bh_status status = submit(work, &detail);
    if (status != BH_OK) {
        pthread_mutex_lock(&runner->lock);
        stream->in_flight--;
        pthread_mutex_unlock(&runner->lock);
        bhi_work_refuse(work, status, detail.sys_errno, "%.500s",
                        detail.message[0] ? detail.message : bh_status_text(status));
        return;
    }
    work->attempt.started = true;
    work->attempt.deadline_ns = bhi_work_deadline(work);
    if (!work->attempt.deadline_ns) {
        bh_stream_options defaults = {.struct_size = sizeof defaults};
        work->attempt.deadline_ns = defaults.deadline_ns;
    }
    bhi_queue_started(runner->queue, work->job, work->stream);
    BHI_BATCH_STEP("batch_submitted");
    if (bh_queue_add(runner->ends, work->event, (uintptr_t)work, NULL) != BH_OK) {
        (void)!bh_event_cancel(work->event);
        (void)!bh_event_wait(work->event, BH_FOREVER); /* so it ends in bounded time (E9) */
        land(work);
    }
}

static void land_all(struct bhi_runner *runner) {
    bh_completion ended;
    size_t count;
    while (bh_queue_take(runner->ends, BH_NOW, &ended, 1, &count) == BH_OK) {
        bh_event_release(ended.event);
        land((struct bhi_work *)(uintptr_t)ended.user_data);
    }
}

/* Returns a staged work for a stream with room. If the stream's own list is empty, takes one from
 * another stream of its kind. */
static struct bhi_work *next_staged(struct bhi_runner *runner) {
    const uint32_t alike = runner->options->streams;
    for (uint32_t i = 0; i < runner->stream_count; i++) {
        struct bhi_runner_stream *stream = &runner->streams[i];
        struct bhi_runner_stream *from = stream;
        const uint32_t first = i - i % alike;
        if (stream->in_flight >= BHI_RUNNER_IN_FLIGHT) {
            continue;
        }
        for (uint32_t k = first; !stream->staged.count && k < first + alike; k++) {
            if (runner->streams[k].staged.count > from->staged.count) {
                from = &runner->streams[k];
            }
        }
        /* A stream with room keeps the works in its list. */
        if (from != stream && from->in_flight < BHI_RUNNER_IN_FLIGHT) {
            continue;
        }
        struct bhi_work *work = bhi_work_pop(&from->staged);
        if (!work) {
            continue;
        }
        from->assigned--;
        stream->assigned++;
        stream->in_flight++;
        work->stream = work->attempt.stream = i;
        bhi_work_enter(work, BHI_WORK_IN_FLIGHT);
        return work;
    }
    return NULL;
}

/* Returns true while nothing is to be started: while the environment refuses everything, attempts
 * would only cost jobs a record. */
static bool is_held(const struct bhi_runner *runner) {
    return runner->hold_until_ns && bhi_clock_ns() < runner->hold_until_ns;
}

static void launch_staged(struct bhi_runner *runner) {
    while (!is_held(runner)) {
        pthread_mutex_lock(&runner->lock);
        struct bhi_work *work = runner->stopping ? NULL : next_staged(runner);
        pthread_mutex_unlock(&runner->lock);
        if (!work) {
            return;
        }
        launch(work);
    }
}

/* -- taking ---------------------------------------------------------------------------------- */

static size_t outstanding(struct bhi_runner *runner) {
    size_t total = 0;
    pthread_mutex_lock(&runner->lock);
    for (int i = 0; i < BHI_WORK_STAGES; i++) {
        total += runner->at[i];
    }
    pthread_mutex_unlock(&runner->lock);
    return total;
}

static bool may_take(struct bhi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    const bool may =
        !runner->stopping && !runner->solo_running && !runner->deferred.count &&
        !runner->thirsty.count &&
        runner->at[BHI_WORK_PREPARING] < (size_t)BHI_RUNNER_STAGED * runner->stream_count &&
        runner->at[BHI_WORK_PARKED] < BHI_RUNNER_PARKED &&
        runner->at[BHI_WORK_FINISHING] < BHI_RUNNER_FINISHING &&
        /* The work may be the failure that halts the batch, so it is handled first. */
        (!runner->options->halt || !runner->at[BHI_WORK_OVER]);
    pthread_mutex_unlock(&runner->lock);
    return may;
}

static void stage(struct bhi_runner *runner, struct bhi_work *work) {
    pthread_mutex_lock(&runner->lock);
    work->stage = BHI_WORK_PREPARING;
    runner->at[BHI_WORK_PREPARING]++;
    bhi_work_push(&runner->to_stage, work);
    pthread_cond_signal(&runner->stage_wake);
    pthread_mutex_unlock(&runner->lock);
}

static void take(struct bhi_runner *runner) {
    while (!is_held(runner) && may_take(runner)) {
        struct bhi_work *work = calloc(1, sizeof *work);
        if (!work) {
            return; /* others will give some back */
        }
        work->runner = runner;
        work->job = bhi_queue_take(runner->queue);
        if (!work->job) {
            free(work);
            return;
        }
        BHI_BATCH_STEP("batch_taken");
        stage(runner, work);
    }
}

/* Runs works that found too little memory: one at a time, and alone. */
static void take_deferred(struct bhi_runner *runner) {
    if (runner->solo_running || outstanding(runner) > 0) {
        return;
    }
    struct bhi_work *work = bhi_work_pop(&runner->deferred);
    if (!work) {
        return;
    }
    /* Kept inputs have descriptors, and so has the memory that the library keeps after them. */
    bhi_inputs_drop_unused(runner);
    (void)!bh_context_trim(runner->options->context, 0, NULL);
    runner->solo_running = true;
    stage(runner, work);
}

/* -- what became of them --------------------------------------------------------------------- */

static void free_work(struct bhi_work *work) {
    if (work->request) {
        const bool keeps = work->record_failed || work->placement_failed;
        for (uint32_t i = 0; keeps && i < work->request->run.binding_count; i++) {
            work->request->run.bindings[i].out.temporary[0] = 0; /* kept for the next process */
        }
        bhi_job_request_free(work->request);
        free(work->request);
    }
    bh_event_release(work->event);
    free(work);
}

/* Puts the work back to its beginning, as if it had not begun. */
static void defer(struct bhi_runner *runner, struct bhi_work *work) {
    struct bhi_job *job = work->job;
    if (work->request) {
        bhi_job_request_free(work->request);
    }
    free(work->request);
    bh_event_release(work->event);
    memset(work, 0, sizeof *work);
    work->runner = runner;
    work->job = job;
    bhi_work_push(&runner->deferred, work);
}

/* Reports why the batch waits, if the reason is new. The messages of jobs differ, so status and
 * errno are compared. */
static void tell_waiting(struct bhi_runner *runner, const bh_verdict *verdict) {
    const uint64_t now = bhi_clock_ns();
    const bool same = runner->told == verdict->status && runner->told_errno == verdict->sys_errno;
    if (!runner->options->waits || (same && now - runner->told_ns < tell_again_ns)) {
        return;
    }
    runner->told = verdict->status;
    runner->told_errno = verdict->sys_errno;
    runner->told_ns = now;
    runner->options->waits(runner->options->user, runner->why.text);
}

static void count_refusal(struct bhi_runner *runner, const struct bhi_work *work,
                          const struct bhi_policy_answer *answer) {
    const bh_verdict *verdict = &work->attempt.verdict;
    if (!answer->environment_failed) {
        runner->refusals = 0;
        runner->hold_until_ns = 0;
        return;
    }
    const uint64_t now_ns = bhi_clock_ns();
    if (runner->refusals++ == 0) {
        runner->refused_ns = now_ns;
    }
    const bool workerless = verdict->status == BH_UNAVAILABLE;
    /* The limit is more refusals than works can have been in progress. Without workers no job does
     * better, so all wait. Other reasons may concern only some jobs, so others get their turn. In
     * the end nothing is taken for so long that all works have ended: only then is it certain that
     * nothing helps. */
    if (now_ns - runner->refused_ns > patience_ns) {
        runner->hold_until_ns = now_ns + last_hold_ns;
    } else if (runner->refusals > 2 * BHI_RUNNER_IN_FLIGHT * runner->options->streams) {
        runner->hold_until_ns = now_ns + (workerless ? answer->delay_ns : tick_ns);
    }
    if (work->attempt.started && workerless) {
        runner->streams[work->stream].reset_needed = true;
    }
    runner->refused_for_good |= answer->refused_for_good;
    bhi_refuse(&runner->why, "%.600s (%s)", verdict->message, bh_status_name(verdict->status));
    tell_waiting(runner, verdict);
}

static void note_stuck(struct bhi_runner *runner, const struct bhi_work *work) {
    runner->stuck++;
    if (runner->options->stuck) {
        runner->options->stuck(runner->options->user, work->job, work->attempt.verdict.message);
    }
}

/* Was the job to blame, for certain? */
static bool is_certain(const struct bhi_work *work) {
    const bh_verdict *verdict = &work->attempt.verdict;
    return verdict->blame == BH_BLAME_CERTAIN &&
           bh_verdict_classify(verdict) == BH_STATUS_CLASS_GUILTY;
}

/* Has the kernel been quarantined, here or by a batch that shares the quarantine? Then its next
 * attempts would be like those. */
static bool is_known_bad(const struct bhi_runner *runner, const struct bhi_work *work) {
    return runner->options->quarantine && is_certain(work) &&
           bhi_quarantine_has(runner->options->quarantine, &work->attempt.verdict);
}

static void conclude(struct bhi_runner *runner, struct bhi_work *work, bool alone) {
    const struct bhi_job *job = work->job;
    const struct bhi_policy_case given = {
        .verdict = &work->attempt.verdict,
        .retries = is_known_bad(runner, work) ? 0 : job->retries,
        .guilty = job->guilty,
        .victim = job->victim,
        .refusals = runner->refusals,
        .refused_long = runner->refusals > 0 && bhi_clock_ns() - runner->refused_ns > start_ns,
        .batch_has_served = runner->has_served,
        .nothing_else_held = alone,
        .tried_alone = job->unproven,
        .names_device = work->request && work->request->run.device,
        .stopping = runner->stopping,
        .interrupted = runner->interrupted,
    };
    if (work->placement_failed) { /* the job has not ended; others go on */
        note_stuck(runner, work);
        free_work(work);
        return;
    }
    if (work->record_failed) { /* whether it was recorded is unknown, so nothing more is recorded */
        runner->refused_for_good = true;
        bhi_refuse(&runner->why, "%.600s", work->attempt.verdict.message);
        free_work(work);
        return;
    }
    const struct bhi_policy_answer answer = bhi_policy(&given);
    if (answer.waits_for_others) {
        defer(runner, work);
        return;
    }
    count_refusal(runner, work, &answer);
    work->attempt.next = answer.next;
    work->attempt.guilty = answer.guilty;
    work->attempt.unproven = answer.unproven;
    runner->failed += answer.next == BHI_JOB_FAILED || answer.next == BHI_JOB_QUARANTINED;
    if (runner->options->quarantine && answer.next == BHI_JOB_QUARANTINED && is_certain(work)) {
        bhi_quarantine_put(runner->options->quarantine, &work->attempt.verdict, job->id);
    }
    /* The job is given back: nothing shows that it was taken. */
    const bool unbegun = runner->halted && !work->attempt.started && answer.next == BHI_JOB_WAITING;
    if (unbegun) {
        work->attempt.verdict.status = BH_PENDING;
    }
    if (runner->options->ended && !unbegun) {
        runner->options->ended(runner->options->user, job, &work->attempt);
    }
    bhi_queue_ended(runner->queue, work->job, &work->attempt, answer.delay_ns);
    if (answer.next == BHI_JOB_DONE) {
        runner->has_served = true;
        BHI_BATCH_STEP("batch_done");
    }
    free_work(work);
}

static void conclude_all(struct bhi_runner *runner) {
    for (;;) {
        pthread_mutex_lock(&runner->lock);
        struct bhi_work *work = bhi_work_pop(&runner->over);
        if (work) {
            runner->at[work->stage]--;
        }
        pthread_mutex_unlock(&runner->lock);
        if (!work) {
            return;
        }
        const bool alone =
            runner->solo_running; /* it was the only one, and nothing else was held */
        runner->solo_running = false;
        conclude(runner, work, alone);
    }
}

/* -- ending ---------------------------------------------------------------------------------- */

/* Starts nothing new. Cancels what is in flight, unless failures have halted the batch. Results
 * that are READY are still put in their places. */
static void stop(struct bhi_runner *runner) {
    struct bhi_work *work;
    struct bhi_work_list aside;
    bhi_work_list_init(&aside);
    pthread_mutex_lock(&runner->lock);
    runner->stopping = true;
    const uint32_t streams = runner->stream_count;
    for (uint32_t i = 0; i < streams; i++) {
        while ((work = bhi_work_pop(&runner->streams[i].staged))) {
            bhi_work_push(&aside, work);
        }
    }
    while ((work = bhi_work_pop(&runner->thirsty))) {
        bhi_work_push(&aside, work);
    }
    pthread_mutex_unlock(&runner->lock);
    while ((work = bhi_work_pop(&aside))) {
        bhi_work_refuse(work, BH_CANCELLED, 0, "cancelled before it was given to a worker");
    }
    while ((work = bhi_work_pop(&runner->deferred))) {
        stage(runner, work); /* it is cancelled there */
    }
    for (uint32_t i = 0; i < streams && !runner->halted; i++) {
        (void)!bh_stream_cancel(runner->streams[i].stream);
    }
    BHI_BATCH_STEP("stopped");
}

/* Returns true if the environment has refused everything for so long that no success is to be
 * expected. */
static bool is_hopeless(struct bhi_runner *runner) {
    const uint64_t refused_for_ns = runner->refusals ? bhi_clock_ns() - runner->refused_ns : 0;
    pthread_mutex_lock(&runner->lock);
    /* Works in these stages may still end well; those being prepared may be refused next. Works
     * that wait for a compiler do not count: there may be many, and each fails in its turn. */
    const bool idle = runner->at[BHI_WORK_IN_FLIGHT] + runner->at[BHI_WORK_FINISHING] +
                          runner->at[BHI_WORK_OVER] ==
                      0;
    const bool compiles = runner->at[BHI_WORK_PARKED] > 0;
    pthread_mutex_unlock(&runner->lock);
    return runner->refused_for_good ||
           (idle && refused_for_ns > patience_ns + (compiles ? compile_ns : 0));
}

/* Stuck jobs are RUNNING and do not end; jobs that need them do not begin. */
static bool is_left(const struct bhi_runner *runner, const struct bhi_queue_counts *counts) {
    return counts->of[BHI_JOB_WAITING] + counts->of[BHI_JOB_RUNNING] > runner->stuck ||
           (counts->of[BHI_JOB_SUBMITTED] > 0 && !runner->stuck);
}

/* Waits for news, or until the next tick. */
static void wait_for_news(struct bhi_runner *runner, const struct bhi_queue_counts *counts) {
    uint64_t until = bhi_clock_ns() + tick_ns;
    if (counts->next_due_ns && counts->next_due_ns < until) {
        until = counts->next_due_ns;
    }
    if (is_held(runner) && runner->hold_until_ns < until) {
        until = runner->hold_until_ns;
    }
    const uint64_t now = bhi_clock_ns();
    const struct timespec time = {.tv_nsec = now < until ? (long)(until - now) : 0};
    struct pollfd wanted[] = {{.fd = runner->news, .events = POLLIN},
                              {.fd = bh_queue_fd(runner->ends), .events = POLLIN}};
    eventfd_t value;
    (void)!ppoll(wanted, 2, &time, NULL);
    (void)!eventfd_read(runner->news, &value);
}

/* A compile or a file's header can keep a stager for a minute; destroying the context wakes it. */
static void hurry(struct bhi_runner *runner, uint64_t stopped_ns) {
    pthread_mutex_lock(&runner->lock);
    const bool staging = runner->at[BHI_WORK_PREPARING] + runner->at[BHI_WORK_PARKED] > 0;
    const bool busy = runner->at[BHI_WORK_IN_FLIGHT] + runner->at[BHI_WORK_FINISHING] > 0;
    pthread_mutex_unlock(&runner->lock);
    if (staging && !busy && bhi_clock_ns() - stopped_ns > stuck_limit_ns) {
        (void)bh_context_destroy(runner->options->context);
    }
}

/* Reports the counts. To the reader, a job that is being prepared still waits: RUNNING counts what
 * workers have. */
static void report_progress(struct bhi_runner *runner, const struct bhi_queue_counts *counts) {
    struct bhi_queue_counts shown = *counts;
    if (!runner->options->progress) {
        return;
    }
    pthread_mutex_lock(&runner->lock);
    uint64_t ready = runner->at[BHI_WORK_PREPARING] + runner->at[BHI_WORK_PARKED];
    pthread_mutex_unlock(&runner->lock);
    ready += runner->deferred.count;
    if (ready > shown.of[BHI_JOB_RUNNING]) {
        ready = shown.of[BHI_JOB_RUNNING];
    }
    shown.of[BHI_JOB_RUNNING] -= ready;
    shown.of[BHI_JOB_WAITING] += ready;
    runner->options->progress(runner->options->user, &shown);
}

static enum bhi_runner_result loop(struct bhi_runner *runner, struct bhi_complaint *complaint) {
    struct bhi_queue_counts counts;
    uint64_t told_ns = 0, stopped_ns = 0;
    enum bhi_runner_result result = BHI_RUNNER_FINISHED;
    for (;;) {
        land_all(runner);
        conclude_all(runner);
        if (!runner->stopping && bhi_interrupt_signal()) {
            runner->interrupted = true;
            result = BHI_RUNNER_INTERRUPTED;
        }
        if (!runner->stopping && !runner->interrupted && runner->options->cancelled &&
            runner->options->cancelled(runner->options->user)) {
            runner->interrupted = true;
            result = BHI_RUNNER_CANCELLED;
        }
        if (!runner->stopping && !runner->interrupted && runner->options->halt &&
            runner->failed >= runner->options->halt) {
            runner->halted = true;
            result = BHI_RUNNER_HALTED;
        }
        if (!runner->stopping && !runner->interrupted &&
            (is_hopeless(runner) || bhi_queue_broken(runner->queue, NULL))) {
            result = BHI_RUNNER_ENVIRON;
        }
        if (!runner->stopping && result != BHI_RUNNER_FINISHED) {
            stop(runner);
            stopped_ns = bhi_clock_ns();
        }
        take_deferred(runner);
        take(runner);
        launch_staged(runner);
        bhi_queue_counts(runner->queue, &counts);
        if (bhi_clock_ns() - told_ns >= tick_ns) {
            told_ns = bhi_clock_ns();
            report_progress(runner, &counts);
        }
        if (outstanding(runner) == 0 && !runner->deferred.count &&
            (runner->stopping || !is_left(runner, &counts))) {
            break;
        }
        if (runner->stopping) {
            hurry(runner, stopped_ns);
        }
        wait_for_news(runner, &counts);
    }
    report_progress(runner, &counts);
    if (result == BHI_RUNNER_HALTED && !is_left(runner, &counts)) {
        result = BHI_RUNNER_FINISHED; /* the last jobs have failed */
    }
    if (result == BHI_RUNNER_HALTED) {
        bhi_refuse(complaint, "%llu job%s failed", (unsigned long long)runner->failed,
                   runner->failed == 1 ? " has" : "s have");
    }
    if (result == BHI_RUNNER_FINISHED && runner->stuck) {
        result = BHI_RUNNER_STUCK;
        if (runner->stuck == 1) {
            bhi_refuse(complaint, "1 job is complete but cannot be put in place");
        } else {
            bhi_refuse(complaint, "%llu jobs are complete but cannot be put in place",
                       (unsigned long long)runner->stuck);
        }
    }
    if (result == BHI_RUNNER_ENVIRON) {
        *complaint = runner->why;
        /* With a broken journal the jobs only say that it is broken; the journal says why. */
        result = bhi_queue_broken(runner->queue, complaint) ? BHI_RUNNER_BROKEN : result;
    }
    return result;
}

/* -- beginning ------------------------------------------------------------------------------- */

static void init(struct bhi_runner *runner, struct bhi_queue *queue,
                 const struct bhi_runner_options *options) {
    struct bhi_work_list *const lists[] = {
        &runner->to_stage, &runner->to_compile, &runner->to_write, &runner->to_place,
        &runner->over,     &runner->thirsty,    &runner->deferred};
    pthread_condattr_t attributes;
    memset(runner, 0, sizeof *runner);
    runner->queue = queue;
    runner->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    runner->options = options;
    runner->bytes_limit = bhi_memory_unused() / 4;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        bhi_work_list_init(lists[i]);
    }
    bhi_list_init(&runner->kernels);
    bhi_list_init(&runner->inputs);
    bhi_list_init(&runner->templates);
    pthread_mutex_init(&runner->lock, NULL);
    pthread_mutex_init(&runner->making, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&runner->stage_wake, &attributes);
    pthread_cond_init(&runner->compile_wake, &attributes);
    pthread_cond_init(&runner->finish_wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void fini(struct bhi_runner *runner) {
    bhi_runner_end_threads(runner);
    bhi_inputs_free(runner);
    bhi_kernels_free(runner);
    bhi_read_hashes_free(runner->hashes);
    bhi_templates_free(runner);
    bhi_runner_free_streams(runner);
    bh_queue_destroy(runner->ends);
    bhi_fd_close(&runner->news);
    pthread_cond_destroy(&runner->stage_wake);
    pthread_cond_destroy(&runner->compile_wake);
    pthread_cond_destroy(&runner->finish_wake);
    pthread_mutex_destroy(&runner->making);
    pthread_mutex_destroy(&runner->lock);
}

enum bhi_runner_result bhi_runner_run(struct bhi_queue *queue,
                                      const struct bhi_runner_options *options,
                                      struct bhi_complaint *complaint) {
    struct bhi_runner runner;
    bh_detail detail;
    init(&runner, queue, options);
    enum bhi_runner_result result = BHI_RUNNER_ENVIRON;
    if (((runner.hashes = bhi_read_hashes_make()) || bhi_refuse(complaint, "out of memory")) &&
        (runner.news >= 0 || bhi_refuse(complaint, "eventfd: %s", strerror(errno))) &&
        (bh_queue_create(&runner.ends, &detail) == BH_OK ||
         bhi_refuse(complaint, "%s", detail.message)) &&
        bhi_runner_make_streams(&runner, complaint) &&
        bhi_runner_start_threads(&runner, complaint)) {
        result = loop(&runner, complaint);
    }
    fini(&runner);
    return result;
}
