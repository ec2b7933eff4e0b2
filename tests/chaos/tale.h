/* Histories by hand, told in words, and what the checker makes of them. What is not said is as in a
 * good run of two streams: patience 30 s, recovery 5 s, workers 1000 and 1001. Times are in
 * milliseconds. A story is statements with ";" between them. An operation is called by a letter.
 *
 *   at 17; after 50           it is so late now; so much later
 *   a on 1 needs b c waits d reuses e device bait
 *                             submitted now on stream 1; all but the stream may be left out
 *   h baits hang 0            submitted as well: a bait of this kind on stream 0, which is a fault
 *   a ready 1000 12           ends now; was on that worker from 12 on; its output is read back, right
 *   a poisoned DEADLINE KILL 1000 12
 *                             ends now of itself, with that signal on that worker, begun at 12 (0:
 *                             never); what is left out is 0
 *   b inherits a              ends now of what became of a
 *   c lost with a 12          ends now, begun at 12, with the worker of a
 *   a has hops 2              a field of its last end (see |fields|)
 *   a result                  its output is read back once more
 *   a read DEADLINE           it could not be read back, for that reason
 *   a wrong; a unread         what was read is wrong; nothing was read
 *   fault kill 0 1000 lasts 9 outside missed after 1000 number 1
 *                             on stream 0 and that worker (0: none); all from there may be left out
 *   healed 1                  this fault, by its number from 1
 *   sample 20 50              descriptors and MiB, at rest
 *   stall 600; starved 1001 600
 *                             the machine stood still; that process had no processor
 *   refused NO_MEMORY         a call
 *   works 1010                a READY operation on each stream, now, by workers 1010 and 1011
 *   memory gpu:1 last         a look at a device's memory, before the run or after it: 5 of 8 GiB are
 *                             free; NVML says that 1 GiB is in use, nothing of it by others, and that
 *                             it is busy for 7 % of the time
 *   accelerator; incomplete   of the run */
#ifndef BULKHEAD_TEST_CHAOS_TALE_H
#define BULKHEAD_TEST_CHAOS_TALE_H

#include "chaos/check/check.h"
#include "harness.h"

#define TALE_MS 1000000ull

extern struct tale {
    bool begun;
    struct bhi_history history;
    uint64_t ops, faults;
    uint64_t now_ms;
    uint64_t named['z' + 1]; /* operations, by letter */
} tale;
/* Of the tale that was judged last. */
extern struct bhi_chaos_result result;
const char *all_findings(void);

/* Begins a tale, or goes on with it. */
__attribute__((format(printf, 1, 2))) void tell(const char *story, ...);
void end_tale(void);
struct bhi_record *submitted(char name); /* its OP record */
struct bhi_record *ended(char name);     /* its (last) END record */
struct bhi_record *last(void);
struct bhi_record *first_fault(void);
uint64_t event_of(uint64_t op);

/* What the checker makes of it so far. */
void check(void);
/* Each goes on with |story| (NULL: with none), gives the tale a sound end, so that only what the story
 * says is wrong, and ends it. */
void judge(void);
__attribute__((format(printf, 1, 2))) void valid(const char *story, ...);
/* Of this kind, and of no other; about the operation (0: whichever), with these words. */
__attribute__((format(printf, 4, 5))) void found(enum bhi_anomaly anomaly, char name,
                                                 const char *words, const char *story, ...);

/* A worker of stream 0 is hit while k runs, of which d needs the output, and i does not. */
#define HIT(kind, status, signal)                                                                  \
    "at 10; k on 0; d on 1 needs k; i on 1; at 15; fault " kind                                    \
    " 0 1000; at 17; k poisoned " status " " signal " 1000 12; d inherits k; i ready 1001 16;"
#define KILLED HIT("kill", "WORKER_SIGNAL", "KILL")
/* And then x is with worker 1011 for 5 s. */
#define COMPILED_FOR_5_S KILLED "at 30; works 1010; x on 1; at 5040;"
/* Operation x has a deadline of 2 s and began at 12; its worker 1000 was stopped from 15 ms on. */
#define STOPPED "at 10; x on 0; at 15; fault stop 0 1000; at %d; x poisoned DEADLINE KILL 1000 12;"
#define SLOW                                                                                       \
    "at 10; x on 0; at 15; fault slow 0 1000 lasts %d; at %d; healed 1; at 2015; x poisoned "      \
    "DEADLINE KILL 1000 12;"
/* What waits for the hang h has run when its worker is killed; so has what comes behind. */
#define RAN_POISONED                                                                               \
    "at 10; h baits hang 0; a on 0 waits h; b on 0; c on 1 needs b; at 120;"                       \
    "h poisoned DEADLINE 0 1000 15; fault kill 0 1000; a inherits h; a has started_ns 119000000;"
/* The table is full from 10 ms to 200 ms, which is now. */
#define FULL "at 10; fault full 0 0; at 200; healed 1;"

#endif
