#include "supervisor/worker/outbox.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct bhi_outgoing *bhi_outgoing_new(enum bhi_message_type type) {
    struct bhi_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing) {
        bhi_list_init(&outgoing->link);
        outgoing->message.type = type;
        outgoing->fd = -1;
    }
    return outgoing;
}

int bhi_outgoing_drop(struct bhi_outgoing *outgoing) {
    if (!outgoing) {
        return ENOMEM;
    }
    const int error = outgoing->fd < 0 ? -outgoing->fd : ENOMEM;
    bhi_fd_close(&outgoing->fd);
    free(outgoing);
    return error;
}

void bhi_outbox_add(struct bhi_worker *worker, struct bhi_outgoing *outgoing) {
    bhi_list_append(&worker->outbox, &outgoing->link);
    worker->control_sent++;
    worker->context->wake_reactor = true;
}

/* If out of memory, the worker's process keeps its old name, which does no harm. */
void bhi_worker_serve(struct bhi_worker *worker, const char *stream) {
    struct bhi_outgoing *outgoing =
        worker->kind == BHI_WORKER_DEVICE ? bhi_outgoing_new(BHI_MSG_SERVE) : NULL;
    if (!outgoing) {
        return;
    }
    snprintf(outgoing->message.serve.stream, sizeof outgoing->message.serve.stream, "%s", stream);
    bhi_outbox_add(worker, outgoing);
}

/* If out of memory, the worker keeps what it no longer needs, which does no harm. */
void bhi_worker_forget_buffer(struct bhi_worker *worker, uint64_t id, uint64_t bytes) {
    struct bhi_outgoing *outgoing;
    if (!bhi_idset_has(&worker->buffers, id) ||
        !(outgoing = bhi_outgoing_new(BHI_MSG_BUFFER_DETACH))) {
        return;
    }
    bhi_address_space_remove(&worker->space, bytes);
    bhi_idset_remove(&worker->buffers, id);
    bhi_idset_remove(&worker->written, id);
    bhi_idset_remove(&worker->constants, id);
    outgoing->message.buffer_detach.buffer = id;
    bhi_outbox_add(worker, outgoing);
}

void bhi_worker_forget_file(struct bhi_worker *worker, uint64_t id) {
    struct bhi_outgoing *outgoing;
    if (!bhi_idset_has(&worker->files, id) || !(outgoing = bhi_outgoing_new(BHI_MSG_FILE_DETACH))) {
        return;
    }
    bhi_idset_remove(&worker->files, id);
    outgoing->message.file_detach.file = id;
    bhi_outbox_add(worker, outgoing);
}

struct bhi_reflection *bhi_worker_reflection(struct bhi_worker *worker, uint64_t kernel) {
    BHI_LIST_FOR(struct bhi_reflection, reflection, &worker->reflections, link) {
        if (reflection->kernel == kernel) {
            return reflection;
        }
    }
    return NULL;
}

bool bhi_worker_forget_kernel(struct bhi_worker *worker, uint64_t id) {
    struct bhi_outgoing *outgoing;
    if (!bhi_worker_kernels_has(&worker->kernels, id) ||
        !(outgoing = bhi_outgoing_new(BHI_MSG_KERNEL_DESTROY))) {
        return false;
    }
    bhi_worker_kernels_remove(&worker->kernels, id);
    outgoing->message.kernel_destroy.kernel = id;
    bhi_outbox_add(worker, outgoing);
    struct bhi_reflection *reflection = bhi_worker_reflection(worker, id);
    if (reflection) {
        bhi_list_remove(&reflection->link);
        free(reflection);
    }
    return true;
}
