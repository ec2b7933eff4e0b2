/* The oracle computes on the host what an operation must have written. It uses nothing that a
 * device wrote. */
#ifndef BHI_CHAOS_CHECK_ORACLE_H
#define BHI_CHAOS_CHECK_ORACLE_H

#include "chaos/history/history.h"

/* |inputs|: at least |work->words| words each. |out|: |work->words| words. */
void bhi_oracle_compute(const struct bhi_chaos_work *work, const uint32_t *const *inputs,
                        uint32_t input_count, uint32_t *out);
/* Computes the digest of the words in little-endian order, as a device writes them. */
void bhi_oracle_digest(const uint32_t *words, uint32_t count, uint8_t out_digest[BHI_CHAOS_DIGEST]);

#endif
