/* The queue with its journal: what is there after it was closed, or killed, and opened again. */
#include "few_jobs.h"

#include <pthread.h>

/* -- closed and opened again --------------------------------------------------------------------
 */

TEST(test_what_is_kept) {
    char id[64], cwd[4096];
    fresh("");
    strcpy(id, bhi_queue_batch_id(queue));
    strcpy(cwd, bhi_queue_cwd(queue));
    add("a b c:b d:c e:a f");
    run("a");
    run_one("b", BHI_JOB_WAITING, BH_DEADLINE);
    run_one("b", BHI_JOB_QUARANTINED, BH_WORKER_SIGNAL);
    start("e");
    expect_kept("SELECT id, state, sealed, attempts, guilty, origin, status FROM jobs",
                "a done 0 1 0 - 0; b quarantined 0 2 2 - 32; c failed 0 0 0 b -; "
                "d failed 0 0 0 b -; e running 0 1 0 - -; f waiting 0 0 0 - -; ");

    BHT_EQ(chdir("/"), 0);
    again();
    BHT_STR_EQ(bhi_queue_batch_id(queue), id);
    BHT_STR_EQ(bhi_queue_cwd(queue), cwd);
    BHT_EQ(chdir(cwd), 0);
    struct bhi_job *job = take("e");
    BHT_TRUE(job->interrupted && !job->sealed);
    BHT_EQ(job->attempts, 1);
    BHT_EQ(job->retries, 2);
    bhi_queue_started(queue, job, 0);
    end(job, BHI_JOB_DONE, BH_OK);
    run("f");
    take(NULL);
    expect_jobs("a done; b quarantined; c failed; d failed; e done; f done; ");
    /* The one that was cut off is there, and has no end. */
    expect_sql("SELECT attempt, started, ended_ns FROM attempt WHERE job = 5", "1 1 0; 2 1 2000; ");
}

TEST(test_everything_of_a_job) {
    static const char line[] =
        "{\"id\": \"\\u00e4 '; DROP TABLE job; --\", \"kernel\": \"k\", \"groups\": [1], "
        "\"priority\": -3, \"retries\": 0, \"in\": {\"0\": \"x.npy\"}}";
    fresh("");
    BHT_EQ(add_line(line), BHI_QUEUE_OK);
    again();
    struct bhi_job *job = take("\u00e4 '; DROP TABLE job; --");
    BHT_EQ(job->number, 1);
    BHT_STR_EQ(job->text,
               "{\"groups\":[1,1,1],\"id\":\"\u00e4 '; DROP TABLE job; --\",\"in\":{\"0\":"
               "\"x.npy\"},\"kernel\":\"k\",\"priority\":-3,\"retries\":0}");
    BHT_EQ(job->line, 7);
    BHT_EQ(job->priority, -3);
    BHT_EQ(job->retries, 0);
}

TEST(test_a_batch_is_not_begun_twice) {
    fresh("a");
    expect_no_open(false, BHI_QUEUE_BAD_INPUT, "has a batch of 1 job: continue it");
    again();
}

/* Of a process that was killed before its jobs were added nothing came. */
TEST(test_a_state_without_jobs_is_fresh) {
    char id[64];
    again(); /* resume of nothing just starts */
    strcpy(id, bhi_queue_batch_id(queue));
    fresh("");
    BHT_NE(strcmp(bhi_queue_batch_id(queue), id), 0);
    renew_place();
    BHT_EQ(mkdir(place.folder, 0755), 0);
    fresh("");
    struct stat status;
    BHT_EQ(stat(place.database, &status), 0);
    BHT_EQ(status.st_mode & 0777, 0600);
}

TEST(test_adding_again) {
    fresh("a b:a");
    run("a");
    again();
    add("a b:a");
    add("c:b b:a d:a");
    expect_refused("b", "jobs.jsonl:1: the job \"b\" differs from the one");
    expect_refused("d:a", "given twice");
    run("b c d");
    expect_jobs("a done; b done; c done; d done; ");
}

/* What jobs of an earlier process write is known again when others come. */
TEST(test_paths_of_loaded_jobs) {
    fresh("a>y");
    again();
    expect_refused("b>y", "\"b\" writes y, which \"a\" (line 1) writes, too");
    add("a>y");
}

TEST(test_retry_failed) {
    fresh("a b:a c d");
    run_one("a", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run_one("c", BHI_JOB_FAILED, BH_INVALID_KERNEL);
    run_one("d", BHI_JOB_CANCELLED, BH_CANCELLED);
    take(NULL);
    expect_jobs("a quarantined; b failed; c failed; d cancelled; ");
    again();
    take("d"); /* without being asked */
    take(NULL);
    expect_jobs("a quarantined; b failed; c failed; d waiting; ");
    open_state(true, true);
    struct bhi_job *job = take("a");
    BHT_EQ(job->guilty, 0);
    BHT_EQ(job->attempts, 1);
    bhi_queue_started(queue, job, 0);
    end(job, BHI_JOB_DONE, BH_OK);
    bhi_queue_flush(queue);
    expect_sql("SELECT id, state, guilty, origin FROM jobs",
               "a done 0 -; b waiting 0 -; c waiting 0 -; d waiting 0 -; ");
    run("b");
    take("c");
}

TEST(test_what_was_given_back) {
    const struct bhi_attempt none = {.next = BHI_JOB_CANCELLED, .verdict = {.status = BH_PENDING}};
    const struct bhi_attempt refused = {.next = BHI_JOB_WAITING,
                                        .verdict = {.status = BH_UNAVAILABLE}};
    fresh("a b");
    bhi_queue_ended(queue, take("a"), &none, 0);
    bhi_queue_ended(queue, take("b"), &refused, 0);
    BHT_EQ(take("b")->attempts, 0);
    expect_kept("SELECT id, state, attempts, status FROM jobs", "a cancelled 0 -; b waiting 0 6; ");
    expect_sql("SELECT job, attempt, started FROM attempt", "2 1 0; ");
}

/* -- sealed -------------------------------------------------------------------------------------
 */

static void answer(void *user, bool durable) {
    BHT_EQ(write(*(int *)user, durable ? "y" : "n", 1), 1);
}

TEST(test_sealed) {
    int ends[2];
    char answered;
    BHT_EQ(pipe2(ends, O_CLOEXEC), 0);
    fresh("first sealed next:sealed");
    take("first");
    seal_job(start("sealed"), "", answer, &ends[1]);
    BHT_EQ(read(ends[0], &answered, 1), 1);
    BHT_EQ(answered, 'y');
    expect_sql("SELECT id, state, sealed FROM jobs",
               "first waiting 0; sealed running 1; next submitted 0; ");

    for (int kills = 0; kills < 2; kills++) { /* and again, until it has ended */
        again();
        struct bhi_job *job = take("sealed"); /* before what has the lower number */
        BHT_TRUE(job->sealed);
        BHT_EQ(job->attempts, 1);
        take("first");
        take(NULL);
    }
    again();
    const struct bhi_attempt finished = {.next = BHI_JOB_DONE, .verdict = {.status = BH_OK}};
    bhi_queue_ended(queue, take("sealed"), &finished, 0);
    run("first next");
    expect_kept("SELECT id, state, sealed, attempts FROM jobs",
                "first done 0 1; sealed done 0 1; next done 0 1; ");
    /* The attempt that sealed it is the one that has ended. */
    expect_sql("SELECT attempt, started, stream, started_ns, ended_ns, status FROM attempt WHERE "
               "job = 2",
               "1 1 3 4 6 0; ");
    close(ends[0]);
    close(ends[1]);
}

/* A file has one number, also after the journal has forgotten which it gave to the first ones. */
TEST(test_more_files_than_it_remembers) {
    int ends[2];
    char answered;
    BHT_EQ(pipe2(ends, O_CLOEXEC), 0);
    more_files = 1 << 16;
    fresh("a");
    seal_job(start("a"), "", answer, &ends[1]);
    BHT_EQ(read(ends[0], &answered, 1), 1);
    BHT_EQ(answered, 'y');
    expect_sql("SELECT count(*), count(DISTINCT file) FROM used", "65538 65538; ");
    close(ends[0]);
    close(ends[1]);
}

/* -- two threads ---------------------------------------------------------------------------------
 */

enum { ROUNDS = 60 };

static void *add_rounds(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        char words[64];
        sprintf(words, "a%d b%d:a%d%s", i, i, i, i ? "" : " c0");
        if (i) {
            sprintf(words + strlen(words), " c%d:b%d", i, i - 1);
        }
        add(words);
    }
    return NULL;
}

static bool falls(const char *id) {
    const int i = atoi(id + 1);
    return id[0] == 'c' ? i % 7 == 4 : i % 7 == 3;
}

static bool count_fallen(void *user, const struct bhi_job_record *record) {
    BHT_EQ(record->state, falls(record->id) ? BHI_JOB_FAILED : BHI_JOB_DONE);
    if (falls(record->id) && record->id[0] != 'a') {
        BHT_EQ(record->origin[0], 'a');
    }
    *(int *)user += 1;
    return true;
}

/* What is added may need what is running, what ends meanwhile and what has failed. */
TEST(test_adding_while_others_run) {
    pthread_t thread;
    struct bhi_queue_counts counts;
    int seen = 0;
    fresh("");
    BHT_EQ(pthread_create(&thread, NULL, add_rounds, NULL), 0);
    do {
        struct bhi_job *job = bhi_queue_take(queue);
        if (job) {
            bhi_queue_started(queue, job, 0);
            end(job, falls(job->id) ? BHI_JOB_FAILED : BHI_JOB_DONE,
                falls(job->id) ? BH_INVALID_KERNEL : BH_OK);
        } else {
            BHT_TRUE(bhi_queue_flush(queue));
        }
        bhi_queue_counts(queue, &counts);
    } while (counts.of[BHI_JOB_DONE] + counts.of[BHI_JOB_FAILED] < 3 * ROUNDS);
    pthread_join(thread, NULL);
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(bhi_queue_each_job(queue, count_fallen, &seen));
    BHT_EQ(seen, 3 * ROUNDS);
}

/* Only the first call resumes what an earlier process has left. */
TEST(test_what_runs_while_others_are_added) {
    fresh("a");
    struct bhi_job *job = start("a");
    BHT_TRUE(bhi_queue_flush(queue));
    add("b:a");
    expect_sql("SELECT id, state FROM jobs ORDER BY number", "a running; b submitted; ");
    end(job, BHI_JOB_DONE, BH_OK);
    run("b");
    expect_jobs("a done; b done; ");
}

/* -- reports ------------------------------------------------------------------------------------
 */

struct text {
    char all[4096];
    int enough;
};

static bool print_job(void *user, const struct bhi_job_record *record) {
    struct text *text = user;
    sprintf(text->all + strlen(text->all), "%d %s %s %u/%u %s %d %s%s; ", (int)record->number,
            record->id, bhi_job_state_name(record->state), record->attempts, record->guilty,
            record->origin, (int)record->status, record->message,
            record->ended_ns ? "" : " unended");
    BHT_GT(record->submitted_ns, 0);
    BHT_STR_EQ(record->device, record->status == BH_PENDING ? "" : "gpu:1");
    return --text->enough != 0;
}

static bool print_attempt(void *user, const struct bhi_attempt_record *record) {
    struct text *text = user;
    const bh_verdict *verdict = &record->verdict;
    BHT_STR_EQ(verdict->kernel_name, record->ended_ns ? "k" : "");
    BHT_EQ(verdict->kernel_hash[2], record->ended_ns ? 3 : 0);
    BHT_STR_EQ(verdict->device, record->ended_ns ? "gpu:1" : "");
    sprintf(text->all + strlen(text->all), "%s#%u %d %d stream %u %d %d %d %d %llu %s; ",
            record->id, record->attempt, record->started, record->guilty, record->stream,
            (int)verdict->status, verdict->signal, verdict->exit_code, verdict->worker_pid,
            (unsigned long long)verdict->limit, verdict->message);
    return --text->enough != 0;
}

TEST(test_records) {
    struct text text = {.all = ""};
    fresh("a b:a c");
    run_one("a", BHI_JOB_WAITING, BH_DEADLINE);
    run_one("a", BHI_JOB_FAILED, BH_LOAD_FAILED);
    start("c");
    bhi_queue_flush(queue);
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &text));
    BHT_STR_EQ(text.all, "1 a failed 2/1  41 status 41; 2 b failed 0/0 a 2 ; "
                         "3 c running 1/0  2  unended; ");
    text = (struct text){.all = ""};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &text));
    BHT_STR_EQ(text.all, "a#1 1 1 stream 3 35 9 -1 77 5 status 35; "
                         "a#2 1 0 stream 3 41 9 -1 77 5 status 41; "
                         "c#1 1 0 stream 3 2 0 -1 0 0 ; ");
    text = (struct text){.all = "", .enough = 2};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &text));
    BHT_EQ(strstr(text.all, "c#1"), NULL);
    text = (struct text){.all = "", .enough = 1};
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &text));
    BHT_EQ(strstr(text.all, "2 b"), NULL);
}

/* -- the page -----------------------------------------------------------------------------------
 */

static char page[1 << 16];

static int find_on_page(void *user, int columns, char **values, char **names) {
    char word[128];
    for (int i = 0; i < columns; i++) {
        snprintf(word, sizeof word, "`%s`", values[i]);
        if (!strstr(page, word)) {
            BHT_FAIL("the page has no %s", word);
        }
    }
    ++*(int *)user;
    return 0;
}

/* docs/reports.md names every table and column, and what it asks of the database works. */
TEST(test_the_page) {
    static const char columns[] =
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
        "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    sqlite3 *db;
    int found = 0;
    FILE *file = fopen(BATCH_STATE_PAGE, "re");
    BHT_NE(file, NULL);
    BHT_WITHIN(fread(page, 1, sizeof page - 1, file), 1000, sizeof page - 2);
    fclose(file);
    fresh("a b:a");
    BHT_EQ(sqlite3_open_v2(place.database, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, columns, find_on_page, &found, NULL), SQLITE_OK);
    BHT_WITHIN(found, 30, 100);
    char *sql = strstr(page, "```sql\n");
    BHT_NE(sql, NULL);
    sql += strlen("```sql\n");
    *strstr(sql, "```") = '\0';
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}
