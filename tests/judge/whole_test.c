/* Outputs that are compared as a whole. */
#include "judge/data/whole.h"

#include "harness.h"

#include <math.h>

static struct bhi_difference out;

static struct bhi_tolerance in_any_order(double absolute) {
    return (struct bhi_tolerance){.by = BHI_BY_MULTISET,
                                  .kind = absolute > 0 ? BHI_TOLERANCE_NEAR : BHI_TOLERANCE_EXACT,
                                  .absolute = absolute,
                                  .nan = BHI_NAN_EQUAL};
}

enum { N = 5 };

/* How many of |got| have no partner, whatever the order of both. */
static uint64_t strays(bh_dtype dtype, uint32_t size, const void *expected, const void *got,
                       struct bhi_tolerance tolerance) {
    uint64_t a[N], b[N];
    memcpy(a, expected, (size_t)N * size);
    memcpy(b, got, (size_t)N * size);
    bhi_sort_multiset(dtype, N, a);
    bhi_sort_multiset(dtype, N, b);
    bhi_compare_whole(dtype, N, a, b, &tolerance, &out);
    return out.wrong;
}

static uint64_t strays_f32(const float expected[N], const float got[N], double absolute) {
    return strays(BH_DTYPE_F32, 4, expected, got, in_any_order(absolute));
}

TEST(in_any_order_each_element_has_a_partner) {
    static const struct {
        float expected[N], got[N];
        double absolute;
        uint64_t wrong;
        const char *stray, *missing; /* the least of them */
    } cases[] = {
        {{1, 2, 3, 4, 5}, {5, 3, 1, 2, 4}, 0, 0, "", ""},
        {{1, 2, 3, 4, 5}, {5, 3, 9, 2, 4}, 0, 1, "9", "1"}, /* all after it are shifted */
        {{2, 3, 4, 5, 6}, {1, 2, 3, 4, 5}, 0, 1, "1", "6"}, /* or before it */
        {{1, 1, 2, 2, 2}, {1, 1, 1, 2, 2}, 0, 1, "1", "2"}, /* how often it is there counts */
        {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}, 0, 5, "6", "1"},
        {{1, 2, 3, 4, 5}, {5.5f, 3.5f, 1.5f, 2.5f, 4.5f}, 0.5, 0, "", ""},
        {{1, 2, 3, 4, 5}, {0.5f, 1.5f, 2.5f, 3.5f, 4.5f}, 0.5, 0, "", ""}, /* of two the lesser */
        {{1, 2, 3, 4, 5}, {5.75f, 3.5f, 1.5f, 2.5f, 4.5f}, 0.5, 1, "5.75", "5"},
        {{-0.0f, 0, 1, 1, 1}, {0, -0.0f, 1, 1, 1}, 0, 0, "", ""},
        {{0, 0, 1, 1, 1}, {0, -0.0f, 1, 1, 1}, 0, 1, "-0", "0"}, /* -0 is not 0 */
        {{0, 0, 1, 1, 1}, {0, -0.0f, 1, 1, 1}, 0.5, 0, "", ""},
        {{NAN, 1, -NAN, 2, 3}, {3, 2, 1, NAN, NAN}, 0, 0, "", ""}, /* alike, whatever their bits */
        {{NAN, 1, 2, 3, 4}, {3, 2, 1, NAN, NAN}, 0, 1, "nan", "4"},
        {{NAN, NAN, 1, 2, 3}, {3, 2, 1, NAN, -7}, 0.5, 1, "-7", "nan"},
        {{INFINITY, -INFINITY, 1, 2, 3}, {3, 2, 1, -INFINITY, INFINITY}, 0.5, 0, "", ""},
        {{INFINITY, 1, 1, 2, 3}, {3, 2, 1, -INFINITY, 1}, 9, 1, "-inf", "inf"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const uint64_t wrong = strays_f32(cases[i].expected, cases[i].got, cases[i].absolute);
        if (wrong != cases[i].wrong || strcmp(out.got, cases[i].stray) != 0 ||
            strcmp(out.expected, cases[i].missing) != 0) {
            BHT_FAIL("case %zu: %llu wrong, stray %s, missing %s", i, (unsigned long long)wrong,
                     out.got, out.expected);
        }
    }
}

/* A NaN of which the task says nothing is a stray, although nothing is as large. */
TEST(in_any_order_a_nan_is_no_number) {
    const float expected[N] = {1, 2, 3, 4, INFINITY}, got[N] = {1, 2, 3, 4, NAN};
    struct bhi_tolerance tolerance = in_any_order(1e9);
    tolerance.nan = BHI_NAN_REFUSED;
    BHT_EQ(strays(BH_DTYPE_F32, 4, expected, got, tolerance), 1);
}

TEST(in_any_order_of_each_type) {
    const int8_t small[N] = {-128, -1, 0, 1, 127}, mixed[N] = {127, 0, -1, 1, -128};
    const uint64_t large[N] = {UINT64_MAX, UINT64_MAX - 1, 0, 1, 7},
                   other[N] = {UINT64_MAX, UINT64_MAX, 0, 1, 7};
    const double reals[N] = {-1e300, 1e300, 5e-324, 0, 1}, back[N] = {1, 0, 5e-324, 1e300, -1e300};
    const int64_t least[N] = {INT64_MIN, 3, 2, 1, 0}, lesser[N] = {3, 0, 2, 1, 9};
    BHT_EQ(strays(BH_DTYPE_I8, 1, small, mixed, in_any_order(0)), 0);
    BHT_EQ(strays(BH_DTYPE_U64, 8, large, other, in_any_order(0)), 1);
    BHT_STR_EQ(out.expected, "18446744073709551614");
    BHT_EQ(strays(BH_DTYPE_F64, 8, reals, back, in_any_order(0)), 0);
    BHT_EQ(strays(BH_DTYPE_I64, 8, least, lesser, in_any_order(0)), 1);
    BHT_STR_EQ(out.expected, "-9223372036854775808");
    BHT_STR_EQ(out.got, "9");
    /* -448, NaN, -0, 0, 1, and 2 for one of the zeros */
    const uint8_t e4m3[N] = {0xfe, 0x7f, 0x80, 0x00, 0x38},
                  again[N] = {0x38, 0xff, 0x00, 0xfe, 0x40};
    BHT_EQ(strays(BH_DTYPE_F8_E4M3, 1, e4m3, again, in_any_order(0)), 1);
    BHT_STR_EQ(out.expected, "-0");
    BHT_STR_EQ(out.got, "2");
    const uint16_t bf16[N] = {0xff80, 0x8001, 0x3f80, 0x7fc0, 0x7f7f},
                   mixed16[N] = {0xffc1, 0x7f7f, 0xff80, 0x3f80, 0x8001};
    BHT_EQ(strays(BH_DTYPE_BF16, 2, bf16, mixed16, in_any_order(0)), 0);
}

static uint64_t by_norm(const double expected[N], const double got[N], double relative,
                        enum bhi_nan nan) {
    const struct bhi_tolerance tolerance = {
        .by = BHI_BY_NORM, .kind = BHI_TOLERANCE_NEAR, .relative = relative, .nan = nan};
    bhi_compare_whole(BH_DTYPE_F64, N, expected, got, &tolerance, &out);
    return out.wrong;
}

TEST(by_norm_the_whole_is_right_or_wrong) {
    static const struct {
        double expected[N], got[N], relative;
        bool right;
        uint64_t index; /* the farthest */
    } cases[] = {
        {{3, 0, 0, 0, 4}, {3, 0, 1, 0, 4}, 0.2, true, 0},
        {{3, 0, 0, 0, 4}, {3, 0, 1, 0, 4}, 0.1999, false, 2},
        {{3, 0, 0, 0, 4}, {3.5, 0, 1, 0, 4}, 0.2, false, 2},
        {{0, 0, 0, 0, 0}, {0, -0.0, 0, 0, 0}, 0, true, 0},
        {{0, 0, 0, 0, 0}, {0, 0, 0, 1e-300, 0}, 1e9, false, 3},
        {{1e300, 0, 0, 0, 0}, {1.0625e300, 0, 0, 0, 0}, 0.0625, true, 0}, /* squares of it are */
        {{1e300, 0, 0, 0, 0}, {1.125e300, 0, 0, 0, 0}, 0.0625, false, 0},
        {{1e-300, 0, 0, 0, 0}, {1.125e-300, 0, 0, 0, 0}, 0.0625, false, 0},
        {{INFINITY, 1, 1, 1, 1}, {INFINITY, 1, 1, 1, 1}, 0, true, 0},
        {{INFINITY, 1, 1, 1, 1}, {1e9, 1, 1, 1, 1}, 1e9, false, 0},
        {{1, 1, 1, 1, 1}, {1, 1, INFINITY, 1, 1}, 1e9, false, 2},
        {{1, 1, 1, 1, 1}, {1, NAN, 1, 1, 1}, 1e9, false, 1},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const uint64_t wrong =
            by_norm(cases[i].expected, cases[i].got, cases[i].relative, BHI_NAN_REFUSED);
        if (wrong != (cases[i].right ? 0 : N) || (wrong && out.index != cases[i].index)) {
            BHT_FAIL("case %zu: %llu wrong, by %g, at %llu", i, (unsigned long long)wrong,
                     out.error, (unsigned long long)out.index);
        }
    }
    BHT_EQ(by_norm(cases[1].expected, cases[1].got, 0.1, BHI_NAN_REFUSED), N);
    BHT_EQ(out.error, 0.2);
    BHT_STR_EQ(out.got, "1");
    BHT_STR_EQ(out.expected, "0");
}

TEST(by_norm_a_nan_is_right_where_the_task_says_so) {
    const double nan[N] = {1, NAN, 1, 1, 1}, number[N] = {1, 5, 1, 1, 1};
    BHT_EQ(by_norm(nan, nan, 0.1, BHI_NAN_EQUAL), 0);
    BHT_EQ(by_norm(nan, number, 1e9, BHI_NAN_EQUAL), N);
    BHT_EQ(by_norm(nan, number, 0.1, BHI_NAN_ANY), 0);
    BHT_EQ(by_norm(number, nan, 1e9, BHI_NAN_ANY), N);
}

/* Nothing is said of them here. */
TEST(what_a_program_checks_is_not_compared) {
    const float expected[N] = {1}, got[N] = {2};
    const struct bhi_tolerance tolerance = {.by = BHI_BY_CHECK};
    bhi_compare_whole(BH_DTYPE_F32, N, expected, got, &tolerance, &out);
    BHT_EQ(out.wrong, 0);
}
