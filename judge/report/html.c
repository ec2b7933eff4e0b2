/* The page of a judging. Names and messages come from candidates: all go through bhi_page_text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "judge/report/report.h"
#include "tool/quantity.h"

enum { ROWS = 5000 };

static enum bhi_page_tone tone_of(const bh_judgement *of) {
    if (of->verdict == BH_JUDGE_CORRECT) {
        return BHI_PAGE_GOOD;
    }
    if (of->verdict == BH_JUDGE_SLOWER) {
        return BHI_PAGE_WARN;
    }
    if (of->verdict != BH_JUDGE_FAILED || of->blame == BH_BLAME_CERTAIN) {
        return BHI_PAGE_BAD;
    }
    return of->blame == BH_BLAME_SUSPECTED ? BHI_PAGE_LOST : BHI_PAGE_INPUT;
}

/* -- the head -------------------------------------------------------------------------------- */

/* How many have each verdict. */
struct tally {
    const bh_judgement *first;
    const char *verdict;
    uint64_t count;
};

static size_t count_verdicts(const struct bhi_judge_report *report, struct tally *out) {
    size_t kinds = 0;
    for (size_t i = 0; i < report->count; i++) {
        const bh_judgement *of = &report->candidates[i].judgement;
        const char *verdict = bh_judge_verdict_name(of->verdict, of->status);
        size_t k = 0;
        while (k < kinds && strcmp(out[k].verdict, verdict) != 0) {
            k++;
        }
        if (k == kinds) {
            out[kinds++] = (struct tally){of, verdict, 0};
        }
        out[k].count++;
    }
    return kinds;
}

static void put_tiles(struct bhi_page *page, const struct bhi_judge_report *report,
                      const struct bhi_candidate *const *ranked) {
    const double best =
        report->correct ? bhi_judge_ratio(ranked[0]) : 0; /* the fastest that is right */
    char text[BHI_QUANTITY];
    bhi_page_tiles(page);
    bhi_page_tile(page, "candidates", bhi_quantity_count(text, report->count), BHI_PAGE_PLAIN);
    bhi_page_tile(page, "correct", bhi_quantity_count(text, report->correct),
                  report->correct ? BHI_PAGE_GOOD : BHI_PAGE_DIM);
    bhi_page_tile(page, "not correct", bhi_quantity_count(text, report->count - report->correct),
                  report->count > report->correct ? BHI_PAGE_BAD : BHI_PAGE_DIM);
    if (best > 0) {
        snprintf(text, sizeof text, "%.3g", best);
        bhi_page_tile(page, "of the reference's time: the fastest", text, BHI_PAGE_PLAIN);
    }
    bhi_page_tiles_end(page);
}

static void put_seeds(struct bhi_page *page, const char *name, const uint64_t *seeds,
                      size_t count) {
    char text[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof text; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, i ? " " : "", seeds[i]);
    }
    bhi_page_fact(page, name, text);
}

static void put_facts(struct bhi_page *page, const struct bhi_judge_report *report) {
    const struct bhi_task *task = report->task;
    char text[BHI_QUANTITY];
    bhi_page_facts(page);
    bhi_page_fact(page, "Task", report->task_path);
    bhi_page_fact(page, "Device", report->device);
    bhi_page_fact(page, "Sizes", bhi_quantity_count(text, task->size_count));
    bhi_page_fact(page, "Workers", bhi_quantity_count(text, report->workers));
    if (!bhi_task_is_fixed(task)) {
        put_seeds(page, "Seeds", task->seeds, task->seed_count);
        put_seeds(page, "Hidden seeds", report->hidden_seeds, report->hidden_count);
    }
    if (bhi_task_is_storable(task)) {
        bhi_page_fact(page, "Inputs",
                      "the same in each run: a kernel that only stores the results is CORRECT, "
                      "too");
    }
    for (size_t i = 0; i < report->weak_count; i++) {
        char weak[BHI_WEAKNESS_TEXT];
        bhi_page_fact(page, "Weak", bhi_weakness_text(task, &report->weak[i], weak));
    }
    bhi_page_facts_end(page);
}

static void put_verdicts(struct bhi_page *page, const struct bhi_judge_report *report,
                         struct tally *tallies) {
    static const char *const headings[] = {"Verdict", "Candidates", "Share"};
    const size_t kinds = count_verdicts(report, tallies);
    bhi_page_section(page, "Verdicts");
    bhi_page_table(page, "Verdicts", headings, 3, 1u << 1);
    for (size_t i = 0; i < kinds; i++) {
        const enum bhi_page_tone tone = tone_of(tallies[i].first);
        bhi_page_row(page);
        bhi_page_cell_badge(page, tallies[i].verdict, tone);
        bhi_page_cell_number(page, tallies[i].count);
        bhi_page_cell_bar(page, tallies[i].count, report->count, tone);
        bhi_page_row_end(page);
    }
    bhi_page_table_end(page);
}

/* -- the leaderboard ------------------------------------------------------------------------- */

static void put_cut(struct bhi_page *page, size_t count) {
    char text[120], shown[BHI_QUANTITY], all[BHI_QUANTITY];
    if (count > ROWS) {
        snprintf(text, sizeof text, "The first %s of %s are shown; --json has all.",
                 bhi_quantity_count(shown, ROWS), bhi_quantity_count(all, count));
        bhi_page_paragraph(page, text);
    }
}

static void put_candidate(struct bhi_page *page, const struct bhi_candidate *candidate,
                          size_t place, bool timed) {
    const bh_judgement *of = &candidate->judgement;
    const bool correct = of->verdict == BH_JUDGE_CORRECT;
    const double ratio = bhi_judge_ratio(candidate);
    char text[BHI_QUANTITY];
    bhi_page_row(page);
    snprintf(text, sizeof text, "%zu", place);
    bhi_page_cell(page, correct ? text : "-");
    bhi_page_cell_id(page, candidate->file.path);
    bhi_page_cell_badge(page, bh_judge_verdict_name(of->verdict, of->status), tone_of(of));
    if (timed) {
        snprintf(text, sizeof text, "%.3f", ratio);
        bhi_page_cell(page, ratio > 0 ? text : "-");
    }
    bhi_page_cell_number(page, of->runs);
    snprintf(text, sizeof text, "%.3g", bhi_judge_error(candidate));
    bhi_page_cell(page, correct ? text : "-");
    bhi_page_cell(page, *of->message                    ? of->message
                        : correct && !of->deterministic ? "not deterministic"
                                                        : "");
    bhi_page_row_end(page);
}

static void put_leaderboard(struct bhi_page *page, const struct bhi_judge_report *report,
                            const struct bhi_candidate *const *ranked, bool timed) {
    static const char *const headings[2][7] = {
        {"Place", "Candidate", "Verdict", "Runs", "Largest error", "Message"},
        {"Place", "Candidate", "Verdict", "Ratio", "Runs", "Largest error", "Message"}};
    bhi_page_section(page, "Leaderboard");
    bhi_page_paragraph(
        page,
        report->by_error ? "Those that are right are in the order of their largest error."
        : timed && report->baseline
            ? "Ratio: its time over the baseline's, the geometric mean of all sizes. Less than "
              "1 is faster."
        : timed ? "Ratio: its time over the reference's, the geometric mean of "
                  "all sizes. Less than 1 is faster."
                : "No time was measured: those that are right are in the order "
                  "in which they were given.");
    bhi_page_table(page, "Leaderboard", headings[timed], timed ? 7 : 6,
                   timed ? 1u | 1u << 3 | 1u << 4 | 1u << 5 : 1u | 1u << 3 | 1u << 4);
    for (size_t i = 0; i < report->count && i < ROWS; i++) {
        put_candidate(page, ranked[i], i + 1, timed);
    }
    bhi_page_table_end(page);
    put_cut(page, report->count);
}

/* -- times ----------------------------------------------------------------------------------- */

static void put_timing(struct bhi_page *page, const struct bhi_task *task,
                       const struct bhi_candidate *candidate, const bh_judge_timing *timing) {
    char text[BHI_SIZE_TEXT], quantity[BHI_QUANTITY];
    bhi_page_row(page);
    bhi_page_cell_id(page, candidate->file.path);
    bhi_page_cell(page, bhi_task_size_text(task, timing->size_index, text));
    bhi_page_cell(page, bhi_quantity_si(quantity, timing->median_ns * 1e-9, "s"));
    bhi_page_cell(page, bhi_quantity_si(quantity, timing->reference_ns * 1e-9, "s"));
    snprintf(text, sizeof text, "%.3f (%.3f to %.3f)", timing->ratio, timing->low, timing->high);
    bhi_page_cell(page, timing->ratio > 0 ? text : "not known: the times are not confirmed");
    bhi_page_cell_number(page, timing->runs);
    snprintf(text, sizeof text, "%s%s, caches %s, noise %.2g %%%s",
             timing->device ? "by the device" : "by the host",
             timing->one_processor ? ", on one processor" : "", timing->cold ? "cold" : "warm",
             100 * timing->noise, timing->noisy ? ", above the limit" : "");
    bhi_page_cell(page, text);
    bhi_page_row_end(page);
}

static void put_times(struct bhi_page *page, const struct bhi_judge_report *report,
                      const struct bhi_candidate *const *ranked) {
    static const char *const headings[] = {"Candidate",    "Size", "Median",  "Reference",
                                           "Ratio (95 %)", "Runs", "Measured"};
    size_t rows = 0;
    bhi_page_section(page, "Times");
    bhi_judge_plot_times(page, report, ranked);
    bhi_page_table(page, "Times", headings, 7, 1u << 2 | 1u << 3 | 1u << 5);
    for (size_t i = 0; i < report->count; i++) {
        for (size_t k = 0; k < ranked[i]->judgement.timing_count; k++, rows++) {
            if (rows < ROWS) {
                put_timing(page, report->task, ranked[i], &ranked[i]->judgement.timings[k]);
            }
        }
    }
    bhi_page_table_end(page);
    put_cut(page, rows);
    bhi_judge_plot_rates(page, report, ranked);
}

/* -- the whole ------------------------------------------------------------------------------- */

bool bhi_judge_html(const struct bhi_judge_report *report, const char *path,
                    struct bhi_complaint *complaint) {
    const struct bhi_candidate **ranked = calloc(report->count + 1, sizeof *ranked);
    struct tally *tallies = calloc(report->count + 1, sizeof *tallies);
    struct bhi_page page;
    char title[128];
    bool timed = false;
    snprintf(title, sizeof title, "Judge %s",
             *report->task->name ? report->task->name : report->task_path);
    if (!ranked || !tallies || !bhi_page_open(&page, title)) {
        free(ranked);
        free(tallies);
        return bhi_refuse_memory(complaint);
    }
    for (size_t i = 0; i < report->count; i++) {
        timed |= report->candidates[i].judgement.timing_count > 0;
    }
    bhi_judge_rank(report, ranked);
    put_tiles(&page, report, ranked);
    put_facts(&page, report);
    put_verdicts(&page, report, tallies);
    put_leaderboard(&page, report, ranked, timed);
    if (timed) {
        put_times(&page, report, ranked);
    }
    free(ranked);
    free(tallies);
    return bhi_page_write(&page, path, complaint);
}
