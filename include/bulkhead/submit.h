/* Submissions: lists of commands for a stream, each with one event. */
#ifndef BULKHEAD_SUBMIT_H
#define BULKHEAD_SUBMIT_H

#include <bulkhead/detail.h>
#include <bulkhead/kernel.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of a buffer, bound to a kernel, and what the command may do with it.
 *
 * Dependencies and poison apply to whole buffers (B5), even if a binding covers only a range. Two
 * streams cannot write halves of one buffer at the same time. A submission that ends poisoned
 * poisons every buffer that it was to write, even if it never ran. A command, or a write by the
 * host, that overwrites the whole buffer cleans it. Two commands that each overwrite one half end
 * READY, but the buffer stays poisoned.
 *
 * |access| may be less than the kernel declares. If the validator sees a store into a buffer that
 * the kernel may only read, the submission is BINDING_MISMATCH. A store that the validator misses
 * cannot change the buffer: the worker dies of SIGSEGV (WORKER_SIGNAL) or writes into a copy
 * (READY).
 *
 * BH_ACCESS_WRITE promises that the command overwrites the range. If the kernel does not overwrite
 * the whole range, the old bytes that remain count as CLEAN. The decoration writeonly in a module
 * does not make this promise. BH_ACCESS_WRITE on a binding that the module declares readonly is
 * BINDING_MISMATCH. BH_ACCESS_DECLARED needs an earlier bh_kernel_reflect, otherwise bh_submit
 * returns BH_INVALID_ARGUMENT.
 *
 * BH_ACCESS_OPTIONAL allows a kernel that does not declare the binding: an optimiser may have
 * removed it. The kernel then runs without it. For dependencies and poison the command uses the
 * buffer all the same, as |access| says; with BH_ACCESS_DECLARED it reads it. But unless an earlier
 * bh_kernel_reflect has found the binding, it does not overwrite it: poisoned content stays so.
 *
 * Ranges of one buffer may overlap in a command; the kernel itself must order its reads and writes
 * there. */
typedef struct bh_binding {
    uint32_t set;      /* descriptor set */
    uint32_t binding;  /* in the set */
    bh_buffer *buffer; /* of the stream's context */
    uint64_t offset;   /* a multiple of bh_device_info.storage_alignment or uniform_alignment,
                          otherwise BINDING_MISMATCH */
    uint64_t size;     /* BH_WHOLE_SIZE: from |offset| to the end of the buffer, which must be at
                          least one byte. 0: allowed only for an empty buffer */
    uint32_t access;   /* bits of bh_access: what the command may do; with BH_ACCESS_OPTIONAL: if it
                          is bound */
    uint32_t element;  /* index in an array of buffers (bh_kernel_binding.count); 0 if the binding
                          is no array. Each element has a bh_binding of its own; a missing one is
                          BINDING_MISMATCH */
} bh_binding;

/* The whole of |buffer| at |binding| of descriptor set 0, which the command only reads. */
BH_API bh_binding bh_bind_read(uint32_t binding, bh_buffer *buffer);
/* The same, which the command overwrites whole and does not read. */
BH_API bh_binding bh_bind_write(uint32_t binding, bh_buffer *buffer);
/* The same, which the command reads and writes, or overwrites in part. */
BH_API bh_binding bh_bind_read_write(uint32_t binding, bh_buffer *buffer);

/* Runs a kernel. */
typedef struct bh_dispatch {
    bh_kernel *kernel;          /* of the stream's context */
    uint32_t groups[3];         /* workgroups (blocks), each at least 1. A product over 2^32 - 1 is
                                   LIMIT_EXCEEDED on a device without the feature wholeGrids */
    uint32_t binding_count;     /* at most 256; each element of an array counts */
    const bh_binding *bindings; /* one for each buffer that the kernel binds */
    const void *push;           /* push constants, or the parameters of an image that are not
                                   bound; copied */
    uint32_t push_size;         /* a multiple of 4, at most 4096 and the device's limit */
    uint32_t block[3];          /* of an image: threads of a block, each at least 1. All 0: what
                                   bh_kernel_options.block says. All 0 for SPIR-V */
    uint32_t shared_bytes;      /* of an image: bytes of dynamic shared memory of a block; 0: what
                                   bh_kernel_options.shared_bytes says */
} bh_dispatch;

/* Copies bytes from buffer to buffer. Ranges of one buffer must not overlap. */
typedef struct bh_copy {
    bh_buffer *src;      /* where the bytes come from */
    bh_buffer *dst;      /* where they go */
    uint64_t src_offset; /* in src */
    uint64_t dst_offset; /* in dst */
    uint64_t size;       /* at least 1; BH_WHOLE_SIZE: the rest of src */
} bh_copy;

/* Writes one word over and over. */
typedef struct bh_fill {
    bh_buffer *dst;  /* where it goes */
    uint64_t offset; /* in dst; a multiple of 4 */
    uint64_t size;   /* a multiple of 4, not 0; BH_WHOLE_SIZE: the rest of dst */
    uint32_t value;  /* a 32-bit word */
} bh_fill;

/* What a command does, and the member of bh_command that says it. */
typedef enum bh_command_type {
    BH_COMMAND_DISPATCH = 1, /* dispatch */
    BH_COMMAND_COPY = 2,     /* copy */
    BH_COMMAND_FILL = 3,     /* fill */
} bh_command_type;

/* One command. */
typedef struct bh_command {
    bh_command_type type; /* which member of the union counts */
    union {
        bh_dispatch dispatch; /* BH_COMMAND_DISPATCH */
        bh_copy copy;         /* BH_COMMAND_COPY */
        bh_fill fill;         /* BH_COMMAND_FILL */
    };
} bh_command;

/* Bits of bh_submit_info.flags. */
typedef enum bh_submit_flags {
    /* bh_verdict.device_ns says how long the device was busy with the submission, from the start
     * of its first command to the end of its last. device_ns is 0 (not known) if the device ran the
     * submission neither to its end nor to its deadline, if the queue has no timestamps, or if the
     * device's clock may have wrapped more than once. Costs two timestamps: about 0.1 ms on
     * lavapipe. */
    BH_SUBMIT_TIMED = 1,
} bh_submit_flags;

/* What to submit. */
typedef struct bh_submit_info {
    size_t struct_size;         /* sizeof(bh_submit_info) */
    const bh_command *commands; /* run in order, with barriers where they depend on each other */
    uint32_t command_count;     /* 0: a join of |waits|, or a marker (E17) */
    bh_event *const *waits;     /* if one is poisoned, this submission is poisoned, too (E5). It
                                   starts when all waits on other streams are READY (E15). It may
                                   start before a wait on its own stream has ended: if that one
                                   fails, this submission is poisoned, but may have run
                                   (bh_verdict.executed) */
    uint32_t wait_count;        /* elements of |waits| */
    uint64_t deadline_ns;       /* counted as bh_stream_options.deadline_ns is, which is the
                                   default */
    bool alone;     /* true: the submission gets a worker that has run nothing else, and that runs
                       nothing else until it has ended. So nothing else can change how it ends
                       (bh_verdict.blame). If the stream's worker has run something, that worker is
                       replaced first. Set the flag after a SUSPECTED verdict. For all submissions
                       of a stream: bh_stream_options.isolation */
    uint64_t flags; /* bh_submit_flags */
} bh_submit_info;

/* Queues a submission. If one command fails, the whole submission fails (E4). It depends on the
 * events that it waits for, and on the writers of the buffers that it reads, on any stream of the
 * context. It runs after earlier users of the buffers that it writes. Dependencies cannot form a
 * cycle: a submission can wait only for events that exist already.
 *
 * A submission without commands is a join or a marker (E17). Its event is READY when everything
 * before it on the stream has ended and all |waits| are READY.
 *
 * Everything is copied or retained. |out_event| may be NULL. It may point to an element of |waits|.
 * The caller releases the event. Never blocks, and never returns another submission's error (E8).
 * If the worker dies while the submission runs, the event is poisoned; if the submission had not
 * started, it runs on the next worker (E13). Returns BH_OK, BH_TOO_LARGE (over 512 KiB encoded),
 * BH_NO_MEMORY, BH_CLOSED, BH_OUT_OF_DEVICE_MEMORY (a copy of another tenant's or device's buffer,
 * see bh_buffer_create), or BH_INVALID_ARGUMENT (the detail names command and field, or why the
 * kernel cannot run on the stream: the reasons NEEDS_CUDA and NEEDS_VULKAN. If the stream's driver
 * is not known yet, the event has them with INVALID_KERNEL). */
BH_API BH_MUST_USE bh_status bh_submit(bh_stream *stream, const bh_submit_info *info,
                                       bh_event **out_event, bh_detail *detail);
/* Submits one dispatch, without waits, with the stream's deadline; of an image with the block of
 * its options. Returns what bh_submit returns. */
BH_API BH_MUST_USE bh_status bh_launch(bh_stream *stream, bh_kernel *kernel,
                                       const uint32_t groups[3], const bh_binding *bindings,
                                       uint32_t binding_count, const void *push, uint32_t push_size,
                                       bh_event **out_event, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
