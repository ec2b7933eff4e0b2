/* Why a step of starting failed: a status, an errno and one line. It ends up in zygote_failed, in
 * progress.step_text, or in a probe's report. */
#ifndef BHI_WORKER_FAILURE_H
#define BHI_WORKER_FAILURE_H

#include "ipc/refusal.h"

#include <bulkhead/status.h>
#include <stdint.h>

#define BHI_FAILURE_TEXT 480

struct bhi_failure {
    bh_status status; /* BH_OK: none */
    int error;        /* errno, or 0 */
    char text[BHI_FAILURE_TEXT];
};

/* Fills |failure|; where |error| is not 0 its text is appended. Returns -error, or -EPROTO where
 * it is 0, so that a caller can `return bhi_failure_set(…)`. */
int bhi_failure_set(struct bhi_failure *failure, bh_status status, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* The same where the system refuses what the sandbox needs: BH_UNSUPPORTED, |what| that failed, why
 * the system refuses it, and what allows it (refusal.h). An errno that is no refusal is told as
 * bhi_failure_set() does. */
int bhi_failure_refuse(struct bhi_failure *failure, enum bhi_refused refused, int error,
                       const char *what);

#endif
