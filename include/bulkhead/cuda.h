/* Buffers and the program's own CUDA: what a program that computes with CUDA itself (PyTorch, CuPy,
 * a library) does with the memory of a stream on a CUDA device, without a copy through the host.
 *
 * The library does not link CUDA. These calls load libcuda.so.1 into the program when they first
 * need it, and use the primary context of the buffer's GPU, as CUDA's runtime does; they make it if
 * it is not there, which takes a fifth of a second and some hundred MiB of the GPU. It lives while
 * there is a view, or while others use it. CUDA does not survive a fork. */
#ifndef BULKHEAD_CUDA_H
#define BULKHEAD_CUDA_H

#include <bulkhead/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A buffer in device memory, mapped into the program's CUDA. */
typedef struct bh_cuda_view bh_cuda_view;

/* Says which of the program's CUDA devices has the buffer: *out_device is the number that CUDA
 * knows it by in this process, whatever its number on the stream. Returns BH_OK, or
 *   BH_INVALID_ARGUMENT  the buffer is in host memory, or not on a CUDA device (NOT_ON_CUDA)
 *   BH_UNSUPPORTED       there is no libcuda.so.1, an old one, or a fork came first (NO_HOST_CUDA)
 *   BH_NO_DEVICE         CUDA_VISIBLE_DEVICES hides that GPU from the program (GPU_HIDDEN)
 *   BH_SYSTEM            a call of CUDA's failed; the message names call and error (HOST_CUDA) */
BH_API BH_MUST_USE bh_status bh_buffer_cuda_device(bh_buffer *buffer, int *out_device,
                                                   bh_detail *detail);

/* Maps a buffer into the program's CUDA. Waits as bh_buffer_map does for |intent|, which is
 * BH_MAP_READ or BH_MAP_READ_WRITE, at most |timeout_ns|: what was submitted before has ended then,
 * so no stream of the program has to wait for it. With BH_MAP_READ the GPU's page tables allow no
 * writing: a kernel of the program that writes there gets CUDA_ERROR_ILLEGAL_ADDRESS.
 *
 * As with bh_buffer_map, later submissions do not wait for the program. It must not submit what
 * writes the buffer, nor what reads it while the program writes, until the view is released. What
 * the view shows is what a worker has computed: like all of a worker's results it may be wrong, and
 * a compromised worker may change it until its death is confirmed.
 *
 * Size, GPU and descriptor are the library's own record, not a worker's word. Memory that turns out
 * smaller, or elsewhere, is refused (HOST_CUDA).
 *
 * The view keeps the memory, also after the buffer's last reference and the context have gone. The
 * death of a worker changes nothing for it. Blocks. Thread: any; the thread's current CUDA context
 * stays what it was. Returns what bh_buffer_cuda_device and bh_buffer_map return. */
BH_API BH_MUST_USE bh_status bh_cuda_view_create(bh_buffer *buffer, bh_map_intent intent,
                                                 uint64_t timeout_ns, bh_cuda_view **out_view,
                                                 bh_detail *detail);
/* Returns the first byte's address on the device (CUdeviceptr); 0 for NULL and an empty buffer. */
BH_API uint64_t bh_cuda_view_address(const bh_cuda_view *view);
/* Ends the view: waits for all work of the program in the GPU's primary context, and unmaps. Work
 * in other contexts must have ended before. Blocks. NULL is fine. In a forked child it only
 * frees. */
BH_API void bh_cuda_view_release(bh_cuda_view *view);

/* Overwrites |size| bytes of the buffer from |offset| with those at |address|, memory of a CUDA
 * device in this process. First waits for all work of the program in that device's primary context,
 * which has written them, and for what uses the buffer, at most |timeout_ns|; returns when the copy
 * is done. To a buffer in host memory it goes over the bus, to one on the same GPU it stays there.
 * Poisoned content of host memory becomes CLEAN if all of it is written; that of device memory is
 * refused. Blocks. Returns what bh_cuda_view_create returns, or BH_INVALID_ARGUMENT if the range
 * does not fit the buffer, |address| is no memory of a CUDA device, or of another one than the
 * buffer's: copy to a buffer in host memory then, and from there (BH_COMMAND_COPY). */
BH_API BH_MUST_USE bh_status bh_buffer_write_cuda(bh_buffer *buffer, uint64_t offset,
                                                  uint64_t address, uint64_t size,
                                                  uint64_t timeout_ns, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
