#include "judge/time/processor.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"

/* The kernel counts in units of 10 ms. */
static const struct timespec window = {.tv_nsec = 100000000};

void bhi_idle_read(const char *path, struct bhi_idle *out) {
    char line[512];
    BHI_AUTO_FILE *file = fopen(path, "re");
    *out = (struct bhi_idle){{0}};
    while (file && fgets(line, sizeof line, file)) {
        unsigned number;
        unsigned long long idle, waiting;
        if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &number, &idle, &waiting) == 3 &&
            number < CPU_SETSIZE) {
            out->of[number] = idle + waiting;
        }
    }
}

int bhi_idle_most(const cpu_set_t *set, const struct bhi_idle *before,
                  const struct bhi_idle *after) {
    unsigned long long most = 0;
    int best = -1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        /* The kernel's numbers may go back a little. */
        const unsigned long long idle =
            after->of[i] > before->of[i] ? after->of[i] - before->of[i] : 0;
        if (CPU_ISSET((unsigned)i, set) && idle >= most) {
            best = i;
            most = idle;
        }
    }
    return best;
}

/* Takes a name that one process on the machine can have, as long as it has the socket. Returns the
 * socket, or -1. */
static int claim(int processor) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    /* Without a file: the kernel forgets it with the process. */
    const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                                "bulkhead/judge/processor/%d", processor);
    const size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length;
    BHI_AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, (socklen_t)size) != 0) {
        return -1;
    }
    return bhi_fd_steal(&fd);
}

void bhi_processor_choose(struct bhi_processor *out) {
    struct bhi_idle before = {{0}}, after = {{0}};
    cpu_set_t may, left;
    *out = (struct bhi_processor){.claim = -1};
    if (sched_getaffinity(0, sizeof may, &may) != 0) {
        return;
    }
    out->count = (uint32_t)CPU_COUNT(&may);
    if (out->count > 1) {
        bhi_idle_read("/proc/stat", &before);
        (void)nanosleep(&window, NULL);
        bhi_idle_read("/proc/stat", &after);
    }
    const int best = bhi_idle_most(&may, &before, &after);
    int next = best;
    for (left = may; next >= 0 && (out->claim = claim(next)) < 0;) {
        CPU_CLR((unsigned)next, &left);
        next = bhi_idle_most(&left, &before, &after);
    }
    out->chosen = (uint32_t)((next >= 0 ? next : best) + 1);
}

void bhi_processor_release(struct bhi_processor *processor) {
    if (processor->chosen && processor->claim >= 0) {
        (void)close(processor->claim);
    }
    *processor = (struct bhi_processor){.claim = -1};
}
