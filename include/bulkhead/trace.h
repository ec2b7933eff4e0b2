/* Which system calls a driver makes, and whether its sandbox table allows them (docs/sandbox.md,
 * "Tables for the next driver"). */
#ifndef BULKHEAD_TRACE_H
#define BULKHEAD_TRACE_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the filter does with a call. */
typedef enum bh_call_judgement {
    BH_CALL_ALLOWED,  /* lets it through */
    BH_CALL_ANSWERED, /* answers it with |error| */
    BH_CALL_UNKNOWN,  /* no rule allows it: a worker that makes it is killed by SIGSYS */
} bh_call_judgement;

/* Calls of one kind: the same phase, call and arguments. Phases, and their filters
 * (docs/sandbox.md):
 *   device    of a worker; seccomp filter A
 *   warm-up   of a worker; filter A
 *   running   of a worker; filter B
 *   memory    of a worker: device memory is made and imported; filter B
 *   sentinel  of a sentinel (docs/trust.md); filter A
 *   words     of a sentinel: it imports and sets abort words; filter B */
typedef struct bh_traced_call {
    size_t struct_size;          /* sizeof(bh_traced_call) */
    char phase[16];              /* such as "running" */
    char call[32];               /* such as "ioctl" */
    char arguments[176];         /* those that a filter can compare, and paths; may be empty */
    uint64_t count;              /* how often it was made */
    bh_call_judgement judgement; /* what the filter does with it */
    int32_t error;               /* ANSWERED: an errno; otherwise 0 */
} bh_traced_call;

/* The trace of a driver. */
typedef struct bh_trace {
    size_t struct_size;      /* sizeof(bh_trace) */
    char driver[32];         /* the table's entry */
    char version[160];       /* the driver's version; empty: it failed before it reported one */
    char made_for[160];      /* the versions that the table was made for, as glob patterns */
    bool known;              /* |version| is one of them */
    bool tried;              /* true: the table was tested on a machine with the driver; false: from
                                documentation only */
    bool complete;           /* the driver did all of its work */
    uint32_t unknown;        /* calls that the table does not know */
    uint32_t dropped;        /* calls that are not counted: there were too many kinds */
    char failure[256];       /* not complete: why */
    char first_unknown[256]; /* the first call that the table does not know, in words; or empty */
    uint64_t reserved;       /* 0 */
    char left_out[256];      /* what the device cannot do and was not traced, and why; or empty */
} bh_trace;

/* Starts the driver of |device| (NULL: the default one) in a throw-away process, makes it create a
 * device, warm up, compile, import and run, and lists which system calls it makes. If the device
 * shares its memory, a second process imports some; if it has a sentinel, a third sets abort words.
 * Fills in at most |capacity| kinds of calls, in the order in which they were first made;
 * *out_count is how many there are. No kernel of yours runs. The process has all layers of a worker
 * except the filters: a call that the filters would refuse is allowed and listed. Blocks, at most
 * 100 s. Not in a log callback. Returns BH_OK if there is a trace, also of a driver that
 * failed or died (out_trace->failure); BH_NO_DEVICE, BH_UNAVAILABLE, BH_TIMEOUT, BH_CLOSED,
 * BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_trace_driver(bh_context *context, const char *device,
                                             bh_trace *out_trace, bh_traced_call *out_calls,
                                             size_t capacity, size_t *out_count, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
