/* Names, texts and classes of the statuses in status.def, of the reasons in reason.def, and of their
 * subjects in subject.def. The codes themselves are public: <bulkhead/status.h>. */
#ifndef BHI_BASE_STATUS_H
#define BHI_BASE_STATUS_H

#include "base/worker_kind.h"
#include <bulkhead/status.h>
#include <stdbool.h>
#include <stdint.h>

/* One row of reason.def. */
struct bhi_reason_info {
    const char *name, *text, *advice;
    bh_status status, from; /* |from|: with which a worker may give it; BH_OK: no worker may */
    bh_subject subject;
};
const struct bhi_reason_info *bhi_reason_info(uint32_t reason);

/* True for a code that a worker may put into a result: a verdict that it can know of. */
bool bhi_status_from_worker(uint32_t code);
/* True for a reason that a worker may put into a result of |status|. */
bool bhi_reason_from_worker(uint32_t code, uint32_t status);
bool bhi_subject_exists(uint32_t subject);
/* As bhi_status_from_worker, for a worker of |kind|: a worker with a device loads no files (T6). */
bool bhi_status_from_kind(uint32_t code, enum bhi_worker_kind kind);

#endif
