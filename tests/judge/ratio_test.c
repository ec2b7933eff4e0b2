/* How much faster one kernel is than another, and whether times are steady enough for that. */
#include "judge/data/ratio.h"

#include "harness.h"

#include <math.h>

#include "judge/data/draw.h"

enum { RUNS = 101, GROUPS = 8 };

static uint64_t a[RUNS], b[RUNS];

/* A number from 0 to 999 that depends on |which| and |i| alone. */
static uint64_t noise(uint32_t which, uint32_t i) {
    return bhi_philox(which, (struct bhi_philox){{i}}).words[0] % 1000;
}

TEST(medians) {
    uint64_t odd[] = {9, 1, 5}, even[] = {4, 1, 9, 2}, one[] = {7};
    uint64_t large[] = {UINT64_MAX, UINT64_MAX};
    BHT_TRUE(bhi_median_of(odd, 3) == 5);
    BHT_TRUE(bhi_median_of(even, 4) == 3);
    BHT_TRUE(bhi_median_of(one, 1) == 7);
    BHT_TRUE(bhi_median_of(large, 2) >= 0x1p63);
}

TEST(equal_kernels) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 100000 + noise(1, i);
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &ratio));
    BHT_TRUE(ratio.low <= ratio.ratio && ratio.ratio <= ratio.high);
    BHT_TRUE(ratio.low < 1.002 && ratio.high > 0.998);
    BHT_TRUE(ratio.high - ratio.low < 0.01);
    BHT_TRUE(ratio.high > ratio.low);
}

TEST(twice_as_slow) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 2 * (100000 + noise(1, i));
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &ratio));
    BHT_TRUE(fabs(ratio.ratio - 2) < 0.01);
    BHT_TRUE(ratio.low > 1.98 && ratio.high < 2.02);
}

/* Load that both meet in the same turn is in both times of a pair. If the pairs were taken apart,
 * the interval would be as wide as the load makes the times. */
TEST(load_that_both_meet) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        const uint64_t load = i % 2 ? 1 : 3;
        a[i] = load * 100000;
        b[i] = load * 100000;
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &ratio));
    BHT_TRUE(ratio.low == 1 && ratio.high == 1);
}

/* A load that comes and stays changes both medians of a group alike. */
TEST(load_that_stays) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        const uint64_t load = i < RUNS / 2 ? 1 : 3;
        a[i] = load * (100000 + noise(1, i));
        b[i] = load * (100000 + noise(2, i));
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &ratio));
    BHT_TRUE(ratio.low > 0.995 && ratio.high < 1.005);
}

/* Sets the ratio of each of |groups| groups of one run. */
static struct bhi_ratio of_groups(const uint64_t *ratios, size_t groups) {
    struct bhi_ratio ratio;
    for (size_t i = 0; i < groups; i++) {
        a[i] = ratios[i];
        b[i] = 1000;
    }
    BHT_TRUE(bhi_ratio_of(a, b, groups, groups, &ratio));
    return ratio;
}

static bool is_near(double x, double y) {
    return fabs(x / y - 1) < 1e-9;
}

/* Powers of two, so the geometric means of each two are easy to order. */
TEST(known_intervals) {
    const uint64_t powers[] = {1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000};
    struct bhi_ratio ratio = of_groups(powers, 8);
    BHT_TRUE(is_near(ratio.ratio, pow(2, 3.5)));
    BHT_TRUE(is_near(ratio.low, pow(2, 1)) && is_near(ratio.high, pow(2, 6))); /* 0 0.5 1 *1* */
    ratio = of_groups(powers, 6); /* the least and the greatest */
    BHT_TRUE(is_near(ratio.low, 1) && is_near(ratio.high, 32) && is_near(ratio.ratio, pow(2, 2.5)));
    ratio = of_groups(powers, 5); /* farther */
    BHT_TRUE(is_near(ratio.low, pow(2, -0.2)) && is_near(ratio.high, pow(2, 4.2)));
    BHT_TRUE(is_near(ratio.ratio, 4));
    ratio = of_groups(powers, 9); /* 0 0.5 1 1 1.5 *1.5* */
    BHT_TRUE(is_near(ratio.low, pow(2, 1.5)) && is_near(ratio.high, pow(2, 6.5)));
}

/* Two groups of eight move the ratio only between the others'. */
TEST(groups_that_are_far_out) {
    const uint64_t ratios[] = {1, 1000, 1010, 990, 1, 1005, 995, 1002};
    const struct bhi_ratio ratio = of_groups(ratios, 8);
    BHT_TRUE(ratio.ratio > 0.99 && ratio.ratio < 1.01);
    BHT_TRUE(ratio.low < 0.5 && ratio.high < 1.01);
}

/* The middle two of an even number. */
TEST(medians_of_each_group) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < 40; i++) {
        a[i] = i % 4 ? 3000 : 90000;
        b[i] = i % 4 > 1 ? 1000 : 900;
    }
    BHT_TRUE(bhi_ratio_of(a, b, 40, 10, &ratio));
    BHT_TRUE(is_near(ratio.ratio, 3000 / 950.0) && is_near(ratio.low, ratio.high));
}

enum { EXPERIMENTS = 300 };

/* Normal, by |which| and |i| alone. */
static double normal(uint32_t which, uint32_t i) {
    const struct bhi_philox bits = bhi_philox(which, (struct bhi_philox){{i}});
    const double radius = sqrt(-2 * log(((double)bits.words[0] + 0.5) / 0x1p32));
    return radius * cos(2 * 3.14159265358979 * bits.words[1] / 0x1p32);
}

/* |runs| of equal kernels, whose neighbours have the correlation |alike|, as far as they are in the
 * same one of |groups|, which differ by |workers|. */
static void fill(uint32_t which, size_t runs, size_t groups, double alike, double workers,
                 uint64_t *out) {
    uint32_t drawn = 0;
    for (size_t group = 0; group < groups; group++) {
        const double worker = workers * normal(which, drawn++);
        double value = normal(which, drawn++);
        for (size_t i = bhi_group_begin(runs, groups, group);
             i < bhi_group_begin(runs, groups, group + 1); i++) {
            out[i] = (uint64_t)(1e6 * exp(0.02 * value + worker + 0.1 * (double)i / RUNS));
            value = alike * value + sqrt(1 - alike * alike) * normal(which, drawn++);
        }
    }
}

/* How many intervals of equal kernels have 1 in them. */
static int covered(size_t runs, size_t groups, double alike, double workers, double *out_width) {
    int inside = 0;
    *out_width = 0;
    for (uint32_t i = 0; i < EXPERIMENTS; i++) {
        struct bhi_ratio ratio;
        fill(10000 + i, runs, groups, alike, workers, a);
        fill(20000 + i, runs, groups, alike, workers, b);
        BHT_TRUE(bhi_ratio_of(a, b, runs, groups, &ratio));
        inside += ratio.low <= 1 && ratio.high >= 1;
        *out_width += (ratio.high - ratio.low) / EXPERIMENTS;
    }
    return inside;
}

/* About 95 of 100, however many runs there are, and whatever makes the times differ. */
TEST(as_often_as_it_says) {
    static const struct {
        size_t runs, groups;
        double alike, workers;
    } cases[] = {
        {50, 8, 0, 0},  {50, 8, 0.8, 0},   {50, 8, 0.3, 0.1},   {5, 5, 0, 0.1},
        {6, 6, 0, 0.1}, {20, 8, 0.3, 0.1}, {100, 16, 0.3, 0.1}, {100, 50, 0.8, 0.1},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        double width;
        const int inside =
            covered(cases[i].runs, cases[i].groups, cases[i].alike, cases[i].workers, &width);
        BHT_WITHIN(inside, EXPERIMENTS * 92 / 100, EXPERIMENTS * 99 / 100);
    }
}

/* One worker each, and as many runs as you like: the interval says nothing of the workers. */
TEST(runs_of_one_worker_are_one_observation) {
    double narrow, wide;
    fill(1, RUNS, 1, 0, 0.1, a);
    fill(2, RUNS, 1, 0, 0.1, b);
    struct bhi_ratio ratio;
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &ratio));
    BHT_TRUE(ratio.high < 1 || ratio.low > 1);
    (void)covered(50, 8, 0, 0, &narrow);
    (void)covered(50, 8, 0, 0.1, &wide);
    BHT_TRUE(narrow < 0.03 && wide > 0.15 && wide < 0.3);
}

TEST(the_same_interval_each_time) {
    struct bhi_ratio one, other;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = 100000 + noise(1, i);
        b[i] = 100000 + noise(2, i);
    }
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &one));
    BHT_TRUE(bhi_ratio_of(a, b, RUNS, GROUPS, &other));
    BHT_MEM_EQ(&one, &other, sizeof one);
}

TEST(no_ratio) {
    struct bhi_ratio ratio;
    for (uint32_t i = 0; i < RUNS; i++) {
        a[i] = b[i] = 5;
    }
    BHT_TRUE(!bhi_ratio_of(a, b, RUNS, 4, &ratio));
    BHT_TRUE(!bhi_ratio_of(a, b, RUNS, 51, &ratio));
    BHT_TRUE(!bhi_ratio_of(a, b, 7, 8, &ratio));
    BHT_TRUE(bhi_ratio_of(a, b, 8, 8, &ratio));
    a[3] = 0;
    BHT_TRUE(!bhi_ratio_of(a, b, 8, 8, &ratio));
    BHT_TRUE(!bhi_ratio_of(b, a, 8, 8, &ratio));
}

/* -- whether times are steady enough to be compared ----------------------------------------------
 */

enum { SERIES = 400 };

static uint64_t times[SERIES];

static struct bhi_steadiness of(size_t count) {
    struct bhi_steadiness steadiness;
    BHT_TRUE(bhi_steadiness_of(times, count, 1, &steadiness));
    return steadiness;
}

/* From 100000 to 100999, by |i| alone. */
static uint64_t noisy(uint32_t i) {
    return 100000 + noise(3, i);
}

TEST(equal_times) {
    for (int i = 0; i < SERIES; i++) {
        times[i] = 500;
    }
    const struct bhi_steadiness steadiness = of(SERIES);
    BHT_TRUE(steadiness.median == 500 && steadiness.noise == 0 && steadiness.drift == 0);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

/* The standard deviation of these is 0.29 % of them, that of their median about 0.36 % / sqrt(n):
 * four times as many runs, half the noise. */
TEST(more_runs_less_noise) {
    for (uint32_t i = 0; i < SERIES; i++) {
        times[i] = noisy(i);
    }
    const double few = of(SERIES / 4).noise, many = of(SERIES).noise;
    BHT_TRUE(few > 0.0003 && few < 0.0006);
    BHT_TRUE(many > few / 2 * 0.8 && many < few / 2 * 1.2);
}

TEST(single_times_do_not_count) {
    for (uint32_t i = 0; i < SERIES; i++) {
        times[i] = i % 10 ? noisy(i) : 100 * noisy(i);
    }
    const struct bhi_steadiness steadiness = of(SERIES);
    BHT_TRUE(steadiness.median < 101000 && steadiness.noise < 0.001);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

TEST(a_device_that_becomes_slower_or_faster) {
    for (int faster = 0; faster < 2; faster++) {
        for (uint32_t i = 0; i < SERIES; i++) {
            times[i] = (i < SERIES / 2) == faster ? noisy(i) * 11 / 10 : noisy(i);
        }
        const struct bhi_steadiness steadiness = of(SERIES);
        BHT_TRUE(steadiness.drift > 0.08 && steadiness.drift < 0.11);
        BHT_TRUE(bhi_steadiness_drifts(&steadiness, 0.05));
        BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.2));
    }
}

/* Times that go up and down by a factor of 10 have halves that differ by chance. */
TEST(noise_is_no_drift) {
    const uint64_t wild[] = {10, 100, 20, 90, 15, 40, 95, 30, 99, 60};
    for (int i = 0; i < 10; i++) {
        times[i] = wild[i];
    }
    const struct bhi_steadiness steadiness = of(10);
    BHT_TRUE(steadiness.drift > 0.05);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

TEST(few_times) {
    times[0] = 7;
    times[1] = 70;
    times[2] = 700;
    BHT_TRUE(of(1).median == 7 && of(1).noise == 0 && of(1).drift == 0);
    BHT_TRUE(of(3).median == 70 && of(3).drift == 0);
}

/* Workers that differ: the groups' medians are what is uncertain. */
TEST(groups_that_differ) {
    struct bhi_steadiness steadiness;
    for (uint32_t i = 0; i < 80; i++) {
        times[i] = noisy(i) * (i / 10 % 2 ? 110 : 100) / 100;
    }
    BHT_TRUE(bhi_steadiness_of(times, 80, 8, &steadiness));
    BHT_TRUE(steadiness.count == 8);
    BHT_TRUE(steadiness.noise > 0.02 && steadiness.noise < 0.04);
    for (uint32_t i = 0; i < 80; i++) {
        times[i] = noisy(i);
    }
    BHT_TRUE(bhi_steadiness_of(times, 80, 8, &steadiness));
    BHT_TRUE(steadiness.noise < 0.001);
}

/* Workers do not hide that the device became slower. */
TEST(groups_of_a_device_that_becomes_slower) {
    struct bhi_steadiness steadiness;
    for (uint32_t i = 0; i < 80; i++) {
        times[i] = i < 40 ? noisy(i) : noisy(i) * 11 / 10;
    }
    BHT_TRUE(bhi_steadiness_of(times, 80, 8, &steadiness));
    BHT_TRUE(bhi_steadiness_drifts(&steadiness, 0.05));
}

/* A series from |first| on, with |added|. */
static struct bhi_steadiness series(uint32_t first, size_t count, uint64_t added) {
    for (uint32_t i = 0; i < count; i++) {
        times[i] = noisy(first + i) + added;
    }
    return of(count);
}

TEST(slower_than_before) {
    const struct bhi_steadiness before = series(0, 20, 0), same = series(1000, 50, 0),
                                less = series(2000, 50, 4000), more = series(3000, 50, 6000);
    BHT_TRUE(!bhi_steadiness_is_slower(&same, &before, 0.05));
    BHT_TRUE(!bhi_steadiness_is_slower(&less, &before, 0.05));
    BHT_TRUE(bhi_steadiness_is_slower(&more, &before, 0.05));
    BHT_TRUE(!bhi_steadiness_is_slower(&before, &more, 0.05));
}

/* Five times that happen to be alike prove little: their errors are believed three times less. */
TEST(few_are_not_sure) {
    const uint64_t alike[] = {1000, 1010, 1020, 1030, 1040},
                   later[] = {1110, 1120, 1130, 1140, 1150};
    memcpy(times, alike, sizeof alike);
    struct bhi_steadiness before = of(5);
    memcpy(times, later, sizeof later);
    struct bhi_steadiness now = of(5);
    BHT_TRUE(!bhi_steadiness_is_slower(&now, &before, 0.05));
    now.count = before.count = 50; /* as if it were the noise of many */
    BHT_TRUE(bhi_steadiness_is_slower(&now, &before, 0.05));
    now.count = 1;
    BHT_TRUE(!bhi_steadiness_is_slower(&now, &before, 0.05));
}
