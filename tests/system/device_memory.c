/* Device memory (D1 to D7), on the driver that runs on the processor: the API and the rules are the
 * same there, with host memory underneath (D7). */
#include "device_scene.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

struct scene {
    bh_context *context;
    bh_stream *a;
};

static struct scene set_up(void) {
    struct scene s = {.context = fx_context(NULL)};
    s.a = fx_stream(s.context, "a", FX_SECONDS);
    return s;
}

static bh_status create(bh_context *context, bh_stream *stream, uint64_t size, uint64_t memory,
                        bh_buffer **out_buffer, bh_detail *detail) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = stream;
    options.memory = memory;
    return bh_buffer_create(context, size, &options, out_buffer, detail);
}

/* -- D1 --------------------------------------------------------------------------------------- */

/* Several pieces, the last one short, and parts of them. */
TEST(the_host_reads_and_writes_by_copies) {
    const uint64_t size = 33 * MIB + 4;
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE);
    uint32_t *words = device_pattern(size, 1);
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
    free(words);
}

TEST(there_is_no_pointer) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE);
    void *pointer = &s;
    bh_detail detail;
    BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_INVALID_ARGUMENT);
    BHT_TRUE(!pointer);
    BHT_STR_HAS(detail.message, "bh_buffer_read");
    BHT_STR_HAS(detail.message, "bh_buffer_write");
    BHT_STR_HAS(detail.message, "BH_COMMAND_COPY");
}

TEST(upload_and_download_are_commands) {
    const uint64_t size = 256;
    struct scene s = set_up();
    bh_buffer *square_in = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE);
    bh_buffer *square_out = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE);
    bh_buffer *host = fx_buffer(s.context, size), *back = fx_buffer(s.context, size);
    bh_kernel *square = fx_kernel(s.context, "square");
    float *in = (float *)(void *)fx_pointer(host);
    for (int i = 0; i < 64; i++) {
        in[i] = (float)i;
    }
    bh_event_release(device_copy(s.a, host, square_in));
    bh_event_release(fx_square(s.a, square, square_in, square_out));
    device_expect_ready(device_copy(s.a, square_out, back));
    const float *out = (const float *)fx_mapped(back);
    for (int i = 0; i < 64; i++) {
        BHT_TRUE(out[i] == (float)(i * i));
    }
}

TEST(each_change_has_a_number) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE),
              *host = fx_words(s.context, 16, 3);
    BHT_EQ(bh_buffer_version(buffer), 0);
    BHT_EQ(bh_buffer_version(host), 0);
    device_expect_ready(device_copy(s.a, host, buffer));
    const uint64_t first = bh_buffer_version(buffer);
    BHT_TRUE(first > 0);
    device_expect_ready(device_copy(s.a, buffer, host)); /* which only reads it */
    uint32_t words[16];
    BHT_EQ(bh_buffer_read(buffer, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_version(buffer), first);
    device_put(buffer, words, sizeof words);
    BHT_TRUE(bh_buffer_version(buffer) > first);
}

/* A write that has not begun changes nothing when its time is over. */
TEST(a_turn_takes_a_timeout) {
    struct scene s = set_up();
    bh_kernel *gate = fx_kernel(s.context, "gate");
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE),
              *data = fx_words(s.context, 64, 0);
    const uint32_t ones[16] = {1, 1, 1}, zeros[16] = {0};
    volatile uint32_t *word = fx_pointer(data);
    bh_event *running = fx_gate_within(s.a, gate, data, BH_FOREVER);
    fx_await_gate(data);
    const uint64_t version = bh_buffer_version(buffer);
    bh_detail detail;
    BHT_EQ(bh_buffer_write(buffer, 0, ones, sizeof ones, FX_MS, &detail), BH_TIMEOUT);
    uint32_t found[16];
    BHT_EQ(bh_buffer_read(buffer, 0, found, sizeof found, FX_MS, &detail), BH_TIMEOUT);
    BHT_EQ(bh_buffer_version(buffer), version);
    fx_open(word);
    fx_expect(running, BH_OK);
    device_expect(buffer, zeros, sizeof zeros);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_OK); /* what was taken back is quiet */
}

/* E10: a copy that runs when the time is over ends by itself. Nobody is killed for it. */
TEST(a_read_that_times_out_kills_nobody) {
    struct scene s = {.context = fx_context("1:started:2=stop")};
    s.a = fx_stream(s.context, "a", FX_SECONDS);
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE);
    const uint32_t words[16] = {1, 2, 3};
    uint32_t found[16];
    device_put(buffer, words, sizeof words);
    const uint64_t soon_ns = 100 * FX_MS * bht_slowness();
    BHT_EQ(bh_buffer_read(buffer, 0, found, sizeof found, soon_ns, NULL), BH_TIMEOUT);
    const pid_t stopped = fx_await_stopped();
    BHT_EQ(kill(stopped, SIGCONT), 0);
    device_expect(buffer, words, sizeof words);
    BHT_EQ(bh_stream_worker_pid(s.a), stopped);
}

TEST(the_buffer_keeps_its_stream) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE);
    const uint32_t words[16] = {1, 2, 3};
    bh_stream_release(s.a);
    device_put(buffer, words, sizeof words);
    device_expect(buffer, words, sizeof words);
}

TEST(after_the_context_there_are_no_copies) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE);
    uint32_t words[16] = {0};
    bh_stream_release(s.a);
    BHT_EQ(bh_context_destroy(s.context), BH_OK);
    BHT_EQ(bh_buffer_read(buffer, 0, words, sizeof words, FX_SECONDS, NULL), BH_CLOSED);
    BHT_EQ(bh_buffer_write(buffer, 0, words, sizeof words, FX_SECONDS, NULL), BH_CLOSED);
}

/* -- D2 --------------------------------------------------------------------------------------- */

TEST(content_survives_its_writers_death) {
    const uint64_t size = 2 * MIB;
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE);
    uint32_t *words = device_pattern(size, 7);
    device_put(buffer, words, size);
    for (int i = 0; i < 2; i++) {
        fx_replace_worker(s.context, s.a);
        device_expect(buffer, words, size);
    }
    free(words);
}

/* Killed while it writes one buffer: another that it had written before is intact, and so is one
 * that it was only reading. */
TEST(a_death_poisons_what_was_being_written) {
    struct scene s = set_up();
    bh_kernel *gate = fx_kernel(s.context, "gate");
    bh_buffer *kept = device_buffer(s.context, s.a, 256, BH_MEMORY_DEVICE);
    bh_buffer *written = device_buffer(s.context, s.a, 256, BH_MEMORY_DEVICE);
    bh_buffer *data = fx_words(s.context, 64, 0);
    const volatile uint32_t *runs = &fx_pointer(data)[1];
    uint32_t *words = device_pattern(256, 9), found[64];
    device_put(kept, words, 256);
    device_put(written, words, 256);
    const bh_command commands[] = {
        {.type = BH_COMMAND_DISPATCH,
         .dispatch = {.kernel = gate,
                      .groups = {1, 1, 1},
                      .bindings = &(bh_binding){.buffer = data,
                                                .size = BH_WHOLE_SIZE,
                                                .access = BH_ACCESS_READ_WRITE},
                      .binding_count = 1}},
        {.type = BH_COMMAND_COPY, .copy = {.src = kept, .dst = written, .size = 128}},
    };
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = 2,
                                 .deadline_ns = BH_FOREVER};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s.a, &info, &event, NULL), BH_OK);
    WAIT_UNTIL(*runs, 20000);
    fx_kill(fx_ready(s.a), SIGKILL);
    fx_expect(event, BH_WORKER_SIGNAL);
    BHT_EQ(bh_buffer_read(written, 0, found, sizeof found, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    BHT_EQ(bh_buffer_read(written, 0, found, sizeof found, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    device_expect(kept, words, 256);
    /* Part of it does not clean it; all of it does (B5). */
    BHT_EQ(bh_buffer_write(written, 0, words, 128, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
    device_put(written, words, 256);
    device_expect(written, words, 256);
    free(words);
}

/* All of it, in several pieces: none of them is all (B5). */
TEST(a_write_in_pieces_cleans) {
    const uint64_t size = 17 * MIB;
    struct scene s = set_up();
    bh_kernel *gate = fx_kernel(s.context, "gate");
    bh_buffer *buffer = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE),
              *data = fx_words(s.context, 64, 0);
    bh_buffer *host = fx_buffer(s.context, size);
    volatile uint32_t *word = fx_pointer(data);
    bh_event *running = fx_gate_within(s.a, gate, data, BH_FOREVER);
    fx_await_gate(data);
    bh_event *event = device_copy(s.a, host, buffer);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    fx_expect(event, BH_CANCELLED);
    fx_open(word);
    fx_expect(running, BH_OK);
    uint32_t *words = device_pattern(size, 5);
    BHT_EQ(bh_buffer_read(buffer, 0, words, 4, FX_SECONDS, NULL), BH_CANCELLED);
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
    free(words);
}

/* -- D3 --------------------------------------------------------------------------------------- */

TEST(new_memory_is_zero) {
    const uint64_t size = 64 * 1024;
    struct scene s = set_up();
    void *zeros = calloc(1, size), *words = device_pattern(size, 3);
    BHT_TRUE(zeros);
    for (int i = 0; i < 3; i++) { /* the second and third have what the first had */
        bh_buffer *buffer = device_buffer(s.context, s.a, size, BH_MEMORY_DEVICE);
        device_expect(buffer, zeros, size);
        device_put(buffer, words, size);
        bh_buffer_release(buffer);
    }
    bh_stream *other = device_stream(s.context, "b", "somebody else", 0);
    bh_buffer *buffer = device_buffer(s.context, other, size, BH_MEMORY_DEVICE);
    device_expect(buffer, zeros, size);
    bh_buffer_release(buffer);
    bh_stream_release(other);
    free(zeros);
    free(words);
}

/* -- D4 --------------------------------------------------------------------------------------- */

TEST(streams_of_one_tenant_share) {
    struct scene s = set_up();
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE),
              *host = fx_words(s.context, 16, 5);
    bh_buffer *back = fx_words(s.context, 16, 0);
    bh_event_release(device_copy(s.a, host, buffer));
    device_expect_ready(device_copy(b, buffer, back));
    BHT_EQ(((const uint32_t *)fx_mapped(back))[15], 5);
    bh_buffer *six = fx_words(s.context, 16, 6);
    bh_event_release(device_copy(b, six, buffer)); /* and may write it, too */
    device_expect_ready(device_copy(s.a, buffer, back));
    BHT_EQ(((const uint32_t *)fx_mapped(back))[15], 6);
}

TEST(other_tenants_read_only) {
    struct scene s = set_up();
    bh_stream *b = device_stream(s.context, "b", "somebody else", 0);
    bh_buffer *buffer = device_buffer(s.context, s.a, 64, BH_MEMORY_DEVICE),
              *back = fx_words(s.context, 16, 0);
    bh_kernel *square = fx_kernel(s.context, "square");
    for (uint32_t i = 1; i < 3; i++) { /* each version */
        bh_buffer *host = fx_words(s.context, 16, i);
        bh_event_release(device_copy(s.a, host, buffer));
        device_expect_ready(device_copy(b, buffer, back));
        BHT_EQ(((const uint32_t *)fx_mapped(back))[15], i);
        bh_buffer_release(host);
    }
    bh_detail detail;
    const bh_command write = {.type = BH_COMMAND_COPY,
                              .copy = {.src = back, .dst = buffer, .size = BH_WHOLE_SIZE}};
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = buffer, .size = BH_WHOLE_SIZE}};
    const bh_binding bindings[] = {
        {.binding = 0, .buffer = back, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_READ},
        {.binding = 1, .buffer = buffer, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_WRITE}};
    const bh_command run = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = square, .groups = {1, 1, 1}, .bindings = bindings, .binding_count = 2}};
    const bh_command *const refused[] = {&write, &fill, &run};
    for (size_t i = 0; i < BHT_COUNT(refused); i++) {
        const bh_submit_info info = {
            .struct_size = sizeof info, .commands = refused[i], .command_count = 1};
        BHT_EQ(bh_submit(b, &info, NULL, &detail), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(detail.message, "device memory of tenant \"\" (stream a)");
        BHT_STR_HAS(detail.message, "stream b of tenant \"somebody else\"");
    }
}

/* -- D5 --------------------------------------------------------------------------------------- */

/* A device that is lost poisons what the worker was writing on it, and nothing else. */
TEST(a_lost_device_poisons_what_was_being_written) {
    bh_context *context = fx_context("1:lie_device:4=fail");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    bh_buffer *kept = device_buffer(context, a, 64, BH_MEMORY_DEVICE),
              *lost = device_buffer(context, a, 64, BH_MEMORY_DEVICE);
    bh_buffer *host = fx_words(context, 16, 4);
    const uint32_t words[16] = {1, 2, 3};
    device_put(kept, words, sizeof words);
    device_put(lost, words, sizeof words);
    device_expect_ready(device_copy(a, host, lost));
    bh_event *event = device_copy(a, host, lost);
    fx_expect(event, BH_DEVICE_LOST);
    uint32_t found[16];
    BHT_EQ(bh_buffer_read(lost, 0, found, sizeof found, FX_SECONDS, NULL), BH_DEVICE_LOST);
    device_expect(kept, words, sizeof words);
}

/* -- D6 --------------------------------------------------------------------------------------- */

TEST(limits_are_kept) {
    bh_context_options options = fx_options();
    options.device_memory = 3 * MIB;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *a = device_stream(context, "a", NULL, 2 * MIB),
              *b = device_stream(context, "b", NULL, 0);
    bh_buffer *first = device_buffer(context, a, MIB + 1, BH_MEMORY_DEVICE), *second = NULL;
    bh_detail detail;
    /* Of the stream: a page more than 1 MiB is taken. */
    BHT_EQ(create(context, a, MIB, BH_MEMORY_DEVICE, &second, &detail), BH_OUT_OF_DEVICE_MEMORY);
    BHT_TRUE(!second);
    BHT_STR_HAS(detail.message, "1048576 bytes of device memory were asked for");
    BHT_STR_HAS(detail.message, "stream a has 1052672 of its limit of 2097152 bytes");
    /* Of the context. */
    BHT_EQ(create(context, b, 2 * MIB, BH_MEMORY_DEVICE, &second, &detail),
           BH_OUT_OF_DEVICE_MEMORY);
    BHT_STR_HAS(detail.message, "the context has 1052672 of its limit of 3145728 bytes");
    BHT_STR_HAS(detail.message, "bh_context_options.device_memory");
    /* Nothing is poisoned, and what is given back can be had again. */
    const uint32_t words[16] = {1};
    BHT_EQ(bh_buffer_write(first, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    bh_buffer_release(first);
    first = device_buffer(context, b, 3 * MIB, BH_MEMORY_DEVICE);
    bh_buffer_release(first);
    first = device_buffer(context, a, 2 * MIB, BH_MEMORY_DEVICE);
}

TEST(a_trim_gives_it_back) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 64 * 1024, BH_MEMORY_DEVICE);
    bh_buffer_release(buffer);
    bh_stats stats = {.struct_size = sizeof stats};
    BHT_EQ(bh_context_stats(s.context, &stats, NULL, 0, NULL, NULL), BH_OK);
    BHT_TRUE(stats.pool_bytes >= 64 * 1024);
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    BHT_EQ(bh_context_stats(s.context, &stats, NULL, 0, NULL, NULL), BH_OK);
    BHT_EQ(stats.pool_bytes, 0);
}

/* -- D7, and what the calls refuse ------------------------------------------------------------ */

TEST(what_is_refused) {
    struct scene s = set_up();
    bh_context *elsewhere = fx_context(NULL);
    bh_stream *foreign = fx_stream(elsewhere, "foreign", FX_SECONDS);
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(create(s.context, NULL, 64, BH_MEMORY_DEVICE, &buffer, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "needs a stream");
    BHT_EQ(create(s.context, s.a, 64, 3, &buffer, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "memory 3 is not a bh_memory");
    BHT_EQ(create(s.context, foreign, 64, BH_MEMORY_DEVICE, &buffer, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(create(s.context, s.a, 2ull << 40, BH_MEMORY_DEVICE, &buffer, &detail), BH_TOO_LARGE);
    BHT_TRUE(!buffer);
    BHT_EQ(bh_buffer_memory(NULL), BH_MEMORY_HOST);
}

/* On a processor there is nothing to be gained. */
TEST(auto_is_host_memory_here) {
    struct scene s = set_up();
    bh_buffer *buffer = NULL;
    void *pointer;
    BHT_EQ(create(s.context, s.a, 64, BH_MEMORY_AUTO, &buffer, NULL), BH_OK);
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_HOST);
    BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
    bh_buffer_release(buffer);
    buffer = NULL;
    BHT_EQ(create(s.context, NULL, 64, BH_MEMORY_AUTO, &buffer, NULL), BH_OK);
    BHT_EQ(bh_buffer_memory(buffer), BH_MEMORY_HOST);
}

TEST(an_empty_buffer) {
    struct scene s = set_up();
    bh_buffer *buffer = device_buffer(s.context, s.a, 0, BH_MEMORY_DEVICE);
    BHT_EQ(bh_buffer_read(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_write(buffer, 0, NULL, 0, FX_SECONDS, NULL), BH_OK);
}

/* What the device is has to be known, and no worker can start. */
TEST(a_stream_without_a_worker) {
    bh_context_options options = fx_options();
    options.restart_budget = 1;
    options.spares = BH_OFF;
    bh_context *context = fx_context_with(options, "*:hello:1=exit7");
    bh_stream *a = fx_stream(context, "a", FX_SECONDS);
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(create(context, a, 64, BH_MEMORY_DEVICE, &buffer, &detail), BH_UNAVAILABLE);
    BHT_TRUE(!buffer);
}
