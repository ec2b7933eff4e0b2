/* Brings a result from memory to its file, so that a kill at any moment leaves either the old file
 * and a job that runs again, or a complete temporary file and a record of it.
 *
 *   write   all outputs, each under its temporary name; files and folders are made durable
 *   seal    the queue records that they are complete (bhi_queue_sealed)
 *   place   all of them are renamed; their folders are made durable
 *   DONE    the queue records it
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch/journal/marks.h"
#include "batch/runner/finish.h"

#include "batch/runner/reads.h"
#include "batch/runner/state.h"
#include "batch/runner/step.h"
#include "batch/runner/work.h"
#include "request/content.h"

static uint32_t count_of(const struct bhi_work *work) {
    return work->request->run.binding_count;
}

static struct bhi_run_binding *binding_of(const struct bhi_work *work, uint32_t index) {
    return &work->request->run.bindings[index];
}

static bool has_outputs(const struct bhi_work *work) {
    for (uint32_t i = 0; i < count_of(work); i++) {
        if (binding_of(work, i)->out_path) {
            return true;
        }
    }
    return false;
}

/* -- folders --------------------------------------------------------------------------------- */

static bool same_folder(const struct bhi_outfile *a, const struct bhi_outfile *b) {
    return a->folder_device == b->folder_device && a->folder_inode == b->folder_inode;
}

/* Returns an output before (|end_work|, |end_index|) in the same folder, or NULL. */
static const struct bhi_outfile *find_synced(struct bhi_work **works, size_t end_work,
                                             uint32_t end_index) {
    const struct bhi_outfile *file = &binding_of(works[end_work], end_index)->out;
    for (size_t w = 0; w <= end_work; w++) {
        const uint32_t count = w == end_work ? end_index : count_of(works[w]);
        for (uint32_t i = 0; i < count; i++) {
            const struct bhi_outfile *other = &binding_of(works[w], i)->out;
            if (other->folder >= 0 && same_folder(other, file)) {
                return other;
            }
        }
    }
    return NULL;
}

/* Syncs each folder once. If that fails, the outputs in it get the error. */
static void sync_folders(struct bhi_work **works, size_t count) {
    struct bhi_complaint ignored;
    for (size_t w = 0; w < count; w++) {
        for (uint32_t i = 0; i < count_of(works[w]); i++) {
            struct bhi_outfile *file = &binding_of(works[w], i)->out;
            const struct bhi_outfile *synced;
            if (file->folder < 0) {
                continue;
            }
            file->error = 0;
            if ((synced = find_synced(works, w, i))) {
                file->error = synced->error;
            } else {
                (void)bhi_outfile_sync_folder(file, &ignored);
            }
        }
    }
}

/* Returns the first output whose folder is not durable, or NULL. */
static const struct bhi_run_binding *find_unsynced(const struct bhi_work *work,
                                                   struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < count_of(work); i++) {
        const struct bhi_run_binding *binding = binding_of(work, i);
        if (binding->out.folder >= 0 && binding->out.error) {
            bhi_refuse(complaint, "its folder cannot be written to disk (fsync): %s",
                       strerror(binding->out.error));
            return binding;
        }
    }
    return NULL;
}

/* -- writing --------------------------------------------------------------------------------- */

static void refuse_output(struct bhi_work *work, const struct bhi_run_binding *binding, int error,
                          const struct bhi_complaint *complaint) {
    bhi_work_refuse(work, bhi_work_blame(error, BH_INVALID_ARGUMENT), error, "%s %.100s: %.390s",
                    binding->option, binding->text, complaint->text);
}

/* Returns false if the work is over. */
static bool write_output(struct bhi_work *work, struct bhi_run_binding *binding) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    if (!bhi_content_save(binding, &detail, &complaint)) {
        if (detail.status == BH_OK) {
            refuse_output(work, binding, binding->out.error, &complaint);
        } else {
            bhi_work_refuse(work, detail.status, detail.sys_errno, "%s %.100s: %.390s",
                            binding->option, binding->text, detail.message);
        }
        return false;
    }
    bhi_outfile_close(&binding->out);
    BHI_BATCH_STEP("batch_written");
    return true;
}

static bool write_outputs(struct bhi_work *work) {
    for (uint32_t i = 0; i < count_of(work); i++) {
        if (binding_of(work, i)->out_path && !write_output(work, binding_of(work, i))) {
            return false;
        }
    }
    return true;
}

/* Thread: the journal's, or the one that called bhi_queue_sealed. */
static void on_sealed(void *user, bool durable) {
    struct bhi_work *work = user;
    struct bhi_runner *runner = work->runner;
    if (!durable) { /* whether it was recorded, the next process finds out */
        work->record_failed = true;
        bhi_work_refuse(work, BH_SYSTEM, 0, "the journal cannot be written");
        return;
    }
    BHI_BATCH_STEP("batch_sealed");
    pthread_mutex_lock(&runner->lock);
    bhi_runner_finish(runner, &runner->to_place, work);
    pthread_mutex_unlock(&runner->lock);
}

static void mark_outputs(const struct bhi_work *work, char *out) {
    out[0] = '\0';
    for (uint32_t i = 0; i < count_of(work); i++) {
        if (binding_of(work, i)->out_path) {
            bhi_marks_append(out, &binding_of(work, i)->out.mark);
        }
    }
}

/* The outputs are durable: records them, and what they were made of. */
static void seal(struct bhi_work *work) {
    char marks[BHI_MARKS_TEXT];
    struct bhi_used used;
    const bool good = bhi_reads_collect(work, &used);
    if (good) {
        bhi_work_release(work); /* so that others can use the memory meanwhile */
        BHI_BATCH_STEP("batch_sealing");
        mark_outputs(work, marks);
        bhi_work_set_times(&work->attempt);
        bhi_queue_sealed(work->runner->queue, work->job, &work->attempt, marks, &used, on_sealed,
                         work);
    } else {
        bhi_work_refuse(work, BH_NO_MEMORY, 0, "out of memory");
    }
    bhi_used_free(&used);
}

void bhi_finish_write(struct bhi_work **works, size_t count) {
    struct bhi_complaint complaint;
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        BHI_BATCH_STEP("batch_ended");
        if (!has_outputs(works[i])) {
            bhi_work_end(works[i]);
        } else if (write_outputs(works[i])) {
            works[written++] = works[i];
        }
    }
    sync_folders(works, written);
    for (size_t i = 0; i < written; i++) {
        struct bhi_work *work = works[i];
        const struct bhi_run_binding *unsynced = find_unsynced(work, &complaint);
        if (unsynced) {
            refuse_output(work, unsynced, unsynced->out.error, &complaint);
        } else {
            seal(work);
        }
    }
}

/* -- placing --------------------------------------------------------------------------------- */

/* What an earlier process sealed is found by its temporary name. */
static bool adopt(struct bhi_work *work, uint32_t index, struct bhi_complaint *complaint) {
    struct bhi_run_binding *binding = binding_of(work, index);
    char temporary[BHI_OUTFILE_TEMPORARY];
    if (!work->job->sealed) {
        return true;
    }
    bhi_work_temporary(work, index, temporary, sizeof temporary);
    return bhi_outfile_adopt(binding->out_path, temporary, &binding->out, complaint);
}

enum placed { PLACED, READY, GONE, CHANGED, STUCK };

/* An output that an earlier process sealed is READY under its temporary name, or PLACED if that
 * process had renamed it. A file with such a name and another mark is not the sealed one; it may be
 * an older result. */
static enum placed find_sealed(struct bhi_outfile *file, const struct bhi_outfile_mark *mark,
                               struct bhi_complaint *complaint) {
    if (bhi_outfile_has(file, false, mark)) {
        return READY;
    }
    const int error = file->error;
    if (bhi_outfile_has(file, true, mark)) {
        return PLACED;
    }
    const int failed = error && error != ENOENT ? error : file->error;
    if (failed && failed != ENOENT) {
        bhi_refuse(complaint, "%s", strerror(file->error = failed));
        return STUCK;
    }
    return error ? GONE : CHANGED;
}

static enum placed place_output(struct bhi_work *work, uint32_t index,
                                const struct bhi_outfile_mark *mark,
                                struct bhi_complaint *complaint) {
    struct bhi_run_binding *binding = binding_of(work, index);
    enum placed found = READY;
    if (!adopt(work, index, complaint)) {
        return STUCK; /* also if the folder is missing: it may come back with the file in it */
    }
    if (work->job->sealed) {
        found = find_sealed(&binding->out, mark, complaint);
    }
    if (found != READY) {
        return found;
    }
    if (bhi_outfile_rename(&binding->out, complaint)) {
        BHI_BATCH_STEP("batch_renamed");
        return PLACED;
    }
    return binding->out.error == ENOENT ? GONE : STUCK;
}

/* The job stays sealed, also in the record: opening the queue again tries again. */
static void give_up_placing(struct bhi_work *work, const struct bhi_run_binding *binding,
                            const struct bhi_complaint *complaint) {
    work->placement_failed = true;
    bhi_work_refuse(work, BH_SYSTEM, binding->out.error, "%s %.100s: %.390s", binding->option,
                    binding->text, complaint->text);
}

void bhi_finish_sweep(struct bhi_work *work) {
    for (uint32_t i = 0; i < count_of(work); i++) {
        const struct bhi_run_binding *binding = binding_of(work, i);
        struct bhi_outfile file;
        struct bhi_complaint ignored;
        char temporary[BHI_OUTFILE_TEMPORARY];
        if (!binding->out_path) {
            continue;
        }
        bhi_work_temporary(work, i, temporary, sizeof temporary);
        if (bhi_outfile_adopt(binding->out_path, temporary, &file, &ignored)) {
            bhi_outfile_abandon(&file);
        }
    }
}

/* Returns false if the work is over. */
static bool place_outputs(struct bhi_work *work) {
    struct bhi_complaint complaint;
    const char *marks = work->job->outputs; /* of a sealed job: a mark for each output */
    for (uint32_t i = 0; i < count_of(work); i++) {
        struct bhi_run_binding *binding = binding_of(work, i);
        struct bhi_outfile_mark mark = {0};
        if (!binding->out_path) {
            continue;
        }
        if (work->job->sealed) {
            (void)bhi_marks_next(&marks, &mark);
        }
        const enum placed placed = place_output(work, i, &mark, &complaint);
        if (placed == PLACED) {
            continue;
        }
        if (placed == STUCK) {
            give_up_placing(work, binding, &complaint);
            return false;
        }
        bhi_finish_sweep(work);
        return bhi_work_refuse(
            work, BH_INVALID_ARGUMENT, 0,
            "%s %.100s: it was complete, but somebody %s it before it was put in place",
            binding->option, binding->text, placed == GONE ? "removed" : "changed");
    }
    return true;
}

void bhi_finish_place(struct bhi_work **works, size_t count) {
    struct bhi_complaint complaint;
    size_t placed = 0;
    for (size_t i = 0; i < count; i++) {
        if (place_outputs(works[i])) {
            works[placed++] = works[i];
        }
    }
    sync_folders(works, placed);
    for (size_t i = 0; i < placed; i++) {
        const struct bhi_run_binding *unsynced = find_unsynced(works[i], &complaint);
        if (unsynced) {
            give_up_placing(works[i], unsynced, &complaint);
        } else {
            BHI_BATCH_STEP("batch_placed");
            bhi_work_end(works[i]);
        }
    }
}
