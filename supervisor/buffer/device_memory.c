#include "supervisor/buffer/device_memory.h"
#include "base/detail.h"
#include "base/memfd.h"
#include "ipc/layers.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/pump.h"
#include "supervisor/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bh_status bhi_device_memory_resolve(struct bh_stream *stream, uint64_t memory, const char *call,
                                    bool *out_device, bh_detail *detail) {
    *out_device = false;
    if (memory > BH_MEMORY_AUTO) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: memory %llu is not a bh_memory", call,
                        (unsigned long long)memory);
    }
    if (memory == BH_MEMORY_HOST || (memory == BH_MEMORY_AUTO && !stream)) {
        return BH_OK;
    }
    if (!stream) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "%s: BH_MEMORY_DEVICE needs a stream, which names device and tenant", call);
    }
    bh_status status = bhi_stream_await_device(stream, call, detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_context_lock(stream->context);
    const struct bhi_stream_device device = stream->runs_on;
    bhi_context_unlock(stream->context);
    const bool exports = device.features & BHI_FEATURE_MEMORY_EXPORT;
    if (memory == BH_MEMORY_AUTO) {
        *out_device = device.is_discrete && exports;
        return BH_OK;
    }
    if (!device.is_cpu && !exports) {
        return bhi_fail(detail, BH_UNSUPPORTED, 0,
                        "%s: memory of the device %s cannot be shared between processes: use "
                        "BH_MEMORY_HOST or BH_MEMORY_AUTO",
                        call, device.name);
    }
    *out_device = true;
    return BH_OK;
}

static bool fits(uint64_t limit, uint64_t used, uint64_t bytes) {
    return !limit || (used <= limit && bytes <= limit - used);
}

static bh_status refuse(const char *call, uint64_t bytes, const char *whose, const char *name,
                        const char *option, uint64_t used, uint64_t limit, bh_detail *detail) {
    return bhi_fail(detail, BH_OUT_OF_DEVICE_MEMORY, 0,
                    "%s: %llu bytes of device memory were asked for; %s%s has %llu of its limit of "
                    "%llu bytes (%s.device_memory) in use",
                    call, (unsigned long long)bytes, whose, name, (unsigned long long)used,
                    (unsigned long long)limit, option);
}

/* Counts |size| bytes, rounded up to pages, against the limits of |stream| and its context. Drops
 * replicas if that makes room. */
static bh_status new_memory(struct bh_stream *stream, uint64_t size, const char *call,
                            struct bhi_device_memory **out_memory, bh_detail *detail) {
    bh_context *context = stream->context;
    struct bhi_device_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    }
    memory->stream = stream;
    memory->fd = -1;
    memory->charged = bhi_page_round(size);
    bhi_context_lock(context);
    if (!fits(stream->device_memory_limit, stream->device_memory, memory->charged)) {
        context->drop_replicas(context, NULL, stream);
    }
    if (!fits(context->device_memory_limit, context->device_memory, memory->charged)) {
        context->drop_replicas(context, NULL, NULL);
    }
    const uint64_t of_stream = stream->device_memory, of_context = context->device_memory;
    const bool stream_has = fits(stream->device_memory_limit, of_stream, memory->charged);
    const bool context_has = fits(context->device_memory_limit, of_context, memory->charged);
    if (stream_has && context_has) {
        stream->device_memory += memory->charged;
        context->device_memory += memory->charged;
        bhi_stream_ref(stream);
    }
    bhi_context_pump_unlock(context);
    if (stream_has && context_has) {
        *out_memory = memory;
        return BH_OK;
    }
    const bh_status status =
        stream_has ? refuse(call, memory->charged, "the context", "", "bh_context_options",
                            of_context, context->device_memory_limit, detail)
                   : refuse(call, memory->charged, "stream ", stream->core.name,
                            "bh_stream_options", of_stream, stream->device_memory_limit, detail);
    free(memory);
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
    bhi_context_unlock(stream->context);
    bhi_stream_unref(stream);
    free(memory);
}

bh_status bhi_buffer_make_device(struct bh_stream *stream, uint64_t size, const char *call,
                                 struct bh_buffer **out_buffer, bh_detail *detail) {
    const struct bhi_buffer_order order = {.call = call, .size = size, .stream = stream};
    struct bhi_device_memory *memory = NULL;
    bh_status status =
        size > BHI_MAX_BUFFER ? BH_OK : new_memory(stream, size, call, &memory, detail);
    bhi_context_lock(stream->context);
    const bool is_cpu = stream->runs_on.is_cpu;
    bhi_context_unlock(stream->context);
    /* |memory| is NULL if the size is over BHI_MAX_BUFFER: bhi_buffer_create refuses it. */
    if (status == BH_OK && memory && size && !is_cpu) {
        *out_buffer = bhi_buffer_unmade(memory, size);
        status = *out_buffer ? BH_OK : bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
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

BH_API void bh_buffer_options_init_sized(bh_buffer_options *options, size_t size) {
    static const bh_buffer_options defaults = {0};
    bhi_layout_init(options, size, &defaults, sizeof defaults);
}

BH_API bh_status bh_buffer_create_with(bh_context *context, uint64_t size,
                                       const bh_buffer_options *given, bh_buffer **out_buffer,
                                       bh_detail *detail) {
    if (!out_buffer) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_buffer_create_with: out_buffer is NULL");
    }
    *out_buffer = NULL;
    bh_status status = bhi_context_check(context, "bh_buffer_create_with", detail);
    if (status != BH_OK) {
        return status;
    }
    struct bhi_buffer_order order = {.call = "bh_buffer_create_with", .size = size};
    bool on_device = false;
    if (given) {
        bh_buffer_options all, *options = &all;
        bh_buffer_options_init(&all);
        status = bhi_layout_take_options(BHI_OURS(bh_buffer_options), &all, given,
                                         "bh_buffer_create_with", "options", detail);
        if (status != BH_OK) {
            return status;
        }
        if (options->flags & ~(uint32_t)BH_BUFFER_UNINITIALIZED) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_buffer_create_with: options.flags 0x%x has an unknown bit",
                            options->flags);
        }
        if (options->stream && !bhi_handle_live(&options->stream->handle)) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_buffer_create_with: options.stream was released");
        }
        if (options->stream && options->stream->context != context) {
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_buffer_create_with: options.stream belongs to another context");
        }
        order.stream = options->stream;
        order.flags = options->flags;
        status = bhi_device_memory_resolve(options->stream, options->memory, order.call, &on_device,
                                           detail);
        if (status != BH_OK) {
            return status;
        }
    }
    return on_device ? bhi_buffer_make_device(order.stream, size, order.call, out_buffer, detail)
                     : bhi_buffer_create(context, &order, out_buffer, detail);
}
