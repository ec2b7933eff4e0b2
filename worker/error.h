/* Why something failed in a worker, warden or zygote: one line of text, and numbers for the host.
 * It becomes a submission's result, or part of zygote_failed, progress.step_text or a probe's
 * report. */
#ifndef BHI_WORKER_ERROR_H
#define BHI_WORKER_ERROR_H

#include "base/format.h"
#include "ipc/progress.h"
#include "ipc/refusal.h"
#include "ipc/wire.h"

#include <bulkhead/status.h>
#include <stdint.h>
#include <string.h>

struct bhi_error {
    bh_status status;       /* BH_OK: none */
    uint32_t command_index; /* BHI_NO_COMMAND: none */
    uint32_t executed;      /* bh_executed: 0 no, 1 unknown, 2 yes */
    uint64_t bad_memory;    /* as in bhi_result */
    struct bhi_told told;   /* without a reason: its text is the whole sentence */
};

/* Writes the message zygote_failed. */
void bhi_error_message(const struct bhi_error *error, struct bhi_message *out);
/* Overwrites *error with a reason, no command and executed NO; callers refine these:
 * BHI_ERROR(error, BH_REASON_WORKGROUPS, "y", .value = y, .limit = most). Returns -sys_errno, or
 * -EPROTO without one. */
#define BHI_ERROR(error, ...) bhi_error_why(error, &(struct bhi_why){.reason = __VA_ARGS__})
/* The same for a reason whose sentence needs a text, and nothing else. */
#define BHI_ERROR_SAY(error, reason, ...) BHI_ERROR(error, reason, .text = BHI_SAY(__VA_ARGS__))
/* Appends to the text, as printf does. */
#define BHI_ERROR_APPEND(error, ...)                                                               \
    bhi_format((error)->told.text + strlen((error)->told.text),                                    \
               sizeof(error)->told.text - strlen((error)->told.text), __VA_ARGS__)
int bhi_error_why(struct bhi_error *error, const struct bhi_why *why);
/* The error as what bhi_tell takes; it points into |error|. */
struct bhi_why bhi_error_as_why(const struct bhi_error *error);
/* Its sentence, for what no host makes one of: valid until this thread's next call. */
const char *bhi_error_line(const struct bhi_error *error);
/* Writes into |result| how a submission has failed, besides its number and times. */
void bhi_error_result(const struct bhi_error *error, struct bhi_result *result);
/* For a call that the sandbox needs and the system refuses. The error is REFUSED: that |what|
 * failed, why the system refuses it, and what allows it (refusal.h). If |sys_errno| is not a
 * refusal, it is a STEP. */
int bhi_error_refuse(struct bhi_error *error, enum bhi_refused refused, int sys_errno,
                     const char *what);

#endif
