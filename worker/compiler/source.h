/* A source to compile, GLSL, HLSL or CUDA C++, with its defines and includes. The texts belong to
 * the request's buffer. */
#ifndef BHI_WORKER_COMPILER_SOURCE_H
#define BHI_WORKER_COMPILER_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* |bytes| has a NUL after |length| bytes. */
struct bhi_glsl_text {
    const char *bytes;
    size_t length;
};

struct bhi_glsl_pair {
    struct bhi_glsl_text name, text;
};

struct bhi_glsl {
    struct bhi_glsl_text name, text;
    const struct bhi_glsl_pair *defines; /* name, value */
    size_t define_count;
    const struct bhi_glsl_pair *includes; /* name and text of each file that can be included */
    size_t include_count;
    bool optimize;
    bool hlsl, cuda;              /* neither: GLSL */
    struct bhi_glsl_text entry;   /* not GLSL: the function to compile; empty: the only one */
    struct bhi_glsl_text options; /* CUDA only: of NVRTC */
};

#endif
