#include "batch/slurm/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/slurm/program.h"
#include "batch/slurm/whole.h"
#include "tool/clock.h"
#include "tool/interrupt.h"

#define SECOND UINT64_C(1000000000)
/* Slurm's programs have time limits of their own, of some minutes on a busy controller. */
#define CALL_LIMIT (600 * SECOND)
#define LOOK_LIMIT (120 * SECOND)
#define MOST_PAUSE (30 * SECOND)
/* What is asked for after a signal belongs to the end, and somebody waits for that. */
#define END_LIMIT (5 * SECOND)
/* A signal that comes just before a pause is seen this much later. */
#define SLICE (SECOND / 10)

enum { LEAST_MAJOR = 20, LEAST_MINOR = 11 };

bool bhi_slurm_pause(uint64_t ns) {
    const uint64_t end = bhi_clock_ns() + ns;
    for (uint64_t now; !bhi_interrupt_signal() && (now = bhi_clock_ns()) < end;) {
        const uint64_t slice = end - now < SLICE ? end - now : SLICE;
        nanosleep(&(struct timespec){.tv_nsec = (long)slice}, NULL);
    }
    return !bhi_interrupt_signal();
}

/* Runs a program that changes nothing that a later call could not change. */
static void ask(const char *const *arguments, struct bhi_program_result *out_result) {
    const bool ending = bhi_interrupt_signal();
    bhi_program_run(arguments, -1, ending ? END_LIMIT : LOOK_LIMIT, !ending, out_result);
}

/* The first line of a program's error, without the program's name and "error:". */
static void first_line(const char *error, char *out, size_t capacity) {
    const char *at = error, *mark;
    while ((mark = strstr(at, "error: ")) && mark < at + strcspn(at, "\n")) {
        at = mark + 7;
    }
    snprintf(out, capacity, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Of several lines the last one that names an error says what came of the call. */
static void describe(const struct bhi_program_result *result, const char *program, char *out,
                     size_t capacity) {
    const char *last = result->error, *at = result->error;
    while ((at = strstr(at, "error: "))) {
        last = at;
        at += 7;
    }
    if (!result->in_time) {
        snprintf(out, capacity, result->cut_off ? "interrupted" : "%s did not end in time",
                 program);
        return;
    }
    first_line(last, out, capacity);
    if (!*out) {
        snprintf(out, capacity, "%s ended with status %d and said nothing", program,
                 result->status);
    }
}

bool bhi_slurm_check(struct bhi_complaint *complaint) {
    static const char *const arguments[] = {"sbatch", "--version", NULL};
    struct bhi_program_result result;
    unsigned major = 0, minor = 0;
    char why[300];
    bool good = false;
    ask(arguments, &result);
    if (!result.started) {
        bhi_refuse(complaint,
                   "sbatch cannot be started (%s): --executor slurm needs Slurm's programs in PATH "
                   "(package slurm-client), on a machine that may submit jobs",
                   result.error);
    } else if (result.status != 0) {
        describe(&result, "sbatch --version", why, sizeof why);
        bhi_refuse(complaint, "Slurm is not set up on this machine: %s", why);
    } else if (!bhi_slurm_parse_version(result.out, &major, &minor)) {
        bhi_refuse(complaint, "sbatch --version prints no version of Slurm: %.*s",
                   (int)strcspn(result.out, "\n") < 100 ? (int)strcspn(result.out, "\n") : 100,
                   result.out);
    } else if (major < LEAST_MAJOR || (major == LEAST_MAJOR && minor < LEAST_MINOR)) {
        bhi_refuse(complaint, "this is Slurm %u.%02u; --executor slurm needs %d.%02d or later",
                   major, minor, LEAST_MAJOR, LEAST_MINOR);
    } else {
        good = true;
    }
    bhi_program_free(&result);
    return good;
}

/* -- looking ------------------------------------------------------------------------------------
 */

enum bhi_slurm_result bhi_slurm_tasks(const char *prefix,
                                      void (*visit)(void *user, const struct bhi_slurm_task *task),
                                      void *user, struct bhi_complaint *complaint) {
    static const char format[] = "--format=" BHI_SLURM_FORMAT;
    static const char *const arguments[] = {"squeue",       "--me", "--noheader", "--array",
                                            "--states=all", format, NULL};
    struct bhi_program_result result;
    struct bhi_slurm_task task;
    char why[300];
    const size_t length = strlen(prefix);
    ask(arguments, &result);
    const bool good = result.started && result.in_time && result.status == 0;
    for (const char *line = result.out; good && *line;) {
        const size_t size = strcspn(line, "\n");
        if (bhi_slurm_parse_task(line, size, &task) && task.comment_length >= length &&
            !memcmp(task.comment, prefix, length)) {
            visit(user, &task);
        }
        line += size + (line[size] == '\n');
    }
    if (!result.started) {
        bhi_refuse(complaint, "Slurm's programs cannot be started (%s)", result.error);
    } else if (!good) {
        describe(&result, "squeue", why, sizeof why);
        bhi_refuse(complaint, "squeue: %s", why);
    }
    bhi_program_free(&result);
    return good ? BHI_SLURM_DONE : result.cut_off ? BHI_SLURM_INTERRUPTED : BHI_SLURM_DOWN;
}

enum bhi_slurm_state bhi_slurm_account(uint64_t array, uint32_t index, char out_name[32]) {
    char job[48];
    snprintf(job, sizeof job, "%llu_%u", (unsigned long long)array, index);
    const char *const arguments[] = {"sacct",  "--noheader", "--parsable2",    "--allocations",
                                     "--jobs", job,          "--format=State", NULL};
    struct bhi_program_result result;
    enum bhi_slurm_state state = BHI_SLURM_GONE;
    ask(arguments, &result);
    if (result.started && result.in_time && result.status == 0 && result.size > 0) {
        const size_t size = strcspn(result.out, "\n");
        state = bhi_slurm_parse_state(result.out, size);
        snprintf(out_name, 32, "%.*s", size < 31 ? (int)size : 31, result.out);
    }
    /* It is not in the queue, whatever the accounts say. */
    if (state == BHI_SLURM_UNKNOWN || state == BHI_SLURM_PENDING || state == BHI_SLURM_RUNNING) {
        state = BHI_SLURM_GONE;
    }
    if (state == BHI_SLURM_GONE) {
        snprintf(out_name, 32, "vanished");
    }
    bhi_program_free(&result);
    return state;
}

/* -- submitting ---------------------------------------------------------------------------------
 */

struct search {
    const char *comment;
    uint64_t job;
};

static void take_found(void *user, const struct bhi_slurm_task *task) {
    struct search *search = user;
    if (task->comment_length == strlen(search->comment)) { /* the whole comment, no longer one */
        search->job = task->array;
    }
}

/* The command line: ours is last, so that it counts. */
static const char **command_line(const struct bhi_slurm_submission *submission,
                                 const char *comment) {
    size_t count = 0, words = 0, used = 0;
    while (submission->options[count]) {
        count++;
    }
    while (submission->words && submission->words[words]) {
        words++;
    }
    const char **line = calloc(count + words + 8, sizeof *line);
    if (!line) {
        return NULL;
    }
    line[used++] = "sbatch";
    for (size_t i = 0; i < count; i++) {
        line[used++] = submission->options[i];
    }
    line[used++] = "--parsable";
    line[used++] = "--no-requeue";
    line[used++] = "--open-mode=append";
    line[used++] = comment;
    line[used++] = submission->script;
    for (size_t i = 0; i < words; i++) {
        line[used++] = submission->words[i];
    }
    return line;
}

/* Tries once. An sbatch that a signal cuts off is killed: what it has not sent by then is not
 * submitted. */
static enum bhi_slurm_failure submit(const struct bhi_slurm_client *client, const char **line,
                                     uint64_t *out_job, char *why, size_t capacity) {
    struct bhi_program_result result;
    enum bhi_slurm_failure failure = BHI_SLURM_REFUSED;
    *out_job = 0;
    bhi_program_run(line, client->lock, CALL_LIMIT, true, &result);
    if (!result.started) {
        snprintf(why, capacity, "%.*s", (int)capacity - 1, result.error);
    } else if (result.in_time && result.status == 0 && bhi_slurm_parse_job(result.out, out_job)) {
        why[0] = '\0';
    } else {
        describe(&result, "sbatch", why, capacity);
        failure = !result.in_time || result.status == 0 || result.status > 128
                      ? BHI_SLURM_UNSURE
                      : bhi_slurm_judge_error(result.error);
    }
    bhi_program_free(&result);
    return failure;
}

enum bhi_slurm_result bhi_slurm_submit(const struct bhi_slurm_client *client,
                                       const struct bhi_slurm_submission *submission,
                                       uint64_t *out_job, struct bhi_complaint *complaint) {
    const uint64_t end = bhi_clock_ns() + client->patience_ns;
    uint64_t pause = SECOND / 2;
    bool unsure = submission->asks_first;
    struct search search = {.comment = submission->comment, .job = 0};
    struct bhi_complaint inner;
    char why[300] = "";
    BHI_AUTO_FREE char *comment = bhi_whole_text("--comment=%s", submission->comment);
    BHI_AUTO_FREE const char **line = comment ? command_line(submission, comment) : NULL;
    if (!line) {
        bhi_refuse(complaint, "out of memory");
        return BHI_SLURM_DOWN;
    }
    while (!bhi_interrupt_signal()) {
        bool looked = true;
        if (unsure) {
            search.job = 0;
            looked =
                bhi_slurm_tasks(submission->comment, take_found, &search, &inner) == BHI_SLURM_DONE;
            if (looked && search.job) {
                *out_job = search.job;
                return BHI_SLURM_DONE;
            }
            if (!looked) {
                snprintf(why, sizeof why, "%.290s", inner.text);
            }
        }
        if (looked) {
            const enum bhi_slurm_failure failure = submit(client, line, out_job, why, sizeof why);
            if (*out_job) {
                return BHI_SLURM_DONE;
            }
            if (failure == BHI_SLURM_REFUSED) {
                bhi_refuse(complaint, "sbatch: %s", why);
                return BHI_SLURM_BAD;
            }
            unsure |= failure == BHI_SLURM_UNSURE;
        }
        if (bhi_interrupt_signal()) {
            break;
        }
        if (bhi_clock_ns() + pause > end) {
            bhi_refuse(complaint, "%s", why);
            return BHI_SLURM_DOWN;
        }
        if (client->waits) {
            client->waits(client->user, why);
        }
        (void)bhi_slurm_pause(pause);
        pause = pause * 2 < MOST_PAUSE ? pause * 2 : MOST_PAUSE;
    }
    bhi_refuse(complaint, "interrupted");
    return unsure ? BHI_SLURM_CUT_OFF : BHI_SLURM_INTERRUPTED;
}

/* In the name of an output file % begins a pattern. */
char *bhi_slurm_output(const char *path, const char *pattern) {
    char *out = malloc(2 * strlen(path) + strlen(pattern) + 16), *at = out;
    if (!out) {
        return NULL;
    }
    at += sprintf(at, "--output=");
    for (; *path; path++) {
        *at++ = *path;
        if (*path == '%') {
            *at++ = '%';
        }
    }
    strcpy(at, pattern);
    return out;
}

bool bhi_slurm_cancel(uint64_t job, struct bhi_complaint *complaint) {
    char text[32], why[300];
    snprintf(text, sizeof text, "%llu", (unsigned long long)job);
    const char *const arguments[] = {"scancel", text, NULL};
    struct bhi_program_result result;
    ask(arguments, &result);
    const bool good = result.started && result.in_time &&
                      (result.status == 0 || strstr(result.error, "Invalid job id") ||
                       strstr(result.error, "already completing or completed"));
    if (!good) {
        describe(&result, "scancel", why, sizeof why);
        bhi_refuse(complaint, "scancel %s: %s", text, why);
    }
    bhi_program_free(&result);
    return good;
}

/* -- cancelling a batch -------------------------------------------------------------------------
 */

struct live {
    uint64_t *arrays; /* owned; each once */
    size_t count, capacity;
    uint32_t tasks;
    bool failed;
};

static void take_live(void *user, const struct bhi_slurm_task *task) {
    struct live *live = user;
    size_t i = 0;
    if (task->state >= BHI_SLURM_ENDED) {
        return;
    }
    live->tasks++;
    while (i < live->count && live->arrays[i] != task->array) {
        i++;
    }
    if (i < live->count) {
        return;
    }
    if (!BHI_ARRAY_RESERVE(live->arrays, live->capacity, live->count + 1)) {
        live->failed = true;
        return;
    }
    live->arrays[live->count++] = task->array;
}

bool bhi_slurm_cancel_all(const char *id, uint32_t *out_tasks, struct bhi_complaint *complaint) {
    struct live live = {0};
    char prefix[BHI_ARRAY_COMMENT];
    snprintf(prefix, sizeof prefix, "bulkhead:%s:", id);
    bool good = bhi_slurm_tasks(prefix, take_live, &live, complaint) == BHI_SLURM_DONE;
    if (good && live.failed) {
        good = bhi_refuse(complaint, "out of memory");
    }
    for (size_t i = 0; i < live.count; i++) {
        good &= bhi_slurm_cancel(live.arrays[i], complaint);
    }
    free(live.arrays);
    *out_tasks = good ? live.tasks : 0;
    return good;
}
