/* Kernel templates: GLSL or an expression without fixed types. A launch compiles a variant for the
 * types of its arguments, unless the template has that variant already (K3). It is SPIR-V, which
 * streams of a CUDA device refuse: NEEDS_VULKAN. docs/templates.md has examples. */
#ifndef BULKHEAD_TEMPLATE_H
#define BULKHEAD_TEMPLATE_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/submit.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of parameters. */
#define BH_MAX_PARAMETERS 64

/* What a template does with a parameter. */
typedef enum bh_parameter_role {
    BH_PARAMETER_IN = 1,    /* an array that is read */
    BH_PARAMETER_OUT = 2,   /* an array that is overwritten, all of it */
    BH_PARAMETER_INOUT = 3, /* an array that is read and written */
    BH_PARAMETER_PUSH = 4,  /* one number, given with the launch */
} bh_parameter_role;

/* A parameter of a template. */
typedef struct bh_parameter {
    const char *name;       /* an identifier of at most 63 bytes. In GLSL it does not begin with
                               "gl_" or "bh_", and without |grid| it is neither "i" nor "n" (see
                               bh_template_options.body and grid) */
    bh_parameter_role role; /* what it is */
    const char *type;       /* "f16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64",
                               "u64" or "bool": that type. Another identifier, such as "T": any
                               type, the same for all parameters with that identifier; the body may
                               use it as a type. NULL: any */
} bh_parameter;

/* How to create a template. Give either |body| or
 * |expression|. */
typedef struct bh_template_options {
    size_t struct_size; /* sizeof(bh_template_options) */
    const char *name;   /* of its kernels, for verdicts; NULL: "template"; cut after 63 bytes */
    const bh_parameter *parameters; /* at least one of them is written */
    uint32_t parameter_count;       /* at most BH_MAX_PARAMETERS */
    const char *body; /* GLSL of a function that runs once for each element. An array's name is its
                         element, i the index, n the number of elements. What the body assigns to an
                         output is stored, also if it returns early. An output that it does not
                         assign is 0 */
    const char *expression; /* statements such as "z = 2*x + y", separated by ";" or line ends, with
                               NumPy's types (docs/templates.md) */
    const char *declarations; /* GLSL before the body's function: functions, constants; or NULL */
    bool grid; /* the body runs once for each invocation, in as many groups as the launch
                  says; x[k] is an element and x.length() the length of an array x */
    uint32_t local_size[3];       /* of a grid; default 64, 1, 1 */
    uint32_t variants;            /* how many compiled variants to keep; a further one replaces the
                          least recently used; default 64 */
    bool trusted;                 /* as bh_kernel_options.trusted */
    uint64_t compile_deadline_ns; /* of one variant's GLSL; default 60 s */
} bh_template_options;

/* Creates a template. All texts are copied. An expression is parsed now; GLSL is compiled when a
 * variant is first used. Templates with the same name are independent. Returns BH_OK, BH_NO_MEMORY,
 * BH_CLOSED, BH_FORKED, or BH_INVALID_ARGUMENT (the detail names the parameter, or the column of
 * the expression). */
BH_API BH_MUST_USE bh_status bh_template_create(bh_context *context,
                                                const bh_template_options *options,
                                                bh_template **out_template, bh_detail *detail);
/* Adds a reference. */
BH_API void bh_template_retain(bh_template *template_);
/* Drops a reference. What was launched goes on. */
BH_API void bh_template_release(bh_template *template_);

/* A value for a parameter. Arguments may be in any order. */
typedef struct bh_argument {
    const char *name;  /* the parameter's */
    bh_buffer *buffer; /* if the parameter is an array. Type and shape are those of |description|,
                          or of the buffer's bh_description, or of the .npy or .safetensors from
                          which it was loaded; a buffer with none of them is an array of u8. The
                          description must have lanes 1, no gaps between rows, and an offset that is
                          a multiple of bh_device_info.storage_alignment */
    bh_dtype dtype;    /* if the parameter is a number: its type */
    uint64_t bits;     /* if the parameter is a number: its bytes in little endian, zero-extended */
    const bh_description *description; /* if the parameter is an array: its type and shape here.
                                          Two arguments can show one buffer as two types. It is
                                          checked as by bh_buffer_set_description, and not kept.
                                          NULL: see |buffer| */
} bh_argument;

/* Describes output |name| for these arguments, so that the caller can create its buffer: element
 * type and shape. You may leave out the arguments of outputs, or give a NULL buffer; a buffer that
 * is given must have the right type and shape. Types follow from the parameters, or from what an
 * expression computes. The shape is what the inputs are broadcast to, as by NumPy. A grid has no
 * shape of its own: rank is 0, and you choose the shape. Set out_description->struct_size first.
 * Returns BH_OK, BH_INVALID_ARGUMENT, or BH_TOO_LARGE as bh_template_prepare does. */
BH_API BH_MUST_USE bh_status bh_template_output(bh_template *template_,
                                                const bh_argument *arguments,
                                                uint32_t argument_count, const char *name,
                                                bh_description *out_description, bh_detail *detail);

/* Writes the GLSL of the variant for these arguments. At most |size| bytes with a NUL; *out_length
 * is the length of the whole. Arguments are as for bh_template_output. Returns BH_OK,
 * BH_INVALID_ARGUMENT or BH_NO_MEMORY. */
BH_API BH_MUST_USE bh_status bh_template_source(bh_template *template_,
                                                const bh_argument *arguments,
                                                uint32_t argument_count, char *text, size_t size,
                                                size_t *out_length, bh_detail *detail);

/* A dispatch of one variant, ready to be a command of a submission. Its size changes only if
 * bh_command or bh_binding changes. */
typedef struct bh_template_call {
    bh_command command; /* points into what follows: the struct must stay where it is */
    bh_binding bindings[BH_MAX_PARAMETERS]; /* of |command| */
    uint32_t push[32];                      /* of |command| */
} bh_template_call;

/* Compiles the variant for these arguments, unless the template has it, and fills in |out_call|.
 * Each combination of types (and of axes along which inputs are stretched) is a kernel of its own
 * (K1); numbers, also those in an expression, and sizes are no part of it. Threads that want the
 * same variant at the same time compile it once. |groups| is for a grid; otherwise NULL. |out_call|
 * references its kernel until bh_template_call_fini. It does not reference the buffers: submit it
 * before releasing them.
 *
 * Without |grid| inputs are broadcast as by NumPy: shapes are aligned at their last dimension, and
 * dimensions that are missing or of size 1 are stretched. What is written has the shape of the
 * result. An output may use exactly the bytes of an input of the same shape and element size; all
 * other overlaps of an output are refused.
 *
 * Blocks while a variant compiles. In a log callback it works only if the template has the
 * variant. After a failure the next call compiles again. A type that the device does not have, such
 * as f64, poisons the submission with INVALID_KERNEL. Returns BH_OK, what bh_kernel_create_source
 * returns, or
 *   BH_INVALID_ARGUMENT  an argument does not fit, which the detail names; or inputs are stretched
 *                        along so many dimensions that more than 8 remain when neighbours along
 *                        which each input is stretched or not are taken together
 *   BH_TOO_LARGE         there are more than 2^32 - 65536 elements, or over 124 bytes of numbers;
 *                        less than 124 by 8 for each axis but the first, if inputs are stretched */
BH_API BH_MUST_USE bh_status bh_template_prepare(bh_template *template_,
                                                 const bh_argument *arguments,
                                                 uint32_t argument_count, const uint32_t *groups,
                                                 bh_template_call *out_call, bh_detail *detail);
/* Drops what bh_template_prepare referenced. */
BH_API void bh_template_call_fini(bh_template_call *call);

/* Prepares a variant and submits it as one command, with the stream's deadline. Blocks while a
 * variant compiles. Returns what bh_template_prepare or bh_submit returns. */
BH_API BH_MUST_USE bh_status bh_template_launch(bh_stream *stream, bh_template *template_,
                                                const bh_argument *arguments,
                                                uint32_t argument_count, const uint32_t *groups,
                                                bh_event **out_event, bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif
