#include "worker/cuda/api.h"

#include <string.h>

const char *bhi_cuda_find(struct bhi_cuda_api *api, bhi_cuda_entry entry, int *out_since) {
    int status;
    void *found;
#define FIND(name, since, parameters)                                                              \
    *out_since = since;                                                                            \
    if (entry(#name, &found, since, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||       \
        !found) {                                                                                  \
        return #name;                                                                              \
    }                                                                                              \
    memcpy(&api->name, &found, sizeof found);
    BHI_CUDA_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}
