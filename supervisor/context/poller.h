/* What the reactor thread sleeps on, for those who add descriptors to it or wake it: an epoll set,
 * an eventfd, and the context's libzmq. What is done about what it reports is reactor.h's. */
#ifndef BHI_SUPERVISOR_CONTEXT_POLLER_H
#define BHI_SUPERVISOR_CONTEXT_POLLER_H

#include "supervisor/context/messaging.h"
#include <stdbool.h>
#include <stdint.h>

enum bhi_source_kind {
    BHI_SOURCE_WAKE,
    BHI_SOURCE_WORKER_PIDFD,
    BHI_SOURCE_WORKER_DOORBELL,
    BHI_SOURCE_WORKER_CHANNEL,
    BHI_SOURCE_WORKER_FDPASS, /* it has hung up */
    BHI_SOURCE_ZYGOTE_SOCKET,
    BHI_SOURCE_ZYGOTE_PIDFD,
    BHI_SOURCE_WARDEN_PIDFD,
};

/* What epoll gives back. */
struct bhi_control_source {
    enum bhi_source_kind kind;
    void *object;
};

struct bhi_poller {
    int epoll;
    int wake;
    struct bhi_messaging messaging; /* reactor thread */
    struct bhi_control_source wake_source;
    bool stopped;      /* context's lock: nobody is to be woken any more */
    uint64_t armed_ns; /* context's lock: when the sleeping reactor wakes by itself */
};

/* Nothing is open. */
void bhi_poller_init(struct bhi_poller *poller);
/* 0 or -errno. |context|: for steps alone. */
int bhi_poller_open(struct bhi_poller *poller, bh_context *context);
/* What was not opened is fine. |messaging|: all sockets but its own have been closed. */
void bhi_poller_close(struct bhi_poller *poller, bool messaging);
/* Makes the reactor take a turn. Any thread. */
void bhi_poller_wake(struct bhi_poller *poller);
/* Adds a descriptor to the epoll set. Reactor thread. 0 or -errno. */
int bhi_poller_watch(struct bhi_poller *poller, int fd, struct bhi_control_source *source);
/* The same, with what else epoll_ctl can do. */
int bhi_poller_control(struct bhi_poller *poller, int operation, int fd, uint32_t events,
                       struct bhi_control_source *source);
void bhi_poller_unwatch(struct bhi_poller *poller, int fd);

#endif
