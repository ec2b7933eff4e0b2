/* What constants are worth, with the values that a pipeline has: lengths of arrays, rounds of loops and sizes
 * of workgroups hang on it, so the guard's view must be the driver's. */
#include "stand.h"
#include "worker/spirv/module.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>

static struct bhi_module module;

static void load(const char *modes, const char *decorations, const char *globals,
                 const struct bhi_spec_constant *given, uint32_t count) {
    char text[4096];
    snprintf(
        text, sizeof text,
        "OpCapability Shader\nOpCapability Int64\nOpCapability Int16\n"
        "OpMemoryModel Logical GLSL450\nOpEntryPoint GLCompute %%main \"main\"\n%s\n%s\n"
        "%%void = OpTypeVoid\n%%nothing = OpTypeFunction %%void\n%%bool = OpTypeBool\n"
        "%%uint = OpTypeInt 32 0\n%%int = OpTypeInt 32 1\n%%short = OpTypeInt 16 1\n"
        "%%ushort = OpTypeInt 16 0\n%%ulong = OpTypeInt 64 0\n%%v3 = OpTypeVector %%uint 3\n"
        "%%true = OpConstantTrue %%bool\n%%false = OpConstantFalse %%bool\n"
        "%%null = OpConstantNull %%uint\n%%nulls = OpConstantNull %%v3\n"
        "%%u_0 = OpConstant %%uint 0\n%%u_1 = OpConstant %%uint 1\n%%u_3 = OpConstant %%uint 3\n"
        "%%u_5 = OpConstant %%uint 5\n%%u_31 = OpConstant %%uint 31\n"
        "%%u_32 = OpConstant %%uint 32\n%%u_most = OpConstant %%uint 0xffffffff\n"
        "%%i_m7 = OpConstant %%int -7\n%%i_m1 = OpConstant %%int -1\n%%i_0 = OpConstant %%int 0\n"
        "%%i_2 = OpConstant %%int 2\n%%h_m2 = OpConstant %%short -2\n"
        "%%wide = OpConstant %%ulong 0x300000001\n"
        "%%pair = OpConstantComposite %%v3 %%u_3 %%u_5 %%u_0\n"
        "%%behind = OpConstant %%uint 7\n%s\n"
        "%%main = OpFunction %%void None %%nothing\n%%start = OpLabel\nOpReturn\nOpFunctionEnd\n",
        modes, decorations, globals);
    struct stand_module assembled = stand_assemble(text, 5);
    struct bhi_error error;
    BHT_TRUE(
        bhi_module_init(&module, assembled.code, assembled.words, "main", given, count, &error));
}

#define SIZE_1 "OpExecutionMode %main LocalSize 1 1 1"

/* The result of the only operation in |module|. */
static bool result(uint64_t *out) {
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module.code, module.words, at));) {
        if (bhi_spv_op(at) == SpvOpSpecConstantOp) {
            return bhi_module_constant(&module, at[2], out);
        }
    }
    BHT_FAIL("no operation");
}

TEST(operations_on_constants) {
    enum { NONE = 1 }; /* it has no result */
    static const struct {
        const char *text;
        uint64_t value;
        int none;
    } rows[] = {
        {"%uint UConvert %h_m2", 0xfffe, 0},
        {"%int SConvert %h_m2", 0xfffffffe, 0},
        {"%ushort UConvert %u_most", 0xffff, 0},
        {"%uint UConvert %wide", 1, 0},
        {"%int SNegate %i_2", 0xfffffffe, 0},
        {"%uint IAdd %u_most %u_3", 2, 0},
        {"%ulong IAdd %wide %wide", 0x600000002, 0},
        {"%uint IAdd %null %u_5", 5, 0},
        {"%uint ISub %u_3 %u_5", 0xfffffffe, 0},
        {"%uint IMul %u_5 %u_3", 15, 0},
        {"%uint UDiv %u_most %u_3", 0x55555555, 0},
        {"%uint UDiv %u_5 %u_0", 0, NONE},
        {"%uint UMod %u_5 %u_3", 2, 0},
        {"%uint UMod %u_5 %u_0", 0, NONE},
        {"%int SDiv %i_m7 %i_2", 0xfffffffd, 0},
        {"%int SDiv %i_m7 %i_0", 0, NONE},
        {"%int SDiv %i_m7 %i_m1", 0, NONE}, /* of the least number it has none */
        {"%int SRem %i_m7 %i_2", 0xffffffff, 0},
        {"%int SRem %i_m7 %i_0", 0, NONE},
        {"%int SMod %i_m7 %i_2", 0, NONE}, /* is not computed */
        {"%uint ShiftLeftLogical %u_5 %u_31", 0x80000000, 0},
        {"%uint ShiftLeftLogical %u_5 %u_32", 0, NONE},
        {"%uint ShiftRightLogical %u_most %u_31", 1, 0},
        {"%uint ShiftRightLogical %u_most %u_32", 0, NONE},
        {"%int ShiftRightArithmetic %i_m7 %i_2", 0xfffffffe, 0},
        {"%int ShiftRightArithmetic %i_m7 %u_32", 0, NONE},
        {"%uint Not %u_5", 0xfffffffa, 0},
        {"%uint BitwiseAnd %u_5 %u_3", 1, 0},
        {"%uint BitwiseOr %u_5 %u_3", 7, 0},
        {"%uint BitwiseXor %u_5 %u_3", 6, 0},
        {"%bool LogicalAnd %true %false", 0, 0},
        {"%bool LogicalAnd %true %true", 1, 0},
        {"%bool LogicalOr %true %false", 1, 0},
        {"%bool LogicalOr %false %false", 0, 0},
        {"%bool LogicalNotEqual %true %false", 1, 0},
        {"%bool LogicalNotEqual %true %true", 0, 0},
        {"%bool LogicalEqual %true %false", 0, 0},
        {"%bool LogicalEqual %false %false", 1, 0},
        {"%bool LogicalNot %true", 0, 0},
        {"%bool LogicalNot %false", 1, 0},
        {"%bool IEqual %u_5 %u_5", 1, 0},
        {"%bool IEqual %u_5 %u_3", 0, 0},
        {"%bool INotEqual %u_5 %u_5", 0, 0},
        {"%bool INotEqual %u_5 %u_3", 1, 0},
        {"%bool UGreaterThan %u_most %u_3", 1, 0},
        {"%bool UGreaterThan %u_3 %u_3", 0, 0},
        {"%bool UGreaterThanEqual %u_3 %u_3", 1, 0},
        {"%bool UGreaterThanEqual %u_3 %u_most", 0, 0},
        {"%bool ULessThan %u_3 %u_most", 1, 0},
        {"%bool ULessThan %u_3 %u_3", 0, 0},
        {"%bool ULessThanEqual %u_3 %u_3", 1, 0},
        {"%bool ULessThanEqual %u_most %u_3", 0, 0},
        {"%bool SGreaterThan %i_m7 %i_2", 0, 0},
        {"%bool SGreaterThan %i_2 %i_m7", 1, 0},
        {"%bool SGreaterThan %i_2 %i_2", 0, 0},
        {"%bool SGreaterThanEqual %i_2 %i_2", 1, 0},
        {"%bool SGreaterThanEqual %i_m7 %i_2", 0, 0},
        {"%bool SLessThan %i_m7 %i_2", 1, 0},
        {"%bool SLessThan %i_2 %i_2", 0, 0},
        {"%bool SLessThanEqual %i_2 %i_2", 1, 0},
        {"%bool SLessThanEqual %i_2 %i_m7", 0, 0},
        {"%uint Select %true %u_5 %u_3", 5, 0},
        {"%uint Select %false %u_5 %u_3", 3, 0},
        {"%uint CompositeExtract %pair 1", 5, 0},
        {"%uint CompositeExtract %pair 3", 0, NONE},
        {"%uint CompositeExtract %pair 5", 0, NONE}, /* where %behind lies */
        {"%uint CompositeExtract %nulls 0", 0, NONE},
        {"%v3 IAdd %pair %pair", 0, NONE},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char globals[128];
        uint64_t value = 0;
        snprintf(globals, sizeof globals, "%%x = OpSpecConstantOp %s\n", rows[i].text);
        load(SIZE_1, "", globals, NULL, 0);
        const bool has = result(&value);
        if (has == rows[i].none || (has && value != rows[i].value)) {
            BHT_FAIL("%s: %s 0x%llx", rows[i].text, has ? "is" : "has no result",
                     (unsigned long long)value);
        }
        bhi_module_fini(&module);
    }
}

/* As a module says, or as a pipeline does. */
TEST(values_of_a_pipeline) {
    static const struct {
        const char *constant, *operation;
        struct bhi_spec_constant given;
        uint64_t before, after;
    } rows[] = {
        {"OpSpecConstant %uint 5", "%uint IAdd %c %u_0", {7, 4, 9}, 5, 9},
        {"OpSpecConstant %uint 5", "%uint IAdd %c %u_0", {6, 4, 9}, 5, 5}, /* another one */
        {"OpSpecConstant %ulong 0x500000001", "%ulong IAdd %c %c", {7, 8, 4}, 0xa00000002, 8},
        {"OpSpecConstantTrue %bool", "%uint Select %c %u_5 %u_3", {7, 4, 0}, 5, 3},
        {"OpSpecConstantFalse %bool", "%uint Select %c %u_5 %u_3", {7, 4, 2}, 3, 5},
        {"OpSpecConstantTrue %bool", "%uint Select %c %u_5 %u_3", {7, 4, 2}, 5, 5},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        for (uint32_t count = 0; count < 2; count++) {
            char globals[256];
            uint64_t value;
            struct bhi_error error;
            snprintf(globals, sizeof globals, "%%c = %s\n%%x = OpSpecConstantOp %s\n",
                     rows[i].constant, rows[i].operation);
            load(SIZE_1, "OpDecorate %c SpecId 7\n", globals, &rows[i].given, count);
            BHT_TRUE(bhi_module_check_constants(&module, &error));
            BHT_TRUE(result(&value));
            BHT_EQ(value, count == 0 ? rows[i].before : rows[i].after);
            bhi_module_fini(&module);
        }
    }
}

TEST(values_of_another_size_are_refused) {
    static const struct {
        const char *constant;
        uint32_t size;
        bool good;
    } rows[] = {
        {"OpSpecConstant %uint 5", 4, true},   {"OpSpecConstant %uint 5", 8, false},
        {"OpSpecConstant %ulong 5", 8, true},  {"OpSpecConstant %ulong 5", 4, false},
        {"OpSpecConstant %ushort 5", 2, true}, {"OpSpecConstant %ushort 5", 4, false},
        {"OpSpecConstantTrue %bool", 4, true}, {"OpSpecConstantTrue %bool", 1, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const struct bhi_spec_constant given = {7, rows[i].size, 1};
        char globals[128];
        struct bhi_error error;
        snprintf(globals, sizeof globals, "%%c = %s\n", rows[i].constant);
        load(SIZE_1, "OpDecorate %c SpecId 7\n", globals, &given, 1);
        BHT_EQ(bhi_module_check_constants(&module, &error), rows[i].good);
        if (!rows[i].good) {
            BHT_EQ(error.told.reason, BH_REASON_SPECIALIZATION);
            BHT_EQ(error.told.value, rows[i].size);
        }
        bhi_module_fini(&module);
    }
}

TEST(sizes_of_workgroups) {
    static const char builtin[] = "OpDecorate %size BuiltIn WorkgroupSize\n";
    static const struct {
        const char *mode, *decorations, *globals;
        uint32_t size[3];
        const char *text; /* of the refusal; NULL: none */
    } rows[] = {
        {"OpExecutionMode %main LocalSize 2 3 4", "", "", {2, 3, 4}, NULL},
        {"OpExecutionModeId %main LocalSizeId %u_3 %u_5 %u_1", "", "", {3, 5, 1}, NULL},
        {"OpExecutionMode %main LocalSize 2 3 4",
         builtin,
         "%size = OpConstantComposite %v3 %u_5 %u_1 %u_3\n",
         {5, 1, 3},
         NULL},
        {"OpExecutionModeId %main LocalSizeId %u_3 %u_5 %u_1",
         builtin,
         "%size = OpConstantComposite %v3 %u_5 %u_1 %u_3\n",
         {5, 1, 3},
         NULL},
        {"OpExecutionModeId %main LocalSizeId %u_3 %wide %u_1", "", "", {3, UINT32_MAX, 1}, NULL},
        {"OpExecutionMode %main LocalSize 2 3 0", "", "", {0}, "has no workgroup size"},
        {"OpExecutionMode %main LocalSize 0 3 1", "", "", {0}, "has no workgroup size"},
        {"OpExecutionMode %main ContractionOff", "", "", {0}, "has no workgroup size"},
        {"OpExecutionModeId %main LocalSizeId %u_3 %c %u_1",
         "",
         "%c = OpSpecConstantOp %uint UDiv %u_5 %u_0\n",
         {0},
         "the workgroup size in y is not a constant that can be computed here"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        uint32_t size[3] = {0};
        struct bhi_error error;
        load(rows[i].mode, rows[i].decorations, rows[i].globals, NULL, 0);
        BHT_EQ(bhi_module_local_size(&module, size, &error), !rows[i].text);
        for (int axis = 0; !rows[i].text && axis < 3; axis++) {
            BHT_EQ(size[axis], rows[i].size[axis]);
        }
        if (rows[i].text) {
            BHT_STR_HAS(bhi_error_line(&error), rows[i].text);
        }
        bhi_module_fini(&module);
    }
}
