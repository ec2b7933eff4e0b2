/* Runs copies on a queue of their own (copy_jobs.h). */
#include "worker/vulkan/recorder.h"

#include "base/check.h"
#include "base/futex.h"
#include "ipc/commands.h"
#include "worker/error.h"
#include "worker/vulkan/result.h"
#include "worker/vulkan/stage.h"

#include <bulkhead/bulkhead.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#define POLL_NS 100000u /* of the wait for a job, before it sleeps */
/* How long it sleeps at once, before it looks for more copies again: a sixteenth of the time that
 * it has waited, within these limits. So a copy that comes meanwhile begins soon, and a long wait
 * costs few wake-ups. */
#define NAP_SHARE     16u
#define NAP_LEAST_NS  100000u
#define NAP_MOST_NS   5000000u
#define NAP_FULL_NS   200000u /* while a job waits for a free part */
#define WARM_UP_BYTES 64u     /* of the scratch words of the markers page */

/* -- objects ---------------------------------------------------------------------------------- */

static VkResult create(struct bhi_vk_backend *b, const char **out_call) {
    struct bhi_vk_copies *c = &b->copies;
    *out_call = "vkCreateCommandPool (copies)";
    VkResult result = bhi_vk_pool_create(&b->device, b->device.transfer_family, &c->pool);
    for (uint32_t i = 0; result == VK_SUCCESS && i < BHI_COPY_PARTS; i++) {
        *out_call = "vkAllocateCommandBuffers (copies)";
        result = bhi_vk_commands_create(&b->device, c->pool, &c->parts[i].commands);
        if (result == VK_SUCCESS) {
            *out_call = "vkCreateFence (copies)";
            result = bhi_vk_fence_create(&b->device, &c->parts[i].fence);
        }
    }
    return result;
}

/* Copies end before the commands that need them begin (they have a fence, and the session waits for
 * it), but that alone does not make their writes visible to another queue. The barrier has a
 * command buffer of its own because recordings are kept: most of their runs have no copy before
 * them, and on a GPU the barrier costs more than an empty dispatch. */
static VkResult record_join(struct bhi_vk_backend *b, const char **out_call) {
    struct bhi_vk_copies *c = &b->copies;
    *out_call = "vkAllocateCommandBuffers (join)";
    VkResult result = bhi_vk_commands_create(&b->device, b->recordings.pool, &c->join);
    if (result != VK_SUCCESS) {
        return result;
    }
    *out_call = "recording a barrier";
    result = bhi_vk_commands_begin(&b->device, c->join, false);
    if (result == VK_SUCCESS) {
        bhi_vk_barrier(&b->device, c->join, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_ACCESS_MEMORY_WRITE_BIT, BHI_WORK_STAGES,
                       BHI_WORK_READS | BHI_WORK_WRITES);
        result = b->device.api.EndCommandBuffer(c->join);
    }
    return result;
}

bool bhi_vk_copies_init(struct bhi_vk_backend *b, struct bhi_error *error) {
    const char *call;
    if (b->device.copy_queue == VK_NULL_HANDLE) {
        return true;
    }
    VkResult result = create(b, &call);
    if (result == VK_SUCCESS) {
        result = record_join(b, &call);
    }
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, call);
        return false;
    }
    b->copies.queue = b->device.copy_queue;
    return true;
}

void bhi_vk_copies_fini(struct bhi_vk_backend *b) {
    struct bhi_vk_copies *c = &b->copies;
    for (uint32_t i = 0; i < BHI_COPY_PARTS; i++) {
        b->device.api.DestroyFence(b->device.device, c->parts[i].fence, NULL);
    }
    b->device.api.DestroyCommandPool(b->device.device, c->pool, NULL);
    *c = (struct bhi_vk_copies){0};
}

/* -- parts ------------------------------------------------------------------------------------ */

/* Begins the next part. What earlier parts and the compute queue have written is visible to it. */
static VkResult begin_part(const struct bhi_vk_backend *b, VkCommandBuffer commands) {
    VkResult result = bhi_vk_commands_begin(&b->device, commands, true);
    if (result == VK_SUCCESS) {
        bhi_vk_barrier(&b->device, commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_ACCESS_MEMORY_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                       VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    }
    return result;
}

static VkResult submit_part(struct bhi_vk_backend *b, VkCommandBuffer commands, VkFence fence) {
    bhi_vk_barrier(&b->device, commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                   VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, BHI_HOST_ACCESS);
    VkResult result = b->device.api.EndCommandBuffer(commands);
    if (result == VK_SUCCESS) {
        result = bhi_vk_submit(&b->device, b->copies.queue, commands, fence);
    }
    if (result == VK_SUCCESS) {
        b->copies.submitted++;
        b->copy_submits++;
    }
    return result;
}

static void lose_job(struct bhi_copy_job *job, VkResult result) {
    bhi_error_vk(&job->error, result, "copying");
    job->error.status = BH_DEVICE_LOST; /* whatever the result says, it may still run */
    job->error.executed = BH_EXECUTED_UNKNOWN;
    job->next = NULL;
}

static void lose(struct bhi_vk_backend *b, VkResult result) {
    struct bhi_vk_copies *c = &b->copies;
    b->base.lost = true;
    for (uint32_t i = 0; i < c->count; i++) {
        struct bhi_copy_job *job = &c->jobs[(c->first + i) % BHI_COPY_JOBS];
        if (job->next || job->parts_end > c->ended) {
            lose_job(job, result);
        }
    }
    c->ended = c->submitted; /* nothing waits for them any more */
}

/* Takes in the parts that have ended. */
static void reap(struct bhi_vk_backend *b) {
    struct bhi_vk_copies *c = &b->copies;
    const struct bhi_vk_api *vk = &b->device.api;
    while (c->ended < c->submitted) {
        VkFence fence = c->parts[c->ended % BHI_COPY_PARTS].fence;
        VkResult result = vk->GetFenceStatus(b->device.device, fence);
        if (result == VK_NOT_READY) {
            return;
        }
        if (result == VK_SUCCESS) {
            result = vk->ResetFences(b->device.device, 1, &fence);
        }
        if (result != VK_SUCCESS) {
            lose(b, result);
            return;
        }
        c->ended++;
    }
}

/* Returns the first job that is not all submitted; NULL: there is none. */
static struct bhi_copy_job *unsubmitted(struct bhi_vk_copies *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        struct bhi_copy_job *job = &c->jobs[(c->first + i) % BHI_COPY_JOBS];
        if (job->next) {
            return job;
        }
    }
    return NULL;
}

static bool is_full(const struct bhi_vk_copies *c) {
    return c->submitted - c->ended == BHI_COPY_PARTS;
}

/* Records copies of the job, until a chunk is full. */
static void record_copies(struct bhi_vk_backend *b, struct bhi_copy_job *job,
                          VkCommandBuffer commands) {
    uint64_t staged = 0;
    for (bool first = true; job->next && staged < BHI_COPY_CHUNK; first = false) {
        const struct bhi_cmd_copy *copy = job->next;
        struct bhi_vk_buffer *src = bhi_map_get(&b->buffers, copy->src);
        const struct bhi_vk_buffer *dst = bhi_map_get(&b->buffers, copy->dst);
        const uint64_t from = copy->src_offset + job->next_bytes;
        uint64_t bytes = copy->bytes - job->next_bytes;
        BHI_CHECK(src && dst); /* nothing is detached while a job is under way */
        if (src->source) {
            bytes = bytes < BHI_COPY_CHUNK - staged ? bytes : BHI_COPY_CHUNK - staged;
            bhi_vk_stage_chunk(src, from, from + bytes);
            staged += bytes;
        }
        if (!first) { /* a later copy may depend on an earlier one */
            bhi_vk_barrier(&b->device, commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
        }
        const VkBufferCopy region = {from, copy->dst_offset + job->next_bytes, bytes};
        b->device.api.CmdCopyBuffer(commands, src->buffer, dst->buffer, 1, &region);
        job->next_bytes += bytes;
        if (job->next_bytes == copy->bytes) {
            job->next = (const struct bhi_cmd_copy *)bhi_record_next(job->record, &copy->header);
            job->next_index++;
            job->next_bytes = 0;
        }
    }
}

/* Submits the next part. Returns false if there is nothing to submit, or no room. */
static bool submit_next(struct bhi_vk_backend *b) {
    struct bhi_vk_copies *c = &b->copies;
    struct bhi_copy_job *job = is_full(c) || b->base.lost ? NULL : unsubmitted(c);
    if (!job) {
        return false;
    }
    const uint32_t part = (uint32_t)(c->submitted % BHI_COPY_PARTS);
    const uint32_t index = job->next_index;
    VkResult result = begin_part(b, c->parts[part].commands);
    if (result == VK_SUCCESS) {
        record_copies(b, job, c->parts[part].commands);
        result = submit_part(b, c->parts[part].commands, c->parts[part].fence);
    }
    if (result == VK_SUCCESS) {
        job->parts_end = c->submitted;
        return true;
    }
    bhi_error_vk(&job->error, result, "submitting a copy");
    job->error.command_index = index;
    job->error.executed = job->parts_end ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    job->next = NULL;
    b->base.lost |= job->error.status == BH_DEVICE_LOST;
    return true;
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* Lets copies begin and go on. Returns true if it has submitted something. */
static bool step(struct bhi_vk_backend *b) {
    reap(b);
    if (b->base.calls.meanwhile) {
        b->base.calls.meanwhile(b->base.calls.user);
    }
    return submit_next(b);
}

static uint64_t nap_ns(struct bhi_vk_copies *c, uint64_t waited_ns) {
    uint64_t nap = waited_ns / NAP_SHARE;
    nap = nap < NAP_LEAST_NS ? NAP_LEAST_NS : nap > NAP_MOST_NS ? NAP_MOST_NS : nap;
    return is_full(c) && unsubmitted(c) && nap > NAP_FULL_NS ? NAP_FULL_NS : nap;
}

bool bhi_vk_copies_joins(const struct bhi_vk_backend *b) {
    return b->copies.queue != VK_NULL_HANDLE && b->copies.joined != b->copies.ended;
}

void bhi_vk_copies_beside(struct bhi_vk_backend *b, const struct bhi_lane_record *const *records,
                          const size_t *places, uint32_t count) {
    b->copies.beside = records;
    b->copies.beside_places = places;
    b->copies.beside_count = count;
}

void bhi_vk_copies_alone(struct bhi_vk_backend *b) {
    b->copies.beside_count = 0;
}

VkResult bhi_vk_copies_wait_beside(struct bhi_vk_backend *b, VkFence fence, uint64_t since_ns,
                                   uint64_t poll_ns) {
    const bool copies = b->copies.queue != VK_NULL_HANDLE;
    for (;;) {
        const bool submitted = copies && step(b);
        VkResult result = b->device.api.GetFenceStatus(b->device.device, fence);
        if (result != VK_NOT_READY) {
            return result;
        }
        const uint64_t waited_ns = bhi_now_ns() - since_ns;
        if (submitted) {
            continue;
        }
        if (waited_ns < poll_ns) {
            sched_yield();
            continue;
        }
        result = b->device.api.WaitForFences(b->device.device, 1, &fence, VK_TRUE,
                                             copies ? nap_ns(&b->copies, waited_ns) : UINT64_MAX);
        if (result != VK_TIMEOUT) {
            return result;
        }
    }
}

/* Waits until the oldest job has ended. */
static void await_oldest(struct bhi_vk_backend *b) {
    struct bhi_vk_copies *c = &b->copies;
    const struct bhi_copy_job *job = &c->jobs[c->first];
    const uint64_t since = bhi_now_ns();
    const uint64_t poll_ns = c->last_wait_ns < 2 * POLL_NS ? POLL_NS : 0;
    uint64_t waited_ns = 0;
    for (;;) {
        const bool submitted = step(b);
        if (b->base.lost) {
            lose(b, VK_ERROR_DEVICE_LOST);
        }
        if (!job->next && job->parts_end <= c->ended) {
            break;
        }
        waited_ns = bhi_now_ns() - since;
        if (submitted || c->ended == c->submitted) {
            continue;
        }
        if (waited_ns < poll_ns) {
            sched_yield();
            continue;
        }
        const VkResult result = b->device.api.WaitForFences(
            b->device.device, 1, &c->parts[c->ended % BHI_COPY_PARTS].fence, VK_TRUE,
            nap_ns(c, waited_ns));
        if (result != VK_SUCCESS && result != VK_TIMEOUT) {
            lose(b, result);
        }
    }
    c->last_wait_ns = waited_ns;
}

bool bhi_vk_copy_end(struct bhi_backend *backend, struct bhi_result *result,
                     struct bhi_error *error) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_copies *c = &b->copies;
    struct bhi_copy_job *job = &c->jobs[c->first];
    BHI_CHECK(c->count > 0 && c->beside_count == 0);
    const uint64_t seq = job->record->seq;
    /* It is its turn now: a death is blamed on it from here on. */
    atomic_store_explicit(&b->page->markers.completed, (uint32_t)seq - 1, memory_order_relaxed);
    atomic_store_explicit(&b->page->markers.started, (uint32_t)seq, memory_order_release);
    await_oldest(b);
    if (job->error.status == BH_DEVICE_LOST) {
        bhi_vk_device_describe_loss(&b->device, &job->error);
    }
    *error = job->error;
    *result = (struct bhi_result){
        .seq = seq,
        .started_ns = job->started_ns,
        .ended_ns = bhi_now_ns(),
        .status = BH_OK,
        .command_index = BHI_NO_COMMAND,
        .executed = BH_EXECUTED_YES,
    };
    if (error->status != BH_OK) {
        bhi_error_result(error, result);
    }
    c->first = (c->first + 1) % BHI_COPY_JOBS;
    c->count--;
    return !b->base.lost;
}

static bool warm_up_join(struct bhi_vk_backend *b, struct bhi_error *error) {
    VkResult result = bhi_vk_submit(&b->device, b->device.queue, b->copies.join, b->fence);
    if (result == VK_SUCCESS) {
        result = bhi_vk_finish(&b->device, b->fence);
    }
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "the first barrier for copies");
        return false;
    }
    b->copies.joined = b->copies.ended;
    return true;
}

bool bhi_vk_copies_warm_up(struct bhi_vk_backend *b, struct bhi_error *error) {
    struct bhi_vk_copies *c = &b->copies;
    const VkDeviceSize scratch = offsetof(struct bhi_marker_page, scratch);
    const VkBufferCopy region = {scratch, scratch + WARM_UP_BYTES, WARM_UP_BYTES};
    for (uint32_t i = 0; c->queue != VK_NULL_HANDLE && i < BHI_COPY_PARTS; i++) {
        VkCommandBuffer commands = c->parts[i].commands;
        VkResult result = begin_part(b, commands);
        if (result == VK_SUCCESS) {
            b->device.api.CmdCopyBuffer(commands, b->page_buffer.buffer, b->page_buffer.buffer, 1,
                                        &region);
            result = submit_part(b, commands, c->parts[i].fence);
        }
        while (result == VK_SUCCESS && c->ended < c->submitted && !b->base.lost) {
            result = b->device.api.WaitForFences(b->device.device, 1, &c->parts[i].fence, VK_TRUE,
                                                 UINT64_MAX);
            reap(b);
        }
        if (result != VK_SUCCESS || b->base.lost) {
            bhi_error_vk(error, result != VK_SUCCESS ? result : VK_ERROR_DEVICE_LOST,
                         "the first copy on the transfer queue");
            return false;
        }
    }
    b->copy_submits = 0;
    return c->queue == VK_NULL_HANDLE || warm_up_join(b, error);
}
