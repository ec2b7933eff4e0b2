#include "seam.h"
#include "base/step_point.h"
#include "harness.h"
#include "ipc/channel.h"
#include "ipc/fdpass.h"
#include "redirect.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/spawn.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/submit/internal.h"
#include "supervisor/submit/replicate.h"
#include "supervisor/worker/launch.h"
#include "tests/hostile/wrap.h"

#undef zmq_ctx_new
#undef zmq_socket

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct bht_fault fault;
    bool armed;
    _Atomic bool fired;
    pthread_t thread;
    _Atomic unsigned passed;
    char where[160];
} seam;

static struct {
    char name[32];
    unsigned nth;
    _Atomic unsigned passed;
    bht_hook *hook;
} step;

static _Atomic size_t colliding;

void bht_collide(size_t bytes) {
    colliding = bytes;
}

void bht_collided(unsigned char *hash, size_t size) {
    memset(hash, 0x5a, colliding < size ? colliding : size);
}

void bht_arm(struct bht_fault fault) {
    pthread_mutex_lock(&lock);
    seam.fault = fault;
    seam.armed = true;
    seam.fired = false;
    seam.thread = pthread_self();
    seam.passed = 0;
    seam.where[0] = '\0';
    pthread_mutex_unlock(&lock);
}

bool bht_disarm(void) {
    pthread_mutex_lock(&lock);
    seam.armed = false;
    pthread_mutex_unlock(&lock);
    return seam.fired;
}

bool bht_fired(void) {
    return seam.fired;
}

const char *bht_where(void) {
    static _Thread_local char where[sizeof seam.where];
    pthread_mutex_lock(&lock);
    snprintf(where, sizeof where, "%s", seam.where[0] ? seam.where : "nowhere");
    pthread_mutex_unlock(&lock);
    return where;
}

const char *bht_kind_name(int kind) {
    static const char *const names[BHT_KINDS] = {
        [BHT_ALLOCATION] = "allocation", [BHT_MAPPING] = "mapping", [BHT_DESCRIPTOR] = "descriptor",
        [BHT_PROCESS] = "process",       [BHT_SEND] = "send",
    };
    return names[kind];
}

bool bht_seam_fails(enum bht_kind kind, int error, const char *call, const char *file, int line) {
    pthread_mutex_lock(&lock);
    const struct bht_fault *fault = &seam.fault;
    bool ours =
        (pthread_equal(pthread_self(), seam.thread) != 0) == (fault->side == BHT_THIS_THREAD);
    bool fails = false;
    if (seam.armed && ours && fault->kind == (int)kind) {
        seam.passed++;
        fails = seam.passed == fault->nth || (fault->lasting && seam.passed > fault->nth);
        error = fault->error ? fault->error : error;
    }
    if (fails && !seam.fired) {
        seam.fired = true;
        const char *name = strstr(file, "/supervisor/");
        name = name ? name : strstr(file, "/ipc/");
        snprintf(seam.where, sizeof seam.where, "%s at %s:%d", call, name ? name + 1 : file, line);
    }
    pthread_mutex_unlock(&lock);
    if (fails) {
        errno = error;
    }
    return fails;
}

#undef pidfd_open
int bht_pidfd_open(pid_t pid, unsigned flags) {
    return BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, pidfd_open, pid, flags);
}

static const char *const steps[] = {
    /* in mid-function (base/step_point.h) */
    "await_due",
    "event_due",
    "kernel_kept",
    /* struct bhi_lane: a record is half copied; copied and not published */
    "lane_half_written",
    "lane_written",
    /* struct bhi_worker: it can run, nobody has been woken */
    "submission_published",
    /* NULL: the descriptor of a buffer or a kernel; a message is with libzmq */
    "descriptor_due",
    "descriptor_sent",
    "control_sent",
    /* NULL: before descriptors are held open for libzmq's threads; after they were given back */
    "libzmq_is_due",
    "libzmq_starts",
    /* NULL: before and after the start message */
    "warden_started",
    "zygote_told",
    /* struct bhi_worker: nothing is known of a process yet; the message comes in */
    "spawn_requested",
    "spawn_answered",
    "hello",
    "ready",
    /* NULL: taken over, the event is still pending */
    "result_read",
    /* struct bhi_worker: epoll has reported its doorbell; confirmed dead, nothing is judged yet */
    "doorbell",
    "worker_due",
    /* bh_stream: its copies are queued, and nothing uses it yet */
    "replica_made",
    /* bh_buffer: a piece of its bytes is about to be queued */
    "piece_due",
};

void bht_at_step(const char *name, unsigned nth, bht_hook *hook) {
    bool known = !name;
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        known |= name && strcmp(steps[i], name) == 0;
    }
    if (!known) {
        BHT_FAIL("there is no step %s", name);
    }
    pthread_mutex_lock(&lock);
    snprintf(step.name, sizeof step.name, "%s", name ? name : "");
    step.nth = nth;
    step.passed = 0;
    step.hook = hook;
    pthread_mutex_unlock(&lock);
}

unsigned bht_steps_passed(void) {
    return step.passed;
}

void bhi_step_point(const char *name, void *object) {
    pthread_mutex_lock(&lock);
    bht_hook *hook = NULL;
    if (step.hook && strcmp(step.name, name) == 0 && ++step.passed == step.nth) {
        hook = step.hook;
    }
    pthread_mutex_unlock(&lock);
    if (hook) {
        hook(object);
    }
}

/* -- steps that are calls; some are passed with the context's lock held ------------------------ */

WRAP(void, bhi_lane_publish, struct bhi_lane *lane, const struct bhi_lane_record *record) {
    uint8_t *at = lane->ring + (lane->head & (lane->capacity - 1));
    const uint64_t half = record->size / 2;
    memcpy(at, record, half);
    bhi_step_point("lane_half_written", lane);
    memcpy(at + half, (const uint8_t *)record + half, record->size - half);
    bhi_step_point("lane_written", lane);
    __real_bhi_lane_publish(lane, record);
    bhi_step_point("submission_published", BHI_CONTAINER(lane, struct bhi_worker, lane));
}

WRAP(int, bhi_fdpass_send, int socket, const void *bytes, size_t length, const int *fds,
     size_t fd_count) {
    bhi_step_point("descriptor_due", NULL);
    const int error = __real_bhi_fdpass_send(socket, bytes, length, fds, fd_count);
    if (error == 0) {
        bhi_step_point("descriptor_sent", NULL);
    }
    return error;
}

WRAP(int, bhi_channel_send, struct bhi_channel *channel, const struct bhi_message *message) {
    const int error = __real_bhi_channel_send(channel, message);
    bhi_step_point("control_sent", NULL);
    return error;
}

WRAP(int, bhi_channel_recv, struct bhi_channel *channel, enum bhi_direction direction,
     uint32_t states, int timeout_ms, struct bhi_message *out, char *why, size_t why_size) {
    const int error =
        __real_bhi_channel_recv(channel, direction, states, timeout_ms, out, why, why_size);
    if (error == 0 && (out->type == BHI_MSG_HELLO || out->type == BHI_MSG_READY)) {
        bhi_step_point(out->type == BHI_MSG_HELLO ? "hello" : "ready",
                       BHI_CONTAINER(channel, struct bhi_worker, channel));
    }
    return error;
}

WRAP(void *, zmq_ctx_new, void) {
    void *context = __real_zmq_ctx_new();
    bhi_step_point("libzmq_is_due", NULL);
    return context;
}

WRAP(void *, zmq_socket, void *context, int type) {
    if (type == ZMQ_PAIR) {
        bhi_step_point("libzmq_starts", NULL);
    }
    return __real_zmq_socket(context, type);
}

WRAP(int, bhi_spawn, const char *path, const char *mode, int socket, pid_t *out_pid) {
    const int pidfd = __real_bhi_spawn(path, mode, socket, out_pid);
    if (pidfd >= 0 && strcmp(mode, "warden") == 0) {
        bhi_step_point("warden_started", NULL);
    }
    return pidfd;
}

WRAP(int, bhi_fdpass_send_message, int socket, const struct bhi_message *message, const int *fds,
     size_t fd_count) {
    const int error = __real_bhi_fdpass_send_message(socket, message, fds, fd_count);
    if (error == 0 && message->type == BHI_MSG_START) {
        bhi_step_point("zygote_told", NULL);
    }
    return error;
}

WRAP(struct bhi_worker *, bhi_worker_spawn, bh_context *context, struct bhi_zygote *zygote,
     const char *device, uint32_t device_index, uint64_t memory_limit, uint32_t processor,
     uint32_t nice, enum bhi_worker_kind kind, bh_detail *detail) {
    struct bhi_worker *worker = __real_bhi_worker_spawn(
        context, zygote, device, device_index, memory_limit, processor, nice, kind, detail);
    if (worker) {
        bhi_step_point("spawn_requested", worker);
    }
    return worker;
}

WRAP(enum bhi_life_act, bhi_life_born, struct bhi_life *life, bool holds, uint64_t now_ns) {
    const enum bhi_life_act act = __real_bhi_life_born(life, holds, now_ns);
    bhi_step_point("spawn_answered", BHI_CONTAINER(life, struct bhi_worker, core.life));
    return act;
}

WRAP(int, bhi_progress_read, const struct bhi_progress_view *view, uint64_t seq,
     struct bhi_result *out, struct bhi_told *out_told, char text[BHI_ERROR_TEXT]) {
    const int error = __real_bhi_progress_read(view, seq, out, out_told, text);
    if (error == 0) {
        bhi_step_point("result_read", NULL);
    }
    return error;
}

WRAP(void, bhi_watch_rung, struct bhi_worker *worker) {
    bhi_step_point("doorbell", worker);
    __real_bhi_watch_rung(worker);
}

WRAP(void, bhi_control_receive, struct bhi_worker *worker) {
    if (worker->core.life.state == BHI_CONFIRMED) {
        bhi_step_point("worker_due", worker);
    }
    __real_bhi_control_receive(worker);
}

WRAP(bh_status, bhi_replicate, struct bh_stream *stream, struct bhi_made_replica *made,
     const char *call, bh_detail *detail) {
    const bh_status status = __real_bhi_replicate(stream, made, call, detail);
    if (status == BH_OK) {
        bhi_step_point("replica_made", stream);
    }
    return status;
}

WRAP(bh_status, bhi_internal_submit_copy, struct bh_stream *stream,
     const struct bhi_internal_copy *copy, struct bh_event **out_event, bh_detail *detail) {
    if (copy->named) { /* of a write of the host */
        bhi_step_point("piece_due", copy->named);
    }
    return __real_bhi_internal_submit_copy(stream, copy, out_event, detail);
}
