#include "ipc/channel.h"

#include "base/fd.h"
#include "base/futex.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#define ACCEPT_MS      5000
#define WORKER_SOCKETS 2
#define MAX_PIECE      8192 /* the most that libzmq reads at once from a raw connection */
#define MAX_PEER_ID    32
#define MAX_STRANGERS  64 /* how many pieces from other connections one call looks at */
/* "Never" must be finite: with -1 libzmq drops what the peer sent last, and the news that it has
 * gone. */
#define NEVER_MS       (1 << 30)
#define NS_PER_MS      1000000u
#define ENDPOINT_BYTES (sizeof(struct sockaddr_un) + 8)

/*      NONE ── first notification ──▶ CONNECTED ── second one ──▶ GONE
 * There is one peer in the life of a channel. */
enum peer_state { PEER_NONE, PEER_CONNECTED, PEER_GONE };

struct bhi_channel_input {
    enum peer_state peer;
    uint8_t peer_id[MAX_PEER_ID]; /* libzmq's name for the connection */
    size_t peer_id_length;
    bool lost; /* a header was invalid: where the next message begins is unknown */
    size_t begin, end;
    uint8_t bytes[BHI_WIRE_MAX + MAX_PIECE];
};

static int last_error(void) {
    int error = zmq_errno();
    return error > 0 ? -error : -EIO;
}

static int set_int(void *socket, int option, int value) {
    return zmq_setsockopt(socket, option, &value, sizeof value) ? last_error() : 0;
}

static int set_options(void *socket) {
    static const struct {
        int option, value;
    } options[] = {
        {ZMQ_SNDHWM, BHI_CHANNEL_HWM},
        {ZMQ_RCVHWM, BHI_CHANNEL_HWM},
        {ZMQ_LINGER, 0},
        {ZMQ_RECONNECT_IVL, NEVER_MS},
        {ZMQ_IMMEDIATE, 0},
        {ZMQ_BACKLOG, 1},
        {ZMQ_IPV6, 0},
        {ZMQ_STREAM_NOTIFY, 1},
    };
    int64_t max_size = MAX_PIECE;
    if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_size, sizeof max_size)) {
        return last_error();
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        int error = set_int(socket, options[i].option, options[i].value);
        if (error) {
            return error;
        }
    }
    return 0;
}

static int make_endpoint(char out[ENDPOINT_BYTES], const char *path) {
    if (path[0] != '/') {
        return -EINVAL;
    }
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        return -ENAMETOOLONG;
    }
    snprintf(out, ENDPOINT_BYTES, "ipc://%s", path);
    return 0;
}

static int open_socket(struct bhi_channel *channel, void *context) {
    channel->input = calloc(1, sizeof *channel->input);
    if (!channel->input) {
        return -ENOMEM;
    }
    channel->socket = zmq_socket(context, ZMQ_STREAM);
    if (!channel->socket) {
        return last_error();
    }
    size_t size = sizeof channel->fd;
    int error = set_options(channel->socket);
    if (!error && zmq_getsockopt(channel->socket, ZMQ_FD, &channel->fd, &size)) {
        error = last_error();
    }
    return error;
}

/* libzmq closes its descriptor in a thread of its own, which TSan does not see. TSan would
 * attribute what was done with that descriptor here (epoll_ctl) to the next descriptor of the same
 * number, whichever thread opens it. */
static void forget_fd(int fd) {
#ifdef __SANITIZE_THREAD__
    extern void __sanitizer_syscall_pre_impl_close(long); /* tells TSan that it is closed */
    __sanitizer_syscall_pre_impl_close(fd);
#else
    (void)fd;
#endif
}

void bhi_channel_close(struct bhi_channel *channel) {
    if (!channel) {
        return;
    }
    if (channel->fd >= 0) {
        forget_fd(channel->fd);
    }
    if (channel->socket) {
        zmq_close(channel->socket);
    }
    while (channel->context && zmq_ctx_term(channel->context) && zmq_errno() == EINTR)
        ;
    free(channel->input);
    *channel = (struct bhi_channel){.fd = -1};
}

/* -- input --------------------------------------------------------------------------------- */

/* Receives one part of what libzmq delivers as {connection, bytes}. Returns its length, -EMSGSIZE
 * if it is longer than |capacity|, or -errno. */
static int recv_part(void *socket, uint8_t *out, size_t capacity) {
    int length;
    do {
        length = zmq_recv(socket, out, capacity, ZMQ_DONTWAIT);
    } while (length < 0 && zmq_errno() == EINTR);
    if (length < 0) {
        return last_error();
    }
    return (size_t)length > capacity ? -EMSGSIZE : length;
}

/* An empty message to a connection closes it. */
static void kick(void *socket, const uint8_t *id, size_t id_length) {
    if (zmq_send(socket, id, id_length, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0) {
        zmq_send(socket, "", 0, ZMQ_DONTWAIT);
    }
}

/* An empty piece announces that a connection was made or has ended. */
static void note_connection(struct bhi_channel_input *in, const uint8_t *id, size_t id_length) {
    if (in->peer == PEER_NONE) {
        in->peer = PEER_CONNECTED;
        memcpy(in->peer_id, id, id_length);
        in->peer_id_length = id_length;
    } else {
        in->peer = PEER_GONE;
    }
}

/* Takes the next piece of the peer's bytes, or news of its connection, out of libzmq. Returns 0,
 * -EAGAIN or -errno. There is room for one piece, because less than a whole message is ever left
 * over. */
static int pull(struct bhi_channel *channel) {
    struct bhi_channel_input *in = channel->input;
    if (in->begin > 0) {
        memmove(in->bytes, in->bytes + in->begin, in->end - in->begin);
        in->end -= in->begin;
        in->begin = 0;
    }
    for (int i = 0; i < MAX_STRANGERS; i++) {
        uint8_t id[MAX_PEER_ID];
        int id_length = recv_part(channel->socket, id, sizeof id);
        if (id_length < 0) {
            return id_length;
        }
        int length = recv_part(channel->socket, in->bytes + in->end, sizeof in->bytes - in->end);
        if (length < 0) {
            return length;
        }
        bool from_peer = in->peer != PEER_NONE && (size_t)id_length == in->peer_id_length &&
                         memcmp(id, in->peer_id, in->peer_id_length) == 0;
        if (length == 0 && (from_peer || in->peer == PEER_NONE)) {
            note_connection(in, id, (size_t)id_length);
            return 0;
        }
        if (from_peer) {
            in->end += (size_t)length;
            return 0;
        }
        kick(channel->socket, id, (size_t)id_length);
    }
    return -EAGAIN;
}

static uint32_t little32(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Returns the length of the message at the front of the input, 0 if the message is incomplete,
 * -EBADMSG if there is no valid message. */
static int front_length(const struct bhi_channel_input *in) {
    size_t have = in->end - in->begin;
    const uint8_t *at = in->bytes + in->begin;
    if (have >= 4 && little32(at) != BHI_WIRE_MAGIC) {
        return -EBADMSG;
    }
    if (have < BHI_WIRE_HEADER) {
        return 0;
    }
    uint32_t body = little32(at + 8);
    if (body > BHI_WIRE_MAX - BHI_WIRE_HEADER) {
        return -EBADMSG;
    }
    return have < BHI_WIRE_HEADER + body ? 0 : (int)(BHI_WIRE_HEADER + body);
}

static int wait_readable(struct bhi_channel *channel, uint64_t deadline) {
    for (;;) {
        long left = -1;
        if (deadline != BHI_FOREVER) {
            uint64_t now = bhi_now_ns();
            left = now >= deadline ? 0 : (long)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
        }
        zmq_pollitem_t item = {.socket = channel->socket, .events = ZMQ_POLLIN};
        int rc = zmq_poll(&item, 1, left);
        if (rc > 0) {
            return 0;
        }
        if (rc == 0) {
            return -EAGAIN;
        }
        if (zmq_errno() != EINTR) {
            return last_error();
        }
    }
}

static int lose(struct bhi_channel_input *in, char *why, size_t why_size) {
    in->lost = true;
    if (why && why_size) {
        snprintf(why, why_size, "channel: the data does not begin with the header of a message");
    }
    return -EBADMSG;
}

int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size) {
    struct bhi_channel_input *in = channel->input;
    uint64_t deadline =
        timeout_ms < 0 ? BHI_FOREVER : bhi_deadline_ns((uint64_t)timeout_ms * NS_PER_MS);
    memset(out, 0, sizeof *out);
    if (why && why_size) {
        why[0] = '\0';
    }
    for (;;) {
        int length = in->lost ? -EBADMSG : front_length(in);
        if (length < 0) {
            return lose(in, why, why_size);
        }
        if (length > 0) {
            const uint8_t *bytes = in->bytes + in->begin;
            in->begin += (size_t)length;
            return bhi_wire_decode(bytes, (size_t)length, direction, states, out, why, why_size);
        }
        if (in->peer == PEER_GONE && channel->context) {
            return -EPIPE;
        }
        int error = pull(channel);
        if (error == -EMSGSIZE) {
            return lose(in, why, why_size);
        }
        if (error == -EAGAIN && timeout_ms != 0) {
            error = wait_readable(channel, deadline);
        }
        if (error) {
            return error;
        }
    }
}

/* -- connecting ---------------------------------------------------------------------------- */

static void *worker_context(void) {
    void *context = zmq_ctx_new();
    if (!context) {
        return NULL;
    }
    if (zmq_ctx_set(context, ZMQ_IO_THREADS, 1) || zmq_ctx_set(context, ZMQ_IPV6, 0) ||
        zmq_ctx_set(context, ZMQ_MAX_SOCKETS, WORKER_SOCKETS)) {
        zmq_ctx_term(context);
        return NULL;
    }
    return context;
}

/* libzmq connects in the background. This waits until it has connected, so that nothing is left to
 * do in the background when the caller sandboxes itself. */
static int wait_connected(struct bhi_channel *channel, uint64_t limit_ms) {
    uint64_t deadline = bhi_deadline_ns(limit_ms * NS_PER_MS);
    while (channel->input->peer == PEER_NONE) {
        int error = pull(channel);
        if (error == -EAGAIN) {
            error = wait_readable(channel, deadline);
        }
        if (error) {
            return error == -EAGAIN ? -ETIMEDOUT : error;
        }
    }
    return 0;
}

/* A socket that listens at |path|, or -errno. */
static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    BHI_AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    struct stat made;
    /* A umask may have masked the right to connect. The folder is ours alone. */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) ||
        (lstat(path, &made) == 0 && !(made.st_mode & S_IWUSR) && chmod(path, S_IRWXU)) ||
        listen(fd, 1)) {
        return -errno;
    }
    return bhi_fd_steal(&fd);
}

/* Returns 0, or -EMFILE or -ENFILE if no descriptor is left. */
static int look_for_room(void) {
    BHI_AUTO_FD fd = eventfd(0, EFD_CLOEXEC);
    return fd < 0 && (errno == EMFILE || errno == ENFILE) ? -errno : 0;
}

static int try_open(struct bhi_channel *channel, void *context, const char *path,
                    const char *endpoint, uint64_t limit_ms, int *out_listener) {
    *channel = (struct bhi_channel){.fd = -1};
    BHI_AUTO_FD listener = listen_at(path);
    if (listener < 0) {
        return listener;
    }
    int error = open_socket(channel, context);
    if (!error && zmq_connect(channel->socket, endpoint)) {
        error = last_error();
    }
    if (!error) {
        error = wait_connected(channel, limit_ms);
    }
    /* Reads all that has come, or the descriptor will not signal what comes next. The worker is not
     * connected yet. */
    if (!error && (error = pull(channel)) == -EAGAIN) {
        error = 0;
    }
    unlink(path);
    if (error) {
        /* Checked while all that this try opened is still open: closing it frees descriptors. */
        const int room = error == -ETIMEDOUT ? look_for_room() : 0;
        if (room) {
            error = room;
        }
        bhi_channel_close(channel);
        return error;
    }
    *out_listener = bhi_fd_steal(&listener);
    return 0;
}

/* When libzmq's thread has no descriptor for the connection, it reports nothing and does not try
 * again. So a connection is made anew after a delay. The delay is short at first, because the
 * reactor waits here and everything else waits for the reactor; it grows for a machine that is only
 * busy. Each try has another name: the thread may be late and still accept the first connection
 * after it was given up. The worker would use that one, and its messages would be lost. */
int bhi_channel_open(struct bhi_channel *channel, void *context, const char *path,
                     int *out_listener) {
    static const struct {
        uint64_t limit_ms;
        const char *suffix;
    } tries[] = {{20, ""}, {80, ".2"}, {2000, ".3"}};
    char name[sizeof((struct sockaddr_un *)0)->sun_path], endpoint[ENDPOINT_BYTES];
    int error = -ETIMEDOUT;
    *channel = (struct bhi_channel){.fd = -1};
    *out_listener = -1;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const int length = snprintf(name, sizeof name, "%s%s", path, tries[i].suffix);
        if (length >= (int)sizeof name) {
            return -ENAMETOOLONG;
        }
        if ((error = make_endpoint(endpoint, name)) != 0) {
            return error;
        }
        error = try_open(channel, context, name, endpoint, tries[i].limit_ms, out_listener);
        if (error != -ETIMEDOUT) {
            return error;
        }
    }
    return -ETIMEDOUT;
}

/* The name is never looked up: the socket exists already. It stays bound, because libzmq would
 * close the connection with it; no other process can reach it. */
static int take(struct bhi_channel *channel, int listener) {
    int error = set_int(channel->socket, ZMQ_USE_FD, listener);
    if (!error && zmq_bind(channel->socket, "ipc:///supervisor")) {
        error = last_error();
    }
    return error ? error : wait_connected(channel, ACCEPT_MS);
}

int bhi_channel_accept(struct bhi_channel *channel, int listener) {
    int listening = 0;
    socklen_t size = sizeof listening;
    *channel = (struct bhi_channel){.fd = -1};
    int error = getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) ? -errno : 0;
    if (!error && !listening) { /* libzmq would use it as if it did */
        error = -EINVAL;
    }
    if (!error && !(channel->context = worker_context())) {
        error = last_error();
    }
    if (!error) {
        error = open_socket(channel, channel->context);
    }
    if (!error) {
        error = take(channel, listener);
    } else {
        close(listener);
    }
    if (error) {
        bhi_channel_close(channel);
    }
    return error;
}

/* -- sending ------------------------------------------------------------------------------- */

/* A message has the parts {connection, bytes}. The high-water mark matters for the first part only.
 */
static int send_parts(struct bhi_channel *channel, const uint8_t *bytes, size_t length) {
    const struct bhi_channel_input *in = channel->input;
    if (zmq_send(channel->socket, in->peer_id, in->peer_id_length, ZMQ_SNDMORE | ZMQ_DONTWAIT) <
        0) {
        return last_error();
    }
    return zmq_send(channel->socket, bytes, length, ZMQ_DONTWAIT) < 0 ? last_error() : 0;
}

int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message) {
    struct bhi_channel_input *in = channel->input;
    uint8_t bytes[BHI_WIRE_MAX];
    int length = bhi_wire_encode(message, bytes, sizeof bytes);
    if (length < 0) {
        return length;
    }
    if (in->peer == PEER_NONE) {
        int error = pull(channel);
        if (error) {
            return error;
        }
    }
    if (in->peer == PEER_GONE) {
        return -EPIPE;
    }
    int error = send_parts(channel, bytes, (size_t)length);
    if (error == -EAGAIN) {
        /* libzmq checks only now and then whether the peer has made room. Asking for its events
         * makes it check. */
        int events;
        size_t size = sizeof events;
        if (zmq_getsockopt(channel->socket, ZMQ_EVENTS, &events, &size) == 0) {
            error = send_parts(channel, bytes, (size_t)length);
        }
    }
    return error == -EHOSTUNREACH ? -EPIPE : error;
}
