/* What the tests of the pool share. */
#ifndef POOL_STAGE_H
#define POOL_STAGE_H

#include "fixture.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static inline bh_buffer *make(bh_context *context, uint64_t size, bh_stream *stream,
                              uint32_t flags) {
    bh_buffer *buffer =
        fx_buffer_with(context, size, (bh_buffer_options){.stream = stream, .flags = flags});
    BHT_EQ(bh_buffer_size(buffer), size);
    return buffer;
}

static inline void fill(bh_stream *stream, bh_buffer *buffer, uint32_t value) {
    bh_event *event = fx_fill(stream, buffer, value);
    fx_expect(event, BH_OK);
    bh_event_release(event); /* there are many */
}

static inline void expect_words(bh_buffer *buffer, uint32_t value) {
    const uint32_t *words = fx_mapped(buffer);
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

static inline void expect_well(struct scene *s) {
    fx_expect_healthy(s->context, s->a);
    fx_expect_healthy(s->context, s->b);
}

#endif
