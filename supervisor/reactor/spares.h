/* Spares: warm workers without a stream, for each device and memory limit that streams use.
 *
 *   starting ──▶ untold ──told a kernel──▶ learns ──▶ knows it ──told the next──▶ learns …
 *                  │                                     │
 *                  ▼                                     ▼
 *               any stream                       a stream of its tenant
 *
 * A spare learns the kernels that one tenant uses most on its device (kernel/usage.h): it compiles
 * them. From the first one on it serves that tenant alone (T1), and they are its past (T2). While
 * there are several tenants, or streams that keep kernels apart, one spare stays untold. */
#ifndef BHI_SUPERVISOR_REACTOR_SPARES_H
#define BHI_SUPERVISOR_REACTOR_SPARES_H

#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

/* Returns true if the worker could serve a stream that has none. Lock held. */
bool bhi_spare_is_free(const struct bhi_worker *worker);
/* Returns true if no other spare is started in its place: it is free, or it died while it started,
 * and the pause that follows begins with its burial. Lock held. */
bool bhi_spare_has_place(const struct bhi_worker *worker);
/* Returns true if kind, device, memory limit, processor and nice level are those of |stream|. Lock
 * held. */
bool bhi_spare_is_like(const struct bhi_worker *worker, const struct bh_stream *stream);
/* Is a worker that is like one stream like the other, too? Lock held. */
bool bhi_spare_serves_both(const struct bh_stream *a, const struct bh_stream *b);
/* Returns the spare that |stream| is to have: a ready one rather than one that starts; of several
 * the one that knows most of its kernels. NULL: none. Lock held. */
struct bhi_worker *bhi_spares_choose(bh_context *context, const struct bh_stream *stream);
/* A spare that could serve |stream| learns a kernel. Returns until when that is worth waiting for;
 * 0: there is none. Lock held. */
uint64_t bhi_spares_patience(const bh_context *context, const struct bh_stream *stream);
/* Returns a stream for which a spare should be started; NULL: there are enough. Lock held. */
const struct bh_stream *bhi_spares_wanted(bh_context *context);
/* A stream has lost a worker and goes on with another: no spare is started for 20 ms, because that
 * would keep the processors and the reactor from the stream's first job. At least 80 ms lie between
 * two such pauses, so that streams which lose workers all the time do not keep others from having
 * spares. Lock held. */
void bhi_spares_make_way(bh_context *context, uint64_t now_ns);
/* |worker| is about to be buried: makes way if it served a stream. If it died while it started, had
 * none and was still wanted, no spare is started for a second. Lock held. */
void bhi_spares_worker_gone(struct bhi_worker *worker, uint64_t now_ns);
/* Tells spares what to learn, and gives up those that serve nobody. Returns when to look again.
 * Lock held. */
uint64_t bhi_spares_turn(bh_context *context, uint64_t now_ns);

#endif
