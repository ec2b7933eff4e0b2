/* What a judge keeps in its state folder, and the page that it writes. With real workers. */
#include "harness.h"

#include <bulkhead/judge.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define KERNEL(body)                                                                               \
    "#version 450\n"                                                                               \
    "layout(local_size_x = 64) in;\n"                                                              \
    "layout(set = 0, binding = 0) readonly buffer X { int x[]; };\n"                               \
    "layout(set = 0, binding = 1) buffer Y { int y[]; };\n"                                        \
    "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) " body " }\n"

static const char right[] = KERNEL("y[i] = x[i] + 1;");
static const char wrong[] = KERNEL("y[i] = x[i] + 2;");
static const char other[] = KERNEL("y[i] = x[i] + 3;");

static char text[1024], state[256], html[256];
static bh_detail why;
static bh_judge *judge; /* destroyed after the test */
static atomic_int compiled;

static void end_judge(void) {
    bh_judge_destroy(judge);
    judge = NULL;
}

static void note_compiled(bh_log_level level, const char *line, void *user) {
    (void)level, (void)user;
    compiled += strstr(line, ": compiled") && !strstr(line, "reference");
}

/* How many candidates the judge has compiled; it is destroyed then, so no line comes later. One that is right is
 * compiled again for the opposite order of workgroups, of which the line may be lost. */
static int compiles(void) {
    end_judge();
    return atomic_exchange(&compiled, 0);
}

static bh_judge_options options(bool resume) {
    snprintf(text, sizeof text,
             "{\"sizes\": [{\"n\": 50}], \"fills\": [],\n"
             "\"in\": {\"X\": {\"dtype\": \"i32\", \"shape\": [\"n\"],"
             " \"fill\": {\"integers\": [1, 30000]}}},\n"
             "\"out\": {\"Y\": {\"dtype\": \"i32\", \"shape\": [\"n\"]}},\n"
             "\"groups\": [1], \"reference\": {\"eval\": \"Y = X + 1\"},\n"
             "\"limits\": {\"deadline\": \"%us\"}}",
             30 * bht_slowness());
    return (bh_judge_options){.struct_size = sizeof(bh_judge_options),
                              .task_text = text,
                              .state = state,
                              .resume = resume,
                              .log = note_compiled};
}

static bh_status create(bh_judge_options given) {
    end_judge();
    return bh_judge_create(&given, &judge, &why);
}

static void make(bh_judge_options given) {
    end_judge();
    compiled = 0;
    if (create(given) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static bh_status try_run(const char *name, const char *code, bh_judgement *out) {
    const bh_judge_candidate given = {.struct_size = sizeof given, .name = name, .code = code};
    *out = (bh_judgement){.struct_size = sizeof *out};
    return bh_judge_run(judge, &given, out, &why);
}

static bh_judgement run(const char *name, const char *code) {
    bh_judgement out;
    if (try_run(name, code, &out) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    return out;
}

static void name_folders(void) {
    const char *folder = bht_folder();
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(html, sizeof html, "%s/page.html", folder);
}

BHT_AT_START(bht_around(name_folders, end_judge))

TEST(judgements_outlive_their_judge) {
    uint64_t seed, again;
    size_t count;
    make(options(false));
    const bh_judgement a = run("right", right), b = run("wrong", wrong);
    BHT_EQ(a.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(b.verdict, BH_JUDGE_WRONG);
    BHT_EQ(bh_judge_seeds(judge, &seed, 1, &count), BH_OK);
    BHT_GE(compiles(), 2);

    make(options(true));
    BHT_EQ(bh_judge_seeds(judge, &again, 1, &count), BH_OK);
    BHT_TRUE(again == seed);
    const bh_judgement c = run("right", right), d = run("wrong", wrong);
    BHT_EQ(compiles(), 0);
    BHT_TRUE(!memcmp(&a, &c, sizeof a) && !memcmp(&b, &d, sizeof b));
    make(options(true));

    /* Other code of the same name, and the same of another name, are other candidates. */
    BHT_STR_HAS(run("wrong", other).message, "Y[0] is ");
    BHT_EQ(run("new", right).verdict, BH_JUDGE_CORRECT);
    BHT_GE(compiles(), 2);
}

static void *run_some(void *argument) {
    char name[32];
    for (int i = 0; i < 8; i++) {
        bh_judgement out;
        snprintf(name, sizeof name, "%s-%d", (const char *)argument, i);
        if (try_run(name, wrong, &out) != BH_OK) {
            return argument;
        }
    }
    return NULL;
}

TEST(threads_record_beside_each_other) {
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    bh_judge_options several = options(false);
    several.parallel = 4;
    make(several);
    for (int i = 0; i < 4; i++) {
        BHT_EQ(pthread_create(&threads[i], NULL, run_some, names[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        BHT_EQ(pthread_join(threads[i], &failed), 0);
        BHT_TRUE(!failed);
    }
    make(options(true));
    for (int i = 0; i < 4; i++) {
        BHT_TRUE(!run_some(names[i]));
    }
    BHT_EQ(compiles(), 0);
}

/* What a busy machine measures is unknown, and measured again: all recorded ratios become 2. */
static void double_ratios(void) {
    static char records[1 << 16], changed[sizeof records];
    char path[300], *at = records, *next, *out = changed;
    snprintf(path, sizeof path, "%s/judge.jsonl", state);
    FILE *file = fopen(path, "r");
    BHT_TRUE(file);
    records[fread(records, 1, sizeof records - 1, file)] = '\0';
    fclose(file);
    while ((next = strstr(at, "\"ratio\":"))) {
        out += sprintf(out, "%.*s\"ratio\":2.0", (int)(next - at), at);
        at = next + strcspn(next, ",}");
    }
    strcpy(out, at);
    BHT_TRUE(file = fopen(path, "w"));
    BHT_TRUE(fputs(changed, file) >= 0 && fclose(file) == 0);
}

TEST(times_that_are_recorded_are_not_taken_again) {
    bh_judge_options timed = options(false);
    timed.timed = timed.warm = true;
    timed.timed_runs = 5;
    make(timed);
    BHT_EQ(run("right", right).timing_count, 1);
    end_judge();
    double_ratios();
    timed.resume = true;
    make(timed);
    const bh_judgement got = run("right", right);
    BHT_EQ(compiles(), 0);
    BHT_EQ(got.timing_count, 1);
    BHT_TRUE(got.timings[0].ratio == 2);
}

static void expect_refused(bh_judge_options given, bh_status status, const char *said) {
    BHT_EQ(create(given), status);
    BHT_TRUE(!judge);
    BHT_STR_HAS(why.message, said);
}

TEST(a_folder_of_another_judging_is_refused) {
    static const uint64_t seed = 1;
    expect_refused(options(true), BH_INVALID_ARGUMENT,
                   "has no judging: there is nothing to resume");
    bh_judge_options bad = options(true);
    bad.seeds = &seed;
    bad.seed_count = 1;
    expect_refused(bad, BH_INVALID_ARGUMENT, "options.resume excludes seeds");
    bad.state = NULL;
    expect_refused(bad, BH_INVALID_ARGUMENT, "options.resume needs state");
    bad = options(false);
    bad.state = "";
    expect_refused(bad, BH_INVALID_ARGUMENT, "options.state is empty");

    make(options(false));
    (void)run("right", right);
    bh_judge *first = judge, *second = NULL;
    bad = options(true); /* the folder has one judge at a time */
    BHT_EQ(bh_judge_create(&bad, &second, &why), BH_SYSTEM);
    BHT_EQ(why.reason, BH_REASON_OUTPUT);
    judge = first;
    expect_refused(options(false), BH_INVALID_ARGUMENT, "has a judging of 1 candidate: resume it");
    bad = options(true);
    *strstr(text, "+ 1") = '-';
    make(bad);
    BHT_EQ(bh_judge_prepare(judge, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "is of another task");
}

TEST(a_page_has_all_candidates) {
    static char page[1 << 20];
    const char *const names[] = {"<b>&right", NULL};
    bh_judge_options given = options(false);
    given.state = NULL;
    make(given);
    bh_judgement both[2] = {run("a.comp", right), run("b.comp", wrong)};
    BHT_EQ(bh_judge_page(judge, names, both, 2, BH_JUDGE_BY_TIME, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "judge has no html");
    given.html = html;
    make(given);
    BHT_EQ(bh_judge_page(judge, names, both, 2, BH_JUDGE_BY_TIME, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "judge is not prepared");
    BHT_EQ(bh_judge_prepare(judge, &why), BH_OK);
    BHT_EQ(bh_judge_page(judge, names, NULL, 2, BH_JUDGE_BY_TIME, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_judge_page(judge, names, both, 2, (bh_judge_order)2, &why), BH_INVALID_ARGUMENT);
    both[1].struct_size = 8;
    BHT_EQ(bh_judge_page(judge, names, both, 2, BH_JUDGE_BY_TIME, &why), BH_INVALID_ARGUMENT);
    both[1].struct_size = sizeof both[1];
    BHT_EQ(bh_judge_page(judge, names, both, 2, BH_JUDGE_BY_ERROR, &why), BH_OK);
    FILE *file = fopen(html, "r");
    BHT_TRUE(file);
    BHT_GT(fread(page, 1, sizeof page - 1, file), 0);
    fclose(file);
    BHT_STR_HAS(page, "&lt;b&gt;&amp;right");
    BHT_TRUE(!strstr(page, "<b>&right"));
    BHT_STR_HAS(page, "WRONG");
    BHT_STR_HAS(page, ">b<");
    make(given); /* a page may be replaced */
    bht_put("no page", "%s", html);
    expect_refused(given, BH_INVALID_ARGUMENT, "the file exists and is not a page");
}

int main(int argc, char **argv) {
    return bht_main(argc, argv, NULL, 0);
}
