/* The Nth call of the driver, allocation, mapping or message of a worker fails, for N = 1, 2, … until
 * none does: the event says so, or all goes well; the stream serves on, with the same worker or
 * another. The supervisor and its other streams do not notice. */
#include "plan.h"

#include <stdio.h>

struct scene {
    bh_context *context;
    bh_stream *stream, *neighbour;
};

static char what[256];

/* Everything new: kernels to compile, buffers to import, dispatches, copies, fills. */
static bh_verdict job(struct scene *scene) {
    bh_kernel *square = fx_kernel(scene->context, "square");
    bh_kernel *empty = fx_kernel(scene->context, "empty");
    bh_buffer *x = fx_words(scene->context, 1024, 0), *y = fx_words(scene->context, 1024, 0);
    const bh_binding bindings[] = {
        bh_bind_read(0, x),
        bh_bind_write(1, y),
    };
    const bh_command commands[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = x, .size = 4096, .value = 0x40000000u}},
        {.type = BH_COMMAND_DISPATCH,
         .dispatch =
             {.kernel = square, .groups = {16, 1, 1}, .bindings = bindings, .binding_count = 2}},
        fx_dispatch(empty, NULL, 0),
        {.type = BH_COMMAND_COPY, .copy = {.src = y, .dst = x, .size = 4096}},
    };
    bh_event *event = fx_commands(scene->stream, commands, 4);
    bh_verdict verdict = fx_verdict(event);
    void *pointer;
    bh_status status = bh_buffer_map(y, BH_MAP_READ, FX_SECONDS, &pointer, NULL);
    if (status != verdict.status) {
        BHT_FAIL("%s: the event is %s, its buffer %s", what, bh_status_name(verdict.status),
                 bh_status_name(status));
    }
    /* E3: success is success. */
    for (int i = 0; status == BH_OK && i < 1024; i++) {
        BHT_TRUE(((float *)pointer)[i] == 4.0f);
    }
    bht_end(event, what);
    bh_kernel_release(square);
    bh_kernel_release(empty);
    bh_buffer_release(x);
    bh_buffer_release(y);
    return verdict;
}

struct sweep {
    const char *point, *action;
    bool starting;         /* a new stream, and so a new worker, for each N */
    unsigned at_least;     /* how many calls there are */
    unsigned dense, part;  /* bht_next() */
    bh_status verdicts[6]; /* allowed besides BH_OK; on CUDA also */
    bh_status on_cuda;
};

/* Calls of the driver are another point there. */
static const char *point_of(const struct sweep *sweep) {
    static const char *const points[][2] = {{"vk", "cu"}, {"start_vk", "start_cu"}};
    for (size_t i = 0; fx_on_cuda() && i < BHT_COUNT(points); i++) {
        if (strcmp(points[i][0], sweep->point) == 0) {
            return points[i][1];
        }
    }
    return sweep->point;
}

static bool allowed(const struct sweep *sweep, bh_status status) {
    bool found = status == BH_OK;
    for (size_t i = 0; i < BHT_COUNT(sweep->verdicts); i++) {
        found = found || (sweep->verdicts[i] != BH_OK && sweep->verdicts[i] == status);
    }
    return found || (fx_on_cuda() && sweep->on_cuda == status);
}

static void run(const struct sweep *sweep) {
    bh_context_options options = fx_options();
    options.start_timeout_ns =
        3 * BHT_SECOND_MS * FX_MS;  /* a driver may stand still for want of it */
    options.quarantine_ns = BH_OFF; /* it is not the kernels' doing */
    struct scene scene = {.context = fx_context_with(options, bht_plan_open())};
    scene.neighbour = fx_stream(scene.context, "neighbour", FX_SECONDS);
    fx_expect_healthy(scene.context, scene.neighbour);
    scene.stream = fx_stream(scene.context, "one", 3 * BHT_SECOND_MS * FX_MS);
    if (!sweep->starting) {
        fx_ready(scene.stream);
    }
    const char *point = point_of(sweep);
    unsigned fired = 0, n = 1;
    bh_status last = BH_OK;
    for (;; n = bht_next(n, sweep->dense, sweep->part)) {
        snprintf(what, sizeof what, "%s %u: %s", point, n, sweep->action);
        if (sweep->starting) {
            bh_stream_release(scene.stream);
            bht_plan_arm(point, sweep->action, n);
            scene.stream = fx_stream(scene.context, "one", 3 * BHT_SECOND_MS * FX_MS);
        } else {
            bht_plan_arm(point, sweep->action, n);
        }
        bh_verdict verdict = job(&scene);
        bool failed = bht_plan_disarm();
        if (!allowed(sweep, verdict.status) || (!failed && verdict.status != BH_OK)) {
            BHT_FAIL("%s (%s): %s: %s", what, failed ? "fired" : "not fired",
                     bh_status_name(verdict.status), verdict.message);
        }
        BHT_TRUE(verdict.status == BH_OK || verdict.message[0]);
        if (verdict.status != BH_OK) {
            last = verdict.status;
        }
        fx_expect_healthy(scene.context, scene.stream);
        if (!failed) {
            break;
        }
        fired++;
    }
    if (fired < sweep->at_least) {
        BHT_FAIL("%s: only %u calls fail, at least %u were there once", point, fired,
                 sweep->at_least);
    }
    /* A loop whose faults nobody feels would prove little; starting is tried again unseen. */
    if (!sweep->starting) {
        BHT_NE(last, BH_OK);
    }
    fx_expect_healthy(scene.context, scene.neighbour);
}

#define SWEEP(name, seconds, ...)                                                                  \
    TEST_WITH(name, seconds, 0) {                                                                  \
        static const struct sweep it = {__VA_ARGS__};                                              \
        run(&it);                                                                                  \
    }

/* What fails for want of memory says that, and not that the kernel is bad. */
SWEEP(driver_out_of_host_memory, 100, "vk", "oom_host", false, 15, 60, 10,
      {BH_OUT_OF_HOST_MEMORY, BH_DEVICE_LOST}, BH_CUDA)
SWEEP(driver_out_of_device_memory, 100, "vk", "oom_device", false, 15, 60, 10,
      {BH_OUT_OF_DEVICE_MEMORY, BH_DEVICE_LOST}, BH_OK)
SWEEP(driver_device_lost, 100, "vk", "lost", false, 15, 60, 10, {BH_DEVICE_LOST}, BH_DEVICE_FAULT)
SWEEP(driver_while_starting, 100, "start_vk", "oom_host", true, 10, 100, 1, {BH_OK}, BH_OK)
SWEEP(driver_lost_while_starting, 100, "start_vk", "lost", true, 5, 100, 1, {BH_OK}, BH_OK)
#if !BHT_ASAN /* it brings its own allocator */
/* A compiler may crash of it. */
SWEEP(allocations, 2000, "alloc", "fail", false, 20, 20, 4,
      {BH_OUT_OF_HOST_MEMORY, BH_OUT_OF_DEVICE_MEMORY, BH_DEADLINE, BH_COMPILE_FAILED}, BH_OK)
SWEEP(allocations_while_starting, 2000, "start_alloc", "fail", true, 8, 4, 1, {BH_OK}, BH_OK)
SWEEP(mappings, 100, "map", "fail", false, 1, 8, 4, {BH_OUT_OF_HOST_MEMORY, BH_COMPILE_FAILED},
      BH_OUT_OF_DEVICE_MEMORY)
SWEEP(mappings_while_starting, 100, "start_map", "fail", true, 3, 4, 2, {BH_OK}, BH_OK)
#endif
SWEEP(messages, 100, "send", "fail", false, 1, 8, 4, {BH_WORKER_EXIT}, BH_OK)
SWEEP(messages_while_starting, 100, "start_send", "fail", true, 1, 8, 4, {BH_OK}, BH_OK)
