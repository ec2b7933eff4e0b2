/* Numbers, durations, sizes, bindings, push and specialization constants from the command line. */
#include "harness.h"
#include <math.h>

#include "formats/dtype.h"
#include "tool/nearest.h"
#include "tool/text.h"
#include "tool/values.h"

static struct bhi_complaint complaint;

/* |taken| is false of each |text| in |bad|. */
#define REFUSED(bad, taken)                                                                        \
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {                                                  \
        const char *const text = (bad)[i];                                                         \
        if (taken) {                                                                               \
            BHT_FAIL("'%s' was taken", text);                                                      \
        }                                                                                          \
    }

TEST(test_f16) {
    static const struct {
        double value;
        uint16_t bits;
    } cases[] = {
        {0, 0},
        {-0.0, 0x8000},
        {1, 0x3C00},
        {-2, 0xC000},
        {65504, 0x7BFF},
        {65519.99, 0x7BFF},
        {65520, 0x7C00},
        {INFINITY, 0x7C00},
        {0x1p-14, 0x400},
        {0x1p-24, 1},
        {0x1p-25, 0},
        {0x1.8p-24, 2},
        {0x1.ff8p-15, 0x3FF},
        {0x1.ffcp-15, 0x400},
        {1 + 0x1p-11, 0x3C00},
        {1 + 0x3p-11, 0x3C02},
        {0.1, 0x2E66},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_EQ(bhi_f16_from_double(cases[i].value), cases[i].bits);
    }
}

/* -- all numbers of the small floats, against plain arithmetic --------------------------------- */

static const struct small {
    bh_dtype dtype;
    int exponent, mantissa; /* bits */
    bool infinities;
} small[] = {
    {BH_DTYPE_F16, 5, 10, true},
    {BH_DTYPE_BF16, 8, 7, true},
    {BH_DTYPE_F8_E4M3, 4, 3, false},
    {BH_DTYPE_F8_E5M2, 5, 2, true},
};

static double decode(const struct small *s, uint32_t bits) {
    const int bias = (1 << (s->exponent - 1)) - 1, all = (1 << s->exponent) - 1;
    const int fraction = (int)bits & ((1 << s->mantissa) - 1);
    const int exponent = (int)(bits >> s->mantissa) & all;
    const int sign = bits >> (s->exponent + s->mantissa) & 1 ? -1 : 1;
    if (exponent == all && (s->infinities || fraction == (1 << s->mantissa) - 1)) {
        return s->infinities && !fraction ? sign * INFINITY : NAN;
    }
    const int whole = exponent ? fraction + (1 << s->mantissa) : fraction;
    return copysign(ldexp(whole, (exponent ? exponent : 1) - bias - s->mantissa), sign);
}

TEST(small_floats_are_what_their_bits_say) {
    for (size_t i = 0; i < BHT_COUNT(small); i++) {
        const struct small *s = &small[i];
        for (uint32_t bits = 0; bits < 1u << (1 + s->exponent + s->mantissa); bits++) {
            const double want = decode(s, bits), got = bhi_dtype_to_double(s->dtype, bits);
            if (isnan(want)) {
                BHT_TRUE(isnan(got));
                continue;
            }
            if (got != want || signbit(got) != signbit(want)) {
                BHT_FAIL("%s 0x%x is %a, not %a", bhi_dtype_name(s->dtype), bits, got, want);
            }
            BHT_EQ(bhi_dtype_from_double(s->dtype, want), bits);
        }
        BHT_TRUE(isnan(bhi_dtype_to_double(s->dtype, bhi_dtype_from_double(s->dtype, NAN))));
    }
}

static void rounds(const struct small *s, double value, uint64_t bits) {
    const uint64_t sign = UINT64_C(1) << (s->exponent + s->mantissa);
    const uint64_t got = bhi_dtype_from_double(s->dtype, value);
    if (got != bits || bhi_dtype_from_double(s->dtype, -value) != (bits | sign)) {
        BHT_FAIL("%s of %a is 0x%llx, not 0x%llx", bhi_dtype_name(s->dtype), value,
                 (unsigned long long)got, (unsigned long long)bits);
    }
}

/* Between each two neighbours; behind the greatest as if there were another one. */
TEST(small_floats_are_rounded_to_nearest_even) {
    for (size_t i = 0; i < BHT_COUNT(small); i++) {
        const struct small *s = &small[i];
        uint32_t last = 0;
        while (isfinite(decode(s, last + 1))) {
            last++;
        }
        for (uint32_t bits = 0; bits <= last; bits++) {
            const double a = decode(s, bits);
            const double b = bits < last ? decode(s, bits + 1)
                                         : 2 * a - decode(s, bits - 1); /* equally far away */
            const double middle = (a + b) / 2;
            rounds(s, nextafter(middle, 0), bits);
            rounds(s, nextafter(middle, INFINITY), bits + 1);
            rounds(s, middle, bits + bits % 2);
        }
        rounds(s, INFINITY, last + 1);
        rounds(s, 0x1p1000, last + 1);
        rounds(s, 0x1p-1000, 0);
        rounds(s, 0x1p-1074, 0);
    }
}

TEST(types_have_the_names_of_arrays_too) {
    static const char *const names[][3] = {{"f16", "float16"},
                                           {"f32", "float32"},
                                           {"f64", "float64"},
                                           {"i8", "int8"},
                                           {"u8", "uint8"},
                                           {"i16", "int16"},
                                           {"u16", "uint16"},
                                           {"i32", "int32"},
                                           {"u32", "uint32"},
                                           {"i64", "int64"},
                                           {"u64", "uint64"},
                                           {"bool", "bool"},
                                           {"bf16", "bfloat16"},
                                           {"f8_e4m3", "float8_e4m3fn", "f8e4m3"},
                                           {"f8_e5m2", "float8_e5m2", "f8e5m2"}};
    BHT_EQ(BHT_COUNT(names), BHI_ELEMENT_COUNT);
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        for (size_t k = 0; k < 3 && names[i][k]; k++) {
            bh_dtype any = BH_DTYPE_NONE, value = BH_DTYPE_NONE;
            BHT_TRUE(bhi_dtype_find_element(names[i][k], strlen(names[i][k]), &any));
            BHT_EQ(any, bhi_dtypes[i]);
            BHT_STR_EQ(bhi_dtype_name(any), names[i][0]);
            BHT_EQ(bhi_dtype_find(names[i][k], strlen(names[i][k]), &value), i < BHI_DTYPE_COUNT);
            BHT_TRUE(!bhi_dtype_find_element(names[i][k], strlen(names[i][k]) - 1, &any));
        }
    }
    bh_dtype other;
    BHT_TRUE(!bhi_dtype_find_element("f8_e8m0", 7, &other)); /* no number has such a type */
}

TEST(test_numbers) {
    static const struct {
        bh_dtype dtype;
        const char *text;
        bool good;
        uint64_t bits;
    } cases[] = {
        {BH_DTYPE_I8, "-128", true, 0x80},
        {BH_DTYPE_I8, "127", true, 0x7F},
        {BH_DTYPE_I8, "128", false, 0},
        {BH_DTYPE_I8, "-129", false, 0},
        {BH_DTYPE_U8, "255", true, 0xFF},
        {BH_DTYPE_U8, "256", false, 0},
        {BH_DTYPE_U8, "-1", false, 0},
        {BH_DTYPE_U8, "-0", true, 0},
        {BH_DTYPE_U16, "0xFFFF", true, 0xFFFF},
        {BH_DTYPE_U16, "0x10000", false, 0},
        {BH_DTYPE_I32, "-2147483648", true, 0x80000000},
        {BH_DTYPE_I32, "2147483648", false, 0},
        {BH_DTYPE_U32, "4294967295", true, 0xFFFFFFFF},
        {BH_DTYPE_U32, "010", true, 10}, /* not octal */
        {BH_DTYPE_I64, "-9223372036854775808", true, UINT64_C(1) << 63},
        {BH_DTYPE_I64, "9223372036854775808", false, 0},
        {BH_DTYPE_U64, "18446744073709551615", true, UINT64_MAX},
        {BH_DTYPE_U64, "18446744073709551616", false, 0},
        {BH_DTYPE_U32, "", false, 0},
        {BH_DTYPE_U32, " 1", false, 0},
        {BH_DTYPE_U32, "1 ", false, 0},
        {BH_DTYPE_U32, "1.5", false, 0},
        {BH_DTYPE_U32, "--1", false, 0},
        {BH_DTYPE_F32, "1", true, 0x3F800000},
        {BH_DTYPE_F32, "-0.5", true, 0xBF000000},
        {BH_DTYPE_F32, "inf", true, 0x7F800000},
        /* half a step above 1, and a little more: a double has lost that */
        {BH_DTYPE_F32, "1.0000000596046447753906250001", true, 0x3F800001},
        {BH_DTYPE_F32, "1e39", false, 0},
        {BH_DTYPE_F32, "1x", false, 0},
        {BH_DTYPE_F32, "", false, 0},
        {BH_DTYPE_F16, "65504", true, 0x7BFF},
        {BH_DTYPE_F16, "65520", false, 0},
        {BH_DTYPE_F16, "-inf", true, 0xFC00},
        {BH_DTYPE_F64, "0.1", true, UINT64_C(0x3FB999999999999A)},
        {BH_DTYPE_F64, "1e400", false, 0},
        {BH_DTYPE_BOOL, "true", true, 1},
        {BH_DTYPE_BOOL, "0", true, 0},
        {BH_DTYPE_BOOL, "2", false, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t bits = ~UINT64_C(0);
        bool good = bhi_dtype_parse(cases[i].dtype, cases[i].text, &bits, &complaint);
        if (good != cases[i].good || (good && bits != cases[i].bits)) {
            BHT_FAIL("%s '%s': %d %llx", bhi_dtype_name(cases[i].dtype), cases[i].text, good,
                     (unsigned long long)bits);
        }
    }
}

TEST(test_durations) {
    static const struct {
        const char *text;
        uint64_t ns; /* 0: refused */
    } cases[] = {
        {"500ms", 500000000},
        {"1.5s", 1500000000},
        {"2m", 120000000000},
        {"7us", 7000},
        {"1ns", 1},
        {"none", BH_FOREVER},
        {"0s", 0},
        {"0.5ns", 0},
        {"500", 0},
        {"ms", 0},
        {"5h", 0},
        {"-5s", 0},
        {"1e3s", 0},
        {"1.2.3s", 0},
        {"", 0},
        {"5 s", 0},
        {"inf", 0},
        {"99999999999999s", 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t ns = 0;
        bool good = bhi_parse_duration(cases[i].text, &ns, &complaint);
        if (good != (cases[i].ns != 0) || (good && ns != cases[i].ns)) {
            BHT_FAIL("'%s': %d %llu", cases[i].text, good, (unsigned long long)ns);
        }
    }
}

TEST(test_sizes) {
    static const struct {
        const char *text;
        bool good;
        uint64_t bytes;
    } cases[] = {
        {"512M", true, 512u << 20},
        {"1K", true, 1024},
        {"2GiB", true, UINT64_C(2) << 30},
        {"4096", true, 4096},
        {"none", true, 0},
        {"1.5K", true, 1536},
        {"0", false, 0},
        {"M", false, 0},
        {"5X", false, 0},
        {"5MB", false, 0},
        {"-1", false, 0},
        {"99999999T", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t bytes = 1;
        bool good = bhi_parse_size(cases[i].text, &bytes, &complaint);
        if (good != cases[i].good || (good && bytes != cases[i].bytes)) {
            BHT_FAIL("'%s': %d %llu", cases[i].text, good, (unsigned long long)bytes);
        }
    }
}

TEST(test_bounds) {
    uint64_t value;
    BHT_TRUE(bhi_parse_finite_duration("1000000000s", &value, &complaint));
    BHT_EQ(value, 1000000000000000000);
    BHT_TRUE(bhi_parse_memory_limit("none", &value, &complaint));
    BHT_EQ(value, 0);
    BHT_TRUE(bhi_parse_memory_limit("64M", &value, &complaint));
    BHT_EQ(value, 64 << 20);
    BHT_TRUE(bhi_parse_memory_limit("1048576T", &value, &complaint));
}

TEST(test_what_is_said_of_amounts) {
    static const struct {
        bool (*parse)(const char *text, uint64_t *out, struct bhi_complaint *complaint);
        const char *text, *said;
    } cases[] = {
        {bhi_parse_duration, "500", "'500' has no unit: write 500ms or 500s"},
        {bhi_parse_duration, "0s", "'0s' is too short: use 1ns to 1000000000s, or none"},
        {bhi_parse_finite_duration, "0s", "'0s' is too short: use 1ns to 1000000000s"},
        {bhi_parse_duration, "1000000001s",
         "'1000000001s' is too long: use 1ns to 1000000000s, or none"},
        {bhi_parse_duration, "-5s",
         "'-5s' is not a duration such as 500ms; write 1ns to 1000000000s, or none"},
        {bhi_parse_grace, "-5s", "'-5s' is not a duration such as 500ms; write 0s to 1000000000s"},
        {bhi_parse_grace, "none", "none is not allowed here: the run must end"},
        {bhi_parse_finite_duration, "1000000001s",
         "'1000000001s' is too long: use 1ns to 1000000000s"},
        {bhi_parse_finite_duration, "none", "none is not allowed here: the run must end"},
        {bhi_parse_memory_limit, "67108863",
         "'67108863' is too small: use 64M to 1048576T, or none"},
        {bhi_parse_memory_limit, "lots",
         "'lots' is not a size such as 512M; write 64M to 1048576T, or none"},
        {bhi_parse_memory_limit, "1048577T",
         "'1048577T' is too large: use 64M to 1048576T, or none"},
        {bhi_parse_size, "0", "'0' is too small: use 1 to 1048576T, or none"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t value;
        complaint.text[0] = '\0';
        if (cases[i].parse(cases[i].text, &value, &complaint) ||
            strcmp(complaint.text, cases[i].said) != 0) {
            BHT_FAIL("of %s is said: %s", cases[i].text, complaint.text);
        }
    }
}

TEST(test_groups) {
    static const char *const bad[] = {"",   "0", "1,0", "1,2,0", "1,2,3,4",    "1,",
                                      ",1", "a", "-1",  "1;2",   "4294967296", "1, 2"};
    uint32_t groups[3];
    BHT_TRUE(bhi_parse_groups("7", "group", groups, &complaint));
    BHT_EQ(groups[0], 7);
    BHT_EQ(groups[1], 1);
    BHT_EQ(groups[2], 1);
    BHT_TRUE(bhi_parse_groups("1,4294967295,3", "group", groups, &complaint));
    BHT_EQ(groups[1], UINT32_MAX);
    BHT_EQ(groups[2], 3);
    REFUSED(bad, bhi_parse_groups(text, "group", groups, &complaint));
}

TEST(test_slots) {
    static const char *const bad[] = {
        "",    "x",     "1.",    ".1",  "1.2.3", "-1",      "0x1",        "1[",
        "1[]", "1[-1]", "1[0]x", "[1]", "1[2]3", "1[2][3]", "4294967295", "1[4294967295]",
        "1]",  "1[x]",  "1.[2]"};
    struct bhi_slot slot;
    BHT_TRUE(bhi_parse_slot("3=a", 1, &slot, &complaint));
    BHT_EQ(slot.set, 0);
    BHT_EQ(slot.binding, 3);
    BHT_TRUE(bhi_parse_slot("2.17", 4, &slot, &complaint));
    BHT_EQ(slot.set, 2);
    BHT_EQ(slot.binding, 17);
    BHT_EQ(slot.element, 0);
    BHT_STR_EQ(bhi_slot_describe(slot, false).text, "2.17");
    BHT_STR_EQ(bhi_slot_describe(slot, true).text, "2.17[0]");
    BHT_TRUE(bhi_parse_slot("2.17[5]=a[6]", 7, &slot, &complaint));
    BHT_EQ(slot.set, 2);
    BHT_EQ(slot.binding, 17);
    BHT_EQ(slot.element, 5);
    BHT_STR_EQ(bhi_slot_describe(slot, false).text, "2.17[5]");
    BHT_TRUE(bhi_parse_slot("1[0]", 4, &slot, &complaint));
    BHT_EQ(slot.set, 0);
    BHT_EQ(slot.element, 0);
    REFUSED(bad, bhi_parse_slot(text, strlen(text), &slot, &complaint));
}

TEST(test_arrays) {
    static const char *const bad[] = {
        "f31[4]",
        "f32",
        "f32[",
        "f32[4",
        "f32[4]x",
        "f32[4,]",
        "f32[,4]",
        "f32[-1]",
        "f32[4 ]",
        "[4]",
        "f32[a]",
        "f32[18446744073709551616]",
        "f64[4294967296,4294967296]",
        "f64[0,4294967296,4294967296]",
    };
    struct bhi_array array;
    BHT_TRUE(bhi_parse_array("f32[4,64]", &array, &complaint));
    BHT_EQ(array.dtype, BH_DTYPE_F32);
    BHT_EQ(array.dimensions, 2);
    BHT_EQ(array.shape[1], 64);
    BHT_EQ(array.bytes, 4 * 64 * 4);
    /* What no shell takes for a pattern. */
    static const char *const same[] = {"f32:4,64", "f32:4x64", "f32[4,64]"};
    for (size_t i = 0; i < BHT_COUNT(same); i++) {
        BHT_TRUE(bhi_parse_array(same[i], &array, &complaint));
        BHT_EQ(array.dimensions, 2);
        BHT_EQ(array.shape[0], 4);
        BHT_EQ(array.shape[1], 64);
    }
    BHT_TRUE(bhi_parse_array("i8:7", &array, &complaint));
    BHT_EQ(array.bytes, 7);
    static const char *const worse[] = {"f32:",      "f32:x",    "f32:4,",   "f32:4x",  "f32:4]",
                                        "f32[4x64]", "f32:4 ",   "f32::4",   "f32:-4",  ":4",
                                        "f32:4[2]",  "f32[2]:4", "f32:4,,2", "f32:like"};
    REFUSED(worse, bhi_parse_array(text, &array, &complaint));
    BHT_TRUE(!bhi_parse_array("f32x4", &array, &complaint));
    BHT_STR_HAS(complaint.text, "write f32:4 or f32[");
    BHT_TRUE(bhi_parse_array("u8[]", &array, &complaint));
    BHT_EQ(array.dimensions, 0);
    BHT_EQ(array.bytes, 1);
    BHT_TRUE(bhi_parse_array("f64[0]", &array, &complaint));
    BHT_EQ(array.bytes, 0);
    REFUSED(bad, bhi_parse_array(text, &array, &complaint));
}

static const char *nearest_of(const char *word) {
    static const char *const there[] = {"groups", "in",   "out",    "inout",   "push",
                                        "spec",   "json", "device", "deadline"};
    struct bhi_nearest nearest = {.word = word};
    for (size_t i = 0; i < BHT_COUNT(there); i++) {
        bhi_nearest_try(&nearest, there[i]);
    }
    return nearest.best;
}

TEST(test_nearest) {
    static const char *const pairs[][2] = {
        {"group", "groups"},     {"gruops", "groups"}, {"dedline", "deadline"}, {"jsno", "json"},
        {"puhs", "push"},        {"inotu", "inout"},   {"ot", "out"},           {"dev", "device"},
        {"deadine", "deadline"}, {"sped", "spec"},     {"timeout", "deadline"}, {"inputs", "in"},
        {"input", "in"},         {"output", "out"},    {"grid", "groups"},      {"gpu", "device"},
    };
    static const char *const far[] = {"", "x", "walk", "banana", "reinterpret", "groupthinking"};
    for (size_t i = 0; i < BHT_COUNT(pairs); i++) {
        const char *best = nearest_of(pairs[i][0]);
        if (!best || strcmp(best, pairs[i][1]) != 0) {
            BHT_FAIL("'%s': %s", pairs[i][0], best ? best : "nothing");
        }
    }
    for (size_t i = 0; i < BHT_COUNT(far); i++) {
        if (nearest_of(far[i])) {
            BHT_FAIL("'%s': %s", far[i], nearest_of(far[i]));
        }
    }
    char word[200];
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = 0;
    BHT_EQ(nearest_of(word), NULL);
}

TEST(test_push) {
    static const char *const bad[] = {"",    "1",        "f32:",   "f32:1,", ",f32:1",
                                      "x:1", "f32:1,,2", "u8:256", "f32:1 "};
    struct bhi_push push;
    BHT_TRUE(bhi_parse_push("f32:2,u32:1048576", &push, &complaint));
    BHT_EQ(push.size, 8);
    BHT_MEM_EQ(push.bytes, "\0\0\0\x40\0\0\x10\0", 8);
    /* The type carries on; alignment: u8 at 0 and 1, f64 at 8, u16 at 16, padded to 20. */
    BHT_TRUE(bhi_parse_push("u8:1,2,f64:1,u16:3", &push, &complaint));
    BHT_EQ(push.size, 20);
    BHT_MEM_EQ(push.bytes, "\1\2\0\0\0\0\0\0\0\0\0\0\0\0\xF0\x3F\3\0\0\0", 20);
    REFUSED(bad, bhi_parse_push(text, &push, &complaint));
    BHT_TRUE(!bhi_parse_push("_n", &push, &complaint));
    BHT_STR_HAS(complaint.text, "write _n=VALUE");
    BHT_TRUE(!bhi_parse_push("nan", &push, &complaint));
    BHT_STR_HAS(complaint.text, "write f32:nan");
    /* Types that are left to the kernel. */
    BHT_TRUE(bhi_parse_push(":2,4294967295,:-1,:0.5,u8:1", &push, &complaint));
    BHT_EQ(push.size, 20);
    BHT_MEM_EQ(push.bytes, "\2\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\x3F\1\0\0\0", 20);
    BHT_TRUE(!bhi_parse_push(":", &push, &complaint));
    /* One over the limit of 4096 bytes. */
    static char many[8192];
    strcpy(many, "u32:0");
    for (int i = 1; i < 1024; i++) {
        strcat(many, ",0");
    }
    BHT_TRUE(bhi_parse_push(many, &push, &complaint));
    BHT_EQ(push.size, 4096);
    strcat(many, ",0");
    BHT_TRUE(!bhi_parse_push(many, &push, &complaint));
}

TEST(test_specs) {
    static const char *const bad[] = {"",         "1",       "=u32:1",          "1=2",
                                      "1=u32:",   "1=u3:2",  "a=u32:1",         "1=bool:2",
                                      "-1=u32:1", "1=bool:", "4294967296=u32:1"};
    bh_specialization spec;
    BHT_TRUE(bhi_parse_spec("3=bool:true", &spec, &complaint));
    BHT_EQ(spec.constant_id, 3);
    BHT_EQ(spec.size, 4);
    BHT_EQ(spec.bits, 1);
    BHT_TRUE(bhi_parse_spec("4294967295=f64:1", &spec, &complaint));
    BHT_EQ(spec.constant_id, UINT32_MAX);
    BHT_EQ(spec.size, 8);
    BHT_TRUE(bhi_parse_spec("0=i16:-1", &spec, &complaint));
    BHT_EQ(spec.size, 2);
    BHT_EQ(spec.bits, 0xFFFF);
    REFUSED(bad, bhi_parse_spec(text, &spec, &complaint));
}

TEST(test_messages_lose_the_call) {
    static const char *const cases[][2] = {
        {"bh_kernel_create: it is not a SPIR-V", "it is not a SPIR-V"},
        {"bh_buffer_create: x.npy: bh_a: b", "x.npy: bh_a: b"},
        {"x.npy: bh_kernel_create: b", "x.npy: bh_kernel_create: b"},
        {"bh_kernel_create failed: b", "bh_kernel_create failed: b"},
        {"bh_kernel_create", "bh_kernel_create"},
        {"", ""},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_STR_EQ(bhi_text_without_call(cases[i][0]), cases[i][1]);
    }
}
