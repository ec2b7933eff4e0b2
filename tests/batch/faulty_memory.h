/* Memory that runs out: the chosen allocation of this program or of SQLite fails. Link with
 * bulkhead_faulty_memory. */
#ifndef BULKHEAD_TEST_FAULTY_MEMORY_H
#define BULKHEAD_TEST_FAULTY_MEMORY_H

#include <stdbool.h>

/* Before anything else uses SQLite. */
void faulty_memory_set_up(void);
/* The |at|th allocation from here on fails; 0: none. */
void faulty_memory_fail(long at);
/* How many there were since. */
long faulty_memory_seen(void);
/* Runs it while the |at|th one fails, until that takes no more memory: else the test fails. Returns
 * whether there is such an allocation. In a process with one thread. */
bool faulty_memory_run(long at, void (*run)(long at));

#endif
