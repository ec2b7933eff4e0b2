/* The transfer queue sets words in memory that no processor can write, while the queue that runs
 * kernels hangs. On NVIDIA's GPUs memory that another process can import is not host-visible. So
 * the worker, too, sets abort words that a sentinel must reach (sentinel.h) in this way. Only one
 * thread at a time may use it. */
#ifndef BHI_WORKER_VULKAN_TRANSFER_H
#define BHI_WORKER_VULKAN_TRANSFER_H

#include "worker/vulkan/device.h"

/* Memory that holds abort words, with its own buffer. */
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
    bool lost; /* a command did not end in time: nothing more is tried */
};

VkResult bhi_vk_transfer_init(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                              const char **out_call);
void bhi_vk_transfer_fini(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer);

struct bhi_vk_fill {
    VkDeviceSize offset, size; /* VK_WHOLE_SIZE: all of it */
    uint32_t value;
};

/* Records commands that can run later, any number of times. NVIDIA's driver allocates while it
 * records, and waits for a lock. It holds this lock for seconds while it removes a process whose
 * kernel hangs. So what must work in that situation is recorded before. */
VkResult bhi_vk_transfer_record(struct bhi_vk_device *device,
                                const struct bhi_vk_transfer *transfer, VkBuffer buffer,
                                const struct bhi_vk_fill *fills, size_t count,
                                VkCommandBuffer *out);
void bhi_vk_transfer_discard(struct bhi_vk_device *device, const struct bhi_vk_transfer *transfer,
                             VkCommandBuffer *commands);
/* Runs the commands and waits until they are done, for at most a few seconds. */
VkResult bhi_vk_transfer_run(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                             VkCommandBuffer commands);
/* Records a fill, runs it and waits. */
VkResult bhi_vk_transfer_fill(struct bhi_vk_device *device, struct bhi_vk_transfer *transfer,
                              VkBuffer buffer, const struct bhi_vk_fill *fills, size_t count);

/* With |fd| < 0 makes memory of |size| bytes that can be exported; VK_ERROR_FORMAT_NOT_SUPPORTED if
 * no memory type can be. Else imports |fd|, of |size| bytes, and takes it over, also on failure. */
VkResult bhi_vk_words_create(struct bhi_vk_device *device, struct bhi_vk_words *words,
                             VkDeviceSize size, VkBufferUsageFlags usage, int fd,
                             const char **out_call);
void bhi_vk_words_destroy(struct bhi_vk_device *device, struct bhi_vk_words *words);
/* Returns a descriptor for another process, or -1 if there is none. */
int bhi_vk_words_export(struct bhi_vk_device *device, const struct bhi_vk_words *words);

#endif
