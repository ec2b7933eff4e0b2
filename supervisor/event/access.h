/* Host access to a buffer's bytes (bh_buffer_map and others): waits for the submissions that use
 * the buffer. */
#ifndef BHI_SUPERVISOR_EVENT_ACCESS_H
#define BHI_SUPERVISOR_EVENT_ACCESS_H

#include <bulkhead/bulkhead.h>

enum bhi_host_access {
    BHI_HOST_READ,
    BHI_HOST_WRITE,   /* and read */
    BHI_HOST_DISCARD, /* the content may be poisoned, and is CLEAN afterwards */
    BHI_HOST_REPLACE, /* the content may be poisoned; submissions will overwrite it */
};

/* Waits for the submissions that use the buffer, then says whether the content may be used. Details
 * begin with |what|. No lock. */
bh_status bhi_buffer_acquire(struct bh_buffer *buffer, enum bhi_host_access access,
                             uint64_t deadline_ns, const char *what, bh_detail *detail);

#endif
