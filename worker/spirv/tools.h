/* SPIRV-Tools' C interface. Its header defines a constant, which in C becomes an object in each
 * source that includes it. Here it is weak, so that several sources may include it. */
#ifndef BHI_WORKER_SPIRV_TOOLS_H
#define BHI_WORKER_SPIRV_TOOLS_H

#pragma weak kDefaultMaxIdBound
#include <spirv-tools/libspirv.h>

#endif
