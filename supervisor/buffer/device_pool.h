/* The pool of device memory: what a buffer in the memory of a GPU leaves behind is kept, as a
 * descriptor, for the next buffer of the same size (D3). pool.h does that for host memory. The
 * reasons are in docs/decisions/0055-device-pool.md.
 *
 *   new ──▶ IN USE ──▶ FREE ──▶ discarded (the oldest first; trimmed; the device is lost or full)
 *              ▲          │
 *              └──────────┘ taken: a worker has to clear it first (BHI_DEVICE_STALE)
 *
 * IN USE: a buffer owns it, and a limit counts it. FREE: no buffer owns it; it is in |ages|.
 *
 * A block is for buffers of its tenant, on its device, of its size, and for no others. A worker
 * that was given it can read and write it until it is confirmed dead, whatever it was told. So a
 * block remembers its *exposures*: the living workers that were given it. It is taken only if
 * there are none, or if the only one serves the stream of the new buffer and is not about to be
 * killed.
 *
 * Workers know a block by its id, which is the id of the buffer that owns it, and keep it imported
 * while it is FREE. */
#ifndef BHI_SUPERVISOR_BUFFER_DEVICE_POOL_H
#define BHI_SUPERVISOR_BUFFER_DEVICE_POOL_H

#include "supervisor/context/context.h"

struct bhi_worker;

struct bhi_device_block {
    struct bhi_doomed doomed; /* first */
    uint64_t id;
    uint64_t size;  /* of its buffers, to the byte */
    uint64_t bytes; /* what limits count */
    char tenant[BHI_TENANT];

    /* Lock. */
    int fd;                    /* owned; -1: no worker has made the memory yet */
    uint8_t device[16];        /* UUID of the device of its maker */
    int maker;                 /* pid; 0: none yet */
    struct bhi_list age;       /* FREE: pool->ages */
    struct bhi_list exposures; /* bhi_device_exposure.of_block */
    bool spoilt;               /* a submission that used it failed: see bhi_device_pool_give */
};

/* |worker| has been given |block|, and lives. */
struct bhi_device_exposure {
    struct bhi_list of_block, of_worker;
    struct bhi_worker *worker;
};

struct bhi_device_pool {
    uint64_t limit;       /* bytes of FREE blocks; set once, before others see it */
    uint32_t most;        /* blocks: each has a descriptor of this process */
    bool closed;          /* lock */
    struct bhi_list ages; /* lock: bhi_device_block.age, FREE, the oldest first; counted in the
                               statistics of the other pool */
};

void bhi_device_pool_init(struct bhi_device_pool *pool, uint64_t limit);

/* -- lock held -------------------------------------------------------------------------------- */

/* A block for a buffer of |stream| that no worker has made yet, IN USE. NULL: out of memory. */
struct bhi_device_block *bhi_device_block_new(const struct bh_stream *stream, uint64_t size);
/* Notes that |worker| will be given the block. Returns false if out of memory; then do not give it.
 */
bool bhi_device_block_expose(struct bhi_device_block *block, struct bhi_worker *worker);
/* Returns true unless a worker that is about to be killed can write the block; |worker| does not
 * count. */
bool bhi_device_block_is_safe(const struct bhi_device_block *block,
                              const struct bhi_worker *worker);
/* Gives the memory of a block IN USE back, so that other memory can be made for it. |maker| will
 * make that; NULL: nobody has been asked yet. */
void bhi_device_block_renew(bh_context *context, struct bhi_device_block *block,
                            const struct bhi_worker *maker);
/* Gives back a block that is IN USE. */
void bhi_device_block_discard(bh_context *context, struct bhi_device_block *block);

/* Returns a block for a buffer of |stream|, which was FREE and is IN USE now, or NULL. |worker|
 * serves the stream; NULL: none does. */
struct bhi_device_block *bhi_device_pool_take(const struct bh_stream *stream, uint64_t size,
                                              const struct bhi_worker *worker);
/* The block is not used any more, and no limit counts it: it is FREE now, or discarded. */
void bhi_device_pool_give(bh_context *context, struct bhi_device_block *block);
/* Discards the oldest until what is FREE has |bytes| at most. */
void bhi_device_pool_trim(bh_context *context, uint64_t bytes);
/* Discards the oldest until |bytes| more can be IN USE without exceeding the context's limit (D6).
 */
void bhi_device_pool_make_room(bh_context *context, uint64_t bytes);
/* Discards all that is FREE on a device. Returns true if there was any. */
bool bhi_device_pool_give_up(bh_context *context, const uint8_t device[16]);
/* Discards all that is FREE, and closes its descriptors before the lock is dropped: the host lacks
 * some. Returns true if there was any. */
bool bhi_device_pool_shed(bh_context *context);
/* No block is kept from now on. */
void bhi_device_pool_close(bh_context *context);
/* |worker| is confirmed dead. */
void bhi_device_pool_worker_died(struct bhi_worker *worker);

#endif
