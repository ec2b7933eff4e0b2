/* Each shape of loop: what the guard makes of it is valid, in every version of SPIR-V. */
#include "stand.h"

#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A loop of one block, with phis that depend on it. */
static const char single_block[] = "OpBranch %h\n"
                                   "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %h\n"
                                   "%i2 = OpIAdd %uint %i %u_1\n"
                                   "%p = OpAccessChain %p_uint %out %u_0 %i\nOpStore %p %i2\n"
                                   "%v = OpLoad %uint %p\n%c = OpULessThan %bool %i2 %v\n"
                                   "OpLoopMerge %m %h None\nOpBranchConditional %c %h %m\n"
                                   "%m = OpLabel\n%last = OpPhi %uint %i2 %h\n"
                                   "%p2 = OpAccessChain %p_uint %out %u_0 %u_0\n"
                                   "OpStore %p2 %last\nOpReturn\n";

/* The header chooses between two blocks of the loop, and is itself the exit of nothing. */
static const char header_selects[] = "OpBranch %h\n"
                                     "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                                     "%p = OpAccessChain %p_uint %out %u_0 %i\n"
                                     "%v = OpLoad %uint %p\n%odd = OpINotEqual %bool %v %u_0\n"
                                     "OpLoopMerge %m %k None\nOpBranchConditional %odd %a %b\n"
                                     "%a = OpLabel\nOpStore %p %u_1\nOpBranch %k\n"
                                     "%b = OpLabel\n%stop = OpUGreaterThan %bool %i %v\n"
                                     "OpBranchConditional %stop %m %k\n"
                                     "%k = OpLabel\n%x = OpPhi %uint %u_1 %a %u_2 %b\n"
                                     "%i2 = OpIAdd %uint %i %x\nOpBranch %h\n"
                                     "%m = OpLabel\nOpReturn\n";

/* The same to the loop's body and its continue target, which every validator takes. */
static const char header_continues[] = "OpBranch %h\n"
                                       "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                                       "%p = OpAccessChain %p_uint %out %u_0 %i\n"
                                       "%v = OpLoad %uint %p\n%odd = OpINotEqual %bool %v %u_0\n"
                                       "OpLoopMerge %m %k None\nOpBranchConditional %odd %a %k\n"
                                       "%a = OpLabel\nOpStore %p %u_1\n"
                                       "%stop = OpUGreaterThan %bool %i %v\n"
                                       "OpBranchConditional %stop %m %k\n"
                                       "%k = OpLabel\n%x = OpPhi %uint %u_1 %h %u_2 %a\n"
                                       "%i2 = OpIAdd %uint %i %x\nOpBranch %h\n"
                                       "%m = OpLabel\nOpReturn\n";

/* A function that returns a value out of its loop, called from another loop. */
static const char calls[] = "OpBranch %h\n"
                            "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                            "%p = OpAccessChain %p_uint %out %u_0 %i\n%v = OpLoad %uint %p\n"
                            "%c = OpULessThan %bool %i %v\nOpLoopMerge %m %k Unroll\n"
                            "OpBranchConditional %c %b %m\n"
                            "%b = OpLabel\n%r = OpFunctionCall %uint %count %v\nOpStore %p %r\n"
                            "OpBranch %k\n"
                            "%k = OpLabel\n%i2 = OpIAdd %uint %i %u_1\nOpBranch %h\n"
                            "%m = OpLabel\nOpReturn\n";
static const char counts[] = "%count = OpFunction %uint None %to_uint\n"
                             "%n = OpFunctionParameter %uint\n"
                             "%cs = OpLabel\nOpBranch %ch\n"
                             "%ch = OpLabel\n%ci = OpPhi %uint %u_0 %cs %ci2 %ck\n"
                             "OpLoopMerge %cm %ck None\nOpBranch %cb\n"
                             "%cb = OpLabel\n%cc = OpULessThan %bool %ci %n\n"
                             "OpBranchConditional %cc %ck %cm\n"
                             "%ck = OpLabel\n%ci2 = OpIAdd %uint %ci %u_1\nOpBranch %ch\n"
                             "%cm = OpLabel\nOpReturnValue %ci\nOpFunctionEnd\n";

/* Counts up to a bound that the header loads, and down in another loop; what the header computes
 * and the phis are used behind the loop. */
static const char counted[] = "OpBranch %h\n"
                              "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                              "%sum = OpPhi %uint %u_1 %start %sum2 %k\n"
                              "%pn = OpAccessChain %p_push %push %i_0\n%n = OpLoad %uint %pn\n"
                              "%n2 = OpIAdd %uint %n %u_8\n%c = OpULessThan %bool %i %n2\n"
                              "OpLoopMerge %m %k Unroll\nOpBranchConditional %c %b %m\n"
                              "%b = OpLabel\n%p = OpAccessChain %p_uint %out %u_0 %i\n"
                              "OpStore %p %sum\nOpBranch %k\n"
                              "%k = OpLabel\n%sum2 = OpIAdd %uint %sum %i\n"
                              "%i2 = OpIAdd %uint %i %u_1\nOpBranch %h\n"
                              "%m = OpLabel\n%x = OpPhi %uint %sum %h\nOpBranch %h2\n"
                              "%h2 = OpLabel\n%j = OpPhi %uint %n2 %m %j2 %k2\n"
                              "OpLoopMerge %m2 %k2 None\nOpBranch %t2\n"
                              "%t2 = OpLabel\n%c2 = OpULessThanEqual %bool %j %n\n"
                              "OpBranchConditional %c2 %m2 %b2\n"
                              "%b2 = OpLabel\nOpBranch %k2\n"
                              "%k2 = OpLabel\n%j2 = OpISub %uint %j %u_1\nOpBranch %h2\n"
                              "%m2 = OpLabel\n%p2 = OpAccessChain %p_uint %out %u_0 %j\n"
                              "OpStore %p2 %x\nOpReturn\n";

/* Guarded, also with the rounds counted, as for llvmpipe. */
static void check(struct stand_module *module, uint32_t loops, uint32_t lowered) {
    struct bhi_guard_options options = {.entry = "main", .max_sets = 8};
    for (int cut = 0; cut < 2; cut++) {
        options.count_iterations = cut == 1;
        struct bhi_guarded guarded = stand_guard_with(module, &options);
        BHT_EQ(guarded.loops, loops);
        BHT_GE(guarded.lowered, lowered);
        BHT_EQ(guarded.set, 1);
        BHT_GT(guarded.words, module->words);
    }
}

static void each_version(const char *globals, const char *body, const char *functions,
                         uint32_t loops) {
    for (unsigned minor = 0; minor <= 6; minor++) {
        struct stand_module module = stand_compute(globals, body, functions, minor);
        check(&module, loops, 0);
    }
}

TEST(test_no_loop) {
    each_version("", "OpReturn\n", "", 0);
}

TEST(test_single_block) {
    each_version("", single_block, "", 1);
}

TEST(test_header_selects) {
    for (unsigned minor = 0; minor <= 6; minor++) {
        struct stand_module module = stand_compute("", header_selects, "", minor);
        if (stand_is_valid_here(&module, "Selection must be structured")) {
            check(&module, 1, 0);
        }
    }
    each_version("", header_continues, "", 1);
}

TEST(test_calls) {
    each_version("%to_uint = OpTypeFunction %uint %uint\n", calls, counts, 2);
}

TEST(test_counted) {
    static const char push[] = "%params = OpTypeStruct %uint\n"
                               "%p_params = OpTypePointer PushConstant %params\n"
                               "%p_push = OpTypePointer PushConstant %uint\n"
                               "%push = OpVariable %p_params PushConstant\n";
    for (unsigned minor = 0; minor <= 6; minor++) {
        struct stand_module module =
            stand_compute_with("OpDecorate %params Block\nOpMemberDecorate %params 0 Offset 0\n",
                               push, minor >= 4 ? "%push" : "", counted, "", minor);
        check(&module, 2, 2);
    }
}

/* A merge block that is the next loop's header; a loop whose merge block leads to the latch of
 * the one around it; a header with an edge from a block that nothing leads to. */
static const char shared_blocks[] = "%pa = OpAccessChain %p_uint %out %u_0 %u_0\nOpBranch %h\n"
                                    "%h = OpLabel\n"
                                    "%i = OpPhi %uint %u_0 %start %i2 %k %u_1 %dead\n"
                                    "OpLoopMerge %m %k None\nOpBranch %t\n"
                                    "%t = OpLabel\n%v = OpLoad %uint %pa\n"
                                    "%c = OpULessThan %bool %i %v\nOpBranchConditional %c %k %m\n"
                                    "%k = OpLabel\n%i2 = OpIAdd %uint %i %u_2\nOpBranch %h\n"
                                    "%m = OpLabel\n%j = OpPhi %uint %i %t %j2 %m2\n"
                                    "%w = OpLoad %uint %pa\n%c2 = OpINotEqual %bool %j %w\n"
                                    "OpLoopMerge %z %m2 None\nOpBranchConditional %c2 %h3 %z\n"
                                    "%h3 = OpLabel\n%q = OpPhi %uint %j %m %q2 %k3\n"
                                    "%c3 = OpINotEqual %bool %q %w\nOpLoopMerge %m3 %k3 None\n"
                                    "OpBranchConditional %c3 %k3 %m3\n"
                                    "%k3 = OpLabel\n%q2 = OpIAdd %uint %q %u_2\nOpBranch %h3\n"
                                    "%m3 = OpLabel\n%x = OpPhi %uint %q %h3\nOpBranch %m2\n"
                                    "%m2 = OpLabel\n%j2 = OpIAdd %uint %x %u_1\nOpBranch %m\n"
                                    "%z = OpLabel\nOpStore %pa %j\nOpReturn\n"
                                    "%dead = OpLabel\nOpBranch %h\n";

TEST(test_shared_blocks) {
    each_version("", shared_blocks, "", 3);
}

/* A block with two edges to a header is one block before it. */
TEST(test_two_edges_to_a_header) {
    each_version("",
                 "%p = OpAccessChain %p_uint %out %u_0 %u_0\n%v = OpLoad %uint %p\n"
                 "OpSelectionMerge %z None\nOpSwitch %v %h 1 %h\n"
                 "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                 "OpLoopMerge %m %k None\nOpBranch %t\n"
                 "%t = OpLabel\n%w = OpLoad %uint %p\n%c = OpULessThan %bool %i %w\n"
                 "OpBranchConditional %c %k %m\n"
                 "%k = OpLabel\n%i2 = OpIAdd %uint %i %u_2\nOpBranch %h\n"
                 "%m = OpLabel\nOpBranch %z\n%z = OpLabel\nOpReturn\n",
                 "", 1);
}

/* The entry block's terminator moves: phis of where it leads must follow. */
TEST(test_phi_of_the_entry_block) {
    each_version("",
                 "%p = OpAccessChain %p_uint %out %u_0 %u_0\n%v = OpLoad %uint %p\n"
                 "%c = OpINotEqual %bool %v %u_0\nOpSelectionMerge %m None\n"
                 "OpBranchConditional %c %a %m\n"
                 "%a = OpLabel\nOpBranch %m\n"
                 "%m = OpLabel\n%x = OpPhi %uint %u_1 %start %u_2 %a\nOpStore %p %x\nOpReturn\n",
                 "", 0);
}

/* Where rounds are counted (llvmpipe): the stores that are added, and whether the guard asks each
 * lane if it is there. */
static void check_counted(const char *body, uint32_t left_alone, uint32_t polled, bool asks) {
    struct stand_module module = stand_compute("", body, "", 3);
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .count_iterations = true};
    struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_EQ(guarded.left_alone, left_alone);
    BHT_EQ(guarded.polled + guarded.lowered, polled);
    const unsigned stores = stand_count(module.code, module.words, SpvOpStore);
    const unsigned guarded_stores = stand_count(guarded.code, guarded.words, SpvOpStore);
    char *text = stand_text(guarded.code, guarded.words);
    BHT_STR_HAS(text, "\"bulkhead_abort\""); /* each looks at the word */
    BHT_EQ(!!strstr(text, "\"bulkhead_alive\""), asks);
    BHT_EQ(!!strstr(text, "\"bulkhead_rounds\""), asks);
    BHT_EQ((guarded_stores > stores), asks);
}

/* Lanes that are not there can stay in a loop that is not provably short, and nowhere else. */
TEST(test_only_kernels_with_counted_loops_ask_who_is_there) {
    static const char alone[] = "OpBranch %h\n"
                                "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                                "%c = OpULessThan %bool %i %u_10\nOpLoopMerge %m %k None\n"
                                "OpBranchConditional %c %k %m\n"
                                "%k = OpLabel\n%p = OpAccessChain %p_uint %out %u_0 %i\n"
                                "OpStore %p %i\n%i2 = OpIAdd %uint %i %u_1\nOpBranch %h\n"
                                "%m = OpLabel\nOpReturn\n";
    check_counted("%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %u_1\nOpReturn\n", 0, 0,
                  false);
    check_counted(alone, 1, 0, false);
    check_counted(single_block, 0, 1, true);
}

TEST(test_rounds_are_counted_only_where_they_are_run) {
    static const struct {
        const char *body;
        bool counts;
    } rows[] = {{"OpReturn\n", false},
                {"%r = OpFunctionCall %uint %count %u_100\nOpReturn\n", true}};
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .count_iterations = true};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct stand_module module =
            stand_compute("%to_uint = OpTypeFunction %uint %uint\n", rows[i].body, counts, 3);
        struct bhi_guarded guarded = stand_guard_with(&module, &options);
        BHT_EQ(guarded.loops, 1);
        BHT_EQ(!!strstr(stand_text(guarded.code, guarded.words), "\"bulkhead_rounds\""),
               rows[i].counts);
    }
}

/* |decorations| make |%built_in| (of |type|) how many workgroups there are, and |body| reads it. */
static void check_grid(const char *decorations, const char *type, const char *body, bool reads,
                       bool whole) {
    static const struct bhi_spec_constant one = {1, 4, 5};
    char globals[512], decorated[512];
    snprintf(decorated, sizeof decorated, "%sOpDecorate %%spec SpecId 0\n", decorations);
    snprintf(globals, sizeof globals,
             "%%spec = OpSpecConstant %%uint 7\n%%v3 = OpTypeVector %%uint 3\n%%block_of = "
             "OpTypeStruct %%v3\n"
             "%%p_v3 = OpTypePointer Input %%v3\n%%p_in = OpTypePointer Input %s\n"
             "%%built_in = OpVariable %%p_in Input\n",
             type);
    for (unsigned minor = 0; minor <= 6; minor++) {
        for (int in_parts = 0; in_parts < 2; in_parts++) {
            const struct bhi_guard_options options = {.entry = "main",
                                                      .constants = &one,
                                                      .constant_count = 1,
                                                      .max_sets = 8,
                                                      .in_parts = in_parts};
            struct stand_module module =
                stand_compute_with(decorated, globals, "%built_in", body, "", minor);
            struct bhi_guarded guarded = stand_guard_with(&module, &options);
            char *text = stand_text(guarded.code, guarded.words);
            BHT_EQ(guarded.reads_grid, reads && in_parts);
            BHT_EQ(guarded.whole_grid, whole);
            BHT_EQ(guarded.grid_constant,
                   reads && in_parts ? 2 : 0); /* not the module's 0, nor 1 */
            BHT_EQ(!!strstr(text, "\"bulkhead_groups\""), reads && in_parts);
        }
    }
}

/* Built-in variables of other meanings are left alone; a member of a block cannot be replaced. */
TEST(test_reads_the_grid) {
    static const char load[] = "%all = OpLoad %v3 %built_in\n"
                               "%x = OpCompositeExtract %uint %all 0\n"
                               "%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %x\n"
                               "OpReturn\n";
    static const char member[] = "%at = OpAccessChain %p_v3 %built_in %u_0\n"
                                 "%all = OpLoad %v3 %at\n%x = OpCompositeExtract %uint %all 0\n"
                                 "%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %x\n"
                                 "OpReturn\n";
    check_grid("OpDecorate %built_in BuiltIn NumWorkgroups\n", "%v3", load, true, false);
    check_grid("OpDecorate %built_in BuiltIn NumWorkgroups\n", "%v3", "OpReturn\n", true, false);
    check_grid("OpDecorate %built_in BuiltIn WorkgroupId\n", "%v3", load, false, false);
    check_grid("OpDecorate %block_of Block\n"
               "OpMemberDecorate %block_of 0 BuiltIn NumWorkgroups\n",
               "%block_of", member, false, true);
}

/* Without a descriptor set to have, the words go to the last one that is used, at a binding that
 * nothing has; where none is used there is no guard. */
TEST(test_no_set_free) {
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 1};
    struct stand_module module = stand_compute(
        "", "%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %u_1\nOpReturn\n", "", 3);
    struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_EQ(guarded.set, 0);
    BHT_EQ(guarded.binding, 1);
    BHT_TRUE(guarded.shares_set);
    guarded = stand_guard(&module);
    BHT_EQ(guarded.set, 1);
    BHT_EQ(guarded.binding, 0);
    BHT_TRUE(!guarded.shares_set);

    module = stand_compute("", "OpReturn\n", "", 3);
    struct bhi_error error;
    BHT_TRUE(!bhi_guard(module.code, module.words, &options, &guarded, &error));
    BHT_EQ(error.status, BH_LIMIT_EXCEEDED);
    BHT_STR_HAS(bhi_error_line(&error), "maxBoundDescriptorSets");

    /* Set 0 is used, set 1 is only declared: the words must lie where there is a layout. */
    module = stand_compute_with(
        "OpDecorate %more DescriptorSet 1\nOpDecorate %more Binding 1\n",
        "%more = OpVariable %p_block StorageBuffer\n", "",
        "%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %u_1\nOpReturn\n", "", 3);
    const struct bhi_guard_options two = {.entry = "main", .max_sets = 2};
    guarded = stand_guard_with(&module, &two);
    BHT_EQ(guarded.set, 0);
    BHT_EQ(guarded.binding, 2);
}

static void check_decorated(const char *decorations, const char *text) {
    struct stand_module module = stand_compute_with(
        decorations,
        "%n = OpSpecConstant %uint 2\n%uvec3 = OpTypeVector %uint 3\n"
        "%size = OpSpecConstantComposite %uvec3 %n %u_1 %u_1\n"
        "%size2 = OpSpecConstantComposite %uvec3 %u_1 %u_1 %n\n",
        "", "%p = OpAccessChain %p_uint %out %u_0 %u_0\nOpStore %p %n\nOpReturn\n", "", 3);
    if (text) {
        (void)stand_is_valid_here(&module, "decorat");
        stand_guard_refuses(&module, BH_INVALID_KERNEL, text);
    } else {
        (void)stand_guard(&module);
    }
}

/* The guard's view of a constant must be the driver's: lengths of arrays and of loops hang on it.
 */
TEST(test_decorations_that_drivers_read_otherwise) {
    check_decorated("OpDecorate %n SpecId 0\nOpDecorate %size BuiltIn WorkgroupSize\n", NULL);
    check_decorated("OpDecorate %n SpecId 0\nOpDecorate %n SpecId 1\n",
                    "SpecId is decorated twice");
    check_decorated("OpDecorate %size BuiltIn WorkgroupSize\n"
                    "OpDecorate %size2 BuiltIn WorkgroupSize\n",
                    "BuiltIn WorkgroupSize is decorated twice");
    check_decorated("OpDecorate %g SpecId 0\n%g = OpDecorationGroup\nOpGroupDecorate %g %n\n",
                    "decoration groups are not allowed");
}

/* How a kernel reads the abort word: {loads that say so themselves, decorations}. */
static void check_reads(const struct stand_module *module, unsigned loads, unsigned decorated) {
    const struct bhi_guarded guarded = stand_guard(module);
    const uint32_t anew = SpvMemoryAccessVolatileMask | SpvMemoryAccessMakePointerVisibleMask |
                          SpvMemoryAccessNonPrivatePointerMask;
    unsigned says = 0, coherent = 0, is_volatile = 0;
    for (size_t i = 5; i < guarded.words; i += guarded.code[i] >> SpvWordCountShift) {
        const uint32_t *at = &guarded.code[i];
        const SpvOp op = (SpvOp)(at[0] & SpvOpCodeMask);
        if (op == SpvOpMemberDecorate && at[2] == BHI_WORD_ABORT) {
            coherent += at[3] == SpvDecorationCoherent;
            is_volatile += at[3] == SpvDecorationVolatile;
        }
        says += op == SpvOpLoad && at[0] >> SpvWordCountShift == 6 && at[4] == anew;
    }
    BHT_EQ(says, loads);
    BHT_EQ(coherent, decorated);
    BHT_EQ(is_volatile, decorated);
}

/* A load that is only volatile is answered from a cache on NVIDIA, where the host's store never shows. */
TEST(test_the_abort_word_is_read_anew) {
    struct stand_module module = stand_compute("", "OpReturn\n", "", 3);
    check_reads(&module, 0, 1);
    module = stand_assemble("OpCapability Shader\nOpCapability VulkanMemoryModel\n"
                            "OpMemoryModel Logical Vulkan\nOpEntryPoint GLCompute %main \"main\"\n"
                            "OpExecutionMode %main LocalSize 1 1 1\n%void = OpTypeVoid\n"
                            "%nothing = OpTypeFunction %void\n"
                            "%main = OpFunction %void None %nothing\n"
                            "%start = OpLabel\nOpReturn\nOpFunctionEnd\n",
                            5);
    check_reads(&module, 1, 0);
}

/* Which loops count: that is, are known to be short. */
static void check_count(const char *before, const char *ways, const char *condition,
                        const char *body, const char *step, bool alone) {
    char text[4096];
    snprintf(text, sizeof text,
             "%%v = OpVariable %%p_local Function\n%%p = OpAccessChain %%p_uint %%out %%u_0 %%u_0\n"
             "%%w = OpLoad %%uint %%p\n%%some = OpINotEqual %%bool %%w %%u_0\n%sOpBranch %%h\n"
             "%%h = OpLabel\n%%i = OpPhi %%uint %s %%i2 %%k\n"
             "OpLoopMerge %%m %%k None\nOpBranch %%test\n"
             "%%test = OpLabel\n%sOpBranchConditional %%c %%b %%m\n"
             "%%b = OpLabel\n%sOpBranch %%k\n%%k = OpLabel\n%sOpBranch %%h\n"
             "%%m = OpLabel\nOpReturn\n",
             before, ways, condition, body, step);
    struct stand_module module = stand_compute("%short = OpTypeInt 16 1\n%ushort = OpTypeInt 16 0\n"
                                               "%h_m1 = OpConstant %short -1\n"
                                               "%h_8 = OpConstant %short 8\n"
                                               "%uh_most = OpConstant %ushort 65535\n"
                                               "%p_local = OpTypePointer Function %uint\n"
                                               "%u_9 = OpConstant %uint 9\n"
                                               "%uvec2 = OpTypeVector %uint 2\n"
                                               "%pair = OpConstantComposite %uvec2 %u_5000 %u_10\n"
                                               "%null = OpConstantNull %uvec2\n"
                                               "%all = OpConstant %uint 4000000000\n",
                                               text, "", 3);
    module = stand_capable(&module, SpvCapabilityInt16);
    const struct bhi_guarded guarded = stand_guard(&module);
    if (guarded.loops - guarded.left_alone != !alone) {
        BHT_FAIL("%s%s%s%s: %u of %u loops left alone", before, condition, body, step,
                 guarded.left_alone, guarded.loops);
    }
}

#define TO_10  "%c = OpULessThan %bool %i %u_10\n"
#define PLUS_1 "%i2 = OpIAdd %uint %i %u_1\n"
#define FROM_0 "%u_0 %start"

TEST(test_what_only_looks_like_a_counter) {
    static const struct {
        const char *before, *condition, *body, *step;
        bool alone;
    } rows[] = {
        {"", TO_10, "", PLUS_1, true},
        {"", TO_10, "", "%i2 = OpIAdd %uint %u_1 %i\n", true},
        /* under another name */
        {"", "%j = OpBitcast %int %i\n%c = OpSLessThan %bool %j %i_10\n", "", PLUS_1, true},
        {"", "%j = OpCopyObject %uint %i\n%c = OpULessThan %bool %j %u_10\n", "", PLUS_1, true},
        /* the bound on the other side */
        {"", "%c = OpUGreaterThan %bool %u_10 %i\n", "", PLUS_1, true},
        {"", "%c = OpULessThanEqual %bool %u_0 %i\n", "", PLUS_1, false},
        /* 0, 10, 0, 10 */
        {"", "%c = OpSGreaterThanEqual %bool %i %u_0\n", "", "%i2 = OpISub %uint %u_10 %i\n",
         false},
        /* something else is computed from the counter */
        {"", "%n = OpIMul %uint %i %u_0\n%c = OpULessThan %bool %n %u_10\n", "", PLUS_1, false},
        /* the variable, loaded before the loop */
        {"OpStore %v %u_0\n%j = OpLoad %uint %v\n",
         "%l = OpLoad %uint %v\n%c = OpULessThan %bool %l %u_10\n", "",
         "%i2 = OpIAdd %uint %j %u_1\nOpStore %v %i2\n", false},
        {"OpStore %v %u_0\n%j = OpLoad %uint %v\n", "%c = OpULessThan %bool %j %u_10\n", "",
         "%l = OpLoad %uint %v\n%i2 = OpIAdd %uint %l %u_1\nOpStore %v %i2\n", false},
        /* by two, in an inner loop */
        {"OpStore %v %u_0\n", "%l = OpLoad %uint %v\n%c = OpINotEqual %bool %l %u_9\n",
         "OpBranch %h2\n%h2 = OpLabel\n%a = OpPhi %uint %u_0 %b %a2 %h2\n%j = OpLoad %uint %v\n"
         "%j2 = OpIAdd %uint %j %u_1\nOpStore %v %j2\n%a2 = OpIAdd %uint %a %u_1\n"
         "%c2 = OpULessThan %bool %a2 %u_2\nOpLoopMerge %m2 %h2 None\n"
         "OpBranchConditional %c2 %h2 %m2\n%m2 = OpLabel\n",
         PLUS_1, false},
        /* negations */
        {"", "%n = OpLogicalNot %bool %y\n%c = OpLogicalNot %bool %n\n", "", PLUS_1, true},
        {"",
         "%n = OpLogicalNot %bool %y\n%o = OpLogicalNot %bool %n\n%q = OpLogicalNot %bool %o\n"
         "%c = OpLogicalNot %bool %q\n",
         "", PLUS_1, false}, /* too deep */
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char condition[512];
        snprintf(condition, sizeof condition, "%s%s",
                 strstr(rows[i].condition, "%y") ? "%y = OpULessThan %bool %i %u_10\n" : "",
                 rows[i].condition);
        check_count(rows[i].before, FROM_0, condition, rows[i].body, rows[i].step, rows[i].alone);
    }
}

/* Two ways into the loop, from which it begins with values of their own. */
TEST(test_counters_with_two_beginnings) {
    static const char *const orders[][2] = {{"%u_100", "%u_0"}, {"%u_0", "%u_100"}};
    static const char fork[] = "OpSelectionMerge %%h None\nOpBranchConditional %%some %%y %%z\n"
                               "%%y = OpLabel\nOpStore %%v %s\nOpBranch %%h\n"
                               "%%z = OpLabel\nOpStore %%v %s\n";
    for (size_t i = 0; i < BHT_COUNT(orders); i++) {
        char before[512], ways[64];
        snprintf(before, sizeof before, fork, orders[i][0], orders[i][1]);
        snprintf(ways, sizeof ways, "%s %%y %s %%z", orders[i][0], orders[i][1]);
        check_count(before, ways, "%c = OpINotEqual %bool %i %u_10\n", "", PLUS_1, false);
        check_count(before, ways, "%l = OpLoad %uint %v\n%c = OpINotEqual %bool %l %u_10\n", "",
                    "%j = OpLoad %uint %v\n%i2 = OpIAdd %uint %j %u_1\nOpStore %v %i2\n", false);
    }
    char before[512]; /* or with the same */
    snprintf(before, sizeof before, fork, "%u_0", "%u_0");
    check_count(before, "%u_0 %y %u_0 %z", "%c = OpINotEqual %bool %i %u_10\n", "", PLUS_1, true);
}

#define TO_N        "%c = OpULessThan %bool %i %n\n"
#define TO_SIGNED_N "%c = OpSLessThan %bool %i %n\n"

TEST(test_bounds_that_are_computed) {
    static const struct {
        const char *before, *condition;
        bool alone;
    } rows[] = {
        {"%n = OpCompositeExtract %uint %pair 1\n", TO_N, true},
        {"%n = OpCompositeExtract %uint %pair 0\n", TO_N, false},
        {"%n = OpCompositeExtract %uint %null 0\n", TO_N, false},
        {"OpStore %v %u_10\n%n = OpLoad %uint %v\n", TO_N, true},
        {"OpStore %v %u_10\nOpStore %v %all\n%n = OpLoad %uint %v\n", TO_N, false},
        /* Each reads the one before twice: 64 steps of reading are the most. */
        {"%d = OpIAdd %uint %u_1 %u_1\n%e = OpIAdd %uint %d %d\n%f = OpIAdd %uint %e %e\n"
         "%n = OpIAdd %uint %f %f\n",
         TO_N, true},
        {"%d = OpIAdd %uint %u_1 %u_1\n%e = OpIAdd %uint %d %d\n%f = OpIAdd %uint %e %e\n"
         "%g = OpIAdd %uint %f %f\n%o = OpIAdd %uint %g %g\n%n = OpIAdd %uint %o %o\n",
         TO_N, false},
        /* -1 is reached at once, 65535 is not */
        {"%n = OpSConvert %uint %h_m1\n", TO_SIGNED_N, true},
        {"%n = OpUConvert %uint %uh_most\n", TO_SIGNED_N, false},
        {"%n = OpSConvert %uint %h_8\n", TO_N, true},
        {"%n = OpSConvert %uint %h_m1\n", TO_N, false},
        {"%n = OpBitcast %uint %i_10\n", TO_N, true},
        {"%n = OpCopyObject %uint %u_10\n", TO_N, true},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        check_count(rows[i].before, FROM_0, rows[i].condition, "", PLUS_1, rows[i].alone);
    }
}

/* A loop is lowered where its bound is known before it and is the only way out: else a poll could come too
 * late, or rounds be lost. */
TEST(test_what_is_lowered) {
#define PUSHED "%n = OpLoad %uint %pushed\n"
#define LESS   "%c = OpULessThan %bool %i %n\n"
#define ONE    "%i2 = OpIAdd %uint %i %u_1\n"
#define AWAY(to)                                                                                   \
    "%e = OpIEqual %bool %n %u_8\nOpSelectionMerge %go None\n"                                     \
    "OpBranchConditional %e " to " %go\n"
    static const struct {
        const char *header, *body, *step;
        uint32_t lowered;
    } rows[] = {
        {PUSHED LESS, "", ONE, 1},
        {"%n = OpArrayLength %uint %out 0\n" LESS, "", ONE, 1},
        {PUSHED "%j = OpBitcast %int %i\n%o = OpBitcast %int %n\n%c = OpSLessThan %bool %j %o\n",
         "", ONE, 1},
        {PUSHED LESS, "", "%i2 = OpISub %uint %i %u_most\n", 1},
        {PUSHED LESS, "", "%i2 = OpIAdd %uint %i %u_2\n", 0},
        {PUSHED "%c = OpULessThanEqual %bool %i %n\n", "", ONE, 0},
        {PUSHED "%c = OpINotEqual %bool %i %n\n", "", ONE, 0},
        {PUSHED "%c = OpUGreaterThan %bool %i %n\n", "", ONE, 0},
        {PUSHED "%j = OpIAdd %uint %i %u_1\n%c = OpULessThan %bool %j %n\n", "", ONE, 0},
        {PUSHED "%j = OpIMul %uint %i %u_1\n%c = OpULessThan %bool %j %n\n", "", ONE, 0},
        /* it changes */
        {"%n = OpLoad %uint %first\n" LESS, "", ONE, 0},
        {"%n = OpLoad %uint %pushed Volatile\n" LESS, "", ONE, 0},
        {"%x = OpLoad %uint %pushed\n%n = OpIAdd %uint %x %i\n" LESS, "", ONE, 0},
        {"%n = OpPhi %uint %u_100 %start %u_10 %k\n" LESS, "", ONE, 0},
        {"%n = OpPhi %uint %u_100 %start %n2 %k\n" LESS, "%n2 = OpIAdd %uint %n %u_2\n", ONE, 0},
        /* it would be done once more */
        {PUSHED LESS "OpStore %first %u_1\n", "", ONE, 0},
        {PUSHED LESS "%old = OpAtomicIAdd %uint %first %u_1 %u_0 %u_1\n", "", ONE, 0},
        /* other ways out */
        {PUSHED LESS, AWAY("%m") "%go = OpLabel\n", ONE, 0},
        {PUSHED LESS, AWAY("%r") "%r = OpLabel\nOpReturn\n%go = OpLabel\n", ONE, 0},
        {PUSHED LESS, AWAY("%k") "%go = OpLabel\n", ONE, 1},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char body[2048];
        snprintf(body, sizeof body,
                 "%%pushed = OpAccessChain %%p_push %%push %%i_0\n"
                 "%%first = OpAccessChain %%p_uint %%out %%u_0 %%u_0\nOpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%uint %%u_0 %%start %%i2 %%k\n%s"
                 "OpLoopMerge %%m %%k None\nOpBranchConditional %%c %%b %%m\n"
                 "%%b = OpLabel\n%sOpBranch %%k\n"
                 "%%k = OpLabel\n%sOpBranch %%h\n%%m = OpLabel\nOpReturn\n",
                 rows[i].header, rows[i].body, rows[i].step);
        struct stand_module module = stand_compute_with(
            "OpDecorate %params Block\nOpMemberDecorate %params 0 Offset 0\n",
            "%u_most = OpConstant %uint 0xffffffff\n%params = OpTypeStruct %uint\n"
            "%p_params = OpTypePointer PushConstant %params\n"
            "%p_push = OpTypePointer PushConstant %uint\n"
            "%push = OpVariable %p_params PushConstant\n",
            "", body, "", 3);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.lowered != rows[i].lowered || guarded.polled != 1 - rows[i].lowered) {
            BHT_FAIL("row %zu: %u lowered, %u polled", i, guarded.lowered, guarded.polled);
        }
    }
}

/* A validator looks only at what the entry point calls. */
TEST(test_recursion_that_nobody_calls) {
    static const char self[] = "%f = OpFunction %void None %nothing\n%fs = OpLabel\n"
                               "%r = OpFunctionCall %void %f\nOpReturn\nOpFunctionEnd\n";
    struct stand_module module = stand_compute("", "OpReturn\n", self, 3);
    stand_refuses(&module, BH_INVALID_KERNEL, "calls itself; kernels cannot: make it a loop");
}
