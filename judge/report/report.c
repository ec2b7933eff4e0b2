#include "judge/report/report.h"

#include <math.h>
#include <stdlib.h>

/* -- the order of a leaderboard -------------------------------------------------------------- */

double bhi_judge_ratio(const struct bhi_candidate *candidate) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < candidate->judgement.timing_count; i++) {
        if (candidate->judgement.timings[i].ratio > 0) {
            sum += log(candidate->judgement.timings[i].ratio);
            count++;
        }
    }
    return count ? exp(sum / (double)count) : 0;
}

double bhi_judge_error(const struct bhi_candidate *candidate) {
    double largest = 0;
    for (size_t i = 0; i < candidate->judgement.error_count; i++) {
        largest = fmax(largest, candidate->judgement.errors[i].absolute);
    }
    return largest;
}

/* Those that are right first, by |key|. */
static int compare_by(const void *a, const void *b, double (*key)(const struct bhi_candidate *)) {
    const struct bhi_candidate *x = *(const struct bhi_candidate *const *)a,
                               *y = *(const struct bhi_candidate *const *)b;
    const bool x_correct = x->judgement.verdict == BH_JUDGE_CORRECT,
               y_correct = y->judgement.verdict == BH_JUDGE_CORRECT;
    if (x_correct != y_correct) {
        return x_correct ? -1 : 1;
    }
    const double p = x_correct ? key(x) : 0, q = x_correct ? key(y) : 0;
    if (p != q) {
        return p < q ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

/* What was not measured comes last. */
static double time_of(const struct bhi_candidate *candidate) {
    const double ratio = bhi_judge_ratio(candidate);
    return ratio > 0 ? ratio : INFINITY;
}

static int compare_times(const void *a, const void *b) {
    return compare_by(a, b, time_of);
}

static int compare_errors(const void *a, const void *b) {
    return compare_by(a, b, bhi_judge_error);
}

void bhi_judge_rank(const struct bhi_judge_report *report, const struct bhi_candidate **out) {
    for (size_t i = 0; i < report->count; i++) {
        out[i] = &report->candidates[i];
    }
    qsort(out, report->count, sizeof *out, report->by_error ? compare_errors : compare_times);
}
