/* The object of --json, whole, for each way in which a run can end: no field is left out. And what
 * a person is advised to do. */
#include "tool/verdict.h"

#include "harness.h"

#include <jansson.h>

#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/text.h"

#define HASH "abababababababababababababababababababababababababababababababab"
#define NONE "`signal`: null, `blame`: `none`, `event`: null, `origin`: null, "
#define NOTHING                                                                                    \
    NONE "`worker_pid`: null, `device`: null, `elapsed_ms`: null, `submissions`: 0, "              \
         "`min_ms`: null, `median_ms`: null, `times`: null, `kernel_hash`: null, "
#define NO_SOURCE "`file`: null, `line`: null, `log`: null, "
/* Of verdict_of(). */
#define VERDICT      "`event`: 7, `origin`: 5, `worker_pid`: 4321, `device`: `gpu:1`, "
#define KERNEL(name) "`kernel`: `" name "`, `kernel_hash`: `" HASH "`, "

/* |expected|: JSON with ` for ". */
static void expect(const struct bhi_run_outcome *outcome, const struct bhi_end *end,
                   const char *expected) {
    char *text = NULL;
    size_t size;
    FILE *const real = stdout;
    stdout = open_memstream(&text, &size);
    bhi_verdict_print_json(outcome, end);
    fclose(stdout);
    stdout = real;
    json_t *printed = json_loads(text, 0, NULL),
           *wanted = json_loads(bht_quoted(expected), 0, NULL);
    BHT_TRUE(printed && wanted);
    json_object_update_missing_new(wanted, json_pack("{s:n,s:n}", "reason", "subject"));
    BHT_EQ(json_object_size(wanted), 22);
    json_t *error = end->exit_status == BHI_EXIT_READY ? json_null() : json_object();
    static const char *const keys[] = {"code", "reason", "subject", "message",
                                       "file", "line",   "log"};
    for (size_t i = 0; i < BHT_COUNT(keys) && json_is_object(error); i++) {
        json_object_set(error, keys[i], json_object_get(wanted, keys[i]));
    }
    json_object_set_new(wanted, "error", error);
    if (!json_equal(printed, wanted)) {
        BHT_FAIL("printed:\n%s\nwanted:\n%s", text, expected);
    }
    BHT_EQ(text[size - 1], '\n');
    json_decref(printed);
    json_decref(wanted);
    free(text);
}

/* A verdict with something in each field that the object shows. */
static bh_verdict verdict_of(bh_status status, bh_executed executed, bh_blame blame) {
    return (bh_verdict){.status = status,
                        .reason = status == BH_OK ? BH_REASON_NONE : BH_REASON_MEMORY_LIMIT,
                        .executed = executed,
                        .blame = blame,
                        .signal = status == BH_WORKER_SIGNAL ? 11 : 0,
                        .exit_code = -1,
                        .event = 7,
                        .origin = 5,
                        .hops = 1,
                        .worker_pid = 4321,
                        .device = "gpu:1",
                        .submitted_ns = 1000000,
                        .started_ns = 2000000,
                        .ended_ns = 5250000,
                        .message = "of the verdict"};
}

static const uint8_t hash[32] = {[0 ... 31] = 0xab};
/* The last complaint was about something that went well in the end. */
static const struct bhi_ending warned = {.message = "of a warning"};

TEST(ready) {
    struct bhi_run_outcome outcome = {
        .verdict = verdict_of(BH_OK, BH_EXECUTED_YES, BH_BLAME_NONE),
        .submissions = 6,
        .ready = 5,
        .min_ns = 1000000,
        .median_ns = 1500000,
        .timed = true,
        .device = {true, 4, 100000, 200000, 300000, 400000},
        .host = {true, 4, 500000, 600000, 700000, 800000},
    };
    const struct bhi_end end = {BHI_EXIT_READY, "square", hash, &warned};
#define GOOD                                                                                       \
    "{`status`: `READY`, `code`: `OK`, `signal`: null, `executed`: `yes`, `blame`: `none`, "       \
    "`elapsed_ms`: 3.25, `message`: ``, `submissions`: 6, `min_ms`: 1.0, `median_ms`: "            \
    "1.5, " VERDICT NO_SOURCE KERNEL("square")
    expect(&outcome, &end,
           GOOD "`times`: {`device`: {`warm_up_ms`: 0.1, `min_ms`: 0.2,"
                "`median_ms`: 0.3, `p99_ms`: 0.4}, `host`: {`warm_up_ms`: 0.5,"
                "`min_ms`: 0.6, `median_ms`: 0.7, `p99_ms`: 0.8}}}");
    /* One submission alone is the warm-up; and a device that gives no timestamps. */
    outcome.host.count = 0;
    outcome.device.known = false;
    expect(&outcome, &end,
           GOOD "`times`: {`device`: null, `host`: {`warm_up_ms`: 0.5,"
                "`min_ms`: null, `median_ms`: null, `p99_ms`: null}}}");
}

#define POISONED                                                                                   \
    "{`status`: `POISONED`, `reason`: `MEMORY_LIMIT`, `message`: `of the verdict`, "               \
    "`times`: null, " VERDICT NO_SOURCE KERNEL("segv")

TEST(poisoned) {
    struct bhi_run_outcome outcome = {
        .verdict = verdict_of(BH_WORKER_SIGNAL, BH_EXECUTED_UNKNOWN, BH_BLAME_CERTAIN),
        .submissions = 1};
    const struct bhi_end end = {BHI_EXIT_POISONED, "segv", hash, &warned};
    expect(&outcome, &end,
           POISONED "`code`: `WORKER_SIGNAL`, `signal`: 11, `executed`: `unknown`, "
                    "`blame`: `certain`, `elapsed_ms`: 3.25, `submissions`: 1, `min_ms`: null, "
                    "`median_ms`: null}");
    /* Two of three went well, the third never began: it waited from when it was submitted. */
    outcome = (struct bhi_run_outcome){
        .verdict = verdict_of(BH_DEADLINE, BH_EXECUTED_NO, BH_BLAME_SUSPECTED),
        .submissions = 3,
        .ready = 2,
        .min_ns = 2000000,
        .median_ns = 3000000};
    outcome.verdict.started_ns = 0;
    expect(&outcome, &end,
           POISONED "`code`: `DEADLINE`, `signal`: null, `executed`: `no`, `blame`: `suspected`, "
                    "`elapsed_ms`: 4.25, `submissions`: 3, `min_ms`: 2.0, `median_ms`: 3.0}");
}

/* A source that its compiler cannot compile: there is no verdict, and no kernel. */
TEST(compile_error) {
    char log[] = "saxpy.comp:3: error: 'x'";
    const struct bhi_ending ending = {.status = BH_COMPILE_FAILED,
                                      .message = "cannot be compiled",
                                      .log = log,
                                      .file = "saxpy.comp",
                                      .line = 3};
    const struct bhi_run_outcome outcome = {.verdict = {.exit_code = -1}};
    struct bhi_end end = {BHI_EXIT_USAGE, "saxpy", NULL, &ending};
    static const char rest[] =
        "`code`: `COMPILE_FAILED`, `kernel`: `saxpy`, `executed`: `no`, " NOTHING
        "`message`: `cannot be compiled`, `file`: `saxpy.comp`, `line`: 3,"
        "`log`: `saxpy.comp:3: error: 'x'`}";
    char expected[1024];
    snprintf(expected, sizeof expected, "{`status`: `REFUSED`, %s", rest);
    expect(&outcome, &end, expected);
    end.exit_status = BHI_EXIT_POISONED; /* the source has ended the compiler */
    snprintf(expected, sizeof expected, "{`status`: `POISONED`, %s", rest);
    expect(&outcome, &end, expected);
}

/* What nothing but the exit status tells. */
TEST(refused) {
    const struct bhi_ending ending = {.message = "of the complaint"};
    const struct bhi_run_outcome outcome = {.verdict = {.exit_code = -1}};
    static const struct {
        int exit_status;
        const char *code;
    } ends[] = {{BHI_EXIT_USAGE, "INVALID_ARGUMENT"},
                {BHI_EXIT_ENVIRON, "SYSTEM"},
                {BHI_EXIT_SIGNALLED + 2, "CANCELLED"}};
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        const struct bhi_end end = {ends[i].exit_status, "k", NULL, &ending};
        char expected[1024];
        snprintf(expected, sizeof expected,
                 "{`status`: `REFUSED`, `code`: `%s`, `kernel`: `k`,"
                 "`executed`: `no`, " NOTHING NO_SOURCE "`message`: `of the complaint`}",
                 ends[i].code);
        expect(&outcome, &end, expected);
    }
}

/* A signal while a submission runs cancels it: that is its verdict, the complaint is the rest. */
TEST(cancelled) {
    const struct bhi_ending ending = {.message = "cancelled by SIGINT"};
    const struct bhi_run_outcome outcome = {
        .verdict = verdict_of(BH_CANCELLED, BH_EXECUTED_UNKNOWN, BH_BLAME_NONE), .submissions = 1};
    const struct bhi_end end = {BHI_EXIT_SIGNALLED + 2, "k", hash, &ending};
    expect(&outcome, &end,
           "{`status`: `POISONED`, `code`: `CANCELLED`, `signal`: null, `executed`: `unknown`, "
           "`blame`: `none`, `elapsed_ms`: 3.25, `message`: `cancelled by SIGINT`, "
           "`submissions`: 1, `min_ms`: null, `median_ms`: null, `times`: null, " VERDICT NO_SOURCE
           "`kernel`: `k`, `kernel_hash`: `" HASH "`}");
}

/* All went well, and the output could not be written: the verdict of a READY event is not about
 * that, but the kernel has run. */
TEST(refused_after_ready) {
    const struct bhi_ending ending = {.status = BH_SYSTEM, .message = "no space left"};
    const struct bhi_run_outcome outcome = {.verdict =
                                                verdict_of(BH_OK, BH_EXECUTED_YES, BH_BLAME_NONE),
                                            .submissions = 2,
                                            .ready = 2,
                                            .min_ns = 1000000,
                                            .median_ns = 2000000};
    const struct bhi_end end = {BHI_EXIT_ENVIRON, "k", hash, &ending};
    expect(&outcome, &end,
           "{`status`: `REFUSED`, `code`: `SYSTEM`, `executed`: `yes`, `worker_pid`: null, "
           "`device`: null, `elapsed_ms`: null, `message`: `no space left`, `submissions`: 2, "
           "`min_ms`: 1.0, `median_ms`: 2.0, `times`: null, " NONE NO_SOURCE
           "`kernel`: `k`, `kernel_hash`: `" HASH "`}");
}

/* -- for a person -------------------------------------------------------------------------------
 */

struct advice {
    bh_status status;
    bh_reason reason;
    int signal;
    int less; /* than certain blame: 1 is suspected, 2 none */
    bool trusted;
    const char *words; /* of the last line */
};

static const struct advice advices[] = {
    {BH_COMPILE_FAILED, BH_REASON_COMPILE_DEADLINE, 9, 0, false,
     "raise the compile deadline (--compile-deadline), or simplify"},
    {BH_COMPILE_FAILED, BH_REASON_MEMORY_LIMIT, 9, 0, false,
     "keep large arrays in buffers, or raise the limit (--memory-limit)\n"},
    {BH_COMPILE_FAILED, BH_REASON_MEMORY_LIMIT, 9, 0, true,
     "without --trusted the guard names the array"},
    {BH_COMPILE_FAILED, BH_REASON_NONE, 11, 0, false, "its compiler crashed"},
    {BH_COMPILE_FAILED, BH_REASON_NONE, 0, 0, false, "fix the kernel; if the message"},
    {BH_OUT_OF_HOST_MEMORY, BH_REASON_NONE, 9, 0, true, "raise the limit, or fix the kernel"},
    {BH_OUT_OF_HOST_MEMORY, BH_REASON_ADDRESS_SPACE, 9, 0, false,
     "raise the limit on the address space (ulimit -v)"},
    /* The machine was out of memory. */
    {BH_WORKER_SIGNAL, BH_REASON_NONE, 9, 1, false,
     "give the machine or its container more memory"},
    {BH_WORKER_SIGNAL, BH_REASON_NONE, 9, 2, false,
     "see who or what ends processes on this machine"},
    /* Somebody had stopped the worker. */
    {BH_DEADLINE, BH_REASON_NONE, 9, 2, false, "see who or what ends processes on this machine"},
    {BH_DEADLINE, BH_REASON_NONE, 0, 0, true, "raise the deadline, or fix the endless loop"},
};

/* Writes what a person is told from |label| on, without the wraps. */
static void print_from(const bh_verdict *verdict, bool trusted, const char *label, char out[800]) {
    char *text = NULL;
    size_t size, used = 0;
    FILE *const real = stderr;
    stderr = open_memstream(&text, &size);
    bhi_verdict_print("run", verdict, trusted);
    fclose(stderr);
    stderr = real;
    const char *at = strstr(text, label);
    BHT_TRUE(at);
    for (at += strlen(label); *at && used + 2 < 800; at++) {
        if (*at != '\n' || !at[1]) {
            out[used++] = *at;
            continue;
        }
        out[used++] = ' ';
        at += strspn(at + 1, " ");
    }
    out[used] = 0;
    free(text);
}

TEST(what_to_do) {
    for (size_t i = 0; i < BHT_COUNT(advices); i++) {
        const struct advice *advice = &advices[i];
        const bh_blame blame = (bh_blame)((int)BH_BLAME_CERTAIN - advice->less);
        bh_verdict verdict = verdict_of(advice->status, BH_EXECUTED_UNKNOWN, blame);
        char line[800];
        verdict.signal = advice->signal;
        verdict.reason = advice->reason;
        print_from(&verdict, advice->trusted, "  what to do  ", line);
        BHT_STR_HAS(line, advice->words);
    }
}

TEST(a_late_compile_suspects_the_machine) {
    bh_verdict verdict = verdict_of(BH_COMPILE_FAILED, BH_EXECUTED_NO, BH_BLAME_SUSPECTED);
    char line[800];
    verdict.signal = SIGKILL;
    print_from(&verdict, false, "  blame       ", line);
    BHT_STR_HAS(line, "suspected: a busy machine, or another kernel on the same worker, may be");
}
