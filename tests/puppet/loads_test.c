/* Loads: how far one is, which loader takes it, and what a loader may say of a file. */
#include "core/submission.h"
#include "formats/dtype.h"
#include "ipc/commands.h"
#include "ipc/file_answer.h"
#include "puppet.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/event/event.h"
#include "supervisor/file/file.h"
#include "supervisor/load/file_header.h"
#include "supervisor/load/loaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* -- how far a load is ---------------------------------------------------------------------------
 */

enum { PIECES = 4, PIECE_BYTES = 1024, LOADED_BYTES = 4 * PIECE_BYTES - 24 };

/* |event| is that of a load of a new buffer, which takes it; |count| pieces, or none. */
static bh_buffer *load_buffer(bh_event *event, bh_event *const *pieces, uint32_t count) {
    bh_buffer *buffer = fx_buffer(puppet.context, LOADED_BYTES);
    struct bhi_load *load = calloc(1, sizeof *load);
    BHT_TRUE(load && bhi_handle_retain(&event->handle));
    *load = (struct bhi_load){.event = event, .piece_bytes = PIECE_BYTES};
    load->pieces = calloc(PIECES, sizeof(bh_event *));
    for (; load->piece_count < count; load->piece_count++) {
        load->pieces[load->piece_count] = pieces[load->piece_count];
        bhi_event_ref(pieces[load->piece_count]);
    }
    buffer->load = load;
    return buffer;
}

static uint64_t loaded(bh_buffer *buffer) {
    uint64_t done = 1, total = 1;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(total, LOADED_BYTES);
    return done;
}

/* What is loaded has no gap: a piece that has ended before the one in front of it does not count. In
 * each order of their ends; the last piece is the last to end, as it needs the others. */
TEST(a_piece_that_is_loaded_before_another_does_not_count) {
    static const int orders[][PIECES - 1] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                             {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < 2 * BHT_COUNT(orders); i++) {
        const int *order = orders[i / 2];
        struct bhi_worker *workers[PIECES];
        bh_event *pieces[PIECES];
        bool ready[PIECES] = {false};
        puppet_again();
        for (int k = 0; k < PIECES; k++) {
            bh_stream *stream = puppet_stream(NULL, NULL);
            workers[k] = puppet_worker(BHI_RUNNING);
            puppet_bind(workers[k], stream);
            pieces[k] = fx_fill(stream, fx_buffer(puppet.context, 64), 7);
        }
        bh_buffer *buffer = load_buffer(pieces[PIECES - 1], pieces, PIECES);
        BHT_EQ(loaded(buffer), 0);
        for (int k = 0; k < PIECES - 1; k++) {
            uint64_t expected = 0;
            puppet_complete(workers[order[k]], 1);
            BHT_EQ(bh_event_query(pieces[order[k]]), BH_EVENT_READY);
            ready[order[k]] = true;
            while (ready[expected]) {
                expected++;
            }
            BHT_EQ(loaded(buffer), expected * PIECE_BYTES);
        }
        if (i % 2) {
            puppet_begins(workers[PIECES - 1], 1);
            puppet_killed(workers[PIECES - 1], SIGSEGV);
            BHT_EQ(loaded(buffer), 0); /* it has failed */
        } else {
            puppet_complete(workers[PIECES - 1], 1);
            BHT_EQ(bh_event_query(pieces[PIECES - 1]), BH_EVENT_READY);
            BHT_EQ(loaded(buffer), LOADED_BYTES); /* and no more: the last one is shorter */
        }
    }
}

/* In one piece, a loader says so itself; it is believed of this load, and up to its size. */
TEST(a_loader_says_how_far_a_load_is) {
    struct bhi_worker *worker = puppet_serving();
    struct bhi_progress_header *told = puppet_side(worker)->header;
    bh_event *event = puppet_submit();
    bh_buffer *buffer = load_buffer(event, NULL, 0);
    atomic_store(&told->load_bytes, 10);
    BHT_EQ(loaded(buffer), 0); /* of none */
    atomic_store(&told->load_seq, event->submission->seq + 1);
    BHT_EQ(loaded(buffer), 0);
    atomic_store(&told->load_seq, event->submission->seq);
    BHT_EQ(loaded(buffer), 10);
    atomic_store(&told->load_bytes, LOADED_BYTES);
    BHT_EQ(loaded(buffer), LOADED_BYTES);
    atomic_store(&told->load_bytes, LOADED_BYTES + 1);
    BHT_EQ(loaded(buffer), LOADED_BYTES);
    puppet_begins(worker, 1);
    puppet_killed(worker, SIGSEGV);
    BHT_EQ(bh_event_query(event), BH_EVENT_POISONED);
    BHT_EQ(loaded(buffer), 0);
}

/* Workers may keep what was loaded; not once the host could write it: there is no unmap, so a later map
 * to read takes nothing back. */
TEST(what_was_loaded_is_constant_until_it_can_be_written) {
    static const bh_map_intent intents[] = {BH_MAP_READ, BH_MAP_READ_WRITE, BH_MAP_DISCARD};
    for (size_t i = 0; i < BHT_COUNT(intents); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *event = puppet_submit();
        bh_buffer *buffer = load_buffer(event, NULL, 0);
        puppet_complete(worker, 1);
        BHT_EQ(bh_event_query(event), BH_EVENT_READY);
        void *pointer;
        BHT_EQ(bh_buffer_map(buffer, intents[i], 0, &pointer, NULL), BH_OK);
        BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, 0, &pointer, NULL), BH_OK);
        BHT_EQ(bhi_buffer_constant(buffer), intents[i] == BH_MAP_READ);
    }
}

/* -- which loader takes it -----------------------------------------------------------------------
 */

enum { LOADERS = 4, MOST = 16 };

static struct {
    bh_stream *stream;
    struct bhi_list work; /* of one that is busy */
} picked[MOST];
static size_t pick_count;

/* The loader that takes a load, or a header, of |tenant|. */
static bh_stream *pick(const char *tenant, bool header) {
    bh_stream *stream = NULL;
    BHT_EQ(bhi_loaders_pick(puppet.context, tenant, header, "pick", &stream, NULL), BH_OK);
    BHT_STR_EQ(stream->tenant, tenant);
    BHT_LT(pick_count, MOST);
    picked[pick_count].stream = stream;
    bhi_list_init(&picked[pick_count++].work);
    return stream;
}

/* And is busy with it. */
static bh_stream *pick_and_keep_busy(const char *tenant, bool header) {
    bh_stream *stream = pick(tenant, header);
    bhi_list_append(&stream->core.queue, &picked[pick_count - 1].work);
    return stream;
}

static void finish_all(void) {
    for (; pick_count; pick_count--) {
        bhi_list_remove(&picked[pick_count - 1].work);
        bhi_stream_unref(picked[pick_count - 1].stream);
    }
}

static size_t count_loaders(void) {
    size_t count = 0;
    BHI_LIST_EACH(node, &puppet.context->loaders) {
        count++;
    }
    return count;
}

/* One that is idle, or a new one; of those that are busy, each in turn. */
TEST(a_tenant_has_four_loaders_for_data) {
    bh_stream *first = pick("a", false);
    BHT_TRUE(pick("a", false) == first && pick("a", true) == first); /* it is idle */
    finish_all();
    bh_stream *streams[LOADERS];
    for (int i = 0; i < LOADERS; i++) {
        streams[i] = pick_and_keep_busy("a", false);
        BHT_EQ(count_loaders(), i + 1);
        for (int k = 0; k < i; k++) {
            BHT_TRUE(streams[k] != streams[i]);
        }
    }
    for (int i = 0; i < 2 * LOADERS; i++) {
        BHT_TRUE(pick("a", false) == streams[i % LOADERS]);
    }
    BHT_EQ(count_loaders(), LOADERS);
    finish_all();
}

/* A thread waits for a header, and data may take any time. */
TEST(headers_have_a_loader_of_their_own) {
    for (int i = 0; i < LOADERS; i++) {
        pick_and_keep_busy("a", i % 2); /* it is not the first that reads one */
    }
    BHT_EQ(count_loaders(), LOADERS);
    bh_stream *of_headers = pick_and_keep_busy("a", true);
    BHT_EQ(count_loaders(), LOADERS + 1);
    BHT_TRUE(of_headers->headers_only);
    BHT_TRUE(pick("a", true) == of_headers);
    for (int i = 0; i < 2 * LOADERS; i++) {
        BHT_TRUE(pick("a", false) != of_headers); /* no data gets there */
    }
    BHT_EQ(count_loaders(), LOADERS + 1);
    finish_all();
}

/* T1: a loader serves one tenant. One that is idle goes when another tenant needs its place. */
TEST(idle_loaders_of_others_make_place) {
    bh_stream *mine = pick("a", false);
    BHT_TRUE(pick("b", false) != mine);
    for (int i = 0; i < LOADERS - 1; i++) {
        pick_and_keep_busy("b", false);
    }
    BHT_EQ(count_loaders(), LOADERS); /* there was place */
    pick_and_keep_busy("b", false);
    BHT_EQ(count_loaders(), LOADERS); /* and then it was made */
    BHI_LIST_EACH(node, &puppet.context->loaders) {
        BHT_STR_EQ(BHI_CONTAINER(node, struct bh_stream, loader)->tenant, "b");
    }
    pick_and_keep_busy("c", false); /* all are busy */
    BHT_EQ(count_loaders(), LOADERS + 1);
    for (int idle = 0; idle < 2; idle++) {
        bhi_context_lock(puppet.context);
        bhi_loaders_trim(puppet.context);
        bhi_context_pump_unlock(puppet.context);
        BHT_EQ(count_loaders(), idle ? 0 : LOADERS + 1);
        finish_all();
    }
}

/* -- what a loader may say -----------------------------------------------------------------------
 */

/* An extent lies in the file, and is as long as its array (T6). */
TEST(an_answer_makes_sense_or_not) {
    static const struct {
        uint64_t file_bytes;
        uint32_t dtype, dimensions;
        uint64_t shape[3];
        struct bhi_file_extent extent;
        bool makes_sense;
    } cases[] = {
        {8, BH_DTYPE_F32, 1, {2}, {0, 8}, true},
        {8, BH_DTYPE_F32, 1, {2}, {1, 8}, false},
        {9, BH_DTYPE_F32, 1, {2}, {1, 8}, true},
        {7, BH_DTYPE_F32, 1, {2}, {0, 8}, false},
        {8, BH_DTYPE_F32, 1, {2}, {0, 7}, false},
        {9, BH_DTYPE_F32, 1, {2}, {0, 9}, false},
        {8, BH_DTYPE_F32, 1, {0}, {8, 0}, true},
        {8, BH_DTYPE_F32, 1, {0}, {9, 0}, false},
        {8, BH_DTYPE_F32, 3, {0, UINT64_MAX / 4, 1}, {8, 0}, true},
        {8, BH_DTYPE_F32, 3, {0, UINT64_MAX, 1}, {8, 0}, false}, /* more than 64 bits count */
        {8, BH_DTYPE_F32, 2, {1u << 31, 1u << 31}, {0, 0}, false},
        {8, BH_DTYPE_F32, 0, {0}, {4, 4}, true},
        {8, BH_DTYPE_U8, BHI_FILE_DIMENSIONS + 1, {0}, {0, 0}, false},
        {8, BH_DTYPE_F8_E8M0, 1, {8}, {0, 8}, true},
        {8, BH_DTYPE_F8_E8M0 + 1, 1, {0}, {0, 0}, false},
        {8, BH_DTYPE_NONE, 1, {0}, {0, 0}, false},
        {8, UINT32_MAX, 1, {0}, {0, 0}, false},
        {8, BH_DTYPE_U8, 1, {8}, {UINT64_MAX, 8}, false},
        {8, BH_DTYPE_U8, 1, {UINT64_MAX}, {1, UINT64_MAX}, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_file file = {.info.size = cases[i].file_bytes};
        uint64_t shape[BHI_FILE_DIMENSIONS + 1] = {0};
        memcpy(shape, cases[i].shape, sizeof cases[i].shape);
        if (bhi_file_makes_sense(&file, cases[i].dtype, cases[i].dimensions, shape,
                                 cases[i].extent) != cases[i].makes_sense) {
            BHT_FAIL("case %zu", i);
        }
    }
    const struct bhi_file file = {.info.size = 1};
    uint64_t ones[BHI_FILE_DIMENSIONS];
    for (size_t i = 0; i < BHI_FILE_DIMENSIONS; i++) {
        ones[i] = 1;
    }
    BHT_TRUE(bhi_file_makes_sense(&file, BH_DTYPE_U8, BHI_FILE_DIMENSIONS, ones,
                                  (struct bhi_file_extent){0, 1}));
}

/* -- one that waits for a header ------------------------------------------------------------------ */

static struct { /* the next wait of a thread is for this, and then: */
    struct bhi_outcome *end;
    bool has_trouble; /* its loader: no worker could be started */
    bool has_worker;  /* now one is starting */
    bool too_late;    /* it ends just after the time is over */
} awaits;

static void end_it(struct bh_event *event) {
    bhi_context_lock(puppet.context);
    if (awaits.has_trouble) {
        bh_detail *trouble = &bhi_stream_of(event->submission->stream)->core.trouble;
        snprintf(trouble->message, sizeof trouble->message, "as the test says");
    }
    if (awaits.end) {
        bhi_submission_end(event->submission, awaits.end);
    }
    bhi_context_pump_unlock(puppet.context);
    if (awaits.has_worker) {
        struct bhi_worker *worker = puppet_worker(BHI_HELD);
        worker->kind = BHI_WORKER_LOADER;
        puppet_bind(worker, bhi_stream_of(event->submission->stream));
    }
}

BHT_WRAP(bh_status, bhi_event_await, struct bh_event *event, uint64_t deadline_ns) {
    end_it(event);
    return awaits.too_late ? BH_TIMEOUT : __real_bhi_event_await(event, deadline_ns);
}

/* A file that is open. */
static struct bhi_file *make_file(void) {
    static struct bhi_file file;
    file = (struct bhi_file){.context = puppet.context,
                             .socket = eventfd(0, EFD_CLOEXEC),
                             .info = {.file = 7, .size = 8},
                             .name = "a file",
                             .tenant = "red"};
    atomic_init(&file.refs, 1);
    return &file;
}

/* No submission has it. */
static void close_file(struct bhi_file *file) {
    BHT_EQ(atomic_load(&file->refs), 1);
    BHT_EQ(close(file->socket), 0);
}

/* What the call says; and nothing goes on reading for somebody who has gone. */
TEST(a_header_is_read_no_longer_than_it_is_awaited) {
    static const struct {
        bool trouble, worker, too_late;
        bh_status end; /* BH_PENDING: it has none in time */
        bh_status status;
        bh_reason reason;
    } rows[] = {
        {false, false, false, BH_PENDING, BH_TIMEOUT, BH_REASON_HEADER_LATE},
        {true, false, false, BH_PENDING, BH_TIMEOUT, BH_REASON_NO_WORKER},
        {true, true, false, BH_PENDING, BH_TIMEOUT, BH_REASON_HEADER_LATE},
        {true, false, false, BH_DEADLINE, BH_TIMEOUT, BH_REASON_HEADER_LATE},
        {true, false, false, BH_LOAD_FAILED, BH_LOAD_FAILED, BH_REASON_FILE_READ},
        {true, false, false, BH_OK, BH_OK, BH_REASON_NONE},
        {false, false, true, BH_OK, BH_TIMEOUT, BH_REASON_HEADER_LATE},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_file *file = make_file();
        struct bhi_outcome end = BHI_OUTCOME_INIT;
        end.status = rows[i].end;
        end.reason = rows[i].reason;
        end.executed = rows[i].end == BH_OK ? BH_EXECUTED_YES : BH_EXECUTED_NO;
        awaits.end = rows[i].end == BH_PENDING ? NULL : &end;
        awaits.has_trouble = rows[i].trouble;
        awaits.has_worker = rows[i].worker;
        awaits.too_late = rows[i].too_late;
        struct bh_buffer *answer = NULL;
        bh_detail detail = {0};
        BHT_EQ(bhi_file_inspect(file, BH_FOREVER, 0, 0, "test", &answer, &detail), rows[i].status);
        BHT_EQ(detail.reason, rows[i].reason);
        BHT_EQ(detail.message[0] != 0, rows[i].status != BH_OK);
        BHT_EQ(!answer, rows[i].status != BH_OK);
        close_file(file);
        bh_buffer_release(answer);
    }
}

/* A caller sees the event of a whole array alone; of a header that fails it hears by the call, and its bytes
 * are none of the array's. */
TEST(what_a_caller_sees_of_a_load) {
    static const struct {
        enum bhi_file_part part;
        bool library, reported; /* its event; its failure */
        uint64_t load_bytes;
    } rows[] = {
        {BHI_FILE_WHOLE, false, false, 5},
        {BHI_FILE_PIECE, true, false, 5},
        {BHI_FILE_HEADER, true, true, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_file *file = make_file();
        const struct bhi_cmd_load command = {
            .header = {.type = BHI_CMD_LOAD, .size = sizeof command}, .file = 7, .bytes = 5};
        struct bh_event *event = NULL;
        BHT_EQ(bhi_file_submit(file, fx_buffer(puppet.context, 64), &command, sizeof command, NULL,
                               BH_FOREVER, rows[i].part, "test", &event, NULL),
               BH_OK);
        BHT_EQ(event->library, rows[i].library);
        BHT_EQ(event->submission->failure_reported, rows[i].reported);
        BHT_EQ(puppet.context->counts.load_bytes, rows[i].load_bytes);
        bhi_context_lock(puppet.context);
        bhi_submission_cancel(event->submission);
        bhi_context_pump_unlock(puppet.context);
        BHT_EQ(puppet.context->counts.load_bytes, 0);
        bhi_event_unref(event);
        close_file(file);
    }
}

/* What a loader says of a refusal is told as far as it can be true. */
TEST(why_a_loader_has_refused_a_file) {
    static const struct {
        uint32_t refused;
        int32_t error;
        bh_reason reason;
        int32_t sys_errno;
    } rows[] = {
        {BH_REASON_FILE_READ, 5, BH_REASON_FILE_READ, 5},
        {BH_REASON_FILE_FORMAT, 0, BH_REASON_FILE_FORMAT, 0},
        {BH_REASON_FILE_FORMAT, -1, BH_REASON_FILE_FORMAT, 0},
        {BH_REASON_FILE_FORMAT, 4095, BH_REASON_FILE_FORMAT, 4095},
        {BH_REASON_FILE_FORMAT, 4096, BH_REASON_FILE_FORMAT, 0},
        {BH_REASON_GUARD_LIMIT, 5, BH_REASON_NONE, 5}, /* is none of a loader's */
        {UINT32_MAX, 5, BH_REASON_NONE, 5},
    };
    const struct bhi_file file = {.name = "a file"};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_detail detail = {0};
        for (int told = 0; told < 2; told++) {
            BHT_EQ(bhi_file_refused(&file, rows[i].refused, rows[i].error, "so\nit is", "test",
                                    told ? &detail : NULL),
                   BH_LOAD_FAILED);
        }
        BHT_EQ(detail.status, BH_LOAD_FAILED);
        BHT_EQ(detail.reason, rows[i].reason);
        BHT_EQ(detail.sys_errno, rows[i].sys_errno);
        BHT_EQ(detail.subject, BH_SUBJECT_FILE);
        BHT_STR_HAS(detail.message, "so it is");
    }
}

/* What a source of a caller's becomes. */
TEST(what_may_be_loaded) {
    char name[BHI_TENANT + 1] = {0};
    memset(name, 'a', BHI_TENANT);
    const char *longest = name + 1, *too_long = name;
    const size_t whole = sizeof(bh_file_source);
    const struct {
        size_t struct_size;
        const char *path;
        int fd, format;
        uint64_t offset;
        const char *tenant;
        const char *place; /* NULL: it is good */
    } rows[] = {
        {whole, "x", -1, BH_FILE_NPY, 0, NULL, NULL},
        {whole, NULL, 0, BH_FILE_NPY, 0, "", NULL},
        {whole, NULL, -1, BH_FILE_NPY, 0, NULL, "file.path"},
        {whole, "", 0, BH_FILE_NPY, 0, NULL, "file.path"},
        {whole, "x", 0, BH_FILE_RAW - 1, 0, NULL, "file.format"},
        {whole, "x", 0, BH_FILE_RAW, 1, NULL, NULL},
        {whole, "x", 0, BH_FILE_NPY, 1, NULL, "file.offset"},
        {whole, "x", 0, BH_FILE_SAFETENSORS, 0, NULL, NULL},
        {whole, "x", 0, BH_FILE_NPZ, 0, NULL, NULL},
        {whole, "x", 0, BH_FILE_NPZ + 1, 0, NULL, "file.format"},
        {whole, "x", 0, BH_FILE_NPY, 0, longest, NULL},
        {whole, "x", 0, BH_FILE_NPY, 0, too_long, "file.tenant is longer than 63 bytes"},
        {1, "x", 0, BH_FILE_NPY, 0, NULL, "struct_size"},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        for (uint64_t ns = 0; ns < 2; ns++) {
            const bh_file_source given = {.struct_size = rows[i].struct_size,
                                          .path = rows[i].path,
                                          .fd = rows[i].fd,
                                          .format = (bh_file_format)rows[i].format,
                                          .offset = rows[i].offset,
                                          .tenant = rows[i].tenant,
                                          .header_timeout_ns = 3 * ns,
                                          .deadline_ns = 4 * ns};
            bh_file_source source;
            bh_detail detail = {0};
            BHT_EQ(bhi_file_source_take(&given, &source, "test", &detail),
                   rows[i].place ? BH_INVALID_ARGUMENT : BH_OK);
            BHT_STR_HAS(detail.message, rows[i].place ? rows[i].place : "");
            if (!rows[i].place) { /* as given, or a usual time */
                BHT_EQ(source.header_timeout_ns, ns ? 3 : 10000 * FX_MS);
                BHT_EQ(source.deadline_ns, ns ? 4 : 600000 * FX_MS);
            }
        }
    }
    bh_file_source source;
    BHT_EQ(bhi_file_source_take(NULL, &source, "test", NULL), BH_INVALID_ARGUMENT);
}

/* -- a context that closes ---------------------------------------------------------------------- */

static bool closes; /* as soon as the next loader is made */
static bool lacks;  /* no loader can be made */

BHT_WRAP(bh_status, bhi_stream_make, bh_context *context, const bh_stream_options *options,
         enum bhi_worker_kind kind, struct bh_stream **out_stream, const char *call,
         bh_detail *detail) {
    if (lacks) {
        return BH_NO_MEMORY;
    }
    const bh_status status =
        __real_bhi_stream_make(context, options, kind, out_stream, call, detail);
    if (closes) {
        bhi_context_lock(context);
        context->closed = true;
        bhi_context_unlock(context);
    }
    return status;
}

/* Nobody would drop it any more. */
TEST(no_loader_stays_with_a_context_that_closes) {
    bh_stream *stream = NULL;
    closes = true;
    BHT_EQ(bhi_loaders_pick(puppet.context, "red", false, "test", &stream, NULL), BH_OK);
    closes = false;
    BHT_TRUE(stream && bhi_list_empty(&puppet.context->loaders));
    bhi_stream_unref(stream);
}

/* -- a header that cannot be read --------------------------------------------------------------- */

static struct bhi_file *asked_for;
static bh_status answered;

static void inspect(bh_log_level level, const char *line, void *user) {
    (void)level, (void)line, (void)user;
    struct bh_buffer *answer = NULL;
    answered = bhi_file_inspect(asked_for, BH_FOREVER, 0, 0, "test", &answer, NULL);
    BHT_TRUE(!answer);
}

/* There is no loader, or it is asked for in a callback, which may not wait for one. */
TEST(a_header_that_nobody_reads) {
    asked_for = make_file();
    lacks = true;
    inspect(BH_LOG_INFO, "", NULL);
    lacks = false;
    BHT_EQ(answered, BH_NO_MEMORY);
    puppet.context->settings.log = inspect;
    bhi_context_log(puppet.context, BH_LOG_INFO, "%s", "so");
    puppet.context->settings.log = NULL;
    BHT_EQ(answered, BH_IN_CALLBACK);
    BHT_EQ(count_loaders(), 0);
    close_file(asked_for);
}
