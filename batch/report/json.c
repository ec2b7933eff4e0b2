/* The object at the end of a batch, for a program. */
#include "batch/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "batch/report/tally.h"
#include "tool/ending.h"
#include "tool/json.h"
#include "tool/text.h"

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Milliseconds since 1970, or null if not yet. */
static json_t *date(uint64_t ns) {
    return ns ? bhi_json_ms(ns) : json_null();
}

static json_t *text_or_null(const char *text) {
    return text && *text ? bhi_json_text(text) : json_null();
}

static json_t *code(bh_status status) {
    return status == BH_PENDING ? json_null() : json_string(bhi_tally_code(status));
}

static json_t *verdicts(const struct bhi_tally *tally) {
    json_t *object = json_object();
    for (unsigned i = 0; i < BHI_TALLY_STATUSES; i++) {
        if (tally->of[i]) {
            json_object_set_new(object, bhi_tally_code((bh_status)i), number(tally->of[i]));
        }
    }
    if (tally->unknown) {
        json_object_set_new(object, "UNKNOWN", number(tally->unknown));
    }
    return object;
}

static json_t *devices(const struct bhi_tally *tally) {
    json_t *object = json_object();
    for (size_t i = 0; i < tally->device_count; i++) {
        json_object_set_new(object, tally->devices[i].selector, number(tally->devices[i].attempts));
    }
    return object;
}

static json_t *stuck(const struct bhi_report_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->stuck_count; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "id", bhi_json_text(run->stuck[i].id));
        json_object_set_new(object, "line", number(run->stuck[i].line));
        json_object_set_new(object, "message", bhi_json_text(run->stuck[i].message));
        json_array_append_new(list, object);
    }
    return list;
}

/* An empty list where there is one queue. */
static json_t *shards(const struct bhi_report_source *source) {
    json_t *list = json_array();
    for (size_t i = 0; source && i < source->shard_count; i++) {
        const struct bhi_report_shard *shard = &source->shards[i];
        json_t *object = json_object();
        json_object_set_new(object, "shard", bhi_json_text(shard->name));
        json_object_set_new(object, "state", json_string(shard->state));
        json_object_set_new(object, "host", text_or_null(shard->host));
        json_object_set_new(object, "total", number(shard->total));
        for (int state = 0; state < BHI_JOB_STATES; state++) {
            json_object_set_new(object, bhi_job_state_name((enum bhi_job_state)state),
                                number(shard->of[state]));
        }
        json_object_set_new(object, "last", date(shard->last_ns));
        json_object_set_new(object, "clock_ahead_ms", json_real((double)shard->skew_ns / 1e6));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *notes(const struct bhi_report_source *source) {
    json_t *list = json_array();
    for (size_t i = 0; source && i < source->note_count; i++) {
        json_array_append_new(list, bhi_json_text(source->notes[i]));
    }
    return list;
}

static json_t *summary(struct bhi_queue *queue, const struct bhi_tally *tally,
                       const struct bhi_report_run *run) {
    json_t *object = json_object();
    json_object_set_new(object, "batch", bhi_json_text(bhi_tally_batch(queue, run)));
    json_object_set_new(object, "jobs", bhi_json_text(run->jobs_path));
    json_object_set_new(object, "state", bhi_json_text(run->state_folder));
    json_object_set_new(object, "device", run->device ? text_or_null(run->device) : json_null());
    json_object_set_new(object, "streams", number(run->streams));
    json_object_set_new(object, "exit_status", json_integer(run->exit_status));
    json_object_set_new(object, "halted", json_boolean(run->halted));
    json_object_set_new(object, "total", number(tally->counts.total));
    for (int state = 0; state < BHI_JOB_STATES; state++) {
        json_object_set_new(object, bhi_job_state_name((enum bhi_job_state)state),
                            number(tally->counts.of[state]));
    }
    json_object_set_new(object, "elapsed_ms", bhi_json_ms(run->elapsed_ns));
    json_object_set_new(object, "ran", number(run->ran));
    json_object_set_new(object, "rate",
                        run->elapsed_ns
                            ? json_real((double)run->ran / ((double)run->elapsed_ns / 1e9))
                            : json_null());
    json_object_set_new(object, "attempts", number(tally->attempts));
    json_object_set_new(object, "refused", number(tally->refused));
    json_object_set_new(object, "guilty", number(tally->guilty));
    json_object_set_new(object, "cut_off", number(tally->cut_off));
    json_object_set_new(object, "verdicts", verdicts(tally));
    json_object_set_new(object, "devices", devices(tally));
    json_object_set_new(object, "stuck", stuck(run));
    json_object_set_new(object, "shards", shards(run->source));
    json_object_set_new(object, "notes", notes(run->source));
    return object;
}

/* -- the failures: there may be a million, so they are printed as they are read -----------------
 */

struct listing {
    bool any, failed;
};

static bool list_failure(void *user, const struct bhi_job_record *record) {
    struct listing *listing = user;
    char message[1536], kernel[BHI_TALLY_KERNEL];
    if (!bhi_tally_is_failure(record->state)) {
        return true;
    }
    json_t *object = json_object();
    json_object_set_new(object, "id", text_or_null(record->id));
    json_object_set_new(object, "line", number(record->line));
    json_object_set_new(object, "kernel", text_or_null(bhi_tally_kernel(record, kernel)));
    json_object_set_new(object, "state", json_string(bhi_job_state_name(record->state)));
    json_object_set_new(object, "code", code(record->status));
    json_object_set_new(object, "blame", bhi_json_blame(record->blame));
    json_object_set_new(object, "attempts", number(record->attempts));
    json_object_set_new(object, "guilty", number(record->guilty));
    json_object_set_new(object, "origin", text_or_null(record->origin));
    json_object_set_new(object, "device", text_or_null(record->device));
    json_object_set_new(object, "host", text_or_null(record->host));
    json_object_set_new(object, "shard", text_or_null(record->shard));
    json_object_set_new(object, "message",
                        bhi_json_text(bhi_tally_message(record, message, sizeof message)));
    json_object_set_new(object, "submitted", date(record->submitted_ns));
    json_object_set_new(object, "started", date(record->started_ns));
    json_object_set_new(object, "ended", date(record->ended_ns));
    fputs(listing->any ? ",\n    " : "\n    ", stdout);
    listing->any = true;
    listing->failed |= json_dumpf(object, stdout, JSON_REAL_PRECISION(15)) != 0;
    json_decref(object);
    return !listing->failed;
}

bool bhi_report_json(struct bhi_queue *queue, const struct bhi_report_run *run) {
    struct bhi_tally tally;
    struct listing listing = {.any = false};
    if (!bhi_tally_read(queue, run, &tally)) {
        return false;
    }
    json_t *object = summary(queue, &tally, run);
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (!text) {
        return false;
    }
    bhi_ending_answered();
    /* The list is inserted before the brace that ends the object. */
    printf("%.*s,\n  \"failures\": [", (int)(strlen(text) - strlen("\n}")), text);
    free(text);
    bool read = !tally.failures || bhi_tally_each_job(queue, run, list_failure, &listing);
    fputs(listing.any ? "\n  ]\n}\n" : "]\n}\n", stdout);
    return read && !listing.failed;
}
