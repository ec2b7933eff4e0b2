/* Copies a compiler's answer into the caller's struct. Checks every number and cleans every text.
 */
#ifndef BHI_SUPERVISOR_COMPILE_INSPECTION_TAKE_H
#define BHI_SUPERVISOR_COMPILE_INSPECTION_TAKE_H

#include "ipc/inspection.h"
#include <bulkhead/inspect.h>
#include <stdbool.h>

/* |from| is our own copy of an answer that is no refusal. Returns false if it is invalid. */
bool bhi_inspection_take(const struct bhi_inspection *from, bh_inspection *out);

#endif
