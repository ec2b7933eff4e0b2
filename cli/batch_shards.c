/* --status, --cancel and --logs of `bulkhead batch`: what others run, seen from outside. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/owner.h"
#include "batch/job/file.h"
#include "batch/report/tally.h"
#include "batch/runner/progress.h"
#include "batch/shards/report.h"
#include "batch/slurm/array.h"
#include "batch/slurm/client.h"
#include "batch/slurm/probe_record.h"
#include "cli/batch_slurm.h"
#include "cli/mains.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/json.h"
#include "tool/quantity.h"
#include "tool/report/page.h"

enum { LOG_LINES = 100, LOG_LINE = 1024 };

/* -- arguments ------------------------------------------------------------------------------- */

/* What each asks for, and what else may be given with it. */
static const struct {
    enum bhi_option_id option;
    size_t operands;
    bool json, html, follow;
} requests[] = {
    {BHI_BATCH_STATUS, 0, true, true, true},
    {BHI_BATCH_CANCEL, 0, false, false, false},
    {BHI_BATCH_LOGS, 1, true, false, false},
};
enum { STATUS, CANCEL, LOGS, REQUESTS };

/* Returns which is asked for, the first in the table; REQUESTS: none. */
static int request_of(const struct bhi_args *args) {
    int request = 0;
    while (request < REQUESTS && !bhi_args_has(args, requests[request].option)) {
        request++;
    }
    return request;
}

bool bhi_batch_shards_asked(const struct bhi_args *args) {
    return request_of(args) < REQUESTS;
}

static bool check(const struct bhi_args *args, int request) {
    const char *name = bhi_options[requests[request].option].name;
    for (size_t i = 0; i < args->item_count; i++) {
        const enum bhi_option_id option = args->items[i].option;
        const bool fits = option == requests[request].option ||
                          (option == BHI_BATCH_JSON && requests[request].json) ||
                          (option == BHI_BATCH_HTML && requests[request].html) ||
                          (option == BHI_BATCH_FOLLOW && requests[request].follow);
        if (!fits) {
            bhi_complain("batch", "--%s runs nothing: it excludes --%s; see bulkhead batch --help",
                         name, bhi_options[option].name);
            return false;
        }
    }
    if (args->operand_count != requests[request].operands) {
        bhi_complain(
            "batch", "%s; see bulkhead batch --help",
            requests[request].operands
                ? "--logs STATE needs the id of a job: --logs STATE ID"
                : "JOBS does not go with --status and --cancel: these name a state folder");
        return false;
    }
    return true;
}

/* -- status ---------------------------------------------------------------------------------- */

/* Reads what comes until every shard has ended, with the progress on standard error. */
static bool follow(struct bhi_shards *shards, struct bhi_complaint *complaint) {
    struct bhi_batch_progress progress;
    struct bhi_queue_counts counts;
    bool more, good = true;
    bhi_progress_begin(&progress);
    while (good && !bhi_interrupt_signal()) {
        good = bhi_shards_poll(shards, &more, complaint);
        bhi_shards_counts(shards, &counts);
        bhi_progress_update(&progress, &counts);
        if (bhi_shards_ended(shards)) {
            break;
        }
        if (!more) {
            (void)bhi_interrupt_pause(1000000000u);
        }
    }
    bhi_progress_end(&progress, &counts);
    return good;
}

static int show_status(struct bhi_shards *shards, const struct bhi_args *args,
                       struct bhi_complaint *complaint) {
    struct bhi_queue_counts counts;
    const char *html = bhi_args_value(args, BHI_BATCH_HTML);
    if (html && !bhi_page_check(html, complaint)) {
        return bhi_complain_usage("batch", "--html %s: %s", html, complaint->text);
    }
    bool good = !bhi_args_has(args, BHI_BATCH_FOLLOW) || follow(shards, complaint);
    good = good && bhi_shards_read(shards, complaint);
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    bhi_shards_counts(shards, &counts);
    const bool failed = counts.of[BHI_JOB_FAILED] + counts.of[BHI_JOB_QUARANTINED] > 0;
    const struct bhi_shards_report what = {.html = html,
                                           .json = bhi_args_has(args, BHI_BATCH_JSON),
                                           .exit_status =
                                               failed ? BHI_EXIT_POISONED : BHI_EXIT_READY};
    if (!good || !bhi_shards_report(shards, &what, complaint)) {
        if (!ferror(stdout)) { /* otherwise the end of the program reports it */
            bhi_complain("batch", "%s", complaint->text);
        }
        return BHI_EXIT_ENVIRON;
    }
    return what.exit_status;
}

/* -- logs ------------------------------------------------------------------------------------ */

struct logs {
    struct bhi_shards *shards;
    const char *id;
    json_t *list;  /* of its shards; owned */
    json_t *entry; /* of one of them; borrowed */
    bool failed;
};

static bool add_attempt(void *user, const struct bhi_attempt_record *record) {
    struct logs *logs = user;
    const bh_verdict *verdict = &record->verdict;
    json_t *object = BHI_JSON(
        {"attempt", json_integer(record->attempt)}, {"host", bhi_json_text(record->host)},
        {"device", bhi_json_text(verdict->device)}, {"stream", json_integer(record->stream)},
        {"started", record->started_ns ? bhi_json_ms(record->started_ns) : json_null()},
        {"ended", record->ended_ns ? bhi_json_ms(record->ended_ns) : json_null()},
        {"code", record->ended_ns ? json_string(bhi_tally_code(verdict->status)) : json_null()},
        {"blame", bhi_json_blame(verdict->blame)}, {"message", bhi_json_text(verdict->message)});
    return json_array_append_new(json_object_get(logs->entry, "attempts"), object) == 0;
}

/* Adds the lines of the shard's log that begin with the job's id. */
static void add_log(struct logs *logs, const char *shard) {
    char path[64], line[LOG_LINE];
    json_t *list = json_object_get(logs->entry, "log");
    struct stat status;
    snprintf(path, sizeof path, "shards/%s/log", shard);
    const int fd =
        openat(logs->shards->folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file =
        fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? fdopen(fd, "r") : NULL;
    const size_t length = strlen(logs->id);
    bool whole = true; /* the last piece ended its line */
    while (file && !bhi_interrupt_signal() && json_array_size(list) < LOG_LINES &&
           fgets(line, sizeof line, file)) {
        const bool begins = whole;
        whole = strchr(line, '\n');
        line[strcspn(line, "\n")] = '\0';
        if (begins && !strncmp(line, logs->id, length) && line[length] == ':') {
            json_array_append_new(list, bhi_json_text(line));
        }
    }
    if (file) {
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
}

static json_t *add_entry(struct logs *logs, const char *shard, const char *state) {
    logs->entry = json_object();
    BHI_JSON_ADD(logs->entry, {"shard", bhi_json_text(shard)}, {"state", json_string(state)},
                 {"attempts", json_array()}, {"log", json_array()});
    json_array_append_new(logs->list, logs->entry);
    return logs->entry;
}

static bool add_job(void *user, const struct bhi_job_record *record) {
    struct logs *logs = user;
    char kernel[BHI_TALLY_KERNEL], message[1536];
    json_t *entry = add_entry(logs, record->shard, bhi_job_state_name(record->state));
    BHI_JSON_ADD(entry, {"line", bhi_json_number(record->line)},
                 {"kernel", bhi_json_text(bhi_tally_kernel(record, kernel))});
    bhi_tally_message(record, message, sizeof message);
    const bool waits = !strcmp(message, "-") &&
                       (record->state == BHI_JOB_WAITING || record->state == BHI_JOB_SUBMITTED);
    json_object_set_new(
        entry, "message",
        bhi_json_text(waits ? "its turn has not come, or it waits for jobs that it depends on"
                            : message));
    return true;
}

/* A line of a shard that has not begun. */
static bool compare_line(void *user, size_t line, struct bhi_job_spec *spec, const char *bad_id,
                         const struct bhi_complaint *complaint) {
    struct logs *logs = user;
    (void)line, (void)bad_id, (void)complaint;
    const bool found = spec && !strcmp(spec->id, logs->id);
    logs->failed |= found; /* for this file: it is in it */
    if (spec) {
        bhi_job_spec_free(spec);
    }
    return !found;
}

/* Looks into the jobs of shards that have not begun: there is nothing else of them. */
static void find_unbegun(struct logs *logs) {
    for (size_t i = 0; i < logs->shards->count && !bhi_interrupt_signal(); i++) {
        const struct bhi_shard *shard = &logs->shards->shards[i];
        struct bhi_complaint ignored;
        char *path = NULL;
        int error;
        if (shard->state != BHI_SHARD_WAITS || logs->shards->single ||
            asprintf(&path, "%s/shards/%s/jobs.jsonl", logs->shards->path, shard->name) < 0) {
            continue;
        }
        logs->failed = false;
        (void)bhi_job_file_read(path, compare_line, logs, &error, &ignored);
        if (logs->failed) {
            json_object_set_new(
                add_entry(logs, shard->name, bhi_job_state_name(BHI_JOB_SUBMITTED)), "message",
                bhi_json_text("the shard has not begun: its task waits, or nothing was submitted"));
        }
        free(path);
    }
    logs->failed = false;
}

static const char *text_in(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : "-";
}

static void print_attempt(const json_t *attempt) {
    char begin[BHI_QUANTITY], took[BHI_QUANTITY] = "-";
    const double started = json_number_value(json_object_get(attempt, "started"));
    const double ended = json_number_value(json_object_get(attempt, "ended"));
    if (ended > started) {
        bhi_quantity_time(took, (uint64_t)((ended - started) * 1e6));
    }
    printf("  attempt %lld on %s, %s, stream %lld: %s\n",
           (long long)json_integer_value(json_object_get(attempt, "attempt")),
           text_in(attempt, "host"), text_in(attempt, "device"),
           (long long)json_integer_value(json_object_get(attempt, "stream")),
           ended > 0 ? text_in(attempt, "code") : "runs, or was cut off");
    printf("    began %s, took %s\n",
           started > 0 ? bhi_quantity_date(begin, (uint64_t)(started * 1e6)) : "-", took);
    if (strcmp(text_in(attempt, "message"), "-") != 0) {
        printf("    %s\n", text_in(attempt, "message"));
    }
}

static void print_logs(const struct logs *logs) {
    char id[BHI_JOB_ID + 1];
    size_t i, k;
    json_t *entry, *item;
    json_array_foreach(logs->list, i, entry) {
        printf("%s: %s in shard %s", bhi_text_clean(id, sizeof id, logs->id),
               text_in(entry, "state"), text_in(entry, "shard"));
        if (strcmp(text_in(entry, "message"), "-") != 0) {
            printf(": %s", text_in(entry, "message"));
        }
        putchar('\n');
        json_array_foreach(json_object_get(entry, "attempts"), k, item) {
            print_attempt(item);
        }
        json_array_foreach(json_object_get(entry, "log"), k, item) {
            printf("  log: %s\n", json_string_value(item));
        }
    }
}

static int show_logs(struct bhi_shards *shards, const struct bhi_args *args,
                     struct bhi_complaint *complaint) {
    struct logs logs = {.shards = shards, .id = args->operands[0], .list = json_array()};
    size_t i;
    json_t *entry;
    bool good = bhi_shards_read(shards, complaint) &&
                (bhi_store_make_rows(shards->store, UINT32_MAX) ||
                 bhi_refuse(complaint, "the records cannot be read again"));
    good = good && (bhi_store_find_job(shards->store, logs.id, add_job, &logs) ||
                    bhi_refuse(complaint, "the records cannot be read again"));
    json_array_foreach(logs.list, i, entry) {
        logs.entry = entry;
        good = good && bhi_store_find_attempts(shards->store, logs.id, text_in(entry, "shard"),
                                               add_attempt, &logs);
        add_log(&logs, text_in(entry, "shard"));
    }
    if (good && !json_array_size(logs.list)) {
        find_unbegun(&logs);
    }
    int exit_status = BHI_EXIT_READY;
    if (bhi_interrupt_signal()) {
        exit_status = bhi_interrupt_exit_status();
    } else if (!good) {
        exit_status = bhi_complain_environ("batch", "%s", complaint->text);
    } else if (!json_array_size(logs.list)) {
        exit_status = bhi_complain_usage("batch", "%s has no job \"%s\"", shards->path, logs.id);
    } else if (bhi_args_has(args, BHI_BATCH_JSON)) {
        bhi_json_print(json_pack("{s:o, s:O}", "id", bhi_json_text(logs.id), "shards", logs.list));
    } else {
        print_logs(&logs);
    }
    json_decref(logs.list);
    return exit_status;
}

/* -- cancel ---------------------------------------------------------------------------------- */

/* Is there nothing to cancel? Not if tasks of --retry-failed wait. |array| may be NULL. */
static bool has_ended(struct bhi_shards *shards, const struct bhi_slurm_array *array) {
    struct bhi_complaint ignored;
    struct bhi_queue_counts counts;
    if (!bhi_shards_read(shards, &ignored)) {
        return false;
    }
    bhi_shards_counts(shards, &counts);
    return bhi_shards_ended(shards) &&
           counts.of[BHI_JOB_DONE] + counts.of[BHI_JOB_FAILED] + counts.of[BHI_JOB_QUARANTINED] ==
               counts.total &&
           (!array || !bhi_slurm_may_have(array->id, shards->path));
}

/* The file ends the processes that see it; scancel ends tasks that are not there yet. A full folder
 * takes no file: then scancel alone has to do. */
static int cancel(struct bhi_shards *shards) {
    struct bhi_complaint complaint, why;
    struct bhi_slurm_array array;
    uint32_t tasks = 0;
    const enum bhi_array_result result =
        shards->single ? BHI_ARRAY_NONE : bhi_array_load(&array, shards->path, &complaint);
    if (!shards->single && result != BHI_ARRAY_REFUSED &&
        has_ended(shards, result == BHI_ARRAY_LOADED ? &array : NULL)) {
        bhi_complain("batch", "%s: all jobs have ended: there is nothing to cancel", shards->path);
        if (result == BHI_ARRAY_LOADED) {
            bhi_array_free(&array);
        }
        return BHI_EXIT_ENVIRON;
    }
    bool good = bhi_shards_cancel(shards, &why);
    if (!good) {
        bhi_complain("batch", "%s", why.text);
    }
    if (result == BHI_ARRAY_REFUSED ||
        (result == BHI_ARRAY_LOADED && !bhi_slurm_cancel_all(array.id, &tasks, &complaint))) {
        bhi_complain("batch",
                     "%s: no task was removed from Slurm's queue: those that run end in order, and "
                     "those that wait end when they begin; give --cancel again where scancel works",
                     complaint.text);
        good = false;
    }
    if (tasks) {
        bhi_probe_record_remove(shards->path); /* it was one of them, if there was one */
    }
    BHI_AUTO_FREE char *command =
        result == BHI_ARRAY_LOADED ? bhi_batch_slurm_command_of(&array, shards->path) : NULL;
    if (result == BHI_ARRAY_LOADED) {
        bhi_array_free(&array);
    }
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    if (good) {
        printf("%s is cancelled: its processes end in order; --resume continues\n", shards->path);
    }
    if (tasks) {
        printf("%u task%s %s cancelled in Slurm's queue\n", tasks, tasks == 1 ? "" : "s",
               tasks == 1 ? "was" : "were");
    }
    if (good && command) {
        printf("to continue: %s\n", command);
    }
    return good ? BHI_EXIT_READY : BHI_EXIT_ENVIRON;
}

/* -- all three ------------------------------------------------------------------------------- */

int bhi_batch_shards(const struct bhi_args *args) {
    const int request = request_of(args);
    struct bhi_complaint complaint;
    struct bhi_shards shards;
    if (!check(args, request)) {
        return BHI_EXIT_USAGE;
    }
    const char *path = bhi_args_value(args, requests[request].option);
    if (bhi_batch_probe_waits(path)) {
        bool goes_on = false;
        const int exit_status = request == STATUS ? bhi_batch_probe_status(path, args, &goes_on)
                                : request == LOGS ? bhi_batch_probe_logs(path, args)
                                                  : bhi_batch_probe_cancel(path);
        if (!goes_on) {
            return exit_status;
        }
    }
    if (!bhi_shards_open(path, &shards, &complaint)) {
        return bhi_complain_usage("batch", "--%s: %s", bhi_options[requests[request].option].name,
                                  complaint.text);
    }
    int exit_status = BHI_EXIT_READY;
    if (request == STATUS) {
        exit_status = show_status(&shards, args, &complaint);
        bhi_batch_probe_note(path);
    } else if (request == LOGS) {
        exit_status = show_logs(&shards, args, &complaint);
    } else {
        exit_status = cancel(&shards);
    }
    bhi_shards_close(&shards);
    return exit_status;
}
