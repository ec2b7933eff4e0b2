/* Events seen from outside a wait: descriptors in a poll loop, completion callbacks. Nobody waits
 * for or queries these events before the library has told of their end. */
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd_of(bh_event *event) {
    int fd = -1;
    bh_detail detail;
    if (bh_event_fd(event, &fd, &detail) != BH_OK) {
        BHT_FAIL("bh_event_fd: %s", detail.message);
    }
    BHT_GE(fd, 0);
    return fd;
}

static bool readable(int fd, int milliseconds) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    BHT_GE(poll(&poll_fd, 1, milliseconds), 0);
    return poll_fd.revents == POLLIN;
}

static void expect_readable(int fd) {
    BHT_TRUE(readable(fd, (int)(FX_SECONDS / FX_MS)));
    BHT_TRUE(readable(fd, 0)); /* stays so */
    BHT_EQ(close(fd), 0);
}

/* -- descriptors ------------------------------------------------------------------------------- */

enum { MANY = 100, ODD = 42 };

/* Takes |count| events out of the loop, all of them in |state|, and their descriptors. */
static void reap(int epoll, bh_event *const *events, int *fds, int count, bh_event_state state) {
    while (count > 0) {
        struct epoll_event ready[16];
        int n = epoll_wait(epoll, ready, 16, (int)(FX_SECONDS / FX_MS));
        BHT_GT(n, 0);
        for (int i = 0; i < n; i++, count--) {
            uint32_t index = ready[i].data.u32;
            BHT_EQ(bh_event_query(events[index]), state);
            BHT_EQ(epoll_ctl(epoll, EPOLL_CTL_DEL, fds[index], NULL), 0);
            BHT_EQ(close(fds[index]), 0);
        }
    }
    BHT_EQ(count, 0);
}

static void an_epoll_loop(void) {
    struct stage s = stage_set_up();
    bh_stream *streams[4] = {s.a, s.b, fx_stream(s.context, "c", BH_FOREVER),
                             fx_stream(s.context, "d", BH_FOREVER)};
    pid_t doomed = fx_ready(streams[3]);
    bh_buffer *other = fx_words(s.context, 64, 0);
    bh_event *bad = fx_gate(streams[3], s.kernel, other);
    fx_await_gate(other);
    int epoll = epoll_create1(EPOLL_CLOEXEC), fds[MANY];
    bh_event *events[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        bh_event *waits[] = {s.running, bad};
        events[i] = work(s.context, streams[i % 4], waits, i == ODD ? 2 : 1);
        fds[i] = fd_of(events[i]);
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = i};
        BHT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &want), 0);
    }
    struct epoll_event none;
    BHT_EQ(epoll_wait(epoll, &none, 1, 0), 0);
    fx_kill(doomed, SIGKILL);
    reap(epoll, events, fds, 1, BH_EVENT_POISONED);
    BHT_EQ(bh_event_query(events[ODD]), BH_EVENT_POISONED);
    BHT_EQ(epoll_wait(epoll, &none, 1, 0), 0);
    fx_open(s.word);
    reap(epoll, events, fds, MANY - 1, BH_EVENT_READY);
    close(epoll);
    for (int i = 0; i < MANY; i++) {
        bh_event_release(events[i]);
    }
    bh_event_release(bad);
    bh_buffer_release(other);
    bh_stream_release(streams[2]);
    bh_stream_release(streams[3]);
    stage_tear_down(&s);
}

static void a_descriptor_after_the_end(void) {
    struct stage s = stage_set_up();
    fx_kill(s.pid, SIGKILL);
    fx_expect(s.running, BH_WORKER_SIGNAL);
    bh_event *good = work(s.context, s.b, NULL, 0);
    fx_expect(good, BH_OK);
    bh_event *ended[] = {s.running, good};
    for (int i = 0; i < 2; i++) {
        int one = fd_of(ended[i]), two = fd_of(ended[i]);
        BHT_NE(one, two);
        BHT_TRUE(readable(one, 0));
        /* Reading one empties that one only. */
        uint64_t count = 0;
        BHT_EQ(read(one, &count, sizeof count), (ssize_t)sizeof count);
        BHT_EQ(count, 1);
        BHT_TRUE(!readable(one, 0));
        BHT_EQ(read(one, &count, sizeof count), -1);
        BHT_EQ(errno, EAGAIN);
        close(one);
        expect_readable(two);
    }
    bh_event_release(good);
    stage_tear_down(&s);
}

/* Its number is somebody else's then, who must not be told. */
static void a_descriptor_that_is_closed_early(void) {
    struct stage s = stage_set_up();
    int closed = fd_of(s.running), kept = fd_of(s.running);
    BHT_EQ(close(closed), 0);
    int stranger = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BHT_EQ(stranger, closed);
    fx_open(s.word);
    expect_readable(kept);
    /* The two are told in this order. */
    BHT_TRUE(!readable(stranger, 0));
    close(stranger);
    fx_expect(s.running, BH_OK);
    stage_tear_down(&s);
}

/* What was put back when its worker died is noticed on the next one, too. */
static void descriptors_and_a_death(void) {
    struct stage s = stage_set_up();
    bh_event *innocent = work(s.context, s.a, NULL, 0);
    bh_event *reader = fill(s.b, s.gate, &s.running, 1);
    int guilty_fd = fd_of(s.running), innocent_fd = fd_of(innocent), reader_fd = fd_of(reader);
    BHT_TRUE(!readable(innocent_fd, 0));
    fx_kill(s.pid, SIGKILL);
    expect_readable(guilty_fd);
    expect_readable(reader_fd);
    expect_readable(innocent_fd);
    fx_expect(s.running, BH_WORKER_SIGNAL);
    fx_expect(reader, BH_WORKER_SIGNAL);
    fx_expect(innocent, BH_OK);
    bh_event_release(innocent);
    bh_event_release(reader);
    stage_tear_down(&s);
}

/* A worker rings by itself when it goes to sleep. Here it goes on with the next at once, and has to
 * ring for what is observed; the second time for one that was put back. */
static void noticed_while_the_worker_goes_on(void) {
    struct stage s = stage_set_up();
    enum { GATES = 4 };
    bh_buffer *gates[GATES];
    bh_event *events[GATES];
    volatile uint32_t *words[GATES];
    for (int i = 0; i < GATES; i++) {
        gates[i] = fx_words(s.context, 64, 0);
        words[i] = fx_pointer(gates[i]);
    }
    int fd = fd_of(s.running);
    events[0] = fx_gate(s.a, s.kernel, gates[0]);
    fx_open(s.word);
    expect_readable(fd);
    fx_await_gate(gates[0]);

    events[1] = fx_gate(s.a, s.kernel, gates[1]);
    events[2] = fx_gate(s.a, s.kernel, gates[2]);
    fd = fd_of(events[2]);
    fx_kill(s.pid, SIGKILL);
    /* On another worker. A kernel's first run there says something over the channel, and that has
     * the reactor look, too: so it is the second run that counts. */
    fx_await_gate(gates[1]);
    fx_open(words[1]);
    fx_await_gate(gates[2]);
    events[3] = fx_gate(s.a, s.kernel, gates[3]);
    BHT_TRUE(!readable(fd, 0));
    fx_open(words[2]);
    expect_readable(fd);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_PENDING);
    fx_open(words[3]);
    for (int i = 0; i < GATES; i++) {
        fx_expect(events[i], i ? BH_OK : BH_WORKER_SIGNAL);
        bh_event_release(events[i]);
        bh_buffer_release(gates[i]);
    }
    stage_tear_down(&s);
}

/* It needs nothing of what the caller has. */
static void a_descriptor_is_all_that_is_kept(void) {
    struct stage s = stage_set_up();
    bh_event *queued = work(s.context, s.a, NULL, 0);
    int running_fd = fd_of(s.running), queued_fd = fd_of(queued), destroyed_fd;
    bh_event_release(queued);
    stage_let_go(&s);
    BHT_TRUE(!readable(running_fd, 0));
    fx_open(s.word);
    expect_readable(running_fd);
    expect_readable(queued_fd);
    BHT_EQ(bh_context_destroy(s.context), BH_OK);

    s = stage_set_up();
    destroyed_fd = fd_of(s.running);
    BHT_TRUE(!readable(destroyed_fd, 0));
    BHT_EQ(bh_context_destroy(s.context), BH_OK);
    expect_readable(destroyed_fd);
    expect_readable(fd_of(s.running));
    fx_expect(s.running, BH_CONTEXT_CLOSED);
    stage_let_go(&s);
}

static void no_descriptor_is_left(void) {
    struct stage s = stage_set_up();
    struct rlimit before, low;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest = dup(0);
    BHT_GE(lowest, 0);
    close(lowest);
    size_t count = bht_count_self().descriptors;
    /* Not even one; and one, but the library needs two. */
    for (rlim_t more = 0; more < 2; more++) {
        low = (struct rlimit){.rlim_cur = (rlim_t)lowest + more, .rlim_max = before.rlim_max};
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
        bh_detail detail = {0};
        int fd = 99;
        bh_status status = bh_event_fd(s.running, &fd, &detail);
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        BHT_EQ(status, BH_SYSTEM);
        BHT_EQ(detail.sys_errno, EMFILE);
        BHT_STR_HAS(detail.message, more ? "fcntl" : "eventfd");
        BHT_EQ(fd, -1);
        BHT_EQ(bht_count_self().descriptors, count);
    }
    int fd = fd_of(s.running);
    fx_open(s.word);
    expect_readable(fd);
    stage_tear_down(&s);
}

static void never(bh_event *event, void *user) {
    (void)event;
    (void)user;
    abort();
}

/* The child is refused, but the descriptor that it has inherited works. */
static void a_forked_child(void) {
    struct stage s = stage_set_up();
    int inherited = fd_of(s.running), told[2];
    BHT_EQ(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = 99;
        size_t index;
        bh_event *events[] = {s.running, s.running};
        bool refused = bh_event_fd(s.running, &fd, NULL) == BH_FORKED && fd == -1 &&
                       bh_event_on_end(s.running, never, NULL, NULL) == BH_FORKED &&
                       bh_event_wait_any(events, 2, 0, &index) == BH_FORKED &&
                       bh_event_wait_all(events, 2, 0, &index) == BH_FORKED &&
                       bh_context_synchronize(s.context, 0, NULL) == BH_FORKED &&
                       bh_context_reset(s.context, NULL) == BH_FORKED &&
                       bh_context_destroy(s.context) == BH_FORKED && !readable(inherited, 0);
        if (write(told[1], "x", 1) != 1 || !readable(inherited, 20000)) {
            refused = false;
        }
        _exit(refused ? 0 : 1);
    }
    char byte;
    BHT_EQ(read(told[0], &byte, 1), 1);
    close(told[0]);
    close(told[1]);
    fx_open(s.word);
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    expect_readable(inherited);
    stage_tear_down(&s);
}

/* -- callbacks --------------------------------------------------------------------------------- */

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
    int fd = fd_of(late), next_fd = fd_of(next);
    expect_readable(fd);
    fx_expect(late, BH_DEADLINE);
    fx_expect_healthy(s.context, s.b);
    fx_open(s.word);
    expect_readable(next_fd);
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
    BHT_EQ(bh_event_on_end(event, never, NULL, &detail), BH_CLOSED);
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
    BHT_EQ(bh_event_on_end(queued, never, NULL, &detail), BH_CLOSED);
    BHT_EQ(detail.status, BH_CLOSED);
    bh_event_release(queued);
    stage_let_go(&s);
}

static void bad_arguments(void) {
    struct stage s = stage_set_up();
    bh_detail detail;
    int fd = 99;
    BHT_EQ(bh_event_fd(NULL, &fd, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(fd, -1);
    BHT_EQ(bh_event_fd(s.running, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "out_fd");
    BHT_EQ(bh_event_on_end(NULL, never, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_on_end(s.running, NULL, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "callback is NULL");
    BHT_EQ(bh_context_synchronize(NULL, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_context_reset(NULL, &detail), BH_INVALID_ARGUMENT);
    stage_tear_down(&s);
}

int main(int argc, char **argv) {
    static const struct bht_test TESTS[] = {
        BHT_TEST(an_epoll_loop),
        BHT_TEST(a_descriptor_after_the_end),
        BHT_TEST(a_descriptor_that_is_closed_early),
        BHT_TEST(descriptors_and_a_death),
        BHT_TEST(noticed_while_the_worker_goes_on),
        BHT_TEST(a_descriptor_is_all_that_is_kept),
        BHT_TEST(no_descriptor_is_left),
        BHT_TEST(a_forked_child),
        BHT_TEST(callbacks_run_in_order),
        BHT_TEST(callbacks_and_a_death),
        BHT_TEST(a_callback_submits_the_next),
        BHT_TEST(a_callback_must_not_block),
        BHT_TEST(a_slow_callback_delays_callbacks_only),
        BHT_TEST(destroy_runs_what_was_registered),
        BHT_TEST(bad_arguments),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
