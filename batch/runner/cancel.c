#include "batch/runner/cancel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/clock.h"

static const uint64_t every_ns = 500000000u;

struct bhi_cancel_watch {
    char *path; /* owned */
    atomic_bool seen;
    pthread_mutex_t mutex; /* guards |stop| */
    pthread_cond_t wake;
    bool stop;
    pthread_t thread;
};

static void *look(void *argument) {
    struct bhi_cancel_watch *watch = argument;
    struct stat status;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->stop && !atomic_load(&watch->seen)) {
        const struct timespec until = bhi_clock_until(bhi_clock_ns() + every_ns);
        pthread_mutex_unlock(&watch->mutex);
        if (lstat(watch->path, &status) == 0) {
            atomic_store(&watch->seen, true);
        }
        pthread_mutex_lock(&watch->mutex);
        while (!watch->stop && !atomic_load(&watch->seen) &&
               pthread_cond_timedwait(&watch->wake, &watch->mutex, &until) != ETIMEDOUT) {
            continue;
        }
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

static void release(struct bhi_cancel_watch *watch) {
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->mutex);
    free(watch->path);
    free(watch);
}

bool bhi_cancel_watch_begin(const char *path, struct bhi_cancel_watch **out_watch,
                            struct bhi_complaint *complaint) {
    struct bhi_cancel_watch *watch = calloc(1, sizeof *watch);
    pthread_condattr_t monotonic;
    sigset_t all, old;
    *out_watch = NULL;
    if (!watch || !(watch->path = strdup(path))) {
        free(watch);
        return bhi_refuse(complaint, "out of memory");
    }
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* other threads handle signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&watch->thread, NULL, look, watch);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        release(watch);
        return bhi_refuse(complaint, "no thread can be started");
    }
    *out_watch = watch;
    return true;
}

bool bhi_cancel_watch_seen(const struct bhi_cancel_watch *watch) {
    return watch && atomic_load(&watch->seen);
}

void bhi_cancel_watch_end(struct bhi_cancel_watch *watch) {
    if (!watch) {
        return;
    }
    pthread_mutex_lock(&watch->mutex);
    watch->stop = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    release(watch);
}
