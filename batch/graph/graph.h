/* The jobs of a batch in memory: what each job waits for, which is next, and which fail with
 * another.
 *
 * It uses no locks and no disk; the queue does. A function fails only if its comment says so:
 * memory was reserved when the job was appended. */
#ifndef BHI_BATCH_GRAPH_GRAPH_H
#define BHI_BATCH_GRAPH_GRAPH_H

#include "batch/graph/names.h"
#include "batch/job/queued.h"

#define BHI_NO_EDGE UINT32_MAX
#define BHI_NO_NODE UINT32_MAX

/* A job as a node. The graph owns it; the queue's lock guards it. Its index is its number minus
 * one. Nodes do not move. */
struct bhi_job_node {
    struct bhi_job job; /* first: a taken job is its node. Owns text and outputs; id is in |ids| */
    enum bhi_job_state state;
    bool started_here;     /* this process has started the job */
    bool reopened;         /* it had ended and runs again, so its line may be changed */
    bool redo_unrecorded;  /* --redo runs it again, or it depends on such a job */
    bool state_unrecorded; /* loading changed its state because of another job */
    bool line_unrecorded;  /* its line differs from the recorded one */
    uint32_t given; /* while lines are compared: its place among them, from 1; 0: not given */
    uint32_t tried; /* recorded attempts, also those that did not start, with the current one */
    uint32_t waits; /* dependencies that are not DONE */
    uint32_t needs, needed_by; /* first edge; BHI_NO_EDGE: none */
    uint32_t rank;             /* greater than the rank of everything it needs */
    uint32_t seen;             /* the number of the last search that reached it */
    uint32_t link;             /* the next node in a search's list */
    uint32_t origin;           /* index of the job whose failure made it fail; BHI_NO_NODE: none */
    uint64_t due_ns;           /* CLOCK_MONOTONIC, while it is delayed */
};

static inline uint32_t bhi_node_index(const struct bhi_job_node *node) {
    return (uint32_t)(node->job.number - 1);
}

struct bhi_job_edge {
    uint32_t node; /* the node at its other end */
    uint32_t next; /* the next edge of this node, which is older */
};

/* A heap of job nodes; the first is the next to run. Its owner reserves the room, so a push cannot
 * fail. */
struct bhi_heap {
    /* Does |a| come out before |b|? */
    bool (*is_before)(const struct bhi_job_node *a, const struct bhi_job_node *b);
    struct bhi_job_node **nodes; /* owned by the graph */
    size_t capacity;
    size_t count;
};

struct bhi_graph {
    struct bhi_names ids; /* number of an id = index of the node */
    struct bhi_job_node **chunks;
    size_t chunk_capacity;
    uint32_t count, capacity;
    uint32_t admitted;          /* nodes from here on are being added; |of| omits them */
    struct bhi_job_edge *edges; /* owned; pairs: to what is needed, then back */
    uint32_t edge_count;
    size_t edge_capacity;
    uint32_t searches, ranks;
    uint32_t *order;         /* of the nodes that are being added, by rank; owned */
    struct bhi_heap ready;   /* may be taken: sealed jobs first, then by priority */
    struct bhi_heap delayed; /* by |due_ns| */
    uint64_t of[BHI_JOB_STATES];
};

void bhi_graph_init(struct bhi_graph *graph);
void bhi_graph_fini(struct bhi_graph *graph);

struct bhi_job_node *bhi_graph_node(const struct bhi_graph *graph, uint32_t index);
/* Returns NULL if there is none. */
struct bhi_job_node *bhi_graph_find(const struct bhi_graph *graph, const char *id);

/* -- adding: append, link, rank; then admit, or truncate ------------------------------------- */

/* Copies the texts. The node is SUBMITTED and not admitted. Returns NULL if out of memory. */
struct bhi_job_node *bhi_graph_append(struct bhi_graph *graph, const char *id, const char *text);
/* Records that |node| needs |needed|. Returns false if out of memory. */
bool bhi_graph_link(struct bhi_graph *graph, struct bhi_job_node *node,
                    struct bhi_job_node *needed);
/* Ranks all nodes that are not admitted. Returns false if some need each other in a circle:
 * *out_cycle is the first node of one; or if out of memory: *out_cycle is NULL. */
bool bhi_graph_rank(struct bhi_graph *graph, struct bhi_job_node **out_cycle);
/* Writes the circle that bhi_graph_rank found as "a -> b -> a": each needs the next. If it does not
 * fit into |capacity|, which is at least 600, cuts it and says how much is missing. */
void bhi_graph_name_cycle(const struct bhi_graph *graph, const struct bhi_job_node *cycle,
                          char *out, size_t capacity);
/* Does |node| need |needed|, directly or not? Both must have ranks. */
bool bhi_graph_reaches(struct bhi_graph *graph, struct bhi_job_node *node,
                       struct bhi_job_node *needed);
bool bhi_graph_is_linked(const struct bhi_graph *graph, const struct bhi_job_node *node,
                         const struct bhi_job_node *needed);
/* Finds all nodes that need |from|, directly or not (|forth|), up to |rank|; or all that it needs,
 * down to |rank|. Marks them: their |seen| is the returned number until the next search. */
uint32_t bhi_graph_search(struct bhi_graph *graph, struct bhi_job_node *from, bool forth,
                          uint32_t rank);
/* Removes all nodes that are not admitted. */
void bhi_graph_truncate(struct bhi_graph *graph);
/* Admits them, after they have ranks. A job that has not ended gets the state that follows from
 * what it needs; a sealed one is WAITING in any case. Calls |changed| for each that thereby became
 * WAITING or FAILED. */
void bhi_graph_admit(struct bhi_graph *graph,
                     void (*changed)(void *user, const struct bhi_job_node *node), void *user);

/* -- running --------------------------------------------------------------------------------- */

/* Takes the next job, which is then RUNNING. Returns NULL if there is none at |now_ns|. */
struct bhi_job_node *bhi_graph_take(struct bhi_graph *graph, uint64_t now_ns);
/* Gives a RUNNING job the state |next|: WAITING, but not before |due_ns| (0: at once), or an end.
 * Calls |changed| for each other job that thereby became WAITING or FAILED. */
void bhi_graph_end(struct bhi_graph *graph, struct bhi_job_node *node, enum bhi_job_state next,
                   uint64_t due_ns, void (*changed)(void *user, const struct bhi_job_node *node),
                   void *user);
/* Sorts the jobs that may be taken, after priorities have changed. */
void bhi_graph_reorder(struct bhi_graph *graph);
/* Returns how many jobs may be taken at |now_ns|; *out_due_ns is when the next delayed one is due
 * (0: none). */
uint64_t bhi_graph_takeable(const struct bhi_graph *graph, uint64_t now_ns, uint64_t *out_due_ns);

#endif
