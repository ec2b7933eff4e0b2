#include "tool/task.h"

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

bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit) {
    struct task task = {call, argument};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, &task) != 0) {
        bhi_complain(command, "out of memory");
        bhi_ending_blame(BH_NO_MEMORY);
        *out_exit = BHI_EXIT_ENVIRON;
        return false;
    }
    if (bhi_task_await(thread)) {
        return true;
    }
    bh_context_destroy(*context);
    *context = NULL;
    (void)pthread_join(thread, NULL);
    *out_exit = bhi_interrupt_exit_status();
    return false;
}
