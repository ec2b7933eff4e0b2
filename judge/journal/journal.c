#include "judge/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "judge/journal/record.h"
#include "tool/content_hash.h"
#include "tool/json.h"
#include "tool/place.h"
#include "tool/values.h"

#define FILE_NAME "judge.jsonl"

enum { VERSION = 2, HASH_TEXT = 2 * BHI_CONTENT_HASH };

/* -- what is there ------------------------------------------------------------------------------
 */

/* All of the file, with a NUL after it; the caller frees it. */
static char *read_all(int fd, size_t *out_size) {
    struct stat status;
    size_t size = 0;
    if (fstat(fd, &status) != 0) {
        return NULL;
    }
    const size_t capacity = (size_t)status.st_size;
    char *text = malloc(capacity + 1);
    for (ssize_t n = 1; text && n > 0 && size < capacity; size += (size_t)n) {
        n = pread(fd, text + size, capacity - size, (off_t)size);
        if (n < 0) {
            free(text);
            return NULL;
        }
    }
    if (text) {
        text[size] = '\0';
    }
    *out_size = size;
    return text;
}

static bool damaged(const struct bhi_judge_journal *journal, size_t line,
                    struct bhi_complaint *complaint) {
    return bhi_refuse(complaint,
                      "%.600s/" FILE_NAME ":%zu: it is damaged: put a copy of it in its place, or "
                      "give another folder (--state)",
                      journal->path, line);
}

static bool take_line(struct bhi_judge_journal *journal, const char *line, size_t length,
                      size_t number, struct bhi_complaint *complaint) {
    json_error_t error;
    uint8_t content[BHI_CONTENT_HASH];
    const char *path;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (!journal->header) {
        const json_t *version = json_object_get(object, "bulkhead_judge");
        if (!json_is_integer(version)) {
            json_decref(object);
            return damaged(journal, number, complaint);
        }
        journal->header = object;
        return json_integer_value(version) == VERSION ||
               bhi_refuse(complaint,
                          "%.600s/" FILE_NAME " was made by another version of bulkhead: continue "
                          "with that version, or give another folder (--state)",
                          journal->path);
    }
    if (!bhi_judge_record_file(object, &path, content)) {
        json_decref(object);
        return damaged(journal, number, complaint);
    }
    return json_array_append_new(journal->records, object) == 0 ||
           bhi_refuse(complaint, "out of memory");
}

/* Each line ends with '\n', so one without was being written when the process was killed. */
static bool take_lines(struct bhi_judge_journal *journal, const char *text, size_t size,
                       struct bhi_complaint *complaint) {
    const char *at = text, *end;
    for (size_t number = 1; (end = memchr(at, '\n', size - (size_t)(at - text))); number++) {
        if (!take_line(journal, at, (size_t)(end - at), number, complaint)) {
            return false;
        }
        at = end + 1;
    }
    journal->length = (uint64_t)(at - text);
    return true;
}

/* What is read is believed: it must belong to us. */
static bool check_file(const struct bhi_judge_journal *journal, struct bhi_complaint *complaint) {
    struct stat status;
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/" FILE_NAME, journal->path);
    if (fstat(journal->fd, &status) != 0) {
        return bhi_refuse(complaint, "%.600s: %s", file, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return bhi_refuse(complaint, "%.600s is not a regular file: move it away", file);
    }
    return bhi_place_is_ours(&status, file, complaint);
}

static bool open_all(struct bhi_judge_journal *journal, struct bhi_complaint *complaint) {
    size_t size;
    if (!bhi_state_folder_open(journal->path, &journal->folder, complaint) ||
        !bhi_lock_take(&journal->lock, journal->folder.fd, journal->path, journal->path,
                       complaint)) {
        return false;
    }
    journal->fd = openat(journal->folder.fd, FILE_NAME,
                         O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (journal->fd < 0 && errno != ENOENT) {
        return bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be opened: %s", journal->path,
                          strerror(errno));
    }
    if (journal->fd < 0) {
        return true;
    }
    if (!check_file(journal, complaint)) {
        return false;
    }
    char *text = read_all(journal->fd, &size);
    if (!text) {
        return bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be read: %s", journal->path,
                          strerror(errno));
    }
    const bool good = take_lines(journal, text, size, complaint);
    free(text);
    return good;
}

/* A candidate has a record more for its times, or because its file has changed. */
static size_t count_candidates(const struct bhi_judge_journal *journal) {
    uint8_t content[BHI_CONTENT_HASH];
    json_t *const files = json_object(), *record;
    size_t i;
    json_array_foreach(journal->records, i, record) {
        const char *path;
        if (bhi_judge_record_file(record, &path, content)) {
            (void)json_object_set_new(files, path, json_null());
        }
    }
    const size_t count = json_object_size(files);
    json_decref(files);
    return count;
}

enum bhi_judge_journal_result bhi_judge_journal_open(struct bhi_judge_journal *journal,
                                                     const char *path, bool resume,
                                                     struct bhi_complaint *complaint) {
    *journal = (struct bhi_judge_journal){
        .path = path, .folder.fd = -1, .lock.fd = -1, .fd = -1, .records = json_array()};
    if (!journal->records) {
        bhi_refuse(complaint, "out of memory");
        return BHI_JOURNAL_ENVIRON;
    }
    if (!open_all(journal, complaint)) {
        return journal->folder.is_none ? BHI_JOURNAL_BAD_INPUT : BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header && bhi_lock_is_used(&journal->lock)) {
        bhi_refuse(complaint,
                   "%.600s has lost its " FILE_NAME ", or is the state of another command: put a "
                   "copy in its place, or give another folder (--state)",
                   path);
        return BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header && !bhi_lock_check(&journal->lock, complaint)) {
        return BHI_JOURNAL_ENVIRON;
    }
    if (journal->header && !resume) {
        const size_t count = count_candidates(journal);
        bhi_refuse(complaint,
                   "%.600s has a judging of %zu candidate%s: continue it (--resume), or give "
                   "another folder (--state)",
                   path, count, count == 1 ? "" : "s");
        return BHI_JOURNAL_BAD_INPUT;
    }
    if (!journal->header && resume) {
        bhi_refuse(complaint, "%.600s has no judging: there is nothing to resume", path);
        return BHI_JOURNAL_BAD_INPUT;
    }
    return BHI_JOURNAL_OK;
}

bool bhi_judge_journal_seeds(const struct bhi_judge_journal *journal, uint64_t **out_seeds,
                             size_t *out_count, struct bhi_complaint *complaint) {
    const json_t *seeds = json_object_get(journal->header, "hidden_seeds");
    struct bhi_complaint inner;
    json_t *seed;
    size_t i;
    *out_count = json_array_size(seeds);
    *out_seeds = calloc(*out_count + 1, sizeof **out_seeds);
    if (!*out_seeds) {
        return bhi_refuse(complaint, "out of memory");
    }
    bool good = json_is_array(seeds);
    json_array_foreach(seeds, i, seed) {
        good = good && json_is_string(seed) &&
               bhi_parse_count(json_string_value(seed), 0, UINT64_MAX, &(*out_seeds)[i], &inner);
    }
    return good || damaged(journal, 1, complaint);
}

/* -- which judging it is ------------------------------------------------------------------------
 */

/* Hashes the task and, as files and the reference may have changed, all inputs and what is
 * expected. Returns false if memory ran out. */
static bool identify(const struct bhi_court *court, char out[HASH_TEXT + 1]) {
    uint8_t identity[BHI_CONTENT_HASH];
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    char *text = json_dumps(court->task->json, JSON_SORT_KEYS | JSON_COMPACT);
    if (!hash || !text) {
        bhi_content_hash_end(hash, NULL);
        free(text);
        return false;
    }
    bhi_content_hash_add(hash, text, strlen(text) + 1);
    free(text);
    for (size_t i = 0; i < court->trials.count; i++) {
        const struct bhi_trial *trial = &court->trials.list[i];
        bhi_content_hash_add(hash, &trial->seed, sizeof trial->seed);
        for (size_t k = 0; k < court->task->array_count; k++) {
            const struct bhi_trial_array *array = &trial->arrays[k];
            if (array->before) {
                bhi_content_hash_add(hash, array->before, array->form.bytes);
            }
            if (array->expected) {
                bhi_content_hash_add(hash, array->expected, array->form.bytes);
            }
        }
    }
    bhi_content_hash_end(hash, identity);
    sodium_bin2hex(out, HASH_TEXT + 1, identity, sizeof identity);
    return true;
}

/* Appends a line, durably. Frees |object|, which may be NULL. */
static bool append(struct bhi_judge_journal *journal, json_t *object,
                   struct bhi_complaint *complaint) {
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    size_t length = text ? strlen(text) : 0, written = 0;
    if (!text) {
        return bhi_refuse(complaint, "out of memory");
    }
    text[length++] = '\n'; /* in place of the NUL */
    while (written < length) {
        const ssize_t n = write(journal->fd, text + written, length - written);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        written += (size_t)n;
    }
    free(text);
    if (written == length && fdatasync(journal->fd) == 0) {
        journal->length += length;
        bhi_lock_beat(&journal->lock);
        return true;
    }
    const int error = errno;
    (void)!ftruncate(journal->fd, (off_t)journal->length);
    return bhi_refuse(complaint,
                      "%.600s/" FILE_NAME " cannot be written: %s; what it has is intact, --resume "
                      "continues",
                      journal->path, strerror(error));
}

static json_t *make_header(const struct bhi_court *court, const char *identity,
                           const uint64_t *hidden_seeds, size_t hidden_count) {
    json_t *header = json_object(), *seeds = json_array();
    for (size_t i = 0; i < hidden_count; i++) {
        json_array_append_new(seeds, bhi_json_digits(hidden_seeds[i]));
    }
    json_object_set_new(header, "bulkhead_judge", json_integer(VERSION));
    json_object_set_new(header, "task", bhi_json_text(court->task->name));
    json_object_set_new(header, "identity", json_string(identity));
    json_object_set_new(header, "device", json_string(court->device));
    json_object_set_new(header, "hidden_seeds", seeds);
    return header;
}

static bool begin_new(struct bhi_judge_journal *journal, const char *identity,
                      const uint64_t *hidden_seeds, size_t hidden_count,
                      struct bhi_complaint *complaint) {
    if (journal->fd < 0) {
        journal->fd = openat(journal->folder.fd, FILE_NAME,
                             O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (journal->fd < 0 || ftruncate(journal->fd, 0) != 0) {
        return bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be made: %s", journal->path,
                          strerror(errno));
    }
    journal->lock.made = false;
    bhi_lock_sign(&journal->lock);
    return append(journal, make_header(journal->court, identity, hidden_seeds, hidden_count),
                  complaint) &&
           bhi_state_folder_sync(&journal->folder, journal->path, complaint) &&
           bhi_lock_mark_used(&journal->lock, complaint);
}

enum bhi_judge_journal_result bhi_judge_journal_begin(struct bhi_judge_journal *journal,
                                                      const struct bhi_court *court,
                                                      const uint64_t *hidden_seeds,
                                                      size_t hidden_count,
                                                      struct bhi_complaint *complaint) {
    char identity[HASH_TEXT + 1];
    journal->court = court;
    if (!identify(court, identity)) {
        bhi_refuse(complaint, "out of memory");
        return BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header) {
        return begin_new(journal, identity, hidden_seeds, hidden_count, complaint)
                   ? BHI_JOURNAL_OK
                   : BHI_JOURNAL_ENVIRON;
    }
    const char *before = json_string_value(json_object_get(journal->header, "identity"));
    if (!before || strcmp(before, identity) != 0) {
        bhi_refuse(complaint,
                   "%.600s is of another task: its text, the files that it names, or what the "
                   "reference computes has changed; give another folder (--state)",
                   journal->path);
        return BHI_JOURNAL_BAD_INPUT;
    }
    /* Earlier versions have not recorded it. What one device computes right may race on another. */
    const char *device = json_string_value(json_object_get(journal->header, "device"));
    if (device && strcmp(device, court->device) != 0) {
        bhi_refuse(complaint,
                   "%.600s is of device %.47s, and this is %s: name that one (--device), or give "
                   "another folder (--state)",
                   journal->path, device, court->device);
        return BHI_JOURNAL_BAD_INPUT;
    }
    struct bhi_candidate candidate;
    for (size_t i = 0; i < json_array_size(journal->records); i++) {
        if (!bhi_judge_record_read(court, json_array_get(journal->records, i), &candidate)) {
            damaged(journal, i + 2, complaint);
            return BHI_JOURNAL_ENVIRON;
        }
        bhi_candidate_free(&candidate);
    }
    journal->lock.made = false;
    bhi_lock_sign(&journal->lock);
    if (ftruncate(journal->fd, (off_t)journal->length) != 0) {
        bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be written: %s", journal->path,
                   strerror(errno));
        return BHI_JOURNAL_ENVIRON;
    }
    return bhi_lock_mark_used(&journal->lock, complaint) ? BHI_JOURNAL_OK : BHI_JOURNAL_ENVIRON;
}

/* -- verdicts -----------------------------------------------------------------------------------
 */

static bool hash_file(const char *path, uint8_t out[BHI_CONTENT_HASH]) {
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool good = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      bhi_content_hash_of(fd, out) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

void bhi_judge_journal_find(const struct bhi_judge_journal *journal, const char *path,
                            struct bhi_candidate *out) {
    uint8_t now[BHI_CONTENT_HASH], then[BHI_CONTENT_HASH];
    const char *file;
    if (!json_array_size(journal->records) || !hash_file(path, now)) {
        return;
    }
    for (size_t i = json_array_size(journal->records); i-- > 0;) {
        const json_t *record = json_array_get(journal->records, i);
        if (bhi_judge_record_file(record, &file, then) && !strcmp(file, path) &&
            !memcmp(now, then, sizeof now) && bhi_judge_record_read(journal->court, record, out)) {
            break;
        }
    }
    out->path = path;
    out->file = (struct bhi_kernel_file){.path = path,
                                         .deadline_ns = journal->court->task->compile_deadline_ns};
}

bool bhi_judge_journal_note(struct bhi_judge_journal *journal,
                            const struct bhi_candidate *candidate) {
    json_t *record =
        candidate->has_content ? bhi_judge_record_make(journal->court, candidate) : NULL;
    return !record || append(journal, record, &journal->complaint);
}

void bhi_judge_journal_close(struct bhi_judge_journal *journal) {
    if (journal->fd >= 0) {
        close(journal->fd);
    }
    bhi_lock_release(&journal->lock);
    bhi_state_folder_close(&journal->folder);
    json_decref(journal->header);
    json_decref(journal->records);
    *journal = (struct bhi_judge_journal){.folder.fd = -1, .lock.fd = -1, .fd = -1};
}
