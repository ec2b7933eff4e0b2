/* The context's libzmq: started once, with its threads, where there is room for their descriptors.
 */
#ifndef BHI_SUPERVISOR_CONTEXT_MESSAGING_H
#define BHI_SUPERVISOR_CONTEXT_MESSAGING_H

#include <bulkhead/bulkhead.h>

struct bhi_messaging {
    void *zmq;     /* NULL: not started */
    void *starter; /* the first socket: keeps nothing but its place */
};

/* 0 or -errno. |context|: for steps alone. */
int bhi_messaging_start(struct bhi_messaging *messaging, bh_context *context);
/* Every other socket has been closed. What was not started is fine. */
void bhi_messaging_stop(struct bhi_messaging *messaging);

#endif
