/* Descriptors and short messages over a Unix seqpacket pair (SCM_RIGHTS).
 *
 * Two uses: the supervisor ↔ zygote conversation (messages of messages.def, S2Z and Z2S, with
 * their descriptors), and the supervisor → worker side channel, where each packet is a struct
 * bhi_fd_tag and one descriptor; it is sent before the ZeroMQ message that it belongs to. The other
 * way come the answers to buffer_make, in order: a tag, and a descriptor if there is the memory. */
#ifndef BHI_IPC_FDPASS_H
#define BHI_IPC_FDPASS_H

#include "ipc/wire.h"
#include <stddef.h>
#include <stdint.h>

#define BHI_FDPASS_MAX 8

struct bhi_fd_tag {
    uint32_t magic; /* BHI_WIRE_MAGIC */
    uint32_t type;  /* BHI_MSG_KERNEL_CREATE, BHI_MSG_BUFFER_ATTACH, …: of the message */
    uint64_t id;    /* kernel, buffer or file id */
};

/* Both CLOEXEC. Returns 0 or -errno. */
int bhi_fdpass_pair(int out[2]);
/* Sends one packet. Returns 0, -EAGAIN (full), or -errno (-EPIPE: peer gone). Never blocks,
 * whatever the flags of |socket| (T4), and never raises SIGPIPE. */
int bhi_fdpass_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count);
/* Receives one packet. Returns its length, 0 at end of file, or -errno. Descriptors arrive
 * CLOEXEC in |fds|, *out_count of them. A truncated packet or truncated control data is -EMSGSIZE;
 * whatever came along is closed. Blocks unless the socket is O_NONBLOCK or |flags| has
 * MSG_DONTWAIT. */
int bhi_fdpass_recv(int socket, void *bytes, size_t capacity, int *fds, size_t *inout_count,
                    int flags);

/* Encodes and sends; decodes what comes. The number of descriptors must be what messages.def says:
 * otherwise -EPROTO, and they are closed. recv: 1 = a message, 0 = end of file, -errno. */
int bhi_fdpass_send_message(int socket, const struct bhi_message *message, const int *fds,
                            size_t fd_count);
int bhi_fdpass_recv_message(int socket, enum bhi_direction direction, struct bhi_message *out,
                            int fds[BHI_FDPASS_MAX], int flags, char *why, size_t why_size);

#endif
