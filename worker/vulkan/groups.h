/* Bind groups: the descriptor sets of one kernel with certain buffer ranges, kept for the next
 * dispatch that binds the same. */
#ifndef BHI_WORKER_VULKAN_GROUPS_H
#define BHI_WORKER_VULKAN_GROUPS_H

#include "base/list.h"
#include "base/map.h"
#include "worker/vulkan/buffer.h"
#include "worker/vulkan/kernel.h"

struct bhi_group_range {
    const struct bhi_vk_buffer *buffer;
    uint64_t offset, size;
};

struct bhi_vk_pool;

struct bhi_vk_group {
    struct bhi_chain chain; /* by the hash of kernel and ranges */
    const struct bhi_vk_kernel *kernel;
    struct bhi_vk_pool *pool;
    uint32_t references;  /* recordings that use it; only 0 can be evicted */
    struct bhi_list used; /* its place in the order of use */
    VkDescriptorSet sets[BHI_MAX_SETS];
    uint64_t bytes; /* the most that it takes of the driver's memory */
    uint32_t range_count;
    struct bhi_group_range ranges[]; /* indexed from bhi_reflected_binding.first on */
};

#define BHI_GROUP_LIMIT 4096u
/* The most that a worker's sets may take of a driver's memory. Some drivers have only
 * BHI_DRIVER_FILE_BYTES (reserve.h); a quarter of that is left for gaps. A full lane of the
 * smallest commands that each bind a set needs 126 MiB. */
#define BHI_GROUP_BYTES (UINT64_C(192) << 20)
/* The most memory that one byte of a record can take: a set takes a page, and a binding has 32
 * bytes. */
#define BHI_GROUP_BYTES_A_BYTE 128u

struct bhi_vk_groups {
    struct bhi_vk_device *device;
    struct bhi_map map;    /* by hash */
    struct bhi_list used;  /* all groups, least recently used first */
    struct bhi_list pools; /* all pools, newest first */
    uint32_t count, limit;
    uint64_t bytes, max_bytes;
    const struct bhi_vk_abort *abort; /* for kernels with the abort word in an own set */
};

/* Returns the group of |kernel| (READY) with |ranges|, and makes it if there is none. Takes a
 * reference. Returns NULL and *error on failure. */
struct bhi_vk_group *bhi_vk_group_get(struct bhi_vk_groups *groups,
                                      const struct bhi_vk_kernel *kernel,
                                      const struct bhi_group_range *ranges,
                                      struct bhi_error *error);
/* Removes groups without references until |bytes| fit. Returns false if that is not enough. */
bool bhi_vk_groups_make_room(struct bhi_vk_groups *groups, uint64_t bytes);
void bhi_vk_group_release(struct bhi_vk_groups *groups, struct bhi_vk_group *group);
/* Removes all groups that use |buffer| or belong to |kernel| (either may be NULL). They must have
 * no references left. */
void bhi_vk_groups_forget(struct bhi_vk_groups *groups, const struct bhi_vk_buffer *buffer,
                          const struct bhi_vk_kernel *kernel);
void bhi_vk_groups_fini(struct bhi_vk_groups *groups);

#endif
