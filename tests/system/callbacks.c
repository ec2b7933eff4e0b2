/* Completion callbacks. Nobody waits for or queries these events before their callback has run. */
#include "stage.h"
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

struct call {
    bh_event *event;
    int user;
    bh_event_state state;
    bh_status status;
    pthread_t thread;
};
static struct call calls[64];
static _Atomic int call_count;

static void record(bh_event *event, void *user) {
    int i = atomic_load(&call_count);
    BHT_LT(i, BHT_COUNT(calls));
    calls[i] = (struct call){.event = event,
                             .user = (int)(intptr_t)user,
                             .state = bh_event_query(event),
                             .status = bh_event_wait(event, BH_FOREVER),
                             .thread = pthread_self()};
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    BHT_EQ(sigismember(&mask, SIGINT), 1);
    atomic_store(&call_count, i + 1);
}

static void on_end(bh_event *event, bh_event_callback callback, void *user) {
    bh_detail detail;
    if (bh_event_on_end(event, callback, user, &detail) != BH_OK) {
        BHT_FAIL("bh_event_on_end: %s", detail.message);
    }
}

static void on_end_record(bh_event *event, int user) {
    on_end(event, record, (void *)(intptr_t)user);
}

static void await_calls(int count) {
    WAIT_UNTIL(atomic_load(&call_count) >= count, 20000);
    BHT_EQ(atomic_load(&call_count), count);
}

/* In the order of the ends, not of registration; those of one event in the order of registration;
 * all in one thread, that is not this one. */
static void callbacks_run_in_order(void) {
    struct stage s = stage_set_up();
    size_t threads = bht_count_self().threads;
    bh_event *second = work(s.context, s.a, NULL, 0), *third = work(s.context, s.a, NULL, 0);
    bh_event *events[] = {s.running, second, third};
    for (int i = 2; i >= 0; i--) {
        on_end_record(events[i], 2 * i);
        on_end_record(events[i], 2 * i + 1);
    }
    if (!BHT_TSAN) {
        BHT_EQ(bht_count_self().threads, threads + 1);
    }
    BHT_EQ(atomic_load(&call_count), 0);
    fx_open(s.word);
    await_calls(6);
    for (int i = 0; i < 6; i++) {
        BHT_EQ(calls[i].user, i);
        BHT_TRUE(calls[i].event == events[i / 2]);
        BHT_EQ(calls[i].state, BH_EVENT_READY);
        BHT_EQ(calls[i].status, BH_OK);
        BHT_TRUE(pthread_equal(calls[i].thread, calls[0].thread));
        BHT_TRUE(!pthread_equal(calls[i].thread, pthread_self()));
    }
    /* After the end: the same thread, once. */
    on_end_record(third, 6);
    await_calls(7);
    BHT_TRUE(pthread_equal(calls[6].thread, calls[0].thread));
    bh_event_release(second);
    bh_event_release(third);
    stage_tear_down(&s);
    BHT_EQ(atomic_load(&call_count), 7);
}

/* The poisoned one, its dependent, and the one that is put back and runs elsewhere. */
static void callbacks_and_a_death(void) {
    struct stage s = stage_set_up();
    bh_event *reader = work(s.context, s.b, &s.running, 1);
    bh_event *innocent = work(s.context, s.a, NULL, 0);
    on_end_record(innocent, 3);
    on_end_record(s.running, 1);
    on_end_record(reader, 2);
    fx_kill(s.pid, SIGKILL);
    await_calls(3);
    for (int i = 0; i < 3; i++) {
        BHT_EQ(calls[i].user, i + 1);
    }
    BHT_EQ(calls[0].status, BH_WORKER_SIGNAL);
    BHT_EQ(calls[0].state, BH_EVENT_POISONED);
    BHT_EQ(calls[1].status, BH_WORKER_SIGNAL);
    BHT_EQ(calls[2].status, BH_OK);
    bh_event_release(reader);
    bh_event_release(innocent);
    stage_tear_down(&s);
}

struct chain {
    struct stage *stage;
    int left;
    sem_t done;
};

/* Drops the last reference but the library's, and goes on using the event. */
static void go_on(bh_event *event, void *user) {
    struct chain *chain = user;
    bh_event_release(event);
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    BHT_EQ(bh_event_wait(event, 0), BH_OK);
    if (--chain->left == 0) {
        sem_post(&chain->done);
        return;
    }
    bh_event *next = work(chain->stage->context, chain->stage->b, NULL, 0);
    on_end(next, go_on, chain);
}

static void await_post(sem_t *semaphore) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20 * (time_t)bht_slowness();
    while (sem_timedwait(semaphore, &limit) != 0) {
        BHT_EQ(errno, EINTR);
    }
}

static void a_callback_submits_the_next(void) {
    struct stage s = stage_set_up();
    struct chain chain = {.stage = &s, .left = 50};
    sem_init(&chain.done, 0, 0);
    on_end(work(s.context, s.b, NULL, 0), go_on, &chain);
    await_post(&chain.done);
    sem_destroy(&chain.done);
    stage_tear_down(&s);
}

static sem_t finished;

/* Nothing here may sleep, and nothing does. */
static void try_to_block(bh_event *event, void *user) {
    struct stage *s = user;
    bh_event *two[] = {s->running, s->running};
    bh_detail detail;
    size_t index = 9;
    void *pointer;
    BHT_EQ(bh_event_wait(s->running, FX_SECONDS), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait(s->running, 0), BH_TIMEOUT);
    BHT_EQ(bh_event_wait_any(two, 2, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_any(two, 1, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_any(two, 2, 0, &index), BH_TIMEOUT);
    BHT_EQ(bh_event_wait_all(two, 2, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_all(two, 2, 0, NULL), BH_TIMEOUT);
    BHT_EQ(bh_stream_synchronize(s->a, BH_FOREVER, &detail), BH_IN_CALLBACK);
    BHT_EQ(bh_stream_synchronize(s->a, 0, &detail), BH_TIMEOUT);
    BHT_EQ(bh_context_synchronize(s->context, BH_FOREVER, &detail), BH_IN_CALLBACK);
    BHT_EQ(detail.status, BH_IN_CALLBACK);
    BHT_EQ(bh_context_synchronize(s->context, 0, &detail), BH_TIMEOUT);
    BHT_EQ(bh_buffer_map(s->gate, BH_MAP_READ, BH_FOREVER, &pointer, &detail), BH_IN_CALLBACK);
    BHT_EQ(bh_buffer_map(s->gate, BH_MAP_READ, 0, &pointer, &detail), BH_TIMEOUT);
    bh_stream *fresh = fx_stream(s->context, "fresh", FX_SECONDS);
    BHT_EQ(bh_stream_wait_ready(fresh, BH_FOREVER, &detail), BH_IN_CALLBACK);
    BHT_EQ(bh_stream_wait_ready(fresh, 0, &detail), BH_TIMEOUT);
    bh_stream_release(fresh);
    bh_kernel_info *info = malloc(sizeof *info);
    info->struct_size = sizeof *info;
    BHT_EQ(bh_kernel_reflect(s->kernel, s->b, BH_FOREVER, info, &detail), BH_IN_CALLBACK);
    free(info);
    BHT_EQ(bh_devices(s->context, NULL, 0, &index, &detail), BH_IN_CALLBACK);
    BHT_EQ(bh_doctor(s->context, NULL, 0, &index, &detail), BH_IN_CALLBACK);
    BHT_STR_HAS(detail.message, "callback");
    BHT_EQ(bh_context_destroy(s->context), BH_IN_CALLBACK);
    bh_context *other = fx_context(NULL); /* a context of another's is no different */
    BHT_EQ(bh_context_destroy(other), BH_IN_CALLBACK);
    /* What need not wait is done. */
    bh_event *mixed[] = {s->running, event};
    BHT_EQ(bh_event_wait_any(mixed, 2, BH_FOREVER, &index), BH_OK);
    BHT_EQ(index, 1);
    bh_event *ended[] = {event, event};
    BHT_EQ(bh_event_wait_all(ended, 2, BH_FOREVER, &index), BH_OK);
    BHT_EQ(bh_event_wait(event, BH_FOREVER), BH_OK);
    BHT_EQ(bh_stream_wait_ready(s->b, BH_FOREVER, &detail), BH_OK);
    BHT_EQ(bh_stream_synchronize(s->b, BH_FOREVER, &detail), BH_OK);
    s->context = other;
    sem_post(&finished);
}

static void a_callback_must_not_block(void) {
    struct stage s = stage_set_up();
    bh_context *context = s.context;
    sem_init(&finished, 0, 0);
    bh_event *event = work(s.context, s.b, NULL, 0);
    on_end(event, try_to_block, &s);
    await_post(&finished);
    BHT_EQ(bh_context_destroy(s.context), BH_OK); /* the one that it has made */
    s.context = context;
    BHT_EQ(bh_event_query(s.running), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(s.running, BH_OK);
    bh_event_release(event);
    sem_destroy(&finished);
    stage_tear_down(&s);
}

static sem_t may_return;

static void be_slow(bh_event *event, void *user) {
    record(event, user);
    await_post(&may_return);
}

/* Streams, deaths, deadlines and descriptors go on. Callbacks wait. */
static void a_slow_callback_delays_callbacks_only(void) {
    struct stage s = stage_set_up();
    sem_init(&may_return, 0, 0);
    bh_event *first = work(s.context, s.b, NULL, 0), *next = work(s.context, s.a, NULL, 0);
    on_end(first, be_slow, NULL);
    on_end_record(next, 1);
    await_calls(1);
    bh_stream *hasty = fx_stream(s.context, "hasty", 50 * FX_MS);
    bh_buffer *gate = fx_words(s.context, 64, 0);
    bh_event *late = fx_gate(hasty, s.kernel, gate);
    int fd = stage_fd(late), next_fd = stage_fd(next);
    stage_expect_readable(fd);
    fx_expect(late, BH_DEADLINE);
    fx_expect_healthy(s.context, s.b);
    fx_open(s.word);
    stage_expect_readable(next_fd);
    fx_expect(next, BH_OK);
    on_end_record(next, 2);
    await_calls(1);
    sem_post(&may_return);
    await_calls(3);
    sem_destroy(&may_return);
    bh_event_release(first);
    bh_event_release(next);
    bh_event_release(late);
    bh_buffer_release(gate);
    bh_stream_release(hasty);
    stage_tear_down(&s);
}

/* Is there a thread of this process with a name that begins so? */
static bool has_thread(const char *name) {
    bool found = false;
    DIR *dir = opendir("/proc/self/task");
    BHT_TRUE(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(comm, sizeof comm, file)) {
            found = found || strncmp(comm, name, strlen(name)) == 0;
        }
        if (file) {
            fclose(file);
        }
    }
    closedir(dir);
    return found;
}

/* Stays until bh_context_destroy waits for nothing but callbacks: its own threads are gone, and the
 * one that called it sleeps. */
static void outlast_the_rest(bh_event *event, void *user) {
    (void)event;
    WAIT_UNTIL(!has_thread("bulkhead\n") && !has_thread("ZMQ"), 20000);
    WAIT_UNTIL(bht_process_state((pid_t)(intptr_t)user) == 'S', 20000);
}

static void record_and_register(bh_event *event, void *user) {
    record(event, user);
    bh_detail detail;
    BHT_EQ(bh_event_on_end(event, stage_never, NULL, &detail), BH_CLOSED);
}

/* All have run when it returns, what is registered after that is refused. */
static void destroy_runs_what_was_registered(void) {
    struct stage s = stage_set_up();
    bh_event *queued = work(s.context, s.a, NULL, 0);
    bh_event *ended = work(s.context, s.b, NULL, 0);
    fx_expect(ended, BH_OK);
    on_end(ended, outlast_the_rest, (void *)(intptr_t)getpid());
    bh_event_release(ended);
    for (int i = 0; i < 10; i++) {
        on_end(i % 2 ? queued : s.running, record_and_register, (void *)(intptr_t)i);
    }
    BHT_EQ(bh_context_destroy(s.context), BH_OK);
    BHT_EQ(atomic_load(&call_count), 10);
    for (int i = 0; i < 10; i++) {
        BHT_EQ(calls[i].status, BH_CONTEXT_CLOSED);
    }
    bh_detail detail;
    BHT_EQ(bh_event_on_end(queued, stage_never, NULL, &detail), BH_CLOSED);
    BHT_EQ(detail.status, BH_CLOSED);
    bh_event_release(queued);
    stage_let_go(&s);
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(callbacks_run_in_order),
        BHT_TEST(callbacks_and_a_death),
        BHT_TEST(a_callback_submits_the_next),
        BHT_TEST(a_callback_must_not_block),
        BHT_TEST(a_slow_callback_delays_callbacks_only),
        BHT_TEST(destroy_runs_what_was_registered),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
