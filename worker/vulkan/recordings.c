#include "worker/vulkan/recordings.h"

#include "base/array.h"
#include "worker/error.h"
#include "worker/vulkan/commands.h"
#include "worker/vulkan/result.h"

#include <stdlib.h>
#include <string.h>

bool bhi_pointers_add(struct bhi_pointers *list, void *item) {
    if (!BHI_ARRAY_RESERVE(list->items, list->capacity, list->count + 1)) {
        return false;
    }
    list->items[list->count++] = item;
    return true;
}

bool bhi_vk_recordings_init(struct bhi_vk_recordings *recordings, struct bhi_error *error) {
    recordings->max_count = 256;
    recordings->max_bytes = 16u << 20;
    VkResult result =
        bhi_vk_pool_create(recordings->device, recordings->device->queue_family, &recordings->pool);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkCreateCommandPool");
    }
    return result == VK_SUCCESS;
}

/* Computes four sums at the same time: a single one would wait for each multiplication. */
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

static struct bhi_vk_recording *oldest(const struct bhi_vk_recordings *recordings) {
    return bhi_list_empty(&recordings->used)
               ? NULL
               : BHI_CONTAINER(recordings->used.next, struct bhi_vk_recording, used);
}

struct bhi_vk_recording *bhi_vk_recording_find(struct bhi_vk_recordings *recordings, uint64_t hash,
                                               const void *bytes, size_t size) {
    for (struct bhi_chain *node = bhi_map_get(&recordings->valid, hash); node; node = node->next) {
        struct bhi_vk_recording *r = BHI_CONTAINER(node, struct bhi_vk_recording, chain);
        if (r->size == size && memcmp(r->bytes, bytes, size) == 0) {
            bhi_list_remove(&r->used);
            bhi_list_append(&recordings->used, &r->used);
            return r;
        }
    }
    return NULL;
}

void bhi_vk_recording_clear(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    if (r->valid) {
        bhi_map_unlink(&recordings->valid, &r->chain);
        r->valid = false;
    }
    for (size_t i = 0; i < r->groups.count; i++) {
        bhi_vk_group_release(recordings->groups, r->groups.items[i]);
    }
    r->groups.count = r->buffers.count = r->kernels.count = 0;
    r->barriers = 0;
    r->last_run = 0;
}

void bhi_vk_recording_fini(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    bhi_vk_recording_clear(recordings, r);
    free(r->groups.items);
    free(r->buffers.items);
    free(r->kernels.items);
    free(r->bytes);
}

static void destroy(struct bhi_vk_recordings *recordings, struct bhi_vk_recording *r) {
    bhi_vk_recording_clear(recordings, r);
    bhi_list_remove(&r->used);
    recordings->count--;
    recordings->bytes -= r->capacity;
    recordings->device->api.FreeCommandBuffers(recordings->device->device, recordings->pool, 1,
                                               &r->commands);
    bhi_vk_recording_fini(recordings, r);
    free(r);
}

static struct bhi_vk_recording *create(struct bhi_vk_recordings *recordings,
                                       struct bhi_error *error) {
    struct bhi_vk_recording *r = calloc(1, sizeof *r);
    if (!r) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a command buffer");
        return NULL;
    }
    VkResult result = bhi_vk_commands_create(recordings->device, recordings->pool, &r->commands);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, "vkAllocateCommandBuffers");
        free(r);
        return NULL;
    }
    bhi_list_append(&recordings->used, &r->used);
    recordings->count++;
    return r;
}

struct bhi_vk_recording *bhi_vk_recording_take(struct bhi_vk_recordings *recordings, uint64_t run,
                                               uint64_t hash, const void *bytes, size_t size,
                                               struct bhi_error *error) {
    struct bhi_vk_recording *r = oldest(recordings);
    for (; r && r->last_run != run &&
           (recordings->count > recordings->max_count ||
            recordings->bytes + size > recordings->max_bytes ||
            !bhi_vk_groups_make_room(recordings->groups, size * BHI_GROUP_BYTES_A_BYTE));
         r = oldest(recordings)) {
        destroy(recordings, r);
    }
    if (r && r->last_run != run && (!r->valid || recordings->count >= recordings->max_count)) {
        bhi_vk_recording_clear(recordings, r);
        bhi_list_remove(&r->used);
        bhi_list_append(&recordings->used, &r->used);
    } else {
        r = create(recordings, error);
        if (!r) {
            return NULL;
        }
    }
    if (!bhi_map_reserve(&recordings->valid, 1)) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a command buffer");
        return NULL;
    }
    if (r->capacity < size) {
        uint8_t *bigger = realloc(r->bytes, size);
        if (!bigger) {
            BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a command buffer");
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
    bhi_map_link(&recordings->valid, r->hash, &r->chain);
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

void bhi_vk_recordings_forget(struct bhi_vk_recordings *recordings, const void *object) {
    BHI_LIST_FOR_SAFE(struct bhi_vk_recording, r, &recordings->used, used) {
        if (holds(&r->buffers, object) || holds(&r->kernels, object)) {
            bhi_vk_recording_clear(recordings, r);
            /* An empty recording is reused before any other is evicted. */
            bhi_list_remove(&r->used);
            bhi_list_insert_before(recordings->used.next, &r->used);
        }
    }
}

void bhi_vk_recordings_fini(struct bhi_vk_recordings *recordings) {
    BHI_LIST_EACH_SAFE(node, &recordings->used) {
        destroy(recordings, BHI_CONTAINER(node, struct bhi_vk_recording, used));
    }
    bhi_map_fini(&recordings->valid);
    recordings->device->api.DestroyCommandPool(recordings->device->device, recordings->pool, NULL);
    recordings->pool = VK_NULL_HANDLE;
}

void bhi_vk_forget_kernel(struct bhi_vk_recordings *recordings,
                          const struct bhi_vk_kernel *kernel) {
    bhi_vk_recordings_forget(recordings, kernel);
    bhi_vk_groups_forget(recordings->groups, NULL, kernel);
}

void bhi_vk_evict_pipelines(struct bhi_vk_recordings *recordings, struct bhi_vk_kernels *kernels,
                            uint64_t run) {
    struct bhi_vk_kernel *victim;
    while ((victim = bhi_vk_kernel_victim(kernels, run))) {
        bhi_vk_forget_kernel(recordings, victim);
        bhi_vk_kernel_evict(recordings->device, kernels, victim);
    }
}
