/* What the CUDA backend makes of what a driver answers: numbers, and errors of calls that rarely fail. */
#include "rig_cuda.h"
#include "worker/cuda/result.h"

#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1 };

static struct bhi_cuda_backend *cuda(void) {
    return bhi_cuda_of(rig.backend);
}

static struct bhi_cuda_api *api(void) {
    return &cuda()->device.api;
}

static size_t free_bytes(void) {
    size_t available, total;
    BHT_EQ(api()->cuMemGetInfo(&available, &total), CUDA_SUCCESS);
    return available;
}

/* -- launches --------------------------------------------------------------------------------- */

static int kernel_threads, kernel_shared;
static CUresult shared_result;

static CUresult tell_attribute(int *value, int attribute, CUfunction function) {
    const bool threads = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    *value = threads ? kernel_threads : kernel_shared;
    return threads ? CUDA_SUCCESS : shared_result;
}

TEST(launches_within_limits) {
    static const struct {
        uint32_t groups[3], block[3];
        int threads, shared; /* of the kernel */
        uint32_t dynamic;
        bh_reason reason; /* BH_REASON_NONE: it runs */
        const char *text;
    } rows[] = {
        {{1, 1, 1}, {64, 1, 1}, 64, 0, 0, BH_REASON_NONE, ""},
        {{1, 65536, 1}, {64, 1, 1}, 1024, 0, 0, BH_REASON_WORKGROUPS, "65536"},
        {{1, 1, 1}, {1, 1, 65}, 1024, 0, 0, BH_REASON_DEVICE_LIMIT, "threads of a block in z: 65"},
        {{1, 1, 1}, {32, 32, 2}, 4096, 0, 0, BH_REASON_DEVICE_LIMIT, "threads of a block: 2048"},
        {{1, 1, 1},
         {64, 1, 1},
         63,
         0,
         0,
         BH_REASON_DEVICE_LIMIT,
         "threads of a block of kernel \"k1\": 64"},
        {{1, 1, 1},
         {64, 1, 1},
         1024,
         1 << 20,
         16,
         BH_REASON_DEVICE_LIMIT,
         "bytes of shared memory: 1048592"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_open_usual();
        api()->cuFuncGetAttribute = tell_attribute;
        kernel_threads = rows[i].threads;
        kernel_shared = rows[i].shared;
        rig_add_kernel(ADD);
        rig_buffer(1, 1024);
        rig_make(2, 1024);
        rig.shared_bytes = rows[i].dynamic;
        rig_begin();
        rig_add(ADD, 1, 2, 1);
        struct bhi_cmd_dispatch *dispatch = (void *)(rig.records[0] + 1);
        dispatch->groups_x = rows[i].groups[0];
        dispatch->groups_y = rows[i].groups[1];
        dispatch->groups_z = rows[i].groups[2];
        dispatch->block_x = rows[i].block[0];
        dispatch->block_y = rows[i].block[1];
        dispatch->block_z = rows[i].block[2];
        if (rows[i].reason == BH_REASON_NONE) {
            rig_run_ok();
        } else {
            rig_run_fails(BH_LIMIT_EXCEEDED, 0, rows[i].text);
            BHT_EQ(rig.errors[0].told.reason, rows[i].reason);
        }
    }
}

static int allowed_shared;
static CUresult allow_shared(CUfunction function, int attribute, int value) {
    allowed_shared = value;
    return CUDA_SUCCESS;
}

/* What a kernel has of its own counts for what is there without asking. */
TEST(shared_memory_is_asked_for_where_it_must_be) {
    uint32_t bytes[] = {9152, 9153};
    rig_add_kernel(ADD);
    rig_buffer(1, 1024);
    rig_make(2, 1024);
    api()->cuFuncGetAttribute = tell_attribute;
    api()->cuFuncSetAttribute = allow_shared;
    kernel_threads = 1024;
    kernel_shared = 40000;
    for (size_t i = 0; i < BHT_COUNT(bytes); i++) {
        allowed_shared = 0;
        rig.shared_bytes = bytes[i];
        rig_begin();
        rig_add(ADD, 1, 2, 1);
        rig_run_ok();
        BHT_EQ(allowed_shared, i == 0 ? 0 : 9153);
    }
}

static size_t parameters, parameter_size;
static CUresult tell_parameter(CUfunction function, size_t index, size_t *offset, size_t *size) {
    *offset = index * parameter_size;
    *size = parameter_size;
    return index < parameters ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static unsigned loads, unloads;
static CUresult (*real_load)(CUmodule *, const void *, unsigned, int *, void **);
static CUresult (*real_unload)(CUmodule);
static CUresult count_load(CUmodule *a, const void *b, unsigned c, int *d, void **e) {
    loads++;
    return real_load(a, b, c, d, e);
}
static CUresult count_unload(CUmodule module) {
    unloads++;
    return real_unload(module);
}

static void count_modules(void) {
    loads = unloads = 0;
    real_load = api()->cuModuleLoadDataEx;
    real_unload = api()->cuModuleUnload;
    api()->cuModuleLoadDataEx = count_load;
    api()->cuModuleUnload = count_unload;
}

/* A kernel that can never be launched is not loaded again, and nothing of it stays. */
TEST(parameters_within_limits) {
    static const struct {
        size_t count, size;
        const char *text;
    } rows[] = {
        {257, 8, "parameters: 257"},
        {1, 4097, "bytes of a parameter: 4097"},
        {1, 0, "bytes of a parameter: 0"},
        {256, 8, NULL},
        {1, 4096, NULL},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_open_usual();
        count_modules();
        api()->cuFuncGetParamInfo = tell_parameter;
        parameters = rows[i].count;
        parameter_size = rows[i].size;
        rig_add_kernel(ADD);
        for (int twice = 0; twice < 2; twice++) {
            rig_begin();
            rig_prepare(ADD);
            if (rows[i].text) {
                rig_run_fails(BH_LIMIT_EXCEEDED, 0, rows[i].text);
            } else {
                rig_run_ok();
            }
        }
        BHT_EQ(loads, 1);
        BHT_EQ(unloads, rows[i].text ? 1 : 0);
    }
}

TEST(attributes_that_cannot_be_had) {
    rig_add_kernel(ADD);
    count_modules();
    api()->cuFuncGetAttribute = tell_attribute;
    kernel_threads = 1024;
    shared_result = CUDA_ERROR_UNKNOWN;
    for (unsigned times = 1; times <= 2; times++) { /* it may be another time */
        rig_begin();
        rig_prepare(ADD);
        rig_run_fails(BH_CUDA, 0, "cuFuncGetAttribute: CUDA_ERROR_UNKNOWN");
        BHT_EQ(loads, times);
        BHT_EQ(unloads, times);
    }
}

/* Where there is no compiler, none comes. */
TEST(a_missing_compiler_is_asked_once) {
    if (!rig_cuda_is_fake()) {
        return;
    }
    rig_add_kernel(ADD);
    count_modules();
    setenv("FAKE_CUDA_PTX", "221", 1);
    for (int twice = 0; twice < 2; twice++) {
        rig_begin();
        rig_prepare(ADD);
        rig_run_fails(BH_COMPILE_FAILED, 0, "libnvidia-ptxjitcompiler");
    }
    unsetenv("FAKE_CUDA_PTX");
    BHT_EQ(loads, 1);
}

/* Where parameters lie among the push bytes: at multiples of their alignment, which is 16 at most. */
TEST(places_of_parameters) {
    static const struct {
        uint32_t sizes[3], bound; /* a bit each */
        uint32_t places[3], bytes;
    } rows[] = {
        {{4, 8, 4}, 0, {0, 8, 16}, 20},   {{4, 32, 4}, 0, {0, 16, 48}, 52},
        {{8, 2, 1}, 0, {0, 8, 10}, 12},   {{4, 8, 4}, 2, {0, 0, 4}, 8},
        {{4, 12, 16}, 0, {0, 4, 16}, 32}, {{4, 4, 4}, 7, {0, 0, 0}, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_cuda_kernel kernel = {.parameter_count = 3};
        static const uint64_t address;
        static const uint8_t push[64];
        const uint64_t *bound[3];
        const void *values[3];
        struct bhi_error error;
        for (int k = 0; k < 3; k++) {
            kernel.parameters[k].size = rows[i].sizes[k];
            bound[k] = rows[i].bound >> k & 1 ? &address : NULL;
        }
        BHT_TRUE(bhi_cuda_kernel_place(&kernel, bound, push, rows[i].bytes, values, &error));
        for (int k = 0; k < 3; k++) {
            BHT_EQ(values[k],
                   bound[k] ? (const void *)bound[k] : (const void *)(push + rows[i].places[k]));
        }
        BHT_TRUE(!bhi_cuda_kernel_place(&kernel, bound, push, rows[i].bytes + 4, values, &error));
        BHT_EQ(error.told.limit, rows[i].bytes);
    }
}

/* -- memory ----------------------------------------------------------------------------------- */

static CUresult no_memset(CUdeviceptr a, unsigned char b, size_t c, CUstream d) {
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_export(void *fd, CUmemGenericAllocationHandle a, int b, unsigned long long c) {
    *(int *)fd = 0;
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_create(CUmemGenericAllocationHandle *a, size_t b, const CUmemAllocationProp *c,
                          unsigned long long d) {
    return CUDA_ERROR_UNKNOWN;
}

/* Memory that could not be cleared has what others have left in it. */
TEST(memory_that_cannot_be_cleared_or_shared_is_not_made) {
    const struct bhi_cuda_api good = *api();
    const size_t before = free_bytes();
    for (int which = 0; which < 2; which++) {
        if (which == 0) {
            api()->cuMemsetD8Async = no_memset;
        } else {
            api()->cuMemExportToShareableHandle = no_export;
        }
        BHT_EQ(bhi_backend_make(rig.backend, 3, 1024), -1);
        *api() = good;
        BHT_EQ(free_bytes(), before);
        rig_begin();
        rig_fill(3, 0, 4, 1);
        rig_run_fails(BH_CUDA, 0, which == 0 ? "cuMemsetD8Async" : "cuMemExportToShareableHandle");
        rig_detach(3);
    }
}

TEST(a_stage_that_cannot_be_made) {
    rig_buffer(1, 1024);
    api()->cuMemCreate = no_create;
    rig_begin();
    rig_fill(1, 0, 4, 1);
    rig_run_fails(BH_CUDA, 0, "cuMemCreate: CUDA_ERROR_UNKNOWN");
}

TEST(sizes_that_cannot_be_rounded) {
    struct bhi_cuda_memory memory;
    const char *call;
    BHT_EQ(bhi_cuda_memory_make(&cuda()->device, &memory, UINT64_MAX, -1, &call),
           CUDA_ERROR_OUT_OF_MEMORY);
    BHT_STR_EQ(call, "rounding a size");
}

static CUresult no_name(CUresult error, const char **name) {
    *name = NULL;
    return CUDA_SUCCESS;
}

TEST(an_error_without_a_name) {
    api()->cuGetErrorName = no_name;
    BHT_STR_EQ(bhi_cuda_name(api(), CUDA_ERROR_UNKNOWN), "an unnamed CUresult");
}

/* -- devices ---------------------------------------------------------------------------------- */

static CUresult (*real_get)(CUdevice *, int);
static CUresult no_first(CUdevice *device, int ordinal) {
    return ordinal == 0 ? CUDA_ERROR_INVALID_DEVICE : real_get(device, ordinal);
}

TEST(devices_that_are_told) {
    struct bhi_msg_device devices[3] = {0};
    if (!rig_cuda_is_fake()) {
        return;
    }
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    real_get = api()->cuDeviceGet;
    api()->cuDeviceGet = no_first;
    BHT_EQ(bhi_cuda_device_messages(api(), 2, devices, NULL, 2), 2);
    unsetenv("FAKE_CUDA_DEVICES");
    for (uint32_t i = 0; i < 2; i++) {
        BHT_EQ(devices[i].index, i + 1);
        BHT_EQ(devices[i].count, 4);
        BHT_EQ(devices[i].chosen, i == 1);
        BHT_EQ(devices[i].api_version, 12u << 22 | 8u << 12);
    }
    BHT_EQ(devices[2].count, 0);
}
