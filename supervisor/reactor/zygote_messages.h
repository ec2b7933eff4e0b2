/* The messages of zygotes. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H
#define BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H

#include "supervisor/worker/zygote.h"

struct bhi_worker;

/* Handles one message from its socket. Returns false at the end of the file or after a protocol
 * violation: then the zygote is lost. */
bool bhi_zygote_receive(struct bhi_zygote *zygote);
/* Listens again to a socket that was ignored, if it can. Returns false if it was ignored for too
 * long: then the zygote is lost. */
bool bhi_zygote_listen(struct bhi_zygote *zygote);
/* The start of |worker| has failed: its deadline has passed, and there was never a descriptor for
 * its pidfd. Lock held. */
void bhi_zygote_give_up(struct bhi_worker *worker);

#endif
