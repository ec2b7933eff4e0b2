/* The processor that takes a device's interrupts. A GPU's driver gets an interrupt for each
 * submission that ends, just when a worker polls for that end. On the processor that takes them a
 * round trip lasts four times as long (decision 58). So workers run on the others. */
#ifndef BHI_SUPERVISOR_WORKER_INTERRUPTS_H
#define BHI_SUPERVISOR_WORKER_INTERRUPTS_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* Returns the number of the processor that takes the interrupts of the PCI device |address|
 * ("0000:65:00.0"), or -1: not known. |root| stands for /: "", or a folder in a test. Of several
 * vectors the one that had most interrupts so far counts. */
int bhi_interrupts_processor(const char *root, const char *address);
/* Sets *out to |from| without |processor|. Returns false if that is not in it, or if too few would
 * be left. */
bool bhi_interrupts_avoid(const cpu_set_t *from, int processor, cpu_set_t *out);
/* Keeps the main thread of |pid|, which polls, off that processor. Does nothing if it is not known,
 * if there are few processors, or if the kernel does not permit it. By pid, because no call takes a
 * pidfd; it still belongs to the worker (address_space.c). */
void bhi_interrupts_keep_off(pid_t pid, const char *address);

#endif
