#include "worker/cuda/kernel.h"

#include "base/text.h"
#include "worker/cuda/image.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT   16u
#define FREE_SHARED 49152u /* more has to be allowed with an attribute */
#define LOG_BYTES   1024u

struct bhi_cuda_kernel *bhi_cuda_kernel_new(const struct bhi_msg_kernel_create *info,
                                            const void *code) {
    struct bhi_cuda_kernel *k = calloc(1, sizeof *k);
    if (!k) {
        return NULL;
    }
    k->image_bytes = (size_t)info->code_bytes;
    k->image = malloc(k->image_bytes + 1);
    if (!k->image) {
        free(k);
        return NULL;
    }
    memcpy(k->image, code, k->image_bytes);
    k->image[k->image_bytes] = '\0';
    k->id = info->kernel;
    memcpy(k->name, info->name, sizeof k->name);
    memcpy(k->entry, info->entry, sizeof k->entry);
    if (info->format != BHI_KERNEL_IMAGE) {
        BHI_ERROR(&k->error, BH_REASON_NEEDS_VULKAN, bhi_cuda_kernel_label(k));
    }
    return k;
}

void bhi_cuda_kernel_free(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k) {
    if (k) {
        if (k->module) {
            (void)d->api.cuModuleUnload(k->module);
        }
        free(k->image);
        free(k);
    }
}

const char *bhi_cuda_kernel_label(const struct bhi_cuda_kernel *k) {
    return k->name[0] != '\0' ? k->name : k->entry;
}

/* What a result of loading means for the kernel. */
static const char *meaning(CUresult result) {
    switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
        return "it is no image that this driver reads";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return "it has no code for this GPU's architecture, and no PTX";
    case CUDA_ERROR_INVALID_PTX:
        return "its PTX is not valid";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "its PTX is newer than this driver";
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        return "the driver's compiler for PTX (libnvidia-ptxjitcompiler) is not there";
    default:
        return NULL;
    }
}

static void refuse(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k, CUresult result,
                   const char *log) {
    const char *why = meaning(result);
    if (!why) {
        bhi_error_cuda(&k->error, &d->api, result, "cuModuleLoadDataEx");
        return;
    }
    char line[LOG_BYTES];
    bhi_text_sanitise(line, sizeof line, log, strnlen(log, LOG_BYTES));
    BHI_ERROR(&k->error, BH_REASON_NONE,
              .status = result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ? BH_COMPILE_FAILED
                                                                    : BH_INVALID_KERNEL,
              .value = (uint64_t)result,
              .text = BHI_SAY("kernel \"%.63s\": %s (%s)%s%s", bhi_cuda_kernel_label(k), why,
                              bhi_cuda_name(&d->api, result), line[0] ? ": " : "", line));
}

static bool load_module(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k) {
    const char *broken = bhi_cuda_image_check(k->image, k->image_bytes);
    if (broken) {
        BHI_ERROR_SAY(&k->error, BH_REASON_KERNEL_RULE, "kernel \"%.63s\": %s",
                      bhi_cuda_kernel_label(k), broken);
        return false;
    }
    char log[LOG_BYTES] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const CUresult result = d->api.cuModuleLoadDataEx(&k->module, k->image, 2, options, values);
    if (result != CUDA_SUCCESS) {
        k->module = NULL;
        refuse(d, k, result, log);
    }
    return result == CUDA_SUCCESS;
}

static bool find_function(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k) {
    CUresult result = d->api.cuModuleGetFunction(&k->function, k->module, k->entry);
    if (result == CUDA_ERROR_NOT_FOUND) {
        BHI_ERROR_SAY(&k->error, BH_REASON_KERNEL_RULE,
                      "kernel \"%.63s\": its image has no entry point \"%.200s\"",
                      bhi_cuda_kernel_label(k), k->entry);
        return false;
    }
    int threads = 0, shared = 0;
    const char *call = "cuModuleGetFunction";
    if (result == CUDA_SUCCESS) {
        call = "cuFuncGetAttribute";
        result = d->api.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                           k->function);
    }
    if (result == CUDA_SUCCESS) {
        result =
            d->api.cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k->function);
    }
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(&k->error, &d->api, result, call);
        return false;
    }
    k->max_threads = (uint32_t)threads;
    k->static_shared = (uint32_t)shared;
    k->dynamic_shared = FREE_SHARED > k->static_shared ? FREE_SHARED - k->static_shared : 0;
    return true;
}

static bool list_parameters(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k) {
    size_t offset, size;
    uint32_t count = 0;
    while (d->api.cuFuncGetParamInfo(k->function, count, &offset, &size) == CUDA_SUCCESS) {
        if (count == BHI_CUDA_PARAMETERS || size == 0 || size > BHI_CUDA_PUSH_BYTES) {
            BHI_ERROR(&k->error, BH_REASON_DEVICE_LIMIT,
                      count == BHI_CUDA_PARAMETERS ? "parameters" : "bytes of a parameter",
                      .value = count == BHI_CUDA_PARAMETERS ? count + 1 : size,
                      .limit =
                          count == BHI_CUDA_PARAMETERS ? BHI_CUDA_PARAMETERS : BHI_CUDA_PUSH_BYTES,
                      .text = "of a kernel");
            return false;
        }
        k->parameters[count++] =
            (struct bhi_cuda_parameter){.offset = (uint32_t)offset, .size = (uint32_t)size};
    }
    k->parameter_count = count;
    return true;
}

bool bhi_cuda_kernel_load(const struct bhi_cuda_device *d, struct bhi_cuda_kernel *k,
                          struct bhi_error *error) {
    if (k->error.status == BH_OK && !k->module &&
        (!load_module(d, k) || !find_function(d, k) || !list_parameters(d, k)) && k->module) {
        (void)d->api.cuModuleUnload(k->module);
        k->module = NULL;
    }
    const bh_status status = k->error.status;
    if (status != BH_OK) {
        *error = k->error;
    }
    if (status != BH_INVALID_KERNEL && status != BH_COMPILE_FAILED && status != BH_LIMIT_EXCEEDED) {
        k->error.status = BH_OK; /* it is not the kernel's: the next use tries again */
    }
    return status == BH_OK;
}

static bool too_many(struct bhi_error *error, const char *what, uint64_t value, uint64_t limit,
                     const char *whose) {
    BHI_ERROR(error, BH_REASON_DEVICE_LIMIT, what, .value = value, .limit = limit, .text = whose);
    return false;
}

/* Each launch comes here, so |what| is made only if it is needed. */
#define WITHIN(value, limit, what, whose)                                                          \
    ((value) <= (limit) || too_many(error, what, value, limit, whose))

bool bhi_cuda_kernel_fits(const struct bhi_cuda_device *d, const struct bhi_cuda_kernel *k,
                          const struct bhi_cmd_dispatch *dispatch, struct bhi_error *error) {
    const uint32_t groups[3] = {dispatch->groups_x, dispatch->groups_y, dispatch->groups_z};
    const uint32_t block[3] = {dispatch->block_x, dispatch->block_y, dispatch->block_z};
    const uint64_t shared = (uint64_t)k->static_shared + dispatch->shared_bytes;
    uint64_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        const char name[] = {"xyz"[axis], '\0'};
        if (groups[axis] > d->max_grid[axis]) {
            BHI_ERROR(error, BH_REASON_WORKGROUPS, name, .value = groups[axis],
                      .limit = d->max_grid[axis], .text = "CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM");
            return false;
        }
        if (block[axis] == 0) {
            BHI_ERROR(error, BH_REASON_BLOCK, bhi_cuda_kernel_label(k),
                      .text = BHI_SAY("is a CUDA kernel: a launch says how many threads a block "
                                      "has, and this one has 0 in %s",
                                      name));
            return false;
        }
        if (!WITHIN(block[axis], d->max_block[axis], BHI_SAY("threads of a block in %s", name),
                    "CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM")) {
            return false;
        }
        threads *= block[axis];
    }
    return WITHIN(threads, d->max_threads, "threads of a block",
                  "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK") &&
           WITHIN(threads, k->max_threads,
                  BHI_SAY("threads of a block of kernel \"%.63s\"", bhi_cuda_kernel_label(k)),
                  "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK") &&
           WITHIN(shared, d->max_shared, "bytes of shared memory",
                  "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN");
}

bool bhi_cuda_kernel_place(const struct bhi_cuda_kernel *k, const uint64_t *const *bound,
                           const uint8_t *push, uint32_t push_bytes, const void **out_values,
                           struct bhi_error *error) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->parameter_count; i++) {
        const uint32_t size = k->parameters[i].size;
        const uint32_t lowest = size & -size;
        const uint32_t alignment = lowest < ALIGNMENT ? lowest : ALIGNMENT;
        if (bound[i]) {
            out_values[i] = bound[i];
            continue;
        }
        at = (at + alignment - 1) / alignment * alignment;
        out_values[i] = push + at; /* looked at only if there are as many bytes */
        at += size;
    }
    at = (at + 3) / 4 * 4; /* as all push bytes */
    if (at != push_bytes) {
        BHI_ERROR(error, BH_REASON_PUSH_BYTES, bhi_cuda_kernel_label(k), .value = push_bytes,
                  .limit = at);
        return false;
    }
    return true;
}
