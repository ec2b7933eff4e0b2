/* What became of the candidates: a table, an object for --json, a page. */
#ifndef BHI_JUDGE_REPORT_REPORT_H
#define BHI_JUDGE_REPORT_REPORT_H

#include <jansson.h>

#include "judge/check/candidate.h"
#include "judge/check/weak.h"
#include "tool/report/page.h"

struct bhi_judge_report {
    const struct bhi_task *task;
    const char *task_path;
    const struct bhi_weakness *weak; /* of the task */
    size_t weak_count;
    const uint64_t *hidden_seeds;
    size_t hidden_count;
    const struct bhi_candidate *candidates;
    size_t count;
    size_t correct;     /* of them */
    const char *device; /* its selector */
    unsigned orders;    /* of workgroups, in which candidates ran */
    uint64_t workers;
    bool timed;
    const char *baseline; /* the file that times are compared with; NULL: the reference */
    bool by_error;        /* candidates are ranked by their errors, not by their times */
    const char *dump;     /* a folder with arrays; NULL: none */
    char *const *folders; /* in it, of each candidate; NULL: none */
    uint64_t flushed;     /* bytes that were written before each timed run; 0: none */
};

/* Prints a line for each candidate, and a summary. */
void bhi_judge_print_table(const struct bhi_judge_report *report);
/* Writes what restricts one of the candidate's times, in words, and what to do about it. */
enum { BHI_JUDGE_NOTE = 320 };
void bhi_judge_time_note(const struct bhi_candidate *candidate, const bh_judge_timing *timing,
                         char *out, size_t capacity);
/* Prints one JSON object on standard output (docs/judge.md). */
void bhi_judge_print_json(const struct bhi_judge_report *report);
/* Writes a page to |path|, whole or not at all: a leaderboard, and plots of what was measured.
 * Check |path| before with bhi_page_check. */
bool bhi_judge_html(const struct bhi_judge_report *report, const char *path,
                    struct bhi_complaint *complaint);

/* The order of a leaderboard. */

/* How long it takes, relative to the reference: the geometric mean of the ratios of all sizes; 0 if
 * none was measured. */
double bhi_judge_ratio(const struct bhi_candidate *candidate);
/* The largest absolute error of all outputs; 0: it is not right, or exact. */
double bhi_judge_error(const struct bhi_candidate *candidate);
/* Fills |out|, of report->count pointers: those that are CORRECT, the fastest first, then those
 * that have no time; then the others. What is equal stays in the order in which it was given. */
void bhi_judge_rank(const struct bhi_judge_report *report, const struct bhi_candidate **out);

/* Time against size, of the reference and of the fastest candidates. |ranked| is as bhi_judge_rank
 * fills it in. */
void bhi_judge_plot_times(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked);
/* What they move or compute in a second, in a section of its own: with the task's "bytes" and
 * "operations" a roofline, with one of them the rate against size, with none nothing. */
void bhi_judge_plot_rates(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked);

#endif
