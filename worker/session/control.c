#include "worker/session/internal.h"

#include "base/memfd.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/title.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEND_PATIENCE_NS (10u * UINT64_C(1000000000))
#define SEND_PAUSE_NS    UINT64_C(200000)

/* Returns the descriptor that was sent before a message about |id|; -1 if there is none, or it is
 * for another id. */
static int take_descriptor(struct bhi_session *s, uint32_t type, uint64_t id) {
    struct bhi_fd_tag tag;
    int fds[1] = {-1};
    size_t count = 1;
    int length;
    do {
        length = bhi_fdpass_recv(s->config.fdpass, &tag, sizeof tag, fds, &count, 0);
    } while (length == -EINTR);
    if (length == (int)sizeof tag && count == 1 && tag.magic == BHI_WIRE_MAGIC &&
        tag.type == type && tag.id == id) {
        return fds[0];
    }
    if (length >= 0 && count == 1) {
        close(fds[0]);
    }
    return -1;
}

static int create_kernel(struct bhi_session *s, const struct bhi_msg_kernel_create *message,
                         int fd) {
    void *code = MAP_FAILED;
    if (message->spec_count == s->constant_count &&
        (s->constant_count == 0 || s->constants_kernel == message->kernel) &&
        bhi_memfd_verify(fd, message->code_bytes, 0) == 0) {
        code = mmap(NULL, message->code_bytes, PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (code == MAP_FAILED) {
        return BHI_EXIT_SUPERVISOR;
    }
    bhi_backend_kernel_create(s->backend, message, code, s->constants, s->constant_count);
    munmap(code, message->code_bytes);
    s->constant_count = 0;
    return 0;
}

static int add_constant(struct bhi_session *s, const struct bhi_msg_kernel_spec *message) {
    if (message->index != s->constant_count || /* which also bounds it: messages.def */
        (message->index > 0 && s->constants_kernel != message->kernel)) {
        return BHI_EXIT_SUPERVISOR;
    }
    s->constants_kernel = message->kernel;
    s->constants[s->constant_count++] = (struct bhi_spec_constant){
        .constant_id = message->constant_id, .size = message->size, .bits = message->bits};
    return 0;
}

static void ring(struct bhi_session *s) {
    const uint64_t one = 1;
    (void)!write(s->config.doorbell, &one, sizeof one);
}

/* Sends a tag with descriptors. |rings|: if the socket is full, the doorbell makes the supervisor
 * read. */
static int send_tag(struct bhi_session *s, const struct bhi_fd_tag *tag, const int *fds,
                    size_t count, bool rings) {
    const _Atomic uint32_t *doorbell = &s->config.lane->header->doorbell;
    const uint64_t deadline = bhi_deadline_ns(SEND_PATIENCE_NS);
    int error;
    while (bhi_fdpass_is_late(
               error = bhi_fdpass_send(s->config.fdpass, tag, sizeof *tag, fds, count)) &&
           bhi_now_ns() < deadline) {
        if (rings) {
            ring(s);
        }
        (void)bhi_futex_wait(doorbell, atomic_load_explicit(doorbell, memory_order_relaxed), true,
                             bhi_deadline_ns(SEND_PAUSE_NS));
    }
    return error;
}

/* The supervisor reads answers at the latest after it has seen a record end. */
static int send_answer(struct bhi_session *s, const struct bhi_fd_tag *tag, int fd) {
    return send_tag(s, tag, &fd, fd >= 0, true) == 0 ? 0 : BHI_EXIT_SUPERVISOR;
}

static void attach(struct bhi_session *s, const struct bhi_msg_buffer_attach *message, int fd) {
    const enum bhi_attach access = (enum bhi_attach)message->access;
    if (s->loader) {
        bhi_loader_attach(s->loader, message->buffer, fd, message->size);
    } else if (s->compiler) {
        bhi_compiler_attach(s->compiler, message->buffer, fd, message->size, access);
    } else {
        bhi_backend_attach(s->backend, message->buffer, fd, message->size, access);
    }
}

/* Makes the memory, or returns -1. Other workers may have been told to give some up. */
static int try_to_make(struct bhi_session *s, const struct bhi_msg_buffer_make *message) {
    const _Atomic uint32_t *doorbell = &s->config.lane->header->doorbell;
    const uint64_t deadline = bhi_deadline_ns(message->patience_ms * UINT64_C(1000000));
    int fd;
    while ((fd = bhi_backend_make(s->backend, message->buffer, message->size)) < 0 &&
           bhi_backend_is_full(s->backend, message->buffer) && bhi_now_ns() < deadline) {
        (void)bhi_futex_wait(doorbell, atomic_load_explicit(doorbell, memory_order_relaxed), true,
                             bhi_deadline_ns(SEND_PAUSE_NS));
    }
    return fd;
}

/* The supervisor is told that there is no memory, and answers with the last request. */
static void owe(struct bhi_session *s) {
    s->requests_owed++;
    ring(s);
}

static void settle_request(struct bhi_session *s, bool last) {
    if (last && s->requests_owed > 0) {
        s->requests_owed--;
    }
}

/* The answer is sent before the record ends: the supervisor looks for it when it sees the end of a
 * record that used the buffer. */
static int make(struct bhi_session *s, const struct bhi_msg_buffer_make *message) {
    const struct bhi_fd_tag tag = {
        .magic = BHI_WIRE_MAGIC, .type = BHI_MSG_BUFFER_MAKE, .id = message->buffer};
    settle_request(s, message->last);
    int fd = try_to_make(s, message);
    const int error = send_answer(s, &tag, fd);
    if (fd < 0 && !message->last) {
        owe(s);
    }
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

static int clear(struct bhi_session *s, const struct bhi_msg_buffer_clear *message) {
    const bool cleared = bhi_backend_clear(s->backend, message->buffer);
    const struct bhi_fd_tag tag = {.magic = BHI_WIRE_MAGIC,
                                   .type = cleared ? BHI_MSG_BUFFER_CLEAR : BHI_MSG_BUFFER_MAKE,
                                   .id = message->buffer};
    const int error = send_answer(s, &tag, -1);
    if (!cleared) {
        owe(s);
    }
    return error;
}

static void detach(struct bhi_session *s, const struct bhi_msg_buffer_detach *message) {
    if (s->loader) {
        bhi_loader_detach(s->loader, message->buffer);
    } else if (s->compiler) {
        bhi_compiler_detach(s->compiler, message->buffer);
    } else {
        settle_request(s, message->instead);
        bhi_backend_detach(s->backend, message->buffer);
    }
}

static int import(struct bhi_session *s, const struct bhi_msg_import *request, int fd) {
    struct bhi_message answer = {.type = BHI_MSG_IMPORTED};
    answer.imported.worker = request->worker;
    answer.imported.vk_result =
        bhi_sentinel_device_import(s->sentinel, request->worker, fd, request->bytes);
    return bhi_session_send(s, &answer);
}

static int set_words(struct bhi_session *s, const struct bhi_msg_set *request) {
    struct bhi_message answer = {.type = BHI_MSG_WORDS_SET};
    answer.words_set.worker = request->worker;
    answer.words_set.vk_result = bhi_sentinel_device_set(s->sentinel, request->worker);
    const int err = bhi_session_send(s, &answer);
    /* A sentinel that can no longer set words exits, so that another one is started. */
    return err != 0 ? err : answer.words_set.vk_result != 0 ? BHI_EXIT_DEVICE_LOST : 0;
}

/* A kernel is compiled before anybody needs it. The answer comes after all that the supervisor may
 * want of a worker that it ends: its reflection, and what the pipeline cache gains. */
static int learn(struct bhi_session *s, const struct bhi_msg_learn *request) {
    struct bhi_error error = {.status = BH_OK};
    struct bhi_message answer = {.type = BHI_MSG_LEARNED, .learned = {.kernel = request->kernel}};
    if (!bhi_backend_learn(s->backend, request->kernel, &error)) {
        answer.learned.status = error.status;
    }
    int err = bhi_session_send_reflections(s);
    bhi_backend_cache_save(s->backend, true);
    if (err == 0) {
        err = bhi_session_send(s, &answer);
    }
    return err != 0 ? err : error.status == BH_DEVICE_LOST ? BHI_EXIT_DEVICE_LOST : 0;
}

static void serve(const struct bhi_msg_serve *message) {
    char name[sizeof "bh:" + sizeof message->stream];
    char line[sizeof "worker of " + sizeof message->stream];
    snprintf(name, sizeof name, "bh:%s", message->stream);
    snprintf(line, sizeof line, "worker of %s", message->stream);
    bhi_title_set(name, line);
}

/* Which workers take a message, and where the id of the descriptor is that comes with it; 0: none
 * comes. */
#define BY(kind)           (1u << BHI_WORKER_##kind)
#define ID(message, field) offsetof(struct bhi_message, message.field)
static const struct taker {
    uint32_t type, kinds;
    size_t id;
} takers[] = {
    {BHI_MSG_KERNEL_SPEC, BY(DEVICE), 0},
    {BHI_MSG_KERNEL_CREATE, BY(DEVICE), ID(kernel_create, kernel)},
    {BHI_MSG_KERNEL_DESTROY, BY(DEVICE), 0},
    {BHI_MSG_BUFFER_ATTACH, BY(DEVICE) | BY(LOADER) | BY(COMPILER), ID(buffer_attach, buffer)},
    {BHI_MSG_BUFFER_DETACH, BY(DEVICE) | BY(LOADER) | BY(COMPILER), 0},
    {BHI_MSG_BUFFER_MAKE, BY(DEVICE), 0},
    {BHI_MSG_BUFFER_CLEAR, BY(DEVICE), 0},
    {BHI_MSG_BUFFER_IMPORT, BY(DEVICE), ID(buffer_import, buffer)},
    {BHI_MSG_CACHE_ATTACH, BY(DEVICE), ID(cache_attach, cache)},
    {BHI_MSG_SERVE, BY(DEVICE), 0},
    {BHI_MSG_LEARN, BY(DEVICE), 0},
    {BHI_MSG_FILE_ATTACH, BY(LOADER), ID(file_attach, file)},
    {BHI_MSG_FILE_DETACH, BY(LOADER), 0},
    {BHI_MSG_IMPORT, BY(SENTINEL), ID(import, worker)},
    {BHI_MSG_SET, BY(SENTINEL), 0},
    {BHI_MSG_FORGET, BY(SENTINEL), 0},
};

static const struct taker *find_taker(const struct bhi_session *s, uint32_t type) {
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (takers[i].type == type && takers[i].kinds >> s->config.kind & 1) {
            return &takers[i];
        }
    }
    return NULL;
}

static int handle(struct bhi_session *s, const struct bhi_message *message) {
    const struct taker *taker = find_taker(s, message->type);
    int fd = -1;
    if (taker && taker->id) {
        uint64_t id;
        memcpy(&id, (const char *)message + taker->id, sizeof id);
        fd = take_descriptor(s, message->type, id);
    }
    if (!taker || (taker->id && fd < 0)) {
        return BHI_EXIT_SUPERVISOR;
    }
    switch (message->type) {
    case BHI_MSG_KERNEL_SPEC:
        return add_constant(s, &message->kernel_spec);
    case BHI_MSG_KERNEL_CREATE:
        return create_kernel(s, &message->kernel_create, fd);
    case BHI_MSG_KERNEL_DESTROY:
        bhi_backend_kernel_destroy(s->backend, message->kernel_destroy.kernel);
        break;
    case BHI_MSG_BUFFER_ATTACH:
        attach(s, &message->buffer_attach, fd);
        break;
    case BHI_MSG_BUFFER_DETACH:
        detach(s, &message->buffer_detach);
        break;
    case BHI_MSG_BUFFER_MAKE:
        return make(s, &message->buffer_make);
    case BHI_MSG_BUFFER_CLEAR:
        return clear(s, &message->buffer_clear);
    case BHI_MSG_BUFFER_IMPORT:
        bhi_backend_import(s->backend, message->buffer_import.buffer, fd,
                           message->buffer_import.size);
        break;
    case BHI_MSG_CACHE_ATTACH:
        bhi_backend_cache_attach(s->backend, fd, message->cache_attach.room);
        break;
    case BHI_MSG_SERVE:
        serve(&message->serve);
        break;
    case BHI_MSG_LEARN:
        return learn(s, &message->learn);
    case BHI_MSG_FILE_ATTACH:
        bhi_loader_attach_file(s->loader, &message->file_attach, fd);
        break;
    case BHI_MSG_FILE_DETACH:
        bhi_loader_detach_file(s->loader, message->file_detach.file);
        break;
    case BHI_MSG_IMPORT:
        return import(s, &message->import, fd);
    case BHI_MSG_SET:
        return set_words(s, &message->set);
    default: /* BHI_MSG_FORGET */
        bhi_sentinel_device_forget(s->sentinel, message->forget.worker);
        break;
    }
    return 0;
}

int bhi_session_control(struct bhi_session *s) {
    struct bhi_message message;
    int error;
    do {
        error = bhi_channel_recv(s->config.channel, BHI_S2W, BHI_WS_ANY, -1, &message, NULL, 0);
    } while (error == -EAGAIN || error == -EINTR);
    if (error != 0) {
        return BHI_EXIT_SUPERVISOR;
    }
    s->control_handled++;
    return handle(s, &message);
}

int bhi_session_send(struct bhi_session *s, const struct bhi_message *message) {
    const _Atomic uint32_t *doorbell = &s->config.lane->header->doorbell;
    const uint64_t deadline = bhi_deadline_ns(SEND_PATIENCE_NS);
    int error;
    while ((error = bhi_channel_send(s->config.channel, message)) == -EAGAIN &&
           bhi_now_ns() < deadline) {
        (void)bhi_futex_wait(doorbell, atomic_load_explicit(doorbell, memory_order_relaxed), true,
                             bhi_deadline_ns(SEND_PAUSE_NS));
    }
    return error == 0 ? 0 : BHI_EXIT_SUPERVISOR;
}

int bhi_session_send_reflections(struct bhi_session *s) {
    struct bhi_message info = {.type = BHI_MSG_KERNEL_INFO};
    while (bhi_backend_next_reflection(s->backend, &info.kernel_info, s->bindings)) {
        for (uint32_t i = 0; i < info.kernel_info.bindings; i++) {
            struct bhi_message binding = {.type = BHI_MSG_KERNEL_BINDING};
            binding.kernel_binding = s->bindings[i];
            if (bhi_session_send(s, &binding) != 0) {
                return BHI_EXIT_SUPERVISOR;
            }
        }
        if (bhi_session_send(s, &info) != 0) {
            return BHI_EXIT_SUPERVISOR;
        }
    }
    return 0;
}

int bhi_session_announce_words(struct bhi_session *s) {
    struct bhi_message message = {.type = BHI_MSG_WORDS};
    struct bhi_fd_tag tag = {.magic = BHI_WIRE_MAGIC, .type = BHI_MSG_WORDS};
    const int fd = bhi_backend_words(s->backend, &message.words.bytes);
    if (fd < 0) {
        return 0; /* a sentinel could not set its words */
    }
    const int err = send_tag(s, &tag, &fd, 1, false);
    close(fd);
    return err != 0 ? BHI_EXIT_START_FAILED : bhi_session_send(s, &message);
}
