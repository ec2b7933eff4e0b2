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
#include "core/stats.h"
#include "core/submission.h"

enum bhi_stream_state { BHI_STREAM_WANTING, BHI_STREAM_SERVED, BHI_STREAM_UNAVAILABLE };

struct bhi_core_stream {
    struct bhi_core *core;
    char name[64];
    uint64_t compile_deadline_ns; /* of each submission; BH_FOREVER: none */
    uint64_t grace_ns;            /* time to stop after a request; then its worker is killed */
    enum bhi_apart apart;         /* how much a worker may run before it is replaced (T3) */
    bool strict;                  /* once a submission is poisoned, all later ones are (E4) */
    struct bhi_list pump_link;    /* core->pumpable */
    struct bhi_list sweep_link;   /* core->sweeps */
    enum bhi_stream_state state;
    struct bhi_list queue;          /* bhi_submission.link, QUEUED, in order */
    uint64_t queued, in_flight;     /* submissions: QUEUED, RELEASED */
    struct bhi_core_worker *worker; /* bound: starting or running */
    struct bhi_core_worker *dying;  /* the one before, until its death is confirmed; or NULL */
    uint64_t forgiven;              /* events up to this id count as no failure: reset since */
    struct bh_event *failure;       /* referenced: the earliest doomed event since the reset */
    bh_detail trouble;              /* UNAVAILABLE: why; otherwise the last start's failure */
    struct bhi_restart restart;
    uint64_t heals_at_ns;      /* UNAVAILABLE: a submission after this makes it WANTING */
    uint64_t starved_since_ns; /* since when no descriptor was free to start a worker, or 0 */
    struct bhi_stats stats;    /* of its submissions and workers */
    bool bereaved;             /* its last worker died: the next one is a restart */
};

void bhi_stream_init(struct bhi_core_stream *stream, struct bhi_core *core, uint32_t budget,
                     uint64_t window_ns);
void bhi_stream_fini(struct bhi_core_stream *stream); /* all submissions have ended */
/* Binds |worker|. bhi_stream_served follows when it is ready. */
void bhi_stream_bind(struct bhi_core_stream *stream, struct bhi_core_worker *worker);
void bhi_stream_served(struct bhi_core_stream *stream); /* the bound worker is ready */
/* The bound worker dies, or has died, and nobody told it to. */
void bhi_stream_bereaved(struct bhi_core_stream *stream);
/* The bound worker is gone, or none could be started. |blamed|: see bhi_restart_lost. |why|
 * explains a failed start. */
void bhi_stream_lost_worker(struct bhi_core_stream *stream, bool blamed, const bh_detail *why);
/* Others have ended the bound worker, or its zygote, and no submission pays: bhi_restart_taken. */
void bhi_stream_taken_worker(struct bhi_core_stream *stream, const bh_detail *why);
/* No worker could be started, because the process has no free descriptor. This costs no budget. The
 * start is tried again soon; after 400 ms without success the stream is UNAVAILABLE with |why| for
 * one second. */
void bhi_stream_starved(struct bhi_core_stream *stream, const bh_detail *why);
/* Poisons what is queued, and all later submissions, with |why|: until a reset or, with |heals|,
 * until the restart window has passed. */
void bhi_stream_unavailable(struct bhi_core_stream *stream, const bh_detail *why, bool heals);
/* Ends everything in the queue with |status|. */
void bhi_stream_end_queued(struct bhi_core_stream *stream, bh_status status, const char *message);
/* Forgets the failure, and ignores later failures of what was submitted before. Restores the
 * restart budget. An UNAVAILABLE stream is WANTING again; then returns true. */
bool bhi_stream_reset(struct bhi_core_stream *stream);
/* Marks the stream for bhi_core_pump: the head of its queue may be releasable now. */
void bhi_stream_wants_pump(struct bhi_core_stream *stream);
/* Makes an UNAVAILABLE stream WANTING again if heals_at_ns has passed. */
void bhi_stream_heal(struct bhi_core_stream *stream);
/* Cancels all submissions in its queue and lane, the newest first. */
void bhi_stream_cancel(struct bhi_core_stream *stream);
/* |event| of this stream is doomed. Marks a strict stream to be swept: all later submissions fail.
 * The sweep comes after the dependents of |event| are doomed, so that poison by data is reported as
 * such. Both are called only while poison flows (submission.c). */
void bhi_stream_failed(struct bhi_core_stream *stream, struct bh_event *event);
void bhi_stream_sweep(struct bhi_core_stream *stream);
/* Returns the oldest submission that has not ended, or NULL. */
struct bhi_submission *bhi_stream_oldest(const struct bhi_core_stream *stream);

#endif
