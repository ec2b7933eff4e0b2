#include "supervisor/reactor/side_channel.h"
#include "base/fd.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/harvest.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void bhi_side_channel_watch(struct bhi_worker *worker) {
    if (!worker->hands_out) {
        worker->hands_out = true;
        /* If this fails, the worker's death is noticed only when its device has released it. */
        (void)bhi_poller_control(&worker->context->poller, EPOLL_CTL_ADD, worker->fdpass,
                                 EPOLLIN | EPOLLET, &worker->fdpass_source);
    }
}

bool bhi_side_channel_event(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    char byte;
    bool ended = false;
    bhi_context_lock(context);
    if (worker->fdpass >= 0) {
        if (worker->core.kill == BHI_KILL_NONE) {
            bhi_worker_harvest(worker); /* takes the answers that have come */
        }
        const ssize_t length = recv(worker->fdpass, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        const bool unasked = length > 0 && bhi_list_empty(&worker->makes);
        if (unasked && worker->core.kill == BHI_KILL_NONE) {
            bhi_core_worker_violation(&worker->core,
                                      "it sent a descriptor that nobody had asked for");
        }
        ended = length == 0 || (length < 0 && errno != EAGAIN);
    }
    bhi_context_pump_unlock(context);
    return ended;
}

void bhi_side_channel_end(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    if (!worker->hands_out || worker->fdpass < 0) {
        return;
    }
    bhi_poller_unwatch(&context->poller, worker->fdpass);
    bhi_context_lock(context);
    bhi_worker_harvest(worker);
    int fd = bhi_fd_steal(&worker->fdpass);
    bhi_context_pump_unlock(context);
    bhi_fd_close(&fd); /* and with it what waits there */
}
