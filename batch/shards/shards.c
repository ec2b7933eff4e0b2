#include "batch/shards/shards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "batch/journal/schema.h"
#include "batch/runner/cancel.h"
#include "tool/interrupt.h"

enum { CHUNKS = 64 }; /* that a poll reads of one shard */

#define SHARDS "shards"
static const uint64_t second_ns = 1000000000u;
/* Between two reads of a shard that is nearly through. */
#define LEAST_PAUSE UINT64_C(20000000)

const char *bhi_shard_state_name(enum bhi_shard_state state) {
    static const char *const names[] = {"not begun", "running", "ended"};
    return names[state];
}

/* -- finding them ---------------------------------------------------------------------------- */

static bool is_name(const char *name) {
    const size_t length = strlen(name);
    return length > 0 && length < BHI_SHARD_NAME && strspn(name, "0123456789") == length;
}

static int compare_names(const void *a, const void *b) {
    const struct bhi_shard *one = a, *other = b;
    return strcmp(one->name, other->name);
}

/* Counts the jobs of a file as the batch will: lines that are neither blank nor comments. */
static uint64_t count_jobs(FILE *file) {
    uint64_t count = 0;
    bool fresh = true;
    for (int c; !bhi_interrupt_signal() && (c = getc_unlocked(file)) != EOF;) {
        if (c == '\n') {
            fresh = true;
        } else if (fresh && !strchr(" \t\r", c)) {
            fresh = false;
            count += c != '#';
        }
    }
    return count;
}

/* Reads of the jobs' file how many there are, and when the submitter wrote it. */
static void read_jobs(const struct bhi_shards *shards, struct bhi_shard *shard) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, SHARDS "/%s/jobs.jsonl", shard->name);
    const int fd = openat(shards->folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool regular = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = regular ? fdopen(fd, "r") : NULL;
    if (file) {
        if (status.st_mtim.tv_sec > 0) {
            shard->jobs_mtime_ns =
                (uint64_t)status.st_mtim.tv_sec * second_ns + (uint64_t)status.st_mtim.tv_nsec;
        }
        shard->total = shard->of[BHI_JOB_SUBMITTED] = count_jobs(file);
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
}

static bool add_shard(struct bhi_shards *shards, size_t *capacity, const char *name,
                      struct bhi_complaint *complaint) {
    if (shards->count == BHI_SHARDS_MOST) {
        return bhi_refuse(complaint, "%.600s has more than %d shards", shards->path,
                          BHI_SHARDS_MOST);
    }
    if (!BHI_ARRAY_RESERVE(shards->shards, *capacity, shards->count + 1)) {
        return bhi_refuse(complaint, "out of memory");
    }
    struct bhi_shard *shard = &shards->shards[shards->count++];
    *shard = (struct bhi_shard){.state = BHI_SHARD_WAITS};
    snprintf(shard->name, sizeof shard->name, "%s", name);
    return true;
}

static bool find_shards(struct bhi_shards *shards, struct bhi_complaint *complaint) {
    size_t capacity = 0;
    struct stat status;
    const int fd = openat(shards->folder, SHARDS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        shards->single = true;
        if (fstatat(shards->folder, BHI_JOURNAL_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0 &&
            fstatat(shards->folder, BHI_FEED_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return bhi_refuse(complaint,
                              "%.600s is no state folder of a batch: it has neither "
                              "shards nor a database",
                              shards->path);
        }
        return add_shard(shards, &capacity, "0000", complaint);
    }
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return bhi_refuse(complaint, "out of memory");
    }
    bool good = true;
    for (const struct dirent *entry; good && (entry = readdir(folder));) {
        good = !is_name(entry->d_name) || add_shard(shards, &capacity, entry->d_name, complaint);
    }
    closedir(folder);
    if (good && shards->count > 1) {
        qsort(shards->shards, shards->count, sizeof *shards->shards, compare_names);
    }
    for (size_t i = 0; good && i < shards->count; i++) {
        read_jobs(shards, &shards->shards[i]);
    }
    return good;
}

bool bhi_shards_open(const char *path, struct bhi_shards *out_shards,
                     struct bhi_complaint *complaint) {
    *out_shards = (struct bhi_shards){.folder = -1, .path = strdup(path)};
    bool good = out_shards->path || bhi_refuse(complaint, "out of memory");
    if (good) {
        out_shards->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        good =
            out_shards->folder >= 0 || bhi_refuse(complaint, "%.600s: %s", path, strerror(errno));
    }
    good = good && find_shards(out_shards, complaint);
    if (good) {
        out_shards->store = bhi_store_open(complaint);
        good = out_shards->store;
    }
    for (size_t i = 0; good && i < out_shards->count; i++) {
        good = bhi_store_name(out_shards->store, (uint32_t)i, out_shards->shards[i].name) ||
               bhi_refuse(complaint, "the records cannot be kept: is the disk full?");
    }
    if (!good) {
        bhi_shards_close(out_shards);
    }
    return good;
}

void bhi_shards_close(struct bhi_shards *shards) {
    bhi_store_close(shards->store);
    if (shards->folder >= 0) {
        close(shards->folder);
    }
    free(shards->shards);
    free(shards->path);
    *shards = (struct bhi_shards){.folder = -1};
}

/* -- reading them ---------------------------------------------------------------------------- */

struct intake {
    struct bhi_shards *shards;
    struct bhi_shard *shard;
    uint32_t number;
};

static void note_damage(struct bhi_shard *shard, uint64_t line) {
    if (!shard->damaged++) {
        shard->first_damaged = line;
    }
}

static bool forget(void *user) {
    const struct intake *intake = user;
    struct bhi_shard *shard = intake->shard;
    shard->state = BHI_SHARD_WAITS;
    shard->damaged = shard->first_damaged = shard->last_ns = 0;
    shard->jobs = shard->ends = shard->first_ns = 0;
    shard->later = false;
    return bhi_store_forget(intake->shards->store, intake->number);
}

static void take_head(struct bhi_shard *shard, const struct bhi_feed_line *line) {
    shard->state = BHI_SHARD_RUNNING;
    shard->pid = (uint64_t)line->pid;
    shard->began_ns = (uint64_t)line->began_ns;
    shard->later = line->feed > BHI_FEED_FORMAT;
    snprintf(shard->host, sizeof shard->host, "%s", line->host);
    snprintf(shard->batch, sizeof shard->batch, "%s", line->batch);
}

static bool take_line(void *user, const char *text, size_t length, uint64_t number) {
    const struct intake *intake = user;
    struct bhi_shard *shard = intake->shard;
    struct bhi_feed_line line;
    bool fits = true, good = true;
    if (!text || !bhi_feed_line_parse(text, length, &line) ||
        (line.kind != BHI_FEED_HEAD && shard->state == BHI_SHARD_WAITS)) {
        if (text) {
            bhi_feed_line_free(&line);
        }
        note_damage(shard, number);
        return true;
    }
    if (bhi_feed_line_time(&line) > shard->last_ns) {
        shard->last_ns = bhi_feed_line_time(&line);
    }
    if (line.kind == BHI_FEED_HEAD) {
        take_head(shard, &line);
    } else if (line.kind == BHI_FEED_END) {
        shard->state = BHI_SHARD_ENDED;
    } else if (line.kind == BHI_FEED_JOB) {
        shard->jobs += !!line.id;
        shard->ends += line.state >= BHI_JOB_DONE;
        good = bhi_store_take(intake->shards->store, intake->number, &line, text, &fits);
    }
    if (!fits) {
        note_damage(shard, number);
    }
    bhi_feed_line_free(&line);
    return good;
}

static uint64_t total_of(const struct bhi_shard *shard) {
    uint64_t total = 0;
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        total += shard->of[i];
    }
    return total;
}

/* What a clock shows by what it has written: a line cannot be older than the file's last change by
 * the file system's clock, and a process does not begin before its jobs were written. */
static void compare_clocks(struct bhi_shard *shard) {
    const uint64_t mtime_ns = shard->reader.mtime_ns, least_ns = BHI_SHARD_SKEW_S * second_ns;
    shard->skew_ns = 0;
    if (mtime_ns && shard->last_ns > mtime_ns + least_ns) {
        shard->skew_ns = (int64_t)(shard->last_ns - mtime_ns);
    } else if (shard->jobs_mtime_ns > shard->began_ns + least_ns) {
        shard->skew_ns = -(int64_t)(shard->jobs_mtime_ns - shard->began_ns);
    }
}

/* Returns false if the records cannot be kept. */
static bool read_shard(struct bhi_shards *shards, size_t number, bool *out_more) {
    struct bhi_shard *shard = &shards->shards[number];
    struct intake intake = {shards, shard, (uint32_t)number};
    const struct bhi_reader_sink sink = {forget, take_line, &intake};
    enum bhi_reader_result result = BHI_READER_MORE;
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, SHARDS "/%s/state", shard->name);
    const int folder = openat(shards->folder, shards->single ? "." : path,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        return true;
    }
    int chunks = 0;
    while (chunks < CHUNKS && result == BHI_READER_MORE && !bhi_interrupt_signal()) {
        result = bhi_reader_read(&shard->reader, folder, BHI_FEED_FILE, &sink);
        chunks++;
    }
    shard->bare = shard->state == BHI_SHARD_WAITS &&
                  fstatat(folder, BHI_JOURNAL_FILE, &status, AT_SYMLINK_NOFOLLOW) == 0;
    close(folder);
    shard->uncounted |= chunks > 1;
    *out_more |= result == BHI_READER_MORE;
    if (shard->state != BHI_SHARD_WAITS) {
        compare_clocks(shard);
    }
    return result != BHI_READER_FAILED;
}

static bool poll_shard(struct bhi_shards *shards, size_t number, bool *out_more) {
    struct bhi_shard *shard = &shards->shards[number];
    bool good = read_shard(shards, number, out_more);
    if (good && shard->uncounted && shard->state != BHI_SHARD_WAITS) {
        good = bhi_store_count(shards->store, (uint32_t)number, shard->of);
        shard->total = total_of(shard);
        shard->uncounted = !good;
    }
    return good;
}

bool bhi_shards_poll(struct bhi_shards *shards, bool *out_more, struct bhi_complaint *complaint) {
    struct stat status;
    bool good = bhi_store_begin(shards->store);
    *out_more = false;
    for (size_t i = 0; good && i < shards->count && !bhi_interrupt_signal(); i++) {
        good = poll_shard(shards, i, out_more);
    }
    shards->cancelled = fstatat(shards->folder, BHI_CANCEL_FILE, &status, AT_SYMLINK_NOFOLLOW) == 0;
    good = bhi_store_end(shards->store) && good;
    return good || bhi_refuse(complaint, "the records cannot be kept in a temporary file: is the "
                                         "disk full?");
}

/* How long the jobs that have not ended may still take. */
static uint64_t time_left(const struct bhi_shard *shard) {
    const uint64_t ended = shard->ends - shard->first_ends;
    if (shard->state == BHI_SHARD_ENDED || shard->ends >= shard->jobs) {
        return 0;
    }
    const double took = (double)(shard->news_ns - shard->first_ns);
    const double left = ended ? took / (double)ended * (double)(shard->jobs - shard->ends) : 1e18;
    return left < 1e18 ? (uint64_t)left : UINT64_MAX;
}

uint64_t bhi_shards_follow(struct bhi_shards *shards, size_t number, uint64_t now_ns,
                           uint64_t most_ns) {
    struct bhi_shard *shard = &shards->shards[number];
    bool more = false;
    const uint64_t offset = shard->reader.offset;
    bool good = bhi_store_begin(shards->store);
    good = good && read_shard(shards, number, &more);
    /* The report will say what is wrong. */
    if (!bhi_store_end(shards->store) || !good || shard->state == BHI_SHARD_WAITS) {
        return most_ns;
    }
    if (!shard->first_ns) {
        shard->first_ns = now_ns;
        shard->first_ends = shard->ends;
    }
    if (!shard->news_ns || shard->reader.offset != offset) {
        shard->news_ns = now_ns;
    }
    const uint64_t left_ns = time_left(shard) / 4, silence_ns = (now_ns - shard->news_ns) / 8;
    const uint64_t pause_ns = left_ns > silence_ns ? left_ns : silence_ns;
    return pause_ns >= most_ns ? most_ns : pause_ns < LEAST_PAUSE ? LEAST_PAUSE : pause_ns;
}

bool bhi_shards_read(struct bhi_shards *shards, struct bhi_complaint *complaint) {
    bool more = true;
    while (more && !bhi_interrupt_signal()) {
        if (!bhi_shards_poll(shards, &more, complaint)) {
            return false;
        }
    }
    return !bhi_interrupt_signal() || bhi_refuse(complaint, "cancelled");
}

void bhi_shards_counts(const struct bhi_shards *shards, struct bhi_queue_counts *out_counts) {
    *out_counts = (struct bhi_queue_counts){.total = 0};
    for (size_t i = 0; i < shards->count; i++) {
        for (int state = 0; state < BHI_JOB_STATES; state++) {
            out_counts->of[state] += shards->shards[i].of[state];
        }
        out_counts->total += shards->shards[i].total;
    }
}

bool bhi_shards_ended(const struct bhi_shards *shards) {
    for (size_t i = 0; i < shards->count; i++) {
        if (shards->shards[i].state != BHI_SHARD_ENDED) {
            return false;
        }
    }
    return true;
}
