#include "vk_backend.h"

#include "vk_fault.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct bhi_marker_page) <= 4096, "the markers have one page");

/* One copy of both words, so that "n completed" and "n + 1 started" appear together. What was
 * recorded before has ended by then, what comes after starts after. */
static VkResult record_marker(struct bhi_backend *b, uint32_t place) {
    const struct bhi_vk_api *vk = &b->device.api;
    VkCommandBuffer commands = b->marker_commands[place];
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
    };
    VkResult result = vk->BeginCommandBuffer(commands, &begin);
    if (result != VK_SUCCESS) {
        return result;
    }
    const VkPipelineStageFlags work =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    vk->CmdPipelineBarrier(commands, work, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0, NULL,
                           0, NULL);
    const VkBufferCopy region = {
        .srcOffset = offsetof(struct bhi_marker_page, places) + place * sizeof(struct bhi_markers),
        .dstOffset = offsetof(struct bhi_marker_page, markers),
        .size = sizeof(struct bhi_markers),
    };
    vk->CmdCopyBuffer(commands, b->page_buffer.buffer, b->page_buffer.buffer, 1, &region);
    memory.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                           VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                           VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_READ_BIT |
                           VK_ACCESS_HOST_WRITE_BIT;
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           work | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
    return vk->EndCommandBuffer(commands);
}

static bool record_markers(struct bhi_backend *b, struct bhi_fault *fault) {
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = b->recordings.pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = BHI_MAX_MERGED + 1,
    };
    VkResult result =
        b->device.api.AllocateCommandBuffers(b->device.device, &info, b->marker_commands);
    for (uint32_t i = 0; i <= BHI_MAX_MERGED && result == VK_SUCCESS; i++) {
        result = record_marker(b, i);
    }
    if (result != VK_SUCCESS) {
        bhi_fault_vk(fault, result, "command buffers of the markers");
    }
    return result == VK_SUCCESS;
}

bool bhi_vk_markers_init(struct bhi_backend *b, struct bhi_markers *markers,
                         struct bhi_fault *fault) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    b->merge = markers != NULL;
    void *pointer = markers;
    if (pointer == NULL) {
        pointer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (pointer == MAP_FAILED) {
            bhi_fault_set(fault, BH_OUT_OF_HOST_MEMORY, "out of memory for the markers");
            return false;
        }
    }
    b->page = pointer;
    b->page_buffer =
        (struct bhi_vk_buffer){.id = UINT64_MAX, .size = page, .mapped = page, .pointer = pointer};
    if (!bhi_vk_buffer_import(&b->device, &b->page_buffer)) {
        *fault = b->page_buffer.fault;
        return false;
    }
    return !b->merge || record_markers(b, fault);
}

void bhi_vk_markers_fini(struct bhi_backend *b) {
    bhi_vk_buffer_release(&b->device, &b->page_buffer);
    if (b->page != NULL && !b->merge) {
        munmap(b->page, b->page_buffer.mapped);
    }
    b->page = NULL;
}
