/* A call of the library that waits, and that a signal can end. */
#ifndef BHI_TOOL_TASK_H
#define BHI_TOOL_TASK_H

#include <bulkhead/bulkhead.h>
#include <pthread.h>
#include <stdbool.h>

/* Runs |call| on a thread of its own. True: it has ended. False: a signal came first, and the
 * context was destroyed, which ends what the call waits for (*context is NULL then); or there can
 * be no thread, which has been said. *out_exit is what it leads to. */
bool bhi_task_run(const char *command, bh_context **context, void (*call)(void *), void *argument,
                  int *out_exit);
/* Waits for the end of |thread|, which is joined then. False: a signal came first. */
bool bhi_task_await(pthread_t thread);

#endif
