/* The largest errors of what is right. */
#include "judge/data/error.h"

#include "harness.h"

#include <math.h>
#include <string.h>

enum { COUNT = 3000 };

static bh_judge_error largest;

static void measure(const float *expected, const float *got, uint64_t count) {
    largest = (bh_judge_error){0};
    bhi_error_raise(BH_DTYPE_F32, count, expected, got, &largest);
}

TEST(what_is_equal_has_no_error) {
    const float same[] = {1, -2, INFINITY, NAN, 0};
    measure(same, same, 5);
    BHT_TRUE(largest.absolute == 0 && largest.relative == 0 && largest.ulp == 0);
}

/* Wherever it is: what is alike is skipped in blocks. */
TEST(one_element_decides_wherever_it_is) {
    static float a[COUNT], b[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        a[i] = b[i] = (float)i + 1;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        b[i] = a[i] * 1.5F;
        measure(a, b, COUNT);
        BHT_TRUE(largest.absolute == (double)(i + 1) / 2 && largest.relative == 0.5);
        BHT_GT(largest.ulp, 1000000);
        b[i] = a[i];
    }
}

TEST(each_largest_is_of_an_element_of_its_own) {
    const float a[] = {1000, 1e-3F, 1}, b[] = {1001, 2e-3F, nextafterf(1, 2)};
    measure(a, b, 3);
    BHT_TRUE(largest.absolute == 1);
    BHT_TRUE(fabs(largest.relative - 1) < 1e-6);
    BHT_EQ(largest.ulp, 8388608); /* from 1e-3 to 2e-3 */
}

TEST(a_zero_has_no_relative_error) {
    const float a[] = {0}, b[] = {-0.25F};
    measure(a, b, 1);
    BHT_TRUE(largest.absolute == 0.25 && largest.relative == 0);
}

TEST(no_finite_number_is_no_error) {
    const float a[] = {INFINITY, NAN, 3}, b[] = {INFINITY, 5, 3};
    measure(a, b, 3);
    BHT_TRUE(largest.absolute == 0 && largest.ulp == 0);
}

TEST(what_was_larger_before_stays) {
    const uint8_t a[] = {10}, b[] = {7};
    largest = (bh_judge_error){.absolute = 2, .relative = 4, .ulp = 9};
    bhi_error_raise(BH_DTYPE_U8, 1, a, b, &largest);
    BHT_TRUE(largest.absolute == 3 && largest.relative == 4 && largest.ulp == 9);
}
