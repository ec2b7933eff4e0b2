/* What batches say of claims that a ratio is made from. All times are synthetic. */
#include "judge/time/series.h"

#include "harness.h"

#include "judge/data/draw.h"
#include "judge/data/ratio.h"

enum { RUNS = 50, GROUPS = 8, LENGTH = 32, BASE_NS = 300000 };

static uint64_t times[BHI_RACER_BASE][RUNS];
static struct bhi_series series;

/* Runs of 60 us beside a reference's of 30 us. In |group| the candidate claims a thousandth;
 * GROUPS: in none. */
static struct bhi_ratio claim(size_t group) {
    struct bhi_ratio ratio;
    series = (struct bhi_series){.count = RUNS, .groups = GROUPS, .device = true};
    for (uint32_t i = 0; i < RUNS; i++) {
        const struct bhi_philox bits = bhi_philox(7, (struct bhi_philox){{i}});
        times[BHI_RACER_CANDIDATE][i] = 60000 + bits.words[0] % 1000;
        times[BHI_RACER_REFERENCE][i] = 30000 + bits.words[1] % 500;
    }
    const size_t end = group < GROUPS ? bhi_group_begin(RUNS, GROUPS, group + 1) : 0;
    for (size_t i = bhi_group_begin(RUNS, GROUPS, group); i < end; i++) {
        times[BHI_RACER_CANDIDATE][i] /= 1000;
    }
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        series.times[i] = times[i];
    }
    BHT_TRUE(
        bhi_ratio_of(times[BHI_RACER_CANDIDATE], times[BHI_RACER_REFERENCE], RUNS, GROUPS, &ratio));
    return ratio;
}

static enum bhi_honesty judge(double ratio) {
    const struct bhi_batches batches = {.length = LENGTH,
                                        .least = {[BHI_RACER_CANDIDATE] = BASE_NS + LENGTH * 60000,
                                                  [BHI_RACER_REFERENCE] = BASE_NS + LENGTH * 30000,
                                                  [BHI_RACER_BASE] = BASE_NS}};
    const struct bhi_seen candidate =
        bhi_batches_seen(&batches, &series, BHI_RACER_CANDIDATE, ratio);
    const struct bhi_seen reference =
        bhi_batches_seen(&batches, &series, BHI_RACER_REFERENCE, ratio);
    return bhi_honesty_of(&candidate, &reference);
}

TEST(all_claims_are_true) {
    const struct bhi_ratio ratio = claim(GROUPS);
    BHT_TRUE(ratio.low > 1.95 && ratio.high < 2.05);
    BHT_EQ(judge(ratio.ratio), BHI_HONEST);
}

/* Median and ratio hardly change, and the interval has everything in it. */
TEST(one_group_lies) {
    for (size_t group = 0; group < GROUPS; group++) {
        const struct bhi_ratio ratio = claim(group);
        BHT_TRUE(ratio.ratio > 1.95 && ratio.low < 0.1);
        BHT_EQ(judge(ratio.ratio), BHI_UNSURE);
    }
}

/* What the ratio says is what is claimed. */
TEST(a_ratio_that_is_too_low) {
    (void)claim(GROUPS);
    BHT_EQ(judge(1.6), BHI_HONEST);
    BHT_EQ(judge(1.4), BHI_UNSURE);
    BHT_EQ(judge(0), BHI_HONEST);
}
