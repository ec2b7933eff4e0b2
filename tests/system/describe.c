/* bh_context_describe, and that a test which hangs or fails says what its streams were doing. */
#include "fixture.h"
#include "supervisor/context/context.h"

#include <stdio.h>
#include <unistd.h>

/* Stream "first" runs a gate, stream "second" is held by it. */
struct stage {
    bh_context *context;
    bh_stream *first, *second;
    bh_kernel *gate;
    bh_buffer *data;
    bh_event *running, *behind, *held;
    pid_t pid;
};

static struct stage set_up(void) {
    struct stage s = {.context = fx_context(NULL)};
    s.first = fx_stream(s.context, "first", 12000 * 1000 * FX_MS);
    s.second = fx_stream(s.context, "second", BH_FOREVER);
    s.gate = fx_kernel(s.context, "gate");
    s.data = fx_words(s.context, 64, 0);
    s.pid = fx_ready(s.first);
    fx_ready(s.second);
    fx_settle(s.context);
    s.running = fx_gate(s.first, s.gate, s.data);
    fx_await_gate(s.data);
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.data, .size = 256}};
    s.behind = fx_command(s.first, fill, &s.running, 1);
    s.held = fx_command(s.second, fill, &s.running, 1);
    return s;
}

static void expect_line(const char *text, const char *beginning, const char *part) {
    const char *line = strstr(text, beginning);
    if (!line) {
        BHT_FAIL("no line begins with %s:\n%s", beginning, text);
    }
    char copy[1024];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    BHT_STR_HAS(copy, part);
}

TEST(says_what_everybody_does) {
    struct stage s = set_up();
    char text[8192], part[128];
    BHT_LT(bh_context_describe(s.context, text, sizeof text), sizeof text);
    BHT_STR_HAS(text, "context: open");
    BHT_STR_HAS(text, " 2 streams, ");
    BHT_STR_HAS(text, " 1 zygote\n");
    expect_line(text, "stream \"first\"", "has a worker");
    snprintf(part, sizeof part, "worker %d, ready; submissions: 2 sent, 0 read", (int)s.pid);
    expect_line(text, "stream \"first\"", part);
    expect_line(text, "stream \"first\"", "2 in flight, 0 queued");
    /* 600 times 20 s less what has passed */
    snprintf(part, sizeof part, "event %llu is with the worker, kernel \"gate\", for ",
             (unsigned long long)bh_event_id(s.running));
    expect_line(text, "stream \"first\"", part);
    expect_line(text, "stream \"first\"", " ms, its deadline is in 119"); /* of 12000 s */
    expect_line(text, "stream \"second\"", "0 in flight, 1 queued");
    snprintf(part, sizeof part, "event %llu is queued, waits for event %llu of stream \"first\"",
             (unsigned long long)bh_event_id(s.held), (unsigned long long)bh_event_id(s.running));
    expect_line(text, "stream \"second\"", part);
    expect_line(text, "zygote \"", "ready");

    fx_kill(s.pid, SIGKILL);
    fx_expect(s.held, BH_WORKER_SIGNAL);
    fx_ready(s.first);
    BHT_LT(bh_context_describe(s.context, text, sizeof text), sizeof text);
    snprintf(part, sizeof part, "first failure: event %llu, WORKER_SIGNAL",
             (unsigned long long)bh_event_id(s.running));
    expect_line(text, "stream \"first\"", part);
}

static bool spare_is_ready(bh_context *context, char *text, size_t size) {
    bh_context_describe(context, text, size);
    const char *line = strstr(text, "spare worker "), *end = line ? strchr(line, '\n') : NULL;
    return end && !strncmp(end - strlen(", ready"), ", ready", strlen(", ready"));
}

TEST(workers_without_a_stream_and_streams_without_a_worker) {
    bh_context_options options = fx_options();
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *served = fx_stream(context, "served", FX_SECONDS);
    fx_ready(served);
    fx_settle(context);
    char text[8192];
    WAIT_UNTIL(spare_is_ready(context, text, sizeof text), 20000);
    expect_line(text, "spare worker ", ", ready");
    BHT_STR_HAS(text, fx_on_gpu() ? " 3 workers, " : " 2 workers, "); /* with the sentinel */
    bh_stream *deviceless =
        fx_stream_with(context, (bh_stream_options){.name = "deviceless", .device = "9"});
    BHT_EQ(bh_stream_wait_ready(deviceless, FX_SECONDS, NULL), BH_NO_DEVICE);
    bh_context_describe(context, text, sizeof text);
    expect_line(text, "stream \"deviceless\"", "unavailable; no worker");
    expect_line(text, "stream \"deviceless\"", "trouble: ");
}

/* How long it has been at it, and that nothing will end it. */
TEST(says_what_has_no_deadline) {
    struct stage s = set_up();
    fx_kill(s.pid, SIGKILL);
    fx_expect(s.behind, BH_WORKER_SIGNAL);
    bh_event *event = fx_gate_within(s.first, s.gate, s.data, BH_FOREVER);
    fx_await_gate(s.data);
    char text[8192];
    unsigned long long spent_ms = 0;
    uint64_t start = bht_now_ns();
    for (unsigned long long before = 0; spent_ms < before + 5;) {
        bh_context_describe(s.context, text, sizeof text);
        expect_line(text, "stream \"first\"", " ms, it has no deadline");
        const char *at = strstr(text, "kernel \"gate\", for ");
        BHT_TRUE(at);
        spent_ms = strtoull(at + strlen("kernel \"gate\", for "), NULL, 10);
        if (!before) {
            before = spent_ms + 1;
        }
        BHT_LT(bht_now_ns() - start, FX_SECONDS);
    }
    BHT_EQ(bh_event_cancel(event), BH_OK);
    fx_expect(event, BH_CANCELLED);
}

TEST(fits_any_room) {
    struct stage s = set_up();
    char whole[8192], part[8192];
    size_t length = bh_context_describe(s.context, whole, sizeof whole);
    BHT_EQ(strlen(whole), length);
    BHT_GT(bh_context_describe(s.context, NULL, 0), 100);
    for (size_t size = 1; size < 200; size++) {
        memset(part, 'x', sizeof part);
        BHT_GT(bh_context_describe(s.context, part, size), 100);
        BHT_EQ(strlen(part), size - 1);
        BHT_EQ(part[size], 'x');
    }
    BHT_GT(bh_context_describe(NULL, part, sizeof part), 0);
}

/* Somebody holds the context's lock for ever: that is said, after a second. */
TEST(a_lock_that_is_held) {
    struct stage s = set_up();
    char text[256];
    BHT_EQ(pthread_mutex_lock(&s.context->lock), 0);
    uint64_t start = bht_now_ns();
    bh_context_describe(s.context, text, sizeof text);
    BHT_LT(bht_now_ns() - start, 5000 * FX_MS * bht_slowness());
    BHT_EQ(pthread_mutex_unlock(&s.context->lock), 0);
    BHT_STR_HAS(text, "its lock has been held");
}

/* -- tests that fail -------------------------------------------------------------------------- */

static void broken_hang(void) {
    struct stage s = set_up();
    for (;;) {
        (void)!bh_event_wait(s.held, FX_SECONDS);
    }
}

/* The lock's holder hangs, and so does the test's own thread with it. */
static void broken_lock(void) {
    struct stage s = set_up();
    pthread_mutex_lock(&s.context->lock);
    (void)!bh_stream_worker_pid(s.first);
}

static void broken_assert(void) {
    struct stage s = set_up();
    BHT_EQ(bh_event_wait(s.held, FX_MS), BH_OK);
}

static const struct {
    struct bht_test test;
    const char *says[4];
} broken[] = {
    {BHT_TEST_WITH(broken_hang, 2, 0),
     {"has not ended in time", "stream \"first\": has a worker", " of stream \"first\"",
      "killed after "}},
    {BHT_TEST_WITH(broken_lock, 2, 0), {"its lock has been held", "killed after "}},
    {BHT_TEST(broken_assert),
     {"bh_event_wait(s.held", "stream \"first\": has a worker", " of stream \"first\"",
      "exit status 1"}},
};

TEST_WITH(a_failing_test_says_what_its_streams_do, 60, 0) {
    for (size_t i = 0; i < BHT_COUNT(broken); i++) {
        char output[16384], index[8];
        snprintf(index, sizeof index, "%zu", i);
        const char *argv[] = {"/proc/self/exe", "--broken", index, NULL};
        BHT_EQ(bht_run(argv, output, sizeof output), 1);
        for (size_t j = 0; j < BHT_COUNT(broken[i].says) && broken[i].says[j]; j++) {
            BHT_STR_HAS(output, broken[i].says[j]);
        }
        BHT_STR_HAS(output, "0 passed, 1 failed");
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--broken") == 0) {
        size_t index = strtoul(argv[2], NULL, 10);
        unsetenv("BULKHEAD_TEST_NIGHTLY"); /* its limits are the subject */
        return index < BHT_COUNT(broken) ? bht_main(1, argv, &broken[index].test, 1) : 2;
    }
    return bht_main(argc, argv, NULL, 0);
}
