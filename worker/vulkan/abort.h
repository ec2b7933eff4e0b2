/* The abort words: how what runs on the device is told to end.
 *
 * Guarded kernels (guard.h) look at a word in their slot of this buffer now and then, and return
 * when it is set. A queue submission has a slot for each of its records, so that the end of one is
 * no other's (E4, E13); the last slot is always set, for kernels that are only to be compiled. Each
 * slot has a descriptor set of its own, which is bound as the guard's. A kernel that has no set
 * free for that has the whole buffer in one of its own, and the slot is the dynamic offset. Not for
 * all kernels: lavapipe since Mesa 24 makes a copy of the set, in memory that it maps and unmaps,
 * whenever one is bound with a dynamic offset and run.
 *
 * begin and end are the session's thread, abort is the watchdog's (watchdog.h).
 *
 * Where the device has a transfer queue of its own, and shares its memory with other processes, the
 * words are in memory that a sentinel imports (sentinel.h), and are set by that queue (transfer.h).
 * Elsewhere the processor writes them.
 */
#ifndef BHI_WORKER_VULKAN_ABORT_H
#define BHI_WORKER_VULKAN_ABORT_H

#include "worker/guard/guard.h"
#include "worker/vulkan/transfer.h"

#include <pthread.h>

#define BHI_ABORT_SLOTS 64u             /* records in one vkQueueSubmit */
#define BHI_ABORT_SET   BHI_ABORT_SLOTS /* the slot that is always set */
#define BHI_ABORT_SETS  (BHI_ABORT_SLOTS + 1)

struct bhi_vk_abort {
    VkBuffer buffer; /* for kernels that have no set free it is in one of their own (groups.c) */
    VkDeviceMemory memory;
    VkDescriptorSetLayout layout; /* of the guard's set */
    VkDescriptorSetLayout empty;  /* of sets between it and the kernel's own */
    VkDescriptorPool pool;
    VkDescriptorSet sets[BHI_ABORT_SETS]; /* one a slot */
    uint8_t *slots;                       /* mapped; NULL: remote */
    /* A sentinel can reach them, and no processor: |buffer| is that of |words|. */
    bool remote;
    struct bhi_vk_words words;
    struct bhi_vk_device *device;
    bool visible_to_kernels; /* what runs sees what is written there */
    bool mutex_made;         /* and must be destroyed */
    pthread_mutex_t mutex;
    /* Under the mutex: */
    struct bhi_vk_transfer transfer;
    uint64_t wanted;  /* the last one that was to end */
    bool all_aborted; /* whatever runs is to end, now and from now on */
    uint64_t running[BHI_ABORT_SLOTS];
    uint32_t count;
    uint64_t aborted; /* a bit for each slot */
};

bool bhi_vk_abort_init(struct bhi_vk_device *device, struct bhi_vk_abort *abort,
                       struct bhi_error *error);
void bhi_vk_abort_fini(struct bhi_vk_device *device, struct bhi_vk_abort *abort);
/* As what the words are bound in a kernel's own set: the slot is the dynamic offset. */
static inline VkDescriptorSetLayoutBinding bhi_vk_abort_binding(uint32_t binding) {
    return (VkDescriptorSetLayoutBinding){.binding = binding,
                                          .descriptorType =
                                              VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC,
                                          .descriptorCount = 1,
                                          .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
}
static inline uint32_t bhi_vk_abort_offset(uint32_t slot) {
    return slot * 256;
}
/* The words become what |binding| of |set|, of such a layout, stands for. */
void bhi_vk_abort_write_shared(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                               VkDescriptorSet set, uint32_t binding);
/* |seqs| are about to be given to the device, in slots 0, 1, … */
void bhi_vk_abort_begin(struct bhi_vk_abort *abort, const uint64_t *seqs, uint32_t count);
/* The device is done with them. Returns a bit for each slot that was told to end, and makes them
 * ready for the next. *out_lost: that failed, and nothing more can be run. */
uint64_t bhi_vk_abort_end(struct bhi_vk_abort *abort, bool *out_lost);
/* Has |seq| end, if it runs or is about to. */
void bhi_vk_abort_one(struct bhi_vk_abort *abort, uint64_t seq);
/* Has whatever runs end, and whatever is given to the device after this. */
void bhi_vk_abort_all(struct bhi_vk_abort *abort);
/* A descriptor of the words' memory, of *out_bytes bytes; -1: there is none to be had. */
int bhi_vk_abort_export(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                        uint64_t *out_bytes);
/* Takes what the kernels have written: BHI_GUARD_… bits. Not of words that are remote. */
uint32_t bhi_vk_abort_flags(struct bhi_vk_abort *abort, uint32_t slot);

#endif
