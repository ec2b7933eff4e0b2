/* Whether times are steady enough to be compared. */
#include "judge/data/steady.h"

#include "harness.h"

#include "judge/data/philox.h"

enum { RUNS = 400 };

static uint64_t times[RUNS];

static struct bhi_steadiness of(size_t count) {
    struct bhi_steadiness steadiness;
    BHT_TRUE(bhi_steadiness_of(times, count, &steadiness));
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

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(equal_times),
        BHT_TEST(more_runs_less_noise),
        BHT_TEST(single_times_do_not_count),
        BHT_TEST(a_device_that_becomes_slower),
        BHT_TEST(noise_is_no_drift),
        BHT_TEST(few_times),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
