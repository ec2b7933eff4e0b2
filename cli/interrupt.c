#include "interrupt.h"
#include "exit_status.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t asked; /* written by the handler, once */

static void handle(int signal_number) {
    asked = signal_number;
}

void bhi_interrupt_watch(void) {
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    action.sa_handler = handle;
    action.sa_flags = SA_RESETHAND;
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
