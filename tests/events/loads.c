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
    BHT_TRUE(mkdtemp(folder->path));
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
    BHT_TRUE(floats);
    for (uint32_t i = 0; i < count; i++) {
        floats[i] = (float)i;
    }
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
    if (bh_buffer_from_file(context, source, &buffer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_from_file: %s", detail.message);
    }
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
    if (bh_buffer_map(buffer, BH_MAP_READ, FX_SECONDS, &pointer, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_map: %s", detail.message);
    }
    return pointer;
}

static void expect_floats(bh_buffer *buffer, uint32_t count) {
    const float *floats = mapped(buffer);
    BHT_EQ(bh_buffer_size(buffer), count * sizeof *floats);
    for (uint32_t i = 0; i < count; i++) {
        BHT_TRUE(floats[i] == (float)i);
    }
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

/* -- cases ------------------------------------------------------------------------------------ */

/* Nobody has asked for its event when the read fails: who asks then gets the failure (E6). */
static void case_01_a_read_that_failed_before_its_event_was_asked_for(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    stage_open_with(&s, "*:load_read:1=fail", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_LOAD_FAILED);
    bh_event *load = load_of(x);
    BHT_EQ(bh_event_query(load), BH_EVENT_POISONED);
    for (int look = 0; look < 2; look++) {
        bh_verdict verdict = ev_poisoned(load, BH_LOAD_FAILED, load, 0, BH_EXECUTED_UNKNOWN);
        BHT_EQ(verdict.sys_errno, EIO);
    }
    bh_event *late = ev_square(&s, s.a, x, s.y, NULL, 0);
    BHT_EQ(bh_event_query(late), BH_EVENT_POISONED);
    ev_poisoned(late, BH_LOAD_FAILED, load, 1, BH_EXECUTED_NO);
    bh_event_release(late);
    bh_event_release(load);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

/* The load is stuck, then fails; what needs it stands in a, a healthy command in b and one in a,
 * submitted together with it: those complete while it is stuck (E16). */
static void case_17_a_healthy_command_beside_a_failing_load(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    stage_open_with(&s, "*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    bh_event *needs = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_event *on_b = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    pid_t loader = fx_await_stopped();
    ev_ready(on_b);
    ev_squares(s.z, 1);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_event_query(needs), BH_EVENT_PENDING);
    fx_kill(loader, SIGKILL);
    bh_event *load = load_of(x);
    ev_poisoned(needs, BH_WORKER_SIGNAL, load, 1, BH_EXECUTED_NO);
    ev_poisoned(load, BH_WORKER_SIGNAL, load, 0, BH_EXECUTED_UNKNOWN);
    ev_ready(on_b);
    ev_squares(s.z, 1);
    ev_well(&s);
    bh_event_release(load);
    bh_event_release(on_b);
    bh_event_release(needs);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

static void case_35_bound_before_it_is_there(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    /* The loader is the third worker; it stops before it reads a byte. */
    stage_open_with(&s, "*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
    pid_t loader = fx_await_stopped();
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

/* A .safetensors: |header| as it is, then |bytes| of data 0, 1, 2, …  */
static void write_safetensors(const char *path, const char *header, size_t bytes) {
    size_t length = strlen(header);
    uint8_t *file = calloc(1, 8 + length + bytes);
    BHT_TRUE(file);
    for (int i = 0; i < 8; i++) {
        file[i] = (uint8_t)((uint64_t)length >> 8 * i);
    }
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < bytes; i++) {
        file[8 + length + i] = (uint8_t)i;
    }
    write_file(path, file, 8 + length + bytes);
    free(file);
}

static void case_36_zero_length(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    stage_open_with(&s, NULL, FX_SECONDS);
    bh_file_source sources[3];
    char paths[3][256];
    write_file(strcpy(paths[0], in(&folder, "raw")), "", 0);
    sources[0] = source_of(paths[0], BH_FILE_RAW);
    write_npy(strcpy(paths[1], in(&folder, "npy")),
              "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", "", 0);
    sources[1] = source_of(paths[1], BH_FILE_NPY);
    write_safetensors(strcpy(paths[2], in(&folder, "st")),
                      "{\"a\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[0,0]},"
                      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
                      4);
    sources[2] = source_of(paths[2], BH_FILE_SAFETENSORS);
    sources[2].tensor = "a";
    for (size_t i = 0; i < BHT_COUNT(sources); i++) {
        bh_buffer *x = from(s.context, &sources[i]);
        BHT_EQ(bh_buffer_size(x), 0);
        bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
        ev_ready(square);
        bh_event_release(square);
        BHT_TRUE(mapped(x));
        uint64_t done = 1, total = 1;
        BHT_EQ(bh_buffer_load_progress(x, &done, &total, NULL), BH_OK);
        BHT_EQ(done, 0);
        BHT_EQ(total, 0);
        bh_array_info info;
        BHT_EQ(bh_buffer_array(x, &info, NULL), BH_OK);
        BHT_EQ(info.rank, i ? 2 : 0);
        bh_buffer_release(x);
    }
    stage_close(&s);
    remove_folder(&folder);
}

static void case_37_a_failed_load_launches_nothing(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "broken"), FLOATS);
    stage_open_with(&s, "*:load_read:1=fail", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "broken"));
    bh_event *first = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_event *second = ev_square(&s, s.b, s.y, s.z, NULL, 0);
    bh_event *other = ev_square(&s, s.b, s.x, s.w, NULL, 0);
    bh_event *load = load_of(x);
    bh_verdict verdict = ev_poisoned(first, BH_LOAD_FAILED, load, 1, BH_EXECUTED_NO);
    BHT_EQ(verdict.started_ns, 0);
    BHT_EQ(verdict.sys_errno, EIO);
    BHT_STR_HAS(verdict.message, "/broken: offset 0: Input/output error");
    ev_poisoned(second, BH_LOAD_FAILED, load, 2, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, BH_LOAD_FAILED);
    ev_ready(other);
    verdict = expect_failed(x, BH_LOAD_FAILED, "/broken: offset 0: Input/output error");
    BHT_EQ(verdict.sys_errno, EIO);
    BHT_STR_EQ(verdict.kernel_name, "");
    BHT_STR_EQ(verdict.stream_name, "loader-1");
    /* Bound after it has failed. */
    bh_event *late = ev_square(&s, s.a, x, s.w, NULL, 0);
    ev_poisoned(late, BH_LOAD_FAILED, load, 1, BH_EXECUTED_NO);
    /* What nobody launched has written nothing. */
    const uint32_t *y = fx_pointer(s.y);
    for (uint32_t i = 0; i < FLOATS; i++) {
        BHT_EQ(y[i], 0);
    }
    /* Overwriting it all cleans it, as any other. */
    memset(fx_pointer(x), 0, FLOATS * sizeof(float));
    bh_event *clean = ev_square(&s, s.a, x, s.y, NULL, 0);
    ev_ready(clean);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_LOAD_FAILED);
    BHT_EQ(bh_stream_reset(s.a, NULL), BH_OK);
    BHT_EQ(bh_stream_reset(s.b, NULL), BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_LOAD_FAILED);
    BHT_EQ(bh_context_reset(s.context, NULL), BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_OK);
    bh_event_release(clean);
    bh_event_release(late);
    bh_event_release(load);
    bh_event_release(other);
    bh_event_release(second);
    bh_event_release(first);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

static void case_38_valid_ever_after(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    stage_open_with(&s, NULL, FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    bh_event *load = load_of(x);
    ev_ready(load);
    bh_verdict verdict = fx_verdict(load);
    BHT_EQ(unlink(in(&folder, "x")), 0);
    fx_kill(verdict.worker_pid, SIGKILL);
    for (int i = 0; i < 20; i++) {
        bh_event *square = ev_square(&s, i % 2 ? s.a : s.b, x, s.y, NULL, 0);
        ev_ready(square);
        ev_squares(s.y, 1);
        bh_event_release(square);
    }
    ev_ready(load);
    bh_event_release(load);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

static void case_39_still_loading(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    stage_open_with(&s, "*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    pid_t loader = fx_await_stopped();
    bh_event *waits = ev_square(&s, s.a, x, s.y, NULL, 0);
    /* Who does not need it is not held up (E16): not on another stream, and not another load. */
    bh_event *free = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    ev_ready(free);
    void *pointer;
    BHT_EQ(bh_buffer_map(x, BH_MAP_READ, 0, &pointer, NULL), BH_TIMEOUT);
    BHT_EQ(bh_event_query(waits), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    ev_ready(waits);
    ev_squares(s.y, 1);
    bh_event_release(free);
    bh_event_release(waits);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

static void case_39_one_slow_file_holds_up_no_other(void) {
    struct folder folder;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    bh_context *context = fx_context(NULL);
    bh_buffer *first = from_raw(context, in(&folder, "x"));
    expect_floats(first, FLOATS);
    bh_event *load = load_of(first);
    pid_t loader = fx_verdict(load).worker_pid;
    bh_event_release(load);
    fx_kill(loader, SIGSTOP); /* the next one gets the same, which is idle */
    bh_buffer *slow = from_raw(context, in(&folder, "x"));
    load = load_of(slow);
    BHT_EQ(bh_event_wait(load, 50 * FX_MS), BH_TIMEOUT);
    bh_buffer *quick = from_raw(context, in(&folder, "x"));
    expect_floats(quick, FLOATS);
    BHT_EQ(bh_event_query(load), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    expect_floats(slow, FLOATS);
    bh_event_release(load);
    bh_buffer_release(quick);
    bh_buffer_release(slow);
    bh_buffer_release(first);
    bh_context_destroy(context);
    remove_folder(&folder);
}

/* Bytes that differ from one read's length to the next. */
static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 2654435761u >> 13);
}

static void write_bytes(const char *path, size_t size) {
    uint8_t *bytes = malloc(size);
    BHT_TRUE(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i);
    }
    write_file(path, bytes, size);
    free(bytes);
}

static void expect_bytes(bh_buffer *buffer, size_t offset, size_t size) {
    const uint8_t *bytes = mapped(buffer);
    BHT_EQ(bh_buffer_size(buffer), size);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte_at(offset + i)) {
            BHT_FAIL("byte %zu is %u, not %u", i, bytes[i], byte_at(offset + i));
        }
    }
}

static void case_40_short_reads_advance(void) {
    struct folder folder;
    make_folder(&folder);
    const size_t size = 5000003;
    write_bytes(in(&folder, "x"), size);
    bh_context *context = fx_context("*:short_read:*=fail"); /* 1,000 bytes at a time */
    bh_file_source source = source_of(in(&folder, "x"), BH_FILE_RAW);
    bh_buffer *all = from(context, &source);
    source.offset = 12345;
    source.size = 2345678;
    bh_buffer *part = from(context, &source);
    expect_bytes(all, 0, size);
    expect_bytes(part, source.offset, source.size);
    bh_buffer_release(part);
    bh_buffer_release(all);
    bh_context_destroy(context);
    remove_folder(&folder);
}

/* The buffer is ours once the verdict can be seen: nothing changes what we write there. */
static void expect_quiet(bh_buffer *buffer) {
    size_t size = bh_buffer_size(buffer);
    uint8_t *bytes = (uint8_t *)fx_pointer(buffer);
    memset(bytes, 0xA5, size);
    uint64_t end = bht_now_ns() + 100 * FX_MS;
    do {
        for (size_t i = 0; i < size; i++) {
            if (((volatile uint8_t *)bytes)[i] != 0xA5) {
                BHT_FAIL("byte %zu was written after the verdict", i);
            }
        }
    } while (bht_now_ns() < end);
}

static void case_41_quiet_after_a_failed_read(void) {
    struct folder folder;
    make_folder(&folder);
    write_bytes(in(&folder, "x"), 4u << 20);
    /* Whichever of its threads it is that fails, the others are in the middle of their parts. */
    for (int nth = 2; nth < 8; nth++) {
        char faults[80];
        snprintf(faults, sizeof faults, "*:load_write:*=pause,*:load_read:%d=fail", nth);
        bh_context *context = fx_context(faults);
        bh_buffer *x = from_raw(context, in(&folder, "x"));
        bh_event *load = load_of(x);
        BHT_EQ(bh_event_wait(load, FX_SECONDS), BH_LOAD_FAILED);
        expect_quiet(x);
        bh_event_release(load);
        bh_buffer_release(x);
        bh_context_destroy(context);
    }
    remove_folder(&folder);
}

static void case_41_quiet_after_a_cancel(void) {
    struct folder folder;
    make_folder(&folder);
    write_bytes(in(&folder, "x"), 16u << 20);
    bh_context *context = fx_context("*:short_read:*=fail");
    bh_buffer *x = from_raw(context, in(&folder, "x"));
    bh_event *load = load_of(x);
    uint64_t done = 0, total = 0;
    WAIT_UNTIL(bh_buffer_load_progress(x, &done, &total, NULL) == BH_OK && done > 0, 20000);
    BHT_EQ(total, 16u << 20);
    BHT_EQ(bh_event_cancel(load), BH_OK);
    bh_status status = bh_event_wait(load, FX_SECONDS);
    if (status != BH_OK) { /* it may have been done before that */
        bh_verdict verdict = fx_verdict(load);
        BHT_EQ(verdict.status, BH_CANCELLED);
        BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
        BHT_STR_HAS(verdict.message, "/x: cancelled while it ran");
        char state = bht_process_state(verdict.worker_pid);
        BHT_TRUE(state == 'X' || state == 'Z');
        expect_quiet(x);
    }
    /* The next one gets another loader. */
    bh_buffer *y = from_raw(context, in(&folder, "x"));
    expect_bytes(y, 0, 16u << 20);
    bh_buffer_release(y);
    bh_event_release(load);
    bh_buffer_release(x);
    bh_context_destroy(context);
    remove_folder(&folder);
}

static void case_41_quiet_after_the_loaders_death(void) {
    struct folder folder;
    struct stage s;
    make_folder(&folder);
    write_floats(in(&folder, "x"), FLOATS);
    stage_open_with(&s, "*:load:1=kill", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, in(&folder, "x"));
    bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_verdict verdict = expect_failed(x, BH_WORKER_SIGNAL, "/x: worker ");
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    expect_quiet(x);
    bh_event *load = load_of(x);
    ev_poisoned(square, BH_WORKER_SIGNAL, load, 1, BH_EXECUTED_NO);
    bh_event_release(load);
    bh_event_release(square);
    bh_buffer_release(x);
    stage_close(&s);
    remove_folder(&folder);
}

/* Loads x while |act| changes it when the loader is at |point|. */
static void change_at(const char *faults, void (*act)(const char *path), bool by_descriptor,
                      bh_status status, const char *words) {
    struct folder folder;
    make_folder(&folder);
    char path[256];
    strcpy(path, in(&folder, "x"));
    write_bytes(path, 4u << 20);
    bh_context *context = fx_context(faults);
    bh_file_source source = source_of(path, BH_FILE_RAW);
    if (by_descriptor) {
        source.path = NULL;
        source.fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    bh_buffer *x = from(context, &source);
    if (by_descriptor) {
        close(source.fd);
    }
    pid_t loader = fx_await_stopped();
    act(path);
    fx_kill(loader, SIGCONT);
    if (status == BH_OK) {
        expect_bytes(x, 0, 4u << 20);
    } else {
        expect_failed(x, status, words);
    }
    bh_buffer_release(x);
    bh_context_destroy(context);
    remove_folder(&folder);
}

static void cut(const char *path) {
    BHT_EQ(truncate(path, 100), 0);
}

static void grow(const char *path) {
    BHT_EQ(truncate(path, 5 << 20), 0);
}

static void overwrite(const char *path) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(pwrite(fd, "changed", 7, 3 << 20), 7);
    close(fd);
}

/* The same size, the same times of modification, other bytes. */
static void overwrite_slyly(const char *path) {
    struct stat status;
    BHT_EQ(stat(path, &status), 0);
    overwrite(path);
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    BHT_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void replace(const char *path) {
    char other[300];
    snprintf(other, sizeof other, "%s.new", path);
    write_bytes(other, 4u << 20);
    BHT_EQ(rename(other, path), 0);
}

static void take_away(const char *path) {
    BHT_EQ(unlink(path), 0);
}

static void case_42_cut_before_it_is_read(void) {
    change_at("*:load:1=stop", cut, false, BH_LOAD_FAILED,
              "offset 100: its size has changed from 4194304 to 100 bytes");
}

static void case_42_cut_while_it_is_read(void) {
    change_at("*:load_read:1=stop", cut, false, BH_LOAD_FAILED, "/x: offset ");
}

static void case_42_grown(void) {
    change_at("*:loaded:1=stop", grow, false, BH_LOAD_FAILED, "its size has changed");
}

static void case_42_overwritten(void) {
    change_at("*:loaded:1=stop", overwrite, false, BH_LOAD_FAILED, "it was written to");
}

static void case_42_overwritten_slyly(void) {
    change_at("*:loaded:1=stop", overwrite_slyly, false, BH_LOAD_FAILED, "it was changed");
}

static void case_42_replaced(void) {
    change_at("*:load:1=stop", replace, false, BH_LOAD_FAILED, "it was replaced or removed");
}

static void case_42_a_descriptor_needs_no_name(void) {
    change_at("*:load:1=stop", take_away, true, BH_OK, NULL);
    change_at("*:loaded:1=stop", overwrite, true, BH_LOAD_FAILED, "it was written to");
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(case_01_a_read_that_failed_before_its_event_was_asked_for),
        BHT_TEST(case_17_a_healthy_command_beside_a_failing_load),
        BHT_TEST(case_35_bound_before_it_is_there),
        BHT_TEST(case_36_zero_length),
        BHT_TEST(case_37_a_failed_load_launches_nothing),
        BHT_TEST(case_38_valid_ever_after),
        BHT_TEST(case_39_still_loading),
        BHT_TEST(case_39_one_slow_file_holds_up_no_other),
        BHT_TEST(case_40_short_reads_advance),
        BHT_TEST(case_41_quiet_after_a_failed_read),
        BHT_TEST(case_41_quiet_after_a_cancel),
        BHT_TEST(case_41_quiet_after_the_loaders_death),
        BHT_TEST(case_42_cut_before_it_is_read),
        BHT_TEST(case_42_cut_while_it_is_read),
        BHT_TEST(case_42_grown),
        BHT_TEST(case_42_overwritten),
        BHT_TEST(case_42_overwritten_slyly),
        BHT_TEST(case_42_replaced),
        BHT_TEST(case_42_a_descriptor_needs_no_name),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
