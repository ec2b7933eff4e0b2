/* Exceptions of C++ libraries. SPIRV-Cross and SPIRV-Tools have C interfaces whose functions throw
 * all the same: on modules that they did not expect, and where there is no memory. Without a handler
 * the process would abort. */
#ifndef BHI_WORKER_SPIRV_CATCHING_H
#define BHI_WORKER_SPIRV_CATCHING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bhi_caught { BHI_CAUGHT_NOTHING, BHI_CAUGHT_NO_MEMORY, BHI_CAUGHT_OTHER };

/* Calls |call| with |data|. If it throws, |text| gets what the exception says. The sources of
 * functions through which an exception may pass are compiled with -fexceptions, and these functions
 * own nothing at that moment. */
enum bhi_caught bhi_catching(void (*call)(void *), void *data, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
