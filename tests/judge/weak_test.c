/* Which tasks are weak: a kernel that computes nothing would be right. */
#include "judge/check/weak.h"

#include "harness.h"
#include "judge/data/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bhi_task task;
static struct bhi_court court = {.task = &task};
static struct bhi_judge_outcome outcome;
static struct bhi_weakness weak[BHI_TASK_ARRAYS];
static size_t count;

/* Makes the trials of a task from X to Z, with two seeds. Z is an output, or |role| says what. */
static void make_role(const char *sizes, const char *x, const char *role, const char *z) {
    char text[1024];
    struct bhi_complaint complaint;
    const uint64_t hidden = 9;
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
    snprintf(text, sizeof text,
             "{`sizes`: %s, `in`: {`X`: {`dtype`: `f32`, `shape`: [`n`], `fill`: %s}},"
             " `%s`: {`Z`: {`dtype`: `f32`, `shape`: [`n`]%s}}, `groups`: [1],"
             " `reference`: {`kernel`: `x.comp`}}",
             sizes, x, role, z);
    if (!bhi_task_parse("t.json", "", bht_quoted(text), &task, &complaint) ||
        !bhi_trials_make(&task, &hidden, 1, &court.trials, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

static void make(const char *sizes, const char *x, const char *z) {
    make_role(sizes, x, "out", z);
}

/* The reference's part: Z[i] of a trial. */
static void expect_each(float (*of)(const struct bhi_trial *, const float *x, uint64_t i)) {
    for (size_t i = 0; i < court.trials.count; i++) {
        struct bhi_trial *trial = &court.trials.list[i];
        struct bhi_trial_array *out = &trial->arrays[1];
        float *z = malloc(out->form.bytes);
        BHT_TRUE(z);
        for (uint64_t k = 0; k < out->count; k++) {
            z[k] = of(trial, trial->arrays[0].before, k);
        }
        out->expected = z;
    }
    BHT_TRUE(bhi_weaknesses_find(&court, weak, &count, &outcome));
}

static float twice(const struct bhi_trial *trial, const float *x, uint64_t i) {
    (void)trial;
    return 2 * x[i];
}

static float copied(const struct bhi_trial *trial, const float *x, uint64_t i) {
    (void)trial;
    return x[i];
}

static float share(const struct bhi_trial *trial, const float *x, uint64_t i) {
    static float sum;
    sum = i ? sum : 0;
    for (uint64_t k = 0; k < trial->arrays[0].count && !i; k++) {
        sum += x[k];
    }
    return x[i] / sum;
}

static float ramp(const struct bhi_trial *trial, const float *x, uint64_t i) {
    (void)trial;
    (void)x;
    return (float)i;
}

static float nothing(const struct bhi_trial *trial, const float *x, uint64_t i) {
    (void)trial;
    (void)x;
    (void)i;
    return 0;
}

static void expect_one(const char *text) {
    char got[BHI_WEAKNESS_TEXT];
    BHT_EQ(count, 1);
    BHT_STR_EQ(bhi_weakness_text(&task, &weak[0], got), text);
}

TEST(results_that_vary_are_strong) {
    make("[{`n`: 5}, {`n`: 9000}]", "`normal`", ", `abs`: 1e-6, `rel`: 1e-5");
    expect_each(twice);
    BHT_EQ(count, 0);
}

TEST(zeros_pass_where_the_tolerance_exceeds_the_results) {
    make("[{`n`: 3}, {`n`: 9000}, {`n`: 8000}]", "`uniform`", ", `abs`: 1e-2");
    expect_each(share);
    expect_one("Z: zeros pass (n=9000)");
    make("[{`n`: 9000}]", "`uniform`", ", `abs`: 1e-2");
    expect_each(share);
    expect_one("Z: zeros pass (n=9000)");
    make("[{`n`: 9000}, {`n`: 9001}]", "`uniform`", ", `abs`: 1e-2");
    expect_each(share);
    expect_one("Z: zeros pass (at each size)");
}

/* The first 4,096 elements are compared before the others. */
TEST(zeros_that_are_wrong_in_the_last_element_fail) {
    make("[{`n`: 9000}]", "`uniform`", ", `abs`: 1e-2");
    expect_each(share);
    ((float *)court.trials.list[1].arrays[1].expected)[8999] = 1;
    BHT_TRUE(bhi_weaknesses_find(&court, weak, &count, &outcome));
    BHT_EQ(count, 0);
}

TEST(a_constant_passes_where_the_results_hardly_differ) {
    make("[{`n`: 50}]", "{`uniform`: [10, 10.5]}", ", `abs`: 0.6");
    expect_each(twice);
    expect_one("Z: one constant passes (n=50)");
    make("[{`n`: 50}]", "{`uniform`: [10, 10.5]}", ", `abs`: 0.4");
    expect_each(twice);
    BHT_EQ(count, 0);
}

TEST(a_copy_of_an_input_passes_where_it_is_near) {
    make("[{`n`: 50}]", "`normal`", ", `rel`: 1");
    expect_each(twice);
    expect_one("Z: zeros pass (n=50)");
    make("[{`n`: 50}]", "`normal`", ", `rel`: 0.6");
    expect_each(twice);
    expect_one("Z: a copy of X passes (n=50)");
}

TEST(a_kernel_that_is_to_copy_may) {
    make("[{`n`: 50}]", "`normal`", "");
    expect_each(copied);
    BHT_EQ(count, 0);
}

TEST(results_of_another_seed_pass_where_no_input_counts) {
    make("[{`n`: 5}, {`n`: 50}]", "`normal`", "");
    expect_each(ramp);
    expect_one("Z: the result of another seed passes (at each size)");
}

/* A softmax of one element is 1. */
TEST(a_size_with_one_result_is_no_weakness) {
    make("[{`n`: 1}, {`n`: 50}]", "{`uniform`: [1, 2]}", ", `rel`: 1e-3");
    expect_each(share);
    BHT_EQ(count, 0);
}

TEST(zeros_that_are_right_at_each_size_are_a_weakness) {
    make("[{`n`: 5}, {`n`: 50}]", "`normal`", "");
    expect_each(nothing);
    expect_one("Z: zeros pass (at each size)");
}

/* One that leaves what is to be written as it was has done nothing. */
TEST(what_is_right_before_the_kernel_runs_is_a_weakness) {
    make_role("[{`n`: 5}, {`n`: 50}]", "`normal`", "inout", ", `fill`: `normal`");
    for (size_t i = 0; i < court.trials.count; i++) {
        struct bhi_trial_array *out = &court.trials.list[i].arrays[1];
        out->expected = malloc(out->form.bytes);
        BHT_TRUE(out->expected);
        memcpy(out->expected, out->before, out->form.bytes);
    }
    BHT_TRUE(bhi_weaknesses_find(&court, weak, &count, &outcome));
    expect_one("Z: a copy of Z passes (at each size)");
}

static float large_in_fills(const struct bhi_trial *trial, const float *x, uint64_t i) {
    return trial->fill ? 100 + (float)i : x[i] / 1000;
}

/* What only fills tell apart is weak: they are few, and of one size. */
TEST(fills_do_not_hide_a_weakness) {
    make("[{`n`: 50}]", "`uniform`", ", `abs`: 1e-2");
    expect_each(large_in_fills);
    expect_one("Z: zeros pass (n=50)");
}

static float hardly(const struct bhi_trial *trial, const float *x, uint64_t i) {
    return trial->fill ? (i % 2 ? 1e6f : -1e7f) : 20 + x[i] / 10;
}

TEST(fills_do_not_move_the_constant) {
    make("[{`n`: 50}]", "`uniform`", ", `abs`: 0.07");
    expect_each(hardly);
    expect_one("Z: one constant passes (n=50)");
}

/* There is no other seed whose result could be stored. */
TEST(one_seed_alone_says_nothing_of_another) {
    make("[{`n`: 50}]", "`normal`", "");
    for (size_t i = court.trials.count; i-- > 1;) {
        bhi_trials_drop(&task, &court.trials, i);
    }
    expect_each(ramp);
    BHT_EQ(count, 0);
}

TEST(a_task_without_chance_is_said_to_be_one_elsewhere) {
    make("[{`n`: 5}]", "{`uniform`: [2, 2]}", "");
    expect_each(twice);
    BHT_EQ(count, 0);
}

/* In any order a copy of what is to be sorted is right. Of a norm all elements count. */
TEST(outputs_that_are_compared_as_a_whole) {
    make("[{`n`: 5000}]", "`normal`", ", `compare`: `unordered`");
    for (size_t i = 0; i < court.trials.count; i++) {
        struct bhi_trial_array *const arrays = court.trials.list[i].arrays;
        arrays[1].expected = malloc(arrays[1].form.bytes);
        BHT_TRUE(arrays[1].expected);
        memcpy(arrays[1].expected, arrays[0].before, arrays[0].form.bytes);
        bhi_sort_multiset(BH_DTYPE_F32, arrays[1].count, arrays[1].expected);
    }
    BHT_TRUE(bhi_weaknesses_find(&court, weak, &count, &outcome));
    BHT_EQ(count, 1);
    BHT_EQ(weak[0].trick, BHI_TRICK_INPUT);
    make("[{`n`: 5000}]", "`normal`", ", `compare`: `norm`, `rel`: 0.9");
    expect_each(twice);
    BHT_EQ(count, 1);
    BHT_EQ(weak[0].trick, BHI_TRICK_INPUT);
    make("[{`n`: 5000}]", "`normal`", ", `compare`: `check`");
    expect_each(twice);
    BHT_EQ(count, 0);
}
