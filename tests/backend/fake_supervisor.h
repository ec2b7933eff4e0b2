/* A supervisor in this process, and a worker's session in another thread of it: lane, progress,
 * channel and descriptors are the real ones. All waits are bounded. There is one at a time, which hangs
 * up after the test; under the validation layer. */
#ifndef BACKEND_FAKE_SUPERVISOR_H
#define BACKEND_FAKE_SUPERVISOR_H

#include "rig.h"

#include "ipc/channel.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "worker/session/session.h"

#include <pthread.h>

#define FAKE_PATIENCE_NS (20u * UINT64_C(1000000000) * bht_slowness())
#define FAKE_PATIENCE_MS ((int)(FAKE_PATIENCE_NS / 1000000))

extern struct fake {
    char folder[64];
    char endpoint[108];
    int listener; /* where the worker takes its channel */
    void *zmq;
    struct bhi_channel channel;
    struct bhi_lane lane;
    struct bhi_progress_view view;
    int sockets[2]; /* fdpass: ours, the session's */
    int doorbell;
    uint32_t device_index;
    uint32_t control_sent;
    bool withhold_count; /* messages are sent, and not counted in the lane */
    uint64_t published;  /* seq */
    uint64_t harvested;
    pthread_t thread;
    bool joined;
    int exit_code; /* of bhi_session_run, or -1: bhi_session_start failed */
} fake;

extern enum bhi_worker_kind fake_kind; /* of sessions from now on: DEVICE by default */

/* Starts the session's thread, in place of another one. */
void fake_open(uint32_t device_index);
/* The usual one, which is ready. */
void fake_open_ready(void);
/* Waits for the thread (bounded); returns the exit code. */
int fake_join(void);

/* Receives the next message from the worker, which must be of |type|; lines of its log that come
 * before it are dropped. */
void fake_expect(enum bhi_message_type type, struct bhi_message *out);
/* Receives `device` messages and `ready`. */
void fake_expect_ready(void);

/* Sends a control message, with |fd| (taken over) ahead of it unless -1, and rings. */
void fake_send(const struct bhi_message *message, int fd, uint64_t fd_id);
void fake_kernel(uint64_t id, const uint32_t *code, size_t bytes);
/* Attaches a new buffer and returns our mapping of it (never unmapped). */
void *fake_buffer(uint64_t id, uint64_t size);
/* Goes away: what is published is done first, the session ends with BHI_EXIT_SUPERVISOR. */
void fake_hang_up(void);

/* Records of one command. */
struct fake_record {
    struct bhi_lane_record record;
    union {
        struct bhi_cmd_fill fill;
        struct {
            struct bhi_cmd_dispatch dispatch;
            struct bhi_cmd_binding bindings[2];
            uint32_t push[2];
        };
    };
};
struct fake_record fake_fill(uint64_t buffer, uint64_t offset, uint64_t bytes, uint32_t value);
/* kernels/add.comp, from |x_offset| in |x| to |y_offset| in |y|. */
struct fake_record fake_add(uint64_t kernel, uint64_t x, uint64_t x_offset, uint64_t y,
                            uint64_t y_offset, uint64_t bytes, uint32_t c);
/* Publishes a record, waiting for room by harvesting. seq and control_seq are filled in;
 * |control_ahead| is added to the latter: messages that are yet to be sent. */
void fake_publish(struct bhi_lane_record *record, uint32_t control_ahead);
/* Waits until |seq| is completed. */
void fake_wait(uint64_t seq);
/* Reads the result of the next submission that is not harvested; it must be completed. */
void fake_harvest(struct bhi_result *out, char text[BHI_ERROR_TEXT]);
/* True if the doorbell rings within |timeout_ms|; resets it. */
bool fake_rung(int timeout_ms);

#endif
