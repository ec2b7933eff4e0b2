/* A small supervisor for the tests of warden, zygote and sandbox: it speaks S2Z and Z2S to a real
 * bulkhead-warden and bulkhead-worker. Every wait is bounded; what goes wrong ends the test. */
#ifndef BHT_CLIENT_H
#define BHT_CLIENT_H

#include "ipc/channel.h"
#include "ipc/fdpass.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "ipc/wire.h"

#include <stdbool.h>
#include <sys/types.h>

#define CLIENT_WAIT_MS (10000 * (int)bht_slowness())

struct client {
    pid_t warden;
    int socket;
    char dir[64];          /* runtime folder */
    char cgroup[256];      /* or "" */
    const char *starter;   /* NULL: bulkhead-warden */
    const char *program;   /* NULL: bulkhead-worker */
    const char *faults;    /* BULKHEAD_TEST_FAULTS, or NULL */
    const char *manifest;  /* VK_DRIVER_FILES, or NULL: the machine's */
    const char *worker_id; /* BULKHEAD_WORKER_ID, or NULL */
    struct bhi_msg_zygote_ready ready;
    int zygote; /* pidfd */
    pid_t zygote_pid;
};

/* A runtime folder and a started process, nothing said yet. */
void client_launch(struct client *client);
void client_send(struct client *client, const struct bhi_message *message, const int *fds,
                 size_t fd_count);
/* The next message, of the type |type|. Returns its descriptor, or -1. */
int client_expect(struct client *client, enum bhi_message_type type, struct bhi_message *out);
/* Nothing more comes: the other side is gone. */
void client_expect_end(struct client *client);
void client_start_message(struct client *client, struct bhi_message *out);
void client_send_start(struct client *client, const struct bhi_message *message);
/* launch, start, zygote_ready. */
void client_open(struct client *client);
/* Closes the socket; zygote and warden go by themselves; nothing is left of them. */
void client_close(struct client *client);
/* The warden's exit code, or 128 + signal. */
int client_wait_warden(struct client *client);

pid_t pid_of_pidfd(int pidfd);
/* Bounded. True when the process has ended. */
bool pidfd_ended(int pidfd, int timeout_ms);

/* A worker as the host sees it. */
struct guest {
    uint64_t id;
    struct bhi_lane lane;
    struct bhi_progress_view progress;
    int fdpass;
    int doorbell;
    int pidfd;
    uint8_t token[BHI_TOKEN_BYTES];
    void *context;
    struct bhi_channel channel;
    struct bhi_msg_ready ready;
    uint64_t memory_limit;
    uint32_t control_sent;
};

/* Lane, progress, sockets, channel; the request is in |out|, its descriptors in |fds|. */
void guest_prepare(struct client *client, struct guest *guest, uint64_t id, struct bhi_message *out,
                   int fds[5]);
/* Sends it, and expects `spawned`. */
void guest_spawn(struct client *client, struct guest *guest, const struct bhi_message *request,
                 const int fds[5]);
/* prepare, spawn, hello (its token is checked), devices, ready. */
void guest_open(struct client *client, struct guest *guest, uint64_t id);
/* The host goes: the guest ends by itself, and is closed. */
void guest_hang_up(struct client *client, struct guest *guest);
/* Expects `exited` of this guest. */
void guest_expect_exit(struct client *client, struct guest *guest, int code, int status);
/* Kills it if need be and drops all that the host has of it. */
void guest_close(struct guest *guest);

#endif
