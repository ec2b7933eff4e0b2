/* Submissions that are not the caller's own bh_submit. */
#ifndef BHI_SUPERVISOR_SUBMIT_H
#define BHI_SUPERVISOR_SUBMIT_H

#include <bulkhead/bulkhead.h>

#define BHI_MAX_BINDINGS 256u
#define BHI_MAX_COMMANDS 65536u

/* Has the stream's worker compile the kernel; |call| is whose arguments they are. */
bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail);

/* -- foreign.c: bh_submit and bh_launch for a host whose structs are older or newer -------------
 */

bh_status bhi_foreign_submit(bh_stream *stream, const bh_submit_info *info, size_t info_size,
                             size_t command_size, size_t binding_size, bh_event **out_event,
                             bh_detail *detail);
bh_status bhi_foreign_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                             const bh_binding *bindings, uint32_t binding_count,
                             size_t binding_size, const void *push, uint32_t push_size,
                             bh_event **out_event, bh_detail *detail);

#endif
