#include "judge/diff/diff.h"

#include <math.h>
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

/* -- ratios -------------------------------------------------------------------------------------
 */

/* Geometric means, while they are summed up. */
struct means {
    double ratio, low, high;
    size_t count;
};

static void add_timing(struct means *means, const struct bhi_past_timing *timing) {
    means->ratio += log(timing->ratio);
    means->low += log(timing->low);
    means->high += log(timing->high);
    means->count++;
}

static struct bhi_past_ratio finish(const struct means *means) {
    const double count = (double)means->count;
    return means->count ? (struct bhi_past_ratio){exp(means->ratio / count),
                                                  exp(means->low / count), exp(means->high / count)}
                        : (struct bhi_past_ratio){0};
}

/* Of all its sizes; |candidate| may be NULL. */
static struct bhi_past_ratio ratio_of(const struct bhi_past_candidate *candidate) {
    struct means means = {0};
    for (size_t i = 0; candidate && i < candidate->timing_count; i++) {
        add_timing(&means, &candidate->timings[i]);
    }
    return finish(&means);
}

static const struct bhi_past_timing *find_size(const struct bhi_past_candidate *candidate,
                                               const json_t *size) {
    for (size_t i = 0; i < candidate->timing_count; i++) {
        const json_t *its = candidate->timings[i].size;
        if (its == size || json_equal(its, size)) { /* both may be NULL */
            return &candidate->timings[i];
        }
    }
    return NULL;
}

/* Marks in |unlike| how the two were measured differently. Returns false if they were. */
static bool alike(const struct bhi_past_timing *before, const struct bhi_past_timing *after,
                  bool unlike[BHI_CONDITIONS][2]) {
    bool good = true;
    for (size_t i = 0; i < BHI_CONDITIONS; i++) {
        if (before->conditions[i] != after->conditions[i]) {
            unlike[i][after->conditions[i]] = true;
            good = false;
        }
    }
    return good;
}

/* Takes the ratios of the sizes that can be compared. Returns whether there are any, and counts the
 * candidate in |diff| if there are others. */
static bool take_ratios(struct bhi_judge_diff *diff, struct bhi_difference_of *one) {
    const bool same_device =
        !*diff->devices[0] || !*diff->devices[1] || !strcmp(diff->devices[0], diff->devices[1]);
    bool unlike[BHI_CONDITIONS][2] = {{false}}, unlike_device = false;
    struct means was = {0}, is = {0};
    for (size_t i = 0; i < one->after->timing_count; i++) {
        const struct bhi_past_timing *after = &one->after->timings[i],
                                     *before = find_size(one->before, after->size);
        if (before && !same_device) {
            unlike_device = true;
        } else if (before && alike(before, after, unlike)) {
            add_timing(&was, before);
            add_timing(&is, after);
        }
    }
    for (size_t i = 0; i < BHI_CONDITIONS; i++) {
        diff->unlike[i][false] += unlike[i][false];
        diff->unlike[i][true] += unlike[i][true];
    }
    diff->unlike_devices += unlike_device;
    if (is.count) {
        one->ratio_before = finish(&was);
        one->ratio_after = finish(&is);
    }
    return is.count;
}

/* -- candidates ---------------------------------------------------------------------------------
 */

static enum bhi_change compare(struct bhi_judge_diff *diff, struct bhi_difference_of *one) {
    const char *before = one->before->verdict, *after = one->after->verdict;
    const bool was = !strcmp(before, "CORRECT"), is = !strcmp(after, "CORRECT");
    if (was != is) {
        return is ? BHI_CHANGE_BETTER : BHI_CHANGE_WORSE;
    }
    if (!is) {
        return strcmp(before, after) != 0 ? BHI_CHANGE_OTHER : BHI_CHANGE_NONE;
    }
    if (!take_ratios(diff, one)) {
        return BHI_CHANGE_NONE;
    }
    return one->ratio_after.low > one->ratio_before.high   ? BHI_CHANGE_SLOWER
           : one->ratio_after.high < one->ratio_before.low ? BHI_CHANGE_FASTER
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

/* One of |before| and |after| may be NULL. */
static void add(struct bhi_judge_diff *diff, const struct bhi_past_candidate *before,
                const struct bhi_past_candidate *after) {
    struct bhi_difference_of *one = &diff->list[diff->count++];
    *one = (struct bhi_difference_of){.before = before,
                                      .after = after,
                                      .ratio_before = ratio_of(before),
                                      .ratio_after = ratio_of(after)};
    one->change = !before ? BHI_CHANGE_NEW : !after ? BHI_CHANGE_GONE : compare(diff, one);
    diff->of[one->change]++;
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
    *out =
        (struct bhi_judge_diff){.list = calloc(before->count + after->count + 1, sizeof *out->list),
                                .devices = {before->device, after->device}};
    const bool good = old && newer && pairs && kept && out->list;
    if (good) {
        pair(before, after, old, newer, pairs, kept);
        for (size_t i = 0; i < after->count; i++) {
            add(out, pairs[i], &after->list[i]);
        }
        for (size_t i = 0; i < before->count; i++) {
            if (!kept[i]) {
                add(out, &before->list[i], NULL);
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
