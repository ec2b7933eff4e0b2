#include "worker/vulkan/backend.h"

#include "ipc/layers.h"
#include "worker/vulkan/export.h"

#include "ipc/commands.h"
#include "worker/error.h"
#include "worker/vulkan/commands.h"
#include "worker/vulkan/reserve.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

/* glslc --target-env=vulkan1.2 -O of
 *     #version 450
 *     layout(local_size_x = 1) in;
 *     layout(set = 0, binding = 0) buffer Scratch { uint word[]; } scratch;
 *     void main() { scratch.word[gl_GlobalInvocationID.x] = 0x57415231u; } */
/* clang-format off */
static const uint32_t warm_up_code[] = {
    0x07230203, 0x00010500, 0x000d000b, 0x00000019, 0x00000000, 0x00020011, 0x00000001,
    0x0006000b, 0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e,
    0x00000000, 0x00000001, 0x0007000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000,
    0x0000000a, 0x0000000f, 0x00060010, 0x00000004, 0x00000011, 0x00000001, 0x00000001,
    0x00000001, 0x00040047, 0x00000007, 0x00000006, 0x00000004, 0x00050048, 0x00000008,
    0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x00000008, 0x00000002, 0x00040047,
    0x0000000a, 0x00000022, 0x00000000, 0x00040047, 0x0000000a, 0x00000021, 0x00000000,
    0x00040047, 0x0000000f, 0x0000000b, 0x0000001c, 0x00040047, 0x00000018, 0x0000000b,
    0x00000019, 0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015,
    0x00000006, 0x00000020, 0x00000000, 0x0003001d, 0x00000007, 0x00000006, 0x0003001e,
    0x00000008, 0x00000007, 0x00040020, 0x00000009, 0x0000000c, 0x00000008, 0x0004003b,
    0x00000009, 0x0000000a, 0x0000000c, 0x00040015, 0x0000000b, 0x00000020, 0x00000001,
    0x0004002b, 0x0000000b, 0x0000000c, 0x00000000, 0x00040017, 0x0000000d, 0x00000006,
    0x00000003, 0x00040020, 0x0000000e, 0x00000001, 0x0000000d, 0x0004003b, 0x0000000e,
    0x0000000f, 0x00000001, 0x0004002b, 0x00000006, 0x00000010, 0x00000000, 0x00040020,
    0x00000011, 0x00000001, 0x00000006, 0x0004002b, 0x00000006, 0x00000014, 0x57415231,
    0x00040020, 0x00000015, 0x0000000c, 0x00000006, 0x0004002b, 0x00000006, 0x00000017,
    0x00000001, 0x0006002c, 0x0000000d, 0x00000018, 0x00000017, 0x00000017, 0x00000017,
    0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005,
    0x00050041, 0x00000011, 0x00000012, 0x0000000f, 0x00000010, 0x0004003d, 0x00000006,
    0x00000013, 0x00000012, 0x00060041, 0x00000015, 0x00000016, 0x0000000a, 0x0000000c,
    0x00000013, 0x0003003e, 0x00000016, 0x00000014, 0x000100fd, 0x00010038
};
/* clang-format on */
#define WARM_UP_WORD 0x57415231u

static struct bhi_backend *create(const struct bhi_backend_config *config,
                                  struct bhi_error *error) {
    *error = (struct bhi_error){.command_index = BHI_NO_COMMAND};
    struct bhi_vk_backend *b = calloc(1, sizeof *b);
    if (!b) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the backend");
        return NULL;
    }
    b->base =
        (struct bhi_backend){.ops = &bhi_vulkan, .calls = config->calls, .compiles = UINT64_MAX};
    b->kernels.max_pipelines = config->max_pipelines ? config->max_pipelines : BHI_WORKER_PIPELINES;
    b->kernels.abort = &b->abort;
    b->kernels.cache = &b->cache;
    bhi_list_init(&b->kernels.used);
    bhi_list_init(&b->groups.used);
    bhi_list_init(&b->groups.pools);
    bhi_list_init(&b->recordings.used);
    b->groups.limit = BHI_GROUP_LIMIT;
    b->groups.max_bytes = BHI_GROUP_BYTES;
    b->groups.abort = &b->abort;
    b->groups.device = b->recordings.device = &b->device;
    b->recordings.groups = &b->groups;
    if (!bhi_vk_device_init(&b->device, config, error)) {
        free(b);
        return NULL;
    }
    if (!bhi_vk_reserve(&b->device, error)) {
        bhi_backend_destroy(&b->base);
        return NULL;
    }
    VkResult result = bhi_vk_fence_create(&b->device, &b->fence);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkCreateFence");
    }
    if (result != VK_SUCCESS || !bhi_vk_recordings_init(&b->recordings, error) ||
        !bhi_vk_merge_init(b, config->markers, error) ||
        !bhi_vk_abort_init(&b->device, &b->abort, error) ||
        !bhi_vk_timing_init(&b->device, &b->timing, error) || !bhi_vk_copies_init(b, error)) {
        bhi_backend_destroy(&b->base);
        return NULL;
    }
    return &b->base;
}

static void destroy(struct bhi_backend *backend) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    if (!b->base.lost) {
        (void)b->device.api.DeviceWaitIdle(b->device.device);
    }
    bhi_vk_merge_fini(b);
    bhi_vk_recordings_fini(&b->recordings);
    bhi_vk_groups_fini(&b->groups);
    for (size_t i = 0; i < b->kernels.map.capacity; i++) {
        if (b->kernels.map.entries[i].value) {
            bhi_vk_kernel_free(&b->device, &b->kernels, b->kernels.map.entries[i].value);
        }
    }
    for (size_t i = 0; i < b->buffers.capacity; i++) {
        bhi_vk_buffer_destroy(&b->device, b->buffers.entries[i].value);
    }
    bhi_map_fini(&b->kernels.map);
    bhi_map_fini(&b->buffers);
    bhi_hazards_fini(&b->hazards);
    bhi_vk_abort_fini(&b->device, &b->abort);
    bhi_vk_cache_fini(&b->device, &b->cache);
    bhi_vk_timing_fini(&b->device, &b->timing);
    bhi_vk_copies_fini(b);
    b->device.api.DestroyFence(b->device.device, b->fence, NULL);
    bhi_vk_device_fini(&b->device);
    free(b);
}

static size_t devices(const struct bhi_backend *backend, struct bhi_msg_device *out,
                      size_t capacity) {
    const struct bhi_vk_device *device = &bhi_vk_const(backend)->device;
    const size_t count =
        bhi_vk_device_messages(&device->api, device->instance, device->physical, out, capacity);
    for (size_t i = 0; i < count; i++) {
        if (out[i].chosen && device->exports) {
            out[i].features |= BHI_FEATURE_MEMORY_EXPORT;
        }
    }
    return count;
}

static size_t survey(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                     struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error) {
    struct bhi_vk_api api = {0};
    VkInstance instance = VK_NULL_HANDLE;
    if (!bhi_vk_instance_create(&api, config, &instance, error)) {
        return 0;
    }
    size_t count = bhi_vk_device_messages(&api, instance, VK_NULL_HANDLE, out, capacity);
    if (out_pci) {
        count = bhi_vk_device_addresses(&api, instance, out_pci, count);
    }
    api.DestroyInstance(instance, NULL);
    return count;
}

static void kernel_create(struct bhi_backend *backend, const struct bhi_msg_kernel_create *info,
                          const void *code, const struct bhi_spec_constant *constants,
                          uint32_t constant_count) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_backend_kernel_destroy(backend, info->kernel);
    struct bhi_vk_kernel *kernel = bhi_vk_kernel_new(info, code, constants, constant_count);
    if (kernel && !bhi_map_put(&b->kernels.map, info->kernel, kernel)) {
        bhi_vk_kernel_free(&b->device, &b->kernels, kernel);
        kernel = NULL;
    }
    b->base.starved |= !kernel;
}

static void kernel_destroy(struct bhi_backend *backend, uint64_t id) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_kernel *kernel = bhi_map_remove(&b->kernels.map, id);
    if (kernel) {
        bhi_vk_forget_kernel(&b->recordings, kernel);
        bhi_vk_kernel_free(&b->device, &b->kernels, kernel);
    }
}

static bool next_reflection(struct bhi_backend *backend, struct bhi_msg_kernel_info *out,
                            struct bhi_msg_kernel_binding *bindings) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_kernel *kernel = b->kernels.reflected_first;
    if (!kernel) {
        return false;
    }
    b->kernels.reflected_first = kernel->next_reflected;
    if (!b->kernels.reflected_first) {
        b->kernels.reflected_last = NULL;
    }
    kernel->next_reflected = NULL;
    const struct bhi_module_bindings *r = kernel->reflection;
    *out = (struct bhi_msg_kernel_info){
        .kernel = kernel->id,
        .bindings = r->binding_count,
        .push_bytes = r->push_bytes,
        .local_x = r->local_size[0],
        .local_y = r->local_size[1],
        .local_z = r->local_size[2],
    };
    for (uint32_t i = 0; i < r->binding_count; i++) {
        bindings[i] = (struct bhi_msg_kernel_binding){
            .kernel = kernel->id,
            .index = i,
            .set = r->bindings[i].set,
            .binding = r->bindings[i].binding,
            .kind = r->bindings[i].kind,
            .access = r->bindings[i].access,
            .count = r->bindings[i].count,
        };
        memcpy(bindings[i].name, r->bindings[i].name, sizeof bindings[i].name);
    }
    return true;
}

static void drop_buffer(struct bhi_vk_backend *b, struct bhi_vk_buffer *buffer) {
    bhi_vk_recordings_forget(&b->recordings, buffer);
    bhi_vk_groups_forget(&b->groups, buffer, NULL);
    b->imported_bytes -= buffer->error.status == BH_OK ? buffer->size : 0;
    b->staged -= !!buffer->source;
    bhi_vk_buffer_destroy(&b->device, buffer);
}

static void keep(struct bhi_vk_backend *b, uint64_t id, struct bhi_vk_buffer *buffer) {
    if (!buffer) {
        b->base.starved = true; /* commands that name it report that */
        return;
    }
    b->imported_bytes += buffer->error.status == BH_OK ? buffer->size : 0;
    b->staged += !!buffer->source;
    if (!bhi_map_put(&b->buffers, id, buffer)) {
        b->base.starved = true;
        drop_buffer(b, buffer);
    }
}

static void attach(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size,
                   enum bhi_attach access) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_backend_detach(backend, id);
    keep(b, id, bhi_vk_buffer_attach(&b->device, id, fd, size, access));
}

static bool exports(const struct bhi_backend *backend) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    return b->device.exports;
}

static int make(struct bhi_backend *backend, uint64_t id, uint64_t size) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    int fd;
    bhi_backend_detach(backend, id);
    const struct bhi_vk_once once = {b->primer, b->fence, &b->base.lost};
    keep(b, id, bhi_vk_export_make(&b->device, &once, id, size, &fd));
    return fd;
}

static bool is_full(const struct bhi_backend *backend, uint64_t id) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    const struct bhi_vk_buffer *buffer = bhi_map_get(&b->buffers, id);
    return buffer && buffer->error.status == BH_OUT_OF_DEVICE_MEMORY;
}

static bool clear(struct bhi_backend *backend, uint64_t id) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_buffer *buffer = bhi_map_get(&b->buffers, id);
    const struct bhi_vk_once once = {b->primer, b->fence, &b->base.lost};
    if (!buffer || buffer->pointer || buffer->error.status != BH_OK) {
        return false;
    }
    if (!bhi_vk_export_clear(&b->device, &once, buffer)) {
        b->imported_bytes -= buffer->size;
        return false;
    }
    return true;
}

static void import(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_backend_detach(backend, id);
    keep(b, id, bhi_vk_export_import(&b->device, id, fd, size));
}

static void detach(struct bhi_backend *backend, uint64_t id) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_vk_buffer *buffer = bhi_map_remove(&b->buffers, id);
    if (buffer) {
        drop_buffer(b, buffer);
    }
}

static void abort_record(struct bhi_backend *backend, uint64_t seq) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_vk_abort_one(&b->abort, seq);
}

static void abort_all(struct bhi_backend *backend) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_vk_abort_all(&b->abort);
}

static bool aborts(const struct bhi_backend *backend) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    return b->abort.visible_to_kernels;
}

static int words(struct bhi_backend *backend, uint64_t *out_bytes) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    return bhi_vk_abort_export(&b->device, &b->abort, out_bytes);
}

static void cache_attach(struct bhi_backend *backend, int fd, uint64_t room) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_vk_cache_attach(&b->device, &b->cache, fd, room);
}

static void cache_save(struct bhi_backend *backend, bool idle) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    bhi_vk_cache_save(&b->device, &b->cache, idle);
}

static void counts(const struct bhi_backend *backend, struct bhi_backend_counts *out) {
    const struct bhi_vk_backend *b = bhi_vk_const(backend);
    *out = (struct bhi_backend_counts){
        .queue_submits = b->queue_submits,
        .copy_submits = b->copy_submits,
        .joins = b->joins,
        .pipelines = b->kernels.pipelines,
        .imported_bytes = b->imported_bytes,
    };
}

/* The warm-up uses what every submission uses: a kernel, a buffer (the scratch words of the markers
 * page), a record. */
static bool warm_up(struct bhi_backend *backend, struct bhi_error *error) {
    struct bhi_vk_backend *b = bhi_vk(backend);
    struct bhi_msg_kernel_create kernel = {.kernel = UINT64_MAX,
                                           .format = BHI_KERNEL_SPIRV,
                                           .code_bytes = sizeof warm_up_code,
                                           .trusted = 1,
                                           .entry = "main"};
    memcpy(kernel.name, "warm-up", sizeof "warm-up");
    struct {
        struct bhi_lane_record record;
        struct bhi_cmd_dispatch dispatch;
        struct bhi_cmd_binding binding;
    } job = {
        .record = {.size = sizeof job, .command_count = 1},
        .dispatch = {.header = {.type = BHI_CMD_DISPATCH,
                                .size = sizeof job.dispatch + sizeof job.binding},
                     .kernel = UINT64_MAX,
                     .groups_x = 1,
                     .groups_y = 1,
                     .groups_z = 1,
                     .binding_count = 1},
        .binding = {.buffer = UINT64_MAX,
                    .offset = offsetof(struct bhi_marker_page, scratch),
                    .size = sizeof b->page->scratch,
                    .access = BH_ACCESS_WRITE},
    };
    const struct bhi_lane_record *record = &job.record;
    struct bhi_result result;
    bhi_backend_kernel_create(backend, &kernel, warm_up_code, NULL, 0);
    if (!bhi_map_put(&b->buffers, UINT64_MAX, &b->page_buffer)) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the warm-up");
        return false;
    }
    b->page->scratch[0] = 0;
    const bool alive = bhi_backend_run(backend, &record, 1, &result, error);
    bhi_map_remove(&b->buffers, UINT64_MAX);
    bhi_vk_recordings_forget(&b->recordings, &b->page_buffer);
    bhi_vk_groups_forget(&b->groups, &b->page_buffer, NULL);
    struct bhi_vk_kernel *warm = bhi_map_get(&b->kernels.map, UINT64_MAX);
    if (warm && b->kernels.reflected_first == warm) {
        b->kernels.reflected_first = b->kernels.reflected_last = NULL; /* not for the host */
    }
    bhi_backend_kernel_destroy(backend, UINT64_MAX);
    b->queue_submits = 0;
    if (error->status == BH_OK && !alive) {
        BHI_ERROR(error, BH_REASON_LOST, .text = "after its first work");
    }
    if (error->status == BH_OK && b->page->scratch[0] != WARM_UP_WORD) {
        BHI_ERROR(error, BH_REASON_STEP, "use the device",
                  .text = "it ran a trivial kernel and its result did not appear");
    }
    return error->status == BH_OK && bhi_vk_copies_warm_up(b, error) &&
           bhi_vk_reserve_code(&b->device, error);
}

const struct bhi_backend_ops bhi_vulkan = {
    .create = create,
    .devices = devices,
    .survey = survey,
    .destroy = destroy,
    .warm_up = warm_up,
    .attach = attach,
    .exports = exports,
    .make = make,
    .is_full = is_full,
    .clear = clear,
    .import = import,
    .detach = detach,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
    .learn = bhi_vk_learn,
    .next_reflection = next_reflection,
    .run = bhi_vk_run,
    .warm = bhi_vk_warm,
    .counts = counts,
    .cache_attach = cache_attach,
    .cache_save = cache_save,
    .copies = bhi_vk_copies,
    .copy_room = bhi_vk_copy_room,
    .copy_fits = bhi_vk_copy_fits,
    .copy_begin = bhi_vk_copy_begin,
    .copy_end = bhi_vk_copy_end,
    .abort = abort_record,
    .abort_all = abort_all,
    .aborts = aborts,
    .words = words,
};
