/* Files that are loaded into device memory, in pieces, on the driver that runs on the processor. */
#include "device_scene.h"
#include "files.h"

#include <stdlib.h>

#define MIB (1024ull * 1024)

static bh_file_source into_device(const char *path, bh_stream *stream) {
    bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
    source.stream = stream;
    source.memory = BH_MEMORY_DEVICE;
    return source;
}

/* More of them than there are loaders: one of these reads into the same staging memory again. */
static void a_file_in_pieces(void) {
    const uint64_t size = 64 * MIB + 12;
    bh_context *context = fx_context(NULL);
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    bh_file_source source = into_device("file", a);
    bh_buffer *buffer = fx_load(context, &source);
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_DEVICE);
    BHT_EQ(bh_buffer_size(buffer), size);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    uint64_t done = 0, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, size);
    BHT_EQ(total, size);
    device_expect(buffer, words, size);
    free(words);
    bh_event_release(event);
    bh_buffer_release(buffer);
    fx_write_file("empty", "", 0);
    source = into_device("empty", a);
    buffer = fx_load(context, &source);
    BHT_EQ(bh_buffer_read(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
    bh_buffer_release(buffer);
    leave_folder();
    bh_stream_release(a);
    BHT_EQ(bh_context_destroy(context), BH_OK);
}

/* The second piece cannot be read: the buffer is poisoned with errno, path and offset, and nothing
 * that binds it runs. */
static void a_piece_that_cannot_be_read(void) {
    const uint64_t size = 40 * MIB;
    bh_context *context = fx_context("*:load_read:3=fail");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    const bh_file_source source = into_device("file", a);
    bh_buffer *buffer = fx_load(context, &source), *host = fx_buffer(context, size);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    bh_event *dependent = device_copy(a, buffer, host);
    fx_expect(event, BH_LOAD_FAILED);
    fx_expect(dependent, BH_LOAD_FAILED);
    const bh_verdict verdict = fx_verdict(event);
    BHT_STR_HAS(verdict.message, "file");
    BHT_EQ(verdict.sys_errno, 5);
    uint32_t found;
    BHT_EQ(bh_buffer_read(buffer, 0, &found, sizeof found, FX_SECONDS, NULL), BH_LOAD_FAILED);
    uint64_t done = 1, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, 0);
    bh_event_release(event);
    bh_event_release(dependent);
    bh_buffer_release(buffer);
    bh_buffer_release(host);
    free(words);
    leave_folder();
    bh_stream_release(a);
    bh_context_destroy(context);
}

/* The first piece is read and does not get to the device: so has the load failed, although the last
 * one does. */
static void a_piece_that_is_not_copied(void) {
    const uint64_t size = 40 * MIB;
    bh_context *context = fx_context("1:lie_device:1=fail");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    fx_ready(a);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    const bh_file_source source = into_device("file", a);
    bh_buffer *buffer = fx_load(context, &source);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    fx_expect(event, BH_DEVICE_LOST);
    uint32_t found;
    BHT_EQ(bh_buffer_read(buffer, 0, &found, sizeof found, FX_SECONDS, NULL), BH_DEVICE_LOST);
    bh_event_release(event);
    bh_buffer_release(buffer);
    free(words);
    leave_folder();
    bh_stream_release(a);
    bh_context_destroy(context);
}

int main(int argc, char **argv) {
    static const struct bht_test cases[] = {
        BHT_TEST(a_file_in_pieces),
        BHT_TEST(a_piece_that_cannot_be_read),
        BHT_TEST(a_piece_that_is_not_copied),
    };
    return bht_main(argc, argv, cases, BHT_COUNT(cases));
}
