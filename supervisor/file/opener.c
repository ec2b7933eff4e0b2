#include "supervisor/file/opener.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/owner.h"
#include "ipc/fdpass.h"
#include "ipc/refusal.h"
#include "supervisor/context/room.h"
#include "supervisor/worker/launch.h"
#include "supervisor/worker/proc_status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAKEN_NS (3000ull * 1000000) /* an opener that takes no request for so long is replaced */
#define END_NS   (1000ull * 1000000) /* how long a killed opener may take to end */
/* So many times END_NS, as long as the opener is runnable. To end, it needs some milliseconds on a
 * processor, so this is enough if it gets a thousandth of one. */
#define TURNS 30

#define RIGHTS_BYTES 32

struct bhi_opener {
    _Atomic uint32_t refs;
    int socket, pidfd;
    uint8_t rights[RIGHTS_BYTES];
    bool killed;                      /* kill_it has been called, and has waited */
    _Atomic uint64_t silent_since_ns; /* since then a thread waits; 0: a request was taken */
};

/* -- rights: a thread's to files, and its root. An opener must have those of the thread that asks. -- */

#define MOST_GROUPS 1024

/* Returns a digest of the calling thread's users, groups and capabilities, and of its root, which
 * differs after a chroot and in another mount namespace. */
static void read_rights(uint8_t out[RIGHTS_BYTES]) {
    struct {
        uid_t users[3];
        gid_t groups[3];
        int group_count;
        struct __user_cap_data_struct capabilities[2];
        uint32_t device[2];
        uint64_t root, mount;
    } all;
    memset(&all, 0, sizeof all); /* padding, too, because all bytes are hashed */
    (void)getresuid(&all.users[0], &all.users[1], &all.users[2]);
    (void)getresgid(&all.groups[0], &all.groups[1], &all.groups[2]);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    (void)syscall(SYS_capget, &header, all.capabilities);
    /* AT_STATX_DONT_SYNC: the root may be on a network file system whose server does not answer. */
    struct statx root;
    if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
              &root) == 0) {
        all.device[0] = root.stx_dev_major;
        all.device[1] = root.stx_dev_minor;
        all.root = root.stx_ino;
        all.mount = root.stx_mnt_id;
    }
    gid_t groups[MOST_GROUPS];
    all.group_count = getgroups(MOST_GROUPS, groups); /* -1: more; then no group is hashed */
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, RIGHTS_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)&all, sizeof all);
    if (all.group_count > 0) {
        crypto_generichash_update(&state, (const uint8_t *)groups,
                                  (size_t)all.group_count * sizeof *groups);
    }
    crypto_generichash_final(&state, out, RIGHTS_BYTES);
}

/* Returns the user and group with which the thread accesses files. A process that it starts has the
 * effective user instead. */
static void rights_of_files(uint32_t *out_user, uint32_t *out_group) {
    /* -1 is not a valid id: the call changes nothing and returns the present one. */
    *out_user = (uint32_t)setfsuid((uid_t)-1);
    *out_group = (uint32_t)setfsgid((gid_t)-1);
}

/* -- its life --------------------------------------------------------------------------------- */

/* Kills the opener, waits for its end for a bounded time, and reaps it. It does no harm if the host
 * ignores SIGCHLD or reaps all its children: the pidfd reports the end anyway. */
static void kill_it(struct bhi_opener *opener) {
    opener->killed = true;
    pidfd_send_signal(opener->pidfd, SIGKILL, NULL, 0);
    struct pollfd ended = {.fd = opener->pidfd, .events = POLLIN};
    const pid_t pid = bhi_pidfd_pid(opener->pidfd);
    int turns = 0;
    do {
        uint64_t by_ns = bhi_deadline_ns(END_NS);
        while (poll(&ended, 1, END_NS / 1000000) < 0 && errno == EINTR && bhi_now_ns() < by_ns)
            ;
    } while (!ended.revents && ++turns < TURNS && bhi_proc_is_runnable(pid));
    bhi_spawn_reap(opener->pidfd);
}

/* Drops a reference. The opener ends with the last one; each thread that waits for an answer has
 * one. Call it without the lock, because it may wait. */
static void release(struct bhi_opener *opener) {
    if (!opener || atomic_fetch_sub_explicit(&opener->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (opener->pidfd >= 0) {
        if (opener->killed) {
            bhi_spawn_reap(opener->pidfd); /* kill_it may have tried before the opener's end */
        } else {
            kill_it(opener);
        }
        close(opener->pidfd);
    }
    if (opener->socket >= 0) {
        close(opener->socket);
    }
    free(opener);
}

static int send_watch(struct bhi_opener *opener) {
    BHI_AUTO_FD self = pidfd_open(getpid(), 0);
    if (self < 0) {
        return -errno;
    }
    struct bhi_message message = {.type = BHI_MSG_WATCH};
    message.watch.protocol = BHI_WIRE_VERSION;
    return bhi_fdpass_send_message(opener->socket, &message, &self, 1);
}

/* Kills the opener and drops the context's reference. The shutdown tells the threads that wait for
 * an answer. */
static void end(struct bhi_opener *opener) {
    if (!opener) {
        return;
    }
    shutdown(opener->socket, SHUT_RDWR);
    kill_it(opener);
    release(opener);
}

static void drop(struct bhi_opener **opener) {
    release(*opener);
}
#define AUTO_OPENER __attribute__((cleanup(drop))) struct bhi_opener

/* Starts an opener. Returns 0 or -errno. *out_no_program: the program cannot be run. */
static int start(bh_context *context, struct bhi_opener **out_opener, bool *out_no_program) {
    AUTO_OPENER *opener = calloc(1, sizeof *opener);
    if (!opener) {
        return -ENOMEM;
    }
    atomic_init(&opener->refs, 1);
    opener->socket = opener->pidfd = -1;
    read_rights(opener->rights);
    int pair[2];
    int error = bhi_fdpass_pair(pair);
    if (error) {
        return error;
    }
    BHI_AUTO_FD theirs = pair[1];
    pid_t pid;
    opener->socket = pair[0];
    int flags = fcntl(opener->socket, F_GETFL);
    if (flags < 0 || fcntl(opener->socket, F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    opener->pidfd = bhi_spawn(context->settings.warden_path, "opener", theirs, &pid);
    if (opener->pidfd < 0) {
        *out_no_program = bhi_spawn_is_of_file(-opener->pidfd);
        return opener->pidfd;
    }
    bhi_fd_close(&theirs); /* only the opener has it now, so its end closes the connection */
    if ((error = send_watch(opener)) != 0) {
        bhi_spawn_kill(opener->pidfd); /* ends at once: the opener has not touched any file yet */
        opener->pidfd = -1;
        return error;
    }
    *out_opener = BHI_STEAL(opener);
    return 0;
}

/* Reports that the opener has ended without an answer. If no opener has ever answered, the
 * program may not be a warden: then the message also says what to do. */
static bh_status fail_mute(bh_context *context, const char *call, const char *what,
                           bh_detail *detail) {
    const bool remedy = !atomic_load(&context->opener_answered);
    return BHI_FAIL(detail, call, BH_REASON_OPENER, context->settings.warden_path, .text = what,
                    .advice = remedy ? BHI_WARDEN_REMEDY : NULL);
}

/* Returns the context's opener with a reference. Starts one if there is none, or if its rights are
 * not those of the calling thread: it could open what the thread may not. The replaced opener ends
 * when no thread waits for it any more. */
static bh_status get(bh_context *context, const char *call, struct bhi_opener **out_opener,
                     bh_detail *detail) {
    uint8_t rights[RIGHTS_BYTES];
    read_rights(rights);
    AUTO_OPENER *old = NULL; /* released after the lock */
    bh_status status = BH_OK;
    pthread_mutex_lock(&context->opener_lock);
    if (context->opener && memcmp(context->opener->rights, rights, sizeof rights) != 0) {
        old = context->opener;
        context->opener = NULL;
    }
    if (context->opener_given_up) {
        status = BHI_FAIL(detail, call, BH_REASON_DESTROYED);
    } else if (!context->opener && (status = bhi_room_check(call, "the process that opens files",
                                                            BHI_ROOM_OPENER, detail)) == BH_OK) {
        bool no_program = false;
        int error = start(context, &context->opener, &no_program);
        if (error == -EPIPE || error == -ECONNRESET) {
            status = fail_mute(context, call, "ended when it was started", detail);
        } else if (no_program) {
            status = BHI_FAIL(detail, call, BH_REASON_NO_PROGRAM, context->settings.warden_path,
                              .place = "the process that opens files", .sys_errno = -error,
                              .advice = BHI_WARDEN_REMEDY);
        } else if (error == -ENOMEM) {
            status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
        } else if (error) {
            status = BHI_FAIL(detail, call, BH_REASON_START, context->settings.warden_path,
                              .place = "the process that opens files", .sys_errno = -error);
        }
    }
    if (status == BH_OK) {
        *out_opener = context->opener;
        atomic_fetch_add_explicit(&context->opener->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&context->opener_lock);
    return status;
}

/* The opener is dead or does not answer: ends it, so that the next request starts another. */
static void lose(bh_context *context, const struct bhi_opener *opener) {
    struct bhi_opener *lost = NULL;
    pthread_mutex_lock(&context->opener_lock);
    if (context->opener == opener) {
        lost = context->opener;
        context->opener = NULL;
    }
    pthread_mutex_unlock(&context->opener_lock);
    end(lost);
}

void bhi_opener_stop(bh_context *context) {
    pthread_mutex_lock(&context->opener_lock);
    struct bhi_opener *opener = context->opener;
    context->opener = NULL;
    context->opener_given_up = true;
    pthread_mutex_unlock(&context->opener_lock);
    end(opener);
}

/* -- a request -------------------------------------------------------------------------------- */

struct request {
    struct bhi_message message;
    char path[PATH_MAX];
    uint32_t path_bytes; /* 0: there is none to be sent */
    int from;            /* the second descriptor; -1: the current folder */
};

/* Returns N for a path that names descriptor N of this process, which the opener does not have; -1
 * for any other path. */
static int own_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"};
    static const char *const streams[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(path, streams[i]) == 0) {
            return i;
        }
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        const char *digits = path + length;
        if (strncmp(path, folders[i], length) == 0 && digits[0] && strlen(digits) < 10 &&
            digits[strspn(digits, "0123456789")] == 0) {
            return atoi(digits);
        }
    }
    return -1;
}

/* Writes the path by number of what |path| names below this process's own folder in /proc, which is
 * another one in the opener. Returns its length, 0 if |path| lies elsewhere, or -errno. */
static int by_number(const char *path, char out[PATH_MAX]) {
    static const char process[] = "/proc/self/", thread[] = "/proc/thread-self/";
    const bool of_process = strncmp(path, process, strlen(process)) == 0;
    if (!of_process && strncmp(path, thread, strlen(thread)) != 0) {
        return 0;
    }
    /* The process's folder is that of its first thread: if that has ended, it has no files. A
     * thread's folder has less, but this thread waits for the answer, so its folder stays. */
    char first, numbers[64];
    const bool lives = of_process && readlink("/proc/self/exe", &first, 1) == 1;
    const ssize_t length =
        readlink(lives ? "/proc/self" : "/proc/thread-self", numbers, sizeof numbers);
    return length < 0 ? -errno
                      : snprintf(out, PATH_MAX, "/proc/%.*s/%s", (int)length, numbers,
                                 path + strlen(of_process ? process : thread));
}

/* Makes the request. Returns 0, or the errno with which opening the file would have failed. */
static int compose(const bh_file_source *source, struct request *request) {
    *request = (struct request){.message.type = BHI_MSG_OPEN, .from = source->fd};
    struct bhi_msg_open *what = &request->message.open;
    const char *tenant = source->tenant ? source->tenant : "";
    crypto_generichash((unsigned char *)&what->tenant, sizeof what->tenant,
                       (const unsigned char *)tenant, strlen(tenant), NULL, 0);
    rights_of_files(&what->user, &what->group);
    int own = source->path ? own_descriptor(source->path) : -1;
    if (!source->path || own >= 0) {
        request->from = source->path ? own : source->fd;
        return fcntl(request->from, F_GETFD) >= 0 ? 0 : errno != EBADF || own < 0 ? errno : ENOENT;
    }
    request->from = -1;
    what->named = 1;
    int length = by_number(source->path, request->path);
    if (length < 0) {
        return -length;
    }
    if (length == 0) {
        length = snprintf(request->path, sizeof request->path, "%s", source->path);
    }
    what->path_bytes = request->path_bytes = (uint32_t)length;
    return length < (int)sizeof request->path ? 0 : ENAMETOOLONG;
}

/* Returns a descriptor of the current folder, where relative paths begin, or -errno. open_tree with
 * an empty path looks nothing up, so it does not block on a dead mount. */
static int current_folder(void) {
    int folder = open_tree(AT_FDCWD, "", AT_EMPTY_PATH | OPEN_TREE_CLOEXEC);
    if (folder < 0 && (errno == EPERM || errno == ENOSYS)) { /* some containers forbid open_tree */
        folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return folder < 0 ? -errno : folder;
}

/* Sends |request|. The answer will come through *out_socket. Returns 0 or -errno. -EPIPE and
 * -EAGAIN mean that the opener no longer reads its socket. */
static int ask(struct bhi_opener *opener, const struct request *request, int *out_socket) {
    int pair[2], unread;
    if (ioctl(opener->socket, SIOCOUTQ, &unread) == 0 && unread == 0) {
        /* The opener has read all requests, even if no thread has waited for an answer since. */
        atomic_store(&opener->silent_since_ns, 0);
    }
    int error = bhi_fdpass_pair(pair);
    if (error) {
        return error;
    }
    BHI_AUTO_FD theirs = pair[0], ours = pair[1], folder = -1;
    if (request->path_bytes) {
        error = bhi_fdpass_send(ours, request->path, request->path_bytes, NULL, 0);
    }
    if (!error && request->from < 0 && (folder = current_folder()) < 0) {
        error = folder;
    }
    if (!error) {
        const struct bhi_message *message = &request->message;
        const int fds[] = {theirs, request->from < 0 ? folder : request->from};
        error = bhi_fdpass_send_message(opener->socket, message, fds, 2);
        struct pollfd room = {.fd = opener->socket, .events = POLLOUT};
        if (error == -EAGAIN && poll(&room, 1, TAKEN_NS / 1000000) == 1) {
            error = bhi_fdpass_send_message(opener->socket, message, fds, 2);
        }
    }
    if (!error) {
        *out_socket = bhi_fd_steal(&ours);
    }
    return error;
}

/* Waits until |socket| is readable. Returns false if the time is over, or if the opener's socket
 * has ended. */
static bool await(const struct bhi_opener *opener, int socket, uint64_t by_ns, bool *out_ended) {
    *out_ended = false;
    for (;;) {
        struct pollfd fds[] = {{.fd = socket, .events = POLLIN}, {.fd = opener->socket}};
        uint64_t now_ns = bhi_now_ns();
        uint64_t left_ns = by_ns > now_ns ? by_ns - now_ns : 0;
        struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000),
                                   .tv_nsec = (long)(left_ns % 1000000000)};
        int count = ppoll(fds, 2, by_ns == BH_FOREVER ? NULL : &timeout, NULL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count > 0 && fds[0].revents) {
            return true;
        }
        *out_ended = count != 0;
        return false;
    }
}

/* Receives a packet. If the opener closed its end while our path was still unread, ECONNRESET comes
 * once, before the packets that the opener has sent. */
static ssize_t receive(int socket, uint8_t bytes[BHI_WIRE_MAX], int flags) {
    ssize_t length = recv(socket, bytes, BHI_WIRE_MAX, flags | MSG_DONTWAIT);
    return length < 0 && errno == ECONNRESET
               ? recv(socket, bytes, BHI_WIRE_MAX, flags | MSG_DONTWAIT)
               : length;
}

enum heard { HEARD, LOST, LATE };

/* Waits for the answer and reads it. LATE: it has not come by the deadline. LOST: the opener has
 * died, does not take the request, or broke the protocol. */
static enum heard hear(bh_context *context, struct bhi_opener *opener, int socket,
                       uint64_t deadline_ns, struct bhi_message *out) {
    /* An opener that was killed but is stuck in the kernel keeps its sockets open and never
     * answers. The opener is lost when it has taken no request for TAKEN_NS. This time is counted
     * over all callers, because one whose deadline is earlier cannot find it out. */
    uint64_t since_ns = 0, now_ns = bhi_now_ns();
    if (atomic_compare_exchange_strong(&opener->silent_since_ns, &since_ns, now_ns)) {
        since_ns = now_ns;
    }
    uint64_t taken_ns = since_ns + TAKEN_NS;
    bool taken = false;
    for (;;) {
        uint8_t bytes[BHI_WIRE_MAX];
        bool ended;
        uint64_t by_ns = !taken && taken_ns < deadline_ns ? taken_ns : deadline_ns;
        if (!await(opener, socket, by_ns, &ended) &&
            (ended || (!taken && taken_ns <= bhi_now_ns()))) {
            return LOST;
        }
        /* recv takes no descriptors, so the open file stays in the packet. */
        ssize_t length = receive(socket, bytes, MSG_PEEK);
        if (length < 0) {
            return errno == EAGAIN ? LATE : LOST;
        }
        if (bhi_wire_decode(bytes, (size_t)length, BHI_O2S, BHI_WS_ANY, out, NULL, 0) != 0) {
            return LOST; /* malformed, or empty because the opener has closed its end */
        }
        atomic_store_explicit(&context->opener_answered, true, memory_order_relaxed);
        if (out->type != BHI_MSG_TAKEN) {
            return HEARD;
        }
        if (taken || receive(socket, bytes, 0) != length) {
            return LOST;
        }
        taken = true;
        atomic_store(&opener->silent_since_ns, 0);
    }
}

/* Copies the answer. Takes |socket| over if the open file is in it. */
static void take(const struct bhi_message *message, int *socket, struct bhi_opening *out) {
    if (message->type == BHI_MSG_OPENED) {
        out->opened = message->opened;
        out->socket = bhi_fd_steal(socket);
        return;
    }
    out->error = message->open_failed.error;
    bhi_format(out->what, sizeof out->what, "%s", message->open_failed.what);
}

/* Sends the request and waits for the answer. If one came, it is in *out_message, and *out_socket
 * is its socket. If this process could not send the request, returns BH_OK with the errno in
 * *out_error. If the opener is lost, tries once more with another. */
static bh_status exchange(bh_context *context, const struct request *request, uint64_t deadline_ns,
                          const char *call, const char *name, struct bhi_message *out_message,
                          int *out_socket, int *out_error, bh_detail *detail) {
    *out_error = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        AUTO_OPENER *opener = NULL;
        BHI_TRY(get(context, call, &opener, detail));
        int socket = -1;
        int error = ask(opener, request, &socket);
        enum heard heard = error ? LOST : hear(context, opener, socket, deadline_ns, out_message);
        if (heard == HEARD) {
            *out_socket = socket;
        } else if (!error) {
            bhi_opener_let_go(context, socket); /* the open file may still arrive in it */
        }
        if (heard == LOST && (!error || error == -EPIPE || error == -EAGAIN)) {
            lose(context, opener);
        }
        if (error && error != -EPIPE && error != -EAGAIN) {
            *out_error = -error; /* this process has no free descriptor, for example */
            return BH_OK;
        }
        if (heard == HEARD) {
            return BH_OK;
        }
        if (heard == LATE || deadline_ns <= bhi_now_ns()) {
            return BHI_FAIL(detail, call, BH_REASON_OPEN_LATE, name);
        }
    }
    char where[160];
    bhi_format(where, sizeof where, "%s: %.100s", call, name);
    return fail_mute(context, where, "died while opening it, twice", detail);
}

bh_status bhi_opener_open(bh_context *context, const bh_file_source *source, uint64_t deadline_ns,
                          const char *call, const char *name, struct bhi_opening *out,
                          bh_detail *detail) {
    struct request request;
    struct bhi_message message;
    BHI_AUTO_FD socket = -1;
    *out = (struct bhi_opening){.socket = -1, .error = compose(source, &request)};
    if (out->error) {
        return BH_OK;
    }
    bh_status status = exchange(context, &request, deadline_ns, call, name, &message, &socket,
                                &out->error, detail);
    if (socket >= 0) {
        take(&message, &socket, out);
    }
    return status;
}

bh_status bhi_opener_cache(bh_context *context, const struct bhi_cache_call *what,
                           uint64_t deadline_ns, struct bhi_msg_cache_done *out,
                           bh_detail *detail) {
    struct request request = {.message.type = BHI_MSG_CACHE_FILE, .from = what->area};
    struct bhi_msg_cache_file *file = &request.message.cache_file;
    *out = (struct bhi_msg_cache_done){0};
    rights_of_files(&file->user, &file->group);
    file->store = what->store;
    file->room = what->room;
    memcpy(file->identity, what->identity, sizeof file->identity);
    int length = snprintf(request.path, sizeof request.path, "%s", what->folder);
    file->path_bytes = request.path_bytes = (uint32_t)length;
    struct bhi_message message;
    BHI_AUTO_FD socket = -1;
    int error = 0;
    bh_status status = exchange(context, &request, deadline_ns, "pipeline cache", what->folder,
                                &message, &socket, &error, detail);
    if (socket >= 0) {
        if (message.type == BHI_MSG_CACHE_DONE) {
            *out = message.cache_done;
        } else {
            out->error = EPROTO;
        }
    } else if (status == BH_OK) {
        out->error = error;
    }
    return status;
}

void bhi_opener_let_go(bh_context *context, int given) {
    BHI_AUTO_FD socket = given;
    AUTO_OPENER *opener = NULL;
    pthread_mutex_lock(&context->opener_lock);
    if (context->opener) {
        opener = context->opener;
        atomic_fetch_add_explicit(&opener->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&context->opener_lock);
    if (opener) {
        /* If this fails, the file is closed by this process instead of the opener. */
        const struct bhi_message message = {.type = BHI_MSG_LET_GO};
        (void)bhi_fdpass_send_message(opener->socket, &message, &socket, 1);
    }
}
