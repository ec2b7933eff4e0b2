/* What is said of a batch: to a person and to a program. */
#include <stddef.h>
#include <stdint.h>

#include "harness.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    return text;
}

static char *table_of(struct bhi_queue *queue) {
    return table_of_run(queue, &run);
}

static void table_says_it_all(void) {
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
    free(text);
}

/* The last lines: what to do next. Bad lines are new jobs when they have been corrected. */
static void table_says_what_to_do_next(void) {
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
    free(text);
    corrected.bad = &bad;
    corrected.bad_count = 1;
    text = table_of_run(&queue, &corrected);
    BHT_STR_HAS(text, resume);
    free(text);
    for (int both = 0; both < 2; both++) {
        jobs[0].state = both ? BHI_JOB_QUARANTINED : BHI_JOB_FAILED;
        text = both ? table_of_run(&queue, &corrected) : table_of(&queue);
        BHT_STR_HAS(text, retry);
        BHT_TRUE(!strstr(text, "Not finished"));
        free(text);
    }
    jobs[0].state = BHI_JOB_CANCELLED;
    text = table_of_run(&queue, &corrected);
    BHT_STR_HAS(text, "\nNot finished: --resume continues jobs.jsonl.state\n");
    BHT_TRUE(!strstr(text, "Next"));
    free(text);
}

/* Where there are several, or one is named. */
static void table_names_devices(void) {
    struct bhi_queue spread = spread_over("gpu:0", "gpu:1");
    char *text = table_of(&spread);
    BHT_STR_HAS(text, "second)\nattempts on each device: gpu:0 2, gpu:1 1\n\n");
    BHT_STR_HAS(text, "TRIES  ORIGIN  DEVICE\n");
    BHT_STR_HAS(text, "WORKER_SIGNAL      3  -       gpu:1\n    the worker was killed");
    free(text);
    struct bhi_queue one = spread_over("gpu:0", "gpu:0");
    text = table_of(&one);
    BHT_TRUE(!strstr(text, "DEVICE") && !strstr(text, "gpu"));
    free(text);
    struct bhi_report_run named = run;
    named.device = "gpu:0";
    text = table_of_run(&one, &named);
    BHT_STR_HAS(text, "attempts on each device: gpu:0 3\n");
    BHT_STR_HAS(text, "DEVICE\n");
    free(text);
    spread_jobs[4].text = "{\"device\": \"0\", \"id\": \"late\"}";
    text = table_of(&one);
    BHT_STR_HAS(text, "DEVICE\n");
    free(text);
    spread_jobs[4].text = "{\"id\": \"late\", \"kernel\": \"\\\"device\\\":.comp\"}";
    text = table_of(&one);
    BHT_TRUE(!strstr(text, "DEVICE"));
    free(text);
}

/* A --resume that had nothing to run has no time or rate to report. */
static void table_of_a_run_without_attempts(void) {
    struct bhi_report_run idle = run;
    idle.ran = 0;
    char *text = table_of_run(&mixed, &idle);
    BHT_STR_HAS(text, "1 waiting\n0 attempts now, 4 in all\n\n  JOB");
    free(text);
}

static void table_of_nothing(void) {
    struct bhi_queue empty = {.job_count = 0};
    char *text = table_of(&empty);
    BHT_STR_EQ(text, "0 jobs: 0 done, 0 failed\n"
                     "8 attempts in 4.00 s on 2 streams (2.00 attempts a second)\n");
    free(text);
}

static void table_shows_the_first_fifty(void) {
    enum { COUNT = 1234 };
    struct bhi_job_record *jobs = calloc(COUNT, sizeof *jobs);
    static char messages[COUNT][16];
    BHT_NE(jobs, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(messages[i], sizeof messages[i], "reason r%zu", i);
    }
    for (size_t i = 0; i < COUNT; i++) {
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
    free(text);
    free(jobs);
}

/* A mistake that was made sixty times must not hide another. */
static void table_folds_what_says_the_same(void) {
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
    free(text);
}

/* Numbers that are words, such as the worker's pid, make no other failure; names with digits do. */
static void table_folds_what_differs_by_numbers(void) {
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
        free(text);
    }
}

static void unreadable_is_said(void) {
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
    json_error_t error;
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
    json_t *value = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    if (!value) {
        BHT_FAIL("%d:%d: %s", error.line, error.column, error.text);
    }
    fclose(file);
    return value;
}

static json_t *json_of(struct bhi_queue *queue) {
    return json_of_run(queue, &run);
}

static void json_says_it_all(void) {
    json_t *object = json_of(&mixed);
    assert_text(object, "batch", "0123456789abcdef");
    assert_text(object, "jobs", "jobs.jsonl");
    assert_text(object, "state", "jobs.jsonl.state");
    BHT_TRUE(json_is_null(json_object_get(object, "device")));
    BHT_EQ(integer(object, "streams"), 2);
    BHT_EQ(integer(object, "exit_status"), 1);
    BHT_EQ(integer(object, "total"), 5);
    BHT_EQ(integer(object, "done"), 1);
    BHT_EQ(integer(object, "failed"), 2);
    BHT_EQ(integer(object, "quarantined"), 1);
    BHT_EQ(integer(object, "cancelled"), 0);
    BHT_EQ(integer(object, "waiting"), 1);
    BHT_EQ(integer(object, "submitted"), 0);
    BHT_EQ(integer(object, "running"), 0);
    BHT_EQ(integer(object, "attempts"), 4); /* the refused is none */
    BHT_EQ(integer(object, "refused"), 1);
    BHT_EQ(integer(object, "guilty"), 2);
    BHT_EQ(integer(object, "cut_off"), 1);
    BHT_EQ(integer(object, "ran"), 8);
    BHT_TRUE(json_real_value(json_object_get(object, "rate")) == 2.0);
    BHT_TRUE(json_real_value(json_object_get(object, "elapsed_ms")) == 4000.0);
    documented("## A batch", object, "verdicts,devices");
    json_t *verdicts = json_object_get(object, "verdicts");
    BHT_EQ(json_object_size(verdicts), 3);
    BHT_EQ(integer(verdicts, "READY"), 1);
    BHT_EQ(integer(verdicts, "WORKER_SIGNAL"), 2);
    BHT_EQ(integer(verdicts, "LOAD_FAILED"), 1);

    json_t *failures = json_object_get(object, "failures");
    BHT_EQ(json_array_size(failures), 3);
    json_t *after = json_array_get(failures, 0);
    assert_text(after, "id", "after");
    assert_text(after, "origin", "bad");
    BHT_TRUE(json_is_null(json_object_get(after, "code")));
    assert_text(after, "message", "never ran: it depends on bad, which is not done");
    json_t *bad = json_array_get(failures, 1);
    assert_text(bad, "state", "quarantined");
    assert_text(bad, "code", "WORKER_SIGNAL");
    BHT_EQ(integer(bad, "attempts"), 3);
    BHT_EQ(integer(bad, "guilty"), 3);
    BHT_EQ(integer(bad, "line"), 3);
    BHT_TRUE(json_is_null(json_object_get(bad, "origin")));
    assert_text(bad, "kernel", "shaders/crash_shared.spv");
    BHT_TRUE(json_is_null(json_object_get(json_array_get(failures, 0), "kernel")));
    assert_text(json_array_get(failures, 2), "kernel", "<b>??.comp");
    assert_text(json_array_get(failures, 2), "id", "<script>alert(1)</script>\"'&??[31m?]]>");
    json_decref(object);
}

static void json_names_devices(void) {
    struct bhi_queue spread = spread_over("gpu:0", "gpu:1");
    json_t *object = json_of(&spread), *devices = json_object_get(object, "devices");
    BHT_EQ(json_object_size(devices), 2);
    BHT_EQ(integer(devices, "gpu:0"), 2);
    BHT_EQ(integer(devices, "gpu:1"), 1);
    json_t *failures = json_object_get(object, "failures");
    BHT_TRUE(json_is_null(json_object_get(json_array_get(failures, 0), "device")));
    assert_text(json_array_get(failures, 1), "device", "gpu:1");
    json_decref(object);
    struct bhi_queue one = spread_over("gpu:0", "gpu:0"); /* always */
    object = json_of(&one);
    BHT_EQ(integer(json_object_get(object, "devices"), "gpu:0"), 3);
    assert_text(json_array_get(json_object_get(object, "failures"), 1), "device", "gpu:0");
    json_decref(object);
}

static const struct bhi_report_bad bads[] = {
    {.line = 2, .id = "", .origin = "", .message = "no object"},
    {.line = 3, .id = "b", .origin = "", .message = "\"dedline\" is no key"},
    {.line = 4, .id = "c", .origin = "b", .message = "it depends on \"b\", whose line is bad"}};

static void bad_lines_are_failures(void) {
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
    free(text);
    json_t *object = json_of_run(&mixed, &with);
    BHT_EQ(integer(object, "total"), 8);
    BHT_EQ(integer(object, "failed"), 5);
    json_t *failures = json_object_get(object, "failures");
    BHT_EQ(json_array_size(failures), 6);
    BHT_TRUE(json_is_null(json_object_get(json_array_get(failures, 0), "id")));
    BHT_EQ(integer(json_array_get(failures, 0), "line"), 2);
    assert_text(json_array_get(failures, 2), "id", "c");
    assert_text(json_array_get(failures, 2), "origin", "b");
    assert_text(json_array_get(failures, 2), "message", "it depends on \"b\", whose line is bad");
    json_decref(object);
    BHT_TRUE(bhi_tally_read(&empty, &with, &tally));
    BHT_EQ(tally.counts.of[BHI_JOB_FAILED], 3);
}

static void json_of_nothing(void) {
    struct bhi_queue empty = {.job_count = 0};
    json_t *object = json_of(&empty);
    BHT_EQ(integer(object, "total"), 0);
    BHT_EQ(json_array_size(json_object_get(object, "failures")), 0);
    json_decref(object);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(table_says_it_all),
        BHT_TEST(table_says_what_to_do_next),
        BHT_TEST(table_names_devices),
        BHT_TEST(table_of_a_run_without_attempts),
        BHT_TEST(table_of_nothing),
        BHT_TEST(table_shows_the_first_fifty),
        BHT_TEST(table_folds_what_says_the_same),
        BHT_TEST(table_folds_what_differs_by_numbers),
        BHT_TEST(unreadable_is_said),
        BHT_TEST(json_says_it_all),
        BHT_TEST(json_names_devices),
        BHT_TEST(json_of_nothing),
        BHT_TEST(bad_lines_are_failures),
    };
    bht_default_flags(BHT_ALLOW_MAPPINGS);  /* a locale stays loaded */
    BHT_EQ(setenv("COLUMNS", "100", 1), 0); /* as for the pages */
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
