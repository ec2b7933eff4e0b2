/* The queue without a journal: who waits for whom, who is next, who falls with whom. */
#include "few_jobs.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "batch/graph/graph.h"
#include "batch/queue/queue.h"

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
    bhi_queue_sealed(queue, next, &(struct bhi_attempt){0}, "", NULL, sealed, &answer);
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
        BHT_TEST(test_adding_later),
        BHT_TEST(test_without_a_journal),
        BHT_TEST(test_given_back),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
