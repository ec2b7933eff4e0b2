/* The zygote from the host's side: spawning, reporting, probing, and what it does not accept. */
#include "client.h"
#include "harness.h"
#include "ipc/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BIT(NAME) (1ull << BHI_LAYER_##NAME)

TEST(starts_and_goes_with_the_socket) {
    client_open();
    BHT_STR_HAS(client.ready.library, "/");
    BHT_TRUE(client.ready.driver[0] != '\0');
    const uint64_t wanted =
        BIT(USERNS) | BIT(PIDNS) | BIT(NETNS) | BIT(IPCNS) | BIT(UTSNS) | BIT(MOUNTNS) | BIT(ROOT);
    BHT_EQ(client.ready.layers & wanted, wanted);
}

/* A driver reads dozens of variables: it gets those that the host passes on deliberately. */
TEST(of_the_environment_it_has_what_drivers_need) {
    static const char *const allowed[] = {
        "VK_DRIVER_FILES=", "VK_ICD_FILENAMES=", "LD_LIBRARY_PATH="};
    char path[64], *entry = NULL;
    size_t capacity = 0;
    client_open();
    snprintf(path, sizeof path, "/proc/%d/environ", (int)client.zygote_pid);
    FILE *file = fopen(path, "re");
    while (file && getdelim(&entry, &capacity, '\0', file) > 0) {
        bool is_known = false;
        for (size_t i = 0; i < BHT_COUNT(allowed); i++) {
            is_known |= strncmp(entry, allowed[i], strlen(allowed[i])) == 0;
        }
        if (!is_known) {
            BHT_FAIL("it has %s", entry);
        }
    }
    BHT_TRUE(file || geteuid() != 0); /* only root may look */
    if (file) {
        fclose(file);
    }
    free(entry);
}

static void ask_probe(uint32_t layer) {
    struct bhi_message message = {.type = BHI_MSG_PROBE};
    message.probe.layer = layer;
    client_send(&message, NULL, 0);
}

static void expect_walls(void) {
    client_open();
    for (uint32_t layer = 0; layer < BHI_LAYER_COUNT; layer++) {
        struct bhi_message message;
        const struct bhi_layer_info *info = bhi_layer_info(layer);
        ask_probe(layer);
        client_expect(BHI_MSG_PROBED, &message);
        printf("  %-16s %u %s\n", info->name, message.probed.result, message.probed.text);
        BHT_EQ(message.probed.layer, layer);
        BHT_TRUE(message.probed.text[0] != '\0');
        if (layer == BHI_LAYER_MEMORY_CGROUP) {
            BHT_EQ(message.probed.result, 0); /* the host's to prove */
        } else if (message.probed.result != 1) {
            BHT_TRUE(!info->required && message.probed.result == 0);
        }
        struct statvfs limits; /* of some containers nobody can write them */
        if (layer == BHI_LAYER_USERNS && statvfs("/proc/sys", &limits) == 0 &&
            (limits.f_flag & ST_RDONLY) == 0) {
            BHT_STR_HAS(message.probed.text, "a user namespace below: ENOSPC");
        }
    }
}

TEST(probes_hold) {
    expect_walls();
}

/* The same walls with another table: that of CUDA's driver. */
TEST(probes_hold_with_cuda) {
    setenv("LD_LIBRARY_PATH", BHT_FAKE_CUDA_FOLDER, 1);
    client.driver = "cuda";
    expect_walls();
    BHT_STR_EQ(client.ready.driver, "cuda");
}

/* All at once, beside a worker, and more than it takes: each gets an answer, the worker too. */
TEST(probes_do_not_block) {
    struct bhi_message message;
    unsigned answers = 0;
    unsigned refused = 0;
    client_open();
    guest_open(&guest, 1);
    for (unsigned i = 0; i < 12; i++) {
        ask_probe(BHI_LAYER_SECCOMP_STEADY);
    }
    for (; answers < 12; answers++) {
        client_expect(BHI_MSG_PROBED, &message);
        refused += message.probed.result == 2;
        if (message.probed.result == 2) {
            BHT_STR_HAS(message.probed.text, "too many probes at once");
        }
    }
    BHT_LE(refused, 4);
    guest_hang_up(&guest);
}

TEST(probe_unknown_layer) {
    struct bhi_message message;
    client_open();
    ask_probe(63);
    client_expect(BHI_MSG_PROBED, &message);
    BHT_EQ(message.probed.layer, 63);
    BHT_EQ(message.probed.result, 0);
}

/* -- spawning ------------------------------------------------------------------------------- */

static void expect_spawn_failed(uint64_t id, int error) {
    struct bhi_message message;
    client_expect(BHI_MSG_SPAWN_FAILED, &message);
    BHT_EQ(message.spawn_failed.worker, id);
    BHT_EQ(message.spawn_failed.error, error);
}

TEST(spawn_id_is_taken) {
    client_open();
    guest_open(&guest, 1);
    guest_prepare(&second, 2);
    second.request.spawn.worker = 1;
    client_send(&second.request, second.fds, 5);
    expect_spawn_failed(1, EEXIST);
}

/* A pids cgroup that is full. Only where this test may make one. */
TEST(spawn_cannot_fork) {
    char cgroup[64];
    char path[96];
    char text[16];
    snprintf(cgroup, sizeof cgroup, "/sys/fs/cgroup/pids/bulkhead.test.%d", (int)getpid());
    if (mkdir(cgroup, 0755) != 0) {
        printf("  no pids cgroup can be made here\n");
        return;
    }
    client_open();
    const char *const files[] = {"pids.max", "cgroup.procs"};
    const int values[] = {1, client.zygote_pid};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", cgroup, files[i]);
        int length = snprintf(text, sizeof text, "%d", values[i]);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        BHT_GE(fd, 0);
        BHT_EQ(write(fd, text, (size_t)length), length);
        close(fd);
    }
    guest_prepare(&guest, 1);
    client_send(&guest.request, guest.fds, 5);
    expect_spawn_failed(1, EAGAIN);
    client_close();
    BHT_EQ(rmdir(cgroup), 0);
}

/* Many deaths: each is reported once, and nothing piles up in the zygote. */
TEST(deaths_leave_nothing) {
    client_open();
    size_t descriptors = 0;
    for (uint64_t id = 1; id <= 20; id++) {
        guest_open(&guest, id);
        BHT_EQ(pidfd_send_signal(guest.pidfd, SIGKILL, NULL, 0), 0);
        guest_expect_exit(&guest, CLD_KILLED, SIGKILL);
        guest_close(&guest);
        WAIT_UNTIL(bht_count_children(client.zygote_pid) == 0, 1000);
        if (id == 1) {
            descriptors = bht_count_descriptors(client.zygote_pid);
        }
        BHT_EQ(bht_count_descriptors(client.zygote_pid), descriptors);
    }
}

/* -- how a worker ends, as its zygote tells it ----------------------------------------------- */

static void dies_of(const char *faults, int code, int status) {
    client.faults = faults;
    client_open();
    guest_prepare(&guest, 1);
    guest_spawn(&guest);
    guest_expect_exit(&guest, code, status);
    client_close();
}

/* Before, between and behind the filters: a crash looks like itself everywhere. */
TEST(reports_segv) {
    dies_of("1:sandbox:1=segv", CLD_KILLED, SIGSEGV);
    dies_of("1:warm_up:1=segv", CLD_KILLED, SIGSEGV);
}
TEST(reports_abort) {
    dies_of("1:sandbox:1=abort", CLD_KILLED, SIGABRT);
    dies_of("1:warm_up:1=abort", CLD_KILLED, SIGABRT);
}
TEST(reports_kill) {
    dies_of("*:warm_up:*=kill", CLD_KILLED, SIGKILL);
}
TEST(reports_forbidden_call) {
    dies_of("1:warm_up:1=sigsys", CLD_KILLED, SIGSYS);
    dies_of("1:ready:1=sigsys", CLD_KILLED, SIGSYS);
}
TEST(reports_exit) {
    dies_of("1:warm_up:1=exit0", CLD_EXITED, 0);
    dies_of("1:warm_up:1=exit7", CLD_EXITED, 7);
}
TEST(faults_choose_their_worker) {
    client.faults = "2:device:1=exit7";
    client_open();
    guest_open(&guest, 1);
    guest_prepare(&second, 2);
    guest_spawn(&second);
    guest_expect_exit(&second, CLD_EXITED, 7);
}

/* -- a host that talks nonsense -------------------------------------------------------------- */

static void expect_zygote_gives_up(void) {
    BHT_TRUE(pidfd_ended(client.zygote, CLIENT_WAIT_MS));
    client_expect_end();
}

TEST(garbage) {
    client_open();
    BHT_EQ(bhi_fdpass_send(client.socket, "garbage", 7, NULL, 0), 0);
    expect_zygote_gives_up();
}

TEST(second_start) {
    client_open();
    const struct bhi_message message = client_start_message();
    client_send_start(&message);
    expect_zygote_gives_up();
}

TEST(spawn_without_descriptors) {
    uint8_t bytes[BHI_WIRE_MAX];
    client_open();
    guest_prepare(&guest, 1);
    int length = bhi_wire_encode(&guest.request, bytes, sizeof bytes);
    BHT_EQ(bhi_fdpass_send(client.socket, bytes, (size_t)length, guest.fds, 3), 0);
    guest_close(&guest);
    expect_zygote_gives_up();
}
