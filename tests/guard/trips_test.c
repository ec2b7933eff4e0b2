/* Which loops are provably short, and so are left without a poll: the guard's security boundary. A
 * loop that is wrongly left alone cannot be stopped. */
#include "stand.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    const char *type; /* "uint", "int" or "long", which is signed */
    const char *initial, *step, *amount, *compare, *bound;
    bool alone;
};

/* for (i = initial; i compare bound; i = step(i, amount)), with a phi, or in a variable as
 * unoptimised modules have it; the comparison in the header, or of the value after the step, at the
 * end; the sides of the comparison as they stand, or changed. */
enum form { PHI, PHI_AFTER, PHI_MIRRORED, VARIABLE, FORMS };

static struct stand_module write_loop(const struct counted *loop, enum form form,
                                      const char *decorations) {
    char globals[1024], body[4096];
    snprintf(
        globals, sizeof globals,
        "%%long = OpTypeInt 64 1\n%%initial = OpConstant %%%s %s\n%%amount = OpConstant %%%s %s\n"
        "%%bound = OpConstant %%%s %s\n%%p_local = OpTypePointer Function %%%s\n",
        loop->type, loop->initial, loop->type, loop->amount, loop->type, loop->bound, loop->type);
    if (form == VARIABLE) {
        snprintf(body, sizeof body,
                 "%%v = OpVariable %%p_local Function\nOpStore %%v %%initial\nOpBranch %%h\n"
                 "%%h = OpLabel\nOpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%%i = OpLoad %%%s %%v\n%%c = Op%s %%bool %%i %%bound\n"
                 "OpBranchConditional %%c %%b %%m\n"
                 "%%b = OpLabel\nOpBranch %%k\n"
                 "%%k = OpLabel\n%%j = OpLoad %%%s %%v\n%%i2 = Op%s %%%s %%j %%amount\n"
                 "OpStore %%v %%i2\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 loop->type, loop->compare, loop->type, loop->step, loop->type);
    } else if (form == PHI_AFTER) {
        snprintf(body, sizeof body,
                 "OpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%%s %%initial %%start %%i2 %%h\n"
                 "%%i2 = Op%s %%%s %%i %%amount\n%%c = Op%s %%bool %%i2 %%bound\n"
                 "OpLoopMerge %%m %%h None\nOpBranchConditional %%c %%h %%m\n"
                 "%%m = OpLabel\nOpReturn\n",
                 loop->type, loop->step, loop->type, loop->compare);
    } else {
        /* Mirrored: !(bound compare' i) is awkward to write; the exit is on the other side. */
        const bool mirrored = form == PHI_MIRRORED;
        snprintf(body, sizeof body,
                 "OpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%%s %%initial %%start %%i2 %%k\n"
                 "OpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%%yes = Op%s %%bool %%i %%bound\n"
                 "%%c = OpLogicalNot %%bool %%yes\nOpBranchConditional %%%s\n"
                 "%%b = OpLabel\nOpBranch %%k\n"
                 "%%k = OpLabel\n%%i2 = Op%s %%%s %%i %%amount\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 loop->type, loop->compare, mirrored ? "c %m %b" : "yes %b %m", loop->step,
                 loop->type);
    }
    const struct stand_module module =
        stand_compute_with(decorations, globals, "", body, "", *decorations ? 4 : 3);
    return stand_capable(&module, SpvCapabilityInt64);
}

static const struct counted loops[] = {
    {"uint", "0", "IAdd", "1", "ULessThan", "10", true},
    {"int", "-1", "IAdd", "1", "SLessThanEqual", "1", true},
    {"uint", "0", "IAdd", "1", "ULessThan", "4096", false}, /* 4097 looks at the header */
    {"uint", "0", "IAdd", "2", "ULessThan", "4096", true},
    {"uint", "10", "ISub", "1", "UGreaterThan", "0", true},
    {"uint", "10", "IAdd", "0xffffffff", "UGreaterThan", "0", true}, /* as spirv-opt writes it */
    {"uint", "128", "ShiftRightLogical", "1", "UGreaterThan", "0", true},
    {"uint", "1", "ShiftLeftLogical", "1", "ULessThan", "1000", true},
    {"int", "1", "IMul", "3", "SLessThan", "1000000", true},
    {"uint", "0", "IAdd", "3", "INotEqual", "9", true},
    {"int", "100", "SDiv", "2", "SGreaterThan", "0", true},
    {"uint", "0", "ISub", "0xffffffff", "ULessThan", "10", true},
    {"uint", "0x7ffffff0", "IAdd", "1", "INotEqual", "0x80000010", true}, /* one sign overflows */
    {"uint", "0", "IAdd", "1", "IEqual", "0", true},
    {"long", "0", "IAdd", "1", "SLessThan", "10", true},
    {"long", "0", "IAdd", "1", "SLessThan", "4294967306", false}, /* 10 and 2^32 */
    {"long", "1", "IMul", "3", "SLessThan", "1000000", false},    /* products are not computed */
    /* Endless, though the arithmetic of a careless reader ends. */
    {"uint", "0xfffffff0", "IAdd", "16", "ULessThan", "0xffffffff", false},
    {"uint", "0", "IAdd", "1", "ULessThanEqual", "0xffffffff", false},
    {"int", "0x7ffffff0", "IAdd", "16", "SLessThanEqual", "0x7fffffff", false},
    {"int", "-2147483640", "ISub", "16", "SGreaterThanEqual", "-2147483648", false},
    {"uint", "10", "ISub", "1", "UGreaterThanEqual", "0", false},
    {"uint", "10", "ISub", "3", "INotEqual", "0", false}, /* ends after 2863311534 rounds */
    {"uint", "0", "IAdd", "0", "ULessThan", "10", false},
    {"uint", "1", "IMul", "1", "ULessThan", "10", false},
    {"uint", "0", "ShiftLeftLogical", "1", "ULessThan", "10", false},
    {"uint", "0", "IAdd", "2", "INotEqual", "9", false},
    {"uint", "1", "ShiftLeftLogical", "32", "ULessThan", "10", false}, /* no result */
    {"uint", "0", "ShiftLeftLogical", "32", "INotEqual", "0", false},
    {"uint", "128", "ShiftRightLogical", "32", "UGreaterThan", "0", false}, /* nor these */
    {"int", "128", "ShiftRightArithmetic", "32", "SGreaterThan", "0", false},
    {"uint", "5", "UDiv", "0", "UGreaterThan", "0", false},
    {"int", "-8", "ShiftRightArithmetic", "1", "SLessThan", "0", false}, /* stays -1 */
    {"uint", "10", "UMod", "7", "UGreaterThan", "0", false},             /* stays 3 */
    /* It does end, by wrapping: not worth the risk. */
    {"uint", "0xfffffff0", "IAdd", "1", "UGreaterThan", "5", false},
    {"int", "0", "IAdd", "-1", "ULessThan", "10", false}, /* left after one, through the wrap */
    {"int", "100", "SDiv", "-2", "SGreaterThan", "0", false},
};

TEST(test_counted_loops) {
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        for (enum form form = PHI; form < FORMS; form++) {
            struct stand_module module = write_loop(&loops[i], form, "");
            struct bhi_guarded guarded = stand_guard(&module);
            if (guarded.loops != 1) {
                BHT_FAIL("loop %zu, form %d: %u loops", i, form, guarded.loops);
            }
            /* One iteration less is needed where the test is at the end: 4096, then. */
            const bool alone = loops[i].alone || (form == PHI_AFTER && i == 2);
            if (guarded.left_alone != (alone ? 1 : 0)) {
                BHT_FAIL("loop %zu, form %d: left alone %u", i, form, guarded.left_alone);
            }
        }
    }
}

/* What is spent on counting is bounded: 488 loops of 4096 rounds can be counted, and no more of them. (Each
 * function has few, so that only their number matters.) */
TEST(test_all_counts_together_are_bounded) {
    enum { FUNCTIONS = 16, LOOPS = 32, BYTES = 1 << 18 };
    char *text = bht_own(malloc(BYTES));
    size_t at = (size_t)snprintf(text, BYTES,
                                 "OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
                                 "OpEntryPoint GLCompute %%main \"main\"\n"
                                 "OpExecutionMode %%main LocalSize 1 1 1\n%%void = OpTypeVoid\n"
                                 "%%bool = OpTypeBool\n%%uint = OpTypeInt 32 0\n"
                                 "%%nothing = OpTypeFunction %%void\n%%u_0 = OpConstant %%uint 0\n"
                                 "%%u_1 = OpConstant %%uint 1\n%%n = OpConstant %%uint 4096\n"
                                 "%%main = OpFunction %%void None %%nothing\n%%start = OpLabel\n"
                                 "OpReturn\nOpFunctionEnd\n");
    for (int f = 0; f < FUNCTIONS; f++) {
        at +=
            (size_t)snprintf(text + at, BYTES - at,
                             "%%f%d = OpFunction %%void None %%nothing\n%%m%d_0 = OpLabel\n", f, f);
        for (int i = 0; i < LOOPS; i++) {
            at += (size_t)snprintf(
                text + at, BYTES - at,
                "OpBranch %%h%1$d_%2$d\n%%h%1$d_%2$d = OpLabel\n"
                "%%i%1$d_%2$d = OpPhi %%uint %%u_0 %%m%1$d_%2$d %%j%1$d_%2$d %%h%1$d_%2$d\n"
                "%%j%1$d_%2$d = OpIAdd %%uint %%i%1$d_%2$d %%u_1\n"
                "%%c%1$d_%2$d = OpULessThan %%bool %%j%1$d_%2$d %%n\n"
                "OpLoopMerge %%m%1$d_%3$d %%h%1$d_%2$d None\n"
                "OpBranchConditional %%c%1$d_%2$d %%h%1$d_%2$d %%m%1$d_%3$d\n%%m%1$d_%3$d = "
                "OpLabel\n",
                f, i, i + 1);
        }
        at += (size_t)snprintf(text + at, BYTES - at, "OpReturn\nOpFunctionEnd\n");
    }
    BHT_LT(at, BYTES);
    struct stand_module module = stand_assemble(text, 3);
    const struct bhi_guarded guarded = stand_guard(&module);
    BHT_EQ(guarded.loops, FUNCTIONS * LOOPS);
    BHT_EQ(guarded.left_alone, 2000000 / 4096);
}

/* Whatever a module says never overflows can be anything where it does. */
TEST(test_steps_that_must_not_wrap) {
    static const struct {
        struct counted loop;
        const char *decoration;
    } rows[] = {
        {{"uint", "0x7ffffff0", "IAdd", "1", "ULessThan", "0x80000010", true}, "NoSignedWrap"},
        {{"int", "-5", "IAdd", "1", "SLessThan", "5", true}, "NoUnsignedWrap"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char decoration[64];
        struct stand_module module = write_loop(&rows[i].loop, PHI, "");
        BHT_EQ(stand_guard(&module).left_alone, 1);
        snprintf(decoration, sizeof decoration, "OpDecorate %%i2 %s\n", rows[i].decoration);
        module = write_loop(&rows[i].loop, PHI, decoration);
        BHT_EQ(stand_guard(&module).left_alone, 0);
    }
}

/* A loop up to twice a specialization constant, by way of a composite. */
TEST(test_specialization) {
    struct stand_module module =
        stand_assemble("OpCapability Shader\nOpMemoryModel Logical GLSL450\n"
                       "OpEntryPoint GLCompute %main \"main\"\n"
                       "OpExecutionMode %main LocalSize 1 1 1\nOpDecorate %size SpecId 7\n"
                       "%void = OpTypeVoid\n%bool = OpTypeBool\n%uint = OpTypeInt 32 0\n"
                       "%nothing = OpTypeFunction %void\n%u_0 = OpConstant %uint 0\n"
                       "%u_1 = OpConstant %uint 1\n%u_2 = OpConstant %uint 2\n"
                       "%size = OpSpecConstant %uint 16\n%uvec2 = OpTypeVector %uint 2\n"
                       "%pair = OpSpecConstantComposite %uvec2 %u_1 %size\n"
                       "%part = OpSpecConstantOp %uint CompositeExtract %pair 1\n"
                       "%twice = OpSpecConstantOp %uint IMul %part %u_2\n"
                       "%main = OpFunction %void None %nothing\n"
                       "%start = OpLabel\nOpBranch %h\n"
                       "%h = OpLabel\n%i = OpPhi %uint %u_0 %start %i2 %k\n"
                       "OpLoopMerge %m %k None\nOpBranch %test\n"
                       "%test = OpLabel\n%c = OpULessThan %bool %i %twice\n"
                       "OpBranchConditional %c %b %m\n"
                       "%b = OpLabel\nOpBranch %k\n"
                       "%k = OpLabel\n%i2 = OpIAdd %uint %i %u_1\nOpBranch %h\n"
                       "%m = OpLabel\nOpReturn\nOpFunctionEnd\n",
                       3);
    struct bhi_guarded guarded = stand_guard(&module);
    BHT_EQ(guarded.left_alone, 1);
    const struct bhi_spec_constant large = {7, 4, 100000}, small = {7, 4, 3};
    struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .constants = &large, .constant_count = 1};
    guarded = stand_guard_with(&module, &options);
    BHT_EQ(guarded.left_alone, 0);
    options.constants = &small;
    guarded = stand_guard_with(&module, &options);
    BHT_EQ(guarded.left_alone, 1);
}

/* Writes a loop of |limit| rounds around |inner|, in steps of |step|; its names end with |x|, and it
 * is entered from |from|. Behind it stands its block %m. */
static void write_rounds(char out[12000], const char *x, const char *from, const char *limit,
                         const char *step, const char *inner) {
    snprintf(out, 12000,
             "OpBranch %%h%1$s\n"
             "%%h%1$s = OpLabel\n%%i%1$s = OpPhi %%uint %%u_0 %%%2$s %%n%1$s %%k%1$s\n"
             "OpLoopMerge %%m%1$s %%k%1$s None\nOpBranch %%t%1$s\n"
             "%%t%1$s = OpLabel\n%%c%1$s = OpULessThan %%bool %%i%1$s %%%3$s\n"
             "OpBranchConditional %%c%1$s %%b%1$s %%m%1$s\n"
             "%%b%1$s = OpLabel\n%5$sOpBranch %%k%1$s\n"
             "%%k%1$s = OpLabel\n%%n%1$s = OpIAdd %%uint %%i%1$s %%%4$s\nOpBranch %%h%1$s\n"
             "%%m%1$s = OpLabel\n",
             x, from, limit, step, inner);
}

static void check_nest(const char *outer, const char *inner, uint32_t alone, uint32_t covered) {
    static char inside[12000], body[12000];
    write_rounds(inside, "2", "b", inner, "u_1", "");
    write_rounds(body, "", "start", outer, "u_1", inside);
    strcat(body, "OpReturn\n");
    struct stand_module module = stand_compute("", body, "", 3);
    struct bhi_guarded guarded = stand_guard(&module);
    if (guarded.left_alone != alone || guarded.covered != covered) {
        BHT_FAIL("%s of %s: %u left alone, %u covered", outer, inner, guarded.left_alone,
                 guarded.covered);
    }
}

/* Products count, not the loops alone. */
TEST(test_nests) {
    check_nest("u_10", "u_100", 2, 0);
    check_nest("u_100", "u_100", 1, 0);
    check_nest("u_5000", "u_8", 1, 0);
    check_nest("u_8", "u_5000", 0, 1); /* the inner one polls for both */
}

/* What a call stands for: rounds of the callee's loops. */
static void check_calls(const char *rounds, const char *callee_rounds, uint32_t alone) {
    static char body[12000], functions[2048];
    write_rounds(body, "", "start", rounds, "u_1", "%r = OpFunctionCall %void %f\n");
    strcat(body, "OpReturn\n");
    snprintf(functions, sizeof functions,
             "%%f = OpFunction %%void None %%nothing\n"
             "%%fs = OpLabel\nOpBranch %%fh\n"
             "%%fh = OpLabel\n%%fi = OpPhi %%uint %%u_0 %%fs %%fi2 %%fh\n"
             "%%fi2 = OpIAdd %%uint %%fi %%u_1\n%%fc = OpULessThan %%bool %%fi2 %%%s\n"
             "OpLoopMerge %%fm %%fh None\nOpBranchConditional %%fc %%fh %%fm\n"
             "%%fm = OpLabel\nOpReturn\nOpFunctionEnd\n",
             callee_rounds);
    struct stand_module module = stand_compute("", body, functions, 3);
    struct bhi_guarded guarded = stand_guard(&module);
    if (guarded.left_alone != alone) {
        BHT_FAIL("%s of %s: %u left alone", rounds, callee_rounds, guarded.left_alone);
    }
    BHT_EQ(guarded.covered, 0); /* a call never covers */
}

TEST(test_calls) {
    check_calls("u_10", "u_100", 2);
    check_calls("u_100", "u_100", 1);
    check_calls("u_10", "u_5000", 0);
}

/* Stores to a buffer so often and multiplies so often; its names end with |x|. */
static void write_work(char out[12000], const char *x, unsigned stores, unsigned products) {
    size_t at =
        (size_t)snprintf(out, 12000, "%%p%s = OpAccessChain %%p_uint %%out %%u_0 %%u_0\n", x);
    for (unsigned i = 0; i < stores; i++) {
        at += (size_t)snprintf(out + at, 12000 - at, "OpStore %%p%s %%u_1\n", x);
    }
    for (unsigned i = 0; i < products; i++) {
        at += (size_t)snprintf(out + at, 12000 - at, "%%x%u%s = OpIMul %%uint %%u_2 %%u_2\n", i, x);
    }
}

/* Rounds of a loop of such work. */
static struct bhi_guarded guard_heavy(const char *rounds, unsigned stores, unsigned products) {
    static char body[12000], inside[12000];
    write_work(inside, "", stores, products);
    write_rounds(body, "", "start", rounds, "u_2", inside); /* by two: polled, not lowered */
    strcat(body, "OpReturn\n");
    struct stand_module module = stand_compute(
        "%many = OpConstant %uint 8000\n%all = OpConstant %uint 4000000000\n", body, "", 3);
    struct bhi_guarded guarded = stand_guard(&module);
    return guarded;
}

static void check_added(unsigned stores, unsigned products, const char *text) {
    struct bhi_guarded guarded = guard_heavy("all", stores, products);
    BHT_EQ(guarded.polled, 1);
    char *all = stand_text(guarded.code, guarded.words);
    if (!strstr(all, text)) {
        BHT_FAIL("%u stores, %u products: no \"%s\" in\n%s", stores, products, text, all);
    }
}

static void check_alone(unsigned stores, unsigned products, bool alone) {
    struct bhi_guarded guarded = guard_heavy("many", stores, products);
    if (guarded.left_alone != alone) {
        BHT_FAIL("%u stores, %u products: %u left alone", stores, products, guarded.left_alone);
    }
}

/* What a round does counts, too: with much in them, few rounds outlast the grace. */
TEST(test_heavy_rounds) {
    check_added(1, 0, " 17\n");
    check_added(10, 0, " 161\n");
    check_added(1, 300, " 18\n");
    check_alone(16, 10, true);
    check_alone(17, 10, false); /* 4001 rounds */
    check_alone(0, 240, true);
    check_alone(0, 265, false);
}

/* Of each kind: 4001 rounds of 16 accesses are few. */
TEST(test_each_kind_of_access_counts) {
    static const struct {
        const char *before, *after; /* of a number; ; begins a comment */
    } kinds[] = {{"OpStore %p %u_1 ;", "\n"},
                 {"%l", " = OpLoad %uint %p\n"},
                 {"%l", " = OpLoad %uint %q\n"},
                 {"OpAtomicStore %p %u_1 %u_0 %u_1 ;", "\n"},
                 {"%l", " = OpAtomicLoad %uint %p %u_1 %u_0\n"},
                 {"%l", " = OpAtomicXor %uint %p %u_1 %u_0 %u_1\n"}};
    for (unsigned i = 0; i < 2 * BHT_COUNT(kinds); i++) {
        static char body[12000], inside[12000];
        size_t at = (size_t)snprintf(inside, sizeof inside,
                                     "%%p = OpAccessChain %%p_uint %%out %%u_0 %%u_0\n"
                                     "%%q = OpAccessChain %%p_in_held %%held_here %%u_0\n");
        for (unsigned k = 0; k < 16 + i % 2; k++) {
            at += (size_t)snprintf(inside + at, sizeof inside - at, "%s%u%s", kinds[i / 2].before,
                                   k, kinds[i / 2].after);
        }
        write_rounds(body, "", "start", "many", "u_2", inside);
        strcat(body, "OpReturn\n");
        struct stand_module module = stand_compute_with(
            "OpMemberDecorate %held 0 Offset 0\nOpDecorate %held Block\n"
            "OpDecorate %held_here DescriptorSet 0\nOpDecorate %held_here Binding 1\n",
            "%many = OpConstant %uint 8000\n%held = OpTypeStruct %uint\n"
            "%p_held = OpTypePointer Uniform %held\n%p_in_held = OpTypePointer Uniform %uint\n"
            "%held_here = OpVariable %p_held Uniform\n",
            "", body, "", 3);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.left_alone != 1 - i % 2) {
            BHT_FAIL("%s%s: %u left alone", kinds[i / 2].before, kinds[i / 2].after,
                     guarded.left_alone);
        }
    }
}

/* Two loops of work, one behind the other: what the one has done counts for the other. */
TEST(test_heavy_loops_in_a_row) {
    static const struct {
        unsigned stores[2], products[2], alone;
    } rows[] = {
        {{15, 1}, {0, 0}, 2}, {{16, 1}, {0, 0}, 1}, {{0, 0}, {200, 20}, 2}, {{0, 0}, {240, 20}, 1}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        static char inside[2][12000], first[12000], second[12000], body[24100];
        write_work(inside[0], "a", rows[i].stores[0], rows[i].products[0]);
        write_work(inside[1], "b", rows[i].stores[1], rows[i].products[1]);
        write_rounds(first, "", "start", "many", "u_2", inside[0]);
        write_rounds(second, "2", "m", "many", "u_2", inside[1]);
        snprintf(body, sizeof body, "%s%sOpReturn\n", first, second);
        struct stand_module module = stand_compute("%many = OpConstant %uint 8000\n", body, "", 3);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.left_alone != rows[i].alone) {
            BHT_FAIL("row %zu: %u left alone", i, guarded.left_alone);
        }
    }
}

/* An inner loop's poll is enough where a round does little besides, and rounds are not counted. */
TEST(test_rounds_that_an_inner_poll_covers) {
    static const struct {
        unsigned stores;
        const char *step;  /* of a loop of a hundred, */
        unsigned products; /* which multiplies */
        uint32_t covered;
    } rows[] = {{16, "u_2", 0, 1},
                {17, "u_2", 0, 0},
                {0, "u_1", 0, 0},
                {0, "u_2", 50, 1},
                {0, "u_2", 100, 0}};
    for (size_t i = 0; i < 2 * BHT_COUNT(rows); i++) {
        static char work[12000], inside[12000], brief[12000], inner[12000], all[36100], body[12000];
        const struct bhi_guard_options options = {
            .entry = "main", .max_sets = 8, .count_iterations = i % 2};
        write_work(work, "", rows[i / 2].stores, 0);
        write_work(inside, "3", 0, rows[i / 2].products);
        write_rounds(brief, "3", "b", "u_100", rows[i / 2].step, inside);
        write_rounds(inner, "2", "m3", "all", "u_2", "");
        snprintf(all, sizeof all, "%s%s%s", work, brief, inner);
        write_rounds(body, "", "start", "all", "u_2", all);
        strcat(body, "OpReturn\n");
        struct stand_module module =
            stand_compute("%all = OpConstant %uint 4000000000\n", body, "", 3);
        const struct bhi_guarded guarded = stand_guard_with(&module, &options);
        if (guarded.covered != (i % 2 ? 0 : rows[i / 2].covered)) {
            BHT_FAIL("row %zu: %u covered", i, guarded.covered);
        }
    }
}

/* A variable whose address goes elsewhere, or that is stored to twice, counts nothing. */
TEST(test_variables_that_are_not_counters) {
    static const char *const spoils[] = {
        "OpStore %v %u_0\n",                                       /* starts over */
        "%r = OpFunctionCall %void %reset %v\n",                   /* as it can */
        "%l = OpLoad %uint %v Volatile\nOpStore %v %l Volatile\n", /* who knows */
    };
    for (size_t i = 0; i < 3; i++) {
        char body[2048];
        snprintf(body, sizeof body,
                 "%%v = OpVariable %%p_local Function\nOpStore %%v %%u_0\nOpBranch %%h\n"
                 "%%h = OpLabel\nOpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%%i = OpLoad %%uint %%v\n%%c = OpULessThan %%bool %%i %%u_10\n"
                 "OpBranchConditional %%c %%b %%m\n"
                 "%%b = OpLabel\n%sOpBranch %%k\n"
                 "%%k = OpLabel\n%%j = OpLoad %%uint %%v\n%%i2 = OpIAdd %%uint %%j %%u_1\n"
                 "OpStore %%v %%i2\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 spoils[i]);
        struct stand_module module = stand_compute("%p_local = OpTypePointer Function %uint\n"
                                                   "%takes = OpTypeFunction %void %p_local\n",
                                                   body,
                                                   "%reset = OpFunction %void None %takes\n"
                                                   "%a = OpFunctionParameter %p_local\n"
                                                   "%rs = OpLabel\nOpStore %a %u_0\nOpReturn\n"
                                                   "OpFunctionEnd\n",
                                                   3);
        struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.left_alone != 0) {
            BHT_FAIL("spoil %zu: left alone", i);
        }
    }
}

/* A step that only some rounds take: the others may go on for ever. */
TEST(test_steps_that_not_every_round_takes) {
    struct stand_module module =
        stand_compute("%p_local = OpTypePointer Function %uint\n",
                      "%v = OpVariable %p_local Function\nOpStore %v %u_0\n"
                      "%pw = OpAccessChain %p_uint %out %u_0 %u_0\nOpBranch %h\n"
                      "%h = OpLabel\nOpLoopMerge %m %k None\nOpBranch %test\n"
                      "%test = OpLabel\n%i = OpLoad %uint %v\n%c = OpULessThan %bool %i %u_10\n"
                      "OpBranchConditional %c %b %m\n"
                      "%b = OpLabel\n%w = OpLoad %uint %pw\n%some = OpINotEqual %bool %w %u_0\n"
                      "OpSelectionMerge %k2 None\nOpBranchConditional %some %a %k2\n"
                      "%a = OpLabel\n%j = OpLoad %uint %v\n%i2 = OpIAdd %uint %j %u_1\n"
                      "OpStore %v %i2\nOpBranch %k2\n"
                      "%k2 = OpLabel\nOpBranch %k\n%k = OpLabel\nOpBranch %h\n"
                      "%m = OpLabel\nOpReturn\n",
                      "", 3);
    const struct bhi_guarded guarded = stand_guard(&module);
    BHT_EQ(guarded.left_alone, 0);
    BHT_EQ(guarded.polled, 1);
}

/* A loop on two conditions, of which only one is known to become false: it ends with that one where it goes
 * on while both hold. */
TEST(test_loops_on_two_conditions) {
    static const struct {
        const char *compare, *join, *sides, *targets;
        uint32_t alone;
    } rows[] = {
        {"ULessThan", "LogicalAnd", "%known %other", "%b %m", 1},
        {"ULessThan", "LogicalAnd", "%other %known", "%b %m", 1},
        {"ULessThan", "LogicalOr", "%known %other", "%b %m", 0},
        {"ULessThan", "LogicalOr", "%other %known", "%b %m", 0},
        {"UGreaterThanEqual", "LogicalOr", "%known %other", "%m %b", 1},
        {"UGreaterThanEqual", "LogicalAnd", "%known %other", "%m %b", 0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char body[2048];
        snprintf(body, sizeof body,
                 "%%pw = OpAccessChain %%p_uint %%out %%u_0 %%u_0\n%%w = OpLoad %%uint %%pw\n"
                 "%%other = OpINotEqual %%bool %%w %%u_0\nOpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%uint %%u_0 %%start %%i2 %%k\n"
                 "OpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%%known = Op%s %%bool %%i %%u_10\n%%c = Op%s %%bool %s\n"
                 "OpBranchConditional %%c %s\n"
                 "%%b = OpLabel\nOpBranch %%k\n"
                 "%%k = OpLabel\n%%i2 = OpIAdd %%uint %%i %%u_1\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 rows[i].compare, rows[i].join, rows[i].sides, rows[i].targets);
        struct stand_module module = stand_compute("", body, "", 3);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.loops != 1 || guarded.left_alone != rows[i].alone) {
            BHT_FAIL("row %zu: %u left alone", i, guarded.left_alone);
        }
    }
}

/* A bound in a variable with an initial value, which is stored to once: that store counts only where it is on
 * every way to the loop. */
TEST(test_a_bound_that_some_ways_store) {
    static const char *const stores[] = {
        "OpStore %v %u_10\nOpBranch %z\n%z = OpLabel\n",
        "OpSelectionMerge %z None\nOpBranchConditional %some %y %z\n"
        "%y = OpLabel\nOpStore %v %u_10\nOpBranch %z\n%z = OpLabel\n",
    };
    for (uint32_t i = 0; i < BHT_COUNT(stores); i++) {
        char body[2048];
        snprintf(body, sizeof body,
                 "%%v = OpVariable %%p_local Function %%all\n"
                 "%%pw = OpAccessChain %%p_uint %%out %%u_0 %%u_0\n%%w = OpLoad %%uint %%pw\n"
                 "%%some = OpINotEqual %%bool %%w %%u_0\n%s"
                 "%%n = OpLoad %%uint %%v\nOpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%uint %%u_0 %%z %%i2 %%k\n"
                 "OpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%%c = OpULessThan %%bool %%i %%n\n"
                 "OpBranchConditional %%c %%b %%m\n"
                 "%%b = OpLabel\nOpBranch %%k\n"
                 "%%k = OpLabel\n%%i2 = OpIAdd %%uint %%i %%u_1\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 stores[i]);
        struct stand_module module = stand_compute("%p_local = OpTypePointer Function %uint\n"
                                                   "%all = OpConstant %uint 4000000000\n",
                                                   body, "", 3);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.left_alone != 1 - i) {
            BHT_FAIL("store %u: %u left alone", i, guarded.left_alone);
        }
    }
}

/* 4001 rounds, each of which calls a function that stores and multiplies so often. */
static void check_called(unsigned stores, unsigned products, bool alone) {
    static char body[12000], function[12200];
    static char work[12000];
    write_work(work, "", stores, products);
    snprintf(function, sizeof function,
             "%%f = OpFunction %%void None %%nothing\n%%fs = OpLabel\n%sOpReturn\nOpFunctionEnd\n",
             work);
    write_rounds(body, "", "start", "many", "u_2", "%r = OpFunctionCall %void %f\n");
    strcat(body, "OpReturn\n");
    struct stand_module module =
        stand_compute("%many = OpConstant %uint 8000\n", body, function, 3);
    const struct bhi_guarded guarded = stand_guard(&module);
    if (guarded.left_alone != alone) {
        BHT_FAIL("%u stores, %u products: %u left alone", stores, products, guarded.left_alone);
    }
}

/* What a called function does counts for the loop that calls it. */
TEST(test_heavy_calls) {
    check_called(16, 10, true);
    check_called(17, 10, false);
    check_called(0, 240, true);
    check_called(0, 265, false);
}

/* Counts up by one to a bound that each round reads again: in chunks only if it stays the same. */
static void check_bound(const char *decorations, const char *globals, const char *begin,
                        const char *read, const char *body, uint32_t lowered) {
    for (unsigned minor = 0; minor <= 3; minor++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%sOpBranch %%h\n"
                 "%%h = OpLabel\n%%i = OpPhi %%uint %%u_0 %%start %%i2 %%k\n"
                 "OpLoopMerge %%m %%k None\nOpBranch %%test\n"
                 "%%test = OpLabel\n%s%%c = OpULessThan %%bool %%i %%n\n"
                 "OpBranchConditional %%c %%b %%m\n"
                 "%%b = OpLabel\n%sOpBranch %%k\n"
                 "%%k = OpLabel\n%%i2 = OpIAdd %%uint %%i %%u_1\nOpBranch %%h\n"
                 "%%m = OpLabel\nOpReturn\n",
                 begin, read, body);
        struct stand_module module = stand_compute_with(decorations, globals, "", text, "", minor);
        const struct bhi_guarded guarded = stand_guard(&module);
        if (guarded.lowered != lowered || guarded.polled != 1 - lowered) {
            BHT_FAIL("SPIR-V 1.%u: %u lowered, %u polled", minor, guarded.lowered, guarded.polled);
        }
    }
}

TEST(test_a_bound_that_the_loop_changes) {
    static const char local[] = "%p_local = OpTypePointer Function %uint\n";
    static const char begin[] = "%v = OpVariable %p_local Function\n"
                                "%pn = OpAccessChain %p_uint %out %u_0 %u_0\n"
                                "%first = OpLoad %uint %pn\nOpStore %v %first\n";
    static const char read[] = "%n = OpLoad %uint %v\n";
    check_bound("", local, begin, read, "", 1);
    check_bound("", local, begin, read, "OpStore %v %i\n", 0);
}

/* A block of a module before SPIR-V 1.3 lies in Uniform, too, where kernels write to it. */
TEST(test_a_bound_in_a_block_that_kernels_write) {
    static const char globals[] = "%held = OpTypeStruct %uint\n"
                                  "%p_held = OpTypePointer Uniform %held\n"
                                  "%p_in_held = OpTypePointer Uniform %uint\n"
                                  "%bounds = OpVariable %p_held Uniform\n";
    static const char read[] = "%pn = OpAccessChain %p_in_held %bounds %u_0\n"
                               "%n = OpLoad %uint %pn\n";
    static const char placed[] = "OpMemberDecorate %%held 0 Offset 0\nOpDecorate %%held %s\n"
                                 "OpDecorate %%bounds DescriptorSet 0\n"
                                 "OpDecorate %%bounds Binding 1\n";
    char decorations[512];
    snprintf(decorations, sizeof decorations, placed, "Block");
    check_bound(decorations, globals, "", read, "", 1);
    snprintf(decorations, sizeof decorations, placed, "BufferBlock");
    check_bound(decorations, globals, "", read, "", 0);
}

/* Where rounds are counted: how much a round of a loop counts with three others in it, and how much its
 * end does. A driver may go round in loops that no lane has entered; a lowered one is two. */
static void check_untaken(const char *before, const char *from, const char *behind, bool counts) {
    static char inside[3][12000], all[36100], body[12000];
    const struct bhi_guard_options options = {
        .entry = "main", .max_sets = 8, .count_iterations = counts};
    write_rounds(inside[0], "2", from, "all", "u_1", "");
    write_rounds(inside[1], "3", "m2", "all", "u_1", "");
    write_rounds(inside[2], "4", "m3", "all", "u_2", "");
    snprintf(all, sizeof all, "%s%s%s%s%s", before, inside[0], inside[1], inside[2], behind);
    write_rounds(body, "", "start", "all", "u_2", all);
    strcat(body, "OpReturn\n");
    struct stand_module module = stand_compute("%all = OpConstant %uint 4000000000\n", body, "", 3);
    const struct bhi_guarded guarded = stand_guard_with(&module, &options);
    BHT_EQ(guarded.lowered, 2);
    const char *text = stand_text(guarded.code, guarded.words);
    if (!strstr(text, " 6\n") == counts) {
        BHT_FAIL("behind '%s': %sa count of 6:\n%s", before, counts ? "no " : "", text);
    }
}

TEST(test_rounds_of_loops_that_nobody_enters) {
    for (int counts = 0; counts < 2; counts++) {
        check_untaken("", "b", "", counts);
        check_untaken("OpSelectionMerge %z None\nOpBranchConditional %c %y %z\n%y = OpLabel\n", "y",
                      "OpBranch %z\n%z = OpLabel\n", counts);
    }
}
