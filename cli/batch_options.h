/* The options of bulkhead batch. */
#ifndef BHI_CLI_BATCH_OPTIONS_H
#define BHI_CLI_BATCH_OPTIONS_H

#include <bulkhead/bulkhead.h>

#include "cli/batch_slurm.h"
#include "tool/args.h"

/* The values of --isolate, by index; NULL after the last. */
const char *bhi_batch_isolation(size_t index);

struct bhi_batch_options {
    const char *jobs_path, *device, *cache_dir, *html;
    const char *quarantine_path, *cancel_file; /* NULL: not given */
    char *state;                               /* owned */
    uint64_t streams, retries, halt;
    const char **redo; /* owned; ids */
    size_t redo_count;
    bool makes; /* the missing folders of outputs */
    bool resume, retry_failed, redo_changed, keep_changed, keep_going, dry_run, verify, json,
        verbose;
    bh_memory memory;
    bool limits_memory;
    bh_isolation isolation;
    bool limits_grace;
    uint64_t memory_limit, deadline_ns, compile_deadline_ns, grace_ns;
    const char *tenant; /* NULL: none */
    struct bhi_batch_slurm slurm;
};

/* Fills in |options|, which is zero, and refuses what does not go together. What is filled in must
 * be freed even then. */
bool bhi_batch_options_parse(struct bhi_batch_options *options, const struct bhi_args *args,
                             struct bhi_complaint *complaint);
void bhi_batch_options_free(struct bhi_batch_options *options);

#endif
