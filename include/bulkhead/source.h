/* Kernels from source text: GLSL, HLSL and CUDA C++. */
#ifndef BULKHEAD_SOURCE_H
#define BULKHEAD_SOURCE_H

#include <bulkhead/detail.h>
#include <bulkhead/kernel.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A #define before the first line of the source. */
typedef struct bh_source_define {
    const char *name;  /* an identifier */
    const char *value; /* one line; NULL: nothing, as glslc's -DNAME */
} bh_source_define;

/* A file for #include "name" and #include <name>. #include "b" in the file "dir/a" takes the
 * include named "dir/b"; if there is none, the one named "b". #include <b> takes the one named
 * "b". */
typedef struct bh_source_include {
    const char *name; /* with "/" between folders */
    const char *text; /* the file's content */
    size_t length;    /* of |text|; 0: up to its NUL */
} bh_source_include;

/* The language of a kernel. */
typedef enum bh_language {
    BH_LANGUAGE_GUESS = 0, /* as its name says */
    BH_LANGUAGE_SPIRV = 1, /* a module, which is not compiled: for a judge (judge.h) */
    BH_LANGUAGE_GLSL = 2,  /* Vulkan's GLSL */
    BH_LANGUAGE_HLSL = 3,  /* as glslang reads it */
    BH_LANGUAGE_CUDA = 4,  /* CUDA C++, as NVRTC reads it: a kernel for CUDA devices */
} bh_language;

/* A kernel's source. Nothing of it needs to outlive the call. */
typedef struct bh_source {
    size_t struct_size;              /* sizeof(bh_source) */
    const char *text;                /* the source */
    size_t length;                   /* of |text|; 0 (default): up to its NUL */
    const char *name;                /* for messages, such as the file's name; NULL: "kernel.comp",
                           ".hlsl" or ".cu" */
    const bh_source_define *defines; /* in order */
    uint32_t define_count;           /* at most 256 */
    const bh_source_include *includes; /* all that #include finds */
    uint32_t include_count;            /* at most 1024 */
    bool unoptimized;     /* false (default): optimises, keeping names and specialization constants;
                         buffers used only by dead code must not be bound. true: they must be. CUDA:
                         true is --device-debug */
    uint64_t deadline_ns; /* of the compile, with its wait for a compiler; default 60 s */
    char *log;            /* receives the compiler's errors and warnings, NUL-terminated: lines
                             such as "NAME:LINE: error: ...", as many whole ones as fit, and of a
                             first one that does not, its beginning. Empty if
                             there are none; NULL (default): they are dropped */
    size_t log_size;      /* of |log|; at most 32 KiB are used */
    bh_language language; /* of |text|; default: HLSL if |name| ends in ".hlsl", CUDA if it ends in
                             ".cu", otherwise GLSL */
    const char *entry;    /* HLSL, CUDA: the entry point, as options->entry of
                             bh_kernel_create_source, which has precedence; NULL: not named. GLSL:
                             NULL or "main" */
    const char *tenant;   /* for whom it is compiled, as bh_stream_options.tenant; NULL: "". The
                             kernel runs on streams of every tenant */
    uint64_t memory_limit; /* bytes that the compiler may use, at least 64 MiB; default 1 GiB */
    const char *options;   /* CUDA: options of NVRTC, separated by blanks, such as
                              "--std=c++20 --use_fast_math"; NULL: none. Otherwise NULL */
} bh_source;

/* Creates a kernel from GLSL or HLSL (Vulkan 1.1, SPIR-V 1.3), or from CUDA C++ (below). The entry
 * point of a module is always "main". In a GLSL source it is the function main. In an HLSL source
 * it is the function with [numthreads]; if there are several, the one that options->entry names,
 * otherwise main. The number of an HLSL register, whatever its letter, is the binding, and its
 * space is the set. Two resources on one binding are an error.
 *
 * The compiler sees the source, its defines and its includes, and reads no file. It runs in a
 * sandboxed worker of its own, without a device. A source that crashes it harms nothing else, and
 * is not compiled again for its tenant (quarantine.h). Equal sources of a tenant are compiled once:
 * the context keeps the last 64 modules, of at most 32 MiB, until bh_context_trim; fewer if other
 * tenants have some. The module that it returns is as untrusted as any other
 * (bh_kernel_create_spirv). Two sources that compile to the same module are the same kernel, if
 * their options agree (K1).
 *
 * CUDA C++ becomes PTX by NVRTC, NVIDIA's library, which has to be on this machine (docs/cuda.md
 * says where it is looked for); no device is needed. The PTX is for compute capability 7.5 and
 * later, unless source->options names another --gpu-architecture. The kernel is that of
 * bh_kernel_create_image, and its |options| are as there, but that options->entry is a name of the
 * source: "saxpy", "ns::saxpy", or "scale<float>", which instantiates a template. It may be NULL if
 * there is only one kernel; of several the error lists their names in the PTX, which are good, too.
 *
 * All texts together have at most 4 MiB. |options| is as for bh_kernel_create_spirv, with two
 * differences: if options->name is NULL, the kernel gets source->name; for GLSL options->entry must
 * be NULL or "main".
 *
 * Blocks while it compiles, some 70 ms for a small kernel. Not in a log callback. Returns
 * BH_OK, what bh_kernel_create_spirv returns, or
 *   BH_COMPILE_FAILED    the source has errors: the detail has the first, source->log all of them.
 *                        Or the compiler crashed, or ran out of memory or time: the detail says
 *                        which
 *   BH_INVALID_ARGUMENT  a field is wrong, which the detail names
 *   BH_TOO_LARGE         the texts have more than 4 MiB
 *   BH_PROTOCOL          the answer of the compiler breaks the protocol: the source has taken over
 *                        the compiler process
 *   BH_UNSUPPORTED       CUDA C++, and there is no NVRTC (reason NO_NVRTC): the detail names the
 *                        package that has it
 *   BH_UNAVAILABLE       no worker can start; or another status of class ENVIRON or VICTIM */
BH_API BH_MUST_USE bh_status bh_kernel_create_source(bh_context *context, const bh_source *source,
                                                     const bh_kernel_options *options,
                                                     bh_kernel **out_kernel, bh_detail *detail);

/* Starts to compile a source, as bh_kernel_create_source does, and does not wait for the end.
 * |source| need not outlive the call; its log must be NULL. *out_event (may be NULL) is the
 * compile's event. It ends
 *   READY           the source has compiled: bh_module_kernel makes kernels of it
 *   COMPILE_FAILED  the source has errors, and the message is the first one; or it was not compiled
 *                   again (quarantine.h), and executed is no
 *   WORKER_SIGNAL, WORKER_EXIT, OUT_OF_HOST_MEMORY, DEADLINE
 *                   the compiler crashed, or ran out of memory or time
 *   CANCELLED       bh_event_cancel: the compiler is killed
 * or as any other event. If the context keeps the module of an equal source, the event is that of
 * the earlier compile, and has ended. Two compiles of equal sources at the same time are two
 * compiles, because each can be cancelled. Never blocks. Returns BH_OK, BH_TOO_LARGE, BH_NO_MEMORY,
 * BH_CLOSED, or BH_SYSTEM. */
BH_API BH_MUST_USE bh_status bh_module_compile(bh_context *context, const bh_source *source,
                                               bh_module **out_module, bh_event **out_event,
                                               bh_detail *detail);
/* Creates a kernel of a compiled module, as bh_kernel_create_source does; options->entry must be
 * NULL, or "main" but for CUDA. bh_kernel_code gives its SPIR-V or PTX. Never blocks. Returns what
 * bh_kernel_create_source returns, or BH_PENDING: the compile has not ended. */
BH_API BH_MUST_USE bh_status bh_module_kernel(bh_module *module, const bh_kernel_options *options,
                                              bh_kernel **out_kernel, bh_detail *detail);
/* Copies the compiler's errors and warnings, as bh_source.log has them, into |size| bytes with
 * a NUL; |text| may be NULL if |size| is 0. Returns the length of all of them without the NUL; 0
 * while the compile is pending, and if the compiler crashed. */
BH_API size_t bh_module_log(bh_module *module, char *text, size_t size);
/* Adds a reference. */
BH_API void bh_module_retain(bh_module *module);
/* Drops a reference. A compile that is pending goes on. */
BH_API void bh_module_release(bh_module *module);

#ifdef __cplusplus
}
#endif
#endif
