/* The result of a traced start of a driver: a sealed memfd that the tracer fills
 * (worker/trace/trace.c). The supervisor reads it after the zygote has answered `traced`; it copies
 * each entry once, then checks it. */
#ifndef BHI_IPC_TRACE_H
#define BHI_IPC_TRACE_H

#include <stdint.h>

#define BHI_TRACE_CALLS     1500u
#define BHI_TRACE_ARGUMENTS 168u

enum bhi_trace_phase {
    BHI_TRACE_DEVICE,  /* creating instance and device; behind filter A */
    BHI_TRACE_WARM_UP, /* the first dispatch; behind filter A */
    BHI_TRACE_RUNNING, /* compiles, imports, allocations, dispatches; behind filter B */
    BHI_TRACE_MEMORY,  /* device memory: made, exported, imported by another, copied; behind B */
    /* A sentinel: its device, behind filter A; importing, setting and forgetting words, behind B.
     */
    BHI_TRACE_SENTINEL,
    BHI_TRACE_WORDS,
    BHI_TRACE_PHASES
};

enum bhi_trace_judgement {
    BHI_TRACE_ALLOWED,
    BHI_TRACE_ANSWERED, /* the table answers it with an errno */
    BHI_TRACE_UNKNOWN,  /* no rule of the table: it would have killed a worker */
};

/* One kind of call: calls with the same phase, number and relevant arguments. */
struct bhi_trace_call {
    uint64_t count;
    uint32_t phase, judgement;
    int32_t number, error; /* number of the system call; errno of the answer, 0: none */
    char name[32];
    char arguments[BHI_TRACE_ARGUMENTS];
};

struct bhi_trace_page {
    uint32_t count;     /* entries of |calls| */
    uint32_t dropped;   /* kinds of calls that did not fit */
    uint32_t complete;  /* 1: all phases ran to their end */
    uint32_t unknown;   /* number of calls that are UNKNOWN */
    char driver[32];    /* the table's name of it */
    char version[160];  /* the driver's own text; empty: the trace ended before it */
    char made_for[160]; /* the versions that the table was made for */
    uint32_t known;     /* 1: |version| is one of them */
    uint32_t tried;     /* 1: the table was tested on a machine with this driver */
    char failure[256];  /* why the trace ended early; empty: it did not */
    char left_out[256]; /* steps that this device cannot do, and why; or empty */
    struct bhi_trace_call calls[BHI_TRACE_CALLS];
};

#endif
