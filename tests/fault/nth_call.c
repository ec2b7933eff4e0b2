/* Each public entry point, with the Nth allocation, mapping, descriptor or message that the calling
 * thread makes in it failing, for N = 1, 2, … until none fails: the call answers with a typed
 * status and a detail, or what it submitted ends with a typed verdict, or all goes well in another
 * way. Then the same call succeeds, on the same objects. */
#include "nth_call.h"
#include "redirect.h"
#include "scene.h"

#include <stdio.h>

static bh_status context_create(struct scene *scene, bh_detail *detail) {
    (void)scene;
    bh_context_options options = fx_options();
    options.worker_path = BHT_WORKER;
    bh_context *context;
    bh_status status = bh_context_create(&options, &context, detail);
    bh_context_destroy(context);
    return status;
}

static bh_status stream_create(struct scene *scene, bh_detail *detail) {
    bh_stream *stream;
    bh_status status = bh_stream_create(scene->context, NULL, &stream, detail);
    bh_stream_release(stream);
    return status;
}

static bh_status buffer_create(struct scene *scene, bh_detail *detail) {
    bh_buffer *buffer;
    bh_status status = bh_buffer_create(scene->context, 10000, NULL, &buffer, detail);
    bh_buffer_release(buffer);
    return status;
}

static bh_status large_buffer_create(struct scene *scene, bh_detail *detail) {
    bh_buffer *buffer;
    bh_status status = bh_buffer_create(scene->context, 33ull << 20, NULL, &buffer, detail);
    bh_buffer_release(buffer);
    return status;
}

static bh_status buffer_wrap(struct scene *scene, bh_detail *detail) {
    /* In parentheses, so that these do not fail. */
    int fd = (memfd_create)("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_GE(fd, 0);
    BHT_EQ((ftruncate)(fd, 10000), 0);
    bh_buffer *buffer;
    bh_status status = fx_wrap(scene->context, fd, 10000, &buffer, detail);
    BHT_EQ(!buffer, status != BH_OK);
    bh_buffer_release(buffer);
    close(fd);
    return status;
}

static bh_status buffer_describe(struct scene *scene, bh_detail *detail) {
    bh_description description = {.struct_size = sizeof description};
    description.kind = BH_NUMBER_UINT;
    description.bits = 32;
    return bh_buffer_set_description(scene->buffer, &description, detail);
}

/* Buffers that a worker first reads and then writes: each is introduced twice. */
static bh_status read_then_write(struct scene *scene, bh_detail *detail) {
    enum { PAIRS = 8 };
    bh_buffer *buffers[2 * PAIRS] = {NULL};
    bh_event *events[2] = {NULL};
    bh_status status = BH_OK;
    for (int i = 0; i < 2 * PAIRS && status == BH_OK; i++) {
        status = bh_buffer_create(scene->context, 4096, NULL, &buffers[i], detail);
    }
    for (int turn = 0; turn < 2 && status == BH_OK; turn++) {
        bh_command commands[PAIRS];
        for (int i = 0; i < PAIRS; i++) {
            commands[i] = (bh_command){.type = BH_COMMAND_COPY,
                                       .copy = {.src = buffers[2 * i + turn],
                                                .dst = buffers[2 * i + 1 - turn],
                                                .size = 4096}};
        }
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = commands, .command_count = PAIRS};
        status = bh_submit(scene->stream, &info, &events[turn], detail);
    }
    for (int turn = 0; turn < 2; turn++) {
        bh_status end = bht_end(events[turn], bht_where());
        if (status == BH_OK && end != BH_OK) {
            status = end;
            *detail = (bh_detail){.status = end, .message = "the verdict"};
        }
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        bh_buffer_release(buffers[i]);
    }
    return status;
}

/* Nothing is kept: memory must be fresh. */
static void empty_pool(struct scene *scene) {
    BHT_EQ(bh_context_trim(scene->context, 0, NULL), BH_OK);
}

/* Something is: all but the buffer itself is there. */
static void fill_pool(struct scene *scene) {
    bh_buffer_release(fx_buffer(scene->context, 10000));
}

/* Makes a buffer for a stream, has the worker fill it, and drops it. */
static bh_status buffer_for_a_stream(struct scene *scene, bh_detail *detail) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = scene->stream;
    options.flags = BH_BUFFER_UNINITIALIZED;
    bh_buffer *buffer;
    bh_event *event = NULL;
    bh_status status = bh_buffer_create(scene->context, 10000, &options, &buffer, detail);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = 10000, .value = 0x11111111}};
    const bh_submit_info info = {.struct_size = sizeof info, .commands = &fill, .command_count = 1};
    THEN(bh_submit(scene->stream, &info, &event, detail));
    if (status == BH_OK) {
        bh_status end = bht_end(event, bht_where());
        char bytes[10000];
        if (end == BH_OK) {
            status = bh_buffer_read(buffer, 0, bytes, sizeof bytes, FX_SECONDS, detail);
        }
        for (size_t i = 0; end == BH_OK && status == BH_OK && i < sizeof bytes; i++) {
            BHT_EQ(bytes[i], 0x11);
        }
    }
    bh_buffer_release(buffer);
    return status;
}

static bh_status pooled_buffer(struct scene *scene, bh_detail *detail) {
    return buffer_create(scene, detail);
}

static bh_status trim(struct scene *scene, bh_detail *detail) {
    return bh_context_trim(scene->context, 0, detail);
}

static bh_status buffer_use(struct scene *scene, bh_detail *detail) {
    void *pointer;
    char bytes[64] = {0};
    bh_status status =
        bh_buffer_map(scene->buffer, BH_MAP_READ_WRITE, FX_SECONDS, &pointer, detail);
    THEN(bh_buffer_write(scene->buffer, 8, bytes, sizeof bytes, FX_SECONDS, detail));
    THEN(bh_buffer_read(scene->buffer, 8, bytes, sizeof bytes, FX_SECONDS, detail));
    return status;
}

enum { BUFFERS = 20, WAITS = 6 };

/* Many new buffers, kernels, commands; waits for events that are pending on another stream. */
static bh_status submit_many(struct scene *scene, bh_detail *detail) {
    bh_kernel *square = NULL, *empty = NULL;
    bh_buffer *buffers[BUFFERS];
    bh_event *waits[WAITS] = {NULL}, *event = NULL;
    bh_command commands[BUFFERS + 2];
    bh_status status = bht_kernel(scene->context, "square", &square, detail);
    THEN(bht_kernel(scene->context, "empty", &empty, detail));
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = NULL;
        THEN(bh_buffer_create(scene->context, 4096, NULL, &buffers[i], detail));
    }
    for (int i = 0; i < WAITS && status == BH_OK; i++) {
        commands[0] = (bh_command){.type = BH_COMMAND_FILL,
                                   .fill = {.dst = buffers[i], .size = 4096, .value = (uint32_t)i}};
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = commands, .command_count = 1};
        status = bh_submit(scene->other, &info, &waits[i], detail);
    }
    const bh_binding bindings[] = {
        bh_bind_read(0, buffers[0]),
        bh_bind_write(1, buffers[1]),
    };
    for (int i = 0; i < BUFFERS; i++) {
        commands[i] = (bh_command){
            .type = BH_COMMAND_COPY,
            .copy = {.src = buffers[i], .dst = buffers[(i + 7) % BUFFERS], .size = 4096}};
    }
    commands[BUFFERS] = (bh_command){
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = square, .groups = {1, 1, 1}, .bindings = bindings, .binding_count = 2}};
    commands[BUFFERS + 1] = (bh_command){.type = BH_COMMAND_DISPATCH,
                                         .dispatch = {.kernel = empty, .groups = {1, 1, 1}}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = BUFFERS + 2,
                                 .waits = waits,
                                 .wait_count = WAITS};
    THEN(bh_submit(scene->stream, &info, &event, detail));
    bool queued = event;
    bh_status end = bht_end(event, bht_where());
    for (int i = 0; i < WAITS; i++) {
        bh_status wait_end = bht_end(waits[i], bht_where());
        /* What failed is itself what says so. */
        if (queued && wait_end != BH_OK) {
            BHT_EQ(end, wait_end);
        }
    }
    if (status == BH_OK && end != BH_OK) {
        status = end;
        *detail = (bh_detail){.status = end, .message = "the verdict"};
    }
    for (int i = 0; i < BUFFERS; i++) {
        bh_buffer_release(buffers[i]);
    }
    bh_kernel_release(square);
    bh_kernel_release(empty);
    return status;
}

static bh_status waits(struct scene *scene, bh_detail *detail) {
    bh_buffer *buffer = NULL;
    bh_event *events[3] = {NULL};
    bh_status status = bh_buffer_create(scene->context, 4096, NULL, &buffer, detail);
    for (int i = 0; i < 3 && status == BH_OK; i++) {
        const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4096}};
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = &fill, .command_count = 1};
        status = bh_submit(scene->stream, &info, &events[i], detail);
    }
    if (status == BH_OK) {
        size_t index;
        BHT_EQ(bh_event_wait_any(events, 3, FX_SECONDS, &index), BH_OK);
        for (int i = 0; i < 3; i++) {
            bh_status end = bh_event_wait(events[i], FX_SECONDS);
            bh_status again = bh_stream_synchronize(scene->stream, FX_SECONDS, detail);
            if (end != BH_OK) {
                BHT_NE(again, BH_OK); /* E2: it does not forget */
            }
            BHT_EQ(bh_stream_wait_ready(scene->stream, FX_SECONDS, NULL), BH_OK);
            THEN(again);
        }
    }
    for (int i = 0; i < 3; i++) {
        bht_end(events[i], bht_where());
    }
    BHT_EQ(bh_stream_reset(scene->stream, NULL), BH_OK);
    bh_buffer_release(buffer);
    return status;
}

/* E6: what could be added is given; a queue whose memory or descriptor is lacking says so. */
static bh_status queue(struct scene *scene, bh_detail *detail) {
    const bh_submit_info marker = {.struct_size = sizeof marker};
    bh_queue *ends = NULL;
    bh_event *event = NULL;
    bh_status status = bh_queue_create(&ends, detail);
    THEN(bh_submit(scene->stream, &marker, &event, detail));
    if (status == BH_OK && (status = bh_queue_add(ends, event, 5, detail)) == BH_OK) {
        bh_completion given;
        size_t count;
        BHT_EQ(bh_queue_take(ends, FX_SECONDS, &given, 1, &count), BH_OK);
        BHT_EQ(given.user_data, 5);
        bh_event_release(given.event);
    }
    bht_end(event, bht_where());
    bh_queue_destroy(ends);
    return status;
}

static void queue_behind_the_gate(struct scene *scene) {
    /* A new worker has empty books. */
    bh_stream_release(scene->stream);
    scene->stream = fx_stream(scene->context, "new", FX_SECONDS);
    fx_ready(scene->stream);
    *fx_pointer(scene->word) = 0;
    scene->running = fx_gate(scene->stream, scene->gate, scene->word);
    fx_await_gate(scene->word);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = scene->buffer, .size = bh_buffer_size(scene->buffer)}};
    const bh_submit_info info = {.struct_size = sizeof info, .commands = &fill, .command_count = 1};
    for (size_t i = 0; i < BHT_COUNT(scene->queued); i++) {
        BHT_EQ(bh_submit(scene->stream, &info, &scene->queued[i], NULL), BH_OK);
    }
}

/* Submissions that are in the lane behind another one. */
static bh_status cancel(struct scene *scene, bh_detail *detail) {
    (void)detail;
    bh_status status = BH_OK;
    for (size_t i = 0; i < BHT_COUNT(scene->queued) && status == BH_OK; i++) {
        status = bh_event_cancel(scene->queued[i]);
    }
    fx_open(scene->open);
    BHT_EQ(bht_end(scene->running, "the gate"), BH_OK); /* whoever stands behind it is cancelled */
    for (size_t i = 0; i < BHT_COUNT(scene->queued); i++) {
        /* Without memory it could not be taken out of the lane, and may have ended well first. */
        bh_status end = bht_end(scene->queued[i], bht_where());
        BHT_TRUE(end == BH_CANCELLED || (end == BH_OK && bht_fired()));
    }
    return status;
}

static void make_npy(struct scene *scene) {
    static const char bytes[] = "\x93NUMPY\x01\x00\x3a\x00"
                                "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }\n"
                                "array";
    if (scene->file) {
        return;
    }
    scene->file = memfd_create("array", MFD_CLOEXEC);
    BHT_GT(scene->file, 0);
    BHT_EQ(pwrite(scene->file, bytes, sizeof bytes - 1, 0), (ssize_t)sizeof bytes - 1);
}

/* The opener has died meanwhile: another one is started in the call. */
static void make_npy_and_kill_opener(struct scene *scene) {
    make_npy(scene);
    const pid_t opener = bht_descendant_called(getpid(), "bh-opener");
    if (opener > 0) {
        fx_kill(opener, SIGKILL);
        WAIT_UNTIL(strchr("XZ", bht_process_state(opener)), 20000);
    }
}

/* The header's submission, and the data's. */
static bh_status from_file(struct scene *scene, bh_detail *detail) {
    bh_file_source source = {.struct_size = sizeof source};
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    source.fd = scene->file;
    source.format = BH_FILE_NPY;
    source.header_timeout_ns = FX_SECONDS;
    bh_status status = fx_from_file(scene->context, &source, &buffer, detail);
    if (status != BH_OK) {
        BHT_TRUE(!buffer);
        return status;
    }
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    bh_status end = bht_end(event, bht_where());
    char bytes[5] = {0};
    status = bh_buffer_read(buffer, 0, bytes, 5, FX_SECONDS, detail);
    if (end == BH_OK && status == BH_OK) {
        BHT_MEM_EQ(bytes, "array", 5);
    } else {
        BHT_EQ(status, end);
    }
    bh_buffer_release(buffer);
    return status;
}

static bh_status devices(struct scene *scene, bh_detail *detail) {
    static bh_device_info info[4] = {{.struct_size = sizeof info[0]}};
    size_t count = 0;
    bh_status status = bh_devices(scene->context, info, 4, &count, detail);
    if (status == BH_OK) {
        BHT_GT(count, 0);
    }
    return status;
}

static struct scene make_scene(void) {
    struct scene scene = {.context = fx_context(NULL)};
    scene.stream = fx_stream(scene.context, "one", FX_SECONDS);
    scene.other = fx_stream(scene.context, "two", FX_SECONDS);
    fx_ready(scene.stream);
    fx_ready(scene.other);
    scene.buffer = fx_words(scene.context, 64, 0);
    scene.gate = fx_kernel(scene.context, "gate");
    scene.word = fx_words(scene.context, 64, 0);
    scene.open = fx_pointer(scene.word);
    return scene;
}

static void end_scene(struct scene *scene) {
    fx_expect_healthy(scene->context, scene->stream);
    fx_expect_healthy(scene->context, scene->other);
    bh_kernel_release(scene->gate);
    bh_buffer_release(scene->buffer);
    bh_buffer_release(scene->word);
    bh_stream_release(scene->stream);
    bh_stream_release(scene->other);
    if (scene->file) {
        close(scene->file);
    }
    bh_context_destroy(scene->context);
}

/* Returns how many different calls have failed. */
static unsigned sweep(struct scene *scene, const char *name, setting *before, entry *call,
                      struct bht_fault fault) {
    unsigned fired = 0;
    /* ThreadSanitizer looks for races, of which one failure has as many as the next. */
    const unsigned dense = fault.lasting ? 10
                           : BHT_TSAN    ? 25
                                         : 50,
                   part = fault.lasting || BHT_TSAN ? 5 : 10;
    for (fault.nth = bht_walk_first((unsigned)fault.kind + fault.lasting, dense, part);;
         fault.nth = bht_walk_next(fault.nth, dense, part)) {
        bh_detail detail = {0};
        BHT_LT(fault.nth, 5000);
        if (before) {
            before(scene);
        }
        bht_arm(fault);
        bh_status status = call(scene, &detail);
        if (!bht_disarm()) {
            if (status != BH_OK) {
                BHT_FAIL("%s without a fault: %s", name, detail.message);
            }
            return fired;
        }
        fired++;
        char what[256];
        snprintf(what, sizeof what, "%s, %s %u (%s)", name, bht_kind_name(fault.kind), fault.nth,
                 bht_where());
        bht_check_detail(status, &detail, what);
        if (before) {
            before(scene);
        }
        status = call(scene, &detail);
        if (status != BH_OK) {
            BHT_FAIL("%s: after the fault: %s: %s", what, bh_status_name(status), detail.message);
        }
    }
}

static void sweep_entry(const char *name, setting *before, entry *call,
                        const unsigned expected[BHT_KINDS]) {
    struct scene scene = make_scene();
    bh_detail detail = {0};
    /* What a library sets up at its first use has nothing to do with the loop. */
    if (before) {
        before(&scene);
    }
    BHT_EQ(call(&scene, &detail), BH_OK);
    for (int kind = 0; kind < BHT_KINDS; kind++) {
        for (int lasting = 0; lasting < 2; lasting++) {
            if (lasting && !expected[kind]) {
                continue;
            }
            unsigned fired = sweep(
                &scene, name, before, call,
                (struct bht_fault){.kind = kind, .side = BHT_THIS_THREAD, .lasting = lasting});
            /* A loop that meets nothing proves nothing. */
            if (fired < bht_walk_least(expected[kind])) {
                BHT_FAIL("%s: only %u calls of kind %s, at least %u were there once", name, fired,
                         bht_kind_name(kind), bht_walk_least(expected[kind]));
            }
        }
    }
    end_scene(&scene);
}

#define ENTRY_OF(name, call, before, ...)                                                          \
    TEST_WITH(nth_in_##name, 200, 0) {                                                             \
        const unsigned expected[BHT_KINDS] = {__VA_ARGS__};                                        \
        sweep_entry(#name, before, call, expected);                                                \
    }
#define ENTRY(name, ...)        ENTRY_OF(name, name, __VA_ARGS__)
#define ENTRY_KERNEL(name, ...) ENTRY_OF(name, nth_##name, __VA_ARGS__) /* of nth_kernels.c */

/*    entry            allocation, mapping, descriptor, process, send: how many at least */
ENTRY(context_create, NULL, 4, 2, 4, 1)
ENTRY(stream_create, NULL, 1)
ENTRY(buffer_wrap, NULL, 1, 3, 4)
ENTRY(buffer_describe, NULL, 1)
ENTRY(read_then_write, empty_pool, 20, 16, 12)
ENTRY(buffer_create, empty_pool, 2, 4, 1)
ENTRY(large_buffer_create, empty_pool, 0, 0, 2)
ENTRY(buffer_for_a_stream, empty_pool, 5, 4, 2)
ENTRY(pooled_buffer, fill_pool, 1, 1)
ENTRY(trim, fill_pool, 0)
ENTRY(buffer_use, NULL, 0)
ENTRY_KERNEL(kernel_create, NULL, 4)
ENTRY_KERNEL(large_kernel_create, NULL, 2, 3, 1)
ENTRY_KERNEL(prepare_refused, NULL, 9, 3, 1)
ENTRY_KERNEL(prepare, NULL, 4, 0, 1)
ENTRY_KERNEL(reflect, NULL, 4, 0, 1)
ENTRY_KERNEL(glsl, empty_pool, 10, 6, 2)
ENTRY_KERNEL(template_use, NULL, 10)
ENTRY_KERNEL(template_launch, empty_pool, 14, 6, 2)
ENTRY_KERNEL(inspect, NULL, 10, 6, 2)
ENTRY(submit_many, NULL, 20, 20, 12)
ENTRY(waits, NULL, 10, 4, 2)
ENTRY(queue, NULL, 4, 1, 1)
ENTRY(cancel, queue_behind_the_gate, 2)
ENTRY(from_file, make_npy_and_kill_opener, 9, 4, 9, 4, 2)
ENTRY(devices, NULL, 2)
