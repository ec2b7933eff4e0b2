/* bh_submit: checks the caller's arguments, encodes the lane record, works out what the submission
 * depends on, and queues it. */
#include "supervisor/submit.h"
#include "base/detail.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/request.h"
#include "supervisor/event/callback.h"
#include "supervisor/event/event.h"
#include "supervisor/event/pending.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PUSH       4096u
#define FIRST_CAPACITY 512u /* bytes of a record */

/* What is being built. Nothing of it is visible to others before it is queued. */
struct builder {
    struct bhi_request *request;
    bh_detail *detail;
    const char *call; /* whose arguments they are, for the detail */
    bool many;        /* the caller knows of commands, and hears which */
    uint32_t command; /* index */
    char place[32];   /* of refused arguments: "command 3: " or nothing */
    char buffer_place[64];
};

#define REFUSE(builder, format, ...)                                                               \
    bhi_fail((builder)->detail, BH_INVALID_ARGUMENT, 0, "%s: %s" format, (builder)->call,          \
             place_of(builder), ##__VA_ARGS__)

static const char *place_of(struct builder *builder) {
    if (builder->many)
        snprintf(builder->place, sizeof builder->place, "command %u: ", builder->command);
    return builder->place;
}

static bh_status no_memory(struct builder *builder) {
    return bhi_fail(builder->detail, BH_NO_MEMORY, ENOMEM, "%s", builder->call);
}

/* Appends |bytes| zeroed bytes to the record. */
static void *append(struct bhi_request *request, uint64_t bytes) {
    uint64_t size = request->record->size;
    if (size + bytes > request->record_capacity) {
        uint64_t capacity = request->record_capacity;
        while (capacity < size + bytes)
            capacity *= 2;
        struct bhi_lane_record *record = realloc(request->record, capacity);
        if (!record)
            return NULL;
        request->record = record;
        request->record_capacity = capacity;
    }
    uint8_t *at = (uint8_t *)request->record + size;
    memset(at, 0, bytes);
    request->record->size += bytes;
    return at;
}

/* Notes that a command uses a buffer. Lock held. */
static bool use(struct bhi_request *request, struct bh_buffer *buffer, bool reads, bool writes,
                bool whole) {
    bool first = false;
    if (!bhi_submission_use(&request->submission, &buffer->content, reads, writes, whole, &first))
        return false;
    if (first)
        bhi_buffer_ref(buffer);
    buffer->changeable |= writes;
    return true;
}

static bool use_kernel(struct bhi_request *request, struct bh_kernel *kernel) {
    for (uint32_t i = request->kernel_count; i > 0; i--)
        if (request->kernels[i - 1] == kernel)
            return true;
    if (request->kernel_count == request->kernel_capacity) {
        uint32_t capacity = request->kernel_capacity ? 2 * request->kernel_capacity : 2;
        struct bh_kernel **kernels = realloc(request->kernels, capacity * sizeof(*kernels));
        if (!kernels)
            return false;
        request->kernels = kernels;
        request->kernel_capacity = capacity;
    }
    request->kernels[request->kernel_count++] = kernel;
    bhi_kernel_ref(kernel);
    return true;
}

static const bh_kernel_binding *find_declared(const bh_kernel_info *info, uint32_t set,
                                              uint32_t binding) {
    for (uint32_t i = 0; i < info->binding_count; i++)
        if (info->bindings[i].set == set && info->bindings[i].binding == binding)
            return &info->bindings[i];
    return NULL;
}

/* "set 0 binding 1", "set 0 binding 1 element 2". */
static const char *buffer_place(struct builder *builder, const bh_binding *binding) {
    const size_t size = sizeof builder->buffer_place;
    const int used =
        snprintf(builder->buffer_place, size, "set %u binding %u", binding->set, binding->binding);
    if (binding->element && used > 0 && (size_t)used < size)
        snprintf(builder->buffer_place + used, size - (size_t)used, " element %u",
                 binding->element);
    return builder->buffer_place;
}

/* What |binding| may do: what the caller says, or what the module declares. Lock held. */
static bh_status find_access(struct builder *builder, const struct bh_kernel *kernel,
                             const bh_binding *binding, bh_access *out) {
    *out = binding->access;
    if (binding->access > BH_READ_WRITE || binding->access < BH_ACCESS_DECLARED)
        return REFUSE(builder, "%s: access %d is not a bh_access", buffer_place(builder, binding),
                      binding->access);
    if (binding->access != BH_ACCESS_DECLARED)
        return BH_OK;
    if (!kernel->declared)
        return REFUSE(builder,
                      "%s: what kernel \"%s\" declares is not known: give an access, "
                      "or call bh_kernel_reflect first",
                      buffer_place(builder, binding), kernel->name);
    const bh_kernel_binding *declared =
        find_declared(kernel->declared, binding->set, binding->binding);
    if (!declared)
        return REFUSE(builder, "%s: kernel \"%s\" has no such binding",
                      buffer_place(builder, binding), kernel->name);
    *out = declared->access;
    return BH_OK;
}

static bh_status add_binding(struct builder *builder, const struct bh_kernel *kernel,
                             const bh_binding *binding, struct bhi_cmd_binding *out,
                             bh_context *context) {
    struct bh_buffer *buffer = binding->buffer;
    if (!BHI_LIVE(buffer))
        return REFUSE(builder, "%s of kernel \"%s\": buffer is NULL or was released",
                      buffer_place(builder, binding), kernel->name);
    if (buffer->context != context)
        return REFUSE(builder, "%s: the buffer belongs to another context",
                      buffer_place(builder, binding));
    if (binding->element >= BHI_MAX_BINDINGS)
        return REFUSE(builder, "%s: an array of buffers has %u elements at most",
                      buffer_place(builder, binding), BHI_MAX_BINDINGS);
    bh_access access;
    bh_status status = find_access(builder, kernel, binding, &access);
    if (status != BH_OK)
        return status;
    if (binding->offset > buffer->size)
        return REFUSE(builder, "%s: offset %llu is outside the buffer of %llu bytes",
                      buffer_place(builder, binding), (unsigned long long)binding->offset,
                      (unsigned long long)buffer->size);
    uint64_t rest = buffer->size - binding->offset;
    uint64_t size = binding->size == BH_WHOLE_SIZE ? rest : binding->size;
    if (!size && buffer->size)
        return REFUSE(builder, "%s: %s offset %llu", buffer_place(builder, binding),
                      binding->size ? "nothing is left behind" : "size is 0, from",
                      (unsigned long long)binding->offset);
    if (size > rest)
        return REFUSE(builder, "%s: offset %llu and size %llu do not fit the buffer of %llu bytes",
                      buffer_place(builder, binding), (unsigned long long)binding->offset,
                      (unsigned long long)size, (unsigned long long)buffer->size);
    *out = (struct bhi_cmd_binding){
        .buffer = buffer->id,
        .offset = binding->offset,
        .size = size,
        .set = binding->set,
        .binding = binding->binding,
        .access = access,
        .element = binding->element,
    };
    return BH_OK;
}

/* All that the dispatch reads comes before what it writes, in whichever order the bindings are
 * given: where one buffer is bound to be read and to be overwritten, what is read is what was there
 * before. */
static bool use_bindings(struct bhi_request *request, const bh_binding *bindings,
                         const struct bhi_cmd_binding *encoded, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if ((encoded[i].access & BH_READ) && !use(request, bindings[i].buffer, true, false, false))
            return false;
    for (uint32_t i = 0; i < count; i++) {
        /* A module's writeonly is no promise to overwrite anything. */
        bool whole = bindings[i].access != BH_ACCESS_DECLARED && encoded[i].offset == 0 &&
                     encoded[i].size == bindings[i].buffer->size;
        if ((encoded[i].access & BH_WRITE) &&
            !use(request, bindings[i].buffer, encoded[i].access & BH_READ, true, whole))
            return false;
    }
    return true;
}

static bh_status add_dispatch(struct builder *builder, const bh_command *command,
                              bh_context *context) {
    if (!BHI_LIVE(command->kernel))
        return REFUSE(builder, "kernel is NULL or was released");
    if (command->kernel->context != context)
        return REFUSE(builder, "the kernel belongs to another context");
    for (int axis = 0; axis < 3; axis++)
        if (!command->groups[axis])
            return REFUSE(builder, "groups[%d] is 0", axis);
    if (command->binding_count && !command->bindings)
        return REFUSE(builder, "bindings is NULL, binding_count %u", command->binding_count);
    if (command->binding_count > BHI_MAX_BINDINGS)
        return REFUSE(builder, "binding_count %u is over %u", command->binding_count,
                      BHI_MAX_BINDINGS);
    if (command->push_size && !command->push)
        return REFUSE(builder, "push is NULL, push_size %u", command->push_size);
    if (command->push_size > MAX_PUSH || command->push_size % 4)
        return REFUSE(builder, "push_size %u is not a multiple of 4 up to %u", command->push_size,
                      MAX_PUSH);
    size_t size = bhi_cmd_dispatch_size(command->binding_count, command->push_size);
    uint8_t *at = append(builder->request, size);
    if (!at || !use_kernel(builder->request, command->kernel))
        return no_memory(builder);
    struct bhi_cmd_dispatch *dispatch = (struct bhi_cmd_dispatch *)(void *)at;
    dispatch->header = (struct bhi_cmd_header){.type = BHI_CMD_DISPATCH, .size = (uint32_t)size};
    dispatch->kernel = command->kernel->body->id;
    dispatch->groups_x = command->groups[0];
    dispatch->groups_y = command->groups[1];
    dispatch->groups_z = command->groups[2];
    dispatch->binding_count = command->binding_count;
    dispatch->push_size = command->push_size;
    struct bhi_cmd_binding *bindings = (struct bhi_cmd_binding *)(void *)(at + sizeof *dispatch);
    for (uint32_t i = 0; i < command->binding_count; i++) {
        bh_status status =
            add_binding(builder, command->kernel, &command->bindings[i], &bindings[i], context);
        if (status != BH_OK)
            return status;
        for (uint32_t j = 0; j < i; j++)
            if (bindings[j].set == bindings[i].set && bindings[j].binding == bindings[i].binding &&
                bindings[j].element == bindings[i].element)
                return REFUSE(builder, "%s is given twice",
                              buffer_place(builder, &command->bindings[i]));
    }
    if (!use_bindings(builder->request, command->bindings, bindings, command->binding_count))
        return no_memory(builder);
    if (command->push_size)
        memcpy(at + sizeof *dispatch + command->binding_count * sizeof *bindings, command->push,
               command->push_size);
    return BH_OK;
}

/* |size|: BH_WHOLE_SIZE becomes what it stands for. */
static bh_status check_range(struct builder *builder, const struct bh_buffer *buffer,
                             uint64_t offset, uint64_t *size, const char *what,
                             bh_context *context) {
    if (!BHI_LIVE(buffer))
        return REFUSE(builder, "%s is NULL or was released", what);
    if (buffer->context != context)
        return REFUSE(builder, "%s belongs to another context", what);
    if (*size == BH_WHOLE_SIZE && offset < buffer->size)
        *size = buffer->size - offset;
    if (!*size)
        return REFUSE(builder, "size is 0 (of %s)", what);
    if (*size == BH_WHOLE_SIZE)
        return REFUSE(builder, "nothing of %s of %llu bytes is left behind offset %llu", what,
                      (unsigned long long)buffer->size, (unsigned long long)offset);
    if (offset > buffer->size || *size > buffer->size - offset)
        return REFUSE(builder, "offset %llu and size %llu do not fit %s of %llu bytes",
                      (unsigned long long)offset, (unsigned long long)*size, what,
                      (unsigned long long)buffer->size);
    return BH_OK;
}

static bh_status add_copy(struct builder *builder, const bh_command *command, bh_context *context) {
    uint64_t size = command->size;
    bh_status status =
        check_range(builder, command->src, command->src_offset, &size, "src", context);
    if (status == BH_OK)
        status = check_range(builder, command->dst, command->dst_offset, &size, "dst", context);
    if (status != BH_OK)
        return status;
    if (command->src == command->dst && command->src_offset < command->dst_offset + size &&
        command->dst_offset < command->src_offset + size)
        return REFUSE(builder, "src and dst overlap in one buffer");
    struct bhi_cmd_copy *copy = append(builder->request, sizeof *copy);
    if (!copy)
        return no_memory(builder);
    *copy = (struct bhi_cmd_copy){
        .header = {.type = BHI_CMD_COPY, .size = sizeof *copy},
        .src = command->src->id,
        .dst = command->dst->id,
        .src_offset = command->src_offset,
        .dst_offset = command->dst_offset,
        .bytes = size,
    };
    bool whole = size == command->dst->size;
    return use(builder->request, command->src, true, false, false) &&
                   use(builder->request, command->dst, false, true, whole)
               ? BH_OK
               : no_memory(builder);
}

static bh_status add_fill(struct builder *builder, const bh_command *command, bh_context *context) {
    uint64_t size = command->size;
    bh_status status =
        check_range(builder, command->dst, command->dst_offset, &size, "dst", context);
    if (status != BH_OK)
        return status;
    if (command->dst_offset % 4 || size % 4)
        return REFUSE(builder, "a fill's offset %llu and size %llu must be multiples of 4",
                      (unsigned long long)command->dst_offset, (unsigned long long)size);
    struct bhi_cmd_fill *fill = append(builder->request, sizeof *fill);
    if (!fill)
        return no_memory(builder);
    *fill = (struct bhi_cmd_fill){
        .header = {.type = BHI_CMD_FILL, .size = sizeof *fill},
        .dst = command->dst->id,
        .dst_offset = command->dst_offset,
        .bytes = size,
        .value = command->fill_value,
    };
    bool whole = size == command->dst->size;
    return use(builder->request, command->dst, false, true, whole) ? BH_OK : no_memory(builder);
}

static bh_status add_prepare(struct builder *builder, struct bh_kernel *kernel) {
    struct bhi_cmd_prepare *prepare = append(builder->request, sizeof *prepare);
    if (!prepare || !use_kernel(builder->request, kernel))
        return no_memory(builder);
    *prepare = (struct bhi_cmd_prepare){
        .header = {.type = BHI_CMD_PREPARE, .size = sizeof *prepare},
        .kernel = kernel->body->id,
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
    return REFUSE(builder, "type %d is not a bh_command_type", command->type);
}

static struct bhi_request *start(bh_stream *stream, uint32_t command_count) {
    struct bhi_request *request = calloc(1, sizeof *request);
    struct bh_event *event = bhi_event_create(stream->context);
    struct bhi_lane_record *record = calloc(1, FIRST_CAPACITY);
    if (!request || !event || !record) {
        free(record);
        bhi_event_unref(event);
        free(request);
        return NULL;
    }
    request->record = record;
    request->record_capacity = FIRST_CAPACITY;
    record->size = sizeof *record;
    record->command_count = command_count;
    bhi_submission_init(&request->submission, &stream->core, event);
    return request;
}

static bh_status check_info(const bh_stream *stream, const bh_submit_info *info,
                            bh_detail *detail) {
    if (!info)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: info is NULL");
    if (!info->command_count || !info->commands)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_submit: a submission has at least one command");
    if (info->command_count > BHI_MAX_COMMANDS)
        return bhi_fail(detail, BH_TOO_LARGE, 0, "bh_submit: more than %u commands",
                        BHI_MAX_COMMANDS);
    if (info->wait_count && !info->waits)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_submit: waits is NULL");
    for (uint32_t i = 0; i < info->wait_count; i++) {
        if (!BHI_LIVE(info->waits[i]))
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_submit: waits[%u] is NULL or was released", i);
        if (info->waits[i]->context != stream->context)
            return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                            "bh_submit: waits[%u] belongs to another context", i);
    }
    return BH_OK;
}

/* |prepare|: instead of info's commands, compile this kernel. |many|: see struct builder. */
static bh_status submit(const char *call, bool many, bh_stream *stream, const bh_submit_info *info,
                        struct bh_kernel *prepare, bh_event **out_event, bh_detail *detail) {
    bh_context *context = stream->context;
    struct bhi_request *request = start(stream, prepare ? 1 : info->command_count);
    if (!request)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    struct bhi_submission *submission = &request->submission;
    struct builder builder = {.request = request, .detail = detail, .call = call, .many = many};
    submission->runs_kernel = prepare == NULL;
    submission->deadline_ns = info->deadline_ns ? info->deadline_ns : stream->deadline_ns;
    bh_event *event = submission->event;

    bhi_context_lock(context);
    bh_status status = BH_OK;
    if (context->closed)
        status = bhi_fail(detail, BH_CLOSED, 0, "%s: the context was destroyed", call);
    event->id = bhi_context_new_id(context);
    event->verdict.submitted_ns = bhi_now_ns();
    if (prepare && status == BH_OK)
        status = add_prepare(&builder, prepare);
    for (uint32_t i = 0; !prepare && i < info->command_count && status == BH_OK &&
                         request->record->size <= BHI_LANE_MAX_RECORD;
         i++) {
        builder.command = i;
        status = add_command(&builder, &info->commands[i], context);
    }
    if (status == BH_OK && request->record->size > BHI_LANE_MAX_RECORD)
        status = bhi_fail(detail, BH_TOO_LARGE, 0,
                          "%s: %llu bytes encoded, over the limit of %u: split it", call,
                          (unsigned long long)request->record->size, BHI_LANE_MAX_RECORD);
    submission->abortable = request->kernel_count > 0;
    for (uint32_t i = 0; i < request->kernel_count; i++)
        submission->abortable &= !request->kernels[i]->body->trusted;
    submission->code = bhi_request_code(request);
    submission->apart = info->alone ? BHI_APART_ALL : BHI_APART_NOT;
    if (status == BH_OK && !bhi_submission_depend(submission, info->waits, info->wait_count))
        status = no_memory(&builder);
    if (status != BH_OK) {
        bhi_submission_abandon(submission);
        bhi_context_unlock(context);
        return status;
    }
    if (out_event) {
        atomic_init(&event->handle.count, 1);
        bhi_event_ref(event);
        *out_event = event;
    }
    bhi_pending_add(event);
    bhi_submission_enqueue(submission);
    bhi_context_unlock(context);
    return BH_OK;
}

static bh_status check_stream(const char *call, bh_stream *stream, bh_detail *detail) {
    if (!BHI_LIVE(stream))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: stream is NULL or was released", call);
    return bhi_context_forked(stream->context) ? bhi_context_refuse(call, detail) : BH_OK;
}

BH_API bh_status bh_submit_sized(bh_stream *stream, const bh_submit_info *info, size_t info_size,
                                 size_t command_size, size_t binding_size, bh_event **out_event,
                                 bh_detail *detail) {
    if (info_size != sizeof *info || command_size != sizeof *info->commands ||
        binding_size != sizeof *info->commands->bindings)
        return bhi_foreign_submit(stream, info, info_size, command_size, binding_size, out_event,
                                  detail);
    /* Written last: it may be an element of info->waits. */
    bh_event *event = NULL;
    bh_status status = check_stream("bh_submit", stream, detail);
    if (status == BH_OK)
        status = check_info(stream, info, detail);
    if (status == BH_OK)
        status = submit("bh_submit", true, stream, info, NULL, out_event ? &event : NULL, detail);
    if (out_event)
        *out_event = event;
    return status;
}

BH_API bh_status bh_launch_sized(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                                 const bh_binding *bindings, uint32_t binding_count,
                                 size_t binding_size, const void *push, uint32_t push_size,
                                 bh_event **out_event, bh_detail *detail) {
    if (binding_size != sizeof *bindings)
        return bhi_foreign_launch(stream, kernel, groups, bindings, binding_count, binding_size,
                                  push, push_size, out_event, detail);
    if (out_event)
        *out_event = NULL;
    bh_status status = check_stream("bh_launch", stream, detail);
    if (status != BH_OK)
        return status;
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
    return submit("bh_launch", false, stream, &info, NULL, out_event, detail);
}

bh_status bhi_submit_prepare(const char *call, bh_kernel *kernel, bh_stream *stream,
                             bh_event **out_event, bh_detail *detail) {
    if (!BHI_LIVE(kernel))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: kernel is NULL or was released", call);
    bh_status status = check_stream(call, stream, detail);
    if (status != BH_OK)
        return status;
    if (kernel->context != stream->context)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "%s: kernel and stream belong to different contexts", call);
    const bh_submit_info info = {0};
    return submit(call, false, stream, &info, kernel, out_event, detail);
}

BH_API bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                                   bh_detail *detail) {
    if (out_event)
        *out_event = NULL;
    return bhi_submit_prepare("bh_kernel_prepare", kernel, stream, out_event, detail);
}
