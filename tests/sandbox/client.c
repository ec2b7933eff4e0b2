#include "client.h"
#include "faults.h"
#include "harness.h"
#include "worker/exit.h"

#include <errno.h>
#include <fcntl.h>
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

static const char *warden_program(const struct client *client) {
    if (client->starter) {
        return client->starter;
    }
    return client->faults ? BHT_WARDEN_FAULTY : BHT_WARDEN;
}

static const char *worker_program(const struct client *client) {
    if (client->program) {
        return client->program;
    }
    return client->faults ? BHT_WORKER_FAULTY : BHT_WORKER;
}

void client_launch(struct client *client) {
    client->zygote = -1;
    if (client->dir[0] == '\0') {
        snprintf(client->dir, sizeof client->dir, "/tmp/bulkhead-test-XXXXXX");
        BHT_TRUE(mkdtemp(client->dir));
    }
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    client->socket = pair[0];
    char noted[640], faults[680];
    char manifest[256];
    const char *library_path = getenv("LD_LIBRARY_PATH");
    char libraries[1024];
    char ids[64];
    char *environment[5] = {NULL};
    size_t count = 0;
    if (client->faults) {
        bht_faults_note(client->faults, noted, sizeof noted);
        snprintf(faults, sizeof faults, "BULKHEAD_TEST_FAULTS=%s", noted);
        environment[count++] = faults;
    }
    if (client->manifest) {
        snprintf(manifest, sizeof manifest, "VK_DRIVER_FILES=%s", client->manifest);
        environment[count++] = manifest;
    }
    if (client->worker_id) {
        snprintf(ids, sizeof ids, "BULKHEAD_WORKER_ID=%s", client->worker_id);
        environment[count++] = ids;
    }
    if (library_path) {
        snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", library_path);
        environment[count++] = libraries;
    }
    char *argv[] = {(char *)(uintptr_t)warden_program(client), "warden", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
    if (pair[1] == 3) { /* dup2 onto itself leaves CLOEXEC where it is */
        BHT_EQ(fcntl(3, F_SETFD, 0), 0);
    }
    BHT_EQ(posix_spawn(&client->warden, argv[0], &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
}

void client_send(struct client *client, const struct bhi_message *message, const int *fds,
                 size_t fd_count) {
    BHT_EQ(bhi_fdpass_send_message(client->socket, message, fds, fd_count), 0);
}

static void await_readable(int fd) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&ready, 1, CLIENT_WAIT_MS)) < 0 && errno == EINTR) {
    }
    BHT_EQ(n, 1);
}

int client_expect(struct client *client, enum bhi_message_type type, struct bhi_message *out) {
    int fds[BHI_FDPASS_MAX];
    char why[200] = "";
    await_readable(client->socket);
    int r =
        bhi_fdpass_recv_message(client->socket, BHI_Z2S, out, fds, MSG_DONTWAIT, why, sizeof why);
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

void client_expect_end(struct client *client) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    await_readable(client->socket);
    int r = bhi_fdpass_recv_message(client->socket, BHI_Z2S, &message, fds, MSG_DONTWAIT, NULL, 0);
    BHT_TRUE(r == 0 || r == -ECONNRESET);
}

void client_start_message(struct client *client, struct bhi_message *out) {
    memset(out, 0, sizeof *out);
    out->type = BHI_MSG_START;
    out->start.protocol = BHI_WIRE_VERSION;
    snprintf(out->start.runtime_dir, sizeof out->start.runtime_dir, "%s", client->dir);
    snprintf(out->start.cgroup_dir, sizeof out->start.cgroup_dir, "%s", client->cgroup);
}

void client_send_start(struct client *client, const struct bhi_message *message) {
    int fds[] = {pidfd_open(getpid(), 0), open(client->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                 open(worker_program(client), O_PATH | O_CLOEXEC)};
    BHT_TRUE(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
    client_send(client, message, fds, 3);
    for (size_t i = 0; i < BHT_COUNT(fds); i++) {
        close(fds[i]);
    }
}

void client_open(struct client *client) {
    struct bhi_message message;
    client_launch(client);
    client_start_message(client, &message);
    client_send_start(client, &message);
    client->zygote = client_expect(client, BHI_MSG_ZYGOTE_READY, &message);
    client->ready = message.zygote_ready;
    client->zygote_pid = pid_of_pidfd(client->zygote);
    BHT_GT(client->zygote_pid, 0);
}

bool pidfd_ended(int pidfd, int timeout_ms) {
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int n;
    while ((n = poll(&ended, 1, timeout_ms)) < 0 && errno == EINTR) {
    }
    return n == 1;
}

int client_wait_warden(struct client *client) {
    int pidfd = pidfd_open(client->warden, 0);
    BHT_GE(pidfd, 0);
    BHT_TRUE(pidfd_ended(pidfd, CLIENT_WAIT_MS));
    close(pidfd);
    siginfo_t info = {0};
    BHT_EQ(waitid(P_PID, (id_t)client->warden, &info, WEXITED), 0);
    client->warden = 0;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void client_close(struct client *client) {
    close(client->socket);
    if (client->warden != 0) {
        client_wait_warden(client);
    }
    if (client->zygote >= 0) {
        BHT_TRUE(pidfd_ended(client->zygote, 0));
        close(client->zygote);
    }
    char path[128];
    for (int id = 1; id < 64; id++) {
        snprintf(path, sizeof path, "%s/w%d", client->dir, id);
        unlink(path);
    }
    BHT_TRUE(rmdir(client->dir) == 0 || errno == ENOENT);
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

void guest_prepare(struct client *client, struct guest *guest, uint64_t id, struct bhi_message *out,
                   int fds[5]) {
    int pair[2];
    char path[128];
    guest->id = id;
    guest->pidfd = -1;
    BHT_EQ(bhi_lane_create(&guest->lane, RING, RESULTS), 0);
    BHT_EQ(bhi_progress_create(&guest->progress, RESULTS), 0);
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    guest->fdpass = pair[0];
    guest->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BHT_GE(guest->doorbell, 0);
    memset(guest->token, (int)id, sizeof guest->token);
    guest->context = zmq_ctx_new();
    BHT_TRUE(guest->context);
    snprintf(path, sizeof path, "%s/w%llu", client->dir, (unsigned long long)id);
    BHT_EQ(bhi_channel_open(&guest->channel, guest->context, path, &fds[4]), 0);

    memset(out, 0, sizeof *out);
    out->type = BHI_MSG_SPAWN;
    out->spawn.worker = id;
    memcpy(out->spawn.token, guest->token, sizeof guest->token);
    out->spawn.memory_limit = guest->memory_limit;
    out->spawn.lane_bytes = 4096 + RING;
    out->spawn.progress_bytes = bhi_progress_bytes(RESULTS);
    fds[0] = guest->lane.fd;
    fds[1] = guest->progress.fd;
    fds[2] = pair[1];
    fds[3] = guest->doorbell;
}

void guest_spawn(struct client *client, struct guest *guest, const struct bhi_message *request,
                 const int fds[5]) {
    struct bhi_message message;
    client_send(client, request, fds, 5);
    close(fds[2]);
    close(fds[4]);
    guest->pidfd = client_expect(client, BHI_MSG_SPAWNED, &message);
    BHT_EQ(message.spawned.worker, guest->id);
    if (message.spawned.held) { /* nobody here needs the device to outlive the worker */
        message = (struct bhi_message){.type = BHI_MSG_RELEASE};
        message.release.worker = guest->id;
        client_send(client, &message, NULL, 0);
    }
}

/* From the channel. A worker that has died is noticed at once, and its end is in the message. */
static void next_message(struct client *client, struct guest *guest, uint32_t states,
                         struct bhi_message *out) {
    const uint64_t end = bht_now_ns() + (uint64_t)CLIENT_WAIT_MS * 1000000;
    char why[200] = "";
    bool ended = false;
    int r;
    do {
        ended = pidfd_ended(guest->pidfd, 0);
        r = bhi_channel_recv(&guest->channel, BHI_W2S, states, 20, out, why, sizeof why);
    } while (r == -EAGAIN && !ended && bht_now_ns() < end);
    if (r == 0) {
        return;
    }
    const char *step = bhi_step_name(guest->progress.header->step);
    const char *text = guest->progress.header->step_told.text;
    if (ended) {
        client_expect(client, BHI_MSG_EXITED, out);
        BHT_FAIL("the worker has ended (code %d, status %d) in step %s: %s", out->exited.code,
                 out->exited.status, step, text);
    }
    BHT_FAIL("nothing from the worker: %s (%s); step %s: %s", strerror(-r), why, step, text);
}

void guest_open(struct client *client, struct guest *guest, uint64_t id) {
    struct bhi_message message;
    int fds[5];
    guest_prepare(client, guest, id, &message, fds);
    guest_spawn(client, guest, &message, fds);
    next_message(client, guest, BHI_WS_SPAWNING, &message);
    BHT_EQ(message.type, BHI_MSG_HELLO);
    BHT_EQ(message.hello.worker, id);
    BHT_MEM_EQ(message.hello.token, guest->token, sizeof guest->token);
    do { /* |words| is for a sentinel: a GPU's worker hands its abort words out */
        next_message(client, guest, BHI_WS_HELD, &message);
    } while (message.type == BHI_MSG_DEVICE || message.type == BHI_MSG_LOG ||
             message.type == BHI_MSG_WORDS);
    BHT_EQ(message.type, BHI_MSG_READY);
    guest->ready = message.ready;
}

void guest_hang_up(struct client *client, struct guest *guest) {
    bhi_channel_close(&guest->channel);
    bhi_lane_control(&guest->lane, ++guest->control_sent);
    bhi_lane_wake(&guest->lane);
    guest_expect_exit(client, guest, CLD_EXITED, BHI_EXIT_SUPERVISOR);
    guest_close(guest);
}

void guest_expect_exit(struct client *client, struct guest *guest, int code, int status) {
    struct bhi_message message;
    client_expect(client, BHI_MSG_EXITED, &message);
    BHT_EQ(message.exited.worker, guest->id);
    BHT_EQ(message.exited.code, code);
    BHT_EQ(message.exited.status, status);
    BHT_TRUE(pidfd_ended(guest->pidfd, CLIENT_WAIT_MS));
}

void guest_close(struct guest *guest) {
    bhi_channel_close(&guest->channel);
    zmq_ctx_term(guest->context);
    bhi_lane_destroy(&guest->lane);
    bhi_progress_destroy(&guest->progress);
    close(guest->fdpass);
    close(guest->doorbell);
    if (guest->pidfd >= 0) {
        (void)pidfd_send_signal(guest->pidfd, SIGKILL, NULL, 0);
        BHT_TRUE(pidfd_ended(guest->pidfd, CLIENT_WAIT_MS));
        close(guest->pidfd);
    }
}
