/* Pipeline caches on disk, one file for each tenant, device, driver and kernel
 * (bh_context_options.cache_dir).
 *
 *   a stream's worker gets its first kernel ──▶ WAITING ──the file, or nothing──▶ READY
 *                                      what it has left is stored ◀──in good order, death──┘
 *
 * A worker's file is that of its first kernel (submit/introduce.h). It is stored only by a
 * worker that got no other kernel, so no kernel leaves anything for another one. A worker that
 * loaded a file is not fresh: the blame of what runs on it is suspected (T2), and it stores nothing.
 *
 * The opener (file/opener.h) reads and writes the files. Only two threads of their own wait for it,
 * for a limited time. A worker that waits for its cache gets no kernel until then. A worker writes
 * what it has compiled into its area (ipc/cache_area.h) before it reports the result. The area is
 * read once the worker is confirmed dead. */
#ifndef BHI_SUPERVISOR_REACTOR_PIPELINE_CACHE_H
#define BHI_SUPERVISOR_REACTOR_PIPELINE_CACHE_H

#include "supervisor/kernel/cache_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bh_context;
struct bhi_worker;

#define BHI_DISTRUSTED 16u

struct bhi_pipeline_cache {
    char *folder; /* absolute; NULL: there are no caches */
    pthread_t threads[BHI_CACHE_WAYS];
    int started;                      /* how many of them run */
    _Atomic uint64_t silent_until_ns; /* the folder did not answer: it is not asked before */
    /* Context's lock: files whose readers died of themselves. */
    uint8_t distrusted[BHI_DISTRUSTED][32];
    uint32_t distrusted_count;
    uint64_t next; /* number of the next area */
};

/* |folder|: NULL: none. Returns 0 or -errno. */
int bhi_pipeline_cache_start(struct bh_context *context, const char *folder);
/* All workers are buried. Waits a few seconds at most for caches that are being stored. */
void bhi_pipeline_cache_stop(struct bh_context *context);
void bhi_pipeline_cache_fini(struct bh_context *context);
/* The worker is confirmed dead. |orderly|: not through its own fault. Context's lock held. */
void bhi_pipeline_cache_buried(struct bhi_worker *worker, bool orderly);

#endif
