/* What a context keeps of kernels. Included by bulkhead.h. */
#ifndef BULKHEAD_KERNEL_STATS_H
#define BULKHEAD_KERNEL_STATS_H

#include <bulkhead/bulkhead.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_kernel_stats {
    uint64_t kernels;    /* different ones that there are now, however many handles they have */
    uint64_t bytes;      /* of SPIR-V in them */
    uint64_t shared;     /* creations that found the same kernel there already */
    uint64_t introduced; /* times a worker was given one: it compiles each once */
    uint64_t evicted;    /* times a worker was told to forget one to make room (kernel_limit) */
} bh_kernel_stats;

/* Returns BH_OK, BH_INVALID_ARGUMENT, BH_CLOSED, BH_FORKED (all zero then). Does not block. */
BH_API BH_MUST_USE bh_status bh_context_kernel_stats(bh_context *context,
                                                     bh_kernel_stats *out_stats, bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
