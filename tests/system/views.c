/* Views: a part of a buffer as a binding, reads and writes of parts, one buffer as two types. */
#include "fixture.h"

#include <stdio.h>

#define WORDS 1024u

/* What lavapipe needs; a device that needs more is refused less here, not more. */
static uint32_t alignment_of(bh_context *context) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    size_t count = 0;
    BHT_EQ(bh_devices(context, devices, BHT_COUNT(devices), &count, NULL), BH_OK);
    BHT_GE(count, 1);
    return devices[0].storage_alignment;
}

struct view {
    uint64_t offset, size;
};

static bh_binding view_of(bh_buffer *buffer, uint32_t binding, struct view view, bh_access access) {
    return (bh_binding){.binding = binding,
                        .buffer = buffer,
                        .offset = view.offset,
                        .size = view.size,
                        .access = access};
}

static bh_event *square(bh_stream *stream, bh_kernel *kernel, bh_buffer *x, struct view from,
                        bh_buffer *y, struct view to) {
    const bh_binding bindings[] = {view_of(x, 0, from, BH_ACCESS_READ),
                                   view_of(y, 1, to, BH_ACCESS_WRITE)};
    return fx_launch(stream, kernel, WORDS / 64, bindings, 2, 0);
}

/* A kernel sees its part and nothing beside it, at both ends. */
TEST(a_part_and_nothing_beside_it) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "parts", FX_SECONDS);
    bh_kernel *kernel = fx_kernel(context, "square");
    const uint64_t step = alignment_of(context) < 4 ? 4 : alignment_of(context);
    const uint64_t all = 4 * WORDS;
    const struct view views[] = {
        {0, 4}, {step, 4}, {0, all}, {step, BH_WHOLE_SIZE}, {all / 2, all / 2}, {all - step, step},
    };
    for (size_t i = 0; i < BHT_COUNT(views); i++) {
        bh_buffer *x = fx_words(context, WORDS, 0x40000000), *y = fx_words(context, WORDS, 1);
        fx_expect(square(stream, kernel, x, views[i], y, views[i]), BH_OK);
        uint64_t size = views[i].size == BH_WHOLE_SIZE ? all - views[i].offset : views[i].size;
        static uint32_t words[WORDS];
        BHT_EQ(bh_buffer_read(y, 0, words, all, FX_SECONDS, NULL), BH_OK);
        for (uint64_t at = 0; at < all; at += 4) {
            bool inside = at >= views[i].offset && at - views[i].offset < size;
            BHT_EQ(words[at / 4], inside ? 0x40800000 : 1);
        }
    }
}

/* An offset that the device does not take is refused before it runs, and the message says which one
 * it would take. */
TEST(an_unaligned_part_is_refused) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "aligned", FX_SECONDS);
    bh_kernel *kernel = fx_kernel(context, "square");
    const uint32_t alignment = alignment_of(context);
    BHT_GT(alignment, 1);
    bh_buffer *x = fx_words(context, WORDS, 0x40000000), *y = fx_words(context, WORDS, 1);
    char text[96];
    snprintf(text, sizeof text, "is not a multiple of %u (minStorageBufferOffsetAlignment)",
             alignment);
    for (uint64_t offset = 1; offset < 2 * alignment; offset++) {
        if (offset % alignment == 0) {
            continue;
        }
        bh_event *event =
            square(stream, kernel, x, (struct view){offset, 4}, y, (struct view){0, 64});
        bh_verdict verdict = fx_expect(event, BH_BINDING_MISMATCH);
        BHT_EQ(verdict.executed, BH_EXECUTED_NO);
        BHT_STR_HAS(verdict.message, text);
        BHT_STR_HAS(verdict.message, "set 0 binding 0");
    }
    /* Copies and the host's own reads and writes go by bytes. */
    uint8_t bytes[] = {1, 2, 3}, back[3] = {0};
    BHT_EQ(bh_buffer_write(x, 4093, bytes, 3, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_write(y, 0, (uint32_t[WORDS]){0}, 4 * WORDS, FX_SECONDS, NULL), BH_OK);
    const bh_command copy = {
        .type = BH_COMMAND_COPY,
        .copy = {.src = x, .src_offset = 4093, .dst = y, .dst_offset = 1, .size = 3}};
    fx_expect(fx_command(stream, copy, NULL, 0), BH_OK);
    BHT_EQ(bh_buffer_read(y, 1, back, 3, FX_SECONDS, NULL), BH_OK);
    BHT_MEM_EQ(back, bytes, 3);
}

static void refuse_binding(bh_stream *stream, bh_kernel *kernel, bh_buffer *buffer,
                           struct view view) {
    const bh_binding binding = view_of(buffer, 0, view, BH_ACCESS_READ);
    bh_event *event = (bh_event *)(uintptr_t)1;
    bh_detail detail = {0};
    BHT_EQ(bh_launch(stream, kernel, (const uint32_t[3]){1, 1, 1}, &binding, 1, NULL, 0, &event,
                     &detail),
           BH_INVALID_ARGUMENT);
    BHT_TRUE(!event);
    BHT_STR_HAS(detail.message, "set 0 binding 0");
    BHT_STR_HAS(detail.message, "offset");
}

TEST(parts_outside_the_buffer) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "outside", FX_SECONDS);
    bh_kernel *kernel = fx_kernel(context, "square");
    bh_buffer *buffer = fx_words(context, 64, 3);
    static const struct view outside[] = {
        {256, 4},
        {256, BH_WHOLE_SIZE},
        {256, 0},
        {257, BH_WHOLE_SIZE},
        {0, 257},
        {252, 5},
        {4, 256},
        {0, 0},
        {UINT64_MAX, 1},
        {UINT64_MAX - 3, 4},
        {8, UINT64_MAX - 4},
        {1ull << 63, 1ull << 63},
    };
    for (size_t i = 0; i < BHT_COUNT(outside); i++) {
        refuse_binding(stream, kernel, buffer, outside[i]);
    }
    /* The host's. */
    uint8_t bytes[260] = {0};
    static const struct view ranges[] = {{256, 1},
                                         {257, 0},
                                         {0, 257},
                                         {255, 2},
                                         {UINT64_MAX, 1},
                                         {1, UINT64_MAX},
                                         {UINT64_MAX, UINT64_MAX},
                                         {0, BH_WHOLE_SIZE}};
    for (size_t i = 0; i < BHT_COUNT(ranges); i++) {
        bh_detail detail = {0};
        BHT_EQ(bh_buffer_read(buffer, ranges[i].offset, bytes, ranges[i].size, 0, &detail),
               BH_INVALID_ARGUMENT);
        BHT_EQ(detail.reason, BH_REASON_PAST_END);
        BHT_EQ(bh_buffer_write(buffer, ranges[i].offset, bytes, ranges[i].size, 0, &detail),
               BH_INVALID_ARGUMENT);
        BHT_EQ(detail.reason, BH_REASON_PAST_END);
    }
    /* At the very end there is room for nothing, and nothing is what it takes. */
    BHT_EQ(bh_buffer_read(buffer, 256, NULL, 0, 0, NULL), BH_OK);
    BHT_EQ(bh_buffer_write(buffer, 256, NULL, 0, 0, NULL), BH_OK);
    BHT_EQ(bh_buffer_read(buffer, 255, bytes, 1, 0, NULL), BH_OK);
}

static void refuse(bh_template *t, const bh_argument *arguments, const char *message) {
    bh_template_call call;
    bh_detail detail = {.message = ""};
    BHT_EQ(bh_template_prepare(t, arguments, 3, NULL, &call, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, message);
}

/* An argument's own description counts instead of its buffer's. So one buffer is two types in one
 * call. */
TEST(two_types_of_one_buffer) {
    static const bh_parameter parameters[] = {{"x", BH_PARAMETER_IN, NULL},
                                              {"bits", BH_PARAMETER_IN, NULL},
                                              {"y", BH_PARAMETER_OUT, NULL}};
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "types", FX_SECONDS);
    bh_buffer *x = fx_buffer(context, 4 * WORDS), *y = fx_buffer(context, 2 * WORDS);
    bh_template_options options = {.struct_size = sizeof options};
    options.expression = "y = bits > 1065353216 ? x : -x"; /* the bits of 1.0f */
    options.parameters = parameters;
    options.parameter_count = 3;
    bh_template *t = NULL;
    BHT_EQ(bh_template_create(context, &options, &t, NULL), BH_OK);
    float *values = (float *)(void *)fx_pointer(x);
    for (uint32_t i = 0; i < WORDS; i++) {
        values[i] = 0.25f * (float)i;
    }
    bh_description half = {.struct_size = sizeof half}, bits;
    half.kind = BH_NUMBER_FLOAT;
    half.bits = 32;
    half.rank = 1;
    half.shape[0] = WORDS / 2;
    bits = half;
    bits.kind = BH_NUMBER_UINT;
    bh_argument a[] = {{.name = "x", .buffer = x, .description = &half},
                       {.name = "bits", .buffer = x, .description = &bits},
                       {.name = "y", .buffer = y, .description = &half}};
    bh_event *event = NULL;
    BHT_EQ(bh_template_launch(stream, t, a, 3, NULL, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    for (uint32_t i = 0; i < WORDS / 2; i++) {
        BHT_EQ(((float *)(void *)fx_pointer(y))[i], values[i] > 1 ? values[i] : -values[i]);
    }
    bh_description kept = {.struct_size = sizeof kept}; /* the buffer has none, as before */
    BHT_EQ(bh_buffer_description(x, &kept, NULL), BH_OK);
    BHT_EQ(kept.shape[0], 4 * WORDS);
    bits.offset = 4 * WORDS + 1;
    refuse(t, a, "bh_template_prepare: offset 4097 is outside the buffer of 4096 bytes");
    bits.offset = 0;
    a[1].buffer = NULL;
    refuse(t, a, "'bits': buffer is NULL or was released");
}
