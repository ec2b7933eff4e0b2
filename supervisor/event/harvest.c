/* Reads a worker's results and progress. The worker can change this memory at any time, so each
 * word is copied once, and the copy is checked against what is known of the worker. */
#include "supervisor/event/harvest.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/status.h"
#include "core/stream.h"
#include "ipc/fdpass.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/payload.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/exported.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* For how long a worker tries to make memory while other workers give some up. */
#define PATIENCE_MS 100u
/* For a worker with nothing else to do to answer a request for device memory. */
#define OWES_NS (10000ull * 1000000)

/* Sets the completed submission at which the worker rings the doorbell; 0: none. The worker surely
 * sees a number that was stored before a submission was published. It may miss a later one: see
 * bhi_worker_harvest. */
static void set_notify(struct bhi_worker *worker) {
    worker->makes_awaited = worker->makes_awaited && !bhi_list_empty(&worker->makes);
    bool needed = worker->core.queue_waits || worker->makes_awaited;
    BHI_LIST_EACH(node, &worker->core.inflight) {
        if (needed) {
            break;
        }
        needed = BHI_CONTAINER(node, struct bhi_submission, link)->end_watched;
    }
    atomic_store_explicit(&worker->lane.header->notify_at, needed ? worker->core.harvested + 1 : 0,
                          memory_order_seq_cst);
}

static bool about_memory(bh_status status) {
    return status == BH_OUT_OF_HOST_MEMORY || status == BH_OUT_OF_DEVICE_MEMORY ||
           status == BH_VULKAN || status == BH_CUDA;
}

/* Notes which buffers are used by what follows |submission| in the lane. */
static void mark_followed(const struct bhi_worker *worker, const struct bhi_submission *submission,
                          bool followed) {
    for (const struct bhi_list *node = submission->link.next; node != &worker->core.inflight;
         node = node->next) {
        const struct bhi_submission *later = BHI_CONTAINER(node, struct bhi_submission, link);
        for (uint32_t i = 0; i < later->use_count; i++) {
            BHI_CONTAINER(later->uses[i].content, struct bh_buffer, content)->followed = followed;
        }
    }
}

/* The submission may have failed because the worker could not map or import a buffer, and the next
 * attempt may succeed. So, after a failure for lack of memory, the worker gets its buffers anew
 * with the next submission that binds them. After any other failure this is done when a buffer's
 * block comes back to the pool. A worker that waits for device memory handles messages early, so
 * nothing in its lane loses a buffer: the last submission in the lane that uses it decides. */
static void spoil_buffers(struct bhi_worker *worker, const struct bhi_submission *submission,
                          bh_status status) {
    const bool at_once = about_memory(status);
    if (at_once) {
        mark_followed(worker, submission, true);
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bh_buffer *buffer =
            BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content);
        if (at_once && !buffer->followed) {
            bhi_worker_forget_buffer(worker, buffer->id, bhi_buffer_attached_bytes(buffer));
        } else if (buffer->block) {
            buffer->block->spoilt = true;
        } else if (buffer->device && buffer->device->block) {
            buffer->device->block->spoilt = true;
        }
    }
    if (at_once) {
        mark_followed(worker, submission, false);
    }
}

/* Returns true if all kernels of the submission have run in this worker, which can therefore
 * compile them (T6). */
static bool proven(const struct bhi_worker *worker, const struct bhi_submission *submission) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        if (!bhi_worker_kernels_proven(&worker->kernels, payload->kernels[i]->body->id,
                                       BHI_WORKER_PIPELINES)) {
            return false;
        }
    }
    return payload->kernel_count > 0;
}

/* For spares, which learn what their tenant uses most. */
static void note_use(const struct bhi_worker *worker, const struct bh_kernel *kernel) {
    bh_context *context = worker->context;
    const struct bh_stream *stream = bhi_stream_of(worker->core.stream);
    struct bhi_used_kernel used = {.body = kernel->body,
                                   .id = kernel->body->id,
                                   .compile_ns = stream->core.compile_deadline_ns};
    memcpy(used.hash, kernel->body->hash, sizeof used.hash);
    memcpy(used.name, kernel->name, sizeof used.name);
    if (bhi_usage_note(context->usages, stream->device, stream->tenant, &used)) {
        context->spares_due = context->wake_reactor = true;
    }
}

static void prove(struct bhi_worker *worker, const struct bhi_submission *submission) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bhi_context_settings *settings = &worker->context->settings;
    const bool noted = settings->spares && settings->spare_kernels && worker->core.stream;
    for (uint32_t i = 0; submission->runs_kernel && i < payload->kernel_count; i++) {
        bhi_worker_kernels_prove(&worker->kernels, payload->kernels[i]->body->id);
        if (noted) {
            note_use(worker, payload->kernels[i]);
        }
    }
}

/* -- device memory that the worker was told to make or to clear ------------------------------- */

/* The worker has answered |make|: the memory is in |state|. |fd| is its descriptor if it is new,
 * else -1. Submissions of any stream may wait for the memory, so all streams are pumped. */
static void made(bh_context *context, struct bhi_make *make, enum bhi_device_state state, int fd) {
    struct bhi_device_memory *memory = make->memory;
    bhi_list_remove(&make->link);
    if (memory) {
        memory->make = NULL;
        memory->state = state;
        if (fd >= 0) {
            memory->block->fd = bhi_fd_steal(&fd);
            memory->block->maker = make->worker->core.pid;
        }
        BHI_LIST_EACH(node, &context->streams)
        bhi_stream_wants_pump(&BHI_CONTAINER(node, struct bh_stream, link)->core);
    }
    bhi_fd_close(&fd);
    free(make->second);
    free(make);
}

/* Gives up what is kept in the memory of the worker's device. Returns true if there was any. */
static bool give_up_pool(const struct bhi_worker *worker) {
    return worker->core.stream &&
           bhi_pool_give_up(worker->context, bhi_stream_of(worker->core.stream)->runs_on.uuid);
}

/* The device is full, or the worker cannot clear what another buffer has left behind. So what is
 * kept for later is given up, and the worker, which waits for that, makes the memory now (D6). */
static void ask_again(struct bhi_worker *worker, struct bhi_make *make) {
    bh_context *context = worker->context;
    struct bhi_device_memory *memory = make->memory;
    struct bhi_outgoing *second = make->second;
    make->second = NULL;
    const bool any = give_up_pool(worker);
    if (!memory) { /* nobody needs it any more */
        second->message.type = BHI_MSG_BUFFER_DETACH;
        second->message.buffer_detach.buffer = make->buffer;
        second->message.buffer_detach.instead = 1;
        bhi_idset_remove(&worker->buffers, make->buffer);
        bhi_outbox_add(worker, second);
        made(context, make, BHI_DEVICE_UNMADE, -1);
        return;
    }
    bhi_pool_renew(memory->block, worker);
    memory->state = BHI_DEVICE_MAKING;
    second->message.buffer_make.buffer = make->buffer;
    second->message.buffer_make.size = make->size;
    second->message.buffer_make.last = 1;
    second->message.buffer_make.patience_ms = any ? PATIENCE_MS : 0;
    bhi_outbox_add(worker, second);
    make->clears = false;
    bhi_list_remove(&make->link); /* it has answered later requests by then */
    bhi_list_append(&worker->makes, &make->link);
}

/* Takes the worker's next answer, which must be the one to |make|. *out_none: it has not come.
 * Returns NULL, or what is wrong with the answer. */
static const char *take_answer(struct bhi_worker *worker, struct bhi_make *make, bool *out_none) {
    struct bhi_fd_tag tag;
    int fd = -1;
    size_t count = 1;
    *out_none = worker->fdpass < 0; /* it has ended, and all that had come was taken */
    if (*out_none) {
        return NULL;
    }
    const int length = bhi_fdpass_recv(worker->fdpass, &tag, sizeof tag, &fd, &count, MSG_DONTWAIT);
    *out_none = length == -EAGAIN || length == 0;
    if (*out_none) {
        return NULL;
    }
    /* If the host has no free descriptor, the one in the answer is lost. The worker is not to
     * blame. */
    const bool short_of_room = length == -EMFILE && !make->clears;
    const bool whole = length == (int)sizeof tag && tag.magic == BHI_WIRE_MAGIC &&
                       tag.id == make->buffer && !(count && make->clears);
    const bool cleared = whole && make->clears && tag.type == BHI_MSG_BUFFER_CLEAR;
    if (short_of_room) {
        worker->make_descriptor_lost = true;
        bhi_pool_trim(worker->context->device_pool, 0); /* each of its blocks has a descriptor */
        count = 0;
    } else if (!cleared && !(whole && tag.type == BHI_MSG_BUFFER_MAKE)) {
        if (length >= 0 && count) {
            bhi_fd_close(&fd);
        }
        return "it sent a malformed answer to a request for device memory";
    }
    if (count && make->memory && !bhi_exported_is_memory(fd, make->memory->charged)) {
        bhi_fd_close(&fd);
        return "the descriptor that it sent as device memory is something else";
    }
    if (!count && !cleared && !short_of_room && make->second) {
        ask_again(worker, make);
        return NULL;
    }
    if (!count && !cleared) { /* forgotten, so that the worker is asked again when it is needed */
        bhi_idset_remove(&worker->buffers, make->buffer);
    }
    made(worker->context, make, count || cleared ? BHI_DEVICE_MADE : BHI_DEVICE_UNMADE,
         count ? fd : -1);
    return NULL;
}

/* Takes the answers that have come. |all_due|: the answers to all control messages up to number
 * |due| must have come, because the worker has completed a record that needed them. Returns false
 * if the worker broke the protocol. */
static bool take_made(struct bhi_worker *worker, bool all_due, uint32_t due) {
    while (!bhi_list_empty(&worker->makes)) {
        struct bhi_make *make = BHI_CONTAINER(worker->makes.next, struct bhi_make, link);
        bool none;
        const char *wrong = take_answer(worker, make, &none);
        if (none && all_due && (int32_t)(due - make->control) >= 0) {
            wrong = "it did not send the device memory that it had to make";
        }
        if (wrong) {
            bhi_core_worker_violation(&worker->core, wrong);
            return false;
        }
        if (none) {
            break;
        }
        worker->owes_since_ns = bhi_now_ns();
    }
    return true;
}

/* Returns true if the device memory of all buffers that the submission uses was made. */
static bool had_memory(const struct bhi_submission *submission) {
    const bool remote = bhi_payload_of(submission)->remote;
    for (uint32_t i = 0; remote && i < submission->use_count; i++) {
        const struct bh_buffer *buffer =
            BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content);
        if (bhi_buffer_remote(buffer) && buffer->device->state != BHI_DEVICE_MADE) {
            return false;
        }
    }
    return true;
}

void bhi_worker_makes_lost(struct bhi_worker *worker) {
    while (!bhi_list_empty(&worker->makes)) {
        struct bhi_make *make = BHI_CONTAINER(worker->makes.next, struct bhi_make, link);
        made(worker->context, make, make->clears ? BHI_DEVICE_STALE : BHI_DEVICE_UNMADE, -1);
    }
}

/* The worker says that it could not import the device memory of buffer |id|. That is the doing of
 * the worker that made it. The content cannot be had any more, so whoever reads the buffer is
 * poisoned, until something writes it. A worker that lies here could as well have written the
 * buffer: an import cannot be made read-only. Returns false if the submission has no such memory. */
static bool blame_maker(const struct bhi_submission *submission, uint64_t id,
                        struct bhi_outcome *outcome, char message[BHI_ERROR_TEXT]) {
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bhi_use *use = &submission->uses[i];
        struct bh_buffer *buffer = BHI_CONTAINER(use->content, struct bh_buffer, content);
        if (buffer->id != id || !bhi_buffer_remote(buffer) ||
            buffer->device->state != BHI_DEVICE_MADE) {
            continue;
        }
        snprintf(
            message, BHI_ERROR_TEXT,
            "the device memory of buffer %llu, which worker %d made, cannot be imported: %.300s",
            (unsigned long long)id, buffer->device->block->maker, outcome->message);
        outcome->message = message;
        outcome->elsewhere = true;
        buffer->device->bad = true;
        /* Out of memory: the next one that reads it finds out by itself. */
        (void)(use->writes ||
               bhi_content_lost(&buffer->content, submission->stream, submission->event));
        return true;
    }
    return false;
}

/* Keeps an average of how long the stream's submissions take, for the choice of a device. A worker
 * that reports wrong times only makes that choice worse. */
static void note_time(const struct bhi_worker *worker, const struct bhi_outcome *outcome) {
    if (worker->core.stream && outcome->ended_ns > outcome->started_ns) {
        const uint64_t took_ns = outcome->ended_ns - outcome->started_ns;
        struct bh_stream *stream = bhi_stream_of(worker->core.stream);
        const uint64_t most_ns = stream->deadline_ns;
        const uint64_t taken_ns = took_ns < most_ns ? took_ns : most_ns;
        stream->usual_ns = stream->usual_ns ? stream->usual_ns / 8 * 7 + taken_ns / 8 : taken_ns;
    }
}

/* Reads and checks the worker's next result and gives it to the core. Returns false if the worker
 * broke the protocol. */
static bool take_result(struct bhi_worker *worker) {
    struct bhi_result result;
    struct bhi_told told;
    char text[BHI_ERROR_TEXT];
    if (bhi_progress_read(&worker->progress, worker->core.harvested + 1, &result, &told, text) !=
        0) {
        bhi_core_worker_violation(&worker->core, "it wrote a malformed result");
        return false;
    }
    if (result.status != BH_OK && !bhi_status_from_kind(result.status, worker->kind)) {
        char what[128];
        snprintf(what, sizeof what, "its result is %s, which a worker of its kind cannot have",
                 bh_status_name((bh_status)result.status));
        bhi_core_worker_violation(&worker->core, what);
        return false;
    }
    const struct bhi_submission *submission =
        BHI_CONTAINER(worker->core.inflight.next, struct bhi_submission, link);
    const bool skipped = result.status == BH_CANCELLED;
    if (!skipped && !take_made(worker, true, bhi_payload_of(submission)->record->control_seq)) {
        return false;
    }
    const bool refused = result.status == BH_INVALID_KERNEL || result.status == BH_COMPILE_FAILED;
    if (refused && proven(worker, submission)) {
        bhi_core_worker_violation(&worker->core,
                                  "it claims that it cannot compile a kernel that it has run");
        return false;
    }
    const bool bereft = result.status == BH_OK && !had_memory(submission);
    if (bereft && !worker->make_descriptor_lost) {
        bhi_core_worker_violation(
            &worker->core, "it claims to have run without device memory that the submission needs");
        return false;
    }
    if (result.status == BH_OK) {
        prove(worker, submission);
    }
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = (bh_status)result.status;
    outcome.reason = (bh_reason)told.reason;
    outcome.subject = (bh_subject)told.subject;
    outcome.subject_name = told.name;
    outcome.value = told.value;
    outcome.limit = told.limit;
    outcome.executed = result.status == BH_OK ? BH_EXECUTED_YES : (bh_executed)result.executed;
    if (worker->kind == BHI_WORKER_DEVICE) {
        outcome.vk_result = result.vk_result;
    } else if (result.vk_result > 0 && result.vk_result < 4096) {
        outcome.sys_errno = result.vk_result;
    }
    outcome.command_index = result.status == BH_OK ? BH_NO_COMMAND : result.command_index;
    outcome.worker_pid = worker->core.pid;
    outcome.device = worker->core.device;
    outcome.started_ns = result.started_ns;
    outcome.ended_ns = result.ended_ns;
    outcome.device_ns = result.device_ns;
    outcome.message = text;
    if (bereft) {
        outcome.status = BH_SYSTEM;
        outcome.sys_errno = EMFILE;
        outcome.message =
            "the host has no free file descriptor for the device memory that the worker made";
    }
    char blamed[BHI_ERROR_TEXT];
    if (result.bad_memory && !blame_maker(submission, result.bad_memory, &outcome, blamed)) {
        bhi_core_worker_violation(&worker->core, "it claims that it could not import memory that "
                                                 "it was not told to import");
        return false;
    }
    if (result.status != BH_OK && result.status != BH_CANCELLED) {
        spoil_buffers(worker, submission, outcome.status);
    }
    if (outcome.status == BH_OUT_OF_DEVICE_MEMORY || outcome.status == BH_DEVICE_LOST) {
        (void)give_up_pool(worker);
    }
    if ((outcome.status == BH_DEVICE_LOST || outcome.status == BH_DEVICE_FAULT) &&
        worker->core.life.loss == BHI_LOSS_NONE) {
        worker->core.life.loss = BHI_LOSS_REPORTED;
    }
    note_time(worker, &outcome);
    return bhi_core_worker_result(&worker->core, &outcome);
}

void bhi_worker_harvest(struct bhi_worker *worker) {
    struct bhi_core_worker *core = &worker->core;
    if (core->life.violated || core->life.loss == BHI_LOSS_FINAL ||
        core->life.state == BHI_BURIED || !take_made(worker, false, 0) ||
        core->harvested == core->published) {
        return;
    }
    uint64_t completed, tail;
    if (bhi_progress_poll(&worker->progress, core->published, worker->lane.head, &completed,
                          &tail) != 0) {
        bhi_core_worker_violation(core, "it wrote impossible progress values");
        return;
    }
    if (completed == core->published && tail != worker->lane.head) {
        /* This must be found here: with nothing in flight and no room in the lane, nothing would
         * check the worker again. */
        bhi_core_worker_violation(core,
                                  "it completed a submission that it had not taken from its lane");
        return;
    }
    if (completed == core->harvested) {
        return;
    }
    /* The submissions that end here may hold the last references to the stream. */
    struct bhi_core_stream *stream = core->stream;
    if (stream) {
        bhi_stream_ref(bhi_stream_of(stream));
    }
    while (core->harvested < completed && (bhi_core_worker_skip(core) || take_result(worker)))
        ;
    atomic_store_explicit(&worker->lane.header->harvested, core->harvested, memory_order_release);
    worker->refused_seen = atomic_load(&worker->progress.header->refused_allocations);
    bhi_core_worker_settle(core);
    if (atomic_load_explicit(&worker->lane.header->notify_at, memory_order_relaxed)) {
        set_notify(worker);
        /* The worker may have completed more before it saw the new number: the reactor looks. */
        if (atomic_load(&worker->lane.header->notify_at) &&
            atomic_load(&worker->progress.header->completed_seq) > core->harvested) {
            worker->context->wake_reactor = true;
        }
    }
    if (stream) {
        bhi_stream_unref_locked(bhi_stream_of(stream));
    }
}

bool bhi_worker_pretends(const struct bhi_worker *worker,
                         const struct bhi_progress_snapshot *snapshot) {
    BHI_LIST_FOR(const struct bhi_submission, submission, &worker->core.inflight, link) {
        if (submission->seq == snapshot->compiles) {
            return !snapshot->compile_ended && proven(worker, submission);
        }
    }
    return false;
}

struct bhi_progress_snapshot bhi_worker_progress_snapshot(const struct bhi_worker *worker) {
    const struct bhi_progress_header *header = worker->progress.header;
    const struct bhi_core_worker *core = &worker->core;
    /* compile_seq must be read first. Otherwise a compile that begins and ends between the two
     * reads would look unfinished. */
    uint64_t compiles = atomic_load_explicit(&header->compile_seq, memory_order_acquire);
    uint64_t runs = atomic_load_explicit(&header->run_seq, memory_order_acquire);
    return (struct bhi_progress_snapshot){
        .started = bhi_progress_started(&worker->progress, core->harvested, core->published),
        .marker = atomic_load(&worker->progress.markers->completed),
        .compiles = compiles,
        .compile_ended = runs >= compiles,
    };
}

/* What a worker has in its lane has deadlines. But the submission for which it was to make memory
 * may have been cancelled, and those of other streams that wait for the memory are in no lane. */
static uint64_t check_makes(struct bhi_worker *worker, uint64_t now_ns) {
    const struct bhi_core_worker *core = &worker->core;
    if (bhi_list_empty(&worker->makes) || !bhi_list_empty(&core->inflight) ||
        core->life.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    const uint64_t idle_ns = core->running_since_ns;
    const uint64_t since_ns = idle_ns > worker->owes_since_ns ? idle_ns : worker->owes_since_ns;
    if (since_ns + OWES_NS > now_ns) {
        return since_ns + OWES_NS;
    }
    bhi_core_worker_violation(&worker->core,
                              "it did not answer a request for device memory in time");
    return BH_FOREVER;
}

uint64_t bhi_worker_check_deadline(struct bhi_worker *worker, uint64_t now_ns) {
    bhi_worker_harvest(worker);
    if (worker->core.life.exited_ns) {
        return BH_FOREVER; /* the worker has ended, so there is nothing to stop */
    }
    const struct bhi_progress_snapshot snapshot = bhi_worker_progress_snapshot(worker);
    if (bhi_worker_pretends(worker, &snapshot)) {
        bhi_core_worker_violation(&worker->core, BHI_PRETENDED);
        return BH_FOREVER;
    }
    const uint64_t due_ns = bhi_core_worker_deadline(&worker->core, now_ns, &snapshot);
    return bhi_earlier_ns(due_ns, check_makes(worker, now_ns));
}
