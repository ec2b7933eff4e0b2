/* The pools: memory of freed buffers, kept for new ones (B3). Each context has two of its own, for
 * host memory, which stays mapped, and for device memory, of which it keeps descriptors. Memory
 * never passes from one context to another (B6). The reasons are in docs/decisions/0009-memory.md.
 *
 *   made ──▶ IN USE ──▶ FREE ──▶ discarded (the oldest first; trimmed; the context is destroyed;
 *              ▲          │                 the device is lost or full)
 *              └──────────┘ taken; a worker has to clear device memory first (BHI_DEVICE_STALE)
 *
 * IN USE: a buffer owns it. Submissions that use the buffer and have not ended keep both (B2).
 * FREE: no buffer owns it; it is in |ages|.
 *
 * A worker counts as compromised: it can read and write all memory that it was given until it is
 * confirmed dead. So a block remembers which living workers were given it, its *exposures*. A block
 * without exposures is reused for any buffer. One with a single exposure is reused only for buffers
 * of that worker's stream, while the worker is trusted. One with several is not reused. A block of
 * device memory is for buffers of its tenant, on its device, of its size to the byte (D3).
 *
 * A worker that was only given a block to read cannot change it. What is uploaded
 * (submit/transfer.h) goes through such blocks alone: the copy may have to be done by the next
 * worker, and must have the host's bytes then.
 *
 * Workers know a block by its id, and keep it mapped and imported while it is FREE. So nothing is
 * sent when host memory is used again. */
#ifndef BHI_SUPERVISOR_BUFFER_POOL_H
#define BHI_SUPERVISOR_BUFFER_POOL_H

#include "supervisor/context/context.h"
#include "supervisor/worker/pool_user.h"

struct bhi_worker;

struct bhi_block {
    struct bhi_doomed doomed; /* first */
    struct bhi_pool *pool;
    uint64_t id;    /* what workers call it */
    uint64_t bytes; /* whole pages */
    int fd; /* owned; device memory: guarded by the lock, -1: no worker has made the memory yet */
    uint32_t size_class;

    void *pointer; /* host memory: its mapping; otherwise NULL */

    uint64_t size; /* device memory: of its buffers, to the byte; otherwise 0 */
    char tenant[BHI_TENANT];
    uint8_t device[16]; /* UUID of the device of its maker */
    int maker;          /* lock; pid; 0: none yet */

    /* Lock. */
    struct bhi_list age;       /* FREE: pool->ages */
    struct bhi_list shelf;     /* FREE: in the list of blocks for the same buffers */
    struct bhi_list exposures; /* bhi_exposure.of_block */
    bool spoilt;               /* a submission that used it failed: see bhi_pool_give */
    /* The id of the only worker that was given what is in it, and for whose stream all buffers in
     * it were made, since it was zero; 0: there were others. */
    uint64_t only;
};

/* |worker| has been given |block|, and lives. */
struct bhi_exposure {
    struct bhi_list of_block, of_worker;
    struct bhi_block *block;
    struct bhi_worker *worker;
    bool writes;  /* it can write the block */
    bool goes_on; /* it is dead, and its device may write the block until it is buried (C3) */
};

/* What a pool keeps, and has done (bh_stats). */
struct bhi_pool_stats {
    uint64_t used; /* bytes IN USE; in the host also of buffers that the pool does not keep */
    uint64_t bytes, blocks; /* FREE */
    uint64_t hits, misses, evictions, zeroed_bytes;
};

struct bhi_pool {
    bh_context *context;
    uint64_t limit;              /* bytes of FREE blocks; set once, before others see it */
    uint32_t most;               /* blocks: each has a descriptor of this process */
    bool closed;                 /* lock */
    struct bhi_pool_stats stats; /* lock */
    struct bhi_list ages;        /* lock: bhi_block.age, FREE, the oldest first */
    struct bhi_list shelves[BHI_POOL_CLASSES]; /* lock: FREE, without exposures */
};

/* The memory that a buffer needs. */
struct bhi_pool_need {
    struct bhi_worker *worker;         /* serves the stream of the buffer; NULL: none does */
    uint32_t size_class;               /* of host memory */
    bool unwritten;                    /* host memory that no worker can write */
    const struct bh_stream *device_of; /* device memory: the buffer's stream; NULL: host memory */
    uint64_t size;                     /* of device memory */
};

void bhi_pools_init(bh_context *context, uint64_t limit);
/* The limit if the options give none. */
uint64_t bhi_pool_default_limit(void);

/* Returns the bytes that a buffer of |size| takes: whole pages, or those of its size class.
 * *out_class is BHI_POOL_CLASSES if the pool would not keep it. Needs no lock. */
uint64_t bhi_pool_round(const struct bhi_pool *pool, uint64_t size, uint32_t *out_class);

/* -- lock held -------------------------------------------------------------------------------- */

/* Returns true unless a worker that is about to be killed can write the block; |worker| does not
 * count. */
bool bhi_pool_is_safe(const struct bhi_block *block, const struct bhi_worker *worker);
/* Returns a block for a buffer, which was FREE and is IN USE now, or NULL. *out_own: need->worker
 * had the block before, and no other worker has it. */
struct bhi_block *bhi_pool_take(struct bhi_pool *pool, const struct bhi_pool_need *need,
                                bool *out_own);
/* Makes a block of new host memory, IN USE; takes |fd| and |pointer| over. NULL: out of memory. */
struct bhi_block *bhi_pool_adopt(bh_context *context, uint32_t size_class, int fd, void *pointer,
                                 uint64_t bytes);
/* A block of device memory for a buffer of |stream|, which a worker has to make yet, IN USE. NULL:
 * out of memory. */
struct bhi_block *bhi_pool_order(const struct bh_stream *stream, uint64_t size);
/* Gives the device memory of a block IN USE back, so that other memory can be made for it. |maker|
 * will make that; NULL: nobody has been asked yet. */
void bhi_pool_renew(struct bhi_block *block, const struct bhi_worker *maker);
/* Notes that |worker| will be given the block, |writes|: to write it. Returns false if out of
 * memory; then do not give it. */
bool bhi_pool_expose(struct bhi_block *block, struct bhi_worker *worker, bool writes);
/* The dead |worker|, which was given the block, may write it until bhi_pool_worker_died (C3). */
void bhi_pool_writes_on(struct bhi_block *block, const struct bhi_worker *worker);
/* Returns true if a dead worker may. Somebody waits for that now: its device is released at once. */
bool bhi_pool_await_writes(const struct bhi_block *block);
/* The block is not used any more, and no limit counts it: it is FREE now, or discarded. */
void bhi_pool_give(struct bhi_block *block);
/* Discards a block that is IN USE. */
void bhi_pool_discard(struct bhi_block *block);
/* Discards the oldest until what is FREE has |bytes| at most. */
void bhi_pool_trim(struct bhi_pool *pool, uint64_t bytes);
/* Discards the oldest of device memory until |bytes| more can be IN USE without exceeding the
 * context's limit (D6), which allows them. */
void bhi_pool_make_room(bh_context *context, uint64_t bytes);
/* Discards all that is FREE on a device. Returns true if there was any. */
bool bhi_pool_give_up(bh_context *context, const uint8_t device[16]);
/* Discards all that is FREE, and closes its descriptors before the lock is dropped: the host lacks
 * some. Returns true if there was any. */
bool bhi_pool_shed(struct bhi_pool *pool);
/* No block is kept from now on. */
void bhi_pool_close(struct bhi_pool *pool);
/* |worker| is confirmed dead: blocks that only it had can be reused for any buffer that they fit.
 */
void bhi_pool_worker_died(struct bhi_worker *worker);

#endif
