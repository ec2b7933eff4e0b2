/* Any words as a module: the limits look at them whatever they are; what the validator takes is
 * reflected and goes through the guard. Each refuses it with a reason; or the guard makes a module
 * that the validator takes, too.
 */
#include "fuzz.h"
#include "worker/guard/guard.h"
#include "worker/spirv/debug_info.h"
#include "worker/spirv/limits.h"
#include "worker/spirv/reflect.h"
#include "worker/spirv/validate.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CAPABILITIES 7000

static const struct bhi_spirv_target *everything(void) {
    static SpvCapability capabilities[CAPABILITIES];
    static const char *const extensions[] = {
        "SPV_KHR_storage_buffer_storage_class", "SPV_KHR_variable_pointers", "SPV_KHR_8bit_storage",
        "SPV_KHR_16bit_storage", "SPV_KHR_vulkan_memory_model"};
    static struct bhi_spirv_target target = {
        .api_version = VK_API_VERSION_1_3,
        .capabilities = capabilities,
        .capability_count = CAPABILITIES,
        .extensions = extensions,
        .extension_count = sizeof extensions / sizeof *extensions,
        .scalar_block_layout = true,
        .uniform_standard_layout = true,
        .workgroup_scalar_layout = true,
        .local_size_id = true,
    };
    for (int i = 0; i < CAPABILITIES; i++) {
        capabilities[i] = (SpvCapability)i;
    }
    return &target;
}

static void check_refusal(const struct bhi_error *error) {
    FUZZ_CHECK(error->status == BH_INVALID_KERNEL || error->status == BH_LIMIT_EXCEEDED ||
               error->status == BH_OUT_OF_HOST_MEMORY);
    FUZZ_CHECK(bhi_error_line(error)[0] != '\0' &&
               strlen(bhi_error_line(error)) < sizeof error->told.text);
}

static void guard(const uint32_t *code, size_t words, unsigned how) {
    const struct bhi_spec_constant constants[] = {{0, 4, 7}, {1, 4, 0xffffffffu}, {2, 4, 1}};
    const struct bhi_guard_options options = {
        .entry = "main",
        .constants = constants,
        .constant_count = how & 1 ? 3 : 0,
        .max_sets = 4,
        .zero_initialize = (how & 2) != 0,
        .count_iterations = (how & 4) != 0,
        .in_parts = (how & 8) != 0,
        .noise = how & 16 ? how : 0,
    };
    struct bhi_guarded guarded;
    struct bhi_error error;
    if (!bhi_guard_limits_sizes(code, words, "main", constants, options.constant_count, &error) ||
        !bhi_guard(code, words, &options, &guarded, &error)) {
        check_refusal(&error);
        return;
    }
    FUZZ_CHECK(guarded.set < options.max_sets && guarded.words > words);
    FUZZ_CHECK(bhi_validate(everything(), guarded.code, guarded.words, "main", &error));
    bhi_guarded_fini(&guarded);
}

static void reflect(const uint32_t *code, size_t words) {
    static struct bhi_module_bindings bindings;
    struct bhi_error error;
    if (!bhi_reflect(code, words, "main", NULL, 0, &bindings, &error)) {
        check_refusal(&error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t words = size / 4;
    /* A copy of exactly the size, so that a sanitizer sees a read past its end. */
    uint32_t *code = malloc(words > 0 ? words * 4 : 1);
    struct bhi_error error;
    unsigned how = 0;
    FUZZ_CHECK(code);
    memcpy(code, data, words * 4);
    for (size_t i = 0; i < size; i++) {
        how = how * 31 + data[i];
    }
    words = bhi_debug_info_normalise(code, words);
    if (!bhi_guard_limits(code, words, &error) ||
        !bhi_validate(everything(), code, words, "main", &error)) {
        check_refusal(&error);
    } else {
        reflect(code, words);
        guard(code, words, how);
    }
    free(code);
    return 0;
}
