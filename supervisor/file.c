#include "file.h"
#include "core/detail.h"
#include "text.h"
#include "worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems whose files are made up as they are read: they say that they are regular, and have
 * no size to rely on. */
static const long made_up[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
    SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
    EFIVARFS_MAGIC,   PSTOREFS_MAGIC,     SELINUX_MAGIC,       BINFMTFS_MAGIC,
};

static void free_file(struct bhi_doomed *doomed) {
    struct bhi_file *file = BHI_CONTAINER(doomed, struct bhi_file, doomed);
    bh_context *context = file->context;
    if (file->fd >= 0)
        close(file->fd);
    free(file);
    bhi_context_unref(context);
}

void bhi_file_unref_locked(struct bhi_file *file) {
    if (!file || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1)
        return;
    BHI_LIST_EACH(node, &file->context->workers)
    bhi_worker_forget_file(BHI_CONTAINER(node, struct bhi_worker, link), file->info.file);
    bhi_context_doom(file->context, &file->doomed);
}

void bhi_file_unref(struct bhi_file *file) {
    if (!file)
        return;
    bh_context *context = file->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    bhi_file_unref_locked(file);
    bhi_context_unlock(context);
    bhi_context_unref(context);
}

void bhi_file_name(const struct bhi_file *file, char *message, size_t size) {
    char words[512];
    snprintf(words, sizeof words, "%s", message);
    snprintf(message, size, "%s: %s", file->name, words);
}

/* A path's end says more than its beginning. */
static void give_name(struct bhi_file *file, const bh_file_source *source) {
    char path[160];
    if (source->path) {
        size_t length = strlen(source->path);
        bool cut = length > sizeof path - 4;
        const char *from = cut ? source->path + length - (sizeof path - 4) : source->path;
        snprintf(path, sizeof path, "%s%s", cut ? "..." : "", from);
    } else {
        snprintf(path, sizeof path, "descriptor %d", source->fd);
    }
    bhi_text_sanitise(file->name, sizeof file->name, path, strlen(path));
    if (source->format == BH_FILE_SAFETENSORS) {
        size_t used = strlen(file->name);
        char shown[100];
        bhi_text_sanitise(shown, sizeof shown, source->tensor, strlen(source->tensor));
        snprintf(file->name + used, sizeof file->name - used, ", tensor '%s'", shown);
    }
}

/* A description of its own, that can only be read: a copy of the caller's could be able to write,
 * and shares its position. */
static int reopen(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (own >= 0)
        return own;
    int error = errno;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -EBADF;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH))
        return -error;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return own < 0 ? -errno : own;
}

static bh_status refuse(const struct bhi_file *file, const char *call, int error, const char *why,
                        bh_detail *detail) {
    return bhi_fail(detail, BH_LOAD_FAILED, error, "%s: %s%s%s", call, file->name, why ? ": " : "",
                    why ? why : "");
}

static bh_status check_kind(struct bhi_file *file, const struct stat *status, const char *call,
                            bh_detail *detail) {
    const char *what = S_ISDIR(status->st_mode)    ? "it is a directory"
                       : S_ISFIFO(status->st_mode) ? "it is a FIFO, not a regular file"
                       : S_ISSOCK(status->st_mode) ? "it is a socket, not a regular file"
                       : S_ISREG(status->st_mode)  ? NULL
                                                   : "it is a device, not a regular file";
    if (what)
        return refuse(file, call, 0, what, detail);
    struct statfs system;
    if (fstatfs(file->fd, &system) != 0)
        return refuse(file, call, errno, "fstatfs", detail);
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++)
        if ((unsigned long)system.f_type == (unsigned long)made_up[i])
            return refuse(file, call, 0,
                          "it is on a file system that makes its files up as they are read",
                          detail);
    return BH_OK;
}

/* What it is like now: the loader holds it against this. */
static void note(struct bhi_file *file, const struct stat *status, const bh_file_source *source) {
    struct bhi_msg_file_attach *info = &file->info;
    info->format = source->format;
    info->named = source->path != NULL;
    info->device = status->st_dev;
    info->inode = status->st_ino;
    info->links = status->st_nlink;
    info->size = (uint64_t)status->st_size;
    info->modified_s = (uint64_t)status->st_mtim.tv_sec;
    info->modified_ns = (uint64_t)status->st_mtim.tv_nsec;
    info->changed_s = (uint64_t)status->st_ctim.tv_sec;
    info->changed_ns = (uint64_t)status->st_ctim.tv_nsec;
    if (source->format == BH_FILE_SAFETENSORS)
        snprintf(info->tensor, sizeof info->tensor, "%s", source->tensor);
}

bh_status bhi_file_open(bh_context *context, const bh_file_source *source, const char *call,
                        struct bhi_file **out_file, bh_detail *detail) {
    struct bhi_file *file = calloc(1, sizeof *file);
    if (!file)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "%s", call);
    atomic_init(&file->refs, 1);
    bhi_list_init(&file->doomed.link);
    file->doomed.free = free_file;
    file->context = context;
    bhi_context_retain(context);
    give_name(file, source);
    /* O_NONBLOCK: opening a FIFO must not wait for a writer before it is refused. */
    file->fd = source->path ? open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                            : reopen(source->fd);
    struct stat status;
    bh_status result = BH_OK;
    if (file->fd < 0)
        result = refuse(file, call, source->path ? errno : -file->fd, NULL, detail);
    else if (fstat(file->fd, &status) != 0)
        result = refuse(file, call, errno, "fstat", detail);
    else
        result = check_kind(file, &status, call, detail);
    if (result != BH_OK) {
        free_file(&file->doomed);
        return result;
    }
    note(file, &status, source);
    bhi_context_lock(context);
    file->info.file = bhi_context_new_id(context);
    bhi_context_unlock(context);
    *out_file = file;
    return BH_OK;
}
