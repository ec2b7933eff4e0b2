/* What went wrong with a call. */
#ifndef BULKHEAD_DETAIL_H
#define BULKHEAD_DETAIL_H

#include <bulkhead/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call failed. The caller owns it; the library allocates nothing for it. Its size never
 * changes: new fields take the place of |reserved|. */
typedef struct bh_detail {
    bh_status status;     /* what the call returned */
    int32_t sys_errno;    /* errno of the system call that failed; 0: none */
    char message[512];    /* one line, NUL-terminated; names the argument or the system call */
    bh_status cause;      /* if the call returned COMPILE_FAILED because the compiler died, the
                             cause: DEADLINE, OUT_OF_HOST_MEMORY, WORKER_SIGNAL, ...; otherwise
                             BH_OK */
    int32_t signal;       /* the signal that killed the compiler; 0: none */
    bh_reason reason;     /* why, where |status| alone does not say it */
    uint32_t reserved_32; /* 0 */
    uint64_t reserved[4]; /* 0 */
} bh_detail;

#ifdef __cplusplus
}
#endif

#endif
