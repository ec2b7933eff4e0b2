/* bench-cuda: what isolation costs CUDA kernels, and what it saves. One run measures in-process CUDA and
 * the library on the same kernels; needs an NVIDIA GPU with libcuda.so.1. */
#include "common.h"
#include "worker/cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BYTES   (64u << 20)
#define FLOATS  (BYTES / 4)
#define BLOCK   256u
#define SAMPLES 2000u
#define LOADS   1000u
#define ROUNDS  21u

static const char usage[] =
    "Usage: bench-cuda [--device cuda:N] [--quick]\n"
    "Prints a row for each measurement: in-process, the library, their ratio and the goal.\n"
    "  --device SELECTOR   which device the library uses; in-process it is the first. Default: "
    "cuda\n"
    "  --quick             fewer rounds\n";
static const char *selector = "cuda";
static bool quick;

static const char module_text[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry empty()\n{\nret;\n}\n"
    ".visible .entry endless(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %p;\n"
    "ld.param.u64 %a, [word];\nL: ld.volatile.u32 %v, [%a];\nsetp.ne.u32 %p, %v, 77;\n@%p bra "
    "L;\nret;\n}\n"
    ".visible .entry null_read(.param .u64 y)\n{\n.reg .u64 %a;\n.reg .u32 %v;\nmov.u64 %a, 0;\n"
    "ld.volatile.u32 %v, [%a];\nld.param.u64 %a, [y];\nst.u32 [%a], %v;\nret;\n}\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 count)\n{\n"
    ".reg .u64 %x, %y, %o;\n.reg .u32 %i, %j, %k, %n;\n.reg .f32 %f, %g, %h;\n.reg .pred %p;\n"
    "mov.u32 %i, %ctaid.x;\nmov.u32 %j, %ntid.x;\nmov.u32 %k, %tid.x;\nmad.lo.u32 %i, %i, %j, %k;\n"
    "ld.param.u32 %n, [count];\nsetp.ge.u32 %p, %i, %n;\n@%p ret;\n"
    "ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nld.param.f32 %f, [a];\n"
    "mul.wide.u32 %o, %i, 4;\nadd.u64 %x, %x, %o;\nadd.u64 %y, %y, %o;\n"
    "ld.f32 %g, [%x];\nld.f32 %h, [%y];\nfma.rn.f32 %h, %f, %g, %h;\nst.f32 [%y], %h;\nret;\n}\n";

struct push {
    float a;
    uint32_t count;
};

static void row(const char *what, double ours_us, double theirs_us, const char *goal) {
    if (theirs_us > 0) {
        printf("%-58s %12.1f %12.1f %7.3f  %s\n", what, theirs_us, ours_us, ours_us / theirs_us,
               goal);
    } else {
        printf("%-58s %12s %12.1f %7s  %s\n", what, "-", ours_us, "", goal);
    }
    fflush(stdout);
}

static double median_us(uint64_t *samples, size_t count) {
    return (double)bench_quantile(samples, count, 500) / 1e3;
}

/* -- in-process ------------------------------------------------------------------------------- */

static struct {
    struct bhi_cuda_api api;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction empty, saxpy;
    CUdeviceptr x, y;
    void *host; /* registered */
    CUevent events[2];
} in;

#define CU(call)                                                                                   \
    do {                                                                                           \
        const CUresult result_ = (call);                                                           \
        if (result_ != CUDA_SUCCESS) {                                                             \
            bench_die("%s: %d", #call, (int)result_);                                              \
        }                                                                                          \
    } while (0)

static CUdeviceptr allocate(size_t bytes) {
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    CU(in.api.cuMemCreate(&handle, bytes, &properties, 0));
    CU(in.api.cuMemAddressReserve(&address, bytes, 0, 0, 0));
    CU(in.api.cuMemMap(address, bytes, 0, handle, 0));
    CU(in.api.cuMemSetAccess(address, bytes, &access, 1));
    return address;
}

static void start_in_process(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int since;
    CUdevice device;
    bhi_cuda_entry entry = library ? (bhi_cuda_entry)dlsym(library, "cuGetProcAddress_v2") : NULL;
    const char *missing = entry ? bhi_cuda_find(&in.api, entry, &since) : "libcuda.so.1";
    if (missing) {
        bench_die("there is no %s", missing);
    }
    CU(in.api.cuInit(0));
    CU(in.api.cuDeviceGet(&device, 0));
    CU(in.api.cuCtxCreate(&in.context, CU_CTX_MAP_HOST, device));
    CU(in.api.cuStreamCreate(&in.stream, CU_STREAM_NON_BLOCKING));
    CU(in.api.cuModuleLoadDataEx(&in.module, module_text, 0, NULL, NULL));
    CU(in.api.cuModuleGetFunction(&in.empty, in.module, "empty"));
    CU(in.api.cuModuleGetFunction(&in.saxpy, in.module, "saxpy"));
    CU(in.api.cuEventCreate(&in.events[0], 0));
    CU(in.api.cuEventCreate(&in.events[1], 0));
    in.x = allocate(BYTES);
    in.y = allocate(BYTES);
    in.host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                   -1, 0);
    CU(in.api.cuMemHostRegister(in.host, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
}

static void in_wait(void) {
    CUresult result;
    while ((result = in.api.cuStreamQuery(in.stream)) == CUDA_ERROR_NOT_READY) {
    }
    CU(result);
}

static void in_launch(CUfunction function, unsigned grid, void **parameters) {
    CU(in.api.cuLaunchKernel(function, grid, 1, 1, BLOCK, 1, 1, 0, in.stream, parameters, NULL));
}

/* Returns how long the device took. */
static uint64_t in_saxpy(CUdeviceptr x) {
    float a = 2, ms;
    uint32_t count = FLOATS;
    void *parameters[] = {&x, &in.y, &a, &count};
    CU(in.api.cuEventRecord(in.events[0], in.stream));
    in_launch(in.saxpy, FLOATS / BLOCK, parameters);
    CU(in.api.cuEventRecord(in.events[1], in.stream));
    in_wait();
    CU(in.api.cuEventElapsedTime(&ms, in.events[0], in.events[1]));
    return (uint64_t)((double)ms * 1e6);
}

/* -- the library ------------------------------------------------------------------------------ */

static bh_context *context;

static bh_stream *stream_with(uint64_t deadline_ns) {
    bh_stream *stream = bench_stream(
        context, BENCH_WITH(bh_stream_options, .device = selector, .deadline_ns = deadline_ns));
    bench_ready(stream);
    return stream;
}

static bh_kernel *kernel_of(const char *entry) {
    bh_kernel *kernel;
    const bh_kernel_options options = {
        .struct_size = sizeof options, .entry = entry, .block = {BLOCK, 1, 1}};
    BENCH_MUST(bh_kernel_create_image(context, module_text, sizeof module_text, &options, &kernel,
                                      &bench_why));
    return kernel;
}

static bh_event *launch(bh_stream *stream, bh_kernel *kernel, uint32_t grid,
                        const bh_binding *bindings, uint32_t count) {
    const struct push push = {2, FLOATS};
    return bench_launch(stream, kernel, (uint32_t[]){grid, 1, 1}, bindings, count, &push,
                        count == 2 ? sizeof push : 0);
}

static uint64_t timed_saxpy(bh_stream *stream, bh_kernel *saxpy, const bh_binding *bindings) {
    const struct push push = {2, FLOATS};
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = saxpy,
                                             .groups = {FLOATS / BLOCK, 1, 1},
                                             .bindings = bindings,
                                             .binding_count = 2,
                                             .push = &push,
                                             .push_size = sizeof push}};
    bh_event *event =
        bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1,
                                        .flags = BH_SUBMIT_TIMED));
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bench_await(event);
    BENCH_MUST(bh_event_verdict(event, &verdict));
    bh_event_release(event);
    return verdict.device_ns;
}

static bh_event *copy(bh_stream *stream, bh_buffer *src, bh_buffer *dst) {
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = src, .dst = dst, .size = BYTES}};
    return bench_submit(stream,
                        BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1));
}

/* -- what isolation costs --------------------------------------------------------------------- */

static void costs(void) {
    static uint64_t ours[SAMPLES], theirs[SAMPLES];
    const size_t samples = quick ? SAMPLES / 10 : SAMPLES, rounds = quick ? 3 : ROUNDS;
    bh_stream *stream = stream_with(0);
    bh_kernel *empty = kernel_of("empty"), *saxpy = kernel_of("saxpy");
    bh_buffer *x = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *y = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *z = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *host = bench_buffer(context, NULL, BH_MEMORY_HOST, BYTES);
    memset(bench_map(host, BH_MAP_DISCARD), 0, BYTES);
    bench_finish(launch(stream, empty, 1, NULL, 0));
    /* One side after the other: the GPU takes 0.1 ms to turn from one process to another. */
    for (size_t i = 0; i < samples; i++) {
        const uint64_t start = bench_now_ns();
        in_launch(in.empty, 1, NULL);
        in_wait();
        theirs[i] = bench_now_ns() - start;
    }
    for (size_t i = 0; i < samples; i++) {
        const uint64_t start = bench_now_ns();
        bench_finish(launch(stream, empty, 1, NULL, 0));
        ours[i] = bench_now_ns() - start;
    }
    row("round trip of an empty kernel, p50", median_us(ours, samples), median_us(theirs, samples),
        "1.25");
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t start = bench_now_ns();
        for (unsigned n = 0; n < LOADS; n++) {
            in_launch(in.empty, 1, NULL);
        }
        in_wait();
        theirs[i] = bench_now_ns() - start;
    }
    for (size_t i = 0; i < rounds; i++) {
        bh_event *last = NULL;
        const uint64_t start = bench_now_ns();
        for (unsigned n = 0; n < LOADS; n++) {
            BENCH_MUST(bh_launch(stream, empty, (uint32_t[]){1, 1, 1}, NULL, 0, NULL, 0,
                                 n + 1 == LOADS ? &last : NULL, &bench_why));
        }
        bench_finish(last);
        ours[i] = bench_now_ns() - start;
    }
    row("1,000 launches, one wait", median_us(ours, rounds), median_us(theirs, rounds), "");
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t start = bench_now_ns();
        CU(in.api.cuMemcpyHtoDAsync(in.x, in.host, BYTES, in.stream));
        in_wait();
        theirs[i] = bench_now_ns() - start;
    }
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t start = bench_now_ns();
        bench_finish(copy(stream, host, x));
        ours[i] = bench_now_ns() - start;
    }
    row("upload of 64 MiB, pinned in-process", median_us(ours, rounds), median_us(theirs, rounds),
        "1.05");
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t start = bench_now_ns();
        CU(in.api.cuMemcpyDtoHAsync(in.host, in.x, BYTES, in.stream));
        in_wait();
        theirs[i] = bench_now_ns() - start;
    }
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t start = bench_now_ns();
        bench_finish(copy(stream, x, host));
        ours[i] = bench_now_ns() - start;
    }
    row("download of 64 MiB, pinned in-process", median_us(ours, rounds), median_us(theirs, rounds),
        "1.05");
    const bh_binding in_device[] = {bh_bind_read(0, x), bh_bind_read_write(1, y)};
    const bh_binding in_host[] = {bh_bind_read(0, host), bh_bind_read_write(1, y)};
    const bh_binding other[] = {bh_bind_read(0, x), bh_bind_read_write(1, z)};
    for (int from_host = 0; from_host < 2; from_host++) {
        CUdeviceptr input = in.x;
        const bh_binding *bindings = from_host ? in_host : in_device;
        if (from_host) {
            CU(in.api.cuMemHostGetDevicePointer(&input, in.host, 0));
        }
        bench_finish(launch(stream, saxpy, FLOATS / BLOCK, bindings, 2));
        for (size_t i = 0; i < rounds; i++) {
            theirs[i] = in_saxpy(input);
        }
        for (size_t i = 0; i < rounds; i++) {
            ours[i] = timed_saxpy(stream, saxpy, bindings);
        }
        row(from_host ? "saxpy of 64 MiB, its input read in host memory: on the device"
                      : "saxpy of 64 MiB in device memory: on the device",
            median_us(ours, rounds), median_us(theirs, rounds), from_host ? "1.05" : "1.02");
    }
    uint64_t same[SAMPLES / 10], changing[SAMPLES / 10];
    for (int changes = 0; changes < 2; changes++) {
        for (size_t i = 0; i < SAMPLES / 10; i++) {
            const struct push few = {2, BLOCK};
            const uint64_t start = bench_now_ns();
            bench_finish(bench_launch(stream, saxpy, (uint32_t[]){1, 1, 1},
                                      changes && i % 2 ? other : in_device, 2, &few, sizeof few));
            (changes ? changing : same)[i] = bench_now_ns() - start;
        }
    }
    row("launch whose writable buffers change, over one whose don't",
        median_us(changing, SAMPLES / 10), median_us(same, SAMPLES / 10), "+ 120 us");
    bh_stream_release(stream);
}

/* -- what it saves ---------------------------------------------------------------------------- */

/* A neighbour that works all the time, and remembers its longest wait. */
struct neighbour {
    bh_stream *stream;
    bh_kernel *kernel;
    atomic_bool ends;
    _Atomic uint64_t longest;
    pthread_t thread;
};

static void *work(void *argument) {
    struct neighbour *n = argument;
    while (!atomic_load(&n->ends)) {
        const uint64_t start = bench_now_ns();
        bench_finish(launch(n->stream, n->kernel, 1, NULL, 0));
        const uint64_t took = bench_now_ns() - start;
        if (took > atomic_load(&n->longest)) {
            atomic_store(&n->longest, took);
        }
    }
    return NULL;
}

static void sleep_ms(long ms) {
    nanosleep(&(const struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void isolation(void) {
    bh_kernel *endless = kernel_of("endless"), *empty = kernel_of("empty");
    bh_kernel *faulty = kernel_of("null_read");
    struct neighbour n = {.stream = stream_with(0), .kernel = empty};
    bench_finish(launch(n.stream, empty, 1, NULL, 0));
    if (pthread_create(&n.thread, NULL, work, &n) != 0) {
        bench_die("cannot start a thread");
    }
    sleep_ms(300);
    atomic_store(&n.longest, 0);
    sleep_ms(500);
    row("neighbour's longest wait, alone", (double)atomic_load(&n.longest) / 1e3, 0, "");
    for (unsigned count = 1; count <= 2; count++) {
        bh_stream *streams[2];
        bh_event *events[2];
        for (unsigned i = 0; i < count; i++) {
            streams[i] = stream_with(BH_FOREVER);
            bh_buffer *word = bench_buffer(context, streams[i], BH_MEMORY_DEVICE, 4096);
            const bh_binding binding = bh_bind_read(0, word);
            events[i] = launch(streams[i], endless, 4096, &binding, 1);
        }
        sleep_ms(500); /* modules are loaded, and both run */
        atomic_store(&n.longest, 0);
        sleep_ms(1000);
        row(count == 1 ? "neighbour's longest wait beside an endless kernel (4,096 blocks)"
                       : "... beside two",
            (double)atomic_load(&n.longest) / 1e3, 0, count == 1 ? "5 ms" : "15 ms");
        for (unsigned i = 0; i < count; i++) {
            atomic_store(&n.longest, 0);
            const uint64_t start = bench_now_ns();
            if (kill(bh_stream_worker_pid(streams[i]), SIGKILL) != 0) {
                bench_die("cannot kill the worker");
            }
            if (bh_event_wait(events[i], BENCH_TIMEOUT_NS) != BH_WORKER_SIGNAL) {
                bench_die("a killed worker's event says something else");
            }
            const uint64_t poisoned = bench_now_ns();
            bench_finish(launch(streams[i], empty, 1, NULL, 0));
            const uint64_t good = bench_now_ns();
            sleep_ms(300);
            if (count == 1) {
                row("kill -9 in it: the event is poisoned", (double)(poisoned - start) / 1e3, 0,
                    "");
                row("... the stream's next good result", (double)(good - start) / 1e3, 0, "20 ms");
                row("... the neighbour's longest wait", (double)atomic_load(&n.longest) / 1e3, 0,
                    "5 ms");
            }
            bh_event_release(events[i]);
            bh_stream_release(streams[i]);
        }
    }
    bh_stream *stream = stream_with(100000000);
    bh_buffer *word = bench_buffer(context, stream, BH_MEMORY_DEVICE, 4096);
    const bh_binding binding = bh_bind_read(0, word), writes = bh_bind_write(0, word);
    bench_finish(launch(stream, empty, 1, NULL, 0));
    sleep_ms(1000); /* the next spare is there */
    uint64_t start = bench_now_ns();
    bh_event *event = launch(stream, endless, 4096, &binding, 1);
    bh_status status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    uint64_t poisoned = bench_now_ns();
    if (status != BH_DEADLINE) {
        bench_die("an endless kernel ends %s", bh_status_name(status));
    }
    bench_finish(launch(stream, empty, 1, NULL, 0));
    row("deadline of 100 ms: the event is poisoned", (double)(poisoned - start) / 1e3, 0, "105 ms");
    row("... the stream's next good result", (double)(bench_now_ns() - start) / 1e3, 0, "125 ms");
    bh_stream_release(stream);
    stream = stream_with(0);
    bh_event *prepared;
    BENCH_MUST(bh_kernel_prepare(faulty, stream, &prepared, &bench_why));
    bench_finish(prepared);
    sleep_ms(1000);
    start = bench_now_ns();
    event = launch(stream, faulty, 1, &writes, 1);
    status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    poisoned = bench_now_ns();
    if (status != BH_DEVICE_FAULT) {
        bench_die("an illegal read ends %s", bh_status_name(status));
    }
    bench_finish(launch(stream, empty, 1, NULL, 0));
    row("illegal address: the event is poisoned", (double)(poisoned - start) / 1e3, 0, "");
    row("... the stream's next good result", (double)(bench_now_ns() - start) / 1e3, 0, "20 ms");
    bh_stream_release(stream);
    atomic_store(&n.ends, true);
    pthread_join(n.thread, NULL);
    bh_stream_release(n.stream);
}

static void many(void) {
    size_t before = 0, after = 0, total;
    bh_stream *streams[16];
    CU(in.api.cuMemGetInfo(&before, &total));
    for (size_t i = 0; i < 16; i++) {
        streams[i] = bench_stream(context, BENCH_WITH(bh_stream_options, .device = selector));
    }
    for (size_t i = 0; i < 16; i++) {
        bench_ready(streams[i]);
    }
    CU(in.api.cuMemGetInfo(&after, &total));
    printf("%-58s %12s %8zu MiB %7s  300 MiB\n", "device memory of an idle worker", "-",
           (before - after) / 16 >> 20, "");
    const uint64_t start = bench_now_ns();
    for (size_t i = 0; i < 16; i++) {
        bh_stream_release(streams[i]);
    }
    bh_context_destroy(context);
    row("end of a context with 16 workers", (double)(bench_now_ns() - start) / 1e3, 0, "1.2 s");
}

int main(int argc, char **argv) {
    const struct bench_option options[] = {
        {.name = "--device", .text = &selector}, {.name = "--quick", .flag = &quick}, {0}};
    bench_parse(argc, argv, options, usage);
    start_in_process();
    context = bench_context(NULL);
    printf("%-58s %12s %12s %7s  %s\n", "", "in-process", "library", "ratio", "goal");
    printf("%-58s %12s %12s\n", "", "us", "us");
    costs();
    isolation();
    many();
    return 0;
}
