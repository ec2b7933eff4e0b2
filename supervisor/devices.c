/* bh_devices: starts a worker for each supported driver, which reports the devices. */
#include "base/detail.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/selector.h"
#include "ipc/layers.h"
#include "ipc/refusal.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_NS (30ull * 1000000000)

/* The names in the worker's table of drivers (worker/sandbox/driver.c) that were tried, in the same
 * order, which is that of preference. CUDA's devices are those of another driver once more: they are
 * last, so that no first device and no "any" is one of them. */
static const char *const drivers[] = {"nvidia", "lavapipe", "swiftshader", "cuda"};

static const struct {
    uint64_t bit;
    const char *name;
} features[] = {
    {BHI_FEATURE_HOST_IMPORT, "externalMemoryHost"},
    {BHI_FEATURE_ROBUST_BUFFER, "robustBufferAccess"},
    {BHI_FEATURE_ROBUST_BUFFER_2, "robustBufferAccess2"},
    {BHI_FEATURE_NULL_DESCRIPTOR, "nullDescriptor"},
    {BHI_FEATURE_ZERO_WORKGROUP, "zeroInitializeWorkgroupMemory"},
    {BHI_FEATURE_DEVICE_FAULT, "deviceFault"},
    {BHI_FEATURE_TIMELINE, "timelineSemaphore"},
    {BHI_FEATURE_INT8, "shaderInt8"},
    {BHI_FEATURE_INT16, "shaderInt16"},
    {BHI_FEATURE_INT64, "shaderInt64"},
    {BHI_FEATURE_FLOAT16, "shaderFloat16"},
    {BHI_FEATURE_FLOAT64, "shaderFloat64"},
    {BHI_FEATURE_STORAGE_8, "storageBuffer8BitAccess"},
    {BHI_FEATURE_STORAGE_16, "storageBuffer16BitAccess"},
    {BHI_FEATURE_SUBGROUP_ARITH, "subgroupArithmetic"},
    {BHI_FEATURE_LOCAL_VISIBLE, "deviceLocalHostVisible"},
    {BHI_FEATURE_MEMORY_BUDGET, "memoryBudget"},
    {BHI_FEATURE_MEMORY_EXPORT, "memoryExport"},
    {BHI_FEATURE_ABORT_WORD, "abortWord"},
    {BHI_FEATURE_WHOLE_LOOPS, "wholeLoops"},
    {BHI_FEATURE_WHOLE_GRIDS, "wholeGrids"},
    {BHI_FEATURE_SENTINEL, "sentinel"},
};

static void describe(const struct bhi_msg_device *device, const char *driver, bh_device_info *out) {
    memset(out, 0, sizeof *out);
    bhi_format(out->selector, sizeof out->selector, "%s:%u", driver, device->index);
    memcpy(out->name, device->name, sizeof out->name);
    memcpy(out->driver, device->driver, sizeof out->driver);
    memcpy(out->driver_info, device->driver_info, sizeof out->driver_info);
    out->vendor_id = device->vendor_id;
    out->device_id = device->device_id;
    out->device_type = device->device_type;
    out->api_version = device->api_version;
    out->driver_version = device->driver_version;
    memcpy(out->uuid, device->uuid, sizeof out->uuid);
    out->memory_bytes = device->memory_bytes;
    out->memory_total = device->memory_total;
    out->memory_free = device->memory_free;
    out->memory_known = device->memory_known;
    bhi_device_address(device, out->pci);
    out->max_groups[0] = device->max_groups_x;
    out->max_groups[1] = device->max_groups_y;
    out->max_groups[2] = device->max_groups_z;
    out->max_group_invocations = device->max_group_invocations;
    out->max_shared_bytes = device->max_shared_bytes;
    out->max_push_bytes = device->max_push_bytes;
    out->max_storage_range = device->max_storage_range;
    out->max_uniform_range = device->max_uniform_range;
    out->storage_alignment = device->storage_alignment;
    out->uniform_alignment = device->uniform_alignment;
    out->import_alignment = device->import_alignment;
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (device->features & features[i].bit) {
            out->features[out->feature_count++] = features[i].name;
        }
    }
}

/* Lock held. Appends the devices that the stream's worker has reported; also if that could not
 * start and is gone. |out| has elements of |size| bytes. */
static void collect(const struct bh_stream *stream, const char *driver, void *out, size_t size,
                    size_t capacity, size_t *count) {
    const struct bhi_worker *worker = bhi_stream_worker(stream);
    const struct bhi_msg_device *devices = worker ? worker->devices : stream->seen_devices;
    uint32_t seen = worker ? worker->device_count : stream->seen_device_count;
    for (uint32_t i = 0; i < seen; i++, (*count)++) {
        if (*count >= capacity) {
            continue;
        }
        bh_device_info info = {.struct_size = sizeof info};
        describe(&devices[i], driver, &info);
        bhi_layout_put(out, *count, size, &info, sizeof info);
    }
}

BH_API bh_status bh_devices(bh_context *context, bh_device_info *out_devices, size_t capacity,
                            size_t *out_count, bh_detail *detail) {
    BHI_NEED(out_count, "bh_devices", detail);
    *out_count = 0;
    size_t size;
    BHI_TRY(bhi_context_check(context, "bh_devices", detail));
    BHI_TRY(bhi_callback_check("bh_devices", detail));
    BHI_TRY(bhi_layout_stride(BHI_OURS(bh_device_info), out_devices, capacity, "bh_devices",
                              "out_devices", &size, detail));
    bh_detail last = {.status = BH_NO_DEVICE};
    bh_detail absent = {0}; /* of the last Vulkan driver that is not there */
    char names[360] = "";
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        bh_stream_options options = {.struct_size = sizeof options};
        options.device = drivers[i];
        options.name = "devices";
        bh_stream *stream;
        BHI_TRY(bh_stream_create(context, &options, &stream, detail));
        bh_detail why = {0};
        const bh_status status = bh_stream_wait_ready(stream, TIMEOUT_NS, &why);
        bhi_context_lock(context);
        collect(stream, drivers[i], out_devices, size, capacity, out_count);
        bhi_context_unlock(context);
        /* A driver that is there and does not start says more than those that are not. */
        if (status != BH_OK && why.reason == BH_REASON_DRIVER_ABSENT) {
            const size_t used = strlen(names);
            bhi_format(names + used, sizeof names - used, "%s%.*s", used ? "; " : "",
                       why.sentence_length, why.message + why.sentence);
            absent = bhi_selector_is_cuda(drivers[i]) ? absent : why;
        } else if (status != BH_OK) {
            last = why;
        }
        bh_stream_release(stream);
    }
    if (*out_count) {
        return BH_OK;
    }
    if (!last.message[0]) {
        BHI_FAIL(&last, "", BH_REASON_NO_DRIVER, .text = names,
                 .advice = absent.advice ? absent.message + absent.advice : NULL);
    }
    if (detail) {
        *detail = last;
    }
    return last.status == BH_TIMEOUT ? BH_UNAVAILABLE : last.status;
}
