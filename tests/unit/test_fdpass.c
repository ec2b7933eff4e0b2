#include "ipc/fdpass.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONELY 1899999999 /* a user who has no other process */

struct fixture {
    int a, b;
    int before;
};

static struct fixture fixture;

static void set_up(void) {
    struct fixture *f = &fixture;
    int pair[2];
    f->before = count_fds();
    if (bhi_fdpass_pair(pair)) {
        BHT_FAIL("cannot be made");
    }
    f->a = pair[0];
    f->b = pair[1];
}

static void tear_down(void) {
    struct fixture *f = &fixture;
    close(f->a);
    close(f->b);
    BHT_EQ(count_fds(), f->before); /* whatever happened, nothing is left */
}

/* Sends |count| descriptors past the limits of bhi_fdpass_send. */
static void send_raw(int socket, const void *bytes, size_t length, size_t count) {
    char control[CMSG_SPACE(64 * sizeof(int))] = {0};
    struct iovec iov = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    int fds[64];
    for (size_t i = 0; i < count; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
    }
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    BHT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), length);
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
    }
}

TEST(test_pair_is_cloexec) {
    struct fixture *f = &fixture;
    BHT_TRUE(fcntl(f->a, F_GETFD) & FD_CLOEXEC);
    BHT_TRUE(fcntl(f->b, F_GETFD) & FD_CLOEXEC);
}

TEST(test_round_trip) {
    struct fixture *f = &fixture;
    for (size_t n = 0; n <= BHI_FDPASS_MAX; n++) {
        int fds[BHI_FDPASS_MAX] = {0}, got[BHI_FDPASS_MAX];
        char bytes[16];
        for (size_t i = 0; i < n; i++) {
            fds[i] = eventfd((unsigned)(100 + i), EFD_NONBLOCK);
        }
        BHT_EQ(bhi_fdpass_send(f->a, "hello", 5, fds, n), 0);
        size_t count = BHI_FDPASS_MAX;
        BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, got, &count, 0), 5);
        BHT_EQ(count, n);
        BHT_MEM_EQ(bytes, "hello", 5);
        for (size_t i = 0; i < n; i++) {
            uint64_t value;
            BHT_TRUE(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
            BHT_EQ(read(got[i], &value, sizeof value), sizeof value);
            BHT_EQ(value, 100 + i); /* in order, and the same objects */
            close(got[i]);
            close(fds[i]);
        }
    }
}

TEST(test_send_refuses) {
    struct fixture *f = &fixture;
    int fds[BHI_FDPASS_MAX + 1];
    for (size_t i = 0; i <= BHI_FDPASS_MAX; i++) {
        fds[i] = f->a;
    }
    BHT_EQ(bhi_fdpass_send(f->a, "x", 1, fds, BHI_FDPASS_MAX + 1), -EINVAL);
    BHT_EQ(bhi_fdpass_send(f->a, "", 0, NULL, 0), -EINVAL);
    fds[0] = -1;
    BHT_EQ(bhi_fdpass_send(f->a, "x", 1, fds, 1), -EBADF);
}

TEST(test_too_many_descriptors) {
    struct fixture *f = &fixture;
    static const struct {
        size_t sent, room;
    } cases[] = {{1, 0}, {2, 1}, {8, 7}, {9, 8}, {20, 8}, {64, 8}, {64, 0}};
    int open_now = count_fds();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fds[BHI_FDPASS_MAX];
        char bytes[16];
        size_t count = cases[i].room;
        send_raw(f->a, "x", 1, cases[i].sent);
        BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, 0), -EMSGSIZE);
        BHT_EQ(count, 0);
        BHT_EQ(count_fds(), open_now);
    }
    /* The next packet is not harmed. */
    size_t count = 0;
    char bytes[16];
    send_raw(f->a, "next", 4, 0);
    BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, NULL, &count, 0), 4);
}

/* The receiver has no room for all of them: that is not the sender's fault. A packet that was only
 * peeked at is whole when there is room. */
TEST(test_no_room_for_descriptors) {
    struct fixture *f = &fixture;
    struct rlimit before, none;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    int free_number;
    BHT_GE(free_number = dup(f->a), 0);
    close(free_number);
    for (int one = 0; one < 2; one++) { /* room for none, and for the first of two */
        none.rlim_cur = (rlim_t)(free_number + one);
        int fds[BHI_FDPASS_MAX];
        char bytes[16];
        size_t count = BHI_FDPASS_MAX;
        send_raw(f->a, "two", 3, 2);
        const int open_now = count_fds();
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, MSG_PEEK), -EMFILE);
        BHT_EQ(count, 0);
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        BHT_EQ(count_fds(), open_now);
        count = BHI_FDPASS_MAX;
        BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, 0), 3);
        BHT_EQ(count, 2);
        close(fds[0]);
        close(fds[1]);
    }
    /* What the message says is known without them. */
    const struct bhi_message sent = {.type = BHI_MSG_SPAWNED, .spawned.worker = 77};
    struct bhi_message out;
    int fds[BHI_FDPASS_MAX];
    BHT_EQ(bhi_fdpass_send_message(f->a, &sent, &f->a, 1), 0);
    none.rlim_cur = (rlim_t)free_number;
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, NULL, 0), -EMFILE);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    BHT_EQ(out.type, BHI_MSG_SPAWNED);
    BHT_EQ(out.spawned.worker, 77);
}

TEST(test_packet_too_long) {
    struct fixture *f = &fixture;
    int fds[BHI_FDPASS_MAX];
    char bytes[4];
    size_t count = BHI_FDPASS_MAX;
    int open_now = count_fds();
    send_raw(f->a, "12345", 5, 2);
    BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, 0), -EMSGSIZE);
    BHT_EQ(count, 0);
    BHT_EQ(count_fds(), open_now);
    /* An empty packet, with descriptors even, is taken for the end. */
    count = BHI_FDPASS_MAX;
    send_raw(f->a, "", 0, 2);
    BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, 0), 0);
    BHT_EQ(count, 0);
    BHT_EQ(count_fds(), open_now);
}

/* T4: sending never blocks, whatever the flags of the socket. */
TEST(test_would_block_and_full) {
    struct fixture *f = &fixture;
    char bytes[1024] = {0};
    size_t count = 0;
    BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, NULL, &count, MSG_DONTWAIT), -EAGAIN);
    int rc, sent = 0;
    while ((rc = bhi_fdpass_send(f->a, bytes, sizeof bytes, NULL, 0)) == 0) {
        BHT_LT(++sent, 100000);
    }
    BHT_EQ(rc, -EAGAIN);
}

TEST(test_end_of_file) {
    struct fixture *f = &fixture;
    char bytes[16];
    int fds[BHI_FDPASS_MAX];
    size_t count = BHI_FDPASS_MAX;
    BHT_EQ(shutdown(f->a, SHUT_WR), 0);
    BHT_EQ(bhi_fdpass_recv(f->b, bytes, sizeof bytes, fds, &count, 0), 0);
    BHT_EQ(bhi_fdpass_send(f->a, "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
}

/* A zygote that dies with requests of ours unread: what it had said before still arrives. */
TEST(test_last_words_behind_a_reset) {
    struct fixture *f = &fixture;
    int pair[2];
    char bytes[16];
    size_t count = 0;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    BHT_EQ(bhi_fdpass_send(pair[0], "unread", 6, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(pair[1], "last", 4, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(pair[1], "words", 5, NULL, 0), 0);
    close(pair[1]);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, 0), 4);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, 0), 5);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, 0), 0);
    BHT_EQ(bhi_fdpass_send(pair[0], "x", 1, NULL, 0), -EPIPE);
    close(pair[0]);
    (void)f;
}

/* The peer ends between the peek and the drop. The packet would be received twice. */
TEST(test_a_drop_behind_a_reset) {
    int pair[2];
    char bytes[16];
    size_t count = 0;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    BHT_EQ(bhi_fdpass_send(pair[0], "unread", 6, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(pair[1], "last", 4, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(pair[1], "words", 5, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, MSG_PEEK), 4);
    close(pair[1]);
    bhi_fdpass_drop(pair[0]);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, 0), 5);
    BHT_EQ(bhi_fdpass_recv(pair[0], bytes, sizeof bytes, NULL, &count, 0), 0);
    bhi_fdpass_drop(pair[0]);
    close(pair[0]);
}

/* -- messages ------------------------------------------------------------------------------ */

static struct bhi_message spawned(void) {
    return (struct bhi_message){.type = BHI_MSG_SPAWNED, .spawned = {.worker = 9}};
}

TEST(test_message_round_trip) {
    struct fixture *f = &fixture;
    struct bhi_message out, message = spawned();
    int fds[BHI_FDPASS_MAX];
    char why[128];
    BHT_EQ(bhi_fdpass_send_message(f->a, &message, &f->a, 1), 0);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, why, sizeof why), 1);
    BHT_EQ(out.type, BHI_MSG_SPAWNED);
    BHT_EQ(out.spawned.worker, 9);
    BHT_GE(fds[0], 0);
    BHT_EQ(fds[1], -1);
    close(fds[0]);
}

TEST(test_message_wrong_count) {
    struct fixture *f = &fixture;
    struct bhi_message out, message = spawned();
    int fds[BHI_FDPASS_MAX];
    char why[128];
    uint8_t bytes[BHI_WIRE_MAX];
    BHT_EQ(bhi_fdpass_send_message(f->a, &message, NULL, 0), -EPROTO);
    BHT_EQ(bhi_fdpass_send_message(f->a, &message, (int[]){f->a, f->b}, 2), -EPROTO);
    int length = bhi_wire_encode(&message, bytes, sizeof bytes);
    BHT_GT(length, 0);
    int open_now = count_fds();
    for (size_t n = 0; n <= BHI_FDPASS_MAX; n++) {
        if (n == 1) {
            continue;
        }
        send_raw(f->a, bytes, (size_t)length, n);
        BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, why, sizeof why), -EPROTO);
        BHT_STR_HAS(why, "spawned");
        BHT_EQ(count_fds(), open_now);
        for (size_t i = 0; i < BHI_FDPASS_MAX; i++) {
            BHT_EQ(fds[i], -1);
        }
    }
}

TEST(test_message_refused) {
    struct fixture *f = &fixture;
    struct bhi_message out, message = spawned();
    int fds[BHI_FDPASS_MAX];
    char why[128];
    uint8_t bytes[BHI_WIRE_MAX + 1] = {0};
    int open_now = count_fds();
    /* the wrong way */
    BHT_EQ(bhi_fdpass_send_message(f->a, &message, &f->a, 1), 0);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_S2Z, &out, fds, 0, why, sizeof why), -EPROTO);
    BHT_EQ(count_fds(), open_now);
    /* garbage, with descriptors; too long */
    send_raw(f->a, "garbage", 7, 3);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, why, sizeof why), -EBADMSG);
    BHT_GT(strlen(why), 0);
    BHT_EQ(count_fds(), open_now);
    send_raw(f->a, bytes, sizeof bytes, 3);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, why, sizeof why), -EMSGSIZE);
    BHT_GT(strlen(why), 0);
    BHT_EQ(count_fds(), open_now);
    /* |why| may be NULL */
    send_raw(f->a, "garbage", 7, 3);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, NULL, 0), -EBADMSG);
    /* nothing there; the end */
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, MSG_DONTWAIT, why, sizeof why),
           -EAGAIN);
    BHT_EQ(shutdown(f->a, SHUT_WR), 0);
    BHT_EQ(bhi_fdpass_recv_message(f->b, BHI_Z2S, &out, fds, 0, why, sizeof why), 0);
    /* what we would send is checked too */
    message.spawned.worker = 0;
    BHT_EQ(bhi_fdpass_send_message(f->b, &message, &f->a, 1), -EINVAL);
    message.type = (enum bhi_message_type)999;
    BHT_EQ(bhi_fdpass_send_message(f->b, &message, NULL, 0), -EPROTO);
}

/* Linux counts what a user has under way in sockets, of all processes together, and a worker can
 * have much there. Another process has to wait, and is not wrong. */
TEST(test_too_many_of_the_user) {
    enum { LIMIT = 40 };
    struct fixture *f = &fixture;
    const pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit limit = {LIMIT, LIMIT};
        int other[2], fds[BHI_FDPASS_MAX], sent = 0;
        char byte;
        size_t count = 0;
        if (bhi_fdpass_pair(other) != 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
            (geteuid() == 0 && setresuid(LONELY, LONELY, LONELY) != 0)) {
            _exit(2);
        }
        for (int i = 0; i < BHI_FDPASS_MAX; i++) {
            fds[i] = f->a;
        }
        while (sent < 2 * LIMIT && bhi_fdpass_send(f->a, "x", 1, fds, BHI_FDPASS_MAX) == 0) {
            sent += BHI_FDPASS_MAX;
        }
        const int refused = bhi_fdpass_send(other[0], "x", 1, fds, 1);
        while (recv(f->b, &byte, 1, MSG_DONTWAIT) == 1) { /* without them */
            count++;
        }
        const int later = bhi_fdpass_send(other[0], "x", 1, fds, 1);
        _exit(sent <= LIMIT || count == 0                                ? 3
              : refused != -ETOOMANYREFS || !bhi_fdpass_is_late(refused) ? 4
              : later != 0                                               ? 5
                                                                         : 0);
    }
    int status = 0;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), 0);
}

BHT_AT_START(bht_around(set_up, tear_down))
