#include "worker/sentinel.h"

#include "base/map.h"
#include "worker/error.h"
#include "worker/vulkan/result.h"
#include "worker/vulkan/transfer.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct bhi_sentinel_device {
    struct bhi_vk_device device;
    pthread_mutex_t mutex; /* guards what follows */
    struct bhi_vk_transfer transfer;
    struct bhi_map words; /* by worker: struct held */
};

struct held {
    struct bhi_vk_words words;
    VkCommandBuffer set; /* sets all words of the worker */
};

static void drop(struct bhi_sentinel_device *s, struct held *held) {
    if (held) {
        bhi_vk_transfer_discard(&s->device, &s->transfer, &held->set);
        bhi_vk_words_destroy(&s->device, &held->words);
        free(held);
    }
}

struct bhi_sentinel_device *bhi_sentinel_device_create(const struct bhi_backend_config *config,
                                                       struct bhi_error *error) {
    struct bhi_sentinel_device *s = calloc(1, sizeof *s);
    const char *call = NULL;
    *error = (struct bhi_error){.status = BH_OK};
    if (!s) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a sentinel");
        return NULL;
    }
    pthread_mutex_init(&s->mutex, NULL);
    if (!bhi_vk_device_init_transfer(&s->device, config, error)) {
        pthread_mutex_destroy(&s->mutex);
        free(s);
        return NULL;
    }
    const VkResult result = bhi_vk_transfer_init(&s->device, &s->transfer, &call);
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, call);
        bhi_sentinel_device_destroy(s);
        return NULL;
    }
    return s;
}

void bhi_sentinel_device_destroy(struct bhi_sentinel_device *s) {
    if (!s) {
        return;
    }
    for (size_t i = 0; i < s->words.capacity; i++) {
        drop(s, s->words.entries[i].value);
    }
    bhi_map_fini(&s->words);
    bhi_vk_transfer_fini(&s->device, &s->transfer);
    bhi_vk_device_fini(&s->device);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* Sets the last word of the last slot, which nobody reads: the first run of a command may have to
 * wait for the driver. */
static VkResult warm_up(struct bhi_sentinel_device *s, const struct bhi_vk_words *words) {
    const struct bhi_vk_fill fill = {
        .offset = words->bytes - sizeof fill.value, .size = sizeof fill.value, .value = 1};
    return bhi_vk_transfer_fill(&s->device, &s->transfer, words->buffer, &fill, 1);
}

int32_t bhi_sentinel_device_import(struct bhi_sentinel_device *s, uint64_t worker, int fd,
                                   uint64_t bytes) {
    const struct bhi_vk_fill all = {.size = VK_WHOLE_SIZE, .value = 1};
    const char *call;
    struct held *held = calloc(1, sizeof *held);
    if (!held) {
        close(fd);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    pthread_mutex_lock(&s->mutex);
    VkResult result = bhi_vk_words_create(&s->device, &held->words, bytes, 0, fd, &call);
    if (result == VK_SUCCESS) {
        result = bhi_vk_transfer_record(&s->device, &s->transfer, held->words.buffer, &all, 1,
                                        &held->set);
    }
    if (result == VK_SUCCESS) {
        result = warm_up(s, &held->words);
    }
    if (result == VK_SUCCESS) {
        drop(s, bhi_map_remove(&s->words, worker));
        if (!bhi_map_put(&s->words, worker, held)) {
            result = VK_ERROR_OUT_OF_HOST_MEMORY;
        }
    }
    if (result != VK_SUCCESS) {
        drop(s, held);
    }
    pthread_mutex_unlock(&s->mutex);
    return result;
}

int32_t bhi_sentinel_device_set(struct bhi_sentinel_device *s, uint64_t worker) {
    pthread_mutex_lock(&s->mutex);
    const struct held *held = bhi_map_get(&s->words, worker);
    const VkResult result =
        held ? bhi_vk_transfer_run(&s->device, &s->transfer, held->set) : VK_SUCCESS;
    pthread_mutex_unlock(&s->mutex);
    return result;
}

void bhi_sentinel_device_forget(struct bhi_sentinel_device *s, uint64_t worker) {
    pthread_mutex_lock(&s->mutex);
    drop(s, bhi_map_remove(&s->words, worker));
    pthread_mutex_unlock(&s->mutex);
}

void bhi_sentinel_device_set_all(struct bhi_sentinel_device *s) {
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->words.capacity; i++) {
        const struct held *held = s->words.entries[i].value;
        if (held) {
            (void)bhi_vk_transfer_run(&s->device, &s->transfer, held->set);
        }
    }
    pthread_mutex_unlock(&s->mutex);
}
