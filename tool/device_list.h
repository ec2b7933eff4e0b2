/* The devices of this machine, and finding one by a part of its name. */
#ifndef BHI_TOOL_DEVICE_LIST_H
#define BHI_TOOL_DEVICE_LIST_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

#include "tool/text.h"

struct bhi_device_list {
    bh_device_info *devices; /* owned */
    size_t count;
};

/* Asks the library; blocks while workers start. BH_NO_DEVICE where there are none. */
bh_status bhi_device_list_fetch(bh_context *context, struct bhi_device_list *out_list,
                                bh_detail *detail);
void bhi_device_list_free(struct bhi_device_list *list);

/* DRIVER:INDEX, DRIVER, INDEX, or a part of a name, as --device has it; NULL, "" or "any": the first.
 * NULL: there is none. */
const bh_device_info *bhi_device_list_select(const struct bhi_device_list *list,
                                             const char *device);
/* What binding a buffer is limited by, on the device that bhi_device_list_select finds; for "any" on
 * each that the library may choose. False: there is none. */
bool bhi_device_list_limits(const struct bhi_device_list *list, const char *device,
                            uint64_t *out_range, uint32_t *out_alignment);
/* The one device whose name or driver contains |part| (letter case does not count), which is no
 * number: that is an index. BH_NO_DEVICE:
 * none does; BH_INVALID_ARGUMENT: several do; the complaint lists the selectors. */
bh_status bhi_device_list_find(const struct bhi_device_list *list, const char *part,
                               const bh_device_info **out_device, struct bhi_complaint *complaint);

#endif
