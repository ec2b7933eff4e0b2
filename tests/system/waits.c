/* Waiting for many: any, all, everything in a context; from many threads at once. */
#include "stage.h"
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

/* -- all and any ------------------------------------------------------------------------------- */

TEST(wait_all_waits_for_all) {
    struct stage s = stage_set_up();
    size_t index = 99;
    BHT_EQ(bh_event_wait_all(NULL, 0, 0, &index), BH_OK);
    BHT_EQ(index, 0);
    BHT_EQ(bh_event_wait_all(NULL, 0, 0, NULL), BH_OK);
    BHT_EQ(bh_event_wait_all(NULL, 1, 0, &index), BH_INVALID_ARGUMENT);
    bh_event *good = work(s.context, s.b, NULL, 0);
    bh_event *holed[] = {good, NULL};
    BHT_EQ(bh_event_wait_all(holed, 2, 0, &index), BH_INVALID_ARGUMENT);
    BHT_EQ(index, 2);
    BHT_EQ(bh_event_wait_any(holed, 2, 0, &index), BH_INVALID_ARGUMENT);
    bh_event *ready[] = {good, good, good};
    BHT_EQ(bh_event_wait_all(ready, 3, FX_SECONDS, &index), BH_OK);
    BHT_EQ(index, 3);
    BHT_EQ(bh_event_wait_all(ready, 1, 0, &index), BH_OK);

    /* A poisoned one does not end the wait: another is still pending. */
    bh_stream *c = fx_stream(s.context, "c", BH_FOREVER);
    pid_t pid = fx_ready(c);
    bh_event *bad = fx_hold(s.context, c).event;
    bh_event *heir = work(s.context, s.b, &bad, 1);
    fx_kill(pid, SIGABRT);
    fx_expect(heir, BH_WORKER_SIGNAL);
    bh_event *mixed[] = {good, s.running, heir, bad, s.running};
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_event_wait_all(mixed, 5, i * 20 * FX_MS, &index), BH_TIMEOUT);
        BHT_EQ(index, 1);
        BHT_EQ(bh_event_query(s.running), BH_EVENT_PENDING);
    }
    fx_open(s.word);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_event_wait_all(mixed, 5, FX_SECONDS, &index), BH_WORKER_SIGNAL);
        BHT_EQ(index, 2); /* the first in the array, not the first that failed */
        BHT_EQ(bh_event_query(s.running), BH_EVENT_READY);
    }
    BHT_EQ(bh_event_wait_all(mixed, 5, 0, NULL), BH_WORKER_SIGNAL);
}

TEST(wait_any_takes_the_first) {
    struct stage s = stage_set_up();
    bh_event *good = work(s.context, s.b, NULL, 0);
    fx_expect(good, BH_OK);
    bh_event *held = work(s.context, s.b, &s.running, 1);
    size_t index = 99;
    bh_event *twice[] = {s.running, s.running, held};
    for (int i = 0; i < 2; i++) {
        index = 99;
        BHT_EQ(bh_event_wait_any(twice, 3, i * 20 * FX_MS, &index), BH_TIMEOUT);
        BHT_EQ(index, 3);
    }
    BHT_EQ(bh_event_query(s.running), BH_EVENT_PENDING);
    bh_event *ended[] = {s.running, good, good};
    BHT_EQ(bh_event_wait_any(ended, 3, 0, &index), BH_OK);
    BHT_EQ(index, 1);
    bh_event *last[] = {held, s.running, s.running};
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(bh_event_wait_any(last, 3, FX_SECONDS, &index), BH_OK);
    BHT_LE(index, 1);
    BHT_EQ(bh_event_wait_any(&s.running, 1, FX_SECONDS, &index), BH_OK);
    BHT_EQ(index, 0);
    fx_expect(held, BH_WORKER_SIGNAL);
}

TEST(events_of_two_contexts) {
    struct stage s = stage_set_up(), t = stage_set_up();
    bh_event *both[] = {s.running, t.running};
    size_t index = 99;
    BHT_EQ(bh_event_wait_any(both, 2, 0, &index), BH_TIMEOUT);
    fx_open(t.word);
    BHT_EQ(bh_event_wait_any(both, 2, FX_SECONDS, &index), BH_OK);
    BHT_EQ(index, 1);
    BHT_EQ(bh_event_wait_all(both, 2, 20 * FX_MS, &index), BH_TIMEOUT);
    BHT_EQ(index, 0);
    fx_kill(s.pid, SIGKILL);
    BHT_EQ(bh_event_wait_all(both, 2, FX_SECONDS, &index), BH_WORKER_SIGNAL);
    BHT_EQ(index, 0);
}

/* -- many -------------------------------------------------------------------------------------- */

enum { MANY = 10000, BUFFERS = 50, ENDS = 500 };

struct sleeper {
    bh_event **events;
    _Atomic bool sleeps;
    size_t index;
    bh_status any, all;
    long switches;
};

static void *sleep_over_many(void *argument) {
    struct sleeper *sleeper = argument;
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    atomic_store(&sleeper->sleeps, true);
    sleeper->any = bh_event_wait_any(sleeper->events, MANY, 3 * FX_SECONDS, &sleeper->index);
    getrusage(RUSAGE_THREAD, &after);
    sleeper->switches = after.ru_nvcsw - before.ru_nvcsw;
    sleeper->all = bh_event_wait_all(sleeper->events, MANY, 3 * FX_SECONDS, NULL);
    return NULL;
}

/* A thread that waits for ten thousand is not woken by the ends of others; or each of them would
 * cost it a look at all of its own. */
TEST(ten_thousand_events) {
    struct stage s = stage_set_up();
    static bh_event *events[MANY];
    bh_buffer *buffers[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = fx_buffer(s.context, 64);
    }
    for (int i = 0; i < MANY; i++) {
        events[i] = fill(s.a, buffers[i % BUFFERS], NULL, 0); /* behind the gate */
    }
    struct sleeper sleeper = {.events = events};
    bht_start(sleep_over_many, &sleeper);
    WAIT_UNTIL(atomic_load(&sleeper.sleeps), 20000);
    for (int i = 0; i < ENDS; i++) {
        fx_expect(work(s.context, s.b, NULL, 0), BH_OK);
    }
    BHT_EQ(bh_event_query(events[0]), BH_EVENT_PENDING);
    fx_open(s.word);
    bht_join();
    BHT_EQ(sleeper.any, BH_OK);
    BHT_LT(sleeper.index, MANY);
    BHT_EQ(sleeper.all, BH_OK);
    BHT_LT(sleeper.switches, ENDS / 2);
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { THREADS = 16, SHARED = 8 };

struct observer {
    int number;
    bh_context *context;
    bh_event **events; /* the first half ends badly */
    pthread_barrier_t *start;
};

static void *observe_all_ways(void *argument) {
    struct observer *o = argument;
    bh_event *const *events = o->events;
    bh_queue *queue = NULL;
    size_t index = 99;
    BHT_EQ(bh_queue_create(&queue, NULL), BH_OK);
    pthread_barrier_wait(o->start);
    for (int i = 0; i < SHARED; i++) {
        BHT_EQ(bh_queue_add(queue, events[i], (uint64_t)i, NULL), BH_OK);
    }
    BHT_TRUE(bh_event_wait_all(events, SHARED, 0, &index) != BH_OK);
    switch (o->number % 4) {
    case 0:
        BHT_EQ(bh_event_wait_all(events, SHARED, FX_SECONDS, &index), BH_WORKER_SIGNAL);
        BHT_EQ(index, 0);
        break;
    case 1:
        for (int i = 0; i < SHARED; i++) {
            BHT_EQ(bh_event_wait_any(&events[i], (size_t)(SHARED - i), FX_SECONDS, &index), BH_OK);
        }
        break;
    case 2:
        BHT_EQ(bh_context_synchronize(o->context, FX_SECONDS, NULL), BH_WORKER_SIGNAL);
        break;
    default:
        for (int i = 0; i < SHARED; i++) {
            BHT_EQ(bh_event_wait(events[i], FX_SECONDS), i < SHARED / 2 ? BH_WORKER_SIGNAL : BH_OK);
        }
    }
    for (int i = 0; i < SHARED; i++) {
        bh_completion given;
        BHT_EQ(bh_queue_take(queue, FX_SECONDS, &given, 1, &index), BH_OK);
        BHT_EQ(given.status, given.user_data < SHARED / 2 ? BH_WORKER_SIGNAL : BH_OK);
        bh_event_release(given.event);
    }
    bh_queue_destroy(queue);
    return NULL;
}

TEST(sixteen_threads_on_the_same_events) {
    struct stage s = stage_set_up();
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS + 1);
    bh_event *events[SHARED];
    /* The gate's heirs on the other stream, then what is put back. */
    for (int i = 0; i < SHARED; i++) {
        events[i] =
            i < SHARED / 2 ? work(s.context, s.b, &s.running, 1) : work(s.context, s.a, NULL, 0);
    }
    struct observer observers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        observers[i] =
            (struct observer){.number = i, .context = s.context, .events = events, .start = &start};
        bht_start(observe_all_ways, &observers[i]);
    }
    pthread_barrier_wait(&start);
    fx_kill(s.pid, SIGKILL);
    bht_join();
    pthread_barrier_destroy(&start);
}

/* -- the whole context ------------------------------------------------------------------------- */

TEST(drain_of_a_context) {
    struct stage s = stage_set_up();
    bh_detail detail;
    bh_event *held = work(s.context, s.b, &s.running, 1);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_context_synchronize(s.context, i * 20 * FX_MS, &detail), BH_TIMEOUT);
    }
    BHT_EQ(detail.status, BH_TIMEOUT);
    BHT_EQ(bh_event_query(s.running), BH_EVENT_PENDING);
    fx_open(s.word);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, &detail), BH_OK);
    BHT_EQ(bh_event_query(held), BH_EVENT_READY);
    BHT_EQ(bh_context_synchronize(s.context, 0, &detail), BH_OK);

    /* Two failures: the earliest is reported, again and again, until it is reset. */
    bh_event *early = fx_hold(s.context, s.a).event, *late = fx_hold(s.context, s.b).event;
    fx_kill(fx_ready(s.b), SIGABRT);
    fx_expect(late, BH_WORKER_SIGNAL);
    BHT_EQ(bh_event_cancel(early), BH_OK);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, &detail), BH_CANCELLED);
        BHT_STR_HAS(detail.message, "stream a");
    }
    BHT_EQ(bh_context_reset(s.context, NULL), BH_OK); /* a is still there */
    BHT_EQ(bh_context_synchronize(s.context, 0, &detail), BH_CANCELLED);
    BHT_EQ(bh_stream_reset(s.a, NULL), BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, 0, &detail), BH_WORKER_SIGNAL);
    BHT_STR_HAS(detail.message, "SIGABRT");
    BHT_EQ(bh_stream_reset(s.b, NULL), BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, 0, &detail), BH_OK);
}

/* The last that is known of them is what they had submitted: it is waited for, and a failure is
 * reported, whether it comes before the drain, during it, or with the stream's end. */
TEST(drain_of_released_streams) {
    struct stage s = stage_set_up();
    bh_detail detail;
    bh_event_release(work(s.context, s.a, NULL, 0)); /* fire and forget */
    bh_stream_release(s.a);
    BHT_EQ(bh_context_synchronize(s.context, 20 * FX_MS, &detail), BH_TIMEOUT);
    bh_stream *c = fx_stream(s.context, "c", BH_FOREVER);
    pid_t pid = fx_ready(c);
    bh_event *later = fx_hold(s.context, c).event;
    bh_stream_release(c);
    fx_kill(pid, SIGABRT);
    fx_expect(later, BH_WORKER_SIGNAL); /* c is gone */
    BHT_EQ(bh_context_synchronize(s.context, 0, &detail), BH_TIMEOUT);
    BHT_EQ(bh_event_cancel(s.running), BH_OK);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, &detail), BH_CANCELLED);
        BHT_STR_HAS(detail.message, "stream a");
    }
    BHT_EQ(bh_context_reset(s.context, &detail), BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, &detail), BH_OK);
    BHT_EQ(bh_event_wait(s.running, 0), BH_CANCELLED);
}

struct submitter {
    struct stage *stage;
    _Atomic bool stop;
    _Atomic uint64_t submitted;
};

/* Always has some on the way. */
static void *submit_on_and_on(void *argument) {
    struct submitter *submitter = argument;
    enum { AHEAD = 32 };
    bh_event *events[AHEAD] = {0};
    bh_buffer *buffer = fx_buffer(submitter->stage->context, 64);
    for (int i = 0; !atomic_load(&submitter->stop); i = (i + 1) % AHEAD) {
        if (events[i]) {
            BHT_EQ(bh_event_wait(events[i], FX_SECONDS), BH_OK);
        }
        bh_event_release(events[i]);
        events[i] = fill(submitter->stage->b, buffer, NULL, 0);
        atomic_fetch_add(&submitter->submitted, 1);
    }
    for (int i = 0; i < AHEAD; i++) {
        bh_event_release(events[i]);
    }
    bh_buffer_release(buffer);
    return NULL;
}

TEST(drain_while_another_submits) {
    struct stage s = stage_set_up();
    struct submitter submitter = {.stage = &s};
    bht_start(submit_on_and_on, &submitter);
    WAIT_UNTIL(atomic_load(&submitter.submitted) > 100, 20000);
    BHT_EQ(bh_context_synchronize(s.context, 20 * FX_MS, NULL), BH_TIMEOUT); /* the gate */
    fx_open(s.word);
    for (int i = 0; i < 20; i++) {
        bh_event *last = work(s.context, s.b, NULL, 0);
        BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_OK);
        BHT_EQ(bh_event_query(last), BH_EVENT_READY);
    }
    atomic_store(&submitter.stop, true);
    bht_join();
}

struct drainer {
    bh_context *context;
    _Atomic pid_t tid;
    bh_status status;
};

static void *drain_it(void *argument) {
    struct drainer *drainer = argument;
    atomic_store(&drainer->tid, gettid());
    drainer->status = bh_context_synchronize(drainer->context, FX_SECONDS, NULL);
    return NULL;
}

/* What comes after the call does not hold it up, even if it never ends. */
TEST(drain_leaves_the_later_ones_alone) {
    struct stage s = stage_set_up();
    struct drainer drainer = {.context = s.context};
    bht_start(drain_it, &drainer);
    WAIT_UNTIL(atomic_load(&drainer.tid) && bht_process_state(atomic_load(&drainer.tid)) == 'S',
               20000);
    bh_event *endless = fx_hold(s.context, s.b).event;
    fx_open(s.word);
    bht_join();
    BHT_EQ(drainer.status, BH_OK);
    BHT_EQ(bh_event_query(endless), BH_EVENT_PENDING);
}

/* -- where nothing may wait -------------------------------------------------------------------- */

static void try_to_wait(void *user) {
    struct stage *s = user;
    bh_event *two[] = {s->running, s->running};
    bh_detail detail;
    bh_queue *queue = NULL;
    bh_completion given;
    size_t index = 9;
    void *pointer;
    BHT_EQ(bh_event_wait(s->running, FX_SECONDS), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait(s->running, 0), BH_TIMEOUT);
    BHT_EQ(bh_event_wait_any(two, 2, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_any(two, 1, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_any(two, 2, 0, &index), BH_TIMEOUT);
    BHT_EQ(bh_event_wait_all(two, 2, BH_FOREVER, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_event_wait_all(two, 2, 0, NULL), BH_TIMEOUT);
    BHT_EQ(bh_queue_create(&queue, &detail), BH_OK);
    BHT_EQ(bh_queue_take(queue, BH_FOREVER, &given, 1, &index), BH_IN_CALLBACK);
    BHT_EQ(bh_queue_take(queue, BH_NOW, &given, 1, &index), BH_TIMEOUT);
    bh_queue_destroy(queue);
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
    BHT_EQ(detail.reason, BH_REASON_CALLBACK);
    BHT_EQ(bh_context_destroy(s->context), BH_IN_CALLBACK);
    /* What need not wait is done. */
    BHT_EQ(bh_stream_wait_ready(s->b, BH_FOREVER, &detail), BH_OK);
    BHT_EQ(bh_stream_synchronize(s->b, BH_FOREVER, &detail), BH_OK);
}

TEST(nothing_waits_in_a_log_callback) {
    struct stage s = stage_set_up();
    fx_in_log_callback(try_to_wait, &s);
    BHT_EQ(bh_event_query(s.running), BH_EVENT_PENDING);
    fx_open(s.word);
    fx_expect(s.running, BH_OK);
}

/* -- the end of the context -------------------------------------------------------------------- */

struct waiter {
    struct stage *stage;
    int way;
    _Atomic pid_t tid; /* once it is about to wait */
    bh_status status;
};

static void *wait_one_way(void *argument) {
    struct waiter *w = argument;
    bh_event *two[] = {w->stage->running, w->stage->running};
    size_t index;
    atomic_store(&w->tid, gettid());
    if (w->way == 0) {
        w->status = bh_event_wait_all(two, 2, FX_SECONDS, NULL);
    } else if (w->way == 1 && bh_event_wait_any(two, 2, FX_SECONDS, &index) == BH_OK) {
        w->status = bh_event_wait(two[index], 0);
    } else if (w->way == 2) {
        w->status = bh_context_synchronize(w->stage->context, FX_SECONDS, NULL);
    }
    return NULL;
}

TEST(destroy_wakes_all_ways) {
    struct stage s = stage_set_up();
    struct waiter waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){.stage = &s, .way = i, .status = BH_OK};
        bht_start(wait_one_way, &waiters[i]);
        WAIT_UNTIL(atomic_load(&waiters[i].tid) &&
                       bht_process_state(atomic_load(&waiters[i].tid)) == 'S',
                   20000);
    }
    BHT_EQ(bh_context_destroy(s.context), BH_OK);
    bht_join();
    for (int i = 0; i < 3; i++) {
        BHT_EQ(waiters[i].status, BH_CONTEXT_CLOSED);
    }
}
