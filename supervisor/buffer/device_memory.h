/* Buffers in device memory (D1 to D7). Beside its bytes such a buffer has the stream that it was
 * made for, which stands for device and tenant, and what its limits count.
 *
 * On a driver that runs on the processor the bytes are those of a buffer in host memory, with its
 * block of the pool, and the host is given no pointer to them. */
#ifndef BHI_SUPERVISOR_BUFFER_DEVICE_MEMORY_H
#define BHI_SUPERVISOR_BUFFER_DEVICE_MEMORY_H

#include "supervisor/context/context.h"

struct bh_buffer;
struct bh_stream;

/* What |memory| (bh_memory) stands for on |stream|. Blocks until the device is known. No lock. */
bh_status bhi_device_memory_resolve(struct bh_stream *stream, uint64_t memory, const char *call,
                                    bool *out_device, bh_detail *detail);
/* As bhi_buffer_create, in memory of the stream's device; zero. BH_OUT_OF_DEVICE_MEMORY: it is over
 * a limit (D6). No lock. */
bh_status bhi_buffer_make_device(struct bh_stream *stream, uint64_t size, const char *call,
                                 struct bh_buffer **out_buffer, bh_detail *detail);

#endif
