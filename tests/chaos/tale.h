/* Histories by hand: what is not said is as in a good run. Times are in milliseconds. */
#ifndef BULKHEAD_TEST_CHAOS_TALE_H
#define BULKHEAD_TEST_CHAOS_TALE_H

#include "chaos/check/check.h"

#define TALE_MS 1000000ull

struct tale {
    struct bhi_history history;
    uint64_t ops, faults;
    uint64_t now_ms;
};

/* Two streams, patience 30 s, recovery 5 s. */
void tale_begin(struct tale *tale);
void tale_end(struct tale *tale);

/* Submitted now; with up to two inputs (0: none). Returns its number. Its event is 100 + number. */
uint64_t tale_op(struct tale *tale, uint32_t stream, uint64_t a, uint64_t b);
uint64_t tale_event(uint64_t op);
struct bhi_record *tale_submit(struct tale *tale, uint64_t op); /* its OP record */
struct bhi_record *tale_ended(struct tale *tale, uint64_t op);  /* its (last) END record */
struct bhi_record *tale_last(struct tale *tale);

/* It began at |from_ms|, and ends now; its output is read back, and right. */
void tale_ready(struct tale *tale, uint64_t op, int32_t pid, uint64_t from_ms);
/* It began at |from_ms| (0: never), and ends now of itself. */
void tale_poisoned(struct tale *tale, uint64_t op, bh_status status, int signal, int32_t pid,
                   uint64_t from_ms);
/* It ends now of what became of |cause|. */
void tale_inherits(struct tale *tale, uint64_t op, uint64_t cause);
/* It ends now, lost with the worker of |culprit|. */
void tale_lost_with(struct tale *tale, uint64_t op, uint64_t culprit, uint64_t from_ms);
/* Now. Returns its number. */
uint64_t tale_fault(struct tale *tale, enum bhi_fault_kind kind, uint32_t stream, int32_t pid);
/* |kind|: hang or oom; with the operation that it is. Returns that. */
uint64_t tale_bait(struct tale *tale, enum bhi_fault_kind kind, uint32_t stream);
void tale_healed(struct tale *tale, uint64_t fault);
void tale_sample(struct tale *tale, uint32_t descriptors, uint64_t mib);
/* A look at the device's memory, before the run or after it (|last|): 5 of 8 GiB are free. NVML
 * says that 1 GiB is in use, nothing of it by other processes, and that the device is busy for 7 %
 * of the time. */
void tale_memory(struct tale *tale, const char *device, bool last);
void tale_stall(struct tale *tale, uint64_t ms);
/* Until now the process |pid| wanted a processor for so long and had none. */
void tale_starved(struct tale *tale, int32_t pid, uint64_t ms);
void tale_refused(struct tale *tale, bh_status status);

/* A READY operation on each stream, now, by workers |pid| + stream. */
void tale_works(struct tale *tale, int32_t pid);
/* Digest and all. */
void tale_result(struct tale *tale, uint64_t op);

#endif
