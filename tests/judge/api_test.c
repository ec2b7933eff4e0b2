/* The C API of the judge, libbulkhead-judge, with real workers. */
#include "harness.h"

#include <bulkhead/judge.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL(body)                                                                               \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"                             \
    "layout(set = 0, binding = 1) buffer Y { float y[]; };\n"                                      \
    "void main() { uint i = gl_GlobalInvocationID.x;\n" body " }\n"

static const char right[] = KERNEL("if (i < x.length()) y[i] = x[i] * x[i];");
static const char wrong[] = KERNEL("if (i < x.length()) y[i] = i == 70 ? 5 : x[i] * x[i];");
/* A driver that ends each loop after 65,535 iterations needs many groups for it not to end. */
static const char endless[] =
    KERNEL("while (y[0] != 7.0) for (uint k = 0; k < 60000u && y[0] != 7.0; k++)\n"
           "  y[1] = fract(sin(y[1]) * 43758.5) + x[0];");

static char text[2048];
static bh_detail why;
static bh_judge *judge; /* the last one that was made; destroyed after the test */

/* A task of y = x * x. The second size has two dimensions. */
static const char *task_with(const char *fill, const char *reference, const char *groups) {
    snprintf(text, sizeof text,
             "{\"name\": \"square\", \"sizes\": [{\"n\": 50}], \"check_sizes\": [{\"n\": 100}],\n"
             "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [2, \"n\"], \"fill\": %s}},\n"
             "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [2, \"n\"], \"ulp\": 1}},\n"
             "\"groups\": [%s],\n"
             "\"reference\": %s,\n"
             "\"limits\": {\"deadline\": \"%us\"}}",
             fill, groups, reference, 30 * bht_slowness());
    return text;
}

static const char *task(void) {
    return task_with("{\"uniform\": [1, 2]}", "{\"eval\": \"Y = X*X\"}",
                     "\"ceildiv(2*n, local_x)\"");
}

static void end_judge(void) {
    bh_judge_destroy(judge);
    judge = NULL;
}

static bh_status create(bh_judge_options options) {
    end_judge();
    options.struct_size = sizeof options;
    return bh_judge_create(&options, &judge, &why);
}

static void make_with(bh_judge_options options) {
    if (create(options) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static void make(const char *task_text) {
    static const uint64_t seeds[] = {42};
    make_with((bh_judge_options){.task_text = task_text, .seeds = seeds, .seed_count = 1});
}

static bh_judgement judge_code(const char *name, const void *code, size_t size) {
    const bh_judge_candidate candidate = {
        .struct_size = sizeof candidate, .name = name, .code = code, .size = size};
    bh_judgement judgement = {.struct_size = sizeof judgement};
    if (bh_judge_run(judge, &candidate, &judgement, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    return judgement;
}

static bh_status run_right(bh_judgement *out) {
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = right};
    return bh_judge_run(judge, &candidate, out, &why);
}

static void expect_fails(const bh_judgement *judgement, bh_status status, const char *message) {
    BHT_STR_EQ(bh_judge_verdict_name(judgement->verdict, judgement->status),
               bh_status_name(status));
    BHT_EQ(judgement->verdict, BH_JUDGE_FAILED);
    BHT_STR_HAS(judgement->message, message);
}

/* -- judgements ---------------------------------------------------------------------------------
 */

TEST(kernels_in_memory_are_judged_one_after_the_other) {
    make(task());
    bh_judgement got = judge_code("sources/right.comp", right, 0);
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    BHT_STR_EQ(bh_judge_verdict_name(got.verdict, got.status), "CORRECT");
    BHT_EQ(got.status, BH_OK);
    BHT_STR_EQ(got.name, "right");
    BHT_STR_EQ(got.message, "");
    BHT_TRUE(got.deterministic && !got.located);
    BHT_EQ(got.runs, 11); /* two sizes, two seeds, the first of each size twice; five fills */

    got = judge_code(NULL, wrong, strlen(wrong));
    BHT_EQ(got.verdict, BH_JUDGE_WRONG);
    BHT_EQ(got.status, BH_NOT_CORRECT);
    BHT_STR_EQ(got.name, "candidate");
    BHT_STR_EQ(got.output, "Y");
    BHT_EQ(got.rank, 2);
    BHT_EQ(got.index[0], 1);
    BHT_EQ(got.index[1], 20);
    BHT_EQ(got.wrong, 1);
    BHT_EQ(got.elements, 100);
    BHT_STR_EQ(got.got, "5");
    BHT_TRUE(strtod(got.expected, NULL) >= 1 && strtod(got.expected, NULL) <= 4);
    BHT_TRUE(got.ulp > 1 && got.ulp != UINT64_MAX);
    BHT_TRUE(got.located && !got.hidden && !got.deterministic);
    BHT_EQ(got.seed, 1);
    BHT_EQ(got.size_index, 0);
    BHT_STR_EQ(got.size_text, "n=50");
    BHT_STR_HAS(got.message, "Y[1,20] is 5, expected ");

    got = judge_code(NULL, KERNEL("if (i < x.length()) y[i] = z[i];"), 0);
    expect_fails(&got, BH_COMPILE_FAILED, "candidate:6: error");
    BHT_EQ(got.runs, 0);
    got = judge_code("module.spv", right, 0); /* the ending says the language */
    expect_fails(&got, BH_INVALID_KERNEL, "");
}

TEST(modules_files_and_hlsl_are_judged) {
    static char code[1 << 16];
    FILE *file = fopen(BHT_SHADERS "/square.spv", "rb");
    BHT_TRUE(file);
    const size_t size = fread(code, 1, sizeof code, file);
    fclose(file);
    make(task());
    bh_judgement got = judge_code("module", code, size);
    BHT_STR_EQ(got.message, "");
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    got = judge_code("cut", code, size - 4);
    expect_fails(&got, BH_INVALID_KERNEL, "");

    bh_judge_candidate candidate = {.struct_size = sizeof candidate,
                                    .path = BHT_SHADERS "/square.spv"};
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_OK);
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    BHT_STR_EQ(got.name, "square");
    candidate.path = "/nowhere/to/be.found";
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_OK);
    expect_fails(&got, BH_LOAD_FAILED, "/nowhere/to/be.found: No such file or directory");
    candidate.path = "-"; /* never standard input */
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_OK);
    expect_fails(&got, BH_LOAD_FAILED, ": No such file or directory");

    candidate = (bh_judge_candidate){
        .struct_size = sizeof(bh_judge_candidate),
        .language = BH_LANGUAGE_HLSL,
        .code = "StructuredBuffer<float> X : register(t0); RWStructuredBuffer<float> Y :"
                " register(u1);\n[numthreads(64, 1, 1)] void main(uint3 id :"
                " SV_DispatchThreadID) {\n uint n, s; X.GetDimensions(n, s);\n"
                " if (id.x < n) Y[id.x] = X[id.x] * X[id.x]; }\n",
    };
    BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_OK);
    BHT_STR_EQ(got.message, "");
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
}

/* The program may have set a locale whose numbers have a comma. */
TEST(numbers_have_a_point) {
    static const char code[] =
        "#version 450\nlayout(local_size_x = 64) in;\n"
        "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"
        "layout(set = 0, binding = 1) buffer Y { float y[]; };\n"
        "layout(push_constant) uniform Push { float a; };\n"
        "void main() { uint i = gl_LocalInvocationID.x; if (i < 4) y[i] = a * x[i] + 1; }\n";
    snprintf(text, sizeof text,
             "{\"sizes\": [{}], \"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [4], \"fill\": "
             "{\"integers\": [1, 1]}}}, \"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [4]}}, "
             "\"push\": {\"a\": 2.5}, \"groups\": [1], \"reference\": {\"eval\": \"Y = a * X\"}, "
             "\"limits\": {\"deadline\": \"%u.5s\"}}",
             30 * bht_slowness());
    BHT_NE(setlocale(LC_ALL, "de_DE.UTF-8"), NULL); /* built beside the test: LOCPATH */
    make(text);
    const bh_judgement got = judge_code(NULL, code, 0);
    BHT_EQ(got.verdict, BH_JUDGE_WRONG);
    BHT_STR_EQ(got.got, "3.5");
    BHT_STR_EQ(got.expected, "2.5");
    end_judge();
    BHT_STR_EQ(localeconv()->decimal_point, ","); /* and the program's are as they were */
}

TEST(other_bindings_are_named) {
    make(task());
    char other[sizeof right];
    memcpy(other, right, sizeof other);
    memcpy(strstr(other, "buffer Y") + 7, "Z", 1);
    const bh_judgement got = judge_code(NULL, other, 0);
    expect_fails(&got, BH_BINDING_MISMATCH, "out Y: the kernel has no binding 'Y'");
}

/* One with a deadline of a second, for |endless|. */
static const char *short_task(void) {
    static char out[2048];
    const char *whole = task_with("\"normal\"", "{\"eval\": \"Y = X*X\"}", "65535");
    char *deadline = strstr(text, "\"deadline\": ");
    snprintf(out, sizeof out, "%.*s\"deadline\": \"%us\"}}", (int)(deadline - whole), whole,
             bht_slowness());
    return out;
}

TEST(a_hang_ends_and_the_next_is_judged) {
    make(short_task());
    bh_judgement got = judge_code("endless", endless, 0);
    expect_fails(&got, BH_DEADLINE, "");
    BHT_EQ(got.blame, BH_BLAME_CERTAIN);
    BHT_TRUE(got.located);
    make(task());
    got = judge_code(NULL, right, 0);
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
}

/* A worker that several had does not decide about anybody. */
TEST(who_fails_on_a_shared_worker_is_judged_on_its_own) {
    make_with((bh_judge_options){.task_text = short_task(), .share_workers = true});
    bh_judgement got = judge_code("endless", endless, 0);
    expect_fails(&got, BH_DEADLINE, "");
    BHT_EQ(got.blame, BH_BLAME_CERTAIN);
    make_with((bh_judge_options){.task_text = task(), .share_workers = true});
    for (int i = 0; i < 3; i++) {
        const bool good = i != 1;
        got = judge_code(NULL, good ? right : wrong, 0);
        BHT_EQ(got.verdict, good ? BH_JUDGE_CORRECT : BH_JUDGE_WRONG);
    }
}

static void make_timed(bool all_processors) {
    make_with((bh_judge_options){.task_text = task(),
                                 .timed = true,
                                 .warm = true,
                                 .timed_runs = 5,
                                 .all_processors = all_processors});
}

TEST_WITH(times_are_told, 300, 0) {
    char size[8];
    make_timed(false);
    for (int i = 0; i < 2; i++) {
        const bh_judgement got = judge_code(NULL, right, 0);
        BHT_STR_EQ(got.message, "");
        BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
        BHT_EQ(got.timing_count, 1); /* the other size is only for checking */
        const bh_judge_timing *timing = &got.timings[0];
        BHT_EQ(timing->size_index, 0);
        BHT_EQ(timing->runs, 5);
        BHT_TRUE(!timing->cold && !got.flushed_bytes);
        BHT_TRUE(got.one_processor);
        BHT_TRUE(timing->median_ns > 0 && timing->reference_ns > 0);
        BHT_TRUE(timing->ratio == 0 ||
                 (timing->low <= timing->ratio && timing->ratio <= timing->high));
        BHT_EQ(timing->ratio == 0, timing->doubt != BH_JUDGE_DOUBT_NONE);
        BHT_EQ(timing->one_processor, got.one_processor);
        BHT_EQ(timing->guard_ratio, 0.0);
    }
    bh_judgement got = judge_code(NULL, wrong, 0);
    BHT_EQ(got.verdict, BH_JUDGE_WRONG);
    BHT_EQ(got.timing_count, 0);
    BHT_TRUE(!got.one_processor);
    BHT_EQ(bh_judge_size(judge, 0, size, sizeof size), 4);
    BHT_STR_EQ(size, "n=50");
    BHT_EQ(bh_judge_size(judge, 1, size, 3), 5);
    BHT_STR_EQ(size, "n=");
    BHT_EQ(bh_judge_size(judge, 2, NULL, 0), 0);
    make_timed(true);
    got = judge_code(NULL, right, 0);
    BHT_EQ(got.timing_count, 1);
    BHT_TRUE(!got.one_processor);
    BHT_STR_EQ(bh_judge_verdict_name(BH_JUDGE_SLOWER, BH_OK), "SLOWER");
    BHT_STR_EQ(bh_judge_verdict_name(BH_JUDGE_TIMING_FORGED, BH_OK), "TIMING_FORGED");
}

/* Candidates are checked first, and timed when nothing else runs. */
TEST(times_are_taken_after_all_checks) {
    const bh_judge_candidate candidates[] = {
        {.struct_size = sizeof *candidates, .name = "a.comp", .code = right, .check_only = true},
        {.struct_size = sizeof *candidates, .name = "b.comp", .code = wrong, .check_only = true}};
    make_timed(false);
    bh_judgement got[2] = {{.struct_size = sizeof *got}, {.struct_size = sizeof *got}};
    for (size_t i = 0; i < 2; i++) {
        BHT_EQ(bh_judge_run(judge, &candidates[i], &got[i], &why), BH_OK);
        BHT_TRUE(got[i].hashed && !got[i].timing_count);
    }
    BHT_NE(memcmp(got[0].content, got[1].content, sizeof got[0].content), 0);
    const bh_judgement checked = got[0];
    const uint64_t runs = got[0].runs;
    for (size_t i = 0; i < 2; i++) {
        BHT_EQ(bh_judge_time(judge, &candidates[i], &got[i], &why), BH_OK);
    }
    BHT_EQ(got[0].verdict, BH_JUDGE_CORRECT);
    BHT_EQ(got[0].timing_count, 1);
    BHT_GT(got[0].runs, runs);
    BHT_EQ(got[1].verdict, BH_JUDGE_WRONG);
    BHT_EQ(got[1].timing_count, 0);
    got[0] = checked;
    BHT_EQ(bh_judge_time(judge, &candidates[1], &got[0], &why), BH_OK); /* other code */
    expect_fails(&got[0], BH_LOAD_FAILED, "b.comp: the file has changed since it was checked");
    BHT_TRUE(!got[0].hashed);
    BHT_EQ(bh_judge_time(judge, &candidates[0], NULL, &why), BH_INVALID_ARGUMENT);
    make(task());
    BHT_EQ(bh_judge_time(judge, &candidates[0], &got[1], &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_ARGUMENT);
    BHT_EQ(got[1].verdict, BH_JUDGE_WRONG);
}

/* What is not in the kernel's source is given beside it. */
TEST(a_candidate_is_made_with_what_is_given_beside_it) {
    static const char parts[] = KERNEL("if (i < x.length()) y[i] = IT + float(STEP);") "\n";
    static const bh_source_define defines[] = {{"IT", "it(x[i])"}};
    static const bh_source_include includes[] = {
        {"it.h", "float it(float a) { return a * a; }\n", 0}};
    static const bh_specialization specs[] = {{.constant_id = 5, .size = 4, .bits = 0}};
    char code[1024];
    snprintf(code, sizeof code,
             "%.13s#include \"it.h\"\nlayout(constant_id = 5) const int STEP = 1;\n%s", parts,
             parts + 13);
    make(task());
    for (int i = 0; i < 4; i++) {
        const bh_judge_candidate candidate = {.struct_size = sizeof candidate,
                                              .code = code,
                                              .entry = "main",
                                              .defines = defines,
                                              .define_count = i != 1,
                                              .includes = includes,
                                              .include_count = i != 2,
                                              .specializations = specs,
                                              .specialization_count = i != 3};
        bh_judgement got = {.struct_size = sizeof got};
        BHT_EQ(bh_judge_run(judge, &candidate, &got, &why), BH_OK);
        BHT_STR_EQ(bh_judge_verdict_name(got.verdict, got.status), i == 0   ? "CORRECT"
                                                                   : i == 3 ? "WRONG"
                                                                            : "COMPILE_FAILED");
    }
}

/* Its files would be those of the program. */
TEST(a_plan_in_memory_has_its_sources) {
    static const char plan[] =
        "{\"kernels\": [{\"source\": \"#version 450\\nlayout(local_size_x = 64) in;\\n"
        "layout(binding = 0) readonly buffer X { float x[]; };\\n"
        "layout(binding = 1) buffer T { float t[]; };\\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < t.length()) t[i] = x[i]; }\"},\n"
        "{\"source\": \"#version 450\\nlayout(local_size_x = 64) in;\\n"
        "layout(binding = 0) readonly buffer T { float t[]; };\\n"
        "layout(binding = 1) buffer Y { float y[]; };\\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = t[i] * t[i]; }"
        "\"}],\n\"scratch\": {\"T\": {\"dtype\": \"f32\", \"shape\": [2, \"n\"]}}}";
    make(task());
    bh_judgement got = judge_code("two", plan, 0);
    BHT_STR_EQ(got.message, "");
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
    got = judge_code("file", "{\"kernel\": \"a.comp\"}", 0);
    expect_fails(&got, BH_LOAD_FAILED, "file:1: \"kernel\": a candidate in memory has no files");
    got = judge_code("bad", "{\"kernel\": 1}", 0);
    expect_fails(&got, BH_INVALID_ARGUMENT, "bad:1: \"kernel\": it must be a string");
}

/* -- bad input ----------------------------------------------------------------------------------
 */

static void expect_bad(const char *task_text, const char *said) {
    judge = NULL;
    BHT_EQ(create((bh_judge_options){.task_text = task_text}), BH_INVALID_ARGUMENT);
    BHT_TRUE(!judge);
    BHT_EQ(why.status, BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, said);
}

TEST(a_bad_task_is_refused_with_line_and_field) {
    char copy[2048];
    expect_bad("{\"sizes\": [{}]\n", "task:2: not JSON");
    expect_bad(task_with("\"gauss\"", "{\"eval\": \"Y = X*X\"}", "1"),
               "task:2: \"in\" \"X\" \"fill\": there is no generator 'gauss'");
    snprintf(copy, sizeof copy, "%s", task());
    memcpy(strstr(copy, "\"reference\""), "\"referenze\"", 11);
    expect_bad(copy, "task:5: \"referenze\": unknown key");
    expect_bad(task_with("\"normal\"", "{}", "1"), "\"reference\"");
    expect_bad(task_with("\"normal\"", "{\"eval\": \"Y = X*X\"}", "\"n - 60\""),
               "task:4: \"groups\": ");
    BHT_EQ(create((bh_judge_options){.task_path = "/nowhere/task.json"}), BH_LOAD_FAILED);
    BHT_EQ(why.sys_errno, ENOENT);
    BHT_STR_HAS(why.message, "/nowhere/task.json: No such file or directory");
    BHT_EQ(create((bh_judge_options){.task_path = "-"}), BH_LOAD_FAILED);
}

TEST(bad_options_are_named) {
    const char *const whole = task();
    const struct {
        bh_judge_options options;
        const char *said;
    } cases[] = {
        {{.device = NULL}, ".task_path is NULL"},
        {{.task_path = whole, .task_text = whole}, ".task_text excludes task_path"},
        {{.task_path = whole, .folder = "x"}, ".folder needs task_text"},
        {{.task_text = whole, .device = "any"}, ".device must name one device"},
        {{.task_text = whole, .seed_count = 1}, ".seeds is NULL"},
        {{.task_text = whole, .parallel = 65}, ".parallel is 65, over 64"},
        {{.task_text = whole, .warm = true}, ".warm needs timed"},
        {{.task_text = whole, .all_processors = true}, ".all_processors needs timed"},
        {{.task_text = whole, .slower_than = 1.5}, ".slower_than needs timed"},
        {{.task_text = whole, .timed = true, .slower_than = -1}, ".slower_than must be"},
        {{.task_text = whole, .timed = true, .timed_runs = 4}, ".timed_runs must be from 5"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char said[64];
        snprintf(said, sizeof said, "bh_judge_create: options%s", cases[i].said);
        BHT_EQ(create(cases[i].options), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, said);
    }
    const bh_judge_options good = {.struct_size = sizeof good, .task_text = whole},
                           cut = {.struct_size = sizeof cut - 1, .task_text = whole};
    BHT_EQ(bh_judge_create(&cut, &judge, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_STRUCT_SIZE);
    BHT_EQ(bh_judge_create(NULL, &judge, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_create(&good, NULL, &why), BH_INVALID_ARGUMENT);
}

TEST(bad_candidates_are_named) {
    static const bh_source_define bad_defines[] = {{"1A", NULL}, {NULL, NULL}};
    static const bh_source_include bad_includes[] = {{"a.h", NULL, 0}};
    static const bh_specialization bad_specs[] = {{1, 3, 0}, {2, 4, 0}, {2, 4, 0}};
    make(task());
    bh_judgement got = {.struct_size = sizeof got};
    struct {
        bh_judge_candidate candidate;
        const char *said;
    } cases[] = {
        {{.name = "none"}, "candidate.path is NULL"},
        {{.path = "a", .code = right}, "candidate.code excludes path"},
        {{.path = "a", .size = 1}, "candidate.size needs code"},
        {{.code = ""}, "candidate.size must be from 1 byte"},
        {{.code = right, .size = (64 << 20) + 1}, "candidate.size must be from 1 byte"},
        {{.code = right, .language = (bh_language)5}, "candidate.language 5 is not a language"},
        {{.code = right, .define_count = 1}, "candidate.defines is NULL"},
        {{.code = right, .defines = bad_defines, .define_count = 1},
         "candidate.defines '1A' is not"},
        {{.code = right, .defines = bad_defines + 1, .define_count = 1},
         "candidate.defines is NULL"},
        {{.code = right, .defines = bad_defines, .define_count = 257}, "257"},
        {{.code = right, .includes = bad_includes, .include_count = 1},
         "candidate.includes is NULL"},
        {{.code = right, .includes = bad_includes, .include_count = 1025}, "1025"},
        {{.code = right, .specializations = bad_specs, .specialization_count = 1},
         "candidate.specializations have 1, 2, 4 or 8 bytes"},
        {{.code = right, .specializations = bad_specs + 1, .specialization_count = 2},
         "candidate.specializations have distinct ids"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        got.runs = 7;
        cases[i].candidate.struct_size = sizeof cases[i].candidate;
        BHT_EQ(bh_judge_run(judge, &cases[i].candidate, &got, &why), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, cases[i].said);
        BHT_EQ(got.runs, 0);
    }
    const bh_judge_candidate candidate = {.struct_size = sizeof candidate, .code = right};
    BHT_EQ(bh_judge_run(NULL, &candidate, &got, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_run(judge, NULL, &got, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_prepare(NULL, &why), BH_INVALID_ARGUMENT);
    bh_judge_destroy(NULL);
    bh_judge_cancel(NULL);
}

TEST(a_reference_that_cannot_judge_is_said_before_any_candidate) {
    make(task_with("{\"normal\": [0, 1], \"special\": 0.5}", "{\"eval\": \"Y = X*X\"}",
                   "\"ceildiv(2*n, local_x)\""));
    bh_judgement got = {.struct_size = sizeof got};
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_REFERENCE);
    BHT_EQ(run_right(&got), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_REFERENCE);
    make(task_with("\"normal\"", "{\"kernel\": \"nowhere.comp\"}", "1"));
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message,
                "task:5: \"reference\" \"kernel\": nowhere.comp: No such file or directory");
    make(task_with("{\"file\": \"nowhere.npy\"}", "{\"eval\": \"Y = X*X\"}", "1"));
    BHT_EQ(bh_judge_prepare(judge, &why), BH_LOAD_FAILED);
    BHT_STR_HAS(why.message, "\"file\": nowhere.npy: No such file or directory");
}

TEST(seeds_can_be_known) {
    uint64_t seeds[2] = {7, 7}, other;
    size_t count;
    make(task());
    BHT_EQ(bh_judge_seeds(judge, seeds, 2, &count), BH_OK);
    BHT_EQ(count, 1);
    BHT_EQ(seeds[0], 42);
    BHT_EQ(seeds[1], 7);
    BHT_STR_EQ(bh_judge_name(judge), "square");
    BHT_TRUE(!bh_judge_fixed_inputs(judge));
    make(task_with("{\"uniform\": [2, 2]}", "{\"eval\": \"Y = X*X\"}", "1"));
    BHT_TRUE(bh_judge_fixed_inputs(judge));
    BHT_TRUE(!bh_judge_fixed_inputs(NULL));
    for (size_t i = 0; i < 2; i++) {
        make_with((bh_judge_options){.task_text = task()});
        BHT_EQ(bh_judge_seeds(judge, i ? &other : seeds, 1, &count), BH_OK);
        BHT_EQ(count, 1);
    }
    BHT_NE(seeds[0], other);
}

/* -- threads ------------------------------------------------------------------------------------
 */

struct call {
    const char *code;
    bh_status status;
    bh_judgement judgement;
    bh_detail why;
};

static void *run_call(void *argument) {
    struct call *call = argument;
    const bh_judge_candidate candidate = {
        .struct_size = sizeof candidate, .name = "endless", .code = call->code};
    call->judgement.struct_size = sizeof call->judgement;
    call->status = bh_judge_run(judge, &candidate, &call->judgement, &call->why);
    return NULL;
}

static atomic_int compiled;

static void note(bh_log_level level, const char *line, void *user) {
    if (strstr(line, "kernel endless: compiled")) {
        atomic_fetch_add(&compiled, 1);
    }
}

/* So many threads judge an endless kernel; a cancel ends them when |running| of them run. */
static void cancel_endless(uint32_t parallel, int running) {
    enum { THREADS = 3 };
    char endless_task[2048];
    pthread_t threads[THREADS];
    struct call calls[THREADS];
    snprintf(endless_task, sizeof endless_task, "%s",
             task_with("\"normal\"", "{\"eval\": \"Y = X*X\"}", "65535"));
    atomic_store(&compiled, 0);
    make_with((bh_judge_options){.task_text = endless_task, .parallel = parallel, .log = note});
    BHT_EQ(bh_judge_prepare(judge, &why), BH_OK);
    for (size_t i = 0; i < THREADS; i++) {
        calls[i] = (struct call){.code = endless};
        BHT_EQ(pthread_create(&threads[i], NULL, run_call, &calls[i]), 0);
    }
    WAIT_UNTIL(atomic_load(&compiled) == running, 20 * BHT_WAIT_SECOND_MS);
    bh_judge_cancel(judge);
    for (size_t i = 0; i < THREADS; i++) {
        BHT_EQ(pthread_join(threads[i], NULL), 0);
        BHT_EQ(calls[i].status, BH_CANCELLED);
        BHT_EQ(calls[i].why.status, BH_CANCELLED);
        BHT_EQ(calls[i].judgement.runs, 0);
    }
    BHT_EQ(atomic_load(&compiled), running);
    BHT_EQ(bh_judge_prepare(judge, &why), BH_CANCELLED);
    bh_judge_cancel(judge);
}

TEST(a_cancel_ends_calls_that_run_and_those_that_wait) {
    cancel_endless(0, 1);
}

TEST(as_many_candidates_as_the_options_say_are_checked_at_once) {
    cancel_endless(2, 2);
}

static atomic_bool hang_ended;

static void *judge_right_ones(void *unused) {
    bh_judgement got;
    while (!atomic_load(&hang_ended)) {
        got = (bh_judgement){.struct_size = sizeof got};
        BHT_EQ(run_right(&got), BH_OK);
    }
    return unused;
}

/* A neighbour may have had the processors: only what hangs alone is blamed for it. */
TEST(a_hang_beside_another_candidate_is_tried_again_alone) {
    pthread_t neighbour;
    make_with((bh_judge_options){.task_text = short_task(), .parallel = 2, .log = note});
    atomic_store(&compiled, 0);
    BHT_EQ(pthread_create(&neighbour, NULL, judge_right_ones, NULL), 0);
    struct call call = {.code = endless};
    run_call(&call);
    atomic_store(&hang_ended, true);
    BHT_EQ(pthread_join(neighbour, NULL), 0);
    expect_fails(&call.judgement, BH_DEADLINE, "");
    BHT_EQ(call.judgement.blame, BH_BLAME_CERTAIN);
    BHT_EQ(atomic_load(&compiled), 2);
}

TEST(a_cancel_before_the_first_call_holds) {
    make(task());
    bh_judgement got = {.struct_size = sizeof got};
    bh_judge_cancel(judge);
    BHT_EQ(run_right(&got), BH_CANCELLED);
}

TEST(threads_take_turns) {
    make(task());
    pthread_t threads[3];
    struct call calls[3];
    for (size_t i = 0; i < 3; i++) {
        calls[i] = (struct call){.code = i == 1 ? wrong : right};
        BHT_EQ(pthread_create(&threads[i], NULL, run_call, &calls[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        BHT_EQ(pthread_join(threads[i], NULL), 0);
        BHT_EQ(calls[i].status, BH_OK);
        BHT_EQ(calls[i].judgement.verdict, i == 1 ? BH_JUDGE_WRONG : BH_JUDGE_CORRECT);
    }
}

TEST(a_forked_child_is_refused) {
    make(task());
    bh_judgement got = {.struct_size = sizeof got};
    BHT_EQ(bh_judge_prepare(judge, &why), BH_OK);
    const pid_t child = fork();
    if (child == 0) {
        const bool good = run_right(&got) == BH_FORKED;
        bh_judge_cancel(judge);
        end_judge();
        _exit(good ? 0 : 1);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    got = judge_code(NULL, right, 0);
    BHT_EQ(got.verdict, BH_JUDGE_CORRECT);
}

int main(int argc, char **argv) {
    /* The harness counts mappings, and a locale stays mapped. */
    bht_end_with(end_judge);
    (void)(setlocale(LC_ALL, "de_DE.UTF-8") && setlocale(LC_ALL, "C"));
    return bht_main(argc, argv, NULL, 0);
}
