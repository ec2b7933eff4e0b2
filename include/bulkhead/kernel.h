/* Kernels from SPIR-V and from CUDA images, and what they bind. */
#ifndef BULKHEAD_KERNEL_H
#define BULKHEAD_KERNEL_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of one specialization constant (Vulkan 1.3, section 10.7.4). */
typedef struct bh_specialization {
    uint32_t constant_id; /* SpecId in the module */
    uint32_t size;        /* bytes: 1, 2, 4 or 8; a boolean has 4 */
    uint64_t bits;        /* the value's bytes in little endian, zero-extended */
} bh_specialization;

/* How to create a kernel. */
typedef struct bh_kernel_options {
    size_t struct_size; /* sizeof(bh_kernel_options) */
    const char *name;   /* for verdicts; NULL: the entry point's name; cut after 63 bytes */
    const char *entry;  /* entry point, UTF-8 without control characters; NULL: "main". Required for
                           an image; of a source see source.h */
    const bh_specialization *specializations; /* values of constants; others keep their defaults */
    uint32_t specialization_count;            /* at most 256, ids distinct */
    bool trusted; /* true: the module is validated, but not guarded (docs/kernels.md): the driver
                     gets it unchanged, and an index out of range may crash the worker; the guard
                     clamps it. If the kernel does not end by itself, its worker must be killed
                     (docs/trust.md). Part of the kernel's identity. Default false */
    uint32_t block[3];     /* of an image: threads of a block, for launches that do not say it
                              (bh_dispatch.block). All 0: each launch says it. No part of the
                              identity. All 0 for SPIR-V, whose module says it */
    uint32_t shared_bytes; /* of an image: bytes of dynamic shared memory of a block, likewise */
    uint32_t noise;        /* of SPIR-V: not 0: the guard fills workgroup, private and function
                              memory with large numbers drawn from this (docs/kernels.md), so that a
                              kernel that reads it before it writes it is noticed. An even one
                              stands for the opposite of the odd one that follows it, bit by bit,
                              and gives workgroups their ids in the opposite order. 0 (default):
                              workgroup memory begins as zero. Not with |trusted|. Part of the
                              kernel's identity */
} bh_kernel_options;

/* Creates a kernel from a SPIR-V module, which is copied. |code_size| is a multiple of 4 from 20
 * bytes to 64 MiB; a guarded kernel has at most 4 MiB (docs/kernels.md). The call checks only the
 * length and the magic number; the detail says so if |code| is source text, which
 * bh_kernel_create_source compiles. A worker validates and compiles the module at first use; a bad
 * one poisons the submissions that use it with INVALID_KERNEL or COMPILE_FAILED.
 *
 * Identity is a cryptographic hash of module, entry point, constants and trust, not the name (K1).
 * Equal kernels share their code, and a worker compiles them once. Each keeps its name. |options|
 * may be NULL. Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY, BH_CLOSED. */
BH_API BH_MUST_USE bh_status bh_kernel_create_spirv(bh_context *context, const void *code,
                                                    size_t code_size,
                                                    const bh_kernel_options *options,
                                                    bh_kernel **out_kernel, bh_detail *detail);
/* Creates a kernel from an image for CUDA, which is copied: PTX text (a NUL at its end is allowed),
 * a cubin or a fatbin, of at most 64 MiB. It runs on streams of a CUDA device only: on
 * others bh_submit refuses it by the reason NEEDS_CUDA, as it refuses SPIR-V on a CUDA device by
 * NEEDS_VULKAN. The call checks only that |image| begins like an image. A worker loads it at first
 * use; a bad one poisons the submissions that use it with INVALID_KERNEL or COMPILE_FAILED.
 *
 * |options|.entry is required: the name of the kernel in the image, which is the mangled one unless
 * it is extern "C". There are no specializations, and |trusted| is refused: a CUDA kernel has no
 * guard that could be left out. A kernel that does not end is killed with its worker.
 *
 * The kernel's parameters are known by their positions. A bh_binding with set 0, element 0 and
 * |binding| = position makes a parameter a pointer to the buffer at the offset. All others are
 * taken from the push bytes in their order, each at its natural alignment (the lowest bit of its
 * size, at most 16), padded at the end to a multiple of 4 bytes.
 *
 * Identity is a cryptographic hash of image, entry point and the fact that it is an image (K1).
 * Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY, BH_SYSTEM, BH_CLOSED. Never blocks. */
BH_API BH_MUST_USE bh_status bh_kernel_create_image(bh_context *context, const void *image,
                                                    size_t size, const bh_kernel_options *options,
                                                    bh_kernel **out_kernel, bh_detail *detail);
/* Writes the kernel's identity, a BLAKE2b-256 hash. */
BH_API void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]);
/* Copies the kernel's SPIR-V module, as it was given or compiled, or its image, into |size| bytes;
 * |code| may be NULL if |size| is 0. *out_size is how many bytes there are. Returns BH_OK, or
 * BH_SYSTEM. */
BH_API BH_MUST_USE bh_status bh_kernel_code(bh_kernel *kernel, void *code, size_t size,
                                            size_t *out_size, bh_detail *detail);
/* Returns the kernel's name, valid while a reference is held. */
BH_API const char *bh_kernel_name(const bh_kernel *kernel);
/* Adds a reference. */
BH_API void bh_kernel_retain(bh_kernel *kernel);
/* Drops a reference. Submissions that use the kernel keep it alive until they have ended (B2). */
BH_API void bh_kernel_release(bh_kernel *kernel);

/* What a kernel binds. */
typedef enum bh_binding_kind {
    BH_BINDING_STORAGE_BUFFER = 1, /* VK_DESCRIPTOR_TYPE_STORAGE_BUFFER */
    BH_BINDING_UNIFORM_BUFFER = 2, /* VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER */
    BH_BINDING_PARAMETER = 3,      /* a parameter of an image */
} bh_binding_kind;

/* What a command does with a buffer. The library derives dependencies and poison from it. Bits. */
typedef enum bh_access {
    BH_ACCESS_DECLARED = 0,   /* in a bh_binding: what the kernel declares (bh_kernel_reflect). An
                                 image declares nothing: ACCESS_UNKNOWN */
    BH_ACCESS_READ = 1,       /* only reads it */
    BH_ACCESS_WRITE = 2,      /* overwrites the whole range, and reads none of it */
    BH_ACCESS_READ_WRITE = 3, /* reads and writes it, or overwrites only a part */
    BH_ACCESS_OPTIONAL = 4,   /* with one of the others in a bh_binding: the kernel need not declare
                                 the binding */
} bh_access;

/* One binding of a kernel. */
typedef struct bh_kernel_binding {
    uint32_t set;         /* descriptor set; of a parameter 0 */
    uint32_t binding;     /* in the set; position of a parameter */
    bh_binding_kind kind; /* storage or uniform buffer, or parameter */
    bh_access access;     /* from the module's decorations; of a parameter READ_WRITE */
    char name[64];        /* may be empty */
    uint32_t count;       /* buffers in it: 1, or the length of an array of buffers; of a parameter
                             its bytes: one of 8 bytes can be a pointer to a buffer */
} bh_kernel_binding;

/* What a kernel's module declares, or which parameters an image has. */
typedef struct bh_kernel_info {
    size_t struct_size;              /* sizeof(bh_kernel_info) */
    uint32_t binding_count;          /* elements of |bindings| that are filled in */
    bh_kernel_binding bindings[256]; /* by set and binding */
    uint32_t push_size;              /* bytes of push constants; 0: none. Of an image 0: its push
                                        bytes depend on what is bound */
    uint32_t local_size[3];          /* workgroup size, specialization applied; of an image 1 */
    uint64_t reserved;               /* 0 */
} bh_kernel_info;

/* Makes the stream's worker validate and compile the kernel, in order with the stream's
 * submissions. The event has the result: READY, or INVALID_KERNEL, COMPILE_FAILED, WORKER_SIGNAL,
 * DEADLINE, …. Optional: the first submission that uses the kernel does the same. Never blocks.
 * Returns what bh_submit returns. */
BH_API BH_MUST_USE bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream,
                                               bh_event **out_event, bh_detail *detail);
/* Prepares the kernel, and returns what it binds. Blocks, at most |timeout_ns|; after a timeout the
 * compile continues until the stream's compile deadline. (Use bh_kernel_prepare to cancel.) The
 * first answer for a kernel is the one that BH_ACCESS_DECLARED uses, on every stream. A worker can
 * lie: call this on a stream whose worker has run no untrusted kernel. Returns BH_OK, BH_TIMEOUT,
 * BH_NO_MEMORY, BH_IN_CALLBACK, or the verdict's code with its message in |detail|. */
BH_API BH_MUST_USE bh_status bh_kernel_reflect(bh_kernel *kernel, bh_stream *stream,
                                               uint64_t timeout_ns, bh_kernel_info *out_info,
                                               bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
