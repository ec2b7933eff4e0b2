/* Which jobs the queue refuses: for ids given twice, dependencies that are unknown or circular, and
 * shared files. */
#include "few_jobs.h"
#include "support.h"

#include <stdio.h>

static void test_bad_batches(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "a", "", "", "", 0);
    job(&jobs, "b", "", "", "", 0);
    job(&jobs, "a", "", "", "x", 0);
    expect_refused(queue, &jobs, "jobs.jsonl:3: the id \"a\" is given twice, first in line 1");
    job(&jobs, "a", "", "", "", 0);
    job(&jobs, "b", "a nobody", "", "", 0);
    expect_refused(queue, &jobs, "jobs.jsonl:2: \"b\" depends on \"nobody\", which is not a job");
    /* d is not in the circle, it only leads there. */
    job(&jobs, "d", "c", "", "", 0);
    job(&jobs, "a", "c", "", "", 0);
    job(&jobs, "b", "a", "", "", 0);
    job(&jobs, "c", "b", "", "", 0);
    expect_refused(queue, &jobs,
                   "jobs.jsonl:2: jobs depend on each other in a circle: "
                   "a -> c -> b -> a");
    /* All or none: nothing of them is there. */
    expect_counts(queue, (uint64_t[BHI_JOB_STATES]){0});
    job(&jobs, "c", "", "", "", 0);
    job(&jobs, "a", "c", "", "x", 0);
    add(queue, &jobs);
    job(&jobs, "a", "", "", "", 0);
    expect_refused(queue, &jobs, "the id \"a\" is given twice");
    run(queue, "c");
    run(queue, "a");
    bhi_queue_close(queue);
}

static void test_a_long_circle(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    char id[256], needs[256];
    memset(id, 'x', sizeof id);
    memset(needs, 'x', sizeof needs);
    for (int i = 0; i < 60; i++) {
        sprintf(id + 240, "-%d", i);
        sprintf(needs + 240, "-%d", (i + 1) % 60);
        job(&jobs, id, needs, "", "", 0);
    }
    expect_refused(queue, &jobs, "-1 -> (58 more) -> xxx");
    bhi_queue_close(queue);
}

/* A long path loses its beginning, never the line's number, and no half of a letter. */
static void test_a_circle_in_a_file_far_away(void) {
    for (int odd = 0; odd < 2; odd++) {
        struct jobs jobs = {.count = 0};
        char path[800] = "";
        strcpy(path, odd ? "/o" : "/");
        for (int i = 0; i < 300; i++) {
            strcat(path, "ä");
        }
        strcat(path, "/jobs.jsonl");
        struct bhi_queue *queue = open_queue_of(path);
        struct bhi_complaint complaint;
        job(&jobs, "a", "b", "", "", 0);
        job(&jobs, "b", "a", "", "", 0);
        BHT_EQ(bhi_queue_add(queue, jobs.specs, jobs.count, &complaint), BHI_QUEUE_BAD_INPUT);
        BHT_EQ(strncmp(complaint.text, "…ä", strlen("…ä")), 0);
        expect_refused(queue, &jobs,
                       "ä/jobs.jsonl:1: jobs depend on each other in a circle: a -> b -> a");
        bhi_queue_close(queue);
    }
}

static void test_paths(void) {
    static const struct {
        const char *needs, *reads, *writes; /* of "b"; "a" reads r and writes w */
        const char *words;                  /* NULL: it is fine */
    } cases[] = {
        {"", "r", "b", NULL},
        {"", "", "w", "\"b\" writes w, which \"a\" (line 1) writes, too"},
        {"", "w", "b", "\"b\" reads w, which \"a\" (line 1) writes, too"},
        {"", "", "r", "\"b\" writes r, which \"a\" (line 1) reads"},
        {"a", "w", "r", NULL},
        {"c", "", "w", NULL}, /* not directly */
        {"d", "", "w", "\"b\" writes w"},
        {"", "", "./w", "\"b\" writes w"},
        {"", "", "x/..//w", "\"b\" writes w"},
        {"", "", "ww", NULL},
        {"", "", "/w", NULL},
        {"", "", "b x/../b", "\"b\" writes x/../b twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bhi_queue *queue = open_queue();
        struct jobs jobs = {.count = 0};
        job(&jobs, "a", "", "r", "w", 0);
        job(&jobs, "d", "", "", "", 0);
        job(&jobs, "c", "a d", "", "", 0);
        job(&jobs, "b", cases[i].needs, cases[i].reads, cases[i].writes, 0);
        if (cases[i].words) {
            expect_refused(queue, &jobs, cases[i].words);
        } else {
            add(queue, &jobs);
        }
        /* One at a time makes no difference. */
        if (cases[i].words) {
            job(&jobs, "a", "", "r", "w", 0);
            job(&jobs, "d", "", "", "", 0);
            job(&jobs, "c", "a d", "", "", 0);
            add(queue, &jobs);
            job(&jobs, "b", cases[i].needs, cases[i].reads, cases[i].writes, 0);
            expect_refused(queue, &jobs, cases[i].words);
            job(&jobs, "b", "", "", "unique", 0);
            add(queue, &jobs);
        }
        bhi_queue_close(queue);
    }
}

/* The same path in every way, against a matrix of who reaches whom. Of a hundred jobs
 * |near| need the one before them, |far| each of the others; |many|: most of them read it. */
static void try_random_paths(int n, int rounds, uint64_t near, uint64_t far, bool many,
                             int *out_refused) {
    enum { MOST = 40 };
    uint64_t random = 11;
    *out_refused = 0;
    for (int round = 0; round < rounds; round++) {
        struct bhi_queue *queue = open_queue();
        struct jobs jobs = {.count = 0};
        bool reaches[MOST][MOST] = {{false}}, conflict = false;
        int access[MOST]; /* 0: none, 1: reads, 2: writes, 3: both */
        for (int i = 0; i < n; i++) {
            char id[16], needs[4 * MOST] = "";
            for (int j = 0; j < i; j++) {
                if (random_below(&random, 100) < (j == i - 1 ? near : far)) {
                    sprintf(needs + strlen(needs), "%d ", j);
                    reaches[i][j] = true;
                    for (int k = 0; k < j; k++) {
                        reaches[i][k] |= reaches[j][k];
                    }
                }
            }
            access[i] = (int)random_below(&random, many ? 30 : 10);
            if (many) { /* few write, most read, some do neither */
                access[i] = access[i] < 2 ? access[i] + 2 : access[i] < 20;
            } else {
                access[i] = access[i] < 6 ? 0 : access[i] - 6;
            }
            sprintf(id, "%d", i);
            job(&jobs, id, needs, access[i] & 1 ? "p" : "", access[i] & 2 ? "p" : "", 0);
            for (int j = 0; j < i; j++) {
                conflict |=
                    access[i] && access[j] && ((access[i] | access[j]) & 2) && !reaches[i][j];
            }
        }
        /* In any order of lines. */
        for (size_t i = (size_t)n - 1; i > 0; i--) {
            const size_t j = random_below(&random, i + 1);
            struct bhi_job_spec spec = jobs.specs[i];
            jobs.specs[i] = jobs.specs[j];
            jobs.specs[j] = spec;
        }
        *out_refused += conflict;
        if (conflict) {
            expect_refused(queue, &jobs, "one of them must depend on the other");
        } else {
            add(queue, &jobs);
        }
        bhi_queue_close(queue);
    }
}

static void test_random_paths(void) {
    int refused;
    try_random_paths(7, 3000, 40, 40, false, &refused);
    BHT_WITHIN(refused, 500, 2500);
    /* Long ones, with so many readers that they are no longer looked for one by one. */
    try_random_paths(40, 2000, 97, 2, true, &refused);
    BHT_WITHIN(refused, 300, 1700);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_bad_batches),
        BHT_TEST(test_a_long_circle),
        BHT_TEST(test_a_circle_in_a_file_far_away),
        BHT_TEST(test_paths),
        BHT_TEST(test_random_paths),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
