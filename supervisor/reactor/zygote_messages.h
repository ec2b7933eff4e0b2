/* What zygotes say over their sockets. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H
#define BHI_SUPERVISOR_REACTOR_ZYGOTE_MESSAGES_H

#include "supervisor/worker/zygote.h"

/* One message from its socket. False: end of file or a protocol violation: it is lost. */
bool bhi_zygote_receive(struct bhi_zygote *zygote);
/* It is deaf: listens again, if it can. False: it has been deaf for too long, and is lost. */
bool bhi_zygote_listen(struct bhi_zygote *zygote);

#endif
