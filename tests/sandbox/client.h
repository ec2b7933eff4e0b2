/* A small supervisor for the tests of warden, zygote and sandbox: it speaks S2Z and Z2S to a real
 * bulkhead-warden and bulkhead-worker. Every wait is bounded; what goes wrong ends the test. After
 * each test its guests are ended, and then nothing may be left of it. */
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

extern struct client {
    pid_t warden; /* 0: there is none */
    int socket;
    char dir[64];          /* runtime folder */
    char cgroup[256];      /* or "" */
    pid_t host;            /* 0: this process */
    const char *starter;   /* NULL: bulkhead-warden */
    const char *program;   /* NULL: bulkhead-worker */
    const char *faults;    /* BULKHEAD_TEST_FAULTS, or NULL */
    const char *driver;    /* NULL: the default one */
    const char *manifest;  /* VK_DRIVER_FILES, or NULL: the machine's */
    const char *worker_id; /* BULKHEAD_WORKER_ID, or NULL */
    char fake[64];         /* the manifest of client_fake_driver */
    struct bhi_msg_zygote_ready ready;
    int zygote; /* pidfd */
    pid_t zygote_pid;
} client;

/* A runtime folder and a started process, nothing said yet. */
void client_launch(void);
void client_send(const struct bhi_message *message, const int *fds, size_t fd_count);
/* The next message, of the type |type|. Returns its descriptor, or -1. */
int client_expect(enum bhi_message_type type, struct bhi_message *out);
/* Nothing more comes: the other side is gone. */
void client_expect_end(void);
/* What asks it to start; and asks it. */
struct bhi_message client_start_message(void);
void client_send_start(const struct bhi_message *message);
/* launch, start, zygote_ready. */
void client_open(void);
/* Ends the guests, and closes the socket; zygote and warden go by themselves; nothing is left of
 * them. Another one can be opened. */
void client_close(void);
/* The warden's exit code, or 128 + signal. */
int client_wait_warden(void);
/* A manifest, until the client is closed, that names one of the fakes. */
void client_fake_driver(const char *fake);

pid_t pid_of_pidfd(int pidfd);
/* Bounded. True when the process has ended. */
bool pidfd_ended(int pidfd, int timeout_ms);

/* A worker as the host sees it. */
extern struct guest {
    uint64_t id;
    struct bhi_lane lane;
    struct bhi_progress_view progress;
    int fdpass;
    int doorbell;
    int pidfd;
    uint8_t token[BHI_TOKEN_BYTES];
    void *context; /* NULL: there is none */
    struct bhi_channel channel;
    struct bhi_msg_ready ready;
    uint64_t memory_limit;
    uint32_t control_sent;
    struct bhi_message request; /* to spawn it, until it is sent */
    int fds[5];
} guest, second;

/* Lane, progress, sockets, channel; the request. */
void guest_prepare(struct guest *guest, uint64_t id);
/* Sends it, and expects `spawned`. */
void guest_spawn(struct guest *guest);
/* prepare, spawn, hello (its token is checked), devices, ready. */
void guest_open(struct guest *guest, uint64_t id);
/* The host goes: the guest ends by itself, and is closed. */
void guest_hang_up(struct guest *guest);
/* Expects `exited` of this guest. */
void guest_expect_exit(struct guest *guest, int code, int status);
/* Kills it if need be and drops all that the host has of it. */
void guest_close(struct guest *guest);

#endif
