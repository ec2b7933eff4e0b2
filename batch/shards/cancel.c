/* Cancelling a batch from outside. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch/journal/lock.h"
#include "batch/runner/cancel.h"
#include "batch/shards/shards.h"

/* Makes the file with all of |text|, or not at all. One that is there already does as well. */
static bool publish(int folder, const char *text) {
    char temporary[BHI_HOST_NAME + 64], host[BHI_HOST_NAME];
    snprintf(temporary, sizeof temporary, ".cancel.%s.%ld", bhi_host_name(host), (long)getpid());
    const int fd =
        openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    good = close(fd) == 0 && good;
    good = good && renameat(folder, temporary, folder, BHI_CANCEL_FILE) == 0;
    const int error = errno;
    if (!good) {
        (void)unlinkat(folder, temporary, 0);
        errno = error;
    }
    return good;
}

bool bhi_shards_cancel(const struct bhi_shards *shards, struct bhi_complaint *complaint) {
    struct bhi_lock_signature signature = {.pid = ""};
    char text[sizeof signature + 8];
    if (shards->single) {
        signature = bhi_lock_read(shards->folder);
        if (!*signature.host) {
            return bhi_refuse(complaint, "%.600s: no process has it: there is nothing to cancel",
                              shards->path);
        }
    } else {
        snprintf(signature.pid, sizeof signature.pid, "%ld", (long)getpid());
        bhi_host_name(signature.host);
    }
    /* A single batch compares it with itself: a file for an earlier process means nothing. */
    snprintf(text, sizeof text, "%s %s\n", signature.pid, signature.host);
    return publish(shards->folder, text) ||
           bhi_refuse(complaint, "%.600s/" BHI_CANCEL_FILE " cannot be made: %s", shards->path,
                      strerror(errno));
}
