/* What the judge says that a kernel takes, against the same kernel timed by hand in this process,
 * with timestamp queries. Rounds of both take turns, so that they meet the same machine. */
#include "bench.h"

#include <bulkhead/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "vulkan_device.h"

enum { FLOATS = 4096, MOST_FLOATS = 1 << 22, LOCAL = 64, MOST_ROUNDS = 1000, BINDINGS = 3 };

static const uint32_t CODE[] =
#include "judged.inc"
    ;
static const struct bench_code KERNEL = {"judged", CODE, sizeof CODE};

struct settings {
    unsigned rounds, runs, iterations, floats;
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
static void record(struct by_hand *side, unsigned floats) {
    VkDescriptorPool pool; /* goes with the process */
    const VkDescriptorSet set =
        bench_set_make(&side->device, &side->pipeline, side->memory, BINDINGS, &pool);
    bench_commands_begin(side->commands, 0);
    vkCmdResetQueryPool(side->commands, side->queries, 0, 2);
    vkCmdBindPipeline(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.pipeline);
    vkCmdBindDescriptorSets(side->commands, VK_PIPELINE_BIND_POINT_COMPUTE, side->pipeline.layout,
                            0, 1, &set, 0, NULL);
    vkCmdWriteTimestamp(side->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, side->queries, 0);
    vkCmdDispatch(side->commands, (floats + LOCAL - 1) / LOCAL, 1, 1);
    vkCmdWriteTimestamp(side->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, side->queries, 1);
    BENCH_VK(vkEndCommandBuffer(side->commands));
}

static void open_by_hand(struct by_hand *side, const struct settings *settings,
                         struct bench_machine *machine) {
    bench_device_open(&side->device, settings->device.uuid, false, machine);
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(side->device.physical, &properties);
    side->period_ns = (double)properties.limits.timestampPeriod;
    bench_pipeline_make(&side->device, &KERNEL, BINDINGS, 0, &side->pipeline);
    for (int i = 0; i < BINDINGS; i++) {
        bench_memory_make(&side->device,
                          i == 1 ? sizeof settings->iterations : 4ull * settings->floats, true,
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
    record(side, settings->floats);
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
    uint64_t *samples = bench_allocate(runs, sizeof *samples);
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
    bh_judge *judge;
    write_kernel(path);
    snprintf(text, sizeof text,
             "{\"sizes\": [{\"n\": %u}], \"groups\": [\"ceildiv(n, local_x)\"],"
             " \"in\": {\"0\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"},"
             " \"1\": {\"dtype\": \"u32\", \"shape\": [1], \"fill\": {\"integers\": [%u, %u]}}},"
             " \"out\": {\"2\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},"
             " \"reference\": {\"kernel\": \"%s\"}}",
             settings->floats, settings->iterations, settings->iterations, path);
    options.task_text = text;
    options.device = settings->device.device;
    options.timed = options.warm = options.guard_cost = true;
    options.all_processors = true; /* as this program has */
    options.timed_runs = settings->runs;
    BENCH_MUST(bh_judge_create(&options, &judge, &bench_why));
    BENCH_MUST(bh_judge_prepare(judge, &bench_why));
    return judge;
}

/* The processor time of this process; workers are others. */
static uint64_t own_ns(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000u;
}

/* One judgement: the medians of the kernel as it is, and with the guard; and the judge's own
 * processor time. */
static void round_judged(bh_judge *judge, uint64_t *out_trusted, uint64_t *out_guarded,
                         uint64_t *out_own) {
    const bh_judge_candidate candidate = {
        .struct_size = sizeof candidate, .name = "judged.spv", .code = CODE, .size = sizeof CODE};
    bh_judgement judgement = {.struct_size = sizeof judgement};
    const uint64_t before = own_ns();
    BENCH_MUST(bh_judge_run(judge, &candidate, &judgement, &bench_why));
    const bh_judge_timing *timing = &judgement.timings[0];
    if (!judgement.timing_count || !timing->device || timing->guard_ratio <= 0) {
        bench_die("%s: %s: there are no times of the device",
                  bh_judge_verdict_name(judgement.verdict, judgement.status), judgement.message);
    }
    *out_own = own_ns() - before;
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
    static uint64_t hand[MOST_ROUNDS], trusted[MOST_ROUNDS], guarded[MOST_ROUNDS], own[MOST_ROUNDS];
    struct rusage usage;
    struct by_hand side = {.fence = VK_NULL_HANDLE};
    struct bench_machine unused;
    open_by_hand(&side, settings, &unused);
    char path[] = "/tmp/bench-judged-XXXXXX.spv"; /* it is read again for the timed runs */
    bh_judge *judge = open_judge(settings, path);
    for (unsigned i = 0; i < settings->rounds; i++) {
        hand[i] = round_by_hand(&side, settings->runs);
        round_judged(judge, &trusted[i], &guarded[i], &own[i]);
    }
    bh_judge_destroy(judge);
    unlink(path);
    bench_device_close(&side.device);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf(
        "device: %s\n%u rounds of %u runs each, %u iterations, %u floats; medians of the rounds' "
        "medians\n",
        machine->device, settings->rounds, settings->runs, settings->iterations, settings->floats);
    say("in-process, by hand", hand, hand, settings->rounds);
    say("judged, without the guard", trusted, hand, settings->rounds);
    say("judged, guarded", guarded, hand, settings->rounds);
    printf("the judge itself %24.3f ms of processor time a judgement; at most %ld MiB of memory\n",
           (double)bench_quantile(own, settings->rounds, 500) / 1e6, usage.ru_maxrss >> 10);
}

static const char usage[] =
    "Usage: bench-judged [--quick] [--rounds N] [--runs N] [--iterations N] [--floats N]\n"
    "                    [--device SELECTOR]\n"
    "What bulkhead judge says that a kernel takes, against the same kernel in this process, timed\n"
    "with timestamp queries. Ratios mean something on a quiet machine only.\n"
    "  --quick        2 rounds of 5 runs: shows that it works\n"
    "  --rounds       rounds of both in turn; 10\n"
    "  --runs         runs in a round; 50\n"
    "  --iterations   how long the kernel is; 1000 on a processor, 100000 on others (2.5 ms)\n"
    "  --floats       how many elements it computes; 4096\n"
    "  --device       as bulkhead devices shows it\n";

int main(int argc, char **argv) {
    struct settings settings = {.rounds = 0};
    struct bench_machine machine;
    bool quick = false;
    const struct bench_option options[] = {
        {"--quick", .flag = &quick},
        {"--rounds", .number = &settings.rounds, .least = 1, .most = MOST_ROUNDS},
        {"--runs", .number = &settings.runs, .least = 5, .most = 100000},
        {"--iterations", .number = &settings.iterations, .least = 1, .most = 100000000},
        {"--floats", .number = &settings.floats, .least = LOCAL, .most = MOST_FLOATS},
        {"--device", .text = &settings.device.device},
        {0}};
    bench_parse(argc, argv, options, usage);
    settings.rounds = settings.rounds ? settings.rounds : quick ? 2 : 10;
    settings.floats = settings.floats ? settings.floats : FLOATS;
    settings.runs = settings.runs ? settings.runs : quick ? 5 : 50;
    bench_bulkhead_choose(&settings.device, &machine);
    if (!settings.iterations) {
        settings.iterations = settings.device.processor ? 1000 : 100000;
    }
    measure(&settings, &machine);
    return 0;
}
