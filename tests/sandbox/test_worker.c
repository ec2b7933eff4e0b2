/* A worker's start: every thread is behind every layer, and each step that fails says why. */
#include "base/memfd.h"
#include "client.h"
#include "harness.h"
#include "ipc/layers.h"

#include <bulkhead/status.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIT(NAME)    (1ull << BHI_LAYER_##NAME)
#define START_FAILED 71
#if BHI_SANITIZED
#define SANITIZED true
#else
#define SANITIZED false
#endif

TEST(starts_and_ends) {
    client_open();
    guest_open(&guest, 1);
    const uint64_t wanted = BIT(USERNS) | BIT(PIDNS) | BIT(NETNS) | BIT(IPCNS) | BIT(UTSNS) |
                            BIT(MOUNTNS) | BIT(ROOT) | BIT(DESCRIPTORS) | BIT(CAPABILITIES) |
                            BIT(NO_NEW_PRIVS) | BIT(NOT_DUMPABLE) | BIT(RLIMITS) |
                            BIT(SECCOMP_START) | BIT(SECCOMP_STEADY);
    BHT_EQ(guest.ready.layers & wanted, wanted);
    BHT_EQ(guest.ready.layers & (BIT(MEMORY_CGROUP) | BIT(MEMORY_RLIMIT)), 0);
    BHT_EQ(guest.progress.header->step, BHI_STEP_RUNNING);
    guest_hang_up(&guest);
}

/* -- /proc ---------------------------------------------------------------------------------- */

static void read_text(const char *path, char *out, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    BHT_GT(n, 0);
    out[n] = '\0';
}

static void check_thread(const char *status) {
    BHT_STR_HAS(status, "\nSeccomp:\t2\n");
    BHT_STR_HAS(status, "\nSeccomp_filters:\t2\n"); /* A and B */
    BHT_STR_HAS(status, "\nNoNewPrivs:\t1\n");
    BHT_STR_HAS(status, "\nCapInh:\t0000000000000000\n");
    BHT_STR_HAS(status, "\nCapPrm:\t0000000000000000\n");
    BHT_STR_HAS(status, "\nCapEff:\t0000000000000000\n");
    BHT_STR_HAS(status, "\nCapBnd:\t0000000000000000\n");
    BHT_STR_HAS(status, "\nCapAmb:\t0000000000000000\n");
}

TEST(every_thread_is_behind_it) {
    char path[PATH_MAX];
    char status[8192];
    client_open();
    guest_open(&guest, 1);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid_of_pidfd(guest.pidfd));
    DIR *tasks = opendir(path);
    BHT_TRUE(tasks);
    unsigned threads = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid_of_pidfd(guest.pidfd),
                 entry->d_name);
        read_text(path, status, sizeof status);
        check_thread(status);
        threads++;
    }
    closedir(tasks);
    BHT_GE(threads, 3); /* its own, and at least ZeroMQ's two */
}

/* Each descriptor of |pid| is of one of |known|; NULL ends them. */
static void expect_descriptors(pid_t pid, const char *const *known) {
    char path[PATH_MAX];
    char target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    if (!fds) {
        BHT_EQ(errno, EACCES); /* not for an ordinary user's eyes: it is not dumpable */
        printf("  only root may look\n");
    }
    for (const struct dirent *entry; fds && (entry = readdir(fds));) {
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);
        if (n <= 0) {
            continue;
        }
        target[n] = '\0';
        bool is_known = SANITIZED && strcmp(entry->d_name, "2") == 0; /* its reports */
        if (!is_known && atoi(entry->d_name) <= 2) { /* the host's could be a terminal */
            BHT_STR_EQ(target, "/dev/null");
        }
        for (size_t i = 0; known[i]; i++) {
            is_known |= strncmp(target, known[i], strlen(known[i])) == 0;
        }
        /* The lane and the progress, or the warden's page, are mapped, and closed. */
        if (!is_known || strstr(target, "bulkhead")) {
            BHT_FAIL("descriptor %s is %s", entry->d_name, target);
        }
    }
    if (fds) {
        closedir(fds);
    }
}

/* Only its own. A worker: null, the side channel, the doorbell, its pipe from the zygote, what ZeroMQ
 * made, the driver's devices. A zygote: null, the host's socket, the warden's pipe, its children's signals
 * and pipes, its own file of the score; none that the warden had open for itself. */
TEST(descriptors_are_its_own) {
    static const char *const workers[] = {"/dev/null",   "socket:",
                                          "pipe:",       "anon_inode:[eventfd]",
                                          "/dev/nvidia", "anon_inode:[eventpoll]",
                                          "/proc/",      "/memfd:",
                                          NULL};
    static const char *const zygotes[] = {"/dev/null", "socket:", "pipe:", "anon_inode:[signalfd]",
                                          "/proc/",    NULL};
    client_open();
    guest_open(&guest, 1);
    expect_descriptors(pid_of_pidfd(guest.pidfd), workers);
    expect_descriptors(client.zygote_pid, zygotes);
}

/* A look at a busy device comes when it was to come. */
TEST(its_naps_end_in_time) {
    client_open();
    guest_open(&guest, 1);
    const pid_t pid = pid_of_pidfd(guest.pidfd);
    BHT_EQ(bht_proc_number(pid, "timerslack_ns", "", -1), 1);
}

/* Which pipes a worker has open: "pipe:[1234]". Returns their number; 0 too if only root may look. */
static size_t pipes_of(const struct guest *of, char pipes[][32], size_t capacity) {
    char path[PATH_MAX];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid_of_pidfd(of->pidfd));
    DIR *fds = opendir(path);
    for (const struct dirent *entry; fds && count < capacity && (entry = readdir(fds));) {
        const ssize_t n = readlinkat(dirfd(fds), entry->d_name, pipes[count], 31);
        pipes[count][n > 0 ? n : 0] = '\0';
        count += !SANITIZED && strncmp(pipes[count], "pipe:", 5) == 0;
    }
    if (fds) {
        closedir(fds);
    }
    return count;
}

/* One of two workers could empty a pipe that both have, and so take what is for both: the byte that
 * announces the host's end. */
TEST(no_pipe_is_shared) {
    struct guest *const guests[] = {&guest, &second};
    char pipes[2][8][32];
    size_t counts[2];
    client_open();
    for (unsigned i = 0; i < 2; i++) {
        guest_open(guests[i], i + 1);
        counts[i] = pipes_of(guests[i], pipes[i], BHT_COUNT(pipes[i]));
    }
    BHT_EQ(counts[0], counts[1]);
    BHT_TRUE(counts[0] > 0 || SANITIZED || geteuid() != 0);
    for (size_t i = 0; i < counts[0]; i++) {
        for (size_t k = 0; k < counts[1]; k++) {
            BHT_TRUE(strcmp(pipes[0][i], pipes[1][k]) != 0);
        }
    }
}

/* -- steps that fail ------------------------------------------------------------------------ */

/* It gives up in that step for that reason. */
static void expect_refusal(enum bhi_step step, bh_reason reason) {
    guest_spawn(&guest);
    guest_expect_exit(&guest, CLD_EXITED, START_FAILED);
    BHT_EQ(guest.progress.header->step_told.reason, reason);
    BHT_EQ(guest.progress.header->step, step);
    BHT_NE(guest.progress.header->step_status, BH_OK);
}

static void open_and_prepare(void) {
    client_open();
    guest_prepare(&guest, 1);
}

TEST(lane_of_another_size) {
    open_and_prepare();
    guest.request.spawn.lane_bytes += 4096;
    expect_refusal(BHI_STEP_SANDBOX, BH_REASON_SYSTEM_STEP);
}

TEST(lane_not_sealed) {
    open_and_prepare();
    int open_lane = bhi_memfd_create("open", guest.request.spawn.lane_bytes, 1);
    BHT_GE(open_lane, 0);
    guest.fds[0] = open_lane;
    expect_refusal(BHI_STEP_SANDBOX, BH_REASON_SYSTEM_STEP);
    close(open_lane);
}

/* Nowhere to say anything: it goes all the same. */
TEST(progress_not_sealed) {
    open_and_prepare();
    int open_progress = bhi_memfd_create("open", guest.request.spawn.progress_bytes, 1);
    BHT_GE(open_progress, 0);
    guest.fds[1] = open_progress;
    guest_spawn(&guest);
    guest_expect_exit(&guest, CLD_EXITED, START_FAILED);
    close(open_progress);
}

TEST(nobody_listens) {
    open_and_prepare();
    close(guest.fds[4]);
    guest.fds[4] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BHT_GE(guest.fds[4], 0);
    expect_refusal(BHI_STEP_CONTROL, BH_REASON_SYSTEM_STEP);
}

TEST(no_such_device) {
    open_and_prepare();
    guest.request.spawn.device_index = 63;
    expect_refusal(BHI_STEP_DEVICE, BH_REASON_DEVICE_GONE);
}

static void injected(const char *faults, enum bhi_step step, bh_reason reason) {
    client.faults = faults;
    open_and_prepare();
    expect_refusal(step, reason);
    client_close();
}

TEST(each_step_can_fail) {
    injected("1:sandbox:1=fail", BHI_STEP_SANDBOX, BH_REASON_STEP);
    injected("1:connect:1=fail", BHI_STEP_CONTROL, BH_REASON_SYSTEM_STEP);
    injected("1:hello:1=fail", BHI_STEP_CONTROL, BH_REASON_SYSTEM_STEP);
    injected("1:lock_down:1=fail", BHI_STEP_LOCK_DOWN, BH_REASON_STEP);
}

TEST(driver_too_old) {
    client_fake_driver("old");
    open_and_prepare();
    expect_refusal(BHI_STEP_DEVICE, BH_REASON_DRIVER_USE);
}

/* -- memory --------------------------------------------------------------------------------- */

#if !BHI_SANITIZED /* no RLIMIT_DATA, no interposers there */

/* Far too little: it cannot start, and the refused allocations are on record. */
TEST(memory_limit_is_felt) {
    guest.memory_limit = 24u << 20;
    struct bhi_message message;
    open_and_prepare();
    guest_spawn(&guest);
    client_expect(BHI_MSG_EXITED, &message);
    BHT_TRUE(message.exited.code != CLD_EXITED || message.exited.status == START_FAILED);
    /* nvidia's libraries do not get as far: the dynamic linker's mappings are not counted. */
    if (strcmp(client.ready.driver, "nvidia") != 0) {
        BHT_GT(guest.progress.header->refused_allocations, 0);
    }
}

TEST(memory_limit_is_reported) {
    guest.memory_limit = 4ull << 30;
    client_open();
    guest_open(&guest, 1);
    BHT_EQ(guest.ready.layers & BIT(MEMORY_RLIMIT), BIT(MEMORY_RLIMIT));
    BHT_EQ(guest.progress.header->refused_allocations, 0);
}

#endif

/* -- its token -------------------------------------------------------------------------------- */

/* Is |bytes| in memory of |pid| that it can write? */
static bool has_in_memory(pid_t pid, const uint8_t *bytes, size_t size) {
    char path[64], *line = NULL;
    size_t capacity = 0;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    const int memory = open(path, O_RDONLY | O_CLOEXEC);
    BHT_TRUE((maps && memory >= 0) || geteuid() != 0); /* only root may look */
    while (maps && memory >= 0 && getline(&line, &capacity, maps) > 0) {
        static uint8_t page[4096];
        unsigned long from, to;
        char rights[5];
        BHT_EQ(sscanf(line, "%lx-%lx %4s", &from, &to, rights), 3);
        if (to - from > 1ul << 28) {
            continue; /* a sanitizer's shadow, of terabytes */
        }
        for (; rights[1] == 'w' && from < to; from += sizeof page) {
            has |= pread(memory, page, sizeof page, (off_t)from) == (ssize_t)sizeof page &&
                   memmem(page, sizeof page, bytes, size);
        }
    }
    free(line);
    if (maps) {
        fclose(maps);
    }
    if (memory >= 0) {
        close(memory);
    }
    return has;
}

/* The next worker inherits all that the zygote has. */
TEST(no_token_is_left_in_the_zygote) {
    client_open();
    guest_open(&guest, 1);
    BHT_TRUE(!has_in_memory(client.zygote_pid, guest.token, sizeof guest.token));
    guest_hang_up(&guest);
}
