#include "worker/vulkan/prime.h"

#include "worker/vulkan/bind.h"
#include "worker/vulkan/recorder.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>

/* Returns a group with arbitrary bindings, because the kernel returns before it reads them. */
static bool find_group(struct bhi_backend *b, const struct bhi_vk_kernel *kernel,
                       struct bhi_vk_group **out, struct bhi_error *error) {
    const struct bhi_module_bindings *r = kernel->reflection;
    struct bhi_group_range ranges[BHI_MAX_BINDINGS];
    *out = NULL;
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        ranges[i] =
            (struct bhi_group_range){.buffer = &b->page_buffer, .size = b->page_buffer.size};
    }
    if (r->set_count > 0) {
        *out = bhi_vk_group_get(&b->device, &b->groups, kernel, ranges, error);
    }
    return *out || r->set_count == 0;
}

static bool has_uniforms(const struct bhi_module_bindings *r) {
    bool found = r->push_bytes > 0;
    for (uint32_t i = 0; i < r->binding_count; i++) {
        found |= r->bindings[i].kind == BH_BINDING_UNIFORM_BUFFER;
    }
    return found;
}

/* Makes lavapipe compile the kernel for any uniforms. It compiles a variant for the values of those
 * on which alone a branch depends, at each run with other values, unless the variant of one run is
 * not much smaller than the kernel: then it never does that again for this pipeline. A run for which
 * nothing but the pipeline has been bound anew has no values yet, and so nothing gets smaller. */
static void record_again(struct bhi_backend *b, VkPipeline pipeline) {
    const struct bhi_vk_api *vk = &b->device.api;
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = BHI_WORK_WRITES,
        .dstAccessMask = BHI_WORK_READS | BHI_WORK_WRITES,
    };
    vk->CmdPipelineBarrier(b->primer, BHI_WORK_STAGES, BHI_WORK_STAGES, 0, 1, &memory, 0, NULL, 0,
                           NULL);
    vk->CmdBindPipeline(b->primer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk->CmdDispatch(b->primer, 1, 1, 1);
}

static VkResult record(struct bhi_backend *b, const struct bhi_vk_kernel *kernel,
                       VkPipeline pipeline, const struct bhi_vk_group *group) {
    const struct bhi_vk_api *vk = &b->device.api;
    const uint32_t push[1024] = {0};
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult result = vk->BeginCommandBuffer(b->primer, &begin);
    if (result != VK_SUCCESS) {
        return result;
    }
    vk->CmdBindPipeline(b->primer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    bhi_vk_bind_group(b, b->primer, kernel, group);
    bhi_vk_bind_abort(b, b->primer, kernel, group, BHI_ABORT_SET);
    if (kernel->reflection->push_bytes > 0) {
        vk->CmdPushConstants(b->primer, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             kernel->reflection->push_bytes, push);
    }
    vk->CmdDispatch(b->primer, 1, 1, 1);
    if (b->device.is_cpu && has_uniforms(kernel->reflection)) {
        record_again(b, pipeline);
    }
    return vk->EndCommandBuffer(b->primer);
}

static bool run(struct bhi_backend *b, struct bhi_error *error) {
    VkResult result = bhi_vk_device_submit(&b->device, b->primer, b->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkQueueSubmit (compiling a kernel)");
        b->lost |= error->status == BH_DEVICE_LOST;
        return false;
    }
    result = bhi_vk_device_finish(&b->device, b->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "waiting for the device (compiling a kernel)");
        error->status = BH_DEVICE_LOST; /* whatever the result says, the device may still run it */
        b->lost = true;
    }
    return result == VK_SUCCESS;
}

bool bhi_vk_prime(struct bhi_backend *b, const struct bhi_vk_kernel *kernel, VkPipeline pipeline,
                  struct bhi_error *error) {
    struct bhi_vk_group *group;
    if (!find_group(b, kernel, &group, error)) {
        return false;
    }
    VkResult result = record(b, kernel, pipeline, group);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "recording the first dispatch of a kernel");
    }
    const bool good = result == VK_SUCCESS && run(b, error);
    /* The group is not used again. But a lost device may still be using it. */
    if (group && !b->lost) {
        bhi_vk_group_release(&b->device, &b->groups, group);
        bhi_vk_groups_forget(&b->device, &b->groups, &b->page_buffer, NULL);
    }
    return good;
}
