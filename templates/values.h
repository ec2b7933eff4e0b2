/* The values of an expression's nodes while it is emitted: numbers and shader variables. */
#ifndef BHI_TEMPLATES_VALUES_H
#define BHI_TEMPLATES_VALUES_H

#include "templates/expression.h"
#include "templates/pen.h"
#include "templates/promote.h"

/* What a node is: a number that was written (weak), or a variable of the shader. */
struct bhi_value {
    enum { BHI_VALUE_TYPED, BHI_VALUE_INTEGER, BHI_VALUE_REAL } form;
    bh_dtype dtype;   /* TYPED */
    char text[16];    /* TYPED: a variable */
    __int128 integer; /* INTEGER: from -2^63 to 2^64 - 1 */
    double real;      /* REAL */
};

enum bhi_helper {
    BHI_HELPER_HALF = 1,
    BHI_HELPER_DIVIDE_I32 = 2, /* these four in the order of i32 u32 i64 u64 */
    BHI_HELPER_DIVIDE_U32 = 4,
    BHI_HELPER_DIVIDE_I64 = 8,
    BHI_HELPER_DIVIDE_U64 = 16,
};

struct bhi_emitter {
    const struct bhi_expression *expression;
    struct bhi_pen *pen;
    struct bhi_complaint *complaint;
    const struct bhi_node *node; /* that is worked on: for complaints */
    uint32_t temporaries;
    uint32_t helpers;
    bool wide; /* 64-bit integers are used */
};

/* The GLSL type of a variable of |dtype|. */
const char *bhi_register_type(bh_dtype dtype);
/* A new variable of |dtype| that holds the GLSL expression, cut or rounded to the type where that
 * |overflows| it. */
void bhi_emit_assign(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                     struct bhi_value *out_value, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same number as a |dtype|; a weak integer has to fit, where it is not |cast|. */
bool bhi_emit_convert(struct bhi_emitter *emitter, const struct bhi_value *value, bh_dtype dtype,
                      struct bhi_value *out_value);
/* NumPy's type of the two together. Both weak: i64 or f64. */
bh_dtype bhi_value_promote(const struct bhi_value *a, const struct bhi_value *b);
/* What a value is when it stands for itself: i64 or f64 of a weak one. */
bh_dtype bhi_value_dtype(const struct bhi_value *value);
bool bhi_emit_refuse(struct bhi_emitter *emitter, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Both as a |dtype|. */
bool bhi_emit_convert_both(struct bhi_emitter *emitter, const struct bhi_value *a,
                           const struct bhi_value *b, bh_dtype dtype,
                           struct bhi_value out_values[2]);
/* Of a weak number. */
double bhi_weak_real(const struct bhi_value *value);
/* A weak integer, where it is from -2^63 to 2^64 - 1. */
bool bhi_weak_integer(struct bhi_emitter *emitter, __int128 integer, struct bhi_value *out_value);

#endif
