/* What the tests of the pool share. */
#ifndef POOL_STAGE_H
#define POOL_STAGE_H

#include "fixture.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static inline bh_buffer *make(bh_context *context, uint64_t size, bh_stream *stream,
                              uint32_t flags) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = stream;
    options.flags = flags;
    bh_buffer *buffer = NULL;
    bh_detail detail;
    if (bh_buffer_create(context, size, &options, &buffer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_create: %s", detail.message);
    }
    BHT_EQ(bh_buffer_size(buffer), size);
    return buffer;
}

static inline void fill(bh_stream *stream, bh_buffer *buffer, uint32_t value) {
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = value}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(stream, &info, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    bh_event_release(event);
}

static inline void expect_words(bh_buffer *buffer, uint32_t value) {
    void *pointer;
    BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
    const uint32_t *words = pointer;
    for (uint64_t i = 0; i < bh_buffer_size(buffer) / 4; i++) {
        if (words[i] != value) {
            BHT_FAIL("word %llu is 0x%x, must be 0x%x", (unsigned long long)i, words[i], value);
        }
    }
}

struct scene {
    bh_context *context;
    bh_stream *a, *b;
};

static inline struct scene set_up(void) {
    struct scene s = {.context = fx_context(NULL)};
    s.a = fx_stream(s.context, "a", FX_SECONDS);
    s.b = fx_stream(s.context, "b", FX_SECONDS);
    fx_ready(s.a);
    fx_ready(s.b);
    return s;
}

static inline void tear_down(struct scene *s) {
    fx_expect_healthy(s->context, s->a);
    fx_expect_healthy(s->context, s->b);
    bh_stream_release(s->a);
    bh_stream_release(s->b);
    bh_context_destroy(s->context);
}

#endif
