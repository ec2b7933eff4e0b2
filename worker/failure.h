/* Why a step of starting failed: a status, an errno and one line. It ends up in zygote_failed, in
 * progress.step_text, or in a probe's report. */
#ifndef BHI_FAILURE_H
#define BHI_FAILURE_H

#include <bulkhead/status.h>
#include <stdint.h>

#define BHI_FAILURE_TEXT 480

struct bhi_failure {
    bh_status status; /* BH_OK: none */
    int error;        /* errno, or 0 */
    char text[BHI_FAILURE_TEXT];
};

/* Fills |failure|; where |error| is not 0 its text is appended. Returns -error, or -EPROTO where
 * it is 0, so that a caller can `return bhi_fail(…)`. */
int bhi_fail(struct bhi_failure *failure, bh_status status, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
