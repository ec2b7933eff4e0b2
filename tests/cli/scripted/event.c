/* Submissions, events and queues of them. The kernel copies its first readable binding to each writable one, byte
 * by byte, over and over. */
#include "script.h"
#include <bulkhead/queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* How much of its buffer a binding is. */
static uint64_t size_of(const bh_binding *binding) {
    return binding->size != BH_WHOLE_SIZE ? binding->size : binding->buffer->size - binding->offset;
}

static void run_kernel(const bh_command *command) {
    const char *more = getenv("SCRIPT_ADD");
    const uint8_t add = more ? (uint8_t)atoi(more) : 0;
    const bh_binding *bindings = command->dispatch.bindings, *from = NULL;
    for (uint32_t i = 0; i < command->dispatch.binding_count && !from; i++) {
        if (bindings[i].access & BH_ACCESS_READ) {
            from = &bindings[i];
        }
    }
    for (uint32_t i = 0; i < command->dispatch.binding_count; i++) {
        const bh_binding *to = &bindings[i];
        if (!(to->access & BH_ACCESS_WRITE) || !from || size_of(from) == 0) {
            continue;
        }
        for (uint64_t k = 0; k < size_of(to); k++) {
            to->buffer->bytes[to->offset + k] =
                (uint8_t)(from->buffer->bytes[from->offset + k % size_of(from)] + add);
        }
    }
}

bh_status bh_submit(bh_stream *stream, const bh_submit_info *info, bh_event **out_event,
                    bh_detail *detail) {
    script_counts.submissions++;
    bh_status status = script_answer("SCRIPT_SUBMIT", detail);
    if (status != BH_OK) {
        return status;
    }
    uint64_t number = ++stream->submissions;
    const char *fail_at = getenv("SCRIPT_FAIL_AT");
    bh_event *event = script_new(sizeof *event);
    bh_verdict *verdict = &event->verdict;
    if (!fail_at || (uint64_t)atoi(fail_at) == number) {
        verdict->status = script_answer("SCRIPT_EVENT", NULL);
    }
    verdict->executed = verdict->status == BH_OK ? BH_EXECUTED_YES : BH_EXECUTED_UNKNOWN;
    verdict->signal = verdict->status == BH_WORKER_SIGNAL ? 11 : 0;
    verdict->exit_code = -1;
    verdict->event = verdict->origin = 40 + number;
    verdict->worker_pid = 4321;
    strcpy(verdict->device, "script:0");
    verdict->submitted_ns = 1000000;
    verdict->started_ns = 2000000;
    verdict->ended_ns = 3500000;
    const char *untimed = getenv("SCRIPT_UNTIMED");
    if (info->flags & BH_SUBMIT_TIMED && !(untimed && (uint64_t)atoi(untimed) == number)) {
        verdict->device_ns = number * 100000;
    }
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s",
             info->commands[0].dispatch.kernel->name);
    bh_kernel_hash(info->commands[0].dispatch.kernel, verdict->kernel_hash);
    if (verdict->status != BH_OK) {
        snprintf(verdict->message, sizeof verdict->message, "%s", script_message());
    }
    if (verdict->status == BH_OK) {
        run_kernel(&info->commands[0]);
    }
    event->pending = getenv("SCRIPT_HANG");
    *out_event = event;
    return BH_OK;
}

bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&script_lock);
    while (event->pending &&
           pthread_cond_clockwait(&script_changed, &script_lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    if (event->until && access(event->until, F_OK) == 0) {
        event->pending = false;
    }
    bh_status status = event->pending ? BH_TIMEOUT : event->verdict.status;
    pthread_mutex_unlock(&script_lock);
    return status;
}

bh_status bh_event_verdict(bh_event *event, bh_verdict *out_verdict) {
    *out_verdict = event->verdict;
    return event->pending ? BH_PENDING : BH_OK;
}

bh_status bh_event_cancel(bh_event *event) {
    pthread_mutex_lock(&script_lock);
    if (event->pending) {
        event->verdict.status = BH_CANCELLED;
    }
    event->pending = false;
    pthread_cond_broadcast(&script_changed);
    pthread_mutex_unlock(&script_lock);
    return BH_OK;
}

bh_event_state bh_event_query(bh_event *event) {
    return event->pending                   ? BH_EVENT_PENDING
           : event->verdict.status == BH_OK ? BH_EVENT_READY
                                            : BH_EVENT_POISONED;
}

void bh_event_release(bh_event *event) {
    if (event && event->references-- == 0) {
        script_free(event);
    }
}

/* -- queues: what is added has ended already -------------------------------------------------- */

struct bh_queue {
    int fd;
    size_t count;
    bh_completion ended[1024];
};

bh_status bh_queue_create(bh_queue **out_queue, bh_detail *detail) {
    *out_queue = script_new(sizeof **out_queue);
    (*out_queue)->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return BH_OK;
}

void bh_queue_destroy(bh_queue *queue) {
    if (queue) {
        close(queue->fd);
    }
    script_free(queue);
}

bh_status bh_queue_add(bh_queue *queue, bh_event *event, uint64_t user_data, bh_detail *detail) {
    pthread_mutex_lock(&script_lock);
    if (event->pending || queue->count == sizeof queue->ended / sizeof queue->ended[0]) {
        abort();
    }
    event->references++;
    queue->ended[queue->count++] = (bh_completion){event, user_data, event->verdict.status};
    pthread_mutex_unlock(&script_lock);
    return eventfd_write(queue->fd, 1) == 0 ? BH_OK : BH_SYSTEM;
}

bh_status bh_queue_take(bh_queue *queue, uint64_t timeout_ns, bh_completion *out_completions,
                        size_t capacity, size_t *out_count) {
    eventfd_t ignored;
    pthread_mutex_lock(&script_lock);
    *out_count = queue->count > 0;
    if (queue->count > 0) {
        *out_completions = queue->ended[0];
        memmove(queue->ended, queue->ended + 1, --queue->count * sizeof queue->ended[0]);
    } else {
        (void)!eventfd_read(queue->fd, &ignored);
    }
    pthread_mutex_unlock(&script_lock);
    return *out_count ? BH_OK : BH_TIMEOUT;
}

int bh_queue_fd(const bh_queue *queue) {
    return queue->fd;
}
