/* bulkhead judge.
 *
 * The order: read the task; make the inputs; run the reference; only then look at candidates, one
 * after the other, each with a worker of its own. With --time, those that are right are timed when
 * all have been checked, so that nothing else runs meanwhile.
 */
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/mains.h"
#include "formats/dtype.h"
#include "judge/check/candidate.h"
#include "judge/check/reference.h"
#include "judge/report/report.h"
#include "judge/time/measure.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/device_choice.h"
#include "tool/ending.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/session.h"
#include "tool/values.h"

struct judge {
    const struct bhi_args *args;
    struct bhi_task task;
    struct bhi_court court;
    char selector[BHI_SELECTOR];
    uint64_t *hidden; /* owned */
    size_t hidden_count;
    struct bhi_candidate *candidates; /* owned */
    size_t candidate_count;
    bool timed;
    struct bhi_timing_options timing;
    uint64_t flushed;
};

static int refused(bh_status status, const struct bhi_complaint *complaint) {
    bhi_complain("judge", "%s", complaint->text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

static int out_of_memory(void) {
    bhi_complain("judge", "out of memory");
    bhi_ending_blame(BH_NO_MEMORY);
    return BHI_EXIT_ENVIRON;
}

static int no_random(void) {
    bhi_complain("judge", "getrandom: %s", strerror(errno));
    return BHI_EXIT_ENVIRON;
}

/* -- before any candidate -----------------------------------------------------------------------
 */

/* Takes the hidden seeds, or makes one. The noise has a seed of its own, which is never shown. */
static int take_seeds(struct judge *judge) {
    const struct bhi_args *args = judge->args;
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return no_random();
    }
    judge->court.noise_seed = random[0];
    judge->hidden = calloc(args->item_count + 1, sizeof *judge->hidden);
    if (!judge->hidden) {
        return out_of_memory();
    }
    for (size_t i = 0; i < args->item_count; i++) {
        struct bhi_complaint complaint, inner;
        if (args->items[i].option != BHI_JUDGE_SEED) {
            continue;
        }
        if (!bhi_parse_count(args->items[i].value, 0, UINT64_MAX,
                             &judge->hidden[judge->hidden_count++], &inner)) {
            bhi_refuse(&complaint, "--seed %.200s: %.600s; see bulkhead judge --help",
                       args->items[i].value, inner.text);
            return refused(BH_INVALID_ARGUMENT, &complaint);
        }
    }
    if (!judge->hidden_count) {
        judge->hidden[judge->hidden_count++] = random[1];
    }
    return BHI_EXIT_READY;
}

/* Takes the options that are about times. */
static int take_timing(struct judge *judge) {
    static const struct {
        enum bhi_option_id option;
        const char *name;
    } others[] = {{BHI_JUDGE_REPEAT, "--repeat"},
                  {BHI_JUDGE_WARM, "--warm"},
                  {BHI_JUDGE_GUARD_COST, "--guard-cost"},
                  {BHI_JUDGE_SLOWER_THAN, "--slower-than"}};
    const struct bhi_args *args = judge->args;
    const char *repeat = bhi_args_value(args, BHI_JUDGE_REPEAT);
    const char *slower = bhi_args_value(args, BHI_JUDGE_SLOWER_THAN);
    struct bhi_complaint complaint, inner;
    uint64_t runs = BHI_TIMED_RUNS, bits = 0;
    judge->timed = bhi_args_has(args, BHI_JUDGE_TIME);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && !judge->timed; i++) {
        if (bhi_args_has(args, others[i].option)) {
            bhi_refuse(&complaint, "%s is of use only with --time; see bulkhead judge --help",
                       others[i].name);
            return refused(BH_INVALID_ARGUMENT, &complaint);
        }
    }
    if (repeat &&
        !bhi_parse_count(repeat, BHI_TIMED_RUNS_LEAST, BHI_TIMED_RUNS_MOST, &runs, &inner)) {
        bhi_refuse(&complaint, "--repeat %.200s: %.600s; see bulkhead judge --help", repeat,
                   inner.text);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    judge->timing = (struct bhi_timing_options){
        .runs = runs,
        .warm = bhi_args_has(args, BHI_JUDGE_WARM),
        .guard = bhi_args_has(args, BHI_JUDGE_GUARD_COST),
    };
    if (!slower) {
        return BHI_EXIT_READY;
    }
    const bool is_number = bhi_dtype_parse(BH_DTYPE_F64, slower, &bits, &inner);
    memcpy(&judge->timing.slower, &bits, sizeof bits);
    if (!is_number || !(judge->timing.slower > 0)) {
        bhi_refuse(&complaint,
                   "--slower-than %.200s: it must be a number above 0, such as 1.05; see bulkhead "
                   "judge --help",
                   slower);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    return BHI_EXIT_READY;
}

static int read_task(struct judge *judge) {
    struct bhi_complaint complaint;
    int error = 0;
    if (!bhi_task_read(judge->args->operands[0], &judge->task, &error, &complaint)) {
        return refused(error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, &complaint);
    }
    judge->court.task = &judge->task;
    if (judge->timed && judge->task.reference == BHI_REFERENCE_FILES) {
        bhi_refuse(&complaint,
                   "--time: the reference of %.200s is files, which take no time; a kernel or an "
                   "expression does",
                   judge->args->operands[0]);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    return BHI_EXIT_READY;
}

static int make_trials(struct judge *judge) {
    struct bhi_complaint complaint;
    return bhi_trials_make(&judge->task, judge->hidden, judge->hidden_count, &judge->court.trials,
                           &complaint)
               ? BHI_EXIT_READY
               : refused(BH_LOAD_FAILED, &complaint);
}

static int open_context(struct judge *judge) {
    const char *device = bhi_args_value(judge->args, BHI_JUDGE_DEVICE);
    bh_context_options options;
    if (device && !strcmp(device, "any")) { /* each stream would be on another one */
        struct bhi_complaint complaint;
        bhi_refuse(&complaint, "--device any: all candidates run on one device: name it");
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    int exit_status = BHI_EXIT_READY;
    bh_context_options_init(&options);
    options.quarantine_deaths = 0; /* one candidate may be given twice */
    judge->court.context = bhi_session_open_with(
        "judge", bhi_args_has(judge->args, BHI_JUDGE_VERBOSE), &options, &exit_status);
    if (!judge->court.context) {
        return exit_status;
    }
    judge->court.selector = judge->selector;
    return bhi_device_choose("judge", judge->court.context, device, judge->selector);
}

/* Ends the command, because the machine failed or a signal came. */
static int give_up(const char *what, const struct bhi_judge_outcome *outcome) {
    bh_detail detail = {.status = outcome->status};
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    snprintf(detail.message, sizeof detail.message, "%.500s", outcome->message);
    return bhi_session_fail("judge", what, outcome->status, &detail);
}

static int run_reference(struct judge *judge) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    struct bhi_complaint complaint;
    if (bhi_reference_run(&judge->court, &outcome)) {
        return BHI_EXIT_READY;
    }
    if (bhi_judge_outcome_is_elsewhere(&outcome)) {
        return give_up("the reference", &outcome);
    }
    bhi_refuse(&complaint, "the reference of %.200s cannot judge: %s (%s)",
               judge->args->operands[0], outcome.message, bh_status_name(outcome.status));
    return refused(outcome.status, &complaint);
}

/* -- candidates ---------------------------------------------------------------------------------
 */

static int judge_all(struct judge *judge) {
    const struct bhi_args *args = judge->args;
    judge->candidates = calloc(args->operand_count, sizeof *judge->candidates);
    if (!judge->candidates) {
        return out_of_memory();
    }
    for (size_t i = 1; i < args->operand_count; i++) {
        struct bhi_candidate *candidate = &judge->candidates[judge->candidate_count];
        if (!bhi_candidate_judge(&judge->court, args->operands[i], candidate)) {
            return give_up(args->operands[i], &candidate->outcome);
        }
        judge->candidate_count++;
    }
    return BHI_EXIT_READY;
}

static int time_each(struct judge *judge, struct bhi_timekeeper *timer) {
    for (size_t i = 0; i < judge->candidate_count; i++) {
        struct bhi_candidate *candidate = &judge->candidates[i];
        struct bhi_judge_outcome outcome = {.status = BH_OK};
        if (candidate->judgement == BHI_JUDGED_CORRECT &&
            !bhi_timekeeper_measure(timer, candidate, &outcome)) {
            return give_up(candidate->path, &outcome);
        }
    }
    return BHI_EXIT_READY;
}

static int time_all(struct judge *judge) {
    struct bhi_timekeeper timer;
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    if (!judge->timed) {
        return BHI_EXIT_READY;
    }
    if (!bhi_timekeeper_open(&judge->court, &judge->timing, &timer, &outcome)) {
        return give_up("--time", &outcome);
    }
    judge->flushed = timer.flush.size;
    const int exit_status = time_each(judge, &timer);
    bhi_timekeeper_close(&timer);
    return exit_status;
}

static int report(const struct judge *judge) {
    struct bhi_judge_report report = {
        .task = &judge->task,
        .task_path = judge->args->operands[0],
        .hidden_seeds = judge->hidden,
        .hidden_count = judge->hidden_count,
        .candidates = judge->candidates,
        .count = judge->candidate_count,
        .timed = judge->timed,
        .flushed = judge->flushed,
    };
    for (size_t i = 0; i < report.count; i++) {
        report.correct += report.candidates[i].judgement == BHI_JUDGED_CORRECT;
    }
    if (bhi_args_has(judge->args, BHI_JUDGE_JSON)) {
        bhi_judge_print_json(&report);
    } else {
        bhi_judge_print_table(&report);
    }
    return report.correct == report.count ? BHI_EXIT_READY : BHI_EXIT_POISONED;
}

static int work(const struct bhi_args *args) {
    struct judge *judge = calloc(1, sizeof *judge);
    int exit_status;
    if (!judge) {
        return out_of_memory();
    }
    judge->args = args;
    (void)((exit_status = take_timing(judge)) != BHI_EXIT_READY ||
           (exit_status = take_seeds(judge)) != BHI_EXIT_READY ||
           (exit_status = read_task(judge)) != BHI_EXIT_READY ||
           (exit_status = make_trials(judge)) != BHI_EXIT_READY ||
           (exit_status = open_context(judge)) != BHI_EXIT_READY ||
           (exit_status = run_reference(judge)) != BHI_EXIT_READY ||
           (exit_status = judge_all(judge)) != BHI_EXIT_READY ||
           (exit_status = time_all(judge)) != BHI_EXIT_READY ||
           (exit_status = report(judge)) != BHI_EXIT_READY);
    if (exit_status > BHI_EXIT_SIGNALLED) {
        bhi_complain("judge", "cancelled by SIG%s", sigabbrev_np(bhi_interrupt_signal()));
    }
    (void)bh_context_destroy(judge->court.context);
    bhi_trials_free(&judge->task, &judge->court.trials);
    bhi_task_free(&judge->task);
    free(judge->hidden);
    for (size_t i = 0; judge->candidates && i < args->operand_count; i++) {
        bhi_candidate_free(&judge->candidates[i]);
    }
    free(judge->candidates);
    free(judge);
    return exit_status;
}

int bhi_judge_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_JUDGE_JSON), work, args);
}
