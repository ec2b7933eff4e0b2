#include "supervisor/compile/arithmetic.h"
#include "supervisor/buffer/buffer.h"

#include "base/detail.h"
#include "formats/dtype.h"

#include <bulkhead/template.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS (30ull * 1000000000)

enum {
    ELEMENTS = 4,
    CASES = 6,
    GROUPS = 6,
    ARRAYS = GROUPS * (1 + CASES),
    ROOM = 256, /* bytes for each array: Vulkan's largest alignment */
};

/* Expressions of one input x. Inputs and answers are bits. */
struct group {
    const char *type; /* of what is computed */
    char input;       /* its name in place of x */
    bh_dtype dtype;
    uint64_t x[ELEMENTS];
    struct {
        const char *text;
        bh_dtype dtype;
        uint64_t want[ELEMENTS];
    } cases[CASES];
};

#define F32(text) text, BH_DTYPE_F32
#define F64(text) text, BH_DTYPE_F64
#define F16(text) text, BH_DTYPE_F16
#define U8(text)  text, BH_DTYPE_U8
#define I32(text) text, BH_DTYPE_I32
#define I64(text) text, BH_DTYPE_I64

#define NAN_16 0x7e00
#define NAN_32 0x7fc00000
#define NAN_64 0x7ff8000000000000
#define LOW(n) ((uint64_t)(n))

/* A truth becomes an i32, because an array of bool takes storage of 8 bits, which a device may lack.
 * The inputs of floats are infinity, NaN, -0 and 1 + epsilon, whose square is not exact. */
static const struct group groups[GROUPS] = {
    {"f32",
     'f',
     BH_DTYPE_F32,
     {0x7f800000, NAN_32, 0x80000000, 0x3f800001},
     {{F32("x * 0.0"), {NAN_32, NAN_32, 0x80000000, 0}},
      {F32("x + 0.0"), {0x7f800000, NAN_32, 0, 0x3f800001}},
      {F32("x * x - 1.0000002384185791"), {0x7f800000, NAN_32, 0xbf800002, 0}},
      {F32("max(x, 1.0)"), {0x7f800000, NAN_32, 0x3f800000, 0x3f800001}},
      {I32("i32(isnan(x * 0))"), {1, 1, 0, 0}},
      {I32("i32(x >= 0)"), {1, 0, 1, 1}}}},
    {"i32",
     'j',
     BH_DTYPE_I32,
     {LOW(-11), 11, 0, 0x80000000},
     {{I32("x // 4"), {LOW(-3), 2, 0, 0xe0000000}},
      {I32("x % 7"), {3, 4, 0, 5}},
      {I32("abs(x)"), {11, 11, 0, 0x80000000}},
      {I32("x << 40"), {0, 0, 0, 0}},
      {I32("i32(x < 0)"), {1, 0, 0, 1}}}},
    {"u8",
     'b',
     BH_DTYPE_U8,
     {250, 10, 0, 255},
     {{U8("x * x"), {36, 100, 0, 1}},
      {U8("x << 10"), {0, 0, 0, 0}},
      {U8("x // 4"), {62, 2, 0, 63}},
      {I32("i32(x < 11)"), {0, 1, 1, 0}}}},
    {"f16",
     'h',
     BH_DTYPE_F16,
     {0x7c00, NAN_16, 0x8000, 0x3c01},
     {{F16("x * 0.0"), {NAN_16, NAN_16, 0x8000, 0}},
      {F16("x + 0.0"), {0x7c00, NAN_16, 0, 0x3c01}},
      {F16("x * x - 1.001953125"), {0x7c00, NAN_16, 0xbc02, 0}},
      {F16("x + 65504.0"), {0x7c00, NAN_16, 0x7bff, 0x7bff}}}},
    {"f64",
     'd',
     BH_DTYPE_F64,
     {0x7ff0000000000000, NAN_64, 0x8000000000000000, 0x3ff0000000000001},
     {{F64("x * 0.0"), {NAN_64, NAN_64, 0x8000000000000000, 0}},
      {F64("x + 0.0"), {0x7ff0000000000000, NAN_64, 0, 0x3ff0000000000001}},
      {F64("x * x - 1.0000000000000004"), {0x7ff0000000000000, NAN_64, 0xbff0000000000002, 0}},
      {I32("i32(x >= 0)"), {1, 0, 1, 1}}}},
    {"i64", /* from i32 */
     'l',
     BH_DTYPE_I32,
     {LOW(-11), 11, 0, 0x80000000},
     {{I64("i64(x) // 7"), {LOW(-2), 1, 0, LOW(-306783379)}},
      {I64("i64(x) % 7"), {3, 4, 0, 5}},
      {I64("abs(i64(x))"), {11, 11, 0, 0x80000000}},
      {I64("sign(i64(x))"), {LOW(-1), 1, 0, LOW(-1)}},
      {I32("i32(i64(x) < 0)"), {1, 0, 0, 1}},
      {I32("i32(i64(x) <= x - x)"), {1, 0, 1, 1}}}},
};

static bool is_nan(bh_dtype dtype, uint64_t bits) {
    switch (dtype) {
    case BH_DTYPE_F16:
        return (bits & 0x7fff) > 0x7c00;
    case BH_DTYPE_F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case BH_DTYPE_F64:
        return (bits & INT64_MAX) > 0x7ff0000000000000;
    default:
        return false;
    }
}

/* Some groups as one kernel. */
struct trial {
    bh_context *context;
    bh_stream *stream;
    const struct group *from;
    uint32_t groups;
    bh_buffer *buffer; /* all arrays are in one buffer, because each takes a descriptor */
    uint8_t bytes[ARRAYS * ROOM];
    uint32_t arrays; /* the input of each group, and after it its outputs */
    bh_parameter parameters[ARRAYS];
    bh_argument arguments[ARRAYS];
    bh_description descriptions[ARRAYS];
    bh_dtype dtypes[ARRAYS];
    char names[ARRAYS][8];
    char text[2048];
};

static void add_array(struct trial *t, const char *name, bh_dtype dtype, const uint64_t *values) {
    const uint32_t i = t->arrays++, size = bhi_dtype_size(dtype);
    snprintf(t->names[i], sizeof t->names[i], "%s", name);
    t->dtypes[i] = dtype;
    t->parameters[i] = (bh_parameter){t->names[i], values ? BH_PARAMETER_IN : BH_PARAMETER_OUT,
                                      bhi_dtype_name(dtype)};
    bh_description *d = &t->descriptions[i];
    bhi_description_init(d);
    d->kind = bhi_dtype_number(dtype);
    d->bits = 8 * size;
    d->rank = 1;
    d->shape[0] = ELEMENTS;
    d->offset = (uint64_t)i * ROOM;
    t->arguments[i] = (bh_argument){.name = t->names[i], .description = d};
    for (uint32_t k = 0; values && k < ELEMENTS; k++) {
        /* little endian, as the device is */
        memcpy(&t->bytes[i * ROOM + k * size], &values[k], size);
    }
}

/* Adds "NAME = EXPRESSION;" with the input's name in place of x. */
static void add_statement(struct trial *t, const char *name, const char *expression, char input) {
    size_t used = strlen(t->text);
    used += (size_t)snprintf(t->text + used, sizeof t->text - used, "%s = ", name);
    for (const char *c = expression; *c && used < sizeof t->text - 2; c++) {
        const bool alone = *c == 'x' && !isalnum((unsigned char)c[1]) &&
                           (c == expression || !isalnum((unsigned char)c[-1]));
        t->text[used++] = alone ? input : *c;
    }
    t->text[used++] = ';';
    t->text[used] = 0;
}

static bh_status build(struct trial *t, bh_detail *detail) {
    for (uint32_t g = 0; g < t->groups; g++) {
        const struct group *group = &t->from[g];
        const char input[2] = {group->input, 0};
        add_array(t, input, group->dtype, group->x);
        for (uint32_t c = 0; c < CASES && group->cases[c].text; c++) {
            char name[8];
            snprintf(name, sizeof name, "z%u", t->arrays);
            add_statement(t, name, group->cases[c].text, group->input);
            add_array(t, name, group->cases[c].dtype, NULL);
        }
    }
    bh_status status = bh_buffer_create(t->context, sizeof t->bytes, NULL, &t->buffer, detail);
    if (status == BH_OK) {
        status = bh_buffer_write(t->buffer, 0, t->bytes, sizeof t->bytes, TIMEOUT_NS, detail);
    }
    for (uint32_t i = 0; i < t->arrays; i++) {
        t->arguments[i].buffer = t->buffer;
    }
    return status;
}

/* Is the output |array| what is wanted? Any NaN is a NaN. */
static bool is_right(const struct trial *t, uint32_t array, const uint64_t *want) {
    const bh_dtype dtype = t->dtypes[array];
    const uint32_t size = bhi_dtype_size(dtype);
    bool right = true;
    for (uint32_t k = 0; k < ELEMENTS; k++) {
        uint64_t got = 0, wanted = 0;
        memcpy(&got, &t->bytes[array * ROOM + k * size], size);
        memcpy(&wanted, &want[k], size);
        right &= got == wanted || (is_nan(dtype, got) && is_nan(dtype, wanted));
    }
    return right;
}

/* Adds "TYPE EXPRESSION" to a list, or "..." once the list is full. */
static void append(char *list, size_t size, const char *type, const char *expression) {
    static const char more[] = ", ...";
    const size_t used = strlen(list), length = strlen(type) + strlen(expression) + 3;
    if (used + length + sizeof more <= size) {
        snprintf(list + used, size - used, "%s%s%s%s", used ? ", " : "", type,
                 *expression ? " " : "", expression);
    } else if (used < sizeof more || strcmp(list + used + 1 - sizeof more, more) != 0) {
        snprintf(list + used, size - used, "%s", more);
    }
}

static void judge(const struct trial *t, struct bhi_arithmetic *out) {
    for (uint32_t g = 0, array = 0; g < t->groups; g++) {
        const struct group *group = &t->from[g];
        array++;
        for (uint32_t c = 0; c < CASES && group->cases[c].text; c++, array++) {
            out->tried++;
            if (!is_right(t, array, group->cases[c].want)) {
                append(out->which, sizeof out->which, group->type, group->cases[c].text);
                out->wrong++;
            }
        }
    }
}

static bh_status launch(struct trial *t, bh_verdict *verdict, bh_detail *detail) {
    bh_template_options options = {.struct_size = sizeof options};
    bh_template *made = NULL;
    bh_event *event = NULL;
    options.name = "arithmetic";
    options.expression = t->text;
    options.parameters = t->parameters;
    options.parameter_count = t->arrays;
    bh_status status = bh_template_create(t->context, &options, &made, detail);
    if (status == BH_OK) {
        status = bh_template_launch(t->stream, made, t->arguments, t->arrays, NULL, &event, detail);
    }
    if (status == BH_OK && bh_event_wait(event, TIMEOUT_NS) == BH_TIMEOUT) {
        (void)!bh_event_cancel(event);
    }
    if (status == BH_OK) {
        status = bh_event_verdict(event, verdict);
    }
    bh_event_release(event);
    bh_template_release(made);
    return status;
}

/* *out_lacks: the device cannot run the kernel. */
static bh_status try_groups(bh_context *context, bh_stream *stream, const struct group *from,
                            uint32_t count, struct bhi_arithmetic *out, bool *out_lacks,
                            bh_detail *detail) {
    struct trial *t = calloc(1, sizeof *t);
    if (!t) {
        return BHI_FAIL(detail, "", BH_REASON_MEMORY, .place = "trying expressions");
    }
    t->context = context;
    t->stream = stream;
    t->from = from;
    t->groups = count;
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_status status = build(t, detail);
    if (status == BH_OK) {
        status = launch(t, &verdict, detail);
    }
    *out_lacks = status == BH_OK &&
                 (verdict.status == BH_INVALID_KERNEL || verdict.status == BH_LIMIT_EXCEEDED);
    if (status == BH_OK && verdict.status == BH_OK) {
        status = bh_buffer_read(t->buffer, 0, t->bytes, sizeof t->bytes, TIMEOUT_NS, detail);
        if (status == BH_OK) {
            judge(t, out);
        }
    } else if (status == BH_OK && !*out_lacks) {
        status =
            BHI_FAIL(detail, "", verdict.reason, .status = verdict.status, .said = verdict.message);
    }
    bh_buffer_release(t->buffer);
    free(t);
    return status;
}

bh_status bhi_arithmetic_try(bh_context *context, bh_stream *stream, struct bhi_arithmetic *out,
                             bh_detail *detail) {
    bool lacks = false;
    *out = (struct bhi_arithmetic){0};
    bh_status status = try_groups(context, stream, groups, GROUPS, out, &lacks, detail);
    for (uint32_t g = 0; g < GROUPS && lacks && status == BH_OK; g++) {
        bool alone = false;
        status = try_groups(context, stream, &groups[g], 1, out, &alone, detail);
        if (alone) {
            append(out->lacking, sizeof out->lacking, groups[g].type, "");
        }
    }
    return status;
}
