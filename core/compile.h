/* A worker's compile as its deadline sees it. The deadline is of the worker's processor time, so that
 * a busy machine cannot end an honest compile. By the clock it is four times as long at most: that
 * ends a compile that sleeps. */
#ifndef BHI_CORE_COMPILE_H
#define BHI_CORE_COMPILE_H

#include <stdint.h>

#define BHI_COMPILE_TEXT 96 /* for bhi_compile_say */

struct bhi_compile {
    uint64_t cpu_ns;  /* the worker's processor time when it was first seen compiling; 0: unknown */
    uint64_t used_ns; /* the processor time since then, at the last look; 0: none, or unknown */
};

/* A compile is first seen now. |cpu_ns|: the worker's processor time; 0: unknown. */
void bhi_compile_begin(struct bhi_compile *compile, uint64_t cpu_ns);
/* Returns when to look again at a compile that began at |since_ns|; a time that is not after |now_ns|:
 * its deadline has passed. |cpu_ns|: the worker's processor time now; 0: unknown. */
uint64_t bhi_compile_due(struct bhi_compile *compile, uint64_t since_ns, uint64_t limit_ns,
                         uint64_t cpu_ns, uint64_t now_ns);
/* Writes what to add to "the deadline passed" if the clock ended the compile: "; in 4000 ms it used
 * 12 ms of processor time"; otherwise "". Returns |out|. */
const char *bhi_compile_say(const struct bhi_compile *compile, uint64_t limit_ns,
                            char out[BHI_COMPILE_TEXT]);

#endif
