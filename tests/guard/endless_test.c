/* Loops of every kind, on a device: with the word set they end, and all that called them too;
 * without it they do what they did. The kernel sets the word itself, in its first instruction
 * behind the guard's entry check: nothing here depends on time. */
#include "device.h"
#include "stand.h"

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

static struct device device;
static uint32_t plain_out[DEVICE_OUT_BYTES / 4];

static struct stand_module load(size_t name, size_t level) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s.spv", KERNELS, names[name], levels[level]);
    return stand_load(path);
}

static struct bhi_guarded guard(const struct stand_module *module) {
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = device.max_sets, .count_iterations = device.cuts};
    return stand_guard_with(module, &options);
}

static void run(const uint32_t *code, size_t words, uint32_t set, uint32_t n, uint32_t stop) {
    const uint32_t push[2] = {n, stop};
    memset(device.out, 0, DEVICE_OUT_BYTES);
    device.words->abort = device.words->flags = 0;
    device_run(&device, code, words, set, 1, push, sizeof push);
}

/* Nobody sets the word: bit for bit what it does without a guard. */
static void test_same_results(void **state) {
    (void)state;
    for (size_t i = 0; i < NAMES * 2; i++) {
        struct stand_module module = load(i / 2, i % 2);
        struct bhi_guarded guarded = guard(&module);
        run(module.code, module.words, 0, TURNS, 0);
        memcpy(plain_out, device.out, DEVICE_OUT_BYTES);
        run(guarded.code, guarded.words, guarded.set, TURNS, 0);
        if (plain_out[0] != TURNS || plain_out[1] != 1 ||
            memcmp(plain_out, device.out, DEVICE_OUT_BYTES) != 0) {
            fail_msg("%s -%s: %u turns, done %u; guarded %u turns, done %u", names[i / 2],
                     levels[i % 2], plain_out[0], plain_out[1], device.out[0], device.out[1]);
        }
        bhi_guarded_fini(&guarded);
        stand_free(&module);
    }
}

static void check_ends(uint32_t turns) {
    for (size_t i = 0; i < NAMES * 2; i++) {
        struct stand_module module = load(i / 2, i % 2);
        struct bhi_guarded guarded = guard(&module);
        run(guarded.code, guarded.words, guarded.set, turns, 1);
        if (device.out[0] > SOON || device.out[1] != 0) {
            fail_msg("%s -%s: %u turns after the word was set, done %u", names[i / 2],
                     levels[i % 2], device.out[0], device.out[1]);
        }
        bhi_guarded_fini(&guarded);
        stand_free(&module);
    }
}

static void test_the_word_ends_long_loops(void **state) {
    (void)state;
    check_ends(TURNS);
}

static void test_the_word_ends_endless_loops(void **state) {
    (void)state;
    check_ends(UINT32_MAX);
}

/* Set before the start, nothing runs at all: what a priming dispatch is made of. */
static void test_set_at_the_start_nothing_runs(void **state) {
    (void)state;
    for (size_t i = 0; i < NAMES * 2; i++) {
        struct stand_module module = load(i / 2, i % 2);
        struct bhi_guarded guarded = guard(&module);
        const uint32_t push[2] = {UINT32_MAX, 0};
        memset(device.out, 0, DEVICE_OUT_BYTES);
        device.words->abort = 1;
        device_run(&device, guarded.code, guarded.words, guarded.set, 64, push, sizeof push);
        for (size_t k = 0; k < DEVICE_OUT_BYTES / 4; k++) {
            if (device.out[k] != 0) {
                fail_msg("%s -%s: word %zu written", names[i / 2], levels[i % 2], k);
            }
        }
        bhi_guarded_fini(&guarded);
        stand_free(&module);
    }
}

static int open_device(void **state) {
    (void)state;
    device_open(&device);
    return 0;
}
static int close_device(void **state) {
    (void)state;
    device_close(&device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_results),
        cmocka_unit_test(test_the_word_ends_long_loops),
        cmocka_unit_test(test_the_word_ends_endless_loops),
        cmocka_unit_test(test_set_at_the_start_nothing_runs),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
