/* bh_context_options.worker_idle_ns: streams have workers while they have work. */
#include "fixture.h"

#define IDLE_NS (20 * FX_MS)
#define STREAMS (BHT_ASAN || BHT_TSAN ? 40 : 200)
#define AT_ONCE 4

static bh_context *context;
static bh_kernel *square;
static bh_buffer *x, *y;

static void expect_nobody(void) {
    fx_release_all();
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

static void set_up(uint64_t idle_ns, const char *faults) {
    bh_context_options options = fx_options();
    options.worker_idle_ns = idle_ns;
    options.restart_budget = 1;
    context = fx_context_with(options, faults);
    square = fx_kernel(context, "square");
    x = fx_words(context, 64, 0);
    y = fx_words(context, 64, 0);
    bht_end_with(expect_nobody);
}

static void run(bh_stream *stream) {
    fx_expect(fx_square(stream, square, x, y), BH_OK);
}

static void await_rest(bh_stream *stream) {
    WAIT_UNTIL(bh_stream_worker_pid(stream) == 0, 20000);
}

TEST(a_stream_without_work_has_no_worker) {
    set_up(BH_FOREVER, NULL);
    bh_stream *a = fx_stream(context, "a", FX_SECONDS), *b = fx_stream(context, "b", FX_SECONDS);
    run(a);
    const int32_t pid = bh_stream_worker_pid(a);
    BHT_GT(pid, 0);
    BHT_EQ(bh_stream_worker_pid(b), 0);
    fx_settle(context);
    BHT_EQ(bht_count_descendants(getpid()), PROCESSES_A_CONTEXT + PROCESSES_A_WORKER);
    BHT_TRUE(fx_describes(context, "stream \"b\": idle; no worker"));
    /* Who waits for it gets one. */
    BHT_GT(fx_ready(b), 0);
    run(a);
    BHT_EQ(bh_stream_worker_pid(a), pid); /* for ever: it stays */
}

/* As often as one likes: nothing of it is charged to the stream's budget, which is one death. */
TEST(an_idle_worker_goes_and_the_next_submission_gets_one) {
    set_up(IDLE_NS, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    uint32_t *words = fx_pointer(y);
    int32_t before = 0;
    for (uint32_t i = 0; i < 5; i++) {
        words[0] = 77;
        run(stream);
        BHT_EQ(words[0], 0); /* the zeros of x, squared: what it wrote stays */
        const int32_t pid = bh_stream_worker_pid(stream);
        BHT_TRUE(pid == 0 || pid != before);
        before = pid;
        await_rest(stream);
    }
    BHT_EQ(bh_stream_synchronize(stream, FX_SECONDS, NULL), BH_OK);
}

/* One that works is not idle, however long that takes. */
TEST(one_that_works_stays) {
    set_up(IDLE_NS, NULL);
    bh_stream *works = fx_stream(context, "works", BH_FOREVER);
    bh_stream *rests = fx_stream(context, "rests", FX_SECONDS);
    const struct fx_held held = fx_hold(context, works);
    const int32_t pid = bh_stream_worker_pid(works);
    for (int i = 0; i < 3; i++) {
        run(rests);
        await_rest(rests);
    }
    BHT_EQ(bh_event_query(held.event), BH_EVENT_PENDING);
    BHT_EQ(bh_stream_worker_pid(works), pid);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    await_rest(works);
}

/* Whenever the submission comes: to a worker, to one that is just being ended, to none. */
TEST(a_submission_meets_the_end_of_a_worker) {
    set_up(FX_MS, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    for (uint32_t i = 0; i < 60; i++) {
        run(stream);
        for (uint32_t looks = 0; looks < i * 500 && bh_stream_worker_pid(stream); looks++) {
        }
    }
}

/* Many more streams than workers. */
TEST(many_streams_over_few_workers) {
    set_up(IDLE_NS, NULL);
    static bh_stream *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = fx_stream(context, "many", FX_SECONDS);
    }
    for (int i = 0; i < STREAMS; i += AT_ONCE) {
        bh_event *events[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++) {
            events[j] = fx_square(streams[i + j], square, x, fx_words(context, 64, 1));
        }
        BHT_LE(bht_count_descendants(getpid()), PROCESSES_A_CONTEXT + AT_ONCE * PROCESSES_A_WORKER);
        for (int j = 0; j < AT_ONCE; j++) {
            fx_expect(events[j], BH_OK);
        }
        WAIT_UNTIL(bht_count_descendants(getpid()) == PROCESSES_A_CONTEXT, 20000);
    }
    for (int i = 0; i < STREAMS; i++) {
        await_rest(streams[i]); /* the process is gone, and soon buried */
    }
}

/* A start that fails is charged as ever, and told. */
TEST(a_first_worker_that_cannot_be_had) {
    set_up(BH_FOREVER, "*:device:1=fail");
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_expect(fx_square(stream, square, x, y), BH_UNAVAILABLE);
}

TEST(too_short_a_time_is_refused) {
    bh_context_options options = fx_options();
    options.worker_idle_ns = FX_MS - 1;
    bh_detail detail;
    BHT_EQ(bh_context_create(&options, &context, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(detail.subject_name, "options.worker_idle_ns");
}
