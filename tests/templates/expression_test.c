/* K3: expressions: what they are refused for, and where; what type comes out. */
#include "harness.h"
#include "templates/signature.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "x=f32 y=i8 z": inputs with their types, outputs without. */
static void parse_parameters(const char *text, struct bhi_form *form, struct bhi_variant *variant) {
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct bhi_parameter *parameter = &form->parameters[form->count];
        char *type = strchr(word, '=');
        bh_dtype dtype = BH_DTYPE_NONE;
        parameter->dtype = BH_DTYPE_NONE;
        parameter->role = type ? BHI_ROLE_IN : BHI_ROLE_OUT;
        if (type) {
            *type = 0;
            BHT_TRUE(bhi_dtype_find(type + 1, strlen(type + 1), &dtype));
        }
        variant->dtypes[form->count++] = (uint8_t)dtype;
        snprintf(parameter->name, sizeof parameter->name, "%s", word);
    }
}

static struct bhi_constants push; /* of the expression that was compiled last */

/* The last output's type, and the text; NULL with a complaint. The text is the caller's. */
static char *compile(const char *source, const char *parameters, const char **out_type,
                     struct bhi_complaint *complaint) {
    struct bhi_form *form = calloc(1, sizeof *form);
    struct bhi_variant variant = {0};
    struct bhi_pen pen = {0};
    form->is_expression = true;
    snprintf(form->name, sizeof form->name, "test");
    parse_parameters(parameters, form, &variant);
    const bool good = bhi_expression_parse(source, strlen(source), &form->expression, complaint) &&
                      bhi_form_check(form, complaint) &&
                      bhi_form_infer(form, &variant, &push, complaint) &&
                      bhi_form_write(form, &variant, &pen, complaint);
    if (good) {
        *out_type = bhi_dtype_name((bh_dtype)variant.dtypes[form->count - 1]);
    }
    bhi_form_fini(form);
    free(form);
    if (good) {
        return pen.text;
    }
    bhi_pen_fini(&pen);
    return NULL;
}

/* What NumPy 2 says: numpy.result_type of the arrays, NEP 50 for what is written, and the ufuncs'
 * own types. */
TEST(test_types) {
    static const struct {
        const char *source, *parameters, *type;
    } cases[] = {
        {"z = x + 1", "x=i8 z", "i8"},
        {"z = x + 1", "x=bool z", "i64"},
        {"z = x + 1.5", "x=i8 z", "f64"},
        {"z = x + 1.5", "x=f16 z", "f16"},
        {"z = x * 1e300", "x=f32 z", "f32"},
        {"z = x + y", "x=i8 y=u8 z", "i16"},
        {"z = x + y", "x=i64 y=u64 z", "f64"},
        {"z = x / y", "x=i8 y=i8 z", "f64"},
        {"z = where(x, y, 2.5)", "x=bool y=f32 z", "f32"},
        {"z = sum(x)", "x=i8 z", "i64"},
        {"z = sum(x)", "x=bool z", "i64"},
        {"z = prod(x)", "x=u16 z", "u64"},
        {"z = sum(x)", "x=f16 z", "f16"},
        {"z = sum(x, parts=2)", "x=f16 z", "f32"},
        {"z = mean(x)", "x=f32 z", "f32"},
        {"z = mean(x)", "x=u8 z", "f64"},
        {"z = min(x)", "x=i8 z", "i8"},
        {"z = max(x)", "x=bool z", "bool"},
        {"z = any(x)", "x=f64 z", "bool"},
        {"z = argmax(x, m, k)", "x=f32 m=f32 k=i64 z", "i64"},
        {"z = sum(x * 0.5)", "x=f32 z", "f32"},
        {"z = x / 2", "x=f32 z", "f32"},
        {"z = x // y", "x=bool y=bool z", "i8"},
        {"z = x + y", "x=bool y=bool z", "bool"},
        {"z = x & y", "x=bool y=i16 z", "i16"},
        {"z = x << y", "x=bool y=bool z", "i8"},
        {"z = x < y", "x=f64 y=i8 z", "bool"},
        {"z = x && y", "x=f64 y=i8 z", "bool"},
        {"z = !x", "x=f64 z", "bool"},
        {"z = ~x", "x=bool z", "bool"},
        {"z = x ? 1 : 2", "x=bool z", "i64"},
        {"z = x ? y : 2.5", "x=bool y=f32 z", "f32"},
        {"z = x ? y : 2.5", "x=bool y=i32 z", "f64"},
        {"z = sqrt(x)", "x=i8 z", "f16"},
        {"z = sqrt(x)", "x=u16 z", "f32"},
        {"z = sqrt(x)", "x=i32 z", "f64"},
        {"z = x * sqrt(2)", "x=f32 z", "f32"},
        {"z = floor(x)", "x=i8 z", "i8"},
        {"z = abs(x)", "x=i8 z", "i8"},
        {"z = min(x, 3)", "x=u8 z", "u8"},
        {"z = min(x, 3.5)", "x=u8 z", "f64"},
        {"z = pow(x, 2)", "x=i32 z", "i32"},
        {"z = pow(x, 2.5)", "x=f32 z", "f32"},
        {"z = isnan(x)", "x=i32 z", "bool"},
        {"z = u8(x)", "x=f64 z", "u8"},
        {"z = mix(x, y, x > y)", "x=i32 y=i8 z", "i32"},
        {"z = 7", "z", "i64"},
        {"z = 7 / 2", "z", "f64"},
        {"z = 18446744073709551615", "z", "u64"},
        {"z = 2 > 1", "z", "bool"},
        {"t = 2; z = x * t", "x=f32 z", "f32"}, /* what was written stays so */
        {"x = x + 1; z = x * 0.5", "x=f16 z", "f16"},
        {"z = x > 300", "x=u8 z", "bool"},
        {"z = pi * x", "x=f32 z", "f32"},
        {"z = x + true", "x=i8 z", "i8"},
        {"z = clamp(x, 10, y)", "x=bool y=i32 z", "i32"}, /* of all three at once */
        {"z = clamp(x, 10, 20)", "x=bool z", "i64"},
        {"z = clamp(x, y, w)", "x=i16 y=u16 w=f32 z", "f32"},
        {"z = clamp(2, y, 2.5)", "y=i8 z", "f64"},
        {"z = mix(x, 10, y)", "x=bool y=f32 z", "f32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bhi_complaint complaint = {.text = ""};
        const char *type = NULL;
        char *text = compile(cases[i].source, cases[i].parameters, &type, &complaint);
        if (!text) {
            BHT_FAIL("%s: %s", cases[i].source, complaint.text);
        }
        if (strcmp(type, cases[i].type) != 0) {
            BHT_FAIL("%s of %s is %s, not %s", cases[i].source, cases[i].parameters, type,
                     cases[i].type);
        }
        free(text);
    }
}

TEST(test_refusals) {
    static const struct {
        const char *source, *parameters, *why;
    } cases[] = {
        {"", "z", "it is empty"},
        {" ; \n", "z", "it is empty"},
        {"2*x + y", "x=f32 y=f32 z", "column 1: '2' where NAME = ... was expected"},
        {"x + y", "x=f32 y=f32 z", "column 3: '+' where '=' (write NAME = ...) was expected"},
        {"z = 2*x +", "x=f32 z",
         "column 10: the expression ends where a number, a name or '(' was expected"},
        {"z = (x", "x=f32 z", "column 7: the expression ends where ')' was expected"},
        {"z = x)", "x=f32 z", "column 6: ')' where an operator or the end was expected"},
        {"z = x y", "x=f32 z", "column 7: 'y' where an operator or the end was expected"},
        {"z = x == y = 1", "x=f32 z", "column 12: '=' where none was expected; equality is =="},
        {"z = x ** 2", "x=f32 z", "column 7: a power is written pow(x, y)"},
        {"z = x @ 2", "x=f32 z",
         "column 7: a matrix product is a kernel of its own: write it in GLSL (bulkhead run)"},
        {"z = x \x01", "x=f32 z", "column 7: byte 0x01 has no meaning here"},
        {"z = x \xc3\xa9", "x=f32 z", "column 7: byte 0xc3 has no meaning here"},
        {"z = 1.5f * x", "x=f32 z", "column 5: '1.5f' is not a number"},
        {"z = 1.2.3 * x", "x=f32 z", "column 5: '1.2.' is not a number"},
        {"z = 0x * x", "x=f32 z", "is not a number"},
        {"z = 99999999999999999999 * x", "x=f32 z", "column 5: the number 99999999999999999999"},
        {"z = 1e999 * x", "x=f32 z", "column 5: the number 1e999 is too large"},
        {"z = k * x", "x=f32 z", "column 5: there is no input 'k'"},
        {"z = x * k + m / k", "x=f32 z", "column 9: there are no inputs 'k', 'm'"},
        {"a = 1\nz = k * x", "x=f32 z", "line 2, column 5: there is no input 'k'"},
        {"z = x", "x=f32 y=f32 z", "input 'y' is not used by the expression"},
        {"x = 1; z = x", "x=f32 z", "input 'x' is not used by the expression"},
        {"t = x", "x=f32 z", "output 'z' is never assigned"},
        {"z = sine(x)", "x=f32 z", "column 5: there is no function 'sine'; the functions are abs"},
        {"z = maximum(x, 0)", "x=f32 z",
         "column 5: there is no function 'maximum'; write max(x, y)"},
        {"z = float32(x)", "x=f32 z", "and for conversions the types f16 f32"},
        {"z = clamp(x)", "x=f32 z", "column 5: clamp takes 3 arguments, not 1"},
        {"z = sin(x, x)", "x=f32 z", "column 5: sin takes 1 argument, not 2"},
        {"z = clamp(x, 1, 2, 3)", "x=f32 z", "column 5: clamp takes 3 arguments, not 4"},
        {"z = 1 < x < 2", "x=f32 z", "column 11: comparisons do not chain"},
        {"z = x & 1 == 0", "x=i32 z", "column 11: put & | ^ beside a comparison"},
        {"z = 300 * x", "x=u8 z", "column 9: the number 300 is out of the range of u8"},
        {"z = x - -1", "x=u8 z", "column 7: the number -1 is out of the range of u8"},
        {"z = u8(256) + x", "x=u8 z", "column 5: the number 256 is out of the range of u8"},
        {"z = x % 2", "x=f32 z",
         "column 7: % needs integers, but these are f32 and i64; write mod"},
        {"z = x // y", "x=f32 y=i8 z", "column 7: // needs integers"},
        {"z = x & 1", "x=f32 z", "column 7: & needs integers"},
        {"z = ~x", "x=f32 z", "column 5: ~ takes integers and bool, but this is f32"},
        {"z = x - y", "x=bool y=bool z", "column 7: - does not take bool; write x != y"},
        {"z = -x", "x=bool z", "column 5: - does not take bool; write !x"},
        {"z = sign(x)", "x=bool z", "column 5: sign does not take bool"},
        {"z = sin(x)", "x=f64 z", "column 5: GLSL has no sin of f64; write sin(f32(...))"},
        {"z = sin(x)", "x=i32 z", "column 5: sin of i32 is f64, as in NumPy"},
        {"z = pow(x, y)", "x=i32 y=i32 z", "column 5: pow of integers takes a written power"},
        {"z = 1 / 0 + x", "x=f32 z", "column 7: division by zero"},
        {"z = 1 // 0 + x", "x=f32 z", "column 7: division by zero"},
        {"z = 1 % 0 + x", "x=f32 z", "column 7: division by zero"},
        {"z = 1 << 64", "z", "column 7: the number is more than 64 bits hold"},
        {"z = 1 << -1", "z", "column 7: a shift by a negative number"},
        {"z = 9223372036854775807 * 4", "z", "column 25: the number is more than 64 bits hold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bhi_complaint complaint = {.text = ""};
        const char *type = NULL;
        char *text = compile(cases[i].source, cases[i].parameters, &type, &complaint);
        if (text) {
            BHT_FAIL("taken: %s", cases[i].source);
        }
        if (!strstr(complaint.text, cases[i].why)) {
            BHT_FAIL("%s: %s, not: %s", cases[i].source, complaint.text, cases[i].why);
        }
    }
}

/* A text that nests, or that only is long, is refused before it takes a stack or a memory. */
TEST(test_limits) {
    struct bhi_complaint complaint;
    const char *type;
    static char text[BHI_EXPRESSION_BYTES + 2];
    static const struct {
        const char *piece, *why;
    } cases[] = {
        {"(", "nested deeper than 64"},    {"-", "nested deeper than 64"},
        {"abs(", "nested deeper than 64"}, {"x?x:", "nested deeper than 64"},
        {"x+", "operands and operators"},  {"(x)+", "longer than 16384 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t length = strlen(cases[i].piece);
        const size_t limit = i == 5 ? sizeof text - 1 : BHI_EXPRESSION_BYTES - 4;
        size_t used = (size_t)sprintf(text, "z = ");
        while (used + length < limit) {
            used += (size_t)sprintf(text + used, "%s", cases[i].piece);
        }
        if (i == 5) {
            memset(text + used, ' ', sizeof text - 1 - used), used = sizeof text - 1;
        }
        text[used] = 0;
        BHT_EQ(compile(text, "x=f32 z", &type, &complaint), NULL);
        if (!strstr(complaint.text, cases[i].why)) {
            BHT_FAIL("%s...: %s", cases[i].piece, complaint.text);
        }
    }
}

/* What is written and does not fit its type, by one or by half a unit, is as in NumPy. */
TEST(test_numbers_at_their_limits) {
    static const struct {
        const char *source, *parameters;
        uint64_t words; /* what is pushed behind the count; 0: see |has| */
        const char *has;
    } cases[] = {
        {"z = x * 3.4028235677973366e38", "x=f32 z", 0x7f800000, NULL},
        {"z = x * 3.402823567797336e38", "x=f32 z", 0x7f7fffff, NULL},
        {"z = x * -3.4028235677973366e38", "x=f32 z", 0xff800000, NULL},
        {"z = x * nan", "x=f32 z", 0x7fc00000, NULL},
        {"z = x * -0.0", "x=f32 z", 0x80000000, NULL},
        {"z = x * nan", "x=f64 z", 0x7ff8000000000000, NULL},
        {"z = x * -inf", "x=f64 z", 0xfff0000000000000, NULL},
        {"z = x * 0.1", "x=f64 z", 0x3fb999999999999a, NULL},
        {"z = x * 2049.0", "x=f16 z", 0x45000000, NULL},  /* 2048 */
        {"z = x * 65519.0", "x=f16 z", 0x477fe000, NULL}, /* 65504 */
        {"z = x * 65520.0", "x=f16 z", 0x7f800000, NULL},
        {"z = x + 7 // 2", "x=i32 z", 3, NULL},
        {"z = x + (-7) // 2", "x=i32 z", (uint32_t)-4, NULL},
        {"z = x + 7 // -2", "x=i32 z", (uint32_t)-4, NULL},
        {"z = x + 7 % -2", "x=i32 z", (uint32_t)-1, NULL},
        {"z = x + (-6) // -3", "x=i32 z", 2, NULL},
        {"z = x < 255", "x=u8 z", 255, NULL},
        {"z = x <= 256", "x=u8 z", 0, "bool t0 = true;"},
        {"z = x > 1", "x=u8 z", 1, NULL},
        {"z = x < -1", "x=u8 z", 0, "bool t0 = false;"},
        {"z = x > -128", "x=i8 z", (uint32_t)-128, NULL},
        {"z = x > -129", "x=i8 z", 0, "bool t0 = true;"},
        {"z = x == 127", "x=i8 z", 127, NULL},
        {"z = x != 128", "x=i8 z", 0, "bool t0 = true;"},
        {"z = x >= 18446744073709551615", "x=u64 z", UINT64_MAX, NULL},
        {"z = x < -9223372036854775808", "x=i64 z", (uint64_t)INT64_MIN, NULL},
        {"z = x < 9223372036854775808", "x=i64 z", 0, "bool t0 = true;"},
    };
    struct bhi_complaint complaint = {.text = ""};
    const char *type;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char *text = compile(cases[i].source, cases[i].parameters, &type, &complaint);
        BHT_NE(text, NULL);
        if (cases[i].has) {
            BHT_STR_HAS(text, cases[i].has);
            BHT_EQ(push.count, 1);
        } else if (((uint64_t)push.words[2] << 32 | push.words[1]) != cases[i].words) {
            BHT_FAIL("%s: %08x %08x", cases[i].source, push.words[2], push.words[1]);
        }
        free(text);
    }
}

/* Numbers are pushed as long as there is room. What follows is in the text. */
TEST(test_numbers_are_no_part_of_the_kernel) {
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {"z = x * 7", "z = x * 0.25", true},
        {"z = x * -0.0", "z = x * inf", true},
        {"z = x * (2 + 3)", "z = x * -12", true},
        {"z = x > 0 ? x : 0.5*x", "z = x > 7 ? x : nan*x", true},
        {"z = pow(x, 2.5)", "z = pow(x, -2)", true},
        {"z = i32(x) << 3", "z = i32(x) << 31", true},
        {"z = u8(x) + 1", "z = u8(x) + 255", true},
        {"z = f64(x) / 3", "z = f64(x) / 1e300", true},
        {"z = pow(x, 2)", "z = pow(x, 3)", false}, /* two algorithms */
        {"z = x / 2", "z = x / 0", false},
        {"z = 1", "z = 18446744073709551615", false}, /* two types */
    };
    struct bhi_complaint complaint = {.text = ""};
    const char *type;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const char *parameters = strchr(cases[i].one, 'x') ? "x=f32 z" : "z";
        char *one = compile(cases[i].one, parameters, &type, &complaint);
        char *other = compile(cases[i].other, parameters, &type, &complaint);
        BHT_TRUE(one && other);
        if (!strcmp(one, other) != cases[i].same) {
            BHT_FAIL("%s and %s: %s", cases[i].one, cases[i].other, one);
        }
        free(one);
        free(other);
    }
}

TEST(test_more_numbers_than_are_pushed) {
    struct bhi_complaint complaint = {.text = ""};
    const char *type;
    char source[512] = "z = x";
    for (int i = 0; i < 40; i++) {
        sprintf(source + strlen(source), " + %d", i + 100);
    }
    char *text = compile(source, "x=f32 z", &type, &complaint);
    BHT_NE(text, NULL);
    BHT_EQ(push.count, BHI_PUSH_WORDS);
    BHT_STR_HAS(text, "uint bh_push[32];");
    BHT_STR_HAS(text, "hide(float(uintBitsToFloat(bh_push[31])));");
    BHT_STR_HAS(text, "hide(float(uintBitsToFloat(0x43030000u)));"); /* 131 */
    free(text);
    char *wide = compile(source, "x=f64 z", &type, &complaint); /* two words each: one is left */
    BHT_NE(wide, NULL);
    BHT_EQ(push.count, BHI_PUSH_WORDS - 1);
    BHT_STR_HAS(wide, "hide(packDouble2x32(uvec2(0x0u, 0x405cc000u)));"); /* 115 */
    free(wide);
}

/* A host may have set a locale whose numbers have a comma. */
TEST(test_locale) {
    struct bhi_complaint complaint = {.text = ""};
    const char *type;
    BHT_NE(setlocale(LC_ALL, "de_DE.UTF-8"), NULL); /* built beside the test: LOCPATH */
    BHT_STR_EQ(localeconv()->decimal_point, ",");
    char *text = compile("z = x * 1.5", "x=f32 z", &type, &complaint);
    setlocale(LC_ALL, "C");
    BHT_NE(text, NULL);
    BHT_EQ(push.words[1], 0x3fc00000);
    free(text);
}

BHT_AT_START(bht_default_flags(BHT_ALLOW_MAPPINGS)) /* a locale stays loaded */
