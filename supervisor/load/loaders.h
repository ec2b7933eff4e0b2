/* The streams whose workers load files: a few for each tenant of a context, made when they are
 * needed. Nobody else sees them. One serves one tenant for its whole life (T1). One that is held up
 * by its file does not hold up the others. */
#ifndef BHI_SUPERVISOR_LOAD_LOADERS_H
#define BHI_SUPERVISOR_LOAD_LOADERS_H

#include "supervisor/context/context.h"

struct bh_stream;

/* One of |tenant| that has little to do, referenced. |header|: for an inspection, which waits for
 * no data. */
bh_status bhi_loaders_pick(bh_context *context, const char *tenant, bool header, const char *call,
                           struct bh_stream **out_stream, bh_detail *detail);
/* Forgets their failures, as bh_stream_reset does. */
void bhi_loaders_forget(bh_context *context);
/* Ends those that have nothing to do; another is made when it is needed. Lock held. */
void bhi_loaders_trim(bh_context *context);
/* The context is closed, and all that they had has ended. */
void bhi_loaders_stop(bh_context *context);

#endif
