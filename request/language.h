/* The languages of kernels: which one a file has, by its name, or by its content if the name does
 * not say; and what to do about languages that nothing here compiles. */
#ifndef BHI_REQUEST_LANGUAGE_H
#define BHI_REQUEST_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"
#include <bulkhead/source.h>

enum bhi_language {
    BHI_LANGUAGE_UNKNOWN = BH_LANGUAGE_GUESS,
    BHI_LANGUAGE_SPIRV = BH_LANGUAGE_SPIRV,
    BHI_LANGUAGE_GLSL = BH_LANGUAGE_GLSL,
    BHI_LANGUAGE_HLSL = BH_LANGUAGE_HLSL,
    BHI_LANGUAGE_CUDA = BH_LANGUAGE_CUDA,
    BHI_LANGUAGE_IMAGE, /* for CUDA: PTX, a cubin or a fatbin */
    /* These are recognised and refused. */
    BHI_LANGUAGE_WGSL,
    BHI_LANGUAGE_HIP,
    BHI_LANGUAGE_OPENCL,
    BHI_LANGUAGE_METAL,
    BHI_LANGUAGE_SLANG,
    BHI_LANGUAGE_PYTHON,
    BHI_LANGUAGE_FOREIGN, /* no language: FOREIGN + one of enum bhi_foreign */
};

/* Parses the value of --language: spirv, glsl, hlsl or cuda. */
bool bhi_language_parse(const char *value, enum bhi_language *out, struct bhi_complaint *complaint);
/* Returns the possible values one after the other; NULL after the last. */
const char *bhi_language_word(size_t index);
/* Returns the language for the ending of |path|. */
enum bhi_language bhi_language_of_name(const char *path);
/* Returns the length of that ending, or 0 if it is unknown. */
size_t bhi_language_ending(const char *path);
/* Recognises files that are no kernels by their first bytes, whatever their name; else UNKNOWN. */
enum bhi_language bhi_language_of_foreign(const void *code, size_t size);
/* Recognise a file by its first bytes; |code| has a NUL after |size| bytes. */
bool bhi_language_is_spirv(const void *code, size_t size);
bool bhi_language_is_binary_image(const void *code, size_t size);
enum bhi_language bhi_language_of_code(const void *code, size_t size);
/* Returns what an image is: "cubin", "fatbin" or "PTX". */
const char *bhi_language_image_kind(const void *code, size_t size);
/* Does it become a kernel for CUDA devices? */
static inline bool bhi_language_is_cuda(enum bhi_language language) {
    return language == BHI_LANGUAGE_CUDA || language == BHI_LANGUAGE_IMAGE;
}
/* Returns false, with a complaint, if nothing here compiles |language|. Images and CUDA C++ are only
 * taken by those who say so. */
bool bhi_language_compiles(enum bhi_language language, bool takes_cuda,
                           struct bhi_complaint *complaint);

#endif
