#include "batch/report/tally.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tool/quantity.h"

static void count_device(struct bhi_tally *tally, const char *selector) {
    size_t at = 0;
    while (at < tally->device_count && strcmp(tally->devices[at].selector, selector) != 0) {
        at++;
    }
    if (!*selector || at == BHI_TALLY_DEVICES) {
        return;
    }
    if (at == tally->device_count) {
        snprintf(tally->devices[at].selector, sizeof tally->devices[at].selector, "%s", selector);
        tally->device_count++;
    }
    tally->devices[at].attempts++;
}

/* Returns false once a job names a device. Quotes inside strings are escaped in the text, so a
 * match is a key. */
static bool find_device(void *user, const struct bhi_job_record *record) {
    bool *found = user;
    *found = record->text && strstr(record->text, "\"device\":");
    return !*found;
}

static bool count_attempt(void *user, const struct bhi_attempt_record *record) {
    struct bhi_tally *tally = user;
    uint64_t begin = record->started_ns, end = record->ended_ns ? record->ended_ns : begin;
    tally->attempts += record->started;
    tally->refused += !record->started;
    tally->guilty += record->guilty;
    if (!record->ended_ns) {
        tally->cut_off += !record->runs;
    } else if ((unsigned)record->verdict.status < BHI_TALLY_STATUSES) {
        tally->of[record->verdict.status]++;
    } else {
        tally->unknown++;
    }
    count_device(tally, record->verdict.device);
    if (begin && (!tally->first_ns || begin < tally->first_ns)) {
        tally->first_ns = begin;
    }
    if (end > tally->last_ns) {
        tally->last_ns = end;
    }
    return true;
}

static bool each_job(struct bhi_queue *queue, const struct bhi_report_run *run,
                     bool (*visit)(void *user, const struct bhi_job_record *record), void *user) {
    return run->source ? run->source->each_job(run->source->self, visit, user)
                       : bhi_queue_each_job(queue, visit, user);
}

bool bhi_tally_each_attempt(struct bhi_queue *queue, const struct bhi_report_run *run,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user) {
    return run->source ? run->source->each_attempt(run->source->self, visit, user)
                       : bhi_queue_each_attempt(queue, visit, user);
}

const char *bhi_tally_batch(const struct bhi_queue *queue, const struct bhi_report_run *run) {
    return run->source ? run->source->batch_id : bhi_queue_batch_id(queue);
}

bool bhi_tally_each_job(struct bhi_queue *queue, const struct bhi_report_run *run,
                        bool (*visit)(void *user, const struct bhi_job_record *record),
                        void *user) {
    for (size_t i = 0; i < run->bad_count; i++) {
        const struct bhi_report_bad *bad = &run->bad[i];
        const struct bhi_job_record record = {.id = bad->id,
                                              .line = bad->line,
                                              .state = BHI_JOB_FAILED,
                                              .origin = bad->origin,
                                              .status = BH_PENDING,
                                              .message = bad->message};
        if (!visit(user, &record)) {
            return true;
        }
    }
    return each_job(queue, run, visit, user);
}

bool bhi_tally_read(struct bhi_queue *queue, const struct bhi_report_run *run,
                    struct bhi_tally *out_tally) {
    *out_tally = (struct bhi_tally){0};
    if (run->source) {
        run->source->counts(run->source->self, &out_tally->counts);
    } else {
        bhi_queue_counts(queue, &out_tally->counts);
    }
    out_tally->counts.total += run->bad_count;
    out_tally->counts.of[BHI_JOB_FAILED] += run->bad_count;
    for (int state = 0; state < BHI_JOB_STATES; state++) {
        const bool fails = bhi_tally_is_failure((enum bhi_job_state)state);
        out_tally->failures += fails ? out_tally->counts.of[state] : 0;
    }
    if (!bhi_tally_each_attempt(queue, run, count_attempt, out_tally)) {
        return false;
    }
    out_tally->shows_devices = out_tally->device_count > 1 || (run->device && *run->device);
    if (out_tally->shows_devices) {
        return true;
    }
    return run->source ? run->source->names_device(run->source->self, &out_tally->shows_devices)
                       : bhi_queue_each_job(queue, find_device, &out_tally->shows_devices);
}

const char *bhi_tally_code(bh_status status) {
    if (status == BH_OK) {
        return "READY";
    }
    return status == BH_PENDING ? "-" : bh_status_name(status);
}

const char *bhi_tally_message(const struct bhi_job_record *record, char *out, size_t capacity) {
    if (*record->message) {
        snprintf(out, capacity, "%s", record->message);
    } else if (*record->origin) {
        snprintf(out, capacity, "never ran: it depends on %s, which is not done", record->origin);
    } else if (record->status != BH_PENDING && record->status != BH_OK) {
        snprintf(out, capacity, "%s", bh_status_text(record->status));
    } else {
        snprintf(out, capacity, "-");
    }
    return out;
}

const char *bhi_tally_id(const struct bhi_job_record *record, char out[BHI_TALLY_ID]) {
    if (*record->id) {
        return record->id;
    }
    snprintf(out, BHI_TALLY_ID, "line %zu", record->line);
    return out;
}

const char *bhi_tally_kernel(const struct bhi_job_record *record, char out[BHI_TALLY_KERNEL]) {
    json_t *object = record->text ? json_loads(record->text, 0, NULL) : NULL;
    const char *kernel = json_string_value(json_object_get(object, "kernel"));
    const char *expression = json_string_value(json_object_get(object, "eval"));
    snprintf(out, BHI_TALLY_KERNEL, "%s", kernel ? kernel : expression ? expression : "");
    json_decref(object);
    return out;
}

const char *bhi_tally_kernel_short(const struct bhi_job_record *record,
                                   char out[BHI_TALLY_KERNEL]) {
    json_t *object = record->text ? json_loads(record->text, 0, NULL) : NULL;
    const char *kernel = json_string_value(json_object_get(object, "kernel"));
    const char *entry = json_string_value(json_object_get(object, "entry"));
    const char *slash = kernel ? strrchr(kernel, '/') : NULL;
    if (kernel) {
        snprintf(out, BHI_TALLY_KERNEL, "%s%s%s", slash ? slash + 1 : kernel, entry ? ":" : "",
                 entry ? entry : "");
    } else {
        bhi_tally_kernel(record, out);
    }
    json_decref(object);
    return *out ? out : "-";
}

const char *bhi_tally_device(const struct bhi_job_record *record) {
    return record->device && *record->device ? record->device : "-";
}

const char *bhi_tally_host(const struct bhi_job_record *record) {
    return record->host && *record->host ? record->host : "-";
}

const char *bhi_tally_shard(const struct bhi_job_record *record) {
    return record->shard ? record->shard : "-";
}

const char *bhi_tally_clock(const struct bhi_report_shard *shard, char out[BHI_TALLY_CLOCK]) {
    const bool ahead = shard->skew_ns > 0;
    char time[BHI_QUANTITY];
    const uint64_t skew_ns = (uint64_t)(ahead ? shard->skew_ns : -shard->skew_ns);
    snprintf(out, BHI_TALLY_CLOCK, "-");
    if (skew_ns) {
        snprintf(out, BHI_TALLY_CLOCK, "%s %s", bhi_quantity_time(time, skew_ns),
                 ahead ? "ahead" : "behind");
    }
    return out;
}

const char *bhi_tally_devices(const struct bhi_tally *tally, char *out, size_t capacity) {
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i < tally->device_count && used < capacity; i++) {
        used += (size_t)snprintf(out + used, capacity - used, "%s%s %llu", i ? ", " : "",
                                 tally->devices[i].selector,
                                 (unsigned long long)tally->devices[i].attempts);
    }
    return out;
}

int bhi_tally_rank(const struct bhi_job_record *record) {
    return record->state == BHI_JOB_CANCELLED ? 2 : *record->origin != 0;
}

bool bhi_tally_is_failure(enum bhi_job_state state) {
    return state == BHI_JOB_FAILED || state == BHI_JOB_QUARANTINED || state == BHI_JOB_CANCELLED;
}
