/* The feed of a journal says what the database says; and who has a state folder, on which
 * machine. */
#include "few_jobs.h"

#include <pthread.h>
#include <stdatomic.h>

#include "batch/journal/feed.h"
#include "batch/journal/host.h"
#include "batch/journal/note.h"
#include "batch/shards/shards.h"

/* -- the feed against the database --------------------------------------------------------------
 */

struct text {
    char all[8192];
};

static bool print_job(void *user, const struct bhi_job_record *record) {
    struct text *text = user;
    const char *kernel = strstr(record->text, "\"kernel\":\"");
    BHT_NE(kernel, NULL);
    sprintf(text->all + strlen(text->all), "%d %s line %zu %s %u/%u %s %d %s %s took %llu %.12s; ",
            (int)record->number, record->id, record->line, bhi_job_state_name(record->state),
            record->attempts, record->guilty, record->origin, (int)record->status, record->message,
            record->host, (unsigned long long)record->took_ns, kernel);
    return true;
}

static bool print_attempt(void *user, const struct bhi_attempt_record *record) {
    struct text *text = user;
    const bh_verdict *verdict = &record->verdict;
    sprintf(text->all + strlen(text->all),
            "%s#%u %d %d stream %u %s %d %d %d %d %d %llu %d %s %s %s %s; ", record->id,
            record->attempt, record->started, record->guilty, record->stream,
            record->ended_ns ? "ended" : "runs", (int)verdict->status, (int)verdict->executed,
            verdict->signal, verdict->exit_code, verdict->worker_pid,
            (unsigned long long)verdict->limit, (int)verdict->blame, verdict->kernel_name,
            verdict->message, verdict->device, record->host);
    return true;
}

static struct bhi_shards shards = BHI_SHARDS_CLOSED;

static void close_shards(void) {
    bhi_shards_close(&shards);
}

/* As another machine would; and reads it. */
static void open_shard(enum bhi_shard_state state) {
    close_shards();
    if (!bhi_shards_open(place.folder, &shards, &complaint) ||
        !bhi_shards_read(&shards, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    BHT_EQ(shards.count, 1);
    BHT_EQ(shards.shards[0].state, state);
    BHT_EQ(shards.shards[0].damaged, 0);
}

/* Compares every record of the feed with the queue's. */
static void expect_same(void) {
    struct text of_queue = {.all = ""}, of_feed = {.all = ""};
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &of_queue));
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &of_queue));
    open_shard(BHI_SHARD_RUNNING);
    BHT_EQ(shards.shards[0].pid, getpid());
    BHT_STR_EQ(shards.shards[0].batch, bhi_queue_batch_id(queue));
    BHT_TRUE(bhi_store_each_job(shards.store, print_job, &of_feed));
    BHT_TRUE(bhi_store_each_attempt(shards.store, print_attempt, &of_feed));
    BHT_STR_EQ(of_feed.all, of_queue.all);
}

TEST(test_the_feed_says_what_the_database_says) {
    setenv("SLURMD_NODENAME", "n7", 1);
    fresh("a b:a c d:c e f");
    expect_same();
    run_one("a", BHI_JOB_WAITING, BH_DEADLINE);
    run_one("a", BHI_JOB_QUARANTINED, BH_DEADLINE); /* b fails through it */
    run("c");
    run_one("d", BHI_JOB_CANCELLED, BH_CANCELLED);
    start("e");
    add("g:c h"); /* while others run */
    expect_same();
    seal("f"); /* a kill comes before its end is recorded */
    /* The next process is on another machine; e was cut off on the first. */
    setenv("SLURMD_NODENAME", "n8", 1);
    again();
    expect_same();
    end(take("f"), BHI_JOB_DONE, BH_OK); /* sealed: first of all */
    expect_same();
    run("d e");
    expect_same();
    struct text attempts = {.all = ""};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &attempts));
    BHT_STR_HAS(attempts.all, "e#1 1 0 stream 3 runs 2 1 0 -1 0 0 0    n7; "
                              "e#2 1 0 stream 3 ended");
    BHT_STR_HAS(attempts.all, "gpu:1 n8; ");
    close_queue();
    open_shard(BHI_SHARD_ENDED);
}

/* The bytes of names and messages are somebody else's. */
TEST(test_odd_texts) {
    static const char line[] = "{\"id\":\"a \\\"b\\\" \\\\ \\u00e9\",\"kernel\":\"k \\\"q\\\" \\\\ "
                               "\\u20ac\",\"groups\":[1],"
                               "\"in\":{\"kernel\":\"x.npy\",\"eval\":\"y.npy\"}}";
    struct text of_feed = {.all = ""};
    fresh("");
    BHT_EQ(add_line(line), BHI_QUEUE_OK);
    struct bhi_job *job = start("a \"b\" \\ \u00e9");
    struct bhi_attempt attempt = {
        .next = BHI_JOB_FAILED, .started = true, .verdict = {.status = BH_DEADLINE}};
    memset(attempt.verdict.message, '"', sizeof attempt.verdict.message - 1); /* each is escaped */
    memcpy(attempt.verdict.message, "\x1b[31m \xff\n\\", 9);
    strcpy(attempt.verdict.kernel_name, "\"\\\xc3");
    bhi_queue_ended(queue, job, &attempt, 0);
    BHT_TRUE(bhi_queue_flush(queue));
    open_shard(BHI_SHARD_RUNNING);
    BHT_TRUE(bhi_store_each_job(shards.store, print_job, &of_feed));
    BHT_STR_HAS(of_feed.all, "1 a \"b\" \\ \xc3\xa9 line 7 failed");
    BHT_STR_HAS(of_feed.all, "?[31m ? \\\"\"\"\"");
    BHT_STR_HAS(of_feed.all, "\"kernel\":\"k"); /* not the binding of that name */
}

static bool take_kernel_length(void *user, const struct bhi_job_record *record) {
    const char *kernel = strstr(record->text, "\"kernel\":\"");
    BHT_TRUE(kernel);
    const char *end = strstr(kernel, "\",\"state\":");
    BHT_TRUE(end);
    *(size_t *)user = (size_t)(end - kernel - 10);
    return true;
}

/* One whose character does not fit whole is cut in front of it: half of one is no JSON. */
TEST(test_a_long_kernel_is_cut_at_a_character) {
    static const char *const characters[] = {"x",
                                             "\\\\",
                                             "\\\"",
                                             "\\u0001",
                                             "\xc3\xa9",
                                             "\xe0\xa0\x80",
                                             "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80",
                                             "\xf4\x8f\xbf\xbf"};
    fresh("");
    char expected[2048] = "";
    size_t count = 0, lengths[64];
    for (size_t i = 0; i < BHT_COUNT(characters); i++) {
        const size_t size = strlen(characters[i]);
        for (size_t before = 0; before < size; before++) {
            char line[4096];
            int used =
                sprintf(line, "{\"id\":\"%zu\",\"kernel\":\"%.*s", count, (int)before, "xxxxx");
            for (size_t k = before; k < BHI_FEED_KERNEL + 20; k += size) {
                used += sprintf(line + used, "%s", characters[i]);
            }
            strcpy(line + used, "\",\"groups\":[1]}");
            BHT_EQ(add_line(line), BHI_QUEUE_OK);
            lengths[count++] = before + (BHI_FEED_KERNEL - before) / size * size;
        }
    }
    BHT_TRUE(bhi_queue_flush(queue));
    open_shard(BHI_SHARD_RUNNING);
    BHT_EQ(shards.shards[0].damaged, 0);
    BHT_EQ(shards.shards[0].total, count);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        sprintf(expected, "%zu", i);
        BHT_TRUE(bhi_store_find_job(shards.store, expected, take_kernel_length, &length));
        BHT_EQ(length, lengths[i]);
    }
}

/* Each line is there once, however many come at a time. */
TEST(test_more_lines_than_fit_at_once) {
    enum { NOTES = 6000 };
    static struct bhi_feed feed;
    static struct bhi_note notes[NOTES];
    static char text[MOST];
    char path[128];
    struct bhi_list group;
    put_file("feed", "", 0600);
    snprintf(path, sizeof path, "%s/feed", place.root);
    bhi_feed_init(&feed);
    feed.fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    BHT_GE(feed.fd, 0);
    for (int round = 0; round < 2; round++) {
        bhi_list_init(&group);
        for (size_t i = 0; i < NOTES / 2; i++) {
            struct bhi_note *note = &notes[(size_t)round * NOTES / 2 + i];
            *note = (struct bhi_note){.kind = BHI_NOTE_STATE, .state = BHI_JOB_WAITING};
            note->job = (uint64_t)(note - notes) + 1;
            bhi_list_append(&group, &note->node);
        }
        bhi_feed_append(&feed, NULL, -1, &group);
        BHT_TRUE(feed.fd >= 0 && !feed.stale);
    }
    bhi_feed_close(&feed, NULL, -1);
    const ssize_t size = read_file(path, text);
    BHT_GT(size, BHI_FEED_BUFFER);
    text[size] = '\0';
    const char *at = text;
    for (size_t i = 1; i <= NOTES; i++) {
        char line[64];
        const int length = sprintf(line, "{\"job\":%zu,\"state\":1,\"at\":0}\n", i);
        BHT_TRUE(!strncmp(at, line, (size_t)length));
        at += length;
    }
    BHT_TRUE(!strncmp(at, "{\"end\":", 7) && strchr(at, '\n') == text + size - 1);
}

/* A full disk: what could not be appended is stale, and nobody tries for ever. */
TEST_WITH(test_a_feed_on_a_full_disk, 5, 0) {
    static struct bhi_feed feed;
    struct bhi_note note = {.kind = BHI_NOTE_STATE, .job = 1, .state = BHI_JOB_DONE};
    struct bhi_list group;
    bhi_list_init(&group);
    bhi_list_append(&group, &note.node);
    bhi_feed_init(&feed);
    feed.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    BHT_GE(feed.fd, 0);
    for (int i = 0; i < 2; i++) { /* the second comes before it is tried again */
        bhi_feed_append(&feed, NULL, -1, &group);
        BHT_TRUE(feed.stale && feed.fd == -1 && feed.used == 0);
    }
    bhi_feed_init(&feed);
    feed.stale = feed.failed = false;
    feed.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    bhi_feed_close(&feed, NULL, -1);
    BHT_EQ(feed.fd, -1);
}

/* A feed that cannot be written ends no batch, and is made up for. */
TEST(test_a_feed_that_cannot_be_written) {
    char new_feed[128];
    path_of("feed.new", new_feed);
    fresh("");
    BHT_EQ(mkdir(new_feed, 0700), 0);
    add("a b");
    run("a");
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_EQ(size_of(BHI_FEED_FILE), -1);
    BHT_TRUE(close_queue());
    BHT_EQ(size_of(BHI_FEED_FILE), -1);
    again();
    BHT_EQ(size_of(BHI_FEED_FILE), -1);
    BHT_EQ(rmdir(new_feed), 0);
    BHT_TRUE(close_queue()); /* at the end, if it can be then */
    open_shard(BHI_SHARD_ENDED);
    BHT_EQ(shards.shards[0].of[BHI_JOB_DONE], 1);
    BHT_EQ(mkdir(new_feed, 0700), 0);
    again();
    BHT_TRUE(close_queue());
    BHT_EQ(rmdir(new_feed), 0);
    again(); /* or by the next process */
    expect_same();
    write_file(new_feed, "", 0); /* what one that was killed has left is in nobody's way */
    add("c");
    expect_same();
}

/* What the disk had no room for is made up for once it has. */
TEST(test_a_feed_whose_disk_was_full_for_a_while) {
    enum { MOST_FILES = 64 };
    struct stat feed, open_file;
    char path[128];
    path_of(BHI_FEED_FILE, path);
    fresh("a");
    BHT_EQ(stat(path, &feed), 0);
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int found = 0;
    for (int fd = 0; fd < MOST_FILES; fd++) {
        if (fstat(fd, &open_file) == 0 && open_file.st_dev == feed.st_dev &&
            open_file.st_ino == feed.st_ino) {
            BHT_EQ(dup3(full, fd, O_CLOEXEC), fd);
            found++;
        }
    }
    BHT_EQ(found, 1);
    BHT_EQ(close(full), 0);
    run("a");
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(close_queue());
    open_shard(BHI_SHARD_ENDED);
    BHT_EQ(shards.shards[0].of[BHI_JOB_DONE], 1);
}

/* -- the column of the machine ------------------------------------------------------------------
 */

static bool print_hosts(void *user, const struct bhi_attempt_record *record) {
    strcat(user, record->host);
    strcat(user, ";");
    return true;
}

/* Format 4 had no column for the machine at first. */
TEST(test_the_column_of_the_machine) {
    static const char has[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'host'";
    static const char *const drops[] = {
        "ALTER TABLE attempt DROP COLUMN host",
        "ALTER TABLE attempt DROP COLUMN host; ALTER TABLE attempt DROP COLUMN device"};
    for (size_t i = 0; i < BHT_COUNT(drops); i++) {
        char hosts[64] = "";
        renew_place();
        setenv("SLURMD_NODENAME", "n7", 1);
        fresh("a b");
        run("a");
        alter(drops[i]);
        BHT_EQ(open_with((struct bhi_queue_options){.resume = true, .dry_run = true}),
               BHI_QUEUE_OK);
        BHT_TRUE(bhi_queue_each_attempt(queue, print_hosts, hosts));
        expect_kept(has, "0; "); /* nothing was changed */
        again();
        run("b");
        bhi_queue_flush(queue);
        BHT_TRUE(bhi_queue_each_attempt(queue, print_hosts, hosts));
        BHT_STR_EQ(hosts, ";;n7;");
        expect_kept(has, "1; ");
    }
}

TEST(test_names_of_machines) {
    char name[BHI_HOST_NAME];
    setenv("SLURMD_NODENAME", "n\n1 \"x\"", 1);
    BHT_STR_EQ(bhi_host_machine(name), "n-1--x-");
    setenv("SLURMD_NODENAME",
           "0123456789012345678901234567890123456789012345678901234567890123456789", 1);
    BHT_EQ(strlen(bhi_host_machine(name)), BHI_HOST_NAME - 1);
    setenv("SLURMD_NODENAME", "", 1);
    char host[BHI_HOST_NAME];
    BHT_STR_EQ(bhi_host_machine(name), bhi_host_name(host));
    BHT_GT(strlen(host), 0);
}

/* -- the lock -----------------------------------------------------------------------------------
 */

static void expect_lock(const char *expected) {
    static char text[MOST];
    char path[128];
    path_of("lock", path);
    text[read_file(path, text)] = '\0';
    BHT_STR_EQ(text, expected);
}

TEST(test_the_lock_says_who_has_it) {
    char expected[128], host[BHI_HOST_NAME];
    fresh("");
    sprintf(expected, "%ld %s\n", (long)getpid(), bhi_host_name(host));
    expect_lock(expected);
    add("a");
    sprintf(expected, "used %ld %s\n", (long)getpid(), host);
    expect_lock(expected);
    close_queue();
    sprintf(expected, "used %ld\n", (long)getpid()); /* it has ended */
    expect_lock(expected);
}

struct toucher {
    char path[128];
    bool whole_seconds; /* as some file servers keep; otherwise all touches are in one second */
    atomic_bool stop;
};

static void touch_once(const struct toucher *toucher, long number) {
    const struct timespec at = {.tv_sec = toucher->whole_seconds ? number : 0,
                                .tv_nsec = toucher->whole_seconds ? 0 : number};
    BHT_EQ(utimensat(AT_FDCWD, toucher->path, (struct timespec[2]){at, at}, 0), 0);
}

static void *touch(void *argument) {
    struct toucher *toucher = argument;
    for (long i = 1; !atomic_load(&toucher->stop); i++) {
        touch_once(toucher, i);
        bht_poll_pause();
    }
    return NULL;
}

static enum bhi_queue_result open_after(uint64_t silence_ns) {
    return open_with(
        (struct bhi_queue_options){.resume = true, .retries = 2, .silence_ns = silence_ns});
}

/* Where a lock excludes no other machine, the process there is noticed by its beats. */
TEST(test_another_machine_has_it) {
    static const uint64_t long_ns = 20000000000u, short_ns = 50000000u;
    fresh("a");
    close_queue();
    for (int i = 0; i < 2; i++) {
        struct toucher toucher = {.whole_seconds = i, .stop = false};
        pthread_t thread;
        path_of("lock", toucher.path);
        write_file(toucher.path, "used 4711 elsewhere\n", 20);
        touch_once(&toucher, 0);
        BHT_EQ(pthread_create(&thread, NULL, touch, &toucher), 0);
        BHT_EQ(open_after(long_ns), BHI_QUEUE_BUSY);
        atomic_store(&toucher.stop, true);
        pthread_join(thread, NULL);
        BHT_STR_HAS(complaint.text, "is in use by another process, pid 4711 on elsewhere: wait");
        expect_lock("used 4711 elsewhere\n"); /* it still has it */
    }
    const uint64_t began_ns = bht_now_ns();
    BHT_EQ(open_after(short_ns), BHI_QUEUE_OK); /* it is dead */
    BHT_GE(bht_now_ns() - began_ns, short_ns);
}

/* One of this machine that was killed is not waited for: its lock has ended with it. */
TEST(test_one_that_was_killed_here_is_not_waited_for) {
    static const uint64_t for_ever_ns = 3600000000000u;
    char path[128], text[128], host[BHI_HOST_NAME];
    fresh("a");
    close_queue();
    path_of("lock", path);
    sprintf(text, "used 4711 %s\n", bhi_host_name(host));
    write_file(path, text, strlen(text));
    BHT_EQ(open_after(for_ever_ns), BHI_QUEUE_OK);
}

static _Atomic uint64_t longest_ns; /* that a thread has begun to wait */

BHT_WRAP(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex,
         const struct timespec *until) {
    const uint64_t until_ns = (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec;
    const uint64_t now_ns = bht_now_ns();
    if (until_ns > now_ns + atomic_load(&longest_ns)) {
        atomic_store(&longest_ns, until_ns - now_ns);
    }
    return __real_pthread_cond_timedwait(condition, mutex, until);
}

/* More often than the time after which another machine takes the folder. */
TEST(test_the_lock_is_touched_in_time) {
    static const uint64_t hour_ns = 3600000000000u;
    atomic_store(&longest_ns, 0);
    BHT_EQ(open_after(hour_ns), BHI_QUEUE_OK);
    WAIT_UNTIL(atomic_load(&longest_ns) > hour_ns / 10, 10000);
    BHT_LE(atomic_load(&longest_ns), hour_ns / 2);
}

TEST(test_the_lock_is_touched_while_it_is_held) {
    struct stat before, now;
    char path[128];
    BHT_EQ(open_after(4000000), BHI_QUEUE_OK);
    path_of("lock", path);
    for (int i = 0; i < 3; i++) {
        BHT_EQ(stat(path, &before), 0);
        WAIT_UNTIL(stat(path, &now) == 0 && (now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
                                             now.st_mtim.tv_nsec != before.st_mtim.tv_nsec),
                   10000);
    }
}

BHT_AT_START(bht_end_with(close_shards))
