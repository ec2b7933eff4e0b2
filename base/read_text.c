#include "base/read_text.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

ssize_t bhi_read_text(int folder, const char *path, char *out, size_t capacity) {
    size_t used = 0;
    ssize_t got = 1;
    out[0] = '\0';
    BHI_AUTO_FD fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    while (got != 0 && used + 1 < capacity) {
        got = read(fd, out + used, capacity - 1 - used);
        if (got < 0 && errno != EINTR) {
            return -errno;
        }
        used += got > 0 ? (size_t)got : 0;
        out[used] = '\0';
    }
    return (ssize_t)used;
}
