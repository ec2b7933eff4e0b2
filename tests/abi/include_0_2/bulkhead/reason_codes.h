/* The reasons. Generated from base/reason.def. */
#ifndef BULKHEAD_REASON_CODES_H
#define BULKHEAD_REASON_CODES_H

/* Why a call or a submission failed, where its status alone does not say it. A reason never changes
 * its value; a later library may have more of them. */
typedef enum bh_reason {
    BH_REASON_NONE = 0,             /* no reason but the status */
    BH_REASON_ENTRY_POINT = 1,      /* the module has no entry point of that name */
    BH_REASON_WORKGROUPS = 2,       /* more workgroups than the device can run */
    BH_REASON_COMPILE_DEADLINE = 3, /* the compile deadline passed */
    BH_REASON_MEMORY_LIMIT = 4,     /* the worker reached its memory limit */
    BH_REASON_ADDRESS_SPACE =
        5, /* the worker reached the host's limit on the address space (ulimit -v) */
    BH_REASON_DEVICE_TIME = 6, /* the worker claimed more time on the device than had passed */
    BH_REASON_NO_WORKER = 7,   /* no worker was ready in time */
    BH_REASON_NOT_REGULAR = 8, /* the path leads to a FIFO, a socket or a device */
    BH_REASON_NOT_SPIRV = 9,   /* the code is not SPIR-V; bh_kernel_create_glsl compiles source */
    BH_REASON_SELECTOR = 10,   /* the selector names no device, or more than one */
} bh_reason;

#endif
