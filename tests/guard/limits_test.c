/* Each limit of docs/kernels.md: a module that is at it passes, one that is over it is refused with
 * the limit's name, the value, the instruction and what to do. The modules are those of the table
 * "what hostile kernels do", by size. */
#include "stand.h"

#include "worker/spirv/limits.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A module that grows word by word. */
struct words {
    uint32_t *at;
    size_t count, room;
    uint32_t bound;
};

static void put(struct words *w, uint32_t word) {
    if (w->count == w->room) {
        w->room = w->room * 2 + 1024;
        w->at = realloc(w->at, w->room * sizeof *w->at);
        BHT_NE(w->at, NULL);
    }
    w->at[w->count++] = word;
}

#define INS(w, op, ...)                                                                            \
    put_ins(w, op, (const uint32_t[]){__VA_ARGS__},                                                \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
static void put_ins(struct words *w, SpvOp op, const uint32_t *operands, size_t count) {
    put(w, (uint32_t)(count + 1) << SpvWordCountShift | op);
    for (size_t i = 0; i < count; i++) {
        put(w, operands[i]);
    }
}

enum { VOID = 1, NOTHING, UINT, BOOL, ONE, YES, MAIN, FIRST };

/* Up to the types; ids from FIRST on are free. */
static struct words begin(void) {
    struct words w = {.bound = FIRST};
    for (int i = 0; i < 5; i++) {
        put(&w, 0);
    }
    w.at[0] = SpvMagicNumber;
    w.at[1] = 0x00010300;
    INS(&w, SpvOpCapability, SpvCapabilityShader);
    INS(&w, SpvOpMemoryModel, SpvAddressingModelLogical, SpvMemoryModelGLSL450);
    INS(&w, SpvOpEntryPoint, SpvExecutionModelGLCompute, MAIN, 0x6e69616d, 0);
    INS(&w, SpvOpExecutionMode, MAIN, SpvExecutionModeLocalSize, 1, 1, 1);
    put(&w, 2u << SpvWordCountShift | SpvOpTypeVoid);
    put(&w, VOID);
    INS(&w, SpvOpTypeFunction, NOTHING, VOID);
    INS(&w, SpvOpTypeInt, UINT, 32, 0);
    put(&w, 2u << SpvWordCountShift | SpvOpTypeBool);
    put(&w, BOOL);
    INS(&w, SpvOpConstant, UINT, ONE, 1);
    INS(&w, SpvOpConstantTrue, BOOL, YES);
    return w;
}

static void open_function(struct words *w, uint32_t id) {
    INS(w, SpvOpFunction, VOID, id, 0, NOTHING);
    INS(w, SpvOpLabel, w->bound++);
}

static void close_function(struct words *w) {
    put(w, 1u << SpvWordCountShift | SpvOpReturn);
    put(w, 1u << SpvWordCountShift | SpvOpFunctionEnd);
}

static void empty_main(struct words *w) {
    open_function(w, MAIN);
    close_function(w);
}

/* Frees the words. |text| NULL: they must pass, and be valid. */
static void check(struct words w, const char *text) {
    struct bhi_error error = {.status = BH_OK};
    w.at[3] = w.bound;
    if (!text) {
        if (!bhi_guard_limits(w.at, w.count, &error) ||
            !bhi_validate(&stand_device, w.at, w.count, "main", &error) ||
            !bhi_guard_limits_sizes(w.at, w.count, "main", NULL, 0, &error)) {
            BHT_FAIL("refused: %s", bhi_error_line(&error));
        }
    } else {
        if (bhi_guard_limits(w.at, w.count, &error) &&
            bhi_guard_limits_sizes(w.at, w.count, "main", NULL, 0, &error)) {
            BHT_FAIL("not refused; expected \"%s\"", text);
        }
        if (error.status != BH_LIMIT_EXCEEDED || !strstr(bhi_error_line(&error), text)) {
            BHT_FAIL("expected \"%s\"; got %d \"%s\"", text, (int)error.status,
                     bhi_error_line(&error));
        }
    }
    free(w.at);
}

/* -- words ---------------------------------------------------------------------------------- */

TEST(size_of_the_module) {
    struct words w = begin();
    empty_main(&w);
    while (w.count * 4 < BHI_LIMIT_MODULE_BYTES) {
        put(&w, 1u << SpvWordCountShift | SpvOpNop);
    }
    put(&w, 1u << SpvWordCountShift | SpvOpNop);
    check(w, "bytes of the module: 4194308, the guard allows 4194304: split the kernel");
}

TEST(bound_of_ids) {
    struct words w = begin();
    empty_main(&w);
    w.bound = BHI_LIMIT_ID_BOUND;
    check(w, NULL);
    w = begin();
    empty_main(&w);
    w.bound = BHI_LIMIT_ID_BOUND + 1;
    check(w, "bound of ids (the module's header): 1048577, the guard allows 1048576");
}

static struct words many_types(uint32_t count) {
    struct words w = begin();
    for (uint32_t i = 4; i < count; i++) { /* begin() has four */
        INS(&w, SpvOpTypeStruct, w.bound++, UINT);
    }
    empty_main(&w);
    return w;
}

TEST(number_of_types) {
    check(many_types(BHI_LIMIT_TYPES), NULL);
    check(many_types(BHI_LIMIT_TYPES + 1),
          "types: 16385, the guard allows 16384 (instruction 16391, OpTypeStruct): "
          "declare fewer");
}

static struct words nested_structs(uint32_t count) {
    struct words w = begin();
    uint32_t inner = UINT;
    for (uint32_t i = 1; i < count; i++) { /* the uint is one */
        INS(&w, SpvOpTypeStruct, w.bound, inner);
        inner = w.bound++;
    }
    empty_main(&w);
    return w;
}

TEST(nesting_of_types) {
    check(nested_structs(BHI_LIMIT_TYPE_NESTING), NULL);
    check(nested_structs(BHI_LIMIT_TYPE_NESTING + 1),
          "types nested in each other: 65, the guard allows 64");
    check(nested_structs(400000), "bytes of the module");
    check(nested_structs(300000), "types nested in each other: 65");
    /* The same through pointers and arrays. */
    struct words w = begin();
    uint32_t inner = UINT;
    for (uint32_t i = 0; i < 40; i++) {
        INS(&w, SpvOpTypeArray, w.bound, inner, ONE);
        INS(&w, SpvOpTypePointer, w.bound + 1, SpvStorageClassPrivate, w.bound);
        inner = w.bound + 1;
        w.bound += 2;
    }
    check(w, "types nested in each other: 65, the guard allows 64");
}

/* Each is |members| of the one before; the first has none. */
static struct words struct_of_structs(uint32_t count, uint32_t members) {
    struct words w = begin();
    put(&w, 2u << SpvWordCountShift | SpvOpTypeStruct);
    put(&w, w.bound++);
    for (uint32_t i = 1; i < count; i++) {
        put(&w, (2u + members) << SpvWordCountShift | SpvOpTypeStruct);
        put(&w, w.bound++);
        for (uint32_t k = 0; k < members; k++) {
            put(&w, w.bound - 2);
        }
    }
    empty_main(&w);
    return w;
}

/* What walks over a type would never end, although it has no scalar. */
TEST(parts_of_a_type) {
    check(struct_of_structs(15, 2), NULL);
    check(struct_of_structs(16, 2), "parts of a type: 65535, the guard allows 32768 (instruction ");
    check(struct_of_structs(60, 64), "parts of a type: 266305, the guard allows 32768");
}

/* -- control flow --------------------------------------------------------------------------- */

static struct words nested_ifs(uint32_t count, bool merges_first) {
    struct words w = begin();
    open_function(&w, MAIN);
    const uint32_t first = w.bound;
    w.bound += 2 * count; /* i: body first + 2i, merge first + 2i + 1 */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t body = first + 2 * i, merge = body + 1;
        INS(&w, SpvOpSelectionMerge, merge, 0);
        INS(&w, SpvOpBranchConditional, YES, body, merge);
        if (merges_first) { /* a merge block may stand before what is inside */
            INS(&w, SpvOpLabel, merge);
            if (i == 0) {
                put(&w, 1u << SpvWordCountShift | SpvOpReturn);
            } else {
                INS(&w, SpvOpBranch, merge - 2);
            }
        }
        INS(&w, SpvOpLabel, body);
    }
    for (uint32_t i = count; !merges_first && i-- > 0;) {
        INS(&w, SpvOpBranch, first + 2 * i + 1);
        INS(&w, SpvOpLabel, first + 2 * i + 1);
    }
    if (merges_first) {
        INS(&w, SpvOpBranch, first + 2 * count - 1);
        put(&w, 1u << SpvWordCountShift | SpvOpFunctionEnd);
    } else {
        close_function(&w);
    }
    return w;
}

TEST(nesting_of_control_flow) {
    for (int order = 0; order < 2; order++) {
        check(nested_ifs(BHI_LIMIT_CONTROL_NESTING, order == 1), NULL);
        check(nested_ifs(BHI_LIMIT_CONTROL_NESTING + 1, order == 1),
              "ifs, switches and loops nested in each other: 257, the guard allows "
              "256 (instruction ");
        check(nested_ifs(5000, order == 1), "OpSelectionMerge): split the kernel into functions");
        check(nested_ifs(20000, order == 1), "OpSelectionMerge): split the kernel into functions");
    }
    /* One after the other they nest in nothing. */
    struct words w = begin();
    open_function(&w, MAIN);
    for (uint32_t i = 0; i < 2000; i++) {
        INS(&w, SpvOpSelectionMerge, w.bound + 1, 0);
        INS(&w, SpvOpBranchConditional, YES, w.bound, w.bound + 1);
        INS(&w, SpvOpLabel, w.bound);
        INS(&w, SpvOpBranch, w.bound + 1);
        INS(&w, SpvOpLabel, w.bound + 1);
        w.bound += 2;
    }
    close_function(&w);
    check(w, NULL);
}

static struct words nested_loops(uint32_t count) {
    struct words w = begin();
    open_function(&w, MAIN);
    const uint32_t first = w.bound;
    w.bound += 4 * count; /* header, body, continue, merge */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t header = first + 4 * i;
        INS(&w, SpvOpBranch, header);
        INS(&w, SpvOpLabel, header);
        INS(&w, SpvOpLoopMerge, header + 3, header + 2, 0);
        INS(&w, SpvOpBranchConditional, YES, header + 1, header + 3);
        INS(&w, SpvOpLabel, header + 1);
    }
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t header = first + 4 * i;
        INS(&w, SpvOpBranch, header + 2);
        INS(&w, SpvOpLabel, header + 2);
        INS(&w, SpvOpBranch, header);
        INS(&w, SpvOpLabel, header + 3);
    }
    close_function(&w);
    return w;
}

TEST(nesting_of_loops) {
    check(nested_loops(BHI_LIMIT_CONTROL_NESTING), NULL);
    check(nested_loops(BHI_LIMIT_CONTROL_NESTING + 1), "257, the guard allows 256 (instruction ");
}

/* Function i calls function i + 1 |times| times. */
static struct words call_chain(uint32_t functions, uint32_t times) {
    struct words w = begin();
    const uint32_t first = w.bound;
    w.bound += functions;
    for (uint32_t i = 0; i < functions; i++) {
        open_function(&w, i == 0 ? MAIN : first + i);
        for (uint32_t t = 0; i + 1 < functions && t < times; t++) {
            INS(&w, SpvOpFunctionCall, VOID, w.bound++, first + i + 1);
        }
        close_function(&w);
    }
    return w;
}

TEST(calls) {
    check(call_chain(BHI_LIMIT_CALL_NESTING, 1), NULL);
    check(call_chain(BHI_LIMIT_CALL_NESTING + 2, 1),
          "calls nested in each other: 65, the guard allows 64");
    /* Without loops, and yet 2^30 times as long. */
    check(call_chain(15, 2), NULL);
    check(call_chain(31, 2), ", the guard allows 1048576 (OpFunctionCall): call less");
    /* Recursion is the validator's to refuse, but the walk has to end. */
    struct words w = begin();
    open_function(&w, MAIN);
    INS(&w, SpvOpFunctionCall, VOID, w.bound++, MAIN);
    close_function(&w);
    check(w, "calls nested in each other: 65, the guard allows 64, or there is recursion");
    /* Of one that is cut, the validator says more. */
    struct words cut = call_chain(31, 2);
    struct bhi_error error;
    cut.at[3] = cut.bound;
    cut.count -= 3; /* in mid OpLabel */
    BHT_TRUE(bhi_guard_limits(cut.at, cut.count, &error));
    free(cut.at);
}

/* -- sizes ---------------------------------------------------------------------------------- */

static uint32_t array_type(struct words *w, uint32_t element, uint32_t length) {
    INS(w, SpvOpConstant, UINT, w->bound, length);
    INS(w, SpvOpTypeArray, w->bound + 1, element, w->bound);
    w->bound += 2;
    return w->bound - 1;
}

enum how { PLAIN, INITIALISED, STORED, COPIED };

/* A private variable of |length| uints. */
static struct words variable(uint32_t length, enum how how, uint32_t count) {
    struct words w = begin();
    const uint32_t type = array_type(&w, UINT, length), pointer = w.bound++, null = w.bound++;
    INS(&w, SpvOpTypePointer, pointer, SpvStorageClassPrivate, type);
    INS(&w, SpvOpConstantNull, type, null);
    const uint32_t first = w.bound;
    for (uint32_t i = 0; i < count; i++) {
        if (how == INITIALISED) {
            INS(&w, SpvOpVariable, pointer, w.bound++, SpvStorageClassPrivate, null);
        } else {
            INS(&w, SpvOpVariable, pointer, w.bound++, SpvStorageClassPrivate);
        }
    }
    open_function(&w, MAIN);
    if (how == STORED) {
        INS(&w, SpvOpStore, first, null);
    } else if (how == COPIED) {
        INS(&w, SpvOpCopyMemory, first, first + 1);
    }
    close_function(&w);
    return w;
}

TEST(variables) {
    check(variable(BHI_LIMIT_VARIABLE, PLAIN, 4), NULL);
    check(variable(BHI_LIMIT_VARIABLE + 1, PLAIN, 1),
          "scalars in a variable of each invocation: 16385, the guard allows 16384 "
          "(instruction ");
    check(variable(BHI_LIMIT_VARIABLE, PLAIN, 5),
          "scalars in the variables of each invocation: 81920, the guard allows 65536");
    check(variable(BHI_LIMIT_INITIALISED, INITIALISED, 1), NULL);
    check(variable(BHI_LIMIT_INITIALISED + 1, INITIALISED, 1),
          "scalars in a variable with an initialiser: 4097, the guard allows 4096");
}

/* A struct of arrays of arrays with 2^30 elements, in a few lines. */
TEST(a_value_of_billions) {
    struct words w = begin();
    uint32_t type = UINT;
    for (int i = 0; i < 8; i++) {
        type = array_type(&w, type, 1u << 30); /* 2^240 in the end */
    }
    INS(&w, SpvOpTypePointer, w.bound, SpvStorageClassPrivate, type);
    INS(&w, SpvOpVariable, w.bound, w.bound + 1, SpvStorageClassPrivate);
    w.bound += 2;
    empty_main(&w);
    check(w, "scalars in a variable of each invocation: 18446744073709551615");
}

TEST(values) {
    /* Shared memory: the variable has the device's limit, a value of its type has ours. */
    for (int how = 0; how < 2; how++) {
        struct words w = begin();
        const uint32_t type = array_type(&w, UINT, BHI_LIMIT_VALUE + (how == 1));
        const uint32_t pointer = w.bound, null = pointer + 1, shared = pointer + 2;
        w.bound += 3;
        INS(&w, SpvOpTypePointer, pointer, SpvStorageClassWorkgroup, type);
        INS(&w, SpvOpConstantNull, type, null);
        INS(&w, SpvOpVariable, pointer, shared, SpvStorageClassWorkgroup);
        open_function(&w, MAIN);
        INS(&w, SpvOpStore, shared, null);
        close_function(&w);
        check(w, how == 1 ? "scalars in one value: 16385, the guard allows 16384 (instruction "
                          : NULL);
    }
    struct words w = begin();
    const uint32_t type = array_type(&w, UINT, BHI_LIMIT_VALUE + 1), pointer = w.bound;
    INS(&w, SpvOpTypePointer, pointer, SpvStorageClassWorkgroup, type);
    INS(&w, SpvOpVariable, pointer, pointer + 1, SpvStorageClassWorkgroup);
    INS(&w, SpvOpVariable, pointer, pointer + 2, SpvStorageClassWorkgroup);
    w.bound += 4;
    open_function(&w, MAIN);
    INS(&w, SpvOpCopyMemory, pointer + 1, pointer + 2);
    INS(&w, SpvOpLoad, type, pointer + 3, pointer + 1);
    close_function(&w);
    check(w, "OpCopyMemory %");
}

/* The length of an array with specialization constants. */
TEST(lengths) {
    static const char format[] = "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
                                 "OpEntryPoint GLCompute %%main \"main\"\n"
                                 "OpExecutionMode %%main LocalSize 1 1 1\n"
                                 "OpDecorate %%n SpecId 3\n%%void = OpTypeVoid\n"
                                 "%%fn = OpTypeFunction %%void\n%%uint = OpTypeInt 32 0\n"
                                 "%%v3 = OpTypeVector %%uint 3\n%%two = OpConstant %%uint 2\n"
                                 "%%n = OpSpecConstant %%uint 8\n"
                                 "%%size = OpSpecConstantComposite %%v3 %%two %%n %%two\n"
                                 "%%length = OpSpecConstantOp %%uint %s\n"
                                 "%%array = OpTypeArray %%uint %%length\n"
                                 "%%pointer = OpTypePointer Private %%array\n"
                                 "%%v = OpVariable %%pointer Private\n"
                                 "%%main = OpFunction %%void None %%fn\n"
                                 "%%start = OpLabel\nOpReturn\nOpFunctionEnd\n";
    static const struct {
        const char *length;
        uint32_t n;
        bh_status status;
        const char *text;
    } cases[] = {
        {"IMul %n %two", 8192, BH_OK, ""},
        {"IMul %n %two", 8193, BH_LIMIT_EXCEEDED, "16386, the guard allows 16384"},
        {"IMul %n %two", 0, BH_INVALID_KERNEL, "the length of an array is 0 with these"},
        {"CompositeExtract %size 1", 16384, BH_OK, ""},
        {"CompositeExtract %size 1", 16385, BH_LIMIT_EXCEEDED, "16385, the guard allows 16384"},
        {"UDiv %two %n", 0, BH_INVALID_KERNEL, "can be computed here (instruction "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, format, cases[i].length);
        text[sizeof text - 1] = '\0';
        struct stand_module module = stand_assemble(text, 3);
        const struct bhi_spec_constant constant = {3, 4, cases[i].n};
        struct bhi_error error = {.status = BH_OK};
        BHT_TRUE(bhi_validate(&stand_device, module.code, module.words, "main", &error));
        bhi_guard_limits_sizes(module.code, module.words, "main", &constant, 1, &error);
        if (error.status != cases[i].status || !strstr(bhi_error_line(&error), cases[i].text)) {
            BHT_FAIL("%s: %d \"%s\"", cases[i].length, (int)error.status, bhi_error_line(&error));
        }
    }
}

/* -- what is not even a module -------------------------------------------------------------- */

TEST(malformed_words) {
    struct words w = nested_loops(4);
    const uint32_t *code = w.at;
    w.at[3] = w.bound;
    for (size_t words = 0; words < w.count; words++) {
        /* Memory of exactly the size, so that a sanitizer sees a read beyond it. */
        uint32_t *copy = malloc(words * 4 + 1);
        struct bhi_error error;
        memcpy(copy, code, words * 4);
        BHT_TRUE(bhi_guard_limits(copy, words, &error));
        free(copy);
    }
    unsigned seed = 7;
    for (int turn = 0; turn < 20000; turn++) {
        uint32_t *copy = malloc(w.count * 4);
        struct bhi_error error = {.status = BH_OK};
        memcpy(copy, code, w.count * 4);
        for (int changes = 0; changes < 3; changes++) {
            uint32_t *at = &copy[3 + (size_t)rand_r(&seed) % (w.count - 3)];
            *at = rand_r(&seed) % 2 ? *at ^ 1u << rand_r(&seed) % 32 : (uint32_t)rand_r(&seed) % 64;
        }
        BHT_EQ(bhi_guard_limits(copy, w.count, &error), (error.status == BH_OK));
        free(copy);
    }
    free(w.at);
}
