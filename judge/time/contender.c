#include "judge/time/contender.h"

#include <string.h>

bool bhi_contender_open(struct bhi_court *court, const struct bhi_kernel_file *file, bool trusted,
                        const struct bhi_task_groups *groups, struct bhi_contender *out,
                        struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_contender){.groups = groups};
    if (!bhi_judged_kernel_make(file, trusted, court->context, &out->kernel, outcome)) {
        return false;
    }
    if (!bhi_court_timed_stream(court, &out->stream, outcome)) {
        bhi_judged_kernel_free(&out->kernel);
        return false;
    }
    return true;
}

bool bhi_contender_open_reference(struct bhi_court *court, struct bhi_contender *out,
                                  struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    if (task->reference == BHI_REFERENCE_KERNEL) {
        const struct bhi_kernel_file file = {.path = task->reference_kernel.path,
                                             .deadline_ns = task->compile_deadline_ns};
        if (!bhi_contender_open(court, &file, false, &task->reference_groups, out, outcome)) {
            return false;
        }
        if (out->kernel.has_content &&
            memcmp(out->kernel.content, court->reference, sizeof court->reference) != 0) {
            bhi_contender_close(out);
            return bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED,
                                          "%.400s: the reference has changed since the candidates "
                                          "were checked with it",
                                          file.path);
        }
        return true;
    }
    *out = (struct bhi_contender){.is_expression = true};
    return bhi_court_timed_stream(court, &out->stream, outcome);
}

void bhi_contender_rest(struct bhi_contender *contender) {
    bh_stream_release(contender->stream);
    contender->stream = NULL;
}

bool bhi_contender_renew(const struct bhi_court *court, struct bhi_contender *contender,
                         struct bhi_judge_outcome *outcome) {
    bh_stream *fresh;
    if (!bhi_court_timed_stream(court, &fresh, outcome)) {
        return false;
    }
    bhi_contender_rest(contender);
    contender->stream = fresh;
    return true;
}

void bhi_contender_close(struct bhi_contender *contender) {
    bh_stream_release(contender->stream);
    bhi_judged_kernel_free(&contender->kernel);
    bhi_reference_template_free(&contender->cache);
    *contender = (struct bhi_contender){0};
}

bool bhi_lap_make(struct bhi_court *court, struct bhi_contender *contender, bh_stream *stream,
                  const struct bhi_trial *trial, const struct bhi_inputs *inputs,
                  struct bhi_lap *out, struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_lap){0};
    return contender->is_expression
               ? bhi_evaluation_make(court, stream, trial, inputs, &contender->cache,
                                     &out->evaluation, outcome)
               : bhi_setup_make(court, stream, &contender->kernel, contender->groups, trial, inputs,
                                &out->setup, outcome);
}

const bh_command *bhi_lap_command(const struct bhi_lap *lap) {
    return lap->setup ? bhi_setup_command(lap->setup) : bhi_evaluation_command(lap->evaluation);
}

bool bhi_lap_peek(const struct bhi_lap *lap, uint32_t index, uint64_t offset, void *out,
                  uint64_t size, struct bhi_judge_outcome *outcome) {
    static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */
    uint64_t begin = 0;
    bh_detail detail = {0};
    bh_buffer *buffer = lap->setup ? bhi_setup_buffer(lap->setup, index, &begin)
                                   : bhi_evaluation_buffer(lap->evaluation, index);
    const bh_status status = bh_buffer_read(buffer, begin + offset, out, size, limit_ns, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_lap_take(const struct bhi_lap *lap, struct bhi_launched *out,
                  struct bhi_judge_outcome *outcome) {
    return lap->setup ? bhi_setup_take(lap->setup, out, outcome)
                      : bhi_evaluation_take(lap->evaluation, out, outcome);
}

void bhi_lap_free(struct bhi_lap *lap) {
    bhi_setup_free(lap->setup);
    bhi_evaluation_free(lap->evaluation);
    *lap = (struct bhi_lap){0};
}
