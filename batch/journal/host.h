/* The names by which records know this machine. */
#ifndef BHI_BATCH_JOURNAL_HOST_H
#define BHI_BATCH_JOURNAL_HOST_H

#include <stdbool.h>
#include <stddef.h>

enum { BHI_HOST_NAME = 65 }; /* the most bytes, with the NUL */

/* Writes the name of this host: letters, digits, '.', '_' and '-'; other bytes become '-'. Never
 * empty. Returns |out|. */
const char *bhi_host_name(char out[BHI_HOST_NAME]);
/* Writes the name by which the batch system knows this machine (SLURMD_NODENAME), which may differ
 * from the host's; without one, the host's. Returns |out|. */
const char *bhi_host_machine(char out[BHI_HOST_NAME]);
/* How many bytes at the start of |text| can belong to such a name. */
size_t bhi_host_span(const char *text);

#endif
