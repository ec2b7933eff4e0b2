/* bh_submit: checks the caller's arguments, encodes the lane record, works out what the submission
 * depends on, and queues it. */
#include "buffer.h"
#include "commands.h"
#include "context.h"
#include "detail.h"
#include "event.h"
#include "futex.h"
#include "kernel.h"
#include "reactor.h"
#include "stream.h"
#include "submission.h"
#include "worker_proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BINDINGS 256u
#define MAX_PUSH     4096u
#define MAX_COMMANDS 65536u

/* What is being built. Nothing of it is visible to others before it is queued. */
struct builder {
    struct bhi_submission *submission;
    bh_detail *detail;
    uint32_t command; /* index, for the detail */
};

#define REFUSE(builder, format, ...)                                                               \
    bhi_fail((builder)->detail, BH_INVALID_ARGUMENT, 0, "bh_submit: command %u: " format,          \
             (builder)->command, ##__VA_ARGS__)

static bh_status no_memory(struct builder *builder) {
    return bhi_fail(builder->detail, BH_NO_MEMORY, ENOMEM, "bh_submit");
}

/* Appends |bytes| zeroed bytes to the record. */
static void *append(struct bhi_submission *submission, uint64_t bytes) {
    uint64_t size = submission->record->size;
    if (size + bytes > submission->record_capacity) {
        uint64_t capacity = submission->record_capacity;
        while (capacity < size + bytes)
            capacity *= 2;
        struct bhi_lane_record *record = realloc(submission->record, capacity);
        if (!record)
            return NULL;
        submission->record = record;
        submission->record_capacity = capacity;
    }
    uint8_t *at = (uint8_t *)submission->record + size;
    memset(at, 0, bytes);
    submission->record->size += bytes;
    return at;
}

/* Notes that a command uses a buffer. Lock held: it writes buffer->visit. */
static bool use(struct bhi_submission *submission, struct bh_buffer *buffer, bool reads,
                bool writes, bool whole) {
    struct bhi_use *found = NULL;
    uint64_t mark = submission->event->id;
    if (buffer->visit == mark)
        found = &submission->uses[buffer->visit_index];
    if (!found) {
        if (submission->use_count == submission->use_capacity) {
            uint32_t capacity = submission->use_capacity ? 2 * submission->use_capacity : 4;
            struct bhi_use *uses = realloc(submission->uses, capacity * sizeof *uses);
            if (!uses)
                return false;
            submission->uses = uses;
            submission->use_capacity = capacity;
        }
        buffer->visit = mark;
        buffer->visit_index = submission->use_count;
        found = &submission->uses[submission->use_count++];
        *found = (struct bhi_use){.buffer = buffer};
        bh_buffer_retain(buffer);
    }
    /* Reading what an earlier command of this submission has overwritten is its own affair. */
    if (reads && !found->overwrites)
        found->reads = true;
    if (writes) {
        found->writes = true;
        if (whole && !reads && !found->reads)
            found->overwrites = true;
    }
    return true;
}

static bool use_kernel(struct bhi_submission *submission, struct bh_kernel *kernel) {
    for (uint32_t i = submission->kernel_count; i > 0; i--)
        if (submission->kernels[i - 1] == kernel)
            return true;
    if (submission->kernel_count == submission->kernel_capacity) {
        uint32_t capacity = submission->kernel_capacity ? 2 * submission->kernel_capacity : 2;
        struct bh_kernel **kernels = realloc(submission->kernels, capacity * sizeof(*kernels));
        if (!kernels)
            return false;
        submission->kernels = kernels;
        submission->kernel_capacity = capacity;
    }
    submission->kernels[submission->kernel_count++] = kernel;
    bh_kernel_retain(kernel);
    return true;
}

static bh_status add_binding(struct builder *builder, const bh_binding *binding,
                             struct bhi_cmd_binding *out, bh_context *context) {
    struct bh_buffer *buffer = binding->buffer;
    if (!buffer)
        return REFUSE(builder, "binding %u.%u: buffer is NULL", binding->set, binding->binding);
    if (buffer->context != context)
        return REFUSE(builder, "binding %u.%u: the buffer belongs to another context", binding->set,
                      binding->binding);
    if (binding->access < BH_READ || binding->access > BH_READ_WRITE)
        return REFUSE(builder, "binding %u.%u: access %d is none", binding->set, binding->binding,
                      binding->access);
    if (binding->offset > buffer->size)
        return REFUSE(builder, "binding %u.%u: offset %llu is outside the buffer of %llu bytes",
                      binding->set, binding->binding, (unsigned long long)binding->offset,
                      (unsigned long long)buffer->size);
    uint64_t rest = buffer->size - binding->offset;
    uint64_t size = binding->size == BH_WHOLE_SIZE ? rest : binding->size;
    if (size > rest || (!size && buffer->size))
        return REFUSE(
            builder, "binding %u.%u: offset %llu and size %llu do not fit the buffer of %llu bytes",
            binding->set, binding->binding, (unsigned long long)binding->offset,
            (unsigned long long)size, (unsigned long long)buffer->size);
    *out = (struct bhi_cmd_binding){
        .buffer = buffer->id,
        .offset = binding->offset,
        .size = size,
        .set = binding->set,
        .binding = binding->binding,
        .access = binding->access,
    };
    bool whole = binding->offset == 0 && size == buffer->size;
    return use(builder->submission, buffer, binding->access & BH_READ, binding->access & BH_WRITE,
               whole)
               ? BH_OK
               : no_memory(builder);
}

static bh_status add_dispatch(struct builder *builder, const bh_command *command,
                              bh_context *context) {
    if (!command->kernel)
        return REFUSE(builder, "kernel is NULL");
    if (command->kernel->context != context)
        return REFUSE(builder, "the kernel belongs to another context");
    for (int axis = 0; axis < 3; axis++)
        if (!command->groups[axis])
            return REFUSE(builder, "groups[%d] is 0", axis);
    if (command->binding_count > MAX_BINDINGS || (command->binding_count && !command->bindings))
        return REFUSE(builder, "bindings is NULL, or more than %u", MAX_BINDINGS);
    if (command->push_size > MAX_PUSH || command->push_size % 4 ||
        (command->push_size && !command->push))
        return REFUSE(builder, "push is NULL, or push_size %u is not a multiple of 4 up to %u",
                      command->push_size, MAX_PUSH);
    size_t size = bhi_cmd_dispatch_size(command->binding_count, command->push_size);
    uint8_t *at = append(builder->submission, size);
    if (!at || !use_kernel(builder->submission, command->kernel))
        return no_memory(builder);
    struct bhi_cmd_dispatch *dispatch = (struct bhi_cmd_dispatch *)(void *)at;
    dispatch->header = (struct bhi_cmd_header){.type = BHI_CMD_DISPATCH, .size = (uint32_t)size};
    dispatch->kernel = command->kernel->id;
    dispatch->groups_x = command->groups[0];
    dispatch->groups_y = command->groups[1];
    dispatch->groups_z = command->groups[2];
    dispatch->binding_count = command->binding_count;
    dispatch->push_size = command->push_size;
    struct bhi_cmd_binding *bindings = (struct bhi_cmd_binding *)(void *)(at + sizeof *dispatch);
    for (uint32_t i = 0; i < command->binding_count; i++) {
        bh_status status = add_binding(builder, &command->bindings[i], &bindings[i], context);
        if (status != BH_OK)
            return status;
        for (uint32_t j = 0; j < i; j++)
            if (bindings[j].set == bindings[i].set && bindings[j].binding == bindings[i].binding)
                return REFUSE(builder, "binding %u.%u is given twice", bindings[i].set,
                              bindings[i].binding);
    }
    if (command->push_size)
        memcpy(at + sizeof *dispatch + command->binding_count * sizeof *bindings, command->push,
               command->push_size);
    return BH_OK;
}

static bh_status check_range(struct builder *builder, const struct bh_buffer *buffer,
                             uint64_t offset, uint64_t size, const char *what,
                             bh_context *context) {
    if (!buffer)
        return REFUSE(builder, "%s is NULL", what);
    if (buffer->context != context)
        return REFUSE(builder, "%s belongs to another context", what);
    if (!size || offset > buffer->size || size > buffer->size - offset)
        return REFUSE(builder, "offset %llu and size %llu do not fit %s of %llu bytes",
                      (unsigned long long)offset, (unsigned long long)size, what,
                      (unsigned long long)buffer->size);
    return BH_OK;
}

static bh_status add_copy(struct builder *builder, const bh_command *command, bh_context *context) {
    bh_status status =
        check_range(builder, command->src, command->src_offset, command->size, "src", context);
    if (status == BH_OK)
        status =
            check_range(builder, command->dst, command->dst_offset, command->size, "dst", context);
    if (status != BH_OK)
        return status;
    if (command->src == command->dst && command->src_offset < command->dst_offset + command->size &&
        command->dst_offset < command->src_offset + command->size)
        return REFUSE(builder, "src and dst overlap in one buffer");
    struct bhi_cmd_copy *copy = append(builder->submission, sizeof *copy);
    if (!copy)
        return no_memory(builder);
    *copy = (struct bhi_cmd_copy){
        .header = {.type = BHI_CMD_COPY, .size = sizeof *copy},
        .src = command->src->id,
        .dst = command->dst->id,
        .src_offset = command->src_offset,
        .dst_offset = command->dst_offset,
        .bytes = command->size,
    };
    bool whole = command->size == command->dst->size;
    return use(builder->submission, command->src, true, false, false) &&
                   use(builder->submission, command->dst, false, true, whole)
               ? BH_OK
               : no_memory(builder);
}

static bh_status add_fill(struct builder *builder, const bh_command *command, bh_context *context) {
    bh_status status =
        check_range(builder, command->dst, command->dst_offset, command->size, "dst", context);
    if (status != BH_OK)
        return status;
    if (command->dst_offset % 4 || command->size % 4)
        return REFUSE(builder, "a fill's offset %llu and size %llu must be multiples of 4",
                      (unsigned long long)command->dst_offset, (unsigned long long)command->size);
    struct bhi_cmd_fill *fill = append(builder->submission, sizeof *fill);
    if (!fill)
        return no_memory(builder);
    *fill = (struct bhi_cmd_fill){
        .header = {.type = BHI_CMD_FILL, .size = sizeof *fill},
        .dst = command->dst->id,
        .dst_offset = command->dst_offset,
        .bytes = command->size,
        .value = command->fill_value,
    };
    bool whole = command->size == command->dst->size;
    return use(builder->submission, command->dst, false, true, whole) ? BH_OK : no_memory(builder);
}

static bh_status add_prepare(struct builder *builder, struct bh_kernel *kernel) {
    struct bhi_cmd_prepare *prepare = append(builder->submission, sizeof *prepare);
    if (!prepare || !use_kernel(builder->submission, kernel))
        return no_memory(builder);
    *prepare = (struct bhi_cmd_prepare){
        .header = {.type = BHI_CMD_PREPARE, .size = sizeof *prepare},
        .kernel = kernel->id,
    };
    return BH_OK;
}

static bh_status add_command(struct builder *builder, const bh_command *command,
                             bh_context *context) {
    switch (command->type) {
    case BH_COMMAND_DISPATCH:
        return add_dispatch(builder, command, context);
    case BH_COMMAND_COPY:
        return add_copy(builder, command, context);
    case BH_COMMAND_FILL:
        return add_fill(builder, command, context);
    }
    return REFUSE(builder, "type %d is none", command->type);
}

/* What only orders, on one stream, is the lane's business, not an edge. */
static bool need(struct bhi_submission *submission, struct bh_event *event, bool data) {
    bool same = event->submission && event->submission->stream == submission->stream;
    return (!data && same) || bhi_submission_depend(submission, event, data);
}

/* Dependencies: what it waits for, and who used its buffers before. */
static bool depend(struct bhi_submission *submission, const bh_submit_info *info) {
    for (uint32_t i = 0; i < info->wait_count; i++)
        if (!bhi_submission_depend(submission, info->waits[i], true))
            return false;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        struct bhi_use *u = &submission->uses[i];
        struct bh_buffer *buffer = u->buffer;
        if (!bhi_buffer_reserve(buffer))
            return false;
        for (uint32_t w = 0; w < buffer->writers.count; w++) {
            const struct bhi_buffer_user *writer = &buffer->writers.users[w];
            if (!need(submission, writer->event, u->reads && writer->counts))
                return false;
        }
        if (!u->writes)
            continue;
        for (uint32_t r = 0; r < buffer->readers.count; r++)
            if (!need(submission, buffer->readers.users[r].event, false))
                return false;
    }
    return true;
}

/* From here on it cannot fail. */
static void enqueue(struct bhi_submission *submission) {
    struct bh_stream *stream = submission->stream;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        struct bhi_use *u = &submission->uses[i];
        bhi_buffer_used(u->buffer, submission->event, u->reads, u->writes, u->overwrites);
    }
    bhi_list_append(&stream->queue, &submission->link);
    uint32_t others = 0;
    if (bhi_submission_poisoned_by(submission, &others)) {
        struct bhi_outcome outcome = BHI_OUTCOME_INIT;
        outcome.executed = BH_EXECUTED_NO;
        bhi_submission_end(submission, &outcome);
    } else if (stream->state == BHI_STREAM_UNAVAILABLE) {
        bhi_stream_drain(stream, stream->trouble.status, stream->trouble.message);
    } else {
        bhi_stream_wants_release(stream);
    }
}

static struct bhi_submission *start(bh_stream *stream, uint32_t command_count) {
    struct bhi_submission *submission = calloc(1, sizeof *submission);
    if (!submission)
        return NULL;
    bhi_list_init(&submission->link);
    submission->stream = stream;
    submission->record_capacity = 512;
    submission->record = calloc(1, submission->record_capacity);
    submission->event = bhi_event_create(stream->context);
    if (!submission->record || !submission->event) {
        bhi_submission_free(submission);
        return NULL;
    }
    submission->record->size = sizeof *submission->record;
    submission->record->command_count = command_count;
    return submission;
}

static bh_status check_info(const bh_stream *stream, const bh_submit_info *info,
                            bh_detail *detail) {
    if (!info->command_count || !info->commands)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_submit: a submission has at least one command");
    if (info->command_count > MAX_COMMANDS)
        return bhi_fail(detail, BH_TOO_LARGE, 0, "bh_submit: more than %u commands", MAX_COMMANDS);
    if (info->wait_count && !info->waits)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: waits is NULL");
    for (uint32_t i = 0; i < info->wait_count; i++) {
        if (!info->waits[i])
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: waits[%u] is NULL", i);
        if (info->waits[i]->context != stream->context)
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_submit: waits[%u] belongs to another context", i);
    }
    return BH_OK;
}

/* |prepare|: instead of info's commands, compile this kernel. */
static bh_status submit(bh_stream *stream, const bh_submit_info *info, struct bh_kernel *prepare,
                        bh_event **out_event, bh_detail *detail) {
    bh_context *context = stream->context;
    struct bhi_submission *submission = start(stream, prepare ? 1 : info->command_count);
    if (!submission)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_submit");
    struct builder builder = {.submission = submission, .detail = detail};
    submission->deadline_ns = info->deadline_ns ? info->deadline_ns : stream->deadline_ns;
    bh_event *event = submission->event;

    bhi_context_lock(context);
    bh_status status = BH_OK;
    if (context->closed)
        status = bhi_fail(detail, BH_CLOSED, 0, "bh_submit: the context is closed");
    event->id = bhi_context_new_id(context);
    event->submission = submission;
    event->verdict.submitted_ns = bhi_now_ns();
    if (prepare && status == BH_OK)
        status = add_prepare(&builder, prepare);
    for (uint32_t i = 0; !prepare && i < info->command_count && status == BH_OK &&
                         submission->record->size <= BHI_LANE_MAX_RECORD;
         i++) {
        builder.command = i;
        status = add_command(&builder, &info->commands[i], context);
    }
    if (status == BH_OK && submission->record->size > BHI_LANE_MAX_RECORD)
        status = bhi_fail(detail, BH_TOO_LARGE, 0,
                          "bh_submit: %llu bytes encoded, over the limit of %u: split it",
                          (unsigned long long)submission->record->size, BHI_LANE_MAX_RECORD);
    if (status == BH_OK && !depend(submission, info))
        status = no_memory(&builder);
    if (status != BH_OK) {
        bhi_submission_free(submission);
        bhi_context_unlock(context);
        return status;
    }
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
    if (out_event) {
        bh_event_retain(event);
        *out_event = event;
    }
    enqueue(submission);
    bhi_context_unlock(context);
    return BH_OK;
}

BH_API bh_status bh_submit(bh_stream *stream, const bh_submit_info *info, bh_event **out_event,
                           bh_detail *detail) {
    if (out_event)
        *out_event = NULL;
    if (!stream || !info)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: %s is NULL",
                        stream ? "info" : "stream");
    if (bhi_context_forked(stream->context))
        return bhi_context_refuse(detail);
    bh_status status = check_info(stream, info, detail);
    return status == BH_OK ? submit(stream, info, NULL, out_event, detail) : status;
}

BH_API bh_status bh_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                           const bh_binding *bindings, uint32_t binding_count, const void *push,
                           uint32_t push_size, bh_event **out_event, bh_detail *detail) {
    if (!groups)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_launch: groups is NULL");
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .kernel = kernel,
        .groups = {groups[0], groups[1], groups[2]},
        .bindings = bindings,
        .binding_count = binding_count,
        .push = push,
        .push_size = push_size,
    };
    const bh_submit_info info = {.commands = &command, .command_count = 1};
    return bh_submit(stream, &info, out_event, detail);
}

/* The worker tells what a kernel binds before it completes the prepare, but over another channel:
 * how long to wait for the message after the completion. */
#define REFLECTION_GRACE_NS (2ull * 1000000000)

static bool find_reflection(bh_stream *stream, const bh_kernel *kernel, bh_kernel_info *out_info) {
    bhi_context_lock(stream->context);
    struct bhi_reflection *found =
        stream->worker ? bhi_worker_reflection(stream->worker, kernel->id) : NULL;
    if (found)
        *out_info = found->info;
    bhi_context_unlock(stream->context);
    return found != NULL;
}

/* Was the kernel introduced to the worker that the stream has now? One that has told, when there
 * was no memory to keep it, is made to forget the kernel: next time it tells again. */
static bool knows(bh_stream *stream, const bh_kernel *kernel, bool *out_lost) {
    bhi_context_lock(stream->context);
    struct bhi_worker *worker = stream->worker;
    *out_lost = worker && worker->reflection_lost && !bhi_worker_reflection(worker, kernel->id);
    if (*out_lost)
        bhi_worker_forget_kernel(worker, kernel->id);
    bool known = worker && bhi_idset_has(&worker->kernels, kernel->id);
    bhi_context_unlock(stream->context);
    return known;
}

BH_API bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                                   bh_detail *detail) {
    if (out_event)
        *out_event = NULL;
    if (!kernel || !stream)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_kernel_prepare: %s is NULL",
                        kernel ? "stream" : "kernel");
    if (bhi_context_forked(stream->context))
        return bhi_context_refuse(detail);
    if (kernel->context != stream->context)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_kernel_prepare: kernel and stream belong to different contexts");
    const bh_submit_info info = {0};
    return submit(stream, &info, kernel, out_event, detail);
}

/* One try: BH_PENDING when the worker that compiled it was gone before it told. */
static bh_status reflect_once(bh_kernel *kernel, bh_stream *stream, uint64_t deadline_ns,
                              bh_kernel_info *out_info, bh_detail *detail) {
    bh_event *event = NULL;
    bh_status status = bh_kernel_prepare(kernel, stream, &event, detail);
    if (status != BH_OK)
        return status;
    if (bhi_event_await(event, deadline_ns) != BH_OK) {
        bh_event_release(event);
        return bhi_fail(detail, BH_TIMEOUT, 0, "bh_kernel_reflect: not compiled in time");
    }
    status = event->verdict.status;
    if (status != BH_OK)
        bhi_fail(detail, status, 0, "%s", event->verdict.message);
    bh_event_release(event);
    uint64_t grace_ns = bhi_deadline_ns(REFLECTION_GRACE_NS);
    if (grace_ns < deadline_ns)
        deadline_ns = grace_ns;
    while (status == BH_OK) {
        uint32_t seen = atomic_load(&stream->ready_word);
        if (find_reflection(stream, kernel, out_info))
            break;
        bool lost;
        bool known = knows(stream, kernel, &lost);
        if (lost)
            return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_kernel_reflect");
        if (!known)
            return BH_PENDING;
        if (bhi_futex_wait(&stream->ready_word, seen, false, deadline_ns) == -ETIMEDOUT)
            return bhi_fail(detail, BH_TIMEOUT, 0,
                            "bh_kernel_reflect: the worker did not say what the kernel binds");
    }
    return status;
}

BH_API bh_status bh_kernel_reflect(bh_kernel *kernel, bh_stream *stream, uint64_t timeout_ns,
                                   bh_kernel_info *out_info, bh_detail *detail) {
    if (!out_info)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_kernel_reflect: out_info is NULL");
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    bh_status status;
    do {
        status = reflect_once(kernel, stream, deadline_ns, out_info, detail);
    } while (status == BH_PENDING);
    return status;
}
