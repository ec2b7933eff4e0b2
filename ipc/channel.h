/* The control channel: one ZeroMQ socket over ipc:// for each worker. The supervisor makes a
 * listening socket in a private 0700 folder, connects to it, and removes its file; the worker is
 * given the descriptor and takes the one connection that waits there. Not the other way round:
 * libzmq's listener aborts the process when it accepts and there is no descriptor left (EMFILE),
 * its connecter does not, and the process to be kept alive is the supervisor. A channel is used by
 * one thread (supervisor: the reactor; worker: its main thread). Never across a fork.
 *
 * The socket is a ZMQ_STREAM: ZeroMQ carries bytes, and the header of messages.def says where a
 * message ends. Its own framing (ZMTP, as PAIR or DEALER speak it) does not do between a supervisor
 * and a worker that may be compromised: the parts of a multipart message count neither against
 * ZMQ_MAXMSGSIZE nor against the high-water mark, so a peer that sends parts and never the last one
 * makes the receiver grow by a gigabyte a second. In a stream each piece read counts against the
 * high-water mark: what a worker can make us hold is BHI_CHANNEL_HWM × 8 KiB, and it is bounded by
 * design, not by trust. */
#ifndef BHI_IPC_CHANNEL_H
#define BHI_IPC_CHANNEL_H

#include "ipc/wire.h"
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

/* Supervisor: |context| is its one zmq context. |path| is the socket's file, there for the moment
 * of this call (with a suffix where it is tried again). The worker's end is *out_listener, the
 * caller's to close. Waits until libzmq has connected (microseconds; 20 ms where there is no
 * descriptor for it: -EMFILE; 2.1 s at most: -ETIMEDOUT). 0 or -errno. */
int bhi_channel_open(struct bhi_channel *channel, void *context, const char *path,
                     int *out_listener);
/* Worker: makes a context of its own (one I/O thread), takes the connection that waits at
 * |listener|, and waits until it has it (5 s at most: -ETIMEDOUT), so that nothing is left to be
 * opened later. |listener| is closed in any case, by libzmq where it got that far. 0 or -errno. */
int bhi_channel_accept(struct bhi_channel *channel, int listener);
void bhi_channel_close(struct bhi_channel *channel);
/* Never blocks: -EAGAIN when the peer does not read (high-water mark), -EPIPE when it has gone. 0
 * or -errno. */
int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message);
/* Receives one message, waiting |timeout_ms| at most (0: not at all, -1: for ever). Returns 0,
 * -EAGAIN, -EBADMSG or -EPROTO (with |why|, see bhi_wire_decode), or -errno. After a header that
 * is not one the stream is lost: -EBADMSG from then on. When the peer has gone: -EPIPE in a worker,
 * -EAGAIN in the supervisor, which learns of deaths from pidfds. */
int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size);

#endif
