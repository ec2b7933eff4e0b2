/* Why something failed in a worker, warden or zygote: one line, and what the host is told with it.
 * It ends up as a submission's result, in zygote_failed, in progress.step_text, or in a probe's
 * report.
 */
#ifndef BHI_WORKER_ERROR_H
#define BHI_WORKER_ERROR_H

#include "ipc/progress.h"
#include "ipc/refusal.h"

#include <bulkhead/status.h>
#include <stdint.h>

struct bhi_error {
    bh_status status; /* BH_OK: none */
    int32_t vk_result;
    int sys_errno;          /* 0: none */
    uint32_t command_index; /* BHI_NO_COMMAND: none */
    uint32_t executed;      /* bh_executed: 0 no, 1 unknown, 2 yes */
    char text[BHI_ERROR_TEXT];
};

/* Overwrites *error, with no command and executed NO; callers refine those. */
void bhi_error_set(struct bhi_error *error, bh_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a step of starting; where |sys_errno| is not 0 its text is appended. Returns
 * -sys_errno, or -EPROTO where it is 0, so that a caller can `return bhi_error_set_errno(…)`. */
int bhi_error_set_errno(struct bhi_error *error, bh_status status, int sys_errno,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same where the system refuses what the sandbox needs: BH_UNSUPPORTED, |what| that failed, why
 * the system refuses it, and what allows it (refusal.h). An errno that is no refusal is told as
 * bhi_error_set_errno() does. */
int bhi_error_refuse(struct bhi_error *error, enum bhi_refused refused, int sys_errno,
                     const char *what);

#endif
