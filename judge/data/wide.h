/* Functions that are compiled twice: for any processor, and for those of x86 that have AVX2, which
 * work on twice as many elements at once. Both compute the same. */
#ifndef BHI_JUDGE_DATA_WIDE_H
#define BHI_JUDGE_DATA_WIDE_H

#include <stdbool.h>

/* What is part of both. */
#define BHI_PART static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(BHI_PLAIN) /* a test defines it */
#define BHI_WIDE __attribute__((target("avx2")))

static inline bool bhi_is_wide(void) {
    return __builtin_cpu_supports("avx2");
}
#else
#define BHI_WIDE

static inline bool bhi_is_wide(void) {
    return false;
}
#endif

#endif
