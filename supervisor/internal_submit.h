/* A submission that the library makes for itself: one command, to a stream of its own. Deadlines,
 * deaths and poison are those of any submission. */
#ifndef BHI_SUPERVISOR_ERRAND_H
#define BHI_SUPERVISOR_ERRAND_H

#include "supervisor/context/context.h"

struct bhi_file;
struct bh_buffer;
struct bh_stream;

struct bhi_internal_submission {
    const char *call; /* for the detail */
    const void *command;
    size_t size;
    struct bhi_file *file;   /* that it is about; NULL: none */
    struct bh_buffer *reads; /* NULL: none */
    struct bh_buffer *fills; /* whole */
    uint64_t deadline_ns;
    bool quiet; /* how it ends is the caller's to tell, and counts as nobody's failure */
};

/* *out_event is referenced. */
bh_status bhi_internal_submit(struct bh_stream *stream,
                              const struct bhi_internal_submission *internal,
                              struct bh_event **out_event, bh_detail *detail);

#endif
