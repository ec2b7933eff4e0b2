/* Buffers of a CUDA device in the host's own CUDA (bulkhead/cuda.h), on the fake driver: there device
 * memory is at the same address for the device and for this process, so a test reads it by a pointer. */
#include "fixture.h"

#include "base/cuda.h"

#include <bulkhead/cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS    1024u
#define LARGE    (16u << 20)
#define OK(call) BHT_EQ(call, CUDA_SUCCESS)

static struct bhi_cuda_api cu;
static struct bhi_cuda_host_api host;

/* The host finds what is loaded already by its name. */
static bh_stream *start_with(const char *settings, const char *faults, bh_context **out_context) {
    char path[4096];
    int since;
    fx_cuda_install(settings);
    snprintf(path, sizeof path, "%s/fake_cuda.latches", getenv("LD_LIBRARY_PATH"));
    BHT_EQ(unlink(path), 0); /* the driver would map it for ever */
    snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("LD_LIBRARY_PATH"));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    BHT_TRUE(library);
    const bhi_cuda_entry entry = (bhi_cuda_entry)dlsym(library, "cuGetProcAddress_v2");
    BHT_TRUE(!bhi_cuda_find(&cu, entry, &since) && !bhi_cuda_find_host(&host, entry, &since));
    *out_context = fx_context(faults);
    return fx_stream_on(*out_context, "cuda");
}

static bh_stream *start(const char *settings, bh_context **out_context) {
    return start_with(settings, NULL, out_context);
}

static bh_buffer *device_words(bh_stream *stream, bh_context *context) {
    const bh_buffer_options options = {
        .struct_size = sizeof options, .stream = stream, .memory = BH_MEMORY_DEVICE};
    bh_buffer *buffer = NULL;
    BHT_EQ(bh_buffer_create(context, WORDS * 4, &options, &buffer, NULL), BH_OK);
    return buffer;
}

static bh_cuda_view *view_of(bh_buffer *buffer, bh_map_intent intent) {
    bh_cuda_view *view = NULL;
    bh_detail detail;
    if (bh_cuda_view_create(buffer, intent, FX_SECONDS, &view, &detail) != BH_OK) {
        BHT_FAIL("bh_cuda_view_create: %s", detail.message);
    }
    return view;
}

static uint32_t *words_of(const bh_cuda_view *view) {
    return (uint32_t *)(uintptr_t)bh_cuda_view_address(view);
}

static bool may_write(const void *at) {
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char access[5] = "";
        found = sscanf(line, "%lx-%lx %4s", &begin, &end, access) == 3 && begin <= (uintptr_t)at &&
                (uintptr_t)at < end;
        if (found) {
            fclose(maps);
            return access[1] == 'w';
        }
    }
    fclose(maps);
    BHT_FAIL("nothing is mapped at %p", at);
}

TEST(a_view_waits_for_the_content_and_is_for_reading) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_buffer *buffer = device_words(stream, context);
    (void)fx_fill(stream, buffer, 0xa1b2c3d4); /* not awaited */
    bh_cuda_view *view = view_of(buffer, BH_MAP_READ);
    for (uint32_t i = 0; i < WORDS; i++) {
        BHT_EQ(words_of(view)[i], 0xa1b2c3d4);
    }
    BHT_TRUE(!may_write(words_of(view)));
    int number = -1;
    BHT_EQ(bh_buffer_cuda_device(buffer, &number, NULL), BH_OK);
    BHT_EQ(number, 0);
    bh_cuda_view_release(view);
    bh_buffer_release(buffer);
}

TEST(what_the_host_writes_is_what_workers_read) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_buffer *buffer = device_words(stream, context), *copy = fx_words(context, WORDS, 0);
    bh_cuda_view *view = view_of(buffer, BH_MAP_READ_WRITE); /* no worker has made the memory yet */
    BHT_TRUE(may_write(words_of(view)));
    BHT_EQ(words_of(view)[WORDS - 1], 0);
    const uint64_t before = bh_buffer_version(buffer);
    words_of(view)[WORDS - 1] = 77;
    bh_cuda_view_release(view);
    BHT_GT(bh_buffer_version(buffer), before);
    fx_expect(fx_copy(stream, buffer, copy), BH_OK);
    BHT_EQ(fx_pointer(copy)[WORDS - 1], 77);
    bh_buffer_release(buffer);
}

/* Of a tenant that reads the buffer by a copy. */
TEST(copies_of_old_content_go_when_the_host_has_written) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_stream_options options = fx_stream_options();
    options.device = "cuda";
    options.tenant = "another";
    bh_stream *other = fx_stream_with(context, options);
    bh_buffer *buffer = device_words(stream, context), *out = fx_words(context, WORDS, 0);
    for (uint32_t round = 1; round <= 2; round++) {
        bh_cuda_view *view = view_of(buffer, BH_MAP_READ_WRITE);
        words_of(view)[0] = round;
        bh_cuda_view_release(view);
        fx_expect(fx_copy(other, buffer, out), BH_OK);
        BHT_EQ(fx_pointer(out)[0], round);
    }
    bh_buffer_release(buffer);
}

TEST(a_view_keeps_the_memory_through_everything) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_buffer *buffer = device_words(stream, context);
    const pid_t pid = fx_ready(stream);
    fx_expect(fx_fill(stream, buffer, 5), BH_OK);
    bh_cuda_view *view = view_of(buffer, BH_MAP_READ);
    BHT_EQ(kill(pid, SIGKILL), 0);
    (void)fx_ready_after(stream, pid);
    bh_buffer_release(buffer);
    /* Of the same size: a freed buffer's memory would be used again, and cleared. */
    bh_buffer *next = device_words(stream, context);
    fx_expect(fx_fill(stream, next, 9), BH_OK);
    BHT_EQ(words_of(view)[0], 5);
    bh_buffer_release(next);
    fx_release_all();
    BHT_EQ(words_of(view)[WORDS - 1], 5);
    bh_cuda_view_release(view);
}

TEST(a_release_waits_for_work_of_the_host) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    const bh_buffer_options options = {
        .struct_size = sizeof options, .stream = stream, .memory = BH_MEMORY_DEVICE};
    bh_buffer *buffer = NULL;
    BHT_EQ(bh_buffer_create(context, LARGE, &options, &buffer, NULL), BH_OK);
    bh_cuda_view *view = view_of(buffer, BH_MAP_READ_WRITE);
    CUcontext primary, other;
    OK(host.cuDevicePrimaryCtxRetain(&primary, 0));
    OK(host.cuCtxPushCurrent(primary));
    for (uint32_t i = 1; i <= 20; i++) { /* unmapped under one of them, it would be a fault */
        OK(cu.cuMemsetD32Async(bh_cuda_view_address(view), i, LARGE / 4, NULL));
    }
    OK(host.cuCtxPopCurrent(&other));
    OK(cu.cuCtxCreate(&other, 0, 0)); /* the thread's own stays current */
    bh_cuda_view_release(view);
    OK(host.cuCtxPushCurrent(primary));
    OK(cu.cuCtxSynchronize());
    OK(host.cuCtxPopCurrent(&primary));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy(other));
    OK(host.cuDevicePrimaryCtxRelease(0));
    uint32_t last;
    BHT_EQ(bh_buffer_read(buffer, LARGE - 4, &last, sizeof last, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(last, 20);
    bh_buffer_release(buffer);
}

TEST(memory_of_cuda_goes_into_buffers) {
    bh_context *context;
    bh_stream *stream = start("FAKE_CUDA_DEVICES=2\n", &context);
    bh_stream *second = fx_stream_on(context, "cuda:1");
    bh_buffer *from = device_words(stream, context), *to = device_words(stream, context),
              *words = fx_words(context, WORDS, 0), *far = device_words(second, context);
    fx_expect(fx_fill(stream, from, 3), BH_OK);
    bh_cuda_view *view = view_of(from, BH_MAP_READ);
    const uint64_t at = bh_cuda_view_address(view);
    bh_detail detail = {0};
    uint32_t found[2];
    BHT_EQ(bh_buffer_write_cuda(to, 4, at, 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_read(to, 0, found, sizeof found, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(found[0], 0);
    BHT_EQ(found[1], 3);
    BHT_EQ(bh_buffer_write_cuda(words, 0, at, WORDS * 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(fx_pointer(words)[WORDS - 1], 3);
    BHT_EQ(bh_buffer_write_cuda(far, 0, at, 4, FX_SECONDS, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "address is on CUDA's device 0, and the buffer on another GPU");
    BHT_EQ(bh_buffer_write_cuda(to, 0, (uintptr_t)&detail, 4, FX_SECONDS, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "address is no memory of a CUDA device");
    BHT_EQ(bh_buffer_write_cuda(to, 8, at, WORDS * 4, FX_SECONDS, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "past the end");
    bh_cuda_view_release(view);
    bh_buffer_release(from), bh_buffer_release(to), bh_buffer_release(far);
}

TEST(what_has_no_view) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_stream *vulkan = fx_stream_on(context, NULL);
    bh_buffer *words = fx_words(context, WORDS, 0), *cpu = device_words(vulkan, context),
              *buffer = device_words(stream, context);
    bh_cuda_view *view = (bh_cuda_view *)&view;
    bh_detail detail = {0};
    BHT_EQ(bh_cuda_view_create(words, BH_MAP_READ, FX_SECONDS, &view, &detail),
           BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_ON_CUDA);
    BHT_TRUE(!view);
    BHT_EQ(bh_cuda_view_create(cpu, BH_MAP_READ, FX_SECONDS, &view, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NOT_ON_CUDA);
    BHT_EQ(bh_cuda_view_create(buffer, BH_MAP_DISCARD, FX_SECONDS, &view, &detail),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "intent 2 is not a BH_MAP_READ or BH_MAP_READ_WRITE");
    bh_buffer_release(cpu), bh_buffer_release(buffer);
}

TEST(poisoned_content_has_no_view) {
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".entry null_read(.param .u64 y) { ret; }\n";
    const bh_kernel_options options = {.struct_size = sizeof options, .entry = "null_read"};
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_buffer *buffer = device_words(stream, context);
    bh_kernel *kernel = NULL;
    bh_cuda_view *view;
    BHT_EQ(bh_kernel_create_image(context, text, sizeof text - 1, &options, &kernel, NULL), BH_OK);
    const bh_binding binding = bh_bind_read_write(0, buffer);
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = kernel,
                                             .groups = {1, 1, 1},
                                             .block = {1, 1, 1},
                                             .bindings = &binding,
                                             .binding_count = 1}};
    fx_expect(fx_command(stream, command, NULL, 0), BH_DEVICE_FAULT);
    for (bh_map_intent intent = BH_MAP_READ; intent <= BH_MAP_READ_WRITE; intent += 2) {
        BHT_EQ(bh_cuda_view_create(buffer, intent, FX_SECONDS, &view, NULL), BH_DEVICE_FAULT);
    }
    fx_expect(fx_fill(stream, buffer, 4), BH_OK);
    view = view_of(buffer, BH_MAP_READ);
    BHT_EQ(words_of(view)[0], 4);
    bh_cuda_view_release(view);
    bh_kernel_release(kernel), bh_buffer_release(buffer);
}

/* The worker's own use of the buffer shows nothing of it. */
TEST(what_a_worker_hands_out_is_checked) {
    static const struct {
        const char *fault, *words;
    } rows[] = {
        {"1:lie_null:1=fail", "cuMemImportFromShareableHandle failed in this process: "
                              "CUDA_ERROR_INVALID_VALUE (1)"},
        {"1:lie_small:1=fail", "cuMemMap failed in this process: CUDA_ERROR_INVALID_VALUE (1)"},
        {"1:lie_far:1=fail", "the import failed in this process: a worker's memory is on device 1, "
                             "not on 0"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_context *context;
        bh_stream *stream = start_with("FAKE_CUDA_DEVICES=2\n", rows[i].fault, &context);
        const bh_buffer_options options = {
            .struct_size = sizeof options, .stream = stream, .memory = BH_MEMORY_DEVICE};
        bh_buffer *buffer = NULL;
        bh_cuda_view *view;
        bh_detail detail = {0};
        BHT_EQ(bh_buffer_create(context, 3 << 20, &options, &buffer, NULL), BH_OK);
        BHT_EQ(bh_cuda_view_create(buffer, BH_MAP_READ, FX_SECONDS, &view, &detail), BH_SYSTEM);
        BHT_EQ(detail.reason, BH_REASON_HOST_CUDA);
        BHT_STR_HAS(detail.message, rows[i].words);
        bh_buffer_release(buffer);
        fx_release_all();
    }
}

TEST(a_gpu_that_the_host_does_not_see) {
    bh_context *context;
    bh_stream *stream = start("FAKE_CUDA_DEVICES=2\n", &context);
    stream = fx_stream_on(context, "cuda:1");
    bh_buffer *buffer = device_words(stream, context);
    BHT_EQ(setenv("FAKE_CUDA_DEVICES", "1", 1), 0); /* as CUDA_VISIBLE_DEVICES does it */
    bh_cuda_view *view;
    bh_detail detail = {0};
    BHT_EQ(bh_cuda_view_create(buffer, BH_MAP_READ, FX_SECONDS, &view, &detail), BH_NO_DEVICE);
    BHT_EQ(detail.reason, BH_REASON_GPU_HIDDEN);
    BHT_STR_HAS(detail.message, "does not see the GPU Fake CUDA (CUDA)");
    BHT_EQ(unsetenv("FAKE_CUDA_DEVICES"), 0);
    bh_cuda_view_release(view_of(buffer, BH_MAP_READ));
    bh_buffer_release(buffer);
}

TEST(a_fork_after_cuda_began_is_named) {
    bh_context *context;
    bh_stream *stream = start("", &context);
    bh_buffer *buffer = device_words(stream, context);
    bh_cuda_view *view = view_of(buffer, BH_MAP_READ);
    const pid_t child = fork();
    if (child == 0) {
        bh_cuda_view *again;
        const bool forked = bh_cuda_view_create(buffer, BH_MAP_READ, 0, &again, NULL) == BH_FORKED;
        bh_cuda_view_release(view);
        _exit(forked ? 0 : 1);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    BHT_EQ(words_of(view)[0], 0);
    bh_cuda_view_release(view);
    bh_buffer_release(buffer);
}
