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

static int ends[2]; /* of a pair */
static struct {
    char bytes[16], why[128];
    int fds[BHI_FDPASS_MAX];
    size_t count; /* of descriptors */
    struct bhi_message message;
} got; /* with the last packet */

static void set_up(void) {
    BHT_EQ(bhi_fdpass_pair(ends), 0);
}

static void tear_down(void) {
    close(ends[0]);
    close(ends[1]);
}

/* With room for so many descriptors. */
static ssize_t receive(int socket, size_t room, int flags) {
    got.count = room;
    return bhi_fdpass_recv(socket, got.bytes, sizeof got.bytes, got.fds, &got.count, flags);
}

static int receive_message(enum bhi_direction direction, int flags) {
    return bhi_fdpass_recv_message(ends[1], direction, &got.message, got.fds, flags, got.why,
                                   sizeof got.why);
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
    BHT_TRUE(fcntl(ends[0], F_GETFD) & FD_CLOEXEC);
    BHT_TRUE(fcntl(ends[1], F_GETFD) & FD_CLOEXEC);
}

TEST(test_round_trip) {
    for (size_t n = 0; n <= BHI_FDPASS_MAX; n++) {
        int fds[BHI_FDPASS_MAX] = {0};
        for (size_t i = 0; i < n; i++) {
            fds[i] = eventfd((unsigned)(100 + i), EFD_NONBLOCK);
        }
        BHT_EQ(bhi_fdpass_send(ends[0], "hello", 5, fds, n), 0);
        BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, 0), 5);
        BHT_EQ(got.count, n);
        BHT_MEM_EQ(got.bytes, "hello", 5);
        for (size_t i = 0; i < n; i++) {
            uint64_t value;
            BHT_TRUE(fcntl(got.fds[i], F_GETFD) & FD_CLOEXEC);
            BHT_EQ(read(got.fds[i], &value, sizeof value), sizeof value);
            BHT_EQ(value, 100 + i); /* in order, and the same objects */
            close(got.fds[i]);
            close(fds[i]);
        }
    }
}

TEST(test_send_refuses) {
    int fds[BHI_FDPASS_MAX + 1];
    for (size_t i = 0; i <= BHI_FDPASS_MAX; i++) {
        fds[i] = ends[0];
    }
    BHT_EQ(bhi_fdpass_send(ends[0], "x", 1, fds, BHI_FDPASS_MAX + 1), -EINVAL);
    BHT_EQ(bhi_fdpass_send(ends[0], "", 0, NULL, 0), -EINVAL);
    fds[0] = -1;
    BHT_EQ(bhi_fdpass_send(ends[0], "x", 1, fds, 1), -EBADF);
}

TEST(test_too_many_descriptors) {
    static const struct {
        size_t sent, room;
    } cases[] = {{1, 0}, {2, 1}, {8, 7}, {9, 8}, {20, 8}, {64, 8}, {64, 0}};
    int open_now = count_fds();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        send_raw(ends[0], "x", 1, cases[i].sent);
        BHT_EQ(receive(ends[1], cases[i].room, 0), -EMSGSIZE);
        BHT_EQ(got.count, 0);
        BHT_EQ(count_fds(), open_now);
    }
    /* The next packet is not harmed. */
    send_raw(ends[0], "next", 4, 0);
    BHT_EQ(receive(ends[1], 0, 0), 4);
}

/* The receiver has no room for all of them: that is not the sender's fault. A packet that was only
 * peeked at is whole when there is room. */
TEST(test_no_room_for_descriptors) {
    struct rlimit before, none;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    int free_number;
    BHT_GE(free_number = dup(ends[0]), 0);
    close(free_number);
    for (int one = 0; one < 2; one++) { /* room for none, and for the first of two */
        none.rlim_cur = (rlim_t)(free_number + one);
        send_raw(ends[0], "two", 3, 2);
        const int open_now = count_fds();
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, MSG_PEEK), -EMFILE);
        BHT_EQ(got.count, 0);
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        BHT_EQ(count_fds(), open_now);
        BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, 0), 3);
        BHT_EQ(got.count, 2);
        close(got.fds[0]);
        close(got.fds[1]);
    }
    /* What the message says is known without them. */
    const struct bhi_message sent = {.type = BHI_MSG_SPAWNED, .spawned.worker = 77};
    BHT_EQ(bhi_fdpass_send_message(ends[0], &sent, &ends[0], 1), 0);
    none.rlim_cur = (rlim_t)free_number;
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    BHT_EQ(bhi_fdpass_recv_message(ends[1], BHI_Z2S, &got.message, got.fds, 0, NULL, 0), -EMFILE);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    BHT_EQ(got.message.type, BHI_MSG_SPAWNED);
    BHT_EQ(got.message.spawned.worker, 77);
}

TEST(test_packet_too_long) {
    static const char too_long[sizeof got.bytes + 1];
    int open_now = count_fds();
    send_raw(ends[0], too_long, sizeof too_long, 2);
    BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, 0), -EMSGSIZE);
    BHT_EQ(got.count, 0);
    BHT_EQ(count_fds(), open_now);
    /* An empty packet, with descriptors even, is taken for the end. */
    send_raw(ends[0], "", 0, 2);
    BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, 0), 0);
    BHT_EQ(got.count, 0);
    BHT_EQ(count_fds(), open_now);
}

/* T4: sending never blocks, whatever the flags of the socket. */
TEST(test_would_block_and_full) {
    char bytes[1024] = {0};
    BHT_EQ(receive(ends[1], 0, MSG_DONTWAIT), -EAGAIN);
    int rc, sent = 0;
    while ((rc = bhi_fdpass_send(ends[0], bytes, sizeof bytes, NULL, 0)) == 0) {
        BHT_LT(++sent, 100000);
    }
    BHT_EQ(rc, -EAGAIN);
}

TEST(test_end_of_file) {
    BHT_EQ(shutdown(ends[0], SHUT_WR), 0);
    BHT_EQ(receive(ends[1], BHI_FDPASS_MAX, 0), 0);
    BHT_EQ(bhi_fdpass_send(ends[0], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
}

/* Ours is unread, and theirs, too. */
static void say_last_words(void) {
    BHT_EQ(bhi_fdpass_send(ends[0], "unread", 6, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(ends[1], "last", 4, NULL, 0), 0);
    BHT_EQ(bhi_fdpass_send(ends[1], "words", 5, NULL, 0), 0);
}

/* A zygote that dies with requests of ours unread: what it had said before still arrives. */
TEST(test_last_words_behind_a_reset) {
    say_last_words();
    close(ends[1]);
    ends[1] = -1;
    BHT_EQ(receive(ends[0], 0, 0), 4);
    BHT_EQ(receive(ends[0], 0, 0), 5);
    BHT_EQ(receive(ends[0], 0, 0), 0);
    BHT_EQ(bhi_fdpass_send(ends[0], "x", 1, NULL, 0), -EPIPE);
}

/* The peer ends between the peek and the drop. The packet would be received twice. */
TEST(test_a_drop_behind_a_reset) {
    say_last_words();
    BHT_EQ(receive(ends[0], 0, MSG_PEEK), 4);
    close(ends[1]);
    ends[1] = -1;
    bhi_fdpass_drop(ends[0]);
    BHT_EQ(receive(ends[0], 0, 0), 5);
    BHT_EQ(receive(ends[0], 0, 0), 0);
    bhi_fdpass_drop(ends[0]);
}

/* -- messages ------------------------------------------------------------------------------ */

static struct bhi_message spawned(void) {
    return (struct bhi_message){.type = BHI_MSG_SPAWNED, .spawned = {.worker = 9}};
}

TEST(test_message_round_trip) {
    struct bhi_message message = spawned();
    BHT_EQ(bhi_fdpass_send_message(ends[0], &message, &ends[0], 1), 0);
    BHT_EQ(receive_message(BHI_Z2S, 0), 1);
    BHT_EQ(got.message.type, BHI_MSG_SPAWNED);
    BHT_EQ(got.message.spawned.worker, 9);
    BHT_GE(got.fds[0], 0);
    BHT_EQ(got.fds[1], -1);
    close(got.fds[0]);
}

TEST(test_message_wrong_count) {
    struct bhi_message message = spawned();
    uint8_t bytes[BHI_WIRE_MAX];
    BHT_EQ(bhi_fdpass_send_message(ends[0], &message, NULL, 0), -EPROTO);
    BHT_EQ(bhi_fdpass_send_message(ends[0], &message, (int[]){ends[0], ends[1]}, 2), -EPROTO);
    int length = bhi_wire_encode(&message, bytes, sizeof bytes);
    BHT_GT(length, 0);
    int open_now = count_fds();
    for (size_t n = 0; n <= BHI_FDPASS_MAX; n++) {
        if (n == 1) {
            continue;
        }
        send_raw(ends[0], bytes, (size_t)length, n);
        BHT_EQ(receive_message(BHI_Z2S, 0), -EPROTO);
        BHT_STR_HAS(got.why, "spawned");
        BHT_EQ(count_fds(), open_now);
        for (size_t i = 0; i < BHI_FDPASS_MAX; i++) {
            BHT_EQ(got.fds[i], -1);
        }
    }
}

TEST(test_message_refused) {
    struct bhi_message message = spawned();
    uint8_t bytes[BHI_WIRE_MAX + 1] = {0};
    int open_now = count_fds();
    /* the wrong way */
    BHT_EQ(bhi_fdpass_send_message(ends[0], &message, &ends[0], 1), 0);
    BHT_EQ(receive_message(BHI_S2Z, 0), -EPROTO);
    BHT_EQ(count_fds(), open_now);
    /* garbage, with descriptors; too long */
    send_raw(ends[0], "garbage", 7, 3);
    BHT_EQ(receive_message(BHI_Z2S, 0), -EBADMSG);
    BHT_GT(strlen(got.why), 0);
    BHT_EQ(count_fds(), open_now);
    send_raw(ends[0], bytes, sizeof bytes, 3);
    BHT_EQ(receive_message(BHI_Z2S, 0), -EMSGSIZE);
    BHT_GT(strlen(got.why), 0);
    BHT_EQ(count_fds(), open_now);
    /* |why| may be NULL */
    send_raw(ends[0], "garbage", 7, 3);
    BHT_EQ(bhi_fdpass_recv_message(ends[1], BHI_Z2S, &got.message, got.fds, 0, NULL, 0), -EBADMSG);
    /* nothing there; the end */
    BHT_EQ(receive_message(BHI_Z2S, MSG_DONTWAIT), -EAGAIN);
    BHT_EQ(shutdown(ends[0], SHUT_WR), 0);
    BHT_EQ(receive_message(BHI_Z2S, 0), 0);
    /* what we would send is checked too */
    message.spawned.worker = 0;
    BHT_EQ(bhi_fdpass_send_message(ends[1], &message, &ends[0], 1), -EINVAL);
    message.type = (enum bhi_message_type)999;
    BHT_EQ(bhi_fdpass_send_message(ends[1], &message, NULL, 0), -EPROTO);
}

/* Linux counts what a user has under way in sockets, of all processes together, and a worker can
 * have much there. Another process has to wait, and is not wrong. */
TEST(test_too_many_of_the_user) {
    enum { LIMIT = 40 };
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
            fds[i] = ends[0];
        }
        while (sent < 2 * LIMIT && bhi_fdpass_send(ends[0], "x", 1, fds, BHI_FDPASS_MAX) == 0) {
            sent += BHI_FDPASS_MAX;
        }
        const int refused = bhi_fdpass_send(other[0], "x", 1, fds, 1);
        while (recv(ends[1], &byte, 1, MSG_DONTWAIT) == 1) { /* without them */
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
