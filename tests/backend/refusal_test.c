/* Kernels that are refused: the status, and a text that says what to mend. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <spirv/unified1/spirv.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

static void refused_kernel(const uint32_t *code, size_t bytes, const char *entry, bh_status status,
                           const char *text) {
    rig_kernel_entry(1, code, bytes, entry, NULL, 0);
    for (int twice = 0; twice < 2; twice++) { /* it stays refused, with the same text */
        rig_begin();
        rig_prepare(1);
        rig_run_fails(status, 0, text);
    }
    rig_no_reflection();
}

TEST(kernels_out_of_scope) {
    refused_kernel(CODE(pointers), "main", BH_INVALID_KERNEL, "physical storage buffer pointers");
    refused_kernel(CODE(clock), "main", BH_INVALID_KERNEL,
                   "capability ShaderClockKHR (5055) is not supported");
    refused_kernel(CODE(array_of_unknown), "main", BH_INVALID_KERNEL,
                   "capability RuntimeDescriptorArray (5302) is not supported");
    refused_kernel(
        CODE(image), "main", BH_INVALID_KERNEL,
        "set 1 binding 4 (\"picture\") is a storage image or texel buffer; storage images "
        "and samplers are out of scope");
    refused_kernel(CODE(sampler), "main", BH_INVALID_KERNEL,
                   "set 0 binding 6 (\"lookup\") is a combined image sampler");
    refused_kernel(CODE(kind_clash), "main", BH_INVALID_KERNEL,
                   "declared as one kind of buffer, and as another");
    refused_kernel(CODE(count_clash), "main", BH_INVALID_KERNEL, "declare the same number");
}

TEST(entry_points) {
    refused_kernel(CODE(add), "mane", BH_INVALID_KERNEL, "there is no entry point \"mane\"");
    refused_kernel(CODE(vertex), "main", BH_INVALID_KERNEL,
                   "entry point \"main\" is not for compute (execution model Vertex)");
}

TEST(kernels_over_limits) {
    refused_kernel(CODE(big_push), "main", BH_LIMIT_EXCEEDED, "maxPushConstantsSize");
    refused_kernel(CODE(big_push), "main", BH_LIMIT_EXCEEDED, "bytes of push constants: 1024");
    char shared[128];
    snprintf(shared, sizeof shared,
             "bytes of shared memory: 1048576, the device allows %u (maxComputeSharedMemorySize)",
             bhi_vk(rig.backend)->device.limits.maxComputeSharedMemorySize);
    refused_kernel(CODE(big_shared), "main", BH_LIMIT_EXCEEDED, shared);

    for (size_t i = 0; i < 3; i++) {
        rig_open(NULL);
        const uint32_t *most = bhi_vk(rig.backend)->device.limits.maxComputeWorkGroupSize;
        char invocations[64];
        snprintf(invocations, sizeof invocations, "invocations in a workgroup: %u",
                 most[0] * most[1] * 2);
        const struct {
            uint32_t x, y;
            const char *text;
        } sizes[] = {
            {1u << 20, 1, "workgroup size in x: 1048576"},
            {1, 1u << 20, "workgroup size in y: 1048576"},
            {most[0], most[1], invocations},
        };
        const struct bhi_spec_constant constants[] = {{0, 4, sizes[i].x}, {1, 4, sizes[i].y}};
        rig_kernel_entry(1, CODE(spec), "main", constants, 2);
        rig_begin();
        rig_prepare(1);
        rig_run_fails(BH_LIMIT_EXCEEDED, 0, sizes[i].text);
    }
}

TEST(specialization_of_the_wrong_size) {
    const struct bhi_spec_constant constant = {2, 8, 1};
    rig_kernel_entry(1, CODE(spec), "main", &constant, 1);
    rig_begin();
    rig_prepare(1);
    rig_run_fails(BH_INVALID_KERNEL, 0,
                  "specialization constant 2 has 4 bytes in the module; 8 were given");
    const struct bhi_spec_constant zero = {0, 4, 0};
    rig_kernel_entry(2, CODE(spec), "main", &zero, 1);
    rig_begin();
    rig_prepare(2);
    rig_run_fails(BH_INVALID_KERNEL, 0, "workgroup size");
}

/* saxpy, asking for |mode| of floats of |width| bits. Returns the bytes. */
static size_t with_mode(uint32_t code[1024], SpvExecutionMode mode, uint32_t width) {
    const uint32_t capability = (uint32_t)mode - SpvExecutionModeDenormPreserve +
                                SpvCapabilityDenormPreserve; /* in the same order */
    size_t at = 5, words = sizeof kernel_saxpy / 4;
    BHT_LT(words + 6, 1024);
    memcpy(code, kernel_saxpy, sizeof kernel_saxpy);
    uint32_t function = 0;
    for (; (code[at] & 0xffff) != SpvOpExecutionMode; at += code[at] >> 16) {
        function = (code[at] & 0xffff) == SpvOpEntryPoint ? code[at + 2] : function;
    }
    memmove(&code[at + 4], &code[at], (words - at) * 4);
    memcpy(&code[at], (uint32_t[]){4u << 16 | SpvOpExecutionMode, function, mode, width}, 16);
    memmove(&code[7], &code[5], (words + 4 - 5) * 4);
    memcpy(&code[5], (uint32_t[]){2u << 16 | SpvOpCapability, capability}, 8);
    return (words + 6) * 4;
}

/* lavapipe rounds to even and keeps the signs of zeros for all widths; of the others newer ones may
 * have some. */
TEST(modes_of_floats) {
    static const struct {
        SpvExecutionMode mode;
        const char *refusal;
        uint32_t first_width;
    } modes[] = {
        {SpvExecutionModeDenormPreserve, "capability DenormPreserve (4464) is not", 32},
        {SpvExecutionModeDenormFlushToZero, "capability DenormFlushToZero (4465) is not", 32},
        {SpvExecutionModeRoundingModeRTZ, "capability RoundingModeRTZ (4468) is not", 32},
        {SpvExecutionModeRoundingModeRTE, "capability RoundingModeRTE (4467) is not", 16},
        {SpvExecutionModeSignedZeroInfNanPreserve,
         "capability SignedZeroInfNanPreserve (4466) is not", 32},
    };
    float *x = rig_buffer(1, 16), *y = rig_buffer(2, 16);
    uint64_t id = 1;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        for (uint32_t width = modes[m].first_width; width <= 32; width *= 2, id++) {
            static uint32_t code[1024];
            const struct {
                float a;
                uint32_t n;
            } push = {2, 4};
            *x = 3;
            *y = 1;
            rig_kernel(id, code, with_mode(code, modes[m].mode, width));
            rig_begin();
            rig_dispatch(id, 1, 1, 1, BINDINGS(READ(0, 1), BOTH(1, 2)), &push, sizeof push);
            BHT_TRUE(rig_run());
            if (rig.results[0].status == BH_OK) {
                BHT_EQ(*y, 7);
                continue;
            }
            BHT_EQ(rig.results[0].status, BH_INVALID_KERNEL);
            const bool always = modes[m].mode == SpvExecutionModeRoundingModeRTE ||
                                modes[m].mode == SpvExecutionModeSignedZeroInfNanPreserve;
            /* The capability is not there; or it is, and not for this width. */
            if ((always && rig_is_lavapipe()) ||
                (!strstr(bhi_error_line(&rig.errors[0]), modes[m].refusal) &&
                 !strstr(bhi_error_line(&rig.errors[0]),
                         " is not supported by this device (shader"))) {
                BHT_FAIL("mode %d of %u bits: %s", (int)modes[m].mode, width,
                         bhi_error_line(&rig.errors[0]));
            }
        }
    }
}

/* The supervisor lets neither come here. */
TEST(what_is_for_cuda) {
    rig.format = BHI_KERNEL_IMAGE;
    refused_kernel(CODE(add), "main", BH_INVALID_KERNEL,
                   "kernel \"k1\" is a CUDA image, which a Vulkan device cannot run");
    refused_kernel((const uint32_t[]){0}, 1, "main", BH_INVALID_KERNEL, "is a CUDA image");
    rig.format = 0;
    rig_buffer(1, 64);
    rig_kernel(1, CODE(increment));
    rig_begin();
    rig_dispatch(1, 1, 1, 1, (const struct rig_binding[]){BOTH(0, 1)}, 1, NULL, 0);
    struct bhi_cmd_dispatch *dispatch = (void *)(rig.records[0] + 1);
    dispatch->block_x = dispatch->block_y = dispatch->block_z = 1;
    rig_run_fails(BH_BINDING_MISMATCH, 0,
                  "kernel \"k1\" is SPIR-V, whose module says how large a workgroup is");
}

/* An expression that would take 2^40 steps to compute. */
TEST(sizes_that_cannot_be_computed) {
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "doubling_constant", &bytes);
    refused_kernel(code, bytes, "main", BH_INVALID_KERNEL,
                   "the workgroup size in x is not a constant that can be computed here");
}

/* Wherever a module is cut: the words that it has, the instruction, and what that means. */
TEST(a_module_that_was_cut) {
    for (uint32_t words = 5; words < sizeof kernel_add / 4; words++) {
        rig_kernel_entry(words, kernel_add, words * 4, "main", NULL, 0);
        rig_begin();
        rig_prepare(words);
        rig_run_fails(
            BH_INVALID_KERNEL, 0,
            words == 6
                ? "its 6 words end within instruction 1 (OpCapability), which has 2 words from "
                  "word 5 on: it was probably cut short"
            : words == 7 ? "its 7 words end with instruction 1 (OpCapability), and not with "
                           "OpFunctionEnd: it was probably cut short"
                         : "it was probably cut short");
    }
}

TEST(invalid_modules_keep_the_rule) {
    uint32_t code[sizeof kernel_add / 4];
    memcpy(code, kernel_add, sizeof kernel_add);
    code[0] = 0x03022307;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "magic number");
    code[0] = 7;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "magic number");
    memcpy(code, kernel_add, sizeof kernel_add);
    code[4] = 1;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL,
                   "schema word (word 4) is 0x00000001");
    refused_kernel(kernel_add, sizeof kernel_add - 4, "main", BH_INVALID_KERNEL,
                   "not valid SPIR-V: ");
    refused_kernel(kernel_add, sizeof kernel_add - 3, "main", BH_INVALID_KERNEL,
                   "not a whole number of words");
    refused_kernel(kernel_add, 16, "main", BH_INVALID_KERNEL, "16 bytes are less than a module");
    refused_kernel(kernel_add, 1, "main", BH_INVALID_KERNEL, "1 bytes are less than a module");
    /* A rule of Vulkan's, not of SPIR-V's: the decoration of a binding is taken away. */
    memcpy(code, kernel_add, sizeof kernel_add);
    for (size_t i = 5; i < sizeof code / 4; i += code[i] >> 16) {
        if ((code[i] & 0xffff) == 71 && code[i + 2] == 33) { /* OpDecorate … Binding */
            code[i + 2] = 25; /* NonReadable takes no operand: malformed */
        }
    }
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "not valid SPIR-V: ");
}
