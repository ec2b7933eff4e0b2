#include "worker/session/watchdog.h"

#include "base/fd.h"
#include "base/futex.h"
#include "worker/exit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10)
#define PAUSE_NS    500000
#define HOST_MS     1 /* interval between checks whether anything runs */

static void *watch(void *argument) {
    struct bhi_watchdog *watchdog = argument;
    const struct bhi_lane_header *lane = watchdog->lane;
    uint64_t seen = 0;
    (void)prctl(PR_SET_NAME, "watchdog");
    for (;;) {
        /* The word is read first: whatever is stored later changes it. */
        const uint32_t word = atomic_load_explicit(&lane->abort_word, memory_order_acquire);
        const uint64_t seq = atomic_load_explicit(&lane->abort_seq, memory_order_acquire);
        struct bhi_backend *backend = atomic_load(&watchdog->backend);
        if (seq != seen && backend) {
            seen = seq;
            bhi_backend_abort(backend, seq);
        }
        (void)bhi_futex_wait(&lane->abort_word, word, true, BHI_FOREVER);
    }
    return NULL;
}

/* Called when the zygote has spoken through its pipe, or hung it up: as the warden's did. A warden
 * whose host has gone writes a byte before. A killed warden writes none; then the host may be alive (so its work must not end with a deadline's
 * result), dead, or about to die: a killed process closes its descriptors a little later. The
 * zygote's time limit bounds the wait. */
static bool host_has_gone(const struct bhi_watchdog *watchdog) {
    struct pollfd word = {.fd = watchdog->farewell, .events = POLLIN};
    struct pollfd host = {.fd = BHI_FDPASS_DESCRIPTOR, .events = 0};
    bool gone = poll(&word, 1, 0) == 1 && (word.revents & POLLIN) != 0;
    while (!gone && atomic_load(&watchdog->busy)) {
        gone = poll(&host, 1, HOST_MS) == 1 && (host.revents & POLLHUP) != 0;
    }
    return gone;
}

static void *watch_host(void *argument) {
    struct bhi_watchdog *watchdog = argument;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct pollfd zygote = {.fd = watchdog->farewell, .events = POLLIN};
    (void)prctl(PR_SET_NAME, "host-watchdog");
    while (poll(&zygote, 1, -1) != 1) {
    }
    struct bhi_backend *backend = atomic_load(&watchdog->backend);
    struct bhi_sentinel_device *sentinel = atomic_load(&watchdog->sentinel);
    const bool ends = (zygote.revents & (POLLIN | POLLHUP)) != 0;
    if (sentinel && ends && host_has_gone(watchdog)) {
        bhi_sentinel_device_set_all(sentinel);
    }
    if (backend && ends && host_has_gone(watchdog)) {
        atomic_store(&watchdog->host_gone, true);
        bhi_backend_abort_all(backend);
        while (atomic_load(&watchdog->busy)) { /* until the zygote's time limit */
            (void)nanosleep(&pause, NULL);
        }
    }
    _exit(BHI_EXIT_SUPERVISOR);
}

static int start(void *(*run)(void *), struct bhi_watchdog *watchdog) {
    pthread_attr_t attributes;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES); /* stacks count against RLIMIT_DATA */
        error = pthread_create(&thread, &attributes, run, watchdog);
        pthread_attr_destroy(&attributes);
    }
    return error;
}

int bhi_watchdog_start(struct bhi_watchdog *watchdog, const struct bhi_lane_view *lane,
                       int farewell, struct bhi_error *failure) {
    watchdog->lane = lane->header;
    watchdog->farewell = farewell;
    atomic_init(&watchdog->backend, NULL);
    atomic_init(&watchdog->sentinel, NULL);
    atomic_init(&watchdog->busy, false);
    atomic_init(&watchdog->host_gone, false);
    int error = start(watch, watchdog);
    if (error == 0 && farewell >= 0) {
        error = start(watch_host, watchdog);
    }
    return error == 0 ? 0
                      : BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "start the watchdog",
                                  .sys_errno = error);
}
