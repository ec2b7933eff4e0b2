#include "ipc/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int bhi_fdpass_pair(int out[2]) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out)) {
        out[0] = out[1] = -1;
        return -errno;
    }
    return 0;
}

static void close_all(int *fds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
        fds[i] = -1;
    }
}

/* Room for the descriptors of one packet, aligned as the kernel wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(BHI_FDPASS_MAX * sizeof(int))];
};

int bhi_fdpass_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count) {
    /* An empty packet reads like the end of the file. */
    if (length == 0 || fd_count > BHI_FDPASS_MAX) {
        return -EINVAL;
    }
    union control control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        return errno == ECONNRESET ? -EPIPE : errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
    return 0;
}

/* Moves the descriptors of |message| into |fds|; closes those that do not fit. */
static size_t take_fds(struct msghdr *message, int *fds, size_t capacity, size_t *out_received,
                       int *inout_error) {
    size_t count = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        *out_received += n;
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (count < capacity) {
                fds[count++] = fd;
            } else {
                close(fd);
                *inout_error = -EMSGSIZE;
            }
        }
    }
    return count;
}

/* As bhi_fdpass_recv; *out_bytes is also the length of a packet whose descriptors are lost. */
static int receive(int socket, void *bytes, size_t capacity, int *fds, size_t *inout_count,
                   int flags, size_t *out_bytes) {
    size_t room = *inout_count;
    union control control;
    struct iovec iov = {bytes, capacity};
    struct msghdr message;
    ssize_t got;
    bool reset_seen = false;
    *inout_count = 0;
    for (;;) {
        message = (struct msghdr){.msg_iov = &iov,
                                  .msg_iovlen = 1,
                                  .msg_control = control.bytes,
                                  .msg_controllen = sizeof control.bytes};
        got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
        if (got >= 0) {
            break;
        }
        /* If a peer closed its socket with packets of ours unread, recvmsg fails once with
         * ECONNRESET. The packets that the peer had sent before come after that. */
        if (errno == ECONNRESET && !reset_seen) {
            reset_seen = true;
        } else if (errno != EINTR) {
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        }
    }
    int error = message.msg_flags & MSG_TRUNC ? -EMSGSIZE : 0;
    size_t received = 0;
    const size_t count = take_fds(&message, fds, room, &received, &error);
    if (!error && message.msg_flags & MSG_CTRUNC) {
        /* There is control room for more: Linux had no number for the next one. */
        error = received < BHI_FDPASS_MAX ? -EMFILE : -EMSGSIZE;
    }
    *out_bytes = (size_t)got;
    if (error || got == 0) { /* an empty packet counts as the end: this protocol sends none */
        close_all(fds, count);
        return error;
    }
    *inout_count = count;
    return (int)got;
}

int bhi_fdpass_recv(int socket, void *bytes, size_t capacity, int *fds, size_t *inout_count,
                    int flags) {
    size_t got;
    return receive(socket, bytes, capacity, fds, inout_count, flags, &got);
}

void bhi_fdpass_drop(int socket) {
    char byte; /* the packet goes as a whole, but not with ECONNRESET: see receive */
    while (recv(socket, &byte, 0, MSG_DONTWAIT) < 0 && (errno == EINTR || errno == ECONNRESET))
        ;
}

int bhi_fdpass_send_message(int socket, const struct bhi_message *message, const int *fds,
                            size_t fd_count) {
    uint8_t bytes[BHI_WIRE_MAX];
    const struct bhi_message_info *info = bhi_message_info((uint32_t)message->type);
    if (!info || info->fds != fd_count) {
        return -EPROTO;
    }
    int length = bhi_wire_encode(message, bytes, sizeof bytes);
    if (length < 0) {
        return length;
    }
    return bhi_fdpass_send(socket, bytes, (size_t)length, fds, fd_count);
}

int bhi_fdpass_recv_message(int socket, enum bhi_direction direction, struct bhi_message *out,
                            int fds[BHI_FDPASS_MAX], int flags, char *why, size_t why_size) {
    uint8_t bytes[BHI_WIRE_MAX];
    size_t count = BHI_FDPASS_MAX;
    for (size_t i = 0; i < BHI_FDPASS_MAX; i++) {
        fds[i] = -1;
    }
    if (why && why_size) {
        why[0] = '\0';
    }
    memset(out, 0, sizeof *out);
    size_t got = 0;
    const int length = receive(socket, bytes, sizeof bytes, fds, &count, flags, &got);
    const bool lost = length == -EMFILE;
    if (length <= 0 && !lost) {
        if (length == -EMSGSIZE && why && why_size) {
            snprintf(why, why_size, "packet: too long, or too many descriptors");
        }
        return length;
    }
    int error = bhi_wire_decode(bytes, got, direction, BHI_WS_ANY, out, why, why_size);
    explicit_bzero(bytes, got); /* a worker's token: the next worker inherits the zygote's stack */
    if (lost) {
        return error ? error : -EMFILE;
    }
    if (!error) {
        const struct bhi_message_info *info = bhi_message_info((uint32_t)out->type);
        if (info->fds != count) {
            if (why && why_size) {
                snprintf(why, why_size, "%s: %zu descriptors, it takes %u", info->name, count,
                         info->fds);
            }
            memset(out, 0, sizeof *out);
            error = -EPROTO;
        }
    }
    if (error) {
        close_all(fds, count);
    }
    return error ? error : 1;
}
