/* The languages that kernels are written in: which one a file is in, by its name, and by what is in
 * it where the name says nothing; and what to do about those that nothing here compiles. */
#ifndef BHI_REQUEST_LANGUAGE_H
#define BHI_REQUEST_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

enum bhi_language {
    BHI_LANGUAGE_UNKNOWN,
    BHI_LANGUAGE_SPIRV,
    BHI_LANGUAGE_GLSL,
    BHI_LANGUAGE_HLSL,
    /* Recognised, and refused. */
    BHI_LANGUAGE_WGSL,
    BHI_LANGUAGE_CUDA,
    BHI_LANGUAGE_HIP,
    BHI_LANGUAGE_OPENCL,
    BHI_LANGUAGE_METAL,
    BHI_LANGUAGE_SLANG,
    BHI_LANGUAGE_PTX,
    BHI_LANGUAGE_PYTHON,
    BHI_LANGUAGE_NPY,
    BHI_LANGUAGE_SAFETENSORS,
};

/* --language: spirv, glsl or hlsl. */
bool bhi_language_parse(const char *value, enum bhi_language *out, struct bhi_complaint *complaint);
/* What it takes, one after the other; NULL behind the last. */
const char *bhi_language_word(size_t index);
/* By the ending of |path|. */
enum bhi_language bhi_language_of_name(const char *path);
/* How long that ending is; 0: it is none that is known. */
size_t bhi_language_ending(const char *path);
/* Files of arrays, by their beginning, whatever their name; or UNKNOWN. */
enum bhi_language bhi_language_of_array(const void *code, size_t size);
/* By the beginning of a file; |code| has a NUL behind |size|. */
bool bhi_language_is_spirv(const void *code, size_t size);
enum bhi_language bhi_language_of_code(const void *code, size_t size);
/* False, with a complaint: nothing here compiles it. */
bool bhi_language_compiles(enum bhi_language language, struct bhi_complaint *complaint);

#endif
