/* Runs blocking calls of the library so that a signal can end them. */
#ifndef BHI_TOOL_TASK_H
#define BHI_TOOL_TASK_H

#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Runs |call| on a new thread. Returns true when |call| has returned. Returns false if a signal
 * came first: then the context was destroyed, which ends the call, and *context is NULL. Also
 * returns false if no thread could be started, with a message. *out_exit is the exit status. */
bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit);
/* The same on |count| threads, or fewer if no more can be started; returns when each |call| has
 * returned. What a signal does is |end|, with |argument|: it makes them return. */
bool bhi_task_run_all(const char *command, size_t count, void (*call)(void *), void (*end)(void *),
                      void *argument, int *out_exit);
/* Waits for |thread| to end and joins it. Returns false if a signal came first. */
bool bhi_task_await(pthread_t thread);

#endif
