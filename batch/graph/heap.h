/* A heap of job nodes; the first is the next to run. Its owner reserves the room, so a push cannot
 * fail. */
#ifndef BHI_BATCH_GRAPH_HEAP_H
#define BHI_BATCH_GRAPH_HEAP_H

#include "batch/graph/node.h"

struct bhi_heap {
    /* Does |a| come out before |b|? */
    bool (*is_before)(const struct bhi_job_node *a, const struct bhi_job_node *b);
    struct bhi_job_node **nodes; /* owned by the graph */
    size_t capacity;
    size_t count;
};

void bhi_heap_push(struct bhi_heap *heap, struct bhi_job_node *node);
/* Takes the first node out. The heap must not be empty. */
struct bhi_job_node *bhi_heap_pop(struct bhi_heap *heap);

#endif
