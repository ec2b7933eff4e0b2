/* What has changed between two runs, and that each mistake in their files is named. */
#include "judge/diff/diff.h"

#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct bhi_complaint complaint;

static void parse(const char *text, struct bhi_past_run *out) {
    if (!bhi_past_run_parse("run.json", text, out, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

#define RUN(candidates) "{\"task\": \"saxpy\", \"candidates\": [" candidates "]}"
#define ONE(file, verdict, timing)                                                                 \
    "{\"file\": \"" file "\", \"verdict\": \"" verdict                                             \
    "\", \"message\": \"\", \"timing\": " timing "}"
#define TIMES(ratio, low, high) "[{\"ratio\": " ratio ", \"low\": " low ", \"high\": " high "}]"

/* clang-format off */
static const char before_text[] = RUN(
    ONE("worse", "CORRECT", "null") ","
    ONE("gone", "CORRECT", "null") ","
    ONE("better", "WRONG", "null") ","
    ONE("other", "WRONG", "null") ","
    ONE("slower", "CORRECT", TIMES("1.0", "0.9", "1.1")) ","
    ONE("faster", "CORRECT", TIMES("1.0", "0.9", "1.1")) ","
    ONE("meets", "CORRECT", TIMES("1.0", "0.9", "1.1")) ","
    ONE("untimed", "CORRECT", "null") ","
    ONE("wrong", "WRONG", "null"));
static const char after_text[] = RUN(
    ONE("new", "WRONG", "null") ","
    ONE("worse", "WRONG", "null") ","
    ONE("better", "CORRECT", "null") ","
    ONE("other", "DEADLINE", "null") ","
    ONE("slower", "CORRECT", TIMES("1.3", "1.2", "1.4")) ","
    ONE("faster", "CORRECT", TIMES("0.8", "0.7", "0.89")) ","
    ONE("meets", "CORRECT", TIMES("1.3", "1.1", "1.5")) ","
    ONE("untimed", "CORRECT", TIMES("1.3", "1.2", "1.4")) ","
    ONE("wrong", "WRONG", "null"));
static const char twice_before[] = RUN(
    ONE("a", "CORRECT", "null") ","
    ONE("a", "WRONG", "null"));
static const char twice_after[] = RUN(
    ONE("a", "CORRECT", "null") ","
    ONE("a", "WRONG", "null") ","
    ONE("a", "WRONG", "null"));
/* clang-format on */

static void each_change(void) {
    struct bhi_past_run before, after;
    struct bhi_judge_diff diff;
    static const struct {
        const char *file;
        enum bhi_change change;
    } expected[] = {
        {"new", BHI_CHANGE_NEW},     {"worse", BHI_CHANGE_WORSE},   {"better", BHI_CHANGE_BETTER},
        {"other", BHI_CHANGE_OTHER}, {"slower", BHI_CHANGE_SLOWER}, {"faster", BHI_CHANGE_FASTER},
        {"meets", BHI_CHANGE_NONE},  {"untimed", BHI_CHANGE_NONE},  {"wrong", BHI_CHANGE_NONE},
        {"gone", BHI_CHANGE_GONE},
    };
    parse(before_text, &before);
    parse(after_text, &after);
    BHT_TRUE(bhi_judge_diff_make(&before, &after, &diff));
    BHT_EQ(diff.count, BHT_COUNT(expected));
    for (size_t i = 0; i < diff.count; i++) {
        const struct bhi_difference_of *one = &diff.list[i];
        BHT_STR_EQ((one->after ? one->after : one->before)->file, expected[i].file);
        BHT_STR_EQ(bhi_change_name(one->change), bhi_change_name(expected[i].change));
    }
    BHT_EQ(diff.of[BHI_CHANGE_NONE], 3);
    BHT_EQ(diff.of[BHI_CHANGE_GONE], 1);
    BHT_TRUE(!diff.list[0].before);
    BHT_TRUE(!diff.list[9].after);
    bhi_judge_diff_free(&diff);
    bhi_past_run_free(&before);
    bhi_past_run_free(&after);
}

/* The second time that a file is given is compared with the second time before. */
static void a_file_given_twice(void) {
    struct bhi_past_run before, after;
    struct bhi_judge_diff diff;
    parse(twice_before, &before);
    parse(twice_after, &after);
    BHT_TRUE(bhi_judge_diff_make(&before, &after, &diff));
    BHT_EQ(diff.count, 3);
    BHT_EQ(diff.of[BHI_CHANGE_NONE], 2);
    BHT_EQ(diff.list[2].change, BHI_CHANGE_NEW);
    bhi_judge_diff_free(&diff);
    bhi_past_run_free(&before);
    bhi_past_run_free(&after);
}

/* Of a size n, with more keys. */
#define SIZED(n, ratio, low, high, more)                                                           \
    "{\"size\": {\"n\": " #n "}, \"ratio\": " ratio ", \"low\": " low ", \"high\": " high more "}"

static void diff_of(const char *before, const char *after, struct bhi_past_run runs[2],
                    struct bhi_judge_diff *out) {
    parse(before, &runs[0]);
    parse(after, &runs[1]);
    BHT_TRUE(bhi_judge_diff_make(&runs[0], &runs[1], out));
}

static void free_diff(struct bhi_past_run runs[2], struct bhi_judge_diff *diff) {
    bhi_judge_diff_free(diff);
    bhi_past_run_free(&runs[0]);
    bhi_past_run_free(&runs[1]);
}

/* Sizes count alike: a ratio is their geometric mean; one that is not known is left out. */
static void ratios_of_several_sizes(void) {
    struct bhi_past_run runs[2];
    struct bhi_judge_diff diff;
    diff_of(RUN(""),
            RUN(ONE("a", "CORRECT",
                    "[" SIZED(1, "0.5", "0.4", "0.6", "") ", " SIZED(
                        2, "2", "1.6", "2.4", "") ", " SIZED(3, "null", "null", "null", "") "]")),
            runs, &diff);
    BHT_TRUE(fabs(diff.list[0].ratio_after.ratio - 1) < 1e-9);
    BHT_TRUE(fabs(diff.list[0].ratio_after.low - 0.8) < 1e-9);
    BHT_TRUE(fabs(diff.list[0].ratio_after.high - 1.2) < 1e-9);
    BHT_TRUE(diff.list[0].ratio_before.ratio == 0);
    free_diff(runs, &diff);
}

/* A size whose ratio only one run knows says nothing about the candidate. */
static void only_sizes_of_both_are_compared(void) {
    static const char some[] = RUN(
        ONE("a", "CORRECT",
            "[" SIZED(1, "0.5", "0.4", "0.6", "") ", " SIZED(2, "null", "null", "null", "") "]"));
    static const char all[] =
        RUN(ONE("a", "CORRECT",
                "[" SIZED(1, "0.5", "0.4", "0.6", "") ", " SIZED(2, "3", "2.9", "3.1", "") "]"));
    struct bhi_past_run runs[2];
    struct bhi_judge_diff diff;
    diff_of(some, all, runs, &diff);
    BHT_EQ(diff.list[0].change, BHI_CHANGE_NONE);
    BHT_TRUE(fabs(diff.list[0].ratio_after.ratio - 0.5) < 1e-9);
    free_diff(runs, &diff);
    diff_of(all, some, runs, &diff);
    BHT_EQ(diff.list[0].change, BHI_CHANGE_NONE);
    free_diff(runs, &diff);
}

/* Times that were measured in different ways are not compared, and counted. */
static void times_measured_in_other_ways(void) {
#define TIMED(ratio, more) ONE("a", "CORRECT", "[" SIZED(1, ratio, ratio, ratio, more) "]")
    static const struct {
        const char *before, *after;
        enum bhi_condition condition;
        bool is; /* after */
    } cases[] = {
        {RUN(TIMED("1", ", \"one_processor\": true")),
         RUN(TIMED("2", ", \"one_processor\": false")), BHI_CONDITION_PROCESSORS, false},
        /* An earlier version knew all processors alone. */
        {RUN(TIMED("1", "")), RUN(TIMED("2", ", \"one_processor\": true")),
         BHI_CONDITION_PROCESSORS, true},
        {RUN(TIMED("1", ", \"cold\": true")), RUN(TIMED("2", ", \"cold\": false")),
         BHI_CONDITION_CACHES, false},
        {RUN(TIMED("1", ", \"device\": false")), RUN(TIMED("2", ", \"device\": true")),
         BHI_CONDITION_CLOCK, true},
    };
    struct bhi_past_run runs[2];
    struct bhi_judge_diff diff;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        diff_of(cases[i].before, cases[i].after, runs, &diff);
        BHT_EQ(diff.list[0].change, BHI_CHANGE_NONE);
        for (size_t k = 0; k < BHI_CONDITIONS; k++) {
            BHT_EQ(diff.unlike[k][cases[i].is], (size_t)(k == cases[i].condition));
            BHT_EQ(diff.unlike[k][!cases[i].is], 0);
        }
        BHT_EQ(diff.unlike_devices, 0);
        free_diff(runs, &diff);
    }
    diff_of("{\"task\": \"\", \"device\": \"lavapipe:0\", \"candidates\": [" TIMED("1", "") "]}",
            "{\"task\": \"\", \"device\": \"nvidia:0\", \"candidates\": [" TIMED(
                "2", ", \"cold\": true") "]}",
            runs, &diff);
    BHT_EQ(diff.list[0].change, BHI_CHANGE_NONE);
    BHT_EQ(diff.unlike_devices, 1);
    BHT_EQ(diff.unlike[BHI_CONDITION_CACHES][true], 0); /* the device says all */
    free_diff(runs, &diff);
}

static void mistakes_are_named(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "run.json:1: not JSON: '[' or '{' expected near end of file (column 0)"},
        {"[]", "run.json:1: it must be an object, as bulkhead judge --json prints it"},
        {"{\"error\": {}}", "run.json:1: \"error\": the run failed: no candidate was judged"},
        {"{\n\"task\": 3}", "run.json:2: \"task\": it must be a string"},
        {"{}", "run.json:1: there is no \"task\""},
        {"{\"task\": \"\"}", "run.json:1: there is no \"candidates\""},
        {"{\"task\": \"\",\n\"device\": 3}", "run.json:2: \"device\": it must be a string"},
        {"{\"task\": \"\",\n\"candidates\": {}}",
         "run.json:2: \"candidates\": it must be an array"},
        {RUN("\n3"), "run.json:2: \"candidates\" [0]: it must be an object"},
        {RUN("\n{}"), "run.json:2: \"candidates\" [0]: there is no \"file\""},
        {RUN(ONE("a", "CORRECT", "null") ",\n\n" ONE("b", "", "null")),
         "run.json:3: \"candidates\" [1] \"verdict\": it is empty"},
        {RUN("{\"file\": \"a\", \"verdict\": \"WRONG\",\n\"message\": null}"),
         "run.json:2: \"candidates\" [0] \"message\": it must be a string"},
        {RUN(ONE("a", "CORRECT", "\n{}")),
         "run.json:2: \"candidates\" [0] \"timing\": it must be an array, or null"},
        {RUN(ONE("a", "CORRECT", "[\n7]")),
         "run.json:2: \"candidates\" [0] \"timing\" [0]: it must be an object"},
        {RUN(ONE("a", "CORRECT", TIMES("1", "\n-1", "1"))),
         "run.json:2: \"candidates\" [0] \"timing\" [0] \"low\": it must be a number above 0, or "
         "null"},
        {RUN(ONE("a", "CORRECT", "[{\"ratio\": 1,\n\"low\": 1}]")),
         "run.json:1: \"candidates\" [0] \"timing\" [0]: there is no \"high\""},
    };
    struct bhi_past_run run;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        if (bhi_past_run_parse("run.json", cases[i].text, &run, &complaint)) {
            BHT_FAIL("not refused: %s", cases[i].why);
        }
        BHT_STR_EQ(complaint.text, cases[i].why);
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(each_change),
        BHT_TEST(a_file_given_twice),
        BHT_TEST(ratios_of_several_sizes),
        BHT_TEST(only_sizes_of_both_are_compared),
        BHT_TEST(times_measured_in_other_ways),
        BHT_TEST(mistakes_are_named),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
