/* Device selectors: "", DRIVER, DRIVER:INDEX or INDEX. */
#ifndef BHI_SUPERVISOR_WORKER_SELECTOR_H
#define BHI_SUPERVISOR_WORKER_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define BHI_DRIVER_NAME 32

/* Returns false if |selector| is none of these. An absent driver is "" (the default), an absent
 * index 0. */
bool bhi_selector_parse(const char *selector, char driver[BHI_DRIVER_NAME], uint32_t *out_index);

#endif
