/* Is a kernel's image whole? The driver trusts the sizes in it, and reads beyond what is cut short. */
#ifndef BHI_WORKER_CUDA_IMAGE_H
#define BHI_WORKER_CUDA_IMAGE_H

#include <stddef.h>

/* |size| bytes of PTX text, of a cubin (ELF) or of a fat binary. Returns NULL, or what is wrong with
 * them. */
const char *bhi_cuda_image_check(const void *image, size_t size);

#endif
