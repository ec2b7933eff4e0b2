/* What tests of the CUDA backend alone use besides rig.h. */
#ifndef BACKEND_RIG_CUDA_H
#define BACKEND_RIG_CUDA_H

#include "rig.h"

#include "worker/cuda/backend.h"

/* The driver: the fake one, or on a GPU the real one. */
bool rig_cuda_is_fake(void);
/* PTX with the entry point |name|, of those in rig_cuda.c. */
const char *rig_ptx(const char *name);
void rig_ptx_kernel(uint64_t id, const char *name);

#endif
