/* Device memory: a kernel on buffers there, and copies between them and the host, through the
 * library and in-process. Prints a line for each, the better of several rounds. */
#include "vulkan_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (60ull * 1000 * 1000 * 1000)
#define BYTES      (64ull << 20)
#define PIECE      (16ull << 20)
#define LAUNCHES   20u
#define ROUNDS     10u
#define FLOATS     (BYTES / sizeof(float))

static const struct bench_saxpy_push PUSH = {.a = 3.0f, .count = (uint32_t)(FLOATS / 4)};
static const uint32_t GROUPS = (uint32_t)((FLOATS / 4 + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL);

static uint64_t better(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* -- the library ------------------------------------------------------------------------------ */

struct ours {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *saxpy;
    bh_buffer *x, *y;
};

static bh_buffer *make_buffer(const struct ours *side, uint64_t memory) {
    return bench_buffer(side->context, side->stream, memory, BYTES);
}

static void open_ours(struct ours *side, const char *worker) {
    bh_context_options context_options;
    bh_context_options_init(&context_options);
    context_options.worker_path = worker;
    bh_detail detail;
    bench_must(bh_context_create(&context_options, &side->context, &detail), "bh_context_create",
               &detail);
    bh_stream_options stream_options;
    bh_stream_options_init(&stream_options);
    stream_options.deadline_ns = TIMEOUT_NS;
    bench_must(bh_stream_create(side->context, &stream_options, &side->stream, &detail),
               "bh_stream_create", &detail);
    bh_kernel_options kernel_options;
    bh_kernel_options_init(&kernel_options);
    bench_must(bh_kernel_create_spirv(side->context, BENCH_CODE[BENCH_SAXPY].words,
                                      BENCH_CODE[BENCH_SAXPY].bytes, &kernel_options, &side->saxpy,
                                      &detail),
               "bh_kernel_create_spirv", &detail);
}

/* One launch, of several in a submission. */
static uint64_t kernel_ours(const struct ours *side) {
    const bh_binding bindings[] = {
        {.binding = 0, .buffer = side->x, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ},
        {.binding = 1, .buffer = side->y, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ_WRITE},
    };
    bh_command commands[LAUNCHES];
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        commands[i] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                   .kernel = side->saxpy,
                                   .groups = {GROUPS, 1, 1},
                                   .bindings = bindings,
                                   .binding_count = 2,
                                   .push = &PUSH,
                                   .push_size = sizeof PUSH};
    }
    const bh_submit_info info = {.commands = commands, .command_count = LAUNCHES};
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bh_event *event;
        bh_detail detail;
        const uint64_t start = bench_now_ns();
        bench_must(bh_submit(side->stream, &info, &event, &detail), "bh_submit", &detail);
        bench_must(bh_event_wait(event, TIMEOUT_NS), "bh_event_wait", NULL);
        best = better(best, bench_now_ns() - start);
        bh_event_release(event);
    }
    return best / LAUNCHES;
}

static uint64_t copy_ours(const struct ours *side, void *bytes, bool upload) {
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bh_detail detail;
        const uint64_t start = bench_now_ns();
        bench_must(upload ? bh_buffer_write(side->x, 0, bytes, BYTES, TIMEOUT_NS, &detail)
                          : bh_buffer_read(side->x, 0, bytes, BYTES, TIMEOUT_NS, &detail),
                   upload ? "bh_buffer_write" : "bh_buffer_read", &detail);
        best = better(best, bench_now_ns() - start);
    }
    return best;
}

/* -- in-process ------------------------------------------------------------------------------- */

struct theirs {
    struct bench_device device;
    struct bench_pipeline saxpy;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool pool;
    VkCommandBuffer commands[2];
    VkFence fences[2];
    struct bench_memory x, y, staging[2];
};

static void begin(VkCommandBuffer commands) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    BENCH_VK(vkBeginCommandBuffer(commands, &info));
}

static void submit(struct theirs *side, int i) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &side->commands[i]};
    BENCH_VK(vkEndCommandBuffer(side->commands[i]));
    BENCH_VK(vkQueueSubmit(side->device.queue, 1, &info, side->fences[i]));
}

static void finish(struct theirs *side, int i) {
    BENCH_VK(vkWaitForFences(side->device.device, 1, &side->fences[i], VK_TRUE, TIMEOUT_NS));
    BENCH_VK(vkResetFences(side->device.device, 1, &side->fences[i]));
}

static void open_theirs(struct theirs *side) {
    static const uint8_t any[16];
    struct bench_machine machine;
    bench_device_open(&side->device, any, &machine);
    VkDevice device = side->device.device;
    printf("device: %s\n", machine.device);
    bench_pipeline_make(&side->device, &BENCH_CODE[BENCH_SAXPY], 2, sizeof PUSH, &side->saxpy);
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    const VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    BENCH_VK(vkCreateDescriptorPool(device, &descriptors, NULL, &side->descriptors));
    const VkDescriptorSetAllocateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = side->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &side->saxpy.set_layout,
    };
    BENCH_VK(vkAllocateDescriptorSets(device, &set, &side->set));
    bench_memory_make_local(&side->device, BYTES, &side->x);
    bench_memory_make_local(&side->device, BYTES, &side->y);
    for (uint32_t i = 0; i < 2; i++) {
        bench_memory_make(&side->device, PIECE, &side->staging[i]);
        const VkDescriptorBufferInfo range = {i ? side->y.buffer : side->x.buffer, 0,
                                              VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = side->set,
                                            .dstBinding = i,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &range};
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
        const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        BENCH_VK(vkCreateFence(device, &fence, NULL, &side->fences[i]));
    }
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = side->device.family,
    };
    BENCH_VK(vkCreateCommandPool(device, &pool, NULL, &side->pool));
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = side->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 2,
    };
    BENCH_VK(vkAllocateCommandBuffers(device, &commands, side->commands));
}

static uint64_t kernel_theirs(struct theirs *side) {
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        VkCommandBuffer commands = side->commands[0];
        begin(commands);
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->saxpy.pipeline);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->saxpy.layout, 0, 1,
                                &side->set, 0, NULL);
        vkCmdPushConstants(commands, side->saxpy.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof PUSH, &PUSH);
        const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                        .dstAccessMask =
                                            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
        for (uint32_t i = 0; i < LAUNCHES; i++) {
            vkCmdDispatch(commands, GROUPS, 1, 1);
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, NULL, 0,
                                 NULL);
        }
        submit(side, 0);
        finish(side, 0);
        best = better(best, bench_now_ns() - start);
    }
    return best / LAUNCHES;
}

/* Two pieces under way, as a careful host would. */
static uint64_t copy_theirs(struct theirs *side, char *bytes, bool upload) {
    enum { PIECES = BYTES / PIECE };
    uint64_t best = UINT64_MAX;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t start = bench_now_ns();
        for (int i = 0; i < PIECES + 2; i++) {
            if (i >= 2) {
                finish(side, i % 2);
                if (!upload) {
                    memcpy(bytes + (uint64_t)(i - 2) * PIECE, side->staging[i % 2].mapped, PIECE);
                }
            }
            if (i < PIECES) {
                const VkBufferCopy up = {0, (uint64_t)i * PIECE, PIECE};
                const VkBufferCopy down = {(uint64_t)i * PIECE, 0, PIECE};
                if (upload) {
                    memcpy(side->staging[i % 2].mapped, bytes + (uint64_t)i * PIECE, PIECE);
                }
                begin(side->commands[i % 2]);
                vkCmdCopyBuffer(
                    side->commands[i % 2], upload ? side->staging[i % 2].buffer : side->x.buffer,
                    upload ? side->x.buffer : side->staging[i % 2].buffer, 1, upload ? &up : &down);
                submit(side, i % 2);
            }
        }
        best = better(best, bench_now_ns() - start);
    }
    return best;
}

static void say(const char *what, uint64_t ours, uint64_t theirs) {
    printf("%-34s %10.3f ms %10.3f ms  ratio %.3f\n", what, (double)ours / 1e6,
           (double)theirs / 1e6, (double)ours / (double)theirs);
}

static const char usage[] =
    "Usage: bench-memory [DEVICE]\n"
    "A kernel on device memory, and copies to and from it, through the library and in-process.\n"
    "DEVICE: as `bulkhead devices` shows it.\n";

int main(int argc, char **argv) {
    bench_help(argc, argv, usage);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        bench_bad_usage(argv[1], usage);
    }
    char *bytes = calloc(1, BYTES);
    struct ours ours = {0};
    static struct theirs theirs;
    if (!bytes) {
        bench_die("out of memory");
    }
    memset(bytes, 1, BYTES);
    open_theirs(&theirs);
    open_ours(&ours, argc > 1 ? argv[1] : NULL);
    printf("%-34s %13s %13s\n", "best of 10 rounds, 64 MiB", "bulkhead", "in-process");
    ours.x = make_buffer(&ours, BH_MEMORY_DEVICE);
    ours.y = make_buffer(&ours, BH_MEMORY_DEVICE);
    (void)kernel_ours(&ours); /* which compiles, makes and imports */
    (void)kernel_theirs(&theirs);
    say("saxpy kernel, device memory", kernel_ours(&ours), kernel_theirs(&theirs));
    say("upload", copy_ours(&ours, bytes, true), copy_theirs(&theirs, bytes, true));
    say("download", copy_ours(&ours, bytes, false), copy_theirs(&theirs, bytes, false));
    bh_buffer_release(ours.x);
    bh_buffer_release(ours.y);
    ours.x = make_buffer(&ours, BH_MEMORY_HOST);
    ours.y = make_buffer(&ours, BH_MEMORY_HOST);
    (void)kernel_ours(&ours);
    say("saxpy kernel, host memory", kernel_ours(&ours), kernel_theirs(&theirs));
    bh_buffer_release(ours.x);
    bh_buffer_release(ours.y);
    bh_kernel_release(ours.saxpy);
    bh_stream_release(ours.stream);
    bh_context_destroy(ours.context);
    free(bytes);
    return 0;
}
