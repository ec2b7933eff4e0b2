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

enum { EXPERIMENTS = 300, TURNS = 100 };

/* Normal, by |which| and |i| alone. */
static double normal(uint32_t which, uint32_t i) {
    const struct bhi_philox bits = bhi_philox(which, (struct bhi_philox){{i}});
    const double radius = sqrt(-2 * log(((double)bits.words[0] + 0.5) / 0x1p32));
    return radius * cos(2 * 3.14159265358979 * bits.words[1] / 0x1p32);
}

/* Standard deviation 1; neighbours have the correlation |alike| (an autoregression). */
static void fill_series(uint32_t which, double alike, double out[TURNS]) {
    double value = normal(which, 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        out[i] = value;
        value = alike * value + sqrt(1 - alike * alike) * normal(which, i + 1);
    }
}

/* How many of the intervals of equal kernels have 1 in them. Each has load of its own, 5 % of its
 * time; both meet another load, and a device that becomes 10 % slower. */
static int covered(double alike, double *out_mean_width) {
    static double own[TURNS], other[TURNS], shared[TURNS];
    int inside = 0;
    *out_mean_width = 0;
    for (uint32_t i = 0; i < EXPERIMENTS; i++) {
        struct bhi_ratio ratio;
        fill_series(10000 + i, alike, own);
        fill_series(20000 + i, alike, other);
        fill_series(30000 + i, alike, shared);
        for (uint32_t k = 0; k < TURNS; k++) {
            const double met = 1e6 * exp(0.05 * shared[k] + 0.1 * k / TURNS);
            a[k] = (uint64_t)(met * exp(0.05 * own[k]));
            b[k] = (uint64_t)(met * exp(0.05 * other[k]));
        }
        BHT_TRUE(bhi_ratio_of(a, b, TURNS, i, &ratio));
        inside += ratio.low <= 1 && ratio.high >= 1;
        *out_mean_width += (ratio.high - ratio.low) / EXPERIMENTS;
    }
    return inside;
}

/* Taken one by one, the pairs of these would have 1 in two of three intervals. */
static void neighbours_that_are_alike(void) {
    double width;
    BHT_WITHIN(covered(0.8, &width), EXPERIMENTS * 90 / 100, EXPERIMENTS);
}

/* The interval of independent pairs is hardly wider than it need be. One by one it would be 0.044
 * wide, and have 1 in it as often as it should. */
static void neighbours_that_are_not(void) {
    double width;
    BHT_WITHIN(covered(0, &width), EXPERIMENTS * 92 / 100, EXPERIMENTS * 99 / 100);
    BHT_TRUE(width < 0.05);
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
        BHT_TEST(neighbours_that_are_alike),
        BHT_TEST(neighbours_that_are_not),
        BHT_TEST(the_same_interval_each_time),
        BHT_TEST(no_times),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
