/* A job as a node of the graph. The graph owns it; the queue's lock guards it. */
#ifndef BHI_BATCH_GRAPH_NODE_H
#define BHI_BATCH_GRAPH_NODE_H

#include "batch/job/queued.h"

#define BHI_NO_NODE UINT32_MAX

/* A job; its index is its number less one. Nodes do not move. */
struct bhi_job_node {
    struct bhi_job job; /* first: a job that was taken is its node. Owns text and outputs; id is in
                           |ids| */
    enum bhi_job_state state;
    bool started_here;     /* this process has started it */
    bool reopened;         /* it had ended and runs again: its line may have changed */
    bool redo_unrecorded;  /* --redo runs it, and what depends on it, anew */
    bool state_unrecorded; /* loading changed its state, because of another's */
    bool line_unrecorded;  /* its line is not the recorded one */
    uint32_t given; /* while lines are compared: how many came until this one's, itself included */
    uint32_t tried; /* attempts that have a record, started or not, this one among them */
    uint32_t waits; /* dependencies that are not DONE */
    uint32_t needs, needed_by; /* first edge; BHI_NO_EDGE: none */
    uint32_t rank;             /* a job's is greater than that of all it needs */
    uint32_t seen;             /* by the search with this number */
    uint32_t link;             /* the next in a search's list */
    uint32_t origin;           /* index of the job through which it failed; BHI_NO_NODE: none */
    uint64_t due_ns;           /* CLOCK_MONOTONIC; while it is delayed */
};

static inline uint32_t bhi_node_index(const struct bhi_job_node *node) {
    return (uint32_t)(node->job.number - 1);
}

#endif
