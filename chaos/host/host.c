#include "chaos/host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "chaos/engine/inject.h"
#include "tool/clock.h"
#include "tool/interrupt.h"
#include "tool/json.h"

#define MS 1000000ull

static const uint64_t slice_ns = 50 * MS;     /* between looks for a signal */
static const uint64_t look_ns = 5 * MS;       /* between looks for a process that is not there */
static const uint64_t patience_ns = 500 * MS; /* for it: a compiler lives for a tenth of a second */

/* A process that is stopped for a while. */
struct resume {
    int pidfd;
    uint64_t at_ns;
};

struct state {
    struct bhi_host_run *run;
    uint64_t start_ns;
    struct resume resumes[64];
    size_t resume_count;
};

/* -- time --------------------------------------------------------------------------------------- */

static void resume_due(struct state *state, uint64_t now_ns) {
    for (size_t i = 0; i < state->resume_count;) {
        if (state->resumes[i].at_ns > now_ns) {
            i++;
            continue;
        }
        (void)pidfd_send_signal(state->resumes[i].pidfd, SIGCONT, NULL, 0);
        close(state->resumes[i].pidfd);
        state->resumes[i] = state->resumes[--state->resume_count];
    }
}

/* Has the run ended? */
static bool is_over(const struct state *state, uint64_t now_ns) {
    const struct bhi_host_run *run = state->run;
    struct pollfd host = {.fd = run->pidfd, .events = POLLIN};
    return bhi_interrupt_signal() || now_ns - state->start_ns >= run->duration_ns ||
           (run->count && run->hits >= run->count) || poll(&host, 1, 0) > 0;
}

/* Waits until |until_ns|, and continues meanwhile what is due. False: the run has ended. */
static bool wait_until(struct state *state, uint64_t until_ns) {
    for (;;) {
        uint64_t now_ns = bhi_clock_ns(), next_ns = until_ns;
        resume_due(state, now_ns);
        if (is_over(state, now_ns)) {
            return false;
        }
        if (now_ns >= until_ns) {
            return true;
        }
        for (size_t i = 0; i < state->resume_count; i++) {
            next_ns = state->resumes[i].at_ns < next_ns ? state->resumes[i].at_ns : next_ns;
        }
        next_ns = next_ns < now_ns + slice_ns ? next_ns : now_ns + slice_ns;
        struct pollfd host = {.fd = state->run->pidfd, .events = POLLIN};
        const struct timespec pause = bhi_clock_until(next_ns - now_ns);
        (void)ppoll(&host, 1, &pause, NULL); /* a signal ends it, too */
    }
}

/* -- a fault ------------------------------------------------------------------------------------ */

/* Picks one of the processes that |planned| may hit, of its stream if there is one. What is stopped was
 * hit already. False: there is none. */
static bool pick(const struct state *state, const struct bhi_planned *planned,
                 struct bhi_target *out) {
    struct bhi_targets targets;
    size_t all = 0, own = 0;
    if (!bhi_targets_find(state->run->root, &targets)) {
        return false;
    }
    for (size_t i = 0; i < targets.count; i++) {
        const struct bhi_target *target = &targets.items[i];
        if (target->kind == planned->target && target->state != 'T') {
            targets.items[all++] = *target;
        }
    }
    for (size_t i = 0; i < all && planned->stream[0]; i++) {
        if (strcmp(targets.items[i].stream, planned->stream) == 0) {
            targets.items[own++] = targets.items[i];
        }
    }
    const size_t count = own ? own : all;
    if (count) {
        *out = targets.items[planned->salt % count];
    }
    bhi_targets_free(&targets);
    return count > 0;
}

static bool stop(struct state *state, const struct bhi_planned *planned, int pidfd) {
    const int copy = planned->fault == BHI_FAULT_SLOW ? dup(pidfd) : -1;
    const size_t most = sizeof state->resumes / sizeof state->resumes[0];
    if ((planned->fault == BHI_FAULT_SLOW && (copy < 0 || state->resume_count == most)) ||
        !bhi_guard_watch(state->run->guard, pidfd) ||
        pidfd_send_signal(pidfd, SIGSTOP, NULL, 0) != 0) {
        if (copy >= 0) {
            close(copy);
        }
        return false;
    }
    if (copy >= 0) {
        state->resumes[state->resume_count++] =
            (struct resume){copy, bhi_clock_ns() + planned->lasts_ns};
    }
    return true;
}

/* Returns NULL, or why it has missed. */
static const char *inject(struct state *state, const struct bhi_planned *planned,
                          const struct bhi_target *target, char why[160]) {
    const int pidfd = bhi_target_hold(state->run->root, target);
    bool hit = pidfd >= 0;
    snprintf(why, 160, "it has ended");
    if (hit && (planned->fault == BHI_FAULT_GARBAGE || planned->fault == BHI_FAULT_CLOSE)) {
        const struct bhi_injection injection = {planned->fault, target->pid, planned->salt};
        struct bhi_injected injected = {0};
        bhi_inject_socket(&injection, pidfd, &injected);
        hit = !injected.missed;
        snprintf(why, 160, "%s", injected.why);
    } else if (hit && (planned->fault == BHI_FAULT_STOP || planned->fault == BHI_FAULT_SLOW)) {
        hit = stop(state, planned, pidfd);
        snprintf(why, 160, "it could not be stopped");
    } else if (hit) {
        const int number = planned->fault == BHI_FAULT_SEGV ? SIGSEGV : SIGKILL;
        hit = pidfd_send_signal(pidfd, number, NULL, 0) == 0;
        snprintf(why, 160, "the signal could not be sent: %s", strerror(errno));
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    return hit ? NULL : why;
}

/* -- the log ------------------------------------------------------------------------------------ */

/* |target|: NULL if there was none. */
static bool note(struct state *state, const struct bhi_planned *planned,
                 const struct bhi_target *target, const char *missed) {
    FILE *log = state->run->log;
    const uint64_t now_ms = bhi_clock_calendar_ns() / MS;
    json_t *line = BHI_JSON(
        {"number", bhi_json_number(planned->number)}, {"at_ms", bhi_json_ms(planned->at_ns)},
        {"time", json_real((double)now_ms / 1e3)},
        {"fault", bhi_json_text(bhi_fault_name(planned->fault))},
        {"target", bhi_json_text(bhi_target_names[planned->target])},
        {"pid", bhi_json_known(target ? target->pid : 0)},
        {"host", bhi_json_known(target ? target->host : 0)},
        {"stream", bhi_json_text_or_null(target ? target->stream : planned->stream)},
        {"lasts_ms", planned->lasts_ns ? bhi_json_ms(planned->lasts_ns) : json_null()},
        {"salt", bhi_json_digits(planned->salt)}, {"missed", bhi_json_text_or_null(missed)});
    const bool written = line &&
                         json_dumpf(line, log, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 &&
                         fputc('\n', log) != EOF && fflush(log) == 0;
    json_decref(line);
    return written;
}

/* Looks for a process to hit, until there is one. False: the run has ended. */
static bool carry_out(struct state *state, const struct bhi_planned *planned, bool *out_written) {
    char why[160];
    struct bhi_target target;
    const uint64_t until_ns = bhi_clock_ns() + patience_ns;
    bool found;
    while (!(found = pick(state, planned, &target)) && bhi_clock_ns() < until_ns) {
        if (!wait_until(state, bhi_clock_ns() + look_ns)) {
            return false;
        }
    }
    const char *missed = found ? inject(state, planned, &target, why) : "there was none";
    state->run->hits += !missed;
    state->run->misses += !!missed;
    *out_written = note(state, planned, found ? &target : NULL, missed);
    return *out_written;
}

bool bhi_host_run(struct bhi_host_run *run) {
    struct state state = {.run = run, .start_ns = bhi_clock_ns()};
    struct bhi_planned planned;
    bool written = true;
    while (bhi_plan_next(run->plan, &planned) &&
           wait_until(&state, state.start_ns + planned.at_ns) &&
           carry_out(&state, &planned, &written)) {
    }
    const int error = errno;
    resume_due(&state, UINT64_MAX);
    errno = error;
    return written;
}
