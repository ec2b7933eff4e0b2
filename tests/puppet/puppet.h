/* The supervisor without a process besides: a context whose reactor has been stopped, zygotes and
 * workers that are structs, and a worker's side of the shared memory that the test writes. Nothing
 * happens unless the test has it happen, in the order in which it says. Each test begins with one,
 * and it is closed after it. */
#ifndef BHT_PUPPET_H
#define BHT_PUPPET_H

#include "base/futex.h"
#include "fixture.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/burial.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <sys/wait.h>

extern struct puppet {
    bh_context *context;
    struct bhi_zygote *zygote; /* READY */
    bh_stream *stream;
    bh_buffer *buffer;            /* to fill */
    struct bhi_obituary obituary; /* of who was buried last */
} puppet;

/* Another one, for the next row of a table: what was made through the API is released. */
void puppet_again(void);
/* |puppet| is a second one, to the end of the test; the first one stays. */
void puppet_beside(void);
/* Runs |begin| in each test, once the puppet is there; and |end| when what the test made through the
 * API has been released. Either may be NULL. To be called at the start (BHT_AT_START). */
void puppet_around(void (*begin)(void), void (*end)(void));
/* What is counted, exposed and withdrawn is what is there. Called when a puppet ends, too. */
void puppet_check(void);
/* A stream that wants a worker. */
bh_stream *puppet_stream(const char *name, const char *tenant);
/* One that could serve |puppet.stream|, in the context and bound to no stream. */
struct bhi_worker *puppet_worker(enum bhi_life_state state);
/* Its start has come so far. */
void puppet_has_come_to(struct bhi_worker *worker, enum bhi_life_state state);
/* It is bound to the stream, and if it runs, serves it. */
void puppet_bind(struct bhi_worker *worker, bh_stream *stream);
/* One that runs and serves |puppet.stream|. */
struct bhi_worker *puppet_serving(void);
/* The kernel is seen to end it. */
void puppet_dies(struct bhi_worker *worker);
/* A block of host memory, or of device memory, and what gets it again. Lock held. */
struct bhi_block *puppet_block(bool on_device, struct bhi_pool_need *out_need);
/* Fills |puppet.buffer|. */
bh_event *puppet_submit(void);
/* The worker's side of its progress page, which is unmapped with the worker. */
struct bhi_progress *puppet_side(struct bhi_worker *worker);
/* The worker has begun this submission. */
void puppet_begins(struct bhi_worker *worker, uint64_t seq);
/* The worker completes its next |count| submissions. */
void puppet_complete(struct bhi_worker *worker, uint64_t count);
/* How the worker's process ended, as its zygote reports it. |code_kind| is a CLD_…; 0: nobody
 * has told. */
void puppet_end_process(struct bhi_worker *worker, int code_kind, int status);
/* It is confirmed dead, and gone; and so is one that |signal| has killed. */
void puppet_bury(struct bhi_worker *worker);
void puppet_killed(struct bhi_worker *worker, int signal);

#endif
