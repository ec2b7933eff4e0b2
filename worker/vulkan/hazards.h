/* Which commands depend on each other through a buffer: those whose ranges overlap, if one of them
 * writes. A dependency costs one global barrier, which waits for everything before it. */
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
    uint64_t epoch;              /* what a buffer remembers from an earlier epoch is ignored */
    VkPipelineStageFlags stages; /* of the commands since the last barrier */
};

void bhi_hazards_fini(struct bhi_hazards *hazards);
/* Forgets all accesses: after a barrier, or at the beginning. */
void bhi_hazards_clear(struct bhi_hazards *hazards);
/* Would this access depend on a command since the last barrier? */
bool bhi_hazards_conflict(const struct bhi_hazards *hazards, const struct bhi_vk_buffer *buffer,
                          uint64_t begin, uint64_t end, bool write);
/* Remembers an access. Returns false if out of memory. */
bool bhi_hazards_add(struct bhi_hazards *hazards, struct bhi_vk_buffer *buffer, uint64_t begin,
                     uint64_t end, bool write);

#endif
