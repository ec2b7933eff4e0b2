#include "tool/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/clock.h"
#include "tool/exit_status.h"

static const int64_t settle_ns = 500000000; /* a signal within this time is the first one again */

static volatile sig_atomic_t asked; /* the first signal; written once, by the handler */
static _Atomic int64_t asked_ns;    /* when it came; two threads may run the handler */
static bool pipe_kills;             /* the parent did not ignore SIGPIPE */
static int asked_fd = -1;           /* becomes readable with the first signal, for poll */

static void handle(int signal_number) {
    int64_t first = 0;
    const int64_t now = (int64_t)bhi_clock_ns();
    if (atomic_compare_exchange_strong(&asked_ns, &first, now)) {
        const int error = errno;
        const uint64_t one = 1;
        asked = signal_number;
        (void)!write(asked_fd, &one, sizeof one);
        errno = error;
    } else if (now - first >= settle_ns) {
        signal(signal_number, SIG_DFL);
        (void)!raise(signal_number); /* delivered when this handler returns */
    }
}

void bhi_interrupt_watch(void) {
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction action;
    if (asked_fd < 0) {
        asked_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* if this fails, EINTR has to do */
    }
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    struct sigaction before;
    pipe_kills = sigaction(SIGPIPE, &action, &before) == 0 && before.sa_handler == SIG_DFL;
    sigaction(SIGXFSZ, &action, NULL); /* with ulimit -f: write fails instead */
    action.sa_handler = handle;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaddset(&action.sa_mask, signals[i]);
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old;
        /* A signal that the parent ignores (nohup, a background job of a script) stays ignored. */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
}

void bhi_interrupt_pipe(void) {
    if (pipe_kills) {
        signal(SIGPIPE, SIG_DFL);
        (void)!raise(SIGPIPE);
    }
}

int bhi_interrupt_signal(void) {
    return asked;
}

int bhi_interrupt_exit_status(void) {
    return BHI_EXIT_SIGNALLED + bhi_interrupt_signal();
}

int bhi_interrupt_or(int exit_status) {
    return asked ? bhi_interrupt_exit_status() : exit_status;
}

bool bhi_interrupt_pause(uint64_t ns) {
    struct pollfd signals = {.fd = asked_fd, .events = POLLIN};
    const uint64_t end = bhi_clock_ns() + ns;
    for (uint64_t now; !asked && (now = bhi_clock_ns()) < end;) {
        const struct timespec left = bhi_clock_until(end - now);
        (void)ppoll(&signals, 1, &left, NULL);
    }
    return !asked;
}

/* Waits with poll before it reads: a signal that came just before a plain read() would not end it,
 * and data may never come. */
ssize_t bhi_interrupt_read(int fd, void *bytes, size_t size) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        struct pollfd fds[] = {{.fd = asked_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) {
            return -1;
        }
        if (fds[0].revents) {
            errno = EINTR;
            return -1;
        }
    }
    return read(fd, bytes, size);
}

static ssize_t read_stream(void *cookie, char *bytes, size_t size) {
    ssize_t n;
    do {
        n = bhi_interrupt_read((int)(intptr_t)cookie, bytes, size);
    } while (n < 0 && errno == EINTR && !asked);
    return n;
}

static int close_stream(void *cookie) {
    const int fd = (int)(intptr_t)cookie;
    return fd == STDIN_FILENO ? 0 : close(fd);
}

FILE *bhi_interrupt_open(const char *path) {
    static const cookie_io_functions_t functions = {.read = read_stream, .close = close_stream};
    int fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0) {
        /* O_NONBLOCK opens a pipe at once; poll then waits for the writer. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
        if (flags < 0) {
            return NULL;
        }
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
    FILE *file = fopencookie((void *)(intptr_t)fd, "r", functions);
    if (!file) {
        close_stream((void *)(intptr_t)fd);
    }
    return file;
}
