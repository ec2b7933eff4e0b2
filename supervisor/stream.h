/* Streams: an ordered queue of submissions, and the worker that serves it.
 *
 *   WANTING ──▶ SERVED ──▶ WANTING …      a worker was bound; it died, another is wanted
 *      │
 *      └──▶ UNAVAILABLE ──▶ WANTING       restart budget spent, or no device; bh_stream_reset
 */
#ifndef BHI_STREAM_H
#define BHI_STREAM_H

#include "context.h"
#include "list.h"
#include "submission.h"
#include <bulkhead/bulkhead.h>

enum bhi_stream_state { BHI_STREAM_WANTING, BHI_STREAM_SERVED, BHI_STREAM_UNAVAILABLE };

struct bh_stream {
    _Atomic uint32_t refs; /* the caller's, and one for each submission on its way */
    bh_context *context;   /* referenced */
    char name[64];
    char device[48];
    uint64_t deadline_ns;
    uint64_t memory_limit;
    _Atomic uint32_t ready_word; /* futex word: changes with state and with the worker's */

    /* lock: */
    struct bhi_list link;         /* context->streams */
    struct bhi_list release_link; /* context->releasable */
    enum bhi_stream_state state;
    struct bhi_list queue;               /* bhi_submission.link, QUEUED, in order */
    struct bhi_worker *worker;           /* referenced; starting or running */
    struct bh_event *failure;            /* referenced: the earliest poisoned one since reset */
    bh_detail trouble;                   /* UNAVAILABLE: why; otherwise the last start's failure */
    struct bhi_msg_device *seen_devices; /* of a worker that could not start: why NO_DEVICE */
    uint32_t seen_device_count;
    uint64_t restart_at_ns; /* WANTING: not before */
    uint32_t failed_starts; /* in a row, for the backoff */
    /* What is left of the restart budget, as time: it refills with the clock up to the window, and
     * an unproductive death costs window / budget. */
    uint64_t credit_ns;
    uint64_t credit_at_ns;
};

void bhi_stream_ended(struct bhi_submission *submission); /* bookkeeping when one ends; lock */
/* Its queue may have become releasable: looked at when the lock is dropped. Lock. */
void bhi_stream_wants_release(struct bh_stream *stream);
/* Moves what can go from the queue into the worker's lane. Lock; not while a submission ends. */
void bhi_stream_pump(struct bh_stream *stream);
void bhi_stream_unref_locked(struct bh_stream *stream);
void bhi_stream_changed(struct bh_stream *stream); /* wakes who waits on ready_word */
/* Around a loop over all streams that ends submissions: a queue that is drained poisons dependents
 * in others, and the last submission of a released stream takes it along. Lock, all the while. */
void bhi_streams_hold(bh_context *context);
void bhi_streams_let_go(bh_context *context);
void bhi_stream_cancel(struct bhi_submission *submission); /* lock */
/* The bound worker is RUNNING. Lock. */
void bhi_stream_served(struct bh_stream *stream);
/* The bound worker is gone. |blame|: a submission was running and has taken the blame; otherwise
 * the death counts against the restart budget. |why| explains a failed start. Lock. */
void bhi_stream_lost_worker(struct bh_stream *stream, bool blame, const bh_detail *why);
/* Poisons what is queued, and what will be, with |why|. Lock. */
void bhi_stream_unavailable(struct bh_stream *stream, const bh_detail *why);
/* Ends everything in the queue with |status|. Lock. */
void bhi_stream_drain(struct bh_stream *stream, bh_status status, const char *message);

#endif
