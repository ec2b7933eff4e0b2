/* The history of a chaos run: everything that was asked, seen and broken, in the order in which it
 * was noted. The engine writes it, the checker (check.h) reads it, and nothing else passes between
 * them. On disk it is JSON lines, the first of which is the header (docs/chaos.md).
 *
 * Times are nanoseconds since the run began.
 */
#ifndef BHI_CHAOS_HISTORY_HISTORY_H
#define BHI_CHAOS_HISTORY_HISTORY_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chaos/history/fault.h"
#include "formats/complaint.h"

/* A fault hits as many workers at most, spare ones included: streams are fewer. */
enum { BHI_CHAOS_INPUTS = 4, BHI_CHAOS_STREAMS = 16, BHI_CHAOS_DIGEST = 16 };

/* What a compile may take in a run on a machine that is not slow: the engine says so to the
 * library, and what it explains is judged by it. */
#define BHI_CHAOS_COMPILE_NS 5000000000ull

enum bhi_record_kind {
    BHI_RECORD_OP,      /* an operation was submitted */
    BHI_RECORD_REFUSED, /* a call failed, and there is no event (only a full table may do that) */
    BHI_RECORD_END,     /* its event has ended, or was given up on */
    BHI_RECORD_RESULT,  /* what was read back of its output */
    BHI_RECORD_FAULT,   /* a fault was injected, or could not be */
    BHI_RECORD_HEALED,  /* its effect was taken back: SIGCONT, the table has room again */
    BHI_RECORD_SAMPLE,  /* what the process has */
    BHI_RECORD_STALL, /* the machine kept the run's own clock thread, or a process of the run, from
                         running for so long */
};

/* The arithmetic of an operation, over |words| 32-bit words, so that a reader can compute it anew:
 *   out[i] = ((in0[i] + in1[i] + …) * multiplier + addend) ^ rotl(i * 0x9e3779b9, shift)
 * modulo 2^32, repeated |rounds| times with out[i] in place of the sum from the second on. Inputs
 * are outputs of earlier operations; without any the sum is 0. */
struct bhi_chaos_work {
    uint32_t words, multiplier, addend, shift, rounds;
};

struct bhi_record {
    enum bhi_record_kind kind;
    uint64_t at_ns;
    uint64_t op;     /* OP, REFUSED, END, RESULT; a FAULT's own for hang and oom (else 0). From 1 */
    uint32_t stream; /* OP, REFUSED, FAULT (of the stream it aims at) */
    union {
        struct {
            uint64_t event; /* bh_event_id */
            bool bait;      /* it is the fault: hang or oom */
            uint32_t input_count;
            uint64_t inputs[BHI_CHAOS_INPUTS]; /* operations whose outputs it reads */
            uint64_t wait;                     /* an operation it waits for besides; 0: none */
            uint64_t reuses; /* the one whose output's memory it overwrites; 0: it has its own */
            uint64_t deadline_ns;
            struct bhi_chaos_work work;
        } submit;
        struct {
            bh_status status;
            char call[32];
        } refused;
        struct {
            bool lost; /* it did not end within the run's patience; nothing else is known then */
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
            bh_status status;                 /* of the map: BH_OK, or the verdict's */
            uint8_t digest[BHI_CHAOS_DIGEST]; /* BLAKE2b-128 of the output's bytes; where OK */
        } result;
        struct {
            uint64_t number; /* from 1, its place in the schedule */
            enum bhi_fault_kind kind;
            bool outside; /* by the second process */
            bool missed;  /* there was nothing to hit, or the call failed: it did nothing */
            uint32_t pid_count;
            int32_t pids[BHI_CHAOS_STREAMS]; /* of workers that it hit (zygote: all of them) */
            uint64_t after_op;               /* the last operation that had been submitted */
            uint64_t lasts_ns;               /* slow, full: until it is taken back */
        } fault;
        struct {
            uint64_t number;
        } healed;
        struct {
            uint32_t descriptors, processes, files; /* of this process; below it; of its folder */
            uint64_t rss_bytes;                     /* of this process, but for the history */
            bool idle; /* nothing was in flight and no fault was in effect: comparable */
        } sample;
        struct {
            uint64_t lasted_ns;
            int32_t pid; /* whose; 0: the clock's */
        } stall;
    };
};

struct bhi_history_header {
    uint32_t schema; /* 1 */
    char version[32];
    uint64_t seed;
    uint64_t duration_ns;  /* as asked */
    uint64_t faults_asked; /* --count: how many; 0: as the time allows */
    uint32_t streams;
    uint32_t fault_set;
    double rate; /* faults a second, over all streams */
    /* The share of wrong operations that it has to be able to find (power.h); 0: none was asked
     * for. Histories of before it was there have none. */
    double find_rate;
    bool outside;
    bool accelerator;     /* the device is no CPU: what hangs there holds up all that share it */
    uint64_t patience_ns; /* after which an event counts as lost */
    uint64_t recovery_ns; /* within which a stream must have a READY result again after a fault */
    uint64_t compile_ns;  /* what a compile may take; 0: it does not say, BHI_CHAOS_COMPILE_NS */
    char device[64];
    char driver[128];
};

/* Grows; one thread at a time may note (the engine has a lock of its own). */
struct bhi_history {
    struct bhi_history_header header;
    struct bhi_record *records; /* owned */
    size_t count, capacity;
    bool complete; /* the run came to its end (a line of its own in the file) */
    bool overflow; /* there was no memory for a record: nothing can be said of such a run */
};

void bhi_history_init(struct bhi_history *history);
void bhi_history_note(struct bhi_history *history, const struct bhi_record *record);
void bhi_history_free(struct bhi_history *history);
/* The highest number of an operation, refused ones among them; 0: there is none. */
uint64_t bhi_history_last_op(const struct bhi_history *history);
/* Whole or not at all. */
bool bhi_history_save(const struct bhi_history *history, const char *path,
                      struct bhi_complaint *complaint);
/* Reads bytes that anybody may have written: every field checked; the complaint names line and
 * key. */
bool bhi_history_read(FILE *file, struct bhi_history *out_history, struct bhi_complaint *complaint);
bool bhi_history_load(const char *path, struct bhi_history *out_history,
                      struct bhi_complaint *complaint);

#endif
