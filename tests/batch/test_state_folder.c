/* State folders that are refused: in use, of another version, damaged, no folders at all. */
#include "few_jobs.h"

#include "batch/journal/lock.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>

TEST(test_one_process_at_a_time) {
    char words[64];
    int ready[2], done[2];
    BHT_EQ(pipe(ready), 0);
    BHT_EQ(pipe(done), 0);
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        char c;
        fresh("a");
        (void)!write(ready[1], "r", 1);
        close(done[1]);
        (void)!read(done[0], &c, 1);
        _exit(0);
    }
    close(ready[1]); /* or a child that dies early would be waited for here */
    char c;
    BHT_EQ(read(ready[0], &c, 1), 1);
    sprintf(words, "is in use by another process, pid %ld: wait", (long)child);
    expect_no_open(true, BHI_QUEUE_BUSY, words);
    expect_no_open(false, BHI_QUEUE_BUSY, words);
    close(done[1]);
    BHT_EQ(waitpid(child, NULL, 0), child);
    again(); /* however the other one ended */
    take("a");
    close_queue();
    close(ready[0]);
    close(done[0]);
}

/* Format 4 had no tables of files at first. */
TEST(test_the_tables_of_files) {
    static const char sql[] =
        "SELECT path, mark, job, attempt FROM file JOIN used ON file.number = file ORDER BY job";
    const struct bhi_used_mark mark = {.size = 7, .modified_ns = 8, .changed_ns = 9};
    struct bhi_used used = {.bytes = NULL};
    fresh("a b c");
    run("a");
    alter("DROP TABLE used; DROP TABLE file");
    BHT_TRUE(bhi_used_add(&used, &mark, "k\n1"));
    for (const char *id = "bc"; *id; id++) { /* each by a process of its own */
        again();
        struct bhi_job *job = start((char[]){*id, 0});
        const struct bhi_attempt attempt = {.started = true, .verdict = {.status = BH_OK}};
        bhi_queue_sealed(queue, job, &attempt, "", &used, expect_durable, NULL);
        end(job, BHI_JOB_DONE, BH_OK);
    }
    expect_kept(sql, "k\n1 7@8@9 2 1; k\n1 7@8@9 3 1; ");
    bhi_used_free(&used);
}

/* -- file systems that lack something ----------------------------------------------------------
 */

static int no_locks, no_records;   /* errno of flock, and of locks on records; 0: they work */
static void (*before_flock)(void); /* once; NULL: nothing happens then */
static void (*before_open)(void);  /* of |opened|, once, when it was opened |unhindered| times */
static const char *opened;
static int unhindered;

BHT_WRAP(int, flock, int fd, int operation) {
    void (*const happens)(void) = before_flock;
    before_flock = NULL;
    if (happens) {
        happens();
    }
    errno = no_locks;
    return no_locks ? -1 : __real_flock(fd, operation);
}

BHT_WRAP(int, openat, int folder, const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (before_open && !strcmp(name, opened) && unhindered-- == 0) {
        void (*const happens)(void) = before_open;
        before_open = NULL;
        happens();
    }
    return __real_openat(folder, name, flags, mode);
}

BHT_WRAP(int, fcntl, int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    errno = no_records;
    return no_records && command == F_GETLK ? -1 : __real_fcntl(fd, command, argument);
}

/* As a FUSE file system with direct_io. */
static void *map_nothing(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    errno = ENODEV;
    return MAP_FAILED;
}

/* The calls of SQLite as the file system answers them; NULL: the kernel's. */
static void replace_mmap(void *(*call)(void *, size_t, int, int, int, off_t)) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    BHT_EQ(vfs->xSetSystemCall(vfs, "mmap", (sqlite3_syscall_ptr)call), SQLITE_OK);
}

TEST(test_a_file_system_without_shared_mappings) {
    replace_mmap(map_nothing);
    fresh("a b:a c");
    run("a");
    seal("b");
    BHT_TRUE(bhi_queue_flush(queue));
    again();                             /* it has a log, or is in a mode that has one */
    end(take("b"), BHI_JOB_DONE, BH_OK); /* sealed */
    run("c");
    close_queue();
    replace_mmap(NULL);
    again(); /* and it is moved to another one */
    take(NULL);
    expect_jobs("a done; b done; c done; ");
}

TEST(test_a_file_system_without_locks) {
    static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP};
    char words[160];
    for (size_t i = 0; i < BHT_COUNT(errors); i++) {
        snprintf(words, sizeof words,
                 "this file system has no locks (%s): give a folder on another one (--state)",
                 strerror(errors[i]));
        no_locks = errors[i];
        expect_no_open(false, BHI_QUEUE_ENVIRON, words);
        no_locks = 0;
        no_records = errors[i];
        expect_no_open(false, BHI_QUEUE_ENVIRON, words);
        no_records = 0;
    }
    fresh("a"); /* nothing is left */
}

static int newer_lock;

static void replace_lock(void) {
    char path[128];
    path_of("lock", path);
    BHT_EQ(unlink(path), 0);
    newer_lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    BHT_EQ(__real_flock(newer_lock, LOCK_EX), 0);
}

static void take_lock(void) {
    char path[128];
    path_of("lock", path);
    newer_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    BHT_EQ(__real_flock(newer_lock, LOCK_EX), 0);
}

static void make_lock(void) {
    take_lock();
    BHT_EQ(close(newer_lock), 0);
    newer_lock = -1;
}

static void remove_lock(void) {
    char path[128];
    path_of("lock", path);
    (void)unlink(path);
    before_flock = remove_lock; /* again */
}

/* Two processes meet, of which one makes the lock, takes it, or takes it away, at any time: one of them
 * has the folder, and the other leaves nothing behind and takes nothing away. */
TEST(test_processes_that_meet_at_the_lock) {
    static const struct {
        bool there, refused; /* a lock is; there are jobs, for which it does not ask */
        void (*at_flock)(void), (*at_open)(void);
        const char *opened;
        int unhindered;
        enum bhi_queue_result result;
        const char *words;
        bool stays; /* there is a lock afterwards */
    } rows[] = {
        {true, false, replace_lock, NULL, "", 0, BHI_QUEUE_BUSY, "is in use by another", true},
        {false, false, replace_lock, NULL, "", 0, BHI_QUEUE_BUSY, "is in use by another", true},
        {false, false, take_lock, NULL, "", 0, BHI_QUEUE_BUSY, "is in use by another", true},
        {false, false, NULL, take_lock, "lock", 1, BHI_QUEUE_BUSY, "is in use by another", true},
        {false, false, NULL, make_lock, "lock", 1, BHI_QUEUE_OK, "", true},
        {false, true, NULL, make_lock, "lock", 1, BHI_QUEUE_BAD_INPUT, "has a batch of 1", true},
        {false, true, NULL, replace_lock, "batch.db", 1, BHI_QUEUE_BAD_INPUT, "has a batch of 1",
         true},
        {false, true, NULL, NULL, "", 0, BHI_QUEUE_BAD_INPUT, "has a batch of 1", false},
        {true, false, remove_lock, NULL, "", 0, BHI_QUEUE_ENVIRON,
         "/lock was removed each time it was opened", false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        char path[128];
        renew_place();
        fresh("a");
        close_queue();
        path_of("lock", path);
        BHT_TRUE(rows[i].there || unlink(path) == 0);
        newer_lock = -1;
        const int fds = count_fds();
        before_flock = rows[i].at_flock;
        before_open = rows[i].at_open;
        opened = rows[i].opened;
        unhindered = rows[i].unhindered;
        const enum bhi_queue_result result = try_open(!rows[i].refused, false);
        before_flock = NULL;
        if (result != rows[i].result) {
            BHT_FAIL("row %zu: %d, %s", i, (int)result, complaint.text);
        }
        BHT_EQ(before_open, NULL); /* it has happened */
        BHT_STR_HAS(complaint.text, rows[i].words);
        close_queue();
        if (newer_lock >= 0) { /* it is still the other's */
            struct stat held, named;
            BHT_TRUE(fstat(newer_lock, &held) == 0 && stat(path, &named) == 0);
            BHT_EQ(held.st_ino, named.st_ino);
            BHT_EQ(close(newer_lock), 0);
        }
        BHT_EQ(size_of("lock") >= 0, rows[i].stays);
        BHT_EQ(count_fds(), fds);
        again();
        take("a");
    }
}

static bool print_devices(void *user, const struct bhi_attempt_record *record) {
    strcat(user, record->verdict.device);
    strcat(user, ";");
    return true;
}

/* At first, format 4 had no column for the device. A version that does not know it goes on with a
 * database that has it, and this one with a database that has not. */
TEST(test_the_column_of_the_device) {
    static const char has[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'";
    char devices[64] = "";
    fresh("a b c");
    run("a");
    alter("PRAGMA user_version = 4; ALTER TABLE attempt DROP COLUMN device");
    again();
    run("b");
    bhi_queue_flush(queue);
    BHT_TRUE(bhi_queue_each_attempt(queue, print_devices, devices));
    BHT_STR_EQ(devices, ";gpu:1;");
    expect_kept(has, "1; ");
    /* As that version writes. */
    alter("INSERT INTO attempt (job, attempt, started, stream, started_ns, ended_ns, guilty, "
          "status, executed, signal, exit_code, worker_pid, reached, kernel_name, kernel_hash, "
          "message, blame) VALUES (3, 1, 1, 0, 5, 6, 0, 0, 2, 0, -1, 77, 0, 'k', NULL, '', 0); "
          "UPDATE progress SET state = 3, tried = 1, attempts = 1, verdict = 1 WHERE job = 3");
    again();
    devices[0] = 0;
    BHT_TRUE(bhi_queue_each_attempt(queue, print_devices, devices));
    BHT_STR_EQ(devices, ";gpu:1;;");
}

TEST(test_other_versions) {
    fresh("a");
    alter("PRAGMA user_version = 7");
    expect_no_open(
        true, BHI_QUEUE_ENVIRON,
        "was made by another version of bulkhead: it has format 7, this one reads 3 and 4");
    alter("PRAGMA user_version = 2");
    expect_no_open(true, BHI_QUEUE_ENVIRON, "it has format 2, this one reads 3 and 4");
    alter("PRAGMA user_version = 4; PRAGMA application_id = 1");
    expect_no_open(true, BHI_QUEUE_ENVIRON, "is another program's database");
    alter("PRAGMA application_id = 1112042092");
    again();
    alter("PRAGMA user_version = 3");
    BHT_EQ(open_with((struct bhi_queue_options){.resume = true, .dry_run = true}), BHI_QUEUE_OK);
    expect_kept("PRAGMA user_version", "3; "); /* a look changes nothing */
    again();                                   /* read, and made the present one */
    expect_sql("PRAGMA user_version", "4; ");
    expect_sql("SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'device'", "1; ");
    renew_place();
    BHT_EQ(mkdir(place.folder, 0700), 0);
    alter("CREATE TABLE t (x)");
    expect_no_open(false, BHI_QUEUE_ENVIRON, "is another program's database");
}

/* What is in a folder that is not ours is not touched, and nothing is put into it. */
TEST(test_a_refused_folder_is_as_it_was) {
    char lock[128];
    path_of("lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    alter("CREATE TABLE t (x)");
    expect_no_open(false, BHI_QUEUE_ENVIRON, "is another program's database");
    BHT_EQ(size_of("lock"), -1);
    write_file(lock, "theirs", 6);
    expect_no_open(false, BHI_QUEUE_ENVIRON, "is another program's database");
    BHT_EQ(size_of("lock"), 6);
    BHT_EQ(unlink(lock), 0);
    write_file(place.database, "short", 5);
    expect_no_open(false, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    BHT_EQ(size_of("lock"), -1);
    BHT_EQ(unlink(place.database), 0);

    fresh("");
    BHT_EQ(unlink(lock), 0);
    alter("PRAGMA user_version = 7");
    expect_no_open(true, BHI_QUEUE_ENVIRON, "it has format 7, this one reads 3 and 4");
    BHT_EQ(size_of("lock"), -1);
}

/* -- with a log ---------------------------------------------------------------------------------
 */

static void log_of(char path[128]) {
    path_of("batch.db-wal", path);
}

/* What a kill leaves once |sql| has been executed: file and log. */
static void leave_log(const char *sql) {
    static char database[MOST], log[MOST];
    char path[128];
    sqlite3 *db;
    log_of(path);
    close_queue();
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    BHT_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    const ssize_t size = read_file(place.database, database), log_size = read_file(path, log);
    BHT_TRUE(size > 0 && log_size > 0);
    BHT_EQ(sqlite3_close(db), SQLITE_OK);
    write_file(place.database, database, (size_t)size);
    write_file(path, log, (size_t)log_size);
    path_of("lock", path);
    unlink(path);
}

static void expect_unchanged(bool resume, enum bhi_queue_result expected, const char *words,
                             const char *lock) {
    static char database[MOST], log[MOST], now[MOST];
    char log_path[128], lock_path[128];
    log_of(log_path);
    path_of("lock", lock_path);
    close_queue();
    if (lock) {
        write_file(lock_path, lock, strlen(lock));
    }
    const ssize_t size = read_file(place.database, database), log_size = read_file(log_path, log);
    for (int i = 0; i < 2; i++) {
        expect_no_open(resume, expected, words);
        BHT_EQ(read_file(place.database, now), size);
        BHT_MEM_EQ(now, database, (size_t)size);
        BHT_EQ(read_file(log_path, now), log_size);
        BHT_TRUE(log_size < 0 || !memcmp(now, log, (size_t)log_size));
        BHT_EQ(size_of("lock") >= 0, !!lock);
    }
    if (lock) {
        BHT_EQ(unlink(lock_path), 0);
    }
}

TEST(test_the_log_of_a_refused_folder_stays) {
    static const char newer[] = "it has format 7, this one reads 3 and 4";
    fresh("a");
    leave_log("PRAGMA user_version = 7"); /* the file says 4 still */
    expect_unchanged(true, BHI_QUEUE_ENVIRON, newer, NULL);
    expect_unchanged(true, BHI_QUEUE_ENVIRON, newer, "77\n");
    alter("PRAGMA user_version = 4"); /* nothing is lost */
    again();
    leave_log("UPDATE job SET line = 9");
    expect_unchanged(false, BHI_QUEUE_BAD_INPUT, "has a batch of 1 job:", NULL);
    again();
    close_queue();
    BHT_EQ(size_of("batch.db-wal"), -1); /* one that is accepted is put in order */
    expect_sql("SELECT line FROM job", "9; ");
    leave_log("UPDATE progress SET state = 9");
    expect_unchanged(true, BHI_QUEUE_ENVIRON, "is damaged", NULL);
}

/* Its tables are in the log alone, then in the file, too. */
TEST(test_the_log_of_another_program_stays) {
    static const char *const sql[] = {"PRAGMA journal_mode = WAL; CREATE TABLE t (x)",
                                      "PRAGMA wal_checkpoint; INSERT INTO t VALUES (1)"};
    static const char words[] = "is another program's database";
    BHT_EQ(mkdir(place.folder, 0700), 0);
    for (int i = 0; i < 2; i++) {
        leave_log(sql[i]);
        expect_unchanged(false, BHI_QUEUE_ENVIRON, words, NULL);
        expect_unchanged(true, BHI_QUEUE_ENVIRON, words, "theirs");
    }
}

TEST(test_locks_that_are_none) {
    char lock[128];
    path_of("lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    char digits[1000] = {0}, more[BHI_HOST_NAME + 16], host[BHI_HOST_NAME];
    memset(digits, '7', sizeof digits - 1);
    sprintf(more, "4711 %s\n12\n", bhi_host_name(host));
    const char *const theirs[] = {"theirs", " elsewhere\n", more, digits};
    for (size_t i = 0; i < BHT_COUNT(theirs); i++) {
        write_file(lock, theirs[i], strlen(theirs[i]));
        expect_no_open(false, BHI_QUEUE_ENVIRON, "/lock is another program's file");
        BHT_EQ(size_of("lock"), strlen(theirs[i]));
        BHT_EQ(size_of("batch.db"), -1);
    }
    BHT_EQ(unlink(lock), 0);
    BHT_EQ(mkfifo(lock, 0600), 0);
    expect_no_open(false, BHI_QUEUE_ENVIRON, "/lock is not a regular file");
    BHT_EQ(unlink(lock), 0);
    write_file(lock, "4194304\n", 8); /* of one that is long gone */
    fresh("");
}

TEST(test_what_a_crash_leaves_of_a_lock) {
    char lock[128];
    path_of("lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    write_file(lock, "4711\0\0\0", 7);
    fresh("");
}

/* It may be anybody's. */
TEST(test_who_a_lock_names) {
    static const struct {
        const char *text, *pid, *host;
    } rows[] = {{"4711 there\n", "4711", "there"},
                {"used 4711 there\n", "4711", "there"},
                {"4711\n", "4711", ""},
                {"4711there\n", "4711", ""},
                {"there\n", "", ""},
                {"123456789012345678901234567890123456789012345678901234567890 there\n", "", ""}};
    char lock[128];
    path_of("lock", lock);
    BHT_EQ(mkdir(place.folder, 0700), 0);
    const int folder = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        write_file(lock, rows[i].text, strlen(rows[i].text));
        const struct bhi_lock_signature signature = bhi_lock_read(folder);
        BHT_STR_EQ(signature.pid, rows[i].pid);
        BHT_STR_EQ(signature.host, rows[i].host);
    }
    BHT_EQ(close(folder), 0);
}

/* -- what is in it ------------------------------------------------------------------------------
 */

TEST(test_what_is_no_database) {
    char garbage[8192];
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof garbage; i++) {
        garbage[i] = (char)next_random(&random);
    }
    BHT_EQ(mkdir(place.folder, 0700), 0);
    write_file(place.database, garbage, sizeof garbage);
    expect_no_open(true, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    write_file(place.database, "short", 5);
    expect_no_open(true, BHI_QUEUE_ENVIRON, "is not the database of a batch");
    /* Nothing of it has been written over. */
    BHT_EQ(size_of("batch.db"), 5);
    BHT_EQ(unlink(place.database), 0);

    fresh("a b c d e f g h");
    close_queue();
    BHT_GT(size_of("batch.db"), 8192);
    BHT_EQ(truncate(place.database, 8192), 0);
    char lock[128];
    path_of("lock", lock);
    BHT_EQ(unlink(lock), 0);
    expect_unchanged(true, BHI_QUEUE_ENVIRON, "is damaged", NULL);
    BHT_EQ(truncate(place.database, 0), 0);
    fresh("");
}

/* Any page overwritten: it is refused, or what is loaded makes sense. */
TEST(test_damaged_pages) {
    uint64_t random = 5;
    int refused = 0;
    fresh("a b:a c:a,b d e f");
    run_one("a", BHI_JOB_FAILED, BH_DEADLINE);
    close_queue();
    static unsigned char good[MOST], bad[MOST];
    const ssize_t size = read_file(place.database, good);
    BHT_WITHIN(size, 8192, sizeof good - 1);
    for (int round = 0; round < 400; round++) {
        memcpy(bad, good, (size_t)size);
        for (uint64_t n = 1 + random_below(&random, 4); n > 0; n--) {
            bad[100 + random_below(&random, (uint64_t)size - 100)] =
                (unsigned char)next_random(&random);
        }
        write_file(place.database, bad, (size_t)size);
        const enum bhi_queue_result result = try_open(true, round % 2);
        refused += result != BHI_QUEUE_OK;
        if (result != BHI_QUEUE_OK) {
            BHT_EQ(result, BHI_QUEUE_ENVIRON);
            BHT_STR_HAS(complaint.text, "batch.db");
            continue;
        }
        struct bhi_job *job;
        (void)bhi_queue_add(queue, NULL, 0, &complaint);
        while ((job = bhi_queue_take(queue))) {
            end(job, BHI_JOB_DONE, BH_OK);
        }
        (void)close_queue();
    }
    BHT_GT(refused, 20);
}

static void expect_damaged(const char *sql) {
    renew_place();
    fresh("a b:a");
    alter(sql);
    expect_unchanged(true, BHI_QUEUE_ENVIRON, "is damaged", "77\n");
}

TEST(test_values_that_make_no_sense) {
    static const char *const progress[] = {"state = 7",           "state = -1",
                                           "origin = 3",          "job = 7",
                                           "sealed = 2",          "tried = -1",
                                           "attempts = -1",       "guilty = -1",
                                           "victim = -1",         "attempts = 4294967296",
                                           "verdict = -1",        "origin = 0",
                                           "guilty = 4294967296", "victim = 4294967296",
                                           "tried = 4294967296",  "ended_ns = -1"};
    static const char *const job[] = {"line = -1",
                                      "retries = -1",
                                      "retries = 4294967296",
                                      "priority = 2147483648",
                                      "priority = -2147483649",
                                      "number = -1",
                                      "number = 3"};
    for (size_t i = 0; i < BHT_COUNT(progress) + BHT_COUNT(job); i++) {
        char sql[96];
        if (i < BHT_COUNT(progress)) {
            snprintf(sql, sizeof sql, "UPDATE progress SET %s WHERE job = 2", progress[i]);
        } else {
            snprintf(sql, sizeof sql, "UPDATE job SET %s WHERE number = 2",
                     job[i - BHT_COUNT(progress)]);
        }
        expect_damaged(sql);
    }
}

TEST(test_rows_that_make_no_sense) {
    static const char *const sql[] = {
        "UPDATE job SET id = '' WHERE number = 1",
        "DELETE FROM job WHERE number = 1",
        "INSERT INTO dependency VALUES (1, 2)", /* a circle */
        "INSERT INTO dependency VALUES (1, 3)", /* there are two jobs */
        "INSERT INTO dependency VALUES (3, 1)",
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
    for (size_t i = 0; i < BHT_COUNT(sql); i++) {
        expect_damaged(sql[i]);
    }
}

TEST(test_folders_that_are_none) {
    write_file(place.folder, "", 0);
    expect_no_open(false, BHI_QUEUE_BAD_INPUT, "is not a folder");
    unlink(place.folder);
    strcat(place.folder, "/deep");
    expect_no_open(false, BHI_QUEUE_ENVIRON, "cannot be made: No such file or directory");
    *strrchr(place.folder, '/') = '\0';
    BHT_EQ(mkdir(place.folder, 0700), 0);
    BHT_EQ(mkdir(place.database, 0700), 0);
    expect_no_open(false, BHI_QUEUE_ENVIRON, "batch.db cannot be opened: Is a directory");
    BHT_EQ(size_of("lock"), -1);
}

/* Another program that writes to the database: it is waited for, not for ever. */
TEST(test_a_database_that_is_held) {
    sqlite3 *db;
    fresh("a");
    close_queue();
    BHT_EQ(sqlite3_open(place.database, &db), SQLITE_OK);
    BHT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    BHT_EQ(try_open(true, false), BHI_QUEUE_OK);
    BHT_EQ(bhi_queue_add(queue, NULL, 0, &complaint), BHI_QUEUE_ENVIRON);
    BHT_STR_HAS(complaint.text, "batch.db is locked by another program");
    close_queue();
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    again();
}
