/* What HLSL needs besides its compiler: finding the function that is the kernel, and checking that
 * no two resources share a binding and that each has the binding that its source gives. */
#ifndef BHI_WORKER_COMPILER_HLSL_H
#define BHI_WORKER_COMPILER_HLSL_H

#include "worker/compiler/source.h"
#include <stdint.h>

#define BHI_HLSL_NAME 128u /* of a function's name, with its NUL */

/* Finds the function to compile in the preprocessed source: |wanted|; if that is empty, the only
 * function with [numthreads], or main if there are several. Returns false if there is none; |why|
 * says what is wrong. */
bool bhi_hlsl_find_entry(const char *text, const char *wanted, char out_name[BHI_HLSL_NAME],
                         char *why, size_t why_size);

/* Returns false if the preprocessed source has a register, space or binding that is larger than a
 * descriptor's can be, or push constants that are no cbuffer. |why| says which. */
bool bhi_hlsl_check_attributes(const char *text, char *why, size_t why_size);

/* Returns false if |entry| returns a value or has a parameter that it writes. |text| is the
 * preprocessed source. |why| says what is wrong; |place| gets the "FILE:LINE" of the function, and
 * stays unchanged if that is not known. */
bool bhi_hlsl_check_result(const struct bhi_glsl *source, const char *text, const char *entry,
                           char *place, size_t place_size, char *why, size_t why_size);

/* t0, u0 and b0 are three registers, but one binding. Writes each pair of resources that share a
 * binding as a line of a compiler's log. Returns the number of pairs. */
size_t bhi_hlsl_find_clashes(const struct bhi_glsl *source, const uint32_t *code, size_t words,
                             char *log, size_t log_size);

/* Renames the module's entry point to main, like all others. *out_code is malloc'ed. Returns NULL
 * if there is no memory. */
uint32_t *bhi_hlsl_rename_entry(const uint32_t *code, size_t words, size_t *out_words);

#endif
