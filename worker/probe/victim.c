#include "worker/probe/victim.h"
#include "base/format.h"
#include "base/futex.h"
#include "ipc/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A bound for one victim: a fork and some system calls, of which each may wait for its turn beside
 * 20 processes, some milliseconds each. Eight seconds leave room for five that hang in a prober's
 * time. */
#define VICTIM_TIMEOUT_MS 8000
#define PAUSE_NS          500000

void bhi_victim_says(struct bhi_victim *victim, bool holds, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bhi_vformat(victim->page->text, sizeof victim->page->text, format, args);
    va_end(args);
    victim->page->holds = holds;
    victim->page->done = 1;
}

/* Makes the descriptors that a worker has at its start, so that the same code finds the same. */
static int descriptors(struct bhi_error *failure) {
    int pair[2];
    int r = bhi_fdpass_pair(pair);
    if (r != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "create a socket pair", .sys_errno = -r);
    }
    int kept[] = {pair[0], eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (kept[1] < 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "create an eventfd", .sys_errno = errno);
    }
    return bhi_sandbox_descriptors(kept, 2, failure);
}

static bool fits(uint64_t bytes) {
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    struct rlimit now;
    if (getrlimit(RLIMIT_AS, &now) == 0) {
        limit.rlim_max = now.rlim_max;
    }
    void *page = setrlimit(RLIMIT_AS, &limit) == 0
                     ? mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : MAP_FAILED;
    if (page != MAP_FAILED) {
        munmap(page, 1);
    }
    return page != MAP_FAILED;
}

/* Sets RLIMIT_AS as the supervisor does for a worker. Without /proc the present size is unknown. So
 * it searches for the lowest limit under which a page can still be mapped. */
static int bound_address_space(uint64_t more, struct bhi_error *failure) {
    uint64_t too_little = 0;
    uint64_t enough = UINT64_C(1) << 47;
    while (enough - too_little > 4096) {
        const uint64_t half = too_little + (enough - too_little) / 2;
        if (fits(half)) {
            enough = half;
        } else {
            too_little = half;
        }
    }
    return fits(enough + more)
               ? 0
               : BHI_ERROR(failure, BH_REASON_STEP, "set RLIMIT_AS", .sys_errno = errno);
}

static int enter(struct bhi_victim *victim, const struct bhi_victim_plan *plan,
                 struct bhi_error *failure) {
    const enum bhi_stage stage = plan->stage;
    int r = descriptors(failure);
    if (r == 0 && stage >= BHI_STAGE_LAYERS) {
        r = bhi_sandbox_enter(&victim->sandbox, failure);
    }
    if (r == 0 && plan->address_space != 0) {
        r = bound_address_space(plan->address_space, failure);
    }
    if (r == 0 && stage >= BHI_STAGE_START) {
        r = bhi_sandbox_filter(&victim->sandbox, BHI_FILTER_START, failure);
    }
    if (r == 0 && stage >= BHI_STAGE_STEADY) {
        r = bhi_sandbox_filter(&victim->sandbox, BHI_FILTER_STEADY, failure);
    }
    return r;
}

static _Noreturn void be_victim(const struct bhi_probe_context *context,
                                const struct bhi_victim_plan *plan, struct bhi_victim_page *page) {
    struct bhi_error failure = {.status = BH_OK};
    struct bhi_victim victim = {
        .context = context,
        .page = page,
        .sandbox = {.driver = context->driver,
                    .node = plan->node,
                    .memory_limit = plan->memory_limit},
        .argument = plan->argument,
    };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() == 1) {
        _exit(1); /* the prober has ended already */
    }
    if (enter(&victim, plan, &failure) != 0) {
        bhi_format(page->text, sizeof page->text, "cannot enter the sandbox: %.200s",
                   bhi_error_line(&failure));
        _exit(1);
    }
    atomic_store(&page->entered, 1);
    plan->fn(&victim);
    _exit(0);
}

static pid_t fork_victim(const struct bhi_probe_context *context,
                         const struct bhi_victim_plan *plan, struct bhi_victim_page **out_page) {
    struct bhi_victim_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_victim(context, plan, page);
    }
    if (pid < 0) {
        int error = errno;
        munmap(page, sizeof *page);
        return -error;
    }
    *out_page = page;
    return pid;
}

void bhi_victim_await(pid_t pid, uint64_t deadline_ns, struct bhi_victim_outcome *out) {
    struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    uint64_t now;
    int n;
    do { /* a signal interrupts it */
        now = bhi_now_ns();
        const uint64_t left_ms = deadline_ns > now ? (deadline_ns - now + 999999u) / 1000000u : 0;
        n = ended.fd < 0 ? 0 : poll(&ended, 1, (int)left_ms);
    } while (n < 0 && now < deadline_ns);
    if (n != 1) {
        out->timed_out = true;
        kill(pid, SIGKILL);
    }
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 && info.si_code != CLD_EXITED) {
        out->signal = info.si_status;
    }
    if (ended.fd >= 0) {
        close(ended.fd);
    }
}

void bhi_victim_run(const struct bhi_probe_context *context, const struct bhi_victim_plan *plan,
                    struct bhi_victim_outcome *out) {
    struct bhi_victim_page *page = NULL;
    memset(out, 0, sizeof *out);
    pid_t pid = fork_victim(context, plan, &page);
    if (pid < 0) {
        bhi_format(out->text, sizeof out->text, "cannot fork a victim: %s", strerror((int)-pid));
        return;
    }
    bhi_victim_finish(pid, page, bhi_deadline_ns(VICTIM_TIMEOUT_MS * 1000000ull), out);
}

void bhi_victim_finish(pid_t pid, struct bhi_victim_page *page, uint64_t deadline_ns,
                       struct bhi_victim_outcome *out) {
    memset(out, 0, sizeof *out);
    bhi_victim_await(pid, deadline_ns, out);
    out->entered = atomic_load(&page->entered) != 0;
    out->done = page->done != 0;
    out->holds = out->done && page->holds != 0;
    bhi_format(out->text, sizeof out->text, "%s", page->text);
    munmap(page, sizeof *page);
}

pid_t bhi_victim_start(const struct bhi_probe_context *context, const struct bhi_victim_plan *plan,
                       struct bhi_victim_page **out_page) {
    pid_t pid = fork_victim(context, plan, out_page);
    if (pid < 0) {
        return pid;
    }
    const uint64_t deadline = bhi_deadline_ns(VICTIM_TIMEOUT_MS * 1000000ull);
    while (atomic_load(&(*out_page)->entered) == 0) {
        if (bhi_now_ns() >= deadline) {
            bhi_victim_end(pid, *out_page);
            return -ETIMEDOUT;
        }
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
    }
    return pid;
}

void bhi_victim_end(pid_t pid, struct bhi_victim_page *page) {
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t)pid, NULL, WEXITED);
    munmap(page, sizeof *page);
}

enum bhi_probe_result bhi_victim_judge(const struct bhi_probe_context *context,
                                       const struct bhi_victim_plan *plan, char *text,
                                       size_t size) {
    struct bhi_victim_outcome outcome;
    bhi_victim_run(context, plan, &outcome);
    if (outcome.done) {
        bhi_format(text, size, "%s", outcome.text);
    } else if (!outcome.entered) {
        bhi_format(text, size, "%s",
                   outcome.text[0] != '\0' ? outcome.text : "it died while it entered the sandbox");
    } else if (outcome.timed_out) {
        snprintf(text, size, "the attempt did not end");
    } else {
        snprintf(text, size, "the attempt was killed by signal %d", outcome.signal);
    }
    return outcome.done && outcome.holds ? BHI_PROBE_HOLDS : BHI_PROBE_BROKEN;
}
