/* Several records in one vkQueueSubmit: results, markers, and what happens when the device is lost
 * in the middle (a driver that says so is put in the way). */
#include "rig.h"
#include "worker/vulkan/backend.h"
#include "worker/vulkan/recorder.h"

#include <stdarg.h>
#include <stdio.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

static void dispatch_increment(void) {
    rig_one(1, BINDINGS(BOTH(0, 1)));
}

static uint64_t queue_submits(void) {
    return rig_counts().queue_submits;
}

TEST(sixty_four_share_a_submit) {
    uint32_t *count = rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 80; i++) {
            dispatch_increment();
        }
        rig_run_ok();
        BHT_EQ(*count, 80 * round);
        BHT_EQ(queue_submits(), 2 * round); /* 64 and 16 */
        BHT_EQ(rig.markers->completed, 80 * round);
        BHT_EQ(rig.markers->started, 80 * round);
    }
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 1);
}

TEST(without_markers_nothing_is_merged) {
    const struct rig_options options = {.no_markers = true};
    rig_open(&options);
    uint32_t *count = rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    for (int i = 0; i < 10; i++) {
        dispatch_increment();
    }
    rig_run_ok();
    BHT_EQ(*count, 10);
    BHT_EQ(queue_submits(), 10);
    BHT_EQ(rig.markers->completed, 0);
}

static PFN_vkCmdBindDescriptorSets real_bind;
static VkDescriptorSet bound[8];
static uint32_t bound_count, offset_count;

static VKAPI_ATTR void VKAPI_CALL count_binds(VkCommandBuffer commands, VkPipelineBindPoint point,
                                              VkPipelineLayout layout, uint32_t first,
                                              uint32_t count, const VkDescriptorSet *sets,
                                              uint32_t offsets, const uint32_t *values) {
    offset_count += offsets;
    if (first == 1) { /* the kernel's own is 0, the guard's comes next */
        BHT_EQ(count, 1);
        BHT_LT(bound_count, sizeof bound / sizeof bound[0]);
        bound[bound_count++] = sets[0];
    }
    real_bind(commands, point, layout, first, count, sets, offsets, values);
}

/* Mesa 25's lavapipe pays for each that is bound with a dynamic offset, each time it runs: it maps
 * and unmaps a page. */
TEST(each_slot_has_a_set_without_a_dynamic_offset) {
    rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    dispatch_increment();
    rig_run_ok(); /* it is compiled */
    real_bind = bhi_vk(rig.backend)->device.api.CmdBindDescriptorSets;
    bhi_vk(rig.backend)->device.api.CmdBindDescriptorSets = count_binds;
    bound_count = offset_count = 0;
    for (int i = 0; i < 3; i++) {
        dispatch_increment();
    }
    rig_run_ok();
    bhi_vk(rig.backend)->device.api.CmdBindDescriptorSets = real_bind;
    BHT_EQ(offset_count, 0);
    BHT_EQ(bound_count, 3);
    BHT_TRUE(bound[0] != bound[1] && bound[1] != bound[2] && bound[0] != bound[2]);
}

TEST(the_host_marks_a_single_record) {
    rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    rig.seq = UINT32_MAX; /* the next is 2^32: markers are modulo that */
    dispatch_increment();
    rig_run_ok();
    BHT_EQ(rig.markers->started, 0);
    BHT_EQ(rig.markers->completed, UINT32_MAX);
}

TEST(warm_means_nothing_to_compile) {
    rig_buffer(1, 64);
    rig_kernel(1, CODE(increment));
    dispatch_increment();
    const struct bhi_lane_record *record = rig.records[0];
    BHT_TRUE(!bhi_backend_warm(rig.backend, record));
    rig.record_count = 0;
    rig_begin();
    rig_prepare(1);
    BHT_TRUE(!bhi_backend_warm(rig.backend, record));
    rig_run_ok();
    dispatch_increment();
    BHT_TRUE(bhi_backend_warm(rig.backend, record)); /* it was primed */
    rig_run_ok();
    rig.trusted = true;
    rig_kernel(1, CODE(increment));
    rig_begin();
    rig_prepare(1);
    rig_run_ok();
    dispatch_increment();
    BHT_TRUE(!bhi_backend_warm(rig.backend, record)); /* compiled, but the JIT comes later */
    dispatch_increment();
    rig_run_ok();
    dispatch_increment();
    BHT_TRUE(bhi_backend_warm(rig.backend, record));
    rig_run_ok();
    rig_begin();
    rig_fill(1, 0, 4, 0);
    BHT_TRUE(bhi_backend_warm(rig.backend, record));
    rig_run_ok();
    bhi_backend_kernel_destroy(rig.backend, 1);
    dispatch_increment();
    BHT_TRUE(!bhi_backend_warm(rig.backend, record));
    rig.record_count = 0;
}

/* What a command buffer has: markers (started/completed), kernels, and the barriers that make markers
 * and work visible (m, w); or what is said of compiles. */
static char recorded[256];
static struct bhi_vk_api replaced;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    const size_t length = strlen(recorded);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recorded + length, sizeof recorded - length, format, arguments);
    va_end(arguments);
}

static VKAPI_ATTR void VKAPI_CALL note_marker(VkCommandBuffer commands, VkBuffer buffer,
                                              VkDeviceSize offset, VkDeviceSize size,
                                              const void *words) {
    const struct bhi_markers *markers = words;
    BHT_EQ(size, offsetof(struct bhi_markers, pinned));
    note(" %u/%u", markers->started, markers->completed);
    replaced.CmdUpdateBuffer(commands, buffer, offset, size, words);
}

static VKAPI_ATTR void VKAPI_CALL note_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                                uint32_t z) {
    note(" kernel");
    replaced.CmdDispatch(commands, x, y, z);
}

static VKAPI_ATTR void VKAPI_CALL note_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                               VkPipelineStageFlags to, VkDependencyFlags flags,
                                               uint32_t count, const VkMemoryBarrier *memory,
                                               uint32_t b, const VkBufferMemoryBarrier *buffers,
                                               uint32_t i, const VkImageMemoryBarrier *images) {
    const bool to_all =
        to == (BHI_WORK_STAGES | VK_PIPELINE_STAGE_HOST_BIT) &&
        memory->dstAccessMask == (BHI_WORK_READS | BHI_WORK_WRITES | BHI_HOST_ACCESS);
    const bool of_markers = from == VK_PIPELINE_STAGE_TRANSFER_BIT &&
                            memory->srcAccessMask == VK_ACCESS_TRANSFER_WRITE_BIT;
    const bool of_work = from == BHI_WORK_STAGES && memory->srcAccessMask == BHI_WORK_WRITES;
    note("%s", to_all && of_markers ? " m" : to_all && of_work ? " w" : " other");
    replaced.CmdPipelineBarrier(commands, from, to, flags, count, memory, b, buffers, i, images);
}

/* E13. The second one is refused: it leaves no trace. */
TEST(markers_stand_between_records) {
    rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    dispatch_increment();
    rig_run_ok(); /* it is compiled */
    struct bhi_vk_api *api = &bhi_vk(rig.backend)->device.api;
    replaced = *api;
    api->CmdUpdateBuffer = note_marker;
    api->CmdDispatch = note_dispatch;
    api->CmdPipelineBarrier = note_barrier;
    dispatch_increment();
    rig_one(1, BINDINGS(BOTH(0, 9)));
    dispatch_increment();
    BHT_TRUE(rig_run());
    *api = replaced;
    BHT_EQ(rig.results[0].status, BH_OK);
    BHT_EQ(rig.results[1].status, BH_BINDING_MISMATCH);
    BHT_EQ(rig.results[2].status, BH_OK);
    BHT_STR_EQ(recorded, " 2/1 m kernel w 4/2 m kernel w 4/4 m");
}

static void note_compile(void *user, uint64_t seq, bool over) {
    note(" %s%u", over ? "-" : "", (unsigned)seq);
}

TEST(each_compile_is_announced_for_its_record) {
    rig_open(&(struct rig_options){.compiling = note_compile});
    recorded[0] = '\0'; /* but for the warm-up */
    rig_buffer(1, 4);
    for (uint64_t id = 1; id <= 2; id++) {
        rig_kernel(id, CODE(increment));
    }
    dispatch_increment();
    rig_run_ok();
    dispatch_increment();
    rig_one(2, BINDINGS(BOTH(0, 1))); /* while the one before it is recorded */
    rig_run_ok();
    dispatch_increment();
    rig_run_ok();
    BHT_STR_EQ(recorded, " 1 -1 3 -3");
}

/* -- loss ----------------------------------------------------------------------------------- */

static struct bhi_markers *lost_markers;
static struct bhi_markers lost_at;
static PFN_vkWaitForFences real_wait;

static VKAPI_ATTR VkResult VKAPI_CALL never_ready(VkDevice device, VkFence fence) {
    (void)device;
    (void)fence;
    return VK_NOT_READY;
}

static VKAPI_ATTR VkResult VKAPI_CALL lose_device(VkDevice device, uint32_t count,
                                                  const VkFence *fences, VkBool32 all,
                                                  uint64_t timeout) {
    VkResult result = real_wait(device, count, fences, all, timeout);
    BHT_EQ(result, VK_SUCCESS);
    *lost_markers = lost_at;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL refuse_submit(VkQueue queue, uint32_t count,
                                                    const VkSubmitInfo *infos, VkFence fence) {
    (void)queue;
    (void)count;
    (void)infos;
    (void)fence;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void open_losing(uint32_t started, uint32_t completed) {
    rig_open(NULL);
    rig_buffer(1, 4);
    rig.trusted = true; /* or its priming would be what is lost */
    rig_kernel(1, CODE(increment));
    real_wait = bhi_vk(rig.backend)->device.api.WaitForFences;
    bhi_vk(rig.backend)->device.api.WaitForFences = lose_device;
    bhi_vk(rig.backend)->device.api.GetFenceStatus = never_ready;
    lost_markers = rig.markers;
    lost_at.started = started;
    lost_at.completed = completed;
}

static VKAPI_ATTR VkResult VKAPI_CALL record_in_vain(VkCommandBuffer commands,
                                                     const VkCommandBufferBeginInfo *info) {
    (void)info;
    BHT_FAIL("command buffer %p is recorded anew on a lost device", (void *)commands);
}

TEST(markers_tell_the_guilty) {
    open_losing(3, 2);
    for (int i = 0; i < 6; i++) {
        dispatch_increment();
    }
    BHT_TRUE(!rig_run());
    for (int i = 0; i < 6; i++) {
        BHT_EQ(rig.results[i].status, i < 2 ? BH_OK : BH_DEVICE_LOST);
        BHT_EQ(rig.results[i].executed, i < 2    ? BH_EXECUTED_YES
                                        : i == 2 ? BH_EXECUTED_UNKNOWN
                                                 : BH_EXECUTED_NO);
        BHT_EQ(rig.results[i].vk_result, i < 2 ? 0 : VK_ERROR_DEVICE_LOST);
        if (i >= 2) {
            BHT_STR_EQ(rig.errors[i].told.text, "waiting for the device: VK_ERROR_DEVICE_LOST");
        }
    }
    bhi_vk(rig.backend)->device.api.BeginCommandBuffer = record_in_vain;
    for (int records = 1; records <= 2; records++) { /* whatever comes next is refused */
        for (int i = 0; i < records; i++) {
            dispatch_increment();
        }
        BHT_TRUE(!rig_run());
        for (int i = 0; i < records; i++) {
            BHT_EQ(rig.results[i].status, BH_DEVICE_LOST);
            BHT_EQ(rig.results[i].executed, BH_EXECUTED_NO);
        }
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL fail_wait(VkDevice device, uint32_t count,
                                                const VkFence *fences, VkBool32 all,
                                                uint64_t timeout) {
    BHT_EQ(real_wait(device, count, fences, all, timeout), VK_SUCCESS);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Whatever the driver says of a wait: what was submitted may still run, so nothing else may. */
TEST(a_wait_that_fails_loses_the_device) {
    for (int primes = 0; primes < 2; primes++) {
        open_losing(1, 0);
        rig.trusted = !primes;
        rig_kernel(1, CODE(increment));
        bhi_vk(rig.backend)->device.api.WaitForFences = fail_wait;
        dispatch_increment();
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
        BHT_EQ(rig.results[0].vk_result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    }
}

TEST(a_single_record_is_the_guilty_one) {
    open_losing(1, 0);
    dispatch_increment();
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_UNKNOWN);
}

static VKAPI_ATTR VkResult VKAPI_CALL lost_at_once(VkDevice device, VkFence fence) {
    VkResult result = real_wait(device, 1, &fence, VK_TRUE, UINT64_MAX);
    BHT_EQ(result, VK_SUCCESS);
    return VK_ERROR_DEVICE_LOST;
}

TEST(a_loss_seen_while_polling) {
    open_losing(1, 0);
    bhi_vk(rig.backend)->device.api.GetFenceStatus = lost_at_once;
    bhi_vk(rig.backend)->last_wait_ns = 0; /* it polls */
    dispatch_increment();
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[0].executed, BH_EXECUTED_UNKNOWN);
}

TEST(a_submit_that_is_refused) {
    uint32_t *count = rig_buffer(1, 4);
    rig.trusted = true; /* or its priming would be what is refused */
    rig_kernel(1, CODE(increment));
    PFN_vkQueueSubmit real_submit = bhi_vk(rig.backend)->device.api.QueueSubmit;
    bhi_vk(rig.backend)->device.api.QueueSubmit = refuse_submit;
    for (int records = 1; records <= 3; records += 2) {
        for (int i = 0; i < records; i++) {
            dispatch_increment();
        }
        BHT_TRUE(rig_run()); /* the device is as it was */
        for (int i = 0; i < records; i++) {
            BHT_EQ(rig.results[i].status, BH_OUT_OF_DEVICE_MEMORY);
            BHT_EQ(rig.results[i].vk_result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
            BHT_EQ(rig.results[i].executed, BH_EXECUTED_NO);
            BHT_STR_EQ(rig.errors[i].told.text, "vkQueueSubmit: VK_ERROR_OUT_OF_DEVICE_MEMORY");
        }
    }
    bhi_vk(rig.backend)->device.api.QueueSubmit = real_submit;
    dispatch_increment();
    rig_run_ok();
    BHT_EQ(*count, 1);
}

/* -- words ----------------------------------------------------------------------------------- */

/* E4, E13: a kernel reads the word of its own slot, and returns at once where that is set; also one
 * that has no set left for it, and binds it in its own. */
TEST(a_kernel_reads_the_word_of_its_slot) {
    static const uint32_t stopped[] = {0, 1, 62, 63};
    for (int shares = 0; shares < 2; shares++) {
        rig_open_usual();
        if (shares) {
            bhi_vk(rig.backend)->device.limits.maxBoundDescriptorSets = 1;
        }
        uint32_t *count = rig_buffer(1, 4);
        rig_kernel(1, CODE(increment));
        dispatch_increment();
        rig_run_ok(); /* it is compiled */
        for (size_t k = 0; k < BHT_COUNT(stopped); k++) {
            *count = 0;
            bhi_backend_abort(rig.backend, rig.seq + 1 + stopped[k]);
            for (uint32_t i = 0; i < 64; i++) {
                dispatch_increment();
            }
            BHT_TRUE(rig_run());
            for (uint32_t i = 0; i < 64; i++) {
                BHT_EQ(rig.results[i].status, i == stopped[k] ? BH_DEADLINE : BH_OK);
            }
            BHT_EQ(*count, 63);
        }
    }
}

/* -- loops that the driver has cut short ------------------------------------------------------- */

static uint32_t cut_slot;

static VKAPI_ATTR VkResult VKAPI_CALL cut_loop(VkQueue queue, uint32_t count,
                                               const VkSubmitInfo *infos, VkFence fence) {
    const struct bhi_vk_backend *b = bhi_vk(rig.backend);
    struct bhi_guard_words *words = (void *)(b->abort.slots + bhi_vk_abort_offset(cut_slot));
    words->flags = BHI_GUARD_CUT;
    return replaced.QueueSubmit(queue, count, infos, fence);
}

/* E4, E13: it is the record in whose slot the guard says so, and not the next one there. */
TEST(a_loop_that_is_cut_fails_one_record) {
    rig_buffer(1, 4);
    rig_kernel(1, CODE(increment));
    dispatch_increment();
    rig_run_ok(); /* it is compiled */
    bhi_vk(rig.backend)->device.whole_loops = false;
    replaced = bhi_vk(rig.backend)->device.api;
    for (cut_slot = 0; cut_slot < 3; cut_slot++) {
        for (int cut = 1; cut >= 0; cut--) {
            bhi_vk(rig.backend)->device.api.QueueSubmit = cut ? cut_loop : replaced.QueueSubmit;
            for (int i = 0; i < 3; i++) {
                dispatch_increment();
            }
            BHT_TRUE(rig_run());
            for (uint32_t i = 0; i < 3; i++) {
                const bool bad = cut && i == cut_slot;
                BHT_EQ(rig.results[i].status != BH_OK, bad);
                BHT_EQ(rig.results[i].executed, BH_EXECUTED_YES);
                BHT_TRUE(!bad || rig.errors[i].told.reason == BH_REASON_LOOP_CUT);
            }
        }
    }
}

/* -- failures of the driver while it prepares ------------------------------------------------ */

static VKAPI_ATTR VkResult VKAPI_CALL refuse_pipeline(VkDevice device, VkPipelineCache cache,
                                                      uint32_t count,
                                                      const VkComputePipelineCreateInfo *infos,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkPipeline *out) {
    (void)device;
    (void)cache;
    (void)count;
    (void)infos;
    (void)allocator;
    *out = VK_NULL_HANDLE;
    return VK_ERROR_UNKNOWN;
}

static VKAPI_ATTR VkResult VKAPI_CALL exhausted_pipeline(VkDevice device, VkPipelineCache cache,
                                                         uint32_t count,
                                                         const VkComputePipelineCreateInfo *infos,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkPipeline *out) {
    (void)refuse_pipeline(device, cache, count, infos, allocator, out);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

TEST(compiles_that_fail) {
    rig_buffer(1, 4);
    PFN_vkCreateComputePipelines real = bhi_vk(rig.backend)->device.api.CreateComputePipelines;
    rig_kernel(1, CODE(increment));
    bhi_vk(rig.backend)->device.api.CreateComputePipelines = exhausted_pipeline;
    dispatch_increment();
    rig_run_fails(BH_OUT_OF_HOST_MEMORY, 0, "vkCreateComputePipelines");
    bhi_vk(rig.backend)->device.api.CreateComputePipelines = real;
    dispatch_increment(); /* that was not the kernel's error: it is tried again */
    rig_run_ok();

    rig_kernel(1, CODE(increment));
    bhi_vk(rig.backend)->device.api.CreateComputePipelines = refuse_pipeline;
    dispatch_increment();
    rig_run_fails(BH_COMPILE_FAILED, 0, "vkCreateComputePipelines: VK_ERROR_UNKNOWN");
    bhi_vk(rig.backend)->device.api.CreateComputePipelines = real;
    dispatch_increment(); /* this was: it stays */
    rig_run_fails(BH_COMPILE_FAILED, 0, "vkCreateComputePipelines: VK_ERROR_UNKNOWN");
}
