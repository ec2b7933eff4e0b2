/* Device memory (D1 to D7), on the driver that runs on the processor: the API and the rules are the
 * same there, with host memory underneath (D7). */
#include "device_scene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

static bh_context *context;
static bh_stream *a;
static bh_buffer *buffer; /* device memory */

static void set_up_with(const char *faults, uint64_t size) {
    context = fx_context(faults);
    a = fx_stream(context, "a", FX_SECONDS);
    buffer = device_buffer(context, a, size, BH_MEMORY_DEVICE);
}

static void set_up(uint64_t size) {
    set_up_with(NULL, size);
}

/* Expects no buffer, but |status|. */
static void refused(bh_stream *stream, uint64_t size, uint64_t memory, bh_status status,
                    const char *words) {
    const bh_buffer_options options = {
        .struct_size = sizeof options, .stream = stream, .memory = memory};
    bh_buffer *none = buffer;
    bh_detail detail;
    BHT_EQ(bh_buffer_create(context, size, &options, &none, &detail), status);
    BHT_TRUE(!none);
    BHT_STR_HAS(detail.message, words);
    if (strstr(words, "of its limit of")) {
        char limit[64];
        snprintf(limit, sizeof limit, "limit of %llu bytes", (unsigned long long)detail.limit);
        BHT_STR_HAS(words, limit);
    }
}

static bh_status read_word(bh_buffer *of) {
    uint32_t found;
    return bh_buffer_read(of, 0, &found, sizeof found, FX_SECONDS, NULL);
}

/* -- D1 --------------------------------------------------------------------------------------- */

/* Several pieces, the last one short, and parts of them. */
TEST(the_host_reads_and_writes_by_copies) {
    const uint64_t size = 33 * MIB + 4;
    set_up(size);
    uint32_t *words = bht_own(device_pattern(size, 1));
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
    uint32_t part[64] = {0};
    const uint64_t at = 16 * MIB - 128;
    BHT_EQ(bh_buffer_write(buffer, at, part, sizeof part, FX_SECONDS, NULL), BH_OK);
    memcpy((char *)words + at, part, sizeof part);
    device_expect(buffer, words, size);
    memset(part, 1, sizeof part);
    BHT_EQ(bh_buffer_read(buffer, size - 256, part, sizeof part, FX_SECONDS, NULL), BH_OK);
    BHT_TRUE(memcmp(part, (char *)words + size - 256, sizeof part) == 0);
    BHT_EQ(bh_buffer_read(buffer, size, part, 0, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_read(buffer, size, part, 1, FX_SECONDS, NULL), BH_INVALID_ARGUMENT);
}

TEST(there_is_no_pointer) {
    set_up(64);
    void *pointer = buffer;
    bh_detail detail;
    BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!pointer);
    BHT_STR_HAS(detail.message, "bh_buffer_read");
    BHT_STR_HAS(detail.message, "bh_buffer_write");
    BHT_STR_HAS(detail.message, "BH_COMMAND_COPY");
}

TEST(upload_and_download_are_commands) {
    const uint64_t size = 256;
    set_up(size);
    bh_buffer *square_out = device_buffer(context, a, size, BH_MEMORY_DEVICE);
    bh_buffer *host = fx_buffer(context, size), *back = fx_buffer(context, size);
    bh_kernel *square = fx_kernel(context, "square");
    float *in = (float *)(void *)fx_pointer(host);
    for (int i = 0; i < 64; i++) {
        in[i] = (float)i;
    }
    device_copy(a, host, buffer);
    fx_square(a, square, buffer, square_out);
    device_expect_ready(device_copy(a, square_out, back));
    const float *out = (const float *)fx_mapped(back);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(out[i] == (float)(i * i));
    }
}

TEST(each_change_has_a_number) {
    set_up(64);
    bh_buffer *host = fx_words(context, 16, 3);
    BHT_EQ(bh_buffer_version(buffer), 0);
    BHT_EQ(bh_buffer_version(host), 0);
    device_expect_ready(device_copy(a, host, buffer));
    const uint64_t first = bh_buffer_version(buffer);
    BHT_TRUE(first > 0);
    device_expect_ready(device_copy(a, buffer, host)); /* which only reads it */
    BHT_EQ(read_word(buffer), BH_OK);
    BHT_EQ(bh_buffer_version(buffer), first);
    device_put(buffer, &first, sizeof first);
    BHT_TRUE(bh_buffer_version(buffer) > first);
}

/* A write that has not begun changes nothing when its time is over. */
TEST(a_turn_takes_a_timeout) {
    set_up(64);
    const uint32_t ones[16] = {1, 1, 1}, zeros[16] = {0};
    const struct fx_held held = fx_hold(context, a);
    const uint64_t version = bh_buffer_version(buffer);
    BHT_EQ(bh_buffer_write(buffer, 0, ones, sizeof ones, FX_MS, NULL), BH_TIMEOUT);
    uint32_t found[16];
    BHT_EQ(bh_buffer_read(buffer, 0, found, sizeof found, FX_MS, NULL), BH_TIMEOUT);
    BHT_EQ(bh_buffer_version(buffer), version);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    device_expect(buffer, zeros, sizeof zeros);
    BHT_EQ(bh_stream_synchronize(a, FX_SECONDS, NULL), BH_OK); /* what was taken back is quiet */
}

/* E10: a copy that runs when the time is over ends by itself. Nobody is killed for it. */
TEST(a_read_that_times_out_kills_nobody) {
    set_up_with("1:started:2=stop", 64);
    const uint32_t words[16] = {1, 2, 3};
    uint32_t found[16];
    device_put(buffer, words, sizeof words);
    const uint64_t soon_ns = 100 * FX_MS * bht_slowness();
    BHT_EQ(bh_buffer_read(buffer, 0, found, sizeof found, soon_ns, NULL), BH_TIMEOUT);
    const pid_t stopped = fx_await_stopped();
    fx_kill(stopped, SIGCONT);
    device_expect(buffer, words, sizeof words);
    BHT_EQ(bh_stream_worker_pid(a), stopped);
}

TEST(the_buffer_keeps_its_stream) {
    set_up(64);
    const uint32_t words[16] = {1, 2, 3};
    bh_stream_release(a);
    device_put(buffer, words, sizeof words);
    device_expect(buffer, words, sizeof words);
}

TEST(after_the_context_there_are_no_copies) {
    set_up(64);
    uint32_t words[16] = {0};
    bh_stream_release(a);
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_EQ(bh_buffer_read(buffer, 0, words, sizeof words, FX_SECONDS, NULL), BH_CLOSED);
    BHT_EQ(bh_buffer_write(buffer, 0, words, sizeof words, FX_SECONDS, NULL), BH_CLOSED);
}

/* -- D2 --------------------------------------------------------------------------------------- */

TEST(content_survives_its_writers_death) {
    const uint64_t size = 2 * MIB;
    set_up(size);
    uint32_t *words = bht_own(device_pattern(size, 7));
    device_put(buffer, words, size);
    for (int i = 0; i < 2; i++) {
        fx_replace_worker(context, a);
        device_expect(buffer, words, size);
    }
}

/* Killed while it writes one buffer: another that it had written before is intact, and so is one
 * that it was only reading. */
TEST(a_death_poisons_what_was_being_written) {
    set_up(256);
    bh_buffer *written = device_buffer(context, a, 256, BH_MEMORY_DEVICE);
    bh_buffer *data = fx_words(context, 64, 0);
    fx_note_gate(data);
    uint32_t *words = bht_own(device_pattern(256, 9));
    device_put(buffer, words, 256);
    device_put(written, words, 256);
    const bh_binding binding = bh_bind_read_write(0, data);
    const bh_command commands[] = {
        fx_dispatch(fx_kernel(context, "gate"), &binding, 1),
        {.type = BH_COMMAND_COPY, .copy = {.src = buffer, .dst = written, .size = 128}},
    };
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = 2,
                                 .deadline_ns = BH_FOREVER};
    bh_event *event = fx_submit(a, &info);
    fx_await_gate(data);
    fx_kill(fx_ready(a), SIGKILL);
    fx_expect(event, BH_WORKER_SIGNAL);
    BHT_EQ(read_word(written), BH_WORKER_SIGNAL);
    BHT_EQ(read_word(written), BH_WORKER_SIGNAL);
    device_expect(buffer, words, 256);
    /* Part of it does not clean it; all of it does (B5). */
    BHT_EQ(bh_buffer_write(written, 0, words, 128, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    device_put(written, words, 256);
    device_expect(written, words, 256);
}

/* All of it, in several pieces: none of them is all (B5). */
TEST(a_write_in_pieces_cleans) {
    const uint64_t size = 17 * MIB;
    set_up(size);
    const struct fx_held held = fx_hold(context, a);
    bh_event *event = device_copy(a, fx_buffer(context, size), buffer);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    fx_expect(event, BH_CANCELLED);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    uint32_t *words = bht_own(device_pattern(size, 5));
    BHT_EQ(read_word(buffer), BH_CANCELLED);
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
}

/* -- D3 --------------------------------------------------------------------------------------- */

TEST(new_memory_is_zero) {
    const uint64_t size = 64 * 1024;
    set_up(size);
    void *zeros = bht_own(calloc(1, size)), *words = bht_own(device_pattern(size, 3));
    for (int i = 0; i < 3; i++) { /* the second and third have what the first had */
        device_expect(buffer, zeros, size);
        device_put(buffer, words, size);
        bh_buffer_release(buffer);
        buffer = device_buffer(context, a, size, BH_MEMORY_DEVICE);
    }
    bh_stream *other = device_stream(context, "b", "somebody else", 0);
    device_expect(device_buffer(context, other, size, BH_MEMORY_DEVICE), zeros, size);
}

/* -- D4 --------------------------------------------------------------------------------------- */

TEST(streams_of_one_tenant_share) {
    set_up(64);
    bh_stream *b = device_stream(context, "b", NULL, 0);
    bh_buffer *host = fx_words(context, 16, 5);
    bh_buffer *back = fx_words(context, 16, 0);
    device_copy(a, host, buffer);
    device_expect_ready(device_copy(b, buffer, back));
    BHT_EQ(((const uint32_t *)fx_mapped(back))[15], 5);
    bh_buffer *six = fx_words(context, 16, 6);
    device_copy(b, six, buffer); /* and may write it, too */
    device_expect_ready(device_copy(a, buffer, back));
    BHT_EQ(((const uint32_t *)fx_mapped(back))[15], 6);
}

TEST(other_tenants_read_only) {
    set_up(64);
    bh_stream *b = device_stream(context, "b", "somebody else", 0);
    bh_buffer *back = fx_words(context, 16, 0);
    for (uint32_t i = 1; i < 3; i++) { /* each version */
        bh_buffer *host = fx_words(context, 16, i);
        device_copy(a, host, buffer);
        device_expect_ready(device_copy(b, buffer, back));
        BHT_EQ(((const uint32_t *)fx_mapped(back))[15], i);
    }
    const bh_binding bindings[] = {bh_bind_read(0, back), bh_bind_write(1, buffer)};
    const bh_command writes[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = back, .dst = buffer, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = BH_WHOLE_SIZE}},
        fx_dispatch(fx_kernel(context, "square"), bindings, 2)};
    for (size_t i = 0; i < BHT_COUNT(writes); i++) {
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = &writes[i], .command_count = 1};
        bh_detail detail;
        BHT_EQ(bh_submit(b, &info, NULL, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, "device memory of tenant \"\" (stream a)");
        BHT_STR_HAS(detail.message, "stream b of tenant \"somebody else\"");
    }
}

/* -- D5 --------------------------------------------------------------------------------------- */

/* A device that is lost poisons what the worker was writing on it, and nothing else. */
TEST(a_lost_device_poisons_what_was_being_written) {
    set_up_with("1:lie_device:4=fail", 64);
    bh_buffer *lost = device_buffer(context, a, 64, BH_MEMORY_DEVICE);
    bh_buffer *host = fx_words(context, 16, 4);
    const uint32_t words[16] = {1, 2, 3};
    device_put(buffer, words, sizeof words);
    device_put(lost, words, sizeof words);
    device_expect_ready(device_copy(a, host, lost));
    fx_expect(device_copy(a, host, lost), BH_DEVICE_LOST);
    BHT_EQ(read_word(lost), BH_DEVICE_LOST);
    device_expect(buffer, words, sizeof words);
}

/* -- D6 --------------------------------------------------------------------------------------- */

TEST(limits_are_kept) {
    bh_context_options options = fx_options();
    options.device_memory = 3 * MIB;
    context = fx_context_with(options, NULL);
    a = device_stream(context, "a", NULL, 2 * MIB);
    bh_stream *b = device_stream(context, "b", NULL, 0);
    buffer = device_buffer(context, a, MIB + 1, BH_MEMORY_DEVICE);
    /* Of the stream: a page more than 1 MiB is taken. */
    refused(a, MIB, BH_MEMORY_DEVICE, BH_OUT_OF_DEVICE_MEMORY,
            "1048576 bytes of device memory were asked for");
    refused(a, MIB, BH_MEMORY_DEVICE, BH_OUT_OF_DEVICE_MEMORY,
            fx_on_cuda() ? "stream a has 338694144 of its limit of 339738624 bytes "
                           "(device_memory) in use, 337641472 of them by its CUDA context"
                         : "stream a has 1052672 of its limit of 2097152 bytes "
                           "(device_memory) in use");
    /* Of the context. */
    refused(b, 2 * MIB, BH_MEMORY_DEVICE, BH_OUT_OF_DEVICE_MEMORY,
            "the context has 1052672 of its limit of 3145728 bytes");
    refused(b, 2 * MIB, BH_MEMORY_DEVICE, BH_OUT_OF_DEVICE_MEMORY, "(device_memory)");
    /* Nothing is poisoned, and what is given back can be had again. */
    device_put(buffer, &(uint32_t){1}, sizeof(uint32_t));
    bh_buffer_release(buffer);
    bh_buffer_release(device_buffer(context, b, 3 * MIB, BH_MEMORY_DEVICE));
    device_buffer(context, a, 2 * MIB, BH_MEMORY_DEVICE);
}

TEST(a_trim_gives_it_back) {
    set_up(64 * 1024);
    bh_buffer_release(buffer);
    BHT_GE(fx_stats(context).pool_bytes, 64 * 1024);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    BHT_EQ(fx_stats(context).pool_bytes, 0);
}

/* -- D7, and what the calls refuse ------------------------------------------------------------ */

TEST(what_is_refused) {
    set_up(0);
    bh_stream *foreign = fx_stream(fx_context(NULL), "foreign", FX_SECONDS);
    refused(NULL, 64, BH_MEMORY_DEVICE, BH_INVALID_ARGUMENT, "needs a stream");
    refused(a, 64, 3, BH_INVALID_ARGUMENT, "memory 3 is not a bh_memory");
    refused(foreign, 64, BH_MEMORY_DEVICE, BH_INVALID_ARGUMENT, "");
    refused(a, 2ull << 40, BH_MEMORY_DEVICE, BH_TOO_LARGE, "");
    BHT_EQ(bh_buffer_memory(NULL), BH_MEMORY_HOST);
}

/* On a processor there is nothing to be gained. */
TEST(auto_is_host_memory_here) {
    set_up(0);
    buffer =
        fx_buffer_with(context, 64, (bh_buffer_options){.stream = a, .memory = BH_MEMORY_AUTO});
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_HOST);
    BHT_EQ(fx_content(buffer), BH_OK);
    buffer = fx_buffer_with(context, 64, (bh_buffer_options){.memory = BH_MEMORY_AUTO});
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_HOST);
}

TEST(an_empty_buffer) {
    set_up(0);
    BHT_EQ(bh_buffer_read(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_write(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
}

/* What the device is has to be known, and no worker can start. */
TEST(a_stream_without_a_worker) {
    bh_context_options options = fx_options();
    options.restart_budget = 1;
    context = fx_context_with(options, "*:hello:1=exit7");
    refused(fx_stream(context, "a", FX_SECONDS), 64, BH_MEMORY_DEVICE, BH_UNAVAILABLE, "");
}
