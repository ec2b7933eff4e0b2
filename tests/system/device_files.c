/* Files that are loaded into device memory, in pieces, on the driver that runs on the processor. */
#include "device_scene.h"
#include "files.h"

#include <stdlib.h>

#define MIB (1024ull * 1024)

static bh_context *context;
static bh_stream *a;
static uint32_t *words; /* what is in the file */

static bh_buffer *load(const char *path) {
    const bh_file_source source = source_of(path, BH_FILE_RAW, NULL);
    const bh_buffer_options options = {.stream = a, .memory = BH_MEMORY_DEVICE, .file = &source};
    bh_buffer *buffer = fx_buffer_with(context, 0, options);
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_DEVICE);
    return buffer;
}

/* A context with a stream, and a file. */
static void set_up(const char *faults, bool strict, uint64_t size) {
    bh_stream_options options = fx_stream_options();
    options.name = "a";
    options.deadline_ns = FX_SECONDS;
    options.strict = strict;
    context = fx_context(faults);
    a = fx_stream_with(context, options);
    words = bht_own(device_pattern(size, 11));
    enter_folder();
    fx_write_file("file", words, size);
}

/* More of them than there are loaders: one of these reads into the same staging memory again. */
TEST(a_file_in_pieces) {
    const uint64_t size = 64 * MIB + 12;
    set_up(NULL, false, size);
    bh_buffer *buffer = load("file");
    BHT_EQ(bh_buffer_size(buffer), size);
    fx_expect(fx_load_event(buffer), BH_OK);
    uint64_t done = 0, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, size);
    BHT_EQ(total, size);
    device_expect(buffer, words, size);
    fx_write_file("empty", "", 0);
    BHT_EQ(bh_buffer_read(load("empty"), 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
}

/* The second piece cannot be read: the buffer is poisoned with errno, path and offset, and nothing
 * that binds it runs. */
TEST(a_piece_that_cannot_be_read) {
    const uint64_t size = 40 * MIB;
    set_up("*:load_read:3=fail", false, size);
    bh_buffer *buffer = load("file"), *host = fx_buffer(context, size);
    bh_event *event = fx_load_event(buffer), *dependent = device_copy(a, buffer, host);
    const bh_verdict verdict = fx_expect(event, BH_LOAD_FAILED),
                     second = fx_expect(dependent, BH_LOAD_FAILED);
    BHT_EQ(verdict.origin, verdict.event); /* nobody sees the event of the read */
    BHT_EQ(verdict.hops, 0);
    BHT_EQ(second.origin, verdict.event);
    BHT_EQ(second.hops, 1);
    BHT_STR_HAS(verdict.message, "file");
    BHT_EQ(verdict.sys_errno, 5);
    uint32_t found;
    BHT_EQ(bh_buffer_read(buffer, 0, &found, sizeof found, FX_SECONDS, NULL), BH_LOAD_FAILED);
    uint64_t done = 1, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, 0);
}

/* -- loads of a strict stream: their events are its own ---------------------------------------- */

TEST(a_cancel_of_the_stream_cancels_its_load) {
    set_up(NULL, true, 20 * MIB);
    const struct fx_held held = fx_hold(context, a);
    bh_event *event = fx_load_event(load("file"));
    BHT_EQ(bh_stream_cancel(a), BH_OK);
    fx_expect(event, BH_CANCELLED);
    fx_expect(held.event, BH_CANCELLED);
    fx_expect(fx_load_event(load("file")), BH_STREAM_FAILED); /* E4 */
    BHT_EQ(bh_stream_reset(a, NULL), BH_OK);
    fx_expect(fx_load_event(load("file")), BH_OK);
}

TEST(a_failed_load_fails_its_strict_stream) {
    set_up("*:load_read:1=fail", true, 20 * MIB);
    fx_expect(fx_load_event(load("file")), BH_LOAD_FAILED);
    fx_expect(fx_load_event(load("file")), BH_STREAM_FAILED);
}

/* -- the device is lost in the copy of the first piece ------------------------------------------ */

/* The next worker copies it again. */
TEST(a_lost_piece_is_copied_again) {
    const uint64_t size = 40 * MIB;
    set_up("1:lie_device:1=fail", false, size);
    bh_buffer *buffer = load("file");
    fx_expect(fx_load_event(buffer), BH_OK);
    device_expect(buffer, words, size);
}

/* After some times the load has failed. Its event is its own origin: nobody sees another. */
TEST(a_piece_that_is_lost_too_often) {
    set_up("*:waited:1=fail", false, 40 * MIB);
    bh_buffer *buffer = load("file");
    const bh_verdict verdict = fx_expect(fx_load_event(buffer), BH_WORKER_LOST);
    BHT_EQ(verdict.origin, verdict.event);
    BHT_EQ(verdict.hops, 0);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
    BHT_STR_HAS(verdict.message, "a copy of the content failed: the device of worker ");
    uint32_t found;
    BHT_EQ(bh_buffer_read(buffer, 0, &found, sizeof found, FX_SECONDS, NULL), BH_WORKER_LOST);
}
