/* The kernel "gate" (tests/system/gate.comp), which a test lets go on. */
#include "cuda.h"
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A gate's mapping, though it is in use: bh_buffer_map would wait. */
struct gate {
    bh_buffer *buffer;
    volatile uint32_t *words;
    int opener; /* connection to the gate opener; none: 0 */
};
static struct gate gates[64];

/* The socket of the gate opener, where the device is a GPU. */
static const char *opener_path(void) {
    return getenv("BULKHEAD_TEST_GPU");
}

bool fx_on_gpu(void) {
    return opener_path();
}

static void await_answer(const struct gate *gate, char wanted) {
    char answer = 0;
    if (recv(gate->opener, &answer, 1, 0) != 1 || answer != wanted) {
        BHT_FAIL("the gate opener at %s does not answer", opener_path());
    }
}

static void import_gate(struct gate *gate) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", opener_path());
    gate->opener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = 20 * (time_t)bht_slowness()};
    setsockopt(gate->opener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(gate->opener, (struct sockaddr *)&address, sizeof address)) {
        BHT_FAIL("there is no gate opener at %s", opener_path());
    }
    const uint64_t word = (uintptr_t)gate->words;
    BHT_EQ(send(gate->opener, &word, sizeof word, MSG_NOSIGNAL), sizeof word);
    await_answer(gate, 'i');
}

static struct gate *find_gate(const bh_buffer *buffer, const volatile uint32_t *words) {
    for (size_t i = 0; i < BHT_COUNT(gates); i++) {
        if (gates[i].words && (gates[i].buffer == buffer || gates[i].words == words)) {
            return &gates[i];
        }
    }
    return NULL;
}

static void forget(struct gate *gate) {
    if (gate->opener) {
        close(gate->opener);
    }
    *gate = (struct gate){0};
}

void fx_forget_gates(void) {
    for (size_t i = 0; i < BHT_COUNT(gates); i++) {
        forget(&gates[i]);
    }
}

/* The two words by which a gate is let go on, and says that it runs, where its buffer is a copy of this
 * one (tests/harness/cuda/gate.c). */
static size_t latch_of(const struct gate *gate) {
    return 2 * (size_t)(1 + (gate - gates));
}

void fx_note_gate(bh_buffer *data) {
    volatile uint32_t *words = fx_pointer(data);
    struct gate *gate = find_gate(data, words);
    if (gate) {
        forget(gate);
    }
    for (size_t i = 0; !gate && i < BHT_COUNT(gates); i++) {
        gate = gates[i].words ? NULL : &gates[i];
    }
    BHT_TRUE(gate);
    words[1] = 0;
    *gate = (struct gate){.buffer = data, .words = words};
    if (fx_on_cuda()) {
        cuda_set_latch(latch_of(gate), 0);
        cuda_set_latch(latch_of(gate) + 1, 0);
        words[1] = (uint32_t)latch_of(gate);
    } else if (fx_on_gpu()) {
        import_gate(gate);
    }
}

void fx_open(volatile uint32_t *words) {
    words[0] = FX_GATE_OPEN;
    if (!fx_on_gpu() && !fx_on_cuda()) {
        return;
    }
    struct gate other = {.words = words}, *gate = find_gate(NULL, words);
    if (fx_on_cuda()) {
        BHT_TRUE(gate);
        cuda_set_latch(latch_of(gate), FX_GATE_OPEN);
        return;
    }
    if (!gate) { /* not one of fx_gate's */
        gate = &other;
    }
    if (!gate->opener) {
        import_gate(gate);
    }
    BHT_EQ(send(gate->opener, "o", 1, MSG_NOSIGNAL), 1);
    await_answer(gate, 'd');
    close(gate->opener);
    gate->opener = 0;
}

bh_event *fx_gate(bh_stream *stream, bh_kernel *gate, bh_buffer *data) {
    return fx_gate_within(stream, gate, data, 0);
}

bh_event *fx_gate_within(bh_stream *stream, bh_kernel *gate, bh_buffer *data,
                         uint64_t deadline_ns) {
    fx_note_gate(data);
    /* Each of them holds for some 0.1 s (gate.comp); once it is open, all still have to run. */
    const bh_binding binding = bh_bind_read_write(0, data);
    return fx_launch(stream, gate, 8192, &binding, 1, deadline_ns);
}

void fx_await_gate(bh_buffer *data) {
    const struct gate *gate = find_gate(data, NULL);
    if (!gate) {
        BHT_FAIL("no gate runs on this buffer");
    }
    WAIT_UNTIL((fx_on_cuda() ? cuda_latch(latch_of(gate) + 1) : gate->words[1]) == 1, 20000);
}

struct fx_held fx_hold(bh_context *context, bh_stream *stream) {
    struct fx_held held = {.data = fx_words(context, 64, 0)};
    held.word = fx_pointer(held.data);
    held.event = fx_gate_within(stream, fx_kernel(context, "gate"), held.data, BH_FOREVER);
    fx_await_gate(held.data);
    return held;
}
