/* Every number of free descriptors, from 3 on: what the process has no room for is refused at once
 * with the number that it needs. libzmq, which aborts the process where its threads start without
 * room, is never asked; nothing is tried for seconds; nobody is told to install a driver. */
#include "files.h"

#include <bulkhead/source.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define REFUSAL_NS (1000000000ull * bht_slowness()) /* in which what is refused is refused */
#define FIRST      40 /* docs/operating.md: a context with one stream */
#define ENOUGH     80 /* and all that try_all does */
#define MOST       200

static struct rlimit before;
static char square_code[65536];
static size_t square_size;

static void set_up(void) {
    char path[512];
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    snprintf(path, sizeof path, "%s/square.spv", BHT_SHADERS);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, square_code, sizeof square_code);
    BHT_GT(size, 0);
    square_size = (size_t)size;
    close(fd);
    enter_folder();
    static const float words[64];
    fx_write_file("words", words, sizeof words);
}

/* So many of the numbers below the soft limit are free from now on. */
static void leave_free(unsigned count) {
    struct rlimit limit = before;
    for (limit.rlim_cur = 0; count; limit.rlim_cur++) {
        count -= fcntl((int)limit.rlim_cur, F_GETFD) < 0;
    }
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void restore_limit(void) {
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* How many were free, for what was refused. */
static unsigned left;
static unsigned refusals;

/* The slowest refusal, to be read: docs/operating.md has it. */
static struct {
    uint64_t ns;
    unsigned left;
    char what[64];
} slowest;

/* When the call that is tried began. */
static uint64_t began_ns;

static void begin(void) {
    began_ns = bht_now_ns();
}

/* True: it was done. Else it was refused for want of descriptors, in words that say so, and soon.
 */
static bool done(const char *what, bh_status status, const bh_detail *detail) {
    if (status == BH_OK) {
        return true;
    }
    if (detail->sys_errno != EMFILE || strstr(detail->message, "workers died") ||
        strstr(detail->message, "Vulkan")) {
        BHT_FAIL("%s with %u free: %s (errno %d): %s", what, left, bh_status_name(status),
                 detail->sys_errno, detail->message);
    }
    const uint64_t took_ns = bht_now_ns() - began_ns;
    if (took_ns > REFUSAL_NS) {
        BHT_FAIL("%s with %u free was refused after %llu ms: %s", what, left,
                 (unsigned long long)took_ns / 1000000, detail->message);
    }
    if (took_ns > slowest.ns) {
        slowest.ns = took_ns;
        slowest.left = left;
        snprintf(slowest.what, sizeof slowest.what, "%s", what);
    }
    refusals++;
    return false;
}

static bool ended(const char *what, bh_event *event) {
    const bh_status status = bh_event_wait(event, FX_SECONDS);
    BHT_NE(status, BH_TIMEOUT);
    const bh_verdict verdict = fx_verdict(event);
    bh_detail detail = {.status = status, .sys_errno = verdict.sys_errno};
    snprintf(detail.message, sizeof detail.message, "%s", verdict.message);
    return done(what, status, &detail);
}

static bh_buffer *try_buffer(bh_context *context) {
    bh_buffer *buffer = NULL;
    bh_detail detail = {0};
    begin();
    done("bh_buffer_create", bh_buffer_create(context, 256, NULL, &buffer, &detail), &detail);
    return buffer;
}

static void try_launch(bh_context *context, bh_stream *stream) {
    bh_kernel *kernel = NULL;
    bh_detail detail = {0};
    begin();
    if (!done("bh_kernel_create_spirv",
              bh_kernel_create_spirv(context, square_code, square_size, NULL, &kernel, &detail),
              &detail)) {
        return;
    }
    bh_buffer *x = try_buffer(context), *y = try_buffer(context);
    if (x && y) {
        begin();
        ended("a submission", fx_square(stream, kernel, x, y));
    }
}

static void try_load(bh_context *context) {
    bh_buffer *buffer = NULL;
    bh_detail detail = {0};
    const bh_file_source source = source_of("words", BH_FILE_RAW, NULL);
    begin();
    if (!done("bh_buffer_create", fx_from_file(context, &source, &buffer, &detail), &detail)) {
        return;
    }
    ended("a load", fx_load_event(buffer));
}

static void try_glsl(bh_context *context) {
    bh_source source = {.struct_size = sizeof source};
    source.text = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
    bh_kernel *kernel = NULL;
    bh_detail detail = {0};
    begin();
    done("bh_kernel_create_source",
         bh_kernel_create_source(context, &source, NULL, &kernel, &detail), &detail);
}

static void try_doctor(bh_context *context) {
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    size_t count = 0;
    bh_detail detail = {0};
    begin();
    if (!done("bh_doctor", bh_doctor(context, checks, BHT_COUNT(checks), &count, &detail),
              &detail)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        /* A worker of the doctor's may be refused while the last one is not yet buried; none fails. */
        const bool refused = strstr(checks[i].text, "free file descriptors, but only");
        if (strstr(checks[i].advice, "Vulkan driver") ||
            (!refused && strstr(checks[i].text, "open files"))) {
            BHT_FAIL("bh_doctor with %u free: %s: %s; %s", left, checks[i].name, checks[i].text,
                     checks[i].advice);
        }
    }
}

/* Returns how many calls were refused. */
static unsigned try_all(unsigned count) {
    bh_context_options options = fx_options();
    options.worker_path = BHT_WORKER;
    options.spares = 1;
    bh_context *context = NULL;
    bh_stream *stream = NULL;
    bh_detail detail = {0};
    left = count;
    refusals = 0;
    leave_free(count);
    begin();
    if (done("bh_context_create", bh_context_create(&options, &context, &detail), &detail)) {
        BHT_GE(count, FIRST);
        begin();
        if (done("bh_stream_create", bh_stream_create(context, NULL, &stream, &detail), &detail) &&
            done("bh_stream_wait_ready", bh_stream_wait_ready(stream, FX_SECONDS, &detail),
                 &detail)) {
            try_launch(context, stream);
            try_load(context);
            try_glsl(context);
            try_doctor(context);
        }
        fx_release_all();
    } else {
        BHT_LT(count, FIRST);
        char need[64];
        snprintf(need, sizeof need, "needs %u free file descriptors", FIRST);
        BHT_STR_HAS(detail.message, need);
    }
    restore_limit();
    return refusals;
}

TEST(every_number_of_free_descriptors) {
    set_up();
    for (unsigned count = 3; count <= MOST; count++) {
        /* Each at which the context is refused, and each where more and more is done in it; of
         * those where all is done one. At night each. */
        if (!bht_nightly() && count > FIRST + 2 && count != MOST &&
            (count % 16 || count > ENOUGH)) {
            continue;
        }
        const unsigned refused = try_all(count);
        if (count >= ENOUGH) {
            BHT_EQ(refused, 0);
        }
    }
    printf("  the slowest refusal took %llu ms: %s with %u free\n",
           (unsigned long long)slowest.ns / 1000000, slowest.what, slowest.left);
}

/* What the host opens after the context was made. */
static int taken[MOST];
static unsigned taken_count;

static void take_all_but(unsigned count) {
    leave_free(MOST);
    for (taken_count = 0; taken_count < MOST - count; taken_count++) {
        taken[taken_count] = eventfd(0, EFD_CLOEXEC);
        BHT_GE(taken[taken_count], 0);
    }
}

static void give_back(void) {
    while (taken_count > 0) {
        close(taken[--taken_count]);
    }
    restore_limit();
}

/* A worker has died, and there is no room for the next one: its stream says so at once, is charged
 * for nothing, and serves again when there is room, without a reset. */
TEST(no_room_for_the_next_worker) {
    set_up();
    bh_context_options options = fx_options();
    options.restart_budget = 2;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_kernel *kernel = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    static const unsigned counts[] = {0, 2, 4}; /* and the 7 that the dead worker gives back */
    for (size_t i = 0; i < BHT_COUNT(counts); i++) {
        left = counts[i];
        const pid_t pid = fx_ready(stream);
        fx_expect(fx_square(stream, kernel, x, y), BH_OK);
        take_all_but(counts[i]);
        fx_kill(pid, SIGKILL);
        WAIT_UNTIL(bh_stream_worker_pid(stream) == 0, 20000);
        bh_event *event = fx_square(stream, kernel, x, y);
        BHT_EQ(bh_event_wait(event, REFUSAL_NS), BH_SYSTEM);
        const bh_verdict verdict = fx_expect(event, BH_SYSTEM);
        BHT_EQ(verdict.sys_errno, EMFILE);
        BHT_EQ(verdict.executed, BH_EXECUTED_NO);
        BHT_STR_HAS(verdict.message, "starting a worker: it needs 12 free file descriptors");
        give_back();
        /* Without a reset: it heals by itself. */
        bh_detail detail;
        WAIT_UNTIL(bh_stream_wait_ready(stream, 100 * FX_MS, &detail) == BH_OK, 20000);
    }
}
