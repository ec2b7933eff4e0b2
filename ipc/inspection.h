/* The request to inspect a module and its answer; each is in a buffer of its own.
 *
 * The request is a struct bhi_inspection_call, its constants, then the code. The answer is a struct
 * bhi_inspection, then |text_bytes| of disassembly if that was requested and fits. The supervisor
 * copies the answer once, and checks every number and text.
 */
#ifndef BHI_IPC_INSPECTION_H
#define BHI_IPC_INSPECTION_H

#include <stdint.h>

#define BHI_INSPECT_ENTRIES      16u
#define BHI_INSPECT_BINDINGS     256u
#define BHI_INSPECT_MEMBERS      64u
#define BHI_INSPECT_CONSTANTS    256u
#define BHI_INSPECT_CAPABILITIES 64u
#define BHI_INSPECT_NAME         64u
#define BHI_INSPECT_REASON       512u
#define BHI_INSPECT_MAX_TEXT     (64u << 20)

struct bhi_inspection_constant {
    uint32_t constant_id;
    uint32_t size;
    uint64_t bits;
};

struct bhi_inspection_call {
    uint64_t code_bytes;
    uint32_t constants; /* number of struct bhi_inspection_constant */
    uint32_t guarded;   /* 1: guard the module and disassemble the result */
    char entry[256];
};

struct bhi_inspected_binding {
    uint32_t set, binding, kind, access, count; /* as in kernel_binding */
    uint32_t measured;                          /* 1: the kernel asks for its length */
    char type[BHI_INSPECT_NAME];
    char name[BHI_INSPECT_NAME];
};

struct bhi_inspected_member {
    uint32_t offset, stride, step, reserved; /* as in bh_inspected_member */
    char type[BHI_INSPECT_NAME];
    char name[BHI_INSPECT_NAME];
};

struct bhi_inspected_constant {
    uint32_t constant_id;
    uint32_t dtype; /* bh_dtype */
    uint64_t bits;  /* the module's own value */
    char name[BHI_INSPECT_NAME];
};

struct bhi_inspection {
    uint32_t refused; /* INVALID_KERNEL or LIMIT_EXCEEDED: |reason| says why, and the rest is 0 */
    uint32_t spirv_version; /* major << 8 | minor */
    uint32_t local_size[3];
    uint32_t push_bytes;
    uint32_t entries, bindings, members, constants, capabilities;
    /* Of a guarded module: */
    uint32_t guard_set, guard_binding, loops, left_alone, covered, lowered, polled, clamps, zeroed;
    uint64_t shared_bytes;
    uint64_t text_bytes;
    char entry[BHI_INSPECT_ENTRIES][BHI_INSPECT_NAME]; /* of each compute entry point */
    struct bhi_inspected_binding binding[BHI_INSPECT_BINDINGS];
    struct bhi_inspected_member member[BHI_INSPECT_MEMBERS]; /* of the push constants */
    struct bhi_inspected_constant constant[BHI_INSPECT_CONSTANTS];
    char capability[BHI_INSPECT_CAPABILITIES][BHI_INSPECT_NAME];
    char reason[BHI_INSPECT_REASON];
};
_Static_assert(sizeof(struct bhi_inspection) % 8 == 0, "whole words");

#endif
