/* Which commands depend on each other through a buffer: two ranges that overlap, one of them
 * written. A dependency costs one global barrier, after which everything before it is done. */
#ifndef BHI_WORKER_VULKAN_HAZARDS_H
#define BHI_WORKER_VULKAN_HAZARDS_H

#include "worker/vulkan/buffer.h"

struct bhi_hazards {
    struct bhi_hazard_range {
        uint64_t begin, end;
        uint32_t next; /* index + 1 of the next range of the same buffer; 0: none */
        bool write;
    } *ranges;
    uint32_t count, capacity;
    uint64_t epoch;              /* what buffers remember from another epoch is void */
    VkPipelineStageFlags stages; /* of the commands since the last barrier */
};

void bhi_hazards_fini(struct bhi_hazards *hazards);
/* Everything before is done: after a barrier, or at the beginning. */
void bhi_hazards_clear(struct bhi_hazards *hazards);
/* Would an access now depend on a command since the last barrier? */
bool bhi_hazards_conflict(const struct bhi_hazards *hazards, const struct bhi_vk_buffer *buffer,
                          uint64_t begin, uint64_t end, bool write);
/* Remembers an access. False: out of memory. */
bool bhi_hazards_add(struct bhi_hazards *hazards, struct bhi_vk_buffer *buffer, uint64_t begin,
                     uint64_t end, bool write);

#endif
