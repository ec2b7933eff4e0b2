/* The kernels of a chaos run are compiled into the program, so it needs no other files. */
#ifndef BHI_CHAOS_ENGINE_KERNELS_H
#define BHI_CHAOS_ENGINE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t bhi_embedded_chaos_work[], bhi_embedded_hang[], bhi_embedded_memory_bomb[];
extern const size_t bhi_embedded_chaos_work_size, bhi_embedded_hang_size,
    bhi_embedded_memory_bomb_size;

#endif
