/* Kernels from GLSL and HLSL source. Included by bulkhead.h. */
#ifndef BULKHEAD_GLSL_H
#define BULKHEAD_GLSL_H

#include <bulkhead/bulkhead.h>

#ifdef __cplusplus
extern "C" {
#endif

/* #define |name| |value|, before the first line. */
typedef struct bh_glsl_define {
    const char *name;  /* an identifier */
    const char *value; /* one line; NULL: nothing, as glslc's -DNAME */
} bh_glsl_define;

/* What #include "name" and #include <name> find: looked for beside the file that includes it (by
 * the names' slashes), then under its name as it is. */
typedef struct bh_glsl_include {
    const char *name;
    const char *text;
    size_t length; /* of |text| in bytes; 0: up to its NUL */
} bh_glsl_include;

typedef enum bh_language {
    BH_LANGUAGE_GLSL,
    BH_LANGUAGE_HLSL,
} bh_language;

typedef struct bh_glsl_source {
    size_t struct_size; /* set by bh_glsl_source_init */
    const char *text;   /* of a compute shader; need not outlive the call, like all of it */
    size_t length;      /* of |text| in bytes; 0 (default): up to its NUL */
    const char *name;   /* for messages, such as its file's; NULL: "kernel.comp" */
    const bh_glsl_define *defines;
    uint32_t define_count; /* at most 256 */
    const bh_glsl_include *includes;
    uint32_t include_count; /* at most 1024 */
    bool optimize;          /* default true. Names and specialization constants stay. A buffer that
                               only dead code uses is not bound any more: with false it is */
    uint64_t deadline_ns;   /* of the compile, from its turn on; default 60 s; never 0; BH_FOREVER:
                               none */
    char *log;              /* gets what the compiler says, errors and warnings, as lines of
                               "NAME:LINE: error: ...", the first ones whole where not all fit, with
                               a NUL; NULL (default): nowhere. Empty where it says nothing */
    size_t log_size;        /* of |log|; over 32 KiB is never used */
    bh_language language;   /* of |text|; default GLSL */
} bh_glsl_source;

BH_INLINE void bh_glsl_source_init(bh_glsl_source *source) {
    bh_glsl_source_init_sized(source, sizeof *source);
}

/* Makes a kernel from GLSL or HLSL (Vulkan 1.1, SPIR-V 1.3). GLSL's entry point is main. HLSL's is
 * the function with [numthreads]; of several the one that options->entry names, else main. The
 * kernel's own entry point is main, always. The number of an HLSL register is its binding, whatever
 * its letter, and its space is its set; two resources on one binding are an error. The source, its
 * defines and includes are all that the compiler sees: it reads no file. It runs in a sandboxed
 * worker of its own, without a device, that serves this call only, with 1 GiB of memory: whatever
 * the source does to it stays there. What comes back is as untrusted as any module
 * (bh_kernel_create_spirv), and the kernel's identity is that module's: neither the source nor its
 * name counts.
 *
 * All texts together: at most 4 MiB. |options|: as for bh_kernel_create_spirv; a |name| that is
 * NULL is the source's, an |entry| of GLSL is NULL or "main".
 *
 * Blocks until it is compiled: as long as glslc takes, some 70 ms for a small kernel. Not in a
 * completion callback.
 * Returns BH_OK;
 *   BH_COMPILE_FAILED    the source is bad, and the detail has the first error, source->log all of
 *                        them; or its compiler crashed, ran out of memory or of time: the detail
 *                        says which
 *   BH_INVALID_ARGUMENT  a field; it is named
 *   BH_TOO_LARGE         the texts are
 *   BH_PROTOCOL          the compiler's answer makes no sense: it has been taken over
 *   BH_UNAVAILABLE, ...  there can be no worker
 * or what bh_kernel_create_spirv returns. */
BH_API BH_MUST_USE bh_status bh_kernel_create_glsl(bh_context *context,
                                                   const bh_glsl_source *source,
                                                   const bh_kernel_options *options,
                                                   bh_kernel **out_kernel, bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
