/* Submissions of the caller. */
#ifndef BHI_SUPERVISOR_SUBMIT_SUBMIT_H
#define BHI_SUPERVISOR_SUBMIT_SUBMIT_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

/* Makes the stream's worker compile the kernel; |call| is the public function, for the detail. */
bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail);

#endif
