/* Staging: where a device does not import a mapping that cannot be written to, a buffer that the
 * worker only reads (buffer.h: |source|) is imported as a copy. The copy is brought up to date
 * before each run, and only that part of it that the run reads: a host may write through a mapping
 * that it got long ago, so nobody could say that the content has not changed. Unless the supervisor
 * says that it stays as it is (|constant|): then each part is copied once. Nothing is ever copied
 * back. */
#ifndef BHI_WORKER_VULKAN_STAGE_H
#define BHI_WORKER_VULKAN_STAGE_H

#include "worker/vulkan/backend.h"

/* Copies what the |count| records at |places| in |records| read. They have been checked. */
void bhi_vk_stage_fill(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                       const size_t *places, uint32_t count);

#endif
