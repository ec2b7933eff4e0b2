/* Which jobs the queue refuses: for ids given twice, dependencies that are unknown or circular, and
 * shared files. */
#include "few_jobs.h"

TEST(test_bad_batches) {
    open_unkept("jobs.jsonl");
    expect_refused("a b a>x", "jobs.jsonl:3: the id \"a\" is given twice, first in line 1");
    expect_refused("a b:a,nobody", "jobs.jsonl:2: \"b\" depends on \"nobody\", which is not a job");
    /* d is not in the circle, it only leads there. */
    expect_refused("d:c a:c b:a c:b",
                   "jobs.jsonl:2: jobs depend on each other in a circle: a -> c -> b -> a");
    expect_refused("a:b,c b:a c:a",
                   "jobs.jsonl:1: jobs depend on each other in a circle: a -> b -> a");
    /* All or none: nothing of them is there. */
    expect_counts("0/0/0/0/0/0/0 of 0");
    add("c a:c>x");
    expect_refused("a", "the id \"a\" is given twice");
    run("c a");
}

TEST(test_a_long_circle) {
    struct jobs jobs = {.count = 0};
    char x[241] = "", words[512];
    memset(x, 'x', sizeof x - 1);
    for (int i = 0; i < 60; i++) {
        sprintf(words, "%s-%d:%s-%d", i == 30 ? "z" : x, i, i == 29 ? "z" : x, (i + 1) % 60);
        BHT_TRUE(read_jobs(&jobs, words));
    }
    open_unkept("jobs.jsonl");
    BHT_EQ(bhi_queue_add(queue, jobs.specs, jobs.count, &complaint), BHI_QUEUE_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "-1 -> (58 more) -> xxx");
    free_jobs(&jobs);
}

/* A long path loses its beginning, never the line's number, and no half of a letter. */
TEST(test_a_circle_in_a_file_far_away) {
    for (int odd = 0; odd < 2; odd++) {
        char path[800] = "";
        strcpy(path, odd ? "/o" : "/");
        for (int i = 0; i < 300; i++) {
            strcat(path, "ä");
        }
        strcat(path, "/jobs.jsonl");
        open_unkept(path);
        expect_refused("a:b b:a",
                       "ä/jobs.jsonl:1: jobs depend on each other in a circle: a -> b -> a");
        BHT_EQ(strncmp(complaint.text, "…ä", strlen("…ä")), 0);
    }
}

TEST(test_paths) {
    static const struct {
        const char *job;   /* "b" */
        const char *words; /* NULL: it is fine */
    } cases[] = {
        {"b<r>b", NULL},
        {"b>w", "\"b\" writes w, which \"a\" (line 1) writes, too"},
        {"b<w>b", "\"b\" reads w, which \"a\" (line 1) writes, too"},
        {"b>r", "\"b\" writes r, which \"a\" (line 1) reads"},
        {"b:a<w>r", NULL},
        {"b:c>w", NULL}, /* not directly */
        {"b:d>w", "\"b\" writes w"},
        {"b>./w", "\"b\" writes w"},
        {"b>x/..//w", "\"b\" writes w"},
        {"b>ww", NULL},
        {"b>/w", NULL},
        {"b>b,x/../b", "\"b\" writes x/../b twice"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char words[64];
        sprintf(words, "a<r>w d c:a,d %s", cases[i].job);
        open_unkept("jobs.jsonl");
        if (!cases[i].words) {
            add(words);
            continue;
        }
        expect_refused(words, cases[i].words);
        add("a<r>w d c:a,d"); /* one at a time makes no difference */
        expect_refused(cases[i].job, cases[i].words);
        add("b>unique");
    }
}

/* The same path in every way, against a matrix of who reaches whom. Of a hundred jobs
 * |near| need the one before them, |far| each of the others; |many|: most of them read it. */
static void try_random_paths(int n, int rounds, uint64_t near, uint64_t far, bool many,
                             int *out_refused) {
    enum { JOBS = 40 };
    static const char *const uses[] = {"", "<p", ">p", "=p"};
    uint64_t random = 11;
    *out_refused = 0;
    for (int round = 0; round < rounds; round++) {
        struct jobs jobs = {.count = 0};
        bool reaches[JOBS][JOBS] = {{false}}, conflict = false;
        int access[JOBS]; /* which of |uses| */
        for (int i = 0; i < n; i++) {
            char words[4 * JOBS + 16];
            sprintf(words, "%d:", i);
            for (int j = 0; j < i; j++) {
                if (random_below(&random, 100) < (j == i - 1 ? near : far)) {
                    sprintf(words + strlen(words), "%d,", j);
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
            strcat(words, uses[access[i]]);
            BHT_TRUE(read_jobs(&jobs, words));
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
        open_unkept("jobs.jsonl");
        BHT_EQ(bhi_queue_add(queue, jobs.specs, jobs.count, &complaint),
               conflict ? BHI_QUEUE_BAD_INPUT : BHI_QUEUE_OK);
        if (conflict) {
            BHT_STR_HAS(complaint.text, "one of them must depend on the other");
        }
        free_jobs(&jobs);
    }
}

TEST(test_random_paths) {
    int refused;
    try_random_paths(7, 3000, 40, 40, false, &refused);
    BHT_WITHIN(refused, 500, 2500);
    /* Long ones, with so many readers that they are no longer looked for one by one. */
    try_random_paths(40, 2000, 97, 2, true, &refused);
    BHT_WITHIN(refused, 300, 1700);
}
