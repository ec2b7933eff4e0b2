/* The allow-lists of extensions and of instruction sets; those of capabilities are in
 * tests/backend/refusal_test.c, on a device. */
#include "stand.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
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
    struct bhi_fault fault = {.status = BH_OK};
    const bool ok = bhi_validate(&stand_device, module.code, module.words, "main", &fault);
    assert_int_equal(ok, text == NULL);
    if (text != NULL && strstr(fault.text, text) == NULL) {
        fail_msg("expected \"%s\"; got \"%s\"", text, fault.text);
    }
    assert_int_equal(fault.status, text == NULL ? BH_OK : BH_INVALID_KERNEL);
    stand_free(&module);
}

static void extensions(void **state) {
    (void)state;
    check("OpExtension \"SPV_KHR_storage_buffer_storage_class\"", NULL);
    check("OpExtension \"SPV_KHR_ray_query\"",
          "extension SPV_KHR_ray_query is not supported by this device, or not allowed "
          "(OpExtension): compile the kernel without it");
    check("OpExtension \"SPV_KHR_storage_buffer_storage_clas\"", "storage_clas is not supported");
    check("OpExtension \"SPV_\\1b[31m\"", "extension SPV_");
    check("OpExtension \"\"", "extension ");
}

static void instruction_sets(void **state) {
    (void)state;
    check("%i = OpExtInstImport \"GLSL.std.450\"", NULL);
    check("OpExtension \"SPV_KHR_non_semantic_info\"\n"
          "%i = OpExtInstImport \"NonSemantic.Anything\"",
          NULL);
    check("%i = OpExtInstImport \"OpenCL.std\"",
          "the instruction set OpenCL.std is not allowed (OpExtInstImport)");
    check("%i = OpExtInstImport \"SPV_AMD_shader_trinary_minmax\"",
          "SPV_AMD_shader_trinary_minmax is not allowed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extensions),
        cmocka_unit_test(instruction_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
