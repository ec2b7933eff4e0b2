/* Recordings: command buffers, kept under the full content of their record. So a repeated
 * submission costs one vkQueueSubmit. */
#ifndef BHI_WORKER_VULKAN_RECORDINGS_H
#define BHI_WORKER_VULKAN_RECORDINGS_H

#include "base/list.h"
#include "base/map.h"
#include "worker/vulkan/groups.h"

struct bhi_vk_recording {
    struct bhi_chain chain; /* by |hash|, in the map; if valid */
    /* The key: the flags and commands of a record. */
    uint64_t hash;
    uint8_t *bytes;
    size_t size, capacity;
    bool valid; /* can be found; |commands| can be submitted */
    VkCommandBuffer commands;
    /* The objects that it uses, each once. */
    struct bhi_pointers {
        void **items;
        size_t count, capacity;
    } buffers, kernels, groups;
    uint32_t barriers;    /* barriers between its commands, for tests */
    uint64_t last_run;    /* number of the last bhi_backend_run() */
    struct bhi_list used; /* its place in the order of use */
};

struct bhi_vk_recordings {
    struct bhi_vk_device *device;
    struct bhi_vk_groups *groups;
    struct bhi_map valid; /* by the hash of their keys */
    struct bhi_list used; /* all recordings, least recently used first */
    VkCommandPool pool;
    uint32_t count, max_count;
    size_t bytes, max_bytes; /* of all keys */
};

bool bhi_pointers_add(struct bhi_pointers *list, void *item);

bool bhi_vk_recordings_init(struct bhi_vk_recordings *recordings, struct bhi_error *error);
void bhi_vk_recordings_fini(struct bhi_vk_recordings *recordings);
uint64_t bhi_vk_recording_hash(const void *bytes, size_t size);
/* Returns the valid recording of these bytes, and makes it the most recently used; NULL if there is
 * none. */
struct bhi_vk_recording *bhi_vk_recording_find(struct bhi_vk_recordings *recordings, uint64_t hash,
                                               const void *bytes, size_t size);
/* Returns an empty recording with this key, which is not valid yet: a new one, or the least
 * recently used one that run |run| does not use. Returns NULL and *error on failure. */
struct bhi_vk_recording *bhi_vk_recording_take(struct bhi_vk_recordings *recordings, uint64_t run,
                                               uint64_t hash, const void *bytes, size_t size,
                                               struct bhi_error *error);
/* Makes a finished recording valid, so that it can be found. */
void bhi_vk_recording_publish(struct bhi_vk_recordings *recordings,
                              struct bhi_vk_recording *recording);
/* Empties the recording and releases what it uses. */
void bhi_vk_recording_clear(struct bhi_vk_recordings *recordings,
                            struct bhi_vk_recording *recording);
/* Clears a recording that |recordings| does not own, and frees its lists. */
void bhi_vk_recording_fini(struct bhi_vk_recordings *recordings,
                           struct bhi_vk_recording *recording);
/* Clears all recordings that use |object|, a buffer or a kernel. */
void bhi_vk_recordings_forget(struct bhi_vk_recordings *recordings, const void *object);

/* Removes all groups and recordings that were made for |kernel|'s pipeline or layouts. */
void bhi_vk_forget_kernel(struct bhi_vk_recordings *recordings, const struct bhi_vk_kernel *kernel);
/* Evicts pipelines beyond the limit that |run| does not use, with the recordings and groups that
 * use them. */
void bhi_vk_evict_pipelines(struct bhi_vk_recordings *recordings, struct bhi_vk_kernels *kernels,
                            uint64_t run);

#endif
