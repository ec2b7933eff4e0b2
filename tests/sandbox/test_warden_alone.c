/* The warden's code alone, in a fork: starts that fail when the zygote is there already. What it calls of
 * the sandbox is done here, and fails when told to. */
#include "harness.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/host.h"
#include "worker/opener/opener.h"
#include "worker/title.h"
#include "worker/warden/zygote_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

int warden_main(int argc, char **argv); /* its main */

/* Shared with the warden. */
static struct {
    bool no_ids;       /* of the zygote can be mapped */
    bool dies;         /* the zygote, at once */
    pid_t zygote;      /* 0: there was none */
    int killed_by;     /* what was sent to it; 0: nothing */
    bool reaped_first; /* it was gone when the host was answered */
} *seen;

/* -- what it calls ----------------------------------------------------------------------------- */

bool bhi_host_forget(void) {
    return signal(SIGPIPE, SIG_IGN) != SIG_ERR;
}
int bhi_host_drop_streams(struct bhi_error *failure) {
    (void)failure;
    return 0;
}
void bhi_title_init(int argc, char **argv) {
    (void)argc, (void)argv;
}
void bhi_title_set(const char *comm, const char *title) {
    (void)comm, (void)title;
}
int bhi_opener_run(void) {
    return BHI_EXIT_START_FAILED;
}
void bhi_namespaces_read(struct bhi_namespaces *out) {
    (void)out;
}
int bhi_sandbox_keep_capabilities(void) {
    return -EPERM;
}
int bhi_sandbox_ids_choose(struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    (void)ids, (void)failure;
    return 0;
}

pid_t bhi_sandbox_clone(int *out_pidfd, uint64_t *out_layers, struct bhi_error *failure) {
    (void)failure;
    const pid_t pid = fork();
    if (pid == 0 && seen->dies) {
        _exit(0);
    }
    if (pid > 0) {
        *out_layers = 0;
        *out_pidfd = pidfd_open(pid, 0);
        seen->zygote = pid;
    }
    return pid;
}

int bhi_sandbox_map_ids(pid_t pid, const struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    (void)ids;
    siginfo_t info;
    BHT_TRUE(!seen->dies || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    return seen->no_ids ? BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "map ids", .sys_errno = EXDEV)
                        : 0;
}

BHT_WRAP(int, pidfd_send_signal, int pidfd, int signal_number, siginfo_t *info, unsigned flags) {
    seen->killed_by = signal_number;
    return __real_pidfd_send_signal(pidfd, signal_number, info, flags);
}

BHT_WRAP(int, bhi_fdpass_send_message, int socket, const struct bhi_message *message,
         const int *fds, size_t count) {
    if (message->type == BHI_MSG_ZYGOTE_FAILED) {
        siginfo_t info;
        seen->reaped_first =
            waitid(P_PID, (id_t)seen->zygote, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
            errno == ECHILD;
    }
    return __real_bhi_fdpass_send_message(socket, message, fds, count);
}

/* -- the warden -------------------------------------------------------------------------------- */

static void begin(void) {
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_TRUE(seen != MAP_FAILED);
}

static void finish(void) {
    munmap(seen, sizeof *seen);
}

BHT_AT_START(bht_around(begin, finish))

/* Starts one, asks it to start a zygote, and returns its answer. */
static struct bhi_message start(void) {
    int pair[2], status;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    const pid_t warden = fork();
    if (warden == 0) {
        const int mine = fcntl(pair[1], F_DUPFD_CLOEXEC, 100);
        close(pair[0]), close(pair[1]);
        BHT_EQ(dup3(mine, BHI_HOST_SOCKET, O_CLOEXEC), BHI_HOST_SOCKET);
        close(mine);
        _exit(warden_main(2, (char *[]){"bulkhead-warden", "warden", NULL}));
    }
    BHT_GT(warden, 0);
    close(pair[1]);
    struct bhi_message message = {.type = BHI_MSG_START, .start = {.protocol = BHI_WIRE_VERSION}};
    snprintf(message.start.runtime_dir, sizeof message.start.runtime_dir, "%s", bht_folder());
    const int fds[] = {pidfd_open(getpid(), 0), open(bht_folder(), O_PATH | O_CLOEXEC),
                       open("/dev/null", O_RDONLY | O_CLOEXEC)};
    BHT_EQ(bhi_fdpass_send_message(pair[0], &message, fds, 3), 0);
    struct pollfd ready = {.fd = pair[0], .events = POLLIN};
    BHT_EQ(poll(&ready, 1, WAIT_MS * (int)bht_slowness()), 1);
    int none[BHI_FDPASS_MAX];
    BHT_EQ(bhi_fdpass_recv_message(pair[0], BHI_Z2S, &message, none, MSG_DONTWAIT, NULL, 0), 1);
    BHT_EQ(waitpid(warden, &status, 0), warden);
    BHT_EQ(status, BHI_EXIT_START_FAILED << 8);
    close(fds[0]), close(fds[1]), close(fds[2]), close(pair[0]);
    return message;
}

/* E9: a zygote of a start that fails is killed: it waits for a byte, and would wait for as long as the
 * warden does. The host is answered when it has gone. */
TEST(a_start_that_fails_leaves_no_zygote) {
    for (int dies = 0; dies < 2; dies++) {
        memset(seen, 0, sizeof *seen);
        seen->no_ids = !dies;
        seen->dies = dies;
        const struct bhi_message message = start();
        BHT_EQ(message.type, BHI_MSG_ZYGOTE_FAILED);
        BHT_EQ(message.zygote_failed.error, dies ? EPIPE : EXDEV);
        BHT_EQ(seen->killed_by, SIGKILL);
        BHT_TRUE(seen->reaped_first);
    }
}
