/* bulkhead judge.
 *
 * The order: read the task; make the inputs; run the reference; only then look at candidates,
 * several at once, each with a worker of its own. With --time, those that are right are timed when
 * all have been checked, one by one, so that nothing else runs meanwhile.
 */
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/judge_diff.h"
#include "cli/mains.h"
#include "formats/dtype.h"
#include "judge/check/candidates.h"
#include "judge/check/reference.h"
#include "judge/journal/journal.h"
#include "judge/report/report.h"
#include "judge/time/measure.h"
#include "judge/time/slower.h"
#include "request/code.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/device_choice.h"
#include "tool/ending.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/report/page.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"
#include "tool/values.h"

enum { MOST_WORKERS = 64, DEFAULT_WORKERS = 8 };

struct judge {
    const struct bhi_args *args;
    struct bhi_task task;
    struct bhi_court court;
    char selector[BHI_SELECTOR];
    uint64_t *hidden; /* owned */
    size_t hidden_count;
    uint64_t workers;
    const char *state; /* NULL: nothing is recorded */
    struct bhi_judge_journal journal;
    struct bhi_candidate *candidates; /* owned */
    size_t candidate_count;
    void *input; /* the candidate "-"; owned */
    bool timed;
    struct bhi_timing_options timing;
    uint64_t flushed;
    bool terminal; /* progress is shown */
    size_t judged; /* candidates; guarded by the mutex of bhi_candidates while they are judged */
};

static int refused(bh_status status, const struct bhi_complaint *complaint) {
    if (bhi_interrupt_signal()) { /* standard input was being read */
        return bhi_interrupt_exit_status();
    }
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

/* The page is written at the end; whether it can be is checked first. */
static int check_html(struct judge *judge) {
    const char *html = bhi_args_value(judge->args, BHI_JUDGE_HTML);
    struct bhi_complaint complaint, inner;
    if (!html || bhi_page_check(html, &inner)) {
        return BHI_EXIT_READY;
    }
    bhi_refuse(&complaint, "--html %.200s: %.700s", html, inner.text);
    return refused(BH_INVALID_ARGUMENT, &complaint);
}

/* How many candidates are judged at once: by default as many as there are processors. */
static int take_workers(struct judge *judge) {
    const char *value = bhi_args_value(judge->args, BHI_JUDGE_WORKERS);
    struct bhi_complaint complaint, inner;
    cpu_set_t processors;
    if (value) {
        return bhi_parse_count(value, 1, MOST_WORKERS, &judge->workers, &inner)
                   ? BHI_EXIT_READY
                   : (bhi_refuse(&complaint, "--workers %.200s: %.600s; see bulkhead judge --help",
                                 value, inner.text),
                      refused(BH_INVALID_ARGUMENT, &complaint));
    }
    judge->workers = DEFAULT_WORKERS;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0 &&
        CPU_COUNT(&processors) < DEFAULT_WORKERS) {
        judge->workers = (uint64_t)CPU_COUNT(&processors);
    }
    return BHI_EXIT_READY;
}

static int journal_exit_status(enum bhi_judge_journal_result result,
                               const struct bhi_complaint *complaint) {
    if (result == BHI_JOURNAL_OK) {
        return BHI_EXIT_READY;
    }
    refused(result == BHI_JOURNAL_BAD_INPUT ? BH_INVALID_ARGUMENT : BH_SYSTEM, complaint);
    return result == BHI_JOURNAL_BAD_INPUT ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
}

/* Before anything runs: a folder that is refused costs nothing. */
static int open_journal(struct judge *judge) {
    const bool resume = bhi_args_has(judge->args, BHI_JUDGE_RESUME);
    const char *state = bhi_args_value(judge->args, BHI_JUDGE_STATE);
    struct bhi_complaint complaint;
    if (!state && resume) {
        bhi_refuse(&complaint, "--resume needs --state; see bulkhead judge --help");
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (state && !*state) {
        bhi_refuse(&complaint, "--state: the folder's name is empty");
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (resume && bhi_args_has(judge->args, BHI_JUDGE_SEED)) {
        bhi_refuse(&complaint, "--resume excludes --seed: the hidden seeds are those of %.600s",
                   state);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (!state) {
        return BHI_EXIT_READY;
    }
    judge->state = state; /* from now on the journal is to be closed */
    return journal_exit_status(bhi_judge_journal_open(&judge->journal, state, resume, &complaint),
                               &complaint);
}

/* Takes the hidden seeds, or makes one. The noise has a seed of its own, which is never shown. */
static int take_seeds(struct judge *judge) {
    const struct bhi_args *args = judge->args;
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return no_random();
    }
    judge->court.noise_seed = random[0];
    if (judge->state && judge->journal.header) {
        struct bhi_complaint damage;
        return bhi_judge_journal_seeds(&judge->journal, &judge->hidden, &judge->hidden_count,
                                       &damage)
                   ? BHI_EXIT_READY
                   : journal_exit_status(BHI_JOURNAL_ENVIRON, &damage);
    }
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
                  {BHI_JUDGE_ALL_PROCESSORS, "--all-processors"},
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
        .all_processors = bhi_args_has(args, BHI_JUDGE_ALL_PROCESSORS),
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
    bh_context_options options = {.struct_size = sizeof options};
    if (device && !strcmp(device, "any")) { /* each stream would be on another one */
        struct bhi_complaint complaint;
        bhi_refuse(&complaint, "--device any: all candidates run on one device: name it");
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    int exit_status = BHI_EXIT_READY;
    options.quarantine_deaths = BH_OFF; /* one candidate may be given twice */
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
    bhi_format(detail.message, sizeof detail.message, "%.500s", outcome->message);
    return bhi_session_fail("judge", what, outcome->status, &detail);
}

struct reference_run {
    struct judge *judge;
    struct bhi_judge_outcome outcome;
    bool good;
};

static void run_reference_once(void *argument) {
    struct reference_run *run = argument;
    run->good = bhi_reference_run(&run->judge->court, &run->outcome);
}

static int run_reference(struct judge *judge) {
    struct reference_run run = {.judge = judge, .outcome.status = BH_OK};
    struct bhi_complaint complaint;
    int exit_status;
    if (!bhi_task_run("judge", &judge->court.context, run_reference_once, &run, &exit_status)) {
        return exit_status;
    }
    if (run.good) {
        return BHI_EXIT_READY;
    }
    if (bhi_judge_outcome_is_elsewhere(&run.outcome)) {
        return give_up("the reference", &run.outcome);
    }
    bhi_refuse(&complaint, "the reference of %.200s cannot judge: %s (%s)",
               judge->args->operands[0], run.outcome.message, bh_status_name(run.outcome.status));
    return refused(run.outcome.status, &complaint);
}

/* -- candidates ---------------------------------------------------------------------------------
 */

/* Progress: one line on standard error, if that is a terminal, cut where it would wrap. It is wiped
 * before anything else is printed. */
static void show(const struct judge *judge, const char *what, size_t number, size_t count,
                 const char *path) {
    char line[200], clean[sizeof line];
    enum { LEAST = 8 }; /* bytes that bhi_text_clean needs */
    if (!judge->terminal) {
        return;
    }
    const size_t width = (size_t)bhi_text_width(stderr), columns = width > LEAST ? width : LEAST;
    bhi_format(line, sizeof line, "%s %zu of %zu%s%.120s", what, number, count, path ? ": " : "",
               path ? path : "");
    /* A character has at least as many bytes as columns. */
    fprintf(stderr, "\r%s\033[K",
            bhi_text_clean(clean, columns < sizeof clean ? columns : sizeof clean, line));
}

static void wipe(const struct judge *judge) {
    if (judge->terminal) {
        fputs("\r\033[K", stderr);
    }
}

/* Takes the verdicts that are recorded, and records which judging it is. */
static int begin_journal(struct judge *judge) {
    struct bhi_complaint complaint;
    if (!judge->state) {
        return BHI_EXIT_READY;
    }
    const int exit_status =
        journal_exit_status(bhi_judge_journal_begin(&judge->journal, &judge->court, judge->hidden,
                                                    judge->hidden_count, &complaint),
                            &complaint);
    for (size_t i = 0; exit_status == BHI_EXIT_READY && i < judge->candidate_count; i++) {
        if (!judge->candidates[i].file.code) { /* standard input has no file to compare with */
            bhi_judge_journal_find(&judge->journal, judge->candidates[i].path,
                                   &judge->candidates[i]);
        }
    }
    return exit_status;
}

static bool note(void *user, const struct bhi_candidate *candidate) {
    struct judge *judge = user;
    show(judge, "judged", ++judge->judged, judge->candidate_count, NULL);
    return !judge->state || bhi_judge_journal_note(&judge->journal, candidate);
}

static void judge_some(void *argument) {
    bhi_candidates_judge(argument);
}

static void judge_again(void *argument) {
    bhi_candidates_judge_again(argument);
}

/* Reads the candidate "-". A file is read each time that it is needed, standard input only once. */
static int read_stdin(struct judge *judge, struct bhi_kernel_file *file) {
    struct bhi_complaint complaint, inner;
    int error;
    if (strcmp(file->path, "-") != 0) {
        return BHI_EXIT_READY;
    }
    if (judge->input || !strcmp(judge->args->operands[0], "-")) {
        bhi_refuse(&complaint, "-: standard input is one file; give others by their paths");
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (!bhi_code_read(file->path, &judge->input, &file->size, &error, &inner)) {
        bhi_refuse(&complaint, "standard input: %.600s", inner.text);
        return refused(BH_LOAD_FAILED, &complaint);
    }
    file->code = judge->input;
    return BHI_EXIT_READY;
}

static int list_candidates(struct judge *judge) {
    const struct bhi_args *args = judge->args;
    const size_t count = args->operand_count - 1;
    judge->candidates = calloc(count, sizeof *judge->candidates);
    if (!judge->candidates) {
        return out_of_memory();
    }
    judge->candidate_count = count;
    for (size_t i = 0; i < count; i++) {
        judge->candidates[i].path = judge->candidates[i].file.path = args->operands[i + 1];
        const int exit_status = read_stdin(judge, &judge->candidates[i].file);
        if (exit_status != BHI_EXIT_READY) {
            return exit_status;
        }
    }
    return BHI_EXIT_READY;
}

static int judge_all(struct judge *judge) {
    const size_t count = judge->candidate_count;
    struct bhi_candidates candidates;
    int exit_status = BHI_EXIT_READY;
    bhi_candidates_init(&candidates, &judge->court, judge->candidates, count);
    candidates.note = note;
    candidates.user = judge;
    for (size_t i = 0; i < count; i++) {
        judge->judged += judge->candidates[i].judged;
    }
    show(judge, "judged", judge->judged, count, NULL);
    bh_context **const context = &judge->court.context;
    (void)(bhi_task_run_all("judge", context, judge->workers < count ? judge->workers : count,
                            judge_some, &candidates, &exit_status) &&
           bhi_task_run("judge", context, judge_again, &candidates, &exit_status));
    bhi_candidates_fini(&candidates);
    wipe(judge);
    if (exit_status == BHI_EXIT_READY && candidates.failed) {
        return give_up(candidates.failed->path, &candidates.failed->outcome);
    }
    if (exit_status == BHI_EXIT_READY && candidates.stopped) {
        return journal_exit_status(BHI_JOURNAL_ENVIRON, &judge->journal.complaint);
    }
    return exit_status;
}

struct timing_run {
    struct judge *judge;
    const char *what; /* the candidate, or "--time" */
    struct bhi_judge_outcome outcome;
    bool good, recorded;
};

static bool to_be_timed(const struct judge *judge, struct bhi_candidate *candidate) {
    return candidate->verdict == BH_JUDGE_CORRECT &&
           !bhi_slower_judge_known(&judge->court, &judge->timing, candidate);
}

static bool time_each(struct timing_run *run, struct bhi_timekeeper *timer) {
    struct judge *judge = run->judge;
    size_t count = 0, number = 0;
    for (size_t i = 0; i < judge->candidate_count; i++) {
        count += to_be_timed(judge, &judge->candidates[i]);
    }
    for (size_t i = 0; i < judge->candidate_count && run->recorded; i++) {
        struct bhi_candidate *candidate = &judge->candidates[i];
        if (!to_be_timed(judge, candidate)) {
            continue;
        }
        run->what = candidate->path;
        show(judge, "timing", ++number, count, candidate->path);
        if (!bhi_timekeeper_measure(timer, candidate, &run->outcome)) {
            return false;
        }
        run->recorded = !judge->state || bhi_judge_journal_note(&judge->journal, candidate);
    }
    return true;
}

static void time_on_thread(void *argument) {
    struct timing_run *run = argument;
    struct judge *judge = run->judge;
    struct bhi_timekeeper timer;
    run->good = bhi_timekeeper_open(&judge->court, &judge->timing, &timer, &run->outcome);
    if (run->good) {
        judge->flushed = timer.flush.size;
        run->good = time_each(run, &timer);
        bhi_timekeeper_close(&timer);
    }
}

static int time_all(struct judge *judge) {
    struct timing_run run = {
        .judge = judge, .what = "--time", .outcome.status = BH_OK, .recorded = true};
    int exit_status;
    if (!judge->timed) {
        return BHI_EXIT_READY;
    }
    const bool ran =
        bhi_task_run("judge", &judge->court.context, time_on_thread, &run, &exit_status);
    wipe(judge);
    if (!ran) {
        return exit_status;
    }
    if (!run.recorded) {
        return journal_exit_status(BHI_JOURNAL_ENVIRON, &judge->journal.complaint);
    }
    return run.good ? BHI_EXIT_READY : give_up(run.what, &run.outcome);
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
        .device = judge->court.device,
        .workers = judge->workers,
    };
    const char *html = bhi_args_value(judge->args, BHI_JUDGE_HTML);
    struct bhi_complaint complaint;
    int exit_status;
    for (size_t i = 0; i < report.count; i++) {
        report.correct += report.candidates[i].verdict == BH_JUDGE_CORRECT;
    }
    exit_status = report.correct == report.count ? BHI_EXIT_READY : BHI_EXIT_POISONED;
    if (html && !bhi_judge_html(&report, html, &complaint)) {
        /* No bhi_complain: with --json the report is the object that is printed. */
        char clean[1200];
        fprintf(stderr, "bulkhead judge: --html %s\n",
                bhi_text_clean(clean, sizeof clean, complaint.text));
        exit_status = BHI_EXIT_ENVIRON;
    }
    if (bhi_args_has(judge->args, BHI_JUDGE_JSON)) {
        bhi_judge_print_json(&report);
    } else {
        bhi_judge_print_table(&report);
    }
    return exit_status;
}

static int work(const struct bhi_args *args) {
    struct judge *judge = calloc(1, sizeof *judge);
    int exit_status;
    if (!judge) {
        return out_of_memory();
    }
    judge->args = args;
    judge->terminal = isatty(STDERR_FILENO) == 1;
    (void)((exit_status = take_timing(judge)) != BHI_EXIT_READY ||
           (exit_status = take_workers(judge)) != BHI_EXIT_READY ||
           (exit_status = check_html(judge)) != BHI_EXIT_READY ||
           (exit_status = read_task(judge)) != BHI_EXIT_READY ||
           (exit_status = list_candidates(judge)) != BHI_EXIT_READY ||
           (exit_status = open_journal(judge)) != BHI_EXIT_READY ||
           (exit_status = take_seeds(judge)) != BHI_EXIT_READY ||
           (exit_status = make_trials(judge)) != BHI_EXIT_READY ||
           (exit_status = open_context(judge)) != BHI_EXIT_READY ||
           (exit_status = run_reference(judge)) != BHI_EXIT_READY ||
           (exit_status = begin_journal(judge)) != BHI_EXIT_READY ||
           (exit_status = judge_all(judge)) != BHI_EXIT_READY ||
           (exit_status = time_all(judge)) != BHI_EXIT_READY ||
           (exit_status = report(judge)) != BHI_EXIT_READY);
    bhi_complain_cancelled("judge", exit_status, judge->state ? "; --resume continues" : "");
    (void)bh_context_destroy(judge->court.context);
    if (judge->state) {
        bhi_judge_journal_close(&judge->journal);
    }
    bhi_trials_free(&judge->task, &judge->court.trials);
    bhi_task_free(&judge->task);
    free(judge->hidden);
    for (size_t i = 0; i < judge->candidate_count; i++) {
        bhi_candidate_free(&judge->candidates[i]);
    }
    free(judge->candidates);
    free(judge->input);
    free(judge);
    return exit_status;
}

int bhi_judge_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_JUDGE_JSON),
                          bhi_args_has(args, BHI_JUDGE_DIFF) ? bhi_judge_diff_main : work, args);
}
