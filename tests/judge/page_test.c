/* What is said of a judging to a browser. */
#include "harness.h"

#include <math.h>
#include <stdio.h>

#include "html.h"
#include "judge/report/report.h"

static const char text_of_task[] =
    "{\"name\": \"<b>scale</b>\", \"sizes\": [{\"n\": 65536}, {\"n\": 1024}],"
    " \"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"normal\"}},"
    " \"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},"
    " \"groups\": [\"n\"], %s \"reference\": {\"eval\": \"Y = X\"}}";

static struct bhi_task task;
static struct bhi_complaint complaint;

static void parse(const char *amounts) {
    char text[1024];
    snprintf(text, sizeof text, text_of_task, amounts);
    bhi_task_free(&task);
    if (!bhi_task_parse("t.json", "", text, &task, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

/* Times of both sizes: the candidate takes |factor| times as long as the reference. */
static void time_it(bh_judge_timing *out, double factor) {
    for (size_t i = 0; i < 2; i++) {
        const double reference = i ? 2000 : 50000;
        out[i] = (bh_judge_timing){.size_index = i,
                                   .runs = 40,
                                   .median_ns = reference * factor,
                                   .reference_ns = reference,
                                   .ratio = factor,
                                   .low = factor * 0.99,
                                   .high = factor * 1.01,
                                   .noise = 0.004,
                                   .device = true};
    }
}

#define RIGHT .verdict = BH_JUDGE_CORRECT, .runs = 9, .deterministic = true
static struct bhi_candidate candidates[] = {
    {.file.path = "slow.comp", .judgement = {RIGHT}},
    {.file.path = "<script>alert(1)</script>\"'&\xFF\x1b[31m\xE2\x80\xAE.comp",
     .judgement = {.verdict = BH_JUDGE_WRONG,
                   .runs = 1,
                   .message = "Y[7] is <img src=x onerror=alert(1)>, expected 1"}},
    {.file.path = "untimed.comp", .judgement = {.verdict = BH_JUDGE_CORRECT, .runs = 9}},
    {.file.path = "fast.comp", .judgement = {RIGHT}},
    {.file.path = "hangs.comp",
     .judgement = {.verdict = BH_JUDGE_FAILED,
                   .status = BH_DEADLINE,
                   .blame = BH_BLAME_CERTAIN,
                   .message = "the deadline passed"}},
    {.file.path = "broken.comp",
     .judgement = {.verdict = BH_JUDGE_FAILED,
                   .status = BH_COMPILE_FAILED,
                   .message = "it does not compile"}},
};
static bh_judge_timing *const slow = candidates[0].judgement.timings;
static bh_judge_timing *const fast = candidates[3].judgement.timings;
static const uint64_t hidden[] = {42};
static struct bhi_judge_report report = {.task = &task,
                                         .task_path = "t.json",
                                         .hidden_seeds = hidden,
                                         .hidden_count = 1,
                                         .candidates = candidates,
                                         .count = 6,
                                         .correct = 3,
                                         .device = "lavapipe:0",
                                         .workers = 2};

static void measure(bool timed) {
    time_it(slow, 1.5);
    time_it(fast, 0.5);
    candidates[0].judgement.timing_count = candidates[3].judgement.timing_count = timed ? 2 : 0;
}

static void write_page(void) {
    if (!bhi_judge_html(&report, "page.html", &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    html_check();
}

static void free_task(void) {
    bhi_task_free(&task);
}

static void assert_cell(int row, int column, const char *expected) {
    char expression[160];
    snprintf(expression, sizeof expression,
             "string(//h:table[h:caption=`Leaderboard`]/h:tbody/h:tr[%d]/h:td[%d])", row, column);
    html_expect(expression, expected);
}

TEST(the_fastest_is_first) {
    const char *const order[] = {"fast.comp",    "slow.comp",
                                 "untimed.comp", candidates[1].file.path,
                                 "hangs.comp",   "broken.comp"};
    const struct bhi_candidate *ranked[6];
    measure(true);
    BHT_TRUE(fabs(bhi_judge_ratio(&candidates[0]) - 1.5) < 1e-9);
    BHT_TRUE(bhi_judge_ratio(&candidates[2]) == 0);
    fast[0].ratio = 0.25; /* 0.25 and 0.5: their geometric mean */
    BHT_TRUE(fabs(bhi_judge_ratio(&candidates[3]) - sqrt(0.125)) < 1e-9);
    fast[1].ratio = 0; /* not known */
    BHT_TRUE(fabs(bhi_judge_ratio(&candidates[3]) - 0.25) < 1e-9);
    bhi_judge_rank(&report, ranked);
    for (size_t i = 0; i < 6; i++) {
        BHT_STR_EQ(ranked[i]->file.path, order[i]);
    }
}

TEST(the_most_exact_is_first_if_errors_rank) {
    const char *const order[] = {"untimed.comp", "fast.comp", "slow.comp"};
    const struct bhi_candidate *ranked[6];
    measure(true);
    candidates[0].judgement.error_count = 1;
    candidates[0].judgement.errors[0].absolute = 2;
    candidates[3].judgement.error_count = 2;
    candidates[3].judgement.errors[1].absolute = 1;
    report.by_error = true;
    bhi_judge_rank(&report, ranked);
    for (size_t i = 0; i < 3; i++) {
        BHT_STR_EQ(ranked[i]->file.path, order[i]);
    }
}

/* What a worker claims of its time is shown, and that nothing confirms it. */
TEST(a_time_that_is_not_confirmed) {
    parse("");
    measure(true);
    fast[1].ratio = 0;
    write_page();
    BHT_EQ(html_count("//h:table[h:caption=`Times`]/h:tbody/"
                      "h:tr[h:td=`not known: the times are not confirmed`]"),
           1);
}

static void expect_note(bh_judge_verdict judgement, double ratio, bh_judge_doubt doubt,
                        bool spreads, const char *expected) {
    const struct bhi_candidate candidate = {.judgement.verdict = judgement};
    const bh_judge_timing timing = {.ratio = ratio,
                                    .doubt = doubt,
                                    .device = true,
                                    .cold = true,
                                    .noise = 0.02,
                                    .noisy = true,
                                    .spreads = spreads,
                                    .drift = 0.071};
    char note[BHI_JUDGE_NOTE];
    bhi_judge_time_note(&candidate, &timing, note, sizeof note);
    BHT_STR_EQ(note, expected);
}

/* Each says what to do. Of claims that are false the verdict says all. */
TEST(notes_on_times) {
    expect_note(BH_JUDGE_CORRECT, 1.5, BH_JUDGE_DOUBT_NONE, false,
                "cold, noise 2.0 %: more runs (--repeat) or a quieter machine narrow the interval");
    expect_note(
        BH_JUDGE_CORRECT, 0, BH_JUDGE_DOUBT_CLAIMS, true,
        "cold, not confirmed: the host cannot confirm what its worker claims; time it again "
        "on a quieter machine, or in a larger size");
    expect_note(BH_JUDGE_CORRECT, 0, BH_JUDGE_DOUBT_DRIFT, false,
                "cold, not confirmed: the reference changed by 7.1 % meanwhile; time it again on a "
                "quieter machine");
    expect_note(BH_JUDGE_CORRECT, 0, BH_JUDGE_DOUBT_LOAD, false,
                "cold, not confirmed: the reference was slower than without the candidate; time it "
                "again on a quieter machine");
    expect_note(BH_JUDGE_CORRECT, 0, BH_JUDGE_DOUBT_NONE, false,
                "cold, not confirmed; time it again on a quieter machine");
    expect_note(BH_JUDGE_TIMING_FORGED, 0, BH_JUDGE_DOUBT_CLAIMS, false, "cold");
    expect_note(
        BH_JUDGE_CORRECT, 1.5, BH_JUDGE_DOUBT_NONE, true,
        "cold, noise 2.0 %: more runs (--repeat), one processor (without --all-processors) or "
        "a quieter machine narrow the interval");
}

TEST(one_processor_is_said) {
    const struct bhi_candidate candidate = {.judgement.verdict = BH_JUDGE_CORRECT};
    char note[BHI_JUDGE_NOTE];
    parse("");
    measure(true);
    fast[1].one_processor = true;
    bhi_judge_time_note(&candidate, &fast[1], note, sizeof note);
    BHT_STR_EQ(note, "warm, on one processor");
    write_page();
    BHT_EQ(html_count("//h:table[h:caption=`Times`]/h:tbody/"
                      "h:tr[h:td=`by the device, on one processor, caches warm, noise 0.4 %`]"),
           1);
    BHT_EQ(html_count("//h:table[h:caption=`Times`]/h:tbody/"
                      "h:tr[h:td=`by the device, caches warm, noise 0.4 %`]"),
           3);
}

TEST(page_says_it_all) {
    parse("\"bytes\": \"8 * n\", \"operations\": \"n\",");
    measure(true);
    write_page();
    html_expect("string(/h:html/h:head/h:title)", "Judge <b>scale</b>");
    html_expect("string(//h:li[h:span=`correct`]/h:b)", "3");
    html_expect("string(//h:li[starts-with(h:span,`of the reference`)]/h:b)", "0.5");
    html_expect("string(//h:div[h:dt=`Hidden seeds`]/h:dd)", "42");
    BHT_EQ(html_count("//h:table[h:caption=`Verdicts`]/h:tbody/h:tr"), 4);
    assert_cell(1, 1, "1");
    assert_cell(1, 2, "fast.comp");
    assert_cell(1, 3, "CORRECT");
    assert_cell(1, 4, "0.500");
    assert_cell(3, 4, "-");
    assert_cell(3, 6, "0"); /* the largest error */
    assert_cell(4, 6, "-");
    assert_cell(3, 7, "not deterministic");
    assert_cell(4, 1, "-");
    assert_cell(4, 2, "<script>alert(1)</script>\"'&??[31m?.comp");
    assert_cell(4, 3, "WRONG");
    assert_cell(4, 7, "Y[7] is <img src=x onerror=alert(1)>, expected 1");
    assert_cell(5, 3, "DEADLINE");
    assert_cell(6, 3, "COMPILE_FAILED");
    BHT_EQ(html_count("//h:table[h:caption=`Times`]/h:tbody/h:tr"), 4);
    html_expect("string(//h:table[h:caption=`Times`]/h:tbody/h:tr[2]/h:td[3])", "1 us");
    /* Time against size, from left to right although the larger size is the task's first. */
    BHT_EQ(html_count("//h:figure"), 2);
    html_expect("string((//h:figure)[1]//s:g[2]/*[@r or @d][1]/s:title)",
                "fast.comp: 1 us at 1024");
    html_expect("string((//h:figure)[1]//s:g[2]/*[@r or @d][2]/s:title)",
                "fast.comp: 25 us at 65536");
    /* 1024 operations in 1 us, an eighth of an operation for each byte. */
    html_expect("string((//h:figure)[2]//s:g[2]/*[last()]/s:title)",
                "fast.comp: 1.02 Gop/s at 0.125");
    BHT_EQ(html_count("(//h:figure)[2]//h:li[h:bdi=`the best of all`]"), 1);
}

TEST(a_rate_alone) {
    parse("\"bytes\": \"8 * n\",");
    measure(true);
    write_page();
    html_expect("string((//h:figure)[2]//s:g[2]/*[last()]/s:title)", "fast.comp: 21 GB/s at 65536");
    parse("\"operations\": 1000000,");
    write_page();
    html_expect("string((//h:figure)[2]//s:g[2]/*[last()]/s:title)",
                "fast.comp: 40 Gop/s at 65536");
    parse("");
    write_page();
    BHT_EQ(html_count("//h:figure"), 1);
}

TEST(without_times) {
    parse("");
    measure(false);
    write_page();
    BHT_EQ(html_count("//h:figure"), 0);
    assert_cell(1, 2, "slow.comp"); /* as they were given */
    assert_cell(1, 4, "9");
}

TEST(nobody_is_judged) {
    struct bhi_judge_report none = report;
    none.count = none.correct = 0;
    parse("");
    BHT_TRUE(bhi_judge_html(&none, "page.html", &complaint));
    html_check();
}

static void at_start(void) {
    bht_end_with(free_task);
    bht_around(html_enter_folder, html_leave_folder);
}

BHT_AT_START(at_start())
