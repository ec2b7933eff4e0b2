/* Encodes commands as a lane record: checks the caller's arguments, and notes which buffers and
 * kernels are used. */
#include "supervisor/submit/encode.h"
#include "base/array.h"
#include "base/detail.h"
#include "ipc/commands.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/replica.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_PUSH 4096u

/* |what|: the field, which the text need not name. */
#define REFUSE(encoder, what, ...)                                                                 \
    BHI_FAIL((encoder)->detail, (encoder)->call, BH_REASON_COMMAND, what,                          \
             .place = place_of(encoder), .text = BHI_SAY(__VA_ARGS__))

static const char *place_of(struct bhi_encoder *encoder) {
    if (encoder->many) {
        snprintf(encoder->place, sizeof encoder->place, "command %u", encoder->command);
    }
    return encoder->many ? encoder->place : NULL;
}

static bh_status no_memory(struct bhi_encoder *encoder) {
    return BHI_FAIL(encoder->detail, encoder->call, BH_REASON_MEMORY);
}

void *bhi_encode_append(struct bhi_payload *payload, uint64_t bytes) {
    uint64_t size = payload->record->size;
    if (size + bytes > payload->record_capacity) {
        struct bhi_lane_record *record =
            bhi_array_grow(payload->record, 1, size + bytes, &payload->record_capacity);
        if (!record) {
            return NULL;
        }
        payload->record = record;
    }
    uint8_t *at = (uint8_t *)payload->record + size;
    memset(at, 0, bytes);
    payload->record->size += bytes;
    return at;
}

bool bhi_encode_use(struct bhi_payload *payload, struct bh_buffer *buffer, bool reads, bool writes,
                    bool whole) {
    bool first = false;
    if (!bhi_submission_use(&payload->submission, &buffer->content, reads, writes, whole, &first)) {
        return false;
    }
    if (first) {
        bhi_buffer_ref(buffer);
    }
    payload->remote |= bhi_buffer_remote(buffer);
    payload->borrows |=
        buffer->device && &buffer->device->stream->core != payload->submission.stream;
    buffer->changeable |= writes && !payload->file; /* not a load */
    return true;
}

/* |text|: of the sentence; NULL if it has none. */
static bh_status refuse_kernel(struct bhi_encoder *encoder, bh_reason why,
                               const struct bh_kernel *kernel, const char *text) {
    return BHI_FAIL(encoder->detail, encoder->call, why, kernel->name,
                    .status = BH_INVALID_ARGUMENT, .place = place_of(encoder), .text = text);
}

static bool is_image(const struct bh_kernel *kernel) {
    return kernel->body->format == BHI_KERNEL_IMAGE;
}

/* Notes that a command uses a kernel, if the stream can run it. Lock held. */
static bh_status use_kernel(struct bhi_encoder *encoder, struct bh_kernel *kernel) {
    struct bhi_payload *payload = encoder->payload;
    for (uint32_t i = payload->kernel_count; i > 0; i--) {
        if (payload->kernels[i - 1] == kernel) {
            return BH_OK;
        }
    }
    if (!bhi_stream_may_run(bhi_stream_of(payload->submission.stream), kernel->body->format)) {
        return refuse_kernel(encoder,
                             is_image(kernel) ? BH_REASON_NEEDS_CUDA : BH_REASON_NEEDS_VULKAN,
                             kernel, NULL);
    }
    if (!BHI_ARRAY_RESERVE(payload->kernels, payload->kernel_capacity, payload->kernel_count + 1)) {
        return no_memory(encoder);
    }
    payload->kernels[payload->kernel_count++] = kernel;
    bhi_kernel_ref(kernel);
    return BH_OK;
}

static const bh_kernel_binding *find_declared(const bh_kernel_info *info, uint32_t set,
                                              uint32_t binding) {
    for (uint32_t i = 0; i < info->binding_count; i++) {
        if (info->bindings[i].set == set && info->bindings[i].binding == binding) {
            return &info->bindings[i];
        }
    }
    return NULL;
}

/* Writes "set 0 binding 1", or "set 0 binding 1 element 2". */
static const char *buffer_place(struct bhi_encoder *encoder, const bh_binding *binding) {
    const size_t size = sizeof encoder->buffer_place;
    const int used =
        snprintf(encoder->buffer_place, size, "set %u binding %u", binding->set, binding->binding);
    if (binding->element && used > 0 && (size_t)used < size) {
        snprintf(encoder->buffer_place + used, size - (size_t)used, " element %u",
                 binding->element);
    }
    return encoder->buffer_place;
}

/* Finds the access of |binding|: what the caller passed, or what the module declares. Lock held. */
static bh_status find_access(struct bhi_encoder *encoder, const struct bh_kernel *kernel,
                             const bh_binding *binding, const char *place, bh_access *out) {
    *out = binding->access & BH_ACCESS_READ_WRITE;
    if (binding->access & ~(BH_ACCESS_READ_WRITE | BH_ACCESS_OPTIONAL)) {
        return REFUSE(encoder, place, "%s: access %d is not a bh_access", place, binding->access);
    }
    if (*out != BH_ACCESS_DECLARED) {
        return BH_OK;
    }
    if (is_image(kernel)) {
        return BHI_FAIL(encoder->detail, encoder->call, BH_REASON_ACCESS_UNKNOWN, place,
                        .place = place_of(encoder), .text = kernel->name);
    }
    if (!kernel->declared) {
        return REFUSE(encoder, place,
                      "%s: the declared access of kernel \"%s\" is not known: give an access, or "
                      "call bh_kernel_reflect first",
                      place, kernel->name);
    }
    const bh_kernel_binding *declared =
        find_declared(kernel->declared, binding->set, binding->binding);
    if (!declared && binding->access & BH_ACCESS_OPTIONAL) {
        *out = BH_ACCESS_READ;
        return BH_OK;
    }
    if (!declared) {
        return REFUSE(encoder, place, "%s: kernel \"%s\" has no such binding", place, kernel->name);
    }
    *out = declared->access;
    return BH_OK;
}

/* Returns the replica of |of| that was made for this submission, or NULL. |to_move|: one to which
 * the buffer can move, which must have the present version. */
static struct bh_buffer *find_made(const struct bhi_replicas *replicas, const struct bh_buffer *of,
                                   bool to_move) {
    for (uint32_t i = 0; i < replicas->count; i++) {
        const struct bhi_made_replica *made = &replicas->made[i];
        if (made->of == of && !made->mover == !to_move &&
            (!to_move || made->version == of->device->version)) {
            return made->copy;
        }
    }
    return NULL;
}

/* Returns the replica of |of|. |mover|: the buffer that moves to it; NULL: it is only read. A
 * replica to which a buffer moves is also the one that is read. NULL: it must be made, and
 * replicas.wanted is set. */
static struct bh_buffer *replica(struct bhi_encoder *encoder, const struct bh_stream *stream,
                                 struct bh_buffer *of, struct bh_buffer *mover) {
    struct bhi_replicas *replicas = encoder->replicas;
    struct bh_buffer *found = find_made(replicas, of, true);
    if (!found && !mover) {
        found = find_made(replicas, of, false);
        found = found ? found : bhi_replica_find(stream, of);
    }
    if (!found) {
        bhi_buffer_ref(of);
        replicas->wanted = of;
        replicas->mover = mover;
    }
    return found;
}

/* Replaces |*buffer|, if it is device memory, by what the submission uses for it: its place, or a
 * replica (D4). BH_UNAVAILABLE: the replica in replicas.wanted must be made first. */
static bh_status check_memory(struct bhi_encoder *encoder, struct bh_buffer **buffer, bool writes,
                              const char *what) {
    if (!(*buffer)->device) {
        return BH_OK;
    }
    char why[256];
    struct bh_stream *stream = bhi_stream_of(encoder->payload->submission.stream);
    struct bh_buffer *named = *buffer, *mover = NULL;
    *buffer = bhi_buffer_place(named);
    switch (bhi_stream_may_use(stream, (*buffer)->device->stream, writes, why, sizeof why)) {
    case BHI_USE_IT:
        return BH_OK;
    case BHI_USE_NO:
        return REFUSE(encoder, what, "%s: %s", what, why);
    case BHI_USE_REPLICA:
        break;
    case BHI_USE_MOVED:
        mover = named;
        break;
    }
    struct bh_buffer *copy = replica(encoder, stream, *buffer, mover);
    if (!copy) {
        return BH_UNAVAILABLE;
    }
    *buffer = copy;
    return BH_OK;
}

static bh_status add_binding(struct bhi_encoder *encoder, const struct bh_kernel *kernel,
                             const bh_binding *binding, struct bhi_cmd_binding *out,
                             struct bh_buffer **out_buffer, bh_context *context) {
    const char *place = buffer_place(encoder, binding);
    struct bh_buffer *buffer = binding->buffer;
    if (!BHI_LIVE(buffer)) {
        return REFUSE(encoder, place, "%s of kernel \"%s\": buffer is NULL or was released", place,
                      kernel->name);
    }
    if (buffer->context != context) {
        return REFUSE(encoder, place, "%s: the buffer belongs to another context", place);
    }
    if (binding->element >= BHI_MAX_BINDINGS) {
        return REFUSE(encoder, place, "%s: an array of buffers has %u elements at most", place,
                      BHI_MAX_BINDINGS);
    }
    if (is_image(kernel) && (binding->set || binding->element)) {
        return REFUSE(encoder, place,
                      "%s: the parameters of an image are bindings of set 0, element 0", place);
    }
    bh_access access;
    BHI_TRY(find_access(encoder, kernel, binding, place, &access));
    BHI_TRY(check_memory(encoder, &buffer, access & BH_ACCESS_WRITE, place));
    if (binding->offset > buffer->size) {
        return REFUSE(encoder, place, "%s: offset %llu is outside the buffer of %llu bytes", place,
                      (unsigned long long)binding->offset, (unsigned long long)buffer->size);
    }
    uint64_t rest = buffer->size - binding->offset;
    uint64_t size = binding->size == BH_WHOLE_SIZE ? rest : binding->size;
    if (!size && buffer->size) {
        return REFUSE(encoder, place, "%s: %s offset %llu of %llu bytes", place,
                      binding->size ? "no bytes are left at" : "size is 0 at",
                      (unsigned long long)binding->offset, (unsigned long long)buffer->size);
    }
    if (size > rest) {
        return REFUSE(encoder, place,
                      "%s: offset %llu and size %llu do not fit the buffer of %llu bytes", place,
                      (unsigned long long)binding->offset, (unsigned long long)size,
                      (unsigned long long)buffer->size);
    }
    *out_buffer = buffer;
    *out = (struct bhi_cmd_binding){
        .buffer = buffer->id,
        .offset = binding->offset,
        .size = size,
        .set = binding->set,
        .binding = binding->binding,
        .access = access | (binding->access & BH_ACCESS_OPTIONAL),
        .element = binding->element,
    };
    return BH_OK;
}

/* Will the command overwrite the whole buffer? A binding that a module declares writeonly may leave a
 * part as it was, and one that it need not declare may leave all of it: that is known once the
 * kernel is reflected (B5). */
static bool overwrites(const struct bh_kernel *kernel, const bh_binding *binding,
                       const struct bhi_cmd_binding *encoded, const struct bh_buffer *buffer) {
    const bool optional = binding->access & BH_ACCESS_OPTIONAL;
    const bh_kernel_binding *declared =
        optional && kernel->declared
            ? find_declared(kernel->declared, binding->set, binding->binding)
            : NULL;
    const bool sure = !optional || (declared && binding->element < declared->count);
    return sure && binding->access & BH_ACCESS_READ_WRITE && encoded->size == buffer->size;
}

/* Notes everything that a dispatch reads before anything that it writes, in whatever order the
 * bindings are given. If a buffer is bound both to be read and to be overwritten, the dispatch
 * reads the old content. */
static bool use_bindings(struct bhi_payload *payload, const bh_dispatch *command,
                         struct bh_buffer *const *buffers, const struct bhi_cmd_binding *encoded) {
    const uint32_t count = command->binding_count;
    for (uint32_t i = 0; i < count; i++) {
        if ((encoded[i].access & BH_ACCESS_READ) &&
            !bhi_encode_use(payload, buffers[i], true, false, false)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool whole =
            overwrites(command->kernel, &command->bindings[i], &encoded[i], buffers[i]);
        if ((encoded[i].access & BH_ACCESS_WRITE) &&
            !bhi_encode_use(payload, buffers[i], encoded[i].access & BH_ACCESS_READ, true, whole)) {
            return false;
        }
    }
    return true;
}

/* Writes the threads of a block, and its shared memory: none, unless the kernel is an image. */
static bh_status add_block(struct bhi_encoder *encoder, const bh_dispatch *command,
                           struct bhi_cmd_dispatch *out) {
    const struct bh_kernel *kernel = command->kernel;
    const bool given = command->block[0] || command->block[1] || command->block[2];
    const uint32_t *block = given ? command->block : kernel->block;
    if (!is_image(kernel)) {
        return !given && !command->shared_bytes
                   ? BH_OK
                   : refuse_kernel(encoder, BH_REASON_BLOCK, kernel,
                                   "is SPIR-V, whose module says how large a workgroup is");
    }
    for (int axis = 0; axis < 3; axis++) {
        if (!block[axis]) {
            return refuse_kernel(encoder, BH_REASON_BLOCK, kernel,
                                 BHI_SAY("is a CUDA kernel: a launch says how many threads a block "
                                         "has, and this one has 0 in %c",
                                         "xyz"[axis]));
        }
    }
    out->block_x = block[0];
    out->block_y = block[1];
    out->block_z = block[2];
    out->shared_bytes = command->shared_bytes ? command->shared_bytes : kernel->shared_bytes;
    return BH_OK;
}

static bh_status add_dispatch(struct bhi_encoder *encoder, const bh_dispatch *command,
                              bh_context *context) {
    if (!BHI_LIVE(command->kernel)) {
        return REFUSE(encoder, "kernel", "kernel is NULL or was released");
    }
    if (command->kernel->context != context) {
        return REFUSE(encoder, "kernel", "the kernel belongs to another context");
    }
    for (int axis = 0; axis < 3; axis++) {
        if (!command->groups[axis]) {
            return REFUSE(encoder, "groups", "groups[%d] is 0", axis);
        }
    }
    if (command->binding_count && !command->bindings) {
        return REFUSE(encoder, "bindings", "bindings is NULL, binding_count %u",
                      command->binding_count);
    }
    if (command->binding_count > BHI_MAX_BINDINGS) {
        return REFUSE(encoder, "binding_count", "binding_count %u is over %u",
                      command->binding_count, BHI_MAX_BINDINGS);
    }
    if (command->push_size && !command->push) {
        return REFUSE(encoder, "push", "push is NULL, push_size %u", command->push_size);
    }
    if (command->push_size > MAX_PUSH || command->push_size % 4) {
        return REFUSE(encoder, "push_size", "push_size %u is not a multiple of 4 up to %u",
                      command->push_size, MAX_PUSH);
    }
    size_t size = bhi_cmd_dispatch_size(command->binding_count, command->push_size);
    uint8_t *at = bhi_encode_append(encoder->payload, size);
    if (!at) {
        return no_memory(encoder);
    }
    BHI_TRY(use_kernel(encoder, command->kernel));
    struct bhi_cmd_dispatch *dispatch = (struct bhi_cmd_dispatch *)(void *)at;
    dispatch->header = (struct bhi_cmd_header){.type = BHI_CMD_DISPATCH, .size = (uint32_t)size};
    dispatch->kernel = command->kernel->body->id;
    dispatch->groups_x = command->groups[0];
    dispatch->groups_y = command->groups[1];
    dispatch->groups_z = command->groups[2];
    dispatch->binding_count = command->binding_count;
    dispatch->push_size = command->push_size;
    BHI_TRY(add_block(encoder, command, dispatch));
    struct bhi_cmd_binding *bindings = (struct bhi_cmd_binding *)(void *)(at + sizeof *dispatch);
    struct bh_buffer *buffers[BHI_MAX_BINDINGS];
    for (uint32_t i = 0; i < command->binding_count; i++) {
        BHI_TRY(add_binding(encoder, command->kernel, &command->bindings[i], &bindings[i],
                            &buffers[i], context));
        for (uint32_t j = 0; j < i; j++) {
            if (bindings[j].set == bindings[i].set && bindings[j].binding == bindings[i].binding &&
                bindings[j].element == bindings[i].element) {
                return REFUSE(encoder, encoder->buffer_place, "%s is given twice",
                              encoder->buffer_place);
            }
        }
    }
    if (!use_bindings(encoder->payload, command, buffers, bindings)) {
        return no_memory(encoder);
    }
    if (command->push_size) {
        memcpy(at + sizeof *dispatch + command->binding_count * sizeof *bindings, command->push,
               command->push_size);
    }
    return BH_OK;
}

/* Checks a range, and replaces BH_WHOLE_SIZE in |*size| by the number of bytes, and |*inout| by
 * what the submission uses for that buffer. */
static bh_status check_range(struct bhi_encoder *encoder, struct bh_buffer **inout, uint64_t offset,
                             uint64_t *size, bool writes, const char *what, bh_context *context) {
    const struct bh_buffer *buffer = *inout;
    if (!BHI_LIVE(buffer)) {
        return REFUSE(encoder, what, "%s is NULL or was released", what);
    }
    if (buffer->context != context) {
        return REFUSE(encoder, what, "%s belongs to another context", what);
    }
    BHI_TRY(check_memory(encoder, inout, writes, what));
    if (*size == BH_WHOLE_SIZE && offset < buffer->size) {
        *size = buffer->size - offset;
    }
    if (!*size) {
        return REFUSE(encoder, "size", "size is 0 (of %s)", what);
    }
    if (*size == BH_WHOLE_SIZE) {
        return REFUSE(encoder, what, "offset %llu leaves no bytes of %s of %llu bytes",
                      (unsigned long long)offset, what, (unsigned long long)buffer->size);
    }
    if (offset > buffer->size || *size > buffer->size - offset) {
        return REFUSE(encoder, what, "offset %llu and size %llu do not fit %s of %llu bytes",
                      (unsigned long long)offset, (unsigned long long)*size, what,
                      (unsigned long long)buffer->size);
    }
    return BH_OK;
}

static bh_status add_copy(struct bhi_encoder *encoder, const bh_copy *command,
                          bh_context *context) {
    uint64_t size = command->size;
    struct bh_buffer *src = command->src, *dst = command->dst;
    BHI_TRY(check_range(encoder, &src, command->src_offset, &size, false, "src", context));
    BHI_TRY(check_range(encoder, &dst, command->dst_offset, &size, true, "dst", context));
    if (command->src == command->dst && command->src_offset < command->dst_offset + size &&
        command->dst_offset < command->src_offset + size) {
        return REFUSE(encoder, "dst", "src and dst overlap in one buffer");
    }
    struct bhi_cmd_copy *copy = bhi_encode_append(encoder->payload, sizeof *copy);
    if (!copy) {
        return no_memory(encoder);
    }
    *copy = (struct bhi_cmd_copy){
        .header = {.type = BHI_CMD_COPY, .size = sizeof *copy},
        .src = src->id,
        .dst = dst->id,
        .src_offset = command->src_offset,
        .dst_offset = command->dst_offset,
        .bytes = size,
    };
    bool whole = size == dst->size;
    return bhi_encode_use(encoder->payload, src, true, false, false) &&
                   bhi_encode_use(encoder->payload, dst, false, true, whole)
               ? BH_OK
               : no_memory(encoder);
}

static bh_status add_fill(struct bhi_encoder *encoder, const bh_fill *command,
                          bh_context *context) {
    uint64_t size = command->size;
    struct bh_buffer *dst = command->dst;
    BHI_TRY(check_range(encoder, &dst, command->offset, &size, true, "dst", context));
    if (command->offset % 4 || size % 4) {
        return REFUSE(encoder, "offset",
                      "a fill's offset %llu and size %llu must be multiples of 4",
                      (unsigned long long)command->offset, (unsigned long long)size);
    }
    struct bhi_cmd_fill *fill = bhi_encode_append(encoder->payload, sizeof *fill);
    if (!fill) {
        return no_memory(encoder);
    }
    *fill = (struct bhi_cmd_fill){
        .header = {.type = BHI_CMD_FILL, .size = sizeof *fill},
        .dst = dst->id,
        .dst_offset = command->offset,
        .bytes = size,
        .value = command->value,
    };
    bool whole = size == dst->size;
    return bhi_encode_use(encoder->payload, dst, false, true, whole) ? BH_OK : no_memory(encoder);
}

bh_status bhi_encode_prepare(struct bhi_encoder *encoder, struct bh_kernel *kernel) {
    struct bhi_cmd_prepare *prepare = bhi_encode_append(encoder->payload, sizeof *prepare);
    if (!prepare) {
        return no_memory(encoder);
    }
    BHI_TRY(use_kernel(encoder, kernel));
    *prepare = (struct bhi_cmd_prepare){
        .header = {.type = BHI_CMD_PREPARE, .size = sizeof *prepare},
        .kernel = kernel->body->id,
    };
    return BH_OK;
}

bh_status bhi_encode_command(struct bhi_encoder *encoder, const bh_command *command,
                             bh_context *context) {
    switch (command->type) {
    case BH_COMMAND_DISPATCH:
        return add_dispatch(encoder, &command->dispatch, context);
    case BH_COMMAND_COPY:
        return add_copy(encoder, &command->copy, context);
    case BH_COMMAND_FILL:
        return add_fill(encoder, &command->fill, context);
    }
    return REFUSE(encoder, "type", "type %d is not a bh_command_type", command->type);
}
