/* bh_stream_options.processor and .nice: all threads of a stream's workers are on that one, and as
 * much nicer. */
#include "fixture.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static cpu_set_t set_of(pid_t tid) {
    cpu_set_t set;
    BHT_EQ(sched_getaffinity(tid, sizeof set, &set), 0);
    return set;
}

static unsigned first_of(const cpu_set_t *set) {
    unsigned i = 0;
    while (!CPU_ISSET(i, set)) {
        i++;
    }
    return i;
}

static bh_stream *stream_on(bh_context *context, uint32_t processor) {
    bh_stream_options options = fx_stream_options();
    options.processor = processor;
    return fx_stream_with(context, options);
}

/* Calls |check| for each thread of the stream's worker. */
static void for_each_thread(bh_stream *stream, void (*check)(pid_t tid, const void *wanted),
                            const void *wanted) {
    char path[64];
    size_t threads = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)fx_ready(stream));
    DIR *folder = opendir(path);
    BHT_TRUE(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.') {
            check((pid_t)atoi(entry->d_name), wanted);
            threads++;
        }
    }
    closedir(folder);
    BHT_TRUE(threads > 2); /* its own, the channel's, the driver's */
}

static void has_set(pid_t tid, const void *wanted) {
    const cpu_set_t its = set_of(tid), *set = wanted;
    BHT_TRUE(CPU_EQUAL(&its, set));
}

/* All threads of the stream's worker may use what is in |set|, and no more. */
static void expect_on(bh_stream *stream, const cpu_set_t *set) {
    for_each_thread(stream, has_set, set);
}

static unsigned count_spares(bh_context *context) {
    static char text[1 << 14];
    unsigned found = 0;
    bh_context_describe(context, text, sizeof text);
    for (const char *at = text; (at = strstr(at, "spare worker ")); at++) {
        found++;
    }
    return found;
}

/* There is a spare of either kind: none serves a stream of the other. */
TEST(workers_run_on_the_processor) {
    const cpu_set_t all = set_of(0);
    const unsigned number = first_of(&all);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(number, &only);
    bh_context_options options = fx_options();
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *free_one = fx_stream(context, "free", FX_SECONDS);
    WAIT_UNTIL(count_spares(context) == 1, 20000);
    bh_stream *bound = stream_on(context, number + 1);
    expect_on(bound, &only);
    WAIT_UNTIL(count_spares(context) == 2, 20000);
    bh_stream *another = fx_stream(context, "another", FX_SECONDS);
    if (!fx_on_gpu()) { /* whose interrupts take one away (decision 58) */
        expect_on(free_one, &all);
        expect_on(another, &all);
    }
    WAIT_UNTIL(count_spares(context) == 2, 20000);
    fx_replace_worker(context, bound);
    expect_on(bound, &only);
}

TEST(a_processor_that_is_not_there) {
    bh_stream_options options = fx_stream_options();
    bh_context *context = fx_context(NULL);
    bh_stream *stream = NULL;
    bh_detail why = {0};
    options.processor = CPU_SETSIZE + 1;
    BHT_EQ(bh_stream_create(context, &options, &stream, &why), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.message, "bh_stream_create: options.processor is 1025, over 1024");
    options.processor = CPU_SETSIZE;
    BHT_EQ(bh_stream_create(context, &options, &stream, &why), BH_OK);
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &why), BH_UNSUPPORTED);
    BHT_STR_HAS(why.message, "cannot run on processor 1023 alone");
}

static void is_as_nice(pid_t tid, const void *wanted) {
    BHT_EQ(getpriority(PRIO_PROCESS, (id_t)tid), *(const int *)wanted);
}

/* A spare of the usual level serves no stream of another one. */
TEST(workers_are_nicer) {
    bh_context_options context_options = fx_options();
    context_options.spares = 1;
    bh_context *context = fx_context_with(context_options, NULL);
    bh_stream *usual = fx_stream(context, "usual", FX_SECONDS);
    const int level = getpriority(PRIO_PROCESS, (id_t)fx_ready(usual));
    bh_stream_options options = fx_stream_options();
    bh_stream *stream = NULL;
    bh_detail why;
    static const int steps[] = {5, 19};
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        options.nice = (uint64_t)steps[i];
        WAIT_UNTIL(count_spares(context) > 0, 20000);
        stream = fx_stream_with(context, options);
        const int wanted = level + steps[i] < 19 ? level + steps[i] : 19;
        for_each_thread(stream, is_as_nice, &wanted);
        bh_stream_release(stream);
    }
    options.nice = 20;
    BHT_EQ(bh_stream_create(context, &options, &stream, &why), BH_INVALID_ARGUMENT);
    BHT_STR_EQ(why.message, "bh_stream_create: options.nice is 20, over 19");
}
