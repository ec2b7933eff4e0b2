/* Buffers: memory that the host and its workers share without copies. */
#ifndef BULKHEAD_BUFFER_H
#define BULKHEAD_BUFFER_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the memory of a buffer is (D1). */
typedef enum bh_memory {
    BH_MEMORY_HOST = 0,   /* in the host: it has a pointer (bh_buffer_map), and devices reach it */
    BH_MEMORY_DEVICE = 1, /* on the device of the buffer's stream: no pointer; the host reads and
                             writes it by copies, or on a CUDA device maps it (cuda.h). On a driver
                             that runs on the processor this is host memory, with the same rules */
    BH_MEMORY_AUTO = 2,   /* DEVICE if the stream's device is a discrete GPU that can share its
                             memory; HOST otherwise, and without a stream */
} bh_memory;

/* Bits of bh_buffer_options.flags. */
typedef enum bh_buffer_flags {
    /* The buffer need not be zero. Memory keeps its old bytes if the live worker of |stream| alone
     * has had it, for buffers that were all made for |stream|; all other memory, and all memory if
     * no stream is given, is zero. */
    BH_BUFFER_UNINITIALIZED = 1,
} bh_buffer_flags;

/* How to create a buffer. */
typedef struct bh_buffer_options {
    size_t struct_size; /* sizeof(bh_buffer_options) */
    bh_stream *stream;  /* the stream that will use the buffer most; NULL: not known. The buffer
                           keeps a reference to it only if it is in device memory */
    uint32_t flags;     /* bh_buffer_flags */
    uint64_t memory;    /* bh_memory; default BH_MEMORY_HOST. DEVICE needs |stream| */
    const struct bh_file_source *file; /* the content is loaded from this file (file.h); NULL: the
                                          content is zero */
    const int *memfd; /* the memory is this memfd of the caller's, in the host (below); NULL: the
                         library's own. Not with |file| */
} bh_buffer_options;

/* Creates a buffer of |size| bytes. |options| may be NULL. Without |options->file| and
 * |options->memfd| its content is zero (0 bytes are legal); |size| 0 stands for all of the file's
 * array, and for all of the memfd.
 *
 * Memory of the host is a sealed memfd, mapped in the host and imported by workers (B1). It is
 * reserved now, so that touching it cannot fault; this takes about 1 ms a MiB. The buffer survives
 * the death of a worker. The death poisons the content that the worker was to write (B5).
 *
 * A worker that was given memory can reach that memory until the worker is confirmed dead. So
 * memory that a live worker has had is reused only for that worker: a buffer with a stream may get
 * memory that the stream's present worker had before, which saves page faults and an import. A loop
 * that creates, binds and releases buffers should give the stream; otherwise each round gets fresh
 * memory.
 *
 * A buffer with a stream can be bound on every stream. But |stream|'s worker may reach the memory
 * as soon as the buffer exists: it can read, and possibly change, what the host or another stream
 * writes there.
 *
 * Device memory. It belongs to the device and the tenant of |stream|, whose worker copies for
 * bh_buffer_read and bh_buffer_write. Streams of the same tenant and device share the buffer
 * without a copy. Streams of other tenants or devices read a copy, which is made once for each
 * change of the buffer and counts against the limits of the stream that reads; bh_submit returns
 * BH_OUT_OF_DEVICE_MEMORY if the copy exceeds them. Streams of other tenants cannot write the
 * buffer. If a stream of the same tenant writes it on another device, the buffer moves there with
 * the submission: it belongs to that stream then, as if it had been created for it. Neither the
 * copy nor the move blocks the host. The library takes a stream whose device is not known yet to be
 * on the buffer's device. If the stream then runs on another one, its submission ends
 * BH_BINDING_MISMATCH: call bh_stream_wait_ready first. The first call for a device, also with
 * AUTO, waits until a worker has reported what the device is (as bh_stream_wait_ready does).
 *
 * A memfd. Its bytes are the content (CLEAN), without a copy. |size| is at most the memfd's size,
 * and the last byte must be in the last page of the memfd. The descriptor stays the caller's, to
 * use and to close; the buffer has its own. The memfd must be open for reading and writing, and not
 * sealed against writing. It must be sealed against shrinking, growing and further seals
 * (F_SEAL_SHRINK, _GROW, _SEAL), or allow the library to add these seals (MFD_ALLOW_SEALING). A
 * call that fails may have added them. Holes are filled. The memfd's write permission is removed,
 * so that a worker which may only read it cannot reopen it for writing through /proc; existing
 * descriptors and mappings keep their access. A worker writes it only in submissions that bind it
 * for writing. The caller may write it through the buffer, its descriptor or its mappings while no
 * submission uses it. The library does not see writes through the descriptor or the caller's own
 * mappings, and does not wait for them: such a write does not make poisoned content CLEAN. A
 * punched hole reads as zeros. Two buffers of one memfd are independent: neither waits for the
 * other.
 *
 * Blocks for the time that the memory takes, and as bh_file_source and device memory say. Returns
 * BH_OK, BH_CLOSED, BH_SYSTEM (also: the memfd is another user's), what bh_file_source lists, what
 * bh_stream_wait_ready returns if the call waits, or
 *   BH_NO_MEMORY             more than the machine has available
 *   BH_TOO_LARGE             over 1 TiB
 *   BH_INVALID_ARGUMENT      not a memfd (a file, a pipe, POSIX shared memory), a read-only or
 *                            closed descriptor, missing seals that cannot be added, seals that
 *                            forbid writing, or a |size| that does not fit the memfd
 *   BH_OUT_OF_DEVICE_MEMORY  more than bh_stream_options.device_memory or that of the context
 *   BH_UNSUPPORTED           the device cannot share its memory between processes
 *   BH_IN_CALLBACK           it would have to wait in a callback */
BH_API BH_MUST_USE bh_status bh_buffer_create(bh_context *context, uint64_t size,
                                              const bh_buffer_options *options,
                                              bh_buffer **out_buffer, bh_detail *detail);

/* What the caller does with a mapping. Content is CLEAN (good), PENDING (being written) or POISONED
 * (B5). */
typedef enum bh_map_intent {
    BH_MAP_READ = 1,       /* reads: waits for the last writer; poisoned content is refused (B5). Do
                              not write there: workers may not see what you write */
    BH_MAP_READ_WRITE = 3, /* reads and writes: waits for writers and readers; poisoned content is
                              refused */
    BH_MAP_DISCARD = 2,    /* overwrites all of it: waits for writers and readers; the content is
                              CLEAN afterwards */
} bh_map_intent;

/* Gives a pointer to the content of a buffer in host memory. Waits as |intent| says, at most
 * |timeout_ns|. *out_pointer is page aligned, and valid while the buffer exists; an empty buffer
 * has a pointer, too. There is no unmap. Later submissions do not wait for the caller. Before you
 * use the pointer after such a submission, map the buffer again: the call waits for the submission
 * and copies nothing. Blocks. Returns BH_OK, BH_TIMEOUT, the verdict's code if the content is
 * poisoned, or BH_INVALID_ARGUMENT if the buffer is in device memory. */
BH_API BH_MUST_USE bh_status bh_buffer_map(bh_buffer *buffer, bh_map_intent intent,
                                           uint64_t timeout_ns, void **out_pointer,
                                           bh_detail *detail);
/* Waits as BH_MAP_READ does, and copies |size| bytes from |offset| to |out_bytes|. |size| must not
 * be BH_WHOLE_SIZE. Blocks. If the buffer is in device memory, the worker of its stream copies
 * pieces of 2 MiB, four at a time, through host memory; each piece waits for its turn on the
 * stream. The pool keeps that memory for the next transfer (bh_context_trim). If a piece fails,
 * the call returns the code of that copy's verdict. Returns what bh_buffer_map returns. */
BH_API BH_MUST_USE bh_status bh_buffer_read(bh_buffer *buffer, uint64_t offset, void *out_bytes,
                                            uint64_t size, uint64_t timeout_ns, bh_detail *detail);
/* Waits as BH_MAP_READ_WRITE does, and copies |size| bytes from |bytes| to |offset|. If the content
 * is poisoned, a write of the whole buffer makes it CLEAN; a smaller write is refused with the
 * content's verdict. |size| must not be BH_WHOLE_SIZE. Blocks. If the buffer is in device memory,
 * the worker of its stream copies as in bh_buffer_read, and |timeout_ns| bounds the wait for the
 * turn on the stream. Once copying has begun, the call waits until it ends; a copy that fails
 * poisons the content. Each piece is a change of its own: what another thread submits meanwhile may
 * read some of them. Returns what bh_buffer_map returns. */
BH_API BH_MUST_USE bh_status bh_buffer_write(bh_buffer *buffer, uint64_t offset, const void *bytes,
                                             uint64_t size, uint64_t timeout_ns, bh_detail *detail);
/* Returns BH_MEMORY_HOST or BH_MEMORY_DEVICE; HOST for NULL and for a released buffer. */
BH_API bh_memory bh_buffer_memory(const bh_buffer *buffer);
/* Returns the number of the newest change to a buffer in device memory: the id of the submission
 * that makes it (D1). Later changes have larger numbers. 0: none yet, or host memory, which changes
 * without submissions. */
BH_API uint64_t bh_buffer_version(const bh_buffer *buffer);
/* Returns the buffer's size; 0 for NULL and for a released buffer. */
BH_API uint64_t bh_buffer_size(const bh_buffer *buffer);
/* Adds a reference. */
BH_API void bh_buffer_retain(bh_buffer *buffer);
/* Drops a reference. Submissions that use the buffer keep it alive until they have ended (B2). */
BH_API void bh_buffer_release(bh_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
