/* The feed of a journal says what the database says; and who has a state folder, on which
 * machine. */
#include "journal_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "batch/journal/host.h"
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

static void open_shards(const char *path, struct bhi_shards *shards) {
    struct bhi_complaint complaint;
    if (!bhi_shards_open(path, shards, &complaint) || !bhi_shards_read(shards, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

/* Reads the feed as another machine would, and compares every record with the queue's. */
static void expect_same(const struct place *place, struct bhi_queue *queue,
                        enum bhi_shard_state state) {
    struct text of_queue = {.all = ""}, of_feed = {.all = ""};
    struct bhi_shards shards;
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(bhi_queue_each_job(queue, print_job, &of_queue));
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &of_queue));
    open_shards(place->folder, &shards);
    BHT_EQ(shards.count, 1);
    BHT_EQ(shards.shards[0].state, state);
    BHT_EQ(shards.shards[0].damaged, 0);
    BHT_EQ(shards.shards[0].pid, getpid());
    BHT_STR_EQ(shards.shards[0].batch, bhi_queue_batch_id(queue));
    BHT_TRUE(bhi_store_each_job(shards.store, print_job, &of_feed));
    BHT_TRUE(bhi_store_each_attempt(shards.store, print_attempt, &of_feed));
    bhi_shards_close(&shards);
    BHT_STR_EQ(of_feed.all, of_queue.all);
}

static void ignore(void *user, bool durable) {
    (void)user, (void)durable;
}

static void run_on_two(struct bhi_queue *queue, const char *id) {
    struct bhi_job *job = take(queue, id);
    bhi_queue_started(queue, job, 2);
    end(queue, job, BHI_JOB_DONE, BH_OK);
}

static void test_the_feed_says_what_the_database_says(void) {
    struct place place;
    make_place(&place);
    setenv("SLURMD_NODENAME", "n7", 1);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a c d:c e f");
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    run_one(queue, "a", BHI_JOB_WAITING, BH_DEADLINE);
    run_one(queue, "a", BHI_JOB_QUARANTINED, BH_DEADLINE); /* b fails through it */
    run_on_two(queue, "c");
    run_one(queue, "d", BHI_JOB_CANCELLED, BH_CANCELLED);
    bhi_queue_started(queue, take(queue, "e"), 3);
    add(queue, "g:c h"); /* while others run */
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    struct bhi_job *sealed = take(queue, "f"); /* a kill comes before its end is recorded */
    bhi_queue_started(queue, sealed, 4);
    seal_job(queue, sealed, "", ignore, NULL);
    BHT_TRUE(bhi_queue_close(queue));
    /* The next process is on another machine; e was cut off on the first. */
    setenv("SLURMD_NODENAME", "n8", 1);
    queue = again(&place);
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    end(queue, take(queue, "f"), BHI_JOB_DONE, BH_OK); /* sealed: first of all */
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    run_on_two(queue, "d");
    run_on_two(queue, "e");
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    struct text attempts = {.all = ""};
    BHT_TRUE(bhi_queue_each_attempt(queue, print_attempt, &attempts));
    BHT_STR_HAS(attempts.all, "e#1 1 0 stream 3 runs 2 1 0 -1 0 0 0    n7; "
                              "e#2 1 0 stream 2 ended");
    BHT_STR_HAS(attempts.all, "gpu:1 n8; ");
    BHT_TRUE(bhi_queue_close(queue));
    remove_place(&place);
}

static void test_a_closed_feed_has_an_end(void) {
    struct place place;
    struct bhi_shards shards;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    BHT_TRUE(bhi_queue_close(queue));
    open_shards(place.folder, &shards);
    BHT_EQ(shards.shards[0].state, BHI_SHARD_ENDED);
    bhi_shards_close(&shards);
    remove_place(&place);
}

/* The bytes of names and messages are somebody else's. */
static void test_odd_texts(void) {
    static const char line[] = "{\"id\":\"a \\\"b\\\" \\\\ \\u00e9\",\"kernel\":\"k \\\"q\\\" \\\\ "
                               "\\u20ac\",\"groups\":[1],"
                               "\"in\":{\"kernel\":\"x.npy\",\"eval\":\"y.npy\"}}";
    struct place place;
    struct bhi_job_spec spec;
    struct bhi_complaint complaint;
    struct text of_feed = {.all = ""};
    struct bhi_shards shards;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    BHT_TRUE(bhi_job_parse(line, strlen(line), &spec, &complaint));
    BHT_EQ(bhi_queue_add(queue, &spec, 1, &complaint), BHI_QUEUE_OK);
    bhi_job_spec_free(&spec);
    struct bhi_job *job = bhi_queue_take(queue);
    bhi_queue_started(queue, job, 0);
    struct bhi_attempt attempt = {
        .next = BHI_JOB_FAILED, .started = true, .verdict = {.status = BH_DEADLINE}};
    memset(attempt.verdict.message, '"', sizeof attempt.verdict.message - 1); /* each is escaped */
    memcpy(attempt.verdict.message, "\x1b[31m \xff\n\\", 9);
    strcpy(attempt.verdict.kernel_name, "\"\\\xc3");
    bhi_queue_ended(queue, job, &attempt, 0);
    BHT_TRUE(bhi_queue_flush(queue));
    open_shards(place.folder, &shards);
    BHT_EQ(shards.shards[0].damaged, 0);
    BHT_TRUE(bhi_store_each_job(shards.store, print_job, &of_feed));
    BHT_STR_HAS(of_feed.all, "1 a \"b\" \\ \xc3\xa9 line 0 failed");
    BHT_STR_HAS(of_feed.all, "?[31m ? \\\"\"\"\"");
    BHT_STR_HAS(of_feed.all, "\"kernel\":\"k"); /* not the binding of that name */
    bhi_shards_close(&shards);
    BHT_TRUE(bhi_queue_close(queue));
    remove_place(&place);
}

static void test_a_long_kernel_is_cut_at_a_character(void) {
    for (int before = 0; before < 5; before++) { /* bytes of both characters together */
        struct place place;
        struct bhi_complaint complaint;
        struct bhi_job_spec spec;
        struct bhi_shards shards;
        char line[4096];
        sprintf(line, "{\"id\":\"a\",\"kernel\":\"%.*s", before, "xxxxx");
        for (int i = 0; i < 500; i++) {
            strcat(line, i % 2 ? "\\\\" : "\xe2\x82\xac");
        }
        strcat(line, "\",\"groups\":[1]}");
        make_place(&place);
        struct bhi_queue *queue = fresh(&place);
        BHT_TRUE(bhi_job_parse(line, strlen(line), &spec, &complaint));
        BHT_EQ(bhi_queue_add(queue, &spec, 1, &complaint), BHI_QUEUE_OK);
        bhi_job_spec_free(&spec);
        open_shards(place.folder, &shards);
        BHT_EQ(shards.shards[0].damaged, 0);
        BHT_EQ(shards.shards[0].total, 1);
        bhi_shards_close(&shards);
        BHT_TRUE(bhi_queue_close(queue));
        remove_place(&place);
    }
}

/* A feed that cannot be written ends no batch, and is made up for. */
static void test_a_feed_that_cannot_be_written(void) {
    struct place place;
    char new_feed[112], feed[112];
    make_place(&place);
    path_of(&place, "feed.new", new_feed);
    path_of(&place, BHI_FEED_FILE, feed);
    struct bhi_queue *queue = fresh(&place);
    BHT_EQ(mkdir(new_feed, 0700), 0);
    add(queue, "a b");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_EQ(access(feed, F_OK), -1);
    BHT_TRUE(bhi_queue_close(queue));
    BHT_EQ(access(feed, F_OK), -1);
    BHT_EQ(rmdir(new_feed), 0);
    queue = again(&place);
    expect_same(&place, queue, BHI_SHARD_RUNNING);
    BHT_TRUE(bhi_queue_close(queue));
    remove_place(&place);
}

/* It is made up for at the end, if it can be then. */
static void test_a_feed_that_cannot_be_written_at_first(void) {
    struct place place;
    struct bhi_shards shards;
    char new_feed[112];
    make_place(&place);
    path_of(&place, "feed.new", new_feed);
    struct bhi_queue *queue = fresh(&place);
    BHT_EQ(mkdir(new_feed, 0700), 0);
    add(queue, "a b");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_EQ(rmdir(new_feed), 0);
    BHT_TRUE(bhi_queue_close(queue));
    open_shards(place.folder, &shards);
    BHT_EQ(shards.shards[0].state, BHI_SHARD_ENDED);
    BHT_EQ(shards.shards[0].of[BHI_JOB_DONE], 1);
    bhi_shards_close(&shards);
    remove_place(&place);
}

/* -- the column of the machine ------------------------------------------------------------------
 */

static bool print_hosts(void *user, const struct bhi_attempt_record *record) {
    strcat(user, record->host);
    strcat(user, ";");
    return true;
}

/* Format 4 had no column for the machine at first. */
static void test_the_column_of_the_machine(void) {
    static const char has[] =
        "SELECT count(*) FROM pragma_table_info('attempt') WHERE name = 'host'";
    static const char *const drops[] = {
        "ALTER TABLE attempt DROP COLUMN host",
        "ALTER TABLE attempt DROP COLUMN host; ALTER TABLE attempt DROP COLUMN device"};
    for (size_t i = 0; i < BHT_COUNT(drops); i++) {
        struct place place;
        struct bhi_queue *queue;
        struct bhi_complaint complaint;
        char hosts[64] = "";
        make_place(&place);
        setenv("SLURMD_NODENAME", "n7", 1);
        queue = fresh(&place);
        add(queue, "a b");
        run_one(queue, "a", BHI_JOB_DONE, BH_OK);
        bhi_queue_close(queue);
        alter(&place, drops[i]);
        const struct bhi_queue_options look = {
            .folder = place.folder, .resume = true, .dry_run = true};
        BHT_EQ(bhi_queue_open(&look, &queue, &complaint), BHI_QUEUE_OK);
        BHT_TRUE(bhi_queue_each_attempt(queue, print_hosts, hosts));
        bhi_queue_close(queue);
        expect_sql(&place, has, "0; "); /* nothing was changed */
        queue = again(&place);
        run_one(queue, "b", BHI_JOB_DONE, BH_OK);
        bhi_queue_flush(queue);
        BHT_TRUE(bhi_queue_each_attempt(queue, print_hosts, hosts));
        BHT_STR_EQ(hosts, ";;n7;");
        bhi_queue_close(queue);
        expect_sql(&place, has, "1; ");
        remove_place(&place);
    }
}

static void test_names_of_machines(void) {
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

static void read_lock(const struct place *place, char out[128]) {
    char path[112];
    path_of(place, "lock", path);
    FILE *file = fopen(path, "re");
    BHT_NE(file, NULL);
    out[fread(out, 1, 127, file)] = '\0';
    fclose(file);
}

static void test_the_lock_says_who_has_it(void) {
    struct place place;
    char text[128], expected[128], host[BHI_HOST_NAME];
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    sprintf(expected, "%ld %s\n", (long)getpid(), bhi_host_name(host));
    read_lock(&place, text);
    BHT_STR_EQ(text, expected);
    add(queue, "a");
    sprintf(expected, "used %ld %s\n", (long)getpid(), host);
    read_lock(&place, text);
    BHT_STR_EQ(text, expected);
    bhi_queue_close(queue);
    sprintf(expected, "used %ld\n", (long)getpid()); /* it has ended */
    read_lock(&place, text);
    BHT_STR_EQ(text, expected);
    remove_place(&place);
}

struct toucher {
    char path[112];
    atomic_bool stop;
};

static void *touch(void *argument) {
    struct toucher *toucher = argument;
    while (!atomic_load(&toucher->stop)) {
        BHT_EQ(utimensat(AT_FDCWD, toucher->path, NULL, 0), 0);
        bht_poll_pause();
    }
    return NULL;
}

static enum bhi_queue_result open_after(const struct place *place, uint64_t silence_ns,
                                        struct bhi_queue **out_queue,
                                        struct bhi_complaint *complaint) {
    const struct bhi_queue_options options = {.folder = place->folder,
                                              .jobs_path = "jobs.jsonl",
                                              .resume = true,
                                              .retries = 2,
                                              .silence_ns = silence_ns};
    complaint->text[0] = '\0';
    return bhi_queue_open(&options, out_queue, complaint);
}

/* Where a lock excludes no other machine, the process there is noticed by its beats. */
static void test_another_machine_has_it(void) {
    static const uint64_t minute_ns = 60000000000u, short_ns = 50000000u;
    struct place place;
    struct toucher toucher = {.stop = false};
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    pthread_t thread;
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    path_of(&place, "lock", toucher.path);
    write_file(toucher.path, "used 4711 elsewhere\n", 20);
    BHT_EQ(pthread_create(&thread, NULL, touch, &toucher), 0);
    BHT_EQ(open_after(&place, minute_ns, &queue, &complaint), BHI_QUEUE_BUSY);
    atomic_store(&toucher.stop, true);
    pthread_join(thread, NULL);
    BHT_STR_HAS(complaint.text, "is in use by another process, pid 4711 on elsewhere: wait");
    char text[128];
    read_lock(&place, text);
    BHT_STR_EQ(text, "used 4711 elsewhere\n"); /* it still has it */
    const uint64_t began_ns = bht_now_ns();
    BHT_EQ(open_after(&place, short_ns, &queue, &complaint), BHI_QUEUE_OK); /* it is dead */
    BHT_GE(bht_now_ns() - began_ns, short_ns);
    bhi_queue_close(queue);
    remove_place(&place);
}

/* One of this machine that was killed is not waited for: its lock has ended with it. */
static void test_one_that_was_killed_here_is_not_waited_for(void) {
    static const uint64_t for_ever_ns = 3600000000000u;
    struct place place;
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    char path[112], text[128], host[BHI_HOST_NAME];
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a");
    bhi_queue_close(queue);
    path_of(&place, "lock", path);
    sprintf(text, "used 4711 %s\n", bhi_host_name(host));
    write_file(path, text, strlen(text));
    BHT_EQ(open_after(&place, for_ever_ns, &queue, &complaint), BHI_QUEUE_OK);
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_the_lock_is_touched_while_it_is_held(void) {
    struct place place;
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    struct stat before, now;
    char path[112];
    make_place(&place);
    BHT_EQ(open_after(&place, 4000000, &queue, &complaint), BHI_QUEUE_OK);
    path_of(&place, "lock", path);
    for (int i = 0; i < 3; i++) {
        BHT_EQ(stat(path, &before), 0);
        WAIT_UNTIL(stat(path, &now) == 0 && (now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
                                             now.st_mtim.tv_nsec != before.st_mtim.tv_nsec),
                   10000);
    }
    bhi_queue_close(queue);
    remove_place(&place);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_the_feed_says_what_the_database_says),
        BHT_TEST(test_a_closed_feed_has_an_end),
        BHT_TEST(test_odd_texts),
        BHT_TEST(test_a_long_kernel_is_cut_at_a_character),
        BHT_TEST(test_a_feed_that_cannot_be_written),
        BHT_TEST(test_a_feed_that_cannot_be_written_at_first),
        BHT_TEST(test_the_column_of_the_machine),
        BHT_TEST(test_names_of_machines),
        BHT_TEST(test_the_lock_says_who_has_it),
        BHT_TEST(test_another_machine_has_it),
        BHT_TEST(test_one_that_was_killed_here_is_not_waited_for),
        BHT_TEST(test_the_lock_is_touched_while_it_is_held),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
