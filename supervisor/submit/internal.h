/* Submissions that the library makes itself: copies, loads, compiles and markers. */
#ifndef BHI_SUPERVISOR_SUBMIT_INTERNAL_H
#define BHI_SUPERVISOR_SUBMIT_INTERNAL_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

struct bhi_file;
struct bhi_named_source;

/* A submission that the library makes for itself: one command, to a stream of its own. Deadlines,
 * deaths and poison are those of any submission. */
struct bhi_internal_submission {
    const char *call; /* for the detail */
    const void *command;
    size_t size;
    struct bhi_file *file;                 /* that it is about; NULL: none */
    uint64_t load_bytes;                   /* that it reads of it, besides the header */
    const struct bhi_named_source *source; /* that it compiles, copied; NULL: none */
    struct bh_buffer *reads;               /* NULL: none */
    struct bh_buffer *fills;               /* whole */
    struct bh_event *after;                /* waited for, whose poison flows; NULL: none */
    uint64_t deadline_ns;
    bool wait_counts;       /* the deadline is from now on, not from its turn on */
    bool hidden;            /* no caller sees its event */
    bool failure_uncounted; /* a failure is reported by the caller alone, not as the stream's */
};

/* *out_event is referenced. */
bh_status bhi_internal_submit(struct bh_stream *stream,
                              const struct bhi_internal_submission *internal,
                              struct bh_event **out_event, bh_detail *detail);

/* A copy between buffers that the library makes for itself, in the order of the stream and with its
 * deadline, or a minute if it has none. If its worker dies, the next one makes it again, some times
 * (core/submission.h). So it poisons nobody as long as what it reads survives. Unless it is
 * |visible|, a failure does not count as the stream's, and a cancel of the stream spares it. */
struct bhi_internal_copy {
    const char *call; /* for the detail */
    struct bh_buffer *src, *dst;
    uint64_t src_offset, dst_offset, bytes;
    bool replaces_content;  /* |dst| is CLEAN afterwards, although not all of it is overwritten */
    bool reads_target;      /* |dst| is read, too: if it is poisoned, so is this */
    bool visible;           /* a caller sees its event: it is like any other of the stream */
    struct bh_event *after; /* waited for, whose poison flows; NULL: none */
    struct bh_buffer *content; /* whose content it is; NULL: that of |src| */
    struct bh_buffer *named;   /* |dst| is to be its place; NULL: any buffer */
};

/* *out_event is referenced. BH_UNAVAILABLE, and nothing is queued: |named| has moved. */
bh_status bhi_internal_submit_copy(struct bh_stream *stream, const struct bhi_internal_copy *copy,
                                   struct bh_event **out_event, bh_detail *detail);
/* READY when everything before it on the stream has ended. */
bh_status bhi_internal_submit_marker(struct bh_stream *stream, const char *call,
                                     struct bh_event **out_event, bh_detail *detail);

#endif
