/* The file that a kernel is in: SPIR-V, GLSL or HLSL. */
#ifndef BHI_REQUEST_KERNEL_FILE_H
#define BHI_REQUEST_KERNEL_FILE_H

#include "request/language.h"
#include "request/source.h"

/* What a kernel is made of. */
struct bhi_kernel_file {
    const char *path; /* - is standard input */
    const void *code;
    size_t size;
    enum bhi_language language; /* as it was given; UNKNOWN: it was not */
    struct bhi_source source;   /* counts for sources only, as what follows */
    uint64_t deadline_ns;       /* of its compile; 0: the default */
};

/* Its name without folder and ending: what verdicts call the kernel. */
void bhi_kernel_file_name(const char *path, char out[64]);
/* As it was given, else by its name, else by what is in it (where |code| is there). What is still
 * unknown then is GLSL on standard input and SPIR-V in a file. */
enum bhi_language bhi_kernel_file_language(const struct bhi_kernel_file *file);
/* Makes the kernel. The compiler's words go to standard error. A signal ends the wait,
 * and the context with it: then it is NULL. Returns an exit status; what went wrong has been said.
 */
int bhi_kernel_file_make(const char *command, const struct bhi_kernel_file *file,
                         bh_context **context, const bh_kernel_options *options,
                         bh_kernel **out_kernel);

#endif
