/* K3: what expressions compute, to the bit, held against C: for pairs of types, over all pairs of
 * numbers at which something could go wrong. (Which type they have, templates_promote says.) */
#include "fixture.h"
#include "formats/dtype.h"
#include "templates/values.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EDGES = 12, COUNT = EDGES * EDGES, PARTS = 16 };

/* -- numbers --------------------------------------------------------------------------------- */

/* One element, whatever its type. */
struct number {
    bh_dtype dtype;
    __int128 integer; /* of integers and bool */
    double real;      /* of floats: f16 and f32 exactly */
};

static bool is_float(bh_dtype dtype) {
    return dtype <= BH_DTYPE_F64;
}

static bool is_signed(bh_dtype dtype) {
    return !is_float(dtype) && dtype != BH_DTYPE_BOOL && (dtype - BH_DTYPE_I8) % 2 == 0;
}

/* Cut to the type's bits: what overflow leaves. */
static struct number whole(bh_dtype dtype, __int128 value) {
    const uint32_t bits = 8 * bhi_dtype_size(dtype);
    const __int128 range = (__int128)1 << bits;
    if (dtype == BH_DTYPE_BOOL) {
        return (struct number){.dtype = dtype, .integer = value != 0};
    }
    value = ((value % range) + range) % range;
    if (is_signed(dtype) && value >= range / 2) {
        value -= range;
    }
    return (struct number){.dtype = dtype, .integer = value};
}

static struct number real(bh_dtype dtype, double value) {
    if (dtype == BH_DTYPE_F32) {
        value = (double)(float)value;
    }
    if (dtype == BH_DTYPE_F16) {
        value = bhi_f16_to_double(bhi_f16_from_double(value));
    }
    return (struct number){.dtype = dtype, .real = value};
}

static struct number convert(struct number n, bh_dtype dtype) {
    if (!is_float(dtype)) {
        return whole(dtype, is_float(n.dtype) ? n.real != 0 : n.integer);
    }
    if (is_float(n.dtype)) {
        return real(dtype, n.real);
    }
    return dtype == BH_DTYPE_F64 ? real(dtype, (double)n.integer)
                                 : real(dtype, (double)(float)n.integer);
}

static void put(const struct number *n, void *at) {
    const uint32_t size = bhi_dtype_size(n->dtype);
    const float narrow = (float)n->real;
    const uint16_t half = is_float(n->dtype) ? bhi_f16_from_double(n->real) : 0;
    if (!is_float(n->dtype)) {
        memcpy(at, &n->integer, size);
    } else {
        memcpy(at,
               n->dtype == BH_DTYPE_F16   ? (const void *)&half
               : n->dtype == BH_DTYPE_F32 ? (const void *)&narrow
                                          : (const void *)&n->real,
               size);
    }
}

/* The edges of a type; no denormal floats: devices may take them for zero. */
static struct number edge(bh_dtype dtype, int index) {
    static const double reals[EDGES] = {0, -0.0, 1,        -1,   1.5, -2.25,
                                        3, 7,    INFINITY, -100, NAN, -INFINITY};
    static const double largest[] = {
        [BH_DTYPE_F16] = 65504, [BH_DTYPE_F32] = (double)FLT_MAX, [BH_DTYPE_F64] = DBL_MAX};
    static const double odd[] = {[BH_DTYPE_F16] = 1.0009765625,
                                 [BH_DTYPE_F32] = 1 + (double)FLT_EPSILON,
                                 [BH_DTYPE_F64] = 1 + DBL_EPSILON};
    const uint32_t bits = 8 * bhi_dtype_size(dtype);
    const __int128 most = ((__int128)1 << (is_signed(dtype) ? bits - 1 : bits)) - 1;
    const __int128 least = is_signed(dtype) ? -most - 1 : 0;
    const bool large = bits == 64; /* of which f64 makes the same number */
    const __int128 near = (__int128)1 << 62;
    const __int128 wholes[EDGES] = {
        0,        1,     2,         3,       large ? near + 1 : 7, large ? near : 13, -1, most,
        most - 1, least, least + 1, most / 3};
    if (!is_float(dtype)) {
        return whole(dtype, wholes[index]);
    }
    if (index == 6) {
        return real(dtype, largest[dtype]);
    }
    return index == 9 ? real(dtype, odd[dtype]) : real(dtype, reals[index]);
}

/* -- what C computes ------------------------------------------------------------------------- */

static __int128 floor_divide(__int128 a, __int128 b) {
    const __int128 quotient = b ? a / b : 0;
    return b && quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static __int128 shift(__int128 a, __int128 by, uint32_t bits, bool left) {
    const bool all = by < 0 || by >= bits;
    if (left) {
        return all ? 0 : a * ((__int128)1 << (int)by);
    }
    return a >> (all ? 100 : (int)by);
}

static struct number whole_of(const char *op, bh_dtype r, __int128 a, __int128 b) {
    const uint32_t bits = 8 * bhi_dtype_size(r);
    switch (op[0]) {
    case '+':
        return whole(r, a + b);
    case '-':
        return whole(r, a - b);
    case '*': /* two of 64 bits unsigned do not fit; the low bits do */
        return whole(r, (__int128)((unsigned __int128)a * (unsigned __int128)b));
    case '/':
        return whole(r, floor_divide(a, b));
    case '%':
        return whole(r, b ? a - floor_divide(a, b) * b : 0);
    case '&':
        return whole(r, a & b);
    case '|':
        return whole(r, a | b);
    case '^':
        return whole(r, a ^ b);
    case '<':
        return whole(r, shift(a, b, bits, true));
    case '>':
        return whole(r, shift(a, b, bits, false));
    case 'm':
        return whole(r, a < b ? a : b);
    default:
        return whole(r, a > b ? a : b);
    }
}

static struct number real_of(const char *op, bh_dtype r, double a, double b) {
    /* f16 as NumPy has it, through f32; a double holds what a float's operation rounds. */
    const bool wide = r == BH_DTYPE_F64;
    const float x = (float)a, y = (float)b;
    switch (op[0]) {
    case '+':
        return real(r, wide ? a + b : (double)(x + y));
    case '-':
        return real(r, wide ? a - b : (double)(x - y));
    case '*':
        return real(r, wide ? a * b : (double)(x * y));
    case 'm':
        return real(r, isnan(a) || isnan(b) ? NAN : a <= b ? a : b);
    default:
        return real(r, isnan(a) || isnan(b) ? NAN : a >= b ? a : b);
    }
}

/* Exactly: a double and an integer of 64 bits are compared as NumPy does, in double. */
static bool less(struct number a, struct number b) {
    const bh_dtype r = bhi_promote(a.dtype, b.dtype);
    if (!is_float(a.dtype) && !is_float(b.dtype)) {
        return a.integer < b.integer;
    }
    return convert(a, r).real < convert(b, r).real;
}

static bool equal(struct number a, struct number b) {
    const bh_dtype r = bhi_promote(a.dtype, b.dtype);
    if (!is_float(a.dtype) && !is_float(b.dtype)) {
        return a.integer == b.integer;
    }
    return convert(a, r).real == convert(b, r).real;
}

static struct number want(const char *op, struct number a, struct number b);

/* Beside a constant, which is written, computed of integers or converted: what comes after the first
 * character of |op| is what it is. */
static struct number want_constant(const char *op, struct number a) {
    const bool of_float = is_float(a.dtype);
    const struct number wide = of_float ? a : convert(a, BH_DTYPE_I64);
    const struct number zero = of_float ? real(a.dtype, 0) : whole(BH_DTYPE_I64, 0);
    const struct number seven = whole(BH_DTYPE_I64, 7);
    switch (op[1]) {
    case 'a':
        return whole(BH_DTYPE_I64, wide.integer < 0 ? -wide.integer : wide.integer);
    case 's':
        return whole(BH_DTYPE_I64, (wide.integer > 0) - (wide.integer < 0));
    case 'n':
        return whole(BH_DTYPE_BOOL, isnan(want("*", a, zero).real));
    case '/':
    case '%':
        return want(op + 1, wide, seven);
    case 'r': /* the other way round */
        return want(op + 2, zero, wide);
    default:
        return want(op + 1, wide, zero);
    }
}

static struct number want(const char *op, struct number a, struct number b) {
    bh_dtype r = bhi_promote(a.dtype, b.dtype);
    if (op[0] == '0') {
        return want_constant(op, a);
    }
    if (!strcmp(op, "<")) {
        return whole(BH_DTYPE_BOOL, less(a, b));
    }
    if (!strcmp(op, "==")) {
        return whole(BH_DTYPE_BOOL, equal(a, b));
    }
    if (!strcmp(op, "?")) {
        return convert(less(b, a) ? a : b, r);
    }
    if (r == BH_DTYPE_BOOL && (op[0] == '/' || op[0] == '%' || op[1] == op[0])) {
        r = BH_DTYPE_I8;
    }
    if (!strcmp(op, "+<")) {
        return want("<", want("+", a, b), a);
    }
    if (!strcmp(op, "*-")) {
        return want("-", want("*", a, b), b);
    }
    const struct number x = convert(a, r), y = convert(b, r);
    return is_float(r) ? real_of(op, r, x.real, y.real) : whole_of(op, r, x.integer, y.integer);
}

/* -- what the device computes ---------------------------------------------------------------- */

static bh_context *context;
static bh_stream *stream;

static bh_buffer *make(const bh_description *d) {
    bh_buffer *buffer = fx_buffer(context, d->bits / 8 * COUNT);
    BHT_EQ(bh_buffer_set_description(buffer, d, NULL), BH_OK);
    return buffer;
}

static bh_buffer *make_edges(bh_dtype dtype, bool rows) {
    const bh_description d = {.struct_size = sizeof d,
                              .kind = bhi_dtype_number(dtype),
                              .bits = 8 * bhi_dtype_size(dtype),
                              .rank = 1,
                              .shape = {COUNT}};
    bh_buffer *buffer = make(&d);
    uint8_t *bytes = (uint8_t *)fx_pointer(buffer);
    for (int i = 0; i < COUNT; i++) {
        const struct number n = edge(dtype, rows ? i / EDGES : i % EDGES);
        put(&n, bytes + (size_t)i * bhi_dtype_size(dtype));
    }
    return buffer;
}

static void compare(const char *op, bh_dtype a, bh_dtype b, const bh_description *d,
                    bh_buffer *buffer) {
    const uint8_t *got = (const uint8_t *)fx_pointer(buffer);
    for (int i = 0; i < COUNT; i++) {
        const struct number wanted = want(op, edge(a, i / EDGES), edge(b, i % EDGES));
        uint8_t bytes[8] = {0}, is[8] = {0};
        const uint32_t size = bhi_dtype_size(wanted.dtype);
        BHT_EQ(d->bits, 8 * size);
        put(&wanted, bytes);
        memcpy(is, got + (size_t)i * size, size);
        if (is_float(wanted.dtype) && isnan(wanted.real)) { /* any NaN */
            double value = NAN;
            float narrow;
            uint16_t half;
            memcpy(&half, is, 2);
            memcpy(&narrow, is, 4);
            memcpy(&value, is, 8);
            if (isnan(size == 2 ? bhi_f16_to_double(half) : size == 4 ? (double)narrow : value)) {
                continue;
            }
        }
        if (memcmp(bytes, is, size) != 0) {
            unsigned long long x, y;
            memcpy(&x, bytes, 8);
            memcpy(&y, is, 8);
            BHT_FAIL("%s %s %s of edges %d and %d is 0x%llx, not 0x%llx", bhi_dtype_name(a), op,
                     bhi_dtype_name(b), i / EDGES, i % EDGES, y, x);
        }
    }
}

static bh_detail why;

static void must(bh_status status) {
    if (status != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

/* One kernel of all |ops|: the outputs are called a, b, ... */
static void check(const char *expression, const char *const *ops, uint32_t count, bh_dtype a,
                  bh_dtype b) {
    bh_parameter parameters[PARTS + 2] = {{"x", BH_PARAMETER_IN, NULL},
                                          {"y", BH_PARAMETER_IN, NULL}};
    bh_argument arguments[PARTS + 2] = {{.name = "x", .buffer = make_edges(a, true)},
                                        {.name = "y", .buffer = make_edges(b, false)}};
    bh_description descriptions[PARTS];
    static const char names[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l";
    const bh_template_options options = {.struct_size = sizeof options,
                                         .expression = expression,
                                         .parameters = parameters,
                                         .parameter_count = count + 2};
    bh_template *made = NULL;
    bh_event *event = NULL;
    for (uint32_t i = 0; i < count; i++) {
        arguments[i + 2].name = names + (size_t)2 * i;
        parameters[i + 2] = (bh_parameter){arguments[i + 2].name, BH_PARAMETER_OUT, NULL};
    }
    must(bh_template_create(context, &options, &made, &why));
    for (uint32_t i = 0; i < count; i++) {
        bh_argument *out = &arguments[i + 2];
        descriptions[i] = (bh_description){.struct_size = sizeof(bh_description)};
        must(bh_template_output(made, arguments, count + 2, out->name, &descriptions[i], &why));
        out->buffer = make(&descriptions[i]);
    }
    must(bh_template_launch(stream, made, arguments, count + 2, NULL, &event, &why));
    fx_expect(event, BH_OK);
    for (uint32_t i = 0; i < count; i++) {
        compare(ops[i], a, b, &descriptions[i], arguments[i + 2].buffer);
    }
    for (uint32_t i = 0; i < count + 2; i++) {
        bh_buffer_release(arguments[i].buffer);
    }
    bh_template_release(made);
}

static void begin(void) {
    context = fx_context(NULL);
    stream = fx_stream(context, "values", FX_SECONDS);
}
BHT_AT_START(bht_around(begin, NULL))

/* All pairs of types; a quarter of them in builds with a sanitizer. */
TEST_WITH(arithmetic, 200, 0) {
    static const char *const ops[] = {"+", "*", "<", "==", "m", "M", "?", "+<", "-", "*-"};
    for (int a = 0; a < BHI_DTYPE_COUNT; a++) {
        for (int b = a; b < BHI_DTYPE_COUNT; b++) {
            /* No sanitizer looks at the device, which computes them: there each type is enough. */
            if ((BHT_ASAN || BHT_TSAN) && (a + b) % 4 != 0) {
                continue;
            }
            const bool bools = bhi_dtypes[a] == BH_DTYPE_BOOL && a == b; /* has no - */
            check(bools ? "a = x + y; b = x * y; c = x < y; d = x == y; e = min(x, y);"
                          "f = max(x, y); g = x > y ? x : y; h = x + y < x"
                        : "a = x + y; b = x * y; c = x < y; d = x == y; e = min(x, y);"
                          "f = max(x, y); g = x > y ? x : y; h = x + y < x; i = x - y;"
                          "j = x * y - y",
                  ops, bools ? 8 : 10, bhi_dtypes[a], bhi_dtypes[b]);
        }
    }
}

/* Division rounds down, by zero it is zero; shifts may be by anything. */
TEST(integers) {
    static const char *const ops[] = {"//", "%", "&", "|", "^", "<<", ">>"};
    static const bh_dtype pairs[][2] = {
        {BH_DTYPE_I8, BH_DTYPE_I8},   {BH_DTYPE_U8, BH_DTYPE_U8},   {BH_DTYPE_I16, BH_DTYPE_I16},
        {BH_DTYPE_U16, BH_DTYPE_U16}, {BH_DTYPE_I32, BH_DTYPE_I32}, {BH_DTYPE_U32, BH_DTYPE_U32},
        {BH_DTYPE_I64, BH_DTYPE_I64}, {BH_DTYPE_U64, BH_DTYPE_U64}, {BH_DTYPE_I8, BH_DTYPE_U8},
        {BH_DTYPE_U32, BH_DTYPE_I32}, {BH_DTYPE_I64, BH_DTYPE_U32}, {BH_DTYPE_BOOL, BH_DTYPE_I16},
        {BH_DTYPE_I32, BH_DTYPE_I64}, {BH_DTYPE_I32, BH_DTYPE_U32}};
    for (size_t i = 0; i < BHT_COUNT(pairs); i++) {
        check("a = x // y; b = x % y; c = x & y; d = x | y; e = x ^ y; f = x << y; g = x >> y", ops,
              7, pairs[i][0], pairs[i][1]);
    }
}

/* What is computed of bool alone. */
TEST(bools) {
    static const char *const ops[] = {"//", "%", "<<", ">>"};
    check("a = x // y; b = x % y; c = x << y; d = x >> y", ops, 4, BH_DTYPE_BOOL, BH_DTYPE_BOOL);
}

/* An integer that became i64, beside a constant: llvmpipe compares it wrongly if it knows both. */
TEST(widened_beside_constants) {
    static const char *const ops[] = {"0//", "0%", "0a", "0s", "0<", "0r<", "0==", "0<"};
    static const bh_dtype dtypes[] = {BH_DTYPE_I8, BH_DTYPE_I16, BH_DTYPE_I32, BH_DTYPE_U32};
    for (size_t i = 0; i < BHT_COUNT(dtypes); i++) {
        check("a = i64(x) // 7; b = i64(x) % 7; c = abs(i64(x)); d = sign(i64(x)); e = i64(x) < 0;"
              "f = 0 < i64(x); g = i64(x) == 0; h = i64(x) < y - y",
              ops, 8, dtypes[i], BH_DTYPE_I32);
    }
}

/* A zero that is known when the kernel is compiled, beside NaN, infinities and -0. */
TEST(zeros_known_at_compile_time) {
    static const char *const ops[] = {"0*", "0*", "0*", "0*", "0*", "0n", "0+", "0r-", "0-"};
    static const bh_dtype dtypes[] = {BH_DTYPE_F16, BH_DTYPE_F32, BH_DTYPE_F64};
    for (size_t i = 0; i < BHT_COUNT(dtypes); i++) {
        check("a = x * 0.0; b = x * (y - y); c = (y << 10) * x; d = x * (y < y);"
              "e = x * f16(step(1.0, 0.0)); f = isnan(x * 0.0); g = x + 0.0; h = 0.0 - x; i = x - "
              "0.0",
              ops, 9, dtypes[i], BH_DTYPE_U8);
    }
}

/* Their bits become the numbers that they are; numbers are rounded to them as the host does it: those
 * halfway to the next one, and beside it. */
TEST(small_floats) {
    enum { ALL = 1 << 16 };
    static const bh_dtype dtypes[] = {BH_DTYPE_BF16, BH_DTYPE_F8_E4M3, BH_DTYPE_F8_E5M2};
    for (size_t k = 0; k < BHT_COUNT(dtypes); k++) {
        const bh_dtype dtype = dtypes[k];
        const uint32_t size = bhi_dtype_size(dtype);
        const uint64_t mask = (UINT64_C(1) << 8 * size) - 1;
        const bh_parameter parameters[] = {{"x", BH_PARAMETER_IN, NULL},
                                           {"y", BH_PARAMETER_IN, "float32"},
                                           {"a", BH_PARAMETER_OUT, NULL},
                                           {"b", BH_PARAMETER_OUT, bhi_dtype_name(dtype)}};
        const bh_template_options options = {.struct_size = sizeof options,
                                             .expression = "a = x; b = y",
                                             .parameters = parameters,
                                             .parameter_count = 4};
        bh_description d[4];
        bh_argument arguments[4];
        uint8_t *bytes[4];
        bh_template *made = NULL;
        bh_event *event = NULL;
        for (int i = 0; i < 4; i++) {
            const bh_dtype of = i % 3 ? BH_DTYPE_F32 : dtype;
            d[i] = (bh_description){.struct_size = sizeof d[i],
                                    .kind = bhi_dtype_number(of),
                                    .bits = 8 * bhi_dtype_size(of),
                                    .rank = 1,
                                    .shape = {ALL}};
            bh_buffer *buffer = fx_buffer(context, ALL * bhi_dtype_size(of));
            bytes[i] = (uint8_t *)fx_pointer(buffer);
            arguments[i] =
                (bh_argument){.name = parameters[i].name, .buffer = buffer, .description = &d[i]};
        }
        float *const y = (float *)bytes[1];
        for (uint64_t i = 0; i < ALL; i++) {
            const uint64_t bits = i & mask;
            memcpy(bytes[0] + i * size, &bits, size);
            const double one = bhi_dtype_to_double(dtype, bits);
            const double next = bhi_dtype_to_double(dtype, (bits + 1) & mask);
            const double last = bhi_dtype_to_double(dtype, (bits - 1) & mask);
            const double middle = isfinite(next) ? (one + next) / 2 : one + (one - last) / 2;
            const uint64_t beside = (i + i / (mask + 1)) % 3;
            y[i] = beside ? nextafterf((float)middle, beside == 1 ? -INFINITY : INFINITY)
                          : (float)middle;
        }
        must(bh_template_create(context, &options, &made, &why));
        must(bh_template_launch(stream, made, arguments, 4, NULL, &event, &why));
        fx_expect(event, BH_OK);
        for (uint64_t i = 0; i < ALL; i++) {
            const double a = (double)((float *)bytes[2])[i];
            const double wanted = bhi_dtype_to_double(dtype, i & mask);
            uint64_t b = 0;
            memcpy(&b, bytes[3] + i * size, size);
            if (isnan(wanted) ? !isnan(a) : a != wanted || signbit(a) != signbit(wanted)) {
                BHT_FAIL("%s 0x%llx is %a", parameters[3].type, (unsigned long long)(i & mask), a);
            }
            if (isnan(y[i]) ? !isnan(bhi_dtype_to_double(dtype, b))
                            : b != bhi_dtype_from_double(dtype, (double)y[i])) {
                BHT_FAIL("%s of %a is 0x%llx", parameters[3].type, (double)y[i],
                         (unsigned long long)b);
            }
        }
        for (int i = 0; i < 4; i++) {
            bh_buffer_release(arguments[i].buffer);
        }
        bh_template_release(made);
    }
}

/* A device that adds where a kernel multiplies. tests/system/grid.c has the other ones. */
TEST(the_doctor_finds_wrong_numbers) {
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    bh_context *own = fx_context("*:multiplies_wrongly:*=fail");
    size_t count = 0, found = 0;
    BHT_EQ(bh_doctor(own, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, "arithmetic") == 0 && found++ == 0) {
            BHT_EQ(checks[i].result, BH_CHECK_BROKEN);
            BHT_STR_HAS(checks[i].text, " of 29 expressions to the bit, but not f32 x * 0.0, ");
        }
    }
    BHT_GE(found, 1);
}
