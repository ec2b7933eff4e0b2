/* Several shards' folders, made up: what is read of them while they grow, and what is odd. */
#include "few_jobs.h"

#include <dirent.h>
#include <time.h>

#include "batch/runner/quarantine.h"
#include "batch/shards/line.h"
#include "batch/shards/report.h"
#include "faulty_memory.h"

#define HEAD(host)                                                                                 \
    "{\"feed\":1,\"batch\":\"0f1e\",\"host\":\"" host "\",\"pid\":7,\"began\":" BEGAN "}\n"
#define BEGAN "1700000000000000000"
#define JOB(job, id, state)                                                                        \
    "{\"job\":" job ",\"id\":\"" id "\",\"line\":3,\"kernel\":\"k.spv\",\"state\":" state "}\n"
#define END "{\"end\":1700000009000000000}\n"

static void path_in(const char *shard, const char *name, char path[160]) {
    snprintf(path, 160, "%s/shards/%s/%s", place.folder, shard, name);
}

/* If it is not there. */
static void make_shard(const char *shard) {
    char path[160];
    mkdir(place.folder, 0700);
    snprintf(path, sizeof path, "%s/shards", place.folder);
    mkdir(path, 0700);
    path_in(shard, "", path);
    mkdir(path, 0700);
    path_in(shard, "state", path);
    mkdir(path, 0700);
}

static void append(const char *shard, const void *bytes, size_t size) {
    char path[160];
    make_shard(shard);
    path_in(shard, "state/feed.jsonl", path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), size);
    close(fd);
}

static void say(const char *shard, const char *text) {
    append(shard, text, strlen(text));
}

static struct bhi_shards shards = BHI_SHARDS_CLOSED;

static void close_all(void) {
    bhi_shards_close(&shards);
}

static void read_on(void) {
    BHT_TRUE(bhi_shards_read(&shards, &complaint));
}

/* And reads it. */
static void open_all(void) {
    if (!bhi_shards_open(place.folder, &shards, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    read_on();
}

static void expect_shards(const char *expected) {
    struct bhi_queue_counts counts;
    bhi_shards_counts(&shards, &counts);
    expect_counts_of(&counts, expected);
}

static void read_and_expect(const char *expected) {
    read_on();
    expect_shards(expected);
}

static char report_text[65536];

static bool try_report(bool json) {
    const struct bhi_shards_report what = {.json = json};
    char path[] = "/tmp/bulkhead-table-XXXXXX";
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO), fd = mkstemp(path);
    BHT_GE(fd, 0);
    BHT_EQ(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    const bool good = bhi_shards_report(&shards, &what, &complaint);
    fflush(stdout);
    BHT_EQ(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
    const ssize_t length = pread(fd, report_text, sizeof report_text - 1, 0);
    report_text[length > 0 ? length : 0] = '\0';
    unlink(path);
    close(fd);
    close(saved);
    return good;
}

static char *report_of(bool json) {
    if (!try_report(json)) {
        BHT_FAIL("%s", complaint.text);
    }
    return report_text;
}

/* The table, which has the notes. */
static char *table_of(void) {
    return report_of(false);
}

TEST(test_a_feed_that_grows) {
    char path[160];
    static const char jobs[] =
        "{\"id\": \"a\"}\n\n  # a comment\n \t\n{\"id\": \"b\"}\r\n{\"id\": \"c\"}";
    make_shard("0000");
    make_shard("0001");
    path_in("0000", "jobs.jsonl", path);
    write_file(path, jobs, strlen(jobs));
    open_all();
    expect_shards("3/0/0/0/0/0/0 of 3"); /* it has not begun */
    BHT_EQ(shards.shards[0].state, BHI_SHARD_WAITS);
    say("0000", HEAD("n1") JOB("1", "a", "1") JOB("2", "b", "1") "{\"job\":1,\"state\":3");
    read_and_expect("0/2/0/0/0/0/0 of 2"); /* the last line is not complete */
    BHT_EQ(shards.shards[0].damaged, 0);
    BHT_EQ(shards.shards[0].state, BHI_SHARD_RUNNING);
    say("0000", ",\"at\":5}\n{\"job\":2,\"attempt\":1,\"started\":5,\"state\":2}\n");
    say("0001", HEAD("n2") JOB("1", "c", "1"));
    read_and_expect("0/1/1/1/0/0/0 of 3");
    say("0000", END);
    read_on();
    BHT_EQ(shards.shards[0].state, BHI_SHARD_ENDED);
    BHT_TRUE(!bhi_shards_ended(&shards));
    say("0001", END);
    read_on();
    BHT_TRUE(bhi_shards_ended(&shards));
}

#define DONE(job) "{\"job\":" job ",\"state\":3,\"at\":5}\n"

/* What a submitter reads of a shard while it waits, and how soon it looks again. */
TEST(test_following) {
    static const uint64_t ms = 1000000, most = 200 * ms;
    char path[160];
    make_shard("0000");
    open_all();
    const struct bhi_shard *shard = shards.shards;
    BHT_EQ(bhi_shards_follow(&shards, 0, 1000 * ms, most), most); /* no feed */
    say("0000", HEAD("n1") JOB("1", "a", "1") JOB("2", "b", "1") JOB("3", "c", "1"));
    say("0000", JOB("4", "d", "1"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 2000 * ms, most), most); /* no job has ended */
    say("0000", DONE("1"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 4000 * ms, most), most); /* six more seconds */
    say("0000", DONE("2") DONE("3"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 4100 * ms, most), 2100 / 3 / 4 * ms);
    BHT_EQ(shard->reader.offset, shard->reader.size);
    /* A last job that takes long is no reason to look often. */
    BHT_EQ(bhi_shards_follow(&shards, 0, 4100 * ms + 1520 * ms, most), 1520 / 8 * ms);
    BHT_EQ(bhi_shards_follow(&shards, 0, 4100 * ms + 1600 * ms, most), most);
    say("0000", DONE("4"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 6000 * ms, most), 20 * ms);
    say("0000", END);
    BHT_EQ(bhi_shards_follow(&shards, 0, 6040 * ms, most), 20 * ms);
    BHT_EQ(bhi_shards_follow(&shards, 0, 6400 * ms, most), 45 * ms);
    BHT_EQ(bhi_shards_follow(&shards, 0, 16000 * ms, most), most);
    /* It is not counted before somebody asks. */
    expect_shards("0/0/0/0/0/0/0 of 0");
    read_and_expect("0/0/0/4/0/0/0 of 4");
    /* A later task begins a new feed. */
    path_in("0000", "state/feed.jsonl", path);
    BHT_EQ(unlink(path), 0);
    say("0000", HEAD("n2") JOB("1", "a", "1") JOB("2", "b", "1"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 17000 * ms, most), most);
    BHT_EQ(unlink(path), 0);
    say("0000", HEAD("n3") JOB("1", "a", "1"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 18000 * ms, most), most);
    say("0000", DONE("1"));
    BHT_EQ(bhi_shards_follow(&shards, 0, 19000 * ms, most), 20 * ms);
    read_and_expect("0/0/0/1/0/0/0 of 1");
}

/* A stream takes jobs before their turn: of those that it has, one runs. */
TEST(test_what_a_stream_has_taken) {
    say("0000", HEAD("n1") JOB("1", "a", "1") JOB("2", "b", "1") JOB("3", "c", "1"));
    say("0000", JOB("4", "d", "1"));
    say("0000", "{\"job\":1,\"attempt\":1,\"stream\":0,\"started\":5,\"state\":2}\n");
    say("0000", "{\"job\":2,\"attempt\":1,\"stream\":0,\"started\":5,\"state\":2}\n");
    say("0000", "{\"job\":3,\"attempt\":1,\"stream\":1,\"started\":5,\"state\":2}\n");
    open_all();
    expect_shards("0/2/2/0/0/0/0 of 4");
    say("0000", "{\"job\":1,\"state\":3,\"at\":5}\n");
    read_and_expect("0/1/2/1/0/0/0 of 4");
}

/* The report over attempts, one of which never began; a job that names a device; one that was
 * cancelled is listed also where none has failed. */
TEST(test_what_a_report_counts) {
    say("0000", HEAD("n1") JOB("1", "a", "1") JOB("2", "b", "1") JOB("3", "c", "1"));
    open_all();
    BHT_STR_HAS(table_of(), "0 attempts in 0 us on 1 shard");
    say("0000",
        "{\"job\":1,\"attempt\":1,\"started\":1700000001000000000,\"ended\":1700000002000000000,"
        "\"on\":\"gpu:0\",\"state\":3,\"attempts\":1}\n"
        "{\"job\":2,\"attempt\":1,\"given\":0,\"state\":1}\n"
        "{\"job\":3,\"attempt\":1,\"started\":1700000004000000000,\"state\":2}\n");
    read_on();
    BHT_STR_HAS(table_of(), "2 attempts in 3.00 s on 1 shard");
    BHT_STR_HAS(report_of(true), "\"cut_off\": 1,"); /* the second; the third runs */
    BHT_TRUE(!strstr(table_of(), "on each device"));
    BHT_TRUE(!strstr(table_of(), "MESSAGE"));
    say("0000",
        "{\"job\":4,\"id\":\"d\",\"line\":4,\"kernel\":\"k.spv\",\"device\":\"gpu:0\",\"state\":6}"
        "\n");
    read_on();
    BHT_STR_HAS(table_of(), "attempts on each device: gpu:0 1\n");
    BHT_STR_HAS(table_of(), "MESSAGE");
    BHT_STR_HAS(table_of(), "cancelled");
}

/* The next process writes the feed anew, in another file with the same name. */
TEST(test_a_feed_that_begins_anew) {
    char path[160];
    say("0000", HEAD("n1") JOB("1", "a", "2") JOB("2", "b", "3"));
    say("0000",
        "{\"job\":2,\"attempt\":1,\"started\":5}\n{\"job\":1,\"attempt\":1,\"started\":6}\n");
    open_all();
    expect_shards("0/0/1/1/0/0/0 of 2");
    BHT_STR_HAS(table_of(), "2 attempts in ");
    path_in("0000", "state/feed.jsonl", path);
    BHT_EQ(unlink(path), 0);
    say("0000", HEAD("n2") JOB("1", "a", "1") JOB("2", "b", "3") JOB("3", "c", "1"));
    say("0000", "{\"job\":2,\"attempt\":1,\"started\":5}\n");
    read_and_expect("0/2/0/1/0/0/0 of 3");
    BHT_STR_HAS(table_of(), "1 attempt in ");
    BHT_STR_EQ(shards.shards[0].host, "n2");
    BHT_EQ(unlink(path), 0); /* for a moment there is none: what is known stays */
    read_and_expect("0/2/0/1/0/0/0 of 3");
}

/* One that begins with the same bytes, as of a feed that the same process has written twice, is
 * another one once it is shorter than what was read of it. */
TEST(test_a_feed_that_is_written_anew_and_shorter) {
    char path[160];
#define FOUR JOB("1", "a", "2") JOB("2", "b", "2") JOB("3", "c", "2") JOB("4", "d", "2")
    BHT_GT(strlen(HEAD("n1") FOUR), BHI_READER_HEAD);
    say("0000", HEAD("n1") FOUR JOB("5", "e", "2") JOB("6", "f", "2"));
    open_all();
    expect_shards("0/0/6/0/0/0/0 of 6");
    path_in("0000", "state/feed.jsonl", path);
    BHT_EQ(unlink(path), 0);
    say("0000", HEAD("n1") FOUR JOB("5", "e", "3"));
    read_and_expect("0/0/4/1/0/0/0 of 5");
    say("0000", "{\"job\":1,\"state\":3,\"at\":5}\n");
    read_and_expect("0/0/3/2/0/0/0 of 5");
    BHT_EQ(shards.shards[0].damaged, 0);
}

/* Nothing of one feed is said of the next, not even while that has no whole line. */
TEST(test_what_a_feed_forgets_that_begins_anew) {
    char path[160];
    path_in("0000", "state/feed.jsonl", path);
    say("0000", "{\"feed\":2,\"batch\":\"old\",\"host\":\"n1\",\"pid\":9,\"began\":" BEGAN "}\n");
    say("0000", "nonsense\n" JOB("1", "a", "3") JOB("2", "b", "3") END);
    open_all();
    const struct bhi_shard *shard = &shards.shards[0];
    BHT_TRUE(shard->later);
    BHT_EQ(shard->damaged, 1);
    BHT_EQ(shard->state, BHI_SHARD_ENDED);
    BHT_EQ(unlink(path), 0);
    say("0000", "{\"feed\":1,");
    read_on();
    BHT_EQ(shard->state, BHI_SHARD_WAITS);
    BHT_TRUE(!bhi_shards_ended(&shards));
    BHT_EQ(shard->damaged + shard->first_damaged + shard->last_ns + shard->jobs + shard->ends +
               shard->first_ns + shard->later,
           0);
    say("0000", "\"batch\":\"0f1e\",\"host\":\"n2\",\"pid\":7,\"began\":" BEGAN "}\n");
    say("0000", JOB("1", "a", "1"));
    read_and_expect("0/1/0/0/0/0/0 of 1");
    BHT_TRUE(!shard->later);
    BHT_EQ(shard->damaged + shard->first_damaged, 0);
    BHT_EQ(shard->pid, 7);
    BHT_STR_EQ(shard->host, "n2");
    BHT_STR_EQ(shard->batch, "0f1e");
    BHT_TRUE(!strstr(table_of(), "note: shard 0000"));
}

/* Some have not begun: that is no reason to read none. */
TEST(test_shards_without_a_state) {
    char path[160];
    say("0001", HEAD("n1") JOB("1", "a", "1"));
    path_in("0000", "", path);
    BHT_EQ(mkdir(path, 0700), 0);
    open_all();
    BHT_EQ(shards.count, 2);
    expect_shards("0/1/0/0/0/0/0 of 1");
}

/* While a feed is shorter than what a reader remembers of its beginning, it learns the rest as that
 * comes; a file that is empty for a moment is no feed. */
TEST(test_a_feed_that_was_short_and_begins_anew) {
    char path[160];
    bool more;
    path_in("0000", "state/feed.jsonl", path);
    say("0000", HEAD("n1") JOB("1", "a", "2"));
    open_all();
    say("0000", JOB("2", "b", "2") JOB("3", "c", "2") JOB("4", "d", "2"));
    read_and_expect("0/0/4/0/0/0/0 of 4");
    BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint) && !more); /* it is the same one */
    expect_shards("0/0/4/0/0/0/0 of 4");
    BHT_EQ(truncate(path, 0), 0);
    read_and_expect("0/0/4/0/0/0/0 of 4");
    say("0000", HEAD("n1") JOB("1", "a", "2") JOB("2", "b", "3") JOB("3", "c", "2"));
    say("0000", JOB("4", "d", "2") JOB("5", "e", "2"));
    read_and_expect("0/0/4/1/0/0/0 of 5");
    BHT_EQ(unlink(path), 0);
    say("0000", HEAD("n1") JOB("1", "a", "2") JOB("2", "b", "3") JOB("3", "c", "3"));
    read_and_expect("0/0/1/2/0/0/0 of 3");
}

/* A line that is too long is one that is damaged, wherever a read ends in it; the next is good. */
TEST(test_lines_at_their_longest) {
    static char text[2 << 16];
    static const struct {
        size_t length;
        bool taken;
    } cases[] = {{BHI_FEED_LINE - 1, true},
                 {BHI_FEED_LINE, false},
                 {(1 << 16) - 1, false},
                 {1 << 16, false},
                 {100000, false}};
    for (size_t i = 0; i < 2 * BHT_COUNT(cases); i++) {
        const size_t length = cases[i / 2].length, half = i % 2 ? length / 2 : length;
        const bool taken = cases[i / 2].taken;
        renew_place();
        say("0000", HEAD("n1") JOB("1", "a", "1"));
        open_all();
        const int begin = sprintf(text, "{\"job\":2,\"id\":\"b\",\"state\":3,\"later\":\"");
        memset(text + begin, 'x', length - (size_t)begin);
        memcpy(text + length - 2, "\"}", 2);
        append("0000", text, half);
        read_and_expect("0/1/0/0/0/0/0 of 1");
        append("0000", text + half, length - half);
        read_and_expect("0/1/0/0/0/0/0 of 1"); /* without its end */
        say("0000", "\n" JOB("3", "c", "3") "nonsense\n");
        read_and_expect(taken ? "0/1/0/2/0/0/0 of 3" : "0/1/0/1/0/0/0 of 2");
        BHT_EQ(shards.shards[0].damaged, taken ? 1 : 2);
        BHT_EQ(shards.shards[0].first_damaged, taken ? 5 : 3);
        BHT_EQ(shards.shards[0].reader.lines, 5);
        close_all();
    }
}

/* What is at the end of a line that is too long is no line. */
TEST(test_the_end_of_a_line_that_is_too_long) {
    static char text[1 << 16];
    memset(text, 'x', sizeof text);
    say("0000", HEAD("n1") JOB("1", "a", "1"));
    open_all();
    append("0000", text, sizeof text);
    read_on();
    say("0000", "{\"job\":1,\"state\":3,\"at\":5}\n");
    read_and_expect("0/1/0/0/0/0/0 of 1");
    say("0000", "{\"job\":1,\"state\":4,\"at\":5}\n");
    read_and_expect("0/0/0/0/1/0/0 of 1");
    BHT_EQ(shards.shards[0].damaged, 1);
}

/* Each number of a line at its limits, and one beyond. */
TEST(test_numbers_at_their_limits) {
    static const struct {
        const char *key;
        int64_t least, most;
    } cases[] = {
        {"feed", 1, INT64_MAX},
        {"pid", 1, INT32_MAX},
        {"began", 0, INT64_MAX},
        {"end", 0, INT64_MAX},
        {"job", 1, UINT32_MAX},
        {"line", 0, INT64_MAX},
        {"state", 0, BHI_JOB_STATES - 1},
        {"attempts", 0, UINT32_MAX},
        {"guilty", 0, UINT32_MAX},
        {"verdict", 0, 1000000},
        {"origin", 1, UINT32_MAX},
        {"at", 0, INT64_MAX},
        {"attempt", 1, 1000000},
        {"given", 0, 1},
        {"stream", 0, 65535},
        {"started", 0, INT64_MAX},
        {"ended", 0, INT64_MAX},
        {"blamed", 0, 1},
        {"status", 0, 1023},
        {"executed", BH_EXECUTED_NO, BH_EXECUTED_YES},
        {"signal", 0, 255},
        {"exit", INT32_MIN, INT32_MAX},
        {"worker", 0, INT32_MAX},
        {"limit", INT64_MIN + 1, INT64_MAX},
        {"blame", BH_BLAME_NONE, BH_BLAME_CERTAIN},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        for (int at = 0; at < 4; at++) { /* before the least, it, the most, behind it */
            char text[256];
            struct bhi_feed_line line;
            const uint64_t number = (uint64_t)(at < 2 ? cases[i].least : cases[i].most) +
                                    (at == 3) - (uint64_t)(at == 0);
            if (at == 3 && cases[i].most == INT64_MAX) {
                continue; /* no number of JSON's */
            }
            snprintf(text, sizeof text, "{%s%s\"%s\":%lld}",
                     strcmp(cases[i].key, "feed") != 0 ? "" : "\"batch\":\"a\",\"host\":\"n\",",
                     strcmp(cases[i].key, "feed") != 0 ? "" : "\"pid\":7,\"began\":1,",
                     cases[i].key, (long long)number);
            if (bhi_feed_line_parse(text, strlen(text), &line) != (at == 1 || at == 2)) {
                BHT_FAIL("%s is %s", text, at == 1 || at == 2 ? "refused" : "taken");
            }
            bhi_feed_line_free(&line);
        }
    }
}

/* Each text at its longest, and a byte longer; each that is none. */
TEST(test_texts_at_their_longest) {
    static const struct {
        const char *key;
        int most;
    } cases[] = {{"batch", 32},      {"host", BHI_HOST_NAME - 1},
                 {"id", BHI_JOB_ID}, {"kernel_name", 63},
                 {"message", 511},   {"on", 47}};
    static char x[BHI_JOB_ID + 600];
    memset(x, 'x', sizeof x - 1);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        for (int more = -1; more < 2; more++) { /* -1: a number */
            char text[1024];
            struct bhi_feed_line line;
            snprintf(text, sizeof text, "{\"job\":1,\"state\":1,\"%s\":%s%.*s%s}", cases[i].key,
                     more < 0 ? "" : "\"", more < 0 ? 0 : cases[i].most + more, x,
                     more < 0 ? "7" : "\"");
            if (bhi_feed_line_parse(text, strlen(text), &line) != (more == 0)) {
                BHT_FAIL("%s is %s", text, more ? "taken" : "refused");
            }
            bhi_feed_line_free(&line);
        }
    }
}

TEST(test_damage) {
    static char longest[3 * BHI_FEED_LINE];
    say("0000", JOB("1", "early", "1")); /* 1: before the head */
    say("0000", HEAD("n1") JOB("1", "a", "1"));
    say("0000", "{\"job\":9,\"state\":3}\n");                 /* 4: no such job */
    say("0000", "{\"job\":1,\"state\":7}\n");                 /* 5: no such state */
    say("0000", "{\"job\":1,\"state\":3,\"state\":3}\n");     /* 6: twice */
    say("0000", "{\"job\":1,\"attempts\":-1,\"state\":3}\n"); /* 7: negative */
    say("0000", "{\"job\":\"1\",\"state\":3}\n");             /* 8: a text */
    say("0000", "[1]\nnonsense\n\n");                         /* 9, 10, 11 */
    say("0000", "{\"job\":2,\"id\":\"\",\"state\":1}\n");     /* 12: no id */
    say("0000", "{\"other\":2,\"id\":\"\"}\n");               /* 13: nor is that one */
    say("0000", "{\"feed\":1,\"batch\":\"a\",\"host\":\"n 1\",\"pid\":7,\"began\":1}\n"); /* 14 */
    memset(longest, 'x', sizeof longest);
    append("0000", longest, sizeof longest);
    say("0000", "\n{\"later\":[1,2]}\n" JOB("2", "b", "3")); /* 15; 16 is of a later version */
    open_all();
    expect_shards("0/1/0/1/0/0/0 of 2");
    BHT_EQ(shards.shards[0].damaged, 13);
    BHT_EQ(shards.shards[0].first_damaged, 1);
    BHT_STR_HAS(table_of(),
                "note: shard 0000: 13 lines of its feed are damaged, the first is line 1");
}

/* What has not come over a network file system yet reads as NUL bytes. */
TEST(test_holes) {
    static const char hole[40] = "";
    char path[160];
    bool more;
    say("0000", HEAD("n1") JOB("1", "a", "1"));
    const size_t at = strlen(HEAD("n1") JOB("1", "a", "1"));
    append("0000", hole, strlen("{\"job\":1,\"state\":3,\"at\":5}"));
    say("0000", "\n" JOB("2", "b", "3"));
    open_all();
    expect_shards("0/1/0/0/0/0/0 of 1");
    path_in("0000", "state/feed.jsonl", path);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    BHT_EQ(pwrite(fd, "{\"job\":1,\"state\":3,\"at\":5}", 26, (off_t)at), 26);
    close(fd);
    read_and_expect("0/0/0/2/0/0/0 of 2");
    BHT_EQ(shards.shards[0].damaged, 0);
    append("0000", hole, sizeof hole); /* this one stays */
    say("0000", "\n" JOB("3", "c", "3"));
    for (int i = 0; i < 30; i++) {
        BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint));
    }
    expect_shards("0/0/0/3/0/0/0 of 3");
    BHT_EQ(shards.shards[0].damaged, 1);
}

/* A hole is looked at twenty times before it is damage; each has its own. */
TEST(test_how_long_a_hole_is_waited_for) {
    static const char hole[] = {0, 0, '\n'};
    char path[160];
    bool more;
    path_in("0000", "state/feed.jsonl", path);
    say("0000", HEAD("n1") FOUR); /* more than what a feed is told by */
    open_all();
    append("0000", hole, sizeof hole);
    append("0000", hole, sizeof hole);
    for (unsigned i = 0; i < 41; i++) { /* the second one for the first time with the 21st */
        BHT_EQ(shards.shards[0].damaged, i / 21);
        BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint));
    }
    BHT_EQ(shards.shards[0].damaged, 2);
    BHT_EQ(shards.shards[0].first_damaged, 6);
    append("0000", hole, sizeof hole);
    append("0000", hole, sizeof hole);
    for (unsigned i = 0; i < 20; i++) {
        BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint));
    }
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    BHT_EQ(pwrite(fd, "{}", 2, (off_t)shards.shards[0].reader.offset), 2); /* it has come */
    close(fd);
    for (unsigned i = 0; i < 20; i++) {
        BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint));
    }
    BHT_EQ(shards.shards[0].damaged, 2);
    BHT_TRUE(bhi_shards_poll(&shards, &more, &complaint));
    BHT_EQ(shards.shards[0].damaged, 3);
}

/* Nothing else than a file is read, and nothing is waited for. */
TEST(test_what_is_no_feed) {
    char path[160], other[160];
    for (int i = 0; i < 4; i++) {
        char name[8];
        sprintf(name, "%04d", i);
        make_shard(name);
    }
    path_in("0000", "state/feed.jsonl", path);
    BHT_EQ(mkfifo(path, 0600), 0);
    path_in("0001", "state/feed.jsonl", path);
    BHT_EQ(mkdir(path, 0700), 0);
    say("0003", HEAD("n1") JOB("1", "a", "1"));
    path_in("0003", "state/feed.jsonl", other);
    path_in("0002", "state/feed.jsonl", path);
    BHT_EQ(symlink(other, path), 0);
    path_in("0000", "jobs.jsonl", path);
    BHT_EQ(mkfifo(path, 0600), 0);
    path_in("0001", "state/batch.db", path);
    write_file(path, "", 0);
    snprintf(path, sizeof path, "%s/shards/notes", place.folder); /* no number: no shard */
    BHT_EQ(mkdir(path, 0700), 0);
    open_all();
    BHT_EQ(shards.count, 4);
    expect_shards("0/1/0/0/0/0/0 of 1");
    BHT_STR_HAS(table_of(), "note: shard 0001 has a state, but no feed: ");
    close_all();
    renew_place();
    BHT_TRUE(!bhi_shards_open(place.folder, &shards, &complaint));
    BHT_STR_HAS(complaint.text, "No such file");
    BHT_EQ(mkdir(place.folder, 0700), 0);
    BHT_TRUE(!bhi_shards_open(place.folder, &shards, &complaint));
    BHT_STR_HAS(complaint.text, "is no state folder of a batch");
}

static bool count_twice(void *user, const char *id, const char *where) {
    int *count = user;
    ++*count;
    BHT_STR_EQ(id, "b");
    BHT_STR_EQ(where, "0000 (done), 0002 (waiting)");
    return true;
}

TEST(test_a_job_in_two_shards) {
    int count = 0;
    say("0000", HEAD("n1") JOB("1", "a", "3") JOB("2", "b", "3"));
    say("0001", HEAD("n2") JOB("1", "c", "3"));
    say("0002", HEAD("n2") JOB("1", "d", "3") JOB("2", "b", "1"));
    open_all();
    BHT_TRUE(bhi_store_each_twice(shards.store, count_twice, &count));
    BHT_EQ(count, 1);
    BHT_STR_HAS(
        table_of(),
        "note: job b is in several shards: 0000 (done), 0002 (waiting); each may have run it");
}

/* -- a bit of everything ---------------------------------------------------------------------------
 */

static void make_some_of_all(void) {
    char path[160];
    say("0000", HEAD("n1") JOB("1", "a", "1") JOB("2", "b", "3") "nonsense\n");
    say("0000",
        "{\"job\":1,\"attempt\":1,\"given\":1,\"stream\":2,\"started\":1700000001000000000,"
        "\"ended\":1700000002000000000,\"blamed\":1,\"status\":9,\"executed\":2,\"signal\":11,"
        "\"exit\":3,\"worker\":77,\"limit\":5,\"blame\":2,\"kernel_name\":\"k\",\"on\":\"gpu:1\","
        "\"host\":\"n9\",\"message\":\"broken\",\"state\":4,\"attempts\":1,\"guilty\":1,"
        "\"verdict\":1,"
        "\"at\":1700000002000000000}\n");
    say("0000",
        "{\"job\":3,\"id\":\"c\",\"line\":5,\"device\":\"gpu:0\",\"state\":6,\"origin\":1}\n" END);
    say("0001", HEAD("n2") JOB("1", "d", "1") JOB("2", "b", "1"));
    say("0001", "{\"job\":2,\"attempt\":1,\"stream\":1,\"started\":1700000002000000000,"
                "\"ended\":1700000003000000000,\"host\":\"n9\"}\n");
    say("0001", "{\"job\":2,\"attempt\":2,\"stream\":0,\"started\":1700000003000000000,"
                "\"host\":\"n9\",\"state\":2}\n");
    say("0001", "{\"job\":1,\"attempt\":1,\"stream\":0,\"started\":1700000003000000000,"
                "\"host\":\"n9\",\"state\":2}\n");
    snprintf(path, sizeof path, "%s/quarantine", place.folder);
    BHT_EQ(mkdir(path, 0700), 0);
    bht_put("", "%s/%064d", path, 7);
}

static bool print_attempt(void *user, const struct bhi_attempt_record *record) {
    const bh_verdict *verdict = &record->verdict;
    char *at = (char *)user + strlen(user);
    sprintf(at, "%d %s %u %d %u %d+%d %d, %d %d %d %d %d %d %s %s %d %s, %s %u %s %d; ",
            (int)record->job, record->id, record->attempt, record->started, record->stream,
            (int)(record->started_ns / 1000000000 % 100),
            (int)(record->ended_ns / 1000000000 % 100), record->guilty, (int)verdict->status,
            (int)verdict->executed, verdict->signal, verdict->exit_code, verdict->worker_pid,
            (int)verdict->limit, verdict->kernel_name, verdict->message, (int)verdict->blame,
            verdict->device, record->host, record->row, record->row_name, record->runs);
    return true;
}

TEST(test_every_field_that_is_kept) {
    static const char attempts[] =
        "1 a 1 1 2 1+2 1, 9 2 11 3 77 5 k broken 2 gpu:1, n9 0 n9 0000 stream 2 0; "
        "1 d 1 1 0 3+0 0, 2 1 0 -1 0 0   0 , n9 1 n9 0001 stream 0 1; "
        "2 b 1 1 1 2+3 0, 2 1 0 -1 0 0   0 , n9 2 n9 0001 stream 1 0; "
        "2 b 2 1 0 3+0 0, 2 1 0 -1 0 0   0 , n9 1 n9 0001 stream 0 1; ";
    char found[1024] = "";
    make_some_of_all();
    open_all();
    const char *json = report_of(true);
    BHT_STR_HAS(json, "\"state\": \"ended\",\n      \"host\": \"n1\",\n      \"total\": 3,\n"
                      "      \"submitted\": 0,\n      \"waiting\": 0,\n      \"running\": 0,\n"
                      "      \"done\": 1,\n      \"failed\": 1,\n      \"quarantined\": 0,\n"
                      "      \"cancelled\": 1,\n      \"last\": 1700000009000.0,\n");
    BHT_TRUE(bhi_store_each_attempt(shards.store, print_attempt, found));
    BHT_STR_EQ(found, attempts);
    /* A row for each of the three streams, of the shards, of the machines. */
    static const char *const rows[] = {"n9 0 n9 0;", "n9 0 n9 0;", "n9 0 n9 0000 0;",
                                       "n9 0 n9 0000 stream 2 0;"};
    for (uint32_t most = 0; most < BHT_COUNT(rows); most++) {
        found[0] = '\0';
        BHT_TRUE(bhi_store_make_rows(shards.store, most));
        BHT_TRUE(bhi_store_find_attempts(shards.store, "a", "0000", print_attempt, found));
        BHT_STR_HAS(found, rows[most]);
    }
}

/* -- what fails -------------------------------------------------------------------------------- */

static long full_at,
    steps; /* the call of SQLite that finds the disk full; 0: none; and all calls */

BHT_WRAP(int, sqlite3_step, sqlite3_stmt *statement) {
    return ++steps == full_at ? SQLITE_FULL : __real_sqlite3_step(statement);
}

BHT_WRAP(int, sqlite3_exec, sqlite3 *db, const char *sql, sqlite3_callback call, void *argument,
         char **out_message) {
    return ++steps == full_at ? SQLITE_FULL
                              : __real_sqlite3_exec(db, sql, call, argument, out_message);
}

static long calls_so_far(void) {
    return full_at ? steps : faulty_memory_seen();
}

/* As a submitter reads them. How many calls that may fail there were before and after the look
 * without an answer, and when all was read; 0: it was not. */
static long before_look, after_look, when_read;

static bool try_all(void) {
    complaint.text[0] = '\0';
    when_read = 0;
    if (!bhi_shards_open(place.folder, &shards, &complaint)) {
        return false;
    }
    before_look = calls_so_far();
    (void)bhi_shards_follow(&shards, 0, 1, 2);
    after_look = calls_so_far();
    if (!bhi_shards_read(&shards, &complaint)) {
        return false;
    }
    when_read = calls_so_far();
    return try_report(false);
}

/* Whatever fails: what is reported is complete, or it is said that it is not; at once, where there is
 * an answer. */
static void read_all(long at) {
    static char whole[sizeof report_text];
    if (try_all()) {
        expect_shards("0/1/1/1/1/0/1 of 5");
        if (at) {
            BHT_STR_EQ(report_text, whole);
        } else {
            strcpy(whole, report_text); /* nothing fails */
        }
    } else {
        BHT_NE(complaint.text[0], '\0');
        BHT_TRUE(at > when_read || (at > before_look && at <= after_look));
    }
    close_all();
}

TEST(test_memory_runs_out) {
    long at = 1;
    make_some_of_all();
    read_all(0);
    while (faulty_memory_run(at, read_all)) {
        at += 1 + at / 64;
    }
    BHT_GT(at, 500);
}

TEST(test_the_disk_is_full) {
    make_some_of_all();
    read_all(0);
    do {
        full_at++;
        steps = 0;
        read_all(full_at);
    } while (steps >= full_at);
    BHT_GT(full_at, 50);
}

static void set_time(const char *shard, const char *name, time_t time) {
    const struct timespec times[2] = {{.tv_sec = time}, {.tv_sec = time}};
    char path[160];
    path_in(shard, name, path);
    BHT_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The clock of n1 is right, that of n2 ahead, that of n3 behind. */
TEST(test_clocks) {
    static const char *const names[] = {"0000", "0001", "0002"};
    char path[160];
    for (size_t i = 0; i < 3; i++) {
        make_shard(names[i]);
        path_in(names[i], "jobs.jsonl", path);
        write_file(path, "{}\n", 3);
        set_time(names[i], "jobs.jsonl", i == 2 ? 1700000075 : 1699999999);
    }
    say("0000", HEAD("n1") END);
    say("0001", HEAD("n2") END);
    say("0002", HEAD("n3") END);
    set_time("0000", "state/feed.jsonl", 1700000009);
    set_time("0001", "state/feed.jsonl", 1700000009 - 90);
    set_time("0002", "state/feed.jsonl", 1700000009 + 75);
    open_all();
    BHT_EQ(shards.shards[0].skew_ns, 0);
    BHT_EQ(shards.shards[1].skew_ns, 90000000000);
    BHT_EQ(shards.shards[2].skew_ns, -75000000000);
    const char *table = table_of();
    BHT_STR_HAS(table,
                "note: the clock of n2 differs from the file system's: it is 1 min 30 s ahead, ");
    BHT_STR_HAS(table,
                "note: the clock of n3 differs from the file system's: it is 1 min 15 s behind, ");
    BHT_EQ(strstr(table, "the clock of n1"), NULL);
}

TEST(test_a_later_version) {
    say("0000", "{\"feed\":2,\"batch\":\"a\",\"host\":\"n1\",\"pid\":7,\"began\":1,\"new\":{}}\n"
                "{\"job\":1,\"id\":\"a\",\"state\":3,\"colour\":\"red\"}\n");
    open_all();
    expect_shards("0/0/0/1/0/0/0 of 1");
    BHT_STR_HAS(table_of(), "note: a later version runs shard 0000");
}

/* A shard's bytes do nothing to a terminal or a page. */
TEST(test_hostile_texts) {
    say("0000", HEAD("n1") JOB("1", "a\\u001b[2J\\n<b>",
                               "1") "{\"job\":1,\"attempt\":1,\"ended\":5,\"status\":"
                                    "999,\"message\":\"\\u001b]0;x\\u0007\","
                                    "\"state\":4,\"verdict\":1}\n");
    open_all();
    const char *table = table_of();
    BHT_EQ(strchr(table, '\x1b'), NULL);
    BHT_STR_HAS(table, "a?[2J <b>");
}

/* -- cancelling ---------------------------------------------------------------------------------
 */

TEST(test_cancelling) {
    char path[128];
    make_shard("0000");
    open_all();
    BHT_TRUE(bhi_shards_cancel(&shards, &complaint));
    BHT_GE(size_of("cancel"), 0);
    BHT_TRUE(bhi_shards_cancel(&shards, &complaint)); /* twice is once */
    read_on();
    BHT_TRUE(shards.cancelled);
    BHT_STR_HAS(table_of(), "note: it was cancelled by ");
    close_all();
    renew_place();
    /* A single batch: only while a process has it. */
    fresh("a");
    open_all();
    BHT_TRUE(bhi_shards_cancel(&shards, &complaint));
    path_of("cancel", path);
    BHT_EQ(unlink(path), 0);
    close_queue();
    BHT_TRUE(!bhi_shards_cancel(&shards, &complaint));
    BHT_STR_HAS(complaint.text, "no process has it: there is nothing to cancel");
    BHT_EQ(size_of("cancel"), -1);
}

/* -- the shared quarantine ----------------------------------------------------------------------
 */

static int count_files(const char *folder) {
    int count = 0;
    DIR *dir = opendir(folder);
    BHT_NE(dir, NULL);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

TEST(test_the_shared_quarantine) {
    const bh_verdict bad = {.status = BH_DEADLINE, .kernel_hash = {1, 2}, .kernel_name = "k"};
    const bh_verdict good = {.status = BH_DEADLINE, .kernel_hash = {1, 3}};
    const bh_verdict unknown = {.status = BH_DEADLINE};
    struct bhi_quarantine one, other;
    static char text[MOST];
    char path[192];
    BHT_TRUE(bhi_quarantine_open(place.folder, &one, &complaint));
    BHT_TRUE(bhi_quarantine_open(place.folder, &other, &complaint));
    BHT_TRUE(!bhi_quarantine_has(&other, &bad));
    bhi_quarantine_put(&one, &bad, "job \"x\"");
    bhi_quarantine_put(&other, &bad, "second");
    bhi_quarantine_put(&one, &unknown, "a kernel without a hash");
    BHT_TRUE(!one.failed && !other.failed);
    BHT_TRUE(bhi_quarantine_has(&other, &bad));
    BHT_TRUE(!bhi_quarantine_has(&other, &good));
    BHT_TRUE(!bhi_quarantine_has(&other, &unknown));
    BHT_EQ(count_files(place.folder), 1); /* and no temporary one */
    snprintf(path, sizeof path, "%s/0102%060d", place.folder, 0);
    text[read_file(path, text)] = '\0';
    BHT_STR_HAS(text, "\"job\": \"job \\\"x\\\"\"");
    BHT_STR_HAS(text, "\"code\": \"DEADLINE\"");
    /* What others put there is no entry. */
    snprintf(path, sizeof path, "%s/0103%060d", place.folder, 0);
    BHT_EQ(mkdir(path, 0700), 0);
    BHT_TRUE(!bhi_quarantine_has(&one, &good));
    bhi_quarantine_put(&one, &good, "third");
    BHT_TRUE(bhi_quarantine_has(&other, &bad));
    bhi_quarantine_close(&one);
    bhi_quarantine_close(&other);
    BHT_EQ(chmod(place.folder, 0777), 0);
    BHT_TRUE(!bhi_quarantine_open(place.folder, &one, &complaint));
    BHT_STR_HAS(complaint.text, "can be written by others");
    BHT_EQ(chmod(place.folder, 0700), 0);
    snprintf(path, sizeof path, "%s/missing/deep", place.folder);
    BHT_TRUE(!bhi_quarantine_open(path, &one, &complaint));
}

static void at_start(void) {
    bht_end_with(close_all);
    faulty_memory_set_up();
    unsetenv("LOCPATH"); /* where a locale is not found, something stays each time */
    bht_default_flags(BHT_ALLOW_MAPPINGS); /* a locale stays loaded */
}

BHT_AT_START(at_start())
