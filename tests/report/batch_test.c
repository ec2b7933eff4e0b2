/* What is said of a batch: to a person and to a program. */
#include "harness.h"
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "batch/report/tally.h"
#include "batch_sample.h"
#include "documented.h"

/* -- for a person -------------------------------------------------------------------------------
 */

static char *table_of_run(struct bhi_queue *queue, const struct bhi_report_run *what) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    BHT_TRUE(bhi_report_table(stream, queue, what));
    BHT_EQ(fclose(stream), 0);
    return bht_own(text);
}

static char *table_of(struct bhi_queue *queue) {
    return table_of_run(queue, &run);
}

TEST(table_says_it_all) {
    static const char expected[] =
        "5 jobs: 1 done, 2 failed, 1 quarantined, 1 waiting\n"
        "8 attempts in 4.00 s on 2 streams (2.00 attempts a second)\n"
        "\n"
        "  JOB                       LINE  KERNEL            STATE        VERDICT        TRIES  "
        "ORIGIN\n"
        "  bad                          3  crash_shared.spv  quarantined  WORKER_SIGNAL      3  -\n"
        "    the worker was killed by SIGSEGV while it ran crash_shared\n"
        "  <script>alert(1)</scrip\xE2\x80\xA6     4  <b>??.comp        failed       LOAD_FAILED   "
        "     1  -\n"
        "    <script>alert(1)</script>\"'&??[31m?]]>\n"
        "  after                        2  -                 failed       -                  0  "
        "bad\n"
        "    never ran: it depends on bad, which is not done\n"
        "\n"
        "Not finished: --resume continues jobs.jsonl.state; --resume --retry-failed also runs what "
        "failed again\n";
    char *text = table_of(&mixed);
    BHT_STR_EQ(text, expected);
}

/* The last lines: what to do next. Bad lines are new jobs when they have been corrected. */
TEST(table_says_what_to_do_next) {
    static const char retry[] =
        "\nNext: fix what failed, then repeat the command with --resume --retry-failed\n";
    static const char resume[] = "\nNext: fix what failed, then repeat the command with --resume\n";
    static const struct bhi_report_bad bad = {
        .line = 2, .id = "b", .origin = "", .message = "unknown key \"dedline\""};
    struct bhi_job_record jobs[] = {
        {.number = 1, .id = "a", .line = 1, .state = BHI_JOB_DONE, .origin = "", .message = ""}};
    struct bhi_queue queue = {.jobs = jobs, .job_count = 1};
    struct bhi_report_run corrected = run;
    char *text = table_of(&queue);
    BHT_TRUE(!strstr(text, "Next") && !strstr(text, "--resume"));
    corrected.bad = &bad;
    corrected.bad_count = 1;
    text = table_of_run(&queue, &corrected);
    BHT_STR_HAS(text, resume);
    for (int both = 0; both < 2; both++) {
        jobs[0].state = both ? BHI_JOB_QUARANTINED : BHI_JOB_FAILED;
        text = both ? table_of_run(&queue, &corrected) : table_of(&queue);
        BHT_STR_HAS(text, retry);
        BHT_TRUE(!strstr(text, "Not finished"));
    }
    jobs[0].state = BHI_JOB_CANCELLED;
    text = table_of_run(&queue, &corrected);
    BHT_STR_HAS(text, "\nNot finished: --resume continues jobs.jsonl.state\n");
    BHT_TRUE(!strstr(text, "Next"));
}

/* Where there are several, or one is named. */
TEST(table_names_devices) {
    struct bhi_queue spread = spread_over("gpu:0", "gpu:1");
    char *text = table_of(&spread);
    BHT_STR_HAS(text, "second)\nattempts on each device: gpu:0 2, gpu:1 1\n\n");
    BHT_STR_HAS(text, "TRIES  ORIGIN  DEVICE\n");
    BHT_STR_HAS(text, "WORKER_SIGNAL      3  -       gpu:1\n    the worker was killed");
    struct bhi_queue one = spread_over("gpu:0", "gpu:0");
    text = table_of(&one);
    BHT_TRUE(!strstr(text, "DEVICE") && !strstr(text, "gpu"));
    struct bhi_report_run named = run;
    named.device = "gpu:0";
    text = table_of_run(&one, &named);
    BHT_STR_HAS(text, "attempts on each device: gpu:0 3\n");
    BHT_STR_HAS(text, "DEVICE\n");
    spread_jobs[4].text = "{\"device\": \"0\", \"id\": \"late\"}";
    text = table_of(&one);
    BHT_STR_HAS(text, "DEVICE\n");
    spread_jobs[4].text = "{\"id\": \"late\", \"kernel\": \"\\\"device\\\":.comp\"}";
    text = table_of(&one);
    BHT_TRUE(!strstr(text, "DEVICE"));
}

/* A --resume that had nothing to run has no time or rate to report. */
TEST(table_of_a_run_without_attempts) {
    struct bhi_report_run idle = run;
    idle.ran = 0;
    char *text = table_of_run(&mixed, &idle);
    BHT_STR_HAS(text, "1 waiting\n0 attempts now, 4 in all\n\n  JOB");
}

TEST(table_of_nothing) {
    struct bhi_queue empty = {.job_count = 0};
    char *text = table_of(&empty);
    BHT_STR_EQ(text, "0 jobs: 0 done, 0 failed\n"
                     "8 attempts in 4.00 s on 2 streams (2.00 attempts a second)\n");
}

TEST(table_shows_the_first_fifty) {
    enum { COUNT = 1234 };
    static struct bhi_job_record jobs[COUNT];
    static char messages[COUNT][16];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(messages[i], sizeof messages[i], "reason r%zu", i);
        jobs[i] =
            (struct bhi_job_record){.number = i + 1,
                                    .id = "x",
                                    .line = i + 1,
                                    .state = BHI_JOB_FAILED,
                                    .origin = i + 1 == COUNT ? "" : "root",
                                    .status = BH_PENDING,
                                    .message = i + 1 == COUNT ? "the root of it" : messages[i]};
    }
    struct bhi_queue queue = {.jobs = jobs, .job_count = COUNT};
    char *text = table_of(&queue);
    BHT_STR_HAS(text, "  and 1,184 more\n  --json lists all\n");
    BHT_STR_HAS(text, "the root of it"); /* before its 1,233 consequences */
}

/* A mistake that was made sixty times must not hide another. */
TEST(table_folds_what_says_the_same) {
    enum { COUNT = 61 };
    struct bhi_job_record jobs[COUNT];
    char ids[COUNT][8];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(ids[i], sizeof ids[i], "j%zu", i);
        jobs[i] = (struct bhi_job_record){.number = i + 1,
                                          .id = ids[i],
                                          .line = i + 1,
                                          .state = BHI_JOB_FAILED,
                                          .origin = "",
                                          .status = BH_BINDING_MISMATCH,
                                          .message = i + 1 == COUNT ? "another" : "the same"};
    }
    struct bhi_queue queue = {.jobs = jobs, .job_count = COUNT};
    char *text = table_of(&queue);
    size_t same = 0;
    for (const char *at = text; (at = strstr(at, "the same")); at++) {
        same++;
    }
    BHT_EQ(same, 5);
    BHT_STR_HAS(text, "another\n  and 55 more like j0\n  --json lists all\n");
}

/* Numbers that are words, such as the worker's pid, make no other failure; names with digits do. */
TEST(table_folds_what_differs_by_numbers) {
    enum { COUNT = 24 };
    static const struct {
        const char *before, *after; /* of the number */
        bool folds;
    } cases[] = {
        {"its worker (pid ", ") died", true}, {"it took ", ".25 ms", true},
        {"it wrote to 0x7f", "", true},       {"", "", true},
        {"a.comp:", ": it is wrong", true},   {"job a", " is not done", false},
        {"it is ", "x as slow", false},       {"in-", ".npy: it is empty", false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_job_record jobs[COUNT];
        char messages[COUNT][64];
        for (size_t k = 0; k < COUNT; k++) {
            snprintf(messages[k], sizeof messages[k], "%s%zu%s", cases[i].before, 1017 + 13 * k,
                     cases[i].after);
            jobs[k] = (struct bhi_job_record){.number = k + 1,
                                              .id = "x",
                                              .line = k + 1,
                                              .state = BHI_JOB_FAILED,
                                              .origin = "",
                                              .status = BH_DEADLINE,
                                              .message = messages[k]};
        }
        struct bhi_queue queue = {.jobs = jobs, .job_count = COUNT};
        char *text = table_of(&queue);
        if (!!strstr(text, "\n  and 19 more like x\n") != cases[i].folds) {
            BHT_FAIL("%s: %s", cases[i].before, text);
        }
    }
}

TEST(unreadable_is_said) {
    struct bhi_queue queue = mixed;
    queue.unreadable = true;
    FILE *null = fopen("/dev/null", "w");
    BHT_NE(null, NULL);
    BHT_TRUE(!bhi_report_table(null, &queue, &run));
    fclose(null);
    BHT_TRUE(!bhi_report_json(&queue, &run));
}

/* -- for a program ------------------------------------------------------------------------------
 */

static json_t *json_of_run(struct bhi_queue *queue, const struct bhi_report_run *what) {
    static char text[65536];
    FILE *file = tmpfile();
    BHT_NE(file, NULL);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    BHT_TRUE(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    bool good = bhi_report_json(queue, what);
    fflush(stdout);
    BHT_GE(dup2(kept, STDOUT_FILENO), 0);
    close(kept);
    BHT_TRUE(good);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return own_json(text);
}

static json_t *json_of(struct bhi_queue *queue) {
    return json_of_run(queue, &run);
}

TEST(json_says_it_all) {
    json_t *object = json_of(&mixed);
    assert_json(object,
                "{`batch`: `0123456789abcdef`, `jobs`: `jobs.jsonl`, `state`: `jobs.jsonl.state`,"
                "`device`: null, `streams`: 2, `exit_status`: 1, `total`: 5, `done`: 1,"
                "`failed`: 2, `quarantined`: 1, `cancelled`: 0, `waiting`: 1, `submitted`: 0,"
                "`running`: 0, `attempts`: 4, `refused`: 1, `guilty`: 2, `cut_off`: 1, `ran`: 8,"
                "`rate`: 2.0, `elapsed_ms`: 4000.0,"
                "`verdicts`: {`READY`: 1, `WORKER_SIGNAL`: 2, `LOAD_FAILED`: 1}}");
    BHT_EQ(json_object_size(json_object_get(object, "verdicts")), 3);
    assert_json(
        object,
        "{`failures`: [{`id`: `after`, `origin`: `bad`, `code`: null, `kernel`: null,"
        "`message`: `never ran: it depends on bad, which is not done`},"
        "{`state`: `quarantined`, `code`: `WORKER_SIGNAL`, `attempts`: 3, `guilty`: 3, `line`: 3,"
        "`origin`: null, `kernel`: `shaders/crash_shared.spv`},"
        "{`kernel`: `<b>??.comp`, `id`: `<script>alert(1)</script>\\`'&??[31m?]]>`}]}");
    documented("## A batch", object, "verdicts,devices");
}

TEST(json_names_devices) {
    struct bhi_queue spread = spread_over("gpu:0", "gpu:1");
    json_t *object = json_of(&spread);
    BHT_EQ(json_object_size(json_object_get(object, "devices")), 2);
    assert_json(object, "{`devices`: {`gpu:0`: 2, `gpu:1`: 1},"
                        "`failures`: [{`device`: null}, {`device`: `gpu:1`}, {}]}");
    struct bhi_queue one = spread_over("gpu:0", "gpu:0"); /* always */
    assert_json(json_of(&one),
                "{`devices`: {`gpu:0`: 3}, `failures`: [{}, {`device`: `gpu:0`}, {}]}");
}

static const struct bhi_report_bad bads[] = {
    {.line = 2, .id = "", .origin = "", .message = "no object"},
    {.line = 3, .id = "b", .origin = "", .message = "\"dedline\" is no key"},
    {.line = 4, .id = "c", .origin = "b", .message = "it depends on \"b\", whose line is bad"}};

TEST(bad_lines_are_failures) {
    struct bhi_tally tally;
    struct bhi_report_run with = run;
    struct bhi_queue empty = {.job_count = 0};
    with.bad = bads;
    with.bad_count = 3;
    char *text = table_of_run(&empty, &with);
    BHT_STR_HAS(text, "3 jobs: 0 done, 3 failed");
    BHT_STR_HAS(text, "line 2");
    BHT_STR_HAS(text, "\"dedline\" is no key");
    BHT_LT(strstr(text, "dedline"), strstr(text, "whose line is bad"));
    assert_json(json_of_run(&mixed, &with),
                "{`total`: 8, `failed`: 5, `failures`: [{`id`: null, `line`: 2}, {},"
                "{`id`: `c`, `origin`: `b`, `message`: `it depends on \\`b\\`, whose line is bad`},"
                "{}, {}, {}]}");
    BHT_TRUE(bhi_tally_read(&empty, &with, &tally));
    BHT_EQ(tally.counts.of[BHI_JOB_FAILED], 3);
}

TEST(json_of_nothing) {
    struct bhi_queue empty = {.job_count = 0};
    assert_json(json_of(&empty), "{`total`: 0, `failures`: []}");
}

static void at_start(void) {
    bht_default_flags(BHT_ALLOW_MAPPINGS);  /* a locale stays loaded */
    BHT_EQ(setenv("COLUMNS", "100", 1), 0); /* as for the pages */
}

BHT_AT_START(at_start())
