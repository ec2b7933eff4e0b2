#include "worker/vulkan/recordings.h"

#include "worker/error.h"

#include <stdlib.h>
#include <string.h>

bool bhi_pointers_add(struct bhi_pointers *list, void *item) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        void **bigger = realloc(list->items, capacity * sizeof *bigger);
        if (bigger == NULL) {
            return false;
        }
        list->items = bigger;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

bool bhi_vk_recordings_init(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_error *error) {
    const VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device->queue_family,
    };
    recordings->max_count = 256;
    recordings->max_bytes = 16u << 20;
    VkResult result = device->api.CreateCommandPool(device->device, &info, NULL, &recordings->pool);
    if (result != VK_SUCCESS) {
        recordings->pool = VK_NULL_HANDLE;
        bhi_error_vk(error, result, "vkCreateCommandPool");
    }
    return result == VK_SUCCESS;
}

/* Four sums side by side: one alone would wait for its multiplications. */
uint64_t bhi_vk_recording_hash(const void *bytes, size_t size) {
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sums[4] = {size, 1, 2, 3};
    const uint8_t *at = bytes;
    for (; size >= 32; at += 32, size -= 32) {
        uint64_t words[4];
        memcpy(words, at, sizeof words);
        for (int i = 0; i < 4; i++) {
            sums[i] = (sums[i] ^ words[i]) * factor;
            sums[i] ^= sums[i] >> 32;
        }
    }
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sums[0] = (sums[0] ^ word) * factor;
        sums[0] ^= sums[0] >> 32;
    }
    for (int i = 1; i < 4; i++) {
        sums[0] = (sums[0] ^ sums[i]) * factor;
        sums[0] ^= sums[0] >> 29;
    }
    return sums[0];
}

static void unlink_used(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    *(r->older != NULL ? &r->older->newer : &recordings->oldest) = r->newer;
    *(r->newer != NULL ? &r->newer->older : &recordings->newest) = r->older;
}

static void append_used(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    r->older = recordings->newest;
    r->newer = NULL;
    *(recordings->newest != NULL ? &recordings->newest->newer : &recordings->oldest) = r;
    recordings->newest = r;
}

struct bhi_vk_recording *bhi_vk_recording_find(struct bhi_vk_recordings *recordings, uint64_t hash,
                                               const void *bytes, size_t size) {
    struct bhi_vk_recording *r = recordings->buckets[hash % BHI_RECORDING_BUCKETS];
    while (r != NULL &&
           (r->hash != hash || r->size != size || memcmp(r->bytes, bytes, size) != 0)) {
        r = r->next;
    }
    if (r != NULL && recordings->newest != r) {
        unlink_used(recordings, r);
        append_used(recordings, r);
    }
    return r;
}

void bhi_vk_recording_clear(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_vk_groups *groups, struct bhi_vk_recording *r) {
    if (r->valid) {
        struct bhi_vk_recording **at = &recordings->buckets[r->hash % BHI_RECORDING_BUCKETS];
        while (*at != r) {
            at = &(*at)->next;
        }
        *at = r->next;
        r->next = NULL;
        r->valid = false;
    }
    for (size_t i = 0; i < r->groups.count; i++) {
        bhi_vk_group_release(device, groups, r->groups.items[i]);
    }
    r->groups.count = r->buffers.count = r->kernels.count = 0;
    r->barriers = 0;
    r->last_run = 0;
}

void bhi_vk_recording_fini(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                           struct bhi_vk_groups *groups, struct bhi_vk_recording *r) {
    bhi_vk_recording_clear(device, recordings, groups, r);
    free(r->groups.items);
    free(r->buffers.items);
    free(r->kernels.items);
    free(r->bytes);
}

static void destroy(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                    struct bhi_vk_groups *groups, struct bhi_vk_recording *r) {
    bhi_vk_recording_clear(device, recordings, groups, r);
    unlink_used(recordings, r);
    recordings->count--;
    recordings->bytes -= r->capacity;
    device->api.FreeCommandBuffers(device->device, recordings->pool, 1, &r->commands);
    bhi_vk_recording_fini(device, recordings, groups, r);
    free(r);
}

static struct bhi_vk_recording *create(struct bhi_vk_device *device,
                                       struct bhi_vk_recordings *recordings,
                                       struct bhi_error *error) {
    struct bhi_vk_recording *r = calloc(1, sizeof *r);
    if (r == NULL) {
        bhi_error_set(error, BH_OUT_OF_HOST_MEMORY, "out of memory for a command buffer");
        return NULL;
    }
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = recordings->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VkResult result = device->api.AllocateCommandBuffers(device->device, &info, &r->commands);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkAllocateCommandBuffers");
        free(r);
        return NULL;
    }
    append_used(recordings, r);
    recordings->count++;
    return r;
}

struct bhi_vk_recording *bhi_vk_recording_take(struct bhi_vk_device *device,
                                               struct bhi_vk_recordings *recordings,
                                               struct bhi_vk_groups *groups, uint64_t run,
                                               uint64_t hash, const void *bytes, size_t size,
                                               struct bhi_error *error) {
    while (recordings->oldest != NULL && recordings->oldest->last_run != run &&
           (recordings->count > recordings->max_count ||
            recordings->bytes + size > recordings->max_bytes ||
            !bhi_vk_groups_make_room(device, groups, size * BHI_GROUP_BYTES_A_BYTE))) {
        destroy(device, recordings, groups, recordings->oldest);
    }
    struct bhi_vk_recording *r = recordings->oldest;
    if (r != NULL && r->last_run != run &&
        (!r->valid || recordings->count >= recordings->max_count)) {
        bhi_vk_recording_clear(device, recordings, groups, r);
        unlink_used(recordings, r);
        append_used(recordings, r);
    } else {
        r = create(device, recordings, error);
        if (r == NULL) {
            return NULL;
        }
    }
    if (r->capacity < size) {
        uint8_t *bigger = realloc(r->bytes, size);
        if (bigger == NULL) {
            bhi_error_set(error, BH_OUT_OF_HOST_MEMORY, "out of memory for a command buffer");
            return NULL;
        }
        recordings->bytes += size - r->capacity;
        r->bytes = bigger;
        r->capacity = size;
    }
    memcpy(r->bytes, bytes, size);
    r->size = size;
    r->hash = hash;
    r->last_run = run;
    return r;
}

void bhi_vk_recording_publish(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    struct bhi_vk_recording **bucket = &recordings->buckets[r->hash % BHI_RECORDING_BUCKETS];
    r->next = *bucket;
    *bucket = r;
    r->valid = true;
}

static bool holds(const struct bhi_pointers *list, const void *object) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == object) {
            return true;
        }
    }
    return false;
}

void bhi_vk_recordings_forget(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                              struct bhi_vk_groups *groups, const void *object) {
    for (struct bhi_vk_recording *r = recordings->oldest; r != NULL;) {
        struct bhi_vk_recording *newer = r->newer;
        if (holds(&r->buffers, object) || holds(&r->kernels, object)) {
            bhi_vk_recording_clear(device, recordings, groups, r);
            /* An empty one is taken before any other is evicted. */
            unlink_used(recordings, r);
            r->newer = recordings->oldest;
            r->older = NULL;
            *(recordings->oldest != NULL ? &recordings->oldest->older : &recordings->newest) = r;
            recordings->oldest = r;
        }
        r = newer;
    }
}

void bhi_vk_recordings_fini(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                            struct bhi_vk_groups *groups) {
    while (recordings->oldest != NULL) {
        destroy(device, recordings, groups, recordings->oldest);
    }
    if (recordings->pool != VK_NULL_HANDLE) {
        device->api.DestroyCommandPool(device->device, recordings->pool, NULL);
        recordings->pool = VK_NULL_HANDLE;
    }
}
