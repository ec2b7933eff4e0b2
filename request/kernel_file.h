/* The file that a kernel is in: SPIR-V, GLSL, HLSL, CUDA C++, or an image for CUDA. */
#ifndef BHI_REQUEST_KERNEL_FILE_H
#define BHI_REQUEST_KERNEL_FILE_H

#include "request/language.h"
#include "request/source.h"

/* What is needed to make a kernel. */
struct bhi_kernel_file {
    const char *path; /* "-" is standard input */
    const char *name; /* what it is called, with the ending that says its language; NULL: |path| */
    const void *code;
    size_t size;
    enum bhi_language language; /* as given; UNKNOWN: not given */
    struct bhi_source source;   /* this and the next are only for sources */
    uint64_t deadline_ns;       /* of the compile; 0: the default */
    bool takes_cuda;            /* otherwise images and sources for CUDA are refused */
    const char *entry;          /* this and the next are for a judge; NULL: the default */
    const bh_specialization *specs;
    uint32_t spec_count;
};

/* Writes the file's name without folder and ending, which is the kernel's name in verdicts. */
void bhi_kernel_file_name(const char *path, char out[64]);
/* Returns the language that was given; else the one of the name; else the one of its
 * content, if |code| is there. If that does not decide: GLSL for standard input, SPIR-V for a
 * file. */
enum bhi_language bhi_kernel_file_language(const struct bhi_kernel_file *file);
/* Is it compiled, and no module yet? */
bool bhi_kernel_file_is_source(const struct bhi_kernel_file *file);
/* Does it become a kernel for CUDA devices? */
bool bhi_kernel_file_is_cuda(const struct bhi_kernel_file *file);
/* Reads the file, also standard input, unless it has its code; the caller frees *out_code. Returns
 * BH_OK, LOAD_FAILED, NO_MEMORY, or INVALID_KERNEL for a language that nothing here compiles; then
 * there is file->code, too. *out_errno is 0 if no system call was the reason. Blocks; a signal
 * ends it. */
bh_status bhi_kernel_file_read(struct bhi_kernel_file *file, void **out_code, int *out_errno,
                               struct bhi_complaint *complaint);

#endif
