/* Buffers: a sealed memfd that is mapped here, or device memory. core/content.h knows which
 * submissions write and read it. */
#ifndef BHI_SUPERVISOR_BUFFER_BUFFER_H
#define BHI_SUPERVISOR_BUFFER_BUFFER_H

#include "core/content.h"
#include "core/handle.h"
#include "supervisor/context/context.h"
#include <bulkhead/array.h>
#include <bulkhead/file.h>

/* The load of a buffer that comes from a file. */
struct bhi_load {
    struct bh_event *event; /* the buffer holds a caller's reference to it */
    /* A load into device memory: the events of its pieces, referenced, in order; |event| is the
     * last. */
    struct bh_event **pieces;
    uint32_t piece_count;
    uint64_t piece_bytes;
    bh_array_info array;
};

/* The memory of a buffer in device memory.
 *
 *   UNMADE ──▶ MAKING ──▶ MADE          STALE ──▶ CLEARING ──▶ MADE
 *      ▲         │                        ▲          │ │
 *      └─────────┘ there is no memory,    └──────────┘ └──▶ MAKING: it cannot be cleared
 *                  or its maker has           the worker has
 *                  died first                 died first
 */
enum bhi_device_state {
    BHI_DEVICE_HOST, /* the driver runs on the processor: the bytes are host memory */
    BHI_DEVICE_UNMADE,
    BHI_DEVICE_MAKING,   /* a worker was asked to make it, and has not answered */
    BHI_DEVICE_STALE,    /* it has what another buffer left behind (pool.h) */
    BHI_DEVICE_CLEARING, /* a worker was asked to clear it, and has not answered */
    BHI_DEVICE_MADE,     /* there is a descriptor, and the content is the buffer's */
    BHI_DEVICE_LEFT,     /* the content has moved, and the memory was given back; from any */
};

struct bhi_block;
struct bhi_make;
struct bhi_outgoing;
struct bhi_worker;

struct bhi_device_memory {
    enum bhi_device_state state; /* lock */
    struct bhi_block *block;     /* lock; owned; NULL: HOST, or it has LEFT */
    struct bhi_make *make;       /* lock; MAKING, CLEARING */
    struct bh_stream *stream;    /* referenced; its worker moves the bytes */
    bool bad; /* lock; MADE: it cannot be imported. What writes the buffer next has it made anew */
    uint64_t charged;    /* bytes that the limits count */
    uint64_t version;    /* lock: id of the newest submission that writes it; 0: none */
    uint64_t written_by; /* lock: that of the newest of a caller; 0: none, or the host */
};

/* A request to a worker to make device memory, or to clear it. */
struct bhi_make {
    struct bhi_list link; /* bhi_worker.makes, in the order of the answers */
    uint64_t buffer;      /* id */
    uint64_t size;
    struct bhi_worker *worker;
    uint32_t control;            /* number of the message */
    bool clears;                 /* it is to be cleared, else made */
    struct bhi_outgoing *second; /* the second request, if the answer is no; NULL: it was sent */
    struct bhi_device_memory *memory; /* NULL: it is not needed any more */
};

struct bh_buffer {
    struct bhi_doomed doomed;   /* first */
    struct bhi_content content; /* lock */
    struct bhi_handle handle;   /* the caller's references: one of refs while there are any */
    _Atomic uint32_t refs;
    bh_context *context; /* referenced */
    /* The block of the pool that is its memory, and whose id, descriptor and pointer it has; NULL:
     * it has its own. */
    struct bhi_block *block;
    bool pooled;
    struct bhi_device_memory *device; /* owned; NULL: host memory */
    struct bh_buffer *place;          /* lock; referenced; NULL: it has not moved */
    struct bh_buffer *owner;          /* lock; whose place it is; NULL: nobody's */
    uint64_t id;
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
    int fd;
    void *pointer;
    bool changeable;             /* lock: others than the loader may write it, or have */
    bool followed;               /* lock: for a moment (harvest.c) */
    bool wrapped;                /* the memory is the caller's (bhi_buffer_wrap) */
    bh_description *description; /* lock; NULL: none */
    struct bhi_load *load;       /* owned; NULL: not from a file */
};

/* The parameters of a new buffer. */
struct bhi_buffer_order {
    const char *call;
    uint64_t size;
    struct bh_stream *stream; /* its worker will use the buffer; NULL: unknown */
    uint32_t flags;
    bool alone;     /* not from the pool: a worker that lives on will write it */
    bool unwritten; /* no worker will write it, nor can one write its memory */
};

/* One reference, which is a caller's. */
bh_status bhi_buffer_create(bh_context *context, const struct bhi_buffer_order *order,
                            struct bh_buffer **out_buffer, bh_detail *detail);
/* Makes a buffer of no other's memory, for |call|. One reference, which is a caller's. */
bh_status bhi_buffer_make(bh_context *context, uint64_t size, const char *call,
                          struct bh_buffer **out_buffer, bh_detail *detail);

/* The same for a transfer by |stream|. The memory may be recycled from the stream's worker and need
 * not be zero. |uploads|: workers will only read it, and none can write its memory. */
bh_status bhi_buffer_make_staging(struct bh_stream *stream, uint64_t size, bool uploads,
                                  const char *call, struct bh_buffer **out_buffer,
                                  bh_detail *detail);
/* Returns true if the buffer is in device memory that this process cannot map. */
static inline bool bhi_buffer_remote(const struct bh_buffer *buffer) {
    return buffer->device && buffer->device->state != BHI_DEVICE_HOST;
}

static inline void bhi_buffer_ref(struct bh_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
}
#define BHI_MAX_BUFFER (1ull << 40)

/* Returns true if the content stays as it was loaded, because only the loader writes the buffer.
 * Once a submission or the host is to write it, this is false for ever. Lock held. */
static inline bool bhi_buffer_constant(const struct bh_buffer *buffer) {
    return buffer->load && !buffer->changeable;
}

/* Makes a buffer whose memory a worker must make or clear; takes |memory| over. NULL: as below. */
struct bh_buffer *bhi_buffer_unmade(struct bhi_device_memory *memory, uint64_t size);
/* Makes a buffer of |fd| and its mapping at |pointer|, which it takes over, with one reference, the
 * caller's. NULL: out of memory, and nothing is taken over. */
struct bh_buffer *bhi_buffer_adopt(bh_context *context, int fd, uint64_t size, void *pointer);
/* Returns true if the machine, and the memory cgroups of this process, have |bytes| left. A
 * reservation of more would not fail, but the OOM killer would kill a process. Always true if
 * |bytes| is small. */
bool bhi_memory_available(uint64_t bytes);
/* An array of nothing, with lanes 1. */
void bhi_description_init(bh_description *description);
/* Takes over and checks the caller's description of the buffer's bytes, for |call|. */
bh_status bhi_description_take(const bh_buffer *buffer, const bh_description *given,
                               const char *call, bh_description *out, bh_detail *detail);
/* Returns how much of a worker's address space the buffer takes while it is attached. */
uint64_t bhi_buffer_attached_bytes(const struct bh_buffer *buffer);
/* Makes a buffer of the caller's memfd, without a copy; |size| 0: all of it. No lock. */
bh_status bhi_buffer_wrap(bh_context *context, int fd, uint64_t size, struct bh_buffer **out_buffer,
                          bh_detail *detail);
void bhi_buffer_unref_locked(struct bh_buffer *buffer); /* lock held */
/* The same; no lock. */
void bhi_buffer_unref(struct bh_buffer *buffer);

/* -- device memory (D1 to D7). Such a buffer remembers the stream that it was made for, which stands
 * for device and tenant, and the bytes that the limits count for it. If the driver runs on the
 * processor, it is host memory, from the pool, but the host gets no pointer to it. --------------- */

/* *out_device: |memory| (bh_memory) means device memory on |stream|. Blocks until the device is
 * known. No lock. */
bh_status bhi_device_memory_resolve(struct bh_stream *stream, uint64_t memory, const char *call,
                                    bool *out_device, bh_detail *detail);
/* As bhi_buffer_create, in memory of the stream's device, which is zero. Returns
 * BH_OUT_OF_DEVICE_MEMORY if a limit is exceeded (D6). No lock. */
bh_status bhi_buffer_make_device(struct bh_stream *stream, uint64_t size, const char *call,
                                 struct bh_buffer **out_buffer, bh_detail *detail);

/* -- moves: a buffer in device memory that a stream on another device writes goes to that device
 * (D4). From then on its content is that of another buffer, its *place*, which nobody else names: a
 * replica (replica.h) that may be written. Submissions that were queued before keep the memory that
 * they were queued for. That is given back when the last of them has ended. Who names the buffer
 * means its place. It is looked up under the lock that the use is queued under. ------------------- */

/* Where the content of |buffer| is. Lock held. */
static inline struct bh_buffer *bhi_buffer_place(struct bh_buffer *buffer) {
    return buffer->place ? buffer->place : buffer;
}
/* The same, with a reference. No lock. */
struct bh_buffer *bhi_buffer_take_place(struct bh_buffer *buffer);
/* |place| has what |buffer| contains, or will when the submissions that are queued for it have
 * ended: the content is there from now on. The caller has references to both. The memory that the
 * content leaves is given back with the last reference but the owner's. Lock held. */
void bhi_buffer_move(struct bh_buffer *buffer, struct bh_buffer *place);

#endif
