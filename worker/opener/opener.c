#include "worker/opener/opener.h"
#include "base/share.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/host.h"
#include "worker/opener/cache_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define START_TIMEOUT_MS 10000 /* for the host's first message */
/* Threads that may hang in open(). Tenants share them (base/share.h); further requests are refused.
 */
#define MOST_OPENING 128u
#define MOST_CACHES  8 /* threads that may hang on a pipeline cache; further requests are refused */
#define MOST_CLOSING 64 /* threads that may hang in close(); further files stay open */
#define STACK        ((size_t)256 << 10)
/* With O_NONBLOCK, open() of a FIFO does not wait for a writer; the FIFO is then refused. */
#define FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static _Atomic int caching, closing;

/* How many requests of each tenant are being served. */
static struct {
    pthread_mutex_t lock; /* guards what follows */
    uint32_t all;
    struct {
        uint64_t tenant;
        uint32_t count; /* 0: the place is free */
    } tenants[MOST_OPENING];
} opening = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the tenant's place; a free one if it has none. As many tenants as requests have one, so
 * there is one until all threads are in use. Lock held. */
static uint32_t find_tenant(uint64_t tenant) {
    uint32_t place = MOST_OPENING;
    for (uint32_t i = 0; i < MOST_OPENING; i++) {
        if (opening.tenants[i].count != 0 && opening.tenants[i].tenant == tenant) {
            return i;
        }
        if (opening.tenants[i].count == 0 && place == MOST_OPENING) {
            place = i;
        }
    }
    return place;
}

static bool begin_opening(uint64_t tenant) {
    pthread_mutex_lock(&opening.lock);
    const uint32_t place = find_tenant(tenant);
    const bool may = place < MOST_OPENING &&
                     bhi_share_allows(opening.tenants[place].count, 1, opening.all, MOST_OPENING);
    if (may) {
        opening.tenants[place].tenant = tenant;
        opening.tenants[place].count++;
        opening.all++;
    }
    pthread_mutex_unlock(&opening.lock);
    return may;
}

static void end_opening(uint64_t tenant) {
    pthread_mutex_lock(&opening.lock);
    opening.tenants[find_tenant(tenant)].count--;
    opening.all--;
    pthread_mutex_unlock(&opening.lock);
}

static bool begin(_Atomic int *count, int most) {
    if (atomic_fetch_add(count, 1) < most) {
        return true;
    }
    atomic_fetch_sub(count, 1);
    return false;
}

static bool start_thread(void *(*run)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    const int error = pthread_create(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/* -- a request, in a thread of its own -------------------------------------------------------- */

struct request {
    struct bhi_msg_open what;
    int answer, from;
};

static void refuse(int answer, int error, const char *what) {
    struct bhi_message message = {.type = BHI_MSG_OPEN_FAILED};
    message.open_failed.error = error > 0 && error < 4096 ? error : EIO;
    snprintf(message.open_failed.what, sizeof message.open_failed.what, "%s", what);
    (void)bhi_fdpass_send_message(answer, &message, NULL, 0); /* fails if nobody waits any more */
}

/* The caller's thread may act for another user; so does this thread. The two calls set the ids of
 * the thread only. */
static int become(uint32_t user, uint32_t group) {
    (void)setfsgid((gid_t)group);
    (void)setfsuid((uid_t)user);
    const bool is = setfsuid((uid_t)-1) == (int)user && setfsgid((gid_t)-1) == (int)group;
    return is ? 0 : -EPERM;
}

static int open_named(const struct request *request) {
    char path[4096];
    const uint32_t bytes = request->what.path_bytes;
    if (bytes > 0 && recv(request->answer, path, sizeof path, MSG_DONTWAIT) != (ssize_t)bytes) {
        return -EBADMSG;
    }
    path[bytes] = '\0';
    if (strlen(path) != bytes) {
        return -EINVAL;
    }
    const int fd = openat(request->from, path, FLAGS);
    return fd < 0 ? -errno : fd;
}

/* Opens a new description that can only be read. A copy of the caller's descriptor might be
 * writable, and would share its position. */
static int open_again(int from) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", from);
    const int fd = open(path, FLAGS);
    if (fd >= 0) {
        return fd;
    }
    const int error = errno;
    const int flags = fcntl(from, F_GETFL);
    if (flags < 0) {
        return -EBADF;
    }
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH) != 0) {
        return -error;
    }
    const int copy = fcntl(from, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

static void describe(const struct stat *status, const struct statfs *system,
                     struct bhi_msg_opened *out) {
    *out = (struct bhi_msg_opened){
        .mode = status->st_mode,
        .device = status->st_dev,
        .inode = status->st_ino,
        .links = status->st_nlink,
        .size = (uint64_t)status->st_size,
        .modified_s = (uint64_t)status->st_mtim.tv_sec,
        .modified_ns = (uint64_t)status->st_mtim.tv_nsec,
        .changed_s = (uint64_t)status->st_ctim.tv_sec,
        .changed_ns = (uint64_t)status->st_ctim.tv_nsec,
        .system = (uint64_t)system->f_type,
    };
}

/* Sends the answer. Returns what was opened, for the caller to close, or -1. */
static int answer(const struct request *request) {
    int fd = become(request->what.user, request->what.group);
    if (fd == 0) {
        fd = request->what.named ? open_named(request) : open_again(request->from);
    }
    if (fd < 0) {
        refuse(request->answer, -fd, "");
        return -1;
    }
    struct stat status;
    struct statfs system = {0};
    if (fstat(fd, &status) != 0) {
        refuse(request->answer, errno, "fstat");
    } else if (S_ISREG(status.st_mode) && fstatfs(fd, &system) != 0) {
        refuse(request->answer, errno, "fstatfs");
    } else {
        /* The file and its description are in one packet, so the host has both even if this process
         * dies. */
        struct bhi_message message = {.type = BHI_MSG_OPENED};
        describe(&status, &system, &message.opened);
        const int error = bhi_fdpass_send_message(request->answer, &message, &fd, 1);
        if (error != 0) {
            refuse(request->answer, -error, "fstat gave an impossible answer");
        }
    }
    return fd;
}

static void *serve(void *argument) {
    struct request *request = argument;
    const int fd = answer(request);
    const int from = request->from;
    const uint64_t tenant = request->what.tenant;
    close(request->answer);
    free(request);
    end_opening(tenant);
    if (begin(&closing, MOST_CLOSING)) {
        if (fd >= 0) {
            close(fd);
        }
        close(from);
        atomic_fetch_sub(&closing, 1);
    }
    return NULL;
}

/* -- a pipeline cache, in the same way -------------------------------------------------------- */

struct cache_request {
    struct bhi_msg_cache_file what;
    int answer, area;
};

static int serve_files(const struct cache_request *request, struct bhi_msg_cache_done *out) {
    char folder[4096];
    const uint32_t bytes = request->what.path_bytes;
    if (recv(request->answer, folder, sizeof folder, MSG_DONTWAIT) != (ssize_t)bytes) {
        return -EBADMSG;
    }
    folder[bytes] = '\0';
    struct bhi_cache_file file = {
        .folder = folder, .area = request->area, .room = request->what.room};
    memcpy(file.identity, request->what.identity, sizeof file.identity);
    const int error = become(request->what.user, request->what.group);
    if (error != 0) {
        return error;
    }
    return request->what.store ? bhi_cache_store(&file, &out->bytes, out->what, sizeof out->what)
                               : bhi_cache_load(&file, &out->bytes, out->what, sizeof out->what);
}

static void *serve_cache(void *argument) {
    struct cache_request *request = argument;
    struct bhi_message done = {.type = BHI_MSG_CACHE_DONE};
    const int error = serve_files(request, &done.cache_done);
    done.cache_done.error = -error < 4096 ? -error : EIO;
    (void)bhi_fdpass_send_message(request->answer, &done, NULL, 0);
    close(request->answer);
    close(request->area);
    free(request);
    atomic_fetch_sub(&caching, 1);
    return NULL;
}

/* -- closing ---------------------------------------------------------------------------------- */

/* Takes the file out of its socket, so that the process that closes the socket last, perhaps the
 * host, does not find it there. Dropping the last reference to a file can hang like a close. */
static void *let_go(void *argument) {
    const int socket = (int)(intptr_t)argument;
    char bytes[BHI_WIRE_MAX];
    int fds[BHI_FDPASS_MAX];
    for (;;) {
        size_t count = BHI_FDPASS_MAX;
        if (bhi_fdpass_recv(socket, bytes, sizeof bytes, fds, &count, MSG_DONTWAIT) <= 0) {
            break;
        }
        while (count > 0) {
            close(fds[--count]);
        }
    }
    close(socket);
    atomic_fetch_sub(&closing, 1);
    return NULL;
}

/* -- the main thread -------------------------------------------------------------------------- */

static void take_request(const struct bhi_msg_open *what, const int fds[2]) {
    const struct bhi_message taken = {.type = BHI_MSG_TAKEN};
    (void)bhi_fdpass_send_message(fds[0], &taken, NULL, 0);
    struct request *request = malloc(sizeof *request);
    if (request && begin_opening(what->tenant)) {
        *request = (struct request){.what = *what, .answer = fds[0], .from = fds[1]};
        if (start_thread(serve, request)) {
            return;
        }
        end_opening(what->tenant);
    }
    free(request);
    refuse(fds[0], EAGAIN, "too many files of its tenant are being opened");
    close(fds[0]);
    if (what->named) {
        close(fds[1]); /* a folder (O_PATH), whose close cannot hang; a file stays open */
    }
}

static void take_cache(const struct bhi_msg_cache_file *what, const int fds[2]) {
    const struct bhi_message taken = {.type = BHI_MSG_TAKEN};
    (void)bhi_fdpass_send_message(fds[0], &taken, NULL, 0);
    struct cache_request *request = malloc(sizeof *request);
    if (request && begin(&caching, MOST_CACHES)) {
        *request = (struct cache_request){.what = *what, .answer = fds[0], .area = fds[1]};
        if (start_thread(serve_cache, request)) {
            return;
        }
        atomic_fetch_sub(&caching, 1);
    }
    free(request);
    struct bhi_message done = {.type = BHI_MSG_CACHE_DONE};
    done.cache_done.error = EAGAIN;
    (void)bhi_fdpass_send_message(fds[0], &done, NULL, 0);
    close(fds[0]);
    close(fds[1]);
}

static void take_socket(int fd) {
    if (!begin(&closing, MOST_CLOSING)) {
        return; /* the socket stays open */
    }
    if (!start_thread(let_go, (void *)(intptr_t)fd)) {
        atomic_fetch_sub(&closing, 1);
    }
}

/* Returns false if this process cannot go on: the host is gone or misbehaves, or so much has stayed
 * open that no descriptor is left. The host then starts another opener. */
static bool take(int *out_host) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    const int r =
        bhi_fdpass_recv_message(BHI_HOST_SOCKET, BHI_S2O, &message, fds, MSG_DONTWAIT, NULL, 0);
    if (r <= 0) {
        return r == -EAGAIN || r == -EINTR;
    }
    if ((message.type == BHI_MSG_WATCH) != (*out_host < 0)) {
        return false;
    }
    if (message.type == BHI_MSG_OPEN) {
        take_request(&message.open, fds);
    } else if (message.type == BHI_MSG_CACHE_FILE) {
        take_cache(&message.cache_file, fds);
    } else if (message.type == BHI_MSG_LET_GO) {
        take_socket(fds[0]);
    } else {
        *out_host = fds[0];
    }
    return true;
}

int bhi_opener_run(void) {
    enum { SOCKET, HOST };
    int host = -1;
    if (!bhi_host_forget()) {
        return BHI_EXIT_START_FAILED;
    }
    if (sodium_init() < 0) {
        return BHI_EXIT_START_FAILED;
    }
    struct pollfd fds[2] = {[SOCKET] = {.fd = BHI_HOST_SOCKET, .events = POLLIN},
                            [HOST] = {.fd = -1, .events = POLLIN}};
    for (;;) {
        const int n = poll(fds, 2, host < 0 ? START_TIMEOUT_MS : -1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || fds[HOST].revents != 0 || (fds[SOCKET].revents != 0 && !take(&host))) {
            break;
        }
        fds[HOST].fd = host;
    }
    /* Not exit(), because other threads may still run. */
    _exit(BHI_EXIT_OK);
}
