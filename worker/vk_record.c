#include "vk_backend.h"

#include "commands.h"
#include "vk_fault.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

#define WORK_STAGES (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT)
#define WORK_WRITES (VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
#define WORK_READS                                                                                 \
    (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT)
#define HOST_ACCESS (VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT)

/* State of one recording in progress. */
struct recorder {
    struct bhi_backend *backend;
    struct bhi_vk_recording *recording;
    struct bhi_fault *fault;
    const struct bhi_vk_kernel *bound_kernel;
    const struct bhi_vk_group *bound_group;
    bool any; /* a command for the device has been recorded */
};

static bool out_of_memory(struct recorder *r) {
    bhi_fault_set(r->fault, BH_OUT_OF_HOST_MEMORY, "out of memory while recording commands");
    return false;
}

/* Lists each object once: |stamp| is the object's own note of the recording that lists it. */
static bool depend_on(struct recorder *r, struct bhi_list *list, void *object, uint64_t *stamp) {
    if (*stamp == r->backend->stamp) {
        return true;
    }
    *stamp = r->backend->stamp;
    return bhi_list_add(list, object) || out_of_memory(r);
}

static struct bhi_vk_buffer *find_buffer(struct recorder *r, uint64_t id) {
    struct bhi_vk_buffer *buffer = bhi_map_get(&r->backend->buffers, id);
    if (buffer == NULL) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH, "buffer %llu is not attached",
                      (unsigned long long)id);
        return NULL;
    }
    if (buffer->fault.status != BH_OK) {
        *r->fault = buffer->fault;
        return NULL;
    }
    return depend_on(r, &r->recording->buffers, buffer, &buffer->stamp) ? buffer : NULL;
}

static struct bhi_vk_kernel *find_kernel(struct recorder *r, uint64_t id) {
    struct bhi_backend *b = r->backend;
    struct bhi_vk_kernel *kernel = bhi_map_get(&b->kernels.map, id);
    if (kernel == NULL) {
        bhi_fault_set(r->fault, BH_INVALID_KERNEL, "kernel %llu is not there",
                      (unsigned long long)id);
        return NULL;
    }
    if (kernel->last_run == b->run && kernel->state == BHI_KERNEL_READY) {
        return kernel; /* seen in this run already */
    }
    if (!bhi_vk_kernel_prepare(&b->device, &b->kernels, kernel, r->fault)) {
        return NULL;
    }
    bhi_vk_kernel_touch(&b->kernels, kernel, b->run);
    bhi_vk_evict_pipelines(b);
    return kernel;
}

static void barrier(struct recorder *r) {
    struct bhi_backend *b = r->backend;
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = WORK_WRITES,
        .dstAccessMask = WORK_READS | WORK_WRITES,
    };
    b->device.api.CmdPipelineBarrier(r->recording->commands, b->hazards.stages, WORK_STAGES, 0, 1,
                                     &memory, 0, NULL, 0, NULL);
    bhi_hazards_clear(&b->hazards);
    r->recording->barriers++;
}

/* The reflection's binding at |set|, |binding|, or -1. They are sorted. */
static int place_of(const struct bhi_reflection *reflection, uint32_t set, uint32_t binding) {
    uint32_t low = 0, high = reflection->binding_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct bhi_reflected_binding *at = &reflection->bindings[middle];
        if (at->set == set && at->binding == binding) {
            return (int)middle;
        }
        if (at->set < set || (at->set == set && at->binding < binding)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

/* How messages name a binding: set 0 binding 1 ("weights") of kernel "matmul". */
#define PLACE "set %u binding %u (\"%s\") of kernel \"%s\""

static bool check_range(struct recorder *r, const struct bhi_vk_kernel *kernel,
                        const struct bhi_reflected_binding *place,
                        const struct bhi_cmd_binding *given, const struct bhi_vk_buffer *buffer) {
    const VkPhysicalDeviceLimits *limits = &r->backend->device.limits;
    const bool uniform = place->kind == BH_UNIFORM_BUFFER;
    const uint64_t alignment =
        uniform ? limits->minUniformBufferOffsetAlignment : limits->minStorageBufferOffsetAlignment;
    const uint64_t longest =
        uniform ? limits->maxUniformBufferRange : limits->maxStorageBufferRange;
    const char *kind = uniform ? "Uniform" : "Storage";
    if (given->offset > buffer->size || given->size > buffer->size - given->offset) {
        bhi_fault_set(
            r->fault, BH_BINDING_MISMATCH, PLACE ": bytes %llu to %llu of a buffer of %llu bytes",
            place->set, place->binding, place->name, BHI_KERNEL_LABEL(kernel),
            (unsigned long long)given->offset, (unsigned long long)(given->offset + given->size),
            (unsigned long long)buffer->size);
        return false;
    }
    if (given->size == 0 && buffer->size != 0) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH, PLACE ": the range is empty", place->set,
                      place->binding, place->name, BHI_KERNEL_LABEL(kernel));
        return false;
    }
    if (given->offset % alignment != 0) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                      PLACE ": offset %llu is not a multiple of %llu (min%sBufferOffsetAlignment)",
                      place->set, place->binding, place->name, BHI_KERNEL_LABEL(kernel),
                      (unsigned long long)given->offset, (unsigned long long)alignment, kind);
        return false;
    }
    if (given->size > longest) {
        bhi_fault_set(r->fault, BH_LIMIT_EXCEEDED,
                      PLACE ": %llu bytes, the device allows %llu (max%sBufferRange)", place->set,
                      place->binding, place->name, BHI_KERNEL_LABEL(kernel),
                      (unsigned long long)given->size, (unsigned long long)longest, kind);
        return false;
    }
    if (given->size < place->min_bytes) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                      PLACE ": the uniform block has %u bytes, %llu were given", place->set,
                      place->binding, place->name, BHI_KERNEL_LABEL(kernel), place->min_bytes,
                      (unsigned long long)given->size);
        return false;
    }
    return true;
}

static bool resolve_bindings(struct recorder *r, const struct bhi_vk_kernel *kernel,
                             const struct bhi_cmd_dispatch *dispatch,
                             struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS],
                             struct bhi_group_range *ranges) {
    const struct bhi_reflection *reflection = kernel->reflection;
    const struct bhi_cmd_binding *given = bhi_cmd_bindings(dispatch);
    memset(buffers, 0, reflection->binding_count * sizeof *buffers);
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        /* Callers mostly give them in order. */
        const struct bhi_reflected_binding *guess = &reflection->bindings[i];
        int at = i < reflection->binding_count && guess->set == given[i].set &&
                         guess->binding == given[i].binding
                     ? (int)i
                     : place_of(reflection, given[i].set, given[i].binding);
        if (at < 0) {
            bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                          "set %u binding %u was given, but kernel \"%s\" does not use it",
                          given[i].set, given[i].binding, BHI_KERNEL_LABEL(kernel));
            return false;
        }
        const struct bhi_reflected_binding *place = &reflection->bindings[at];
        if (buffers[at] != NULL) {
            bhi_fault_set(r->fault, BH_BINDING_MISMATCH, PLACE " was given twice", place->set,
                          place->binding, place->name, BHI_KERNEL_LABEL(kernel));
            return false;
        }
        buffers[at] = find_buffer(r, given[i].buffer);
        if (buffers[at] == NULL || !check_range(r, kernel, place, &given[i], buffers[at])) {
            return false;
        }
        if (place->stores && !(given[i].access & BH_WRITE)) {
            bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                          PLACE " was given to read, but the kernel writes to it: give it to "
                                "write, or mend the kernel and declare it readonly",
                          place->set, place->binding, place->name, BHI_KERNEL_LABEL(kernel));
            return false;
        }
        ranges[at] = (struct bhi_group_range){buffers[at], given[i].offset, given[i].size};
    }
    for (uint32_t i = 0; i < reflection->binding_count; i++) {
        if (buffers[i] == NULL) {
            const struct bhi_reflected_binding *place = &reflection->bindings[i];
            bhi_fault_set(r->fault, BH_BINDING_MISMATCH, PLACE " was not given", place->set,
                          place->binding, place->name, BHI_KERNEL_LABEL(kernel));
            return false;
        }
    }
    return true;
}

static bool check_grid(struct recorder *r, const struct bhi_cmd_dispatch *dispatch) {
    const uint32_t groups[3] = {dispatch->groups_x, dispatch->groups_y, dispatch->groups_z};
    const uint32_t *limits = r->backend->device.limits.maxComputeWorkGroupCount;
    for (int axis = 0; axis < 3; axis++) {
        if (groups[axis] > limits[axis]) {
            bhi_fault_set(r->fault, BH_LIMIT_EXCEEDED,
                          "%u workgroups in %c, the device allows %u (maxComputeWorkGroupCount)",
                          groups[axis], "xyz"[axis], limits[axis]);
            return false;
        }
    }
    return true;
}

static bool check_push(struct recorder *r, const struct bhi_vk_kernel *kernel,
                       const struct bhi_cmd_dispatch *dispatch) {
    if (dispatch->push_size != kernel->reflection->push_bytes) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                      "kernel \"%s\" takes %u bytes of push constants, %u were given",
                      BHI_KERNEL_LABEL(kernel), kernel->reflection->push_bytes,
                      dispatch->push_size);
        return false;
    }
    return true;
}

static bool record_dispatch(struct recorder *r, const struct bhi_cmd_dispatch *dispatch) {
    struct bhi_backend *b = r->backend;
    const struct bhi_vk_api *vk = &b->device.api;
    VkCommandBuffer commands = r->recording->commands;
    struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS];
    struct bhi_group_range ranges[BHI_MAX_BINDINGS];
    struct bhi_vk_kernel *kernel = find_kernel(r, dispatch->kernel);
    if (kernel == NULL || !depend_on(r, &r->recording->kernels, kernel, &kernel->stamp) ||
        !check_grid(r, dispatch) || !check_push(r, kernel, dispatch) ||
        !resolve_bindings(r, kernel, dispatch, buffers, ranges)) {
        return false;
    }
    const struct bhi_reflection *reflection = kernel->reflection;
    bool depends = false;
    for (uint32_t i = 0; i < reflection->binding_count && !depends; i++) {
        depends =
            bhi_hazards_conflict(&b->hazards, buffers[i], ranges[i].offset,
                                 ranges[i].offset + ranges[i].size, reflection->bindings[i].stores);
    }
    if (depends) {
        barrier(r);
    }
    for (uint32_t i = 0; i < reflection->binding_count; i++) {
        if (!bhi_hazards_add(&b->hazards, buffers[i], ranges[i].offset,
                             ranges[i].offset + ranges[i].size, reflection->bindings[i].stores)) {
            return out_of_memory(r);
        }
    }
    b->hazards.stages |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;

    if (r->bound_kernel != kernel) {
        vk->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
        r->bound_kernel = kernel;
        r->bound_group = NULL;
    }
    if (reflection->set_count > 0) {
        struct bhi_vk_group *group =
            bhi_vk_group_get(&b->device, &b->groups, kernel, ranges, r->fault);
        if (group == NULL) {
            return false;
        }
        if (group == r->bound_group) {
            bhi_vk_group_release(&b->device, &b->groups, group); /* the recording has one */
        } else {
            if (!bhi_list_add(&r->recording->groups, group)) {
                bhi_vk_group_release(&b->device, &b->groups, group);
                return out_of_memory(r);
            }
            vk->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0,
                                      reflection->set_count, group->sets, 0, NULL);
            r->bound_group = group;
        }
    }
    if (dispatch->push_size > 0) {
        vk->CmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                             dispatch->push_size, bhi_cmd_push(dispatch));
    }
    vk->CmdDispatch(commands, dispatch->groups_x, dispatch->groups_y, dispatch->groups_z);
    r->any = true;
    return true;
}

static bool in_range(struct recorder *r, const struct bhi_vk_buffer *buffer, const char *what,
                     uint64_t offset, uint64_t bytes) {
    if (offset > buffer->size || bytes > buffer->size - offset) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH,
                      "%s: %llu bytes from %llu on, of a buffer of %llu bytes", what,
                      (unsigned long long)bytes, (unsigned long long)offset,
                      (unsigned long long)buffer->size);
        return false;
    }
    return true;
}

static bool record_copy(struct recorder *r, const struct bhi_cmd_copy *copy) {
    struct bhi_backend *b = r->backend;
    struct bhi_vk_buffer *src = find_buffer(r, copy->src);
    struct bhi_vk_buffer *dst = src != NULL ? find_buffer(r, copy->dst) : NULL;
    if (dst == NULL || !in_range(r, src, "copy source", copy->src_offset, copy->bytes) ||
        !in_range(r, dst, "copy destination", copy->dst_offset, copy->bytes)) {
        return false;
    }
    const uint64_t src_end = copy->src_offset + copy->bytes;
    const uint64_t dst_end = copy->dst_offset + copy->bytes;
    if (src == dst && copy->src_offset < dst_end && copy->dst_offset < src_end) {
        bhi_fault_set(r->fault, BH_BINDING_MISMATCH, "the copy's source and destination overlap");
        return false;
    }
    if (bhi_hazards_conflict(&b->hazards, src, copy->src_offset, src_end, false) ||
        bhi_hazards_conflict(&b->hazards, dst, copy->dst_offset, dst_end, true)) {
        barrier(r);
    }
    if (!bhi_hazards_add(&b->hazards, src, copy->src_offset, src_end, false) ||
        !bhi_hazards_add(&b->hazards, dst, copy->dst_offset, dst_end, true)) {
        return out_of_memory(r);
    }
    b->hazards.stages |= VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkBufferCopy region = {copy->src_offset, copy->dst_offset, copy->bytes};
    b->device.api.CmdCopyBuffer(r->recording->commands, src->buffer, dst->buffer, 1, &region);
    r->any = true;
    return true;
}

static bool record_fill(struct recorder *r, const struct bhi_cmd_fill *fill) {
    struct bhi_backend *b = r->backend;
    struct bhi_vk_buffer *dst = find_buffer(r, fill->dst);
    if (dst == NULL || !in_range(r, dst, "fill", fill->dst_offset, fill->bytes)) {
        return false;
    }
    const uint64_t end = fill->dst_offset + fill->bytes;
    if (bhi_hazards_conflict(&b->hazards, dst, fill->dst_offset, end, true)) {
        barrier(r);
    }
    if (!bhi_hazards_add(&b->hazards, dst, fill->dst_offset, end, true)) {
        return out_of_memory(r);
    }
    b->hazards.stages |= VK_PIPELINE_STAGE_TRANSFER_BIT;
    b->device.api.CmdFillBuffer(r->recording->commands, dst->buffer, fill->dst_offset, fill->bytes,
                                fill->value);
    r->any = true;
    return true;
}

static bool record_command(struct recorder *r, const struct bhi_cmd_header *command) {
    switch ((enum bhi_command_type)command->type) {
    case BHI_CMD_DISPATCH:
        return record_dispatch(r, (const struct bhi_cmd_dispatch *)command);
    case BHI_CMD_COPY:
        return record_copy(r, (const struct bhi_cmd_copy *)command);
    case BHI_CMD_FILL:
        return record_fill(r, (const struct bhi_cmd_fill *)command);
    case BHI_CMD_PREPARE:
        return find_kernel(r, ((const struct bhi_cmd_prepare *)command)->kernel) != NULL;
    }
    bhi_fault_set(r->fault, BH_PROTOCOL, "unknown command type %u", command->type);
    return false;
}

/* The end of a recording: its writes are available to the host, and to whatever the queue runs
 * next. */
static void finish_writes(struct recorder *r) {
    struct bhi_backend *b = r->backend;
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = WORK_WRITES,
        .dstAccessMask = WORK_READS | WORK_WRITES | HOST_ACCESS,
    };
    b->device.api.CmdPipelineBarrier(r->recording->commands, WORK_STAGES,
                                     WORK_STAGES | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0,
                                     NULL, 0, NULL);
}

struct bhi_vk_recording *bhi_vk_record(struct bhi_backend *b, const struct bhi_lane_record *record,
                                       struct bhi_fault *fault) {
    const struct bhi_cmd_header *first = bhi_record_first(record);
    const size_t size = (size_t)(record->size - sizeof *record);
    const uint64_t hash = bhi_vk_recording_hash(first, size);
    struct bhi_vk_recording *recording = bhi_vk_recording_find(&b->recordings, hash, first, size);
    if (recording != NULL) {
        recording->last_run = b->run;
        for (size_t i = 0; i < recording->kernels.count; i++) {
            bhi_vk_kernel_touch(&b->kernels, recording->kernels.items[i], b->run);
        }
        return recording;
    }
    recording = bhi_vk_recording_take(&b->device, &b->recordings, &b->groups, b->run, hash, first,
                                      size, fault);
    if (recording == NULL) {
        return NULL;
    }
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, /* twice in one vkQueueSubmit */
    };
    VkResult result = b->device.api.BeginCommandBuffer(recording->commands, &begin);
    if (result != VK_SUCCESS) {
        bhi_fault_vk(fault, result, "vkBeginCommandBuffer");
        bhi_vk_recording_clear(&b->device, &b->recordings, &b->groups, recording);
        return NULL;
    }
    struct recorder r = {.backend = b, .recording = recording, .fault = fault};
    bool ok = true;
    uint32_t index = 0;
    bhi_hazards_clear(&b->hazards);
    b->stamp++;
    for (const struct bhi_cmd_header *command = first; ok && command != NULL;
         command = bhi_record_next(record, command)) {
        ok = record_command(&r, command);
        index += ok;
    }
    if (ok) {
        finish_writes(&r);
        recording->idle = !r.any;
        b->last_barriers = recording->barriers;
    } else {
        fault->command_index = index;
    }
    result = b->device.api.EndCommandBuffer(recording->commands);
    if (ok && result != VK_SUCCESS) {
        bhi_fault_vk(fault, result, "vkEndCommandBuffer");
        ok = false;
    }
    if (!ok) {
        bhi_vk_recording_clear(&b->device, &b->recordings, &b->groups, recording);
        return NULL;
    }
    bhi_vk_recording_publish(&b->recordings, recording);
    return recording;
}
