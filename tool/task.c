#include "tool/task.h"

#include <stdlib.h>

#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"

static const uint64_t slice_ns = 50000000; /* how often signals are checked */

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
        const struct timespec until = bhi_clock_until(bhi_clock_ns() + slice_ns);
        if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0) {
            return true;
        }
        if (bhi_interrupt_signal()) {
            return false;
        }
    }
}

static bool refuse_memory(const char *command, int *out_exit) {
    bhi_complain(command, "out of memory");
    bhi_ending_blame(BH_NO_MEMORY);
    *out_exit = BHI_EXIT_ENVIRON;
    return false;
}

bool bhi_task_run_all(const char *command, bh_context **context, size_t count, void (*call)(void *),
                      void *argument, int *out_exit) {
    struct task task = {call, argument};
    pthread_t *threads = calloc(count, sizeof *threads);
    size_t started = 0, ended = 0;
    while (threads && started < count && pthread_create(&threads[started], NULL, run, &task) == 0) {
        started++;
    }
    if (!started) {
        free(threads);
        return refuse_memory(command, out_exit);
    }
    while (ended < started && bhi_task_await(threads[ended])) {
        ended++;
    }
    const bool good = ended == started;
    if (!good) {
        bh_context_destroy(*context);
        *out_exit = bhi_interrupt_exit_status();
    }
    for (; ended < started; ended++) {
        (void)pthread_join(threads[ended], NULL);
    }
    free(threads);
    if (!good) {
        *context = NULL;
    }
    return good;
}

bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit) {
    return bhi_task_run_all(command, context, 1, call, argument, out_exit);
}
