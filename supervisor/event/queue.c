/* Completion queues. An entry is made when an event is added, so that its end needs no memory; it
 * observes the event, then waits in |ended| to be taken. */
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/event/event.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct bh_queue {
    struct bhi_handle handle;
    _Atomic uint32_t *fork_guard;
    int fd;               /* an eventfd: 1 while |ended| is not empty, otherwise 0 */
    pthread_mutex_t lock; /* guards what follows, and is taken under the locks of contexts */
    struct bhi_list pending, ended; /* entry.link; |ended| in the order of ending */
};

struct entry {
    struct bhi_observer observer;
    struct bhi_list link;
    struct bh_queue *queue;
    struct bh_event *event; /* referenced, and a reference of the caller's that will take it */
    uint64_t user_data;
};

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_queue);

/* The entry's event has ended. Context lock held; the write takes no longer than waking a futex,
 * because the counter is 0. */
static void entry_ended(struct bhi_observer *observer) {
    struct entry *entry = BHI_CONTAINER(observer, struct entry, observer);
    struct bh_queue *queue = entry->queue;
    pthread_mutex_lock(&queue->lock);
    const bool first = bhi_list_empty(&queue->ended);
    bhi_list_remove(&entry->link);
    bhi_list_append(&queue->ended, &entry->link);
    if (first) {
        (void)!eventfd_write(queue->fd, 1);
    }
    pthread_mutex_unlock(&queue->lock);
}

static void drop(struct entry *entry) {
    bhi_event_unref(entry->event);
    free(entry);
}

BH_API bh_status bh_queue_create(bh_queue **out_queue, bh_detail *detail) {
    static const char CALL[] = "bh_queue_create";
    BHI_NEED(out_queue, CALL, detail);
    *out_queue = NULL;
    BHI_AUTO_FD fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "eventfd", .sys_errno = errno);
    }
    struct bh_queue *queue = bhi_freelist_take(&freelist);
    _Atomic uint32_t *guard = queue ? bhi_fork_guard_make() : NULL;
    if (!guard) {
        if (queue) {
            bhi_freelist_give(&freelist, queue);
        }
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    *queue = (struct bh_queue){.fork_guard = guard, .fd = bhi_fd_steal(&fd)};
    pthread_mutex_init(&queue->lock, NULL);
    bhi_list_init(&queue->pending);
    bhi_list_init(&queue->ended);
    atomic_init(&queue->handle.count, 1);
    *out_queue = queue;
    return BH_OK;
}

/* Returns the first entry that is still there, or NULL. */
static struct entry *first_of(struct bh_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    struct bhi_list *list = bhi_list_empty(&queue->pending) ? &queue->ended : &queue->pending;
    struct entry *entry =
        bhi_list_empty(list) ? NULL : BHI_CONTAINER(list->next, struct entry, link);
    pthread_mutex_unlock(&queue->lock);
    return entry;
}

BH_API void bh_queue_destroy(bh_queue *queue) {
    if (!BHI_LIVE(queue) || bhi_fork_guard_forked(queue->fork_guard) ||
        bhi_handle_drop(&queue->handle) == BHI_DROP_NONE) {
        return;
    }
    for (struct entry *entry; (entry = first_of(queue));) {
        bh_context *context = entry->event->context;
        bhi_context_lock(context);
        bhi_observer_withdraw(&entry->observer); /* then entry_ended was called, or never will be */
        bhi_context_unlock(context);
        pthread_mutex_lock(&queue->lock);
        bhi_list_remove(&entry->link);
        pthread_mutex_unlock(&queue->lock);
        bh_event_release(entry->event);
        drop(entry);
    }
    pthread_mutex_destroy(&queue->lock);
    bhi_fork_guard_free(queue->fork_guard);
    close(queue->fd);
    bhi_freelist_give(&freelist, queue);
}

BH_API bh_status bh_queue_add(bh_queue *queue, bh_event *event, uint64_t user_data,
                              bh_detail *detail) {
    static const char CALL[] = "bh_queue_add";
    BHI_NEED_LIVE(queue, CALL, detail);
    BHI_NEED_LIVE(event, CALL, detail);
    bh_context *context = event->context;
    if (bhi_fork_guard_forked(queue->fork_guard) || bhi_context_forked(context)) {
        return BHI_FAIL(detail, CALL, BH_REASON_FORKED, "context");
    }
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    *entry = (struct entry){
        .observer.ended = entry_ended, .queue = queue, .event = event, .user_data = user_data};
    bhi_list_init(&entry->link);
    if (!bhi_handle_retain(&event->handle)) { /* another thread released it meanwhile */
        free(entry);
        return BHI_FAIL(detail, CALL, BH_REASON_RELEASED, "event");
    }
    bhi_event_ref(event);
    pthread_mutex_lock(&queue->lock);
    bhi_list_append(&queue->pending, &entry->link);
    pthread_mutex_unlock(&queue->lock);
    bhi_context_lock(context);
    if (!bhi_event_observe(event, &entry->observer)) {
        entry_ended(&entry->observer);
    }
    bhi_context_pump_unlock(context);
    return BH_OK;
}

/* Takes what there is. Returns how many. */
static size_t take(struct bh_queue *queue, bh_completion *out, size_t capacity) {
    struct bhi_list taken;
    size_t count = 0;
    bhi_list_init(&taken);
    pthread_mutex_lock(&queue->lock);
    const bool any = !bhi_list_empty(&queue->ended);
    for (; count < capacity && !bhi_list_empty(&queue->ended); count++) {
        struct bhi_list *link = queue->ended.next;
        bhi_list_remove(link);
        bhi_list_append(&taken, link);
    }
    if (any && bhi_list_empty(&queue->ended)) {
        eventfd_t value;
        (void)!eventfd_read(queue->fd, &value);
    }
    pthread_mutex_unlock(&queue->lock);
    BHI_LIST_FOR_SAFE(struct entry, entry, &taken, link) {
        *out++ = (bh_completion){.event = entry->event,
                                 .user_data = entry->user_data,
                                 .status = entry->event->verdict.status};
        drop(entry);
    }
    return count;
}

BH_API bh_status bh_queue_take(bh_queue *queue, uint64_t timeout_ns, bh_completion *out_completions,
                               size_t capacity, size_t *out_count) {
    if (out_count) {
        *out_count = 0;
    }
    if (!BHI_LIVE(queue) || !out_completions || !capacity || !out_count) {
        return BH_INVALID_ARGUMENT;
    }
    if (bhi_fork_guard_forked(queue->fork_guard)) {
        return BH_FORKED;
    }
    const uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    while (!(*out_count = take(queue, out_completions, capacity))) {
        const uint64_t now_ns = bhi_now_ns();
        if (now_ns >= deadline_ns) {
            return BH_TIMEOUT;
        }
        if (bhi_in_callback()) {
            return BH_IN_CALLBACK;
        }
        const uint64_t left_ns = deadline_ns - now_ns;
        const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                      .tv_nsec = (long)(left_ns % 1000000000u)};
        struct pollfd wanted = {.fd = queue->fd, .events = POLLIN};
        (void)!ppoll(&wanted, 1, &left, NULL);
    }
    return BH_OK;
}

BH_API int bh_queue_fd(const bh_queue *queue) {
    return BHI_LIVE(queue) && !bhi_fork_guard_forked(queue->fork_guard) ? queue->fd : -1;
}
