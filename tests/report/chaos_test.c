/* What is said of a chaos run: to a person and to a program. */
#include "harness.h"
#include <jansson.h>

#include "chaos/report/facts.h"
#include "chaos_sample.h"
#include "documented.h"

/* -- for a person -------------------------------------------------------------------------------
 */

static const char *text_of_history(const struct bhi_history *history,
                                   const struct bhi_chaos_result *result, const char *path) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    bhi_chaos_report_text(stream, history, result, path);
    BHT_EQ(fclose(stream), 0);
    return bht_own(text);
}

static const char *text_of(const struct bhi_chaos_result *result, const char *path) {
    const struct bhi_history history = sample();
    return text_of_history(&history, result, path);
}

static json_t *json_of_history(const struct bhi_history *history,
                               const struct bhi_chaos_result *result, const char *path) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    BHT_NE(stream, NULL);
    BHT_TRUE(bhi_chaos_report_json(stream, history, result, path));
    BHT_EQ(fclose(stream), 0);
    BHT_EQ(strchr(text, '\n'), text + size - 1); /* one line */
    return own_json(bht_own(text));
}

static json_t *json_of(const struct bhi_chaos_result *result, const char *path) {
    const struct bhi_history history = sample();
    return json_of_history(&history, result, path);
}

TEST(text_of_a_valid_run) {
    struct bhi_chaos_result result = good();
    const char *text = text_of(&result, NULL);
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
}

TEST(text_of_an_invalid_run) {
    struct bhi_chaos_result result = bad();
    const char *text = text_of(&result, "chaos-1.jsonl");
    BHT_STR_HAS(text, "invalid: a promise was broken 100 times\n");
    BHT_STR_HAS(text, ", 1 lost\n");
    BHT_STR_HAS(text, "  lost                   2     4  operation 2 has no end\n");
    BHT_STR_HAS(text, "  false success          1     3  operation 1 is READY, but "
                      "<b>its</b> output ? is wrong\n");
    BHT_STR_HAS(text, "  and 98 more\n");
    BHT_STR_HAS(text, "bulkhead chaos --replay chaos-1.jsonl\n");
    result.by_anomaly[BHI_ANOMALY_UNKNOWN] = 3; /* nothing that was broken */
    text = text_of(&result, "chaos-1.jsonl");
    BHT_STR_HAS(text, "invalid: a promise was broken 100 times\n");
    BHT_STR_HAS(text, "  and 101 more\n");
}

TEST(text_of_a_run_of_nothing) {
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_UNKNOWN, .finding_count = 1};
    result.by_anomaly[BHI_ANOMALY_UNKNOWN] = 1;
    result.findings[0] = (struct bhi_finding){.anomaly = BHI_ANOMALY_UNKNOWN,
                                              .record = BHI_FINDING_NO_RECORD,
                                              .text = "no fault was injected"};
    const char *text = text_of(&result, "chaos-1.jsonl");
    BHT_STR_HAS(text, "unknown: this run proves nothing\n");
    BHT_STR_HAS(text, "  unknown          -     -  no fault was injected\n");
    BHT_STR_HAS(text, "none was measured");
    BHT_EQ(strstr(text, "--replay"), NULL); /* there is nothing to be done again */
    result.cut_short = true;
    result.refused = 1;
    text = text_of(&result, NULL);
    BHT_STR_HAS(text, "unknown: this run proves nothing: it was cut short\n");
    BHT_STR_HAS(text, ", 1 call refused\n");
    assert_json(json_of(&result, NULL), "{`findings`: [{`line`: null}]}");
}

/* -- for a program ------------------------------------------------------------------------------
 */

/* Whose 40 s began at 2 s, and which took 50 s in all. */
TEST(pace_of_a_run) {
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
    history.header.faults_asked = 10; /* no time is asked for: it ends with the last of them */
    noted[2].at_ns = 12000 * MS;
    BHT_EQ(bhi_facts_pace(&history, &result).faults_ns, 10000 * MS);
    history.header.faults_asked = 0;
    history.header.duration_ns = UINT64_MAX;
    history.header.rate = 10000;
    pace = bhi_facts_pace(&history, &result);
    BHT_EQ(pace.faults_ns, 48000 * MS);
    BHT_EQ(pace.settle_ns, 0);
    history.count = 0;
    pace = bhi_facts_pace(&history, &result);
    BHT_EQ(pace.faults_ns + pace.begin_ns + pace.settle_ns, 0);
}

TEST(json_of_an_invalid_run) {
    struct bhi_chaos_result result = bad();
    json_t *object = json_of(&result, "chaos-1.jsonl");
    assert_json(object,
                "{`verdict`: `invalid`, `seed`: `18446744073709551615`, `device`: `llvmpipe?[31m`,"
                "`history`: `chaos-1.jsonl`, `operations`: 12345, `ready`: 12000, `poisoned`: 345,"
                "`lost`: 1, `injected`: 300, `missed`: 3, `elapsed_ms`: 2500.0,"
                "`power`: {`compared`: 12000, `find_rate`: 0.01},"
                "`pace`: {`asked`: 320, `faults_ms`: 5.0, `settle_ms`: 2495.0, `rate`: 60000.0},"
                "`faults`: {`kill`: 298, `zygote`: 0}, `anomalies`: {`false_success`: 99},"
                "`findings`: [{}, {`anomaly`: `false_success`, `line`: 3}],"
                "`recovery`: {`count`: 300, `p99_ms`: 2.0},"
                "`leaks`: {`found`: 0, `rss_first`: 10485760, `descriptors_last`: 41}}");
    documented("## A chaos run", object, "faults,anomalies");
    BHT_EQ(json_object_size(json_object_get(object, "faults")), BHI_FAULT_KINDS);
    BHT_EQ(json_object_size(json_object_get(object, "anomalies")), BHI_ANOMALIES);
    json_t *histogram = json_object_get(json_object_get(object, "recovery"), "histogram"), *bucket;
    json_int_t sum = 0;
    size_t i;
    json_array_foreach(histogram, i, bucket) {
        sum += json_integer_value(json_object_get(bucket, "count"));
    }
    BHT_EQ(sum, 300);
    assert_json(json_array_get(histogram, 0), "{`from_ms`: 0.8}");
    assert_json(json_array_get(histogram, i - 1), "{`to_ms`: null}");
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
                                          .count = BHT_COUNT(looks),
                                          .complete = true};

TEST(memory_of_devices) {
    struct bhi_chaos_result result = good();
    const char *text = text_of_history(&looked, &result, NULL);
    BHT_STR_HAS(text, "  on device   nvidia:0: 5.00 GiB free before, 3.00 GiB after; by NVML 4.00 "
                      "MiB in use before, 2.00 GiB after, 1 % busy before, 97 % after (10.0 s "
                      "later)\n  on device   nvidia:1: how much memory is in use is not known\n");
    BHT_EQ(strstr(text, "nvidia:2"), NULL);
    json_t *object = json_of_history(&looked, &result, NULL);
    /* It has grown by the budget; what others had is gone. */
    assert_json(object,
                "{`device_memory`: [{`device`: `nvidia:0`, `total`: 8589934592,"
                "`free_first`: 5368709120, `free_last`: 3221225472, `used_first`: 4194304,"
                "`used_last`: 2147483648, `others_first`: 3145728, `others_last`: 0,"
                "`utilisation_first`: 1, `utilisation_last`: 97, `grown`: 2150629376,"
                "`waited_ms`: 10000.0},"
                "{`total`: 4294967296, `free_first`: null, `free_last`: null, `used_first`: null,"
                "`used_last`: null, `others_first`: null, `others_last`: null,"
                "`utilisation_first`: null, `utilisation_last`: null},"
                "{`waited_ms`: null, `grown`: null}]}");
    BHT_EQ(json_object_size(json_array_get(json_object_get(object, "device_memory"), 0)), 12);
}

TEST(json_of_a_run_of_nothing) {
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_UNKNOWN};
    assert_json(json_of(&result, NULL), "{`verdict`: `unknown`, `history`: null,"
                                        "`recovery`: {`p50_ms`: null, `histogram`: []}}");
}

static void at_start(void) {
    bht_default_flags(BHT_ALLOW_MAPPINGS);  /* a locale stays loaded */
    BHT_EQ(setenv("COLUMNS", "100", 1), 0); /* as for the pages */
}

BHT_AT_START(at_start())
