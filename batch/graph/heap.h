/* Heaps of nodes: those that may be taken, by their turn; those that are delayed, by when they are
 * due. There is always room: the graph sets it aside. */
#ifndef BHI_BATCH_GRAPH_HEAP_H
#define BHI_BATCH_GRAPH_HEAP_H

#include "batch/graph/graph.h"

/* |heap| is graph->ready or graph->delayed. */
void bhi_heap_push(struct bhi_graph *graph, struct bhi_heap *heap, uint32_t node);
/* The first, which is taken out. The heap is not empty. */
uint32_t bhi_heap_pop(struct bhi_graph *graph, struct bhi_heap *heap);

#endif
