/* Cases 41 and 42: what ends a load early, and a file that changes under it. */
#include "files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(case_41_quiet_after_a_failed_read) {
    enter_folder();
    write_bytes("x", 4u << 20);
    /* Whichever of its threads it is that fails, the others are in the middle of their parts. */
    for (int nth = 2; nth < 8; nth++) {
        char faults[80];
        snprintf(faults, sizeof faults, "*:load_write:*=pause,*:load_read:%d=fail", nth);
        bh_context *context = fx_context(faults);
        bh_buffer *x = from_raw(context, "x");
        bh_event *load = load_of(x);
        BHT_EQ(bh_event_wait(load, FX_SECONDS), BH_LOAD_FAILED);
        expect_quiet(x);
        bh_context_destroy(context);
    }
}

/* The loader is confirmed dead when its verdict can be seen, in the middle of the file. */
static bh_verdict expect_dead(bh_buffer *x, bh_status status, const char *words) {
    const bh_verdict verdict = expect_failed(x, status, words);
    const char state = bht_process_state(verdict.worker_pid);
    BHT_TRUE(state == 'X' || state == 'Z');
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    uint64_t done = 0, total = 0;
    BHT_EQ(bh_buffer_load_progress(x, &done, &total, NULL), BH_OK);
    BHT_LT(done, total);
    expect_quiet(x);
    return verdict;
}

/* It stands in the middle of a write when it is cancelled. */
TEST(case_41_quiet_after_a_cancel) {
    enter_folder();
    write_bytes("x", 4u << 20);
    bh_context *context = fx_context("1:load_write:3=stop");
    bh_buffer *x = from_raw(context, "x");
    bh_event *load = load_of(x);
    const pid_t loader = fx_await_stopped();
    BHT_EQ(bh_event_query(load), BH_EVENT_PENDING);
    BHT_EQ(bh_event_cancel(load), BH_OK);
    const bh_verdict verdict = expect_dead(x, BH_CANCELLED, "x: cancelled while it ran");
    BHT_EQ(verdict.worker_pid, loader);
    /* The next one gets another loader. */
    bh_buffer *y = from_raw(context, "x");
    expect_bytes(y, 0, 4u << 20);
    BHT_EQ(bh_event_wait(load, 0), BH_CANCELLED);
}

TEST(case_41_quiet_after_a_death_in_mid_write) {
    enter_folder();
    write_bytes("x", 4u << 20);
    bh_context *context = fx_context("*:load_write:3=kill");
    bh_buffer *x = from_raw(context, "x");
    expect_dead(x, BH_WORKER_SIGNAL, "x: worker ");
}

TEST(case_41_quiet_after_the_loaders_death) {
    enter_folder();
    write_floats("x", STAGE_FLOATS);
    struct stage s = stage_open_with("*:load:1=kill", FX_SECONDS);
    bh_buffer *x = from_raw(s.context, "x");
    bh_event *square = ev_square(&s, s.a, x, s.y, NULL, 0);
    bh_verdict verdict = expect_failed(x, BH_WORKER_SIGNAL, "x: worker ");
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    expect_quiet(x);
    bh_event *load = load_of(x);
    ev_poisoned(square, BH_WORKER_SIGNAL, load, 1, BH_EXECUTED_NO);
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

/* Loads x while |act| changes it when the loader stops at a point of |faults|; it is loaded all the
 * same where |words| is NULL. */
static void change_at(const char *faults, void (*act)(const char *path), bool by_descriptor,
                      const char *words) {
    enter_folder();
    write_bytes("x", 4u << 20);
    bh_context *context = fx_context(faults);
    bh_file_source source = source_of("x", BH_FILE_RAW, NULL);
    if (by_descriptor) {
        source.path = NULL;
        source.fd = open("x", O_RDONLY | O_CLOEXEC);
    }
    bh_buffer *x = fx_load(context, &source);
    if (by_descriptor) {
        close(source.fd);
    }
    pid_t loader = fx_await_stopped();
    act("x");
    fx_kill(loader, SIGCONT);
    if (words) {
        expect_failed(x, BH_LOAD_FAILED, words);
    } else {
        expect_bytes(x, 0, 4u << 20);
    }
    fx_release_all();
}

TEST(case_42_cut_before_it_is_read) {
    change_at("*:load:1=stop", cut, false,
              "offset 100: its size has changed from 4194304 to 100 bytes");
}

TEST(case_42_cut_while_it_is_read) {
    change_at("*:load_read:1=stop", cut, false, "x: offset ");
}

TEST(case_42_grown) {
    change_at("*:loaded:1=stop", grow, false, "its size has changed");
}

TEST(case_42_overwritten) {
    change_at("*:loaded:1=stop", overwrite, false, "it was written to");
}

TEST(case_42_overwritten_slyly) {
    change_at("*:loaded:1=stop", overwrite_slyly, false, "it was changed");
}

TEST(case_42_replaced) {
    change_at("*:load:1=stop", replace, false, "it was replaced or removed");
}

TEST(case_42_a_descriptor_needs_no_name) {
    change_at("*:load:1=stop", take_away, true, NULL);
    change_at("*:loaded:1=stop", overwrite, true, "it was written to");
}
