#include "worker/vulkan/groups.h"

#include "worker/error.h"
#include "worker/vulkan/result.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#define POOL_SETS    256u
#define POOL_STORAGE 2048u
#define POOL_UNIFORM 1024u
#define POOL_WORDS   32u /* of a pool; few kernels need one */

struct room {
    uint32_t sets, storage, uniform;
    uint32_t words; /* abort words, as dynamic storage buffers */
};

/* A pool of descriptors. We count what is left of it, because a driver need not refuse more than
 * the pool was made for. */
struct bhi_vk_pool {
    struct bhi_list node;
    VkDescriptorPool pool;
    struct room left;
};

/* Returns what the sets of |kernel| take from a pool. */
static struct room room_for(const struct bhi_vk_kernel *kernel) {
    const struct bhi_module_bindings *r = kernel->reflection;
    struct room room = {.sets = r->set_count, .words = kernel->guard_shares_set};
    for (uint32_t i = 0; i < r->binding_count; i++) {
        *(r->bindings[i].kind == BH_BINDING_STORAGE_BUFFER ? &room.storage : &room.uniform) +=
            r->bindings[i].count;
    }
    return room;
}

/* Takes |room| from the pool, or gives it back if |sign| is 1. */
static void move_room(struct bhi_vk_pool *pool, const struct room *room, int sign) {
    pool->left.sets += (uint32_t)sign * room->sets;
    pool->left.storage += (uint32_t)sign * room->storage;
    pool->left.uniform += (uint32_t)sign * room->uniform;
    pool->left.words += (uint32_t)sign * room->words;
}

static struct bhi_vk_pool *find_pool(struct bhi_vk_groups *groups, const struct room *room,
                                     struct bhi_error *error) {
    BHI_LIST_FOR(struct bhi_vk_pool, pool, &groups->pools, node) {
        const struct room *left = &pool->left;
        if (left->sets >= room->sets && left->storage >= room->storage &&
            left->uniform >= room->uniform && left->words >= room->words) {
            return pool;
        }
    }
    struct bhi_vk_pool *pool = calloc(1, sizeof *pool);
    if (!pool) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "descriptor sets");
        return NULL;
    }
    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, POOL_STORAGE},
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, POOL_UNIFORM},
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, POOL_WORDS},
    };
    const VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
        .maxSets = POOL_SETS,
        .poolSizeCount = 3,
        .pPoolSizes = sizes,
    };
    VkResult result =
        groups->device->api.CreateDescriptorPool(groups->device->device, &info, NULL, &pool->pool);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkCreateDescriptorPool");
        free(pool);
        return NULL;
    }
    pool->left = (struct room){POOL_SETS, POOL_STORAGE, POOL_UNIFORM, POOL_WORDS};
    bhi_list_insert_before(groups->pools.next, &pool->node);
    return pool;
}

static void write_descriptors(const struct bhi_vk_groups *groups,
                              const struct bhi_vk_group *group) {
    const struct bhi_module_bindings *r = group->kernel->reflection;
    VkDescriptorBufferInfo buffers[BHI_MAX_BINDINGS];
    VkWriteDescriptorSet writes[BHI_MAX_BINDINGS];
    for (uint32_t i = 0; i < r->buffer_count; i++) {
        const struct bhi_group_range *range = &group->ranges[i];
        buffers[i] = (VkDescriptorBufferInfo){
            .buffer = range->buffer->buffer,
            .offset = range->offset, /* 0 where there is no buffer */
            .range = range->size == 0 ? VK_WHOLE_SIZE : range->size,
        };
    }
    for (uint32_t i = 0; i < r->binding_count; i++) {
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = group->sets[r->bindings[i].set],
            .dstBinding = r->bindings[i].binding,
            .descriptorCount = r->bindings[i].count,
            .descriptorType = r->bindings[i].kind == BH_BINDING_UNIFORM_BUFFER
                                  ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &buffers[r->bindings[i].first],
        };
    }
    groups->device->api.UpdateDescriptorSets(groups->device->device, r->binding_count, writes, 0,
                                             NULL);
    if (group->kernel->guard_shares_set) {
        bhi_vk_abort_write_shared(groups->device, groups->abort,
                                  group->sets[group->kernel->guard_set],
                                  group->kernel->guard_binding);
    }
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

static void destroy_group(struct bhi_vk_groups *groups, struct bhi_vk_group *group) {
    bhi_map_unlink(&groups->map, &group->chain);
    bhi_list_remove(&group->used);
    groups->count--;
    groups->bytes -= group->bytes;
    const struct room room = room_for(group->kernel);
    groups->device->api.FreeDescriptorSets(groups->device->device, group->pool->pool,
                                           group->kernel->reflection->set_count, group->sets);
    move_room(group->pool, &room, 1);
    free(group);
}

static void evict(struct bhi_vk_groups *groups, uint64_t bytes) {
    BHI_LIST_EACH_SAFE(node, &groups->used) {
        if (groups->count <= groups->limit && groups->bytes + bytes <= groups->max_bytes) {
            break;
        }
        struct bhi_vk_group *group = BHI_CONTAINER(node, struct bhi_vk_group, used);
        if (group->references == 0) {
            destroy_group(groups, group);
        }
    }
}

bool bhi_vk_groups_make_room(struct bhi_vk_groups *groups, uint64_t bytes) {
    evict(groups, bytes);
    return groups->bytes + bytes <= groups->max_bytes;
}

/* An upper bound: a set takes whole pages, and no driver's descriptor is larger. */
static uint64_t bytes_of(const struct bhi_vk_kernel *kernel) {
    const struct bhi_module_bindings *r = kernel->reflection;
    return (uint64_t)r->set_count * 4096 +
           ((uint64_t)r->buffer_count + kernel->guard_shares_set) * 512;
}

static struct bhi_vk_group *create_group(struct bhi_vk_groups *groups,
                                         const struct bhi_vk_kernel *kernel,
                                         const struct bhi_group_range *ranges,
                                         struct bhi_error *error) {
    const struct bhi_module_bindings *r = kernel->reflection;
    const struct room room = room_for(kernel);
    if (!bhi_vk_groups_make_room(groups, bytes_of(kernel))) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .value = groups->bytes + bytes_of(kernel),
                  .limit = groups->max_bytes,
                  .text = "more descriptor sets than a worker may have");
        return NULL;
    }
    struct bhi_vk_pool *pool = find_pool(groups, &room, error);
    struct bhi_vk_group *group =
        pool ? calloc(1, sizeof *group + r->buffer_count * sizeof *ranges) : NULL;
    if (!group) {
        if (pool) {
            BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "descriptor sets");
        }
        return NULL;
    }
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool->pool,
        .descriptorSetCount = r->set_count,
        .pSetLayouts = kernel->set_layouts,
    };
    VkResult result =
        groups->device->api.AllocateDescriptorSets(groups->device->device, &info, group->sets);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkAllocateDescriptorSets");
        free(group);
        return NULL;
    }
    move_room(pool, &room, -1);
    group->kernel = kernel;
    group->pool = pool;
    group->bytes = bytes_of(kernel);
    groups->bytes += group->bytes;
    group->range_count = r->buffer_count;
    memcpy(group->ranges, ranges, r->buffer_count * sizeof *ranges);
    write_descriptors(groups, group);
    return group;
}

struct bhi_vk_group *bhi_vk_group_get(struct bhi_vk_groups *groups,
                                      const struct bhi_vk_kernel *kernel,
                                      const struct bhi_group_range *ranges,
                                      struct bhi_error *error) {
    const uint32_t count = kernel->reflection->buffer_count;
    const uint64_t hash = hash_ranges(kernel, ranges, count);
    for (struct bhi_chain *node = bhi_map_get(&groups->map, hash); node; node = node->next) {
        struct bhi_vk_group *group = BHI_CONTAINER(node, struct bhi_vk_group, chain);
        if (group->kernel == kernel && memcmp(group->ranges, ranges, count * sizeof *ranges) == 0) {
            bhi_list_remove(&group->used);
            bhi_list_append(&groups->used, &group->used);
            group->references++;
            return group;
        }
    }
    if (!bhi_map_reserve(&groups->map, 1)) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "descriptor sets");
        return NULL;
    }
    struct bhi_vk_group *group = create_group(groups, kernel, ranges, error);
    if (!group) {
        return NULL;
    }
    group->references = 1;
    bhi_map_link(&groups->map, hash, &group->chain);
    bhi_list_append(&groups->used, &group->used);
    groups->count++;
    evict(groups, 0);
    return group;
}

void bhi_vk_group_release(struct bhi_vk_groups *groups, struct bhi_vk_group *group) {
    group->references--;
    evict(groups, 0);
}

static bool uses(const struct bhi_vk_group *group, const struct bhi_vk_buffer *buffer) {
    for (uint32_t i = 0; buffer && i < group->range_count; i++) {
        if (group->ranges[i].buffer == buffer) {
            return true;
        }
    }
    return false;
}

void bhi_vk_groups_forget(struct bhi_vk_groups *groups, const struct bhi_vk_buffer *buffer,
                          const struct bhi_vk_kernel *kernel) {
    BHI_LIST_FOR_SAFE(struct bhi_vk_group, group, &groups->used, used) {
        if (group->kernel == kernel || uses(group, buffer)) {
            destroy_group(groups, group);
        }
    }
}

void bhi_vk_groups_fini(struct bhi_vk_groups *groups) {
    BHI_LIST_EACH_SAFE(node, &groups->used) {
        destroy_group(groups, BHI_CONTAINER(node, struct bhi_vk_group, used));
    }
    bhi_map_fini(&groups->map);
    BHI_LIST_EACH_SAFE(node, &groups->pools) {
        struct bhi_vk_pool *pool = BHI_CONTAINER(node, struct bhi_vk_pool, node);
        bhi_list_remove(node);
        groups->device->api.DestroyDescriptorPool(groups->device->device, pool->pool, NULL);
        free(pool);
    }
}
