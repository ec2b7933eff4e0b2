#include "watchdog.h"

#include "faults.h"
#include "futex.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#define STACK_BYTES (256u << 10)

static void *watch(void *argument) {
    struct bhi_watchdog *watchdog = argument;
    const struct bhi_lane_header *lane = watchdog->lane;
    uint64_t seen = 0;
    (void)prctl(PR_SET_NAME, "watchdog");
    for (;;) {
        /* The word first: what is stored after this changes it. */
        const uint32_t word = atomic_load_explicit(&lane->abort_word, memory_order_acquire);
        const uint64_t seq = atomic_load_explicit(&lane->abort_seq, memory_order_acquire);
        struct bhi_backend *backend = atomic_load(&watchdog->backend);
        if (seq != seen && backend != NULL) {
            seen = seq;
            if (!BHI_FAULT_FAILS("abort")) {
                bhi_backend_abort(backend, seq);
            }
        }
        (void)bhi_futex_wait(&lane->abort_word, word, true, BHI_FOREVER);
    }
    return NULL;
}

int bhi_watchdog_start(struct bhi_watchdog *watchdog, const struct bhi_lane_view *lane,
                       struct bhi_failure *failure) {
    pthread_attr_t attributes;
    pthread_t thread;
    watchdog->lane = lane->header;
    atomic_init(&watchdog->backend, NULL);
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES); /* it counts against RLIMIT_DATA */
        error = pthread_create(&thread, &attributes, watch, watchdog);
        pthread_attr_destroy(&attributes);
    }
    return error == 0 ? 0 : bhi_fail(failure, BH_SYSTEM, error, "cannot start the watchdog");
}
