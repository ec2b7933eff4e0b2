/* --verify: are the outputs of a batch still what was written? They must exist, with the content
 * that was recorded before they were put in their places. Outputs in a state of format 3 have no
 * recorded hash: their sizes and times are compared. And are kernels and inputs still what the jobs
 * read? An input that a job of the batch made is one of the outputs. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/owner.h"
#include "batch/graph/paths.h"
#include "batch/journal/marks.h"
#include "cli/batch_changes.h"
#include "cli/batch_look.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/json.h"
#include "tool/quantity.h"
#include "tool/text.h"

enum finding { UNCHANGED, REPLACED, MISSING, CHANGED, UNREADABLE, UNKNOWN, FINDINGS };

static const char *const names[FINDINGS] = {"unchanged", "replaced",   "missing",
                                            "changed",   "unreadable", "unknown"};
static const char *const texts[FINDINGS] = {
    [UNCHANGED] = "is unchanged",
    [REPLACED] = "was replaced by a later job of the batch",
    [MISSING] = "is missing",
    [CHANGED] = "has changed: its content is not the recorded one",
    [UNREADABLE] = "cannot be checked",
    [UNKNOWN] = "is not in the record",
};
/* The texts for an output without a recorded hash. */
static const char *const texts_without_hash[FINDINGS] = {
    [UNCHANGED] = "has its size and time; its content was not recorded",
    [CHANGED] = "has changed: its size or time is not the recorded one",
};

/* An output of a job that is done or sealed. */
struct output {
    char *id, *path; /* owned; path as written */
    size_t line;
    uint32_t file; /* index of the normalized path */
    uint64_t ended_ns;
    bool done, known;
    struct bhi_outfile_mark mark;
};

struct verify {
    const char *cwd;
    struct bhi_paths paths;
    struct bhi_names files;
    struct output *outputs; /* owned */
    size_t count, capacity;
    uint64_t jobs, of[FINDINGS];
    uint64_t without_hash; /* of those that are unchanged */
    struct bhi_batch_changes changes;
    bool failed;
};

static bool note(struct verify *verify, const struct bhi_job_record *record, const char *path,
                 const char **marks) {
    if (!BHI_ARRAY_RESERVE(verify->outputs, verify->capacity, verify->count + 1)) {
        return false;
    }
    char *normal = bhi_paths_normalize(&verify->paths, path);
    if (!normal) {
        return false;
    }
    struct output *output = &verify->outputs[verify->count++];
    *output = (struct output){.id = strdup(record->id),
                              .path = strdup(path),
                              .line = record->line,
                              .file = bhi_names_find(&verify->files, normal),
                              .ended_ns = record->ended_ns,
                              .done = record->state == BHI_JOB_DONE};
    output->known = bhi_marks_next(marks, &output->mark);
    if (output->file == BHI_NO_NAME) {
        output->file = bhi_names_add(&verify->files, normal);
    }
    free(normal);
    return output->id && output->path && output->file != BHI_NO_NAME;
}

static bool take(void *user, const struct bhi_job_record *record) {
    struct verify *verify = user;
    struct bhi_job_spec spec;
    struct bhi_complaint ignored;
    const char *marks = record->outputs;
    if (record->state != BHI_JOB_DONE && !record->sealed) {
        return true;
    }
    verify->failed = !bhi_job_parse(record->text, strlen(record->text), &spec, &ignored);
    if (verify->failed) {
        return false;
    }
    verify->jobs += record->state == BHI_JOB_DONE;
    for (size_t i = 0; i < spec.write_count && !verify->failed; i++) {
        verify->failed = !note(verify, record, spec.writes[i], &marks);
    }
    bhi_job_spec_free(&spec);
    return !verify->failed;
}

static enum finding look_at(const struct verify *verify, const struct output *output) {
    struct bhi_complaint ignored;
    struct bhi_outfile file;
    char *whole = NULL;
    if (!output->known) {
        return UNKNOWN;
    }
    if (*output->path != '/' && asprintf(&whole, "%s/%s", verify->cwd, output->path) < 0) {
        return UNREADABLE;
    }
    const bool there = bhi_outfile_adopt(whole ? whole : output->path, "-", &file, &ignored);
    const bool same = there && (output->mark.hashed
                                    ? bhi_outfile_compare(&file, &output->mark) == BHI_OUTFILE_EQUAL
                                    : bhi_outfile_has(&file, true, &output->mark));
    enum finding found = same ? UNCHANGED : file.error ? UNREADABLE : CHANGED;
    if (file.error == ENOENT || file.error == ENOTDIR) {
        found = MISSING;
    }
    file.temporary[0] = 0; /* there is no temporary file to remove */
    bhi_outfile_abandon(&file);
    free(whole);
    return found;
}

/* Jobs with the same output run one after the other: the file belongs to the last one that ended. A
 * sealed job counts as last of all. */
static void find_last(const struct verify *verify, size_t *last) {
    for (size_t i = 0; i < verify->files.count; i++) {
        last[i] = SIZE_MAX;
    }
    for (size_t i = 0; i < verify->count; i++) {
        const struct output *output = &verify->outputs[i];
        const struct output *before =
            last[output->file] == SIZE_MAX ? NULL : &verify->outputs[last[output->file]];
        if (!before || (before->done && (!output->done || output->ended_ns >= before->ended_ns))) {
            last[output->file] = i;
        }
    }
}

static void tell(struct verify *verify, const struct output *output, enum finding found,
                 const struct bhi_batch_look *look, json_t *list) {
    char id[300], path[600];
    const bool without = output->known && !output->mark.hashed && texts_without_hash[found];
    verify->of[found]++;
    verify->without_hash += without && found == UNCHANGED;
    if (found <= REPLACED && !look->verbose) {
        return;
    }
    if (list) {
        json_array_append_new(list,
                              json_pack("{s:o, s:I, s:o, s:s}", "id", bhi_json_text(output->id),
                                        "line", (json_int_t)output->line, "output",
                                        bhi_json_text(output->path), "finding", names[found]));
    } else {
        printf("%s: %s %s\n", bhi_text_clean(id, sizeof id, output->id),
               bhi_text_clean(path, sizeof path, output->path),
               without ? texts_without_hash[found] : texts[found]);
    }
}

static void print_summary(const struct verify *verify, uint64_t outputs) {
    char number[BHI_QUANTITY], jobs[BHI_QUANTITY];
    printf("%s output%s of %s job%s that %s done", bhi_quantity_count(number, outputs),
           outputs == 1 ? "" : "s", bhi_quantity_count(jobs, verify->jobs),
           verify->jobs == 1 ? "" : "s", verify->jobs == 1 ? "is" : "are");
    const char *separator = ": ";
    for (int i = 0; i < FINDINGS; i++) {
        if (!verify->of[i] && (i != UNCHANGED || outputs == 0)) {
            continue;
        }
        printf("%s%s %s", separator, bhi_quantity_count(number, verify->of[i]), names[i]);
        separator = ", ";
    }
    fputc('\n', stdout);
    if (verify->without_hash) {
        printf(
            "%s of the unchanged by size and time only: an earlier version of bulkhead wrote %s, "
            "and did not record the content\n",
            bhi_quantity_count(number, verify->without_hash),
            verify->without_hash == 1 ? "it" : "them");
    }
}

/* A file that a job of the batch has made since. */
static bool is_output(struct verify *verify, const struct bhi_batch_change *change) {
    BHI_AUTO_FREE char *normal = bhi_paths_normalize(&verify->paths, change->path);
    return normal && bhi_names_find(&verify->files, normal) != BHI_NO_NAME;
}

/* Tells which files have changed. Returns how many, or adds them to |list|. */
static size_t tell_changes(struct verify *verify, json_t *list) {
    char text[BHI_BATCH_CHANGE_TEXT];
    size_t count = 0;
    for (size_t i = 0; i < verify->changes.count; i++) {
        const struct bhi_batch_change *change = &verify->changes.list[i];
        if (is_output(verify, change)) {
            continue;
        }
        count++;
        if (list) {
            json_array_append_new(list,
                                  json_pack("{s:o, s:I, s:o}", "file", bhi_json_text(change->path),
                                            "jobs", (json_int_t)change->jobs, "example",
                                            bhi_json_text(change->example)));
        } else {
            puts(bhi_batch_change_text(change, text));
        }
    }
    return count;
}

static bool print_object(const struct verify *verify, uint64_t outputs,
                         const struct bhi_batch_look *look, int exit_status, json_t *list,
                         json_t *changed) {
    json_t *object =
        json_pack("{s:o, s:o, s:I, s:I, s:i}", "jobs", bhi_json_text(look->jobs_path), "state",
                  bhi_json_text(look->state), "done", (json_int_t)verify->jobs, "outputs",
                  (json_int_t)outputs, "exit_status", exit_status);
    for (int i = 0; i < FINDINGS; i++) {
        json_object_set_new(object, names[i], bhi_json_number(verify->of[i]));
    }
    json_object_set_new(object, "unchanged_by_time", bhi_json_number(verify->without_hash));
    json_object_set(object, "findings", list);
    json_object_set(object, "changed_files", changed);
    const bool good = object && json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
    bhi_ending_answered();
    fputc('\n', stdout);
    json_decref(object);
    return good;
}

static int judge(struct verify *verify, const size_t *last, const struct bhi_batch_look *look) {
    json_t *list = look->json ? json_array() : NULL;
    uint64_t outputs = 0;
    for (size_t i = 0; i < verify->count; i++) {
        const struct output *output = &verify->outputs[i];
        if (!output->done) {
            continue;
        }
        const enum finding found = last[output->file] == i ? look_at(verify, output) : REPLACED;
        if (bhi_interrupt_signal()) { /* files may be large; the command says why it ends */
            json_decref(list);
            return bhi_interrupt_exit_status();
        }
        outputs++;
        tell(verify, output, found, look, list);
    }
    json_t *changed = look->json ? json_array() : NULL;
    const bool fine = tell_changes(verify, changed) == 0 &&
                      outputs == verify->of[UNCHANGED] + verify->of[REPLACED];
    int exit_status = fine ? BHI_EXIT_READY : BHI_EXIT_POISONED;
    if (!look->json) {
        print_summary(verify, outputs);
    } else if (!print_object(verify, outputs, look, exit_status, list, changed)) {
        exit_status = BHI_EXIT_ENVIRON;
    }
    json_decref(list);
    json_decref(changed);
    return exit_status;
}

int bhi_batch_verify(struct bhi_queue *queue, const struct bhi_batch_look *look) {
    struct verify verify = {.cwd = bhi_queue_cwd(queue)};
    int exit_status = BHI_EXIT_ENVIRON;
    bhi_names_init(&verify.files);
    verify.failed = !bhi_paths_init(&verify.paths, verify.cwd);
    const bool read = !verify.failed && bhi_queue_each_job(queue, take, &verify) && !verify.failed;
    size_t *last = read ? calloc(verify.files.count + 1, sizeof *last) : NULL;
    if (last) {
        find_last(&verify, last);
        exit_status = bhi_batch_changes_find(queue, NULL, &verify.changes);
        exit_status = exit_status == BHI_EXIT_READY ? judge(&verify, last, look) : exit_status;
    } else if (read) {
        bhi_complain_memory("batch");
    } else {
        bhi_complain("batch", "the state folder cannot be read");
    }
    free(last);
    for (size_t i = 0; i < verify.count; i++) {
        free(verify.outputs[i].id);
        free(verify.outputs[i].path);
    }
    free(verify.outputs);
    bhi_batch_changes_free(&verify.changes);
    bhi_paths_fini(&verify.paths);
    bhi_names_fini(&verify.files);
    return exit_status;
}
