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
                            bhi_json_number(task->sizes[size].values[i]));
    }
    return object;
}

static json_t *weaknesses_of(const struct bhi_judge_report *report) {
    static const char *const tricks[] = {[BHI_TRICK_ZEROS] = "zeros",
                                         [BHI_TRICK_CONSTANT] = "constant",
                                         [BHI_TRICK_INPUT] = "input",
                                         [BHI_TRICK_SEED] = "seed"};
    const struct bhi_task *task = report->task;
    json_t *array = json_array();
    for (size_t i = 0; i < report->weak_count; i++) {
        const struct bhi_weakness *weak = &report->weak[i];
        const bool copies = weak->trick == BHI_TRICK_INPUT;
        json_array_append_new(
            array, BHI_JSON({"output", bhi_json_text(task->arrays[weak->output].place)},
                            {"passes", json_string(tricks[weak->trick])},
                            {"input",
                             copies ? bhi_json_text(task->arrays[weak->input].place) : json_null()},
                            {"size", weak->everywhere ? json_null() : size_of(task, weak->size)}));
    }
    return array;
}

/* Where and how its output is wrong. */
static json_t *wrong_of(const bh_judgement *of) {
    if (of->verdict != BH_JUDGE_WRONG) {
        return json_null();
    }
    json_t *object = json_object(), *index = json_array();
    for (uint32_t i = 0; i < of->rank; i++) {
        json_array_append_new(index, bhi_json_number(of->index[i]));
    }
    BHI_JSON_ADD(object, {"output", bhi_json_text(of->output)}, {"index", index},
                 {"expected", json_string(of->expected)}, {"got", json_string(of->got)},
                 {"ulp", of->ulp == UINT64_MAX ? json_null() : bhi_json_digits(of->ulp)},
                 {"wrong", bhi_json_number(of->wrong)},
                 {"elements", bhi_json_number(of->elements)});
    return object;
}

static json_t *number_of(double number) {
    return number > 0 ? json_real(number) : json_null();
}

static json_t *timing_of(const struct bhi_judge_report *report, const bh_judge_timing *timing) {
    return BHI_JSON(
        {"size", size_of(report->task, timing->size_index)},
        {"runs", bhi_json_number(timing->runs)}, {"median_ns", number_of(timing->median_ns)},
        {"reference_ns", number_of(timing->reference_ns)}, {"ratio", number_of(timing->ratio)},
        {"low", number_of(timing->low)}, {"high", number_of(timing->high)},
        {"doubt", timing->doubt ? json_string(bh_judge_doubt_name(timing->doubt)) : json_null()},
        {"noise", json_real(timing->noise)}, {"drift", json_real(timing->drift)},
        {"host_ns", number_of(timing->host_ns)}, {"device", json_boolean(timing->device)},
        {"cold", json_boolean(timing->cold)},
        {"one_processor", json_boolean(timing->one_processor)},
        {"baseline", json_boolean(report->baseline)}, {"noisy", json_boolean(timing->noisy)},
        {"guard_ratio", number_of(timing->guard_ratio)});
}

/* Its times, size by size; null: none was measured. */
static json_t *timings_of(const struct bhi_judge_report *report, const bh_judgement *of) {
    json_t *array = of->timing_count ? json_array() : json_null();
    for (size_t i = 0; i < of->timing_count; i++) {
        json_array_append_new(array, timing_of(report, &of->timings[i]));
    }
    return array;
}

/* null: it is not right. */
static json_t *errors_of(const bh_judgement *of) {
    json_t *array = of->error_count ? json_array() : json_null();
    for (size_t i = 0; i < of->error_count; i++) {
        const bh_judge_error *error = &of->errors[i];
        json_array_append_new(array, BHI_JSON({"output", bhi_json_text(error->output)},
                                              {"absolute", json_real(error->absolute)},
                                              {"relative", json_real(error->relative)},
                                              {"ulp", bhi_json_digits(error->ulp)}));
    }
    return array;
}

static json_t *candidate_of(const struct bhi_judge_report *report,
                            const struct bhi_candidate *candidate) {
    const struct bhi_task *task = report->task;
    const bh_judgement *of = &candidate->judgement;
    json_t *object =
        BHI_JSON({"file", bhi_json_text(candidate->file.path)},
                 {"verdict", json_string(bh_judge_verdict_name(of->verdict, of->status))},
                 {"code", json_string(bh_status_name(of->status))});
    bhi_json_why(object, of->reason, of->subject, of->subject_name);
    BHI_JSON_ADD(object, {"message", bhi_json_text(of->message)},
                 {"blame", bhi_json_blame(of->blame)}, {"runs", bhi_json_number(of->runs)},
                 {"deterministic",
                  of->verdict == BH_JUDGE_CORRECT ? json_boolean(of->deterministic) : json_null()},
                 {"size", of->located ? size_of(task, of->size_index) : json_null()},
                 {"seed", of->located ? bhi_json_digits(of->seed) : json_null()},
                 {"hidden", of->located ? json_boolean(of->hidden) : json_null()},
                 {"fill", *of->fill ? bhi_json_text(of->fill) : json_null()},
                 {"wrong", wrong_of(of)}, {"errors", errors_of(of)},
                 {"timing", timings_of(report, of)});
    return object;
}

void bhi_judge_print_json(const struct bhi_judge_report *report) {
    const struct bhi_task *task = report->task;
    json_t *object = json_object(), *candidates = json_array();
    for (size_t i = 0; i < report->count; i++) {
        json_t *candidate = candidate_of(report, &report->candidates[i]);
        const char *folder = report->folders ? report->folders[i] : NULL;
        json_object_set_new(candidate, "dump", folder ? bhi_json_text(folder) : json_null());
        json_array_append_new(candidates, candidate);
    }
    BHI_JSON_ADD(
        object, {"task", bhi_json_text(task->name)}, {"file", bhi_json_text(report->task_path)},
        {"device", bhi_json_text(report->device)},
        {"seeds", seeds_of(task->seeds, task->seed_count)},
        {"hidden_seeds", seeds_of(report->hidden_seeds, report->hidden_count)},
        {"repeats", bhi_json_number(task->repeats)}, {"orders", bhi_json_number(report->orders)},
        {"fixed_inputs", json_boolean(bhi_task_is_storable(task))},
        {"baseline", report->baseline ? bhi_json_text(report->baseline) : json_null()},
        {"weak", weaknesses_of(report)}, {"correct", bhi_json_number(report->correct)},
        {"flushed_bytes", report->timed ? bhi_json_number(report->flushed) : json_null()},
        {"candidates", candidates});
    bhi_json_print(object);
}
