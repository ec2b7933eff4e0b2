/* Names of SPIR-V's enumerants, from the header of this build. */
#ifndef BHI_WORKER_SPIRV_NAMES_H
#define BHI_WORKER_SPIRV_NAMES_H

#include <stdint.h>

/* "unnamed" if the header does not have it. */
const char *bhi_capability_name(uint32_t capability);
const char *bhi_execution_model_name(uint32_t model);

#endif
