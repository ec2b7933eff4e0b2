/* References that are callbacks of the program, and baselines, with real workers. */
#include "harness.h"

#include <bulkhead/judge.h>
#include <bulkhead/judge_arrays.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

/* Y = a X + W, and W = W + 1 */
#define KERNEL(body)                                                                               \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"                             \
    "layout(set = 0, binding = 1) buffer W { int w[]; };\n"                                        \
    "layout(set = 0, binding = 2) buffer Y { float y[]; };\n"                                      \
    "layout(push_constant) uniform Push { float a; uint n; bool plus; int less; };\n"              \
    "void main() { uint i = gl_GlobalInvocationID.x;\n"                                            \
    "if (i < 2 * n) { " body " w[i] = w[i] + 1; } }\n"

#define RIGHT KERNEL("y[i] = a * x[i] + float(w[i]);")
#define LESS  KERNEL("y[i] = a * x[i] + float(w[i]) - 0.375;")
#define MORE  KERNEL("y[i] = a * x[i] + float(w[i]) + 0.375;")
#define WRONG KERNEL("y[i] = i == 70 ? -1e6 : a * x[i] + float(w[i]);")

static char text[2048];
static bh_detail why;
static bh_judge *judge;
static int calls;
static const char *how = "\"abs\": 0.5"; /* Y is compared */

/* |reference|: "" or with a comma behind it. */
static const char *task_with(const char *reference, const char *fill) {
    snprintf(
        text, sizeof text,
        "{\"sizes\": [{\"n\": 50, \"m\": 2}], \"check_sizes\": [{\"n\": 100, \"m\": 2}],\n"
        "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"m\", \"n\"], \"fill\": %s}},\n"
        "\"inout\": {\"W\": {\"dtype\": \"i32\", \"shape\": [\"m\", \"n\"], \"fill\": "
        "{\"integers\": [-9, 9]}}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"m\", \"n\"], %s}},\n"
        "\"push\": {\"a\": {\"uniform\": [1, 2]}, \"n\": \"n\", \"plus\": true, \"less\": -3},\n"
        "%s \"groups\": [\"ceildiv(2*n, local_x)\"],\n"
        "\"limits\": {\"deadline\": \"%us\"}}",
        fill, how, reference, 30 * bht_slowness());
    return text;
}

static const char *task(void) {
    return task_with("", "\"normal\"");
}

static const bh_judge_number *number(const bh_judge_number *numbers, uint32_t count,
                                     const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(numbers[i].name, name)) {
            return &numbers[i];
        }
    }
    BHT_FAIL("there is no %s", name);
    return NULL;
}

static void expect_array(const bh_judge_array *array, const char *name, bh_dtype dtype,
                         uint64_t n) {
    BHT_STR_EQ(array->name, name);
    BHT_EQ(array->dtype, dtype);
    BHT_EQ(array->rank, 2);
    BHT_EQ(array->shape[0], 2);
    BHT_EQ(array->shape[1], n);
    BHT_EQ(array->count, 2 * n);
    BHT_EQ(array->bytes, 8 * n);
}

static bh_status refer(const bh_judge_case *one, bh_detail *detail, void *user) {
    const bh_judge_number *a = number(one->pushes, one->push_count, "a"),
                          *n = number(one->sizes, one->size_count, "n");
    const float *x = one->arrays[0].before;
    const int32_t *before = one->arrays[1].before;
    int32_t *after = one->arrays[1].after;
    float *y = one->arrays[2].after;
    for (uint64_t i = 0; i < one->arrays[0].count; i++) {
        BHT_TRUE(after[i] == 0 && y[i] == 0);
        y[i] = (float)a->value * x[i] + (float)before[i];
        after[i] = before[i] + 1;
    }
    BHT_TRUE(n->whole == 50 || n->whole == 100);
    (void)detail;
    *(int *)user += 1;
    return BH_OK;
}

static void end_judge(void) {
    bh_judge_destroy(judge);
    judge = NULL;
}

static bh_status create(bh_judge_options options) {
    static const uint64_t seeds[] = {42};
    end_judge();
    options.struct_size = sizeof options;
    options.seeds = seeds;
    options.seed_count = 1;
    options.reference_user = &calls;
    return bh_judge_create(&options, &judge, &why);
}

static void make(bh_judge_options options) {
    calls = 0;
    if (create(options) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static bh_judgement judge_code(const char *code) {
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = code};
    bh_judgement judgement = {.struct_size = sizeof judgement};
    if (bh_judge_run(judge, &candidate, &judgement, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    return judgement;
}

static void expect_verdict(const char *code, bh_judge_verdict verdict) {
    const bh_judgement got = judge_code(code);
    if (got.verdict != verdict) {
        BHT_FAIL("%s: %s", bh_judge_verdict_name(got.verdict, got.status), got.message);
    }
}

/* -- callbacks ---------------------------------------------------------------------------------- */

static bh_status look(const bh_judge_case *one, bh_detail *detail, void *user) {
    const bh_judge_number *n = number(one->sizes, one->size_count, "n");
    const bh_judge_number *pushes = one->pushes;
    BHT_EQ(one->struct_size, sizeof *one);
    BHT_EQ(one->array_count, 3);
    expect_array(&one->arrays[0], "X", BH_DTYPE_F32, (uint64_t)n->whole);
    expect_array(&one->arrays[1], "W", BH_DTYPE_I32, (uint64_t)n->whole);
    expect_array(&one->arrays[2], "Y", BH_DTYPE_F32, (uint64_t)n->whole);
    BHT_TRUE(one->arrays[0].before && !one->arrays[0].after);
    BHT_TRUE(one->arrays[1].before && one->arrays[1].after);
    BHT_TRUE(!one->arrays[2].before && one->arrays[2].after);
    BHT_EQ(one->push_count, 4);
    BHT_TRUE(pushes[0].value >= 1 && pushes[0].value <= 2 && pushes[0].whole == 0);
    BHT_EQ(pushes[0].value, strtod(pushes[0].text, NULL));
    BHT_TRUE(!strcmp(pushes[1].name, "n") && pushes[1].whole == n->whole);
    BHT_STR_EQ(pushes[2].text, "true");
    BHT_TRUE(pushes[2].value == 1 && pushes[2].whole == 1);
    BHT_TRUE(pushes[3].value == -3 && pushes[3].whole == -3);
    BHT_STR_EQ(number(one->sizes, one->size_count, "m")->text, "2");
    BHT_STR_HAS(one->text, n->whole == 50 ? "n=50, m=2, " : "n=100, m=2, ");
    return refer(one, detail, user);
}

TEST(a_callback_says_what_is_right) {
    make((bh_judge_options){.task_text = task(), .reference = look});
    expect_verdict(RIGHT, BH_JUDGE_CORRECT);
    BHT_EQ(calls, 9); /* two sizes with two seeds, and five fills: once each */
    expect_verdict(LESS, BH_JUDGE_CORRECT);
    expect_verdict(WRONG, BH_JUDGE_WRONG);
    expect_verdict(KERNEL("y[i] = x[i] + float(w[i]);"), BH_JUDGE_WRONG); /* not what was drawn */
    BHT_EQ(calls, 9);
}

/* A driver that starts workgroups by their ids hides which of them writes last. */
TEST(a_race_between_workgroups_is_wrong) {
    make((bh_judge_options){.task_text = task(), .reference = refer});
    expect_verdict(KERNEL("for (uint k = i + 64u; k < 2 * n; k += 64u) y[k] = 1e6;"
                          "y[i] = a * x[i] + float(w[i]);"),
                   BH_JUDGE_WRONG);
    expect_verdict(KERNEL("uint g = gl_WorkGroupID.x; if (gl_NumWorkGroups.x > g) "
                          "y[g * 64u + gl_LocalInvocationIndex] = a * x[i] + float(w[i]);"),
                   BH_JUDGE_CORRECT);
}

static struct {
    bh_status status;
    const char *message; /* NULL: none */
    const char *fails;   /* in cases whose text has it */
} failure;

static bh_status fail(const bh_judge_case *one, bh_detail *detail, void *user) {
    if (!strstr(one->text, failure.fails)) {
        return refer(one, detail, user);
    }
    if (failure.message) {
        snprintf(detail->message, sizeof detail->message, "%s", failure.message);
    }
    return failure.status;
}

TEST(a_callback_that_fails_is_an_error_of_the_preparation) {
    static const struct {
        bh_status status, expected;
        const char *message, *fails, *said;
    } cases[] = {
        {BH_TIMEOUT, BH_INVALID_ARGUMENT, "the oracle sleeps", "n=100, m=2, seed 1",
         "the reference of task cannot judge: its callback fails: the oracle sleeps (n=100, m=2, "
         "seed 1) (TIMEOUT)"},
        {BH_INVALID_ARGUMENT, BH_INVALID_ARGUMENT, NULL, "inputs: sorted",
         "its callback fails (n=100, m=2, hidden seed 42, inputs: sorted)"},
        {BH_NO_MEMORY, BH_NO_MEMORY, NULL, "n=50", "its callback fails (n=50, m=2, "},
    };
    bh_judgement got = {.struct_size = sizeof got};
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = RIGHT};
    make((bh_judge_options){.task_text = task(), .reference = fail});
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        failure.status = cases[i].status;
        failure.message = cases[i].message;
        failure.fails = cases[i].fails;
        BHT_EQ(bh_judge_prepare(judge, &why), cases[i].expected);
        BHT_STR_HAS(why.message, cases[i].said);
        if (cases[i].expected == BH_INVALID_ARGUMENT) {
            BHT_EQ(why.reason, BH_REASON_REFERENCE);
            BHT_EQ(why.cause, cases[i].status);
        }
        BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), cases[i].expected);
    }
    failure.fails = "never";
    expect_verdict(RIGHT, BH_JUDGE_CORRECT);
}

static bh_status compute_nan(const bh_judge_case *one, bh_detail *detail, void *user) {
    const bh_status status = refer(one, detail, user);
    ((float *)one->arrays[2].after)[7] = NAN;
    return status;
}

TEST(a_callback_that_computes_a_nan_cannot_judge) {
    make((bh_judge_options){.task_text = task(), .reference = compute_nan});
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "it computes a NaN: Y[0,7] (n=50, m=2, seed 1)");
}

static bh_status cancel(const bh_judge_case *one, bh_detail *detail, void *user) {
    bh_judge_cancel(judge);
    return refer(one, detail, user);
}

TEST(a_callback_may_cancel) {
    make((bh_judge_options){.task_text = task(), .reference = cancel});
    BHT_EQ(bh_judge_prepare(judge, &why), BH_CANCELLED);
}

TEST(a_task_has_one_reference) {
    BHT_EQ(create((bh_judge_options){.task_text = task()}), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_TASK);
    BHT_STR_EQ(why.message, "task: there is no \"reference\": nothing says which result is right");
    const bh_judge_options both = {
        .task_text = task_with("\"reference\": {\"kernel\": \"none.comp\"},", "\"normal\""),
        .reference = refer};
    BHT_EQ(create(both), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options.reference");
    const bh_judge_options timed = {.task_text = task(), .reference = refer, .timed = true};
    BHT_EQ(create(timed), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options.timed");
}

/* -- checks ------------------------------------------------------------------------------------- */

static atomic_int checked, checked_in_time;

static bh_status check(const bh_judge_case *one, char message[BH_JUDGE_MESSAGE], void *user) {
    const bh_judge_array *y = &one->arrays[2];
    const float *got = y->after, *expected = y->expected;
    BHT_TRUE(!one->arrays[0].after && !one->arrays[0].expected);
    BHT_EQ(memcmp(one->arrays[1].after, one->arrays[1].expected, one->arrays[1].bytes), 0);
    BHT_TRUE(user == &checked && !*message && !y->before);
    for (uint64_t i = 0; i < y->count; i++) {
        if (fabsf(got[i] - expected[i]) > 0.5f) {
            snprintf(message, BH_JUDGE_MESSAGE, "element %d\nis off", (int)i);
        }
    }
    atomic_fetch_add(strstr(one->text, "a timed run") ? &checked_in_time : &checked, 1);
    return BH_OK;
}

static bh_judge_options checked_by(bh_judge_check function) {
    how = "\"compare\": \"check\"";
    return (bh_judge_options){
        .task_text = task(), .reference = refer, .check = function, .check_user = &checked};
}

TEST(a_check_says_whether_an_output_is_right) {
    make(checked_by(check));
    bh_judgement got = judge_code(LESS);
    BHT_STR_EQ(got.message, "");
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(atomic_load(&checked), (int)got.runs);
    BHT_EQ(got.error_count, 1);
    BHT_STR_EQ(got.errors[0].output, "W");
    got = judge_code(WRONG);
    BHT_EQ(got.verdict, BH_JUDGE_WRONG);
    BHT_STR_EQ(got.message, "Y: element 70 is off (n=50, m=2, seed 1)");
    BHT_STR_EQ(got.output, "Y");
    BHT_EQ(got.wrong, got.elements);
    BHT_EQ(got.rank, 0);
    expect_verdict(KERNEL("y[i] = a * x[i] + float(w[i]); w[i] += 1;"), BH_JUDGE_WRONG); /* W is */
}

static bh_status fail_check(const bh_judge_case *one, char message[BH_JUDGE_MESSAGE], void *user) {
    (void)one, (void)user;
    snprintf(message, BH_JUDGE_MESSAGE, "no oracle today");
    return BH_WORKER_SIGNAL; /* a candidate's would be tried again */
}

TEST(a_check_that_fails_says_nothing_of_the_candidate) {
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = RIGHT};
    bh_judgement got = {.struct_size = sizeof got};
    make(checked_by(fail_check));
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_WORKER_SIGNAL);
    BHT_STR_HAS(why.message, "the check fails: no oracle today (n=50, m=2, seed 1)");
    BHT_EQ(got.runs, 0);
}

TEST(an_output_that_is_checked_needs_a_check) {
    BHT_EQ(create(checked_by(NULL)), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_TASK);
    BHT_STR_HAS(why.message, "task: output \"Y\" is compared by \"check\", which is a function");
    bh_judge_options none = checked_by(check);
    how = "\"abs\": 0.5";
    none.task_text = task();
    BHT_EQ(create(none), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options.check");
}

TEST(a_run_whose_output_has_no_order_is_repeated) {
    static const char *const comparisons[] = {"\"compare\": \"unordered\", \"abs\": 0.5",
                                              "\"compare\": \"check\""};
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = WRONG};
    for (size_t i = 0; i < BHT_COUNT(comparisons); i++) {
        bh_judge_options options = checked_by(check);
        bh_judge_arrays *arrays;
        how = comparisons[i];
        options.task_text = task();
        options.check = i ? check : NULL;
        make(options);
        const bh_judgement got = judge_code(WRONG);
        BHT_EQ(got.verdict, BH_JUDGE_WRONG);
        if (bh_judge_repeat(judge, &candidate, &got, &arrays, &why) != BH_OK) {
            BHT_FAIL("%s: %s", comparisons[i], why.message);
        }
        bh_judge_arrays_destroy(arrays);
    }
}

/* -- baselines ---------------------------------------------------------------------------------- */

static bh_judge_candidate baseline_of(const char *code) {
    return (bh_judge_candidate){
        .struct_size = sizeof(bh_judge_candidate), .name = "base", .code = code};
}

static bh_judge_options timed_with(const bh_judge_candidate *baseline) {
    return (bh_judge_options){.task_text = task(),
                              .reference = refer,
                              .timed = true,
                              .warm = true,
                              .timed_runs = 5,
                              .baseline = baseline};
}

TEST(a_baseline_must_be_correct) {
    bh_judge_candidate baseline = baseline_of(WRONG);
    make(timed_with(&baseline));
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_BASELINE);
    BHT_STR_HAS(why.message, "the baseline base is WRONG: Y[1,20] is -1000000, expected ");
    baseline = baseline_of(KERNEL("y[i] = z;"));
    make(timed_with(&baseline));
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.cause, BH_COMPILE_FAILED);
    BHT_STR_HAS(why.message, "the baseline base is COMPILE_FAILED: it does not compile: base:8: ");
    baseline.path = "a";
    BHT_EQ(create(timed_with(&baseline)), BH_INVALID_ARGUMENT);
    baseline = baseline_of(RIGHT);
    bh_judge_options options = timed_with(&baseline);
    options.timed = options.warm = false;
    BHT_EQ(create(options), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options.baseline");
}

TEST(timed_runs_are_checked) {
    const bh_judge_candidate baseline = baseline_of(MORE);
    bh_judge_options options = checked_by(check);
    options.timed = options.warm = true;
    options.timed_runs = 5;
    options.baseline = &baseline;
    make(options);
    expect_verdict(LESS, BH_JUDGE_CORRECT);
    BHT_GT(atomic_load(&checked_in_time), 0);
}

/* All are near the reference. Two are not near each other, which is of no account. */
static void expect_times(bh_judge_options options) {
    make(options);
    BHT_EQ(bh_judge_prepare(judge, &why), BH_OK);
    const int prepared = calls;
    const bh_judgement got = judge_code(LESS);
    BHT_STR_EQ(got.message, "");
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(got.timing_count, 1);
    BHT_TRUE(got.timings[0].reference_ns > 0);
    BHT_TRUE(!options.reference || calls > prepared);
}

TEST_WITH(times_are_compared_with_a_baseline_and_results_with_the_reference, 300, 0) {
    const bh_judge_candidate baseline = baseline_of(MORE);
    bh_judge_options options = timed_with(&baseline);
    expect_times(options);
    FILE *file = fopen("reference.comp", "w");
    BHT_TRUE(file && fputs(RIGHT, file) >= 0 && fclose(file) == 0);
    options.task_text = task_with("\"reference\": {\"kernel\": \"reference.comp\"},", "\"normal\"");
    options.reference = NULL;
    expect_times(options);
    remove("reference.comp");
}

static atomic_int compiled; /* workers that have compiled the candidate */

static void note(bh_log_level level, const char *line, void *user) {
    (void)level, (void)user;
    if (strstr(line, "kernel candidate: compiled")) {
        atomic_fetch_add(&compiled, 1);
    }
}

/* Two workers check it, in both orders of workgroups. While the baseline is measured alone there is no
 * third. */
static bh_status fail_beside(const bh_judge_case *one, bh_detail *detail, void *user) {
    return atomic_load(&compiled) > 2 ? BH_TIMEOUT : refer(one, detail, user);
}

TEST(a_callback_that_fails_in_a_timed_run_is_not_the_candidates_fault) {
    const bh_judge_candidate baseline = baseline_of(RIGHT),
                             candidate = {.struct_size = sizeof candidate, .code = RIGHT};
    bh_judge_options options = timed_with(&baseline);
    bh_judgement got = {.struct_size = sizeof got};
    options.reference = fail_beside;
    options.log = note;
    atomic_store(&compiled, 0);
    make(options);
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_TIMEOUT);
    BHT_STR_HAS(why.message, "its callback fails (n=50, m=2, a timed run)");
    BHT_EQ(got.runs, 0);
}

TEST(a_baseline_that_has_changed_is_no_baseline) {
    const bh_judge_candidate baseline = {.struct_size = sizeof baseline, .path = "changed.comp"},
                             candidate = {.struct_size = sizeof candidate, .code = RIGHT};
    bh_judgement got = {.struct_size = sizeof got};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen("changed.comp", "w");
        BHT_TRUE(file && fputs(i ? LESS : RIGHT, file) >= 0 && fclose(file) == 0);
        if (!i) {
            make(timed_with(&baseline));
            BHT_EQ(bh_judge_prepare(judge, &why), BH_OK);
        }
    }
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_LOAD_FAILED);
    BHT_STR_HAS(why.message, "changed.comp: ");
    remove("changed.comp");
}

int main(int argc, char **argv) {
    bht_end_with(end_judge);
    return bht_main(argc, argv, NULL, 0);
}
