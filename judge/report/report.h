/* What became of the candidates: a table, or an object for --json. */
#ifndef BHI_JUDGE_REPORT_REPORT_H
#define BHI_JUDGE_REPORT_REPORT_H

#include <jansson.h>

#include "judge/check/candidate.h"

struct bhi_judge_report {
    const struct bhi_task *task;
    const char *task_path;
    const uint64_t *hidden_seeds;
    size_t hidden_count;
    const struct bhi_candidate *candidates;
    size_t count;
    size_t correct; /* of them */
    bool timed;
    uint64_t flushed; /* bytes that were written before each timed run; 0: none */
};

/* Prints a line for each candidate, and a summary. */
void bhi_judge_print_table(const struct bhi_judge_report *report);
/* Prints one JSON object on standard output (docs/judge.md). */
void bhi_judge_print_json(const struct bhi_judge_report *report);

#endif
