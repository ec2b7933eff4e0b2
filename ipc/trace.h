/* What a traced start of a driver leaves for the supervisor: a sealed memfd that the tracer fills
 * (worker/trace/trace.c). The supervisor looks when the zygote has answered `traced`, and copies
 * each entry once before it checks it. */
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
    BHI_TRACE_ANSWERED, /* with an errno */
    BHI_TRACE_UNKNOWN,  /* no rule of the table: it would have killed a worker */
};

/* One kind of call: the same phase, call and arguments that matter. */
struct bhi_trace_call {
    uint64_t count;
    uint32_t phase, judgement;
    int32_t number, error; /* of the system call; of the answer */
    char name[32];
    char arguments[BHI_TRACE_ARGUMENTS];
};

struct bhi_trace_page {
    uint32_t count;     /* of |calls| */
    uint32_t dropped;   /* kinds of calls that there was no room for */
    uint32_t complete;  /* 1: the course was run to its end */
    uint32_t unknown;   /* calls of the judgement UNKNOWN, 0 or more */
    char driver[32];    /* the table's entry */
    char version[160];  /* the driver's own words; empty: it did not come to that */
    char made_for[160]; /* the versions that the table was made for */
    uint32_t known;     /* 1: |version| is among them */
    uint32_t tried;     /* 1: the table was tried on a machine that has this driver */
    char failure[256];  /* what ended the course early; empty: nothing */
    char left_out[256]; /* parts of the course that this device cannot do, and why; or empty */
    struct bhi_trace_call calls[BHI_TRACE_CALLS];
};

#endif
