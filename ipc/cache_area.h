/* Where a worker's pipeline cache is handed over: a sealed memfd of one page for this header, then
 * room for the driver's bytes. The opener fills it before the worker has it; from then on the
 * worker writes there, and nobody looks before it is confirmed dead. Each number that another
 * process may have written is copied once, then checked. */
#ifndef BHI_IPC_CACHE_AREA_H
#define BHI_IPC_CACHE_AREA_H

#include <stdatomic.h>
#include <stdint.h>

#define BHI_CACHE_AREA_HEADER 4096u /* bytes */
#define BHI_CACHE_ROOM        (UINT64_C(32) << 20)

struct bhi_cache_area {
    uint64_t bytes;         /* of the driver's, behind the header */
    _Atomic uint64_t stamp; /* 0: as the opener left it; odd: the worker is writing */
};

#endif
