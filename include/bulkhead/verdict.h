/* Verdicts: what became of a submission. */
#ifndef BULKHEAD_VERDICT_H
#define BULKHEAD_VERDICT_H

#include <bulkhead/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a submission executed. */
typedef enum bh_executed {
    BH_EXECUTED_NO,      /* it never started: no side effects */
    BH_EXECUTED_UNKNOWN, /* it had started, and did not finish */
    BH_EXECUTED_YES,     /* it ran to its end */
} bh_executed;

/* How certain it is that the submission caused the failure (T2). If its worker was given another
 * kernel, that one may have taken over the worker and caused the failure (docs/trust.md). In the
 * verdict of a dependent, the blame is that of the origin. */
typedef enum bh_blame {
    BH_BLAME_NONE,      /* it is READY, or the cause lies outside the submission and its worker:
                           also if |signal| is one that no kernel can send its worker (SIGKILL), or
                           if somebody had stopped the worker when its deadline passed */
    BH_BLAME_SUSPECTED, /* its worker was given another kernel, too (a loader: another file), which
                           may be the cause. Submit it again with bh_submit_info.alone. Or it lost
                           a GPU after 3.5 s or longer: the driver may have ended it because other
                           processes waited (docs/trust.md). Or its deadline passed before
                           it began, or its compile deadline passed. Or Linux killed its worker
                           because memory ran out, though the worker had not reached its own limit:
                           others may have used the memory. Or the caller has asked for
                           the failure (bh_context_options.chaos) */
    BH_BLAME_CERTAIN,   /* its worker was given nothing else */
} bh_blame;

/* What became of a submission. It is final (E1). A dependent is a submission that is poisoned by
 * another one, its origin (hops is not 0). In the verdict of a dependent these fields are its own:
 * |executed|, |event|, |hops|, |other_causes|, |stream_name|, the times, and |status| if that is
 * BH_STREAM_FAILED. |message| describes both. All other fields are those of the origin.
 * Copies of the library's own are no hops. If they cannot copy content in device memory, the origin
 * is the submission that wrote it, although that is READY, and the other fields are of the copy. */
typedef struct bh_verdict {
    size_t struct_size;      /* sizeof(bh_verdict) */
    bh_status status;        /* BH_OK: READY; others: poisoned. A value below 32 means that the
                               submission reached no worker */
    bh_executed executed;    /* whether it ran */
    int32_t signal;          /* that killed the worker; 0: none, or the status is CONTEXT_CLOSED */
    int32_t exit_code;       /* of the worker; -1: it did not exit */
    int32_t vk_result;       /* VkResult; 0: none */
    int32_t sys_errno;       /* errno; 0: none */
    uint64_t event;          /* this event's id */
    uint64_t origin;         /* id of the event where the poison began; |event| if it began
                               here. QUARANTINED: of the last death that is the reason */
    uint32_t hops;           /* dependencies between origin and this event; 0: it began here */
    uint32_t other_causes;   /* how many other origins were known among its dependencies when it
                               ended (E7) */
    uint32_t command_index;  /* index of the command in its submission; BH_NO_COMMAND: not known */
    int32_t worker_pid;      /* of the origin; 0: it never reached a worker */
    uint64_t limit;          /* the limit that was hit: deadline in ns, memory in bytes, or that of
                              |reason|; 0: none */
    uint64_t submitted_ns;   /* CLOCK_MONOTONIC: when it was submitted */
    uint64_t started_ns;     /* when its turn came on the worker, compiling included; 0: never */
    uint64_t ended_ns;       /* when it ended */
    char kernel_name[64];    /* of the command |command_index|, or of the only command; empty:
                                none */
    uint8_t kernel_hash[32]; /* of the same command */
    char stream_name[64];    /* of the submission's stream; of a compile or a load: that of a
                                process of the library's own ("compiler", "loader-1") */
    char message[512];       /* one paragraph for a person */
    bh_blame blame;          /* how certain it is that the submission, or for a dependent its
                                origin, is the cause */
    uint64_t device_ns;      /* how long the device was busy with it (BH_SUBMIT_TIMED), by the
                                device's clock; at most ended_ns - started_ns. 0: not known */
    char device[48];         /* selector of the device of |worker_pid| ("nvidia:1", as in
                                bh_device_info); empty: no worker was involved, or the worker was a
                                loader, which has no device */
    bh_reason reason;        /* why, where |status| alone does not say it */
    bh_subject subject;      /* what |subject_name| names */
    char subject_name[64];   /* what |reason| is about, such as an entry point; empty: none */
    uint64_t value;          /* what was asked for, where |reason| has a number for it */
} bh_verdict;

/* Returns the class of the failure, which says whether to change something or to submit again. A
 * dependent (hops is not 0) is VICTIM: it may succeed when it is submitted again. So is a
 * submission whose worker others have killed: |signal| is set, and |blame| is BH_BLAME_NONE.
 * Otherwise this is bh_status_classify(status). */
BH_API bh_status_class bh_verdict_classify(const bh_verdict *verdict);

#ifdef __cplusplus
}
#endif

#endif
