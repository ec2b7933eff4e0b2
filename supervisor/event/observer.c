#include "supervisor/event/observer.h"
#include "base/detail.h"
#include "base/fd.h"
#include "core/submission.h"
#include "supervisor/context/context.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/harvest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void bhi_event_look(struct bh_event *event) {
    struct bhi_submission *submission = bhi_submission_in_lane(event->submission);
    if (submission) {
        bhi_worker_harvest(bhi_worker_of(submission->worker));
    }
}

bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer) {
    bhi_event_look(event);
    return bhi_observer_join(observer, event);
}

/* -- descriptors ------------------------------------------------------------------------------- */

struct descriptor {
    struct bhi_observer observer;
    struct bhi_doomed doomed;
    bh_context *context; /* not referenced here: the pending event has a reference */
    int fd;              /* a duplicate: the caller may close its own descriptor at any time */
};

/* Called without the lock, because the write wakes a thread that polls the descriptor. */
static void signal_descriptor(struct bhi_doomed *doomed) {
    struct descriptor *descriptor = BHI_CONTAINER(doomed, struct descriptor, doomed);
    uint64_t one = 1;
    ssize_t ignored = write(descriptor->fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: the caller has filled the counter, so the descriptor is readable */
    close(descriptor->fd);
    free(descriptor);
}

static void descriptor_ended(struct bhi_observer *observer) {
    struct descriptor *descriptor = BHI_CONTAINER(observer, struct descriptor, observer);
    bhi_context_doom(descriptor->context, &descriptor->doomed);
}

BH_API bh_status bh_event_fd(bh_event *event, int *out_fd, bh_detail *detail) {
    if (out_fd) {
        *out_fd = -1;
    }
    if (!BHI_LIVE(event) || !out_fd) {
        return BHI_FAIL(detail, "bh_event_fd", BHI_DEAD(event, "out_fd"));
    }
    bh_context *context = event->context;
    if (bhi_context_forked(context)) {
        return bhi_context_refuse("bh_event_fd", detail);
    }
    bool ended = bhi_event_state(event) != BH_EVENT_PENDING;
    BHI_AUTO_FD fd = eventfd(ended, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return BHI_FAIL(detail, "bh_event_fd", BH_REASON_SYSTEM_CALL, "eventfd",
                        .sys_errno = errno);
    }
    if (ended) {
        *out_fd = bhi_fd_steal(&fd);
        return BH_OK;
    }
    struct descriptor *descriptor = malloc(sizeof *descriptor);
    if (!descriptor) {
        return BHI_FAIL(detail, "bh_event_fd", BH_REASON_MEMORY);
    }
    descriptor->observer.ended = descriptor_ended;
    descriptor->doomed.free = signal_descriptor;
    descriptor->context = context;
    bhi_list_init(&descriptor->doomed.link);
    descriptor->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (descriptor->fd < 0) {
        int error = errno;
        free(descriptor);
        return BHI_FAIL(detail, "bh_event_fd", BH_REASON_SYSTEM_CALL, "fcntl", .sys_errno = error);
    }
    bhi_context_lock(context);
    ended = !bhi_event_observe(event, &descriptor->observer);
    bhi_context_pump_unlock(context);
    if (ended) {
        signal_descriptor(&descriptor->doomed);
    }
    *out_fd = bhi_fd_steal(&fd);
    return BH_OK;
}
