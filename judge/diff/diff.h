/* What has changed between two runs. */
#ifndef BHI_JUDGE_DIFF_DIFF_H
#define BHI_JUDGE_DIFF_DIFF_H

#include "judge/diff/run.h"

enum bhi_change {
    BHI_CHANGE_NONE,
    BHI_CHANGE_WORSE,  /* it was CORRECT and is no more */
    BHI_CHANGE_SLOWER, /* CORRECT both times; the intervals of its ratio do not meet */
    BHI_CHANGE_GONE,   /* only the run before has it */
    BHI_CHANGE_OTHER,  /* another verdict; CORRECT neither then nor now */
    BHI_CHANGE_FASTER,
    BHI_CHANGE_BETTER,
    BHI_CHANGE_NEW,
    BHI_CHANGES
};

/* Relative to the reference: geometric means of sizes; 0: not measured. */
struct bhi_past_ratio {
    double ratio, low, high;
};

/* If both runs have times that can be compared, the ratios are of these sizes alone, otherwise of
 * all sizes. */
struct bhi_difference_of {
    enum bhi_change change;
    const struct bhi_past_candidate *before, *after; /* borrowed from the runs; one may be NULL */
    struct bhi_past_ratio ratio_before, ratio_after;
};

struct bhi_judge_diff {
    struct bhi_difference_of *list; /* owned: those of |after| in its order, then those gone */
    size_t count;
    size_t of[BHI_CHANGES]; /* how many there are of each kind */
    /* Of how many candidates times are not compared, because they were measured in other ways. The
     * second index is the condition of the run after. */
    size_t unlike[BHI_CONDITIONS][2];
    size_t unlike_devices;  /* because each run was on another device */
    const char *devices[2]; /* before and after; borrowed from the runs */
};

/* "worse", "slower", …; "same" of BHI_CHANGE_NONE. */
const char *bhi_change_name(enum bhi_change change);
/* Compares candidates of the same file. A file that a run has twice is compared in the order in
 * which it was given. Times are compared size by size, where both runs have them and measured them
 * in the same way. Returns false if memory ran out. */
bool bhi_judge_diff_make(const struct bhi_past_run *before, const struct bhi_past_run *after,
                         struct bhi_judge_diff *out);
void bhi_judge_diff_free(struct bhi_judge_diff *diff);

/* Print what differs: a table with a summary, or one JSON object (docs/judge.md). */
void bhi_judge_diff_print(const struct bhi_judge_diff *diff, const char *before, const char *after);
void bhi_judge_diff_print_json(const struct bhi_judge_diff *diff, const char *before,
                               const char *after);

#endif
