#include "worker/vulkan/dispatch.h"

#include "worker/vulkan/recorder.h"

#include <stddef.h>

static uint32_t at_most(uint64_t value, uint32_t limit) {
    return value < 1 ? 1 : value > limit ? limit : (uint32_t)value;
}

bool bhi_vk_dispatch_part(const uint32_t groups[3], uint32_t out[3]) {
    const uint64_t plane = (uint64_t)groups[0] * groups[1];
    uint64_t all = 0;
    if (__builtin_mul_overflow(plane, groups[2], &all)) {
        all = UINT64_MAX;
    }
    uint64_t size = all / BHI_DISPATCH_PARTS;
    size = size < BHI_DISPATCH_PART ? BHI_DISPATCH_PART : size;
    for (int axis = 0; axis < 3; axis++) {
        out[axis] = groups[axis];
    }
    if (all <= size) {
        return false;
    }
    if (plane <= size) {
        out[2] = at_most(size / plane, groups[2]);
    } else {
        out[2] = 1;
        out[1] = groups[0] <= size ? at_most(size / groups[0], groups[1]) : 1;
        out[0] = at_most(size, groups[0]);
    }
    return true;
}

static uint32_t rest(uint32_t from, uint32_t size, uint32_t all) {
    return all - from < size ? all - from : size;
}

/* A start and a size never add up to more than 32 bits, because both are at most a count. */
static void dispatch_parts(const struct bhi_vk_api *vk, VkCommandBuffer commands,
                           const uint32_t groups[3], const uint32_t part[3]) {
    for (uint64_t z = 0; z < groups[2]; z += part[2]) {
        for (uint64_t y = 0; y < groups[1]; y += part[1]) {
            for (uint64_t x = 0; x < groups[0]; x += part[0]) {
                vk->CmdDispatchBase(commands, (uint32_t)x, (uint32_t)y, (uint32_t)z,
                                    rest((uint32_t)x, part[0], groups[0]),
                                    rest((uint32_t)y, part[1], groups[1]),
                                    rest((uint32_t)z, part[2], groups[2]));
            }
        }
    }
}

bool bhi_vk_dispatch_splits(const struct bhi_vk_kernel *kernel, const uint32_t groups[3]) {
    uint32_t part[3];
    return kernel->in_parts && bhi_vk_dispatch_part(groups, part);
}

/* Writes the number of workgroups for the next dispatch in |slot|. An earlier dispatch reads the
 * same slot, so the write waits for it. */
static void write_groups(const struct bhi_vk_backend *b, VkCommandBuffer commands, uint32_t slot,
                         const uint32_t groups[3]) {
    bhi_vk_barrier(&b->device, commands, BHI_WORK_STAGES, VK_ACCESS_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    b->device.api.CmdUpdateBuffer(commands, b->abort.buffer,
                                  bhi_vk_abort_offset(slot) +
                                      offsetof(struct bhi_guard_words, groups),
                                  sizeof(uint32_t[3]), groups);
    bhi_vk_barrier(&b->device, commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                   VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                   VK_ACCESS_SHADER_READ_BIT);
}

void bhi_vk_dispatch(const struct bhi_vk_backend *b, VkCommandBuffer commands,
                     const struct bhi_vk_kernel *kernel, const uint32_t groups[3], uint32_t slot) {
    const struct bhi_vk_api *vk = &b->device.api;
    uint32_t part[3];
    if (!kernel->in_parts || !bhi_vk_dispatch_part(groups, part)) {
        vk->CmdDispatch(commands, groups[0], groups[1], groups[2]);
        return;
    }
    const VkConditionalRenderingBeginInfoEXT unless_aborted = {
        .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
        .buffer = b->abort.buffer,
        .offset = bhi_vk_abort_offset(slot) + offsetof(struct bhi_guard_words, abort),
        .flags = VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT};
    if (kernel->reads_grid) {
        write_groups(b, commands, slot, groups);
    }
    vk->CmdBeginConditionalRenderingEXT(commands, &unless_aborted);
    dispatch_parts(vk, commands, groups, part);
    vk->CmdEndConditionalRenderingEXT(commands);
}
