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

#include "judge/check/form.h"
#include "judge/check/trial.h"
#include "tool/content_hash.h"
#include "tool/json.h"
#include "tool/place.h"
#include "tool/values.h"

#define FILE_NAME "judge.jsonl"

enum { VERSION = 2, HASH_TEXT = 2 * BHI_CONTENT_HASH };

/* -- a verdict as a line ------------------------------------------------------------------------
 * What a candidate says of itself is text in it, which nobody interprets.
 */

/* The path that is recorded, borrowed, and the hash of the content. Returns false if |record| is
 * not one: it is damaged. */
static bool read_file(const json_t *record, const char **out_path,
                      uint8_t out_content[BHI_CONTENT_HASH]) {
    const char *content = json_string_value(json_object_get(record, "content"));
    *out_path = json_string_value(json_object_get(record, "file"));
    return *out_path && content && strlen(content) == HASH_TEXT &&
           sodium_hex2bin(out_content, BHI_CONTENT_HASH, content, HASH_TEXT, NULL, NULL, NULL) == 0;
}

static json_t *make_timings(const bh_judgement *of) {
    json_t *timings = json_array();
    for (size_t i = 0; i < of->timing_count; i++) {
        const bh_judge_timing *timing = &of->timings[i];
        json_array_append_new(
            timings,
            json_pack(
                "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b, s:b, s:b, s:f, "
                "s:i}",
                "size", (json_int_t)timing->size_index, "runs", (json_int_t)timing->runs,
                "median_ns", timing->median_ns, "reference_ns", timing->reference_ns, "ratio",
                timing->ratio, "low", timing->low, "high", timing->high, "noise", timing->noise,
                "drift", timing->drift, "host_ns", timing->host_ns, "device", timing->device,
                "cold", timing->cold, "noisy", timing->noisy, "spreads", timing->spreads,
                "one_processor", timing->one_processor, "guard_ratio", timing->guard_ratio, "doubt",
                (int)timing->doubt));
    }
    return timings;
}

static json_t *make_errors(const bh_judgement *of) {
    json_t *errors = json_array();
    for (size_t i = 0; i < of->error_count; i++) {
        const bh_judge_error *error = &of->errors[i];
        json_array_append_new(errors,
                              json_pack("{s:f, s:f, s:o}", "absolute", error->absolute, "relative",
                                        error->relative, "ulp", bhi_json_digits(error->ulp)));
    }
    return errors;
}

/* One for each output, in the task's order. */
static bool read_errors(const struct bhi_task *task, const json_t *errors, bh_judgement *out) {
    size_t outputs = 0;
    bool good = json_is_array(errors);
    for (size_t i = 0; i < task->array_count && good && json_array_size(errors); i++) {
        if (task->arrays[i].role == BHI_TASK_IN) {
            continue;
        }
        bh_judge_error *error = &out->errors[outputs];
        struct bhi_complaint ignored;
        const char *ulp;
        good = json_unpack(json_array_get(errors, outputs++), "{s:F, s:F, s:s}", "absolute",
                           &error->absolute, "relative", &error->relative, "ulp", &ulp) == 0 &&
               bhi_parse_count(ulp, 0, UINT64_MAX, &error->ulp, &ignored);
        snprintf(error->output, sizeof error->output, "%s", task->arrays[i].place);
    }
    out->error_count = outputs;
    return good && outputs == json_array_size(errors);
}

/* Returns NULL if memory ran out, or the path is not UTF-8: it would not be found again. */
static json_t *make_record(const struct bhi_court *court, const struct bhi_candidate *candidate) {
    const bh_judgement *of = &candidate->judgement;
    const struct bhi_trial *trial = bhi_judgement_trial(court, of);
    const uint32_t array = bhi_judgement_array(court->task, of);
    const bool right = of->verdict == BH_JUDGE_CORRECT || of->verdict == BH_JUDGE_SLOWER;
    /* Of several arrays nobody knows behind which it has read. */
    const bool unnamed = of->verdict == BH_JUDGE_STRAY_READ && !*of->output;
    char content[HASH_TEXT + 1];
    const bool placed = trial && of->verdict == BH_JUDGE_WRONG;
    const uint64_t index = placed ? bhi_position_index(&trial->arrays[array].form, of->index) : 0;
    sodium_bin2hex(content, sizeof content, of->content, BHI_CONTENT_HASH);
    json_t *record =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:b, s:i}", "file", candidate->file.path,
                  "content", content, "verdict", bh_judge_verdict_name(of->verdict, of->status),
                  "judgement", (int)of->verdict, "status", (int)of->status, "blame", (int)of->blame,
                  "runs", (json_int_t)of->runs, "nondeterministic", right && !of->deterministic,
                  "array", unnamed ? -1 : (int)array);
    bhi_json_why(record, of->reason, of->subject, of->subject_name);
    if (*of->output && strncmp(court->task->arrays[array].place, of->output,
                               sizeof of->output - 1) != 0) { /* it is of the candidate's plan */
        json_object_set_new(record, "scratch", bhi_json_text(of->output));
    }
    BHI_JSON_ADD(
        record, {"message", bhi_json_text(of->message)},
        {"trial", trial ? json_integer(trial - court->trials.list) : json_null()},
        {"timed", json_boolean(of->timed)},
        {"difference", json_pack("{s:I, s:I, s:s, s:s, s:o}", "wrong", (json_int_t)of->wrong,
                                 "index", (json_int_t)index, "expected", of->expected, "got",
                                 of->got, "ulp", bhi_json_digits(of->ulp))});
    if (json_object_set_new(record, "errors", make_errors(of)) != 0 ||
        json_object_set_new(record, "timing", make_timings(of)) != 0) {
        json_decref(record);
        return NULL;
    }
    return record;
}

/* Takes a text that fits. */
static bool take_text(const char *text, char *out, size_t capacity) {
    return text && (size_t)snprintf(out, capacity, "%s", text) < capacity;
}

static bool read_timing(const struct bhi_task *task, json_t *object, bh_judge_timing *out) {
    json_int_t size, runs;
    int device, cold, noisy, spreads, one_processor, doubt;
    if (json_unpack(object,
                    "{s:I, s:I, s:F, s:F, s:F, s:F, s:F, s:F, s:F, s:F, s:b, s:b, s:b, s:b, s:b, "
                    "s:F, s:i}",
                    "size", &size, "runs", &runs, "median_ns", &out->median_ns, "reference_ns",
                    &out->reference_ns, "ratio", &out->ratio, "low", &out->low, "high", &out->high,
                    "noise", &out->noise, "drift", &out->drift, "host_ns", &out->host_ns, "device",
                    &device, "cold", &cold, "noisy", &noisy, "spreads", &spreads, "one_processor",
                    &one_processor, "guard_ratio", &out->guard_ratio, "doubt", &doubt) != 0) {
        return false;
    }
    out->size_index = (uint32_t)size;
    out->runs = (uint64_t)runs;
    out->device = device;
    out->cold = cold;
    out->noisy = noisy;
    out->spreads = spreads;
    out->one_processor = one_processor;
    out->doubt = (bh_judge_doubt)doubt;
    return size >= 0 && (size_t)size < task->size_count && runs >= 0 && doubt >= 0 &&
           doubt <= BH_JUDGE_DOUBT_LOAD;
}

static bool read_timings(const struct bhi_task *task, const json_t *array, bh_judgement *out) {
    out->timing_count = json_array_size(array);
    bool good = json_is_array(array) && out->timing_count <= BH_JUDGE_SIZES;
    for (size_t i = 0; good && i < out->timing_count; i++) {
        good = read_timing(task, json_array_get(array, i), &out->timings[i]);
        out->one_processor |= out->timings[i].one_processor;
    }
    return good;
}

/* Of a run that has ended it: which, and how its output was wrong. */
static bool read_difference(const struct bhi_trial *trial, json_t *object, uint32_t array,
                            bh_judgement *out) {
    const char *expected, *got, *ulp;
    json_int_t wrong, index;
    struct bhi_complaint ignored;
    if (json_unpack(object, "{s:I, s:I, s:s, s:s, s:s}", "wrong", &wrong, "index", &index,
                    "expected", &expected, "got", &got, "ulp", &ulp) != 0 ||
        wrong < 0 || index < 0 || !bhi_parse_count(ulp, 0, UINT64_MAX, &out->ulp, &ignored) ||
        !take_text(expected, out->expected, sizeof out->expected) ||
        !take_text(got, out->got, sizeof out->got)) {
        return false;
    }
    if (out->verdict == BH_JUDGE_WRONG) {
        out->wrong = (uint64_t)wrong;
        out->elements = trial->arrays[array].count;
        if ((uint64_t)index >= out->elements || out->wrong > out->elements) {
            return false;
        }
        out->rank = trial->arrays[array].form.dimensions;
        bhi_position_of(&trial->arrays[array].form, (uint64_t)index, out->index);
    }
    return true;
}

/* Fills in the judgement. Returns false if the record is damaged. */
static bool read_record(const struct bhi_court *court, json_t *record, bh_judgement *out) {
    const json_t *trial = json_object_get(record, "trial");
    const size_t which = (size_t)json_integer_value(trial);
    const char *path, *message;
    int judged, status, blame, array, nondeterministic;
    json_int_t runs;
    *out = (bh_judgement){.struct_size = sizeof *out, .hashed = true};
    if (!read_file(record, &path, out->content) ||
        json_unpack(record, "{s:i, s:i, s:i, s:i, s:I, s:b, s:s}", "judgement", &judged, "status",
                    &status, "blame", &blame, "array", &array, "runs", &runs, "nondeterministic",
                    &nondeterministic, "message", &message) != 0 ||
        judged < 0 || judged > BH_JUDGE_STRAY_READ || status < 0 || blame < 0 ||
        blame > BH_BLAME_CERTAIN || array < (judged == BH_JUDGE_STRAY_READ ? -1 : 0) ||
        array >= (int)court->task->array_count || runs < 0 ||
        !take_text(message, out->message, sizeof out->message) ||
        !(json_is_null(trial) || (json_is_integer(trial) && which < court->trials.count))) {
        return false;
    }
    const bool has_output =
        judged == BH_JUDGE_WRONG || judged == BH_JUDGE_STRAY_WRITE || judged == BH_JUDGE_STRAY_READ;
    const struct bhi_trial *ended = json_is_null(trial) ? NULL : &court->trials.list[which];
    if (has_output && !ended) {
        return false;
    }
    bhi_kernel_file_name(path, out->name);
    out->status = (bh_status)status;
    out->blame = (bh_blame)blame;
    out->runs = (uint64_t)runs;
    bhi_json_take_why(record, &out->reason, &out->subject, out->subject_name,
                      sizeof out->subject_name);
    if (judged == BH_JUDGE_CORRECT || judged == BH_JUDGE_SLOWER) {
        out->deterministic = !nondeterministic;
        out->status = BH_OK;
        out->message[0] = '\0'; /* SLOWER is said by an option of the run that recorded it */
    } else {
        bhi_judgement_end(court->task, ended, (bh_judge_verdict)judged, out);
    }
    out->timed = json_is_true(json_object_get(record, "timed"));
    const char *const scratch = json_string_value(json_object_get(record, "scratch"));
    if (has_output && array >= 0) {
        snprintf(out->output, sizeof out->output, "%s",
                 scratch ? scratch : court->task->arrays[array].place);
    }
    return read_difference(ended, json_object_get(record, "difference"), (uint32_t)array, out) &&
           read_errors(court->task, json_object_get(record, "errors"), out) &&
           read_timings(court->task, json_object_get(record, "timing"), out);
}

/* -- what is there --------------------------------------------------------------------------- */

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
                      "give another folder",
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
                          "with that version, or give another folder",
                          journal->path);
    }
    if (!read_file(object, &path, content)) {
        json_decref(object);
        return damaged(journal, number, complaint);
    }
    return json_array_append_new(journal->records, object) == 0 || bhi_refuse_memory(complaint);
}

/* Each line ends with '\n', so one without was being written when the process was killed. Of a last line
 * that was being written when the power was lost, any part may be missing: there are zeros then. */
static bool take_lines(struct bhi_judge_journal *journal, const char *text, size_t size,
                       struct bhi_complaint *complaint) {
    const char *at = text, *const all = text + size, *end;
    for (size_t number = 1; (end = memchr(at, '\n', (size_t)(all - at))); number++) {
        if (end + 1 == all && memchr(at, '\0', (size_t)(end - at))) {
            break;
        }
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
        if (read_file(record, &path, content)) {
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
        bhi_refuse_memory(complaint);
        return BHI_JOURNAL_ENVIRON;
    }
    if (!open_all(journal, complaint)) {
        return journal->folder.is_none ? BHI_JOURNAL_BAD_INPUT : BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header && bhi_lock_is_used(&journal->lock)) {
        bhi_refuse(complaint,
                   "%.600s has lost its " FILE_NAME ", or is the state of another command: put a "
                   "copy in its place, or give another folder",
                   path);
        return BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header && !bhi_lock_check(&journal->lock, complaint)) {
        return BHI_JOURNAL_ENVIRON;
    }
    if (journal->header && !resume) {
        const size_t count = count_candidates(journal);
        bhi_refuse(complaint,
                   "%.600s has a judging of %zu candidate%s: resume it, or give "
                   "another folder",
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
    bool good = json_is_array(seeds);
    *out_count = json_array_size(seeds);
    *out_seeds = calloc(*out_count + 1, sizeof **out_seeds);
    if (!*out_seeds) {
        return bhi_refuse_memory(complaint);
    }
    for (size_t i = 0; good && i < *out_count; i++) {
        const char *seed = json_string_value(json_array_get(seeds, i));
        good = seed && bhi_parse_count(seed, 0, UINT64_MAX, &(*out_seeds)[i], &inner);
    }
    if (!good) {
        free(*out_seeds);
        *out_seeds = NULL;
    }
    return good || damaged(journal, 1, complaint);
}

/* -- which judging it is --------------------------------------------------------------------- */

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
        if (trial->forgotten) {
            bhi_content_hash_add(hash, trial->hash, sizeof trial->hash);
        }
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
    if (court->baseline) { /* ratios are relative to it */
        bhi_content_hash_add(hash, court->baseline->judgement.content, BHI_CONTENT_HASH);
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
        return bhi_refuse_memory(complaint);
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
    return bhi_refuse(
        complaint, "%.600s/" FILE_NAME " cannot be written: %s; what it has is intact: resume it",
        journal->path, strerror(error));
}

static json_t *make_header(const struct bhi_court *court, const uint64_t *hidden, size_t count,
                           const char *identity) {
    json_t *header = json_object(), *seeds = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(seeds, bhi_json_digits(hidden[i]));
    }
    BHI_JSON_ADD(header, {"bulkhead_judge", json_integer(VERSION)},
                 {"task", bhi_json_text(court->task->name)}, {"identity", json_string(identity)},
                 {"device", json_string(court->device)}, {"hidden_seeds", seeds});
    return header;
}

static bool begin_new(struct bhi_judge_journal *journal, json_t *header,
                      struct bhi_complaint *complaint) {
    if (journal->fd < 0) {
        journal->fd = openat(journal->folder.fd, FILE_NAME,
                             O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (journal->fd < 0 || ftruncate(journal->fd, 0) != 0) {
        json_decref(header);
        return bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be made: %s", journal->path,
                          strerror(errno));
    }
    journal->lock.made = false;
    bhi_lock_sign(&journal->lock);
    return append(journal, header, complaint) &&
           bhi_state_folder_sync(&journal->folder, journal->path, complaint) &&
           bhi_lock_mark_used(&journal->lock, complaint);
}

enum bhi_judge_journal_result bhi_judge_journal_begin(struct bhi_judge_journal *journal,
                                                      const struct bhi_court *court,
                                                      const uint64_t *seeds, size_t seed_count,
                                                      struct bhi_complaint *complaint) {
    char identity[HASH_TEXT + 1];
    journal->court = court;
    if (!identify(court, identity)) {
        bhi_refuse_memory(complaint);
        return BHI_JOURNAL_ENVIRON;
    }
    if (!journal->header) {
        return begin_new(journal, make_header(court, seeds, seed_count, identity), complaint)
                   ? BHI_JOURNAL_OK
                   : BHI_JOURNAL_ENVIRON;
    }
    const char *before = json_string_value(json_object_get(journal->header, "identity"));
    if (!before || strcmp(before, identity) != 0) {
        bhi_refuse(complaint,
                   "%.600s is of another task: its text, the files that it names, what the "
                   "reference computes, or the baseline has changed; give another folder",
                   journal->path);
        return BHI_JOURNAL_BAD_INPUT;
    }
    /* Earlier versions have not recorded it. What one device computes right may race on another. */
    const char *device = json_string_value(json_object_get(journal->header, "device"));
    if (device && strcmp(device, court->device) != 0) {
        bhi_refuse(complaint,
                   "%.600s is of device %.47s, and this is %s: name that one (--device), or give "
                   "another folder",
                   journal->path, device, court->device);
        return BHI_JOURNAL_BAD_INPUT;
    }
    bh_judgement ignored;
    for (size_t i = 0; i < json_array_size(journal->records); i++) {
        if (!read_record(court, json_array_get(journal->records, i), &ignored)) {
            damaged(journal, i + 2, complaint);
            return BHI_JOURNAL_ENVIRON;
        }
    }
    journal->lock.made = false;
    bhi_lock_sign(&journal->lock);
    /* What a killed process has written it may not have synced; from now on it counts. */
    if (ftruncate(journal->fd, (off_t)journal->length) != 0 || fdatasync(journal->fd) != 0) {
        bhi_refuse(complaint, "%.600s/" FILE_NAME " cannot be written: %s", journal->path,
                   strerror(errno));
        return BHI_JOURNAL_ENVIRON;
    }
    return bhi_lock_mark_used(&journal->lock, complaint) ? BHI_JOURNAL_OK : BHI_JOURNAL_ENVIRON;
}

/* -- verdicts -------------------------------------------------------------------------------- */

/* What a candidate is now: its file, and all that its plan names. */
static bool hash_form(const struct bhi_court *court, const struct bhi_kernel_file *file,
                      uint8_t out[BHI_CONTENT_HASH]) {
    struct bhi_judge_outcome ignored = {.status = BH_OK};
    struct bhi_judged_form *form = calloc(1, sizeof *form);
    bool known = false;
    if (form) {
        (void)bhi_judged_form_read(file, court->task, form, &ignored);
        known = form->has_content;
        memcpy(out, form->content, BHI_CONTENT_HASH);
        bhi_judged_form_free(form);
    }
    free(form);
    return known;
}

void bhi_judge_journal_find(const struct bhi_judge_journal *journal,
                            struct bhi_candidate *candidate) {
    uint8_t now[BHI_CONTENT_HASH], then[BHI_CONTENT_HASH];
    const char *file, *path = candidate->file.path;
    if (!json_array_size(journal->records) || !hash_form(journal->court, &candidate->file, now)) {
        return;
    }
    for (size_t i = json_array_size(journal->records); i-- > 0 && !candidate->judged;) {
        json_t *record = json_array_get(journal->records, i);
        candidate->judged = read_file(record, &file, then) && !strcmp(file, path) &&
                            !memcmp(now, then, sizeof now) &&
                            read_record(journal->court, record, &candidate->judgement);
    }
}

bool bhi_judge_journal_note(struct bhi_judge_journal *journal,
                            const struct bhi_candidate *candidate) {
    json_t *record = candidate->judgement.hashed ? make_record(journal->court, candidate) : NULL;
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
