/* State folders that are refused: in use, of another version, damaged, no folders at all. */
#include "journal_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

static void test_one_process_at_a_time(void) {
    struct place place;
    char words[64];
    make_place(&place);
    int ready[2], done[2];
    BHT_EQ(pipe(ready), 0);
    BHT_EQ(pipe(done), 0);
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        char c;
        struct bhi_queue *queue = fresh(&place);
        add(queue, "a");
        (void)!write(ready[1], "r", 1);
        close(done[1]);
        (void)!read(done[0], &c, 1);
        _exit(0);
    }
    close(ready[1]); /* or a child that dies early would be waited for here */
    char c;
    BHT_EQ(read(ready[0], &c, 1), 1);
    sprintf(words, "is in use by another process, pid %ld", (long)child);
    expect_no_open(&place, true, BHI_QUEUE_BUSY, words);
    expect_no_open(&place, false, BHI_QUEUE_BUSY, words);
    close(done[1]);
    BHT_EQ(waitpid(child, NULL, 0), child);
    struct bhi_queue *queue = again(&place); /* however the other one ended */
    take(queue, "a");
    bhi_queue_close(queue);
    close(ready[0]);
    close(done[0]);
    remove_place(&place);
}

static void ignore(void *user, bool durable) {
    (void)user;
    BHT_TRUE(durable);
}

/* Format 4 had no tables of files at first. */
static void test_the_tables_of_files(void) {
    static const char sql[] =
        "SELECT path, mark, job, attempt FROM file JOIN used ON file.number = file ORDER BY job";
    const struct bhi_used_mark mark = {.size = 7, .modified_ns = 8, .changed_ns = 9};
    struct bhi_used used = {.bytes = NULL};
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b c");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    alter(&place, "DROP TABLE used; DROP TABLE file");
    BHT_TRUE(bhi_used_add(&used, &mark, "k\n1"));
    for (const char *id = "bc"; *id; id++) { /* each by a process of its own */
        queue = again(&place);
        struct bhi_job *job = take(queue, (char[]){*id, 0});
        bhi_queue_started(queue, job, 1);
        const struct bhi_attempt attempt = {.started = true, .verdict = {.status = BH_OK}};
        bhi_queue_sealed(queue, job, &attempt, "", &used, ignore, NULL);
        end(queue, job, BHI_JOB_DONE, BH_OK);
        bhi_queue_close(queue);
    }
    expect_sql(&place, sql, "k\n1 7@8@9 2 1; k\n1 7@8@9 3 1; ");
    bhi_used_free(&used);
    remove_place(&place);
}

/* -- file systems that lack something ----------------------------------------------------------
 */

static int no_locks, no_records; /* errno of flock, and of locks on records; 0: they work */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation) {
    errno = no_locks;
    return no_locks ? -1 : __real_flock(fd, operation);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    errno = no_records;
    return no_records && command == F_GETLK ? -1 : __real_fcntl(fd, command, argument);
}

/* As a FUSE file system with direct_io. */
static void *map_nothing(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    (void)at, (void)size, (void)protection, (void)flags, (void)fd, (void)offset;
    errno = ENODEV;
    return MAP_FAILED;
}

/* The calls of SQLite as the file system answers them; NULL: the kernel's. */
static void replace_mmap(void *(*call)(void *, size_t, int, int, int, off_t)) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    BHT_EQ(vfs->xSetSystemCall(vfs, "mmap", (sqlite3_syscall_ptr)call), SQLITE_OK);
}

static void test_a_file_system_without_shared_mappings(void) {
    struct place place;
    make_place(&place);
    replace_mmap(map_nothing);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a c");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    struct bhi_job *job = take(queue, "b");
    bhi_queue_started(queue, job, 1);
    seal_job(queue, job, "", ignore, NULL);
    BHT_TRUE(bhi_queue_flush(queue));
    bhi_queue_close(queue);
    queue = again(&place); /* it has a log, or is in a mode that has one */
    end(queue, take(queue, "b"), BHI_JOB_DONE, BH_OK); /* sealed */
    run_one(queue, "c", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    replace_mmap(NULL);
    queue = again(&place); /* and it is moved to another one */
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_jobs(&place, "a done; b done; c done; ");
    remove_place(&place);
}

static void test_a_file_system_without_locks(void) {
    static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP};
    struct place place;
    char words[160];
    make_place(&place);
    for (size_t i = 0; i < BHT_COUNT(errors); i++) {
        snprintf(words, sizeof words,
                 "this file system has no locks (%s): give a folder on another one (--state)",
                 strerror(errors[i]));
        no_locks = errors[i];
        expect_no_open(&place, false, BHI_QUEUE_ENVIRON, words);
        no_locks = 0;
        no_records = errors[i];
        expect_no_open(&place, false, BHI_QUEUE_ENVIRON, words);
        no_records = 0;
    }
    struct bhi_queue *queue = fresh(&place); /* nothing is left */
    add(queue, "a");
    bhi_queue_close(queue);
    remove_place(&place);
}

static bool print_devices(void *user, const struct bhi_attempt_record *record) {
    strcat(user, record->verdict.device);
    strcat(user, ";");
    return true;
}

/* At first, format 4 had no column for the device. A version that does not know it goes on with a
 * database that has it, and this one with a database that has not. */
static void test_the_column_of_the_device(void) {
    static const char has[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'";
    struct place place;
    char devices[64] = "";
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b c");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    alter(&place, "PRAGMA user_version = 4; ALTER TABLE attempt DROP COLUMN device");
    queue = again(&place);
    run_one(queue, "b", BHI_JOB_DONE, BH_OK);
    bhi_queue_flush(queue);
    BHT_TRUE(bhi_queue_each_attempt(queue, print_devices, devices));
    BHT_STR_EQ(devices, ";gpu:1;");
    bhi_queue_close(queue);
    expect_sql(&place, has, "1; ");
    /* As that version writes. */
    alter(&place,
          "INSERT INTO attempt (job, attempt, started, stream, started_ns, ended_ns, guilty, "
          "status, executed, signal, exit_code, worker_pid, reached, kernel_name, kernel_hash, "
          "message, blame) VALUES (3, 1, 1, 0, 5, 6, 0, 0, 2, 0, -1, 77, 0, 'k', NULL, '', 0); "
          "UPDATE progress SET state = 3, tried = 1, attempts = 1, verdict = 1 WHERE job = 3");
    queue = again(&place);
    devices[0] = 0;
    BHT_TRUE(bhi_queue_each_attempt(queue, print_devices, devices));
    BHT_STR_EQ(devices, ";gpu:1;;");
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_other_versions(void) {
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    alter(&place, "PRAGMA user_version = 7");
    expect_no_open(
        &place, true, BHI_QUEUE_ENVIRON,
        "was made by another version of bulkhead: it has format 7, this one reads 3 and 4");
    alter(&place, "PRAGMA user_version = 2");
    expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "it has format 2, this one reads 3 and 4");
    alter(&place, "PRAGMA user_version = 4; PRAGMA application_id = 1");
    expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "is another program's database");
    alter(&place, "PRAGMA application_id = 1112042092");
    bhi_queue_close(again(&place));
    alter(&place, "PRAGMA user_version = 3"); /* read, and made the present one */
    bhi_queue_close(again(&place));
    expect_sql(&place, "PRAGMA user_version", "4; ");
    expect_sql(&place, "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'",
               "1; ");
    remove_place(&place);
    make_place(&place);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    alter(&place, "CREATE TABLE t (x)");
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "is another program's database");
    remove_place(&place);
}

/* What is in a folder that is not ours is not touched, and nothing is put into it. */
static void test_a_refused_folder_is_as_it_was(void) {
    struct place place;
    struct stat status;
    char lock[112];
    make_place(&place);
    path_of(&place, "lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    alter(&place, "CREATE TABLE t (x)");
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "is another program's database");
    BHT_EQ(stat(lock, &status), -1);
    write_file(lock, "theirs", 6);
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "is another program's database");
    BHT_EQ(stat(lock, &status), 0);
    BHT_EQ(status.st_size, 6);
    BHT_EQ(unlink(lock), 0);
    write_file(place.database, "short", 5);
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    BHT_EQ(stat(lock, &status), -1);
    BHT_EQ(unlink(place.database), 0);

    bhi_queue_close(fresh(&place));
    BHT_EQ(unlink(lock), 0);
    alter(&place, "PRAGMA user_version = 7");
    expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "it has format 7, this one reads 3 and 4");
    BHT_EQ(stat(lock, &status), -1);
    remove_place(&place);
}

/* -- with a log ---------------------------------------------------------------------------------
 */

struct content {
    char bytes[1 << 17];
    ssize_t size; /* -1: there is none */
};

static void read_content(const struct place *place, const char *suffix, struct content *out) {
    char path[112];
    snprintf(path, sizeof path, "%s%s", place->database, suffix);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    out->size = fd >= 0 ? read(fd, out->bytes, sizeof out->bytes) : -1;
    BHT_LT(out->size, (ssize_t)sizeof out->bytes);
    if (fd >= 0) {
        close(fd);
    }
}

static void copy_content(const struct place *from, const struct place *to, const char *suffix) {
    static struct content content;
    char path[112];
    read_content(from, suffix, &content);
    BHT_GT(content.size, 0);
    snprintf(path, sizeof path, "%s%s", to->database, suffix);
    write_file(path, content.bytes, (size_t)content.size);
}

/* What a kill leaves of |from| once |sql| has been executed: file and log. */
static void leave_log(const struct place *from, const char *sql, struct place *to) {
    sqlite3 *db;
    make_place(to);
    BHT_EQ(mkdir(to->folder, 0700), 0);
    BHT_EQ(sqlite3_open(from->database, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    copy_content(from, to, "");
    copy_content(from, to, "-wal");
    BHT_EQ(sqlite3_close(db), SQLITE_OK);
}

static void expect_unchanged(const struct place *place, bool resume, enum bhi_queue_result expected,
                             const char *words, const char *lock) {
    static struct content database, log, now;
    struct stat status;
    char path[112];
    path_of(place, "lock", path);
    if (lock) {
        write_file(path, lock, strlen(lock));
    }
    read_content(place, "", &database);
    read_content(place, "-wal", &log);
    for (int i = 0; i < 2; i++) {
        expect_no_open(place, resume, expected, words);
        read_content(place, "", &now);
        BHT_EQ(now.size, database.size);
        BHT_MEM_EQ(now.bytes, database.bytes, (size_t)now.size);
        read_content(place, "-wal", &now);
        BHT_EQ(now.size, log.size);
        BHT_TRUE(now.size < 0 || !memcmp(now.bytes, log.bytes, (size_t)now.size));
        BHT_EQ(stat(path, &status), lock ? 0 : -1);
    }
    if (lock) {
        BHT_EQ(unlink(path), 0);
    }
}

static void test_the_log_of_a_refused_folder_stays(void) {
    struct place place, left;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    leave_log(&place, "PRAGMA user_version = 7", &left); /* the file says 4 still */
    expect_unchanged(&left, true, BHI_QUEUE_ENVIRON, "it has format 7, this one reads 3 and 4",
                     NULL);
    expect_unchanged(&left, true, BHI_QUEUE_ENVIRON, "it has format 7, this one reads 3 and 4",
                     "77\n");
    alter(&left, "PRAGMA user_version = 4"); /* nothing is lost */
    bhi_queue_close(again(&left));
    remove_place(&left);

    alter(&place, "PRAGMA user_version = 4");
    leave_log(&place, "UPDATE job SET line = 9", &left);
    expect_unchanged(&left, false, BHI_QUEUE_BAD_INPUT, "has a batch of 1 job:", NULL);
    bhi_queue_close(again(&left));
    struct stat status;
    char path[112];
    snprintf(path, sizeof path, "%s-wal", left.database);
    BHT_EQ(stat(path, &status), -1); /* one that is accepted is put in order */
    expect_sql(&left, "SELECT line FROM job", "9; ");
    remove_place(&left);
    leave_log(&place, "UPDATE progress SET state = 9", &left);
    expect_unchanged(&left, true, BHI_QUEUE_ENVIRON, "is damaged", NULL);
    remove_place(&left);
    remove_place(&place);
}

static void test_the_log_of_another_program_stays(void) {
    static const char words[] = "is another program's database";
    struct place place, left;
    make_place(&place);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    /* Its tables are in the log alone, then in the file, too. */
    for (int i = 0; i < 2; i++) {
        leave_log(&place,
                  i ? "INSERT INTO t VALUES (1)" : "PRAGMA journal_mode = WAL; CREATE TABLE t (x)",
                  &left);
        expect_unchanged(&left, false, BHI_QUEUE_ENVIRON, words, NULL);
        expect_unchanged(&left, true, BHI_QUEUE_ENVIRON, words, "theirs");
        remove_place(&left);
    }
    remove_place(&place);
}

static void test_locks_that_are_none(void) {
    struct place place;
    struct stat status;
    char lock[112];
    make_place(&place);
    path_of(&place, "lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    write_file(lock, "theirs", 6);
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "/lock is another program's file");
    BHT_EQ(stat(lock, &status), 0);
    BHT_EQ(status.st_size, 6);
    BHT_EQ(stat(place.database, &status), -1);
    BHT_EQ(unlink(lock), 0);
    BHT_EQ(mkfifo(lock, 0600), 0);
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "/lock is not a regular file");
    BHT_EQ(unlink(lock), 0);
    write_file(lock, "4194304\n", 8); /* of one that is long gone */
    bhi_queue_close(fresh(&place));
    remove_place(&place);
}

/* -- what is in it ------------------------------------------------------------------------------
 */

static void test_what_is_no_database(void) {
    struct place place;
    char garbage[8192];
    uint64_t random = 3;
    struct stat status;
    make_place(&place);
    for (size_t i = 0; i < sizeof garbage; i++) {
        garbage[i] = (char)next_random(&random);
    }
    BHT_EQ(mkdir(place.folder, 0700), 0);
    write_file(place.database, garbage, sizeof garbage);
    expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    write_file(place.database, "short", 5);
    expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    /* Nothing of it has been written over. */
    BHT_EQ(stat(place.database, &status), 0);
    BHT_EQ(status.st_size, 5);
    BHT_EQ(unlink(place.database), 0);

    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b c d e f g h");
    bhi_queue_close(queue);
    BHT_EQ(stat(place.database, &status), 0);
    BHT_GT(status.st_size, 8192);
    BHT_EQ(truncate(place.database, 8192), 0);
    char lock[112];
    path_of(&place, "lock", lock);
    BHT_EQ(unlink(lock), 0);
    expect_unchanged(&place, true, BHI_QUEUE_ENVIRON, "is damaged", NULL);
    BHT_EQ(truncate(place.database, 0), 0);
    bhi_queue_close(fresh(&place));
    remove_place(&place);
}

/* Any page overwritten: it is refused, or what is loaded makes sense. */
static void test_damaged_pages(void) {
    struct place place;
    uint64_t random = 5;
    int refused = 0;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a c:a,b d e f");
    run_one(queue, "a", BHI_JOB_FAILED, BH_DEADLINE);
    bhi_queue_close(queue);
    const int fd = open(place.database, O_RDONLY | O_CLOEXEC);
    static unsigned char good[1 << 17], bad[1 << 17];
    const ssize_t size = read(fd, good, sizeof good);
    close(fd);
    BHT_WITHIN(size, 8192, sizeof good - 1);
    for (int round = 0; round < 400; round++) {
        struct bhi_complaint complaint;
        memcpy(bad, good, (size_t)size);
        for (uint64_t n = 1 + random_below(&random, 4); n > 0; n--) {
            bad[100 + random_below(&random, (uint64_t)size - 100)] =
                (unsigned char)next_random(&random);
        }
        write_file(place.database, bad, (size_t)size);
        const enum bhi_queue_result result = try_open(&place, true, round % 2, &queue, &complaint);
        refused += result != BHI_QUEUE_OK;
        if (result != BHI_QUEUE_OK) {
            BHT_EQ(result, BHI_QUEUE_ENVIRON);
            BHT_STR_HAS(complaint.text, "batch.db");
            continue;
        }
        struct bhi_job *job;
        (void)bhi_queue_add(queue, NULL, 0, &complaint);
        while ((job = bhi_queue_take(queue))) {
            end(queue, job, BHI_JOB_DONE, BH_OK);
        }
        (void)bhi_queue_close(queue);
    }
    BHT_GT(refused, 20);
    remove_place(&place);
}

static void test_rows_that_make_no_sense(void) {
    static const char *const sql[] = {
        "UPDATE progress SET state = 9 WHERE job = 2",
        "UPDATE progress SET state = -1 WHERE job = 2",
        "UPDATE progress SET origin = 77 WHERE job = 2",
        "UPDATE job SET id = '' WHERE number = 1",
        "DELETE FROM job WHERE number = 1",
        "INSERT INTO dependency VALUES (1, 2)", /* a circle */
        "INSERT INTO dependency VALUES (1, 77)",
        "INSERT INTO dependency VALUES (0, 1)",
        "INSERT INTO dependency VALUES (1, 1)",
        "UPDATE batch SET id = '../../x'",
        "UPDATE batch SET cwd = 'x'",
        "UPDATE batch SET id = ''",
        "DELETE FROM batch",
        "INSERT INTO batch SELECT * FROM batch",
        "INSERT INTO batch SELECT 'aa', cwd, jobs_path, created_ns FROM batch",
        "DELETE FROM progress WHERE job = 2",
        "DELETE FROM progress",
        "INSERT INTO progress SELECT 3, 1, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0",
        "UPDATE progress SET job = 7 WHERE job = 2",
        "UPDATE progress SET sealed = 2 WHERE job = 2",
        "UPDATE progress SET tried = -1 WHERE job = 2",
        "UPDATE progress SET attempts = -1 WHERE job = 2",
        "UPDATE progress SET guilty = -1 WHERE job = 2",
        "UPDATE progress SET victim = -1 WHERE job = 2",
        "UPDATE progress SET attempts = 4294967296 WHERE job = 2",
        "UPDATE progress SET verdict = -1 WHERE job = 2",
        "UPDATE progress SET origin = 0 WHERE job = 2",
        "UPDATE progress SET ended_ns = -1 WHERE job = 2",
        "UPDATE job SET line = -1 WHERE number = 2",
        "UPDATE job SET retries = -1 WHERE number = 2",
        "UPDATE job SET priority = 2147483648 WHERE number = 2",
        "UPDATE job SET number = -1 WHERE number = 2",
        ("INSERT INTO attempt (job, attempt, started, stream, started_ns, ended_ns) "
         "VALUES (1, -1, 1, 0, 0, 0)"),
        "DROP VIEW jobs; DROP TABLE attempt",
        "DROP VIEW jobs; DROP TABLE progress",
        "DROP VIEW jobs; DROP TABLE job",
        "DROP TABLE dependency",
        "DROP TABLE batch",
        "DROP VIEW jobs; ALTER TABLE attempt DROP COLUMN message",
        "DROP VIEW jobs; ALTER TABLE progress DROP COLUMN outputs",
    };
    for (size_t i = 0; i < sizeof sql / sizeof sql[0]; i++) {
        struct place place;
        make_place(&place);
        struct bhi_queue *queue = fresh(&place);
        add(queue, "a b:a");
        bhi_queue_close(queue);
        alter(&place, sql[i]);
        expect_unchanged(&place, true, BHI_QUEUE_ENVIRON, "is damaged", "77\n");
        remove_place(&place);
    }
}

static void test_folders_that_are_none(void) {
    struct place place;
    make_place(&place);
    write_file(place.folder, "", 0);
    expect_no_open(&place, false, BHI_QUEUE_BAD_INPUT, "is not a folder");
    unlink(place.folder);
    char folder[80];
    strcpy(folder, place.folder);
    strcat(place.folder, "/deep");
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "cannot be made: No such file or directory");
    strcpy(place.folder, folder);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    BHT_EQ(mkdir(place.database, 0700), 0);
    expect_no_open(&place, false, BHI_QUEUE_ENVIRON, "batch.db cannot be opened: Is a directory");
    struct stat status;
    strcat(folder, "/lock");
    BHT_EQ(stat(folder, &status), -1);
    remove_place(&place);
}

/* Another program that writes to the database: it is waited for, not for ever. */
static void test_a_database_that_is_held(void) {
    struct place place;
    sqlite3 *db;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct bhi_complaint complaint;
    BHT_EQ(try_open(&place, true, false, &queue, &complaint), BHI_QUEUE_OK);
    BHT_EQ(bhi_queue_add(queue, NULL, 0, &complaint), BHI_QUEUE_ENVIRON);
    BHT_STR_HAS(complaint.text, "batch.db is locked by another program");
    bhi_queue_close(queue);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    bhi_queue_close(again(&place));
    remove_place(&place);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_one_process_at_a_time),
        BHT_TEST(test_other_versions),
        BHT_TEST(test_the_column_of_the_device),
        BHT_TEST(test_the_tables_of_files),
        BHT_TEST(test_a_file_system_without_shared_mappings),
        BHT_TEST(test_a_file_system_without_locks),
        BHT_TEST(test_a_refused_folder_is_as_it_was),
        BHT_TEST(test_the_log_of_a_refused_folder_stays),
        BHT_TEST(test_the_log_of_another_program_stays),
        BHT_TEST(test_locks_that_are_none),
        BHT_TEST(test_what_is_no_database),
        BHT_TEST(test_damaged_pages),
        BHT_TEST(test_rows_that_make_no_sense),
        BHT_TEST(test_folders_that_are_none),
        BHT_TEST(test_a_database_that_is_held),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
