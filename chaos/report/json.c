/* The report of a chaos run for programs: one line. */
#include "chaos/report/report.h"

#include <string.h>

#include "chaos/check/power.h"
#include "chaos/history/device_memory.h"
#include "chaos/report/facts.h"
#include "tool/ending.h"
#include "tool/json.h"

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
                            bhi_json_number(result->faults[kind]));
    }
    return object;
}

static json_t *pace(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    const struct bhi_facts_pace pace = bhi_facts_pace(history, result);
    return BHI_JSON(
        {"asked", bhi_json_number(pace.asked)}, {"rate_asked", json_real(history->header.rate)},
        {"rate", pace.faults_ns ? json_real(pace.rate) : json_null()},
        {"begin_ms", bhi_json_ms(pace.begin_ns)}, {"faults_ms", bhi_json_ms(pace.faults_ns)},
        {"settle_ms", bhi_json_ms(pace.settle_ns)});
}

static json_t *power(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    return BHI_JSON({"compared", bhi_json_number(result->compared)},
                    {"found_rate", json_real(bhi_power_rate(result->compared))},
                    {"find_rate", json_real(history->header.find_rate)});
}

static json_t *anomalies(const struct bhi_chaos_result *result) {
    char key[32];
    json_t *object = json_object();
    for (int anomaly = 0; anomaly < BHI_ANOMALIES; anomaly++) {
        json_object_set_new(object, key_of((enum bhi_anomaly)anomaly, key),
                            bhi_json_number(result->by_anomaly[anomaly]));
    }
    return object;
}

static json_t *findings(const struct bhi_chaos_result *result) {
    char key[32];
    json_t *array = json_array();
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct bhi_finding *finding = &result->findings[i];
        json_t *object = BHI_JSON({"anomaly", json_string(key_of(finding->anomaly, key))},
                                  {"operation", bhi_json_known((int64_t)finding->op)},
                                  {"line", finding->record == BHI_FINDING_NO_RECORD
                                               ? json_null()
                                               : bhi_json_number(bhi_facts_line(finding->record))},
                                  {"text", bhi_json_text(finding->text)});
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
        json_t *bucket = BHI_JSON({"from_ms", bhi_json_ms(bhi_facts_bucket_from(i))},
                                  {"to_ms", limit == UINT64_MAX ? json_null() : bhi_json_ms(limit)},
                                  {"count", bhi_json_number(result->recovery[i])});
        json_array_append_new(histogram, bucket);
    }
    BHI_JSON_ADD(object, {"count", bhi_json_number(result->recovery_count)},
                 {"p50_ms", any ? bhi_json_ms(result->recovery_p50_ns) : json_null()},
                 {"p99_ms", any ? bhi_json_ms(result->recovery_p99_ns) : json_null()},
                 {"max_ms", any ? bhi_json_ms(result->recovery_max_ns) : json_null()},
                 {"histogram", histogram});
    return object;
}

static json_t *leaks(const struct bhi_chaos_result *result) {
    return BHI_JSON({"found", bhi_json_number(result->by_anomaly[BHI_ANOMALY_LEAK])},
                    {"rss_first", bhi_json_number(result->rss_first)},
                    {"rss_last", bhi_json_number(result->rss_last)},
                    {"descriptors_first", bhi_json_number(result->descriptors_first)},
                    {"descriptors_last", bhi_json_number(result->descriptors_last)});
}

static json_t *known(bool is, uint64_t value) {
    return is ? bhi_json_number(value) : json_null();
}

static json_t *device_memory(const struct bhi_history *history) {
    const struct bhi_record *first, *last;
    json_t *array = json_array();
    for (size_t i = 0; bhi_facts_memory(history, i, &first, &last); i++) {
        json_t *object = BHI_JSON({"device", bhi_json_text(first->memory.device)},
                                  {"total", bhi_json_number(first->memory.total)});
#define BOTH(name, is, value)                                                                      \
    json_object_set_new(object, name "_first", known(first->memory.is, first->memory.value));      \
    json_object_set_new(object, name "_last",                                                      \
                        last ? known(last->memory.is, last->memory.value) : json_null())
        BOTH("free", budget, unused);
        BOTH("used", nvml, used);
        BOTH("others", listed, others);
        BOTH("utilisation", utilised, utilisation);
#undef BOTH
        BHI_JSON_ADD(
            object,
            {"grown", last ? bhi_json_number(bhi_device_grown(first, last, NULL)) : json_null()},
            {"waited_ms", last ? bhi_json_ms(last->memory.waited_ns) : json_null()});
        json_array_append_new(array, object);
    }
    return array;
}

bool bhi_chaos_report_json(FILE *stream, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, const char *history_path) {
    const struct bhi_history_header *header = &history->header;
    json_t *object = BHI_JSON(
        {"verdict", json_string(bhi_chaos_verdict_name(result->verdict))},
        {"version", bhi_json_text(header->version)}, {"seed", bhi_json_digits(header->seed)},
        {"device", bhi_json_text(header->device)}, {"driver", bhi_json_text(header->driver)},
        {"streams", bhi_json_number(header->streams)}, {"outside", json_boolean(header->outside)},
        {"accelerator", json_boolean(header->accelerator)},
        {"complete", json_boolean(history->complete)},
        {"elapsed_ms", bhi_json_ms(bhi_facts_elapsed_ns(history))},
        {"operations", bhi_json_number(result->operations)},
        {"ready", bhi_json_number(result->ready)}, {"poisoned", bhi_json_number(result->poisoned)},
        {"lost", bhi_json_number(result->lost)}, {"refused", bhi_json_number(result->refused)},
        {"results", bhi_json_number(result->results)},
        {"injected", bhi_json_number(bhi_facts_injected(result))}, {"faults", faults(result)},
        {"missed", bhi_json_number(result->missed)}, {"pace", pace(history, result)},
        {"power", power(history, result)}, {"anomalies", anomalies(result)},
        {"findings", findings(result)}, {"recovery", recovery(result)}, {"leaks", leaks(result)},
        {"device_memory", device_memory(history)},
        {"history", history_path ? bhi_json_text(history_path) : json_null()});
    bhi_ending_answered();
    const bool good = json_dumpf(object, stream, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 &&
                      fputc('\n', stream) != EOF;
    json_decref(object);
    return good;
}
