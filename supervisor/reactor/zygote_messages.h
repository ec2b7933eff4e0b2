/* The messages of zygotes. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H
#define BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H

#include "supervisor/worker/zygote.h"

/* Handles one message from its socket. Returns false at the end of the file or after a protocol
 * violation: then the zygote is lost. */
bool bhi_zygote_receive(struct bhi_zygote *zygote);
/* Listens again to a socket that was ignored, if it can. Returns false if it was ignored for too
 * long: then the zygote is lost. */
bool bhi_zygote_listen(struct bhi_zygote *zygote);

#endif
