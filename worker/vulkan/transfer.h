/* The transfer queue: sets words in memory that no processor can write, while the queue that runs
 * kernels hangs. On NVIDIA's GPUs memory that another process can import is not host-visible, so
 * that abort words which a sentinel shall reach (sentinel.h) are set in this way by the worker
 * itself, too. Who uses it sees to it that it is one thread at a time. */
#ifndef BHI_WORKER_VULKAN_TRANSFER_H
#define BHI_WORKER_VULKAN_TRANSFER_H

#include "worker/vulkan/device.h"

/* Memory that holds abort words: a buffer of its own. */
struct bhi_vk_words {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize bytes; /* of the memory */
};

struct bhi_vk_transfer {
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    bool lost; /* the device did not end what it was given: nothing is tried any more */
};

VkResult bhi_vk_transfer_init(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                              const char **out_call);
void bhi_vk_transfer_fini(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer);

struct bhi_vk_fill {
    VkDeviceSize offset, size; /* VK_WHOLE_SIZE: all of it */
    uint32_t value;
};

/* Recorded to be run later, any number of times. NVIDIA's driver allocates as it records, and waits
 * for a lock with that which it also holds, for seconds, while it takes down a process whose kernel
 * hangs: what has to work just then is recorded before. */
VkResult bhi_vk_transfer_record(struct bhi_vk_device *device,
                                const struct bhi_vk_transfer *transfer, VkBuffer buffer,
                                const struct bhi_vk_fill *fills, size_t count,
                                VkCommandBuffer *out);
void bhi_vk_transfer_discard(struct bhi_vk_device *device, const struct bhi_vk_transfer *transfer,
                             VkCommandBuffer *commands);
/* Waits until it is done, for a few seconds at the most. */
VkResult bhi_vk_transfer_run(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                             VkCommandBuffer commands);
/* Records and runs. */
VkResult bhi_vk_transfer_fill(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                              VkBuffer buffer, const struct bhi_vk_fill *fills, size_t count);

/* |fd| < 0: makes memory of |size| bytes, to be exported; VK_ERROR_FORMAT_NOT_SUPPORTED where no
 * type will do. Else imports |fd|, of |size| bytes, and takes it over, also on failure. */
VkResult bhi_vk_words_create(struct bhi_vk_device *device, struct bhi_vk_words *words,
                             VkDeviceSize size, VkBufferUsageFlags usage, int fd,
                             const char **out_call);
void bhi_vk_words_destroy(struct bhi_vk_device *device, struct bhi_vk_words *words);
/* A descriptor for another process; -1: there is none to be had. */
int bhi_vk_words_export(struct bhi_vk_device *device, const struct bhi_vk_words *words);

#endif
