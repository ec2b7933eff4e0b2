/* Whole batches on a library that is a script (tests/cli/scripted): whatever it refuses, each job ends as
 * it must, and nothing is left of any. */
#include "few_jobs.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../cli/scripted/script.h"
#include "batch/runner/runner.h"
#include "faulty_memory.h"

/* -- the machine --------------------------------------------------------------------------------
 */

static _Atomic int64_t skew_s;  /* of all clocks */
static _Atomic uint64_t unused; /* memory */

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *out) {
    const int result = __real_clock_gettime(clock, out);
    out->tv_sec += skew_s;
    return result;
}

BHT_WRAP(uint64_t, bhi_memory_unused, void) {
    return unused;
}

/* -- batches ------------------------------------------------------------------------------------
 */

static void put_array(const char *name, int value) {
    char array[128 + 5];
    memset(array, ' ', 128);
    memcpy(array, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(array + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 57);
    array[127] = '\n';
    memset(array + 128, value, 4);
    write_file(name, array, 132);
}

/* The value of each of its bytes; -1: there is no such file. */
static int value_of(const char *name) {
    static unsigned char array[MOST];
    const ssize_t size = read_file(name, array);
    if (size < 0) {
        return -1;
    }
    for (ssize_t i = 128; i < size; i++) {
        BHT_EQ(array[i], array[128]);
    }
    return array[128];
}

/* The files of all of them: k and k.comp are kernels, x and y inputs. */
static void make_files(void) {
    BHT_EQ(chdir(place.root), 0);
    write_file("k", "\x03\x02\x23\x07", 4);
    put_file("k.comp", "void main() {}", 0600);
    put_array("x", 1);
    put_array("y", 2);
    unused = UINT64_C(1) << 40;
    setenv("SCRIPT_ADD", "1", 1);
}

#define LINE(id, kernel, in, out, more)                                                            \
    "{`id`:`" id "`,`kernel`:`" kernel "`,`groups`:[1],`in`:{`0`:`" in "`},`out`:{`1`:`" out       \
    ":u8[4]`}" more "}\n"

/* In lines as those of a file. */
static void add_lines(const char *lines) {
    struct jobs jobs = {.count = 0};
    const char *text = bht_quoted(lines);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        if (!bhi_job_parse(text, (size_t)(end - text), &jobs.specs[jobs.count], &complaint)) {
            BHT_FAIL("%s", complaint.text);
        }
        jobs.specs[jobs.count].line = jobs.count + 1;
        jobs.count++;
    }
    if (bhi_queue_add(queue, jobs.specs, jobs.count, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    free_jobs(&jobs);
}

static enum bhi_runner_result run_them(const struct bhi_runner_options *how) {
    complaint.text[0] = '\0';
    memset(&script_counts, 0, sizeof script_counts);
    const enum bhi_runner_result result = bhi_runner_run(queue, how, &complaint);
    BHT_EQ(script_objects, 0);
    return result;
}

static void expect_run(const struct bhi_runner_options *how, enum bhi_runner_result expected,
                       const char *counts) {
    const enum bhi_runner_result result = run_them(how);
    if (result != expected) {
        BHT_FAIL("result %d: %s", (int)result, complaint.text);
    }
    expect_counts(counts);
}

static const char some[] =
    LINE("a", "k", "x", "a", "") LINE("b", "k", "x", "b", "") LINE("c", "k.comp", "y", "c", "")
        LINE("d", "k.comp", "y", "d", "") LINE("e", "k", "a", "e", ",`depends_on`:[`a`]")
            LINE("f", "k.comp", "c", "f", ",`depends_on`:[`c`]") LINE("g", "k", "x", "g", "");

static void expect_some(void) {
    static const int values[] = {2, 2, 3, 3, 3, 4, 2};
    for (int i = 0; i < 7; i++) {
        BHT_EQ(value_of((char[]){(char)('a' + i), 0}), values[i]);
    }
}

/* With a journal and without, on one stream and on several, with room for all and for one. */
TEST(test_all_that_is_asked_for) {
    static const uint64_t rooms[] = {UINT64_C(1) << 40, 4 * 150, 4};
    for (uint32_t streams = 1; streams < 4; streams++) {
        for (size_t i = 0; i < BHT_COUNT(rooms); i++) {
            const struct bhi_runner_options how = {.streams = streams};
            renew_place();
            make_files();
            unused = rooms[i];
            i ? open_unkept("jobs.jsonl") : open_state(false, false);
            add_lines(some);
            expect_run(&how, BHI_RUNNER_FINISHED, "0/0/0/7/0/0/0 of 7");
            BHT_EQ(script_counts.submissions, 7);
            BHT_EQ(script_counts.resets + script_counts.trims, 0);
            BHT_EQ(script_counts.kernels, 2);
            BHT_WITHIN(script_counts.loads, 4, i ? 7 : 6); /* two may load the same at once */
            expect_some();
        }
    }
}

static int most; /* submissions before it is cancelled */

static bool is_cancelled(void *user) {
    return script_counts.submissions >= most;
}

/* Whenever that is: a job is done or cancelled, and an output is there or not. */
TEST(test_a_batch_that_is_cancelled) {
    struct bhi_queue_counts counts;
    for (most = 0; most < 8; most++) {
        int there = 0;
        const struct bhi_runner_options how = {.streams = 1, .cancelled = is_cancelled};
        renew_place();
        make_files();
        open_unkept("jobs.jsonl");
        add_lines(some);
        const enum bhi_runner_result result = run_them(&how);
        bhi_queue_counts(queue, &counts);
        for (char name[] = "a"; *name < 'h'; ++*name) {
            there += value_of(name) != -1;
        }
        BHT_EQ(counts.of[BHI_JOB_DONE], there);
        BHT_TRUE(result == BHI_RUNNER_CANCELLED || (result == BHI_RUNNER_FINISHED && there == 7));
        BHT_EQ(counts.of[BHI_JOB_RUNNING] + counts.of[BHI_JOB_FAILED], 0);
        BHT_EQ(script_counts.submissions, there);
        BHT_GE(script_counts.submissions, most < 7 ? most : 7);
    }
}

static void wait_long(void *user, const char *why) {
    skew_s += 70;
}

static int retried; /* ends that are not the last */

static void note_end(void *user, const struct bhi_job *job, const struct bhi_attempt *attempt) {
    BHT_TRUE(attempt->ended_ns >= attempt->started_ns && attempt->started_ns > 0);
    BHT_TRUE(attempt->verdict.status == BH_OK || attempt->verdict.message[0]);
    retried += attempt->next == BHI_JOB_WAITING;
}

/* What the library answers of every call of a kind, or of a stream's first submission. */
TEST(test_what_the_library_refuses) {
    static const struct {
        const char *call, *status;
        bool first; /* of each stream */
        enum bhi_runner_result result;
        const char *counts;
        int submissions, resets, trims, retried;
    } cases[] = {
        {"SCRIPT_SUBMIT", "INVALID_ARGUMENT", false, 0, "0/0/0/0/2/0/0 of 2", 2, 0, 0, 0},
        {"SCRIPT_EVENT", "INVALID_KERNEL", false, 0, "0/0/0/0/2/0/0 of 2", 2, 0, 0, 0},
        {"SCRIPT_EVENT", "DEADLINE", false, 0, "0/0/0/0/0/2/0 of 2", 6, 0, 0, 4},
        {"SCRIPT_EVENT", "DEADLINE", true, 0, "0/0/0/2/0/0/0 of 2", 3, 0, 0, 1},
        {"SCRIPT_EVENT", "UNAVAILABLE", true, 0, "0/0/0/2/0/0/0 of 2", 3, 1, 0, 1},
        {"SCRIPT_BUFFER", "NO_MEMORY", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 2, 0},
        {"SCRIPT_BUFFER", "LIMIT_EXCEEDED", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_FILE", "LOAD_FAILED", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_KERNEL", "INVALID_KERNEL", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_KERNEL", "COMPILE_FAILED", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_INSPECT", "INVALID_KERNEL", false, 0, "0/0/0/0/2/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_STREAM", "NO_DEVICE", false, BHI_RUNNER_ENVIRON, "0/2/0/0/0/0/0 of 2", 0, 0, 0, 0},
        {"SCRIPT_SUBMIT", "UNAVAILABLE", false, BHI_RUNNER_ENVIRON, "0/2/0/0/0/0/0 of 2", -1, 0, 0,
         -1},
        {"SCRIPT_MAP", "SYSTEM", false, BHI_RUNNER_ENVIRON, "0/2/0/0/0/0/0 of 2", -1, 0, 0, -1},
    };
    for (size_t i = 0; i < 2 * BHT_COUNT(cases); i++) {
        const bool gives_up = cases[i / 2].result == BHI_RUNNER_ENVIRON;
        const struct bhi_runner_options how = {
            .streams = 1, .ended = note_end, .waits = gives_up ? wait_long : NULL};
        renew_place();
        make_files();
        open_unkept("jobs.jsonl");
        add_lines(i % 2 ? LINE("a", "k.comp", "x", "a", "") LINE("b", "k.comp", "x", "b", "")
                        : LINE("a", "k", "x", "a", "") LINE("b", "k", "x", "b", ""));
        retried = 0;
        setenv(cases[i / 2].call, cases[i / 2].status, 1);
        if (cases[i / 2].first) {
            setenv("SCRIPT_FAIL_AT", "1", 1);
        }
        const enum bhi_runner_result result = run_them(&how);
        unsetenv(cases[i / 2].call);
        unsetenv("SCRIPT_FAIL_AT");
        const struct script_counts *got = &script_counts;
        if (result != cases[i / 2].result || got->trims != cases[i / 2].trims ||
            (!gives_up &&
             (got->submissions != cases[i / 2].submissions || got->resets != cases[i / 2].resets ||
              retried != cases[i / 2].retried))) {
            BHT_FAIL("case %zu: %d %s; %d submissions, %d resets, %d trims, %d retried", i / 2,
                     (int)result, complaint.text, got->submissions, got->resets, got->trims,
                     retried);
        }
        expect_counts(cases[i / 2].counts);
        if (gives_up) {
            BHT_STR_HAS(complaint.text, "as scripted");
        }
    }
}

/* Each allocation fails once: that is nobody's fault, and all jobs are done; or it is said at the
 * beginning that there is no memory. */
TEST(test_memory_runs_out) {
    const struct bhi_runner_options how = {.streams = 2, .ended = note_end};
    long at = 1, seen;
    do {
        renew_place();
        make_files();
        open_unkept("jobs.jsonl");
        add_lines(some);
        const int fds = count_fds();
        faulty_memory_fail(at);
        const enum bhi_runner_result result = run_them(&how);
        seen = faulty_memory_seen();
        faulty_memory_fail(0);
        BHT_EQ(count_fds(), fds);
        if (result == BHI_RUNNER_FINISHED) {
            expect_counts("0/0/0/7/0/0/0 of 7");
            expect_some();
        } else {
            BHT_EQ(result, BHI_RUNNER_ENVIRON);
            BHT_STR_HAS(complaint.text, "out of memory");
            expect_counts("2/5/0/0/0/0/0 of 7");
        }
        at += 1 + at / 64;
    } while (at <= seen + 1 + at / 64);
    BHT_GT(seen, 100);
}

static void at_start(void) {
    faulty_memory_set_up();
    bht_default_flags(BHT_ALLOW_MAPPINGS);
}

BHT_AT_START(at_start())
