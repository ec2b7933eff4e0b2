#include "base/detail.h"
#include "base/memfd.h"
#include "ipc/layers.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bh_status bhi_device_memory_resolve(struct bh_stream *stream, uint64_t memory, const char *call,
                                    bool *out_device, bh_detail *detail) {
    *out_device = false;
    if (memory > BH_MEMORY_AUTO) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "options.memory",
                        .value = (uint64_t)memory, .text = "bh_memory");
    }
    if (memory == BH_MEMORY_HOST || (memory == BH_MEMORY_AUTO && !stream)) {
        return BH_OK;
    }
    if (!stream) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.memory",
                        .text = "BH_MEMORY_DEVICE needs a stream, which names device and tenant");
    }
    BHI_TRY(bhi_stream_await_device(stream, call, detail));
    bhi_context_lock(stream->context);
    const struct bhi_stream_device device = stream->runs_on;
    bhi_context_unlock(stream->context);
    const bool exports = device.features & BHI_FEATURE_MEMORY_EXPORT;
    if (memory == BH_MEMORY_AUTO) {
        *out_device = device.is_discrete && exports;
        return BH_OK;
    }
    if (!device.is_cpu && !exports) {
        return BHI_FAIL(detail, call, BH_REASON_UNSHARED, device.name);
    }
    *out_device = true;
    return BH_OK;
}

/* |used| is never more than the limit. */
static bool fits(uint64_t limit, uint64_t used, uint64_t bytes) {
    return !limit || bytes <= limit - used;
}

static bh_status refuse(const char *call, uint64_t bytes, const char *whose, const char *name,
                        uint64_t used, uint64_t limit, uint64_t of_context, bh_detail *detail) {
    char part[64] = "";
    if (of_context) {
        snprintf(part, sizeof part, ", %llu of them by its CUDA context",
                 (unsigned long long)of_context);
    }
    return BHI_FAIL(detail, call, BH_REASON_DEVICE_MEMORY, .value = bytes, .limit = limit,
                    .text = BHI_SAY("%s%s has %llu of its limit of %llu bytes (device_memory) "
                                    "in use%s",
                                    whose, name, (unsigned long long)used,
                                    (unsigned long long)limit, part));
}

/* What counts against the limit of |stream|. */
static uint64_t used_by(const struct bh_stream *stream) {
    return stream->context_bytes + stream->device_memory;
}

/* Counts the memory against the limits of |stream| and its context; drops replicas if that makes
 * room. On a GPU it gets a block: what another buffer has left behind, or a new one. Lock held. */
static bh_status charge(struct bh_stream *stream, uint64_t size, struct bhi_device_memory *memory,
                        const char *call, bh_detail *detail) {
    bh_context *context = stream->context;
    const uint64_t bytes = memory->charged;
    if (!fits(stream->device_memory_limit, used_by(stream), bytes)) {
        context->drop_replicas(context, NULL, stream);
    }
    if (!fits(context->device_memory_limit, context->device_memory, bytes)) {
        context->drop_replicas(context, NULL, NULL);
    }
    if (!fits(stream->device_memory_limit, used_by(stream), bytes)) {
        return refuse(call, bytes, "stream ", stream->core.name, used_by(stream),
                      stream->device_memory_limit, stream->context_bytes, detail);
    }
    if (!fits(context->device_memory_limit, context->device_memory, bytes)) {
        return refuse(call, bytes, "the context", "", context->device_memory,
                      context->device_memory_limit, 0, detail);
    }
    const bool is_remote = size && !stream->runs_on.is_cpu;
    const struct bhi_pool_need need = {
        .worker = bhi_stream_worker(stream), .device_of = stream, .size = size};
    bool own;
    memory->block = is_remote ? bhi_pool_take(context->device_pool, &need, &own) : NULL;
    if (!memory->block) {
        bhi_pool_make_room(context, bytes);
        memory->block = is_remote ? bhi_pool_order(stream, size) : NULL;
    }
    if (is_remote && !memory->block) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    stream->device_memory += bytes;
    context->device_memory += bytes;
    memory->stream = stream;
    bhi_stream_ref(stream);
    return BH_OK;
}

static bh_status new_memory(struct bh_stream *stream, uint64_t size, const char *call,
                            struct bhi_device_memory **out_memory, bh_detail *detail) {
    struct bhi_device_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    memory->charged = bhi_page_round(size);
    bhi_context_lock(stream->context);
    const bh_status status = charge(stream, size, memory, call, detail);
    bhi_context_pump_unlock(stream->context);
    if (status == BH_OK) {
        *out_memory = memory;
    } else {
        free(memory);
    }
    return status;
}

/* Frees the memory of a buffer that could not be made; the limits no longer count it. */
static void give_up(struct bhi_device_memory *memory) {
    if (!memory) {
        return;
    }
    struct bh_stream *stream = memory->stream;
    bhi_context_lock(stream->context);
    stream->device_memory -= memory->charged;
    stream->context->device_memory -= memory->charged;
    if (memory->block) {
        bhi_pool_give(memory->block);
    }
    bhi_context_pump_unlock(stream->context);
    bhi_stream_unref(stream);
    free(memory);
}

bh_status bhi_buffer_make_device(struct bh_stream *stream, uint64_t size, const char *call,
                                 struct bh_buffer **out_buffer, bh_detail *detail) {
    const struct bhi_buffer_order order = {.call = call, .size = size, .stream = stream};
    struct bhi_device_memory *memory = NULL;
    bh_status status =
        size > BHI_MAX_BUFFER ? BH_OK : new_memory(stream, size, call, &memory, detail);
    /* |memory| is NULL if the size is over BHI_MAX_BUFFER: bhi_buffer_create refuses it. */
    if (status == BH_OK && memory && memory->block) {
        *out_buffer = bhi_buffer_unmade(memory, size);
        status = *out_buffer ? BH_OK : BHI_FAIL(detail, call, BH_REASON_MEMORY);
    } else if (status == BH_OK) {
        status = bhi_buffer_create(stream->context, &order, out_buffer, detail);
    }
    if (status == BH_OK) {
        (*out_buffer)->device = memory;
    } else {
        give_up(memory);
    }
    return status;
}
