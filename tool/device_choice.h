/* The option --device of the commands that create streams: finds the device of a selector. */
#ifndef BHI_TOOL_DEVICE_CHOICE_H
#define BHI_TOOL_DEVICE_CHOICE_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>

enum { BHI_SELECTOR = sizeof((bh_device_info *)0)->selector };

/* |device| is a selector, or a part of the name of one device. Starts a worker, so it blocks.
 * Returns BH_NO_DEVICE if no device or more than one matches; the detail lists the devices. Returns
 * BH_TIMEOUT if a signal came, or if no worker was ready in time. */
bh_status bhi_device_find(bh_context *context, const char *device, char out_selector[BHI_SELECTOR],
                          bh_detail *detail);
/* As bhi_device_find; a NULL |device| means the default device and gives an empty selector. Returns
 * an exit status; unless that is BHI_EXIT_READY, it has printed a message of |command|. */
int bhi_device_choose(const char *command, bh_context *context, const char *device,
                      char out_selector[BHI_SELECTOR]);

#endif
