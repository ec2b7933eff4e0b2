#include "files.h"

void write_floats(const char *path, uint32_t count) {
    float *floats = malloc(count * sizeof *floats);
    BHT_TRUE(floats);
    for (uint32_t i = 0; i < count; i++) {
        floats[i] = (float)i;
    }
    fx_write_file(path, floats, count * sizeof *floats);
    free(floats);
}

bh_buffer *from_raw(bh_context *context, const char *path) {
    bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
    return fx_load(context, &source);
}

bh_event *load_of(bh_buffer *buffer) {
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    return event;
}

bh_verdict expect_failed(bh_buffer *buffer, bh_status status, const char *words) {
    bh_verdict verdict = ev_agree(load_of(buffer), status);
    BHT_STR_HAS(verdict.message, words);
    BHT_EQ(verdict.hops, 0);
    ev_content_poisoned(buffer, status);
    return verdict;
}

/* Bytes that differ from one read's length to the next. */
static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 2654435761u >> 13);
}

void write_bytes(const char *path, size_t size) {
    uint8_t *bytes = malloc(size);
    BHT_TRUE(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i);
    }
    fx_write_file(path, bytes, size);
    free(bytes);
}

void expect_bytes(bh_buffer *buffer, size_t offset, size_t size) {
    const uint8_t *bytes = fx_mapped(buffer);
    BHT_EQ(bh_buffer_size(buffer), size);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte_at(offset + i)) {
            BHT_FAIL("byte %zu is %u, not %u", i, bytes[i], byte_at(offset + i));
        }
    }
}
