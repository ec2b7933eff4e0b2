/* bhi_backend_run: records in, one vkQueueSubmit, results out. */
#include "worker/vulkan/recorder.h"

#include "base/check.h"
#include "base/futex.h"
#include "ipc/commands.h"
#include "worker/compiler/spec_defaults.h"
#include "worker/error.h"
#include "worker/vulkan/dispatch.h"
#include "worker/vulkan/result.h"
#include "worker/vulkan/stage.h"

#include <bulkhead/bulkhead.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MAX_MERGED     BHI_ABORT_SLOTS /* records in one vkQueueSubmit */
#define POLL_NS        100000u
#define POLL_MERGED_NS 3000000u

/* Polls for short work, because sleeping and waking cost about as much as an empty dispatch. It
 * yields each time, which matters if the driver's own threads do the work and processors are few.
 * For several short records it polls longer: if the processor goes idle between two of them, each
 * costs a CPU driver twice as much. */
static VkResult wait_for_fence(struct bhi_vk_backend *b, uint64_t started, uint32_t records) {
    const uint64_t poll_ns = records > 1 ? POLL_MERGED_NS : POLL_NS;
    const VkResult result = bhi_vk_copies_wait_beside(b, b->fence, started,
                                                      b->last_wait_ns < 2 * poll_ns ? poll_ns : 0);
    b->last_wait_ns = bhi_now_ns() - started;
    return result;
}

/* If a kernel was given no workgroup size, one invocation does all the work: says so in the
 * error. */
static void append_defaults(const struct bhi_vk_backend *b, const struct bhi_lane_record *record,
                            struct bhi_error *error) {
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        const struct bhi_vk_kernel *kernel =
            command->type == BHI_CMD_DISPATCH
                ? bhi_map_get(&b->kernels.map, ((const struct bhi_cmd_dispatch *)command)->kernel)
                : NULL;
        struct bhi_module module;
        struct bhi_error ignored;
        char left[320];
        if (!kernel || kernel->trusted ||
            (kernel->state != BHI_KERNEL_REFLECTED && kernel->state != BHI_KERNEL_READY) ||
            !bhi_module_init(&module, kernel->code, kernel->words, kernel->entry, kernel->constants,
                             kernel->constant_count, &ignored)) {
            continue;
        }
        /* The guard's own constant is nobody's cause. */
        const uint32_t hidden = kernel->reads_grid ? 1 + kernel->grid_constant : 0;
        const uint32_t count = bhi_spec_defaults(&module, hidden, left, sizeof left);
        bhi_module_fini(&module);
        if (count > 0) {
            BHI_ERROR_APPEND(error, "; of kernel \"%s\" %s, which may be the cause",
                             BHI_KERNEL_LABEL(kernel), left);
            return; /* no room for more text */
        }
    }
}

/* Fills in the results of records that were aborted, and of those whose loops the driver has cut
 * short. They may have been almost finished or not begun; what they have written is worthless. */
static void judge(struct bhi_vk_backend *b, const struct bhi_answers *a,
                  const struct bhi_batch *batch, uint64_t aborted) {
    for (uint32_t i = 0; i < batch->count; i++) {
        struct bhi_error *error = &a->errors[batch->places[i]];
        const uint32_t flags = b->device.whole_loops ? 0 : bhi_vk_abort_flags(&b->abort, i);
        if (aborted >> i & 1) {
            BHI_ERROR(error, BH_REASON_STOPPED);
            error->executed = BH_EXECUTED_UNKNOWN;
        } else if (flags & BHI_GUARD_CUT) {
            BHI_ERROR(error, BH_REASON_LOOP_CUT, .limit = 65535);
            append_defaults(b, a->records[batch->places[i]], error);
            error->executed = BH_EXECUTED_YES;
        } else {
            continue;
        }
        bhi_answer_bad(a, batch->places[i]);
    }
}

/* Prepares what the batch needs on the device. Returns a bit for each record that is timed. */
static uint64_t prepare(struct bhi_vk_backend *b, const struct bhi_answers *a,
                        const struct bhi_batch *batch) {
    /* The host writes the first marker, so that a death inside vkQueueSubmit is blamed on the first
     * record. */
    const uint64_t first = a->records[batch->places[0]]->seq;
    atomic_store_explicit(&b->page->markers.completed, (uint32_t)first - 1, memory_order_relaxed);
    atomic_store_explicit(&b->page->markers.started, (uint32_t)first, memory_order_release);

    uint64_t seqs[MAX_MERGED], timed = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct bhi_lane_record *record = a->records[batch->places[i]];
        seqs[i] = record->seq;
        timed |= (uint64_t)!!(record->flags & BHI_RECORD_TIMED) << i;
    }
    bhi_backend_compiled(&b->base);
    bhi_vk_stage_fill(b, a->records, batch->places, batch->count);
    bhi_vk_timing_reset(&b->device, &b->timing, timed);
    bhi_vk_abort_begin(&b->abort, seqs, batch->count);
    return timed;
}

/* Submits |commands| and waits for them. */
static void submit_and_wait(struct bhi_vk_backend *b, const struct bhi_answers *a,
                            const struct bhi_batch *batch, VkCommandBuffer commands,
                            uint64_t started_ns, struct bhi_error *error) {
    const struct bhi_vk_api *vk = &b->device.api;
    const bool joins = bhi_vk_copies_joins(b);
    const VkCommandBuffer both[2] = {b->copies.join, commands};
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = joins ? 2 : 1,
        .pCommandBuffers = joins ? both : &commands,
    };
    VkResult result = vk->QueueSubmit(b->device.queue, 1, &info, b->fence);
    b->queue_submits++;
    b->joins += joins;
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkQueueSubmit");
        return;
    }
    b->copies.joined = b->copies.ended; /* before copies go on beside it */
    bhi_vk_copies_beside(b, a->records, batch->places, batch->count);
    result = wait_for_fence(b, started_ns, batch->count);
    bhi_vk_copies_alone(b);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "waiting for the device");
        error->status = BH_DEVICE_LOST; /* whatever the result says, it may still run */
    } else {
        b->base.lost |= vk->ResetFences(b->device.device, 1, &b->fence) != VK_SUCCESS;
    }
}

/* Fills in when the records ran, and for those of |timed| for how long. */
static void note_times(struct bhi_vk_backend *b, const struct bhi_answers *a,
                       const struct bhi_batch *batch, uint64_t started_ns, uint64_t timed) {
    const uint64_t ended_ns = bhi_now_ns();
    for (uint32_t i = 0; i < batch->count; i++) {
        struct bhi_result *result = &a->results[batch->places[i]];
        result->started_ns = started_ns;
        result->ended_ns = ended_ns;
        if (timed >> i & 1) {
            result->device_ns =
                bhi_vk_timing_read(&b->device, &b->timing, i, ended_ns - started_ns);
        }
    }
}

/* Submits |commands| and waits. |kernels| lists the kernels in them. */
static void submit(struct bhi_vk_backend *b, const struct bhi_answers *a,
                   const struct bhi_batch *batch, VkCommandBuffer commands,
                   const struct bhi_pointers *kernels) {
    const uint64_t timed = prepare(b, a, batch);
    struct bhi_error error = {.status = BH_OK};
    const uint64_t started_ns = bhi_now_ns();
    submit_and_wait(b, a, batch, commands, started_ns, &error);
    bool words_lost;
    const uint64_t aborted = bhi_vk_abort_end(&b->abort, &words_lost);
    b->base.lost |= words_lost;
    if (aborted != 0 && b->abort.remote) { /* another queue has cleared the words */
        b->copies.joined = UINT64_MAX;
    }
    note_times(b, a, batch, started_ns, error.status == BH_OK ? timed : 0);
    if (error.status == BH_DEVICE_LOST) {
        b->base.lost = true;
        bhi_vk_device_describe_loss(&b->device, &error);
        bhi_answer_lost(a, batch, &b->page->markers, &error);
        return;
    }
    for (uint32_t i = 0; error.status != BH_OK && i < batch->count; i++) {
        a->errors[batch->places[i]] = error;
        bhi_answer_bad(a, batch->places[i]);
    }
    if (error.status == BH_OK) {
        judge(b, a, batch, aborted);
    }
    for (size_t i = 0; error.status == BH_OK && i < kernels->count; i++) {
        ((struct bhi_vk_kernel *)kernels->items[i])->has_run = true;
    }
}

/* Runs one record with a command buffer of its own, which is kept. */
static void run_alone(struct bhi_vk_backend *b, const struct bhi_answers *a, size_t place) {
    const struct bhi_lane_record *record = a->records[place];
    const struct bhi_batch batch = {.places = {place}, .count = 1};
    b->base.compiles = UINT64_MAX;
    if (!record->command_count) { /* it only waited for its turn */
        a->results[place].ended_ns = bhi_now_ns();
        return;
    }
    struct bhi_vk_recording *recording = bhi_vk_record(b, record, &a->errors[place]);
    if (!recording) {
        bhi_answer_bad(a, place);
    } else if (bhi_record_has_work(record)) {
        submit(b, a, &batch, recording->commands, &recording->kernels);
        return;
    }
    a->results[place].ended_ns = bhi_now_ns();
}

/* Runs the records from |from| to |to| in one command buffer. Returns false if they cannot be
 * merged; then nothing has run. */
static bool run_merged(struct bhi_vk_backend *b, const struct bhi_answers *a, size_t from,
                       size_t to) {
    struct bhi_batch batch;
    struct bhi_error error;
    batch.count = 0;
    if (!bhi_vk_merge_begin(b, &error)) {
        return false;
    }
    bool spoiled = false;
    uint64_t before = a->records[from]->seq - 1;
    for (size_t i = from; i < to && !spoiled && !b->base.lost; i++) {
        if (bhi_vk_merge_add(b, a->records[i], before, batch.count, &a->errors[i], &spoiled)) {
            batch.places[batch.count++] = i;
            before = a->records[i]->seq;
        } else {
            bhi_answer_bad(a, i);
        }
    }
    VkCommandBuffer commands = bhi_vk_merge_end(b, before, &error);
    /* A compile may have lost the device. */
    const bool good = !spoiled && !b->base.lost && commands != VK_NULL_HANDLE;
    if (good && batch.count > 0) {
        submit(b, a, &batch, commands, &b->merged.kernels);
    }
    bhi_backend_compiled(&b->base); /* also where it runs alone now */
    bhi_vk_merge_clear(b);
    return good;
}

bool bhi_vk_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                size_t count, struct bhi_result *results, struct bhi_error *errors) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    const struct bhi_answers a = {records, results, errors};
    const uint64_t now = bhi_now_ns();
    BHI_CHECK(b->copies.count == 0);
    b->run++;
    for (size_t i = 0; i < count; i++) {
        bhi_answer_good(&a, i, now);
    }
    for (size_t from = 0, to; from < count; from = to) {
        to = from + MAX_MERGED < count ? from + MAX_MERGED : count;
        if (b->merge && !b->base.lost && to - from > 1 && run_merged(b, &a, from, to)) {
            continue;
        }
        for (size_t i = from; i < to; i++) {
            if (b->base.lost && results[i].status == BH_OK) {
                BHI_ERROR(&errors[i], BH_REASON_LOST, .vk_result = VK_ERROR_DEVICE_LOST,
                          .text = "before this submission");
                bhi_answer_bad(&a, i);
            } else if (!b->base.lost) { /* or compiling it has lost the device, and says so */
                bhi_answer_good(&a, i, now);
                run_alone(b, &a, i);
            }
        }
    }
    return !b->base.lost;
}

static bool split_ready(const struct bhi_vk_kernel *kernel,
                        const struct bhi_cmd_dispatch *dispatch) {
    const uint32_t groups[3] = {dispatch->groups_x, dispatch->groups_y, dispatch->groups_z};
    return !kernel->reads_grid || kernel->split != VK_NULL_HANDLE ||
           !bhi_vk_dispatch_splits(kernel, groups);
}

bool bhi_vk_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_PREPARE) {
            return false;
        }
        if (command->type == BHI_CMD_DISPATCH) {
            const struct bhi_vk_kernel *kernel =
                bhi_map_get(&b->kernels.map, ((const struct bhi_cmd_dispatch *)command)->kernel);
            if (!kernel || kernel->state != BHI_KERNEL_READY || !kernel->has_run ||
                !split_ready(kernel, (const struct bhi_cmd_dispatch *)command)) {
                return false;
            }
        }
    }
    return true;
}
