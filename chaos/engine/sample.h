/* A sample of what this process holds: memory, descriptors, children. The checker looks for leaks
 * in samples. */
#ifndef BHI_CHAOS_ENGINE_SAMPLE_H
#define BHI_CHAOS_ENGINE_SAMPLE_H

#include "chaos/history/history.h"

/* Fills in all but |idle|. |rss_bytes| excludes the history's own records, which grow by design.
 * |runtime_parent| is where the context makes its folders. Returns false if it could not look. */
bool bhi_sample_take(const char *runtime_parent, const struct bhi_history *history,
                     struct bhi_record *out_record);

#endif
