/* The memory through which a worker's pipeline cache is passed: a sealed memfd with one page for
 * this header, then room for the driver's data. The opener fills it before the worker gets it. From
 * then on the worker writes it, and no process reads it before the worker is confirmed dead. A
 * number that another process may have written is copied once, then checked. */
#ifndef BHI_IPC_CACHE_AREA_H
#define BHI_IPC_CACHE_AREA_H

#include <stdatomic.h>
#include <stdint.h>

#define BHI_CACHE_AREA_HEADER 4096u /* bytes */
#define BHI_CACHE_ROOM        (UINT64_C(32) << 20)

struct bhi_cache_area {
    uint64_t bytes;         /* of the driver's data, after the header */
    _Atomic uint64_t stamp; /* 0: as the opener left it; odd: the worker writes */
};

#endif
