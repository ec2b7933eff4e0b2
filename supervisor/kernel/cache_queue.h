/* Requests to load and to store pipeline caches. Loads and stores have a line each, so no launch
 * waits for what is stored. In a line tenants take turns, and none can fill it. */
#ifndef BHI_SUPERVISOR_KERNEL_CACHE_QUEUE_H
#define BHI_SUPERVISOR_KERNEL_CACHE_QUEUE_H

#include "base/list.h"
#include <bulkhead/bulkhead.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bhi_worker;

/* Jobs in a line. Tenants share them (base/share.h). */
#define BHI_CACHE_JOBS 256u

enum bhi_cache_way { BHI_CACHE_LOAD, BHI_CACHE_STORE, BHI_CACHE_WAYS };

struct bhi_cache_job {
    struct bhi_list link;
    struct bhi_worker *worker; /* to load for; referenced; NULL: the job is to store */
    uint8_t identity[32];
    int area; /* owned; -1: none yet */
    char tenant[64];
    uint64_t turn;
};

struct bhi_cache_line {
    struct bhi_list jobs; /* cache_job.link; by their turns */
    pthread_cond_t work;
    uint32_t count;
    uint64_t turn; /* of the job that was served last */
};

struct bhi_cache_queue {
    pthread_mutex_t lock; /* guards what follows; no other lock is taken under it */
    struct bhi_cache_line lines[BHI_CACHE_WAYS];
    bool open; /* somebody serves it */
    bool stopping;
    uint64_t stop_by_ns;
};

void bhi_cache_queue_init(struct bhi_cache_queue *queue);
void bhi_cache_queue_fini(struct bhi_cache_queue *queue);
/* Adds a copy of |job|. Returns false if the tenant has too many jobs there, if out of memory, or
 * when the queue is not open. */
bool bhi_cache_queue_push(struct bhi_cache_queue *queue, enum bhi_cache_way way,
                          const struct bhi_cache_job *job);
/* Waits for the next job, which the caller frees. Returns NULL once the queue has stopped and the
 * line is empty. */
struct bhi_cache_job *bhi_cache_queue_pop(struct bhi_cache_queue *queue, enum bhi_cache_way way);
/* Ends all waiting. What is left is served until |by_ns|. */
void bhi_cache_queue_stop(struct bhi_cache_queue *queue, uint64_t by_ns);
/* Returns |deadline_ns|, or an earlier end if the queue is stopping. */
uint64_t bhi_cache_queue_deadline(struct bhi_cache_queue *queue, uint64_t deadline_ns);

#endif
