/* The object at the end of a batch, for a program. */
#include "batch/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "batch/report/tally.h"
#include "tool/ending.h"
#include "tool/json.h"
#include "tool/text.h"

/* Milliseconds since 1970, or null if not yet. */
static json_t *date(uint64_t ns) {
    return ns ? bhi_json_ms(ns) : json_null();
}

static json_t *code(bh_status status) {
    return status == BH_PENDING ? json_null() : json_string(bhi_tally_code(status));
}

static json_t *verdicts(const struct bhi_tally *tally) {
    json_t *object = json_object();
    for (unsigned i = 0; i < BHI_TALLY_STATUSES; i++) {
        if (tally->of[i]) {
            json_object_set_new(object, bhi_tally_code((bh_status)i),
                                bhi_json_number(tally->of[i]));
        }
    }
    if (tally->unknown) {
        json_object_set_new(object, "UNKNOWN", bhi_json_number(tally->unknown));
    }
    return object;
}

static json_t *devices(const struct bhi_tally *tally) {
    json_t *object = json_object();
    for (size_t i = 0; i < tally->device_count; i++) {
        json_object_set_new(object, tally->devices[i].selector,
                            bhi_json_number(tally->devices[i].attempts));
    }
    return object;
}

static json_t *stuck(const struct bhi_report_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->stuck_count; i++) {
        json_t *object = BHI_JSON({"id", bhi_json_text(run->stuck[i].id)},
                                  {"line", bhi_json_number(run->stuck[i].line)},
                                  {"message", bhi_json_text(run->stuck[i].message)});
        json_array_append_new(list, object);
    }
    return list;
}

/* An empty list where there is one queue. */
static json_t *shards(const struct bhi_report_source *source) {
    json_t *list = json_array();
    for (size_t i = 0; source && i < source->shard_count; i++) {
        const struct bhi_report_shard *shard = &source->shards[i];
        json_t *object = BHI_JSON(
            {"shard", bhi_json_text(shard->name)}, {"state", json_string(shard->state)},
            {"host", bhi_json_text_or_null(shard->host)}, {"total", bhi_json_number(shard->total)});
        for (int state = 0; state < BHI_JOB_STATES; state++) {
            json_object_set_new(object, bhi_job_state_name((enum bhi_job_state)state),
                                bhi_json_number(shard->of[state]));
        }
        BHI_JSON_ADD(object, {"last", date(shard->last_ns)},
                     {"clock_ahead_ms", json_real((double)shard->skew_ns / 1e6)});
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
    json_t *object = BHI_JSON(
        {"batch", bhi_json_text(bhi_tally_batch(queue, run))},
        {"jobs", bhi_json_text(run->jobs_path)}, {"state", bhi_json_text(run->state_folder)},
        {"device", run->device ? bhi_json_text_or_null(run->device) : json_null()},
        {"streams", bhi_json_number(run->streams)}, {"exit_status", json_integer(run->exit_status)},
        {"halted", json_boolean(run->halted)}, {"total", bhi_json_number(tally->counts.total)});
    for (int state = 0; state < BHI_JOB_STATES; state++) {
        json_object_set_new(object, bhi_job_state_name((enum bhi_job_state)state),
                            bhi_json_number(tally->counts.of[state]));
    }
    BHI_JSON_ADD(
        object, {"elapsed_ms", bhi_json_ms(run->elapsed_ns)}, {"ran", bhi_json_number(run->ran)},
        {"rate", run->elapsed_ns ? json_real((double)run->ran / ((double)run->elapsed_ns / 1e9))
                                 : json_null()},
        {"attempts", bhi_json_number(tally->attempts)},
        {"refused", bhi_json_number(tally->refused)}, {"guilty", bhi_json_number(tally->guilty)},
        {"cut_off", bhi_json_number(tally->cut_off)}, {"verdicts", verdicts(tally)},
        {"devices", devices(tally)}, {"stuck", stuck(run)}, {"shards", shards(run->source)},
        {"notes", notes(run->source)});
    return object;
}

/* -- the failures: there may be a million, so they are printed as they are read -------------- */

struct listing {
    bool any, failed;
};

static bool list_failure(void *user, const struct bhi_job_record *record) {
    struct listing *listing = user;
    char message[1536], kernel[BHI_TALLY_KERNEL];
    if (!bhi_tally_is_failure(record->state)) {
        return true;
    }
    json_t *object = BHI_JSON(
        {"id", bhi_json_text_or_null(record->id)}, {"line", bhi_json_number(record->line)},
        {"kernel", bhi_json_text_or_null(bhi_tally_kernel(record, kernel))},
        {"state", json_string(bhi_job_state_name(record->state))}, {"code", code(record->status)},
        {"blame", bhi_json_blame(record->blame)}, {"attempts", bhi_json_number(record->attempts)},
        {"guilty", bhi_json_number(record->guilty)},
        {"origin", bhi_json_text_or_null(record->origin)},
        {"device", bhi_json_text_or_null(record->device)},
        {"host", bhi_json_text_or_null(record->host)},
        {"shard", bhi_json_text_or_null(record->shard)},
        {"message", bhi_json_text(bhi_tally_message(record, message, sizeof message))},
        {"submitted", date(record->submitted_ns)}, {"started", date(record->started_ns)},
        {"ended", date(record->ended_ns)});
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
