/* Going on with a batch: what changes when, and which lines may. */
#include "journal_fixture.h"

#include <string.h>

static enum bhi_queue_result add_line(struct bhi_queue *queue, const char *text,
                                      struct bhi_complaint *complaint) {
    struct bhi_job_spec spec;
    if (!bhi_job_parse(text, strlen(text), &spec, complaint)) {
        BHT_FAIL("%s", complaint->text);
    }
    spec.line = 7;
    const enum bhi_queue_result result = bhi_queue_add(queue, &spec, 1, complaint);
    bhi_job_spec_free(&spec);
    return result;
}

static void test_refused_resume_changes_nothing(void) {
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a b:a c d");
    run_one(queue, "a", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run_one(queue, "c", BHI_JOB_CANCELLED, BH_CANCELLED);
    bhi_queue_started(queue, take(queue, "d"), 0);
    bhi_queue_close(queue);
    const char *const before = "a quarantined 1 -; b failed 0 a; c cancelled 0 -; d running 0 -; ";
    const char *const sql = "SELECT id, state, guilty, origin FROM jobs";
    for (int i = 0; i < 3; i++) {
        BHT_EQ(try_open(&place, true, true, &queue, &complaint), BHI_QUEUE_OK);
        take(queue, NULL); /* nothing has been accepted yet */
        if (i == 1) {
            BHT_EQ(add_line(queue, "{\"id\": \"d\", \"kernel\": \"other\", \"groups\": [1]}",
                            &complaint),
                   BHI_QUEUE_BAD_INPUT);
        }
        if (i == 2) {
            BHT_EQ(try_add(queue, "e:nobody", &complaint), BHI_QUEUE_BAD_INPUT);
        }
        take(queue, NULL);
        bhi_queue_close(queue);
        expect_sql(&place, sql, before);
    }
    queue = again(&place); /* which was not asked to try failures again */
    take(queue, "c");
    take(queue, "d");
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_sql(&place, sql, "a quarantined 1 -; b failed 0 a; c waiting 0 -; d waiting 0 -; ");
    remove_place(&place);
}

static void expect_refused(struct bhi_queue *queue, const char *line, const char *words) {
    struct bhi_complaint complaint;
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_BAD_INPUT);
    if (!strstr(complaint.text, words)) {
        BHT_FAIL("%s", complaint.text);
    }
}

static void test_a_failed_line_is_mended(void) {
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    static const char mended[] = "{\"id\": \"b\", \"kernel\": \"k2\", \"groups\": [2], "
                                 "\"priority\": 9, \"retries\": 5, \"out\": {\"0\": \"y:u32[1]\"}}";
    static const char bends[] = "{\"id\": \"b\", \"kernel\": \"k\", \"groups\": [1], "
                                "\"depends_on\": [\"a\"]}";
    static const char done[] = "{\"id\": \"c\", \"kernel\": \"k2\", \"groups\": [1]}";
    static const char writes[] = "{\"id\": \"w\", \"kernel\": \"k\", \"groups\": [1], "
                                 "\"out\": {\"0\": \"y:u32[1]\"}}";
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a b c");
    run_one(queue, "a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    run_one(queue, "b", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    run_one(queue, "c", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);

    BHT_EQ(try_open(&place, true, false, &queue, &complaint), BHI_QUEUE_OK);
    expect_refused(queue, mended, "--retry-failed");
    bhi_queue_close(queue);

    BHT_EQ(try_open(&place, true, true, &queue, &complaint), BHI_QUEUE_OK);
    expect_refused(queue, bends, "\"depends_on\" cannot change");
    expect_refused(queue, done, "run it again as this line says (--redo ");
    expect_sql(&place, "SELECT id, line, priority, state FROM job JOIN progress ON job = number",
               "a 1 0 4; b 2 0 4; c 3 0 3; ");
    if (add_line(queue, mended, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    expect_sql(&place,
               "SELECT id, line, job.priority, retries, state, tried FROM job JOIN progress ON "
               "job = number",
               "a 1 0 2 1 1; b 7 9 5 1 1; c 3 0 2 3 1; ");
    expect_refused(queue, writes, "writes y, which \"b\" (line 7) writes, too");
    struct bhi_job *job = take(queue, "b"); /* it goes first now */
    BHT_EQ(job->retries, 5);
    BHT_EQ(job->attempts, 1);
    BHT_STR_HAS(job->text, "k2");
    /* It has begun: no line changes any more. */
    expect_refused(queue, "{\"id\": \"a\", \"kernel\": \"k2\", \"groups\": [1]}",
                   "run it again as this line says (--redo ");
    bhi_queue_close(queue);

    queue = again(&place);
    BHT_EQ(add_line(queue, mended, &complaint), BHI_QUEUE_OK);
    job = take(queue, "b");
    BHT_STR_HAS(job->text, "k2");
    bhi_queue_close(queue);
    remove_place(&place);
}

static void test_a_mended_line_meets_others(void) {
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    static const char base[] = "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], "
                               "\"out\": {\"0\": \"%s:u32[1]\"}}";
    char line[256];
    make_place(&place);
    queue = fresh(&place);
    snprintf(line, sizeof line, base, "a", "x");
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_OK);
    snprintf(line, sizeof line, base, "b", "y");
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_OK);
    run_one(queue, "a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    bhi_queue_close(queue);
    BHT_EQ(try_open(&place, true, true, &queue, &complaint), BHI_QUEUE_OK);
    snprintf(line, sizeof line, base, "a", "y");
    expect_refused(queue, line, "writes y");
    snprintf(line, sizeof line, base, "a", "z");
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_OK);
    snprintf(line, sizeof line, base, "c", "x"); /* is free now */
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_OK);
    bhi_queue_close(queue);
    remove_place(&place);
}

/* An id is one job's, whether that is new, loaded, or gets another line. */
static void test_an_id_is_given_once(void) {
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a b:a");
    run_one(queue, "a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    bhi_queue_close(queue);
    static const char *const lines[] = {"b:a a c a", "b:a a c b:a", "c a c"};
    static const char *const words[] = {
        "jobs.jsonl:4: the id \"a\" is given twice, first in line 2",
        "jobs.jsonl:4: the id \"b\" is given twice, first in line 1",
        "jobs.jsonl:3: the id \"c\" is given twice, first in line 1"};
    for (int failed = 0; failed < 2; failed++) {
        BHT_EQ(try_open(&place, true, failed, &queue, &complaint), BHI_QUEUE_OK);
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            BHT_EQ(try_add(queue, lines[i], &complaint), BHI_QUEUE_BAD_INPUT);
            BHT_STR_EQ(complaint.text, words[i]);
        }
        add(queue, "a b:a"); /* once a call is fine, in each */
        add(queue, "b:a a");
        bhi_queue_close(queue);
    }
    expect_sql(&place, "SELECT id FROM job", "a; b; ");
    remove_place(&place);
}

/* One that found too little memory is given to a worker again: that is one attempt. */
static void test_begun_twice_is_one_attempt(void) {
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    struct bhi_job *job = take(queue, "a");
    bhi_queue_started(queue, job, 0);
    bhi_queue_started(queue, job, 1);
    end(queue, job, BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT attempt, started, attempts FROM attempt JOIN progress USING (job)",
               "1 1 1; ");
    remove_place(&place);
}

static void ignore(void *user, bool durable) {
    (void)user;
    BHT_TRUE(durable);
}

/* Whatever keeps it from its place: it must never run again. */
static void test_sealed_is_given_back_sealed(void) {
    static const char sql[] = "SELECT state, sealed, tried, attempts, (SELECT count(*) FROM "
                              "attempt WHERE ended_ns > 0) FROM progress";
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a b:a");
    struct bhi_job *job = take(queue, "a");
    bhi_queue_started(queue, job, 3);
    seal_job(queue, job, "", ignore, NULL);
    bhi_queue_close(queue);
    for (int i = 0; i < 2; i++) {
        queue = again(&place);
        job = take(queue, "a");
        BHT_TRUE(job->sealed);
        end(queue, job, BHI_JOB_WAITING, BH_NO_MEMORY);
        job = take(queue, "a");
        BHT_TRUE(job->sealed);
        end(queue, job, BHI_JOB_CANCELLED, BH_CANCELLED);
        job = take(queue, "a");
        BHT_TRUE(job->sealed);
        BHT_EQ(job->attempts, 1);
        if (i == 1) {
            const struct bhi_attempt placed = {
                .next = BHI_JOB_DONE, .started_ns = 7, .ended_ns = 7};
            bhi_queue_ended(queue, job, &placed, 0);
        }
        bhi_queue_close(queue);
        expect_sql(&place, sql, i ? "3 0 1 1 1; 1 0 0 0 1; " : "2 1 1 1 1; 0 0 0 0 1; ");
    }
    expect_sql(&place, "SELECT started, stream, status FROM attempt", "1 3 0; ");
    remove_place(&place);
}

static bool expect_times(void *user, const struct bhi_job_record *record) {
    (void)user;
    BHT_EQ(record->started_ns, 4);
    BHT_EQ(record->ended_ns, 6);
    BHT_EQ(record->took_ns, 2);
    return true;
}

/* What ran before a kill took as long as it took, however long nobody went on with it. */
static void test_sealed_keeps_its_times(void) {
    static const char sql[] = "SELECT attempt.started_ns, attempt.ended_ns, progress.ended_ns, "
                              "status, executed, worker_pid, kernel_name, message FROM attempt "
                              "JOIN progress USING (job)";
    const struct bhi_attempt ends[] = {
        {.next = BHI_JOB_DONE, .started_ns = 70, .ended_ns = 70},
        {.next = BHI_JOB_FAILED,
         .started_ns = 70,
         .ended_ns = 70,
         .verdict = {.status = BH_INVALID_ARGUMENT, .message = "removed"}}};
    static const char *const rows[] = {"4 6 6 0 2 77 k ; ", "4 6 6 3 2 77 k removed; "};
    for (int i = 0; i < 4; i++) {
        struct place place;
        make_place(&place);
        struct bhi_queue *queue = fresh(&place);
        add(queue, "a");
        struct bhi_job *job = take(queue, "a");
        bhi_queue_started(queue, job, 1);
        seal_job(queue, job, "", ignore, NULL);
        bhi_queue_close(queue);
        expect_sql(&place, sql, "4 6 0 0 2 77 k ; ");
        if (i >= 2) { /* a version that recorded no end with the seal */
            alter(&place, "UPDATE attempt SET ended_ns = 0");
        }
        queue = again(&place);
        bhi_queue_ended(queue, take(queue, "a"), &ends[i % 2], 0);
        BHT_TRUE(bhi_queue_flush(queue));
        if (i < 2) {
            BHT_TRUE(bhi_queue_each_job(queue, expect_times, NULL));
        }
        bhi_queue_close(queue);
        if (i < 2) {
            expect_sql(&place, sql, rows[i]);
        } else {
            expect_sql(&place, "SELECT ended_ns FROM attempt UNION SELECT ended_ns FROM progress",
                       "70; ");
        }
        remove_place(&place);
    }
}

static enum bhi_queue_result open_redo(const struct place *place, const char *const *ids,
                                       size_t count, bool dry, struct bhi_queue **out_queue,
                                       struct bhi_complaint *complaint) {
    const struct bhi_queue_options options = {.folder = place->folder,
                                              .jobs_path = "jobs.jsonl",
                                              .resume = true,
                                              .redo = ids,
                                              .redo_count = count,
                                              .dry_run = dry};
    return bhi_queue_open(&options, out_queue, complaint);
}

/* a is done, b is sealed, c waits for it; d is quarantined, and e fell with it; f is done. */
static void test_redo_begins_anew_with_what_depends_on_it(void) {
    static const char sql[] =
        "SELECT id, jobs.state, jobs.sealed, outputs, jobs.guilty, jobs.origin, "
        "ended_ns > 0 FROM jobs JOIN progress ON job = number";
    static const char before[] = "a done 0  0 - 1; b running 1  0 - 0; c submitted 0  0 - 0; "
                                 "d quarantined 0  1 - 1; e failed 0  0 d 1; f done 0  0 - 1; ";
    static const char *const unknown[] = {"f", "nobody"}, *const ids[] = {"a", "d"};
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    make_place(&place);
    queue = fresh(&place);
    add(queue, "a b:a c:b d e:d f");
    run_one(queue, "a", BHI_JOB_DONE, BH_OK);
    struct bhi_job *job = take(queue, "b");
    bhi_queue_started(queue, job, 1);
    seal_job(queue, job, "", ignore, NULL);
    run_one(queue, "d", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run_one(queue, "f", BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    expect_sql(&place, sql, before);

    BHT_EQ(open_redo(&place, unknown, 2, false, &queue, &complaint), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "has no job \"nobody\"");
    expect_sql(&place, sql, before);

    /* What only looks sees it, and changes nothing. */
    BHT_EQ(open_redo(&place, ids, 1, true, &queue, &complaint), BHI_QUEUE_OK);
    BHT_TRUE(bhi_queue_runs_anew(queue, "b"));
    BHT_TRUE(!bhi_queue_runs_anew(queue, "d"));
    BHT_EQ(bhi_queue_add(queue, NULL, 0, &complaint), BHI_QUEUE_OK);
    for (const char *id = "a"; *id != 'd'; id = *id == 'a' ? "b" : *id == 'b' ? "c" : "d") {
        job = take(queue, id);
        BHT_TRUE(!job->sealed);
        end(queue, job, BHI_JOB_DONE, BH_OK);
    }
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_sql(&place, sql, before);

    /* Patterns, and all. */
    static const char *const all[] = {"all"}, *const some[] = {"[b-c]", "x", "?"};
    BHT_EQ(open_redo(&place, some, 2, true, &queue, &complaint), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "has no job \"x\"");
    BHT_EQ(open_redo(&place, some, 1, true, &queue, &complaint), BHI_QUEUE_OK);
    BHT_TRUE(bhi_queue_runs_anew(queue, "b") && bhi_queue_runs_anew(queue, "c"));
    BHT_TRUE(!bhi_queue_runs_anew(queue, "a") && !bhi_queue_runs_anew(queue, "f"));
    bhi_queue_close(queue);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(open_redo(&place, i ? all : &some[2], 1, true, &queue, &complaint), BHI_QUEUE_OK);
        for (const char *id = "abcdef"; *id; id++) {
            BHT_TRUE(bhi_queue_runs_anew(queue, (char[]){*id, 0}));
        }
        bhi_queue_close(queue);
    }
    expect_sql(&place, sql, before);

    BHT_EQ(open_redo(&place, ids, 2, false, &queue, &complaint), BHI_QUEUE_OK);
    BHT_EQ(add_line(queue, "{\"id\": \"a\", \"kernel\": \"new\", \"groups\": 1}", &complaint),
           BHI_QUEUE_OK);
    expect_sql(
        &place, sql,
        "a waiting 0  0 - 0; b submitted 0  0 - 0; c submitted 0  0 - 0; d waiting 0  0 - 0; "
        "e submitted 0  0 - 0; f done 0  0 - 1; ");
    bhi_queue_close(queue); /* killed: it stays so */
    queue = again(&place);
    job = take(queue, "a");
    BHT_TRUE(job->interrupted && strstr(job->text, "new"));
    BHT_EQ(job->attempts, 1);
    bhi_queue_started(queue, job, 1);
    end(queue, job, BHI_JOB_DONE, BH_OK);
    run_one(queue, "b", BHI_JOB_DONE, BH_OK);
    run_one(queue, "c", BHI_JOB_DONE, BH_OK);
    run_one(queue, "d", BHI_JOB_DONE, BH_OK);
    run_one(queue, "e", BHI_JOB_DONE, BH_OK);
    take(queue, NULL);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT id, state, attempts FROM jobs",
               "a done 2; b done 2; c done 1; d done 2; e done 1; f done 1; ");
    remove_place(&place);
}

#define HASH_BUT_ONE "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH         "0" HASH_BUT_ONE
/* As many as it has outputs, and nothing else. A hash may be missing: format 3 had none. */
static void test_what_outputs_are_recognised_by(void) {
    static const char line[] = "{\"id\": \"a\", \"kernel\": \"k\", \"groups\": [1], "
                               "\"inout\": {\"1\": \"x\"}, \"out\": {\"0\": \"y:u8[1]\"}}";
    static const char *const bad[] = {"",
                                      "1@2",
                                      "1@2 3",
                                      "1@2 3@",
                                      "1@2 3@4 5@6",
                                      "1@2 ",
                                      "1@23",
                                      "1@2 3@4 ",
                                      "1@2 3@4x",
                                      "1@2  3@4",
                                      "@2 3",
                                      "x",
                                      "-1@2 3@4",
                                      "1@2,3@4",
                                      " 1@2 3@4",
                                      "1",
                                      "@",
                                      "1@2 +3@0x4",
                                      "1 2 3 4",
                                      "1@18446744073709551616 3@4",
                                      "1@2# 3@4",
                                      "1@2#00 3@4",
                                      "1@2 3@4#",
                                      "1@2#" HASH "0 3@4",
                                      "1@2#" HASH "3@4",
                                      "1@2#G" HASH_BUT_ONE " 3@4",
                                      "1@2#A" HASH_BUT_ONE " 3@4",
                                      "1@2##" HASH " 3@4"};
    static const char good[] = "0@18446744073709551615#" HASH " 3@4";
    struct place place;
    struct bhi_queue *queue;
    struct bhi_complaint complaint;
    char sql[256];
    make_place(&place);
    queue = fresh(&place);
    BHT_EQ(add_line(queue, line, &complaint), BHI_QUEUE_OK);
    struct bhi_job *job = take(queue, "a");
    BHT_EQ(job->outputs, NULL);
    bhi_queue_started(queue, job, 0);
    seal_job(queue, job, good, ignore, NULL);
    bhi_queue_close(queue);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(sql, sizeof sql, "UPDATE progress SET outputs = '%s'", bad[i]);
        alter(&place, sql);
        expect_no_open(&place, true, BHI_QUEUE_ENVIRON, "is damaged");
    }
    snprintf(sql, sizeof sql, "UPDATE progress SET outputs = '%s'", good);
    alter(&place, sql);
    queue = again(&place);
    job = take(queue, "a");
    BHT_STR_EQ(job->outputs, good);
    end(queue, job, BHI_JOB_DONE, BH_OK);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT state, sealed, outputs FROM progress",
               "3 0 0@18446744073709551615#" HASH " 3@4; ");
    remove_place(&place);
}

/* One that ran out of memory after it had begun, and is refused before it begins again. */
static void test_the_first_beginning_is_kept(void) {
    const struct bhi_attempt refused = {.next = BHI_JOB_FAILED, .started_ns = 7, .ended_ns = 7};
    struct place place;
    make_place(&place);
    struct bhi_queue *queue = fresh(&place);
    add(queue, "a");
    struct bhi_job *job = take(queue, "a");
    bhi_queue_started(queue, job, 0);
    bhi_queue_ended(queue, job, &refused, 0);
    bhi_queue_close(queue);
    expect_sql(&place, "SELECT started, started_ns > 7, ended_ns FROM attempt", "1 1 7; ");
    remove_place(&place);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_refused_resume_changes_nothing),
        BHT_TEST(test_a_failed_line_is_mended),
        BHT_TEST(test_a_mended_line_meets_others),
        BHT_TEST(test_an_id_is_given_once),
        BHT_TEST(test_begun_twice_is_one_attempt),
        BHT_TEST(test_sealed_is_given_back_sealed),
        BHT_TEST(test_sealed_keeps_its_times),
        BHT_TEST(test_redo_begins_anew_with_what_depends_on_it),
        BHT_TEST(test_what_outputs_are_recognised_by),
        BHT_TEST(test_the_first_beginning_is_kept),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
