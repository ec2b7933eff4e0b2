/* The kernels of a plan, while it is used. */
#ifndef BHI_REQUEST_EVAL_KERNEL_H
#define BHI_REQUEST_EVAL_KERNEL_H

#include <pthread.h>

#include "request/eval_pieces.h"
#include "templates/signature.h"
#include "templates/split.h"

/* Arrays and numbers that are given; results; and what one stage needs besides. */
enum { BHI_EVAL_VALUES = BH_MAX_PARAMETERS + BHI_EXPRESSION_REDUCTIONS + 4 };

/* The templates of a plan's kernels, each of which is compiled once. A kernel's text has the sizes of
 * its arrays, so there is no end of them: the oldest goes. */
enum { BHI_EVAL_TEMPLATES = 64 };
struct bhi_eval_templates {
    pthread_mutex_t lock;
    struct bhi_eval_template {
        char *text;
        bh_template *template_;
    } rows[BHI_EVAL_TEMPLATES];
    uint32_t next; /* the row that is overwritten next */
};

struct bhi_eval_plan {
    _Atomic uint32_t references;
    bh_context *context;
    bh_template *whole;   /* of an expression that is one kernel: it has no reductions */
    struct bhi_form form; /* otherwise: the parameters */
    struct bhi_split plan;
    struct bhi_eval_templates *templates; /* owned; NULL for |whole| */
    char name[64];
    bool trusted;
    uint64_t compile_deadline_ns;
};

/* An array or a number, while a plan is used. */
struct bhi_eval_value {
    char name[BHI_NAME_BYTES];
    bool number, given;
    bh_dtype dtype;
    uint64_t bits; /* of a number */
    struct bhi_shape shape;
    bh_buffer *buffer; /* borrowed; NULL: types and shapes alone are asked for */
    uint64_t offset;
};

struct bhi_eval_use {
    const struct bhi_eval_plan *plan;
    struct bhi_eval_value values[BHI_EVAL_VALUES];
    uint32_t count;
    const struct bhi_eval_limits *limits;
    struct bhi_pieces *pieces;  /* NULL: types and shapes alone are asked for */
    struct bhi_pen *source;     /* gets the GLSL instead; NULL: prepare the kernels */
    const bh_argument *outputs; /* those that are given */
    uint32_t output_count;
    bh_buffer *written; /* an output that has been computed, and may be an input as well */
    bh_detail *detail;
};

/* One kernel: its expression, and what comes out. */
struct bhi_eval_kernel {
    struct bhi_form *form; /* owned */
    const struct bhi_eval_value *values[BH_MAX_PARAMETERS];
    char *text; /* owned */
    bh_dtype dtype;
    struct bhi_shape joined;
    struct bhi_reduced reduced; /* |result| is the shape that comes out, also without a reduction */
};

/* The arguments of a kernel: arrays first. */
struct bhi_eval_call {
    bh_argument arguments[BH_MAX_PARAMETERS];
    bh_description descriptions[BH_MAX_PARAMETERS];
    uint32_t count, arrays;
    bh_argument *first; /* the number that is not given: the index of the first element; or NULL */
};

/* Each fills in |detail| and returns the status. */
bh_status bhi_eval_fail(bh_detail *detail, bh_status status, const char *why);
bh_status bhi_eval_fail_memory(bh_detail *detail);
bh_status bhi_eval_refuse(bh_detail *detail, const struct bhi_complaint *complaint);

/* The last value of that name; NULL: there is none. */
const struct bhi_eval_value *bhi_eval_find(const struct bhi_eval_use *use, const char *name);
struct bhi_eval_value *bhi_eval_add(struct bhi_eval_use *use, const char *name);
void bhi_eval_describe(const struct bhi_eval_value *value, const struct bhi_shape *shape,
                       bh_description *out);

/* Takes |text|, an expression of one kernel that assigns |target|, and infers what comes out. */
bh_status bhi_eval_look_at(struct bhi_eval_use *use, struct bhi_pen *text, const char *target,
                           struct bhi_eval_kernel *out);
bh_status bhi_eval_look_at_stage(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                                 const struct bhi_kernel_form *form, struct bhi_eval_kernel *out);
/* Prepares a kernel, whose result is |value|: its buffer is made unless it has one. Frees the kernel. */
bh_status bhi_eval_put(struct bhi_eval_use *use, struct bhi_eval_kernel *kernel,
                       struct bhi_eval_value *value);
/* The same of a reduction in pieces, which leave their results in |parts|: |value| has the shape. */
bh_status bhi_eval_put_cut(struct bhi_eval_use *use, struct bhi_eval_kernel *kernel,
                           const struct bhi_piece_cut *cut, uint32_t parts,
                           struct bhi_eval_value *value);
/* Cuts the operand of a reduction. */
bh_status bhi_eval_measure(struct bhi_eval_use *use, const struct bhi_eval_kernel *kernel,
                           struct bhi_piece_cut *cut);
/* Writes the GLSL of a template. */
bh_status bhi_eval_put_source(struct bhi_eval_use *use, bh_template *template_,
                              const bh_argument *arguments, uint32_t count);
void bhi_eval_kernel_fini(struct bhi_eval_kernel *kernel);

struct bhi_eval_templates *bhi_eval_templates_make(void); /* NULL: out of memory */
void bhi_eval_templates_free(struct bhi_eval_templates *templates);

#endif
