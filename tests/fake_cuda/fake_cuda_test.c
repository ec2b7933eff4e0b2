#include "base/cuda.h"
#include "harness.h"

#include "add.cubin.h"
#include "assert.cubin.h"
#include "big_parameters.cubin.h"
#include "copy_index.cubin.h"
#include "counter.cubin.h"
#include "deep.cubin.h"
#include "divide.cubin.h"
#include "endless.cubin.h"
#include "misaligned.cubin.h"
#include "null_read.cubin.h"
#include "other_arch.cubin.h"
#include "saxpy.cubin.h"
#include "shared_sum.cubin.h"
#include "trap.cubin.h"
#include "wild_write.cubin.h"
#include "writes_first.cubin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK    ((size_t)2 << 20) /* the granularity */
#define OK(call) BHT_EQ(call, CUDA_SUCCESS)

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                             int *status);

static struct bhi_cuda_api cu;
static struct bhi_cuda_host_api of_host;
static CUcontext context;
static CUstream stream;
static uint32_t *words; /* device memory of one block */

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

static void load_api(bhi_cuda_entry entry) {
#define LOAD(function, since, parameters)                                                          \
    OK(entry(#function, (void **)&cu.function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    BHI_CUDA_FUNCTIONS(LOAD)
#undef LOAD
#define LOAD(function, since, parameters)                                                          \
    OK(entry(#function, (void **)&of_host.function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    BHI_CUDA_HOST_FUNCTIONS(LOAD)
#undef LOAD
}

static CUresult allow(const void *at, int flags) {
    return cu.cuMemSetAccess((uintptr_t)at, BLOCK,
                             &(CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags}, 1);
}

static void *map(CUmemGenericAllocationHandle handle, int flags) {
    CUdeviceptr at;
    OK(cu.cuMemAddressReserve(&at, BLOCK, 0, 0, 0));
    OK(cu.cuMemMap(at, BLOCK, 0, handle, 0));
    OK(allow((void *)(uintptr_t)at, flags));
    return (void *)(uintptr_t)at;
}

static void unmap(void *at) {
    OK(cu.cuMemUnmap((uintptr_t)at, BLOCK));
    OK(cu.cuMemAddressFree((uintptr_t)at, BLOCK));
}

static void *create(void) {
    CUmemGenericAllocationHandle handle;
    OK(cu.cuMemCreate(&handle, BLOCK, &on_device, 0));
    void *at = map(handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cu.cuMemRelease(handle));
    return at;
}

static void stop(void) {
    if (context) {
        OK(cu.cuCtxDestroy(context));
    }
    unmap(words);
}

static void start(void) {
    load_api(cuGetProcAddress_v2);
    OK(cu.cuInit(0));
    OK(cu.cuCtxCreate(&context, CU_CTX_SCHED_YIELD, 0));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    words = create();
    bht_end_with(stop);
}

static CUfunction load(const void *cubin, const char *name) {
    CUmodule module;
    CUfunction function;
    OK(cu.cuModuleLoadDataEx(&module, cubin, 0, NULL, NULL));
    OK(cu.cuModuleGetFunction(&function, module, name));
    return function;
}
#define LOAD(name) load(fake_cubin_##name, #name)
/* One dimension. */
#define LAUNCH(function, blocks, threads, shared, ...)                                             \
    cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream,                       \
                      (void *[]){__VA_ARGS__}, NULL)

static CUresult set(uint32_t *at, uint32_t value, size_t count) {
    return cu.cuMemsetD32Async((uintptr_t)at, value, count, stream);
}

/* -- the driver ---------------------------------------------------------------------------------- */

TEST(fake_cuda_has_functions_from_their_version_on) {
    static const struct {
        const char *name, *driver;
        int version;
        CUresult result;
        int status;
    } rows[] = {
        {"cuInit", NULL, 13000, CUDA_SUCCESS, 0},
        {"cuInit", NULL, 2000, CUDA_SUCCESS, 0},
        {"cuFuncGetParamInfo", NULL, 12040, CUDA_SUCCESS, 0},
        {"cuFuncGetParamInfo", NULL, 12030, CUDA_ERROR_NOT_FOUND, 2},
        {"cuFuncGetParamInfo", "12030", 12040, CUDA_ERROR_NOT_FOUND, 1},
        {"cuNothing", NULL, 13000, CUDA_ERROR_NOT_FOUND, 1},
        {NULL, NULL, 13000, CUDA_ERROR_INVALID_VALUE, 1},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        void *out = &out;
        int status = 1;
        rows[i].driver ? setenv("FAKE_CUDA_VERSION", rows[i].driver, 1)
                       : unsetenv("FAKE_CUDA_VERSION");
        BHT_EQ(cuGetProcAddress_v2(rows[i].name, &out, rows[i].version, 0, &status),
               rows[i].result);
        BHT_EQ(status, rows[i].status);
        BHT_TRUE(!rows[i].name || !!out == (rows[i].result == CUDA_SUCCESS));
    }
}

static void expect_not_initialized(void) {
    CUdevice device;
    CUcontext made;
    CUdeviceptr at;
    int count;
    BHT_EQ(cu.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(cu.cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(cu.cuCtxCreate(&made, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(cu.cuMemAddressReserve(&at, BLOCK, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    BHT_EQ(set(words, 0, 1), CUDA_ERROR_NOT_INITIALIZED);
    OK(cu.cuDriverGetVersion(&count));
}

TEST(fake_cuda_needs_cuInit) {
    load_api(cuGetProcAddress_v2);
    expect_not_initialized();
}

TEST(fake_cuda_does_not_survive_a_fork) {
    start();
    pid_t child = fork();
    if (child == 0) {
        expect_not_initialized();
        BHT_EQ(cu.cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    OK(cu.cuStreamQuery(stream));
}

TEST(fake_cuda_is_what_its_environment_says) {
    size_t available, total;
    int value;
    CUcontext made;
    load_api(cuGetProcAddress_v2);
    setenv("FAKE_CUDA_INIT", "304", 1);
    BHT_EQ(cu.cuInit(0), CUDA_ERROR_OPERATING_SYSTEM);
    unsetenv("FAKE_CUDA_INIT");
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    BHT_EQ(cu.cuInit(0), CUDA_ERROR_NO_DEVICE);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("FAKE_CUDA_MEMORY", "0x400000", 1);
    start();
    OK(cu.cuDeviceGetCount(&value));
    BHT_EQ(value, 2);
    OK(cu.cuMemGetInfo(&available, &total));
    BHT_EQ(total, 2 * BLOCK);
    BHT_EQ(available, BLOCK);
    setenv("FAKE_CUDA_MODE", "2", 1);
    OK(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 1));
    BHT_EQ(value, 2);
    BHT_EQ(cu.cuCtxCreate(&made, 0, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
    BHT_EQ(cu.cuDeviceGet(&value, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST(fake_cuda_names_errors) {
    const char *name, *text;
    load_api(cuGetProcAddress_v2);
    OK(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    OK(cu.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    BHT_STR_EQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    BHT_STR_EQ(text, "an illegal memory access was encountered");
    BHT_EQ(cu.cuGetErrorName((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
    BHT_TRUE(!name);
}

/* Each row is a call; none leaves anything behind, and none is sticky. */
TEST(fake_cuda_refuses_arguments) {
    start();
    CUstream no_stream = (CUstream)(void *)&stream;
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    size_t offset, size;
    int value;
    float ms;
    CUevent event, other;
    void *parameters[] = {&words, &value, &value};
    CUfunction add = LOAD(add), fill = LOAD(writes_first);
    OK(cu.cuEventCreate(&event, 0));
    OK(cu.cuEventCreate(&other, 2)); /* without times */
#define LAUNCH3(gx, gy, gz, bx, by, bz, shared)                                                    \
    cu.cuLaunchKernel(fill, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL)
    const struct {
        const char *what;
        CUresult result, expected;
    } rows[] = {
#define ROW(call, error) {#call, cu.call, CUDA_ERROR_##error}
        ROW(cuInit(1), INVALID_VALUE),
        ROW(cuDeviceGetAttribute(&value, 9999, 0), INVALID_VALUE),
        ROW(cuDeviceGetAttribute(NULL, 1, 0), INVALID_VALUE),
        ROW(cuCtxSetLimit(99, 0), INVALID_VALUE),
        ROW(cuStreamCreate(NULL, 0), INVALID_VALUE),
        ROW(cuStreamQuery(no_stream), INVALID_HANDLE),
        ROW(cuStreamSynchronize(no_stream), INVALID_HANDLE),
        ROW(cuStreamDestroy(no_stream), INVALID_HANDLE),
        ROW(cuStreamWriteValue64(stream, (uintptr_t)words + 1, 1, 0), INVALID_VALUE),
        ROW(cuEventRecord((CUevent)(void *)&event, stream), INVALID_HANDLE),
        ROW(cuEventElapsedTime(&ms, event, event), INVALID_HANDLE), /* not recorded */
        ROW(cuEventElapsedTime(&ms, other, other), INVALID_HANDLE),
        ROW(cuModuleLoadDataEx(NULL, fake_cubin_add, 0, NULL, NULL), INVALID_VALUE),
        ROW(cuModuleUnload((CUmodule)(void *)&event), INVALID_HANDLE),
        ROW(cuFuncGetAttribute(&value, 99, add), INVALID_VALUE),
        ROW(cuFuncSetAttribute(add, 8, 232449), INVALID_VALUE),
        ROW(cuFuncSetAttribute(add, 0, 1), INVALID_VALUE),
        ROW(cuFuncGetParamInfo(add, 4, &offset, &size), INVALID_VALUE),
        ROW(cuMemAddressReserve(&at, BLOCK + 4096, 0, 0, 0), INVALID_VALUE),
        ROW(cuMemAddressReserve(&at, BLOCK, 3, 0, 0), INVALID_VALUE),
        ROW(cuMemAddressFree((uintptr_t)words, BLOCK), INVALID_VALUE), /* mapped */
        ROW(cuMemCreate(&handle, BLOCK + 1, &on_device, 0), INVALID_VALUE),
        ROW(cuMemCreate(&handle, BLOCK, NULL, 0), INVALID_VALUE),
        ROW(cuMemCreate(&handle, (size_t)1 << 40, &on_device, 0), OUT_OF_MEMORY),
        ROW(cuMemRelease(12345), INVALID_VALUE),
        ROW(cuMemMap((uintptr_t)words, BLOCK, 0, 12345, 0), INVALID_VALUE),
        ROW(cuMemUnmap((uintptr_t)words, BLOCK / 2), INVALID_VALUE),
        ROW(cuMemUnmap((uintptr_t)words + BLOCK, BLOCK), INVALID_VALUE),
        ROW(cuMemSetAccess((uintptr_t)words, BLOCK, NULL, 1), INVALID_VALUE),
        ROW(cuMemImportFromShareableHandle(&handle, (void *)-1, 1), INVALID_VALUE),
        ROW(cuMemImportFromShareableHandle(&handle, (void *)0, 1), INVALID_VALUE),
        ROW(cuMemHostRegister(NULL, 1, 0), INVALID_VALUE),
        ROW(cuMemHostRegister(words, 0, 0), INVALID_VALUE),
        ROW(cuMemHostGetDevicePointer(&at, &value, 0), INVALID_VALUE),
        ROW(cuMemsetD32Async((uintptr_t)words + 2, 0, 1, stream), INVALID_VALUE),
        ROW(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), INVALID_VALUE),
        ROW(cuLaunchKernel((CUfunction)(void *)&event, 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                           NULL),
            INVALID_HANDLE),
#undef ROW
#define ROW(...) {"launch " #__VA_ARGS__, LAUNCH3(__VA_ARGS__), CUDA_ERROR_INVALID_VALUE}
        ROW(0, 1, 1, 1, 1, 1, 0),
        ROW(1, 65536, 1, 1, 1, 1, 0),
        ROW(1, 1, 65536, 1, 1, 1, 0),
        ROW(1, 1, 1, 0, 1, 1, 0),
        ROW(1, 1, 1, 1025, 1, 1, 0),
        ROW(1, 1, 1, 1, 1, 65, 0),
        ROW(1, 1, 1, 32, 33, 1, 0),
        ROW(1, 1, 1, 1, 1, 1, 49153),
#undef ROW
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        if (rows[i].result != rows[i].expected) {
            BHT_FAIL("%s is %d, not %d", rows[i].what, rows[i].result, rows[i].expected);
        }
    }
    OK(cu.cuCtxSynchronize());
}

/* -- kernels --------------------------------------------------------------------------------------- */

TEST(fake_cuda_kernels_compute) {
    start();
    enum { N = 1000 };
    uint32_t *x = words, *y = words + 1024, *z = words + 2048, count = N, c = 5, out[N];
    float *fx = (float *)words + 4096, *fy = fx + 1024, a = 2, host[N];
    CUfunction copy_index = LOAD(copy_index);
    OK(cu.cuLaunchKernel(copy_index, 5, 4, 5, 5, 2, 1, 0, stream, (void *[]){&x}, NULL));
    OK(set(y, 0, N));
    OK(LAUNCH(LOAD(add), 16, 64, 0, &x, &y, &c, &count));
    OK(cu.cuMemcpyDtoHAsync(out, (uintptr_t)y, sizeof out, stream));
    for (uint32_t i = 0; i < N; i++) {
        BHT_EQ(out[i], i + c);
        host[i] = (float)i;
    }
    OK(cu.cuMemcpyHtoDAsync((uintptr_t)fx, host, sizeof host, stream));
    OK(cu.cuMemcpyDtoDAsync((uintptr_t)fy, (uintptr_t)fx, sizeof host, stream));
    OK(LAUNCH(LOAD(saxpy), 4, 256, 0, &fx, &fy, &a, &count));
    OK(cu.cuMemcpyDtoHAsync(host, (uintptr_t)fy, sizeof host, stream));
    BHT_EQ(host[999], 2997.f);
    /* 513 threads are too many for it, and 128 KiB too much until it is allowed. */
    CUfunction sum = LOAD(shared_sum);
    BHT_EQ(LAUNCH(sum, 1, 513, 4 * 513, &x, &z), CUDA_ERROR_INVALID_VALUE);
    BHT_EQ(LAUNCH(sum, 2, 500, 128 << 10, &x, &z), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 128 << 10));
    OK(LAUNCH(sum, 2, 500, 128 << 10, &x, &z));
    OK(cu.cuMemcpyDtoHAsync(out, (uintptr_t)z, 8, stream));
    BHT_EQ(out[0], 499 * 500 / 2);
    BHT_EQ(out[1], 999 * 1000 / 2 - 499 * 500 / 2);
    OK(set(z, 0, 1));
    OK(LAUNCH(LOAD(counter), 7, 11, 0, &z));
    OK(cu.cuMemcpyDtoHAsync(out, (uintptr_t)z, 4, stream));
    BHT_EQ(out[0], 77);
}

TEST(fake_cuda_parameters_have_offsets_and_come_in_either_form) {
    start();
    CUfunction function = LOAD(big_parameters);
    static const size_t places[][2] = {{0, 8}, {8, 1}, {12, 64}, {76, 1}};
    size_t offset, size;
    for (size_t i = 0; i < BHT_COUNT(places); i++) {
        OK(cu.cuFuncGetParamInfo(function, i, &offset, &size));
        BHT_EQ(offset, places[i][0]);
        BHT_EQ(size, places[i][1]);
    }
    struct {
        uint32_t *sum;
        uint8_t first;
        uint32_t big[16];
        uint8_t last;
    } all = {words, 100, {[0] = 1, [15] = 2}, 200};
    uint32_t out;
    OK(LAUNCH(function, 1, 1, 0, &all.sum, &all.first, all.big, &all.last));
    OK(cu.cuMemcpyDtoHAsync(&out, (uintptr_t)words, 4, stream));
    BHT_EQ(out, 303);
    all.last = 0;
    size = sizeof all;
    void *extra[] = {(void *)1, &all, (void *)2, &size, NULL};
    OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    OK(cu.cuMemcpyDtoHAsync(&out, (uintptr_t)words, 4, stream));
    BHT_EQ(out, 103);
    size = 12;
    BHT_EQ(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra),
           CUDA_ERROR_INVALID_VALUE);
}

/* -- faults --------------------------------------------------------------------------------------- */

static void fault_by_kernel(const void *cubin, const char *name) {
    uint64_t wild = 0xdead000000000010;
    uint32_t number = strcmp(name, "deep") == 0 ? 1u << 20 : 0;
    void *first = strcmp(name, "wild_write") == 0 ? (void *)&wild : (void *)&words;
    OK(LAUNCH(load(cubin, name), 2, 2, 0, first, &number));
}

static void fault_by_write(const void *unused, const char *name) {
    (void)unused;
    uint32_t *at = words;
    OK(allow(at, name[0] == 'r' ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE));
    OK(LAUNCH(LOAD(writes_first), 1, 1, 0, &at, &(uint32_t){1}));
}

static void fault_by_fill(const void *unused, const char *name) {
    (void)unused, (void)name;
    OK(allow(words, CU_MEM_ACCESS_FLAGS_PROT_READ));
    OK(set(words, 0, 1));
}

static void fault_by_stream_write(const void *unused, const char *name) {
    (void)unused, (void)name;
    OK(allow(words, CU_MEM_ACCESS_FLAGS_PROT_READ));
    OK(cu.cuStreamWriteValue64(stream, (uintptr_t)words, 1, 0));
}

TEST(fake_cuda_faults_stay_with_their_context) {
    static const struct {
        void (*cause)(const void *cubin, const char *name);
        const void *cubin;
        const char *name;
        CUresult error;
    } rows[] = {
        {fault_by_kernel, fake_cubin_wild_write, "wild_write", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_kernel, fake_cubin_null_read, "null_read", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_kernel, fake_cubin_deep, "deep", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_kernel, fake_cubin_trap, "trap", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {fault_by_kernel, fake_cubin_assert, "assert", CUDA_ERROR_ASSERT},
        {fault_by_kernel, fake_cubin_misaligned, "misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
#if defined(__x86_64__)
        {fault_by_kernel, fake_cubin_divide, "divide", CUDA_ERROR_LAUNCH_FAILED},
#endif
        {fault_by_write, NULL, "read", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_write, NULL, "none", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_fill, NULL, "", CUDA_ERROR_ILLEGAL_ADDRESS},
        {fault_by_stream_write, NULL, "", CUDA_ERROR_ILLEGAL_ADDRESS},
    };
    start();
    uint32_t out;
    CUmodule module;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        OK(set(words, 7, 1));
        OK(cu.cuCtxSynchronize());
        rows[i].cause(rows[i].cubin, rows[i].name);
        (void)set(words, 8, 1); /* never runs */
        const CUresult e = rows[i].error;
        BHT_EQ(cu.cuStreamSynchronize(stream), e);
        BHT_EQ(cu.cuStreamQuery(stream), e);
        BHT_EQ(cu.cuCtxSynchronize(), e);
        BHT_EQ(cu.cuMemcpyDtoHAsync(&out, (uintptr_t)words, 4, stream), e);
        BHT_EQ(cu.cuModuleLoadDataEx(&module, fake_cubin_add, 0, NULL, NULL), e);
        OK(cu.cuCtxDestroy(context));
        OK(cu.cuCtxCreate(&context, 0, 0));
        OK(cu.cuStreamCreate(&stream, 0));
        OK(allow(words, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        OK(cu.cuMemcpyDtoHAsync(&out, (uintptr_t)words, 4, stream));
        BHT_EQ(out, 7);
    }
}

DEATH_TEST(fake_cuda_crashes_elsewhere_are_the_processs, SIGSEGV) {
    signal(SIGSEGV, SIG_DFL);
    start();
    uintptr_t at = 16;
    __asm__("" : "+r"(at));
    *(volatile int *)at = 1;
}

static volatile sig_atomic_t handled;
static void note(int signo) {
    handled = signo;
    mprotect(words, BLOCK, PROT_READ | PROT_WRITE);
}

TEST(fake_cuda_crashes_elsewhere_reach_the_handler_before) {
    signal(SIGSEGV, note);
    start();
    OK(allow(words, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    *(volatile uint32_t *)words = 1;
    BHT_EQ(handled, SIGSEGV);
}

/* -- streams -------------------------------------------------------------------------------------- */

/* Returns when the kernel runs; it ends when the word is 0. */
static void start_endless(void) {
    OK(set(words, 0, 1));
    OK(cu.cuStreamSynchronize(stream));
    OK(LAUNCH(LOAD(endless), 1, 1, 0, &words));
    WAIT_UNTIL(__atomic_load_n(words, __ATOMIC_ACQUIRE) == 1, 10 * BHT_WAIT_SECOND_MS);
}

static void end_endless(void) {
    __atomic_store_n(words, 0, __ATOMIC_RELEASE);
}

TEST(fake_cuda_streams_run_in_order_behind_the_caller) {
    start();
    static _Alignas(4096) uint32_t page[1024];
    CUstream other;
    CUevent before, after;
    uint32_t source[4] = {1, 2, 3, 4}, out[4];
    float ms = -1;
    OK(cu.cuMemHostRegister(page, sizeof page, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cu.cuStreamQuery(stream));
    OK(cu.cuEventCreate(&before, 0));
    OK(cu.cuEventCreate(&after, 0));
    OK(cu.cuEventRecord(before, stream));
    CUfunction add = LOAD(add);
    start_endless();
    BHT_EQ(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cu.cuEventRecord(after, stream));
    BHT_EQ(cu.cuEventElapsedTime(&ms, before, after), CUDA_ERROR_NOT_READY);
    /* Ordinary memory is read at once, registered memory when its turn comes. */
    OK(cu.cuMemcpyHtoDAsync((uintptr_t)(words + 8), source, sizeof source, stream));
    source[0] = 100;
    page[0] = 5;
    OK(cu.cuMemcpyHtoDAsync((uintptr_t)(words + 12), page, 4, stream));
    page[0] = 6;
    uint32_t *x = words + 8, *y = words + 16, c = 10, count = 5;
    OK(LAUNCH(add, 1, 5, 0, &x, &y, &c, &count));
    c = 0; /* it has been read */
    OK(cu.cuMemcpyDtoHAsync(page + 16, (uintptr_t)y, 20, stream));
    OK(cu.cuStreamWriteValue64(stream, (uintptr_t)(page + 32), 77, 0));
    BHT_EQ(__atomic_load_n(&page[32], __ATOMIC_ACQUIRE), 0);
    OK(cu.cuStreamDestroy(other));
    end_endless();
    WAIT_UNTIL(__atomic_load_n(&page[32], __ATOMIC_ACQUIRE) == 77, 10 * BHT_WAIT_SECOND_MS);
    BHT_EQ(page[16], 11);
    BHT_EQ(page[20], 16);
    OK(cu.cuStreamSynchronize(stream));
    OK(cu.cuStreamQuery(stream));
    OK(cu.cuEventElapsedTime(&ms, before, after));
    BHT_GE(ms, 0.f);
    OK(cu.cuMemcpyDtoHAsync(out, (uintptr_t)y, sizeof out, stream));
    BHT_EQ(out[3], 14);
    OK(cu.cuMemHostUnregister(page));
    OK(cu.cuEventDestroy(before));
}

static void *end_it(void *unused) {
    end_endless();
    return unused;
}

TEST(fake_cuda_modules_load_when_kernels_have_ended) {
    start();
    start_endless();
    bht_start(end_it, NULL);
    LOAD(add);
    OK(cu.cuStreamQuery(stream));
    bht_join();
}

TEST(fake_cuda_destroying_a_context_ends_its_kernels) {
    start();
    start_endless();
    OK(set(words, 2, 1)); /* never runs */
    OK(cu.cuCtxDestroy(context));
    context = NULL;
    BHT_EQ(words[0], 1);
    BHT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

/* -- memory --------------------------------------------------------------------------------------- */

TEST(fake_cuda_has_primary_contexts_and_a_stack_of_current_ones) {
    CUcontext first, again, own;
    start();
    BHT_EQ(of_host.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    BHT_EQ(of_host.cuDevicePrimaryCtxRetain(&first, 1), CUDA_ERROR_INVALID_DEVICE);
    OK(of_host.cuDevicePrimaryCtxRetain(&first, 0));
    OK(of_host.cuDevicePrimaryCtxRetain(&again, 0));
    BHT_TRUE(first == again && first != context);
    OK(of_host.cuCtxPushCurrent(first));
    BHT_EQ(cu.cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE); /* it is the other context's */
    OK(of_host.cuCtxPopCurrent(&own));
    BHT_TRUE(own == first);
    OK(cu.cuStreamQuery(stream));
    BHT_EQ(of_host.cuCtxPopCurrent(&own), CUDA_ERROR_INVALID_CONTEXT);
    OK(of_host.cuDevicePrimaryCtxRelease(0));
    OK(of_host.cuCtxPushCurrent(first)); /* it lives until its last user lets go */
    OK(of_host.cuCtxPopCurrent(NULL));
    OK(of_host.cuDevicePrimaryCtxRelease(0));
    BHT_EQ(of_host.cuCtxPushCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(fake_cuda_knows_where_a_pointer_leads) {
    int number = -1;
    const uint32_t here = 0;
    start();
    OK(of_host.cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                     (uintptr_t)&words[100]));
    BHT_EQ(number, 0);
    BHT_EQ(of_host.cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                         (uintptr_t)&here),
           CUDA_ERROR_INVALID_VALUE);
}

TEST(fake_cuda_memory_is_noise_shared_and_counted) {
    start();
    size_t before, now, total;
    CUmemGenericAllocationHandle handle, imported;
    int fd;
    OK(cu.cuMemGetInfo(&before, &total));
    OK(cu.cuMemCreate(&handle, BLOCK, &on_device, 0));
    OK(cu.cuMemExportToShareableHandle(&fd, handle, 1, 0));
    BHT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    OK(cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1));
    close(fd);
    uint32_t *writable = map(handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    const uint32_t *readable = map(imported, CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemRelease(imported));
    BHT_EQ(readable[BLOCK / 4 - 1], 0xb5b5b5b5);
    OK(set(writable, 3, BLOCK / 4));
    OK(cu.cuStreamSynchronize(stream));
    BHT_EQ(readable[BLOCK / 4 - 1], 3);
    OK(cu.cuMemGetInfo(&now, &total));
    BHT_EQ(now, before - BLOCK); /* once, and until it is unmapped */
    unmap(writable);
    OK(cu.cuMemGetInfo(&now, &total));
    BHT_EQ(now, before);
    BHT_EQ(readable[0], 3);
    unmap((void *)(uintptr_t)readable);
}

static int sealed(size_t bytes) {
    int fd = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_EQ(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

TEST(fake_cuda_imports_nothing_but_its_memory) {
    start();
    CUmemGenericAllocationHandle handle;
    static const size_t sizes[] = {0, 4096, BLOCK, (size_t)4 << 30};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        int fd = sealed(sizes[i]);
        BHT_EQ(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1),
               CUDA_ERROR_INVALID_VALUE);
        close(fd);
    }
}

TEST(fake_cuda_registers_host_memory_with_its_access) {
    enum { READ_ONLY = CU_MEMHOSTREGISTER_READ_ONLY };
    static const struct {
        int protection;
        const char *supported;
        unsigned flags;
        CUresult result;
    } rows[] = {
        {PROT_READ | PROT_WRITE, "1", 0, CUDA_SUCCESS},
        {PROT_READ | PROT_WRITE, "1", READ_ONLY, CUDA_SUCCESS},
        {PROT_READ, "1", READ_ONLY, CUDA_SUCCESS},
        {PROT_READ, "1", 0, CUDA_ERROR_INVALID_VALUE},
        {PROT_NONE, "1", READ_ONLY, CUDA_ERROR_INVALID_VALUE},
        {PROT_READ, "0", READ_ONLY, CUDA_ERROR_NOT_SUPPORTED},
    };
    start();
    CUfunction function = LOAD(writes_first);
    int fd = sealed(8192);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        void *page = mmap(NULL, 8192, rows[i].protection, MAP_SHARED, fd, 0);
        CUdeviceptr at;
        setenv("FAKE_CUDA_READ_ONLY", rows[i].supported, 1);
        BHT_EQ(cu.cuMemHostRegister(page, 8192, rows[i].flags), rows[i].result);
        if (rows[i].result == CUDA_SUCCESS) {
            BHT_EQ(cu.cuMemHostRegister((char *)page + 4096, 4096, rows[i].flags),
                   CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
            OK(cu.cuMemHostGetDevicePointer(&at, page, 0));
            BHT_EQ(at, (uintptr_t)page);
            const CUresult written =
                rows[i].protection & PROT_WRITE ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
            OK(LAUNCH(function, 1, 1, 0, &page, &(uint32_t){9}));
            BHT_EQ(cu.cuStreamSynchronize(stream), written);
            BHT_EQ(cu.cuMemHostUnregister(page), written);
        } else {
            BHT_EQ(cu.cuMemHostUnregister(page), 713);
        }
        if (cu.cuCtxSynchronize() != CUDA_SUCCESS) {
            OK(cu.cuCtxDestroy(context));
            OK(cu.cuCtxCreate(&context, 0, 0));
            stream = NULL;
            function = LOAD(writes_first);
        }
        munmap(page, 8192);
    }
    close(fd);
}

/* -- images --------------------------------------------------------------------------------------- */

TEST(fake_cuda_refuses_images) {
    static const struct {
        const char *image;
        CUresult result;
        const char *log;
    } rows[] = {
#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
        {HEAD ".entry go(.u64, .u32, .u32) // a comment\n.body fill\n", CUDA_SUCCESS, ""},
        {HEAD "\n.entry go (.u64,.u64,.f32,.u32)\n  .body saxpy\n.entry b()\n.body hang",
         CUDA_SUCCESS, ""},
        {HEAD "/* .entry x(\n*/ .entry go(.param .align 4 .b8 a[12], .param .u64 /* , */ b)\n"
              "// .body none\n.body nothing\n",
         CUDA_SUCCESS, ""},
        {HEAD ".entry go(.param .b8 a[32764]) .body nothing\n", CUDA_SUCCESS, ""},
        {HEAD ".entry go(.param .b8 a[32765]) .body nothing\n", CUDA_ERROR_INVALID_PTX,
         "Entry function 'go' uses too much parameter space"},
        {HEAD ".entry go(.param .align 0 .b8 a) .body nothing\n", CUDA_ERROR_INVALID_PTX, "line 4"},
        {HEAD ".entry go(.param .b8 a[0]) .body nothing\n", CUDA_ERROR_INVALID_PTX, "line 4"},
        {".version 8.8", CUDA_SUCCESS, ""},
        {"// of a compiler\n\n.version 8.0\n", CUDA_SUCCESS, ""},
        {".version 8.9", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ""},
        {".version x", CUDA_ERROR_INVALID_PTX, "line 1"},
        {".version 8.0\n.target sm_100", CUDA_ERROR_INVALID_PTX, "line 2"},
        {HEAD "oops", CUDA_ERROR_INVALID_PTX, "line 4; fatal   : Parsing error near 'oops'"},
        {HEAD ".entry go(.u64, .q32)", CUDA_ERROR_INVALID_PTX, "line 4"},
        {HEAD ".entry go(.u64)\n.body fill", CUDA_ERROR_INVALID_PTX, "line 5"},
        {HEAD ".entry go()\n.body none", CUDA_ERROR_INVALID_PTX, "line 5"},
        {HEAD ".entry go()\n", CUDA_ERROR_INVALID_PTX, "line 5"},
        {HEAD ".body fill\n", CUDA_ERROR_INVALID_PTX, "line 4"},
        {HEAD ".extern .func (.param .b32 a) nobodys (.param .b64 b);\n", CUDA_ERROR_INVALID_PTX,
         "Unresolved extern function 'nobodys'"},
        {(const char *)fake_cubin_other_arch, CUDA_ERROR_NO_BINARY_FOR_GPU, ""},
        {"", CUDA_ERROR_INVALID_IMAGE, ""},
        {"no image", CUDA_ERROR_INVALID_IMAGE, ""},
#undef HEAD
    };
    start();
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        static char image[2 * sizeof fake_cubin_other_arch], log[256];
        const bool elf = rows[i].image[0] == 0x7f;
        CUmodule module;
        memcpy(image, rows[i].image,
               elf ? sizeof fake_cubin_other_arch : strlen(rows[i].image) + 1);
        void *values[] = {log, (void *)sizeof log};
        BHT_EQ(cu.cuModuleLoadDataEx(
                   &module, image, 2,
                   (int[]){CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, values),
               rows[i].result);
        BHT_STR_HAS(log, rows[i].log);
        BHT_EQ((uintptr_t)values[1], strlen(log));
        if (rows[i].result == CUDA_SUCCESS) {
            OK(cu.cuModuleUnload(module));
        }
    }
}

TEST(fake_cuda_loads_fat_binaries) {
    start();
    static unsigned char fatbin[16 + sizeof fake_cubin_add] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16};
    memcpy(fatbin + 16, fake_cubin_add, sizeof fake_cubin_add);
    load(fatbin, "add");
}

TEST(fake_cuda_runs_ptx) {
    start();
    static const char text[] = ".version 7.0\n.entry go(.u64, .u32, .u32)\n.body fill\n"
                               ".visible .entry bulkhead_warm_up(.param .u64 word)\n"
                               "{\n"
                               "    .reg .u64 %a;\n"
                               "    st.u32 [%a], 0x57415231; // {\n"
                               "    ret;\n"
                               "}\n";
    CUmodule module;
    CUfunction function;
    uint32_t value = 42, count = 3, *last = words + 3, out[4];
    OK(cu.cuModuleLoadDataEx(&module, text, 0, NULL, NULL));
    BHT_EQ(cu.cuModuleGetFunction(&function, module, "fill"), CUDA_ERROR_NOT_FOUND);
    OK(cu.cuModuleGetFunction(&function, module, "go"));
    OK(set(words, 0, 4));
    OK(LAUNCH(function, 1, 4, 0, &words, &value, &count));
    OK(cu.cuModuleGetFunction(&function, module, "bulkhead_warm_up"));
    OK(LAUNCH(function, 1, 1, 0, &last));
    OK(cu.cuMemcpyDtoHAsync(out, (uintptr_t)words, sizeof out, stream));
    BHT_EQ(out[2], 42);
    BHT_EQ(out[3], 0x57415231);
}

/* Whatever becomes of an image's bytes: it is loaded or refused, and what is loaded has functions or not. */
TEST(fake_cuda_survives_broken_images) {
    start();
    const size_t bytes = sizeof fake_cubin_shared_sum, room = (bytes + 4095) / 4096 * 4096;
    unsigned char *page =
        mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BHT_EQ(mprotect(page + room, 4096, PROT_NONE), 0);
    size_t offset, size, loaded = 0, refused = 0;
    CUmodule module;
    CUfunction function;
    uint32_t random = 1;
    for (uint32_t i = 0; i < 6000; i++) {
        /* It ends where the memory does: early, or with other bytes. */
        const size_t kept = i < 1000 ? i * bytes / 1000 : bytes;
        unsigned char *at = page + room - kept;
        memcpy(at, fake_cubin_shared_sum, kept);
        for (uint32_t flips = i < 1000 ? 0 : 1 + i % 3; flips > 0; flips--) {
            random = random * 1664525u + 1013904223u;
            /* Most of it is padding; the tables are at the beginning. */
            at[(random >> 8) % (i % 2 ? 1024 : bytes)] ^= (unsigned char)(1u << (random >> 29));
        }
        CUresult result = cu.cuModuleLoadDataEx(&module, at, 0, NULL, NULL);
        if (result != CUDA_SUCCESS) {
            refused++;
            BHT_TRUE(result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU);
            continue;
        }
        loaded++;
        if (cu.cuModuleGetFunction(&function, module, "shared_sum") == CUDA_SUCCESS) {
            for (size_t p = 0; cu.cuFuncGetParamInfo(function, p, &offset, &size) == CUDA_SUCCESS;
                 p++) {
                BHT_LE(offset + size, 4096);
            }
        }
        OK(cu.cuModuleUnload(module));
    }
    BHT_GE(refused, 1000);
    BHT_GE(loaded, 100);
    munmap(page, room + 4096);
}

/* -- where it runs -------------------------------------------------------------------------------- */

TEST_WITH(fake_cuda_is_a_library, 0, BHT_ALLOW_MAPPINGS) {
    const char *folder = bht_folder();
    char path[256], command[600];
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    snprintf(command, sizeof command, "cp %s %s", BHT_FAKE_CUDA, path);
    BHT_EQ(system(command), 0);
    bht_put("FAKE_CUDA_MODE=2\nFAKE_CUDA_MEMORY=0x200000\n", "%s/fake_cuda.settings", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bhi_cuda_entry entry;
    size_t bytes;
    BHT_TRUE(library);
    *(void **)&entry = dlsym(library, "cuGetProcAddress_v2");
    load_api(entry);
    OK(cu.cuInit(0));
    OK(cu.cuDeviceTotalMem(&bytes, 0));
    BHT_EQ(bytes, BLOCK);
    BHT_EQ(cu.cuCtxCreate(&context, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    setenv("FAKE_CUDA_MODE", "0", 1); /* it comes first */
    OK(cu.cuCtxCreate(&context, 0, 0));
    OK(LAUNCH(LOAD(wild_write), 1, 1, 0, &(uint64_t){16}, &(uint32_t){1}));
    BHT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cu.cuCtxDestroy(context));
}

/* All that it calls once a context is there; any other call kills the child. */
static void allow_few_calls(void) {
    static const int calls[] = {
        SCMP_SYS(futex),          SCMP_SYS(mmap),
        SCMP_SYS(mremap),         SCMP_SYS(mprotect),
        SCMP_SYS(munmap),         SCMP_SYS(brk),
        SCMP_SYS(clock_gettime),  SCMP_SYS(clock_nanosleep),
        SCMP_SYS(rt_sigprocmask), SCMP_SYS(close),
        SCMP_SYS(fstat),          SCMP_SYS(newfstatat), /* of what is imported */
        SCMP_SYS(rt_sigreturn),   SCMP_SYS(exit_group),
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    for (size_t i = 0; i < BHT_COUNT(calls); i++) {
        const bool maps = calls[i] == SCMP_SYS(mmap) || calls[i] == SCMP_SYS(mprotect);
        BHT_EQ(seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], maps,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)),
               0); /* no new code */
    }
    BHT_EQ(seccomp_load(filter), 0);
}

/* Who sends it may be anybody, such as `bulkhead chaos`. */
TEST(fake_cuda_lets_a_sent_crash_end_the_process_behind_a_filter) {
    if (BHT_ASAN || BHT_TSAN) {
        return; /* they handle it themselves, and make calls of their own */
    }
    volatile bool *filtered =
        mmap(NULL, sizeof *filtered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_NE(filtered, MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        start();
        allow_few_calls();
        start_endless();
        for (*filtered = true;;) {
        }
    }
    WAIT_UNTIL(*filtered, 10000);
    BHT_EQ(kill(child, SIGSEGV), 0);
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_TRUE(WIFSIGNALED(status));
    BHT_EQ(WTERMSIG(status), SIGSEGV);
    munmap((void *)filtered, sizeof *filtered);
}

TEST(fake_cuda_runs_behind_a_filter) {
    if (BHT_ASAN || BHT_TSAN) {
        return; /* their runtimes make calls of their own */
    }
    pid_t child = fork();
    if (child == 0) {
        CUmemGenericAllocationHandle handle;
        uint32_t out, sum = 0;
        int fd;
        start();
        allow_few_calls();
        start_endless();
        end_endless();
        OK(cu.cuMemCreate(&handle, BLOCK, &on_device, 0));
        OK(cu.cuMemExportToShareableHandle(&fd, handle, 1, 0));
        OK(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1));
        uint32_t *imported = map(handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        OK(cu.cuMemRelease(handle));
        OK(cu.cuMemHostRegister(&sum, sizeof sum, 0));
        OK(LAUNCH(LOAD(counter), 4, 64, 0, &(void *){&sum}));
        OK(cu.cuStreamWriteValue64(stream, (uintptr_t)imported, 3, 0));
        OK(cu.cuMemcpyDtoHAsync(&out, (uintptr_t)imported, sizeof out, stream));
        BHT_EQ(sum + out, 4 * 64 + 3);
        unmap(imported);
        OK(LAUNCH(LOAD(null_read), 1, 1, 0, &words));
        BHT_EQ(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        _exit(0);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
}
