/* bulkhead judge: include/bulkhead/judge.h for files, with a report and a journal.
 *
 * The order: read the task; run the reference; only then look at candidates, several at once. With
 * --time, those that are right are timed when all have been checked, one by one.
 */
#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "cli/judge_dump.h"
#include "cli/mains.h"
#include "formats/dtype.h"
#include "judge/api/judge.h"
#include "judge/report/report.h"
#include "judge/time/measure.h"
#include "request/code.h"
#include "request/command_line.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/descriptors.h"
#include "tool/ending.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/report/page.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"
#include "tool/values.h"

enum { MOST_WORKERS = 64, DEFAULT_WORKERS = 8, DESCRIPTORS = 256 };

struct judge {
    const struct bhi_args *args;
    struct bhi_run_request made; /* how the candidates' kernels are made */
    bh_judge_options options;
    bh_judge_candidate baseline; /* without a path: none */
    void *task;                  /* text on standard input; owned */
    bh_judge *judge;
    struct bhi_candidate *candidates; /* owned */
    size_t count;
    void *input;      /* the candidate "-"; owned */
    const char *dump; /* a folder; NULL: nothing is dumped */
    char **folders;   /* in it, of each candidate; NULL: none; owned */
    bool undumped;    /* something is missing there, which has been said */
    bool terminal;    /* progress is shown */

    pthread_mutex_t mutex; /* guards the rest while threads judge */
    size_t next;           /* index of the candidate that is begun next */
    size_t judged;
    bh_status status;
    bh_detail detail;
    const char *what; /* what has failed with |status|; NULL: the detail says it */
};

__attribute__((format(printf, 2, 3))) static int refuse(bh_status status, const char *format, ...) {
    struct bhi_complaint complaint;
    va_list list;
    if (bhi_interrupt_signal()) { /* standard input was being read */
        return bhi_interrupt_exit_status();
    }
    va_start(list, format);
    bhi_vformat(complaint.text, sizeof complaint.text, format, list);
    va_end(list);
    bhi_complain("judge", "%s", complaint.text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

static int out_of_memory(void) {
    return bhi_complain_memory("judge");
}

/* Says that a call has failed; |what|: with what; NULL: the detail says it. Returns the exit status. */
static int fail(const char *what, bh_status status, const bh_detail *detail) {
    if (detail->reason != BH_REASON_OUTPUT) {
        return bhi_session_fail("judge", what, status, detail);
    }
    const int exit_status = refuse(status, "%s", detail->message);
    return exit_status == BHI_EXIT_USAGE && status != BH_INVALID_ARGUMENT ? BHI_EXIT_ENVIRON
                                                                          : exit_status;
}

static void end(void *argument) {
    bh_judge_cancel(((struct judge *)argument)->judge);
}

/* Runs |call| on |count| threads. Returns an exit status: what is wrong has been said. */
static int run(struct judge *judge, size_t count, void (*call)(void *)) {
    int exit_status;
    if (!bhi_task_run_all("judge", count, call, end, judge, &exit_status)) {
        return exit_status;
    }
    if (judge->status == BH_OK) {
        return BHI_EXIT_READY;
    }
    return bhi_interrupt_signal() ? bhi_interrupt_exit_status()
                                  : fail(judge->what, judge->status, &judge->detail);
}

/* -- before any candidate -------------------------------------------------------------------- */

/* The page is written at the end; whether it can be is checked first. */
static int check_html(struct judge *judge) {
    const char *html = bhi_args_value(judge->args, BHI_JUDGE_HTML);
    const char *rank = bhi_args_value(judge->args, BHI_JUDGE_RANK);
    struct bhi_complaint inner;
    if (rank && strcmp(rank, "time") != 0 && strcmp(rank, "error") != 0) {
        return refuse(BH_INVALID_ARGUMENT, "--rank %.200s: it must be time or error", rank);
    }
    if (rank && !html) {
        return refuse(BH_INVALID_ARGUMENT, "--rank needs --html");
    }
    if (!html || bhi_page_check(html, &inner)) {
        return BHI_EXIT_READY;
    }
    return refuse(BH_INVALID_ARGUMENT, "--html %.200s: %.700s", html, inner.text);
}

static int begin_dump(struct judge *judge) {
    struct bhi_complaint inner;
    judge->dump = bhi_args_value(judge->args, BHI_JUDGE_DUMP);
    if (!judge->dump) {
        return BHI_EXIT_READY;
    }
    judge->folders = calloc(judge->count, sizeof *judge->folders);
    if (!judge->folders) {
        return out_of_memory();
    }
    return bhi_judge_dump_begin(judge->dump, &inner)
               ? BHI_EXIT_READY
               : refuse(BH_INVALID_ARGUMENT, "--dump %.1000s", inner.text);
}

/* How many candidates are judged at once: by default as many as there are processors. */
static int take_workers(struct judge *judge) {
    const char *value = bhi_args_value(judge->args, BHI_JUDGE_WORKERS);
    struct bhi_complaint inner;
    cpu_set_t processors;
    uint64_t workers = DEFAULT_WORKERS;
    if (value && !bhi_parse_count(value, 1, MOST_WORKERS, &workers, &inner)) {
        return refuse(BH_INVALID_ARGUMENT, "--workers %.200s: %.600s; see bulkhead judge --help",
                      value, inner.text);
    }
    if (!value && sched_getaffinity(0, sizeof processors, &processors) == 0 &&
        CPU_COUNT(&processors) < DEFAULT_WORKERS) {
        workers = (uint64_t)CPU_COUNT(&processors);
    }
    judge->options.parallel = (uint32_t)workers;
    return BHI_EXIT_READY;
}

/* Takes what all candidates are made with. */
static int take_defines(struct judge *judge) {
    struct bhi_complaint inner;
    if (!bhi_run_request_init(&judge->made, "candidate", 0, &inner)) {
        return out_of_memory();
    }
    for (size_t i = 0; i < judge->args->item_count; i++) {
        const struct bhi_arg *item = &judge->args->items[i];
        const bool is_it = item->option == BHI_JUDGE_D || item->option == BHI_JUDGE_I ||
                           item->option == BHI_JUDGE_ENTRY || item->option == BHI_JUDGE_SPEC;
        if (is_it && !bhi_run_parse_option(&judge->made, item, &inner)) {
            return refuse(judge->made.error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT,
                          "%s; see bulkhead judge --help", inner.text);
        }
    }
    return BHI_EXIT_READY;
}

/* Takes the options that are about times. */
static int take_timing(struct judge *judge) {
    static const struct {
        enum bhi_option_id option;
        const char *name;
    } others[] = {{BHI_JUDGE_REPEAT, "--repeat"},
                  {BHI_JUDGE_BASELINE, "--baseline"},
                  {BHI_JUDGE_WARM, "--warm"},
                  {BHI_JUDGE_ALL_PROCESSORS, "--all-processors"},
                  {BHI_JUDGE_GUARD_COST, "--guard-cost"},
                  {BHI_JUDGE_SLOWER_THAN, "--slower-than"}};
    const struct bhi_args *args = judge->args;
    const char *repeat = bhi_args_value(args, BHI_JUDGE_REPEAT);
    const char *slower = bhi_args_value(args, BHI_JUDGE_SLOWER_THAN);
    struct bhi_complaint inner;
    uint64_t runs = 0, bits = 0;
    judge->baseline = (bh_judge_candidate){.struct_size = sizeof judge->baseline,
                                           .path = bhi_args_value(args, BHI_JUDGE_BASELINE)};
    judge->options.timed = bhi_args_has(args, BHI_JUDGE_TIME);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && !judge->options.timed; i++) {
        if (bhi_args_has(args, others[i].option)) {
            return refuse(BH_INVALID_ARGUMENT, "%s needs --time; see bulkhead judge --help",
                          others[i].name);
        }
    }
    if (repeat &&
        !bhi_parse_count(repeat, BHI_TIMED_RUNS_LEAST, BHI_TIMED_RUNS_MOST, &runs, &inner)) {
        return refuse(BH_INVALID_ARGUMENT, "--repeat %.200s: %.600s; see bulkhead judge --help",
                      repeat, inner.text);
    }
    judge->options.timed_runs = (uint32_t)runs;
    judge->options.warm = bhi_args_has(args, BHI_JUDGE_WARM);
    judge->options.all_processors = bhi_args_has(args, BHI_JUDGE_ALL_PROCESSORS);
    judge->options.guard_cost = bhi_args_has(args, BHI_JUDGE_GUARD_COST);
    if (!slower) {
        return BHI_EXIT_READY;
    }
    const bool is_number = bhi_dtype_parse(BH_DTYPE_F64, slower, &bits, &inner);
    memcpy(&judge->options.slower_than, &bits, sizeof bits);
    if (!is_number || !(judge->options.slower_than > 0)) {
        return refuse(
            BH_INVALID_ARGUMENT,
            "--slower-than %.200s: it must be a number above 0, such as 1.05; see bulkhead "
            "judge --help",
            slower);
    }
    return BHI_EXIT_READY;
}

/* Reads the task, unless it is standard input by its path, and creates the judge. */
static int create(struct judge *judge, const uint64_t *seeds, size_t seed_count) {
    const char *path = judge->args->operands[0];
    bh_judge_options *options = &judge->options;
    struct bhi_complaint inner;
    bh_detail detail = {0};
    size_t size;
    int error;
    options->seeds = seeds;
    options->seed_count = seed_count;
    options->task_name = path;
    options->task_path = path;
    if (!strcmp(path, "-")) {
        if (!bhi_code_read(path, &judge->task, &size, &error, &inner)) {
            return refuse(error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, "-: %.600s", inner.text);
        }
        if (strlen(judge->task) != size) {
            return refuse(BH_INVALID_ARGUMENT, "-: not JSON: it contains a NUL byte");
        }
        options->task_path = NULL;
        options->task_text = judge->task;
    }
    const bh_status status = bh_judge_create(options, &judge->judge, &detail);
    if (status == BH_OK) {
        return BHI_EXIT_READY;
    }
    if (detail.reason == BH_REASON_ARGUMENT && !strcmp(detail.subject_name, "options.timed")) {
        return refuse(status,
                      "--time: the reference of %.200s is files, which take no time; a kernel, an "
                      "expression or a --baseline does",
                      path);
    }
    if (status != BH_INVALID_ARGUMENT && status != BH_LOAD_FAILED) {
        return fail(NULL, status, &detail);
    }
    return refuse(status, "%s", detail.message);
}

static int take_state(struct judge *judge) {
    const bool resume = bhi_args_has(judge->args, BHI_JUDGE_RESUME);
    const char *state = bhi_args_value(judge->args, BHI_JUDGE_STATE);
    if (!state && resume) {
        return refuse(BH_INVALID_ARGUMENT, "--resume needs --state; see bulkhead judge --help");
    }
    if (state && !*state) {
        return refuse(BH_INVALID_ARGUMENT, "--state: the folder's name is empty");
    }
    if (resume && bhi_args_has(judge->args, BHI_JUDGE_SEED)) {
        return refuse(BH_INVALID_ARGUMENT,
                      "--resume excludes --seed: the hidden seeds are those of %.600s", state);
    }
    judge->options.state = state;
    judge->options.resume = resume;
    return BHI_EXIT_READY;
}

/* Takes the options that are about the device and the seeds, and creates the judge. */
static int open_judge(struct judge *judge) {
    const struct bhi_args *args = judge->args;
    uint64_t *seeds = calloc(args->item_count + 1, sizeof *seeds);
    struct bhi_complaint inner;
    size_t count = 0;
    int exit_status = seeds ? BHI_EXIT_READY : out_of_memory();
    for (size_t i = 0; i < args->item_count && exit_status == BHI_EXIT_READY; i++) {
        if (args->items[i].option == BHI_JUDGE_SEED &&
            !bhi_parse_count(args->items[i].value, 0, UINT64_MAX, &seeds[count++], &inner)) {
            exit_status =
                refuse(BH_INVALID_ARGUMENT, "--seed %.200s: %.600s; see bulkhead judge --help",
                       args->items[i].value, inner.text);
        }
    }
    judge->options.device = bhi_args_value(args, BHI_JUDGE_DEVICE);
    judge->options.baseline = judge->baseline.path ? &judge->baseline : NULL;
    judge->options.strict = bhi_args_has(args, BHI_JUDGE_STRICT);
    judge->options.share_workers = bhi_args_has(args, BHI_JUDGE_SHARE_WORKERS);
    judge->options.log = bhi_args_has(args, BHI_JUDGE_VERBOSE) ? bhi_session_log : NULL;
    if (exit_status == BHI_EXIT_READY && judge->options.device &&
        !strcmp(judge->options.device, "any")) { /* each stream would be on another one */
        exit_status =
            refuse(BH_INVALID_ARGUMENT, "--device any: all candidates run on one device: name it");
    }
    if (exit_status == BHI_EXIT_READY) {
        exit_status = create(judge, seeds, count);
    }
    free(seeds);
    return exit_status;
}

static void prepare_on_thread(void *argument) {
    struct judge *judge = argument;
    judge->status = bh_judge_prepare(judge->judge, &judge->detail);
}

/* Runs the reference. */
static int prepare(struct judge *judge) {
    const bh_detail *detail = &judge->detail;
    int exit_status;
    (void)bhi_descriptors_raise(DESCRIPTORS); /* a low soft limit is for programs with select() */
    if (!bhi_task_run_all("judge", 1, prepare_on_thread, end, judge, &exit_status)) {
        return exit_status;
    }
    if (judge->status == BH_OK || bhi_interrupt_signal()) {
        return bhi_interrupt_or(BHI_EXIT_READY);
    }
    if (detail->reason == BH_REASON_ARGUMENT) { /* what only the device decides */
        return refuse(
            judge->status,
            !strcmp(detail->subject_name, "options.timed")
                ? "--time: the reference of %.200s is an expression, which runs on another "
                  "device than CUDA kernels; a CUDA kernel or a --baseline does not"
                : "--guard-cost: %.200s runs on a CUDA device, where kernels have no guard",
            judge->options.task_name);
    }
    const bool selector = detail->reason == BH_REASON_SELECTOR ||
                          detail->reason == BH_REASON_SELECTOR_SEVERAL ||
                          detail->reason == BH_REASON_NO_SELECTOR;
    if (!selector && detail->reason != BH_REASON_OUTPUT &&
        (judge->status == BH_INVALID_ARGUMENT || judge->status == BH_LOAD_FAILED)) {
        return refuse(detail->cause ? detail->cause : judge->status, "%s", detail->message);
    }
    return fail(selector ? "--device" : NULL, judge->status, detail);
}

/* -- candidates ------------------------------------------------------------------------------ */

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

/* No bhi_complain: with --json the report is the object that is printed. */
static void say(const char *option, const char *what) {
    char clean[1200];
    fprintf(stderr, "bulkhead judge: %s %s\n", option, bhi_text_clean(clean, sizeof clean, what));
}

static void wipe(const struct judge *judge) {
    if (judge->terminal) {
        fputs("\r\033[K", stderr);
    }
}

static bh_judge_candidate given(const struct bhi_candidate *candidate) {
    const struct bhi_kernel_file *file = &candidate->file;
    return (bh_judge_candidate){.struct_size = sizeof(bh_judge_candidate),
                                .name = file->code ? file->path : NULL,
                                .path = file->code ? NULL : file->path,
                                .code = file->code,
                                .size = file->size,
                                .check_only = true,
                                .defines = file->source.defines,
                                .includes = file->source.includes,
                                .specializations = file->specs,
                                .define_count = file->source.define_count,
                                .include_count = file->source.include_count,
                                .specialization_count = file->spec_count,
                                .entry = file->entry};
}

/* Takes how a call for a candidate has ended. Returns whether others may follow. */
static bool take(struct judge *judge, const struct bhi_candidate *candidate, bh_status status,
                 const bh_detail *detail) {
    if (status != BH_OK && judge->status == BH_OK) {
        judge->status = status;
        judge->detail = *detail;
        judge->what = candidate->file.path;
    }
    return judge->status == BH_OK;
}

/* Judges candidates until there are no more. */
static void judge_some(void *argument) {
    struct judge *judge = argument;
    bool more = true;
    pthread_mutex_lock(&judge->mutex);
    while (more && judge->next < judge->count && judge->status == BH_OK) {
        struct bhi_candidate *candidate = &judge->candidates[judge->next++];
        const bh_judge_candidate one = given(candidate);
        bh_detail detail = {0};
        pthread_mutex_unlock(&judge->mutex);
        candidate->judgement.struct_size = sizeof candidate->judgement;
        const bh_status status = bh_judge_run(judge->judge, &one, &candidate->judgement, &detail);
        pthread_mutex_lock(&judge->mutex);
        if (status == BH_OK) {
            show(judge, "judged", ++judge->judged, judge->count, NULL);
        }
        more = take(judge, candidate, status, &detail);
    }
    pthread_mutex_unlock(&judge->mutex);
}

/* Reads the candidate "-". A file is read each time that it is needed, standard input only once. */
static int read_stdin(struct judge *judge, struct bhi_kernel_file *file) {
    struct bhi_complaint inner;
    int error;
    if (strcmp(file->path, "-") != 0) {
        return BHI_EXIT_READY;
    }
    if (judge->input || !strcmp(judge->args->operands[0], "-")) {
        return refuse(BH_INVALID_ARGUMENT,
                      "-: standard input is one file; give others by their paths");
    }
    if (!bhi_code_read(file->path, &judge->input, &file->size, &error, &inner)) {
        return refuse(BH_LOAD_FAILED, "standard input: %.600s", inner.text);
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
    judge->count = count;
    for (size_t i = 0; i < count; i++) {
        judge->candidates[i].file = (struct bhi_kernel_file){.path = args->operands[i + 1],
                                                             .source = judge->made.source,
                                                             .entry = judge->made.entry,
                                                             .specs = judge->made.specs,
                                                             .spec_count = judge->made.spec_count};
        const int exit_status = read_stdin(judge, &judge->candidates[i].file);
        if (exit_status != BHI_EXIT_READY) {
            return exit_status;
        }
    }
    return BHI_EXIT_READY;
}

static int judge_all(struct judge *judge) {
    const size_t count = judge->count, workers = judge->options.parallel;
    show(judge, "judged", 0, count, NULL);
    const int exit_status = run(judge, workers < count ? workers : count, judge_some);
    wipe(judge);
    return exit_status;
}

static bool to_be_timed(const struct judge *judge, struct bhi_candidate *candidate) {
    return candidate->judgement.verdict == BH_JUDGE_CORRECT &&
           !bhi_slower_judge_known(&judge->judge->court, &judge->judge->options,
                                   &candidate->judgement);
}

static void time_each(void *argument) {
    struct judge *judge = argument;
    size_t count = 0, number = 0;
    bool more = true;
    for (size_t i = 0; i < judge->count; i++) {
        count += to_be_timed(judge, &judge->candidates[i]);
    }
    for (size_t i = 0; i < judge->count && more; i++) {
        struct bhi_candidate *candidate = &judge->candidates[i];
        const bh_judge_candidate one = given(candidate);
        bh_detail detail = {0};
        if (to_be_timed(judge, candidate)) {
            show(judge, "timing", ++number, count, candidate->file.path);
            const bh_status status =
                bh_judge_time(judge->judge, &one, &candidate->judgement, &detail);
            more = take(judge, candidate, status, &detail);
        }
    }
}

static int time_all(struct judge *judge) {
    const int exit_status = judge->options.timed ? run(judge, 1, time_each) : BHI_EXIT_READY;
    wipe(judge);
    return exit_status;
}

static void dump_each(void *argument) {
    struct judge *judge = argument;
    for (size_t i = 0; i < judge->count && !bhi_interrupt_signal(); i++) {
        const struct bhi_candidate *candidate = &judge->candidates[i];
        const bh_judge_candidate one = given(candidate);
        struct bhi_complaint complaint;
        if (!bhi_judge_dump_wants(&candidate->judgement)) {
            continue;
        }
        show(judge, "dumping", i + 1, judge->count, candidate->file.path);
        if (!bhi_judge_dump(judge->dump, judge->judge, &one, candidate->file.path,
                            &candidate->judgement, &judge->folders[i], &complaint)) {
            wipe(judge);
            say("--dump", complaint.text);
            judge->undumped = true;
        }
    }
}

static int dump_all(struct judge *judge) {
    int exit_status = BHI_EXIT_READY;
    if (judge->dump) {
        exit_status = run(judge, 1, dump_each);
        wipe(judge);
    }
    return exit_status ?: bhi_interrupt_or(BHI_EXIT_READY);
}

static int report(const struct judge *judge) {
    struct bhi_judge_report report;
    const char *html = bhi_args_value(judge->args, BHI_JUDGE_HTML);
    const char *rank = bhi_args_value(judge->args, BHI_JUDGE_RANK);
    struct bhi_complaint complaint;
    int exit_status;
    bhi_judge_tell(judge->judge, judge->candidates, judge->count, &report);
    report.task_path = judge->args->operands[0];
    report.by_error = rank && !strcmp(rank, "error");
    report.baseline = judge->baseline.path;
    report.dump = judge->dump;
    report.folders = judge->folders;
    exit_status = judge->undumped                  ? BHI_EXIT_ENVIRON
                  : report.correct == report.count ? BHI_EXIT_READY
                                                   : BHI_EXIT_POISONED;
    if (html && !bhi_judge_html(&report, html, &complaint)) {
        say("--html", complaint.text);
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
    judge->options.struct_size = sizeof judge->options;
    pthread_mutex_init(&judge->mutex, NULL);
    judge->terminal = isatty(STDERR_FILENO) == 1;
    exit_status = take_timing(judge) ?: take_workers(judge) ?: check_html(judge) ?:
                  take_defines(judge) ?: list_candidates(judge) ?: take_state(judge) ?: open_judge(judge) ?: begin_dump(judge) ?:
                  prepare(judge) ?: judge_all(judge) ?: time_all(judge) ?:
                  dump_all(judge) ?: report(judge);
    bhi_complain_cancelled("judge", exit_status,
                           judge->options.state ? "; --resume continues" : "");
    bh_judge_destroy(judge->judge);
    pthread_mutex_destroy(&judge->mutex);
    for (size_t i = 0; i < judge->count && judge->folders; i++) {
        free(judge->folders[i]);
    }
    free(judge->folders);
    bhi_run_request_free(&judge->made);
    free(judge->candidates);
    free(judge->input);
    free(judge->task);
    free(judge);
    return exit_status;
}

int bhi_judge_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_JUDGE_JSON),
                          bhi_args_has(args, BHI_JUDGE_DIFF) ? bhi_judge_diff_main : work, args);
}
