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

#define SIZE 256

struct scene {
    bh_context *context;
    bh_stream *a;
    bh_buffer *buffer, *host; /* device memory that is not made yet; 9 everywhere */
};

/* |faults| besides. */
static struct scene set_up_with(bh_context_options options, const char *faults) {
    char all[256];
    snprintf(all, sizeof all, "*:poses_as_gpu:*=fail%s%s", faults ? "," : "", faults ? faults : "");
    struct scene s = {.context = fx_context_with(options, all)};
    s.a = device_stream(s.context, "a", NULL, 0);
    s.buffer = device_buffer(s.context, s.a, SIZE, BH_MEMORY_AUTO);
    s.host = fx_words(s.context, SIZE / 4, 9);
    return s;
}

static struct scene set_up(const char *faults) {
    return set_up_with(fx_options(), faults);
}

static bh_event *write_it(const struct scene *s) {
    return device_copy(s->a, s->host, s->buffer);
}

static void expect_written(const struct scene *s) {
    device_expect(s->buffer, fx_pointer(s->host), SIZE);
}

/* It is made, by whoever makes it. */
static void expect_it_works(const struct scene *s) {
    device_expect_ready(write_it(s));
    expect_written(s);
}

/* -- what works ------------------------------------------------------------------------------- */

TEST(it_is_made_cleared_and_kept) {
    const uint64_t size = 2 * MIB + 4;
    struct scene s = set_up(NULL);
    bh_buffer *buffer = device_buffer(s.context, s.a, size, BH_MEMORY_AUTO);
    uint32_t *words = bht_own(device_pattern(size, 1)), *zeros = bht_own(calloc(1, size));
    device_expect(buffer, zeros, size); /* D3 */
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
    for (int i = 0; i < 2; i++) { /* D2: its maker, then one that has imported it */
        fx_replace_worker(s.context, s.a);
        device_expect(buffer, words, size);
    }
}

/* Kernels on two streams, and one of them dies in between. */
TEST(streams_of_one_tenant_share) {
    struct scene s = set_up(NULL);
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    bh_kernel *square = fx_kernel(s.context, "square");
    bh_buffer *y = device_buffer(s.context, b, SIZE, BH_MEMORY_AUTO),
              *z = device_buffer(s.context, s.a, SIZE, BH_MEMORY_AUTO);
    float in[64], out[64];
    for (int i = 0; i < 64; i++) {
        in[i] = (float)i;
        out[i] = (float)(i * i) * (float)(i * i);
    }
    device_put(s.buffer, in, SIZE);
    fx_square(s.a, square, s.buffer, y);
    device_expect_ready(fx_square(b, square, y, z));
    fx_replace_worker(s.context, b);
    device_expect(z, out, SIZE);
}

/* Two streams read it before anybody has written it: the second waits until the first has made it.
 */
TEST(two_need_it_first) {
    struct scene s = set_up("1:make:1=stop");
    fx_ready(s.a);
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    fx_ready(b);
    bh_buffer *second = fx_words(s.context, 64, 1);
    bh_event *one = device_copy(s.a, s.buffer, s.host);
    pid_t stopped = fx_await_stopped();
    BHT_EQ(stopped, bh_stream_worker_pid(s.a));
    bh_event *two = device_copy(b, s.buffer, second);
    BHT_EQ(bh_event_query(two), BH_EVENT_PENDING);
    fx_kill(stopped, SIGCONT);
    device_expect_ready(two); /* although nobody waits for the first */
    device_expect_ready(one);
    BHT_EQ(fx_pointer(second)[63], 0);
}

/* More of them at once than the socket has room for answers. */
TEST(many_in_one_submission) {
    enum { MANY = 600 };
    struct scene s = set_up(NULL);
    bh_command *commands = bht_own(calloc(MANY, sizeof *commands));
    for (uint32_t i = 0; i < MANY; i++) {
        commands[i] = (bh_command){
            .type = BH_COMMAND_FILL,
            .fill = {
                .dst = device_buffer(s.context, s.a, 64, BH_MEMORY_AUTO), .size = 64, .value = i}};
    }
    fx_expect(fx_commands(s.a, commands, MANY), BH_OK);
    fx_replace_worker(s.context, s.a);
    uint32_t word = 0;
    BHT_EQ(bh_buffer_read(commands[MANY - 1].fill.dst, 60, &word, 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(word, MANY - 1);
}

/* -- what fails ------------------------------------------------------------------------------- */

/* There is none left: the submission says so, with sizes, nothing else is poisoned, and the next
 * one has it made. */
TEST(there_is_no_memory) {
    struct scene s = set_up("1:make_full:2=fail,1:make_full:3=fail");
    bh_buffer *kept = device_buffer(s.context, s.a, SIZE, BH_MEMORY_AUTO);
    device_expect_ready(device_copy(s.a, s.host, kept));
    const bh_verdict verdict = fx_expect(write_it(&s), BH_OUT_OF_DEVICE_MEMORY);
    BHT_STR_HAS(verdict.message, "256 bytes of device memory were asked for; the device has ");
    device_expect(kept, fx_pointer(s.host), SIZE);
    expect_it_works(&s);
}

/* More than any buffer may have: as of host memory. An empty one has nothing to be made. */
TEST(sizes_at_the_limits) {
    struct scene s = set_up(NULL);
    const bh_buffer_options options = {
        .struct_size = sizeof options, .stream = s.a, .memory = BH_MEMORY_DEVICE};
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(bh_buffer_create(s.context, (1ull << 40) + 1, &options, &buffer, &detail), BH_TOO_LARGE);
    BHT_EQ(detail.reason, BH_REASON_TOO_LARGE);
    BHT_TRUE(!buffer);
    bh_buffer_release(device_buffer(s.context, s.a, 0, BH_MEMORY_AUTO));
    fx_expect_healthy(s.context, s.a);
}

/* A maker that dies before it has handed the memory out, at either step: it is made again. */
TEST(a_maker_that_dies) {
    static const char *const steps[] = {"1:make:1=kill", "1:made:1=kill", "1:before_record:1=kill"};
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        struct scene s = set_up(steps[i]);
        bh_event *event = device_copy(s.a, s.buffer, s.host); /* reads what nobody has written */
        bh_status status = bh_event_wait(event, FX_SECONDS);
        /* Before it has started it runs again (E13). */
        BHT_TRUE(status == BH_OK || status == BH_WORKER_SIGNAL);
        const uint32_t zeros[64] = {0};
        device_expect(s.buffer, zeros, sizeof zeros);
        fx_release_all();
    }
}

/* The record has ended well, and its worker is dead before anybody has looked: the descriptor waits
 * in the socket (E11). */
TEST(a_maker_that_dies_afterwards) {
    struct scene s = set_up("1:after_record:1=kill");
    fx_expect(write_it(&s), BH_OK);
    expect_written(&s);
}

/* Another worker makes it then. */
TEST(lies_are_seen_through) {
    static const struct {
        const char *lies, *said;
        bool may_pass;
    } rows[] = {
        {"1:lie_other:1=fail", "a malformed answer", false},
        {"1:lie_socket:1=fail", "is something else", false},
        {"1:lie_silent:1=fail", "did not send the device memory", false},
        {"1:lie_import:1=fail", "was not told to import", false},
        /* It says that there is no memory, and that the record has ended well all the same: what it
         * wrote is nowhere. */
        {"1:lie_nothing:1=fail,1:lie_nothing:2=fail", "", false},
        /* It says that there is no memory, and does not wait for what follows. It is caught unless
         * the second request comes before the record ends: then it may have written elsewhere, as
         * any worker may that lies about its results. */
        {"1:lie_nothing:1=fail,1:lie_hasty:1=fail", "did not send the device memory", true},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct scene s = set_up(rows[i].lies);
        const bh_verdict verdict = fx_verdict(write_it(&s));
        if (verdict.status != BH_PROTOCOL && !(rows[i].may_pass && verdict.status == BH_OK)) {
            BHT_FAIL("%s: %s", rows[i].lies, bh_status_name(verdict.status));
        }
        BHT_STR_HAS(verdict.message, verdict.status == BH_OK ? "" : rows[i].said);
        expect_it_works(&s);
        fx_release_all();
    }
}

/* An answer too many is noticed when it comes, whether or not the record has ended before. */
TEST(it_answers_twice) {
    struct scene s = set_up("1:lie_twice:1=fail");
    const pid_t first = fx_ready(s.a);
    const bh_status status = bh_event_wait(write_it(&s), FX_SECONDS);
    BHT_TRUE(status == BH_OK || status == BH_PROTOCOL);
    fx_ready_after(s.a, first);
    expect_it_works(&s);
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
    struct scene s = set_up_with(options, "1:after_record:1=hand_out");
    const pid_t first = fx_ready(s.a);
    device_expect_ready(write_it(&s));
    WAIT_UNTIL(atomic_load(&was_told), 20000);
    fx_ready_after(s.a, first);
    expect_written(&s);
}

/* An import that fails for want of memory is that submission's affair. */
TEST(an_import_that_fails) {
    struct scene s = set_up("2:import:1=fail");
    fx_ready(s.a);
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    fx_ready(b);
    bh_buffer *back = fx_words(s.context, 64, 0);
    device_expect_ready(write_it(&s));
    fx_expect(device_copy(b, s.buffer, back),
              fx_on_cuda() ? BH_OUT_OF_DEVICE_MEMORY : BH_OUT_OF_HOST_MEMORY);
    device_expect_ready(device_copy(b, s.buffer, back)); /* it is told again */
    expect_written(&s);
}

/* T8: what a maker hands out that nobody can import is not the fault of whoever tries. The buffer is
 * poisoned for all until it is written again, in new memory. */
TEST(memory_that_cannot_be_imported) {
    struct scene s = set_up("1:lie_null:1=fail");
    fx_ready(s.a);
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    const pid_t reader = fx_ready(b);
    bh_kernel *square = fx_kernel(s.context, "square");
    bh_buffer *y = fx_words(s.context, 64, 0);
    device_expect_ready(write_it(&s));
    const bh_verdict verdict =
        fx_expect(fx_square(b, square, s.buffer, y), fx_on_cuda() ? BH_CUDA : BH_VULKAN);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(verdict.worker_pid, reader);
    char maker[64];
    snprintf(maker, sizeof maker, "which worker %d made, cannot be imported",
             (int)bh_stream_worker_pid(s.a));
    BHT_STR_HAS(verdict.message, maker);
    BHT_EQ(fx_quarantined(s.context), 0);
    /* Nobody sees its content any more, not even its maker. */
    const bh_verdict poisoned = fx_verdict(device_copy(s.a, s.buffer, y));
    BHT_TRUE(poisoned.status != BH_OK);
    BHT_EQ(poisoned.origin, verdict.origin);
    device_put(s.buffer, fx_pointer(s.host), SIZE);
    expect_written(&s);
    device_expect_ready(fx_square(b, square, s.buffer, fx_words(s.context, 64, 0)));
}

/* The host has no descriptor to keep it with: the worker is not to blame. */
TEST(the_host_has_no_descriptor) {
    struct scene s = set_up("1:make:1=stop");
    fx_ready(s.a);
    bh_event *event = write_it(&s);
    const pid_t stopped = fx_await_stopped();
    struct rlimit limit, none;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3; /* those that are open stay open */
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    fx_kill(stopped, SIGCONT);
    const bh_status status = bh_event_wait(event, FX_SECONDS);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    BHT_EQ(status, BH_SYSTEM);
    BHT_EQ(fx_verdict(event).sys_errno, EMFILE);
    expect_it_works(&s); /* it is made again, by the same worker */
}

/* Nobody wants it any more when the answer comes. */
TEST(a_buffer_that_goes_meanwhile) {
    struct scene s = set_up("1:make:1=stop");
    bh_event *event = device_copy(s.a, s.buffer, s.host);
    const pid_t stopped = fx_await_stopped();
    BHT_EQ(bh_event_cancel(event), BH_OK);
    bh_buffer_release(s.buffer);
    fx_kill(stopped, SIGCONT);
    BHT_TRUE(bh_event_wait(event, FX_SECONDS) != BH_TIMEOUT);
    fx_expect_healthy(s.context, s.a);
}
