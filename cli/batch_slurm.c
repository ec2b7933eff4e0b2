/* The order of bulkhead batch --executor slurm: what can be refused without Slurm is refused first;
 * then the folder is made and locked, the shards are written, and array.json; only then is anything
 * submitted. A killed submitter leaves either no array.json, and then nothing is submitted, or one
 * that says what to look for. */
#include "cli/batch_slurm.h"
#include "cli/batch_slurm_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/journal/state_folder.h"
#include "batch/runner/cancel.h"
#include "batch/slurm/cut.h"
#include "batch/slurm/probe.h"
#include "batch/slurm/watch.h"
#include "batch/slurm/whole.h"
#include "cli/batch_jobs.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/content_hash.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/report/page.h"

#define SECOND UINT64_C(1000000000)

static int out_of_memory(void) {
    return bhi_complain_memory("batch");
}

/* -- array.json ------------------------------------------------------------------------------ */

static void free_texts(char **texts) {
    for (size_t i = 0; texts && texts[i]; i++) {
        free(texts[i]);
    }
    free(texts);
}

static const char *sbatch_name(enum bhi_option_id option) {
    return option == BHI_BATCH_PARTITION ? "partition"
           : option == BHI_BATCH_GRES    ? "gres"
           : option == BHI_BATCH_TIME    ? "time"
                                         : NULL;
}

/* Takes the options of this call, also on --resume: a longer --time is a reason to resume. */
static bool take_options(struct bhi_slurm_batch *batch) {
    struct bhi_slurm_array *array = &batch->array;
    const size_t most = batch->args->item_count + 3;
    size_t passed = 0, given = 0;
    free_texts(array->batch_options);
    free_texts(array->sbatch_options);
    array->batch_options = calloc(most, sizeof *array->batch_options);
    array->sbatch_options = calloc(most, sizeof *array->sbatch_options);
    bool good = array->batch_options && array->sbatch_options;
    for (size_t i = 0; good && i < batch->args->item_count; i++) {
        const struct bhi_arg *item = &batch->args->items[i];
        const char *name = bhi_options[item->option].name;
        if (item->option == BHI_BATCH_SBATCH_OPTION) {
            good = (array->sbatch_options[given++] = strdup(item->value));
        } else if (sbatch_name(item->option)) {
            good = (array->sbatch_options[given++] =
                        bhi_whole_text("--%s=%s", sbatch_name(item->option), item->value));
        } else if (bhi_batch_slurm_passes(item->option)) {
            good = (array->batch_options[passed++] =
                        item->value ? bhi_whole_text("--%s=%s", name, item->value)
                                    : bhi_whole_text("--%s", name));
        }
    }
    if (good && !bhi_args_has(batch->args, BHI_BATCH_DEVICE)) {
        good = (array->batch_options[passed++] = strdup("--device=slurm"));
    }
    return good;
}

static bool make_array(struct bhi_slurm_batch *batch, const char *cwd,
                       struct bhi_complaint *complaint) {
    struct bhi_slurm_array *array = &batch->array;
    if (!batch->has_array) {
        struct bhi_probe_record probe;
        if (!bhi_array_init(array, complaint)) {
            return false;
        }
        if (bhi_probe_record_load(&probe, batch->folder.real)) {
            memcpy(array->id, probe.id, sizeof array->id); /* its submitter was killed */
        }
        array->cwd = strdup(cwd);
        array->chdir = strdup(cwd);
        array->total = batch->jobs.count;
        array->shards = batch->cut.shards;
        array->sizes = calloc(batch->cut.shards + 1u, sizeof *array->sizes);
        if (!array->sizes || !array->cwd || !array->chdir) {
            return bhi_refuse(complaint, "out of memory");
        }
        memcpy(array->sizes, batch->cut.sizes, batch->cut.shards * sizeof *array->sizes);
    }
    memcpy(array->jobs_hash, batch->jobs_hash, sizeof array->jobs_hash);
    memcpy(array->shape_hash, batch->shape_hash, sizeof array->shape_hash);
    free(array->jobs);
    free(array->program);
    array->jobs = strdup(batch->jobs.path);
    array->program = bhi_batch_slurm_own_program(complaint);
    if (!array->program) {
        return false;
    }
    return (array->jobs && take_options(batch)) || bhi_refuse(complaint, "out of memory");
}

/* -- running --------------------------------------------------------------------------------- */

static void on_tell(void *user, const char *line) {
    (void)user;
    bhi_complain("batch", "%s", line);
}

static void on_wait(void *user, const char *why) {
    (void)user;
    bhi_complain("batch", "%s; it is tried again", why);
}

/* What is read now need not be read at the end. */
static uint64_t on_follow(void *user, uint32_t shard, uint64_t most_ns) {
    struct bhi_slurm_batch *batch = user;
    struct bhi_complaint ignored; /* the report at the end says what is wrong */
    if (!batch->shards.path && !batch->no_follow) {
        batch->no_follow = !bhi_shards_open(batch->given_state, &batch->shards, &ignored);
    }
    return !batch->no_follow && shard < batch->shards.count
               ? bhi_shards_follow(&batch->shards, shard, bhi_clock_ns(), most_ns)
               : most_ns;
}

/* A line every ten seconds. */
static void on_progress(void *user, const struct bhi_watch_progress *progress) {
    struct bhi_slurm_batch *batch = user;
    const uint64_t now = bhi_clock_ns();
    const bool over = progress->ended + progress->stuck + progress->cancelled == progress->shards;
    if (!over && now - batch->shown_ns < 10 * SECOND) {
        return;
    }
    batch->shown_ns = now;
    bhi_batch_slurm_progress(&batch->shards, batch->given_state);
    fprintf(stderr, "%u of %u shards ended", progress->ended, progress->shards);
    if (progress->stuck) {
        fprintf(stderr, ", %u stuck", progress->stuck);
    }
    if (progress->cancelled) {
        fprintf(stderr, ", %u cancelled", progress->cancelled);
    }
    if (progress->running + progress->pending) {
        fprintf(stderr, ", %u running, %u pending", progress->running, progress->pending);
    }
    if (progress->pending && *progress->reason) {
        fprintf(stderr, " (%s)", progress->reason);
    }
    if (progress->due) {
        fprintf(stderr, ", %u to be submitted again", progress->due);
    }
    fputc('\n', stderr);
}

/* What the shards' feeds say of all jobs, with the lines that are in no shard. */
static int report(struct bhi_slurm_batch *batch) {
    struct bhi_slurm_report report = {
        .state = batch->given_state,
        .shards = &batch->shards,
        .sizes = batch->array.sizes,
        .count = batch->array.shards,
        .what = {.jobs_path = batch->jobs.path,
                 .html = bhi_args_value(batch->args, BHI_BATCH_HTML),
                 .json = bhi_args_has(batch->args, BHI_BATCH_JSON),
                 .bad = batch->jobs.bads,
                 .bad_count = batch->jobs.bads_count},
    };
    report.stuck = bhi_watch_stuck(&batch->watch, &report.cancelled);
    batch->continues = report.stuck > 0;
    report.stuck -= report.cancelled;
    for (size_t i = 1; i < batch->array.round_count; i++) {
        report.again += batch->array.rounds[i].count;
    }
    return bhi_batch_slurm_report(&report);
}

static int watch_batch(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    int exit_status;
    batch->watch = (struct bhi_watch){.state = batch->folder.real,
                                      .array = &batch->array,
                                      .client = {.patience_ns = batch->options->patience_ns,
                                                 .lock = batch->lock,
                                                 .waits = on_wait},
                                      .poll_ns = batch->options->poll_ns,
                                      .retry_failed = batch->retry_failed,
                                      .redo = batch->redo,
                                      .was_cancelled = batch->was_cancelled,
                                      .tell = on_tell,
                                      .progress = on_progress,
                                      .follow = on_follow,
                                      .user = batch};
    batch->shown_ns = bhi_clock_ns();
    switch (bhi_watch_run(&batch->watch, batch->has_array, &complaint)) {
    case BHI_WATCH_DONE:
        exit_status = report(batch);
        return bhi_interrupt_signal() ? bhi_batch_slurm_end_interrupted(batch) : exit_status;
    case BHI_WATCH_INTERRUPTED:
        return bhi_batch_slurm_end_interrupted(batch);
    case BHI_WATCH_REFUSED:
        return bhi_complain_usage("batch", "%s; nothing was submitted", complaint.text);
    case BHI_WATCH_DOWN:
        batch->continues = true;
        return bhi_complain_environ(
            "batch", "the controller of Slurm was not reached: %s; --resume tries again",
            complaint.text);
    case BHI_WATCH_FAILED:
        break;
    }
    batch->continues = true;
    return bhi_complain_environ("batch", "%s; --resume continues", complaint.text);
}

/* Compares what is given with what was submitted. Other lines are taken only where nothing runs by
 * the old ones. */
static int compare(struct bhi_slurm_batch *batch, bool *out_changed) {
    *out_changed = batch->has_array && strcmp(batch->jobs_hash, batch->array.jobs_hash) != 0;
    if (batch->has_array && (strcmp(batch->shape_hash, batch->array.shape_hash) != 0 ||
                             batch->array.shards != batch->cut.shards)) {
        return bhi_complain_usage(
            "batch",
            "%s has a batch of other jobs or of another number of shards (%u): ids, "
            "dependencies, their order and --shards stay as they were; give another "
            "folder (--state) for others",
            batch->given_state, batch->array.shards);
    }
    if (*out_changed && !batch->retry_failed) {
        return bhi_complain_usage(
            "batch",
            "%s has changed since it was submitted: --retry-failed takes other lines for "
            "failed jobs",
            batch->jobs.name);
    }
    return BHI_EXIT_READY;
}

/* A controller that does not say how many tasks it takes may refuse the array later. */
static int check_size(const struct bhi_slurm_batch *batch) {
    const uint64_t most =
        batch->has_array || batch->cut.shards == 1 ? UINT64_MAX : bhi_slurm_most_tasks();
    if (batch->cut.shards <= most) {
        return BHI_EXIT_READY;
    }
    return bhi_complain_usage(
        "batch",
        "--shards: %u are too many: the controller takes arrays of at most %llu tasks "
        "(MaxArraySize, max_array_tasks): give --shards %llu or fewer",
        batch->cut.shards, (unsigned long long)most, (unsigned long long)most);
}

/* Writes the shards of a new batch, or of one whose lines have changed. */
static int write_new(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    struct bhi_places places = {0};
    const bool probes = !bhi_args_has(batch->args, BHI_BATCH_NO_PROBE);
    int exit_status = probes ? bhi_batch_slurm_probe(batch, &places) : BHI_EXIT_READY;
    if (!probes) {
        bhi_probe_drop(batch->folder.real);
    }
    if (exit_status == BHI_EXIT_READY &&
        !bhi_batch_slurm_write_shards(batch, probes ? &places : NULL, &complaint)) {
        exit_status = bhi_complain_environ("batch", "%s", complaint.text);
    }
    bhi_places_fini(&places);
    return exit_status;
}

/* Somebody has called --cancel before this: now it goes on. */
static void forget_cancel(struct bhi_slurm_batch *batch) {
    char who[BHI_SHARDS_WHO];
    if (bhi_shards_cancelled_by(batch->folder.fd, who)) {
        batch->was_cancelled = true;
        bhi_complain("batch", "%s was cancelled (--cancel) %s; now %s", batch->given_state, who,
                     batch->has_array ? "the shards that have not ended are submitted again"
                                      : "it is submitted");
        (void)unlinkat(batch->folder.fd, BHI_CANCEL_FILE, 0);
    }
}

static int prepare(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    bool changed = false;
    int exit_status;
    BHI_AUTO_FREE char *here = getcwd(NULL, 0);
    BHI_AUTO_FREE char *cwd = batch->array.cwd ? strdup(batch->array.cwd)
                              : here           ? strdup(here)
                                               : NULL;
    if (!cwd) {
        return bhi_complain_environ("batch", "the current folder cannot be found");
    }
    exit_status = bhi_batch_slurm_check_texts(batch, cwd) ?: bhi_batch_slurm_read_jobs(batch, cwd);
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!bhi_cut_make(batch->jobs.specs, batch->jobs.count, (uint32_t)batch->options->shards,
                      &batch->cut)) {
        return out_of_memory();
    }
    exit_status = compare(batch, &changed) ?: check_size(batch) ?:
                  (batch->has_array ? bhi_batch_slurm_judge_changes(batch)
                                    : bhi_batch_slurm_open_folder(batch));
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!batch->has_array) {
        forget_cancel(batch);
    }
    if (!batch->has_array && bhi_slurm_shard_any_has_run(batch->folder.real)) {
        return bhi_complain_usage("batch",
                                  "%s has shards that have run, and no " BHI_ARRAY_FILE
                                  ", which says how they were cut: "
                                  "give another folder (--state)",
                                  batch->given_state);
    }
    if (!make_array(batch, cwd, &complaint)) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    if (!batch->has_array || changed) {
        exit_status = write_new(batch);
    } else {
        bhi_probe_drop(batch->folder.real); /* of other lines, if there is one */
    }
    if (exit_status == BHI_EXIT_READY &&
        (!bhi_slurm_shard_write_script(batch->folder.real, batch->array.id, batch->array.program,
                                       batch->array.batch_options, &complaint) ||
         !bhi_array_save(&batch->array, batch->folder.real, &complaint))) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    return exit_status;
}

/* A folder with a batch is opened before its file is read, a new one is made after that. */
static int load(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    int exit_status;
    if (!bhi_batch_slurm_has_file(batch->given_state, BHI_ARRAY_FILE)) {
        return BHI_EXIT_READY;
    }
    if (!batch->resume) {
        batch->continues = true;
        return bhi_complain_usage(
            "batch",
            "%s has a batch already: continue it (--resume), or give another folder "
            "(--state)",
            batch->given_state);
    }
    if ((exit_status = bhi_batch_slurm_open_folder(batch)) != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!bhi_batch_slurm_load_array(batch, &complaint)) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    return BHI_EXIT_READY;
}

static int check_slurm(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    if (!bhi_slurm_check(&complaint)) {
        if (bhi_interrupt_signal()) {
            return bhi_batch_slurm_end_interrupted(batch);
        }
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    if (batch->has_array) {
        forget_cancel(batch);
    }
    return BHI_EXIT_READY;
}

int bhi_batch_slurm_run(const struct bhi_batch_slurm *slurm, const struct bhi_args *args,
                        const char *state) {
    struct bhi_complaint complaint;
    int exit_status = BHI_EXIT_ENVIRON;
    struct bhi_slurm_batch batch = {.options = slurm,
                                    .args = args,
                                    .resume = bhi_args_has(args, BHI_BATCH_RESUME),
                                    .keep_going = bhi_args_has(args, BHI_BATCH_KEEP_GOING),
                                    .retry_failed = bhi_args_has(args, BHI_BATCH_RETRY_FAILED),
                                    .given_state = state,
                                    .folder = {.fd = -1},
                                    .shards = BHI_SHARDS_CLOSED,
                                    .lock = -1,
                                    .began_ns = bhi_clock_ns()};
    const char *html = bhi_args_value(args, BHI_BATCH_HTML);
    if (html && !bhi_page_check(html, &complaint)) {
        exit_status = bhi_complain_usage("batch", "--html %s: %s", html, complaint.text);
    } else {
        exit_status = load(&batch) ?: check_slurm(&batch) ?: prepare(&batch) ?: watch_batch(&batch);
    }
    bhi_batch_jobs_tell(&batch.jobs);
    if (batch.continues) {
        bhi_batch_slurm_tell_command(bhi_batch_slurm_command(args));
    }
    bhi_shards_close(&batch.shards);
    bhi_watch_fini(&batch.watch);
    free(batch.redo);
    bhi_array_free(&batch.array);
    bhi_cut_free(&batch.cut);
    bhi_batch_jobs_free(&batch.jobs);
    bhi_fd_close(&batch.lock);
    bhi_state_folder_close(&batch.folder);
    return exit_status;
}
