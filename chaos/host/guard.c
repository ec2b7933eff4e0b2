#include "chaos/host/guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WATCHED = 512 };

static struct pollfd watched[MOST_WATCHED]; /* of the guard's own process */
static nfds_t watched_count;

/* -- in the second process ---------------------------------------------------------------------- */

/* Those that have ended are forgotten. */
static void prune(void) {
    nfds_t kept = 0;
    if (poll(watched, watched_count, 0) < 0) {
        return;
    }
    for (nfds_t i = 0; i < watched_count; i++) {
        if (watched[i].revents) {
            close(watched[i].fd);
        } else {
            watched[kept++] = watched[i];
        }
    }
    watched_count = kept;
}

/* Returns the descriptor that has come; -1: the other end is closed. */
static int receive(int socket) {
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    int fd = -1;
    if (TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) != 1) {
        return -1;
    }
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    return fd;
}

static _Noreturn void serve(int socket) {
    for (int fd; (fd = receive(socket)) >= 0;) {
        prune();
        const char answer = watched_count < MOST_WATCHED;
        if (answer) {
            watched[watched_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        } else {
            close(fd);
        }
        if (TEMP_FAILURE_RETRY(send(socket, &answer, 1, MSG_NOSIGNAL)) != 1) {
            break;
        }
    }
    for (nfds_t i = 0; i < watched_count; i++) {
        (void)pidfd_send_signal(watched[i].fd, SIGCONT, NULL, 0);
    }
    _exit(0);
}

/* -- in the first ------------------------------------------------------------------------------- */

bool bhi_guard_start(struct bhi_stop_guard *guard, struct bhi_complaint *complaint) {
    int ends[2];
    *guard = (struct bhi_stop_guard){.socket = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return bhi_refuse(complaint, "no socket for the guard: %s", strerror(errno));
    }
    const pid_t pid = fork();
    if (pid == 0) {
        /* What ends this process's group, or hangs up its terminal, must not end the guard. Its
         * standard streams would keep a pipe open. */
        (void)setsid();
        (void)prctl(PR_SET_NAME, "bulkhead-guard");
        (void)dup2(ends[1], STDERR_FILENO + 1);
        (void)close_range(STDERR_FILENO + 2, ~0u, 0);
        (void)close_range(STDIN_FILENO, STDERR_FILENO, 0);
        serve(STDERR_FILENO + 1);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return bhi_refuse(complaint, "the guard cannot be started: %s", strerror(errno));
    }
    *guard = (struct bhi_stop_guard){.pid = pid, .socket = ends[0]};
    return true;
}

bool bhi_guard_watch(struct bhi_stop_guard *guard, int pidfd) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    memset(&control, 0, sizeof control);
    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof pidfd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &pidfd, sizeof pidfd);
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control};
    return TEMP_FAILURE_RETRY(sendmsg(guard->socket, &message, MSG_NOSIGNAL)) == 1 &&
           TEMP_FAILURE_RETRY(recv(guard->socket, &byte, 1, 0)) == 1 && byte;
}

void bhi_guard_end(struct bhi_stop_guard *guard) {
    if (!guard->pid) {
        return;
    }
    close(guard->socket);
    (void)TEMP_FAILURE_RETRY(waitpid(guard->pid, NULL, 0));
    *guard = (struct bhi_stop_guard){.socket = -1};
}
