/* What goes in pieces: reads and writes of the host (supervisor/submit/transfer.h), replicas and moves
 * (replicate.h), loads (supervisor/load/load.h). Between any two pieces something happens: the buffer is
 * written, it moves, a piece fails. Each step is a call that is replaced here, so nothing is left to
 * chance; workers are files and structs (memory_worker.h). The pieces are small (CMakeLists.txt). */
#include "ipc/commands.h"
#include "ipc/layers.h"
#include "memory_worker.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/load/file_header.h"
#include "supervisor/load/load.h"
#include "supervisor/submit/internal.h"
#include "supervisor/submit/transfer.h"

#define ONE_PIECE  BHI_PIECE_BYTES
#define COPY_BYTES (BHI_PIECE_BYTES + 4)          /* of a replica: two pieces */
#define HOST_BYTES (4 * BHI_HOST_PIECE_BYTES + 8) /* of a transfer: five pieces, four at a time */
enum { COPY_PIECES = 2, HOST_PIECES = 5 };
enum { OLD = 0x11111111, NEW = 0x22222222, OTHER = 0x33333333 }; /* words */

/* -- steps ------------------------------------------------------------------------------------ */

/* A piece is about to be queued; the host is about to wait for one. */
enum step { QUEUED, AWAITED, STEPS };

static struct {
    enum step step;
    unsigned nth;
    void (*act)(void); /* once */
    bool stands;       /* no worker does anything while the host waits */
    bool refuses;      /* the next piece */
    uint64_t until_ns; /* how long the host waits for the last one */
} plan;

static void at(enum step step, unsigned nth, void (*act)(void)) {
    plan.step = step, plan.nth = nth, plan.act = act;
}

static void pass(enum step step) {
    if (plan.act && plan.step == step && --plan.nth == 0) {
        void (*act)(void) = plan.act;
        plan.act = NULL; /* what it does itself passes no step */
        act();
    }
}

BHT_WRAP(bh_status, bhi_internal_submit_copy, struct bh_stream *stream,
         const struct bhi_internal_copy *copy, struct bh_event **out_event, bh_detail *detail) {
    pass(QUEUED);
    if (plan.refuses) {
        plan.refuses = false;
        return BH_UNAVAILABLE;
    }
    return __real_bhi_internal_submit_copy(stream, copy, out_event, detail);
}

/* While the host waits, the workers do what there is to do. */
BHT_WRAP(bh_status, bhi_event_await, struct bh_event *event, uint64_t deadline_ns) {
    pass(AWAITED);
    plan.until_ns = deadline_ns;
    if (!plan.stands) {
        memory_run_all();
    }
    return __real_bhi_event_await(event, deadline_ns);
}

/* -- buffers and bytes ------------------------------------------------------------------------ */

static struct {
    bh_buffer *buffer; /* in the memory of A, of |size| bytes, each word OLD */
    uint64_t size;
    int writer; /* a stream */
} scene;

static void open_scene(uint64_t size) {
    puppet_again();
    plan.act = NULL, plan.stands = plan.refuses = false;
    scene.buffer = memory_create(A, size);
    scene.size = size;
    bh_event *event = fx_fill(memory.streams[A], scene.buffer, OLD);
    memory_run_all();
    fx_expect(event, BH_OK);
    memory.workers[A].copies = 0;
}

static uint32_t *words_of(uint32_t word) {
    uint32_t *words = bht_own(malloc(scene.size));
    for (uint64_t i = 0; i < scene.size / 4; i++) {
        words[i] = word;
    }
    return words;
}

/* Are all words from |first| on |word|? */
static bool are(const uint32_t *words, uint64_t first, uint32_t word) {
    uint64_t i = first;
    while (i < scene.size / 4 && words[i] == word) {
        i++;
    }
    return i == scene.size / 4;
}

static bh_event *copy_out(int stream, bh_buffer **out_host) {
    *out_host = fx_buffer(puppet.context, scene.size);
    bh_event *event = fx_copy(memory.streams[stream], scene.buffer, *out_host);
    memory_run_all();
    return event;
}

/* What stream |s| reads: each word from |first| on. */
static void expect_words(int s, uint64_t first, uint32_t word, const char *what, unsigned k) {
    bh_buffer *host;
    bh_event *event = copy_out(s, &host);
    const bh_status status = fx_verdict(event).status;
    const uint32_t *words = status == BH_OK ? fx_mapped(host) : NULL;
    if (!words || !are(words, first, word)) {
        BHT_FAIL("%s, piece %u: stream %s reads %08x … %08x, %s", what, k, memory_owners[s].name,
                 words ? words[first] : 0, words ? words[scene.size / 4 - 1] : 0,
                 bh_status_name(status));
    }
    bh_buffer_release(host);
}

static bh_status read_host(uint32_t *words) {
    return bh_buffer_read(scene.buffer, 0, words, scene.size, FX_SECONDS, NULL);
}

/* What is made inside of bh_submit is not the fixture's. */
static void write_new(void) {
    bh_event_release(fx_fill(memory.streams[scene.writer], scene.buffer, NEW));
}

static bh_event *fill_word(int s, uint32_t word) {
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = scene.buffer, .size = 4, .value = word}};
    return fx_command(memory.streams[s], fill, NULL, 0);
}

/* -- replicas and moves ------------------------------------------------------------------------ */

/* Another stream writes all of the buffer while it is copied: who reads gets one version of it, whole,
 * and who reads later the newest. Where memory cannot be shared, the copy is in the host, and goes one
 * way. */
TEST(d4_a_write_between_two_pieces_of_a_replica) {
    static const struct {
        uint64_t size;
        unsigned copies;
        int writer, reader;
        uint32_t features;
    } rows[] = {{COPY_BYTES, 2 * COPY_PIECES, A, B, BHI_FEATURE_MEMORY_EXPORT},
                {COPY_BYTES, 2 * COPY_PIECES, A2, C, BHI_FEATURE_MEMORY_EXPORT},
                {ONE_PIECE, 2, A, B, BHI_FEATURE_MEMORY_EXPORT},
                {ONE_PIECE, 2, A2, C, BHI_FEATURE_MEMORY_EXPORT},
                {COPY_BYTES, 1, A, B, 0},
                {COPY_BYTES, 1, A2, C, 0}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        for (unsigned k = 1; k <= rows[i].copies; k++) {
            open_scene(rows[i].size);
            scene.writer = rows[i].writer;
            memory.streams[rows[i].reader]->runs_on.features = rows[i].features;
            at(QUEUED, k, write_new);
            bh_buffer *host;
            fx_expect(copy_out(rows[i].reader, &host), BH_OK);
            BHT_TRUE(!plan.act);
            const uint32_t *words = fx_mapped(host);
            if (!are(words, 0, OLD) && !are(words, 0, NEW)) {
                BHT_FAIL("row %zu, written before copy %u: %08x … %08x", i, k, words[0],
                         words[rows[i].size / 4 - 1]);
            }
            const bool kept = rows[i].copies > 2; /* that of the newest version */
            const uint32_t before = memory.workers[A].copies;
            expect_words(rows[i].reader, 0, NEW, "after a write", k);
            const uint32_t copies = memory.workers[A].copies;
            BHT_EQ(copies == before, kept);
            expect_words(rows[i].reader, 0, NEW, "of the same version", k);
            BHT_EQ(memory.workers[A].copies, copies);
        }
    }
}

static void release_reader(void) {
    bh_stream_release(memory.streams[B]);
}

/* Nobody keeps a copy for a stream that is gone, nor the stream. */
TEST(d4_a_stream_released_between_two_pieces) {
    for (unsigned k = 1; k <= 2 * COPY_PIECES; k++) {
        open_scene(COPY_BYTES);
        at(QUEUED, k, release_reader);
        bh_buffer *host = fx_buffer(puppet.context, scene.size);
        bh_event *event = fx_copy(memory.streams[B], scene.buffer, host);
        BHT_TRUE(!plan.act && bhi_list_empty(&puppet.context->replicas));
        memory_run_all();
        fx_expect(event, BH_OK);
        BHT_TRUE(are(fx_mapped(host), 0, OLD));
    }
}

/* The same where the buffer moves: the write came first, and goes with it. */
TEST(d4_a_write_between_two_pieces_of_a_move) {
    static const uint64_t sizes[] = {ONE_PIECE, COPY_BYTES};
    for (unsigned pieces = 1; pieces <= COPY_PIECES; pieces++) {
        for (unsigned k = 1; k <= 2 * pieces; k++) {
            open_scene(sizes[pieces - 1]);
            scene.writer = k % 2 ? A : A2;
            at(QUEUED, k, write_new);
            bh_event *event = fill_word(C, OTHER);
            memory_run_all();
            fx_expect(event, BH_OK);
            BHT_TRUE(!plan.act && bhi_buffer_place(scene.buffer) != scene.buffer);
            expect_words(C, 1, NEW, "after a move", k);
            expect_words(A, 1, NEW, "after a move", k);
        }
    }
}

/* It is moved there, and written there, by somebody else while it is copied: it does not move to the
 * copy, which has what it was before. */
TEST(d4_it_has_moved_between_two_pieces_of_a_move) {
    for (unsigned k = 1; k <= 2 * COPY_PIECES; k++) {
        open_scene(COPY_BYTES);
        scene.writer = C;
        at(QUEUED, k, write_new);
        bh_event *event = fill_word(C, OTHER);
        memory_run_all();
        fx_expect(event, BH_OK);
        BHT_TRUE(!plan.act);
        expect_words(C, 1, NEW, "moved meanwhile", k);
        BHT_EQ(memory.streams[A]->device_memory, 0);
    }
}

/* A copy of each piece fails, on its way down or up, and those after it do not: the replica is no
 * content. Nothing more is read after it. The next reader gets another replica. */
TEST(b5_a_failed_piece_poisons_a_replica) {
    for (unsigned i = 0; i < 2 * COPY_PIECES; i++) {
        const int s = i % 2 ? B : A; /* up, down */
        const unsigned piece = i / 2 + 1;
        open_scene(COPY_BYTES);
        memory.workers[s].fails_at = piece;
        bh_buffer *host;
        fx_expect(copy_out(B, &host), BH_OUT_OF_HOST_MEMORY);
        BHT_EQ(memory.workers[A].copies, s == A ? piece : COPY_PIECES);
        expect_words(B, 0, OLD, "after a failed copy", piece);
        expect_words(A, 0, OLD, "after a failed copy", piece);
    }
}

/* Where the buffer moves it is the content that is lost, until all of it is written. */
TEST(b5_a_failed_piece_poisons_what_moves) {
    for (unsigned i = 0; i < 2 * COPY_PIECES; i++) {
        open_scene(COPY_BYTES);
        memory.workers[i % 2 ? C : A].fails_at = i / 2 + 1;
        bh_event *event = fill_word(C, OTHER);
        memory_run_all();
        fx_expect(event, BH_OK); /* it needs nothing of it */
        bh_buffer *host;
        fx_expect(copy_out(C, &host), BH_OUT_OF_HOST_MEMORY);
        uint32_t word;
        BHT_EQ(bh_buffer_read(scene.buffer, 0, &word, 4, FX_SECONDS, NULL), BH_OUT_OF_HOST_MEMORY);
        scene.writer = C;
        write_new();
        expect_words(C, 0, NEW, "after a failed move", i / 2 + 1);
    }
}

/* A copy that failed is no hop: who lost the content is who wrote it last, all or a part of it, and
 * nobody's where the host has written all of it. */
TEST(d2_the_origin_of_lost_content) {
    for (unsigned i = 0; i < 8; i++) {
        const int s = i % 2 ? B : A; /* up, down */
        const bool by_host = i / 2 % 2, whole = i / 4;
        open_scene(ONE_PIECE);
        uint32_t *words = words_of(NEW);
        bh_event *written = fill_word(A, NEW);
        memory_run_all();
        BHT_EQ(bh_buffer_write(scene.buffer, 0, words,
                               !by_host ? 0
                               : whole  ? ONE_PIECE
                                        : 4,
                               FX_SECONDS, NULL),
               BH_OK);
        memory.workers[s].copies = 0, memory.workers[s].fails_at = 1;
        bh_buffer *host;
        const bh_verdict verdict = fx_verdict(copy_out(B, &host));
        const bool nobody = by_host && whole;
        BHT_EQ(verdict.status, nobody ? BH_WORKER_LOST : BH_OUT_OF_HOST_MEMORY);
        BHT_EQ(verdict.origin, nobody ? verdict.event : bh_event_id(written));
        BHT_EQ(verdict.hops, nobody ? 0 : 1);
        BHT_STR_HAS(verdict.message, "a copy of the content failed");
    }
}

/* Each of the library's own submissions runs alone, and again if its worker dies; in bounded time, on a
 * stream without a deadline, too. Its failure is not the stream's, unless a caller sees it. */
static void expect_own(bh_event *event, bool visible, uint64_t deadline_ns) {
    const struct bhi_submission *submission = event->submission;
    BHT_EQ(submission->repeat, BHI_REPEAT_ALWAYS);
    BHT_EQ(bhi_payload_of(submission)->record->flags, BHI_RECORD_ALONE);
    BHT_EQ(submission->deadline_ns, deadline_ns);
    BHT_EQ(submission->failure_reported, !visible);
    BHT_EQ(event->library, !visible);
    memory_run_all();
    BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
    bhi_event_unref(event);
}

TEST(e9_the_librarys_own_end_in_time) {
    static const uint64_t minute_ns = 60000 * FX_MS;
    for (unsigned i = 0; i < 4; i++) {
        open_scene(ONE_PIECE);
        bh_stream *stream = memory.streams[A];
        stream->deadline_ns = i / 2 ? 5 * FX_MS : BH_FOREVER;
        const struct bhi_internal_copy copy = {.call = "test",
                                               .src = scene.buffer,
                                               .dst = fx_buffer(puppet.context, ONE_PIECE),
                                               .bytes = ONE_PIECE,
                                               .visible = i % 2};
        bh_event *event = NULL;
        BHT_EQ(bhi_internal_submit_copy(stream, &copy, &event, NULL), BH_OK);
        expect_own(event, i % 2, i / 2 ? 5 * FX_MS : minute_ns);
        BHT_EQ(bhi_internal_submit_marker(stream, "test", &event, NULL), BH_OK);
        expect_own(event, false, minute_ns);
    }
}

static unsigned writes;

static void write_again(void) {
    writes++;
    write_new();
    at(QUEUED, 2, write_again);
}

/* Something writes it each time between the copy and the move: the call gives up, and nothing has
 * moved. */
TEST(e9_one_that_is_written_all_the_time_does_not_move) {
    open_scene(ONE_PIECE);
    scene.writer = A;
    at(QUEUED, 2, write_again);
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = scene.buffer, .size = 4, .value = OTHER}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1};
    bh_detail detail;
    BHT_EQ(bh_submit(memory.streams[C], &info, NULL, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, "other streams write it all the time");
    BHT_EQ(writes, 8);
    plan.act = NULL;
    BHT_TRUE(bhi_buffer_place(scene.buffer) == scene.buffer);
    expect_words(A, 0, NEW, "after it has not moved", 0);
}

/* -- the host --------------------------------------------------------------------------------- */

/* Each piece of a write fails, and those after it do not: the content is poisoned, although the first
 * piece of a whole write stands for all of it. Another whole write makes it good. */
TEST(b5_a_failed_piece_poisons_what_the_host_writes) {
    for (unsigned piece = 1; piece <= HOST_PIECES; piece++) {
        for (unsigned from = 0; from <= 4; from += 4) { /* the whole, all but a word */
            open_scene(HOST_BYTES);
            uint32_t *words = words_of(NEW);
            memory.workers[A].fails_at = piece;
            bh_detail detail = {0};
            BHT_EQ(
                bh_buffer_write(scene.buffer, from, words, HOST_BYTES - from, FX_SECONDS, &detail),
                BH_OUT_OF_HOST_MEMORY);
            BHT_STR_HAS(detail.message, "the copy failed and poisoned the content");
            /* Pieces that were under way run to their end. */
            memory_run_all();
            BHT_EQ(read_host(words), BH_OUT_OF_HOST_MEMORY);
            bh_buffer *host;
            BHT_NE(fx_verdict(copy_out(A, &host)).status, BH_OK);
            BHT_EQ(bh_buffer_write(scene.buffer, 4, words, 4, FX_SECONDS, NULL),
                   BH_OUT_OF_HOST_MEMORY);
            words = words_of(OTHER);
            BHT_EQ(bh_buffer_write(scene.buffer, 0, words, HOST_BYTES, FX_SECONDS, NULL), BH_OK);
            expect_words(A, 0, OTHER, "after a failed write", piece);
        }
    }
}

/* A piece of a read fails: the call does, and the content is still good. */
TEST(b5_a_failed_piece_fails_a_read) {
    uint32_t *words = NULL;
    for (unsigned piece = 1; piece <= HOST_PIECES; piece++) {
        open_scene(HOST_BYTES);
        words = words_of(0);
        memory.workers[A].fails_at = piece;
        bh_detail detail = {0};
        BHT_EQ(bh_buffer_read(scene.buffer, 0, words, HOST_BYTES, FX_SECONDS, &detail),
               BH_OUT_OF_HOST_MEMORY);
        BHT_STR_HAS(detail.message, "the copy failed, and the content is still good");
        BHT_EQ(read_host(words), BH_OK);
        BHT_TRUE(are(words, 0, OLD));
    }
}

/* It leaves its memory, which another buffer gets, and that is written. */
static void move_away(void) {
    scene.writer = C;
    write_new();
    bh_event *event = fx_fill(memory.streams[A], memory_create(A, scene.size), OTHER);
    if (plan.step == AWAITED) { /* pieces before it may have ended */
        memory_run_all();
        fx_expect(event, BH_OK);
    }
}

/* The buffer moves between two pieces of a read: it goes on with what it began with. */
TEST(d4_a_read_stays_where_it_began) {
    for (unsigned i = 0; i < STEPS * HOST_PIECES; i++) {
        open_scene(HOST_BYTES);
        uint32_t *words = words_of(0);
        at(i % STEPS, i / STEPS + 1, move_away);
        BHT_EQ(read_host(words), BH_OK);
        BHT_TRUE(!plan.act && bhi_buffer_place(scene.buffer) != scene.buffer);
        if (!are(words, 0, OLD)) {
            BHT_FAIL("moved at step %u of piece %u: %08x … %08x", i % STEPS, i / STEPS + 1,
                     words[0], words[scene.size / 4 - 1]);
        }
        BHT_EQ(read_host(words), BH_OK);
        BHT_TRUE(are(words, 0, NEW));
    }
}

static void move_with_a_word(void) {
    fill_word(C, OTHER);
}

/* It moves between two pieces of a write, which goes on where it is then. */
TEST(d4_a_write_follows_the_buffer) {
    for (unsigned i = 0; i < STEPS * HOST_PIECES; i++) {
        open_scene(HOST_BYTES);
        uint32_t *words = words_of(NEW);
        at(i % STEPS, i / STEPS + 1, move_with_a_word);
        BHT_EQ(bh_buffer_write(scene.buffer, 0, words, HOST_BYTES, FX_SECONDS, NULL), BH_OK);
        BHT_TRUE(!plan.act && bhi_buffer_place(scene.buffer) != scene.buffer);
        expect_words(C, 1, NEW, "moved under a write", i / STEPS + 1);
        const uint64_t first = i == QUEUED ? 0 : 1; /* all of it was written after the word */
        expect_words(C, first, NEW, "moved under a write", i / STEPS + 1);
    }
}

/* Where it has not moved, nothing is tried again. */
TEST(a_stream_that_takes_no_piece_ends_a_transfer) {
    open_scene(HOST_BYTES);
    uint32_t *words = words_of(NEW);
    plan.refuses = true;
    BHT_EQ(bh_buffer_write(scene.buffer, 0, words, HOST_BYTES, FX_SECONDS, NULL), BH_UNAVAILABLE);
    plan.refuses = true;
    BHT_EQ(read_host(words), BH_UNAVAILABLE);
    BHT_TRUE(are(words, 0, NEW));
}

TEST(each_piece_has_bytes_of_its_own) {
    open_scene(HOST_BYTES);
    uint32_t *words = words_of(NEW), *read = words_of(0);
    for (uint32_t i = 0; i < HOST_BYTES / 4; i++) {
        words[i] = i;
    }
    BHT_EQ(bh_buffer_write(scene.buffer, 0, words, HOST_BYTES, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_read(scene.buffer, 4, read, HOST_BYTES - 4, FX_SECONDS, NULL), BH_OK);
    BHT_MEM_EQ(read, words + 1, HOST_BYTES - 4);
    BHT_EQ(bh_buffer_write(scene.buffer, 8, words, HOST_BYTES - 8, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_buffer_read(scene.buffer, 8, read, HOST_BYTES - 8, FX_SECONDS, NULL), BH_OK);
    BHT_MEM_EQ(read, words, HOST_BYTES - 8);
}

/* E10: the timeout is for its turn on the stream. From then on it is written whole. */
TEST(e10_a_write_out_of_time) {
    for (int served = 0; served < 2; served++) {
        open_scene(HOST_BYTES);
        struct memory_worker *w = &memory.workers[A];
        if (!served) {
            memory_worker_die(w);
            memory_worker_bury(w);
        }
        plan.stands = !served;
        BHT_EQ(bh_buffer_write(scene.buffer, 0, words_of(NEW), HOST_BYTES, 0, NULL),
               served ? BH_OK : BH_TIMEOUT);
        BHT_EQ(plan.until_ns == BH_FOREVER, served);
        if (!served) {
            memory_worker_begin(A);
        }
        memory_run_all();
        expect_words(A, 0, served ? NEW : OLD, "written", 0);
    }
}

/* A read that runs out of time takes back what has not begun. */
TEST(e10_a_read_out_of_time_leaves_nothing_behind) {
    open_scene(HOST_BYTES);
    uint32_t *words = words_of(0);
    plan.stands = true;
    BHT_EQ(bh_buffer_read(scene.buffer, 0, words, HOST_BYTES, 0, NULL), BH_TIMEOUT);
    plan.stands = false;
    memory_run_all();
    BHT_EQ(memory.workers[A].copies, 0);
    BHT_TRUE(are(words, 0, 0));
}

/* -- loads ------------------------------------------------------------------------------------ */

static bh_buffer *on_disk; /* stands for the file: A2 is its loader */

static uint64_t read_from;

BHT_WRAP(bh_status, bhi_file_submit, struct bhi_file *file, struct bh_buffer *buffer,
         const void *command, size_t size, struct bh_event *after, uint64_t deadline_ns,
         enum bhi_file_part part, const char *call, struct bh_event **out_event,
         bh_detail *detail) {
    const struct bhi_cmd_load *load = command;
    const struct bhi_internal_copy copy = {.call = call,
                                           .src = on_disk,
                                           .dst = buffer,
                                           .src_offset = load->offset,
                                           .bytes = load->bytes,
                                           .replaces_content = true,
                                           .visible = true,
                                           .after = after};
    BHT_TRUE(file && size == sizeof *load && part == BHI_FILE_PIECE && deadline_ns == FX_SECONDS);
    if (load->fortran) {
        read_from += load->bytes;
        return BH_NO_MEMORY; /* this far */
    }
    BHT_EQ(load->offset, read_from); /* in order, without a gap */
    read_from += load->bytes;
    return __real_bhi_internal_submit_copy(memory.streams[A2], &copy, out_event, detail);
}

TEST(an_array_in_fortran_order_is_one_piece) {
    const uint64_t size = 2 * BHI_PIECE_BYTES + 4;
    open_scene(size);
    struct bhi_file file = {.context = puppet.context};
    const struct bhi_cmd_load command = {
        .header = {.type = BHI_CMD_LOAD, .size = sizeof command}, .bytes = size, .fortran = 1};
    struct bhi_load load = {0};
    read_from = 0;
    BHT_EQ(bhi_load_pieces(&file, scene.buffer, &command, FX_SECONDS, "test", &load, NULL),
           BH_NO_MEMORY);
    BHT_EQ(read_from, size);
}

/* A piece cannot be read, or copied: the load has failed, whatever comes of the pieces behind it, and
 * nothing more is read. */
TEST(a_failed_piece_fails_a_load) {
    for (unsigned i = 0; i <= 2 * COPY_PIECES; i++) {
        const bool good = i == 2 * COPY_PIECES; /* the last round: one more piece */
        const unsigned pieces = COPY_PIECES + good, piece = i / 2 + 1;
        const uint64_t size = (pieces - 1) * BHI_PIECE_BYTES + 4;
        open_scene(size);
        on_disk = fx_buffer(puppet.context, size);
        bh_event *event = fx_fill(memory.streams[A2], on_disk, NEW);
        memory_run_all();
        fx_expect(event, BH_OK);
        struct bhi_file file = {.context = puppet.context};
        const struct bhi_cmd_load command = {
            .header = {.type = BHI_CMD_LOAD, .size = sizeof command}, .bytes = size};
        struct bhi_load load = {0};
        read_from = 0;
        const int s = i % 2 ? A : A2; /* it copies, reads */
        memory.workers[s].fails_at = good ? 0 : piece;
        BHT_EQ(bhi_load_pieces(&file, scene.buffer, &command, FX_SECONDS, "test", &load, NULL),
               BH_OK);
        memory_run_all();
        BHT_EQ(bhi_event_state(load.event), good ? BH_EVENT_READY : BH_EVENT_POISONED);
        BHT_EQ(memory.workers[A2].copies, s == A2 && !good ? piece : pieces);
        bh_buffer *host;
        BHT_EQ(fx_verdict(copy_out(A, &host)).status == BH_OK, good);
        BHT_TRUE(!good || are(fx_mapped(host), 0, NEW));
        for (uint32_t k = 0; k < load.piece_count; k++) {
            bhi_event_unref(load.pieces[k]);
        }
        bhi_event_unref(load.event);
        free(load.pieces);
    }
}
