/* Waits in the library that a signal ends. */
#ifndef BHI_TOOL_WAIT_H
#define BHI_TOOL_WAIT_H

#include <bulkhead/bulkhead.h>

/* How long one wait in the library lasts before signals are looked for. It also ends when what it
 * waits for happens. */
#define BHI_WAIT_SLICE_NS UINT64_C(50000000)

/* Waits for the end of a submission and fills in its verdict; a signal cancels it. |look| is called
 * after each slice; NULL: nothing is. Returns BH_TIMEOUT if it was cancelled and does not end, else
 * what bh_event_verdict returns. */
bh_status bhi_wait_event(bh_event *event, bh_verdict *out_verdict, void (*look)(void *user),
                         void *user);
/* bh_stream_wait_ready, for a worker that starts. Returns BH_TIMEOUT also after a signal. */
bh_status bhi_wait_ready(bh_stream *stream, bh_detail *detail);

#endif
