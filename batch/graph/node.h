/* A job as a node of the graph. The graph owns it; the queue's lock guards it. */
#ifndef BHI_BATCH_GRAPH_NODE_H
#define BHI_BATCH_GRAPH_NODE_H

#include "batch/job/queued.h"

#define BHI_NO_NODE UINT32_MAX

/* A job. Its index is its number minus one. Nodes do not move. */
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

#endif
