/* The kernels of a chaos run are compiled into the program, so it needs no other files. */
#ifndef BHI_CHAOS_ENGINE_KERNELS_H
#define BHI_CHAOS_ENGINE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t bhi_embedded_chaos_work[], bhi_embedded_hang[], bhi_embedded_memory_bomb[];
extern const size_t bhi_embedded_chaos_work_size, bhi_embedded_hang_size,
    bhi_embedded_memory_bomb_size;

/* For CUDA, as PTX with a NUL at its end: chaos_work, chaos_hang, chaos_illegal. */
extern const char bhi_chaos_image[];
extern const size_t bhi_chaos_image_size;

#endif
