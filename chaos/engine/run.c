#include "chaos/engine/run.h"

#include <stdarg.h>
#include <stdio.h>

#include "tool/clock.h"

#define SECOND 1000000000ull

uint64_t bhi_run_now(const struct bhi_chaos_run *run) {
    return bhi_clock_ns() - run->start_ns;
}

void bhi_run_note(struct bhi_chaos_run *run, const struct bhi_record *record) {
    pthread_mutex_lock(&run->lock);
    bhi_history_note(run->history, record);
    pthread_mutex_unlock(&run->lock);
}

void bhi_run_say(const struct bhi_chaos_run *run, const char *format, ...) {
    char line[512];
    va_list args;
    if (!run->options->say) {
        return;
    }
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    run->options->say(run->options->user, line);
}

void bhi_run_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

void bhi_run_wait(struct bhi_chaos_run *run, uint64_t at_ns) {
    if (at_ns > UINT64_MAX - run->start_ns) {
        pthread_cond_wait(&run->changed, &run->lock);
        return;
    }
    at_ns += run->start_ns;
    const struct timespec time = {.tv_sec = (time_t)(at_ns / SECOND),
                                  .tv_nsec = (long)(at_ns % SECOND)};
    pthread_cond_timedwait(&run->changed, &run->lock, &time);
}
