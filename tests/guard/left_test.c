/* Which specialization constants were left at their defaults, in words. */
#include "stand.h"
#include "worker/compiler/spec_defaults.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

static void check(const char *decorations, const char *globals, const char *modes,
                  const struct bhi_spec_constant *given, uint32_t count, const char *text) {
    char source[8192], out[320];
    snprintf(source, sizeof source,
             "OpCapability Shader\nOpCapability Int64\nOpCapability Float64\nOpCapability Int16\n"
             "OpCapability Float16\nOpMemoryModel Logical GLSL450\n"
             "OpEntryPoint GLCompute %%main \"main\"\n%s\n%s\n"
             "%%void = OpTypeVoid\n%%fn = OpTypeFunction %%void\n%%uint = OpTypeInt 32 0\n"
             "%%bool = OpTypeBool\n%%v3 = OpTypeVector %%uint 3\n%%u1 = OpConstant %%uint 1\n%s\n"
             "%%main = OpFunction %%void None %%fn\n%%start = OpLabel\nOpReturn\nOpFunctionEnd\n",
             modes, decorations, globals);
    struct stand_module assembled = stand_assemble(source, 5);
    struct bhi_module module;
    struct bhi_error error;
    if (!bhi_validate(&stand_device, assembled.code, assembled.words, "main", &error) ||
        !bhi_module_init(&module, assembled.code, assembled.words, "main", given, count, &error)) {
        BHT_FAIL("%s", bhi_error_line(&error));
    }
    bhi_spec_defaults(&module, 0, out, sizeof out);
    BHT_STR_EQ(out, text);
    bhi_module_fini(&module);
}

#define SIZE_1 "OpExecutionMode %main LocalSize 1 1 1"
#define NAME   "OpName %a \"steps\"\n"
#define ONE    "specialization constant 7 (\"steps\") was left at its default "

TEST(each_type) {
    static const struct {
        const char *type, *value, *text;
    } cases[] = {
        {"%t = OpTypeInt 16 1", "OpSpecConstant %t -3", "-3"},
        {"%t = OpTypeInt 32 1", "OpSpecConstant %t -4", "-4"},
        {"", "OpSpecConstant %uint 4294967295", "4294967295"},
        {"%t = OpTypeInt 64 0", "OpSpecConstant %t 8589934593", "8589934593"},
        {"%t = OpTypeFloat 32", "OpSpecConstant %t 1.5", "1.5"},
        {"%t = OpTypeFloat 64", "OpSpecConstant %t 0.25", "0.25"},
        {"%t = OpTypeFloat 16", "OpSpecConstant %t 1", "0x3c00"},
        {"", "OpSpecConstantTrue %bool", "true"},
        {"", "OpSpecConstantFalse %bool", "false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char globals[128], text[128];
        snprintf(globals, sizeof globals, "%s\n%%a = %s\n", cases[i].type, cases[i].value);
        snprintf(text, sizeof text, ONE "%s", cases[i].text);
        check(NAME "OpDecorate %a SpecId 7", globals, SIZE_1, NULL, 0, text);
    }
}

TEST(which_were_left) {
    static const struct bhi_spec_constant given[] = {{7, 4, 1}, {1, 4, 8}, {9, 4, 2}};
    static const char two[] = "%a = OpSpecConstant %uint 5\n%b = OpSpecConstant %uint 6\n"
                              "%size = OpSpecConstantComposite %v3 %b %b %u1\n";
    static const char marks[] = NAME "OpDecorate %a SpecId 7\nOpDecorate %b SpecId 1\n"
                                     "OpDecorate %size BuiltIn WorkgroupSize\n";
    check("", "", SIZE_1, NULL, 0, "");
    check(marks, two, SIZE_1, given, 3, "");
    check(marks, two, SIZE_1, given, 1,
          "specialization constant 1 (local size x) was left at its default 6");
    check(marks, two, SIZE_1, NULL, 0,
          "specialization constants were left at their defaults: 1 (local size x) 6, 7 (\"steps\") "
          "5");
    /* As a mode, and without the builtin. */
    check("OpDecorate %b SpecId 1\n", "%b = OpSpecConstant %uint 6\n",
          "OpExecutionModeId %main LocalSizeId %u1 %b %u1", NULL, 0,
          "specialization constant 1 (local size y) was left at its default 6");
    /* A SpecId that two have; more than are named; more than fit. */
    char many[4096] = "", ids[4096] = "";
    for (int i = 0; i < 6; i++) {
        char line[64];
        snprintf(line, sizeof line, "%%c%d = OpSpecConstant %%uint %d\n", i, 10 + i);
        strcat(many, line);
        snprintf(line, sizeof line, "OpDecorate %%c%d SpecId %d\n", i, i / 5 * 4 + i % 5);
        strcat(ids, line);
    }
    check(
        ids, many, SIZE_1, NULL, 0,
        "specialization constants were left at their defaults: 0 10, 1 11, 2 12, 3 13, and 1 more");
}
