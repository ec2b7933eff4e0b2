/* The jobs of a batch in memory: what each waits for, which is next, which fall with another.
 *
 * No locks and no disk: those are the queue's. What does not say so cannot fail: memory for it was
 * set aside when the job was appended.
 */
#ifndef BHI_BATCH_GRAPH_GRAPH_H
#define BHI_BATCH_GRAPH_GRAPH_H

#include "batch/graph/heap.h"
#include "batch/graph/names.h"

#define BHI_NO_EDGE UINT32_MAX

struct bhi_job_edge {
    uint32_t node; /* at its other end */
    uint32_t next; /* of the same node, added before */
};

struct bhi_graph {
    struct bhi_names ids; /* number of a name: index of the node */
    struct bhi_job_node **chunks;
    size_t chunk_capacity;
    uint32_t count, capacity;
    uint32_t admitted;          /* nodes from here on are being added, and not in |of| */
    struct bhi_job_edge *edges; /* owned; in pairs: what is needed, then who needs it */
    uint32_t edge_count;
    size_t edge_capacity;
    uint32_t searches, ranks;
    uint32_t *order;         /* of what is being added, by rank; owned */
    struct bhi_heap ready;   /* that may be taken: sealed ones first, then by priority */
    struct bhi_heap delayed; /* by when they are due */
    uint64_t of[BHI_JOB_STATES];
};

void bhi_graph_init(struct bhi_graph *graph);
void bhi_graph_fini(struct bhi_graph *graph);

struct bhi_job_node *bhi_graph_node(const struct bhi_graph *graph, uint32_t index);
/* NULL: there is none. */
struct bhi_job_node *bhi_graph_find(const struct bhi_graph *graph, const char *id);

/* -- adding: append, link, rank; then admit, or truncate ----------------------------------------
 */

/* A copy; SUBMITTED, not admitted. NULL: out of memory. */
struct bhi_job_node *bhi_graph_append(struct bhi_graph *graph, const char *id, const char *text);
/* |node| needs |needed|. False: out of memory. */
bool bhi_graph_link(struct bhi_graph *graph, struct bhi_job_node *node,
                    struct bhi_job_node *needed);
/* Gives ranks to all that are not admitted. False: some need each other in a circle, and the first
 * of one is in *out_cycle; NULL: out of memory. */
bool bhi_graph_rank(struct bhi_graph *graph, struct bhi_job_node **out_cycle);
/* The circle that bhi_graph_rank found, as "a -> b -> a": each needs the next. What is longer than
 * |capacity|, which is at least 600, is cut before its end, and says how much is missing. */
void bhi_graph_name_cycle(const struct bhi_graph *graph, const struct bhi_job_node *cycle,
                          char *out, size_t capacity);
/* Whether |node| needs |needed|, directly or not. Both have ranks. */
bool bhi_graph_reaches(struct bhi_graph *graph, struct bhi_job_node *node,
                       struct bhi_job_node *needed);
bool bhi_graph_is_linked(const struct bhi_graph *graph, const struct bhi_job_node *node,
                         const struct bhi_job_node *needed);
/* Finds all that need |from|, directly or not (|forth|), up to that rank, or all that it needs,
 * down to that rank. They are |seen| by the search with the number that is returned, until the
 * next. */
uint32_t bhi_graph_search(struct bhi_graph *graph, struct bhi_job_node *from, bool forth,
                          uint32_t rank);
/* Forgets all that are not admitted. */
void bhi_graph_truncate(struct bhi_graph *graph);
/* Lets them in, once they have ranks. Those that have no end yet get the state that follows from
 * what they need; a sealed one is WAITING whatever it needs. |changed| is called for each that
 * became WAITING or FAILED by that. */
void bhi_graph_admit(struct bhi_graph *graph,
                     void (*changed)(void *user, const struct bhi_job_node *node), void *user);

/* -- running ------------------------------------------------------------------------------------
 */

/* The next job, RUNNING then; NULL: none at |now_ns|. */
struct bhi_job_node *bhi_graph_take(struct bhi_graph *graph, uint64_t now_ns);
/* A RUNNING one is |next|: WAITING, not before |due_ns| (0: at once), or an end. |changed| is
 * called for each other one that became WAITING or FAILED by that. */
void bhi_graph_end(struct bhi_graph *graph, struct bhi_job_node *node, enum bhi_job_state next,
                   uint64_t due_ns, void (*changed)(void *user, const struct bhi_job_node *node),
                   void *user);
/* Priorities have changed: what may be taken is ordered again. */
void bhi_graph_reorder(struct bhi_graph *graph);
/* How many may be taken at |now_ns|; *out_due_ns is when the next delayed one may be (0: none). */
uint64_t bhi_graph_takeable(const struct bhi_graph *graph, uint64_t now_ns, uint64_t *out_due_ns);

#endif
