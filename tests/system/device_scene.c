#include "device_scene.h"

#include <stdlib.h>
#include <string.h>

bh_stream *device_stream(bh_context *context, const char *name, const char *tenant,
                         uint64_t device_memory) {
    return device_stream_on(context, name, NULL, tenant, device_memory);
}

bh_stream *device_stream_on(bh_context *context, const char *name, const char *device,
                            const char *tenant, uint64_t device_memory) {
    bh_stream_options options = fx_stream_options();
    options.name = name;
    options.device = device;
    options.tenant = tenant;
    options.device_memory = device_memory;
    options.deadline_ns = FX_SECONDS;
    return fx_stream_with(context, options);
}

bh_buffer *device_buffer(bh_context *context, bh_stream *stream, uint64_t size, uint64_t memory) {
    const bh_buffer_options options = {.stream = stream, .memory = memory};
    bh_buffer *buffer = fx_buffer_with(context, size, options);
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_DEVICE);
    return buffer;
}

uint32_t *device_pattern(uint64_t size, uint32_t seed) {
    uint32_t *words = malloc(size);
    BHT_TRUE(words);
    for (uint64_t i = 0; i < size / 4; i++) {
        words[i] = (uint32_t)i * 2654435761u + seed;
    }
    return words;
}

void device_expect(bh_buffer *buffer, const void *bytes, uint64_t size) {
    void *found = malloc(size);
    BHT_TRUE(found);
    bh_detail detail = {0};
    if (bh_buffer_read(buffer, 0, found, size, FX_SECONDS, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_read: %s", detail.message);
    }
    BHT_TRUE(memcmp(found, bytes, size) == 0);
    free(found);
}

void device_put(bh_buffer *buffer, const void *bytes, uint64_t size) {
    bh_detail detail = {0};
    if (bh_buffer_write(buffer, 0, bytes, size, FX_SECONDS, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_write: %s", detail.message);
    }
}

bh_event *device_copy(bh_stream *stream, bh_buffer *src, bh_buffer *dst) {
    const bh_command command = {.type = BH_COMMAND_COPY,
                                .copy = {.src = src, .dst = dst, .size = BH_WHOLE_SIZE}};
    return fx_command(stream, command, NULL, 0);
}

void device_expect_ready(bh_event *event) {
    fx_expect(event, BH_OK);
    bh_event_release(event);
}
