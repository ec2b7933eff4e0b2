#include "batch/graph/heap.h"

/* Whether |a| comes before |b|. */
static bool is_before(const struct bhi_graph *graph, const struct bhi_heap *heap, uint32_t a,
                      uint32_t b) {
    const struct bhi_job_node *x = bhi_graph_node(graph, a), *y = bhi_graph_node(graph, b);
    if (heap == &graph->delayed)
        return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : a < b;
    if (x->job.sealed != y->job.sealed)
        return x->job.sealed;
    if (x->job.priority != y->job.priority)
        return x->job.priority > y->job.priority;
    return a < b;
}

void bhi_heap_push(struct bhi_graph *graph, struct bhi_heap *heap, uint32_t node) {
    size_t at = heap->count++;
    while (at > 0 && is_before(graph, heap, node, heap->nodes[(at - 1) / 2])) {
        heap->nodes[at] = heap->nodes[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->nodes[at] = node;
}

uint32_t bhi_heap_pop(struct bhi_graph *graph, struct bhi_heap *heap) {
    const uint32_t first = heap->nodes[0], last = heap->nodes[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            is_before(graph, heap, heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!is_before(graph, heap, heap->nodes[child], last))
            break;
        heap->nodes[at] = heap->nodes[child];
        at = child;
    }
    heap->nodes[at] = last;
    return first;
}
