/* What a loader says of a header is checked: it may have been taken over by the file, and the file
 * may have changed under it. */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEADER "{" TENSOR("t", "U16", "4", "0,8") "}"

/* In a folder of its own. */
static void write_t(const char *header, size_t bytes) {
    enter_folder();
    write_safetensors("t", strlen(header), header, bytes);
}

/* The answer must make sense to the supervisor before anything is made of it. */
TEST(lies_are_seen_through) {
    static const char *const lies[] = {"lie_offset",   "lie_wrap",       "lie_bytes", "lie_dtype",
                                       "lie_no_dtype", "lie_dimensions", "lie_empty", "lie_shape"};
    write_t(HEADER, 8);
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        char faults[64];
        snprintf(faults, sizeof faults, "*:%s:1=fail", lies[i]);
        bh_context *context = fx_context(faults);
        bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
        bh_buffer *buffer = NULL;
        bh_detail detail;
        if (fx_from_file(context, &source, &buffer, &detail) != BH_PROTOCOL) {
            BHT_FAIL("%s: %s", lies[i], buffer ? "it is believed" : detail.message);
        }
        BHT_EQ(detail.reason, BH_REASON_IMPOSSIBLE);
        BHT_TRUE(!buffer);
        buffer = fx_load(context, &source); /* it lied once */
        BHT_EQ(((const uint8_t *)fx_mapped(buffer))[7], 7);
        bh_context_destroy(context);
    }
}

/* A worker's text is cut and cleaned, whatever it is. */
TEST(texts_are_cleaned) {
    write_t(HEADER, 8);
    bh_context *context = fx_context("*:lie_text:1=fail");
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_LOAD_FAILED);
    BHT_STR_HAS(detail.message, "t, tensor 't': ????");
    BHT_TRUE(memchr(detail.message, '\0', sizeof detail.message));
    BHT_TRUE(!strchr(detail.message, '\x1b'));
    BHT_EQ(detail.sys_errno, 0);
}

#define TWO "{" TENSOR("t", "U16", "4", "0,8") ", " TENSOR("new", "F4_E2M1", "4", "8,10") "}"

static bh_status list(bh_context *context, bh_file_tensor *tensors, size_t capacity, size_t *count,
                      bh_detail *detail) {
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, NULL);
    *count = 77;
    if (tensors) {
        tensors->struct_size = sizeof *tensors;
    }
    return bh_file_tensors(context, &source, tensors, capacity, count, detail);
}

/* Each tensor lies in the file and is as long as its shape takes, or nothing is listed. */
TEST(lists_are_seen_through) {
    static const char *const lies[] = {"lie_list_count", "lie_list_offset", "lie_list_dimensions",
                                       "lie_list_name"};
    write_t(TWO, 10);
    bh_file_tensor *tensors = calloc(3, sizeof *tensors);
    BHT_TRUE(tensors);
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        char faults[64];
        snprintf(faults, sizeof faults, "*:%s:1=fail", lies[i]);
        bh_context *context = fx_context(faults);
        bh_detail detail;
        size_t count;
        const bh_status status = list(context, tensors, 3, &count, &detail);
        if (i < 3) {
            BHT_EQ(status, BH_PROTOCOL);
            BHT_EQ(detail.reason, BH_REASON_IMPOSSIBLE);
            BHT_EQ(count, 0);
        } else { /* a name is what it is, as far as it may be shown */
            BHT_EQ(status, BH_OK);
            BHT_STR_HAS(tensors[0].name, "????");
            BHT_EQ(strlen(tensors[0].name), sizeof tensors->name - 1);
            BHT_TRUE(!strchr(tensors[0].name, '\x1b'));
        }
        BHT_EQ(list(context, tensors, 3, &count, &detail), BH_OK); /* it lied once */
        BHT_EQ(count, 2);
        bh_context_destroy(context);
    }
    free(tensors);
}

TEST(what_is_listed) {
    const uint64_t data = 8 + sizeof TWO - 1;
    bh_context *context = fx_context(NULL);
    write_t(TWO, 10);
    bh_file_tensor *tensors = calloc(2, sizeof *tensors);
    bh_detail detail;
    size_t count;
    BHT_EQ(list(context, tensors, 2, &count, &detail), BH_OK);
    BHT_EQ(count, 2);
    BHT_STR_EQ(tensors[0].name, "t");
    BHT_STR_EQ(tensors[0].type, "U16");
    BHT_EQ(tensors[0].dtype, BH_DTYPE_U16);
    BHT_EQ(tensors[0].rank, 1);
    BHT_EQ(tensors[0].shape[0], 4);
    BHT_EQ(tensors[0].offset, data);
    BHT_EQ(tensors[0].bytes, 8);
    BHT_STR_EQ(tensors[1].name, "new");
    BHT_STR_EQ(tensors[1].type, "F4_E2M1");
    BHT_EQ(tensors[1].dtype, BH_DTYPE_NONE);
    BHT_EQ(tensors[1].offset, data + 8);
    BHT_EQ(tensors[1].bytes, 2);
    /* Where there is room for fewer, it is said how many there are. */
    memset(tensors, 0x5a, 2 * sizeof *tensors);
    BHT_EQ(list(context, tensors, 1, &count, &detail), BH_OK);
    BHT_EQ(count, 2);
    BHT_STR_EQ(tensors[0].name, "t");
    BHT_EQ(tensors[1].name[0], 0x5a);
    BHT_EQ(list(context, NULL, 0, &count, &detail), BH_OK);
    BHT_EQ(count, 2);
    BHT_EQ(list(context, NULL, 1, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_NULL);
    BHT_STR_EQ(detail.subject_name, "out_tensors");
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
    tensors->struct_size = sizeof *tensors;
    BHT_EQ(bh_file_tensors(context, &source, tensors, 2, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "file.tensor is not NULL");
    source = source_of("t", BH_FILE_RAW, NULL);
    tensors->struct_size = sizeof *tensors;
    BHT_EQ(bh_file_tensors(context, &source, tensors, 2, &count, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "file.format is BH_FILE_RAW, which has no header");
    /* What bh_buffer_create refuses: here the second tensor, which it does not ask for. */
    const char bad[] = "{" TENSOR("t", "U16", "4", "0,8") ", " TENSOR("u", "U8", "4", "8,10") "}";
    write_safetensors("t", sizeof bad - 1, bad, 10);
    BHT_EQ(list(context, tensors, 2, &count, &detail), BH_LOAD_FAILED);
    BHT_STR_HAS(detail.message, "bh_file_tensors: t: tensor 'u': its dtype and shape need 4 bytes");
    BHT_EQ(count, 0);
    free(tensors);
}

/* T6: nobody believes a worker that tells of what it cannot have done. */
TEST(a_device_worker_loads_no_file) {
    bh_context *context = fx_context("1:lie_load:1=fail");
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_verdict verdict = fx_expect(fx_square(stream, square, x, y), BH_PROTOCOL);
    BHT_STR_HAS(verdict.message,
                "its result is LOAD_FAILED, which a worker of its kind cannot have");
    fx_expect_healthy(context, stream);
}

TEST(a_loader_has_no_device) {
    write_t(HEADER, 8);
    bh_context *context = fx_context("*:lie_device:2=fail"); /* the header comes first */
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
    bh_buffer *buffer = NULL;
    BHT_EQ(fx_from_file(context, &source, &buffer, NULL), BH_OK);
    bh_detail detail;
    void *pointer;
    BHT_EQ(bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail), BH_PROTOCOL);
    BHT_STR_HAS(detail.message, "its result is DEVICE_LOST");
}

static struct {
    pthread_mutex_t lock;
    bool seen, broken;
} journal = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(bh_log_level level, const char *line, void *user) {
    (void)user, (void)level;
    pthread_mutex_lock(&journal.lock);
    journal.seen |= !!strstr(line, ": flood of lines");
    journal.broken |= strpbrk(line, "\n\r\t") || strstr(line, "\u202e");
    pthread_mutex_unlock(&journal.lock);
}

static bool seen(void) {
    pthread_mutex_lock(&journal.lock);
    bool is = journal.seen;
    pthread_mutex_unlock(&journal.lock);
    return is;
}

/* A worker that writes a line end into its log line makes no second line of it. Nor does the name
 * of a stream, whose marks do not reorder the line either; from a worker those are no message
 * (proto_messages). */
TEST(a_log_line_is_one_line) {
    bh_context_options options = fx_options();
    options.log = keep;
    bh_context *context = fx_context_with(options, "1:after_record:1=flood");
    bh_stream *stream = fx_stream(context, "two\nlines\u202e", FX_SECONDS);
    fx_expect_healthy(context, stream);
    WAIT_UNTIL(seen(), 20000);
    bh_stream_release(stream);
    bh_context_destroy(context);
    BHT_TRUE(!journal.broken);
}

/* While its loader stands still. */
static void *change_the_file(void *argument) {
    (void)argument;
    pid_t loader = fx_await_stopped();
    int fd = open("t", O_WRONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(pwrite(fd, "x", 1, 8 + (off_t)sizeof HEADER), 1); /* of the data; the size is the same */
    close(fd);
    BHT_EQ(kill(loader, SIGCONT), 0);
    return NULL;
}

/* A header that was parsed may be a mixture of two. */
TEST(changed_while_it_is_inspected) {
    write_t(HEADER, 8);
    bh_context *context = fx_context("1:inspected:1=stop");
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, "t");
    bh_buffer *buffer = NULL;
    bh_detail detail;
    bht_start(change_the_file, NULL);
    BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_LOAD_FAILED);
    BHT_EQ(detail.reason, BH_REASON_FILE_CHANGED);
    bht_join();
}
