/* The context's libzmq: started once, with its threads, if enough descriptors for them are free. */
#ifndef BHI_SUPERVISOR_CONTEXT_MESSAGING_H
#define BHI_SUPERVISOR_CONTEXT_MESSAGING_H

#include <bulkhead/bulkhead.h>

struct bhi_messaging {
    void *zmq;     /* NULL: not started */
    void *starter; /* the first socket, which has started the threads; not used */
};

/* Returns 0 or -errno. |context|: for step points only. */
int bhi_messaging_start(struct bhi_messaging *messaging);
/* All other sockets must be closed. Does nothing if it was not started. */
void bhi_messaging_stop(struct bhi_messaging *messaging);

#endif
