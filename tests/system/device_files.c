/* Files that are loaded into device memory, in pieces, on the driver that runs on the processor. */
#include "device_scene.h"
#include "files.h"

#include <stdlib.h>

#define MIB (1024ull * 1024)

static bh_buffer *load(bh_context *context, const char *path, bh_stream *stream) {
    const bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
    const bh_buffer_options options = {.struct_size = sizeof options,
                                       .stream = stream,
                                       .memory = BH_MEMORY_DEVICE,
                                       .file = &source};
    bh_buffer *buffer = NULL;
    bh_detail detail = {0};
    if (bh_buffer_create(context, 0, &options, &buffer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_create: %s", detail.message);
    }
    return buffer;
}

/* More of them than there are loaders: one of these reads into the same staging memory again. */
TEST(a_file_in_pieces) {
    const uint64_t size = 64 * MIB + 12;
    bh_context *context = fx_context(NULL);
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    bh_buffer *buffer = load(context, "file", a);
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
    buffer = load(context, "empty", a);
    BHT_EQ(bh_buffer_read(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
    bh_buffer_release(buffer);
    leave_folder();
}

/* The second piece cannot be read: the buffer is poisoned with errno, path and offset, and nothing
 * that binds it runs. */
TEST(a_piece_that_cannot_be_read) {
    const uint64_t size = 40 * MIB;
    bh_context *context = fx_context("*:load_read:3=fail");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    bh_buffer *buffer = load(context, "file", a), *host = fx_buffer(context, size);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    bh_event *dependent = device_copy(a, buffer, host);
    fx_expect(event, BH_LOAD_FAILED);
    fx_expect(dependent, BH_LOAD_FAILED);
    const bh_verdict verdict = fx_verdict(event);
    BHT_EQ(verdict.origin, verdict.event); /* nobody sees the event of the read */
    BHT_EQ(verdict.hops, 0);
    BHT_EQ(fx_verdict(dependent).origin, verdict.event);
    BHT_EQ(fx_verdict(dependent).hops, 1);
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
}

/* A strict stream, whose loads' events are its own. */
struct strict {
    bh_context *context;
    bh_stream *stream;
    uint32_t *words;
};

static struct strict strict_open(const char *faults) {
    const uint64_t size = 20 * MIB;
    struct strict s = {.context = fx_context(faults), .words = device_pattern(size, 11)};
    bh_stream_options options = fx_stream_options();
    options.strict = true;
    BHT_EQ(bh_stream_create(s.context, &options, &s.stream, NULL), BH_OK);
    enter_folder();
    fx_write_file("file", s.words, size);
    return s;
}

static void strict_close(struct strict *s) {
    free(s->words);
    leave_folder();
}

/* Loads the file, and expects what its event ends with. */
static void strict_load(struct strict *s, bool cancel, bh_status status) {
    bh_buffer *buffer = load(s->context, "file", s->stream);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    BHT_EQ(cancel ? bh_stream_cancel(s->stream) : BH_OK, BH_OK);
    fx_expect(event, status);
}

TEST(a_cancel_of_the_stream_cancels_its_load) {
    struct strict s = strict_open(NULL);
    bh_kernel *gate = fx_kernel_trusted(s.context, "gate");
    bh_buffer *word = fx_words(s.context, 2, 0);
    bh_event *running = fx_gate(s.stream, gate, word);
    fx_await_gate(word);
    strict_load(&s, true, BH_CANCELLED);
    fx_expect(running, BH_CANCELLED);
    strict_load(&s, false, BH_STREAM_FAILED); /* E4 */
    BHT_EQ(bh_stream_reset(s.stream, NULL), BH_OK);
    strict_load(&s, false, BH_OK);
    bh_event_release(running);
    bh_buffer_release(word);
    bh_kernel_release(gate);
    strict_close(&s);
}

TEST(a_failed_load_fails_its_strict_stream) {
    struct strict s = strict_open("*:load_read:1=fail");
    strict_load(&s, false, BH_LOAD_FAILED);
    strict_load(&s, false, BH_STREAM_FAILED);
    strict_close(&s);
}

/* The device is lost in the copy of the first piece. The next worker copies it again, some times;
 * |often|: too often, so the load has failed. Its event is its own origin: nobody sees another. */
static void lost_in_a_piece(bool often) {
    const uint64_t size = 40 * MIB;
    bh_context *context = fx_context(often ? "*:waited:1=fail" : "1:lie_device:1=fail");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    fx_ready(a);
    enter_folder();
    uint32_t *words = device_pattern(size, 11);
    fx_write_file("file", words, size);
    bh_buffer *buffer = load(context, "file", a);
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    if (often) {
        fx_expect(event, BH_WORKER_LOST);
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.origin, verdict.event);
        BHT_EQ(verdict.hops, 0);
        BHT_EQ(verdict.blame, BH_BLAME_NONE);
        BHT_STR_HAS(verdict.message, "a copy of the content failed: the device of worker ");
        uint32_t found;
        BHT_EQ(bh_buffer_read(buffer, 0, &found, sizeof found, FX_SECONDS, NULL), BH_WORKER_LOST);
    } else {
        fx_expect(event, BH_OK);
        device_expect(buffer, words, size);
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
    free(words);
    leave_folder();
}

TEST(a_lost_piece_is_copied_again) {
    lost_in_a_piece(false);
}

TEST(a_piece_that_is_lost_too_often) {
    lost_in_a_piece(true);
}
