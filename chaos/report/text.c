/* The report of a chaos run for people. */
#include "chaos/report/report.h"

#include <string.h>

#include "chaos/check/power.h"
#include "chaos/report/facts.h"
#include "tool/quantity.h"
#include "tool/report/columns.h"
#include "tool/text.h"

enum { LABEL = 14, SHOWN = 20, BAR = 40 };

static void label(FILE *stream, const char *text) {
    fprintf(stream, "  %-*s", LABEL - 2, text);
}

static void print_verdict(FILE *stream, const struct bhi_chaos_result *result) {
    static const enum bhi_tone tones[] = {[BHI_CHAOS_VALID] = BHI_TONE_GOOD,
                                          [BHI_CHAOS_INVALID] = BHI_TONE_BAD,
                                          [BHI_CHAOS_UNKNOWN] = BHI_TONE_WARN};
    char sentence[80];
    bhi_columns_tone(stream, tones[result->verdict], bhi_chaos_verdict_name(result->verdict));
    fprintf(stream, ": %s\n", bhi_facts_sentence(result, sentence, sizeof sentence));
}

static void print_run(FILE *stream, const struct bhi_history *history) {
    const struct bhi_history_header *header = &history->header;
    char text[256], elapsed[BHI_QUANTITY];
    label(stream, "run");
    fprintf(stream, "seed %llu, %u stream%s, %s%s%s\n", (unsigned long long)header->seed,
            header->streams, header->streams == 1 ? "" : "s",
            bhi_quantity_time(elapsed, bhi_facts_elapsed_ns(history)),
            header->outside ? ", faults from outside" : "", history->complete ? "" : ", cut short");
    label(stream, "device");
    fprintf(stream, "%s\n", bhi_text_clean(text, sizeof text, header->device));
}

static void print_operations(FILE *stream, const struct bhi_chaos_result *result) {
    const struct {
        uint64_t count;
        const char *name;
        bool always;
    } parts[] = {{result->ready, "ready", true},
                 {result->poisoned, "poisoned", true},
                 {result->lost, "lost", true},
                 {result->refused, result->refused == 1 ? "call refused" : "calls refused", false}};
    char number[BHI_QUANTITY];
    label(stream, "operations");
    fprintf(stream, "%s", bhi_quantity_count(number, result->operations));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count || parts[i].always) {
            fprintf(stream, "%s%s %s", i ? ", " : ": ", bhi_quantity_count(number, parts[i].count),
                    parts[i].name);
        }
    }
    fputc('\n', stream);
}

static void print_faults(FILE *stream, const struct bhi_chaos_result *result) {
    char number[BHI_QUANTITY];
    const char *separator = ": ";
    label(stream, "faults");
    fprintf(stream, "%s", bhi_quantity_count(number, bhi_facts_injected(result)));
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (!result->faults[kind]) {
            continue;
        }
        fprintf(stream, "%s%s %s", separator, bhi_quantity_count(number, result->faults[kind]),
                bhi_fault_name((enum bhi_fault_kind)kind));
        separator = ", ";
    }
    if (result->missed) {
        fprintf(stream, "; %s more hit nothing", bhi_quantity_count(number, result->missed));
    }
    fputc('\n', stream);
}

static void print_power(FILE *stream, const struct bhi_history *history,
                        const struct bhi_chaos_result *result) {
    char results[BHI_QUANTITY];
    const double asked = history->header.find_rate;
    label(stream, "power");
    fprintf(stream,
            "a share of 1 wrong result in %.4g would have been found with a probability of 95 %% "
            "(%s result%s compared)",
            1 / bhi_power_rate(result->compared), bhi_quantity_count(results, result->compared),
            result->compared == 1 ? "" : "s");
    if (asked > 0) {
        fprintf(stream, "; the option asks for 1 in %.4g", 1 / asked);
    }
    fputc('\n', stream);
}

static void print_pace(FILE *stream, const struct bhi_history *history,
                       const struct bhi_chaos_result *result) {
    const struct bhi_facts_pace pace = bhi_facts_pace(history, result);
    char number[BHI_QUANTITY], rate[BHI_QUANTITY], faults[BHI_QUANTITY], begin[BHI_QUANTITY],
        settle[BHI_QUANTITY];
    label(stream, "rate");
    fprintf(stream, "%s in %s; the options ask for %s at %.4g a second\n",
            bhi_quantity_rate(rate, bhi_facts_injected(result), pace.faults_ns),
            bhi_quantity_time(faults, pace.faults_ns), bhi_quantity_count(number, pace.asked),
            history->header.rate);
    label(stream, "waiting");
    fprintf(stream, "%s until the first fault could come, %s until all work had ended\n",
            bhi_quantity_time(begin, pace.begin_ns), bhi_quantity_time(settle, pace.settle_ns));
}

static void print_histogram(FILE *stream, const struct bhi_chaos_result *result) {
    unsigned first, end;
    uint64_t most = bhi_facts_bucket_most(result);
    if (!bhi_facts_buckets(result, &first, &end)) {
        return;
    }
    for (unsigned i = first; i < end; i++) {
        char from[BHI_QUANTITY], to[BHI_QUANTITY + 8], number[BHI_QUANTITY];
        uint64_t limit = bhi_facts_bucket_to(i);
        int bar = (int)((double)result->recovery[i] / (double)most * BAR + 0.5);
        if (limit == UINT64_MAX) {
            snprintf(to, sizeof to, "and longer");
        } else {
            snprintf(to, sizeof to, "to %s", bhi_quantity_time(number, limit));
        }
        fprintf(stream, "%*s%11s %-14s %9s", LABEL, "",
                bhi_quantity_time(from, bhi_facts_bucket_from(i)), to,
                bhi_quantity_count(number, result->recovery[i]));
        if (result->recovery[i]) {
            fprintf(stream, "  %.*s", bar ? bar : 1, "########################################");
        }
        fputc('\n', stream);
    }
}

static void print_recovery(FILE *stream, const struct bhi_chaos_result *result) {
    char number[BHI_QUANTITY], p50[BHI_QUANTITY], p99[BHI_QUANTITY], max[BHI_QUANTITY];
    label(stream, "recovery");
    if (!result->recovery_count) {
        fputs("none was measured\n", stream);
        return;
    }
    fprintf(stream, "%s: p50 %s, p99 %s, at most %s\n",
            bhi_quantity_count(number, result->recovery_count),
            bhi_quantity_time(p50, result->recovery_p50_ns),
            bhi_quantity_time(p99, result->recovery_p99_ns),
            bhi_quantity_time(max, result->recovery_max_ns));
    print_histogram(stream, result);
}

static void print_leaks(FILE *stream, const struct bhi_chaos_result *result) {
    char first[BHI_QUANTITY], last[BHI_QUANTITY];
    if (!result->rss_first) {
        return;
    }
    label(stream, "memory");
    fprintf(stream, "%s at first, %s at last\n", bhi_quantity_bytes(first, result->rss_first),
            bhi_quantity_bytes(last, result->rss_last));
    label(stream, "descriptors");
    fprintf(stream, "%u at first, %u at last\n", result->descriptors_first,
            result->descriptors_last);
}

/* "138.9 GiB free before, 138.9 GiB after; …" */
static void print_look(FILE *stream, const struct bhi_record *first,
                       const struct bhi_record *last) {
    char before[BHI_QUANTITY], after[BHI_QUANTITY], device[64];
    const char *separator = "";
    label(stream, "on device");
    fprintf(stream, "%s: ", bhi_text_clean(device, sizeof device, first->memory.device));
    if (first->memory.budget && last->memory.budget) {
        fprintf(stream, "%s free before, %s after",
                bhi_quantity_bytes(before, first->memory.unused),
                bhi_quantity_bytes(after, last->memory.unused));
        separator = "; ";
    }
    if (first->memory.nvml && last->memory.nvml) {
        fprintf(stream, "%sby NVML %s in use before, %s after", separator,
                bhi_quantity_bytes(before, first->memory.used),
                bhi_quantity_bytes(after, last->memory.used));
        separator = ", ";
    }
    if (first->memory.utilised && last->memory.utilised) {
        fprintf(stream, "%s%u %% busy before, %u %% after", separator, first->memory.utilisation,
                last->memory.utilisation);
        separator = ", ";
    }
    if (separator[0]) {
        fprintf(stream, " (%s later)\n", bhi_quantity_time(after, last->memory.waited_ns));
    } else {
        fputs("how much memory is in use is not known\n", stream);
    }
}

static void print_device_memory(FILE *stream, const struct bhi_history *history) {
    const struct bhi_record *first, *last;
    for (size_t i = 0; bhi_facts_memory(history, i, &first, &last); i++) {
        if (last) {
            print_look(stream, first, last);
        }
    }
}

/* -- what was found -------------------------------------------------------------------------- */

static void print_findings(FILE *stream, const struct bhi_chaos_result *result) {
    static const struct bhi_column columns[] = {{.name = "ANOMALY", .toned = true},
                                                {.name = "OPERATION", .right = true},
                                                {.name = "LINE", .right = true},
                                                {.name = "WHAT"}};
    enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };
    struct bhi_columns table;
    uint64_t total = bhi_facts_anomalies(result) + result->by_anomaly[BHI_ANOMALY_UNKNOWN];
    if (!result->finding_count) {
        return;
    }
    bhi_columns_init(&table, columns, COLUMN_COUNT);
    for (size_t i = 0; i < result->finding_count && i < SHOWN; i++) {
        const struct bhi_finding *finding = &result->findings[i];
        char op[24] = "-", line[24] = "-";
        if (finding->op) {
            snprintf(op, sizeof op, "%llu", (unsigned long long)finding->op);
        }
        if (finding->record != BHI_FINDING_NO_RECORD) {
            snprintf(line, sizeof line, "%llu",
                     (unsigned long long)bhi_facts_line(finding->record));
        }
        const char *const cells[COLUMN_COUNT] = {bhi_anomaly_name(finding->anomaly), op, line,
                                                 finding->text};
        bhi_columns_row(&table, cells,
                        finding->anomaly == BHI_ANOMALY_UNKNOWN ? BHI_TONE_WARN : BHI_TONE_BAD);
    }
    fputc('\n', stream);
    if (!bhi_columns_print(&table, stream, 2, bhi_columns_width(stream))) {
        fputs("  out of memory: they cannot be shown\n", stream);
    }
    if (total > table.row_count) {
        char number[BHI_QUANTITY];
        fprintf(stream, "  and %s more\n", bhi_quantity_count(number, total - table.row_count));
    }
    bhi_columns_free(&table);
}

void bhi_chaos_report_text(FILE *stream, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, const char *history_path) {
    char path[1024];
    print_verdict(stream, result);
    print_run(stream, history);
    print_operations(stream, result);
    print_power(stream, history, result);
    if (history->header.fault_set) { /* otherwise it is a host's own */
        print_faults(stream, result);
        print_pace(stream, history, result);
        print_recovery(stream, result);
    }
    print_leaks(stream, result);
    print_device_memory(stream, history);
    if (history_path) {
        bhi_text_clean(path, sizeof path, history_path);
        label(stream, "history");
        fprintf(stream, "%s\n", path);
    }
    print_findings(stream, result);
    if (history_path && result->verdict != BHI_CHAOS_VALID && result->operations &&
        history->header.fault_set) { /* not a host's own */
        fprintf(stream, "\nTo see it again: bulkhead chaos --replay %s\n", path);
    }
}
