#include <inttypes.h>
#include <stdio.h>

#include "judge/report/report.h"
#include "tool/report/columns.h"

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

void bhi_judge_print_table(const struct bhi_judge_report *report) {
    static const struct bhi_column columns[] = {{.name = "CANDIDATE"},
                                                {.name = "VERDICT", .toned = true},
                                                {.name = "RUNS", .right = true},
                                                {.name = "MESSAGE"}};
    struct bhi_columns table;
    bhi_columns_init(&table, columns, 4);
    for (size_t i = 0; i < report->count; i++) {
        const struct bhi_candidate *candidate = &report->candidates[i];
        const bool correct = candidate->judgement == BHI_JUDGED_CORRECT;
        char runs[24];
        snprintf(runs, sizeof runs, "%" PRIu64, candidate->runs);
        const char *cells[] = {candidate->path, bhi_candidate_verdict(candidate), runs,
                               !correct                      ? candidate->outcome.message
                               : candidate->nondeterministic ? "not deterministic"
                                                             : "-"};
        bhi_columns_row(&table, cells, correct ? BHI_TONE_GOOD : BHI_TONE_BAD);
    }
    (void)bhi_columns_print(&table, stdout, 0, bhi_columns_width(stdout));
    bhi_columns_free(&table);
    printf("\n%zu candidate%s: %zu correct; ", report->count, report->count == 1 ? "" : "s",
           report->correct);
    print_seeds(report);
}
