/* Verdicts by times that an earlier run has recorded. */
#include "judge/time/slower.h"

#include "harness.h"

#include <string.h>

static struct bhi_task task = {
    .parameters = {"n"},
    .parameter_count = 1,
    .sizes = {{.values = {10}}, {.values = {20}}, {.values = {30}, .check_only = true}},
    .size_count = 3,
};
static struct bhi_trial trials[] = {{.size = 2}, {.size = 0}, {.size = 0, .seed = 1}, {.size = 1}};
static struct bhi_court court = {.task = &task, .trials = {trials, BHT_COUNT(trials)}};
static bh_judge_timing timings[2];
static struct bhi_candidate candidate;

/* |count| sizes were measured, with cold caches and a ratio of 2. */
static void measured(size_t count) {
    for (size_t i = 0; i < BHT_COUNT(timings); i++) {
        timings[i] = (bh_judge_timing){
            .size_index = i, .ratio = 2, .low = 1.9, .high = 2.1, .device = true, .cold = true};
    }
    candidate = (struct bhi_candidate){.timings = timings, .timing_count = count};
}

static bool known(struct bhi_timing_options options) {
    return bhi_slower_judge_known(&court, &options, &candidate);
}

static void sizes_that_are_timed(void) {
    BHT_TRUE(bhi_timed_trial(&court, 0) == &trials[1]);
    BHT_TRUE(bhi_timed_trial(&court, 1) == &trials[3]);
    BHT_TRUE(!bhi_timed_trial(&court, 2));
}

static void all_sizes_are_known(void) {
    measured(2);
    BHT_TRUE(known((struct bhi_timing_options){.slower = 0}));
    BHT_EQ(candidate.verdict, BH_JUDGE_CORRECT);
    BHT_TRUE(known((struct bhi_timing_options){.slower = 1.95}));
    BHT_EQ(candidate.verdict, BH_JUDGE_CORRECT);
    BHT_TRUE(known((struct bhi_timing_options){.slower = 1.5}));
    BHT_EQ(candidate.verdict, BH_JUDGE_SLOWER);
    BHT_STR_EQ(candidate.outcome.message,
               "it takes 2.000 times as long as the reference, at least 1.900 (n=10)");
    BHT_TRUE(candidate.trial == &trials[1]);
}

/* As a run leaves it that found it SLOWER: it did not measure the other sizes. */
static void a_size_is_missing(void) {
    measured(1);
    BHT_TRUE(known((struct bhi_timing_options){.slower = 1.5}));
    BHT_EQ(candidate.verdict, BH_JUDGE_SLOWER);
    measured(1);
    BHT_TRUE(!known((struct bhi_timing_options){.slower = 3}));
    BHT_EQ(candidate.verdict, BH_JUDGE_CORRECT);
    measured(0);
    BHT_TRUE(!known((struct bhi_timing_options){.slower = 0}));
}

static void what_was_measured_is_something_else(void) {
    measured(2);
    timings[1].ratio = timings[1].low = timings[1].high = 0;
    BHT_TRUE(!known((struct bhi_timing_options){.slower = 0}));
    measured(2);
    BHT_TRUE(!known((struct bhi_timing_options){.warm = true}));
    BHT_TRUE(!known((struct bhi_timing_options){.guard = true}));
    timings[0].device = timings[1].device = timings[0].cold = timings[1].cold = false;
    BHT_TRUE(known((struct bhi_timing_options){.slower = 0})); /* batches are always warm */
    BHT_TRUE(known((struct bhi_timing_options){.warm = true}));
    timings[0].guard_ratio = timings[1].guard_ratio = 1.01;
    BHT_TRUE(known((struct bhi_timing_options){.guard = true}));
}

/* On a GPU it makes no difference. */
static void other_processors(void) {
    measured(2);
    BHT_TRUE(known((struct bhi_timing_options){.all_processors = true}));
    timings[1].one_processor = true;
    BHT_TRUE(!known((struct bhi_timing_options){.all_processors = true}));
    BHT_TRUE(known((struct bhi_timing_options){.all_processors = false}));
    timings[0].spreads = true;
    timings[1].one_processor = false;
    BHT_TRUE(known((struct bhi_timing_options){.all_processors = true}));
    BHT_TRUE(!known((struct bhi_timing_options){.all_processors = false}));
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(sizes_that_are_timed), BHT_TEST(all_sizes_are_known),
        BHT_TEST(a_size_is_missing),    BHT_TEST(what_was_measured_is_something_else),
        BHT_TEST(other_processors),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
