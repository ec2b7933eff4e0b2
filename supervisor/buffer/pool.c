#include "supervisor/buffer/pool.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/worker_proc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT_SHARE  16u          /* the limit is the machine's memory divided by this */
#define LIMIT_MOST   (1ull << 30) /* but at most this */
#define HOST_SHARE   8u           /* the most blocks: the process's descriptors divided by this */
#define HOST_MOST    1024u
#define DEVICE_SHARE 16u
#define DEVICE_MOST  256u
#define SMALL_PAGES  4u /* each number of pages up to this is a size class of its own */

static void init(bh_context *context, struct bhi_pool *pool, uint64_t limit, uint32_t most,
                 uint32_t share) {
    *pool = (struct bhi_pool){.context = context, .limit = limit, .most = most};
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / share < most) {
        pool->most = (uint32_t)(files.rlim_cur / share);
    }
    bhi_list_init(&pool->ages);
    for (uint32_t i = 0; i < BHI_POOL_CLASSES; i++) {
        bhi_list_init(&pool->shelves[i]);
    }
}

void bhi_pools_init(bh_context *context, uint64_t limit) {
    init(context, context->pool, limit, HOST_MOST, HOST_SHARE);
    init(context, context->device_pool, limit, DEVICE_MOST, DEVICE_SHARE);
}

uint64_t bhi_pool_default_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t share = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / LIMIT_SHARE : 0;
    return share && share < LIMIT_MOST ? share : LIMIT_MOST;
}

/* -- size classes ----------------------------------------------------------------------------- */

/* The size class of |pages|; *out_rounded is how many its blocks of host memory have. */
static uint32_t class_of(uint64_t pages, uint64_t *out_rounded) {
    *out_rounded = pages;
    if (pages <= SMALL_PAGES) {
        return (uint32_t)(pages - 1);
    }
    /* The position and value of the three highest bits of |pages| - 1 select the class; the lower
     * bits are rounded up. */
    unsigned shift = 61 - (unsigned)__builtin_clzll(pages - 1);
    uint64_t quarter = (pages - 1) >> shift;
    *out_rounded = (quarter + 1) << shift;
    return shift * 4 + (uint32_t)quarter;
}

uint64_t bhi_pool_round(const struct bhi_pool *pool, uint64_t size, uint32_t *out_class) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = size ? (size - 1) / page + 1 : 1, rounded;
    uint32_t size_class = class_of(pages, &rounded);
    /* No worker uses the memory of a buffer of size 0, so there is nothing to gain. */
    bool kept = size && size_class < BHI_POOL_CLASSES && rounded * page <= pool->limit;
    *out_class = kept ? size_class : BHI_POOL_CLASSES;
    return (kept ? rounded : pages) * page;
}

/* The sizes of device memory are exact: classes only make the search short. */
static uint32_t device_class(uint64_t size) {
    uint64_t rounded;
    uint32_t size_class = class_of(bhi_page_round(size) / bhi_page_round(1), &rounded);
    return size_class < BHI_POOL_CLASSES ? size_class : BHI_POOL_CLASSES - 1;
}

/* -- blocks ----------------------------------------------------------------------------------- */

/* Closing can give device memory back to the driver, which takes a while. */
static void free_block(struct bhi_doomed *doomed) {
    struct bhi_block *block = BHI_CONTAINER(doomed, struct bhi_block, doomed);
    if (block->pointer) {
        munmap(block->pointer, block->bytes);
    }
    bhi_fd_close(&block->fd);
    free(block);
}

static struct bhi_block *new_block(struct bhi_pool *pool, int fd, uint64_t bytes) {
    struct bhi_block *block = calloc(1, sizeof *block);
    if (block) {
        block->doomed.free = free_block;
        block->pool = pool;
        block->id = bhi_context_new_id(pool->context);
        block->bytes = bytes;
        block->fd = fd;
        bhi_list_init(&block->age);
        bhi_list_init(&block->shelf);
        bhi_list_init(&block->exposures);
        pool->stats.misses++;
        pool->stats.used += bytes;
    }
    return block;
}

struct bhi_block *bhi_pool_adopt(bh_context *context, uint32_t size_class, int fd, void *pointer,
                                 uint64_t bytes) {
    struct bhi_block *block = new_block(context->pool, fd, bytes);
    if (block) {
        block->pointer = pointer;
        block->size_class = size_class;
    }
    return block;
}

struct bhi_block *bhi_pool_order(const struct bh_stream *stream, uint64_t size) {
    struct bhi_pool *pool = stream->context->device_pool;
    struct bhi_block *block = new_block(pool, -1, bhi_page_round(size));
    if (block) {
        block->size = size;
        block->size_class = device_class(size);
        memcpy(block->tenant, stream->tenant, sizeof block->tenant);
        memcpy(block->device, stream->runs_on.uuid, sizeof block->device);
    }
    return block;
}

static void drop_exposure(struct bhi_exposure *exposure) {
    bhi_list_remove(&exposure->of_block);
    bhi_list_remove(&exposure->of_worker);
    free(exposure);
}

static struct bhi_exposure *of_block(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_exposure, of_block);
}

static struct bhi_block *of_age(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_block, age);
}

bool bhi_pool_expose(struct bhi_block *block, struct bhi_worker *worker, bool writes) {
    block->only = block->only == worker->id ? block->only : 0;
    BHI_LIST_EACH(node, &block->exposures)
    if (of_block(node)->worker == worker) {
        of_block(node)->writes |= writes; /* it may still have what it was told to give up */
        return true;
    }
    struct bhi_exposure *exposure = calloc(1, sizeof *exposure);
    if (!exposure) {
        return false;
    }
    exposure->block = block;
    exposure->worker = worker;
    exposure->writes = writes;
    bhi_list_append(&block->exposures, &exposure->of_block);
    bhi_list_append(&worker->pool.exposures, &exposure->of_worker);
    return true;
}

void bhi_pool_writes_on(struct bhi_block *block, const struct bhi_worker *worker) {
    BHI_LIST_EACH(node, &block->exposures) {
        of_block(node)->goes_on |= of_block(node)->worker == worker;
    }
}

bool bhi_pool_await_writes(const struct bhi_block *block) {
    bool written = false;
    BHI_LIST_EACH(node, &block->exposures) {
        if (of_block(node)->goes_on) {
            of_block(node)->worker->awaited = written = true;
            of_block(node)->worker->context->wake_reactor = true;
        }
    }
    return written;
}

/* Returns true if the worker runs and is not about to be killed: only then it gets more memory. */
static bool trusts(const struct bhi_worker *worker) {
    return bhi_life_served(&worker->core.life) && worker->core.life.kill == BHI_KILL_NONE &&
           !worker->core.life.violated;
}

bool bhi_pool_is_safe(const struct bhi_block *block, const struct bhi_worker *worker) {
    BHI_LIST_EACH(node, &block->exposures) {
        const struct bhi_worker *other = of_block(node)->worker;
        if (other != worker && !trusts(other)) {
            return false;
        }
    }
    return true;
}

static bool is_free(const struct bhi_block *block) {
    return !bhi_list_empty(&block->age);
}

/* Several workers that go on have it: nobody can take it before one of them is dead. */
static bool is_shared(const struct bhi_block *block) {
    uint32_t sound = 0;
    BHI_LIST_EACH(node, &block->exposures)
    sound += trusts(of_block(node)->worker);
    return sound > 1;
}

/* Puts a FREE block into the list of the buffers that may use it: the pool's list if no worker
 * was given the block, the worker's list if only one was, else none. */
static void shelve(struct bhi_block *block) {
    struct bhi_list *shelves = block->pool->shelves, *first = block->exposures.next;
    bhi_list_remove(&block->shelf);
    if (first->next != first && first->next != &block->exposures) {
        return;
    }
    if (!bhi_list_empty(&block->exposures)) {
        struct bhi_pool_user *user = &of_block(first)->worker->pool;
        shelves = of_block(first)->writes ? user->shelves : user->unwritten;
    }
    bhi_list_append(&shelves[block->size_class], &block->shelf);
}

static void unshelve(struct bhi_block *block) {
    bhi_list_remove(&block->age);
    bhi_list_remove(&block->shelf);
    block->pool->stats.bytes -= block->bytes;
    block->pool->stats.blocks--;
}

/* Tells a worker to give the block up. One that does not obey does no harm: the memory is not used
 * for others while it lives. Only mappings take address space. */
static void forget(const struct bhi_exposure *exposure) {
    const struct bhi_block *block = exposure->block;
    bhi_worker_forget_buffer(exposure->worker, block->id, block->pointer ? block->bytes : 0);
}

static void take_from(struct bhi_block *block, const struct bhi_worker *but) {
    BHI_LIST_EACH_SAFE(node, &block->exposures) {
        struct bhi_exposure *exposure = of_block(node);
        if (exposure->worker != but) {
            forget(exposure);
            drop_exposure(exposure);
        }
    }
}

void bhi_pool_renew(struct bhi_block *block, const struct bhi_worker *maker) {
    take_from(block, maker);
    struct bhi_block *old = block->fd < 0 ? NULL : calloc(1, sizeof *old);
    if (old) {
        old->doomed.free = free_block;
        old->fd = bhi_fd_steal(&block->fd);
        bhi_context_doom(block->pool->context, &old->doomed);
    }
    bhi_fd_close(&block->fd);
}

/* -- in and out ------------------------------------------------------------------------------- */

static void discard(struct bhi_block *block) {
    take_from(block, NULL);
    bhi_context_doom(block->pool->context, &block->doomed);
}

void bhi_pool_discard(struct bhi_block *block) {
    block->pool->stats.used -= block->bytes;
    discard(block);
}

static void evict(struct bhi_block *block) {
    unshelve(block);
    block->pool->stats.evictions++;
    discard(block);
}

/* Blocks that workers were given cannot be reused for buffers without a stream while these workers
 * live. A loop that creates, binds and releases such buffers would therefore fill the pool with
 * memory that it cannot use. So each miss evicts the oldest block of the class that a worker was
 * given, unless there is only one. */
static void evict_unusable(const struct bhi_pool *pool, uint32_t size_class) {
    struct bhi_block *first = NULL;
    BHI_LIST_EACH(node, &pool->ages) {
        struct bhi_block *block = of_age(node);
        if (block->size_class != size_class || bhi_list_empty(&block->exposures)) {
            continue;
        }
        if (first) {
            evict(first);
            return;
        }
        first = block;
    }
}

/* Host memory fits each buffer of its class. */
static bool fits(const struct bhi_block *block, const struct bhi_pool_need *need) {
    const struct bh_stream *stream = need->device_of;
    return !stream ? !block->size
                   : block->size == need->size && strcmp(block->tenant, stream->tenant) == 0 &&
                         memcmp(block->device, stream->runs_on.uuid, sizeof block->device) == 0;
}

/* Takes the newest block that fits: it may still be in a cache. */
static struct bhi_block *take_from_shelf(const struct bhi_list *shelf,
                                         const struct bhi_pool_need *need) {
    for (struct bhi_list *node = shelf->prev; node != shelf; node = node->prev) {
        struct bhi_block *block = BHI_CONTAINER(node, struct bhi_block, shelf);
        if (fits(block, need)) {
            unshelve(block);
            block->pool->stats.hits++;
            block->pool->stats.used += block->bytes;
            return block;
        }
    }
    return NULL;
}

struct bhi_block *bhi_pool_take(struct bhi_pool *pool, const struct bhi_pool_need *need,
                                bool *out_own) {
    struct bhi_worker *worker = need->worker;
    struct bhi_block *block = NULL;
    const uint32_t size_class = need->device_of ? device_class(need->size) : need->size_class;
    if (worker && trusts(worker)) {
        /* A buffer that may be written leaves blocks that only were read for uploads, if it can. */
        block = need->unwritten ? NULL : take_from_shelf(&worker->pool.shelves[size_class], need);
        block = block ? block : take_from_shelf(&worker->pool.unwritten[size_class], need);
    }
    *out_own = block;
    block = block ? block : take_from_shelf(&pool->shelves[size_class], need);
    if (!block && !worker && !need->device_of) {
        evict_unusable(pool, size_class);
    }
    return block;
}

void bhi_pool_trim(struct bhi_pool *pool, uint64_t bytes) {
    while (pool->stats.bytes > bytes) {
        evict(of_age(pool->ages.next));
    }
}

void bhi_pool_make_room(bh_context *context, uint64_t bytes) {
    const uint64_t limit = context->device_memory_limit;
    if (limit) {
        bhi_pool_trim(context->device_pool, limit - context->device_memory - bytes);
    }
}

bool bhi_pool_give_up(bh_context *context, const uint8_t device[16]) {
    bool any = false;
    BHI_LIST_EACH_SAFE(node, &context->device_pool->ages) {
        if (memcmp(of_age(node)->device, device, sizeof of_age(node)->device) == 0) {
            evict(of_age(node));
            any = true;
        }
    }
    return any;
}

bool bhi_pool_shed(struct bhi_pool *pool) {
    const bool any = !bhi_list_empty(&pool->ages);
    BHI_LIST_EACH_SAFE(node, &pool->ages) {
        bhi_fd_close(&of_age(node)->fd); /* the pages of a mapping stay until that goes */
        evict(of_age(node));
    }
    return any;
}

void bhi_pool_give(struct bhi_block *block) {
    struct bhi_pool *pool = block->pool;
    const bool on_host = pool == pool->context->pool, shared = is_shared(block);
    if (pool->closed || !pool->most || block->bytes > pool->limit || block->fd < 0 ||
        (shared && !on_host)) {
        bhi_pool_discard(block);
        return;
    }
    pool->stats.used -= block->bytes;
    if (block->spoilt) {
        /* A worker may have failed to map or import the block: then it must be introduced again. */
        block->spoilt = false;
        BHI_LIST_EACH(node, &block->exposures)
        forget(of_block(node));
    }
    bhi_list_insert_before(shared ? pool->ages.next : &pool->ages, &block->age);
    pool->stats.bytes += block->bytes;
    pool->stats.blocks++;
    shelve(block);
    bhi_pool_trim(pool, pool->limit);
    while (pool->stats.blocks > pool->most) {
        evict(of_age(pool->ages.next));
    }
}

void bhi_pool_close(struct bhi_pool *pool) {
    pool->closed = true;
    bhi_pool_trim(pool, 0);
}

void bhi_pool_worker_died(struct bhi_worker *worker) {
    /* A worker that SIGKILL did not end may still finish a write. Only a loader is buried in that
     * state, and loaders never get memory of the pool (bhi_buffer_make). */
    BHI_CHECK(!worker->core.life.given_up || bhi_list_empty(&worker->pool.exposures));
    BHI_LIST_FOR_SAFE(struct bhi_exposure, exposure, &worker->pool.exposures, of_worker) {
        struct bhi_block *block = exposure->block;
        drop_exposure(exposure);
        if (is_free(block)) {
            shelve(block);
        }
    }
}
