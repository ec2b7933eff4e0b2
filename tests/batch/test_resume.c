/* Going on with a batch: what changes when, and which lines may. */
#include "few_jobs.h"

#include "cli/batch_look.h"

TEST(test_refused_resume_changes_nothing) {
    fresh("a b:a c d");
    run_one("a", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run_one("c", BHI_JOB_CANCELLED, BH_CANCELLED);
    start("d");
    close_queue();
    const char *const before = "a quarantined 1 -; b failed 0 a; c cancelled 0 -; d running 0 -; ";
    const char *const sql = "SELECT id, state, guilty, origin FROM jobs";
    for (int i = 0; i < 3; i++) {
        BHT_EQ(try_open(true, true), BHI_QUEUE_OK);
        take(NULL); /* nothing has been accepted yet */
        if (i == 1) {
            BHT_EQ(add_line("{\"id\": \"d\", \"kernel\": \"other\", \"groups\": [1]}"),
                   BHI_QUEUE_BAD_INPUT);
        }
        if (i == 2) {
            expect_refused("e:nobody", "nobody");
        }
        take(NULL);
        expect_kept(sql, before);
    }
    again(); /* which was not asked to try failures again */
    take("c");
    take("d");
    take(NULL);
    expect_kept(sql, "a quarantined 1 -; b failed 0 a; c waiting 0 -; d waiting 0 -; ");
}

static void expect_line_refused(const char *line, const char *words) {
    BHT_EQ(add_line(line), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, words);
}

TEST(test_a_failed_line_is_mended) {
    static const char mended[] = "{\"id\": \"b\", \"kernel\": \"k2\", \"groups\": [2], "
                                 "\"priority\": 9, \"retries\": 5, \"out\": {\"0\": \"y:u32[1]\"}}";
    static const char done[] = "{\"id\": \"c\", \"kernel\": \"k2\", \"groups\": [1]}";
    fresh("a b c");
    run_one("a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    run_one("b", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    run("c");
    BHT_EQ(try_open(true, false), BHI_QUEUE_OK);
    expect_line_refused(mended, "--retry-failed");
    BHT_EQ(try_open(true, true), BHI_QUEUE_OK);
    expect_refused("b:a", "\"depends_on\" cannot change");
    expect_line_refused(done, "run it again as this line says (--redo ");
    expect_sql("SELECT id, line, priority, state FROM job JOIN progress ON job = number",
               "a 1 0 4; b 2 0 4; c 3 0 3; ");
    BHT_EQ(add_line(mended), BHI_QUEUE_OK);
    expect_sql("SELECT id, line, job.priority, retries, state, tried FROM job JOIN progress ON "
               "job = number",
               "a 1 0 2 1 1; b 7 9 5 1 1; c 3 0 2 3 1; ");
    expect_refused("w>y", "writes y, which \"b\" (line 7) writes, too");
    struct bhi_job *job = take("b"); /* it goes first now */
    BHT_EQ(job->retries, 5);
    BHT_EQ(job->attempts, 1);
    BHT_STR_HAS(job->text, "k2");
    /* It has begun: no line changes any more. */
    expect_line_refused("{\"id\": \"a\", \"kernel\": \"k2\", \"groups\": [1]}",
                        "run it again as this line says (--redo ");

    again();
    BHT_EQ(add_line(mended), BHI_QUEUE_OK);
    job = take("b");
    BHT_STR_HAS(job->text, "k2");
}

TEST(test_a_mended_line_meets_others) {
    fresh("a>x b<r>y");
    run_one("a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    BHT_EQ(try_open(true, true), BHI_QUEUE_OK);
    expect_refused("a>y", "writes y");
    expect_refused("a>z,./z", "\"a\" writes ./z twice");
    add("a>z");
    add("c>x");                                     /* is free now */
    expect_refused("d>y", "writes y, which \"b\""); /* what is loaded is still known */
    expect_refused("d>r", "writes r, which \"b\"");
}

/* An id is one job's, whether that is new, loaded, or gets another line. */
TEST(test_an_id_is_given_once) {
    fresh("a b:a");
    run_one("a", BHI_JOB_FAILED, BH_COMPILE_FAILED);
    close_queue();
    for (int failed = 0; failed < 2; failed++) {
        BHT_EQ(try_open(true, failed), BHI_QUEUE_OK);
        expect_refused("b:a a c a", "jobs.jsonl:4: the id \"a\" is given twice, first in line 2");
        expect_refused("b:a a c b:a", "jobs.jsonl:4: the id \"b\" is given twice, first in line 1");
        expect_refused("c a c", "jobs.jsonl:3: the id \"c\" is given twice, first in line 1");
        add("a b:a"); /* once a call is fine, in each */
        add("b:a a");
        close_queue();
    }
    expect_sql("SELECT id FROM job", "a; b; ");
}

/* One that found too little memory is given to a worker again: that is one attempt. */
TEST(test_begun_twice_is_one_attempt) {
    fresh("a");
    struct bhi_job *job = start("a");
    bhi_queue_started(queue, job, 1);
    end(job, BHI_JOB_DONE, BH_OK);
    expect_kept("SELECT attempt, started, attempts FROM attempt JOIN progress USING (job)",
                "1 1 1; ");
}

/* Whatever keeps it from its place: it must never run again. */
TEST(test_sealed_is_given_back_sealed) {
    static const char sql[] = "SELECT state, sealed, tried, attempts, (SELECT count(*) FROM "
                              "attempt WHERE ended_ns > 0) FROM progress";
    fresh("a b:a");
    seal("a");
    for (int i = 0; i < 2; i++) {
        again();
        struct bhi_job *job = take("a");
        BHT_TRUE(job->sealed);
        end(job, BHI_JOB_WAITING, BH_NO_MEMORY);
        job = take("a");
        BHT_TRUE(job->sealed);
        end(job, BHI_JOB_CANCELLED, BH_CANCELLED);
        job = take("a");
        BHT_TRUE(job->sealed);
        BHT_EQ(job->attempts, 1);
        if (i == 1) {
            const struct bhi_attempt placed = {
                .next = BHI_JOB_DONE, .started_ns = 7, .ended_ns = 7};
            bhi_queue_ended(queue, job, &placed, 0);
        }
        expect_kept(sql, i ? "3 0 1 1 1; 1 0 0 0 1; " : "2 1 1 1 1; 0 0 0 0 1; ");
    }
    expect_sql("SELECT started, stream, status FROM attempt", "1 3 0; ");
}

static bool expect_times(void *user, const struct bhi_job_record *record) {
    BHT_EQ(record->started_ns, 4);
    BHT_EQ(record->ended_ns, 6);
    BHT_EQ(record->took_ns, 2);
    return true;
}

/* What ran before a kill took as long as it took, however long nobody went on with it. */
TEST(test_sealed_keeps_its_times) {
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
        renew_place();
        fresh("a");
        seal("a");
        expect_kept(sql, "4 6 0 0 2 77 k ; ");
        if (i >= 2) { /* a version that recorded no end with the seal */
            alter("UPDATE attempt SET ended_ns = 0");
        }
        again();
        bhi_queue_ended(queue, take("a"), &ends[i % 2], 0);
        BHT_TRUE(bhi_queue_flush(queue));
        if (i < 2) {
            BHT_TRUE(bhi_queue_each_job(queue, expect_times, NULL));
        }
        close_queue();
        if (i < 2) {
            expect_sql(sql, rows[i]);
        } else {
            expect_sql("SELECT ended_ns FROM attempt UNION SELECT ended_ns FROM progress", "70; ");
        }
    }
}

static enum bhi_queue_result open_redo(const char *const *ids, size_t count, bool dry) {
    return open_with((struct bhi_queue_options){
        .resume = true, .redo = ids, .redo_count = count, .dry_run = dry});
}

/* a is done, b is sealed, c waits for it; d is quarantined, and e fell with it; f is done. */
TEST(test_redo_begins_anew_with_what_depends_on_it) {
    static const char sql[] =
        "SELECT id, jobs.state, jobs.sealed, outputs, jobs.guilty, jobs.origin, "
        "ended_ns > 0 FROM jobs JOIN progress ON job = number";
    static const char before[] = "a done 0  0 - 1; b running 1  0 - 0; c submitted 0  0 - 0; "
                                 "d quarantined 0  1 - 1; e failed 0  0 d 1; f done 0  0 - 1; ";
    static const char *const unknown[] = {"f", "nobody"}, *const ids[] = {"a", "d"};
    fresh("a b:a c:b d e:d f");
    run("a");
    seal("b");
    run_one("d", BHI_JOB_QUARANTINED, BH_DEADLINE);
    run("f");
    expect_kept(sql, before);

    BHT_EQ(open_redo(unknown, 2, false), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "has no job \"nobody\"");
    expect_sql(sql, before);

    /* What only looks sees it, and changes nothing. */
    BHT_EQ(open_redo(ids, 1, true), BHI_QUEUE_OK);
    BHT_TRUE(bhi_queue_runs_anew(queue, "b"));
    BHT_TRUE(!bhi_queue_runs_anew(queue, "d"));
    BHT_EQ(bhi_queue_add(queue, NULL, 0, &complaint), BHI_QUEUE_OK);
    for (const char *id = "a"; *id != 'd'; id = *id == 'a' ? "b" : *id == 'b' ? "c" : "d") {
        struct bhi_job *job = take(id);
        BHT_TRUE(!job->sealed);
        end(job, BHI_JOB_DONE, BH_OK);
    }
    take(NULL);
    expect_kept(sql, before);

    /* Patterns, and all. */
    static const char *const all[] = {"all"}, *const some[] = {"[b-c]", "x", "?"};
    BHT_EQ(open_redo(some, 2, true), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "has no job \"x\"");
    BHT_EQ(open_redo(some, 1, true), BHI_QUEUE_OK);
    BHT_TRUE(bhi_queue_runs_anew(queue, "b") && bhi_queue_runs_anew(queue, "c"));
    BHT_TRUE(!bhi_queue_runs_anew(queue, "a") && !bhi_queue_runs_anew(queue, "f"));
    close_queue();
    for (int i = 0; i < 2; i++) {
        BHT_EQ(open_redo(i ? all : &some[2], 1, true), BHI_QUEUE_OK);
        for (const char *id = "abcdef"; *id; id++) {
            BHT_TRUE(bhi_queue_runs_anew(queue, (char[]){*id, 0}));
        }
        close_queue();
    }
    expect_sql(sql, before);

    BHT_EQ(open_redo(ids, 2, false), BHI_QUEUE_OK);
    BHT_EQ(add_line("{\"id\": \"a\", \"kernel\": \"new\", \"groups\": 1}"), BHI_QUEUE_OK);
    expect_sql(
        sql, "a waiting 0  0 - 0; b submitted 0  0 - 0; c submitted 0  0 - 0; d waiting 0  0 - 0; "
             "e submitted 0  0 - 0; f done 0  0 - 1; ");
    again(); /* as after a kill: it stays so */
    struct bhi_job *job = start("a");
    BHT_TRUE(job->interrupted && strstr(job->text, "new"));
    BHT_EQ(job->attempts, 1);
    end(job, BHI_JOB_DONE, BH_OK);
    run("b c d e");
    take(NULL);
    expect_kept("SELECT id, state, attempts FROM jobs",
                "a done 2; b done 2; c done 1; d done 2; e done 1; f done 1; ");
}

#define HASH_BUT_ONE "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH         "0" HASH_BUT_ONE
/* As many as it has outputs, and nothing else. A hash may be missing: format 3 had none. */
TEST(test_what_outputs_are_recognised_by) {
    static const char line[] = "{\"id\": \"a\", \"kernel\": \"k\", \"groups\": [1], "
                               "\"inout\": {\"1\": \"x\"}, \"out\": {\"0\": \"y:u8[1]\"}}";
    static const char *const bad[] = {
        "",         "1@2",        "1@2 3",      "1@2 3@",   "1@2 3@4 5@6",
        "1@2 ",     "1@23",       "1@2 3@4 ",   "1@2 3@4x", "1@2  3@4",
        "@2 3",     "x",          "-1@2 3@4",   "1@2,3@4",  " 1@2 3@4",
        "1",        "@",          "1@2 +3@0x4", "1 2 3 4",  "1@18446744073709551616 3@4",
        "1@2# 3@4", "1@2#00 3@4", "1@2 3@4#"};
    static const char *const hashed[] = {"1@2#" HASH "0 3@4", "1@2#" HASH "3@4",
                                         "1@2#G" HASH_BUT_ONE " 3@4", "1@2#A" HASH_BUT_ONE " 3@4",
                                         "1@2##" HASH " 3@4"};
    static const char good[] = "0@18446744073709551615#" HASH " 3@4";
    char sql[256];
    fresh("");
    BHT_EQ(add_line(line), BHI_QUEUE_OK);
    struct bhi_job *job = take("a");
    BHT_EQ(job->outputs, NULL);
    bhi_queue_started(queue, job, 0);
    seal_job(job, good, expect_durable, NULL);
    close_queue();
    for (size_t i = 0; i < BHT_COUNT(bad) + BHT_COUNT(hashed); i++) {
        snprintf(sql, sizeof sql, "UPDATE progress SET outputs = '%s'",
                 i < BHT_COUNT(bad) ? bad[i] : hashed[i - BHT_COUNT(bad)]);
        alter(sql);
        expect_no_open(true, BHI_QUEUE_ENVIRON, "is damaged");
    }
    snprintf(sql, sizeof sql, "UPDATE progress SET outputs = '%s'", good);
    alter(sql);
    again();
    job = take("a");
    BHT_STR_EQ(job->outputs, good);
    end(job, BHI_JOB_DONE, BH_OK);
    expect_kept("SELECT state, sealed, outputs FROM progress",
                "3 0 0@18446744073709551615#" HASH " 3@4; ");
}

/* --verify: a file that two jobs write is the sealed one's, which may have been put in its place, also
 * where the other one has a later line. */
TEST(test_what_is_sealed_has_replaced_what_was_there) {
    const struct bhi_batch_look look = {.jobs_path = "jobs.jsonl", .state = place.folder};
    fresh("late:first>x first>x");
    run("first");
    seal("late");
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_EQ(bhi_batch_verify(queue, &look), 0);
}

/* One that ran out of memory after it had begun, and is refused before it begins again. */
TEST(test_the_first_beginning_is_kept) {
    const struct bhi_attempt refused = {.next = BHI_JOB_FAILED, .started_ns = 7, .ended_ns = 7};
    fresh("a");
    struct bhi_job *job = start("a");
    bhi_queue_ended(queue, job, &refused, 0);
    expect_kept("SELECT started, started_ns > 7, ended_ns FROM attempt", "1 1 7; ");
}

/* How often it was guilty, or a victim, counts over restarts: else each would try it again. The first
 * job may need the last, and fail through it. */
TEST(test_counts_outlive_a_restart) {
    fresh("a:b b");
    alter("UPDATE progress SET guilty = 2, victim = 3, attempts = 6, tried = 7 WHERE job = 2;"
          "UPDATE job SET retries = 5, priority = -4, line = 9 WHERE number = 2");
    again();
    struct bhi_job *job = start("b");
    BHT_EQ(job->guilty, 2);
    BHT_EQ(job->victim, 3);
    BHT_EQ(job->attempts, 6);
    BHT_EQ(job->retries, 5);
    BHT_EQ(job->priority, -4);
    BHT_EQ(job->line, 9);
    end(job, BHI_JOB_QUARANTINED, BH_DEADLINE);
    expect_kept("SELECT job, attempt FROM attempt", "2 8; ");
    again();
    expect_kept("SELECT id, state, guilty, origin FROM jobs", "a failed 0 b; b quarantined 3 -; ");
}
