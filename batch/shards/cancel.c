/* Cancelling a batch from outside. */
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "batch/journal/lock.h"
#include "batch/runner/cancel.h"
#include "batch/shards/shards.h"
#include "tool/outfile.h"
#include "tool/quantity.h"

static bool put(int folder, const char *path, const struct bhi_lock_signature *signature,
                struct bhi_complaint *complaint) {
    char text[sizeof *signature + 8];
    struct bhi_complaint why;
    snprintf(text, sizeof text, "%s %s\n", signature->pid, signature->host);
    return bhi_outfile_put(folder, BHI_CANCEL_FILE, text, strlen(text), 0600, &why) ||
           bhi_refuse(complaint, "%.600s/" BHI_CANCEL_FILE " %.300s", path, why.text);
}

bool bhi_shards_cancel_folder(int folder, const char *path, struct bhi_complaint *complaint) {
    struct bhi_lock_signature signature;
    snprintf(signature.pid, sizeof signature.pid, "%ld", (long)getpid());
    bhi_host_name(signature.host);
    return put(folder, path, &signature, complaint);
}

bool bhi_shards_cancel(const struct bhi_shards *shards, struct bhi_complaint *complaint) {
    if (!shards->single) {
        return bhi_shards_cancel_folder(shards->folder, shards->path, complaint);
    }
    /* A single batch compares it with itself: a file for an earlier process means nothing. */
    const struct bhi_lock_signature signature = bhi_lock_read(shards->folder);
    if (!*signature.host) {
        return bhi_refuse(complaint, "%.600s: no process has it: there is nothing to cancel",
                          shards->path);
    }
    return put(shards->folder, shards->path, &signature, complaint);
}

/* The machine that the file names; "" if it is not as we write it. */
static void read_host(int fd, char out[BHI_HOST_NAME]) {
    char text[BHI_HOST_NAME + 32] = "";
    const ssize_t size = read(fd, text, sizeof text - 1);
    const char *host = size > 0 ? strchr(text, ' ') : NULL;
    const size_t length = host ? strcspn(++host, "\n") : 0;
    out[0] = '\0';
    if (length > 0 && length < BHI_HOST_NAME && bhi_host_span(host) == length) {
        snprintf(out, BHI_HOST_NAME, "%.*s", (int)length, host);
    }
}

bool bhi_shards_cancelled_by(int folder, char out[BHI_SHARDS_WHO]) {
    BHI_AUTO_FD fd =
        openat(folder, BHI_CANCEL_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    char host[BHI_HOST_NAME] = "", date[BHI_QUANTITY], number[24];
    out[0] = '\0';
    if (fstatat(folder, BHI_CANCEL_FILE, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    const struct passwd *user = getpwuid(status.st_uid);
    snprintf(number, sizeof number, "user %lu", (unsigned long)status.st_uid);
    if (fd >= 0 && S_ISREG(status.st_mode)) {
        read_host(fd, host);
    }
    snprintf(out, BHI_SHARDS_WHO, "by %.64s%s%s at %s", user ? user->pw_name : number,
             *host ? " on " : "", host,
             bhi_quantity_date(date, status.st_mtim.tv_sec > 0
                                         ? (uint64_t)status.st_mtim.tv_sec * 1000000000u
                                         : 0));
    return true;
}
