/* Submissions of the caller. */
#ifndef BHI_SUPERVISOR_SUBMIT_SUBMIT_H
#define BHI_SUPERVISOR_SUBMIT_SUBMIT_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

/* Makes the stream's worker compile the kernel; |call| is the public function, for the detail. */
bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail);

/* bh_submit and bh_launch, of structs in the library's own layout (foreign.c has the calls). */
bh_status bhi_submit(bh_stream *stream, const bh_submit_info *info, bh_event **out_event,
                     bh_detail *detail);
bh_status bhi_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                     const bh_binding *bindings, uint32_t binding_count, const void *push,
                     uint32_t push_size, bh_event **out_event, bh_detail *detail);

#endif
