/* Slurm's programs: what they print, what they may be given, and a probe that does not answer, with
 * programs that stand in for them. */
#include "few_jobs.h"

#include "batch/slurm/array.h"
#include "batch/slurm/parse.h"
#include "batch/slurm/probe.h"
#include "batch/slurm/program.h"
#include "batch/slurm/sbatch_option.h"

/* -- what they print ----------------------------------------------------------------------------
 */

TEST(test_versions) {
    static const struct {
        const char *text;
        unsigned major, minor; /* 0: refused */
    } cases[] = {
        {"slurm 23.11.4\n", 23, 11},
        {"slurm-wlm 22.05.8\n", 22, 5},
        {"slurm 20.11.9-1\n", 20, 11},
        {"slurm 25.05.0-0rc1", 25, 5},
        {"", 0, 0},
        {"slurm", 0, 0},
        {"slurm ", 0, 0},
        {"slurm 23", 0, 0},
        {"slurm 23.", 0, 0},
        {"slurm x.y", 0, 0},
        {"slurm -1.05", 0, 0},
        {"slurm 99999999999999999999.05", 0, 0},
        {"torque 23.11", 0, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        unsigned major = 0, minor = 0;
        BHT_EQ(bhi_slurm_parse_version(cases[i].text, &major, &minor), cases[i].major > 0);
        BHT_EQ(major, cases[i].major);
        BHT_EQ(minor, cases[i].minor);
    }
}

TEST(test_jobs) {
    static const struct {
        const char *text;
        uint64_t job; /* 0: refused */
    } cases[] = {
        {"17\n", 17},
        {"17", 17},
        {"17;cluster\n", 17},
        {"4294967295\n", 4294967295},
        {"", 0},
        {"\n", 0},
        {"0\n", 0},
        {"-1\n", 0},
        {"+1\n", 0},
        {" 1\n", 0},
        {"1 \n", 0},
        {"17\n18\n", 0},
        {"4294967296\n", 0},
        {"1x\n", 0},
        {"Submitted batch job 17\n", 0},
        {"99999999999999999999999\n", 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t job = 0;
        const bool good = bhi_slurm_parse_job(cases[i].text, &job);
        if (good != (cases[i].job > 0) || (good && job != cases[i].job)) {
            BHT_FAIL("\"%s\": %d, %" PRIu64, cases[i].text, good, job);
        }
    }
}

TEST(test_limits) {
    static const struct {
        const char *text;
        uint64_t tasks; /* 0: it says none */
    } cases[] = {
        {"Configuration data\nMaxArraySize            = 1001\nMaxDBDMsgs = 20000\n", 1001},
        {"MaxArraySize=4", 4},
        {"MaxArraySize = 1001\nSchedulerParameters = a,max_array_tasks=100,b\n", 100},
        {"SchedulerParameters = max_array_tasks=2000\nMaxArraySize = 1001\n", 1001},
        {"MaxArraySize = 1001\nSchedulerParameters = max_array_tasks=x\n", 1001},
        {"", 0},
        {"MaxArraySize", 0},
        {"MaxArraySize = ", 0},
        {"MaxArraySize = x", 0},
        {"MaxArraySize = 0", 0},
        {"MaxArraySize = 99999999999", 0},
        {" MaxArraySize = 4\n", 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        uint64_t tasks = 0;
        BHT_EQ(bhi_slurm_parse_limit(cases[i].text, &tasks), cases[i].tasks > 0);
        if (tasks != cases[i].tasks && cases[i].tasks) {
            BHT_FAIL("%s: %" PRIu64, cases[i].text, tasks);
        }
    }
}

TEST(test_tasks) {
    struct bhi_slurm_task task;
    static const char line[] = "17|3|RUNNING|n2|bulkhead:00ff:12|None";
    BHT_TRUE(bhi_slurm_parse_task(line, strlen(line), &task));
    BHT_EQ(task.array, 17);
    BHT_EQ(task.index, 3);
    BHT_EQ(task.state, BHI_SLURM_RUNNING);
    BHT_STR_EQ(task.name, "RUNNING");
    BHT_STR_EQ(task.node, "n2");
    BHT_STR_EQ(task.reason, "None");
    BHT_EQ(task.comment_length, strlen("bulkhead:00ff:12"));
    BHT_TRUE(!memcmp(task.comment, "bulkhead:00ff:12", task.comment_length));
    /* No array; no node; a reason with bars; a state of a later version. */
    static const char single[] = "18|N/A|POWERING_ON||(null)|a|b|c";
    BHT_TRUE(bhi_slurm_parse_task(single, strlen(single), &task));
    BHT_EQ(task.index, UINT32_MAX);
    BHT_EQ(task.state, BHI_SLURM_UNKNOWN);
    BHT_STR_EQ(task.node, "");
    BHT_STR_EQ(task.reason, "a|b|c");
    static const char *const refused[] = {"",
                                          "17",
                                          "17|3|RUNNING|n2|c",
                                          "x|3|RUNNING|n2|c|r",
                                          "17||RUNNING|n2|c|r",
                                          "0|3|A|n|c|",
                                          "17|3||n|c|r",
                                          "17|-3|A|n|c|r",
                                          "17|4294967295|A|n|c|r",
                                          "17|[0-3]|PENDING||c|r",
                                          "4294967296|1|A|n|c|r"};
    for (size_t i = 0; i < BHT_COUNT(refused); i++) {
        if (bhi_slurm_parse_task(refused[i], strlen(refused[i]), &task)) {
            BHT_FAIL("accepted: %s", refused[i]);
        }
    }
}

/* Any bytes: nothing is read behind them (ASan sees it), and texts stay bounded. */
TEST(test_tasks_of_any_bytes) {
    static const char letters[] = "0123456789|||||||ANPR_/()[]- \x01\xff";
    uint64_t random = 77, good = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t size = random_below(&random, 400);
        char *line = malloc(size + 1);
        struct bhi_slurm_task task;
        for (size_t i = 0; i < size; i++) {
            line[i] = letters[random_below(&random, sizeof letters - 1)];
        }
        if (size > 12 && round % 2) {
            memcpy(line, "1|2|PENDING|", 12);
        }
        if (bhi_slurm_parse_task(line, size, &task)) {
            good++;
            BHT_LE(strlen(task.reason), sizeof task.reason - 1);
            BHT_LE((size_t)(task.comment - line) + task.comment_length, size);
        }
        (void)bhi_slurm_parse_state(line, size);
        free(line);
    }
    BHT_GE(good, 1000);
}

TEST(test_states) {
    BHT_EQ(bhi_slurm_parse_state("CANCELLED by 1000", 17), BHI_SLURM_CANCELLED);
    BHT_EQ(bhi_slurm_parse_state("NODE_FAIL", 9), BHI_SLURM_VICTIM);
    BHT_EQ(bhi_slurm_parse_state("NODE_FAILED", 11), BHI_SLURM_UNKNOWN);
    BHT_EQ(bhi_slurm_parse_state("TIMEOUT+", 7), BHI_SLURM_TIME);
    BHT_EQ(bhi_slurm_parse_state("", 0), BHI_SLURM_UNKNOWN);
}

TEST(test_errors) {
    static const struct {
        const char *message;
        enum bhi_slurm_failure failure;
    } cases[] = {
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect "
         "failure)",
         BHI_SLURM_UNREACHED},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller (receive "
         "failure)",
         BHI_SLURM_UNSURE},
        {"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
         BHI_SLURM_UNSURE},
        {"sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
         BHI_SLURM_UNSURE},
        {"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
         BHI_SLURM_UNREACHED},
        {"sbatch: error: invalid partition specified: gpu\nsbatch: error: Batch job submission "
         "failed: Invalid partition name specified",
         BHI_SLURM_REFUSED},
        {"sbatch: error: Batch job submission failed: Invalid generic resource (gres) "
         "specification",
         BHI_SLURM_REFUSED},
        {"", BHI_SLURM_REFUSED},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        if (bhi_slurm_judge_error(cases[i].message) != cases[i].failure) {
            BHT_FAIL("%s", cases[i].message);
        }
    }
}

/* -- programs -----------------------------------------------------------------------------------
 */

TEST(test_a_program) {
    static const char *const said[] = {"sh", "-c", "echo out; echo why >&2; exit 3", NULL};
    static const char *const none[] = {"/nonexistent/sbatch", NULL};
    static const char *const sleeps[] = {"sleep", "1000", NULL};
    static const char *const kills[] = {"sh", "-c", "kill -9 $$", NULL};
    static const char *const filtered[] = {"sh", "-c", "echo \"[$SQUEUE_FORMAT]$KEPT\"", NULL};
    struct bhi_program_result result;
    bhi_program_run(said, -1, 60 * UINT64_C(1000000000), true, &result);
    BHT_TRUE(result.started && result.in_time);
    BHT_EQ(result.status, 3);
    BHT_STR_EQ(result.out, "out\n");
    BHT_STR_EQ(result.error, "why\n");
    bhi_program_free(&result);
    bhi_program_run(none, -1, 60 * UINT64_C(1000000000), true, &result);
    BHT_TRUE(!result.started);
    BHT_TRUE(strstr(result.error, "No such file"));
    bhi_program_free(&result);
    bhi_program_run(sleeps, -1, 20000000, true, &result);
    BHT_TRUE(result.started && !result.in_time);
    bhi_program_free(&result);
    bhi_program_run(kills, -1, 60 * UINT64_C(1000000000), true, &result);
    BHT_EQ(result.status, 128 + SIGKILL);
    bhi_program_free(&result);
    setenv("SQUEUE_FORMAT", "%i", 1);
    setenv("KEPT", "kept", 1);
    bhi_program_run(filtered, -1, 60 * UINT64_C(1000000000), true, &result);
    BHT_STR_EQ(result.out, "[]kept\n");
    bhi_program_free(&result);
}

/* As getopt_long reads them: words of one letter together, and beginnings of names. */
TEST(test_sbatch_options) {
    static const struct {
        const char *option, *why; /* NULL: it is passed on */
    } cases[] = {
        {"--mem=8G", NULL},
        {"--mem-per-cpu=8G", NULL},
        {"--contiguous", NULL},
        {"--exclusive", NULL},
        {"--exclusive=user", NULL},
        {"--hold", NULL},
        {"-H", NULL},
        {"-pgpu", NULL},
        {"-pWa", NULL}, /* a partition */
        {"--wait-all-nodes=1", NULL},
        {"--part=gpu", NULL},
        {"--container-image=x", NULL}, /* of a plugin */
        {"--nv", NULL},
        {"-Z", NULL},
        {"", "as one word"},
        {"8G", "as one word"},
        {"-", "as one word"},
        {"--", "as one word"},
        {"--=x", "as one word"},
        {"--array=1-9", "--array is set by bulkhead batch"},
        {"--array", "--array is set by bulkhead batch"},
        {"--arr=1-9", "may read --arr=1-9 as --array"},
        {"--a", "as --array"},
        {"-a1-9", "may read -a1-9 as --array, which is set"},
        {"-D/", "as --chdir"},
        {"-Ha1-9", "-Ha1-9 is several options"},
        {"-HW", "--sbatch-option=--hold"},
        {"-vv", "is several options"},
        {"-kW", "is several options"},
        {"-ZW", "-Z is not known"},
        {"-W", "as --wait, which is not for --executor slurm"},
        {"--wait", "--wait is not for --executor slurm"},
        {"--te", "as --test-only"},
        {"--wr=true", "as --wrap"},
        {"--cluster=x", "as --clusters"},
        {"--no", "as --no-requeue"},
        {"--mem", "--mem needs a value, in the same word: --sbatch-option=--mem=VALUE"},
        {"-p", "--sbatch-option=--partition=VALUE"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        complaint.text[0] = '\0';
        const bool good = bhi_slurm_check_option(cases[i].option, &complaint);
        if (good != !cases[i].why || (!good && !strstr(complaint.text, cases[i].why))) {
            BHT_FAIL("%s: %d %s", cases[i].option, good, complaint.text);
        }
    }
}

/* One that a later version knows may take the next word: ours is not the next one. */
TEST(test_options_between) {
    char first[] = "--mem=1G", second[] = "--unheard-of";
    char *const given[] = {first, second, NULL}, *const none[] = {NULL};
    const char *out[4];
    BHT_EQ(bhi_slurm_put_options(given, out), 3);
    BHT_STR_EQ(out[0], first);
    BHT_STR_EQ(out[1], second);
    BHT_STR_EQ(out[2], "--parsable");
    BHT_EQ(bhi_slurm_put_options(none, out), 0);
}

/* -- a probe ------------------------------------------------------------------------------------
 */

/* Writes a program into the place. */
static void write_program(const char *name, const char *text) {
    char whole[512];
    snprintf(whole, sizeof whole, "#!/bin/sh\ncd \"${0%%/*}\"\n%s\n", text);
    put_file(name, whole, 0700);
}

static off_t size_beside(const char *name) {
    char path[192];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", place.root, name);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

#define ID    "00112233445566778899aabbccddeeff"
#define NONCE "0123456789abcdef"
#define ASKS  ID ID
#define RECORD(format, id, nonce, asks, job, time)                                                 \
    "{\"format\":" format ",\"id\":\"" id "\",\"nonce\":\"" nonce "\",\"asks\":\"" asks            \
    "\",\"job\":" job ",\"submitted_ns\":" time "}"

/* The file may be anybody's. */
TEST(test_a_record) {
    static const char *const refused[] = {
        "",
        "{",
        "[]",
        RECORD("2", ID, NONCE, ASKS, "1", "1"),
        RECORD("1", ID "0", NONCE, ASKS, "1", "1"),
        RECORD("1", "*0112233445566778899aabbccddeeff", NONCE, ASKS, "1", "1"),
        RECORD("1", ID, "", ASKS, "1", "1"),
        RECORD("1", ID, NONCE, ID, "1", "1"),
        RECORD("1", ID, NONCE, ASKS, "-1", "1"),
        RECORD("1", ID, NONCE, ASKS, "4294967296", "1"),
        RECORD("1", ID, NONCE, ASKS, "\"1\"", "1"),
        RECORD("1", ID, NONCE, ASKS, "1", "-1"),
        RECORD("1", ID, NONCE, ASKS, "1", "1") "x",
    };
    const char *const folder = place.root;
    char comment[BHI_PROBE_COMMENT];
    const struct bhi_probe_record record = {
        .id = ID, .nonce = NONCE, .asks = ASKS, .job = UINT32_MAX, .submitted_ns = INT64_MAX};
    struct bhi_probe_record loaded;
    BHT_TRUE(!bhi_probe_record_load(&loaded, folder));
    BHT_TRUE(bhi_probe_record_save(&record, folder, &complaint));
    BHT_TRUE(bhi_probe_record_load(&loaded, folder));
    BHT_STR_EQ(loaded.asks, record.asks);
    BHT_EQ(loaded.job, record.job);
    BHT_EQ(loaded.submitted_ns, record.submitted_ns);
    bhi_probe_record_comment(&loaded, comment);
    BHT_STR_EQ(comment, "bulkhead:" ID ":probe:" NONCE);
    for (size_t i = 0; i < BHT_COUNT(refused); i++) {
        put_file(BHI_PROBE_FILE, refused[i], 0600);
        if (bhi_probe_record_load(&loaded, folder) || *loaded.id || loaded.job) {
            BHT_FAIL("it is taken: %s", refused[i]);
        }
    }
    bhi_probe_record_remove(folder);
    BHT_EQ(size_beside(BHI_PROBE_FILE), 0);
}

/* It may run for so long, and no longer; the time in which it waits does not count. */
TEST(test_a_probe_that_runs_on) {
    enum { WAITS = 24 }; /* looks, an eighth of the time apart: longer than it may run */
    char program[] = "/bin/true", here[] = "/", with[4096];
    char *const none[] = {NULL};
    struct bhi_slurm_array array;
    write_program("sbatch",
                  "for word; do case $word in --comment=*) echo \"${word#*=}\" > comment; esac; "
                  "done\necho 18");
    write_program("squeue",
                  "printf x >> looks\nif [ $(wc -c < looks) -le 24 ]; then state=PENDING; else "
                  "state=RUNNING; fi\necho \"18|N/A|$state|n1|$(cat comment)|None\"");
    write_program("scancel", "printf x >> cancelled");
    BHT_TRUE(bhi_array_init(&array, &complaint));
    array.program = program;
    array.cwd = here;
    array.sbatch_options = (char **)none;
    snprintf(with, sizeof with, "%s:%s", place.root, getenv("PATH"));
    BHT_EQ(setenv("PATH", with, 1), 0);
    const struct bhi_slurm_client client = {.lock = -1, .patience_ns = 60000000000};
    struct bhi_probe probe = {.state = place.root,
                              .array = &array,
                              .client = &client,
                              .poll_ns = 1,
                              .runs_ns = 1000000000};
    BHT_EQ(bhi_probe_run(&probe, &complaint), BHI_PROBE_REFUSED);
    BHT_STR_HAS(complaint.text, "the probe has run on n1 for 1 s and has not answered");
    BHT_STR_HAS(complaint.text, "--no-probe submits without one");
    BHT_GT(size_beside("looks"), WAITS + 1); /* it was seen running twice */
    BHT_EQ(size_beside("cancelled"), 1);
    BHT_EQ(size_beside(BHI_PROBE_FILE), 0);
    BHT_TRUE(!probe.may_come);
    BHT_EQ(BHI_PROBE_RUNS_NS, 600 * UINT64_C(1000000000)); /* docs/batch.md: ten minutes */
}
