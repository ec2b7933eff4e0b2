/* Several records in one command buffer. Before each record the device writes "started" into the
 * markers page, after it "completed": if the device is lost or the process dies, these tell which
 * record ran. The markers also order the records: each begins after the one before has ended. */
#include "worker/vulkan/recorder.h"

#include "worker/error.h"
#include "worker/vulkan/result.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct bhi_marker_page) <= 4096, "the markers have one page");

bool bhi_vk_merge_init(struct bhi_vk_backend *b, struct bhi_markers *markers,
                       struct bhi_error *error) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    b->merge = markers;
    void *pointer = markers;
    if (!pointer) {
        pointer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pointer == MAP_FAILED) {
            BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the markers");
            return false;
        }
    }
    b->page = pointer;
    b->page_buffer = (struct bhi_vk_buffer){
        .id = UINT64_MAX, .size = page, .mapped = page, .writable = true, .pointer = pointer};
    if (!bhi_vk_buffer_import(&b->device, &b->page_buffer)) {
        *error = b->page_buffer.error;
        return false;
    }
    VkResult result = bhi_vk_commands_create(&b->device, b->recordings.pool, &b->merged.commands);
    if (result == VK_SUCCESS) {
        result = bhi_vk_commands_create(&b->device, b->recordings.pool, &b->primer);
    }
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkAllocateCommandBuffers");
    }
    return result == VK_SUCCESS;
}

void bhi_vk_merge_fini(struct bhi_vk_backend *b) {
    bhi_vk_recording_fini(&b->recordings, &b->merged);
    bhi_vk_buffer_release(&b->device, &b->page_buffer);
    if (b->page && !b->merge) {
        munmap(b->page, b->page_buffer.mapped);
    }
    b->page = NULL;
}

static void write_marker(struct bhi_recorder *r, uint64_t started, uint64_t completed) {
    const uint32_t words[2] = {(uint32_t)started, (uint32_t)completed};
    _Static_assert(sizeof words == offsetof(struct bhi_markers, pinned), "both words at once");
    r->backend->device.api.CmdUpdateBuffer(r->commands, r->backend->page_buffer.buffer,
                                           offsetof(struct bhi_marker_page, markers), sizeof words,
                                           words);
    bhi_vk_barrier(&r->backend->device, r->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                   VK_ACCESS_TRANSFER_WRITE_BIT, BHI_WORK_STAGES | VK_PIPELINE_STAGE_HOST_BIT,
                   BHI_WORK_READS | BHI_WORK_WRITES | BHI_HOST_ACCESS);
}

bool bhi_vk_merge_begin(struct bhi_vk_backend *b, struct bhi_error *error) {
    VkResult result = bhi_vk_commands_begin(&b->device, b->merged.commands, true);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkBeginCommandBuffer");
        return false;
    }
    b->stamp++;
    bhi_hazards_clear(&b->hazards);
    b->merger =
        (struct bhi_recorder){.backend = b, .uses = &b->merged, .commands = b->merged.commands};
    return true;
}

bool bhi_vk_merge_add(struct bhi_vk_backend *b, const struct bhi_lane_record *record,
                      uint64_t before, uint32_t slot, struct bhi_error *error, bool *out_spoiled) {
    struct bhi_recorder *r = &b->merger;
    r->error = error;
    r->seq = record->seq;
    r->slot = slot;
    r->bound_abort = NULL;
    r->check_only = true; /* recorded commands cannot be removed again */
    const bool good = bhi_recorder_add(r, record);
    r->check_only = false;
    if (!good) {
        return false;
    }
    write_marker(r, record->seq, before);
    if (!bhi_recorder_add_timed(r, record)) {
        *out_spoiled = true;
        return false;
    }
    bhi_recorder_settle(r);
    return true;
}

VkCommandBuffer bhi_vk_merge_end(struct bhi_vk_backend *b, uint64_t last, struct bhi_error *error) {
    write_marker(&b->merger, last, last);
    VkResult result = b->device.api.EndCommandBuffer(b->merged.commands);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkEndCommandBuffer");
        return VK_NULL_HANDLE;
    }
    b->barriers += b->merged.barriers;
    return b->merged.commands;
}

void bhi_vk_merge_clear(struct bhi_vk_backend *b) {
    bhi_vk_recording_clear(&b->recordings, &b->merged);
}
