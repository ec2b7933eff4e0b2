/* Device memory where workers make it and hand it on: a processor that poses as a GPU
 * (tests/hostile/faults.h). Its driver really exports and imports. */
#include "device_scene.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

/* |faults| besides. */
static bh_context *posing(const char *faults) {
    char all[256];
    snprintf(all, sizeof all, "*:poses_as_gpu:*=fail%s%s", faults ? "," : "", faults ? faults : "");
    return fx_context(all);
}

/* -- what works ------------------------------------------------------------------------------- */

TEST(it_is_made_cleared_and_kept) {
    const uint64_t size = 2 * MIB + 4;
    bh_context *context = posing(NULL);
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, size, BH_MEMORY_AUTO);
    uint32_t *words = device_pattern(size, 1), *zeros = calloc(1, size);
    BHT_TRUE(zeros);
    device_expect(buffer, zeros, size); /* D3 */
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
    for (int i = 0; i < 2; i++) { /* D2: its maker, then one that has imported it */
        fx_replace_worker(context, a);
        device_expect(buffer, words, size);
    }
    free(words);
    free(zeros);
}

/* Kernels on two streams, and one of them dies in between. */
TEST(streams_of_one_tenant_share) {
    const uint64_t size = 256;
    bh_context *context = posing(NULL);
    bh_stream *a = device_stream(context, "a", NULL, 0), *b = device_stream(context, "b", NULL, 0);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = device_buffer(context, a, size, BH_MEMORY_AUTO),
              *y = device_buffer(context, b, size, BH_MEMORY_AUTO);
    bh_buffer *z = device_buffer(context, a, size, BH_MEMORY_AUTO);
    float in[64], out[64];
    for (int i = 0; i < 64; i++) {
        in[i] = (float)i;
    }
    device_put(x, in, size);
    bh_event_release(fx_square(a, square, x, y));
    device_expect_ready(fx_square(b, square, y, z));
    fx_replace_worker(context, b);
    BHT_EQ(bh_buffer_read(z, 0, out, sizeof out, FX_SECONDS, NULL), BH_OK);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(out[i] == (float)(i * i) * (float)(i * i));
    }
}

/* Two streams read it before anybody has written it: the second waits until the first has made it.
 */
TEST(two_need_it_first) {
    bh_context *context = posing("1:make:1=stop");
    bh_stream *a = device_stream(context, "a", NULL, 0), *b = device_stream(context, "b", NULL, 0);
    fx_ready(a);
    fx_ready(b);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    bh_buffer *first = fx_words(context, 64, 1), *second = fx_words(context, 64, 1);
    bh_event *one = device_copy(a, buffer, first);
    pid_t stopped = fx_await_stopped();
    BHT_EQ(stopped, bh_stream_worker_pid(a));
    bh_event *two = device_copy(b, buffer, second);
    BHT_EQ(bh_event_query(two), BH_EVENT_PENDING);
    BHT_EQ(kill(stopped, SIGCONT), 0);
    device_expect_ready(two); /* although nobody waits for the first */
    device_expect_ready(one);
    BHT_EQ(fx_pointer(second)[63], 0);
}

/* More of them at once than the socket has room for answers. */
TEST(many_in_one_submission) {
    enum { MANY = 600 };
    bh_context *context = posing(NULL);
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffers[MANY];
    bh_command *commands = calloc(MANY, sizeof *commands);
    BHT_TRUE(commands);
    for (uint32_t i = 0; i < MANY; i++) {
        buffers[i] = device_buffer(context, a, 64, BH_MEMORY_AUTO);
        commands[i] = (bh_command){.type = BH_COMMAND_FILL,
                                   .fill = {.dst = buffers[i], .size = BH_WHOLE_SIZE, .value = i}};
    }
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = MANY};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(a, &info, &event, NULL), BH_OK);
    device_expect_ready(event);
    fx_replace_worker(context, a);
    uint32_t word = 0;
    BHT_EQ(bh_buffer_read(buffers[MANY - 1], 60, &word, 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(word, MANY - 1);
    for (uint32_t i = 0; i < MANY; i++) {
        bh_buffer_release(buffers[i]);
    }
    free(commands);
}

/* -- what fails ------------------------------------------------------------------------------- */

/* There is none left: the submission says so, with sizes, nothing else is poisoned, and the next
 * one has it made. */
TEST(there_is_no_memory) {
    bh_context *context = posing("1:make_full:2=fail,1:make_full:3=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *kept = device_buffer(context, a, 256, BH_MEMORY_AUTO),
              *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    bh_buffer *host = fx_words(context, 64, 7);
    device_expect_ready(device_copy(a, host, kept));
    bh_event *event = device_copy(a, host, buffer);
    fx_expect(event, BH_OUT_OF_DEVICE_MEMORY);
    const bh_verdict verdict = fx_verdict(event);
    BHT_STR_HAS(verdict.message, "256 bytes of device memory were asked for; the device has ");
    bh_event_release(event);
    device_expect(kept, fx_pointer(host), 256);
    device_expect_ready(device_copy(a, host, buffer));
    device_expect(buffer, fx_pointer(host), 256);
}

/* More than any buffer may have: as of host memory. An empty one has nothing to be made. */
TEST(sizes_at_the_limits) {
    bh_context *context = posing(NULL);
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = a;
    options.memory = BH_MEMORY_DEVICE;
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(bh_buffer_create(context, (1ull << 40) + 1, &options, &buffer, &detail), BH_TOO_LARGE);
    BHT_EQ(detail.reason, BH_REASON_TOO_LARGE);
    BHT_TRUE(!buffer);
    buffer = device_buffer(context, a, 0, BH_MEMORY_AUTO);
    bh_buffer_release(buffer);
    fx_expect_healthy(context, a);
}

/* A maker that dies before it has handed the memory out, at either step: it is made again. */
TEST(a_maker_that_dies) {
    static const char *const steps[] = {"1:make:1=kill", "1:made:1=kill", "1:before_record:1=kill"};
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        bh_context *context = posing(steps[i]);
        bh_stream *a = device_stream(context, "a", NULL, 0);
        bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
                  *host = fx_words(context, 64, 9);
        bh_event *event = device_copy(a, buffer, host); /* reads what nobody has written */
        bh_status status = bh_event_wait(event, FX_SECONDS);
        /* Before it has started it runs again (E13). */
        BHT_TRUE(status == BH_OK || status == BH_WORKER_SIGNAL);
        bh_event_release(event);
        const uint32_t zeros[64] = {0};
        device_expect(buffer, zeros, sizeof zeros);
        bh_buffer_release(buffer);
        bh_buffer_release(host);
        bh_stream_release(a);
        bh_context_destroy(context);
    }
}

/* The record has ended well, and its worker is dead before anybody has looked: the descriptor waits
 * in the socket (E11). */
TEST(a_maker_that_dies_afterwards) {
    bh_context *context = posing("1:after_record:1=kill");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
              *host = fx_words(context, 64, 9);
    bh_event *event = device_copy(a, host, buffer);
    fx_expect(event, BH_OK);
    bh_event_release(event);
    device_expect(buffer, fx_pointer(host), 256);
}

TEST(lies_are_seen_through) {
    static const struct {
        const char *lie, *said;
    } lies[] = {
        {"lie_other", "a malformed answer"},
        {"lie_socket", "is something else"},
        {"lie_silent", "did not send the device memory"},
        {"lie_import", "was not told to import"},
    };
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        char faults[64];
        snprintf(faults, sizeof faults, "1:%s:1=fail", lies[i].lie);
        bh_context *context = posing(faults);
        bh_stream *a = device_stream(context, "a", NULL, 0);
        bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
                  *host = fx_words(context, 64, 9);
        bh_event *event = device_copy(a, host, buffer);
        fx_expect(event, BH_PROTOCOL);
        const bh_verdict verdict = fx_verdict(event);
        BHT_STR_HAS(verdict.message, lies[i].said);
        bh_event_release(event);
        /* Another worker makes it. */
        device_expect_ready(device_copy(a, host, buffer));
        device_expect(buffer, fx_pointer(host), 256);
        bh_buffer_release(buffer);
        bh_buffer_release(host);
        bh_stream_release(a);
        bh_context_destroy(context);
    }
}

/* It says that there is no memory, and does not wait for what follows. It is caught unless the
 * second request comes before the record ends: then it may have written elsewhere, as any worker
 * may that lies about its results. */
TEST(one_that_does_not_wait) {
    bh_context *context = posing("1:lie_nothing:1=fail,1:lie_hasty:1=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
              *host = fx_words(context, 64, 9);
    bh_event *event = device_copy(a, host, buffer);
    const bh_status status = bh_event_wait(event, FX_SECONDS);
    if (status != BH_OK) {
        BHT_EQ(status, BH_PROTOCOL);
        BHT_STR_HAS(fx_verdict(event).message, "did not send the device memory");
    }
    bh_event_release(event);
    device_expect_ready(device_copy(a, host, buffer));
    device_expect(buffer, fx_pointer(host), 256);
}

/* It says that there is no memory, and that the record has ended well all the same: what it wrote
 * is nowhere, and is made anew by whoever needs it next: zero. */
TEST(a_success_without_memory) {
    bh_context *context = posing("1:lie_nothing:1=fail,1:lie_nothing:2=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
              *host = fx_words(context, 64, 9);
    bh_event *event = device_copy(a, host, buffer);
    fx_expect(event, BH_PROTOCOL);
}

/* An answer too many is noticed when it comes, whether or not the record has ended before. */
TEST(it_answers_twice) {
    bh_context *context = posing("1:lie_twice:1=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    bh_buffer *host = fx_words(context, 64, 9);
    const pid_t first = fx_ready(a);
    bh_event *event = device_copy(a, host, buffer);
    const bh_status status = bh_event_wait(event, FX_SECONDS);
    BHT_TRUE(status == BH_OK || status == BH_PROTOCOL);
    bh_event_release(event);
    fx_ready_after(a, first);
    device_expect_ready(device_copy(a, host, buffer));
    device_expect(buffer, fx_pointer(host), 256);
}

static _Atomic bool was_told;

static void keep(bh_log_level level, const char *line, void *user) {
    (void)level;
    (void)user;
    if (strstr(line, "it sent a descriptor that nobody had asked for")) {
        atomic_store(&was_told, true);
    }
}

/* With nothing to do it sends what it has. That could wait in the host for ever, and counts for all
 * that the user has in sockets. What it did before stays good. */
TEST(it_hands_out_more) {
    bh_context_options options = fx_options();
    options.log = keep;
    bh_context *context =
        fx_context_with(options, "*:poses_as_gpu:*=fail,1:after_record:1=hand_out");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    bh_buffer *host = fx_words(context, 64, 9);
    const pid_t first = fx_ready(a);
    device_expect_ready(device_copy(a, host, buffer));
    WAIT_UNTIL(atomic_load(&was_told), 20000);
    fx_ready_after(a, first);
    device_expect(buffer, fx_pointer(host), 256);
}

/* An import that fails for want of memory is that submission's affair. */
TEST(an_import_that_fails) {
    bh_context *context = posing("2:import:1=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    fx_ready(a);
    bh_stream *b = device_stream(context, "b", NULL, 0);
    fx_ready(b);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    bh_buffer *host = fx_words(context, 64, 9), *back = fx_words(context, 64, 0);
    device_expect_ready(device_copy(a, host, buffer));
    bh_event *event = device_copy(b, buffer, back);
    fx_expect(event, BH_OUT_OF_HOST_MEMORY);
    bh_event_release(event);
    device_expect_ready(device_copy(b, buffer, back)); /* it is told again */
    device_expect(buffer, fx_pointer(host), 256);
}

/* T8: what a maker hands out that nobody can import is not the fault of whoever tries. The buffer is
 * poisoned for all until it is written again, in new memory. */
TEST(memory_that_cannot_be_imported) {
    enum { SIZE = 256 };
    bh_context *context = posing("1:lie_null:1=fail");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    fx_ready(a);
    bh_stream *b = device_stream(context, "b", NULL, 0);
    const pid_t reader = fx_ready(b);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *bad = device_buffer(context, a, SIZE, BH_MEMORY_AUTO);
    bh_buffer *host = fx_words(context, 64, 9), *y = fx_words(context, 64, 0);
    device_expect_ready(device_copy(a, host, bad));
    bh_event *event = fx_square(b, square, bad, y);
    const bh_verdict verdict = fx_verdict(event);
    BHT_EQ(verdict.status, BH_VULKAN);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(verdict.worker_pid, reader);
    char maker[64];
    snprintf(maker, sizeof maker, "which worker %d made, cannot be imported",
             (int)bh_stream_worker_pid(a));
    BHT_STR_HAS(verdict.message, maker);
    size_t held = 99;
    BHT_EQ(bh_quarantine_list(context, NULL, 0, &held, NULL), BH_OK);
    BHT_EQ(held, 0);
    /* Nobody sees its content any more, not even its maker. */
    bh_event *later = device_copy(a, bad, y);
    const bh_verdict poisoned = fx_verdict(later);
    BHT_TRUE(poisoned.status != BH_OK);
    BHT_EQ(poisoned.origin, verdict.origin);
    bh_event_release(later);
    bh_event_release(event);
    device_put(bad, fx_pointer(host), SIZE);
    device_expect(bad, fx_pointer(host), SIZE);
    bh_buffer *z = fx_words(context, 64, 0);
    device_expect_ready(fx_square(b, square, bad, z));
}

/* The host has no descriptor to keep it with: the worker is not to blame. */
TEST(the_host_has_no_descriptor) {
    bh_context *context = posing("1:make:1=stop");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    fx_ready(a);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO);
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(a, &info, &event, NULL), BH_OK);
    const pid_t stopped = fx_await_stopped();
    struct rlimit limit, none;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3; /* those that are open stay open */
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    BHT_EQ(kill(stopped, SIGCONT), 0);
    const bh_status status = bh_event_wait(event, FX_SECONDS);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    BHT_EQ(status, BH_SYSTEM);
    BHT_EQ(fx_verdict(event).sys_errno, EMFILE);
    bh_event_release(event);
    BHT_EQ(bh_submit(a, &info, &event, NULL), BH_OK); /* it is made again, by the same worker */
    fx_expect(event, BH_OK);
    bh_event_release(event);
    uint32_t word = 0;
    BHT_EQ(bh_buffer_read(buffer, 252, &word, 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(word, 7);
}

/* Nobody wants it any more when the answer comes. */
TEST(a_buffer_that_goes_meanwhile) {
    bh_context *context = posing("1:make:1=stop");
    bh_stream *a = device_stream(context, "a", NULL, 0);
    bh_buffer *buffer = device_buffer(context, a, 256, BH_MEMORY_AUTO),
              *host = fx_words(context, 64, 9);
    bh_event *event = device_copy(a, buffer, host);
    const pid_t stopped = fx_await_stopped();
    BHT_EQ(bh_event_cancel(event), BH_OK);
    bh_buffer_release(buffer);
    BHT_EQ(kill(stopped, SIGCONT), 0);
    BHT_TRUE(bh_event_wait(event, FX_SECONDS) != BH_TIMEOUT);
    bh_event_release(event);
    fx_expect_healthy(context, a);
}
