/* A template, and the GLSL of its variants: what the body or the expression needs around it for
 * arguments of given types. */
#ifndef BHI_TEMPLATES_SIGNATURE_H
#define BHI_TEMPLATES_SIGNATURE_H

#include "formats/dtype.h"
#include "templates/expression.h"
#include "templates/pen.h"

enum {
    BHI_MAX_PARAMETERS = 64,
    BHI_PUSH_WORDS = 32, /* 128 bytes, which every device has; the first is the count */
    BHI_LOCAL_SIZE = 256,
    BHI_ROW_GROUPS = 65535, /* groups in a row, which every device has */
};

/* How many elements one dispatch reaches. */
#define BHI_MAX_ELEMENTS ((uint64_t)BHI_LOCAL_SIZE * 256 * BHI_ROW_GROUPS)

enum bhi_role { BHI_ROLE_IN = 1, BHI_ROLE_OUT = 2, BHI_ROLE_INOUT = 3, BHI_ROLE_PUSH = 4 };

struct bhi_parameter {
    char name[BHI_NAME_BYTES];
    enum bhi_role role;
    bh_dtype dtype;                /* COUNT: any */
    char variable[BHI_NAME_BYTES]; /* of any: parameters of the same one have the same; or empty */
};

struct bhi_form {
    char name[64]; /* fit to be quoted in a #line */
    struct bhi_parameter parameters[BHI_MAX_PARAMETERS];
    uint32_t count;
    bool is_expression;
    struct bhi_expression expression; /* owned */
    char *body, *declarations;        /* owned */
    bool grid;                        /* the body runs once an invocation, on whole arrays */
    uint32_t local_size[3];
};

/* What makes a variant one of its own. Of unused parameters nothing counts: all zero. */
struct bhi_variant {
    uint8_t dtypes[BHI_MAX_PARAMETERS];  /* bhi_dtype */
    uint8_t singles[BHI_MAX_PARAMETERS]; /* an input of one element, which goes with all */
};

const char *bhi_role_name(enum bhi_role role);

/* Looks at what was filled in: names, and an expression's use of them. */
bool bhi_form_check(const struct bhi_form *form, struct bhi_complaint *complaint);
void bhi_form_fini(struct bhi_form *form);

/* Holds the types of |variant| against the template's. Those of outputs that are BH_DTYPE_NONE
 * are filled in; where nothing says what they are, they are refused. */
bool bhi_form_infer(const struct bhi_form *form, struct bhi_variant *variant,
                    struct bhi_complaint *complaint);
/* The words of push constants that a number takes: 1 or 2. */
uint32_t bhi_push_words(bh_dtype dtype);
/* The variant's GLSL. */
bool bhi_form_write(const struct bhi_form *form, const struct bhi_variant *variant,
                    struct bhi_pen *pen, struct bhi_complaint *complaint);

#endif
