#include "judge/diff/run.h"

#include <stdlib.h>
#include <string.h>

#include "judge/task/reading.h"
#include "request/code.h"

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

/* Adds the times of one size, unless their ratio is not known. */
static bool add_timing(struct bhi_reading *reading, const json_t *timing,
                       struct bhi_past_candidate *out) {
    static const char *const conditions[BHI_CONDITIONS] = {[BHI_CONDITION_PROCESSORS] =
                                                               "one_processor",
                                                           [BHI_CONDITION_CACHES] = "cold",
                                                           [BHI_CONDITION_CLOCK] = "device"};
    struct bhi_past_timing one = {.size = json_object_get(timing, "size")};
    if (!json_is_object(timing)) {
        return bhi_reading_refuse(reading, "it must be an object");
    }
    if (!take_ratio(reading, timing, "ratio", &one.ratio) ||
        !take_ratio(reading, timing, "low", &one.low) ||
        !take_ratio(reading, timing, "high", &one.high)) {
        return false;
    }
    for (size_t i = 0; i < BHI_CONDITIONS; i++) {
        one.conditions[i] = json_is_true(json_object_get(timing, conditions[i]));
    }
    if (one.ratio > 0 && one.low > 0 && one.high > 0) {
        out->timings[out->timing_count++] = one;
    }
    return true;
}

static bool take_timing(struct bhi_reading *reading, const json_t *object,
                        struct bhi_past_candidate *out) {
    const json_t *timing = json_object_get(object, "timing");
    json_t *one;
    size_t i;
    if (!timing || json_is_null(timing)) {
        return true;
    }
    bhi_reading_enter(reading, "timing");
    if (!json_is_array(timing)) {
        return bhi_reading_refuse(reading, "it must be an array, or null");
    }
    out->timings = calloc(json_array_size(timing) + 1, sizeof *out->timings);
    if (!out->timings) {
        return bhi_refuse(reading->complaint, "out of memory");
    }
    json_array_foreach(timing, i, one) {
        bhi_reading_enter_element(reading, i);
        if (!add_timing(reading, one, out)) {
            return false;
        }
        bhi_reading_leave(reading);
    }
    bhi_reading_leave(reading);
    return true;
}

static bool take_candidate(struct bhi_reading *reading, const json_t *object,
                           struct bhi_past_candidate *out) {
    if (!json_is_object(object)) {
        return bhi_reading_refuse(reading, "it must be an object");
    }
    return take_text(reading, object, "file", false, &out->file) &&
           take_text(reading, object, "verdict", false, &out->verdict) &&
           take_text(reading, object, "message", true, &out->message) &&
           take_timing(reading, object, out);
}

static bool take_run(struct bhi_reading *reading, struct bhi_past_run *run) {
    const json_t *candidates = json_object_get(run->json, "candidates");
    json_t *candidate;
    size_t i;
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
    if (!candidates) {
        return bhi_reading_refuse(reading, "there is no \"candidates\"");
    }
    bhi_reading_enter(reading, "candidates");
    if (!json_is_array(candidates)) {
        return bhi_reading_refuse(reading, "it must be an array");
    }
    run->list = calloc(json_array_size(candidates) + 1, sizeof *run->list);
    if (!run->list) {
        return bhi_refuse(reading->complaint, "out of memory");
    }
    json_array_foreach(candidates, i, candidate) {
        bhi_reading_enter_element(reading, i);
        if (!take_candidate(reading, candidate, &run->list[run->count++])) {
            return false;
        }
        bhi_reading_leave(reading);
    }
    bhi_reading_leave(reading);
    return true;
}

bool bhi_past_run_parse(const char *name, const char *text, struct bhi_past_run *out,
                        struct bhi_complaint *complaint) {
    struct bhi_reading reading = {.name = name, .text = text, .complaint = complaint};
    json_error_t error;
    *out = (struct bhi_past_run){.json = json_loads(text, JSON_REJECT_DUPLICATES, &error)};
    if (!out->json) {
        if (json_error_code(&error) == json_error_out_of_memory) {
            return bhi_refuse(complaint, "out of memory");
        }
        return bhi_refuse(complaint, "%.200s:%d: not JSON: %.200s (column %d)", name, error.line,
                          error.text, error.column);
    }
    if (take_run(&reading, out)) {
        return true;
    }
    bhi_past_run_free(out);
    return false;
}

bool bhi_past_run_read(const char *path, struct bhi_past_run *out, int *out_errno,
                       struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    void *text;
    size_t size;
    if (!bhi_code_read(path, &text, &size, out_errno, &inner)) {
        return bhi_refuse(complaint, "%.300s: %.600s", path, inner.text);
    }
    *out_errno = 0;
    const bool good = strlen(text) == size
                          ? bhi_past_run_parse(path, text, out, complaint)
                          : bhi_refuse(complaint, "%.300s: not JSON: it contains a NUL byte", path);
    free(text);
    return good;
}

void bhi_past_run_free(struct bhi_past_run *run) {
    for (size_t i = 0; i < run->count; i++) {
        free(run->list[i].timings);
    }
    free(run->list);
    json_decref(run->json);
    *run = (struct bhi_past_run){0};
}
