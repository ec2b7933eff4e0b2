#include "supervisor/reactor/spawn.h"
#include "base/detail.h"
#include "base/fd.h"
#include "ipc/fdpass.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FIRST_SPIN_NS 20000u

/* Makes what the worker gets at its start: lane, progress, doorbell, side channel, control
 * channel. */
static int make_parts(struct bhi_worker *worker, int *out_worker_end, int *out_listener) {
    int error = bhi_lane_create(&worker->lane, BHI_LANE_CAPACITY, BHI_PROGRESS_RESULTS);
    if (error) {
        return error;
    }
    error = bhi_progress_create(&worker->progress, BHI_PROGRESS_RESULTS);
    if (error) {
        return error;
    }
    worker->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->doorbell < 0) {
        return -errno;
    }
    int pair[2];
    error = bhi_fdpass_pair(pair);
    if (error) {
        return error;
    }
    worker->fdpass = pair[0];
    *out_worker_end = pair[1];
    int flags = fcntl(pair[0], F_GETFL);
    if (flags < 0 || fcntl(pair[0], F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/w%llu", worker->zygote->runtime_dir,
             (unsigned long long)worker->id);
    return bhi_channel_open(&worker->channel, worker->context->poller.messaging.zmq, path,
                            out_listener);
}

static int request_spawn(struct bhi_worker *worker, int worker_end, int listener) {
    const bool cgroup = bhi_worker_has_cgroup(worker);
    if (cgroup) {
        int error = bhi_cgroup_add(&worker->zygote->cgroup, worker->id, worker->memory_limit);
        if (error) {
            return error;
        }
    } else {
        worker->oom_kills = bhi_oom_kills();
    }
    struct bhi_message message = {.type = BHI_MSG_SPAWN};
    message.spawn = (struct bhi_msg_spawn){
        .worker = worker->id,
        .memory_limit = cgroup ? 0 : worker->memory_limit,
        .lane_bytes = (uint64_t)sysconf(_SC_PAGESIZE) + worker->lane.capacity,
        .progress_bytes = worker->progress.bytes,
        .device_index = worker->device_index,
        .kind = worker->kind,
        .processor = worker->processor,
        .nice = worker->nice,
        .fails = worker->start_fails,
    };
    memcpy(message.spawn.token, worker->token, sizeof message.spawn.token);
    int fds[] = {worker->lane.fd, worker->progress.fd, worker_end, worker->doorbell, listener};
    return bhi_fdpass_send_message(worker->zygote->socket, &message, fds, 5);
}

struct bhi_worker *bhi_worker_spawn(bh_context *context, struct bhi_zygote *zygote,
                                    const char *device, uint32_t device_index,
                                    uint64_t memory_limit, uint32_t processor, uint32_t nice,
                                    enum bhi_worker_kind kind, bh_detail *detail) {
    if (bhi_room_check("starting a worker", "it", BHI_ROOM_WORKER, detail) != BH_OK) {
        return NULL;
    }
    struct bhi_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        BHI_FAIL(detail, "", BH_REASON_MEMORY, .place = "starting a worker");
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
    worker->processor = processor;
    worker->nice = nice;
    worker->kind = kind;
    atomic_init(&worker->stream_spin.budget_ns, FIRST_SPIN_NS);
    worker->fdpass = worker->doorbell = worker->pidfd = worker->channel.fd = -1;
    worker->lane.fd = worker->progress.fd = worker->cache.area = worker->words.fd = -1;
    bhi_core_worker_init(&worker->core, &context->core);
    bhi_life_init(&worker->core.life, bhi_deadline_ns(context->settings.start_timeout_ns),
                  kind == BHI_WORKER_LOADER);
    bhi_list_init(&worker->link);
    bhi_list_init(&worker->outbox);
    bhi_list_init(&worker->makes);
    bhi_list_init(&worker->reflections);
    bhi_pool_user_init(&worker->pool);
    bhi_worker_kernels_init(&worker->kernels);
    worker->pidfd_source = (struct bhi_control_source){BHI_SOURCE_WORKER_PIDFD, worker};
    worker->doorbell_source = (struct bhi_control_source){BHI_SOURCE_WORKER_DOORBELL, worker};
    worker->fdpass_source = (struct bhi_control_source){BHI_SOURCE_WORKER_FDPASS, worker};
    worker->channel_source = (struct bhi_control_source){BHI_SOURCE_WORKER_CHANNEL, worker};
    randombytes_buf(worker->token, sizeof worker->token);
    bhi_context_lock(context);
    worker->id = bhi_context_new_id(context);
    worker->start_fails = context->chaos.from && bhi_chaos_spawn(&context->chaos);
    bhi_context_unlock(context);

    int worker_end = -1, listener = -1;
    int error = make_parts(worker, &worker_end, &listener);
    if (!error) {
        error = bhi_watch_doorbell(worker);
    }
    if (!error) {
        error = bhi_poller_watch(&context->poller, worker->channel.fd, &worker->channel_source);
    }
    if (!error) {
        error = request_spawn(worker, worker_end, listener);
    }
    bhi_fd_close(&worker_end);
    bhi_fd_close(&listener);
    if (!error) {
        bhi_room_hold(&worker->room, worker->doorbell);
    }
    if (error) {
        BHI_FAIL(detail, "", BH_REASON_SYSTEM_CALL, "starting a worker", .sys_errno = -error);
        /* libzmq closes its descriptor later, which must not report an object that is freed now. */
        bhi_poller_unwatch(&context->poller, worker->channel.fd);
        bhi_poller_unwatch(&context->poller, worker->doorbell);
        if (worker->channel.socket) {
            bhi_channel_close(&worker->channel);
        }
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_BURY, bhi_now_ns());
        bhi_worker_release(worker);
        return NULL;
    }
    bhi_context_lock(context);
    bhi_list_append(&context->workers, &worker->link);
    context->counts.workers++;
    bhi_context_unlock(context);
    return worker;
}
