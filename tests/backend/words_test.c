/* The abort words: whenever somebody asks, it is this record that ends and no other, and the word says so
 * on the device. The processor writes them, or (on the driver tests/system/fake_transfer.c) a queue for
 * transfers, in memory that a sentinel imports. Fresh memory is full of noise here (rig_vulkan.c). */
#include "fake_driver.h"
#include "rig.h"
#include "worker/sentinel.h"
#include "worker/vulkan/backend.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const volatile uint8_t *words; /* what the device sees */
static size_t word_bytes;

static uint32_t word(uint32_t slot) {
    return *(const volatile uint32_t *)(words + bhi_vk_abort_offset(slot) +
                                        offsetof(struct bhi_guard_words, abort));
}

static void unmap(void) {
    if (word_bytes > 0) {
        munmap((void *)(uintptr_t)words, word_bytes);
        word_bytes = 0;
    }
}

static void open_with(bool remote) {
    unmap();
    if (remote) {
        fake_driver_install(BHT_FAKE_COPIES);
    } else {
        unsetenv("VK_DRIVER_FILES");
    }
    rig_open_usual();
    BHT_EQ(bhi_vk(rig.backend)->abort.remote, remote);
    words = bhi_vk(rig.backend)->abort.slots;
    if (remote) {
        uint64_t bytes;
        int fd = bhi_backend_words(rig.backend, &bytes);
        BHT_GE(fd, 0);
        words = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        BHT_NE(words, MAP_FAILED);
        word_bytes = bytes;
        close(fd);
    }
    rig_buffer(1, 1024);
    rig_buffer(2, 1024);
    rig_kernel(1, CODE(add));
    rig_begin();
    rig_add(1, 1, 2, 0);
    rig_run_ok(); /* it is compiled */
}

BHT_AT_START(bht_end_with(unmap))

static void expect_clean(const char *what) {
    for (uint32_t slot = 0; slot < BHI_ABORT_SETS; slot++) {
        if (word(slot) != (slot == BHI_ABORT_SET)) {
            BHT_FAIL("%s: slot %u has %u", what, slot, word(slot));
        }
    }
}

/* -- one record, or some --------------------------------------------------------------------- */

/* When somebody asks. */
enum step {
    EARLY,      /* before the records are seen */
    RECORDED,   /* the command buffer begins */
    RUNNING,    /* the queue has it */
    WAITED_FOR, /* is looked at */
    LATE,       /* the results are there */
};

#define ALL 99
static const struct ask {
    const char *what;
    enum step step;
    int count;    /* of records that run together */
    int asked[2]; /* to end: -1 the one before, |count| the one after them, ALL */
} asks[] = {
    {"just before it begins", EARLY, 1, {0}},
    {"the last, while they are recorded", RECORDED, 3, {2}},
    {"the second of some, while they run", RUNNING, 3, {1}},
    {"the first, while it is waited for", WAITED_FOR, 3, {0}},
    {"two of them", RUNNING, 4, {3, 1}},
    {"one that has ended, while others run", RUNNING, 3, {-1}},
    {"the last of as many as there are slots", EARLY, BHI_ABORT_SLOTS, {BHI_ABORT_SLOTS - 1}},
    {"the next, while these run", RUNNING, 3, {3}},
    {"one that has just ended", LATE, 3, {1}},
    {"all that comes", EARLY, 3, {ALL}},
    {"all that runs", RUNNING, 3, {ALL}},
};

static struct {
    const struct ask *ask; /* NULL: it was asked */
    uint64_t first;
} scene;
static struct bhi_vk_api real;

static bool is_asked(const struct ask *ask, int record) {
    return ask->asked[0] == record || ask->asked[0] == ALL ||
           (ask->asked[1] != 0 && ask->asked[1] == record);
}

static void ask_at(enum step step) {
    const struct ask *ask = scene.ask;
    if (!ask || ask->step != step) {
        return;
    }
    scene.ask = NULL;
    if (ask->asked[0] == ALL) {
        bhi_backend_abort_all(rig.backend);
        return;
    }
    for (int i = 0; i < 2 && (i == 0 || ask->asked[i] != 0); i++) {
        bhi_backend_abort(rig.backend, scene.first + (uint64_t)(int64_t)ask->asked[i]);
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands,
                                            const VkCommandBufferBeginInfo *info) {
    ask_at(RECORDED);
    return real.BeginCommandBuffer(commands, info);
}

static bool joins; /* the last submission has a barrier for what other queues have written */

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count,
                                             const VkSubmitInfo *infos, VkFence fence) {
    if (queue != bhi_vk(rig.backend)->device.queue) {
        return real.QueueSubmit(queue, count, infos, fence);
    }
    joins = infos->commandBufferCount == 2;
    const VkResult result = real.QueueSubmit(queue, count, infos, fence);
    ask_at(RUNNING);
    return result;
}

static const struct ask *running;

static VKAPI_ATTR VkResult VKAPI_CALL status(VkDevice device, VkFence fence) {
    if (running && fence == bhi_vk(rig.backend)->fence) {
        ask_at(WAITED_FOR);
        for (int i = 0; i < running->count; i++) {
            const bool set = running->step != LATE && is_asked(running, i);
            if (word((uint32_t)i) != set) {
                BHT_FAIL("%s: while they run slot %d has %u", running->what, i, word((uint32_t)i));
            }
        }
    }
    return real.GetFenceStatus(device, fence);
}

static void replace_calls(void) {
    struct bhi_vk_api *api = &bhi_vk(rig.backend)->device.api;
    real = *api;
    api->BeginCommandBuffer = begin;
    api->QueueSubmit = submit;
    api->GetFenceStatus = status;
}

static void run_records(const struct ask *ask, int count) {
    for (int i = 0; i < count; i++) {
        rig_begin();
        rig_add(1, 1, 2, (uint32_t)i); /* none of them as before */
    }
    running = ask;
    BHT_TRUE(rig_run());
    running = NULL;
}

static void expect_ended(const struct ask *ask, int record, bool stopped) {
    const struct bhi_result *result = &rig.results[record];
    if (result->status != (stopped ? BH_DEADLINE : BH_OK) ||
        result->executed != (stopped ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_YES)) {
        BHT_FAIL("%s: record %d ends with status %u", ask->what, record, result->status);
    }
}

static void expect_ends(const struct ask *ask) {
    const bool of_them = ask->step != LATE;
    scene.ask = ask;
    scene.first = rig.seq + 1;
    ask_at(EARLY);
    run_records(ask, ask->count);
    ask_at(LATE);
    BHT_TRUE(!scene.ask);
    for (int i = 0; i < ask->count; i++) {
        expect_ended(ask, i, of_them && is_asked(ask, i));
    }
    expect_clean(ask->what);
    bool cleared = false; /* by another queue, if there is one */
    for (int i = 0; i < ask->count; i++) {
        cleared |= rig.results[i].status != BH_OK;
    }
    run_records(NULL, 2);
    BHT_EQ(joins, cleared && bhi_vk(rig.backend)->abort.remote);
    for (int i = 0; i < 2; i++) {
        expect_ended(ask, i, is_asked(ask, ask->count + i));
    }
    expect_clean(ask->what);
}

static void expect_each(bool remote) {
    open_with(remote);
    expect_clean("in the beginning");
    replace_calls();
    for (size_t i = 0; i < BHT_COUNT(asks); i++) {
        expect_ends(&asks[i]);
        if (asks[i].asked[0] == ALL) { /* for good */
            open_with(remote);
            replace_calls();
        }
    }
}

/* E4, E13. */
TEST(it_ends_whenever_it_is_asked) {
    expect_each(false);
}

TEST(it_ends_whenever_a_queue_is_asked) {
    expect_each(true);
}

/* -- the queue fails -------------------------------------------------------------------------- */

static int good_calls; /* before one fails */

static VKAPI_ATTR VkResult VKAPI_CALL fail_submit(VkQueue queue, uint32_t count,
                                                  const VkSubmitInfo *infos, VkFence fence) {
    return queue == bhi_vk(rig.backend)->abort.transfer.queue && good_calls-- == 0
               ? VK_ERROR_OUT_OF_DEVICE_MEMORY
               : real.QueueSubmit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL refuse_begin(VkCommandBuffer commands,
                                                   const VkCommandBufferBeginInfo *info) {
    BHT_FAIL("commands are recorded that the device may still read");
    return VK_SUCCESS;
}

/* What the words hold is unknown then: nothing more runs here, and nothing more is tried. */
TEST(a_word_that_cannot_be_written_loses_the_device) {
    for (int round = 0; round < 2; round++) {
        open_with(true);
        real = bhi_vk(rig.backend)->device.api;
        bhi_vk(rig.backend)->device.api.QueueSubmit = fail_submit;
        good_calls = round; /* setting it, clearing it */
        rig_begin();
        rig_add(1, 1, 2, 7);
        bhi_backend_abort(rig.backend, rig.seq);
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEADLINE);
        rig_begin();
        rig_add(1, 1, 2, 7);
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
        BHT_EQ(rig.results[0].executed, BH_EXECUTED_NO);
        bhi_vk(rig.backend)->device.api.BeginCommandBuffer = refuse_begin;
        bhi_backend_abort_all(rig.backend);
        bhi_vk(rig.backend)->device.api = real;
    }
}

/* -- a sentinel ------------------------------------------------------------------------------- */

#define BYTES   (5u * 4096) /* of a worker's words */
#define WORKERS 4u

static struct {
    struct bhi_sentinel_device *device;
    uint32_t *of[WORKERS];
} sentinel;

static uint32_t *introduce(uint64_t worker) {
    int fd = memfd_create("words", MFD_CLOEXEC);
    BHT_EQ(ftruncate(fd, BYTES), 0);
    uint32_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_NE(at, MAP_FAILED);
    memset(at, 0, BYTES);
    BHT_EQ(bhi_sentinel_device_import(sentinel.device, worker, fd, BYTES), VK_SUCCESS);
    BHT_EQ(at[BYTES / 4 - 1], 1); /* the first write may have to wait for the driver */
    return at;
}

/* But for the last one of each, which belongs to no slot. */
static void expect_set(const char *what, uint32_t workers) {
    for (uint32_t w = 0; w < WORKERS; w++) {
        for (uint32_t i = 0; i < BYTES / 4 - 1; i++) {
            if (sentinel.of[w][i] != (workers >> w & 1)) {
                BHT_FAIL("%s: word %u of worker %u is %u", what, i, w, sentinel.of[w][i]);
            }
        }
    }
}

TEST(a_sentinel_sets_those_of_one_worker) {
    fake_driver_install(BHT_FAKE_COPIES);
    struct bhi_error error;
    const struct bhi_backend_config config = {
        .ops = &bhi_vulkan, .entry = rig_entry(), .layers = rig_layers};
    sentinel.device = bhi_sentinel_device_create(&config, &error);
    BHT_TRUE(sentinel.device);
    for (uint32_t w = 0; w < WORKERS; w++) {
        sentinel.of[w] = introduce(w < 3 ? w + 1 : 1); /* the last one in place of the first */
    }
    expect_set("imported", 0);
    BHT_EQ(bhi_sentinel_device_set(sentinel.device, 2), VK_SUCCESS);
    expect_set("the second", 2);
    BHT_EQ(bhi_sentinel_device_set(sentinel.device, 1), VK_SUCCESS);
    expect_set("the first, as it is now", 2 | 8);
    bhi_sentinel_device_forget(sentinel.device, 3);
    BHT_EQ(bhi_sentinel_device_set(sentinel.device, 3), VK_SUCCESS);
    expect_set("one that was forgotten", 2 | 8);
    BHT_NE(bhi_sentinel_device_import(sentinel.device, 2, dup(0), BYTES), VK_SUCCESS);
    memset(sentinel.of[1], 0, BYTES);
    memset(sentinel.of[3], 0, BYTES);
    bhi_sentinel_device_set_all(sentinel.device);
    expect_set("all, also one in whose place no other could be put", 2 | 8);
    rig_fail_call("WaitForFences", 1, VK_TIMEOUT);
    BHT_NE(bhi_sentinel_device_set(sentinel.device, 2), VK_SUCCESS);
    bhi_sentinel_device_set_all(sentinel.device); /* submits no more: that one may still run */
    bhi_sentinel_device_destroy(sentinel.device);
    for (uint32_t w = 0; w < WORKERS; w++) {
        munmap(sentinel.of[w], BYTES);
    }
    BHT_EQ(rig_layer_messages(), 0);
}
