/* bulkhead-warden-faulty: the shipped warden, which also passes the faults on to its zygote, and is as
 * patient with it as the fault `farewell` says. */
#include "wrap.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define FAULTS      "BULKHEAD_TEST_FAULTS="
#define PATIENCE_MS 15000

static char *faults(void) {
    char **entry = environ;
    while (*entry && strncmp(*entry, FAULTS, sizeof FAULTS - 1) != 0) {
        entry++;
    }
    return *entry;
}

WRAP(int, execveat, int folder, const char *path, char *const arguments[],
     char *const environment[], int flags) {
    char *all[16] = {faults()};
    for (size_t i = !!all[0]; *environment && i < 15; i++) {
        all[i] = *environment++;
    }
    return __real_execveat(folder, path, arguments, all, flags);
}

WRAP(int, pidfd_send_signal, int process, int signal, siginfo_t *info, unsigned flags) {
    struct pollfd ended = {.fd = process, .events = POLLIN};
    if (signal == SIGKILL && faults() && strstr(faults(), ":farewell:")) {
        (void)poll(&ended, 1, PATIENCE_MS);
    }
    return __real_pidfd_send_signal(process, signal, info, flags);
}
