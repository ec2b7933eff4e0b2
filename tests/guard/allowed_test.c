/* The allow-lists of extensions, of instruction sets and of modes of floats; those of capabilities
 * are in tests/backend/refusal_test.c, on a device. */
#include "stand.h"

#include "worker/spirv/debug_info.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A compute module with |line| behind its capability. */
static void check(const char *line, const char *text) {
    char source[1024];
    snprintf(source, sizeof source,
             "OpCapability Shader\n%s\nOpMemoryModel Logical GLSL450\n"
             "OpEntryPoint GLCompute %%main \"main\"\nOpExecutionMode %%main LocalSize 1 1 1\n"
             "%%void = OpTypeVoid\n%%fn = OpTypeFunction %%void\n"
             "%%main = OpFunction %%void None %%fn\n%%start = OpLabel\nOpReturn\nOpFunctionEnd\n",
             line);
    struct stand_module module = stand_assemble(source, 3);
    struct bhi_error error = {.status = BH_OK};
    const bool ok = bhi_validate(&stand_device, module.code, module.words, "main", &error);
    BHT_EQ(ok, !text);
    if (text && !strstr(bhi_error_line(&error), text)) {
        BHT_FAIL("expected \"%s\"; got \"%s\"", text, bhi_error_line(&error));
    }
    BHT_EQ(error.status, !text ? BH_OK : BH_INVALID_KERNEL);
}

TEST(extensions) {
    check("OpExtension \"SPV_KHR_storage_buffer_storage_class\"", NULL);
    check("OpExtension \"SPV_KHR_ray_query\"",
          "extension SPV_KHR_ray_query is not supported by this device, or not allowed "
          "(OpExtension): compile the kernel without it");
    check("OpExtension \"SPV_KHR_storage_buffer_storage_clas\"", "storage_clas is not supported");
    check("OpExtension \"SPV_\\1b[31m\"", "extension SPV_");
    check("OpExtension \"\"", "extension ");
}

TEST(instruction_sets) {
    check("%i = OpExtInstImport \"GLSL.std.450\"", NULL);
    check("OpExtension \"SPV_KHR_non_semantic_info\"\n"
          "%i = OpExtInstImport \"NonSemantic.Anything\"",
          NULL);
    check("%i = OpExtInstImport \"OpenCL.std\"",
          "the instruction set OpenCL.std is not allowed (OpExtInstImport)");
    check("%i = OpExtInstImport \"SPV_AMD_shader_trinary_minmax\"",
          "SPV_AMD_shader_trinary_minmax is not allowed");
}

/* Debug information that is newer than the validator: what slangc, dxc and clspv write. */
TEST(debug_information_is_normalised) {
    static const char *const head = "OpCapability Shader\n"
                                    "OpExtension \"SPV_KHR_non_semantic_info\"\n"
                                    "%set = OpExtInstImport \"NonSemantic.Shader.DebugInfo.100\"\n"
                                    "OpMemoryModel Logical GLSL450\n"
                                    "OpEntryPoint GLCompute %main \"main\"\n"
                                    "OpExecutionMode %main LocalSize 1 1 1\n"
                                    "%text = OpString \"a.slang\"\nOpSource Unknown 1\n"
                                    "OpName %source \"source\"\n%void = OpTypeVoid\n"
                                    "%source = OpExtInst %void %set DebugSource %text\n"
                                    "%fn = OpTypeFunction %void\n"
                                    "%main = OpFunction %void None %fn\n%start = OpLabel\n"
                                    "OpReturn\nOpFunctionEnd\n";
    static const struct {
        uint32_t language, instruction, opcode;
        const char *why; /* what a validator of any age says of it unless it is normalised */
    } cases[] = {
        {0, 35, SpvOpExtInst, NULL},
        {11, 35, SpvOpExtInst, NULL}, /* Slang, which newer validators know */
        {99, 35, SpvOpExtInst, "language operand: 99"},
        {0, 35, 4433, NULL}, /* OpExtInstWithForwardRefsKHR, likewise */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stand_module module = stand_assemble(head, 3);
        struct bhi_error error = {.status = BH_OK};
        for (size_t k = 5; k < module.words;) {
            uint32_t *at = &module.code[k];
            k += at[0] >> SpvWordCountShift;
            if ((at[0] & SpvOpCodeMask) == SpvOpSource) {
                at[1] = cases[i].language;
            } else if ((at[0] & SpvOpCodeMask) == SpvOpExtInst) {
                at[0] = (at[0] & ~(uint32_t)SpvOpCodeMask) | cases[i].opcode;
                at[4] = cases[i].instruction;
            }
        }
        if (cases[i].why) {
            BHT_TRUE(!bhi_validate(&stand_device, module.code, module.words, "main", &error));
            BHT_STR_HAS(bhi_error_line(&error), cases[i].why);
        }
        const size_t words = bhi_debug_info_normalise(module.code, module.words);
        BHT_LT(words, module.words);
        if (!bhi_validate(&stand_device, module.code, words, "main", &error)) {
            BHT_FAIL("case %zu: %s", i, bhi_error_line(&error));
        }
        BHT_EQ(bhi_debug_info_normalise(module.code, words), words);
        /* What is cut anywhere stays as it is, and nothing is read beyond it. */
        for (size_t cut = 0; cut < words; cut++) {
            uint32_t *part = malloc(cut ? cut * sizeof *part : 1);
            memcpy(part, module.code, cut * sizeof *part);
            BHT_EQ(bhi_debug_info_normalise(part, cut), cut);
            free(part);
        }
    }
}

/* A target that has Shader alone, and |floats|. */
static void check_on(const struct bhi_float_modes *floats, const char *capabilities,
                     const char *modes, uint32_t schema, const char *text) {
    static const SpvCapability plain[] = {SpvCapabilityShader,
                                          SpvCapabilityDenormPreserve,
                                          SpvCapabilityDenormFlushToZero,
                                          SpvCapabilitySignedZeroInfNanPreserve,
                                          SpvCapabilityRoundingModeRTE,
                                          SpvCapabilityRoundingModeRTZ};
    struct bhi_spirv_target target = stand_device;
    target.capabilities = plain;
    target.capability_count = sizeof plain / sizeof *plain;
    target.floats = *floats;
    char source[2048];
    snprintf(source, sizeof source,
             "OpCapability Shader\n%s\nOpMemoryModel Logical GLSL450\n"
             "OpEntryPoint GLCompute %%main \"main\"\nOpEntryPoint GLCompute %%other \"other\"\n"
             "OpExecutionMode %%main LocalSize 1 1 1\nOpExecutionMode %%other LocalSize 1 1 1\n%s\n"
             "%%void = OpTypeVoid\n%%fn = OpTypeFunction %%void\n"
             "%%main = OpFunction %%void None %%fn\n%%start = OpLabel\nOpReturn\nOpFunctionEnd\n"
             "%%other = OpFunction %%void None %%fn\n%%begin = OpLabel\nOpReturn\nOpFunctionEnd\n",
             capabilities, modes);
    struct stand_module module = stand_assemble(source, 4);
    module.code[4] = schema;
    struct bhi_error error = {.status = BH_OK};
    const bool ok = bhi_validate(&target, module.code, module.words, "main", &error);
    if (ok != (!text) || !strstr(bhi_error_line(&error), ok ? "" : text)) {
        BHT_FAIL("%s: expected \"%s\"; got \"%s\"", modes, text ? text : "valid",
                 bhi_error_line(&error));
    }
    BHT_EQ(error.status, !text ? BH_OK : BH_INVALID_KERNEL);
}

TEST(capabilities_have_names) {
    static const struct bhi_float_modes none;
    check_on(&none, "OpCapability ImageCubeArray", "", 0, "capability ImageCubeArray (34) is not");
    check_on(&none, "OpCapability Geometry\n", "", 0, "capability Geometry (2) is not supported");
    check_on(&none, "OpCapability StorageUniformBufferBlock16", "", 0,
             "capability StorageBuffer16BitAccess (4433) is not"); /* not its alias */
}

TEST(the_schema_word) {
    static const struct bhi_float_modes none;
    check_on(&none, "", "", 0, NULL);
    check_on(&none, "", "", 0x80000000u, "the header's schema word (word 4) is 0x80000000");
}

#define PRESERVE  "OpCapability DenormPreserve\nOpCapability DenormFlushToZero\n"
#define ROUND     "OpCapability RoundingModeRTE\nOpCapability RoundingModeRTZ\n"
#define ASK(mode) "OpExecutionMode %main " mode "\n"

TEST(modes_of_floats) {
    const struct bhi_float_modes all = {{112, 112, 112, 112, 112}, BHI_FLOAT_ALL, BHI_FLOAT_ALL};
    struct bhi_float_modes some = all, tied = all, one = all;
    const struct {
        const char *name, *capability;
        uint8_t *widths;
    } modes[] = {
        {"DenormPreserve", "OpCapability DenormPreserve", &some.widths[0]},
        {"DenormFlushToZero", "OpCapability DenormFlushToZero", &some.widths[1]},
        {"SignedZeroInfNanPreserve", "OpCapability SignedZeroInfNanPreserve", &some.widths[2]},
        {"RoundingModeRTE", "OpCapability RoundingModeRTE", &some.widths[3]},
        {"RoundingModeRTZ", "OpCapability RoundingModeRTZ", &some.widths[4]}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (unsigned width = 16; width <= 64; width *= 2) {
            char mode[128], text[160], other[128];
            snprintf(mode, sizeof mode, "OpExecutionMode %%main %s %u\n", modes[i].name, width);
            snprintf(other, sizeof other, "OpExecutionMode %%other %s %u\n", modes[i].name, width);
            snprintf(text, sizeof text,
                     "execution mode %s for floats of %u bits is not supported by this device "
                     "(shader%sFloat%u): compile the kernel without it",
                     modes[i].name, width, modes[i].name, width);
            check_on(&all, modes[i].capability, mode, 0, NULL);
            *modes[i].widths = (uint8_t)(112 - width);
            check_on(&some, modes[i].capability, mode, 0, text);
            check_on(&some, modes[i].capability, other, 0, NULL); /* not the one that runs */
            *modes[i].widths = (uint8_t)width;
            check_on(&some, modes[i].capability, mode, 0, NULL);
            some = all;
        }
    }
    check_on(&all, ROUND, ASK("RoundingModeRTE 8"), 0, "floats of 8 bits: there are 16, 32 and 64");
    check_on(&all, ROUND, ASK("RoundingModeRTE 32") ASK("RoundingModeRTZ 32"), 0,
             "RoundingModeRTE and RoundingModeRTZ exclude each other, and both are declared");
    check_on(&all, PRESERVE, ASK("DenormPreserve 16") ASK("DenormFlushToZero 32"), 0, NULL);
    check_on(&all, PRESERVE, ASK("DenormPreserve 16") ASK("DenormFlushToZero 64"), 0, NULL);

    tied.denorms = tied.rounding = BHI_FLOAT_32_ONLY;
    check_on(&tied, PRESERVE, ASK("DenormPreserve 16") ASK("DenormFlushToZero 32"), 0, NULL);
    check_on(&tied, PRESERVE, ASK("DenormFlushToZero 16") ASK("DenormPreserve 64"), 0,
             "execution mode DenormPreserve is declared for floats of 64 bits, and "
             "DenormFlushToZero for those "
             "of 16 bits; this device has the same mode for both (denormBehaviorIndependence)");
    check_on(&tied, ROUND, ASK("RoundingModeRTE 16") ASK("RoundingModeRTZ 64"), 0,
             "this device has the same mode for both (roundingModeIndependence)");
    one.denorms = one.rounding = BHI_FLOAT_NONE;
    check_on(&one, PRESERVE, ASK("DenormPreserve 16") ASK("DenormFlushToZero 32"), 0,
             "denormBehaviorIndependence");
    check_on(&one, ROUND, ASK("RoundingModeRTE 16") ASK("RoundingModeRTE 32"), 0, NULL);
}
