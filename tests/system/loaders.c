/* Loaders: their time, their deaths, their cost. */
#include "files.h"
#include "tamper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* In a folder of its own: "file" has ten bytes, "t" a tensor of eight, 0, 1, 2, … */
static void make_files(void) {
    const char header[] = "{" TENSOR("t", "U8", "8", "0,8") "}";
    enter_folder();
    fx_write_file("file", "0123456789", 10);
    write_safetensors("t", sizeof header - 1, header, 8);
}

static bh_file_source raw(void) {
    return source_of("file", BH_FILE_RAW, NULL);
}

static bh_file_source tensor(void) {
    return source_of("t", BH_FILE_SAFETENSORS, "t");
}

static void expect_tensor(bh_buffer *buffer) {
    BHT_EQ(((const uint8_t *)fx_mapped(buffer))[7], 7);
}

TEST(a_header_that_takes_too_long) {
    bh_context *context = fx_context("1:inspect:1=hang");
    make_files();
    bh_file_source source = tensor();
    source.header_timeout_ns = 2 * BHT_SECOND_MS * FX_MS; /* the loader has to start, too */
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_TIMEOUT);
    BHT_EQ(detail.reason, BH_REASON_HEADER_LATE);
    source.header_timeout_ns = FX_SECONDS;
    buffer = fx_load(context, &source); /* the next loader does not hang */
    expect_tensor(buffer);
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
}

/* No loader starts: the message says why, and does not blame the file. The first waits may end
 * before the first start has failed. */
TEST(a_header_that_no_loader_reads) {
    bh_context *context = fx_context("*:connect:*=fail");
    make_files();
    bh_file_source source = source_of("file", BH_FILE_NPY, NULL);
    bh_buffer *buffer = NULL;
    bh_detail detail = {0};
    source.header_timeout_ns = 50 * FX_MS;
    do {
        source.header_timeout_ns *= 2;
        BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_TIMEOUT);
    } while (!strstr(detail.message, "the last start failed: ") &&
             source.header_timeout_ns < 8 * BHT_SECOND_MS * FX_MS);
    BHT_EQ(detail.reason, BH_REASON_NO_WORKER);
    BHT_STR_HAS(detail.message, "cannot take the control channel's connection");
}

/* -- calls that wait for a process of their own (decision 8) -- */

struct call {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_status status;
    bh_detail detail;
};

static void *compile(void *argument) {
    struct call *call = argument;
    bh_source source = {.struct_size = sizeof source};
    source.text = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
    bh_kernel *kernel;
    call->status = bh_kernel_create_source(call->context, &source, NULL, &kernel, &call->detail);
    bh_kernel_release(kernel);
    return NULL;
}

static void *inspect(void *argument) {
    struct call *call = argument;
    bh_inspection inspection = {.struct_size = sizeof inspection};
    call->status = bh_kernel_inspect(call->kernel, NULL, &inspection, &call->detail);
    return NULL;
}

static void *reflect(void *argument) {
    struct call *call = argument;
    bh_kernel_info info = {.struct_size = sizeof info};
    call->status = bh_kernel_reflect(call->kernel, call->stream, FX_SECONDS, &info, &call->detail);
    return NULL;
}

static void *read_header(void *argument) {
    struct call *call = argument;
    bh_file_source source = tensor();
    bh_buffer *buffer;
    source.header_timeout_ns = FX_SECONDS;
    call->status = fx_from_file(call->context, &source, &buffer, &call->detail);
    bh_buffer_release(buffer);
    return NULL;
}

/* The call has what it asked for, from the next process. */
TEST(a_zygote_that_dies_under_a_call) {
    static const struct {
        const char *fault;
        void *(*ask)(void *);
    } calls[] = {
        {"*:compile:1=stop", compile},
        {"*:reflect:1=stop", inspect},
        {"*:compile:1=stop", reflect},
        {"*:inspect:1=stop", read_header},
    };
    make_files();
    for (size_t i = 0; i < BHT_COUNT(calls); i++) {
        struct call call = {.context = fx_context(calls[i].fault)};
        call.kernel = fx_kernel(call.context, "square");
        call.stream = fx_stream(call.context, "s", FX_SECONDS);
        bht_start(calls[i].ask, &call);
        const pid_t helper = fx_await_stopped();
        unsetenv("BULKHEAD_TEST_FAULTS"); /* of the next zygote's workers none stops */
        fx_kill(fx_parent(helper), SIGKILL);
        bht_join();
        if (call.status != BH_OK) {
            BHT_FAIL("call %zu: %s", i, call.detail.message);
        }
        bh_context_destroy(call.context);
    }
}

TEST(a_header_that_kills) {
    bh_context *context = fx_context("1:inspect:1=segv");
    make_files();
    bh_file_source source = tensor();
    bh_buffer *buffer = NULL;
    bh_detail detail;
    BHT_EQ(fx_from_file(context, &source, &buffer, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, "t, tensor 't': worker ");
    BHT_STR_HAS(detail.message, "SIGSEGV");
    /* The caller was told: nobody else is. */
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
    buffer = fx_load(context, &source);
    expect_tensor(buffer);
}

/* Somebody kills the loader, or its zygote, in the middle of a load: the next one loads all of it. */
TEST(a_load_whose_loader_is_killed) {
    for (int with_zygote = 0; with_zygote < 2; with_zygote++) {
        bh_context *context = fx_context("1:loaded:1=stop");
        make_files();
        bh_file_source source = raw();
        bh_buffer *buffer = fx_load(context, &source);
        const pid_t loader = fx_await_stopped();
        unsetenv("BULKHEAD_TEST_FAULTS"); /* of the next zygote's workers none stops */
        fx_kill(with_zygote ? fx_parent(loader) : loader, SIGKILL);
        const bh_verdict verdict = fx_expect(fx_load_event(buffer), BH_OK);
        BHT_NE(verdict.worker_pid, loader);
        BHT_EQ(memcmp(fx_mapped(buffer), "0123456789", 10), 0);
    }
}

TEST(a_load_over_its_deadline) {
    bh_context *context = fx_context("1:load:1=hang");
    make_files();
    bh_file_source source = raw();
    source.deadline_ns = 100 * bht_slowness() * FX_MS;
    bh_buffer *buffer = fx_load(context, &source);
    bh_event *event = fx_load_event(buffer);
    BHT_EQ(bh_event_wait(event, FX_SECONDS), BH_DEADLINE);
    BHT_STR_HAS(fx_verdict(event).message, bht_slowness() == 1
                                               ? "file: the deadline of 100 ms passed"
                                               : "file: the deadline of ");
    uint64_t done = 1, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, 0);
    BHT_EQ(total, 10);
}

TEST(progress_is_told) {
    bh_context *context = fx_context("*:loaded:1=stop");
    enter_folder();
    BHT_EQ(close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    BHT_EQ(truncate("file", 8 << 20), 0);
    bh_file_source source = raw();
    bh_buffer *buffer = fx_load(context, &source);
    pid_t loader = fx_await_stopped();
    uint64_t done = 0, total = 0;
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, 8 << 20); /* all of it is read, but not yet known to be good */
    BHT_EQ(total, 8 << 20);
    bh_event *event = fx_load_event(buffer);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    fx_kill(loader, SIGCONT);
    fx_mapped(buffer);
    BHT_EQ(bh_buffer_load_progress(buffer, &done, &total, NULL), BH_OK);
    BHT_EQ(done, total);
}

TEST(closed_while_it_loads) {
    bh_context *context = fx_context("*:load:1=stop");
    make_files();
    bh_file_source source = raw();
    bh_buffer *buffer = fx_load(context, &source);
    for (int queued = 0; queued < 20; queued++) {
        fx_load(context, &source);
    }
    fx_await_stopped();
    bh_event *event = fx_load_event(buffer);
    bh_context_destroy(context);
    BHT_EQ(bh_event_wait(event, 0), BH_CONTEXT_CLOSED);
}

static void load_in_callback(void *context) {
    bh_file_source source = source_of("file", BH_FILE_NPY, NULL);
    bh_buffer *buffer = NULL;
    BHT_EQ(fx_from_file(context, &source, &buffer, NULL), BH_IN_CALLBACK);
    source.format = BH_FILE_RAW;
    BHT_EQ(fx_from_file(context, &source, &buffer, NULL), BH_OK);
    bh_buffer_release(buffer);
}

TEST(only_raw_files_load_in_a_log_callback) {
    bh_context *context = fx_context(NULL);
    make_files();
    fx_in_log_callback(load_in_callback, context);
}

/* How much more memory a worker has mapped and touched when it has read a loaded buffer of 12 MiB
 * and written another: twice that, and a copy if there is one. */
static uint64_t grown(const char *faults) {
    enum { BYTES = 12 << 20 };
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "a", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    fx_expect(fx_square(stream, square, x, y), BH_OK); /* what a first run takes */
    pid_t pid = fx_ready(stream);
    float *floats = calloc(1, BYTES);
    BHT_TRUE(floats);
    for (size_t i = 0; i < BYTES / sizeof *floats; i++) {
        floats[i] = (float)(i % 100);
    }
    fx_write_file("x", floats, BYTES);
    bh_file_source source = source_of("x", BH_FILE_RAW, NULL);
    bh_buffer *loaded = fx_load(context, &source), *squares = fx_buffer(context, BYTES);
    uint64_t before = bht_resident_bytes(pid);
    fx_expect(fx_square(stream, square, loaded, squares), BH_OK);
    uint64_t after = bht_resident_bytes(pid);
    BHT_TRUE(before > 0 && ((const float *)fx_mapped(squares))[99] == 99 * 99);
    free(floats);
    bh_context_destroy(context);
    return after > before ? after - before : 0;
}

/* Where the device imports what is only read. Where it does not there is a copy, and it shows. */
TEST(bound_without_a_copy) {
    if (BHT_ASAN) {
        return; /* its shadow is what would be measured */
    }
    enter_folder();
    BHT_LT(grown(NULL), 30 << 20);
    BHT_GE(grown("*:import_read_only:*=fail"), 36 << 20);
}

/* More files than a loader may have open: each is closed when it is done with; and nothing of the
 * host's is left either (the harness counts). */
TEST(a_thousand_files) {
    bh_context *context = fx_context(NULL);
    make_files();
    bh_file_source source = tensor();
    size_t before = 0, loader_count = 0;
    pid_t loaders[4]; /* as many as there may be */
    for (int i = 0; i < 3000; i++) {
        bh_buffer *buffer = fx_load(context, &source);
        if (i % 2) {
            expect_tensor(buffer);
            bh_event *event = fx_load_event(buffer);
            pid_t pid = fx_verdict(event).worker_pid;
            size_t known = 0;
            while (known < loader_count && loaders[known] != pid) {
                known++;
            }
            BHT_LT(known, BHT_COUNT(loaders)); /* none has died */
            loaders[known] = pid;
            loader_count += known == loader_count;
            bh_event_release(event);
        }
        bh_buffer_release(buffer);
        if (i == 10) {
            BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
            before = bht_count_self().descriptors;
        }
    }
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK);
    WAIT_UNTIL(bht_count_self().descriptors <= before + 50, 20000);
}

/* Without a device of its own a loader sees nothing of the machine: no path can be opened. */
TEST(a_loader_can_open_nothing) {
    bh_context *context = fx_context("1:load:1=sigsys");
    make_files();
    bh_file_source source = raw();
    fx_expect(fx_load_event(fx_load(context, &source)), BH_SECCOMP);
}

struct from_there {
    bh_context *context;
    _Atomic int opened;
};

/* Loads until the context is closed under it. */
static void *load_until_closed(void *argument) {
    struct from_there *there = argument;
    bh_file_source source = raw();
    bh_status status = BH_OK;
    while (status == BH_OK) {
        bh_buffer *buffer = NULL;
        status = fx_from_file(there->context, &source, &buffer, NULL);
        atomic_fetch_add(&there->opened, status == BH_OK);
        bh_buffer_release(buffer);
    }
    BHT_EQ(status, BH_CLOSED);
    return NULL;
}

static void start_loading(struct from_there *there) {
    *there = (struct from_there){.context = fx_context(NULL)};
    for (int i = 0; i < 4; i++) {
        bht_start(load_until_closed, there);
    }
}

static void close_it(struct from_there *there) {
    BHT_EQ(bh_context_destroy(there->context), BH_OK);
    bht_join();
}

/* The loaders' streams go while other threads, which came before the context was closed, and have
 * reserved their memory meanwhile, pick one. (ThreadSanitizer sees it each time.) */
TEST(destroyed_while_loaders_are_picked) {
    enter_folder();
    BHT_EQ(close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    BHT_EQ(truncate("file", 32 << 20), 0);
    for (int round = 0; round < 5; round++) {
        struct from_there there;
        start_loading(&there);
        WAIT_UNTIL(atomic_load(&there.opened) > 4, 20000);
        close_it(&there);
    }
}

/* The same while they are given up for having nothing to do: nobody but their owner notices. */
TEST(trimmed_while_loaders_are_picked) {
    make_files();
    struct from_there there;
    start_loading(&there);
    for (int round = 1; round <= 20; round++) {
        BHT_EQ(bh_context_trim(there.context, 0, NULL), BH_OK);
        WAIT_UNTIL(atomic_load(&there.opened) > 3 * round, 20000);
    }
    close_it(&there);
}

/* The pid of the loader of a file for |stream|, or NULL. */
static pid_t loader_for(bh_context *context, const bh_file_source *source, bh_stream *stream) {
    const bh_buffer_options options = {.stream = stream, .file = source};
    bh_event *event = fx_load_event(fx_buffer_with(context, 0, options));
    return fx_expect(event, BH_OK).worker_pid;
}

static pid_t loader_of_tenant(bh_context *context, const char *tenant) {
    bh_file_source source = raw();
    source.tenant = tenant;
    return loader_for(context, &source, NULL);
}

/* T1. An idle loader of another tenant is not used, whether for data or for a header; of the same
 * tenant it is. */
TEST(a_loader_serves_one_tenant) {
    bh_context *context = fx_context(NULL);
    make_files();
    const pid_t alice = loader_of_tenant(context, "alice");
    const pid_t bob = loader_of_tenant(context, "bob");
    const pid_t nobody = loader_of_tenant(context, NULL);
    BHT_NE(alice, bob);
    BHT_NE(nobody, alice);
    BHT_NE(nobody, bob);
    BHT_EQ(loader_of_tenant(context, "alice"), alice);
    BHT_EQ(loader_of_tenant(context, ""), nobody);
    /* The stream's tenant, where there is a stream. */
    bh_stream_options options = fx_stream_options();
    options.tenant = "bob";
    bh_stream *stream = fx_stream_with(context, options);
    bh_file_source source = raw();
    BHT_EQ(loader_for(context, &source, stream), bob);
    source.tenant = "alice";
    fx_no_buffer(context, 0, (bh_buffer_options){.stream = stream, .file = &source},
                 BH_INVALID_ARGUMENT,
                 "file.tenant is \"alice\", and options.stream is of tenant \"bob\"");
    source.tenant = "a name of 64 bytes: 0123456789012345678901234567890123456789012";
    BHT_EQ(strlen(source.tenant), 63);
    BHT_NE(loader_for(context, &source, NULL), alice);
    source.tenant = "a name of 64 bytes: 01234567890123456789012345678901234567890123";
    fx_no_buffer(context, 0, (bh_buffer_options){.file = &source}, BH_INVALID_ARGUMENT,
                 "file.tenant is longer than 63 bytes");
}

/* A header is parsed by the tenant's own loader, too: each tenant's first one dies of it. */
TEST(a_header_is_its_tenants) {
    bh_context *context = fx_context("*:inspect:2=segv");
    make_files();
    bh_file_tensor *tensors = calloc(1, sizeof *tensors);
    size_t count;
    bh_file_source source = source_of("t", BH_FILE_SAFETENSORS, NULL);
    static const char *const tenants[] = {"alice", "bob", "carol"};
    for (size_t i = 0; i < BHT_COUNT(tenants); i++) {
        source.tenant = tenants[i];
        tensors->struct_size = sizeof *tensors;
        BHT_EQ(bh_file_tensors(context, &source, tensors, 1, &count, NULL), BH_OK);
    }
    tensors->struct_size = sizeof *tensors;
    BHT_EQ(bh_file_tensors(context, &source, tensors, 1, &count, NULL), BH_WORKER_SIGNAL);
    free(tensors);
}

/* Many tenants, one after the other, have no more loaders than one; those that load keep theirs. */
TEST(idle_loaders_make_place_for_other_tenants) {
    bh_context *context = fx_context("1:load:2=stop");
    make_files();
    pid_t pids[6];
    bh_file_source source = raw();
    source.tenant = "busy";
    const pid_t busy = loader_for(context, &source, NULL);
    bh_buffer *slow = fx_load(context, &source);
    BHT_EQ(fx_await_stopped(), busy);
    for (size_t i = 0; i < BHT_COUNT(pids); i++) {
        char tenant[8];
        snprintf(tenant, sizeof tenant, "%zu", i);
        pids[i] = loader_of_tenant(context, tenant);
    }
    for (size_t i = 0; i < 3; i++) {
        WAIT_UNTIL(kill(pids[i], 0) != 0, 20000);
    }
    BHT_EQ(loader_of_tenant(context, "5"), pids[5]);
    BHT_EQ(loader_of_tenant(context, "3"), pids[3]);
    BHT_EQ(kill(busy, SIGCONT), 0);
    BHT_EQ(((const uint8_t *)fx_mapped(slow))[9], '9');
}

/* A trim of everything ends those that have nothing to do, and no other. */
TEST(idle_loaders_are_trimmed) {
    bh_context *context = fx_context("1:load:2=stop");
    make_files();
    const pid_t busy = loader_of_tenant(context, NULL);
    bh_file_source source = raw();
    bh_buffer *slow = fx_load(context, &source);
    BHT_EQ(fx_await_stopped(), busy);
    const pid_t idle = loader_of_tenant(context, NULL);
    BHT_NE(idle, busy);
    BHT_EQ(bh_context_trim(context, 1, NULL), BH_OK);
    BHT_EQ(loader_of_tenant(context, NULL), idle);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    WAIT_UNTIL(kill(idle, 0) != 0, 20000);
    BHT_NE(loader_of_tenant(context, NULL), idle);
    BHT_EQ(kill(busy, SIGCONT), 0);
    BHT_EQ(((const uint8_t *)fx_mapped(slow))[9], '9');
    BHT_EQ(bh_context_synchronize(context, FX_SECONDS, NULL), BH_OK); /* that was no failure */
}

/* As many files as are loaded at once, all of them slow; the header of the next one is not held
 * against them. */
TEST(a_header_behind_slow_loads) {
    bh_context *context = fx_context("*:load:1=stop");
    make_files();
    bh_file_source source = raw();
    for (size_t slow = 1; slow <= 4; slow++) {
        fx_load(context, &source);
        WAIT_UNTIL(fx_stopped(NULL) == slow, 20000);
    }
    source = tensor();
    source.header_timeout_ns = 5000 * bht_slowness() * FX_MS;
    bh_buffer *buffer = fx_load(context, &source);
    BHT_EQ(bh_buffer_size(buffer), 8);
}
