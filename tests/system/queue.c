/* Completion queues. Nobody waits for or queries these events before the queue has given them. */
#include "stage.h"
#include "tamper.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

static bh_queue *make_queue(void) {
    bh_queue *queue = NULL;
    BHT_EQ(bh_queue_create(&queue, NULL), BH_OK);
    return queue;
}

static void add(bh_queue *queue, bh_event *event, uint64_t user_data) {
    BHT_EQ(bh_queue_add(queue, event, user_data, NULL), BH_OK);
}

/* Adds |event|, of which the queue has the only reference then. */
static void give_to(bh_queue *queue, bh_event *event, uint64_t user_data) {
    add(queue, event, user_data);
    bh_event_release(event);
}

static bool is_readable(bh_queue *queue) {
    return stage_readable(bh_queue_fd(queue), 0);
}

static void expect_empty(bh_queue *queue) {
    bh_completion none;
    size_t count = 99;
    BHT_TRUE(!is_readable(queue));
    BHT_EQ(bh_queue_take(queue, BH_NOW, &none, 1, &count), BH_TIMEOUT);
    BHT_EQ(count, 0);
}

/* Waits for the next one, and returns its status. */
static bh_status expect_next(bh_queue *queue, uint64_t user_data) {
    bh_completion next;
    size_t count = 99;
    BHT_TRUE(stage_readable(bh_queue_fd(queue), (int)(FX_SECONDS / FX_MS)));
    BHT_TRUE(is_readable(queue)); /* stays so until it is taken */
    BHT_EQ(bh_queue_take(queue, BH_NOW, &next, 1, &count), BH_OK);
    BHT_EQ(count, 1);
    BHT_EQ(next.user_data, user_data);
    BHT_EQ(next.status, bh_event_wait(next.event, 0));
    bh_event_release(next.event);
    return next.status;
}

/* -- however they end -------------------------------------------------------------------------- */

static void open_the_gate(struct stage *s) {
    fx_open(s->word);
}
static void kill_the_worker(struct stage *s) {
    fx_kill(s->pid, SIGKILL);
}
static void kill_the_zygote(struct stage *s) {
    fx_kill(fx_parent(s->pid), SIGKILL);
}
static void cancel_it(struct stage *s) {
    BHT_EQ(bh_event_cancel(s->running), BH_OK);
}
static void destroy_the_context(struct stage *s) {
    BHT_EQ(bh_context_destroy(s->context), BH_OK);
}

/* E6, E9: the one that runs, one that depends on it and one behind it, each added twice, are given
 * exactly once for each time, in the order in which they end: of |certain| of them it is known. */
TEST(each_is_given_once_however_it_ends) {
    static const struct {
        void (*end)(struct stage *s);
        bh_status of[3]; /* running, dependent, behind */
        size_t certain;
    } WAYS[] = {
        {open_the_gate, {BH_OK, BH_OK, BH_OK}, 2},
        {kill_the_worker, {BH_WORKER_SIGNAL, BH_WORKER_SIGNAL, BH_OK}, 6},
        {kill_the_zygote, {BH_ZYGOTE_LOST, BH_ZYGOTE_LOST, BH_OK}, 6},
        {cancel_it, {BH_CANCELLED, BH_CANCELLED, BH_OK}, 6},
        {destroy_the_context, {BH_CONTEXT_CLOSED, BH_CONTEXT_CLOSED, BH_CONTEXT_CLOSED}, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(WAYS); i++) {
        struct stage s = stage_set_up();
        bh_queue *queue = make_queue();
        bh_event *dependent = fill(s.b, s.gate, &s.running, 1);
        bh_event *behind = work(s.context, s.a, NULL, 0);
        add(queue, behind, 4);
        give_to(queue, behind, 5);
        add(queue, s.running, 0);
        add(queue, s.running, 1);
        add(queue, dependent, 2);
        give_to(queue, dependent, 3);
        expect_empty(queue);
        WAYS[i].end(&s);
        bh_completion given[6];
        bool is_given[6] = {false};
        for (size_t got = 0, count; got < 6; got += count) {
            BHT_EQ(bh_queue_take(queue, FX_SECONDS, given + got, 6 - got, &count), BH_OK);
        }
        expect_empty(queue);
        for (size_t j = 0; j < 6; j++) {
            const uint64_t user_data = given[j].user_data;
            BHT_TRUE(user_data < 6 && !is_given[user_data]);
            BHT_EQ(given[j].status, WAYS[i].of[user_data / 2]);
            BHT_EQ(given[j].status, bh_event_wait(given[j].event, 0));
            BHT_EQ(user_data, j % 2 ? given[j - 1].user_data + 1 : user_data / 2 * 2);
            BHT_TRUE(j >= WAYS[i].certain || user_data == j);
            is_given[user_data] = true;
            bh_event_release(given[j].event);
        }
        fx_release_all();
    }
}

/* READY, POISONED, and of a context that is no more: after those that wait to be taken. */
TEST(an_event_that_has_ended_is_given_at_once) {
    struct stage s = stage_set_up();
    bh_queue *queue = make_queue();
    bh_event *good = work(s.context, s.b, NULL, 0);
    fx_expect(good, BH_OK);
    kill_the_worker(&s);
    fx_expect(s.running, BH_WORKER_SIGNAL);
    add(queue, good, 1);
    add(queue, s.running, 2);
    destroy_the_context(&s);
    give_to(queue, good, UINT64_MAX);
    BHT_EQ(expect_next(queue, 1), BH_OK);
    BHT_EQ(expect_next(queue, 2), BH_WORKER_SIGNAL);
    BHT_EQ(expect_next(queue, UINT64_MAX), BH_OK);
    expect_empty(queue);
}

/* A worker rings by itself when it goes to sleep. Here it goes on with the next at once, and has to
 * ring for what is queued; the second time for one that was put back. */
TEST(a_busy_worker_rings_for_what_is_queued) {
    struct stage s = stage_set_up();
    enum { GATES = 4 };
    bh_queue *queue = make_queue();
    bh_buffer *gates[GATES];
    bh_event *events[GATES];
    volatile uint32_t *words[GATES];
    for (int i = 0; i < GATES; i++) {
        gates[i] = fx_words(s.context, 64, 0);
        words[i] = fx_pointer(gates[i]);
    }
    add(queue, s.running, 1);
    events[0] = fx_gate(s.a, s.kernel, gates[0]);
    fx_open(s.word);
    BHT_EQ(expect_next(queue, 1), BH_OK);
    fx_await_gate(gates[0]);

    events[1] = fx_gate(s.a, s.kernel, gates[1]);
    events[2] = fx_gate(s.a, s.kernel, gates[2]);
    add(queue, events[2], 2);
    fx_kill(s.pid, SIGKILL);
    /* On another worker. A kernel's first run there says something over the channel, and that has
     * the reactor look, too: so it is the second run that counts. */
    fx_await_gate(gates[1]);
    fx_open(words[1]);
    fx_await_gate(gates[2]);
    events[3] = fx_gate(s.a, s.kernel, gates[3]);
    expect_empty(queue);
    fx_open(words[2]);
    BHT_EQ(expect_next(queue, 2), BH_OK);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_PENDING);
    fx_open(words[3]);
    for (int i = 0; i < GATES; i++) {
        fx_expect(events[i], i ? BH_OK : BH_WORKER_SIGNAL);
    }
}

/* -- one loop, two contexts -------------------------------------------------------------------- */

enum { MANY = 100, ODD = 42 };

TEST(one_loop_takes_the_events_of_two_contexts) {
    struct stage s = stage_set_up(), t = stage_set_up();
    bh_queue *queue = make_queue();
    bh_stream *streams[4] = {s.a, s.b, t.a, t.b};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event want = {.events = EPOLLIN}, ready;
    BHT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, bh_queue_fd(queue), &want), 0);
    uint64_t last[4] = {0}; /* of each stream, the newest that was given */
    bool is_given[MANY] = {false};
    for (uint64_t i = 0; i < MANY; i++) {
        struct stage *at = i % 4 < 2 ? &s : &t;
        bh_event *event = work(at->context, streams[i % 4], &at->running, 1);
        if (i == ODD) {
            BHT_EQ(bh_event_cancel(event), BH_OK);
        }
        give_to(queue, event, i);
    }
    BHT_EQ(expect_next(queue, ODD), BH_CANCELLED);
    BHT_EQ(epoll_wait(epoll, &ready, 1, 0), 0);
    fx_open(s.word), fx_open(t.word);
    for (size_t left = MANY - 1, count; left > 0; left -= count) {
        bh_completion given[16];
        BHT_EQ(epoll_wait(epoll, &ready, 1, (int)(FX_SECONDS / FX_MS)), 1);
        BHT_EQ(bh_queue_take(queue, BH_NOW, given, 16, &count), BH_OK);
        for (size_t i = 0; i < count; i++) {
            const uint64_t user_data = given[i].user_data;
            BHT_EQ(given[i].status, BH_OK);
            BHT_TRUE(!is_given[user_data]);
            is_given[user_data] = true;
            BHT_GE(user_data, last[user_data % 4]);
            last[user_data % 4] = user_data;
            bh_event_release(given[i].event);
        }
    }
    BHT_EQ(epoll_wait(epoll, &ready, 1, 0), 0);
    expect_empty(queue);
    close(epoll);
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { THREADS = 4, EACH = 100, ALL = THREADS * EACH };

struct crowd {
    struct stage s;
    bh_queue *queue;
    _Atomic uint32_t adders, given[ALL], total;
};

static void *add_some(void *argument) {
    struct crowd *crowd = argument;
    const uint32_t number = atomic_fetch_add(&crowd->adders, 1);
    bh_buffer *buffer = fx_buffer(crowd->s.context, 64);
    for (uint32_t i = 0; i < EACH; i++) {
        give_to(crowd->queue, fill(i % 2 ? crowd->s.a : crowd->s.b, buffer, NULL, 0),
                (uint64_t)number * EACH + i);
    }
    bh_buffer_release(buffer);
    return NULL;
}

static void *take_some(void *argument) {
    struct crowd *crowd = argument;
    while (atomic_load(&crowd->total) < ALL) {
        bh_completion given[3];
        size_t count;
        const bh_status status = bh_queue_take(crowd->queue, 10 * FX_MS, given, 3, &count);
        BHT_TRUE(status == BH_OK ? count >= 1 : status == BH_TIMEOUT && count == 0);
        for (size_t i = 0; i < count; i++) {
            atomic_fetch_add(&crowd->given[given[i].user_data], 1);
            atomic_fetch_add(&crowd->total, 1);
            bh_event_release(given[i].event);
        }
    }
    return NULL;
}

TEST(threads_that_add_and_take_get_each_event_once) {
    static struct crowd crowd;
    crowd = (struct crowd){.s = stage_set_up(), .queue = make_queue()};
    for (int i = 0; i < 2 * THREADS; i++) {
        bht_start(i % 2 ? add_some : take_some, &crowd);
    }
    fx_kill(crowd.s.pid, SIGKILL); /* what is behind the gate runs elsewhere */
    bht_join();
    for (int i = 0; i < ALL; i++) {
        BHT_EQ(atomic_load(&crowd.given[i]), 1);
    }
    expect_empty(crowd.queue);
}

/* E10: an empty queue has a thread wait until its timeout, or until another thread adds one. */
static void *take_one(void *argument) {
    bh_completion given;
    size_t count;
    BHT_EQ(bh_queue_take(argument, BH_FOREVER, &given, 1, &count), BH_OK);
    BHT_EQ(given.user_data, 7);
    bh_event_release(given.event);
    return NULL;
}

TEST(a_wait_ends_at_its_timeout_or_with_an_event) {
    struct stage s = stage_set_up();
    bh_queue *queue = make_queue();
    bh_completion none;
    size_t count = 99;
    add(queue, s.running, 7);
    BHT_EQ(bh_queue_take(queue, 20 * FX_MS, &none, 1, &count), BH_TIMEOUT);
    BHT_EQ(count, 0);
    bht_start(take_one, queue);
    fx_open(s.word);
    bht_join();
    expect_empty(queue);
}

/* -- the end of a queue, of descriptors, of a process ------------------------------------------ */

/* Pending ones end all the same, and nobody is told. */
TEST(destroying_a_queue_releases_its_events) {
    struct stage s = stage_set_up();
    const size_t descriptors = bht_count_self().descriptors;
    bh_queue *queue = make_queue();
    BHT_EQ(bht_count_self().descriptors, descriptors + 1);
    bh_event *ended = work(s.context, s.b, NULL, 0), *queued = work(s.context, s.a, NULL, 0);
    give_to(queue, ended, 1);
    BHT_TRUE(stage_readable(bh_queue_fd(queue), (int)(FX_SECONDS / FX_MS)));
    give_to(queue, queued, 2);
    add(queue, s.running, 3);
    BHT_NE(bh_event_id(queued), 0);
    bh_queue_destroy(queue);
    BHT_EQ(bh_event_id(ended), 0);
    BHT_EQ(bh_event_id(queued), 0);
    fx_open(s.word);
    fx_expect(s.running, BH_OK);
    BHT_EQ(bh_context_synchronize(s.context, FX_SECONDS, NULL), BH_OK);
}

TEST(only_a_new_queue_needs_a_descriptor) {
    struct stage s = stage_set_up();
    struct rlimit before, low;
    bh_queue *queue = make_queue(), *other = queue;
    bh_detail detail = {0};
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* The first that is free: with less, poll() fails in ZeroMQ's threads, which abort then. */
    const int free_one = dup(0);
    BHT_GE(free_one, 0);
    close(free_one);
    low = (struct rlimit){.rlim_cur = (rlim_t)free_one, .rlim_max = before.rlim_max};
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    const bh_status status = bh_queue_create(&other, &detail);
    add(queue, s.running, 1);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    BHT_EQ(status, BH_SYSTEM);
    BHT_EQ(detail.sys_errno, EMFILE);
    BHT_TRUE(!other);
    fx_open(s.word);
    BHT_EQ(expect_next(queue, 1), BH_OK);
}

/* It takes nothing of its parent's, and does not make the parent's descriptor unreadable. */
TEST(a_forked_child_is_refused) {
    struct stage s = stage_set_up();
    bh_queue *queue = make_queue();
    bh_event *ended = work(s.context, s.b, NULL, 0);
    fx_expect(ended, BH_OK);
    add(queue, ended, 1);
    const int fd = bh_queue_fd(queue);
    pid_t child = fork();
    if (child == 0) {
        bh_completion given;
        size_t count = 99, index;
        bh_queue *own = NULL;
        bh_event *events[] = {s.running, s.running};
        const bool refused = bh_queue_take(queue, BH_NOW, &given, 1, &count) == BH_FORKED &&
                             count == 0 && bh_queue_add(queue, ended, 2, NULL) == BH_FORKED &&
                             bh_queue_fd(queue) == -1 &&
                             bh_queue_create(&own, NULL) == BH_OK && /* one of its own */
                             bh_queue_add(own, s.running, 2, NULL) == BH_FORKED &&
                             bh_event_wait_any(events, 2, 0, &index) == BH_FORKED &&
                             bh_event_wait_all(events, 2, 0, &index) == BH_FORKED &&
                             bh_context_synchronize(s.context, 0, NULL) == BH_FORKED &&
                             bh_context_reset(s.context, NULL) == BH_FORKED &&
                             bh_context_destroy(s.context) == BH_FORKED;
        bh_queue_destroy(own);
        bh_queue_destroy(queue);
        _exit(refused && stage_readable(fd, 0) ? 0 : 1);
    }
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    BHT_EQ(expect_next(queue, 1), BH_OK);
    expect_empty(queue);
}

TEST(bad_arguments_are_refused) {
    struct stage s = stage_set_up();
    bh_detail detail;
    bh_queue *queue = make_queue();
    bh_completion given;
    size_t count = 99;
    BHT_EQ(bh_queue_create(NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_add(NULL, s.running, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_add(queue, NULL, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_RELEASED);
    BHT_EQ(bh_queue_take(NULL, 0, &given, 1, &count), BH_INVALID_ARGUMENT);
    BHT_EQ(count, 0);
    BHT_EQ(bh_queue_take(queue, 0, NULL, 1, &count), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_take(queue, 0, &given, 0, &count), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_take(queue, 0, &given, 1, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_fd(NULL), -1);
    bh_queue_destroy(queue);
    bh_queue_destroy(queue); /* as any object: a second time does nothing */
    BHT_EQ(bh_queue_fd(queue), -1);
    BHT_EQ(bh_queue_add(queue, s.running, 0, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_queue_take(queue, BH_FOREVER, &given, 1, &count), BH_INVALID_ARGUMENT);
    bh_queue_destroy(NULL);
    BHT_EQ(bh_context_synchronize(NULL, 0, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_context_reset(NULL, &detail), BH_INVALID_ARGUMENT);
}
