/* Buffers: a sealed memfd mapped here. Who writes and reads it now is the core's to know
 * (core/content.h). */
#ifndef BHI_SUPERVISOR_BUFFER_BUFFER_H
#define BHI_SUPERVISOR_BUFFER_BUFFER_H

#include "core/content.h"
#include "core/handle.h"
#include "supervisor/context/context.h"

/* What a buffer that comes from a file remembers of that. */
struct bhi_load {
    struct bh_event *event; /* with one of the caller's references, which is the buffer's */
    /* Into device memory: the ends of its pieces, referenced, in order; |event| is the last. */
    struct bh_event **pieces;
    uint32_t piece_count;
    uint64_t piece_bytes;
    bh_array_info array;
};

/* What a buffer in device memory has beside its bytes (device_memory.h).
 *
 *   UNMADE ──▶ MAKING ──▶ MADE
 *      ▲         │
 *      └─────────┘ there is no memory, or its maker has died first
 */
enum bhi_device_state {
    BHI_DEVICE_HOST, /* the driver runs on the processor: the bytes are host memory */
    BHI_DEVICE_UNMADE,
    BHI_DEVICE_MAKING, /* a worker has been told to, and has not answered */
    BHI_DEVICE_MADE,   /* the descriptor is here */
};

struct bhi_make;
struct bhi_worker;

struct bhi_device_memory {
    enum bhi_device_state state; /* lock */
    int fd;                      /* lock; MADE: owned, and only handed on; else -1 */
    struct bhi_make *make;       /* lock; MAKING */
    struct bh_stream *stream;    /* referenced; whose worker moves its bytes */
    uint64_t charged;            /* bytes that the limits count */
    uint64_t version;            /* lock: id of the newest submission that writes it; 0: none */
};

/* Device memory that a worker has been told to make. */
struct bhi_make {
    struct bhi_list link; /* bhi_worker.makes, in the order of the messages */
    uint64_t buffer;      /* id */
    struct bhi_worker *worker;
    uint32_t control;                 /* number of the message */
    struct bhi_device_memory *memory; /* NULL: nobody wants it any more */
};

struct bh_buffer {
    struct bhi_doomed doomed;   /* first */
    struct bhi_content content; /* lock */
    struct bhi_handle handle;   /* the caller's references: one of refs while there are any */
    _Atomic uint32_t refs;
    bh_context *context; /* referenced */
    /* Where its memory comes from; NULL: it is the buffer's own. What follows is the same in both
     * cases: the block's, or the buffer's. */
    struct bhi_block *block;
    bool pooled;
    struct bhi_device_memory *device; /* owned; NULL: host memory */
    uint64_t id;
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
    int fd;
    void *pointer;
    bool changeable;             /* lock: others than a loader may write it, or have */
    bool wrapped;                /* the memory is the caller's (bh_buffer_wrap_memfd) */
    bh_description *description; /* lock; NULL: none */
    struct bhi_load *load;       /* owned; NULL: not from a file */
};

/* What it takes to make a buffer. */
struct bhi_buffer_order {
    const char *call;
    uint64_t size;
    struct bh_stream *stream; /* whose worker is going to use it; NULL: nobody knows */
    uint32_t flags;
    bool alone; /* not of the pool: a worker that lives on is going to write it, whoever uses it */
};

/* One reference, which is a caller's. */
bh_status bhi_buffer_create(bh_context *context, const struct bhi_buffer_order *order,
                            struct bh_buffer **out_buffer, bh_detail *detail);
/* bh_buffer_create, for |call|. One reference, which is a caller's. */
bh_status bhi_buffer_make(bh_context *context, uint64_t size, const char *call,
                          struct bh_buffer **out_buffer, bh_detail *detail);

/* The same with memory that was the stream's worker's, or is now: it is reached from the start, and
 * need not be zero. */
bh_status bhi_buffer_make_for(struct bh_stream *stream, uint64_t size, const char *call,
                              struct bh_buffer **out_buffer, bh_detail *detail);
/* Is its memory the device's alone, so that nobody here can map it? */
static inline bool bhi_buffer_remote(const struct bh_buffer *buffer) {
    return buffer->device && buffer->device->state != BHI_DEVICE_HOST;
}

static inline void bhi_buffer_ref(struct bh_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
}
#define BHI_MAX_BUFFER (1ull << 40)

/* Whether its content, once it is there, stays as it is: a loaded one that nobody else writes. Lock
 * held. It can end, at a submission's or the host's wish; it never begins again. */
static inline bool bhi_buffer_constant(const struct bh_buffer *buffer) {
    return buffer->load && !buffer->changeable;
}

/* A buffer in memory that a worker has to make: takes |memory| over. NULL: as below. */
struct bh_buffer *bhi_buffer_unmade(struct bhi_device_memory *memory, uint64_t size);
/* A buffer of |fd| and its mapping at |pointer|, which it takes over, with one reference of the
 * caller's. NULL: out of memory, and nothing is taken. */
struct bh_buffer *bhi_buffer_adopt(bh_context *context, int fd, uint64_t size, void *pointer);
/* How much of a worker's address space it takes where it is attached. */
uint64_t bhi_buffer_attached_bytes(const struct bh_buffer *buffer);
void bhi_buffer_unref_locked(struct bh_buffer *buffer); /* lock held */

#endif
