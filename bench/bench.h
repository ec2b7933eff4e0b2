/* What the two sides of the benchmark have in common: the same kernels, the same work, the same
 * clock. A side that cannot do its work ends the program: a number from half a run is worth
 * nothing. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "common.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_kernel {
    BENCH_EMPTY, /* binds nothing: runs that do not depend on each other */
    BENCH_COUNT, /* adds one to a word: each run depends on the one before */
    BENCH_SAXPY,
    BENCH_BUSY,
    BENCH_KERNELS
};

struct bench_code {
    const char *name;
    const uint32_t *words;
    size_t bytes;
};
extern const struct bench_code BENCH_CODE[BENCH_KERNELS];

struct bench_options {
    const char *device; /* selector for the library; NULL: its default */
    const char *worker; /* path of the worker; NULL: where the library finds it */
    bool quick, json, strict;
    bool in_process, bulkhead; /* which sides run */
    unsigned rounds;
    unsigned round_trips; /* in each round */
    unsigned batch;       /* commands in a submission, submissions before a wait */
    unsigned deaths;      /* of each kind */
    size_t saxpy_floats;  /* in each of x and y */
    bool processor;       /* the device is one: no kernel outlives its process */
    uint8_t uuid[16];     /* of the device that both sides use; zero: the first one */
};

/* Host arrays of saxpy: both sides copy x and y in, and the result out. */
struct bench_saxpy {
    float a;
    const float *x, *y;
    float *out;
    size_t count; /* a multiple of 4 */
};
struct bench_saxpy_push {
    float a;
    uint32_t count; /* of groups of four */
};
#define BENCH_SAXPY_LOCAL 256u
/* Ends the program unless the result is right. |side|: whose it is. */
void bench_check_saxpy(const char *side, const struct bench_saxpy *work);

/* One side. Times are nanoseconds. */
struct bench_side {
    const char *name;
    /* A dispatch and its wait, |count| times, one sample each. Of BENCH_COUNT its result, the
     * counter, is read and checked as well. */
    void (*round_trip)(void *self, enum bench_kernel kernel, uint64_t *samples, size_t count);
    /* The same, polling for the end instead of sleeping; NULL: the side chooses by itself. */
    void (*round_trip_polling)(void *self, enum bench_kernel kernel, uint64_t *samples,
                               size_t count);
    /* |count| dispatches in one submission, one wait. |recorded_before|: in-process only, the
     * command buffer is there already. */
    uint64_t (*commands)(void *self, enum bench_kernel kernel, size_t count, bool recorded_before);
    /* |count| submissions of one dispatch, one wait for the last. */
    uint64_t (*submissions)(void *self, enum bench_kernel kernel, size_t count);
    /* What BENCH_COUNT has counted since the last call. */
    uint32_t (*take_count)(void *self);
    /* End to end: copy in, run, copy out. |cold|: with buffers made and freed for this one run. */
    uint64_t (*saxpy)(void *self, const struct bench_saxpy *work, bool cold);
    void (*destroy)(void *self);
    void *self;
};

/* What a person needs to read the numbers. */
struct bench_machine {
    char device[256];
    char driver[256];
};

void bench_vulkan_side(const struct bench_options *options, struct bench_side *out,
                       struct bench_machine *machine);
void bench_bulkhead_side(const struct bench_options *options, struct bench_side *out);
/* The device that the library would use: its UUID into options->uuid. */
void bench_bulkhead_choose(struct bench_options *options, struct bench_machine *machine);

/* -- deaths: the kernel's side and the library's ------------------------------------------ */

struct bench_deaths {
    uint64_t *pidfd;   /* SIGKILL in mid-job until the worker's pidfd says that it is dead */
    uint64_t *idle;    /* SIGKILL of an idle worker until the supervisor no longer names it */
    uint64_t *waiter;  /* SIGKILL in mid-job until a thread has returned from bh_event_wait */
    uint64_t *restart; /* SIGKILL in mid-job until the next good result on the same stream */
    size_t count;      /* samples in each */
};
void bench_measure_deaths(const struct bench_options *options, struct bench_deaths *out);

/* -- copies --------------------------------------------------------------------------------- */

/* Anonymous memory of a process in bytes, from /proc: a second copy of the data would be there. */
uint64_t bench_anonymous_bytes(int pid);
/* After a saxpy: the worker that ran it. */
int bench_bulkhead_worker_pid(const struct bench_side *side);

#endif
