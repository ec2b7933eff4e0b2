/* Awkward moments: a context that goes while somebody waits, streams that end with a neighbour's
 * queue, a host out of descriptors, a zygote that no longer answers, and progress memory that says
 * what no honest worker would. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "progress.h"

/* A context whose zygote never starts: streams wait, queues stay. */
static bh_context *without_workers(uint32_t restart_budget) {
    bh_context_options options = fx_options();
    options.worker_path = "/bin/false";
    options.restart_budget = restart_budget;
    return fx_context_with(options, NULL);
}

static bh_event *fill(bh_stream *stream, bh_buffer *buffer, bh_event *wait) {
    bh_command command = {
        .type = BH_COMMAND_FILL, .dst = buffer, .size = bh_buffer_size(buffer), .fill_value = 7};
    bh_submit_info info = {
        .commands = &command, .command_count = 1, .waits = &wait, .wait_count = wait ? 1 : 0};
    bh_event *event = NULL;
    bh_detail detail;
    if (bh_submit(stream, &info, &event, &detail) != BH_OK)
        BHT_FAIL("bh_submit: %s", detail.message);
    return event;
}

/* -- the end of a context ---------------------------------------------------------------------- */

static _Atomic int waiting;

static void *wait_for_a_worker(void *stream) {
    bh_detail detail;
    atomic_fetch_add(&waiting, 1);
    return (void *)(intptr_t)bh_stream_wait_ready(stream, BH_FOREVER, &detail);
}

static void destroy_wakes_who_waits_for_a_worker(void) {
    bh_context *context = without_workers(100);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_detail detail = {0};
    /* Once a start has failed the stream sits in its backoff: nothing is on its way for it. */
    do
        BHT_EQ(bh_stream_wait_ready(stream, FX_MS, &detail), BH_TIMEOUT);
    while (!strstr(detail.message, "the last start failed"));
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, wait_for_a_worker, stream), 0);
    WAIT_UNTIL(atomic_load(&waiting) == 1, 20000);
    bh_context_destroy(context);
    void *result;
    pthread_join(thread, &result);
    BHT_EQ((intptr_t)result, BH_CLOSED);
    bh_stream_release(stream);
}

/* Streams that the caller has released, and that live by one submission which waits for another
 * stream's: the end of the one queue is the end of the next streams in the list. */
static void chain_of_released_streams(bh_context *context, bh_event *out[4]) {
    bh_buffer *buffers[4];
    bh_stream *streams[4];
    for (int i = 0; i < 4; i++) {
        buffers[i] = fx_buffer(context, 64);
        streams[i] = fx_stream(context, NULL, FX_SECONDS);
    }
    for (int i = 0; i < 4; i++) {
        out[i] = fill(streams[i], buffers[i], i ? out[i - 1] : NULL);
        bh_buffer_release(buffers[i]);
    }
    for (int i = 0; i < 4; i++)
        bh_stream_release(streams[i]);
}

static void destroy_with_released_streams_in_line(void) {
    bh_context *context = without_workers(100);
    bh_event *events[4];
    chain_of_released_streams(context, events);
    bh_context_destroy(context);
    for (int i = 0; i < 4; i++) {
        fx_expect(events[i], BH_CONTEXT_CLOSED);
        bh_event_release(events[i]);
    }
}

static void released_streams_in_line_become_unavailable(void) {
    bh_context *context = without_workers(1);
    bh_event *events[4];
    chain_of_released_streams(context, events);
    for (int i = 0; i < 4; i++) {
        fx_expect(events[i], BH_UNAVAILABLE);
        bh_event_release(events[i]);
    }
    bh_context_destroy(context);
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(destroy_wakes_who_waits_for_a_worker),
        BHT_TEST(destroy_with_released_streams_in_line),
        BHT_TEST(released_streams_in_line_become_unavailable),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
