#include "channel.h"

#include "futex.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zmq.h>

#define HANDSHAKE_MS   2000
#define CONNECT_MS     5000
#define WORKER_SOCKETS 2
#define MAX_DRAIN      16
#define NS_PER_MS      1000000u

static int last_error(void) {
    int error = zmq_errno();
    return error > 0 ? -error : -EIO;
}

static int set_int(void *socket, int option, int value) {
    return zmq_setsockopt(socket, option, &value, sizeof value) ? last_error() : 0;
}

/* Nothing here is left at libzmq's defaults that a peer could use to make us grow or wait. */
static int set_limits(void *socket) {
    int64_t max_size = BHI_WIRE_MAX;
    int error;
    if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_size, sizeof max_size))
        return last_error();
    if ((error = set_int(socket, ZMQ_SNDHWM, BHI_CHANNEL_HWM)) ||
        (error = set_int(socket, ZMQ_RCVHWM, BHI_CHANNEL_HWM)) ||
        (error = set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS)) ||
        (error = set_int(socket, ZMQ_LINGER, 0)) ||
        (error = set_int(socket, ZMQ_RECONNECT_IVL, -1)) ||
        (error = set_int(socket, ZMQ_IMMEDIATE, 1)) || (error = set_int(socket, ZMQ_BACKLOG, 1)) ||
        (error = set_int(socket, ZMQ_IPV6, 0)) || (error = set_int(socket, ZMQ_HEARTBEAT_IVL, 0)))
        return error;
    return 0;
}

static int make_endpoint(char out[sizeof(struct sockaddr_un) + 8], const char *path) {
    if (path[0] != '/' || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return -ENAMETOOLONG;
    snprintf(out, sizeof(struct sockaddr_un) + 8, "ipc://%s", path);
    return 0;
}

static int open_socket(struct bhi_channel *channel, void *context) {
    *channel = (struct bhi_channel){.fd = -1};
    void *socket = zmq_socket(context, ZMQ_PAIR);
    if (!socket)
        return last_error();
    size_t size = sizeof channel->fd;
    int error = set_limits(socket);
    if (!error && zmq_getsockopt(socket, ZMQ_FD, &channel->fd, &size))
        error = last_error();
    if (error) {
        zmq_close(socket);
        channel->fd = -1;
        return error;
    }
    channel->socket = socket;
    return 0;
}

int bhi_channel_bind(struct bhi_channel *channel, void *context, const char *path) {
    char endpoint[sizeof(struct sockaddr_un) + 8];
    *channel = (struct bhi_channel){.fd = -1};
    int error = make_endpoint(endpoint, path);
    if (!error)
        error = open_socket(channel, context);
    if (error)
        return error;
    if (zmq_bind(channel->socket, endpoint)) {
        error = last_error();
        bhi_channel_close(channel);
    }
    return error;
}

static void *worker_context(void) {
    void *context = zmq_ctx_new();
    if (!context)
        return NULL;
    if (zmq_ctx_set(context, ZMQ_IO_THREADS, 1) || zmq_ctx_set(context, ZMQ_IPV6, 0) ||
        zmq_ctx_set(context, ZMQ_MAX_SOCKETS, WORKER_SOCKETS)) {
        zmq_ctx_term(context);
        return NULL;
    }
    return context;
}

/* libzmq connects in the background; with ZMQ_IMMEDIATE the socket takes messages only once the
 * connection is made. Waiting for that here means that nothing of it is left to be done when the
 * caller goes on to cut itself off. */
static int wait_connected(struct bhi_channel *channel) {
    uint64_t deadline = bhi_deadline_ns((uint64_t)CONNECT_MS * NS_PER_MS);
    for (;;) {
        uint64_t now = bhi_now_ns();
        if (now >= deadline)
            return -ETIMEDOUT;
        zmq_pollitem_t item = {.socket = channel->socket, .events = ZMQ_POLLOUT};
        int rc = zmq_poll(&item, 1, (long)((deadline - now) / NS_PER_MS) + 1);
        if (rc > 0)
            return 0;
        if (rc < 0 && zmq_errno() != EINTR)
            return last_error();
    }
}

int bhi_channel_connect(struct bhi_channel *channel, const char *path) {
    char endpoint[sizeof(struct sockaddr_un) + 8];
    *channel = (struct bhi_channel){.fd = -1};
    int error = make_endpoint(endpoint, path);
    if (error)
        return error;
    struct stat st;
    if (stat(path, &st))
        return -errno;
    if (!S_ISSOCK(st.st_mode))
        return -ENOTSOCK;
    void *context = worker_context();
    if (!context)
        return last_error();
    error = open_socket(channel, context);
    if (error) {
        zmq_ctx_term(context);
        return error;
    }
    channel->context = context;
    if (zmq_connect(channel->socket, endpoint))
        error = last_error();
    if (!error)
        error = wait_connected(channel);
    if (error)
        bhi_channel_close(channel);
    return error;
}

void bhi_channel_close(struct bhi_channel *channel) {
    if (!channel || !channel->socket)
        return;
    zmq_close(channel->socket);
    while (channel->context && zmq_ctx_term(channel->context) && zmq_errno() == EINTR)
        ;
    *channel = (struct bhi_channel){.fd = -1};
}

int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message) {
    uint8_t bytes[BHI_WIRE_MAX];
    int length = bhi_wire_encode(message, bytes, sizeof bytes);
    if (length < 0)
        return length;
    /* libzmq looks only now and then whether a connection or room has come up; asking for
     * ZMQ_EVENTS makes it look. */
    for (int attempt = 0; attempt < 2; attempt++) {
        int rc;
        do
            rc = zmq_send(channel->socket, bytes, (size_t)length, ZMQ_DONTWAIT);
        while (rc < 0 && zmq_errno() == EINTR);
        if (rc >= 0)
            return 0;
        if (zmq_errno() != EAGAIN)
            return last_error();
        int events = 0;
        size_t size = sizeof events;
        if (zmq_getsockopt(channel->socket, ZMQ_EVENTS, &events, &size) || !(events & ZMQ_POLLOUT))
            break;
    }
    return -EAGAIN;
}

static int wait_readable(struct bhi_channel *channel, int timeout_ms) {
    uint64_t deadline =
        timeout_ms < 0 ? BHI_FOREVER : bhi_deadline_ns((uint64_t)timeout_ms * NS_PER_MS);
    for (;;) {
        long left = -1;
        if (deadline != BHI_FOREVER) {
            uint64_t now = bhi_now_ns();
            left = now >= deadline ? 0 : (long)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
        }
        zmq_pollitem_t item = {.socket = channel->socket, .events = ZMQ_POLLIN};
        int rc = zmq_poll(&item, 1, left);
        if (rc > 0)
            return 0;
        if (rc == 0)
            return -EAGAIN;
        if (zmq_errno() != EINTR)
            return last_error();
    }
}

/* Throws away the rest of a multipart message: MAX_DRAIN parts a call, no more. What is left then
 * comes as messages of its own, and is refused like this one. */
static void drain_parts(struct bhi_channel *channel) {
    bool more = true;
    for (int i = 0; more && i < MAX_DRAIN; i++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        more = zmq_msg_recv(&part, channel->socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&part);
        zmq_msg_close(&part);
    }
}

int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size) {
    zmq_msg_t part;
    int rc;
    memset(out, 0, sizeof *out);
    if (why && why_size)
        why[0] = '\0';
    if (timeout_ms != 0 && (rc = wait_readable(channel, timeout_ms)) != 0)
        return rc;
    zmq_msg_init(&part);
    do
        rc = zmq_msg_recv(&part, channel->socket, ZMQ_DONTWAIT);
    while (rc < 0 && zmq_errno() == EINTR);
    if (rc < 0) {
        rc = last_error();
    } else if (zmq_msg_more(&part)) {
        drain_parts(channel);
        if (why && why_size)
            snprintf(why, why_size, "channel: a message in several parts");
        rc = -EBADMSG;
    } else {
        rc = bhi_wire_decode(zmq_msg_data(&part), zmq_msg_size(&part), direction, states, out, why,
                             why_size);
    }
    zmq_msg_close(&part);
    return rc;
}
