/* When an output is right. */
#include "judge/data/compare.h"

#include "harness.h"

#include <math.h>
#include <stdlib.h>

#include "formats/dtype.h"

static const struct bhi_tolerance exact = {.kind = BHI_TOLERANCE_EXACT};

static struct bhi_difference compare_f32(float expected, float got,
                                         struct bhi_tolerance tolerance) {
    struct bhi_difference out;
    bhi_compare(BH_DTYPE_F32, 1, &expected, &got, &tolerance, &out);
    return out;
}

static bool is_right_f32(float expected, float got, struct bhi_tolerance tolerance) {
    return !compare_f32(expected, got, tolerance).wrong;
}

static struct bhi_tolerance near_by(double absolute, double relative) {
    return (struct bhi_tolerance){
        .kind = BHI_TOLERANCE_NEAR, .absolute = absolute, .relative = relative};
}

static struct bhi_tolerance ulps(uint64_t ulp) {
    return (struct bhi_tolerance){.kind = BHI_TOLERANCE_ULP, .ulp = ulp};
}

TEST(the_first_wrong_one) {
    const int32_t expected[] = {1, 2, 3, 4, 5}, got[] = {1, 2, -7, 4, 6};
    struct bhi_difference out;
    bhi_compare(BH_DTYPE_I32, 5, expected, got, &exact, &out);
    BHT_EQ(out.wrong, 2);
    BHT_EQ(out.index, 2);
    BHT_STR_EQ(out.expected, "3");
    BHT_STR_EQ(out.got, "-7");
    BHT_EQ(out.ulp, 10);
    bhi_compare(BH_DTYPE_I32, 5, expected, expected, &exact, &out);
    BHT_EQ(out.wrong, 0);
}

TEST(exact_is_by_bits) {
    BHT_TRUE(is_right_f32(1, 1, exact));
    BHT_TRUE(!is_right_f32(1, nextafterf(1, 2), exact));
    BHT_TRUE(!is_right_f32(0.0f, -0.0f, exact));
    BHT_EQ(compare_f32(1, nextafterf(1, 2), exact).ulp, 1);
}

TEST(absolute_and_relative) {
    BHT_TRUE(is_right_f32(1, 1.25f, near_by(0.25, 0)));
    BHT_TRUE(!is_right_f32(1, 1.375f, near_by(0.25, 0)));
    BHT_TRUE(is_right_f32(-8, -10, near_by(0, 0.25)));
    BHT_TRUE(!is_right_f32(-8, -10.5f, near_by(0, 0.25)));
    BHT_TRUE(is_right_f32(8, 10.5f, near_by(0.5, 0.25))); /* they add up */
    BHT_TRUE(is_right_f32(0.0f, -0.0f, near_by(0, 0)));
}

static bool is_right(bh_dtype dtype, uint64_t expected, uint64_t got,
                     struct bhi_tolerance tolerance) {
    struct bhi_difference out;
    bhi_compare(dtype, 1, &expected, &got, &tolerance, &out); /* little endian */
    return !out.wrong;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Each type by its own numbers, and at the tolerance's very limit. */
TEST(near_in_each_type) {
    static const struct {
        bh_dtype dtype;
        uint64_t expected, nearest, beyond;
        double absolute, relative;
    } cases[] = {
        {BH_DTYPE_F16, 0x3c00, 0x3d00, 0x3d01, 0.25, 0}, /* 1, 1.25 */
        {BH_DTYPE_F16, 0xbc00, 0xbd00, 0xbd01, 0, 0.25},
        {BH_DTYPE_BF16, 0x3f80, 0x3fa0, 0x3fa1, 0.25, 0}, /* 1, 1.25 */
        {BH_DTYPE_BF16, 0xbf80, 0xbfa0, 0xbfa1, 0, 0.25},
        {BH_DTYPE_F8_E4M3, 0x38, 0x3a, 0x3b, 0.25, 0},
        {BH_DTYPE_F8_E4M3, 0xfe, 0xfc, 0xfb, 64, 0}, /* -448, -384 */
        {BH_DTYPE_F8_E5M2, 0xbc, 0xbd, 0xbe, 0, 0.25},
        {BH_DTYPE_I8, 0xf8, 0xf6, 0xf5, 0, 0.25}, /* -8, -10 */
        {BH_DTYPE_I8, 0x01, 0xff, 0xfe, 2, 0},    /* 1, -1 */
        {BH_DTYPE_U8, 0x01, 0x03, 0xff, 2, 0},
        {BH_DTYPE_I64, (uint64_t)-8, (uint64_t)-10, (uint64_t)-11, 1, 0.125},
        {BH_DTYPE_U64, 8, 10, 11, 0, 0.25},
        {BH_DTYPE_I32, 16, 20, 21, 0, 0.25}, /* of what is expected: 21 / 4 would do */
        {BH_DTYPE_U32, 10, 8, 7, 2, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_tolerance tolerance = near_by(cases[i].absolute, cases[i].relative);
        if (!is_right(cases[i].dtype, cases[i].expected, cases[i].nearest, tolerance) ||
            is_right(cases[i].dtype, cases[i].expected, cases[i].beyond, tolerance)) {
            BHT_FAIL("case %zu", i);
        }
    }
    const struct bhi_tolerance tolerance = near_by(0.25, 0.25);
    BHT_TRUE(is_right(BH_DTYPE_F64, bits_of(-1), bits_of(-1.5), tolerance));
    BHT_TRUE(is_right(BH_DTYPE_F64, bits_of(-1), bits_of(-0.5), tolerance));
    BHT_TRUE(!is_right(BH_DTYPE_F64, bits_of(-1), bits_of(nextafter(-1.5, -2)), tolerance));
    BHT_TRUE(!is_right(BH_DTYPE_F64, bits_of(1), bits_of(-1), tolerance));
    BHT_TRUE(!is_right(BH_DTYPE_F64, bits_of(1), bits_of((double)NAN), tolerance));
    BHT_TRUE(!is_right(BH_DTYPE_F64, bits_of(1), bits_of((double)INFINITY), tolerance));
}

/* An infinity is near itself alone, whatever the tolerance. */
TEST(infinities) {
    const struct bhi_tolerance wide = near_by(1e300, 1e300);
    BHT_TRUE(is_right_f32(INFINITY, INFINITY, wide));
    BHT_TRUE(!is_right_f32(INFINITY, -INFINITY, wide));
    BHT_TRUE(!is_right_f32(INFINITY, 1, wide));
    BHT_TRUE(!is_right_f32(1, INFINITY, wide));
    BHT_TRUE(is_right_f32(INFINITY, INFINITY, exact));
    BHT_TRUE(is_right_f32(INFINITY, INFINITY, ulps(0)));
    BHT_TRUE(!is_right_f32(INFINITY, -INFINITY, ulps(1000)));
}

TEST(steps_of_floats) {
    BHT_TRUE(is_right_f32(1, nextafterf(nextafterf(1, 2), 2), ulps(2)));
    BHT_TRUE(!is_right_f32(1, nextafterf(nextafterf(1, 2), 2), ulps(1)));
    BHT_TRUE(is_right_f32(0.0f, -0.0f, ulps(0)));
    /* From the smallest denormal number below zero to that above it. */
    BHT_EQ(bhi_ulp_between(BH_DTYPE_F32, 0x80000001, 0x00000001), 2);
    BHT_EQ(bhi_ulp_between(BH_DTYPE_F16, 0x3c00, 0x3bff), 1);
    BHT_EQ(bhi_ulp_between(BH_DTYPE_BF16, 0x8001, 0x0002), 3);
    BHT_EQ(bhi_ulp_between(BH_DTYPE_F8_E4M3, 0xfe, 0x7e), 252); /* from -448 to 448 */
    BHT_TRUE(bhi_ulp_between(BH_DTYPE_F8_E4M3, 0x7e, 0x7f) == UINT64_MAX);
    BHT_EQ(bhi_ulp_between(BH_DTYPE_F8_E5M2, 0x7b, 0x7c), 1); /* to infinity */
    BHT_EQ(bhi_ulp_between(BH_DTYPE_F64, 0x3ff0000000000000, 0x3fefffffffffffff), 1);
    BHT_TRUE(bhi_ulp_between(BH_DTYPE_F32, 0x7fc00000, 0) == UINT64_MAX);
}

TEST(steps_of_integers) {
    BHT_EQ(bhi_ulp_between(BH_DTYPE_I8, 0xff, 0x01), 2);
    BHT_EQ(bhi_ulp_between(BH_DTYPE_U8, 0xff, 0x01), 254);
    BHT_TRUE(bhi_ulp_between(BH_DTYPE_I64, (uint64_t)INT64_MIN, INT64_MAX) == UINT64_MAX);
    const uint64_t a = UINT64_MAX, b = UINT64_MAX - 1; /* one double, if they were made one */
    struct bhi_tolerance tolerance = near_by(0, 0);
    struct bhi_difference out;
    bhi_compare(BH_DTYPE_U64, 1, &a, &b, &tolerance, &out);
    BHT_EQ(out.wrong, 1);
    tolerance = near_by(1, 0);
    bhi_compare(BH_DTYPE_U64, 1, &a, &b, &tolerance, &out);
    BHT_EQ(out.wrong, 0);
}

/* A NaN compares with nothing, so each rule has to be a rule of its own. */
TEST(not_a_number) {
    struct bhi_tolerance all[] = {exact, near_by(1e300, 1e300), ulps(UINT64_MAX)};
    for (size_t i = 0; i < BHT_COUNT(all); i++) {
        struct bhi_tolerance tolerance = all[i];
        BHT_TRUE(!is_right_f32(1, NAN, tolerance));
        BHT_TRUE(!is_right_f32(NAN, NAN, tolerance)); /* refused before, so it is not right */
        tolerance.nan = BHI_NAN_EQUAL;
        BHT_TRUE(!is_right_f32(1, NAN, tolerance));
        BHT_TRUE(!is_right_f32(NAN, 1, tolerance));
        BHT_TRUE(is_right_f32(NAN, NAN, tolerance));
        BHT_TRUE(is_right_f32(NAN, -NAN, tolerance));
        tolerance.nan = BHI_NAN_ANY;
        BHT_TRUE(!is_right_f32(1, NAN, tolerance));
        BHT_TRUE(is_right_f32(NAN, 1, tolerance));
        BHT_TRUE(is_right_f32(NAN, NAN, tolerance));
    }
    BHT_STR_EQ(compare_f32(1, NAN, exact).got, "nan");
}

TEST(a_nan_is_found) {
    const uint16_t elements[] = {0x7c00, 0xfc00, 0x7c01, 0x7e00};
    const uint32_t words[] = {0x7fc00000};
    uint64_t index;
    BHT_TRUE(bhi_find_nan(BH_DTYPE_F16, 4, elements, &index));
    BHT_EQ(index, 2);
    BHT_TRUE(!bhi_find_nan(BH_DTYPE_F16, 2, elements, &index));
    BHT_TRUE(!bhi_find_nan(BH_DTYPE_U32, 1, words, &index));
    const uint64_t wide[] = {bits_of(1), bits_of((double)INFINITY), bits_of((double)NAN)};
    BHT_TRUE(bhi_find_nan(BH_DTYPE_F64, 3, wide, &index));
    BHT_EQ(index, 2);
    BHT_TRUE(!bhi_find_nan(BH_DTYPE_F64, 2, wide, &index));
}

TEST(texts) {
    char text[BHI_ELEMENT_TEXT];
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F32, 0x3dcccccd, text), "0.100000001");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F16, 0x3555, text), "0.33325");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F64, 0x3fb999999999999a, text), "0.10000000000000001");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F32, 0xff800000, text), "-inf");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_BF16, 0x3eab, text), "0.334");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F8_E4M3, 0xfe, text), "-448");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F8_E4M3, 0x01, text), "0.00195");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F8_E4M3, 0xff, text), "nan");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_F8_E5M2, 0xfc, text), "-inf");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_I8, 0x80, text), "-128");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_U64, UINT64_MAX, text), "18446744073709551615");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_BOOL, 1, text), "true");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_BOOL, 0, text), "false");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_BOOL, 2, text), "2");
    BHT_STR_EQ(bhi_element_text(BH_DTYPE_BOOL, 7, text), "7");
}

/* Elements are looked at in blocks of 512, the last of which may not be full. */
TEST(each_place_of_an_array_is_looked_at) {
    enum { COUNT = 1100 };
    static const size_t places[] = {0, 1, 511, 512, 1023, 1024, COUNT - 1};
    static const struct bhi_tolerance tolerances[] = {
        {.kind = BHI_TOLERANCE_EXACT, .nan = BHI_NAN_EQUAL},
        {.kind = BHI_TOLERANCE_NEAR, .absolute = 0.25, .relative = 0.25, .nan = BHI_NAN_EQUAL},
        {.kind = BHI_TOLERANCE_ULP, .ulp = 0, .nan = BHI_NAN_EQUAL}};
    static uint64_t expected[COUNT], got[COUNT];
    struct bhi_difference out;
    uint64_t index;
    for (size_t d = 0; d < BHI_ELEMENT_COUNT; d++) {
        const bh_dtype dtype = bhi_dtypes[d];
        const uint32_t size = bhi_dtype_size(dtype);
        uint8_t *const bytes = (uint8_t *)got;
        for (size_t i = 0; i < COUNT * size; i++) {
            ((uint8_t *)expected)[i] = (uint8_t)(size == 1              ? i % 2
                                                 : i % size == size - 1 ? 0x31
                                                                        : i);
        }
        for (size_t t = 0; t < BHT_COUNT(tolerances); t++) {
            memcpy(got, expected, sizeof got);
            bhi_compare(dtype, COUNT, expected, got, &tolerances[t], &out);
            BHT_EQ(out.wrong, 0);
            BHT_TRUE(!bhi_find_nan(dtype, COUNT, got, &index));
            for (size_t p = BHT_COUNT(places); p-- > 0;) {
                memset(bytes + places[p] * size, 0xFF, size); /* of floats NaN */
                bhi_compare(dtype, COUNT, expected, got, &tolerances[t], &out);
                BHT_EQ(out.index, places[p]);
                BHT_EQ(out.wrong, BHT_COUNT(places) - p);
                const bool is_float = bhi_dtype_is_float(dtype);
                BHT_EQ(bhi_find_nan(dtype, COUNT, got, &index), is_float);
                BHT_TRUE(!is_float || index == places[p]);
            }
            bhi_compare(dtype, COUNT, got, got, &tolerances[t], &out); /* NaN, as expected */
            BHT_EQ(out.wrong, 0);
        }
    }
}

/* What is not equal, but right, in each place of a block. */
TEST(near_in_each_place) {
    enum { COUNT = 1030 };
    static float expected[COUNT], got[COUNT];
    struct bhi_difference out;
    for (int i = 0; i < COUNT; i++) {
        expected[i] = (float)(i - 500);
        got[i] = nextafterf(expected[i], i % 2 ? INFINITY : -INFINITY);
    }
    const struct bhi_tolerance close = near_by(1e-4, 0), closer = near_by(1e-9, 0);
    const struct bhi_tolerance step = ulps(1), none = ulps(0);
    bhi_compare(BH_DTYPE_F32, COUNT, expected, got, &close, &out);
    BHT_EQ(out.wrong, 0);
    bhi_compare(BH_DTYPE_F32, COUNT, expected, got, &closer, &out);
    BHT_EQ(out.wrong, COUNT - 1); /* of 0 the next number is near */
    bhi_compare(BH_DTYPE_F32, COUNT, expected, got, &step, &out);
    BHT_EQ(out.wrong, 0);
    bhi_compare(BH_DTYPE_F32, COUNT, expected, got, &none, &out);
    BHT_EQ(out.wrong, COUNT);
    got[700] = INFINITY; /* and of an infinite limit, too */
    const struct bhi_tolerance all = near_by(INFINITY, 0);
    bhi_compare(BH_DTYPE_F32, COUNT, expected, got, &all, &out);
    BHT_EQ(out.wrong, 1);
    BHT_EQ(out.index, 700);
}

TEST(each_small_float_has_a_text_of_its_own) {
    static const bh_dtype types[] = {BH_DTYPE_F16, BH_DTYPE_BF16, BH_DTYPE_F8_E4M3,
                                     BH_DTYPE_F8_E5M2};
    for (size_t i = 0; i < BHT_COUNT(types); i++) {
        for (uint64_t bits = 0; bits < UINT64_C(1) << 8 * bhi_dtype_size(types[i]); bits++) {
            char text[BHI_ELEMENT_TEXT];
            const double value = strtod(bhi_element_text(types[i], bits, text), NULL);
            if (bhi_dtype_from_double(types[i], value) != bits &&
                !(isnan(value) && isnan(bhi_element_value(types[i], bits)))) {
                BHT_FAIL("%s 0x%llx: %s", bhi_dtype_name(types[i]), (unsigned long long)bits, text);
            }
        }
    }
}
