/* What the tests of waiting share: two streams with a gate on the first, and work that waits. */
#ifndef BHT_STAGE_H
#define BHT_STAGE_H

#include "fixture.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

struct stage {
    bh_context *context;
    bh_stream *a, *b;
    bh_kernel *kernel;
    bh_buffer *gate;
    volatile uint32_t *word; /* FX_GATE_OPEN opens it */
    bh_event *running;       /* the gate, on a */
    pid_t pid;               /* of a's worker */
};

/* |buffer| filled on |stream| once |waits| have ended. */
static inline bh_event *fill(bh_stream *stream, bh_buffer *buffer, bh_event *const *waits,
                             uint32_t count) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    return fx_command(stream, command, waits, count);
}

/* The same with a buffer of its own. */
static inline bh_event *work(bh_context *context, bh_stream *stream, bh_event *const *waits,
                             uint32_t count) {
    return fill(stream, fx_buffer(context, 64), waits, count);
}

static inline struct stage stage_set_up(void) {
    struct stage s = {.context = fx_context(NULL)};
    s.a = fx_stream(s.context, "a", BH_FOREVER);
    s.b = fx_stream(s.context, "b", FX_SECONDS);
    s.pid = fx_ready(s.a);
    fx_ready(s.b);
    s.kernel = fx_kernel(s.context, "gate");
    s.gate = fx_words(s.context, 64, 0);
    s.word = fx_pointer(s.gate);
    s.running = fx_gate(s.a, s.kernel, s.gate);
    fx_await_gate(s.gate);
    return s;
}

static inline bool stage_readable(int fd, int milliseconds) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    BHT_GE(poll(&poll_fd, 1, milliseconds), 0);
    return poll_fd.revents == POLLIN;
}

#endif
