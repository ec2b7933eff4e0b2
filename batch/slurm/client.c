#include "batch/slurm/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/slurm/program.h"
#include "batch/slurm/shard.h"
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
/* How long the request of an sbatch whose answer did not come may be on its way. */
#define ARRIVES (5 * SECOND)

enum { LEAST_MAJOR = 20, LEAST_MINOR = 11, WHY = 512 };

/* Runs a program that changes nothing that a later call could not change. A signal to our process
 * group also ends a program that is just being started and has no group of its own yet; then it is
 * run once more. */
static void ask(const char *const *arguments, struct bhi_program_result *out_result) {
    const bool ending = bhi_interrupt_signal();
    bhi_program_run(arguments, -1, ending ? END_LIMIT : LOOK_LIMIT, !ending, out_result);
    const int signal = bhi_interrupt_signal();
    if (signal && out_result->in_time && out_result->status == 128 + signal) {
        bhi_program_free(out_result);
        bhi_program_run(arguments, -1, END_LIMIT, false, out_result);
    }
}

/* The next line from |at| on that names an error: *out_line is its text, without the program's name
 * and "error:". Returns what follows it, or NULL if there is none. */
static const char *next_error(const char *at, const char **out_line, size_t *out_length) {
    static const char *const marks[] = {"error: ", "fatal: "};
    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const char *end = at + strcspn(at, "\n"), *line = NULL;
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            const char *mark = strstr(at, marks[i]);
            if (mark && mark < end && (!line || mark < line)) {
                line = mark + strlen(marks[i]);
            }
        }
        /* What comes before the cause where munged does not answer: a remark on its options. */
        if (line && line < end && strncmp(line, "If munged is up", 15) != 0) {
            *out_line = line;
            *out_length = (size_t)(end - line);
            return end;
        }
    }
    return NULL;
}

/* Of several lines the first one that names an error has the cause, such as what a site's plugin
 * says; the last one says what came of the call. */
static void describe(const struct bhi_program_result *result, const char *program, char *out,
                     size_t capacity) {
    const char *first = NULL, *last = NULL, *line;
    size_t first_length = 0, last_length = 0, length;
    if (!result->in_time) {
        snprintf(out, capacity, result->cut_off ? "interrupted" : "%s did not end in time",
                 program);
        return;
    }
    for (const char *at = result->error; (at = next_error(at, &line, &length));) {
        last = line;
        last_length = length;
        if (!first) {
            first = line;
            first_length = length;
        }
    }
    if (!first) {
        first = last = result->error;
        first_length = strcspn(first, "\n");
    }
    if (!first_length) {
        snprintf(out, capacity, "%s ended with status %d and said nothing", program,
                 result->status);
    } else if (first == last ||
               (first_length == last_length && !memcmp(first, last, first_length))) {
        snprintf(out, capacity, "%.*s", (int)first_length, first);
    } else {
        const size_t most = capacity / 2;
        snprintf(out, capacity, "%.*s; %.*s", (int)(first_length < most ? first_length : most),
                 first, (int)last_length, last);
    }
}

/* Slurm's programs wait for a minute for a file that is not there. */
static bool check_configuration(struct bhi_complaint *complaint) {
    const char *path = getenv("SLURM_CONF");
    if (!path || !*path || access(path, R_OK) == 0) {
        return true;
    }
    return bhi_refuse(
        complaint,
        "SLURM_CONF is %.600s, which cannot be read (%s): set it to the slurm.conf of "
        "the cluster, or unset it",
        path, strerror(errno));
}

static bool check_program(const char *program, struct bhi_complaint *complaint) {
    const char *const arguments[] = {program, "--version", NULL};
    struct bhi_program_result result;
    unsigned major = 0, minor = 0;
    char why[WHY];
    bool good = false;
    ask(arguments, &result);
    if (!result.started) {
        bhi_refuse(complaint,
                   "%s cannot be started (%s): --executor slurm needs Slurm's programs in PATH "
                   "(package slurm-client), on a machine that may submit jobs",
                   program, result.error);
    } else if (!result.in_time || result.status != 0) {
        describe(&result, program, why, sizeof why);
        bhi_refuse(complaint, "%s --version: Slurm is not set up on this machine: %s", program,
                   why);
    } else if (!bhi_slurm_parse_version(result.out, &major, &minor)) {
        bhi_refuse(complaint, "%s --version prints no version of Slurm: %.*s", program,
                   (int)strcspn(result.out, "\n") < 100 ? (int)strcspn(result.out, "\n") : 100,
                   result.out);
    } else if (major < LEAST_MAJOR || (major == LEAST_MAJOR && minor < LEAST_MINOR)) {
        bhi_refuse(complaint, "%s: this is Slurm %u.%02u; --executor slurm needs %d.%02d or later",
                   program, major, minor, LEAST_MAJOR, LEAST_MINOR);
    } else {
        good = true;
    }
    bhi_program_free(&result);
    return good;
}

bool bhi_slurm_check(struct bhi_complaint *complaint) {
    return check_configuration(complaint) && check_program("sbatch", complaint) &&
           check_program("squeue", complaint) && check_program("scancel", complaint);
}

uint64_t bhi_slurm_most_tasks(void) {
    static const char *const arguments[] = {"scontrol", "show", "config", NULL};
    struct bhi_program_result result;
    uint64_t most = UINT64_MAX;
    ask(arguments, &result);
    if (!result.started || !result.in_time || result.status != 0 ||
        !bhi_slurm_parse_limit(result.out, &most)) {
        most = UINT64_MAX;
    }
    bhi_program_free(&result);
    return most;
}

/* -- looking --------------------------------------------------------------------------------- */

enum bhi_slurm_result bhi_slurm_tasks(const char *prefix,
                                      void (*visit)(void *user, const struct bhi_slurm_task *task),
                                      void *user, struct bhi_complaint *complaint) {
    static const char format[] = "--format=" BHI_SLURM_FORMAT;
    static const char *const arguments[] = {"squeue",       "--me", "--noheader", "--array",
                                            "--states=all", format, NULL};
    struct bhi_program_result result;
    struct bhi_slurm_task task;
    char why[WHY];
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
    const bool is_bad =
        !result.started || (result.in_time && strstr(result.error, "fatal: ") &&
                            bhi_slurm_judge_error(result.error) == BHI_SLURM_REFUSED);
    bhi_program_free(&result);
    return good             ? BHI_SLURM_DONE
           : result.cut_off ? BHI_SLURM_INTERRUPTED
           : is_bad         ? BHI_SLURM_BAD
                            : BHI_SLURM_DOWN;
}

bool bhi_slurm_is_bad(enum bhi_slurm_result result, uint64_t patience_ns, uint64_t *bad_ns) {
    const uint64_t now = bhi_clock_ns();
    if (result != BHI_SLURM_BAD) {
        *bad_ns = 0;
        return false;
    }
    *bad_ns = *bad_ns ? *bad_ns : now;
    return now - *bad_ns >= patience_ns;
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

/* -- submitting ------------------------------------------------------------------------------ */

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
 * submitted; what it has sent may reach Slurm's queue later. */
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
        /* It exits with 255 for options that it does not take, and above 128 if a signal ended
         * it. */
        const bool judged = result.status > 0 && (result.status <= 128 || result.status == 255);
        failure = result.in_time && judged ? bhi_slurm_judge_error(result.error) : BHI_SLURM_UNSURE;
    }
    bhi_program_free(&result);
    return failure;
}

enum bhi_slurm_result bhi_slurm_submit(const struct bhi_slurm_client *client,
                                       const struct bhi_slurm_submission *submission,
                                       uint64_t *out_job, struct bhi_complaint *complaint) {
    const uint64_t end = bhi_clock_ns() + client->patience_ns;
    uint64_t pause = SECOND / 2, bad_ns = 0, arrives_ns = bhi_clock_ns() + ARRIVES;
    bool unsure = submission->asks_first;
    struct search search = {.comment = submission->comment, .job = 0};
    struct bhi_complaint inner;
    char why[WHY] = "";
    BHI_AUTO_FREE char *comment = bhi_whole_text("--comment=%s", submission->comment);
    BHI_AUTO_FREE const char **line = comment ? command_line(submission, comment) : NULL;
    if (!line) {
        bhi_refuse(complaint, "out of memory");
        return BHI_SLURM_DOWN;
    }
    while (!bhi_interrupt_signal()) {
        enum bhi_slurm_result looked = BHI_SLURM_DONE;
        if (unsure) {
            search.job = 0;
            looked = bhi_slurm_tasks(submission->comment, take_found, &search, &inner);
            if (looked == BHI_SLURM_DONE && search.job) {
                *out_job = search.job;
                return BHI_SLURM_DONE;
            }
            const uint64_t now = bhi_clock_ns();
            if (looked == BHI_SLURM_DONE && now < arrives_ns) {
                bad_ns = 0;
                (void)bhi_interrupt_pause(arrives_ns - now);
                continue;
            }
            if (looked != BHI_SLURM_DONE) {
                snprintf(why, sizeof why, "%.500s", inner.text);
            }
        }
        if (looked == BHI_SLURM_DONE) {
            const enum bhi_slurm_failure failure = submit(client, line, out_job, why, sizeof why);
            if (*out_job) {
                return BHI_SLURM_DONE;
            }
            if (failure == BHI_SLURM_REFUSED) {
                bhi_refuse(complaint, "sbatch: %s", why);
                return BHI_SLURM_BAD;
            }
            if (failure == BHI_SLURM_UNSURE) {
                unsure = true;
                arrives_ns = bhi_clock_ns() + ARRIVES;
            }
        }
        if (bhi_interrupt_signal()) {
            break;
        }
        if (bhi_slurm_is_bad(looked, BHI_SLURM_BAD_NS, &bad_ns) || bhi_clock_ns() + pause > end) {
            bhi_refuse(complaint, "%s", why);
            return BHI_SLURM_DOWN;
        }
        if (client->waits) {
            client->waits(client->user, why);
        }
        (void)bhi_interrupt_pause(pause);
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
    char text[32], why[WHY];
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

/* -- cancelling a batch ---------------------------------------------------------------------- */

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

bool bhi_slurm_cancel_comment(const char *prefix, uint32_t *out_tasks,
                              struct bhi_complaint *complaint) {
    struct live live = {0};
    bool good = check_configuration(complaint) &&
                bhi_slurm_tasks(prefix, take_live, &live, complaint) == BHI_SLURM_DONE;
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

bool bhi_slurm_cancel_all(const char *id, uint32_t *out_tasks, struct bhi_complaint *complaint) {
    char prefix[BHI_ARRAY_COMMENT];
    snprintf(prefix, sizeof prefix, "bulkhead:%s:", id);
    return bhi_slurm_cancel_comment(prefix, out_tasks, complaint);
}

struct unended {
    const char *id, *state;
    bool any;
};

static void take_unended(void *user, const struct bhi_slurm_task *task) {
    struct unended *unended = user;
    struct bhi_slurm_shard_ending ending = {.array = 0};
    if (task->state == BHI_SLURM_RUNNING) {
        bhi_slurm_shard_read_ending(unended->state, task->index, &ending);
    }
    /* Slurm notices the end of a task some time after the task has said it. */
    const bool said = ending.array == task->array && !strcmp(ending.id, unended->id);
    unended->any |= task->state < BHI_SLURM_ENDED && !said;
}

bool bhi_slurm_may_have(const char *id, const char *state) {
    struct bhi_complaint ignored;
    struct unended unended = {.id = id, .state = state};
    char prefix[BHI_ARRAY_COMMENT];
    snprintf(prefix, sizeof prefix, "bulkhead:%s:", id);
    return !check_configuration(&ignored) ||
           bhi_slurm_tasks(prefix, take_unended, &unended, &ignored) != BHI_SLURM_DONE ||
           unended.any;
}
