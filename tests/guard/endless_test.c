/* Loops of every kind, on a device: with the word set they end, and all that called them too;
 * without it they do what they did. The kernel sets the word itself, in its first instruction
 * behind the guard's entry check: nothing here depends on time. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef KERNELS
#error KERNELS: the folder of the compiled kernels
#endif

/* Turns that a loop may take before the word is seen: what fills the counter, and one chunk. */
#define SOON (4096u + 1024u)
/* More than that; and with what the loops around them take, fewer than the 65,535 iterations after
 * which llvmpipe before 25 cuts loops short. */
#define TURNS 12000u

static const char *const names[] = {
    "lowered",     "lowered_down", "by_three",   "while_true",  "do_while", "continues",
    "nested",      "in_continue",  "three_deep", "empty_inner", "called",   "deep_calls",
    "with_switch", "early_return", "barriers",   "short_inner", "two_exits"};
#define NAMES (sizeof names / sizeof *names)
static const char *const levels[] = {"O0", "O"};

static uint32_t out[RUNNER_WORDS], plain_out[RUNNER_WORDS];

/* Each as it is, and guarded. */
static struct {
    char name[32];
    struct runner_kernel plain, guarded;
} kernels[NAMES * 2];
#define KERNEL_COUNT (sizeof kernels / sizeof *kernels)

static void load(size_t i) {
    const char *name = names[i / 2], *level = levels[i % 2];
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s.spv", KERNELS, name, level);
    snprintf(kernels[i].name, sizeof kernels[i].name, "%s -%s", name, level);
    struct stand_module module = stand_load(path);
    const struct bhi_guard_options options = {.entry = "main",
                                              .max_sets = device.vk.limits.maxBoundDescriptorSets,
                                              .count_iterations = !device.vk.whole_loops};
    struct bhi_guarded guarded = stand_guard_with(&module, &options);
    struct runner_module loaded = {.plain = &module, .sets_word = true};
    runner_load(&loaded, &kernels[i].plain);
    loaded.guarded = &guarded;
    runner_load(&loaded, &kernels[i].guarded);
}

static void run(struct runner_kernel *kernel, uint32_t groups, uint32_t abort, uint32_t n,
                uint32_t stop) {
    const uint32_t push[2] = {n, stop};
    struct runner_run r = {.groups = {groups, 1, 1}, .push = push, .abort = abort, .data = out};
    memset(out, 0, sizeof out);
    runner_dispatch(kernel, &r);
}

/* Nobody sets the word: bit for bit what it does without a guard. */
static void same_results(void) {
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        run(&kernels[i].plain, 1, 0, TURNS, 0);
        memcpy(plain_out, out, sizeof out);
        run(&kernels[i].guarded, 1, 0, TURNS, 0);
        if (plain_out[0] != TURNS || plain_out[1] != 1 || memcmp(plain_out, out, sizeof out) != 0) {
            BHT_FAIL("%s: %u turns, done %u; guarded %u turns, done %u", kernels[i].name,
                     plain_out[0], plain_out[1], out[0], out[1]);
        }
    }
}

static void check_ends(uint32_t turns) {
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        run(&kernels[i].guarded, 1, 0, turns, 1);
        if (out[0] > SOON || out[1] != 0) {
            BHT_FAIL("%s: %u turns after the word was set, done %u", kernels[i].name, out[0],
                     out[1]);
        }
    }
}

/* Set before the start, nothing runs at all: what a priming dispatch is made of. */
static void set_at_the_start_nothing_runs(void) {
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        run(&kernels[i].guarded, 64, 1, UINT32_MAX, 0);
        for (size_t k = 0; k < RUNNER_WORDS; k++) {
            if (out[k] != 0) {
                BHT_FAIL("%s: word %zu written", kernels[i].name, k);
            }
        }
    }
}

/* One test: to compile all of them takes most of the time. */
TEST(guarded_loops) {
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        load(i);
    }
    same_results();
    check_ends(TURNS);
    check_ends(UINT32_MAX);
    set_at_the_start_nothing_runs();
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        runner_unload(&kernels[i].plain);
        runner_unload(&kernels[i].guarded);
    }
}
