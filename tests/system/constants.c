/* B5, where a device does not import what is only read: a loaded buffer that nobody writes is
 * copied once, and one that somebody does write is not read from an old copy. */
#include "files.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define STAGED "*:import_read_only:*=fail"

enum { WORDS = 16384, PARTS = 8, PART = WORDS / PARTS };

struct scene {
    bh_context *context;
    bh_stream *reader, *writer;
    bh_buffer *in, *out;
};

static void set_up(struct scene *s, const char *faults) {
    static uint32_t words[WORDS];
    s->context = fx_context(faults);
    s->reader = fx_stream(s->context, "reader", FX_SECONDS);
    s->writer = fx_stream(s->context, "writer", FX_SECONDS);
    enter_folder();
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i;
    }
    fx_write_file("in", words, sizeof words);
    bh_file_source source = source_of("in", BH_FILE_RAW, NULL);
    s->in = fx_load(s->context, &source);
    s->out = fx_words(s->context, WORDS, 0);
}

static void tear_down(struct scene *s) {
    bh_buffer_release(s->in);
    bh_buffer_release(s->out);
    bh_stream_release(s->reader);
    bh_stream_release(s->writer);
    BHT_EQ(bh_context_destroy(s->context), BH_OK);
    leave_folder();
}

static bh_event *submit(bh_stream *stream, const bh_command *command) {
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = command, .command_count = 1};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(stream, &info, &event, NULL), BH_OK);
    return event;
}

static void end_well(bh_event *event) {
    fx_expect(event, BH_OK);
    bh_event_release(event);
}

/* |parts| of them, from |first| on. */
static bh_event *read_parts(const struct scene *s, uint32_t first, uint32_t parts) {
    const bh_command copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = s->in,
                                      .dst = s->out,
                                      .src_offset = 4ull * PART * first,
                                      .dst_offset = 4ull * PART * first,
                                      .size = 4ull * PART * parts}};
    return submit(s->reader, &copy);
}

static void expect_out(const struct scene *s, uint32_t first, uint32_t parts, uint32_t plus) {
    const uint32_t *out = fx_mapped(s->out);
    for (uint32_t i = PART * first; i < PART * (first + parts); i++) {
        BHT_EQ(out[i], i + plus);
    }
}

/* What nobody should do, writing through a mapping that is for reading, shows which parts have been
 * copied already: there it is not seen. */
TEST(each_part_once) {
    struct scene s;
    set_up(&s, STAGED);
    end_well(read_parts(&s, 3, 1));
    expect_out(&s, 3, 1, 0);
    uint32_t *in = (uint32_t *)(uintptr_t)fx_mapped(s.in);
    for (uint32_t i = 0; i < WORDS; i++) {
        in[i] += 1000000;
    }
    end_well(read_parts(&s, 3, 1));
    expect_out(&s, 3, 1, 0);
    end_well(read_parts(&s, 5, 2)); /* and part 4, which lies between */
    expect_out(&s, 5, 2, 1000000);
    end_well(read_parts(&s, 2, 2));
    expect_out(&s, 2, 1, 1000000);
    expect_out(&s, 3, 1, 0);
    for (uint32_t i = 0; i < WORDS; i++) {
        in[i] += 1000000;
    }
    end_well(read_parts(&s, 0, PARTS));
    expect_out(&s, 0, 2, 2000000);
    expect_out(&s, 2, 1, 1000000);
    expect_out(&s, 3, 1, 0);
    expect_out(&s, 4, 3, 1000000);
    expect_out(&s, 7, 1, 2000000);
    tear_down(&s);
}

static void read_all(const struct scene *s, uint32_t plus) {
    end_well(read_parts(s, 0, PARTS));
    expect_out(s, 0, PARTS, plus);
}

static void change(const struct scene *s, int how, uint32_t plus) {
    static uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i + plus;
    }
    void *pointer = NULL;
    if (how == 0) {
        BHT_EQ(bh_buffer_write(s->in, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    } else if (how < 3) {
        const bh_map_intent intent = how == 1 ? BH_MAP_READ_WRITE : BH_MAP_DISCARD;
        BHT_EQ(bh_buffer_map(s->in, intent, FX_SECONDS, &pointer, NULL), BH_OK);
        memcpy(pointer, words, sizeof words);
    } else {
        bh_buffer *from = NULL;
        BHT_EQ(bh_buffer_create(s->context, sizeof words, NULL, &from, NULL), BH_OK);
        BHT_EQ(bh_buffer_write(from, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
        const bh_command copy = {.type = BH_COMMAND_COPY,
                                 .copy = {.src = from, .dst = s->in, .size = sizeof words}};
        end_well(submit(how == 3 ? s->writer : s->reader, &copy));
        bh_buffer_release(from);
    }
}

/* By the host in three ways, by another worker, by the reader's. Later changes show as well: also
 * those through a mapping that the host got long ago. */
TEST(changed_in_every_way) {
    for (int how = 0; how < 5; how++) {
        struct scene s;
        set_up(&s, STAGED);
        read_all(&s, 0);
        change(&s, how, 7);
        read_all(&s, 7);
        change(&s, how, 8);
        read_all(&s, 8);
        void *pointer = NULL;
        BHT_EQ(bh_buffer_map(s.in, BH_MAP_READ_WRITE, FX_SECONDS, &pointer, NULL), BH_OK);
        for (uint32_t round = 9; round < 12; round++) {
            for (uint32_t i = 0; i < WORDS; i++) {
                ((uint32_t *)pointer)[i] = i + round;
            }
            read_all(&s, round);
        }
        tear_down(&s);
    }
}

/* Changed by a submission that is in the lane between two readers, which are in it too. */
TEST(changed_in_flight) {
    struct scene s;
    set_up(&s, STAGED);
    bh_kernel *gate = fx_kernel(s.context, "gate");
    bh_buffer *word = fx_words(s.context, 64, 0);
    volatile uint32_t *open = fx_pointer(word);
    read_all(&s, 0);
    bh_event *running = fx_gate(s.reader, gate, word);
    fx_await_gate(word);
    bh_event *before = read_parts(&s, 0, 1);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = s.in, .size = BH_WHOLE_SIZE, .value = 5}};
    bh_event *filled = submit(s.reader, &fill);
    bh_event *after = read_parts(&s, 1, PARTS - 1);
    fx_open(open);
    end_well(running);
    end_well(before);
    end_well(filled);
    end_well(after);
    expect_out(&s, 0, 1, 0);
    const uint32_t *out = fx_mapped(s.out);
    for (uint32_t i = PART; i < WORDS; i++) {
        BHT_EQ(out[i], 5);
    }
    bh_buffer_release(word);
    bh_kernel_release(gate);
    tear_down(&s);
}

/* The next worker makes its own copy. */
TEST(after_a_death) {
    struct scene s;
    set_up(&s, STAGED);
    read_all(&s, 0);
    fx_kill(fx_ready(s.reader), SIGKILL);
    fx_expect_healthy(s.context, s.reader);
    read_all(&s, 0);
    change(&s, 0, 3);
    read_all(&s, 3);
    tear_down(&s);
}

/* A buffer that is not from a file is the host's to write at any time. */
TEST(only_what_is_loaded) {
    struct scene s;
    set_up(&s, STAGED);
    bh_buffer *loaded = s.in;
    int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, 4ll * WORDS), 0);
    BHT_EQ(fx_wrap(s.context, fd, 4ull * WORDS, &s.in, NULL), BH_OK);
    uint32_t *in = mmap(NULL, 4ull * WORDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(in != MAP_FAILED);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            in[i] = i + round;
        }
        read_all(&s, round);
    }
    munmap(in, 4ull * WORDS);
    close(fd);
    bh_buffer_release(loaded);
    tear_down(&s);
}
