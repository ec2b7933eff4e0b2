/* Kills the program at a step of batch/runner/step.h: BULKHEAD_TEST_STEP=NAME:N, at the Nth time
 * that it gets there. At "stage_…" it gets a SIGTERM instead, and goes on when it has acted on
 * it. Part of the test's build of the program only. */
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/runner/step.h"

static sem_t stopped;

__attribute__((constructor)) static void prepare(void) {
    if (sem_init(&stopped, 0, 0) != 0) {
        abort();
    }
}

static void meet_signal(void) {
    struct timespec end;
    const char *value = getenv("BULKHEAD_TEST_SLOWNESS");
    const long slowness = value && atol(value) > 1 ? atol(value) : 1;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60 * slowness; /* then the test fails by what comes next */
    kill(getpid(), SIGTERM);
    (void)!sem_timedwait(&stopped, &end);
}

void bhi_batch_step(const char *name) {
    static _Atomic unsigned long passed;
    const char *wanted = getenv("BULKHEAD_TEST_STEP");
    const size_t length = strlen(name);
    if (!strcmp(name, "stopped")) {
        sem_post(&stopped);
    }
    if (!wanted || strncmp(wanted, name, length) != 0 || wanted[length] != ':') {
        return;
    }
    if (atomic_fetch_add(&passed, 1) + 1 == strtoul(wanted + length + 1, NULL, 10)) {
        if (!strncmp(name, "stage_", 6)) {
            meet_signal();
        } else {
            kill(getpid(), SIGKILL);
        }
    }
}
