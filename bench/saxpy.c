#include "saxpy.h"

#include <stdio.h>

/* An invocation computes four numbers. */
static const uint32_t GROUPS =
    (uint32_t)((BENCH_SAXPY_BYTES / sizeof(float) / 4 + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL);

/* -- the library ------------------------------------------------------------------------------ */

void bench_saxpy_open_ours(struct bench_saxpy_ours *side, const char *worker) {
    const struct bench_code *code = &BENCH_CODE[BENCH_SAXPY];
    side->context = bench_context(BENCH_WITH(bh_context_options, .worker_path = worker));
    side->stream =
        bench_stream(side->context, BENCH_WITH(bh_stream_options, .deadline_ns = BENCH_TIMEOUT_NS));
    side->kernel = bench_kernel(side->context, code->words, code->bytes, NULL);
}

void bench_saxpy_close_ours(struct bench_saxpy_ours *side) {
    bh_kernel_release(side->kernel);
    bh_stream_release(side->stream);
    bh_context_destroy(side->context);
}

void bench_saxpy_launches(const struct bench_saxpy_ours *side, bh_buffer *x, bh_buffer *y,
                          const struct bench_saxpy_push *push, bh_binding bindings[2],
                          bh_command *commands, uint32_t count) {
    bindings[0] = bh_bind_read(0, x);
    bindings[1] = bh_bind_read_write(1, y);
    for (uint32_t i = 0; i < count; i++) {
        commands[i] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                   .dispatch = {.kernel = side->kernel,
                                                .groups = {GROUPS, 1, 1},
                                                .bindings = bindings,
                                                .binding_count = 2,
                                                .push = push,
                                                .push_size = sizeof *push}};
    }
}

/* -- in-process ------------------------------------------------------------------------------- */

void bench_saxpy_open_theirs(struct bench_saxpy_theirs *side, const struct bench_device *device) {
    bench_pipeline_make(device, &BENCH_CODE[BENCH_SAXPY], 2, sizeof(struct bench_saxpy_push),
                        &side->pipeline);
    for (int i = 0; i < 2; i++) {
        bench_memory_make(device, BENCH_SAXPY_BYTES, true, &side->arrays[i]);
    }
    side->set = bench_set_make(device, &side->pipeline, side->arrays, 2, &side->descriptors);
}

void bench_saxpy_record(const struct bench_saxpy_theirs *side, VkCommandBuffer commands,
                        const struct bench_saxpy_push *push, uint32_t count) {
    bench_commands_begin(commands, 0);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.layout, 0, 1,
                            &side->set, 0, NULL);
    vkCmdPushConstants(commands, side->pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       sizeof *push, push);
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                    .dstAccessMask =
                                        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    for (uint32_t i = 0; i < count; i++) {
        vkCmdDispatch(commands, GROUPS, 1, 1);
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
    }
    BENCH_VK(vkEndCommandBuffer(commands));
}

/* -- both ------------------------------------------------------------------------------------- */

void bench_saxpy_say_head(void) {
    printf("%-34s %13s %13s\n", "best of 10 rounds, 64 MiB", "bulkhead", "in-process");
}

void bench_saxpy_say(const char *what, uint64_t ours_ns, uint64_t theirs_ns) {
    printf("%-34s %10.3f ms %10.3f ms  ratio %.3f\n", what, (double)ours_ns / 1e6,
           (double)theirs_ns / 1e6, (double)ours_ns / (double)theirs_ns);
}
