/* Pipeline caches on disk, one file for each tenant, device and driver
 * (bh_context_options.cache_dir).
 *
 *   the worker's device is known ──▶ WAITING ──the file, or nothing──▶ READY ──death──▶ stored
 *
 * The opener (opener.h) reads and writes the files. Only a thread of its own waits for it, for a
 * limited time. A worker that waits for its cache gets no kernel until then. A worker writes what
 * it has compiled into its area (ipc/cache_area.h) before it reports the result. The area is read
 * once the worker is confirmed dead. */
#ifndef BHI_SUPERVISOR_REACTOR_PIPELINE_CACHE_H
#define BHI_SUPERVISOR_REACTOR_PIPELINE_CACHE_H

#include "base/list.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bh_context;
struct bhi_worker;

#define BHI_DISTRUSTED 16u

struct bhi_pipeline_cache {
    char *folder; /* absolute; NULL: there are no caches */
    bool started;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
    pthread_cond_t work;
    struct bhi_list jobs; /* cache_job.link */
    uint32_t job_count;
    bool stopping;
    uint64_t stop_by_ns;
    /* Context's lock: files whose readers died before they got anything done. */
    uint8_t distrusted[BHI_DISTRUSTED][32];
    uint32_t distrusted_count;
    uint64_t next; /* number of the next area */
};

/* |folder|: NULL: none. Returns 0 or -errno. */
int bhi_pipeline_cache_start(struct bh_context *context, const char *folder);
/* All workers are buried. Waits a few seconds at most for caches that are being stored. */
void bhi_pipeline_cache_stop(struct bh_context *context);
void bhi_pipeline_cache_fini(struct bh_context *context);

/* Context's lock held: */

/* Requests the worker's cache, once, if its tenant is certain and it has reported its device. */
void bhi_pipeline_cache_want(struct bhi_worker *worker);
/* The worker is confirmed dead. |orderly|: not through its own fault. */
void bhi_pipeline_cache_buried(struct bhi_worker *worker, bool orderly);

#endif
