#include "supervisor/buffer/pool.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/fd.h"
#include "supervisor/context/layout.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/worker_proc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT_SHARE 16u          /* the limit is the machine's memory divided by this */
#define LIMIT_MOST  (1ull << 30) /* but at most this */
#define MOST_SHARE  8u           /* the most blocks: the process's descriptors divided by this */
#define MOST_BLOCKS 1024u
#define SMALL_PAGES 4u /* each number of pages up to this is a size class of its own */

void bhi_pool_init(struct bhi_pool *pool, uint64_t limit) {
    *pool = (struct bhi_pool){.limit = limit, .most = MOST_BLOCKS};
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / MOST_SHARE < MOST_BLOCKS) {
        pool->most = (uint32_t)(files.rlim_cur / MOST_SHARE);
    }
    bhi_list_init(&pool->ages);
    for (uint32_t i = 0; i < BHI_POOL_CLASSES; i++) {
        bhi_list_init(&pool->shelves[i]);
    }
}

uint64_t bhi_pool_default_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t share = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / LIMIT_SHARE : 0;
    return share && share < LIMIT_MOST ? share : LIMIT_MOST;
}

/* -- size classes ----------------------------------------------------------------------------- */

uint64_t bhi_pool_round(const struct bhi_pool *pool, uint64_t size, uint32_t *out_class) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = size ? (size - 1) / page + 1 : 1, rounded = pages;
    uint32_t size_class = (uint32_t)(pages - 1);
    if (pages > SMALL_PAGES) {
        /* The position and value of the three highest bits of |pages| - 1 select the class; the
         * lower bits are rounded up. */
        unsigned shift = 61 - (unsigned)__builtin_clzll(pages - 1);
        uint64_t quarter = (pages - 1) >> shift;
        rounded = (quarter + 1) << shift;
        size_class = shift * 4 + (uint32_t)quarter;
    }
    /* No worker uses the memory of a buffer of size 0, so there is nothing to gain. */
    bool kept = size && size_class < BHI_POOL_CLASSES && rounded * page <= pool->limit;
    *out_class = kept ? size_class : BHI_POOL_CLASSES;
    return (kept ? rounded : pages) * page;
}

/* -- blocks ----------------------------------------------------------------------------------- */

static void free_block(struct bhi_doomed *doomed) {
    struct bhi_block *block = BHI_CONTAINER(doomed, struct bhi_block, doomed);
    munmap(block->pointer, block->bytes);
    bhi_fd_close(&block->fd);
    free(block);
}

struct bhi_block *bhi_pool_adopt(bh_context *context, uint32_t size_class, int fd, void *pointer,
                                 uint64_t bytes) {
    struct bhi_block *block = calloc(1, sizeof *block);
    if (!block) {
        return NULL;
    }
    block->doomed.free = free_block;
    block->id = bhi_context_new_id(context);
    block->bytes = bytes;
    block->fd = fd;
    block->pointer = pointer;
    block->size_class = size_class;
    bhi_list_init(&block->age);
    bhi_list_init(&block->shelf);
    bhi_list_init(&block->exposures);
    context->pool->stats.misses++;
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

static bool is_free(const struct bhi_block *block) {
    return !bhi_list_empty(&block->age);
}

static bool is_shared(const struct bhi_block *block) {
    return block->exposures.next->next != &block->exposures && !bhi_list_empty(&block->exposures);
}

/* Puts a FREE block into the list of the buffers that may use it: the context's list if no worker
 * was given the block, the worker's list if only one was, else none. */
static void shelve(bh_context *context, struct bhi_block *block) {
    bhi_list_remove(&block->shelf);
    struct bhi_list *shelves = context->pool->shelves;
    if (is_shared(block)) {
        return;
    }
    if (!bhi_list_empty(&block->exposures)) {
        const struct bhi_exposure *only = of_block(block->exposures.next);
        shelves = only->writes ? only->worker->pool.shelves : only->worker->pool.unwritten;
    }
    bhi_list_append(&shelves[block->size_class], &block->shelf);
}

static void unshelve(bh_context *context, struct bhi_block *block) {
    bhi_list_remove(&block->age);
    bhi_list_remove(&block->shelf);
    context->pool->stats.bytes -= block->bytes;
    context->pool->stats.blocks--;
}

/* -- in and out ------------------------------------------------------------------------------- */

/* The workers are told to unmap the block. A worker that does not obey does no harm, because the
 * memory is never used again. */
void bhi_pool_discard(bh_context *context, struct bhi_block *block) {
    BHI_LIST_EACH_SAFE(node, &block->exposures) {
        struct bhi_exposure *exposure = of_block(node);
        bhi_worker_forget_buffer(exposure->worker, block->id, block->bytes);
        drop_exposure(exposure);
    }
    bhi_context_doom(context, &block->doomed);
}

static void evict(bh_context *context, struct bhi_block *block) {
    unshelve(context, block);
    context->pool->stats.evictions++;
    bhi_pool_discard(context, block);
}

/* Blocks that workers were given cannot be reused for buffers without a stream while these workers
 * live. A loop that creates, binds and releases such buffers would therefore fill the pool with
 * memory that it cannot use. So each miss evicts the oldest block of the class that a worker was
 * given, unless there is only one. */
static void make_room(bh_context *context, uint32_t size_class) {
    struct bhi_block *first = NULL;
    BHI_LIST_EACH(node, &context->pool->ages) {
        struct bhi_block *block = BHI_CONTAINER(node, struct bhi_block, age);
        if (block->size_class != size_class || bhi_list_empty(&block->exposures)) {
            continue;
        }
        if (first) {
            evict(context, first);
            return;
        }
        first = block;
    }
}

bool bhi_pool_trusts(const struct bhi_worker *worker) {
    return worker->state == BHI_RUNNING && worker->core.kill == BHI_KILL_NONE &&
           !worker->core.violated;
}

/* A buffer that may be written leaves blocks that only were read for uploads, if it can. */
static const struct bhi_list *own_shelf(const struct bhi_pool_user *user, uint32_t size_class,
                                        bool unwritten) {
    const struct bhi_list *written = &user->shelves[size_class];
    return unwritten || bhi_list_empty(written) ? &user->unwritten[size_class] : written;
}

struct bhi_block *bhi_pool_take(bh_context *context, uint32_t size_class, struct bhi_worker *worker,
                                bool unwritten, bool *out_own) {
    const struct bhi_list *shelf = worker && bhi_pool_trusts(worker)
                                       ? own_shelf(&worker->pool, size_class, unwritten)
                                       : &context->pool->shelves[size_class];
    *out_own = shelf != &context->pool->shelves[size_class] && !bhi_list_empty(shelf);
    if (!*out_own) {
        shelf = &context->pool->shelves[size_class];
    }
    if (bhi_list_empty(shelf)) {
        if (!worker) {
            make_room(context, size_class);
        }
        return NULL;
    }
    /* The newest block: it may still be in a cache. */
    struct bhi_block *block = BHI_CONTAINER(shelf->prev, struct bhi_block, shelf);
    unshelve(context, block);
    context->pool->stats.hits++;
    return block;
}

static struct bhi_block *oldest(bh_context *context) {
    return BHI_CONTAINER(context->pool->ages.next, struct bhi_block, age);
}

void bhi_pool_trim(bh_context *context, uint64_t bytes) {
    while (context->pool->stats.bytes > bytes) {
        evict(context, oldest(context));
    }
}

bool bhi_pool_shed(bh_context *context) {
    const bool any = !bhi_list_empty(&context->pool->ages);
    while (!bhi_list_empty(&context->pool->ages)) {
        bhi_fd_close(&oldest(context)->fd); /* its pages stay until the mapping goes */
        evict(context, oldest(context));
    }
    return any;
}

void bhi_pool_give(bh_context *context, struct bhi_block *block) {
    struct bhi_pool *pool = context->pool;
    if (pool->closed || !pool->most) {
        bhi_pool_discard(context, block);
        return;
    }
    if (block->spoilt) {
        /* A worker may have failed to map or import the block: then it must be introduced again. */
        block->spoilt = false;
        BHI_LIST_EACH(node, &block->exposures)
        bhi_worker_forget_buffer(of_block(node)->worker, block->id, block->bytes);
    }
    if (is_shared(block)) { /* no buffer can use it until workers die, so it is evicted first */
        bhi_list_insert_before(pool->ages.next, &block->age);
    } else {
        bhi_list_append(&pool->ages, &block->age);
    }
    pool->stats.bytes += block->bytes;
    pool->stats.blocks++;
    shelve(context, block);
    while (pool->stats.bytes > pool->limit || pool->stats.blocks > pool->most) {
        evict(context, oldest(context));
    }
}

void bhi_pool_close(bh_context *context) {
    context->pool->closed = true;
    bhi_pool_trim(context, 0);
}

void bhi_pool_worker_died(struct bhi_worker *worker) {
    /* A worker that SIGKILL did not end may still finish a write. Only a loader is buried in that
     * state, and loaders never get memory of the pool (bhi_buffer_make). */
    BHI_CHECK(!worker->kill_failed || bhi_list_empty(&worker->pool.exposures));
    BHI_LIST_EACH_SAFE(node, &worker->pool.exposures) {
        struct bhi_exposure *exposure = BHI_CONTAINER(node, struct bhi_exposure, of_worker);
        struct bhi_block *block = exposure->block;
        drop_exposure(exposure);
        if (is_free(block)) {
            shelve(worker->context, block);
        }
    }
}

/* -- the public side --------------------------------------------------------------------------- */

BH_API bh_status bh_context_pool_stats_sized(bh_context *context, bh_pool_stats *out_stats,
                                             size_t stats_size, bh_detail *detail) {
    static const char call[] = "bh_context_pool_stats";
    if (!out_stats) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: out_stats is NULL", call);
    }
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_pool_stats), stats_size, call, "out_stats", detail);
    if (status != BH_OK) {
        return status;
    }
    memset(out_stats, 0, stats_size);
    status = bhi_context_check(context, call, detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_context_lock(context);
    bhi_layout_give(out_stats, stats_size, &context->pool->stats, sizeof context->pool->stats);
    bhi_context_unlock(context);
    return BH_OK;
}
