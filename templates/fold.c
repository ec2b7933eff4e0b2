/* Weak numbers: numbers in the text, and results that are computed from them alone. They are
 * computed here, as Python computes them before it looks at any array. */
#include "templates/fold.h"
#include "templates/lexer.h"

#include <math.h>

static bool weak_truth(struct bhi_emitter *emitter, bool truth, struct bhi_value *out_value) {
    bhi_emit_assign(emitter, BH_DTYPE_BOOL, false, out_value, truth ? "true" : "false");
    return true;
}

static bool weak_real(double real, struct bhi_value *out_value) {
    *out_value = (struct bhi_value){.form = BHI_VALUE_REAL, .real = real};
    return true;
}

bool bhi_fold_unary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
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

bool bhi_fold_binary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
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
