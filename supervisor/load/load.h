/* What a buffer that comes from a file remembers of that. */
#ifndef BHI_SUPERVISOR_LOAD_LOAD_H
#define BHI_SUPERVISOR_LOAD_LOAD_H

#include <bulkhead/bulkhead.h>

struct bhi_load {
    struct bh_event *event; /* with one of the caller's references, which is the buffer's */
    bh_array_info array;
};

void bhi_load_free(struct bhi_load *load); /* no lock; NULL is fine */

#endif
