/* The report of a chaos run for programs: one line. */
#include "chaos/report/report.h"

#include <string.h>

#include "chaos/check/power.h"
#include "chaos/history/device_memory.h"
#include "chaos/report/facts.h"
#include "tool/ending.h"
#include "tool/json.h"

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Returns the name with underscores for blanks, for example "false_success". */
static const char *key_of(enum bhi_anomaly anomaly, char out[32]) {
    snprintf(out, 32, "%s", bhi_anomaly_name(anomaly));
    for (char *at = out; (at = strchr(at, ' '));) {
        *at = '_';
    }
    return out;
}

static json_t *faults(const struct bhi_chaos_result *result) {
    json_t *object = json_object();
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        json_object_set_new(object, bhi_fault_name((enum bhi_fault_kind)kind),
                            number(result->faults[kind]));
    }
    return object;
}

static json_t *pace(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    const struct bhi_facts_pace pace = bhi_facts_pace(history, result);
    json_t *object = json_object();
    json_object_set_new(object, "asked", number(pace.asked));
    json_object_set_new(object, "rate_asked", json_real(history->header.rate));
    json_object_set_new(object, "rate", pace.faults_ns ? json_real(pace.rate) : json_null());
    json_object_set_new(object, "begin_ms", bhi_json_ms(pace.begin_ns));
    json_object_set_new(object, "faults_ms", bhi_json_ms(pace.faults_ns));
    json_object_set_new(object, "settle_ms", bhi_json_ms(pace.settle_ns));
    return object;
}

static json_t *power(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    json_t *object = json_object();
    json_object_set_new(object, "compared", number(result->compared));
    json_object_set_new(object, "found_rate", json_real(bhi_power_rate(result->compared)));
    json_object_set_new(object, "find_rate", json_real(history->header.find_rate));
    return object;
}

static json_t *anomalies(const struct bhi_chaos_result *result) {
    char key[32];
    json_t *object = json_object();
    for (int anomaly = 0; anomaly < BHI_ANOMALIES; anomaly++) {
        json_object_set_new(object, key_of((enum bhi_anomaly)anomaly, key),
                            number(result->by_anomaly[anomaly]));
    }
    return object;
}

static json_t *findings(const struct bhi_chaos_result *result) {
    char key[32];
    json_t *array = json_array();
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct bhi_finding *finding = &result->findings[i];
        json_t *object = json_object();
        json_object_set_new(object, "anomaly", json_string(key_of(finding->anomaly, key)));
        json_object_set_new(object, "operation", bhi_json_known((int64_t)finding->op));
        json_object_set_new(object, "line",
                            finding->record == BHI_FINDING_NO_RECORD
                                ? json_null()
                                : number(bhi_facts_line(finding->record)));
        json_object_set_new(object, "text", bhi_json_text(finding->text));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *recovery(const struct bhi_chaos_result *result) {
    bool any = result->recovery_count > 0;
    unsigned first, end;
    json_t *object = json_object();
    json_t *histogram = json_array();
    bhi_facts_buckets(result, &first, &end);
    for (unsigned i = first; i < end; i++) {
        uint64_t limit = bhi_facts_bucket_to(i);
        json_t *bucket = json_object();
        json_object_set_new(bucket, "from_ms", bhi_json_ms(bhi_facts_bucket_from(i)));
        json_object_set_new(bucket, "to_ms",
                            limit == UINT64_MAX ? json_null() : bhi_json_ms(limit));
        json_object_set_new(bucket, "count", number(result->recovery[i]));
        json_array_append_new(histogram, bucket);
    }
    json_object_set_new(object, "count", number(result->recovery_count));
    json_object_set_new(object, "p50_ms", any ? bhi_json_ms(result->recovery_p50_ns) : json_null());
    json_object_set_new(object, "p99_ms", any ? bhi_json_ms(result->recovery_p99_ns) : json_null());
    json_object_set_new(object, "max_ms", any ? bhi_json_ms(result->recovery_max_ns) : json_null());
    json_object_set_new(object, "histogram", histogram);
    return object;
}

static json_t *leaks(const struct bhi_chaos_result *result) {
    json_t *object = json_object();
    json_object_set_new(object, "found", number(result->by_anomaly[BHI_ANOMALY_LEAK]));
    json_object_set_new(object, "rss_first", number(result->rss_first));
    json_object_set_new(object, "rss_last", number(result->rss_last));
    json_object_set_new(object, "descriptors_first", number(result->descriptors_first));
    json_object_set_new(object, "descriptors_last", number(result->descriptors_last));
    return object;
}

static json_t *known(bool is, uint64_t value) {
    return is ? number(value) : json_null();
}

static json_t *device_memory(const struct bhi_history *history) {
    const struct bhi_record *first, *last;
    json_t *array = json_array();
    for (size_t i = 0; bhi_facts_memory(history, i, &first, &last); i++) {
        json_t *object = json_object();
        json_object_set_new(object, "device", bhi_json_text(first->memory.device));
        json_object_set_new(object, "total", number(first->memory.total));
#define BOTH(name, is, value)                                                                      \
    json_object_set_new(object, name "_first", known(first->memory.is, first->memory.value));      \
    json_object_set_new(object, name "_last",                                                      \
                        last ? known(last->memory.is, last->memory.value) : json_null())
        BOTH("free", budget, unused);
        BOTH("used", nvml, used);
        BOTH("others", listed, others);
        BOTH("utilisation", utilised, utilisation);
#undef BOTH
        json_object_set_new(object, "grown",
                            last ? number(bhi_device_grown(first, last, NULL)) : json_null());
        json_object_set_new(object, "waited_ms",
                            last ? bhi_json_ms(last->memory.waited_ns) : json_null());
        json_array_append_new(array, object);
    }
    return array;
}

bool bhi_chaos_report_json(FILE *stream, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, const char *history_path) {
    const struct bhi_history_header *header = &history->header;
    json_t *object = json_object();
    json_object_set_new(object, "verdict", json_string(bhi_chaos_verdict_name(result->verdict)));
    json_object_set_new(object, "version", bhi_json_text(header->version));
    json_object_set_new(object, "seed", bhi_json_digits(header->seed));
    json_object_set_new(object, "device", bhi_json_text(header->device));
    json_object_set_new(object, "driver", bhi_json_text(header->driver));
    json_object_set_new(object, "streams", number(header->streams));
    json_object_set_new(object, "outside", json_boolean(header->outside));
    json_object_set_new(object, "accelerator", json_boolean(header->accelerator));
    json_object_set_new(object, "complete", json_boolean(history->complete));
    json_object_set_new(object, "elapsed_ms", bhi_json_ms(bhi_facts_elapsed_ns(history)));
    json_object_set_new(object, "operations", number(result->operations));
    json_object_set_new(object, "ready", number(result->ready));
    json_object_set_new(object, "poisoned", number(result->poisoned));
    json_object_set_new(object, "lost", number(result->lost));
    json_object_set_new(object, "refused", number(result->refused));
    json_object_set_new(object, "results", number(result->results));
    json_object_set_new(object, "injected", number(bhi_facts_injected(result)));
    json_object_set_new(object, "faults", faults(result));
    json_object_set_new(object, "missed", number(result->missed));
    json_object_set_new(object, "pace", pace(history, result));
    json_object_set_new(object, "power", power(history, result));
    json_object_set_new(object, "anomalies", anomalies(result));
    json_object_set_new(object, "findings", findings(result));
    json_object_set_new(object, "recovery", recovery(result));
    json_object_set_new(object, "leaks", leaks(result));
    json_object_set_new(object, "device_memory", device_memory(history));
    json_object_set_new(object, "history",
                        history_path ? bhi_json_text(history_path) : json_null());
    bhi_ending_answered();
    const bool good = json_dumpf(object, stream, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 &&
                      fputc('\n', stream) != EOF;
    json_decref(object);
    return good;
}
