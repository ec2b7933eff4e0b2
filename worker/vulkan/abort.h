/* The abort words stop what runs on the device.
 *
 * A guarded kernel (guard.h) regularly reads the word of its slot in this buffer, and returns when
 * it is set. A queue submission has a slot for each of its records, so that each record can be
 * ended alone (E4, E13). The last slot is always set, for kernels that are only to be compiled.
 * Each slot has a descriptor set of its own, which is bound as the guard's set. If a kernel has no
 * set left for it, one of its own sets has the whole buffer, and the slot is the dynamic offset.
 * This is not done for all kernels: whenever a set with a dynamic offset is bound and run, lavapipe
 * since Mesa 24 copies the set, into memory that it maps and unmaps.
 *
 * The session's thread calls begin and end; the watchdog's threads (watchdog.h) call the abort
 * functions.
 *
 * If the device has a separate transfer queue and can share its memory with other processes, the
 * words are in memory that a sentinel imports (sentinel.h), and that queue sets them (transfer.h).
 * Otherwise the processor writes them.
 */
#ifndef BHI_WORKER_VULKAN_ABORT_H
#define BHI_WORKER_VULKAN_ABORT_H

#include "worker/guard/guard.h"
#include "worker/vulkan/transfer.h"

#include <pthread.h>

#define BHI_ABORT_SLOTS 64u             /* records in one vkQueueSubmit */
#define BHI_ABORT_SET   BHI_ABORT_SLOTS /* the slot whose word is always set */
#define BHI_ABORT_SETS  (BHI_ABORT_SLOTS + 1)

struct bhi_vk_abort {
    VkBuffer buffer; /* groups.c also binds it in a set of a kernel that has no free set */
    VkDeviceMemory memory;
    VkDescriptorSetLayout layout; /* of the guard's set */
    VkDescriptorSetLayout empty;  /* of sets between the kernel's own and the guard's */
    VkDescriptorPool pool;
    VkDescriptorSet sets[BHI_ABORT_SETS]; /* one for each slot */
    uint8_t *slots;                       /* mapped; NULL: remote */
    /* The words are in memory that a sentinel can reach, and no processor: |buffer| is that of
     * |words|. */
    bool remote;
    struct bhi_vk_words words;
    struct bhi_vk_device *device;
    bool visible_to_kernels; /* running kernels see what is written there */
    bool mutex_made;         /* the mutex was made and must be destroyed */
    pthread_mutex_t mutex;
    /* Used with the mutex: */
    struct bhi_vk_transfer transfer;
    uint64_t wanted;  /* the last seq that was to be aborted */
    bool all_aborted; /* all that runs, and all later records, are to end */
    uint64_t running[BHI_ABORT_SLOTS];
    uint32_t count;
    uint64_t aborted; /* slots that were aborted: a bit for each */
};

bool bhi_vk_abort_init(struct bhi_vk_device *device, struct bhi_vk_abort *abort,
                       struct bhi_error *error);
void bhi_vk_abort_fini(struct bhi_vk_device *device, struct bhi_vk_abort *abort);
/* How the words are bound in a kernel's own set: the slot is the dynamic offset. */
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
/* Writes the words to |binding| of |set|, which has such a layout. */
void bhi_vk_abort_write_shared(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                               VkDescriptorSet set, uint32_t binding);
/* Call it before the records |seqs| go to the device, in slots 0, 1, … */
void bhi_vk_abort_begin(struct bhi_vk_abort *abort, const uint64_t *seqs, uint32_t count);
/* Call it after the device has finished them. Returns a bit for each slot that was aborted, and
 * clears the slots. *out_lost: clearing failed, and nothing more can run. */
uint64_t bhi_vk_abort_end(struct bhi_vk_abort *abort, bool *out_lost);
/* Ends |seq|, if it runs or is about to. */
void bhi_vk_abort_one(struct bhi_vk_abort *abort, uint64_t seq);
/* Ends whatever runs, and all that goes to the device later. */
void bhi_vk_abort_all(struct bhi_vk_abort *abort);
/* Returns a descriptor of the words' memory, of *out_bytes bytes, or -1 if there is none. */
int bhi_vk_abort_export(struct bhi_vk_device *device, const struct bhi_vk_abort *abort,
                        uint64_t *out_bytes);
/* Returns and clears the BHI_GUARD_… bits that the kernels have written. Not for remote words. */
uint32_t bhi_vk_abort_flags(struct bhi_vk_abort *abort, uint32_t slot);

#endif
