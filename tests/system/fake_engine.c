/* The queues of fake_transfer.c's transfer family, what is recorded for them, and their fences.
 * What is submitted to the first one is done at once. A thread, the engine, does what is submitted
 * to the second one: it copies between memories that the processor sees, while lavapipe's threads
 * compute. If there is a file "engine" beside the library, of 4096 bytes, a test can hold it and
 * see how far it is (fake_engine_page.h). */
#include "fake_engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS   128
#define COPIES  64
#define WORKS   64
#define LOOK_NS 1000000

static VkCommandPool copy_pools[QUEUES];
static struct copy {
    VkCommandBuffer commands;
    struct step {
        VkBuffer from; /* VK_NULL_HANDLE: a fill */
        VkBuffer buffer;
        VkDeviceSize from_offset, offset, size;
        uint32_t value;
    } steps[STEPS];
    size_t count;
} copies[COPIES];
/* What was submitted to our queues: fences that are in use there. */
static struct work {
    VkFence fence;
    struct copy *copy; /* NULL: it is done */
} works[WORKS];
static size_t works_begun, works_ended; /* of the engine, in the order of the ring |engine_ring| */
static struct work *engine_ring[WORKS];
static pthread_cond_t changed; /* of a work, or of |engine_ends| */
static pthread_t engine_thread;
static bool engine_runs, engine_ends;
struct fake_engine *fake_engine_page;
/* Two queues. The loader writes into their first words. */
static struct queue {
    void *loader[4];
} our_queues[2] = {{{(void *)0x01CDC0DE}}, {{(void *)0x01CDC0DE}}};
#define OUR_QUEUE(index) ((VkQueue)(void *)&our_queues[index])

static void VKAPI_CALL get_queue(VkDevice d, uint32_t family, uint32_t index, VkQueue *out) {
    if (family == 1) {
        *out = OUR_QUEUE(index);
    } else {
        DEVICE(vkGetDeviceQueue)(d, family, index, out);
    }
}

/* Which command pools are of our family: those of words and of copies. */
static bool is_ours(VkCommandPool pool) {
    for (size_t i = 0; i < QUEUES; i++) {
        if (copy_pools[i] != VK_NULL_HANDLE && copy_pools[i] == pool) {
            return true;
        }
    }
    return false;
}

static VkResult VKAPI_CALL create_pool(VkDevice d, const VkCommandPoolCreateInfo *info,
                                       const VkAllocationCallbacks *allocator, VkCommandPool *out) {
    VkCommandPoolCreateInfo changed = *info;
    changed.queueFamilyIndex = 0;
    VkResult result = DEVICE(vkCreateCommandPool)(d, &changed, allocator, out);
    for (size_t i = 0; result == VK_SUCCESS && info->queueFamilyIndex == 1 && i < QUEUES; i++) {
        if (copy_pools[i] == VK_NULL_HANDLE) {
            copy_pools[i] = *out;
            break;
        }
    }
    return result;
}

static struct copy *find_copy(VkCommandBuffer commands) {
    for (size_t i = 0; i < COPIES; i++) {
        if (copies[i].commands == commands) {
            return &copies[i];
        }
    }
    return NULL;
}

static VkResult VKAPI_CALL allocate_commands(VkDevice d, const VkCommandBufferAllocateInfo *info,
                                             VkCommandBuffer *out) {
    VkResult result = DEVICE(vkAllocateCommandBuffers)(d, info, out);
    if (result == VK_SUCCESS && is_ours(info->commandPool)) {
        pthread_mutex_lock(&fake_mutex);
        struct copy *copy = find_copy(VK_NULL_HANDLE);
        if (!copy) {
            abort(); /* somebody frees none */
        }
        copy->commands = out[0];
        copy->count = 0;
        pthread_mutex_unlock(&fake_mutex);
    }
    return result;
}

static VkResult VKAPI_CALL begin_commands(VkCommandBuffer commands,
                                          const VkCommandBufferBeginInfo *info) {
    pthread_mutex_lock(&fake_mutex);
    struct copy *copy = find_copy(commands);
    if (copy) {
        copy->count = 0;
    }
    pthread_mutex_unlock(&fake_mutex);
    return DEVICE(vkBeginCommandBuffer)(commands, info);
}

/* Returns false if the commands are for lavapipe. */
static bool add_step(VkCommandBuffer commands, const struct step *step) {
    pthread_mutex_lock(&fake_mutex);
    struct copy *copy = find_copy(commands);
    if (copy && copy->count == STEPS) {
        abort();
    }
    if (copy) {
        copy->steps[copy->count++] = *step;
    }
    pthread_mutex_unlock(&fake_mutex);
    return copy;
}

static void VKAPI_CALL fill_buffer(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset,
                                   VkDeviceSize size, uint32_t value) {
    const struct step step = {.buffer = buffer, .offset = offset, .size = size, .value = value};
    if (!add_step(commands, &step)) {
        DEVICE(vkCmdFillBuffer)(commands, buffer, offset, size, value);
    }
}

static void VKAPI_CALL copy_buffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                                   uint32_t count, const VkBufferCopy *regions) {
    for (uint32_t i = 0; i < count; i++) {
        const struct step step = {.from = from,
                                  .buffer = to,
                                  .from_offset = regions[i].srcOffset,
                                  .offset = regions[i].dstOffset,
                                  .size = regions[i].size};
        if (!add_step(commands, &step)) {
            DEVICE(vkCmdCopyBuffer)(commands, from, to, 1, &regions[i]);
        }
    }
}

static void VKAPI_CALL free_commands(VkDevice d, VkCommandPool pool, uint32_t count,
                                     const VkCommandBuffer *commands) {
    pthread_mutex_lock(&fake_mutex);
    for (uint32_t i = 0; i < count; i++) {
        struct copy *copy = commands[i] == VK_NULL_HANDLE ? NULL : find_copy(commands[i]);
        if (copy) {
            copy->commands = VK_NULL_HANDLE;
        }
    }
    pthread_mutex_unlock(&fake_mutex);
    DEVICE(vkFreeCommandBuffers)(d, pool, count, commands);
}

static void run_step(const struct step *step) {
    size_t room, from_room = 0;
    pthread_mutex_lock(&fake_mutex);
    uint8_t *to = fake_bytes_of(step->buffer, step->offset, &room);
    const uint8_t *from = step->from == VK_NULL_HANDLE
                              ? NULL
                              : fake_bytes_of(step->from, step->from_offset, &from_room);
    pthread_mutex_unlock(&fake_mutex);
    const size_t size = step->size == VK_WHOLE_SIZE ? room : step->size;
    if (size > room || (from && size > from_room)) {
        abort();
    }
    if (from) {
        memcpy(to, from, size);
        return;
    }
    volatile uint32_t *words = (volatile uint32_t *)(void *)to;
    for (size_t w = 0; w < size / 4; w++) {
        words[w] = step->value;
    }
}

static void run_copy(const struct copy *copy) {
    for (size_t i = 0; i < copy->count; i++) {
        run_step(&copy->steps[i]);
    }
}

/* -- the engine ------------------------------------------------------------------------------- */

static struct work *find_work(VkFence fence) {
    for (size_t i = 0; i < WORKS; i++) {
        if (works[i].fence == fence) {
            return &works[i];
        }
    }
    return NULL;
}

/* Waits for |changed| for a little while: nothing wakes it when a test lets the engine go on. */
static void look_again(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&changed, &fake_mutex, &until);
}

/* Takes one of the steps, if it is held. */
static bool is_held(void) {
    if (!fake_engine_page || !atomic_load(&fake_engine_page->held)) {
        return false;
    }
    if (atomic_load(&fake_engine_page->steps) == 0) {
        return true;
    }
    atomic_fetch_sub(&fake_engine_page->steps, 1);
    return false;
}

static bool is_lost(void) {
    return fake_engine_page && atomic_load(&fake_engine_page->lost);
}

static void *run_engine(void *unused) {
    (void)unused;
    pthread_mutex_lock(&fake_mutex);
    for (;;) {
        if (engine_ends) {
            break;
        }
        if (works_begun == works_ended) {
            pthread_cond_wait(&changed, &fake_mutex);
            continue;
        }
        if (is_held()) {
            atomic_store(&fake_engine_page->waiting, works_ended + 1);
            look_again();
            continue;
        }
        struct work *work = engine_ring[works_ended % WORKS];
        pthread_mutex_unlock(&fake_mutex);
        run_copy(work->copy);
        pthread_mutex_lock(&fake_mutex);
        work->copy = NULL;
        works_ended++;
        if (fake_engine_page) {
            atomic_fetch_add(&fake_engine_page->done, 1);
        }
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&fake_mutex);
    return NULL;
}

void fake_engine_start(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    works_begun = works_ended = 0;
    engine_ends = false;
    engine_runs = QUEUES > 1 && pthread_create(&engine_thread, NULL, run_engine, NULL) == 0;
}

static void VKAPI_CALL destroy_device(VkDevice d, const VkAllocationCallbacks *allocator) {
    pthread_mutex_lock(&fake_mutex);
    engine_ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&fake_mutex);
    if (engine_runs) {
        pthread_join(engine_thread, NULL);
        engine_runs = false;
    }
    memset(copies, 0, sizeof copies);
    memset(works, 0, sizeof works);
    memset(copy_pools, 0, sizeof copy_pools);
    ((PFN_vkDestroyDevice)real_device_proc(d, "vkDestroyDevice"))(d, allocator);
}

static VkResult VKAPI_CALL wait_idle(VkDevice d) {
    pthread_mutex_lock(&fake_mutex);
    while (engine_runs && works_begun != works_ended) {
        look_again();
    }
    pthread_mutex_unlock(&fake_mutex);
    return DEVICE(vkDeviceWaitIdle)(d);
}

/* Of the first queue, all is done at once; the engine does what is submitted to the second one. */
static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                  VkFence fence) {
    if (queue != OUR_QUEUE(0) && queue != OUR_QUEUE(1)) {
        return DEVICE(vkQueueSubmit)(queue, count, infos, fence);
    }
    pthread_mutex_lock(&fake_mutex);
    struct copy *copy = count == 1 ? find_copy(infos->pCommandBuffers[0]) : NULL;
    struct work *work = find_work(VK_NULL_HANDLE);
    if (!copy || !work || fence == VK_NULL_HANDLE || find_work(fence)) {
        abort();
    }
    *work = (struct work){.fence = fence, .copy = copy};
    const bool now = queue == OUR_QUEUE(0);
    if (!now) {
        engine_ring[works_begun++ % WORKS] = work;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&fake_mutex);
    if (now) {
        run_copy(copy);
        pthread_mutex_lock(&fake_mutex);
        work->copy = NULL;
        pthread_mutex_unlock(&fake_mutex);
    }
    return VK_SUCCESS;
}

static VkResult VKAPI_CALL fence_status(VkDevice d, VkFence fence) {
    pthread_mutex_lock(&fake_mutex);
    const struct work *work = find_work(fence);
    const bool ours = work, is_done = work && !work->copy;
    pthread_mutex_unlock(&fake_mutex);
    return is_lost() ? VK_ERROR_DEVICE_LOST
           : !ours   ? DEVICE(vkGetFenceStatus)(d, fence)
           : is_done ? VK_SUCCESS
                     : VK_NOT_READY;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static VkResult VKAPI_CALL wait_fences(VkDevice d, uint32_t count, const VkFence *fences,
                                       VkBool32 all, uint64_t timeout) {
    const uint64_t began = now_ns();
    pthread_mutex_lock(&fake_mutex);
    const struct work *work = find_work(fences[0]);
    const bool ours = work;
    while (work && work->copy && now_ns() - began < timeout) {
        look_again();
    }
    const bool is_done = work && !work->copy;
    pthread_mutex_unlock(&fake_mutex);
    return !ours     ? DEVICE(vkWaitForFences)(d, count, fences, all, timeout)
           : is_done ? VK_SUCCESS
                     : VK_TIMEOUT;
}

static VkResult VKAPI_CALL reset_fences(VkDevice d, uint32_t count, const VkFence *fences) {
    pthread_mutex_lock(&fake_mutex);
    struct work *work = find_work(fences[0]);
    if (work) {
        *work = (struct work){0};
    }
    pthread_mutex_unlock(&fake_mutex);
    return work ? VK_SUCCESS : DEVICE(vkResetFences)(d, count, fences);
}

PFN_vkVoidFunction fake_engine_proc(const char *name) {
    static const struct entry own[] = {
        {"vkGetDeviceQueue", (PFN_vkVoidFunction)get_queue},
        {"vkCreateCommandPool", (PFN_vkVoidFunction)create_pool},
        {"vkAllocateCommandBuffers", (PFN_vkVoidFunction)allocate_commands},
        {"vkFreeCommandBuffers", (PFN_vkVoidFunction)free_commands},
        {"vkBeginCommandBuffer", (PFN_vkVoidFunction)begin_commands},
        {"vkCmdFillBuffer", (PFN_vkVoidFunction)fill_buffer},
        {"vkCmdCopyBuffer", (PFN_vkVoidFunction)copy_buffer},
        {"vkDestroyDevice", (PFN_vkVoidFunction)destroy_device},
        {"vkDeviceWaitIdle", (PFN_vkVoidFunction)wait_idle},
        {"vkQueueSubmit", (PFN_vkVoidFunction)submit},
        {"vkGetFenceStatus", (PFN_vkVoidFunction)fence_status},
        {"vkWaitForFences", (PFN_vkVoidFunction)wait_fences},
        {"vkResetFences", (PFN_vkVoidFunction)reset_fences},
        {0},
    };
    return find_entry(own, name);
}
