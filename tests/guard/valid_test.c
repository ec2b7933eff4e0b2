/* What the guard makes of each kernel that the project ships or measures with is valid: unoptimised
 * and optimised, as SPIR-V 1.0 and 1.6, with rounds counted, and with noise and groups in the opposite order, and not. */
#include "stand.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

#ifndef KERNELS
#error KERNELS: the folder of the compiled kernels
#endif

static const char *const names[] = {
#define KERNEL(name) name,
#include "valid.inc"
#undef KERNEL
};
#define NAMES (sizeof names / sizeof *names)

TEST(test_every_kernel_is_valid) {
    static const char *const forms[] = {"1.0.O0", "1.0.O", "1.3.O0", "1.3.O"};
    unsigned loops = 0;
    for (size_t i = 0; i < NAMES * 4; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.%s.spv", KERNELS, names[i / 4], forms[i % 4]);
        struct stand_module module = stand_load(path);
        for (unsigned counted = 0; counted < 2; counted++) {
            const struct bhi_guard_options options = {.entry = "main",
                                                      .max_sets = 8,
                                                      .zero_initialize = true,
                                                      .noise = 2 * counted,
                                                      .count_iterations = counted == 1};
            struct bhi_guarded guarded = stand_guard_with(&module, &options);
            loops += guarded.loops;
        }
    }
    BHT_TRUE(NAMES >= 15 && loops >= 100); /* or the list is empty */
}
