#include "worker/process/worker.h"
#include "base/futex.h"
#include "ipc/channel.h"
#include "ipc/lane.h"
#include "ipc/progress.h"
#include "worker/process/alloc.h"
#include "worker/process/device_holder.h"
#include "worker/sandbox/sandbox.h"
#include "worker/session/orphan.h"
#include "worker/session/session.h"
#include "worker/session/watchdog.h"
#include "worker/title.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct worker {
    struct bhi_worker_config *config;
    struct bhi_sandbox sandbox;
    struct bhi_lane_view lane;
    struct bhi_progress progress;
    struct bhi_channel channel;
    struct bhi_watchdog watchdog;
    struct bhi_device_files device_files;
    bhi_entry entry;
};

/* The kernel closes the descriptors of a killed process from the highest number down, and a GPU's
 * driver takes seconds to close its own while a kernel hangs. The supervisor must notice the death
 * before that. So the descriptor socket has a second descriptor, above all others. */
static void hold_side_channel(const struct worker *worker, int fdpass) {
    const struct bhi_driver_info *driver = worker->sandbox.driver->info;
    struct rlimit limit;
    if (!bhi_driver_is_gpu(driver) || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    const rlim_t most =
        driver->limits.descriptors < limit.rlim_cur ? driver->limits.descriptors : limit.rlim_cur;
    (void)fcntl(fdpass, F_DUPFD_CLOEXEC, (int)most - 1);
}

/* The steps, in their order. Each returns 0 or -errno with |failure|. */

/* All threads will be there. A CPU driver makes as many as it finds processors. */
static int take_processor(struct worker *worker, struct bhi_error *failure) {
    const uint32_t processor = worker->config->spawn->processor;
    const int nice = (int)worker->config->spawn->nice;
    cpu_set_t only;
    if (nice) { /* past the last level it stays at that one */
        (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + nice);
    }
    if (!processor) {
        return 0;
    }
    CPU_ZERO(&only);
    CPU_SET(processor - 1, &only);
    if (sched_setaffinity(0, sizeof only, &only) == 0) {
        return 0;
    }
    const int error = errno;
    char step[48];
    snprintf(step, sizeof step, "run on processor %u alone", processor - 1);
    return BHI_ERROR(failure, BH_REASON_STEP, step, .sys_errno = error);
}

static int enter_sandbox(struct worker *worker, struct bhi_error *failure) {
    struct bhi_worker_config *config = worker->config;
    const int *fds = config->fds;
    int r = bhi_lane_view_map(&worker->lane, fds[BHI_SPAWN_LANE], config->spawn->lane_bytes);
    if (r != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP,
                         "use a lane that is no sealed memfd of its size",
                         .value = config->spawn->lane_bytes, .sys_errno = -r);
    }
    /* Lane and progress are mapped; their descriptors are closed with all others. */
    const bool device = bhi_worker_has_device((enum bhi_worker_kind)config->spawn->kind);
    int kept[] = {fds[BHI_SPAWN_FDPASS], fds[BHI_SPAWN_DOORBELL], fds[BHI_SPAWN_CHANNEL],
                  config->farewell, config->device_holder};
    const size_t count = device ? config->device_holder >= 0 ? 5 : 4 : 3;
    if ((r = bhi_sandbox_descriptors(kept, count, failure)) != 0) {
        return r;
    }
    config->farewell = device ? kept[3] : -1;
    config->device_holder = config->device_holder >= 0 ? kept[4] : -1;
    config->fds[BHI_SPAWN_CHANNEL] = kept[2];
    config->fds[BHI_SPAWN_FDPASS] = kept[0];
    config->fds[BHI_SPAWN_DOORBELL] = kept[1];
    hold_side_channel(worker, kept[0]);
    worker->sandbox.layers |= BHI_LAYER_BIT(DESCRIPTORS);
    if ((r = bhi_sandbox_enter(&worker->sandbox, failure)) != 0) {
        return r;
    }
    if (config->device_holder >= 0) {
        bhi_device_files_list(&worker->device_files, config->driver->info, worker->sandbox.node,
                              &config->scouted->nodes);
    }
    return 0;
}

static int connect_channel(struct worker *worker, struct bhi_error *failure) {
    /* Waits for the connection: after it ZeroMQ's threads open no more sockets. */
    int r = bhi_channel_accept(&worker->channel, worker->config->fds[BHI_SPAWN_CHANNEL]);
    if (r != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "take the control channel's connection",
                         .sys_errno = -r);
    }
    return 0;
}

static int say_hello(struct worker *worker, struct bhi_error *failure) {
    const struct bhi_msg_spawn *spawn = worker->config->spawn;
    struct bhi_message message = {.type = BHI_MSG_HELLO};
    message.hello.protocol = BHI_WIRE_VERSION;
    message.hello.worker = spawn->worker;
    memcpy(message.hello.token, spawn->token, sizeof spawn->token);
    int r = bhi_channel_send(&worker->channel, &message);
    if (r != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "send hello", .sys_errno = -r);
    }
    return 0;
}

static int start_filter(struct worker *worker, struct bhi_error *failure) {
    return bhi_sandbox_filter(&worker->sandbox, BHI_FILTER_START, failure);
}

static int start_watchdog(struct worker *worker, struct bhi_error *failure) {
    if (!bhi_worker_has_device((enum bhi_worker_kind)worker->config->spawn->kind)) {
        return 0; /* its work cannot be stopped through an abort word */
    }
    return bhi_watchdog_start(&worker->watchdog, &worker->lane, worker->config->farewell, failure);
}

static int find_entry(struct worker *worker, struct bhi_error *failure) {
    if (!bhi_worker_has_device((enum bhi_worker_kind)worker->config->spawn->kind)) {
        return 0; /* it uses no driver */
    }
    worker->entry = bhi_driver_entry(worker->config->driver, failure);
    return !worker->entry ? -ENODEV : 0;
}

/* Before anything untrusted runs, and before filter B, which permits no other socket. */
static void share_device(struct worker *worker) {
    if (worker->config->device_holder >= 0) {
        bhi_device_files_send(&worker->device_files, worker->config->device_holder,
                              (int)worker->config->driver->info->limits.descriptors);
    }
}

static int lock_down(struct worker *worker, struct bhi_error *failure) {
    return bhi_sandbox_filter(&worker->sandbox, BHI_FILTER_STEADY, failure);
}

static void run_step(struct worker *worker, enum bhi_step step,
                     int (*call)(struct worker *, struct bhi_error *)) {
    struct bhi_error failure = {.status = BH_OK};
    bhi_progress_step(&worker->progress, step);
    if (call(worker, &failure) != 0) {
        const struct bhi_why why = bhi_error_as_why(&failure);
        bhi_progress_step_failed(&worker->progress, &why);
        _exit(BHI_EXIT_START_FAILED);
    }
}

static void name_it(enum bhi_worker_kind kind) {
    if (kind == BHI_WORKER_LOADER) {
        bhi_title_set("bh-loader", "loader");
    } else if (kind == BHI_WORKER_COMPILER) {
        bhi_title_set("bh-compiler", "compiler");
    } else if (kind == BHI_WORKER_SENTINEL) {
        bhi_title_set("bh-sentinel", "sentinel");
    } else {
        bhi_title_set("bh-spare", "spare worker");
    }
}

_Noreturn void bhi_worker_run(struct bhi_worker_config *config) {
    static struct worker worker;
    worker.config = config;
    const enum bhi_worker_kind kind = (enum bhi_worker_kind)config->spawn->kind;
    const bool has_device = bhi_worker_has_device(kind);
    worker.sandbox = (struct bhi_sandbox){
        .driver = has_device ? config->driver : bhi_driver_none(kind, config->driver),
        .node = has_device ? bhi_nodes_path(&config->scouted->nodes, config->spawn->device_index)
                           : NULL,
        .memory_limit = config->spawn->memory_limit,
        .layers = config->layers};
    name_it(kind);
    bhi_orphan_forget();
    sigset_t none; /* because the zygote blocks SIGCHLD */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Not 50 µs late: it naps while a device works. All its threads inherit that. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    /* When the zygote ends, which is pid 1 of our namespace, the kernel kills us anyway. The death
     * signal is a second safeguard. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != 1 ||
        bhi_progress_map(&worker.progress, config->fds[BHI_SPAWN_PROGRESS],
                         config->spawn->progress_bytes) != 0) {
        _exit(BHI_EXIT_START_FAILED); /* there is no place to report an error */
    }
    bhi_alloc_watch(worker.progress.header);
    bhi_progress_step(&worker.progress, BHI_STEP_FORKED);
    run_step(&worker, BHI_STEP_SANDBOX, take_processor);
    run_step(&worker, BHI_STEP_SANDBOX, enter_sandbox);
    run_step(&worker, BHI_STEP_CONTROL, connect_channel);
    run_step(&worker, BHI_STEP_CONTROL, say_hello);
    run_step(&worker, BHI_STEP_CONTROL, start_filter);
    run_step(&worker, BHI_STEP_CONTROL, start_watchdog);
    run_step(&worker, BHI_STEP_DEVICE, find_entry);

    const struct bhi_session_config session_config = {
        .lane = &worker.lane,
        .progress = &worker.progress,
        .channel = &worker.channel,
        .fdpass = config->fds[BHI_SPAWN_FDPASS],
        .doorbell = config->fds[BHI_SPAWN_DOORBELL],
        .ops = worker.config->driver->info->cuda ? &bhi_cuda : &bhi_vulkan,
        .entry = worker.entry,
        .device_index = config->spawn->device_index,
        .pci = bhi_nodes_pci(&config->scouted->nodes, config->spawn->device_index),
        .devices = worker.sandbox.node ? config->scouted->devices : NULL,
        .device_count = config->scouted->nodes.devices,
        .watchdog = has_device ? &worker.watchdog : NULL,
        .kind = kind,
        .nvrtc = config->driver->info->compiler ? config->driver->handle : NULL,
    };
    struct bhi_session *session = bhi_session_start(&session_config);
    if (!session) {
        _exit(BHI_EXIT_START_FAILED); /* the step has reported its error */
    }
    share_device(&worker);
    run_step(&worker, BHI_STEP_LOCK_DOWN, lock_down);
    bhi_progress_step(&worker.progress, BHI_STEP_RUNNING);
    /* _exit, because the kernel closes the device more reliably than the driver's destructors. */
    _exit(bhi_session_run(session, worker.sandbox.layers));
}
