/* The queue without a journal: who waits for whom, who is next, who falls with whom. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "batch/graph/graph.h"
#include "batch/queue/queue.h"

static struct bhi_queue *open_queue_of(const char *jobs_path) {
    const struct bhi_queue_options options = {.jobs_path = jobs_path, .retries = 2};
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    if (bhi_queue_open(&options, &queue, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    return queue;
}

static struct bhi_queue *open_queue(void) {
    return open_queue_of("jobs.jsonl");
}

/* Jobs by lines of few words: "id < needed needed, reads x, writes y, priority 3". */
struct jobs {
    struct bhi_job_spec specs[64];
    size_t count;
};

static void take_words(char *line, size_t used, const char *key, const char *words, bool bindings) {
    char copy[512], *save = NULL;
    int i = !strcmp(key, "out") ? 100 : !strcmp(key, "inout") ? 200 : 0;
    snprintf(copy, sizeof copy, "%s", words);
    sprintf(line + used, ", \"%s\": %c", key, bindings ? '{' : '[');
    const char *comma = "";
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *end = line + strlen(line);
        if (bindings) {
            sprintf(end, "%s\"%d\": \"%s%s\"", comma, i, word, i >= 100 && i < 200 ? ":u8[1]" : "");
        } else {
            sprintf(end, "%s\"%s\"", comma, word);
        }
        comma = ", ";
        i++;
    }
    strcat(line, bindings ? "}" : "]");
}

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at++) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) {
            return true;
        }
    }
    return false;
}

/* Those of |words| that are (not) among |others|, too. */
static void choose(char out[512], const char *words, const char *others, bool among) {
    char copy[512], *save = NULL;
    size_t used = 0;
    snprintf(copy, sizeof copy, "%s", words);
    *out = '\0';
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (has_word(others, word) == among) {
            used += (size_t)sprintf(out + used, "%s%s", used ? " " : "", word);
        }
    }
}

static void job(struct jobs *jobs, const char *id, const char *needs, const char *reads,
                const char *writes, int priority) {
    char line[4096];
    struct bhi_complaint complaint;
    sprintf(line, "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], \"priority\": %d", id,
            priority);
    take_words(line, strlen(line), "depends_on", needs, false);
    char words[512];
    choose(words, reads, writes, false);
    take_words(line, strlen(line), "in", words, true);
    choose(words, writes, reads, false);
    take_words(line, strlen(line), "out", words, true);
    choose(words, reads, writes, true); /* what it replaces */
    take_words(line, strlen(line), "inout", words, true);
    strcat(line, "}");
    struct bhi_job_spec *spec = &jobs->specs[jobs->count];
    if (!bhi_job_parse(line, strlen(line), spec, &complaint)) {
        BHT_FAIL("%s: %s", line, complaint.text);
    }
    spec->line = ++jobs->count;
}

static void free_jobs(struct jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++) {
        bhi_job_spec_free(&jobs->specs[i]);
    }
    jobs->count = 0;
}

static void add(struct bhi_queue *queue, struct jobs *jobs) {
    struct bhi_complaint complaint;
    if (bhi_queue_add(queue, jobs->specs, jobs->count, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    free_jobs(jobs);
}

static void expect_refused(struct bhi_queue *queue, struct jobs *jobs, const char *words) {
    struct bhi_complaint complaint;
    BHT_EQ(bhi_queue_add(queue, jobs->specs, jobs->count, &complaint), BHI_QUEUE_BAD_INPUT);
    if (!strstr(complaint.text, words)) {
        BHT_FAIL("\"%s\" has no \"%s\"", complaint.text, words);
    }
    free_jobs(jobs);
}

static struct bhi_job *expect_next(struct bhi_queue *queue, const char *id) {
    struct bhi_job *next = bhi_queue_take(queue);
    if (!next != !id) {
        BHT_FAIL("%s instead of %s", next ? next->id : "none", id ? id : "none");
    }
    if (id) {
        BHT_STR_EQ(next->id, id);
    }
    return next;
}

static void end(struct bhi_queue *queue, struct bhi_job *job, enum bhi_job_state next,
                bh_status status, uint64_t delay_ns) {
    const struct bhi_attempt attempt = {.next = next,
                                        .guilty =
                                            bh_status_classify(status) == BH_STATUS_CLASS_GUILTY,
                                        .started = true,
                                        .verdict = {.status = status}};
    bhi_queue_started(queue, job, 0);
    bhi_queue_ended(queue, job, &attempt, delay_ns);
}

static void run(struct bhi_queue *queue, const char *id) {
    end(queue, expect_next(queue, id), BHI_JOB_DONE, BH_OK, 0);
}

static void expect_counts(struct bhi_queue *queue, const uint64_t expected[BHI_JOB_STATES]) {
    struct bhi_queue_counts counts;
    uint64_t total = 0;
    bhi_queue_counts(queue, &counts);
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        if (counts.of[i] != expected[i]) {
            BHT_FAIL("%llu are %s instead of %llu", (unsigned long long)counts.of[i],
                     bhi_job_state_name((enum bhi_job_state)i), (unsigned long long)expected[i]);
        }
        total += counts.of[i];
    }
    BHT_EQ(counts.total, total);
}

static void test_order(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "late", "", "", "", -1);
    job(&jobs, "a", "", "", "", 0);
    job(&jobs, "b", "", "", "", 0);
    job(&jobs, "first", "", "", "", 5);
    job(&jobs, "after", "b", "", "", 9);
    add(queue, &jobs);
    run(queue, "first");
    run(queue, "a");
    run(queue, "b");
    run(queue, "after");
    run(queue, "late");
    expect_next(queue, NULL);
    BHT_TRUE(bhi_queue_close(queue));
}

static void test_many_in_order(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    uint64_t random = 7;
    int last = BHI_JOB_PRIORITY + 1;
    uint64_t last_number = 0;
    for (int round = 0; round < 40; round++) { /* more than one chunk of nodes */
        for (int i = 0; i < 60; i++) {
            char id[32];
            sprintf(id, "%d", round * 60 + i);
            job(&jobs, id, "", "", "", (int)random_below(&random, 10));
        }
        add(queue, &jobs);
    }
    for (int i = 0; i < 2400; i++) {
        struct bhi_job *next = bhi_queue_take(queue);
        BHT_NE(next, NULL);
        BHT_LE(next->priority, last);
        BHT_TRUE(next->priority < last || next->number > last_number);
        last = next->priority;
        last_number = next->number;
        end(queue, next, BHI_JOB_DONE, BH_OK, 0);
    }
    expect_next(queue, NULL);
    bhi_queue_close(queue);
}

static void test_dependents_wait_for_all(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "sum", "left right", "", "", 9);
    job(&jobs, "left", "", "", "", 0);
    job(&jobs, "right", "", "", "", 0);
    add(queue, &jobs);
    struct bhi_job *left = expect_next(queue, "left"), *right = expect_next(queue, "right");
    expect_next(queue, NULL);
    expect_counts(queue, (uint64_t[]){1, 0, 2, 0, 0, 0, 0});
    end(queue, right, BHI_JOB_DONE, BH_OK, 0);
    expect_next(queue, NULL);
    end(queue, left, BHI_JOB_WAITING, BH_WORKER_LOST, 0);
    left = expect_next(queue, "left");
    BHT_EQ(left->attempts, 1);
    BHT_EQ(left->victim, 1);
    BHT_EQ(left->guilty, 0);
    end(queue, left, BHI_JOB_DONE, BH_OK, 0);
    run(queue, "sum");
    expect_counts(queue, (uint64_t[]){0, 0, 0, 3, 0, 0, 0});
    bhi_queue_close(queue);
}

static void test_retries_are_the_batch_s_or_the_job_s(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "a", "", "", "", 0);
    job(&jobs, "b", "", "", "", 0);
    jobs.specs[1].retries = 0;
    add(queue, &jobs);
    BHT_EQ(expect_next(queue, "a")->retries, 2);
    BHT_EQ(expect_next(queue, "b")->retries, 0);
    bhi_queue_close(queue);
}

/* -- what falls with what -----------------------------------------------------------------------
 */

/* A graph of n nodes called "0", "1", …; edges as pairs {who needs, what}. */
struct fixture {
    struct bhi_graph graph;
    struct bhi_job_node *nodes[16];
    char changes[256];
};

static void note(void *user, const struct bhi_job_node *node) {
    struct fixture *f = user;
    sprintf(f->changes + strlen(f->changes), "%s:%s ", node->job.id,
            bhi_job_state_name(node->state));
}

static void make(struct fixture *f, int nodes, const int (*edges)[2], int edge_count) {
    struct bhi_job_node *cycle;
    *f = (struct fixture){0};
    bhi_graph_init(&f->graph);
    for (int i = 0; i < nodes; i++) {
        char id[16];
        sprintf(id, "%d", i);
        f->nodes[i] = bhi_graph_append(&f->graph, id, "{}");
        BHT_NE(f->nodes[i], NULL);
    }
    for (int i = 0; i < edge_count; i++) {
        BHT_TRUE(bhi_graph_link(&f->graph, f->nodes[edges[i][0]], f->nodes[edges[i][1]]));
    }
    BHT_TRUE(bhi_graph_rank(&f->graph, &cycle));
    bhi_graph_admit(&f->graph, note, f);
}

static void expect_changes(struct fixture *f, const char *expected) {
    BHT_STR_EQ(f->changes, expected);
    f->changes[0] = '\0';
}

static struct bhi_job_node *take(struct fixture *f, int expected) {
    struct bhi_job_node *node = bhi_graph_take(&f->graph, 0);
    BHT_EQ(node, f->nodes[expected]);
    return node;
}

static void lose(struct fixture *f, struct bhi_job_node *node, enum bhi_job_state state) {
    bhi_graph_end(&f->graph, node, state, 0, note, f);
}

static const int family[][2] = {{2, 0}, {3, 0}, {3, 1}, {4, 2}, {4, 3}, {5, 1}};

/* E5: what depends on it, directly or not, and nothing else. */
static void test_poison(void) {
    struct fixture f;
    make(&f, 6, family, 6);
    expect_changes(&f, "0:waiting 1:waiting ");
    struct bhi_job_node *bad = take(&f, 0), *good = take(&f, 1);
    lose(&f, bad, BHI_JOB_QUARANTINED);
    expect_changes(&f, "3:failed 2:failed 4:failed ");
    for (int i = 2; i <= 4; i++) {
        BHT_EQ(f.nodes[i]->origin, 0);
    }
    BHT_EQ(bad->origin, BHI_NO_NODE);
    bhi_graph_end(&f.graph, good, BHI_JOB_DONE, 0, note, &f);
    expect_changes(&f, "5:waiting ");
    BHT_EQ(f.graph.of[BHI_JOB_FAILED], 3);
    BHT_EQ(f.graph.of[BHI_JOB_QUARANTINED], 1);
    bhi_graph_fini(&f.graph);
}

/* E7: of two causes the earlier one is kept. */
static void test_the_earliest_origin(void) {
    struct fixture f;
    make(&f, 6, family, 6);
    struct bhi_job_node *bad = take(&f, 0), *worse = take(&f, 1);
    lose(&f, worse, BHI_JOB_FAILED);
    lose(&f, bad, BHI_JOB_FAILED);
    expect_changes(&f, "0:waiting 1:waiting 5:failed 3:failed 4:failed 2:failed ");
    BHT_EQ(f.nodes[5]->origin, 1);
    BHT_EQ(f.nodes[3]->origin, 1);
    BHT_EQ(f.nodes[4]->origin, 1);
    BHT_EQ(f.nodes[2]->origin, 0);
    bhi_graph_fini(&f.graph);
}

/* What is cancelled may come back: nothing falls with it. */
static void test_a_cancelled_one_takes_none_along(void) {
    struct fixture f;
    make(&f, 6, family, 6);
    lose(&f, take(&f, 0), BHI_JOB_CANCELLED);
    expect_changes(&f, "0:waiting 1:waiting ");
    BHT_EQ(f.graph.of[BHI_JOB_SUBMITTED], 4);
    bhi_graph_fini(&f.graph);
}

static void test_delays(void) {
    struct fixture f;
    uint64_t due;
    make(&f, 3, NULL, 0);
    bhi_graph_end(&f.graph, take(&f, 0), BHI_JOB_WAITING, 1000, note, &f);
    bhi_graph_end(&f.graph, take(&f, 1), BHI_JOB_WAITING, 500, note, &f);
    BHT_EQ(bhi_graph_takeable(&f.graph, 0, &due), 1);
    BHT_EQ(due, 500);
    struct bhi_job_node *last = take(&f, 2);
    BHT_EQ(bhi_graph_take(&f.graph, 499), NULL);
    BHT_EQ(bhi_graph_takeable(&f.graph, 500, &due), 1);
    BHT_EQ(due, 1000);
    BHT_EQ(bhi_graph_take(&f.graph, 500), f.nodes[1]);
    BHT_EQ(bhi_graph_take(&f.graph, 999), NULL);
    /* What is due takes its turn among the others. */
    bhi_graph_end(&f.graph, last, BHI_JOB_WAITING, 0, note, &f);
    BHT_EQ(bhi_graph_takeable(&f.graph, 1000, &due), 2);
    BHT_EQ(due, 0);
    BHT_EQ(bhi_graph_take(&f.graph, 1000), f.nodes[0]);
    BHT_EQ(bhi_graph_take(&f.graph, 1000), f.nodes[2]);
    bhi_graph_fini(&f.graph);
}

static void test_a_delayed_job_waits(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    struct bhi_queue_counts counts;
    job(&jobs, "a", "", "", "", 0);
    add(queue, &jobs);
    end(queue, expect_next(queue, "a"), BHI_JOB_WAITING, BH_UNAVAILABLE, 3600000000000u);
    expect_next(queue, NULL);
    bhi_queue_counts(queue, &counts);
    BHT_EQ(counts.takeable, 0);
    BHT_NE(counts.next_due_ns, 0);
    BHT_EQ(counts.of[BHI_JOB_WAITING], 1);
    bhi_queue_close(queue);
}

/* -- what is refused ----------------------------------------------------------------------------
 */

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

/* Jobs that come while others run: what they need may have ended, well or badly. */
static void test_adding_later(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "good", "", "", "", 2);
    job(&jobs, "bad", "", "", "", 1);
    job(&jobs, "running", "", "", "", 0);
    add(queue, &jobs);
    run(queue, "good");
    end(queue, expect_next(queue, "bad"), BHI_JOB_FAILED, BH_INVALID_KERNEL, 0);
    struct bhi_job *running = expect_next(queue, "running");
    job(&jobs, "a", "good", "", "", 0);
    job(&jobs, "c", "b", "", "", 0);
    job(&jobs, "b", "bad good", "", "", 0);
    job(&jobs, "d", "running", "", "", 0);
    add(queue, &jobs);
    expect_counts(queue, (uint64_t[]){1, 1, 1, 1, 3, 0, 0});
    run(queue, "a");
    end(queue, running, BHI_JOB_DONE, BH_OK, 0);
    run(queue, "d");
    bhi_queue_close(queue);
}

static void sealed(void *user, bool durable) {
    *(int *)user = durable ? 1 : -1;
}

static void test_without_a_journal(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    char *cwd = getcwd(NULL, 0);
    int answer = 0;
    BHT_STR_EQ(bhi_queue_cwd(queue), cwd);
    free(cwd);
    BHT_EQ(strlen(bhi_queue_batch_id(queue)), 16);
    job(&jobs, "a", "", "", "", 0);
    add(queue, &jobs);
    struct bhi_job *next = expect_next(queue, "a");
    bhi_queue_sealed(queue, next, &(struct bhi_attempt){0}, "", sealed, &answer);
    BHT_EQ(answer, 1);
    end(queue, next, BHI_JOB_DONE, BH_OK, 0);
    BHT_TRUE(!bhi_queue_broken(queue, NULL));
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(!bhi_queue_each_job(queue, NULL, NULL));
    BHT_TRUE(!bhi_queue_each_attempt(queue, NULL, NULL));
    BHT_TRUE(bhi_queue_close(queue));
    BHT_TRUE(bhi_queue_close(NULL));
}

/* What is given back without an attempt counts for nothing. */
static void test_given_back(void) {
    struct bhi_queue *queue = open_queue();
    struct jobs jobs = {.count = 0};
    job(&jobs, "a", "", "", "", 0);
    add(queue, &jobs);
    const struct bhi_attempt none = {.next = BHI_JOB_WAITING, .verdict = {.status = BH_PENDING}};
    bhi_queue_ended(queue, expect_next(queue, "a"), &none, 0);
    struct bhi_job *next = expect_next(queue, "a");
    BHT_EQ(next->attempts, 0);
    end(queue, next, BHI_JOB_WAITING, BH_DEADLINE, 0);
    next = expect_next(queue, "a");
    BHT_EQ(next->attempts, 1);
    BHT_EQ(next->guilty, 1);
    bhi_queue_close(queue);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(test_order),
        BHT_TEST(test_many_in_order),
        BHT_TEST(test_dependents_wait_for_all),
        BHT_TEST(test_retries_are_the_batch_s_or_the_job_s),
        BHT_TEST(test_poison),
        BHT_TEST(test_the_earliest_origin),
        BHT_TEST(test_a_cancelled_one_takes_none_along),
        BHT_TEST(test_delays),
        BHT_TEST(test_a_delayed_job_waits),
        BHT_TEST(test_bad_batches),
        BHT_TEST(test_a_long_circle),
        BHT_TEST(test_a_circle_in_a_file_far_away),
        BHT_TEST(test_paths),
        BHT_TEST(test_random_paths),
        BHT_TEST(test_adding_later),
        BHT_TEST(test_without_a_journal),
        BHT_TEST(test_given_back),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
