/* What is said of a chaos run: to a person and to a program. */
#include <stddef.h>
#include <stdint.h>

#include "harness.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/report/facts.h"
#include "chaos_sample.h"
#include "documented.h"

/* -- for a person -------------------------------------------------------------------------------
 */

static char *text_of(const struct bhi_chaos_result *result, const char *path) {
    char *text = NULL;
    size_t size;
    struct bhi_history history = sample();
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    bhi_chaos_report_text(stream, &history, result, path);
    BHT_EQ(fclose(stream), 0);
    return text;
}

static json_t *json_of(const struct bhi_chaos_result *result, const char *path) {
    char *text = NULL;
    size_t size;
    json_error_t error;
    struct bhi_history history = sample();
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    BHT_TRUE(bhi_chaos_report_json(stream, &history, result, path));
    BHT_EQ(fclose(stream), 0);
    BHT_EQ(strchr(text, '\n'), text + size - 1); /* one line */
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!value) {
        BHT_FAIL("%d:%d: %s", error.line, error.column, error.text);
    }
    free(text);
    return value;
}

static void text_of_a_valid_run(void) {
    struct bhi_chaos_result result = good();
    char *text = text_of(&result, NULL);
    static const char head[] =
        "valid: every promise was kept\n"
        "  run         seed 18446744073709551615, 2 streams, 2.50 s\n"
        "  device      llvmpipe?[31m\n"
        "  operations  12,345: 12,000 ready, 345 poisoned, 0 lost\n"
        "  power       a share of 1 wrong result in 4006 would have been found with a probability "
        "of 95 % "
        "(12,000 results compared); the option asks for 1 in 100\n"
        "  faults      300: 298 kill, 2 slow; 3 more hit nothing\n"
        "  rate        60,000 a second in 5.00 ms; the options ask for 320 at "
        "20 a second\n"
        "  waiting     0 us until the first fault could come, 2.50 s until all work had ended\n"
        "  recovery    300: p50 900 us, p99 2.00 ms, at most 2.50 s\n"
        "                   800 us to 1.60 ms           296  "
        "########################################\n"
        "                  1.60 ms to 3.20 ms             0\n"
        "                  3.20 ms to 6.40 ms             3  #\n";
    static const char tail[] = "              13 min 59 s and longer             1  #\n"
                               "  memory      10.0 MiB at first, 11.0 MiB at last\n"
                               "  descriptors 40 at first, 41 at last\n";
    if (strncmp(text, head, strlen(head)) != 0) {
        BHT_STR_EQ(text, head);
    }
    BHT_STR_HAS(text, tail);
    free(text);
}

static void text_of_an_invalid_run(void) {
    struct bhi_chaos_result result = bad();
    char *text = text_of(&result, "chaos-1.jsonl");
    BHT_STR_HAS(text, "invalid: a promise was broken 100 times\n");
    BHT_STR_HAS(text, ", 1 lost\n");
    BHT_STR_HAS(text, "  lost                   2     4  operation 2 has no end\n");
    BHT_STR_HAS(text, "  false success          1     3  operation 1 is READY, but "
                      "<b>its</b> output ? is wrong\n");
    BHT_STR_HAS(text, "  and 98 more\n");
    BHT_STR_HAS(text, "bulkhead chaos --replay chaos-1.jsonl\n");
    free(text);
}

static void text_of_a_run_of_nothing(void) {
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_UNKNOWN, .finding_count = 1};
    result.by_anomaly[BHI_ANOMALY_UNKNOWN] = 1;
    result.findings[0] = (struct bhi_finding){.anomaly = BHI_ANOMALY_UNKNOWN,
                                              .record = BHI_FINDING_NO_RECORD,
                                              .text = "no fault was injected"};
    char *text = text_of(&result, "chaos-1.jsonl");
    BHT_STR_HAS(text, "unknown: this run proves nothing\n");
    BHT_STR_HAS(text, "  unknown          -     -  no fault was injected\n");
    BHT_STR_HAS(text, "none was measured");
    BHT_EQ(strstr(text, "--replay"), NULL); /* there is nothing to be done again */
    free(text);
    result.cut_short = true;
    result.refused = 1;
    text = text_of(&result, NULL);
    BHT_STR_HAS(text, "unknown: this run proves nothing: it was cut short\n");
    BHT_STR_HAS(text, ", 1 call refused\n");
    free(text);
    json_t *object = json_of(&result, NULL);
    json_t *finding = json_array_get(json_object_get(object, "findings"), 0);
    BHT_TRUE(json_is_null(json_object_get(finding, "line")));
    json_decref(object);
}

/* -- for a program ------------------------------------------------------------------------------
 */

/* Whose 40 s began at 2 s, and which took 50 s in all. */
static void pace_of_a_run(void) {
    struct bhi_record noted[] = {{.kind = BHI_RECORD_SAMPLE, .at_ns = 1000 * MS},
                                 {.kind = BHI_RECORD_SAMPLE, .at_ns = 2000 * MS},
                                 {.kind = BHI_RECORD_FAULT, .at_ns = 3000 * MS},
                                 {.kind = BHI_RECORD_SAMPLE, .at_ns = 50000 * MS}};
    struct bhi_history history = {
        .header = {.rate = 0.5, .duration_ns = 40000 * MS}, .records = noted, .count = 4};
    struct bhi_chaos_result result = {.faults = {[BHI_FAULT_KILL] = 10}};
    struct bhi_facts_pace pace = bhi_facts_pace(&history, &result);
    BHT_EQ(pace.asked, 20);
    BHT_EQ(pace.begin_ns, 2000 * MS);
    BHT_EQ(pace.faults_ns, 40000 * MS);
    BHT_EQ(pace.settle_ns, 8000 * MS);
    BHT_TRUE(pace.rate == 0.25);
    noted[2].at_ns = 45000 * MS; /* a rest was longer than the time */
    BHT_EQ(bhi_facts_pace(&history, &result).faults_ns, 43000 * MS);
    history.header.duration_ns = UINT64_MAX;
    history.header.rate = 10000;
    pace = bhi_facts_pace(&history, &result);
    BHT_EQ(pace.faults_ns, 48000 * MS);
    BHT_EQ(pace.settle_ns, 0);
    history.count = 0;
    pace = bhi_facts_pace(&history, &result);
    BHT_EQ(pace.faults_ns + pace.begin_ns + pace.settle_ns, 0);
}

static void json_of_an_invalid_run(void) {
    struct bhi_chaos_result result = bad();
    json_t *object = json_of(&result, "chaos-1.jsonl");
    assert_text(object, "verdict", "invalid");
    assert_text(object, "seed", "18446744073709551615");
    assert_text(object, "device", "llvmpipe?[31m");
    assert_text(object, "history", "chaos-1.jsonl");
    BHT_EQ(integer(object, "operations"), 12345);
    BHT_EQ(integer(object, "ready"), 12000);
    BHT_EQ(integer(object, "poisoned"), 345);
    BHT_EQ(integer(object, "lost"), 1);
    BHT_EQ(integer(object, "injected"), 300);
    BHT_EQ(integer(object, "missed"), 3);
    BHT_TRUE(json_real_value(json_object_get(object, "elapsed_ms")) == 2500.0);
    documented("## A chaos run", object, "faults,anomalies");
    json_t *power = json_object_get(object, "power");
    BHT_EQ(integer(power, "compared"), 12000);
    BHT_TRUE(json_real_value(json_object_get(power, "find_rate")) == 0.01);
    json_t *pace = json_object_get(object, "pace");
    BHT_EQ(integer(pace, "asked"), 320);
    BHT_EQ(json_real_value(json_object_get(pace, "faults_ms")), 5);
    BHT_EQ(json_real_value(json_object_get(pace, "settle_ms")), 2495);
    BHT_EQ(json_real_value(json_object_get(pace, "rate")), 60000);
    json_t *faults = json_object_get(object, "faults");
    BHT_EQ(json_object_size(faults), BHI_FAULT_KINDS);
    BHT_EQ(integer(faults, "kill"), 298);
    BHT_EQ(integer(faults, "zygote"), 0);
    json_t *anomalies = json_object_get(object, "anomalies");
    BHT_EQ(json_object_size(anomalies), BHI_ANOMALIES);
    BHT_EQ(integer(anomalies, "false_success"), 99);
    json_t *findings = json_object_get(object, "findings");
    BHT_EQ(json_array_size(findings), 2);
    assert_text(json_array_get(findings, 1), "anomaly", "false_success");
    BHT_EQ(integer(json_array_get(findings, 1), "line"), 3);
    json_t *recovery = json_object_get(object, "recovery");
    BHT_EQ(integer(recovery, "count"), 300);
    BHT_TRUE(json_real_value(json_object_get(recovery, "p99_ms")) == 2.0);
    json_t *histogram = json_object_get(recovery, "histogram");
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(histogram); i++) {
        sum += integer(json_array_get(histogram, i), "count");
    }
    BHT_EQ(sum, 300);
    BHT_TRUE(json_real_value(json_object_get(json_array_get(histogram, 0), "from_ms")) == 0.8);
    json_t *last = json_array_get(histogram, json_array_size(histogram) - 1);
    BHT_TRUE(json_is_null(json_object_get(last, "to_ms")));
    json_t *leaks = json_object_get(object, "leaks");
    BHT_EQ(integer(leaks, "found"), 0);
    BHT_EQ(integer(leaks, "rss_first"), 10 << 20);
    BHT_EQ(integer(leaks, "descriptors_last"), 41);
    json_decref(object);
}

/* Two devices, of which the second says nothing; the run ended before anybody looked at the third
 * again. */
static struct bhi_record looks[] = {
    {.kind = BHI_RECORD_MEMORY,
     .memory = {.device = "nvidia:0",
                .budget = true,
                .total = 8ull << 30,
                .unused = 5ull << 30,
                .nvml = true,
                .used = 4 << 20,
                .listed = true,
                .others = 3 << 20,
                .other_processes = 1,
                .utilised = true,
                .utilisation = 1}},
    {.kind = BHI_RECORD_MEMORY, .memory = {.device = "nvidia:1", .total = 4ull << 30}},
    {.kind = BHI_RECORD_MEMORY, .memory = {.device = "nvidia:2"}},
    {.kind = BHI_RECORD_MEMORY, .memory = {.device = "nvidia:1", .last = true}},
    {.kind = BHI_RECORD_MEMORY,
     .memory = {.device = "nvidia:0",
                .last = true,
                .budget = true,
                .total = 8ull << 30,
                .unused = 3ull << 30,
                .nvml = true,
                .used = 2048ull << 20,
                .listed = true,
                .utilised = true,
                .utilisation = 97,
                .waited_ns = 10000 * MS}},
};

static const struct bhi_history looked = {.header = {.streams = 1, .version = "0.1.0"},
                                          .records = looks,
                                          .count = sizeof looks / sizeof looks[0],
                                          .complete = true};

static void memory_of_devices(void) {
    struct bhi_chaos_result result = good();
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    bhi_chaos_report_text(stream, &looked, &result, NULL);
    BHT_EQ(fclose(stream), 0);
    BHT_STR_HAS(text, "  on device   nvidia:0: 5.00 GiB free before, 3.00 GiB after; by NVML 4.00 "
                      "MiB in use before, 2.00 GiB after, 1 % busy before, 97 % after (10.0 s "
                      "later)\n  on device   nvidia:1: how much memory is in use is not known\n");
    BHT_EQ(strstr(text, "nvidia:2"), NULL);
    free(text);

    stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    BHT_TRUE(bhi_chaos_report_json(stream, &looked, &result, NULL));
    BHT_EQ(fclose(stream), 0);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    json_t *devices = json_object_get(object, "device_memory");
    BHT_EQ(json_array_size(devices), 3);
    json_t *first = json_array_get(devices, 0), *second = json_array_get(devices, 1);
    assert_text(first, "device", "nvidia:0");
    BHT_EQ(integer(first, "total"), 8ll << 30);
    BHT_EQ(integer(first, "free_first"), 5ll << 30);
    BHT_EQ(integer(first, "free_last"), 3ll << 30);
    BHT_EQ(integer(first, "used_first"), 4 << 20);
    BHT_EQ(integer(first, "used_last"), 2048ll << 20);
    BHT_EQ(integer(first, "others_first"), 3 << 20);
    BHT_EQ(integer(first, "others_last"), 0);
    BHT_EQ(integer(first, "utilisation_first"), 1);
    BHT_EQ(integer(first, "utilisation_last"), 97);
    BHT_EQ(integer(first, "grown"), 2051ll << 20); /* by the budget; that of others is gone */
    BHT_TRUE(json_real_value(json_object_get(first, "waited_ms")) == 10000.0);
    BHT_EQ(integer(second, "total"), 4ll << 30);
    static const char *const unknown[] = {"free_first",        "free_last",       "used_first",
                                          "used_last",         "others_first",    "others_last",
                                          "utilisation_first", "utilisation_last"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        BHT_TRUE(json_is_null(json_object_get(second, unknown[i])));
    }
    BHT_EQ(json_object_size(first), 4 + sizeof unknown / sizeof *unknown);
    BHT_TRUE(json_is_null(json_object_get(json_array_get(devices, 2), "waited_ms")));
    BHT_TRUE(json_is_null(json_object_get(json_array_get(devices, 2), "grown")));
    json_decref(object);
}

static void json_of_a_run_of_nothing(void) {
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_UNKNOWN};
    json_t *object = json_of(&result, NULL);
    assert_text(object, "verdict", "unknown");
    BHT_TRUE(json_is_null(json_object_get(object, "history")));
    json_t *recovery = json_object_get(object, "recovery");
    BHT_TRUE(json_is_null(json_object_get(recovery, "p50_ms")));
    BHT_EQ(json_array_size(json_object_get(recovery, "histogram")), 0);
    json_decref(object);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(text_of_a_valid_run),      BHT_TEST(text_of_an_invalid_run),
        BHT_TEST(text_of_a_run_of_nothing), BHT_TEST(pace_of_a_run),
        BHT_TEST(json_of_an_invalid_run),   BHT_TEST(json_of_a_run_of_nothing),
        BHT_TEST(memory_of_devices),
    };
    bht_default_flags(BHT_ALLOW_MAPPINGS);  /* a locale stays loaded */
    BHT_EQ(setenv("COLUMNS", "100", 1), 0); /* as for the pages */
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
