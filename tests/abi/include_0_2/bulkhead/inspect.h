/* What a kernel's module declares. */
#ifndef BULKHEAD_INSPECT_H
#define BULKHEAD_INSPECT_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/kernel.h>
#include <bulkhead/sized.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types are written as f32, u32x2 (a vector), f32x4x4 (a matrix), f32[] and i32[16] (arrays),
 * {u32, f32[]} (a struct), bool; cut with "..." where they are longer than 63 bytes. A block of one
 * member is that member. Where variables of several types share a binding, all are there, with
 * " | " between them. Names may be empty: a module need not have any. */

typedef struct bh_inspected_binding {
    uint32_t set, binding;
    bh_binding_kind kind;
    bh_access access; /* what the decorations permit and the code can do */
    char type[64];
    char name[64];
    uint32_t count; /* buffers in it, each of |type|: 1, or the length of an array of buffers */
} bh_inspected_binding;

/* Structs are told as what they are made of: "light.color", "lights[1].color"; so are arrays of
 * structs, of matrices and of arrays: "m[0]". */
typedef struct bh_inspected_member {
    uint32_t offset;
    uint32_t stride; /* bytes from an element of an array, or a matrix's column, to the next one */
    uint32_t step;   /* from a component to the next one: of a matrix by rows more than its size */
    uint32_t reserved;
    char type[64];
    char name[64];
} bh_inspected_member;

typedef struct bh_inspected_constant {
    uint32_t constant_id;
    bh_dtype dtype; /* BH_DTYPE_BOOL: a specialization of it has 4 bytes */
    uint64_t bits;  /* the module's own value, little endian, zero-extended */
    char name[64];  /* "local_size_x" and so on where it has none and is the workgroup's size */
} bh_inspected_constant;

typedef struct bh_inspection {
    uint32_t spirv_version; /* major << 8 | minor */
    uint32_t local_size[3]; /* of a workgroup, the kernel's specialization applied */
    uint64_t shared_bytes;  /* workgroup memory, at least */
    uint32_t entry_count;   /* entry points for compute, the first 16 */
    char entries[16][64];
    uint32_t binding_count; /* of the kernel's entry point */
    bh_inspected_binding bindings[256];
    uint32_t push_size; /* bytes of push constants; 0: none */
    uint32_t member_count;
    bh_inspected_member members[64]; /* the first of the push constants' */
    uint32_t constant_count;
    bh_inspected_constant constants[256]; /* by id */
    uint32_t capability_count;            /* the first 64 */
    char capabilities[64][64];            /* SPIR-V's names; a number where it is not known here */
    /* Of a guarded one (options.guarded): */
    /* Where the guard's buffer is on a device that has 8 descriptor sets, or 32 where the kernel
     * needs more. The binding is 0, unless the kernel declares all sets: then the buffer shares the
     * last one that the kernel uses. */
    uint32_t guard_set, guard_binding;
    uint32_t loops;      /* the sum of the next four */
    uint32_t left_alone; /* provably short */
    uint32_t covered;    /* an inner loop polls for it */
    uint32_t lowered;    /* run in chunks, with a poll between them */
    uint32_t polled;     /* a poll in each iteration */
    uint32_t clamps;     /* indices that are kept in range now */
    uint32_t zeroed;     /* workgroup variables that begin as zero now */
    uint64_t text_bytes; /* of the disassembly, without a NUL */
} bh_inspection;

typedef struct bh_inspect_options {
    size_t struct_size;   /* set by bh_inspect_options_init */
    bool guarded;         /* hold the module against the guard's limits, guard it as a worker would,
                             and disassemble what comes out. No device is asked: not for the
                             capabilities that it has */
    char *text;           /* guarded: gets the disassembly, with a NUL, cut where it is longer;
                             NULL: nowhere */
    size_t text_size;     /* of |text| */
    uint64_t deadline_ns; /* default 60 s; never 0; BH_FOREVER: none */
} bh_inspect_options;

BH_INLINE void bh_inspect_options_init(bh_inspect_options *options) {
    bh_inspect_options_init_sized(options, sizeof *options);
}

/* Says what |kernel| declares. The module is parsed in a sandboxed worker without a device, of its
 * own, as bh_kernel_create_glsl compiles one: no device has to take it, and none is asked whether
 * it would (bh_kernel_reflect does that). |options| NULL: the defaults. *out_inspection has some 71
 * KiB: not for a stack.
 *
 * Blocks, some 20 ms for a small kernel. Not in a completion callback. Returns BH_OK;
 *   BH_INVALID_KERNEL    it is not valid, has no such entry point (the detail names those that it
 *                        has), binds what is not supported, or cannot be guarded
 *   BH_LIMIT_EXCEEDED    it declares more than can be told
 *   BH_COMPILE_FAILED    it crashed the worker, or took too much memory or time
 *   BH_INVALID_ARGUMENT  a field; it is named
 *   BH_PROTOCOL          the answer makes no sense: the worker has been taken over
 *   BH_UNAVAILABLE, ...  there can be no worker */
BH_INLINE BH_MUST_USE bh_status bh_kernel_inspect(bh_kernel *kernel,
                                                  const bh_inspect_options *options,
                                                  bh_inspection *out_inspection,
                                                  bh_detail *detail) {
    return bh_kernel_inspect_sized(kernel, options, out_inspection, sizeof *out_inspection, detail);
}

#ifdef __cplusplus
}
#endif
#endif
