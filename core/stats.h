/* What has become of a stream's submissions and workers (bh_work_stats). Kept by the stream alone;
 * when that is gone, by its tenant. So each number is counted in one place (E9), and what is
 * reported of tenant and context is a sum. */
#ifndef BHI_CORE_STATS_H
#define BHI_CORE_STATS_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/stats.h>

struct bhi_stats { /* of uint64_t alone */
    uint64_t ended[BH_STATUSES];
    uint64_t dependents, deaths, restarts;
    bh_histogram wait, run;
};

/* A submission of a caller has ended with |verdict|, which is complete. */
void bhi_stats_ended(struct bhi_stats *stats, const bh_verdict *verdict);
void bhi_stats_add(struct bhi_stats *sum, const struct bhi_stats *more);

#endif
