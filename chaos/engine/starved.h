/* How long processes of a run were ready to run and got no processor. A worker that is late for
 * that reason breaks no promise. */
#ifndef BHI_CHAOS_ENGINE_STARVED_H
#define BHI_CHAOS_ENGINE_STARVED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BHI_STARVED_THREADS = 1024, BHI_STARVED_PROCESSES = 64 };

struct bhi_starved_thread {
    int32_t tid;
    uint64_t waited_ns; /* as long as it lives */
};

/* All 0 at first. */
struct bhi_starved {
    uint64_t looked_ns; /* 0: never */
    struct bhi_starved_thread threads[BHI_STARVED_THREADS];
    size_t count;
};

struct bhi_starved_process {
    int32_t pid;
    uint64_t waited_ns; /* of the time since the last look: its thread that waited longest */
};

/* Writes those below |root|, and that one, that waited for at least half of the time since the last
 * look; returns how many. None where it could not look: the next look sees what was missed, since
 * the kernel counts on. */
size_t bhi_starved_look(struct bhi_starved *starved, pid_t root, uint64_t now_ns,
                        struct bhi_starved_process out_processes[BHI_STARVED_PROCESSES]);

/* How many times as long as alone a thread that does nothing but compute takes for a little: 1 on a
 * machine that has a processor for it. */
double bhi_starved_slowness(void);

#endif
