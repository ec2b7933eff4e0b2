/* The library's side: the same work through libbulkhead. */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (60ull * 1000 * 1000 * 1000)

struct bulkhead_side {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernels[BENCH_KERNELS];
    bh_buffer *counter, *x, *y;
    bh_command *batch; /* room for a command list */
    size_t batch_count;
};

static const uint32_t ONE_GROUP[3] = {1, 1, 1};

/* Waits, ends the program unless READY, and drops the event. */
static void finish(bh_event *event) {
    bh_status status = bh_event_wait(event, TIMEOUT_NS);
    if (status != BH_OK) {
        bh_verdict verdict = {.message = "still pending"};
        verdict.struct_size = sizeof verdict;
        (void)!bh_event_verdict(event, &verdict);
        bench_die("an event is not READY: %s: %s", bh_status_name(status), verdict.message);
    }
    bh_event_release(event);
}

static uint32_t read_counter(struct bulkhead_side *side) {
    uint32_t count;
    bh_detail detail;
    bench_must(bh_buffer_read(side->counter, 0, &count, sizeof count, TIMEOUT_NS, &detail),
               "bh_buffer_read", &detail);
    return count;
}

/* Reading the counter waits for the kernel; the other kernel's end is waited for. */
static void round_trip(void *self, enum bench_kernel kernel, uint64_t *samples, size_t count) {
    struct bulkhead_side *side = self;
    const bh_binding binding = bh_bind_read_write(0, side->counter);
    const bool counts = kernel == BENCH_COUNT;
    uint32_t counter = counts ? read_counter(side) : 0;
    bh_detail detail;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = bench_now_ns();
        bh_event *event = NULL;
        bench_must(bh_launch(side->stream, side->kernels[kernel], ONE_GROUP, &binding, counts, NULL,
                             0, counts ? NULL : &event, &detail),
                   "bh_launch", &detail);
        if (!counts) {
            finish(event);
        } else if (read_counter(side) != ++counter) {
            bench_die("bulkhead, one dispatch: the counter is wrong, must be %u", counter);
        }
        samples[i] = bench_now_ns() - start;
    }
}

static uint64_t commands(void *self, enum bench_kernel kernel, size_t count, bool recorded_before) {
    (void)recorded_before; /* a submission is copied when it is made: there is no such difference */
    struct bulkhead_side *side = self;
    const bh_binding binding = bh_bind_read_write(0, side->counter);
    if (count > side->batch_count) {
        bench_die("a batch of %zu, made for %zu", count, side->batch_count);
    }
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = side->batch, .command_count = (uint32_t)count};
    bh_detail detail;
    uint64_t start = bench_now_ns();
    /* What recording is to the other side: a host writes its list each time. */
    for (size_t i = 0; i < count; i++) {
        side->batch[i] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                      .dispatch = {.kernel = side->kernels[kernel],
                                                   .groups = {1, 1, 1},
                                                   .bindings = &binding,
                                                   .binding_count = kernel == BENCH_COUNT ? 1 : 0}};
    }
    bh_event *event;
    bench_must(bh_submit(side->stream, &info, &event, &detail), "bh_submit", &detail);
    finish(event);
    return bench_now_ns() - start;
}

static uint64_t submissions(void *self, enum bench_kernel kernel, size_t count) {
    struct bulkhead_side *side = self;
    const bh_binding binding = bh_bind_read_write(0, side->counter);
    uint32_t binding_count = kernel == BENCH_COUNT ? 1 : 0;
    bh_detail detail;
    bh_event *event = NULL;
    uint64_t start = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        bench_must(bh_launch(side->stream, side->kernels[kernel], ONE_GROUP, &binding,
                             binding_count, NULL, 0, i + 1 == count ? &event : NULL, &detail),
                   "bh_launch", &detail);
    }
    finish(event);
    return bench_now_ns() - start;
}

static uint32_t take_count(void *self) {
    struct bulkhead_side *side = self;
    const uint32_t zero = 0;
    bh_detail detail;
    const uint32_t count = read_counter(side);
    bench_must(bh_buffer_write(side->counter, 0, &zero, sizeof zero, TIMEOUT_NS, &detail),
               "bh_buffer_write", &detail);
    return count;
}

static bh_buffer *make_buffer(struct bulkhead_side *side, size_t bytes) {
    bh_buffer *buffer;
    bh_detail detail;
    bench_must(bh_buffer_create(side->context, bytes, NULL, &buffer, &detail), "bh_buffer_create",
               &detail);
    return buffer;
}

/* In the memory of a GPU that has its own, else in the host's. */
static bh_buffer *make_near(struct bulkhead_side *side, size_t bytes) {
    bh_buffer_options options = {.struct_size = sizeof options};
    bh_buffer *buffer;
    bh_detail detail;
    options.stream = side->stream;
    options.memory = BH_MEMORY_AUTO;
    bench_must(bh_buffer_create(side->context, bytes, &options, &buffer, &detail),
               "bh_buffer_create", &detail);
    return buffer;
}

static void *map(bh_buffer *buffer, bh_map_intent intent) {
    void *pointer;
    bh_detail detail;
    bench_must(bh_buffer_map(buffer, intent, TIMEOUT_NS, &pointer, &detail), "bh_buffer_map",
               &detail);
    return pointer;
}

static void fill(bh_buffer *buffer, const float *from, size_t bytes) {
    bh_detail detail;
    if (bh_buffer_memory(buffer) == BH_MEMORY_HOST) {
        memcpy(map(buffer, BH_MAP_DISCARD), from, bytes);
    } else {
        bench_must(bh_buffer_write(buffer, 0, from, bytes, TIMEOUT_NS, &detail), "bh_buffer_write",
                   &detail);
    }
}

/* Waits for the kernel. */
static void take(bh_buffer *buffer, float *to, size_t bytes) {
    bh_detail detail;
    if (bh_buffer_memory(buffer) == BH_MEMORY_HOST) {
        memcpy(to, map(buffer, BH_MAP_READ), bytes);
    } else {
        bench_must(bh_buffer_read(buffer, 0, to, bytes, TIMEOUT_NS, &detail), "bh_buffer_read",
                   &detail);
    }
}

static void run_saxpy(struct bulkhead_side *side, const struct bench_saxpy *work, bh_buffer *x,
                      bh_buffer *y) {
    size_t bytes = work->count * sizeof(float);
    fill(x, work->x, bytes);
    fill(y, work->y, bytes);
    const struct bench_saxpy_push push = {.a = work->a, .count = (uint32_t)(work->count / 4)};
    const bh_binding bindings[] = {
        bh_bind_read(0, x),
        bh_bind_read_write(1, y),
    };
    bh_detail detail;
    bh_event *event;
    bench_must(
        bh_launch(side->stream, side->kernels[BENCH_SAXPY],
                  (uint32_t[]){(push.count + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL, 1, 1},
                  bindings, 2, &push, sizeof push, &event, &detail),
        "bh_launch", &detail);
    finish(event);
    take(y, work->out, bytes);
}

static uint64_t saxpy(void *self, const struct bench_saxpy *work, bool cold) {
    struct bulkhead_side *side = self;
    size_t bytes = work->count * sizeof(float);
    if (!cold && !side->x) {
        side->x = make_near(side, bytes);
        side->y = make_near(side, bytes);
    }
    uint64_t start = bench_now_ns();
    if (cold) {
        bh_buffer *x = make_buffer(side, bytes), *y = make_buffer(side, bytes);
        run_saxpy(side, work, x, y);
        bh_buffer_release(x);
        bh_buffer_release(y);
    } else {
        run_saxpy(side, work, side->x, side->y);
    }
    return bench_now_ns() - start;
}

static void destroy(void *self) {
    struct bulkhead_side *side = self;
    bh_buffer_release(side->counter);
    bh_buffer_release(side->x);
    bh_buffer_release(side->y);
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        bh_kernel_release(side->kernels[i]);
    }
    bh_stream_release(side->stream);
    bh_context_destroy(side->context);
    free(side->batch);
    free(side);
}

int bench_bulkhead_worker_pid(const struct bench_side *side) {
    return bh_stream_worker_pid(((const struct bulkhead_side *)side->self)->stream);
}

static bh_context *make_context(const struct bench_options *options) {
    bh_context_options context_options = {.struct_size = sizeof context_options};
    context_options.worker_path = options->worker;
    bh_context *context;
    bh_detail detail;
    bench_must(bh_context_create(&context_options, &context, &detail), "bh_context_create",
               &detail);
    return context;
}

void bench_bulkhead_choose(struct bench_options *options, struct bench_machine *machine) {
    bh_context *context = make_context(options);
    bh_device_info *devices = calloc(64, sizeof *devices);
    size_t count = 0;
    bh_detail detail;
    if (!devices) {
        bench_die("out of memory");
    }
    devices->struct_size = sizeof *devices;
    bench_must(bh_devices(context, devices, 64, &count, &detail), "bh_devices", &detail);
    size_t chosen = 0;
    while (options->device && chosen < count && chosen < 64 &&
           strncmp(devices[chosen].selector, options->device, strlen(options->device)) != 0) {
        chosen++;
    }
    if (chosen >= count || chosen >= 64) {
        bench_die("no device matches %s; bulkhead devices lists them",
                  options->device ? options->device : "the default");
    }
    memcpy(options->uuid, devices[chosen].uuid, sizeof options->uuid);
    options->processor = devices[chosen].device_type == 4; /* VK_PHYSICAL_DEVICE_TYPE_CPU */
    memcpy(machine->device, devices[chosen].name, sizeof machine->device);
    memcpy(machine->driver, devices[chosen].driver, sizeof machine->driver);
    free(devices);
    bh_context_destroy(context);
}

void bench_bulkhead_side(const struct bench_options *options, struct bench_side *out) {
    struct bulkhead_side *side = calloc(1, sizeof *side);
    bh_detail detail;
    if (!side || !(side->batch = calloc(options->batch, sizeof *side->batch))) {
        bench_die("out of memory");
    }
    side->batch_count = options->batch;
    side->context = make_context(options);
    bh_stream_options stream_options = {.struct_size = sizeof stream_options};
    stream_options.name = "bench";
    stream_options.device = options->device;
    stream_options.deadline_ns = TIMEOUT_NS;
    bench_must(bh_stream_create(side->context, &stream_options, &side->stream, &detail),
               "bh_stream_create", &detail);
    bench_must(bh_stream_wait_ready(side->stream, TIMEOUT_NS, &detail), "bh_stream_wait_ready",
               &detail);
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        bh_kernel_options kernel_options = {.struct_size = sizeof kernel_options};
        kernel_options.name = BENCH_CODE[i].name;
        bench_must(bh_kernel_create_spirv(side->context, BENCH_CODE[i].words, BENCH_CODE[i].bytes,
                                          &kernel_options, &side->kernels[i], &detail),
                   "bh_kernel_create_spirv", &detail);
    }
    side->counter = make_buffer(side, sizeof(uint32_t));
    *out = (struct bench_side){
        .name = "bulkhead",
        .round_trip = round_trip,
        .commands = commands,
        .submissions = submissions,
        .take_count = take_count,
        .saxpy = saxpy,
        .destroy = destroy,
        .self = side,
    };
}
