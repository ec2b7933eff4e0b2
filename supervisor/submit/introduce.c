#include "supervisor/submit/introduce.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/attach.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/buffer/retention.h"
#include "supervisor/file/file.h"
#include "supervisor/kernel/cache_queue.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP                                                                                      \
    8u /* bytes of an identity that all caches of a tenant, device and driver begin with */

/* Returns a duplicate for the worker, or -errno. */
static int copy_fd(int fd) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

/* A worker is making or clearing the memory. Until it has answered, no other worker can have it. */
static int await_maker(struct bhi_worker *maker) {
    maker->makes_awaited = true;
    maker->core.core->ops->notify(&maker->core);
    return EAGAIN;
}

/* Tells the worker to import memory that is there. */
static int import_device(const struct bh_buffer *buffer, struct bhi_outgoing **out) {
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_BUFFER_IMPORT);
    if (!outgoing || (outgoing->fd = copy_fd(buffer->device->block->fd)) < 0) {
        return bhi_outgoing_drop(outgoing);
    }
    outgoing->message.buffer_import.buffer = buffer->id;
    outgoing->message.buffer_import.size = buffer->size;
    *out = outgoing;
    return 0;
}

/* The first worker that needs device memory makes it, or clears what another buffer has left in it
 * (D3). If it cannot, it gets a second request, for which there is memory from now on. */
static int ask_for_device(struct bhi_worker *worker, struct bh_buffer *buffer,
                          struct bhi_outgoing *import) {
    struct bhi_device_memory *memory = buffer->device;
    const bool clears = memory->state == BHI_DEVICE_STALE;
    struct bhi_outgoing *outgoing =
        bhi_outgoing_new(clears ? BHI_MSG_BUFFER_CLEAR : BHI_MSG_BUFFER_MAKE);
    struct bhi_outgoing *second = bhi_outgoing_new(BHI_MSG_BUFFER_MAKE);
    struct bhi_make *make = calloc(1, sizeof *make);
    if (!outgoing || !second || !make) {
        (void)bhi_outgoing_drop(outgoing);
        (void)bhi_outgoing_drop(second);
        free(make);
        return ENOMEM;
    }
    if (clears) {
        outgoing->message.buffer_clear.buffer = buffer->id;
    } else {
        outgoing->message.buffer_make.buffer = buffer->id;
        outgoing->message.buffer_make.size = buffer->size;
        memcpy(memory->block->device, bhi_stream_of(worker->core.stream)->runs_on.uuid,
               sizeof memory->block->device);
    }
    if (import) {
        bhi_outbox_add(worker, import);
    }
    bhi_outbox_add(worker, outgoing);
    *make = (struct bhi_make){.buffer = buffer->id,
                              .size = buffer->size,
                              .worker = worker,
                              .control = worker->control_sent,
                              .clears = clears,
                              .second = second,
                              .memory = memory};
    bhi_list_init(&make->link);
    bhi_list_append(&worker->makes, &make->link);
    worker->owes_since_ns = bhi_now_ns();
    memory->state = clears ? BHI_DEVICE_CLEARING : BHI_DEVICE_MAKING;
    memory->make = make;
    return 0;
}

static int introduce_device(struct bhi_worker *worker, struct bh_buffer *buffer,
                            const struct bhi_use *use) {
    struct bhi_device_memory *memory = buffer->device;
    if (bhi_pool_await_writes(memory->block)) {
        return EAGAIN; /* until the burial, which pumps all streams */
    }
    /* Users on other streams have ended, since this one writes. What also reads was queued before
     * the content was found lost: new memory would be no content, so it finds that out by itself. */
    if (memory->bad && use->writes && !use->reads) {
        if (!bhi_list_empty(&worker->core.inflight)) {
            return EAGAIN;
        }
        bhi_pool_renew(memory->block, NULL);
        memory->state = BHI_DEVICE_UNMADE;
        memory->bad = false;
    }
    const bool has_it = bhi_idset_has(&worker->buffers, buffer->id);
    if (memory->make) {
        const bool makes_it = memory->make->worker == worker && has_it;
        return makes_it ? 0 : await_maker(memory->make->worker);
    }
    if (memory->state == BHI_DEVICE_STALE && !bhi_pool_is_safe(memory->block, worker)) {
        bhi_pool_renew(memory->block, NULL);
        memory->state = BHI_DEVICE_UNMADE;
    }
    const bool made = memory->state == BHI_DEVICE_MADE;
    const bool imports = memory->state != BHI_DEVICE_UNMADE && !has_it;
    if (made && !imports) {
        return 0;
    }
    if (!bhi_idset_reserve(&worker->buffers, 1) || !bhi_pool_expose(memory->block, worker, true)) {
        return ENOMEM;
    }
    struct bhi_outgoing *import = NULL;
    int error = imports ? import_device(buffer, &import) : 0;
    if (!error && !made) {
        error = ask_for_device(worker, buffer, import);
    } else if (!error) {
        bhi_outbox_add(worker, import);
    }
    if (error) {
        (void)bhi_outgoing_drop(import);
        return error;
    }
    bhi_idset_add(&worker->buffers, buffer->id);
    return 0;
}

/* A worker that only reads a buffer gets a read-only descriptor (B5). The first submission that
 * writes the buffer has it attached again as writable, in the order of the lane. It is also
 * attached again for the first submission after its content ceased to be constant: the worker may
 * use a copy of the constant content, which it drops then. */
static int introduce_buffer(struct bhi_worker *worker, const struct bhi_use *use) {
    struct bh_buffer *buffer = BHI_CONTAINER(use->content, struct bh_buffer, content);
    const bool writes = use->writes;
    if (bhi_buffer_remote(buffer)) {
        return introduce_device(worker, buffer, use);
    }
    bool constant = !writes && bhi_buffer_constant(buffer);
    bool outdated = !constant && bhi_idset_has(&worker->constants, buffer->id);
    /* A loader detaches a buffer when it has filled it. */
    const bool used_once = worker->kind == BHI_WORKER_LOADER;
    if (bhi_idset_has(writes ? &worker->written : &worker->buffers, buffer->id) && !outdated &&
        !used_once) {
        return 0;
    }
    if (bhi_retention_off() && buffer->pooled && !buffer->block) {
        return 0; /* the block was given away: the worker must not get it */
    }
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_BUFFER_ATTACH);
    if (!outgoing) {
        return ENOMEM;
    }
    outgoing->message.buffer_attach.buffer = buffer->id;
    outgoing->message.buffer_attach.size = bhi_buffer_attached_bytes(buffer);
    outgoing->message.buffer_attach.access = writes     ? BHI_ATTACH_WRITE
                                             : constant ? BHI_ATTACH_CONSTANT
                                                        : BHI_ATTACH_READ;
    outgoing->fd = writes ? copy_fd(buffer->fd) : bhi_memfd_read_only(buffer->fd);
    if (outgoing->fd < 0 || !bhi_idset_reserve(&worker->buffers, 1) ||
        (writes && !bhi_idset_reserve(&worker->written, 1)) ||
        (constant && !bhi_idset_reserve(&worker->constants, 1)) ||
        (buffer->block && !bhi_pool_expose(buffer->block, worker, writes))) {
        return bhi_outgoing_drop(outgoing);
    }
    if (!bhi_idset_has(&worker->buffers,
                       buffer->id)) { /* a buffer that is attached again is unmapped first */
        bhi_address_space_add(&worker->space, worker->core.pid,
                              outgoing->message.buffer_attach.size);
    }
    bhi_idset_add(&worker->buffers, buffer->id);
    if (writes) {
        bhi_idset_add(&worker->written, buffer->id);
    }
    if (constant) {
        bhi_idset_add(&worker->constants, buffer->id);
    } else {
        bhi_idset_remove(&worker->constants, buffer->id);
    }
    bhi_outbox_add(worker, outgoing);
    return 0;
}

int bhi_introduce_kernel(struct bhi_worker *worker, const struct bhi_kernel_body *body,
                         const char name[64], uint64_t seq) {
    struct bhi_list messages;
    bhi_list_init(&messages);
    bool ok = true;
    for (uint32_t i = 0; ok && i < body->specialization_count; i++) {
        struct bhi_outgoing *spec = bhi_outgoing_new(BHI_MSG_KERNEL_SPEC);
        ok = spec;
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
    struct bhi_outgoing *create = ok ? bhi_outgoing_new(BHI_MSG_KERNEL_CREATE) : NULL;
    if (create) {
        create->fd = bhi_kernel_body_descriptor(body);
        bhi_list_append(&messages, &create->link);
    }
    if (!create || create->fd < 0 ||
        !bhi_worker_kernels_add(&worker->kernels, body->id, body->code_size,
                                body->format == BHI_KERNEL_IMAGE, seq)) {
        const int error = create && create->fd < 0 ? -create->fd : ENOMEM;
        if (create) {
            bhi_fd_close(&create->fd);
        }
        BHI_LIST_EACH_SAFE(node, &messages)
        free(BHI_CONTAINER(node, struct bhi_outgoing, link));
        return error;
    }
    struct bhi_msg_kernel_create *message = &create->message.kernel_create;
    message->kernel = body->id;
    message->format = body->format;
    message->code_bytes = body->code_size;
    message->spec_count = body->specialization_count;
    message->trusted = body->trusted;
    message->noise = body->noise;
    memcpy(message->hash, body->hash, sizeof message->hash);
    strcpy(message->entry, body->entry);
    memcpy(message->name, name, sizeof message->name);
    BHI_LIST_EACH_SAFE(node, &messages) {
        bhi_list_remove(node);
        bhi_outbox_add(worker, BHI_CONTAINER(node, struct bhi_outgoing, link));
    }
    return 0;
}

/* |seq|: the number of the submission that uses it. */
static int introduce_kernel(struct bhi_worker *worker, const struct bh_kernel *kernel,
                            uint64_t seq) {
    const struct bhi_kernel_body *body = kernel->body;
    if (bhi_worker_kernels_use(&worker->kernels, body->id, seq)) {
        return 0;
    }
    if (bhi_retention_off() && !bhi_handle_live(&kernel->handle)) {
        return 0;
    }
    const int error = bhi_introduce_kernel(worker, body, kernel->name, seq);
    worker->context->kernels->introduced += !error;
    return error;
}

/* Makes the worker forget kernels until it has no more than the limit; never one that its lane
 * needs. */
static void forget_unused_kernels(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    for (uint64_t id; (id = bhi_worker_kernels_victim(
                           &worker->kernels, context->settings.kernel_limit,
                           context->settings.kernel_limit_bytes, worker->core.harvested)) &&
                      bhi_worker_forget_kernel(worker, id);) {
        context->kernels->evicted++;
    }
}

/* Everything that the driver's result may depend on. The version is in it because another version
 * may give the driver another module for the same kernel. */
static void identify(uint8_t out[32], const char *tenant, const struct bhi_msg_device *device,
                     const uint8_t hash[32]) {
    static const unsigned char domain[] = "bulkhead pipeline cache 2";
    const uint32_t numbers[] = {BH_VERSION,          device->vendor_id,
                                device->device_id,   device->driver_version,
                                device->api_version, (uint32_t)strlen(tenant)};
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, 32);
    crypto_generichash_update(&state, domain, sizeof domain);
    crypto_generichash_update(&state, (const unsigned char *)numbers, sizeof numbers);
    crypto_generichash_update(&state, device->uuid, sizeof device->uuid);
    crypto_generichash_update(&state, device->cache_uuid, sizeof device->cache_uuid);
    crypto_generichash_update(&state, (const unsigned char *)tenant, strlen(tenant));
    crypto_generichash_state whole = state;
    crypto_generichash_update(&whole, hash, 32);
    uint8_t group[32];
    crypto_generichash_final(&state, group, sizeof group);
    crypto_generichash_final(&whole, out, 32);
    memcpy(out, group, GROUP);
}

static bool may_load(const struct bhi_worker *worker, const struct bhi_payload *payload) {
    return worker->context->cache_queue->open && worker->kind == BHI_WORKER_DEVICE &&
           worker->core.stream && !worker->cache.requested && !worker->context->closed &&
           !worker->core.past.code && payload->kernel_count == 1;
}

bool bhi_introduce_cache(struct bhi_worker *worker, const struct bhi_submission *submission,
                         enum bhi_apart apart) {
    const struct bhi_payload *payload = bhi_payload_of(submission);
    const struct bhi_msg_device *device = bhi_worker_chosen_device(worker);
    if (device && apart == BHI_APART_NOT && may_load(worker, payload)) {
        struct bhi_worker_cache *cache = &worker->cache;
        const struct bhi_kernel_body *body = payload->kernels[0]->body;
        struct bhi_cache_job job = {.worker = worker, .area = -1};
        snprintf(cache->tenant, sizeof cache->tenant, "%s",
                 bhi_stream_of(worker->core.stream)->tenant);
        identify(cache->identity, cache->tenant, device, body->hash);
        cache->code = bhi_kernel_body_code(body);
        memcpy(job.identity, cache->identity, sizeof job.identity);
        memcpy(job.tenant, cache->tenant, sizeof job.tenant);
        cache->requested = true;
        bhi_worker_retain(worker);
        if (bhi_cache_queue_push(worker->context->cache_queue, BHI_CACHE_LOAD, &job)) {
            cache->state = BHI_CACHE_WAITING;
        } else {
            bhi_worker_release(worker);
        }
    }
    return worker->cache.state == BHI_CACHE_WAITING && payload->kernel_count;
}

static int introduce_file(struct bhi_worker *worker, const struct bhi_file *file) {
    if (bhi_idset_has(&worker->files, file->info.file)) {
        return 0;
    }
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_FILE_ATTACH);
    if (!outgoing || (outgoing->fd = copy_fd(file->socket)) < 0 ||
        !bhi_idset_reserve(&worker->files, 1)) {
        return bhi_outgoing_drop(outgoing);
    }
    outgoing->message.file_attach = file->info;
    bhi_idset_add(&worker->files, file->info.file);
    bhi_outbox_add(worker, outgoing);
    return 0;
}

int bhi_introduce(struct bhi_worker *worker, const struct bhi_payload *payload, uint64_t seq) {
    const struct bhi_submission *submission = &payload->submission;
    int error = 0;
    for (uint32_t i = 0; !error && i < payload->kernel_count; i++) {
        error = introduce_kernel(worker, payload->kernels[i], seq);
    }
    if (!error) {
        forget_unused_kernels(worker);
    }
    for (uint32_t i = 0; !error && i < submission->use_count; i++) {
        error = introduce_buffer(worker, &submission->uses[i]);
    }
    if (!error && payload->file) {
        error = introduce_file(worker, payload->file);
    }
    return error;
}
