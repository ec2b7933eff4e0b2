/* Device selectors ("cuda:1", "nvidia", "0"), as far as host and command ask the same of them. */
#ifndef BHI_BASE_SELECTOR_H
#define BHI_BASE_SELECTOR_H

#include <stdbool.h>
#include <string.h>

/* Returns true for "cuda" and "cuda:1": kernels there are CUDA's, and confined (C1). */
static inline bool bhi_selector_is_cuda(const char *selector) {
    return strcspn(selector, ":") == 4 && strncmp(selector, "cuda", 4) == 0;
}

#endif
