/* bulkhead judge --diff: what has changed between two runs. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/mains.h"
#include "judge/task/reading.h"
#include "request/code.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/report/columns.h"
#include "tool/text.h"

/* -- a run, as --json has printed it --------------------------------------------------------- */

/* How a time was measured: times that differ in one of these say nothing about each other. */
enum condition {
    CONDITION_PROCESSORS, /* set: on one processor */
    CONDITION_CACHES,     /* set: cold */
    CONDITION_CLOCK,      /* set: the device's */
    CONDITION_BASELINE,   /* set: beside a baseline */
    CONDITIONS
};

/* Times of one size whose ratio is known. */
struct past_timing {
    const json_t *size; /* borrowed from the run's |json|; NULL: not recorded */
    double ratio, low, high;
    bool conditions[CONDITIONS];
};

/* Texts are borrowed from the run's |json|. */
struct past_candidate {
    const char *file, *verdict, *message;
    struct past_timing *timings; /* owned */
    size_t timing_count;
};

struct past_run {
    json_t *json; /* owned */
    const char *task;
    const char *device;          /* its selector; "": an earlier version has not recorded it */
    const char *baseline;        /* its file; "": none, or likewise */
    struct past_candidate *list; /* owned */
    size_t count;
};

/* Takes the string |key| of |object|. */
static bool take_text(struct bhi_reading *reading, const json_t *object, const char *key,
                      bool may_be_empty, const char **out) {
    const json_t *value = json_object_get(object, key);
    *out = json_string_value(value);
    if (*out && (may_be_empty || **out)) {
        return true;
    }
    if (!value) {
        return bhi_reading_refuse(reading, "there is no \"%s\"", key);
    }
    bhi_reading_enter(reading, key);
    return bhi_reading_refuse(reading, *out ? "it is empty" : "it must be a string");
}

/* A number above 0; null is 0. */
static bool take_ratio(struct bhi_reading *reading, const json_t *timing, const char *key,
                       double *out) {
    const json_t *value = json_object_get(timing, key);
    *out = json_number_value(value);
    if (json_is_null(value) || *out > 0) {
        return true;
    }
    if (!value) {
        return bhi_reading_refuse(reading, "there is no \"%s\"", key);
    }
    bhi_reading_enter(reading, key);
    return bhi_reading_refuse(reading, "it must be a number above 0, or null");
}

/* Takes each element of |array|, the value of |key|: into |list|, for which the caller has asked for
 * memory. */
static bool take_objects(struct bhi_reading *reading, const char *key, const json_t *array,
                         const char *must_be, const void *list,
                         bool (*take)(struct bhi_reading *, const json_t *, void *), void *out) {
    json_t *one;
    size_t i;
    bhi_reading_enter(reading, key);
    if (!json_is_array(array)) {
        return bhi_reading_refuse(reading, "it must be %s", must_be);
    }
    if (!list) {
        return bhi_refuse(reading->complaint, "out of memory");
    }
    json_array_foreach(array, i, one) {
        bhi_reading_enter_element(reading, i);
        if (!json_is_object(one)) {
            return bhi_reading_refuse(reading, "it must be an object");
        }
        if (!take(reading, one, out)) {
            return false;
        }
        bhi_reading_leave(reading);
    }
    bhi_reading_leave(reading);
    return true;
}

/* Adds the times of one size to a candidate's, unless their ratio is not known. */
static bool take_size(struct bhi_reading *reading, const json_t *timing, void *candidate) {
    static const char *const conditions[CONDITIONS] = {[CONDITION_PROCESSORS] = "one_processor",
                                                       [CONDITION_CACHES] = "cold",
                                                       [CONDITION_CLOCK] = "device",
                                                       [CONDITION_BASELINE] = "baseline"};
    struct past_candidate *out = candidate;
    struct past_timing one = {.size = json_object_get(timing, "size")};
    if (!take_ratio(reading, timing, "ratio", &one.ratio) ||
        !take_ratio(reading, timing, "low", &one.low) ||
        !take_ratio(reading, timing, "high", &one.high)) {
        return false;
    }
    for (size_t i = 0; i < CONDITIONS; i++) {
        one.conditions[i] = json_is_true(json_object_get(timing, conditions[i]));
    }
    if (one.ratio > 0 && one.low > 0 && one.high > 0) {
        out->timings[out->timing_count++] = one;
    }
    return true;
}

/* Adds a candidate to a run's. */
static bool take_candidate(struct bhi_reading *reading, const json_t *object, void *user) {
    struct past_run *run = user;
    struct past_candidate *out = &run->list[run->count++];
    const json_t *timing = json_object_get(object, "timing");
    if (!take_text(reading, object, "file", false, &out->file) ||
        !take_text(reading, object, "verdict", false, &out->verdict) ||
        !take_text(reading, object, "message", true, &out->message)) {
        return false;
    }
    if (!timing || json_is_null(timing)) {
        return true;
    }
    out->timings = calloc(json_array_size(timing) + 1, sizeof *out->timings);
    return take_objects(reading, "timing", timing, "an array, or null", out->timings, take_size,
                        out);
}

static bool take_run(struct bhi_reading *reading, struct past_run *run) {
    const json_t *candidates = json_object_get(run->json, "candidates");
    if (!json_is_object(run->json)) {
        return bhi_reading_refuse(reading,
                                  "it must be an object, as bulkhead judge --json prints it");
    }
    if (json_object_get(run->json, "error")) {
        bhi_reading_enter(reading, "error");
        return bhi_reading_refuse(reading, "the run failed: no candidate was judged");
    }
    if (!take_text(reading, run->json, "task", true, &run->task)) {
        return false;
    }
    run->device = "";
    if (json_object_get(run->json, "device") &&
        !take_text(reading, run->json, "device", true, &run->device)) {
        return false;
    }
    const json_t *baseline = json_object_get(run->json, "baseline");
    run->baseline = "";
    if (baseline && !json_is_null(baseline) &&
        !take_text(reading, run->json, "baseline", true, &run->baseline)) {
        return false;
    }
    if (!candidates) {
        return bhi_reading_refuse(reading, "there is no \"candidates\"");
    }
    run->list = calloc(json_array_size(candidates) + 1, sizeof *run->list);
    return take_objects(reading, "candidates", candidates, "an array", run->list, take_candidate,
                        run);
}

/* Reads the file at |path| ("-": standard input). The complaint begins with PATH:LINE: and the
 * field. *out_errno is the errno if the file cannot be read, otherwise 0. */
static bool read_run(const char *path, struct past_run *out, int *out_errno,
                     struct bhi_complaint *complaint) {
    struct bhi_reading reading = {.name = path, .complaint = complaint};
    struct bhi_complaint inner;
    json_error_t error;
    void *text;
    size_t size;
    if (!bhi_code_read(path, &text, &size, out_errno, &inner)) {
        return bhi_refuse(complaint, "%.300s: %.600s", path, inner.text);
    }
    *out_errno = 0;
    reading.text = text;
    out->json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    bool good;
    if (strlen(text) != size) {
        good = bhi_refuse(complaint, "%.300s: not JSON: it contains a NUL byte", path);
    } else if (out->json) {
        good = take_run(&reading, out);
    } else if (json_error_code(&error) == json_error_out_of_memory) {
        good = bhi_refuse(complaint, "out of memory");
    } else {
        good = bhi_refuse(complaint, "%.200s:%d: not JSON: %.200s (column %d)", path, error.line,
                          error.text, error.column);
    }
    free(text);
    return good;
}

static void free_run(struct past_run *run) {
    for (size_t i = 0; i < run->count; i++) {
        free(run->list[i].timings);
    }
    free(run->list);
    json_decref(run->json);
    *run = (struct past_run){0};
}

/* -- what has changed ------------------------------------------------------------------------ */

enum change {
    CHANGE_NONE,
    CHANGE_WORSE,  /* it was CORRECT and is no more */
    CHANGE_SLOWER, /* CORRECT both times; the intervals of its ratio do not meet */
    CHANGE_GONE,   /* only the run before has it */
    CHANGE_OTHER,  /* another verdict; CORRECT neither then nor now */
    CHANGE_FASTER,
    CHANGE_BETTER,
    CHANGE_NEW,
    CHANGES
};

/* Relative to the reference: geometric means of sizes; 0: not measured. */
struct past_ratio {
    double ratio, low, high;
};

/* If both runs have times that can be compared, the ratios are of these sizes alone, otherwise of
 * all sizes. */
struct difference {
    enum change change;
    const struct past_candidate *before, *after; /* borrowed from the runs; one may be NULL */
    struct past_ratio ratio_before, ratio_after;
};

struct diff {
    struct difference *list; /* owned: those of |after| in its order, then those gone */
    size_t count;
    size_t of[CHANGES]; /* how many there are of each kind */
    /* Of how many candidates times are not compared, because they were measured in other ways. The
     * second index is the condition of the run after. */
    size_t unlike[CONDITIONS][2];
    size_t unlike_devices;    /* because each run was on another device, */
    size_t unlike_baselines;  /* or beside another baseline */
    const char *devices[2];   /* before and after; borrowed from the runs */
    const char *baselines[2]; /* likewise */
};

/* "worse", "slower", …; "same" of CHANGE_NONE. */
static const char *change_name(enum change change) {
    static const char *const names[CHANGES] = {
        [CHANGE_NONE] = "same",     [CHANGE_WORSE] = "worse", [CHANGE_SLOWER] = "slower",
        [CHANGE_GONE] = "gone",     [CHANGE_OTHER] = "other", [CHANGE_FASTER] = "faster",
        [CHANGE_BETTER] = "better", [CHANGE_NEW] = "new"};
    return names[change];
}

/* -- ratios ---------------------------------------------------------------------------------- */

/* Geometric means, while they are summed up. */
struct means {
    double ratio, low, high;
    size_t count;
};

static void add_timing(struct means *means, const struct past_timing *timing) {
    means->ratio += log(timing->ratio);
    means->low += log(timing->low);
    means->high += log(timing->high);
    means->count++;
}

static struct past_ratio finish(const struct means *means) {
    const double count = (double)means->count;
    return means->count ? (struct past_ratio){exp(means->ratio / count), exp(means->low / count),
                                              exp(means->high / count)}
                        : (struct past_ratio){0};
}

/* Of all its sizes; |candidate| may be NULL. */
static struct past_ratio ratio_of(const struct past_candidate *candidate) {
    struct means means = {0};
    for (size_t i = 0; candidate && i < candidate->timing_count; i++) {
        add_timing(&means, &candidate->timings[i]);
    }
    return finish(&means);
}

static const struct past_timing *find_size(const struct past_candidate *candidate,
                                           const json_t *size) {
    for (size_t i = 0; i < candidate->timing_count; i++) {
        const json_t *its = candidate->timings[i].size;
        if (its == size || json_equal(its, size)) { /* both may be NULL */
            return &candidate->timings[i];
        }
    }
    return NULL;
}

/* Are they known, and not the same? */
static bool differ(const char *const texts[2]) {
    return *texts[0] && *texts[1] && strcmp(texts[0], texts[1]) != 0;
}

/* Marks in |unlike| how the two were measured differently. Returns false if they were. */
static bool alike(const struct past_timing *before, const struct past_timing *after,
                  bool unlike[CONDITIONS][2]) {
    bool good = true;
    for (size_t i = 0; i < CONDITIONS; i++) {
        if (before->conditions[i] != after->conditions[i]) {
            unlike[i][after->conditions[i]] = true;
            good = false;
        }
    }
    return good;
}

/* Takes the ratios of the sizes that can be compared. Returns whether there are any, and counts the
 * candidate in |diff| if there are others. */
static bool take_ratios(struct diff *diff, struct difference *one) {
    bool unlike[CONDITIONS][2] = {{false}}, unlike_device = false, unlike_baseline = false;
    struct means was = {0}, is = {0};
    for (size_t i = 0; i < one->after->timing_count; i++) {
        const struct past_timing *after = &one->after->timings[i],
                                 *before = find_size(one->before, after->size);
        if (before && differ(diff->devices)) {
            unlike_device = true;
        } else if (before && before->conditions[CONDITION_BASELINE] &&
                   after->conditions[CONDITION_BASELINE] && differ(diff->baselines)) {
            unlike_baseline = true;
        } else if (before && alike(before, after, unlike)) {
            add_timing(&was, before);
            add_timing(&is, after);
        }
    }
    for (size_t i = 0; i < CONDITIONS; i++) {
        diff->unlike[i][false] += unlike[i][false];
        diff->unlike[i][true] += unlike[i][true];
    }
    diff->unlike_devices += unlike_device;
    diff->unlike_baselines += unlike_baseline;
    if (is.count) {
        one->ratio_before = finish(&was);
        one->ratio_after = finish(&is);
    }
    return is.count;
}

/* -- candidates ------------------------------------------------------------------------------ */

static enum change compare(struct diff *diff, struct difference *one) {
    const char *before = one->before->verdict, *after = one->after->verdict;
    const bool was = !strcmp(before, "CORRECT"), is = !strcmp(after, "CORRECT");
    if (was != is) {
        return is ? CHANGE_BETTER : CHANGE_WORSE;
    }
    if (!is) {
        return strcmp(before, after) != 0 ? CHANGE_OTHER : CHANGE_NONE;
    }
    if (!take_ratios(diff, one)) {
        return CHANGE_NONE;
    }
    return one->ratio_after.low > one->ratio_before.high   ? CHANGE_SLOWER
           : one->ratio_after.high < one->ratio_before.low ? CHANGE_FASTER
                                                           : CHANGE_NONE;
}

static int compare_files(const void *a, const void *b) {
    const struct past_candidate *const *x = a, *const *y = b;
    const int order = strcmp((*x)->file, (*y)->file);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Pointers to the run's candidates, by file, and in their order where the files are the same. */
static const struct past_candidate **sort(const struct past_run *run) {
    const struct past_candidate **sorted = calloc(run->count + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < run->count; i++) {
        sorted[i] = &run->list[i];
    }
    if (sorted) {
        qsort(sorted, run->count, sizeof *sorted, compare_files);
    }
    return sorted;
}

/* One of |before| and |after| may be NULL. */
static void add(struct diff *diff, const struct past_candidate *before,
                const struct past_candidate *after) {
    struct difference *one = &diff->list[diff->count++];
    *one = (struct difference){.before = before,
                               .after = after,
                               .ratio_before = ratio_of(before),
                               .ratio_after = ratio_of(after)};
    one->change = !before ? CHANGE_NEW : !after ? CHANGE_GONE : compare(diff, one);
    diff->of[one->change]++;
}

/* |pairs|: for each candidate of |after| the one before, or NULL. */
static void pair(const struct past_run *before, const struct past_run *after,
                 const struct past_candidate **old, const struct past_candidate **newer,
                 const struct past_candidate **pairs, bool *kept) {
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

static void free_diff(struct diff *diff) {
    free(diff->list);
    *diff = (struct diff){0};
}

/* Compares candidates of the same file. A file that a run has twice is compared in the order in
 * which it was given. Times are compared size by size, where both runs have them and measured them
 * in the same way. Returns false if memory ran out. */
static bool make_diff(const struct past_run *before, const struct past_run *after,
                      struct diff *out) {
    const struct past_candidate **old = sort(before), **newer = sort(after),
                                **pairs = calloc(after->count + 1, sizeof *pairs);
    bool *kept = calloc(before->count + 1, sizeof *kept);
    *out = (struct diff){.list = calloc(before->count + after->count + 1, sizeof *out->list),
                         .devices = {before->device, after->device},
                         .baselines = {before->baseline, after->baseline}};
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
        free_diff(out);
    }
    free(old);
    free(newer);
    free(pairs);
    free(kept);
    return good;
}

static enum bhi_tone tone_of(enum change change) {
    switch (change) {
    case CHANGE_WORSE:
    case CHANGE_SLOWER:
        return BHI_TONE_BAD;
    case CHANGE_BETTER:
    case CHANGE_FASTER:
        return BHI_TONE_GOOD;
    default:
        return BHI_TONE_PLAIN;
    }
}

static void add_row(struct bhi_columns *table, const struct difference *one) {
    const struct past_candidate *shown = one->after ? one->after : one->before;
    char times[80];
    const char *message = one->after && *one->after->message ? one->after->message : "-";
    if (one->change == CHANGE_SLOWER || one->change == CHANGE_FASTER) {
        snprintf(times, sizeof times, "%.3f times the reference, before %.3f",
                 one->ratio_after.ratio, one->ratio_before.ratio);
        message = times;
    }
    const char *cells[] = {shown->file, change_name(one->change),
                           one->before ? one->before->verdict : "-",
                           one->after ? one->after->verdict : "-", message};
    bhi_columns_row(table, cells, tone_of(one->change));
}

/* -- what is not compared -------------------------------------------------------------------- */

/* Why times of some candidates are not compared. */
struct reason {
    const char *condition, *before, *after;
    size_t candidates;
    const char *preposition; /* of |before| and |after| */
};

enum { REASONS = 2 * CONDITIONS + 2 };

static size_t list_reasons(const struct diff *diff, struct reason out[REASONS]) {
    static const struct {
        const char *name, *is[2];
    } conditions[CONDITIONS] = {
        [CONDITION_PROCESSORS] = {"processors",
                                  {"not on one processor (--all-processors, or another device)",
                                   "on one processor"}},
        [CONDITION_CACHES] = {"caches", {"with warm caches", "with cold caches"}},
        [CONDITION_CLOCK] = {"clock", {"by the host's clock", "by the device's clock"}},
        [CONDITION_BASELINE] = {"baseline", {"beside the reference", "beside a baseline"}},
    };
    size_t count = 0;
    if (diff->unlike_devices) {
        out[count++] = (struct reason){"device", diff->devices[0], diff->devices[1],
                                       diff->unlike_devices, "on "};
    }
    if (diff->unlike_baselines) {
        out[count++] = (struct reason){"baseline", diff->baselines[0], diff->baselines[1],
                                       diff->unlike_baselines, "beside "};
    }
    for (size_t i = 0; i < CONDITIONS; i++) {
        for (size_t is = 0; is < 2; is++) {
            if (diff->unlike[i][is]) {
                out[count++] = (struct reason){conditions[i].name, conditions[i].is[!is],
                                               conditions[i].is[is], diff->unlike[i][is], ""};
            }
        }
    }
    return count;
}

static void print_reasons(const struct diff *diff, const char *before, const char *after) {
    struct reason reasons[REASONS];
    const size_t count = list_reasons(diff, reasons);
    for (size_t i = 0; i < count; i++) {
        const struct reason *one = &reasons[i];
        char line[4096], clean[4096]; /* devices and baselines are texts of the files */
        snprintf(line, sizeof line,
                 "times of %zu candidate%s are not compared: %.1200s has them %s%.200s, %.1200s "
                 "%s%.200s",
                 one->candidates, one->candidates == 1 ? "" : "s", before, one->preposition,
                 one->before, after, one->preposition, one->after);
        puts(bhi_text_clean(clean, sizeof clean, line));
    }
}

static json_t *reasons_of(const struct diff *diff) {
    struct reason reasons[REASONS];
    const size_t count = list_reasons(diff, reasons);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array,
                              BHI_JSON({"condition", json_string(reasons[i].condition)},
                                       {"before", bhi_json_text(reasons[i].before)},
                                       {"after", bhi_json_text(reasons[i].after)},
                                       {"candidates", bhi_json_number(reasons[i].candidates)}));
    }
    return array;
}

/* -- the whole ------------------------------------------------------------------------------- */

/* Print what differs: a table with a summary, or one JSON object (docs/judge.md). */
static void print_table(const struct diff *diff, const char *before, const char *after) {
    static const struct bhi_column columns[] = {{.name = "CANDIDATE"},
                                                {.name = "CHANGE", .toned = true},
                                                {.name = "BEFORE"},
                                                {.name = "NOW"},
                                                {.name = "MESSAGE"}};
    struct bhi_columns table;
    if (diff->of[CHANGE_NONE] < diff->count) {
        bhi_columns_init(&table, columns, 5);
        for (size_t i = 0; i < diff->count; i++) {
            if (diff->list[i].change != CHANGE_NONE) {
                add_row(&table, &diff->list[i]);
            }
        }
        (void)bhi_columns_print(&table, stdout, 0, bhi_columns_width(stdout));
        bhi_columns_free(&table);
        printf("\n");
    }
    printf("%zu candidate%s: %zu same", diff->count, diff->count == 1 ? "" : "s",
           diff->of[CHANGE_NONE]);
    for (enum change change = CHANGE_NONE + 1; change < CHANGES; change++) {
        if (diff->of[change]) {
            printf(", %zu %s", diff->of[change], change_name(change));
        }
    }
    printf("\n");
    print_reasons(diff, before, after);
}

static json_t *verdict_of(const struct past_candidate *candidate) {
    return candidate ? bhi_json_text(candidate->verdict) : json_null();
}

static json_t *json_ratio(const struct past_ratio *ratio) {
    return ratio->ratio > 0 ? json_real(ratio->ratio) : json_null();
}

static json_t *object_of(const struct difference *one) {
    return BHI_JSON({"file", bhi_json_text(one->after ? one->after->file : one->before->file)},
                    {"change", json_string(change_name(one->change))},
                    {"before", verdict_of(one->before)}, {"after", verdict_of(one->after)},
                    {"message", one->after ? bhi_json_text(one->after->message) : json_null()},
                    {"ratio_before", json_ratio(&one->ratio_before)},
                    {"ratio_after", json_ratio(&one->ratio_after)});
}

static void print_json(const struct diff *diff, const char *before, const char *after) {
    json_t *changes = json_array();
    for (size_t i = 0; i < diff->count; i++) {
        if (diff->list[i].change != CHANGE_NONE) {
            json_array_append_new(changes, object_of(&diff->list[i]));
        }
    }
    bhi_json_print(BHI_JSON({"before", bhi_json_text(before)}, {"after", bhi_json_text(after)},
                            {"same", bhi_json_number(diff->of[CHANGE_NONE])}, {"changes", changes},
                            {"not_compared", reasons_of(diff)}));
}

/* -- the command ----------------------------------------------------------------------------- */

static int refused(bh_status status, const struct bhi_complaint *complaint) {
    bhi_complain("judge", "%s", complaint->text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

static bool check_options(const struct bhi_args *args, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < args->item_count; i++) {
        const enum bhi_option_id option = args->items[i].option;
        if (option != BHI_JUDGE_DIFF && option != BHI_JUDGE_JSON) {
            return bhi_refuse(complaint,
                              "--diff compares two files and runs nothing: it excludes --%s",
                              bhi_options[option].name);
        }
    }
    return args->operand_count == 2 ||
           bhi_refuse(complaint, "--diff compares two files, what --json has printed before and "
                                 "after; see bulkhead judge --help");
}

static int compare_runs(const struct bhi_args *args, const struct past_run *before,
                        const struct past_run *after) {
    const char *const *paths = args->operands;
    struct bhi_complaint complaint;
    struct diff diff;
    if (strcmp(before->task, after->task) != 0) {
        bhi_refuse(&complaint, "%.200s is of the task '%.100s', %.200s of '%.100s'", paths[0],
                   before->task, paths[1], after->task);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (!make_diff(before, after, &diff)) {
        return bhi_complain_memory("judge");
    }
    if (bhi_args_has(args, BHI_JUDGE_JSON)) {
        print_json(&diff, paths[0], paths[1]);
    } else {
        print_table(&diff, paths[0], paths[1]);
    }
    const bool worse = diff.of[CHANGE_WORSE] || diff.of[CHANGE_SLOWER];
    free_diff(&diff);
    return worse ? BHI_EXIT_POISONED : BHI_EXIT_READY;
}

int bhi_judge_diff_main(const struct bhi_args *args) {
    struct past_run runs[2] = {{0}};
    struct bhi_complaint complaint;
    int error = 0, exit_status;
    if (!check_options(args, &complaint)) {
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (read_run(args->operands[0], &runs[0], &error, &complaint) &&
        read_run(args->operands[1], &runs[1], &error, &complaint)) {
        exit_status = compare_runs(args, &runs[0], &runs[1]);
    } else {
        exit_status = refused(error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, &complaint);
    }
    free_run(&runs[0]);
    free_run(&runs[1]);
    return exit_status;
}
