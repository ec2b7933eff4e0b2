#include "client.h"
#include "base/fd.h"
#include "faults.h"
#include "harness.h"
#include "worker/exit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#define RESULTS 64
#define RING    65536

struct client client;
struct guest guest, second;

static const char *warden_program(void) {
    if (client.starter) {
        return client.starter;
    }
    return bht_program(client.faults ? BHT_WARDEN_FAULTY : BHT_WARDEN);
}

static const char *worker_program(void) {
    if (client.program) {
        return client.program;
    }
    return bht_program(client.faults ? BHT_WORKER_FAULTY : BHT_WORKER);
}

/* NULL: nothing. */
static void add(char **environment, const char *name, const char *value) {
    while (*environment) {
        environment++;
    }
    if (value) {
        BHT_GE(asprintf(environment, "%s=%s", name, value), 0);
    }
}

void client_launch(void) {
    client.zygote = -1;
    if (client.dir[0] == '\0') {
        snprintf(client.dir, sizeof client.dir, "/tmp/bulkhead-test-XXXXXX");
        BHT_TRUE(mkdtemp(client.dir));
    }
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    client.socket = pair[0];
    char noted[640];
    char *environment[8] = {NULL};
    if (client.faults) {
        bht_faults_note(client.faults, noted, sizeof noted);
        add(environment, "BULKHEAD_TEST_FAULTS", noted);
    }
    add(environment, "VK_DRIVER_FILES", client.manifest);
    add(environment, "BULKHEAD_WORKER_ID", client.worker_id);
    add(environment, "LD_LIBRARY_PATH_OF_ANOTHER", "1"); /* as "HOSTS_OWN": it is not passed on */
    add(environment, "LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH"));
    add(environment, "BULKHEAD_NVRTC", getenv("BULKHEAD_NVRTC"));
    add(environment, "HOSTS_OWN", "1");
    char *argv[] = {(char *)(uintptr_t)warden_program(), "warden", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
    if (pair[1] == 3) { /* dup2 onto itself leaves CLOEXEC where it is */
        BHT_EQ(fcntl(3, F_SETFD, 0), 0);
    }
    BHT_EQ(posix_spawn(&client.warden, argv[0], &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    for (char **variable = environment; *variable; variable++) {
        free(*variable);
    }
}

void client_send(const struct bhi_message *message, const int *fds, size_t fd_count) {
    BHT_EQ(bhi_fdpass_send_message(client.socket, message, fds, fd_count), 0);
}

static void await_readable(int fd) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&ready, 1, CLIENT_WAIT_MS)) < 0 && errno == EINTR) {
    }
    BHT_EQ(n, 1);
}

int client_expect(enum bhi_message_type type, struct bhi_message *out) {
    int fds[BHI_FDPASS_MAX];
    char why[200] = "";
    await_readable(client.socket);
    int r =
        bhi_fdpass_recv_message(client.socket, BHI_Z2S, out, fds, MSG_DONTWAIT, why, sizeof why);
    if (r != 1) {
        BHT_FAIL("expected %s, got %s (%s)", bhi_message_info(type)->name,
                 r == 0 ? "end of file" : strerror(-r), why);
    }
    if (out->type != type) {
        BHT_FAIL("expected %s, got %s: %s", bhi_message_info(type)->name,
                 bhi_message_info(out->type)->name,
                 out->type == BHI_MSG_ZYGOTE_FAILED ? out->zygote_failed.text : "");
    }
    if (bhi_message_info(type)->fds == 2) {
        close(fds[1]); /* the proc that comes with zygote_ready */
    }
    return bhi_message_info(type)->fds > 0 ? fds[0] : -1;
}

void client_expect_end(void) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    await_readable(client.socket);
    int r = bhi_fdpass_recv_message(client.socket, BHI_Z2S, &message, fds, MSG_DONTWAIT, NULL, 0);
    BHT_TRUE(r == 0 || r == -ECONNRESET);
}

struct bhi_message client_start_message(void) {
    struct bhi_message message = {.type = BHI_MSG_START};
    message.start.protocol = BHI_WIRE_VERSION;
    snprintf(message.start.runtime_dir, sizeof message.start.runtime_dir, "%s", client.dir);
    snprintf(message.start.driver, sizeof message.start.driver, "%s",
             client.driver ? client.driver : "");
    snprintf(message.start.cgroup_dir, sizeof message.start.cgroup_dir, "%s", client.cgroup);
    return message;
}

void client_send_start(const struct bhi_message *message) {
    int fds[] = {pidfd_open(client.host ? client.host : getpid(), 0),
                 open(client.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                 open(worker_program(), O_PATH | O_CLOEXEC)};
    BHT_TRUE(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
    client_send(message, fds, 3);
    for (size_t i = 0; i < BHT_COUNT(fds); i++) {
        close(fds[i]);
    }
}

void client_open(void) {
    client_launch();
    struct bhi_message message = client_start_message();
    client_send_start(&message);
    client.zygote = client_expect(BHI_MSG_ZYGOTE_READY, &message);
    client.ready = message.zygote_ready;
    client.zygote_pid = pid_of_pidfd(client.zygote);
    BHT_GT(client.zygote_pid, 0);
}

bool pidfd_ended(int pidfd, int timeout_ms) {
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int n;
    while ((n = poll(&ended, 1, timeout_ms)) < 0 && errno == EINTR) {
    }
    return n == 1;
}

int client_wait_warden(void) {
    int pidfd = pidfd_open(client.warden, 0);
    BHT_GE(pidfd, 0);
    BHT_TRUE(pidfd_ended(pidfd, CLIENT_WAIT_MS));
    close(pidfd);
    siginfo_t info = {0};
    BHT_EQ(waitid(P_PID, (id_t)client.warden, &info, WEXITED), 0);
    client.warden = 0;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void client_close(void) {
    guest_close(&second);
    guest_close(&guest);
    if (client.dir[0]) {
        close(client.socket);
        if (client.warden != 0) {
            client_wait_warden();
        }
        if (client.zygote >= 0) {
            BHT_TRUE(pidfd_ended(client.zygote, 0));
            close(client.zygote);
        }
        char path[128];
        for (int id = 1; id < 64; id++) {
            snprintf(path, sizeof path, "%s/w%d", client.dir, id);
            unlink(path);
        }
        BHT_TRUE(rmdir(client.dir) == 0 || errno == ENOENT);
    }
    if (client.fake[0]) {
        unlink(client.fake);
    }
    client = (struct client){0};
}

BHT_AT_START(bht_end_with(client_close))

void client_fake_driver(const char *fake) {
    char text[PATH_MAX + 128];
    snprintf(client.fake, sizeof client.fake, "/tmp/bulkhead-test-icd-%d.json", (int)getpid());
    int length = snprintf(text, sizeof text,
                          "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": "
                          "\"%s/%s/libvulkan_lvp.so\", \"api_version\": \"1.1.0\"}}",
                          BHT_FAKES, fake);
    int fd = open(client.fake, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, text, (size_t)length), length);
    close(fd);
    client.manifest = client.fake;
}

pid_t pid_of_pidfd(int pidfd) {
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    BHT_GT(n, 0);
    text[n] = '\0';
    const char *line = strstr(text, "\nPid:");
    BHT_TRUE(line);
    return (pid_t)atoi(line + 5);
}

/* -- guests --------------------------------------------------------------------------------- */

void guest_prepare(struct guest *g, uint64_t id) {
    int pair[2];
    char path[128];
    g->id = id;
    g->pidfd = -1;
    BHT_EQ(bhi_lane_create(&g->lane, RING, RESULTS), 0);
    BHT_EQ(bhi_progress_create(&g->progress, RESULTS), 0);
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    g->fdpass = pair[0];
    g->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BHT_GE(g->doorbell, 0);
    for (size_t i = 0; i < sizeof g->token; i++) {
        g->token[i] = (uint8_t)(37 * i + 11 * id + 5); /* found nowhere by chance */
    }
    g->context = zmq_ctx_new();
    BHT_TRUE(g->context);
    snprintf(path, sizeof path, "%s/w%llu", client.dir, (unsigned long long)id);
    BHT_EQ(bhi_channel_open(&g->channel, g->context, path, &g->fds[4]), 0);

    g->request = (struct bhi_message){.type = BHI_MSG_SPAWN};
    g->request.spawn.worker = id;
    memcpy(g->request.spawn.token, g->token, sizeof g->token);
    g->request.spawn.memory_limit = g->memory_limit;
    g->request.spawn.lane_bytes = 4096 + RING;
    g->request.spawn.progress_bytes = bhi_progress_bytes(RESULTS);
    g->fds[0] = g->lane.fd;
    g->fds[1] = g->progress.fd;
    g->fds[2] = pair[1];
    g->fds[3] = g->doorbell;
}

/* The worker has its own. */
static void close_sent(struct guest *g) {
    bhi_fd_close(&g->fds[2]);
    bhi_fd_close(&g->fds[4]);
}

void guest_spawn(struct guest *g) {
    struct bhi_message message;
    client_send(&g->request, g->fds, 5);
    close_sent(g);
    g->pidfd = client_expect(BHI_MSG_SPAWNED, &message);
    BHT_EQ(message.spawned.worker, g->id);
    if (message.spawned.held) { /* nobody here needs the device to outlive the worker */
        message = (struct bhi_message){.type = BHI_MSG_RELEASE};
        message.release.worker = g->id;
        client_send(&message, NULL, 0);
    }
}

/* From the channel. A worker that has died is noticed at once, and its end is in the message. */
static void next_message(struct guest *g, uint32_t states, struct bhi_message *out) {
    const uint64_t end = bht_now_ns() + (uint64_t)CLIENT_WAIT_MS * 1000000;
    char why[200] = "";
    bool ended = false;
    int r;
    do {
        ended = pidfd_ended(g->pidfd, 0);
        r = bhi_channel_recv(&g->channel, BHI_W2S, states, 20, out, why, sizeof why);
    } while (r == -EAGAIN && !ended && bht_now_ns() < end);
    if (r == 0) {
        return;
    }
    const char *step = bhi_step_name(g->progress.header->step);
    const char *text = g->progress.header->step_told.text;
    if (ended) {
        client_expect(BHI_MSG_EXITED, out);
        BHT_FAIL("the worker has ended (code %d, status %d) in step %s: %s", out->exited.code,
                 out->exited.status, step, text);
    }
    BHT_FAIL("nothing from the worker: %s (%s); step %s: %s", strerror(-r), why, step, text);
}

void guest_open(struct guest *g, uint64_t id) {
    struct bhi_message message;
    guest_prepare(g, id);
    guest_spawn(g);
    next_message(g, BHI_WS_SPAWNING, &message);
    BHT_EQ(message.type, BHI_MSG_HELLO);
    BHT_EQ(message.hello.worker, id);
    BHT_MEM_EQ(message.hello.token, g->token, sizeof g->token);
    do { /* |words| is for a sentinel: a GPU's worker hands its abort words out */
        next_message(g, BHI_WS_HELD, &message);
    } while (message.type == BHI_MSG_DEVICE || message.type == BHI_MSG_LOG ||
             message.type == BHI_MSG_WORDS);
    BHT_EQ(message.type, BHI_MSG_READY);
    g->ready = message.ready;
}

void guest_hang_up(struct guest *g) {
    bhi_channel_close(&g->channel);
    bhi_lane_control(&g->lane, ++g->control_sent);
    bhi_lane_wake(&g->lane);
    guest_expect_exit(g, CLD_EXITED, BHI_EXIT_SUPERVISOR);
    guest_close(g);
}

void guest_expect_exit(struct guest *g, int code, int status) {
    struct bhi_message message;
    client_expect(BHI_MSG_EXITED, &message);
    BHT_EQ(message.exited.worker, g->id);
    BHT_EQ(message.exited.code, code);
    BHT_EQ(message.exited.status, status);
    BHT_TRUE(pidfd_ended(g->pidfd, CLIENT_WAIT_MS));
}

void guest_close(struct guest *g) {
    if (!g->context) {
        return;
    }
    close_sent(g);
    bhi_channel_close(&g->channel);
    zmq_ctx_term(g->context);
    bhi_lane_destroy(&g->lane);
    bhi_progress_destroy(&g->progress);
    close(g->fdpass);
    close(g->doorbell);
    if (g->pidfd >= 0) {
        (void)pidfd_send_signal(g->pidfd, SIGKILL, NULL, 0);
        BHT_TRUE(pidfd_ended(g->pidfd, CLIENT_WAIT_MS));
        close(g->pidfd);
    }
    *g = (struct guest){0};
}
