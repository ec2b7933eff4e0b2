/* The processor on which runs are timed, where the driver runs kernels on processors. On several a
 * run takes longer or shorter by where its threads happen to be (decision 63). */
#ifndef BHI_JUDGE_TIME_PROCESSOR_H
#define BHI_JUDGE_TIME_PROCESSOR_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* How long each processor has been idle since the machine was started, in the kernel's units. */
struct bhi_idle {
    unsigned long long of[CPU_SETSIZE]; /* 0: not known */
};

/* Reads |path|, which is /proc/stat but in a test. */
void bhi_idle_read(const char *path, struct bhi_idle *out);
/* Returns the processor in |set| that was idle longest between the two, of several the last: the
 * first ones have more of the machine's interrupts. -1: |set| is empty. */
int bhi_idle_most(const cpu_set_t *set, const struct bhi_idle *before,
                  const struct bhi_idle *after);

struct bhi_processor {
    uint32_t chosen; /* its number, plus 1; 0: none */
    uint32_t count;  /* of the processors that the calling thread may use */
    int claim;       /* socket by whose name others see that it is taken; -1: none */
};

/* Chooses the least busy one of those that the calling thread may use. Takes one that another
 * judge on this machine has chosen only if there is no other. Blocks for 0.1 s if there are
 * several. If the kernel does not say which ones may be used, none is chosen. */
void bhi_processor_choose(struct bhi_processor *out);
/* Takes {0}, too. */
void bhi_processor_release(struct bhi_processor *processor);

#endif
