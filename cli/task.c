#include "task.h"

#include <pthread.h>
#include <time.h>

#include "exit_status.h"
#include "interrupt.h"
#include "text.h"

static const long slice_ns = 50000000; /* between two looks at signals */

struct task {
    void (*call)(void *);
    void *argument;
};

static void *run(void *argument) {
    const struct task *task = argument;
    task->call(task->argument);
    return NULL;
}

/* False: a signal came before it had ended. */
static bool await(pthread_t thread) {
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += slice_ns;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0)
            return true;
        if (bhi_interrupt_signal())
            return false;
    }
}

bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit) {
    struct task task = {call, argument};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, &task) != 0) {
        bhi_complain(command, "out of memory");
        *out_exit = BHI_EXIT_ENVIRON;
        return false;
    }
    if (await(thread))
        return true;
    bh_context_destroy(*context);
    *context = NULL;
    (void)pthread_join(thread, NULL);
    *out_exit = bhi_interrupt_exit_status();
    return false;
}
