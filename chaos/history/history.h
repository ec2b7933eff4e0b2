/* The history of a chaos run: everything that was submitted, seen and injected, in the order in
 * which it was noted. The engine writes it and the checker (check.h) reads it; nothing else passes
 * between them. On disk it is JSON lines, of which the first is the header (docs/chaos.md).
 *
 * Times are nanoseconds since the run began. */
#ifndef BHI_CHAOS_HISTORY_HISTORY_H
#define BHI_CHAOS_HISTORY_HISTORY_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chaos/history/fault.h"
#include "formats/complaint.h"

/* BHI_CHAOS_STREAMS also limits the workers that a fault hits, with spare ones; there are fewer
 * streams. */
enum { BHI_CHAOS_INPUTS = 4, BHI_CHAOS_STREAMS = 16, BHI_CHAOS_DIGEST = 16 };

/* How long a compile may take in a run on a machine that is not slow. The engine sets this limit,
 * and the checker judges by it. */
#define BHI_CHAOS_COMPILE_NS 5000000000ull

enum bhi_record_kind {
    BHI_RECORD_OP,      /* an operation was submitted */
    BHI_RECORD_REFUSED, /* a call failed, so there is no event (only a full table may cause that) */
    BHI_RECORD_END,     /* the operation's event has ended, or the run gave up waiting for it */
    BHI_RECORD_RESULT,  /* what was read from its output */
    BHI_RECORD_FAULT,   /* a fault was injected, or could not be */
    BHI_RECORD_HEALED,  /* a fault has ended: SIGCONT was sent, or the table has room again */
    BHI_RECORD_SAMPLE,  /* what the process holds */
    BHI_RECORD_STALL,   /* the run's clock thread, or one of its processes, could not run */
    BHI_RECORD_MEMORY, /* the memory of a device while the run had no process: before it or after */
    /* Of a host that has written its own history (<bulkhead/history.h>), in the place of OP: */
    BHI_RECORD_ATTEMPT, /* an event was submitted for a request */
    BHI_RECORD_ANSWER,  /* a request was answered */
    BHI_RECORD_KINDS
};

/* The arithmetic of an operation, over |words| 32-bit words. A reader can compute it again:
 *   out[i] = ((in0[i] + in1[i] + …) * multiplier + addend) ^ rotl(i * 0x9e3779b9, shift)
 * modulo 2^32. It is repeated |rounds| times; from the second round on, out[i] replaces the sum.
 * Inputs are outputs of earlier operations; without inputs the sum is 0. */
struct bhi_chaos_work {
    uint32_t words, multiplier, addend, shift, rounds;
};

struct bhi_record {
    enum bhi_record_kind kind;
    uint64_t at_ns;
    uint64_t op;     /* OP, REFUSED, END, RESULT, ATTEMPT; FAULT: its bait, else 0. From 1 */
    uint32_t stream; /* OP, REFUSED; FAULT: the stream that it aims at */
    union {
        struct {
            uint64_t event; /* bh_event_id */
            bool bait;      /* it is a fault itself: hang, oom or unguarded */
            bool device;    /* its output is in device memory */
            uint32_t input_count;
            uint64_t inputs[BHI_CHAOS_INPUTS]; /* operations whose outputs it reads */
            uint64_t wait;                     /* another operation that it waits for; 0: none */
            uint64_t reuses; /* the operation whose output memory it overwrites; 0: none */
            uint64_t deadline_ns;
            struct bhi_chaos_work work;
        } submit;
        struct {
            bh_status status;
            char call[32];
        } refused;
        struct {
            bool lost; /* it did not end within the run's patience; nothing else is known */
            bh_event_state state;
            bh_status status;
            bh_executed executed;
            int32_t signal, worker_pid;
            uint64_t origin; /* event id */
            uint32_t hops;
            bh_blame blame;
            uint64_t submitted_ns, started_ns, ended_ns; /* since the run began; 0: never */
            bool changed; /* a later look at the same event gave another answer (E2) */
        } end;
        struct {
            bh_status status;                 /* of the map call: BH_OK, or that of the verdict */
            uint8_t digest[BHI_CHAOS_DIGEST]; /* BLAKE2b-128 of the output's bytes, if BH_OK */
        } result;
        struct {
            uint64_t number; /* its place in the schedule, from 1 */
            enum bhi_fault_kind kind;
            bool outside; /* the second process did it */
            bool missed;  /* it had no effect: nothing to hit, or the call failed */
            uint32_t pid_count;
            int32_t pids[BHI_CHAOS_STREAMS]; /* workers that it hit (zygote: all of its own) */
            uint64_t after_op;               /* the last operation that was submitted before it */
            uint64_t lasts_ns;               /* slow, full: how long it lasts */
        } fault;
        struct {
            uint64_t number;
        } healed;
        struct {
            uint32_t descriptors, processes, files; /* of this process; below it; in its folder */
            uint64_t rss_bytes;                     /* of this process, without the history */
            bool idle; /* nothing was in flight and no fault was in effect, so it can be compared */
        } sample;
        struct {
            uint64_t lasted_ns;
            int32_t pid; /* the process; 0: the clock thread */
        } stall;
        struct {
            uint64_t request; /* from 1 */
            bool once;        /* it may not be done twice */
            bool expects;     /* its result must be: */
            uint8_t expected[BHI_CHAOS_DIGEST];
        } attempt;
        struct {
            uint64_t request;
            bool good; /* with a result */
        } answer;
        struct {
            char device[48];
            bool last;                /* after the run; otherwise before it */
            bool budget;              /* the driver says how much is free, to a new worker: */
            uint64_t total, unused;   /* bytes of the device-local heaps */
            bool nvml;                /* NVML says how much is in use: */
            uint64_t used;            /* bytes */
            bool listed;              /* NVML lists the processes that have some: */
            uint64_t others;          /* bytes of those that are not of this run, */
            uint32_t other_processes; /* and how many they are */
            bool utilised;            /* NVML says how busy the device is: */
            uint32_t utilisation;     /* percent of the time */
            uint64_t waited_ns; /* last: for how long the run waited for what was there first */
        } memory;
    };
};

struct bhi_history_header {
    uint32_t schema; /* 1 */
    char version[32];
    uint64_t seed;
    uint64_t duration_ns;  /* as asked for */
    uint64_t faults_asked; /* --count; 0: as many as fit into the time */
    uint32_t streams;
    uint32_t fault_set;
    double rate; /* faults per second, over all streams */
    /* The share of wrong operations that the run must be able to find (power.h); 0: not asked for.
     * Histories from before this field have none. */
    double find_rate;
    bool outside;
    bool accelerator;     /* the device is no CPU: a hang there delays all that share it */
    uint64_t patience_ns; /* after which an event counts as lost */
    uint64_t recovery_ns; /* after a fault a stream must have a READY result within this */
    uint64_t compile_ns;  /* how long a compile may take; 0: not stated, BHI_CHAOS_COMPILE_NS */
    char device[64];
    char driver[128];
};

/* It grows. Only one thread at a time may note (the engine has its own lock). */
struct bhi_history {
    struct bhi_history_header header;
    struct bhi_record *records; /* owned */
    size_t count, capacity;
    bool complete; /* the run came to its end (in the file: a line of its own) */
    bool overflow; /* there was no memory for a record, so nothing can be said of the run */
};

/* For each |record| of |history|, in order; with _OF for each of that kind. */
#define BHI_RECORDS(record, history)                                                               \
    for (const struct bhi_record *record = (history)->records;                                     \
         record && record < (history)->records + (history)->count; record++)
#define BHI_RECORDS_OF(record, history, wanted)                                                    \
    BHI_RECORDS(record, history)                                                                   \
    if (record->kind == (wanted))

void bhi_history_init(struct bhi_history *history);
void bhi_history_note(struct bhi_history *history, const struct bhi_record *record);
void bhi_history_free(struct bhi_history *history);
/* Returns the highest number of an operation, also of a refused one; 0: none. */
uint64_t bhi_history_last_op(const struct bhi_history *history);
/* Writes the file completely or not at all. */
bool bhi_history_save(const struct bhi_history *history, const char *path,
                      struct bhi_complaint *complaint);
/* Reads bytes of unknown origin: checks every field. The complaint names line and key. */
bool bhi_history_read(FILE *file, struct bhi_history *out_history, struct bhi_complaint *complaint);
bool bhi_history_load(const char *path, struct bhi_history *out_history,
                      struct bhi_complaint *complaint);

#endif
