/* A Vulkan device in this process that runs modules, guarded or not, on buffers with known content:
 * without the rest of the backend. A driver takes far longer to compile a kernel than to run it:
 * what is loaded can be run as often as one likes. */
#ifndef GUARD_RUNNER_H
#define GUARD_RUNNER_H

#include "stand.h"
#include "worker/guard/guard.h"
#include "worker/spirv/reflect.h"
#include "worker/vulkan/device.h"

#define RUNNER_WORDS    16384u /* in each buffer */
#define RUNNER_BINDINGS 8u

/* It is there while a test runs. */
extern struct runner {
    struct bhi_vk_device vk;
    PFN_vkMapMemory map;
    VkCommandPool pool;
} device;

struct runner_module {
    const struct stand_module *plain;  /* as it came */
    const struct bhi_guarded *guarded; /* NULL: run it as it is */
    const struct bhi_spec_constant *constants;
    uint32_t constant_count;
    /* Binding 1 of set 0 is the guard's words once more, so that the kernel can set the word
     * itself: when it is set is then no matter of time. */
    bool sets_word;
};

struct runner_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *mapped;
};

/* What a driver has compiled, with buffers of its own. */
struct runner_kernel {
    VkDescriptorSetLayout set_layouts[BHI_MAX_SETS];
    VkDescriptorSet sets[BHI_MAX_SETS];
    uint32_t set_count, push_bytes;
    VkDescriptorPool descriptors;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkShaderModule module;
    struct runner_memory words, memory[RUNNER_BINDINGS];
    uint32_t buffers; /* bindings, without one that is the guard's words */
};

struct runner_run {
    uint32_t groups[3];
    const void *push; /* as many bytes as the reflection says */
    uint32_t abort;   /* the guard's word */
    uint32_t told[3]; /* the guard's counts of workgroups */
    uint32_t *data;   /* in and out: RUNNER_WORDS for each buffer, in the order of bindings */
    uint32_t flags;   /* out: the guard's */
};

/* What the module has, until the next call. Each of these fails the test when any call does. */
const struct bhi_module_bindings *runner_reflect(const struct runner_module *module);
void runner_load(const struct runner_module *module, struct runner_kernel *out);
void runner_unload(struct runner_kernel *kernel);
/* One dispatch, waited for. */
void runner_dispatch(struct runner_kernel *kernel, struct runner_run *run);

#endif
