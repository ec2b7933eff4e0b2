/* What the judge says that a kernel takes, against the same kernel timed by hand in this process,
 * with timestamp queries. Rounds of both take turns, so that they meet the same machine. */
#include "bench.h"

#include <bulkhead/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "samples.h"
#include "vulkan_device.h"

enum { FLOATS = 4096, BYTES = FLOATS * 4, LOCAL = 64, MOST_ROUNDS = 1000, BINDINGS = 3 };

static const uint32_t CODE[] =
#include "judged.inc"
    ;
static const struct bench_code KERNEL = {"judged", CODE, sizeof CODE};

struct settings {
    unsigned rounds, runs, iterations;
    struct bench_options device;
};

/* -- in-process ------------------------------------------------------------------------------- */

struct by_hand {
    struct bench_device device;
    struct bench_pipeline pipeline;
    struct bench_memory memory[BINDINGS];
    VkCommandBuffer commands;
    VkFence fence;
    VkQueryPool queries;
    double period_ns;
};

static VkDescriptorSet bind(const struct by_hand *side) {
    VkDescriptorPool pool;
    VkDescriptorSet set;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BINDINGS};
    const VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size};
    BENCH_VK(vkCreateDescriptorPool(side->device.device, &descriptors, NULL, &pool));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &side->pipeline.set_layout};
    BENCH_VK(vkAllocateDescriptorSets(side->device.device, &allocate, &set));
    for (uint32_t i = 0; i < BINDINGS; i++) {
        const VkDescriptorBufferInfo range = {side->memory[i].buffer, 0, VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = set,
                                            .dstBinding = i,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &range};
        vkUpdateDescriptorSets(side->device.device, 1, &write, 0, NULL);
    }
    return set; /* the pool goes with the process */
}

/* Device memory, as the judge's buffers have on a GPU. */
static void fill(struct by_hand *side, VkCommandBuffer commands, uint32_t iterations) {
    bench_commands_begin(commands, 0);
    vkCmdFillBuffer(commands, side->memory[0].buffer, 0, VK_WHOLE_SIZE, 0);
    vkCmdUpdateBuffer(commands, side->memory[1].buffer, 0, sizeof iterations, &iterations);
    BENCH_VK(vkEndCommandBuffer(commands));
    bench_commands_submit(side->device.queue, commands, side->fence);
    bench_fence_finish(&side->device, side->fence);
}

/* Timestamps where the worker has them: both at the bottom of the pipe. */
static void record(struct by_hand *side) {
    const VkDescriptorSet set = bind(side);
    bench_commands_begin(side->commands, 0);
    vkCmdResetQueryPool(side->commands, side->queries, 0, 2);
    vkCmdBindPipeline(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.pipeline);
    vkCmdBindDescriptorSets(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.layout,
                            0, 1, &set, 0, NULL);
    vkCmdWriteTimestamp(side->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, side->queries, 0);
    vkCmdDispatch(side->commands, FLOATS / LOCAL, 1, 1);
    vkCmdWriteTimestamp(side->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, side->queries, 1);
    BENCH_VK(vkEndCommandBuffer(side->commands));
}

static void open_by_hand(struct by_hand *side, const struct settings *settings,
                         struct bench_machine *machine) {
    bench_device_open(&side->device, settings->device.uuid, machine);
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(side->device.physical, &properties);
    side->period_ns = (double)properties.limits.timestampPeriod;
    bench_pipeline_make(&side->device, &KERNEL, BINDINGS, 0, &side->pipeline);
    for (int i = 0; i < BINDINGS; i++) {
        bench_memory_make_local(&side->device, i == 1 ? sizeof settings->iterations : BYTES,
                                &side->memory[i]);
    }
    const VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                           .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                           .queryCount = 2};
    BENCH_VK(vkCreateQueryPool(side->device.device, &queries, NULL, &side->queries));
    const VkCommandPool pool = bench_pool_make(&side->device, side->device.family, 0);
    side->commands = bench_commands_make(&side->device, pool);
    side->fence = bench_fence_make(&side->device);
    fill(side, bench_commands_make(&side->device, pool), settings->iterations);
    record(side);
}

static uint64_t run_by_hand(const struct by_hand *side) {
    uint64_t ticks[2];
    bench_commands_submit(side->device.queue, side->commands, side->fence);
    bench_fence_finish(&side->device, side->fence);
    BENCH_VK(vkGetQueryPoolResults(side->device.device, side->queries, 0, 2, sizeof ticks, ticks,
                                   sizeof ticks[0],
                                   VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
    return (uint64_t)((double)(ticks[1] - ticks[0]) * side->period_ns);
}

/* The median of |runs|, after as many that warm it. */
static uint64_t round_by_hand(const struct by_hand *side, unsigned runs) {
    uint64_t *samples = calloc(runs, sizeof *samples);
    if (!samples) {
        bench_die("out of memory");
    }
    for (unsigned i = 0; i < 2 * runs; i++) {
        samples[i % runs] = run_by_hand(side);
    }
    const uint64_t median = bench_quantile(samples, runs, 500);
    free(samples);
    return median;
}

/* -- the judge -------------------------------------------------------------------------------- */

/* The reference is a file; so the kernel is written into one. */
static void write_kernel(char path[]) { /* a template of mkstemps */
    const int fd = mkstemps(path, 4);
    if (fd < 0 || write(fd, CODE, sizeof CODE) != (ssize_t)sizeof CODE || close(fd) != 0) {
        bench_die("%s cannot be written", path);
    }
}

static bh_judge *open_judge(const struct settings *settings, char path[]) {
    char text[1000];
    bh_judge_options options = {.struct_size = sizeof options};
    bh_detail detail;
    bh_judge *judge;
    write_kernel(path);
    snprintf(text, sizeof text,
             "{\"sizes\": [{\"n\": %d}], \"groups\": [\"ceildiv(n, local_x)\"],"
             " \"in\": {\"0\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"},"
             " \"1\": {\"dtype\": \"u32\", \"shape\": [1], \"fill\": {\"integers\": [%u, %u]}}},"
             " \"out\": {\"2\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},"
             " \"reference\": {\"kernel\": \"%s\"}}",
             FLOATS, settings->iterations, settings->iterations, path);
    options.task_text = text;
    options.device = settings->device.device;
    options.timed = options.warm = options.guard_cost = true;
    options.all_processors = true; /* as this program has */
    options.timed_runs = settings->runs;
    bench_must(bh_judge_create(&options, &judge, &detail), "bh_judge_create", &detail);
    bench_must(bh_judge_prepare(judge, &detail), "bh_judge_prepare", &detail);
    return judge;
}

/* One judgement: the medians of the kernel as it is, and with the guard. */
static void round_judged(bh_judge *judge, uint64_t *out_trusted, uint64_t *out_guarded) {
    const bh_judge_candidate candidate = {
        .struct_size = sizeof candidate, .name = "judged.spv", .code = CODE, .size = sizeof CODE};
    bh_judgement judgement = {.struct_size = sizeof judgement};
    bh_detail detail;
    bench_must(bh_judge_run(judge, &candidate, &judgement, &detail), "bh_judge_run", &detail);
    const bh_judge_timing *timing = &judgement.timings[0];
    if (!judgement.timing_count || !timing->device || timing->guard_ratio <= 0) {
        bench_die("%s: %s: there are no times of the device",
                  bh_judge_verdict_name(judgement.verdict, judgement.status), judgement.message);
    }
    *out_guarded = (uint64_t)timing->median_ns;
    *out_trusted = (uint64_t)(timing->median_ns / timing->guard_ratio);
}

/* -- both ------------------------------------------------------------------------------------- */

static void say(const char *what, const uint64_t *of, const uint64_t *by_hand, unsigned rounds) {
    uint64_t sorted[MOST_ROUNDS];
    uint64_t ratios[MOST_ROUNDS]; /* in millionths */
    for (unsigned i = 0; i < rounds; i++) {
        sorted[i] = of[i];
        ratios[i] = (uint64_t)((double)of[i] / (double)by_hand[i] * 1e6);
    }
    const uint64_t median = bench_quantile(sorted, rounds, 500);
    const uint64_t ratio = bench_quantile(ratios, rounds, 500); /* which sorts them */
    printf("%-28s %12.3f us  ratio %.4f, from %.4f to %.4f\n", what, (double)median / 1e3,
           (double)ratio / 1e6, (double)ratios[0] / 1e6, (double)ratios[rounds - 1] / 1e6);
}

static void measure(const struct settings *settings, const struct bench_machine *machine) {
    static uint64_t hand[MOST_ROUNDS], trusted[MOST_ROUNDS], guarded[MOST_ROUNDS];
    struct by_hand side = {.fence = VK_NULL_HANDLE};
    struct bench_machine unused;
    open_by_hand(&side, settings, &unused);
    char path[] = "/tmp/bench-judged-XXXXXX.spv"; /* it is read again for the timed runs */
    bh_judge *judge = open_judge(settings, path);
    for (unsigned i = 0; i < settings->rounds; i++) {
        hand[i] = round_by_hand(&side, settings->runs);
        round_judged(judge, &trusted[i], &guarded[i]);
    }
    bh_judge_destroy(judge);
    unlink(path);
    bench_device_close(&side.device);
    printf("device: %s\n%u rounds of %u runs each, %u iterations; medians of the rounds' medians\n",
           machine->device, settings->rounds, settings->runs, settings->iterations);
    say("in-process, by hand", hand, hand, settings->rounds);
    say("judged, without the guard", trusted, hand, settings->rounds);
    say("judged, guarded", guarded, hand, settings->rounds);
}

static const char usage[] =
    "Usage: bench-judged [--quick] [--rounds N] [--runs N] [--iterations N] [--device SELECTOR]\n"
    "What bulkhead judge says that a kernel takes, against the same kernel in this process, timed\n"
    "with timestamp queries. Ratios mean something on a quiet machine only.\n"
    "  --quick        2 rounds of 5 runs: shows that it works\n"
    "  --rounds       rounds of both in turn; 10\n"
    "  --runs         runs in a round; 50\n"
    "  --iterations   how long the kernel is; 1000 on a processor, 100000 on others (2.5 ms)\n"
    "  --device       as bulkhead devices shows it\n";

int main(int argc, char **argv) {
    struct settings settings = {.rounds = 10, .runs = 50};
    struct bench_machine machine;
    bench_help(argc, argv, usage);
    for (int i = 1; i < argc; i++) {
        const char *value = argv[i + 1];
        if (!strcmp(argv[i], "--quick")) {
            settings.rounds = 2;
            settings.runs = 5;
        } else if (!strcmp(argv[i], "--rounds")) {
            settings.rounds = bench_number(argv[i++], value, 1, MOST_ROUNDS);
        } else if (!strcmp(argv[i], "--runs")) {
            settings.runs = bench_number(argv[i++], value, 5, 100000);
        } else if (!strcmp(argv[i], "--iterations")) {
            settings.iterations = bench_number(argv[i++], value, 1, 100000000);
        } else if (!strcmp(argv[i], "--device") && value) {
            settings.device.device = value;
            i++;
        } else {
            bench_bad_usage(argv[i], usage);
        }
    }
    bench_bulkhead_choose(&settings.device, &machine);
    if (!settings.iterations) {
        settings.iterations = settings.device.processor ? 1000 : 100000;
    }
    measure(&settings, &machine);
    return 0;
}
