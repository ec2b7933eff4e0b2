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
    uint64_t waited_ns; /* during its whole life */
};

/* All zero at first. */
struct bhi_starved {
    uint64_t looked_ns; /* time of the last look; 0: none */
    struct bhi_starved_thread threads[BHI_STARVED_THREADS];
    size_t count;
};

struct bhi_starved_process {
    int32_t pid;
    uint64_t waited_ns; /* since the last look, of the thread that waited longest */
};

/* Writes those processes, |root| and all below it, that waited for at least half of the time since
 * the last look. Returns how many; 0 if it could not look. Nothing is missed then, because the
 * kernel goes on counting until the next look. */
size_t bhi_starved_look(struct bhi_starved *starved, pid_t root, uint64_t now_ns,
                        struct bhi_starved_process out_processes[BHI_STARVED_PROCESSES]);

/* Returns how many times longer a short computation takes one thread than alone: 1 on a machine
 * that has a processor for it. */
double bhi_starved_slowness(void);

#endif
