/* Arrangements of inputs: sorted, equal, with ties, at the ends, tiny and huge. */
#include "judge/data/arrange.h"

#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/compare.h"

enum { COUNT = 5000 };

static uint8_t got[COUNT * 8 + 1], plain[COUNT * 8];
static const struct bhi_filler normal = {.kind = BHI_FILLER_NORMAL, .high = 1},
                               uniform = {.kind = BHI_FILLER_UNIFORM, .low = -2, .high = 3},
                               dice = {.kind = BHI_FILLER_INTEGERS, .first = 1, .last = 6},
                               bits = {.kind = BHI_FILLER_BITS};

static void arrange(enum bhi_arrangement arrangement, const struct bhi_filler *filler,
                    bh_dtype dtype, uint64_t seed) {
    const struct bhi_filler_place place = {.seed = seed, .trial = 1, .array = 2};
    memset(got, 0xAA, sizeof got);
    bhi_arrange(arrangement, filler, place, dtype, COUNT, got);
    BHT_EQ(got[COUNT * bhi_dtype_size(dtype)], 0xAA);
    bhi_filler_fill(filler, place, dtype, COUNT, plain);
}

static double value(bh_dtype dtype, const uint8_t *of, uint64_t i) {
    uint64_t element = 0;
    memcpy(&element, of + i * bhi_dtype_size(dtype), bhi_dtype_size(dtype));
    return bhi_element_value(dtype, element);
}

static uint64_t count_value(bh_dtype dtype, const uint8_t *of, double wanted) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        count += value(dtype, of, i) == wanted;
    }
    return count;
}

TEST(none_is_what_the_generator_makes) {
    arrange(BHI_ARRANGE_NONE, &normal, BH_DTYPE_F32, 7);
    BHT_MEM_EQ(got, plain, COUNT * 4);
}

TEST(sorted_numbers_ascend_and_are_those_of_the_generator) {
    for (size_t k = 0; k < BHI_ELEMENT_COUNT; k++) {
        const bh_dtype dtype = bhi_dtypes[k];
        const struct bhi_filler *filler = bhi_dtype_is_float(dtype) ? &normal : &bits;
        double sum = 0, sum_before = 0;
        arrange(BHI_ARRANGE_SORTED, filler, dtype, 7);
        for (uint64_t i = 0; i < COUNT; i++) {
            BHT_TRUE(!i || value(dtype, got, i - 1) <= value(dtype, got, i));
            sum += value(dtype, got, i) / COUNT;
            sum_before += value(dtype, plain, i) / COUNT;
        }
        BHT_TRUE(fabs(sum - sum_before) <= 1e-9 * (1 + fabs(sum)));
        static uint8_t sorted[sizeof got];
        memcpy(sorted, got, sizeof sorted);
        arrange(BHI_ARRANGE_REVERSED, filler, dtype, 7);
        for (uint64_t i = 0; i < COUNT; i++) {
            BHT_MEM_EQ(got + i * bhi_dtype_size(dtype),
                       sorted + (COUNT - 1 - i) * bhi_dtype_size(dtype), bhi_dtype_size(dtype));
        }
    }
}

/* These are filled and sorted by several threads. */
TEST(numbers_of_large_arrays_ascend) {
    enum { LARGE = 200001 };
    const struct bhi_filler_place place = {.seed = 7};
    for (size_t k = 0; k < BHI_ELEMENT_COUNT; k++) {
        const bh_dtype dtype = bhi_dtypes[k];
        const uint32_t size = bhi_dtype_size(dtype);
        const struct bhi_filler *filler = bhi_dtype_is_float(dtype) ? &normal : &bits;
        uint8_t *large = bht_own(calloc(LARGE, size)), *before = bht_own(calloc(LARGE, size));
        double sum = 0, sum_before = 0;
        bhi_filler_fill(filler, place, dtype, LARGE, before);
        bhi_arrange(BHI_ARRANGE_SORTED, filler, place, dtype, LARGE, large);
        for (uint64_t i = 0; i < LARGE; i++) {
            BHT_TRUE(!i || value(dtype, large, i - 1) <= value(dtype, large, i));
            sum += value(dtype, large, i) / LARGE;
            sum_before += value(dtype, before, i) / LARGE;
        }
        BHT_TRUE(fabs(sum - sum_before) <= 1e-9 * (1 + fabs(sum)));
        BHT_TRUE(memcmp(large, large + (LARGE - 1) * size, size) != 0);
    }
}

TEST(equal_numbers_are_one_that_the_seed_draws) {
    arrange(BHI_ARRANGE_EQUAL, &normal, BH_DTYPE_F32, 7);
    const double first = value(BH_DTYPE_F32, got, 0);
    BHT_EQ(count_value(BH_DTYPE_F32, got, first), COUNT);
    arrange(BHI_ARRANGE_EQUAL, &normal, BH_DTYPE_F32, 8);
    BHT_TRUE(value(BH_DTYPE_F32, got, 0) != first);
}

TEST(ties_are_four_numbers_each_of_them_often) {
    arrange(BHI_ARRANGE_TIES, &normal, BH_DTYPE_F64, 7);
    uint64_t left = COUNT;
    for (uint64_t i = 0, found = 0; found < 4; i++) {
        BHT_TRUE(i < COUNT);
        const double one = value(BH_DTYPE_F64, got, i);
        uint64_t earlier = 0;
        while (value(BH_DTYPE_F64, got, earlier) != one) {
            earlier++;
        }
        if (earlier == i) {
            const uint64_t times = count_value(BH_DTYPE_F64, got, one);
            BHT_TRUE(times > COUNT / 5 && times < COUNT / 3);
            left -= times;
            found++;
        }
    }
    BHT_EQ(left, 0);
}

TEST(ends_are_the_least_and_the_greatest) {
    const struct {
        const struct bhi_filler *filler;
        bh_dtype dtype;
        double low, high;
    } cases[] = {{&uniform, BH_DTYPE_F32, -2, 3}, {&normal, BH_DTYPE_F16, -4, 4},
                 {&normal, BH_DTYPE_BF16, -4, 4}, {&uniform, BH_DTYPE_F8_E4M3, -2, 3},
                 {&dice, BH_DTYPE_F8_E5M2, 1, 6}, {&dice, BH_DTYPE_U8, 1, 6},
                 {&dice, BH_DTYPE_F64, 1, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        arrange(BHI_ARRANGE_ENDS, cases[i].filler, cases[i].dtype, 7);
        const uint64_t low = count_value(cases[i].dtype, got, cases[i].low);
        BHT_TRUE(low > COUNT / 3 && low < COUNT / 3 * 2);
        BHT_EQ(low + count_value(cases[i].dtype, got, cases[i].high), COUNT);
    }
}

/* Whatever is drawn at once, the next numbers are others. */
TEST(what_is_chosen_does_not_repeat) {
    arrange(BHI_ARRANGE_TIES, &bits, BH_DTYPE_U32, 7);
    for (uint64_t period = 256; period <= 4096; period *= 2) {
        BHT_NE(memcmp(got, got + period * 4, (COUNT - period) * 4), 0);
    }
}

/* How many numbers are of that class (fpclassify), and how many of them are negative. */
static void count_class(bh_dtype dtype, int class, uint64_t out[2]) {
    const double least = dtype == BH_DTYPE_F16 || dtype == BH_DTYPE_F8_E5M2 ? 0x1p-14
                         : dtype == BH_DTYPE_F8_E4M3                        ? 0x1p-6
                         : dtype == BH_DTYPE_F32 || dtype == BH_DTYPE_BF16  ? 0x1p-126
                                                                            : 0x1p-1022;
    out[0] = out[1] = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        const double one = value(dtype, got, i);
        const int is = one == 0            ? FP_ZERO
                       : !isfinite(one)    ? FP_INFINITE
                       : fabs(one) < least ? FP_SUBNORMAL
                                           : FP_NORMAL;
        out[!!signbit(one)] += is == class;
    }
}

TEST(zeros_denormals_and_the_largest_are_of_both_signs) {
    static const struct {
        bh_dtype dtype;
        double huge; /* no number of HUGE is below */
    } floats[] = {{BH_DTYPE_F16, 0x1p14},   {BH_DTYPE_F32, 0x1p126}, {BH_DTYPE_F64, 0x1p1022},
                  {BH_DTYPE_BF16, 0x1p126}, {BH_DTYPE_F8_E4M3, 224}, {BH_DTYPE_F8_E5M2, 0x1p14}};
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        uint64_t count[2];
        arrange(BHI_ARRANGE_ZEROS, &normal, floats[i].dtype, 7);
        count_class(floats[i].dtype, FP_ZERO, count);
        BHT_TRUE(count[0] > COUNT / 3 && count[1] > COUNT / 3 && count[0] + count[1] == COUNT);
        arrange(BHI_ARRANGE_TINY, &normal, floats[i].dtype, 7);
        count_class(floats[i].dtype, FP_SUBNORMAL, count);
        BHT_TRUE(count[0] > COUNT / 6 && count[1] > COUNT / 6);
        count_class(floats[i].dtype, FP_NORMAL, count);
        BHT_TRUE(count[0] > COUNT / 6 && count[1] > COUNT / 6);
        arrange(BHI_ARRANGE_HUGE, &normal, floats[i].dtype, 7);
        count_class(floats[i].dtype, FP_NORMAL, count);
        BHT_EQ(count[0] + count[1], COUNT);
        for (uint64_t k = 0; k < COUNT; k++) {
            BHT_TRUE(fabs(value(floats[i].dtype, got, k)) >= floats[i].huge);
        }
    }
}

TEST(the_ends_of_integers_are_those_of_the_type) {
    arrange(BHI_ARRANGE_HUGE, &dice, BH_DTYPE_I8, 7);
    BHT_EQ(count_value(BH_DTYPE_I8, got, 127) + count_value(BH_DTYPE_I8, got, -128) +
               count_value(BH_DTYPE_I8, got, 63) + count_value(BH_DTYPE_I8, got, 64),
           COUNT);
    arrange(BHI_ARRANGE_HUGE, &dice, BH_DTYPE_U16, 7);
    BHT_TRUE(count_value(BH_DTYPE_U16, got, 65535) > COUNT / 3);
    arrange(BHI_ARRANGE_TINY, &dice, BH_DTYPE_I32, 7);
    BHT_TRUE(count_value(BH_DTYPE_I32, got, -1) > COUNT / 3);
    arrange(BHI_ARRANGE_TINY, &dice, BH_DTYPE_U32, 7);
    BHT_EQ(count_value(BH_DTYPE_U32, got, 1), COUNT);
    arrange(BHI_ARRANGE_HUGE, &dice, BH_DTYPE_BOOL, 7);
    BHT_EQ(count_value(BH_DTYPE_BOOL, got, 1), COUNT);
}

TEST(a_permutation_has_each_number_once) {
    static const bh_dtype types[] = {BH_DTYPE_U32, BH_DTYPE_I16, BH_DTYPE_F32, BH_DTYPE_F64};
    for (size_t i = 0; i < 4; i++) {
        static bool seen[COUNT];
        uint64_t still = 0;
        memset(seen, 0, sizeof seen);
        arrange(BHI_ARRANGE_PERMUTATION, &dice, types[i], 7);
        for (uint64_t k = 0; k < COUNT; k++) {
            const double one = value(types[i], got, k);
            BHT_TRUE(one >= 0 && one < COUNT && !seen[(size_t)one]);
            seen[(size_t)one] = true;
            still += one == (double)k;
        }
        BHT_TRUE(still < 50);
    }
    arrange(BHI_ARRANGE_PERMUTATION, &dice, BH_DTYPE_F8_E4M3, 7); /* as far as the type goes */
    BHT_EQ(count_value(BH_DTYPE_F8_E4M3, got, 448), COUNT - 432);
    BHT_EQ(count_value(BH_DTYPE_F8_E4M3, got, 15), 1);
}
