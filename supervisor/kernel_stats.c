#include "context.h"
#include "core/detail.h"

BH_API bh_status bh_context_kernel_stats(bh_context *context, bh_kernel_stats *out_stats,
                                         bh_detail *detail) {
    if (!out_stats)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_context_kernel_stats: out_stats is NULL");
    *out_stats = (bh_kernel_stats){0};
    bh_status status = bhi_context_check(context, "bh_context_kernel_stats", detail);
    if (status != BH_OK)
        return status;
    bhi_context_lock(context);
    const struct bhi_kernel_table *table = &context->kernels;
    *out_stats = (bh_kernel_stats){
        .kernels = table->count,
        .bytes = table->bytes,
        .shared = table->shared,
        .introduced = table->introduced,
        .evicted = table->evicted,
    };
    bhi_context_unlock(context);
    return BH_OK;
}
