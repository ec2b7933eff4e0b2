/* The pool: memory of buffers that are gone, kept mapped for buffers to come (B3). One a context:
 * memory never passes from one context to another (B6). The reasons are in
 * docs/decisions/0009-pool.md.
 *
 *   made ──▶ IN USE ──▶ FREE ──▶ discarded (the oldest first; trimmed; the context is destroyed)
 *              ▲          │
 *              └──────────┘ taken
 *
 * IN USE: a buffer owns it, and with it every submission that uses the buffer and has not ended
 * (B2). FREE: nobody does; it is in |ages|.
 *
 * A worker counts as compromised, and what it was given it can read and write until it is confirmed
 * dead. So a block remembers which living workers have been given it, its *exposures*, and is
 * handed out only to whom these workers could not harm further: a block without exposures to
 * everybody, one with a single exposure to buffers that are made for the stream of that worker.
 * What more than one living worker has is handed to nobody.
 *
 * Workers know a block by its id, and keep it mapped and imported while it is FREE: when it is
 * bound again nothing has to be sent. */
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
    struct bhi_list shelf;     /* FREE: among those that may be handed to the same buffers */
    struct bhi_list exposures; /* bhi_exposure.of_block */
    bool spoilt;               /* a submission that used it failed: see bhi_pool_give */
};

/* |worker| has been given |block|, and lives. */
struct bhi_exposure {
    struct bhi_list of_block, of_worker;
    struct bhi_block *block;
    struct bhi_worker *worker;
};

struct bhi_pool {
    uint64_t limit;       /* of what is FREE, in bytes; set once, before others see it */
    uint32_t most;        /* blocks: each has a descriptor of this process */
    bool closed;          /* lock */
    bh_pool_stats stats;  /* lock */
    struct bhi_list ages; /* lock: bhi_block.age, FREE, the oldest first */
    struct bhi_list shelves[BHI_POOL_CLASSES]; /* lock: FREE, without exposures */
};

void bhi_pool_init(struct bhi_pool *pool, uint64_t limit);
/* What the pool is bounded by where nobody says otherwise. */
uint64_t bhi_pool_default_limit(void);

/* How many bytes a buffer of |size| takes up: that, in pages, or those of its size class.
 * *out_class is BHI_POOL_CLASSES where the pool would not keep it. Lock not needed. */
uint64_t bhi_pool_round(const struct bhi_pool *pool, uint64_t size, uint32_t *out_class);

/* -- lock held -------------------------------------------------------------------------------- */

/* A FREE block for a buffer, IN USE then, or NULL. |worker|: serves the stream that the buffer is
 * made for, or NULL. *out_own: nobody but that worker has it, and it had it before. */
struct bhi_block *bhi_pool_take(bh_context *context, uint32_t size_class, struct bhi_worker *worker,
                                bool *out_own);
/* A block of freshly made memory, IN USE, which takes |fd| and |pointer| over. NULL: no memory. */
struct bhi_block *bhi_pool_adopt(bh_context *context, uint32_t size_class, int fd, void *pointer,
                                 uint64_t bytes);
/* |worker| is going to be given the block. False: no memory to note it, so it must not be. */
bool bhi_pool_expose(struct bhi_block *block, struct bhi_worker *worker);
/* Nobody uses it any more. */
void bhi_pool_give(bh_context *context, struct bhi_block *block);
/* It cannot be used again; it is IN USE. */
void bhi_pool_discard(bh_context *context, struct bhi_block *block);
/* Discards the oldest until what is FREE has |bytes| at most. */
void bhi_pool_trim(bh_context *context, uint64_t bytes);
/* From now on nothing is kept. */
void bhi_pool_close(bh_context *context);
/* It is confirmed dead: what only it had is everybody's again. */
void bhi_pool_worker_died(struct bhi_worker *worker);

#endif
