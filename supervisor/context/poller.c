#include "supervisor/context/poller.h"
#include "base/fd.h"
#include "base/limits.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zmq.h>

#define MAX_SOCKETS   8192
#define ZMQ_STARTS    5 /* descriptors that libzmq opens with its first socket */
#define ZMQ_MARGIN    8 /* reserve for what the host's other threads open at the same moment */
#define THREADS       3
#define THREAD_MARGIN ((size_t)4 << 20) /* what they allocate when they start */

static int last_error(void) {
    return zmq_errno() > 0 ? -zmq_errno() : -EIO;
}

/* libzmq starts its threads with the first socket, and aborts the process if it cannot start one, or
 * cannot open a descriptor for one of them. So the first socket is made here, once. As many
 * descriptors and threads as it needs are made before and ended just before the call, which shows
 * that the process and the machine have room for them. A later socket that finds no room fails
 * without harm (ipc/channel.c). */
/* Returns 0 if the address space has room for the threads of libzmq and the reactor: libzmq aborts
 * the process if it cannot start one, too. */
static int check_address_space(void) {
    pthread_attr_t attributes;
    size_t stack = 0;
    if (bhi_limit_of_address_space() == UINT64_MAX || pthread_attr_init(&attributes) != 0) {
        return 0;
    }
    (void)pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
    const size_t size = THREADS * stack + THREAD_MARGIN;
    void *probe = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        return -errno;
    }
    munmap(probe, size);
    return 0;
}

static void *hold(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Returns 0 if as many threads as are needed can be started: a limit of processes may forbid it.
 * ThreadSanitizer ends a child of fork() in which a thread has the id of one that has ended. */
static int check_threads(void) {
#ifdef __SANITIZE_THREAD__
    return 0;
#endif
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[THREADS];
    int count = 0, error = 0;
    pthread_mutex_lock(&gate);
    while (!error && count < THREADS) {
        error = pthread_create(&threads[count], NULL, hold, &gate);
        count += !error;
    }
    pthread_mutex_unlock(&gate);
    while (count > 0) {
        pthread_join(threads[--count], NULL);
    }
    return -error;
}

static int start_threads(struct bhi_messaging *messaging) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    int held[ZMQ_STARTS + ZMQ_MARGIN], count = 0, error = check_address_space();
    error = error ? error : check_threads();
    pthread_mutex_lock(&one_at_a_time);
    while (!error && count < ZMQ_STARTS + ZMQ_MARGIN) {
        held[count] = eventfd(0, EFD_CLOEXEC);
        error = held[count] < 0 ? -errno : 0;
        count += !error;
    }
    while (count > 0) {
        close(held[--count]);
    }
    if (!error && !(messaging->starter = zmq_socket(messaging->zmq, ZMQ_PAIR))) {
        error = last_error();
    }
    pthread_mutex_unlock(&one_at_a_time);
    return error;
}

/* Returns 0 or -errno. */
static int start_messaging(struct bhi_messaging *messaging) {
    *messaging = (struct bhi_messaging){.zmq = zmq_ctx_new()};
    if (!messaging->zmq) {
        return last_error();
    }
    zmq_ctx_set(messaging->zmq, ZMQ_IO_THREADS, 1);
    zmq_ctx_set(messaging->zmq, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    return start_threads(messaging);
}

/* All other sockets must be closed. Does nothing if it was not started. */
static void stop_messaging(struct bhi_messaging *messaging) {
    if (messaging->starter) {
        zmq_close(messaging->starter);
    }
    if (messaging->zmq) {
        zmq_ctx_term(messaging->zmq);
    }
    *messaging = (struct bhi_messaging){0};
}

void bhi_poller_init(struct bhi_poller *poller) {
    *poller = (struct bhi_poller){.epoll = -1, .wake = -1, .armed_ns = BH_FOREVER};
}

int bhi_poller_open(struct bhi_poller *poller) {
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->epoll < 0 || poller->wake < 0) {
        return -errno;
    }
    int error = start_messaging(&poller->messaging);
    if (error) {
        return error;
    }
    poller->wake_source = (struct bhi_control_source){BHI_SOURCE_WAKE, poller};
    return bhi_poller_watch(poller, poller->wake, &poller->wake_source);
}

void bhi_poller_close(struct bhi_poller *poller, bool messaging) {
    if (messaging) {
        stop_messaging(&poller->messaging);
    }
    bhi_fd_close(&poller->epoll);
    bhi_fd_close(&poller->wake);
}

void bhi_poller_wake(struct bhi_poller *poller) {
    uint64_t one = 1;
    ssize_t ignored = write(poller->wake, &one, sizeof one);
    (void)ignored; /* EAGAIN: the counter is at its maximum, so the reactor wakes anyway */
}

int bhi_poller_control(struct bhi_poller *poller, int operation, int fd, uint32_t events,
                       struct bhi_control_source *source) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(poller->epoll, operation, fd, &event) ? -errno : 0;
}

int bhi_poller_watch(struct bhi_poller *poller, int fd, struct bhi_control_source *source) {
    return bhi_poller_control(poller, EPOLL_CTL_ADD, fd, EPOLLIN, source);
}

void bhi_poller_unwatch(struct bhi_poller *poller, int fd) {
    if (fd >= 0) {
        epoll_ctl(poller->epoll, EPOLL_CTL_DEL, fd, NULL);
    }
}
