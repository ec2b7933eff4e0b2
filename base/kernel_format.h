/* What a kernel's code is (kernel_create.format). */
#ifndef BHI_BASE_KERNEL_FORMAT_H
#define BHI_BASE_KERNEL_FORMAT_H

enum bhi_kernel_format {
    BHI_KERNEL_SPIRV = 1, /* a SPIR-V module, for Vulkan */
    BHI_KERNEL_IMAGE = 2, /* PTX text, a cubin or a fatbin, for CUDA */
};

#endif
