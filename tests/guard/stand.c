#include "stand.h"

#include "worker/spirv/tools.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

static SpvCapability everything[7000];
static const char *const extensions[] = {"SPV_KHR_storage_buffer_storage_class",
                                         "SPV_KHR_variable_pointers",
                                         "SPV_KHR_vulkan_memory_model",
                                         "SPV_KHR_8bit_storage",
                                         "SPV_KHR_16bit_storage",
                                         "SPV_KHR_non_semantic_info"};
struct bhi_spirv_target stand_device = {
    .api_version = VK_API_VERSION_1_3,
    .capabilities = everything,
    .capability_count = 7000,
    .extensions = extensions,
    .extension_count = sizeof extensions / sizeof *extensions,
    .scalar_block_layout = true,
    .uniform_standard_layout = true,
    .workgroup_scalar_layout = true,
    .local_size_id = true,
};

__attribute__((constructor)) static void list_everything(void) {
    for (int i = 0; i < 7000; i++) {
        everything[i] = (SpvCapability)i;
    }
}

struct stand_module stand_assemble(const char *text, unsigned minor) {
    static const spv_target_env environments[] = {
        SPV_ENV_UNIVERSAL_1_0, SPV_ENV_UNIVERSAL_1_1, SPV_ENV_UNIVERSAL_1_2, SPV_ENV_UNIVERSAL_1_3,
        SPV_ENV_UNIVERSAL_1_4, SPV_ENV_UNIVERSAL_1_5, SPV_ENV_UNIVERSAL_1_6};
    spv_context context = spvContextCreate(environments[minor]);
    spv_binary binary = NULL;
    spv_diagnostic diagnostic = NULL;
    spv_result_t result = spvTextToBinary(context, text, strlen(text), &binary, &diagnostic);
    if (result != SPV_SUCCESS) {
        BHT_FAIL("line %zu: %s", diagnostic->position.line + 1, diagnostic->error);
    }
    struct stand_module module = {bht_own(malloc(binary->wordCount * 4)), binary->wordCount};
    memcpy(module.code, binary->code, binary->wordCount * 4);
    spvDiagnosticDestroy(diagnostic);
    spvBinaryDestroy(binary);
    spvContextDestroy(context);
    return module;
}

struct stand_module stand_compute(const char *globals, const char *body, const char *functions,
                                  unsigned minor) {
    return stand_compute_with("", globals, "", body, functions, minor);
}

struct stand_module stand_compute_with(const char *decorations, const char *globals,
                                       const char *interface, const char *body,
                                       const char *functions, unsigned minor) {
    static const char format[] = "OpCapability Shader\n%sOpMemoryModel Logical GLSL450\n"
                                 "OpEntryPoint GLCompute %%main \"main\" %s %s\n"
                                 "OpExecutionMode %%main LocalSize 1 1 1\n"
                                 "OpDecorate %%array ArrayStride 4\n"
                                 "OpMemberDecorate %%block 0 Offset 0\nOpDecorate %%block Block\n"
                                 "OpDecorate %%out DescriptorSet 0\nOpDecorate %%out Binding 0\n%s"
                                 "%%void = OpTypeVoid\n%%bool = OpTypeBool\n"
                                 "%%int = OpTypeInt 32 1\n%%uint = OpTypeInt 32 0\n"
                                 "%%float = OpTypeFloat 32\n%%nothing = OpTypeFunction %%void\n"
                                 "%%true = OpConstantTrue %%bool\n"
                                 "%%false = OpConstantFalse %%bool\n%%u_0 = OpConstant %%uint 0\n"
                                 "%%u_1 = OpConstant %%uint 1\n%%u_2 = OpConstant %%uint 2\n"
                                 "%%u_8 = OpConstant %%uint 8\n%%u_10 = OpConstant %%uint 10\n"
                                 "%%u_100 = OpConstant %%uint 100\n"
                                 "%%u_5000 = OpConstant %%uint 5000\n%%i_0 = OpConstant %%int 0\n"
                                 "%%i_1 = OpConstant %%int 1\n%%i_10 = OpConstant %%int 10\n"
                                 "%%i_m1 = OpConstant %%int -1\n"
                                 "%%array = OpTypeRuntimeArray %%uint\n"
                                 "%%block = OpTypeStruct %%array\n"
                                 "%%p_block = OpTypePointer StorageBuffer %%block\n"
                                 "%%p_uint = OpTypePointer StorageBuffer %%uint\n"
                                 "%%out = OpVariable %%p_block StorageBuffer\n%s\n"
                                 "%%main = OpFunction %%void None %%nothing\n"
                                 "%%start = OpLabel\n%s\nOpFunctionEnd\n%s\n";
    char text[16384];
    const int length =
        snprintf(text, sizeof text, format,
                 minor < 3 ? "OpExtension \"SPV_KHR_storage_buffer_storage_class\"\n" : "",
                 minor >= 4 ? "%out" : "", interface, decorations, globals, body, functions);
    BHT_TRUE(length > 0 && (size_t)length < sizeof text);
    return stand_assemble(text, minor);
}

struct stand_module stand_load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        BHT_FAIL("%s: cannot be opened", path);
    }
    static uint32_t code[1 << 18];
    struct stand_module module = {.words = fread(code, sizeof *code, BHT_COUNT(code), file)};
    fclose(file);
    BHT_WITHIN(module.words, 20, BHT_COUNT(code) - 1);
    module.code = memcpy(bht_own(malloc(module.words * 4)), code, module.words * 4);
    return module;
}

static void assert_valid(const uint32_t *code, size_t words, const char *when) {
    struct bhi_error error;
    if (!bhi_validate(&stand_device, code, words, "main", &error)) {
        fprintf(stderr, "%s\n", stand_text(code, words));
        BHT_FAIL("not valid %s: %s", when, bhi_error_line(&error));
    }
}

static const struct bhi_guard_options plain = {.entry = "main", .max_sets = 8};

struct bhi_guarded stand_guard_with(const struct stand_module *module,
                                    const struct bhi_guard_options *options) {
    assert_valid(module->code, module->words, "before");
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (!bhi_guard(module->code, module->words, options, &guarded, &error)) {
        BHT_FAIL("refused: %s", bhi_error_line(&error));
    }
    bht_own(guarded.code);
    assert_valid(guarded.code, guarded.words, "after");
    BHT_EQ(guarded.loops, guarded.left_alone + guarded.covered + guarded.lowered + guarded.polled);
    return guarded;
}

struct bhi_guarded stand_guard(const struct stand_module *module) {
    return stand_guard_with(module, &plain);
}

bool stand_is_valid_here(const struct stand_module *module, const char *text) {
    struct bhi_error error;
    if (bhi_validate(&stand_device, module->code, module->words, "main", &error)) {
        return true;
    }
    if (error.status != BH_INVALID_KERNEL || !strstr(bhi_error_line(&error), text)) {
        BHT_FAIL("expected valid, or \"%s\"; got %d \"%s\"", text, (int)error.status,
                 bhi_error_line(&error));
    }
    return false;
}

void stand_refuses(const struct stand_module *module, bh_status status, const char *text) {
    assert_valid(module->code, module->words, "before");
    stand_guard_refuses(module, status, text);
}

void stand_guard_refuses(const struct stand_module *module, bh_status status, const char *text) {
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (bhi_guard(module->code, module->words, &plain, &guarded, &error)) {
        BHT_FAIL("not refused; expected \"%s\"", text);
    }
    if (error.status != status || !strstr(bhi_error_line(&error), text)) {
        BHT_FAIL("expected %d \"%s\"; got %d \"%s\"", (int)status, text, (int)error.status,
                 bhi_error_line(&error));
    }
}

struct stand_module stand_capable(const struct stand_module *module, SpvCapability capability) {
    struct stand_module more = {bht_own(malloc(module->words * 4 + 8)), module->words + 2};
    memcpy(more.code, module->code, 20);
    more.code[5] = 2u << SpvWordCountShift | SpvOpCapability;
    more.code[6] = (uint32_t)capability;
    memcpy(&more.code[7], &module->code[5], module->words * 4 - 20);
    return more;
}

char *stand_text(const uint32_t *code, size_t words) {
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    spv_text text = NULL;
    BHT_EQ(spvBinaryToText(context, code, words,
                           SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_NO_HEADER,
                           &text, NULL),
           SPV_SUCCESS);
    char *copy = bht_own(strdup(text->str));
    spvTextDestroy(text);
    spvContextDestroy(context);
    return copy;
}

unsigned stand_count(const uint32_t *code, size_t words, SpvOp opcode) {
    unsigned count = 0;
    for (size_t i = 5; i < words; i += code[i] >> SpvWordCountShift) {
        count += (code[i] & SpvOpCodeMask) == (uint32_t)opcode;
    }
    return count;
}
