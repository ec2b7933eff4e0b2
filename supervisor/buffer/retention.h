/* The ablation switch (B4): in test builds, with BULKHEAD_TEST_RETENTION=off, a submission does not
 * keep what it uses. The memory of a buffer goes back to the pool, and a kernel away from the
 * workers, when the caller drops the last reference, in flight or not. The tests of retention must
 * fail then. Not in the shipped library. */
#ifndef BHI_SUPERVISOR_BUFFER_RETENTION_H
#define BHI_SUPERVISOR_BUFFER_RETENTION_H

#include <stdbool.h>

#if BHI_RETENTION_SWITCH
bool bhi_retention_off(void); /* tests/fault/retention.c */
#else
#define BHI_RETENTION_SWITCH 0
static inline bool bhi_retention_off(void) {
    return false;
}
#endif

#endif
