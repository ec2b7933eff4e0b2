/* Everything that can run is started, and what ps shows is compared with the table in ARCHITECTURE.md:
 * each kind of process is in the table, and each row of it is seen. */
#include "fake_driver.h"
#include "files.h"
#include "nvidia_machine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 32

struct names {
    char of[MOST][32];
    size_t count;
};

/* What was seen below this process. Many kinds live for moments, so it looks all the time. */
static struct {
    pthread_mutex_t mutex;
    _Atomic bool stop;
    struct names names;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool has(const struct names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->of[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void add(struct names *names, const char *name) {
    if (!has(names, name)) {
        BHT_LT(names->count, MOST);
        snprintf(names->of[names->count++], sizeof names->of[0], "%s", name);
    }
}

static bool was_seen(const char *name) {
    pthread_mutex_lock(&seen.mutex);
    const bool found = has(&seen.names, name);
    pthread_mutex_unlock(&seen.mutex);
    return found;
}

/* A process whose name is not ours is about to become one: it has not set its title yet. */
static void note(pid_t pid) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return;
    }
    if (fgets(name, sizeof name, file) && strncmp(name, "bh", 2) == 0) {
        name[strcspn(name, "\n")] = '\0';
        pthread_mutex_lock(&seen.mutex);
        add(&seen.names, strncmp(name, "bh:", 3) == 0 ? "bh:STREAM" : name);
        pthread_mutex_unlock(&seen.mutex);
    }
    fclose(file);
}

static void *look(void *nothing) {
    while (!atomic_load(&seen.stop)) {
        pid_t below[256];
        const size_t count = bht_descendants(getpid(), below, BHT_COUNT(below));
        for (size_t i = 0; i < count && i < BHT_COUNT(below); i++) {
            note(below[i]);
        }
    }
    return nothing;
}

static struct names read_table(void) {
    struct names names = {.count = 0};
    char line[1024];
    FILE *file = fopen(BHT_ARCHITECTURE, "re");
    BHT_TRUE(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "| `bh-", 6) == 0 || strncmp(line, "| `bh:", 6) == 0) {
            line[3 + strcspn(line + 3, "`")] = '\0';
            BHT_TRUE(!has(&names, line + 3));
            add(&names, line + 3);
        }
    }
    fclose(file);
    return names;
}

/* Does it again until a process of that name was seen in the act. */
static void until(const char *name, void (*act)(bh_context *context), bh_context *context) {
    const uint64_t end_ns = bht_now_ns() + FX_SECONDS;
    while (!was_seen(name)) {
        if (bht_now_ns() > end_ns) {
            BHT_FAIL("no %s was seen", name);
        }
        act(context);
    }
}

static void compile(bh_context *context) {
    bh_source source = {.struct_size = sizeof source};
    source.text = "#version 450\nvoid main() {}\n";
    bh_kernel *kernel = NULL;
    BHT_EQ(bh_kernel_create_source(context, &source, NULL, &kernel, NULL), BH_OK);
    bh_kernel_release(kernel);
}

static void probe(bh_context *context) {
    bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
    size_t count;
    BHT_EQ(bh_doctor(context, checks, BHT_COUNT(checks), &count, NULL), BH_OK);
}

static void trace(bh_context *context) {
    static bh_traced_call calls[1500] = {{.struct_size = sizeof calls[0]}};
    bh_trace result = {.struct_size = sizeof result};
    size_t count;
    BHT_EQ(bh_trace_driver(context, NULL, &result, calls, BHT_COUNT(calls), &count, NULL), BH_OK);
}

static void on_gpus(bh_context *none) {
    (void)none;
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "nvidia:0");
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    bh_context_destroy(context);
}

static void with_a_sentinel(bh_context *none) {
    (void)none;
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    fx_expect_healthy(context, stream);
    WAIT_UNTIL(bht_descendant_called(getpid(), "bh-sentinel") != 0, 20000);
    bh_stream_release(stream);
    bh_context_destroy(context);
}

static void wait_a_turn(bh_context *context) {
    (void)context;
    sched_yield();
}

static void on_the_processor(void) {
    bh_context_options options = fx_options();
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    fx_expect_healthy(context, stream);
    until("bh-spare", wait_a_turn, context);
    enter_folder();
    fx_write_file("f", "0123456789abcdef", 16);
    bh_file_source source = source_of("f", BH_FILE_RAW, NULL);
    bh_buffer *buffer = fx_load(context, &source);
    (void)fx_mapped(buffer);
    until("bh-loader", wait_a_turn, context);
    until("bh-compiler", compile, context);
    until("bh-prober", probe, context);
    until("bh-tracer", trace, context);
}

TEST(what_ps_shows_is_what_the_table_says) {
    const struct names table = read_table();
    BHT_GE(table.count, 2);
    nvidia_machine(NVIDIA_NODES, "");
    bht_start(look, NULL);
    until("bh-scout", on_gpus, NULL);
    until("bh-devholder", on_gpus, NULL);
    fake_driver_install(BHT_FAKE_TRANSFER);
    until("bh-sentinel", with_a_sentinel, NULL);
    BHT_EQ(unsetenv("VK_DRIVER_FILES"), 0);
    on_the_processor();
    atomic_store(&seen.stop, true);
    bht_join();
    for (size_t i = 0; i < table.count; i++) {
        if (!has(&seen.names, table.of[i])) {
            BHT_FAIL("the table has %s, and no process was called that", table.of[i]);
        }
    }
    for (size_t i = 0; i < seen.names.count; i++) {
        if (!has(&table, seen.names.of[i])) {
            BHT_FAIL("a process was called %s, which the table lacks", seen.names.of[i]);
        }
    }
}
