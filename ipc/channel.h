/* The control channel: one ZeroMQ socket over ipc:// for each worker. The supervisor creates a
 * listening socket in a private 0700 folder, connects to it and removes its file. The worker gets
 * the listening descriptor and accepts the connection that waits there. The supervisor must be the
 * connecting side: if no descriptor is left (EMFILE), libzmq's listener aborts its process, and its
 * connecter does not. A channel is used by one thread (supervisor: the reactor; worker: its main
 * thread) and never across a fork.
 *
 * The socket is a ZMQ_STREAM: ZeroMQ carries bytes, and the header of messages.def tells where a
 * message ends. ZeroMQ's own framing (ZMTP, with PAIR or DEALER) is not safe with a worker that may
 * be compromised: the parts of a multipart message count neither against ZMQ_MAXMSGSIZE nor against
 * the high-water mark. A peer that sends parts and never the last one makes the receiver grow by a
 * gigabyte a second. In a stream each piece that is read counts against the high-water mark, so a
 * worker can make us hold at most BHI_CHANNEL_HWM × 8 KiB.
 */
#ifndef BHI_IPC_CHANNEL_H
#define BHI_IPC_CHANNEL_H

#include "ipc/wire.h"
#include <stdint.h>

#define BHI_CHANNEL_HWM 64 /* messages that wait to be sent; pieces received and not yet read */

struct bhi_channel_input; /* received bytes that are not yet a whole message */

struct bhi_channel {
    void *context; /* owned by a worker's channel, NULL in the supervisor's */
    void *socket;
    int fd; /* ZMQ_FD: edge-triggered; after it fires, receive until -EAGAIN. Sending can use up an
               edge too: receive after that as well. */
    struct bhi_channel_input *input;
};

/* Supervisor: |context| is its only zmq context. |path| is the socket's file, which exists only
 * during this call (with a suffix if it tries again). *out_listener is the worker's end; the caller
 * closes it. Waits until libzmq has connected: microseconds; 20 ms if there is no descriptor for it
 * (-EMFILE); 2.1 s at most (-ETIMEDOUT). Returns 0 or -errno. */
int bhi_channel_open(struct bhi_channel *channel, void *context, const char *path,
                     int *out_listener);
/* Worker: creates its own context (one I/O thread), accepts the connection that waits at
 * |listener|, and waits until libzmq has it (5 s at most: -ETIMEDOUT), so that nothing is opened
 * later. Takes |listener| over in any case: closes it on failure, and with the channel otherwise.
 * Returns 0 or -errno. */
int bhi_channel_accept(struct bhi_channel *channel, int listener);
void bhi_channel_close(struct bhi_channel *channel);
/* Never blocks. Returns 0; -EAGAIN if the peer does not read (high-water mark); -EPIPE if the peer
 * is gone; or -errno. */
int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message);
/* Receives one message; waits at most |timeout_ms| (0: not at all, -1: for ever). Returns 0,
 * -EAGAIN, -EBADMSG or -EPROTO (with |why|, see bhi_wire_decode), or -errno. After an invalid
 * header the stream is lost, and every call returns -EBADMSG. If the peer is gone, returns -EPIPE
 * in a worker and -EAGAIN in the supervisor, which learns of deaths from pidfds. */
int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size);

#endif
