/* Awkward moments: a context that goes while somebody waits, streams that end with a neighbour's
 * queue, a host out of descriptors, a zygote that no longer answers, and progress memory that says
 * what no honest worker would. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "tamper.h"

/* A context whose workers all die before they are ready: streams wait, queues stay. */
static bh_context *without_workers(uint32_t restart_budget, const char *fault) {
    bh_context_options options = fx_options();
    options.restart_budget = restart_budget;
    return fx_context_with(options, fault);
}

static bh_event *fill(bh_stream *stream, bh_buffer *buffer, bh_event *wait) {
    bh_command command = {.type = BH_COMMAND_FILL,
                          .fill = {.dst = buffer, .size = bh_buffer_size(buffer), .value = 7}};
    return fx_command(stream, command, &wait, wait ? 1 : 0);
}

/* -- the end of a context ---------------------------------------------------------------------- */

static _Atomic int waiting;

static void *wait_for_a_worker(void *stream) {
    bh_detail detail;
    atomic_fetch_add(&waiting, 1);
    return (void *)(intptr_t)bh_stream_wait_ready(stream, BH_FOREVER, &detail);
}

TEST(destroy_wakes_who_waits_for_a_worker) {
    bh_context *context = without_workers(100, "*:hello:*=exit7");
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_detail detail = {0};
    /* Once a start has failed the stream sits in its backoff: nothing is on its way for it. */
    do {
        BHT_EQ(bh_stream_wait_ready(stream, FX_MS, &detail), BH_TIMEOUT);
    } while (!strstr(detail.message, "the last start failed"));
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, wait_for_a_worker, stream), 0);
    WAIT_UNTIL(atomic_load(&waiting) == 1, 20000);
    bh_context_destroy(context);
    void *result;
    pthread_join(thread, &result);
    BHT_EQ((intptr_t)result, BH_CLOSED);
}

/* Streams that the caller has released, and that live by one submission which waits for another
 * stream's: the end of the one queue is the end of the next streams in the list. */
static void chain_of_released_streams(bh_context *context, bh_event *out[4]) {
    bh_stream *streams[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = fx_stream(context, NULL, FX_SECONDS);
    }
    for (int i = 0; i < 4; i++) {
        out[i] = fill(streams[i], fx_buffer(context, 64), i ? out[i - 1] : NULL);
    }
    for (int i = 0; i < 4; i++) {
        bh_stream_release(streams[i]);
    }
}

TEST(destroy_with_released_streams_in_line) {
    bh_context *context = without_workers(100, "?*:hello:*=exit7");
    bh_event *events[4];
    chain_of_released_streams(context, events);
    bh_context_destroy(context);
    for (int i = 0; i < 4; i++) {
        fx_expect(events[i], BH_CONTEXT_CLOSED);
    }
}

TEST(released_streams_in_line_become_unavailable) {
    bh_context *context = without_workers(1, "*:hello:*=exit7");
    bh_event *events[4];
    chain_of_released_streams(context, events);
    for (int i = 0; i < 4; i++) {
        fx_expect(events[i], BH_UNAVAILABLE);
    }
}

/* -- the processes ----------------------------------------------------------------------------- */

/* Workers, spares among them, that say that they run. */
static int running_workers(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        struct bhi_progress progress;
        if (!fx_map_progress(fd, &progress)) {
            continue;
        }
        count += atomic_load(&progress.header->step) == BHI_STEP_RUNNING;
        bhi_progress_unmap(&progress);
    }
    return count;
}

/* Spares that cannot be started must not keep the reactor from everything else. */
TEST(no_folder_for_a_spare) {
    char folder[] = "/tmp/bulkhead-test-XXXXXX", moved[64];
    BHT_TRUE(mkdtemp(folder));
    bh_context_options options = fx_options();
    options.spares = 1;
    options.runtime_dir = folder;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *first = fx_stream(context, "first", FX_SECONDS);
    pid_t pid = fx_ready(first);
    bh_stream *second = fx_stream(context, "second", BHT_SECOND_MS * FX_MS / 5);
    fx_ready(second);
    bh_kernel *gate = fx_kernel(context, "gate");
    bh_buffer *data = fx_words(context, 64, 0);
    WAIT_UNTIL(running_workers() == 3, 20000);
    /* No new worker can be given a socket. */
    snprintf(moved, sizeof moved, "%s.away", folder);
    BHT_EQ(rename(folder, moved), 0);
    fx_kill(pid, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(first) != pid && bh_stream_worker_pid(first) != 0, 20000);
    fx_expect(fx_gate(second, gate, data), BH_DEADLINE);
    BHT_EQ(rename(moved, folder), 0);
    fx_expect_healthy(context, second);
    fx_release_all();
    BHT_EQ(rmdir(folder), 0);
}

/* A zygote that does not answer is replaced. */
TEST(a_zygote_that_stops) {
    bh_context_options options = fx_options();
    options.start_timeout_ns = 2000 * bht_slowness() * FX_MS;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *first = fx_stream(context, "first", FX_SECONDS);
    fx_stop(fx_parent(fx_ready(first)));
    bh_stream *second = fx_stream(context, "second", FX_SECONDS);
    fx_expect_healthy(context, second);
    fx_expect_healthy(context, first);
}

/* E14: a zygote that is slow to say how its worker died is waited for, since to guess would be to
 * call the guilty a victim. */
TEST(a_zygote_that_is_slow_to_tell) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    pid_t pid = fx_ready(stream), slow = fx_parent(pid);
    bh_event *event = fx_hold(context, stream).event;
    fx_stop(slow);
    fx_kill(pid, SIGSEGV);
    BHT_EQ(bh_event_wait(event, 500 * FX_MS), BH_TIMEOUT);
    fx_kill(slow, SIGCONT);
    fx_expect(event, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(event).signal, SIGSEGV);
    fx_expect_healthy(context, stream);
}

/* As soon as it has forked a worker, and before it can say so. */
TEST(a_zygote_that_dies_with_every_start) {
    bh_context_options options = fx_options();
    options.restart_budget = 1; /* eight are tried for each */
    bh_context *context = fx_context_with(options, "*:spawned:*=exit7");
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_UNAVAILABLE);
    unsetenv("BULKHEAD_TEST_FAULTS"); /* read by the next zygote; there is none now */
    BHT_EQ(bh_stream_reset(stream, &detail), BH_OK);
    fx_expect_healthy(context, stream);
}

/* -- what a worker writes ---------------------------------------------------------------------- */

/* Records of about half a lane. */
static bh_event *big(bh_stream *stream, bh_buffer *buffer) {
    enum { COUNT = 10000 };
    static bh_command commands[COUNT];
    for (int i = 0; i < COUNT; i++) {
        commands[i] = (bh_command){.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4}};
    }
    return fx_commands(stream, commands, COUNT);
}

/* A worker that completes all and takes nothing from its lane: there is no room, nothing in flight,
 * and so no deadline. It is found out. */
TEST(completed_but_not_taken) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    pid_t pid = fx_ready(stream);
    bh_buffer *buffer = fx_buffer(context, 64);
    struct bhi_progress progress = fx_progress();
    fx_stop(pid);
    bh_event *events[4];
    for (int i = 0; i < 4; i++) {
        events[i] = big(stream, buffer);
    }
    for (uint64_t seq = 1; seq <= 2; seq++) {
        fx_complete(&progress, seq, 0);
    }
    /* Two were in its lane. Nothing that it says of them counts: it may have run the second. */
    fx_expect(events[0], BH_PROTOCOL);
    fx_expect(events[1], BH_WORKER_LOST);
    for (int i = 2; i < 4; i++) {
        fx_expect(events[i], BH_OK);
    }
    bhi_progress_unmap(&progress);
}

/* E14: a worker is killed for a submission that is recorded at the last moment. The one behind it,
 * which had been started, is lost, but nobody has cancelled it. */
TEST(the_next_one_is_not_blamed) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    pid_t pid = fx_ready(stream);
    struct bhi_progress progress = fx_progress();
    bh_event *event = fx_hold(context, stream).event;
    /* A stopped zygote does not tell how its worker died: there is time before it is buried. */
    pid_t stopped = fx_parent(pid);
    fx_stop(stopped);
    fx_stop(pid);
    bh_event *next = fill(stream, fx_buffer(context, 64), NULL);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    WAIT_UNTIL(bht_process_state(pid) == 'X' || bht_process_state(pid) == 'Z', 20000);
    atomic_store(&progress.header->started_seq, 2);
    fx_complete(&progress, 1, atomic_load(&progress.header->tail));
    fx_expect(event, BH_OK);
    fx_kill(stopped, SIGCONT);
    fx_expect(next, BH_WORKER_LOST);
    fx_expect_healthy(context, stream);
    bhi_progress_unmap(&progress);
}
