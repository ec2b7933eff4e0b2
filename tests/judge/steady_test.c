/* Whether times are steady enough to be compared. */
#include "judge/data/ratio.h"

#include "harness.h"

#include <string.h>

#include "judge/data/filler.h"

enum { RUNS = 400 };

static uint64_t times[RUNS];

static struct bhi_steadiness of(size_t count) {
    struct bhi_steadiness steadiness;
    BHT_TRUE(bhi_steadiness_of(times, count, 1, &steadiness));
    return steadiness;
}

/* From 100000 to 100999, by |i| alone. */
static uint64_t noisy(uint32_t i) {
    return 100000 + bhi_philox(3, (struct bhi_philox){{i}}).words[0] % 1000;
}

static void equal_times(void) {
    for (int i = 0; i < RUNS; i++) {
        times[i] = 500;
    }
    const struct bhi_steadiness steadiness = of(RUNS);
    BHT_TRUE(steadiness.median == 500 && steadiness.noise == 0 && steadiness.drift == 0);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

/* The standard deviation of these is 0.29 % of them, that of their median about 0.36 % / sqrt(n):
 * four times as many runs, half the noise. */
static void more_runs_less_noise(void) {
    for (uint32_t i = 0; i < RUNS; i++) {
        times[i] = noisy(i);
    }
    const double few = of(RUNS / 4).noise, many = of(RUNS).noise;
    BHT_TRUE(few > 0.0003 && few < 0.0006);
    BHT_TRUE(many > few / 2 * 0.8 && many < few / 2 * 1.2);
}

static void single_times_do_not_count(void) {
    for (uint32_t i = 0; i < RUNS; i++) {
        times[i] = i % 10 ? noisy(i) : 100 * noisy(i);
    }
    const struct bhi_steadiness steadiness = of(RUNS);
    BHT_TRUE(steadiness.median < 101000 && steadiness.noise < 0.001);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

static void a_device_that_becomes_slower(void) {
    for (uint32_t i = 0; i < RUNS; i++) {
        times[i] = i < RUNS / 2 ? noisy(i) : noisy(i) * 11 / 10;
    }
    const struct bhi_steadiness steadiness = of(RUNS);
    BHT_TRUE(steadiness.drift > 0.08 && steadiness.drift < 0.11);
    BHT_TRUE(bhi_steadiness_drifts(&steadiness, 0.05));
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.2));
}

/* Times that go up and down by a factor of 10 have halves that differ by chance. */
static void noise_is_no_drift(void) {
    const uint64_t wild[] = {10, 100, 20, 90, 15, 40, 95, 30, 99, 60};
    for (int i = 0; i < 10; i++) {
        times[i] = wild[i];
    }
    const struct bhi_steadiness steadiness = of(10);
    BHT_TRUE(steadiness.drift > 0.05);
    BHT_TRUE(!bhi_steadiness_drifts(&steadiness, 0.05));
}

static void few_times(void) {
    times[0] = 7;
    times[1] = 70;
    times[2] = 700;
    BHT_TRUE(of(1).median == 7 && of(1).noise == 0 && of(1).drift == 0);
    BHT_TRUE(of(3).median == 70 && of(3).drift == 0);
}

/* Workers that differ: the groups' medians are what is uncertain. */
static void groups_that_differ(void) {
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
static void groups_of_a_device_that_becomes_slower(void) {
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

static void slower_than_before(void) {
    const struct bhi_steadiness before = series(0, 20, 0), same = series(1000, 50, 0),
                                less = series(2000, 50, 4000), more = series(3000, 50, 6000);
    BHT_TRUE(!bhi_steadiness_is_slower(&same, &before, 0.05));
    BHT_TRUE(!bhi_steadiness_is_slower(&less, &before, 0.05));
    BHT_TRUE(bhi_steadiness_is_slower(&more, &before, 0.05));
    BHT_TRUE(!bhi_steadiness_is_slower(&before, &more, 0.05));
}

/* Five times that happen to be alike prove little: their errors are believed three times less. */
static void few_are_not_sure(void) {
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

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(equal_times),
        BHT_TEST(more_runs_less_noise),
        BHT_TEST(single_times_do_not_count),
        BHT_TEST(a_device_that_becomes_slower),
        BHT_TEST(noise_is_no_drift),
        BHT_TEST(few_times),
        BHT_TEST(groups_that_differ),
        BHT_TEST(groups_of_a_device_that_becomes_slower),
        BHT_TEST(slower_than_before),
        BHT_TEST(few_are_not_sure),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
