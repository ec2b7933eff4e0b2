/* The runner's threads: stagers, compilers, finishers. Each waits until a list has works. */
#include <string.h>

#include "batch/runner/finish.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/work.h"
#include "tool/clock.h"

static const uint64_t gather_ns = 5000000;

/* Calls |serve| for each work of |list| until the runner quits. |wake| signals new works. */
static void serve_list(struct bhi_runner *runner, struct bhi_work_list *list, pthread_cond_t *wake,
                       void (*serve)(struct bhi_work *work)) {
    struct bhi_work *work;
    pthread_mutex_lock(&runner->lock);
    for (;;) {
        while (!(work = bhi_work_pop(list)) && !runner->quitting) {
            pthread_cond_wait(wake, &runner->lock);
        }
        if (!work) {
            break;
        }
        pthread_mutex_unlock(&runner->lock);
        serve(work);
        pthread_mutex_lock(&runner->lock);
    }
    pthread_mutex_unlock(&runner->lock);
}

static void *run_stager(void *argument) {
    struct bhi_runner *runner = argument;
    serve_list(runner, &runner->to_stage, &runner->stage_wake, bhi_stage);
    return NULL;
}

static void *run_compiler(void *argument) {
    struct bhi_runner *runner = argument;
    serve_list(runner, &runner->to_compile, &runner->compile_wake, bhi_stage_compile);
    return NULL;
}

/* A disk makes several files durable as fast as one. So a list waits a little for more works, while
 * something is in flight that may end. */
static bool is_ripe(const struct bhi_runner *runner, const struct bhi_work_list *list,
                    uint64_t now_ns) {
    return list->count >= BHI_RUNNER_BATCH ||
           (list->count > 0 && (runner->at[BHI_WORK_IN_FLIGHT] == 0 || runner->quitting ||
                                now_ns - list->since_ns >= gather_ns));
}

/* Sleeps until a list may be ripe. */
static void wait_for_work(struct bhi_runner *runner) {
    const struct bhi_work_list *lists[] = {&runner->to_place, &runner->to_write};
    uint64_t until = UINT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        if (lists[i]->count && lists[i]->since_ns + gather_ns < until) {
            until = lists[i]->since_ns + gather_ns;
        }
    }
    if (until == UINT64_MAX) {
        pthread_cond_wait(&runner->finish_wake, &runner->lock);
        return;
    }
    const struct timespec time = bhi_clock_until(until);
    pthread_cond_timedwait(&runner->finish_wake, &runner->lock, &time);
}

/* Complete outputs are placed first, because other jobs wait for them. */
static struct bhi_work_list *ripe_list(struct bhi_runner *runner) {
    const uint64_t now_ns = bhi_clock_ns();
    return is_ripe(runner, &runner->to_place, now_ns)   ? &runner->to_place
           : is_ripe(runner, &runner->to_write, now_ns) ? &runner->to_write
                                                        : NULL;
}

static void *run_finisher(void *argument) {
    struct bhi_runner *runner = argument;
    struct bhi_work *works[BHI_RUNNER_BATCH];
    struct bhi_work_list *list;
    pthread_mutex_lock(&runner->lock);
    for (;;) {
        while (!(list = ripe_list(runner)) && !runner->quitting) {
            wait_for_work(runner);
        }
        if (!list) {
            break;
        }
        const bool places = list == &runner->to_place;
        size_t count = 0;
        while (count < BHI_RUNNER_BATCH && list->count) {
            works[count++] = bhi_work_pop(list);
        }
        list->since_ns = bhi_clock_ns();
        if (list->count) { /* wakes another finisher */
            pthread_cond_signal(&runner->finish_wake);
        }
        pthread_mutex_unlock(&runner->lock);
        (places ? bhi_finish_place : bhi_finish_write)(works, count);
        pthread_mutex_lock(&runner->lock);
    }
    pthread_mutex_unlock(&runner->lock);
    return NULL;
}

static bool start(struct bhi_runner *runner, void *(*run)(void *), size_t count,
                  struct bhi_complaint *complaint) {
    for (size_t i = 0; i < count; i++) {
        const int error = pthread_create(&runner->threads[runner->thread_count], NULL, run, runner);
        if (error) {
            return bhi_refuse(complaint, "no thread can be started: %s", strerror(error));
        }
        runner->thread_count++;
    }
    return true;
}

bool bhi_runner_start_threads(struct bhi_runner *runner, struct bhi_complaint *complaint) {
    return start(runner, run_stager, BHI_RUNNER_STAGERS, complaint) &&
           start(runner, run_compiler, BHI_RUNNER_COMPILERS, complaint) &&
           start(runner, run_finisher, BHI_RUNNER_FINISHERS, complaint);
}

void bhi_runner_end_threads(struct bhi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->quitting = true;
    pthread_cond_broadcast(&runner->stage_wake);
    pthread_cond_broadcast(&runner->compile_wake);
    pthread_cond_broadcast(&runner->finish_wake);
    pthread_mutex_unlock(&runner->lock);
    for (size_t i = 0; i < runner->thread_count; i++) {
        pthread_join(runner->threads[i], NULL);
    }
    runner->thread_count = 0;
}
