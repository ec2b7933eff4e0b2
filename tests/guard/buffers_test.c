/* Which buffer a pointer leads to. Drivers on a processor look a uniform buffer, and the length of
 * any buffer, up once for several invocations, with the index of the first of them. */
#include "stand.h"
#include "worker/spirv/array_indices.h"
#include "worker/spirv/module.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

#define ROWS                                                                                       \
    "%n = OpConstant %uint 3\n%many = OpTypeArray %block %n\n"                                     \
    "%p_many = OpTypePointer StorageBuffer %many\n"                                                \
    "%rows = OpVariable %p_many StorageBuffer\n"                                                   \
    "%takes = OpTypeFunction %uint %p_block\n%gives = OpTypeFunction %p_block %uint\n"
#define UNIFORMS                                                                                   \
    "%fixed = OpTypeStruct %uint\n%p_fixed = OpTypePointer Uniform %fixed\n"                       \
    "%p_fu = OpTypePointer Uniform %uint\n"                                                        \
    "%this = OpVariable %p_fixed Uniform\n%that = OpVariable %p_fixed Uniform\n"
#define PICK                                                                                       \
    "%p = OpAccessChain %p_uint %out %u_0 %u_0\n%i = OpLoad %uint %p\n"                            \
    "%c = OpIEqual %bool %i %u_1\n"
#define BOTH "%a = OpAccessChain %p_block %rows %u_0\n%b = OpAccessChain %p_block %rows %u_1\n"
#define MERGE(type, one, other)                                                                    \
    "OpSelectionMerge %m None\nOpBranchConditional %c %t %f\n%t = OpLabel\nOpBranch %m\n"          \
    "%f = OpLabel\nOpBranch %m\n%m = OpLabel\n"                                                    \
    "%q = OpPhi " type " " one " %t " other " %f\n"
#define LENGTH "%len = OpArrayLength %uint %q 0\nOpStore %p %len\n"
#define OF_A_PARAMETER(name, body)                                                                 \
    "%" name " = OpFunction %uint None %takes\n%x_" name " = OpFunctionParameter %p_block\n"       \
    "%l_" name " = OpLabel\n" body "OpReturnValue %r_" name "\nOpFunctionEnd\n"
#define INNER                OF_A_PARAMETER("inner", "%r_inner = OpArrayLength %uint %x_inner 0\n")
#define OUTER                OF_A_PARAMETER("outer", "%r_outer = OpFunctionCall %uint %inner %x_outer\n")
#define CALL(name, argument) "%r = OpFunctionCall %uint %" name " %" argument "\nOpStore %p %r\n"

TEST(a_buffer_that_is_chosen) {
    static const struct {
        const char *body, *functions, *text; /* NULL: taken */
    } cases[] = {
        {"%q = OpSelect %p_block %c %a %b\n" LENGTH, "", "OpArrayLength %"},
        {"%x = OpSelect %p_block %c %a %b\n%q = OpCopyObject %p_block %x\n" LENGTH, "",
         "OpArrayLength %"},
        {MERGE("%p_block", "%a", "%b") LENGTH, "", "OpArrayLength %"},
        {"%q = OpAccessChain %p_block %rows %i\n" LENGTH, "", "OpArrayLength %"},
        {"%q = OpPtrAccessChain %p_block %a %i\n" LENGTH, "", "OpArrayLength %"},
        {"%x = OpAccessChain %p_block %rows %i\n" CALL("outer", "x"), INNER OUTER,
         "OpArrayLength %"},
        {"%q = OpFunctionCall %p_block %f %i\n" LENGTH,
         "%f = OpFunction %p_block None %gives\n%x = OpFunctionParameter %uint\n%lf = OpLabel\n"
         "%y = OpAccessChain %p_block %rows %x\nOpReturnValue %y\nOpFunctionEnd\n",
         "OpArrayLength %"},
        {"%x = OpSelect %p_block %c %a %b\n%q = OpAccessChain %p_uint %x %u_0 %i\n"
         "OpStore %q %u_1\n",
         "", NULL},
        {"%q = OpCopyObject %p_block %b\n" LENGTH, "", NULL},
        {CALL("outer", "b"), INNER OUTER, NULL},
        {"%q = OpSelect %p_fixed %c %this %that\n", "", "OpSelect %"},
        {"%x = OpAccessChain %p_fu %this %u_0\n%y = OpAccessChain %p_fu %that %u_0\n"
         "%q = OpSelect %p_fu %c %x %y\n",
         "", "OpSelect %"},
        {MERGE("%p_fixed", "%this", "%that"), "", "OpPhi %"},
        {"%q = OpCopyObject %p_fixed %this\n", "", NULL},
    };
    static const struct bhi_array_rules rules = {
        .storage = true, .storage_varies = true, .first_lane = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[1024];
        snprintf(body, sizeof body, "%s%sOpReturn", PICK BOTH, cases[i].body);
        struct stand_module plain =
            stand_compute_with("OpDecorate %p_block ArrayStride 4\nOpDecorate %fixed Block\n"
                               "OpMemberDecorate %fixed 0 Offset 0\n",
                               ROWS UNIFORMS, "", body, cases[i].functions, 3);
        struct stand_module words = stand_capable(&plain, SpvCapabilityVariablePointers);
        struct bhi_module module;
        struct bhi_error error = {.status = BH_OK};
        BHT_TRUE(bhi_module_init(&module, words.code, words.words, "main", NULL, 0, &error));
        const bool taken = bhi_array_indices_check(&module, &rules, &error);
        if (taken != (!cases[i].text) || (!taken && (error.status != BH_INVALID_KERNEL ||
                                                     strncmp(bhi_error_line(&error), cases[i].text,
                                                             strlen(cases[i].text)) != 0))) {
            BHT_FAIL("case %zu: %s", i, taken ? "taken" : bhi_error_line(&error));
        }
        bhi_module_fini(&module);
    }
}

/* An index that is computed, for a driver that takes one buffer for all that run side by side: it
 * is refused, and one that is a constant is not. */
TEST(an_element_for_all_neighbours) {
    static const struct {
        const char *body;
        bool taken;
    } cases[] = {{"%q = OpAccessChain %p_uint %rows %i %u_0 %u_0\nOpStore %q %u_1\n", false},
                 {"%q = OpAccessChain %p_uint %rows %u_1 %u_0 %u_0\nOpStore %q %u_1\n", true}};
    static const struct bhi_array_rules rules = {
        .storage = true, .storage_varies = true, .one_element = true, .first_lane = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[1024];
        snprintf(body, sizeof body, "%s%sOpReturn", PICK, cases[i].body);
        struct stand_module words = stand_compute_with("", ROWS, "", body, "", 3);
        struct bhi_module module;
        struct bhi_error error = {.status = BH_OK};
        BHT_TRUE(bhi_module_init(&module, words.code, words.words, "main", NULL, 0, &error));
        BHT_EQ(bhi_array_indices_check(&module, &rules, &error), cases[i].taken);
        if (!cases[i].taken) {
            BHT_EQ(error.status, BH_INVALID_KERNEL);
            BHT_STR_HAS(bhi_error_line(&error),
                        "the index into an array of storage buffers is computed");
        }
        bhi_module_fini(&module);
    }
}

/* What a device must have for an index that is computed, and for one that differs between invocations. */
TEST(what_an_index_needs) {
    static const struct {
        const char *array, *varies; /* which id is decorated; NULL: none */
        struct bhi_array_rules rules;
        const char *text; /* NULL: taken */
    } rows[] = {
        {"rows", NULL, {.storage = true}, NULL},
        {"rows", NULL, {.uniform = true}, "array of storage buffers is computed; the device"},
        {"rows",
         "q",
         {.storage = true, .uniform_varies = true},
         "of storage buffers is computed, and"},
        {"rows", "i", {.storage = true}, "StorageBufferArrayNonUniformIndexing"},
        {"rows", "q", {.storage = true, .storage_varies = true, .one_element = true}, NULL},
        {"fixeds", NULL, {.uniform = true, .one_element = true}, NULL},
        {"fixeds", NULL, {.storage = true}, "array of uniform buffers is computed; the device"},
        {"fixeds", "i", {.uniform = true, .storage_varies = true}, "UniformBufferArrayNonUniform"},
        {"fixeds", "q", {.uniform = true, .uniform_varies = true}, NULL},
        {"fixeds", NULL, {.uniform = true, .first_lane = true}, "of an inactive invocation"},
        {"olds", NULL, {.storage = true, .first_lane = true}, NULL}, /* as before SPIR-V 1.3 */
        {"olds", NULL, {.uniform = true}, "array of storage buffers is computed"},
        {"inside", NULL, {.first_lane = true}, NULL}, /* one buffer */
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char body[1024], decorations[1024];
        snprintf(decorations, sizeof decorations,
                 "OpDecorate %%fixed Block\nOpDecorate %%old BufferBlock\n%s%s%s",
                 rows[i].varies ? "OpDecorate %" : "", rows[i].varies ? rows[i].varies : "",
                 rows[i].varies ? " NonUniform\n" : "");
        snprintf(body, sizeof body, "%s%%q = OpAccessChain %%p_fu %%%s %%i %%u_0%s\nOpReturn", PICK,
                 rows[i].array, strcmp(rows[i].array, "rows") == 0 ? " %u_0" : "");
        struct stand_module words = stand_compute_with(
            decorations,
            ROWS UNIFORMS
            "%old = OpTypeStruct %uint\n%plain = OpTypeStruct %uint\n"
            "%many_fixed = OpTypeArray %fixed %n\n%many_old = OpTypeArray %old %n\n"
            "%many_plain = OpTypeArray %plain %n\n"
            "%p_many_fixed = OpTypePointer Uniform %many_fixed\n"
            "%p_many_old = OpTypePointer Uniform %many_old\n"
            "%p_many_plain = OpTypePointer Uniform %many_plain\n"
            "%fixeds = OpVariable %p_many_fixed Uniform\n%olds = OpVariable %p_many_old Uniform\n"
            "%inside = OpVariable %p_many_plain Uniform\n",
            "", body, "", 3);
        struct bhi_module module;
        struct bhi_error error = {.status = BH_OK};
        BHT_TRUE(bhi_module_init(&module, words.code, words.words, "main", NULL, 0, &error));
        const bool taken = bhi_array_indices_check(&module, &rows[i].rules, &error);
        if (taken != !rows[i].text || (!taken && !strstr(bhi_error_line(&error), rows[i].text))) {
            BHT_FAIL("row %zu: %s", i, taken ? "taken" : bhi_error_line(&error));
        }
        bhi_module_fini(&module);
    }
}

/* From one buffer to the next: no robustBufferAccess looks at that. */
TEST(a_pointer_that_is_moved_to_another_buffer) {
    struct stand_module plain = stand_compute_with(
        "OpDecorate %p_many ArrayStride 4\nOpDecorate %rows DescriptorSet 0\n"
        "OpDecorate %rows Binding 1\n",
        ROWS, "",
        PICK "%q = OpPtrAccessChain %p_uint %rows %u_0 %i %u_0 %u_0\nOpStore %q %u_1\nOpReturn", "",
        3);
    struct stand_module module = stand_capable(&plain, SpvCapabilityVariablePointers);
    stand_refuses(&module, BH_INVALID_KERNEL, "pointer arithmetic outside of a buffer");
}
