/* The queue with its journal: what is there after it was closed, or killed, and opened again. */
#include "journal_fixture.h"

#include <pthread.h>

/* -- closed and opened again --------------------------------------------------------------------
 */

static void test_what_is_kept(void) {
    struct place place;
    char id[64], cwd[4096];
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    strcpy(id, bhi_queue_batch_id(queue));
    strcpy(cwd, bhi_queue_cwd(queue));
    add(queue, "a b c:b d:c e:a f");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    run_one(queue, "b", BHI_JOB_WAITING, BH_DEADLINE);
    run_one(queue, "b", BHI_JOB_QUARANTINED, BH_WORKER_SIGNAL);
    struct bhi_job *last = take(queue, "e");
    bhi_queue_started(queue, last, 0);
    BHT_TRUE(bhi_queue_close(queue));
    expect_sql(&place, "SELECT id, state, sealed, attempts, guilty, origin, status FROM jobs",
               "a done 0 1 0 - 0; b quarantined 0 2 2 - 32; c failed 0 0 0 b -; "
               "d failed 0 0 0 b -; e running 0 1 0 - -; f waiting 0 0 0 - -; ");

    BHT_EQ(chdir("/"), 0);
    queue = again(&place);
    BHT_STR_EQ(bhi_queue_batch_id(queue), id);
    BHT_STR_EQ(bhi_queue_cwd(queue), cwd);
    BHT_EQ(chdir(cwd), 0);
    struct bhi_job *job = take(queue, "e");
    BHT_TRUE(job->interrupted);
    BHT_TRUE(!job->sealed);
    BHT_EQ(job->attempts, 1);
    BHT_EQ(job->retries, 2);
    bhi_queue_started(queue, job, 0);
    end(queue, job, BHI_JOB_DONE, BH_OK);
    run_one(queue, "f", BHI_JOB_DONE, BH_OK);
    take(queue, NULL);
    BHT_TRUE(bhi_queue_close(queue));
    expect_jobs(&place, "a done; b quarantined; c failed; d failed; e done; f done; ");
    /* The one that was cut off is there, and has no end. */
    expect_sql(&place, "SELECT attempt, started, ended_ns FROM attempt WHERE job = 5",
               "1 1 0; 2 1 2000; ");
    remove_place(&place);
}

static void test_everything_of_a_job(void) {
    struct place place;
    static const char line[] =
        "{\"id\": \"\\u00e4 '; DROP TABLE job; --\", \"kernel\": \"k\", \"groups\": [1], "
        "\"priority\": -3, \"retries\": 0, \"in\": {\"0\": \"x.npy\"}}";
    struct bhi_complaint complaint;
    struct bhi_job_spec spec;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    BHT_TRUE(bhi_job_parse(line, strlen(line), &spec, &complaint));
    spec.line = 42;
    BHT_EQ(bhi_queue_add(queue, &spec, 1, &complaint), BHI_QUEUE_OK);
    bhi_queue_close(queue);
    queue = again(&place);
    struct bhi_job *job = take(queue, spec.id);
    BHT_EQ(job->number, 1);
    BHT_STR_EQ(job->text, spec.text);
    BHT_EQ(job->line, 42);
    BHT_EQ(job->priority, -3);
    BHT_EQ(job->retries, 0);
    bhi_job_spec_free(&spec);
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_a_batch_is_not_begun_twice(void) {
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    expect_no_open(&place, false, BHI_QUEUE_BAD_INPUT, "has a batch of 1 job: continue it");
    bhi_queue_close(again(&place));
    remove_place(&place);
}

/* Of a process that was killed before its jobs were added nothing came. */
static void test_a_state_without_jobs_is_fresh(void) {
    struct place place;
    char id[64];
    make_place(&place);
    struct bhi_queue *queue = again(&place); /* resume of nothing just starts */
    strcpy(id, bhi_queue_batch_id(queue));
    bhi_queue_close(queue);
    queue = fresh(&place);
    BHT_NE(strcmp(bhi_queue_batch_id(queue), id), 0);
    add(queue, "a");
    bhi_queue_close(queue);
    remove_place(&place);
    make_place(&place);
    BHT_EQ(mkdir(place.folder, 0755), 0);
    bhi_queue_close(fresh(&place));
    struct stat status;
    BHT_EQ(stat(place.database, &status), 0);
    BHT_EQ(status.st_mode & 0777, 0600);
    remove_place(&place);
}

static void test_adding_again(void) {
    struct place place;
    struct bhi_complaint complaint;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    queue = again(&place);
    add(queue, "a b:a");
    add(queue, "c:b b:a d:a");
    BHT_EQ(try_add(queue, "b", &complaint), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "jobs.jsonl:1: the job \"b\" differs from the one");
    BHT_EQ(try_add(queue, "d:a", &complaint), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "given twice");
    run_one(queue, "b", BHI_JOB_DONE, BH_OK);
    run_one(queue, "c", BHI_JOB_DONE, BH_OK);
    run_one(queue, "d", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    expect_jobs(&place, "a done; b done; c done; d done; ");
    remove_place(&place);
}

static bool add_writer(struct bhi_queue *queue, const char *id, struct bhi_complaint *complaint) {
    char line[256];
    struct bhi_job_spec spec;
    sprintf(line,
            "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], \"out\": {\"0\": \"y:u8[1]\"}}",
            id);
    BHT_TRUE(bhi_job_parse(line, strlen(line), &spec, complaint));
    const bool good = bhi_queue_add(queue, &spec, 1, complaint) == BHI_QUEUE_OK;
    bhi_job_spec_free(&spec);
    return good;
}

/* What jobs of an earlier process write is known again when others come. */
static void test_paths_of_loaded_jobs(void) {
    struct place place;
    struct bhi_complaint complaint;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    BHT_TRUE(add_writer(queue, "a", &complaint));
    bhi_queue_close(queue);
    queue = again(&place);
    BHT_TRUE(!add_writer(queue, "b", &complaint));
    BHT_STR_HAS(complaint.text, "\"b\" writes y, which \"a\" (line 0) writes, too");
    BHT_TRUE(add_writer(queue, "a", &complaint));
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_retry_failed(void) {
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a c d");
    run_one(queue, "a", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run_one(queue, "c", BHI_JOB_FAILED, BH_INVALID_KERNEL);
    run_one(queue, "d", BHI_JOB_CANCELLED, BH_CANCELLED);
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_jobs(&place, "a quarantined; b failed; c failed; d cancelled; ");
    queue = again(&place);
    take(queue, "d"); /* without being asked */
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_jobs(&place, "a quarantined; b failed; c failed; d waiting; ");
    queue = open_state(&place, true, true);
    struct bhi_job *job = take(queue, "a");
    BHT_EQ(job->guilty, 0);
    BHT_EQ(job->attempts, 1);
    bhi_queue_started(queue, job, 0);
    end(queue, job, BHI_JOB_DONE, BH_OK);
    bhi_queue_flush(queue);
    expect_sql(&place, "SELECT id, state, guilty, origin FROM jobs",
               "a done 0 -; b waiting 0 -; c waiting 0 -; d waiting 0 -; ");
    run_one(queue, "b", BHI_JOB_DONE, BH_OK);
    take(queue, "c");
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_what_was_given_back(void) {
    struct place place;
    const struct bhi_attempt none = {.next = BHI_JOB_CANCELLED, .verdict = {.status = BH_PENDING}};
    const struct bhi_attempt refused = {.next = BHI_JOB_WAITING,
                                        .verdict = {.status = BH_UNAVAILABLE}};
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b");
    bhi_queue_ended(queue, take(queue, "a"), &none, 0);
    bhi_queue_ended(queue, take(queue, "b"), &refused, 0);
    BHT_EQ(take(queue, "b")->attempts, 0);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT id, state, attempts, status FROM jobs",
               "a cancelled 0 -; b waiting 0 6; ");
    expect_sql(&place, "SELECT job, attempt, started FROM attempt", "2 1 0; ");
    remove_place(&place);
}

/* -- sealed -------------------------------------------------------------------------------------
 */

struct seal {
    int pipe[2];
};

static void answer(void *user, bool durable) {
    struct seal *seal = user;
    BHT_EQ(write(seal->pipe[1], durable ? "y" : "n", 1), 1);
}

static char await_answer(struct seal *seal) {
    char c;
    BHT_EQ(read(seal->pipe[0], &c, 1), 1);
    return c;
}

static void test_sealed(void) {
    struct place place;
    struct seal seal;
    make_place(&place);
    BHT_EQ(pipe2(seal.pipe, O_CLOEXEC), 0);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "first sealed next:sealed");
    take(queue, "first");
    struct bhi_job *job = take(queue, "sealed");
    bhi_queue_started(queue, job, 1);
    seal_job(queue, job, "", answer, &seal);
    BHT_EQ(await_answer(&seal), 'y');
    expect_sql(&place, "SELECT id, state, sealed FROM jobs",
               "first waiting 0; sealed running 1; next submitted 0; ");
    bhi_queue_close(queue);

    for (int kills = 0; kills < 2; kills++) { /* and again, until it has ended */
        queue = again(&place);
        job = take(queue, "sealed"); /* before what has the lower number */
        BHT_TRUE(job->sealed);
        BHT_EQ(job->attempts, 1);
        take(queue, "first");
        take(queue, NULL);
        bhi_queue_close(queue);
    }
    queue = again(&place);
    job = take(queue, "sealed");
    const struct bhi_attempt finished = {.next = BHI_JOB_DONE, .verdict = {.status = BH_OK}};
    bhi_queue_ended(queue, job, &finished, 0);
    run_one(queue, "first", BHI_JOB_DONE, BH_OK);
    run_one(queue, "next", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT id, state, sealed, attempts FROM jobs",
               "first done 0 1; sealed done 0 1; next done 0 1; ");
    /* The attempt that sealed it is the one that has ended. */
    expect_sql(&place,
               "SELECT attempt, started, stream, started_ns, ended_ns, status FROM attempt WHERE "
               "job = 2",
               "1 1 1 4 6 0; ");
    close(seal.pipe[0]);
    close(seal.pipe[1]);
    remove_place(&place);
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
        add(argument, words);
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
static void test_adding_while_others_run(void) {
    struct place place;
    pthread_t thread;
    struct bhi_queue_counts counts;
    int seen = 0;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    BHT_EQ(pthread_create(&thread, NULL, add_rounds, queue), 0);
    do {
        struct bhi_job *job = bhi_queue_take(queue);
        if (job) {
            bhi_queue_started(queue, job, 0);
            end(queue, job, falls(job->id) ? BHI_JOB_FAILED : BHI_JOB_DONE,
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
    BHT_TRUE(bhi_queue_close(queue));
    remove_place(&place);
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

static void test_records(void) {
    struct place place;
    struct text text = {.all = ""};
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a c");
    run_one(queue, "a", BHI_JOB_WAITING, BH_DEADLINE);
    run_one(queue, "a", BHI_JOB_FAILED, BH_LOAD_FAILED);
    bhi_queue_started(queue, take(queue, "c"), 3);
    bhi_queue_flush(queue);
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &text));
    BHT_STR_EQ(text.all, "1 a failed 2/1  41 status 41; 2 b failed 0/0 a 2 ; "
                         "3 c running 1/0  2  unended; ");
    text = (struct text){.all = ""};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &text));
    BHT_STR_EQ(text.all, "a#1 1 1 stream 1 35 9 -1 77 5 status 35; "
                         "a#2 1 0 stream 1 41 9 -1 77 5 status 41; "
                         "c#1 1 0 stream 3 2 0 -1 0 0 ; ");
    text = (struct text){.all = "", .enough = 2};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &text));
    BHT_EQ(strstr(text.all, "c#1"), NULL);
    text = (struct text){.all = "", .enough = 1};
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &text));
    BHT_EQ(strstr(text.all, "2 b"), NULL);
    bhi_queue_close(queue);
    remove_place(&place);
}

/* -- the page -----------------------------------------------------------------------------------
 */

static char *read_page(void) {
    FILE *file = fopen(BATCH_STATE_PAGE, "re");
    char *page = calloc(1, 1 << 16);
    BHT_NE(file, NULL);
    BHT_NE(page, NULL);
    BHT_WITHIN(fread(page, 1, (1 << 16) - 1, file), 1000, (1 << 16) - 2);
    fclose(file);
    return page;
}

/* docs/batch_state.md names every table and column, and what it asks of the database works. */
static void test_the_page(void) {
    static const char columns[] =
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
        "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    struct place place;
    sqlite3 *db;
    sqlite3_stmt *row;
    char *page = read_page(), word[128];
    int found = 0;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a");
    BHT_EQ(sqlite3_open_v2(place.database, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    BHT_EQ(sqlite3_prepare_v2(db, columns, -1, &row, NULL), SQLITE_OK);
    for (; sqlite3_step(row) == SQLITE_ROW; found++) {
        for (int i = 0; i < 2; i++) {
            snprintf(word, sizeof word, "`%s`", (const char *)sqlite3_column_text(row, i));
            if (!strstr(page, word)) {
                BHT_FAIL("the page has no %s", word);
            }
        }
    }
    BHT_WITHIN(found, 30, 100);
    sqlite3_finalize(row);
    char *sql = strstr(page, "```sql\n");
    BHT_NE(sql, NULL);
    sql += strlen("```sql\n");
    *strstr(sql, "```") = '\0';
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    bhi_queue_close(queue);
    free(page);
    remove_place(&place);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_what_is_kept),
        BHT_TEST(test_everything_of_a_job),
        BHT_TEST(test_a_batch_is_not_begun_twice),
        BHT_TEST(test_a_state_without_jobs_is_fresh),
        BHT_TEST(test_adding_again),
        BHT_TEST(test_paths_of_loaded_jobs),
        BHT_TEST(test_retry_failed),
        BHT_TEST(test_what_was_given_back),
        BHT_TEST(test_sealed),
        BHT_TEST(test_adding_while_others_run),
        BHT_TEST(test_records),
        BHT_TEST(test_the_page),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
