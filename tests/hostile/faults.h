/* Fault injection into bulkhead-worker-faulty. That is the shipped worker, object by object: where it
 * calls from one file into another, or into libc, the linker puts functions of this folder in place of
 * what is called (wrap.h). They pass the points of points.def.
 *
 * $BULKHEAD_TEST_FAULTS, read once by the zygote: a comma-separated list of
 *     WORKER:POINT:NTH=ACTION
 *   WORKER  ordinal of the worker in its zygote, from 1; * for every worker; or sentinel, for the
 *           first sentinel (the ordinals do not count sentinels)
 *   POINT   of points.def
 *   NTH     which passage of the point in that worker, from 1; or * for every passage
 *   ACTION  segv, abort, kill, stop, exit0, exit7
 *           sigsys                      execve, which the filter forbids
 *           hang                        sleeps for ever
 *           spin                        endless loop
 *           pause                       20 ms
 *           flood                       sends control messages for ever
 *           garbage                     fills progress with random bytes, then sleeps for ever
 *           fail                        what points.def says
 *           oom_host, oom_device, lost  the result of a call of the driver
 *           close, close_hang           closes all descriptors; the second then sleeps for ever
 *           hang_up                     closes the socket that descriptors come through
 *           hoard                       takes 2 GiB that RLIMIT_DATA does not count
 *           ring, drain                 ring the doorbell for ever; drain takes each ring back
 *           unblock                     clears O_NONBLOCK on what it shares with the supervisor
 *                                       (only before filter A, which forbids ioctl)
 *           unlisted                    a system call that no table has
 *           hand_out                    sends all that it has open through its side channel
 *           and, where a buffer is attached, BHI_TAMPERS
 *
 * An item plan=PATH names a file of plan.h: a fault that a test chooses later. notes=PATH, the last
 * item, names a file of notes.h, which tells the test what has happened. An unknown point or action
 * ends the zygote, and the test fails (tests/harness/faults.h).
 */
#ifndef BHT_HOSTILE_FAULTS_H
#define BHT_HOSTILE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#define BHI_SENTINEL_ORDINAL 1000001u /* of the first sentinel; no worker's ordinal is as large */

enum bhi_point {
#define START(name) BHI_AT_##name,
#define RUN(name)   BHI_AT_##name,
#define CALL(name)  BHI_AT_start_##name, BHI_AT_##name,
#include "points.def"
    BHI_POINTS
};

struct bhi_progress;
struct bhi_channel;

/* What the wrapped calls have learned of this process. */
extern struct bhi_faults {
    unsigned worker; /* its ordinal; 0 in the zygote, and in what else it forks */
    bool running;    /* `ready` was passed */
    bool tracer;
    struct bhi_progress *progress;
    struct bhi_channel *channel;
} bhi_faults;

void bhi_faults_init(void);                  /* zygote: reads the variable */
bool bhi_faults_named(enum bhi_point point); /* does the variable have it? */
bool bhi_fault_point(enum bhi_point point);  /* passes it; true: the action `fail` is due here */
/* A call, with both its points. True: it fails, with ENOMEM. */
bool bhi_fault_call(enum bhi_point starting, enum bhi_point running);
int bhi_fault_vulkan(enum bhi_point starting, enum bhi_point running); /* a VkResult; 0: none */
/* Does nothing any more, and keeps no processor from other tests, as a loop would. */
_Noreturn void bhi_fault_hang(void);
#define lies(name)       bhi_fault_point(BHI_AT_##name)
#define passes(name)     ((void)bhi_fault_point(BHI_AT_##name))
#define call_fails(name) bhi_fault_call(BHI_AT_start_##name, BHI_AT_##name)

/* Makes the result of a run false, if a test has asked for that. */
struct bhi_result;
void bht_lie_of_run(struct bhi_result *result);

/* A buffer, as a worker that was taken over has it. */
struct bhi_tamper_target {
    int fd;
    void *pointer;
    size_t bytes;
};

/* Each way in which it could try to change the bytes: NAME as an action, and what it does. */
#define BHI_TAMPERS(X)                                                                             \
    X(SCRIBBLE, "scribble")   /* writes through the mapping it has */                              \
    X(MAP_WRITE, "map_write") /* maps the descriptor for writing */                                \
    X(PROTECT, "protect")     /* makes the mapping it has writable */                              \
    X(REMAP, "remap")         /* moves the mapping, then makes it writable */                      \
    X(REOPEN, "reopen")       /* opens it anew through /proc */                                    \
    X(WRITE, "write")                                                                              \
    X(PWRITE, "pwrite")                                                                            \
    X(CUT, "cut")       /* ftruncate */                                                            \
    X(PUNCH, "punch")   /* fallocate with a hole */                                                \
    X(REMOVE, "remove") /* madvise(MADV_REMOVE) */                                                 \
    X(SEAL, "seal")                                                                                \
    X(CHMOD, "chmod") /* gives itself the permission, then opens it anew */

enum bhi_tamper {
#define BHI_TAMPER(NAME, text) BHI_TAMPER_##NAME,
    BHI_TAMPERS(BHI_TAMPER)
#undef BHI_TAMPER
        BHI_TAMPER_COUNT
};

/* Changes every byte that it can. It returns, or the process is killed for it. */
void bhi_tamper(enum bhi_tamper how, const struct bhi_tamper_target *target);
/* Passes the point, where a worker has this buffer. */
void bhi_fault_tamper(enum bhi_point point, int fd, void *pointer, size_t bytes);

#endif
