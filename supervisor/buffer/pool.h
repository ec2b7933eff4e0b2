/* The pool: memory of freed buffers, kept mapped for new ones (B3). Each context has its own:
 * memory never passes from one context to another (B6). The reasons are in
 * docs/decisions/0009-pool.md.
 *
 *   made ──▶ IN USE ──▶ FREE ──▶ discarded (the oldest first; trimmed; the context is destroyed)
 *              ▲          │
 *              └──────────┘ taken
 *
 * IN USE: a buffer owns it. Submissions that use the buffer and have not ended keep both (B2).
 * FREE: no buffer owns it; it is in |ages|.
 *
 * A worker counts as compromised: it can read and write all memory that it was given until it is
 * confirmed dead. So a block remembers which living workers were given it, its *exposures*. A block
 * without exposures is reused for any buffer. One with a single exposure is reused only for buffers
 * of that worker's stream. One with several is not reused.
 *
 * A worker that was only given a block to read cannot change it. What is uploaded
 * (submit/transfer.h) goes through such blocks alone: the copy may have to be done by the next
 * worker, and must have the host's bytes then.
 *
 * Workers know a block by its id, and keep it mapped and imported while it is FREE. So nothing is
 * sent when it is used again. */
#ifndef BHI_SUPERVISOR_BUFFER_POOL_H
#define BHI_SUPERVISOR_BUFFER_POOL_H

#include "supervisor/context/context.h"
#include "supervisor/worker/pool_user.h"

struct bhi_worker;

struct bhi_block {
    struct bhi_doomed doomed; /* first */
    uint64_t id;              /* what workers call it */
    uint64_t bytes;           /* of a size class */
    int fd;
    void *pointer;
    uint32_t size_class;

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
    bool writes; /* it can write the block */
};

struct bhi_pool {
    uint64_t limit;       /* bytes of FREE blocks; set once, before others see it */
    uint32_t most;        /* blocks: each has a descriptor of this process */
    bool closed;          /* lock */
    bh_pool_stats stats;  /* lock; device_pool.c counts in it, too */
    struct bhi_list ages; /* lock: bhi_block.age, FREE, the oldest first */
    struct bhi_list shelves[BHI_POOL_CLASSES]; /* lock: FREE, without exposures */
};

void bhi_pool_init(struct bhi_pool *pool, uint64_t limit);
/* The limit if the options give none. */
uint64_t bhi_pool_default_limit(void);

/* Returns the bytes that a buffer of |size| takes: whole pages, or those of its size class.
 * *out_class is BHI_POOL_CLASSES if the pool would not keep it. Needs no lock. */
uint64_t bhi_pool_round(const struct bhi_pool *pool, uint64_t size, uint32_t *out_class);

/* -- lock held -------------------------------------------------------------------------------- */

/* Returns true if the worker runs and is not about to be killed: only then it gets more memory. */
bool bhi_pool_trusts(const struct bhi_worker *worker);
/* Returns a block for a buffer, which was FREE and is IN USE now, or NULL. |worker| serves the
 * stream of the buffer; NULL: none does. |unwritten|: one that no worker can write. *out_own:
 * |worker| had the block before, and no other worker has it. */
struct bhi_block *bhi_pool_take(bh_context *context, uint32_t size_class, struct bhi_worker *worker,
                                bool unwritten, bool *out_own);
/* Makes a block of new memory, IN USE; takes |fd| and |pointer| over. NULL: out of memory. */
struct bhi_block *bhi_pool_adopt(bh_context *context, uint32_t size_class, int fd, void *pointer,
                                 uint64_t bytes);
/* Notes that |worker| will be given the block, |writes|: to write it. Returns false if out of
 * memory; then do not give it. */
bool bhi_pool_expose(struct bhi_block *block, struct bhi_worker *worker, bool writes);
/* The block is not used any more: it is FREE now, or discarded. */
void bhi_pool_give(bh_context *context, struct bhi_block *block);
/* Discards a block that is IN USE. */
void bhi_pool_discard(bh_context *context, struct bhi_block *block);
/* Discards the oldest until what is FREE has |bytes| at most. */
void bhi_pool_trim(bh_context *context, uint64_t bytes);
/* Discards all that is FREE, and closes its descriptors before the lock is dropped: the host lacks
 * some. Returns true if there was any. */
bool bhi_pool_shed(bh_context *context);
/* No block is kept from now on. */
void bhi_pool_close(bh_context *context);
/* |worker| is confirmed dead: blocks that only it had can be reused for any buffer. */
void bhi_pool_worker_died(struct bhi_worker *worker);

#endif
