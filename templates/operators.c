/* Operators with at least one array operand: NumPy's ufuncs. */
#include "templates/operators.h"

#include "templates/lexer.h"
#include "templates/values.h"

#include <math.h>
#include <stdio.h>

/* Weak numbers: numbers in the text, and results that are computed from them alone. They are
 * computed here, as Python computes them before it looks at any array. */
static bool weak_truth(struct bhi_emitter *emitter, bool truth, struct bhi_value *out_value) {
    bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, truth ? "true" : "false");
    return true;
}

static bool weak_real(double real, struct bhi_value *out_value) {
    *out_value = (struct bhi_value){.form = BHI_VALUE_REAL, .real = real};
    return true;
}

/* Operations on weak numbers, as Python does them. */
static bool fold_unary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                       struct bhi_value *out_value) {
    const bool integer = a->form == BHI_VALUE_INTEGER;
    switch (op) {
    case '-':
        return integer ? bhi_weak_integer(emitter, -a->integer, out_value)
                       : weak_real(-a->real, out_value);
    case '~':
        return integer ? bhi_weak_integer(emitter, ~a->integer, out_value)
                       : bhi_emit_refuse(emitter, "~ takes integers only");
    case '!':
        return weak_truth(emitter, bhi_weak_real(a) == 0, out_value);
    default:
        *out_value = *a;
        return true;
    }
}

static bool compare(struct bhi_emitter *emitter, int op, int order, bool ordered,
                    struct bhi_value *out_value) {
    const bool truth = op == BHI_TOKEN_EQUAL     ? ordered && order == 0
                       : op == BHI_TOKEN_UNEQUAL ? !ordered || order != 0
                       : op == '<'               ? ordered && order < 0
                       : op == '>'               ? ordered && order > 0
                       : op == BHI_TOKEN_LESS_EQUAL
                           ? ordered && order <= 0
                           : /* BHI_TOKEN_GREATER_EQUAL */ ordered && order >= 0;
    return weak_truth(emitter, truth, out_value);
}

static bool fold_integers(struct bhi_emitter *emitter, int op, __int128 a, __int128 b,
                          struct bhi_value *out_value) {
    __int128 product;
    switch (op) {
    case '+':
        return bhi_weak_integer(emitter, a + b, out_value);
    case '-':
        return bhi_weak_integer(emitter, a - b, out_value);
    case '*':
        if (__builtin_mul_overflow(a, b, &product)) {
            product = (__int128)1 << 100;
        }
        return bhi_weak_integer(emitter, product, out_value);
    case '&':
        return bhi_weak_integer(emitter, a & b, out_value);
    case '|':
        return bhi_weak_integer(emitter, a | b, out_value);
    case '^':
        return bhi_weak_integer(emitter, a ^ b, out_value);
    case BHI_TOKEN_LEFT:
    case BHI_TOKEN_RIGHT:
        if (b < 0) {
            return bhi_emit_refuse(emitter, "a shift by a negative number");
        }
        if (op == BHI_TOKEN_RIGHT) {
            return bhi_weak_integer(emitter, a >> (b > 100 ? 100 : (int)b), out_value);
        }
        if (a && b > 64) {
            return bhi_weak_integer(emitter, (__int128)1 << 100, out_value);
        }
        return bhi_weak_integer(emitter, a ? a * ((__int128)1 << (int)b) : 0, out_value);
    default: /* // and % */
        if (!b) {
            return bhi_emit_refuse(emitter, "division by zero");
        }
        __int128 quotient = a / b;
        if (quotient * b != a && (a < 0) != (b < 0)) {
            quotient--;
        }
        return bhi_weak_integer(emitter, op == '%' ? a - quotient * b : quotient, out_value);
    }
}

static bool fold_reals(struct bhi_emitter *emitter, int op, double a, double b,
                       struct bhi_value *out_value) {
    switch (op) {
    case '+':
        return weak_real(a + b, out_value);
    case '-':
        return weak_real(a - b, out_value);
    case '*':
        return weak_real(a * b, out_value);
    case '/':
        if (b == 0) {
            return bhi_emit_refuse(emitter, "division by zero");
        }
        return weak_real(a / b, out_value);
    default:
        return bhi_emit_refuse(emitter, "// %% & | ^ << >> take integers only");
    }
}

static bool fold_binary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                        const struct bhi_value *b, struct bhi_value *out_value) {
    const double x = bhi_weak_real(a), y = bhi_weak_real(b);
    const bool integers = a->form == BHI_VALUE_INTEGER && b->form == BHI_VALUE_INTEGER;
    switch (op) {
    case BHI_TOKEN_AND:
        return weak_truth(emitter, x != 0 && y != 0, out_value);
    case BHI_TOKEN_OR:
        return weak_truth(emitter, x != 0 || y != 0, out_value);
    case '<':
    case '>':
    case BHI_TOKEN_EQUAL:
    case BHI_TOKEN_UNEQUAL:
    case BHI_TOKEN_LESS_EQUAL:
    case BHI_TOKEN_GREATER_EQUAL:
        if (integers) {
            return compare(emitter, op, (a->integer > b->integer) - (a->integer < b->integer), true,
                           out_value);
        }
        return compare(emitter, op, (x > y) - (x < y), !isnan(x) && !isnan(y), out_value);
    case '/':
        return fold_reals(emitter, op, x, y, out_value);
    default:
        return integers ? fold_integers(emitter, op, a->integer, b->integer, out_value)
                        : fold_reals(emitter, op, x, y, out_value);
    }
}

static const char *op_text(int op, char out[3]) {
    static const struct {
        int kind;
        const char *text;
    } pairs[] = {
        {BHI_TOKEN_EQUAL, "=="},         {BHI_TOKEN_UNEQUAL, "!="}, {BHI_TOKEN_LESS_EQUAL, "<="},
        {BHI_TOKEN_GREATER_EQUAL, ">="}, {BHI_TOKEN_LEFT, "<<"},    {BHI_TOKEN_RIGHT, ">>"},
        {BHI_TOKEN_FLOOR_DIVIDE, "//"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].kind == op) {
            return pairs[i].text;
        }
    }
    out[0] = (char)op;
    out[1] = 0;
    return out;
}

bool bhi_emit_unary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                    struct bhi_value *out_value) {
    struct bhi_value truth;
    if (a->form != BHI_VALUE_TYPED) {
        return fold_unary(emitter, op, a, out_value);
    }
    const bool is_bool = a->dtype == BH_DTYPE_BOOL;
    switch (op) {
    case '!':
        if (!bhi_emit_convert(emitter, a, BH_DTYPE_BOOL, &truth)) {
            return false;
        }
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "!%s", truth.text);
        return true;
    case '~':
        if (bhi_dtype_is_float(a->dtype)) {
            return bhi_emit_refuse(emitter, "~ takes integers and bool, but this is %s",
                                   bhi_dtype_name(a->dtype));
        }
        bhi_emit_assign(emitter, a->dtype, true, out_value, is_bool ? "!%s" : "~%s", a->text);
        return true;
    default:
        if (is_bool) {
            return bhi_emit_refuse(emitter, "%c does not take bool; %s", op,
                                   op == '-' ? "write !x" : "remove it");
        }
        if (op == '-') {
            bhi_emit_assign(emitter, a->dtype, true, out_value, "-%s", a->text);
        } else {
            *out_value = *a;
        }
        return true;
    }
}

bool bhi_emit_choose(struct bhi_emitter *emitter, const struct bhi_value *condition,
                     const struct bhi_value *a, const struct bhi_value *b,
                     struct bhi_value *out_value) {
    const bh_dtype dtype = bhi_value_promote(a, b);
    struct bhi_value truth, both[2];
    if (!bhi_emit_convert(emitter, condition, BH_DTYPE_BOOL, &truth) ||
        !bhi_emit_convert_both(emitter, a, b, dtype, both)) {
        return false;
    }
    bhi_emit_assign(emitter, dtype, false, out_value, "%s ? %s : %s", truth.text, both[0].text,
                    both[1].text);
    return true;
}

/* -- comparisons --------------------------------------------------------------------------------
 */

static int mirrored(int op) {
    return op == '<'                       ? '>'
           : op == '>'                     ? '<'
           : op == BHI_TOKEN_LESS_EQUAL    ? BHI_TOKEN_GREATER_EQUAL
           : op == BHI_TOKEN_GREATER_EQUAL ? BHI_TOKEN_LESS_EQUAL
                                           : op;
}

/* Returns true if the number |written| is outside the range of the array's integer type. The
 * comparison then has the same result for all elements. *out_above: it is larger than all of them,
 * not smaller. */
static bool beyond(const struct bhi_value *array, const struct bhi_value *written,
                   bool *out_above) {
    if (array->form != BHI_VALUE_TYPED || written->form != BHI_VALUE_INTEGER ||
        !bhi_dtype_is_integer(array->dtype)) {
        return false;
    }
    const uint32_t bits = 8 * bhi_dtype_size(array->dtype);
    const bool is_signed = bhi_dtype_is_signed(array->dtype);
    const __int128 least = is_signed ? -((__int128)1 << (bits - 1)) : 0;
    const __int128 most = ((__int128)1 << (is_signed ? bits - 1 : bits)) - 1;
    *out_above = written->integer > most;
    return *out_above || written->integer < least;
}

static bool is_pair_of_64(const struct bhi_value *a, const struct bhi_value *b) {
    return a->form == BHI_VALUE_TYPED && b->form == BHI_VALUE_TYPED && a->dtype == BH_DTYPE_I64 &&
           b->dtype == BH_DTYPE_U64;
}

static bool emit_comparison(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                            const struct bhi_value *b, struct bhi_value *out_value) {
    struct bhi_value both[2];
    char one[3];
    bool above = false;
    if (beyond(b, a, &above) || is_pair_of_64(b, a)) {
        return emit_comparison(emitter, mirrored(op), b, a, out_value);
    }
    if (beyond(a, b, &above)) {
        const bool truth =
            op == BHI_TOKEN_UNEQUAL ||
            (op != BHI_TOKEN_EQUAL && above == (op == '<' || op == BHI_TOKEN_LESS_EQUAL));
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, truth ? "true" : "false");
        return true;
    }
    if (is_pair_of_64(a, b)) { /* compared exactly: their common type, f64, would round */
        const bool less = op == '<' || op == BHI_TOKEN_LESS_EQUAL || op == BHI_TOKEN_UNEQUAL;
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value,
                        "%s < int64_t(0) ? %s : uint64_t(%s) %s %s", a->text,
                        less ? "true" : "false", a->text, op_text(op, one), b->text);
        return true;
    }
    const bh_dtype dtype = bhi_value_promote(a, b);
    if (!bhi_emit_convert_both(emitter, a, b, dtype, both)) {
        return false;
    }
    const char *as = dtype == BH_DTYPE_BOOL ? "uint" : "";
    bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "%s(%s) %s %s(%s)", as, both[0].text,
                    op_text(op, one), as, both[1].text);
    return true;
}

/* -- arithmetic ---------------------------------------------------------------------------------
 */

static bool emit_bool(struct bhi_emitter *emitter, int op, const struct bhi_value both[2],
                      struct bhi_value *out_value) {
    const char *glsl = op == '+' || op == '|' ? "||" : op == '*' || op == '&' ? "&&" : "^^";
    if (op == '-') {
        return bhi_emit_refuse(emitter, "- does not take bool; write x != y");
    }
    bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "%s %s %s", both[0].text, glsl,
                    both[1].text);
    return true;
}

static bool emit_integer_division(struct bhi_emitter *emitter, int op, bh_dtype dtype,
                                  const struct bhi_value both[2], struct bhi_value *out_value) {
    const uint32_t wide = bhi_dtype_size(dtype) == 8 ? 4 : 1;
    const uint32_t sign = bhi_dtype_is_signed(dtype) ? 1 : 2;
    emitter->helpers |= BHI_HELPER_DIVIDE_I32 * wide * sign;
    bhi_emit_assign(emitter, dtype, true, out_value, "%s(%s, %s)",
                    op == '%' ? "floor_modulo" : "floor_divide", both[0].text, both[1].text);
    return true;
}

/* Shifting by the number of bits or more gives 0, or the sign for a right shift of a signed type.
 */
static void emit_shift(struct bhi_emitter *emitter, int op, bh_dtype dtype,
                       const struct bhi_value both[2], struct bhi_value *out_value) {
    const uint32_t bits = 8 * bhi_dtype_size(dtype);
    const char *type = bhi_register_type(dtype), *unsigned_type = bits == 64 ? "uint64_t" : "uint";
    const char *a = both[0].text, *b = both[1].text;
    char rest[64];
    if (op == BHI_TOKEN_RIGHT && bhi_dtype_is_signed(dtype)) {
        snprintf(rest, sizeof rest, "%s >> %u", a, bits - 1);
    } else {
        snprintf(rest, sizeof rest, "%s(0)", type);
    }
    bhi_emit_assign(emitter, dtype, op == BHI_TOKEN_LEFT, out_value,
                    "%s(%s) < %s(%u) ? %s %s int(min(%s(%s), %s(%u))) : %s", unsigned_type, b,
                    unsigned_type, bits, a, op == BHI_TOKEN_LEFT ? "<<" : ">>", unsigned_type, b,
                    unsigned_type, bits - 1, rest);
}

/* Divides by a constant zero. It is written as a multiplication by infinity, which has the same
 * result: llvmpipe gives arbitrary results for a division by a constant zero, but not by a zero
 * that it learns at run time. */
static bool emit_division_by_zero(struct bhi_emitter *emitter, const struct bhi_value *a,
                                  const struct bhi_value *b, struct bhi_value *out_value) {
    const struct bhi_value infinity = {.form = BHI_VALUE_REAL,
                                       .real = copysign((double)INFINITY, bhi_weak_real(b))};
    struct bhi_value wide = *a;
    if (!bhi_dtype_is_float(a->dtype) && !bhi_emit_convert(emitter, a, BH_DTYPE_F64, &wide)) {
        return false;
    }
    return bhi_emit_binary(emitter, '*', &wide, &infinity, out_value);
}

static bool emit_arithmetic(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                            const struct bhi_value *b, struct bhi_value *out_value) {
    bh_dtype dtype = bhi_value_promote(a, b);
    const bool floor = op == BHI_TOKEN_FLOOR_DIVIDE || op == '%';
    const bool shift = op == BHI_TOKEN_LEFT || op == BHI_TOKEN_RIGHT;
    const bool bitwise = shift || op == '&' || op == '|' || op == '^';
    struct bhi_value both[2];
    char one[3];
    if (op == '/' && b->form != BHI_VALUE_TYPED && bhi_weak_real(b) == 0) {
        return emit_division_by_zero(emitter, a, b, out_value);
    }
    if (op == '/' && !bhi_dtype_is_float(dtype)) {
        dtype = BH_DTYPE_F64;
    }
    if ((floor || bitwise) && bhi_dtype_is_float(dtype)) {
        return bhi_emit_refuse(emitter, "%s needs integers, but these are %s and %s%s",
                               op_text(op, one), bhi_dtype_name(bhi_value_dtype(a)),
                               bhi_dtype_name(bhi_value_dtype(b)),
                               !floor      ? ""
                               : op == '%' ? "; write mod(x, y)"
                                           : "; write floor(x / y)");
    }
    if ((floor || shift) && dtype == BH_DTYPE_BOOL) {
        dtype = BH_DTYPE_I8;
    }
    if (!bhi_emit_convert_both(emitter, a, b, dtype, both)) {
        return false;
    }
    if (dtype == BH_DTYPE_BOOL) {
        return emit_bool(emitter, op, both, out_value);
    }
    if (floor) {
        return emit_integer_division(emitter, op, dtype, both, out_value);
    }
    if (shift) {
        emit_shift(emitter, op, dtype, both, out_value);
    } else {
        bhi_emit_assign(emitter, dtype, !bitwise, out_value, "%s %s %s", both[0].text,
                        op_text(op, one), both[1].text);
    }
    return true;
}

bool bhi_emit_binary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                     const struct bhi_value *b, struct bhi_value *out_value) {
    struct bhi_value both[2];
    if (a->form != BHI_VALUE_TYPED && b->form != BHI_VALUE_TYPED) {
        return fold_binary(emitter, op, a, b, out_value);
    }
    switch (op) {
    case BHI_TOKEN_AND:
    case BHI_TOKEN_OR:
        if (!bhi_emit_convert_both(emitter, a, b, BH_DTYPE_BOOL, both)) {
            return false;
        }
        bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, "%s %s %s", both[0].text,
                        op == BHI_TOKEN_AND ? "&&" : "||", both[1].text);
        return true;
    case '<':
    case '>':
    case BHI_TOKEN_EQUAL:
    case BHI_TOKEN_UNEQUAL:
    case BHI_TOKEN_LESS_EQUAL:
    case BHI_TOKEN_GREATER_EQUAL:
        return emit_comparison(emitter, op, a, b, out_value);
    default:
        return emit_arithmetic(emitter, op, a, b, out_value);
    }
}
