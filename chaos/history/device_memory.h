/* Two looks at a device's memory, before a run and after it, compared. The engine waits until the
 * device is clean by this, and the checker judges by it. */
#ifndef BHI_CHAOS_HISTORY_DEVICE_MEMORY_H
#define BHI_CHAOS_HISTORY_DEVICE_MEMORY_H

#include "chaos/history/history.h"

/* What the device may have more in use after the run: a context of the driver. */
#define BHI_CHAOS_DEVICE_BYTES (64ull << 20)
/* By how many percent it may be busier. */
#define BHI_CHAOS_DEVICE_BUSIER 5u
/* For how long the engine waits for this. */
#define BHI_CHAOS_DEVICE_NS 10000000000ull

/* Returns by how many bytes more is in use at |last| than at |first|, by the driver's budget or by
 * NVML, whichever says more; without what other processes have, if NVML lists them. *out_by (or
 * NULL) is who says so. Both are records of one device, of kind MEMORY. */
uint64_t bhi_device_grown(const struct bhi_record *first, const struct bhi_record *last,
                          const char **out_by);
/* Is the device busier at |last|? False also where that is not known, or where other processes use
 * it, too. */
bool bhi_device_busier(const struct bhi_record *first, const struct bhi_record *last);
/* Nothing of the run is left on the device. */
bool bhi_device_clean(const struct bhi_record *first, const struct bhi_record *last);
/* Does |last| tell all that |first| told? */
bool bhi_device_told(const struct bhi_record *first, const struct bhi_record *last);

#endif
