#include "judge/check/expression.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"

static const uint64_t content_limit_ns = 10000000000u; /* for a buffer that nobody uses */

/* What one computation needs. */
struct computing {
    const struct bhi_task *task;
    const struct bhi_trial *trial;
    bh_parameter parameters[BHI_TASK_ARRAYS];
    bh_argument arguments[BHI_TASK_ARRAYS];
    struct bhi_reference_template *cache;
};

/* Writes "n = 64; a = 2.5;" and, on a line of its own, the expression. */
static bool write_text(const struct computing *computing, char **out_text,
                       struct bhi_complaint *complaint) {
    const struct bhi_task *task = computing->task;
    const size_t size = computing->trial->size;
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

static bh_status make_buffer(struct bhi_court *court, const struct bhi_trial_array *array,
                             bh_buffer **out_buffer, bh_detail *detail) {
    bh_description description;
    bh_status status = bh_buffer_create(court->context, array->form.bytes, out_buffer, detail);
    if (status == BH_OK && array->before) {
        status = bh_buffer_write(*out_buffer, 0, array->before, array->form.bytes, content_limit_ns,
                                 detail);
    }
    bh_description_init(&description);
    description.kind = bhi_dtype_number(array->form.dtype);
    description.bits = 8 * bhi_dtype_size(array->form.dtype);
    description.rank = array->form.dimensions;
    memcpy(description.shape, array->form.shape,
           array->form.dimensions * sizeof array->form.shape[0]);
    return status == BH_OK ? bh_buffer_set_description(*out_buffer, &description, detail) : status;
}

/* Makes the template, unless the last run had the same text. */
static bh_status make_template(bh_context *context, struct computing *computing, char *text,
                               bh_detail *detail) {
    struct bhi_reference_template *cache = computing->cache;
    bh_template_options options;
    if (cache->text && !strcmp(cache->text, text)) {
        free(text);
        return BH_OK;
    }
    bhi_reference_template_free(cache);
    cache->text = text;
    bh_template_options_init(&options);
    options.name = "reference";
    options.expression = text;
    options.parameters = computing->parameters;
    options.parameter_count = (uint32_t)computing->task->array_count;
    return bh_template_create(context, &options, &cache->template_, detail);
}

static bool compute(struct bhi_court *court, bh_stream *stream, struct computing *computing,
                    char *text, struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    const uint32_t count = (uint32_t)task->array_count;
    bh_event *event = NULL;
    bh_detail detail = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        computing->parameters[i] =
            (bh_parameter){.name = array->place,
                           .role = array->role == BHI_TASK_IN ? BH_PARAMETER_IN : BH_PARAMETER_OUT,
                           .type = bhi_dtype_name(array->dtype)};
        computing->arguments[i].name = array->place;
    }
    bh_status status = make_template(court->context, computing, text, &detail);
    for (uint32_t i = 0; i < count && status == BH_OK; i++) {
        status = make_buffer(court, &computing->trial->arrays[i], &computing->arguments[i].buffer,
                             &detail);
    }
    if (status == BH_OK) {
        status = bh_template_launch(stream, computing->cache->template_, computing->arguments,
                                    count, NULL, &event, &detail);
    }
    const bool good = status == BH_OK ? bhi_court_await(event, outcome)
                                      : bhi_judge_outcome_take(outcome, status, &detail);
    (void)bh_event_release(event);
    return good;
}

static bool take_outputs(const struct computing *computing, struct bhi_launched *out,
                         struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = computing->task;
    for (uint32_t i = 0; i < task->array_count; i++) {
        const uint64_t size = computing->trial->arrays[i].form.bytes;
        bh_detail detail = {0};
        if (task->arrays[i].role == BHI_TASK_IN) {
            continue;
        }
        if (!(out->outputs[i] = malloc(size))) {
            return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
        }
        const bh_status status = bh_buffer_read(computing->arguments[i].buffer, 0, out->outputs[i],
                                                size, content_limit_ns, &detail);
        if (status != BH_OK) {
            return bhi_judge_outcome_take(outcome, status, &detail);
        }
    }
    return true;
}

bool bhi_reference_eval(struct bhi_court *court, bh_stream *stream, const struct bhi_trial *trial,
                        struct bhi_reference_template *cache, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    struct computing computing = {.task = court->task, .trial = trial, .cache = cache};
    struct bhi_complaint complaint;
    char *text;
    *out = (struct bhi_launched){.strayed = false};
    court->runs++;
    const bool good =
        write_text(&computing, &text, &complaint)
            ? compute(court, stream, &computing, text, outcome) &&
                  take_outputs(&computing, out, outcome)
            : bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT, "%.500s", complaint.text);
    for (uint32_t i = 0; i < court->task->array_count; i++) {
        (void)bh_buffer_release(computing.arguments[i].buffer);
    }
    if (!good) {
        bhi_launched_free(out);
    }
    return good;
}

void bhi_reference_template_free(struct bhi_reference_template *cache) {
    (void)bh_template_release(cache->template_);
    free(cache->text);
    *cache = (struct bhi_reference_template){0};
}
