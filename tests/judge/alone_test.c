/* Load that meets the reference alone. All times are synthetic. */
#include "judge/time/measure.h"

#include "harness.h"

#include "judge/data/draw.h"

enum { RUNS = 50 };

static uint64_t times[BHI_RACER_BASE][RUNS], hosts[BHI_RACER_BASE][RUNS];

static uint64_t noise(uint32_t which, uint32_t i, uint64_t below) {
    return bhi_philox(which, (struct bhi_philox){{i}}).words[0] % below;
}

/* A series in which the reference takes 1 ms and |slower_us| more, noise of up to |noise_us|, and
 * |way_us| by the host's clock beside that; |count| rounds. */
static struct bhi_alone series(uint32_t which, uint64_t slower_us, uint64_t noise_us,
                               uint64_t way_us, size_t count) {
    struct bhi_alone alone;
    struct bhi_series series = {.count = count, .groups = 1, .device = true};
    for (int racer = 0; racer < BHI_RACER_BASE; racer++) {
        series.times[racer] = times[racer];
        series.hosts[racer] = hosts[racer];
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t ns = 1000000 + slower_us * 1000 + noise(which, i, noise_us * 1000);
        times[BHI_RACER_REFERENCE][i] = ns;
        hosts[BHI_RACER_REFERENCE][i] = ns + way_us * 1000 + noise(which + 1, i, 20000);
        times[BHI_RACER_CANDIDATE][i] = hosts[BHI_RACER_CANDIDATE][i] = 5; /* nobody asks */
    }
    BHT_TRUE(bhi_alone_of(&series, &alone));
    return alone;
}

static bool was_faster(struct bhi_alone alone, struct bhi_alone beside) {
    return bhi_alone_was_faster(&alone, &beside);
}

TEST(nobody_disturbs) {
    const struct bhi_alone alone = series(10, 0, 20, 150, 20);
    BHT_TRUE(!was_faster(alone, series(20, 0, 20, 150, RUNS)));
    BHT_TRUE(!was_faster(alone, series(30, 30, 20, 150, RUNS))); /* 3 % slower */
    BHT_TRUE(!was_faster(alone, series(40, 0, 20, 200, RUNS)));
    BHT_TRUE(!was_faster(series(50, 100, 20, 400, 20), alone)); /* it is faster beside it */
}

/* The reference never drifts: it is slower in all of its turns. */
TEST(load_in_its_turns) {
    const struct bhi_alone alone = series(10, 0, 20, 150, 20);
    BHT_TRUE(was_faster(alone, series(20, 80, 20, 150, RUNS)));
    BHT_TRUE(was_faster(alone, series(30, 1000, 400, 150, RUNS)));
}

/* A device that is busy when the reference's run is submitted makes the host wait. */
TEST(load_before_its_turns) {
    const struct bhi_alone alone = series(10, 0, 20, 150, 20);
    BHT_TRUE(was_faster(alone, series(20, 0, 20, 350, RUNS)));
}

/* On a busy machine the medians of two series differ by more than 5 % by chance. Where that is
 * taken for load, the reference is measured alone again. */
TEST(noise_is_no_load) {
    int taken = 0;
    for (uint32_t i = 0; i < 50; i++) {
        const struct bhi_alone alone = series(1000 + 2 * i, 0, 8000, 150, 20);
        taken += was_faster(alone, series(2000 + 2 * i, 300, 8000, 150, RUNS));
    }
    BHT_LT(taken, 3);
}

/* What was faster beside a candidate is what the next one is compared with. */
TEST(the_least_counts) {
    struct bhi_alone alone = series(10, 100, 20, 400, 20);
    const struct bhi_alone quiet = series(20, 0, 20, 150, RUNS);
    const struct bhi_alone slow = series(30, 100, 20, 150, RUNS);
    BHT_TRUE(!was_faster(alone, slow));
    bhi_alone_lower(&alone, &quiet);
    BHT_TRUE(was_faster(alone, slow));
    bhi_alone_lower(&alone, &slow);
    BHT_TRUE(was_faster(alone, slow));
    BHT_TRUE(alone.overhead.median_ns == quiet.overhead.median_ns);
}

/* A worker that delays some of the reference's runs does not make its bound wider for the next
 * measurement. */
TEST(what_varies_less_counts) {
    struct bhi_alone alone = series(10, 100, 20, 400, 20);
    struct bhi_alone delayed = series(20, 0, 20, 150, RUNS);
    const double spread_ns = alone.overhead.spread_ns;
    delayed.overhead.spread_ns = 50e6;
    bhi_alone_lower(&alone, &delayed);
    BHT_TRUE(alone.overhead.median_ns == delayed.overhead.median_ns);
    BHT_TRUE(alone.overhead.spread_ns == spread_ns);
    delayed.overhead.spread_ns = spread_ns / 2;
    delayed.overhead.median_ns /= 2;
    bhi_alone_lower(&alone, &delayed);
    BHT_TRUE(alone.overhead.spread_ns == spread_ns / 2);
}

TEST(without_a_clock) {
    struct bhi_alone alone;
    const struct bhi_series series = {.count = RUNS,
                                      .groups = 1,
                                      .times[BHI_RACER_REFERENCE] = times[BHI_RACER_REFERENCE],
                                      .hosts[BHI_RACER_REFERENCE] = hosts[BHI_RACER_REFERENCE]};
    BHT_TRUE(bhi_alone_of(&series, &alone));
    BHT_TRUE(alone.overhead.median_ns == 0 && alone.overhead.host_ns == 0);
}
