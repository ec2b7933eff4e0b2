/* The supervisor without a process besides: a context whose reactor has been stopped, zygotes and
 * workers that are structs, and a worker's side of the shared memory that the test writes. Nothing
 * happens unless the test has it happen, in the order in which it says. */
#ifndef BHT_PUPPET_H
#define BHT_PUPPET_H

#include "base/futex.h"
#include "harness.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/burial.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

/* How long any wait may take. */
#define PUPPET_SECONDS (20 * UINT64_C(1000000000) * bht_slowness())

struct puppet {
    bh_context *context;
    struct bhi_zygote *zygote;
    bh_stream *stream;
    bh_buffer *buffer;
};

/* A context with one stream, a zygote that is READY, and a buffer to fill. */
void puppet_open(struct puppet *puppet);
void puppet_close(struct puppet *puppet);
/* Its requested driver is that of all streams. It is never used: it cannot start a worker. */
struct bhi_zygote *puppet_zygote(bh_context *context, enum bhi_zygote_state state);
/* One that could serve |puppet->stream|, in the context and bound to no stream. */
struct bhi_worker *puppet_worker(struct puppet *puppet, enum bhi_life_state state);
/* Its start has come so far. */
void puppet_has_come_to(struct bhi_worker *worker, enum bhi_life_state state);
/* The kernel is seen to end it. */
void puppet_dies(struct bhi_worker *worker);
/* The same as puppet_worker, and bound to it. */
struct bhi_worker *puppet_serving(struct puppet *puppet);
/* Fills |puppet->buffer|. */
bh_event *puppet_submit(struct puppet *puppet);
/* The worker's side of its progress page; puppet_unmap it. */
struct bhi_progress puppet_side(const struct bhi_worker *worker);
/* The worker completes its next |count| submissions. */
void puppet_complete(struct bhi_worker *worker, uint64_t count);
/* It is confirmed dead, and gone. */
void puppet_bury(struct bhi_worker *worker, struct bhi_obituary *obituary);
/* What |event| ended with. */
bh_verdict puppet_verdict(bh_event *event);
/* Sets how the worker's process ended, as its zygote reports it. |code_kind| is a CLD_… */
void puppet_end_process(struct bhi_worker *worker, int code_kind, int status);

#endif
