#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "exit_status.h"

static const int64_t settle_ns = 500000000; /* one that comes sooner is the first one again */

static volatile sig_atomic_t asked; /* written by the handler, once */
static _Atomic int64_t asked_ns;    /* the handler's: when that was; two threads may be in it */

static void handle(int signal_number) {
    int64_t first = 0;
    const int64_t now = (int64_t)bhi_clock_ns();
    if (atomic_compare_exchange_strong(&asked_ns, &first, now)) {
        asked = signal_number;
    } else if (now - first >= settle_ns) {
        signal(signal_number, SIG_DFL);
        (void)!raise(signal_number); /* comes when this returns */
    }
}

void bhi_interrupt_watch(void) {
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* ulimit -f: what cannot be written says so */
    action.sa_handler = handle;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&action.sa_mask, signals[i]);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old;
        /* What a parent ignores (nohup, a background job of a script) stays ignored. */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int bhi_interrupt_signal(void) {
    return asked;
}

int bhi_interrupt_exit_status(void) {
    return BHI_EXIT_SIGNALLED + bhi_interrupt_signal();
}
