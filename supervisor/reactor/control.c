#include "supervisor/reactor/control.h"
#include "base/array.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/selector.h"
#include "base/text.h"
#include "ipc/fdpass.h"
#include "ipc/layers.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/introduce.h"
#include "supervisor/worker/interrupts.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_MESSAGES 64 /* so that one worker's messages do not keep the reactor from the others */
#define MAX_BINDINGS  256u

#define DEVICE_TYPE_CPU 4 /* VK_PHYSICAL_DEVICE_TYPE_CPU */

static uint32_t state_bit(const struct bhi_worker *worker) {
    static const uint32_t bits[] = {
        [BHI_SPAWNING] = BHI_WS_SPAWNING, [BHI_HELD] = BHI_WS_HELD, [BHI_RUNNING] = BHI_WS_RUNNING};
    return bits[worker->core.life.came_to];
}

static void violation(struct bhi_worker *worker, const char *what) {
    bhi_context_lock(worker->context);
    bhi_core_worker_violation(&worker->core, what);
    bhi_context_pump_unlock(worker->context);
}

/* Each of these handles a message. Returns NULL, or how it breaks the protocol. */

static const char *on_hello(struct bhi_worker *worker, const struct bhi_msg_hello *hello) {
    if (hello->worker != worker->id ||
        sodium_memcmp(hello->token, worker->token, sizeof worker->token) != 0) {
        return "its hello has the wrong token";
    }
    /* The token is good for one hello. */
    sodium_memzero(worker->token, sizeof worker->token);
    bhi_context_lock(worker->context);
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_HELLO, bhi_now_ns());
    bhi_context_unlock(worker->context);
    return NULL;
}

/* Has the cache of what waits first in its stream's queue loaded while the worker starts. */
static void foresee_cache(struct bhi_worker *worker) {
    const struct bhi_core_stream *stream = worker->core.stream;
    if (stream && !bhi_list_empty(&stream->queue)) {
        const struct bhi_submission *next =
            BHI_CONTAINER(stream->queue.next, struct bhi_submission, link);
        (void)bhi_introduce_cache(worker, next, bhi_core_submission_apart(next));
    }
}

static const char *on_device(struct bhi_worker *worker, const struct bhi_msg_device *device) {
    if (device->memory_bytes > device->memory_total) {
        return "it reports a heap that is larger than all heaps";
    }
    if (device->memory_free > device->memory_total ||
        (!device->memory_known && device->memory_free)) {
        return "it reports more free device memory than there is";
    }
    if (device->index != worker->device_count || device->index >= device->count) {
        return "its device messages are out of order";
    }
    bhi_context_lock(worker->context);
    if (BHI_ARRAY_RESERVE(worker->devices, worker->device_capacity, worker->device_count + 1u)) {
        worker->devices[worker->device_count++] = *device;
        if (device->chosen) {
            snprintf(worker->core.device, sizeof worker->core.device, "%s:%u",
                     worker->zygote->driver, device->index);
        }
        if (worker->device_count == device->count) {
            foresee_cache(worker);
        }
    } else {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0,
                             "out of memory for its list of devices");
    }
    bhi_context_pump_unlock(worker->context);
    return NULL;
}

static bool is_on_gpu(const struct bhi_worker *worker) {
    const struct bhi_msg_device *device = bhi_worker_chosen_device(worker);
    return device ? device->device_type != DEVICE_TYPE_CPU : bhi_worker_has_device(worker->kind);
}

/* Keeps a worker that polls its GPU off the processor that takes the GPU's interrupts. */
static void keep_off_interrupts(const struct bhi_worker *worker) {
    const struct bhi_msg_device *device = bhi_worker_chosen_device(worker);
    char address[sizeof((bh_device_info *)NULL)->pci];
    if (device && device->pci_known) {
        bhi_device_address(device, address);
        bhi_interrupts_keep_off(worker->core.pid, address);
    }
}

/* Sets RLIMIT_AS, the second part of a memory limit without a cgroup; the worker has set
 * RLIMIT_DATA itself. It is not set on a GPU, whose driver reserves more address space than there
 * is memory. Lock held. */
static int bound_memory(struct bhi_worker *worker) {
    if (!(worker->layers & (1ull << BHI_LAYER_MEMORY_RLIMIT)) || is_on_gpu(worker)) {
        return 0;
    }
    return bhi_address_space_bound(&worker->space, worker->core.pid, &worker->place,
                                   worker->memory_limit);
}

/* The worker reports that it is ready; /proc shows whether its sandbox is closed. */
void bhi_control_ready(struct bhi_worker *worker) {
    char why[192] = "";
    bhi_room_give(&worker->room);
    int error = bhi_proc_status_check(&worker->place, worker->pidfd, why, sizeof why);
    if (error == -ESRCH) {
        return; /* dead or dying: its pidfd will report that */
    }
    bhi_context_lock(worker->context);
    const int unbounded = error ? 0 : bound_memory(worker);
    if (unbounded) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0,
                             "its memory could not be limited: %s", strerrorname_np(-unbounded));
    } else if (error && !why[0]) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0,
                             "its isolation could not be checked: %s", strerrorname_np(-error));
    } else if (error) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "it is not isolated: %s", why);
    } else if (worker->core.life.kill == BHI_KILL_NONE) {
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_READY, bhi_now_ns());
        worker->context->spares_due = true;
        bhi_placement_learn(worker);
        if (worker->core.stream) {
            bhi_stream_learn_device(bhi_stream_of(worker->core.stream), worker);
            bhi_stream_served(worker->core.stream);
        } else {
            worker->context->wake_reactor = true;
        }
    }
    char name[sizeof worker->core.stream->name] = "";
    if (worker->core.stream) {
        memcpy(name, worker->core.stream->name, sizeof name);
    }
    bool runs = bhi_worker_served(worker);
    bhi_context_pump_unlock(worker->context);
    if (runs && worker->kind == BHI_WORKER_DEVICE && is_on_gpu(worker)) {
        bhi_watch_side_channel(worker);
        keep_off_interrupts(worker);
    }
    if (runs) {
        bhi_context_log(worker->context, BH_LOG_INFO, "%s %d is ready%s%s",
                        worker->kind == BHI_WORKER_SENTINEL ? "sentinel" : "worker",
                        worker->core.pid, name[0] ? " and serves stream " : "", name);
    }
}

static const char *on_ready(struct bhi_worker *worker, const struct bhi_msg_ready *ready) {
    bhi_context_lock(worker->context);
    worker->core.can_abort = ready->aborts;
    worker->core.on_gpu = is_on_gpu(worker);
    worker->core.confined = bhi_selector_is_cuda(worker->zygote->driver);
    worker->layers = ready->layers;
    bhi_context_unlock(worker->context);
    /* This can arrive before the zygote's `spawned`, which brings the pidfd. Then spawned() makes
     * the call below. */
    worker->ready_logged = true;
    if (worker->core.life.born) {
        bhi_control_ready(worker);
    }
    return NULL;
}

/* There is no memory for what the worker reports about a kernel. The report is dropped. The worker
 * sends it again when a caller asks for it (bh_kernel_reflect). */
static void lose_reflection(struct bhi_worker *worker) {
    bhi_context_lock(worker->context);
    worker->reflection_lost = true;
    bhi_context_unlock(worker->context);
}

static const char *on_binding(struct bhi_worker *worker,
                              const struct bhi_msg_kernel_binding *binding) {
    struct bhi_reflection *reflection = worker->reflecting;
    if (worker->passing_over && worker->passing_over == binding->kernel) {
        return NULL;
    }
    if (!reflection) {
        reflection = worker->reflecting = calloc(1, sizeof *reflection);
        if (!reflection) {
            worker->passing_over = binding->kernel;
            lose_reflection(worker);
            return NULL;
        }
        bhi_list_init(&reflection->link);
        reflection->kernel = binding->kernel;
    }
    if (reflection->kernel != binding->kernel || binding->index != reflection->info.binding_count ||
        reflection->info.binding_count >= MAX_BINDINGS) {
        return "its kernel bindings are out of order";
    }
    struct bh_kernel_binding *out = &reflection->info.bindings[reflection->info.binding_count++];
    out->set = binding->set;
    out->binding = binding->binding;
    out->kind = (bh_binding_kind)binding->kind;
    out->access = (bh_access)binding->access;
    out->count = binding->count;
    bhi_text_line(out->name, sizeof out->name, binding->name, sizeof binding->name);
    return NULL;
}

/* Wakes the threads in bh_kernel_reflect. */
static void tell_reflection(struct bhi_worker *worker) {
    bhi_context_lock(worker->context);
    if (worker->core.stream) {
        bhi_stream_changed(bhi_stream_of(worker->core.stream));
    }
    bhi_context_unlock(worker->context);
}

static const char *on_kernel_info(struct bhi_worker *worker,
                                  const struct bhi_msg_kernel_info *info) {
    struct bhi_reflection *reflection = worker->reflecting;
    worker->reflecting = NULL;
    bool passed_over = worker->passing_over && worker->passing_over == info->kernel;
    worker->passing_over = 0;
    if (!reflection && !passed_over) {
        reflection = calloc(1, sizeof *reflection);
        if (reflection) {
            bhi_list_init(&reflection->link);
            reflection->kernel = info->kernel;
        } else {
            lose_reflection(worker);
        }
    }
    if (!reflection) {
        tell_reflection(worker);
        return NULL;
    }
    if (reflection->kernel != info->kernel || reflection->info.binding_count != info->bindings) {
        free(reflection);
        return "its kernel info does not fit its bindings";
    }
    /* Each count is at most 4096. Those who read a reflection rely on these two. */
    uint32_t buffers = 0, parameters = 0;
    for (uint32_t i = 0; i < info->bindings; i++) {
        const bool parameter = reflection->info.bindings[i].kind == BH_BINDING_PARAMETER;
        parameters += parameter;
        buffers += parameter ? 1 : reflection->info.bindings[i].count;
    }
    if (buffers > MAX_BINDINGS) {
        free(reflection);
        return "its kernel binds more buffers than a kernel can";
    }
    reflection->info.push_size = info->push_bytes;
    reflection->info.local_size[0] = info->local_x;
    reflection->info.local_size[1] = info->local_y;
    reflection->info.local_size[2] = info->local_z;
    const char *why = NULL;
    bhi_context_lock(worker->context);
    const struct bhi_worker_kernel *known = bhi_map_get(&worker->kernels.map, info->kernel);
    if (known && parameters != (known->image ? info->bindings : 0)) {
        why = "it takes parameters for bindings, or bindings for parameters";
    } else if (known && !bhi_worker_reflection(worker, info->kernel)) {
        bhi_list_append(&worker->reflections, &reflection->link);
        reflection = NULL;
    } /* else it was never given to the worker, or was reported before: there is nothing to keep */
    bhi_context_pump_unlock(worker->context);
    tell_reflection(worker);
    free(reflection);
    return why;
}

/* Kills a worker that has used up a budget. What it had completed before stays good (E11). */
static void flood(struct bhi_worker *worker, const char *what) {
    bhi_context_lock(worker->context);
    bhi_worker_harvest(worker);
    bhi_core_worker_violation(&worker->core, what);
    bhi_context_pump_unlock(worker->context);
}

static const char *on_log(struct bhi_worker *worker, const struct bhi_msg_log *log) {
    switch (bhi_conduct_line(&worker->conduct, bhi_now_ns())) {
    case BHI_CONDUCT_FINE:
        bhi_context_log(worker->context, (bh_log_level)log->level, "worker %d: %s",
                        worker->core.pid, log->text);
        break;
    case BHI_CONDUCT_FIRST:
        bhi_context_log(worker->context, BH_LOG_WARNING,
                        "worker %d sends too many log lines: those over the limit are dropped",
                        worker->core.pid);
        break;
    case BHI_CONDUCT_OVER:
        break;
    case BHI_CONDUCT_KILL:
        flood(worker, "it sent far too many log lines");
        break;
    }
    return NULL;
}

static const char *on_learned(struct bhi_worker *worker, const struct bhi_msg_learned *answer) {
    bhi_context_lock(worker->context);
    const char *what = bhi_lesson_learned(worker, answer);
    if (what) { /* it is given nothing more */
        bhi_context_unlock(worker->context);
    } else {
        bhi_context_pump_unlock(worker->context);
    }
    return what;
}

static const char *handle(struct bhi_worker *worker, const struct bhi_message *message) {
    switch (message->type) {
    case BHI_MSG_HELLO:
        return on_hello(worker, &message->hello);
    case BHI_MSG_DEVICE:
        return on_device(worker, &message->device);
    case BHI_MSG_READY:
        return on_ready(worker, &message->ready);
    case BHI_MSG_KERNEL_BINDING:
        return on_binding(worker, &message->kernel_binding);
    case BHI_MSG_KERNEL_INFO:
        return on_kernel_info(worker, &message->kernel_info);
    case BHI_MSG_LOG:
        return on_log(worker, &message->log);
    case BHI_MSG_LEARNED:
        return on_learned(worker, &message->learned);
    case BHI_MSG_WORDS:
        return bhi_sentinel_take_words(worker, &message->words);
    case BHI_MSG_IMPORTED:
        return bhi_sentinel_imported(worker, &message->imported);
    case BHI_MSG_WORDS_SET:
        return bhi_sentinel_words_set(worker, &message->words_set);
    default:
        return NULL;
    }
}

/* Counts a message that is not a log line, or a wake-up without any message. Returns true if there
 * were too many. */
static bool floods(struct bhi_worker *worker) {
    if (bhi_conduct_message(&worker->conduct, bhi_now_ns()) != BHI_CONDUCT_KILL) {
        return false;
    }
    flood(worker, "it sent too many control messages");
    return true;
}

static bool is_lost(struct bhi_worker *worker) {
    bhi_context_lock(worker->context);
    bool lost = worker->core.life.violated || worker->core.life.state == BHI_BURIED;
    bhi_context_unlock(worker->context);
    return lost;
}

/* Returns the number of messages that were handled. */
static int receive(struct bhi_worker *worker) {
    worker->messages_left = false;
    for (int i = 0; i < TURN_MESSAGES; i++) {
        if (is_lost(worker)) {
            return i;
        }
        struct bhi_message message;
        char why[192] = "";
        int result = bhi_channel_recv(&worker->channel, BHI_W2S, state_bit(worker), 0, &message,
                                      why, sizeof why);
        if (result == -EAGAIN || result == -EPIPE) {
            return i;
        }
        if (result) {
            char what[256];
            snprintf(what, sizeof what, "on the control channel: %s", why[0] ? why : "garbage");
            violation(worker, what);
            return i;
        }
        if (message.type != BHI_MSG_LOG && floods(worker)) {
            return i;
        }
        const char *wrong = handle(worker, &message);
        if (wrong) {
            violation(worker, wrong);
        }
    }
    worker->messages_left = true;
    return TURN_MESSAGES;
}

void bhi_control_receive(struct bhi_worker *worker) {
    (void)receive(worker);
}

/* A wake-up without a whole message counts, because a worker could send its bytes one by one. */
void bhi_control_woken(struct bhi_worker *worker) {
    if (receive(worker) == 0 && !is_lost(worker)) {
        (void)floods(worker);
    }
}

/* The descriptor goes first, so that it is there when the message that announces it is read. */
static int send_one(struct bhi_worker *worker, struct bhi_outgoing *outgoing) {
    if (outgoing->fd >= 0 && !outgoing->fd_sent) {
        struct bhi_fd_tag tag = {
            .magic = BHI_WIRE_MAGIC,
            .type = outgoing->message.type,
            .id =
                outgoing->message.type == BHI_MSG_KERNEL_CREATE
                    ? outgoing->message.kernel_create.kernel
                : outgoing->message.type == BHI_MSG_CACHE_ATTACH
                    ? outgoing->message.cache_attach.cache
                : outgoing->message.type == BHI_MSG_BUFFER_IMPORT
                    ? outgoing->message.buffer_import.buffer
                : outgoing->message.type == BHI_MSG_FILE_ATTACH ? outgoing->message.file_attach.file
                : outgoing->message.type == BHI_MSG_IMPORT      ? outgoing->message.import.worker
                                                           : outgoing->message.buffer_attach.buffer,
        };
        if (worker->fdpass < 0) {
            return -EPIPE; /* it has ended */
        }
        int error = bhi_fdpass_send(worker->fdpass, &tag, sizeof tag, &outgoing->fd, 1);
        if (error) {
            return error;
        }
        outgoing->fd_sent = true;
    }
    int error = bhi_channel_send(&worker->channel, &outgoing->message);
    /* libzmq also wakes the reactor for its own purposes: at most once for each message sent. */
    if (!error) {
        bhi_conduct_asks(&worker->conduct, outgoing->message.type == BHI_MSG_KERNEL_CREATE
                                               ? MAX_BINDINGS + 2
                                           : outgoing->message.type == BHI_MSG_LEARN ? 2
                                                                                     : 1);
    }
    return error;
}

static void hung_up(struct bhi_worker *worker) {
    bhi_context_lock(worker->context);
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_HANG_UP, bhi_now_ns());
    bhi_context_unlock(worker->context);
}

bool bhi_control_send(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    bool left = false, sent = false;
    bhi_context_lock(context);
    struct bhi_list outbox;
    bhi_list_init(&outbox);
    bhi_list_splice(&outbox, &worker->outbox);
    bool alive = worker->core.life.kill == BHI_KILL_NONE && bhi_worker_served(worker);
    uint32_t control_sent = worker->control_sent;
    bhi_context_unlock(context);
    while (alive && !bhi_list_empty(&outbox)) {
        struct bhi_outgoing *outgoing = BHI_CONTAINER(outbox.next, struct bhi_outgoing, link);
        int error = send_one(worker, outgoing);
        if (error == -EPIPE || error == -ECONNREFUSED || error == -ENOTCONN) {
            hung_up(worker); /* it has died, or has only closed its socket */
            break;
        }
        if (error) {
            left = true; /* the socket is full, or there is no memory: it is tried again */
            break;
        }
        sent = true;
        bhi_list_remove(&outgoing->link);
        bhi_fd_close(&outgoing->fd);
        free(outgoing);
    }
    bhi_context_lock(context);
    /* What is left goes back to the front, before anything that was queued meanwhile. */
    bhi_list_splice(&outbox, &worker->outbox);
    bhi_list_splice(&worker->outbox, &outbox);
    if (sent && bhi_worker_served(worker)) {
        bhi_lane_control(&worker->lane, control_sent);
    }
    bhi_context_unlock(context);
    if (sent) {
        bhi_lane_wake(&worker->lane);
    }
    if (sent || left) {
        bhi_control_receive(worker); /* sending can consume the socket's edge-triggered wake-up */
    }
    return left;
}
