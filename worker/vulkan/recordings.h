/* Recordings: command buffers kept by the full content of the record that they came from, so that
 * a submission that is repeated costs one vkQueueSubmit. */
#ifndef BHI_WORKER_VULKAN_RECORDINGS_H
#define BHI_WORKER_VULKAN_RECORDINGS_H

#include "base/list.h"
#include "base/map.h"
#include "worker/vulkan/groups.h"

struct bhi_vk_recording {
    struct bhi_chain chain; /* valid: by the hash of */
    /* the key: flags and commands of a record. */
    uint64_t hash;
    uint8_t *bytes;
    size_t size, capacity;
    bool valid; /* can be found; |commands| can be submitted */
    VkCommandBuffer commands;
    /* What it depends on, each once. */
    struct bhi_pointers {
        void **items;
        size_t count, capacity;
    } buffers, kernels, groups;
    uint32_t barriers;    /* between its commands, for tests */
    uint64_t last_run;    /* number of the last bhi_backend_run() */
    struct bhi_list used; /* its place in the order of use */
};

struct bhi_vk_recordings {
    struct bhi_map valid; /* by the hash of their keys */
    struct bhi_list used; /* all of them, the longest unused first */
    VkCommandPool pool;
    uint32_t count, max_count;
    size_t bytes, max_bytes; /* of keys */
};

bool bhi_pointers_add(struct bhi_pointers *list, void *item);

bool bhi_vk_recordings_init(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_error *error);
void bhi_vk_recordings_fini(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_vk_groups *groups);
uint64_t bhi_vk_recording_hash(const void *bytes, size_t size);
/* The valid recording of these bytes, made the newest; NULL: none. */
struct bhi_vk_recording *bhi_vk_recording_find(struct bhi_vk_recordings *recordings, uint64_t hash,
                                               const void *bytes, size_t size);
/* An empty recording with that key, not valid yet: a new one, or the least recently used that run
 * |run| does not use. NULL and *error on failure. */
struct bhi_vk_recording *bhi_vk_recording_take(struct bhi_vk_device *device,
                                               struct bhi_vk_recordings *recordings,
                                               struct bhi_vk_groups *groups, uint64_t run,
                                               uint64_t hash, const void *bytes, size_t size,
                                               struct bhi_error *error);
/* It has been recorded: it can be found from now on. */
void bhi_vk_recording_publish(struct bhi_vk_recordings *recordings,
                              struct bhi_vk_recording *recording);
/* Makes it empty: releases what it uses. */
void bhi_vk_recording_clear(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_vk_groups *groups, struct bhi_vk_recording *recording);
/* Clears one that is not in |recordings|'s own keeping, and frees its lists. */
void bhi_vk_recording_fini(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                           struct bhi_vk_groups *groups, struct bhi_vk_recording *recording);
/* Clears all that use |object|, a buffer or a kernel. */
void bhi_vk_recordings_forget(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                              struct bhi_vk_groups *groups, const void *object);

#endif
