/* Copies that run beside kernels of the same stream: their events end in the stream's order all the
 * same, and deaths, deadlines and cancels touch what they would touch without that. The driver is
 * fake_transfer.c with a queue for copies; the test holds it through its page
 * (fake_engine_page.h). */
#include "device_scene.h"
#include "fake_driver.h"
#include "fake_engine_page.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (UINT64_C(8) << 20) /* several parts, if the worker may only read the source */

static struct fake_engine *engine;
static uint32_t *pattern; /* what is copied */

static void install(void) {
    fake_driver_install(BHT_FAKE_COPIES);
    engine = fake_driver_engine();
}

struct scene {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate;
    bh_buffer *words, *src, *dst;
    uint32_t *to;    /* what |dst| has */
    uint32_t *opens; /* the gate */
    pid_t worker;
};

/* All buffers have been used, so that nothing has to be introduced to the worker any more. A kernel
 * that is to stop has |grace_ns| for it. */
static struct scene begin_with(const char *faults, uint64_t grace_ns) {
    struct scene s = {.context = fx_context(faults)};
    atomic_store(&engine->held, 0);
    bh_stream_options options = fx_stream_options();
    options.name = "s";
    options.deadline_ns = FX_SECONDS;
    options.grace_ns = grace_ns ? grace_ns : BH_OFF;
    s.stream = fx_stream_with(s.context, options);
    s.worker = fx_ready(s.stream);
    s.gate = fx_kernel_guarded(s.context, "gate");
    s.words = fx_words(s.context, 64, 0);
    s.src = fx_words(s.context, BYTES / 4, 0);
    s.dst = fx_words(s.context, BYTES / 4, 1);
    s.to = fx_pointer(s.dst);
    s.opens = fx_pointer(s.words);
    pattern = bht_own(device_pattern(BYTES, 7));
    const uint64_t before = atomic_load(&engine->done);
    device_expect_ready(device_copy(s.stream, s.src, s.dst));
    BHT_GT(atomic_load(&engine->done), before); /* it did go there */
    bh_event *opened = fx_gate(s.stream, s.gate, s.words);
    fx_await_gate(s.words);
    fx_open(s.opens);
    device_expect_ready(opened);
    memcpy(fx_pointer(s.src), pattern, BYTES);
    return s;
}

static struct scene begin(const char *faults) {
    return begin_with(faults, fx_stream_options().grace_ns);
}

static bh_event *close_gate(struct scene *s, uint64_t deadline_ns) {
    s->opens[0] = 0;
    bh_event *event = fx_gate_within(s->stream, s->gate, s->words, deadline_ns);
    fx_await_gate(s->words);
    return event;
}

static bool has_arrived(const struct scene *s) {
    const volatile uint32_t *last = &s->to[BYTES / 4 - 1];
    return *last == pattern[BYTES / 4 - 1];
}

/* From here on the engine begins nothing new. */
static void hold(void) {
    atomic_store(&engine->waiting, 0);
    atomic_store(&engine->held, 1);
}

static void await_held(void) {
    WAIT_UNTIL(atomic_load(&engine->waiting) != 0, 20000);
}

static void let_go(void) {
    atomic_store(&engine->held, 0);
}

static void expect_copied(struct scene *s) {
    const uint32_t *bytes = fx_mapped(s->dst);
    BHT_TRUE(memcmp(bytes, pattern, BYTES) == 0);
}

/* -- beside a kernel -------------------------------------------------------------------------- */

/* The fault that chaos gives a copy is not lost on the way that copies take here. */
TEST(a_copy_loses_the_device_by_chaos) {
    bh_context_options options = fx_options();
    options.chaos = "device_lost=100%";
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_buffer *src = fx_words(context, BYTES / 4, 1), *dst = fx_words(context, BYTES / 4, 0);
    fx_expect(device_copy(stream, src, dst), BH_DEVICE_LOST);
}

/* All of it is there while the kernel runs, but no event says so before the kernel's. */
TEST(a_copy_runs_beside_a_kernel) {
    struct scene s = begin(NULL);
    bh_event *kernel = close_gate(&s, 0);
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    WAIT_UNTIL(has_arrived(&s), 20000);
    BHT_EQ(bh_event_query(kernel), BH_EVENT_PENDING);
    BHT_EQ(bh_event_query(copy), BH_EVENT_PENDING);
    fx_open(s.opens);
    device_expect_ready(copy);
    BHT_EQ(bh_event_query(kernel), BH_EVENT_READY);
    expect_copied(&s);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.worker);
}

/* Up to a buffer in the device's memory, and down from it. */
TEST(up_and_down_beside_a_kernel) {
    struct scene s = begin("*:poses_as_gpu:*=fail"); /* the filters let such a worker make memory */
    bh_buffer *device = device_buffer(s.context, s.stream, BYTES, BH_MEMORY_DEVICE);
    device_expect_ready(device_copy(s.stream, s.dst, device));
    bh_event *kernel = close_gate(&s, 0);
    bh_event *up = device_copy(s.stream, s.src, device);
    bh_event *down = device_copy(s.stream, device, s.dst);
    WAIT_UNTIL(has_arrived(&s), 20000);
    BHT_EQ(bh_event_query(kernel), BH_EVENT_PENDING);
    fx_open(s.opens);
    device_expect_ready(down);
    device_expect_ready(up);
    device_expect_ready(kernel);
    expect_copied(&s);
    device_expect(device, pattern, BYTES);
}

/* The abort word is set on another queue than the one that the copy holds up. */
TEST(a_kernel_is_stopped_beside_a_copy) {
    struct scene s = begin_with(NULL, FX_SECONDS); /* a busy machine takes its time */
    bh_event *kernel = close_gate(&s, 300 * FX_MS);
    hold();
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    fx_expect(kernel, BH_DEADLINE);
    BHT_EQ(fx_verdict(kernel).signal, 0); /* the worker lives */
    await_held();
    BHT_EQ(bh_event_query(copy), BH_EVENT_PENDING);
    let_go();
    device_expect_ready(copy);
    expect_copied(&s);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.worker);
}

/* -- deaths ----------------------------------------------------------------------------------- */

/* The kernel was running, so the copy counts as not begun: it runs again. */
TEST(a_kernel_dies_beside_a_copy) {
    struct scene s = begin(NULL);
    bh_event *kernel = close_gate(&s, 0);
    hold();
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    await_held();
    fx_kill(s.worker, SIGKILL);
    fx_expect(kernel, BH_WORKER_SIGNAL);
    let_go();
    device_expect_ready(copy);
    expect_copied(&s);
    BHT_NE(bh_stream_worker_pid(s.stream), s.worker);
}

TEST(a_worker_dies_in_mid_copy) {
    struct scene s = begin(NULL);
    hold();
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    bh_event *next = device_copy(s.stream, s.src, s.dst); /* it begins beside the first one */
    await_held();
    fx_kill(s.worker, SIGKILL);
    fx_expect(copy, BH_WORKER_SIGNAL);
    let_go();
    device_expect_ready(next);
    expect_copied(&s); /* all of it was written, so it is good again */
}

/* It is lost while a kernel runs, which has a good end. */
TEST(the_device_is_lost_beside_a_kernel) {
    struct scene s = begin("1:copying:6=fail"); /* the first copy, in begin(), had four parts */
    bh_event *kernel = close_gate(&s, 0);
    const uint64_t before = atomic_load(&engine->done);
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    WAIT_UNTIL(atomic_load(&engine->done) == before + 2, 20000);
    fx_open(s.opens);
    device_expect_ready(kernel);
    device_expect_ready(copy);
    expect_copied(&s);
    BHT_NE(bh_stream_worker_pid(s.stream), s.worker);
}

TEST(the_device_is_lost_in_mid_copy) {
    struct scene s = begin("1:copying:6=fail");
    fx_expect(device_copy(s.stream, s.src, s.dst), BH_DEVICE_LOST);
    device_expect_ready(device_copy(s.stream, s.src, s.dst));
    expect_copied(&s);
}

/* The fault "waited" is met whichever queue a copy takes. So a test that asks for it, as
 * system_device_files does, fails the same copies on each device. */
TEST(the_device_is_lost_when_a_copy_has_ended) {
    struct scene s = begin("1:waited:3=fail"); /* behind the copy and the kernel in begin() */
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    fx_expect(copy, BH_DEVICE_LOST);
    BHT_EQ(fx_verdict(copy).executed, BH_EXECUTED_UNKNOWN);
    device_expect_ready(device_copy(s.stream, s.src, s.dst));
    expect_copied(&s);
    BHT_NE(bh_stream_worker_pid(s.stream), s.worker);
}

/* -- deadlines and cancels -------------------------------------------------------------------- */

static bh_event *copy_within(struct scene *s, uint64_t deadline_ns) {
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = s->src, .dst = s->dst, .size = BH_WHOLE_SIZE}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .deadline_ns = deadline_ns};
    return fx_submit(s->stream, &info);
}

TEST(a_deadline_passes_in_mid_copy) {
    struct scene s = begin(NULL);
    hold();
    bh_event *copy = copy_within(&s, 200 * FX_MS);
    await_held();
    fx_expect(copy, BH_DEADLINE);
    BHT_EQ(fx_verdict(copy).signal, SIGKILL); /* a copy has no word to stop it */
    let_go();
    device_expect_ready(device_copy(s.stream, s.src, s.dst));
    expect_copied(&s);
}

/* Its time begins when it is its turn, not when it has begun beside a kernel. */
TEST(time_beside_a_kernel_does_not_count) {
    struct scene s = begin_with(NULL, FX_SECONDS);
    bh_event *kernel = close_gate(&s, 2500 * FX_MS);
    hold();
    bh_event *copy = copy_within(&s, 2000 * FX_MS * bht_slowness());
    await_held();
    fx_expect(kernel, BH_DEADLINE); /* by then the copy has been under way for longer than it may */
    let_go();
    device_expect_ready(copy);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.worker);
}

/* A copy that has begun cannot be taken back; when it is its turn, its worker is killed. */
TEST(a_cancel_beside_a_kernel) {
    struct scene s = begin(NULL);
    bh_event *kernel = close_gate(&s, 0);
    hold();
    bh_event *copy = device_copy(s.stream, s.src, s.dst);
    await_held();
    BHT_EQ(bh_event_cancel(copy), BH_OK);
    BHT_EQ(bh_event_query(copy), BH_EVENT_PENDING);
    fx_open(s.opens);
    device_expect_ready(kernel);
    fx_expect(copy, BH_CANCELLED);
    let_go();
    device_expect_ready(device_copy(s.stream, s.src, s.dst));
    expect_copied(&s);
}

int main(int argc, char **argv) {
    bht_around(install, NULL);
    return bht_main(argc, argv, NULL, 0);
}
