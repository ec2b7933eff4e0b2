/* bh_judge_repeat: the arrays of the run that ended a judging. With real workers. */
#include "harness.h"

#include <bulkhead/judge.h>
#include <stdio.h>

#define KERNEL(body)                                                                               \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { int x[]; };\n"                               \
    "layout(set = 0, binding = 1) buffer Z { int z[]; };\n"                                        \
    "layout(set = 0, binding = 2) buffer Y { int y[]; };\n"                                        \
    "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) {\n" body " } }\n"

static const char right[] = KERNEL("y[i] = x[i] * z[i]; z[i] = x[i];");
static const char wrong[] = KERNEL("y[i] = x[i] * z[i] + (i == 5 ? 7 : 0); z[i] = x[i];");

static char text[2048];
static bh_detail why;
static bh_judge *judge;         /* the last one that was made; destroyed after the test */
static bh_judge_arrays *arrays; /* the same */

static void end_judge(void) {
    bh_judge_arrays_destroy(arrays);
    bh_judge_destroy(judge);
    arrays = NULL;
    judge = NULL;
}

/* Y = X * Z and Z = X, of [2, n] elements; |keys| are more keys of the task. */
static void make_with(const char *keys, bh_judge_options options) {
    end_judge();
    snprintf(text, sizeof text,
             "{\"sizes\": [{\"n\": 50}], %s\n"
             "\"in\": {\"X\": {\"dtype\": \"i32\", \"shape\": [2, \"n\"],"
             " \"fill\": {\"integers\": [1, 30000]}}},\n"
             "\"inout\": {\"Z\": {\"dtype\": \"i32\", \"shape\": [2, \"n\"],"
             " \"fill\": {\"integers\": [1, 30000]}}},\n"
             "\"out\": {\"Y\": {\"dtype\": \"i32\", \"shape\": [2, \"n\"]}},\n"
             "\"groups\": [\"ceildiv(2*n, local_x)\"],\n"
             "\"reference\": {\"kernel\": \"right.comp\"},\n"
             "\"limits\": {\"deadline\": \"%us\"}}",
             keys, 30 * bht_slowness());
    options.struct_size = sizeof options;
    options.task_text = text;
    options.folder = bht_folder();
    bht_put(right, "%s/right.comp", options.folder);
    if (bh_judge_create(&options, &judge, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static void make(const char *keys, uint64_t seed) {
    make_with(keys, (bh_judge_options){.seeds = &seed, .seed_count = 1});
}

static bh_judge_candidate candidate(const char *code) {
    return (bh_judge_candidate){.struct_size = sizeof(bh_judge_candidate), .code = code};
}

static bh_judgement judge_code(const char *code, bh_judge_verdict verdict) {
    const bh_judge_candidate given = candidate(code);
    bh_judgement out = {.struct_size = sizeof out};
    if (bh_judge_run(judge, &given, &out, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    if (out.verdict != verdict) {
        BHT_FAIL("%s: %s", bh_judge_verdict_name(out.verdict, out.status), out.message);
    }
    return out;
}

static bh_status try_repeat(const char *code, const bh_judgement *judgement) {
    const bh_judge_candidate given = candidate(code);
    bh_judge_arrays_destroy(arrays);
    return bh_judge_repeat(judge, &given, judgement, &arrays, &why);
}

static void repeat(const char *code, const bh_judgement *judgement) {
    if (try_repeat(code, judgement) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

/* The array |name| of the part. */
static bh_judge_view array(bh_judge_part part, const char *name) {
    bh_judge_view out = {.struct_size = sizeof out};
    for (size_t i = 0; i < bh_judge_arrays_count(arrays, part); i++) {
        BHT_EQ(bh_judge_arrays_get(arrays, part, i, &out, &why), BH_OK);
        if (!strcmp(out.name, name)) {
            return out;
        }
    }
    BHT_FAIL("part %d has no %s", (int)part, name);
}

static const int32_t *elements(bh_judge_part part, const char *name, size_t count) {
    const bh_judge_view found = array(part, name);
    BHT_EQ(found.dtype, BH_DTYPE_I32);
    BHT_EQ(found.rank, 2);
    BHT_EQ(found.shape[0], 2);
    BHT_EQ(found.shape[1], count / 2);
    BHT_EQ(found.size, count * sizeof(int32_t));
    return found.data;
}

/* Checks that inputs and what is expected are those of one run: of the reference, and, if the
 * candidate is |wrong|, of it. */
static void expect_arrays(const bh_judgement *judgement, size_t count) {
    const int32_t *x = elements(BH_JUDGE_INPUTS, "X", count),
                  *z = elements(BH_JUDGE_INPUTS, "Z", count),
                  *expected = elements(BH_JUDGE_EXPECTED, "Y", count),
                  *actual = elements(BH_JUDGE_ACTUAL, "Y", count);
    char number[64];
    for (size_t i = 0; i < count; i++) {
        BHT_EQ(expected[i], x[i] * z[i]);
        BHT_EQ(actual[i], x[i] * z[i] + (i == 5 ? 7 : 0));
        BHT_EQ(elements(BH_JUDGE_EXPECTED, "Z", count)[i], x[i]);
        BHT_EQ(elements(BH_JUDGE_ACTUAL, "Z", count)[i], x[i]);
    }
    const size_t at = judgement->index[0] * count / 2 + judgement->index[1];
    BHT_EQ(at, 5);
    snprintf(number, sizeof number, "%d", expected[at]);
    BHT_STR_EQ(judgement->expected, number);
    snprintf(number, sizeof number, "%d", actual[at]);
    BHT_STR_EQ(judgement->got, number);
}

TEST(arrays_are_those_of_the_run_that_was_wrong) {
    make("", 42);
    const bh_judgement got = judge_code(wrong, BH_JUDGE_WRONG);
    repeat(wrong, &got);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_INPUTS), 2);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_EXPECTED), 2);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_ACTUAL), 2);
    expect_arrays(&got, 100);
    bh_judge_destroy(judge); /* they are the caller's */
    judge = NULL;
    expect_arrays(&got, 100);
}

/* What the judgement says decides which trial it is: another judge with the same seeds has it, too. */
TEST(seed_fill_and_hidden_size_decide_which_run_it_is) {
    static const char hidden_keys[] = "\"hidden_sizes\": {\"n\": [70, 90], \"count\": 2},";
    static const char hidden_size[] =
        KERNEL("y[i] = x[i] * z[i] + (i == 5 && x.length() != 100 ? 7 : 0); z[i] = x[i];");
    make(hidden_keys, 42);
    bh_judgement got = judge_code(hidden_size, BH_JUDGE_WRONG);
    BHT_TRUE(got.hidden && got.seed == 42);
    make(hidden_keys, 42);
    repeat(hidden_size, &got);
    BHT_GE(array(BH_JUDGE_INPUTS, "X").shape[1], 70);
    expect_arrays(&got, 2 * array(BH_JUDGE_INPUTS, "X").shape[1]);

    static const char sorted[] = KERNEL("bool sorted = true;\n"
                                        "for (int k = 1; k < x.length(); k++)\n"
                                        "    sorted = sorted && x[k - 1] <= x[k];\n"
                                        "y[i] = x[i] * z[i] + (i == 5 && sorted ? 7 : 0);\n"
                                        "z[i] = x[i];");
    make("\"fills\": [\"sorted\"],", 42);
    got = judge_code(sorted, BH_JUDGE_WRONG);
    BHT_STR_EQ(got.fill, "sorted");
    repeat(sorted, &got);
    expect_arrays(&got, 100);
    for (int i = 1; i < 100; i++) {
        const int32_t *x = elements(BH_JUDGE_INPUTS, "X", 100);
        BHT_LE(x[i - 1], x[i]);
    }
}

TEST(each_hidden_seed_has_its_own_inputs) {
    static const uint64_t seeds[] = {42, 43};
    static const bh_judge_options several = {.seeds = seeds, .seed_count = 2};
    int32_t x[100];
    make_with("", several);
    bh_judgement got = judge_code(wrong, BH_JUDGE_WRONG);
    got.verdict = BH_JUDGE_STRAY_WRITE; /* it says nothing about one element */
    got.hidden = true;
    got.seed = 43;
    repeat(wrong, &got);
    memcpy(x, elements(BH_JUDGE_INPUTS, "X", 100), sizeof x);
    got.seed = 42;
    repeat(wrong, &got);
    BHT_NE(memcmp(x, elements(BH_JUDGE_INPUTS, "X", 100), sizeof x), 0);
    make("", 43);
    got.seed = 43;
    repeat(wrong, &got);
    BHT_EQ(memcmp(x, elements(BH_JUDGE_INPUTS, "X", 100), sizeof x), 0);
}

/* It is wrong only in the run that has zeros where others have noise. */
TEST(a_kernel_that_looks_for_noise_is_seen_to_be_wrong) {
    static const char looks[] =
        KERNEL("y[i] = x[i] * z[i] + (y[i] == 0 && i == 5 ? 7 : 0); z[i] = x[i];");
    make("", 42);
    const bh_judgement got = judge_code(looks, BH_JUDGE_WRONG);
    repeat(looks, &got);
    expect_arrays(&got, 100);
}

static void expect_refused(const char *code, const bh_judgement *judgement, bh_status status,
                           const char *said) {
    BHT_EQ(try_repeat(code, judgement), status);
    BHT_TRUE(!arrays);
    BHT_STR_HAS(why.message, said);
}

TEST(what_cannot_be_repeated_is_refused) {
    static const char other[] = KERNEL("y[i] = 0;");
    bh_judge_view unused = {.struct_size = sizeof unused};
    bh_judge_candidate given = candidate(wrong);
    make("", 42);
    bh_judgement got = judge_code(right, BH_JUDGE_CORRECT);
    expect_refused(right, &got, BH_INVALID_ARGUMENT, "judgement was ended by no run");
    got = judge_code(wrong, BH_JUDGE_WRONG);
    expect_refused(other, &got, BH_LOAD_FAILED, "candidate: the code has changed since");
    got.struct_size = 1;
    expect_refused(wrong, &got, BH_INVALID_ARGUMENT, "struct_size is 1");
    got.struct_size = sizeof got;
    BHT_EQ(bh_judge_repeat(judge, &given, &got, NULL, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_repeat(judge, NULL, &got, &arrays, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_repeat(judge, &given, NULL, &arrays, &why), BH_INVALID_ARGUMENT);
    repeat(wrong, &got);
    BHT_EQ(bh_judge_arrays_get(arrays, BH_JUDGE_INPUTS, 2, &unused, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_arrays_get(arrays, (bh_judge_part)3, 0, &unused, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_arrays_get(NULL, BH_JUDGE_INPUTS, 0, &unused, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_arrays_get(arrays, BH_JUDGE_INPUTS, 0, NULL, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_arrays_count(arrays, (bh_judge_part)3), 0);
    BHT_EQ(bh_judge_arrays_count(NULL, BH_JUDGE_INPUTS), 0);

    /* Of other seeds, and of the same after a change of what the task means. */
    make("\"seeds\": [2],", 42);
    expect_refused(wrong, &got, BH_INVALID_ARGUMENT, "the judgement is of another task");
    make("", 42);
    snprintf(got.expected, sizeof got.expected, "0");
    expect_refused(wrong, &got, BH_INVALID_ARGUMENT, "the judgement is of another task");
    bh_judge_cancel(judge);
    expect_refused(wrong, &got, BH_CANCELLED, "bh_judge_repeat");
}

/* A crash is not repeated: what there is to see are its inputs. */
TEST(a_failed_candidate_has_inputs_and_no_outputs) {
    make("", 42);
    bh_judgement got = judge_code(wrong, BH_JUDGE_WRONG);
    got.verdict = BH_JUDGE_FAILED;
    got.status = BH_WORKER_SIGNAL;
    repeat(wrong, &got);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_INPUTS), 2);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_EXPECTED), 2);
    BHT_EQ(bh_judge_arrays_count(arrays, BH_JUDGE_ACTUAL), 0);
}

/* Right for the inputs of the checks alone. Those of timed runs nobody has. */
TEST_WITH(a_timed_run_is_not_repeated, 120, 0) {
    static const uint64_t seed = 1;
    char code[1024];
    make_with("\"fills\": [],",
              (bh_judge_options){
                  .seeds = &seed, .seed_count = 1, .timed = true, .warm = true, .timed_runs = 5});
    bh_judgement got = judge_code(wrong, BH_JUDGE_WRONG);
    repeat(wrong, &got);
    const int32_t *x = elements(BH_JUDGE_INPUTS, "X", 100);
    snprintf(code, sizeof code,
             KERNEL("bool known = x[0] == %d && x[1] == %d && x[2] == %d;\n"
                    "y[i] = known ? x[i] * z[i] : 0; z[i] = x[i];"),
             x[0], x[1], x[2]);
    got = judge_code(code, BH_JUDGE_WRONG);
    BHT_TRUE(got.located && got.timed);
    expect_refused(code, &got, BH_INVALID_ARGUMENT, "judgement was ended by a timed run");
}

int main(int argc, char **argv) {
    bht_end_with(end_judge);
    return bht_main(argc, argv, NULL, 0);
}
