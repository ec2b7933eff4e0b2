/* B5: what a worker only reads it cannot change, whatever its kernels are and whoever has taken it
 * over. Twice where it matters: with the read-only mapping imported, and with the copy that devices
 * get which do not import one. */
#include "fixture.h"

#include <stdio.h>

#define WORDS  1024u
#define TRACE  0xA5A5A5A5u
#define STAGED "*:import_read_only:*=fail"

/* The entry points of hostile_writes.spvasm. */
enum fate {
    REFUSED, /* the code is seen to store */
    CAUGHT,  /* only the mapping stops it */
    LOST,    /* the device itself drops it */
};
static const struct way {
    const char *entry;
    enum fate fate;
    bool out; /* has a second binding, which it may write */
} ways[] = {
    {"plain", REFUSED, false}, {"store", CAUGHT, false},     {"copy", CAUGHT, true},
    {"atomic", CAUGHT, false}, {"exchange", CAUGHT, false},  {"called", CAUGHT, false},
    {"chosen", CAUGHT, false}, {"returned", REFUSED, false}, {"kept", CAUGHT, false},
    {"beyond", LOST, false},
};

/* Trusted: the guard refuses some of them, and this is of the mapping. */
static bh_kernel *hostile(bh_context *context, const char *entry) {
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = "hostile_writes", .entry = entry, .trusted = true};
    return fx_kernel_with(context, "hostile_writes", &options);
}

static bh_event *run(bh_stream *stream, bh_kernel *kernel, bh_buffer *in, bh_access access,
                     bh_buffer *out) {
    const bh_binding bindings[] = {
        {.binding = 0, .buffer = in, .size = BH_WHOLE_SIZE, .access = access},
        bh_bind_read_write(1, out)};
    return fx_launch(stream, kernel, 1, bindings, out ? 2 : 1, 0);
}

/* Every word is |value|, as the host sees it through the buffer. */
static void expect_words(bh_buffer *buffer, uint32_t value) {
    static uint32_t words[WORDS];
    BHT_EQ(bh_buffer_read(buffer, 0, words, bh_buffer_size(buffer), FX_SECONDS, NULL), BH_OK);
    for (uint32_t i = 0; i < bh_buffer_size(buffer) / 4; i++) {
        BHT_EQ(words[i], value);
    }
}

static uint32_t word(bh_buffer *buffer, uint32_t index) {
    uint32_t value = 0;
    BHT_EQ(bh_buffer_read(buffer, 4ull * index, &value, 4, FX_SECONDS, NULL), BH_OK);
    return value;
}

static void check_way(bh_context *context, const struct way *way, bool staged) {
    bh_stream *stream = fx_stream(context, way->entry, FX_SECONDS);
    bh_kernel *kernel = hostile(context, way->entry);
    bh_buffer *in = fx_words(context, WORDS, 7), *beside = fx_words(context, WORDS, 8);
    bh_buffer *out = way->out ? fx_words(context, 4, 1) : NULL;
    bh_verdict verdict = fx_verdict(run(stream, kernel, in, BH_ACCESS_READ, out));
    if (way->fate == REFUSED) {
        BHT_EQ(verdict.status, BH_BINDING_MISMATCH);
        BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    } else if (way->fate == CAUGHT && !staged) {
        if (verdict.status != BH_WORKER_SIGNAL) {
            BHT_FAIL("\"%s\" is %s: %s", way->entry, bh_status_name(verdict.status),
                     verdict.message);
        }
        BHT_EQ(verdict.signal, SIGSEGV);
        BHT_EQ(verdict.command_index, 0);
        BHT_STR_EQ(verdict.kernel_name, "hostile_writes");
    } else {
        BHT_EQ(verdict.status, BH_OK);
    }
    /* Clean, intact, and of use to the stream's next worker. */
    expect_words(in, 7);
    expect_words(beside, 8);
    fx_expect_healthy(context, stream);
    fx_verdict(run(stream, kernel, in, BH_ACCESS_READ, out));
    expect_words(in, 7);
    bh_stream_release(stream);
}

TEST(no_kernel_writes_what_it_reads) {
    bh_context *context = fx_context(NULL);
    for (size_t i = 0; i < BHT_COUNT(ways); i++) {
        check_way(context, &ways[i], false);
    }
}

TEST(nor_through_a_copy) {
    bh_context *context = fx_context(STAGED);
    for (size_t i = 0; i < BHT_COUNT(ways); i++) {
        check_way(context, &ways[i], true);
    }
}

/* The same kernels do write where they may: else the tests above would show nothing. */
TEST(they_write_what_they_may) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "may", FX_SECONDS);
    for (size_t i = 0; i < BHT_COUNT(ways); i++) {
        bh_kernel *kernel = hostile(context, ways[i].entry);
        bh_buffer *in = fx_words(context, WORDS, 7);
        bh_buffer *out = ways[i].out ? fx_words(context, 4, 1) : NULL;
        fx_expect(run(stream, kernel, in, BH_ACCESS_READ_WRITE, out), BH_OK);
        BHT_EQ(word(in, 0), 7);
        if (ways[i].fate == LOST) {
            BHT_EQ(word(in, 1), 7);
        } else {
            BHT_NE(word(in, 1), 7);
        }
    }
}

/* A binding that is not declared readonly, and is only read: that is no reason to refuse. */
TEST(an_honest_reader_needs_no_decoration) {
    static const char *const faults[] = {NULL, STAGED};
    for (size_t i = 0; i < 2; i++) {
        bh_context *context = fx_context(faults[i]);
        bh_stream *stream = fx_stream(context, "reader", FX_SECONDS);
        bh_kernel *kernel = hostile(context, "reads");
        bh_buffer *in = fx_words(context, WORDS, 7), *out = fx_words(context, 4, 0);
        fx_expect(run(stream, kernel, in, BH_ACCESS_READ, out), BH_OK);
        BHT_EQ(word(out, 0), 7);
        fx_release_all();
    }
}

/* Read at one binding and written at another, in one submission: it is written. */
TEST(one_buffer_read_and_written) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "both", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0x40000000); /* 2.0 */
    fx_expect(fx_square(stream, square, x, x), BH_OK);
    expect_words(x, 0x40800000);
    /* In two commands of one. */
    bh_buffer *y = fx_words(context, 64, 0);
    const bh_command commands[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = x, .dst = y, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = x, .size = BH_WHOLE_SIZE, .value = 5}},
        {.type = BH_COMMAND_COPY, .copy = {.src = x, .dst = y, .size = 4}},
    };
    fx_expect(fx_commands(stream, commands, 3), BH_OK);
    expect_words(x, 5);
    BHT_EQ(word(y, 0), 5);
    BHT_EQ(word(y, 1), 0x40800000);
}

/* Queued behind a gate, so that all of it is in the lane at once: read, written, read. */
static void upgraded_in_flight(const char *faults) {
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "upgrade", BH_FOREVER);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0x40000000);
    bh_buffer *a = fx_words(context, 64, 0), *b = fx_words(context, 64, 0);
    /* Compiled before, or the gate would be the last to share a queue submission. */
    fx_expect(fx_square(stream, square, b, a), BH_OK);
    const struct fx_held gate = fx_hold(context, stream);
    bh_event *events[] = {
        fx_square(stream, square, x, a), /* reads x = 2 */
        fx_square(stream, square, a, x), /* writes x = 16 */
        fx_square(stream, square, x, b), /* reads x */
        fx_square(stream, square, b, x), /* and writes it again */
    };
    fx_open(gate.word);
    fx_expect(gate.event, BH_OK);
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        fx_expect(events[i], BH_OK);
    }
    expect_words(a, 0x40800000); /* 4 */
    expect_words(b, 0x43800000); /* 256 */
    expect_words(x, 0x47800000); /* 65536 */
}

TEST(a_reader_becomes_a_writer) {
    upgraded_in_flight(NULL);
}

TEST(a_reader_of_a_copy_becomes_a_writer) {
    upgraded_in_flight(STAGED);
}

/* What others write between two runs of a reader is there at the second: another worker, the host
 * through the library, and the host through a mapping that it got long ago. */
static void sees_what_others_wrote(const char *faults) {
    bh_context *context = fx_context(faults);
    bh_stream *writer = fx_stream(context, "writer", FX_SECONDS);
    bh_stream *reader = fx_stream(context, "reader", FX_SECONDS);
    bh_kernel *kernel = hostile(context, "reads");
    bh_buffer *in = fx_words(context, WORDS, 0), *out = fx_words(context, 4, 0);
    volatile uint32_t *mapped = fx_pointer(in);
    for (uint32_t round = 1; round <= 30; round++) {
        if (round % 3 == 0) {
            fx_expect(fx_fill(writer, in, round), BH_OK);
        } else if (round % 3 == 1) {
            mapped[1] = round;
        } else {
            BHT_EQ(bh_buffer_write(in, 4, &round, 4, FX_SECONDS, NULL), BH_OK);
        }
        fx_expect(run(reader, kernel, in, BH_ACCESS_READ, out), BH_OK);
        BHT_EQ(word(out, 0), round);
    }
    /* Copied as well, from the middle of it. */
    const bh_command copy = {
        .type = BH_COMMAND_COPY,
        .copy = {.src = in, .src_offset = 4, .dst = out, .dst_offset = 8, .size = 4}};
    mapped[1] = 77;
    fx_expect(fx_command(reader, copy, NULL, 0), BH_OK);
    BHT_EQ(word(out, 2), 77);
}

TEST(a_reader_sees_what_others_wrote) {
    sees_what_others_wrote(NULL);
}

TEST(a_reader_of_a_copy_sees_what_others_wrote) {
    sees_what_others_wrote(STAGED);
}

/* Several readers in one queue submission, of overlapping parts. */
TEST(merged_readers_of_a_copy) {
    bh_context *context = fx_context(STAGED ",*:merge:*=fail");
    bh_stream *stream = fx_stream(context, "merged", FX_SECONDS);
    bh_buffer *in = fx_buffer(context, 4 * WORDS), *out = fx_words(context, WORDS, 0);
    uint32_t *words = fx_pointer(in);
    for (uint32_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            words[i] = i * round;
        }
        bh_event *last = NULL;
        for (uint32_t i = 0; i < 64; i++) {
            /* Upwards, or from the end to the beginning; each 16 words and some of the next. */
            const uint32_t part = round % 2 ? 63 - i : i;
            const uint64_t at = 64ull * part, size = part == 63 ? 64 : 96;
            const bh_command copy = {
                .type = BH_COMMAND_COPY,
                .copy = {.src = in, .dst = out, .src_offset = at, .dst_offset = at, .size = size}};
            last = fx_command(stream, copy, NULL, 0);
        }
        fx_expect(last, BH_OK);
        for (uint32_t i = 0; i < WORDS; i++) {
            BHT_EQ(word(out, i), i * round);
        }
    }
}

/* One worker may write it, another only reads it: the one's right is not the other's. */
TEST(rights_are_each_workers_own) {
    bh_context *context = fx_context(NULL);
    bh_stream *writer = fx_stream(context, "writer", FX_SECONDS);
    bh_stream *reader = fx_stream(context, "reader", FX_SECONDS);
    bh_kernel *kernel = hostile(context, "store");
    bh_buffer *in = fx_words(context, WORDS, 0);
    for (uint32_t round = 1; round <= 3; round++) {
        fx_expect(fx_fill(writer, in, round), BH_OK);
        fx_expect(run(reader, kernel, in, BH_ACCESS_READ, NULL), BH_WORKER_SIGNAL);
        expect_words(in, round);
    }
    /* And a new worker of a stream that wrote starts without it. */
    fx_replace_worker(context, writer);
    fx_expect(run(writer, kernel, in, BH_ACCESS_READ, NULL), BH_WORKER_SIGNAL);
    expect_words(in, 3);
}

#define MANY 300u

/* Hundreds of inputs, each read, some written later, with deaths between. */
TEST(many_buffers) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "many", FX_SECONDS);
    bh_kernel *kernel = hostile(context, "store");
    static bh_buffer *buffers[MANY];
    bh_buffer *sum = fx_words(context, MANY, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        buffers[i] = fx_words(context, 4, i + 1);
    }
    for (uint32_t round = 0; round < 3; round++) {
        static bh_command commands[MANY];
        for (uint32_t i = 0; i < MANY; i++) {
            commands[i] = (bh_command){
                .type = BH_COMMAND_COPY,
                .copy = {.src = buffers[i], .dst = sum, .dst_offset = 4ull * i, .size = 4}};
        }
        fx_expect(fx_commands(stream, commands, MANY), BH_OK);
        for (uint32_t i = 0; i < MANY; i++) {
            BHT_EQ(word(sum, i), (round && i % 3 == 0 ? 1000 : 0) + i + 1);
        }
        for (uint32_t i = 0; i < MANY; i += 50) { /* only those that are not written */
            fx_expect(run(stream, kernel, buffers[i + 1], BH_ACCESS_READ, NULL), BH_WORKER_SIGNAL);
        }
        for (uint32_t i = 0; i < MANY; i += 3) {
            fx_expect(fx_fill(stream, buffers[i], 1000 + i + 1), BH_OK);
        }
    }
    for (uint32_t i = 0; i < MANY; i++) {
        expect_words(buffers[i], (i % 3 == 0 ? 1000 : 0) + i + 1);
    }
}

/* What lies on both sides of the part that a kernel sees is as safe as the part itself. */
TEST(an_input_without_bytes) {
    static const char *const faults[] = {NULL, STAGED};
    for (size_t i = 0; i < 2; i++) {
        bh_context *context = fx_context(faults[i]);
        bh_stream *stream = fx_stream(context, "empty", FX_SECONDS);
        bh_kernel *kernel = hostile(context, "reads");
        bh_buffer *in = fx_buffer(context, 0), *out = fx_words(context, 4, 9);
        fx_expect(run(stream, kernel, in, BH_ACCESS_READ, out), BH_OK);
        BHT_EQ(word(out, 0), 0);
        fx_release_all();
    }
}

/* -- a worker that was taken over (tests/hostile/faults.h) ------------------------------------- */

static const struct {
    const char *name;
    bool kills;  /* the filter knows no such call */
    bool writes; /* it does change what a worker may write */
} tampers[] = {
    {"scribble", true, true}, {"map_write", false, true}, {"protect", false, true},
    {"remap", false, true},   {"reopen", false, false},   {"write", true, false},
    {"pwrite", true, false},  {"cut", true, false},       {"punch", true, false},
    {"remove", true, false},  {"seal", true, false},      {"chmod", true, false},
};

/* Returns whether the bytes are what they were. */
static bool tamper(const char *point, size_t which, bh_access access) {
    char faults[64];
    snprintf(faults, sizeof faults, "1:%s:1=%s", point, tampers[which].name);
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "usurped", FX_SECONDS);
    bh_kernel *kernel = hostile(context, "reads");
    bh_buffer *in = fx_words(context, WORDS, 7), *out = fx_words(context, 4, 0);
    volatile uint32_t *mapped = fx_pointer(in);
    const pid_t first = fx_ready(stream);
    /* It dies before it has started, if it does: another worker runs it (E13). */
    fx_expect(run(stream, kernel, in, access, out), BH_OK);
    const bool dies =
        tampers[which].kills && !(access == BH_ACCESS_READ_WRITE && tampers[which].writes);
    if ((fx_ready(stream) != first) != dies) {
        BHT_FAIL("%s %s the worker", tampers[which].name, dies ? "does not kill" : "kills");
    }
    bool intact = true;
    for (uint32_t i = 0; i < WORDS; i++) {
        intact &= mapped[i] == 7;
    }
    if (access == BH_ACCESS_READ) {
        expect_words(in, 7); /* clean, too */
        fx_expect_healthy(context, stream);
    }
    fx_release_all();
    return intact;
}

TEST(no_usurper_writes_what_it_reads) {
    for (size_t i = 0; i < BHT_COUNT(tampers); i++) {
        if (!tamper("tamper_input", i, BH_ACCESS_READ)) {
            BHT_FAIL("%s changed the bytes of an input", tampers[i].name);
        }
    }
}

/* The same attempts do change what the worker may write, so they are attempts. */
TEST(usurpers_write_what_they_may) {
    for (size_t i = 0; i < BHT_COUNT(tampers); i++) {
        if (tamper("tamper_output", i, BH_ACCESS_READ_WRITE) == tampers[i].writes) {
            BHT_FAIL("%s %s the bytes of an output", tampers[i].name,
                     tampers[i].writes ? "did not change" : "changed");
        }
    }
}
