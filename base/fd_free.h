/* How many descriptors this process can still open. */
#ifndef BHI_BASE_FD_FREE_H
#define BHI_BASE_FD_FREE_H

#include <stdint.h>

/* Counts the free descriptor numbers below the soft limit, up to |wanted|. Opens nothing. Returns
 * |wanted| if the limit is unknown. */
uint32_t bhi_fd_count_free(uint32_t wanted);

#endif
