/* cuGetProcAddress_v2, the one function that the library exports. */
#include "fake_cuda.h"

#include <string.h>

static const struct {
    const char *name;
    int since;
    void (*function)(void);
} functions[] = {
#define ROW(name, since, parameters) {#name, since, (void (*)(void))fake_##name},
    BHI_CUDA_FUNCTIONS(ROW) BHI_CUDA_HOST_FUNCTIONS(ROW)
#undef ROW
};

enum { FOUND, UNKNOWN, TOO_NEW };

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char *name, void **out,
                                                                    int version, uint64_t flags,
                                                                    int *status);

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                             int *status) {
    int unused, driver = 0;
    status = status ? status : &unused;
    if (!name || !out || flags > 2 || version < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = NULL;
    *status = UNKNOWN;
    fake_cuDriverGetVersion(&driver);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) != 0 || functions[i].since > driver) {
            continue;
        }
        if (functions[i].since > version) {
            *status = TOO_NEW;
            break;
        }
        memcpy(out, &functions[i].function, sizeof *out);
        *status = FOUND;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}
