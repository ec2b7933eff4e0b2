/* How many descriptors this process can still open. */
#ifndef BHI_BASE_FD_FREE_H
#define BHI_BASE_FD_FREE_H

#include <stdint.h>

/* The free numbers below the soft limit, counted up to |wanted|. Opens none. |wanted| where the
 * limit is not known. */
uint32_t bhi_fd_count_free(uint32_t wanted);

#endif
