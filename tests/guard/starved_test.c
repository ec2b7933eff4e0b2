/* Memory runs out at the guard's Nth allocation, for N = 1, 2, … until none fails: it says so,
 * and leaves nothing behind (the sanitizers look). */
#include "stand.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#ifndef KERNELS
#error KERNELS: the folder of the compiled kernels
#endif

static unsigned left; /* allocations until one fails; 0: none does */
static bool failed;

static bool fails(void) {
    failed |= left == 1;
    return left > 0 && --left == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

TEST(test_each_allocation_fails) {
    struct stand_module module = stand_load(KERNELS "/deep_calls.O0.spv");
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .count_iterations = true};
    unsigned failures = 0;
    for (unsigned n = 1;; n++) {
        struct bhi_guarded guarded;
        struct bhi_error error = {.status = BH_OK};
        left = n;
        failed = false;
        const bool good = bhi_guard(module.code, module.words, &options, &guarded, &error);
        left = 0;
        if (good) {
            bhi_guarded_fini(&guarded);
        }
        if (!failed) {
            BHT_TRUE(good);
            break;
        }
        failures++;
        BHT_TRUE(!good);
        BHT_EQ(error.status, BH_OUT_OF_HOST_MEMORY);
        BHT_NE(bhi_error_line(&error)[0], '\0');
    }
    BHT_GE(failures, 5);
}
