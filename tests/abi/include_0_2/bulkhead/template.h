/* Kernel templates: a body, or an expression, that is given the types of its arguments when it is
 * launched (K3). docs/templates.md has examples.
 */
#ifndef BULKHEAD_TEMPLATE_H
#define BULKHEAD_TEMPLATE_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/sized.h>
#include <bulkhead/submit.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BH_MAX_PARAMETERS 64

typedef struct bh_template bh_template;

typedef enum bh_parameter_role {
    BH_PARAMETER_IN = 1,    /* an array that is read */
    BH_PARAMETER_OUT = 2,   /* an array that is overwritten, all of it */
    BH_PARAMETER_INOUT = 3, /* an array that is read and written */
    BH_PARAMETER_PUSH = 4,  /* one number, given with the launch */
} bh_parameter_role;

typedef struct bh_parameter {
    const char *name; /* an identifier of at most 63 bytes. In GLSL neither "i" nor "n" (unless
                         |grid|), nor what begins with "gl_" or "bh_" */
    bh_parameter_role role;
    const char *type; /* "f16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
                         "bool": that one. Another identifier, such as "T": any, but the same for
                         all parameters that say so, and the body may use it as a type. NULL: any */
} bh_parameter;

typedef struct bh_template_options {
    size_t struct_size; /* set by bh_template_options_init */
    const char *name;   /* of its kernels, for verdicts; NULL: "template"; at most 63 bytes count */
    const bh_parameter *parameters;
    uint32_t parameter_count; /* at most BH_MAX_PARAMETERS, at least one that is written */
    /* One of the two.
     * |body| is GLSL, in a function that runs once for each element: each array's name is the
     * element's value, |i| its index, |n| how many there are; what it assigns to the name of an
     * output is stored, also after a return; an output that it does not assign is 0.
     * |expression| is statements such as "z = 2*x + y", separated by ";" or line ends, with NumPy's
     * types (docs/templates.md). */
    const char *body;
    const char *expression;
    const char *declarations; /* GLSL before the body's function: functions, constants; or NULL */
    bool grid; /* with a body: it runs once for each invocation, on arrays whose elements are x[k]
                  and whose length is x.length(), in as many groups as the launch says */
    uint32_t local_size[3]; /* of a grid; each at least 1; default 64, 1, 1 */
    uint32_t variants;      /* kernels that are kept, at least 1; the one that was used least lately
                               goes; default 64 */
    bool trusted;           /* as bh_kernel_options.trusted */
    uint64_t compile_deadline_ns; /* of one variant's GLSL; default 60 s; BH_FOREVER: none */
} bh_template_options;

BH_INLINE void bh_template_options_init(bh_template_options *options) {
    bh_template_options_init_sized(options, sizeof *options);
}

/* Makes a template. All texts are copied; an expression is parsed, GLSL is compiled when a variant
 * is first used. Two templates of one name have nothing to do with each other. Returns BH_OK,
 * BH_INVALID_ARGUMENT (the detail says which parameter, or which column of the expression),
 * BH_NO_MEMORY, BH_CLOSED, BH_FORKED. Does not block. */
BH_API BH_MUST_USE bh_status bh_template_create(bh_context *context,
                                                const bh_template_options *options,
                                                bh_template **out_template, bh_detail *detail);
BH_API bh_status bh_template_retain(bh_template *template_);
/* What was launched goes on. */
BH_API bh_status bh_template_release(bh_template *template_);

/* What a parameter is given, by name, in any order. */
typedef struct bh_argument {
    const char *name;
    bh_buffer *buffer; /* of an array: described (bh_buffer_set_description), or loaded from a .npy
                          or .safetensors, else it is so many u8; rows without gaps, one lane; an
                          offset has to suit the device (bh_device_info.storage_alignment) */
    bh_dtype dtype;    /* of a number */
    uint64_t bits;     /* its bytes in little endian, zero-extended */
} bh_argument;

/* What output |name| is going to be: element type and shape, as a description for the buffer that
 * is to be made for it. Arguments of outputs may be missing, or their buffers NULL: a buffer
 * that is given has to fit already, so that one which is not described yet is refused. Element
 * types follow from the parameters' or, of an expression, from what it computes; the shape is the
 * inputs' (an elementwise template's only: of a grid's the rank is 0, and the shape is the caller's
 * to say). |out_description| must have been initialised. Returns BH_OK or BH_INVALID_ARGUMENT. Does
 * not block. */
BH_INLINE BH_MUST_USE bh_status bh_template_output(bh_template *template_,
                                                   const bh_argument *arguments,
                                                   uint32_t argument_count, const char *name,
                                                   bh_description *out_description,
                                                   bh_detail *detail) {
    return bh_template_output_sized(template_, arguments, argument_count, sizeof *arguments, name,
                                    out_description, detail);
}

/* The GLSL of the variant for these arguments, as it is going to be compiled. At most |size| bytes,
 * NUL-terminated where |size| is not 0; *out_length is how long the whole is. Arguments as for
 * bh_template_output. Returns BH_OK, BH_INVALID_ARGUMENT, BH_NO_MEMORY. Does not block. */
BH_INLINE BH_MUST_USE bh_status bh_template_source(bh_template *template_,
                                                   const bh_argument *arguments,
                                                   uint32_t argument_count, char *text, size_t size,
                                                   size_t *out_length, bh_detail *detail) {
    return bh_template_source_sized(template_, arguments, argument_count, sizeof *arguments, text,
                                    size, out_length, detail);
}

/* A dispatch of one variant, ready to be a command of a submission. It grows only with bh_command
 * and bh_binding. */
typedef struct bh_template_call {
    bh_command command; /* points into what follows: the struct must stay where it is */
    bh_binding bindings[BH_MAX_PARAMETERS];
    uint32_t push[32];
} bh_template_call;

/* Has the variant for these arguments compiled, unless the template has it, and fills in
 * |out_call|. Each combination of types (and of which inputs are a single element) is a kernel of
 * its own (K1). Threads that want the same one at the same time have it compiled once. |groups| is
 * for a grid; NULL otherwise. The call has a reference to its kernel, for bh_template_call_fini to
 * drop, and none to the buffers: submit it while they are there.
 *
 * Elementwise, the arrays have to have the same shape, but that an input of a single element goes
 * with all. An output may be the same bytes as an input of as wide a type, and overlaps nothing
 * else.
 *
 * Blocks while a variant is compiled. Not in a completion callback, unless the template has the
 * variant. Returns BH_OK; BH_INVALID_ARGUMENT: arguments that do not fit (the detail names them);
 * BH_TOO_LARGE: more than 2^32 - 65536 elements, or over 124 bytes of numbers; or what
 * bh_kernel_create_glsl returns. A failure is not remembered. What the device does not have, such
 * as f64, poisons the submission with INVALID_KERNEL. */
BH_INLINE BH_MUST_USE bh_status bh_template_prepare(bh_template *template_,
                                                    const bh_argument *arguments,
                                                    uint32_t argument_count, const uint32_t *groups,
                                                    bh_template_call *out_call, bh_detail *detail) {
    return bh_template_prepare_sized(template_, arguments, argument_count, sizeof *arguments,
                                     groups, out_call, sizeof(bh_command), sizeof(bh_binding),
                                     detail);
}
BH_API void bh_template_call_fini(bh_template_call *call);

/* bh_template_prepare and bh_submit of that one command, with the stream's deadline. Blocks while a
 * variant is compiled. */
BH_INLINE BH_MUST_USE bh_status bh_template_launch(bh_stream *stream, bh_template *template_,
                                                   const bh_argument *arguments,
                                                   uint32_t argument_count, const uint32_t *groups,
                                                   bh_event **out_event, bh_detail *detail) {
    return bh_template_launch_sized(stream, template_, arguments, argument_count, sizeof *arguments,
                                    groups, out_event, detail);
}

#ifdef __cplusplus
}
#endif
#endif
