/* The values of an expression's nodes while it is emitted: numbers and shader variables. */
#ifndef BHI_TEMPLATES_VALUES_H
#define BHI_TEMPLATES_VALUES_H

#include "formats/dtype.h"
#include "templates/constants.h"
#include "templates/expression.h"
#include "templates/functions.h"
#include "templates/pen.h"

/* -- the types of results, as in NumPy 2 (NEP 50) ----------------------------------------------- */

/* The type of an operation on two arrays. */
bh_dtype bhi_promote(bh_dtype a, bh_dtype b);
/* The type of an operation on an array and a number in the text, which is weak. */
bh_dtype bhi_promote_integer(bh_dtype array);
bh_dtype bhi_promote_real(bh_dtype array);
/* The type in which a function such as sin computes. */
bh_dtype bhi_promote_function(bh_dtype array);

/* -- values --------------------------------------------------------------------------------------- */

/* The value of a node: a number from the text (weak), or a variable of the shader. */
struct bhi_value {
    enum { BHI_VALUE_TYPED, BHI_VALUE_INTEGER, BHI_VALUE_REAL } form;
    bh_dtype dtype;   /* TYPED */
    char text[16];    /* TYPED: a variable */
    __int128 integer; /* INTEGER: from -2^63 to 2^64 - 1 */
    double real;      /* REAL */
};

enum bhi_helper {
    BHI_HELPER_HALF = 1,
    BHI_HELPER_DIVIDE_I32 = 2, /* these four are in the order i32 u32 i64 u64 */
    BHI_HELPER_DIVIDE_U32 = 4,
    BHI_HELPER_DIVIDE_I64 = 8,
    BHI_HELPER_DIVIDE_U64 = 16,
    BHI_HELPER_HIDE_I32 = 32, /* in the same order */
    BHI_HELPER_HIDE_U32 = 64,
    BHI_HELPER_HIDE_I64 = 128,
    BHI_HELPER_HIDE_U64 = 256,
    BHI_HELPER_HIDE_F32 = 512,
    BHI_HELPER_HIDE_F64 = 1024,
    BHI_HELPER_NARROW = 2048, /* f64 to f32 on the way to f16 */
};

/* What a reduction gathers, and how. */
struct bhi_accumulator {
    enum bhi_reducer reducer; /* NOT: there is no reduction */
    bh_dtype dtype;           /* of the variable that gathers */
    bh_dtype result;          /* of what is stored */
    bool divides;             /* by the number of elements */
    char first[16];           /* of argmin and argmax: a variable, the index of the first element */
};

struct bhi_emitter {
    const struct bhi_expression *expression;
    struct bhi_pen *pen;
    struct bhi_complaint *complaint;
    const struct bhi_node *node; /* the current node, for complaints */
    struct bhi_constants *push;  /* gets the numbers that are written */
    uint32_t temporaries;
    uint32_t helpers;
    bool wide; /* 64-bit integers are used */
    struct bhi_accumulator accumulator;
};

/* The GLSL type of a variable of |dtype|. */
const char *bhi_register_type(bh_dtype dtype);
/* Declares a new variable of |dtype| with the value of a GLSL expression. If that |overflows| the
 * type, it is cut or rounded. */
void bhi_emit_assign(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                     struct bhi_value *out_value, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same, of a value that the driver may know when it compiles the shader, or know to be of a
 * smaller type. It is hidden from the driver, because llvmpipe computes wrongly with such values: the
 * operation of a float with a constant 0 ignores NaN, infinity and -0, and an integer that was widened
 * to 64 bits is not compared correctly with a constant. */
void bhi_emit_hidden(struct bhi_emitter *emitter, bh_dtype dtype, bool overflows,
                     struct bhi_value *out_value, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Converts a value to |dtype|. A weak integer must fit, unless this is a |cast|. */
bool bhi_emit_convert(struct bhi_emitter *emitter, const struct bhi_value *value, bh_dtype dtype,
                      struct bhi_value *out_value);
/* NumPy's common type; of weak values alone their own: i64, u64 or f64. */
bh_dtype bhi_value_common(const struct bhi_value *values, uint32_t count);
bh_dtype bhi_value_promote(const struct bhi_value *a, const struct bhi_value *b);
/* The type of a value by itself: i64 or f64 if it is weak. */
bh_dtype bhi_value_dtype(const struct bhi_value *value);
bool bhi_emit_refuse(struct bhi_emitter *emitter, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Converts both values to |dtype|. */
bool bhi_emit_convert_both(struct bhi_emitter *emitter, const struct bhi_value *a,
                           const struct bhi_value *b, bh_dtype dtype,
                           struct bhi_value out_values[2]);
/* The value of a weak number as a double. */
double bhi_weak_real(const struct bhi_value *value);
/* Makes a weak integer. Refuses one that is not from -2^63 to 2^64 - 1. */
bool bhi_weak_integer(struct bhi_emitter *emitter, __int128 integer, struct bhi_value *out_value);

#endif
