/* Bind groups: the descriptor sets of one kernel with certain buffer ranges, kept for the next
 * dispatch that binds the same. */
#ifndef BHI_VK_GROUPS_H
#define BHI_VK_GROUPS_H

#include "vk_buffer.h"
#include "vk_kernel.h"

struct bhi_group_range {
    const struct bhi_vk_buffer *buffer;
    uint64_t offset, size;
};

struct bhi_vk_pool;

struct bhi_vk_group {
    uint64_t hash;
    const struct bhi_vk_kernel *kernel;
    struct bhi_vk_pool *pool;
    uint32_t references;       /* recordings that use it; only 0 can be evicted */
    struct bhi_vk_group *next; /* in the bucket */
    struct bhi_vk_group *older, *newer;
    VkDescriptorSet sets[BHI_MAX_SETS];
    uint32_t range_count;
    struct bhi_group_range ranges[]; /* in the order of the kernel's reflection */
};

#define BHI_GROUP_BUCKETS 1024u
#define BHI_GROUP_LIMIT   4096u

struct bhi_vk_groups {
    struct bhi_vk_group *buckets[BHI_GROUP_BUCKETS];
    struct bhi_vk_group *oldest, *newest;
    struct bhi_vk_pool *pools;
    uint32_t count, limit;
};

/* The group of |kernel| (READY) with |ranges|, made if there is none; takes a reference. NULL and
 * *fault on failure. */
struct bhi_vk_group *bhi_vk_group_get(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                                      const struct bhi_vk_kernel *kernel,
                                      const struct bhi_group_range *ranges,
                                      struct bhi_fault *fault);
void bhi_vk_group_release(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                          struct bhi_vk_group *group);
/* Forgets all groups that use |buffer|, or belong to |kernel| (either may be NULL). None of them
 * may be referenced any more. */
void bhi_vk_groups_forget(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                          const struct bhi_vk_buffer *buffer, const struct bhi_vk_kernel *kernel);
void bhi_vk_groups_fini(struct bhi_vk_device *device, struct bhi_vk_groups *groups);

#endif
