#include "supervisor/kernel/cache_queue.h"
#include "base/share.h"

#include <stdlib.h>
#include <string.h>

void bhi_cache_queue_init(struct bhi_cache_queue *queue) {
    pthread_mutex_init(&queue->lock, NULL);
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        pthread_cond_init(&queue->lines[way].work, NULL);
        bhi_list_init(&queue->lines[way].jobs);
    }
}

void bhi_cache_queue_fini(struct bhi_cache_queue *queue) {
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        pthread_cond_destroy(&queue->lines[way].work);
    }
    pthread_mutex_destroy(&queue->lock);
}

static struct bhi_cache_job *job_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_cache_job, link);
}

/* A tenant's jobs have successive turns, the first one the turn that is being served. Returns false
 * if the tenant has too many. */
static bool enter(struct bhi_cache_line *line, struct bhi_cache_job *job) {
    uint32_t own = 0;
    job->turn = line->turn;
    BHI_LIST_EACH(node, &line->jobs) {
        if (strcmp(job_of(node)->tenant, job->tenant) == 0) {
            job->turn = job_of(node)->turn + 1;
            own++;
        }
    }
    if (!bhi_share_allows(own, 1, line->count, BHI_CACHE_JOBS)) {
        return false;
    }
    struct bhi_list *behind = &line->jobs;
    while (behind->prev != &line->jobs && job_of(behind->prev)->turn > job->turn) {
        behind = behind->prev;
    }
    bhi_list_insert_before(behind, &job->link);
    line->count++;
    return true;
}

bool bhi_cache_queue_push(struct bhi_cache_queue *queue, enum bhi_cache_way way,
                          const struct bhi_cache_job *what) {
    struct bhi_cache_job *job = malloc(sizeof *job);
    if (!job) {
        return false;
    }
    *job = *what;
    bhi_list_init(&job->link);
    pthread_mutex_lock(&queue->lock);
    const bool entered = queue->open && !queue->stopping && enter(&queue->lines[way], job);
    if (entered) {
        pthread_cond_signal(&queue->lines[way].work);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!entered) {
        free(job);
    }
    return entered;
}

struct bhi_cache_job *bhi_cache_queue_pop(struct bhi_cache_queue *queue, enum bhi_cache_way way) {
    struct bhi_cache_line *line = &queue->lines[way];
    struct bhi_cache_job *job = NULL;
    pthread_mutex_lock(&queue->lock);
    while (bhi_list_empty(&line->jobs) && !queue->stopping) {
        pthread_cond_wait(&line->work, &queue->lock);
    }
    if (!bhi_list_empty(&line->jobs)) {
        job = job_of(line->jobs.next);
        bhi_list_remove(&job->link);
        line->count--;
        line->turn = job->turn;
    }
    pthread_mutex_unlock(&queue->lock);
    return job;
}

void bhi_cache_queue_stop(struct bhi_cache_queue *queue, uint64_t by_ns) {
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    queue->stop_by_ns = by_ns;
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        pthread_cond_signal(&queue->lines[way].work);
    }
    pthread_mutex_unlock(&queue->lock);
}

uint64_t bhi_cache_queue_deadline(struct bhi_cache_queue *queue, uint64_t deadline_ns) {
    pthread_mutex_lock(&queue->lock);
    if (queue->stopping && queue->stop_by_ns < deadline_ns) {
        deadline_ns = queue->stop_by_ns;
    }
    pthread_mutex_unlock(&queue->lock);
    return deadline_ns;
}
