/* A bh_judge. A call enters, waits for its turn, and leaves. bh_judge_cancel destroys the context
 * under the calls that run: that ends whatever they wait for. */
#include "judge/api/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/detail.h"
#include "judge/api/candidate.h"
#include "judge/check/expected.h"
#include "judge/check/reference.h"
#include "judge/time/measure.h"
#include "supervisor/context/layout.h"

_Static_assert(BH_JUDGE_RANK == BHI_TASK_RANK, "a judgement has room for each index of an element");
_Static_assert(BH_JUDGE_OUTPUTS == BHI_TASK_ARRAYS, "a judgement has room for each output's error");
_Static_assert(BH_JUDGE_SIZES == BHI_TASK_SIZES, "a judgement has room for the times of each size");
_Static_assert(sizeof((bh_judgement *)0)->expected >= BHI_ELEMENT_TEXT, "an element's text fits");
_Static_assert(sizeof((bh_judgement *)0)->content == BHI_CONTENT_HASH, "a hash fits");
_Static_assert(sizeof((bh_judgement *)0)->size_text == BHI_SIZE_TEXT, "a size's text fits");

enum { MAGIC = 0x4A756467, MOST_PARALLEL = 64 };

/* -- calls ----------------------------------------------------------------------------------- */

bool bhi_judge_is(const bh_judge *judge) {
    return judge && judge->magic == MAGIC;
}

bh_status bhi_judge_enter(bh_judge *judge, const char *call, bh_detail *detail) {
    if (!bhi_judge_is(judge)) {
        return BHI_FAIL(detail, call, BH_REASON_RELEASED, "judge");
    }
    if (judge->pid != getpid()) {
        return BHI_FAIL(detail, call, BH_REASON_FORKED, "judge", .subject = BH_SUBJECT_ARGUMENT);
    }
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    judge->users += !cancelled;
    pthread_mutex_unlock(&judge->lock);
    return cancelled ? BHI_FAIL(detail, call, BH_REASON_CANCELLED) : BH_OK;
}

void bhi_judge_leave(bh_judge *judge) {
    pthread_mutex_lock(&judge->lock);
    judge->users--;
    pthread_cond_broadcast(&judge->changed);
    pthread_mutex_unlock(&judge->lock);
}

/* A turn, in which a call uses the court, and numbers have a point, whatever the program's locale
 * has. */
struct turn {
    unsigned slots;  /* that it takes of the judge's */
    uint64_t number; /* of the turns that have begun */
    bool beside;     /* another one had not ended */
    locale_t before;
};

/* |alone|: nothing else runs meanwhile. Who waits for that has it before those that do not. */
static struct turn begin_turn(bh_judge *judge, bool alone) {
    const unsigned slots = alone ? judge->options.parallel : 1;
    pthread_mutex_lock(&judge->lock);
    judge->waiting += alone;
    while (judge->taken + slots > judge->options.parallel || (!alone && judge->waiting)) {
        pthread_cond_wait(&judge->changed, &judge->lock);
    }
    judge->waiting -= alone;
    const bool beside = judge->taken > 0;
    const uint64_t number = ++judge->turns;
    judge->taken += slots;
    pthread_mutex_unlock(&judge->lock);
    return (struct turn){slots, number, beside, uselocale(judge->c)};
}

/* Returns whether there was another turn beside it. */
static bool end_turn(bh_judge *judge, struct turn turn) {
    (void)uselocale(turn.before);
    pthread_mutex_lock(&judge->lock);
    judge->taken -= turn.slots;
    const bool beside = turn.beside || judge->turns != turn.number;
    pthread_cond_broadcast(&judge->changed);
    pthread_mutex_unlock(&judge->lock);
    return beside;
}

/* After a cancel each step fails in some way of its own. */
static bh_status cancelled_or(bh_judge *judge, const char *call, bh_status status,
                              bh_detail *detail) {
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    pthread_mutex_unlock(&judge->lock);
    return cancelled ? BHI_FAIL(detail, call, BH_REASON_CANCELLED) : status;
}

/* -- create ---------------------------------------------------------------------------------- */

static bh_status refuse(bh_detail *detail, const char *option, const char *why) {
    return BHI_FAIL(detail, "bh_judge_create", BH_REASON_ARGUMENT, option, .text = why);
}

static bh_status check_timing(const bh_judge_options *options, bh_detail *detail) {
    if (!options->timed && (options->warm || options->all_processors || options->guard_cost ||
                            options->slower_than != 0 || options->baseline)) {
        return refuse(detail,
                      options->warm             ? "options.warm"
                      : options->all_processors ? "options.all_processors"
                      : options->guard_cost     ? "options.guard_cost"
                      : options->baseline       ? "options.baseline"
                                                : "options.slower_than",
                      "needs timed");
    }
    if (options->timed_runs < BHI_TIMED_RUNS_LEAST || options->timed_runs > BHI_TIMED_RUNS_MOST) {
        return refuse(detail, "options.timed_runs", "must be from 5 to 100000");
    }
    return options->slower_than >= 0
               ? BH_OK
               : refuse(detail, "options.slower_than", "must be a number above 0, such as 1.05");
}

static bh_status check(const bh_judge_options *options, bh_detail *detail) {
    if (!options->task_path == !options->task_text) {
        return options->task_path
                   ? refuse(detail, "options.task_text", "excludes task_path")
                   : BHI_FAIL(detail, "bh_judge_create", BH_REASON_NULL, "options.task_path");
    }
    if (options->folder && !options->task_text) {
        return refuse(detail, "options.folder", "needs task_text");
    }
    if (options->device && (!*options->device || !strcmp(options->device, "any"))) {
        return refuse(detail, "options.device", "must name one device: all candidates run on it");
    }
    if (options->seed_count && !options->seeds) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_NULL, "options.seeds");
    }
    if (options->state && !*options->state) {
        return refuse(detail, "options.state", "is empty");
    }
    if (options->resume && (!options->state || options->seed_count)) {
        return refuse(detail, "options.resume",
                      options->state ? "excludes seeds: they are those of the state"
                                     : "needs state");
    }
    if (options->parallel > MOST_PARALLEL) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_OVER, "options.parallel",
                        .value = options->parallel, .limit = MOST_PARALLEL);
    }
    return check_timing(options, detail);
}

/* The noise has a seed of its own, which is never shown. */
static bh_status take_seeds(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_SYSTEM_CALL, "getrandom",
                        .sys_errno = errno);
    }
    judge->court.noise_seed = random[0];
    judge->seed_count = options->seed_count ? options->seed_count : 1;
    judge->seeds = calloc(judge->seed_count, sizeof *judge->seeds);
    if (!judge->seeds) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    memcpy(judge->seeds, options->seed_count ? options->seeds : &random[1],
           judge->seed_count * sizeof *judge->seeds);
    return BH_OK;
}

static bh_status read_task(bh_judge *judge, const bh_judge_options *options, const char *path,
                           bh_detail *detail) {
    struct bhi_complaint complaint;
    int error = 0;
    const bool good = options->task_text
                          ? bhi_task_parse(judge->place, options->folder ? options->folder : "",
                                           options->task_text, &judge->task, &complaint)
                          : bhi_task_read(path, &judge->task, &error, &complaint);
    judge->court.task = &judge->task;
    if (!good) {
        return BHI_FAIL(detail, "", BH_REASON_TASK, judge->place,
                        .status = error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, .sys_errno = error,
                        .text = complaint.text);
    }
    return bhi_judge_functions_take(judge, options, detail);
}

static bh_status take_baseline(bh_judge *judge, const bh_judge_options *options,
                               bh_detail *detail) {
    static const char call[] = "bh_judge_create";
    struct bhi_kernel_file file = {0};
    bh_judge_candidate ours = {0};
    if (!options->baseline) {
        return BH_OK;
    }
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_judge_candidate), &ours, options->baseline, call,
                            "options.baseline", detail));
    if (ours.define_count || ours.include_count || ours.specialization_count || ours.entry) {
        return refuse(detail, "options.baseline", "has a plan for what it is made with");
    }
    BHI_TRY(bhi_judge_candidate_take(&ours, call, &file, detail));
    return bhi_baseline_keep(judge, &file) ? BH_OK : BHI_FAIL(detail, call, BH_REASON_MEMORY);
}

static bh_status fill(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    /* "-" is a file of this name: standard input is the program's. */
    const char *path =
        options->task_path && !strcmp(options->task_path, "-") ? "./-" : options->task_path;
    judge->court.selector = judge->selector;
    judge->place = strdup(options->task_name ? options->task_name : path ? path : "task");
    judge->device = options->device ? strdup(options->device) : NULL;
    if (!judge->place || (options->device && !judge->device)) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    BHI_TRY(take_seeds(judge, options, detail));
    BHI_TRY(read_task(judge, options, path, detail));
    BHI_TRY(take_baseline(judge, options, detail));
    BHI_TRY(bhi_judge_open_page(judge, options, detail));
    return bhi_judge_open_record(judge, options, detail);
}

static void free_judge(bh_judge *judge) {
    if (judge->timing) {
        bhi_timekeeper_close(&judge->timer);
    }
    bhi_court_close(&judge->court);
    bhi_expected_close(&judge->court);
    bhi_trials_free(&judge->task, &judge->court.trials);
    bhi_task_free(&judge->task);
    bhi_baseline_free(judge);
    bh_buffer_release(judge->pin);
    bhi_judge_close_record(judge);
    free(judge->html);
    free(judge->seeds);
    free(judge->place);
    free(judge->device);
    pthread_mutex_destroy(&judge->recording);
    pthread_mutex_destroy(&judge->court.recalling);
    pthread_mutex_destroy(&judge->court.sharing);
    pthread_mutex_destroy(&judge->lock);
    pthread_cond_destroy(&judge->changed);
    if (judge->c) {
        freelocale(judge->c);
    }
    judge->magic = 0;
    free(judge);
}

BH_API bh_status bh_judge_create(const bh_judge_options *options, bh_judge **out_judge,
                                 bh_detail *detail) {
    bh_judge_options ours = {0};
    if (!out_judge || !options) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_NULL,
                        out_judge ? "options" : "out_judge");
    }
    *out_judge = NULL;
    bh_status status = bhi_layout_take(BHI_OURS(bh_judge_options), &ours, options,
                                       "bh_judge_create", "options", detail);
    if (status == BH_OK) {
        ours.timed_runs = ours.timed_runs ? ours.timed_runs : BHI_TIMED_RUNS;
        ours.parallel = ours.parallel ? ours.parallel : 1;
        status = check(&ours, detail);
    }
    if (status != BH_OK) {
        return status;
    }
    bh_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    judge->magic = MAGIC;
    judge->pid = getpid();
    judge->options = ours;
    pthread_mutex_init(&judge->lock, NULL);
    pthread_mutex_init(&judge->recording, NULL);
    pthread_mutex_init(&judge->court.recalling, NULL);
    pthread_mutex_init(&judge->court.sharing, NULL);
    judge->court.shares = ours.share_workers;
    pthread_cond_init(&judge->changed, NULL);
    judge->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (judge->c) {
        const struct turn turn = begin_turn(judge, true);
        status = fill(judge, &ours, detail);
        end_turn(judge, turn);
    } else {
        status = BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    if (status == BH_OK) {
        *out_judge = judge;
    } else {
        free_judge(judge);
    }
    return status;
}

/* -- before the first candidate -------------------------------------------------------------- */

/* Gives the judge its context, unless it has been cancelled: then the context is destroyed. */
static bh_status put_context(bh_judge *judge, bh_context *context) {
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    judge->court.context = cancelled ? NULL : context;
    pthread_mutex_unlock(&judge->lock);
    if (cancelled) {
        (void)bh_context_destroy(context);
    }
    return cancelled ? BH_CANCELLED : BH_OK;
}

static bh_status open_context(bh_judge *judge, bh_detail *detail) {
    bh_context *context;
    bh_context_options options = {.struct_size = sizeof options};
    if (judge->court.context) {
        return BH_OK;
    }
    options.quarantine_deaths = BH_OFF; /* one candidate may be given twice */
    if (judge->options.timed) {
        options.spares = 2; /* candidate and reference get fresh workers at once */
    }
    options.log = judge->options.log;
    options.log_user = judge->options.log_user;
    bh_status status = bh_context_create(&options, &context, detail);
    if (status != BH_OK) {
        return status;
    }
    status = bh_buffer_create(context, 4, NULL, &judge->pin, detail);
    if (status != BH_OK) {
        (void)bh_context_destroy(context);
        return status;
    }
    return put_context(judge, context);
}

static bh_status find_device(bh_judge *judge, bh_detail *detail) {
    return judge->device && !judge->selector[0]
               ? bhi_device_find(judge->court.context, judge->device, judge->selector, detail)
               : BH_OK;
}

static bh_status refuse_task(const bh_judge *judge, const char *field, const char *why,
                             bh_detail *detail) {
    return BHI_FAIL(detail, "", BH_REASON_TASK, judge->place, .status = BH_INVALID_ARGUMENT,
                    .text = BHI_SAY("%.300s: %.300s", field, why));
}

/* Starts what a CUDA device needs. Refuses a task that the device cannot run. */
static bh_status open_court(bh_judge *judge, bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    const struct bhi_task *task = &judge->task;
    const bool good = bhi_court_open(&judge->court, &outcome);
    if (judge->court.cuda && task->robust) {
        return refuse_task(judge, judge->place,
                           "\"robust\": a CUDA kernel has no guard, so what is behind an array is "
                           "not 0",
                           detail);
    }
    if (!judge->court.cuda && task->cuda.field) {
        return refuse_task(judge, task->cuda.field,
                           "it is for CUDA kernels, and the device is not: judge them on a CUDA "
                           "device, as with --device cuda",
                           detail);
    }
    if (judge->court.cuda && judge->options.share_workers) {
        return refuse(detail, "options.share_workers",
                      "is not for CUDA kernels: they can write to all memory of their worker");
    }
    if (judge->court.cuda && judge->options.guard_cost) {
        return refuse(detail, "options.guard_cost", "is not for CUDA kernels: they have no guard");
    }
    if (judge->court.cuda && judge->options.timed && !judge->options.baseline &&
        task->reference == BHI_REFERENCE_EVAL) {
        return refuse(detail, "options.timed",
                      "needs a CUDA kernel as the reference, or a baseline: an expression runs on "
                      "another device");
    }
    return good ? BH_OK : bhi_judge_outcome_give(&outcome, "the device", detail);
}

static bh_status make_trials(bh_judge *judge, bh_detail *detail) {
    struct bhi_complaint complaint;
    bhi_expected_close(&judge->court); /* of an attempt that failed; likewise: */
    bhi_trials_free(&judge->task, &judge->court.trials);
    return bhi_task_draw_sizes(&judge->task, judge->seeds[0], &complaint) &&
                   bhi_trials_make(&judge->task, judge->seeds, judge->seed_count,
                                   &judge->court.trials, &complaint)
               ? BH_OK
               : BHI_FAIL(detail, "", BH_REASON_TASK, judge->place, .status = BH_LOAD_FAILED,
                          .text = complaint.text);
}

static bh_status run_reference(bh_judge *judge, bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    if (bhi_reference_run(&judge->court, &outcome)) {
        return BH_OK;
    }
    if (bhi_judge_outcome_is_elsewhere(&outcome)) {
        return bhi_judge_outcome_give(&outcome, "the reference", detail);
    }
    BHI_FAIL(detail, "", BH_REASON_REFERENCE, judge->place,
             .text = BHI_SAY("%.400s (%s)", outcome.message, bh_status_name(outcome.status)));
    if (detail) {
        detail->cause = outcome.status;
    }
    return BH_INVALID_ARGUMENT;
}

/* With what the reference has computed: says whether candidates that compute nothing would be CORRECT. */
static bh_status find_weaknesses(bh_judge *judge, bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    char text[BHI_WEAKNESS_TEXT] = "the inputs are the same in each run";
    if (!bhi_weaknesses_find(&judge->court, judge->weak, &judge->weak_count, &outcome)) {
        return bhi_judge_outcome_give(&outcome, "the reference", detail);
    }
    if (judge->weak_count) {
        (void)bhi_weakness_text(&judge->task, &judge->weak[0], text);
    }
    const bool is_weak = judge->weak_count || bhi_task_is_storable(&judge->task);
    return judge->options.strict && is_weak
               ? BHI_FAIL(detail, "", BH_REASON_TASK, judge->place, .status = BH_INVALID_ARGUMENT,
                          .text = BHI_SAY("%.300s: the task is weak: %.500s", judge->place, text))
               : BH_OK;
}

bool bhi_judge_is_ready(bh_judge *judge) {
    pthread_mutex_lock(&judge->lock);
    const bool ready = judge->ready;
    pthread_mutex_unlock(&judge->lock);
    return ready;
}

static bh_status prepare(bh_judge *judge, const char *call, bh_detail *detail) {
    bh_status status = BH_OK;
    if (!bhi_judge_is_ready(judge)) {
        const struct turn turn = begin_turn(judge, true);
        if (!judge->ready) {
            (void)((status = make_trials(judge, detail)) != BH_OK ||
                   (status = open_context(judge, detail)) != BH_OK ||
                   (status = find_device(judge, detail)) != BH_OK ||
                   (status = open_court(judge, detail)) != BH_OK ||
                   (status = run_reference(judge, detail)) != BH_OK ||
                   (status = find_weaknesses(judge, detail)) != BH_OK ||
                   (status = bhi_baseline_check(judge, detail)) != BH_OK ||
                   (status = bhi_judge_begin_record(judge, detail)) != BH_OK);
        }
        pthread_mutex_lock(&judge->lock);
        judge->ready |= status == BH_OK;
        pthread_mutex_unlock(&judge->lock);
        end_turn(judge, turn);
    }
    return cancelled_or(judge, call, status, detail);
}

BH_API bh_status bh_judge_prepare(bh_judge *judge, bh_detail *detail) {
    bh_status status = bhi_judge_enter(judge, "bh_judge_prepare", detail);
    if (status == BH_OK) {
        status = prepare(judge, "bh_judge_prepare", detail);
        bhi_judge_leave(judge);
    }
    return status;
}

/* -- one candidate --------------------------------------------------------------------------- */

/* Where another one may have ended it, it is judged alone. Returns false if the machine failed. */
static bool check_candidate(bh_judge *judge, struct bhi_candidate *candidate,
                            struct bhi_judge_outcome *outcome) {
    struct turn turn = begin_turn(judge, false);
    bool known = bhi_candidate_try(&judge->court, candidate, outcome);
    const bool beside = end_turn(judge, turn);
    /* The device's time and memory, and the processors, are everybody's. */
    const bool shared =
        outcome->status == BH_DEADLINE || outcome->status == BH_OUT_OF_DEVICE_MEMORY;
    if (known && (!candidate->judged || (beside && shared))) {
        turn = begin_turn(judge, true);
        known = bhi_candidate_judge(&judge->court, candidate, outcome);
        end_turn(judge, turn);
    }
    return known;
}

/* Times that are recorded are not taken again. */
static bool time_candidate(bh_judge *judge, struct bhi_candidate *candidate, bool *out_measured,
                           struct bhi_judge_outcome *outcome) {
    if (candidate->judgement.verdict != BH_JUDGE_CORRECT ||
        (judge->state &&
         bhi_slower_judge_known(&judge->court, &judge->options, &candidate->judgement))) {
        return true;
    }
    *out_measured = true;
    const struct turn turn = begin_turn(judge, true);
    bhi_court_unshare(&judge->court); /* no other candidate has a worker while one is timed */
    if (!bhi_trials_forget(&judge->task, &judge->court.trials,
                           0)) { /* timed runs have other inputs */
        end_turn(judge, turn);
        return bhi_judge_outcome_memory(outcome);
    }
    judge->timing = judge->timing ||
                    bhi_timekeeper_open(&judge->court, &judge->options, &judge->timer, outcome);
    const bool known = judge->timing && bhi_timekeeper_measure(&judge->timer, candidate, outcome);
    candidate->judgement.timed = candidate->judgement.located;
    end_turn(judge, turn);
    return known;
}

static bool repeat_candidate(bh_judge *judge, const struct bhi_candidate *candidate,
                             struct bhi_repeated *out, struct bhi_judge_outcome *outcome) {
    const struct turn turn = begin_turn(judge, false);
    const bool good = bhi_candidate_repeat(&judge->court, candidate, out, outcome);
    end_turn(judge, turn);
    return good;
}

static bh_status judge_file(bh_judge *judge, const char *call, unsigned steps,
                            struct bhi_candidate *candidate, struct bhi_repeated *out_repeated,
                            bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    bh_status status = prepare(judge, call, detail);
    bool known = status == BH_OK, measured = false;
    if (known && steps & BHI_STEP_CHECK && !bhi_judge_find_record(judge, candidate)) {
        known = check_candidate(judge, candidate, &outcome);
        status = known ? bhi_judge_record(judge, candidate, detail) : BH_OK;
    }
    if (known && status == BH_OK && steps & BHI_STEP_MEASURE) {
        known = time_candidate(judge, candidate, &measured, &outcome);
        status = known && measured ? bhi_judge_record(judge, candidate, detail) : BH_OK;
    }
    if (known && status == BH_OK && steps & BHI_STEP_REPEAT) {
        known = repeat_candidate(judge, candidate, out_repeated, &outcome);
    }
    if (status == BH_OK && !known) {
        status = bhi_judge_outcome_give(&outcome, NULL, detail);
    }
    return cancelled_or(judge, call, status, detail);
}

bh_status bhi_judge_serve(bh_judge *judge, const char *call, unsigned steps,
                          const bh_judge_candidate *given, struct bhi_candidate *candidate,
                          struct bhi_repeated *out_repeated, bh_detail *detail) {
    bh_judge_candidate ours = {0};
    bh_status status;
    (void)((status = bhi_layout_take(BHI_OURS(bh_judge_candidate), &ours, given, call, "candidate",
                                     detail)) != BH_OK ||
           (status = bhi_judge_candidate_take(&ours, call, &candidate->file, detail)) != BH_OK ||
           (status = bhi_judge_enter(judge, call, detail)) != BH_OK);
    if (status == BH_OK) {
        const bool unable = steps == BHI_STEP_MEASURE && !judge->options.timed;
        const bool later = !judge->options.timed || (steps & BHI_STEP_CHECK && ours.check_only);
        steps &= later ? ~(unsigned)BHI_STEP_MEASURE : steps;
        status = unable
                     ? BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "judge", .text = "has no timed")
                     : judge_file(judge, call, steps, candidate, out_repeated, detail);
        bhi_judge_leave(judge);
    }
    free((void *)candidate->file.code);
    return status;
}

BH_API bh_status bh_judge_run(bh_judge *judge, const bh_judge_candidate *candidate,
                              bh_judgement *out_judgement, bh_detail *detail) {
    struct bhi_candidate judged = {.judgement.struct_size = sizeof judged.judgement};
    if (!candidate || !out_judgement) {
        return BHI_FAIL(detail, "bh_judge_run", BH_REASON_NULL,
                        candidate ? "out_judgement" : "candidate");
    }
    bh_status status = bhi_layout_check(BHI_OURS(bh_judgement), out_judgement, "bh_judge_run",
                                        "out_judgement", detail);
    if (status != BH_OK) {
        return status;
    }
    bhi_layout_give(out_judgement, &judged.judgement, sizeof judged.judgement);
    status = bhi_judge_serve(judge, "bh_judge_run", BHI_STEP_CHECK | BHI_STEP_MEASURE, candidate,
                             &judged, NULL, detail);
    if (status == BH_OK) {
        bhi_layout_give(out_judgement, &judged.judgement, sizeof judged.judgement);
    }
    return status;
}

BH_API bh_status bh_judge_time(bh_judge *judge, const bh_judge_candidate *candidate,
                               bh_judgement *judgement, bh_detail *detail) {
    struct bhi_candidate judged = {.judged = true};
    if (!candidate || !judgement) {
        return BHI_FAIL(detail, "bh_judge_time", BH_REASON_NULL,
                        candidate ? "judgement" : "candidate");
    }
    bh_status status = bhi_layout_take(BHI_OURS(bh_judgement), &judged.judgement, judgement,
                                       "bh_judge_time", "judgement", detail);
    if (status == BH_OK) {
        status = bhi_judge_serve(judge, "bh_judge_time", BHI_STEP_MEASURE, candidate, &judged, NULL,
                                 detail);
    }
    if (status == BH_OK) {
        bhi_layout_give(judgement, &judged.judgement, sizeof judged.judgement);
    }
    return status;
}

/* -- the end --------------------------------------------------------------------------------- */

BH_API void bh_judge_cancel(bh_judge *judge) {
    if (!bhi_judge_is(judge) || judge->pid != getpid()) {
        return;
    }
    pthread_mutex_lock(&judge->lock);
    judge->cancelled = true;
    judge->users++;
    bh_context *context = judge->ended ? NULL : judge->court.context;
    judge->ended = context || judge->ended;
    pthread_mutex_unlock(&judge->lock);
    const bool refused = bh_context_destroy(context) == BH_IN_CALLBACK;
    pthread_mutex_lock(&judge->lock);
    judge->ended &= !refused; /* bh_judge_destroy does it */
    pthread_mutex_unlock(&judge->lock);
    bhi_judge_leave(judge);
}

BH_API void bh_judge_destroy(bh_judge *judge) {
    if (!bhi_judge_is(judge) || judge->pid != getpid()) {
        return;
    }
    bh_judge_cancel(judge);
    pthread_mutex_lock(&judge->lock);
    while (judge->users) {
        pthread_cond_wait(&judge->changed, &judge->lock);
    }
    bh_context *left = judge->ended ? NULL : judge->court.context; /* by a log callback */
    judge->ended = true;
    pthread_mutex_unlock(&judge->lock);
    (void)bh_context_destroy(left);
    free_judge(judge);
}
