/* Introduces kernels and buffers to the worker of a submission: what the worker does not know yet
 * goes into its outbox. */
#ifndef BHI_SUPERVISOR_SUBMIT_INTRODUCE_H
#define BHI_SUPERVISOR_SUBMIT_INTRODUCE_H

#include "supervisor/context/payload.h"
#include "supervisor/worker/worker_proc.h"

struct bhi_kernel_body;

/* Introduces what |payload| uses, which becomes number |seq| of the worker's lane. Returns 0, or an
 * errno if not all could be introduced. Lock held. */
int bhi_introduce(struct bhi_worker *worker, const struct bhi_payload *payload, uint64_t seq);
/* Introduces a kernel that the worker does not know, for number |seq|. |name|: for messages.
 * Returns 0 or an errno. Lock held. */
int bhi_introduce_kernel(struct bhi_worker *worker, const struct bhi_kernel_body *body,
                         const char name[64], uint64_t seq);

/* If |submission|, which the worker will be given, has the worker's first kernel and needs no fresh
 * worker (|apart|), requests the kernel's pipeline cache. Returns true while the worker has to wait
 * for a cache. Lock held. */
bool bhi_introduce_cache(struct bhi_worker *worker, const struct bhi_submission *submission,
                         enum bhi_apart apart);

#endif
