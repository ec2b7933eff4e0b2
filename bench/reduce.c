/* bench-reduce: a sum by an expression, against a kernel of two passes that is written by hand and runs
 * in-process, in turns in one run.
 *
 *     bench-reduce [--device D] [--worker PATH] [--mib N] [--rounds N] [--quick]
 *
 * Both sides have the array in memory that the device sees, and what they need prepared before. A round
 * is a submission and the wait for its end. */
#include "vulkan_device.h"

#include <bulkhead/bulkhead.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/eval_plan.h"

#define MOST  101u
#define GROUP 16384u /* elements that a workgroup of sum.comp adds up */

static const uint32_t SUM[] =
#include "sum.inc"
    ;

static float element(uint64_t k) {
    return (float)(k * 7 % 64) / 64;
}

static void check(const char *side, float sum, uint64_t count) {
    double want = 0;
    for (uint64_t k = 0; k < count; k++) {
        want += (double)element(k);
    }
    if (!(fabs((double)sum - want) <= 1e-5 * want)) {
        bench_die("%s: the sum is %.9g, not %.9g", side, (double)sum, want);
    }
}

/* -- the library -------------------------------------------------------------------------------- */

struct ours {
    bh_context *context;
    bh_stream *stream;
    bh_buffer *x, *z;
    struct bhi_eval_plan *plan;
    struct bhi_pieces pieces;
};

static void open_ours(struct ours *side, const char *device, const char *worker, uint64_t count) {
    const bh_parameter parameters[] = {{"x", BH_PARAMETER_IN, NULL}, {"z", BH_PARAMETER_OUT, NULL}};
    side->context = bench_context(BENCH_WITH(bh_context_options, .worker_path = worker));
    side->stream = bench_stream(side->context, BENCH_WITH(bh_stream_options, .device = device,
                                                          .deadline_ns = BENCH_TIMEOUT_NS));
    bench_ready(side->stream);
    side->x = bench_buffer(side->context, side->stream, BH_MEMORY_AUTO, 4 * count);
    side->z = bench_buffer(side->context, side->stream, BH_MEMORY_AUTO, 4);
    float *values = bench_allocate(count, sizeof *values);
    for (uint64_t k = 0; k < count; k++) {
        values[k] = element(k);
    }
    BENCH_MUST(bh_buffer_write(side->x, 0, values, 4 * count, BENCH_TIMEOUT_NS, &bench_why));
    free(values);
    BENCH_MUST(bhi_eval_plan_create(side->context,
                                    BENCH_WITH(bh_template_options, .name = "sum",
                                               .expression = "z = sum(x)", .parameters = parameters,
                                               .parameter_count = 2),
                                    &side->plan, &bench_why));
    const bh_description whole = {.struct_size = sizeof whole,
                                  .kind = BH_NUMBER_FLOAT,
                                  .bits = 32,
                                  .lanes = 1,
                                  .rank = 1,
                                  .shape = {count}};
    const bh_description one = {
        .struct_size = sizeof one, .kind = BH_NUMBER_FLOAT, .bits = 32, .lanes = 1};
    const bh_argument arguments[] = {{.name = "x", .buffer = side->x, .description = &whole},
                                     {.name = "z", .buffer = side->z, .description = &one}};
    const struct bhi_eval_limits limits = {.alignment = 1, .stream = side->stream};
    BENCH_MUST(bhi_eval_plan_cut(side->plan, arguments, 2, 2, &limits, &side->pieces, &bench_why));
}

static uint64_t run_ours(struct ours *side) {
    const uint64_t began = bench_now_ns();
    bench_finish(
        bench_submit(side->stream, BENCH_WITH(bh_submit_info, .commands = side->pieces.commands,
                                              .command_count = side->pieces.count)));
    return bench_now_ns() - began;
}

static void close_ours(struct ours *side) {
    bhi_pieces_free(&side->pieces);
    bhi_eval_plan_release(side->plan);
    bh_buffer_release(side->x);
    bh_buffer_release(side->z);
    bh_stream_release(side->stream);
    bh_context_destroy(side->context);
}

/* -- in-process --------------------------------------------------------------------------------- */

struct theirs {
    struct bench_device device;
    struct bench_pipeline pipeline;
    struct bench_memory memories[3]; /* the array, the sums of workgroups, the sum */
    VkDescriptorPool pools[2];
    VkDescriptorSet sets[2];
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
};

static void record(struct theirs *side, uint32_t count) {
    const uint32_t groups = (count + GROUP - 1) / GROUP, counts[] = {count, groups};
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask =
                                         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_HOST_READ_BIT};
    bench_commands_begin(side->commands, 0);
    vkCmdBindPipeline(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.pipeline);
    for (int pass = 0; pass < 2; pass++) {
        vkCmdBindDescriptorSets(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                side->pipeline.layout, 0, 1, &side->sets[pass], 0, NULL);
        vkCmdPushConstants(side->commands, side->pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                           &counts[pass]);
        vkCmdDispatch(side->commands, pass ? 1 : groups, 1, 1);
        vkCmdPipelineBarrier(side->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0,
                             1, &barrier, 0, NULL, 0, NULL);
    }
    BENCH_VK(vkEndCommandBuffer(side->commands));
}

static void open_theirs(struct theirs *side, uint64_t count) {
    static const uint8_t any[16];
    const struct bench_code code = {"sum", SUM, sizeof SUM};
    struct bench_machine machine;
    bench_device_open(&side->device, any, false, &machine);
    printf("in-process device: %s\n", machine.device);
    bench_pipeline_make(&side->device, &code, 2, 4, &side->pipeline);
    bench_memory_make(&side->device, 4 * count, false, &side->memories[0]);
    bench_memory_make(&side->device, 4 * GROUP, false, &side->memories[1]);
    bench_memory_make(&side->device, 256, false, &side->memories[2]);
    for (uint64_t k = 0; k < count; k++) {
        ((float *)side->memories[0].mapped)[k] = element(k);
    }
    for (int pass = 0; pass < 2; pass++) {
        side->sets[pass] = bench_set_make(&side->device, &side->pipeline, &side->memories[pass], 2,
                                          &side->pools[pass]);
    }
    side->pool = bench_pool_make(&side->device, side->device.family, 0);
    side->commands = bench_commands_make(&side->device, side->pool);
    side->fence = bench_fence_make(&side->device);
    record(side, (uint32_t)count);
}

static uint64_t run_theirs(struct theirs *side) {
    const uint64_t began = bench_now_ns();
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &side->commands};
    BENCH_VK(vkQueueSubmit(side->device.queue, 1, &info, side->fence));
    bench_fence_finish(&side->device, side->fence);
    return bench_now_ns() - began;
}

static void close_theirs(struct theirs *side) {
    vkDestroyFence(side->device.device, side->fence, NULL);
    vkDestroyCommandPool(side->device.device, side->pool, NULL);
    for (int i = 0; i < 3; i++) {
        if (i < 2) {
            vkDestroyDescriptorPool(side->device.device, side->pools[i], NULL);
        }
        bench_memory_free(&side->device, &side->memories[i]);
    }
    bench_pipeline_free(&side->device, &side->pipeline);
    bench_device_close(&side->device);
}

static const char usage[] =
    "Usage: bench-reduce [--device D] [--worker PATH] [--mib N] [--rounds N] [--quick]\n"
    "A sum by an expression, against a kernel of two passes in-process.\n"
    "  --device D     a selector, as `bulkhead devices` shows it\n"
    "  --worker PATH  the worker executable\n"
    "  --mib N        size of the array (default 64)\n"
    "  --rounds N     rounds (default 31)\n"
    "  --quick        few short rounds: does it work\n";

int main(int argc, char **argv) {
    const char *device = NULL, *worker = NULL;
    unsigned rounds = 0, mib = 0;
    bool quick = false;
    const struct bench_option options[] = {
        {"--quick", .flag = &quick},
        {"--device", .text = &device},
        {"--worker", .text = &worker},
        {"--mib", .number = &mib, .least = 1, .most = 128},
        {"--rounds", .number = &rounds, .least = 1, .most = MOST},
        {0}};
    bench_parse(argc, argv, options, usage);
    rounds = rounds ? rounds : quick ? 3 : 31;
    mib = mib ? mib : quick ? 4 : 64;
    const uint64_t count = (uint64_t)mib << 18;
    static struct ours ours;
    static struct theirs theirs;
    uint64_t times[2][MOST];
    open_theirs(&theirs, count);
    open_ours(&ours, device, worker, count);
    (void)run_ours(&ours); /* which compiles and imports */
    (void)run_theirs(&theirs);
    for (unsigned round = 0; round < rounds; round++) { /* in turns, every other one backwards */
        for (int i = 0; i < 2; i++) {
            const bool own = (round + (unsigned)i) % 2;
            times[own][round] = own ? run_ours(&ours) : run_theirs(&theirs);
        }
    }
    float sum = 0;
    BENCH_MUST(bh_buffer_read(ours.z, 0, &sum, 4, BENCH_TIMEOUT_NS, &bench_why));
    check("the library", sum, count);
    check("in-process", *(float *)theirs.memories[2].mapped, count);
    double p50[2], least[2];
    for (int own = 0; own < 2; own++) {
        p50[own] = (double)bench_quantile(times[own], rounds, 500) / 1e6;
        least[own] = (double)times[own][0] / 1e6; /* sorted */
    }
    printf("sum of %u MiB   %12s %12s %8s\n", mib, "expression", "in-process", "ratio");
    printf("  p50          %9.2f ms %9.2f ms %8.2f\n", p50[1], p50[0], p50[1] / p50[0]);
    printf("  fastest      %9.2f ms %9.2f ms %8.2f  (goal 1.10)\n", least[1], least[0],
           least[1] / least[0]);
    close_ours(&ours);
    close_theirs(&theirs);
    return 0;
}
