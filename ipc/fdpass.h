/* Descriptors and short messages over a Unix seqpacket pair (SCM_RIGHTS).
 *
 * It has two uses. Supervisor and zygote exchange messages (messages.def, S2Z and Z2S) with their
 * descriptors. The supervisor sends a worker packets of a struct bhi_fd_tag and one descriptor,
 * each before the ZeroMQ message that it belongs to. In the other direction the worker answers
 * buffer_make, in order: a tag, with a descriptor if the memory could be allocated.
 */
#ifndef BHI_IPC_FDPASS_H
#define BHI_IPC_FDPASS_H

#include "ipc/wire.h"
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_FDPASS_MAX 8

struct bhi_fd_tag {
    uint32_t magic; /* BHI_WIRE_MAGIC */
    uint32_t type;  /* the message's type: BHI_MSG_KERNEL_CREATE, BHI_MSG_BUFFER_ATTACH, … */
    uint64_t id;    /* kernel, buffer or file id */
};

/* Both CLOEXEC. Returns 0 or -errno. */
int bhi_fdpass_pair(int out[2]);
/* Sends one packet. Returns 0 or -errno: -EAGAIN (the socket is full), -EPIPE (the peer is gone).
 * -ETOOMANYREFS: the processes of this user have more descriptors under way in sockets than this
 * process may have open, so that Linux sends no more, whoever's they are; the socket can be
 * writable (POLLOUT). Never blocks, whatever the flags of |socket| (T4), and never raises
 * SIGPIPE. */
int bhi_fdpass_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count);
/* Returns true if the same can be sent later: nothing is wrong with the peer. */
static inline bool bhi_fdpass_is_late(int error) {
    return error == -EAGAIN || error == -ETOOMANYREFS;
}
/* Receives one packet. Returns its length, 0 at the end of the file, or -errno. *inout_count is the
 * room in |fds|, then the number of descriptors received (CLOEXEC). Returns -EMSGSIZE for a packet
 * that is too long or has too many descriptors, and -EMFILE if this process has no room for them,
 * which is not the sender's fault; both close those that have come. With MSG_PEEK the packet stays,
 * and each call receives new descriptors. Blocks unless the socket is O_NONBLOCK or |flags| has
 * MSG_DONTWAIT. */
int bhi_fdpass_recv(int socket, void *bytes, size_t capacity, int *fds, size_t *inout_count,
                    int flags);
/* Drops the packet that MSG_PEEK has left, with its descriptors. */
void bhi_fdpass_drop(int socket);

/* Encode and send, or receive and decode, one message. The number of descriptors must be that of
 * messages.def; otherwise returns -EPROTO and closes them. recv returns 1 for a message, 0 at the
 * end of the file, or -errno; with -EMFILE *out is the message, without its descriptors. */
int bhi_fdpass_send_message(int socket, const struct bhi_message *message, const int *fds,
                            size_t fd_count);
int bhi_fdpass_recv_message(int socket, enum bhi_direction direction, struct bhi_message *out,
                            int fds[BHI_FDPASS_MAX], int flags, char *why, size_t why_size);

#endif
