/* Memory that no buffer bounds: indices are clamped, workgroup memory begins as zero, and what
 * cannot be bounded is refused. */
#include "runner.h"
#include "worker/spirv/module.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has been loaded, guarded: each is compiled once. */
static struct loaded {
    const char *path;
    bool zero_initialize;
    const struct bhi_spec_constant *given;
    uint32_t noise;
    struct bhi_guarded guarded;
    struct runner_kernel kernel;
} loaded[16];
static size_t loaded_count;
static uint32_t noise; /* of what is loaded */

static void unload_all(void) {
    for (size_t i = 0; i < loaded_count; i++) {
        runner_unload(&loaded[i].kernel);
    }
}

static struct loaded *find(const char *path, bool zero_initialize,
                           const struct bhi_spec_constant *given) {
    for (size_t i = 0; i < loaded_count; i++) {
        if (strcmp(loaded[i].path, path) == 0 && loaded[i].given == given &&
            loaded[i].zero_initialize == zero_initialize && loaded[i].noise == noise) {
            return &loaded[i];
        }
    }
    BHT_LT(loaded_count, sizeof loaded / sizeof *loaded);
    bht_end_with(unload_all);
    struct loaded *new = &loaded[loaded_count++];
    *new = (struct loaded){
        .path = path, .zero_initialize = zero_initialize, .given = given, .noise = noise};
    struct stand_module module = stand_load(path);
    const struct bhi_guard_options options = {.entry = "main",
                                              .constants = given,
                                              .constant_count = !!given,
                                              .max_sets = 4,
                                              .zero_initialize = zero_initialize,
                                              .noise = noise};
    struct bhi_error error;
    if (!bhi_validate(&device.vk.target, module.code, module.words, "main", &error) ||
        !bhi_guard(module.code, module.words, &options, &new->guarded, &error) ||
        !bhi_validate(&device.vk.target, new->guarded.code, new->guarded.words, "main", &error)) {
        BHT_FAIL("%s: %s", path, bhi_error_line(&error));
    }
    bht_own(new->guarded.code);
    const struct runner_module as = {
        .plain = &module, .guarded = &new->guarded, .constants = given, .constant_count = !!given};
    runner_load(&as, &new->kernel);
    BHT_EQ(new->kernel.buffers, 1);
    return new;
}

/* Runs it guarded on one buffer of ones and returns that, until the next run. */
static const uint32_t *run(const char *path, bool zero_initialize,
                           const struct bhi_spec_constant *given, const uint32_t push[16],
                           const struct bhi_guarded **out) {
    static uint32_t data[RUNNER_WORDS];
    struct loaded *found = find(path, zero_initialize, given);
    struct runner_run r = {.groups = {1, 1, 1}, .push = push, .data = data};
    memset(data, 0x11, sizeof data);
    runner_dispatch(&found->kernel, &r);
    *out = &found->guarded;
    return data;
}

/* Without clamps this takes the process down with SIGSEGV. */
TEST(indices_far_out_of_range) {
    static const uint32_t fars[] = {1u << 20, 0x0fffff00u, 0x7fffffffu, 0x80000000u, 0xfffffff0u};
    static const struct bhi_spec_constant constants[] = {{0, 4, 8}, {0, 4, 3}};
    for (size_t i = 0; i < sizeof fars / sizeof *fars; i++) {
        for (int optimised = 0; optimised < 2; optimised++) {
            const uint32_t push[16] = {fars[i], (uint32_t)-5, 50, 51, 52, 53, 54, 55};
            const struct bhi_guarded *guarded;
            const uint32_t *y =
                run(optimised ? GUARD_HOSTILE "/far.O.spv" : GUARD_HOSTILE "/far.O0.spv", true,
                    &constants[i % 2], push, &guarded);
            static const uint32_t expected[16] = {1, 1, 2, 2, 3, 3, 4, 5, 8, 6, 6, 55};
            for (int k = 0; k < 12; k++) {
                if (y[k] != expected[k]) {
                    BHT_FAIL("far %08x, word %d: %u, not %u", fars[i], k, y[k], expected[k]);
                }
            }
            BHT_EQ(y[12], 103); /* in range: as it is */
            BHT_GE(guarded->clamps, 12);
        }
    }
}

TEST(the_hostile_one_that_ships) {
    const struct bhi_guarded *guarded;
    const uint32_t *y = run(GUARD_SHADERS "/crash_shared.spv", true, NULL, NULL, &guarded);
    BHT_EQ(guarded->clamps, 2);
    BHT_EQ(y[0], 0x11111111); /* what it stored to the last element */
}

TEST(workgroup_memory_begins_as_zero) {
    for (int zero_initialize = 0; zero_initialize < 2; zero_initialize++) {
        for (int turn = 0; turn < 4; turn++) { /* whichever of the driver's threads it is */
            const struct bhi_guarded *guarded;
            const uint32_t *y =
                run(GUARD_HOSTILE "/dirty.O.spv", zero_initialize, NULL, NULL, &guarded);
            BHT_EQ(y[0], 0xdeadbeef);
            y = run(turn % 2 ? GUARD_HOSTILE "/reads.O.spv" : GUARD_HOSTILE "/reads.O0.spv",
                    zero_initialize, NULL, NULL, &guarded);
            BHT_EQ(guarded->zeroed, 3);
            for (int l = 0; l < 32; l++) {
                if (y[l] != 1) {
                    BHT_FAIL("invocation %d read %08x", l, y[l] - 1);
                }
            }
        }
    }
}

/* For a kernel that counts on zeros. */
TEST(workgroup_memory_begins_with_the_noise_that_is_asked_for) {
    const struct bhi_guarded *first = NULL;
    for (noise = 1; noise <= 5; noise += 2) {
        for (int zero_initialize = 0; zero_initialize < 2; zero_initialize++) {
            const struct bhi_guarded *guarded;
            const uint32_t *y =
                run(zero_initialize ? GUARD_HOSTILE "/reads.O.spv" : GUARD_HOSTILE "/reads.O0.spv",
                    zero_initialize, NULL, NULL, &guarded);
            BHT_EQ(guarded->zeroed, 3);
            for (int l = 0; l < 32; l++) {
                if (y[l] == 1) {
                    BHT_FAIL("noise %u: invocation %d read %08x", noise, l, y[l] - 1);
                }
            }
            BHT_TRUE(!first || !zero_initialize || guarded->words != first->words ||
                     memcmp(guarded->code, first->code, first->words * sizeof *first->code) != 0);
            first = zero_initialize ? guarded : first;
        }
    }
}

/* Each time that a variable is new: not with each round of a loop. */
TEST(private_memory_begins_with_the_noise_that_is_asked_for) {
    enum { FILLED = 15, KEPT = 17 };
    for (int optimised = 0; optimised < 2; optimised++) {
        uint32_t before[FILLED] = {0};
        for (noise = 1; noise <= 2; noise++) {
            const struct bhi_guarded *guarded;
            const uint32_t *y =
                run(optimised ? GUARD_HOSTILE "/private.O.spv" : GUARD_HOSTILE "/private.O0.spv",
                    true, NULL, NULL, &guarded);
            for (uint32_t i = 0; i < KEPT; i++) {
                if (i < FILLED ? y[i] == 0 || y[i] == before[i] : y[i] != 0) {
                    BHT_FAIL("noise %u, optimised %d: number %u is %08x", noise, optimised, i,
                             y[i]);
                }
            }
            memcpy(before, y, sizeof before);
        }
    }
}

/* What is of |type|, and begins with nothing: variables, and values that are not defined. */
static struct stand_module unwritten(const char *type, SpvCapability capability, unsigned minor) {
    char globals[1024], body[512];
    snprintf(
        globals, sizeof globals,
        "%s\n%%p_private = OpTypePointer Private %%t\n%%p_function = OpTypePointer Function %%t\n"
        "%%private = OpVariable %%p_private Private\n%%never = OpUndef %%t\n",
        type);
    snprintf(body, sizeof body,
             "%%here = OpVariable %%p_function Function\n%%nor = OpUndef %%t\n"
             "%%a = OpLoad %%t %%private\n%%b = OpLoad %%t %%here\n"
             "%%c = OpCopyObject %%t %%never\n%%d = OpCopyObject %%t %%nor\nOpReturn");
    struct stand_module module =
        stand_compute_with("", globals, minor >= 4 ? "%private" : "", body, "", minor);
    return capability == SpvCapabilityShader ? module : stand_capable(&module, capability);
}

TEST(noise_is_of_every_type) {
    static const struct {
        const char *type;
        SpvCapability capability;
        unsigned stores, left; /* without what the guard itself stores; values still undefined */
    } cases[] = {
        {"%t = OpTypeVector %bool 3", SpvCapabilityShader, 2, 0},
        {"%t = OpTypeInt 8 0", SpvCapabilityInt8, 2, 0},
        {"%t = OpTypeInt 16 1", SpvCapabilityInt16, 2, 0},
        {"%t = OpTypeInt 64 0", SpvCapabilityInt64, 2, 0},
        {"%t = OpTypeFloat 16", SpvCapabilityFloat16, 2, 0},
        {"%t = OpTypeFloat 64", SpvCapabilityFloat64, 2, 0},
        {"%v = OpTypeVector %float 4\n%t = OpTypeMatrix %v 3", SpvCapabilityShader, 2, 0},
        {"%v = OpTypeVector %int 2\n%t = OpTypeStruct %bool %v %float", SpvCapabilityShader, 2, 0},
        {"%t = OpTypeArray %uint %u_8", SpvCapabilityShader, 16, 2},
        {"%part = OpTypeArray %bool %u_2\n%t = OpTypeStruct %part %int %part", SpvCapabilityShader,
         10, 2},
        {"%none = OpTypeStruct\n%t = OpTypeStruct %none %uint", SpvCapabilityShader, 0, 2},
        {"%part = OpTypeArray %uint %u_100\n%t = OpTypeArray %part %u_100", SpvCapabilityShader, 32,
         2},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        for (unsigned minor = 0; minor <= 6; minor += 6) {
            const struct stand_module module = unwritten(cases[i].type, cases[i].capability, minor);
            struct bhi_guard_options options = {.entry = "main", .max_sets = 4};
            struct bhi_guarded guarded = stand_guard_with(&module, &options);
            const unsigned own = stand_count(guarded.code, guarded.words, SpvOpStore);
            BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpUndef), 2);
            options.noise = 1;
            guarded = stand_guard_with(&module, &options);
            BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpStore) - own, cases[i].stores);
            BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpUndef), cases[i].left);
        }
    }
}

/* A variable that is true wherever it is read first would pass for one that was set. */
TEST(noise_of_booleans_is_true_or_false) {
    const struct stand_module module =
        unwritten("%t = OpTypeVector %bool 4", SpvCapabilityShader, 3);
    unsigned yes = 0, no = 0;
    for (uint32_t k = 1; k <= 8; k++) {
        const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = k};
        const struct bhi_guarded guarded = stand_guard_with(&module, &options);
        yes += stand_count(guarded.code, guarded.words, SpvOpConstantTrue) - 1;
        no += stand_count(guarded.code, guarded.words, SpvOpConstantFalse) - 1;
    }
    BHT_EQ(yes + no, 8 * 4 * 4);
    BHT_WITHIN(yes, 32, 96);
}

/* So whatever a boolean is read for, one of two runs goes the other way. */
TEST(opposite_noise_has_every_bit_the_other_way) {
    const struct stand_module module =
        unwritten("%t = OpTypeVector %bool 4", SpvCapabilityShader, 3);
    for (uint32_t k = 2; k < 20; k += 2) {
        unsigned yes[2];
        for (uint32_t i = 0; i < 2; i++) {
            const struct bhi_guard_options options = {
                .entry = "main", .max_sets = 4, .noise = k + i};
            const struct bhi_guarded guarded = stand_guard_with(&module, &options);
            yes[i] = stand_count(guarded.code, guarded.words, SpvOpConstantTrue) - 1;
        }
        BHT_EQ(yes[0] + yes[1], 4 * 4);
    }
}

/* Or a kernel with many arrays would take minutes to compile. */
TEST(noise_in_arrays_is_bounded) {
    char globals[16384] = "%t = OpTypeArray %uint %u_100\n%p = OpTypePointer Private %t\n"
                          "%q = OpTypePointer Private %uint\n",
         body[16384] = "";
    enum { VARIABLES = 100 };
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(globals + strlen(globals), sizeof globals - strlen(globals),
                 "%%x%d = OpVariable %%p Private\n", i);
        snprintf(body + strlen(body), sizeof body - strlen(body),
                 "%%i%d = OpAccessChain %%q %%x%d %%u_1\n%%y%d = OpLoad %%uint %%i%d\n", i, i, i,
                 i);
    }
    strcat(body, "OpReturn");
    const struct stand_module module = stand_compute(globals, body, "", 3);
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = 1};
    const struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_WITHIN(stand_count(guarded.code, guarded.words, SpvOpStore), 256, 256 + VARIABLES);
}

/* A short module can ask for billions of numbers. */
TEST(noise_of_all_values_is_bounded) {
    char globals[1024] = "%s = OpTypeStruct", body[4096] = "";
    enum { MEMBERS = 64, VALUES = 60, MOST = 1 << 17 };
    for (int level = 0; level < 2; level++) {
        for (int i = 0; i < MEMBERS; i++) {
            strcat(globals, level ? " %s" : " %uint");
        }
        strcat(globals, level ? "\n" : "\n%t = OpTypeStruct");
    }
    for (int i = 0; i < VALUES; i++) {
        snprintf(body + strlen(body), sizeof body - strlen(body), "%%x%d = OpUndef %%t\n", i);
    }
    strcat(body, "OpReturn");
    const struct stand_module module = stand_compute(globals, body, "", 3);
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = 1};
    const struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_WITHIN(stand_count(guarded.code, guarded.words, SpvOpConstant), MOST / 2, MOST);
    BHT_WITHIN(stand_count(guarded.code, guarded.words, SpvOpUndef), 1, VALUES / 2);
}

/* What begins with a value keeps it. */
TEST(initialised_private_memory_is_left_alone) {
    const struct stand_module module = stand_compute(
        "%p = OpTypePointer Private %uint\n%q = OpTypePointer Function %uint\n"
        "%x = OpVariable %p Private %u_8\n",
        "%y = OpVariable %q Function %u_8\n%a = OpLoad %uint %x\n%b = OpLoad %uint %y\nOpReturn",
        "", 3);
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = 1};
    const struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpStore), 0);
}

/* Narrow numbers are noise, too. */
TEST(noise_of_narrow_numbers_is_never_zero) {
    const struct stand_module module =
        stand_compute("%narrow = OpTypeInt 16 0\n%p_narrow = OpTypePointer Workgroup %narrow\n"
                      "%shared = OpVariable %p_narrow Workgroup\n",
                      "%x = OpLoad %narrow %shared\nOpReturn", "", 3);
    const struct stand_module narrow = stand_capable(&module, SpvCapabilityInt16);
    for (uint32_t k = 1; k < 600; k++) {
        const struct bhi_guard_options options = {.entry = "main", .max_sets = 4, .noise = k};
        const struct bhi_guarded guarded = stand_guard_with(&narrow, &options);
        uint32_t type = 0, constants = 0;
        for (size_t i = 5; i < guarded.words; i += guarded.code[i] >> 16) {
            const uint32_t *at = &guarded.code[i];
            const SpvOp op = *at & SpvOpCodeMask;
            type = op == SpvOpTypeInt && at[2] == 16 ? at[1] : type;
            if (op == SpvOpConstant && at[1] == type) {
                BHT_NE(at[3], 0);
                constants++;
            }
        }
        BHT_EQ(constants, 1);
    }
}

/* How often loops have gone round is counted there, too. */
TEST(what_the_guard_counts_begins_at_zero) {
    struct stand_module module = stand_load(GUARD_HOSTILE "/reads.O0.spv");
    const struct bhi_guard_options options = {.entry = "main",
                                              .max_sets = 4,
                                              .zero_initialize = true,
                                              .noise = 1,
                                              .count_iterations = true};
    const struct bhi_guarded guarded = stand_guard_with(&module, &options);
    unsigned initialised = 0, all = 0;
    for (size_t i = 5; i < guarded.words; i += guarded.code[i] >> 16) {
        const uint32_t *at = &guarded.code[i];
        if ((*at & SpvOpCodeMask) == SpvOpVariable && at[3] == SpvStorageClassWorkgroup) {
            initialised += *at >> 16 == 5;
            all++;
        }
    }
    BHT_EQ(all, 4);
    BHT_EQ(initialised, 1);
}

/* -- which workgroup memory that is: 360 MB that nothing uses cost 4 GiB once they were zeroed - */

#define POINTER "%p_wu = OpTypePointer Workgroup %uint\n"
#define SHARED(name, length)                                                                       \
    "%n_" name " = OpConstant %uint " length "\n%a_" name " = OpTypeArray %uint %n_" name "\n"     \
    "%p_" name " = OpTypePointer Workgroup %a_" name "\n"                                          \
    "%" name " = OpVariable %p_" name " Workgroup\n"
#define FUNCTION(name, body)                                                                       \
    "%" name " = OpFunction %void None %nothing\n%l_" name " = OpLabel\n" body                     \
    "OpReturn\nOpFunctionEnd\n"
#define STORE(name) "%in_" name " = OpAccessChain %p_wu %" name " %u_1\nOpStore %in_" name " %u_1\n"

/* The entry point's own list may name what it does not use, and a function that is not called may
 * use it. */
TEST(memory_that_is_not_used_stays_unused) {
    struct stand_module module = stand_compute_with(
        "", POINTER "%small = OpVariable %p_wu Workgroup\n" SHARED("huge", "94371840"),
        "%small %huge",
        "%s = OpLoad %uint %small\n%po = OpAccessChain %p_uint %out %u_0 %u_0\n"
        "OpStore %po %s\nOpReturn",
        FUNCTION("stray", STORE("huge")), 4);
    for (int zero_initialize = 0; zero_initialize < 2; zero_initialize++) {
        const struct bhi_guard_options options = {
            .entry = "main", .max_sets = 4, .zero_initialize = zero_initialize};
        struct bhi_guarded guarded = stand_guard_with(&module, &options);
        const struct runner_module as = {.plain = &module, .guarded = &guarded};
        BHT_EQ(guarded.zeroed, 1);
        BHT_EQ(runner_reflect(&as)->shared_bytes, 4);
        struct runner_kernel kernel;
        static uint32_t data[RUNNER_WORDS];
        memset(data, 0x11, sizeof data);
        runner_load(&as, &kernel);
        struct runner_run r = {.groups = {1, 1, 1}, .data = data};
        runner_dispatch(&kernel, &r);
        BHT_EQ(data[0], 0);
        runner_unload(&kernel);
    }
}

static unsigned shared_bytes(const struct stand_module *module) {
    return (unsigned)runner_reflect(&(struct runner_module){.plain = module})->shared_bytes;
}

/* Whatever names it, it begins with zeros and counts; so does what the module itself initialises.
 */
TEST(memory_that_is_named_is_used) {
    static const struct {
        const char *globals, *body, *functions;
        unsigned zeroed, bytes;
    } cases[] = {
        {"", "", "", 0, 0},
        {"", STORE("many"), "", 1, 64},
        {"", "%r = OpFunctionCall %void %f\n", FUNCTION("f", STORE("many")), 1, 64},
        {"", "%r = OpFunctionCall %void %f\n",
         FUNCTION("f", "%q = OpFunctionCall %void %g\n") FUNCTION("g", STORE("many")), 1, 64},
        {"%takes = OpTypeFunction %void %p_many\n", "%r = OpFunctionCall %void %f %many\n",
         "%f = OpFunction %void None %takes\n%x = OpFunctionParameter %p_many\n%lf = OpLabel\n"
         "OpReturn\nOpFunctionEnd\n",
         1, 64},
        {"", "%p = OpAccessChain %p_wu %many %u_1\n%r = OpAtomicIAdd %uint %p %u_1 %u_0 %u_1\n", "",
         1, 64},
        {"%copy = OpVariable %p_many Workgroup\n", "OpCopyMemory %copy %many\n", "", 2, 128},
        {"%one = OpVariable %p_wu Workgroup\n%gives = OpTypeFunction %p_wu\n",
         "%p = OpFunctionCall %p_wu %f\n%x = OpLoad %uint %p\n",
         "%f = OpFunction %p_wu None %gives\n%lf = OpLabel\nOpReturnValue %one\nOpFunctionEnd\n", 1,
         4},
        {"%null = OpConstantNull %a_many\n%zeros = OpVariable %p_many Workgroup %null\n", "", "", 0,
         64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char globals[1024], body[256];
        snprintf(globals, sizeof globals, "%s%s", POINTER SHARED("many", "16"), cases[i].globals);
        snprintf(body, sizeof body, "%sOpReturn", cases[i].body);
        struct stand_module plain = stand_compute(globals, body, cases[i].functions, 3);
        struct stand_module module = stand_capable(&plain, SpvCapabilityVariablePointers);
        struct bhi_guarded guarded = stand_guard(&module);
        const unsigned bytes = shared_bytes(&module);
        if (guarded.zeroed != cases[i].zeroed || bytes != cases[i].bytes) {
            BHT_FAIL("case %zu: %u zeroed, %u bytes", i, guarded.zeroed, bytes);
        }
    }
}

/* Blocks share their memory: the largest counts, to the end of its last byte. Others add up. */
TEST(blocks_share_their_memory) {
    static const struct {
        const char *decorations, *types, *used;
        unsigned bytes;
    } cases[] = {
        /* 64 floats as words, and 40 of them as pairs */
        {"OpDecorate %a_x ArrayStride 4\nOpMemberDecorate %x 0 Offset 0\n"
         "OpDecorate %a_y ArrayStride 8\nOpMemberDecorate %y 0 Offset 0\n",
         "%n_x = OpConstant %uint 64\n%a_x = OpTypeArray %uint %n_x\n%x = OpTypeStruct %a_x\n"
         "%v_y = OpTypeVector %uint 2\n%n_y = OpConstant %uint 20\n%a_y = OpTypeArray %v_y %n_y\n"
         "%y = OpTypeStruct %a_y\n",
         "%xs %ys", 256},
        /* what lies between the members counts, what comes behind the last one does not */
        {"OpMemberDecorate %x 0 Offset 0\nOpMemberDecorate %x 1 Offset 1000\n"
         "OpDecorate %a_y ArrayStride 32\nOpMemberDecorate %y 0 Offset 16\n",
         "%x = OpTypeStruct %uint %uint\n"
         "%n_y = OpConstant %uint 32\n%a_y = OpTypeArray %uint %n_y\n%y = OpTypeStruct %a_y\n",
         "%xs %ys", 16 + 31 * 32 + 4},
        /* a matrix by columns, and by rows */
        {"OpMemberDecorate %x 0 Offset 0\nOpMemberDecorate %x 0 ColMajor\n"
         "OpMemberDecorate %x 0 MatrixStride 64\n"
         "OpMemberDecorate %y 0 Offset 0\nOpMemberDecorate %y 0 RowMajor\n"
         "OpMemberDecorate %y 0 MatrixStride 64\n",
         "%f = OpTypeFloat 32\n%f2 = OpTypeVector %f 2\n%f2x4 = OpTypeMatrix %f2 4\n"
         "%x = OpTypeStruct %f2x4\n%y = OpTypeStruct %f2x4\n",
         "%xs", 3 * 64 + 8},
        {"OpMemberDecorate %x 0 Offset 0\n"
         "OpDecorate %a_y ArrayStride 256\nOpMemberDecorate %y 0 Offset 0\n"
         "OpMemberDecorate %y 0 RowMajor\nOpMemberDecorate %y 0 MatrixStride 64\n",
         "%x = OpTypeStruct %uint\n"
         "%f = OpTypeFloat 32\n%f2 = OpTypeVector %f 2\n%f2x4 = OpTypeMatrix %f2 4\n"
         "%n_y = OpConstant %uint 3\n%a_y = OpTypeArray %f2x4 %n_y\n%y = OpTypeStruct %a_y\n",
         "%xs %ys", 2 * 256 + 64 + 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char decorations[1024], globals[1024], body[256];
        snprintf(decorations, sizeof decorations,
                 "OpDecorate %%x Block\nOpDecorate %%y Block\nOpDecorate %%xs Aliased\n"
                 "OpDecorate %%ys Aliased\n%s",
                 cases[i].decorations);
        snprintf(globals, sizeof globals,
                 "%s%%p_x = OpTypePointer Workgroup %%x\n%%p_y = OpTypePointer Workgroup %%y\n"
                 "%%xs = OpVariable %%p_x Workgroup\n%%ys = OpVariable %%p_y Workgroup\n",
                 cases[i].types);
        snprintf(body, sizeof body, "%%load_x = OpLoad %%x %%xs\n%sOpReturn",
                 strstr(cases[i].used, "%ys") ? "%load_y = OpLoad %y %ys\n" : "");
        struct stand_module module =
            stand_compute_with(decorations, globals, cases[i].used, body, "", 4);
        if (shared_bytes(&module) != cases[i].bytes) {
            BHT_FAIL("case %zu: %u bytes", i, shared_bytes(&module));
        }
    }
}

/* -- what is refused, and what is left alone ------------------------------------------------ */

#define ARRAY                                                                                      \
    "%n = OpConstant %uint 16\n"                                                                   \
    "%arr = OpTypeArray %uint %n\n"                                                                \
    "%p_arr = OpTypePointer Workgroup %arr\n"                                                      \
    "%p_wu = OpTypePointer Workgroup %uint\n"                                                      \
    "%shared = OpVariable %p_arr Workgroup\n"

TEST(constants_in_range_are_left_alone) {
    static const struct {
        const char *index;
        unsigned clamps;
    } cases[] = {{"%u_0", 0}, {"%u_10", 0}, {"%i_10", 0}, {"%n", 1}, {"%i_m1", 1}, {"%u_5000", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "%%p = OpAccessChain %%p_wu %%shared %s\nOpStore %%p %%u_1\nOpReturn",
                 cases[i].index);
        struct stand_module module = stand_compute(ARRAY, body, "", 3);
        if (!stand_is_valid_here(&module, "may not have a negative value")) { /* newer validators */
            BHT_STR_EQ(cases[i].index, "%i_m1");
            continue;
        }
        struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.clamps != cases[i].clamps) {
            BHT_FAIL("%s: %u clamps", cases[i].index, guarded.clamps);
        }
    }
}

/* An index counts as signed, whatever its width. */
TEST(widths) {
    static const unsigned bits[] = {8, 16, 64};
    for (size_t i = 0; i < 3; i++) {
        char globals[1024];
        snprintf(globals, sizeof globals, "%s%%type = OpTypeInt %u 0\n", ARRAY, bits[i]);
        struct stand_module module = stand_compute(globals,
                                                   "%p = OpAccessChain %p_uint %out %u_0 %u_0\n"
                                                   "%i = OpLoad %uint %p\n"
                                                   "%j = OpUConvert %type %i\n"
                                                   "%q = OpAccessChain %p_wu %shared %j\n"
                                                   "OpStore %q %u_1\nOpReturn",
                                                   "", 3);
        const uint32_t capability = bits[i] == 8    ? SpvCapabilityInt8
                                    : bits[i] == 16 ? SpvCapabilityInt16
                                                    : SpvCapabilityInt64;
        struct stand_module wide = stand_capable(&module, (SpvCapability)capability);
        struct bhi_guarded guarded = stand_guard(&wide);
        BHT_EQ(guarded.clamps, 1);
        BHT_EQ(stand_count(guarded.code, guarded.words, SpvOpSConvert), bits[i] < 32);
    }
}

/* The driver reads it as signed, so that of an unsigned type the upper half is out of range. */
TEST(constants_of_narrow_types) {
    static const struct {
        unsigned bits, index, clamps;
        SpvCapability capability;
    } cases[] = {{8, 127, 0, SpvCapabilityInt8},
                 {8, 128, 1, SpvCapabilityInt8},
                 {16, 32767, 0, SpvCapabilityInt16},
                 {16, 32768, 1, SpvCapabilityInt16}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char globals[512];
        snprintf(globals, sizeof globals,
                 "%%n = OpConstant %%uint 40000\n%%arr = OpTypeArray %%float %%n\n"
                 "%%p_arr = OpTypePointer Private %%arr\n%%p_f = OpTypePointer Private %%float\n"
                 "%%many = OpVariable %%p_arr Private\n%%narrow = OpTypeInt %u 0\n"
                 "%%at = OpConstant %%narrow %u\n",
                 cases[i].bits, cases[i].index);
        const struct stand_module module = stand_compute(
            globals, "%p = OpAccessChain %p_f %many %at\n%x = OpLoad %float %p\nOpReturn", "", 3);
        const struct stand_module wide = stand_capable(&module, cases[i].capability);
        const struct bhi_guarded guarded = stand_guard(&wide);
        if (guarded.clamps != cases[i].clamps) {
            BHT_FAIL("%u of %u bits: %u clamps", cases[i].index, cases[i].bits, guarded.clamps);
        }
    }
}

TEST(buffers_are_the_drivers) {
    struct stand_module module = stand_compute("",
                                               "%p = OpAccessChain %p_uint %out %u_0 %u_5000\n"
                                               "%i = OpLoad %uint %p\n"
                                               "%q = OpAccessChain %p_uint %out %u_0 %i\n"
                                               "OpStore %q %u_1\nOpReturn",
                                               "", 3);
    struct bhi_guarded guarded = stand_guard(&module);
    BHT_EQ(guarded.clamps, 0);
}

/* The first index into an array of descriptors is nobody's but ours. */
TEST(descriptor_arrays) {
    struct stand_module module = stand_compute("%n = OpConstant %uint 4\n"
                                               "%many = OpTypeArray %block %n\n"
                                               "%p_many = OpTypePointer StorageBuffer %many\n"
                                               "%buffers = OpVariable %p_many StorageBuffer\n",
                                               "%p = OpAccessChain %p_uint %out %u_0 %u_0\n"
                                               "%i = OpLoad %uint %p\n"
                                               "%q = OpAccessChain %p_uint %buffers %i %u_0 %i\n"
                                               "OpStore %q %u_1\nOpReturn",
                                               "", 3);
    struct bhi_guarded guarded;
    struct bhi_error error;
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 8};
    BHT_TRUE(bhi_guard(module.code, module.words, &options, &guarded, &error));
    bht_own(guarded.code);
    BHT_EQ(guarded.clamps, 1);
}

/* What stands for an index that differs between invocations says so, too; the pointer still does.
 */
TEST(non_uniform_indices) {
    struct stand_module module =
        stand_compute_with("OpDecorate %i NonUniform\nOpDecorate %q NonUniform\n",
                           "%n = OpConstant %uint 4\n%many = OpTypeArray %block %n\n"
                           "%p_many = OpTypePointer StorageBuffer %many\n"
                           "%buffers = OpVariable %p_many StorageBuffer\n",
                           "",
                           "%p = OpAccessChain %p_uint %out %u_0 %u_0\n%i = OpLoad %uint %p\n"
                           "%q = OpAccessChain %p_uint %buffers %i %u_0 %u_0\nOpStore %q %u_1\n"
                           "%r = OpAccessChain %p_uint %buffers %u_5000 %u_0 %u_0\n"
                           "OpStore %r %u_1\nOpReturn",
                           "", 3);
    struct stand_module varying = stand_capable(&module, SpvCapabilityShaderNonUniform);
    struct bhi_guarded guarded;
    struct bhi_error error;
    const struct bhi_guard_options options = {.entry = "main", .max_sets = 8};
    BHT_TRUE(bhi_guard(varying.code, varying.words, &options, &guarded, &error));
    bht_own(guarded.code);
    BHT_EQ(guarded.clamps, 2);
    uint32_t decorated[8], count = 0, selected[2] = {0}, selects = 0, pointers = 0;
    for (size_t i = 5; i < guarded.words; i += guarded.code[i] >> SpvWordCountShift) {
        const uint32_t *at = &guarded.code[i];
        const SpvOp op = (SpvOp)(at[0] & SpvOpCodeMask);
        if (op == SpvOpDecorate && at[2] == SpvDecorationNonUniform) {
            BHT_LT(count, 8);
            decorated[count++] = at[1];
        } else if (op == SpvOpSelect) {
            BHT_LT(selects, 2);
            selected[selects++] = at[2];
        } else if (op == SpvOpAccessChain && selects > 0 && at[4] == selected[0]) {
            for (uint32_t k = 0; k < count; k++) {
                pointers += decorated[k] == at[2];
            }
        }
    }
    BHT_EQ(selects, 2);
    BHT_EQ(count, 3); /* the load, the pointer, and the first of the two selections */
    BHT_EQ(decorated[2], selected[0]);
    BHT_EQ(pointers, 1);
}

TEST(vectors) {
    struct stand_module module =
        stand_compute("%v4 = OpTypeVector %uint 4\n%nullv = OpConstantNull %v4\n",
                      "%p = OpAccessChain %p_uint %out %u_0 %u_0\n%i = OpLoad %uint %p\n"
                      "%a = OpVectorInsertDynamic %v4 %nullv %u_1 %i\n"
                      "%b = OpVectorExtractDynamic %uint %a %i\n"
                      "%c = OpVectorExtractDynamic %uint %a %u_2\nOpStore %p %b\nOpReturn",
                      "", 3);
    struct bhi_guarded guarded = stand_guard(&module);
    BHT_EQ(guarded.clamps, 2);
}

static void refused(const char *globals, const char *body, const char *text) {
    char source[8192];
    snprintf(source, sizeof source,
             "OpCapability Shader\nOpCapability VariablePointers\nOpMemoryModel Logical GLSL450\n"
             "OpEntryPoint GLCompute %%main \"main\"\nOpExecutionMode %%main LocalSize 1 1 1\n"
             "OpDecorate %%p_wu ArrayStride 4\n"
             "%%void = OpTypeVoid\n%%nothing = OpTypeFunction %%void\n%%uint = OpTypeInt 32 0\n"
             "%%u_0 = OpConstant %%uint 0\n%%u_1 = OpConstant %%uint 1\n%s"
             "%%main = OpFunction %%void None %%nothing\n%%start = OpLabel\n%s\nOpReturn\n"
             "OpFunctionEnd\n",
             globals, body);
    struct stand_module module = stand_assemble(source, 3);
    stand_refuses(&module, BH_INVALID_KERNEL, text);
}

TEST(pointers_that_cannot_be_bounded) {
    refused(ARRAY,
            "%p = OpAccessChain %p_wu %shared %u_0\n"
            "%q = OpPtrAccessChain %p_wu %p %u_1\nOpStore %q %u_1",
            "OpPtrAccessChain %");
    refused(ARRAY "%null = OpConstantNull %p_wu\n", "OpStore %null %u_1",
            "a pointer that may be null or undefined cannot be bounded: index the variable itself");
    refused(ARRAY, "%u = OpUndef %p_wu", "OpUndef %");
    refused(ARRAY "%p_p = OpTypePointer Private %p_wu\n%kept = OpVariable %p_p Private\n",
            "%p = OpLoad %p_wu %kept\nOpStore %p %u_1", "OpVariable %");
    refused(ARRAY "%two = OpConstant %uint 2\n%pair = OpTypeArray %p_wu %two\n"
                  "%p_pair = OpTypePointer Private %pair\n%p_p = OpTypePointer Private %p_wu\n"
                  "%kept = OpVariable %p_pair Private\n",
            "%one = OpAccessChain %p_p %kept %u_1\n%p = OpLoad %p_wu %one\nOpStore %p %u_1",
            "OpVariable %");
}

/* The validator takes a LocalInvocationIndex of any type; the loop that zeroes needs an integer. */
TEST(a_local_index_that_is_none) {
    struct stand_module module = stand_assemble(
        "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
        "OpEntryPoint GLCompute %main \"main\" %index\nOpExecutionMode %main LocalSize 1 1 1\n"
        "OpDecorate %index BuiltIn LocalInvocationIndex\n"
        "%void = OpTypeVoid\n%nothing = OpTypeFunction %void\n%uint = OpTypeInt 32 0\n"
        "%v3 = OpTypeVector %uint 3\n%p_v3 = OpTypePointer Input %v3\n"
        "%p_uint = OpTypePointer Workgroup %uint\n"
        "%index = OpVariable %p_v3 Input\n%shared = OpVariable %p_uint Workgroup\n"
        "%main = OpFunction %void None %nothing\n%start = OpLabel\n%used = OpLoad %uint %shared\n"
        "OpReturn\nOpFunctionEnd\n",
        3);
    if (stand_is_valid_here(&module, "needs to be a 32-bit int scalar")) { /* older validators */
        stand_refuses(&module, BH_INVALID_KERNEL, "(LocalInvocationIndex) is not a 32-bit integer");
    }
}
