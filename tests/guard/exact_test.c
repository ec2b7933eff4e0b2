/* The guard changes no result: every kernel of kernels/ and of shaders/, at -O0 and -O, leaves the
 * same bytes in every buffer guarded and not; with the word set from the start it writes nothing.
 *     guard_exact [PART PARTS]     runs every PARTS-th kernel from PART on
 */
#include "runner.h"
#include "worker/spirv/limits.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernels[] = {
#define KERNEL(name) name,
#include "kernels.inc"
#undef KERNEL
};
#define KERNELS (sizeof kernels / sizeof *kernels)

static size_t part, parts = 1;

static struct stand_module load(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.spv", folder, name);
    return stand_load(path);
}

struct known {
    uint32_t push[16];
    uint32_t groups[3];
    uint32_t first; /* of every buffer; 0: as the others */
    bool finite;    /* floats in all buffers, none infinite or NaN: which NaN an operation of two
                       gives, no driver promises */
    uint32_t raced; /* a word that several invocations write, each its own; 0: none */
    const struct bhi_spec_constant *constants;
    uint32_t constant_count;
};

static void fill(uint32_t *data, uint32_t count, uint32_t first, bool finite) {
    uint32_t random = 0x2545f491;
    for (uint32_t i = 0; i < count; i++) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        data[i] = finite ? (random & 0x81ffffff) | 0x3e000000 : random;
    }
    for (uint32_t i = 0; first != 0 && i < count; i += RUNNER_WORDS) {
        data[i] = first;
    }
}

static const struct way {
    const char *how;
    bool zero_initialize, count_iterations, in_parts;
    uint32_t noise;
} ways[] = {{"guarded", true, false, false, 0},
            {"guarded, iterations counted", true, true, false, 0},
            {"guarded, with noise and groups in the opposite order", false, false, false, 2},
            {"guarded, for a grid in parts", true, false, true, 0}};

static struct bhi_guarded guard(const char *name, const struct stand_module *module,
                                const struct known *known, const struct way *way) {
    const struct bhi_guard_options options = {
        .entry = "main",
        .constants = known->constants,
        .constant_count = known->constant_count,
        .max_sets = device.vk.limits.maxBoundDescriptorSets,
        .zero_initialize = way->zero_initialize,
        .count_iterations = way->count_iterations,
        .in_parts = way->in_parts,
        .noise = way->noise,
    };
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (!bhi_guard_limits(module->code, module->words, &error) ||
        !bhi_validate(&device.vk.target, module->code, module->words, "main", &error) ||
        !bhi_guard_limits_sizes(module->code, module->words, "main", known->constants,
                                known->constant_count, &error) ||
        !bhi_guard(module->code, module->words, &options, &guarded, &error)) {
        BHT_FAIL("%s: refused: %s", name, bhi_error_line(&error));
    }
    if (!bhi_validate(&device.vk.target, guarded.code, guarded.words, "main", &error)) {
        BHT_FAIL("%s: not valid once it is guarded: %s", name, bhi_error_line(&error));
    }
    return guarded;
}

static void compare(const char *name, const char *how, const uint32_t *expected,
                    const uint32_t *got, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (expected[i] != got[i]) {
            BHT_FAIL("%s, %s: word %u of buffer %u is %08x, not %08x", name, how, i % RUNNER_WORDS,
                     i / RUNNER_WORDS, got[i], expected[i]);
        }
    }
}

/* Does |way| make another module of it than those before? */
static bool differs(const struct way *way, const struct bhi_guarded *guarded) {
    return !way->in_parts || guarded->reads_grid;
}

/* A kernel that is told how many workgroups there are believes that, and not the driver. */
static void check_told(const char *name, const struct runner_module *module, struct runner_run *run,
                       const uint32_t *before, const uint32_t *plain, uint32_t count) {
    struct bhi_spec_constant constants[16] = {{module->guarded->grid_constant, 4, 1}};
    struct runner_module told = *module;
    struct runner_kernel loaded, *kernel = &loaded;
    BHT_LE(module->constant_count, 15);
    for (uint32_t i = 0; i < module->constant_count; i++) {
        BHT_NE(module->constants[i].constant_id, module->guarded->grid_constant);
        constants[1 + i] = module->constants[i];
    }
    told.constants = constants;
    told.constant_count = module->constant_count + 1;
    runner_load(&told, kernel);
    memcpy(run->told, run->groups, sizeof run->told);
    memcpy(run->data, before, count * 4);
    runner_dispatch(kernel, run);
    compare(name, "told its own grid", plain, run->data, count);
    for (int axis = 0; axis < 3; axis++) {
        run->told[axis]++;
        memcpy(run->data, before, count * 4);
        runner_dispatch(kernel, run);
        BHT_NE(memcmp(run->data, plain, count * 4), 0);
        run->told[axis]--;
    }
    memset(run->told, 0, sizeof run->told);
    runner_unload(kernel);
}

/* Does the device have what the kernel needs? lavapipe has all of it. */
static bool can_run(const char *name, const struct stand_module *module) {
    struct bhi_error error;
    if (bhi_validate(&device.vk.target, module->code, module->words, "main", &error)) {
        return true;
    }
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    device.vk.api.GetPhysicalDeviceProperties2(device.vk.physical, &properties);
    if (strncmp(properties.properties.deviceName, "llvmpipe", strlen("llvmpipe")) == 0 ||
        !strstr(bhi_error_line(&error), "is not supported by this device")) {
        BHT_FAIL("%s: %s", name, bhi_error_line(&error));
    }
    printf("left out: %s: %s\n", name, bhi_error_line(&error));
    return false;
}

static void check(const char *name, const struct stand_module *module, const struct known *known) {
    if (!can_run(name, module)) {
        return;
    }
    struct runner_module loaded = {
        .plain = module, .constants = known->constants, .constant_count = known->constant_count};
    struct runner_kernel kernel;
    runner_load(&loaded, &kernel);
    const uint32_t count = kernel.buffers * RUNNER_WORDS;
    uint32_t *before = calloc(count + 1, 4), *plain = calloc(count + 1, 4),
             *data = calloc(count + 1, 4);
    fill(before, count, known->first, known->finite);
    struct runner_run run = {.push = known->push, .data = plain};
    memcpy(run.groups, known->groups, sizeof run.groups);
    memcpy(plain, before, count * 4);
    runner_dispatch(&kernel, &run);
    runner_unload(&kernel);
    for (const struct way *way = ways; way < ways + sizeof ways / sizeof *ways; way++) {
        struct bhi_guarded guarded = guard(name, module, known, way);
        loaded.guarded = &guarded;
        run.data = data;
        if (differs(way, &guarded)) {
            runner_load(&loaded, &kernel);
            run.abort = 0;
            run.told[0] = run.told[1] = run.told[2] = 77; /* which nobody reads */
            memcpy(data, before, count * 4);
            runner_dispatch(&kernel, &run);
            if (known->raced != 0) {
                data[known->raced] = plain[known->raced];
            }
            compare(name, way->how, plain, data, count);
            BHT_EQ(run.flags, 0);
            if (way->in_parts) {
                check_told(name, &loaded, &run, before, plain, count);
            }
            run.abort = 1;
            memcpy(data, before, count * 4);
            runner_dispatch(&kernel, &run);
            compare(name, "aborted", before, data, count);
            runner_unload(&kernel);
        }
        bhi_guarded_fini(&guarded);
    }
    if (count > 0) { /* a kernel that does nothing proves nothing */
        BHT_NE(memcmp(before, plain, count * 4), 0);
    }
    free(before);
    free(plain);
    free(data);
}

/* Parameters n, m, a, seed of kernels/common.glsl. */
static const struct known common = {.push = {64, 16, 0x3f000000, 12345}, .groups = {4, 2, 1}};

static void test_kernels(const char *level) {
    for (size_t i = part; i < KERNELS; i += parts) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", kernels[i], level);
        struct stand_module module = load(GUARD_KERNELS, name);
        check(name, &module, &common);
    }
}

TEST(kernels_as_written) {
    test_kernels(".O0");
}

TEST(kernels_optimised) {
    test_kernels(".O");
}

TEST(other_constants) {
    if (part != 0) { /* once */
        return;
    }
    static const struct bhi_spec_constant constants[] = {{0, 4, 5000}, {1, 4, 5}, {2, 4, 0}};
    struct known known = common;
    known.constants = constants;
    known.constant_count = 3;
    for (int optimised = 0; optimised < 2; optimised++) {
        struct stand_module module =
            load(GUARD_KERNELS, optimised ? "constants.O" : "constants.O0");
        check("constants", &module, &known);
    }
}

TEST(shipped_kernels) {
    static const struct bhi_spec_constant tile = {0, 4, 8};
    static const struct {
        const char *name;
        struct known known;
    } cases[] = {
        {"add", {.push = {4096}, .groups = {16, 1, 1}}},
        {"blur", {.push = {64, 64, 3, 3}, .groups = {8, 8, 1}}},
        {"empty", {.groups = {4, 1, 1}}},
        {"histogram", {.push = {4096, 64}, .groups = {4, 1, 1}}},
        {"mandelbrot", {.push = {64, 64, 200}, .groups = {8, 8, 1}}},
        {"matmul", {.push = {40, 50, 60}, .groups = {4, 4, 1}, .finite = true}},
        {"matmul",
         {.push = {40, 50, 60},
          .groups = {7, 5, 1},
          .finite = true,
          .constants = &tile,
          .constant_count = 1}},
        {"reduce_sum", {.push = {4096}, .groups = {4, 1, 1}}},
        {"saxpy", {.push = {0x40200000, 4096, 4096, 4096}, .groups = {16, 1, 1}}},
        {"square", {.push = {4096}, .groups = {16, 1, 1}}},
        {"hang", {.groups = {1, 1, 1}, .first = 0x600D600Du, .raced = 1}}, /* let go at once */
    };
    for (size_t i = part; i < sizeof cases / sizeof *cases; i += parts) {
        struct stand_module module = load(GUARD_SHADERS, cases[i].name);
        check(cases[i].name, &module, &cases[i].known);
    }
}

int main(int argc, char **argv) {
    if (argc == 3) {
        part = strtoul(argv[1], NULL, 10);
        parts = strtoul(argv[2], NULL, 10);
    }
    return bht_main(1, argv, NULL, 0);
}
