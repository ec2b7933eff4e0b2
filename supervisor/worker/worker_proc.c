#include "supervisor/worker/worker_proc.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/memfd.h"
#include "base/step_point.h"
#include "ipc/attach.h"
#include "ipc/cache_area.h"
#include "ipc/fdpass.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/buffer/retention.h"
#include "supervisor/context/room.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/load/file.h"
#include "supervisor/reactor.h"
#include "supervisor/worker/doorbell.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define FIRST_SPIN_NS 20000u

void bhi_worker_retain(struct bhi_worker *worker) {
    atomic_fetch_add_explicit(&worker->refs, 1, memory_order_relaxed);
}

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop_outbox(struct bhi_worker *worker) {
    BHI_LIST_EACH_SAFE(node, &worker->outbox) {
        struct bhi_outgoing *outgoing = BHI_CONTAINER(node, struct bhi_outgoing, link);
        bhi_list_remove(&outgoing->link);
        close_fd(&outgoing->fd);
        free(outgoing);
    }
}

void bhi_worker_release(struct bhi_worker *worker) {
    if (!worker || atomic_fetch_sub_explicit(&worker->refs, 1, memory_order_acq_rel) != 1)
        return;
    BHI_CHECK(worker->state == BHI_DEAD && bhi_list_empty(&worker->pool.exposures));
    bh_context *context = worker->context;
    bhi_room_give(&worker->room);
    drop_outbox(worker);
    BHI_LIST_EACH_SAFE(node, &worker->reflections)
    free(BHI_CONTAINER(node, struct bhi_reflection, link));
    free(worker->reflecting);
    free(worker->devices);
    bhi_idset_fini(&worker->buffers);
    bhi_idset_fini(&worker->written);
    bhi_idset_fini(&worker->constants);
    bhi_worker_kernels_fini(&worker->kernels);
    bhi_idset_fini(&worker->files);
    bhi_core_worker_fini(&worker->core);
    bhi_lane_destroy(&worker->lane);
    bhi_progress_destroy(&worker->progress);
    close_fd(&worker->fdpass);
    close_fd(&worker->doorbell);
    close_fd(&worker->pidfd);
    bhi_zygote_release(worker->zygote);
    free(worker);
    bhi_context_unref(context);
}

/* Everything that a worker is told at its birth. */
static int make_parts(struct bhi_worker *worker, int *out_worker_end, int *out_listener) {
    int error = bhi_lane_create(&worker->lane, BHI_LANE_CAPACITY, BHI_PROGRESS_RESULTS);
    if (error)
        return error;
    error = bhi_progress_create(&worker->progress, BHI_PROGRESS_RESULTS);
    if (error)
        return error;
    worker->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->doorbell < 0)
        return -errno;
    int pair[2];
    error = bhi_fdpass_pair(pair);
    if (error)
        return error;
    worker->fdpass = pair[0];
    *out_worker_end = pair[1];
    int flags = fcntl(pair[0], F_GETFL);
    if (flags < 0 || fcntl(pair[0], F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/w%llu", worker->zygote->runtime_dir,
             (unsigned long long)worker->id);
    return bhi_channel_open(&worker->channel, bhi_reactor_zmq(worker->context), path, out_listener);
}

static int request_spawn(struct bhi_worker *worker, int worker_end, int listener) {
    bool limited = worker->memory_limit != 0;
    bool cgroup = limited && worker->zygote->cgroup.version != 0;
    if (cgroup) {
        int error = bhi_cgroup_add(&worker->zygote->cgroup, worker->id, worker->memory_limit);
        if (error)
            return error;
    }
    struct bhi_message message = {.type = BHI_MSG_SPAWN};
    message.spawn = (struct bhi_msg_spawn){
        .worker = worker->id,
        .memory_limit = limited && !cgroup ? worker->memory_limit : 0,
        .lane_bytes = (uint64_t)sysconf(_SC_PAGESIZE) + worker->lane.capacity,
        .progress_bytes = worker->progress.bytes,
        .device_index = worker->device_index,
        .kind = worker->kind,
    };
    memcpy(message.spawn.token, worker->token, sizeof message.spawn.token);
    int fds[] = {worker->lane.fd, worker->progress.fd, worker_end, worker->doorbell, listener};
    return bhi_fdpass_send_message(worker->zygote->socket, &message, fds, 5);
}

struct bhi_worker *bhi_worker_spawn(bh_context *context, struct bhi_zygote *zygote,
                                    const char *device, uint32_t device_index,
                                    uint64_t memory_limit, enum bhi_worker_kind kind,
                                    bh_detail *detail) {
    if (bhi_room_check("starting a worker", "it", BHI_ROOM_WORKER, detail) != BH_OK)
        return NULL;
    struct bhi_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "starting a worker");
        return NULL;
    }
    atomic_init(&worker->refs, 1);
    worker->context = context;
    bhi_context_retain(context);
    worker->zygote = zygote;
    bhi_zygote_retain(zygote);
    snprintf(worker->device, sizeof worker->device, "%s", device);
    worker->device_index = device_index;
    worker->memory_limit = memory_limit;
    worker->kind = kind;
    atomic_init(&worker->stream_spin.budget_ns, FIRST_SPIN_NS);
    worker->fdpass = worker->doorbell = worker->pidfd = worker->channel.fd = -1;
    worker->lane.fd = worker->progress.fd = worker->cache.area = -1;
    worker->state = BHI_SPAWNING;
    bhi_core_worker_init(&worker->core, &context->core);
    bhi_list_init(&worker->link);
    bhi_list_init(&worker->outbox);
    bhi_list_init(&worker->reflections);
    bhi_pool_user_init(&worker->pool);
    bhi_worker_kernels_init(&worker->kernels);
    worker->pidfd_source = (struct bhi_control_source){BHI_SOURCE_WORKER_PIDFD, worker};
    worker->doorbell_source = (struct bhi_control_source){BHI_SOURCE_WORKER_DOORBELL, worker};
    worker->channel_source = (struct bhi_control_source){BHI_SOURCE_WORKER_CHANNEL, worker};
    randombytes_buf(worker->token, sizeof worker->token);
    bhi_context_lock(context);
    worker->id = bhi_context_new_id(context);
    bhi_context_unlock(context);
    worker->start_deadline_ns = bhi_deadline_ns(context->settings.start_timeout_ns);

    int worker_end = -1, listener = -1;
    int error = make_parts(worker, &worker_end, &listener);
    if (!error)
        error = bhi_doorbell_watch(worker);
    if (!error)
        error = bhi_reactor_watch(context, worker->channel.fd, &worker->channel_source);
    if (!error)
        error = request_spawn(worker, worker_end, listener);
    close_fd(&worker_end);
    close_fd(&listener);
    if (!error)
        bhi_room_hold(&worker->room, worker->doorbell);
    if (error) {
        bhi_fail(detail, BH_SYSTEM, -error, "starting a worker");
        /* libzmq closes its descriptor some time later: it must not report what is freed now. */
        bhi_reactor_unwatch(context, worker->channel.fd);
        bhi_reactor_unwatch(context, worker->doorbell);
        if (worker->channel.socket)
            bhi_channel_close(&worker->channel);
        worker->state = BHI_DEAD;
        bhi_worker_release(worker);
        return NULL;
    }
    bhi_context_lock(context);
    bhi_list_append(&context->workers, &worker->link);
    bhi_context_unlock(context);
    BHI_STEP_POINT("spawn_requested", worker);
    return worker;
}

/* -- control messages ------------------------------------------------------------------------ */

static struct bhi_outgoing *new_outgoing(enum bhi_message_type type) {
    struct bhi_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing) {
        bhi_list_init(&outgoing->link);
        outgoing->message.type = type;
        outgoing->fd = -1;
    }
    return outgoing;
}

/* A copy for the worker, or -errno. */
static int copy_fd(int fd) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

/* One that cannot be sent. Returns why: there was no descriptor for it, or no memory. */
static int drop_outgoing(struct bhi_outgoing *outgoing) {
    const int error = outgoing->fd < 0 ? -outgoing->fd : ENOMEM;
    close_fd(&outgoing->fd);
    free(outgoing);
    return error;
}

static void queue_outgoing(struct bhi_worker *worker, struct bhi_outgoing *outgoing) {
    bhi_list_append(&worker->outbox, &outgoing->link);
    worker->control_sent++;
    worker->context->wake_reactor = true;
}

uint64_t bhi_worker_attached_bytes(const struct bh_buffer *buffer) {
    return buffer->block ? buffer->block->bytes : buffer->size;
}

/* A worker that only reads a buffer gets a descriptor that lets it do nothing else (B5). The first
 * submission that writes it has it attached anew, in order with the lane; from then on the worker
 * can write it. So has the first one after its content was constant: a worker that has made a copy
 * because of that makes another. */
static int introduce_buffer(struct bhi_worker *worker, struct bh_buffer *buffer, bool writes) {
    bool constant = !writes && bhi_buffer_constant(buffer);
    bool outdated = !constant && bhi_idset_has(&worker->constants, buffer->id);
    if (bhi_idset_has(writes ? &worker->written : &worker->buffers, buffer->id) && !outdated)
        return 0;
    if (bhi_retention_off() && buffer->pooled && !buffer->block)
        return 0; /* nobody's any more: the worker will not know it */
    struct bhi_outgoing *outgoing = new_outgoing(BHI_MSG_BUFFER_ATTACH);
    if (!outgoing)
        return ENOMEM;
    outgoing->message.buffer_attach.buffer = buffer->id;
    outgoing->message.buffer_attach.size = bhi_worker_attached_bytes(buffer);
    outgoing->message.buffer_attach.access = writes     ? BHI_ATTACH_WRITE
                                             : constant ? BHI_ATTACH_CONSTANT
                                                        : BHI_ATTACH_READ;
    outgoing->fd = writes ? copy_fd(buffer->fd) : bhi_memfd_read_only(buffer->fd);
    if (outgoing->fd < 0 || !bhi_idset_reserve(&worker->buffers, 1) ||
        (writes && !bhi_idset_reserve(&worker->written, 1)) ||
        (constant && !bhi_idset_reserve(&worker->constants, 1)) ||
        (buffer->block && !bhi_pool_expose(buffer->block, worker)))
        return drop_outgoing(outgoing);
    if (!bhi_idset_has(&worker->buffers, buffer->id)) /* attached anew it is unmapped first */
        bhi_address_space_add(&worker->space, worker->core.pid,
                              outgoing->message.buffer_attach.size);
    bhi_idset_add(&worker->buffers, buffer->id);
    if (writes)
        bhi_idset_add(&worker->written, buffer->id);
    if (constant)
        bhi_idset_add(&worker->constants, buffer->id);
    else
        bhi_idset_remove(&worker->constants, buffer->id);
    queue_outgoing(worker, outgoing);
    return 0;
}

/* |seq|: of the submission that uses it. */
static int introduce_kernel(struct bhi_worker *worker, const struct bh_kernel *kernel,
                            uint64_t seq) {
    const struct bhi_kernel_body *body = kernel->body;
    if (bhi_worker_kernels_use(&worker->kernels, body->id, seq))
        return 0;
    if (bhi_retention_off() && !bhi_handle_live(&kernel->handle))
        return 0;
    struct bhi_list messages;
    bhi_list_init(&messages);
    bool ok = true;
    for (uint32_t i = 0; ok && i < body->specialization_count; i++) {
        struct bhi_outgoing *spec = new_outgoing(BHI_MSG_KERNEL_SPEC);
        ok = spec != NULL;
        if (ok) {
            spec->message.kernel_spec = (struct bhi_msg_kernel_spec){
                .kernel = body->id,
                .index = i,
                .constant_id = body->specializations[i].constant_id,
                .size = body->specializations[i].size,
                .bits = body->specializations[i].bits,
            };
            bhi_list_append(&messages, &spec->link);
        }
    }
    struct bhi_outgoing *create = ok ? new_outgoing(BHI_MSG_KERNEL_CREATE) : NULL;
    if (create) {
        create->fd = bhi_kernel_body_descriptor(body);
        bhi_list_append(&messages, &create->link);
    }
    if (!create || create->fd < 0 ||
        !bhi_worker_kernels_add(&worker->kernels, body->id, body->code_size, seq)) {
        const int error = create && create->fd < 0 ? -create->fd : ENOMEM;
        if (create)
            close_fd(&create->fd);
        BHI_LIST_EACH_SAFE(node, &messages)
        free(BHI_CONTAINER(node, struct bhi_outgoing, link));
        return error;
    }
    struct bhi_msg_kernel_create *message = &create->message.kernel_create;
    message->kernel = body->id;
    message->code_bytes = body->code_size;
    message->spec_count = body->specialization_count;
    message->trusted = body->trusted;
    memcpy(message->hash, body->hash, sizeof message->hash);
    strcpy(message->entry, body->entry);
    strcpy(message->name, kernel->name);
    worker->context->kernels.introduced++;
    BHI_LIST_EACH_SAFE(node, &messages) {
        bhi_list_remove(node);
        queue_outgoing(worker, BHI_CONTAINER(node, struct bhi_outgoing, link));
    }
    return 0;
}

/* Down to what a worker may know; not what it still needs for its lane. */
static void forget_unused_kernels(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    for (uint64_t id;
         (id = bhi_known_victim(&worker->kernels, context->settings.kernel_limit,
                                context->settings.kernel_limit_bytes, worker->core.harvested)) &&
         bhi_worker_forget_kernel(worker, id);)
        context->kernels.evicted++;
}

bool bhi_worker_attach_cache(struct bhi_worker *worker, int area, uint64_t room) {
    struct bhi_outgoing *outgoing = new_outgoing(BHI_MSG_CACHE_ATTACH);
    if (!outgoing)
        return false;
    outgoing->fd = fcntl(area, F_DUPFD_CLOEXEC, 0);
    if (outgoing->fd < 0) {
        free(outgoing);
        return false;
    }
    outgoing->message.cache_attach.cache = ++worker->context->pipeline_cache.next;
    outgoing->message.cache_attach.room = room;
    bhi_address_space_add(&worker->space, worker->core.pid, BHI_CACHE_AREA_HEADER + room);
    queue_outgoing(worker, outgoing);
    return true;
}

/* Without memory for the message it keeps its name: no harm is done. */
void bhi_worker_serve(struct bhi_worker *worker, const char *stream) {
    struct bhi_outgoing *outgoing =
        worker->kind == BHI_WORKER_DEVICE ? new_outgoing(BHI_MSG_SERVE) : NULL;
    if (!outgoing)
        return;
    snprintf(outgoing->message.serve.stream, sizeof outgoing->message.serve.stream, "%s", stream);
    queue_outgoing(worker, outgoing);
}

static int introduce_file(struct bhi_worker *worker, const struct bhi_file *file) {
    if (bhi_idset_has(&worker->files, file->info.file))
        return 0;
    struct bhi_outgoing *outgoing = new_outgoing(BHI_MSG_FILE_ATTACH);
    if (!outgoing)
        return ENOMEM;
    outgoing->message.file_attach = file->info;
    outgoing->fd = copy_fd(file->socket);
    if (outgoing->fd < 0 || !bhi_idset_reserve(&worker->files, 1))
        return drop_outgoing(outgoing);
    bhi_idset_add(&worker->files, file->info.file);
    queue_outgoing(worker, outgoing);
    return 0;
}

/* Without memory for the message the worker keeps what it no longer needs: no harm is done. */
void bhi_worker_forget_buffer(struct bhi_worker *worker, uint64_t id, uint64_t bytes) {
    struct bhi_outgoing *outgoing;
    if (!bhi_idset_has(&worker->buffers, id) || !(outgoing = new_outgoing(BHI_MSG_BUFFER_DETACH)))
        return;
    bhi_address_space_remove(&worker->space, bytes);
    bhi_idset_remove(&worker->buffers, id);
    bhi_idset_remove(&worker->written, id);
    bhi_idset_remove(&worker->constants, id);
    outgoing->message.buffer_detach.buffer = id;
    queue_outgoing(worker, outgoing);
}

void bhi_worker_forget_file(struct bhi_worker *worker, uint64_t id) {
    struct bhi_outgoing *outgoing;
    if (!bhi_idset_has(&worker->files, id) || !(outgoing = new_outgoing(BHI_MSG_FILE_DETACH)))
        return;
    bhi_idset_remove(&worker->files, id);
    outgoing->message.file_detach.file = id;
    queue_outgoing(worker, outgoing);
}

bool bhi_worker_forget_kernel(struct bhi_worker *worker, uint64_t id) {
    struct bhi_outgoing *outgoing;
    if (!bhi_worker_kernels_has(&worker->kernels, id) ||
        !(outgoing = new_outgoing(BHI_MSG_KERNEL_DESTROY)))
        return false;
    bhi_worker_kernels_remove(&worker->kernels, id);
    outgoing->message.kernel_destroy.kernel = id;
    queue_outgoing(worker, outgoing);
    struct bhi_reflection *reflection = bhi_worker_reflection(worker, id);
    if (reflection) {
        bhi_list_remove(&reflection->link);
        free(reflection);
    }
    return true;
}

struct bhi_reflection *bhi_worker_reflection(struct bhi_worker *worker, uint64_t kernel) {
    BHI_LIST_EACH(node, &worker->reflections) {
        struct bhi_reflection *reflection = BHI_CONTAINER(node, struct bhi_reflection, link);
        if (reflection->kernel == kernel)
            return reflection;
    }
    return NULL;
}

/* -- the lane -------------------------------------------------------------------------------- */

void bhi_worker_notify(struct bhi_worker *worker) {
    atomic_store_explicit(&worker->lane.header->notify_at, worker->core.harvested + 1,
                          memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    /* It may have completed before it could see the order to ring. */
    if (atomic_load(&worker->progress.header->completed_seq) > worker->core.harvested) {
        worker->recheck = true;
        worker->context->wake_reactor = true;
    }
}

/* All that the request uses and the worker does not know. 0 or why not. */
static int introduce(struct bhi_worker *worker, const struct bhi_request *request, uint64_t seq) {
    const struct bhi_submission *submission = &request->submission;
    int error = 0;
    for (uint32_t i = 0; !error && i < request->kernel_count; i++)
        error = introduce_kernel(worker, request->kernels[i], seq);
    if (!error)
        forget_unused_kernels(worker);
    for (uint32_t i = 0; !error && i < submission->use_count; i++)
        error = introduce_buffer(
            worker, BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content),
            submission->uses[i].writes);
    if (!error && request->file)
        error = introduce_file(worker, request->file);
    return error;
}

enum bhi_publish bhi_worker_publish(struct bhi_worker *worker, struct bhi_request *request,
                                    uint64_t seq) {
    if (worker->core.published - worker->core.harvested >= BHI_PROGRESS_RESULTS)
        return BHI_LANE_FULL;
    if (worker->cache.state == BHI_CACHE_WAITING && request->kernel_count)
        return BHI_LANE_FULL; /* the stream is pumped again when the cache is there */
    int64_t space = bhi_lane_space(&worker->lane, worker->progress.seen_tail);
    if (space < 0 || (uint64_t)space < request->record->size)
        return BHI_LANE_FULL;
    const struct bhi_submission *submission = &request->submission;
    const int error = introduce(worker, request, seq);
    if (error)
        return error == EMFILE || error == ENFILE ? BHI_PUBLISH_NO_DESCRIPTOR
                                                  : BHI_PUBLISH_NO_MEMORY;
    request->record->seq = seq;
    request->record->control_seq = worker->control_sent;
    if (submission->notify)
        atomic_store_explicit(&worker->lane.header->notify_at, worker->core.harvested + 1,
                              memory_order_seq_cst);
    bhi_lane_publish(&worker->lane, request->record);
    BHI_STEP_POINT("submission_published", worker);
    /* Dekker with the worker: it says that it sleeps, fences, and looks at the lane again. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&worker->progress.header->sleeping, memory_order_relaxed))
        bhi_lane_wake(&worker->lane);
    return BHI_PUBLISHED;
}
