/* A record on the device's stream: first all of it is checked and prepared, then all is enqueued. */
#include "worker/cuda/backend.h"

#include "base/array.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define REGISTER_LEAST 65536u /* bytes of a copy for which host memory is registered */

bool bhi_cuda_buffers_add(struct bhi_cuda_buffers *list, struct bhi_cuda_buffer *buffer) {
    if (!BHI_ARRAY_RESERVE(list->items, list->capacity, list->count + 1)) {
        return false;
    }
    list->items[list->count++] = buffer;
    return true;
}

void bhi_cuda_buffers_remove(struct bhi_cuda_buffers *list, const struct bhi_cuda_buffer *buffer) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == buffer) {
            list->items[i] = list->items[--list->count];
            return;
        }
    }
}

void bhi_cuda_say_pinned(struct bhi_cuda_backend *b) {
    atomic_store(&b->page->markers.pinned, b->pinned.count > 0);
}

/* -- planning --------------------------------------------------------------------------------- */

static bool no_memory(struct bhi_error *error) {
    BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a recording");
    return false;
}

/* The record writes the device memory of |buffer|. */
static bool want(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *buffer,
                 struct bhi_error *error) {
    if (buffer->wanted == b->record) {
        return true;
    }
    buffer->wanted = b->record;
    return bhi_cuda_buffers_add(&b->wanted, buffer) || no_memory(error);
}

/* In this record its stage stands for |buffer|, which is host memory. */
static bool stage(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *buffer,
                  struct bhi_error *error) {
    if (buffer->staged == b->record) {
        return true;
    }
    if (!bhi_cuda_buffer_stage(&b->device, buffer, error)) {
        return false;
    }
    buffer->staged = b->record;
    buffer->valid = buffer->dirty = (struct bhi_cuda_span){0, 0};
    return (bhi_cuda_buffers_add(&b->staged, buffer) || no_memory(error)) && want(b, buffer, error);
}

static struct bhi_cuda_buffer *find_buffer(struct bhi_cuda_backend *b, uint64_t id, bool writes,
                                           struct bhi_error *error) {
    struct bhi_cuda_buffer *buffer = bhi_map_get(&b->buffers, id);
    return bhi_buffer_check(&b->base, id, buffer ? &buffer->error : NULL, writes,
                            buffer && buffer->writable, error)
               ? buffer
               : NULL;
}

struct name {
    char text[BHI_SUBJECT_NAME];
};

static struct name name_of(const struct bhi_cmd_binding *given) {
    struct name out;
    if (given->set == 0) {
        bhi_format(out.text, sizeof out.text, "parameter %u", given->binding);
    } else {
        bhi_format(out.text, sizeof out.text, "set %u binding %u", given->set, given->binding);
    }
    return out;
}

#define REFUSE(reason, kernel, given, ...)                                                         \
    (BHI_ERROR(error, BH_REASON_##reason, name_of(given).text,                                     \
               .text = bhi_cuda_kernel_label(kernel), __VA_ARGS__),                                \
     false)

static bool plan_binding(struct bhi_cuda_backend *b, const struct bhi_cuda_kernel *k,
                         const struct bhi_cmd_binding *given, bool *bound,
                         struct bhi_error *error) {
    const bool writes = given->access & BH_ACCESS_WRITE;
    if (given->set != 0 || given->binding >= k->parameter_count || given->element != 0) {
        return given->access & BH_ACCESS_OPTIONAL || REFUSE(BINDING_UNKNOWN, k, given, .value = 0);
    }
    const uint32_t size = k->parameters[given->binding].size;
    if (size != sizeof(CUdeviceptr)) {
        return REFUSE(PARAMETER_BYTES, k, given, .value = size, .limit = sizeof(CUdeviceptr));
    }
    if (bound[given->binding]) {
        return REFUSE(BINDING_TWICE, k, given, .value = 0);
    }
    bound[given->binding] = true;
    struct bhi_cuda_buffer *buffer = find_buffer(b, given->buffer, writes, error);
    if (!buffer) {
        if (error->told.reason == BH_REASON_BUFFER_ACCESS) {
            BHI_ERROR_APPEND(error, ", and bound as %s", name_of(given).text);
        }
        return false;
    }
    if (given->offset > buffer->size || given->size > buffer->size - given->offset) {
        return REFUSE(BINDING_RANGE, k, given, .value = given->offset + given->size,
                      .limit = buffer->size);
    }
    if (given->size == 0 && buffer->size != 0) {
        return REFUSE(BINDING_EMPTY, k, given, .limit = buffer->size);
    }
    if (!buffer->in_host) {
        return !writes || want(b, buffer, error);
    }
    return writes || !b->device.registers_read_only
               ? stage(b, buffer, error)
               : bhi_cuda_buffer_register(&b->device, buffer, error);
}

struct bhi_cuda_kernel *bhi_cuda_find_kernel(struct bhi_cuda_backend *b, uint64_t id, uint64_t seq,
                                             struct bhi_error *error) {
    struct bhi_cuda_kernel *kernel = bhi_map_get(&b->kernels, id);
    if (!kernel) {
        BHI_ERROR_SAY(error, b->base.starved ? BH_REASON_HOST_MEMORY : BH_REASON_KERNEL_RULE,
                      b->base.starved ? "kernel %llu" : "kernel %llu does not exist",
                      (unsigned long long)id);
        return NULL;
    }
    if (kernel->module) {
        return kernel;
    }
    if (seq != UINT64_MAX) { /* a spare learns it: there is no record */
        bhi_backend_compiles(&b->base, seq);
    }
    if (!bhi_cuda_kernel_load(&b->device, kernel, error)) {
        return NULL;
    }
    *(b->reflected_last ? &b->reflected_last->next_reflected : &b->reflected_first) = kernel;
    b->reflected_last = kernel;
    return kernel;
}

static bool plan_dispatch(struct bhi_cuda_backend *b, const struct bhi_cmd_dispatch *dispatch,
                          uint64_t seq, struct bhi_error *error) {
    static const uint64_t somewhere;
    bool bound[BHI_CUDA_PARAMETERS] = {false};
    const uint64_t *addresses[BHI_CUDA_PARAMETERS];
    const void *values[BHI_CUDA_PARAMETERS];
    const struct bhi_cuda_kernel *k = bhi_cuda_find_kernel(b, dispatch->kernel, seq, error);
    if (!k || !bhi_cuda_kernel_fits(&b->device, k, dispatch, error)) {
        return false;
    }
    const struct bhi_cmd_binding *given = bhi_cmd_bindings(dispatch);
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        if (!plan_binding(b, k, &given[i], bound, error)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < k->parameter_count; i++) {
        addresses[i] = bound[i] ? &somewhere : NULL;
    }
    return bhi_cuda_kernel_place(k, addresses, bhi_cmd_push(dispatch), dispatch->push_size, values,
                                 error);
}

/* Copies from the device go to |dst| again: registering it takes as long as two of them in the driver's
 * staging. A worker that has run a kernel leaves it. */
static void pin(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *dst) {
    if (dst->copied && !dst->pinned && !b->has_run && bhi_cuda_buffers_add(&b->pinned, dst)) {
        bhi_cuda_say_pinned(b); /* before it is */
        b->pinned.count -= !bhi_cuda_buffer_pin(&b->device, dst);
        bhi_cuda_say_pinned(b);
    }
    dst->copied = true;
}

static bool plan_copy(struct bhi_cuda_backend *b, const struct bhi_cmd_copy *copy,
                      struct bhi_error *error) {
    struct bhi_cuda_buffer *src = find_buffer(b, copy->src, false, error);
    struct bhi_cuda_buffer *dst = src ? find_buffer(b, copy->dst, true, error) : NULL;
    if (!dst || !bhi_range_check(src->size, "copy source", copy->src_offset, copy->bytes, error) ||
        !bhi_range_check(dst->size, "copy destination", copy->dst_offset, copy->bytes, error)) {
        return false;
    }
    if (src->in_host && copy->bytes >= REGISTER_LEAST && b->device.registers_read_only &&
        !bhi_cuda_buffer_register(&b->device, src, error)) {
        return false;
    }
    if (!src->in_host && dst->in_host && copy->bytes >= REGISTER_LEAST) {
        pin(b, dst);
    }
    /* From host to host it goes through the stage; from the device straight to the host. */
    return !dst->in_host ? want(b, dst, error) : !src->in_host || stage(b, dst, error);
}

static bool plan_fill(struct bhi_cuda_backend *b, const struct bhi_cmd_fill *fill,
                      struct bhi_error *error) {
    struct bhi_cuda_buffer *dst = find_buffer(b, fill->dst, true, error);
    return dst && bhi_range_check(dst->size, "fill", fill->dst_offset, fill->bytes, error) &&
           (dst->in_host ? stage(b, dst, error) : want(b, dst, error));
}

static bool plan_command(struct bhi_cuda_backend *b, const struct bhi_lane_record *record,
                         const struct bhi_cmd_header *command, struct bhi_error *error) {
    switch ((enum bhi_command_type)command->type) {
    case BHI_CMD_DISPATCH:
        return plan_dispatch(b, (const struct bhi_cmd_dispatch *)command, record->seq, error);
    case BHI_CMD_COPY:
        return plan_copy(b, (const struct bhi_cmd_copy *)command, error);
    case BHI_CMD_FILL:
        return plan_fill(b, (const struct bhi_cmd_fill *)command, error);
    case BHI_CMD_PREPARE:
        return bhi_cuda_find_kernel(b, ((const struct bhi_cmd_prepare *)command)->kernel,
                                    record->seq, error);
    case BHI_CMD_INSPECT:
    case BHI_CMD_LOAD: /* only a loader runs this */
    case BHI_CMD_COMPILE:
    case BHI_CMD_REFLECT:
        break;
    }
    BHI_ERROR_SAY(error, BH_REASON_WORKER_LACKS, "run %s", bhi_command_name(command->type));
    return false;
}

bool bhi_cuda_plan(struct bhi_cuda_backend *b, const struct bhi_lane_record *record,
                   struct bhi_error *error) {
    uint32_t index = 0;
    b->record++;
    b->wanted.count = b->staged.count = 0;
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (!plan_command(b, record, command, error)) {
            error->command_index = index;
            return false;
        }
        index++;
    }
    return true;
}

/* -- access (C1) ------------------------------------------------------------------------------ */

static bool has_kernel(const struct bhi_lane_record *record) {
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_DISPATCH) {
            return true;
        }
    }
    return false;
}

bool bhi_cuda_access_fits(const struct bhi_cuda_backend *b, const struct bhi_lane_record *record) {
    for (size_t i = 0; i < b->wanted.count; i++) {
        if (!b->wanted.items[i]->memory.writable) {
            return false;
        }
    }
    return (b->wanted.count == b->writable.count && b->pinned.count == 0) || !has_kernel(record);
}

/* The kernels of |record| are the first: they could write what is pinned. */
static CUresult unpin(struct bhi_cuda_backend *b, const struct bhi_lane_record *record) {
    CUresult result = CUDA_SUCCESS;
    while (b->pinned.count > 0 && result == CUDA_SUCCESS && has_kernel(record)) {
        result = bhi_cuda_buffer_unpin(&b->device, b->pinned.items[b->pinned.count - 1]);
        b->pinned.count -= result == CUDA_SUCCESS;
    }
    bhi_cuda_say_pinned(b);
    return result;
}

bool bhi_cuda_access_switch(struct bhi_cuda_backend *b, const struct bhi_lane_record *record,
                            struct bhi_error *error) {
    CUresult result = unpin(b, record);
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &b->device.api, result, "cuMemHostUnregister");
        return false;
    }
    for (size_t i = b->writable.count; result == CUDA_SUCCESS && i-- > 0;) {
        struct bhi_cuda_buffer *buffer = b->writable.items[i];
        if (buffer->wanted != b->record) {
            result = bhi_cuda_memory_allow(&b->device, &buffer->memory, false);
        }
        if (result == CUDA_SUCCESS && buffer->wanted != b->record) {
            b->writable.items[i] = b->writable.items[--b->writable.count];
        }
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < b->wanted.count; i++) {
        struct bhi_cuda_buffer *buffer = b->wanted.items[i];
        if (buffer->memory.writable) {
            continue;
        }
        if (!bhi_cuda_buffers_add(&b->writable, buffer)) {
            return no_memory(error);
        }
        result = bhi_cuda_memory_allow(&b->device, &buffer->memory, true);
        b->writable.count -= result != CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &b->device.api, result, "cuMemSetAccess");
    }
    return result == CUDA_SUCCESS;
}

/* -- enqueuing -------------------------------------------------------------------------------- */

static CUresult upload(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *buffer, uint64_t begin,
                       uint64_t end) {
    return begin >= end ? CUDA_SUCCESS
                        : b->device.api.cuMemcpyHtoDAsync(buffer->memory.address + begin,
                                                          (const char *)buffer->reads + begin,
                                                          end - begin, b->device.stream);
}

/* Before a command uses a range of the stage: what it |reads| has to be there. What is there stays one
 * range, so what lies between is uploaded too. */
static CUresult use_stage(struct bhi_cuda_backend *b, struct bhi_cuda_buffer *buffer,
                          uint64_t begin, uint64_t end, bool reads, bool writes) {
    struct bhi_cuda_span *valid = &buffer->valid, *dirty = &buffer->dirty;
    CUresult result = CUDA_SUCCESS;
    if (valid->begin == valid->end) {
        valid->begin = valid->end = begin;
    }
    if (begin < valid->begin) {
        result = upload(b, buffer, reads ? begin : end, valid->begin);
        valid->begin = begin;
    }
    if (result == CUDA_SUCCESS && end > valid->end) {
        result = upload(b, buffer, valid->end, reads ? end : begin);
        valid->end = end;
    }
    if (writes && dirty->begin == dirty->end) {
        *dirty = (struct bhi_cuda_span){begin, end};
    } else if (writes) {
        dirty->begin = begin < dirty->begin ? begin : dirty->begin;
        dirty->end = end > dirty->end ? end : dirty->end;
    }
    return result;
}

static CUresult enqueue_dispatch(struct bhi_cuda_backend *b,
                                 const struct bhi_cmd_dispatch *dispatch, const char **out_call) {
    uint64_t addresses[BHI_CUDA_PARAMETERS];
    const uint64_t *bound[BHI_CUDA_PARAMETERS] = {NULL};
    const void *values[BHI_CUDA_PARAMETERS];
    struct bhi_error ignored;
    struct bhi_cuda_kernel *k = bhi_map_get(&b->kernels, dispatch->kernel);
    const struct bhi_cmd_binding *given = bhi_cmd_bindings(dispatch);
    CUresult result = CUDA_SUCCESS;
    *out_call = "cuMemcpyHtoDAsync";
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < dispatch->binding_count; i++) {
        const uint32_t at = given[i].binding;
        if (given[i].set != 0 || at >= k->parameter_count || given[i].element != 0) {
            continue; /* optional */
        }
        struct bhi_cuda_buffer *buffer = bhi_map_get(&b->buffers, given[i].buffer);
        const bool staged = buffer->staged == b->record;
        if (staged) {
            result = use_stage(b, buffer, given[i].offset, given[i].offset + given[i].size,
                               given[i].access & BH_ACCESS_READ, given[i].access & BH_ACCESS_WRITE);
        }
        addresses[at] = (buffer->in_host && !staged ? buffer->registered : buffer->memory.address) +
                        given[i].offset;
        bound[at] = &addresses[at];
    }
    if (result == CUDA_SUCCESS && dispatch->shared_bytes > k->dynamic_shared) {
        *out_call = "cuFuncSetAttribute";
        result = b->device.api.cuFuncSetAttribute(k->function,
                                                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                  (int)dispatch->shared_bytes);
        k->dynamic_shared = result == CUDA_SUCCESS ? dispatch->shared_bytes : k->dynamic_shared;
    }
    if (result == CUDA_SUCCESS) {
        *out_call = "cuLaunchKernel";
        b->has_run = true;
        (void)bhi_cuda_kernel_place(k, bound, bhi_cmd_push(dispatch), dispatch->push_size, values,
                                    &ignored);
        result = b->device.api.cuLaunchKernel(
            k->function, dispatch->groups_x, dispatch->groups_y, dispatch->groups_z,
            dispatch->block_x, dispatch->block_y, dispatch->block_z, dispatch->shared_bytes,
            b->device.stream, (void **)values, NULL);
    }
    return result;
}

static CUresult enqueue_copy(struct bhi_cuda_backend *b, const struct bhi_cmd_copy *copy,
                             const char **out_call) {
    const struct bhi_cuda_api *cuda = &b->device.api;
    struct bhi_cuda_buffer *src = bhi_map_get(&b->buffers, copy->src);
    struct bhi_cuda_buffer *dst = bhi_map_get(&b->buffers, copy->dst);
    const bool from_stage = src->staged == b->record, to_stage = dst->staged == b->record;
    CUresult result = CUDA_SUCCESS;
    *out_call = "cuMemcpyHtoDAsync";
    if (from_stage) {
        result = use_stage(b, src, copy->src_offset, copy->src_offset + copy->bytes, true, false);
    }
    if (to_stage && result == CUDA_SUCCESS) {
        result = use_stage(b, dst, copy->dst_offset, copy->dst_offset + copy->bytes, false, true);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const CUdeviceptr to = dst->memory.address + copy->dst_offset;
    if (src->in_host && !from_stage) {
        return cuda->cuMemcpyHtoDAsync(to, (const char *)src->reads + copy->src_offset, copy->bytes,
                                       b->device.stream);
    }
    const CUdeviceptr from = src->memory.address + copy->src_offset;
    if (dst->in_host && !to_stage) {
        *out_call = "cuMemcpyDtoHAsync";
        return cuda->cuMemcpyDtoHAsync((char *)dst->writes + copy->dst_offset, from, copy->bytes,
                                       b->device.stream);
    }
    *out_call = "cuMemcpyDtoDAsync";
    return cuda->cuMemcpyDtoDAsync(to, from, copy->bytes, b->device.stream);
}

static CUresult enqueue_fill(struct bhi_cuda_backend *b, const struct bhi_cmd_fill *fill,
                             const char **out_call) {
    struct bhi_cuda_buffer *dst = bhi_map_get(&b->buffers, fill->dst);
    CUresult result = CUDA_SUCCESS;
    *out_call = "cuMemsetD32Async";
    if (dst->staged == b->record) {
        result = use_stage(b, dst, fill->dst_offset, fill->dst_offset + fill->bytes, false, true);
    }
    return result != CUDA_SUCCESS
               ? result
               : b->device.api.cuMemsetD32Async(dst->memory.address + fill->dst_offset, fill->value,
                                                fill->bytes / 4, b->device.stream);
}

/* What the record has written to stages goes back to the host. */
static CUresult flush(struct bhi_cuda_backend *b) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < b->staged.count; i++) {
        const struct bhi_cuda_buffer *buffer = b->staged.items[i];
        const struct bhi_cuda_span *dirty = &buffer->dirty;
        if (dirty->begin < dirty->end) {
            result = b->device.api.cuMemcpyDtoHAsync((char *)buffer->writes + dirty->begin,
                                                     buffer->memory.address + dirty->begin,
                                                     dirty->end - dirty->begin, b->device.stream);
        }
    }
    return result;
}

bool bhi_cuda_enqueue(struct bhi_cuda_backend *b, const struct bhi_lane_record *record,
                      struct bhi_error *error) {
    CUresult result = CUDA_SUCCESS;
    const char *call = "";
    uint32_t index = 0;
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_DISPATCH && record->command_count > 1) {
            call = "cuStreamWriteValue64";
            result = b->device.api.cuStreamWriteValue64(
                b->device.stream, b->page_address + offsetof(struct bhi_cuda_page, command), index,
                0);
        }
        if (result == CUDA_SUCCESS && command->type == BHI_CMD_DISPATCH) {
            result = enqueue_dispatch(b, (const struct bhi_cmd_dispatch *)command, &call);
        } else if (result == CUDA_SUCCESS && command->type == BHI_CMD_COPY) {
            result = enqueue_copy(b, (const struct bhi_cmd_copy *)command, &call);
        } else if (result == CUDA_SUCCESS && command->type == BHI_CMD_FILL) {
            result = enqueue_fill(b, (const struct bhi_cmd_fill *)command, &call);
        }
        if (result != CUDA_SUCCESS) {
            bhi_error_cuda(error, &b->device.api, result, call);
            error->command_index = index;
            error->executed = index > 0 ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
            return false;
        }
        index++;
    }
    result = flush(b);
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &b->device.api, result, "cuMemcpyDtoHAsync");
        error->executed = BH_EXECUTED_UNKNOWN;
    }
    return result == CUDA_SUCCESS;
}
