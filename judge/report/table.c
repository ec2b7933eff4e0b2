#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "judge/report/report.h"
#include "tool/report/columns.h"
#include "tool/text.h"

/* A hidden seed that the command chose is shown, so that the judging can be repeated. */
static void print_seeds(const struct bhi_judge_report *report) {
    if (bhi_task_is_fixed(report->task)) {
        printf("all inputs are files: seeds change nothing\n");
        return;
    }
    printf("hidden seed%s:", report->hidden_count == 1 ? "" : "s");
    for (size_t i = 0; i < report->hidden_count; i++) {
        printf(" %" PRIu64, report->hidden_seeds[i]);
    }
    printf("\n");
}

/* Writes "1.002 (0.998 to 1.006)". */
static void write_ratio(const bh_judge_timing *timing, char *out, size_t capacity) {
    if (timing->ratio > 0) {
        snprintf(out, capacity, "%.3f (%.3f to %.3f)", timing->ratio, timing->low, timing->high);
    } else {
        snprintf(out, capacity, "unknown");
    }
}

/* Why a ratio is not known, and what to do. */
static void write_doubt(const bh_judge_timing *timing, char *out, size_t capacity) {
    char why[80] = "";
    switch (timing->doubt) {
    case BH_JUDGE_DOUBT_CLAIMS:
        snprintf(why, sizeof why, ": the host cannot confirm what its worker claims");
        break;
    case BH_JUDGE_DOUBT_DRIFT:
        snprintf(why, sizeof why, ": the reference changed by %.1f %% meanwhile",
                 100 * timing->drift);
        break;
    case BH_JUDGE_DOUBT_LOAD:
        snprintf(why, sizeof why, ": the reference was slower than without the candidate");
        break;
    case BH_JUDGE_DOUBT_NONE:
        break;
    }
    snprintf(out, capacity, ", not confirmed%s; time it again on a quieter machine%s", why,
             timing->doubt == BH_JUDGE_DOUBT_CLAIMS ? ", or in a larger size" : "");
}

void bhi_judge_time_note(const struct bhi_candidate *candidate, const bh_judge_timing *timing,
                         char *out, size_t capacity) {
    const int used = snprintf(out, capacity, "%s%s%s", timing->cold ? "cold" : "warm",
                              timing->one_processor ? ", on one processor" : "",
                              timing->device ? "" : ", the device has no clock");
    size_t at = (size_t)used;
    const bool forged =
        candidate->judgement.verdict == BH_JUDGE_TIMING_FORGED; /* the verdict says all */
    if (timing->ratio <= 0 && !forged) {
        write_doubt(timing, out + at, capacity - at);
        at += strlen(out + at);
    } else if (timing->noisy && !forged) {
        at += (size_t)snprintf(out + at, capacity - at,
                               ", noise %.1f %%: more runs (--repeat)%s a quieter machine "
                               "narrow the interval",
                               100 * timing->noise,
                               timing->spreads ? ", one processor (without --all-processors) or"
                                               : " or");
    }
    if (timing->guard_ratio > 0) {
        snprintf(out + at, capacity - at, ", %.3f times as long with the guard",
                 timing->guard_ratio);
    }
}

static void print_times(const struct bhi_judge_report *report) {
    static const struct bhi_column columns[] = {
        {.name = "CANDIDATE"},         {.name = "SIZE"},
        {.name = "US", .right = true}, {.name = "REFERENCE US", .right = true},
        {.name = "RATIO, 95 %"},       {.name = "NOTE"}};
    struct bhi_columns table;
    bhi_columns_init(&table, columns, 6);
    for (size_t i = 0; i < report->count; i++) {
        const struct bhi_candidate *candidate = &report->candidates[i];
        for (size_t k = 0; k < candidate->judgement.timing_count; k++) {
            const bh_judge_timing *timing = &candidate->judgement.timings[k];
            char size[BHI_SIZE_TEXT], time[32], reference[32], ratio[64], note[BHI_JUDGE_NOTE];
            snprintf(time, sizeof time, "%.3f", timing->median_ns / 1e3);
            snprintf(reference, sizeof reference, "%.3f", timing->reference_ns / 1e3);
            write_ratio(timing, ratio, sizeof ratio);
            bhi_judge_time_note(candidate, timing, note, sizeof note);
            const char *cells[] = {candidate->file.path,
                                   bhi_task_size_text(report->task, timing->size_index, size),
                                   time,
                                   reference,
                                   ratio,
                                   note};
            bhi_columns_row(&table, cells, timing->noisy ? BHI_TONE_WARN : BHI_TONE_PLAIN);
        }
    }
    printf("\n");
    (void)bhi_columns_print(&table, stdout, 0, bhi_columns_width(stdout));
    bhi_columns_free(&table);
    if (report->baseline) {
        char clean[400];
        printf("\nREFERENCE is the baseline: %s\n",
               bhi_text_clean(clean, sizeof clean, report->baseline));
    }
}

static void print_dump(const struct bhi_judge_report *report) {
    char clean[1200];
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        count += report->folders[i] ? 1 : 0;
    }
    printf("arrays of %zu candidate%s are in %s\n", count, count == 1 ? "" : "s",
           bhi_text_clean(clean, sizeof clean, report->dump));
}

void bhi_judge_print_table(const struct bhi_judge_report *report) {
    static const struct bhi_column columns[] = {{.name = "CANDIDATE"},
                                                {.name = "VERDICT", .toned = true},
                                                {.name = "RUNS", .right = true},
                                                {.name = "MESSAGE"}};
    struct bhi_columns table;
    bhi_columns_init(&table, columns, 4);
    for (size_t i = 0; i < report->count; i++) {
        const struct bhi_candidate *candidate = &report->candidates[i];
        const bh_judgement *of = &candidate->judgement;
        const bool correct = of->verdict == BH_JUDGE_CORRECT;
        char runs[24];
        snprintf(runs, sizeof runs, "%" PRIu64, of->runs);
        const char *cells[] = {candidate->file.path, bh_judge_verdict_name(of->verdict, of->status),
                               runs,
                               !correct             ? of->message
                               : !of->deterministic ? "not deterministic"
                                                    : "-"};
        bhi_columns_row(&table, cells, correct ? BHI_TONE_GOOD : BHI_TONE_BAD);
    }
    (void)bhi_columns_print(&table, stdout, 0, bhi_columns_width(stdout));
    bhi_columns_free(&table);
    if (report->timed) {
        print_times(report);
    }
    printf("\n%zu candidate%s: %zu correct; ", report->count, report->count == 1 ? "" : "s",
           report->correct);
    print_seeds(report);
    if (report->dump) {
        print_dump(report);
    }
    if (bhi_task_is_storable(report->task)) {
        printf("same inputs in each run: a kernel that only stores the results is CORRECT, too\n");
    }
    for (size_t i = 0; i < report->weak_count; i++) {
        char text[BHI_WEAKNESS_TEXT];
        printf("weak task: %s\n", bhi_weakness_text(report->task, &report->weak[i], text));
    }
}
