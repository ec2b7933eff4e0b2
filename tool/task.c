#include "tool/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/wait.h"

struct task {
    void (*call)(void *);
    void *argument;
};

static void *run(void *argument) {
    const struct task *task = argument;
    task->call(task->argument);
    return NULL;
}

bool bhi_task_await(pthread_t thread) {
    for (;;) {
        const struct timespec until = bhi_clock_until(bhi_clock_ns() + BHI_WAIT_SLICE_NS);
        if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0) {
            return true;
        }
        if (bhi_interrupt_signal()) {
            return false;
        }
    }
}

static bool refuse_threads(const char *command, int error, int *out_exit) {
    char limit[BHI_LIMIT_TEXT];
    bhi_complain(command, "cannot start a thread: %s%s", strerror(error),
                 bhi_limit_named(error, limit));
    bhi_ending_blame(error == ENOMEM ? BH_NO_MEMORY : BH_SYSTEM);
    *out_exit = BHI_EXIT_ENVIRON;
    return false;
}

bool bhi_task_run_all(const char *command, size_t count, void (*call)(void *), void (*end)(void *),
                      void *argument, int *out_exit) {
    struct task task = {call, argument};
    pthread_t *threads = calloc(count, sizeof *threads);
    size_t started = 0, ended = 0;
    int error = threads ? 0 : ENOMEM;
    while (!error && started < count) {
        error = pthread_create(&threads[started], NULL, run, &task);
        started += !error;
    }
    if (!started) {
        free(threads);
        return refuse_threads(command, error, out_exit);
    }
    while (ended < started && bhi_task_await(threads[ended])) {
        ended++;
    }
    const bool good = ended == started;
    if (!good) {
        end(argument);
        *out_exit = bhi_interrupt_exit_status();
    }
    for (; ended < started; ended++) {
        (void)pthread_join(threads[ended], NULL);
    }
    free(threads);
    return good;
}

/* A task that uses a context. */
struct session {
    struct task task;
    bh_context *context;
    bool ended;
};

static void run_session(void *argument) {
    const struct session *session = argument;
    session->task.call(session->task.argument);
}

static void end_session(void *argument) {
    struct session *session = argument;
    (void)bh_context_destroy(session->context);
    session->ended = true;
}

bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit) {
    struct session session = {.task = {call, argument}, .context = *context};
    const bool good = bhi_task_run_all(command, 1, run_session, end_session, &session, out_exit);
    if (session.ended) {
        *context = NULL;
    }
    return good;
}
