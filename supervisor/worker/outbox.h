/* What waits to be said to a worker, in order. The reactor sends it (supervisor/reactor/control.h).
 * Lock held. */
#ifndef BHI_SUPERVISOR_WORKER_OUTBOX_H
#define BHI_SUPERVISOR_WORKER_OUTBOX_H

#include "supervisor/worker/worker_proc.h"

/* NULL: out of memory. */
struct bhi_outgoing *bhi_outgoing_new(enum bhi_message_type type);
/* Of one that cannot be sent. Returns why: there was no descriptor for it, or no memory. */
int bhi_outgoing_drop(struct bhi_outgoing *outgoing);
void bhi_outbox_add(struct bhi_worker *worker, struct bhi_outgoing *outgoing);

/* It serves |stream| from now on, and is named after it. */
void bhi_worker_serve(struct bhi_worker *worker, const char *stream);
void bhi_worker_forget_buffer(struct bhi_worker *worker, uint64_t id, uint64_t bytes);
void bhi_worker_forget_file(struct bhi_worker *worker, uint64_t id);
/* False: it did not know it, or there is no memory to tell it. */
bool bhi_worker_forget_kernel(struct bhi_worker *worker, uint64_t id);
/* What it has said of |kernel|; NULL: nothing yet. It goes when the kernel is forgotten. */
struct bhi_reflection *bhi_worker_reflection(struct bhi_worker *worker, uint64_t kernel);

#endif
