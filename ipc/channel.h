/* The control channel: one ZeroMQ PAIR over ipc:// for each worker, bound by the supervisor in a
 * private 0700 folder. Limits on both sides: message size, high-water marks, handshake interval,
 * no reconnect, no linger. A channel is used by one thread (supervisor: the reactor; worker: its
 * main thread). Never across a fork. */
#ifndef BHI_CHANNEL_H
#define BHI_CHANNEL_H

#include "wire.h"
#include <stdint.h>

#define BHI_CHANNEL_HWM 256

struct bhi_channel {
    void *context; /* owned by a worker's channel, borrowed by the supervisor's */
    void *socket;
    int fd; /* ZMQ_FD: edge-triggered; after it fires, receive until -EAGAIN */
};

/* Supervisor: |context| is its one zmq context. |path| is the socket's file. 0 or -errno. */
int bhi_channel_bind(struct bhi_channel *channel, void *context, const char *path);
/* Worker: makes a context of its own (one I/O thread), connects, and waits until the connection is
 * made (5 s at most: -ETIMEDOUT), so that nothing is left to be opened later. 0 or -errno. */
int bhi_channel_connect(struct bhi_channel *channel, const char *path);
void bhi_channel_close(struct bhi_channel *channel);
/* Never blocks: -EAGAIN when the peer does not read (high-water mark). 0 or -errno. */
int bhi_channel_send(struct bhi_channel *channel, const struct bhi_message *message);
/* Receives one message, waiting |timeout_ms| at most (0: not at all, -1: for ever). Multipart is
 * an error. Returns 0, -EAGAIN, -EBADMSG or -EPROTO (with |why|, see bhi_wire_decode), or -errno. */
int bhi_channel_recv(struct bhi_channel *channel, enum bhi_direction direction, uint32_t states,
                     int timeout_ms, struct bhi_message *out, char *why, size_t why_size);

#endif
