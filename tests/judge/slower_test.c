/* Verdicts by times that an earlier run has recorded. */
#include "judge/time/measure.h"

#include "harness.h"

static struct bhi_task task = {
    .parameters = {"n"},
    .parameter_count = 1,
    .sizes = {{.values = {10}}, {.values = {20}}, {.values = {30}, .check_only = true}},
    .size_count = 3,
};
static struct bhi_trial trials[] = {{.size = 2}, {.size = 0}, {.size = 0, .seed = 1}, {.size = 1}};
static struct bhi_court court = {.task = &task,
                                 .trials = {.list = trials, .count = BHT_COUNT(trials)}};

TEST(sizes_that_are_timed) {
    BHT_TRUE(bhi_timed_trial(&court, 0) == &trials[1]);
    BHT_TRUE(bhi_timed_trial(&court, 1) == &trials[3]);
    BHT_TRUE(!bhi_timed_trial(&court, 2));
}

/* |count| sizes were measured, with a ratio of 2; it is known if they suffice. */
TEST(times_suffice_or_not) {
#define COLD {.ratio = 2, .low = 1.9, .high = 2.1, .device = true, .cold = true}
#define HOST {.ratio = 2, .low = 1.9, .high = 2.1, .guard_ratio = 1.01}
#define ONE  {.ratio = 2, .low = 1.9, .device = true, .cold = true, .one_processor = true}
#define WIDE {.ratio = 2, .low = 1.9, .device = true, .cold = true, .spreads = true}
    static const struct {
        size_t count;
        bh_judge_timing timings[2];
        bh_judge_options options;
        bool known;
        bh_judge_verdict judged;
    } cases[] = {
        {2, {COLD, COLD}, {.slower_than = 0}, true, BH_JUDGE_CORRECT},
        {2, {COLD, COLD}, {.slower_than = 1.95}, true, BH_JUDGE_CORRECT},
        {2, {COLD, COLD}, {.slower_than = 1.5}, true, BH_JUDGE_SLOWER},
        /* As a run leaves it that found it SLOWER: it did not measure the other sizes. */
        {1, {COLD}, {.slower_than = 1.5}, true, BH_JUDGE_SLOWER},
        {1, {COLD}, {.slower_than = 3}, false, BH_JUDGE_CORRECT},
        {0, {{0}}, {.slower_than = 0}, false, BH_JUDGE_CORRECT},
        {2, {COLD, {.device = true, .cold = true}}, {.slower_than = 0}, false, BH_JUDGE_CORRECT},
        {2, {COLD, COLD}, {.warm = true}, false, BH_JUDGE_CORRECT},
        {2, {COLD, COLD}, {.guard_cost = true}, false, BH_JUDGE_CORRECT},
        {2, {HOST, HOST}, {.guard_cost = true}, true, BH_JUDGE_CORRECT},
        {2, {HOST, HOST}, {.warm = true}, true, BH_JUDGE_CORRECT}, /* batches are always warm */
        /* On a GPU, which does not run on processors, it makes no difference. */
        {2, {COLD, COLD}, {.all_processors = true}, true, BH_JUDGE_CORRECT},
        {2, {COLD, ONE}, {.all_processors = true}, false, BH_JUDGE_CORRECT},
        {2, {COLD, ONE}, {.all_processors = false}, true, BH_JUDGE_CORRECT},
        {2, {WIDE, COLD}, {.all_processors = true}, true, BH_JUDGE_CORRECT},
        {2, {WIDE, COLD}, {.all_processors = false}, false, BH_JUDGE_CORRECT},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        bh_judgement judgement = {.timing_count = cases[i].count};
        memcpy(judgement.timings, cases[i].timings, sizeof cases[i].timings);
        judgement.timings[1].size_index = 1;
        if (bhi_slower_judge_known(&court, &cases[i].options, &judgement) != cases[i].known) {
            BHT_FAIL("case %zu", i);
        }
        BHT_EQ(judgement.verdict, cases[i].judged);
        if (judgement.verdict == BH_JUDGE_SLOWER) {
            BHT_STR_EQ(judgement.message,
                       "it takes 2.000 times as long as the reference, at least 1.900 (n=10)");
            BHT_STR_EQ(judgement.size_text, "n=10");
            BHT_EQ(judgement.status, BH_NOT_CORRECT);
            BHT_TRUE(judgement.timed);
        }
    }
}
