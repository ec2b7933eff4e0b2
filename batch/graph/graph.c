#include "batch/graph/graph.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- heaps ----------------------------------------------------------------------------------- */

static void heap_push(struct bhi_heap *heap, struct bhi_job_node *node) {
    size_t at = heap->count++;
    while (at > 0 && heap->is_before(node, heap->nodes[(at - 1) / 2])) {
        heap->nodes[at] = heap->nodes[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->nodes[at] = node;
}

/* Takes the first node out. The heap must not be empty. */
static struct bhi_job_node *heap_pop(struct bhi_heap *heap) {
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

enum { CHUNK = 1024 };

static bool is_ready_before(const struct bhi_job_node *a, const struct bhi_job_node *b) {
    if (a->job.sealed != b->job.sealed) {
        return a->job.sealed;
    }
    if (a->job.priority != b->job.priority) {
        return a->job.priority > b->job.priority;
    }
    return a->job.number < b->job.number;
}

static bool is_due_before(const struct bhi_job_node *a, const struct bhi_job_node *b) {
    return a->due_ns < b->due_ns; /* all that are due become ready, in their own order */
}

void bhi_graph_init(struct bhi_graph *graph) {
    *graph =
        (struct bhi_graph){.ready.is_before = is_ready_before, .delayed.is_before = is_due_before};
    bhi_names_init(&graph->ids);
}

static void free_texts(struct bhi_job *job) {
    free((char *)job->text);
    free((char *)job->outputs);
}

void bhi_graph_fini(struct bhi_graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++) {
        free_texts(&bhi_graph_node(graph, i)->job);
    }
    for (uint32_t i = 0; i < graph->capacity / CHUNK; i++) {
        free(graph->chunks[i]);
    }
    free(graph->chunks);
    free(graph->edges);
    free(graph->order);
    free(graph->ready.nodes);
    free(graph->delayed.nodes);
    bhi_names_fini(&graph->ids);
    *graph = (struct bhi_graph){0};
}

struct bhi_job_node *bhi_graph_node(const struct bhi_graph *graph, uint32_t index) {
    return &graph->chunks[index / CHUNK][index % CHUNK];
}

struct bhi_job_node *bhi_graph_find(const struct bhi_graph *graph, const char *id) {
    const uint32_t index = bhi_names_find(&graph->ids, id);
    return index == BHI_NO_NAME ? NULL : bhi_graph_node(graph, index);
}

/* -- adding ---------------------------------------------------------------------------------- */

/* Makes room for one more chunk: for nodes, and for their places in both heaps. */
static bool grow(struct bhi_graph *graph) {
    if (graph->capacity > UINT32_MAX - 2 * CHUNK) {
        return false;
    }
    const size_t capacity = (size_t)graph->capacity + CHUNK;
    if (!BHI_ARRAY_RESERVE(graph->chunks, graph->chunk_capacity, capacity / CHUNK) ||
        !BHI_ARRAY_RESERVE(graph->ready.nodes, graph->ready.capacity, capacity) ||
        !BHI_ARRAY_RESERVE(graph->delayed.nodes, graph->delayed.capacity, capacity)) {
        return false;
    }
    graph->chunks[graph->capacity / CHUNK] = calloc(CHUNK, sizeof(struct bhi_job_node));
    if (!graph->chunks[graph->capacity / CHUNK]) {
        return false;
    }
    graph->capacity = (uint32_t)capacity;
    return true;
}

struct bhi_job_node *bhi_graph_append(struct bhi_graph *graph, const char *id, const char *text) {
    if (graph->count == graph->capacity && !grow(graph)) {
        return NULL;
    }
    char *copy = strdup(text);
    const uint32_t index = copy ? bhi_names_add(&graph->ids, id) : BHI_NO_NAME;
    if (index == BHI_NO_NAME) {
        free(copy);
        return NULL;
    }
    struct bhi_job_node *node = bhi_graph_node(graph, graph->count++);
    *node = (struct bhi_job_node){
        .job = {.number = (uint64_t)index + 1, .id = graph->ids.names[index]->text, .text = copy},
        .state = BHI_JOB_SUBMITTED,
        .needs = BHI_NO_EDGE,
        .needed_by = BHI_NO_EDGE,
        .origin = BHI_NO_NODE,
    };
    return node;
}

bool bhi_graph_link(struct bhi_graph *graph, struct bhi_job_node *node,
                    struct bhi_job_node *needed) {
    if (graph->edge_count > UINT32_MAX / 2 ||
        !BHI_ARRAY_RESERVE(graph->edges, graph->edge_capacity, (size_t)graph->edge_count + 2)) {
        return false;
    }
    graph->edges[graph->edge_count] = (struct bhi_job_edge){bhi_node_index(needed), node->needs};
    node->needs = graph->edge_count++;
    graph->edges[graph->edge_count] =
        (struct bhi_job_edge){bhi_node_index(node), needed->needed_by};
    needed->needed_by = graph->edge_count++;
    return true;
}

void bhi_graph_truncate(struct bhi_graph *graph) {
    /* The newest edge is the first in the list of what it needs; the other list goes with its node. */
    while (graph->edge_count > 0) {
        const struct bhi_job_edge *pair = &graph->edges[graph->edge_count - 2];
        if (pair[1].node < graph->admitted) {
            break;
        }
        bhi_graph_node(graph, pair[0].node)->needed_by = pair[1].next;
        graph->edge_count -= 2;
    }
    while (graph->count > graph->admitted) {
        free_texts(&bhi_graph_node(graph, --graph->count)->job);
    }
    bhi_names_truncate(&graph->ids, graph->admitted);
}

/* -- order ----------------------------------------------------------------------------------- */

/* Returns a node without a rank that |node|, which has none either, needs. */
static struct bhi_job_node *step(const struct bhi_graph *graph, const struct bhi_job_node *node) {
    struct bhi_job_node *found = NULL;
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        struct bhi_job_node *needed = bhi_graph_node(graph, graph->edges[e].node);
        if (needed->rank == 0) {
            found = needed; /* edges are in reverse order, so the last one is first in the line */
        }
    }
    return found;
}

/* Returns the first node of a circle. Some node has no rank, and each such node needs another
 * one. */
static struct bhi_job_node *find_cycle(struct bhi_graph *graph) {
    const uint32_t search = ++graph->searches;
    uint32_t i = graph->admitted;
    while (bhi_graph_node(graph, i)->rank != 0) {
        i++;
    }
    struct bhi_job_node *node = bhi_graph_node(graph, i);
    for (; node->seen != search; node = step(graph, node)) {
        node->seen = search;
    }
    struct bhi_job_node *first = node;
    for (struct bhi_job_node *at = step(graph, node); at != node; at = step(graph, at)) {
        if (at->job.number < first->job.number) {
            first = at;
        }
    }
    return first;
}

bool bhi_graph_rank(struct bhi_graph *graph, struct bhi_job_node **out_cycle) {
    const uint32_t first = graph->admitted, count = graph->count - first;
    const uint32_t ranks = graph->ranks;
    uint32_t *order = malloc(((size_t)count + 1) * sizeof *order), placed = 0;
    *out_cycle = NULL;
    if (!order) {
        return false;
    }
    free(graph->order);
    graph->order = order;
    /* Here |waits| counts needed nodes without a rank; admitted nodes have one. */
    for (uint32_t i = first; i < graph->count; i++) {
        struct bhi_job_node *node = bhi_graph_node(graph, i);
        node->waits = 0;
        node->rank = 0;
        for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
            node->waits += graph->edges[e].node >= first;
        }
        if (node->waits == 0) {
            order[placed++] = i;
        }
    }
    for (uint32_t at = 0; at < placed; at++) {
        struct bhi_job_node *node = bhi_graph_node(graph, order[at]);
        node->rank = ranks + at + 1;
        for (uint32_t e = node->needed_by; e != BHI_NO_EDGE; e = graph->edges[e].next) {
            if (--bhi_graph_node(graph, graph->edges[e].node)->waits == 0) {
                order[placed++] = graph->edges[e].node;
            }
        }
    }
    if (placed < count) {
        *out_cycle = find_cycle(graph);
        return false;
    }
    graph->ranks = ranks + count;
    return true;
}

void bhi_graph_name_cycle(const struct bhi_graph *graph, const struct bhi_job_node *cycle,
                          char *out, size_t capacity) {
    const size_t room = capacity - BHI_JOB_ID - 64; /* leaves room for the end of the text */
    const struct bhi_job_node *node = cycle;
    size_t used = 0, left = 0;
    do {
        if (left == 0 && used + strlen(node->job.id) + 4 < room) {
            used += (size_t)snprintf(out + used, capacity - used, "%s -> ", node->job.id);
        } else {
            left++;
        }
        node = step(graph, node);
    } while (node != cycle);
    if (left) {
        used += (size_t)snprintf(out + used, capacity - used, "(%zu more) -> ", left);
    }
    snprintf(out + used, capacity - used, "%s", cycle->job.id);
}

bool bhi_graph_is_linked(const struct bhi_graph *graph, const struct bhi_job_node *node,
                         const struct bhi_job_node *needed) {
    const uint32_t wanted = bhi_node_index(needed);
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        if (graph->edges[e].node == wanted) {
            return true;
        }
    }
    return false;
}

uint32_t bhi_graph_search(struct bhi_graph *graph, struct bhi_job_node *from, bool forth,
                          uint32_t rank) {
    const uint32_t search = ++graph->searches;
    uint32_t top = bhi_node_index(from); /* a stack of nodes, linked through |link| */
    from->seen = search;
    from->link = BHI_NO_NODE;
    while (top != BHI_NO_NODE) {
        const struct bhi_job_node *at = bhi_graph_node(graph, top);
        top = at->link;
        for (uint32_t e = forth ? at->needed_by : at->needs; e != BHI_NO_EDGE;
             e = graph->edges[e].next) {
            struct bhi_job_node *next = bhi_graph_node(graph, graph->edges[e].node);
            if (next->seen == search || (forth ? next->rank > rank : next->rank < rank)) {
                continue;
            }
            next->seen = search;
            next->link = top;
            top = graph->edges[e].node;
        }
    }
    return search;
}

bool bhi_graph_reaches(struct bhi_graph *graph, struct bhi_job_node *node,
                       struct bhi_job_node *needed) {
    const uint32_t search = ++graph->searches;
    if (bhi_graph_is_linked(graph, node, needed)) {
        return true; /* nearly always true */
    }
    uint32_t top = BHI_NO_NODE; /* a stack of nodes, linked through |link| */
    node->seen = search;
    node->link = top;
    top = bhi_node_index(node);
    while (top != BHI_NO_NODE) {
        const struct bhi_job_node *at = bhi_graph_node(graph, top);
        top = at->link;
        for (uint32_t e = at->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
            struct bhi_job_node *next = bhi_graph_node(graph, graph->edges[e].node);
            if (next == needed) {
                return true;
            }
            /* A node with a lower rank than |needed| cannot need it. */
            if (next->seen == search || next->rank < needed->rank) {
                continue;
            }
            next->seen = search;
            next->link = top;
            top = graph->edges[e].node;
        }
    }
    return false;
}

/* -- states ---------------------------------------------------------------------------------- */

typedef void changed_call(void *user, const struct bhi_job_node *node);

static void set_state(struct bhi_graph *graph, struct bhi_job_node *node,
                      enum bhi_job_state state) {
    graph->of[node->state]--;
    graph->of[state]++;
    node->state = state;
}

/* Makes the node ready to be taken, now or at |due_ns|. */
static void offer(struct bhi_graph *graph, struct bhi_job_node *node, uint64_t due_ns) {
    node->due_ns = due_ns;
    heap_push(due_ns ? &graph->delayed : &graph->ready, node);
}

static bool failed(const struct bhi_job_node *node) {
    return node->state == BHI_JOB_FAILED || node->state == BHI_JOB_QUARANTINED;
}

/* Returns the index of the node in which the failure of |node| began. */
static uint32_t origin_of(const struct bhi_job_node *node) {
    return node->origin == BHI_NO_NODE ? bhi_node_index(node) : node->origin;
}

/* Fails all nodes that need |culprit|, directly or not, nearest first. Those that an earlier
 * failure has reached already stay as they are. All others are SUBMITTED, because what they need is
 * not DONE. */
static void fail_dependents(struct bhi_graph *graph, struct bhi_job_node *culprit,
                            changed_call *changed, void *user) {
    const uint32_t origin = origin_of(culprit);
    struct bhi_job_node *first = culprit, *last = culprit;
    culprit->link = BHI_NO_NODE;
    for (;;) {
        for (uint32_t e = first->needed_by; e != BHI_NO_EDGE; e = graph->edges[e].next) {
            struct bhi_job_node *node = bhi_graph_node(graph, graph->edges[e].node);
            if (graph->edges[e].node >= graph->admitted || node->state != BHI_JOB_SUBMITTED) {
                continue;
            }
            set_state(graph, node, BHI_JOB_FAILED);
            node->origin = origin;
            node->link = BHI_NO_NODE;
            last->link = graph->edges[e].node;
            last = node;
            changed(user, node);
        }
        if (first->link == BHI_NO_NODE) {
            return;
        }
        first = bhi_graph_node(graph, first->link);
    }
}

static void release_dependents(struct bhi_graph *graph, const struct bhi_job_node *done,
                               changed_call *changed, void *user) {
    for (uint32_t e = done->needed_by; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        struct bhi_job_node *node = bhi_graph_node(graph, graph->edges[e].node);
        if (graph->edges[e].node >= graph->admitted || --node->waits > 0 ||
            node->state != BHI_JOB_SUBMITTED) {
            continue;
        }
        set_state(graph, node, BHI_JOB_WAITING);
        offer(graph, node, 0);
        changed(user, node);
    }
}

/* Sets the state of a node that is being admitted. Nodes that it needs have been settled before. */
static void settle(struct bhi_graph *graph, struct bhi_job_node *node, changed_call *changed,
                   void *user) {
    struct bhi_job_node *culprit = NULL;
    node->waits = 0;
    for (uint32_t e = node->needs; e != BHI_NO_EDGE; e = graph->edges[e].next) {
        struct bhi_job_node *needed = bhi_graph_node(graph, graph->edges[e].node);
        node->waits += needed->state != BHI_JOB_DONE;
        if (failed(needed)) {
            culprit = needed;
        }
    }
    if (bhi_job_state_is_end(node->state)) {
        return;
    }
    const enum bhi_job_state before = node->state;
    set_state(graph, node, BHI_JOB_SUBMITTED);
    if (culprit && !node->job.sealed) {
        set_state(graph, node, BHI_JOB_FAILED);
        node->origin = origin_of(culprit);
    } else if (node->waits == 0 || node->job.sealed) {
        set_state(graph, node, BHI_JOB_WAITING);
        offer(graph, node, 0);
    }
    if (node->state != before && node->state != BHI_JOB_SUBMITTED) {
        changed(user, node);
    }
}

void bhi_graph_admit(struct bhi_graph *graph, changed_call *changed, void *user) {
    const uint32_t count = graph->count - graph->admitted;
    for (uint32_t i = 0; i < count; i++) {
        struct bhi_job_node *node = bhi_graph_node(graph, graph->order[i]);
        graph->of[node->state]++;
        settle(graph, node, changed, user);
    }
    graph->admitted = graph->count;
    free(graph->order);
    graph->order = NULL;
}

/* -- running --------------------------------------------------------------------------------- */

struct bhi_job_node *bhi_graph_take(struct bhi_graph *graph, uint64_t now_ns) {
    while (graph->delayed.count > 0) {
        struct bhi_job_node *due = graph->delayed.nodes[0];
        if (due->due_ns > now_ns) {
            break;
        }
        heap_pop(&graph->delayed);
        offer(graph, due, 0);
    }
    if (graph->ready.count == 0) {
        return NULL;
    }
    struct bhi_job_node *node = heap_pop(&graph->ready);
    set_state(graph, node, BHI_JOB_RUNNING);
    return node;
}

void bhi_graph_end(struct bhi_graph *graph, struct bhi_job_node *node, enum bhi_job_state next,
                   uint64_t due_ns, changed_call *changed, void *user) {
    set_state(graph, node, next);
    if (next == BHI_JOB_WAITING) {
        offer(graph, node, due_ns);
    } else if (next == BHI_JOB_DONE) {
        release_dependents(graph, node, changed, user);
    } else if (failed(node)) {
        fail_dependents(graph, node, changed, user);
    }
}

void bhi_graph_reorder(struct bhi_graph *graph) {
    const size_t count = graph->ready.count;
    graph->ready.count = 0;
    for (size_t i = 0; i < count; i++) {
        heap_push(&graph->ready, graph->ready.nodes[i]);
    }
}

uint64_t bhi_graph_takeable(const struct bhi_graph *graph, uint64_t now_ns, uint64_t *out_due_ns) {
    uint64_t takeable = graph->ready.count;
    *out_due_ns = 0;
    for (size_t i = 0; i < graph->delayed.count; i++) {
        const uint64_t due_ns = graph->delayed.nodes[i]->due_ns;
        if (due_ns <= now_ns) {
            takeable++;
        } else if (*out_due_ns == 0 || due_ns < *out_due_ns) {
            *out_due_ns = due_ns;
        }
    }
    return takeable;
}
