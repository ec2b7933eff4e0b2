/* What a driver asks of the kernel, and whether its sandbox table allows it. Included by
 * bulkhead.h. docs/sandbox.md, "Tables for the next driver".
 */
#ifndef BULKHEAD_TRACE_H
#define BULKHEAD_TRACE_H

#include <bulkhead/bulkhead.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bh_call_judgement {
    BH_CALL_ALLOWED,
    BH_CALL_ANSWERED, /* the filter answers it with |error| */
    BH_CALL_UNKNOWN,  /* no rule allows it: a worker that makes it is killed by SIGSYS */
} bh_call_judgement;

/* Calls of one kind: the same phase, call and arguments. */
typedef struct bh_traced_call {
    char phase[16]; /* "device", "warm-up" (both behind filter A), "running" (behind filter B) */
    char call[32];  /* "ioctl" */
    char arguments[176]; /* those that a filter can compare, and paths; may be empty */
    uint64_t count;
    bh_call_judgement judgement;
    int32_t error; /* ANSWERED: an errno; otherwise 0 */
} bh_traced_call;

typedef struct bh_trace {
    char driver[32];         /* the table's entry */
    char version[160];       /* what the driver says of itself; empty: it did not come to that */
    char made_for[160];      /* the versions that the table was made for, as glob patterns */
    bool known;              /* |version| is one of them */
    bool tried;              /* false: the table was written from documentation */
    bool complete;           /* the driver did all that it was given to do */
    uint32_t unknown;        /* how many calls the table does not know */
    uint32_t dropped;        /* calls of kinds that there was no room for */
    char failure[256];       /* not complete: why */
    char first_unknown[256]; /* the first call that the table does not know, in words; or empty */
    uint64_t reserved;       /* 0 */
} bh_trace;

/* Starts the driver of |device| (NULL: the default one) in a throw-away process, has it create a
 * device, warm up, compile, import and run, and writes which system calls it makes: at most
 * |capacity| kinds of calls, in the order in which they were first made; *out_count is how many
 * there are. The work is the library's own, never what a host has submitted. The process has all
 * layers of a worker but the filters: a call that these would not allow is let through and noted.
 * Returns BH_OK when there is a trace, also of a driver that failed or died (out_trace->failure);
 * BH_INVALID_ARGUMENT, BH_NO_DEVICE, BH_UNAVAILABLE, BH_TIMEOUT, BH_CLOSED, BH_FORKED.
 * Thread: any. Blocks, 100 s at most. Not from a completion callback. */
BH_INLINE BH_MUST_USE bh_status bh_trace_driver(bh_context *context, const char *device,
                                                bh_trace *out_trace, bh_traced_call *out_calls,
                                                size_t capacity, size_t *out_count,
                                                bh_detail *detail) {
    return bh_trace_driver_sized(context, device, out_trace, sizeof *out_trace, out_calls, capacity,
                                 sizeof *out_calls, out_count, detail);
}

#ifdef __cplusplus
}
#endif

#endif
