/* What several of the unit tests need. */
#ifndef BULKHEAD_TEST_UNIT_SUPPORT_H
#define BULKHEAD_TEST_UNIT_SUPPORT_H

#include "harness.h"
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors that this process has open. */
static inline int count_fds(void) {
    return (int)bht_count_self().descriptors;
}

#define LINK "-> " /* begins the content of a link */

/* The file |path| below |root|, and the folders on the way to it. */
static inline void put(const char *root, const char *path, const char *text) {
    char full[256];
    const int length = snprintf(full, sizeof full, "%s/%s", root, path + (*path == '/'));
    BHT_WITHIN(length, 1, sizeof full - 1);
    for (char *slash = full + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    if (strncmp(text, LINK, strlen(LINK)) == 0) {
        BHT_EQ(symlink(text + strlen(LINK), full), 0);
        return;
    }
    FILE *file = fopen(full, "we");
    BHT_TRUE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline int remove_one(const char *path, const struct stat *status, int kind,
                             struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static inline void remove_all(const char *root) {
    BHT_EQ(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0); /* needs no process */
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
