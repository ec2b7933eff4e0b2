/* SPIRV-Tools' C interface. Its header defines a constant, which in C is an object of each source
 * that includes it: weak, so that there may be several. */
#ifndef BHI_WORKER_SPIRV_TOOLS_H
#define BHI_WORKER_SPIRV_TOOLS_H

#pragma weak kDefaultMaxIdBound
#include <spirv-tools/libspirv.h>

#endif
