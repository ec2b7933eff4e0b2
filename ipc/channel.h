/* The control channel: one ZeroMQ socket over ipc:// for each worker, bound by the supervisor in a
 * private 0700 folder. A channel is used by one thread (supervisor: the reactor; worker: its main
 * thread). Never across a fork.
 *
 * The socket is a ZMQ_STREAM: ZeroMQ carries bytes, and the header of messages.def says where a
 * message ends. Its own framing (ZMTP, as PAIR or DEALER speak it) does not do between a supervisor
 * and a worker that may be compromised: the parts of a multipart message count neither against
 * ZMQ_MAXMSGSIZE nor against the high-water mark, so a peer that sends parts and never the last one
 * makes the receiver grow by a gigabyte a second. In a stream each piece read counts against the
 * high-water mark: what a worker can make us hold is BHI_CHANNEL_HWM × 8 KiB, and it is bounded by
 * design, not by trust. */
#ifndef BHI_CHANNEL_H
#define BHI_CHANNEL_H

#include "wire.h"
#include <stdint.h>

#define BHI_CHANNEL_HWM 64 /* messages waiting to be sent; pieces received and not yet read */

struct bhi_channel_input; /* what has come in and is not yet a whole message */

struct bhi_channel {
    void *context; /* owned by a worker's channel, NULL in the supervisor's */
    void *socket;
    int fd; /* ZMQ_FD: edge-triggered; after it fires, receive until -EAGAIN. Sending can use up an
               edge too: receive after that as well. */
    struct bhi_channel_input *input;
};

/* Supervisor: |context| is its one zmq context. |path| is the socket's file; it is removed once the
 * worker has connected, so that there is no second one. 0 or -errno. */
int bhi_channel_bind(struct bhi_channel *channel, void *context, const char *path);
/* Worker: makes a context of its own (one I/O thread), connects, and waits until the connection is
 * made (5 s at most: -ETIMEDOUT), so that nothing is left to be opened later. 0 or -errno. */
int bhi_channel_connect(struct bhi_channel *channel, const char *path);
void bhi_channel_close(struct bhi_channel *channel);
/* Never blocks: -EAGAIN when the peer does not read (high-water mark) or has not connected yet,
 * -EPIPE when it has gone. 0 or -errno. */
int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message);
/* Receives one message, waiting |timeout_ms| at most (0: not at all, -1: for ever). Returns 0,
 * -EAGAIN, -EBADMSG or -EPROTO (with |why|, see bhi_wire_decode), or -errno. After a header that
 * is not one the stream is lost: -EBADMSG from then on. When the peer has gone: -EPIPE in a worker,
 * -EAGAIN in the supervisor, which learns of deaths from pidfds. */
int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size);

#endif
