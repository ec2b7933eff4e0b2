/* Replicas (supervisor/buffer/replica.h): what a stream of another tenant reads instead of device
 * memory. A processor poses as a GPU (tests/hostile/faults.h). */
#include "../system/device_scene.h"
#include "plan.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024)

struct tenants {
    bh_context *context;
    bh_stream *a, *b, *b2; /* |b| and |b2| are somebody else's */
    bh_buffer *buffer;     /* of |a| */
    uint32_t *words;       /* its content */
};

static struct tenants two_tenants_with(const char *faults, uint64_t size, uint64_t limit) {
    struct tenants t = {.context = fx_context(faults)};
    t.a = device_stream(t.context, "a", NULL, 0);
    t.b = device_stream(t.context, "b", "somebody else", limit);
    t.b2 = device_stream(t.context, "b2", "somebody else", limit);
    fx_ready(t.a);
    fx_ready(t.b);
    fx_ready(t.b2);
    t.buffer = device_buffer(t.context, t.a, size, BH_MEMORY_AUTO);
    t.words = bht_own(device_pattern(size, 1));
    device_put(t.buffer, t.words, size);
    return t;
}

static struct tenants two_tenants(uint64_t size, uint64_t limit) {
    return two_tenants_with("*:poses_as_gpu:*=fail", size, limit);
}

static uint64_t in_use(struct tenants *t, bh_stream *stream) {
    bhi_context_lock(t->context);
    const uint64_t bytes = stream->device_memory;
    bhi_context_unlock(t->context);
    return bytes;
}

static void expect_read(bh_stream *stream, bh_buffer *buffer, const void *bytes, uint64_t size) {
    bh_buffer *host = fx_buffer(stream->context, size);
    device_expect_ready(device_copy(stream, buffer, host));
    BHT_TRUE(memcmp(fx_mapped(host), bytes, size) == 0);
    bh_buffer_release(host);
}

/* It is charged to who reads, and made once for each version, whoever of the tenant reads it. */
TEST(other_tenants_read_a_copy) {
    const uint64_t size = 40 * MIB + 4; /* three pieces */
    struct tenants t = two_tenants(size, 0);
    uint32_t *two = bht_own(device_pattern(size, 2));
    BHT_EQ(in_use(&t, t.b), 0);
    expect_read(t.b, t.buffer, t.words, size);
    const uint64_t charged = in_use(&t, t.b);
    BHT_TRUE(charged >= size && charged < size + MIB);
    expect_read(t.b, t.buffer, t.words, size);
    expect_read(t.b2, t.buffer, t.words, size);
    BHT_EQ(in_use(&t, t.b), charged);
    BHT_EQ(in_use(&t, t.b2), 0);
    device_put(t.buffer, two, size); /* another version: the old copy is dropped */
    BHT_EQ(in_use(&t, t.b), 0);
    expect_read(t.b, t.buffer, two, size);
    BHT_EQ(in_use(&t, t.b), charged);
    fx_replace_worker(t.context, t.b);
    expect_read(t.b, t.buffer, two, size);
    bh_buffer_release(t.buffer);
    BHT_EQ(in_use(&t, t.b), 0);
}

/* Whatever its worker does to the copy, the buffer stays as it was: the worker has no other. */
TEST(a_reader_has_the_copy_alone) {
    struct tenants t = two_tenants(256, 0);
    expect_read(t.b, t.buffer, t.words, 256);
    bhi_context_lock(t.context);
    const struct bhi_worker *worker = bhi_stream_worker(t.b);
    const bool has_it = bhi_idset_has(&worker->buffers, t.buffer->id);
    bhi_context_unlock(t.context);
    BHT_TRUE(!has_it);
    const bh_command write = {.type = BH_COMMAND_FILL,
                              .fill = {.dst = t.buffer, .size = BH_WHOLE_SIZE}};
    bht_refused(t.b, write, BH_INVALID_ARGUMENT,
                "stream b of tenant \"somebody else\" can read it, and not write it");
}

/* Over the limit of who reads. An idle copy makes room; what is in use does not. */
TEST(copies_keep_to_limits) {
    struct tenants t = two_tenants(2 * MIB, 3 * MIB);
    expect_read(t.b, t.buffer, t.words, 2 * MIB);
    bh_buffer *own = device_buffer(t.context, t.b, 2 * MIB, BH_MEMORY_AUTO);
    BHT_EQ(in_use(&t, t.b), 2 * MIB);
    bh_buffer *host = fx_words(t.context, 64, 0);
    const bh_command read = {.type = BH_COMMAND_COPY,
                             .copy = {.src = t.buffer, .dst = host, .size = 256}};
    bht_refused(t.b, read, BH_OUT_OF_DEVICE_MEMORY,
                fx_on_cuda() ? "stream b has 339738624 of its limit of 340787200 bytes"
                             : "stream b has 2097152 of its limit of 3145728 bytes");
    bh_buffer_release(own);
    expect_read(t.b, t.buffer, t.words, 2 * MIB);
}

/* Poison flows into the copy, and out of it. A copy that failed for itself is made again. */
TEST(poison_flows_into_a_copy) {
    struct tenants t = two_tenants(256, 0);
    bh_buffer *host = fx_words(t.context, 64, 9);
    bh_event *before = fx_run(t.a, fx_kernel(t.context, "hang"), fx_words(t.context, 64, 0));
    bh_event *write = device_copy(t.a, host, t.buffer); /* is cancelled in the queue */
    bh_event *read = device_copy(t.b, t.buffer, host);
    BHT_EQ(bh_event_cancel(write), BH_OK);
    fx_expect(read, BH_CANCELLED);
    const bh_verdict verdict = fx_verdict(read);
    BHT_EQ(verdict.origin, fx_verdict(write).event);
    BHT_EQ(bh_event_cancel(before), BH_OK);
    /* Poisoned by now, and no copy is made. */
    fx_expect(device_copy(t.b, t.buffer, host), BH_CANCELLED);
    uint32_t *one = t.words;
    device_put(t.buffer, one, 256);
    expect_read(t.b, t.buffer, one, 256);
}

/* A worker dies in each piece of a copy. The piece is copied again, and nobody is poisoned (D2). */
TEST(lost_in_each_piece) {
    enum { COPIES = 4 };
    const uint64_t size = 16 * MIB + 4; /* two pieces, down and up */
    char faults[160];
    snprintf(faults, sizeof faults, "*:poses_as_gpu:*=fail,%s", bht_plan_open());
    struct tenants t = two_tenants_with(faults, size, 0);
    uint32_t *words = bht_own(device_pattern(size, 1));
    for (unsigned nth = 1; nth <= COPIES; nth++) {
        words[0] = nth;
        device_put(t.buffer, words, size); /* another version */
        bht_plan_arm("submitted", "kill", nth);
        expect_read(t.b, t.buffer, words, size);
        BHT_TRUE(bht_plan_disarm());
    }
}

/* The buffer is written behind the copy whose worker dies: the copy made again has what the buffer
 * contained before, and the write is not lost. */
TEST(written_behind_a_lost_copy) {
    char faults[160];
    snprintf(faults, sizeof faults, "*:poses_as_gpu:*=fail,%s", bht_plan_open());
    struct tenants t = two_tenants_with(faults, 256, 0);
    uint32_t *two = bht_own(device_pattern(256, 2));
    bh_buffer *found = fx_buffer(t.context, 256), *host = fx_buffer(t.context, 256);
    memcpy(fx_pointer(host), two, 256);
    bht_plan_arm("submitted", "stop", 1);
    bh_event *read = device_copy(t.b, t.buffer, found);
    const pid_t stopped = fx_await_stopped();
    BHT_EQ(stopped, bh_stream_worker_pid(t.a));
    bh_event *write = device_copy(t.a, host, t.buffer);
    fx_kill(stopped, SIGKILL);
    device_expect_ready(read);
    device_expect_ready(write);
    BHT_TRUE(memcmp(fx_mapped(found), t.words, 256) == 0);
    device_expect(t.buffer, two, 256);
    BHT_TRUE(bht_plan_disarm());
}

/* The copy does not keep the stream that it was made for. */
TEST(a_released_stream_keeps_no_copy) {
    struct tenants t = two_tenants(256, 0);
    expect_read(t.b, t.buffer, t.words, 256);
    const pid_t pid = bh_stream_worker_pid(t.b);
    bh_stream_release(t.b);
    WAIT_UNTIL(kill(pid, 0) != 0, 20000);
    expect_read(t.b2, t.buffer, t.words, 256);
}
