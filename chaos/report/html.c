/* The page of a chaos run. */
#include "chaos/report/report.h"

#include <string.h>

#include "chaos/check/power.h"
#include "chaos/report/drawing.h"
#include "chaos/report/facts.h"
#include "tool/quantity.h"
#include "tool/report/page.h"

static const enum bhi_page_tone tones[] = {[BHI_CHAOS_VALID] = BHI_PAGE_GOOD,
                                           [BHI_CHAOS_INVALID] = BHI_PAGE_BAD,
                                           [BHI_CHAOS_UNKNOWN] = BHI_PAGE_WARN};

/* -- the head -------------------------------------------------------------------------------- */

static void put_verdict(struct bhi_page *page, const struct bhi_chaos_result *result) {
    static const char *const signs[] = {[BHI_CHAOS_VALID] = "\xE2\x9C\x93", /* check mark, cross */
                                        [BHI_CHAOS_INVALID] = "\xE2\x9C\x97",
                                        [BHI_CHAOS_UNKNOWN] = "?"};
    char sentence[80];
    fprintf(page->out,
            "<p class=\"verdict %s\"><b>%s %s</b>: ", bhi_page_class(tones[result->verdict]),
            signs[result->verdict], bhi_chaos_verdict_name(result->verdict));
    bhi_page_between(page, "", bhi_facts_sentence(result, sentence, sizeof sentence), "</p>\n");
}

static void put_tiles(struct bhi_page *page, const struct bhi_chaos_result *result) {
    char text[BHI_QUANTITY];
    bhi_page_tiles(page);
    bhi_page_tile(page, "operations", bhi_quantity_count(text, result->operations), BHI_PAGE_PLAIN);
    bhi_page_tile(page, "ready", bhi_quantity_count(text, result->ready), BHI_PAGE_GOOD);
    bhi_page_tile(page, "poisoned", bhi_quantity_count(text, result->poisoned), BHI_PAGE_LOST);
    bhi_page_tile(page, "lost", bhi_quantity_count(text, result->lost),
                  result->lost ? BHI_PAGE_BAD : BHI_PAGE_DIM);
    if (result->refused) {
        bhi_page_tile(page, result->refused == 1 ? "call refused" : "calls refused",
                      bhi_quantity_count(text, result->refused), BHI_PAGE_INPUT);
    }
    bhi_page_tile(page, "faults", bhi_quantity_count(text, bhi_facts_injected(result)),
                  BHI_PAGE_PLAIN);
    bhi_page_tile(page, "anomalies", bhi_quantity_count(text, bhi_facts_anomalies(result)),
                  bhi_facts_anomalies(result) ? BHI_PAGE_BAD : BHI_PAGE_DIM);
    if (result->recovery_count) {
        bhi_page_tile(page, "recovery, p99", bhi_quantity_time(text, result->recovery_p99_ns),
                      BHI_PAGE_PLAIN);
    }
    bhi_page_tiles_end(page);
}

static void put_pace(struct bhi_page *page, const struct bhi_history *history,
                     const struct bhi_chaos_result *result) {
    const struct bhi_facts_pace pace = bhi_facts_pace(history, result);
    char text[160], first[BHI_QUANTITY], second[BHI_QUANTITY], third[BHI_QUANTITY];
    snprintf(text, sizeof text, "%s of %s faults, %s",
             bhi_quantity_count(first, bhi_facts_injected(result)),
             bhi_quantity_count(second, pace.asked),
             bhi_quantity_rate(third, bhi_facts_injected(result), pace.faults_ns));
    bhi_page_fact(page, "Came", text);
    snprintf(text, sizeof text, "%s until faults could come, %s of faults, %s for the end",
             bhi_quantity_time(first, pace.begin_ns), bhi_quantity_time(second, pace.faults_ns),
             bhi_quantity_time(third, pace.settle_ns));
    bhi_page_fact(page, "Of the time", text);
}

static void put_power(struct bhi_page *page, const struct bhi_history *history,
                      const struct bhi_chaos_result *result) {
    const double asked = history->header.find_rate;
    char text[160];
    int length = snprintf(text, sizeof text, "1 wrong operation of %.4g, with 95 %%",
                          1 / bhi_power_rate(result->compared));
    if (asked > 0) {
        snprintf(text + length, sizeof text - (size_t)length, "; asked for: 1 of %.4g", 1 / asked);
    }
    bhi_page_fact(page, "Would have found", text);
}

static void put_device_memory(struct bhi_page *page, const struct bhi_history *history) {
    const struct bhi_record *first, *last;
    char text[320], before[BHI_QUANTITY], after[BHI_QUANTITY];
    for (size_t i = 0; bhi_facts_memory(history, i, &first, &last); i++) {
        int length = snprintf(text, sizeof text, "%.47s: ", first->memory.device);
        const bool budget = last && first->memory.budget && last->memory.budget;
        const bool nvml = last && first->memory.nvml && last->memory.nvml;
        if (budget) {
            length +=
                snprintf(text + length, sizeof text - (size_t)length, "%s free before, %s after%s",
                         bhi_quantity_bytes(before, first->memory.unused),
                         bhi_quantity_bytes(after, last->memory.unused), nvml ? "; " : "");
        }
        if (nvml) {
            snprintf(text + length, sizeof text - (size_t)length,
                     "by NVML %s in use before, %s after",
                     bhi_quantity_bytes(before, first->memory.used),
                     bhi_quantity_bytes(after, last->memory.used));
        }
        bhi_page_fact(page, "Device memory", budget || nvml ? text : "not known");
    }
}

static void put_facts(struct bhi_page *page, const struct bhi_history *history,
                      const struct bhi_chaos_result *result) {
    const struct bhi_history_header *header = &history->header;
    char text[80], first[BHI_QUANTITY], second[BHI_QUANTITY];
    bhi_page_facts(page);
    snprintf(text, sizeof text, "%llu", (unsigned long long)header->seed);
    bhi_page_fact(page, "Seed", text);
    bhi_page_fact(page, "Version", header->version);
    bhi_page_fact(page, "Device", header->device);
    bhi_page_fact(page, "Driver", header->driver);
    snprintf(text, sizeof text, "%u", header->streams);
    bhi_page_fact(page, "Streams", text);
    snprintf(text, sizeof text, "%s%s", bhi_quantity_time(first, bhi_facts_elapsed_ns(history)),
             history->complete ? "" : ", cut short");
    bhi_page_fact(page, "Took", text);
    if (header->faults_asked) {
        snprintf(text, sizeof text, "%s faults, %.4g a second",
                 bhi_quantity_count(first, header->faults_asked), header->rate);
    } else {
        snprintf(text, sizeof text, "%s of faults, %.4g a second",
                 bhi_quantity_time(first, header->duration_ns), header->rate);
    }
    bhi_page_fact(page, "Asked for", text);
    put_pace(page, history, result);
    put_power(page, history, result);
    put_device_memory(page, history);
    bhi_page_fact(page, "Injected by", header->outside ? "a second process" : "the process itself");
    snprintf(text, sizeof text, "an end within %s, a READY result within %s of a fault",
             bhi_quantity_time(first, header->patience_ns),
             bhi_quantity_time(second, header->recovery_ns));
    bhi_page_fact(page, "Bounds", text);
    bhi_page_facts_end(page);
}

/* -- what was found -------------------------------------------------------------------------- */

static void put_findings(struct bhi_page *page, const struct bhi_chaos_result *result) {
    static const char *const headings[] = {"Anomaly", "Operation", "Line", "What"};
    char text[120], number[BHI_QUANTITY];
    uint64_t total = bhi_facts_anomalies(result) + result->by_anomaly[BHI_ANOMALY_UNKNOWN];
    bhi_page_section(page, "Findings");
    if (!result->finding_count) {
        bhi_page_paragraph(page, "None.");
        return;
    }
    bhi_page_table(page, "Findings", headings, 4, 1u << 1 | 1u << 2);
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct bhi_finding *finding = &result->findings[i];
        bhi_page_row(page);
        bhi_page_cell_badge(page, bhi_anomaly_name(finding->anomaly),
                            finding->anomaly == BHI_ANOMALY_UNKNOWN ? BHI_PAGE_WARN : BHI_PAGE_BAD);
        if (finding->op) {
            bhi_page_cell_number(page, finding->op);
        } else {
            bhi_page_cell(page, "-");
        }
        if (finding->record != BHI_FINDING_NO_RECORD) {
            bhi_page_cell_number(page, bhi_facts_line(finding->record));
        } else {
            bhi_page_cell(page, "-");
        }
        bhi_page_cell(page, finding->text);
        bhi_page_row_end(page);
    }
    bhi_page_table_end(page);
    if (total > result->finding_count) {
        snprintf(text, sizeof text, "And %s more.",
                 bhi_quantity_count(number, total - result->finding_count));
        bhi_page_paragraph(page, text);
    }
    bhi_page_paragraph(page, "Lines are those of the history, where it was saved.");
}

/* -- faults and recovery --------------------------------------------------------------------- */

static void put_faults(struct bhi_page *page, const struct bhi_history *history,
                       const struct bhi_chaos_result *result) {
    static const char *const headings[] = {"Fault", "Injected", "Hit nothing", "Share"};
    uint64_t missed[BHI_FAULT_KINDS] = {0}, most = 1;
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_FAULT && record->fault.missed) {
            missed[record->fault.kind]++;
        }
    }
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (result->faults[kind] > most) {
            most = result->faults[kind];
        }
    }
    bhi_page_section(page, "Faults");
    bhi_page_table(page, "Faults by kind", headings, 4, 1u << 1 | 1u << 2);
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (!result->faults[kind] && !missed[kind]) {
            continue;
        }
        bhi_page_row(page);
        bhi_page_cell_code(page, bhi_fault_name((enum bhi_fault_kind)kind));
        bhi_page_cell_number(page, result->faults[kind]);
        bhi_page_cell_number(page, missed[kind]);
        bhi_page_cell_bar(page, result->faults[kind], most, BHI_PAGE_PLAIN);
        bhi_page_row_end(page);
    }
    bhi_page_table_end(page);
}

static void put_recovery(struct bhi_page *page, const struct bhi_chaos_result *result) {
    static const char *const headings[] = {"From", "To", "Times", "Share"};
    char p50[BHI_QUANTITY], p99[BHI_QUANTITY], max[BHI_QUANTITY], text[320];
    unsigned first, end;
    bhi_page_section(page, "Recovery: from a fault to the next READY result on its stream");
    if (!bhi_facts_buckets(result, &first, &end)) {
        bhi_page_paragraph(page, "None was measured.");
        return;
    }
    snprintf(text, sizeof text, "Half within %s, 99 %% within %s, the longest %s.",
             bhi_quantity_time(p50, result->recovery_p50_ns),
             bhi_quantity_time(p99, result->recovery_p99_ns),
             bhi_quantity_time(max, result->recovery_max_ns));
    bhi_page_paragraph(page, text);
    bhi_page_table(page, "Recovery times", headings, 4, 7);
    for (unsigned i = first; i < end; i++) {
        uint64_t limit = bhi_facts_bucket_to(i);
        bhi_page_row(page);
        bhi_page_cell(page, bhi_quantity_time(text, bhi_facts_bucket_from(i)));
        bhi_page_cell(page, limit == UINT64_MAX ? "longer" : bhi_quantity_time(text, limit));
        bhi_page_cell_number(page, result->recovery[i]);
        bhi_page_cell_bar(page, result->recovery[i], bhi_facts_bucket_most(result), BHI_PAGE_LOST);
        bhi_page_row_end(page);
    }
    bhi_page_table_end(page);
}

bool bhi_chaos_report_html(const char *path, const struct bhi_history *history,
                           const struct bhi_chaos_result *result, struct bhi_complaint *complaint) {
    struct bhi_page page;
    char title[80];
    snprintf(title, sizeof title, "Chaos, seed %llu", (unsigned long long)history->header.seed);
    if (!bhi_page_open(&page, title)) {
        return bhi_refuse(complaint, "out of memory");
    }
    put_verdict(&page, result);
    put_tiles(&page, result);
    put_facts(&page, history, result);
    put_findings(&page, result);
    bhi_page_section(&page, "Timeline");
    bhi_drawing_put(&page, history);
    put_faults(&page, history, result);
    put_recovery(&page, result);
    return bhi_page_write(&page, path, complaint);
}
