/* The device of a worker: Vulkan calls that fail, what is done between its steps, and false times. */
#include "faults.h"
#include "tests/harness/noise.h"
#include "wrap.h"

#include "base/memfd.h"
#include "ipc/commands.h"
#include "ipc/lane.h"
#include "ipc/layers.h"
#include "worker/error.h"
#include "worker/sandbox/driver.h"
#include "worker/sentinel.h"
#include "worker/vulkan/export.h"
#include "worker/vulkan/memory.h"
#include "worker/vulkan/recorder.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static struct {
    struct bhi_vk_backend *backend;
    struct bhi_vk_device *beginning; /* NULL: none */
    const struct bhi_vk_device *only;
    PFN_vkUnmapMemory unmap;
    bool learning;
    bool making, importing;        /* device memory */
    bool attaching, no_attachment; /* a buffer, which has no memory */
    size_t refused;                /* bytes of the allocation that is to fail; 0: none */
} device;

/* The batch that is prepared, or is on the device. */
static struct {
    bool submitting; /* between bhi_vk_abort_begin and _end */
    bool cheats;     /* a kernel called "cheat" is in it */
    bool single;     /* its first record has one command */
    uint32_t count;
    size_t trusted; /* kernels */
    uint64_t timed;
    VkFence fence;           /* NULL: the device is done */
    VkCommandBuffer put_off; /* reported as complete, and not submitted yet */
    bool published;          /* … and the host has that report */
} batch;

/* -- Vulkan calls ----------------------------------------------------------------------------- */

/* The driver's own functions. One copy is enough, because a worker has one device. */
static struct bhi_vk_api real;

#define CREATES(X, kind)                                                                           \
    X(Create##kind,                                                                                \
      (VkDevice a, const Vk##kind##CreateInfo *b, const VkAllocationCallbacks *c, Vk##kind *d),    \
      (a, b, c, d))
/* X(name, parameters, arguments) for each function that returns a VkResult. */
#define BREAKABLE(X)                                                                               \
    X(CreateInstance,                                                                              \
      (const VkInstanceCreateInfo *a, const VkAllocationCallbacks *b, VkInstance *c), (a, b, c))   \
    X(EnumeratePhysicalDevices, (VkInstance a, uint32_t *b, VkPhysicalDevice *c), (a, b, c))       \
    X(EnumerateDeviceExtensionProperties,                                                          \
      (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d), (a, b, c, d))    \
    X(CreateDevice,                                                                                \
      (VkPhysicalDevice a, const VkDeviceCreateInfo *b, const VkAllocationCallbacks *c,            \
       VkDevice *d),                                                                               \
      (a, b, c, d))                                                                                \
    X(DeviceWaitIdle, (VkDevice a), (a))                                                           \
    X(MapMemory,                                                                                   \
      (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e,           \
       void **f),                                                                                  \
      (a, b, c, d, e, f))                                                                          \
    X(GetMemoryHostPointerPropertiesEXT,                                                           \
      (VkDevice a, VkExternalMemoryHandleTypeFlagBits b, const void *c,                            \
       VkMemoryHostPointerPropertiesEXT *d),                                                       \
      (a, b, c, d))                                                                                \
    CREATES(X, Buffer)                                                                             \
    X(BindBufferMemory, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d), (a, b, c, d))  \
    CREATES(X, Fence)                                                                              \
    X(ResetFences, (VkDevice a, uint32_t b, const VkFence *c), (a, b, c))                          \
    CREATES(X, ShaderModule)                                                                       \
    CREATES(X, DescriptorSetLayout)                                                                \
    CREATES(X, PipelineLayout)                                                                     \
    CREATES(X, DescriptorPool)                                                                     \
    X(AllocateDescriptorSets,                                                                      \
      (VkDevice a, const VkDescriptorSetAllocateInfo *b, VkDescriptorSet *c), (a, b, c))           \
    X(FreeDescriptorSets, (VkDevice a, VkDescriptorPool b, uint32_t c, const VkDescriptorSet *d),  \
      (a, b, c, d))                                                                                \
    CREATES(X, CommandPool)                                                                        \
    X(AllocateCommandBuffers,                                                                      \
      (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c))           \
    X(BeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b))          \
    X(EndCommandBuffer, (VkCommandBuffer a), (a))                                                  \
    CREATES(X, QueryPool)                                                                          \
    X(GetQueryPoolResults,                                                                         \
      (VkDevice a, VkQueryPool b, uint32_t c, uint32_t d, size_t e, void *f, VkDeviceSize g,       \
       VkQueryResultFlags h),                                                                      \
      (a, b, c, d, e, f, g, h))

#define VULKAN(name, parameters) static VKAPI_ATTR VkResult VKAPI_CALL break_##name parameters
#define FAIL_AT(point)                                                                             \
    do {                                                                                           \
        const int fails = bhi_fault_vulkan(BHI_AT_start_##point, BHI_AT_##point);                  \
        if (fails != 0) {                                                                          \
            return (VkResult)fails;                                                                \
        }                                                                                          \
    } while (0)

#define WRAPPER(name, parameters, arguments)                                                       \
    VULKAN(name, parameters) {                                                                     \
        FAIL_AT(vk);                                                                               \
        return real.name arguments;                                                                \
    }
BREAKABLE(WRAPPER)

/* Fills fresh memory with noise, if the processor can. Nobody uses the reserve (worker/vulkan/reserve.c). */
static void spoil(VkDevice a, const VkMemoryAllocateInfo *b, VkDeviceMemory memory) {
    void *bytes;
    if (device.only && bht_is_fresh(b) && b->allocationSize != BHI_DRIVER_FILE_BYTES &&
        device.only->memory.memoryTypes[b->memoryTypeIndex].propertyFlags &
            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
        real.MapMemory(a, memory, 0, VK_WHOLE_SIZE, 0, &bytes) == VK_SUCCESS) {
        bht_noise(bytes, b->allocationSize);
        device.unmap(a, memory);
    }
}

VULKAN(AllocateMemory, (VkDevice a, const VkMemoryAllocateInfo *b, const VkAllocationCallbacks *c,
                        VkDeviceMemory *d)) {
    if ((device.making || device.importing) && lies(make_full)) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (device.importing && lies(import)) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    FAIL_AT(vk);
    const VkResult result = real.AllocateMemory(a, b, c, d);
    if (result == VK_SUCCESS) {
        spoil(a, b, *d);
    }
    return result;
}

VULKAN(GetMemoryFdKHR, (VkDevice a, const VkMemoryGetFdInfoKHR *b, int *c)) {
    if (device.making) {
        passes(made);
    }
    return real.GetMemoryFdKHR(a, b, c);
}

VULKAN(CreateComputePipelines,
       (VkDevice a, VkPipelineCache b, uint32_t c, const VkComputePipelineCreateInfo *d,
        const VkAllocationCallbacks *e, VkPipeline *f)) {
    if (lies(pipeline)) {
        return VK_ERROR_UNKNOWN;
    }
    FAIL_AT(vk);
    return real.CreateComputePipelines(a, b, c, d, e, f);
}

VULKAN(QueueSubmit, (VkQueue queue, uint32_t count, const VkSubmitInfo *info, VkFence fence)) {
    const bool copies = device.backend && queue == device.backend->copies.queue;
    const bool runs = batch.submitting && !copies;
    if (runs) {
        for (size_t i = 0; i < batch.trusted; i++) {
            passes(trusted);
        }
        batch.fence = fence;
        if (batch.cheats && batch.timed == 0) {
            passes(lie_asleep);
        } else if (batch.cheats && batch.count == 1 && lies(lie_late)) {
            batch.put_off = info->pCommandBuffers[info->commandBufferCount - 1];
            return VK_SUCCESS;
        }
    }
    FAIL_AT(vk);
    const VkResult result = real.QueueSubmit(queue, count, info, fence);
    if (runs) {
        passes(submitted);
    }
    return copies && lies(copying) ? VK_ERROR_DEVICE_LOST : result;
}

/* |result| of a wait for |fence|, as it is reported. */
static VkResult waited(VkFence fence, VkResult result) {
    if (result != VK_SUCCESS || !batch.submitting || fence != batch.fence) {
        return result;
    }
    batch.fence = VK_NULL_HANDLE;
    return lies(waited) ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

static bool is_put_off(VkFence fence) {
    return batch.put_off != VK_NULL_HANDLE && fence == batch.fence;
}

VULKAN(GetFenceStatus, (VkDevice a, VkFence fence)) {
    FAIL_AT(vk_poll);
    return waited(fence, is_put_off(fence) ? VK_SUCCESS : real.GetFenceStatus(a, fence));
}

VULKAN(WaitForFences, (VkDevice a, uint32_t b, const VkFence *c, VkBool32 d, uint64_t e)) {
    FAIL_AT(vk);
    return waited(c[0], is_put_off(c[0]) ? VK_SUCCESS : real.WaitForFences(a, b, c, d, e));
}

/* Puts a wrapper before each loaded function that has none yet. */
static const char *break_all(struct bhi_vk_api *api, const char *missing) {
#define PUT(name, parameters, arguments)                                                           \
    if (api->name && api->name != break_##name) {                                                  \
        real.name = api->name;                                                                     \
        api->name = break_##name;                                                                  \
    }
    BREAKABLE(PUT)
    PUT(AllocateMemory, , )
    PUT(GetMemoryFdKHR, , )
    PUT(CreateComputePipelines, , )
    PUT(QueueSubmit, , )
    PUT(GetFenceStatus, , )
    PUT(WaitForFences, , )
    return missing;
}

WRAP(const char *, bhi_vk_api_global, struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get) {
    return break_all(api, __real_bhi_vk_api_global(api, get));
}

WRAP(const char *, bhi_vk_api_instance, struct bhi_vk_api *api, PFN_vkGetInstanceProcAddr get,
     VkInstance instance) {
    return break_all(api, __real_bhi_vk_api_instance(api, get, instance));
}

WRAP(const char *, bhi_vk_api_device, struct bhi_vk_api *api, VkDevice of) {
    device.unmap = (PFN_vkUnmapMemory)api->GetDeviceProcAddr(of, "vkUnmapMemory");
    return break_all(api, __real_bhi_vk_api_device(api, of));
}

WRAP(bool, bhi_vk_device_init, struct bhi_vk_device *of, const struct bhi_backend_config *config,
     struct bhi_error *error) {
    device.beginning = of;
    device.only = of;
    const bool good = __real_bhi_vk_device_init(of, config, error);
    device.beginning = NULL;
    return good;
}

/* The first call after a device's properties are known and before they are used. */
WRAP(uint32_t, bhi_vk_transfer_family, const struct bhi_vk_api *api, VkPhysicalDevice physical,
     bool has_memory_fd, bool whole_loops) {
    struct bhi_vk_device *of = device.beginning;
    if (of && of->is_cpu && lies(poses_as_gpu)) {
        of->exports = has_memory_fd;
    }
    return __real_bhi_vk_transfer_family(api, physical, has_memory_fd, whole_loops);
}

/* -- what the session has it do --------------------------------------------------------------- */

WRAP(struct bhi_backend *, bhi_backend_create, const struct bhi_backend_config *config,
     struct bhi_error *error) {
    if (lies(device)) {
        *error =
            (struct bhi_error){.status = BH_VULKAN, .told.text = "vkCreateDevice: injected fault"};
        return NULL;
    }
    struct bhi_backend *backend = __real_bhi_backend_create(config, error);
    device.backend = backend && backend->ops == &bhi_vulkan ? bhi_vk(backend) : NULL;
    return backend;
}

WRAP(bool, bhi_backend_warm_up, struct bhi_backend *backend, struct bhi_error *error) {
    if (lies(warm_up)) {
        *error = (struct bhi_error){.status = BH_VULKAN, .told.text = "warm-up: injected fault"};
        return false;
    }
    return __real_bhi_backend_warm_up(backend, error);
}

WRAP(size_t, bhi_backend_devices, const struct bhi_backend_config *config,
     const struct bhi_backend *backend, struct bhi_msg_device *out, size_t capacity) {
    const size_t count = __real_bhi_backend_devices(config, backend, out, capacity);
    for (size_t i = 0; i < count; i++) {
        if (out[i].features & BHI_FEATURE_MEMORY_EXPORT &&
            out[i].device_type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
            out[i].device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
        }
    }
    return count;
}

/* A traced driver has no session: `ready` is before the first of these. */
static void begin_trace(void) {
    if (bhi_faults.tracer && !bhi_faults.running) {
        passes(ready);
    }
}

WRAP(void, bhi_backend_cache_attach, struct bhi_backend *backend, int fd, uint64_t room) {
    begin_trace();
    __real_bhi_backend_cache_attach(backend, fd, room);
}

WRAP(void, bhi_backend_attach, struct bhi_backend *backend, uint64_t id, int fd, uint64_t size,
     enum bhi_attach access) {
    begin_trace();
    __real_bhi_backend_attach(backend, id, fd, size, access);
}

WRAP(int32_t, bhi_sentinel_device_import, struct bhi_sentinel_device *sentinel, uint64_t worker,
     int fd, uint64_t bytes) {
    begin_trace();
    passes(import);
    return __real_bhi_sentinel_device_import(sentinel, worker, fd, bytes);
}

WRAP(int32_t, bhi_sentinel_device_set, struct bhi_sentinel_device *sentinel, uint64_t worker) {
    passes(set);
    return __real_bhi_sentinel_device_set(sentinel, worker);
}

WRAP(void, bhi_backend_abort, struct bhi_backend *backend, uint64_t seq) {
    if (!lies(abort)) {
        __real_bhi_backend_abort(backend, seq);
    }
}

/* -- buffers ---------------------------------------------------------------------------------- */

WRAP(struct bhi_vk_buffer *, bhi_vk_buffer_attach, struct bhi_vk_device *of, uint64_t id, int fd,
     uint64_t size, enum bhi_attach access) {
    const bool reads = of->imports_read_only;
    device.attaching = true;
    device.no_attachment = lies(attach);
    of->imports_read_only = reads && !(access != BHI_ATTACH_WRITE && lies(import_read_only));
    struct bhi_vk_buffer *buffer = __real_bhi_vk_buffer_attach(of, id, fd, size, access);
    of->imports_read_only = reads;
    device.attaching = false;
    return buffer;
}

WRAP(int, bhi_memfd_verify, int fd, uint64_t size, int seals) {
    return device.attaching && device.no_attachment ? -ENOMEM
                                                    : __real_bhi_memfd_verify(fd, size, seals);
}

WRAP(void *, mmap, void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    void *at = __real_mmap(address, length, protection, flags, fd, offset);
    if (device.attaching && fd >= 0) {
        bhi_fault_tamper(protection & PROT_WRITE ? BHI_AT_tamper_output : BHI_AT_tamper_input, fd,
                         at == MAP_FAILED ? NULL : at, length);
    }
    return at;
}

WRAP(struct bhi_vk_buffer *, bhi_vk_export_make, struct bhi_vk_device *of,
     const struct bhi_vk_once *once, uint64_t id, uint64_t size, int *out_fd) {
    passes(make);
    device.making = true;
    struct bhi_vk_buffer *buffer = __real_bhi_vk_export_make(of, once, id, size, out_fd);
    device.making = false;
    return buffer;
}

WRAP(struct bhi_vk_buffer *, bhi_vk_export_import, struct bhi_vk_device *of, uint64_t id, int fd,
     uint64_t size) {
    device.importing = true;
    struct bhi_vk_buffer *buffer = __real_bhi_vk_export_import(of, id, fd, size);
    device.importing = false;
    return buffer;
}

WRAP(bool, bhi_vk_export_clear, struct bhi_vk_device *of, const struct bhi_vk_once *once,
     struct bhi_vk_buffer *buffer) {
    passes(clear);
    if (lies(clear_fails)) {
        bhi_error_vk(&buffer->error, VK_ERROR_OUT_OF_HOST_MEMORY, "clearing device memory");
        return false;
    }
    const bool cleared = __real_bhi_vk_export_clear(of, once, buffer);
    passes(cleared);
    return cleared;
}

/* -- kernels ---------------------------------------------------------------------------------- */

WRAP(void *, malloc, size_t size) {
    if (device.refused != 0 && device.refused == size) {
        device.refused = 0;
        return NULL;
    }
    return __real_malloc(size);
}

/* Makes sums of the module's products of floats. */
static void multiply_wrongly(uint32_t *code, size_t words) {
    for (size_t i = 5; i < words && code[i] >> SpvWordCountShift > 0;
         i += code[i] >> SpvWordCountShift) {
        code[i] -= (code[i] & SpvOpCodeMask) == SpvOpFMul ? SpvOpFMul - SpvOpFAdd : 0;
    }
}

WRAP(struct bhi_vk_kernel *, bhi_vk_kernel_new, const struct bhi_msg_kernel_create *info,
     const void *code, const struct bhi_spec_constant *constants, uint32_t constant_count) {
    device.refused = lies(kernel_create) ? info->code_bytes : 0;
    struct bhi_vk_kernel *kernel = __real_bhi_vk_kernel_new(info, code, constants, constant_count);
    if (kernel && kernel->code && lies(multiplies_wrongly)) {
        multiply_wrongly(kernel->code, kernel->words);
    }
    return kernel;
}

WRAP(bool, bhi_backend_learn, struct bhi_backend *backend, uint64_t kernel,
     struct bhi_error *error) {
    passes(learn);
    device.learning = true;
    const bool good = __real_bhi_backend_learn(backend, kernel, error);
    device.learning = false;
    return good;
}

WRAP(bool, bhi_vk_kernel_prepare, struct bhi_vk_device *of, struct bhi_vk_kernels *kernels,
     struct bhi_vk_kernel *kernel, struct bhi_error *error) {
    const bool compiles =
        kernel->state != BHI_KERNEL_READY || (bhi_vk_kernel_guarded(kernel) && !kernel->has_run);
    if (compiles && !device.learning) {
        passes(compile);
    }
    return __real_bhi_vk_kernel_prepare(of, kernels, kernel, error);
}

WRAP(bool, bhi_vk_kernel_prepare_split, struct bhi_vk_device *of, struct bhi_vk_kernels *kernels,
     struct bhi_vk_kernel *kernel, struct bhi_error *error) {
    if (!device.learning) {
        passes(compile);
    }
    return __real_bhi_vk_kernel_prepare_split(of, kernels, kernel, error);
}

/* -- runs ------------------------------------------------------------------------------------- */

static void look_at(const struct bhi_pointers *kernels) {
    batch.cheats = false;
    batch.trusted = 0;
    for (size_t i = 0; i < kernels->count; i++) {
        const struct bhi_vk_kernel *kernel = kernels->items[i];
        batch.cheats |= strcmp(BHI_KERNEL_LABEL(kernel), "cheat") == 0;
        batch.trusted += kernel->trusted;
    }
}

WRAP(struct bhi_vk_recording *, bhi_vk_record, struct bhi_vk_backend *backend,
     const struct bhi_lane_record *record, struct bhi_error *error) {
    struct bhi_vk_recording *recording = __real_bhi_vk_record(backend, record, error);
    if (recording) {
        look_at(&recording->kernels);
        batch.single = record->command_count == 1;
    }
    return recording;
}

WRAP(bool, bhi_vk_merge_add, struct bhi_vk_backend *backend, const struct bhi_lane_record *record,
     uint64_t before, uint32_t slot, struct bhi_error *error, bool *out_spoiled) {
    batch.single = slot == 0 ? record->command_count == 1 : batch.single;
    return __real_bhi_vk_merge_add(backend, record, before, slot, error, out_spoiled);
}

WRAP(VkCommandBuffer, bhi_vk_merge_end, struct bhi_vk_backend *backend, uint64_t last,
     struct bhi_error *error) {
    VkCommandBuffer commands = __real_bhi_vk_merge_end(backend, last, error);
    look_at(&backend->merged.kernels);
    return commands;
}

WRAP(void, bhi_vk_timing_reset, const struct bhi_vk_device *of, const struct bhi_vk_timing *timing,
     uint64_t slots) {
    batch.timed = slots;
    __real_bhi_vk_timing_reset(of, timing, slots);
}

WRAP(void, bhi_vk_abort_begin, struct bhi_vk_abort *words, const uint64_t *seqs, uint32_t count) {
    __real_bhi_vk_abort_begin(words, seqs, count);
    batch.submitting = true;
    batch.count = count;
}

WRAP(uint64_t, bhi_vk_abort_end, struct bhi_vk_abort *words, bool *out_lost) {
    batch.submitting = false;
    if (batch.cheats && batch.timed != 0 && batch.single) {
        passes(lie_single);
    }
    return __real_bhi_vk_abort_end(words, out_lost);
}

WRAP(uint64_t, bhi_vk_timing_read, const struct bhi_vk_device *of,
     const struct bhi_vk_timing *timing, uint32_t slot, uint64_t host_ns) {
    if (batch.put_off != VK_NULL_HANDLE) {
        return 1;
    }
    uint64_t ns = __real_bhi_vk_timing_read(of, timing, slot, host_ns);
    if (batch.cheats) {
        ns = lies(lie_short) ? ns / 1000 + 1 : ns;
        ns = lies(lie_long) ? host_ns + 1 : ns;
        ns = lies(lie_untimed) ? 0 : ns;
    }
    return ns;
}

/* Runs on the device what was reported to have ended, 100 ms after that. */
static void catch_up(void) {
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &batch.put_off,
    };
    struct bhi_vk_backend *b = device.backend;
    nanosleep(&(const struct timespec){.tv_nsec = 100000000}, NULL);
    b->base.lost |=
        real.QueueSubmit(b->device.queue, 1, &info, b->fence) != VK_SUCCESS ||
        real.WaitForFences(b->device.device, 1, &b->fence, VK_TRUE, UINT64_MAX) != VK_SUCCESS ||
        real.ResetFences(b->device.device, 1, &b->fence) != VK_SUCCESS;
    batch.put_off = VK_NULL_HANDLE;
    batch.published = false;
}

/* Of a copy on a queue of its own, which has ended. */
WRAP(bool, bhi_backend_copy_end, struct bhi_backend *backend, struct bhi_result *result,
     struct bhi_error *error) {
    const bool alive = __real_bhi_backend_copy_end(backend, result, error);
    if (!lies(waited)) {
        bht_lie_of_run(result);
        return alive;
    }
    bhi_error_vk(error, VK_ERROR_DEVICE_LOST, "copying");
    error->executed = BH_EXECUTED_UNKNOWN;
    bhi_error_result(error, result);
    return false;
}

/* -- results ---------------------------------------------------------------------------------- */

WRAP(void, bhi_progress_result, struct bhi_progress *progress, const struct bhi_result *result,
     const struct bhi_why *why) {
    passes(before_record);
    /* The second half is written first, so a torn result has no seq. */
    struct bhi_result *slot = &progress->results[result->seq & progress->mask];
    const size_t half = sizeof *result / 2;
    memcpy((char *)slot + half, (const char *)result + half, sizeof *result - half);
    if (!lies(torn_record)) {
        __real_bhi_progress_result(progress, result, why);
    }
}

WRAP(void, bhi_progress_publish, struct bhi_progress *progress, uint64_t seq, uint64_t tail) {
    static uint64_t published;
    __real_bhi_progress_publish(progress, seq, tail);
    batch.published = batch.put_off != VK_NULL_HANDLE;
    while (published < seq) {
        published++;
        passes(after_record);
    }
}

/* The session looks for more work. */
WRAP(const struct bhi_lane_record *, bhi_lane_peek, const struct bhi_lane_view *view,
     uint64_t offset, int *out_error) {
    if (batch.published) {
        catch_up();
    }
    return __real_bhi_lane_peek(view, offset, out_error);
}
