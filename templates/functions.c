#include "templates/functions.h"

#include <math.h>
#include <string.h>

static double fold_radians(double x) {
    return x * (M_PI / 180);
}

static double fold_degrees(double x) {
    return x * (180 / M_PI);
}

static double fold_inverse_sqrt(double x) {
    return 1 / sqrt(x);
}

/* In alphabetical order, for bhi_function_names. */
const struct bhi_function bhi_functions[] = {
    {"abs", BHI_FUNCTION_OWN, 1, 1, NULL, true, NULL},
    {"acos", BHI_FUNCTION_MATH, 1, 1, "acos", false, acos},
    {"acosh", BHI_FUNCTION_MATH, 1, 1, "acosh", false, acosh},
    {"all", BHI_FUNCTION_REDUCE, 1, 1, NULL, true, NULL},
    {"any", BHI_FUNCTION_REDUCE, 1, 1, NULL, true, NULL},
    {"argmax", BHI_FUNCTION_REDUCE, 1, 3, NULL, true, NULL},
    {"argmin", BHI_FUNCTION_REDUCE, 1, 3, NULL, true, NULL},
    {"asin", BHI_FUNCTION_MATH, 1, 1, "asin", false, asin},
    {"asinh", BHI_FUNCTION_MATH, 1, 1, "asinh", false, asinh},
    {"atan", BHI_FUNCTION_MATH, 1, 2, "atan", false, atan},
    {"atanh", BHI_FUNCTION_MATH, 1, 1, "atanh", false, atanh},
    {"bool", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"ceil", BHI_FUNCTION_ROUND, 1, 1, "ceil", true, ceil},
    {"clamp", BHI_FUNCTION_OWN, 3, 3, NULL, true, NULL},
    {"cos", BHI_FUNCTION_MATH, 1, 1, "cos", false, cos},
    {"cosh", BHI_FUNCTION_MATH, 1, 1, "cosh", false, cosh},
    {"degrees", BHI_FUNCTION_MATH, 1, 1, "degrees", false, fold_degrees},
    {"exp", BHI_FUNCTION_MATH, 1, 1, "exp", false, exp},
    {"exp2", BHI_FUNCTION_MATH, 1, 1, "exp2", false, exp2},
    {"f16", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"f32", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"f64", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"floor", BHI_FUNCTION_ROUND, 1, 1, "floor", true, floor},
    {"fract", BHI_FUNCTION_OWN, 1, 1, NULL, true, NULL},
    {"i16", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"i32", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"i64", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"i8", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"inversesqrt", BHI_FUNCTION_MATH, 1, 1, "inversesqrt", true, fold_inverse_sqrt},
    {"isinf", BHI_FUNCTION_OWN, 1, 1, NULL, true, NULL},
    {"isnan", BHI_FUNCTION_OWN, 1, 1, NULL, true, NULL},
    {"log", BHI_FUNCTION_MATH, 1, 1, "log", false, log},
    {"log2", BHI_FUNCTION_MATH, 1, 1, "log2", false, log2},
    {"max", BHI_FUNCTION_OWN, 2, 2, NULL, true, NULL},
    {"mean", BHI_FUNCTION_REDUCE, 1, 1, NULL, true, NULL},
    {"min", BHI_FUNCTION_OWN, 2, 2, NULL, true, NULL},
    {"mix", BHI_FUNCTION_OWN, 3, 3, NULL, true, NULL},
    {"mod", BHI_FUNCTION_OWN, 2, 2, NULL, true, NULL},
    {"pow", BHI_FUNCTION_OWN, 2, 2, "pow", false, NULL},
    {"prod", BHI_FUNCTION_REDUCE, 1, 1, NULL, true, NULL},
    {"radians", BHI_FUNCTION_MATH, 1, 1, "radians", false, fold_radians},
    {"round", BHI_FUNCTION_ROUND, 1, 1, "roundEven", true, rint},
    {"sign", BHI_FUNCTION_OWN, 1, 1, NULL, true, NULL},
    {"sin", BHI_FUNCTION_MATH, 1, 1, "sin", false, sin},
    {"sinh", BHI_FUNCTION_MATH, 1, 1, "sinh", false, sinh},
    {"smoothstep", BHI_FUNCTION_OWN, 3, 3, NULL, true, NULL},
    {"sqrt", BHI_FUNCTION_MATH, 1, 1, "sqrt", true, sqrt},
    {"step", BHI_FUNCTION_OWN, 2, 2, NULL, true, NULL},
    {"sum", BHI_FUNCTION_REDUCE, 1, 1, NULL, true, NULL},
    {"tan", BHI_FUNCTION_MATH, 1, 1, "tan", false, tan},
    {"tanh", BHI_FUNCTION_MATH, 1, 1, "tanh", false, tanh},
    {"trunc", BHI_FUNCTION_ROUND, 1, 1, "trunc", true, trunc},
    {"u16", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"u32", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"u64", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"u8", BHI_FUNCTION_CAST, 1, 1, NULL, true, NULL},
    {"where", BHI_FUNCTION_OWN, 3, 3, NULL, true, NULL},
};
enum { FUNCTIONS = sizeof bhi_functions / sizeof bhi_functions[0] };

int bhi_function_find(const char *name, size_t length) {
    for (int i = 0; i < FUNCTIONS; i++) {
        if (strlen(bhi_functions[i].name) == length &&
            !memcmp(bhi_functions[i].name, name, length)) {
            return i;
        }
    }
    return -1;
}

const char *bhi_reducer_name(enum bhi_reducer reducer) {
    static const char *const names[] = {
        [BHI_REDUCE_SUM] = "sum", [BHI_REDUCE_PROD] = "prod",     [BHI_REDUCE_MEAN] = "mean",
        [BHI_REDUCE_MIN] = "min", [BHI_REDUCE_MAX] = "max",       [BHI_REDUCE_ANY] = "any",
        [BHI_REDUCE_ALL] = "all", [BHI_REDUCE_ARGMIN] = "argmin", [BHI_REDUCE_ARGMAX] = "argmax",
    };
    return names[reducer];
}

enum bhi_reducer bhi_function_reducer(int function) {
    for (int i = BHI_REDUCE_SUM; i <= BHI_REDUCE_ARGMAX; i++) {
        if (!strcmp(bhi_functions[function].name, bhi_reducer_name((enum bhi_reducer)i))) {
            return (enum bhi_reducer)i;
        }
    }
    return BHI_REDUCE_NOT;
}

const char *bhi_function_names(void) {
    return "abs acos acosh asin asinh atan atanh ceil clamp cos cosh degrees exp exp2 floor fract "
           "inversesqrt isinf isnan log log2 max min mix mod pow radians round sign sin sinh "
           "smoothstep sqrt step tan tanh trunc where, the reductions all any argmax argmin max "
           "mean "
           "min prod sum, and for conversions the types f16 f32 f64 i8 u8 "
           "i16 u16 i32 u32 i64 u64 bool";
}

const char *bhi_function_hint(const char *name, size_t length) {
    static const char *const hints[][2] = {
        {"maximum", "write max(x, y)"},
        {"minimum", "write min(x, y)"},
        {"power", "write pow(x, y)"},
        {"clip", "write clamp(x, low, high)"},
        {"absolute", "write abs(x)"},
        {"amax", "write max(x)"},
        {"amin", "write min(x)"},
        {"product", "write prod(x)"},
        {"var", "write mean(pow(x - mean(x), 2)), with axis=... and keepdims=true within"},
        {"std", "write sqrt(mean(pow(x - mean(x), 2))), with axis=... and keepdims=true within"},
        {"cumsum", "a running sum is a kernel of its own: write it in GLSL (bulkhead run)"},
        {"cumprod", "a running product is a kernel of its own: write it in GLSL (bulkhead run)"},
        {"matmul", "a matrix product is a kernel of its own: write it in GLSL (bulkhead run)"},
        {"dot",
         "of vectors write sum(x * y); a matrix product is a kernel of its own (bulkhead run)"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (strlen(hints[i][0]) == length && !memcmp(hints[i][0], name, length)) {
            return hints[i][1];
        }
    }
    return NULL;
}
