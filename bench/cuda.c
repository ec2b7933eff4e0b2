/* bench-cuda: what isolation costs CUDA kernels, and what it saves. One run measures in-process CUDA and
 * the library on the same kernels; needs an NVIDIA GPU with libcuda.so.1. */
#include "base/cuda.h"
#include "common.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES   (64u << 20)
#define FLOATS  (BYTES / 4)
#define BLOCK   256u
#define SAMPLES 2000u
#define LOADS   1000u
#define ROUNDS  21u
#define SIDE    2048u /* of a square matrix */

static const char usage[] =
    "Usage: bench-cuda [--device cuda:N] [--quick]\n"
    "Prints a row for each measurement: in-process, the library, their ratio and the goal.\n"
    "  --device SELECTOR   which device the library uses; in-process it is the first. Default: "
    "cuda\n"
    "  --quick             fewer rounds\n";
static const char *selector = "cuda";
static bool quick, faults, holds; /* the last two: what a process in-process is started for */

static const char module_text[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry empty()\n{\nret;\n}\n"
    ".visible .entry endless(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %p;\n"
    "ld.param.u64 %a, [word];\nL: ld.volatile.u32 %v, [%a];\nsetp.ne.u32 %p, %v, 77;\n@%p bra "
    "L;\nret;\n}\n"
    ".visible .entry null_read(.param .u64 y)\n{\n.reg .u64 %a;\n.reg .u32 %v;\nmov.u64 %a, 0;\n"
    "ld.volatile.u32 %v, [%a];\nld.param.u64 %a, [y];\nst.u32 [%a], %v;\nret;\n}\n"
    ".visible .entry matmul(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 side)\n{\n"
    ".reg .u64 %x, %y, %z, %o, %p;\n.reg .u32 %i, %j, %k, %n, %m;\n.reg .f32 %f, %g, %h;\n"
    ".reg .pred %q;\nld.param.u32 %n, [side];\nmov.u32 %i, %ctaid.y;\nmov.u32 %j, %ctaid.x;\n"
    "mov.u32 %k, %ntid.x;\nmov.u32 %m, %tid.x;\nmad.lo.u32 %j, %j, %k, %m;\n"
    "ld.param.u64 %x, [x];\nld.param.u64 %y, [y];\nld.param.u64 %z, [z];\n"
    "mul.lo.u32 %m, %i, %n;\nmul.wide.u32 %o, %m, 4;\nadd.u64 %x, %x, %o;\nadd.u64 %z, %z, %o;\n"
    "mul.wide.u32 %o, %j, 4;\nadd.u64 %y, %y, %o;\nadd.u64 %z, %z, %o;\nmul.wide.u32 %p, %n, 4;\n"
    "mov.u32 %k, 0;\nmov.f32 %h, 0f00000000;\nL: ld.f32 %f, [%x];\nld.f32 %g, [%y];\n"
    "fma.rn.f32 %h, %f, %g, %h;\nadd.u64 %x, %x, 4;\nadd.u64 %y, %y, %p;\nadd.u32 %k, %k, 1;\n"
    "setp.lt.u32 %q, %k, %n;\n@%q bra L;\nst.f32 [%z], %h;\nret;\n}\n"
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

/* Measures |count| times how long a statement takes, into |out|. */
#define SAMPLE(out, count, ...)                                                                    \
    for (size_t i = 0; i < (count); i++) {                                                         \
        const uint64_t start = bench_now_ns();                                                     \
        __VA_ARGS__(out)[i] = bench_now_ns() - start;                                              \
    }

/* -- in-process ------------------------------------------------------------------------------- */

static struct {
    struct bhi_cuda_api api;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction empty, saxpy, matmul, null_read;
    CUdeviceptr x, y, z;
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
    CU(in.api.cuModuleGetFunction(&in.matmul, in.module, "matmul"));
    CU(in.api.cuModuleGetFunction(&in.null_read, in.module, "null_read"));
    CU(in.api.cuEventCreate(&in.events[0], 0));
    CU(in.api.cuEventCreate(&in.events[1], 0));
    in.x = allocate(BYTES);
    in.y = allocate(BYTES);
    in.z = allocate(BYTES);
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
static uint64_t in_timed(CUfunction function, unsigned x, unsigned y, void **parameters) {
    float ms;
    CU(in.api.cuEventRecord(in.events[0], in.stream));
    CU(in.api.cuLaunchKernel(function, x, y, 1, BLOCK, 1, 1, 0, in.stream, parameters, NULL));
    CU(in.api.cuEventRecord(in.events[1], in.stream));
    in_wait();
    CU(in.api.cuEventElapsedTime(&ms, in.events[0], in.events[1]));
    return (uint64_t)((double)ms * 1e6);
}

static uint64_t in_saxpy(CUdeviceptr x) {
    float a = 2;
    uint32_t count = FLOATS;
    return in_timed(in.saxpy, FLOATS / BLOCK, 1, (void *[]){&x, &in.y, &a, &count});
}

/* A process without the library: this program with |option|. It prints a number when it has done what it is
 * for, and goes on until it is killed. */
struct process {
    pid_t pid;
    FILE *out;
};

static struct process start_process(const char *option) {
    int ends[2];
    if (pipe(ends) != 0) {
        bench_die("no pipe");
    }
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execl("/proc/self/exe", "bench-cuda", option, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return (struct process){pid, fdopen(ends[0], "r")};
}

static double answer_of(struct process process) {
    double number;
    if (!process.out || fscanf(process.out, "%lf", &number) != 1) {
        bench_die("a process without the library has said nothing");
    }
    return number;
}

static void end_process(struct process process) {
    kill(process.pid, SIGKILL);
    waitpid(process.pid, NULL, 0);
    fclose(process.out);
}

/* How long the driver takes to report an illegal address: the context, and with it the process, is lost. */
static void fault_in_process(void) {
    CUresult result;
    void *parameters[] = {&in.y};
    const uint64_t start = bench_now_ns();
    in_launch(in.null_read, 1, parameters);
    while ((result = in.api.cuStreamQuery(in.stream)) == CUDA_ERROR_NOT_READY) {
    }
    if (result != CUDA_ERROR_ILLEGAL_ADDRESS) {
        bench_die("an illegal read ends with %d", (int)result);
    }
    printf("%f\n", (double)(bench_now_ns() - start) / 1e3);
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

static uint64_t timed(bh_stream *stream, const bh_command command) {
    bh_event *event =
        bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1,
                                        .flags = BH_SUBMIT_TIMED));
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bench_await(event);
    BENCH_MUST(bh_event_verdict(event, &verdict));
    bh_event_release(event);
    return verdict.device_ns;
}

static uint64_t timed_saxpy(bh_stream *stream, bh_kernel *saxpy, const bh_binding *bindings) {
    const struct push push = {2, FLOATS};
    return timed(stream, (bh_command){.type = BH_COMMAND_DISPATCH,
                                      .dispatch = {.kernel = saxpy,
                                                   .groups = {FLOATS / BLOCK, 1, 1},
                                                   .bindings = bindings,
                                                   .binding_count = 2,
                                                   .push = &push,
                                                   .push_size = sizeof push}});
}

static bh_event *copy(bh_stream *stream, bh_buffer *src, bh_buffer *dst) {
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = src, .dst = dst, .size = BYTES}};
    return bench_submit(stream,
                        BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1));
}

/* Launches the kernel so often. Returns the last one's event. */
static bh_event *launches(bh_stream *stream, bh_kernel *kernel, unsigned count) {
    bh_event *last = NULL;
    for (unsigned n = 0; n < count; n++) {
        BENCH_MUST(bh_launch(stream, kernel, (uint32_t[]){1, 1, 1}, NULL, 0, NULL, 0,
                             n + 1 == count ? &last : NULL, &bench_why));
    }
    return last;
}

/* -- what isolation costs --------------------------------------------------------------------- */

static void costs(void) {
    static uint64_t ours[SAMPLES], theirs[SAMPLES];
    const size_t samples = quick ? SAMPLES / 10 : SAMPLES, rounds = quick ? 3 : ROUNDS;
    bh_stream *stream = stream_with(0);
    bh_kernel *empty = kernel_of("empty"), *saxpy = kernel_of("saxpy"),
              *matmul = kernel_of("matmul");
    bh_buffer *x = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *y = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *z = bench_buffer(context, stream, BH_MEMORY_DEVICE, BYTES);
    bh_buffer *host = bench_buffer(context, NULL, BH_MEMORY_HOST, BYTES);
    memset(bench_map(host, BH_MAP_DISCARD), 0, BYTES);
    bench_finish(launch(stream, empty, 1, NULL, 0));
    /* One side after the other: the GPU takes 0.1 ms to turn from one process to another. */
    SAMPLE(theirs, samples, in_launch(in.empty, 1, NULL); in_wait();)
    SAMPLE(ours, samples, bench_finish(launch(stream, empty, 1, NULL, 0));)
    row("round trip of an empty kernel, p50", median_us(ours, samples), median_us(theirs, samples),
        "1.25");
    SAMPLE(
        theirs, rounds,
        for (unsigned n = 0; n < LOADS; n++) { in_launch(in.empty, 1, NULL); } in_wait();)
    SAMPLE(ours, rounds, bench_finish(launches(stream, empty, LOADS));)
    row("1,000 launches, one wait", median_us(ours, rounds), median_us(theirs, rounds), "");
    SAMPLE(theirs, rounds, CU(in.api.cuMemcpyHtoDAsync(in.x, in.host, BYTES, in.stream));
           in_wait();)
    SAMPLE(ours, rounds, bench_finish(copy(stream, host, x));)
    row("upload of 64 MiB, pinned in-process", median_us(ours, rounds), median_us(theirs, rounds),
        "1.05");
    SAMPLE(theirs, rounds, CU(in.api.cuMemcpyDtoHAsync(in.host, in.x, BYTES, in.stream));
           in_wait();)
    SAMPLE(ours, rounds, bench_finish(copy(stream, x, host));)
    row("download of 64 MiB, pinned in-process", median_us(ours, rounds), median_us(theirs, rounds),
        "1.05");
    bh_stream *copies = stream_with(0);
    bench_finish(copy(copies, x, host));
    bench_finish(copy(copies, x, host)); /* from now on the host memory is pinned there */
    SAMPLE(ours, rounds, bench_finish(copy(copies, x, host));)
    row("the same on a stream that runs no kernels", median_us(ours, rounds),
        median_us(theirs, rounds), "1.05");
    bh_stream_release(copies);
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
    const bh_binding square[] = {bh_bind_read(0, x), bh_bind_read(1, y), bh_bind_write(2, z)};
    uint32_t side = SIDE;
    for (size_t i = 0; i < rounds; i++) {
        theirs[i] = in_timed(in.matmul, SIDE / BLOCK, SIDE, (void *[]){&in.x, &in.y, &in.z, &side});
    }
    for (size_t i = 0; i < rounds; i++) {
        ours[i] = timed(stream, (bh_command){.type = BH_COMMAND_DISPATCH,
                                             .dispatch = {.kernel = matmul,
                                                          .groups = {SIDE / BLOCK, SIDE, 1},
                                                          .bindings = square,
                                                          .binding_count = 3,
                                                          .push = &side,
                                                          .push_size = sizeof side}});
    }
    row("matmul of 2,048 x 2,048 in device memory: on the device", median_us(ours, rounds),
        median_us(theirs, rounds), "1.02");
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

/* A stream whose spare knows |kernel|, and |other| as well. */
static bh_stream *stream_that_knows(bh_kernel *kernel, bh_kernel *other, uint64_t deadline_ns) {
    bh_stream *stream = stream_with(deadline_ns);
    bh_event *prepared;
    BENCH_MUST(bh_kernel_prepare(other, stream, &prepared, &bench_why));
    bench_finish(prepared);
    bench_finish(launches(stream, kernel, 4));
    sleep_ms(1000);
    return stream;
}

/* The stream's worker runs a kernel that ends in |expected|: when is that said, and when is the next good
 * result there? Both from |start| on. */
static void next_result(bh_stream *stream, bh_kernel *empty, bh_event *event, uint64_t start,
                        bh_status expected, double *out_poisoned_us, double *out_good_us) {
    const bh_status status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    *out_poisoned_us = (double)(bench_now_ns() - start) / 1e3;
    if (status != expected) {
        bench_die("it ends %s, not %s", bh_status_name(status), bh_status_name(expected));
    }
    bench_finish(launch(stream, empty, 1, NULL, 0));
    *out_good_us = (double)(bench_now_ns() - start) / 1e3;
    bh_event_release(event);
}

static void beside_endless(struct neighbour *n, bh_kernel *endless, bh_kernel *empty) {
    for (unsigned count = 1; count <= 2; count++) {
        bh_stream *streams[2];
        bh_event *events[2];
        for (unsigned i = 0; i < count; i++) {
            streams[i] = stream_that_knows(empty, endless, BH_FOREVER);
            bh_buffer *word = bench_buffer(context, streams[i], BH_MEMORY_DEVICE, 4096);
            const bh_binding binding = bh_bind_read(0, word);
            events[i] = launch(streams[i], endless, 4096, &binding, 1);
        }
        sleep_ms(500); /* both run */
        atomic_store(&n->longest, 0);
        sleep_ms(1000);
        row(count == 1 ? "neighbour's longest wait beside an endless kernel (4,096 blocks)"
                       : "... beside two",
            (double)atomic_load(&n->longest) / 1e3, 0, count == 1 ? "5 ms" : "15 ms");
        for (unsigned i = 0; i < count; i++) {
            double poisoned, good;
            atomic_store(&n->longest, 0);
            const uint64_t start = bench_now_ns();
            if (kill(bh_stream_worker_pid(streams[i]), SIGKILL) != 0) {
                bench_die("cannot kill the worker");
            }
            next_result(streams[i], empty, events[i], start, BH_WORKER_SIGNAL, &poisoned, &good);
            sleep_ms(300);
            if (count == 1) {
                row("kill -9 in it: the event is poisoned", poisoned, 0, "");
                row("... the stream's next good result", good, 0, "20 ms");
                row("... the neighbour's longest wait", (double)atomic_load(&n->longest) / 1e3, 0,
                    "5 ms");
            }
            bh_stream_release(streams[i]);
        }
    }
}

static void fill(bh_stream *stream, bh_buffer *buffer, uint32_t value) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = value}};
    bench_finish(
        bench_submit(stream, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1)));
}

/* What a dead worker has made is intact, and what it could write is used again when its device has been
 * released. */
static void memory_outlives(bh_kernel *endless, bh_kernel *empty) {
    bh_stream *maker = stream_that_knows(empty, endless, BH_FOREVER), *other = stream_with(0);
    bh_buffer *large = bench_buffer(context, maker, BH_MEMORY_DEVICE, 1u << 30);
    bh_buffer *word = bench_buffer(context, maker, BH_MEMORY_DEVICE, 4096);
    bh_buffer *small = bench_buffer(context, other, BH_MEMORY_DEVICE, 4096);
    const bh_binding writes = bh_bind_read_write(0, word);
    double poisoned, good;
    fill(maker, large, 0x2a2a2a2a);
    fill(maker, word, 0);
    fill(other, small, 0);
    bh_event *event = launch(maker, endless, 1, &writes, 1);
    sleep_ms(300);
    const uint64_t start = bench_now_ns();
    kill(bh_stream_worker_pid(maker), SIGKILL);
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = large, .dst = small, .size = 4096}};
    bench_finish(
        bench_submit(other, BENCH_WITH(bh_submit_info, .commands = &command, .command_count = 1)));
    row("1 GiB of device memory after its maker's kill -9: next use",
        (double)(bench_now_ns() - start) / 1e3, 0, "5 ms");
    next_result(maker, empty, event, start, BH_WORKER_SIGNAL, &poisoned, &good);
    fill(maker, word, 1);
    row("memory that the dead worker could write: next good result",
        (double)(bench_now_ns() - start) / 1e3, 0, "100 ms");
    bh_buffer *host = bench_buffer(context, NULL, BH_MEMORY_HOST, 1u << 30);
    const bh_command back = {.type = BH_COMMAND_COPY,
                             .copy = {.src = large, .dst = host, .size = 1u << 30}};
    bench_finish(
        bench_submit(other, BENCH_WITH(bh_submit_info, .commands = &back, .command_count = 1)));
    const uint32_t *words = bench_map(host, BH_MAP_READ);
    for (size_t i = 0; i < (1u << 30) / sizeof *words; i++) {
        if (words[i] != 0x2a2a2a2a) {
            bench_die("word %zu of it is wrong", i);
        }
    }
    bh_stream_release(maker);
    bh_stream_release(other);
}

static void isolation(void) {
    const bh_context_options options = {
        .struct_size = sizeof options, .spares = 1, .spare_kernels = 8};
    context = bench_context(&options);
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
    beside_endless(&n, endless, empty);
    atomic_store(&n.ends, true);
    pthread_join(n.thread, NULL);
    bh_stream_release(n.stream);
    memory_outlives(endless, empty);
    double poisoned, good;
    bh_stream *stream = stream_that_knows(empty, endless, 100000000);
    bh_buffer *word = bench_buffer(context, stream, BH_MEMORY_DEVICE, 4096);
    const bh_binding reads = bh_bind_read(0, word), writes = bh_bind_write(0, word);
    fill(stream, word, 0);
    uint64_t start = bench_now_ns();
    next_result(stream, empty, launch(stream, endless, 4096, &reads, 1), start, BH_DEADLINE,
                &poisoned, &good);
    row("deadline of 100 ms: the event is poisoned", poisoned, 0, "105 ms");
    row("... the stream's next good result", good, 0, "125 ms");
    bh_stream_release(stream);
    struct process process = start_process("--faults");
    const double theirs = answer_of(process);
    end_process(process);
    stream = stream_that_knows(empty, faulty, 0);
    fill(stream, word, 0);
    start = bench_now_ns();
    next_result(stream, empty, launch(stream, faulty, 1, &writes, 1), start, BH_DEVICE_FAULT,
                &poisoned, &good);
    row("illegal address: it is reported", poisoned, theirs, "");
    row("... the stream's next good result", good, 0, "20 ms");
    bh_stream_release(stream);
    bh_context_destroy(context);
}

/* Of all its threads. */
static uint64_t processor_ns(int32_t pid) {
    char path[64];
    uint64_t sum = 0;
    glob_t tasks;
    snprintf(path, sizeof path, "/proc/%d/task/*/schedstat", pid);
    if (glob(path, 0, NULL, &tasks) != 0) {
        bench_die("there is no %s", path);
    }
    for (size_t i = 0; i < tasks.gl_pathc; i++) {
        unsigned long long ns = 0;
        FILE *file = fopen(tasks.gl_pathv[i], "r");
        if (file && fscanf(file, "%llu", &ns) == 1) {
            sum += ns;
        }
        if (file) {
            fclose(file);
        }
    }
    globfree(&tasks);
    return sum;
}

#define MANY 16

static void many(void) {
    size_t before = 0, after = 0, total;
    bh_stream *streams[MANY];
    const bh_context_options none = {.struct_size = sizeof none, .spares = BH_OFF};
    context = bench_context(&none);
    CU(in.api.cuMemGetInfo(&before, &total));
    for (size_t i = 0; i < MANY; i++) {
        streams[i] = bench_stream(context, BENCH_WITH(bh_stream_options, .device = selector));
    }
    for (size_t i = 0; i < MANY; i++) {
        bench_ready(streams[i]);
    }
    CU(in.api.cuMemGetInfo(&after, &total));
    printf("%-58s %12s %8zu MiB %7s  300 MiB\n", "device memory of an idle worker", "-",
           (before - after) / MANY >> 20, "");
    const int32_t pid = bh_stream_worker_pid(streams[0]);
    const uint64_t used = processor_ns(pid);
    sleep_ms(10000);
    row("processor time of an idle worker in a second", (double)(processor_ns(pid) - used) / 1e4, 0,
        "1 ms");
    bh_kernel *empty = kernel_of("empty");
    for (size_t i = 0; i < MANY; i++) {
        bench_finish(launch(streams[i], empty, 1, NULL, 0));
    }
    for (size_t count = 1; count <= MANY; count *= 4) {
        bh_event *last[MANY];
        uint64_t start = bench_now_ns();
        for (size_t i = 0; i < 100 * count; i++) {
            in_launch(in.empty, 1, NULL);
        }
        in_wait();
        const uint64_t theirs = bench_now_ns() - start;
        start = bench_now_ns();
        for (size_t i = 0; i < count; i++) {
            last[i] = launches(streams[i], empty, 100);
        }
        for (size_t i = 0; i < count; i++) {
            bench_finish(last[i]);
        }
        char what[64];
        snprintf(what, sizeof what, "100 launches on each of %zu stream%s", count,
                 count > 1 ? "s" : "");
        row(what, (double)(bench_now_ns() - start) / 1e3, (double)theirs / 1e3, "");
    }
    struct process processes[MANY];
    for (size_t i = 0; i < MANY; i++) {
        processes[i] = start_process("--holds");
    }
    for (size_t i = 0; i < MANY; i++) {
        (void)answer_of(processes[i]);
    }
    uint64_t start = bench_now_ns();
    for (size_t i = 0; i < MANY; i++) {
        kill(processes[i].pid, SIGKILL);
    }
    for (size_t i = 0; i < MANY; i++) {
        end_process(processes[i]);
    }
    const uint64_t theirs = bench_now_ns() - start;
    start = bench_now_ns();
    for (size_t i = 0; i < MANY; i++) {
        bh_stream_release(streams[i]);
    }
    bh_context_destroy(context);
    row("end of 16 processes; of a context with 16 workers", (double)(bench_now_ns() - start) / 1e3,
        (double)theirs / 1e3, "1.2 s");
}

int main(int argc, char **argv) {
    const struct bench_option options[] = {{.name = "--device", .text = &selector},
                                           {.name = "--quick", .flag = &quick},
                                           {.name = "--faults", .flag = &faults},
                                           {.name = "--holds", .flag = &holds},
                                           {0}};
    bench_parse(argc, argv, options, usage);
    start_in_process();
    if (faults) {
        fault_in_process();
        return 0;
    }
    if (holds) {
        puts("0");
        fflush(stdout);
        pause();
    }
    context = bench_context(NULL);
    printf("%-58s %12s %12s %7s  %s\n", "", "in-process", "library", "ratio", "goal");
    printf("%-58s %12s %12s\n", "", "us", "us");
    costs();
    bh_context_destroy(context);
    isolation();
    many();
    return 0;
}
