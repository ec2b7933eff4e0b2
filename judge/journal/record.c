#include "judge/journal/record.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "request/kernel_file.h"
#include "tool/json.h"
#include "tool/values.h"

enum { HASH_TEXT = 2 * BHI_CONTENT_HASH };

/* -- writing ------------------------------------------------------------------------------------
 */

static json_t *whole(uint64_t number) {
    return json_integer((json_int_t)number);
}

static json_t *timing_of(const bh_judge_timing *timing) {
    return json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b, s:b, s:b, s:f, s:i}",
        "size", (json_int_t)timing->size_index, "runs", (json_int_t)timing->runs, "median_ns",
        timing->median_ns, "reference_ns", timing->reference_ns, "ratio", timing->ratio, "low",
        timing->low, "high", timing->high, "noise", timing->noise, "drift", timing->drift,
        "host_ns", timing->host_ns, "device", timing->device, "cold", timing->cold, "noisy",
        timing->noisy, "spreads", timing->spreads, "one_processor", timing->one_processor,
        "guard_ratio", timing->guard_ratio, "doubt", (int)timing->doubt);
}

static json_t *difference_of(const struct bhi_difference *difference) {
    json_t *object = json_object();
    json_object_set_new(object, "wrong", whole(difference->wrong));
    json_object_set_new(object, "index", whole(difference->index));
    json_object_set_new(object, "expected", json_string(difference->expected));
    json_object_set_new(object, "got", json_string(difference->got));
    json_object_set_new(object, "ulp", bhi_json_digits(difference->ulp));
    return object;
}

json_t *bhi_judge_record_make(const struct bhi_court *court,
                              const struct bhi_candidate *candidate) {
    char content[HASH_TEXT + 1];
    json_t *record = json_object(), *timings = json_array();
    sodium_bin2hex(content, sizeof content, candidate->content, BHI_CONTENT_HASH);
    for (size_t i = 0; i < candidate->timing_count; i++) {
        json_array_append_new(timings, timing_of(&candidate->timings[i]));
    }
    /* Not bhi_json_text: the path is compared with one that is given again. A path that is not
     * UTF-8 has no record. */
    const int refused = json_object_set_new(record, "file", json_string(candidate->path));
    json_object_set_new(record, "content", json_string(content));
    json_object_set_new(
        record, "verdict",
        json_string(bh_judge_verdict_name(candidate->verdict, candidate->outcome.status)));
    json_object_set_new(record, "judgement", whole(candidate->verdict));
    json_object_set_new(record, "status", whole(candidate->outcome.status));
    json_object_set_new(record, "blame", whole(candidate->outcome.blame));
    json_object_set_new(record, "message", bhi_json_text(candidate->outcome.message));
    json_object_set_new(record, "runs", whole(candidate->runs));
    json_object_set_new(record, "nondeterministic", json_boolean(candidate->nondeterministic));
    json_object_set_new(record, "trial",
                        candidate->trial ? whole((uint64_t)(candidate->trial - court->trials.list))
                                         : json_null());
    json_object_set_new(record, "array", whole(candidate->array));
    json_object_set_new(record, "difference", difference_of(&candidate->difference));
    if (json_object_set_new(record, "timing", timings) != 0 || refused != 0) {
        json_decref(record);
        return NULL;
    }
    return record;
}

/* -- reading ------------------------------------------------------------------------------------
 */

/* Takes a whole number from 0 to |most|. */
static bool take_whole(const json_t *object, const char *key, uint64_t most, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0 && *out <= most;
}

static bool take_real(const json_t *object, const char *key, double *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    return json_is_number(value);
}

static bool take_flag(const json_t *object, const char *key, bool *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_true(value);
    return json_is_boolean(value);
}

static bool take_text(const json_t *object, const char *key, char *out, size_t capacity) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strlen(text) >= capacity) {
        return false;
    }
    strcpy(out, text);
    return true;
}

static bool take_difference(const json_t *object, struct bhi_difference *out) {
    const char *ulp = json_string_value(json_object_get(object, "ulp"));
    struct bhi_complaint ignored;
    return ulp && bhi_parse_count(ulp, 0, UINT64_MAX, &out->ulp, &ignored) &&
           take_whole(object, "wrong", INT64_MAX, &out->wrong) &&
           take_whole(object, "index", INT64_MAX, &out->index) &&
           take_text(object, "expected", out->expected, sizeof out->expected) &&
           take_text(object, "got", out->got, sizeof out->got);
}

static bool take_timing(const struct bhi_task *task, const json_t *object, bh_judge_timing *out) {
    uint64_t size = 0, runs = 0, doubt = 0;
    const bool good =
        take_whole(object, "size", task->size_count - 1, &size) &&
        take_whole(object, "runs", INT64_MAX, &runs) &&
        take_real(object, "median_ns", &out->median_ns) &&
        take_real(object, "reference_ns", &out->reference_ns) &&
        take_real(object, "ratio", &out->ratio) && take_real(object, "low", &out->low) &&
        take_real(object, "high", &out->high) && take_real(object, "noise", &out->noise) &&
        take_real(object, "drift", &out->drift) && take_real(object, "host_ns", &out->host_ns) &&
        take_flag(object, "device", &out->device) && take_flag(object, "cold", &out->cold) &&
        take_flag(object, "noisy", &out->noisy) &&
        take_real(object, "guard_ratio", &out->guard_ratio) &&
        take_whole(object, "doubt", BH_JUDGE_DOUBT_LOAD, &doubt) &&
        take_flag(object, "spreads", &out->spreads) &&
        take_flag(object, "one_processor", &out->one_processor);
    out->doubt = (bh_judge_doubt)doubt;
    out->size_index = (uint32_t)size;
    out->runs = runs;
    return good;
}

static bool take_timings(const struct bhi_task *task, const json_t *array,
                         struct bhi_candidate *out) {
    json_t *timing;
    size_t i;
    if (!json_is_array(array)) {
        return false;
    }
    if (!json_array_size(array)) {
        return true;
    }
    out->timings = calloc(json_array_size(array), sizeof *out->timings);
    if (!out->timings) {
        return false;
    }
    json_array_foreach((json_t *)array, i, timing) {
        if (!take_timing(task, timing, &out->timings[out->timing_count++])) {
            return false;
        }
    }
    return true;
}

static bool take_trial(const struct bhi_court *court, const json_t *record,
                       struct bhi_candidate *out) {
    uint64_t trial;
    if (json_is_null(json_object_get(record, "trial"))) {
        return out->verdict != BH_JUDGE_WRONG && out->verdict != BH_JUDGE_STRAY_WRITE;
    }
    if (!court->trials.count || !take_whole(record, "trial", court->trials.count - 1, &trial)) {
        return false;
    }
    out->trial = &court->trials.list[trial];
    return true;
}

bool bhi_judge_record_file(const json_t *record, const char **out_path,
                           uint8_t out_content[BHI_CONTENT_HASH]) {
    const char *content = json_string_value(json_object_get(record, "content"));
    *out_path = json_string_value(json_object_get(record, "file"));
    return *out_path && content && strlen(content) == HASH_TEXT &&
           sodium_hex2bin(out_content, BHI_CONTENT_HASH, content, HASH_TEXT, NULL, NULL, NULL) == 0;
}

bool bhi_judge_record_read(const struct bhi_court *court, const json_t *record,
                           struct bhi_candidate *out) {
    const struct bhi_task *task = court->task;
    const char *path;
    uint64_t judgement, status, blame, array;
    *out = (struct bhi_candidate){.has_content = true};
    if (!bhi_judge_record_file(record, &path, out->content) ||
        !take_whole(record, "judgement", BH_JUDGE_SLOWER, &judgement) ||
        !take_whole(record, "status", INT32_MAX, &status) ||
        !take_whole(record, "blame", BH_BLAME_CERTAIN, &blame) ||
        !take_whole(record, "array", task->array_count - 1, &array) ||
        !take_whole(record, "runs", INT64_MAX, &out->runs) ||
        !take_flag(record, "nondeterministic", &out->nondeterministic) ||
        !take_text(record, "message", out->outcome.message, sizeof out->outcome.message) ||
        !take_difference(json_object_get(record, "difference"), &out->difference)) {
        return false;
    }
    out->verdict = (bh_judge_verdict)judgement;
    out->outcome.status = (bh_status)status;
    out->outcome.blame = (bh_blame)blame;
    out->array = (uint32_t)array;
    bhi_kernel_file_name(path, out->name);
    if (!take_trial(court, record, out) ||
        !take_timings(task, json_object_get(record, "timing"), out)) {
        bhi_candidate_free(out);
        return false;
    }
    if (out->verdict == BH_JUDGE_SLOWER) { /* by an option of the run that recorded it */
        out->verdict = BH_JUDGE_CORRECT;
        out->outcome.message[0] = '\0';
        out->trial = NULL;
    }
    out->judged = true;
    return true;
}
