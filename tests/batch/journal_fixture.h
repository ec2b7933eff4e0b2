/* A state folder, and jobs in few words. */
#ifndef BULKHEAD_TEST_JOURNAL_FIXTURE_H
#define BULKHEAD_TEST_JOURNAL_FIXTURE_H

#include "support.h"

#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "batch/queue/queue.h"

struct place {
    char root[64], folder[80], database[96];
};

static inline int remove_one(const char *path, const struct stat *status, int type,
                             struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static inline void make_place(struct place *place) {
    /* In memory, where that is possible: nobody pulls the plug. */
    strcpy(place->root, "/dev/shm/bulkhead-journal-XXXXXX");
    if (!mkdtemp(place->root)) {
        strcpy(place->root, "/tmp/bulkhead-journal-XXXXXX");
        BHT_NE(mkdtemp(place->root), NULL);
    }
    snprintf(place->folder, sizeof place->folder, "%s/state", place->root);
    snprintf(place->database, sizeof place->database, "%s/batch.db", place->folder);
}

static inline void remove_place(const struct place *place) {
    BHT_EQ(nftw(place->root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Of the state. */
static inline void path_of(const struct place *place, const char *name, char path[112]) {
    snprintf(path, 112, "%s/%s", place->folder, name);
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), size);
    close(fd);
}

static inline enum bhi_queue_result try_open(const struct place *place, bool resume, bool failed,
                                             struct bhi_queue **out_queue,
                                             struct bhi_complaint *complaint) {
    const struct bhi_queue_options options = {.folder = place->folder,
                                              .jobs_path = "jobs.jsonl",
                                              .resume = resume,
                                              .retry_failed = failed,
                                              .retries = 2};
    complaint->text[0] = '\0';
    return bhi_queue_open(&options, out_queue, complaint);
}

/* What is resumed goes on with the first call, also of nothing. */
static inline struct bhi_queue *open_state(const struct place *place, bool resume, bool failed) {
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    if (try_open(place, resume, failed, &queue, &complaint) != BHI_QUEUE_OK ||
        bhi_queue_add(queue, NULL, 0, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    return queue;
}

static inline struct bhi_queue *fresh(const struct place *place) {
    return open_state(place, false, false);
}

static inline struct bhi_queue *again(const struct place *place) {
    return open_state(place, true, false);
}

/* What is refused names what it is about, once, and leaves nothing open. */
static inline void expect_no_open(const struct place *place, bool resume,
                                  enum bhi_queue_result expected, const char *words) {
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    const int fds = count_fds();
    BHT_EQ(try_open(place, resume, false, &queue, &complaint), expected);
    BHT_EQ(queue, NULL);
    if (!strstr(complaint.text, words) || !strstr(complaint.text, place->folder)) {
        BHT_FAIL("\"%s\" has no \"%s\"", complaint.text, words);
    }
    BHT_EQ(count_fds(), fds);
}

/* "a b:a c:a,b": c needs a and b. */
static inline enum bhi_queue_result try_add(struct bhi_queue *queue, const char *words,
                                            struct bhi_complaint *complaint) {
    struct bhi_job_spec specs[64];
    enum bhi_queue_result result = BHI_QUEUE_OK;
    size_t count = 0;
    char copy[512], *save;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word && result == BHI_QUEUE_OK;
         word = strtok_r(NULL, " ", &save)) {
        char line[1024], *needs = strchr(word, ':'), *inner;
        if (needs) {
            *needs++ = '\0';
        }
        sprintf(line, "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], \"depends_on\": [",
                word);
        for (char *id = needs ? strtok_r(needs, ",", &inner) : NULL; id;
             id = strtok_r(NULL, ",", &inner)) {
            sprintf(line + strlen(line), "%s\"%s\"", line[strlen(line) - 1] == '[' ? "" : ",", id);
        }
        strcat(line, "]}");
        if (bhi_job_parse(line, strlen(line), &specs[count], complaint)) {
            specs[count].line = count + 1;
            count++;
        } else {
            result = BHI_QUEUE_ENVIRON; /* memory has run out, or the caller fails */
        }
    }
    if (result == BHI_QUEUE_OK) {
        result = bhi_queue_add(queue, specs, count, complaint);
    }
    for (size_t i = 0; i < count; i++) {
        bhi_job_spec_free(&specs[i]);
    }
    return result;
}

static inline void add(struct bhi_queue *queue, const char *words) {
    struct bhi_complaint complaint;
    if (try_add(queue, words, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
}

static inline struct bhi_job *take(struct bhi_queue *queue, const char *id) {
    struct bhi_job *job = bhi_queue_take(queue);
    if (!job != !id) {
        BHT_FAIL("%s instead of %s", job ? job->id : "none", id ? id : "none");
    }
    if (id) {
        BHT_STR_EQ(job->id, id);
    }
    return job;
}

static inline void end(struct bhi_queue *queue, struct bhi_job *job, enum bhi_job_state next,
                       bh_status status) {
    struct bhi_attempt attempt = {.next = next,
                                  .guilty = bh_status_classify(status) == BH_STATUS_CLASS_GUILTY,
                                  .started = true,
                                  .stream = 1,
                                  .started_ns = 1000,
                                  .ended_ns = 2000,
                                  .verdict = {.status = status,
                                              .executed = BH_EXECUTED_YES,
                                              .signal = 9,
                                              .exit_code = -1,
                                              .worker_pid = 77,
                                              .limit = 5,
                                              .kernel_name = "k",
                                              .kernel_hash = {1, 2, 3},
                                              .device = "gpu:1"}};
    snprintf(attempt.verdict.message, sizeof attempt.verdict.message, "status %d", (int)status);
    bhi_queue_ended(queue, job, &attempt, 0);
}

/* It ran from 4 to 6. */
static inline void seal_job(struct bhi_queue *queue, struct bhi_job *job, const char *outputs,
                            void (*then)(void *user, bool durable), void *user) {
    const struct bhi_attempt attempt = {.started = true,
                                        .stream = 1,
                                        .started_ns = 4,
                                        .ended_ns = 6,
                                        .verdict = {.status = BH_OK,
                                                    .executed = BH_EXECUTED_YES,
                                                    .exit_code = -1,
                                                    .worker_pid = 77,
                                                    .kernel_name = "k"}};
    const struct bhi_used_mark mark = {.size = 5, .hashed = true};
    struct bhi_used used = {.bytes = NULL};
    (void)bhi_used_add(&used, &mark, "kernel"); /* memory may run out */
    (void)bhi_used_add(&used, &mark, job->id);
    bhi_queue_sealed(queue, job, &attempt, outputs, &used, then, user);
    bhi_used_free(&used);
}

static inline void run_one(struct bhi_queue *queue, const char *id, enum bhi_job_state next,
                           bh_status status) {
    struct bhi_job *job = take(queue, id);
    bhi_queue_started(queue, job, 1);
    end(queue, job, next, status);
}

/* The database as another program sees it: "id state sealed attempts guilty origin; …". */
static inline bool describe_row(char *out, sqlite3_stmt *row) {
    char *at = out + strlen(out);
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const char *text = (const char *)sqlite3_column_text(row, i);
        at += sprintf(at, "%s%s", i ? " " : "", text ? text : "-");
    }
    strcpy(at, "; ");
    return true;
}

static inline void expect_sql(const struct place *place, const char *sql, const char *expected) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    char found[8192] = "";
    BHT_EQ(sqlite3_open_v2(place->database, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        describe_row(found, statement);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    BHT_STR_EQ(found, expected);
}

static inline void expect_jobs(const struct place *place, const char *expected) {
    expect_sql(place, "SELECT id, state FROM jobs ORDER BY number", expected);
}

/* Changes the database behind the queue's back, also to what the schema does not allow. */
static inline void alter(const struct place *place, const char *sql) {
    sqlite3 *db;
    BHT_EQ(sqlite3_open(place->database, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_close(db), SQLITE_OK);
}

#endif
