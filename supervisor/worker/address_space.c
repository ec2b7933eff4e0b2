#include "supervisor/worker/address_space.h"
#include "base/fd.h"
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Room for the code of compiled kernels, for a kernel's module while it is read, and for growing
 * stacks. */
#define ROOM (UINT64_C(64) << 20)

/* Sets the limit by pid, because no call takes a pidfd. The pid still belongs to the worker: the
 * zygote reaps a worker some time after the pidfd has signalled its end, and a number is reused
 * only after all others. Only the soft limit is set: it is raised later, and raising a hard limit
 * needs a privilege. */
static int set(const struct bhi_address_space *space, pid_t pid) {
    struct rlimit limit;
    if (prlimit(pid, RLIMIT_AS, NULL, &limit) != 0) {
        return -errno;
    }
    const uint64_t bytes = space->base + space->most;
    limit.rlim_cur = bytes < limit.rlim_max ? (rlim_t)bytes : limit.rlim_max;
    return prlimit(pid, RLIMIT_AS, &limit, NULL) == 0 ? 0 : -errno;
}

/* Reads how many bytes the process has mapped. */
static int read_size(const struct bhi_proc_place *place, uint64_t *out) {
    char path[32], text[128];
    snprintf(path, sizeof path, "%d/statm", (int)place->pid);
    BHI_AUTO_FD fd = openat(place->proc, path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length < 0) {
        return -errno;
    }
    text[length] = '\0';
    const unsigned long long pages = strtoull(text, NULL, 10);
    *out = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return pages ? 0 : -EIO;
}

int bhi_address_space_bound(struct bhi_address_space *space, pid_t pid,
                            const struct bhi_proc_place *place, uint64_t memory_limit) {
    uint64_t size = 0;
    int error = read_size(place, &size);
    if (error) {
        return error;
    }
    space->base = size + memory_limit + ROOM;
    error = set(space, pid);
    space->bounded = !error;
    return error;
}

void bhi_address_space_add(struct bhi_address_space *space, pid_t pid, uint64_t bytes) {
    space->attached += bhi_page_round(bytes);
    if (space->attached <= space->most) {
        return;
    }
    space->most = space->attached;
    if (space->bounded) {
        (void)set(space, pid); /* fails if it has died: its pidfd reports that */
    }
}

void bhi_address_space_remove(struct bhi_address_space *space, uint64_t bytes) {
    space->attached -= bhi_page_round(bytes);
}
