/* The lane under a seeded random scheduler: the steps of a producer and of a consumer, in every
 * order that chance comes up with, against a model that knows what should be there. Sleeping is
 * modelled too: whoever sleeps while there is something for it to do, and is not going to be woken,
 * is a lost wake-up. A failure names its seed. */
#include "base/futex.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "lane_view.h"
#include "support.h"
#include <stdlib.h>

#define CAPACITY    4096u
#define RESULTS     16u
#define SEEDS       150
#define SUBMISSIONS 200u

enum producer_step { P_PREPARE, P_PUBLISH, P_LOOK, P_WAKE, P_DONE };
enum consumer_step { C_BELL, C_PEEK, C_TAKE, C_PUBLISH, C_SLEEPING, C_FUTEX, C_ASLEEP };

struct world {
    uint64_t seed, random;
    struct bhi_lane lane;
    struct bhi_lane_view view;
    struct bhi_progress_view seen;
    struct bhi_progress told;
    /* producer */
    enum producer_step p;
    uint64_t next_seq, size;
    bool wake;
    uint64_t completed, tail;
    /* consumer */
    enum consumer_step c;
    uint32_t bell;
    uint64_t offset, taken;
    /* model: sizes and fills of what is published */
    uint64_t sizes[SUBMISSIONS + 1];
};

static uint8_t fill_of(uint64_t seq) {
    return (uint8_t)(seq * 37 + 1);
}

static void check(struct world *w, bool condition, const char *what) {
    if (!condition) {
        BHT_FAIL("seed %llu, submission %llu: %s", (unsigned long long)w->seed,
                 (unsigned long long)w->next_seq, what);
    }
}

static void producer_step(struct world *w) {
    static _Alignas(8) uint8_t bytes[CAPACITY];
    struct bhi_lane_record *record = (void *)bytes;
    switch (w->p) {
    case P_PREPARE: {
        uint64_t before = w->completed;
        check(w,
              bhi_progress_poll(&w->seen, w->next_seq - 1, w->lane.head, &w->completed, &w->tail) ==
                  0,
              "an honest consumer is accused of a protocol violation");
        check(w, w->completed >= before, "completion went backwards");
        for (uint64_t seq = before + 1; seq <= w->completed; seq++) {
            struct bhi_result result;
            char text[BHI_ERROR_TEXT];
            struct bhi_told told;
            check(w, bhi_progress_read(&w->seen, seq, &result, &told, text) == 0,
                  "a completed submission has no result");
        }
        if (w->next_seq > SUBMISSIONS) {
            w->p = P_DONE;
            break;
        }
        int64_t space = bhi_lane_space(&w->lane, w->tail);
        check(w, space >= 0 && space <= CAPACITY, "the space is not");
        if ((uint64_t)space >= w->size && w->next_seq - w->completed <= RESULTS) {
            w->p = P_PUBLISH;
        }
        break;
    }
    case P_PUBLISH:
        memset(bytes, fill_of(w->next_seq), w->size);
        *record = (struct bhi_lane_record){.size = w->size, .seq = w->next_seq};
        w->sizes[w->next_seq] = w->size;
        bhi_lane_publish(&w->lane, record);
        w->next_seq++;
        w->size = sizeof *record + 8 * random_below(&w->random, CAPACITY / 16 - 3);
        w->p = P_LOOK;
        break;
    case P_LOOK:
        w->wake = atomic_load(&w->seen.header->sleeping) != 0;
        w->p = w->wake ? P_WAKE : P_PREPARE;
        break;
    case P_WAKE:
        if (w->c == C_ASLEEP) {
            w->c = C_BELL;
        }
        w->p = P_PREPARE;
        break;
    case P_DONE:
        break;
    }
}

static void take(struct world *w) {
    int error;
    const struct bhi_lane_record *record = bhi_lane_peek(&w->view, w->offset, &error);
    check(w, record && !error, "a record that was there has gone");
    uint64_t seq = w->taken + 1;
    check(w, record->seq == seq && record->size == w->sizes[seq], "not the next record");
    for (uint64_t i = sizeof *record; i < record->size; i++) {
        check(w, ((const uint8_t *)record)[i] == fill_of(seq), "a record is not whole");
    }
    struct bhi_result result = {.seq = seq, .executed = 2};
    bhi_progress_result(&w->told, &result, NULL);
    w->offset += record->size;
    w->taken = seq;
}

static void consumer_step(struct world *w) {
    int error;
    const struct bhi_lane_record *record;
    switch (w->c) {
    case C_BELL:
        atomic_store(&w->told.header->sleeping, 0);
        w->bell = atomic_load(&w->view.header->doorbell);
        w->c = C_PEEK;
        break;
    case C_PEEK:
        record = bhi_lane_peek(&w->view, w->offset, &error);
        check(w, !error, "the ring's content is not");
        w->c = record ? C_TAKE : w->offset ? C_PUBLISH : C_SLEEPING;
        break;
    case C_TAKE:
        take(w);
        w->c = random_below(&w->random, 3) ? C_PUBLISH : C_PEEK;
        break;
    case C_PUBLISH:
        w->view.tail += w->offset;
        w->offset = 0;
        bhi_progress_publish(&w->told, w->taken, w->view.tail);
        w->c = C_BELL;
        break;
    case C_SLEEPING:
        atomic_store(&w->told.header->sleeping, 1);
        w->c = C_FUTEX;
        break;
    case C_FUTEX: /* what the kernel does: compare and sleep, in one */
        w->c = atomic_load(&w->view.header->doorbell) == w->bell ? C_ASLEEP : C_BELL;
        break;
    case C_ASLEEP:
        break;
    }
}

static void run_seed(uint64_t seed) {
    struct world w = {
        .seed = seed, .random = seed, .next_seq = 1, .size = sizeof(struct bhi_lane_record)};
    BHT_EQ(bhi_lane_create(&w.lane, CAPACITY, RESULTS), 0);
    BHT_EQ(bhi_lane_view_map(&w.view, w.lane.fd, 4096 + CAPACITY), 0);
    BHT_EQ(bhi_progress_create(&w.seen, RESULTS), 0);
    BHT_EQ(bhi_progress_map(&w.told, w.seen.fd, w.seen.bytes), 0);
    uint64_t bias = 1 + random_below(&w.random, 9); /* some seeds favour one of the two */
    uint64_t steps = 0;
    while (w.p != P_DONE || w.taken < SUBMISSIONS || w.c != C_ASLEEP) {
        if (random_below(&w.random, 10) < bias) {
            producer_step(&w);
        } else {
            consumer_step(&w);
        }
        /* The consumer sleeps, and nobody is on the way to wake it: nothing may be left to take. */
        if (w.c == C_ASLEEP && w.p != P_LOOK && w.p != P_WAKE) {
            check(&w, w.taken == w.next_seq - 1, "a wake-up was lost");
        }
        check(&w, ++steps < 1000000, "it does not end");
    }
    check(&w, w.view.tail == w.lane.head, "bytes are left over");
    bhi_progress_unmap(&w.told);
    bhi_progress_destroy(&w.seen);
    bht_lane_view_unmap(&w.view);
    bhi_lane_destroy(&w.lane);
}

TEST(test_random_schedules) {
    const char *only = getenv("BULKHEAD_TEST_SEED");
    if (only) {
        run_seed(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_seed(seed * 0x9e3779b97f4a7c15ull);
    }
}

/* A consumer that writes whatever it likes. What the producer then believes is always something
 * that could be true: the space is within the ring, completion within what was published. */
TEST(test_lying_consumer) {
    uint64_t random = 0x5eed;
    struct bhi_lane lane;
    struct bhi_progress_view seen;
    struct bhi_progress told;
    BHT_EQ(bhi_lane_create(&lane, CAPACITY, RESULTS), 0);
    BHT_EQ(bhi_progress_create(&seen, RESULTS), 0);
    BHT_EQ(bhi_progress_map(&told, seen.fd, seen.bytes), 0);
    static _Alignas(8) uint8_t bytes[CAPACITY];
    unsigned believed = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        uint64_t completed = 0, tail = 0, published = 1 + random_below(&random, 100);
        seen.seen_completed = random_below(&random, published + 1);
        lane.head = random_below(&random, 64) * 64;
        seen.seen_tail = random_below(&random, lane.head + 1);
        uint64_t lie = random_below(&random, 8) ? random_below(&random, 128) : next_random(&random);
        atomic_store(&told.header->completed_seq, lie);
        lie = random_below(&random, 8) ? random_below(&random, 4096) : next_random(&random);
        atomic_store(&told.header->tail, lie);
        uint64_t floor = seen.seen_completed, tail_floor = seen.seen_tail;
        if (bhi_progress_poll(&seen, published, lane.head, &completed, &tail)) {
            refused++;
            continue;
        }
        believed++;
        BHT_TRUE(completed >= floor && completed <= published);
        BHT_TRUE(tail >= tail_floor && tail <= lane.head);
        int64_t space = bhi_lane_space(&lane, tail);
        BHT_LE(space, (int64_t)CAPACITY);
        struct bhi_lane_record *record = (void *)bytes;
        *record = (struct bhi_lane_record){.size = CAPACITY / 2};
        if (space >= CAPACITY / 2) {
            bhi_lane_publish(&lane, record);
        }
    }
    BHT_TRUE(believed > 100 && refused > 100);
    bhi_progress_unmap(&told);
    bhi_progress_destroy(&seen);
    bhi_lane_destroy(&lane);
}
