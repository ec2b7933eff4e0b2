/* bulkhead batch.
 *
 * The order: refuse what can be refused without opening files; check the files; open the state
 * folder and add the jobs to it; only then start workers.
 */
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/report/report.h"
#include "batch/runner/progress.h"
#include "batch/runner/runner.h"
#include "batch/slurm/array.h"
#include "batch/slurm/whole.h"
#include "cli/batch_changes.h"
#include "cli/batch_jobs.h"
#include "cli/batch_look.h"
#include "cli/batch_options.h"
#include "cli/batch_shared.h"
#include "cli/mains.h"
#include "tool/args.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/descriptors.h"
#include "tool/device_choice.h"
#include "tool/device_list.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/gpu_nodes.h"
#include "tool/interrupt.h"
#include "tool/report/page.h"
#include "tool/session.h"
#include "tool/text.h"

/* A context with one stream needs 40, a loader or a compiler 12 (docs/operating.md). Everything
 * else, also further streams, waits until descriptors are free. */
static const uint32_t least_descriptors = 54;

struct batch {
    struct bhi_batch_options options;
    struct bhi_batch_shared shared;
    struct bhi_batch_jobs jobs;
    struct bhi_queue *queue;
    bh_context *context;
    char selector[BHI_SELECTOR]; /* of the device; "": the default */
    char granted[BHI_SELECTOR];  /* by Slurm, with --device slurm */
    struct bhi_batch_progress progress;
    struct bhi_queue_counts counts;
    uint64_t began_ns, ran;
    bool halted;
    struct bhi_report_stuck *stuck; /* owned, and their texts */
    size_t stuck_count, stuck_capacity;
    struct bhi_batch_changes changes;
};

/* -- jobs ------------------------------------------------------------------------------------ */

/* Bad lines end the batch, unless --keep-going skips them. */
static int judge_lines(struct batch *batch) {
    const size_t bad = batch->jobs.bad;
    if (!bad || batch->options.keep_going) {
        return BHI_EXIT_READY;
    }
    bhi_batch_jobs_tell(&batch->jobs);
    return bhi_complain_usage(
        "batch",
        "%zu line%s %s bad: nothing was started; --keep-going skips bad lines; duplicate "
        "ids, dependencies and shared files were not checked",
        bad, bad == 1 ? "" : "s", bad == 1 ? "is" : "are");
}

static int queue_exit_status(enum bhi_queue_result result, const struct bhi_complaint *complaint) {
    if (result == BHI_QUEUE_OK) {
        return BHI_EXIT_READY;
    }
    bhi_complain("batch", "%s", complaint->text);
    return result == BHI_QUEUE_BAD_INPUT ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
}

static int open_queue(struct batch *batch) {
    const struct bhi_queue_options options = {
        .folder =
            batch->options.dry_run && !bhi_batch_slurm_has_file(batch->options.state, "batch.db")
                ? NULL
                : batch->options.state,
        .jobs_path = batch->options.jobs_path,
        .resume = batch->options.resume || batch->options.verify,
        .retry_failed = batch->options.retry_failed,
        .redo = batch->options.redo,
        .redo_count = batch->options.redo_count,
        .dry_run = batch->options.dry_run || batch->options.verify,
        .retries = (uint32_t)batch->options.retries,
    };
    struct bhi_complaint complaint;
    return queue_exit_status(bhi_queue_open(&options, &batch->queue, &complaint), &complaint);
}

/* Orphans are dropped twice. First, so that what depends on a bad line is reported as that and not
 * as a missing file. And again, because a missing file makes further orphans. */
static int check_jobs(struct batch *batch, const char *folder) {
    struct bhi_batch_jobs *jobs = &batch->jobs;
    const bool drops = batch->options.keep_going;
    return (drops ? bhi_batch_jobs_drop_orphans(jobs, batch->queue) : BHI_EXIT_READY) ?:
           bhi_batch_jobs_check(jobs, batch->queue, folder, batch->options.state) ?:
           (drops ? bhi_batch_jobs_drop_orphans(jobs, batch->queue) : BHI_EXIT_READY) ?:
           judge_lines(batch);
}

/* A folder that was given by mistake would mix two batches silently: says so if the folder's batch
 * is of another file and knows none of the jobs. */
static void note_mixture(const struct batch *batch, uint64_t before) {
    struct bhi_queue_counts now;
    char state[1024], other[1024], name[1024];
    bhi_queue_counts(batch->queue, &now);
    if (bhi_queue_other_jobs(batch->queue) && now.total == before + batch->jobs.count &&
        batch->jobs.count) {
        fprintf(stderr, "bulkhead batch: %s has the batch of %s; the jobs of %s are added to it\n",
                bhi_text_clean(state, sizeof state, batch->options.state),
                bhi_text_clean(other, sizeof other, bhi_queue_other_jobs(batch->queue)),
                bhi_text_clean(name, sizeof name, batch->jobs.name));
    }
}

/* Has the jobs that |changes| names run again: opens the queue anew, so that they begin anew. */
static int redo_changed(struct batch *batch) {
    struct bhi_batch_options *options = &batch->options;
    const size_t count = options->redo_count + batch->changes.id_count;
    const char **redo = realloc(options->redo, (count + 1) * sizeof *redo);
    if (!redo) {
        return bhi_complain_memory("batch");
    }
    memcpy(redo + options->redo_count, batch->changes.ids, batch->changes.id_count * sizeof *redo);
    options->redo = redo;
    options->redo_count = count;
    (void)bhi_queue_close(batch->queue);
    batch->queue = NULL;
    return open_queue(batch) ?: check_jobs(batch, bhi_queue_cwd(batch->queue));
}

/* What finished jobs have read may be other files now. */
static int judge_changes(struct batch *batch) {
    const struct bhi_batch_options *options = &batch->options;
    const int exit_status = bhi_batch_changes_find(batch->queue, &batch->jobs.made, &batch->changes)
                                ?: bhi_batch_changes_judge(&batch->changes, options->redo_changed,
                                                           options->keep_changed);
    return exit_status == BHI_EXIT_READY && options->redo_changed && batch->changes.count
               ? redo_changed(batch)
               : exit_status;
}

/* A new batch is checked before its folder is made, so a refused one leaves no state. A resumed
 * batch is opened before its files are checked: a finished job needs its inputs no more. */
static int submit_jobs(struct batch *batch) {
    struct bhi_complaint complaint;
    struct bhi_queue_counts before;
    char *folder = getcwd(NULL, 0);
    int exit_status;
    if (!folder) {
        return bhi_complain_environ("batch", "the current folder cannot be found");
    }
    if (batch->options.dry_run && !bhi_batch_slurm_has_file(batch->options.state, "batch.db")) {
        batch->options.resume = false; /* there is nothing to resume */
        if (batch->options.redo_count) {
            bhi_complain("batch", "%s has no job \"%s\" to run again", batch->options.state,
                         batch->options.redo[0]);
            free(folder);
            return BHI_EXIT_USAGE;
        }
    }
    if (batch->options.resume) {
        exit_status = open_queue(batch) ?: check_jobs(batch, bhi_queue_cwd(batch->queue)) ?:
                      judge_changes(batch);
    } else {
        exit_status = check_jobs(batch, folder) ?: open_queue(batch);
    }
    free(folder);
    bhi_batch_jobs_tell(&batch->jobs);
    if (exit_status == BHI_EXIT_READY && batch->options.resume && batch->jobs.bads_count) {
        exit_status = bhi_batch_jobs_drop_known(&batch->jobs, batch->queue);
    }
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    bhi_queue_counts(batch->queue, &before);
    exit_status = queue_exit_status(
        bhi_queue_add(batch->queue, batch->jobs.specs, batch->jobs.count, &complaint), &complaint);
    if (exit_status == BHI_EXIT_READY) {
        note_mixture(batch, before.total);
    }
    return exit_status;
}

static int read_jobs(struct batch *batch) {
    int exit_status = bhi_batch_jobs_read(&batch->jobs, batch->options.jobs_path);
    batch->jobs.contents = batch->options.dry_run; /* otherwise when the job's turn comes */
    batch->jobs.device = batch->options.device;
    batch->jobs.makes = batch->options.makes;
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    if (batch->jobs.count + batch->jobs.bad == 0 &&
        !(batch->options.resume && bhi_batch_slurm_has_file(batch->options.state, "batch.db"))) {
        return bhi_complain_usage(
            "batch", "%s: it contains no jobs%s%s%s", batch->jobs.name,
            batch->options.resume ? ", and " : "",
            batch->options.resume ? batch->options.state : "",
            batch->options.resume ? " has no batch: there is nothing to resume" : "");
    }
    /* The batch will be refused: missing files are reported now, together with the bad lines. */
    if (batch->jobs.bad && !batch->options.keep_going && !batch->options.resume) {
        char *folder = getcwd(NULL, 0);
        batch->jobs.roots_only = true;
        exit_status = folder
                          ? bhi_batch_jobs_check(&batch->jobs, NULL, folder, batch->options.state)
                          : BHI_EXIT_READY;
        free(folder);
        if (exit_status != BHI_EXIT_READY) {
            return exit_status;
        }
    }
    return judge_lines(batch);
}

/* The page is written at the end, but whether it can be written is checked first. */
static int check_html(const struct batch *batch) {
    struct bhi_complaint complaint;
    if (!batch->options.html || bhi_page_check(batch->options.html, &complaint)) {
        return BHI_EXIT_READY;
    }
    return bhi_complain_usage("batch", "--html %s: %s", batch->options.html, complaint.text);
}

/* -- the device ------------------------------------------------------------------------------ */

static int open_context(struct batch *batch) {
    bh_context_options options = {.struct_size = sizeof options};
    int exit_status = BHI_EXIT_READY;
    /* Buffers and outputs use descriptors, many at a time. */
    (void)bhi_descriptors_raise(UINT64_MAX);
    if (!bhi_descriptors_make_room("batch", "a batch", least_descriptors)) {
        return BHI_EXIT_ENVIRON;
    }
    options.quarantine_deaths = BH_OFF; /* the batch quarantines jobs, not kernels */
    options.cache_dir = batch->options.cache_dir;
    batch->context = bhi_session_open_with("batch", batch->options.verbose, &options, &exit_status);
    return exit_status;
}

/* -- running --------------------------------------------------------------------------------- */

/* Bad lines count as failed jobs. */
static void set_counts(struct batch *batch, const struct bhi_queue_counts *counts) {
    batch->counts = *counts;
    batch->counts.total += batch->jobs.bads_count;
    batch->counts.of[BHI_JOB_FAILED] += batch->jobs.bads_count;
}

static void on_progress(void *user, const struct bhi_queue_counts *counts) {
    struct batch *batch = user;
    set_counts(batch, counts);
    bhi_progress_update(&batch->progress, &batch->counts);
}

static void on_ended(void *user, const struct bhi_job *job, const struct bhi_attempt *attempt) {
    struct batch *batch = user;
    batch->ran += attempt->started;
    bhi_progress_tell(&batch->progress, job, attempt, batch->options.verbose);
}

static bh_status choose_device(void *user, const char *device, char out_selector[BHI_SELECTOR],
                               bh_detail *detail) {
    struct batch *batch = user;
    return bhi_device_find(batch->context, device, out_selector, detail);
}

static bh_status fetch_limits(void *user, const char *selector, uint64_t *out_range,
                              uint32_t *out_alignment, bh_detail *detail) {
    struct batch *batch = user;
    struct bhi_device_list list;
    const bh_status status = bhi_device_list_fetch(batch->context, &list, detail);
    if (status != BH_OK) {
        return status;
    }
    (void)bhi_device_list_limits(&list, selector, out_range, out_alignment);
    bhi_device_list_free(&list);
    return status;
}

static void on_waits(void *user, const char *why) {
    struct batch *batch = user;
    bhi_progress_waits(&batch->progress, why);
}

/* If there is no memory for the entry, the job is reported on standard error only. */
static void on_stuck(void *user, const struct bhi_job *job, const char *why) {
    struct batch *batch = user;
    bhi_progress_stuck(&batch->progress, job, why);
    if (!BHI_ARRAY_RESERVE(batch->stuck, batch->stuck_capacity, batch->stuck_count + 1)) {
        return;
    }
    const struct bhi_report_stuck stuck = {
        .line = job->line, .id = strdup(job->id), .message = strdup(why)};
    if (stuck.id && stuck.message) {
        batch->stuck[batch->stuck_count++] = stuck;
        return;
    }
    free((void *)stuck.id);
    free((void *)stuck.message);
}

static void free_stuck(struct batch *batch) {
    for (size_t i = 0; i < batch->stuck_count; i++) {
        free((void *)batch->stuck[i].id);
        free((void *)batch->stuck[i].message);
    }
    free(batch->stuck);
}

static int count_exit_status(const struct batch *batch) {
    const uint64_t *of = batch->counts.of; /* including bad lines */
    return of[BHI_JOB_FAILED] + of[BHI_JOB_QUARANTINED] > 0 ? BHI_EXIT_POISONED : BHI_EXIT_READY;
}

static bool is_cancelled(void *user) {
    const struct batch *batch = user;
    return bhi_cancel_watch_seen(batch->shared.watch);
}

static int run_jobs(struct batch *batch) {
    const struct bhi_runner_options options = {
        .context = batch->context,
        .streams = (uint32_t)batch->options.streams,
        .device = batch->selector[0] ? batch->selector : NULL,
        .choose = choose_device,
        .limits = fetch_limits,
        .isolation = batch->options.isolation,
        .deadline_ns = batch->options.deadline_ns,
        .compile_deadline_ns = batch->options.compile_deadline_ns,
        .limits_grace = batch->options.limits_grace,
        .grace_ns = batch->options.grace_ns,
        .tenant = batch->options.tenant,
        .limits_memory = batch->options.limits_memory,
        .memory_limit = batch->options.memory_limit,
        .memory = bhi_memory_here(batch->options.memory),
        .halt = batch->options.halt,
        .made = &batch->jobs.made,
        .makes = batch->options.makes,
        .quarantine = batch->shared.quarantine_path ? &batch->shared.quarantine : NULL,
        .cancelled = is_cancelled,
        .progress = on_progress,
        .ended = on_ended,
        .waits = on_waits,
        .stuck = on_stuck,
        .user = batch,
    };
    struct bhi_complaint complaint;
    struct bhi_queue_counts counts;
    bhi_progress_begin(&batch->progress);
    const enum bhi_runner_result result = bhi_runner_run(batch->queue, &options, &complaint);
    bhi_queue_counts(batch->queue, &counts);
    set_counts(batch, &counts);
    bhi_progress_end(&batch->progress, &batch->counts);
    switch (result) {
    case BHI_RUNNER_FINISHED:
        return count_exit_status(batch);
    case BHI_RUNNER_INTERRUPTED:
        bhi_complain_cancelled("batch", bhi_interrupt_exit_status(), "; --resume continues");
        return bhi_interrupt_exit_status();
    case BHI_RUNNER_CANCELLED:
        bhi_complain("batch", "cancelled by %s; --resume continues", batch->shared.cancel_file);
        return BHI_EXIT_SIGNALLED + SIGTERM;
    case BHI_RUNNER_HALTED:
        batch->halted = true;
        bhi_complain("batch", "halted: %s (--halt %llu); --resume runs the others", complaint.text,
                     (unsigned long long)batch->options.halt);
        return BHI_EXIT_POISONED;
    case BHI_RUNNER_STUCK:
        return bhi_complain_environ("batch", "%s; --resume tries again", complaint.text);
    case BHI_RUNNER_BROKEN:
        return bhi_complain_environ("batch", "%s; --resume continues", complaint.text);
    case BHI_RUNNER_ENVIRON:
        break;
    }
    return bhi_complain_environ("batch", "%s; see bulkhead doctor; --resume continues",
                                complaint.text);
}

/* Reports the batch, also one that was cut short. With a broken journal it reports nothing: the
 * error was printed. */
static int report(struct batch *batch, int exit_status) {
    struct bhi_complaint complaint;
    struct bhi_report_run run = {
        .jobs_path = batch->options.jobs_path,
        .state_folder = batch->options.state,
        .device = batch->selector,
        .streams = (uint32_t)batch->options.streams,
        .elapsed_ns = bhi_clock_ns() - batch->began_ns,
        .ran = batch->ran,
        .exit_status = exit_status,
        .halted = batch->halted,
        .bad = batch->jobs.bads,
        .bad_count = batch->jobs.bads_count,
        .stuck = batch->stuck,
        .stuck_count = batch->stuck_count,
    };
    if (!bhi_queue_flush(batch->queue)) {
        if (exit_status != BHI_EXIT_ENVIRON && bhi_queue_broken(batch->queue, &complaint)) {
            bhi_complain("batch", "%s; --resume continues", complaint.text);
        }
        return BHI_EXIT_ENVIRON;
    }
    /* The page comes first, because it can fail, and the other reports give the exit status. */
    if (batch->options.html &&
        !bhi_report_html(batch->options.html, batch->queue, &run, &complaint)) {
        bhi_complain("batch", "--html %s: %s", batch->options.html, complaint.text);
        run.exit_status = BHI_EXIT_ENVIRON;
    }
    const bool told = batch->options.json ? bhi_report_json(batch->queue, &run)
                                          : bhi_report_table(stdout, batch->queue, &run);
    if (!told && ferror(stdout)) {
        return BHI_EXIT_ENVIRON; /* the end of the program reports it */
    }
    if (!told) {
        return bhi_complain_environ("batch", "the state folder cannot be read for the summary");
    }
    return run.exit_status;
}

/* --verify and --dry-run: nothing runs, and no device is needed. */
static int look(struct batch *batch) {
    int exit_status;
    if (batch->options.verify && !bhi_batch_slurm_has_file(batch->options.state, "batch.db")) {
        return bhi_complain_usage("batch", "%s has no batch: there is nothing to verify",
                                  batch->options.state);
    }
    if (batch->options.verify) {
        exit_status = open_queue(batch);
    } else {
        exit_status = read_jobs(batch) ?: submit_jobs(batch);
    }
    const struct bhi_batch_look look = {.jobs_path = batch->options.jobs_path,
                                        .state = batch->options.state,
                                        .json = batch->options.json,
                                        .verbose = batch->options.verbose,
                                        .bad = batch->jobs.bads_count};
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    return batch->options.verify ? bhi_batch_verify(batch->queue, &look)
                                 : bhi_batch_plan(batch->queue, &look);
}

/* Its shards have journals of their own: here every job would run again. */
static int refuse_array(const struct batch *batch) {
    static const char *const of_array[] = {BHI_ARRAY_FILE, "shards", "probe"};
    for (size_t i = 0; i < sizeof of_array / sizeof *of_array; i++) {
        BHI_AUTO_FREE char *path = bhi_whole_text("%s/%s", batch->options.state, of_array[i]);
        if (path && access(path, F_OK) == 0) { /* what is wrong with the folder is said later */
            struct bhi_slurm_array array;
            struct bhi_complaint ignored;
            bhi_complain("batch",
                         "%s has a job array of Slurm: give --executor slurm and the other options "
                         "that it was given, and --resume",
                         batch->options.state);
            if (bhi_array_load(&array, batch->options.state, &ignored) == BHI_ARRAY_LOADED) {
                bhi_batch_slurm_tell_command(
                    bhi_batch_slurm_command_of(&array, batch->options.state));
                bhi_array_free(&array);
            }
            return BHI_EXIT_USAGE;
        }
    }
    return BHI_EXIT_READY;
}

static int run(struct batch *batch) {
    int exit_status;
    if (batch->options.verify || batch->options.dry_run) {
        return look(batch);
    }
    exit_status = refuse_array(batch) ?: check_html(batch) ?: read_jobs(batch) ?:
                  open_context(batch) ?:
                  bhi_batch_slurm_device(batch->context, &batch->options.device, batch->granted) ?:
                  bhi_device_choose("batch", batch->context, batch->options.device,
                                    batch->selector) ?:
                  submit_jobs(batch) ?:
                  bhi_batch_shared_open(&batch->shared, batch->options.state);
    return exit_status == BHI_EXIT_READY ? report(batch, run_jobs(batch)) : exit_status;
}

static int batch_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    if (bhi_batch_shards_asked(args)) {
        return bhi_batch_shards(args);
    }
    struct batch batch = {.began_ns = bhi_clock_ns(), .shared = BHI_BATCH_SHARED_CLOSED};
    int exit_status = BHI_EXIT_USAGE;
    if (bhi_batch_options_parse(&batch.options, args, &complaint)) {
        batch.shared.quarantine_path = batch.options.quarantine_path;
        batch.shared.given_cancel_file = batch.options.cancel_file;
        exit_status = batch.options.slurm.wanted
                          ? bhi_batch_slurm_run(&batch.options.slurm, args, batch.options.state)
                          : run(&batch);
    } else {
        bhi_complain("batch", "%s; see bulkhead batch --help", complaint.text);
    }
    bhi_batch_jobs_tell(&batch.jobs); /* if something else has ended it */
    (void)bh_context_destroy(batch.context);
    bhi_batch_shared_close(&batch.shared); /* while the state folder is ours */
    if (!bhi_queue_close(batch.queue) && exit_status != BHI_EXIT_ENVIRON) {
        exit_status = bhi_complain_environ(
            "batch", "the state folder %s could not be written completely", batch.options.state);
    }
    bhi_batch_jobs_free(&batch.jobs);
    bhi_batch_changes_free(&batch.changes);
    free_stuck(&batch);
    bhi_batch_options_free(&batch.options);
    return exit_status;
}

int bhi_batch_main(const struct bhi_args *args) {
    return bhi_error_json(bhi_args_has(args, BHI_BATCH_JSON), batch_main, args);
}
