#include "judge/diff/diff.h"

#include <stdlib.h>
#include <string.h>

const char *bhi_change_name(enum bhi_change change) {
    static const char *const names[BHI_CHANGES] = {
        [BHI_CHANGE_NONE] = "same",     [BHI_CHANGE_WORSE] = "worse",
        [BHI_CHANGE_SLOWER] = "slower", [BHI_CHANGE_GONE] = "gone",
        [BHI_CHANGE_OTHER] = "other",   [BHI_CHANGE_FASTER] = "faster",
        [BHI_CHANGE_BETTER] = "better", [BHI_CHANGE_NEW] = "new"};
    return names[change];
}

static enum bhi_change compare(const struct bhi_past_candidate *before,
                               const struct bhi_past_candidate *after) {
    const bool was = !strcmp(before->verdict, "CORRECT"), is = !strcmp(after->verdict, "CORRECT");
    if (was != is) {
        return is ? BHI_CHANGE_BETTER : BHI_CHANGE_WORSE;
    }
    if (!is) {
        return strcmp(before->verdict, after->verdict) != 0 ? BHI_CHANGE_OTHER : BHI_CHANGE_NONE;
    }
    if (!(before->ratio > 0) || !(after->ratio > 0)) {
        return BHI_CHANGE_NONE;
    }
    return after->low > before->high   ? BHI_CHANGE_SLOWER
           : after->high < before->low ? BHI_CHANGE_FASTER
                                       : BHI_CHANGE_NONE;
}

static int compare_files(const void *a, const void *b) {
    const struct bhi_past_candidate *const *x = a, *const *y = b;
    const int order = strcmp((*x)->file, (*y)->file);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Pointers to the run's candidates, by file, and in their order where the files are the same. */
static const struct bhi_past_candidate **sort(const struct bhi_past_run *run) {
    const struct bhi_past_candidate **sorted = calloc(run->count + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < run->count; i++) {
        sorted[i] = &run->list[i];
    }
    if (sorted) {
        qsort(sorted, run->count, sizeof *sorted, compare_files);
    }
    return sorted;
}

static void add(struct bhi_judge_diff *diff, enum bhi_change change,
                const struct bhi_past_candidate *before, const struct bhi_past_candidate *after) {
    diff->list[diff->count++] = (struct bhi_difference_of){change, before, after};
    diff->of[change]++;
}

/* |pairs|: for each candidate of |after| the one before, or NULL. */
static void pair(const struct bhi_past_run *before, const struct bhi_past_run *after,
                 const struct bhi_past_candidate **old, const struct bhi_past_candidate **newer,
                 const struct bhi_past_candidate **pairs, bool *kept) {
    for (size_t i = 0, k = 0; i < before->count && k < after->count;) {
        const int order = strcmp(old[i]->file, newer[k]->file);
        if (!order) {
            pairs[newer[k] - after->list] = old[i];
            kept[old[i] - before->list] = true;
        }
        i += order <= 0;
        k += order >= 0;
    }
}

bool bhi_judge_diff_make(const struct bhi_past_run *before, const struct bhi_past_run *after,
                         struct bhi_judge_diff *out) {
    const struct bhi_past_candidate **old = sort(before), **newer = sort(after),
                                    **pairs = calloc(after->count + 1, sizeof *pairs);
    bool *kept = calloc(before->count + 1, sizeof *kept);
    *out = (struct bhi_judge_diff){.list =
                                       calloc(before->count + after->count + 1, sizeof *out->list)};
    const bool good = old && newer && pairs && kept && out->list;
    if (good) {
        pair(before, after, old, newer, pairs, kept);
        for (size_t i = 0; i < after->count; i++) {
            const struct bhi_past_candidate *was = pairs[i], *is = &after->list[i];
            add(out, was ? compare(was, is) : BHI_CHANGE_NEW, was, is);
        }
        for (size_t i = 0; i < before->count; i++) {
            if (!kept[i]) {
                add(out, BHI_CHANGE_GONE, &before->list[i], NULL);
            }
        }
    } else {
        bhi_judge_diff_free(out);
    }
    free(old);
    free(newer);
    free(pairs);
    free(kept);
    return good;
}

void bhi_judge_diff_free(struct bhi_judge_diff *diff) {
    free(diff->list);
    *diff = (struct bhi_judge_diff){0};
}
