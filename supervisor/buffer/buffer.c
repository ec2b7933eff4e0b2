#include "supervisor/buffer/buffer.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "base/memory.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/buffer/retention.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/cgroup.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE (32ull << 20) /* so much memory is looked for before it is reserved */

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_buffer);

static void free_load(struct bhi_load *load) {
    if (!load) {
        return;
    }
    if (bhi_handle_drop(&load->event->handle) == BHI_DROPPED_LAST) {
        bhi_event_unref(load->event);
    }
    for (uint32_t i = 0; i < load->piece_count; i++) {
        bhi_event_unref(load->pieces[i]);
    }
    free(load->pieces);
    free(load);
}

static void free_buffer(struct bhi_doomed *doomed) {
    struct bh_buffer *buffer = BHI_CONTAINER(doomed, struct bh_buffer, doomed);
    bh_context *context = buffer->context;
    bhi_content_fini(&buffer->content);
    if (!buffer->pooled && buffer->pointer) {
        munmap(buffer->pointer, buffer->mapped);
    }
    if (!buffer->pooled) {
        bhi_fd_close(&buffer->fd);
    }
    free(buffer->description);
    free_load(buffer->load);
    bhi_freelist_give(&freelist, buffer);
    bhi_context_unref(context);
}

/* Sets what every new buffer has besides its memory and its id. */
static void begin(struct bh_buffer *buffer, bh_context *context) {
    atomic_init(&buffer->refs, 1);
    buffer->doomed.free = free_buffer;
    buffer->context = context;
    bhi_context_retain(context);
    atomic_init(&buffer->handle.count, 1);
}

struct bh_buffer *bhi_buffer_unmade(struct bhi_device_memory *memory, uint64_t size) {
    struct bh_buffer *buffer = bhi_buffer_adopt(memory->stream->context, -1, size, NULL);
    if (buffer) {
        memory->state = memory->block->fd < 0 ? BHI_DEVICE_UNMADE : BHI_DEVICE_STALE;
        buffer->id = memory->block->id;
        buffer->device = memory;
    }
    return buffer;
}

struct bh_buffer *bhi_buffer_adopt(bh_context *context, int fd, uint64_t size, void *pointer) {
    struct bh_buffer *buffer = bhi_freelist_take(&freelist);
    if (buffer) {
        *buffer = (struct bh_buffer){
            .size = size, .mapped = bhi_page_round(size), .fd = fd, .pointer = pointer};
        bhi_context_lock(context);
        buffer->id = bhi_context_new_id(context);
        bhi_context_unlock(context);
        begin(buffer, context);
    }
    return buffer;
}

bool bhi_memory_available(uint64_t bytes) {
    return bytes < LARGE || (bytes <= bhi_memory_unused() && bytes <= bhi_cgroup_headroom());
}

static bool lacks(int error) {
    return error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE;
}

/* Allocates |buffer->mapped| bytes of fresh memory. Returns 0 or an errno. */
static int make_memory(struct bh_buffer *buffer) {
    buffer->fd = bhi_memfd_create("bulkhead-buffer", buffer->mapped, 0);
    if (buffer->fd < 0) {
        return -buffer->fd;
    }
    int error = -bhi_memfd_protect(buffer->fd);
    /* All pages are reserved now. So a lack of memory is an error here, not a SIGBUS at the first
     * access. And the pages are charged to this process, not to the worker that accesses them
     * first. */
    if (!error) {
        error = -bhi_memfd_reserve(buffer->fd, buffer->mapped);
    }
    if (!error) {
        buffer->pointer =
            mmap(NULL, buffer->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
        error = buffer->pointer == MAP_FAILED ? errno : 0;
    }
    if (error) {
        close(buffer->fd);
    }
    return error;
}

/* Returns the worker of the stream for which the buffer is made; NULL: there is none. Lock held. */
static struct bhi_worker *worker_of(const struct bhi_buffer_order *order) {
    return order->stream ? bhi_stream_worker(order->stream) : NULL;
}

/* Allocates fresh memory. If memory or descriptors are short, frees all FREE blocks of the pool and
 * tries again. */
static bh_status get_fresh(struct bh_buffer *buffer, const struct bhi_buffer_order *order,
                           uint32_t size_class, bh_detail *detail) {
    bh_context *context = buffer->context;
    bool trimmed = false;
    if (!bhi_memory_available(buffer->mapped)) {
        trimmed = true;
        bhi_context_lock(context);
        bhi_pool_trim(context->pool, 0);
        bhi_context_pump_unlock(context);
        if (!bhi_memory_available(buffer->mapped)) {
            return BHI_FAIL(detail, order->call, BH_REASON_NO_ROOM, .value = order->size);
        }
    }
    int error = make_memory(buffer);
    if (lacks(error) && !trimmed) {
        bhi_context_lock(context);
        bhi_pool_trim(context->pool, 0);
        bhi_pool_trim(context->device_pool, 0); /* each of its blocks has a descriptor */
        bhi_context_pump_unlock(context);
        error = make_memory(buffer);
    }
    if (error) {
        return BHI_FAIL(detail, order->call, BH_REASON_BYTES,
                        .status = error == ENOMEM || error == ENOSPC ? BH_NO_MEMORY : BH_SYSTEM,
                        .sys_errno = error, .value = order->size);
    }
    bhi_context_lock(context);
    if (size_class < BHI_POOL_CLASSES) {
        buffer->block =
            bhi_pool_adopt(context, size_class, buffer->fd, buffer->pointer, buffer->mapped);
        if (buffer->block) {
            const struct bhi_worker *worker = worker_of(order);
            buffer->block->only = worker ? worker->id : 0;
        }
    } else {
        buffer->id = bhi_context_new_id(context);
        context->pool->stats.used += buffer->mapped;
    }
    bhi_context_unlock(context);
    if (size_class < BHI_POOL_CLASSES && !buffer->block) {
        munmap(buffer->pointer, buffer->mapped);
        close(buffer->fd);
        return BHI_FAIL(detail, order->call, BH_REASON_MEMORY);
    }
    return BH_OK;
}

/* Returns true if all pages of the block are still allocated. The filters forbid workers to punch
 * holes into a memfd. But if a compromised worker has done it, an access to the hole could run out
 * of memory, which is a SIGBUS. */
static bool is_whole(const struct bhi_block *block) {
    struct stat info;
    return fstat(block->fd, &info) == 0 && (uint64_t)info.st_blocks * 512 >= block->bytes;
}

/* Returns a block of the pool, or NULL if the pool has none that fits. */
static struct bhi_block *get_pooled(bh_context *context, const struct bhi_buffer_order *order,
                                    uint32_t size_class) {
    for (;;) {
        bool own;
        bhi_context_lock(context);
        struct bhi_worker *worker = worker_of(order);
        const struct bhi_pool_need need = {
            .worker = worker, .size_class = size_class, .unwritten = order->unwritten};
        struct bhi_block *block = bhi_pool_take(context->pool, &need, &own);
        /* What others have left in it is nothing for a kernel, although its worker could see it. */
        const bool keeps = block && own && block->only == worker->id;
        const bool zero = block && !(keeps && order->flags & BH_BUFFER_UNINITIALIZED);
        if (zero) {
            context->pool->stats.zeroed_bytes += block->bytes;
            block->only = worker ? worker->id : 0;
        }
        bhi_context_pump_unlock(context);
        if (!block) {
            return NULL;
        }
        if (is_whole(block)) {
            if (zero) { /* all of it: workers map the whole block, not only the buffer's bytes */
                memset(block->pointer, 0, block->bytes);
            }
            return block;
        }
        bhi_context_lock(context);
        context->pool->stats.hits--;
        context->pool->stats.evictions++;
        context->pool->stats.zeroed_bytes -= zero ? block->bytes : 0;
        bhi_pool_discard(block);
        bhi_context_pump_unlock(context);
    }
}

bh_status bhi_buffer_create(bh_context *context, const struct bhi_buffer_order *order,
                            struct bh_buffer **out_buffer, bh_detail *detail) {
    if (order->size > BHI_MAX_BUFFER) {
        return BHI_FAIL(detail, order->call, BH_REASON_TOO_LARGE, "size", .value = order->size,
                        .limit = UINT64_C(1) << 40);
    }
    struct bh_buffer *buffer = bhi_freelist_take(&freelist);
    if (!buffer) {
        return BHI_FAIL(detail, order->call, BH_REASON_MEMORY);
    }
    *buffer = (struct bh_buffer){.context = context, .size = order->size};
    uint32_t size_class;
    buffer->mapped = bhi_pool_round(context->pool, order->size, &size_class);
    if (order->alone) {
        buffer->mapped = bhi_page_round(order->size);
        size_class = BHI_POOL_CLASSES;
    }
    bh_status status = BH_OK;
    if (size_class < BHI_POOL_CLASSES) {
        buffer->block = get_pooled(context, order, size_class);
    }
    if (!buffer->block) {
        status = get_fresh(buffer, order, size_class, detail);
    }
    if (status != BH_OK) {
        bhi_freelist_give(&freelist, buffer);
        return status;
    }
    if (buffer->block) {
        buffer->pooled = true;
        buffer->id = buffer->block->id;
        buffer->fd = buffer->block->fd;
        buffer->pointer = buffer->block->pointer;
    }
    begin(buffer, context);
    *out_buffer = buffer;
    return BH_OK;
}

bh_status bhi_buffer_make(bh_context *context, uint64_t size, const char *call,
                          struct bh_buffer **out_buffer, bh_detail *detail) {
    const struct bhi_buffer_order order = {.call = call, .size = size, .alone = true};
    return bhi_buffer_create(context, &order, out_buffer, detail);
}

bh_status bhi_buffer_make_staging(struct bh_stream *stream, uint64_t size, bool uploads,
                                  const char *call, struct bh_buffer **out_buffer,
                                  bh_detail *detail) {
    const struct bhi_buffer_order order = {.call = call,
                                           .size = size,
                                           .stream = stream,
                                           .flags = BH_BUFFER_UNINITIALIZED,
                                           .unwritten = uploads};
    return bhi_buffer_create(stream->context, &order, out_buffer, detail);
}

/* Lock held. Gives the buffer's block, if it has one, to the pool. */
static void give_back(struct bh_buffer *buffer) {
    struct bhi_block *block = buffer->block;
    buffer->block = NULL;
    if (block) {
        bhi_pool_give(block);
    }
}

/* Lock held. Gives the buffer's device memory to the pool, and the limits no longer count it. Also
 * drops the buffer's replicas; if a worker was asked to make or clear the memory, its answer is
 * ignored. */
static void leave_device(struct bh_buffer *buffer) {
    bh_context *context = buffer->context;
    struct bhi_device_memory *memory = buffer->device;
    struct bhi_block *block = memory->block;
    const bool asked = memory->make;
    context->drop_replicas(context, buffer, NULL);
    if (asked) {
        memory->make->memory = NULL;
        memory->make = NULL;
    }
    memory->stream->device_memory -= memory->charged;
    context->device_memory -= memory->charged;
    bhi_stream_unref_locked(memory->stream);
    memory->stream = NULL;
    memory->block = NULL;
    memory->state = BHI_DEVICE_LEFT;
    if (block && asked) {
        bhi_pool_discard(block); /* the answer is about a buffer that is gone */
    } else if (block) {
        bhi_pool_give(block);
    }
}

/* Lock held. */
static void drop_device(struct bh_buffer *buffer) {
    struct bhi_device_memory *memory = buffer->device;
    if (memory && memory->state != BHI_DEVICE_LEFT) {
        leave_device(buffer);
    }
    buffer->device = NULL;
    free(memory);
}

/* The memory that a moved buffer has left. Freed without the lock, while the buffer lives on. */
struct remains {
    struct bhi_doomed doomed; /* first */
    int fd;
    void *pointer;
    uint64_t mapped;
};

static void free_remains(struct bhi_doomed *doomed) {
    struct remains *remains = BHI_CONTAINER(doomed, struct remains, doomed);
    if (remains->pointer) {
        munmap(remains->pointer, remains->mapped);
    }
    bhi_fd_close(&remains->fd);
    free(remains);
}

static void forget(struct bh_buffer *buffer) {
    BHI_LIST_EACH(node, &buffer->context->workers)
    bhi_worker_forget_buffer(BHI_CONTAINER(node, struct bhi_worker, link), buffer->id,
                             bhi_buffer_attached_bytes(buffer));
}

/* The content has moved: gives the memory back, unless a submission still uses it. Lock held. */
static void leave(struct bh_buffer *buffer) {
    struct bhi_device_memory *memory = buffer->device;
    if (memory->state == BHI_DEVICE_LEFT || !bhi_handle_live(&buffer->handle) ||
        atomic_load_explicit(&buffer->refs, memory_order_relaxed) != 1) {
        return; /* if submissions still use the memory, the last one to end calls this again */
    }
    const bool mapped = !buffer->pooled && !memory->block;
    struct remains *remains = mapped ? calloc(1, sizeof *remains) : NULL;
    if (mapped && !remains) {
        return; /* out of memory: the buffer keeps its memory until it is freed */
    }
    if (remains) {
        forget(buffer);
        buffer->context->pool->stats.used -= buffer->mapped;
        *remains = (struct remains){.doomed.free = free_remains,
                                    .fd = buffer->fd,
                                    .pointer = buffer->pointer,
                                    .mapped = buffer->mapped};
        buffer->fd = -1;
        bhi_context_doom(buffer->context, &remains->doomed);
    }
    buffer->pointer = NULL;
    give_back(buffer);
    leave_device(buffer);
}

uint64_t bhi_buffer_attached_bytes(const struct bh_buffer *buffer) {
    return bhi_buffer_remote(buffer) ? 0 : buffer->block ? buffer->block->bytes : buffer->size;
}

void bhi_buffer_unref_locked(struct bh_buffer *buffer) {
    const uint32_t refs = atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel);
    if (refs == 2 && buffer->place) {
        leave(buffer);
    }
    if (refs != 1) {
        return;
    }
    struct bh_buffer *place = buffer->place;
    buffer->place = NULL;
    if (!buffer->pooled && !bhi_buffer_remote(buffer)) {
        forget(buffer);
        const bool own = buffer->pointer && !buffer->wrapped;
        buffer->context->pool->stats.used -= own ? buffer->mapped : 0;
    }
    give_back(buffer);
    drop_device(buffer);
    bhi_context_doom(buffer->context, &buffer->doomed);
    if (place) {
        place->owner = NULL;
        bhi_buffer_unref_locked(place);
    }
}

void bhi_buffer_unref(struct bh_buffer *buffer) {
    bh_context *context = buffer->context;
    bhi_context_lock(context);
    bhi_buffer_unref_locked(buffer);
    bhi_context_pump_unlock(context);
}

struct bh_buffer *bhi_buffer_take_place(struct bh_buffer *buffer) {
    bhi_context_lock(buffer->context);
    struct bh_buffer *place = bhi_buffer_place(buffer);
    bhi_buffer_ref(place);
    bhi_context_unlock(buffer->context);
    return place;
}

void bhi_buffer_move(struct bh_buffer *buffer, struct bh_buffer *place) {
    struct bh_buffer *before = bhi_buffer_place(buffer);
    bhi_buffer_ref(place);
    /* |place| may itself be a replica of |before|: the reference above keeps it. */
    buffer->context->drop_replicas(buffer->context, before, NULL);
    buffer->place = place;
    place->owner = buffer;
    if (before != buffer) {
        before->owner = NULL;
        bhi_buffer_unref_locked(before);
    } /* else the caller still has a reference to it: without that, its memory is given back */
}

BH_API void bh_buffer_retain(bh_buffer *buffer) {
    if (buffer) {
        (void)bhi_handle_retain(&buffer->handle);
    }
}

BH_API void bh_buffer_release(bh_buffer *buffer) {
    if (buffer && bhi_context_drop(&buffer->handle, buffer->context)) {
        bh_context *context = buffer->context;
        bhi_context_retain(context);
        bhi_context_lock(context);
        if (bhi_retention_off()) {
            give_back(buffer);
        }
        bhi_buffer_unref_locked(buffer);
        bhi_context_pump_unlock(context);
        bhi_context_unref(context);
    }
}

BH_API bh_memory bh_buffer_memory(const bh_buffer *buffer) {
    return BHI_LIVE(buffer) && buffer->device ? BH_MEMORY_DEVICE : BH_MEMORY_HOST;
}

BH_API uint64_t bh_buffer_version(const bh_buffer *buffer) {
    if (!BHI_LIVE(buffer) || !buffer->device) {
        return 0;
    }
    bhi_context_lock(buffer->context);
    const uint64_t version = bhi_buffer_place((struct bh_buffer *)buffer)->device->version;
    bhi_context_unlock(buffer->context);
    return version;
}

BH_API uint64_t bh_buffer_size(const bh_buffer *buffer) {
    return BHI_LIVE(buffer) ? buffer->size : 0;
}
