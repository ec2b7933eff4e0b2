/* bench-devices: equal jobs through streams of one device, and through streams of the device "any"
 * on all devices of the same driver. How much of the devices is used? */
#include "common.h"

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEVICES 16u
#define MOST_STREAMS 64u   /* of a side */
#define DEPTH        2u    /* jobs of a stream that are under way: one runs, one is next */
#define WARM_UP      5u    /* jobs of a stream before each measurement */
#define MOST_ROUNDS  64u   /* of measurements */
#define GROUPS       4224u /* as many as a large GPU runs at once */
#define LOCAL        64u
#define STEPS        64u    /* in a round of the kernel's loop */
#define MOST_LOOP    60000u /* llvmpipe before Mesa 25 ends a loop at 65,535 */
#define TYPE_CPU     4u     /* VK_PHYSICAL_DEVICE_TYPE_CPU */
#define TARGET       0.95   /* of linear */

static const char USAGE[] =
    "Usage: bench-devices [--jobs N] [--job-ms N] [--streams N] [--rounds N] [--worker PATH]\n"
    "                     [--quick] [--strict] [--help]\n"
    "Runs equal jobs on one device, then through streams of the device \"any\" on all devices of\n"
    "the default driver, in turns. Prints jobs a second, their ratio and the share of linear.\n"
    "  --jobs N       jobs of a measurement; default 400\n"
    "  --job-ms N     device time of a job; default 10\n"
    "  --streams N    streams of each device; default 1\n"
    "  --rounds N     measurements of each kind; the medians are printed; default 3\n"
    "  --worker PATH  the worker; default: where the library finds it\n"
    "  --quick        a short run that checks the results\n"
    "  --strict       exit status 3 if the share of linear is under 0.95; devices that are the\n"
    "                 machine's processors have no goal\n"
    "Exit status: 0 measured (also if there is only one device), 1 something failed, 2 bad usage,\n"
    "3 see --strict.\n";

static const uint32_t SHARE[] =
#include "share.inc"
    ;

struct options {
    const char *worker;
    unsigned jobs, job_ms, streams, rounds;
    bool strict;
};

struct devices {
    char names[MOST_DEVICES][256], selectors[MOST_DEVICES][48];
    unsigned count;
    bool are_processors;
};

struct slot {
    bh_buffer *buffer;
    bh_event *event; /* NULL: free */
    uint32_t tag;
};

struct side {
    bh_context *context;
    bh_kernel *kernel;
    bh_stream *streams[MOST_STREAMS];
    unsigned stream_count;
    unsigned on[MOST_STREAMS]; /* index of the stream's device */
    struct slot slots[MOST_STREAMS * DEPTH];
    unsigned done[MOST_DEVICES]; /* jobs of the last measurement */
};

/* What a job is, and what it has to compute but for its tag. */
static uint32_t loop;
static uint32_t expected[GROUPS];
static uint32_t next_tag;

static bh_context *open_context(const struct options *options) {
    return bench_context(
        BENCH_WITH(bh_context_options, .worker_path = options->worker, .spares = BH_OFF));
}

static bh_stream *open_stream(bh_context *context, const char *device) {
    return bench_stream(context, BENCH_WITH(bh_stream_options, .device = device));
}

/* Those of the default driver: any is chosen among them. The first one is the default device. */
static void find_devices(const struct options *options, struct devices *out) {
    static bh_device_info infos[64] = {{.struct_size = sizeof infos[0]}};
    bh_context *context = open_context(options);
    bh_stream *stream = open_stream(context, NULL);
    char first[48];
    bench_ready(stream);
    BENCH_MUST(bh_stream_device(stream, first));
    bh_stream_release(stream);
    size_t count = 0;
    BENCH_MUST(bh_devices(context, infos, 64, &count, &bench_why));
    const size_t driver = strcspn(first, ":") + 1;
    *out = (struct devices){.are_processors = true};
    for (size_t i = 0; i < count && i < 64; i++) {
        if (strncmp(infos[i].selector, first, driver) != 0) {
            continue;
        }
        if (out->count == MOST_DEVICES) {
            bench_die("more than %u devices", MOST_DEVICES);
        }
        memcpy(out->names[out->count], infos[i].name, sizeof infos[i].name);
        memcpy(out->selectors[out->count], infos[i].selector, sizeof infos[i].selector);
        out->are_processors = out->are_processors && infos[i].device_type == TYPE_CPU;
        out->count++;
    }
    BENCH_MUST(bh_context_destroy(context));
    if (!out->count) {
        bench_die("bh_devices does not list the device %s of a stream", first);
    }
}

/* |streams| streams, ready, and all of |want| devices have some. */
static void open_side(struct side *side, const struct options *options,
                      const struct devices *devices, const char *device, unsigned streams,
                      unsigned want) {
    unsigned streams_of[MOST_DEVICES] = {0};
    side->context = open_context(options);
    side->stream_count = streams;
    side->kernel = bench_kernel(side->context, SHARE, sizeof SHARE, NULL);
    for (unsigned i = 0; i < streams; i++) {
        side->streams[i] = open_stream(side->context, device);
    }
    for (unsigned i = 0; i < streams; i++) {
        char selector[48];
        bench_ready(side->streams[i]);
        BENCH_MUST(bh_stream_device(side->streams[i], selector));
        unsigned on = 0;
        while (on < devices->count && strcmp(devices->selectors[on], selector) != 0) {
            on++;
        }
        if (on == devices->count) {
            bench_die("a stream runs on %s, which is none of the devices", selector);
        }
        side->on[i] = on;
        streams_of[on]++;
    }
    for (unsigned i = 0; i < want; i++) {
        if (!streams_of[i]) {
            bench_die("no stream of the device \"any\" runs on %s", devices->selectors[i]);
        }
    }
    for (unsigned i = 0; i < streams * DEPTH; i++) {
        side->slots[i].buffer = bench_buffer(side->context, NULL, BH_MEMORY_HOST, 4 * GROUPS);
    }
}

static void close_side(struct side *side) {
    for (unsigned i = 0; i < side->stream_count * DEPTH; i++) {
        bh_buffer_release(side->slots[i].buffer);
    }
    for (unsigned i = 0; i < side->stream_count; i++) {
        bh_stream_release(side->streams[i]);
    }
    bh_kernel_release(side->kernel);
    BENCH_MUST(bh_context_destroy(side->context));
}

static void launch(struct side *side, unsigned at, uint64_t flags) {
    struct slot *slot = &side->slots[at];
    slot->tag = ++next_tag;
    const uint32_t push[2] = {loop, slot->tag};
    const bh_binding binding = bh_bind_write(0, slot->buffer);
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = side->kernel,
                                             .groups = {GROUPS, 1, 1},
                                             .bindings = &binding,
                                             .binding_count = 1,
                                             .push = push,
                                             .push_size = sizeof push}};
    slot->event =
        bench_submit(side->streams[at / DEPTH], BENCH_WITH(bh_submit_info, .commands = &command,
                                                           .command_count = 1, .flags = flags));
}

static const uint32_t *result_of(const struct slot *slot) {
    return bench_map(slot->buffer, BH_MAP_READ);
}

/* Waits for the job, and checks its result. */
static void finish(struct slot *slot) {
    bench_finish(slot->event);
    slot->event = NULL;
    const uint32_t *words = result_of(slot);
    for (unsigned i = 0; i < GROUPS; i++) {
        if (words[i] != (expected[i] ^ slot->tag)) {
            bench_die("group %u of a job computed 0x%08x, not 0x%08x", i, words[i],
                      expected[i] ^ slot->tag);
        }
    }
}

/* -- what a job is ----------------------------------------------------------------------------- */

/* A job of |loop| alone on the first stream, by the device's clock where it tells. */
static uint64_t alone_ns(struct side *side) {
    struct slot *slot = &side->slots[0];
    bh_verdict verdict = {.struct_size = sizeof verdict};
    launch(side, 0, BH_SUBMIT_TIMED);
    BENCH_MUST(bh_event_wait(slot->event, BENCH_TIMEOUT_NS));
    BENCH_MUST(bh_event_verdict(slot->event, &verdict));
    bh_event_release(slot->event);
    slot->event = NULL;
    return verdict.device_ns ? verdict.device_ns : verdict.ended_ns - verdict.started_ns;
}

static uint64_t typical_ns(struct side *side) {
    uint64_t samples[5];
    for (unsigned i = 0; i < 5; i++) {
        samples[i] = alone_ns(side);
    }
    return bench_quantile(samples, 5, 500);
}

static uint32_t compute(uint32_t value) {
    for (uint64_t i = 0; i < (uint64_t)loop * STEPS; i++) {
        value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
    }
    return value;
}

/* Finds |loop|, and what a job of it computes: its first and last group are checked here, and the
 * others are what the first device says. Returns what a job takes. */
static uint64_t calibrate(struct side *side, uint64_t target_ns) {
    loop = 1;
    (void)alone_ns(side); /* compiles */
    uint64_t took = typical_ns(side);
    while (took < target_ns / 4 && loop < MOST_LOOP / 4) {
        loop *= 4;
        took = typical_ns(side);
    }
    const uint64_t wanted = (loop * target_ns + took / 2) / (took ? took : 1);
    loop = wanted < 1 ? 1 : wanted > MOST_LOOP ? MOST_LOOP : (uint32_t)wanted;
    took = typical_ns(side);
    const uint32_t *words = result_of(&side->slots[0]);
    for (unsigned i = 0; i < GROUPS; i++) {
        expected[i] = words[i] ^ side->slots[0].tag;
    }
    if (expected[0] != compute(0) || expected[GROUPS - 1] != compute((GROUPS - 1) * LOCAL)) {
        bench_die("a job computed a wrong result");
    }
    return took;
}

/* -- many of them ------------------------------------------------------------------------------ */

/* Each stream gets the next job when it has ended one. Returns how long all took. */
static uint64_t run_jobs(struct side *side, unsigned jobs) {
    const unsigned slots = side->stream_count * DEPTH;
    bh_event *events[MOST_STREAMS * DEPTH];
    unsigned at[MOST_STREAMS * DEPTH];
    unsigned launched = 0;
    memset(side->done, 0, sizeof side->done);
    const uint64_t began = bench_now_ns();
    for (unsigned depth = 0; depth < DEPTH; depth++) {
        for (unsigned i = 0; i < side->stream_count && launched < jobs; i++, launched++) {
            launch(side, i * DEPTH + depth, 0);
        }
    }
    for (unsigned left = jobs; left; left--) {
        size_t count = 0, first;
        for (unsigned i = 0; i < slots; i++) {
            if (side->slots[i].event) {
                at[count] = i;
                events[count++] = side->slots[i].event;
            }
        }
        BENCH_MUST(bh_event_wait_any(events, count, BENCH_TIMEOUT_NS, &first));
        finish(&side->slots[at[first]]);
        side->done[side->on[at[first] / DEPTH]]++;
        if (launched < jobs) {
            launch(side, at[first], 0);
            launched++;
        }
    }
    return bench_now_ns() - began;
}

/* Jobs in a thousand seconds. */
static uint64_t measure(struct side *side, unsigned jobs) {
    run_jobs(side, side->stream_count * WARM_UP); /* compiles, and wakes what sleeps */
    return (uint64_t)(1e12 * jobs / (double)run_jobs(side, jobs));
}

static struct options parse(int argc, char **argv) {
    struct options options = {.streams = 1};
    bool quick = false;
    const struct bench_option accepted[] = {
        {"--quick", .flag = &quick},
        {"--strict", .flag = &options.strict},
        {"--jobs", .number = &options.jobs, .least = 1, .most = 1000000},
        {"--job-ms", .number = &options.job_ms, .least = 1, .most = 1000},
        {"--streams", .number = &options.streams, .least = 1, .most = MOST_STREAMS},
        {"--rounds", .number = &options.rounds, .least = 1, .most = MOST_ROUNDS},
        {"--worker", .text = &options.worker},
        {0}};
    bench_parse(argc, argv, accepted, USAGE);
    options.jobs = options.jobs ? options.jobs : quick ? 16 : 400;
    options.job_ms = options.job_ms ? options.job_ms : quick ? 2 : 10;
    options.rounds = options.rounds ? options.rounds : quick ? 1 : 3;
    return options;
}

static void print_any(const struct side *any, const struct devices *devices, double rate) {
    printf("any device  %9.1f  ", rate);
    for (unsigned i = 0; i < devices->count; i++) {
        printf("%s%s %u", i ? ", " : "", devices->selectors[i], any->done[i]);
    }
    printf("\n");
}

int main(int argc, char **argv) {
    static struct side one, any;
    static struct devices devices;
    static uint64_t one_rates[MOST_ROUNDS], any_rates[MOST_ROUNDS], ratios[MOST_ROUNDS];
    const struct options options = parse(argc, argv);
    find_devices(&options, &devices);
    for (unsigned i = 0; i < devices.count; i++) {
        printf("%-12s  %s\n", devices.selectors[i], devices.names[i]);
    }
    const bool several = devices.count > 1;
    if (devices.count * options.streams > MOST_STREAMS) {
        bench_die("--streams: %u streams for %u devices at most", MOST_STREAMS / devices.count,
                  devices.count);
    }
    open_side(&one, &options, &devices, devices.selectors[0], options.streams, 1);
    if (several) {
        open_side(&any, &options, &devices, "any", options.streams * devices.count, devices.count);
    }
    const uint64_t took = calibrate(&one, options.job_ms * 1000000ull);
    for (unsigned i = 0; i < options.rounds; i++) {
        /* Every other round begins with the other side. */
        if (several && i % 2) {
            any_rates[i] = measure(&any, options.jobs);
        }
        one_rates[i] = measure(&one, options.jobs);
        if (several && i % 2 == 0) {
            any_rates[i] = measure(&any, options.jobs);
        }
        ratios[i] = any_rates[i] * 1000000 / (one_rates[i] ? one_rates[i] : 1);
    }
    printf("%u jobs of %.1f ms of device time, %u at a time on a device; medians of %u rounds\n\n"
           "               jobs/s  jobs of each device\n",
           options.jobs, (double)took / 1e6, options.streams * DEPTH, options.rounds);
    printf("one device  %9.1f  %s %u\n",
           (double)bench_quantile(one_rates, options.rounds, 500) / 1e3, devices.selectors[0],
           one.done[0]);
    double share = 1;
    if (several) {
        const double ratio = (double)bench_quantile(ratios, options.rounds, 500) / 1e6;
        share = ratio / devices.count;
        print_any(&any, &devices, (double)bench_quantile(any_rates, options.rounds, 500) / 1e3);
        printf("\nratio %.3f with %u devices, %.3f of linear; ", ratio, devices.count, share);
        if (devices.are_processors) {
            printf("no goal: the devices share the machine's processors\n");
        } else {
            printf("goal: at least %.2f: %s\n", TARGET, share >= TARGET ? "kept" : "missed");
        }
        close_side(&any);
    } else {
        printf("\none device: there is nothing to compare it with\n");
    }
    close_side(&one);
    return options.strict && several && !devices.are_processors && share < TARGET ? 3 : 0;
}
