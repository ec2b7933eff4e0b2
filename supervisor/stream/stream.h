/* Streams of the host. Their queue, failure and restarts are in core/stream.h. */
#ifndef BHI_SUPERVISOR_STREAM_STREAM_H
#define BHI_SUPERVISOR_STREAM_STREAM_H

#include "base/kernel_format.h"
#include "base/worker_kind.h"
#include "core/handle.h"
#include "core/stream.h"
#include "supervisor/context/context.h"

#define BHI_ANY_DEVICE "any" /* of bh_stream_options.device */

struct bhi_tenant;
struct bhi_worker;

/* The device of the stream's workers, once one has reported it. */
struct bhi_stream_device {
    bool known;
    bool is_cpu, is_discrete;
    uint64_t features; /* BHI_FEATURE_* */
    uint8_t uuid[16];
    char selector[48];
    char name[128];
};

struct bh_stream {
    struct bhi_core_stream core; /* lock */
    struct bhi_handle handle;    /* the caller's references: one of refs while there are any */
    _Atomic uint32_t refs;       /* and one for each submission that has not ended */
    bh_context *context;         /* referenced */
    char device[48];             /* its selector; lock, if it may run on any */
    char tenant[BHI_TENANT];
    uint32_t number; /* of the caller's streams, from 1; 0: it is the library's own */
    uint64_t deadline_ns;
    uint64_t memory_limit;
    uint32_t processor;          /* of its workers, plus 1; 0: all */
    uint32_t nice;               /* of its workers */
    enum bhi_worker_kind kind;   /* not BHI_WORKER_DEVICE: the library's own */
    _Atomic uint32_t ready_word; /* futex word: changes with state and with the worker's */

    /* lock: */
    struct bhi_list link;                /* context->streams */
    struct bhi_tenant *owner;            /* NULL: it is the library's own */
    struct bhi_list of_owner;            /* owner->streams */
    struct bhi_list loader;              /* context->loaders, of a loader */
    bool headers_only;                   /* of a loader: no data is read there */
    struct bhi_msg_device *seen_devices; /* of a worker that could not start, for NO_DEVICE */
    uint32_t seen_device_count;
    uint32_t awaited;     /* threads in bh_stream_wait_ready */
    bool anywhere;        /* its options say "any" (supervisor/stream/placement.h) */
    bool placed;          /* |device| says where it runs */
    uint64_t chaos_draws; /* submissions for which chaos has drawn */
    uint64_t usual_ns;    /* usual time of a submission on a device, by its reports */
    struct bhi_stream_device runs_on;
    uint64_t device_memory_limit, device_memory; /* of its buffers (D6) */
    uint64_t
        context_bytes; /* what its workers' own contexts count as, within that limit; constant */
};

static inline struct bh_stream *bhi_stream_of(const struct bhi_core_stream *core) {
    return BHI_CONTAINER(core, struct bh_stream, core);
}
/* Returns true if the stream has no worker, and needs none before it has work. Lock held. */
bool bhi_stream_rests(const struct bh_stream *stream);
/* The worker that is bound to it, starting or running; NULL: none. Referenced by the stream. */
struct bhi_worker *bhi_stream_worker(const struct bh_stream *stream);
/* Returns true if the stream's device is known, and its memory can be shared between processes.
 * Lock held. */
bool bhi_stream_shares_memory(const struct bh_stream *stream);
/* Returns false if kernels of that format cannot run on the stream: its driver is another one. True,
 * too, while the driver is not known; then the worker refuses them. Lock held. */
bool bhi_stream_may_run(const struct bh_stream *stream, enum bhi_kernel_format format);
/* |worker|, which will serve the stream, has reported its device. Lock held. */
void bhi_stream_learn_device(struct bh_stream *stream, const struct bhi_worker *worker);
/* REPLICA: it may read a copy. MOVED: it may use the memory once the buffer has moved there. */
enum bhi_may_use { BHI_USE_NO, BHI_USE_REPLICA, BHI_USE_MOVED, BHI_USE_IT };
/* Returns how a submission of |stream| may use device memory that was made for |home| (D4). Unless
 * it may use it as it is, |why| says what forbids it. It may while a device is not known. Lock
 * held. */
enum bhi_may_use bhi_stream_may_use(struct bh_stream *stream, struct bh_stream *home, bool writes,
                                    char *why, size_t size);
/* Waits until the device of the stream's workers is known. Blocks, as bh_stream_wait_ready does;
 * details begin with |call|. No lock. */
bh_status bhi_stream_await_device(struct bh_stream *stream, const char *call, bh_detail *detail);
/* bh_stream_create without its checks of the arguments. The stream has one reference and no handle.
 * |kind|: of its workers. */
bh_status bhi_stream_make(bh_context *context, const bh_stream_options *options,
                          enum bhi_worker_kind kind, struct bh_stream **out_stream,
                          const char *call, bh_detail *detail);
static inline void bhi_stream_ref(struct bh_stream *stream) {
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
}
void bhi_stream_unref_locked(struct bh_stream *stream);
void bhi_stream_unref(struct bh_stream *stream);   /* NULL is fine; no lock */
void bhi_stream_changed(struct bh_stream *stream); /* wakes the threads that wait on ready_word */
/* Called before and after a loop over all streams that ends submissions, with the lock held all the
 * while. Dependents on other streams end, too, and the last submission of a released stream would
 * free it. */
void bhi_streams_hold(bh_context *context);
void bhi_streams_let_go(bh_context *context);

#endif
