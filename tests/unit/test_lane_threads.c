/* A producer and a consumer thread on one lane and its progress, with the sleeping and waking of
 * the real ones: every record arrives whole, once, in order, and nobody sleeps for ever. Twice:
 * through the mappings that the two processes have, and through one mapping, where a race detector
 * sees that both touch the same bytes. */
#include "base/futex.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "lane_view.h"
#include "support.h"
#include <pthread.h>

#define CAPACITY   4096u
#define RESULTS    64u
#define RECORDS    20000u
#define MAX_WORDS  60u
#define PATIENT_NS (20000000000ull * bht_slowness())

struct lane_pair {
    struct bhi_lane lane;
    struct bhi_lane_view view;
    struct bhi_progress_view seen;
    struct bhi_progress told;
    uint64_t deadline;
    uint64_t slept; /* by the consumer */
    const char *failure;
};

/* Words of record |seq|: a different number for each, all of them derived from it. */
static uint64_t words_of(uint64_t seq) {
    uint64_t random = seq * 0x9e3779b97f4a7c15ull | 1;
    return random_below(&random, MAX_WORDS);
}

static void *consume(void *argument) {
    struct lane_pair *p = argument;
    uint64_t seq = 0, offset = 0;
    struct bhi_spin spin = BHI_SPIN_INIT(2000);
    while (seq < RECORDS) {
        int error;
        uint32_t bell = atomic_load_explicit(&p->view.header->doorbell, memory_order_seq_cst);
        const struct bhi_lane_record *record = bhi_lane_peek(&p->view, offset, &error);
        if (error) {
            p->failure = "the ring's content is not";
            break;
        }
        if (record) {
            uint64_t random = ++seq;
            const uint64_t *words = (const uint64_t *)(record + 1);
            uint64_t count = words_of(seq);
            if (record->seq != seq || record->size != sizeof *record + 8 * count ||
                record->control_seq != (uint32_t)seq) {
                p->failure = "a record is not the next one";
                break;
            }
            for (uint64_t i = 0; i < count; i++) {
                if (words[i] != next_random(&random)) {
                    p->failure = "a record is not whole";
                }
            }
            offset += record->size;
            struct bhi_result result = {.seq = seq, .executed = 2, .started_ns = seq};
            bhi_progress_result(&p->told, &result, NULL);
            /* Several at a time, as a worker does that has several in one queue submission. */
            if (seq % 3 != 0 && seq != RECORDS && bhi_lane_peek(&p->view, offset, &error)) {
                continue;
            }
            p->view.tail += offset;
            offset = 0;
            bhi_progress_publish(&p->told, seq, p->view.tail);
            /* A read-modify-write of our own word: a full fence that a race detector knows. */
            atomic_fetch_add_explicit(&p->told.header->load_bytes, 1, memory_order_seq_cst);
            if (atomic_load_explicit(&p->view.header->waiters, memory_order_seq_cst)) {
                bhi_progress_wake(&p->told);
            }
            continue;
        }
        if (bhi_spin_wait(&spin, &p->view.header->doorbell, bell)) {
            continue;
        }
        atomic_store_explicit(&p->told.header->sleeping, 1, memory_order_seq_cst);
        p->slept++;
        if (bhi_futex_wait(&p->view.header->doorbell, bell, true, p->deadline)) {
            p->failure = "the consumer was not woken";
            break;
        }
        atomic_store_explicit(&p->told.header->sleeping, 0, memory_order_seq_cst);
    }
    return NULL;
}

/* Sleeps until something more is completed than |completed|. */
static void wait_for_progress(struct lane_pair *p, uint64_t completed) {
    const _Atomic uint32_t *word = &p->seen.header->completed_word;
    atomic_fetch_add_explicit(&p->lane.header->waiters, 1, memory_order_seq_cst);
    while (atomic_load_explicit(word, memory_order_seq_cst) == (uint32_t)completed) {
        BHT_EQ(bhi_futex_wait(word, (uint32_t)completed, true, p->deadline), 0);
    }
    atomic_fetch_sub_explicit(&p->lane.header->waiters, 1, memory_order_seq_cst);
}

static void check_results(struct lane_pair *p, uint64_t *inout_checked, uint64_t completed) {
    while (*inout_checked < completed) {
        struct bhi_result result;
        char text[BHI_ERROR_TEXT];
        struct bhi_told told;
        BHT_EQ(bhi_progress_read(&p->seen, ++*inout_checked, &result, &told, text), 0);
        BHT_EQ(result.seq, *inout_checked);
    }
}

static void produce(struct lane_pair *p) {
    static _Alignas(8) uint8_t bytes[sizeof(struct bhi_lane_record) + 8 * MAX_WORDS];
    struct bhi_lane_record *record = (void *)bytes;
    uint64_t completed = 0, tail = 0, checked = 0;
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        uint64_t random = seq, count = words_of(seq);
        for (uint64_t i = 0; i < count; i++) {
            ((uint64_t *)(record + 1))[i] = next_random(&random);
        }
        *record = (struct bhi_lane_record){
            .size = sizeof *record + 8 * count, .seq = seq, .control_seq = (uint32_t)seq};
        for (;;) {
            BHT_EQ(bhi_progress_poll(&p->seen, seq - 1, p->lane.head, &completed, &tail), 0);
            int64_t space = bhi_lane_space(&p->lane, tail);
            BHT_GE(space, 0);
            check_results(p, &checked, completed);
            if ((uint64_t)space >= record->size && seq - completed <= RESULTS) {
                break;
            }
            wait_for_progress(p, completed);
        }
        bhi_lane_publish(&p->lane, record);
        if (atomic_load_explicit(&p->seen.header->sleeping, memory_order_seq_cst)) {
            bhi_lane_wake(&p->lane);
        }
    }
    while (completed < RECORDS) {
        wait_for_progress(p, completed);
        BHT_EQ(bhi_progress_poll(&p->seen, RECORDS, p->lane.head, &completed, &tail), 0);
        check_results(p, &checked, completed);
    }
    BHT_EQ(tail, p->lane.head);
}

static void run_pair(bool one_mapping) {
    struct lane_pair p = {.deadline = bhi_deadline_ns(PATIENT_NS)};
    pthread_t consumer;
    BHT_EQ(bhi_lane_create(&p.lane, CAPACITY, RESULTS), 0);
    BHT_EQ(bhi_progress_create(&p.seen, RESULTS), 0);
    BHT_EQ(bhi_progress_map(&p.told, p.seen.fd, p.seen.bytes), 0);
    struct bhi_progress_view separate = p.seen;
    if (one_mapping) {
        p.view = (struct bhi_lane_view){p.lane.header, p.lane.ring, CAPACITY, 0};
        p.seen.header = p.told.header;
        p.seen.markers = p.told.markers;
        p.seen.results = p.told.results;
        p.seen.errors = p.told.errors;
    } else {
        BHT_EQ(bhi_lane_view_map(&p.view, p.lane.fd, 4096 + CAPACITY), 0);
    }
    BHT_EQ(pthread_create(&consumer, NULL, consume, &p), 0);
    produce(&p);
    pthread_join(consumer, NULL);
    if (p.failure) {
        BHT_FAIL("%s", p.failure);
    }
    BHT_GT(p.lane.head, 100ull * CAPACITY); /* it went round */
    if (!one_mapping) {
        bht_lane_view_unmap(&p.view);
    }
    bhi_progress_unmap(&p.told);
    bhi_progress_destroy(&separate);
    bhi_lane_destroy(&p.lane);
}

TEST(test_two_mappings) {
    run_pair(false);
}

TEST(test_one_mapping) {
    run_pair(true);
}
