/* The library's side: the same work through libbulkhead. */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <stdlib.h>
#include <string.h>

struct bulkhead_side {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernels[BENCH_KERNELS];
    bh_buffer *counter, *x, *y;
    bh_command *batch; /* room for a command list */
    size_t batch_count;
};

static const uint32_t ONE_GROUP[3] = {1, 1, 1};

static uint32_t read_counter(struct bulkhead_side *side) {
    uint32_t count;
    BENCH_MUST(
        bh_buffer_read(side->counter, 0, &count, sizeof count, BENCH_TIMEOUT_NS, &bench_why));
    return count;
}

/* Reading the counter waits for the kernel; the other kernel's end is waited for. */
static void round_trip(void *self, enum bench_kernel kernel, uint64_t *samples, size_t count) {
    struct bulkhead_side *side = self;
    const bh_binding binding = bh_bind_read_write(0, side->counter);
    const bool counts = kernel == BENCH_COUNT;
    uint32_t counter = counts ? read_counter(side) : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = bench_now_ns();
        bh_event *event = NULL;
        BENCH_MUST(bh_launch(side->stream, side->kernels[kernel], ONE_GROUP, &binding, counts, NULL,
                             0, counts ? NULL : &event, &bench_why));
        if (!counts) {
            bench_finish(event);
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
    uint64_t start = bench_now_ns();
    /* What recording is to the other side: a host writes its list each time. */
    for (size_t i = 0; i < count; i++) {
        side->batch[i] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                      .dispatch = {.kernel = side->kernels[kernel],
                                                   .groups = {1, 1, 1},
                                                   .bindings = &binding,
                                                   .binding_count = kernel == BENCH_COUNT ? 1 : 0}};
    }
    bench_finish(bench_submit(side->stream, &info));
    return bench_now_ns() - start;
}

static uint64_t submissions(void *self, enum bench_kernel kernel, size_t count) {
    struct bulkhead_side *side = self;
    const bh_binding binding = bh_bind_read_write(0, side->counter);
    uint32_t binding_count = kernel == BENCH_COUNT ? 1 : 0;
    bh_event *event = NULL;
    uint64_t start = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        BENCH_MUST(bh_launch(side->stream, side->kernels[kernel], ONE_GROUP, &binding,
                             binding_count, NULL, 0, i + 1 == count ? &event : NULL, &bench_why));
    }
    bench_finish(event);
    return bench_now_ns() - start;
}

static uint32_t take_count(void *self) {
    struct bulkhead_side *side = self;
    const uint32_t zero = 0;
    const uint32_t count = read_counter(side);
    BENCH_MUST(bh_buffer_write(side->counter, 0, &zero, sizeof zero, BENCH_TIMEOUT_NS, &bench_why));
    return count;
}

static bh_buffer *make_buffer(struct bulkhead_side *side, size_t bytes) {
    return bench_buffer(side->context, NULL, BH_MEMORY_HOST, bytes);
}

/* In the memory of a GPU that has its own, else in the host's. */
static bh_buffer *make_near(struct bulkhead_side *side, size_t bytes) {
    return bench_buffer(side->context, side->stream, BH_MEMORY_AUTO, bytes);
}

static void fill(bh_buffer *buffer, const float *from, size_t bytes) {
    if (bh_buffer_memory(buffer) == BH_MEMORY_HOST) {
        memcpy(bench_map(buffer, BH_MAP_DISCARD), from, bytes);
    } else {
        BENCH_MUST(bh_buffer_write(buffer, 0, from, bytes, BENCH_TIMEOUT_NS, &bench_why));
    }
}

/* Waits for the kernel. */
static void take(bh_buffer *buffer, float *to, size_t bytes) {
    if (bh_buffer_memory(buffer) == BH_MEMORY_HOST) {
        memcpy(to, bench_map(buffer, BH_MAP_READ), bytes);
    } else {
        BENCH_MUST(bh_buffer_read(buffer, 0, to, bytes, BENCH_TIMEOUT_NS, &bench_why));
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
    const uint32_t groups[3] = {(push.count + BENCH_SAXPY_LOCAL - 1) / BENCH_SAXPY_LOCAL, 1, 1};
    bench_finish(bench_launch(side->stream, side->kernels[BENCH_SAXPY], groups, bindings, 2, &push,
                              sizeof push));
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
    return bench_context(BENCH_WITH(bh_context_options, .worker_path = options->worker));
}

void bench_bulkhead_choose(struct bench_options *options, struct bench_machine *machine) {
    bh_context *context = make_context(options);
    bh_device_info *devices = bench_allocate(64, sizeof *devices);
    size_t count = 0;
    devices->struct_size = sizeof *devices;
    BENCH_MUST(bh_devices(context, devices, 64, &count, &bench_why));
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
    struct bulkhead_side *side = bench_allocate(1, sizeof *side);
    side->batch = bench_allocate(options->batch, sizeof *side->batch);
    side->batch_count = options->batch;
    side->context = make_context(options);
    side->stream = bench_stream(side->context, BENCH_WITH(bh_stream_options, .name = "bench",
                                                          .device = options->device,
                                                          .deadline_ns = BENCH_TIMEOUT_NS));
    bench_ready(side->stream);
    for (size_t i = 0; i < BENCH_KERNELS; i++) {
        side->kernels[i] = bench_kernel(side->context, BENCH_CODE[i].words, BENCH_CODE[i].bytes,
                                        BENCH_WITH(bh_kernel_options, .name = BENCH_CODE[i].name));
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
