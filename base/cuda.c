#include "base/cuda.h"

#include <string.h>

#define FIND(name, since, parameters)                                                              \
    *out_since = since;                                                                            \
    if (entry(#name, &found, since, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||       \
        !found) {                                                                                  \
        return #name;                                                                              \
    }                                                                                              \
    memcpy(&api->name, &found, sizeof found);

const char *bhi_cuda_find(struct bhi_cuda_api *api, bhi_cuda_entry entry, int *out_since) {
    int status;
    void *found;
    BHI_CUDA_FUNCTIONS(FIND)
    return NULL;
}

const char *bhi_cuda_find_host(struct bhi_cuda_host_api *api, bhi_cuda_entry entry,
                               int *out_since) {
    int status;
    void *found;
    BHI_CUDA_HOST_FUNCTIONS(FIND)
    return NULL;
}
