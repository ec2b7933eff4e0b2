/* llvmpipe before 25 ends loops, without a word, when a group of lanes has gone round 65,535 times:
 * no result that it has cut short may pass. On other drivers nothing is cut, and nothing flagged.
 */
#include "runner.h"

#include <stdio.h>
#include <string.h>

#ifndef KERNELS
#error KERNELS: the folder of the compiled kernels
#endif

#define LANES 16u

static const char *const names[] = {"single",     "nested",  "divergent",      "either",
                                    "one_by_one", "in_turn", "short_inner",    "breaks",
                                    "called",     "returns", "returns_inside", "untaken"};
#define NAMES (sizeof names / sizeof *names)
static const char *const levels[] = {"O0", "O"};

static void load(size_t name, size_t level, struct runner_kernel *out) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s.spv", KERNELS, names[name], levels[level]);
    struct stand_module module = stand_load(path);
    const struct bhi_guard_options options = {.entry = "main",
                                              .max_sets = device.vk.limits.maxBoundDescriptorSets,
                                              .count_iterations = !device.vk.whole_loops};
    struct bhi_guarded guarded = stand_guard_with(&module, &options);
    runner_load(&(struct runner_module){.plain = &module, .guarded = &guarded}, out);
}

/* Whether the driver's answer is the right one, and whether the guard objects. */
static void run(struct runner_kernel *kernel, uint32_t n, bool *right, bool *flagged) {
    static uint32_t out[RUNNER_WORDS];
    const uint32_t push[2] = {n, 0};
    struct runner_run r = {.groups = {1, 1, 1}, .push = push, .data = out};
    memset(out, 0, sizeof out);
    runner_dispatch(kernel, &r);
    *flagged = (r.flags & BHI_GUARD_CUT) != 0;
    *right = true;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        *right &= out[2 * lane] == out[2 * lane + 1];
    }
}

TEST(test_no_cut_result_passes) {
    static const uint32_t turns[] = {1000, 20000, 40000, 60000, 65500, 66000, 140000};
    unsigned wrong = 0;
    for (size_t i = 0; i < NAMES * 2; i++) {
        struct runner_kernel kernel;
        load(i / 2, i % 2, &kernel);
        for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
            bool right, flagged;
            run(&kernel, turns[k], &right, &flagged);
            wrong += !right;
            if (!right && !flagged) {
                BHT_FAIL("%s -%s, %u turns: cut short, and not flagged", names[i / 2],
                         levels[i % 2], turns[k]);
            }
            if (flagged && (device.vk.whole_loops || turns[k] <= 20000)) {
                BHT_FAIL("%s -%s, %u turns: flagged for nothing", names[i / 2], levels[i % 2],
                         turns[k]);
            }
        }
        runner_unload(&kernel);
    }
    BHT_EQ(!device.vk.whole_loops, (wrong > 0)); /* or the test proves nothing */
}
