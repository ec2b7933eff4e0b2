/* What bh_context_stats and bh_context_describe report. */
#ifndef BHI_SUPERVISOR_STATS_H
#define BHI_SUPERVISOR_STATS_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/stats.h>

/* Lock held. */
void bhi_stats_of_context(const bh_context *context, bh_stats *out);

#endif
