#include "batch/slurm/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"

char *bhi_whole_text(const char *format, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : text;
}

static int write_all(int fd, const char *text, size_t size) {
    while (size > 0) {
        const ssize_t written = write(fd, text, size);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        }
    }
    return fsync(fd) == 0 ? 0 : errno;
}

/* The name is durable only after a sync of its folder. */
static int sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    BHI_AUTO_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!folder) {
        return ENOMEM;
    }
    BHI_AUTO_FD fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? 0 : errno;
}

bool bhi_whole_write(const char *path, const void *text, size_t size, mode_t mode,
                     struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *temporary = bhi_whole_text("%s.new", path);
    if (!temporary) {
        return bhi_refuse(complaint, "out of memory");
    }
    BHI_AUTO_FD fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (!error) {
        (void)((error = write_all(fd, text, size)) || (error = fchmod(fd, mode) ? errno : 0) ||
               (error = rename(temporary, path) ? errno : 0) || (error = sync_folder_of(path)));
    }
    if (error) {
        (void)unlink(temporary);
        return bhi_refuse(complaint, "%.600s cannot be written: %s", path, strerror(error));
    }
    return true;
}

char *bhi_whole_read(const char *path, size_t most, size_t *out_size, int *out_error) {
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    *out_error = 0;
    if (fd < 0 || fstat(fd, &status) != 0) {
        *out_error = errno;
        return NULL;
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > most) {
        *out_error = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
        return NULL;
    }
    BHI_AUTO_FREE char *text = malloc((size_t)status.st_size + 1);
    size_t size = 0;
    while (text && size < (size_t)status.st_size) {
        const ssize_t got = read(fd, text + size, (size_t)status.st_size - size);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            *out_error = errno;
            return NULL;
        }
        size += got > 0 ? (size_t)got : 0;
    }
    if (!text) {
        *out_error = ENOMEM;
        return NULL;
    }
    text[size] = '\0';
    *out_size = size;
    return BHI_STEAL(text);
}
