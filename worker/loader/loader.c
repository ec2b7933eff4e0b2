#include "worker/loader/loader.h"

#include "base/format.h"
#include "base/futex.h"
#include "base/list.h"
#include "base/memfd.h"
#include "ipc/fdpass.h"
#include "worker/loader/fortran.h"
#include "worker/loader/header.h"
#include "worker/loader/reads.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct item {
    struct bhi_list node;
    int fd;
};

/* A thread that closes files. A close may hang for as long as a mount is dead (FUSE sends a request
 * for each close), and a thread with work to do must not wait for it. Files that come after one
 * that hangs stay open. */
struct closer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct bhi_list items;
    bool stop;
};

static void *run(void *argument) {
    struct closer *closer = argument;
    pthread_mutex_lock(&closer->lock);
    for (;;) {
        while (bhi_list_empty(&closer->items) && !closer->stop) {
            pthread_cond_wait(&closer->changed, &closer->lock);
        }
        if (bhi_list_empty(&closer->items)) {
            break;
        }
        struct item *item = BHI_CONTAINER(closer->items.next, struct item, node);
        bhi_list_remove(&item->node);
        pthread_mutex_unlock(&closer->lock);
        close(item->fd);
        free(item);
        pthread_mutex_lock(&closer->lock);
    }
    pthread_mutex_unlock(&closer->lock);
    return NULL;
}

/* Returns 0 or an errno. */
static int start_closer(struct closer *closer) {
    bhi_list_init(&closer->items);
    pthread_mutex_init(&closer->lock, NULL);
    pthread_cond_init(&closer->changed, NULL);
    return pthread_create(&closer->thread, NULL, run, closer);
}

/* Closes the files that it still has, and waits for that. */
static void stop_closer(struct closer *closer) {
    pthread_mutex_lock(&closer->lock);
    closer->stop = true;
    pthread_cond_signal(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
    pthread_join(closer->thread, NULL);
    pthread_cond_destroy(&closer->changed);
    pthread_mutex_destroy(&closer->lock);
}

/* Never blocks. If there is no memory for the entry, |fd| stays open. */
static void close_later(struct closer *closer, int fd) {
    struct item *item = malloc(sizeof *item);
    if (!item) {
        return;
    }
    *item = (struct item){.fd = fd};
    pthread_mutex_lock(&closer->lock);
    bhi_list_append(&closer->items, &item->node);
    pthread_cond_signal(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
}

/* A kernel's clock for files moves in steps of at most 10 ms: after two changes within one step,
 * the second does not show. */
#define STEP_NS INT64_C(20000000)
/* Some file systems store only seconds (ext2 to ext4 with small inodes), or pairs of seconds (FAT).
 * Nobody can set a time of change, so a time without a fraction shows such a file system. */
#define COARSE_STEP_NS (INT64_C(2000000000) + STEP_NS)

/* What the supervisor has attached. It is little at a time, because the supervisor attaches only
 * what the next record needs. */
struct buffer {
    struct bhi_list node;
    uint64_t id, size;
    int fd; /* negative: -errno that says why it cannot be used */
};

struct file {
    struct bhi_list node;
    struct bhi_msg_file_attach info;
    int fd; /* negative: -errno that says why it did not come */
};

struct bhi_loader {
    struct bhi_progress *progress;
    struct bhi_reads *reads;
    struct closer closer;
    struct bhi_list buffers, files; /* newest first */
    bool starved;                   /* there was no memory for an entry */
};

static struct buffer *buffer_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct buffer, node);
}

static struct file *file_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct file, node);
}

static void free_buffer(struct buffer *buffer) {
    bhi_list_remove(&buffer->node);
    if (buffer->fd >= 0) {
        close(buffer->fd);
    }
    free(buffer);
}

static void free_file(struct bhi_loader *loader, struct file *file) {
    bhi_list_remove(&file->node);
    if (file->fd >= 0) {
        close_later(&loader->closer, file->fd);
    }
    free(file);
}

struct bhi_loader *bhi_loader_create(struct bhi_progress *progress, struct bhi_error *error) {
    struct bhi_loader *loader = calloc(1, sizeof *loader);
    int err = loader ? start_closer(&loader->closer) : ENOMEM;
    if (!err && !(loader->reads = bhi_reads_create())) {
        err = errno;
        stop_closer(&loader->closer);
    }
    if (err) {
        BHI_ERROR(error, BH_REASON_SYSTEM_STEP, "start the loader's threads", .sys_errno = err);
        free(loader);
        return NULL;
    }
    bhi_list_init(&loader->buffers);
    bhi_list_init(&loader->files);
    loader->progress = progress;
    return loader;
}

void bhi_loader_destroy(struct bhi_loader *loader) {
    if (!loader) {
        return;
    }
    bhi_reads_destroy(loader->reads);
    BHI_LIST_EACH_SAFE(node, &loader->buffers) {
        free_buffer(buffer_of(node));
    }
    BHI_LIST_EACH_SAFE(node, &loader->files) {
        free_file(loader, file_of(node));
    }
    stop_closer(&loader->closer);
    free(loader);
}

/* -- what it is given ------------------------------------------------------------------------- */

void bhi_loader_attach(struct bhi_loader *loader, uint64_t id, int fd, uint64_t size) {
    struct buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) {
        loader->starved = true;
        close(fd);
        return;
    }
    bhi_loader_detach(loader, id); /* removes that of a load which never ran */
    const int err = bhi_memfd_verify(fd, size, 0);
    *buffer = (struct buffer){.id = id, .size = size, .fd = err ? err : fd};
    if (err) {
        close(fd);
    }
    bhi_list_insert_before(loader->buffers.next, &buffer->node);
}

void bhi_loader_detach(struct bhi_loader *loader, uint64_t id) {
    BHI_LIST_EACH(node, &loader->buffers) {
        if (buffer_of(node)->id == id) {
            free_buffer(buffer_of(node));
            return;
        }
    }
}

/* Peeks at the packet; each peek receives new descriptors. Returns a descriptor of the file, or
 * -errno. */
static int look_at_file(int socket) {
    uint8_t bytes[BHI_WIRE_MAX];
    struct bhi_message message;
    int fd = -1;
    size_t count = 1;
    const int length =
        bhi_fdpass_recv(socket, bytes, sizeof bytes, &fd, &count, MSG_PEEK | MSG_DONTWAIT);
    if (length <= 0) {
        return length == 0 ? -EAGAIN : length;
    }
    if (count == 1 &&
        bhi_wire_decode(bytes, (size_t)length, BHI_O2S, BHI_WS_ANY, &message, NULL, 0) == 0 &&
        message.type == BHI_MSG_OPENED) {
        return fd;
    }
    if (count == 1) {
        close(fd); /* not from the opener: only it sends this message */
    }
    return -EPROTO;
}

void bhi_loader_attach_file(struct bhi_loader *loader, const struct bhi_msg_file_attach *info,
                            int socket) {
    struct file *file = calloc(1, sizeof *file);
    if (!file) {
        loader->starved = true;
    } else {
        file->info = *info;
        file->fd = look_at_file(socket);
        bhi_list_insert_before(loader->files.next, &file->node);
    }
    /* If the host has closed its end, this also drops the file. */
    close_later(&loader->closer, socket);
}

void bhi_loader_detach_file(struct bhi_loader *loader, uint64_t id) {
    BHI_LIST_EACH(node, &loader->files) {
        if (file_of(node)->info.file == id) {
            free_file(loader, file_of(node));
            return;
        }
    }
}

/* -- failures --------------------------------------------------------------------------------- */

static bool fail(struct bhi_error *error, bh_reason reason, int err, const char *text) {
    BHI_ERROR(error, reason, .text = text, .vk_result = err);
    error->command_index = 0;
    error->executed = BH_EXECUTED_UNKNOWN;
    return false;
}

static struct buffer *find_buffer(struct bhi_loader *loader, uint64_t id, uint64_t bytes,
                                  struct bhi_error *error) {
    BHI_LIST_EACH(node, &loader->buffers) {
        struct buffer *buffer = buffer_of(node);
        if (buffer->id != id) {
            continue;
        }
        if (buffer->fd < 0) {
            fail(error, BH_REASON_FILE_READ, -buffer->fd,
                 BHI_SAY("the buffer of %llu bytes cannot be written to: %s",
                         (unsigned long long)buffer->size, strerror(-buffer->fd)));
            return NULL;
        }
        if (bytes > buffer->size) {
            fail(error, BH_REASON_FILE_READ, 0,
                 BHI_SAY("%llu bytes do not fit the buffer of %llu", (unsigned long long)bytes,
                         (unsigned long long)buffer->size));
            return NULL;
        }
        return buffer;
    }
    fail(error, BH_REASON_FILE_READ, loader->starved ? ENOMEM : 0,
         loader->starved ? "the loader is out of memory" : "no such buffer");
    return NULL;
}

static struct file *find_file(struct bhi_loader *loader, uint64_t id, struct bhi_error *error) {
    BHI_LIST_EACH(node, &loader->files) {
        struct file *file = file_of(node);
        if (file->info.file != id) {
            continue;
        }
        if (file->fd < 0) {
            const int err =
                -file->fd; /* EAGAIN: it has gone from the socket, where the host saw it */
            fail(error, BH_REASON_FILE_READ, err,
                 BHI_SAY("the host did not hand over the open file: %s",
                         err == EAGAIN ? "its socket is empty" : strerror(err)));
            return NULL;
        }
        return file;
    }
    fail(error, BH_REASON_FILE_READ, loader->starved ? ENOMEM : 0,
         loader->starved ? "the loader is out of memory" : "no such file");
    return NULL;
}

/* -- is it still the same? -------------------------------------------------------------------- */

static bool unchanged(const struct file *file, struct bhi_error *error) {
    const struct bhi_msg_file_attach *was = &file->info;
    struct stat is;
    if (fstat(file->fd, &is) != 0) {
        return fail(error, BH_REASON_FILE_CHANGED, errno, BHI_SAY("fstat: %s", strerror(errno)));
    }
    if ((uint64_t)is.st_size != was->size) {
        return fail(
            error, BH_REASON_FILE_CHANGED, 0,
            BHI_SAY("offset %llu: its size has changed from %llu to %llu bytes",
                    (unsigned long long)((uint64_t)is.st_size < was->size ? (uint64_t)is.st_size
                                                                          : was->size),
                    (unsigned long long)was->size, (unsigned long long)is.st_size));
    }
    if (is.st_dev != was->device || is.st_ino != was->inode ||
        (uint64_t)is.st_mtim.tv_sec != was->modified_s ||
        (uint64_t)is.st_mtim.tv_nsec != was->modified_ns) {
        return fail(error, BH_REASON_FILE_CHANGED, 0, "it was written to since it was opened");
    }
    if (is.st_nlink != was->links) {
        /* A name was added or removed; that changes the time of change, too. */
        return was->named == 0 || fail(error, BH_REASON_FILE_CHANGED, 0,
                                       "it was replaced or removed since it was opened");
    }
    if ((uint64_t)is.st_ctim.tv_sec != was->changed_s ||
        (uint64_t)is.st_ctim.tv_nsec != was->changed_ns) {
        return fail(error, BH_REASON_FILE_CHANGED, 0, "it was changed since it was opened");
    }
    return true;
}

static int64_t age_ns(uint64_t s, uint64_t ns, const struct timespec *now) {
    const int64_t seconds = (int64_t)((uint64_t)now->tv_sec - s);
    if (seconds > 3 || seconds < -3) {
        return COARSE_STEP_NS;
    }
    return seconds * 1000000000 + now->tv_nsec - (int64_t)ns;
}

/* Waits until every later write to the file changes its times. */
static void outwait_step(const struct file *file) {
    const int64_t step = file->info.changed_ns == 0 ? COARSE_STEP_NS : STEP_NS;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t modified = age_ns(file->info.modified_s, file->info.modified_ns, &now);
    const int64_t changed = age_ns(file->info.changed_s, file->info.changed_ns, &now);
    const int64_t age = modified < changed ? modified : changed;
    if (age < step && age > -step) {
        const int64_t rest = step - age;
        const struct timespec pause = {.tv_sec = rest / 1000000000, .tv_nsec = rest % 1000000000};
        nanosleep(&pause, NULL);
    }
}

/* -- commands --------------------------------------------------------------------------------- */

/* Writes the answer at the beginning; rows of a list follow it. */
static bool give(int out, const void *answer, size_t size, struct bhi_error *error) {
    const ssize_t written = pwrite(out, answer, size, 0);
    return written == (ssize_t)size || fail(error, BH_REASON_FILE_READ, written < 0 ? errno : EIO,
                                            "the answer could not be written");
}

static bool give_list(int out, uint64_t count, const struct bhi_error *wrong,
                      struct bhi_error *error) {
    struct bhi_file_list list = {.count = count};
    if (wrong) {
        list =
            (struct bhi_file_list){.refused = wrong->told.reason, .error = wrong->told.vk_result};
        bhi_format(list.text, sizeof list.text, "%s", wrong->told.text);
    }
    return give(out, &list, sizeof list, error);
}

static bool give_answer(int out, struct bhi_file_answer *answer, const struct bhi_error *wrong,
                        struct bhi_error *error) {
    if (wrong) {
        *answer =
            (struct bhi_file_answer){.refused = wrong->told.reason, .error = wrong->told.vk_result};
        bhi_format(answer->text, sizeof answer->text, "%s", wrong->told.text);
    }
    return give(out, answer, sizeof *answer, error);
}

/* An error in the file is part of the answer. Only what prevents an answer is an error. */
static bool inspect(struct bhi_loader *loader, const struct bhi_cmd_inspect *command,
                    struct bhi_error *error) {
    struct bhi_file_answer answer = {0};
    uint64_t count = 0;
    struct buffer *out =
        find_buffer(loader, command->answer,
                    command->room ? bhi_file_list_bytes(command->room) : sizeof answer, error);
    if (!out) {
        return false;
    }
    const struct file *file = find_file(loader, command->file, error);
    struct bhi_complaint complaint = {.text = ""};
    int err = 0;
    bool good = file;
    if (good) {
        outwait_step(file);
        good = unchanged(file, error);
    }
    if (good) {
        good = command->room ? bhi_loader_list(&file->info, file->fd, out->fd, command->room,
                                               &count, &err, &complaint)
                             : bhi_loader_header(&file->info, file->fd, &answer, &err, &complaint);
        good = good ||
               fail(error, err ? BH_REASON_FILE_READ : BH_REASON_FILE_FORMAT, err, complaint.text);
    }
    struct bhi_error later;
    if (file && !unchanged(file, &later)) {
        /* The file has changed, so the answer counts for nothing. */
        *error = later;
        good = false;
    }
    const struct bhi_error wrong = *error;
    good = command->room ? give_list(out->fd, count, good ? NULL : &wrong, error)
                         : give_answer(out->fd, &answer, good ? NULL : &wrong, error);
    bhi_loader_detach(loader, command->answer); /* used once */
    return good;
}

/* Parses the header again: the command says only that the array is in Fortran order. */
static bool read_form(const struct file *file, const struct bhi_cmd_load *command,
                      struct bhi_array *out) {
    struct bhi_file_answer answer = {0};
    struct bhi_complaint complaint;
    int error;
    if (!bhi_loader_header(&file->info, file->fd, &answer, &error, &complaint) || !answer.fortran ||
        answer.offset != command->offset || answer.bytes != command->bytes) {
        return false;
    }
    out->dtype = (bh_dtype)answer.dtype;
    out->dimensions = answer.dimensions;
    memcpy(out->shape, answer.shape, answer.dimensions * sizeof answer.shape[0]);
    return true;
}

static bool load(struct bhi_loader *loader, const struct bhi_cmd_load *command, uint64_t seq,
                 struct bhi_error *error) {
    struct bhi_progress_header *header = loader->progress->header;
    atomic_store_explicit(&header->load_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&header->load_seq, seq, memory_order_release);
    const struct buffer *out = find_buffer(loader, command->buffer, command->bytes, error);
    const struct file *file = !out ? NULL : find_file(loader, command->file, error);
    if (!file) {
        return false;
    }
    outwait_step(file);
    if (!unchanged(file, error)) {
        bhi_loader_detach(loader, command->buffer);
        return false;
    }
    struct bhi_read_failure failure = {command->offset, EPROTO, false};
    struct bhi_array array = {.dtype = BH_DTYPE_NONE};
    const bool good = !command->fortran
                          ? bhi_reads_run(loader->reads, file->fd, out->fd, command->offset,
                                          command->bytes, &header->load_bytes, &failure)
                          : read_form(file, command, &array) &&
                                bhi_fortran_read(file->fd, out->fd, command->offset, &array,
                                                 &header->load_bytes, &failure);
    bhi_loader_detach(loader, command->buffer); /* used once */
    if (!good) {
        fail(error, BH_REASON_FILE_READ, failure.error,
             BHI_SAY("offset %llu: %s%s", (unsigned long long)failure.offset,
                     failure.wrote ? "the buffer cannot be written to: " : "",
                     failure.error != 0 ? strerror(failure.error) : "the file ends here"));
        error->told.value = failure.offset;
        return false;
    }
    return unchanged(file, error);
}

void bhi_loader_run(struct bhi_loader *loader, const struct bhi_lane_record *record,
                    struct bhi_result *result, struct bhi_error *error) {
    *error = (struct bhi_error){.status = BH_OK, .command_index = BHI_NO_COMMAND};
    *result = (struct bhi_result){
        .seq = record->seq, .started_ns = bhi_now_ns(), .command_index = BHI_NO_COMMAND};
    const struct bhi_cmd_header *command = bhi_record_first(record);
    bool good = true;
    while (good && command) {
        const void *body = command;
        if (command->type == BHI_CMD_INSPECT) {
            good = inspect(loader, body, error);
        } else if (command->type == BHI_CMD_LOAD) {
            good = load(loader, body, record->seq, error);
        } else {
            good = fail(error, BH_REASON_FILE_READ, 0,
                        BHI_SAY("a loader runs no %s", bhi_command_name(command->type)));
        }
        command = bhi_record_next(record, command);
    }
    if (!good) {
        bhi_error_result(error, result);
    } else {
        result->executed = BH_EXECUTED_YES;
    }
    result->ended_ns = bhi_now_ns();
}
