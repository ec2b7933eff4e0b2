/* B5, where a device does not import what is only read: a loaded buffer that nobody writes is
 * copied once, and one that somebody does write is not read from an old copy. */
#include "files.h"

#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 16384, PARTS = 8, PART = WORDS / PARTS };

static bh_context *context;
static bh_stream *reader, *writer;
static bh_buffer *in, *out;

static void fill_up(uint32_t *words, uint32_t plus) {
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i + plus;
    }
}

static void load(void) {
    const bh_file_source source = source_of("in", BH_FILE_RAW, NULL);
    in = fx_load(context, &source);
}

static void set_up(void) {
    static uint32_t words[WORDS];
    context = fx_context("*:import_read_only:*=fail"); /* so it is staged */
    reader = fx_stream(context, "reader", FX_SECONDS);
    writer = fx_stream(context, "writer", FX_SECONDS);
    enter_folder();
    fill_up(words, 0);
    fx_write_file("in", words, sizeof words);
    load();
    out = fx_words(context, WORDS, 0);
}

/* |parts| of them, from |first| on. */
static bh_event *read_parts(uint32_t first, uint32_t parts) {
    const bh_command copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = in,
                                      .dst = out,
                                      .src_offset = 4ull * PART * first,
                                      .dst_offset = 4ull * PART * first,
                                      .size = 4ull * PART * parts}};
    return fx_command(reader, copy, NULL, 0);
}

static void expect_out(uint32_t first, uint32_t parts, uint32_t plus) {
    const uint32_t *words = fx_mapped(out);
    for (uint32_t i = PART * first; i < PART * (first + parts); i++) {
        BHT_EQ(words[i], i + plus);
    }
}

/* What nobody should do, writing through a mapping that is for reading, shows which parts have been
 * copied already: there it is not seen. */
TEST(each_part_once) {
    set_up();
    fx_expect(read_parts(3, 1), BH_OK);
    expect_out(3, 1, 0);
    uint32_t *words = (uint32_t *)(uintptr_t)fx_mapped(in);
    fill_up(words, 1000000);
    fx_expect(read_parts(3, 1), BH_OK);
    expect_out(3, 1, 0);
    fx_expect(read_parts(5, 2), BH_OK); /* and part 4, which lies between */
    expect_out(5, 2, 1000000);
    fx_expect(read_parts(2, 2), BH_OK);
    expect_out(2, 1, 1000000);
    expect_out(3, 1, 0);
    fill_up(words, 2000000);
    fx_expect(read_parts(0, PARTS), BH_OK);
    expect_out(0, 2, 2000000);
    expect_out(2, 1, 1000000);
    expect_out(3, 1, 0);
    expect_out(4, 3, 1000000);
    expect_out(7, 1, 2000000);
}

static void read_all(uint32_t plus) {
    fx_expect(read_parts(0, PARTS), BH_OK);
    expect_out(0, PARTS, plus);
}

static void change(int how, uint32_t plus) {
    static uint32_t words[WORDS];
    fill_up(words, plus);
    void *pointer = NULL;
    if (how == 0) {
        BHT_EQ(bh_buffer_write(in, 0, words, sizeof words, FX_SECONDS, NULL), BH_OK);
    } else if (how < 3) {
        const bh_map_intent intent = how == 1 ? BH_MAP_READ_WRITE : BH_MAP_DISCARD;
        BHT_EQ(bh_buffer_map(in, intent, FX_SECONDS, &pointer, NULL), BH_OK);
        memcpy(pointer, words, sizeof words);
    } else {
        bh_buffer *from = fx_buffer(context, sizeof words);
        fill_up(fx_pointer(from), plus);
        const bh_command copy = {.type = BH_COMMAND_COPY,
                                 .copy = {.src = from, .dst = in, .size = sizeof words}};
        fx_expect(fx_command(how == 3 ? writer : reader, copy, NULL, 0), BH_OK);
    }
}

/* By the host in three ways, by another worker, by the reader's. Later changes show as well: also
 * those through a mapping that the host got long ago. */
TEST(changed_in_every_way) {
    set_up();
    for (int how = 0; how < 5; how++) {
        load();
        read_all(0);
        change(how, 7);
        read_all(7);
        change(how, 8);
        read_all(8);
        void *pointer = NULL;
        BHT_EQ(bh_buffer_map(in, BH_MAP_READ_WRITE, FX_SECONDS, &pointer, NULL), BH_OK);
        for (uint32_t round = 9; round < 12; round++) {
            fill_up(pointer, round);
            read_all(round);
        }
    }
}

/* Changed by a submission that is in the lane between two readers, which are in it too. */
TEST(changed_in_flight) {
    set_up();
    read_all(0);
    const struct fx_held held = fx_hold(context, reader);
    bh_event *before = read_parts(0, 1), *filled = fx_fill(reader, in, 5),
             *after = read_parts(1, PARTS - 1);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    fx_expect(before, BH_OK);
    fx_expect(filled, BH_OK);
    fx_expect(after, BH_OK);
    expect_out(0, 1, 0);
    const uint32_t *words = fx_mapped(out);
    for (uint32_t i = PART; i < WORDS; i++) {
        BHT_EQ(words[i], 5);
    }
}

/* The next worker makes its own copy. */
TEST(after_a_death) {
    set_up();
    read_all(0);
    fx_kill(fx_ready(reader), SIGKILL);
    fx_expect_healthy(context, reader);
    read_all(0);
    change(0, 3);
    read_all(3);
}

/* A buffer that is not from a file is the host's to write at any time. */
TEST(only_what_is_loaded) {
    set_up();
    int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, 4ll * WORDS), 0);
    BHT_EQ(fx_wrap(context, fd, 4ull * WORDS, &in, NULL), BH_OK);
    uint32_t *words = mmap(NULL, 4ull * WORDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(words != MAP_FAILED);
    for (uint32_t round = 0; round < 3; round++) {
        fill_up(words, round);
        read_all(round);
    }
    munmap(words, 4ull * WORDS);
    close(fd);
}
