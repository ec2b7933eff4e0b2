/* Submissions of the caller, and what the core does to them. */
#ifndef BHI_SUPERVISOR_SUBMIT_SUBMIT_H
#define BHI_SUPERVISOR_SUBMIT_SUBMIT_H

#include "core/core.h"
#include <bulkhead/bulkhead.h>

extern const struct bhi_core_ops bhi_supervisor_core_ops;

/* Makes the stream's worker compile the kernel; |call| is the public function, for the detail. */
bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail);

#endif
