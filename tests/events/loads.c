/* Cases 1, 17 and 35 to 40: inputs that are not there yet. Files are loaded by real loaders. */
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define FLOATS STAGE_FLOATS

static void expect_floats(bh_buffer *buffer, uint32_t count) {
    const float *floats = fx_mapped(buffer);
    BHT_EQ(bh_buffer_size(buffer), count * sizeof *floats);
    for (uint32_t i = 0; i < count; i++) {
        BHT_TRUE(floats[i] == (float)i);
    }
}

/* -- cases ------------------------------------------------------------------------------------ */

/* Nobody has asked for its event when the read fails: who asks then gets the failure (E6). */
TEST(case_01_a_read_that_failed_before_its_event_was_asked_for) {
    enter_folder();
    write_floats("x", FLOATS);
    struct stage s = stage_open_with("*:load_read:1=fail", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
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
}

/* The load is stuck, then fails. What needs it waits on stream a; a healthy command, submitted
 * together with it on stream b, completes while the load is stuck (E16). */
TEST(case_17_a_healthy_command_beside_a_failing_load) {
    enter_folder();
    write_floats("x", FLOATS);
    struct stage s = stage_open_with("*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
    bh_event *needs = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_event *on_b = ev_square(&s, s.b, s.x, s.z, NULL, 0);
    pid_t loader = fx_await_stopped();
    ev_ready(on_b);
    ev_squares(s.z, 1);
    BHT_EQ(bh_stream_synchronize(s.b, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(bh_event_query(needs), BH_EVENT_PENDING);
    fx_kill(loader, SIGSEGV); /* as if by itself: a loader that is killed has a successor */
    fx_kill(loader, SIGCONT);
    bh_event *load = load_of(x);
    ev_poisoned(needs, BH_WORKER_SIGNAL, load, 1, BH_EXECUTED_NO);
    ev_poisoned(load, BH_WORKER_SIGNAL, load, 0, BH_EXECUTED_UNKNOWN);
    ev_ready(on_b);
    ev_squares(s.z, 1);
    ev_well(&s);
}

TEST(case_35_bound_before_it_is_there) {
    enter_folder();
    write_floats("x", FLOATS);
    /* The loader is the third worker; it stops before it reads a byte. */
    struct stage s = stage_open_with("*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
    bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
    pid_t loader = fx_await_stopped();
    BHT_EQ(bh_event_wait(square, 100 * FX_MS), BH_TIMEOUT);
    BHT_EQ(bh_event_query(square), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    ev_ready(square);
    ev_squares(s.y, 1);
    expect_floats(x, FLOATS);
}

TEST(case_36_zero_length) {
    enter_folder();
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    const char two[] = "{" TENSOR("a", "F32", "3,0", "0,0") "," TENSOR("b", "U8", "4", "0,4") "}";
    fx_write_file("raw", "", 0);
    /* Format 1.0, and a dictionary of 60 bytes. */
    const char npy[] = "\x93NUMPY\1\0\x3c\0"
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }\n";
    fx_write_file("npy", npy, sizeof npy - 1);
    write_safetensors("st", sizeof two - 1, two, 4);
    const bh_file_source sources[] = {source_of("raw", BH_FILE_RAW, NULL),
                                      source_of("npy", BH_FILE_NPY, NULL),
                                      source_of("st", BH_FILE_SAFETENSORS, "a")};
    for (size_t i = 0; i < BHT_COUNT(sources); i++) {
        bh_buffer *x = fx_load(s.context, &sources[i]);
        BHT_EQ(bh_buffer_size(x), 0);
        ev_ready(ev_square(&s, s.a, x, s.y, NULL, 0));
        BHT_TRUE(fx_mapped(x));
        uint64_t done = 1, total = 1;
        BHT_EQ(bh_buffer_load_progress(x, &done, &total, NULL), BH_OK);
        BHT_EQ(done, 0);
        BHT_EQ(total, 0);
        bh_array_info info = {.struct_size = sizeof info};
        BHT_EQ(bh_buffer_array(x, &info, NULL), BH_OK);
        BHT_EQ(info.rank, i ? 2 : 0);
    }
}

TEST(case_37_a_failed_load_launches_nothing) {
    enter_folder();
    write_floats("broken", FLOATS);
    struct stage s = stage_open_with("*:load_read:1=fail", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "broken");
    bh_event *first = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_event *second = ev_square(&s, s.b, s.y, s.z, NULL, 0);
    bh_event *other = ev_square(&s, s.b, s.x, s.w, NULL, 0);
    bh_event *load = load_of(x);
    bh_verdict verdict = ev_poisoned(first, BH_LOAD_FAILED, load, 1, BH_EXECUTED_NO);
    BHT_EQ(verdict.started_ns, 0);
    BHT_EQ(verdict.sys_errno, EIO);
    BHT_STR_HAS(verdict.message, "broken: offset 0: Input/output error");
    ev_poisoned(second, BH_LOAD_FAILED, load, 2, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, BH_LOAD_FAILED);
    ev_ready(other);
    verdict = expect_failed(x, BH_LOAD_FAILED, "broken: offset 0: Input/output error");
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
}

TEST(case_38_valid_ever_after) {
    enter_folder();
    write_floats("x", FLOATS);
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
    bh_event *load = load_of(x);
    ev_ready(load);
    bh_verdict verdict = fx_verdict(load);
    BHT_EQ(unlink("x"), 0);
    fx_kill(verdict.worker_pid, SIGKILL);
    for (int i = 0; i < 20; i++) {
        ev_ready(ev_square(&s, i % 2 ? s.a : s.b, x, s.y, NULL, 0));
        ev_squares(s.y, 1);
    }
    ev_ready(load);
}

TEST(case_39_still_loading) {
    enter_folder();
    write_floats("x", FLOATS);
    struct stage s = stage_open_with("*:load:1=stop", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
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
}

TEST(case_39_one_slow_file_holds_up_no_other) {
    enter_folder();
    write_floats("x", FLOATS);
    bh_context *context = fx_context(NULL);
    bh_buffer *first = from_raw(context, "x");
    expect_floats(first, FLOATS);
    bh_event *load = load_of(first);
    pid_t loader = fx_verdict(load).worker_pid;
    fx_kill(loader, SIGSTOP); /* the next one gets the same, which is idle */
    bh_buffer *slow = from_raw(context, "x");
    load = load_of(slow);
    BHT_EQ(bh_event_wait(load, 50 * FX_MS), BH_TIMEOUT);
    bh_buffer *quick = from_raw(context, "x");
    expect_floats(quick, FLOATS);
    BHT_EQ(bh_event_query(load), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    expect_floats(slow, FLOATS);
}

TEST(case_40_short_reads_advance) {
    enter_folder();
    const size_t size = 5000003;
    write_bytes("x", size);
    bh_context *context = fx_context("*:short_read:*=fail"); /* 1,000 bytes at a time */
    bh_file_source source = source_of("x", BH_FILE_RAW, NULL);
    bh_buffer *all = fx_load(context, &source);
    source.offset = 12345;
    const uint64_t bytes = 2345678;
    const bh_buffer_options options = {.struct_size = sizeof options, .file = &source};
    bh_buffer *part = NULL;
    BHT_EQ(bh_buffer_create(context, bytes, &options, &part, NULL), BH_OK);
    expect_bytes(all, 0, size);
    expect_bytes(part, source.offset, bytes);
}
