#include "worker/vulkan/bind.h"

#include "base/format.h"
#include "ipc/commands.h"
#include "worker/error.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <string.h>

bool bhi_recorder_depend(struct bhi_recorder *r, struct bhi_pointers *list, void *object,
                         uint64_t *stamp) {
    if (*stamp == r->backend->stamp) {
        return true;
    }
    *stamp = r->backend->stamp;
    if (!bhi_pointers_add(list, object)) {
        BHI_ERROR(r->error, BH_REASON_HOST_MEMORY, NULL, .text = "a recording");
        return false;
    }
    return true;
}

struct bhi_vk_buffer *bhi_recorder_buffer(struct bhi_recorder *r, uint64_t id, bool writes) {
    struct bhi_vk_buffer *buffer = bhi_map_get(&r->backend->buffers, id);
    if (!bhi_buffer_check(&r->backend->base, id, buffer ? &buffer->error : NULL, writes,
                          buffer && buffer->writable, r->error)) {
        return NULL;
    }
    return bhi_recorder_depend(r, &r->uses->buffers, buffer, &buffer->stamp) ? buffer : NULL;
}

/* Returns the index of the binding at |set|, |binding| in the reflection, which is sorted; or
 * -1. */
static int place_of(const struct bhi_module_bindings *reflection, uint32_t set, uint32_t binding) {
    uint32_t low = 0, high = reflection->binding_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct bhi_reflected_binding *at = &reflection->bindings[middle];
        if (at->set == set && at->binding == binding) {
            return (int)middle;
        }
        if (at->set < set || (at->set == set && at->binding < binding)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

struct place {
    char text[BHI_SUBJECT_NAME];
};

/* How messages name a buffer, for example: set 0 binding 1 element 2 ("weights"). */
static struct place name_of(const struct bhi_reflected_binding *place, uint32_t element) {
    struct place out;
    char index[24] = "";
    if (place->count > 1) {
        snprintf(index, sizeof index, " element %u", element);
    }
    bhi_format(out.text, sizeof out.text, "set %u binding %u%s (\"%s\")", place->set,
               place->binding, index, place->name);
    return out;
}

/* Refuses a binding for a reason. Returns false. */
#define REFUSE(r, reason, place, element, ...)                                                     \
    (BHI_ERROR((r)->error, BH_REASON_##reason, name_of((place), (element)).text, __VA_ARGS__),     \
     false)

static bool check_range(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                        const struct bhi_reflected_binding *place,
                        const struct bhi_cmd_binding *given, const struct bhi_vk_buffer *buffer) {
    const VkPhysicalDeviceLimits *limits = &r->backend->device.limits;
    const bool uniform = place->kind == BH_BINDING_UNIFORM_BUFFER;
    const uint64_t alignment =
        uniform ? limits->minUniformBufferOffsetAlignment : limits->minStorageBufferOffsetAlignment;
    const uint64_t longest =
        uniform ? limits->maxUniformBufferRange : limits->maxStorageBufferRange;
    const char *kind =
        uniform ? "minUniformBufferOffsetAlignment" : "minStorageBufferOffsetAlignment";
    if (given->offset > buffer->size || given->size > buffer->size - given->offset) {
        return REFUSE(r, BINDING_RANGE, place, given->element, .value = given->offset + given->size,
                      .limit = buffer->size, .text = BHI_KERNEL_LABEL(kernel));
    }
    if (given->size == 0 && buffer->size != 0) {
        return REFUSE(r, BINDING_EMPTY, place, given->element, .limit = buffer->size,
                      .text = BHI_KERNEL_LABEL(kernel));
    }
    if (given->offset % alignment != 0) {
        return REFUSE(r, BINDING_OFFSET, place, given->element, .value = given->offset,
                      .limit = alignment, .text = kind);
    }
    if (given->size > longest) {
        return REFUSE(r, DEVICE_LIMIT, place, given->element, .value = given->size,
                      .limit = longest,
                      .text = uniform ? "maxUniformBufferRange" : "maxStorageBufferRange",
                      .subject = BH_SUBJECT_BINDING);
    }
    if (given->size < place->min_bytes) {
        return REFUSE(r, BINDING_SHORT, place, given->element, .value = given->size,
                      .limit = place->min_bytes, .text = BHI_KERNEL_LABEL(kernel));
    }
    return true;
}

/* Finds the place of the buffer. |guess| is the binding to try first, because callers mostly give
 * them in order. Returns false if there is no such place; the error then counts unless the binding
 * is optional. */
static bool find_place(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                       const struct bhi_cmd_binding *given, uint32_t *guess) {
    const struct bhi_module_bindings *reflection = kernel->reflection;
    const struct bhi_reflected_binding *place = &reflection->bindings[*guess];
    if (*guess >= reflection->binding_count || place->set != given->set ||
        place->binding != given->binding) {
        const int at = place_of(reflection, given->set, given->binding);
        if (at < 0) {
            char name[BHI_SUBJECT_NAME];
            snprintf(name, sizeof name, "set %u binding %u", given->set, given->binding);
            BHI_ERROR(r->error, BH_REASON_BINDING_UNKNOWN, name, .text = BHI_KERNEL_LABEL(kernel));
            return false;
        }
        *guess = (uint32_t)at;
        place = &reflection->bindings[at];
    }
    if (given->element >= place->count) {
        return REFUSE(r, BINDING_ELEMENT, place, given->element, .value = given->element,
                      .limit = place->count, .text = BHI_KERNEL_LABEL(kernel));
    }
    return true;
}

static bool check_access(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                         const struct bhi_reflected_binding *place,
                         const struct bhi_cmd_binding *given) {
    if (place->stores && !(given->access & BH_ACCESS_WRITE)) {
        return REFUSE(r, BINDING_WRITTEN, place, given->element, .text = BHI_KERNEL_LABEL(kernel));
    }
    if (place->access == BH_ACCESS_READ &&
        (given->access & BH_ACCESS_READ_WRITE) == BH_ACCESS_WRITE) {
        return REFUSE(r, BINDING_READONLY, place, given->element, .text = BHI_KERNEL_LABEL(kernel));
    }
    return true;
}

static bool check_complete(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                           struct bhi_vk_buffer *const buffers[BHI_MAX_BINDINGS]) {
    const struct bhi_module_bindings *reflection = kernel->reflection;
    for (uint32_t i = 0; i < reflection->binding_count; i++) {
        const struct bhi_reflected_binding *place = &reflection->bindings[i];
        for (uint32_t element = 0; element < place->count; element++) {
            if (!buffers[place->first + element]) {
                return REFUSE(r, BINDING_MISSING, place, element, .text = BHI_KERNEL_LABEL(kernel));
            }
        }
    }
    return true;
}

static bool resolve_bindings(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                             const struct bhi_cmd_dispatch *dispatch,
                             struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS],
                             struct bhi_group_range *ranges) {
    const struct bhi_module_bindings *reflection = kernel->reflection;
    const struct bhi_cmd_binding *given = bhi_cmd_bindings(dispatch);
    memset(buffers, 0, reflection->buffer_count * sizeof *buffers);
    for (uint32_t i = 0, next = 0; i < dispatch->binding_count; i++) {
        if (!find_place(r, kernel, &given[i], &next)) {
            if (given[i].access & BH_ACCESS_OPTIONAL) {
                r->error->status = BH_OK;
                continue;
            }
            return false;
        }
        const struct bhi_reflected_binding *place = &reflection->bindings[next];
        const uint32_t at = place->first + given[i].element;
        if (buffers[at]) {
            return REFUSE(r, BINDING_TWICE, place, given[i].element,
                          .text = BHI_KERNEL_LABEL(kernel));
        }
        buffers[at] = bhi_recorder_buffer(r, given[i].buffer, given[i].access & BH_ACCESS_WRITE);
        if (!buffers[at] && r->error->told.reason == BH_REASON_BUFFER_ACCESS) {
            BHI_ERROR_APPEND(r->error, ", and bound as %s", name_of(place, given[i].element).text);
        }
        if (!buffers[at] || !check_range(r, kernel, place, &given[i], buffers[at]) ||
            !check_access(r, kernel, place, &given[i])) {
            return false;
        }
        ranges[at] = (struct bhi_group_range){buffers[at], given[i].offset, given[i].size};
        next += given[i].element + 1 == place->count;
    }
    return check_complete(r, kernel, buffers);
}

static bool check_grid(struct bhi_recorder *r, const struct bhi_cmd_dispatch *dispatch) {
    const uint32_t groups[3] = {dispatch->groups_x, dispatch->groups_y, dispatch->groups_z};
    const uint32_t *limits = r->backend->device.limits.maxComputeWorkGroupCount;
    for (int axis = 0; axis < 3; axis++) {
        if (groups[axis] > limits[axis]) {
            const char name[] = {"xyz"[axis], '\0'};
            BHI_ERROR(r->error, BH_REASON_WORKGROUPS, name, .value = groups[axis],
                      .limit = limits[axis], .text = "maxComputeWorkGroupCount");
            return false;
        }
    }
    uint64_t product = (uint64_t)groups[0] * groups[1];
    if (__builtin_mul_overflow(product, groups[2], &product)) {
        product = UINT64_MAX;
    }
    if (product > UINT32_MAX && !r->backend->device.whole_grids) {
        BHI_ERROR(r->error, BH_REASON_WORKGROUPS, "a grid", .value = product, .limit = UINT32_MAX,
                  .text = "its driver counts them in 32 bits, and would run only some: split it");
        return false;
    }
    return true;
}

/* The supervisor has refused such a dispatch already. */
static bool check_block(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                        const struct bhi_cmd_dispatch *dispatch) {
    if (dispatch->block_x) {
        BHI_ERROR(r->error, BH_REASON_BLOCK, BHI_KERNEL_LABEL(kernel),
                  .text = "is SPIR-V, whose module says how large a workgroup is");
        return false;
    }
    return true;
}

static bool check_push(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                       const struct bhi_cmd_dispatch *dispatch) {
    if (dispatch->push_size != kernel->reflection->push_bytes) {
        BHI_ERROR(r->error, BH_REASON_PUSH_BYTES, BHI_KERNEL_LABEL(kernel),
                  .value = dispatch->push_size, .limit = kernel->reflection->push_bytes);
        return false;
    }
    return true;
}

bool bhi_bind_check(struct bhi_recorder *r, const struct bhi_vk_kernel *kernel,
                    const struct bhi_cmd_dispatch *dispatch,
                    struct bhi_vk_buffer *buffers[BHI_MAX_BINDINGS],
                    struct bhi_group_range ranges[BHI_MAX_BINDINGS]) {
    return check_grid(r, dispatch) && check_block(r, kernel, dispatch) &&
           check_push(r, kernel, dispatch) &&
           resolve_bindings(r, kernel, dispatch, buffers, ranges);
}

void bhi_vk_bind_group(const struct bhi_vk_backend *b, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group) {
    const uint32_t count = kernel->reflection->set_count;
    const uint32_t gap = kernel->guard_set < count ? kernel->guard_set : count;
    /* If the guard's set lies between the kernel's own, it is not one of the group's sets, unless
     * the kernel binds its abort word in one of these. */
    if (gap > 0) {
        b->device.api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                            kernel->layout, 0, gap, group->sets, 0, NULL);
    }
    if (gap + 1 < count) {
        b->device.api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                            kernel->layout, gap + 1, count - gap - 1,
                                            &group->sets[gap + 1], 0, NULL);
    }
}

void bhi_vk_bind_abort(const struct bhi_vk_backend *b, VkCommandBuffer commands,
                       const struct bhi_vk_kernel *kernel, const struct bhi_vk_group *group,
                       uint32_t slot) {
    const uint32_t offset = bhi_vk_abort_offset(slot);
    const bool shares = kernel->guard_shares_set;
    const VkDescriptorSet *set = shares ? &group->sets[kernel->guard_set] : &b->abort.sets[slot];
    b->device.api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout,
                                        kernel->guard_set, 1, set, shares ? 1 : 0,
                                        shares ? &offset : NULL);
}
