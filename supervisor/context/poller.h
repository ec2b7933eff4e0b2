/* The poller: an epoll set, an eventfd and the context's libzmq, on which the reactor thread
 * sleeps. Other files add descriptors to it or wake it. reactor.h handles what it reports. */
#ifndef BHI_SUPERVISOR_CONTEXT_POLLER_H
#define BHI_SUPERVISOR_CONTEXT_POLLER_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdint.h>

enum bhi_source_kind {
    BHI_SOURCE_WAKE,
    BHI_SOURCE_WORKER_PIDFD,
    BHI_SOURCE_WORKER_DOORBELL,
    BHI_SOURCE_WORKER_CHANNEL,
    BHI_SOURCE_WORKER_FDPASS, /* the worker has closed it */
    BHI_SOURCE_ZYGOTE_SOCKET,
    BHI_SOURCE_ZYGOTE_PIDFD,
    BHI_SOURCE_WARDEN_PIDFD,
};

/* The data of an epoll event. */
struct bhi_control_source {
    enum bhi_source_kind kind;
    void *object;
};

/* The context's libzmq, started once, with its threads, if enough descriptors for them are free. */
struct bhi_messaging {
    void *zmq;     /* NULL: not started */
    void *starter; /* the first socket, which has started the threads; not used */
};

struct bhi_poller {
    int epoll;
    int wake;
    struct bhi_messaging messaging; /* reactor thread */
    struct bhi_control_source wake_source;
    bool stopped;      /* context's lock: the reactor is woken no more */
    uint64_t armed_ns; /* context's lock: when the sleeping reactor wakes by itself */
};

/* Opens nothing. */
void bhi_poller_init(struct bhi_poller *poller);
/* Returns 0 or -errno. |context|: for step points only. */
int bhi_poller_open(struct bhi_poller *poller);
/* Closes what is open. |messaging|: also libzmq, whose other sockets must be closed. */
void bhi_poller_close(struct bhi_poller *poller, bool messaging);
/* Makes the reactor take a turn. Any thread. */
void bhi_poller_wake(struct bhi_poller *poller);
/* Adds a descriptor to the epoll set. Reactor thread. 0 or -errno. */
int bhi_poller_watch(struct bhi_poller *poller, int fd, struct bhi_control_source *source);
/* The same for any operation and events of epoll_ctl. */
int bhi_poller_control(struct bhi_poller *poller, int operation, int fd, uint32_t events,
                       struct bhi_control_source *source);
void bhi_poller_unwatch(struct bhi_poller *poller, int fd);

#endif
