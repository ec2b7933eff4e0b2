/* Cases 35 to 42: inputs that are not there yet. Files are loaded by real loaders. */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FLOATS STAGE_FLOATS

/* -- files ------------------------------------------------------------------------------------ */

struct folder {
    char path[64];
};

static void make_folder(struct folder *folder) {
    snprintf(folder->path, sizeof folder->path, "/tmp/bulkhead-loads-XXXXXX");
    BHT_TRUE(mkdtemp(folder->path) != NULL);
}

static const char *in(const struct folder *folder, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, bytes, size), (ssize_t)size);
    BHT_EQ(close(fd), 0);
}

static void remove_folder(const struct folder *folder) {
    const char *argv[] = {"rm", "-rf", folder->path, NULL};
    char out[256];
    BHT_EQ(bht_run(argv, out, sizeof out), 0);
}

/* The floats 0, 1, 2, … as a file of raw bytes. */
static void write_floats(const char *path, uint32_t count) {
    float *floats = malloc(count * sizeof *floats);
    BHT_TRUE(floats != NULL);
    for (uint32_t i = 0; i < count; i++)
        floats[i] = (float)i;
    write_file(path, floats, count * sizeof *floats);
    free(floats);
}

/* A .npy of |count| floats, written by hand: format 1.0. */
static void write_npy(const char *path, const char *dict, const void *data, size_t bytes) {
    char text[256];
    int length = snprintf(text, sizeof text, "%s\n", dict);
    char *file = calloc(1, 10 + (size_t)length + bytes);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (char)length;
    memcpy(file + 10, text, (size_t)length);
    memcpy(file + 10 + length, data, bytes);
    write_file(path, file, 10 + (size_t)length + bytes);
    free(file);
}

/* -- calls ------------------------------------------------------------------------------------ */

static bh_file_source source_of(const char *path, bh_file_format format) {
    bh_file_source source;
    bh_file_source_init(&source);
    source.path = path;
    source.format = format;
    return source;
}

static bh_buffer *from(bh_context *context, const bh_file_source *source) {
    bh_buffer *buffer = NULL;
    bh_detail detail;
    if (bh_buffer_from_file(context, source, &buffer, &detail) != BH_OK)
        BHT_FAIL("bh_buffer_from_file: %s", detail.message);
    return buffer;
}

static bh_buffer *from_raw(bh_context *context, const char *path) {
    bh_file_source source = source_of(path, BH_FILE_RAW);
    return from(context, &source);
}

static bh_event *load_of(bh_buffer *buffer) {
    bh_event *event = NULL;
    BHT_EQ(bh_buffer_load_event(buffer, &event, NULL), BH_OK);
    return event;
}

static const void *mapped(bh_buffer *buffer) {
    void *pointer = NULL;
    bh_detail detail;
    if (bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail) != BH_OK)
        BHT_FAIL("bh_buffer_map: %s", detail.message);
    return pointer;
}

static void expect_floats(bh_buffer *buffer, uint32_t count) {
    const float *floats = mapped(buffer);
    BHT_EQ(bh_buffer_size(buffer), count * sizeof *floats);
    for (uint32_t i = 0; i < count; i++)
        BHT_TRUE(floats[i] == (float)i);
}

/* Mapping and the load's event give the same verdict, which says all that |words| says. */
static bh_verdict expect_failed(bh_buffer *buffer, bh_status status, const char *words) {
    bh_event *event = load_of(buffer);
    bh_verdict verdict = ev_agree(event, status);
    BHT_STR_HAS(verdict.message, words);
    BHT_EQ(verdict.hops, 0);
    ev_content_poisoned(buffer, status);
    bh_event_release(event);
    return verdict;
}

/* A process below us that is stopped: a loader at a fault point. */
static pid_t stopped_loader(void) {
    pid_t pids[64];
    size_t count = bht_descendants(getpid(), pids, BHT_COUNT(pids));
    for (size_t i = 0; i < count && i < BHT_COUNT(pids); i++)
        if (bht_process_state(pids[i]) == 'T')
            return pids[i];
    return 0;
}

static pid_t await_stopped(void) {
    pid_t pid = 0;
    WAIT_UNTIL((pid = stopped_loader()) > 0, 20000);
    return pid;
}

/* -- cases ------------------------------------------------------------------------------------ */

static void case_35_bound_before_it_is_there(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    /* The loader is the third worker; it stops before it reads a byte. */
    stage_open_with(&s, "*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
    pid_t loader = await_stopped();
    BHT_EQ(bh_event_wait(square, 100 * FX_MS), BH_TIMEOUT);
    BHT_EQ(bh_event_query(square), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    ev_ready(square);
    ev_squares(s.y, 1);
    expect_floats(x, FLOATS);
    bh_event_release(square);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(case_35_bound_before_it_is_there),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
