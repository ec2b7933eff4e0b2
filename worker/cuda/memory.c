#include "worker/cuda/memory.h"

#include <string.h>

CUresult bhi_cuda_memory_allow(const struct bhi_cuda_device *d, struct bhi_cuda_memory *m,
                               bool writable) {
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device},
        .flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ};
    const CUresult result = d->api.cuMemSetAccess(m->address, m->bytes, &access, 1);
    if (result == CUDA_SUCCESS) {
        m->writable = writable;
    }
    return result;
}

CUresult bhi_cuda_memory_make(const struct bhi_cuda_device *d, struct bhi_cuda_memory *m,
                              uint64_t bytes, int fd, const char **out_call) {
    const CUmemAllocationProp properties = bhi_cuda_properties(d);
    memset(m, 0, sizeof *m);
    m->bytes = (bytes + d->granularity - 1) / d->granularity * d->granularity;
    CUresult result;
    if (m->bytes < bytes) {
        *out_call = "rounding a size";
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (fd >= 0) {
        *out_call = "cuMemImportFromShareableHandle";
        result = d->api.cuMemImportFromShareableHandle(&m->handle, (void *)(uintptr_t)fd,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    } else {
        *out_call = "cuMemCreate";
        result = d->api.cuMemCreate(&m->handle, m->bytes, &properties, 0);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *out_call = "cuMemAddressReserve";
    result = d->api.cuMemAddressReserve(&m->address, m->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) {
        m->address = 0;
        (void)d->api.cuMemRelease(m->handle);
        return result;
    }
    *out_call = "cuMemMap";
    result = d->api.cuMemMap(m->address, m->bytes, 0, m->handle, 0);
    if (result != CUDA_SUCCESS) {
        (void)d->api.cuMemAddressFree(m->address, m->bytes);
        (void)d->api.cuMemRelease(m->handle);
        m->address = 0;
        return result;
    }
    *out_call = "cuMemSetAccess";
    result = bhi_cuda_memory_allow(d, m, false);
    if (result != CUDA_SUCCESS) {
        bhi_cuda_memory_free(d, m);
    }
    return result;
}

int bhi_cuda_memory_export(const struct bhi_cuda_device *d, const struct bhi_cuda_memory *m,
                           CUresult *out_result) {
    int fd = -1;
    *out_result = d->api.cuMemExportToShareableHandle(&fd, m->handle,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return *out_result == CUDA_SUCCESS ? fd : -1;
}

void bhi_cuda_memory_free(const struct bhi_cuda_device *d, struct bhi_cuda_memory *m) {
    if (m->address) {
        (void)d->api.cuMemUnmap(m->address, m->bytes);
        (void)d->api.cuMemAddressFree(m->address, m->bytes);
        (void)d->api.cuMemRelease(m->handle);
    }
    memset(m, 0, sizeof *m);
}
