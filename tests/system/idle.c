/* bh_context_options.worker_idle_ns: streams have workers while they have work. */
#include "fixture.h"

#include <string.h>

#define IDLE_NS (20 * FX_MS)
#define STREAMS (BHT_ASAN || BHT_TSAN ? 40 : 200)
#define AT_ONCE 4

struct stage {
    bh_context *context;
    bh_kernel *square;
    bh_buffer *x, *y;
};

static struct stage set_up(uint64_t idle_ns, const char *faults) {
    bh_context_options options = fx_options();
    options.worker_idle_ns = idle_ns;
    options.spares = BH_OFF;
    options.restart_budget = 1;
    struct stage s = {.context = fx_context_with(options, faults)};
    s.square = fx_kernel(s.context, "square");
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    return s;
}

static void tear_down(struct stage *s) {
    bh_buffer_release(s->x);
    bh_buffer_release(s->y);
    bh_kernel_release(s->square);
    BHT_EQ(bh_context_destroy(s->context), BH_OK);
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

static void run(struct stage *s, bh_stream *stream) {
    bh_event *event = fx_square(stream, s->square, s->x, s->y);
    fx_expect(event, BH_OK);
    bh_event_release(event);
}

static void await_rest(bh_stream *stream) {
    WAIT_UNTIL(bh_stream_worker_pid(stream) == 0, 20000);
}

TEST(a_stream_without_work_has_no_worker) {
    struct stage s = set_up(BH_FOREVER, NULL);
    bh_stream *a = fx_stream(s.context, "a", FX_SECONDS),
              *b = fx_stream(s.context, "b", FX_SECONDS);
    run(&s, a);
    const int32_t pid = bh_stream_worker_pid(a);
    BHT_GT(pid, 0);
    BHT_EQ(bh_stream_worker_pid(b), 0);
    fx_settle(s.context);
    BHT_EQ(bht_count_descendants(getpid()), PROCESSES_A_CONTEXT + PROCESSES_A_WORKER);
    char text[4096];
    bh_context_describe(s.context, text, sizeof text);
    BHT_STR_HAS(text, "stream \"b\": idle; no worker");
    /* Who waits for it gets one. */
    BHT_GT(fx_ready(b), 0);
    run(&s, a);
    BHT_EQ(bh_stream_worker_pid(a), pid); /* for ever: it stays */
    bh_stream_release(a);
    bh_stream_release(b);
    tear_down(&s);
}

/* As often as one likes: nothing of it is charged to the stream's budget, which is one death. */
TEST(an_idle_worker_goes_and_the_next_submission_gets_one) {
    struct stage s = set_up(IDLE_NS, NULL);
    bh_stream *stream = fx_stream(s.context, "s", FX_SECONDS);
    uint32_t *y = fx_pointer(s.y);
    int32_t before = 0;
    for (uint32_t i = 0; i < 5; i++) {
        y[0] = 77;
        run(&s, stream);
        BHT_EQ(y[0], 0); /* the zeros of x, squared: what it wrote stays */
        const int32_t pid = bh_stream_worker_pid(stream);
        BHT_TRUE(pid == 0 || pid != before);
        before = pid;
        await_rest(stream);
    }
    BHT_EQ(bh_stream_synchronize(stream, FX_SECONDS, NULL), BH_OK);
    bh_stream_release(stream);
    tear_down(&s);
}

/* One that works is not idle, however long that takes. */
TEST(one_that_works_stays) {
    struct stage s = set_up(IDLE_NS, NULL);
    bh_stream *works = fx_stream(s.context, "works", BH_FOREVER);
    bh_stream *rests = fx_stream(s.context, "rests", FX_SECONDS);
    bh_kernel *kernel = fx_kernel(s.context, "gate");
    bh_buffer *gate = fx_words(s.context, 64, 0);
    uint32_t *word = fx_pointer(gate);
    bh_event *event = fx_gate(works, kernel, gate);
    fx_await_gate(gate);
    const int32_t pid = bh_stream_worker_pid(works);
    for (int i = 0; i < 3; i++) {
        run(&s, rests);
        await_rest(rests);
    }
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    BHT_EQ(bh_stream_worker_pid(works), pid);
    fx_open(word);
    fx_expect(event, BH_OK);
    await_rest(works);
    bh_event_release(event);
    bh_buffer_release(gate);
    bh_kernel_release(kernel);
    bh_stream_release(works);
    bh_stream_release(rests);
    tear_down(&s);
}

/* Whenever the submission comes: to a worker, to one that is just being ended, to none. */
TEST(a_submission_meets_the_end_of_a_worker) {
    struct stage s = set_up(FX_MS, NULL);
    bh_stream *stream = fx_stream(s.context, "s", FX_SECONDS);
    for (uint32_t i = 0; i < 60; i++) {
        run(&s, stream);
        for (uint32_t looks = 0; looks < i * 500 && bh_stream_worker_pid(stream); looks++) {
        }
    }
    bh_stream_release(stream);
    tear_down(&s);
}

/* Many more streams than workers. */
TEST_WITH(many_streams_over_few_workers, 100, 0) {
    struct stage s = set_up(IDLE_NS, NULL);
    static bh_stream *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = fx_stream(s.context, "many", FX_SECONDS);
    }
    for (int i = 0; i < STREAMS; i += AT_ONCE) {
        bh_buffer *y[AT_ONCE];
        bh_event *events[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++) {
            y[j] = fx_words(s.context, 64, 1);
            events[j] = fx_square(streams[i + j], s.square, s.x, y[j]);
        }
        BHT_LE(bht_count_descendants(getpid()), PROCESSES_A_CONTEXT + AT_ONCE * PROCESSES_A_WORKER);
        for (int j = 0; j < AT_ONCE; j++) {
            fx_expect(events[j], BH_OK);
            bh_event_release(events[j]);
            bh_buffer_release(y[j]);
        }
        WAIT_UNTIL(bht_count_descendants(getpid()) == PROCESSES_A_CONTEXT, 20000);
    }
    for (int i = 0; i < STREAMS; i++) {
        await_rest(streams[i]); /* the process is gone, and soon buried */
        bh_stream_release(streams[i]);
    }
    tear_down(&s);
}

/* A start that fails is charged as ever, and told. */
TEST(a_first_worker_that_cannot_be_had) {
    struct stage s = set_up(BH_FOREVER, "*:device:1=fail");
    bh_stream *stream = fx_stream(s.context, "s", FX_SECONDS);
    bh_event *event = fx_square(stream, s.square, s.x, s.y);
    fx_expect(event, BH_UNAVAILABLE);
    bh_event_release(event);
    bh_stream_release(stream);
    tear_down(&s);
}

TEST(too_short_a_time_is_refused) {
    bh_context_options options = fx_options();
    options.worker_idle_ns = FX_MS - 1;
    bh_context *context = NULL;
    bh_detail detail;
    BHT_EQ(bh_context_create(&options, &context, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(detail.subject_name, "options.worker_idle_ns");
}
