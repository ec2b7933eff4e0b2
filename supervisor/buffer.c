#include "buffer.h"
#include "check.h"
#include "core/detail.h"
#include "event.h"
#include "futex.h"
#include "load.h"
#include "memfd.h"
#include "slab.h"
#include "worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_BUFFER   (1ull << 40)
#define LARGE_BUFFER (256ull << 20)

static struct bhi_slab slab = BHI_SLAB_INIT(struct bh_buffer);

static void free_buffer(struct bhi_doomed *doomed) {
    struct bh_buffer *buffer = BHI_CONTAINER(doomed, struct bh_buffer, doomed);
    bh_context *context = buffer->context;
    bhi_content_fini(&buffer->content);
    munmap(buffer->pointer, buffer->mapped);
    close(buffer->fd);
    bhi_load_free(buffer->load);
    bhi_slab_give(&slab, buffer);
    bhi_context_unref(context);
}

/* Whether the machine has that much to give, for requests large enough to matter: reserving more
 * would not fail but bring the OOM killer upon somebody. */
static bool available(uint64_t bytes) {
    if (bytes < LARGE_BUFFER)
        return true;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return true;
    char line[128];
    unsigned long long kib = UINT64_MAX / 1024;
    while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
        ;
    fclose(file);
    return bytes / 1024 <= kib;
}

bh_status bhi_buffer_make(bh_context *context, uint64_t size, const char *call,
                          struct bh_buffer **out_buffer, bh_detail *detail) {
    if (size > MAX_BUFFER)
        return bhi_fail(detail, BH_TOO_LARGE, 0, "%s: size %llu is over the limit of 1 TiB", call,
                        (unsigned long long)size);
    if (!available(size))
        return bhi_fail(detail, BH_NO_MEMORY, 0,
                        "%s: %llu bytes are more than the machine has available", call,
                        (unsigned long long)size);
    struct bh_buffer *buffer = bhi_slab_take(&slab);
    if (!buffer)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    bh_status status;
    *buffer = (struct bh_buffer){0};
    buffer->size = size;
    buffer->mapped = bhi_page_round(size);
    buffer->fd = bhi_memfd_create("bulkhead-buffer", size, 0);
    if (buffer->fd < 0) {
        status = bhi_fail(detail, BH_SYSTEM, -buffer->fd, "%s: memfd", call);
        bhi_slab_give(&slab, buffer);
        return status;
    }
    /* Reserved now: running out of memory is an error here, not a SIGBUS at the first touch, and
     * the pages are charged to this process, not to the worker that happens to touch them. */
    int error = 0;
    while (fallocate(buffer->fd, 0, 0, (off_t)buffer->mapped) != 0) {
        if (errno != EINTR) {
            error = errno;
            break;
        }
    }
    buffer->pointer =
        error ? MAP_FAILED
              : mmap(NULL, buffer->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
    if (buffer->pointer == MAP_FAILED) {
        error = error ? error : errno;
        close(buffer->fd);
        bhi_slab_give(&slab, buffer);
        return bhi_fail(detail, error == ENOMEM || error == ENOSPC ? BH_NO_MEMORY : BH_SYSTEM,
                        error, "%s: %llu bytes", call, (unsigned long long)size);
    }
    atomic_init(&buffer->refs, 1);
    buffer->doomed.free = free_buffer;
    buffer->context = context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    buffer->id = bhi_context_new_id(context);
    bhi_context_unlock(context);
    atomic_init(&buffer->handle.count, 1);
    *out_buffer = buffer;
    return BH_OK;
}

BH_API bh_status bh_buffer_create(bh_context *context, uint64_t size, bh_buffer **out_buffer,
                                  bh_detail *detail) {
    if (!out_buffer)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_create: out_buffer is NULL");
    *out_buffer = NULL;
    bh_status status = bhi_context_check(context, "bh_buffer_create", detail);
    return status == BH_OK ? bhi_buffer_make(context, size, "bh_buffer_create", out_buffer, detail)
                           : status;
}

void bhi_buffer_unref_locked(struct bh_buffer *buffer) {
    if (atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1)
        return;
    BHI_LIST_EACH(node, &buffer->context->workers)
    bhi_worker_forget_buffer(BHI_CONTAINER(node, struct bhi_worker, link), buffer->id);
    bhi_context_doom(buffer->context, &buffer->doomed);
}

BH_API bh_status bh_buffer_retain(bh_buffer *buffer) {
    return !buffer || bhi_handle_retain(&buffer->handle) ? BH_OK : BH_INVALID_ARGUMENT;
}

BH_API bh_status bh_buffer_release(bh_buffer *buffer) {
    if (!buffer)
        return BH_OK;
    if (!bhi_handle_live(&buffer->handle))
        return BH_INVALID_ARGUMENT;
    bh_context *context = buffer->context;
    if (bhi_context_forked(context))
        return BH_FORKED;
    enum bhi_drop drop = bhi_handle_drop(&buffer->handle);
    if (drop == BHI_DROPPED_LAST) {
        bhi_context_retain(context);
        bhi_context_lock(context);
        bhi_buffer_unref_locked(buffer);
        bhi_context_unlock(context);
        bhi_context_unref(context);
    }
    return drop == BHI_DROP_NONE ? BH_INVALID_ARGUMENT : BH_OK;
}

BH_API uint64_t bh_buffer_size(const bh_buffer *buffer) {
    return BHI_LIVE(buffer) ? buffer->size : 0;
}

/* Waits for device users, then says whether the content may be used. |discard|: it need not be
 * good, and is CLEAN afterwards. */
static bh_status acquire(struct bh_buffer *buffer, bool host_writes, bool discard,
                         uint64_t timeout_ns, const char *what, bh_detail *detail) {
    bh_context *context = buffer->context;
    if (bhi_context_forked(context))
        return bhi_context_refuse(what, detail);
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    for (;;) {
        bhi_context_lock(context);
        struct bh_event *pending = bhi_content_obstacle(&buffer->content, host_writes);
        if (!pending) {
            bh_status status = BH_OK;
            if (discard)
                bhi_content_clean(&buffer->content);
            const struct bh_event *poison = bhi_content_poison(&buffer->content);
            if (poison)
                status = bhi_event_report(poison, detail, what, "the content is poisoned by event");
            bhi_context_unlock(context);
            return status;
        }
        bhi_event_ref(pending);
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(pending, deadline_ns);
        bhi_event_unref(pending);
        if (status != BH_OK)
            return bhi_fail(detail, status, 0, "%s: the buffer is still in use by a submission",
                            what);
    }
}

BH_API bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
                               void **out_pointer, bh_detail *detail) {
    if (!BHI_LIVE(buffer) || !out_pointer)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_buffer_map: %s",
                        BHI_LIVE(buffer) ? "out_pointer is NULL"
                                         : "buffer is NULL or was released");
    *out_pointer = NULL;
    if (intent != BH_MAP_READ && intent != BH_MAP_READ_WRITE && intent != BH_MAP_DISCARD)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_buffer_map: intent %d is not a bh_map_intent", intent);
    bh_status status = acquire(buffer, intent != BH_MAP_READ, intent == BH_MAP_DISCARD, timeout_ns,
                               "bh_buffer_map", detail);
    if (status == BH_OK)
        *out_pointer = buffer->pointer;
    return status;
}

static bh_status check_range(const struct bh_buffer *buffer, uint64_t offset, const void *bytes,
                             uint64_t size, const char *what, bh_detail *detail) {
    if (!BHI_LIVE(buffer) || (!bytes && size))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: %s", what,
                        BHI_LIVE(buffer) ? "bytes is NULL" : "buffer is NULL or was released");
    if (offset > buffer->size || size > buffer->size - offset)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "%s: offset %llu and size %llu leave the buffer of %llu bytes", what,
                        (unsigned long long)offset, (unsigned long long)size,
                        (unsigned long long)buffer->size);
    return BH_OK;
}

BH_API bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes, uint64_t size,
                                uint64_t timeout_ns, bh_detail *detail) {
    bh_status status = check_range(buffer, offset, out_bytes, size, "bh_buffer_read", detail);
    if (status == BH_OK)
        status = acquire(buffer, false, false, timeout_ns, "bh_buffer_read", detail);
    if (status == BH_OK && size)
        memcpy(out_bytes, (const char *)buffer->pointer + offset, size);
    return status;
}

BH_API bh_status bh_buffer_write(bh_buffer *buffer, uint64_t offset, const void *bytes,
                                 uint64_t size, uint64_t timeout_ns, bh_detail *detail) {
    bh_status status = check_range(buffer, offset, bytes, size, "bh_buffer_write", detail);
    if (status == BH_OK)
        status = acquire(buffer, true, size == buffer->size, timeout_ns, "bh_buffer_write", detail);
    if (status == BH_OK && size)
        memcpy((char *)buffer->pointer + offset, bytes, size);
    return status;
}
