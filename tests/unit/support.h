/* What several of the unit tests need. */
#ifndef BULKHEAD_TEST_UNIT_SUPPORT_H
#define BULKHEAD_TEST_UNIT_SUPPORT_H

#include "harness.h"
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors that this process has open. */
static inline int count_fds(void) {
    return (int)bht_count_self().descriptors;
}

/* xorshift64*: the same numbers everywhere for the same seed, which is never 0. */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit) {
    return (next_random(state) >> 11) % limit;
}

/* Runs |body| in a child; true where it ends by a signal, false where it comes back. */
static inline bool dies(void (*body)(void *), void *argument) {
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        /* A sanitizer's handlers would report an error and exit. */
        for (size_t i = 0; i < BHT_COUNT(deadly); i++) {
            signal(deadly[i], SIG_DFL);
        }
        close(2);
        body(argument);
        _exit(0);
    }
    int status = 0;
    BHT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

#endif
