/* The messages that wait to be sent to a worker, in order. The reactor sends them
 * (supervisor/reactor/control.h). Lock held. */
#ifndef BHI_SUPERVISOR_WORKER_OUTBOX_H
#define BHI_SUPERVISOR_WORKER_OUTBOX_H

#include "supervisor/worker/worker_proc.h"

/* NULL: out of memory. */
struct bhi_outgoing *bhi_outgoing_new(enum bhi_message_type type);
/* Frees a message that cannot be sent (NULL: there was none). Returns why: its |fd| is -errno, or there
 * was no memory. */
int bhi_outgoing_drop(struct bhi_outgoing *outgoing);
void bhi_outbox_add(struct bhi_worker *worker, struct bhi_outgoing *outgoing);

/* Tells the worker that it serves |stream| from now on, for its name. */
void bhi_worker_serve(struct bhi_worker *worker, const char *stream);
void bhi_worker_forget_buffer(struct bhi_worker *worker, uint64_t id, uint64_t bytes);
void bhi_worker_forget_file(struct bhi_worker *worker, uint64_t id);
/* Returns false if the worker did not know the kernel, or if out of memory. */
bool bhi_worker_forget_kernel(struct bhi_worker *worker, uint64_t id);
/* Returns what the worker has reported about |kernel|; NULL: nothing yet. It is freed when the
 * kernel is forgotten. */
struct bhi_reflection *bhi_worker_reflection(struct bhi_worker *worker, uint64_t kernel);

#endif
