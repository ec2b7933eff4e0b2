/* Kernels from GLSL and HLSL source. */
#ifndef BULKHEAD_GLSL_H
#define BULKHEAD_GLSL_H

#include <bulkhead/detail.h>
#include <bulkhead/kernel.h>
#include <bulkhead/sized.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A #define before the first line of the source. */
typedef struct bh_glsl_define {
    const char *name;  /* an identifier */
    const char *value; /* one line; NULL: nothing, as glslc's -DNAME */
} bh_glsl_define;

/* A file for #include "name" and #include <name>. #include "b" in the file "dir/a" takes the
 * include named "dir/b"; if there is none, the one named "b". #include <b> takes the one named
 * "b". */
typedef struct bh_glsl_include {
    const char *name; /* with "/" between folders */
    const char *text; /* the file's content */
    size_t length;    /* of |text|; 0: up to its NUL */
} bh_glsl_include;

/* Source languages. */
typedef enum bh_language {
    BH_LANGUAGE_GLSL, /* Vulkan's GLSL */
    BH_LANGUAGE_HLSL, /* as glslang reads it */
} bh_language;

/* A compute shader's source. Nothing of it needs to outlive the call. Call bh_glsl_source_init
 * first. */
typedef struct bh_glsl_source {
    size_t struct_size;            /* set by bh_glsl_source_init */
    const char *text;              /* the source */
    size_t length;                 /* of |text|; 0 (default): up to its NUL */
    const char *name;              /* for messages, such as the file's name; NULL: "kernel.comp" */
    const bh_glsl_define *defines; /* in order */
    uint32_t define_count;         /* at most 256 */
    const bh_glsl_include *includes; /* all that #include finds */
    uint32_t include_count;          /* at most 1024 */
    bool optimize; /* true (default): optimises, keeping names and specialization constants; buffers
                      used only by dead code must not be bound. false: they must be */
    uint64_t deadline_ns; /* of the compile, from its turn on; default 60 s */
    char *log;            /* receives the compiler's errors and warnings, NUL-terminated: lines
                             such as "NAME:LINE: error: ...", as many whole ones as fit. Empty if
                             there are none; NULL (default): they are dropped */
    size_t log_size;      /* of |log|; at most 32 KiB are used */
    bh_language language; /* of |text|; default GLSL */
} bh_glsl_source;

/* Fills in the defaults. */
BH_INLINE void bh_glsl_source_init(bh_glsl_source *source) {
    bh_glsl_source_init_sized(source, sizeof *source);
}

/* Creates a kernel from GLSL or HLSL (Vulkan 1.1, SPIR-V 1.3). The entry point of the module is
 * always "main". In a GLSL source it is the function main. In an HLSL source it is the function
 * with [numthreads]; if there are several, the one that options->entry names, otherwise main. The
 * number of an HLSL register, whatever its letter, is the binding, and its space is the set. Two
 * resources on one binding are an error.
 *
 * The compiler sees the source, its defines and its includes, and reads no file. It runs in a
 * sandboxed worker of its own, without a device, with 1 GiB of memory. A source that crashes it
 * harms nothing else. The module that it returns is as untrusted as any other
 * (bh_kernel_create_spirv). Two sources that compile to the same module are the same kernel, if
 * their options agree (K1).
 *
 * All texts together have at most 4 MiB. |options| is as for bh_kernel_create_spirv, with two
 * differences: if options->name is NULL, the kernel gets source->name; for GLSL options->entry must
 * be NULL or "main".
 *
 * Blocks while it compiles, some 70 ms for a small kernel. Not in a completion callback. Returns
 * BH_OK, what bh_kernel_create_spirv returns, or
 *   BH_COMPILE_FAILED    the source has errors: the detail has the first, source->log all of them.
 *                        Or the compiler crashed, or ran out of memory or time: the detail says
 *                        which
 *   BH_INVALID_ARGUMENT  a field is wrong, which the detail names
 *   BH_TOO_LARGE         the texts have more than 4 MiB
 *   BH_PROTOCOL          the answer of the compiler breaks the protocol: the source has taken over
 *                        the compiler process
 *   BH_UNAVAILABLE       no worker can start; or another status of class ENVIRON or VICTIM */
BH_API BH_MUST_USE bh_status bh_kernel_create_glsl(bh_context *context,
                                                   const bh_glsl_source *source,
                                                   const bh_kernel_options *options,
                                                   bh_kernel **out_kernel, bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
