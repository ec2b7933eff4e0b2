#include "tool/json.h"
#include "judge/report/report.h"

static json_t *seeds_of(const uint64_t *seeds, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, bhi_json_digits(seeds[i]));
    }
    return array;
}

static json_t *size_of(const struct bhi_task *task, size_t size) {
    json_t *object = json_object();
    for (size_t i = 0; i < task->parameter_count; i++) {
        json_object_set_new(object, task->parameters[i],
                            json_integer((json_int_t)task->sizes[size].values[i]));
    }
    return object;
}

/* Where and how its output is wrong. */
static json_t *wrong_of(const bh_judgement *of) {
    if (of->verdict != BH_JUDGE_WRONG) {
        return json_null();
    }
    json_t *object = json_object(), *index = json_array();
    for (uint32_t i = 0; i < of->rank; i++) {
        json_array_append_new(index, json_integer((json_int_t)of->index[i]));
    }
    json_object_set_new(object, "output", bhi_json_text(of->output));
    json_object_set_new(object, "index", index);
    json_object_set_new(object, "expected", json_string(of->expected));
    json_object_set_new(object, "got", json_string(of->got));
    json_object_set_new(object, "ulp",
                        of->ulp == UINT64_MAX ? json_null() : bhi_json_digits(of->ulp));
    json_object_set_new(object, "wrong", json_integer((json_int_t)of->wrong));
    json_object_set_new(object, "elements", json_integer((json_int_t)of->elements));
    return object;
}

static json_t *number_of(double number) {
    return number > 0 ? json_real(number) : json_null();
}

static json_t *doubt_of(bh_judge_doubt doubt) {
    static const char *const names[] = {[BH_JUDGE_DOUBT_NONE] = NULL,
                                        [BH_JUDGE_DOUBT_CLAIMS] = "claims",
                                        [BH_JUDGE_DOUBT_DRIFT] = "drift",
                                        [BH_JUDGE_DOUBT_LOAD] = "load"};
    return names[doubt] ? json_string(names[doubt]) : json_null();
}

static json_t *timing_of(const struct bhi_task *task, const bh_judge_timing *timing) {
    json_t *object = json_object();
    json_object_set_new(object, "size", size_of(task, timing->size_index));
    json_object_set_new(object, "runs", json_integer((json_int_t)timing->runs));
    json_object_set_new(object, "median_ns", number_of(timing->median_ns));
    json_object_set_new(object, "reference_ns", number_of(timing->reference_ns));
    json_object_set_new(object, "ratio", number_of(timing->ratio));
    json_object_set_new(object, "low", number_of(timing->low));
    json_object_set_new(object, "high", number_of(timing->high));
    json_object_set_new(object, "doubt", doubt_of(timing->doubt));
    json_object_set_new(object, "noise", json_real(timing->noise));
    json_object_set_new(object, "drift", json_real(timing->drift));
    json_object_set_new(object, "host_ns", number_of(timing->host_ns));
    json_object_set_new(object, "device", json_boolean(timing->device));
    json_object_set_new(object, "cold", json_boolean(timing->cold));
    json_object_set_new(object, "one_processor", json_boolean(timing->one_processor));
    json_object_set_new(object, "noisy", json_boolean(timing->noisy));
    json_object_set_new(object, "guard_ratio", number_of(timing->guard_ratio));
    return object;
}

/* Its times, size by size; null: none was measured. */
static json_t *timings_of(const struct bhi_task *task, const bh_judgement *of) {
    json_t *array = of->timing_count ? json_array() : json_null();
    for (size_t i = 0; i < of->timing_count; i++) {
        json_array_append_new(array, timing_of(task, &of->timings[i]));
    }
    return array;
}

static json_t *candidate_of(const struct bhi_task *task, const struct bhi_candidate *candidate) {
    const bh_judgement *of = &candidate->judgement;
    json_t *object = json_object();
    json_object_set_new(object, "file", bhi_json_text(candidate->file.path));
    json_object_set_new(object, "verdict",
                        json_string(bh_judge_verdict_name(of->verdict, of->status)));
    bhi_json_why(object, of->reason, of->subject, of->subject_name);
    json_object_set_new(object, "message", bhi_json_text(of->message));
    json_object_set_new(object, "blame", bhi_json_blame(of->blame));
    json_object_set_new(object, "runs", json_integer((json_int_t)of->runs));
    json_object_set_new(object, "deterministic",
                        of->verdict == BH_JUDGE_CORRECT ? json_boolean(of->deterministic)
                                                        : json_null());
    json_object_set_new(object, "size", of->located ? size_of(task, of->size_index) : json_null());
    json_object_set_new(object, "seed", of->located ? bhi_json_digits(of->seed) : json_null());
    json_object_set_new(object, "hidden", of->located ? json_boolean(of->hidden) : json_null());
    json_object_set_new(object, "wrong", wrong_of(of));
    json_object_set_new(object, "timing", timings_of(task, of));
    return object;
}

void bhi_judge_print_json(const struct bhi_judge_report *report) {
    const struct bhi_task *task = report->task;
    json_t *object = json_object(), *candidates = json_array();
    for (size_t i = 0; i < report->count; i++) {
        json_array_append_new(candidates, candidate_of(task, &report->candidates[i]));
    }
    json_object_set_new(object, "task", bhi_json_text(task->name));
    json_object_set_new(object, "file", bhi_json_text(report->task_path));
    json_object_set_new(object, "device", bhi_json_text(report->device));
    json_object_set_new(object, "seeds", seeds_of(task->seeds, task->seed_count));
    json_object_set_new(object, "hidden_seeds",
                        seeds_of(report->hidden_seeds, report->hidden_count));
    json_object_set_new(object, "fixed_inputs", json_boolean(bhi_task_is_storable(task)));
    json_object_set_new(object, "correct", json_integer((json_int_t)report->correct));
    json_object_set_new(object, "flushed_bytes",
                        report->timed ? json_integer((json_int_t)report->flushed) : json_null());
    json_object_set_new(object, "candidates", candidates);
    bhi_json_print(object);
}
