/* How long it takes from the death of a worker until somebody knows, and until work goes on. */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct deaths {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *busy, *count;
    bh_buffer *flag, *counter;
    uint32_t groups, iterations; /* of a job that is longer than anybody waits */
};

/* One run of the counter that must be READY. */
static void run_good(struct deaths *deaths) {
    const bh_binding binding = bh_bind_read_write(0, deaths->counter);
    bench_finish(
        bench_launch(deaths->stream, deaths->count, (uint32_t[]){1, 1, 1}, &binding, 1, NULL, 0));
}

static void kill_worker(int pid) {
    if (pid <= 0 || kill(pid, SIGKILL) != 0) {
        bench_die("cannot kill worker %d", pid);
    }
}

/* An idle worker has no event to poison: what shows is that it is no longer the stream's. */
static uint64_t die_idle(struct deaths *deaths) {
    run_good(deaths);
    int pid = bh_stream_worker_pid(deaths->stream);
    uint64_t start = bench_now_ns();
    kill_worker(pid);
    while (bh_stream_worker_pid(deaths->stream) == pid) {
        if (bench_now_ns() - start > BENCH_TIMEOUT_NS) {
            bench_die("the death of idle worker %d goes unseen", pid);
        }
        /* Each look takes the lock that the news needs, too. */
        const struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
    return bench_now_ns() - start;
}

struct waiter {
    struct deaths *deaths;
    bh_event *event;
    uint64_t poisoned_ns, good_ns;
};

static void *wait_for_poison(void *argument) {
    struct waiter *waiter = argument;
    bh_status status = bh_event_wait(waiter->event, BENCH_TIMEOUT_NS);
    waiter->poisoned_ns = bench_now_ns();
    bh_verdict verdict = {.struct_size = sizeof verdict};
    if (status != BH_WORKER_SIGNAL || bh_event_verdict(waiter->event, &verdict) != BH_OK ||
        verdict.signal != SIGKILL) {
        bench_die("a killed worker's event says %s", bh_status_name(status));
    }
    run_good(waiter->deaths);
    waiter->good_ns = bench_now_ns();
    return NULL;
}

/* Until the job says, through its own buffer, that it runs; then as long as a waiter needs to
 * fall asleep. */
static void let_it_run(const volatile uint32_t *flag) {
    const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
    uint64_t start = bench_now_ns();
    while (*flag == 0) {
        if (bench_now_ns() - start > BENCH_TIMEOUT_NS) {
            bench_die("the long job does not start");
        }
        nanosleep(&pause, NULL);
    }
    nanosleep(&pause, NULL);
}

/* Kills worker |pid|. Returns when the kernel calls it dead: nobody can know sooner. */
static uint64_t kill_and_watch(int pid) {
    struct pollfd dead = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (dead.fd < 0) {
        bench_die("there is no pidfd of worker %d", pid);
    }
    kill_worker(pid);
    if (poll(&dead, 1, (int)(BENCH_TIMEOUT_NS / 1000000)) != 1) {
        bench_die("killed worker %d does not die", pid);
    }
    uint64_t now = bench_now_ns();
    close(dead.fd);
    return now;
}

static void die_in_job(struct deaths *deaths, uint64_t *out_pidfd, uint64_t *out_waiter,
                       uint64_t *out_restart) {
    /* The last job's poison is in the flag: overwrite it. */
    void *flag = bench_map(deaths->flag, BH_MAP_DISCARD);
    memset(flag, 0, bh_buffer_size(deaths->flag));
    const bh_binding binding = bh_bind_read_write(0, deaths->flag);
    struct waiter waiter = {.deaths = deaths,
                            .event = bench_launch(deaths->stream, deaths->busy,
                                                  (uint32_t[]){deaths->groups, 1, 1}, &binding, 1,
                                                  &deaths->iterations, sizeof deaths->iterations)};
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_poison, &waiter) != 0) {
        bench_die("cannot start a thread");
    }
    let_it_run(flag);
    uint64_t start = bench_now_ns();
    *out_pidfd = kill_and_watch(bh_stream_worker_pid(deaths->stream)) - start;
    pthread_join(thread, NULL);
    bh_event_release(waiter.event);
    *out_waiter = waiter.poisoned_ns - start;
    *out_restart = waiter.good_ns - start;
}

static bh_kernel *make_kernel(bh_context *context, const struct bench_code *code) {
    return bench_kernel(context, code->words, code->bytes,
                        BENCH_WITH(bh_kernel_options, .name = code->name));
}

static void open_deaths(struct deaths *deaths, const struct bench_options *options) {
    deaths->context =
        bench_context(BENCH_WITH(bh_context_options, .worker_path = options->worker,
                                 .restart_budget = 1000 * 1000, /* deaths are the point here */
                                 .quarantine_deaths = BH_OFF));
    deaths->stream =
        bench_stream(deaths->context, BENCH_WITH(bh_stream_options, .device = options->device,
                                                 .deadline_ns = BH_FOREVER));
    deaths->busy = make_kernel(deaths->context, &BENCH_CODE[BENCH_BUSY]);
    deaths->count = make_kernel(deaths->context, &BENCH_CODE[BENCH_COUNT]);
    deaths->flag = bench_buffer(deaths->context, NULL, BH_MEMORY_HOST, 8);
    deaths->counter = bench_buffer(deaths->context, NULL, BH_MEMORY_HOST, 4);
}

void bench_measure_deaths(const struct bench_options *options, struct bench_deaths *out) {
    struct deaths deaths = {
        .groups = 65535,
        /* On a processor without end. A graphics card goes on with it after the worker's death, and
         * the next job waits for that: over within a second or so. */
        .iterations = options->processor ? 65000 : 10 * 1000 * 1000,
    };
    open_deaths(&deaths, options);
    for (size_t i = 0; i < out->count; i++) {
        out->idle[i] = die_idle(&deaths);
    }
    for (size_t i = 0; i < out->count; i++) {
        run_good(&deaths);
        die_in_job(&deaths, &out->pidfd[i], &out->waiter[i], &out->restart[i]);
    }
    uint32_t count = 0;
    BENCH_MUST(
        bh_buffer_read(deaths.counter, 0, &count, sizeof count, BENCH_TIMEOUT_NS, &bench_why));
    if (count != 3 * out->count) {
        bench_die("the counter says %u after %zu good jobs", count, 3 * out->count);
    }
    bh_buffer_release(deaths.flag);
    bh_buffer_release(deaths.counter);
    bh_kernel_release(deaths.busy);
    bh_kernel_release(deaths.count);
    bh_stream_release(deaths.stream);
    bh_context_destroy(deaths.context);
}
