#include "cli/batch_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/job/job.h"
#include "tool/values.h"

enum { MOST_STREAMS = 256, DEFAULT_STREAMS = 2, DEFAULT_RETRIES = 2 };

static const char *const isolations[] = {[BH_ISOLATION_STREAM] = "stream",
                                         [BH_ISOLATION_KERNEL] = "kernel",
                                         [BH_ISOLATION_SUBMISSION] = "job"};

const char *bhi_batch_isolation(size_t index) {
    return index < sizeof isolations / sizeof *isolations ? isolations[index] : NULL;
}

static bool parse_isolation(const char *value, bh_isolation *out, struct bhi_complaint *complaint) {
    for (size_t i = 0; bhi_batch_isolation(i); i++) {
        if (!strcmp(value, isolations[i])) {
            *out = (bh_isolation)i;
            return true;
        }
    }
    return bhi_refuse(complaint, "it is stream, kernel or job");
}

static bool parse_item(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint) {
    struct bhi_batch_options *options = user;
    const char *value = item->value;
    if (bhi_batch_slurm_has(item->option)) {
        return bhi_batch_slurm_parse(&options->slurm, item, complaint);
    }
    switch (item->option) {
    case BHI_BATCH_STATE:
        free(options->state);
        options->state = strdup(value);
        if (!options->state) {
            return bhi_refuse(complaint, "out of memory");
        }
        return *value ? true : bhi_refuse(complaint, "the folder's name is empty");
    case BHI_BATCH_STREAMS:
        return bhi_parse_count(value, 1, MOST_STREAMS, &options->streams, complaint);
    case BHI_BATCH_ISOLATE:
        return parse_isolation(value, &options->isolation, complaint);
    case BHI_BATCH_RETRY:
        return bhi_parse_count(value, 0, BHI_JOB_RETRIES, &options->retries, complaint);
    case BHI_BATCH_HALT:
        return bhi_parse_count(value, 1, UINT32_MAX, &options->halt, complaint);
    case BHI_BATCH_REDO:
        return bhi_parse_text(value, "id", &options->redo[options->redo_count++], complaint);
    case BHI_BATCH_DEADLINE:
        return bhi_parse_duration(value, &options->deadline_ns, complaint);
    case BHI_BATCH_COMPILE_DEADLINE:
        return bhi_parse_duration(value, &options->compile_deadline_ns, complaint);
    case BHI_BATCH_GRACE:
        options->limits_grace = true;
        return bhi_parse_grace(value, &options->grace_ns, complaint);
    case BHI_BATCH_TENANT:
        options->tenant = value;
        return bhi_parse_tenant(value, complaint);
    case BHI_BATCH_DEVICE:
        return bhi_parse_text(value, "selector", &options->device, complaint);
    case BHI_BATCH_MEMORY_LIMIT:
        options->limits_memory = true;
        return bhi_parse_memory_limit(value, &options->memory_limit, complaint);
    case BHI_BATCH_MEMORY:
        return bhi_parse_memory(value, &options->memory, complaint);
    case BHI_BATCH_CACHE_DIR:
        options->cache_dir = value;
        return bhi_parse_cache_dir(value, complaint);
    case BHI_BATCH_QUARANTINE:
        return bhi_parse_text(value, "folder's name", &options->quarantine_path, complaint);
    case BHI_BATCH_CANCEL_FILE:
        return bhi_parse_text(value, "file name", &options->cancel_file, complaint);
    case BHI_BATCH_HTML:
        return bhi_parse_text(value, "file name", &options->html, complaint);
    default:
        options->resume |= item->option == BHI_BATCH_RESUME;
        options->retry_failed |= item->option == BHI_BATCH_RETRY_FAILED;
        options->makes |= item->option == BHI_BATCH_MKDIR;
        options->redo_changed |= item->option == BHI_BATCH_REDO_CHANGED;
        options->keep_changed |= item->option == BHI_BATCH_KEEP_CHANGED;
        options->dry_run |= item->option == BHI_BATCH_DRY_RUN;
        options->verify |= item->option == BHI_BATCH_VERIFY;
        options->keep_going |= item->option == BHI_BATCH_KEEP_GOING;
        options->json |= item->option == BHI_BATCH_JSON;
        options->verbose |= item->option == BHI_BATCH_VERBOSE;
        return true;
    }
}

/* --verify and --dry-run run nothing, so they exclude options for a run. */
static bool check_options(const struct bhi_batch_options *options,
                          struct bhi_complaint *complaint) {
    if (options->retry_failed && !options->resume) {
        return bhi_refuse(complaint, "--retry-failed needs --resume");
    }
    if (options->redo_count && !options->resume) {
        return bhi_refuse(complaint, "--redo needs --resume");
    }
    if ((options->redo_changed || options->keep_changed) && !options->resume) {
        return bhi_refuse(complaint, "--%s-changed needs --resume",
                          options->redo_changed ? "redo" : "keep");
    }
    if (options->redo_changed && options->keep_changed) {
        return bhi_refuse(complaint, "--redo-changed excludes --keep-changed");
    }
    if (options->verify && (options->resume || options->dry_run)) {
        return bhi_refuse(complaint, "--verify runs nothing: it excludes --%s",
                          options->resume ? "resume" : "dry-run");
    }
    if (options->html && (options->verify || options->dry_run)) {
        return bhi_refuse(complaint, "--html reports a batch that runs: it excludes --%s",
                          options->verify ? "verify" : "dry-run");
    }
    return true;
}

bool bhi_batch_options_parse(struct bhi_batch_options *options, const struct bhi_args *args,
                             struct bhi_complaint *complaint) {
    if (!args->operand_count) {
        return bhi_refuse(complaint, "JOBS is missing");
    }
    options->jobs_path = args->operands[0];
    options->redo = calloc(args->item_count + 1, sizeof *options->redo);
    if (!options->redo) {
        return bhi_refuse(complaint, "out of memory");
    }
    bhi_batch_slurm_init(&options->slurm);
    options->streams = DEFAULT_STREAMS;
    options->memory = BH_MEMORY_AUTO;
    options->retries = DEFAULT_RETRIES;
    if (!bhi_args_each(args, parse_item, options, complaint) ||
        !check_options(options, complaint) ||
        !bhi_batch_slurm_check(&options->slurm, args, complaint)) {
        return false;
    }
    if (options->state) {
        return true;
    }
    if (!strcmp(options->jobs_path, "-")) {
        return bhi_refuse(complaint, "jobs from standard input need --state DIR");
    }
    if (asprintf(&options->state, "%s.state", options->jobs_path) < 0) {
        options->state = NULL;
        return bhi_refuse(complaint, "out of memory");
    }
    return true;
}

void bhi_batch_options_free(struct bhi_batch_options *options) {
    free(options->redo);
    free(options->state);
}
