#include "batch/graph/heap.h"

void bhi_heap_push(struct bhi_heap *heap, struct bhi_job_node *node) {
    size_t at = heap->count++;
    while (at > 0 && heap->is_before(node, heap->nodes[(at - 1) / 2])) {
        heap->nodes[at] = heap->nodes[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->nodes[at] = node;
}

struct bhi_job_node *bhi_heap_pop(struct bhi_heap *heap) {
    struct bhi_job_node *const first = heap->nodes[0], *const last = heap->nodes[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count &&
            heap->is_before(heap->nodes[child + 1], heap->nodes[child])) {
            child++;
        }
        if (!heap->is_before(heap->nodes[child], last)) {
            break;
        }
        heap->nodes[at] = heap->nodes[child];
        at = child;
    }
    heap->nodes[at] = last;
    return first;
}
