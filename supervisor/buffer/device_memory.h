/* Buffers in device memory (D1 to D7). Such a buffer remembers the stream that it was made for,
 * which stands for device and tenant, and the bytes that the limits count for it.
 *
 * If the driver runs on the processor, the memory is host memory, from the pool, but the host gets
 * no pointer to it. */
#ifndef BHI_SUPERVISOR_BUFFER_DEVICE_MEMORY_H
#define BHI_SUPERVISOR_BUFFER_DEVICE_MEMORY_H

#include "supervisor/context/context.h"

struct bh_buffer;
struct bh_stream;

/* *out_device: |memory| (bh_memory) means device memory on |stream|. Blocks until the device is
 * known. No lock. */
bh_status bhi_device_memory_resolve(struct bh_stream *stream, uint64_t memory, const char *call,
                                    bool *out_device, bh_detail *detail);
/* As bhi_buffer_create, in memory of the stream's device, which is zero. Returns
 * BH_OUT_OF_DEVICE_MEMORY if a limit is exceeded (D6). No lock. */
bh_status bhi_buffer_make_device(struct bh_stream *stream, uint64_t size, const char *call,
                                 struct bh_buffer **out_buffer, bh_detail *detail);

#endif
