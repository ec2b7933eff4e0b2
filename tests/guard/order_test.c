/* Workgroups get their ids in the opposite order where noise is even. Of a grid that is told to be larger
 * than it is, they get the last ones. */
#include "runner.h"

#include <stdio.h>
#include <string.h>

enum { ODD = 5, EVEN = 4 };

static struct bhi_guarded guard(const struct stand_module *module, uint32_t noise, bool in_parts) {
    const struct bhi_guard_options options = {.entry = "main",
                                              .max_sets = 4,
                                              .zero_initialize = true,
                                              .noise = noise,
                                              .in_parts = in_parts};
    return stand_guard_with(module, &options);
}

/* Checks that the groups from |first| to |last|, of four along each axis, ran once each. */
static void ran(struct runner_kernel *kernel, struct runner_run *run, const uint32_t first[3],
                const uint32_t last[3]) {
    memset(run->data, 0, RUNNER_WORDS * sizeof *run->data);
    runner_dispatch(kernel, run);
    for (uint32_t i = 0; i <= 64; i++) { /* the last one counts what does not fit */
        const uint32_t id[] = {i % 4, i / 4 % 4, i / 16};
        bool is_in = true;
        for (int axis = 0; axis < 3; axis++) {
            is_in = is_in && id[axis] >= first[axis] && id[axis] < last[axis];
        }
        if (run->data[i] != is_in) {
            BHT_FAIL("group %u, %u, %u ran %u times", id[0], id[1], id[2], run->data[i]);
        }
    }
}

TEST(groups_have_their_ids_in_the_opposite_order) {
    static const char *const paths[] = {GUARD_HOSTILE "/order.O.spv",
                                        GUARD_HOSTILE "/order_whole.O0.spv"};
    static const uint32_t groups[] = {3, 2, 1}, told[] = {4, 4, 2}, none[] = {0, 0, 0};
    static uint32_t data[RUNNER_WORDS];
    for (size_t i = 0; i < BHT_COUNT(paths); i++) {
        for (uint32_t noise = EVEN; noise <= ODD; noise++) {
            struct stand_module module = stand_load(paths[i]);
            const struct bhi_guarded guarded = guard(&module, noise, true);
            const struct bhi_spec_constant in_parts = {guarded.grid_constant, 4, 1};
            const struct runner_module as = {
                .plain = &module, .guarded = &guarded, .constants = &in_parts, .constant_count = 1};
            struct runner_kernel kernel;
            struct runner_run run = {.groups = {3, 2, 1}, .told = {3, 2, 1}, .data = data};
            BHT_EQ(guarded.reads_grid, noise == EVEN);
            runner_load(&as, &kernel);
            ran(&kernel, &run, none, groups);
            memcpy(run.told, told, sizeof told);
            if (noise == EVEN) {
                ran(&kernel, &run, (const uint32_t[]){1, 2, 1}, told);
            } else {
                ran(&kernel, &run, none, groups);
            }
            runner_unload(&kernel);
        }
    }
}

/* Also where the kernel's own variables are signed, and its entry point lists all that it uses. */
TEST(ids_of_every_kind_are_replaced) {
    static const char *const kinds[] = {"%uint", "%int"};
    for (size_t i = 0; i < BHT_COUNT(kinds); i++) {
        for (unsigned minor = 0; minor <= 6; minor += 6) {
            char globals[512];
            snprintf(globals, sizeof globals,
                     "%%v = OpTypeVector %s 3\n%%p_v = OpTypePointer Input %%v\n"
                     "%%p_part = OpTypePointer Input %s\n%%id = OpVariable %%p_v Input\n",
                     kinds[i], kinds[i]);
            char body[512];
            snprintf(body, sizeof body,
                     "%%whole = OpLoad %%v %%id\n%%at = OpAccessChain %%p_part %%id %%u_1\n"
                     "%%part = OpLoad %s %%at\nOpReturn",
                     kinds[i]);
            for (int whole = 0; whole < 2; whole++) {
                const struct stand_module module =
                    stand_compute_with(whole ? "OpDecorate %id BuiltIn GlobalInvocationId\n"
                                             : "OpDecorate %id BuiltIn WorkgroupId\n",
                                       globals, "%id", body, "", minor);
                struct bhi_guarded guarded = guard(&module, ODD, false);
                BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpISub), 0);
                guarded = guard(&module, EVEN, false);
                BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpISub), whole ? 3 : 2);
            }
        }
    }
}

/* An entry point with two of them could compare them. */
TEST(a_second_variable_of_an_id_is_refused) {
    const struct stand_module module = stand_compute_with(
        "OpDecorate %a BuiltIn WorkgroupId\nOpDecorate %b BuiltIn WorkgroupId\n",
        "%v = OpTypeVector %uint 3\n%p = OpTypePointer Input %v\n%a = OpVariable %p Input\n"
        "%b = OpVariable %p Input\n",
        "%a %b", "%x = OpLoad %v %a\n%y = OpLoad %v %b\nOpReturn", "", 3);
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = EVEN};
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (bhi_guard(module.code, module.words, &options, &guarded, &error)) {
        bht_own(guarded.code);
        BHT_FAIL("not refused");
    }
    BHT_EQ(error.status, BH_INVALID_KERNEL);
    BHT_TRUE(strstr(bhi_error_line(&error), "are the same built-in variable"));
}

/* The second word of the first name is 4, which is the counts' number. Only the other entry point lists those. */
TEST(a_number_in_a_name_lists_no_variable) {
    const struct stand_module module = stand_assemble(
        "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
        "OpEntryPoint GLCompute %main \"main\x04\" %group\n"
        "OpEntryPoint GLCompute %other \"other\" %counts\n"
        "OpExecutionMode %main LocalSize 1 1 1\nOpExecutionMode %other LocalSize 1 1 1\n"
        "OpDecorate %group BuiltIn WorkgroupId\nOpDecorate %counts BuiltIn NumWorkgroups\n"
        "%void = OpTypeVoid\n%uint = OpTypeInt 32 0\n%nothing = OpTypeFunction %void\n"
        "%v = OpTypeVector %uint 3\n%p = OpTypePointer Input %v\n"
        "%group = OpVariable %p Input\n%counts = OpVariable %p Input\n"
        "%main = OpFunction %void None %nothing\n%start = OpLabel\n%x = OpLoad %v %group\n"
        "OpReturn\nOpFunctionEnd\n"
        "%other = OpFunction %void None %nothing\n%begin = OpLabel\n%y = OpLoad %v %counts\n"
        "OpReturn\nOpFunctionEnd\n",
        3);
    const struct bhi_guard_options options = {.entry = "main\x04", .max_sets = 4, .noise = EVEN};
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (!bhi_guard(module.code, module.words, &options, &guarded, &error) ||
        (bht_own(guarded.code),
         !bhi_validate(&stand_device, guarded.code, guarded.words, options.entry, &error))) {
        BHT_FAIL("%s", bhi_error_line(&error));
    }
}
