/* Completion queues: one descriptor for the ends of many events. */
#ifndef BULKHEAD_QUEUE_H
#define BULKHEAD_QUEUE_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An event that has ended, as bh_queue_take gives it. */
typedef struct bh_completion {
    bh_event *event;    /* with a reference: release it */
    uint64_t user_data; /* as given to bh_queue_add */
    bh_status status;   /* BH_OK if it is READY, otherwise its verdict's code */
} bh_completion;

/* Makes an empty queue. It belongs to no context: it takes events of any, and outlives them. It
 * holds one descriptor. Does not block. Returns BH_OK, BH_NO_MEMORY, or BH_SYSTEM (EMFILE,
 * ENFILE). */
BH_API BH_MUST_USE bh_status bh_queue_create(bh_queue **out_queue, bh_detail *detail);
/* Frees the queue, its descriptor and the references to its events; the submissions go on. Call it
 * when no thread uses the queue. NULL is allowed. */
BH_API void bh_queue_destroy(bh_queue *queue);
/* Has |queue| give |event| when it has ended, however it ends: READY, or POISONED by a death or by
 * bh_context_destroy. Each call gives it exactly once, so an event that is added twice is given
 * twice. Events come in the order in which they end; one that has ended already comes after those
 * that wait to be taken. The queue keeps a reference until then, and all the memory that it will
 * need: nothing is lost later. A call cannot be undone: to get the event early, cancel it.
 * Does not block. Returns BH_OK, BH_NO_MEMORY, or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_queue_add(bh_queue *queue, bh_event *event, uint64_t user_data,
                                          bh_detail *detail);
/* Takes up to |capacity| ended events, and waits up to |timeout_ns| for the first of them. Several
 * threads may take: each event goes to one of them. Blocks, unless |timeout_ns| is BH_NOW. Returns
 * BH_OK (*out_count is 1 or more), BH_TIMEOUT (nothing has ended; *out_count is 0), BH_IN_CALLBACK,
 * or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_queue_take(bh_queue *queue, uint64_t timeout_ns,
                                           bh_completion *out_completions, size_t capacity,
                                           size_t *out_count);
/* Returns the queue's descriptor, for poll, epoll, select or libuv: it is readable while there is
 * something to take. It is close-on-exec, and valid until bh_queue_destroy. Do not read, write or
 * close it. Returns -1 for NULL, a destroyed queue, and in a forked child. */
BH_API int bh_queue_fd(const bh_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
