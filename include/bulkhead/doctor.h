/* What this machine can do: sandbox layers, kernel features, driver guarantees. */
#ifndef BULKHEAD_DOCTOR_H
#define BULKHEAD_DOCTOR_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a probe saw. */
typedef enum bh_check_result {
    BH_CHECK_ABSENT, /* this machine does not have it */
    BH_CHECK_HOLDS,  /* proven by a probe */
    BH_CHECK_BROKEN, /* it should hold and does not: the probe got past it, or failed */
} bh_check_result;

/* One check and its result. */
typedef struct bh_check {
    size_t struct_size;     /* sizeof(bh_check) */
    char group[16];         /* "kernel", "sandbox", "driver" */
    char name[48];          /* of the layer, feature or guarantee */
    bool required;          /* workers do not start without it */
    bh_check_result result; /* what the probe saw */
    char text[256];         /* what was tried and seen */
    char advice[256];       /* what to install or enable, or what its absence means; empty if the
                               check holds */
    uint64_t reserved;      /* 0 */
} bh_check;

/* Probes each sandbox layer, kernel feature and driver guarantee. Fills in at most |capacity|
 * elements; *out_count is how many checks there are. Blocks, at most 30 s a driver. Not in a
 * log callback. Returns BH_OK if the probes ran, whatever they found; BH_NO_MEMORY,
 * BH_SYSTEM, BH_CLOSED. */
BH_API BH_MUST_USE bh_status bh_doctor(bh_context *context, bh_check *out_checks, size_t capacity,
                                       size_t *out_count, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
