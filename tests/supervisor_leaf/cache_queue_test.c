/* The lines of jobs for pipeline caches: tenants take turns, and no tenant can fill a line. */
#include "harness.h"
#include "supervisor/kernel/cache_queue.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct bhi_cache_queue queue;

static void open_queue(void) {
    memset(&queue, 0, sizeof queue);
    bhi_cache_queue_init(&queue);
    queue.open = true;
}

static bool push(enum bhi_cache_way way, const char *tenant, int area) {
    struct bhi_cache_job job = {.area = area};
    snprintf(job.tenant, sizeof job.tenant, "%s", tenant);
    return bhi_cache_queue_push(&queue, way, &job);
}

/* Returns the area of the next job; -1: there is none any more. */
static int pop(enum bhi_cache_way way) {
    struct bhi_cache_job *job = bhi_cache_queue_pop(&queue, way);
    const int area = job ? job->area : -1;
    free(job);
    return area;
}

static void close_queue(void) {
    bhi_cache_queue_stop(&queue, 0);
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        while (pop(way) >= 0) {
        }
    }
    bhi_cache_queue_fini(&queue);
}

BHT_AT_START(bht_around(open_queue, close_queue))

TEST(tenants_take_turns) {
    for (int i = 0; i < 5; i++) {
        BHT_TRUE(push(BHI_CACHE_LOAD, "alice", i));
    }
    BHT_EQ(pop(BHI_CACHE_LOAD), 0);
    BHT_EQ(pop(BHI_CACHE_LOAD), 1);
    BHT_TRUE(push(BHI_CACHE_LOAD, "bob", 10));
    BHT_TRUE(push(BHI_CACHE_LOAD, "bob", 11));
    BHT_TRUE(push(BHI_CACHE_LOAD, "", 20));
    static const int order[] = {10, 20, 2, 11, 3, 4};
    for (size_t i = 0; i < BHT_COUNT(order); i++) {
        BHT_EQ(pop(BHI_CACHE_LOAD), order[i]);
    }
}

TEST(no_load_waits_for_a_store) {
    BHT_TRUE(push(BHI_CACHE_STORE, "alice", 1));
    BHT_TRUE(push(BHI_CACHE_LOAD, "alice", 2));
    BHT_EQ(pop(BHI_CACHE_LOAD), 2);
    BHT_EQ(pop(BHI_CACHE_STORE), 1);
}

TEST(a_tenant_leaves_room_for_others) {
    int alices = 0;
    while (push(BHI_CACHE_STORE, "alice", alices)) {
        alices++;
    }
    BHT_EQ(2 * alices, BHI_CACHE_JOBS);
    BHT_TRUE(push(BHI_CACHE_STORE, "bob", 1000));
    BHT_TRUE(!push(BHI_CACHE_STORE, "alice", 1));
    BHT_EQ(pop(BHI_CACHE_STORE), 0);
    BHT_EQ(pop(BHI_CACHE_STORE), 1000);
}

/* What was taken makes room again. */
TEST(a_line_never_fills_up_for_good) {
    for (int i = 0; i < 2 * (int)BHI_CACHE_JOBS; i++) {
        BHT_TRUE(push(BHI_CACHE_STORE, "alice", i));
        BHT_EQ(pop(BHI_CACHE_STORE), i);
    }
}

static struct waiter {
    _Atomic pid_t tid;
    _Atomic int area;
} waiters[BHI_CACHE_WAYS];

static void *wait_for_job(void *argument) {
    struct waiter *waiter = argument;
    atomic_store(&waiter->tid, gettid());
    atomic_store(&waiter->area, pop((enum bhi_cache_way)(waiter - waiters)));
    return NULL;
}

static void start_waiting(enum bhi_cache_way way) {
    struct waiter *waiter = &waiters[way];
    atomic_store(&waiter->tid, 0);
    atomic_store(&waiter->area, 0);
    bht_start(wait_for_job, waiter);
    WAIT_UNTIL(atomic_load(&waiter->tid) && bht_process_state(atomic_load(&waiter->tid)) == 'S',
               20 * BHT_WAIT_SECOND_MS);
}

/* A thread that sleeps, in each line: by a job of its own line, and by the end. */
TEST(who_waits_is_woken) {
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        start_waiting((enum bhi_cache_way)way);
    }
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        BHT_TRUE(push((enum bhi_cache_way)way, "alice", way + 7));
        WAIT_UNTIL(atomic_load(&waiters[way].area) == way + 7, 5 * BHT_WAIT_SECOND_MS);
    }
    bht_join();
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        start_waiting((enum bhi_cache_way)way);
    }
    bhi_cache_queue_stop(&queue, 0);
    for (int way = 0; way < BHI_CACHE_WAYS; way++) {
        WAIT_UNTIL(atomic_load(&waiters[way].area) == -1, 5 * BHT_WAIT_SECOND_MS);
    }
    bht_join();
}

TEST(what_is_left_is_served_until_a_time) {
    BHT_TRUE(push(BHI_CACHE_STORE, "alice", 1));
    BHT_EQ(bhi_cache_queue_deadline(&queue, 50), 50);
    bhi_cache_queue_stop(&queue, 40);
    BHT_EQ(bhi_cache_queue_deadline(&queue, 50), 40);
    BHT_EQ(bhi_cache_queue_deadline(&queue, 30), 30);
    BHT_TRUE(!push(BHI_CACHE_STORE, "alice", 2));
    BHT_EQ(pop(BHI_CACHE_LOAD), -1);
    BHT_EQ(pop(BHI_CACHE_STORE), 1);
    BHT_EQ(pop(BHI_CACHE_STORE), -1);
}
