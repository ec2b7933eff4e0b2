/* The request to a compiler and its answer; each is in a buffer of its own.
 *
 * The request is a struct bhi_compile_call, then texts: the source's name, the source, its entry
 * point (empty: any), the options for its compiler, the name and value of each define, the name and
 * text of each include. A text is its length (u64), its bytes, a NUL, and zeroes up to the next
 * multiple of 8.
 *
 * The answer is a struct bhi_compile_answer, then |code_bytes| of SPIR-V, or of PTX for CUDA. The
 * supervisor copies it once when the compile has ended, and checks sizes and how the code begins.
 */
#ifndef BHI_IPC_COMPILE_H
#define BHI_IPC_COMPILE_H

#include <stdint.h>

#define BHI_COMPILE_MAX_SOURCE   (4u << 20) /* of a whole request */
#define BHI_COMPILE_MAX_DEFINES  256u
#define BHI_COMPILE_MAX_INCLUDES 1024u
#define BHI_COMPILE_MAX_CODE     (16u << 20)
#define BHI_COMPILE_LOG          32768u
#define BHI_COMPILE_GLSL         0u
#define BHI_COMPILE_HLSL         1u
#define BHI_COMPILE_CUDA         2u
#define BHI_COMPILE_ENTRY        256u

/* The driver that has no device, but NVRTC: its zygote forks the compilers of CUDA C++. */
#define BHI_NVRTC "nvrtc"

struct bhi_compile_call {
    uint64_t bytes; /* of the whole request */
    uint32_t defines, includes;
    uint32_t optimize; /* 0 or 1 */
    uint32_t language; /* BHI_COMPILE_GLSL, BHI_COMPILE_HLSL or BHI_COMPILE_CUDA */
};

struct bhi_compile_answer {
    uint32_t refused; /* 1: the source has errors, |log| lists them, and there is no code. The
                         result is COMPILE_FAILED, with the first error as its text */
    uint32_t log_bytes;
    uint64_t code_bytes;           /* if this is more than the buffer's room, the code is missing */
    uint32_t version;              /* of NVRTC: 1000 * major + 10 * minor; 0: another compiler */
    char entry[BHI_COMPILE_ENTRY]; /* CUDA: the kernel's name in the PTX */
    char log[BHI_COMPILE_LOG];
};

/* Bytes that a text takes in a request. */
static inline uint64_t bhi_compile_text_bytes(uint64_t length) {
    return sizeof(uint64_t) + ((length + 1 + 7) & ~UINT64_C(7));
}

#endif
