/* A heap of job nodes, the next one to run first. Its owner reserves the room, so a push cannot
 * fail. */
#ifndef BHI_BATCH_GRAPH_HEAP_H
#define BHI_BATCH_GRAPH_HEAP_H

#include "batch/graph/node.h"

struct bhi_heap {
    /* Whether |a| comes out before |b|. */
    bool (*is_before)(const struct bhi_job_node *a, const struct bhi_job_node *b);
    struct bhi_job_node **nodes; /* owned by the graph */
    size_t capacity;
    size_t count;
};

void bhi_heap_push(struct bhi_heap *heap, struct bhi_job_node *node);
/* The first, which is taken out. The heap is not empty. */
struct bhi_job_node *bhi_heap_pop(struct bhi_heap *heap);

#endif
