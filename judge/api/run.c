/* Runs the reference and candidates for a judge. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "judge/api/judge.h"
#include "judge/check/candidate.h"
#include "judge/check/reference.h"
#include "request/code.h"
#include "supervisor/context/layout.h"

_Static_assert(BH_JUDGE_RANK == BHI_TASK_RANK, "a judgement has room for each index of an element");
_Static_assert(BH_JUDGE_SIZES == BHI_TASK_SIZES, "a judgement has room for the times of each size");
_Static_assert(sizeof((bh_judgement *)0)->expected >= BHI_ELEMENT_TEXT, "an element's text fits");

enum { MAX_CODE = 64 << 20 };

/* -- before the first candidate -----------------------------------------------------------------
 */

/* After a cancel each step fails in some way of its own. */
static bh_status cancelled_or(bh_judge *judge, const char *call, bh_status status,
                              bh_detail *detail) {
    return status != BH_OK && bhi_judge_is_cancelled(judge)
               ? BHI_FAIL(detail, call, BH_REASON_CANCELLED)
               : status;
}

static bh_status open_context(bh_judge *judge, bh_detail *detail) {
    bh_context *context;
    bh_context_options options = {.struct_size = sizeof options};
    if (judge->court.context) {
        return BH_OK;
    }
    options.quarantine_deaths = BH_OFF; /* one candidate may be given twice */
    options.log = judge->log;
    options.log_user = judge->log_user;
    bh_status status = bh_context_create(&options, &context, detail);
    if (status != BH_OK) {
        return status;
    }
    status = bh_buffer_create(context, 4, &judge->pin, detail);
    if (status != BH_OK) {
        (void)bh_context_destroy(context);
        return status;
    }
    return bhi_judge_put_context(judge, context) ? BH_OK : BH_CANCELLED;
}

static bh_status find_device(bh_judge *judge, bh_detail *detail) {
    return judge->device && !judge->selector[0]
               ? bhi_device_find(judge->court.context, judge->device, judge->selector, detail)
               : BH_OK;
}

static bh_status make_trials(bh_judge *judge, bh_detail *detail) {
    struct bhi_complaint complaint;
    bhi_trials_free(&judge->task, &judge->court.trials); /* of an attempt that failed */
    return bhi_trials_make(&judge->task, judge->seeds, judge->seed_count, &judge->court.trials,
                           &complaint)
               ? BH_OK
               : bhi_fail(detail, BH_LOAD_FAILED, 0, "%.500s", complaint.text);
}

static bh_status run_reference(bh_judge *judge, bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    if (bhi_reference_run(&judge->court, &outcome)) {
        judge->ready = true;
        return BH_OK;
    }
    if (bhi_judge_outcome_is_elsewhere(&outcome)) {
        return bhi_fail(detail, outcome.status, 0, "the reference of %.200s: %.280s", judge->place,
                        outcome.message);
    }
    return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                    "the reference of %.150s cannot judge: %.280s (%s)", judge->place,
                    outcome.message, bh_status_name(outcome.status));
}

static bh_status prepare(bh_judge *judge, const char *call, bh_detail *detail) {
    bh_status status = BH_OK;
    if (!judge->ready) {
        (void)((status = make_trials(judge, detail)) != BH_OK ||
               (status = open_context(judge, detail)) != BH_OK ||
               (status = find_device(judge, detail)) != BH_OK ||
               (status = run_reference(judge, detail)) != BH_OK);
    }
    return cancelled_or(judge, call, status, detail);
}

BH_API bh_status bh_judge_prepare(bh_judge *judge, bh_detail *detail) {
    bh_status status = bhi_judge_enter(judge, "bh_judge_prepare", detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_judge_begin_turn(judge);
    status = prepare(judge, "bh_judge_prepare", detail);
    bhi_judge_end_turn(judge);
    bhi_judge_leave(judge);
    return status;
}

/* -- one candidate ------------------------------------------------------------------------------
 */

/* Where the run that ended it differs from what is expected. */
static void tell_wrong(const struct bhi_candidate *candidate, bh_judgement *out) {
    const struct bhi_trial_array *array = &candidate->trial->arrays[candidate->array];
    const struct bhi_difference *difference = &candidate->difference;
    uint64_t index = difference->index;
    out->wrong = difference->wrong;
    out->elements = array->count;
    out->ulp = difference->ulp;
    out->rank = array->form.dimensions;
    for (uint32_t i = out->rank; i-- > 0;) {
        out->index[i] = index % array->form.shape[i];
        index /= array->form.shape[i];
    }
    snprintf(out->expected, sizeof out->expected, "%s", difference->expected);
    snprintf(out->got, sizeof out->got, "%s", difference->got);
}

static void tell(const struct bhi_task *task, const struct bhi_candidate *candidate,
                 bh_judgement *out) {
    char size[BHI_SIZE_TEXT];
    *out = (bh_judgement){
        .verdict = candidate->verdict,
        .runs = candidate->runs,
        .deterministic = candidate->verdict == BH_JUDGE_CORRECT && !candidate->nondeterministic,
        .located = candidate->trial,
    };
    snprintf(out->name, sizeof out->name, "%s", candidate->name);
    if (candidate->verdict != BH_JUDGE_CORRECT) {
        snprintf(out->message, sizeof out->message, "%s", candidate->outcome.message);
    }
    if (candidate->verdict == BH_JUDGE_FAILED) {
        out->status = candidate->outcome.status;
        out->blame = candidate->outcome.blame;
    }
    if (candidate->trial) {
        out->size_index = (uint32_t)candidate->trial->size;
        out->seed = candidate->trial->seed;
        out->hidden = candidate->trial->hidden;
        snprintf(out->size_text, sizeof out->size_text, "%s",
                 bhi_task_size_text(task, candidate->trial->size, size));
    }
    if (candidate->verdict == BH_JUDGE_WRONG || candidate->verdict == BH_JUDGE_STRAY_WRITE) {
        snprintf(out->output, sizeof out->output, "%s", task->arrays[candidate->array].place);
    }
    if (candidate->verdict == BH_JUDGE_WRONG) {
        tell_wrong(candidate, out);
    }
    out->timing_count = candidate->timing_count;
    if (candidate->timing_count) {
        memcpy(out->timings, candidate->timings, candidate->timing_count * sizeof out->timings[0]);
    }
}

static bh_status refuse(bh_detail *detail, const char *why) {
    return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_judge_run: candidate.%s", why);
}

/* A candidate's code, with a NUL behind it. */
struct source {
    struct bhi_kernel_file file; /* its path is the name, if there is one */
    void *code;                  /* owned */
    const char *path;            /* if there is no code: of the file that cannot be read, */
    struct bhi_complaint unread; /* and why */
};

static bh_status copy_code(const bh_judge_candidate *given, struct source *out, bh_detail *detail) {
    char *copy;
    out->file.size = given->size ? given->size : strnlen(given->code, MAX_CODE + 1u);
    if (!out->file.size || out->file.size > MAX_CODE) {
        return refuse(detail, "size: from 1 byte to 64 MiB are possible");
    }
    if (!(copy = malloc(out->file.size + 1))) {
        return BHI_FAIL(detail, "bh_judge_run", BH_REASON_MEMORY);
    }
    memcpy(copy, given->code, out->file.size);
    copy[out->file.size] = '\0';
    out->code = copy;
    return BH_OK;
}

static bh_status read_file(const bh_judge_candidate *given, struct source *out, bh_detail *detail) {
    int error;
    /* "-" is a file of this name: standard input is the program's. */
    const char *path = strcmp(given->path, "-") != 0 ? given->path : "./-";
    if (given->size) {
        return refuse(detail, "size: it is for code alone");
    }
    out->path = path;
    if (!bhi_code_read(path, &out->code, &out->file.size, &error, &out->unread) &&
        error == ENOMEM) {
        return BHI_FAIL(detail, "bh_judge_run", BH_REASON_MEMORY);
    }
    return BH_OK;
}

static bh_status take_source(const bh_judge_candidate *given, struct source *out,
                             bh_detail *detail) {
    if (!given->path == !given->code) {
        return refuse(detail,
                      given->path ? "code: there is a path, too" : "path: NULL, as code is");
    }
    if ((unsigned)given->language > BH_LANGUAGE_HLSL) {
        return refuse(detail, "language: there is no such language");
    }
    out->file.path = given->name ? given->name : given->path ? given->path : "candidate";
    out->file.language = (enum bhi_language)given->language;
    const bh_status status =
        given->path ? read_file(given, out, detail) : copy_code(given, out, detail);
    out->file.code = out->code;
    return status;
}

/* Returns false if nothing is known about the candidate, as |candidate->outcome| says. */
static bool time_candidate(bh_judge *judge, struct bhi_candidate *candidate) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    if (!judge->timed || candidate->verdict != BH_JUDGE_CORRECT) {
        return true;
    }
    if (!judge->timing) {
        judge->timing =
            bhi_timekeeper_open(&judge->court, &judge->timing_options, &judge->timer, &outcome);
    }
    if (judge->timing && bhi_timekeeper_measure(&judge->timer, candidate, &outcome)) {
        return true;
    }
    candidate->outcome = outcome;
    return false;
}

static bh_status judge_source(bh_judge *judge, const struct source *source, bh_judgement *out,
                              bh_detail *detail) {
    struct bhi_candidate candidate = {.verdict = BH_JUDGE_FAILED};
    bh_status status = prepare(judge, "bh_judge_run", detail);
    if (status != BH_OK) {
        return status;
    }
    bool known = true;
    if (source->code) {
        known = bhi_candidate_judge(&judge->court, &source->file, &candidate) &&
                time_candidate(judge, &candidate);
    } else {
        bhi_kernel_file_name(source->file.path, candidate.name);
        bhi_judge_outcome_fail(&candidate.outcome, BH_LOAD_FAILED, "%.400s: %.150s", source->path,
                               source->unread.text);
    }
    if (bhi_judge_is_cancelled(judge)) {
        status = BHI_FAIL(detail, "bh_judge_run", BH_REASON_CANCELLED);
    } else if (!known) {
        status = bhi_fail(detail, candidate.outcome.status, 0, "%.60s: %.400s", candidate.name,
                          candidate.outcome.message);
    } else {
        tell(&judge->task, &candidate, out);
        out->flushed_bytes = judge->timing ? judge->timer.flush.size : 0;
        out->one_processor = candidate.timing_count && candidate.timings[0].one_processor;
    }
    bhi_candidate_free(&candidate);
    return status;
}

BH_API bh_status bh_judge_run(bh_judge *judge, const bh_judge_candidate *candidate,
                              bh_judgement *out_judgement, bh_detail *detail) {
    bh_judge_candidate given = {.struct_size = sizeof given};
    bh_judgement judgement = {.struct_size = sizeof judgement};
    struct source source = {.code = NULL};
    if (!candidate || !out_judgement) {
        return BHI_FAIL(detail, "bh_judge_run", BH_REASON_NULL,
                        candidate ? "out_judgement" : "candidate");
    }
    bh_status status = bhi_layout_check(BHI_OURS(bh_judgement), out_judgement, "bh_judge_run",
                                        "out_judgement", detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_layout_give(out_judgement, &judgement, sizeof judgement);
    (void)((status = bhi_layout_take(BHI_OURS(bh_judge_candidate), &given, candidate,
                                     "bh_judge_run", "candidate", detail)) != BH_OK ||
           (status = take_source(&given, &source, detail)) != BH_OK ||
           (status = bhi_judge_enter(judge, "bh_judge_run", detail)) != BH_OK);
    if (status == BH_OK) {
        bhi_judge_begin_turn(judge);
        status = judge_source(judge, &source, &judgement, detail);
        bhi_judge_end_turn(judge);
        bhi_judge_leave(judge);
    }
    if (status == BH_OK) {
        bhi_layout_give(out_judgement, &judgement, sizeof judgement);
    }
    free(source.code);
    return status;
}
