/* What a compromised worker says and answers, and faults of session, compiler and loader. */
#include "faults.h"
#include "wrap.h"

#include "ipc/channel.h"
#include "ipc/fdpass.h"
#include "ipc/file_answer.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/glsl.h"
#include "worker/compiler/inspect.h"
#include "worker/compiler/nvrtc.h"
#include "worker/loader/header.h"
#include "worker/loader/loader.h"
#include "worker/loader/reads.h"
#include "worker/session/internal.h"
#include "worker/vulkan/backend.h"

#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOORBELL 4 /* a worker's descriptor of it (docs/sandbox.md) */

/* |what| is |value| where that fault is due. */
#define FALSIFY(fault, what, value)                                                                \
    do {                                                                                           \
        if (lies(fault)) {                                                                         \
            (what) = (value);                                                                      \
        }                                                                                          \
    } while (0)

/* -- control messages, and the descriptors beside them ---------------------------------------- */

WRAP(int, bhi_channel_send, struct bhi_channel *channel, const struct bhi_message *message) {
    struct bhi_message told = *message;
    int error = 0;
    if (call_fails(send)) {
        return -EPIPE;
    }
    if (told.type == BHI_MSG_HELLO && lies(token)) {
        told.hello.token[sizeof told.hello.token - 1] ^= 1;
    }
    if (told.type == BHI_MSG_HELLO && lies(hello)) {
        return -EPIPE;
    }
    if (told.type == BHI_MSG_WORDS && lies(words_size)) {
        told.words.bytes *= 4;
    }
    if (told.type == BHI_MSG_LEARNED) {
        FALSIFY(learned, told.learned.status, BH_OUT_OF_HOST_MEMORY);
        told.learned.kernel += lies(lie_learned);
        error = lies(lie_learned_twice) ? __real_bhi_channel_send(channel, &told) : 0;
    }
    return error != 0 ? error : __real_bhi_channel_send(channel, &told);
}

int __real_bhi_fdpass_send(int socket, const void *bytes, size_t length, const int *fds,
                           size_t fd_count);

static int send_words(int socket, const struct bhi_fd_tag *tag, int fd) {
    const bool none = lies(words_none), two = lies(words_two), other = lies(words_other);
    if (none) {
        return 0;
    }
    const int sent = other ? DOORBELL : fd;
    return __real_bhi_fdpass_send(socket, tag, sizeof *tag, (int[]){sent, sent}, two ? 2 : 1);
}

static int send_memory(int socket, struct bhi_fd_tag tag, const int *fds, size_t count) {
    int error = 0;
    const int null = STDIN_FILENO;
    tag.id += lies(lie_other);
    if (lies(lie_twice)) {
        error = __real_bhi_fdpass_send(socket, &tag, sizeof tag, fds, count);
    }
    if (lies(lie_socket)) {
        return __real_bhi_fdpass_send(socket, &tag, sizeof tag, &socket, 1);
    }
    if (lies(lie_silent)) {
        return 0;
    }
    if (lies(lie_null)) {
        return __real_bhi_fdpass_send(socket, &tag, sizeof tag, &null, 1);
    }
    return error != 0 ? error : __real_bhi_fdpass_send(socket, &tag, sizeof tag, fds, count);
}

WRAP(int, bhi_fdpass_send, int socket, const void *bytes, size_t length, const int *fds,
     size_t fd_count) {
    struct bhi_fd_tag tag = {0};
    if (length == sizeof tag) {
        memcpy(&tag, bytes, sizeof tag);
    }
    if (tag.magic == BHI_WIRE_MAGIC && tag.type == BHI_MSG_WORDS) {
        return send_words(socket, &tag, fds[0]);
    }
    if (tag.magic == BHI_WIRE_MAGIC &&
        (tag.type == BHI_MSG_BUFFER_MAKE || tag.type == BHI_MSG_BUFFER_CLEAR)) {
        return send_memory(socket, tag, fds, fd_count);
    }
    return __real_bhi_fdpass_send(socket, bytes, length, fds, fd_count);
}

/* The session that handles a message now, and whether it does not wait for what it has asked for. */
static struct bhi_session *session;
static bool hasty;

WRAP(int, bhi_session_control, struct bhi_session *s) {
    const uint32_t owed = s->requests_owed;
    const int doorbell = s->config.doorbell;
    session = s;
    const int error = __real_bhi_session_control(s);
    if (hasty) {
        s->requests_owed = owed;
        s->config.doorbell = doorbell;
        hasty = false;
    }
    return error;
}

WRAP(int, bhi_backend_make, struct bhi_backend *backend, uint64_t buffer, uint64_t size) {
    int fd = __real_bhi_backend_make(backend, buffer, size);
    if (fd >= 0 && lies(lie_nothing)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0 && session && lies(lie_hasty)) {
        session->config.doorbell = -1; /* nobody hears it ring */
        hasty = true;
    }
    return fd;
}

/* -- results ---------------------------------------------------------------------------------- */

void bht_lie_of_run(struct bhi_result *result) {
    FALSIFY(lie_deadline, result->status, BH_DEADLINE);
    if (lies(lie_invalid)) {
        result->status = BH_INVALID_KERNEL;
        result->executed = 0; /* no */
    }
    FALSIFY(lie_time, result->device_ns, result->ended_ns - result->started_ns + 1);
    FALSIFY(lie_negative, result->device_ns, (uint64_t)INT64_C(-1));
    FALSIFY(lie_load, result->status, BH_LOAD_FAILED);
    if (lies(lie_import)) {
        result->status = BH_VULKAN;
        result->bad_memory = UINT64_MAX;
    }
    FALSIFY(lie_device, result->status, BH_DEVICE_LOST);
}

WRAP(bool, bhi_backend_run, struct bhi_backend *backend,
     const struct bhi_lane_record *const *records, size_t count, struct bhi_result *results,
     struct bhi_error *errors) {
    const bool alive = __real_bhi_backend_run(backend, records, count, results, errors);
    for (size_t i = 0; i < count; i++) {
        bht_lie_of_run(&results[i]);
    }
    return alive;
}

static uint32_t first_command(const struct bhi_lane_record *record) {
    return bhi_record_first(record)->type;
}

WRAP(void, bhi_compiler_run, struct bhi_compiler *compiler, const struct bhi_lane_record *record,
     struct bhi_result *result, struct bhi_error *error) {
    if (first_command(record) == BHI_CMD_COMPILE) {
        passes(compile);
    } else if (first_command(record) == BHI_CMD_REFLECT) {
        passes(reflect);
    }
    __real_bhi_compiler_run(compiler, record, result, error);
    bht_lie_of_run(result);
}

/* -- records ---------------------------------------------------------------------------------- */

WRAP(bool, bhi_session_announce, struct bhi_session *s, uint64_t last) {
    _Atomic uint64_t *started = &s->config.progress->header->started_seq;
    for (uint64_t seq = s->next_seq; seq <= last; seq++) {
        atomic_store_explicit(started, seq, memory_order_release); /* as it takes one by one */
        passes(started);
        const bool dies = lies(lie_compile), hangs = lies(lie_pretend);
        if ((dies || hangs) && s->backend) {
            s->backend->calls.compiling(s, seq, false);
        }
        if (dies) {
            abort();
        }
        if (hangs) {
            bhi_fault_hang();
        }
    }
    return __real_bhi_session_announce(s, last);
}

/* After each batch: the next one is gathered as if none had taken long. */
WRAP(int, bhi_session_send_reflections, struct bhi_session *s) {
    FALSIFY(merge, s->record_ns, 0);
    return __real_bhi_session_send_reflections(s);
}

/* -- what a compiler answers ------------------------------------------------------------------ */

WRAP(bool, bhi_glsl_compile, struct shaderc_compiler *compiler, const struct bhi_glsl *glsl,
     struct bhi_compile_answer *answer, void *code, uint64_t room, struct bhi_error *error) {
    const bool good = __real_bhi_glsl_compile(compiler, glsl, answer, code, room, error);
    answer->code_bytes -= lies(lie_odd);
    FALSIFY(lie_huge, answer->code_bytes, UINT64_MAX);
    /* There was enough room: no honest answer needs more. */
    FALSIFY(lie_more, answer->code_bytes, room + 4);
    if (lies(lie_magic)) {
        memset(code, '\xff', 4);
    }
    if (lies(lie_log)) {
        answer->refused = UINT32_MAX;
        answer->log_bytes = UINT32_MAX;
        memset(answer->log, '\x1b', sizeof answer->log);
    }
    passes(compiled);
    return good;
}

WRAP(bool, bhi_nvrtc_compile, void *library, const struct bhi_glsl *source,
     struct bhi_compile_answer *answer, char *code, uint64_t room, struct bhi_error *error) {
    const bool good = __real_bhi_nvrtc_compile(library, source, answer, code, room, error);
    if (lies(lie_entry)) {
        memset(answer->entry, 'x', sizeof answer->entry);
    }
    if (lies(lie_magic)) {
        memset(code, 'x', answer->code_bytes);
    }
    return good;
}

WRAP(bool, bhi_inspect, const uint32_t *code, size_t words, const char *entry,
     const struct bhi_spec_constant *constants, uint32_t constant_count, bool guarded,
     struct bhi_inspection *out, char *text, uint64_t room, struct bhi_error *error) {
    const bool good = __real_bhi_inspect(code, words, entry, constants, constant_count, guarded,
                                         out, text, room, error);
    FALSIFY(lie_counts, out->bindings, BHI_INSPECT_BINDINGS + 1);
    FALSIFY(lie_kind, out->binding[0].kind, 3);
    FALSIFY(lie_text_bytes, out->text_bytes, room + 1);
    FALSIFY(lie_status, out->refused, BH_ACCESS_READ);
    if (lies(lie_names)) {
        memset(out->binding[0].name, '\x1b', sizeof out->binding[0].name);
        memset(out->entry[0], '\xff', sizeof out->entry[0]);
    }
    return good;
}

/* -- what a loader answers -------------------------------------------------------------------- */

static void lie_of_file(struct bhi_file_answer *answer) {
    answer->offset += lies(lie_offset);
    FALSIFY(lie_wrap, answer->offset, UINT64_MAX - answer->bytes + 1);
    if (lies(lie_bytes)) {
        answer->bytes /= 2;
    }
    FALSIFY(lie_dtype, answer->dtype, UINT32_MAX);
    FALSIFY(lie_no_dtype, answer->dtype, BH_DTYPE_NONE);
    FALSIFY(lie_dimensions, answer->dimensions, BHI_FILE_DIMENSIONS + 1);
    if (lies(lie_empty)) { /* no bytes at all, in more dimensions than allowed */
        answer->dimensions = BHI_FILE_DIMENSIONS + 1;
        answer->shape[0] = 0;
        answer->bytes = 0;
    }
    if (lies(lie_shape)) { /* 2^64 times the bytes */
        answer->shape[0] = UINT64_C(1) << 63;
        answer->shape[1] = 2;
        answer->dimensions = 2;
    }
    if (lies(lie_text)) {
        answer->refused = UINT32_MAX;
        answer->error = INT32_MIN;
        memset(answer->text, '\x1b', sizeof answer->text);
    }
}

static void lie_of_list(struct bhi_file_list *list, struct bhi_file_row *row) {
    FALSIFY(lie_list_count, list->count, BHI_FILE_TENSORS + 1);
    FALSIFY(lie_list_offset, row->offset, UINT64_MAX - 7);
    FALSIFY(lie_list_dimensions, row->dimensions, UINT32_MAX - 7);
    if (lies(lie_list_name)) {
        memset(row->name, '\x1b', sizeof row->name);
    }
}

/* The buffer that a loader was given last, in which it answers. No filter lets it copy the descriptor. */
static struct {
    uint64_t id, bytes;
    void *at;
} given = {.at = MAP_FAILED};

WRAP(void, bhi_loader_attach, struct bhi_loader *loader, uint64_t buffer, int fd, uint64_t size) {
    if (given.at != MAP_FAILED) {
        munmap(given.at, given.bytes);
    }
    given.id = buffer;
    given.bytes = size;
    given.at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    __real_bhi_loader_attach(loader, buffer, fd, size);
}

static bool load_due;             /* next is the check that the file is still the same */
static _Atomic bool reads_pieces; /* by several threads */

WRAP(int, fstat, int fd, struct stat *out) {
    if (load_due) {
        load_due = false;
        passes(load);
    }
    return __real_fstat(fd, out);
}

WRAP(ssize_t, pread, int fd, void *out, size_t bytes, off_t offset) {
    const ssize_t n =
        __real_pread(fd, out, lies(short_read) && bytes > 1000 ? 1000 : bytes, offset);
    if (lies(load_read)) {
        errno = EIO;
        return -1;
    }
    return n;
}

WRAP(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t offset) {
    if (reads_pieces) {
        passes(load_write);
    }
    return __real_pwrite(fd, from, bytes, offset);
}

WRAP(bool, bhi_reads_run, struct bhi_reads *reads, int fd, int out, uint64_t offset, uint64_t bytes,
     _Atomic uint64_t *done, struct bhi_read_failure *failure) {
    reads_pieces = true;
    const bool good = __real_bhi_reads_run(reads, fd, out, offset, bytes, done, failure);
    reads_pieces = false;
    if (good) {
        passes(loaded);
    }
    return good;
}

WRAP(bool, bhi_loader_header, const struct bhi_msg_file_attach *file, int fd,
     struct bhi_file_answer *answer, int *out_error, struct bhi_complaint *complaint) {
    const bool good = __real_bhi_loader_header(file, fd, answer, out_error, complaint);
    passes(inspected);
    return good;
}

WRAP(bool, bhi_loader_list, const struct bhi_msg_file_attach *file, int fd, int out, uint64_t room,
     uint64_t *out_count, int *out_error, struct bhi_complaint *complaint) {
    const bool good = __real_bhi_loader_list(file, fd, out, room, out_count, out_error, complaint);
    passes(inspected);
    return good;
}

WRAP(void, bhi_loader_run, struct bhi_loader *loader, const struct bhi_lane_record *record,
     struct bhi_result *result, struct bhi_error *error) {
    if (first_command(record) == BHI_CMD_INSPECT) {
        passes(inspect);
    }
    load_due = first_command(record) == BHI_CMD_LOAD;
    __real_bhi_loader_run(loader, record, result, error);
    load_due = false;
    const struct bhi_cmd_inspect *inspect = (const void *)bhi_record_first(record);
    if (inspect->header.type == BHI_CMD_INSPECT && inspect->answer == given.id &&
        given.at != MAP_FAILED) {
        if (inspect->room == 0) {
            lie_of_file(given.at);
        } else {
            lie_of_list(given.at, (void *)((char *)given.at + sizeof(struct bhi_file_list)));
        }
    }
    bht_lie_of_run(result);
}
