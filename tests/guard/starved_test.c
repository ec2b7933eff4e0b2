/* Memory runs out at the Nth allocation of the guard, or of what measures shared memory, for N = 1, 2, …
 * until none fails: it says so, and leaves nothing behind (the sanitizers look). */
#include "stand.h"
#include "worker/spirv/module.h"

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

static bool guard(const struct stand_module *module, struct bhi_error *error) {
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .count_iterations = true};
    struct bhi_guarded guarded;
    const bool good = bhi_guard(module->code, module->words, &options, &guarded, error);
    left = 0;
    if (good) {
        bhi_guarded_fini(&guarded);
    }
    return good;
}

static bool measure_shared(const struct stand_module *module, struct bhi_error *error) {
    struct bhi_module parsed;
    uint64_t bytes;
    if (!bhi_module_init(&parsed, module->code, module->words, "main", NULL, 0, error)) {
        return false;
    }
    const bool good = bhi_module_shared_bytes(&parsed, &bytes, error);
    left = 0;
    bhi_module_fini(&parsed);
    return good;
}

TEST(test_each_allocation_fails) {
    static const struct {
        bool (*act)(const struct stand_module *module, struct bhi_error *error);
        const char *path; /* the second has memory that invocations share */
        unsigned failures;
    } rows[] = {{guard, KERNELS "/deep_calls.O0.spv", 5},
                {measure_shared, KERNELS "/barriers.O0.spv", 4}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct stand_module module = stand_load(rows[i].path);
        unsigned failures = 0;
        for (unsigned n = 1;; n++) {
            struct bhi_error error = {.status = BH_OK};
            left = n;
            failed = false;
            const bool good = rows[i].act(&module, &error);
            left = 0;
            if (!failed) {
                BHT_TRUE(good);
                break;
            }
            failures++;
            BHT_TRUE(!good);
            BHT_EQ(error.status, BH_OUT_OF_HOST_MEMORY);
            BHT_NE(bhi_error_line(&error)[0], '\0');
        }
        BHT_GE(failures, rows[i].failures);
    }
}
