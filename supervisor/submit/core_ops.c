#include "base/format.h"
#include "base/futex.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/quarantine.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/submit/introduce.h"
#include "supervisor/submit/submit.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

static struct bh_context *context_of(struct bhi_core *core) {
    return BHI_CONTAINER(core, struct bh_context, core);
}

static uint64_t now_ns(struct bhi_core *core) {
    (void)core;
    return bhi_now_ns();
}

/* Each block that the pools keep has a descriptor. Returns true if there are more free ones now. */
static bool shed_descriptors(struct bh_context *context) {
    const bool host = bhi_pool_shed(context->pool), device = bhi_pool_shed(context->device_pool);
    return host || device;
}

static int publish(struct bhi_core_worker *core, struct bhi_submission *submission,
                   enum bhi_apart apart, uint64_t seq) {
    struct bhi_worker *worker = bhi_worker_of(core);
    const struct bhi_payload *payload = bhi_payload_of(submission);
    if (worker->core.published - worker->core.harvested >= BHI_PROGRESS_RESULTS) {
        return BHI_LANE_FULL;
    }
    if (bhi_introduce_cache(worker, submission, apart)) {
        return BHI_LANE_FULL; /* the stream is pumped again when the worker has its cache */
    }
    int64_t space = bhi_lane_space(&worker->lane, worker->progress.seen_tail);
    if (space < 0 || (uint64_t)space < payload->record->size) {
        return BHI_LANE_FULL;
    }
    int error = bhi_introduce(worker, payload, seq);
    if ((error == EMFILE || error == ENFILE) && shed_descriptors(worker->context)) {
        error = bhi_introduce(worker, payload, seq); /* goes on where it stopped */
    }
    if (error == EAGAIN) {
        return BHI_LANE_FULL; /* the stream is pumped again when the memory has been made */
    }
    if (error) {
        return -error;
    }
    payload->record->seq = seq;
    payload->record->control_seq = worker->control_sent;
    if (submission->end_watched) {
        atomic_store_explicit(&worker->lane.header->notify_at, worker->core.harvested + 1,
                              memory_order_seq_cst);
    }
    bhi_lane_publish(&worker->lane, payload->record);
    /* Dekker's algorithm with the worker: it writes that it sleeps, fences, and looks at the lane
     * again. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&worker->progress.header->sleeping, memory_order_relaxed)) {
        bhi_lane_wake(&worker->lane);
    }
    return BHI_PUBLISHED;
}

/* The worker writes that it starts a number, then checks whether that was withdrawn. The host does
 * the same in the other order (Dekker's algorithm). */
static bool withdraw(struct bhi_core_worker *core, uint64_t seq) {
    struct bhi_worker *worker = bhi_worker_of(core);
    bhi_lane_withdraw(&worker->lane, seq, true);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&worker->progress.header->started_seq) < seq;
}

static void withdrawn(struct bhi_core_worker *core, uint64_t seq) {
    bhi_lane_withdraw(&bhi_worker_of(core)->lane, seq, false);
}

static void abort_running(struct bhi_core_worker *core, uint64_t seq) {
    bhi_lane_abort(&bhi_worker_of(core)->lane, seq);
}

static bool is_stopped(const struct bhi_core_worker *core) {
    return bhi_proc_is_stopped(&BHI_CONTAINER(core, const struct bhi_worker, core)->place);
}

static uint64_t cpu_ns(const struct bhi_core_worker *core) {
    return bhi_proc_cpu_ns(core->pid);
}

static void kill_worker(struct bhi_core_worker *core) {
    struct bhi_worker *worker = BHI_CONTAINER(core, struct bhi_worker, core);
    /* Without a pidfd the process is not known yet. The reactor kills it when it gets the pidfd. */
    if (!core->life.born) {
        return;
    }
    /* SIGKILL is sent before the abort words are set. Otherwise the worker could report as its own
     * results what the words stop. */
    pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0);
    bhi_worker_end_words(worker);
    if (worker->kind == BHI_WORKER_LOADER) {
        worker->context->wake_reactor = true; /* its time to end begins */
    }
}

static void notify(struct bhi_core_worker *core) {
    struct bhi_worker *worker = bhi_worker_of(core);
    atomic_store_explicit(&worker->lane.header->notify_at, worker->core.harvested + 1,
                          memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    /* The submission may have completed before the worker could see the order to ring. */
    if (atomic_load(&worker->progress.header->completed_seq) > worker->core.harvested) {
        worker->context->wake_reactor = true; /* to look at it */
    }
}

static void arm(struct bhi_core *core, uint64_t when_ns) {
    struct bh_context *context = context_of(core);
    if (when_ns < context->poller.armed_ns) {
        context->poller.armed_ns = when_ns;
        context->wake_reactor = true;
    }
}

static struct bh_kernel *kernel_of(const struct bhi_payload *payload, uint32_t command_index) {
    if (command_index == BH_NO_COMMAND) { /* of any command: clear with one kernel */
        for (uint32_t i = 1; i < payload->kernel_count; i++) {
            if (payload->kernels[i]->body != payload->kernels[0]->body) {
                return NULL;
            }
        }
        return payload->kernel_count ? payload->kernels[0] : NULL;
    }
    const struct bhi_cmd_header *command = bhi_record_first(payload->record);
    for (uint32_t i = 0; command && i < command_index; i++) {
        command = bhi_record_next(payload->record, command);
    }
    if (!command) {
        return NULL;
    }
    uint64_t id = bhi_command_kernel(command); /* 0: the commands of a file load have no kernel */
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        if (payload->kernels[i]->body->id == id) {
            return payload->kernels[i];
        }
    }
    return NULL;
}

/* A worker need not name what the host knows. */
static void name_subject(const struct bhi_payload *payload, bh_verdict *verdict) {
    const char *name = verdict->subject == BH_SUBJECT_KERNEL                  ? verdict->kernel_name
                       : verdict->subject == BH_SUBJECT_FILE && payload->file ? payload->file->name
                                                                              : "";
    bhi_format(verdict->subject_name, sizeof verdict->subject_name, "%s", name);
    verdict->subject = name[0] ? verdict->subject : BH_SUBJECT_NONE;
}

static void say_injected(const struct bh_context *context, bh_verdict *verdict) {
    const size_t used = strlen(verdict->message);
    verdict->reason = BH_REASON_INJECTED;
    bhi_format(verdict->message + used, sizeof verdict->message - used, " (injected: %s)",
               context->chaos.from);
}

static void name_kernel(const struct bhi_submission *submission, uint32_t command_index,
                        bh_verdict *verdict) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bh_context *context = bhi_stream_of(submission->stream)->context;
    if (payload->file && verdict->status != BH_OK) {
        bhi_file_name(payload->file, verdict->message, sizeof verdict->message);
    }
    const struct bh_kernel *kernel = kernel_of(payload, command_index);
    /* A failure without a command is that of the only command. */
    if (verdict->status != BH_OK && payload->record->command_count == 1) {
        verdict->command_index = 0;
    }
    if (kernel || payload->source) {
        const char *name = kernel ? kernel->name : payload->source->name;
        const uint8_t *hash = kernel ? kernel->body->hash : payload->source->hash;
        memcpy(verdict->kernel_name, name, sizeof verdict->kernel_name);
        memcpy(verdict->kernel_hash, hash, sizeof verdict->kernel_hash);
    }
    if (verdict->status != BH_OK && verdict->status == submission->injected) {
        say_injected(context, verdict);
    }
    if (verdict->subject && !verdict->subject_name[0]) {
        name_subject(payload, verdict);
    }
    if (kernel || payload->source || verdict->status == BH_OK) {
        bhi_quarantine_note(submission, verdict);
    }
}

/* Repeats a check of bh_submit: the device may have been unknown then, because a stream had no
 * worker. */
static bool is_elsewhere(const struct bhi_submission *submission, struct bhi_outcome *out) {
    struct bh_stream *stream = bhi_stream_of(submission->stream);
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bhi_use *use = &submission->uses[i];
        const struct bh_buffer *buffer = BHI_CONTAINER(use->content, struct bh_buffer, content);
        if (buffer->device && bhi_stream_may_use(stream, buffer->device->stream, use->writes,
                                                 stream->context->refusal,
                                                 sizeof stream->context->refusal) != BHI_USE_IT) {
            *out = (struct bhi_outcome)BHI_OUTCOME_INIT; /* not executed */
            out->status = BH_BINDING_MISMATCH;
            out->ended_ns = bhi_now_ns();
            out->message = stream->context->refusal;
            const size_t used = strlen(stream->context->refusal);
            snprintf(stream->context->refusal + used, sizeof stream->context->refusal - used,
                     "; that was not known when it was submitted: bh_stream_wait_ready tells");
            return true;
        }
    }
    return false;
}

/* Refuses a submission if the late ends of its tenant's workers are over the budget (tenant.h). */
static bool is_charged(const struct bhi_submission *submission, struct bhi_outcome *out) {
    const struct bh_stream *stream = bhi_stream_of(submission->stream);
    const bh_detail *trouble = bhi_tenant_trouble(stream->owner, NULL);
    if (trouble) {
        *out = bhi_outcome_unstarted(trouble, bhi_now_ns());
    }
    return trouble;
}

/* Chaos: as if its stream had no worker, and no hope of one. */
static bool is_without_worker(const struct bhi_submission *submission, struct bhi_outcome *out) {
    static const bh_detail none = {.status = BH_UNAVAILABLE,
                                   .message = "there is no worker for it"};
    if (submission->injected == BH_UNAVAILABLE) {
        *out = bhi_outcome_unstarted(&none, bhi_now_ns());
    }
    return submission->injected == BH_UNAVAILABLE;
}

static bool refuse(const struct bhi_submission *submission, struct bhi_outcome *out) {
    return is_without_worker(submission, out) ||
           (bhi_payload_of(submission)->borrows && is_elsewhere(submission, out)) ||
           (!submission->event->library && is_charged(submission, out)) ||
           bhi_quarantine_refuse(submission, out);
}

static void free_submission(struct bhi_submission *submission) {
    struct bhi_payload *payload = bhi_payload_of(submission);
    for (uint32_t i = 0; i < payload->kernel_count; i++) {
        bhi_kernel_unref_locked(payload->kernels[i]);
    }
    free(payload->kernels);
    bhi_stream_of(submission->stream)->context->counts.load_bytes -= payload->load_bytes;
    bhi_file_unref_locked(payload->file);
    free(payload->source);
    free(payload->record);
    free(payload);
}

static void unref_buffer(struct bhi_content *content) {
    bhi_buffer_unref_locked(BHI_CONTAINER(content, struct bh_buffer, content));
}

static void ref_stream(struct bhi_core_stream *stream) {
    bhi_stream_ref(bhi_stream_of(stream));
}

static void writes_on(struct bhi_core_worker *core, struct bhi_content *content) {
    const struct bh_buffer *buffer = BHI_CONTAINER(content, struct bh_buffer, content);
    if (bhi_buffer_remote(buffer)) { /* host memory is written by the worker's process alone (C1) */
        bhi_pool_writes_on(buffer->device->block, bhi_worker_of(core));
    }
}

static void unref_stream(struct bhi_core_stream *stream) {
    bhi_stream_unref_locked(bhi_stream_of(stream));
}

static void stream_changed(struct bhi_core_stream *core) {
    struct bh_stream *stream = bhi_stream_of(core);
    stream->context->wake_reactor = true; /* the reactor finds another worker */
    bhi_stream_changed(stream);
}

const struct bhi_core_ops bhi_supervisor_core_ops = {
    .now_ns = now_ns,
    .publish = publish,
    .withdraw = withdraw,
    .withdrawn = withdrawn,
    .abort = abort_running,
    .stopped = is_stopped,
    .cpu_ns = cpu_ns,
    .kill = kill_worker,
    .notify = notify,
    .arm = arm,
    .turned = bhi_event_turned,
    .ended = bhi_event_ended,
    .free_event = bhi_event_free,
    .name_kernel = name_kernel,
    .free_submission = free_submission,
    .unref_buffer = unref_buffer,
    .unref_stream = unref_stream,
    .ref_stream = ref_stream,
    .writes_on = writes_on,
    .stream_changed = stream_changed,
    .refuse = refuse,
    .on_trial = bhi_quarantine_tries,
};
