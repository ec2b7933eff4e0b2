/* An upload beside a kernel that takes about as long: through the library, on one stream, and
 * in-process, with a queue for each. Prints a line for each part, the better of several rounds. */
#include "vulkan_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS    (60ull * 1000 * 1000 * 1000)
#define BYTES         (64ull << 20)
#define PIECE         (4ull << 20) /* in-process: of two staging buffers */
#define PIECES        (BYTES / PIECE)
#define ROUNDS        10u
#define MOST_LAUNCHES 2048u
#define FLOATS        (BYTES / sizeof(float))

static const struct bench_saxpy_push PUSH = {.a = 0.5f, .count = (uint32_t)(FLOATS / 4)};
static const uint32_t GROUPS = (uint32_t)((FLOATS / 4 + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL);

/* What is measured. */
enum part { KERNEL, UPLOAD, IN_TURN, AT_ONCE, PARTS };
static const char *const NAMES[PARTS] = {"kernel", "upload", "one after the other", "at once"};

/* -- the library ------------------------------------------------------------------------------ */

struct ours {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *saxpy;
    bh_buffer *x, *y, *from, *to;
    bh_command *commands;
};

static void open_ours(struct ours *side, const char *worker, uint32_t launches, uint8_t value) {
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
    side->x = bench_buffer(side->context, side->stream, BH_MEMORY_DEVICE, BYTES);
    side->y = bench_buffer(side->context, side->stream, BH_MEMORY_DEVICE, BYTES);
    side->to = bench_buffer(side->context, side->stream, BH_MEMORY_DEVICE, BYTES);
    side->from = bench_buffer(side->context, side->stream, BH_MEMORY_HOST, BYTES);
    void *bytes;
    bench_must(bh_buffer_map(side->from, BH_MAP_DISCARD, TIMEOUT_NS, &bytes, &detail),
               "bh_buffer_map", &detail);
    memset(bytes, value, BYTES);
    static bh_binding bindings[2];
    bindings[0] = (bh_binding){
        .binding = 0, .buffer = side->x, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ};
    bindings[1] = (bh_binding){
        .binding = 1, .buffer = side->y, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ_WRITE};
    side->commands = calloc(launches, sizeof *side->commands);
    if (!side->commands) {
        bench_die("out of memory");
    }
    for (uint32_t i = 0; i < launches; i++) {
        side->commands[i] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                         .kernel = side->saxpy,
                                         .groups = {GROUPS, 1, 1},
                                         .bindings = bindings,
                                         .binding_count = 2,
                                         .push = &PUSH,
                                         .push_size = sizeof PUSH};
    }
}

static bh_event *start_ours(const struct ours *side, const bh_command *commands, uint32_t count) {
    const bh_submit_info info = {.commands = commands, .command_count = count};
    bh_event *event;
    bh_detail detail;
    bench_must(bh_submit(side->stream, &info, &event, &detail), "bh_submit", &detail);
    return event;
}

static uint64_t run_ours(const struct ours *side, enum part part, uint32_t launches) {
    const bh_command copy = {
        .type = BH_COMMAND_COPY, .src = side->from, .dst = side->to, .size = BH_WHOLE_SIZE};
    const uint64_t start = bench_now_ns();
    bh_event *kernel = part == UPLOAD ? NULL : start_ours(side, side->commands, launches);
    if (part == IN_TURN) {
        bench_finish(kernel);
        kernel = NULL;
    }
    if (part != KERNEL) {
        bench_finish(start_ours(side, &copy, 1));
    }
    if (kernel) {
        bench_finish(kernel);
    }
    return bench_now_ns() - start;
}

static void check_ours(const struct ours *side, uint8_t value) {
    uint8_t *bytes = malloc(BYTES);
    bh_detail detail;
    if (!bytes) {
        bench_die("out of memory");
    }
    bench_must(bh_buffer_read(side->to, 0, bytes, BYTES, TIMEOUT_NS, &detail), "bh_buffer_read",
               &detail);
    for (uint64_t i = 0; i < BYTES; i++) {
        if (bytes[i] != value) {
            bench_die("byte %llu of what was uploaded is %u", (unsigned long long)i, bytes[i]);
        }
    }
    free(bytes);
}

static void close_ours(struct ours *side) {
    free(side->commands);
    bh_buffer_release(side->x);
    bh_buffer_release(side->y);
    bh_buffer_release(side->from);
    bh_buffer_release(side->to);
    bh_kernel_release(side->saxpy);
    bh_stream_release(side->stream);
    bh_context_destroy(side->context);
}

/* -- in-process ------------------------------------------------------------------------------- */

struct theirs {
    struct bench_device device;
    VkQueue copy_queue; /* the compute queue if there is no other one */
    struct bench_pipeline saxpy;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool pools[2];
    VkCommandBuffer kernel, copies[2];
    VkFence kernel_done, copied[2];
    struct bench_memory x, y, to, staging[2];
    uint8_t *from;
};

static VkCommandBuffer make_commands(const struct theirs *side, VkCommandPool pool) {
    VkCommandBuffer commands;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    BENCH_VK(vkAllocateCommandBuffers(side->device.device, &info, &commands));
    return commands;
}

static VkFence make_fence(const struct theirs *side) {
    VkFence fence;
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    BENCH_VK(vkCreateFence(side->device.device, &info, NULL, &fence));
    return fence;
}

static void open_theirs(struct theirs *side, uint8_t value) {
    static const uint8_t any[16];
    struct bench_machine machine;
    bench_device_open_with_copies(&side->device, any, &machine);
    const bool apart = side->device.copy_queue != VK_NULL_HANDLE;
    VkDevice device = side->device.device;
    printf("device: %s%s\n", machine.device,
           apart ? "" : "; it has no queue for transfers alone, so nothing runs at once");
    side->copy_queue = apart ? side->device.copy_queue : side->device.queue;
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
    bench_memory_make_local(&side->device, BYTES, &side->to);
    for (uint32_t i = 0; i < 2; i++) {
        const VkDescriptorBufferInfo range = {i ? side->y.buffer : side->x.buffer, 0,
                                              VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = side->set,
                                            .dstBinding = i,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &range};
        const VkCommandPoolCreateInfo pool = {
            .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
            .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            .queueFamilyIndex = i && apart ? side->device.copy_family : side->device.family,
        };
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
        BENCH_VK(vkCreateCommandPool(device, &pool, NULL, &side->pools[i]));
    }
    side->kernel = make_commands(side, side->pools[0]);
    side->kernel_done = make_fence(side);
    for (uint32_t i = 0; i < 2; i++) {
        bench_memory_make(&side->device, PIECE, &side->staging[i]);
        side->copies[i] = make_commands(side, side->pools[1]);
        side->copied[i] = make_fence(side);
    }
    side->from = malloc(BYTES);
    if (!side->from) {
        bench_die("out of memory");
    }
    memset(side->from, value, BYTES);
}

static void begin(VkCommandBuffer commands) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    BENCH_VK(vkBeginCommandBuffer(commands, &info));
}

static void submit(VkQueue queue, VkCommandBuffer commands, VkFence fence) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    BENCH_VK(vkQueueSubmit(queue, 1, &info, fence));
}

static void finish(const struct theirs *side, VkFence fence) {
    BENCH_VK(vkWaitForFences(side->device.device, 1, &fence, VK_TRUE, TIMEOUT_NS));
    BENCH_VK(vkResetFences(side->device.device, 1, &fence));
}

/* The kernel's commands are recorded once. */
static void record_kernel(struct theirs *side, uint32_t launches) {
    begin(side->kernel);
    vkCmdBindPipeline(side->kernel, VK_PIPELINE_BIND_POINT_COMPUTE, side->saxpy.pipeline);
    vkCmdBindDescriptorSets(side->kernel, VK_PIPELINE_BIND_POINT_COMPUTE, side->saxpy.layout, 0, 1,
                            &side->set, 0, NULL);
    vkCmdPushConstants(side->kernel, side->saxpy.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       sizeof PUSH, &PUSH);
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                    .dstAccessMask =
                                        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    for (uint32_t i = 0; i < launches; i++) {
        vkCmdDispatch(side->kernel, GROUPS, 1, 1);
        vkCmdPipelineBarrier(side->kernel, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, NULL, 0, NULL);
    }
    BENCH_VK(vkEndCommandBuffer(side->kernel));
}

/* Two pieces are under way, as a careful host would have it. */
static void upload(struct theirs *side) {
    for (uint64_t i = 0; i < PIECES + 2; i++) {
        const int slot = (int)(i % 2);
        if (i >= 2) {
            finish(side, side->copied[slot]);
        }
        if (i < PIECES) {
            const VkBufferCopy region = {0, i * PIECE, PIECE};
            memcpy(side->staging[slot].mapped, side->from + i * PIECE, PIECE);
            begin(side->copies[slot]);
            vkCmdCopyBuffer(side->copies[slot], side->staging[slot].buffer, side->to.buffer, 1,
                            &region);
            BENCH_VK(vkEndCommandBuffer(side->copies[slot]));
            submit(side->copy_queue, side->copies[slot], side->copied[slot]);
        }
    }
}

static uint64_t run_theirs(struct theirs *side, enum part part) {
    const uint64_t start = bench_now_ns();
    if (part != UPLOAD) {
        submit(side->device.queue, side->kernel, side->kernel_done);
    }
    if (part == KERNEL || part == IN_TURN) {
        finish(side, side->kernel_done);
    }
    if (part != KERNEL) {
        upload(side);
    }
    if (part == AT_ONCE) {
        finish(side, side->kernel_done);
    }
    return bench_now_ns() - start;
}

/* How many launches take about as long as the upload. */
static uint32_t count_launches(struct theirs *side) {
    uint64_t kernel = UINT64_MAX, copy = UINT64_MAX;
    record_kernel(side, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint64_t one = run_theirs(side, KERNEL), other = run_theirs(side, UPLOAD);
        kernel = one < kernel ? one : kernel;
        copy = other < copy ? other : copy;
    }
    const uint64_t launches = copy / (kernel ? kernel : 1) + 1;
    return launches < MOST_LAUNCHES ? (uint32_t)launches : MOST_LAUNCHES;
}

/* -- both ------------------------------------------------------------------------------------- */

static uint64_t shorter(const uint64_t times[PARTS]) {
    return times[KERNEL] < times[UPLOAD] ? times[KERNEL] : times[UPLOAD];
}

/* How much of the shorter one was beside the longer one. */
static double overlap(const uint64_t times[PARTS]) {
    return ((double)times[IN_TURN] - (double)times[AT_ONCE]) / (double)shorter(times);
}

static const char usage[] =
    "Usage: bench-overlap [WORKER]\n"
    "An upload of 64 MiB beside a kernel that takes as long, through the library and in-process.\n"
    "WORKER: the worker's executable.\n";

int main(int argc, char **argv) {
    bench_help(argc, argv, usage);
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        bench_bad_usage(argv[1], usage);
    }
    static struct theirs theirs;
    struct ours ours = {0};
    uint64_t us[PARTS], them[PARTS];
    open_theirs(&theirs, 7);
    const uint32_t launches = count_launches(&theirs);
    record_kernel(&theirs, launches);
    open_ours(&ours, argc > 1 ? argv[1] : NULL, launches, 7);
    (void)run_ours(&ours, IN_TURN, launches); /* which compiles, makes and imports */
    for (int part = 0; part < PARTS; part++) {
        us[part] = them[part] = UINT64_MAX;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int part = 0; part < PARTS; part++) {
            const uint64_t our = run_ours(&ours, (enum part)part, launches);
            const uint64_t their = run_theirs(&theirs, (enum part)part);
            us[part] = our < us[part] ? our : us[part];
            them[part] = their < them[part] ? their : them[part];
        }
    }
    check_ours(&ours, 7);
    printf("%-34s %13s %13s\n", "best of 10 rounds, 64 MiB", "bulkhead", "in-process");
    for (int part = 0; part < PARTS; part++) {
        printf("%-34s %10.3f ms %10.3f ms  ratio %.3f\n", NAMES[part], (double)us[part] / 1e6,
               (double)them[part] / 1e6, (double)us[part] / (double)them[part]);
    }
    printf("%-34s %10.2f    %10.2f\n", "share of the shorter that overlaps", overlap(us),
           overlap(them));
    close_ours(&ours);
    return 0;
}
