#include "base/detail.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/body.h"

BH_API bh_status bh_context_kernel_stats(bh_context *context, bh_kernel_stats *out_stats,
                                         bh_detail *detail) {
    static const char call[] = "bh_context_kernel_stats";
    if (!out_stats) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "out_stats");
    }
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_kernel_stats), out_stats, call, "out_stats", detail);
    if (status != BH_OK) {
        return status;
    }
    bh_kernel_stats stats = {.struct_size = sizeof stats};
    bhi_layout_give(out_stats, &stats, sizeof stats);
    status = bhi_context_check(context, call, detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_context_lock(context);
    const struct bhi_kernel_table *table = context->kernels;
    stats = (bh_kernel_stats){
        .kernels = table->count,
        .bytes = table->bytes,
        .shared = table->shared,
        .introduced = table->introduced,
        .evicted = table->evicted,
        .told = table->told,
    };
    bhi_context_unlock(context);
    bhi_layout_give(out_stats, &stats, sizeof stats);
    return BH_OK;
}
