#include "base/format.h"
#include "base/selector.h"
#include "base/text.h"
#include "ipc/layers.h"
#include "ipc/wire.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/worker_proc.h"

#include <stdio.h>
#include <string.h>

/* VkPhysicalDeviceType */
#define DEVICE_TYPE_DISCRETE 2
#define DEVICE_TYPE_CPU      4

void bhi_stream_learn_device(struct bh_stream *stream, const struct bhi_worker *worker) {
    const struct bhi_msg_device *told = worker->devices;
    for (uint32_t i = 0; i < worker->device_count; i++) {
        if (!told[i].chosen) {
            continue;
        }
        struct bhi_stream_device *device = &stream->runs_on;
        *device = (struct bhi_stream_device){
            .known = true,
            .is_cpu = told[i].device_type == DEVICE_TYPE_CPU,
            .is_discrete = told[i].device_type == DEVICE_TYPE_DISCRETE,
            .features = told[i].features,
        };
        memcpy(device->selector, worker->core.device, sizeof device->selector);
        memcpy(device->uuid, told[i].uuid, sizeof device->uuid);
        bhi_text_line(device->name, sizeof device->name, told[i].name, strlen(told[i].name));
        if (bhi_selector_is_cuda(device->selector)) {
            /* Vulkan does not take what CUDA has made, nor CUDA what Vulkan has: of device memory a
             * GPU is two devices. */
            device->uuid[0] ^= 0xff;
            bhi_format(device->name, sizeof device->name, "%.200s (CUDA)", told[i].name);
        }
    }
}

bool bhi_stream_may_run(const struct bh_stream *stream, enum bhi_kernel_format format) {
    const struct bhi_stream_device *device = &stream->runs_on;
    char driver[BHI_DRIVER_NAME];
    uint32_t index;
    (void)bhi_selector_parse(device->known ? device->selector : stream->device, driver, &index);
    return !driver[0] || bhi_selector_is_cuda(driver) == (format == BHI_KERNEL_IMAGE);
}

BH_API bh_status bh_stream_device(bh_stream *stream, char out_selector[48]) {
    if (!out_selector || !BHI_LIVE(stream)) {
        return BH_INVALID_ARGUMENT;
    }
    bh_context *context = stream->context;
    if (bhi_context_forked(context)) {
        return BH_FORKED;
    }
    bhi_context_lock(context);
    snprintf(out_selector, sizeof stream->runs_on.selector, "%s",
             stream->runs_on.known ? stream->runs_on.selector : "");
    bhi_context_unlock(context);
    return BH_OK;
}

bool bhi_stream_shares_memory(const struct bh_stream *stream) {
    const struct bhi_stream_device *device = &stream->runs_on;
    return device->known && (device->is_cpu || (device->features & BHI_FEATURE_MEMORY_EXPORT));
}

enum bhi_may_use bhi_stream_may_use(struct bh_stream *stream, struct bh_stream *home, bool writes,
                                    char *why, size_t size) {
    if (home == stream) {
        return BHI_USE_IT;
    }
    const struct bhi_stream_device *there = &home->runs_on, *here = &stream->runs_on;
    const bool same_tenant = strcmp(home->tenant, stream->tenant) == 0;
    if (there->known && here->known && memcmp(there->uuid, here->uuid, sizeof here->uuid) != 0) {
        snprintf(why, size,
                 "the buffer is in the memory of device %s (stream %s), and stream %s runs on %s: "
                 "copy it through host memory",
                 there->name, home->core.name, stream->core.name, here->name);
        return !writes                                           ? BHI_USE_REPLICA
               : same_tenant && bhi_stream_shares_memory(stream) ? BHI_USE_MOVED
                                                                 : BHI_USE_NO;
    }
    if (same_tenant || (there->is_cpu && !writes)) {
        return BHI_USE_IT;
    }
    snprintf(why, size,
             "the buffer is in device memory of tenant \"%s\" (stream %s): stream %s of tenant "
             "\"%s\" can read it, and not write it",
             home->tenant, home->core.name, stream->core.name, stream->tenant);
    return writes ? BHI_USE_NO : BHI_USE_REPLICA;
}
