/* Probes the memory limit that holds without a memory cgroup: RLIMIT_DATA for ordinary allocations,
 * RLIMIT_AS and the filters for the ways around it. Nothing here touches the memory that it asks
 * for. */
#include "base/format.h"
#include "worker/probe/victim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !BHI_SANITIZED

#define MEMORY_LIMIT (256ull << 20)
#define STEP         (16u << 20)
#define ROOM         (64ull << 20) /* allowed above the limit */

static void try_memory(struct bhi_victim *victim) {
    void *small = malloc(MEMORY_LIMIT / 16);
    void *large = malloc(MEMORY_LIMIT * 2);
    bhi_victim_says(victim, small && !large,
                    "limit %llu MiB; allocating %llu MiB: %s; %llu MiB: %s", MEMORY_LIMIT >> 20,
                    MEMORY_LIMIT / 16 >> 20, small ? "worked" : "refused", MEMORY_LIMIT * 2 >> 20,
                    large ? "worked" : "refused");
    free(small);
    free(large);
}

/* A way to get around RLIMIT_DATA. */
struct way {
    const char *name;
    int protection;
    int flags;
    bool dies;      /* the filter kills the call */
    bool read_only; /* made read-only after mapping, so that it no longer counts */
};

static const struct way ways[] = {
    {"shared pages", PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, true, false},
    {"shared pages given back", PROT_READ, MAP_SHARED | MAP_ANONYMOUS, true, false},
    {"growing down", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, true,
     false},
    {"huge pages", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, true, false},
    {"made read-only", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, false, true},
    {"reservations", PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, false, false},
};
#define WAYS (sizeof ways / sizeof ways[0])

static void go_a_way(struct bhi_victim *victim) {
    const struct way *way = (const struct way *)victim->argument;
    uint64_t got = 0;
    while (got <= 4 * MEMORY_LIMIT) {
        void *at = mmap(NULL, STEP, way->protection, way->flags, -1, 0);
        if (at == MAP_FAILED || (way->read_only && mprotect(at, STEP, PROT_READ) != 0)) {
            break;
        }
        got += STEP;
    }
    bhi_victim_says(victim, !way->dies && got <= MEMORY_LIMIT + ROOM, "%llu MiB", //
                    (unsigned long long)got >> 20);
}

static bool way_is_closed(const struct bhi_probe_context *context, const struct way *way,
                          char *text, size_t size) {
    const struct bhi_victim_plan plan = {.stage = BHI_STAGE_STEADY,
                                         .fn = go_a_way,
                                         .argument = (uintptr_t)way,
                                         .memory_limit = MEMORY_LIMIT,
                                         .address_space = MEMORY_LIMIT + ROOM};
    struct bhi_victim_outcome outcome;
    bhi_victim_run(context, &plan, &outcome);
    const bool closed =
        way->dies ? outcome.entered && outcome.signal == SIGSYS : outcome.done && outcome.holds;
    if (!closed) {
        bhi_format(text, size, "a way around the limit of %llu MiB is open: %s, %.100s (signal %d)",
                   MEMORY_LIMIT >> 20, way->name, outcome.text, outcome.signal);
    }
    return closed;
}

#endif

enum bhi_probe_result bhi_probe_memory_rlimit(const struct bhi_probe_context *context, char *text,
                                              size_t size) {
#if BHI_SANITIZED
    (void)context;
    snprintf(text, size, "a sanitizer's shadow memory is over any limit: not set in this build");
    return BHI_PROBE_ABSENT;
#else
    const struct bhi_victim_plan plan = {
        .stage = BHI_STAGE_LAYERS, .fn = try_memory, .memory_limit = MEMORY_LIMIT};
    enum bhi_probe_result result = bhi_victim_judge(context, &plan, text, size);
    if (result != BHI_PROBE_HOLDS) {
        return result;
    }
    size_t length = strlen(text);
    if (bhi_driver_is_gpu(context->driver->info)) {
        snprintf(text + length, size - length,
                 "; not against a hostile worker: this driver's address space has no bound");
        return BHI_PROBE_HOLDS;
    }
    for (size_t i = 0; i < WAYS; i++) {
        if (!way_is_closed(context, &ways[i], text, size)) {
            return BHI_PROBE_BROKEN;
        }
        length +=
            (size_t)bhi_format(text + length, size - length, "%s%s",
                               i == 0 ? "; ways around it that are closed: " : ", ", ways[i].name);
    }
    return BHI_PROBE_HOLDS;
#endif
}
