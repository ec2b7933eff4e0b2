/* The jobs of a batch on a cluster: reads and checks them, and looks what the machines see. */
#include "cli/batch_slurm.h"
#include "cli/batch_slurm_parts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/owner.h"
#include "batch/slurm/devices.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/content_hash.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"

#define SECOND UINT64_C(1000000000)

/* What the queue checks between lines: ids, dependencies, circles, files that two jobs share. */
static int check_graph(struct bhi_slurm_batch *batch) {
    const struct bhi_queue_options options = {.jobs_path = batch->jobs.path, .dry_run = true};
    struct bhi_queue *queue = NULL;
    struct bhi_complaint complaint;
    enum bhi_queue_result result = bhi_queue_open(&options, &queue, &complaint);
    if (result == BHI_QUEUE_OK) {
        result = bhi_queue_add(queue, batch->jobs.specs, batch->jobs.count, &complaint);
    }
    bhi_queue_close(queue);
    if (result == BHI_QUEUE_OK) {
        return BHI_EXIT_READY;
    }
    bhi_complain("batch", "%s", complaint.text);
    return result == BHI_QUEUE_BAD_INPUT ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
}

static int judge_lines(struct bhi_slurm_batch *batch) {
    const size_t bad = batch->jobs.bad;
    bhi_batch_jobs_tell(&batch->jobs);
    if (bad && !batch->keep_going) {
        return bhi_complain_usage(
            "batch", "%zu line%s %s bad: nothing was submitted; --keep-going skips bad lines", bad,
            bad == 1 ? "" : "s", bad == 1 ? "is" : "are");
    }
    if (!batch->jobs.count) {
        return bhi_complain_usage("batch", "%s: it contains no jobs", batch->jobs.name);
    }
    return BHI_EXIT_READY;
}

static int drop_orphans(struct bhi_slurm_batch *batch) {
    return batch->keep_going ? bhi_batch_jobs_drop_orphans(&batch->jobs, NULL) : BHI_EXIT_READY;
}

static int check_files(struct bhi_slurm_batch *batch, const char *cwd) {
    return bhi_batch_jobs_check(&batch->jobs, NULL, cwd, batch->given_state) ?: drop_orphans(batch);
}

/* A batch that goes on has been checked: a finished job needs its files no more. */
static int read_all(struct bhi_slurm_batch *batch, const char *cwd) {
    return bhi_batch_jobs_read(&batch->jobs, batch->args->operands[0]) ?: drop_orphans(batch) ?:
           (batch->has_array ? BHI_EXIT_READY : check_files(batch, cwd)) ?:
           judge_lines(batch) ?: check_graph(batch);
}

static void to_hex(struct bhi_content_hash *hash, char out[65]) {
    uint8_t bytes[BHI_CONTENT_HASH];
    bhi_content_hash_end(hash, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The cut follows from the shape alone: ids, dependencies, their order. */
static bool hash_jobs(struct bhi_slurm_batch *batch) {
    struct bhi_content_hash *jobs = bhi_content_hash_begin(), *shape = bhi_content_hash_begin();
    if (!jobs || !shape) {
        bhi_content_hash_end(jobs, NULL);
        bhi_content_hash_end(shape, NULL);
        return false;
    }
    for (size_t i = 0; i < batch->jobs.count; i++) {
        const struct bhi_job_spec *spec = &batch->jobs.specs[i];
        bhi_content_hash_add(jobs, spec->text, strlen(spec->text) + 1);
        bhi_content_hash_add(shape, spec->id, strlen(spec->id) + 1);
        for (size_t k = 0; k < spec->depends_count; k++) {
            bhi_content_hash_add(shape, spec->depends_on[k], strlen(spec->depends_on[k]) + 1);
        }
        bhi_content_hash_add(shape, "", 1);
    }
    to_hex(jobs, batch->jobs_hash);
    to_hex(shape, batch->shape_hash);
    return true;
}

int bhi_batch_slurm_read_jobs(struct bhi_slurm_batch *batch, const char *cwd) {
    const int exit_status = read_all(batch, cwd);
    if (exit_status == BHI_EXIT_READY && !hash_jobs(batch)) {
        return bhi_complain_memory("batch");
    }
    return exit_status;
}

/* -- places ---------------------------------------------------------------------------------- */

static void on_probe_waits(void *user, const char *why) {
    struct bhi_slurm_batch *batch = user;
    const uint64_t now = bhi_clock_ns();
    if (now - batch->shown_ns >= 10 * SECOND) {
        batch->shown_ns = now;
        fprintf(stderr, "the probe is pending (%s)\n", why);
    }
}

static void on_submit_waits(void *user, const char *why) {
    (void)user;
    bhi_complain("batch", "%s; it is tried again", why);
}

static void on_probe_found(void *user, uint64_t job) {
    struct bhi_slurm_batch *batch = user;
    bhi_complain("batch",
                 "the probe that an earlier submitter of %s has submitted (job %llu) is in "
                 "Slurm's queue: it is waited for",
                 batch->given_state, (unsigned long long)job);
}

static const char *more(const struct bhi_slurm_batch *batch) {
    return batch->resume ? " more" : "";
}

static int end_probe(struct bhi_slurm_batch *batch, const struct bhi_probe *probe,
                     enum bhi_slurm_probe_result result, const struct bhi_complaint *complaint) {
    char version[64];
    snprintf(version, sizeof version, "bulkhead %d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR,
             BH_VERSION_PATCH);
    switch (result) {
    case BHI_PROBE_DONE:
        if (!strcmp(probe->version, version)) {
            return BHI_EXIT_READY;
        }
        return bhi_complain_usage(
            "batch", "%s on %s %s%s: install %s there under the same path", probe->array->program,
            probe->node, *probe->version ? "is " : "cannot be started", probe->version, version);
    case BHI_PROBE_INTERRUPTED:
        return bhi_batch_slurm_end_interrupted(batch);
    case BHI_PROBE_CANCELLED:
        bhi_complain("batch", "cancelled (--cancel); nothing%s was submitted", more(batch));
        return BHI_EXIT_SIGNALLED + SIGTERM;
    case BHI_PROBE_REFUSED:
    case BHI_PROBE_NOT_SHARED:
        return bhi_complain_usage("batch", "%s; nothing%s was submitted", complaint->text,
                                  more(batch));
    case BHI_PROBE_DOWN:
        return bhi_complain_environ(
            "batch", "the controller of Slurm was not reached: %s; nothing%s was submitted",
            complaint->text, more(batch));
    case BHI_PROBE_FAILED:
        break;
    }
    return bhi_complain_environ("batch", "%s; nothing%s was submitted", complaint->text,
                                more(batch));
}

/* Tasks start in the folder that paths are relative to, if it is there. Otherwise nothing relative
 * is left: what is staged has whole paths, and outputs there were refused. */
static int stage(struct bhi_slurm_batch *batch, struct bhi_places *places,
                 const struct bhi_probe *probe) {
    struct bhi_complaint complaint;
    char size[BHI_QUANTITY];
    if (!bhi_places_stage(places, probe->paths, batch->folder.real, probe->node, &complaint)) {
        if (bhi_interrupt_signal()) {
            return bhi_batch_slurm_end_interrupted(batch);
        }
        bhi_complain("batch", "%s; nothing%s was submitted", complaint.text, more(batch));
        return places->error ? BHI_EXIT_ENVIRON : BHI_EXIT_USAGE;
    }
    if (places->staged) {
        bhi_complain("batch", "%llu file%s (%s) %s copied to %s/staged: %s does not see %s",
                     (unsigned long long)places->staged, places->staged == 1 ? "" : "s",
                     bhi_quantity_bytes(size, places->staged_bytes),
                     places->staged == 1 ? "is" : "are", batch->given_state, probe->node,
                     places->staged == 1 ? "it" : "them");
    }
    free(batch->array.chdir);
    batch->array.chdir =
        strdup(probe->paths[places->cwd_place].is_seen ? batch->array.cwd : batch->folder.real);
    if (!batch->array.chdir) {
        return bhi_complain_memory("batch");
    }
    return BHI_EXIT_READY;
}

int bhi_batch_slurm_probe(struct bhi_slurm_batch *batch, struct bhi_places *places) {
    struct bhi_complaint complaint;
    const struct bhi_slurm_client client = {
        .patience_ns = batch->options->patience_ns, .lock = batch->lock, .waits = on_submit_waits};
    struct bhi_probe probe = {.state = batch->folder.real,
                              .array = &batch->array,
                              .client = &client,
                              .poll_ns = batch->options->poll_ns,
                              .runs_ns = BHI_PROBE_RUNS_NS,
                              .waits = on_probe_waits,
                              .found = on_probe_found,
                              .user = batch};
    if (!bhi_places_init(places, batch->jobs.specs, batch->jobs.count, batch->array.cwd,
                         &complaint) ||
        !(probe.paths = bhi_places_paths(places))) {
        return bhi_complain_memory("batch");
    }
    probe.count = places->count;
    batch->shown_ns = bhi_clock_ns();
    int exit_status = end_probe(batch, &probe, bhi_probe_run(&probe, &complaint), &complaint);
    if (exit_status == BHI_EXIT_READY) {
        exit_status = stage(batch, places, &probe);
    }
    free(probe.paths);
    return exit_status;
}

/* -- the device of a task -------------------------------------------------------------------- */

int bhi_batch_slurm_device(bh_context *context, const char **device,
                           char out_selector[BHI_SELECTOR]) {
    const struct bhi_slurm_grant grant = {.job_gpus = getenv("SLURM_JOB_GPUS"),
                                          .visible = getenv("CUDA_VISIBLE_DEVICES")};
    struct bhi_device_list list = {0};
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    size_t unused = 0;
    if (!*device || strcmp(*device, "slurm") != 0) {
        return BHI_EXIT_READY;
    }
    *device = NULL;
    if ((!grant.job_gpus || !*grant.job_gpus) && (!grant.visible || !*grant.visible)) {
        return BHI_EXIT_READY; /* no GPU was asked for */
    }
    if (bhi_device_list_fetch(context, &list, &detail) != BH_OK) {
        return bhi_complain_environ("batch", "%s", detail.message);
    }
    const bool good = bhi_slurm_device(&grant, &list, out_selector, &unused, &complaint);
    bhi_device_list_free(&list);
    if (!good) {
        return bhi_complain_environ("batch", "--device slurm: %s", complaint.text);
    }
    if (unused) {
        bhi_complain(
            "batch",
            "--device slurm: %zu of this task's GPUs stand idle: give a task one GPU, or let "
            "the site confine tasks to their devices (ConstrainDevices)",
            unused);
    }
    *device = *out_selector ? out_selector : NULL;
    return BHI_EXIT_READY;
}
