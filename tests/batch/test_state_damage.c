/* What is left of a state when a file of it is lost or damaged: no job is lost with the log, and a
 * database that has lost its jobs is not taken for a new one. */
#include "few_jobs.h"

/* A process that ends without closing anything, as one that is killed, with "a" running. */
static void leave_batch(void) {
    int status;
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        fresh("a b:a c");
        start("a");
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
    const ssize_t size = read_file(path, log);
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
TEST(test_a_damaged_log_takes_no_jobs) {
    static const size_t places[] = {0, 8, 24, 30, 40, 60, 4000};
    for (enum damage damage = MISSING; damage < DAMAGES; damage++) {
        for (size_t i = 0; i < BHT_COUNT(places); i++) {
            char path[128];
            renew_place();
            leave_batch();
            path_of("batch.db-wal", path);
            damage_log(path, damage, places[i]);
            again();
            run("a");
            expect_jobs("a done; b waiting; c waiting; ");
        }
    }
}

/* It blocks nobody, and the log is moved when it has ended. */
TEST(test_who_reads_while_jobs_are_added) {
    sqlite3 *db;
    static char text[MOST];
    char lock[128];
    fresh("");
    path_of("lock", lock);
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, "BEGIN; SELECT * FROM batch", NULL, NULL, NULL), SQLITE_OK);
    add("a b:a");
    run("a");
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_GT(read_file(lock, text), 1);
    BHT_NE(memcmp(text, "used ", 5), 0);
    BHT_EQ(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    run("b");
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_GT(read_file(lock, text), 5);
    BHT_MEM_EQ(text, "used ", 5);
    expect_jobs("a done; b done; ");
    sqlite3_close(db);
}

/* -- the database -------------------------------------------------------------------------------
 */

static void expect_lost(void) {
    static unsigned char before[MOST], now[MOST];
    char log[128];
    path_of("batch.db-wal", log);
    const ssize_t size = read_file(place.database, before), log_size = read_file(log, now);
    for (int resume = 0; resume < 2; resume++) {
        expect_no_open(resume, BHI_QUEUE_ENVIRON,
                       "batch.db is damaged: the jobs that were in it are gone");
        BHT_EQ(read_file(place.database, now), size);
        BHT_TRUE(size < 0 || !memcmp(now, before, (size_t)size));
        BHT_EQ(read_file(log, now), log_size);
    }
}

TEST(test_a_database_without_its_jobs) {
    for (int killed = 0; killed < 2; killed++) {
        static unsigned char good[MOST], page[4096];
        renew_place();
        leave_batch();
        if (!killed) {
            again(); /* without a log then */
        }
        const ssize_t size = read_file(place.database, good);
        BHT_GT(size, (ssize_t)sizeof page);
        BHT_EQ(unlink(place.database), 0);
        expect_lost();
        write_file(place.database, "", 0);
        expect_lost();
        write_file(place.database, good, 50);
        expect_lost();
        memcpy(page, good, 100); /* as SQLite makes it before the first table */
        memset(page + 40, 0, 4);
        write_file(place.database, page, sizeof page);
        expect_lost();
        write_file(place.database, good, (size_t)size); /* a copy in its place */
        if (!killed) {
            alter("DELETE FROM job; DELETE FROM progress; DELETE FROM dependency");
            expect_lost();
            write_file(place.database, good, (size_t)size);
        }
        again();
        expect_jobs("a waiting; b submitted; c waiting; ");
    }
}

/* Whose lock is gone, too: a log is not deleted, as SQLite would. */
TEST(test_a_log_alone) {
    char lock[128];
    leave_batch();
    path_of("lock", lock);
    BHT_EQ(unlink(place.database), 0);
    BHT_EQ(unlink(lock), 0);
    expect_lost();
}

/* What was made and never had a job is as good as new, whatever is missing of it. */
TEST(test_a_state_that_was_not_used) {
    fresh("");
    again(); /* and nothing was added */
    close_queue();
    BHT_EQ(truncate(place.database, 0), 0);
    again();
    close_queue();
    BHT_EQ(unlink(place.database), 0);
    again();
    add("a");
    again();
}

/* -- rows ---------------------------------------------------------------------------------------
 */

/* SQLite keeps out what is of another type; where somebody has made the table anew, reading does.
 */
TEST(test_other_types) {
    static const char *const bad[][2] = {
        {"progress", "state = 'abc'"},   {"progress", "state = '1'"},
        {"progress", "state = NULL"},    {"progress", "state = 1.5"},
        {"progress", "state = x'01'"},   {"progress", "guilty = 'x'"},
        {"progress", "tried = ''"},      {"progress", "origin = 'a'"},
        {"progress", "sealed = 'yes'"},  {"progress", "verdict = 'x'"},
        {"progress", "started_ns = ''"}, {"job", "line = 'x'"},
        {"job", "priority = 'high'"},    {"job", "retries = NULL"},
        {"job", "submitted_ns = 'x'"}};
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        const char *const table = bad[i][0], *const change = bad[i][1];
        const bool good = !strcmp(change, "state = '1'"); /* converted, it is a number */
        char sql[512];
        sqlite3 *db;
        renew_place();
        fresh("a b:a");
        close_queue();
        snprintf(sql, sizeof sql, "UPDATE %s SET %s", table, change);
        BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
        BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), good ? SQLITE_OK : SQLITE_CONSTRAINT);
        sqlite3_close(db);
        snprintf(sql, sizeof sql,
                 "DROP VIEW jobs; CREATE TABLE copy AS SELECT * FROM %s; DROP TABLE %s; "
                 "ALTER TABLE copy RENAME TO %s; "
                 "UPDATE %s SET %s WHERE rowid = 2",
                 table, table, table, table, change);
        alter(sql);
        if (try_open(true, false) != (good ? BHI_QUEUE_OK : BHI_QUEUE_ENVIRON) ||
            (!good && !strstr(complaint.text, "batch.db is damaged"))) {
            BHT_FAIL("%s: %s", change, complaint.text);
        }
    }
}

/* Of a row that goes meanwhile no record is lost without a word. */
TEST(test_a_row_that_goes) {
    for (int i = 0; i < 2; i++) {
        renew_place();
        fresh("a b");
        struct bhi_job *job = take("a");
        if (i) {
            bhi_queue_started(queue, job, 0);
            BHT_TRUE(bhi_queue_flush(queue));
        }
        alter_meanwhile("DELETE FROM progress WHERE job = 1");
        if (i) {
            end(job, BHI_JOB_DONE, BH_OK);
        } else {
            bhi_queue_started(queue, job, 0);
        }
        BHT_TRUE(!bhi_queue_flush(queue));
        BHT_TRUE(bhi_queue_broken(queue, &complaint));
        BHT_STR_HAS(complaint.text, "batch.db is damaged");
        take(NULL);
        BHT_TRUE(!close_queue());
        /* Nothing of the transaction stays. */
        expect_sql("SELECT count(*), coalesce(sum(ended_ns), 0) FROM attempt",
                   i ? "1 0; " : "0 0; ");
        expect_no_open(true, BHI_QUEUE_ENVIRON, "is damaged");
    }
}
