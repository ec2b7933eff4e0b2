/* Streams: an ordered queue of submissions, and the worker that serves it.
 *
 *   WANTING ──▶ SERVED ──▶ WANTING …      a worker was bound; it died, another is wanted
 *      │
 *      └──▶ UNAVAILABLE ──▶ WANTING       restart budget spent, or no device; reset, or the
 *                                         restart window has passed since
 */
#ifndef BHI_CORE_STREAM_H
#define BHI_CORE_STREAM_H

#include "core/core.h"
#include "core/restart.h"
#include "core/submission.h"

enum bhi_stream_state { BHI_STREAM_WANTING, BHI_STREAM_SERVED, BHI_STREAM_UNAVAILABLE };

struct bhi_core_stream {
    struct bhi_core *core;
    char name[64];
    uint64_t compile_deadline_ns; /* of each submission; BH_FOREVER: none */
    uint64_t grace_ns;    /* to end what runs when it is told to; then its worker is killed */
    enum bhi_apart apart; /* how much a worker may run before it is replaced (T3) */
    bool strict;          /* once one is poisoned, so is all that was submitted after it (E4) */
    struct bhi_list pump_link;  /* core->pumpable */
    struct bhi_list sweep_link; /* core->sweeps */
    enum bhi_stream_state state;
    struct bhi_list queue;          /* bhi_submission.link, QUEUED, in order */
    struct bhi_core_worker *worker; /* bound: starting or running */
    uint64_t forgiven;        /* nothing up to this id counts as a failure: it was reset since */
    struct bh_event *failure; /* referenced: the earliest doomed one since reset */
    bh_detail trouble;        /* UNAVAILABLE: why; otherwise the last start's failure */
    struct bhi_restart restart;
    uint64_t heals_at_ns;      /* UNAVAILABLE: a submission from then on is given a chance */
    uint64_t starved_since_ns; /* no worker was started for want of descriptors since; 0: one was */
};

void bhi_stream_init(struct bhi_core_stream *stream, struct bhi_core *core, uint32_t budget,
                     uint64_t window_ns);
void bhi_stream_fini(struct bhi_core_stream *stream); /* nothing may be on its way */
/* |worker| serves it from now on, once bhi_stream_served says so. */
void bhi_stream_bind(struct bhi_core_stream *stream, struct bhi_core_worker *worker);
void bhi_stream_served(struct bhi_core_stream *stream); /* the bound worker is ready */
/* The bound worker is gone, or could not be had. |blamed|: see bhi_restart_lost. |why| explains a
 * failed start. */
void bhi_stream_lost_worker(struct bhi_core_stream *stream, bool blamed, const bh_detail *why);
/* No worker was started: the process has no descriptors left. Nothing is charged: it is tried again
 * soon, and when that has gone on for 400 ms the stream is UNAVAILABLE with |why| for a second. */
void bhi_stream_starved(struct bhi_core_stream *stream, const bh_detail *why);
/* Poisons what is queued, and what will be, with |why|. |heals|: until the restart window has
 * passed; otherwise until reset. */
void bhi_stream_unavailable(struct bhi_core_stream *stream, const bh_detail *why, bool heals);
/* Ends everything in the queue with |status|. */
void bhi_stream_end_queued(struct bhi_core_stream *stream, bh_status status, const char *message);
/* Forgets the failure, also those to come of what was submitted before, and is WANTING again if it
 * was UNAVAILABLE. True: it was. */
bool bhi_stream_reset(struct bhi_core_stream *stream);
/* Its queue may have become releasable: bhi_core_pump looks. */
void bhi_stream_wants_pump(struct bhi_core_stream *stream);
/* UNAVAILABLE, but the restart window has passed: WANTING again. */
void bhi_stream_heal(struct bhi_core_stream *stream);
/* Cancels all that is on its way, the newest first. */
void bhi_stream_cancel(struct bhi_core_stream *stream);
/* |event| of this stream is doomed. A strict stream is swept then, once all that depends on it has
 * been told: poison by data is reported as such. Both while poison flows (submission.c). */
void bhi_stream_failed(struct bhi_core_stream *stream, struct bh_event *event);
void bhi_stream_sweep(struct bhi_core_stream *stream);
/* The oldest that is still on its way, or NULL. */
struct bhi_submission *bhi_stream_oldest(const struct bhi_core_stream *stream);

#endif
