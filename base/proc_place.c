#include "base/proc_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

DIR *bhi_proc_place_threads(const struct bhi_proc_place *place) {
    char path[32];
    snprintf(path, sizeof path, "%d/task", (int)place->pid);
    const int fd = openat(place->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *threads = fd < 0 ? NULL : fdopendir(fd);
    if (!threads && fd >= 0) {
        const int error = errno;
        close(fd);
        errno = error;
    }
    return threads;
}
