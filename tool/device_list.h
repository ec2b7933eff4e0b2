/* The devices of this machine, and how to find one by a part of its name. */
#ifndef BHI_TOOL_DEVICE_LIST_H
#define BHI_TOOL_DEVICE_LIST_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/selector.h"
#include "tool/text.h"

static inline bool bhi_device_is_cpu(const bh_device_info *device) {
    return device->device_type == 4; /* VK_PHYSICAL_DEVICE_TYPE_CPU */
}

/* A GPU once more, for CUDA: it is found by its selector alone. */
static inline bool bhi_device_is_cuda(const bh_device_info *device) {
    return bhi_selector_is_cuda(device->selector);
}

struct bhi_device_list {
    bh_device_info *devices; /* owned */
    size_t count;
};

/* Asks the library for the devices. Blocks while workers start. Returns BH_NO_DEVICE if there is
 * none. */
bh_status bhi_device_list_fetch(bh_context *context, struct bhi_device_list *out_list,
                                bh_detail *detail);
/* The same on a thread of its own, so that a signal ends it (tool/task.h): then the context was
 * destroyed, *context is NULL, and the return value BH_CLOSED. *out_exit is the exit status of
 * |command|. What failed was reported. */
bh_status bhi_device_list_ask(const char *command, bh_context **context,
                              struct bhi_device_list *out_list, int *out_exit);
void bhi_device_list_free(struct bhi_device_list *list);

/* Finds a device as --device does, by DRIVER:INDEX, DRIVER, INDEX, or a part of its name. NULL, ""
 * and "any" find the first device. Returns NULL if there is none. */
const bh_device_info *bhi_device_list_select(const struct bhi_device_list *list,
                                             const char *device);
/* Returns true if a stream that is made with |device| may run on |candidate|, which is in the list:
 * "any" means all devices of the first one's driver. */
bool bhi_device_list_serves(const struct bhi_device_list *list, const char *device,
                            const bh_device_info *candidate);
/* Vulkan's smallest maxStorageBufferRange: up to this no device need be asked. */
#define BHI_RANGE_OF_ALL (UINT64_C(128) << 20)
/* The limits for binding buffers of the device that bhi_device_list_select finds. For "any" they
 * are the strictest limits of all devices that the library may choose. Returns false if there is no
 * device. */
bool bhi_device_list_limits(const struct bhi_device_list *list, const char *device,
                            uint64_t *out_range, uint32_t *out_alignment);
/* Finds the one device whose name or driver contains |part|; letter case does not count. A number
 * is compared with the selectors only. Returns BH_NO_DEVICE if none matches and BH_INVALID_ARGUMENT
 * if several do; the detail lists their selectors and has the reason SELECTOR. */
bh_status bhi_device_list_find(const struct bhi_device_list *list, const char *part,
                               const bh_device_info **out_device, bh_detail *detail);

#endif
