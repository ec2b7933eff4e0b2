/* Events seen through descriptors in a poll loop. Nobody waits for or queries these events before
 * their descriptor is readable. */
#include "stage.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
        fds[i] = stage_fd(events[i]);
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
        int one = stage_fd(ended[i]), two = stage_fd(ended[i]);
        BHT_NE(one, two);
        BHT_TRUE(stage_readable(one, 0));
        /* Reading one empties that one only. */
        uint64_t count = 0;
        BHT_EQ(read(one, &count, sizeof count), (ssize_t)sizeof count);
        BHT_EQ(count, 1);
        BHT_TRUE(!stage_readable(one, 0));
        BHT_EQ(read(one, &count, sizeof count), -1);
        BHT_EQ(errno, EAGAIN);
        close(one);
        stage_expect_readable(two);
    }
    bh_event_release(good);
    stage_tear_down(&s);
}

/* Its number is somebody else's then, who must not be told. */
static void a_descriptor_that_is_closed_early(void) {
    struct stage s = stage_set_up();
    int closed = stage_fd(s.running), kept = stage_fd(s.running);
    BHT_EQ(close(closed), 0);
    int stranger = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BHT_EQ(stranger, closed);
    fx_open(s.word);
    stage_expect_readable(kept);
    /* The two are told in this order. */
    BHT_TRUE(!stage_readable(stranger, 0));
    close(stranger);
    fx_expect(s.running, BH_OK);
    stage_tear_down(&s);
}

/* What was put back when its worker died is noticed on the next one, too. */
static void descriptors_and_a_death(void) {
    struct stage s = stage_set_up();
    bh_event *innocent = work(s.context, s.a, NULL, 0);
    bh_event *reader = fill(s.b, s.gate, &s.running, 1);
    int guilty_fd = stage_fd(s.running), innocent_fd = stage_fd(innocent),
        reader_fd = stage_fd(reader);
    BHT_TRUE(!stage_readable(innocent_fd, 0));
    fx_kill(s.pid, SIGKILL);
    stage_expect_readable(guilty_fd);
    stage_expect_readable(reader_fd);
    stage_expect_readable(innocent_fd);
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
    int fd = stage_fd(s.running);
    events[0] = fx_gate(s.a, s.kernel, gates[0]);
    fx_open(s.word);
    stage_expect_readable(fd);
    fx_await_gate(gates[0]);

    events[1] = fx_gate(s.a, s.kernel, gates[1]);
    events[2] = fx_gate(s.a, s.kernel, gates[2]);
    fd = stage_fd(events[2]);
    fx_kill(s.pid, SIGKILL);
    /* On another worker. A kernel's first run there says something over the channel, and that has
     * the reactor look, too: so it is the second run that counts. */
    fx_await_gate(gates[1]);
    fx_open(words[1]);
    fx_await_gate(gates[2]);
    events[3] = fx_gate(s.a, s.kernel, gates[3]);
    BHT_TRUE(!stage_readable(fd, 0));
    fx_open(words[2]);
    stage_expect_readable(fd);
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
    int running_fd = stage_fd(s.running), queued_fd = stage_fd(queued), destroyed_fd;
    bh_event_release(queued);
    stage_let_go(&s);
    BHT_TRUE(!stage_readable(running_fd, 0));
    fx_open(s.word);
    stage_expect_readable(running_fd);
    stage_expect_readable(queued_fd);
    BHT_EQ(bh_context_destroy(s.context), BH_OK);

    s = stage_set_up();
    destroyed_fd = stage_fd(s.running);
    BHT_TRUE(!stage_readable(destroyed_fd, 0));
    BHT_EQ(bh_context_destroy(s.context), BH_OK);
    stage_expect_readable(destroyed_fd);
    stage_expect_readable(stage_fd(s.running));
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
    int fd = stage_fd(s.running);
    fx_open(s.word);
    stage_expect_readable(fd);
    stage_tear_down(&s);
}

/* The child is refused, but the descriptor that it has inherited works. */
static void a_forked_child(void) {
    struct stage s = stage_set_up();
    int inherited = stage_fd(s.running), told[2];
    BHT_EQ(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = 99;
        size_t index;
        bh_event *events[] = {s.running, s.running};
        bool refused = bh_event_fd(s.running, &fd, NULL) == BH_FORKED && fd == -1 &&
                       bh_event_on_end(s.running, stage_never, NULL, NULL) == BH_FORKED &&
                       bh_event_wait_any(events, 2, 0, &index) == BH_FORKED &&
                       bh_event_wait_all(events, 2, 0, &index) == BH_FORKED &&
                       bh_context_synchronize(s.context, 0, NULL) == BH_FORKED &&
                       bh_context_reset(s.context, NULL) == BH_FORKED &&
                       bh_context_destroy(s.context) == BH_FORKED && !stage_readable(inherited, 0);
        if (write(told[1], "x", 1) != 1 || !stage_readable(inherited, 20000)) {
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
    stage_expect_readable(inherited);
    stage_tear_down(&s);
}

static void bad_arguments(void) {
    struct stage s = stage_set_up();
    bh_detail detail;
    int fd = 99;
    BHT_EQ(bh_event_fd(NULL, &fd, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(fd, -1);
    BHT_EQ(bh_event_fd(s.running, NULL, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, "out_fd");
    BHT_EQ(bh_event_on_end(NULL, stage_never, NULL, &detail), BH_INVALID_ARGUMENT);
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
        BHT_TEST(bad_arguments),
    };
    return bht_main(argc, argv, TESTS, BHT_COUNT(TESTS));
}
