#include "supervisor/context/poller.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void bhi_poller_init(struct bhi_poller *poller) {
    *poller = (struct bhi_poller){.epoll = -1, .wake = -1, .armed_ns = BH_FOREVER};
}

int bhi_poller_open(struct bhi_poller *poller) {
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->epoll < 0 || poller->wake < 0) {
        return -errno;
    }
    int error = bhi_messaging_start(&poller->messaging);
    if (error) {
        return error;
    }
    poller->wake_source = (struct bhi_control_source){BHI_SOURCE_WAKE, poller};
    return bhi_poller_watch(poller, poller->wake, &poller->wake_source);
}

void bhi_poller_close(struct bhi_poller *poller, bool messaging) {
    if (messaging) {
        bhi_messaging_stop(&poller->messaging);
    }
    bhi_fd_close(&poller->epoll);
    bhi_fd_close(&poller->wake);
}

void bhi_poller_wake(struct bhi_poller *poller) {
    uint64_t one = 1;
    ssize_t ignored = write(poller->wake, &one, sizeof one);
    (void)ignored; /* EAGAIN: the counter is at its maximum, so the reactor wakes anyway */
}

int bhi_poller_control(struct bhi_poller *poller, int operation, int fd, uint32_t events,
                       struct bhi_control_source *source) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(poller->epoll, operation, fd, &event) ? -errno : 0;
}

int bhi_poller_watch(struct bhi_poller *poller, int fd, struct bhi_control_source *source) {
    return bhi_poller_control(poller, EPOLL_CTL_ADD, fd, EPOLLIN, source);
}

void bhi_poller_unwatch(struct bhi_poller *poller, int fd) {
    if (fd >= 0) {
        epoll_ctl(poller->epoll, EPOLL_CTL_DEL, fd, NULL);
    }
}
