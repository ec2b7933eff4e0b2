/* What the finished jobs of shards that have ended have read may be other files now. A shard that has
 * not ended compares them itself. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "batch/slurm/shard.h"
#include "cli/batch_changes.h"
#include "cli/batch_slurm_parts.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"

static bool has_ended(const struct bhi_slurm_batch *batch, uint32_t shard) {
    struct bhi_slurm_shard_ending ending;
    bhi_slurm_shard_read_ending(batch->folder.real, shard, &ending);
    return ending.array && !strcmp(ending.id, batch->array.id) &&
           (ending.status == BHI_EXIT_READY || ending.status == BHI_EXIT_POISONED);
}

/* Moves the files of |from| to |all|: one that several shards have read is there once. */
static bool merge(struct bhi_batch_changes *all, struct bhi_batch_changes *from) {
    if (!BHI_ARRAY_RESERVE(all->list, all->capacity, all->count + from->count)) {
        return false;
    }
    for (size_t i = 0; i < from->count; i++) {
        struct bhi_batch_change *change = &from->list[i];
        size_t at = 0;
        while (at < all->count && strcmp(all->list[at].path, change->path) != 0) {
            at++;
        }
        if (at < all->count) {
            all->list[at].jobs += change->jobs;
            continue;
        }
        all->list[all->count++] = *change;
        change->path = change->example = NULL;
    }
    return true;
}

/* Compares what the jobs of one shard have read. Returns an exit status. */
static int compare(struct bhi_slurm_batch *batch, uint32_t shard, struct bhi_batch_changes *all) {
    struct bhi_batch_changes changes;
    struct bhi_complaint complaint;
    struct bhi_queue *queue = NULL;
    if (bhi_slurm_shard_open(batch->folder.real, shard, &queue, &complaint) != BHI_QUEUE_OK) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    int exit_status = bhi_batch_changes_find(queue, &batch->jobs.made, &changes);
    if (exit_status == BHI_EXIT_READY && changes.count) {
        batch->redo[shard] = true;
        if (!merge(all, &changes)) {
            exit_status = bhi_complain_memory("batch");
        }
    }
    bhi_batch_changes_free(&changes);
    bhi_queue_close(queue);
    return exit_status;
}

int bhi_batch_slurm_judge_changes(struct bhi_slurm_batch *batch) {
    struct bhi_batch_changes all = {0};
    const bool redoes = bhi_args_has(batch->args, BHI_BATCH_REDO_CHANGED);
    const bool keeps = bhi_args_has(batch->args, BHI_BATCH_KEEP_CHANGED);
    int exit_status = BHI_EXIT_READY;
    batch->redo = calloc(batch->array.shards, sizeof *batch->redo);
    if (!batch->redo) {
        return bhi_complain_memory("batch");
    }
    for (uint32_t i = 0; i < batch->array.shards && exit_status == BHI_EXIT_READY; i++) {
        exit_status = has_ended(batch, i) ? compare(batch, i, &all) : BHI_EXIT_READY;
    }
    if (exit_status == BHI_EXIT_READY) {
        exit_status = bhi_batch_changes_judge(&all, redoes, keeps);
    }
    if (!redoes) {
        memset(batch->redo, 0, batch->array.shards * sizeof *batch->redo);
    }
    bhi_batch_changes_free(&all);
    return exit_status;
}
