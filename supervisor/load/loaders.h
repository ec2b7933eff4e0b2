/* The streams whose workers load files: a few for each tenant of a context, made when they are
 * needed. The host does not see them. Each serves one tenant for its whole life (T1). A loader that
 * waits for its file does not delay the others. */
#ifndef BHI_SUPERVISOR_LOAD_LOADERS_H
#define BHI_SUPERVISOR_LOAD_LOADERS_H

#include "supervisor/context/context.h"

struct bh_stream;

/* Chooses a loader of |tenant| that has little to do, or makes one; *out_stream is referenced.
 * |header|: for an inspection, which does not wait for data. */
bh_status bhi_loaders_pick(bh_context *context, const char *tenant, bool header, const char *call,
                           struct bh_stream **out_stream, bh_detail *detail);
/* Forgets their failures, as bh_stream_reset does. */
void bhi_loaders_forget(bh_context *context);
/* Ends those that have nothing to do; another is made when it is needed. Lock held. */
void bhi_loaders_trim(bh_context *context);
/* Drops all loaders. The context is closed, and all their submissions have ended. */
void bhi_loaders_stop(bh_context *context);

#endif
