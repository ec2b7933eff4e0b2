#include "supervisor/file/file.h"
#include "base/detail.h"
#include "base/format.h"
#include "base/text.h"
#include "supervisor/file/opener.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* File systems that generate the content of a file while it is read. The files claim to be regular,
 * but their size means nothing. */
static const long made_up[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
    SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
    EFIVARFS_MAGIC,   PSTOREFS_MAGIC,     SELINUX_MAGIC,       BINFMTFS_MAGIC,
};

static void free_file(struct bhi_doomed *doomed) {
    struct bhi_file *file = BHI_CONTAINER(doomed, struct bhi_file, doomed);
    bh_context *context = file->context;
    if (file->socket >= 0) {
        bhi_opener_let_go(context, file->socket);
    }
    free(file);
    bhi_context_unref(context);
}

void bhi_file_unref_locked(struct bhi_file *file) {
    if (!file || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    BHI_LIST_EACH(node, &file->context->workers)
    bhi_worker_forget_file(BHI_CONTAINER(node, struct bhi_worker, link), file->info.file);
    bhi_context_doom(file->context, &file->doomed);
}

void bhi_file_unref(struct bhi_file *file) {
    if (!file) {
        return;
    }
    bh_context *context = file->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    bhi_file_unref_locked(file);
    bhi_context_settle_unlock(context);
    bhi_context_unref(context);
}

void bhi_file_name(const struct bhi_file *file, char *message, size_t size) {
    char words[512];
    bhi_format(words, sizeof words, "%s", message);
    bhi_format(message, size, "%s: %s", file->name, words);
}

/* Makes the name for messages. A long path loses its beginning, because its end says more. */
static void give_name(struct bhi_file *file, const bh_file_source *source) {
    char path[160];
    if (source->path) {
        size_t length = strlen(source->path);
        bool cut = length > sizeof path - 4;
        const char *from = cut ? source->path + length - (sizeof path - 4) : source->path;
        while (cut && ((uint8_t)*from & 0xc0) == 0x80) { /* the rest of a character */
            from++;
        }
        bhi_format(path, sizeof path, "%s%s", cut ? "..." : "", from);
    } else {
        snprintf(path, sizeof path, "descriptor %d", source->fd);
    }
    bhi_text_line(file->name, sizeof file->name, path, strlen(path));
    if (source->tensor) {
        size_t used = strlen(file->name);
        char shown[100];
        bhi_text_line(shown, sizeof shown, source->tensor, strlen(source->tensor));
        bhi_format(file->name + used, sizeof file->name - used, ", tensor '%s'", shown);
    }
}

static bh_status refuse(const struct bhi_file *file, const char *call, int error, const char *why,
                        bh_detail *detail) {
    return BHI_FAIL(detail, call, BH_REASON_FILE, file->name, .text = why, .sys_errno = error);
}

static bh_status check_kind(const struct bhi_file *file, const struct bhi_msg_opened *opened,
                            const char *call, bh_detail *detail) {
    const char *what = S_ISDIR(opened->mode)    ? "it is a directory"
                       : S_ISFIFO(opened->mode) ? "it is a FIFO, not a regular file"
                       : S_ISSOCK(opened->mode) ? "it is a socket, not a regular file"
                       : S_ISREG(opened->mode)  ? NULL
                                                : "it is a device, not a regular file";
    if (what) {
        return BHI_FAIL(detail, call,
                        S_ISDIR(opened->mode) ? BH_REASON_FILE : BH_REASON_NOT_REGULAR, file->name,
                        .text = what);
    }
    for (size_t i = 0; i < sizeof made_up / sizeof made_up[0]; i++) {
        if (opened->system == (unsigned long)made_up[i]) {
            return refuse(file, call, 0, "its file system generates the content on reading",
                          detail);
        }
    }
    return BH_OK;
}

/* Records the state of the file when it was opened. A loader refuses a file that has changed. */
static void note(struct bhi_file *file, const struct bhi_msg_opened *opened,
                 const bh_file_source *source) {
    struct bhi_msg_file_attach *info = &file->info;
    info->format = source->format;
    info->named = !!source->path;
    info->device = opened->device;
    info->inode = opened->inode;
    info->links = opened->links;
    info->size = opened->size;
    info->modified_s = opened->modified_s;
    info->modified_ns = opened->modified_ns;
    info->changed_s = opened->changed_s;
    info->changed_ns = opened->changed_ns;
    if (source->tensor) {
        bhi_format(info->tensor, sizeof info->tensor, "%s", source->tensor);
    }
}

bh_status bhi_file_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                        const char *call, struct bhi_file **out_file, bh_detail *detail) {
    struct bhi_file *file = calloc(1, sizeof *file);
    if (!file) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    atomic_init(&file->refs, 1);
    bhi_list_init(&file->doomed.link);
    file->doomed.free = free_file;
    file->context = context;
    bhi_context_retain(context);
    give_name(file, source);
    bhi_format(file->tenant, sizeof file->tenant, "%s", source->tenant ? source->tenant : "");
    struct bhi_opening opening;
    bh_status status =
        bhi_opener_open(context, source, deadline_ns, call, file->name, &opening, detail);
    file->socket = opening.socket;
    if (status == BH_OK && opening.error) {
        status = refuse(file, call, opening.error, opening.what[0] ? opening.what : NULL, detail);
    } else if (status == BH_OK) {
        status = check_kind(file, &opening.opened, call, detail);
    }
    if (status != BH_OK) {
        free_file(&file->doomed);
        return status;
    }
    note(file, &opening.opened, source);
    bhi_context_lock(context);
    file->info.file = bhi_context_new_id(context);
    bhi_context_unlock(context);
    *out_file = file;
    return BH_OK;
}
