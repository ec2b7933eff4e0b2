#include "worker/compiler/optimize.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <spirv-tools/optimizer.hpp>
#include <vector>

static bool optimize(const uint32_t *code, size_t words, uint32_t **out_code, size_t *out_words) {
    const uint32_t spirv_1_4 = 0x00010400;
    spvtools::Optimizer optimizer(words > 1 && code[1] >= spirv_1_4 ? SPV_ENV_VULKAN_1_1_SPIRV_1_4
                                                                    : SPV_ENV_VULKAN_1_1);
    optimizer.SetMessageConsumer(
        [](spv_message_level_t, const char *, const spv_position_t &, const char *) {});
    optimizer.RegisterPerformancePasses();
    spvtools::OptimizerOptions options;
    options.set_run_validator(false); /* who uses the module validates it */
    options.set_preserve_bindings(true);
    options.set_preserve_spec_constants(true);
    std::vector<uint32_t> optimized;
    if (!optimizer.Run(code, words, &optimized, options)) {
        return false;
    }
    auto *copy = static_cast<uint32_t *>(std::malloc(optimized.size() * sizeof(uint32_t)));
    if (copy == nullptr) {
        return false;
    }
    std::memcpy(copy, optimized.data(), optimized.size() * sizeof(uint32_t));
    *out_code = copy;
    *out_words = optimized.size();
    return true;
}

bool bhi_optimize(const uint32_t *code, size_t words, uint32_t **out_code, size_t *out_words) {
    try {
        return optimize(code, words, out_code, out_words);
    } catch (const std::exception &) { /* it has no memory, or did not expect the module */
        return false;
    }
}
