/* The lane: a single-producer single-consumer ring of submissions in shared memory.
 *
 * The supervisor writes it under the context's lock. The worker maps it read-only: the supervisor
 * maps its memfd and then seals it with F_SEAL_FUTURE_WRITE. The ring is mapped twice, back to
 * back, so that a record never wraps. The worker writes only into `progress`.
 *
 *   page 0            struct bhi_lane_header
 *   page 1 …          `capacity` bytes of ring (a power of two, a multiple of the page size)
 */
#ifndef BHI_IPC_LANE_H
#define BHI_IPC_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_LANE_MAGIC      0x424c414eu /* "BLAN" */
#define BHI_LANE_CAPACITY   (1u << 20)  /* bytes of ring in the supervisor's lanes */
#define BHI_LANE_WITHDRAWN  4096u       /* at least the submissions in flight in one lane */
#define BHI_LANE_MAX_RECORD (BHI_LANE_CAPACITY / 2)

/* All words are written by the supervisor and read by the worker. */
struct bhi_lane_header {
    uint32_t magic;
    uint32_t version;
    uint32_t capacity;
    uint32_t results; /* entries of progress.results, a power of two */
    /* Bytes published since the beginning; the ring position is head & (capacity - 1). */
    _Alignas(64) _Atomic uint64_t head;
    /* Futex word; incremented after each publication and each control message. */
    _Atomic uint32_t doorbell;
    /* How many control messages the supervisor has queued for this worker, modulo 2^32. */
    _Atomic uint32_t control_sent;
    /* The worker rings the eventfd when completed_seq reaches this; 0: only for the reasons in
     * progress.h. */
    _Alignas(64) _Atomic uint64_t notify_at;
    /* Bit seq % BHI_LANE_WITHDRAWN: the submission was withdrawn, and the worker skips it if it has
     * not started it. The supervisor sets the bit, fences, and reads progress.started_seq. The
     * worker stores started_seq, fences, and reads the bit. So at least one of them sees the
     * other's store. */
    _Atomic uint64_t withdrawn[BHI_LANE_WITHDRAWN / 64];
    /* Host threads that sleep on progress.completed_word, or are about to. */
    _Atomic uint32_t waiters;
    /* The last submission whose result the supervisor has consumed. An error slot (progress.h) may
     * be written again once the submission that used it is harvested. It changes with each result,
     * so it is in a cache line of its own: the worker reads those before for each submission. */
    _Alignas(64) _Atomic uint64_t harvested;
    /* Futex word of the worker's watchdog; incremented after abort_seq was stored. */
    _Alignas(64) _Atomic uint32_t abort_word;
    /* The submission that the worker must stop if it runs; its result is then BH_DEADLINE. */
    _Atomic uint64_t abort_seq;
};

/* One submission. Followed by its commands (commands.h). */
struct bhi_lane_record {
    uint64_t size; /* bytes, this struct included, a multiple of 8 */
    uint64_t seq;  /* 1, 2, 3, … in each lane */
    uint32_t command_count;
    uint32_t control_seq; /* number of control messages (modulo 2^32) to handle first */
    uint64_t flags; /* BHI_RECORD_*. The last: workers find a recording by what is from here on */
};
#define BHI_RECORD_TIMED UINT64_C(1) /* its result says how long the device was busy */
#define BHI_RECORD_ALONE UINT64_C(2) /* it shares no queue submission with others */
/* Faults that the host wants, to be tested with (docs/chaos.md). A record with one is also ALONE.
 * The device is lost when it has run; there is no device memory for it to run; its result is late,
 * by at most 65,535 ms. */
#define BHI_RECORD_LOSES_DEVICE       UINT64_C(4)
#define BHI_RECORD_NO_MEMORY          UINT64_C(8)
#define BHI_RECORD_LATE_MS(ms)        ((uint64_t)(ms) << 4)
#define BHI_RECORD_LATENESS_MS(flags) ((flags) >> 4)
#define BHI_RECORD_CHAOS              (BHI_RECORD_FLAGS & ~(BHI_RECORD_TIMED | BHI_RECORD_ALONE))
#define BHI_RECORD_FLAGS              (BHI_RECORD_LATE_MS(UINT16_MAX) | 15)

/* Supervisor side. Thread: one at a time (the context's lock). */
struct bhi_lane {
    struct bhi_lane_header *header;
    uint8_t *ring; /* 2 × capacity, the second half mirrors the first */
    uint64_t capacity;
    uint64_t head; /* private copy: the header's word is never read back */
    int fd;
};

/* Creates, maps and seals a lane. Returns 0 or -errno. */
int bhi_lane_create(struct bhi_lane *lane, uint32_t capacity, uint32_t results);
void bhi_lane_destroy(struct bhi_lane *lane);
/* Bytes that can be published now, given the consumer's |tail|; -1 if |tail| is invalid (beyond
 * head, or more than capacity behind it). */
int64_t bhi_lane_space(const struct bhi_lane *lane, uint64_t tail);
/* Copies |record| (record->size bytes) into the ring and publishes it: stores head with release,
 * then increments the doorbell. The caller has checked the space. If the consumer sleeps, the
 * caller wakes it with bhi_lane_wake(). */
void bhi_lane_publish(struct bhi_lane *lane, const struct bhi_lane_record *record);
/* Publishes the number of control messages that were queued, and rings the doorbell. */
void bhi_lane_control(struct bhi_lane *lane, uint32_t control_sent);
/* Sets or clears the withdrawn bit of |seq|. */
void bhi_lane_withdraw(struct bhi_lane *lane, uint64_t seq, bool withdrawn);
/* Wakes a worker that sleeps on the doorbell. */
void bhi_lane_wake(struct bhi_lane *lane);
/* Asks the worker to stop |seq| if it runs. */
void bhi_lane_abort(struct bhi_lane *lane, uint64_t seq);

/* Worker side. Thread: the worker's main thread. */
struct bhi_lane_view {
    const struct bhi_lane_header *header;
    const uint8_t *ring;
    uint64_t capacity;
    uint64_t tail;
};

/* Verifies seals and size of |fd| against |bytes|, and maps it read-only until the process ends.
 * Returns 0 or -errno. */
int bhi_lane_view_map(struct bhi_lane_view *view, int fd, uint64_t bytes);
/* Returns true if |seq| was withdrawn. Call it after the store of started_seq and a full fence. */
bool bhi_lane_withdrawn(const struct bhi_lane_view *view, uint64_t seq);
/* Returns the record |offset| bytes past the tail, or NULL if no more is published. The record is
 * inside the ring and its size is valid; its commands are not checked yet. If the ring's content is
 * invalid, returns NULL and sets *out_error to -EPROTO. */
const struct bhi_lane_record *bhi_lane_peek(const struct bhi_lane_view *view, uint64_t offset,
                                            int *out_error);

#endif
