/* bh_stream_options.device "any": streams run on the least loaded of several devices. The driver
 * has two, and computes with lavapipe on both (fake_pair.c). */
#include "fake_driver.h"
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static bh_context *set_up(uint64_t idle_ns, const char *faults) {
    bh_context_options options = fx_options();
    options.worker_idle_ns = idle_ns;
    fx_keep_log(&options);
    return fx_context_with(options, faults);
}

static void install(void) {
    fake_driver_install(BHT_FAKE_PAIR);
}

static void tear_down(void) {
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

static void expect_on(bh_stream *stream, const char *device) {
    char selector[48] = "?";
    BHT_EQ(bh_stream_device(stream, selector), BH_OK);
    BHT_STR_EQ(selector, device);
}

static bh_stream *ready_on(bh_context *context, const char *asked, const char *device) {
    bh_stream *stream = fx_stream_on(context, asked);
    fx_ready(stream);
    expect_on(stream, device);
    return stream;
}

/* Created at once, when nobody knows yet what devices there are. */
TEST(streams_are_spread) {
    enum { STREAMS = 4 };
    bh_context *context = set_up(0, NULL);
    bh_stream *streams[STREAMS];
    char selector[48];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = fx_stream_on(context, "any");
    }
    unsigned second = 0;
    for (int i = 0; i < STREAMS; i++) {
        (void)fx_ready(streams[i]);
        BHT_EQ(bh_stream_device(streams[i], selector), BH_OK);
        second += strcmp(selector, "lavapipe:1") == 0;
        BHT_TRUE(strcmp(selector, "lavapipe:0") == 0 || strcmp(selector, "lavapipe:1") == 0);
        fx_expect_healthy(context, streams[i]);
    }
    BHT_EQ(second, STREAMS / 2);
    char text[8192];
    bh_context_describe(context, text, sizeof text);
    BHT_STR_HAS(text, "any device, now lavapipe:1; ");
}

/* Those that named their device are a load, too, whatever name they used. */
TEST(streams_that_name_their_device_count_as_load) {
    bh_context *context = set_up(0, NULL);
    ready_on(context, "1", "lavapipe:1");
    ready_on(context, "lavapipe:1", "lavapipe:1");
    ready_on(context, NULL, "lavapipe:0");
    ready_on(context, "any", "lavapipe:0");
    ready_on(context, "any", "lavapipe:0");
    ready_on(context, "any", "lavapipe:1");
}

/* One stream with much to do is more than three that have nothing to do. |in_lane|: its worker has
 * got all of it; otherwise it waits for another stream. */
static void work_counts(bool in_lane) {
    enum { SUBMISSIONS = 1000 };
    bh_context *context = set_up(0, NULL);
    bh_stream *busy = ready_on(context, "0", "lavapipe:0");
    bh_stream *idle[3];
    for (size_t i = 0; i < BHT_COUNT(idle); i++) {
        idle[i] = ready_on(context, "1", "lavapipe:1");
    }
    bh_kernel *gate = fx_kernel(context, "gate"), *square = fx_kernel(context, "square");
    bh_buffer *words = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    uint32_t *word = fx_pointer(words);
    fx_expect(fx_square(busy, square, words, y), BH_OK); /* so it is known how long one takes */
    bh_event *gated = fx_gate(in_lane ? busy : idle[0], gate, words);
    for (int i = 0; i < SUBMISSIONS; i++) {
        bh_event_release(fx_square(busy, square, words, y));
    }
    ready_on(context, "any", "lavapipe:1");
    fx_open(word);
    fx_expect(gated, BH_OK);
    BHT_EQ(bh_stream_synchronize(busy, FX_SECONDS, NULL), BH_OK);
}

TEST(what_runs_counts) {
    work_counts(true);
}

TEST(what_is_queued_counts) {
    work_counts(false);
}

/* Where no worker starts any more, it is said once, and the stream goes on elsewhere. */
TEST(a_device_that_fails_is_left_out) {
    bh_context *context = set_up(0, "2:device:1=fail,3:device:1=fail");
    ready_on(context, "any", "lavapipe:0");
    bh_stream *b = ready_on(context, "any", "lavapipe:0"); /* and not :1, after two tries */
    fx_expect_healthy(context, b);
    BHT_TRUE(fx_logged("device lavapipe:1 (Twin 1) is left out for 60 s"));
    ready_on(context, "any", "lavapipe:0");
    ready_on(context, "1", "lavapipe:1");   /* who names it gets it */
    ready_on(context, "any", "lavapipe:1"); /* for now it is known to work */
}

/* A stream that has had no work gets its next worker where there is room by then. */
TEST(an_idle_stream_is_placed_anew) {
    bh_context *context = set_up(20 * FX_MS, NULL);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_stream *moves = fx_stream_on(context, "any"), *stays = fx_stream_on(context, "0");
    fx_expect(fx_square(moves, square, x, y), BH_OK);
    WAIT_UNTIL(bh_stream_worker_pid(moves) == 0, 20000);
    expect_on(moves, "");
    const struct fx_held first = fx_hold(context, stays); /* the first device has work */
    const struct fx_held second = fx_hold(context, moves);
    expect_on(moves, "lavapipe:1");
    fx_open(first.word);
    fx_open(second.word);
    fx_expect(first.event, BH_OK);
    fx_expect(second.event, BH_OK);
}

static void expect_device(bh_event *event, bh_status status, const char *device) {
    BHT_STR_EQ(fx_expect(event, status).device, device);
}

/* Whatever became of it: ran, lost with its worker, never given to one; and of a dependent the
 * origin's. */
TEST(verdicts_name_the_device) {
    bh_context *context = set_up(0, NULL);
    bh_stream *first = ready_on(context, NULL, "lavapipe:0");
    bh_stream *second = ready_on(context, "1", "lavapipe:1");
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    expect_device(fx_square(first, square, x, y), BH_OK, "lavapipe:0");
    expect_device(fx_square(second, square, x, y), BH_OK, "lavapipe:1");
    const struct fx_held gate = fx_hold(context, second);
    bh_event *dependent = fx_square(first, square, gate.data, y);
    bh_event *cancelled = fx_square(first, square, gate.data, y);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    expect_device(cancelled, BH_CANCELLED, "");
    fx_kill(bh_stream_worker_pid(second), SIGKILL);
    expect_device(gate.event, BH_WORKER_SIGNAL, "lavapipe:1");
    expect_device(dependent, BH_WORKER_SIGNAL, "lavapipe:1");
}

int main(int argc, char **argv) {
    bht_around(install, tear_down);
    return bht_main(argc, argv, NULL, 0);
}
