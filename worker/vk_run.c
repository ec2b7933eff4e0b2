/* bhi_backend_run: records in, one vkQueueSubmit, results out. */
#include "vk_backend.h"

#include "commands.h"
#include "faults.h"
#include "futex.h"
#include "vk_fault.h"

#include <bulkhead/bulkhead.h>
#include <stdatomic.h>
#include <string.h>

static void fail(struct bhi_result *result, const struct bhi_fault *fault) {
    result->status = fault->status;
    result->vk_result = fault->vk_result;
    result->command_index = fault->command_index;
    result->executed = fault->executed;
}

/* One submission that is in this vkQueueSubmit. */
struct entry {
    size_t index; /* in the caller's arrays */
    struct bhi_vk_recording *recording;
};

struct batch {
    struct bhi_backend *backend;
    const struct bhi_lane_record *const *records;
    struct bhi_result *results;
    struct bhi_fault *faults;
    struct entry entries[BHI_MAX_MERGED];
    uint32_t count;
};

static void set_marker(struct bhi_markers *at, uint64_t started, uint64_t completed) {
    atomic_store_explicit(&at->started, (uint32_t)started, memory_order_relaxed);
    atomic_store_explicit(&at->completed, (uint32_t)completed, memory_order_relaxed);
}

static uint64_t seq_of(const struct batch *batch, uint32_t entry) {
    return batch->records[batch->entries[entry].index]->seq;
}

/* Fills in the command buffers; returns how many. */
static uint32_t gather(const struct batch *batch, VkCommandBuffer *commands) {
    struct bhi_backend *b = batch->backend;
    const uint64_t first = seq_of(batch, 0);
    /* The host says so first, so that a death inside vkQueueSubmit blames the first one. */
    set_marker(&b->page->markers, first, first - 1);
    if (batch->count == 1) {
        commands[0] = batch->entries[0].recording->commands;
        return 1;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        set_marker(&b->page->places[i], seq_of(batch, i),
                   i == 0 ? first - 1 : seq_of(batch, i - 1));
        commands[count++] = b->marker_commands[i];
        commands[count++] = batch->entries[i].recording->commands;
    }
    const uint64_t last = seq_of(batch, batch->count - 1);
    set_marker(&b->page->places[batch->count], last, last);
    commands[count++] = b->marker_commands[batch->count];
    return count;
}

/* Which of a lost batch had ended, which was running, which had not begun: the markers know. */
static void lose(struct batch *batch, const struct bhi_fault *loss, uint64_t now) {
    struct bhi_backend *b = batch->backend;
    const uint64_t first = seq_of(batch, 0);
    const uint32_t started =
        atomic_load_explicit(&b->page->markers.started, memory_order_acquire) - (uint32_t)first;
    const uint32_t completed =
        atomic_load_explicit(&b->page->markers.completed, memory_order_acquire) - (uint32_t)first;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct bhi_result *result = &batch->results[batch->entries[i].index];
        struct bhi_fault *fault = &batch->faults[batch->entries[i].index];
        const uint32_t place = (uint32_t)(seq_of(batch, i) - first);
        const bool merged = batch->count > 1;
        result->ended_ns = now;
        if (merged && (int32_t)(completed - place) >= 0) {
            continue;
        }
        *fault = *loss;
        fault->executed =
            !merged || (int32_t)(started - place) >= 0 ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
        fail(result, fault);
    }
}

static VkResult wait_for_device(struct bhi_backend *b) {
    const struct bhi_vk_api *vk = &b->device.api;
    VkResult result = vk->WaitForFences(b->device.device, 1, &b->fence, VK_TRUE, UINT64_MAX);
    while (result == VK_TIMEOUT) {
        result = vk->WaitForFences(b->device.device, 1, &b->fence, VK_TRUE, UINT64_MAX);
    }
    return result;
}

static void submit(struct batch *batch) {
    struct bhi_backend *b = batch->backend;
    const struct bhi_vk_api *vk = &b->device.api;
    VkCommandBuffer commands[2 * BHI_MAX_MERGED + 1];
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = gather(batch, commands),
        .pCommandBuffers = commands,
    };
    const uint64_t started = bhi_now_ns();
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->results[batch->entries[i].index].started_ns = started;
    }
    struct bhi_fault fault = {.status = BH_OK};
    VkResult result = vk->QueueSubmit(b->device.queue, 1, &info, b->fence);
    b->queue_submits++;
    BHI_FAULT_POINT("submitted");
    if (result != VK_SUCCESS) {
        bhi_fault_vk(&fault, result, "vkQueueSubmit");
    } else if ((result = wait_for_device(b)) != VK_SUCCESS) {
        bhi_fault_vk(&fault, result, "vkWaitForFences");
        /* Whatever went wrong, the device may still be at it: nothing here can be used again. */
        fault.status = BH_DEVICE_LOST;
    } else {
        result = vk->ResetFences(b->device.device, 1, &b->fence);
        if (result != VK_SUCCESS) {
            b->lost = true; /* all ran; there is no fence for the next */
        }
    }
    const uint64_t ended = bhi_now_ns();
    if (fault.status == BH_DEVICE_LOST) {
        b->lost = true;
        bhi_vk_device_describe_loss(&b->device, &fault);
        lose(batch, &fault, ended);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct bhi_result *one = &batch->results[batch->entries[i].index];
        one->ended_ns = ended;
        if (fault.status != BH_OK) {
            batch->faults[batch->entries[i].index] = fault;
            fail(one, &fault);
            continue;
        }
        struct bhi_list *kernels = &batch->entries[i].recording->kernels;
        for (size_t k = 0; k < kernels->count; k++) {
            ((struct bhi_vk_kernel *)kernels->items[k])->has_run = true;
        }
    }
}

/* Runs what is in the batch and empties it. */
static void flush(struct batch *batch) {
    if (batch->count > 0) {
        submit(batch);
        batch->count = 0;
    }
}

static void refuse_lost(struct bhi_result *result, struct bhi_fault *fault) {
    bhi_fault_set(fault, BH_DEVICE_LOST, "the device was lost before this submission");
    fault->vk_result = VK_ERROR_DEVICE_LOST;
    fail(result, fault);
}

bool bhi_backend_run(struct bhi_backend *b, const struct bhi_lane_record *const *records,
                     size_t count, struct bhi_result *results, struct bhi_fault *faults) {
    struct batch batch;
    batch.backend = b;
    batch.records = records;
    batch.results = results;
    batch.faults = faults;
    batch.count = 0;
    const uint32_t most = b->merge ? BHI_MAX_MERGED : 1;
    b->run++;
    for (size_t i = 0; i < count; i++) {
        const uint64_t now = bhi_now_ns();
        results[i] = (struct bhi_result){
            .seq = records[i]->seq,
            .started_ns = now,
            .ended_ns = now,
            .status = BH_OK,
            .command_index = BHI_NO_COMMAND,
            .executed = BH_EXECUTED_YES,
        };
        faults[i].status = BH_OK;
        faults[i].text[0] = '\0';
        b->submissions++;
        if (b->lost) {
            refuse_lost(&results[i], &faults[i]);
            continue;
        }
        struct bhi_vk_recording *recording = bhi_vk_record(b, records[i], &faults[i]);
        results[i].ended_ns = bhi_now_ns();
        if (recording == NULL) {
            fail(&results[i], &faults[i]);
        } else if (!recording->idle) {
            batch.entries[batch.count++] = (struct entry){i, recording};
            if (batch.count == most) {
                flush(&batch);
            }
        }
    }
    flush(&batch);
    return !b->lost;
}

bool bhi_backend_warm(const struct bhi_backend *b, const struct bhi_lane_record *record) {
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command != NULL;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_PREPARE) {
            return false;
        }
        if (command->type == BHI_CMD_DISPATCH) {
            const struct bhi_vk_kernel *kernel =
                bhi_map_get(&b->kernels.map, ((const struct bhi_cmd_dispatch *)command)->kernel);
            if (kernel == NULL || kernel->state != BHI_KERNEL_READY || !kernel->has_run) {
                return false;
            }
        }
    }
    return true;
}
