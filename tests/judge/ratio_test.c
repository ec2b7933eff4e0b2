/* How much faster one kernel is than another. */
#include "judge/data/ratio.h"

#include "harness.h"

#include <math.h>

#include "judge/data/philox.h"

enum { RUNS = 101 };

static uint64_t a[RUNS], b[RUNS];

/* A number from 0 to 999 that depends on |which| and |i| alone. */
static uint64_t noise(uint32_t which, uint32_t i) {
    return bhi_philox(which, (struct bhi_philox){{i}}).words[0] % 1000;
}

static void medians(void) {
    uint64_t odd[] = {9, 1, 5}, even[] = {4, 1, 9, 2}, one[] = {7};
    uint64_t large[] = {UINT64_MAX, UINT64_MAX};
    BHT_TRUE(bhi_median_of(odd, 3) == 5);
    BHT_TRUE(bhi_median_of(even, 4) == 3);
    BHT_TRUE(bhi_median_of(one, 1) == 7);
    BHT_TRUE(bhi_median_of(large, 2) >= 0x1p63);
}

static void equal_kernels(void) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 100000 + noise(1, i);
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, 5, &ratio));
    BHT_TRUE(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
    BHT_TRUE(ratio.low < 1.002 && ratio.high > 0.998);
    BHT_TRUE(ratio.high - ratio.low < 0.01);
    BHT_TRUE(ratio.high > ratio.low);
}

static void twice_as_slow(void) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 2 * (100000 + noise(1, i));
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, 5, &ratio));
    BHT_TRUE(fabs(ratio.ratio - 2) < 0.01);
    BHT_TRUE(ratio.low > 1.98 && ratio.high < 2.02);
}

/* Load that both meet in the same turn is in both times of a pair. If the pairs were taken apart,
 * the interval would be as wide as the load makes the times. */
static void load_that_both_meet(void) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        const uint64_t load = i % 2 ? 1 : 3;
        a[i] = load * 100000;
        b[i] = load * 100000;
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, 5, &ratio));
    BHT_TRUE(ratio.low == 1 && ratio.high == 1);
}

/* About 95 of 100 intervals have the true ratio in them. */
static void as_often_as_it_says(void) {
    int inside = 0;
    for (uint32_t round = 0; round < 100; round++) {
        struct bhi_ratio ratio;
        for (uint32_t i = 0; i < 21; i++) {
            a[i] = 100000 + noise(1000 + round, i);
            b[i] = 100000 + noise(2000 + round, i);
        }
        BHT_TRUE(bhi_ratio_of(a, b, 21, round, &ratio));
        inside += ratio.low <= 1 && ratio.high >= 1;
    }
    BHT_WITHIN(inside, 88, 100);
}

static void the_same_interval_each_time(void) {
    struct bhi_ratio one, other;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 100000 + noise(1, i);
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, 5, &one));
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, 5, &other));
    BHT_MEM_EQ(&one, &other, sizeof one);
}

static void no_times(void) {
    struct bhi_ratio ratio;
    memset(a, 0, sizeof a);
    BHT_TRUE(!bhi_ratio_of(a, b, RUNS, 5, &ratio));
    BHT_TRUE(!bhi_ratio_of(b, a, RUNS, 5, &ratio));
    BHT_TRUE(!bhi_ratio_of(a, b, 0, 5, &ratio));
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(medians),
        BHT_TEST(equal_kernels),
        BHT_TEST(twice_as_slow),
        BHT_TEST(load_that_both_meet),
        BHT_TEST(as_often_as_it_says),
        BHT_TEST(the_same_interval_each_time),
        BHT_TEST(no_times),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
