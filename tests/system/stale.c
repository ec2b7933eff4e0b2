/* What a caller has released too often, or uses after its last release: typed errors, and nobody
 * else is touched. Each object type has its own memory for ever, so none of this is undefined. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate, *square;
    bh_buffer *data, *x, *y;
    uint32_t *word;
};

static struct stage set_up(void) {
    struct stage s = {.context = fx_context(NULL)};
    s.stream = fx_stream(s.context, "s", BH_FOREVER);
    fx_ready(s.stream);
    s.gate = fx_kernel(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.data = fx_words(s.context, 64, 0);
    s.word = fx_pointer(s.data);
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    return s;
}

/* The submission on its way keeps its event: the caller's second release takes nothing from it. */
TEST(an_event_released_twice_while_it_runs) {
    struct stage s = set_up();
    bh_event *event = fx_gate(s.stream, s.gate, s.data);
    bh_event *behind = fx_square(s.stream, s.square, s.data, s.y);
    fx_await_gate(s.data);
    bh_event_retain(event);
    bh_event_release(event);
    bh_event_release(event);
    for (int i = 0; i < 3; i++) {
        bh_event_release(event);
    }
    bh_event_retain(event);
    fx_open(s.word);
    fx_expect(behind, BH_OK);
    bh_event_release(behind);
    BHT_EQ(bh_stream_synchronize(s.stream, FX_SECONDS, NULL), BH_OK);
}

TEST(a_released_event_answers) {
    struct stage s = set_up();
    bh_event *event = fx_square(s.stream, s.square, s.x, s.y);
    bh_event *other = fx_square(s.stream, s.square, s.x, s.y);
    fx_expect(event, BH_OK);
    bh_event_release(event);
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_detail detail;
    size_t index;
    bh_event *both[] = {other, event};
    BHT_EQ(bh_event_wait(event, FX_SECONDS), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_query(event), BH_EVENT_POISONED); /* never READY (E3), and no loop spins */
    BHT_EQ(bh_event_verdict(event, &verdict), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_cancel(event), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_id(event), 0);
    BHT_EQ(bh_event_wait_any(both, 2, FX_SECONDS, &index), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_wait_all(both, 2, FX_SECONDS, &index), BH_INVALID_ARGUMENT);
    bh_queue *queue = NULL;
    BHT_EQ(bh_queue_create(&queue, NULL), BH_OK);
    BHT_EQ(bh_queue_add(queue, event, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_RELEASED);
    bh_queue_destroy(queue);
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.y, .size = 256}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &fill,
                                 .command_count = 1,
                                 .waits = both,
                                 .wait_count = 2};
    bh_event *new = other;
    BHT_EQ(bh_submit(s.stream, &info, &new, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "waits[1]");
    BHT_TRUE(!new);
    fx_expect(other, BH_OK);
    bh_event_release(other);
    fx_expect_healthy(s.context, s.stream);
}

/* In flight they are the library's: B2 holds for what was released once too often, too. */
TEST(released_in_flight) {
    struct stage s = set_up();
    bh_event *event = fx_gate(s.stream, s.gate, s.data);
    fx_await_gate(s.data);
    bh_buffer_release(s.data);
    bh_kernel_release(s.gate);
    bh_stream_release(s.stream);
    void *pointer;
    uint32_t word;
    uint8_t hash[32] = {0}, zero[32] = {0};
    bh_detail detail;
    bh_event *none = NULL;
    bh_kernel_info kernel_info = {.struct_size = sizeof kernel_info};
    bh_buffer_release(s.data);
    bh_buffer_retain(s.data);
    BHT_EQ(bh_buffer_size(s.data), 0);
    BHT_EQ(bh_buffer_map(s.data, BH_MAP_READ, 0, &pointer, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_RELEASED);
    BHT_EQ(bh_buffer_read(s.data, 0, &word, 4, 0, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_write(s.data, 0, &word, 4, 0, NULL), BH_INVALID_ARGUMENT);
    bh_kernel_release(s.gate);
    bh_kernel_retain(s.gate);
    BHT_STR_EQ(bh_kernel_name(s.gate), "");
    bh_kernel_hash(s.gate, hash);
    BHT_MEM_EQ(hash, zero, 32);
    bh_stream_release(s.stream);
    bh_stream_retain(s.stream);
    BHT_EQ(bh_stream_worker_pid(s.stream), 0);
    BHT_EQ(bh_stream_reset(s.stream, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_stream_synchronize(s.stream, 0, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_stream_wait_ready(s.stream, 0, &detail), BH_INVALID_ARGUMENT);
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = s.data, .size = 256}};
    const bh_command copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = s.data, .dst = s.y, .size = 4}};
    const bh_binding binding = bh_bind_read(0, s.data);
    const bh_command dispatch = fx_dispatch(s.square, &binding, 1);
    const bh_command stale_kernel = fx_dispatch(s.gate, NULL, 0);
    bh_stream *other = fx_stream(s.context, "other", FX_SECONDS);
    const bh_command *refused[] = {&fill, &copy, &dispatch, &stale_kernel};
    for (size_t i = 0; i < BHT_COUNT(refused); i++) {
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = refused[i], .command_count = 1};
        BHT_EQ(bh_submit(other, &info, &none, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, "released");
        BHT_EQ(bh_submit(s.stream, &info, &none, &detail), BH_INVALID_ARGUMENT);
        BHT_EQ(detail.reason, BH_REASON_RELEASED);
    }
    BHT_EQ(bh_kernel_prepare(s.gate, other, &none, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_kernel_reflect(s.gate, other, 0, &kernel_info, NULL), BH_INVALID_ARGUMENT);
    /* All that did not disturb the one that runs. */
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(event, BH_OK);
    bh_event_release(event);
    fx_expect_healthy(s.context, other);
}

TEST(a_context_destroyed_twice) {
    struct stage s = set_up();
    bh_event *event = fx_square(s.stream, s.square, s.x, s.y);
    bh_context *context = s.context;
    fx_expect(event, BH_OK);
    for (int round = 0; round < 2; round++) {
        if (round == 0) {
            BHT_EQ(bh_context_destroy(context), BH_OK);
        }
        bh_detail detail;
        bh_stream *stream;
        bh_buffer *buffer;
        char text[64];
        BHT_EQ(bh_context_destroy(context), BH_CLOSED);
        BHT_EQ(bh_context_synchronize(context, 0, &detail), BH_CLOSED);
        BHT_EQ(bh_context_reset(context, &detail), BH_CLOSED);
        BHT_EQ(bh_stream_create(context, NULL, &stream, &detail), BH_CLOSED);
        BHT_EQ(bh_buffer_create(context, 4, NULL, &buffer, &detail), BH_CLOSED);
        BHT_TRUE(bh_context_describe(context, text, sizeof text) > 0);
        BHT_STR_HAS(text, "destroyed");
        if (round == 1) {
            break;
        }
        /* Objects keep it; without them it is as dead. */
        BHT_EQ(bh_event_wait(event, 0), BH_OK);
        fx_release_all();
    }
}

enum { THREADS = 8 };

struct race {
    pthread_barrier_t barrier;
    bh_event *event;
};

static void *release(void *argument) {
    struct race *race = argument;
    pthread_barrier_wait(&race->barrier);
    bh_event_release(race->event);
    return NULL;
}

/* Each of eight takes one reference of nine: the last is whole, and no other. */
TEST(threads_release_at_once) {
    struct stage s = set_up();
    for (int round = 0; round < 100; round++) {
        struct race race = {.event = fx_square(s.stream, s.square, s.x, s.y)};
        pthread_barrier_init(&race.barrier, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            bh_event_retain(race.event);
            bht_start(release, &race);
        }
        bht_join();
        pthread_barrier_destroy(&race.barrier);
        BHT_EQ(bh_event_wait(race.event, FX_SECONDS), BH_OK);
        bh_event_release(race.event);
        BHT_EQ(bh_event_wait(race.event, FX_SECONDS), BH_INVALID_ARGUMENT);
    }
    BHT_EQ(bh_stream_synchronize(s.stream, FX_SECONDS, NULL), BH_OK);
}
