#include <stdio.h>
#include <string.h>

#include "judge/diff/diff.h"
#include "tool/json.h"
#include "tool/report/columns.h"
#include "tool/text.h"

static enum bhi_tone tone_of(enum bhi_change change) {
    switch (change) {
    case BHI_CHANGE_WORSE:
    case BHI_CHANGE_SLOWER:
        return BHI_TONE_BAD;
    case BHI_CHANGE_BETTER:
    case BHI_CHANGE_FASTER:
        return BHI_TONE_GOOD;
    default:
        return BHI_TONE_PLAIN;
    }
}

static void add_row(struct bhi_columns *table, const struct bhi_difference_of *one) {
    const struct bhi_past_candidate *shown = one->after ? one->after : one->before;
    char times[80];
    const char *message = one->after && *one->after->message ? one->after->message : "-";
    if (one->change == BHI_CHANGE_SLOWER || one->change == BHI_CHANGE_FASTER) {
        snprintf(times, sizeof times, "%.3f times the reference, before %.3f",
                 one->ratio_after.ratio, one->ratio_before.ratio);
        message = times;
    }
    const char *cells[] = {shown->file, bhi_change_name(one->change),
                           one->before ? one->before->verdict : "-",
                           one->after ? one->after->verdict : "-", message};
    bhi_columns_row(table, cells, tone_of(one->change));
}

/* -- what is not compared -----------------------------------------------------------------------
 */

/* Why times of some candidates are not compared. */
struct reason {
    const char *condition, *before, *after;
    size_t candidates;
};

enum { REASONS = 2 * BHI_CONDITIONS + 1 };

static size_t list_reasons(const struct bhi_judge_diff *diff, struct reason out[REASONS]) {
    static const struct {
        const char *name, *is[2];
    } conditions[BHI_CONDITIONS] = {
        [BHI_CONDITION_PROCESSORS] = {"processors",
                                      {"not on one processor (--all-processors, or another device)",
                                       "on one processor"}},
        [BHI_CONDITION_CACHES] = {"caches", {"with warm caches", "with cold caches"}},
        [BHI_CONDITION_CLOCK] = {"clock", {"by the host's clock", "by the device's clock"}},
    };
    size_t count = 0;
    if (diff->unlike_devices) {
        out[count++] =
            (struct reason){"device", diff->devices[0], diff->devices[1], diff->unlike_devices};
    }
    for (size_t i = 0; i < BHI_CONDITIONS; i++) {
        for (size_t is = 0; is < 2; is++) {
            if (diff->unlike[i][is]) {
                out[count++] = (struct reason){conditions[i].name, conditions[i].is[!is],
                                               conditions[i].is[is], diff->unlike[i][is]};
            }
        }
    }
    return count;
}

static void print_reasons(const struct bhi_judge_diff *diff, const char *before,
                          const char *after) {
    struct reason reasons[REASONS];
    const size_t count = list_reasons(diff, reasons);
    for (size_t i = 0; i < count; i++) {
        const struct reason *one = &reasons[i];
        const char *on = strcmp(one->condition, "device") != 0 ? "" : "on ";
        char line[4096], clean[4096]; /* devices are texts of the files */
        snprintf(line, sizeof line,
                 "times of %zu candidate%s are not compared: %.1200s has them %s%.200s, %.1200s "
                 "%s%.200s",
                 one->candidates, one->candidates == 1 ? "" : "s", before, on, one->before, after,
                 on, one->after);
        puts(bhi_text_clean(clean, sizeof clean, line));
    }
}

static json_t *reasons_of(const struct bhi_judge_diff *diff) {
    struct reason reasons[REASONS];
    const size_t count = list_reasons(diff, reasons);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "condition", json_string(reasons[i].condition));
        json_object_set_new(object, "before", bhi_json_text(reasons[i].before));
        json_object_set_new(object, "after", bhi_json_text(reasons[i].after));
        json_object_set_new(object, "candidates", json_integer((json_int_t)reasons[i].candidates));
        json_array_append_new(array, object);
    }
    return array;
}

/* -- the whole ----------------------------------------------------------------------------------
 */

void bhi_judge_diff_print(const struct bhi_judge_diff *diff, const char *before,
                          const char *after) {
    static const struct bhi_column columns[] = {{.name = "CANDIDATE"},
                                                {.name = "CHANGE", .toned = true},
                                                {.name = "BEFORE"},
                                                {.name = "NOW"},
                                                {.name = "MESSAGE"}};
    struct bhi_columns table;
    if (diff->of[BHI_CHANGE_NONE] < diff->count) {
        bhi_columns_init(&table, columns, 5);
        for (size_t i = 0; i < diff->count; i++) {
            if (diff->list[i].change != BHI_CHANGE_NONE) {
                add_row(&table, &diff->list[i]);
            }
        }
        (void)bhi_columns_print(&table, stdout, 0, bhi_columns_width(stdout));
        bhi_columns_free(&table);
        printf("\n");
    }
    printf("%zu candidate%s: %zu same", diff->count, diff->count == 1 ? "" : "s",
           diff->of[BHI_CHANGE_NONE]);
    for (enum bhi_change change = BHI_CHANGE_NONE + 1; change < BHI_CHANGES; change++) {
        if (diff->of[change]) {
            printf(", %zu %s", diff->of[change], bhi_change_name(change));
        }
    }
    printf("\n");
    print_reasons(diff, before, after);
}

static json_t *verdict_of(const struct bhi_past_candidate *candidate) {
    return candidate ? bhi_json_text(candidate->verdict) : json_null();
}

static json_t *ratio_of(const struct bhi_past_ratio *ratio) {
    return ratio->ratio > 0 ? json_real(ratio->ratio) : json_null();
}

static json_t *object_of(const struct bhi_difference_of *one) {
    json_t *object = json_object();
    json_object_set_new(object, "file",
                        bhi_json_text(one->after ? one->after->file : one->before->file));
    json_object_set_new(object, "change", json_string(bhi_change_name(one->change)));
    json_object_set_new(object, "before", verdict_of(one->before));
    json_object_set_new(object, "after", verdict_of(one->after));
    json_object_set_new(object, "message",
                        one->after ? bhi_json_text(one->after->message) : json_null());
    json_object_set_new(object, "ratio_before", ratio_of(&one->ratio_before));
    json_object_set_new(object, "ratio_after", ratio_of(&one->ratio_after));
    return object;
}

void bhi_judge_diff_print_json(const struct bhi_judge_diff *diff, const char *before,
                               const char *after) {
    json_t *object = json_object(), *changes = json_array();
    for (size_t i = 0; i < diff->count; i++) {
        if (diff->list[i].change != BHI_CHANGE_NONE) {
            json_array_append_new(changes, object_of(&diff->list[i]));
        }
    }
    json_object_set_new(object, "before", bhi_json_text(before));
    json_object_set_new(object, "after", bhi_json_text(after));
    json_object_set_new(object, "same", json_integer((json_int_t)diff->of[BHI_CHANGE_NONE]));
    json_object_set_new(object, "changes", changes);
    json_object_set_new(object, "not_compared", reasons_of(diff));
    bhi_json_print(object);
}
