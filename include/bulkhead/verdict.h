/* Verdicts: what became of a submission. */
#ifndef BULKHEAD_VERDICT_H
#define BULKHEAD_VERDICT_H

#include <bulkhead/sized.h>
#include <bulkhead/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a submission executed. */
typedef enum bh_executed {
    BH_EXECUTED_NO,      /* it never started: no side effects */
    BH_EXECUTED_UNKNOWN, /* it was running when it ended */
    BH_EXECUTED_YES,     /* it ran to its end */
} bh_executed;

/* Whether a failure is certainly the submission's own (T2). A worker may be taken over by its first
 * kernel. How it dies later, and what it reports, may be that kernel's doing. */
typedef enum bh_blame {
    BH_BLAME_NONE,      /* it is READY, or the cause lies outside the submission and its worker */
    BH_BLAME_SUSPECTED, /* its worker had been given another kernel (a loader: another file), which
                           may be the cause. Submit it again with bh_submit_info.alone */
    BH_BLAME_CERTAIN,   /* its worker had been given nothing else */
} bh_blame;

/* What became of a submission. It is final (E1). In a dependent (hops is not 0) |executed|,
 * |event|, |stream_name|, the times and |other_causes| are its own. |message| tells of both. All
 * other fields are the origin's, except |status| if it is BH_STREAM_FAILED. */
typedef struct bh_verdict {
    bh_status status; /* BH_OK: READY; any other: poisoned. Under 32: it never reached a worker */
    bh_executed executed;   /* whether it ran */
    int32_t signal;         /* that killed the worker; 0: none, and always of CONTEXT_CLOSED */
    int32_t exit_code;      /* of the worker; -1: it did not exit */
    int32_t vk_result;      /* VkResult; 0: none */
    int32_t sys_errno;      /* errno; 0: none */
    uint64_t event;         /* this event's id */
    uint64_t origin;        /* id of the event where the poison began; |event| if it began here */
    uint32_t hops;          /* dependencies between origin and this event; 0: it began here */
    uint32_t other_causes;  /* further origins among its dependencies, known when it ended (E7) */
    uint32_t command_index; /* in its submission; BH_NO_COMMAND: not known */
    int32_t worker_pid;     /* of the origin; 0: it never reached a worker */
    uint64_t limit;        /* the limit that was hit: deadline in ns, or memory in bytes; 0: none */
    uint64_t submitted_ns; /* CLOCK_MONOTONIC: when it was submitted */
    uint64_t started_ns;   /* when its turn came on the worker, compiling included; 0: never */
    uint64_t ended_ns;     /* when it ended */
    char kernel_name[64];  /* of that command; empty: none */
    uint8_t kernel_hash[32]; /* of that command */
    char stream_name[64];    /* of its stream */
    char message[512];       /* one paragraph for a person */
    bh_blame blame;          /* whether |status| is certainly the submission's own fault */
    uint64_t device_ns;      /* how long the device was busy with it (BH_SUBMIT_TIMED), by the
                                device's clock; at most ended_ns - started_ns. 0: not known */
} bh_verdict;

/* Returns who has to act: bh_status_classify of the status, but VICTIM for a dependent (hops is not
 * 0), which may succeed when it is submitted again. */
BH_INLINE bh_status_class bh_verdict_classify(const bh_verdict *verdict) {
    return bh_verdict_classify_sized(verdict, sizeof *verdict);
}

#ifdef __cplusplus
}
#endif

#endif
