/* What went wrong with a call. */
#ifndef BULKHEAD_DETAIL_H
#define BULKHEAD_DETAIL_H

#include <bulkhead/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call failed. The caller owns it; the library allocates nothing for it. Programs decide by
 * |status| and |reason|; |message| is for a person. */
typedef struct bh_detail {
    bh_status status;         /* what the call returned */
    bh_reason reason;         /* why, where |status| alone does not say it */
    bh_subject subject;       /* what |subject_name| names */
    int32_t sys_errno;        /* errno of the system call that failed; 0: none */
    int32_t vk_result;        /* VkResult; 0: none */
    int32_t signal;           /* the signal that killed the compiler; 0: none */
    bh_status cause;          /* if the call returned COMPILE_FAILED because the compiler died, the
                                 cause: DEADLINE, OUT_OF_HOST_MEMORY, WORKER_SIGNAL, ...; otherwise
                                 BH_OK */
    uint16_t sentence;        /* where in |message| the sentence begins, after the call's name */
    uint16_t sentence_length; /* its bytes: without |advice| */
    uint16_t advice;          /* where in |message| it says what to do; 0: it does not, so
                                 bh_status_advice says it */
    uint16_t reserved_16;     /* 0 */
    uint64_t value;           /* what was asked for or found, if |reason| has it */
    uint64_t limit;           /* and its limit */
    char subject_name[64];    /* such as "options.spares" or a file's name, cut; empty: none */
    char message[512];        /* one line, NUL-terminated: the call (where the failure is not a
                                 verdict's or a worker's), the sentence, the advice */
    uint64_t reserved[4];     /* 0 */
} bh_detail;

#ifdef __cplusplus
}
#endif

#endif
