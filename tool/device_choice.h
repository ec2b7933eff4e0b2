/* The option --device of the commands that make streams of their own: finds the device by its
 * selector. */
#ifndef BHI_TOOL_DEVICE_CHOICE_H
#define BHI_TOOL_DEVICE_CHOICE_H

#include <bulkhead/bulkhead.h>

enum { BHI_SELECTOR = sizeof((bh_device_info *)0)->selector };

/* |device| is a selector, or a part of the name of one device. Starts a worker to find out; blocks.
 * BH_NO_DEVICE: there is none, or several; the detail says which there are. BH_TIMEOUT: a signal
 * has come, or no worker got ready. */
bh_status bhi_device_find(bh_context *context, const char *device, char out_selector[BHI_SELECTOR],
                          bh_detail *detail);
/* |device| is a selector, or a part of the name of one device; NULL: the default one, and the
 * selector is empty. Starts a worker to find out; blocks. Returns an exit status, having complained
 * for |command| where it is not BHI_EXIT_READY. */
int bhi_device_choose(const char *command, bh_context *context, const char *device,
                      char out_selector[BHI_SELECTOR]);

#endif
