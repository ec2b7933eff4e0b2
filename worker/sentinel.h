/* A sentinel's device. It has only the transfer queue, imports the abort words of workers, and sets
 * them. While a kernel of a dead worker hangs on the device, all other queues wait for it; the
 * transfer queue does not (docs/trust.md). It handles no other bytes of a worker.
 *
 * The session's thread calls import, set and forget; the watchdog's thread calls set_all. */
#ifndef BHI_WORKER_SENTINEL_H
#define BHI_WORKER_SENTINEL_H

#include "worker/backend.h"

struct bhi_sentinel_device;

/* Returns NULL and fills *error: UNSUPPORTED if the device has no such queue, else as
 * bhi_backend_create. */
struct bhi_sentinel_device *bhi_sentinel_device_create(const struct bhi_backend_config *config,
                                                       struct bhi_error *error);
void bhi_sentinel_device_destroy(struct bhi_sentinel_device *sentinel);
/* Imports the memory that |worker| has exported. Takes |fd| over. Returns a VkResult. */
int32_t bhi_sentinel_device_import(struct bhi_sentinel_device *sentinel, uint64_t worker, int fd,
                                   uint64_t bytes);
/* Sets all words of |worker| to 1 and waits until that is done. Returns a VkResult, 0 if that
 * worker has no words here. */
int32_t bhi_sentinel_device_set(struct bhi_sentinel_device *sentinel, uint64_t worker);
void bhi_sentinel_device_forget(struct bhi_sentinel_device *sentinel, uint64_t worker);
/* Sets the words of all workers, for good. */
void bhi_sentinel_device_set_all(struct bhi_sentinel_device *sentinel);

#endif
