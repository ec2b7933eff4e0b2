#include "base/futex.h"
#include "ipc/channel.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zmq.h>

#define SOON_MS 5000

struct fixture {
    void *context;
    char folder[64], path[96];
    struct bhi_channel host, worker;
    int listener; /* the worker's end; -1: taken */
    int before;
};

static int set_up(void **state) {
    static struct fixture f;
    f = (struct fixture){.host.fd = -1, .worker.fd = -1};
    f.before = count_fds();
    snprintf(f.folder, sizeof f.folder, "/tmp/bulkhead-channel-XXXXXX");
    if (!mkdtemp(f.folder))
        return -1;
    snprintf(f.path, sizeof f.path, "%s/w", f.folder);
    f.context = zmq_ctx_new();
    if (bhi_channel_open(&f.host, f.context, f.path, &f.listener))
        return -1;
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    bhi_channel_close(&f->worker);
    bhi_channel_close(&f->host);
    zmq_ctx_term(f->context);
    if (f->listener >= 0)
        close(f->listener);
    assert_int_equal(rmdir(f->folder), 0);
    assert_int_equal(count_fds(), f->before);
    return 0;
}

static int receive(struct bhi_channel *channel, enum bhi_direction direction, int timeout_ms,
                   struct bhi_message *out) {
    char why[160];
    int rc = bhi_channel_recv(channel, direction, BHI_WS_ANY, timeout_ms, out, why, sizeof why);
    if (rc == -EBADMSG || rc == -EPROTO)
        assert_true(strlen(why) > 0);
    return rc;
}

static struct bhi_message hello(uint64_t worker) {
    return (struct bhi_message){.type = BHI_MSG_HELLO,
                                .hello = {.protocol = BHI_WIRE_VERSION, .worker = worker}};
}

static struct bhi_message log_line(char fill) {
    struct bhi_message m = {.type = BHI_MSG_LOG, .log = {.level = 2}};
    memset(m.log.text, fill, sizeof m.log.text - 1);
    return m;
}

static void connect_worker(struct fixture *f) {
    struct bhi_message m = hello(7), out;
    assert_int_equal(bhi_channel_accept(&f->worker, f->listener), 0);
    f->listener = -1;
    assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
    assert_int_equal(out.type, BHI_MSG_HELLO);
    assert_int_equal(out.hello.worker, 7);
}

static void test_both_ways(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = {.type = BHI_MSG_BUFFER_DETACH, .buffer_detach = {.buffer = 5}}, out;
    assert_int_equal(receive(&f->host, BHI_W2S, 0, &out), -EAGAIN);
    connect_worker(f);
    assert_int_equal(receive(&f->worker, BHI_S2W, 0, &out), -EAGAIN);
    for (uint64_t i = 1; i <= 40; i++) {
        m.buffer_detach.buffer = i;
        assert_int_equal(bhi_channel_send(&f->host, &m), 0);
    }
    for (uint64_t i = 1; i <= 40; i++) {
        assert_int_equal(receive(&f->worker, BHI_S2W, SOON_MS, &out), 0);
        assert_int_equal(out.type, BHI_MSG_BUFFER_DETACH);
        assert_int_equal(out.buffer_detach.buffer, i);
    }
    /* A time limit is kept, and not by returning at once. */
    uint64_t start = bhi_now_ns();
    assert_int_equal(receive(&f->worker, BHI_S2W, 20, &out), -EAGAIN);
    assert_true(bhi_now_ns() - start >= 19000000);
    /* The wrong way, and a bad field, which does not harm the next message. */
    m.buffer_detach.buffer = 1;
    assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), -EPROTO);
    m = hello(8);
    assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
    /* What we would send is checked. */
    m.hello.worker = 0;
    assert_int_equal(bhi_channel_send(&f->worker, &m), -EINVAL);
}

static void test_states(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = hello(7), out;
    char why[160];
    connect_worker(f);
    assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
    assert_int_equal(
        bhi_channel_recv(&f->host, BHI_W2S, BHI_WS_RUNNING, SOON_MS, &out, why, sizeof why),
        -EPROTO);
    assert_non_null(strstr(why, "hello"));
}

/* The reactor waits for the descriptor, then receives until -EAGAIN: nothing is left behind. */
static void test_edge_triggered(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = log_line('x'), out;
    connect_worker(f);
    while (receive(&f->host, BHI_W2S, 0, &out) == 0)
        ;
    unsigned sent = 0, got = 0;
    while (got < 500) {
        while (sent < 500 && sent - got < 20) {
            assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
            sent++;
        }
        struct pollfd p = {f->host.fd, POLLIN, 0};
        assert_int_equal(poll(&p, 1, SOON_MS), 1);
        int rc;
        while ((rc = receive(&f->host, BHI_W2S, 0, &out)) == 0)
            got++;
        assert_int_equal(rc, -EAGAIN);
    }
}

static void test_peer_never_reads(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = {.type = BHI_MSG_SHUTDOWN}, out;
    connect_worker(f);
    int rc, sent = 0;
    while ((rc = bhi_channel_send(&f->host, &m)) == 0)
        assert_true(++sent < 100000);
    assert_int_equal(rc, -EAGAIN);
    /* Once it reads, all that was taken arrives, and there is room again. */
    for (int i = 0; i < sent; i++) {
        assert_int_equal(receive(&f->worker, BHI_S2W, SOON_MS, &out), 0);
        assert_int_equal(out.type, BHI_MSG_SHUTDOWN);
    }
    uint64_t deadline = bhi_deadline_ns(SOON_MS * 1000000ull);
    while ((rc = bhi_channel_send(&f->host, &m)) == -EAGAIN && bhi_now_ns() < deadline)
        receive(&f->host, BHI_W2S, 1, &out);
    assert_int_equal(rc, 0);
}

static void test_peer_goes(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = hello(9), out;
    connect_worker(f);
    assert_int_equal(bhi_channel_send(&f->worker, &m), 0);
    /* The host goes first: the worker is told, also where it waits for ever. */
    bhi_channel_close(&f->host);
    assert_int_equal(receive(&f->worker, BHI_S2W, -1, &out), -EPIPE);
    assert_int_equal(bhi_channel_send(&f->worker, &m), -EPIPE);
}

static void test_worker_goes(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = {.type = BHI_MSG_SHUTDOWN}, out;
    connect_worker(f);
    bhi_channel_close(&f->worker);
    int rc;
    uint64_t deadline = bhi_deadline_ns(SOON_MS * 1000000ull);
    do
        assert_int_equal(receive(&f->host, BHI_W2S, 1, &out), -EAGAIN);
    while ((rc = bhi_channel_send(&f->host, &m)) != -EPIPE && bhi_now_ns() < deadline);
    assert_int_equal(rc, -EPIPE);
}

static void test_refusals(void **state) {
    struct fixture *f = *state;
    struct bhi_channel c;
    char path[256];
    int listener = 0;
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(bhi_channel_open(&c, f->context, path, &listener), -ENAMETOOLONG);
    assert_int_equal(bhi_channel_open(&c, f->context, "/nonexistent/w", &listener), -ENOENT);
    assert_int_equal(bhi_channel_open(&c, f->context, "relative", &listener), -EINVAL);
    assert_int_equal(listener, -1);
    /* What does not listen; what is no socket. */
    assert_int_equal(bhi_channel_accept(&c, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                     -EINVAL);
    assert_int_equal(bhi_channel_accept(&c, open("/dev/null", O_RDONLY | O_CLOEXEC)), -ENOTSOCK);
    assert_int_equal(bhi_channel_accept(&c, -1), -EBADF);
    bhi_channel_close(&c);
    bhi_channel_close(NULL);
}

/* There is nothing left in the folder that anybody else could connect to. */
static void test_no_way_in(void **state) {
    struct fixture *f = *state;
    struct stat info;
    assert_int_equal(stat(f->path, &info), -1);
    connect_worker(f);
}

/* -- a peer that is not libzmq ------------------------------------------------------------- */

/* The connection that waits for the worker. */
static int accept_raw(struct fixture *f) {
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int encode(const struct bhi_message *m, uint8_t *out) {
    int length = bhi_wire_encode(m, out, BHI_WIRE_MAX);
    assert_true(length > 0);
    return length;
}

static void send_all(int fd, const void *bytes, size_t length) {
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void test_byte_by_byte_and_all_at_once(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = hello(3), out;
    uint8_t bytes[BHI_WIRE_MAX * 4];
    int length = encode(&m, bytes);
    int fd = accept_raw(f);
    for (int i = 0; i < length; i++) {
        assert_int_equal(receive(&f->host, BHI_W2S, i % 7 ? 0 : 2, &out), -EAGAIN);
        send_all(fd, bytes + i, 1);
    }
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
    assert_int_equal(out.hello.worker, 3);
    size_t total = 0, count = 0;
    m = log_line('y');
    while (total + BHI_WIRE_MAX <= sizeof bytes) {
        total += (size_t)encode(&m, bytes + total);
        count++;
    }
    /* Cut at a bad place on purpose. */
    send_all(fd, bytes, 1000);
    send_all(fd, bytes + 1000, total - 1000);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
        assert_memory_equal(out.log.text, m.log.text, sizeof m.log.text);
    }
    assert_int_equal(receive(&f->host, BHI_W2S, 0, &out), -EAGAIN);
    close(fd);
}

static void test_garbage(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = hello(3), out;
    uint8_t bytes[BHI_WIRE_MAX];
    int fd = accept_raw(f);
    send_all(fd, "GET / HTTP/1.1\r\n", 16);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), -EBADMSG);
    /* There is no finding back into a stream that was lost. */
    send_all(fd, bytes, (size_t)encode(&m, bytes));
    assert_int_equal(receive(&f->host, BHI_W2S, 50, &out), -EBADMSG);
    assert_int_equal(receive(&f->host, BHI_W2S, 0, &out), -EBADMSG);
    close(fd);
}

static void test_length_lies(void **state) {
    static const uint32_t lengths[] = {BHI_WIRE_MAX - BHI_WIRE_HEADER + 1, 0x7fffffff, 0xffffffff,
                                       0xfffffff4};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct bhi_channel host;
        struct bhi_message m = hello(3), out;
        uint8_t bytes[BHI_WIRE_MAX];
        char path[96];
        int listener;
        snprintf(path, sizeof path, "%s/l", f->folder);
        assert_int_equal(bhi_channel_open(&host, f->context, path, &listener), 0);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(fd >= 0);
        close(listener);
        encode(&m, bytes);
        memcpy(bytes + 8, &lengths[i], 4);
        send_all(fd, bytes, BHI_WIRE_HEADER);
        assert_int_equal(receive(&host, BHI_W2S, SOON_MS, &out), -EBADMSG);
        close(fd);
        bhi_channel_close(&host);
    }
    /* A length that is too short for the message: refused, and the stream goes on behind it. */
    struct bhi_message m = hello(3), out;
    uint8_t bytes[2 * BHI_WIRE_MAX];
    int length = encode(&m, bytes);
    bytes[8] -= 4;
    int second = encode(&m, bytes + length - 4);
    int fd = accept_raw(f);
    send_all(fd, bytes, (size_t)(length - 4 + second));
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), -EBADMSG);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
    close(fd);
}

/* The last words of a worker that dies are read after its death. */
static void test_last_words(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = hello(3), out;
    uint8_t bytes[BHI_WIRE_MAX];
    int length = encode(&m, bytes);
    int fd = accept_raw(f);
    send_all(fd, bytes, (size_t)length);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
    m = log_line('z');
    length = encode(&m, bytes);
    for (int i = 0; i < 30; i++)
        send_all(fd, bytes, (size_t)length);
    close(fd);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), 0);
        assert_int_equal(out.type, BHI_MSG_LOG);
    }
    assert_int_equal(receive(&f->host, BHI_W2S, 50, &out), -EAGAIN);
}

static long resident_kib(void) {
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A peer that writes as fast as it can, to a supervisor that is busy elsewhere: after some hundred
 * kilobytes it has to wait, and nothing grows here. */
static void flood(struct fixture *f, const void *unit, size_t length) {
    static uint8_t bytes[1 << 16];
    size_t filled = 0;
    while (filled + length <= sizeof bytes) {
        memcpy(bytes + filled, unit, length);
        filled += length;
    }
    int fd = accept_raw(f);
    struct timeval patience = {.tv_usec = 300000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
    long before = resident_kib();
    size_t total = 0;
    for (ssize_t n = 1; n > 0 && total < 64u << 20;) {
        n = send(fd, bytes, filled, MSG_NOSIGNAL);
        if (n > 0)
            total += (size_t)n;
        if (n > 0 && (size_t)n < filled)
            break;
    }
    assert_true(total < 4u << 20);
#ifndef BHI_SANITIZED
    assert_true(resident_kib() - before < 8 * 1024);
#else
    (void)before;
#endif
    close(fd);
}

static void test_flood_of_messages(void **state) {
    struct fixture *f = *state;
    struct bhi_message m = log_line('f'), out;
    uint8_t bytes[BHI_WIRE_MAX];
    flood(f, bytes, (size_t)encode(&m, bytes));
    /* What did arrive is still good. */
    int rc, got = 0;
    while ((rc = receive(&f->host, BHI_W2S, 200, &out)) == 0)
        got++;
    assert_int_equal(rc, -EAGAIN);
    assert_true(got > 10);
}

/* The frames of ZeroMQ's own protocol that say "more to come": with a PAIR socket these were held
 * without any limit. */
static void test_flood_of_parts(void **state) {
    struct fixture *f = *state;
    struct bhi_message out;
    static const uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    uint8_t bytes[128];
    memset(bytes, 1, sizeof bytes); /* flags 1: more; length 1; one byte; … */
    int fd = accept_raw(f);
    send_all(fd, greeting, sizeof greeting);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), -EBADMSG);
    close(fd);
    bhi_channel_close(&f->host);
    close(f->listener);
    assert_int_equal(bhi_channel_open(&f->host, f->context, f->path, &f->listener), 0);
    flood(f, bytes, sizeof bytes);
    assert_int_equal(receive(&f->host, BHI_W2S, SOON_MS, &out), -EBADMSG);
}

int __real_zmq_close(void *socket);
int __wrap_zmq_close(void *socket);
static bool thorough; /* zmq_close has closed all when it returns; else a thread of libzmq's does */
int __wrap_zmq_close(void *socket) {
    int fd = -1;
    size_t size = sizeof fd;
    const bool wait = thorough && !zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
    const int rc = __real_zmq_close(socket);
    const uint64_t deadline = bhi_deadline_ns(SOON_MS * UINT64_C(1000000));
    while (wait && fcntl(fd, F_GETFD) >= 0 && bhi_now_ns() < deadline)
        sched_yield();
    return rc;
}

/* However few descriptors there are, it says so: libzmq, which connects in a thread of its own,
 * does not, and nobody may wait long for what it never does. What a try that failed gives back, at
 * once or later, is no room for the next. */
static void test_open_without_descriptors(void **state) {
    struct fixture *f = *state;
    struct rlimit limit, small;
    char path[112];
    int error = -EMFILE, refused = 0;
    snprintf(path, sizeof path, "%s/x", f->folder);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    thorough = true;
    for (rlim_t room = 0; error == -EMFILE && room < 16; room++) {
        struct bhi_channel channel;
        int listener, lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
        assert_true(lowest >= 0);
        close(lowest);
        small = limit;
        small.rlim_cur = (rlim_t)lowest + room;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
        error = bhi_channel_open(&channel, f->context, path, &listener);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        refused += error != 0;
        if (!error) {
            close(listener);
            bhi_channel_close(&channel);
        }
    }
    thorough = false;
    assert_int_equal(error, 0);
    assert_true(refused >= 3); /* the listener, libzmq's own, the connection */
}

/* libzmq's thread is late: the first connection is made when it has been given up. */
static struct {
    bool late;
    struct sockaddr_un first; /* where that one leads */
    int stray;
} connecting = {.stray = -1};

int __real_zmq_connect(void *from, const char *endpoint);
int __wrap_zmq_connect(void *from, const char *endpoint);
int __wrap_zmq_connect(void *from, const char *endpoint) {
    static const char scheme[] = "ipc://";
    if (!connecting.late)
        return __real_zmq_connect(from, endpoint);
    if (connecting.first.sun_family != AF_UNIX) {
        connecting.first.sun_family = AF_UNIX;
        snprintf(connecting.first.sun_path, sizeof connecting.first.sun_path, "%s",
                 endpoint + strlen(scheme));
        return 0;
    }
    connecting.late = false;
    connecting.stray = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(connecting.stray, (struct sockaddr *)&connecting.first, sizeof connecting.first);
    return __real_zmq_connect(from, endpoint);
}

static void test_a_late_connection_is_nobodys(void **state) {
    struct fixture *f = *state;
    bhi_channel_close(&f->host);
    close(f->listener);
    connecting.late = true;
    assert_int_equal(bhi_channel_open(&f->host, f->context, f->path, &f->listener), 0);
    assert_false(connecting.late); /* it has been tried twice */
    connect_worker(f);
    close(connecting.stray);
}

#define WITH_CHANNEL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_CHANNEL(test_both_ways),
        WITH_CHANNEL(test_open_without_descriptors),
        WITH_CHANNEL(test_states),
        WITH_CHANNEL(test_edge_triggered),
        WITH_CHANNEL(test_peer_never_reads),
        WITH_CHANNEL(test_peer_goes),
        WITH_CHANNEL(test_worker_goes),
        WITH_CHANNEL(test_refusals),
        WITH_CHANNEL(test_byte_by_byte_and_all_at_once),
        WITH_CHANNEL(test_garbage),
        WITH_CHANNEL(test_length_lies),
        WITH_CHANNEL(test_last_words),
        WITH_CHANNEL(test_flood_of_messages),
        WITH_CHANNEL(test_flood_of_parts),
        WITH_CHANNEL(test_no_way_in),
        WITH_CHANNEL(test_a_late_connection_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
