/* A submission on its way, and the graph of what it depends on.
 *
 *   QUEUED ──▶ RELEASED ──▶ ENDED
 *     │  ▲        │           ▲
 *     │  └────────┘ its worker died before it started (E13)
 *     └───────────────────────┘ poisoned or cancelled before it was released
 *
 * QUEUED: in stream->queue, in order. RELEASED: in worker->inflight, published in its lane.
 */
#ifndef BHI_SUBMISSION_H
#define BHI_SUBMISSION_H

#include "lane.h"
#include "list.h"
#include <bulkhead/bulkhead.h>

struct bhi_worker;

/* "consumer needs producer". In producer->dependents until the producer ends. */
struct bhi_edge {
    struct bhi_list link;
    struct bh_event *producer; /* referenced */
    struct bhi_submission *consumer;
    bool data; /* poison flows along it; otherwise it only orders (write after read) */
    bool hold; /* other stream: the consumer is not released before the producer has ended */
};

/* A buffer that a submission uses, all its commands together. */
struct bhi_use {
    struct bh_buffer *buffer; /* referenced (B2) */
    bool reads;               /* before this submission has overwritten it whole */
    bool writes;
    bool overwrites; /* a command writes the whole of it without reading it first */
};

enum bhi_submission_state { BHI_QUEUED, BHI_RELEASED, BHI_ENDED };

/* All fields: lock. */
struct bhi_submission {
    struct bhi_list link;
    enum bhi_submission_state state;
    struct bh_stream *stream;  /* referenced */
    struct bh_event *event;    /* referenced */
    struct bhi_worker *worker; /* RELEASED: whose lane it is in */
    uint64_t deadline_ns;      /* relative, BH_FOREVER: none */
    uint64_t released_ns;
    uint32_t holds; /* unresolved edges with hold */
    bool cancelled; /* asked for */
    bool notify;    /* somebody needs the reactor to notice its end */
    struct bhi_edge *edges;
    uint32_t edge_count, edge_capacity;
    struct bhi_use *uses;
    uint32_t use_count, use_capacity;
    struct bh_kernel **kernels; /* referenced, distinct */
    uint32_t kernel_count, kernel_capacity;
    struct bhi_lane_record *record;
    uint64_t record_capacity;
};

void bhi_submission_free(struct bhi_submission *submission); /* never queued; drops what it holds */

/* What ended a submission, as far as its own worker and commands go. */
struct bhi_outcome {
    bh_status status;
    bh_executed executed;
    int32_t signal, exit_code, vk_result, sys_errno;
    uint32_t command_index;
    int32_t worker_pid;
    uint64_t limit;
    uint64_t started_ns, ended_ns;
    uint64_t origin; /* 0: itself; otherwise the event whose fault killed the worker */
    const char *message;
};
#define BHI_OUTCOME_INIT                                                                           \
    { .exit_code = -1, .command_index = BH_NO_COMMAND }

/* The graph. Lock held. These end the submission (event published, buffers, kernels and edges
 * dropped, list left) and everything downstream of it that is now certain to be poisoned. */
void bhi_submission_end(struct bhi_submission *submission, const struct bhi_outcome *outcome);
/* Ends one that never started, with |status| (or its producers' poison, if they have any).
 * |worker_pid|: in whose lane it was; 0: in none. */
void bhi_submission_end_unstarted(struct bhi_submission *submission, bh_status status,
                                  const char *message, int32_t worker_pid);
#define BHI_CANCELLED_UNSTARTED "cancelled before it started"
/* Adds "|consumer| needs |producer|"; nothing to do when that has ended well. Returns false when
 * out of memory. */
bool bhi_submission_depend(struct bhi_submission *consumer, struct bh_event *producer, bool data);
/* The reactor must notice the end of |submission| without anybody waiting for it. */
void bhi_submission_notify(struct bhi_submission *submission);
/* The poisoned data dependency with the earliest origin, or NULL; counts the others (E7). */
struct bh_event *bhi_submission_poisoned_by(const struct bhi_submission *submission,
                                            uint32_t *out_others);
struct bh_kernel *bhi_submission_kernel(const struct bhi_submission *submission,
                                        uint32_t command_index);

#endif
