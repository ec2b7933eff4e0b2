#include "base/detail.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/body.h"

#include <string.h>

BH_API bh_status bh_context_kernel_stats_sized(bh_context *context, bh_kernel_stats *out_stats,
                                               size_t stats_size, bh_detail *detail) {
    static const char call[] = "bh_context_kernel_stats";
    if (!out_stats) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: out_stats is NULL", call);
    }
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_kernel_stats), stats_size, call, "out_stats", detail);
    if (status != BH_OK) {
        return status;
    }
    memset(out_stats, 0, stats_size);
    status = bhi_context_check(context, call, detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_context_lock(context);
    const struct bhi_kernel_table *table = context->kernels;
    const bh_kernel_stats stats = {
        .kernels = table->count,
        .bytes = table->bytes,
        .shared = table->shared,
        .introduced = table->introduced,
        .evicted = table->evicted,
        .told = table->told,
    };
    bhi_context_unlock(context);
    bhi_layout_give(out_stats, stats_size, &stats, sizeof stats);
    return BH_OK;
}
