/* A template, and the GLSL of its variants: a variant is the body or the expression with the code
 * around it for arguments of given types. */
#ifndef BHI_TEMPLATES_SIGNATURE_H
#define BHI_TEMPLATES_SIGNATURE_H

#include "templates/reduce.h"
#include "templates/shape.h"
#include "templates/values.h"

enum {
    BHI_MAX_PARAMETERS = 64,
    BHI_LOCAL_SIZE = 256,
    BHI_ROW_GROUPS = 65535, /* groups in a row, the least that a device supports */
};

/* The most elements that one dispatch can process. */
#define BHI_MAX_ELEMENTS ((uint64_t)BHI_LOCAL_SIZE * 256 * BHI_ROW_GROUPS)

enum bhi_role { BHI_ROLE_IN = 1, BHI_ROLE_OUT = 2, BHI_ROLE_INOUT = 3, BHI_ROLE_PUSH = 4 };

struct bhi_parameter {
    char name[BHI_NAME_BYTES];
    enum bhi_role role;
    bh_dtype dtype;                /* COUNT: any type */
    char variable[BHI_NAME_BYTES]; /* any type: equal names are equal types */
};

struct bhi_form {
    char name[64]; /* can be quoted in a #line */
    struct bhi_parameter parameters[BHI_MAX_PARAMETERS];
    uint32_t count;
    bool is_expression;
    bool planned; /* in stages (split.h), so its reductions need not come last */
    struct bhi_expression expression; /* owned */
    char *body, *declarations;        /* owned */
    bool grid;                        /* the body runs once for each invocation, on whole arrays */
    uint32_t local_size[3];
};

/* What distinguishes a variant. The entries of unused parameters are zero. */
struct bhi_variant {
    uint8_t dtypes[BHI_MAX_PARAMETERS]; /* bh_dtype */
    uint8_t has[BHI_MAX_PARAMETERS];    /* of an input, and of a reduction's output: its axes
                                           (bhi_shape_axes) */
    uint8_t axes;                       /* how many there are; 0: as 1 */
    bool reduces;                       /* the expression is a reduction */
};

const char *bhi_role_name(enum bhi_role role);

static inline bool bhi_role_reads(enum bhi_role role) {
    return role == BHI_ROLE_IN || role == BHI_ROLE_INOUT || role == BHI_ROLE_PUSH;
}

static inline bool bhi_role_writes(enum bhi_role role) {
    return role == BHI_ROLE_OUT || role == BHI_ROLE_INOUT;
}

/* Of these an array has the bits, and the values are floats. */
static inline bool bhi_dtype_is_small(bh_dtype dtype) {
    return bhi_dtype_is_float(dtype) && !bhi_dtype_is_known(dtype);
}

/* The type of the values of an array. */
static inline bh_dtype bhi_dtype_computed(bh_dtype dtype) {
    return bhi_dtype_is_small(dtype) ? BH_DTYPE_F32 : dtype;
}

/* The word at which a reduction's walk begins: behind the count and the sizes of the axes. */
static inline uint32_t bhi_variant_walk(const struct bhi_variant *variant) {
    return bhi_constants_axis(variant->axes > 1 ? variant->axes : 1);
}

/* The word at which the numbers of the launch begin. */
static inline uint32_t bhi_variant_numbers(const struct bhi_variant *variant) {
    return bhi_variant_walk(variant) + (variant->reduces ? BHI_WALK_WORDS : 0);
}

/* Returns false: the output is of another type than it must be. */
bool bhi_refuse_output(const char *name, bh_dtype must, bh_dtype is,
                       struct bhi_complaint *complaint);
/* Checks the form: its names, and the names that its expression uses. */
bool bhi_form_check(const struct bhi_form *form, struct bhi_complaint *complaint);
void bhi_form_fini(struct bhi_form *form);

/* Checks the types of |variant| against the template's. Infers the outputs whose type is
 * BH_DTYPE_NONE; refuses an output whose type cannot be inferred. |out_constants| gets the numbers that
 * are written in the expression; the caller fills in what comes before them. */
bool bhi_form_infer(const struct bhi_form *form, struct bhi_variant *variant,
                    struct bhi_constants *out_constants, struct bhi_complaint *complaint);
/* Room for what comes before the numbers of the expression. */
struct bhi_constants bhi_form_constants(const struct bhi_form *form,
                                        const struct bhi_variant *variant);
/* Emits the expression's statements; |results| gets the final value of each output. */
bool bhi_form_emit(const struct bhi_form *form, const struct bhi_variant *variant,
                   struct bhi_emitter *emitter, struct bhi_value *results);
/* Writes the GLSL of |variant|. */
bool bhi_form_write(const struct bhi_form *form, const struct bhi_variant *variant,
                    struct bhi_pen *pen, struct bhi_complaint *complaint);

#endif
