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

#define SOON_MS (5000 * (int)bht_slowness())

static struct {
    void *context;
    char folder[64], path[96];
    struct bhi_channel host, worker;
    int listener; /* the worker's end; -1: taken */
} f = {.host.fd = -1, .worker.fd = -1};

static void set_up(void) {
    snprintf(f.folder, sizeof f.folder, "/tmp/bulkhead-channel-XXXXXX");
    BHT_TRUE(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%.63s/w", f.folder);
    f.context = zmq_ctx_new();
    BHT_EQ(bhi_channel_open(&f.host, f.context, f.path, &f.listener), 0);
}

static void tear_down(void) {
    bhi_channel_close(&f.worker);
    bhi_channel_close(&f.host);
    zmq_ctx_term(f.context);
    if (f.listener >= 0) {
        close(f.listener);
    }
    BHT_EQ(rmdir(f.folder), 0);
}

static struct bhi_message out; /* what was received last */

static int receive(struct bhi_channel *channel, enum bhi_direction direction, int timeout_ms) {
    char why[160];
    int rc = bhi_channel_recv(channel, direction, BHI_WS_ANY, timeout_ms, &out, why, sizeof why);
    if (rc == -EBADMSG || rc == -EPROTO) {
        BHT_GT(strlen(why), 0);
    }
    return rc;
}

static int from_worker(int timeout_ms) {
    return receive(&f.host, BHI_W2S, timeout_ms);
}

static int from_host(int timeout_ms) {
    return receive(&f.worker, BHI_S2W, timeout_ms);
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

static void connect_worker(void) {
    struct bhi_message m = hello(7);
    BHT_EQ(bhi_channel_accept(&f.worker, f.listener), 0);
    f.listener = -1;
    BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
    BHT_EQ(from_worker(SOON_MS), 0);
    BHT_EQ(out.type, BHI_MSG_HELLO);
    BHT_EQ(out.hello.worker, 7);
}

TEST(test_both_ways) {
    struct bhi_message m = {.type = BHI_MSG_BUFFER_DETACH, .buffer_detach = {.buffer = 5}};
    BHT_EQ(from_worker(0), -EAGAIN);
    connect_worker();
    BHT_EQ(from_host(0), -EAGAIN);
    for (uint64_t i = 1; i <= 40; i++) {
        m.buffer_detach.buffer = i;
        BHT_EQ(bhi_channel_send(&f.host, &m), 0);
    }
    for (uint64_t i = 1; i <= 40; i++) {
        BHT_EQ(from_host(SOON_MS), 0);
        BHT_EQ(out.type, BHI_MSG_BUFFER_DETACH);
        BHT_EQ(out.buffer_detach.buffer, i);
    }
    /* A time limit is kept, and not by returning at once. */
    uint64_t start = bhi_now_ns();
    BHT_EQ(from_host(20), -EAGAIN);
    BHT_GE(bhi_now_ns() - start, 19000000);
    /* The wrong way, and a bad field, which does not harm the next message. */
    m.buffer_detach.buffer = 1;
    BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
    BHT_EQ(from_worker(SOON_MS), -EPROTO);
    m = hello(8);
    BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
    BHT_EQ(from_worker(SOON_MS), 0);
    /* What we would send is checked. */
    m.hello.worker = 0;
    BHT_EQ(bhi_channel_send(&f.worker, &m), -EINVAL);
}

TEST(test_states) {
    struct bhi_message m = hello(7);
    char why[160];
    connect_worker();
    BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
    BHT_EQ(bhi_channel_recv(&f.host, BHI_W2S, BHI_WS_RUNNING, SOON_MS, &out, why, sizeof why),
           -EPROTO);
    BHT_STR_HAS(why, "hello");
}

/* The reactor waits for the descriptor, then receives until -EAGAIN: nothing is left behind. */
TEST(test_edge_triggered) {
    struct bhi_message m = log_line('x');
    connect_worker();
    while (from_worker(0) == 0)
        ;
    unsigned sent = 0, got = 0;
    while (got < 500) {
        while (sent < 500 && sent - got < 20) {
            BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
            sent++;
        }
        struct pollfd p = {f.host.fd, POLLIN, 0};
        BHT_EQ(poll(&p, 1, SOON_MS), 1);
        int rc;
        while ((rc = from_worker(0)) == 0) {
            got++;
        }
        BHT_EQ(rc, -EAGAIN);
    }
}

TEST(test_peer_never_reads) {
    struct bhi_message m = {.type = BHI_MSG_KERNEL_DESTROY, .kernel_destroy = {1}};
    connect_worker();
    int rc, sent = 0;
    while ((rc = bhi_channel_send(&f.host, &m)) == 0) {
        BHT_LT(++sent, 100000);
    }
    BHT_EQ(rc, -EAGAIN);
    /* Once it reads, all that was taken arrives, and there is room again. */
    for (int i = 0; i < sent; i++) {
        BHT_EQ(from_host(SOON_MS), 0);
        BHT_EQ(out.type, BHI_MSG_KERNEL_DESTROY);
    }
    uint64_t deadline = bhi_deadline_ns((uint64_t)SOON_MS * 1000000);
    while ((rc = bhi_channel_send(&f.host, &m)) == -EAGAIN && bhi_now_ns() < deadline) {
        from_worker(1);
    }
    BHT_EQ(rc, 0);
}

TEST(test_peer_goes) {
    struct bhi_message m = hello(9);
    connect_worker();
    BHT_EQ(bhi_channel_send(&f.worker, &m), 0);
    /* The host goes first: the worker is told, also where it waits for ever. */
    bhi_channel_close(&f.host);
    BHT_EQ(from_host(-1), -EPIPE);
    BHT_EQ(bhi_channel_send(&f.worker, &m), -EPIPE);
}

TEST(test_worker_goes) {
    struct bhi_message m = {.type = BHI_MSG_KERNEL_DESTROY, .kernel_destroy = {1}};
    connect_worker();
    bhi_channel_close(&f.worker);
    int rc;
    uint64_t deadline = bhi_deadline_ns((uint64_t)SOON_MS * 1000000);
    do {
        BHT_EQ(from_worker(1), -EAGAIN);
    } while ((rc = bhi_channel_send(&f.host, &m)) != -EPIPE && bhi_now_ns() < deadline);
    BHT_EQ(rc, -EPIPE);
}

TEST(test_refusals) {
    struct bhi_channel c;
    char path[256];
    int listener = 0;
    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    BHT_EQ(bhi_channel_open(&c, f.context, path, &listener), -ENAMETOOLONG);
    BHT_EQ(bhi_channel_open(&c, f.context, "/nonexistent/w", &listener), -ENOENT);
    BHT_EQ(bhi_channel_open(&c, f.context, "relative", &listener), -EINVAL);
    BHT_EQ(listener, -1);
    /* What does not listen; what is no socket. */
    BHT_EQ(bhi_channel_accept(&c, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), -EINVAL);
    BHT_EQ(bhi_channel_accept(&c, open("/dev/null", O_RDONLY | O_CLOEXEC)), -ENOTSOCK);
    BHT_EQ(bhi_channel_accept(&c, -1), -EBADF);
    bhi_channel_close(&c);
    bhi_channel_close(NULL);
}

/* A host's umask may mask the right to connect to its own sockets; root has all rights. */
TEST(test_a_umask_that_masks_the_owner) {
    struct bhi_channel c;
    char path[80];
    int listener;
    BHT_TRUE(geteuid() != 0 || (chown(f.folder, 65533, 65533) == 0 && seteuid(65533) == 0));
    umask(0777);
    snprintf(path, sizeof path, "%.63s/masked", f.folder);
    BHT_EQ(bhi_channel_open(&c, f.context, path, &listener), 0);
    bhi_channel_close(&c);
    close(listener);
    BHT_EQ(seteuid(getuid()), 0);
}

/* There is nothing left in the folder that anybody else could connect to. */
TEST(test_no_way_in) {
    struct stat info;
    BHT_EQ(stat(f.path, &info), -1);
    connect_worker();
}

/* -- a peer that is not libzmq ------------------------------------------------------------- */

/* The connection that waits for the worker. */
static int accept_raw(void) {
    int fd = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC);
    BHT_GE(fd, 0);
    return fd;
}

static int encode(const struct bhi_message *m, uint8_t *bytes) {
    int length = bhi_wire_encode(m, bytes, BHI_WIRE_MAX);
    BHT_GT(length, 0);
    return length;
}

static void send_all(int fd, const void *bytes, size_t length) {
    BHT_EQ(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

TEST(test_byte_by_byte_and_all_at_once) {
    struct bhi_message m = hello(3);
    uint8_t bytes[BHI_WIRE_MAX * 4];
    int length = encode(&m, bytes);
    int fd = accept_raw();
    for (int i = 0; i < length; i++) {
        BHT_EQ(from_worker(i % 7 ? 0 : 2), -EAGAIN);
        send_all(fd, bytes + i, 1);
    }
    BHT_EQ(from_worker(SOON_MS), 0);
    BHT_EQ(out.hello.worker, 3);
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
        BHT_EQ(from_worker(SOON_MS), 0);
        BHT_MEM_EQ(out.log.text, m.log.text, sizeof m.log.text);
    }
    BHT_EQ(from_worker(0), -EAGAIN);
    close(fd);
}

TEST(test_garbage) {
    struct bhi_message m = hello(3);
    uint8_t bytes[BHI_WIRE_MAX];
    int fd = accept_raw();
    send_all(fd, "GET / HTTP/1.1\r\n", 16);
    BHT_EQ(from_worker(SOON_MS), -EBADMSG);
    /* There is no finding back into a stream that was lost. */
    send_all(fd, bytes, (size_t)encode(&m, bytes));
    BHT_EQ(from_worker(50), -EBADMSG);
    BHT_EQ(from_worker(0), -EBADMSG);
    close(fd);
}

TEST(test_length_lies) {
    static const uint32_t lengths[] = {BHI_WIRE_MAX - BHI_WIRE_HEADER + 1, 0x7fffffff, 0xffffffff,
                                       0xfffffff4};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct bhi_channel host;
        struct bhi_message m = hello(3);
        uint8_t bytes[BHI_WIRE_MAX];
        char path[96];
        int listener;
        snprintf(path, sizeof path, "%.63s/l", f.folder);
        BHT_EQ(bhi_channel_open(&host, f.context, path, &listener), 0);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        BHT_GE(fd, 0);
        close(listener);
        encode(&m, bytes);
        memcpy(bytes + 8, &lengths[i], 4);
        send_all(fd, bytes, BHI_WIRE_HEADER);
        BHT_EQ(receive(&host, BHI_W2S, SOON_MS), -EBADMSG);
        close(fd);
        bhi_channel_close(&host);
    }
    /* A length that is too short for the message, and the largest: refused, and the stream goes on
     * behind each. */
    struct bhi_message m = hello(3);
    uint8_t bytes[4 * BHI_WIRE_MAX] = {0};
    int length = encode(&m, bytes);
    bytes[8] -= 4;
    length -= 4;
    length += encode(&m, bytes + length);
    uint8_t *largest = bytes + length;
    const uint32_t most = BHI_WIRE_MAX - BHI_WIRE_HEADER;
    encode(&m, largest);
    memcpy(largest + 8, &most, 4);
    length += BHI_WIRE_MAX;
    length += encode(&m, bytes + length);
    int fd = accept_raw();
    send_all(fd, bytes, (size_t)length);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(from_worker(SOON_MS), -EBADMSG);
        BHT_EQ(from_worker(SOON_MS), 0);
    }
    close(fd);
}

/* The last words of a worker that dies are read after its death. */
TEST(test_last_words) {
    struct bhi_message m = hello(3);
    uint8_t bytes[BHI_WIRE_MAX];
    int length = encode(&m, bytes);
    int fd = accept_raw();
    send_all(fd, bytes, (size_t)length);
    BHT_EQ(from_worker(SOON_MS), 0);
    m = log_line('z');
    length = encode(&m, bytes);
    for (int i = 0; i < 30; i++) {
        send_all(fd, bytes, (size_t)length);
    }
    close(fd);
    for (int i = 0; i < 30; i++) {
        BHT_EQ(from_worker(SOON_MS), 0);
        BHT_EQ(out.type, BHI_MSG_LOG);
    }
    BHT_EQ(from_worker(50), -EAGAIN);
}

/* A peer that writes as fast as it can, to a supervisor that is busy elsewhere: after some hundred
 * kilobytes it has to wait, and nothing grows here. */
static void flood(const void *unit, size_t length) {
    static uint8_t bytes[1 << 16];
    size_t filled = 0;
    while (filled + length <= sizeof bytes) {
        memcpy(bytes + filled, unit, length);
        filled += length;
    }
    int fd = accept_raw();
    struct timeval patience = {.tv_usec = 300000};
    BHT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
    const uint64_t before = bht_resident_bytes(getpid());
    size_t total = 0;
    for (ssize_t n = 1; n > 0 && total < 64u << 20;) {
        n = send(fd, bytes, filled, MSG_NOSIGNAL);
        if (n > 0) {
            total += (size_t)n;
        }
        if (n > 0 && (size_t)n < filled) {
            break;
        }
    }
    BHT_LT(total, 4u << 20);
#ifndef BHI_SANITIZED
    BHT_LT(bht_resident_bytes(getpid()), before + (8 << 20));
#else
    (void)before;
#endif
    close(fd);
}

TEST(test_flood_of_messages) {
    struct bhi_message m = log_line('f');
    uint8_t bytes[BHI_WIRE_MAX];
    flood(bytes, (size_t)encode(&m, bytes));
    /* What did arrive is still good. */
    int rc, got = 0;
    while ((rc = from_worker(200)) == 0) {
        got++;
    }
    BHT_EQ(rc, -EAGAIN);
    BHT_GT(got, 10);
}

/* The frames of ZeroMQ's own protocol that say "more to come": with a PAIR socket these were held
 * without any limit. */
TEST(test_flood_of_parts) {
    static const uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    uint8_t bytes[128];
    memset(bytes, 1, sizeof bytes); /* flags 1: more; length 1; one byte; … */
    int fd = accept_raw();
    send_all(fd, greeting, sizeof greeting);
    BHT_EQ(from_worker(SOON_MS), -EBADMSG);
    close(fd);
    bhi_channel_close(&f.host);
    close(f.listener);
    BHT_EQ(bhi_channel_open(&f.host, f.context, f.path, &f.listener), 0);
    flood(bytes, sizeof bytes);
    BHT_EQ(from_worker(SOON_MS), -EBADMSG);
}

int __real_zmq_close(void *socket);
int __wrap_zmq_close(void *socket);
static bool thorough; /* zmq_close has closed all when it returns; else a thread of libzmq's does */
int __wrap_zmq_close(void *socket) {
    int fd = -1;
    size_t size = sizeof fd;
    const bool wait = thorough && !zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
    const int rc = __real_zmq_close(socket);
    const uint64_t deadline = bhi_deadline_ns((uint64_t)SOON_MS * 1000000);
    while (wait && fcntl(fd, F_GETFD) >= 0 && bhi_now_ns() < deadline) {
        sched_yield();
    }
    return rc;
}

/* However few descriptors there are, it says so: libzmq, which connects in a thread of its own,
 * does not, and nobody may wait long for what it never does. What a try that failed gives back, at
 * once or later, is no room for the next. */
TEST(test_open_without_descriptors) {
    struct rlimit limit, small;
    char path[112];
    int error = -EMFILE, refused = 0;
    snprintf(path, sizeof path, "%.63s/x", f.folder);
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    thorough = true;
    for (rlim_t room = 0; error == -EMFILE && room < 16; room++) {
        struct bhi_channel channel;
        int listener, lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
        BHT_GE(lowest, 0);
        close(lowest);
        small = limit;
        small.rlim_cur = (rlim_t)lowest + room;
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
        error = bhi_channel_open(&channel, f.context, path, &listener);
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        refused += error != 0;
        if (!error) {
            close(listener);
            bhi_channel_close(&channel);
        }
    }
    thorough = false;
    BHT_EQ(error, 0);
    BHT_GE(refused, 3); /* the listener, libzmq's own, the connection */
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
    if (!connecting.late) {
        return __real_zmq_connect(from, endpoint);
    }
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

TEST(test_a_late_connection_is_nobodys) {
    bhi_channel_close(&f.host);
    close(f.listener);
    connecting.late = true;
    BHT_EQ(bhi_channel_open(&f.host, f.context, f.path, &f.listener), 0);
    BHT_TRUE(!connecting.late); /* it has been tried twice */
    connect_worker();
    close(connecting.stray);
}

static int second = -1; /* connects before the name of the next socket goes, if it is none of -1 */

BHT_WRAP(int, unlink, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (second >= 0) {
        BHT_EQ(connect(second, (struct sockaddr *)&address, sizeof address), 0);
        BHT_EQ(send(second, "garbage", 7, MSG_NOSIGNAL), 7);
    }
    return __real_unlink(path);
}

/* Nothing of it is read, and it is closed. */
TEST(test_a_second_connection_is_refused) {
    char byte;
    bhi_channel_close(&f.host);
    close(f.listener);
    second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BHT_GE(second, 0);
    BHT_EQ(bhi_channel_open(&f.host, f.context, f.path, &f.listener), 0);
    connect_worker();
    WAIT_UNTIL(from_host(1) != 0 && recv(second, &byte, 1, MSG_DONTWAIT) == 0, SOON_MS);
    close(second);
    const struct bhi_message m = {.type = BHI_MSG_BUFFER_DETACH, .buffer_detach = {.buffer = 5}};
    BHT_EQ(bhi_channel_send(&f.host, &m), 0);
    BHT_EQ(from_host(SOON_MS), 0);
    BHT_EQ(out.type, BHI_MSG_BUFFER_DETACH);
}

BHT_AT_START(bht_around(set_up, tear_down))
