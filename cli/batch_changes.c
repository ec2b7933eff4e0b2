#include "cli/batch_changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "batch/runner/reads.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"
#include "tool/text.h"

struct finding {
    struct bhi_queue *queue;
    const struct bhi_names *made;
    struct bhi_batch_changes *changes;
    bool damaged, no_memory;
};

/* Below the batch's folder a path begins there. */
static const char *shorten(const struct bhi_queue *queue, const char *path) {
    const char *folder = bhi_queue_cwd(queue);
    const size_t length = strlen(folder);
    return !strncmp(path, folder, length) && path[length] == '/' ? path + length + 1 : path;
}

static bool take_file(void *user, uint64_t number, const char *path, const char *mark) {
    struct finding *finding = user;
    struct bhi_batch_changes *changes = finding->changes;
    struct bhi_used_mark before;
    int error = 0;
    if (!bhi_used_mark_read(mark, &before)) {
        finding->damaged = true;
        return false;
    }
    if ((finding->made && bhi_names_find(finding->made, path) != BHI_NO_NAME) ||
        bhi_reads_is_same(path, &before, &error) || error == ENOENT || error == ENOTDIR) {
        return !bhi_interrupt_signal();
    }
    char *copy = strdup(shorten(finding->queue, path));
    if (!copy || !BHI_ARRAY_RESERVE(changes->list, changes->capacity, changes->count + 1)) {
        free(copy);
        finding->no_memory = true;
        return false;
    }
    changes->list[changes->count++] =
        (struct bhi_batch_change){.file = number, .path = copy, .error = error};
    return !bhi_interrupt_signal();
}

static bool take_user(void *user, const char *id) {
    struct finding *finding = user;
    struct bhi_batch_changes *changes = finding->changes;
    struct bhi_batch_change *change = &changes->list[changes->count - 1];
    if (bhi_queue_runs_anew(finding->queue, id)) {
        return true;
    }
    char *copy = strdup(id);
    if (!change->example) {
        change->example = strdup(id);
    }
    if (!copy || !change->example ||
        !BHI_ARRAY_RESERVE(changes->ids, changes->id_capacity, changes->id_count + 1)) {
        free(copy);
        finding->no_memory = true;
        return false;
    }
    changes->ids[changes->id_count++] = copy;
    change->jobs++;
    return true;
}

/* Finds the jobs of each change. One without jobs is dropped, and those of one file become one: they
 * come one after the other. */
static bool find_users(struct finding *finding) {
    struct bhi_batch_changes *changes = finding->changes;
    const size_t count = changes->count;
    bool good = true;
    changes->count = 0;
    for (size_t at = 0; at < count; at++) {
        struct bhi_batch_change *last = changes->count ? &changes->list[changes->count - 1] : NULL;
        const struct bhi_batch_change next = changes->list[at];
        if (last && (!last->jobs || !strcmp(last->path, next.path))) {
            if (last->jobs) {
                free(next.path);
            } else {
                free(last->path);
                *last = next;
            }
        } else {
            changes->list[changes->count++] = next;
        }
        good = good && bhi_queue_each_user(finding->queue, next.file, take_user, finding);
    }
    if (changes->count && !changes->list[changes->count - 1].jobs) {
        free(changes->list[--changes->count].path);
    }
    return good;
}

int bhi_batch_changes_find(struct bhi_queue *queue, const struct bhi_names *made,
                           struct bhi_batch_changes *out_changes) {
    struct finding finding = {.queue = queue, .made = made, .changes = out_changes};
    *out_changes = (struct bhi_batch_changes){0};
    const bool read = bhi_queue_each_file(queue, take_file, &finding) && !finding.damaged &&
                      !bhi_interrupt_signal() && find_users(&finding);
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    if (read && !finding.no_memory) {
        return BHI_EXIT_READY;
    }
    return finding.no_memory ? bhi_complain_memory("batch")
                             : bhi_complain_environ("batch", "the state folder cannot be read");
}

const char *bhi_batch_change_text(const struct bhi_batch_change *change,
                                  char out[BHI_BATCH_CHANGE_TEXT]) {
    char number[BHI_QUANTITY], path[600], example[300];
    const bool many = change->jobs > 1;
    bhi_text_clean(path, sizeof path, change->path);
    bhi_text_clean(example, sizeof example, change->example);
    if (change->error) {
        snprintf(out, BHI_BATCH_CHANGE_TEXT,
                 "%s cannot be compared with what the job \"%s\" read: %s", path, example,
                 strerror(change->error));
    } else if (many) {
        snprintf(out, BHI_BATCH_CHANGE_TEXT,
                 "%s has changed since %s jobs read it (for example \"%s\")", path,
                 bhi_quantity_count(number, change->jobs), example);
    } else {
        snprintf(out, BHI_BATCH_CHANGE_TEXT, "%s has changed since the job \"%s\" read it", path,
                 example);
    }
    return out;
}

int bhi_batch_changes_judge(const struct bhi_batch_changes *changes, bool redoes, bool keeps) {
    enum { MOST = 20 };
    char text[BHI_BATCH_CHANGE_TEXT];
    bool unsure = false;
    if (!changes->count) {
        return BHI_EXIT_READY;
    }
    for (size_t i = 0; i < changes->count; i++) {
        unsure |= changes->list[i].error != 0;
        if (i < MOST) {
            fprintf(stderr, "%s\n", bhi_batch_change_text(&changes->list[i], text));
        }
    }
    if (changes->count > MOST) {
        fprintf(stderr, "and %zu more files\n", changes->count - MOST);
    }
    bhi_complain("batch", "%zu file%s changed%s since jobs read %s: %s", changes->count,
                 changes->count == 1 ? " has" : "s have", unsure ? ", or cannot be compared," : "",
                 changes->count == 1 ? "it" : "them",
                 redoes  ? "the jobs run again (--redo-changed)"
                 : keeps ? "the results are kept (--keep-changed)"
                         : "--redo-changed runs these jobs again, --keep-changed keeps their "
                           "results");
    return redoes || keeps ? BHI_EXIT_READY : BHI_EXIT_USAGE;
}

void bhi_batch_changes_free(struct bhi_batch_changes *changes) {
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->list[i].path);
        free(changes->list[i].example);
    }
    free(changes->list);
    for (size_t i = 0; i < changes->id_count; i++) {
        free(changes->ids[i]);
    }
    free(changes->ids);
    *changes = (struct bhi_batch_changes){0};
}
