/* A sentinel's device: the transfer queue alone, and the abort words of workers, which it imports
 * and sets. While a kernel of a worker that has died hangs on the device, all others there wait for
 * it; the transfer queue does not (docs/deadlines.md). It handles no other byte of a worker.
 *
 * import, set and forget are the session's thread, set_all is the watchdog's. */
#ifndef BHI_WORKER_SENTINEL_H
#define BHI_WORKER_SENTINEL_H

#include "worker/backend.h"

struct bhi_sentinel_device;

/* NULL and *error: UNSUPPORTED where the device has no such queue, or as bhi_backend_create. */
struct bhi_sentinel_device *bhi_sentinel_device_create(const struct bhi_backend_config *config,
                                                       struct bhi_error *error);
void bhi_sentinel_device_destroy(struct bhi_sentinel_device *sentinel);
/* The memory that |worker| has exported. Takes |fd| over. Returns a VkResult. */
int32_t bhi_sentinel_device_import(struct bhi_sentinel_device *sentinel, uint64_t worker, int fd,
                                   uint64_t bytes);
/* All words of |worker| become 1. Waits for it. Returns a VkResult; none of that worker's: 0. */
int32_t bhi_sentinel_device_set(struct bhi_sentinel_device *sentinel, uint64_t worker);
void bhi_sentinel_device_forget(struct bhi_sentinel_device *sentinel, uint64_t worker);
/* The words of all that it has, once and for all. */
void bhi_sentinel_device_set_all(struct bhi_sentinel_device *sentinel);

#endif
