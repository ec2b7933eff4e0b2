/* The queue without a journal: who waits for whom, who is next, who falls with whom. */
#include "few_jobs.h"

#include "batch/graph/graph.h"

static void open_here(const char *words) {
    open_unkept("jobs.jsonl");
    add(words);
}

TEST(test_order) {
    open_here("late@-1 a b first@5 after:b@9");
    run("first a b after late");
    take(NULL);
    BHT_TRUE(close_queue());
}

TEST(test_many_in_order) {
    uint64_t random = 7, last_number = 0;
    int last = BHI_JOB_PRIORITY + 1;
    open_here("");
    for (int round = 0; round < 40; round++) { /* more than one chunk of nodes */
        char words[1024] = "";
        for (int i = 0; i < 60; i++) {
            sprintf(words + strlen(words), "%d@%d ", round * 60 + i,
                    (int)random_below(&random, 10));
        }
        add(words);
    }
    for (int i = 0; i < 2400; i++) {
        struct bhi_job *next = bhi_queue_take(queue);
        BHT_NE(next, NULL);
        BHT_LE(next->priority, last);
        BHT_TRUE(next->priority < last || next->number > last_number);
        last = next->priority;
        last_number = next->number;
        end(next, BHI_JOB_DONE, BH_OK);
    }
    take(NULL);
}

TEST(test_dependents_wait_for_all) {
    open_here("sum:left,right@9 left right");
    struct bhi_job *left = start("left"), *right = start("right");
    take(NULL);
    expect_counts("1/0/2/0/0/0/0 of 3");
    end(right, BHI_JOB_DONE, BH_OK);
    take(NULL);
    end(left, BHI_JOB_WAITING, BH_WORKER_LOST);
    left = start("left");
    BHT_EQ(left->attempts, 1);
    BHT_EQ(left->victim, 1);
    BHT_EQ(left->guilty, 0);
    end(left, BHI_JOB_DONE, BH_OK);
    run("sum");
    expect_counts("0/0/0/3/0/0/0 of 3");
}

TEST(test_retries_are_the_batch_s_or_the_job_s) {
    open_here("a");
    BHT_EQ(add_line("{\"id\": \"b\", \"kernel\": \"k\", \"groups\": 1, \"retries\": 0}"),
           BHI_QUEUE_OK);
    BHT_EQ(take("a")->retries, 2);
    BHT_EQ(take("b")->retries, 0);
}

/* -- what falls with what -----------------------------------------------------------------------
 */

/* A graph of n nodes called "0", "1", …; edges as pairs {who needs, what}. */
static struct bhi_graph graph;
static struct bhi_job_node *nodes[16];
static char changes[256];

static void note(void *user, const struct bhi_job_node *node) {
    sprintf(changes + strlen(changes), "%s:%s ", node->job.id, bhi_job_state_name(node->state));
}

/* They are not admitted yet. */
static void build(int count, const int (*edges)[2], int edge_count) {
    struct bhi_job_node *cycle;
    bhi_graph_init(&graph);
    for (int i = 0; i < count; i++) {
        nodes[i] = bhi_graph_append(&graph, (char[]){(char)('0' + i), 0}, "{}");
        BHT_NE(nodes[i], NULL);
    }
    for (int i = 0; i < edge_count; i++) {
        BHT_TRUE(bhi_graph_link(&graph, nodes[edges[i][0]], nodes[edges[i][1]]));
    }
    BHT_TRUE(bhi_graph_rank(&graph, &cycle));
}

static void make(int count, const int (*edges)[2], int edge_count) {
    build(count, edges, edge_count);
    bhi_graph_admit(&graph, note, NULL);
}

static void expect_changes(const char *expected) {
    BHT_STR_EQ(changes, expected);
    changes[0] = '\0';
}

static struct bhi_job_node *take_node(int expected) {
    struct bhi_job_node *node = bhi_graph_take(&graph, 0);
    BHT_EQ(node, nodes[expected]);
    return node;
}

static void end_node(struct bhi_job_node *node, enum bhi_job_state state, uint64_t due_ns) {
    bhi_graph_end(&graph, node, state, due_ns, note, NULL);
}

static const int family[][2] = {{2, 0}, {3, 0}, {3, 1}, {4, 2}, {4, 3}, {5, 1}};

/* E5: what depends on it, directly or not, and nothing else. */
TEST(test_poison) {
    make(6, family, 6);
    expect_changes("0:waiting 1:waiting ");
    struct bhi_job_node *bad = take_node(0), *good = take_node(1);
    end_node(bad, BHI_JOB_QUARANTINED, 0);
    expect_changes("3:failed 2:failed 4:failed ");
    for (int i = 2; i <= 4; i++) {
        BHT_EQ(nodes[i]->origin, 0);
    }
    BHT_EQ(bad->origin, BHI_NO_NODE);
    end_node(good, BHI_JOB_DONE, 0);
    expect_changes("5:waiting ");
    BHT_EQ(graph.of[BHI_JOB_FAILED], 3);
    BHT_EQ(graph.of[BHI_JOB_QUARANTINED], 1);
}

/* E7: of two causes the earlier one is kept. */
TEST(test_the_earliest_origin) {
    make(6, family, 6);
    struct bhi_job_node *bad = take_node(0), *worse = take_node(1);
    end_node(worse, BHI_JOB_FAILED, 0);
    end_node(bad, BHI_JOB_FAILED, 0);
    expect_changes("0:waiting 1:waiting 5:failed 3:failed 4:failed 2:failed ");
    BHT_EQ(nodes[5]->origin, 1);
    BHT_EQ(nodes[3]->origin, 1);
    BHT_EQ(nodes[4]->origin, 1);
    BHT_EQ(nodes[2]->origin, 0);
}

/* The outputs of a sealed job are complete: it is taken, whatever has become of what it needs. */
TEST(test_a_sealed_job_does_not_fall_with_its_need) {
    build(6, family, 6);
    nodes[0]->state = BHI_JOB_FAILED;
    nodes[2]->job.sealed = true;
    nodes[2]->state = BHI_JOB_WAITING;
    bhi_graph_admit(&graph, note, NULL);
    expect_changes("1:waiting 3:failed 4:failed ");
    BHT_EQ(nodes[4]->origin, 0);
    take_node(2); /* ahead of all others */
    take_node(1);
}

/* Nor is it offered again when that is done. */
TEST(test_a_sealed_job_is_taken_once) {
    build(6, family, 6);
    nodes[2]->job.sealed = true;
    nodes[2]->state = BHI_JOB_WAITING;
    bhi_graph_admit(&graph, note, NULL);
    expect_changes("0:waiting 1:waiting ");
    take_node(2);
    end_node(take_node(0), BHI_JOB_DONE, 0);
    expect_changes("");
    take_node(1);
    BHT_EQ(bhi_graph_take(&graph, 0), NULL);
}

/* What waited in the journal waits for what it needs, and says nothing of it. */
TEST(test_a_job_whose_need_is_not_done_is_not_ready) {
    build(6, family, 6);
    nodes[2]->state = BHI_JOB_WAITING;
    bhi_graph_admit(&graph, note, NULL);
    expect_changes("0:waiting 1:waiting ");
    BHT_EQ(nodes[2]->state, BHI_JOB_SUBMITTED);
}

/* Of two that have failed, the first one in the line. */
TEST(test_the_first_origin) {
    build(6, family, 6);
    nodes[0]->state = nodes[1]->state = BHI_JOB_FAILED;
    bhi_graph_admit(&graph, note, NULL);
    BHT_EQ(nodes[3]->origin, 0);
    BHT_EQ(nodes[5]->origin, 1);
}

/* Jobs that are not admitted yet do not fall with what they need, and leave nothing behind if they never are. */
TEST(test_jobs_that_are_not_admitted) {
    struct bhi_job_node *cycle;
    make(2, NULL, 0);
    expect_changes("0:waiting 1:waiting ");
    nodes[2] = bhi_graph_append(&graph, "2", "{}");
    BHT_TRUE(bhi_graph_link(&graph, nodes[2], nodes[0]));
    end_node(take_node(0), BHI_JOB_FAILED, 0);
    expect_changes("");
    bhi_graph_truncate(&graph);
    BHT_EQ(nodes[0]->needed_by, BHI_NO_EDGE);
    nodes[2] = bhi_graph_append(&graph, "2", "{}");
    BHT_EQ(nodes[2]->needs, BHI_NO_EDGE);
    BHT_TRUE(bhi_graph_link(&graph, nodes[2], nodes[0]));
    BHT_TRUE(bhi_graph_rank(&graph, &cycle));
    bhi_graph_admit(&graph, note, NULL);
    expect_changes("2:failed ");
}

/* A job that comes later may need one by way of another that comes later. */
TEST(test_needs_across_batches) {
    struct bhi_job_node *cycle;
    make(4, NULL, 0);
    for (int i = 4; i < 6; i++) {
        nodes[i] = bhi_graph_append(&graph, (char[]){(char)('0' + i), 0}, "{}");
        BHT_TRUE(bhi_graph_link(&graph, nodes[i], nodes[i - 1]));
    }
    BHT_TRUE(bhi_graph_rank(&graph, &cycle));
    BHT_TRUE(bhi_graph_reaches(&graph, nodes[5], nodes[3]));
    BHT_TRUE(!bhi_graph_reaches(&graph, nodes[5], nodes[2]));
}

/* What is cancelled may come back: nothing falls with it. */
TEST(test_a_cancelled_one_takes_none_along) {
    make(6, family, 6);
    end_node(take_node(0), BHI_JOB_CANCELLED, 0);
    expect_changes("0:waiting 1:waiting ");
    BHT_EQ(graph.of[BHI_JOB_SUBMITTED], 4);
}

TEST(test_delays) {
    uint64_t due;
    make(3, NULL, 0);
    end_node(take_node(0), BHI_JOB_WAITING, 1000);
    end_node(take_node(1), BHI_JOB_WAITING, 500);
    BHT_EQ(bhi_graph_takeable(&graph, 0, &due), 1);
    BHT_EQ(due, 500);
    struct bhi_job_node *last = take_node(2);
    BHT_EQ(bhi_graph_take(&graph, 499), NULL);
    BHT_EQ(bhi_graph_takeable(&graph, 500, &due), 1);
    BHT_EQ(due, 1000);
    BHT_EQ(bhi_graph_take(&graph, 500), nodes[1]);
    BHT_EQ(bhi_graph_take(&graph, 999), NULL);
    /* What is due takes its turn among the others. */
    end_node(last, BHI_JOB_WAITING, 0);
    BHT_EQ(bhi_graph_takeable(&graph, 1000, &due), 2);
    BHT_EQ(due, 0);
    BHT_EQ(bhi_graph_take(&graph, 1000), nodes[0]);
    BHT_EQ(bhi_graph_take(&graph, 1000), nodes[2]);
}

/* The next one that is due, whichever was delayed first. */
TEST(test_the_next_delay) {
    static const uint64_t due_ns[] = {500, 1000, 700};
    uint64_t due;
    make(3, NULL, 0);
    for (int i = 0; i < 3; i++) {
        end_node(take_node(i), BHI_JOB_WAITING, due_ns[i]);
    }
    BHT_EQ(bhi_graph_takeable(&graph, 600, &due), 1);
    BHT_EQ(due, 700);
}

TEST(test_a_delayed_job_waits) {
    const struct bhi_attempt refused = {.next = BHI_JOB_WAITING,
                                        .verdict = {.status = BH_UNAVAILABLE}};
    struct bhi_queue_counts counts;
    open_here("a");
    bhi_queue_ended(queue, take("a"), &refused, 3600000000000u);
    take(NULL);
    bhi_queue_counts(queue, &counts);
    BHT_EQ(counts.takeable, 0);
    BHT_NE(counts.next_due_ns, 0);
    BHT_EQ(counts.of[BHI_JOB_WAITING], 1);
}

/* Jobs that come while others run: what they need may have ended, well or badly. */
TEST(test_adding_later) {
    open_here("good@2 bad@1 running");
    run("good");
    run_one("bad", BHI_JOB_FAILED, BH_INVALID_KERNEL);
    struct bhi_job *running = start("running");
    add("a:good c:b b:bad,good d:running");
    expect_counts("1/1/1/1/3/0/0 of 7");
    run("a");
    end(running, BHI_JOB_DONE, BH_OK);
    run("d");
}

static void sealed(void *user, bool durable) {
    *(int *)user = durable ? 1 : -1;
}

TEST(test_without_a_journal) {
    char *cwd = getcwd(NULL, 0);
    int answer = 0;
    open_here("a");
    BHT_STR_EQ(bhi_queue_cwd(queue), cwd);
    free(cwd);
    BHT_EQ(strlen(bhi_queue_batch_id(queue)), 16);
    struct bhi_job *next = start("a");
    bhi_queue_sealed(queue, next, &(struct bhi_attempt){0}, "", NULL, sealed, &answer);
    BHT_EQ(answer, 1);
    end(next, BHI_JOB_DONE, BH_OK);
    BHT_TRUE(!bhi_queue_broken(queue, NULL));
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(!bhi_queue_each_job(queue, NULL, NULL));
    BHT_TRUE(!bhi_queue_each_attempt(queue, NULL, NULL));
    BHT_TRUE(close_queue());
    BHT_TRUE(bhi_queue_close(NULL));
}

/* What is given back without an attempt counts for nothing. */
TEST(test_given_back) {
    open_here("a");
    const struct bhi_attempt none = {.next = BHI_JOB_WAITING, .verdict = {.status = BH_PENDING}};
    bhi_queue_ended(queue, take("a"), &none, 0);
    struct bhi_job *next = start("a");
    BHT_EQ(next->attempts, 0);
    end(next, BHI_JOB_WAITING, BH_DEADLINE);
    next = take("a");
    BHT_EQ(next->attempts, 1);
    BHT_EQ(next->guilty, 1);
}

static void end_graph(void) {
    bhi_graph_fini(&graph);
}

BHT_AT_START(bht_end_with(end_graph))
