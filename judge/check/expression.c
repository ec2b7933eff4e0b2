#include "judge/check/expression.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/check/content.h"
#include "tool/text.h"

struct bhi_evaluation {
    const struct bhi_task *task;
    const struct bhi_trial *trial;
    bh_parameter parameters[BHI_TASK_ARRAYS];
    bh_argument arguments[BHI_TASK_ARRAYS];
    bh_description descriptions[BHI_TASK_ARRAYS]; /* of |arguments| */
    bh_template_call call;
    bool prepared; /* |call| is to be dropped */
};

/* Writes "n = 64; a = 2.5;" and, on a line of its own, the expression. */
static bool write_text(const struct bhi_evaluation *evaluation, char **out_text,
                       struct bhi_complaint *complaint) {
    const struct bhi_task *task = evaluation->task;
    const size_t size = evaluation->trial->size;
    size_t length;
    char *pushes;
    if (!bhi_task_push_text(task, size, &pushes, complaint)) {
        return false;
    }
    FILE *out = open_memstream(out_text, &length);
    for (size_t i = 0; i < task->parameter_count && out; i++) {
        bool is_push = false;
        for (size_t k = 0; k < task->push_count; k++) {
            is_push |= !strcmp(task->pushes[k].name, task->parameters[i]);
        }
        if (!is_push) {
            fprintf(out, "%s = %" PRIu64 ";", task->parameters[i], task->sizes[size].values[i]);
        }
    }
    for (const char *at = pushes; *at && out;) {
        const size_t end = strcspn(at, ",");
        fprintf(out, "%.*s;", (int)end, at);
        at += end + (at[end] == ',');
    }
    free(pushes);
    if (out) {
        fprintf(out, "\n%s", task->reference_eval);
    }
    if (!out || fclose(out) != 0) {
        return bhi_refuse(complaint, "out of memory");
    }
    return true;
}

/* |offset| is that of the array in the inputs of a timed run; 0 in a buffer of its own. */
static void describe(const struct bhi_trial_array *array, uint64_t offset,
                     bh_description *out_description) {
    *out_description = (bh_description){.struct_size = sizeof(bh_description)};
    out_description->kind = bhi_dtype_number(array->form.dtype);
    out_description->bits = 8 * bhi_dtype_size(array->form.dtype);
    out_description->rank = array->form.dimensions;
    out_description->offset = offset;
    memcpy(out_description->shape, array->form.shape,
           array->form.dimensions * sizeof array->form.shape[0]);
}

static bool make_buffer(struct bhi_court *court, bh_stream *near, const struct bhi_inputs *inputs,
                        struct bhi_evaluation *evaluation, uint32_t index,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &evaluation->trial->arrays[index];
    const uint64_t size = array->form.bytes;
    bh_argument *argument = &evaluation->arguments[index];
    void *content;
    argument->description = &evaluation->descriptions[index];
    describe(array, 0, &evaluation->descriptions[index]);
    if (inputs && array->before) { /* an expression has no INOUT */
        argument->buffer = inputs->buffer;
        evaluation->descriptions[index].offset =
            bhi_inputs_offset(inputs, evaluation->task, evaluation->trial, index);
        bh_buffer_retain(argument->buffer);
        return true;
    }
    if (!bhi_content_make(court->context, near, size, &argument->buffer, outcome)) {
        return false;
    }
    if (!array->before) {
        return true;
    }
    if (!bhi_content_begin(argument->buffer, size, &content, outcome)) {
        return false;
    }
    memcpy(content, array->before, size);
    return bhi_content_commit(argument->buffer, size, content, outcome);
}

/* Makes the template, unless the last run had the same |text|, which is taken. */
static bh_status make_template(bh_context *context, const struct bhi_evaluation *evaluation,
                               struct bhi_reference_template *cache, char *text,
                               bh_detail *detail) {
    bh_template_options options = {.struct_size = sizeof options};
    if (cache->text && !strcmp(cache->text, text)) {
        free(text);
        return BH_OK;
    }
    bhi_reference_template_free(cache);
    cache->text = text;
    options.name = "reference";
    options.expression = text;
    options.parameters = evaluation->parameters;
    options.parameter_count = (uint32_t)evaluation->task->array_count;
    return bh_template_create(context, &options, &cache->template_, detail);
}

/* Says where in the task the expression is that the library has refused. Its lines are those of the
 * text: the first is ours. */
static bool refuse_expression(const struct bhi_task *task, bh_status status,
                              const bh_detail *detail, struct bhi_judge_outcome *outcome) {
    const char *why = bhi_text_without_call(detail->message);
    unsigned line = 0, column;
    int place = 0;
    if (bh_status_classify(status) == BH_STATUS_CLASS_ENVIRON) {
        return bhi_judge_outcome_take(outcome, status, detail);
    }
    if (sscanf(why, "line %u, column %u: %n", &line, &column, &place) < 2 || !place) {
        return bhi_judge_outcome_fail(outcome, status, "%s: %s", task->reference_eval_field, why);
    }
    why += place;
    if (line == 1) {
        return bhi_judge_outcome_fail(outcome, status, "%s: its sizes and push constants: %s",
                                      task->reference_eval_field, why);
    }
    return strchr(task->reference_eval, '\n')
               ? bhi_judge_outcome_fail(outcome, status, "%s: line %u, column %u: %s",
                                        task->reference_eval_field, line - 1, column, why)
               : bhi_judge_outcome_fail(outcome, status, "%s: column %u: %s",
                                        task->reference_eval_field, column, why);
}

static bool prepare(struct bhi_court *court, bh_stream *near, const struct bhi_inputs *inputs,
                    struct bhi_evaluation *evaluation, struct bhi_reference_template *cache,
                    struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    const uint32_t count = (uint32_t)task->array_count;
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    char *text;
    for (uint32_t i = 0; i < count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        evaluation->parameters[i] =
            (bh_parameter){.name = array->place,
                           .role = array->role == BHI_TASK_IN ? BH_PARAMETER_IN : BH_PARAMETER_OUT,
                           .type = bhi_dtype_name(array->dtype)};
        evaluation->arguments[i].name = array->place;
    }
    if (!write_text(evaluation, &text, &complaint)) {
        return bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT, "%.500s", complaint.text);
    }
    bh_status status = make_template(court->context, evaluation, cache, text, &detail);
    if (status != BH_OK) {
        return refuse_expression(task, status, &detail, outcome);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!make_buffer(court, near, inputs, evaluation, i, outcome)) {
            return false;
        }
    }
    status = bh_template_prepare(cache->template_, evaluation->arguments, count, NULL,
                                 &evaluation->call, &detail);
    evaluation->prepared = status == BH_OK;
    return evaluation->prepared || refuse_expression(task, status, &detail, outcome);
}

bool bhi_evaluation_make(struct bhi_court *court, bh_stream *near, const struct bhi_trial *trial,
                         const struct bhi_inputs *inputs, struct bhi_reference_template *cache,
                         struct bhi_evaluation **out_evaluation,
                         struct bhi_judge_outcome *outcome) {
    struct bhi_evaluation *evaluation = calloc(1, sizeof *evaluation);
    *out_evaluation = NULL;
    court->runs++;
    if (!evaluation) {
        return bhi_judge_outcome_memory(outcome);
    }
    evaluation->task = court->task;
    evaluation->trial = trial;
    if (!prepare(court, near, inputs, evaluation, cache, outcome)) {
        bhi_evaluation_free(evaluation);
        return false;
    }
    *out_evaluation = evaluation;
    return true;
}

const bh_command *bhi_evaluation_command(const struct bhi_evaluation *evaluation) {
    return &evaluation->call.command;
}

bh_buffer *bhi_evaluation_buffer(const struct bhi_evaluation *evaluation, uint32_t index) {
    return evaluation->arguments[index].buffer;
}

static bool take_output(const struct bhi_evaluation *evaluation, uint32_t index,
                        struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    const uint64_t size = evaluation->trial->arrays[index].form.bytes;
    bh_buffer *buffer = evaluation->arguments[index].buffer;
    void *content;
    if (!(out->outputs[index] = malloc(size))) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (!bhi_content_read(buffer, size, &content, outcome)) {
        return false;
    }
    memcpy(out->outputs[index], content, size);
    bhi_content_leave(buffer, content);
    return true;
}

bool bhi_evaluation_take(const struct bhi_evaluation *evaluation, struct bhi_launched *out,
                         struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_launched){.strayed = false};
    for (uint32_t i = 0; i < evaluation->task->array_count; i++) {
        if (evaluation->task->arrays[i].role != BHI_TASK_IN &&
            !take_output(evaluation, i, out, outcome)) {
            bhi_launched_free(out);
            return false;
        }
    }
    return true;
}

void bhi_evaluation_free(struct bhi_evaluation *evaluation) {
    if (!evaluation) {
        return;
    }
    if (evaluation->prepared) {
        bh_template_call_fini(&evaluation->call);
    }
    for (uint32_t i = 0; i < evaluation->task->array_count; i++) {
        bh_buffer_release(evaluation->arguments[i].buffer);
    }
    free(evaluation);
}

bool bhi_reference_eval(struct bhi_court *court, bh_stream *stream, const struct bhi_trial *trial,
                        struct bhi_reference_template *cache, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    struct bhi_evaluation *evaluation;
    if (!bhi_evaluation_make(court, NULL, trial, NULL, cache, &evaluation, outcome)) {
        return false;
    }
    const bool good =
        bhi_court_submit(stream, bhi_evaluation_command(evaluation), 1, NULL, outcome) &&
        bhi_evaluation_take(evaluation, out, outcome);
    bhi_evaluation_free(evaluation);
    return good;
}

void bhi_reference_template_free(struct bhi_reference_template *cache) {
    bh_template_release(cache->template_);
    free(cache->text);
    *cache = (struct bhi_reference_template){0};
}
