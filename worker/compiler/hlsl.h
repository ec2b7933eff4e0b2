/* What HLSL needs besides its compiler: which function is the kernel, that no two resources come to
 * lie on one binding, and that each lies where its source says. */
#ifndef BHI_WORKER_COMPILER_HLSL_H
#define BHI_WORKER_COMPILER_HLSL_H

#include "worker/compiler/source.h"
#include <stdint.h>

#define BHI_HLSL_NAME 128u /* of a function, with its NUL */

/* The function to compile, from the preprocessed source: |wanted| (empty: any), or the one with
 * [numthreads], or main where there are several. False: |why| says what is wrong. */
bool bhi_hlsl_find_entry(const char *text, const char *wanted, char out_name[BHI_HLSL_NAME],
                         char *why, size_t why_size);

/* The preprocessed source: false where a register, space or binding is larger than a descriptor's
 * can be, or push constants are no cbuffer, and |why| says which. */
bool bhi_hlsl_check_attributes(const char *text, char *why, size_t why_size);

/* The preprocessed source: false where |entry| returns a value, or has a parameter that it writes.
 * |why| says so, |place| is the "FILE:LINE" of the function, and stays as it is where that is not
 * known. */
bool bhi_hlsl_check_result(const struct bhi_glsl *source, const char *text, const char *entry,
                           char *place, size_t place_size, char *why, size_t why_size);

/* t0, u0 and b0 are three registers, and one binding. Writes each two resources that share one as a
 * line of a compiler's log. Returns how many there are. */
size_t bhi_hlsl_find_clashes(const struct bhi_glsl *source, const uint32_t *code, size_t words,
                             char *log, size_t log_size);

/* Calls the module's entry point main, as all others are. *out_code is malloc'ed; NULL: there is no
 * memory for it. */
uint32_t *bhi_hlsl_rename_entry(const uint32_t *code, size_t words, size_t *out_words);

#endif
