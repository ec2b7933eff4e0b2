#include "vk_groups.h"

#include "vk_fault.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#define POOL_SETS    256u
#define POOL_STORAGE 2048u
#define POOL_UNIFORM 1024u

/* What is left is counted here: a driver need not refuse what its pool was not made for. */
struct bhi_vk_pool {
    struct bhi_vk_pool *next;
    VkDescriptorPool pool;
    uint32_t sets, storage, uniform;
};

static void count_descriptors(const struct bhi_reflection *r, uint32_t *storage,
                              uint32_t *uniform) {
    *storage = *uniform = 0;
    for (uint32_t i = 0; i < r->binding_count; i++) {
        *(r->bindings[i].kind == BH_STORAGE_BUFFER ? storage : uniform) += r->bindings[i].count;
    }
}

static struct bhi_vk_pool *find_pool(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                                     uint32_t sets, uint32_t storage, uint32_t uniform,
                                     struct bhi_fault *fault) {
    for (struct bhi_vk_pool *pool = groups->pools; pool != NULL; pool = pool->next) {
        if (pool->sets >= sets && pool->storage >= storage && pool->uniform >= uniform) {
            return pool;
        }
    }
    struct bhi_vk_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        bhi_fault_set(fault, BH_OUT_OF_HOST_MEMORY, "out of memory for descriptor sets");
        return NULL;
    }
    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, POOL_STORAGE},
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, POOL_UNIFORM},
    };
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
        .maxSets = POOL_SETS,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    VkResult result = device->api.CreateDescriptorPool(device->device, &info, NULL, &pool->pool);
    if (result != VK_SUCCESS) {
        bhi_fault_vk(fault, result, "vkCreateDescriptorPool");
        free(pool);
        return NULL;
    }
    pool->sets = POOL_SETS;
    pool->storage = POOL_STORAGE;
    pool->uniform = POOL_UNIFORM;
    pool->next = groups->pools;
    groups->pools = pool;
    return pool;
}

static void write_descriptors(struct bhi_vk_device *device, const struct bhi_vk_group *group) {
    const struct bhi_reflection *r = group->kernel->reflection;
    VkDescriptorBufferInfo buffers[BHI_MAX_BINDINGS];
    VkWriteDescriptorSet writes[BHI_MAX_BINDINGS];
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        const struct bhi_group_range *range = &group->ranges[i];
        const bool null = range->buffer->buffer == VK_NULL_HANDLE;
        buffers[i] = (VkDescriptorBufferInfo){
            .buffer = range->buffer->buffer,
            .offset = null ? 0 : range->offset,
            .range = null || range->size == 0 ? VK_WHOLE_SIZE : range->size,
        };
    }
    for (uint32_t i = 0; i < r->binding_count; i++) {
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = group->sets[r->bindings[i].set],
            .dstBinding = r->bindings[i].binding,
            .descriptorCount = r->bindings[i].count,
            .descriptorType = r->bindings[i].kind == BH_UNIFORM_BUFFER
                                  ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &buffers[r->bindings[i].first],
        };
    }
    device->api.UpdateDescriptorSets(device->device, r->binding_count, writes, 0, NULL);
}

static uint64_t hash_ranges(const struct bhi_vk_kernel *kernel,
                            const struct bhi_group_range *ranges, uint32_t count) {
    uint64_t hash = (uint64_t)(uintptr_t)kernel;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t words[3] = {(uint64_t)(uintptr_t)ranges[i].buffer, ranges[i].offset,
                                   ranges[i].size};
        for (int w = 0; w < 3; w++) {
            hash = (hash ^ words[w]) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 29;
        }
    }
    return hash;
}

static void unlink_group(struct bhi_vk_groups *groups, struct bhi_vk_group *group) {
    *(group->older != NULL ? &group->older->newer : &groups->oldest) = group->newer;
    *(group->newer != NULL ? &group->newer->older : &groups->newest) = group->older;
}

static void append_group(struct bhi_vk_groups *groups, struct bhi_vk_group *group) {
    group->older = groups->newest;
    group->newer = NULL;
    *(groups->newest != NULL ? &groups->newest->newer : &groups->oldest) = group;
    groups->newest = group;
}

static void destroy_group(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                          struct bhi_vk_group *group) {
    struct bhi_vk_group **at = &groups->buckets[group->hash % BHI_GROUP_BUCKETS];
    while (*at != group) {
        at = &(*at)->next;
    }
    *at = group->next;
    unlink_group(groups, group);
    groups->count--;
    groups->bytes -= group->bytes;
    uint32_t storage, uniform;
    count_descriptors(group->kernel->reflection, &storage, &uniform);
    device->api.FreeDescriptorSets(device->device, group->pool->pool,
                                   group->kernel->reflection->set_count, group->sets);
    group->pool->sets += group->kernel->reflection->set_count;
    group->pool->storage += storage;
    group->pool->uniform += uniform;
    free(group);
}

static void evict(struct bhi_vk_device *device, struct bhi_vk_groups *groups, uint64_t bytes) {
    for (struct bhi_vk_group *group = groups->oldest;
         group != NULL &&
         (groups->count > groups->limit || groups->bytes + bytes > groups->max_bytes);) {
        struct bhi_vk_group *newer = group->newer;
        if (group->references == 0) {
            destroy_group(device, groups, group);
        }
        group = newer;
    }
}

bool bhi_vk_groups_make_room(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                             uint64_t bytes) {
    evict(device, groups, bytes);
    return groups->bytes + bytes <= groups->max_bytes;
}

/* A set takes whole pages; no driver's descriptor is larger. */
static uint64_t bytes_of(const struct bhi_reflection *r) {
    return (uint64_t)r->set_count * 4096 + (uint64_t)r->buffer_count * 512;
}

static struct bhi_vk_group *create_group(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                                         const struct bhi_vk_kernel *kernel,
                                         const struct bhi_group_range *ranges,
                                         struct bhi_fault *fault) {
    const struct bhi_reflection *r = kernel->reflection;
    uint32_t storage, uniform;
    count_descriptors(r, &storage, &uniform);
    if (!bhi_vk_groups_make_room(device, groups, bytes_of(r))) {
        bhi_fault_set(
            fault, BH_OUT_OF_HOST_MEMORY,
            "%llu bytes of descriptor sets are in use, %llu more are needed, and a worker "
            "may have %llu",
            (unsigned long long)groups->bytes, (unsigned long long)bytes_of(r),
            (unsigned long long)groups->max_bytes);
        return NULL;
    }
    struct bhi_vk_pool *pool = find_pool(device, groups, r->set_count, storage, uniform, fault);
    struct bhi_vk_group *group =
        pool != NULL ? calloc(1, sizeof *group + r->buffer_count * sizeof *ranges) : NULL;
    if (group == NULL) {
        if (pool != NULL) {
            bhi_fault_set(fault, BH_OUT_OF_HOST_MEMORY, "out of memory for descriptor sets");
        }
        return NULL;
    }
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool->pool,
        .descriptorSetCount = r->set_count,
        .pSetLayouts = kernel->set_layouts,
    };
    VkResult result = device->api.AllocateDescriptorSets(device->device, &info, group->sets);
    if (result != VK_SUCCESS) {
        bhi_fault_vk(fault, result, "vkAllocateDescriptorSets");
        free(group);
        return NULL;
    }
    pool->sets -= r->set_count;
    pool->storage -= storage;
    pool->uniform -= uniform;
    group->kernel = kernel;
    group->pool = pool;
    group->bytes = bytes_of(r);
    groups->bytes += group->bytes;
    group->range_count = r->buffer_count;
    memcpy(group->ranges, ranges, r->buffer_count * sizeof *ranges);
    write_descriptors(device, group);
    return group;
}

struct bhi_vk_group *bhi_vk_group_get(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                                      const struct bhi_vk_kernel *kernel,
                                      const struct bhi_group_range *ranges,
                                      struct bhi_fault *fault) {
    const uint32_t count = kernel->reflection->buffer_count;
    const uint64_t hash = hash_ranges(kernel, ranges, count);
    struct bhi_vk_group **bucket = &groups->buckets[hash % BHI_GROUP_BUCKETS];
    for (struct bhi_vk_group *group = *bucket; group != NULL; group = group->next) {
        if (group->hash == hash && group->kernel == kernel &&
            memcmp(group->ranges, ranges, count * sizeof *ranges) == 0) {
            if (groups->newest != group) {
                unlink_group(groups, group);
                append_group(groups, group);
            }
            group->references++;
            return group;
        }
    }
    struct bhi_vk_group *group = create_group(device, groups, kernel, ranges, fault);
    if (group == NULL) {
        return NULL;
    }
    group->hash = hash;
    group->references = 1;
    group->next = *bucket;
    *bucket = group;
    append_group(groups, group);
    groups->count++;
    evict(device, groups, 0);
    return group;
}

void bhi_vk_group_release(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                          struct bhi_vk_group *group) {
    group->references--;
    evict(device, groups, 0);
}

static bool uses(const struct bhi_vk_group *group, const struct bhi_vk_buffer *buffer) {
    for (uint32_t i = 0; buffer != NULL && i < group->range_count; i++) {
        if (group->ranges[i].buffer == buffer) {
            return true;
        }
    }
    return false;
}

void bhi_vk_groups_forget(struct bhi_vk_device *device, struct bhi_vk_groups *groups,
                          const struct bhi_vk_buffer *buffer, const struct bhi_vk_kernel *kernel) {
    for (struct bhi_vk_group *group = groups->oldest; group != NULL;) {
        struct bhi_vk_group *newer = group->newer;
        if (group->kernel == kernel || uses(group, buffer)) {
            destroy_group(device, groups, group);
        }
        group = newer;
    }
}

void bhi_vk_groups_fini(struct bhi_vk_device *device, struct bhi_vk_groups *groups) {
    while (groups->oldest != NULL) {
        destroy_group(device, groups, groups->oldest);
    }
    while (groups->pools != NULL) {
        struct bhi_vk_pool *pool = groups->pools;
        groups->pools = pool->next;
        device->api.DestroyDescriptorPool(device->device, pool->pool, NULL);
        free(pool);
    }
}
