/* Staging: if a device does not import read-only mappings, a buffer that the worker only reads
 * (buffer.h: |source|) is imported as a copy. Before each run the part of the copy that the run
 * reads is updated: the host may write through a mapping that it got long ago, so it is never known
 * whether the content has changed. Only if the supervisor says that it never changes (|constant|),
 * each part is copied once. Nothing is ever copied back. */
#ifndef BHI_WORKER_VULKAN_STAGE_H
#define BHI_WORKER_VULKAN_STAGE_H

#include "worker/vulkan/backend.h"

/* Copies what the |count| records at |places| in |records| read. The records have been checked. */
void bhi_vk_stage_fill(struct bhi_vk_backend *backend, const struct bhi_lane_record *const *records,
                       const size_t *places, uint32_t count);
/* Copies [begin, end) of a staged buffer, which no command on the device uses unless its content
 * never changes. */
void bhi_vk_stage_chunk(struct bhi_vk_buffer *buffer, uint64_t begin, uint64_t end);

#endif
