/* What a kernel's module declares, without a device.
 *
 * Types are written as f32, u32x2 (a vector), f32x4x4 (a matrix), f32[] and i32[16] (arrays),
 * {u32, f32[]} (a struct) and bool. A text longer than 63 bytes is cut and ends in "...". A block
 * with one member is shown as the type of that member. Types of several variables on one binding
 * are separated by " | ". Names may be empty: a module need not have any. */
#ifndef BULKHEAD_INSPECT_H
#define BULKHEAD_INSPECT_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/kernel.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One binding of the entry point. */
typedef struct bh_inspected_binding {
    uint32_t set;         /* descriptor set */
    uint32_t binding;     /* in the set */
    bh_binding_kind kind; /* storage or uniform buffer */
    bh_access access;     /* what both the decorations and the code allow */
    char type[64];        /* of the block */
    char name[64];        /* of the variable or its block */
    uint32_t count; /* buffers in it, each of |type|: 1, or the length of an array of buffers */
    bool measured;  /* the kernel asks for the length of its last array: the size that is bound
                       counts */
} bh_inspected_binding;

/* One member of the push constants. A struct is listed as its members: "light.color". Arrays of
 * structs, of matrices and of arrays are listed by element: "lights[1].color", "m[0]". */
typedef struct bh_inspected_member {
    uint32_t offset;   /* in the push constants */
    uint32_t stride;   /* bytes between elements of an array, or columns of a matrix */
    uint32_t step;     /* bytes from one component to the next; in a row-major matrix larger than a
                          component */
    uint32_t reserved; /* 0 */
    char type[64];     /* of the member */
    char name[64];     /* with the names of its structs */
} bh_inspected_member;

/* One specialization constant. */
typedef struct bh_inspected_constant {
    uint32_t constant_id; /* SpecId */
    bh_dtype dtype;       /* BH_DTYPE_BOOL: its bh_specialization has 4 bytes */
    uint64_t bits;        /* the module's default, little endian, zero-extended */
    char name[64];        /* "local_size_x" and so on for a workgroup size without a name */
} bh_inspected_constant;

/* What a module declares. */
typedef struct bh_inspection {
    size_t struct_size;                   /* sizeof(bh_inspection) */
    uint32_t spirv_version;               /* major << 8 | minor */
    uint32_t local_size[3];               /* of a workgroup, the kernel's specialization applied */
    uint64_t shared_bytes;                /* at least this much workgroup memory */
    uint32_t entry_count;                 /* elements of |entries| */
    char entries[16][64];                 /* the first entry points for compute */
    uint32_t binding_count;               /* elements of |bindings| */
    bh_inspected_binding bindings[256];   /* of the kernel's entry point */
    uint32_t push_size;                   /* bytes of push constants; 0: none */
    uint32_t member_count;                /* elements of |members| */
    bh_inspected_member members[64];      /* the first members of the push constants */
    uint32_t constant_count;              /* elements of |constants| */
    bh_inspected_constant constants[256]; /* by id */
    uint32_t capability_count;            /* elements of |capabilities| */
    char capabilities[64][64]; /* the first ones: SPIR-V's names, or a number for an unknown one */
    /* This and the rest are set only if bh_inspect_options.guarded is; otherwise they are 0. To
     * poll is to look whether the kernel is to stop (docs/kernels.md). */
    uint32_t guard_set;     /* the descriptor set of the guard's buffer. Assumes a device with 8
                               sets, or with 32 if the kernel needs more than 8 */
    uint32_t guard_binding; /* binding of that buffer in guard_set. It is 0, unless the kernel
                               declares all sets; then it is a free binding of the last set that the
                               kernel uses */
    uint32_t loops;         /* the sum of the next four */
    uint32_t left_alone;    /* loops that are provably short */
    uint32_t covered;       /* loops in which an inner loop polls */
    uint32_t lowered;       /* loops that run in chunks, with a poll between them */
    uint32_t polled;        /* loops that poll in each iteration */
    uint32_t clamps;        /* indices that are now kept in range */
    uint32_t zeroed;        /* workgroup variables that now begin as zero */
    uint64_t text_bytes;    /* length of the disassembly, without a NUL */
} bh_inspection;

/* How to inspect. */
typedef struct bh_inspect_options {
    size_t struct_size; /* sizeof(bh_inspect_options) */
    bool guarded; /* check the module against the guard's limits, guard it as a worker would, and
                     disassemble the result. No device is asked for its capabilities */
    char *text;   /* guarded: receives the disassembly, NUL-terminated, cut if it is longer;
                     NULL: none */
    size_t text_size;     /* of |text| */
    uint64_t deadline_ns; /* with its wait for a compiler; default 60 s */
} bh_inspect_options;

/* Returns what |kernel| declares. A sandboxed worker of its own, without a device, parses the
 * module, as for bh_kernel_create_source. bh_kernel_reflect says whether a device accepts it.
 * |options| may be NULL. *out_inspection has some 72 KiB: too much for many stacks.
 *
 * Blocks, some 20 ms for a small kernel. Not in a log callback. Returns BH_OK;
 *   BH_INVALID_KERNEL    the module is not valid, has no such entry point (the detail names those
 *                        that it has), binds what is not supported, or cannot be guarded
 *   BH_LIMIT_EXCEEDED    the module declares more than bh_inspection holds
 *   BH_COMPILE_FAILED    the module crashed the worker, or took too much memory or time
 *   BH_INVALID_ARGUMENT  a field is wrong, which the detail names
 *   BH_PROTOCOL          the worker's answer breaks the protocol: the module has taken over that
 *                        worker
 *   BH_UNAVAILABLE       no worker can start; or another status of class ENVIRON or VICTIM */
BH_API BH_MUST_USE bh_status bh_kernel_inspect(bh_kernel *kernel, const bh_inspect_options *options,
                                               bh_inspection *out_inspection, bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
