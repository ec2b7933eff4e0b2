#include "base/futex.h"
#include "ipc/commands.h"
#include "worker/error.h"
#include "worker/vulkan/backend.h"
#include "worker/vulkan/bind.h"
#include "worker/vulkan/dispatch.h"
#include "worker/vulkan/recorder.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

/* Priming: a kernel's first dispatch runs with the abort word set. A driver that compiles after the
 * submission (lavapipe) does it then, and nothing of the kernel runs. So compiling and running have
 * separate deadlines. */
/* Returns a group with arbitrary bindings, because the kernel returns before it reads them. */
static bool prime_group(struct bhi_vk_backend *b, const struct bhi_vk_kernel *kernel,
                        struct bhi_vk_group **out, struct bhi_error *error) {
    const struct bhi_module_bindings *r = kernel->reflection;
    struct bhi_group_range ranges[BHI_MAX_BINDINGS];
    *out = NULL;
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        ranges[i] =
            (struct bhi_group_range){.buffer = &b->page_buffer, .size = b->page_buffer.size};
    }
    if (r->set_count > 0) {
        *out = bhi_vk_group_get(&b->groups, kernel, ranges, error);
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
static void record_prime_again(struct bhi_vk_backend *b, VkPipeline pipeline) {
    const struct bhi_vk_api *vk = &b->device.api;
    bhi_vk_barrier(&b->device, b->primer, BHI_WORK_STAGES, BHI_WORK_WRITES, BHI_WORK_STAGES,
                   BHI_WORK_READS | BHI_WORK_WRITES);
    vk->CmdBindPipeline(b->primer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk->CmdDispatch(b->primer, 1, 1, 1);
}

static VkResult record_prime(struct bhi_vk_backend *b, const struct bhi_vk_kernel *kernel,
                             VkPipeline pipeline, const struct bhi_vk_group *group) {
    const struct bhi_vk_api *vk = &b->device.api;
    const uint32_t push[1024] = {0};
    VkResult result = bhi_vk_commands_begin(&b->device, b->primer, true);
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
        record_prime_again(b, pipeline);
    }
    return vk->EndCommandBuffer(b->primer);
}

static bool run_prime(struct bhi_vk_backend *b, struct bhi_error *error) {
    VkResult result = bhi_vk_submit(&b->device, b->device.queue, b->primer, b->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkQueueSubmit (compiling a kernel)");
        b->base.lost |= error->status == BH_DEVICE_LOST;
        return false;
    }
    result = bhi_vk_finish(&b->device, b->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "waiting for the device (compiling a kernel)");
        error->status = BH_DEVICE_LOST; /* whatever the result says, the device may still run it */
        b->base.lost = true;
    }
    return result == VK_SUCCESS;
}

/* |pipeline| belongs to |kernel|, which is READY and guarded. Returns false and *error on failure;
 * the device may be lost then (backend->lost). */
static bool prime(struct bhi_vk_backend *b, const struct bhi_vk_kernel *kernel, VkPipeline pipeline,
                  struct bhi_error *error) {
    struct bhi_vk_group *group;
    if (!prime_group(b, kernel, &group, error)) {
        return false;
    }
    VkResult result = record_prime(b, kernel, pipeline, group);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "recording the first dispatch of a kernel");
    }
    const bool good = result == VK_SUCCESS && run_prime(b, error);
    /* The group is not used again. But a lost device may still be using it. */
    if (group && !b->base.lost) {
        bhi_vk_groups_forget(&b->groups, &b->page_buffer, NULL);
    }
    return good;
}

static bool out_of_memory(struct bhi_recorder *r) {
    BHI_ERROR(r->error, BH_REASON_HOST_MEMORY, NULL, .text = "a recording");
    return false;
}

static void log_compile(const struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                        uint64_t took_ns) {
    char line[384];
    if (r->backend->base.calls.log && (r->learns || r->seq != 0)) { /* 0 is the warm-up */
        snprintf(line, sizeof line, "kernel %s: compiled in %.1f ms%s", BHI_KERNEL_LABEL(kernel),
                 (double)took_ns / 1e6, r->learns ? ", before it is needed" : "");
        r->backend->base.calls.log(r->backend->base.calls.user, 3, line);
    }
}

static void begin_compiling(struct bhi_recorder *r) {
    if (!r->learns) {
        bhi_backend_compiles(&r->backend->base, r->seq);
    }
}

/* Compiles the kernel completely, whenever its driver does that. */
static bool make_ready(struct bhi_recorder *r, struct bhi_vk_kernel *kernel) {
    struct bhi_vk_backend *b = r->backend;
    const bool primes = bhi_vk_kernel_guarded(kernel) && !kernel->has_run;
    const bool compiles = kernel->state != BHI_KERNEL_READY || primes;
    const uint64_t began = compiles ? bhi_now_ns() : 0;
    if (compiles) {
        begin_compiling(r);
    }
    if (!bhi_vk_kernel_prepare(&b->device, &b->kernels, kernel, r->error)) {
        return false;
    }
    bhi_vk_kernel_touch(&b->kernels, kernel, b->run);
    bhi_vk_evict_pipelines(&b->recordings, &b->kernels, b->run);
    if (primes && !prime(b, kernel, kernel->pipeline, r->error)) {
        return false;
    }
    kernel->has_run |= primes;
    if (compiles) {
        log_compile(r, kernel, bhi_now_ns() - began);
    }
    return true;
}

/* The same for the pipeline for grids in parts, which few kernels need. The kernel is READY. */
static bool make_split_ready(struct bhi_recorder *r, struct bhi_vk_kernel *kernel) {
    struct bhi_vk_backend *b = r->backend;
    if (kernel->split != VK_NULL_HANDLE) {
        return true;
    }
    const uint64_t began = bhi_now_ns();
    begin_compiling(r);
    if (!bhi_vk_kernel_prepare_split(&b->device, &b->kernels, kernel, r->error)) {
        return false;
    }
    if (!prime(b, kernel, kernel->split, r->error)) {
        if (!b->base.lost) { /* a lost device may still be using it */
            b->device.api.DestroyPipeline(b->device.device, kernel->split, NULL);
            kernel->split = VK_NULL_HANDLE;
        }
        return false;
    }
    log_compile(r, kernel, bhi_now_ns() - began);
    return true;
}

static struct bhi_vk_kernel *look_up(struct bhi_vk_backend *b, uint64_t id,
                                     struct bhi_error *error) {
    struct bhi_vk_kernel *kernel = bhi_map_get(&b->kernels.map, id);
    if (!kernel) {
        BHI_ERROR_SAY(error, b->base.starved ? BH_REASON_HOST_MEMORY : BH_REASON_KERNEL_RULE,
                      b->base.starved ? "kernel %llu" : "kernel %llu does not exist",
                      (unsigned long long)id);
    }
    return kernel;
}

static struct bhi_vk_kernel *find_kernel(struct bhi_recorder *r, uint64_t id) {
    struct bhi_vk_backend *b = r->backend;
    struct bhi_vk_kernel *kernel = look_up(b, id, r->error);
    if (!kernel) {
        return NULL;
    }
    if ((kernel->last_run != b->run || kernel->state != BHI_KERNEL_READY) &&
        !make_ready(r, kernel)) {
        return NULL;
    }
    return bhi_recorder_depend(r, &r->uses->kernels, kernel, &kernel->stamp) ? kernel : NULL;
}

static void barrier(struct bhi_recorder *r) {
    struct bhi_vk_backend *b = r->backend;
    const bool compute = b->hazards.stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const bool transfer = b->hazards.stages & VK_PIPELINE_STAGE_TRANSFER_BIT;
    bhi_vk_barrier(&b->device, r->commands, b->hazards.stages,
                   (compute ? VK_ACCESS_SHADER_WRITE_BIT : 0u) |
                       (transfer ? VK_ACCESS_TRANSFER_WRITE_BIT : 0u),
                   BHI_WORK_STAGES, BHI_WORK_READS | BHI_WORK_WRITES);
    bhi_hazards_clear(&b->hazards);
    r->uses->barriers++;
}

void bhi_recorder_settle(const struct bhi_recorder *r) {
    bhi_vk_barrier(&r->backend->device, r->commands, BHI_WORK_STAGES, BHI_WORK_WRITES,
                   BHI_WORK_STAGES | VK_PIPELINE_STAGE_HOST_BIT,
                   BHI_WORK_READS | BHI_WORK_WRITES | BHI_HOST_ACCESS);
    bhi_hazards_clear(&r->backend->hazards);
}

/* A range that a command is about to use. */
struct use {
    struct bhi_vk_buffer *buffer;
    uint64_t begin, end;
    bool write;
};

/* Puts a barrier before a command that uses these ranges, if it depends on an earlier one. */
static bool order(struct bhi_recorder *r, const struct use *uses, uint32_t count,
                  VkPipelineStageFlags stage) {
    struct bhi_hazards *hazards = &r->backend->hazards;
    for (uint32_t i = 0; i < count; i++) {
        if (bhi_hazards_conflict(hazards, uses[i].buffer, uses[i].begin, uses[i].end,
                                 uses[i].write)) {
            barrier(r);
            break;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!bhi_hazards_add(hazards, uses[i].buffer, uses[i].begin, uses[i].end, uses[i].write)) {
            return out_of_memory(r);
        }
    }
    hazards->stages |= stage;
    return true;
}

/* Finds the descriptor sets for |ranges| and lists them. |r| holds only one reference, however
 * often it binds them. */
static bool find_group(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                       const struct bhi_group_range *ranges, struct bhi_vk_group **out) {
    struct bhi_vk_backend *b = r->backend;
    *out = NULL;
    if (kernel->reflection->set_count == 0) {
        return true;
    }
    *out = bhi_vk_group_get(&b->groups, kernel, ranges, r->error);
    if (!*out) {
        return false;
    }
    if (*out != r->bound_group && !bhi_pointers_add(&r->uses->groups, *out)) {
        bhi_vk_group_release(&b->groups, *out);
        return out_of_memory(r);
    }
    if (*out == r->bound_group) {
        bhi_vk_group_release(&b->groups, *out); /* it is listed, with a reference */
    }
    return true;
}

static bool record_dispatch(struct bhi_recorder *r, const struct bhi_cmd_dispatch *dispatch) {
    const struct bhi_vk_api *vk = &r->backend->device.api;
    struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS];
    struct bhi_group_range ranges[BHI_MAX_BINDINGS];
    struct use uses[BHI_MAX_BINDINGS];
    struct bhi_vk_group *group;
    struct bhi_vk_kernel *kernel = find_kernel(r, dispatch->kernel);
    if (!kernel || !bhi_bind_check(r, kernel, dispatch, buffers, ranges)) {
        return false;
    }
    const uint32_t groups[3] = {dispatch->groups_x, dispatch->groups_y, dispatch->groups_z};
    const bool split = kernel->reads_grid && bhi_vk_dispatch_splits(kernel, groups);
    if (split && !make_split_ready(r, kernel)) {
        return false;
    }
    if (r->check_only) {
        return true;
    }
    const struct bhi_module_bindings *reflection = kernel->reflection;
    for (uint32_t i = 0, b = 0; i < reflection->buffer_count; i++) {
        b += i == reflection->bindings[b].first + reflection->bindings[b].count;
        uses[i] = (struct use){buffers[i], ranges[i].offset, ranges[i].offset + ranges[i].size,
                               reflection->bindings[b].stores};
    }
    if (!find_group(r, kernel, ranges, &group) ||
        !order(r, uses, reflection->buffer_count, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)) {
        return false;
    }
    VkPipeline pipeline = split ? kernel->split : kernel->pipeline;
    if (r->bound_pipeline != pipeline) {
        vk->CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        r->bound_pipeline = pipeline;
    }
    if (kernel->guard_shares_set && group != r->bound_group) {
        r->bound_abort = NULL;
    }
    if (!group) {
        r->bound_group = NULL; /* the guard's set takes the place of the group's first set */
    } else if (group != r->bound_group) {
        bhi_vk_bind_group(r->backend, r->commands, kernel, group);
        r->bound_group = group;
    }
    if (bhi_vk_kernel_guarded(kernel) && r->bound_abort != kernel) {
        bhi_vk_bind_abort(r->backend, r->commands, kernel, group, r->slot);
        r->bound_abort = kernel;
    }
    if (dispatch->push_size > 0) {
        vk->CmdPushConstants(r->commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             dispatch->push_size, bhi_cmd_push(dispatch));
    }
    bhi_vk_dispatch(r->backend, r->commands, kernel, groups, r->slot);
    return true;
}

static bool record_copy(struct bhi_recorder *r, const struct bhi_cmd_copy *copy) {
    struct bhi_vk_buffer *src = bhi_recorder_buffer(r, copy->src, false);
    struct bhi_vk_buffer *dst = src ? bhi_recorder_buffer(r, copy->dst, true) : NULL;
    if (!dst ||
        !bhi_range_check(src->size, "copy source", copy->src_offset, copy->bytes, r->error) ||
        !bhi_range_check(dst->size, "copy destination", copy->dst_offset, copy->bytes, r->error)) {
        return false;
    }
    const uint64_t src_end = copy->src_offset + copy->bytes;
    const uint64_t dst_end = copy->dst_offset + copy->bytes;
    if (r->check_only) {
        return true;
    }
    const struct use uses[] = {{src, copy->src_offset, src_end, false},
                               {dst, copy->dst_offset, dst_end, true}};
    if (!order(r, uses, 2, VK_PIPELINE_STAGE_TRANSFER_BIT)) {
        return false;
    }
    const VkBufferCopy region = {copy->src_offset, copy->dst_offset, copy->bytes};
    r->backend->device.api.CmdCopyBuffer(r->commands, src->buffer, dst->buffer, 1, &region);
    return true;
}

static bool record_fill(struct bhi_recorder *r, const struct bhi_cmd_fill *fill) {
    struct bhi_vk_buffer *dst = bhi_recorder_buffer(r, fill->dst, true);
    if (!dst || !bhi_range_check(dst->size, "fill", fill->dst_offset, fill->bytes, r->error)) {
        return false;
    }
    if (r->check_only) {
        return true;
    }
    const struct use use = {dst, fill->dst_offset, fill->dst_offset + fill->bytes, true};
    if (!order(r, &use, 1, VK_PIPELINE_STAGE_TRANSFER_BIT)) {
        return false;
    }
    r->backend->device.api.CmdFillBuffer(r->commands, dst->buffer, fill->dst_offset, fill->bytes,
                                         fill->value);
    return true;
}

static bool record_command(struct bhi_recorder *r, const struct bhi_cmd_header *command) {
    switch ((enum bhi_command_type)command->type) {
    case BHI_CMD_DISPATCH:
        return record_dispatch(r, (const struct bhi_cmd_dispatch *)command);
    case BHI_CMD_COPY:
        return record_copy(r, (const struct bhi_cmd_copy *)command);
    case BHI_CMD_FILL:
        return record_fill(r, (const struct bhi_cmd_fill *)command);
    case BHI_CMD_PREPARE:
        return find_kernel(r, ((const struct bhi_cmd_prepare *)command)->kernel);
    case BHI_CMD_INSPECT:
    case BHI_CMD_LOAD: /* only a loader runs this */
    case BHI_CMD_COMPILE:
    case BHI_CMD_REFLECT:
        break;
    }
    BHI_ERROR_SAY(r->error, BH_REASON_WORKER_LACKS, "run %s", bhi_command_name(command->type));
    return false;
}

bool bhi_recorder_add(struct bhi_recorder *r, const struct bhi_lane_record *record) {
    uint32_t index = 0;
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (!record_command(r, command)) {
            r->error->command_index = index;
            return false;
        }
        index++;
    }
    return true;
}

bool bhi_recorder_add_timed(struct bhi_recorder *r, const struct bhi_lane_record *record) {
    const struct bhi_vk_backend *b = r->backend;
    if (!(record->flags & BHI_RECORD_TIMED)) {
        return bhi_recorder_add(r, record);
    }
    bhi_vk_timing_stamp(&b->device, &b->timing, r->commands, r->slot, false);
    if (!bhi_recorder_add(r, record)) {
        return false;
    }
    bhi_vk_timing_stamp(&b->device, &b->timing, r->commands, r->slot, true);
    return true;
}

bool bhi_vk_learn(struct bhi_backend *backend, uint64_t id, struct bhi_error *error) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_recorder r = {.backend = b, .error = error, .learns = true};
    if (b->base.lost) {
        BHI_ERROR(error, BH_REASON_LOST, .text = "before");
        return false;
    }
    struct bhi_vk_kernel *kernel = look_up(b, id, error);
    if (!kernel) {
        return false;
    }
    b->run++;
    return make_ready(&r, kernel);
}

static bool record_into(struct bhi_vk_backend *b, struct bhi_vk_recording *recording,
                        const struct bhi_lane_record *record, struct bhi_error *error) {
    struct bhi_recorder r = {
        .backend = b,
        .uses = recording,
        .commands = recording->commands,
        .error = error,
        .seq = record->seq,
    };
    VkResult result = bhi_vk_commands_begin(&b->device, recording->commands, false);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkBeginCommandBuffer");
        return false;
    }
    b->stamp++;
    bhi_hazards_clear(&b->hazards);
    const bool ok = bhi_recorder_add_timed(&r, record);
    /* Without buffers nothing was written, but for the guard's flags on some drivers. */
    if (recording->buffers.count > 0 || !b->device.whole_loops) {
        bhi_recorder_settle(&r);
    }
    result = b->device.api.EndCommandBuffer(recording->commands);
    if (ok && result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkEndCommandBuffer");
    }
    return ok && result == VK_SUCCESS;
}

struct bhi_vk_recording *bhi_vk_record(struct bhi_vk_backend *b,
                                       const struct bhi_lane_record *record,
                                       struct bhi_error *error) {
    const void *key = &record->flags; /* the key is the flags and the commands after them */
    const size_t size = (size_t)record->size - offsetof(struct bhi_lane_record, flags);
    const uint64_t hash = bhi_vk_recording_hash(key, size);
    struct bhi_vk_recording *recording = bhi_vk_recording_find(&b->recordings, hash, key, size);
    if (recording) {
        recording->last_run = b->run;
        for (size_t i = 0; i < recording->kernels.count; i++) {
            bhi_vk_kernel_touch(&b->kernels, recording->kernels.items[i], b->run);
        }
        return recording;
    }
    recording = bhi_vk_recording_take(&b->recordings, b->run, hash, key, size, error);
    if (!recording) {
        return NULL;
    }
    if (!record_into(b, recording, record, error)) {
        bhi_vk_recording_clear(&b->recordings, recording);
        return NULL;
    }
    b->barriers += recording->barriers;
    bhi_vk_recording_publish(&b->recordings, recording);
    return recording;
}
