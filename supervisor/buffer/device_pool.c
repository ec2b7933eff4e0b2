#include "supervisor/buffer/device_pool.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MOST_SHARE  16u /* the most blocks: the process's descriptors divided by this */
#define MOST_BLOCKS 256u

void bhi_device_pool_init(struct bhi_device_pool *pool, uint64_t limit) {
    *pool = (struct bhi_device_pool){.limit = limit, .most = MOST_BLOCKS};
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / MOST_SHARE < MOST_BLOCKS) {
        pool->most = (uint32_t)(files.rlim_cur / MOST_SHARE);
    }
    bhi_list_init(&pool->ages);
}

/* -- blocks ----------------------------------------------------------------------------------- */

/* Closing can give the memory back to the driver, which takes a while. */
static void free_block(struct bhi_doomed *doomed) {
    struct bhi_device_block *block = BHI_CONTAINER(doomed, struct bhi_device_block, doomed);
    bhi_fd_close(&block->fd);
    free(block);
}

struct bhi_device_block *bhi_device_block_new(const struct bh_stream *stream, uint64_t size) {
    struct bhi_device_block *block = calloc(1, sizeof *block);
    if (block) {
        block->doomed.free = free_block;
        block->id = bhi_context_new_id(stream->context);
        block->size = size;
        block->bytes = bhi_page_round(size);
        block->fd = -1;
        memcpy(block->tenant, stream->tenant, sizeof block->tenant);
        memcpy(block->device, stream->runs_on.uuid, sizeof block->device);
        bhi_list_init(&block->age);
        bhi_list_init(&block->exposures);
    }
    return block;
}

static struct bhi_device_exposure *of_block(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_device_exposure, of_block);
}

static void drop_exposure(struct bhi_device_exposure *exposure) {
    bhi_list_remove(&exposure->of_block);
    bhi_list_remove(&exposure->of_worker);
    free(exposure);
}

bool bhi_device_block_expose(struct bhi_device_block *block, struct bhi_worker *worker) {
    BHI_LIST_EACH(node, &block->exposures)
    if (of_block(node)->worker == worker) {
        return true;
    }
    struct bhi_device_exposure *exposure = calloc(1, sizeof *exposure);
    if (!exposure) {
        return false;
    }
    exposure->worker = worker;
    bhi_list_append(&block->exposures, &exposure->of_block);
    bhi_list_append(&worker->pool.device_exposures, &exposure->of_worker);
    return true;
}

bool bhi_device_block_is_safe(const struct bhi_device_block *block,
                              const struct bhi_worker *worker) {
    BHI_LIST_EACH(node, &block->exposures) {
        const struct bhi_worker *other = of_block(node)->worker;
        if (other != worker && !bhi_pool_trusts(other)) {
            return false;
        }
    }
    return true;
}

void bhi_device_block_renew(bh_context *context, struct bhi_device_block *block,
                            const struct bhi_worker *maker) {
    BHI_LIST_EACH_SAFE(node, &block->exposures) {
        struct bhi_device_exposure *exposure = of_block(node);
        if (exposure->worker != maker) {
            bhi_worker_forget_buffer(exposure->worker, block->id, 0);
            drop_exposure(exposure);
        }
    }
    struct bhi_device_block *old = block->fd < 0 ? NULL : calloc(1, sizeof *old);
    if (old) {
        old->doomed.free = free_block;
        old->fd = bhi_fd_steal(&block->fd);
        bhi_context_doom(context, &old->doomed);
    }
    bhi_fd_close(&block->fd);
}

void bhi_device_block_discard(bh_context *context, struct bhi_device_block *block) {
    BHI_LIST_EACH_SAFE(node, &block->exposures) {
        bhi_worker_forget_buffer(of_block(node)->worker, block->id, 0);
        drop_exposure(of_block(node));
    }
    bhi_context_doom(context, &block->doomed);
}

/* -- in and out ------------------------------------------------------------------------------- */

static struct bhi_device_block *of_age(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_device_block, age);
}

static void take_out(bh_context *context, struct bhi_device_block *block) {
    bhi_list_remove(&block->age);
    context->pool->stats.device_bytes -= block->bytes;
    context->pool->stats.device_blocks--;
}

static void evict(bh_context *context, struct bhi_device_block *block) {
    take_out(context, block);
    bhi_device_block_discard(context, block);
}

/* Can nobody write the block but |worker|, which is to go on? */
static bool is_for(const struct bhi_device_block *block, const struct bhi_worker *worker) {
    BHI_LIST_EACH(node, &block->exposures) {
        const struct bhi_worker *other = of_block(node)->worker;
        if (other != worker || !bhi_pool_trusts(other)) {
            return false;
        }
    }
    return true;
}

struct bhi_device_block *bhi_device_pool_take(const struct bh_stream *stream, uint64_t size,
                                              const struct bhi_worker *worker) {
    const struct bhi_list *ages = &stream->context->device_pool->ages;
    for (struct bhi_list *node = ages->prev; node != ages; node = node->prev) {
        struct bhi_device_block *block = of_age(node);
        if (block->size == size && strcmp(block->tenant, stream->tenant) == 0 &&
            memcmp(block->device, stream->runs_on.uuid, sizeof block->device) == 0 &&
            is_for(block, worker)) {
            take_out(stream->context, block);
            stream->context->pool->stats.device_hits++;
            return block;
        }
    }
    return NULL;
}

/* Several workers that go on have it: nobody could take it before one of them is dead. */
static bool is_shared(const struct bhi_device_block *block) {
    uint32_t sound = 0;
    BHI_LIST_EACH(node, &block->exposures)
    sound += bhi_pool_trusts(of_block(node)->worker);
    return sound > 1;
}

void bhi_device_pool_give(bh_context *context, struct bhi_device_block *block) {
    struct bhi_device_pool *pool = context->device_pool;
    bh_pool_stats *stats = &context->pool->stats;
    if (pool->closed || !pool->most || block->bytes > pool->limit || block->fd < 0 ||
        is_shared(block)) {
        bhi_device_block_discard(context, block);
        return;
    }
    if (block->spoilt) {
        /* A worker may have failed to import the block: then it must be introduced again. */
        block->spoilt = false;
        BHI_LIST_EACH(node, &block->exposures)
        bhi_worker_forget_buffer(of_block(node)->worker, block->id, 0);
    }
    bhi_list_append(&pool->ages, &block->age);
    stats->device_bytes += block->bytes;
    stats->device_blocks++;
    bhi_device_pool_trim(context, pool->limit);
    while (stats->device_blocks > pool->most) {
        evict(context, of_age(pool->ages.next));
    }
}

void bhi_device_pool_trim(bh_context *context, uint64_t bytes) {
    const struct bhi_list *ages = &context->device_pool->ages;
    while (context->pool->stats.device_bytes > bytes) {
        evict(context, of_age(ages->next));
    }
}

void bhi_device_pool_make_room(bh_context *context, uint64_t bytes) {
    const uint64_t limit = context->device_memory_limit;
    const uint64_t used = context->device_memory + bytes;
    if (limit) {
        bhi_device_pool_trim(context, used < limit ? limit - used : 0);
    }
}

bool bhi_device_pool_give_up(bh_context *context, const uint8_t device[16]) {
    bool any = false;
    BHI_LIST_EACH_SAFE(node, &context->device_pool->ages) {
        struct bhi_device_block *block = of_age(node);
        if (memcmp(block->device, device, sizeof block->device) == 0) {
            evict(context, block);
            any = true;
        }
    }
    return any;
}

bool bhi_device_pool_shed(bh_context *context) {
    const bool any = !bhi_list_empty(&context->device_pool->ages);
    BHI_LIST_EACH_SAFE(node, &context->device_pool->ages) {
        bhi_fd_close(&of_age(node)->fd);
        evict(context, of_age(node));
    }
    return any;
}

void bhi_device_pool_close(bh_context *context) {
    context->device_pool->closed = true;
    bhi_device_pool_trim(context, 0);
}

void bhi_device_pool_worker_died(struct bhi_worker *worker) {
    BHI_LIST_EACH_SAFE(node, &worker->pool.device_exposures)
    drop_exposure(BHI_CONTAINER(node, struct bhi_device_exposure, of_worker));
}
