/* A dead worker's device is held until the supervisor lets it go, and until it is released the
 * worker counts as alive (decision 4). The driver (fake_nvidia.c) opens its device's node for
 * writing when it makes an instance, and keeps it open. */
#include "fixture.h"
#include "nvidia_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODE "/dev/nvidia0"

/* Somebody has it open for writing: then the kernel gives no lease for reading. */
static bool is_open(void) {
    const int fd = open(NODE, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    const bool refused = fcntl(fd, F_SETLEASE, F_RDLCK) != 0;
    if (refused) {
        BHT_EQ(errno, EAGAIN);
    }
    close(fd); /* and with it the lease */
    return refused;
}

static pid_t below(const char *name) {
    return bht_descendant_called(getpid(), name);
}

/* Does the context know a worker of that pid? */
static bool is_known(bh_context *context, pid_t pid) {
    char name[32];
    snprintf(name, sizeof name, "worker %d,", (int)pid);
    return fx_describes(context, name);
}

/* A stream gets its worker with its first submission: so |spares| alone says who has the device. */
struct scene {
    bh_context *context;
    bh_stream *stream;
    pid_t worker, zygote;
};

static void expect_closed(void) {
    BHT_TRUE(!is_open());
}

static struct scene begin(unsigned spares, const char *faults) {
    struct scene scene;
    nvidia_machine(1, "");
    bh_context_options options = fx_options();
    options.spares = spares ? spares : BH_OFF;
    options.worker_idle_ns = BH_FOREVER;
    scene.context = fx_context_with(options, faults);
    scene.stream = fx_stream(scene.context, "held", FX_SECONDS);
    fx_expect_healthy(scene.context, scene.stream);
    fx_settle(scene.context);
    scene.worker = bh_stream_worker_pid(scene.stream);
    scene.zygote = below("bh-zygote");
    BHT_TRUE(scene.worker > 0 && scene.zygote > 0 && is_open());
    bht_end_with(expect_closed);
    return scene;
}

/* Kills the worker while the zygote, which would end the holder, stands still. */
static void kill_held(const struct scene *scene) {
    fx_stop(scene->zygote);
    fx_kill(scene->worker, SIGKILL);
    WAIT_UNTIL(bht_process_state(scene->worker) == 'Z', 20000);
    BHT_TRUE(is_open());
}

/* Its device is released then. */
static void await_burial(const struct scene *scene) {
    WAIT_UNTIL(!is_known(scene->context, scene->worker), 20000);
    BHT_TRUE(!is_open());
}

/* E16, D3: nothing of a dead worker is given to others before its device is released. */
TEST(a_worker_is_buried_when_its_device_is_released) {
    struct scene scene = begin(0, NULL);
    kill_held(&scene);
    WAIT_UNTIL(bh_stream_worker_pid(scene.stream) != scene.worker, 20000);
    BHT_TRUE(is_known(scene.context, scene.worker));
    fx_kill(scene.zygote, SIGCONT);
    await_burial(&scene);
    fx_expect_healthy(scene.context, scene.stream);
}

/* Decision 4: the stream does not wait for it. */
TEST(the_stream_goes_on_while_it_is_held) {
    struct scene scene = begin(1, NULL);
    kill_held(&scene);
    WAIT_UNTIL(bh_stream_worker_pid(scene.stream) != scene.worker, 20000);
    fx_expect_healthy(scene.context, scene.stream);
    BHT_TRUE(is_known(scene.context, scene.worker));
    fx_kill(scene.zygote, SIGCONT);
    WAIT_UNTIL(!is_known(scene.context, scene.worker), 20000);
}

/* E9, B2: a death in the middle of a kernel. The event ends with the release, and not before. */
TEST(an_event_ends_when_the_device_is_released) {
    struct scene scene = begin(0, NULL);
    bh_event *event = fx_hold(scene.context, scene.stream).event;
    kill_held(&scene);
    /* Longer than a missing exit status is waited for (REAP_GRACE_NS), and no longer than a busy
     * machine needs for it. */
    BHT_EQ(bh_event_wait(event, 2500ull * 1000000), BH_TIMEOUT);
    fx_kill(scene.zygote, SIGCONT);
    fx_expect(event, BH_WORKER_SIGNAL);
    BHT_TRUE(!is_open());
}

/* The worker's own end is the release then. */
TEST(a_holder_that_ends_first) {
    struct scene scene = begin(0, NULL);
    const pid_t holder = below("bh-devholder");
    BHT_GT(holder, 0);
    fx_kill(holder, SIGKILL);
    WAIT_UNTIL(below("bh-devholder") == 0, 20000);
    BHT_TRUE(is_open());
    fx_kill(scene.worker, SIGKILL);
    await_burial(&scene);
    fx_expect_healthy(scene.context, scene.stream);
}

/* Nobody is told then; the zygote's own end is that of all below it. */
TEST(a_zygote_that_ends_first) {
    struct scene scene = begin(0, NULL);
    kill_held(&scene);
    fx_kill(scene.zygote, SIGKILL);
    await_burial(&scene);
    fx_expect_healthy(scene.context, scene.stream);
}

/* A worker can neither use nor end what its holder has, and has no way to it. */
TEST(a_worker_has_one_holder) {
    struct scene scene = begin(0, NULL);
    const pid_t holder = below("bh-devholder");
    char path[64], to[64];
    BHT_GT(holder, 0);
    for (int fd = 0; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)holder, fd);
        const ssize_t length = readlink(path, to, sizeof to - 1);
        to[length < 0 ? 0 : length] = '\0';
        BHT_TRUE(length < 0 || strstr(to, "nvidia0"));
    }
    snprintf(path, sizeof path, "/proc/%d/fd/7", (int)scene.worker);
    const ssize_t length = readlink(path, to, sizeof to - 1);
    to[length < 0 ? 0 : length] = '\0';
    BHT_TRUE(!strstr(to, "socket")); /* BHI_DEVICE_HOLDER_DESCRIPTOR is closed */
}

/* The kernel closes the highest number first. What is it of |pid|? */
static void expect_last_is_socket(pid_t pid, int least) {
    char path[64], to[64] = "";
    for (int fd = 4096; fd >= 0 && to[0] == '\0'; fd--) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        const ssize_t length = readlink(path, to, sizeof to - 1);
        to[length < 0 ? 0 : length] = '\0';
        BHT_TRUE(fd >= least);
    }
    BHT_TRUE(strncmp(to, "socket:", 7) == 0);
}

/* Decision 1: the warden learns of a dying host before the host's descriptors of a GPU are closed.
 * Decision 15: so does the supervisor of a dying worker. */
TEST(the_host_hangs_up_first) {
    struct scene scene = begin(0, NULL);
    expect_last_is_socket(getpid(), 700);
    expect_last_is_socket(scene.worker, 700);
}

/* A worker sends its device's descriptor to the supervisor, where nobody takes it, and dies. That
 * does not keep the device beyond the holder's end, which confirms the death. */
TEST(what_it_handed_out_keeps_no_device) {
    struct scene scene = begin(0, "1:after_record:2=hand_out");
    const pid_t holder = below("bh-devholder");
    fx_stop(scene.zygote);
    fx_expect_healthy(scene.context, scene.stream);
    WAIT_UNTIL(bht_process_state(scene.worker) == 'Z', 20000); /* killed for it */
    fx_kill(holder, SIGKILL);
    WAIT_UNTIL(!is_open(), 20000);
    BHT_TRUE(is_known(scene.context, scene.worker));
    fx_kill(scene.zygote, SIGCONT);
    await_burial(&scene);
}
