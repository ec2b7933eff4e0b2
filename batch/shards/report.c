#include "batch/shards/report.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "batch/report/tally.h"
#include "batch/runner/cancel.h"
#include "tool/quantity.h"
#include "tool/report/timeline.h"

struct notes {
    char **list; /* owned, each too */
    size_t count, capacity;
    uint64_t twice; /* jobs in several shards */
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void note(struct notes *notes, const char *format,
                                                       ...) {
    va_list arguments;
    char *text;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0 || !BHI_ARRAY_RESERVE(notes->list, notes->capacity, notes->count + 1)) {
        if (length >= 0) {
            free(text);
        }
        notes->failed = true;
        return;
    }
    notes->list[notes->count++] = text;
}

/* -- what is odd ----------------------------------------------------------------------------- */

static bool note_twice(void *user, const char *id, const char *where) {
    struct notes *notes = user;
    if (notes->twice++ < BHI_SHARDS_TWICE) {
        note(notes, "job %.255s is in several shards: %.400s; each may have run it", id, where);
    }
    return !notes->failed;
}

static void note_shard(struct notes *notes, const struct bhi_shard *shard, const char *clock) {
    const uint64_t unread = shard->reader.size - shard->reader.offset;
    if (shard->skew_ns) {
        note(notes,
             "the clock of %s differs from the file system's: it is %s, by what shard %s has "
             "written; times in this report are those of the machines",
             *shard->host ? shard->host : "an unknown machine", clock, shard->name);
    }
    if (shard->damaged) {
        note(notes,
             "shard %s: %llu line%s of its feed %s damaged, the first is line %llu: what they say "
             "is missing here; its database has it",
             shard->name, (unsigned long long)shard->damaged, shard->damaged == 1 ? "" : "s",
             shard->damaged == 1 ? "is" : "are", (unsigned long long)shard->first_damaged);
    }
    if (shard->reader.size > shard->reader.offset && unread > BHI_FEED_LINE) {
        note(notes, "shard %s: the last %llu bytes of its feed have not arrived yet", shard->name,
             (unsigned long long)unread);
    }
    if (shard->bare) {
        note(notes,
             "shard %s has a state, but no feed: it is beginning, or an earlier version made it",
             shard->name);
    }
    if (shard->later) {
        note(notes, "a later version runs shard %s: some of what it says may be missing here",
             shard->name);
    }
}

/* Kernels in the quarantine that the shards share: the files whose names are hashes. */
static uint64_t count_quarantined(const struct bhi_shards *shards) {
    const int fd =
        openat(shards->folder, "quarantine", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t count = 0;
    if (!folder) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        count += strlen(entry->d_name) == 64 && strspn(entry->d_name, "0123456789abcdef") == 64;
    }
    closedir(folder);
    return count;
}

static bool collect_notes(struct bhi_shards *shards, const struct bhi_report_shard *records,
                          struct notes *notes) {
    const uint64_t quarantined = shards->single ? 0 : count_quarantined(shards);
    char clock[BHI_TALLY_CLOCK], who[BHI_SHARDS_WHO];
    if (shards->cancelled && bhi_shards_cancelled_by(shards->folder, who)) {
        note(notes, "it was cancelled %s: %.600s/" BHI_CANCEL_FILE " exists", who, shards->path);
    }
    if (quarantined) {
        note(notes, "%llu kernel%s in the quarantine that the shards share",
             (unsigned long long)quarantined, quarantined == 1 ? " is" : "s are");
    }
    for (size_t i = 0; i < shards->count; i++) {
        note_shard(notes, &shards->shards[i], bhi_tally_clock(&records[i], clock));
    }
    const bool good = bhi_store_each_twice(shards->store, note_twice, notes);
    if (notes->twice > BHI_SHARDS_TWICE) {
        note(notes, "and %llu more jobs are in several shards",
             (unsigned long long)(notes->twice - BHI_SHARDS_TWICE));
    }
    return good && !notes->failed;
}

/* -- the source ------------------------------------------------------------------------------ */

static bool each_job(void *self, bool (*visit)(void *user, const struct bhi_job_record *record),
                     void *user) {
    struct bhi_shards *shards = self;
    return bhi_store_each_job(shards->store, visit, user);
}

static bool each_attempt(void *self,
                         bool (*visit)(void *user, const struct bhi_attempt_record *record),
                         void *user) {
    struct bhi_shards *shards = self;
    return bhi_store_each_attempt(shards->store, visit, user);
}

static void counts(void *self, struct bhi_queue_counts *out_counts) {
    bhi_shards_counts(self, out_counts);
}

static bool names_device(void *self, bool *out_names) {
    struct bhi_shards *shards = self;
    return bhi_store_names_device(shards->store, out_names);
}

static struct bhi_report_shard *describe(const struct bhi_shards *shards) {
    struct bhi_report_shard *list = calloc(shards->count + 1, sizeof *list);
    for (size_t i = 0; list && i < shards->count; i++) {
        const struct bhi_shard *shard = &shards->shards[i];
        list[i] = (struct bhi_report_shard){.name = shard->name,
                                            .state = bhi_shard_state_name(shard->state),
                                            .host = shard->host,
                                            .total = shard->total,
                                            .last_ns = shard->last_ns,
                                            .skew_ns = shard->skew_ns};
        memcpy(list[i].of, shard->of, sizeof list[i].of);
    }
    return list;
}

static bool report(struct bhi_shards *shards, const struct bhi_shards_report *what,
                   const struct bhi_report_source *source, struct bhi_complaint *complaint) {
    struct bhi_store_span span;
    if (!bhi_store_make_rows(shards->store, BHI_TIMELINE_ROWS - 1) ||
        !bhi_store_span(shards->store, &span)) {
        return bhi_refuse(complaint, "the records cannot be read again");
    }
    const struct bhi_report_run run = {
        .jobs_path = what->jobs_path ? what->jobs_path : shards->path,
        .state_folder = shards->path,
        .elapsed_ns = span.first_ns ? span.last_ns - span.first_ns : 0,
        .ran = span.attempts,
        .exit_status = what->exit_status,
        .bad = what->bad,
        .bad_count = what->bad_count,
        .source = source};
    if (what->html && !bhi_report_html(what->html, NULL, &run, complaint)) {
        return false;
    }
    return (what->json ? bhi_report_json(NULL, &run) : bhi_report_table(stdout, NULL, &run)) ||
           bhi_refuse(complaint, "the records cannot be read again");
}

bool bhi_shards_report(struct bhi_shards *shards, const struct bhi_shards_report *what,
                       struct bhi_complaint *complaint) {
    struct notes notes = {.list = NULL};
    struct bhi_report_shard *list = describe(shards);
    bool good = list && collect_notes(shards, list, &notes);
    const struct bhi_report_source source = {.self = shards,
                                             .each_job = each_job,
                                             .each_attempt = each_attempt,
                                             .counts = counts,
                                             .names_device = names_device,
                                             .batch_id =
                                                 shards->count ? shards->shards[0].batch : "",
                                             .shards = list,
                                             .shard_count = shards->count,
                                             .notes = (const char *const *)notes.list,
                                             .note_count = notes.count};
    good = good ? report(shards, what, &source, complaint)
                : bhi_refuse(complaint, "the records cannot be read again, or memory ran out");
    for (size_t i = 0; i < notes.count; i++) {
        free(notes.list[i]);
    }
    free(notes.list);
    free(list);
    return good;
}
