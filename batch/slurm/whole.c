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
#include "tool/outfile.h"

char *bhi_whole_text(const char *format, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : text;
}

bool bhi_whole_write(const char *path, const void *text, size_t size, mode_t mode,
                     struct bhi_complaint *complaint) {
    const char *slash = strrchr(path, '/');
    char temporary[BHI_OUTFILE_TEMPORARY];
    struct bhi_complaint why;
    struct bhi_outfile file = BHI_OUTFILE_CLOSED;
    /* One name, so that what a killed process has left is replaced. */
    snprintf(temporary, sizeof temporary, "%.100s.new", slash ? slash + 1 : path);
    bool good = bhi_outfile_open_named(path, temporary, size, &file, &why) &&
                bhi_outfile_write(&file, NULL, 0, text, size, &why);
    if (good && fchmod(file.fd, mode) != 0) {
        good = bhi_refuse(&why, "cannot be written: %s", strerror(errno));
    }
    good = good && bhi_outfile_seal(&file, &why) && bhi_outfile_commit(&file, &why);
    bhi_outfile_abandon(&file);
    return good || bhi_refuse(complaint, "%.600s: %.300s", path, why.text);
}

bool bhi_whole_try(const char *folder, struct bhi_complaint *complaint) {
    static const char zeros[4096];
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/.try", folder);
    if (!path) {
        return bhi_refuse(complaint, "out of memory");
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (!error) {
        const ssize_t written = write(fd, zeros, sizeof zeros);
        error = written < 0 ? errno : written < (ssize_t)sizeof zeros ? ENOSPC : 0;
        error = !error && fsync(fd) != 0 ? errno : error;
        error = close(fd) != 0 && !error ? errno : error;
        (void)unlink(path);
    }
    return !error || bhi_refuse(complaint, "%.600s cannot be written: %s", folder, strerror(error));
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

bool bhi_slurm_take_number(const json_t *object, const char *key, uint64_t most, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0 && *out <= most;
}

bool bhi_slurm_take_digits(const json_t *object, const char *key, char *out, size_t digits) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strlen(text) != digits || strspn(text, "0123456789abcdef") != digits) {
        return false;
    }
    memcpy(out, text, digits + 1);
    return true;
}
