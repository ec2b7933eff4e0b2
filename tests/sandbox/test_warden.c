/* The warden: what it refuses, and that nothing outlives its host, however that dies. */
#include "base/memfd.h"
#include "client.h"
#include "faults.h"
#include "harness.h"
#include "worker/warden/zygote_start.h"

#include <bulkhead/status.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef BHI_SANITIZED
#define BHI_SANITIZED 0
#endif

/* The promise: within a second of the host's death. */
#define GONE_MS      (1000 * (int)bht_slowness())
#define START_FAILED 71 /* BHI_EXIT_START_FAILED */

/* -- starting: what is refused, and how it says so ------------------------------------------ */

/* The next word is zygote_failed with |status| and |reason|; then the warden goes. */
static void expect_failure(bh_status status, bh_reason reason) {
    struct bhi_message message;
    client_expect(BHI_MSG_ZYGOTE_FAILED, &message);
    BHT_EQ(message.zygote_failed.reason, reason);
    BHT_EQ(message.zygote_failed.status, status);
    client_expect_end();
    BHT_EQ(client_wait_warden(), START_FAILED);
}

static void start_with(const char *driver) {
    client_launch();
    struct bhi_message message = client_start_message();
    snprintf(message.start.driver, sizeof message.start.driver, "%s", driver);
    client_send_start(&message);
}

TEST(driver_absent) {
    client.manifest = "/nonexistent/icd.json";
    start_with("");
    expect_failure(BH_NO_DEVICE, BH_REASON_NO_DRIVER);
}

TEST(driver_unknown) {
    start_with("voodoo");
    expect_failure(BH_NO_DEVICE, BH_REASON_DRIVER_NAME);
}

TEST(driver_by_name) {
    client_open();
    const struct bhi_msg_zygote_ready first = client.ready;
    struct bhi_message message;
    client_close();
    start_with(first.driver);
    client.zygote = client_expect(BHI_MSG_ZYGOTE_READY, &message);
    BHT_STR_EQ(message.zygote_ready.driver, first.driver);
    BHT_STR_EQ(message.zygote_ready.library, first.library);
}

static void expect_fake_failure(const char *fake, bh_status status, bh_reason reason) {
    client_fake_driver(fake);
    start_with("lavapipe");
    expect_failure(status, reason);
}

TEST(driver_crashes_on_loading) {
    expect_fake_failure("crash", BH_UNSUPPORTED, BH_REASON_ZYGOTE_DIED);
}

/* It is found while it is loaded: until then it has the name that it was asked for by. */
TEST(nvrtc_that_crashes_on_loading_is_named) {
    struct bhi_message message;
    BHT_EQ(setenv("BULKHEAD_NVRTC", BHT_FAKES "/crash/libvulkan_lvp.so", 1), 0);
    start_with("nvrtc");
    client_expect(BHI_MSG_ZYGOTE_FAILED, &message);
    BHT_EQ(message.zygote_failed.reason, BH_REASON_ZYGOTE_DIED);
    BHT_STR_EQ(message.zygote_failed.name, "nvrtc");
    client_expect_end();
    BHT_EQ(client_wait_warden(), START_FAILED);
}

/* It is no fault of the driver's, which would make a stream UNSUPPORTED until it is reset. */
TEST(zygote_killed_while_it_loads_the_driver_is_unavailable) {
    client_fake_driver("stuck");
    start_with("lavapipe");
    pid_t zygote;
    WAIT_UNTIL((zygote = bht_descendant_called(client.warden, "stuck")) > 0, 20000);
    BHT_EQ(kill(zygote, SIGKILL), 0);
    expect_failure(BH_UNAVAILABLE, BH_REASON_PROCESS_DIED);
}

TEST(driver_starts_a_thread) {
    expect_fake_failure("thread", BH_UNSUPPORTED, BH_REASON_DRIVER_USE);
}

TEST(driver_is_none) {
    expect_fake_failure("none", BH_NO_DEVICE, BH_REASON_DRIVER_BROKEN);
}

/* Found as the dynamic linker finds it, without a manifest. */
TEST(driver_is_no_cuda) {
    const char *folder = bht_folder();
    char link[128];
    BHT_EQ(chmod(folder, 0755), 0);
    snprintf(link, sizeof link, "%s/libcuda.so.1", folder);
    BHT_EQ(symlink(BHT_FAKES "/none/libvulkan_lvp.so", link), 0);
    setenv("LD_LIBRARY_PATH", folder, 1);
    start_with("cuda");
    expect_failure(BH_NO_DEVICE, BH_REASON_DRIVER_BROKEN);
}

static void start_in(const char *folder) {
    client_launch();
    struct bhi_message message = client_start_message();
    snprintf(message.start.runtime_dir, sizeof message.start.runtime_dir, "%s", folder);
    client_send_start(&message);
}

TEST(runtime_folder_missing) {
    start_in("/nonexistent/dir");
    expect_failure(BH_UNSUPPORTED, BH_REASON_STEP);
}

TEST(runtime_folder_relative) {
    start_in("tmp");
    expect_failure(BH_SYSTEM, BH_REASON_SYSTEM_STEP);
}

TEST(first_message_garbage) {
    client_launch();
    BHT_EQ(bhi_fdpass_send(client.socket, "garbage", 7, NULL, 0), 0);
    expect_failure(BH_SYSTEM, BH_REASON_SYSTEM_STEP);
}

TEST(first_message_another) {
    struct bhi_message message = {.type = BHI_MSG_PROBE};
    client_launch();
    client_send(&message, NULL, 0);
    expect_failure(BH_SYSTEM, BH_REASON_SYSTEM_STEP);
}

TEST(start_without_pidfd) {
    uint8_t bytes[BHI_WIRE_MAX];
    client_launch();
    const struct bhi_message message = client_start_message();
    int length = bhi_wire_encode(&message, bytes, sizeof bytes);
    BHT_GT(length, 0);
    int folder = open(client.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BHT_EQ(bhi_fdpass_send(client.socket, bytes, (size_t)length, &folder, 1), 0);
    close(folder);
    expect_failure(BH_SYSTEM, BH_REASON_SYSTEM_STEP);
}

TEST(host_gone_before_start) {
    client_launch();
    close(client.socket);
    client.socket = -1;
    BHT_EQ(client_wait_warden(), 0);
    BHT_EQ(rmdir(client.dir), 0); /* it was never told of it */
}

/* -- deaths --------------------------------------------------------------------------------- */

enum { WARDEN, ZYGOTE, WORKER, ACTORS };

/* What a forked host tells the test. */
static struct scene {
    _Atomic int ready;
    _Atomic bool watched; /* there is a pidfd of each: the host may die */
    pid_t pids[ACTORS];
    char dir[64];
} *scene;

struct script {
    const char *faults;
    const char *cgroup; /* or NULL */
    bool child_stays;   /* the host has forked a child that lives on, with all its descriptors */
    bool half_started;  /* the worker need not become ready */
    bool dies_slowly;   /* when it is told to, it ends, but not its last thread */
};

/* What the kernel does with a process that dies: its first thread has ended, so it counts as
 * exiting; the socket is closed; and something takes long. */
static void *last_thread(void *argument) {
    WAIT_UNTIL(bht_process_state(getpid()) == 'Z', 20000);
    close(*(const int *)argument);
    for (;;) {
        pause();
    }
    return NULL;
}

static _Noreturn void be_host(const struct script *script) {
    client.faults = script->faults;
    snprintf(client.cgroup, sizeof client.cgroup, "%s", script->cgroup ? script->cgroup : "");
    client_open();
    if (script->half_started) {
        guest_prepare(&guest, 1);
        guest_spawn(&guest);
    } else {
        guest_open(&guest, 1);
    }
    if (script->child_stays && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        scene->ready++;
        for (;;) {
            pause();
        }
    }
    scene->pids[WARDEN] = client.warden;
    scene->pids[ZYGOTE] = client.zygote_pid;
    scene->pids[WORKER] = pid_of_pidfd(guest.pidfd);
    snprintf(scene->dir, sizeof scene->dir, "%s", client.dir);
    scene->ready++;
    if (script->dies_slowly) {
        pthread_t thread;
        WAIT_UNTIL(scene->watched, 20000); /* or a pid that is to be opened is gone */
        BHT_EQ(pthread_create(&thread, NULL, last_thread, &client.socket), 0);
        syscall(SYS_exit, 0);
    }
    for (;;) {
        pause();
    }
}

static pid_t host;
static int pidfds[ACTORS];

static void set_scene(struct script script) {
    scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_TRUE(scene != MAP_FAILED);
    host = fork();
    BHT_GE(host, 0);
    if (host == 0) {
        be_host(&script);
    }
    const int wanted = 1 + (script.child_stays ? 1 : 0);
    WAIT_UNTIL(scene->ready == wanted || bht_process_state(host) == 'Z', 20000);
    BHT_EQ(scene->ready, wanted);
    for (int i = 0; i < ACTORS; i++) {
        pidfds[i] = pidfd_open(scene->pids[i], 0);
        BHT_GE(pidfds[i], 0);
    }
    scene->watched = true;
}

static void end_scene(void) {
    if (scene) {
        munmap(scene, sizeof *scene);
    }
}

BHT_AT_START(bht_around(NULL, end_scene))

static void kill_host(void) {
    BHT_EQ(kill(host, SIGKILL), 0);
    BHT_EQ(waitpid(host, NULL, 0), host);
}

/* The warden, then, is a child of ours (the harness adopts orphans): it is dead, and only waits. */
static void bury(pid_t pid) {
    BHT_TRUE(waitpid(pid, NULL, WNOHANG) == pid || errno == ECHILD);
}

/* All of them within |GONE_MS| from now. */
static void expect_dead(void) {
    const uint64_t end = bht_now_ns() + (uint64_t)GONE_MS * 1000000;
    for (int i = 0; i < ACTORS; i++) {
        uint64_t now = bht_now_ns();
        BHT_TRUE(pidfd_ended(pidfds[i], now < end ? (int)((end - now) / 1000000) : 0));
        close(pidfds[i]);
    }
    bury(scene->pids[WARDEN]);
}

/* And the folder. */
static void expect_all_gone(void) {
    struct stat st;
    expect_dead();
    BHT_TRUE(stat(scene->dir, &st) != 0 && errno == ENOENT);
}

TEST(host_killed) {
    set_scene((struct script){0});
    kill_host();
    expect_all_gone();
}

/* The socket tells before the pidfd does (decision 1). The folder is removed by a warden that has
 * seen its host go, and by no other. */
TEST(host_dies_slowly) {
    set_scene((struct script){.dies_slowly = true});
    expect_all_gone();
    BHT_EQ(waitpid(host, NULL, WNOHANG), 0); /* it has not ended */
    kill_host();
    bury(scene->pids[WARDEN]); /* which was the host's until now */
}

/* Its child holds the socket open: only the pidfd tells. */
TEST(host_killed_child_stays) {
    BHT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    set_scene((struct script){.child_stays = true});
    kill_host();
    expect_all_gone();
    /* The one that stayed is ours now. */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    BHT_TRUE(children);
    int survivor = 0;
    BHT_EQ(fscanf(children, "%d", &survivor), 1);
    fclose(children);
    BHT_EQ(kill(survivor, 0), 0); /* it is alive: so nobody's end of file has helped */
    kill(survivor, SIGKILL);
    BHT_EQ(waitpid(survivor, NULL, 0), survivor);
}

TEST(host_killed_worker_hangs) {
    set_scene((struct script){.faults = "1:warm_up:1=hang", .half_started = true});
    WAIT_UNTIL(bht_faults_happened(), 20000);
    kill_host();
    expect_all_gone();
}

TEST(host_killed_zygote_stopped) {
    set_scene((struct script){0});
    BHT_EQ(pidfd_send_signal(pidfds[ZYGOTE], SIGSTOP, NULL, 0), 0);
    WAIT_UNTIL(bht_process_state(scene->pids[ZYGOTE]) == 'T', 2000);
    kill_host();
    expect_all_gone();
}

/* Its host has let go, and lives: the warden waits for the zygote, and is not awake meanwhile. */
TEST(socket_closed_zygote_stopped) {
    client_open();
    BHT_EQ(pidfd_send_signal(client.zygote, SIGSTOP, NULL, 0), 0);
    WAIT_UNTIL(bht_process_state(client.zygote_pid) == 'T', 2000);
    BHT_EQ(shutdown(client.socket, SHUT_RDWR), 0);
    int asleep = 0; /* one that polls in vain may be seen so once */
    WAIT_UNTIL((asleep = bht_process_state(client.warden) == 'S' ? asleep + 1 : 0) >= 20, 5000);
    BHT_EQ(pidfd_send_signal(client.zygote, SIGKILL, NULL, 0), 0);
    BHT_EQ(client_wait_warden(), 0);
}

/* Whatever else lies in the folder: plain entries go, what a link points to stays. */
TEST(folder_removed_links_not_followed) {
    char outside[64];
    char path[128];
    struct stat st;
    snprintf(outside, sizeof outside, "/tmp/bulkhead-test-outside-%d", (int)getpid());
    BHT_EQ(mkdir(outside, 0700), 0);
    snprintf(path, sizeof path, "%s/precious", outside);
    BHT_EQ(mknod(path, S_IFREG | 0600, 0), 0);
    set_scene((struct script){0});
    char link[128];
    snprintf(link, sizeof link, "%s/link", scene->dir);
    BHT_EQ(symlink(outside, link), 0);
    kill_host();
    expect_all_gone();
    BHT_EQ(stat(path, &st), 0);
    BHT_EQ(unlink(path), 0);
    BHT_EQ(rmdir(outside), 0);
}

/* Somebody has moved the folder away, and another one to its name: that one stays, with its files.
 */
TEST(folder_that_took_the_name_stays) {
    char moved[128], path[128];
    set_scene((struct script){0});
    snprintf(moved, sizeof moved, "%s.moved", scene->dir);
    snprintf(path, sizeof path, "%s/precious", scene->dir);
    BHT_EQ(rename(scene->dir, moved), 0);
    BHT_EQ(mkdir(scene->dir, 0700), 0);
    BHT_EQ(mknod(path, S_IFREG | 0600, 0), 0);
    kill_host();
    expect_dead();
    BHT_EQ(unlink(path), 0);
    BHT_EQ(rmdir(scene->dir), 0);
    BHT_EQ(rmdir(moved), 0); /* its files are gone */
}

/* A cgroup of a host that died goes too, with the workers' groups in it. Only where this test may
 * make one. */
static bool make_cgroup(char *out, size_t size) {
    static const char *const parents[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    for (size_t i = 0; i < BHT_COUNT(parents); i++) {
        snprintf(out, size, "%s/bulkhead.test.%d", parents[i], (int)getpid());
        if (mkdir(out, 0755) == 0) {
            return true;
        }
    }
    return false;
}

static void write_number(const char *folder, const char *file, int number) {
    char path[300];
    char text[16];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    int length = snprintf(text, sizeof text, "%d", number);
    BHT_EQ(write(fd, text, (size_t)length), length);
    close(fd);
}

TEST(cgroup_removed) {
    char cgroup[256], child[280];
    struct stat st;
    if (!make_cgroup(cgroup, sizeof cgroup)) {
        printf("  no cgroup can be made here\n");
        return;
    }
    snprintf(child, sizeof child, "%s/w1", cgroup);
    BHT_EQ(mkdir(child, 0755), 0);
    set_scene((struct script){.cgroup = cgroup});
    write_number(child, "cgroup.procs", scene->pids[WORKER]);
    kill_host();
    expect_all_gone();
    BHT_TRUE(stat(cgroup, &st) != 0 && errno == ENOENT);
}

TEST(warden_killed) {
    client_open();
    guest_open(&guest, 1);
    BHT_EQ(kill(client.warden, SIGKILL), 0);
    BHT_TRUE(pidfd_ended(client.zygote, GONE_MS));
    BHT_TRUE(pidfd_ended(guest.pidfd, GONE_MS));
    /* The worker may have exited by itself, and the zygote may have lived to say so. */
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    while (bhi_fdpass_recv_message(client.socket, BHI_Z2S, &message, fds, MSG_DONTWAIT, NULL, 0) ==
           1) {
        BHT_EQ(message.type, BHI_MSG_EXITED);
    }
    client_expect_end();
    BHT_EQ(client_wait_warden(), 128 + SIGKILL);
    bury(client.zygote_pid);
}

TEST(zygote_killed) {
    client_open();
    guest_open(&guest, 1);
    BHT_EQ(pidfd_send_signal(client.zygote, SIGKILL, NULL, 0), 0);
    BHT_TRUE(pidfd_ended(guest.pidfd, GONE_MS));
    client_expect_end();
    BHT_EQ(client_wait_warden(), 0);
}

/* Nothing of the host may reach the warden: not its signals' fate, not its descriptors. */
TEST(host_ignores_sigchld) {
    signal(SIGCHLD, SIG_IGN);
    client_launch();
    signal(SIGCHLD, SIG_DFL);
    struct bhi_message message = client_start_message();
    client_send_start(&message);
    client.zygote = client_expect(BHI_MSG_ZYGOTE_READY, &message);
    guest_open(&guest, 1);
    BHT_EQ(pidfd_send_signal(guest.pidfd, SIGKILL, NULL, 0), 0);
    guest_expect_exit(&guest, CLD_KILLED, SIGKILL);
}

/* -- what is in which process ---------------------------------------------------------------- */

/* Where |pid| has mapped the first bytes of the file |name|, or of one whose name begins with it; 0:
 * nowhere. Each file that it has mapped is given to |each|. */
static unsigned long mapped_at(pid_t pid, const char *name, void (*each)(const char *file)) {
    char path[64], line[4400], file[4096];
    unsigned long start = 0, found = 0, offset = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    BHT_TRUE(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%*x %*s %lx %*s %*u %4095[^\n]", &start, &offset, file) != 3 ||
            file[0] != '/') {
            continue;
        }
        const char *base = strrchr(file, '/') + 1;
        if (found == 0 && offset == 0 && strncmp(base, name, strlen(name)) == 0) {
            found = start;
        }
        if (each) {
            each(base);
        }
    }
    fclose(maps);
    return found;
}

/* What it needs: the C library, capabilities, a hash for pipeline caches, and the page that it shares
 * with the zygote. */
static void expect_of_a_warden(const char *file) {
    static const char *const allowed[] = {
        "bulkhead-warden", "ld-linux",  "libc.so",      "libc-",
        "libpthread",      "libcap.so", "libsodium.so", "memfd:bulkhead zygote"};
    for (size_t i = 0; i < BHT_COUNT(allowed); i++) {
        if (strncmp(file, allowed[i], strlen(allowed[i])) == 0) {
            return;
        }
    }
    BHT_FAIL("it has mapped %s", file);
}

static pid_t start_opener(int *out_socket) {
    int pair[2];
    pid_t pid;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
    char program[] = BHT_WARDEN, mode[] = "opener";
    char *argv[] = {program, mode, NULL};
    BHT_EQ(posix_spawn(&pid, program, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    *out_socket = pair[0];
    return pid;
}

static bool is_called(pid_t pid, const char *name) {
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    const bool is =
        file && fgets(text, sizeof text, file) && strncmp(text, name, strlen(name)) == 0;
    if (file) {
        fclose(file);
    }
    return is;
}

/* No driver, no compiler, and not the C++ library that these need. The bound is for the file with its
 * debug information; the worker's has 15 MiB. */
TEST(the_wardens_program_is_small) {
    struct stat st;
    int socket;
    if (BHI_SANITIZED) { /* it is large, and has libraries of its own */
        return;
    }
    BHT_EQ(stat(BHT_WARDEN, &st), 0);
    BHT_LT(st.st_size, 1 << 20);
    client_open();
    BHT_TRUE(mapped_at(client.warden, "bulkhead-warden", expect_of_a_warden) != 0);
    client_close();
    const pid_t opener = start_opener(&socket);
    WAIT_UNTIL(is_called(opener, "bh-opener"), CLIENT_WAIT_MS); /* its libraries are loaded */
    BHT_TRUE(mapped_at(opener, "bulkhead-warden", expect_of_a_warden) != 0);
    close(socket);
    BHT_EQ(waitpid(opener, NULL, 0), opener);
}

/* A fork would have the warden's program, and its libraries at the same addresses. */
TEST(a_worker_knows_no_address_of_the_warden) {
    client_open();
    guest_open(&guest, 1);
    const pid_t processes[] = {client.zygote_pid, pid_of_pidfd(guest.pidfd)};
    const unsigned long libc = mapped_at(client.warden, "libc", NULL);
    for (size_t i = 0; i < BHT_COUNT(processes); i++) {
        BHT_EQ(mapped_at(processes[i], "bulkhead-warden", NULL), 0);
        BHT_TRUE(mapped_at(processes[i], "bulkhead-worker", NULL) != 0);
        BHT_TRUE(mapped_at(processes[i], "libc", NULL) != libc);
        /* The page that the warden reads. */
        BHT_EQ(mapped_at(processes[i], "memfd:bulkhead zygote", NULL) != 0, i == 0);
    }
}

/* -- a program that is no worker -------------------------------------------------------------- */

static void start_program(const char *program) {
    client.program = program;
    start_with("");
}

TEST(a_program_that_ends_says_nothing) {
    start_program("/bin/true");
    client_expect_end();
    BHT_EQ(client_wait_warden(), START_FAILED);
}

TEST(a_program_that_cannot_run_is_named) {
    struct bhi_message message;
    start_program("/dev/null");
    client_expect(BHI_MSG_ZYGOTE_FAILED, &message);
    BHT_EQ(message.zygote_failed.status, BH_UNAVAILABLE);
    BHT_EQ(message.zygote_failed.error, EACCES);
    client_expect_end();
    BHT_EQ(client_wait_warden(), START_FAILED);
}

/* It sets no death signal, and watches nothing. */
TEST(a_program_that_is_no_worker_goes_with_the_warden) {
    pid_t pid = 0;
    start_program("/usr/bin/yes");
    WAIT_UNTIL((pid = bht_descendant_called(client.warden, "yes")) != 0, CLIENT_WAIT_MS);
    BHT_EQ(kill(client.warden, SIGKILL), 0);
    BHT_EQ(client_wait_warden(), 128 + SIGKILL);
    WAIT_UNTIL(strchr("XZ", bht_process_state(pid)), 4000);
    bury(pid);
}

/* Workers with a forked child of the host, which keeps their sockets open, know it by this alone. */
TEST(the_warden_says_that_the_host_has_gone) {
    char path[64], said[2];
    pid_t pid = 0;
    client.host = fork();
    while (client.host == 0) {
        pause();
    }
    start_program("/usr/bin/yes");
    WAIT_UNTIL((pid = bht_descendant_called(client.warden, "yes")) != 0, CLIENT_WAIT_MS);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, BHI_ZYGOTE_GO);
    const int go = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    BHT_GE(go, 0);
    BHT_EQ(kill(client.host, SIGKILL), 0);
    BHT_EQ(client_wait_warden(), 0);
    BHT_EQ(read(go, said, sizeof said), 1);
    close(go);
    BHT_EQ(waitpid(client.host, NULL, 0), client.host);
}

/* Runs the worker program as a warden would that has ended, with a page of |bytes|. Returns how far it
 * has come. */
static uint32_t stage_with(uint32_t bytes) {
    int go[2];
    BHT_EQ(pipe2(go, O_CLOEXEC), 0);
    const int page = bhi_memfd_create("page", sizeof(struct bhi_zygote_start), 0);
    struct bhi_zygote_start *start =
        mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    BHT_TRUE(page >= 0 && start != MAP_FAILED);
    start->bytes = bytes;
    const pid_t pid = fork();
    if (pid == 0) {
        char program[] = BHT_WORKER, mode[] = "zygote";
        char *argv[] = {program, mode, NULL};
        const int high = fcntl(page, F_DUPFD_CLOEXEC, 10),
                  read_end = fcntl(go[0], F_DUPFD_CLOEXEC, 10);
        close(go[1]);
        if (dup2(read_end, BHI_ZYGOTE_GO) < 0 || dup2(high, BHI_ZYGOTE_PAGE) < 0) {
            _exit(1);
        }
        execv(program, argv);
        _exit(1);
    }
    close(go[0]);
    close(go[1]);
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_EQ(WEXITSTATUS(status), START_FAILED);
    const uint32_t stage = atomic_load(&start->stage);
    munmap(start, sizeof *start);
    close(page);
    return stage;
}

TEST(a_page_of_another_build_is_refused) {
    BHT_EQ(stage_with(sizeof(struct bhi_zygote_start)), BHI_ZYGOTE_BEGUN);
    BHT_EQ(stage_with(sizeof(struct bhi_zygote_start) - 8), BHI_ZYGOTE_CLONED);
}

/* -- the command line ----------------------------------------------------------------------- */

static void expect_command_line(const char *program, const char *name, const char *mode) {
    char out[2048], words[64];
    const char *const help[] = {program, "--help", NULL};
    const char *const version[] = {program, "--version", NULL};
    const char *const nothing[] = {program, NULL};
    const char *const unknown[] = {program, mode, "more", NULL};
    BHT_EQ(bht_run(help, out, sizeof out), 0);
    snprintf(words, sizeof words, "%s %s", name, mode);
    BHT_STR_HAS(out, words);
    BHT_EQ(bht_run(version, out, sizeof out), 0);
    BHT_STR_HAS(out, name);
    BHT_EQ(bht_run(nothing, out, sizeof out), 2);
    BHT_STR_HAS(out, "--help");
    BHT_EQ(bht_run(unknown, out, sizeof out), 2);
}

TEST(command_line) {
    expect_command_line(BHT_WARDEN, "bulkhead-warden", "warden");
    expect_command_line(BHT_WORKER, "bulkhead-worker", "zygote");
}
