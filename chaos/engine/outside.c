#include "chaos/engine/outside.h"

#include "tool/clock.h"
#include "tool/process_tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
    bool resume;
    struct bhi_injection injection;
};

/* -- in the second process ------------------------------------------------------------------- */

/* Finds children of zygotes. It skips stopped ones: these were hit already. */
static size_t find_workers(pid_t host, pid_t *out_pids, size_t capacity) {
    struct bhi_process_tree tree;
    size_t count = 0;
    if (!bhi_process_tree_read(host, &tree)) {
        return 0;
    }
    for (size_t i = 0; i < tree.count; i++) {
        if (!bhi_process_is_zygote(&tree.processes[i])) {
            continue;
        }
        for (size_t k = 0; k < tree.count && count < capacity; k++) {
            const struct bhi_process *process = &tree.processes[k];
            if (process->parent == tree.processes[i].pid && process->state != 'T' &&
                process->state != 'Z') {
                out_pids[count++] = process->pid;
            }
        }
    }
    bhi_process_tree_free(&tree);
    return count;
}

static void carry_out(pid_t host, struct bhi_injection *injection, struct bhi_injected *injected) {
    pid_t workers[BHI_CHAOS_STREAMS];
    const size_t count = find_workers(host, workers, BHI_CHAOS_STREAMS);
    if (!count) {
        *injected = (struct bhi_injected){.missed = true, .at_ns = bhi_clock_ns()};
        snprintf(injected->why, sizeof injected->why, "no worker was found below process %d",
                 (int)host);
        return;
    }
    injection->pid = workers[injection->salt % count];
    bhi_inject(injection, injected);
}

static _Noreturn void serve(pid_t host, int socket) {
    struct order order;
    while (TEMP_FAILURE_RETRY(recv(socket, &order, sizeof order, 0)) == (ssize_t)sizeof order) {
        struct bhi_injected injected;
        if (order.resume) {
            bhi_inject_resume(order.injection.pid);
            injected = (struct bhi_injected){.at_ns = bhi_clock_ns()};
        } else {
            carry_out(host, &order.injection, &injected);
        }
        if (TEMP_FAILURE_RETRY(send(socket, &injected, sizeof injected, MSG_NOSIGNAL)) !=
            (ssize_t)sizeof injected) {
            break;
        }
    }
    _exit(0); /* the host has closed its end, or is dead */
}

/* -- in the host ----------------------------------------------------------------------------- */

bool bhi_outside_start(struct bhi_outside *outside, struct bhi_complaint *complaint) {
    int ends[2];
    const pid_t host = getpid();
    *outside = (struct bhi_outside){.socket = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return bhi_refuse(complaint, "no socket for the second process: %s", strerror(errno));
    }
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        signal(SIGINT, SIG_IGN); /* a terminal sends it to both processes, and the host decides */
        signal(SIGTERM, SIG_IGN);
        prctl(PR_SET_NAME, "bulkhead-outsid");
        serve(host, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return bhi_refuse(complaint, "the second process cannot be started: %s", strerror(errno));
    }
    *outside = (struct bhi_outside){.pid = pid, .socket = ends[0]};
    return true;
}

void bhi_outside_inject(struct bhi_outside *outside, const struct bhi_injection *injection,
                        struct bhi_injected *out_injected) {
    const struct order order = {.injection = *injection};
    if (TEMP_FAILURE_RETRY(send(outside->socket, &order, sizeof order, MSG_NOSIGNAL)) ==
            (ssize_t)sizeof order &&
        TEMP_FAILURE_RETRY(recv(outside->socket, out_injected, sizeof *out_injected, 0)) ==
            (ssize_t)sizeof *out_injected) {
        return;
    }
    *out_injected = (struct bhi_injected){.missed = true, .at_ns = bhi_clock_ns()};
    snprintf(out_injected->why, sizeof out_injected->why, "the second process is gone");
}

void bhi_outside_resume(struct bhi_outside *outside, int32_t pid) {
    const struct order order = {.resume = true, .injection.pid = pid};
    struct bhi_injected done; /* unused; the answer means that it has been done */
    if (TEMP_FAILURE_RETRY(send(outside->socket, &order, sizeof order, MSG_NOSIGNAL)) ==
        (ssize_t)sizeof order) {
        (void)!TEMP_FAILURE_RETRY(recv(outside->socket, &done, sizeof done, 0));
    }
}

void bhi_outside_end(struct bhi_outside *outside) {
    if (!outside->pid) {
        return;
    }
    close(outside->socket);
    while (waitpid(outside->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *outside = (struct bhi_outside){.socket = -1};
}
