#include "few_jobs.h"

struct place place;
struct bhi_queue *queue;
struct bhi_complaint complaint;

/* -- the place ----------------------------------------------------------------------------------
 */

static void make_place(void) {
    /* In memory, where that is possible: nobody pulls the plug. */
    strcpy(place.root, "/dev/shm/bulkhead-journal-XXXXXX");
    if (!mkdtemp(place.root)) {
        strcpy(place.root, "/tmp/bulkhead-journal-XXXXXX");
        BHT_NE(mkdtemp(place.root), NULL);
    }
    snprintf(place.folder, sizeof place.folder, "%s/state", place.root);
    snprintf(place.database, sizeof place.database, "%s/batch.db", place.folder);
}

static void end_place(void) {
    close_queue();
    BHT_TRUE(bht_remove(place.root));
}

void renew_place(void) {
    end_place();
    make_place();
}

BHT_AT_START(bht_around(make_place, end_place))

void path_of(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", place.folder, name);
}

off_t size_of(const char *name) {
    struct stat status;
    char path[128];
    path_of(name, path);
    return stat(path, &status) == 0 ? status.st_size : -1;
}

ssize_t read_file(const char *path, void *out) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? read(fd, out, MOST) : -1;
    BHT_LT(size, MOST);
    if (fd >= 0) {
        close(fd);
    }
    return size;
}

void write_file(const char *path, const void *bytes, size_t size) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), size);
    close(fd);
}

void put_file(const char *name, const char *text, mode_t mode) {
    char path[192];
    snprintf(path, sizeof path, "%s/%s", place.root, name);
    bht_put(text, "%s", path);
    BHT_EQ(chmod(path, mode), 0);
}

static bool goes_on; /* what was resumed: with the first addition */

/* -- the queue ----------------------------------------------------------------------------------
 */

void open_unkept(const char *jobs_path) {
    const struct bhi_queue_options options = {.jobs_path = jobs_path, .retries = 2};
    close_queue();
    if (bhi_queue_open(&options, &queue, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
}

enum bhi_queue_result open_with(struct bhi_queue_options options) {
    close_queue();
    complaint.text[0] = '\0';
    options.folder = place.folder;
    options.jobs_path = "jobs.jsonl";
    return bhi_queue_open(&options, &queue, &complaint);
}

enum bhi_queue_result try_open(bool resume, bool failed) {
    return open_with(
        (struct bhi_queue_options){.resume = resume, .retry_failed = failed, .retries = 2});
}

void open_state(bool resume, bool failed) {
    if (try_open(resume, failed) != BHI_QUEUE_OK ||
        bhi_queue_add(queue, NULL, 0, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    goes_on = true;
}

void fresh(const char *words) {
    open_state(false, false);
    add(words);
}

void again(void) {
    open_state(true, false);
}

static bool count_state(void *user, const struct bhi_job_record *record) {
    struct bhi_queue_counts *counts = user;
    counts->of[record->state]--;
    return true;
}

/* The record has each job in the state in which the queue has it; a job may be taken and not run. */
static void expect_recorded(void) {
    struct bhi_queue_counts counts;
    bhi_queue_counts(queue, &counts);
    if (bhi_queue_flush(queue) && bhi_queue_each_job(queue, count_state, &counts)) {
        counts.of[BHI_JOB_WAITING] += counts.of[BHI_JOB_RUNNING];
        counts.of[BHI_JOB_RUNNING] = 0;
        for (int i = 0; i < BHI_JOB_STATES; i++) {
            BHT_EQ(counts.of[i], 0);
        }
    }
}

bool close_queue(void) {
    if (queue && goes_on) {
        expect_recorded();
    }
    const bool good = bhi_queue_close(queue);
    queue = NULL;
    goes_on = false;
    return good;
}

void expect_no_open(bool resume, enum bhi_queue_result expected, const char *words) {
    close_queue();
    const int fds = count_fds();
    BHT_EQ(try_open(resume, false), expected);
    BHT_EQ(queue, NULL);
    BHT_STR_HAS(complaint.text, words);
    BHT_STR_HAS(complaint.text, place.folder);
    BHT_EQ(count_fds(), fds);
}

/* -- jobs ---------------------------------------------------------------------------------------
 */

/* What follows |mark| in |word|, which ends there then; or "". */
static char *cut(char *word, char mark) {
    static char none[1];
    char *at = strrchr(word, mark);
    if (!at) {
        return none;
    }
    *at = '\0';
    return at + 1;
}

/* An array of |words|; with |binding| from 0 on an object with these as values. */
static void put(char *line, const char *key, char *words, int binding, const char *type) {
    char *save, *end = line + strlen(line);
    end += sprintf(end, ", \"%s\": %c", key, binding < 0 ? '[' : '{');
    for (char *word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        end += binding < 0 ? sprintf(end, "\"%s\",", word)
                           : sprintf(end, "\"%d\": \"%s%s\",", binding++, word, type);
    }
    sprintf(end - (end[-1] == ','), "%c", binding < 0 ? ']' : '}');
}

bool read_jobs(struct jobs *jobs, const char *words) {
    char copy[2048], line[4096], *save;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *priority = cut(word, '@');
        char *replaces = cut(word, '='), *writes = cut(word, '>'), *reads = cut(word, '<');
        char *needs = cut(word, ':');
        sprintf(line, "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], \"priority\": %s", word,
                *priority ? priority : "0");
        put(line, "depends_on", needs, -1, "");
        put(line, "in", reads, 0, "");
        put(line, "out", writes, 100, ":u8[1]");
        put(line, "inout", replaces, 200, "");
        strcat(line, "}");
        struct bhi_job_spec *spec = &jobs->specs[jobs->count];
        if (!bhi_job_parse(line, strlen(line), spec, &complaint)) {
            return false;
        }
        spec->line = ++jobs->count;
    }
    return true;
}

void free_jobs(struct jobs *jobs) {
    while (jobs->count > 0) {
        bhi_job_spec_free(&jobs->specs[--jobs->count]);
    }
}

enum bhi_queue_result try_add(const char *words) {
    struct jobs jobs = {.count = 0};
    const enum bhi_queue_result result =
        read_jobs(&jobs, words) ? bhi_queue_add(queue, jobs.specs, jobs.count, &complaint)
                                : BHI_QUEUE_ENVIRON;
    free_jobs(&jobs);
    return result;
}

void add(const char *words) {
    if (try_add(words) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
}

void expect_refused(const char *words, const char *expected) {
    BHT_EQ(try_add(words), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, expected);
}

enum bhi_queue_result add_line(const char *line) {
    struct bhi_job_spec spec;
    if (!bhi_job_parse(line, strlen(line), &spec, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    spec.line = 7;
    const enum bhi_queue_result result = bhi_queue_add(queue, &spec, 1, &complaint);
    bhi_job_spec_free(&spec);
    return result;
}

struct bhi_job *take(const char *id) {
    struct bhi_job *job = bhi_queue_take(queue);
    BHT_STR_EQ(job ? job->id : "none", id ? id : "none");
    return job;
}

struct bhi_job *start(const char *id) {
    struct bhi_job *job = take(id);
    bhi_queue_started(queue, job, 3); /* another stream than its end says */
    return job;
}

void end(struct bhi_job *job, enum bhi_job_state next, bh_status status) {
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

void run_one(const char *id, enum bhi_job_state next, bh_status status) {
    end(start(id), next, status);
}

void run(const char *ids) {
    char copy[256], *save;
    snprintf(copy, sizeof copy, "%s", ids);
    for (char *id = strtok_r(copy, " ", &save); id; id = strtok_r(NULL, " ", &save)) {
        run_one(id, BHI_JOB_DONE, BH_OK);
    }
}

uint32_t more_files;

void seal_job(struct bhi_job *job, const char *outputs, void (*then)(void *user, bool durable),
              void *user) {
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
    for (uint32_t i = 0; i < more_files; i++) {
        char path[16];
        snprintf(path, sizeof path, "f%u", i);
        (void)bhi_used_add(&used, &mark, path);
    }
    bhi_queue_sealed(queue, job, &attempt, outputs, &used, then, user);
    bhi_used_free(&used);
}

void expect_durable(void *user, bool durable) {
    BHT_TRUE(durable);
}

void seal(const char *id) {
    seal_job(start(id), "", expect_durable, NULL);
}

/* -- what is there ------------------------------------------------------------------------------
 */

void expect_counts_of(const struct bhi_queue_counts *counts, const char *expected) {
    char found[160] = "";
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        sprintf(found + strlen(found), "%s%" PRIu64, i ? "/" : "", counts->of[i]);
    }
    sprintf(found + strlen(found), " of %" PRIu64, counts->total);
    BHT_STR_EQ(found, expected);
}

void expect_counts(const char *expected) {
    struct bhi_queue_counts counts;
    bhi_queue_counts(queue, &counts);
    expect_counts_of(&counts, expected);
}

static int print_row(void *user, int columns, char **values, char **names) {
    char *at = (char *)user + strlen(user);
    for (int i = 0; i < columns; i++) {
        at += sprintf(at, "%s%s", i ? " " : "", values[i] ? values[i] : "-");
    }
    strcpy(at, "; ");
    return 0;
}

void expect_sql(const char *sql, const char *expected) {
    sqlite3 *db;
    char found[8192] = "";
    BHT_EQ(sqlite3_open_v2(place.database, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, sql, print_row, found, NULL), SQLITE_OK);
    sqlite3_close(db);
    BHT_STR_EQ(found, expected);
}

void expect_kept(const char *sql, const char *expected) {
    BHT_TRUE(!queue || close_queue());
    expect_sql(sql, expected);
}

void expect_jobs(const char *expected) {
    expect_kept("SELECT id, state FROM jobs ORDER BY number", expected);
}

void alter_meanwhile(const char *sql) {
    sqlite3 *db;
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_close(db), SQLITE_OK);
}

void alter(const char *sql) {
    close_queue();
    alter_meanwhile(sql);
}
