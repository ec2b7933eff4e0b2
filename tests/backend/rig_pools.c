/* Descriptor pools that hold no more than they were made for. Drivers need not refuse more, and lavapipe
 * does not. */
#include "rig.h"

#include "base/map.h"

#include <stdlib.h>

/* Sets, and descriptors of each type. */
#define TYPES (VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC + 1)
struct room {
    VkDescriptorPool pool; /* of a set */
    uint32_t sets, of[TYPES];
};

static struct {
    PFN_vkCreateDescriptorPool create_pool;
    PFN_vkDestroyDescriptorPool destroy_pool;
    PFN_vkCreateDescriptorSetLayout create_layout;
    PFN_vkDestroyDescriptorSetLayout destroy_layout;
    PFN_vkAllocateDescriptorSets allocate;
    PFN_vkFreeDescriptorSets free;
} real;
static struct bhi_map rooms; /* by handle: what a pool has left, what a layout and a set take */

#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

static struct room *keep(uint64_t key, const struct room *room) {
    struct room *kept = malloc(sizeof *kept);
    BHT_TRUE(kept);
    *kept = *room;
    free(bhi_map_remove(&rooms, key));
    BHT_TRUE(bhi_map_put(&rooms, key, kept));
    return kept;
}

static void forget(uint64_t key) {
    free(bhi_map_remove(&rooms, key));
    if (rooms.count == 0) {
        bhi_map_fini(&rooms);
        rooms = (struct bhi_map){0};
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device,
                                                  const VkDescriptorPoolCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkDescriptorPool *out) {
    const VkResult result = real.create_pool(device, info, allocator, out);
    struct room room = {.sets = info->maxSets};
    for (uint32_t i = 0; i < info->poolSizeCount; i++) {
        room.of[info->pPoolSizes[i].type] += info->pPoolSizes[i].descriptorCount;
    }
    if (result == VK_SUCCESS) {
        keep(KEY(*out), &room);
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkDescriptorPool pool,
                                               const VkAllocationCallbacks *allocator) {
    for (size_t i = 0; pool && i < rooms.capacity;) { /* its sets go with it */
        struct room *room = rooms.entries[i].value;
        if (room && room->pool == pool) {
            free(bhi_map_remove(&rooms, rooms.entries[i].key));
        } else {
            i++;
        }
    }
    forget(KEY(pool));
    real.destroy_pool(device, pool, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_layout(VkDevice device,
                                                    const VkDescriptorSetLayoutCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDescriptorSetLayout *out) {
    const VkResult result = real.create_layout(device, info, allocator, out);
    struct room room = {.sets = 1};
    for (uint32_t i = 0; i < info->bindingCount; i++) {
        room.of[info->pBindings[i].descriptorType] += info->pBindings[i].descriptorCount;
    }
    if (result == VK_SUCCESS) {
        keep(KEY(*out), &room);
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL destroy_layout(VkDevice device, VkDescriptorSetLayout layout,
                                                 const VkAllocationCallbacks *allocator) {
    forget(KEY(layout));
    real.destroy_layout(device, layout, allocator);
}

static bool take(struct room *left, const struct room *room) {
    bool fits = left->sets >= room->sets;
    left->sets -= room->sets;
    for (uint32_t i = 0; i < TYPES; i++) {
        fits = fits && left->of[i] >= room->of[i];
        left->of[i] -= room->of[i];
    }
    return fits;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device,
                                               const VkDescriptorSetAllocateInfo *info,
                                               VkDescriptorSet *out) {
    struct room *left = bhi_map_get(&rooms, KEY(info->descriptorPool));
    for (uint32_t i = 0; i < info->descriptorSetCount; i++) {
        if (!take(left, bhi_map_get(&rooms, KEY(info->pSetLayouts[i])))) {
            BHT_FAIL("a descriptor pool is asked for more than it has");
        }
    }
    const VkResult result = real.allocate(device, info, out);
    for (uint32_t i = 0; result == VK_SUCCESS && i < info->descriptorSetCount; i++) {
        struct room *set = keep(KEY(out[i]), bhi_map_get(&rooms, KEY(info->pSetLayouts[i])));
        set->pool = info->descriptorPool;
    }
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL free_sets(VkDevice device, VkDescriptorPool pool,
                                                uint32_t count, const VkDescriptorSet *sets) {
    struct room *left = bhi_map_get(&rooms, KEY(pool));
    for (uint32_t i = 0; i < count; i++) {
        struct room *set = bhi_map_remove(&rooms, KEY(sets[i]));
        BHT_TRUE(set && set->pool == pool);
        left->sets += set->sets;
        for (uint32_t type = 0; type < TYPES; type++) {
            left->of[type] += set->of[type];
        }
        free(set);
    }
    return real.free(device, pool, count, sets);
}

size_t rig_live_sets(void) {
    size_t count = 0;
    for (size_t i = 0; i < rooms.capacity; i++) {
        const struct room *room = rooms.entries[i].value;
        count += room && room->pool != VK_NULL_HANDLE;
    }
    return count;
}

PFN_vkVoidFunction rig_pools_call(const char *name, PFN_vkVoidFunction function) {
    const struct {
        const char *name;
        PFN_vkVoidFunction *real, call;
    } calls[] = {
#define ROW(name, member, call)                                                                    \
    {name, (PFN_vkVoidFunction *)(void *)&real.member, (PFN_vkVoidFunction)(call)}
        ROW("vkCreateDescriptorPool", create_pool, create_pool),
        ROW("vkDestroyDescriptorPool", destroy_pool, destroy_pool),
        ROW("vkCreateDescriptorSetLayout", create_layout, create_layout),
        ROW("vkDestroyDescriptorSetLayout", destroy_layout, destroy_layout),
        ROW("vkAllocateDescriptorSets", allocate, allocate),
        ROW("vkFreeDescriptorSets", free, free_sets),
    };
    for (size_t i = 0; i < BHT_COUNT(calls); i++) {
        if (strcmp(calls[i].name, name) == 0) {
            *calls[i].real = function;
            return calls[i].call;
        }
    }
    return function;
}
