/* What is left of a state when a file of it is lost or damaged: no job is lost with the log, and a
 * database that has lost its jobs is not taken for a new one. */
#include "journal_fixture.h"

enum { MOST = 1 << 18 };

static ssize_t read_all(const char *path, void *out) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? read(fd, out, MOST) : -1;
    BHT_LT(size, MOST);
    if (fd >= 0) {
        close(fd);
    }
    return size;
}

/* A process that ends without closing anything, as one that is killed, with "a" running. */
static void leave_batch(const struct place *place) {
    int status;
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        struct bhi_queue *queue = fresh(place);
        add(queue, "a b:a c");
        bhi_queue_started(queue, take(queue, "a"), 0);
        _exit(bhi_queue_flush(queue) ? 0 : 1);
    }
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
}

/* -- the log ------------------------------------------------------------------------------------
 */

enum damage { MISSING, EMPTY, CUT, FLIPPED, ZEROED, DAMAGES };

static void damage_log(const char *path, enum damage damage, size_t at) {
    static unsigned char log[MOST];
    const ssize_t size = read_all(path, log);
    BHT_GT(size, (ssize_t)at);
    switch (damage) {
    case MISSING:
        BHT_EQ(unlink(path), 0);
        return;
    case EMPTY:
    case CUT:
        BHT_EQ(truncate(path, damage == CUT ? (off_t)at : 0), 0);
        return;
    case FLIPPED:
        log[at] ^= 0x10;
        break;
    default:
        memset(log + at, 0, (size_t)size - at);
    }
    write_file(path, log, (size_t)size);
}

/* SQLite takes what it cannot read for the log's end. What was recorded last may be gone with it,
 * the jobs are not. */
static void test_a_damaged_log_takes_no_jobs(void) {
    static const size_t places[] = {0, 8, 24, 30, 40, 60, 4000};
    for (enum damage damage = MISSING; damage < DAMAGES; damage++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            struct place place;
            struct bhi_queue_counts counts;
            char path[112];
            make_place(&place);
            leave_batch(&place);
            path_of(&place, "batch.db-wal", path);
            damage_log(path, damage, places[i]);
            struct bhi_queue *queue = again(&place);
            bhi_queue_counts(queue, &counts);
            BHT_EQ(counts.total, 3);
            run_one(queue, "a", BHI_JOB_DONE, BH_OK);
            bhi_queue_close(queue);
            expect_jobs(&place, "a done; b waiting; c waiting; ");
            remove_place(&place);
        }
    }
}

/* It blocks nobody, and the log is moved when it has ended. */
static void test_who_reads_while_jobs_are_added(void) {
    struct place place;
    sqlite3 *db;
    static char text[MOST];
    char lock[112];
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    path_of(&place, "lock", lock);
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, "BEGIN; SELECT * FROM batch", NULL, NULL, NULL), SQLITE_OK);
    add(queue, "a b:a");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_GT(read_all(lock, text), 1);
    BHT_NE(memcmp(text, "used ", 5), 0);
    BHT_EQ(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    run_one(queue, "b", BHI_JOB_DONE, BH_OK);
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_GT(read_all(lock, text), 5);
    BHT_MEM_EQ(text, "used ", 5);
    bhi_queue_close(queue);
    sqlite3_close(db);
    expect_jobs(&place, "a done; b done; ");
    remove_place(&place);
}

/* -- the database -------------------------------------------------------------------------------
 */

static void expect_lost(const struct place *place) {
    static unsigned char before[MOST], now[MOST];
    char log[112];
    path_of(place, "batch.db-wal", log);
    const ssize_t size = read_all(place->database, before), log_size = read_all(log, now);
    for (int resume = 0; resume < 2; resume++) {
        expect_no_open(place, resume, BHI_QUEUE_ENVIRON,
                       "batch.db is damaged: the jobs that were in it are gone");
        BHT_EQ(read_all(place->database, now), size);
        BHT_TRUE(size < 0 || !memcmp(now, before, (size_t)size));
        BHT_EQ(read_all(log, now), log_size);
    }
}

static void test_a_database_without_its_jobs(void) {
    for (int killed = 0; killed < 2; killed++) {
        struct place place;
        static unsigned char good[MOST], page[4096];
        make_place(&place);
        leave_batch(&place);
        if (!killed) {
            bhi_queue_close(again(&place)); /* without a log then */
        }
        const ssize_t size = read_all(place.database, good);
        BHT_GT(size, (ssize_t)sizeof page);
        BHT_EQ(unlink(place.database), 0);
        expect_lost(&place);
        write_file(place.database, "", 0);
        expect_lost(&place);
        write_file(place.database, good, 50);
        expect_lost(&place);
        memcpy(page, good, 100); /* as SQLite makes it before the first table */
        memset(page + 40, 0, 4);
        write_file(place.database, page, sizeof page);
        expect_lost(&place);
        write_file(place.database, good, (size_t)size); /* a copy in its place */
        if (!killed) {
            alter(&place, "DELETE FROM job; DELETE FROM progress; DELETE FROM dependency");
            expect_lost(&place);
            write_file(place.database, good, (size_t)size);
        }
        bhi_queue_close(again(&place));
        expect_jobs(&place, "a waiting; b submitted; c waiting; ");
        remove_place(&place);
    }
}

/* Whose lock is gone, too: a log is not deleted, as SQLite would. */
static void test_a_log_alone(void) {
    struct place place;
    char lock[112];
    make_place(&place);
    leave_batch(&place);
    path_of(&place, "lock", lock);
    BHT_EQ(unlink(place.database), 0);
    BHT_EQ(unlink(lock), 0);
    expect_lost(&place);
    remove_place(&place);
}

/* What was made and never had a job is as good as new, whatever is missing of it. */
static void test_a_state_that_was_not_used(void) {
    struct place place;
    make_place(&place);
    bhi_queue_close(fresh(&place));
    bhi_queue_close(again(&place)); /* and nothing was added */
    BHT_EQ(truncate(place.database, 0), 0);
    bhi_queue_close(again(&place));
    BHT_EQ(unlink(place.database), 0);
    struct bhi_queue *queue = again(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    bhi_queue_close(again(&place));
    remove_place(&place);
}

/* -- rows ---------------------------------------------------------------------------------------
 */

/* SQLite keeps out what is of another type; where somebody has made the table anew, reading does.
 */
static void test_other_types(void) {
    static const char *const bad[][2] = {
        {"progress", "state = 'abc'"},   {"progress", "state = '1'"},
        {"progress", "state = NULL"},    {"progress", "state = 1.5"},
        {"progress", "state = x'01'"},   {"progress", "guilty = 'x'"},
        {"progress", "tried = ''"},      {"progress", "origin = 'a'"},
        {"progress", "sealed = 'yes'"},  {"progress", "verdict = 'x'"},
        {"progress", "started_ns = ''"}, {"job", "line = 'x'"},
        {"job", "priority = 'high'"},    {"job", "retries = NULL"},
        {"job", "submitted_ns = 'x'"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const table = bad[i][0];
        struct place place;
        char sql[512];
        sqlite3 *db;
        make_place(&place);
        struct bhi_queue *queue = fresh(&place);
        add(queue, "a b:a");
        bhi_queue_close(queue);
        snprintf(sql, sizeof sql, "UPDATE %s SET %s", table, bad[i][1]);
        BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
        /* What it can convert is a number afterwards. */
        if (!strstr(sql, "'1'")) {
            BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_CONSTRAINT);
        }
        sqlite3_close(db);
        snprintf(sql, sizeof sql,
                 "DROP VIEW jobs; CREATE TABLE copy AS SELECT * FROM %s; DROP TABLE %s; "
                 "ALTER TABLE copy RENAME TO %s; "
                 "UPDATE %s SET %s WHERE rowid = 2",
                 table, table, table, table, bad[i][1]);
        alter(&place, sql);
        struct bhi_complaint complaint;
        const enum bhi_queue_result result = try_open(&place, true, false, &queue, &complaint);
        if (strstr(sql, "'1'")) {
            BHT_EQ(result, BHI_QUEUE_OK);
            bhi_queue_close(queue);
        } else {
            if (result == BHI_QUEUE_OK) {
                BHT_FAIL("accepted: %s", bad[i][1]);
            }
            BHT_EQ(result, BHI_QUEUE_ENVIRON);
            BHT_STR_HAS(complaint.text, "batch.db is damaged");
        }
        remove_place(&place);
    }
}

/* Of a row that goes meanwhile no record is lost without a word. */
static void test_a_row_that_goes(void) {
    for (int i = 0; i < 2; i++) {
        struct place place;
        struct bhi_complaint complaint;
        make_place(&place);
        struct bhi_queue *queue = fresh(&place);
        add(queue, "a b");
        struct bhi_job *job = take(queue, "a");
        if (i) {
            bhi_queue_started(queue, job, 0);
            BHT_TRUE(bhi_queue_flush(queue));
        }
        alter(&place, "DELETE FROM progress WHERE job = 1");
        if (i) {
            end(queue, job, BHI_JOB_DONE, BH_OK);
        } else {
            bhi_queue_started(queue, job, 0);
        }
        BHT_TRUE(!bhi_queue_flush(queue));
        BHT_TRUE(bhi_queue_broken(queue, &complaint));
        BHT_STR_HAS(complaint.text, "batch.db is damaged");
        take(queue, NULL);
        BHT_TRUE(!bhi_queue_close(queue));
        /* Nothing of the transaction stays. */
        expect_sql(&place, "SELECT count(*), coalesce(sum(ended_ns), 0) FROM attempt",
                   i ? "1 0; " : "0 0; ");
        expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "is damaged");
        remove_place(&place);
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_a_damaged_log_takes_no_jobs),
        BHT_TEST(test_who_reads_while_jobs_are_added),
        BHT_TEST(test_a_database_without_its_jobs),
        BHT_TEST(test_a_log_alone),
        BHT_TEST(test_a_state_that_was_not_used),
        BHT_TEST(test_other_types),
        BHT_TEST(test_a_row_that_goes),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
