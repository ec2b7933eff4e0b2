/* The host's own access to a buffer: it waits for the submissions that use it. */
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/event.h"

#include <string.h>

/* Waits for device users, then says whether the content may be used. |discard|: it need not be
 * good, and is CLEAN afterwards. */
static bh_status acquire(struct bh_buffer *buffer, bool host_writes, bool discard,
                         uint64_t timeout_ns, const char *what, bh_detail *detail) {
    bh_context *context = buffer->context;
    if (bhi_context_forked(context)) {
        return bhi_context_refuse(what, detail);
    }
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    for (;;) {
        bhi_context_lock(context);
        struct bh_event *pending = bhi_content_obstacle(&buffer->content, host_writes);
        if (!pending) {
            bh_status status = BH_OK;
            buffer->changeable |= host_writes; /* for good: there is no unmap */
            if (discard) {
                bhi_content_clean(&buffer->content);
            }
            const struct bh_event *poison = bhi_content_poison(&buffer->content);
            if (poison) {
                status = bhi_event_report(poison, detail, what, "the content is poisoned by event");
            }
            bhi_context_pump_unlock(context);
            return status;
        }
        bhi_event_ref(pending);
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(pending, deadline_ns);
        unsigned long long id = pending->id;
        bool loads = buffer->load && pending == buffer->load->event;
        bhi_event_unref(pending);
        if (status != BH_OK) {
            return bhi_fail(detail, status, 0,
                            loads
                                ? "%s: the buffer is still being loaded (event %llu)"
                                : "%s: the buffer is still in use by the submission of event %llu",
                            what, id);
        }
    }
}

BH_API bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                               void **out_pointer, bh_detail *detail) {
    if (!BHI_LIVE(buffer) || !out_pointer) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_map: %s",
                        BHI_LIVE(buffer) ? "out_pointer is NULL"
                                         : "buffer is NULL or was released");
    }
    *out_pointer = NULL;
    if (intent != BH_MAP_READ && intent != BH_MAP_READ_WRITE && intent != BH_MAP_DISCARD) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_buffer_map: intent %d is not a bh_map_intent", intent);
    }
    bh_status status = acquire(buffer, intent != BH_MAP_READ, intent == BH_MAP_DISCARD, timeout_ns,
                               "bh_buffer_map", detail);
    if (status == BH_OK) {
        *out_pointer = buffer->pointer;
    }
    return status;
}

static bh_status check_range(const struct bh_buffer *buffer, uint64_t offset, const void *bytes,
                             uint64_t size, const char *what, bh_detail *detail) {
    if (!BHI_LIVE(buffer) || (!bytes && size)) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: %s", what,
                        BHI_LIVE(buffer) ? "bytes is NULL" : "buffer is NULL or was released");
    }
    if (offset > buffer->size || size > buffer->size - offset) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "%s: offset %llu and size %llu leave the buffer of %llu bytes", what,
                        (unsigned long long)offset, (unsigned long long)size,
                        (unsigned long long)buffer->size);
    }
    return BH_OK;
}

BH_API bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes, uint64_t size,
                                uint64_t timeout_ns, bh_detail *detail) {
    bh_status status = check_range(buffer, offset, out_bytes, size, "bh_buffer_read", detail);
    if (status == BH_OK) {
        status = acquire(buffer, false, false, timeout_ns, "bh_buffer_read", detail);
    }
    if (status == BH_OK && size) {
        memcpy(out_bytes, (const char *)buffer->pointer + offset, size);
    }
    return status;
}

BH_API bh_status bh_buffer_write(bh_buffer *buffer, uint64_t offset, const void *bytes,
                                 uint64_t size, uint64_t timeout_ns, bh_detail *detail) {
    bh_status status = check_range(buffer, offset, bytes, size, "bh_buffer_write", detail);
    if (status == BH_OK) {
        status = acquire(buffer, true, size == buffer->size, timeout_ns, "bh_buffer_write", detail);
    }
    if (status == BH_OK && size) {
        memcpy((char *)buffer->pointer + offset, bytes, size);
    }
    return status;
}
