/* Numbers, durations, sizes, bindings, push and specialization constants from the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "formats/dtype.h"
#include "tool/nearest.h"
#include "tool/text.h"
#include "tool/values.h"

static struct bhi_complaint complaint;

static void test_f16(void **state) {
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(bhi_f16_from_double(cases[i].value), cases[i].bits);
    for (uint32_t bits = 0; bits < 0x10000; bits++) { /* every value survives the round trip */
        double value = bhi_f16_to_double((uint16_t)bits);
        if (!isnan(value))
            assert_int_equal(bhi_f16_from_double(value), bits);
    }
    assert_true(isnan(bhi_f16_to_double(bhi_f16_from_double(NAN))));
}

static void test_numbers(void **state) {
    static const struct {
        enum bhi_dtype dtype;
        const char *text;
        bool good;
        uint64_t bits;
    } cases[] = {
        {BHI_DTYPE_i8, "-128", true, 0x80},
        {BHI_DTYPE_i8, "127", true, 0x7F},
        {BHI_DTYPE_i8, "128", false, 0},
        {BHI_DTYPE_i8, "-129", false, 0},
        {BHI_DTYPE_u8, "255", true, 0xFF},
        {BHI_DTYPE_u8, "256", false, 0},
        {BHI_DTYPE_u8, "-1", false, 0},
        {BHI_DTYPE_u8, "-0", true, 0},
        {BHI_DTYPE_u16, "0xFFFF", true, 0xFFFF},
        {BHI_DTYPE_u16, "0x10000", false, 0},
        {BHI_DTYPE_i32, "-2147483648", true, 0x80000000},
        {BHI_DTYPE_i32, "2147483648", false, 0},
        {BHI_DTYPE_u32, "4294967295", true, 0xFFFFFFFF},
        {BHI_DTYPE_u32, "010", true, 10}, /* not octal */
        {BHI_DTYPE_i64, "-9223372036854775808", true, UINT64_C(1) << 63},
        {BHI_DTYPE_i64, "9223372036854775808", false, 0},
        {BHI_DTYPE_u64, "18446744073709551615", true, UINT64_MAX},
        {BHI_DTYPE_u64, "18446744073709551616", false, 0},
        {BHI_DTYPE_u32, "", false, 0},
        {BHI_DTYPE_u32, " 1", false, 0},
        {BHI_DTYPE_u32, "1 ", false, 0},
        {BHI_DTYPE_u32, "1.5", false, 0},
        {BHI_DTYPE_u32, "--1", false, 0},
        {BHI_DTYPE_f32, "1", true, 0x3F800000},
        {BHI_DTYPE_f32, "-0.5", true, 0xBF000000},
        {BHI_DTYPE_f32, "inf", true, 0x7F800000},
        {BHI_DTYPE_f32, "1e39", false, 0},
        {BHI_DTYPE_f32, "1x", false, 0},
        {BHI_DTYPE_f32, "", false, 0},
        {BHI_DTYPE_f16, "65504", true, 0x7BFF},
        {BHI_DTYPE_f16, "65520", false, 0},
        {BHI_DTYPE_f16, "-inf", true, 0xFC00},
        {BHI_DTYPE_f64, "0.1", true, UINT64_C(0x3FB999999999999A)},
        {BHI_DTYPE_f64, "1e400", false, 0},
        {BHI_DTYPE_bool, "true", true, 1},
        {BHI_DTYPE_bool, "0", true, 0},
        {BHI_DTYPE_bool, "2", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bits = ~UINT64_C(0);
        bool good = bhi_dtype_parse(cases[i].dtype, cases[i].text, &bits, &complaint);
        if (good != cases[i].good || (good && bits != cases[i].bits))
            fail_msg("%s '%s': %d %llx", bhi_dtype_name(cases[i].dtype), cases[i].text, good,
                     (unsigned long long)bits);
    }
}

static void test_durations(void **state) {
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t ns = 0;
        bool good = bhi_parse_duration(cases[i].text, &ns, &complaint);
        if (good != (cases[i].ns != 0) || (good && ns != cases[i].ns))
            fail_msg("'%s': %d %llu", cases[i].text, good, (unsigned long long)ns);
    }
    assert_false(bhi_parse_duration("500", &(uint64_t){0}, &complaint));
    assert_string_equal(complaint.text, "'500' has no unit: write 500ms or 500s");
    assert_false(bhi_parse_duration("1000000001s", &(uint64_t){0}, &complaint));
    assert_non_null(strstr(complaint.text, "write none for no deadline"));
}

static void test_durations_that_end(void **state) {
    uint64_t ns = 0;
    (void)state;
    assert_true(bhi_parse_finite_duration("1000000000s", &ns, &complaint));
    assert_int_equal(ns, 1000000000000000000);
    assert_false(bhi_parse_finite_duration("1000000001s", &ns, &complaint));
    assert_string_equal(complaint.text, "'1000000001s' is too long (1000000000s at most)");
    assert_false(bhi_parse_finite_duration("none", &ns, &complaint));
    assert_string_equal(complaint.text, "it has to end some time");
}

static void test_sizes(void **state) {
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 1;
        bool good = bhi_parse_size(cases[i].text, &bytes, &complaint);
        if (good != cases[i].good || (good && bytes != cases[i].bytes))
            fail_msg("'%s': %d %llu", cases[i].text, good, (unsigned long long)bytes);
    }
}

static void test_memory_limits(void **state) {
    uint64_t bytes;
    (void)state;
    assert_true(bhi_parse_memory_limit("none", &bytes, &complaint));
    assert_int_equal(bytes, 0);
    assert_true(bhi_parse_memory_limit("64M", &bytes, &complaint));
    assert_int_equal(bytes, 64 << 20);
    assert_false(bhi_parse_memory_limit("67108863", &bytes, &complaint));
    assert_string_equal(complaint.text, "under 64 MiB: no driver starts with that");
    assert_false(bhi_parse_memory_limit("lots", &bytes, &complaint));
}

static void test_groups(void **state) {
    static const char *const bad[] = {"",   "0", "1,0", "1,2,0", "1,2,3,4",    "1,",
                                      ",1", "a", "-1",  "1;2",   "4294967296", "1, 2"};
    uint32_t groups[3];
    (void)state;
    assert_true(bhi_parse_groups("7", groups, &complaint));
    assert_int_equal(groups[0], 7);
    assert_int_equal(groups[1], 1);
    assert_int_equal(groups[2], 1);
    assert_true(bhi_parse_groups("1,4294967295,3", groups, &complaint));
    assert_int_equal(groups[1], UINT32_MAX);
    assert_int_equal(groups[2], 3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bhi_parse_groups(bad[i], groups, &complaint))
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void test_slots(void **state) {
    static const char *const bad[] = {
        "",    "x",     "1.",    ".1",  "1.2.3", "-1",      "0x1",        "1[",
        "1[]", "1[-1]", "1[0]x", "[1]", "1[2]3", "1[2][3]", "4294967295", "1[4294967295]",
        "1]",  "1[x]",  "1.[2]"};
    struct bhi_slot slot;
    (void)state;
    assert_true(bhi_parse_slot("3=a", 1, &slot, &complaint));
    assert_int_equal(slot.set, 0);
    assert_int_equal(slot.binding, 3);
    assert_true(bhi_parse_slot("2.17", 4, &slot, &complaint));
    assert_int_equal(slot.set, 2);
    assert_int_equal(slot.binding, 17);
    assert_int_equal(slot.element, 0);
    assert_string_equal(bhi_slot_describe(slot, false).text, "2.17");
    assert_string_equal(bhi_slot_describe(slot, true).text, "2.17[0]");
    assert_true(bhi_parse_slot("2.17[5]=a[6]", 7, &slot, &complaint));
    assert_int_equal(slot.set, 2);
    assert_int_equal(slot.binding, 17);
    assert_int_equal(slot.element, 5);
    assert_string_equal(bhi_slot_describe(slot, false).text, "2.17[5]");
    assert_true(bhi_parse_slot("1[0]", 4, &slot, &complaint));
    assert_int_equal(slot.set, 0);
    assert_int_equal(slot.element, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bhi_parse_slot(bad[i], strlen(bad[i]), &slot, &complaint))
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void test_arrays(void **state) {
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
    (void)state;
    assert_true(bhi_parse_array("f32[4,64]", &array, &complaint));
    assert_int_equal(array.dtype, BHI_DTYPE_f32);
    assert_int_equal(array.dimensions, 2);
    assert_int_equal(array.shape[1], 64);
    assert_int_equal(array.bytes, 4 * 64 * 4);
    /* What no shell takes for a pattern. */
    static const char *const same[] = {"f32:4,64", "f32:4x64", "f32[4,64]"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_true(bhi_parse_array(same[i], &array, &complaint));
        assert_int_equal(array.dimensions, 2);
        assert_int_equal(array.shape[0], 4);
        assert_int_equal(array.shape[1], 64);
    }
    assert_true(bhi_parse_array("i8:7", &array, &complaint));
    assert_int_equal(array.bytes, 7);
    static const char *const worse[] = {"f32:",      "f32:x",    "f32:4,",   "f32:4x",  "f32:4]",
                                        "f32[4x64]", "f32:4 ",   "f32::4",   "f32:-4",  ":4",
                                        "f32:4[2]",  "f32[2]:4", "f32:4,,2", "f32:like"};
    for (size_t i = 0; i < sizeof worse / sizeof worse[0]; i++) {
        if (bhi_parse_array(worse[i], &array, &complaint))
            fail_msg("'%s' was taken", worse[i]);
    }
    assert_false(bhi_parse_array("f32x4", &array, &complaint));
    assert_non_null(strstr(complaint.text, "write f32:4 or f32["));
    assert_true(bhi_parse_array("u8[]", &array, &complaint));
    assert_int_equal(array.dimensions, 0);
    assert_int_equal(array.bytes, 1);
    assert_true(bhi_parse_array("f64[0]", &array, &complaint));
    assert_int_equal(array.bytes, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bhi_parse_array(bad[i], &array, &complaint))
            fail_msg("'%s' was taken", bad[i]);
    }
}

static const char *nearest_of(const char *word) {
    static const char *const there[] = {"groups", "in",   "out",    "inout",   "push",
                                        "spec",   "json", "device", "deadline"};
    struct bhi_nearest nearest = {.word = word};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        bhi_nearest_try(&nearest, there[i]);
    return nearest.best;
}

static void test_nearest(void **state) {
    static const char *const pairs[][2] = {
        {"group", "groups"},     {"gruops", "groups"}, {"dedline", "deadline"}, {"jsno", "json"},
        {"puhs", "push"},        {"inotu", "inout"},   {"ot", "out"},           {"dev", "device"},
        {"deadine", "deadline"}, {"sped", "spec"},
    };
    static const char *const far[] = {"", "x", "walk", "banana", "reinterpret", "groupthinking"};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *best = nearest_of(pairs[i][0]);
        if (!best || strcmp(best, pairs[i][1]) != 0)
            fail_msg("'%s': %s", pairs[i][0], best ? best : "nothing");
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        if (nearest_of(far[i]))
            fail_msg("'%s': %s", far[i], nearest_of(far[i]));
    }
    char word[200];
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = 0;
    assert_null(nearest_of(word));
}

static void test_push(void **state) {
    static const char *const bad[] = {"",    "1",        "f32:",   "f32:1,", ",f32:1",
                                      "x:1", "f32:1,,2", "u8:256", "f32:1 "};
    struct bhi_push push;
    (void)state;
    assert_true(bhi_parse_push("f32:2,u32:1048576", &push, &complaint));
    assert_int_equal(push.size, 8);
    assert_memory_equal(push.bytes, "\0\0\0\x40\0\0\x10\0", 8);
    /* The type carries on; alignment: u8 at 0 and 1, f64 at 8, u16 at 16, padded to 20. */
    assert_true(bhi_parse_push("u8:1,2,f64:1,u16:3", &push, &complaint));
    assert_int_equal(push.size, 20);
    assert_memory_equal(push.bytes, "\1\2\0\0\0\0\0\0\0\0\0\0\0\0\xF0\x3F\3\0\0\0", 20);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bhi_parse_push(bad[i], &push, &complaint))
            fail_msg("'%s' was taken", bad[i]);
    }
    assert_false(bhi_parse_push("_n", &push, &complaint));
    assert_non_null(strstr(complaint.text, "write _n=VALUE"));
    assert_false(bhi_parse_push("nan", &push, &complaint));
    assert_non_null(strstr(complaint.text, "write f32:nan"));
    /* Types that are left to the kernel. */
    assert_true(bhi_parse_push(":2,4294967295,:-1,:0.5,u8:1", &push, &complaint));
    assert_int_equal(push.size, 20);
    assert_memory_equal(push.bytes, "\2\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\x3F\1\0\0\0",
                        20);
    assert_false(bhi_parse_push(":", &push, &complaint));
    /* One over the limit of 4096 bytes. */
    static char many[8192];
    strcpy(many, "u32:0");
    for (int i = 1; i < 1024; i++)
        strcat(many, ",0");
    assert_true(bhi_parse_push(many, &push, &complaint));
    assert_int_equal(push.size, 4096);
    strcat(many, ",0");
    assert_false(bhi_parse_push(many, &push, &complaint));
}

static void test_specs(void **state) {
    static const char *const bad[] = {"",         "1",       "=u32:1",          "1=2",
                                      "1=u32:",   "1=u3:2",  "a=u32:1",         "1=bool:2",
                                      "-1=u32:1", "1=bool:", "4294967296=u32:1"};
    bh_specialization spec;
    (void)state;
    assert_true(bhi_parse_spec("3=bool:true", &spec, &complaint));
    assert_int_equal(spec.constant_id, 3);
    assert_int_equal(spec.size, 4);
    assert_int_equal(spec.bits, 1);
    assert_true(bhi_parse_spec("4294967295=f64:1", &spec, &complaint));
    assert_int_equal(spec.constant_id, UINT32_MAX);
    assert_int_equal(spec.size, 8);
    assert_true(bhi_parse_spec("0=i16:-1", &spec, &complaint));
    assert_int_equal(spec.size, 2);
    assert_int_equal(spec.bits, 0xFFFF);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bhi_parse_spec(bad[i], &spec, &complaint))
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void test_messages_lose_the_call(void **state) {
    static const char *const cases[][2] = {
        {"bh_kernel_create: it is no SPIR-V", "it is no SPIR-V"},
        {"bh_buffer_from_file: x.npy: bh_a: b", "x.npy: bh_a: b"},
        {"x.npy: bh_kernel_create: b", "x.npy: bh_kernel_create: b"},
        {"bh_kernel_create failed: b", "bh_kernel_create failed: b"},
        {"bh_kernel_create", "bh_kernel_create"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(bhi_text_without_call(cases[i][0]), cases[i][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_durations_that_end),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_memory_limits),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_messages_lose_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
